//! Planes: the switches that are connected through switches. A network has one, or several that only meet at hosts.

use super::{NodeKind, Ports, Topology};

/// By node, the number of its plane, counted in the order of the nodes; of a host [`u32::MAX`].
pub fn planes(topology: &Topology, ports: &Ports) -> Vec<u32> {
    let is_switch = |node: usize| topology.nodes[node].kind == NodeKind::Switch;
    let mut plane = vec![u32::MAX; ports.len()];
    let (mut count, mut waiting) = (0, Vec::new());
    for first in (0..ports.len()).filter(|&node| is_switch(node)) {
        if plane[first] != u32::MAX {
            continue;
        }
        plane[first] = count;
        waiting.push(first);
        while let Some(node) = waiting.pop() {
            for peer in ports[node].iter().map(|&(_, peer)| peer as usize) {
                if is_switch(peer) && plane[peer] == u32::MAX {
                    plane[peer] = count;
                    waiting.push(peer);
                }
            }
        }
        count += 1;
    }
    plane
}

#[cfg(test)]
mod tests {
    use super::super::{TopologyParameters, hpn::Hpn};
    use super::*;

    #[test]
    fn switches_of_a_plane_are_connected_through_switches() {
        // Two segments of one node of one GPU: ToR and spine of one plane, then of the other, in turn.
        let hpn = Hpn { nodes_per_segment: 1, gpus: 1, spines: 1, ..Hpn::default() };
        let network = hpn.build().unwrap();
        let found = planes(&network, &network.ports());
        let of = |name: &str| found[network.nodes.iter().position(|node| node.name == name).unwrap()];
        assert_eq!(["tor0", "tor1", "tor2", "tor3"].map(of), [0, 1, 0, 1]);
        assert_eq!(["spine0", "spine1", "host0"].map(of), [0, 1, u32::MAX]);
    }
}
