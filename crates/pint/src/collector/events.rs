//! What a collector tells while it works: events as they happen, and the results of a flow when its record
//! ends.

use crate::query::FlowKey;
use crate::recorded::{Address, Flow};
use crate::sketch::kll::Interval;
use crate::value::Number;

/// Takes what the collector tells.
pub trait Sink {
    fn event(&mut self, event: Event);

    /// A flow's record has ended.
    fn ended(&mut self, report: FlowReport);

    /// Whether results of ended flows are wanted; computing them takes time.
    fn wants_reports(&self) -> bool {
        true
    }
}

/// Keeps everything, for tests and small inputs.
#[derive(Debug, Default)]
pub struct Collected {
    pub events: Vec<Event>,
    pub reports: Vec<FlowReport>,
}

impl Sink for Collected {
    fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    fn ended(&mut self, report: FlowReport) {
        self.reports.push(report);
    }
}

/// Something happened to a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Time of the digest that showed it.
    pub time_ns: u64,
    pub flow: Flow,
    /// Index of the query; None where no query is meant.
    pub query: Option<usize>,
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// All hops of the path are known.
    PathDecoded {
        /// The values of the hops, in their order.
        path: Vec<u64>,
        /// Digests of the query that it took.
        digests: u64,
    },
    /// Packets take another number of hops than before: several, one after the other.
    HopsChanged { from: u32, to: u32 },
    /// Digests contradict the known path: the flow goes another way.
    PathChanged,
    /// No path agrees with the digests: the route changed before it was known, or an id or a link is missing
    /// from what the collector knows.
    Inconsistent,
    /// A hop reported the packet in a loop.
    Loop { packet: u64, sink: Address },
}

/// Why a record ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its memory was needed for flows seen more lately.
    Evicted,
    /// Nothing was seen of it for the idle time.
    Idle,
    /// It takes another path, or its digests contradict each other; a new record began.
    Changed,
    /// The input ended.
    Finished,
}

impl Ending {
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Evicted => "evicted",
            Ending::Idle => "idle",
            Ending::Changed => "changed",
            Ending::Finished => "finished",
        }
    }
}

/// All that is known of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowReport {
    pub flow: Flow,
    /// Which parts of `flow` count.
    pub key: FlowKey,
    /// None while the record is open.
    pub ending: Option<Ending>,
    /// Hops of the packets in it; None where packets with any number of hops are.
    pub hops: Option<u32>,
    /// Records of this flow that ended before because it changed.
    pub epoch: u32,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Digests that served one of the key's queries.
    pub digests: u64,
    /// Digests that did not fit the record and are not in it.
    pub strays: u64,
    /// Digests of packets that the record had used, which are not in it a second time.
    pub repeated: u64,
    /// Digests that are in it and may be of the route after it, which they did not contradict; more than these
    /// in one of twenty changes.
    pub may_be_of_next: u64,
    /// Index of the query, and what it found.
    pub results: Vec<(usize, Findings)>,
}

impl FlowReport {
    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let of_results: usize = self.results.iter().map(|(_, findings)| findings.bytes()).sum();
        size_of::<FlowReport>() + self.results.capacity() * size_of::<(usize, Findings)>() + of_results
    }
}

impl Event {
    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let path = match &self.kind {
            EventKind::PathDecoded { path, .. } => size_of_val::<[u64]>(path),
            _ => 0,
        };
        size_of::<Event>() + path
    }
}

/// What a query found out about a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Findings {
    Path(PathFindings),
    /// One entry a hop, from the first.
    Quantiles(Vec<HopQuantiles>),
    /// One entry a hop, from the first.
    Frequent(Vec<HopFrequent>),
    /// Numbers of single packets.
    Packets(Summary),
    /// Only states that packets were examined; loops are reported as events.
    Loops {
        digests: u64,
    },
}

impl Findings {
    /// Bytes beyond its own size.
    fn bytes(&self) -> usize {
        match self {
            Findings::Path(path) => {
                path.hops.capacity() * size_of::<Option<u64>>()
                    + path.candidates.capacity() * size_of::<Option<u32>>()
            }
            Findings::Quantiles(hops) => {
                let values = |hop: &HopQuantiles| hop.values.capacity() * size_of::<Interval<Number>>();
                hops.capacity() * size_of::<HopQuantiles>() + hops.iter().map(values).sum::<usize>()
            }
            Findings::Frequent(hops) => {
                let values = |hop: &HopFrequent| hop.values.capacity() * size_of::<FrequentValue>();
                hops.capacity() * size_of::<HopFrequent>() + hops.iter().map(values).sum::<usize>()
            }
            Findings::Packets(_) | Findings::Loops { .. } => 0,
        }
    }
}

/// A path as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathFindings {
    /// The value of each hop, from the first; None while more than one is possible.
    pub hops: Vec<Option<u64>>,
    /// How many values each hop may have; None while nothing is known of it.
    pub candidates: Vec<Option<u32>>,
    /// Digests of the query.
    pub digests: u64,
    /// Digests of the query until all hops were known.
    pub decoded_after: Option<u64>,
    /// Digests of the query until every hop of the known path had been seen again. Before, the path may be
    /// put together from two routes, if the route changed before it was known.
    pub confirmed_after: Option<u64>,
    /// The digests contradict each other: there is no such path, also where each hop has one value left.
    pub contradicted: bool,
}

impl PathFindings {
    /// The path, if all hops are known and no digest contradicts them.
    pub fn path(&self) -> Option<Vec<u64>> {
        if self.hops.is_empty() || self.contradicted { None } else { self.hops.iter().copied().collect() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HopQuantiles {
    pub samples: u64,
    /// Whether all samples are kept, so that only sampling and rounding leave the value open.
    pub exact: bool,
    /// Rank error of the sketch with 99 % confidence, as a share; 0 if exact.
    pub rank_error: f64,
    /// In the order of the query's quantiles; empty without a sample. Bars of 95 %: sampling, sketch and the
    /// rounding of values together.
    pub values: Vec<Interval<Number>>,
    /// What the largest code stands for: a value that is this one may be any larger one.
    pub ceiling: Number,
    /// What the smallest code stands for, if it stands for smaller values too: a value that is this one may
    /// be 0.
    pub floor: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HopFrequent {
    pub samples: u64,
    /// In descending order of frequency.
    pub values: Vec<FrequentValue>,
    /// What the largest code stands for: a value that is this one may be any larger one.
    pub ceiling: Number,
    /// What the smallest code stands for, if it stands for smaller values too: a value that is this one may
    /// be 0.
    pub floor: Option<f64>,
}

/// A value that may make up the asked share of a hop's stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrequentValue {
    pub value: Number,
    /// Its share of the samples, at least and at most (the sketch's doubt).
    pub min: f64,
    pub max: f64,
    /// 95 % bars of its share of the whole stream: sampling and the sketch's doubt together.
    pub low: f64,
    pub high: f64,
}

/// A running summary of one number per packet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    pub packets: u64,
    pub mean: f64,
    pub smallest: Number,
    pub largest: Number,
    pub last: Number,
    /// Packets with the largest code, whose numbers may be larger: the mean and the largest are then too low.
    pub at_ceiling: u64,
    /// Packets whose number may be 0 instead of 1, as they have the smallest code of a logarithmic grid.
    pub at_floor: u64,
}

/// Whether a number is at an end of what its query's codes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    None,
    /// It may be any larger one.
    Ceiling,
    /// It may be 0.
    Floor,
}

impl Summary {
    pub(super) fn take(&mut self, x: Number, end: End) {
        self.at_ceiling += u64::from(end == End::Ceiling);
        self.at_floor += u64::from(end == End::Floor);
        if self.packets == 0 {
            (self.smallest, self.largest) = (x, x);
        }
        self.packets += 1;
        self.mean += (x.get() - self.mean) / self.packets as f64;
        if x < self.smallest {
            self.smallest = x;
        }
        if x > self.largest {
            self.largest = x;
        }
        self.last = x;
    }
}
