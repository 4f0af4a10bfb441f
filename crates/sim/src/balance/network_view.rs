//! The network that a scenario asks for, as a balancer looks at it to say whether it can serve it.

use rustc_hash::FxHashMap;

use crate::topology::{NextHops, NodeId, NodeKind, Ports, Routes, Topology, planes};

/// A network as balancers see it.
pub struct NetworkView<'a> {
    topology: &'a Topology,
    routes: &'a Routes,
    ports: Ports,
    /// By node, which switches are connected through switches.
    planes: Vec<u32>,
    /// Of each switch with hosts, one of them.
    racks: Vec<(NodeId, u32)>,
    has_hosts: Vec<bool>,
}

impl NetworkView<'_> {
    pub fn of<'a>(topology: &'a Topology, routes: &'a Routes) -> NetworkView<'a> {
        let ports = topology.ports();
        let (mut racks, mut has_hosts) = (Vec::new(), vec![false; topology.nodes.len()]);
        for (id, &host) in topology.hosts().iter().enumerate() {
            for &(_, peer) in &ports[host as usize] {
                let is_switch = topology.nodes[peer as usize].kind == NodeKind::Switch;
                if is_switch && !std::mem::replace(&mut has_hosts[peer as usize], true) {
                    racks.push((peer, id as u32));
                }
            }
        }
        NetworkView { topology, routes, planes: planes(topology, &ports), ports, racks, has_hosts }
    }

    /// Number of switches with hosts.
    pub fn racks(&self) -> usize {
        self.racks.len()
    }

    pub fn tier(&self, node: NodeId) -> u8 {
        self.topology.nodes[node as usize].tier
    }

    pub fn name(&self, node: NodeId) -> &str {
        &self.topology.nodes[node as usize].name
    }

    pub fn switches(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.ports.len() as NodeId).filter(|&n| self.topology.nodes[n as usize].kind == NodeKind::Switch)
    }

    /// Of the switches with hosts, the one with the most links upward, and how many they are.
    pub fn max_uplinks(&self) -> Option<(usize, NodeId)> {
        let uplinks = |switch: NodeId| {
            let ports = self.ports[switch as usize].iter();
            ports.filter(|&&(_, peer)| self.tier(peer) > self.tier(switch)).count()
        };
        self.racks.iter().map(|&(leaf, _)| (uplinks(leaf), leaf)).max()
    }

    /// The switch with the largest number of ports, and that number.
    pub fn max_ports(&self) -> Option<(usize, NodeId)> {
        self.switches().map(|switch| (self.ports[switch as usize].len(), switch)).max()
    }

    /// A host with several links, and how many they are.
    pub fn host_with_several_links(&self) -> Option<(NodeId, usize)> {
        let links = self.topology.hosts().into_iter().map(|host| (host, self.ports[host as usize].len()));
        links.into_iter().find(|&(_, links)| links > 1)
    }

    /// Whether probes that go up from every rack, and never up again after down, tell every switch of its
    /// plane of it by all ports on shortest paths to it; else why not.
    pub fn reach_everywhere(&self) -> Result<(), String> {
        self.one_rack_a_plane()?;
        for &(tor, host) in &self.racks {
            let plane = self.planes[tor as usize];
            let others =
                self.switches().filter(|&switch| switch != tor && self.planes[switch as usize] == plane);
            for switch in others {
                for &port in self.routes.next_hops(switch, host) {
                    let next = self.ports[switch as usize][port as usize].1;
                    self.tells(next, switch, tor, host)?;
                }
            }
        }
        Ok(())
    }

    /// A host may be in several planes, but not on two racks of one: probes name one of them for it.
    fn one_rack_a_plane(&self) -> Result<(), String> {
        for host in self.topology.hosts() {
            let racks = self.ports[host as usize].iter().map(|&(_, peer)| peer);
            let racks: Vec<NodeId> = racks.filter(|&peer| self.planes[peer as usize] != u32::MAX).collect();
            for (at, &one) in racks.iter().enumerate() {
                let other = |&&other: &&NodeId| {
                    other != one && self.planes[other as usize] == self.planes[one as usize]
                };
                if let Some(&other) = racks[at..].iter().find(other) {
                    let (host, one, other) = (self.name(host), self.name(one), self.name(other));
                    return Err(format!(
                        "{host} has links to {one} and to {other}, which are connected by other switches; its links must \
                         lead to one switch, or into separate planes"
                    ));
                }
            }
        }
        Ok(())
    }

    /// `next`, the next hop from `switch` to a rack, tells it of the rack: it has heard of it from below, or
    /// is above.
    fn tells(&self, next: NodeId, switch: NodeId, tor: NodeId, host: u32) -> Result<(), String> {
        let (own, other) = (self.tier(switch), self.tier(next));
        if own == other {
            return Err(format!("{} and {} are in the same tier", self.name(switch), self.name(next)));
        }
        if next == tor {
            return match other < own {
                true => Ok(()),
                false => Err(format!("{} has hosts and is above {}", self.name(tor), self.name(switch))),
            };
        }
        if self.has_hosts[next as usize] {
            return Err(format!(
                "{} has hosts, and paths to other switches pass through it",
                self.name(next)
            ));
        }
        let onward = self.routes.next_hops(next, host);
        let falls = |&port: &u32| self.tier(self.ports[next as usize][port as usize].1) < other;
        if own < other || onward.iter().all(falls) {
            return Ok(());
        }
        Err(format!("the path from {} to {} goes down and up again", self.name(switch), self.name(tor)))
    }

    /// Some switch has several next hops to some rack.
    pub fn has_a_choice(&self) -> bool {
        self.hop_counts().any(|count| count > 1)
    }

    /// A switch that has several next hops down to a rack: parallel links, or several switches above the
    /// rack.
    pub fn choice_downward(&self) -> Option<NodeId> {
        let falls = |switch: NodeId, port: u32| {
            self.tier(self.ports[switch as usize][port as usize].1) < self.tier(switch)
        };
        let chooses = |switch: NodeId, host: u32| {
            let next = self.routes.next_hops(switch, host);
            next.len() > 1 && next.iter().all(|&port| falls(switch, port))
        };
        self.switches().find(|&switch| self.racks.iter().any(|&(_, host)| chooses(switch, host)))
    }

    /// A switch with hosts whose numbers, modulo the number of next hops to them, leave next hops out that
    /// others would take: the switch, how many they take, and how many there are.
    pub fn hops_left_out(&self) -> Option<(NodeId, usize, usize)> {
        let mut hosts_at: FxHashMap<NodeId, Vec<u32>> = FxHashMap::default();
        for (id, &host) in self.topology.hosts().iter().enumerate() {
            for &(_, peer) in &self.ports[host as usize] {
                hosts_at.entry(peer).or_default().push(id as u32);
            }
        }
        let count = self.racks.len();
        (0..count).find_map(|at| {
            let (rack, host) = self.racks[at];
            let others = [(at + 1) % count, (at + count / 2) % count].map(|other| self.racks[other].0);
            let hops = others.into_iter().filter(|&other| other != rack);
            let hops = hops.map(|other| self.routes.next_hops(other, host).len()).max()?;
            let hosts = hosts_at.get(&rack)?;
            let mut taken: Vec<usize> = hosts.iter().map(|&host| host as usize % hops.max(1)).collect();
            taken.sort_unstable();
            taken.dedup();
            (taken.len() < hops.min(hosts.len())).then_some((rack, taken.len(), hops))
        })
    }

    /// Next hops to a rack that the switch with the most of them has.
    pub fn max_hops(&self) -> u32 {
        self.hop_counts().max().unwrap_or(1)
    }

    /// Numbers of next hops of every switch to every rack.
    fn hop_counts(&self) -> impl Iterator<Item = u32> + '_ {
        let count =
            move |switch: NodeId, host: u32| match self.routes.hops_from(self.routes.row(switch), host) {
                NextHops::None => 0,
                NextHops::One(_) => 1,
                NextHops::Many(ports) => ports.len() as u32,
            };
        self.switches().flat_map(move |switch| self.racks.iter().map(move |&(_, host)| count(switch, host)))
    }
}
