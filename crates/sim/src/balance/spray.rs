//! Packet spraying: every packet takes a random one of the shortest paths, from the switch's own stream, or the next one in turn
//! ([`super::round_robin`]).

use super::round_robin::RoundRobin;
use super::{BalancerFacts, BalancerParameters, LoadBalancer, Place, Ports, Reorders, Shares};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::packet::Packet;
use crate::parameters::Parameters;

/// How spraying goes on from packet to packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SprayParameters {
    Random,
    InTurn,
}

const ORDERS: &[(&str, &str)] = &[
    ("random", "every packet takes a random path"),
    ("round-robin", "the packets to one host take the paths in turn (DRB)"),
];

impl BalancerParameters for SprayParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "spray",
        title: "every packet takes a random one of the shortest paths, or the next one in turn (DRB)",
        source: "Random packet spraying; in turn: Cao et al., \"Per-packet load-balanced, low-latency \
                 routing\" (DRB), CoNEXT 2013",
        validation: "In turn: the order of the paths over two tiers by hand (balance/round_robin.rs). At random: \
                     in whole runs only.",
        ..SchemeDoc::NONE
    };
    type State = Spray;

    fn read(p: &mut Parameters) -> SprayParameters {
        match p.choice("order", "random", ORDERS, "how the path of the next packet is chosen") {
            "round-robin" => SprayParameters::InTurn,
            _ => SprayParameters::Random,
        }
    }

    fn start(&self, at: &Place) -> Spray {
        match self {
            SprayParameters::Random => {
                Spray::Random(RandomStream::new(at.seed, &format!("switch.{}.spray", at.name)))
            }
            SprayParameters::InTurn => Spray::InTurn(RoundRobin::new(at.seed, at.node)),
        }
    }

    fn facts(&self) -> BalancerFacts {
        BalancerFacts { shares: Some(Shares::Equal), ..BalancerFacts::default() }
    }
    fn order(&self) -> Reorders {
        Reorders::Packets
    }
}

pub enum Spray {
    Random(RandomStream),
    InTurn(RoundRobin),
}

impl LoadBalancer for Spray {
    fn choose(&mut self, packet: &Packet, candidates: &[u32], _ports: &impl Ports) -> usize {
        match self {
            Spray::Random(random) => random.below(candidates.len() as u64) as usize,
            Spray::InTurn(turns) => turns.choose(packet.dst, candidates.len()),
        }
    }
}
