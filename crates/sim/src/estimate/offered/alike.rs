//! Links of one kind: those at which the same is expected by the hosts of workloads, in a network that is the same from
//! each of them. Where it is not, more than all of them carry together is still an overload of some.

use super::{Brought, Places};
use crate::engine::random::mix64;
use crate::scenario::network::Network;
use crate::topology::NodeId;
use rustc_hash::FxHashMap;

/// Places of one kind.
pub struct Kind {
    pub first: u32,
    pub count: u32,
    /// Of all of them together, by state of the network.
    pub rates: Vec<f64>,
}

/// The kinds of places.
pub struct Kinds {
    pub all: Vec<Kind>,
    /// By place; [`NO_KIND`] where nothing is known to be expected.
    pub at: Vec<u32>,
}

pub const NO_KIND: u32 = u32::MAX;

impl Kinds {
    pub fn of(network: &Network, places: &Places, workloads: &[&Brought]) -> Kinds {
        let (topology, routes) = (&network.topology, &network.routes);
        let parts = parts(routes.hosts(), workloads);
        // By node: what its hosts do, or those below it.
        let mut does = vec![0u64; topology.nodes.len()];
        for ((&parts, switch), host) in
            parts.iter().zip(&places.switch_of).zip(0..).filter(|((of, _), _)| **of != 0)
        {
            does[routes.host_node(host) as usize] = mix64(parts);
            if let Some(switch) = switch {
                let of_switch = &mut does[*switch as usize];
                *of_switch = of_switch.wrapping_add(mix64(parts));
            }
        }
        let tier = |node: NodeId| u64::from(topology.nodes[node as usize].tier);
        let mut kinds = Kinds { all: Vec::new(), at: vec![NO_KIND; places.count()] };
        let mut known: FxHashMap<[u64; 5], u32> = FxHashMap::default();
        let mut take = |place: u32, key: [u64; 4]| {
            let rates = || places.rates.iter().map(|of_state| of_state[place as usize]);
            let [one, two, three, four] = key;
            let same = rates().fold(0, |sum, rate| mix64(sum ^ rate.to_bits()));
            let kind = *known.entry([one, two, three, four, same]).or_insert(kinds.all.len() as u32);
            if kind as usize == kinds.all.len() {
                kinds.all.push(Kind { first: place, count: 0, rates: vec![0.0; places.rates.len()] });
            }
            let of = &mut kinds.all[kind as usize];
            of.count += 1;
            of.rates.iter_mut().zip(rates()).for_each(|(sum, rate)| *sum += rate);
            kinds.at[place as usize] = kind;
        };
        for node in 0..topology.nodes.len() as NodeId {
            let first = routes.host_at(node).map_or_else(|| places.of_switch(node), |host| 2 * host);
            for way in (0..2).filter(|_| does[node as usize] != 0) {
                take(first + way, [u64::from(way), does[node as usize], tier(node), 0]);
            }
        }
        for ((pods, first), number) in places.pods.iter().zip(1..) {
            let mut below = vec![0u64; pods.count as usize];
            for (&pod, does) in pods.of.iter().zip(&does) {
                if let Some(below) = below.get_mut(pod as usize) {
                    *below = below.wrapping_add(*does);
                }
            }
            for (pod, &does) in below.iter().enumerate().filter(|(_, does)| **does != 0) {
                (0..2).for_each(|way| take(first + 2 * pod as u32 + way, [u64::from(way), does, 0, number]));
            }
        }
        if places.count() > places.links as usize {
            let side = |node: NodeId| does[node as usize].wrapping_mul(31).wrapping_add(tier(node));
            for (link, id) in topology.links.iter().zip(0..) {
                for (place, ends) in [(0, [link.a, link.b]), (1, [link.b, link.a])] {
                    let [from, to] = ends.map(side);
                    take(places.links + 2 * id + place, [2, from, to, u64::MAX]);
                }
            }
        }
        kinds
    }
}

/// By host, what it does in which workloads: a bit for each that it sends in, and one for each that it receives in.
fn parts(hosts: usize, workloads: &[&Brought]) -> Vec<u64> {
    let mut parts = vec![0u64; hosts];
    for (brought, number) in workloads.iter().zip(0u32..) {
        let bit = 2 * (number % 32);
        for (of, way) in [(&brought.ends.senders, 0), (&brought.ends.receivers, 1)] {
            of.iter().for_each(|&host| parts[host as usize] |= 1 << (bit + way));
        }
    }
    parts
}
