//! The longest of the shortest paths of a network over all ordered pairs of hosts: number of links, base RTT,
//! bandwidth-delay product. A pair counts with all of its paths, since a flow may take any of them.
//!
//! The base RTT of an ordered pair is twice the sum of the link delays plus, in one direction, the time to
//! send one packet's payload on every hop. Source: the HPCC authors' simulator, which uses the maximum over
//! all pairs for every flow (their papers write T = 13 us for 12.24 us), and of each pair the path along the
//! first next hops alone; the window is that time multiplied by the bottleneck's rate.
//!
//! Every pair counts, but pairs are not visited one by one. The targets of [`Routes`] are the switches with
//! hosts (and the hosts with several ports); of the hosts of a target, only distinct links count. For 64
//! targets at a time each node on a path has a list of distinct costs, each with a mask of the targets that
//! have it, which follows from the lists of its next hops; what is no longer than another path of the same
//! target, nor any faster, is left out. A regular network has a few costs per node, so that a look at a chunk
//! of 64 targets takes a few steps; where all costs differ it takes 64. Where all links between switches are
//! alike, so are all paths of a pair, and the first next hops will do.

use rustc_hash::FxHashMap;
use std::sync::Mutex;

use super::routes::TARGETS;
use super::{NodeId, Ports, Routes, Topology};
use crate::units::{Rate, Time};

/// Maxima over all ordered pairs of hosts; zero if no two hosts are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Longest {
    /// Number of links of a path.
    pub hops: u32,
    pub base_rtt: Time,
    /// Product of a pair's base RTT and its bottleneck, in bytes.
    pub product: u64,
}

/// Finds the longest paths for packets of this payload.
///
/// `whole_ns` is what the HPCC authors' simulator does: it follows the first next hops alone, and truncates
/// the time of each hop to a nanosecond; otherwise it is rounded up to a picosecond.
pub fn longest(topology: &Topology, routes: &Routes, payload: u64, whole_ns: bool) -> Longest {
    Search::new(topology, routes, payload, whole_ns).run()
}

/// What has been found for one network, which does not change: the search takes a second in one of thousands
/// of nodes.
#[derive(Debug, Default)]
pub struct KnownLongest(Mutex<Vec<((u64, bool), Longest)>>);

impl KnownLongest {
    /// As [`longest`], which is asked once for each payload.
    pub fn find(&self, topology: &Topology, routes: &Routes, payload: u64, whole_ns: bool) -> Longest {
        let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let asked = (payload, whole_ns);
        if let Some((_, found)) = known.iter().find(|(key, _)| *key == asked) {
            return *found;
        }
        let found = longest(topology, routes, payload, whole_ns);
        known.push((asked, found));
        found
    }
}

/// Time to send this number of bytes: rounded up to a picosecond, or down to a nanosecond.
pub(super) fn sending_time(rate: Rate, bytes: u64, whole_ns: bool) -> Time {
    match whole_ns {
        true => Time::from_ns((u128::from(bytes) * 8_000_000_000 / u128::from(rate.0)) as u64),
        false => rate.transmission_time(bytes),
    }
}

/// Times and rates of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Cost {
    hops: u32,
    delay: Time,
    sending: Time,
    bottleneck: Rate,
}

impl Cost {
    /// Of the empty path.
    const NOTHING: Cost =
        Cost { hops: 0, delay: Time::ZERO, sending: Time::ZERO, bottleneck: Rate(u64::MAX) };

    fn and(self, other: Cost) -> Cost {
        Cost {
            hops: self.hops + other.hops,
            delay: self.delay.saturating_add(other.delay),
            sending: self.sending.saturating_add(other.sending),
            bottleneck: self.bottleneck.min(other.bottleneck),
        }
    }

    fn base_rtt(self) -> Time {
        self.delay.saturating_add(self.delay).saturating_add(self.sending)
    }

    /// Whatever precedes and follows both, the other path makes no maximum larger.
    fn covers(self, other: Cost) -> bool {
        self.hops >= other.hops && self.base_rtt() >= other.base_rtt() && self.bottleneck >= other.bottleneck
    }
}

/// The distinct links of a target's hosts to its switch, each with whether several hosts have it; one empty
/// path for a host that is a target of its own.
type Ends = Vec<(Cost, bool)>;

struct Targets {
    /// By target: the switch of its hosts, or the host.
    root: Vec<NodeId>,
    /// By target: index of its ends in `ends`.
    kind: Vec<u32>,
    ends: Vec<Ends>,
}

/// What is known so far.
struct Maximum<'e> {
    ends: &'e [Ends],
    longest: Longest,
    /// The pair with the largest product.
    of_product: Cost,
}

impl Maximum<'_> {
    /// Takes the pairs of hosts at one switch with these ends.
    fn within(&mut self, kind: usize) {
        let ends: &[_] = &self.ends[kind];
        for (at, &(first, several)) in ends.iter().enumerate() {
            let others = ends.iter().enumerate().filter(|&(other, _)| other != at || several);
            others.for_each(|(_, &(last, _))| self.take(first.and(last)));
        }
    }

    /// Takes the pairs of hosts with these ends at two nodes with a path in between.
    fn between(&mut self, from: u32, path: Cost, to: u32) {
        for (first, _) in &self.ends[from as usize] {
            self.ends[to as usize].iter().for_each(|(last, _)| self.take(first.and(path).and(*last)));
        }
    }

    fn take(&mut self, cost: Cost) {
        let rtt = cost.base_rtt();
        self.longest.hops = self.longest.hops.max(cost.hops);
        self.longest.base_rtt = self.longest.base_rtt.max(rtt);
        // A product of two factors that are not larger is not larger: it need not be computed.
        if rtt > self.of_product.base_rtt() || cost.bottleneck > self.of_product.bottleneck {
            let product = cost.bottleneck.bytes_in(rtt).0;
            if product >= self.longest.product {
                (self.longest.product, self.of_product) = (product, cost);
            }
        }
    }
}

/// Of a node, for the targets of the column.
#[derive(Clone, Default)]
struct State {
    /// Targets whose paths are known, including those without a path.
    known: u64,
    /// Costs of the paths, each with its targets; distinct up to [`DISTINCT`].
    costs: Vec<(Cost, u64)>,
}

/// Length of a list of costs from which on equal ones are not looked for.
const DISTINCT: usize = 8;

impl State {
    fn add(&mut self, cost: Cost, targets: u64) {
        match self.costs.iter_mut().take(DISTINCT).find(|(known, _)| *known == cost) {
            Some((_, known)) => *known |= targets,
            None => self.costs.push((cost, targets)),
        }
    }

    /// Adds a further path to targets that may have others.
    fn add_another(&mut self, cost: Cost, mut targets: u64) {
        for (known, of) in &mut self.costs {
            if known.covers(cost) {
                targets &= !*of;
            } else if cost.covers(*known) {
                *of &= !targets;
            }
        }
        self.costs.retain(|&(_, of)| of != 0);
        if targets != 0 {
            self.add(cost, targets);
        }
    }
}

struct Search<'t> {
    topology: &'t Topology,
    routes: &'t Routes,
    ports: Ports,
    payload: u64,
    whole_ns: bool,
    sending: FxHashMap<Rate, Time>,
    /// By node.
    states: Vec<State>,
    /// Of the next hops only the first counts.
    first_only: bool,
    /// The chunks of the column that were met: for each place the ports that lead there, and the places with
    /// the same ones.
    chunks: FxHashMap<u32, Chunk<'t>>,
    /// Nodes with the targets to which their paths are wanted.
    waiting: Vec<(NodeId, u64)>,
    /// Nodes whose state is not empty.
    touched: Vec<NodeId>,
    /// Ports of a node, each with the targets to which it is a next hop, and whether there are others to
    /// them.
    parts: Vec<(u32, u64, bool)>,
    /// Number of lists of costs that were made.
    steps: u64,
}

type Chunk<'t> = Box<[(&'t [u32], u64); TARGETS as usize]>;

impl<'t> Search<'t> {
    fn new(topology: &'t Topology, routes: &'t Routes, payload: u64, whole_ns: bool) -> Search<'t> {
        Search {
            topology,
            routes,
            ports: topology.ports(),
            payload,
            whole_ns,
            sending: FxHashMap::default(),
            first_only: whole_ns || paths_are_alike(topology, routes),
            states: vec![State::default(); topology.nodes.len()],
            chunks: FxHashMap::default(),
            waiting: Vec::new(),
            touched: Vec::new(),
            parts: Vec::new(),
            steps: 0,
        }
    }

    fn run(&mut self) -> Longest {
        let targets = self.targets();
        let of_product = Cost { bottleneck: Rate(0), ..Cost::NOTHING };
        let mut maximum = Maximum { ends: &targets.ends, longest: Longest::default(), of_product };
        (0..targets.ends.len()).for_each(|kind| maximum.within(kind));
        for column in 0..targets.root.len().div_ceil(TARGETS as usize) {
            self.column(column, &targets, &mut maximum);
        }
        maximum.longest
    }

    /// The cost of the link at a port, and the node at its other end.
    fn step(&mut self, node: NodeId, port: u32) -> (Cost, NodeId) {
        let (link, next) = self.ports[node as usize][port as usize];
        let link = &self.topology.links[link as usize];
        let (payload, whole_ns) = (self.payload, self.whole_ns);
        let sending =
            *self.sending.entry(link.rate).or_insert_with(|| sending_time(link.rate, payload, whole_ns));
        (Cost { hops: 1, delay: link.delay, sending, bottleneck: link.rate }, next)
    }

    fn targets(&mut self) -> Targets {
        let (mut root, mut ends): (Vec<NodeId>, Vec<Ends>) = (Vec::new(), Vec::new());
        for host in 0..self.routes.hosts() as u32 {
            let node = self.routes.host_node(host);
            let (target, shared) = self.routes.target(host);
            let (end, at) = match *self.routes.access_ports(host) {
                [port] if shared => self.step(node, port),
                _ => (Cost::NOTHING, node),
            };
            // Targets are numbered in the order of their first hosts.
            if target as usize == root.len() {
                root.push(at);
                ends.push(Vec::new());
            }
            let ends = &mut ends[target as usize];
            match ends.iter_mut().find(|(known, _)| *known == end) {
                Some((_, several)) => *several = true,
                None => ends.push((end, false)),
            }
        }
        let mut known: FxHashMap<Ends, u32> = FxHashMap::default();
        let mut distinct = Vec::new();
        let kind = ends.into_iter().map(|ends| {
            *known.entry(ends).or_insert_with_key(|ends| {
                distinct.push(ends.clone());
                distinct.len() as u32 - 1
            })
        });
        Targets { root, kind: kind.collect(), ends: distinct }
    }

    /// Takes the paths from all targets to those of a column.
    fn column(&mut self, column: usize, targets: &Targets, maximum: &mut Maximum) {
        let first = column * TARGETS as usize;
        let roots = targets.root[first..].iter().take(TARGETS as usize);
        let kinds = &targets.kind[first..];
        let all = u64::MAX >> (TARGETS as usize - roots.len());
        self.chunks.clear();
        for node in self.touched.drain(..) {
            let state = &mut self.states[node as usize];
            state.known = 0;
            state.costs.clear();
        }
        let mut of_kind: FxHashMap<u32, u64> = FxHashMap::default();
        for (place, &root) in roots.enumerate() {
            self.states[root as usize].known = 1 << place;
            self.states[root as usize].costs.push((Cost::NOTHING, 1 << place));
            self.touched.push(root);
            *of_kind.entry(kinds[place]).or_default() |= 1 << place;
        }
        for (&from, &kind) in targets.root.iter().zip(&targets.kind) {
            self.resolve(column, from, all);
            // The path without a hop is that from the node to itself.
            let paths = self.states[from as usize].costs.iter().filter(|(cost, _)| cost.hops > 0);
            for &(cost, targets) in paths {
                let mut left = targets;
                while left != 0 {
                    let to = kinds[left.trailing_zeros() as usize];
                    maximum.between(kind, cost, to);
                    left &= !of_kind[&to];
                }
            }
        }
    }

    /// Finds the costs from a node to targets of the column. Every next hop is nearer to the target, so that
    /// no node waits for itself.
    fn resolve(&mut self, column: usize, node: NodeId, targets: u64) {
        self.waiting.push((node, targets));
        while let Some(&(node, wanted)) = self.waiting.last() {
            let missing = wanted & !self.states[node as usize].known;
            self.divide(column, node, missing);
            let waiting = self.waiting.len();
            for &(port, alike, _) in &self.parts {
                let (_, next) = self.ports[node as usize][port as usize];
                let unknown = alike & !self.states[next as usize].known;
                if unknown != 0 {
                    self.waiting.push((next, unknown));
                }
            }
            if self.waiting.len() == waiting {
                self.waiting.pop();
                self.join(node, missing);
            }
        }
    }

    /// Divides targets by the ports that lead to them; those without a path are left out.
    fn divide(&mut self, column: usize, node: NodeId, mut targets: u64) {
        let (routes, limit) = (self.routes, if self.first_only { 1 } else { usize::MAX });
        let chunk = self.chunks.entry(routes.chunk(node, column));
        let chunk = chunk.or_insert_with(|| ports_of(routes, node, column, limit));
        self.parts.clear();
        while targets != 0 {
            let (ports, alike) = chunk[targets.trailing_zeros() as usize];
            let several = ports.len() > 1;
            self.parts.extend(ports.iter().map(|&port| (port, alike & targets, several)));
            targets &= !alike;
        }
    }

    /// Sets the costs from a node to targets, whose costs from its next hops are known.
    fn join(&mut self, node: NodeId, targets: u64) {
        let mut state = std::mem::take(&mut self.states[node as usize]);
        for part in 0..self.parts.len() {
            let (port, alike, several) = self.parts[part];
            let (link, next) = self.step(node, port);
            for &(cost, targets) in &self.states[next as usize].costs {
                match targets & alike {
                    0 => {}
                    targets if several => state.add_another(link.and(cost), targets),
                    targets => state.add(link.and(cost), targets),
                }
            }
        }
        state.known |= targets;
        self.states[node as usize] = state;
        self.touched.push(node);
        self.steps += 1;
    }
}

/// Whether the paths of a pair cannot differ, as all links but those of hosts with one are alike.
fn paths_are_alike(topology: &Topology, routes: &Routes) -> bool {
    let mut has_end = vec![false; topology.nodes.len()];
    for host in 0..routes.hosts() as u32 {
        has_end[routes.host_node(host) as usize] = routes.access_ports(host).len() == 1;
    }
    let inner =
        topology.links.iter().filter(|link| ![link.a, link.b].iter().any(|&end| has_end[end as usize]));
    let mut kinds = inner.map(|link| (link.rate, link.delay));
    let first = kinds.next();
    kinds.all(|kind| Some(kind) == first)
}

/// The ports to each target of a column, at most `limit` of them.
fn ports_of(routes: &Routes, node: NodeId, column: usize, limit: usize) -> Chunk<'_> {
    let mut chunk: Chunk = Box::new([(&[], 0); TARGETS as usize]);
    let ports: [&[u32]; TARGETS as usize] = std::array::from_fn(|place| {
        let ports = routes.ports_to(node, column as u32 * TARGETS + place as u32);
        &ports[..ports.len().min(limit)]
    });
    // Few lists differ. Most have one port, which tells them apart without a look at the rest.
    let mut distinct: Vec<(Option<u32>, usize, u64)> = Vec::new();
    for (place, &own) in ports.iter().enumerate() {
        let first = own.first().copied();
        let alike = |&&mut (known, at, _): &&mut (Option<u32>, usize, u64)| {
            known == first && (ports[at].len() == 1 && own.len() == 1 || ports[at] == own)
        };
        match distinct.iter_mut().find(alike) {
            Some((_, _, mask)) => *mask |= 1 << place,
            None => distinct.push((first, place, 1 << place)),
        }
    }
    for (_, at, mask) in distinct {
        let mut left = mask;
        while left != 0 {
            chunk[left.trailing_zeros() as usize] = (ports[at], mask);
            left &= left - 1;
        }
    }
    chunk
}

#[cfg(test)]
mod tests;
