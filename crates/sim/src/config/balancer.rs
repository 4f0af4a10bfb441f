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
    /// The hop that probes say leads over the least busy path; HULA and MP-HULA.
    Hula(HulaConfig),
    /// The uplink that the leaf at the other end says is the least congested.
    Conga(CongaConfig),
    /// The sending host chooses the hash that switches go by.
    Clove(CloveConfig),
}

impl BalancerConfig {
    /// Packets with one label take one path while routes stay.
    pub fn keeps_flows_on_paths(&self) -> bool {
        matches!(self, BalancerConfig::Ecmp { .. } | BalancerConfig::Destination | BalancerConfig::Label)
    }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HulaConfig {
    /// From one round of probes of a ToR to the next, and bytes of a probe.
    pub interval: Time,
    pub probe_size: u16,
    /// Class in which probes queue; 0: before all traffic, and never refused for want of room.
    pub probe_class: u8,
    /// Over which the load of a link is averaged.
    pub time_constant: Time,
    /// What was not heard of for longer counts as failed.
    pub failure_time: Time,
    /// Flowlets leave a port that has failed at once, not at their next gap.
    pub release: bool,
    pub flowlets: FlowletConfig,
    /// Next hops kept for each ToR; 1: HULA.
    pub ranks: u8,
    /// A probe of the best hop replaces its value, be it better or worse.
    pub refresh_on_best: bool,
    /// What is no news is passed on once an interval.
    pub suppress: bool,
    /// By how much, in 1/256, a hop must be better to pass the one ranked above it.
    pub hysteresis: u8,
    /// The estimator shifts instead of dividing.
    pub hardware: bool,
    /// ToRs begin at random moments of the first interval.
    pub staggered: bool,
    /// What becomes of subflows; with more than one rank.
    pub subflows: SubflowConfig,
}

/// How MP-HULA tells the subflows of a connection apart, and parts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubflowConfig {
    /// Some flows of the run are multipath: ToRs look for them.
    pub multipath: bool,
    pub rank: RankChoice,
    /// A connection's first subflow takes a rank by its hash, not the best.
    pub hashed_start: bool,
    /// Subflows of a connection pass over ports that others of them use.
    pub disjoint: bool,
    /// Bytes of connection and subflow in packets between ToRs.
    pub mark: u16,
    /// Subflows that a ToR remembers, and how long a silent one.
    pub known: u32,
    pub idle: Time,
}

impl Default for SubflowConfig {
    fn default() -> SubflowConfig {
        SubflowConfig {
            multipath: false,
            rank: RankChoice::Digits,
            hashed_start: false,
            disjoint: true,
            mark: 9,
            known: 1 << 16,
            idle: Time::from_ms(60_000),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankChoice {
    /// Subflow s has rank s mod k at every tier.
    RoundRobin,
    /// At tier t it has digit t of s in base k.
    Digits,
}

/// Whether packets of one flow may take several paths, and so overtake each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reorders {
    /// A flow keeps to its path, unless its sender gives every packet a label of its own.
    Never,
    /// Only behind a pause as long as this.
    AfterPauses(Time),
    /// From one block of packets to the next, without a pause between them.
    Blocks,
    /// From one packet to the next, which keeps the queues of all paths alike.
    Packets,
}

impl BalancerConfig {
    /// The name in scenarios, and what it does to the order of a flow's packets.
    pub fn order(&self) -> (&'static str, Reorders) {
        let flowlets = |flowlets: &FlowletConfig| Reorders::AfterPauses(flowlets.gap);
        match self {
            BalancerConfig::Ecmp { .. } => ("ecmp", Reorders::Never),
            BalancerConfig::Destination => ("destination", Reorders::Never),
            BalancerConfig::Label => ("label", Reorders::Never),
            BalancerConfig::Spray | BalancerConfig::RoundRobin => ("spray", Reorders::Packets),
            BalancerConfig::Drill(_) => ("drill", Reorders::Packets),
            BalancerConfig::Presto { .. } => ("presto", Reorders::Blocks),
            BalancerConfig::LetFlow(config) => ("letflow", flowlets(config)),
            BalancerConfig::Conga(config) => ("conga", flowlets(&config.flowlets)),
            BalancerConfig::Clove(config) => ("clove", flowlets(&config.flowlets)),
            BalancerConfig::Hula(config) if config.ranks > 1 => ("mp-hula", flowlets(&config.flowlets)),
            BalancerConfig::Hula(config) => ("hula", flowlets(&config.flowlets)),
        }
    }

    /// It is told where ports lead and which switches have hosts.
    pub fn knows_fabric(&self) -> bool {
        matches!(self, BalancerConfig::Hula(_) | BalancerConfig::Conga(_))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongaConfig {
    pub flowlets: FlowletConfig,
    /// Over which the load of a link is averaged.
    pub time_constant: Time,
    /// Share of it that is forgotten at a time, in 1/1024.
    pub alpha: u32,
    /// In which congestion is told.
    pub bits: u8,
    /// What was not heard of for longer counts as idle.
    pub ageing: Time,
    /// Bytes that a packet is longer by between leaves.
    pub header: u16,
    /// The network may have three tiers (CONGA').
    pub three_tier: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloveConfig {
    /// What hosts tell each other of the paths.
    pub feedback: CloveFeedback,
    pub flowlets: FlowletConfig,
    /// Paths that a host knows to another, at most.
    pub paths: u8,
    /// A path is told of once in this time at most.
    pub relay_interval: Time,
    /// ECN: a path that was told of as congested counts as such for so long.
    pub congested_for: Time,
    /// ECN: share of its weight that a congested path gives away, in 1/1024.
    pub cut: u32,
    /// ECN: transports hear of marks only while all paths are congested.
    pub hide_marks: bool,
    /// INT: over which the load of a link is averaged.
    pub time_constant: Time,
    /// INT: what was not heard of for longer counts as idle.
    pub ageing: Time,
    /// Bytes that a packet is longer by.
    pub header: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloveFeedback {
    /// Nothing: every flowlet takes a random path (Edge-Flowlet).
    None,
    /// Marks of switches (CLOVE-ECN).
    Ecn,
    /// The busiest link of each path (CLOVE-INT).
    Int,
}
