//! Which path the packet of each timeslot takes, so that the packets of one timeslot share links as little as can be.
//!
//! Between racks that are joined by the same switches a path is the number of one of them. The packets of a timeslot are
//! the edges of a bipartite graph from racks to racks; coloured so that no two edges of a rack have one colour, and with
//! the colours dealt out over the paths, a link carries no more packets of a timeslot than it must.
//!
//! ```text
//! colours = the most packets that any rack sends or receives, rounded up to a multiple of the paths
//! path    = colour mod paths
//! ```
//!
//! An edge takes a colour that is free at both its ends; where there is none, the chain of edges of two colours that
//! begins at its one end changes these colours over, which in a bipartite graph frees one of them at both.
//!
//! Source: Perry et al., "Fastpass", SIGCOMM 2014, §4 (path selection by edge colouring); Kőnig's theorem on bipartite
//! graphs.

use crate::topology::{HostId, NodeId, NodeKind, Routes, Topology};

const NONE: u32 = u32::MAX;

/// The racks of hosts, and how many paths lead from one to any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Racks {
    /// By host.
    rack: Vec<u32>,
    racks: u32,
    /// 0: there is one rack only.
    paths: u32,
}

impl Racks {
    /// Errors: paths are not chosen by one number, and where.
    pub fn of(topology: &Topology, routes: &Routes) -> Result<Racks, String> {
        let ports = topology.ports();
        let name = |node: NodeId| &topology.nodes[node as usize].name;
        let mut switches: Vec<NodeId> = Vec::new();
        let mut number = vec![NONE; topology.nodes.len()];
        let mut rack = Vec::new();
        // A host of each rack.
        let mut hosts: Vec<HostId> = Vec::new();
        for (host, node) in (0..).zip(topology.hosts()) {
            let [(_, switch)] = ports[node as usize][..] else {
                return Err(format!("{} has several links", name(node)));
            };
            if topology.nodes[switch as usize].kind == NodeKind::Host {
                return Err(format!("{} hangs on a host", name(node)));
            }
            if number[switch as usize] == NONE {
                number[switch as usize] = switches.len() as u32;
                switches.push(switch);
                hosts.push(host);
            }
            rack.push(number[switch as usize]);
        }
        let next = |node: NodeId, host: HostId| -> Vec<NodeId> {
            let ports = &ports[node as usize];
            routes.next_hops(node, host).iter().map(|&port| ports[port as usize].1).collect()
        };
        let mut same: Option<Vec<NodeId>> = None;
        for &from in &switches {
            for (&to, &host) in switches.iter().zip(&hosts).filter(|(to, _)| **to != from) {
                let over = next(from, host);
                if let Some(&node) = over.iter().find(|&&node| next(node, host) != [to]) {
                    return Err(format!("{} has no single link to {}", name(node), name(to)));
                }
                if *same.get_or_insert_with(|| over.clone()) != over {
                    return Err(format!(
                        "other switches join {} and {} than other racks",
                        name(from),
                        name(to)
                    ));
                }
            }
        }
        Ok(Racks { rack, racks: switches.len() as u32, paths: same.map_or(0, |over| over.len() as u32) })
    }
}

/// A packet of the timeslot between two racks.
#[derive(Debug, Clone, Copy)]
struct Edge {
    from: u32,
    to: u32,
    colour: u32,
}

/// Assigns paths; its working space is kept from one timeslot to the next.
#[derive(Debug)]
pub struct Paths {
    racks: Racks,
    colours: u32,
    edges: Vec<Edge>,
    /// By rack and colour: the edge that leaves, and the one that comes in.
    leaving: Vec<u32>,
    coming: Vec<u32>,
    degree: Vec<[u32; 2]>,
}

impl Paths {
    pub fn new(racks: Racks) -> Paths {
        Paths {
            racks,
            colours: 0,
            edges: Vec::new(),
            leaving: Vec::new(),
            coming: Vec::new(),
            degree: Vec::new(),
        }
    }

    /// The path of each packet of a timeslot, given as (source, destination); none within a rack.
    pub fn assign(&mut self, packets: impl Iterator<Item = (HostId, HostId)>, paths: &mut Vec<Option<u32>>) {
        paths.clear();
        self.edges.clear();
        for (source, destination) in packets {
            let [from, to] = [source, destination].map(|host| self.racks.rack[host as usize]);
            let crosses = from != to && self.racks.paths > 0;
            // For now, which edge it is.
            paths.push(crosses.then_some(self.edges.len() as u32));
            if crosses {
                self.edges.push(Edge { from, to, colour: NONE });
            }
        }
        self.colour();
        for path in paths.iter_mut().flatten() {
            *path = self.edges[*path as usize].colour % self.racks.paths;
        }
    }

    fn colour(&mut self) {
        let racks = self.racks.racks as usize;
        self.degree.clear();
        self.degree.resize(racks, [0; 2]);
        for edge in &self.edges {
            self.degree[edge.from as usize][0] += 1;
            self.degree[edge.to as usize][1] += 1;
        }
        let most = self.degree.iter().flatten().max().copied().unwrap_or(0);
        self.colours = most.next_multiple_of(self.racks.paths.max(1));
        for table in [&mut self.leaving, &mut self.coming] {
            table.clear();
            table.resize(racks * self.colours as usize, NONE);
        }
        for edge in 0..self.edges.len() as u32 {
            self.colour_edge(edge);
        }
    }

    fn place(&self, rack: u32, colour: u32) -> usize {
        (rack * self.colours + colour) as usize
    }

    fn colour_edge(&mut self, edge: u32) {
        let Edge { from, to, .. } = self.edges[edge as usize];
        let free_from = |colour: &u32| self.leaving[self.place(from, *colour)] == NONE;
        let free_to = |colour: &u32| self.coming[self.place(to, *colour)] == NONE;
        if let Some(colour) = (0..self.colours).find(|colour| free_from(colour) && free_to(colour)) {
            return self.paint(edge, colour);
        }
        // There are as many colours as edges at any rack, so each end has a free one.
        let (Some(a), Some(b)) = ((0..self.colours).find(free_from), (0..self.colours).find(free_to)) else {
            debug_assert!(false, "a rack has more edges than there are colours");
            return;
        };
        self.change_over(to, a, b);
        self.paint(edge, a);
    }

    fn paint(&mut self, edge: u32, colour: u32) {
        let Edge { from, to, .. } = self.edges[edge as usize];
        let (leaving, coming) = (self.place(from, colour), self.place(to, colour));
        self.edges[edge as usize].colour = colour;
        self.leaving[leaving] = edge;
        self.coming[coming] = edge;
    }

    /// Swaps the colours of the chain of edges of colours `a` and `b` that begins with the edge of colour `a` coming to
    /// `rack`.
    fn change_over(&mut self, rack: u32, a: u32, b: u32) {
        let mut chain = Vec::new();
        let mut edge = self.coming[self.place(rack, a)];
        // Edges of colour a are walked from where they come to, those of b the other way.
        let mut against = true;
        while edge != NONE {
            chain.push(edge);
            let Edge { from, to, .. } = self.edges[edge as usize];
            edge = match against {
                true => self.leaving[self.place(from, b)],
                false => self.coming[self.place(to, a)],
            };
            against = !against;
        }
        for &edge in &chain {
            let Edge { from, to, colour } = self.edges[edge as usize];
            let (leaving, coming) = (self.place(from, colour), self.place(to, colour));
            self.leaving[leaving] = NONE;
            self.coming[coming] = NONE;
        }
        for &edge in &chain {
            let other = if self.edges[edge as usize].colour == a { b } else { a };
            self.paint(edge, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::random::RandomStream;
    use crate::topology::NextHopOrder;
    use crate::topology::TopologyParameters;
    use crate::topology::fat_tree::FatTree;
    use crate::topology::leaf_spine::LeafSpine;
    use crate::topology::star::Star;

    fn racks(topology: &Topology) -> Result<Racks, String> {
        Racks::of(topology, &Routes::compute(topology, &|_| true, NextHopOrder::ByPort))
    }

    fn leaf_spine(leaves: u64, spines: u64, hosts_per_leaf: u64) -> Racks {
        let spec = LeafSpine { leaves, spines, hosts_per_leaf, extra_hosts: 1, ..LeafSpine::default() };
        racks(&spec.build().unwrap()).unwrap()
    }

    #[test]
    fn racks_and_paths_are_those_of_a_leaf_spine_network() {
        let found = leaf_spine(3, 4, 2);
        assert_eq!(found, Racks { rack: vec![0, 0, 1, 1, 2, 2, 0], racks: 3, paths: 4 });
        let star = racks(&Star::default().build().unwrap()).unwrap();
        assert_eq!((star.racks, star.paths), (1, 0));
    }

    #[test]
    fn a_network_whose_paths_have_two_choices_is_refused() {
        let error = racks(&FatTree::default().build().unwrap()).unwrap_err();
        assert!(error.contains("has no single link to"), "{error}");
    }

    #[test]
    fn a_timeslot_in_which_every_host_sends_uses_every_link_once() {
        // As many spines as hosts on a leaf: a permutation fits without sharing, whatever it is.
        let mut random = RandomStream::new(1, "paths");
        let (leaves, hosts) = (6, 7);
        let mut paths = Paths::new(leaf_spine(leaves, hosts, hosts));
        let all = (leaves * hosts) as u32;
        for _ in 0..300 {
            let mut to: Vec<u32> = (0..all).collect();
            crate::workload::hosts::shuffle(&mut to, &mut random);
            let sending = 1 + random.below(u64::from(all)) as usize;
            let packets: Vec<(u32, u32)> = (0..all).zip(to).take(sending).collect();
            let mut assigned = Vec::new();
            paths.assign(packets.iter().copied(), &mut assigned);
            let (mut up, mut down) = (vec![0; 6 * 7], vec![0; 6 * 7]);
            for (&(src, dst), path) in packets.iter().zip(&assigned) {
                let (from, to) = (src / 7, dst / 7);
                assert_eq!(path.is_some(), from != to);
                if let Some(path) = path {
                    up[(from * 7 + path) as usize] += 1;
                    down[(to * 7 + path) as usize] += 1;
                }
            }
            assert!(up.iter().chain(&down).all(|&count| count <= 1), "{up:?} {down:?}");
        }
    }

    #[test]
    fn with_fewer_paths_than_packets_links_share_them_evenly() {
        // Seven hosts of one rack send to another one over three paths: 3, 2 and 2.
        let mut paths = Paths::new(leaf_spine(2, 3, 7));
        let mut assigned = Vec::new();
        paths.assign((0..7).map(|host| (host, host + 7)), &mut assigned);
        let mut count = [0; 3];
        assigned.iter().flatten().for_each(|&path| count[path as usize] += 1);
        assert_eq!(count, [3, 2, 2]);
    }
}
