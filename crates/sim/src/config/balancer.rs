//! How switches choose among paths, resolved.

use crate::units::{Bytes, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BalancerConfig {
    /// A flow's hash, salted per switch, chooses among the shortest paths.
    Ecmp { salt: u64 },
    /// Every packet takes a random one of the shortest paths.
    Spray,
    /// The packets to one host take them in turn.
    RoundRobin,
    /// The destination's number chooses, one digit a tier.
    Destination,
    /// The packet's own label chooses, one digit a tier.
    Label,
    /// Every flowlet takes a random one.
    LetFlow(FlowletConfig),
    /// Every packet takes the shortest of a few queues.
    Drill(DrillConfig),
    /// Cells of a flow take them in turn.
    Presto { cell: Bytes },
}

/// A table of flowlets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowletConfig {
    /// A longer pause between two packets ends a flowlet.
    pub gap: Time,
    pub slots: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrillConfig {
    /// Queues drawn for every packet (d), and those remembered (m).
    pub samples: u32,
    pub memory: u32,
}
