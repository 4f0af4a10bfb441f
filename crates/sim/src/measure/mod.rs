//! What a run records, streamed out while it goes on.

mod balance;
mod config;
mod losses;
pub mod recorder;

pub use balance::{Balance, RegionWork};
pub use config::{CaptureConfig, IdealFct, MeasureConfig, Sampled};
pub use losses::LossCounters;

use crate::counters::CounterSet;
use crate::units::{Bytes, Time};
use crate::workload::{FlowId, FlowSpec};
use std::ops::Range;

/// A flow that ended, or that had not ended when the run did (`finish` none).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowRecord {
    pub flow: FlowId,
    pub src: u32,
    pub dst: u32,
    pub size: u64,
    pub start: Time,
    pub finish: Option<Time>,
    /// The time it would take alone, by the definition that the scenario names; set when the record is handed on.
    pub ideal: Time,
    pub packets_sent: u64,
    pub packets_retransmitted: u64,
    /// Retransmission timeouts that expired.
    pub timeouts: u32,
    pub group: u16,
    pub transport: u16,
    pub deadline: Option<Time>,
}

impl FlowRecord {
    /// What the flow was asked to be, as far as its ideal time depends on it.
    pub fn asked(&self) -> FlowSpec {
        FlowSpec {
            src: self.src,
            dst: self.dst,
            size: self.size,
            transport: self.transport,
            ..FlowSpec::default()
        }
    }

    /// Of a flow that has not ended, and of which nothing was sent.
    pub fn of(flow: FlowId, spec: &FlowSpec, src: u32, start: Time) -> FlowRecord {
        FlowRecord {
            flow,
            src,
            dst: spec.dst,
            size: spec.size,
            start,
            finish: None,
            ideal: Time::ZERO,
            packets_sent: 0,
            packets_retransmitted: 0,
            timeouts: 0,
            group: spec.group,
            transport: spec.transport,
            deadline: spec.deadline,
        }
    }
}

/// What a series row is about; turned into a name (`leaf0.p3`, `flow12`, group name) when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entity {
    /// (node, port of the node)
    Port(u32, u32),
    Flow(FlowId),
    Group(u16),
    Run,
}

/// One measured value over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub time: Time,
    pub entity: Entity,
    /// With its unit: `queue_bytes`, `goodput_bps`, `utilisation`, `cwnd_bytes`, `rate_bps`, `alpha`, `u`,
    /// `ecn_marks`, `drops`, `pause`; of queue disciplines by their declarations ([`crate::counters`]).
    pub metric: &'static str,
    pub value: f64,
}

/// Behind the last switch of a path, and everywhere in one that is not known because it has more than there is room for.
pub const NO_NODE: u32 = u32::MAX;

/// The digest that a sink took off a packet (PINT).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestRecord {
    /// When it came to the receiving host.
    pub time: Time,
    pub flow: FlowId,
    /// Number of the subflow in a multipath connection; 0 elsewhere.
    pub subflow: u32,
    pub src: u32,
    pub dst: u32,
    pub packet: u64,
    pub digest: u64,
    /// The switches that it passed, as they noted it themselves, where that is asked for; see [`NO_NODE`].
    pub path: Option<Box<[u32; 6]>>,
    /// A switch found the packet in a loop.
    pub looped: bool,
    /// Switches that the packet passed.
    pub hops: u32,
    /// Of the plan that they ran; 0 without one.
    pub plan_version: u32,
}

/// A packet as it began to cross a link, written as a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// When its first bit left.
    pub time: Time,
    /// The number of the link among those asked for.
    pub link: u16,
    /// Bytes of the whole frame.
    pub length: u32,
    /// Those that were kept, among [`Frames::bytes`].
    pub bytes: Range<usize>,
}

/// Frames in order of time, and their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    pub frames: Vec<Frame>,
    pub bytes: Vec<u8>,
}

impl Frames {
    pub fn clear(&mut self) {
        self.frames.clear();
        self.bytes.clear();
    }
}

/// Where records go, in batches. An error ends the run; what was written stays.
pub trait Sink {
    fn flows(&mut self, batch: &[FlowRecord]) -> std::io::Result<()>;
    fn samples(&mut self, batch: &[Sample]) -> std::io::Result<()>;
    /// Digests; whoever has no use for them need not say so.
    fn digests(&mut self, _batch: &[DigestRecord]) -> std::io::Result<()> {
        Ok(())
    }
    /// Packets of the links that are watched; whether more are wanted.
    fn frames(&mut self, _batch: &Frames) -> std::io::Result<bool> {
        Ok(false)
    }
}

/// Bytes queued at a port, as a histogram of samples: bin i counts samples in [i, i+1) * 1000 bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueHistogram {
    pub bins: Vec<u64>,
}

impl QueueHistogram {
    pub const BIN_BYTES: u64 = 1000;

    pub fn add(&mut self, bytes: u64) {
        let bin = (bytes / Self::BIN_BYTES) as usize;
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += 1;
    }

    /// Lower edge in bytes of the bin in which the share `p` of all samples is reached.
    pub fn percentile(&self, p: f64) -> u64 {
        let total: u64 = self.bins.iter().sum();
        let wanted = (p * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bin, &count) in self.bins.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return bin as u64 * Self::BIN_BYTES;
            }
        }
        0
    }

    pub fn merge(&mut self, other: &QueueHistogram) {
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            *mine += theirs;
        }
    }
}

/// Totals of one directed port over the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTotals {
    pub packets_sent: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub packets_received: u64,
    /// Packets that this port's queue or the switch's buffer refused.
    pub packets_dropped: u64,
    pub bytes_dropped: u64,
    /// Lost on the wire into this port, because the link was down or at random.
    pub packets_lost: u64,
    pub bytes_lost: u64,
    /// Of these, those that the link lost at random.
    pub packets_lost_at_random: u64,
    /// Had nowhere to go: the port's link was down, or no route was left.
    pub packets_stranded: u64,
    pub bytes_stranded: u64,
    pub ecn_marks: u64,
    /// Pause frames received, and how long any class was held by them.
    pub pauses: u64,
    pub paused: Time,
    /// When the present pause began, if there is one.
    pub paused_since: Time,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// All flows done, or the stated time reached.
    #[default]
    Done,
    /// No byte was delivered for the stall time though flows were unfinished.
    Stalled,
    Interrupted,
    /// The process held more memory than whoever watched the run allowed it.
    MemoryLimit {
        held: Bytes,
        limit: Bytes,
    },
}

/// What a run leaves beside its tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    pub ending: Ending,
    /// Simulated time at which the run ended.
    pub end: Time,
    pub flows: u64,
    /// Flows that the run ended before: not counted, and without records.
    pub flows_not_due: u64,
    pub flows_done: u64,
    pub events: u64,
    /// Packets transmitted on any link, acknowledgements and pause frames included.
    pub packet_hops: u64,
    pub bytes_on_wire: u64,
    pub telemetry_bytes: u64,
    /// Bytes that switches sent.
    pub bytes_switched: u64,
    /// What balancers, telemetry and transports counted ([`CounterSet::complete`] adds what nobody counted).
    pub counters: CounterSet,
    /// When a packet was last lost on a link or had nowhere to go.
    pub last_loss: Option<Time>,
    /// What came to the hosts, where they put it in order or it was asked for.
    pub receiving: Option<Receiving>,
    /// 64-bit hash of all completed flows and counters: equal bits, equal number.
    pub fingerprint: u64,
    /// What became of data packets, by group.
    pub losses: Vec<LossCounters>,
    /// (node, port of the node, totals), in order.
    pub ports: Vec<(u32, u32, PortTotals)>,
    /// Histogram of each port asked for, in order.
    pub queues: Vec<(u32, u32, QueueHistogram)>,
    /// (job, start, finish) of every job that ended.
    pub jobs: Vec<(u32, Time, Time)>,
    /// (node, port of the node, what its queue discipline counted) of the ports whose discipline counts, in order.
    pub disciplines: Vec<(u32, u32, CounterSet)>,
}

/// What came to the hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Receiving {
    /// Data packets, and those of them that one sent later had overtaken: as they came, and as the transports saw them.
    pub packets: u64,
    pub reordered: u64,
    pub reordered_behind: u64,
    /// Packets held back to be put in order, those whose predecessors were given up waiting for, and the most payload
    /// that one host held.
    pub held: u64,
    pub expired: u64,
    pub most_held: u64,
    /// Flows whose packets passed two switches or more, and the distinct paths of each, added up; zero where paths were not
    /// asked for.
    pub flows: u64,
    pub paths: u64,
}

impl Outcome {
    /// The outcome of a run that ended before anything happened.
    pub fn nothing(ending: Ending) -> Outcome {
        Outcome { ending, ..Outcome::default() }
    }
}

/// How far a run is; passed to whoever watches it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    pub now: Time,
    /// The time at which it must end, if that is known.
    pub until: Option<Time>,
    pub flows_done: u64,
    pub flows: u64,
    pub packet_hops: u64,
    pub cpu_seconds: f64,
}
