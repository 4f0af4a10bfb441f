//! Every tc program on random packets and states, under the kernel's own test run, against the Rust implementation: the same bytes, the
//! same maps.
//!
//! Needs root, `bpftool` and the objects (`make lab-objects`), so the tests run with `--ignored` only, or by `make lab-programs`. Where
//! something is missing they name it and pass, unless WEFTLINE_LAB is set: then they fail.
#![cfg(target_os = "linux")]

mod ecn;
mod hula;
mod int;
mod mphula;
mod packets;
mod pint;
mod rig;
