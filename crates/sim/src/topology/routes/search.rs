//! The search for shortest paths: breadth first, from 64 targets at once.
//!
//! Bit i of a mask represents the i-th of the 64 targets. A node has a mask of the targets that have reached
//! it, so that one pass over the links serves all of them (the multi-source search of Then et al., "The More
//! the Merrier: Efficient Multi-Source Graph Traversal", PVLDB 8(4), 2014).

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::super::{HostId, LinkId, NodeId, NodeKind, Topology};
use super::table::{Builder, EMPTY, Group, Limits, TARGETS};
use super::{End, NONE, NextHopOrder, Routes, Row};

/// A usable port, seen from its node.
#[derive(Clone, Copy)]
struct Step {
    port: u32,
    to: NodeId,
    /// Twice the index of its link, plus one at the link's second end.
    side: usize,
}

/// A usable port between rows.
struct RowEdge {
    port: u32,
    /// The row at its other end.
    to: u32,
    /// Index of the reverse edge.
    back: u32,
}

/// The edges between rows: those of a row are contiguous, in the requested order.
struct RowGraph {
    list: Vec<RowEdge>,
    /// By row: index of its first edge; one more at the end.
    begin: Vec<usize>,
}

impl RowGraph {
    fn of(&self, row: usize) -> Range<usize> {
        self.begin[row]..self.begin[row + 1]
    }
}

pub(super) struct Search {
    host_node: Vec<NodeId>,
    host_of: Vec<HostId>,
    /// Usable ports of each node in the requested order.
    steps: Vec<Vec<Step>>,
    /// The switch of a host with exactly one usable port, if that leads to a switch.
    switch_of: Vec<Option<NodeId>>,
    /// Row of each node; hosts that share one have [`NONE`] until [`Search::share_uplinks`].
    row: Vec<u32>,
    graph: RowGraph,
    /// By row: whether it forwards packets of others.
    transits: Vec<bool>,
    /// Rows that hosts share.
    uplink_groups: Vec<UplinkGroup>,
}

/// The hosts with this only port to a switch of one connected set of switches.
struct UplinkGroup {
    port: u32,
    /// Row of one switch of the set.
    switch: u32,
}

/// The sets of hosts that are reached alike.
struct Targets {
    /// By host.
    of: Vec<u32>,
    /// Row from which the search for each target starts: that of its switch, or of the host.
    roots: Vec<u32>,
    /// By row: the target whose hosts are at this switch, or [`NONE`].
    own: Vec<u32>,
}

impl Search {
    pub fn new(topology: &Topology, usable: &dyn Fn(LinkId) -> bool, order: NextHopOrder) -> Search {
        let nodes = topology.nodes.len();
        let is_switch = |node: usize| topology.nodes[node].kind == NodeKind::Switch;
        let steps = usable_steps(topology, usable, order);
        let switch_of: Vec<Option<NodeId>> = (0..nodes)
            .map(|node| match steps[node][..] {
                [only] if !is_switch(node) && is_switch(only.to as usize) => Some(only.to),
                _ => None,
            })
            .collect();
        let with_row: Vec<usize> = (0..nodes).filter(|&node| switch_of[node].is_none()).collect();
        let mut row = vec![NONE; nodes];
        with_row.iter().enumerate().for_each(|(r, &node)| row[node] = r as u32);
        let graph = row_graph(&with_row, &steps, &row, topology.links.len());
        let transits = with_row.iter().map(|&node| is_switch(node)).collect();
        let host_node = topology.hosts();
        let mut host_of = vec![NONE; nodes];
        host_node.iter().enumerate().for_each(|(host, &node)| host_of[node as usize] = host as u32);
        let mut search =
            Search { host_node, host_of, steps, switch_of, row, graph, transits, uplink_groups: Vec::new() };
        search.share_uplinks();
        search
    }

    pub fn run(self, limits: Limits) -> Routes {
        let targets = self.targets();
        let last_hop = self.last_hops();
        let mut builder =
            Builder::new(limits, self.transits.len() + self.uplink_groups.len(), targets.roots.len());
        self.fill(&targets, &mut builder);
        let access = self.host_node.iter().map(|&node| builder.entry(&self.ports(node))).collect();
        let largest = last_hop.iter().copied().filter(|&port| port != NONE).max();
        let (table, begins) = builder.finish(largest.unwrap_or(0));
        let row_at = |&row: &u32| Row {
            begin: begins.get(row as usize).copied().unwrap_or(0),
            own: targets.own.get(row as usize).copied().unwrap_or(NONE),
        };
        let rows = self.row.iter().map(row_at).collect();
        let (host_node, host_of) = (self.host_node, self.host_of);
        let ends = targets.of.into_iter().zip(last_hop).map(|(target, last_hop)| End { target, last_hop });
        Routes { ends: ends.collect(), table, rows, access, host_node, host_of }
    }

    /// Assigns to each host with one usable port the row shared by all equal hosts.
    fn share_uplinks(&mut self) {
        let set = self.connected_sets();
        let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for node in 0..self.row.len() {
            let Some(switch) = self.switch_of[node] else { continue };
            let (switch, port) = (self.row[switch as usize], self.steps[node][0].port);
            self.row[node] = *known.entry((set[switch as usize], port)).or_insert_with(|| {
                self.uplink_groups.push(UplinkGroup { port, switch });
                (self.transits.len() + self.uplink_groups.len() - 1) as u32
            });
        }
    }

    /// By row: the number of the set of switches that are connected through switches.
    fn connected_sets(&self) -> Vec<u32> {
        let mut set = vec![NONE; self.transits.len()];
        let mut waiting = Vec::new();
        for first in 0..set.len() {
            waiting.push(first as u32);
            while let Some(row) = waiting.pop() {
                let at = row as usize;
                if self.transits[at] && set[at] == NONE {
                    set[at] = first as u32;
                    waiting.extend(self.graph.list[self.graph.of(at)].iter().map(|way| way.to));
                }
            }
        }
        set
    }

    fn targets(&self) -> Targets {
        let mut of_row = vec![NONE; self.transits.len()];
        let mut own = of_row.clone();
        let mut roots = Vec::new();
        let of = self.host_node.iter().map(|&node| {
            let switch = self.switch_of[node as usize];
            let root = self.row[switch.unwrap_or(node) as usize];
            let target = &mut of_row[root as usize];
            if *target == NONE {
                *target = roots.len() as u32;
                roots.push(root);
            }
            if switch.is_some() {
                own[root as usize] = *target;
            }
            *target
        });
        Targets { of: of.collect(), roots, own }
    }

    /// The port of a switch to each host with a single link to it.
    fn last_hops(&self) -> Vec<u32> {
        let mut to_host = vec![NONE; self.row.len()];
        for (node, steps) in self.steps.iter().enumerate() {
            for step in steps {
                if self.switch_of[step.to as usize] == Some(node as NodeId) {
                    to_host[step.to as usize] = step.port;
                }
            }
        }
        self.host_node.iter().map(|&node| to_host[node as usize]).collect()
    }

    fn ports(&self, node: NodeId) -> Vec<u32> {
        self.steps[node as usize].iter().map(|step| step.port).collect()
    }

    /// Searches from all targets, and passes the entries of all rows to the builder.
    fn fill(&self, targets: &Targets, builder: &mut Builder) {
        let own_rows = self.transits.len();
        let mut sweep = Sweep::new(own_rows, self.graph.list.len());
        let mut groups: Vec<Group> = Vec::new();
        for (column, roots) in targets.roots.chunks(TARGETS as usize).enumerate() {
            sweep.run(self, roots);
            let asked = u64::MAX >> (TARGETS as usize - roots.len());
            for row in 0..own_rows {
                groups.clear();
                sweep.part(row, &self.graph, builder, &mut groups);
                add(&mut groups, EMPTY, asked & !sweep.seen[row]);
                builder.put(row, column, &mut groups);
            }
            for (way_out, row) in self.uplink_groups.iter().zip(own_rows..) {
                groups.clear();
                let reached = sweep.seen[way_out.switch as usize];
                add(&mut groups, builder.entry(&[way_out.port]), asked & reached);
                add(&mut groups, EMPTY, asked & !reached);
                builder.put(row, column, &mut groups);
            }
            builder.end_column();
        }
    }
}

/// Usable ports of each node in the requested order.
fn usable_steps(topology: &Topology, usable: &dyn Fn(LinkId) -> bool, order: NextHopOrder) -> Vec<Vec<Step>> {
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); topology.nodes.len()];
    let mut ports = vec![0u32; topology.nodes.len()];
    for (l, link) in topology.links.iter().enumerate() {
        let usable = usable(l as LinkId);
        for (end, (from, to)) in [(link.a, link.b), (link.b, link.a)].into_iter().enumerate() {
            let port = ports[from as usize];
            ports[from as usize] += 1;
            if usable {
                steps[from as usize].push(Step { port, to, side: 2 * l + end });
            }
        }
    }
    if order == NextHopOrder::DescendingNodeId {
        steps.iter_mut().for_each(|s| s.sort_by_key(|step| (std::cmp::Reverse(step.to), step.port)));
    }
    steps
}

/// The edges between nodes that have rows; `row`: the row of each node.
fn row_graph(with_row: &[usize], steps: &[Vec<Step>], row: &[u32], links: usize) -> RowGraph {
    let mut graph = RowGraph { list: Vec::new(), begin: vec![0] };
    let mut at_side = vec![NONE; 2 * links];
    for &node in with_row {
        for step in steps[node].iter().filter(|step| row[step.to as usize] != NONE) {
            at_side[step.side] = graph.list.len() as u32;
            // The reverse edge is set when all sides are known.
            graph.list.push(RowEdge {
                port: step.port,
                to: row[step.to as usize],
                back: step.side as u32 ^ 1,
            });
        }
        graph.begin.push(graph.list.len());
    }
    graph.list.iter_mut().for_each(|way| way.back = at_side[way.back as usize]);
    graph
}

/// Adds a group, if it has targets.
fn add(groups: &mut Vec<Group>, entry: u32, targets: u64) {
    if targets != 0 {
        groups.push(Group { entry, targets });
    }
}

/// State of the search from up to 64 targets.
struct Sweep {
    /// By row: targets that have reached it, including its own.
    seen: Vec<u64>,
    /// By row: targets that reached it in the last step.
    front: Vec<u64>,
    /// By row: targets that reach it in this step.
    next: Vec<u64>,
    /// Rows with a front.
    active: Vec<u32>,
    /// Rows that this step reaches.
    reached: Vec<u32>,
    /// By edge: the targets to which it is on a shortest path.
    leads_to: Vec<u64>,
    /// Scratch: ports of a group.
    ports: Vec<u32>,
}

impl Sweep {
    fn new(rows: usize, graph: usize) -> Sweep {
        Sweep {
            seen: vec![0; rows],
            front: vec![0; rows],
            next: vec![0; rows],
            active: Vec::new(),
            reached: Vec::new(),
            leads_to: vec![0; graph],
            ports: Vec::new(),
        }
    }

    /// Finds the targets of every edge.
    fn run(&mut self, search: &Search, roots: &[u32]) {
        self.seen.fill(0);
        self.front.fill(0);
        self.leads_to.fill(0);
        self.active.clear();
        for (bit, &root) in roots.iter().enumerate() {
            self.seen[root as usize] = 1 << bit;
            self.front[root as usize] = 1 << bit;
            self.active.push(root);
        }
        while !self.active.is_empty() {
            self.spread(&search.graph);
            self.advance(&search.transits);
        }
    }

    /// Moves the fronts one step farther from the targets, to rows that they had not reached.
    fn spread(&mut self, graph: &RowGraph) {
        for &row in &self.active {
            let front = self.front[row as usize];
            for way in &graph.list[graph.of(row as usize)] {
                let new = front & !self.seen[way.to as usize];
                if new != 0 {
                    let next = &mut self.next[way.to as usize];
                    if *next == 0 {
                        self.reached.push(way.to);
                    }
                    *next |= new;
                    self.leads_to[way.back as usize] |= new;
                }
            }
        }
    }

    /// The rows reached become the new front; hosts do not forward.
    fn advance(&mut self, transits: &[bool]) {
        self.active.iter().for_each(|&row| self.front[row as usize] = 0);
        self.active.clear();
        for row in self.reached.drain(..) {
            let at = row as usize;
            let new = std::mem::take(&mut self.next[at]);
            self.seen[at] |= new;
            if transits[at] {
                self.front[at] = new;
                self.active.push(row);
            }
        }
    }

    /// Divides the targets that reach a row into groups with the same next hops.
    fn part(&mut self, row: usize, graph: &RowGraph, builder: &mut Builder, groups: &mut Vec<Group>) {
        let leads_to = &self.leads_to[graph.of(row)];
        let graph = &graph.list[graph.of(row)];
        let mut left = leads_to.iter().fold(0, |all, targets| all | targets);
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            let mut alike = left;
            self.ports.clear();
            for (way, &targets) in graph.iter().zip(leads_to) {
                if targets & lowest != 0 {
                    alike &= targets;
                    self.ports.push(way.port);
                } else {
                    alike &= !targets;
                }
            }
            left &= !alike;
            groups.push(Group { entry: builder.entry(&self.ports), targets: alike });
        }
    }
}
