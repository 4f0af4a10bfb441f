//! What must hold whatever the scheme: exact times of lone flows, queueing theory, lossless and lossy operation,
//! failures, determinism. Bytes on every link and in every switch are balanced by the engine itself at the end of
//! every run, so each test here is one of conservation, too.

#[path = "../common/mod.rs"]
mod common;

mod collectives;
mod determinism;
mod failures;
mod jobs;
mod lone_flow;
mod loss;
mod losses;
mod lossless;
mod pairs;
mod pfabric;
mod queueing;
mod sharing;
mod slower;
mod windows;
