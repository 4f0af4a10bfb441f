//! Event queues, worker threads and the choice of how many to use, hashes, and random streams. Depends on
//! units only.

pub mod murmur;
pub mod prefetch;
pub mod queue;
pub mod random;
pub mod soonest;
pub mod thread_choice;
pub mod worker_pool;
