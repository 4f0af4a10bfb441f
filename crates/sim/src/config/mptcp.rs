//! What a flow over multipath TCP runs under.

use super::TcpConfig;
use crate::units::Time;

#[derive(Debug, Clone, PartialEq)]
pub struct MptcpConfig {
    /// Of each subflow; buffers are the connection's.
    pub tcp: TcpConfig,
    /// 0: RFC 6824; 1: RFC 8684.
    pub version: u8,
    /// Subflows that the initiator opens, each from a port of its own.
    pub subflows: u8,
    pub join: JoinRule,
    pub scheduler: SchedulerKind,
    /// Selective blocks that fit an acknowledgement beside its data acknowledgement.
    pub sack_blocks: u32,
    /// Timeouts in a row after which a subflow is given up, if there is another.
    pub fail_after: u32,
    /// A subflow that was given up is opened anew after this time, from another port; zero: never.
    pub rejoin: Time,
    /// What a subflow that times out has not got across is sent by others too.
    pub reinject: bool,
    /// When the shared window is full, a subflow with room sends what holds it up.
    pub opportunistic: bool,
    /// The subflow that held it up halves its window then.
    pub penalise: bool,
}

/// When further subflows are opened, and when they may carry data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinRule {
    /// Once data was acknowledged; data once the third packet of the join was (RFC 8684 §3.2).
    Confirmed,
    /// With the third packet of the handshake; data after a round trip.
    AtOnce,
}

/// Which subflow gets the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerKind {
    /// Of those with room, the one with the shortest round-trip time.
    MinRtt,
    /// Those with room, in turn.
    RoundRobin,
    /// All: each carries everything.
    Redundant,
}
