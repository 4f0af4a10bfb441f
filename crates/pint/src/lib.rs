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

#[cfg(feature = "std")]
pub mod accuracy;
pub mod code;
#[cfg(feature = "std")]
pub mod collector;
#[cfg(feature = "std")]
pub mod comparators;
pub mod counting;
#[cfg(feature = "std")]
pub mod csv;
pub mod encoder;
pub mod fixed;
#[cfg(feature = "std")]
pub mod graph;
pub mod hash;
#[cfg(feature = "std")]
pub mod layout;
pub mod loops;
#[cfg(feature = "std")]
pub mod nearest;
#[cfg(feature = "std")]
pub mod observed;
#[cfg(feature = "std")]
pub mod path;
#[cfg(feature = "std")]
pub mod places;
#[cfg(feature = "std")]
pub mod plan;
#[cfg(feature = "std")]
pub mod query;
#[cfg(feature = "std")]
pub mod recorded;
#[cfg(feature = "std")]
pub mod replay;
#[cfg(feature = "std")]
pub mod routes;
#[cfg(feature = "std")]
pub mod sketch;
pub mod utilisation;
pub mod value;
#[cfg(feature = "std")]
pub mod vectors;
