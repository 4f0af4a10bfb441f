//! What load balancers know about the network: which switches have hosts, and where the ports of each lead.

use crate::balance::{Events, Fabric, Neighbour, Place, Side};
use crate::config::Config;
use crate::net::map::Map;
use crate::net::switch::leads_to;
use crate::topology::{NodeKind, Topology};
use crate::units::Rate;
use std::sync::Arc;

/// The switches with hosts, in the order of the nodes; empty where no balancer asks for them.
pub fn of(config: &Config, map: &Map) -> Fabric {
    if !config.switch.balancer.facts().knows_fabric {
        return Fabric::default();
    }
    let ports = |node: usize| map.first_port[node] as usize..map.first_port[node + 1] as usize;
    let links =
        |node: usize| map.sides[ports(node)].iter().map(|side| (side.peer_node, side.line.delay)).collect();
    let links = (0..config.topology.nodes.len()).map(links).collect();
    Fabric { links, ..racks(&config.topology, &|node, port| map.side(node, port).peer_node) }
}

/// Numbers the switches with hosts; `peer` is the node that a port leads to. A host with several links counts to the first.
fn racks(topology: &Topology, peer: &dyn Fn(u32, u32) -> u32) -> Fabric {
    let hosts = topology.hosts();
    let mut number = vec![u32::MAX; topology.nodes.len()];
    hosts.iter().for_each(|&host| number[peer(host, 0) as usize] = 0);
    let mut count = 0;
    for number in number.iter_mut().filter(|number| **number == 0) {
        *number = count;
        count += 1;
    }
    let tor_of: Vec<u32> = hosts.iter().map(|&host| number[peer(host, 0) as usize]).collect();
    let mut host_on = vec![0; count as usize];
    (0..hosts.len()).rev().for_each(|host| host_on[tor_of[host] as usize] = host as u32);
    let node_of = (0..number.len() as u32).filter(|&node| number[node as usize] != u32::MAX).collect();
    Fabric { host_on, tor_of, node_of, links: Vec::new() }
}

/// Of one switch: its number among those with hosts, and where its ports lead.
pub fn around(config: &Config, fabric: &Fabric, map: &Map, node: u32) -> (Option<u32>, Vec<Neighbour>) {
    if !config.switch.balancer.facts().knows_fabric {
        return (None, Vec::new());
    }
    let nodes = &config.topology.nodes;
    let sides = map.first_port[node as usize]..map.first_port[node as usize + 1];
    let neighbours: Vec<Neighbour> = sides
        .map(|side| {
            let side = &map.sides[side as usize];
            let (here, there) = (&nodes[node as usize], &nodes[side.peer_node as usize]);
            Neighbour {
                node: side.peer_node,
                port: side.peer - map.first_port[side.peer_node as usize],
                side: match there.kind {
                    NodeKind::Host => Side::Host,
                    NodeKind::Switch if there.tier > here.tier => Side::Up,
                    NodeKind::Switch if there.tier < here.tier => Side::Down,
                    NodeKind::Switch => Side::Level,
                },
            }
        })
        .collect();
    let hosts = neighbours.iter().filter(|neighbour| neighbour.side == Side::Host);
    // A host that hangs on another switch first counts to that.
    let mut own = hosts.filter(|host| map.side(host.node, 0).peer_node == node);
    let tor =
        own.next().and_then(|host| map.routes.host_at(host.node)).map(|host| fabric.tor_of[host as usize]);
    (tor, neighbours)
}

/// A switch as its balancer finds it, with its number among those with hosts and its neighbours.
pub fn place<'a>(
    config: &'a Config,
    node: u32,
    fabric: &'a Arc<Fabric>,
    (tor, neighbours): (Option<u32>, &'a [Neighbour]),
) -> Place<'a> {
    let spec = &config.topology.nodes[node as usize];
    Place {
        seed: config.seed,
        node,
        name: &spec.name,
        tier: spec.tier,
        tor,
        neighbours,
        fabric,
        subflows: config.transports.iter().any(|transport| transport.facts().subflows.is_some()),
        murmur: config.rules.murmur_ecmp,
        only_data: config.rules.only_data_balanced,
        released: config.rules.released_balancers,
    }
}

/// A switch with what the control plane knows around it, for programs of real switches.
pub struct Surroundings<'a> {
    pub place: Place<'a>,
    map: &'a Map,
}

impl Surroundings<'_> {
    pub fn rate(&self, port: u32) -> Rate {
        self.map.side(self.place.node, port).line.rate
    }
    /// Whether a port is on a shortest path to a host.
    pub fn leads_to(&self, port: u32, host: u32) -> bool {
        leads_to(&self.map.routes, self.map.routes.row(self.place.node), host, port)
    }
    /// Whether this switch is on one of the neighbour's at a port.
    pub fn leads_here(&self, port: u32, host: u32) -> bool {
        let Neighbour { node, port, .. } = self.place.neighbours[port as usize];
        leads_to(&self.map.routes, self.map.routes.row(node), host, port)
    }
}

/// Visits the switches of a network in the order of its nodes. Neighbours and fabric are empty unless the balancer asks for them.
pub fn each_switch(config: &Config, visit: &mut dyn FnMut(&Surroundings)) {
    let map = super::map(config);
    let fabric = Arc::new(of(config, &map));
    for (node, _) in (0..).zip(&config.topology.nodes).filter(|(_, spec)| spec.kind == NodeKind::Switch) {
        let (tor, neighbours) = around(config, &fabric, &map, node);
        visit(&Surroundings { place: place(config, node, &fabric, (tor, &neighbours)), map: &map });
    }
}

/// A bit for each of the first 64 ports: the balancer need not be told of what leaves by it.
pub fn unwatched_ports(events: Events, neighbours: &[Neighbour]) -> u64 {
    if !events.has(Events::FABRIC_DEPARTURES) {
        return 0;
    }
    let hosts = neighbours.iter().take(64).enumerate().filter(|(_, n)| n.side == Side::Host);
    hosts.fold(0, |mask, (port, _)| mask | 1 << port)
}
