//! Event queue, crew of threads and random streams. Knows nothing but units.

pub mod crew;
pub mod murmur;
pub mod prefetch;
pub mod queue;
pub mod random;
