//! Whole runs of every kind, in one binary, so that the engine is linked once: `cargo test --test runs tcp::`
//! runs those of tcp.rs.

mod common;

mod balancing;
mod capture;
mod carrying;
mod cebinae_fifo;
mod conditions;
mod derived;
mod distributions;
mod edges;
mod estimated_ends;
mod fastpass;
mod graphs;
mod homa;
mod hosts;
mod ideal;
mod limits;
mod lossy;
mod memo;
mod mptcp;
mod ndp;
mod nics;
mod persistent;
mod pfabric;
mod phost;
mod queue_pairs;
mod queues;
mod quiet;
mod rdma_windows;
mod regions;
mod scenarios;
mod seeds;
mod tcp;
mod why;
