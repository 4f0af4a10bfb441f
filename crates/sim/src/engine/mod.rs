//! Event queue, crew of threads, whether they pay, and random streams. Knows nothing but units.

pub mod crew;
pub mod murmur;
pub mod payoff;
pub mod prefetch;
pub mod queue;
pub mod random;
