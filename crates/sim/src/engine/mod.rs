//! Event queues, worker threads and the choice of how many to use, memory that they share, hashes, and random
//! streams. Depends on units only.

pub mod murmur;
pub mod prefetch;
pub mod queue;
pub mod random;
pub mod shared_memory;
pub mod soonest;
mod sync;
pub mod thread_choice;
pub mod worker_pool;
