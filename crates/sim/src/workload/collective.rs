//! Collective operations of training jobs: ring all-reduce, tree all-reduce, all-to-all, with completion
//! times.
//!
//! n hosts have `bytes` each. In a *ring*, the bytes are divided into n chunks; in each of 2 (n - 1) steps
//! every host sends one chunk to the next host, once it has received the chunk of the step before (n - 1
//! steps add up, n - 1 distribute the sums). In a *tree* (binary, host 0 is the root) all bytes go up from
//! the leaves, each host waiting for its children, and then down. In an *all-to-all* every host sends one
//! chunk to every other: `at-once`, or in n - 1 pairwise steps, each after the host has sent and received in
//! the step before.
//!
//! The messages of one host to another use one connection, in order: if the transport keeps connections,
//! congestion state persists from one message to the next. A host that is late therefore delays its
//! neighbour, and no two chunks share its link.
//!
//! The operation can be repeated: a host continues, after `compute`, when it has its own result of the
//! previous one. There is no global barrier, because hosts have no information about each other. A job is one
//! operation; it ends when every host has its result.
//!
//! Source: ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009; tree: Thakur et
//! al., "Optimization of collective communication operations in MPICH", IJHPCA 2005 (reduce and broadcast).
//! Differs from the source: a tree does not divide its bytes into segments.

use super::WorkloadParameters;
use super::placement::Placement;
use super::spec::{MAX_DEPENDENT_FLOWS, Window, WorkloadContext, WorkloadError};
use super::{FlowSource, FlowSpec, JobShape, sizes};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Time};

/// In the order of [`Operation`].
const OPERATIONS: &[(&str, &str)] = &[
    ("ring-all-reduce", "2 (n - 1) steps of one chunk around a ring"),
    ("tree-all-reduce", "up a binary tree and down again"),
    ("all-to-all", "one chunk from every host to every other, all at once"),
    ("pairwise-all-to-all", "the same in n - 1 steps"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Ring,
    Tree,
    AtOnce,
    Pairwise,
}

impl Operation {
    const ALL: [Operation; 4] = [Operation::Ring, Operation::Tree, Operation::AtOnce, Operation::Pairwise];

    fn name(self) -> &'static str {
        OPERATIONS[self as usize].0
    }

    fn named(name: &str) -> Operation {
        Operation::ALL.into_iter().find(|operation| operation.name() == name).unwrap_or(Operation::Ring)
    }
}

/// Keys of a collective.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveSpec {
    operation: Operation,
    pub bytes: Bytes,
    pub placement: Placement,
    pub repeat: u64,
    pub compute: Time,
}

impl WorkloadParameters for CollectiveSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "collective",
        title: "ring or tree all-reduce, or all-to-all, with job completion times",
        source: "Ring: Patarasuk, Yuan, JPDC 2009; tree: Thakur, Rabenseifner, Gropp, IJHPCA 2005",
        validation: "Times computed by hand for rings and trees (tests/laws/jobs.rs).",
        ..SchemeDoc::NONE
    };
    const ENDS_ITSELF: bool = true;
    const FLOWS_WAIT: bool = true;

    fn read(p: &mut Parameters) -> CollectiveSpec {
        let operation = p.choice("operation", "ring-all-reduce", OPERATIONS, "Which operation.");
        CollectiveSpec {
            operation: Operation::named(operation),
            bytes: p.bytes("bytes", Bytes(10_000_000), "Data of every host."),
            placement: Placement::read(p),
            repeat: p.integer("repeat", 1, (1, 1_000_000), "Number of operations, one after the other.")
                as u64,
            compute: p.time("compute", Time::ZERO, "Computation time of a host between two operations."),
        }
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let hosts = self.placement.ranks(cx)?;
        let n = hosts.len() as u64;
        let min = if self.operation == Operation::Tree { 1 } else { n };
        if self.bytes.0 < min {
            let message = format!("{n} hosts need at least {min} bytes, one per chunk");
            return Err(WorkloadError::new("bytes", message));
        }
        if self.bytes.0 > sizes::MAX_BYTES {
            return Err(WorkloadError::new("bytes", format!("{} is above the limit of 1 TB", self.bytes)));
        }
        let flows_per_job = match self.operation {
            Operation::Ring => 2 * (n - 1) * n,
            Operation::Tree => 2 * (n - 1),
            Operation::AtOnce | Operation::Pairwise => (n - 1) * n,
        };
        let waits_per_flow = if self.operation == Operation::AtOnce { n } else { 2 };
        let size = u128::from(flows_per_job) * u128::from(self.repeat);
        let kept = if self.repeat > 1 { size * u128::from(waits_per_flow) } else { size };
        if kept > u128::from(MAX_DEPENDENT_FLOWS) || waits_per_flow > u64::from(u16::MAX) {
            let message = format!(
                "{size} flows with up to {waits_per_flow} dependencies each exceed the limit of \
                 {MAX_DEPENDENT_FLOWS} dependencies: use fewer hosts or repeats, or pairwise-all-to-all"
            );
            return Err(WorkloadError::new("repeat", message));
        }
        Ok(Box::new(Collective {
            operation: self.operation,
            hosts,
            bytes: self.bytes.0,
            compute: self.compute,
            flows_per_job: flows_per_job as u32,
            flows: size as u32,
            flow: FlowSpec { start: window.start, ..cx.flow() },
            order: 0,
            waits: Vec::new(),
        }))
    }
}

#[derive(Clone)]
struct Collective {
    operation: Operation,
    hosts: Vec<HostId>,
    bytes: u64,
    compute: Time,
    flows_per_job: u32,
    flows: u32,
    flow: FlowSpec,
    order: u32,
    /// Scratch: orders for which the next flow waits.
    waits: Vec<u32>,
}

/// A flow's position in its operation.
#[derive(Debug, Clone, Copy)]
struct Place {
    job: u32,
    /// In a tree: 0 up, 1 down.
    step: u32,
    /// Index of the sending host; in a tree, of the child at the lower end.
    host: u32,
}

impl Collective {
    fn n(&self) -> u32 {
        self.hosts.len() as u32
    }

    fn place(&self, order: u32) -> Place {
        let (job, within) = (order / self.flows_per_job, order % self.flows_per_job);
        let n = self.n();
        let (step, host) = match self.operation {
            // Up from the last child to the first, down from the first to the last.
            Operation::Tree if within < n - 1 => (0, n - 1 - within),
            Operation::Tree => (1, within - (n - 1) + 1),
            _ => (within / n, within % n),
        };
        Place { job, step, host }
    }

    /// Order of the flow of a step and host, as counted by `place`.
    fn order_of(&self, job: u32, step: u32, host: u32) -> u32 {
        let n = self.n();
        let within = match (self.operation, step) {
            (Operation::Tree, 0) => n - 1 - host,
            (Operation::Tree, _) => n - 1 + host - 1,
            _ => step * n + host,
        };
        job * self.flows_per_job + within
    }

    /// (src, dst, size) of the flow at this position.
    fn transfer(&self, at: Place) -> (u32, u32, u64) {
        let n = self.n();
        match self.operation {
            Operation::Ring => {
                // In step s host i sends chunk i - s; from step n - 1 on, when the sums are complete, chunk i
                // + 1 - (s - n + 1), which is the same modulo n.
                let chunk = (at.host + 2 * n - at.step) % n;
                (at.host, (at.host + 1) % n, self.chunk(chunk))
            }
            Operation::Tree if at.step == 0 => (at.host, (at.host - 1) / 2, self.bytes),
            Operation::Tree => ((at.host - 1) / 2, at.host, self.bytes),
            Operation::AtOnce | Operation::Pairwise => {
                let to = (at.host + at.step + 1) % n;
                (at.host, to, self.chunk(to))
            }
        }
    }

    /// Bytes of a chunk: the first ones get the remainder of the division.
    fn chunk(&self, chunk: u32) -> u64 {
        let n = u64::from(self.n());
        self.bytes / n + u64::from(u64::from(chunk) < self.bytes % n)
    }

    /// Whether a host begins its part of an operation with this flow. In a tree only leaves begin: the flows
    /// of an inner host depend on its children, which begin later.
    fn opens(&self, at: Place) -> bool {
        match self.operation {
            Operation::Ring | Operation::Pairwise => at.step == 0,
            Operation::Tree => at.step == 0 && 2 * at.host + 1 >= self.n(),
            Operation::AtOnce => true,
        }
    }

    /// The first flow between the same two hosts: there is a connection per neighbour and direction.
    fn opener(&self, at: Place) -> u32 {
        let step = if self.operation == Operation::Ring { 0 } else { at.step };
        self.order_of(0, step, at.host)
    }

    /// Appends the orders of the flows for which this one waits.
    fn waits_for(&self, at: Place, waits: &mut Vec<u32>) {
        let n = self.n();
        let from = |host: u32, distance: u32| (host + n - distance % n) % n;
        // A host begins the next operation after flows of the previous one.
        let opens = self.opens(at);
        if opens && at.job == 0 {
            return;
        }
        let job = at.job - u32::from(opens);
        match self.operation {
            Operation::Ring => {
                let step = if opens { 2 * (n - 1) - 1 } else { at.step - 1 };
                waits.push(self.order_of(job, step, from(at.host, 1)));
            }
            Operation::Tree if opens => waits.push(self.order_of(job, 1, at.host)),
            Operation::Tree if at.step == 0 => {
                let children = [2 * at.host + 1, 2 * at.host + 2];
                waits.extend(children.into_iter().filter(|&c| c < n).map(|c| self.order_of(job, 0, c)));
            }
            // The root has the sums when both its children have sent them; other hosts when they come down.
            Operation::Tree => match (at.host - 1) / 2 {
                0 => waits.extend([1, 2].into_iter().filter(|&c| c < n).map(|c| self.order_of(job, 0, c))),
                parent => waits.push(self.order_of(job, 1, parent)),
            },
            Operation::AtOnce => {
                waits.extend((0..n - 1).map(|step| self.order_of(job, step, from(at.host, step + 1))));
            }
            Operation::Pairwise => {
                let step = if opens { n - 2 } else { at.step - 1 };
                waits.push(self.order_of(job, step, at.host));
                waits.push(self.order_of(job, step, from(at.host, step + 1)));
            }
        }
    }

    /// Whether a host has its result when this flow ends.
    fn closes(&self, at: Place) -> bool {
        match self.operation {
            Operation::Ring => at.step == 2 * (self.n() - 1) - 1,
            Operation::Tree => at.step == 1,
            Operation::AtOnce => true,
            Operation::Pairwise => at.step == self.n() - 2,
        }
    }
}

impl FlowSource for Collective {
    fn next(&mut self) -> Option<FlowSpec> {
        if self.order == self.flows {
            return None;
        }
        let at = self.place(self.order);
        let mut waits = std::mem::take(&mut self.waits);
        waits.clear();
        self.waits_for(at, &mut waits);
        let waits_for = waits.len() as u16;
        self.waits = waits;
        self.order += 1;
        let (src, dst, size) = self.transfer(at);
        let compute = if at.job > 0 && self.opens(at) { self.compute } else { Time::ZERO };
        let (src, dst) = (self.hosts[src as usize], self.hosts[dst as usize]);
        let connection = Some(self.opener(at));
        Some(FlowSpec { src, dst, size, waits_for, compute, connection, ..self.flow })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }

    fn dependencies(&self) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        let mut waits = Vec::new();
        for order in 0..self.flows {
            waits.clear();
            self.waits_for(self.place(order), &mut waits);
            pairs.extend(waits.iter().map(|&earlier| (earlier, order)));
        }
        pairs.sort_unstable();
        pairs
    }

    fn jobs(&self) -> Vec<(u32, u32)> {
        let places = (0..self.flows).map(|order| (order, self.place(order)));
        places.filter(|(_, at)| self.closes(*at)).map(|(order, at)| (order, at.job)).collect()
    }

    fn job_shape(&self) -> JobShape {
        let ranks = self.n();
        // nccl-tests, doc/PERFORMANCE.md: what every link of a rank carries, over the data of the rank.
        let others = u64::from(ranks - 1);
        let bus = match self.operation {
            Operation::Ring | Operation::Tree => 2 * others,
            Operation::AtOnce | Operation::Pairwise => others,
        };
        JobShape {
            operation: self.operation.name(),
            ranks,
            bytes: Some(self.bytes),
            bus: Some((bus, u64::from(ranks))),
            alike: true,
        }
    }
}

#[cfg(test)]
mod tests;
