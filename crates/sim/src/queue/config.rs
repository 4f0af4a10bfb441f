//! Queue disciplines that own the buffer of their port: what each is told.

use crate::units::{Bytes, Rate, Time};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueConfig {
    /// Eight classes, class 0 first, the others round robin; first come first served within a class.
    Fifo,
    /// The flow with the least left first; a port holds `limit` bytes, and drops the packet whose flow has the most left.
    Pfabric { limit: Bytes },
    /// Eight classes, lower number first. With a limit, a port holds that many bytes; what is dropped beyond says `drop`.
    Priority { limit: Option<Bytes>, drop: DropRule },
    /// A buffer of the port's own.
    Managed(ManagedConfig),
}

/// Which packet a full queue of classes drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropRule {
    /// The one that came last of the least urgent class: the new one only if no less urgent one waits.
    Lowest,
    /// The new one.
    Tail,
}

/// A port whose packets wait in a buffer of its own, under a discipline that knows the time and may drop what waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ManagedConfig {
    pub discipline: DisciplineConfig,
    pub limit: Limit,
    /// Packets that wait in the NIC behind the discipline, which has no say over them any more.
    pub nic_packets: u32,
    /// Bytes of every packet that are on the wire but that the discipline does not count.
    pub link_header: u16,
}

/// What a port may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub packets: u32,
    pub bytes: Bytes,
}

impl Limit {
    pub const NONE: Limit = Limit { packets: u32::MAX, bytes: Bytes(u64::MAX) };

    pub fn of_packets(packets: u32) -> Limit {
        Limit { packets, ..Limit::NONE }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DisciplineConfig {
    /// First come, first served; a full port drops the new packet.
    Fifo,
    Cebinae(CebinaeConfig),
    Codel(CodelConfig),
    FqCodel(FqCodelConfig),
    /// A queue for every flow, by turns.
    Drr {
        quantum: u32,
    },
    Red(RedConfig),
    Dualpi2(Dualpi2Config),
    Afq(AfqConfig),
}

impl DisciplineConfig {
    /// It decides itself which packets are marked: the thresholds of the switch do not hold at its ports.
    pub fn marks(&self) -> bool {
        match self {
            DisciplineConfig::Fifo
            | DisciplineConfig::Cebinae(_)
            | DisciplineConfig::Drr { .. }
            | DisciplineConfig::Afq(_) => false,
            DisciplineConfig::Red(red) => red.ecn,
            DisciplineConfig::Dualpi2(_) => true,
            DisciplineConfig::Codel(codel) => codel.ecn,
            DisciplineConfig::FqCodel(fq) => fq.codel.ecn,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodelConfig {
    pub target: Time,
    pub interval: Time,
    /// Bytes that remain in a queue that drops.
    pub least: u32,
    /// As Linux and ns-3 compute it.
    pub fixed_point: bool,
    /// Packets are marked instead of dropped where their senders react to that.
    pub ecn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCodelConfig {
    pub codel: CodelConfig,
    /// 0: one for every flow.
    pub queues: u32,
    pub quantum: u32,
    /// Packets that a full port drops at once.
    pub batch: u32,
    /// Of the hash.
    pub salt: u64,
    /// A new queue that is empty passes through the old ones even if there are none.
    pub always_old: bool,
    /// Flows are hashed as in ns-3, of a dumbbell with so many senders; 0: as they are here.
    pub ns3_senders: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedConfig {
    /// Of the average queue: below the one nothing is dropped, at the other a share of `probability`.
    pub least: Bytes,
    pub most: Bytes,
    /// Of a new sample in the average.
    pub weight: f64,
    pub probability: f64,
    pub gentle: bool,
    /// In which idle time is counted.
    pub mean_packet: Bytes,
    /// Packets are marked instead of dropped where their senders react to that.
    pub ecn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dualpi2Config {
    pub target: Time,
    /// Between two updates of the probability.
    pub update: Time,
    /// Gains, in 1/s.
    pub alpha: f64,
    pub beta: f64,
    pub coupling: f64,
    /// Low-latency packets are marked from the one time of waiting on, all of them the other later.
    pub ramp_from: Time,
    pub ramp: Time,
    /// Low-latency packets are served as if they had come so much earlier.
    pub shift: Time,
    /// Traffic class of low-latency packets; 0: all that may be marked.
    pub l4s_class: u8,
    /// Classic packets are marked instead of dropped where their senders react to that.
    pub ecn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AfqConfig {
    /// Queues.
    pub rounds: u32,
    pub round_bytes: u32,
    pub sketch_rows: u32,
    pub sketch_slots: u32,
}

/// How Cebinae's filter multiplies a rate by a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// As it is, rounded down to a byte.
    Exact,
    /// By tables of logarithms: both rounded down to powers of two.
    Tables,
    /// In floating point and seconds, cut to a byte.
    Double,
}

/// Shares are parts of 10^9; see `queue::cebinae`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CebinaeConfig {
    /// Length of a round; none: so that a full buffer drains in one.
    pub round: Option<Time>,
    /// Granularity of time within a round.
    pub virtual_round: Time,
    /// What the control plane has for its work before every rotation.
    pub deadline: Time,
    /// Rounds between recomputations.
    pub period: u32,
    pub tax: u64,
    pub port_slack: u64,
    pub flow_slack: u64,
    /// Both rounds share the buffer; else each has half of it.
    pub shared: bool,
    pub cache: CacheKind,
    pub cache_stages: u32,
    pub cache_slots: u32,
    /// Bytes of every packet that the flow cache does not count.
    pub cache_header: u32,
    /// Flows are told apart by their hosts only.
    pub by_hosts: bool,
    /// Flows are hashed as in ns-3, of a dumbbell with so many senders; 0: as they are here.
    pub ns3_senders: u32,
    /// The filter lets everything into the head while the port is not saturated.
    pub only_saturated: bool,
    /// What is not judged waits in a queue of its own.
    pub default_queue: bool,
    /// A packet is judged with itself counted.
    pub counts_itself: bool,
    pub products: Products,
    /// Flows are judged by the mean of two windows.
    pub smooth: bool,
    /// Windows for which a port counts as saturated after it was.
    pub hold: u32,
}

impl CebinaeConfig {
    /// The length of a round in nanoseconds at a port of this rate and limit: where nothing is said the next power of two
    /// in which a full buffer of full packets drains, but at least twice what control takes.
    pub fn round_at(&self, rate: Rate, limit: Limit) -> u64 {
        const FULL_PACKET: u64 = 1500;
        let drain = rate.transmission_time(limit.bytes.0.min(u64::from(limit.packets) * FULL_PACKET));
        let control = 2 * (self.deadline.ns() + self.virtual_round.ns());
        // Not above half a minute, whatever the buffer.
        let least = drain.ns().clamp(control, 1 << 35);
        self.round.map_or(least.next_power_of_two(), Time::ns)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// A flow that finds its slots taken is not counted.
    FirstCome,
    /// It takes over the slot of the last stage.
    Overwrite,
    Exact,
}
