//! What load balancers know about the network: which switches have hosts, and where the ports of each lead.

use crate::balance::{Events, Fabric, Neighbour, Place, Side};
use crate::config::Config;
use crate::net::map::Map;
use crate::net::port::Line;
use crate::net::switch::leads_to;
use crate::topology::{LinkSpec, NodeKind, planes, ways_below};
use crate::units::Rate;
use std::sync::Arc;

/// What is known in each plane of the network ([`planes`]): hosts with links to several planes have a ToR in each.
pub struct Fabrics {
    /// By node; empty where no balancer asks.
    plane_of: Vec<u32>,
    planes: Vec<Arc<Fabric>>,
    ways_below: Vec<u32>,
}

impl Fabrics {
    pub fn of(config: &Config, map: &Map) -> Fabrics {
        let ways_below = ways_below(&config.topology);
        if !config.switch.balancer.facts().knows_fabric {
            return Fabrics { plane_of: Vec::new(), planes: Vec::from([Arc::default()]), ways_below };
        }
        let plane_of = planes(&config.topology, &config.topology.ports());
        let count = plane_of.iter().filter(|&&plane| plane != u32::MAX).max().map_or(0, |&last| last + 1);
        let planes = (0..count).map(|plane| Arc::new(within(config, map, &plane_of, plane))).collect();
        Fabrics { plane_of, planes, ways_below }
    }

    /// What a switch knows.
    pub fn at(&self, switch: u32) -> &Arc<Fabric> {
        let plane = self.plane_of.get(switch as usize).map_or(0, |&plane| plane as usize);
        &self.planes[plane]
    }
}

/// The switches with hosts in a plane, numbered in the order of the nodes. Of a host's links into the plane the first counts.
fn within(config: &Config, map: &Map, plane_of: &[u32], plane: u32) -> Fabric {
    let sides = |node: u32| {
        let node = node as usize;
        &map.sides[map.first_port[node] as usize..map.first_port[node + 1] as usize]
    };
    let nodes = 0..config.topology.nodes.len() as u32;
    let is_here = |node: u32| plane_of[node as usize] == plane;
    let tor = |host: u32| sides(host).iter().map(|side| side.peer_node).find(|&peer| is_here(peer));
    let hosts = config.topology.hosts();
    let mut node_of: Vec<u32> = hosts.iter().filter_map(|&host| tor(host)).collect();
    node_of.sort_unstable();
    node_of.dedup();
    let number = |tor: u32| node_of.binary_search(&tor).map_or(u32::MAX, |number| number as u32);
    let tor_of: Vec<u32> = hosts.iter().map(|&host| tor(host).map_or(u32::MAX, number)).collect();
    let mut host_on = vec![0; node_of.len()];
    for (host, &tor) in tor_of.iter().enumerate().rev().filter(|&(_, &tor)| tor != u32::MAX) {
        host_on[tor as usize] = host as u32;
    }
    let links = |node: u32| match is_here(node) {
        true => {
            let link = |line: &Line| LinkSpec { rate: line.rate, delay: line.delay };
            sides(node).iter().map(|side| (side.peer_node, link(&side.line))).collect()
        }
        false => Vec::new(),
    };
    let links: Vec<Vec<(u32, LinkSpec)>> = nodes.map(links).collect();
    let is_host = |node: u32| config.topology.nodes[node as usize].kind == NodeKind::Host;
    let switches = links.iter().enumerate().filter(|&(node, _)| !is_host(node as u32));
    let between = switches.flat_map(|(_, links)| links.iter().filter(|&&(to, _)| !is_host(to)));
    let mut between = between.map(|&(_, link)| link);
    let first = between.next();
    let alike = between.all(|link| Some(link) == first);
    Fabric { links, host_on, tor_of, node_of, alike }
}

/// Of one switch: its number among those with hosts, and where its ports lead.
pub fn around(config: &Config, fabrics: &Fabrics, map: &Map, node: u32) -> (Option<u32>, Vec<Neighbour>) {
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
    let tor = fabrics.at(node).node_of.binary_search(&node).ok().map(|number| number as u32);
    (tor, neighbours)
}

/// A switch as its balancer finds it, with its number among those with hosts and its neighbours.
pub fn place<'a>(
    config: &'a Config,
    node: u32,
    fabrics: &'a Fabrics,
    (tor, neighbours): (Option<u32>, &'a [Neighbour]),
) -> Place<'a> {
    let spec = &config.topology.nodes[node as usize];
    Place {
        seed: config.seed,
        node,
        name: &spec.name,
        tier: spec.tier,
        ways_below: fabrics.ways_below[node as usize],
        tor,
        neighbours,
        fabric: fabrics.at(node),
        largest_packet: config.largest_packet(),
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
    let fabrics = Fabrics::of(config, &map);
    for (node, _) in (0..).zip(&config.topology.nodes).filter(|(_, spec)| spec.kind == NodeKind::Switch) {
        let (tor, neighbours) = around(config, &fabrics, &map, node);
        visit(&Surroundings { place: place(config, node, &fabrics, (tor, &neighbours)), map: &map });
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
