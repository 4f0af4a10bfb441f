//! Summaries of streams in bounded space: quantiles ([`kll`]) and frequent values ([`space_saving`]).
//!
//! Both are deterministic (KLL takes its coin from a seed), merge, and are written to and read from bytes.

mod bytes;
pub mod kll;
pub mod space_saving;

pub use bytes::Damaged;
