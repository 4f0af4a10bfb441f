//! The network that a scenario asks for, as a balancer looks at it to say whether it can serve it.

use crate::topology::{NextHops, NodeId, NodeKind, Ports, Routes, Topology};

/// A network as balancers see it.
pub struct NetworkView<'a> {
    topology: &'a Topology,
    routes: &'a Routes,
    ports: Ports,
    /// Of each switch with hosts, one of them.
    racks: Vec<(NodeId, u32)>,
    has_hosts: Vec<bool>,
}

impl NetworkView<'_> {
    pub fn of<'a>(topology: &'a Topology, routes: &'a Routes) -> NetworkView<'a> {
        let ports = topology.ports();
        let (mut racks, mut has_hosts) = (Vec::new(), vec![false; topology.nodes.len()]);
        for (id, &host) in topology.hosts().iter().enumerate() {
            let Some(&(_, tor)) = ports[host as usize].first() else { continue };
            if !std::mem::replace(&mut has_hosts[tor as usize], true) {
                racks.push((tor, id as u32));
            }
        }
        NetworkView { topology, routes, ports, racks, has_hosts }
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

    /// Whether probes that go up from every rack, and never up again after down, tell every switch of every rack by all ports on
    /// shortest paths to it; else why not.
    pub fn reach_everywhere(&self) -> Result<(), String> {
        for &(tor, host) in &self.racks {
            for switch in self.switches().filter(|&switch| switch != tor) {
                for &port in self.routes.next_hops(switch, host) {
                    let next = self.ports[switch as usize][port as usize].1;
                    self.tells(next, switch, tor, host)?;
                }
            }
        }
        Ok(())
    }

    /// `next`, the next hop from `switch` to a rack, tells it of the rack: it has heard of it from below, or is above.
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
