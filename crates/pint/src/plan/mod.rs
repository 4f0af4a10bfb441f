//! Plans.

mod document;
pub mod presets;
mod problem;
mod read;
mod sets;
mod simplex;
