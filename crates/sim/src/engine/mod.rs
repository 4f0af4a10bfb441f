//! Event queue, crew of threads and its pace, random streams. Knows nothing but units.

pub mod crew;
pub mod pace;
pub mod prefetch;
pub mod queue;
pub mod random;
