//! PINT: in-band telemetry under a fixed number of bits a packet.
//!
//! Every packet carries a digest of a few bits, set to zero by the first hop, changed but never lengthened by the others, taken
//! off by the last. Which hop writes what follows from hashes of the packet's id that all hops and the collector
//! share, so no bit is spent on saying who wrote.
//!
//! The encoders ([`hash`], [`code`]) are what a switch computes: integers only, nothing allocated, no standard library. The
//! rest plans, records and infers, off the switch.
//!
//! Source: Ben Basat et al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

pub mod code;
pub mod counting;
pub mod encoder;
pub mod fixed;
pub mod hash;
pub mod loops;
pub mod utilisation;
pub mod value;
#[cfg(feature = "std")]
pub mod vectors;
