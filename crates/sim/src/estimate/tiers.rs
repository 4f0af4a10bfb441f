//! Pods: the switches below a tier that are connected without those above it; and how much more hosts below a
//! tier can send than the links up from there can carry.

use super::shares::Usable;
use crate::scenario::network::Network;
use crate::topology::{Link, NodeId, NodeKind, Topology};

/// Look-ups of routes after which the links that were not looked at count as used.
const LOOKS: usize = 20_000_000;

/// The pods of a tier: its switches and those below, in groups that the links among them connect.
pub struct Pods {
    /// By node, the number of its pod; of hosts and of switches above the tier [`NO_POD`].
    pub of: Vec<u32>,
    pub count: u32,
}

pub const NO_POD: u32 = u32::MAX;

impl Pods {
    /// The pods of every tier from `lowest` on that has a tier above it.
    pub fn of_tiers(topology: &Topology, lowest: u8) -> Vec<Pods> {
        let highest = topology.nodes.iter().map(|node| node.tier).max().unwrap_or(0);
        (lowest..highest).map(|tier| Pods::of(topology, tier)).collect()
    }

    fn of(topology: &Topology, tier: u8) -> Pods {
        let within = |node: NodeId| {
            let node = &topology.nodes[node as usize];
            node.kind == NodeKind::Switch && node.tier <= tier
        };
        let nodes = topology.nodes.len() as NodeId;
        let mut parent: Vec<NodeId> = (0..nodes).collect();
        for link in topology.links.iter().filter(|link| within(link.a) && within(link.b)) {
            let (a, b) = (root(&mut parent, link.a), root(&mut parent, link.b));
            parent[a.max(b) as usize] = a.min(b);
        }
        let (mut of, mut count) = (vec![NO_POD; nodes as usize], 0);
        for node in (0..nodes).filter(|&node| within(node)) {
            let first = root(&mut parent, node);
            if first == node {
                of[node as usize] = count;
                count += 1;
            } else {
                of[node as usize] = of[first as usize];
            }
        }
        Pods { of, count }
    }

    pub fn at(&self, node: NodeId) -> u32 {
        self.of[node as usize]
    }

    /// The pod from which a link leads up to another switch, and its switch there.
    pub fn below(&self, topology: &Topology, link: &Link) -> Option<(u32, NodeId)> {
        let is_host = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Host;
        if is_host(link.a) || is_host(link.b) {
            return None;
        }
        match (self.at(link.a), self.at(link.b)) {
            (NO_POD, pod) if pod != NO_POD => Some((pod, link.b)),
            (pod, NO_POD) if pod != NO_POD => Some((pod, link.a)),
            _ => None,
        }
    }
}

fn root(parent: &mut [NodeId], mut node: NodeId) -> NodeId {
    while parent[node as usize] != node {
        parent[node as usize] = parent[parent[node as usize] as usize];
        node = parent[node as usize];
    }
    node
}

/// Maximum ratio of the rate of the links to hosts to that of the links on from there: over the switches with
/// hosts, with their links to other switches, and over the pods of each higher tier, with their links up.
/// Links on no shortest path do not count, and of the others what the balancer can use. None without such links.
pub fn oversubscription(network: &Network, usable: &Usable) -> Option<f64> {
    let topology = &network.topology;
    let is_host = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Host;
    let used = used(network);
    let mut down = vec![0.0; topology.nodes.len()];
    let mut up = vec![0.0; topology.nodes.len()];
    for ((Link { a, b, rate, .. }, used), id) in topology.links.iter().zip(&used).zip(0..) {
        for (near, far, end) in [(*a, *b, 0), (*b, *a, 1)] {
            if is_host(near) {
                continue;
            }
            if is_host(far) {
                down[near as usize] += rate.0 as f64;
            } else if used[end] {
                up[near as usize] += usable.at(id, end);
            }
        }
    }
    let ratio = |down: f64, up: f64| (down > 0.0 && up > 0.0).then(|| down / up);
    let of_switches = down.iter().zip(&up).filter_map(|(&down, &up)| ratio(down, up));
    let of_pods = Pods::of_tiers(topology, 2).into_iter().flat_map(|pods| {
        let mut rates = vec![(0.0, 0.0); pods.count as usize];
        let of_pods = usable.of_pods(&pods);
        for (&pod, &down) in pods.of.iter().zip(&down).filter(|(pod, _)| **pod != NO_POD) {
            rates[pod as usize].0 += down;
        }
        for ((link, used), rate) in topology.links.iter().zip(&used).zip(of_pods) {
            let Some((pod, switch)) = pods.below(topology, link) else { continue };
            if used[usize::from(switch == link.b)] {
                rates[pod as usize].1 += rate;
            }
        }
        rates.into_iter().filter_map(|(down, up)| ratio(down, up)).collect::<Vec<_>>()
    });
    of_switches.chain(of_pods).max_by(f64::total_cmp)
}

/// By link, whether a shortest path from a switch to a host leads over it from its first end, and from its second. The links of
/// hosts, ways down, and links that were not looked at, count as such.
fn used(network: &Network) -> Vec<[bool; 2]> {
    let (topology, routes) = (&network.topology, &network.routes);
    let is_host = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Host;
    let tier = |node: NodeId| topology.nodes[node as usize].tier;
    let at_first = |&Link { a, b, .. }: &Link| {
        let of_host = is_host(a) || is_host(b);
        [of_host || tier(a) > tier(b), of_host || tier(b) > tier(a)]
    };
    let mut used: Vec<[bool; 2]> = topology.links.iter().map(at_first).collect();
    let ports = topology.ports();
    let destinations = network.destinations();
    let mut looks = 0;
    for node in topology.switches() {
        let ports = &ports[node as usize];
        let side = |link: u32| usize::from(topology.links[link as usize].a != node);
        let mut unseen = ports.iter().filter(|(link, _)| !used[*link as usize][side(*link)]).count();
        for &host in &destinations {
            if unseen == 0 || looks >= LOOKS {
                break;
            }
            looks += 1;
            for &port in routes.next_hops(node, host) {
                let link = ports[port as usize].0;
                let seen = std::mem::replace(&mut used[link as usize][side(link)], true);
                unseen -= usize::from(!seen);
            }
        }
        if looks >= LOOKS {
            ports.iter().for_each(|&(link, _)| used[link as usize][side(link)] = true);
        }
    }
    used
}
