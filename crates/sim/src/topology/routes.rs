//! Shortest paths by hop count, all equal-cost next hops kept (ECMP). Hosts never transit.
//!
//! A breadth-first search runs from each destination over usable links. Hosts that hang on one switch by
//! one link share the search of that switch: they form one *target*. Each switch has a row with one entry
//! per target, the entry being a *group*: a list of ports, stored once however often it is used. With 10
//! 000 hosts in a fat tree that is a few megabytes and a fraction of a second.

use rustc_hash::FxHashMap;

use super::{HostId, LinkId, NodeId, NodeKind, Topology};

/// In which order a node lists its equal-cost next hops; it decides which flow a hash sends where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHopOrder {
    ByPort,
    /// By descending id of the next node, parallel links by port: the order of the HPCC authors' simulator.
    DescendingNodeId,
}

/// Next hops of every node to every host.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Host id of each node; [`NONE`] for switches.
    host_of: Vec<u32>,
    host_node: Vec<NodeId>,
    /// For each node, where its row of `table` begins: its own, or for a host with one way out that of its
    /// switch.
    row: Vec<usize>,
    /// Of a host with one way out: the group of that port. [`NONE`] where the row is the node's own.
    way_out: Vec<u32>,
    /// Target of each host as a destination.
    target: Vec<u32>,
    /// For each host that shares its target with others: the group of its switch's port to it.
    last_hop: Vec<u32>,
    /// Groups by row and target; [`OWN`] where the row is that of the target's switch.
    table: Vec<u32>,
    /// Ports that a host can send by, as a group.
    access: Vec<u32>,
    groups: Groups,
}

const NONE: u32 = u32::MAX;
const OWN: u32 = u32::MAX - 1;
/// The group without ports.
const EMPTY: u32 = 0;

impl Routes {
    /// Finds all shortest paths over the links for which `usable` holds. A switch that is down is one whose
    /// links are all unusable.
    pub fn compute(topology: &Topology, usable: &dyn Fn(LinkId) -> bool, order: NextHopOrder) -> Routes {
        Search::new(topology, usable, order).run()
    }

    /// Ports of `node` (indices into [`Topology::ports`] of it) that lead to the host on a shortest path;
    /// none where there is no path, or the node is the host.
    pub fn next_hops(&self, node: NodeId, dst: HostId) -> &[u32] {
        self.groups.get(self.group(node, dst))
    }

    #[inline]
    fn group(&self, node: NodeId, dst: HostId) -> u32 {
        let at = node as usize;
        let entry = self.entry(self.row[at], dst);
        match self.way_out[at] {
            NONE => entry,
            _ if entry == EMPTY || self.host_of[at] == dst => EMPTY,
            port => port,
        }
    }

    #[inline]
    fn entry(&self, row: usize, dst: HostId) -> u32 {
        match self.table[row + self.target[dst as usize] as usize] {
            OWN => self.last_hop[dst as usize],
            group => group,
        }
    }

    /// Usable ports of a host.
    pub fn access_ports(&self, host: HostId) -> &[u32] {
        self.groups.get(self.access[host as usize])
    }

    /// Node of a host.
    pub fn host_node(&self, host: HostId) -> NodeId {
        self.host_node[host as usize]
    }

    /// The host that a node is.
    pub fn host_at(&self, node: NodeId) -> Option<HostId> {
        Some(self.host_of[node as usize]).filter(|&host| host != NONE)
    }

    pub fn hosts(&self) -> usize {
        self.host_node.len()
    }

    /// The target that a host shares with others on its switch; hosts with a target of their own have none.
    pub(super) fn shared_target(&self, host: HostId) -> Option<u32> {
        let shared = self.last_hop[host as usize] != NONE;
        shared.then_some(self.target[host as usize])
    }
}

/// Lists of ports, each kept once.
#[derive(Debug, Clone)]
struct Groups {
    ports: Vec<u32>,
    /// Where each group begins; one more at the end.
    begin: Vec<u32>,
    known: FxHashMap<Box<[u32]>, u32>,
}

impl Groups {
    fn new() -> Groups {
        let known = FxHashMap::from_iter([(Box::default(), EMPTY)]);
        Groups { ports: Vec::new(), begin: vec![0, 0], known }
    }

    #[inline]
    fn get(&self, group: u32) -> &[u32] {
        let group = group as usize;
        &self.ports[self.begin[group] as usize..self.begin[group + 1] as usize]
    }

    fn intern(&mut self, ports: &[u32]) -> u32 {
        if let Some(&group) = self.known.get(ports) {
            return group;
        }
        let group = self.begin.len() as u32 - 1;
        self.ports.extend_from_slice(ports);
        self.begin.push(self.ports.len() as u32);
        self.known.insert(ports.into(), group);
        group
    }
}

/// A usable port, seen from its node.
#[derive(Clone, Copy)]
struct Step {
    port: u32,
    to: NodeId,
}

struct Search<'t> {
    topology: &'t Topology,
    /// Usable ports of each node in the wanted order.
    steps: Vec<Vec<Step>>,
    /// The switch of a host with exactly one usable port, if that leads to a switch.
    switch_of: Vec<Option<NodeId>>,
    /// The nodes that a search must visit: switches, and hosts with a row of their own.
    around: Vec<Vec<Step>>,
}

impl<'t> Search<'t> {
    fn new(topology: &'t Topology, usable: &dyn Fn(LinkId) -> bool, order: NextHopOrder) -> Search<'t> {
        let is_switch = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Switch;
        let mut steps: Vec<Vec<Step>> = vec![Vec::new(); topology.nodes.len()];
        let mut ports = vec![0u32; topology.nodes.len()];
        for (l, link) in topology.links.iter().enumerate() {
            let usable = usable(l as LinkId);
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let port = ports[from as usize];
                ports[from as usize] += 1;
                if usable {
                    steps[from as usize].push(Step { port, to });
                }
            }
        }
        if order == NextHopOrder::DescendingNodeId {
            steps.iter_mut().for_each(|s| s.sort_by_key(|step| (std::cmp::Reverse(step.to), step.port)));
        }
        let switch_of: Vec<Option<NodeId>> = (0..topology.nodes.len())
            .map(|n| match steps[n][..] {
                [only] if !is_switch(n as NodeId) && is_switch(only.to) => Some(only.to),
                _ => None,
            })
            .collect();
        let around = steps
            .iter()
            .map(|s| s.iter().copied().filter(|step| switch_of[step.to as usize].is_none()).collect())
            .collect();
        Search { topology, steps, switch_of, around }
    }

    fn run(self) -> Routes {
        let nodes = self.topology.nodes.len();
        let host_node = self.topology.hosts();
        let mut host_of = vec![NONE; nodes];
        host_node.iter().enumerate().for_each(|(host, &node)| host_of[node as usize] = host as u32);

        let (target, roots) = self.targets(&host_node);
        let (row, rows) = self.rows(roots.len());
        let mut groups = Groups::new();
        let way_out = (0..nodes)
            .map(|n| self.switch_of[n].map_or(NONE, |_| groups.intern(&[self.steps[n][0].port])))
            .collect();
        let access = host_node.iter().map(|&n| groups.intern(&ports_of(&self.steps[n as usize]))).collect();
        let last_hop = self.last_hops(&host_node, &mut groups);
        let mut table = vec![EMPTY; rows * roots.len()];
        let mut visit = Visit::new(nodes);
        for (index, &root) in roots.iter().enumerate() {
            self.fill(root, &mut visit, &mut groups, |node, group| table[row[node] + index] = group);
        }
        // Only needed while groups are made.
        groups.known = FxHashMap::default();
        Routes { host_of, host_node, row, way_out, target, last_hop, table, access, groups }
    }

    /// The target of each host, and the node from which each target is searched.
    fn targets(&self, host_node: &[NodeId]) -> (Vec<u32>, Vec<NodeId>) {
        let mut of_root = vec![NONE; self.topology.nodes.len()];
        let mut roots = Vec::new();
        let target = host_node
            .iter()
            .map(|&node| {
                let root = self.switch_of[node as usize].unwrap_or(node);
                if of_root[root as usize] == NONE {
                    of_root[root as usize] = roots.len() as u32;
                    roots.push(root);
                }
                of_root[root as usize]
            })
            .collect();
        (target, roots)
    }

    /// Where the row of each node begins, and how many rows there are.
    fn rows(&self, width: usize) -> (Vec<usize>, usize) {
        let mut row = vec![0; self.topology.nodes.len()];
        let mut rows = 0;
        for (node, begin) in row.iter_mut().enumerate() {
            if self.switch_of[node].is_none() {
                *begin = rows * width;
                rows += 1;
            }
        }
        for node in 0..row.len() {
            if let Some(switch) = self.switch_of[node] {
                row[node] = row[switch as usize];
            }
        }
        (row, rows)
    }

    /// The port by which a switch reaches each host that hangs on it by one link.
    fn last_hops(&self, host_node: &[NodeId], groups: &mut Groups) -> Vec<u32> {
        let mut to_host = vec![NONE; self.topology.nodes.len()];
        for (node, steps) in self.steps.iter().enumerate() {
            for step in steps {
                if self.switch_of[step.to as usize] == Some(node as NodeId) {
                    to_host[step.to as usize] = groups.intern(&[step.port]);
                }
            }
        }
        host_node.iter().map(|&node| to_host[node as usize]).collect()
    }

    /// Gives to `put` the group of every node that reaches `root`, and [`OWN`] for the root if it is a
    /// switch.
    fn fill(&self, root: NodeId, visit: &mut Visit, groups: &mut Groups, mut put: impl FnMut(usize, u32)) {
        let transits =
            |node: NodeId| node == root || self.topology.nodes[node as usize].kind == NodeKind::Switch;
        visit.start(root);
        let mut next = 0;
        while let Some(&node) = visit.order.get(next) {
            next += 1;
            if transits(node) {
                for step in &self.around[node as usize] {
                    visit.reach(step.to, visit.distance[node as usize] + 1);
                }
            }
        }
        if self.topology.nodes[root as usize].kind == NodeKind::Switch {
            put(root as usize, OWN);
        }
        let mut ports = Vec::new();
        for &node in &visit.order[1..] {
            let distance = visit.distance[node as usize];
            ports.clear();
            let closer = |step: &&Step| transits(step.to) && visit.distance[step.to as usize] + 1 == distance;
            ports.extend(self.around[node as usize].iter().filter(closer).map(|step| step.port));
            put(node as usize, groups.intern(&ports));
        }
    }
}

fn ports_of(steps: &[Step]) -> Vec<u32> {
    steps.iter().map(|step| step.port).collect()
}

/// Distances from one root, and the nodes in the order in which they were reached.
struct Visit {
    distance: Vec<u32>,
    order: Vec<NodeId>,
}

/// Leaves room to add one.
const FAR: u32 = u32::MAX - 1;

impl Visit {
    fn new(nodes: usize) -> Visit {
        Visit { distance: vec![FAR; nodes], order: Vec::with_capacity(nodes) }
    }
    fn start(&mut self, root: NodeId) {
        self.order.iter().for_each(|&node| self.distance[node as usize] = FAR);
        self.order.clear();
        self.reach(root, 0);
    }
    fn reach(&mut self, node: NodeId, distance: u32) {
        if self.distance[node as usize] == FAR {
            self.distance[node as usize] = distance;
            self.order.push(node);
        }
    }
}

#[cfg(test)]
mod tests;
