//! Presto: flows are cut into cells of 64 KB, which take the paths in turn.
//!
//! Which cell a packet is of follows from its place in the flow, so a retransmission takes the way of the original. The
//! path of cell c of a flow is number h + c of its paths, h its hash, mixed with the run's seed; switches above the first take the next digits of that
//! number. Ports of unlike rates get cells in proportion. Congestion is not looked at.
//!
//! Source: He et al., "Presto: edge-based load balancing for fast datacenter networks", SIGCOMM 2015, §3.
//! Differs from the source: switches choose, not labels that the sender's virtual switch writes; weights follow the rates of
//! the switch's own ports, not of whole paths. What arrives out of order is the transport's to put right: the source does
//! that in the receiver's offload.
//! Parameters: cell 64 KB (the largest segment that offloads take).

use super::{BalancerFacts, BalancerParameters, LoadBalancer, Place, Ports, Reorders, salted};
use crate::doc::SchemeDoc;
use crate::engine::random::hash_salt;
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::units::Bytes;
use num_integer::gcd;

#[derive(Debug, Clone, PartialEq)]
pub struct PrestoParameters {
    pub cell: Bytes,
}

impl BalancerParameters for PrestoParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "presto",
        title: "flows are cut into cells of 64 KB, which take the shortest paths in turn",
        source: "He et al., \"Presto: edge-based load balancing for fast datacenter networks\", SIGCOMM 2015, §3",
        validation: "Cells, the order of the paths, and shares in proportion to the ports' rates, by hand \
                     (balance/presto.rs).",
        ..SchemeDoc::NONE
    };
    type State = Presto;

    fn read(p: &mut Parameters) -> PrestoParameters {
        let cell =
            p.bytes("cell", Bytes(64_000), "bytes of a flow that take the same path (published: 64KB)");
        if cell == Bytes(0) {
            p.complain("cell", "must be greater than 0B".to_string());
        }
        PrestoParameters { cell }
    }
    fn start(&self, at: &Place) -> Presto {
        Presto::new(self.cell, at.ways_below, at.seed)
    }
    fn order(&self) -> Reorders {
        Reorders::Blocks
    }
    fn facts(&self) -> BalancerFacts {
        BalancerFacts { goes_by_flow: true, ..BalancerFacts::default() }
    }
}

pub struct Presto {
    cell: u64,
    /// Of the flows' hashes, the same at all switches; 0: they are taken as they are.
    salt: u64,
    /// What the digits of the switches below make up.
    ways_below: u64,
}

impl Presto {
    pub fn new(cell: Bytes, ways_below: u32, seed: u64) -> Presto {
        Presto { cell: cell.0.max(1), salt: hash_salt(seed), ways_below: u64::from(ways_below) }
    }
}

impl LoadBalancer for Presto {
    #[inline(never)]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        let paths = candidates.len() as u64;
        let hash = if self.salt == 0 { packet.hash } else { salted(packet.hash, self.salt) };
        let number = u64::from(hash).wrapping_add(ports.first_byte(packet) / self.cell) / self.ways_below;
        let rate = |at: usize| (ports.rate(candidates[at]).0 / 1_000_000).max(1);
        let first = rate(0);
        if (1..candidates.len()).all(|at| rate(at) == first) {
            return (number % paths) as usize;
        }
        // Turns in proportion to the rates, each port's spread over the round.
        let round: u64 = (0..candidates.len()).map(rate).sum();
        let mut place = (u128::from(number) * u128::from(stride(round)) % u128::from(round)) as u64;
        (0..candidates.len())
            .find(|&at| match place.checked_sub(rate(at)) {
                Some(left) => {
                    place = left;
                    false
                }
                None => true,
            })
            .unwrap_or(0)
    }
}

/// A step through a round that comes to every place once: near the golden section of it, so that steps in a row lie apart.
fn stride(round: u64) -> u64 {
    let near = (round as u128 * 618_034 / 1_000_000).max(1) as u64;
    (near..).find(|&step| gcd(step, round) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests;
