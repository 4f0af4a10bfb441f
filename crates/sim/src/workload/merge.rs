//! All workloads of a run as one: merged by start, numbered, and with their dependencies.

use super::{FlowId, FlowSource, FlowSpec, Traffic};
use crate::units::Time;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Maximum number of flows of a run.
pub const MAX_FLOWS: FlowId = FlowId::MAX - 1;

/// A flow that arrives in the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub id: FlowId,
    pub spec: FlowSpec,
    /// Index into [`Traffic::sources`].
    pub source: u16,
    /// Its order among the flows of that source.
    pub order: u32,
}

/// Flows of all sources in the order of (start, source, order within the source), generated on request.
pub struct Merged {
    sources: Vec<Pending>,
    /// (start, source) of the next flow of every source that has one.
    heap: BinaryHeap<Reverse<(Time, u16)>>,
    next_id: FlowId,
    /// Job graphs are taken as a whole.
    of_run: bool,
    /// By (source, order): numbers of the flows that open connections.
    openers: FxHashMap<(u16, u32), FlowId>,
}

struct Pending {
    source: Box<dyn FlowSource>,
    /// The next flow, and its order.
    flow: FlowSpec,
    order: u32,
    /// Messages of its job graph, in a run.
    messages: Option<u32>,
}

/// What a run announces next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upcoming {
    Flow(Arrival),
    /// A job, whose messages are the flows from `first` on.
    Graph {
        source: u16,
        first: FlowId,
        start: Time,
    },
}

impl Upcoming {
    pub fn start(&self) -> Time {
        match self {
            Upcoming::Flow(arrival) => arrival.spec.start,
            Upcoming::Graph { start, .. } => *start,
        }
    }
}

impl Merged {
    /// Starts with the first flow; the sources of `traffic` are not changed.
    pub fn new(traffic: &Traffic) -> Merged {
        Merged::made(traffic, false)
    }

    /// The same for a run, which plays job graphs itself: for [`Merged::next_of_run`].
    pub fn of_run(traffic: &Traffic) -> Merged {
        Merged::made(traffic, true)
    }

    fn made(traffic: &Traffic, of_run: bool) -> Merged {
        let mut merged = Merged {
            of_run,
            sources: Vec::new(),
            heap: BinaryHeap::new(),
            next_id: 0,
            openers: FxHashMap::default(),
        };
        for (index, source) in traffic.sources.iter().enumerate() {
            let mut source = source.clone_box();
            let graph = source.graph().filter(|_| of_run);
            let messages = graph.as_ref().map(|graph| graph.messages());
            let first = graph.map(|graph| graph.flow).or_else(|| source.next());
            merged.sources.push(Pending { source, flow: first.unwrap_or_default(), order: 0, messages });
            if let Some(flow) = first {
                merged.heap.push(Reverse((flow.start, index as u16)));
            }
        }
        merged
    }

    /// The next flow or job graph.
    pub fn next_of_run(&mut self) -> Option<Upcoming> {
        debug_assert!(self.of_run);
        let &Reverse((start, source)) = self.heap.peek()?;
        let Some(messages) = self.sources[usize::from(source)].messages else {
            return self.next().map(Upcoming::Flow);
        };
        if messages > MAX_FLOWS - self.next_id {
            self.next_id = MAX_FLOWS;
            return None;
        }
        self.heap.pop();
        let first = self.next_id;
        self.next_id += messages;
        Some(Upcoming::Graph { source, first, start })
    }

    /// Whether there are more flows than can be numbered; those beyond the maximum are not generated.
    pub fn too_many(&self) -> bool {
        self.next_id == MAX_FLOWS && !self.heap.is_empty()
    }
}

impl Iterator for Merged {
    type Item = Arrival;

    /// The next flow. A flow with dependencies is returned at its own start, which may be after the flows for
    /// which it waits have ended: the caller must count those that end before.
    fn next(&mut self) -> Option<Arrival> {
        if self.next_id == MAX_FLOWS {
            return None;
        }
        let mut top = self.heap.peek_mut()?;
        let Reverse((start, source)) = *top;
        let pending = &mut self.sources[source as usize];
        let mut arrival = Arrival { id: self.next_id, spec: pending.flow, source, order: pending.order };
        if let Some(opener) = arrival.spec.connection {
            debug_assert!(
                opener <= arrival.order,
                "a connection is opened by the first flow that it carries"
            );
            arrival.spec.connection = Some(*self.openers.entry((source, opener)).or_insert(arrival.id));
        }
        match pending.source.next() {
            Some(flow) => {
                assert!(flow.start >= start, "a source must yield its flows in order of start");
                pending.flow = flow;
                pending.order += 1;
                *top = Reverse((flow.start, source));
            }
            None => {
                PeekMut::pop(top);
            }
        }
        self.next_id += 1;
        Some(arrival)
    }
}

/// Which flows wait for a flow, by source and order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependents {
    sources: Vec<Waiting>,
}

/// The flows that wait for order k are `later[first[k]..first[k + 1]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Waiting {
    first: Vec<u32>,
    later: Vec<u32>,
}

impl Dependents {
    pub fn new(traffic: &Traffic) -> Dependents {
        Dependents { sources: traffic.sources.iter().map(|s| Waiting::new(&s.dependencies())).collect() }
    }

    /// The same without job graphs, which a run plays itself.
    pub fn of_run(traffic: &Traffic) -> Dependents {
        let of_source = |source: &dyn FlowSource| match source.graph() {
            Some(_) => Waiting::default(),
            None => Waiting::new(&source.dependencies()),
        };
        Dependents { sources: traffic.sources.iter().map(|source| of_source(source.as_ref())).collect() }
    }

    /// Orders, within the same source, of the flows that wait for this one.
    pub fn of(&self, source: u16, order: u32) -> &[u32] {
        let Some(waiting) = self.sources.get(source as usize) else { return &[] };
        let bounds = (waiting.first.get(order as usize), waiting.first.get(order as usize + 1));
        match bounds {
            (Some(&from), Some(&to)) => &waiting.later[from as usize..to as usize],
            _ => &[],
        }
    }

    /// Whether no flow of any source waits for another.
    pub fn is_empty(&self) -> bool {
        self.sources.iter().all(|waiting| waiting.later.is_empty())
    }
}

impl Waiting {
    fn new(pairs: &[(u32, u32)]) -> Waiting {
        debug_assert!(pairs.is_sorted());
        let Some(&(last, _)) = pairs.last() else { return Waiting::default() };
        let mut first = vec![0; last as usize + 2];
        for &(earlier, _) in pairs {
            first[earlier as usize + 1] += 1;
        }
        for k in 1..first.len() {
            first[k] += first[k - 1];
        }
        Waiting { first, later: pairs.iter().map(|pair| pair.1).collect() }
    }
}

/// The job of each flow, and the flows that end a job. Jobs are numbered over all sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jobs {
    /// For each source, (order, job) of the flows that end a job.
    ends: Vec<Vec<(u32, u32)>>,
    /// Number of flows that must end for each job to end.
    left: Vec<u32>,
    /// Number of the first job of each source.
    first: Vec<u32>,
}

impl Jobs {
    pub fn new(traffic: &Traffic) -> Jobs {
        let mut jobs = Jobs::default();
        for source in &traffic.sources {
            let before = jobs.left.len() as u32;
            if let Some(graph) = source.graph() {
                jobs.left.resize(before as usize + graph.steps() as usize, graph.ranks());
                jobs.first.push(before);
                jobs.ends.push(Vec::new());
                continue;
            }
            let ends: Vec<_> = source.jobs().into_iter().map(|(order, job)| (order, before + job)).collect();
            for &(_, job) in &ends {
                if job as usize >= jobs.left.len() {
                    jobs.left.resize(job as usize + 1, 0);
                }
                jobs.left[job as usize] += 1;
            }
            jobs.first.push(before);
            jobs.ends.push(ends);
        }
        jobs
    }

    /// Number of jobs.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The source of a job, and its number within it.
    pub fn place(&self, job: u32) -> (u16, u32) {
        let source = self.first.partition_point(|&first| first <= job) - 1;
        (source as u16, job - self.first[source])
    }

    /// Number of a job of a source.
    pub fn number(&self, source: u16, job: u32) -> u32 {
        self.first[usize::from(source)] + job
    }

    /// The job of a flow. The flows of a job are contiguous, up to the last one that ends it.
    pub fn of(&self, source: u16, order: u32) -> Option<u32> {
        let ends = self.ends.get(source as usize)?;
        ends.get(ends.partition_point(|end| end.0 < order)).map(|end| end.1)
    }

    /// Records that a flow ended. Returns the job if this was its last flow.
    pub fn flow_ended(&mut self, source: u16, order: u32) -> Option<u32> {
        let ends = self.ends.get(source as usize)?;
        let job = ends[ends.binary_search_by_key(&order, |end| end.0).ok()?].1;
        let left = &mut self.left[job as usize];
        debug_assert!(*left > 0, "a flow ends once");
        *left -= 1;
        (*left == 0).then_some(job)
    }
}

/// Totals of the flows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrafficSize {
    pub flows: u64,
    pub bytes: u64,
    pub last_start: Time,
    /// The longest compute or think time before a flow that was drawn.
    pub longest_wait: Time,
    /// Flows that were drawn; the others are what their sources expect.
    pub drawn: u64,
    /// Whether all flows are counted; false: of a source that cannot estimate them no more than
    /// [`Traffic::MAX_COUNTED`] are, and these numbers are lower bounds.
    pub complete: bool,
    /// Some flow has no end ([`WITHOUT_END`](super::WITHOUT_END)), so that `bytes` is not a size.
    pub is_endless: bool,
}

impl TrafficSize {
    /// Counts a flow that was drawn.
    pub fn add(&mut self, flow: &FlowSpec) {
        self.flows += 1;
        self.drawn += 1;
        self.bytes = self.bytes.saturating_add(flow.size);
        self.is_endless |= flow.size >= super::WITHOUT_END.0;
        self.last_start = self.last_start.max(flow.start);
        self.longest_wait = self.longest_wait.max(flow.compute);
    }

    /// Adds what a source expects.
    fn expect(&mut self, rest: &TrafficSize) {
        self.flows = self.flows.saturating_add(rest.flows);
        self.bytes = self.bytes.saturating_add(rest.bytes);
        self.is_endless |= rest.is_endless;
        self.last_start = self.last_start.max(rest.last_start);
    }
}

impl Merged {
    /// Adds the flows that have not been generated to those counted in `size`. When `max_drawn` flows have
    /// been drawn in all, sources that can estimate what is left do so; of one that cannot, flows are drawn up to
    /// [`Traffic::MAX_COUNTED`].
    pub fn count_rest(self, size: TrafficSize, max_drawn: u64) -> TrafficSize {
        self.count_each(size, max_drawn).0
    }

    /// The same, and what of it is of each source.
    pub fn count_each(mut self, mut size: TrafficSize, max_drawn: u64) -> (TrafficSize, Vec<TrafficSize>) {
        let mut left: Vec<u16> = self.heap.drain().map(|Reverse((_, source))| source).collect();
        left.sort_unstable();
        size.complete = true;
        let mut each = vec![TrafficSize::default(); self.sources.len()];
        for source in left {
            let own = &mut each[usize::from(source)];
            let Pending { source, flow, messages, .. } = &mut self.sources[source as usize];
            let mut next = Some(*flow);
            if source.graph().is_some()
                && let Some(rest) = source.rest()
            {
                // Of a graph that a run plays no message is drawn: all are left.
                for size in [&mut size, own] {
                    if messages.is_none() {
                        size.add(flow);
                    }
                    size.expect(&rest);
                }
                continue;
            }
            while let Some(flow) = next {
                let rest =
                    if size.drawn >= max_drawn.min(Traffic::MAX_COUNTED) { source.rest() } else { None };
                if rest.is_none() && size.drawn >= Traffic::MAX_COUNTED {
                    size.complete = false;
                    break;
                }
                size.add(&flow);
                own.add(&flow);
                if let Some(rest) = rest {
                    size.expect(&rest);
                    own.expect(&rest);
                    break;
                }
                next = source.next();
            }
        }
        (size, each)
    }

    /// The sources that have another flow, with this flow, and what follows it.
    pub fn left(&self) -> Vec<(u16, FlowSpec, &dyn FlowSource)> {
        let mut sources: Vec<u16> = self.heap.iter().map(|Reverse((_, source))| *source).collect();
        sources.sort_unstable();
        let of = |source: u16| {
            let Pending { source: own, flow, .. } = &self.sources[usize::from(source)];
            (source, *flow, &**own)
        };
        sources.into_iter().map(of).collect()
    }
}

impl Traffic {
    /// Number of flows that are drawn at most to count them.
    pub const MAX_COUNTED: u64 = 50_000_000;

    /// Counts the flows and their bytes on copies of the sources. Of job graphs, whose numbers are known, none is
    /// drawn: the first would list what all messages wait for.
    pub fn size_up(&self) -> TrafficSize {
        Merged::of_run(self).count_rest(TrafficSize::default(), u64::MAX)
    }
}

#[cfg(test)]
mod tests;
