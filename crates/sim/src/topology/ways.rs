//! Ways up a tree of switches, for schemes in which a number chooses the path, one digit of it a tier.

use super::Topology;
use num_integer::lcm;

/// Where there are more ways, a number that counts up would take too long to reach its next digit.
const LIMIT: u64 = 1 << 16;

/// By node, the number of ways from which the switches below it choose one: the product, over the tiers
/// below, of a switch's links to higher tiers; at most 65 536. 1 for hosts, for switches next to hosts and
/// for those without tiers.
///
/// Where switches of a tier differ in this, a multiple of the ways by each of them, so that the digit is
/// independent of theirs; the ways by one of them, if there is none up to the limit.
pub fn ways_below(topology: &Topology) -> Vec<u32> {
    let tier = |node: u32| topology.nodes[node as usize].tier;
    let upward = topology.links.iter().map(|link| match tier(link.a) <= tier(link.b) {
        true => (link.a, link.b),
        false => (link.b, link.a),
    });
    let mut climbs: Vec<(u32, u32)> =
        upward.filter(|&(low, high)| 0 < tier(low) && tier(low) < tier(high)).collect();
    climbs.sort_by_key(|&(low, _)| tier(low));
    let mut links_up = vec![0; topology.nodes.len()];
    climbs.iter().for_each(|&(low, _)| links_up[low as usize] += 1);
    let mut ways = vec![1; topology.nodes.len()];
    for (low, high) in climbs {
        let through = (ways[low as usize] * links_up[low as usize]).min(LIMIT);
        let both = lcm(ways[high as usize], through);
        ways[high as usize] = if both <= LIMIT { both } else { through };
    }
    ways.into_iter().map(|ways| ways as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{TopologyParameters, clos::Clos, hpcc_fat_tree::HpccFatTree};
    use super::*;

    /// The ways below the first switch whose name begins so.
    fn below(topology: &Topology, names: [&str; 3]) -> [u32; 3] {
        let ways = ways_below(topology);
        names.map(|name| ways[topology.nodes.iter().position(|node| node.name.starts_with(name)).unwrap()])
    }

    #[test]
    fn ways_are_the_product_of_the_links_up_of_the_tiers_below() {
        let tree = HpccFatTree { pods: 2, cores_per_agg: 2, ..HpccFatTree::default() };
        assert_eq!(below(&tree.build().unwrap(), ["tor0", "agg0", "core0"]), [1, 4, 8]);
        assert_eq!(below(&tree.build().unwrap(), ["host0", "tor7", "core7"]), [1, 1, 8]);
    }

    #[test]
    fn links_of_a_bundle_are_ways_of_their_own() {
        let clos = Clos { tiers: 2, leaves: 2, hosts_per_leaf: 4, uplinks: 6, bundle: 3, ..Clos::default() };
        assert_eq!(below(&clos.build().unwrap(), ["host", "leaf", "spine"]), [1, 1, 6]);
    }

    #[test]
    fn switches_that_differ_have_a_multiple_of_their_ways_above_them() {
        // Without its last link, leaf1 has three ways up, and leaf0 four.
        let mut clos =
            Clos { tiers: 2, leaves: 2, hosts_per_leaf: 4, uplinks: 4, bundle: 1, ..Clos::default() }
                .build()
                .unwrap();
        let leaf1 = clos.nodes.iter().position(|node| node.name == "leaf1").unwrap() as u32;
        let last = clos.links.iter().rposition(|link| link.a == leaf1 || link.b == leaf1).unwrap();
        clos.links.remove(last);
        assert_eq!(below(&clos, ["spine0", "spine1", "spine3"]), [12, 12, 4]);
    }
}
