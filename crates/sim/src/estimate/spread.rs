//! What goes to a switch, spread over all shortest paths to it.

use super::offered::Amount;
use crate::scenario::network::Network;
use crate::topology::{HostId, NodeId, Ports};

/// Spreads what goes to a switch, and to a host there, over all shortest paths: `onto` each link in its two
/// directions. `evenly`: next hops get equal shares; else what has several next hops is not followed further.
pub fn spread(
    network: &Network,
    ports: &Ports,
    (to, host): (NodeId, HostId),
    from: impl Iterator<Item = (NodeId, Amount)>,
    onto: &mut [Amount],
    evenly: bool,
) {
    let (topology, routes) = (&network.topology, &network.routes);
    let mut distance = vec![u32::MAX; ports.len()];
    distance[to as usize] = 0;
    let mut reached = vec![to];
    let mut next = 0;
    while let Some(&node) = reached.get(next) {
        next += 1;
        for &(link, peer) in &ports[node as usize] {
            let up = topology.links[link as usize].rate.0 > 0;
            if up && routes.host_at(peer).is_none() && distance[peer as usize] == u32::MAX {
                distance[peer as usize] = distance[node as usize] + 1;
                reached.push(peer);
            }
        }
    }
    let mut waiting = vec![Amount::default(); ports.len()];
    from.for_each(|(node, amount)| waiting[node as usize].add(amount, 1.0));
    // The farthest first: what they send on has come to the nearer ones before these send.
    for &node in reached.iter().rev().filter(|node| **node != to) {
        let amount = waiting[node as usize];
        let hops = routes.next_hops(node, host);
        if amount.bits == 0.0 || !(evenly || hops.len() == 1) {
            continue;
        }
        for &port in hops {
            let (link, peer) = ports[node as usize][port as usize];
            let part = 1.0 / hops.len() as f64;
            let side = usize::from(topology.links[link as usize].a != node);
            onto[2 * link as usize + side].add(amount, part);
            waiting[peer as usize].add(amount, part);
        }
    }
}
