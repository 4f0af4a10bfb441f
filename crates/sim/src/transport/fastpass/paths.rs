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
                return Err(format!("{} is connected to a host", name(node)));
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
                        "{} and {} are connected by other switches than other racks",
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
        let max_degree = self.degree.iter().flatten().max().copied().unwrap_or(0);
        self.colours = max_degree.next_multiple_of(self.racks.paths.max(1));
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
mod tests;
