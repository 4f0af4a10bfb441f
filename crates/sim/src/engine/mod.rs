//! Clock, event queue and random streams. Knows nothing but units.

pub mod queue;
pub mod random;
