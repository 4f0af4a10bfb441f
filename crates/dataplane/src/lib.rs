//! tc programs for switches that run Linux, and what they need from user space.
//!
//! The programs are C (`bpf/`), built by `make lab-objects` with clang; `docs/dataplane.md` describes them and how to load them with
//! `bpftool` and `tc` alone. Here is what fills their maps ([`pint`], [`int`], [`ecn`], [`hula`], [`mphula`], [`port`]), what hosts do that send and read INT ([`stack`]), and the few calls of the kernel with which the tests run them on
//! packets of their own ([`kernel`]). Nothing here needs clang, libelf or root to build.

pub mod ecn;
mod flow;
pub mod hula;
pub mod int;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod mphula;
pub mod pint;
mod plain;
pub mod port;
pub mod stack;

pub use flow::flow_hash;
pub use plain::Plain;
pub use port::Port;

/// Interfaces that programs keep state of: by their number in Linux, below this.
pub const INTERFACES: u32 = 1024;
