//! Load balancers: which of the equally good ports a packet leaves by. One file each.

mod destination;
mod drill;
mod ecmp;
mod flowlets;
mod label;
mod letflow;
mod presto;
mod round_robin;
#[cfg(test)]
mod situation;
mod spray;

use crate::config::{BalancerConfig, Compat, DrillConfig, FlowletConfig};
use crate::engine::random::mix64;
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::units::{Bytes, Rate, Time};

pub use destination::Destination;
pub use drill::Drill;
pub use ecmp::{Ecmp, MurmurEcmp, flow_hash, reverse_hash};
pub use flowlets::{Flowlet, FlowletTable};
pub use label::Label;
pub use letflow::LetFlow;
pub use presto::Presto;
pub use round_robin::RoundRobin;
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
    ("spray", "every packet takes a random one of the shortest paths, or the next one in turn (DRB)"),
    ("letflow", "every flowlet takes a random one of the shortest paths"),
    ("drill", "every packet takes the shortest of a few queues: some drawn, some remembered"),
    ("presto", "flows are cut into cells of 64 KB, which take the shortest paths in turn"),
];

/// Chooses among ports.
pub trait LoadBalancer {
    /// An index into `candidates`, of which there are at least two.
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize;
}

/// What a balancer may see of its switch and of the time. What it does not ask for costs nothing.
pub trait Ports {
    fn now(&self) -> Time;
    /// Bytes that a packet would wait for at a port: those queued, and what is left of the packet on its way out.
    fn backlog(&self, port: u32) -> u64;
    fn rate(&self, port: u32) -> Rate;
}

/// A packet's hash, mixed anew at each switch.
#[inline]
fn salted(hash: u32, salt: u64) -> u32 {
    (mix64(u64::from(hash) ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32) as u32
}

/// A switch's balancer; one line per kind.
pub enum Balancer {
    Ecmp(Ecmp),
    Murmur(MurmurEcmp),
    Spray(Spray),
    Destination(Destination),
    Label(Label),
    RoundRobin(Box<RoundRobin>),
    LetFlow(Box<LetFlow>),
    Drill(Box<Drill>),
    Presto(Presto),
}

/// How spraying goes on from packet to packet.
pub const ORDERS: &[(&str, &str)] = &[
    ("random", "every packet draws its path"),
    ("round-robin", "the packets to one host take the paths in turn (DRB)"),
];

/// More slots would be a slip of the keyboard.
const MOST_SLOTS: i64 = 1 << 24;

/// A table of flowlets with this gap where nothing is said.
fn flowlets(p: &mut Parameters, gap: Time, help: &'static str) -> FlowletConfig {
    let given = p.time("gap", gap, help);
    if given == Time::ZERO {
        let message = "0s would make a flowlet of every packet: expected more than 0, or kind = \"spray\"";
        p.complain("gap", message.to_string());
    }
    let help = "slots of a switch's flowlet table; flows whose hashes meet in one share it";
    let slots = p.integer("flowlets", 1 << 16, (1, MOST_SLOTS), help) as u32;
    FlowletConfig { gap: given, slots }
}

/// Reads the settings of the balancer named `kind`; none where [`KINDS`] has no such name.
pub fn read(kind: &str, p: &mut Parameters) -> Option<BalancerConfig> {
    match kind {
        "ecmp" => {
            let help = "another salt, another placing of the flows on the paths";
            let salt = p.integer("salt", 0, (0, i64::MAX), help);
            Some(BalancerConfig::Ecmp { salt: salt as u64 })
        }
        "spray" => {
            Some(match p.choice("order", "random", ORDERS, "how the path of the next packet is found") {
                "round-robin" => BalancerConfig::RoundRobin,
                _ => BalancerConfig::Spray,
            })
        }
        "letflow" => {
            let help = "a longer pause between two packets of a flow ends a flowlet (letflow, conga: 500us; hula, mp-hula: 100us)";
            Some(BalancerConfig::LetFlow(flowlets(p, Time::from_us(500), help)))
        }
        "drill" => {
            let help = "queues drawn at random for every packet (published: d = 2)";
            let samples = p.integer("samples", 2, (1, 64), help) as u32;
            let help = "queues remembered as the shortest (published: m = 1)";
            let memory = p.integer("memory", 1, (0, 64), help) as u32;
            Some(BalancerConfig::Drill(DrillConfig { samples, memory }))
        }
        "presto" => {
            let cell = p.bytes("cell", Bytes(64_000), "bytes of a flow that go together (published: 64KB)");
            if cell == Bytes(0) {
                p.complain("cell", "0B is no cell: expected more than 0".to_string());
            }
            Some(BalancerConfig::Presto { cell })
        }
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
            (BalancerConfig::RoundRobin, _) => Balancer::RoundRobin(Box::new(RoundRobin::new(seed, at.node))),
            (BalancerConfig::LetFlow(flowlets), _) => {
                Balancer::LetFlow(Box::new(LetFlow::new(flowlets, seed, at.name, at.node)))
            }
            (BalancerConfig::Drill(drill), _) => Balancer::Drill(Box::new(Drill::new(drill, seed, at.name))),
            (BalancerConfig::Presto { cell }, _) => Balancer::Presto(Presto::new(cell, at.tier)),
        }
    }

    /// Flowlets begun, and how many of them left the port of the one before.
    pub fn flowlets(&self) -> (u64, u64) {
        match self {
            Balancer::LetFlow(b) => b.flowlets.counts(),
            _ => (0, 0),
        }
    }
}

impl LoadBalancer for Balancer {
    #[inline]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        match self {
            Balancer::Ecmp(b) => b.choose(packet, candidates, ports),
            Balancer::Murmur(b) => b.choose(packet, candidates, ports),
            Balancer::Spray(b) => b.choose(packet, candidates, ports),
            Balancer::Destination(b) => b.choose(packet, candidates, ports),
            Balancer::Label(b) => b.choose(packet, candidates, ports),
            Balancer::RoundRobin(b) => b.choose(packet, candidates, ports),
            Balancer::LetFlow(b) => b.choose(packet, candidates, ports),
            Balancer::Drill(b) => b.choose(packet, candidates, ports),
            Balancer::Presto(b) => b.choose(packet, candidates, ports),
        }
    }
}
