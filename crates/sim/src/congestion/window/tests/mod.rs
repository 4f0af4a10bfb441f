//! What the tests of all window controllers share.

mod golden;
pub mod situations;
