//! Collective operations of training jobs, with completion times: all-reduce, reduce-scatter, all-gather,
//! broadcast, reduce, gather, scatter, all-to-all and barrier, by one of the algorithms of
//! [`schedule`](super::schedule).
//!
//! n ranks have `bytes` each: the whole vector, as nccl-tests counts. Messages are at most a chunk, and of
//! one rank to another over one channel they use one connection, in order: if the transport keeps
//! connections, congestion state persists from one message to the next. A rank sends a message when all that
//! it is made of has arrived at it, whole.
//!
//! The operation can be repeated: a rank continues, after `compute`, when it has its own result of the
//! previous one. There is no global barrier, because ranks have no information about each other. A step is
//! one operation; it ends when every rank has its result.
//!
//! Source: the files of the algorithms; definitions of `bytes` and bandwidths: nccl-tests,
//! doc/PERFORMANCE.md.

use super::WorkloadParameters;
use super::graph::source::GraphSource;
use super::graph::{JobGraph, Repeated, ScaleUp, Seats, Work, seats};
use super::placement::Placement;
use super::schedule::hierarchical::HierarchicalParameters;
use super::schedule::pairwise::PairwiseParameters;
use super::schedule::{self, Algorithm, AlgorithmParameters, Asked, Kind, algorithms};
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{FlowSource, FlowSpec, JobShape, sizes};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::{Bytes, Time};

const USUAL_BYTES: Bytes = Bytes(10_000_000);

const OPERATIONS: &[(&str, &str)] = &[
    ("ring-all-reduce", "2 (n - 1) steps of one chunk around a ring"),
    ("tree-all-reduce", "up a binary tree and down again"),
    ("all-to-all", "one chunk from every host to every other, all at once"),
    ("pairwise-all-to-all", "the same in n - 1 steps"),
    ("all-reduce", "every rank gets the sum of all ranks' data"),
    ("reduce-scatter", "every rank gets one part of that sum"),
    ("all-gather", "every rank gets the parts of all ranks"),
    ("broadcast", "every rank gets the data of `root`"),
    ("reduce", "`root` gets the sum of all ranks' data"),
    ("gather", "`root` gets a part of every rank"),
    ("scatter", "every rank gets a part of `root`'s data"),
    ("barrier", "every rank waits until all have come"),
];

const CONNECTIONS: &[(&str, &str)] = &[
    ("kept", "messages of one rank to another use one connection, whose window, rate and path last"),
    (
        "fresh",
        "every message has a connection of its own, in its first state, on the path of the first message; a ring that was held up \
         does not recover, because its messages then share links",
    ),
];

/// What an operation is, and the algorithm that its name states.
fn named(operation: &str) -> (Kind, Option<&'static str>) {
    match operation {
        "ring-all-reduce" => (Kind::AllReduce, Some("ring")),
        "tree-all-reduce" => (Kind::AllReduce, Some("tree")),
        "pairwise-all-to-all" => (Kind::AllToAll, Some("pairwise")),
        name => (Kind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(Kind::AllReduce), None),
    }
}

/// Keys of a collective.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveSpec {
    operation: &'static str,
    kind: Kind,
    algorithm: Algorithm,
    pub bytes: Bytes,
    pub channels: u32,
    pub chunk: Option<Bytes>,
    pub root: u32,
    scale_up: Option<ScaleUp>,
    seats: Seats,
    pub placement: Placement,
    pub repeat: u64,
    pub compute: Time,
    pub messages: bool,
    fresh: bool,
    /// Warnings of keys that have no effect.
    idle: Vec<String>,
}

impl CollectiveSpec {
    /// The algorithm of an operation, as named or by default.
    fn algorithm(p: &mut Parameters, operation: &str, kind: Kind, stated: Option<&'static str>) -> Algorithm {
        let help = "How the operation is carried out; auto: ring for sums that all get, tree for a broadcast \
                    or reduce, linear for an all-to-all, gather or scatter, dissemination for a barrier.";
        let asked = p.choice_or_auto("algorithm", schedule::KINDS, help);
        if stated.is_some() {
            p.without_effect("algorithm", || format!("{operation} names its algorithm"));
        }
        let mut name = stated.or(asked).unwrap_or(kind.default_algorithm());
        if !algorithms(kind).contains(&name) {
            let can = algorithms(kind).join(", ");
            p.complain(
                "algorithm",
                format!("{name} cannot carry out {}: expected one of {can}", kind.name()),
            );
            name = kind.default_algorithm();
        }
        Algorithm::refuse_keys_of_others(name, p);
        let of_domains = HierarchicalParameters::read(p);
        if name == HierarchicalParameters::DOC.name {
            return Algorithm::Hierarchical(of_domains);
        }
        for key in ["domain", "in_rails"] {
            p.without_effect(key, || "only algorithm = \"hierarchical\" has domains".into());
        }
        if stated == Some(PairwiseParameters::DOC.name) {
            return Algorithm::Pairwise(PairwiseParameters { acknowledged: true });
        }
        Algorithm::read(name, p).unwrap_or(Algorithm::Ring(schedule::ring::RingParameters))
    }
}

impl WorkloadParameters for CollectiveSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "collective",
        title: "all-reduce, all-to-all and other collective operations, with job completion times",
        source: "Ring: Patarasuk, Yuan, JPDC 2009; trees, halving and doubling: Thakur, Rabenseifner, Gropp, \
                 IJHPCA 2005; double tree: Sanders, Speck, Traeff, 2009",
        validation: "Times by closed forms and bytes of every link (tests/laws/jobs.rs, \
                     tests/laws/collectives.rs).",
        ..SchemeDoc::NONE
    };
    const ENDS_ITSELF: bool = true;
    const FLOWS_WAIT: bool = true;

    fn read(p: &mut Parameters) -> CollectiveSpec {
        let operation = p.choice("operation", "ring-all-reduce", OPERATIONS, "Which operation.");
        let (kind, stated) = named(operation);
        let algorithm = CollectiveSpec::algorithm(p, operation, kind, stated);
        let bytes_help = "Data of every host: the whole vector, also where a host begins or ends with a part \
                          of it.";
        let bytes = p.bytes("bytes", USUAL_BYTES, bytes_help);
        let channels_help = "Connections between two neighbours, each of which carries an equal share.";
        let channels = p.integer("channels", 1, (1, 64), channels_help) as u32;
        let chunk_help = "The largest message; auto: a channel's share of a step (512 KiB in a double tree).";
        let chunk = p.bytes_or_auto("chunk", chunk_help);
        if chunk == Some(Bytes(0)) {
            p.complain("chunk", "must be greater than 0".into());
        }
        let root_help =
            "Rank whose data a broadcast or scatter distributes, or that a reduce or gather ends at.";
        let root = p.integer("root", 0, (0, 1_000_000), root_help) as u32;
        let seats = Seats {
            per_host: seats::ranks_per_host(p),
            channels,
            by_channel: !matches!(
                algorithm,
                Algorithm::Hierarchical(_) | Algorithm::Linear(_) | Algorithm::Pairwise(_)
            ),
        };
        let has_domains = matches!(algorithm, Algorithm::Hierarchical(_));
        let why_not =
            (!has_domains).then_some("only algorithm = \"hierarchical\" and ranks_per_host have domains");
        let scale_up = seats::scale_up(p, seats.per_host, why_not);
        let messages_help = "Whether every message is a row of flows.parquet. Steps are counted in any case.";
        let messages = p.flag("messages", true, messages_help);
        if !kind.has_root() {
            p.without_effect("root", || format!("{} has no root", kind.name()));
        }
        if channels == 1 && p.peek("channels").is_none() {
            p.without_effect("channels", String::new);
        }
        let connections_help = "What one message leaves to the next. fresh: of rdma.";
        let fresh = p.choice("connections", "kept", CONNECTIONS, connections_help) == "fresh";
        if !fresh && p.peek("connections").is_none() {
            p.without_effect("connections", String::new);
        }
        if messages && p.peek("messages").is_none() {
            p.without_effect("messages", String::new);
        }
        let placement = Placement::read(p, seats.per_host);
        let repeat =
            p.integer("repeat", 1, (1, 1_000_000), "Number of operations, one after the other.") as u64;
        let compute_help = "Computation time of a host between two operations.";
        let compute = p.time("compute", Time::ZERO, compute_help);
        let mut idle = Vec::new();
        let mut warn = |has: bool, key: &str, why: &str| {
            idle.extend(has.then(|| format!("{key} has no effect: {why}")));
        };
        let is_barrier = kind == Kind::Barrier;
        let no_data = "a barrier has no data, and sends a message of 8 bytes in every round";
        warn(is_barrier && bytes != USUAL_BYTES, "bytes", no_data);
        warn(is_barrier && channels != 1, "channels", no_data);
        warn(is_barrier && chunk.is_some(), "chunk", no_data);
        let between = "hosts compute between two operations, and repeat is 1";
        warn(repeat == 1 && compute > Time::ZERO, "compute", between);
        let whole = chunk.is_some_and(|chunk| chunk > bytes) && !is_barrier;
        warn(whole, "chunk", "no message is larger than the bytes of the operation");
        CollectiveSpec {
            operation,
            kind,
            algorithm,
            bytes,
            channels,
            chunk,
            root,
            scale_up,
            placement,
            seats,
            repeat,
            compute,
            messages,
            fresh,
            idle,
        }
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        self.idle.iter().for_each(|text| (cx.warn)(text.clone()));
        let hosts = self.placement.ranks(cx)?;
        self.placement.settle(cx, &hosts);
        let ranks = hosts.len() as u32;
        if self.bytes.0 == 0 && self.kind != Kind::Barrier {
            return Err(WorkloadError::new("bytes", "an operation needs at least one byte"));
        }
        if self.bytes.0 > sizes::MAX_BYTES {
            return Err(WorkloadError::new("bytes", format!("{} is above the limit of 1 TB", self.bytes)));
        }
        if self.root >= ranks {
            return Err(WorkloadError::new(
                "root",
                format!("unknown rank {}: found {ranks} ranks", self.root),
            ));
        }
        let asked = Asked {
            kind: self.kind,
            ranks,
            bytes: self.bytes.0,
            channels: self.channels,
            chunk: self.chunk.map(|chunk| chunk.0),
            root: self.root,
            rate: cx.rank_rate(&hosts, self.seats.per_host),
            among: None,
        };
        let mut algorithm = self.algorithm.clone();
        if let Algorithm::Hierarchical(own) = &mut algorithm {
            let domain = seats::domain(cx, own.domain, self.seats.per_host);
            seats::warn_of_nodes(cx, &hosts, domain, self.seats.per_host);
            own.domain = Some(domain);
            own.shape(ranks)?;
        }
        let phases = algorithm.phases(&asked)?;
        algorithm.why(&asked).into_iter().for_each(|text| (cx.warn)(text));
        let seats = Seats { channels: algorithm.channels(&asked), ..self.seats };
        let shape = JobShape {
            operation: self.operation,
            ranks,
            bytes: (self.kind != Kind::Barrier).then_some(self.bytes.0),
            bus: self.kind.bus(ranks),
            ..JobShape::default()
        };
        let repeated =
            Repeated::new(phases, ranks, (self.repeat as u32, self.compute), shape, (self.scale_up, seats));
        let repeated = repeated.map_err(|message| WorkloadError::new("repeat", message))?;
        Ok(Box::new(GraphSource::new(JobGraph {
            hosts,
            seats,
            flow: FlowSpec { start: window.start, ..cx.flow() },
            recorded: self.messages,
            fresh: self.fresh,
            work: Work::Repeated(repeated),
        })))
    }
}

#[cfg(test)]
mod tests;
