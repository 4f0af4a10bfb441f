//! Fastpass: a central arbiter gives every packet its timeslot.
//!
//! Only the allocation exists so far; no transport of this name can be chosen in a scenario yet.

pub mod allocation;
