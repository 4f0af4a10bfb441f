//! Fastpass: a central arbiter gives every packet its timeslot.
//!
//! Only the arbiter exists so far, tested alone; no transport of this name can be chosen in a scenario yet.

pub mod allocation;
pub mod arbiter;
