//! Load balancers: which of the equally good ports a packet leaves by. One file each.

mod destination;
mod ecmp;
mod label;
mod spray;

use crate::config::{BalancerConfig, Compat};
use crate::packet::Packet;
use crate::parameters::Parameters;

pub use destination::Destination;
pub use ecmp::{Ecmp, MurmurEcmp, flow_hash, reverse_hash};
pub use label::Label;
pub use spray::Spray;

/// Names that a scenario may use, with what they are.
pub const KINDS: &[(&str, &str)] = &[
    ("ecmp", "a hash of the flow, salted per switch, chooses among the shortest paths"),
    (
        "destination",
        "the destination's number chooses the port, one digit a tier (D-mod-k): shift permutations do not collide",
    ),
    (
        "label",
        "the packet's label modulo the number of paths, one digit a tier: its sender chooses (pHost counts up; elsewhere it \
         is the flow's hash)",
    ),
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
    Destination(Destination),
    Label(Label),
}

/// Reads the settings of the balancer named `kind`; none where [`KINDS`] has no such name.
pub fn read(kind: &str, p: &mut Parameters) -> Option<BalancerConfig> {
    match kind {
        "ecmp" => {
            let help = "another salt, another placing of the flows on the paths";
            let salt = p.integer("salt", 0, (0, i64::MAX), help);
            Some(BalancerConfig::Ecmp { salt: salt as u64 })
        }
        "spray" => Some(BalancerConfig::Spray),
        "destination" => Some(BalancerConfig::Destination),
        "label" => Some(BalancerConfig::Label),
        _ => None,
    }
}

/// The switch that a balancer works in.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub node: u32,
    pub name: &'a str,
    /// As the topology counts: 1 next to the hosts.
    pub tier: u8,
}

impl Balancer {
    /// The balancer of one switch.
    pub fn new(config: BalancerConfig, compat: Compat, seed: u64, at: Place) -> Balancer {
        match (config, compat) {
            (BalancerConfig::Ecmp { .. }, Compat::HpccNs3) => Balancer::Murmur(MurmurEcmp::new(at.node)),
            (BalancerConfig::Ecmp { salt }, Compat::None) => Balancer::Ecmp(Ecmp::new(salt, at.node)),
            (BalancerConfig::Spray, _) => Balancer::Spray(Spray::new(seed, at.name)),
            (BalancerConfig::Destination, _) => Balancer::Destination(Destination::new(at.tier)),
            (BalancerConfig::Label, _) => Balancer::Label(Label::new(at.tier)),
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
            Balancer::Destination(b) => b.choose(packet, candidates),
            Balancer::Label(b) => b.choose(packet, candidates),
        }
    }
}
