//! How many probes of a balancer links carry in a round, where every probe that comes is passed on.

use crate::topology::{NodeId, NodeKind, Topology};

/// Links times switches with hosts, beyond which some of these switches stand for all.
const STEPS: usize = 20_000_000;

/// By link, the probes of a round that cross it from its first end, and from its second. A probe goes up by every port of a switch
/// with hosts. Other switches pass on what comes from below up, and down to those where it has not been, what comes from above only
/// down; each along shortest paths.
pub fn copies(topology: &Topology) -> Vec<f64> {
    let ports = topology.ports();
    let nodes = topology.nodes.len();
    let is_switch = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Switch;
    let tier = |node: NodeId| topology.nodes[node as usize].tier;
    let has_hosts: Vec<bool> = (0..nodes)
        .map(|node| is_switch(node as NodeId) && ports[node].iter().any(|&(_, peer)| !is_switch(peer)))
        .collect();
    let racks: Vec<NodeId> = (0..nodes as NodeId).filter(|&node| has_hosts[node as usize]).collect();
    let looked_at = (STEPS / topology.links.len().max(1)).clamp(1, racks.len().max(1));
    let every = racks.len().div_ceil(looked_at).max(1);
    let scale = racks.len() as f64 / racks.len().div_ceil(every).max(1) as f64;
    let mut crossed = vec![0.0; 2 * topology.links.len()];
    for &rack in racks.iter().step_by(every) {
        let mut distance = vec![u32::MAX; nodes];
        distance[rack as usize] = 0;
        let mut reached = vec![rack];
        let [mut from_below, mut from_above] = [vec![0.0; nodes], vec![0.0; nodes]];
        from_below[rack as usize] = 1.0;
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            let (below, above) = (from_below[node as usize], from_above[node as usize]);
            for &(link, peer) in &ports[node as usize] {
                if !is_switch(peer) {
                    continue;
                }
                if distance[peer as usize] == u32::MAX {
                    distance[peer as usize] = distance[node as usize] + 1;
                    reached.push(peer);
                }
                if distance[peer as usize] != distance[node as usize] + 1 {
                    continue;
                }
                let is_up = tier(peer) > tier(node);
                let passed_on = match (node == rack, has_hosts[node as usize]) {
                    (true, _) => f64::from(u8::from(is_up)),
                    (false, true) => 0.0,
                    (false, false) if is_up => below,
                    (false, false) if tier(peer) < tier(node) => below + above,
                    (false, false) => 0.0,
                };
                let side = usize::from(topology.links[link as usize].a != node);
                crossed[2 * link as usize + side] += passed_on * scale;
                let comes_from = if is_up { &mut from_below } else { &mut from_above };
                comes_from[peer as usize] += passed_on;
            }
        }
    }
    crossed
}

#[cfg(test)]
mod tests {
    use super::copies;
    use crate::topology::{TopologyParameters, pods::Pods};

    #[test]
    fn every_switch_between_two_racks_multiplies_probes() {
        let pods = Pods {
            pods: 4,
            leaves_per_pod: 2,
            aggs_per_pod: 2,
            cores: 8,
            hosts_per_leaf: 2,
            ..Pods::default()
        };
        let topology = pods.build().expect("a network");
        let crossed = copies(&topology);
        let name = |node: u32| topology.nodes[node as usize].name.trim_end_matches(char::is_numeric);
        let highest = |from: &str, to: &str| {
            let ends = topology.links.iter().enumerate().flat_map(|(link, of)| {
                [(of.a, of.b, crossed[2 * link]), (of.b, of.a, crossed[2 * link + 1])]
            });
            let of_kind = ends.filter(|&(near, far, _)| name(near) == from && name(far) == to);
            of_kind.map(|(.., crossed)| crossed).fold(0.0, f64::max)
        };
        // One of each rack below; from there over two switches up to each core; of six racks over eight cores, and one of its own pod.
        assert_eq!([highest("leaf", "agg"), highest("agg", "core")], [1.0, 2.0]);
        assert_eq!([highest("core", "agg"), highest("agg", "leaf")], [12.0, 97.0]);
    }
}
