//! Ports and hosts of the simulator between interfaces of Linux, against the monotonic clock.
//!
//! Ports: frames become packets of the engine's queues, whose bytes are stored in a side table; the
//! discipline decides about drop, mark and order, and the line about when. [`port`] is a port alone, in the
//! time of its arrivals; [`frame`] turns frames into packets and writes marks back; [`plan`] reads which
//! ports a process serves; [`link`] is one direction between two interfaces, [`transmitter`] the time of
//! frames on a link whose port is a kernel's; [`serve`] is the process.
//!
//! Hosts: [`carrier`] turns their packets into frames and back; `hosts` is the process that runs all hosts of
//! a scenario. `receive` is for hosts of the kernel: it takes what their connections receive.

pub mod carrier;
pub mod frame;
#[cfg(target_os = "linux")]
pub mod hosts;
#[cfg(target_os = "linux")]
mod link;
pub mod plan;
pub mod port;
#[cfg(target_os = "linux")]
mod receiving;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod socket;
mod transmitter;
#[cfg(target_os = "linux")]
mod waiting;

#[cfg(target_os = "linux")]
pub use receiving::receive;
#[cfg(target_os = "linux")]
pub use serve::serve;
