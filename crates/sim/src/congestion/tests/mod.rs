//! What the tests of all controllers share.

mod lone_flow;
pub mod situations;
