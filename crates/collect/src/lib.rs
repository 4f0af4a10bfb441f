//! A collector of in-band telemetry: what packets and reports say about the paths, queues and delays of a
//! network.
//!
//! The parsers ([`ip`], [`int`], [`report`], [`ioam`], [`shim`], [`packet`]) read bytes and nothing else: no
//! files, no sockets, no clock; they copy nothing, allocate nothing, and never panic. What they refuse has a
//! reason ([`Malformed`]). [`capture`] reads files and streams, [`collector`] keeps what was found.

mod bytes;
pub mod capture;
pub mod checkpoint;
pub mod collector;
mod ethertype;
pub mod flows;
mod heavy;
pub mod histogram;
pub mod int;
pub mod intake;
pub mod ioam;
pub mod ip;
mod key;
#[cfg(target_os = "linux")]
pub mod live;
#[cfg(not(target_os = "linux"))]
#[path = "live_elsewhere.rs"]
pub mod live;
mod malformed;
pub mod packet;
pub mod parallel;
pub mod pint;
pub mod report;
pub mod sequence;
pub mod series;
pub mod shards;
pub mod shim;
pub mod tables;
pub mod workload;
pub mod written;

pub use malformed::Malformed;
