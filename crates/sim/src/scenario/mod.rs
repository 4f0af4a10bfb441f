//! Scenarios.
pub mod document;
pub mod problem;
pub mod resolve;
pub mod section;
