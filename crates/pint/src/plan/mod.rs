//! Plans.

pub mod presets;
mod problem;
mod sets;
mod simplex;
