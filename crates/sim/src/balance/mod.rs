//! Load balancers: which of the equally good ports a packet leaves by. One file each.

mod best_hops;
mod clove;
mod conga;
mod connections;
mod destination;
mod dre;
mod drill;
mod ecmp;
mod estimator;
mod fabric;
mod flowlets;
mod hula;
mod label;
mod letflow;
mod presto;
mod round_robin;
#[cfg(test)]
mod situation;
mod spray;
mod steering;
mod subflows;

use crate::compat::Rules;
use crate::config::{
    BalancerConfig, CloveConfig, CloveFeedback, CongaConfig, DrillConfig, FlowletConfig, HulaConfig,
    RankChoice, SubflowConfig,
};
use crate::counters::{Counter, CounterGroup, CounterSet};
use crate::engine::random::{hash_salt, mix64};
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::units::{Bytes, Rate, Time};
use std::sync::Arc;

pub use best_hops::{BestHops, Hop, HopRules};
pub use clove::{Clove, CloveHeader, CloveSwitch, MOST_PATHS};
pub use conga::{Conga, CongaHeader, TAGS};
pub use destination::Destination;
pub use dre::{Dre, DreLaw};
pub use drill::Drill;
pub use ecmp::{Ecmp, MurmurEcmp};
pub use estimator::{EstimatorLaw, LinkEstimator};
pub use fabric::{Fabric, Neighbour, Side};
pub use flowlets::{Flowlet, FlowletTable};
pub use hula::Hula;
pub use label::Label;
pub use letflow::LetFlow;
pub use presto::Presto;
pub use round_robin::RoundRobin;
pub use spray::Spray;
pub use steering::{Passing, mark as mark_of};
pub use subflows::{RankForm, RankRule, SubflowMark, disjoint};

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
    ("conga", "every flowlet takes the uplink that the leaf at the other end says is the least congested"),
    (
        "clove",
        "sending hosts choose the path of every flowlet, by marks or utilisation that receivers tell back",
    ),
    ("hula", "every flowlet takes the hop that probes say leads over the least busy path"),
    ("mp-hula", "the same with the k best hops, for the subflows of multipath transports"),
];

/// Chooses among ports.
pub trait LoadBalancer {
    /// An index into `candidates`, of which there are at least two.
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize;
    /// Adds what it has counted until now.
    fn count(&mut self, _now: Time, _counters: &mut CounterSet) {}
}

/// What balancers that write into packets count.
pub static HEADERS: CounterGroup = CounterGroup {
    counters: &[Counter::sum(
        "balancer_header_bytes",
        "bytes",
        "bytes of balancers' headers",
        "Bytes of what packets carried for load balancers, on every link that they crossed.",
    )],
    ..CounterGroup::NONE
};

/// What balancers count.
pub const COUNTERS: &[&CounterGroup] = &[&hula::PROBES, &HEADERS, &flowlets::FLOWLETS];

/// What a balancer may see of its switch and of the time. What it does not ask for costs nothing.
pub trait Ports {
    fn now(&self) -> Time;
    /// Bytes that a packet would wait for at a port: those queued, and what is left of the packet on its way out.
    fn backlog(&self, port: u32) -> u64;
    fn rate(&self, port: u32) -> Rate;
    /// What the packet carries of its multipath connection.
    fn mark(&self) -> Option<SubflowMark> {
        None
    }
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
    Hula(Box<Hula>),
    Conga(Box<Conga>),
    Clove(Box<CloveSwitch>),
}

/// How spraying goes on from packet to packet.
pub const ORDERS: &[(&str, &str)] = &[
    ("random", "every packet draws its path"),
    ("round-robin", "the packets to one host take the paths in turn (DRB)"),
];

/// More slots would be a slip of the keyboard.
const MOST_SLOTS: i64 = 1 << 24;

/// What balancers that share a key say of it.
const GAP: &str = "a longer pause between two packets of a flow ends a flowlet (letflow, conga: 500us; clove: 200us; hula, mp-hula: \
                   100us)";
const TIME_CONSTANT: &str = "tau, over which the load of a link is averaged (conga: 160us, recalled; clove: the same; hula, \
                             mp-hula: auto, twice the probe interval, recalled)";
const AGEING: &str =
    "conga, clove: congestion that was not heard of for longer counts as none (recalled: 10ms)";
const HEADER: &str = "conga, clove: bytes that a packet is longer by between its first and its last switch, or from host to host \
                      (conga: 14 bits, in 2 B of their own; 50B: with the overlay in whose header they ride; clove: 0B, in spare \
                      fields of that header)";

/// A table of flowlets with this gap and so many slots where nothing is said.
fn flowlets(p: &mut Parameters, (gap, slots): (Time, i64), help: &'static str) -> FlowletConfig {
    let given = p.time("gap", gap, help);
    if given == Time::ZERO {
        let message = "0s would make a flowlet of every packet: expected more than 0, or kind = \"spray\"";
        p.complain("gap", message.to_string());
    }
    let help = "slots of a flowlet table, of a switch (65536) or of a host (clove: 4096); flows whose hashes meet in one share it";
    let slots = p.integer("flowlets", slots, (1, MOST_SLOTS), help) as u32;
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
        "letflow" => Some(BalancerConfig::LetFlow(flowlets(p, (Time::from_us(500), 1 << 16), GAP))),
        "drill" => {
            let help = "queues drawn at random for every packet (published: d = 2)";
            let samples = p.integer("samples", 2, (1, 64), help) as u32;
            let help = "queues remembered as the shortest (published: m = 1)";
            let memory = p.integer("memory", 1, (0, 64), help) as u32;
            Some(BalancerConfig::Drill(DrillConfig { samples, memory }))
        }
        "conga" => Some(BalancerConfig::Conga(conga(p))),
        "clove" => Some(BalancerConfig::Clove(clove(p))),
        "hula" => Some(BalancerConfig::Hula(hula(1, p))),
        "mp-hula" => {
            let help = "mp-hula: next hops kept for each ToR, best first (the talk shows 2 and 3)";
            let ranks = p.integer("ranks", 2, (1, 16), help) as u8;
            Some(BalancerConfig::Hula(HulaConfig { subflows: subflows(p), ..hula(ranks, p) }))
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

fn header_bytes(p: &mut Parameters, given: Bytes) -> u16 {
    if given.0 > 200 {
        p.complain("header", format!("{given} is no header: expected at most 200B"));
    }
    given.0.min(200) as u16
}

fn conga(p: &mut Parameters) -> CongaConfig {
    let flowlets = flowlets(p, (Time::from_us(500), 1 << 16), GAP);
    let time_constant = p.time("time_constant", Time::from_us(160), TIME_CONSTANT);
    if time_constant == Time::ZERO {
        p.complain("time_constant", "0s averages over nothing: expected more than 0".to_string());
    }
    let help = "conga: share of a link's load that is forgotten at a time, every alpha tau (recalled: 0.2)";
    let alpha = (p.number("alpha", 0.2, (0.001, 1.0), help) * 1024.0).round() as u32;
    let help = "conga: bits in which congestion is told (published: 3)";
    let bits = p.integer("bits", 3, (1, 8), help) as u8;
    let ageing = p.time("ageing", Time::from_ms(10), AGEING);
    let header = p.bytes("header", Bytes(2), HEADER);
    let header = header_bytes(p, header);
    let help = "conga: on three tiers leaves choose by what they hear of their uplinks, and switches above hash (CONGA')";
    let three_tier = p.flag("three_tier", false, help);
    CongaConfig { flowlets, time_constant, alpha, bits, ageing, header, three_tier }
}

/// What the hosts of CLOVE tell each other of paths.
pub const FEEDBACKS: &[(&str, &str)] = &[
    ("ecn", "the marks that packets came with: CLOVE-ECN"),
    ("int", "the utilisation of the busiest link, which switches write into packets: CLOVE-INT"),
    ("none", "nothing; flowlets take random paths: Edge-Flowlet"),
];

fn clove(p: &mut Parameters) -> CloveConfig {
    let feedback = match p.choice("feedback", "ecn", FEEDBACKS, "clove: what hosts tell each other of paths")
    {
        "int" => CloveFeedback::Int,
        "none" => CloveFeedback::None,
        _ => CloveFeedback::Ecn,
    };
    let given = flowlets(p, (Time::from_us(200), 1 << 12), GAP);
    let help = "clove: paths that a host knows to another, at most (ours)";
    let paths = p.integer("paths", 16, (1, i64::from(MOST_PATHS)), help) as u8;
    let help = "clove: a path is told of once in this time at most (published: half a round trip; a public ns-3 version: 40us)";
    let relay_interval = p.time("relay_interval", Time::from_us(40), help);
    let help = "clove, ecn: a path counts as congested for so long after it was told of as such (ours: two relay intervals)";
    let congested_for = p.time("congested_for", Time::from_us(80), help);
    let help =
        "clove, ecn: share of its weight that a congested path gives to the others (recalled: a third)";
    let cut = (p.number("cut", 1.0 / 3.0, (0.001, 1.0), help) * 1024.0).round() as u32;
    let help = "clove, ecn: transports hear of marks only while all paths are congested (recalled; false is ours, as senders here \
                may be steered by marks)";
    let hide_marks = p.flag("hide_marks", false, help);
    let time_constant = p.time("time_constant", Time::from_us(160), TIME_CONSTANT);
    if time_constant == Time::ZERO {
        p.complain("time_constant", "0s averages over nothing: expected more than 0".to_string());
    }
    let ageing = p.time("ageing", Time::from_ms(10), AGEING);
    let header = p.bytes("header", Bytes(0), HEADER);
    let header = header_bytes(p, header);
    CloveConfig {
        feedback,
        flowlets: given,
        paths,
        relay_interval,
        congested_for,
        cut,
        hide_marks,
        time_constant,
        ageing,
        header,
    }
}

/// The settings that HULA and MP-HULA have in common.
fn hula(ranks: u8, p: &mut Parameters) -> HulaConfig {
    let help =
        "hula, mp-hula: from one round of probes of a ToR to the next (HULA's simulation: 200us; recalled)";
    let mut interval = p.time("probe_interval", Time::from_us(200), help);
    if interval == Time::ZERO {
        p.complain("probe_interval", "0s leaves no time for anything else: expected more than 0".to_string());
        interval = Time::from_us(200);
    }
    let help = "bytes of a probe on the wire: the least frame that Ethernet has";
    let probe_size = p.bytes("probe_size", Bytes(64), help);
    if !(1..=1500).contains(&probe_size.0) {
        p.complain("probe_size", format!("{probe_size} is not between 1B and 1500B"));
    }
    let time_constant =
        p.time_or_auto("time_constant", TIME_CONSTANT).unwrap_or(Time(interval.0.saturating_mul(2)));
    if time_constant == Time::ZERO {
        p.complain("time_constant", "0s averages over nothing: expected more than 0".to_string());
    }
    let help = "a hop, or a port, that no probe names for longer has failed; auto: three probe intervals (ours; public \
                versions have 3 to 5)";
    let failure_time = p.time_or_auto("failure_time", help).unwrap_or(Time(interval.0.saturating_mul(3)));
    if failure_time < interval {
        let message = format!(
            "{failure_time} is less than the probe interval, {interval}: every hop would fail at once"
        );
        p.complain("failure_time", message);
    }
    let flowlets = flowlets(p, (Time::from_us(100), 1 << 16), GAP);
    let help = "traffic class in which probes queue; 0: before all traffic, as HULA has it (recalled); others share their queue";
    let probe_class = p.integer("probe_class", 0, (0, 7), help) as u8;
    let help = "flowlets on a port that no probe came by for the failure time leave it at once (ours); off: at their next gap";
    let release = p.flag("release", true, help);
    let help = "a probe of the best hop replaces its value, be it better or worse; off, as in the published P4 listing, a hop \
                that gets worse keeps its value until it fails";
    let refresh_on_best = p.flag("refresh_on_best", true, help);
    let help = "what is no news is passed on once an interval; off: every probe that is heard is passed on";
    let suppress = p.flag("suppress", true, help);
    let help = "by how much, of 256, a hop must be less busy to pass the one ranked above it (ours)";
    let hysteresis = p.integer("hysteresis", 0, (0, 255), help) as u8;
    let help = "the estimator counts ticks of 1.024 ns and shifts instead of dividing; tau becomes a power of two of ticks";
    let hardware = p.flag("hardware_estimator", false, help);
    let help = "ToRs begin at random moments of the first interval; off: all at time 0";
    let staggered = p.flag("staggered", true, help);
    HulaConfig {
        interval,
        probe_size: probe_size.0.clamp(1, 1500) as u16,
        probe_class,
        release,
        time_constant,
        failure_time,
        flowlets,
        ranks,
        refresh_on_best,
        suppress,
        hysteresis,
        hardware,
        staggered,
        subflows: SubflowConfig::default(),
    }
}

/// How ranks are given.
pub const RANKS: &[(&str, &str)] = &[
    (
        "digits",
        "subflow s has, t tiers above the hosts, digit t of s in base k: subflows part at every tier (ours)",
    ),
    ("round-robin", "subflow s has rank s mod k at every tier (the talk's example)"),
];

/// What MP-HULA does with subflows.
fn subflows(p: &mut Parameters) -> SubflowConfig {
    let default = SubflowConfig::default();
    let help = "mp-hula: which of the ranked hops a subflow takes";
    let rank = match p.choice("rank", "digits", RANKS, help) {
        "round-robin" => RankChoice::RoundRobin,
        _ => RankChoice::Digits,
    };
    let help = "mp-hula: the first subflow of a connection takes a rank by the connection's hash, not the best hop (ours)";
    let hashed_start = p.flag("hashed_start", default.hashed_start, help);
    let help = "mp-hula: subflows pass over ports that others of their connection use at the switch (the talk: different subflows go \
                to different next hops; the table is ours); off: ranks alone, by which two may meet when ranks change";
    let disjoint = p.flag("disjoint", default.disjoint, help);
    let help = "mp-hula: bytes that a subflow's packets are longer by between ToRs: 64 bits of connection, 4 of subflow, padded";
    let mark = p.bytes("mark", Bytes(u64::from(default.mark)), help);
    if mark.0 > 200 {
        p.complain("mark", format!("{mark} is no mark: expected at most 200B"));
    }
    let help =
        "mp-hula: subflows that a ToR remembers; of more it forgets the one that is silent longest (ours)";
    let known = p.integer("known", i64::from(default.known), (1, 1 << 24), help) as u32;
    let help = "mp-hula: a ToR forgets a subflow that is silent for longer (ours)";
    let idle = p.time("idle", default.idle, help);
    if idle == Time::ZERO {
        p.complain("idle", "0s would forget a subflow between two packets: expected more than 0".to_string());
    }
    SubflowConfig {
        multipath: false,
        rank,
        hashed_start,
        disjoint,
        mark: mark.0.min(200) as u16,
        known,
        idle,
    }
}

/// The switch that a balancer works in.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub node: u32,
    pub name: &'a str,
    /// As the topology counts: 1 next to the hosts.
    pub tier: u8,
    /// Its number among the switches with hosts, if it has some.
    pub tor: Option<u32>,
    /// By port. Empty, as the fabric is, for balancers that do not ask for it ([`BalancerConfig::knows_fabric`]).
    pub neighbours: &'a [Neighbour],
    pub fabric: &'a Arc<Fabric>,
}

impl Balancer {
    /// The balancer of one switch.
    pub fn new(config: BalancerConfig, rules: &Rules, seed: u64, at: Place) -> Balancer {
        match (config, rules.murmur_ecmp) {
            (BalancerConfig::Ecmp { .. }, true) => Balancer::Murmur(MurmurEcmp::new(at.node)),
            (BalancerConfig::Ecmp { salt }, false) => {
                Balancer::Ecmp(Ecmp::new(salt ^ hash_salt(seed), at.node))
            }
            (BalancerConfig::Spray, _) => Balancer::Spray(Spray::new(seed, at.name)),
            (BalancerConfig::Destination, _) => Balancer::Destination(Destination::new(at.tier)),
            (BalancerConfig::Label, _) => Balancer::Label(Label::new(at.tier)),
            (BalancerConfig::RoundRobin, _) => Balancer::RoundRobin(Box::new(RoundRobin::new(seed, at.node))),
            (BalancerConfig::LetFlow(flowlets), _) => {
                Balancer::LetFlow(Box::new(LetFlow::new(flowlets, seed, at.name, at.node)))
            }
            (BalancerConfig::Drill(drill), _) => Balancer::Drill(Box::new(Drill::new(drill, seed, at.name))),
            (BalancerConfig::Presto { cell }, _) => Balancer::Presto(Presto::new(cell, at.tier, seed)),
            (BalancerConfig::Conga(conga), _) => Balancer::Conga(Box::new(Conga::new(conga, seed, &at))),
            (BalancerConfig::Clove(clove), _) if clove.feedback == CloveFeedback::Int => {
                Balancer::Clove(Box::new(CloveSwitch::new(&clove, seed, at.node)))
            }
            (BalancerConfig::Clove(_), _) => Balancer::Ecmp(Ecmp::new(hash_salt(seed), at.node)),
            (BalancerConfig::Hula(hula), _) => Balancer::Hula(Box::new(Hula::new(hula, seed, &at))),
        }
    }

    /// It is told of every packet that leaves.
    pub fn watches(&self) -> bool {
        matches!(self, Balancer::Hula(_) | Balancer::Conga(_) | Balancer::Clove(_))
    }

    /// Of the first 64 ports, those of which it need not be told: HULA and CONGA measure no links to hosts.
    pub fn untold(&self) -> u64 {
        let neighbours = match self {
            Balancer::Hula(hula) => hula.neighbours(),
            Balancer::Conga(conga) => conga.neighbours(),
            _ => return 0,
        };
        let hosts = neighbours.iter().take(64).enumerate().filter(|(_, n)| n.side == Side::Host);
        hosts.fold(0, |mask, (port, _)| mask | 1 << port)
    }

    /// A packet leaves by a port of a rate in bits per second. `header`: what it carries between the first and the last
    /// switch for the balancers ([`Balancer::writes_headers`]).
    #[inline(never)]
    pub fn departs(&mut self, port: u32, bytes: u32, header: &mut u64, at: (Time, u64)) {
        match self {
            Balancer::Hula(hula) => hula.departs(port, bytes, *header, at.0),
            Balancer::Conga(conga) => conga.departs(port, bytes, header, at),
            Balancer::Clove(clove) => clove.departs(port, bytes, header, at),
            _ => {}
        }
    }

    /// Packets carry something for it.
    pub fn writes_headers(&self) -> bool {
        match self {
            Balancer::Conga(_) | Balancer::Clove(_) => true,
            Balancer::Hula(hula) => hula.marks(),
            _ => false,
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
            Balancer::Hula(b) => b.choose(packet, candidates, ports),
            Balancer::Conga(b) => b.choose(packet, candidates, ports),
            Balancer::Clove(b) => b.choose(packet, candidates, ports),
        }
    }

    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        match self {
            Balancer::LetFlow(b) => b.count(now, counters),
            Balancer::Hula(b) => b.count(now, counters),
            Balancer::Conga(b) => b.count(now, counters),
            _ => {}
        }
    }
}
