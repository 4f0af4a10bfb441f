//! Load balancers: which of the equally good ports a packet leaves by. One file each.

mod ecmp;
mod spray;

use crate::config::{BalancerConfig, Compat};
use crate::packet::Packet;

pub use ecmp::{Ecmp, MurmurEcmp, flow_hash, reverse_hash};
pub use spray::Spray;

/// Names that a scenario may use, with what they are.
pub const KINDS: &[(&str, &str)] = &[
    ("ecmp", "a hash of the flow, salted per switch, chooses among the shortest paths"),
    ("spray", "every packet takes a random one of the shortest paths"),
];

/// Chooses among ports.
pub trait LoadBalancer {
    /// An index into `candidates`, of which there are at least two.
    fn choose(&mut self, packet: &Packet, candidates: &[u32]) -> usize;
}

/// A switch's balancer; one line per kind.
pub enum Balancer {
    Ecmp(Ecmp),
    Murmur(MurmurEcmp),
    Spray(Spray),
}

impl Balancer {
    /// The balancer of one switch, known by its node id and name.
    pub fn new(config: BalancerConfig, compat: Compat, seed: u64, node: u32, name: &str) -> Balancer {
        match (config, compat) {
            (BalancerConfig::Ecmp { .. }, Compat::HpccNs3) => Balancer::Murmur(MurmurEcmp::new(node)),
            (BalancerConfig::Ecmp { salt }, Compat::None) => Balancer::Ecmp(Ecmp::new(salt, node)),
            (BalancerConfig::Spray, _) => Balancer::Spray(Spray::new(seed, name)),
        }
    }
}

impl LoadBalancer for Balancer {
    #[inline]
    fn choose(&mut self, packet: &Packet, candidates: &[u32]) -> usize {
        match self {
            Balancer::Ecmp(b) => b.choose(packet, candidates),
            Balancer::Murmur(b) => b.choose(packet, candidates),
            Balancer::Spray(b) => b.choose(packet, candidates),
        }
    }
}
