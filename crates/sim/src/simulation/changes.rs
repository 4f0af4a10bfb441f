//! Links and switches that fail, recover or degrade at given times; routes follow after the detection delay.

use super::{NodeIndex, Simulation};
use crate::config::{Change, Compat, Failures};
use crate::net::partition::{Action, Partition, Rank};
use crate::topology::Topology;
use crate::topology::{NextHopOrder, Routes};

#[derive(Default)]
pub struct Changes {
    pub topology: Topology,
    failures: Failures,
    /// The two ports of each link.
    link_ports: Vec<[u32; 2]>,
    /// What has failed by itself, now and as the routes know it.
    now: Health,
    routed: Health,
}

/// Which links and switches are down.
#[derive(Default, Clone)]
struct Health {
    links_down: Vec<bool>,
    nodes_down: Vec<bool>,
}

impl Health {
    fn new(topology: &Topology) -> Health {
        let (links, nodes) = (topology.links.len(), topology.nodes.len());
        Health { links_down: vec![false; links], nodes_down: vec![false; nodes] }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::LinkDown(link) => self.links_down[link as usize] = true,
            Change::LinkUp(link) => self.links_down[link as usize] = false,
            Change::SwitchDown(node) => self.nodes_down[node as usize] = true,
            Change::SwitchUp(node) => self.nodes_down[node as usize] = false,
            Change::LinkRate(..) => {}
        }
    }

    fn carries(&self, topology: &Topology, link: usize) -> bool {
        let spec = &topology.links[link];
        let down = |node: u32| self.nodes_down[node as usize];
        !self.links_down[link] && !down(spec.a) && !down(spec.b)
    }
}

impl Changes {
    pub fn new(topology: &Topology, failures: &Failures, first_port: &[u32]) -> Changes {
        let mut link_ports = vec![[0; 2]; topology.links.len()];
        for (node, list) in topology.ports().iter().enumerate() {
            for (local, &(link, _)) in list.iter().enumerate() {
                let side = usize::from(topology.links[link as usize].a != node as u32);
                link_ports[link as usize][side] = first_port[node] + local as u32;
            }
        }
        Changes {
            topology: Topology::default(),
            failures: failures.clone(),
            link_ports,
            now: Health::new(topology),
            routed: Health::new(topology),
        }
    }

    pub fn schedule(&self, net: &mut Partition) {
        for (index, failure) in self.failures.events.iter().enumerate() {
            // With a detection delay of zero, routes follow right after their change.
            let place = 2 * index as u64;
            let index = index as u32;
            net.schedule(failure.at, 0, Rank::Change, place, Action::Change { index });
            if !matches!(failure.change, Change::LinkRate(..)) {
                let known = failure.at + self.failures.detection;
                net.schedule(known, 0, Rank::Change, place + 1, Action::Reroute { index });
            }
        }
    }
}

impl Simulation {
    /// The network changes now; nobody knows yet.
    #[cold]
    pub(super) fn change(&mut self, index: u32) {
        let change = self.changes.failures.events[index as usize].change;
        if let Change::LinkRate(link, rate) = change {
            for port in self.changes.link_ports[link as usize] {
                self.net.ports[port as usize].set_rate(rate);
            }
            return;
        }
        let before = self.changes.now.clone();
        self.changes.now.apply(change);
        for link in 0..self.changes.link_ports.len() {
            let was = before.carries(&self.changes.topology, link);
            let is = self.changes.now.carries(&self.changes.topology, link);
            if was != is {
                self.set_link(link, is);
            }
        }
    }

    /// A link begins or ceases to carry packets. What is on it, and what waits for it, is lost when it ceases.
    fn set_link(&mut self, link: usize, up: bool) {
        let ports = self.changes.link_ports[link];
        for port_id in ports {
            let port = &mut self.net.ports[port_id as usize];
            port.up = up;
            if !up {
                port.generation = port.generation.wrapping_add(1);
                self.net.release_pause(port_id);
                self.flush(port_id);
            }
        }
        if up {
            ports.into_iter().for_each(|port| self.kick(port));
        }
    }

    fn flush(&mut self, port: u32) {
        let node = self.net.ports[port as usize].node;
        match self.nodes[node as usize] {
            NodeIndex::Switch(s) => self.switches[s as usize].flush_port(&mut self.net, port),
            NodeIndex::Host(h) => self.hosts[h as usize].flush_port(&mut self.net, port),
        }
    }

    /// The change has been detected: routes follow it.
    #[cold]
    pub(super) fn reroute(&mut self, index: u32) {
        let changes = &mut self.changes;
        changes.routed.apply(changes.failures.events[index as usize].change);
        let (routed, topology) = (&changes.routed, &changes.topology);
        let order = match self.settings.compat {
            Compat::None => NextHopOrder::ByPort,
            Compat::HpccNs3 => NextHopOrder::DescendingNodeId,
        };
        self.routes = Routes::compute(topology, &|link| routed.carries(topology, link as usize), order);
        // Flows that found no way out may have one now.
        for port in 0..self.net.ports.len() as u32 {
            if matches!(self.nodes[self.net.ports[port as usize].node as usize], NodeIndex::Host(_)) {
                self.kick(port);
            }
        }
    }
}
