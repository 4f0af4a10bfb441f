//! What a run records. Records are streamed out during the run.

mod balance;
mod causes;
mod config;
mod losses;
pub mod recorder;
mod waits;

pub use balance::{Balance, RegionWork};
pub use causes::{Caused, Causes, RankEvent};
pub use config::{CaptureConfig, IdealFct, MeasureConfig, Sampled};
pub use losses::LossCounters;
pub use waits::WAITS;

use crate::counters::CounterSet;
use crate::topology::HostId;
use crate::units::{Bytes, Rate, Time};
use crate::workload::{FlowId, FlowSpec, JobShape};
use std::ops::Range;

/// The record of a flow that ended, or that had not ended when the run did (`finish` is none).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowRecord {
    pub flow: FlowId,
    pub src: u32,
    pub dst: u32,
    pub size: u64,
    pub start: Time,
    pub finish: Option<Time>,
    /// Completion time of the flow alone on the network, by the definition that the scenario names; set when
    /// the record is passed on.
    pub ideal: Time,
    pub packets_sent: u64,
    pub packets_retransmitted: u64,
    /// Number of retransmission timeouts that expired.
    pub timeouts: u32,
    pub group: u16,
    pub transport: u16,
    pub deadline: Option<Time>,
    /// Until when the flow was observed: its end, or that of the run; set when the record is passed on.
    pub until: Time,
}

impl FlowRecord {
    /// Whether the flow ended by its deadline; none without one, and where the run ended before both.
    pub fn met_deadline(&self) -> Option<bool> {
        let deadline = self.deadline?;
        match self.finish {
            Some(finish) => Some(finish <= deadline),
            None => (deadline <= self.until).then_some(false),
        }
    }

    /// Returns the specification of the flow, as far as its ideal time depends on it.
    pub fn asked(&self) -> FlowSpec {
        FlowSpec {
            src: self.src,
            dst: self.dst,
            size: self.size,
            transport: self.transport,
            ..FlowSpec::default()
        }
    }

    /// The record of a flow that has not ended, before anything was sent.
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
            until: start,
        }
    }
}

/// What a row of a series is about; converted to a name (`leaf0.p3`, `flow12`, name of a group) when it is
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    /// (node, port of the node)
    Port(u32, u32),
    Flow(FlowId),
    Group(u16),
    Run,
}

/// One measured value at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub time: Time,
    pub entity: Entity,
    /// With its unit: `queue_bytes`, `goodput_bps`, `utilisation`, `cwnd_bytes`, `rate_bps`, `alpha`, `u`,
    /// `ecn_marks`, `drops`, `pause`; of queue disciplines by their declarations ([`crate::counters`]).
    pub metric: &'static str,
    pub value: f64,
}

/// Marks the places after the last switch of a path, and every place of a path that is unknown because it is
/// too long.
pub const NO_NODE: u32 = u32::MAX;

/// The digest that a receiving host removed from a packet (PINT).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestRecord {
    /// Arrival time at the receiving host.
    pub time: Time,
    pub flow: FlowId,
    /// Number of the subflow in a multipath connection; 0 otherwise.
    pub subflow: u32,
    pub src: u32,
    pub dst: u32,
    pub packet: u64,
    pub digest: u64,
    /// The switches that the packet passed, as the simulator recorded them, if the scenario asks for them;
    /// see [`NO_NODE`].
    pub path: Option<Box<[u32; 6]>>,
    /// Whether a switch found the packet in a loop.
    pub looped: bool,
    /// Number of switches that the packet passed.
    pub hops: u32,
    /// Version of the plan that the switches ran; 0 without a plan.
    pub plan_version: u32,
}

/// A packet at the start of its transmission on a link, as a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Time at which its first bit left.
    pub time: Time,
    /// Index of the link among those captured.
    pub link: u16,
    /// Length of the whole frame in bytes.
    pub length: u32,
    /// The bytes kept of it, as a range of [`Frames::bytes`].
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

/// Where records are written, in batches. An error ends the run; what was written remains.
pub trait Sink {
    fn flows(&mut self, batch: &[FlowRecord]) -> std::io::Result<()>;
    fn samples(&mut self, batch: &[Sample]) -> std::io::Result<()>;
    /// Writes digests. The default ignores them.
    fn digests(&mut self, _batch: &[DigestRecord]) -> std::io::Result<()> {
        Ok(())
    }
    /// Writes captured packets. Returns false if no more are wanted.
    fn frames(&mut self, _batch: &Frames) -> std::io::Result<bool> {
        Ok(false)
    }
}

/// Bytes queued at a port, as a histogram of samples: bin i counts samples in [i, i+1) * 1000 bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueHistogram {
    pub bins: Vec<u64>,
    /// The largest sample in bytes.
    pub max: u64,
}

impl QueueHistogram {
    pub const BIN_BYTES: u64 = 1000;

    /// Adds this number of equal samples; none of them makes no bin.
    pub fn add(&mut self, bytes: u64, samples: u64) {
        let bin = (bytes / Self::BIN_BYTES) as usize;
        if samples > 0 && bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        if let Some(count) = self.bins.get_mut(bin) {
            *count += samples;
        }
        if samples > 0 {
            self.max = self.max.max(bytes);
        }
    }

    /// Returns the lower edge, in bytes, of the bin in which the share `p` of all samples is reached.
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
        self.max = self.max.max(other.max);
    }
}

/// Totals of one directed port over the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTotals {
    pub packets_sent: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub packets_received: u64,
    /// Packets that the port's queue or the switch's buffer refused.
    pub packets_dropped: u64,
    pub bytes_dropped: u64,
    /// Packets lost on the link towards this port, because the link was down or at random.
    pub packets_lost: u64,
    pub bytes_lost: u64,
    /// Packets among these that the link lost at random.
    pub packets_lost_at_random: u64,
    /// Packets that could not be forwarded: the port's link was down, or no route was left.
    pub packets_stranded: u64,
    pub bytes_stranded: u64,
    pub ecn_marks: u64,
    /// Pause frames received, and the time for which any class was paused by them.
    pub pauses: u64,
    pub paused: Time,
    /// Start of the current pause, if there is one.
    pub paused_since: Time,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// All flows done, or the stated time reached.
    #[default]
    Done,
    /// No byte was delivered for long although flows were unfinished ([`Silence`]), or ranks of a job wait
    /// while no message is under way.
    Stalled,
    Interrupted,
    /// The process used more memory than its caller allowed.
    MemoryLimit {
        held: Bytes,
        limit: Bytes,
    },
    /// The machine had no more memory for it.
    MachineFull {
        held: Bytes,
        left: Bytes,
    },
    /// The limit of the process's address space left less than a table may ask for next.
    AddressSpaceFull {
        held: Bytes,
        left: Bytes,
    },
}

/// What a run returns in addition to its tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    pub ending: Ending,
    /// Simulated time at which the run ended.
    pub end: Time,
    pub flows: u64,
    /// Flows that would have started after the end of the run: not counted, and without records.
    pub flows_not_due: u64,
    pub flows_done: u64,
    pub events: u64,
    /// Packets transmitted on any link, including acknowledgements and pause frames.
    pub packet_hops: u64,
    pub bytes_on_wire: u64,
    pub telemetry_bytes: u64,
    /// Bytes that switches sent.
    pub bytes_switched: u64,
    /// What balancers, telemetry and transports counted ([`CounterSet::complete`] adds the uncounted).
    pub counters: CounterSet,
    /// When a packet was last lost on a link or had nowhere to go.
    pub last_loss: Option<Time>,
    /// Counters of arrivals at hosts, if hosts reorder packets or the scenario asks for them.
    pub receiving: Option<Receiving>,
    /// 64-bit hash of all completed flows and counters: runs with equal bits have equal fingerprints.
    pub fingerprint: u64,
    /// What happened to data packets, by group.
    pub losses: Vec<LossCounters>,
    /// (node, port of the node, totals), in order.
    pub ports: Vec<(u32, u32, PortTotals)>,
    /// Histogram of each port that the scenario names, in order.
    pub queues: Vec<(u32, u32, QueueHistogram)>,
    /// Every step of a job that started, in the order of (job, step).
    pub steps: Vec<StepRecord>,
    /// The parts of all ranks in them, of job graphs, in the order of (step, rank).
    pub ranks: Vec<RankRecord>,
    /// Of job graphs that had not ended: the operations that wait.
    pub waiting: Vec<String>,
    /// The events that decided when ranks of job graphs acted, if that was requested.
    pub causes: Option<Causes>,
    /// (node, port of the node, what its queue discipline counted) of the ports whose discipline counts, in order.
    pub disciplines: Vec<(u32, u32, CounterSet)>,
    /// What became of the steps of a run with `run.memo`.
    pub memo: Option<Memoised>,
    /// At the end PFC had deadlocked.
    pub deadlock: Option<Deadlock>,
    /// Of a stalled run: for how long nothing had been delivered.
    pub silence: Option<Silence>,
}

/// Why a run was given up: nothing was delivered for some time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Silence {
    /// `run.stall`.
    pub stall: Time,
    /// For how long the run waited: longer than `stall` if nothing had been delivered for longer when a link
    /// or switch changed last.
    pub waited: Time,
    /// It began with the last change of a link or switch.
    pub after_change: bool,
    /// Ports that were busy with a packet at the end, on links on which a packet takes longer than that.
    pub slow: Vec<SlowPort>,
}

/// A port whose link passed nothing while the run waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowPort {
    pub node: u32,
    pub local: u32,
    /// The node at the other end.
    pub peer: u32,
    pub rate: Rate,
    /// How long a packet takes there.
    pub packet: Time,
}

/// Ports that PFC has paused for good, because they wait for each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// When the last port of the circle was paused.
    pub since: Time,
    /// (node, port of the node): each waits for the next one, and the last one for the first.
    pub circle: Vec<(u32, u32)>,
    /// Ports that wait for good, those before the circle included.
    pub ports: u32,
}

/// Steps of a job that were simulated, and those whose results were taken from them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memoised {
    pub simulated: u32,
    pub repeated: u32,
    /// Why a step could not be taken for another, the last time.
    pub why_not: Option<String>,
}

/// Arrivals at hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Receiving {
    /// Data packets, and those of them that a later-sent packet had overtaken: on arrival, and as the
    /// transports saw them.
    pub packets: u64,
    pub reordered: u64,
    pub reordered_delivered: u64,
    /// Packets held back to restore their order, those released because waiting for their predecessors ended,
    /// and the maximum payload that one host held.
    pub held: u64,
    pub expired: u64,
    pub max_held: u64,
    /// Flows whose packets passed two switches or more, and the total number of their distinct paths; zero if
    /// paths were not recorded.
    pub flows: u64,
    pub paths: u64,
}

/// One step of a job: a collective operation, or the event of an incast.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// Number of the workload among [`Traffic::sources`](crate::workload::Traffic::sources).
    pub source: u16,
    /// Number of the step within it.
    pub step: u32,
    /// Number of the step among those of all workloads.
    pub number: u32,
    pub group: u16,
    pub shape: JobShape,
    /// It is all that the ranks of a job graph do, not one operation.
    pub whole: bool,
    /// It is one operation within such a whole, which has a record of its own.
    pub part: bool,
    /// Data of every host; without such a thing the sum of the flows that started.
    pub bytes: u64,
    /// Start of its first flow; of a whole the begin of the job, or the end of the step before.
    pub start: Time,
    /// From when its time counts: the later of its start and the end of the operation before it in its job, which
    /// ranks that are ahead do not wait for, so that times of the operations of a job do not overlap; of a part, and
    /// of an incast's event, its start.
    pub begin: Time,
    /// Delivery of its last flow, of a whole the end of its last rank; none: it had not ended when the run did.
    pub finish: Option<Time>,
    /// A lower bound of its duration on the network as configured, with no other traffic.
    pub ideal: Option<Time>,
    /// The flow that was delivered last, and its receiver; of a whole the host of the rank that ended last.
    pub last: Option<(FlowId, HostId)>,
    /// That flow has a record: it is not a message within a scale-up domain, or of a job without them.
    pub last_recorded: bool,
    /// Of a job graph: the longest time in which a rank communicated and did not compute, and how much later than
    /// half of the ranks the last one ended.
    pub exposed: Option<Time>,
    pub straggler: Option<Time>,
}

impl StepRecord {
    /// The time that it adds to its job.
    pub fn time(&self) -> Option<Time> {
        self.finish.map(|finish| finish.saturating_sub(self.begin))
    }
}

/// A rank's part of a step of a job graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankRecord {
    /// Number of the step among those of all workloads.
    pub number: u32,
    pub rank: u32,
    pub host: HostId,
    /// When the rank joined, and when it had its result; none: it had not ended when the run did.
    pub start: Time,
    pub end: Option<Time>,
    /// Payload of the messages that it sent.
    pub bytes: u64,
    /// Time in which it communicated and did not compute.
    pub exposed: Time,
    /// Of a whole job, parts of `exposed`: until the messages were sent after which it computed again, and
    /// until the last rank had joined the collective operations after which it did.
    pub unsent: Time,
    pub unjoined: Time,
}

impl Outcome {
    /// (number, start, finish) of every step that ended, parts of whole jobs left out, in the order in which they ended.
    pub fn jobs(&self) -> Vec<(u32, Time, Time)> {
        let ended = |step: &StepRecord| step.finish.map(|finish| (step.number, step.start, finish));
        let mut jobs: Vec<_> = self.steps.iter().filter(|step| !step.part).filter_map(ended).collect();
        jobs.sort_unstable_by_key(|&(job, _, finish)| (finish, job));
        jobs
    }

    /// The outcome of a run that ended before anything happened.
    pub fn nothing(ending: Ending) -> Outcome {
        Outcome { ending, ..Outcome::default() }
    }
}

/// Progress of a run, for its caller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    pub now: Time,
    /// The time at which the run ends at the latest, if that is known.
    pub until: Option<Time>,
    pub flows_done: u64,
    pub flows: u64,
    pub packet_hops: u64,
    pub cpu_seconds: f64,
}

#[cfg(test)]
mod tests;
