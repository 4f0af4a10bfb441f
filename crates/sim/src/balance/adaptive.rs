//! Adaptive routing: every packet takes one of the ports with the shortest queues of all that lead on, as switches of GPU
//! clusters do.
//!
//! ```text
//! load = backlog / (full r / r_max)            r: rate of the port, r_max: of the fastest that leads on
//! level 0 below 5 % of load, 1 below 10 %, 2 below 20 %, 3 otherwise: a random port of the lowest level
//! ```
//!
//! Levels are coarse on purpose: an exact minimum makes senders of equal rate find the port free that each has just left,
//! so that they keep to it and meet downstream. Packets below 100 B are hashed, as with ECMP.
//!
//! Source: the Ultra Ethernet Consortium's simulator (uet-htsim, adaptive routing of switches by queue).
//! Differs from the source: queues are those of this moment, where it looks at them every 0.1 us.
//! Not published: how products quantise and weigh queues. The default of `full` is about its queues at 100 and 400 Gb/s.

use super::ecmp::Ecmp;
use super::{BalancerParameters, LoadBalancer, Place, Ports, Reorders};
use crate::doc::SchemeDoc;
use crate::engine::random::{RandomStream, hash_salt};
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::units::Bytes;

/// Shares of a full queue, in percent, at which the levels 1, 2 and 3 begin.
const LEVELS: [u128; 3] = [5, 10, 20];
/// Smaller packets are hashed.
const SMALL: u16 = 100;
const FULL: Bytes = Bytes(200_000);
const LARGEST: Bytes = Bytes(1 << 30);

#[derive(Debug, Clone, PartialEq)]
pub struct AdaptiveParameters {
    /// Queue of the fastest port that counts as full.
    pub full: u64,
}

impl BalancerParameters for AdaptiveParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "adaptive",
        title: "adaptive routing by switches: every packet takes one of the ports with the shortest queues",
        source: "Ultra Ethernet Consortium's simulator (uet-htsim); internals of products are not published",
        validation: "Levels by hand and ports of one level alike often (balance/adaptive.rs); order and size of the \
                     gaps to ECMP and spraying as in the UEC's simulator (tests/fabrics.rs; page: docs/ai.md).",
        ..SchemeDoc::NONE
    };
    type State = Box<Adaptive>;

    fn read(p: &mut Parameters) -> AdaptiveParameters {
        let help = "queue at which the fastest port counts as full: levels begin at 5, 10 and 20 % of it, and in \
                    proportion at slower ports";
        let full = p.bytes("full", FULL, help);
        if full < Bytes(100) || full > LARGEST {
            p.complain("full", format!("{full} is not between 100B and {LARGEST}"));
        }
        AdaptiveParameters { full: full.0.clamp(100, LARGEST.0) }
    }

    fn start(&self, at: &Place) -> Box<Adaptive> {
        Box::new(Adaptive {
            full: self.full,
            random: RandomStream::new(at.seed, &format!("switch.{}.adaptive", at.name)),
            small: Ecmp::new(hash_salt(at.seed), at.node),
            levels: Vec::new(),
        })
    }

    fn order(&self) -> Reorders {
        Reorders::Packets
    }
}

pub struct Adaptive {
    full: u64,
    random: RandomStream,
    small: Ecmp,
    /// Of the ports in question, in their order.
    levels: Vec<u8>,
}

impl LoadBalancer for Adaptive {
    #[inline(never)]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        if packet.size < SMALL {
            return self.small.way(packet.hash, candidates.len());
        }
        let fastest = candidates.iter().map(|&port| ports.rate(port).0).max().unwrap_or(1);
        let full = u128::from(self.full);
        self.levels.clear();
        self.levels.extend(candidates.iter().map(|&port| {
            let percent = 100 * u128::from(ports.backlog(port)) * u128::from(fastest);
            let one = full * u128::from(ports.rate(port).0);
            LEVELS.iter().filter(|&&level| percent >= level * one).count() as u8
        }));
        let lowest = self.levels.iter().copied().min().unwrap_or(0);
        let best = self.levels.iter().filter(|&&level| level == lowest).count();
        let chosen = self.random.below(best as u64) as usize;
        let mut of_level = self.levels.iter().enumerate().filter(|&(_, &level)| level == lowest);
        of_level.nth(chosen).map_or(0, |(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::situation::{Still, place};
    use super::*;
    use crate::units::Rate;
    use std::sync::Arc;

    /// How often each of the ports is chosen by 8000 packets of this size.
    fn hits(backlogs: &[u64], rates: Vec<Rate>, size: u16) -> Vec<u32> {
        let mut balancer = AdaptiveParameters { full: 100_000 }.start(&place(&Arc::default()));
        let ports = Still { backlogs: backlogs.to_vec(), rates, ..Still::default() };
        let candidates: Vec<u32> = (0..backlogs.len() as u32).collect();
        let mut hits = vec![0; backlogs.len()];
        let packet = Packet { size, ..Packet::default() };
        (0..8000).for_each(|_| hits[balancer.choose(&packet, &candidates, &ports)] += 1);
        hits
    }

    #[test]
    fn ports_of_the_lowest_level_are_taken_alike_often() {
        for (backlogs, lowest) in [
            ([0, 4999, 5000, 40_000], &[0, 1][..]),
            ([5000, 9999, 10_000, 30_000], &[0, 1]),
            ([10_000, 19_999, 20_000, 21_000], &[0, 1]),
            ([20_000, 20_000_000, 20_001, 90_000], &[0, 1, 2, 3]),
        ] {
            for (port, hits) in hits(&backlogs, Vec::new(), 1000).into_iter().enumerate() {
                let expected = if lowest.contains(&port) { 8000 / lowest.len() as u32 } else { 0 };
                assert!(hits.abs_diff(expected) <= expected / 10, "port {port} of {backlogs:?}: {hits}");
            }
        }
    }

    #[test]
    fn a_slower_port_counts_as_full_with_a_shorter_queue() {
        let rates = vec![Rate::from_gbps(100), Rate::from_gbps(25)];
        assert_eq!(hits(&[4999, 1250], rates.clone(), 1000), [8000, 0]);
        assert!(hits(&[4999, 1249], rates, 1000)[1] > 3600);
    }

    #[test]
    fn small_packets_keep_to_their_hash() {
        assert!(hits(&[0, 0, 0, 0], Vec::new(), 99).contains(&8000));
    }
}
