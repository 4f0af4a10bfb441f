//! The types of the standard library that loom replaces to try every interleaving.

#[cfg(loom)]
pub use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU8, Ordering},
};
#[cfg(not(loom))]
pub use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU8, Ordering},
};
