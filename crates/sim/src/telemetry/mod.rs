//! What packets carry about the network they crossed.

pub mod int;
pub mod pint;
