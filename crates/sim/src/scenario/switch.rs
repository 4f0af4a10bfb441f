//! `[switch]`: buffer, forwarding, queues, marking, pauses and balancing of every switch.
//!
//! Defaults are those of the published HPCC runs: Li et al., "HPCC: High Precision Congestion Control",
//! SIGCOMM 2019, and the settings of the authors' simulator.

use super::section::Section;
use crate::balance::{self, BalancerConfig};
use crate::compat::Rules;
use crate::config::{Forwarding, QueueConfig, SwitchConfig};
use crate::net::buffer::PfcConfig;
use crate::net::ecn::{EcnThreshold, MarkedAt};
use crate::parameters::Parameters;
use crate::parameters::{Declared, Source, Value};
use crate::queue::{DEFAULT_KIND, QueueDefaults, QueueFacts};
use crate::topology::pattern::PortPatterns;
use crate::topology::{NodeId, NodeKind, PortSet, Topology};
use crate::transport::SwitchDefaults;
use crate::units::{Bytes, Rate};
use rustc_hash::FxHashSet;
use std::rc::Rc;

pub use crate::balance::kinds as balancers;
pub use crate::queue::kinds as queues;

pub const FORWARDING: &[(&str, &str)] = &[
    ("store-and-forward", "a packet leaves after its last byte has arrived"),
    ("cut-through", "a packet may leave once its header has arrived"),
    (
        "ideal-cut-through",
        "as cut-through, even where a faster link would run out of data because the packet's tail has not arrived (the pHost \
         authors' simulator)",
    ),
];

/// Of the published runs.
pub const DEFAULT_BUFFER: Bytes = Bytes(32 << 20);
/// More than any switch has; larger values are slips of the unit. Queues count their bytes in 32 bits.
const LARGEST_BUFFER: Bytes = Bytes(4 << 30);

/// What the other sections decide about the switches.
pub struct SwitchContext<'a> {
    pub rules: Rules,
    pub defaults: SwitchDefaults,
    /// Distinct rates of the links, those of failures included, ascending.
    pub rates: &'a [Rate],
    /// None where there is none that could be read.
    pub topology: Option<&'a Topology>,
    /// Traffic classes of the packets of all workloads, one bit each.
    pub classes: u8,
}

pub fn read(section: &mut Section, cx: &SwitchContext) -> SwitchConfig {
    let help = "shared packet memory of a switch (published: 32 MiB)";
    let buffer = section.parameters().bytes("buffer", DEFAULT_BUFFER, help);
    if buffer == Bytes(0) || buffer > LARGEST_BUFFER {
        let message = format!("{buffer} is not a buffer: expected more than 0 and at most {LARGEST_BUFFER}");
        section.complain("buffer", message);
    }
    let forwarding = forwarding(section);
    let queue = queue(section, "queue discipline of every port", cx);
    let ecn = ecn(section, cx);
    let mut pauses = section.child("pfc");
    let mut pfc = pfc(&mut pauses, cx);
    section.absorb("pfc", pauses);
    let help = "with PFC off: maximum length of a queue, as a multiple of the free buffer (dynamic \
                threshold of Choudhury and Hahne, 1998; 1 is common)";
    let lossy_alpha = section.parameters().number("lossy_alpha", 1.0, (1.0 / 128.0, 128.0), help);
    let mut balancing = section.scheme("balancer");
    let balancer = balancer(&mut balancing, cx.defaults.balancer);
    section.absorb("balancer", balancing);
    let probes = balancer.facts().probe_packet.map_or(0, |(class, _)| 1 << class);
    // Class 0 is never paused.
    pfc.classes = ((cx.classes | probes) & !1).count_ones().max(1);
    let queue = queue.unwrap_or_default();
    let port_queues = port_queues(section, cx);
    super::presets::offer(section);
    SwitchConfig { buffer, forwarding, ecn, pfc, lossy_alpha, balancer, queue, port_queues }
}

/// `queue` of a section; none: something is wrong with it, and reported.
fn queue(section: &mut Section, help: &'static str, cx: &SwitchContext) -> Option<QueueConfig> {
    let mut table = section.scheme("queue");
    let defaults = QueueDefaults {
        limit: cx.defaults.limit,
        trims: cx.defaults.trims,
        drops_headers: cx.rules.dropped_headers,
    };
    let kind = table.kind("queue", Some(cx.defaults.queue), queues(), help);
    let queue = kind.and_then(|kind| QueueConfig::read(kind, &mut table.parameters(), defaults));
    section.absorb("queue", table);
    queue
}

/// The queues of switches, if each port has a buffer of its own. Looks ahead at `[switch]`, whose defaults depend on the transport;
/// what is wrong there is reported there.
pub fn peek_own_buffers(root: &Section) -> Option<Vec<QueueFacts>> {
    let of = |queue: Value| {
        let (kind, mut keys) = peeked(queue)?;
        let kind = kind.unwrap_or(DEFAULT_KIND.to_string());
        let queue = QueueConfig::read(&kind, &mut Parameters::new(&mut keys), QueueDefaults::default());
        queue.map(|queue| queue.facts()).filter(|facts| facts.owns_buffer)
    };
    let ports = match root.peek("switch.port") {
        Some(Value::List(ports)) => ports,
        _ => Vec::new(),
    };
    let of_port = |port: Value| match port {
        Value::Table(keys) => keys.into_iter().find(|(key, _)| key == "queue").map(|(_, queue)| queue),
        _ => None,
    };
    let of_ports = ports.into_iter().map(|port| of_port(port).and_then(of));
    std::iter::once(root.peek("switch.queue").and_then(of)).chain(of_ports).collect()
}

/// How switches choose among paths, if a kind is given. Looks ahead in the same way.
pub fn peek_balancer(root: &Section) -> Option<BalancerConfig> {
    let (kind, mut keys) = peeked(root.peek("switch.balancer")?)?;
    BalancerConfig::read(&kind?, &mut Parameters::new(&mut keys))
}

/// The kind of a scheme, if it is given, and its keys.
fn peeked(scheme: Value) -> Option<(Option<String>, Peeked)> {
    let keys = match scheme {
        Value::Table(keys) => keys,
        Value::Text(kind) => return Some((Some(kind), Peeked(Vec::new()))),
        _ => return None,
    };
    let kind = match keys.iter().find(|(key, _)| key == "kind") {
        Some((_, Value::Text(kind))) => Some(kind.clone()),
        _ => None,
    };
    Some((kind, Peeked(keys)))
}

/// The keys of a table that is looked at before it is read.
struct Peeked(Vec<(String, Value)>);

impl Source for Peeked {
    fn get(&mut self, key: &str) -> Option<Value> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }
    fn complain(&mut self, _key: &str, _message: String) {}
    fn declare(&mut self, _declared: Declared, _resolved: Option<Value>) {}
}

/// `[[switch.port]]`: ports that have a queue of their own.
fn port_queues(section: &mut Section, cx: &SwitchContext) -> Vec<(PortSet, QueueConfig)> {
    let mut tables = section.children("port");
    let mut patterns = cx.topology.map(PortPatterns::of);
    let named = tables.iter_mut().filter_map(|table| port_queue(table, cx, patterns.as_mut()));
    let named: Vec<_> = named.collect();
    section.absorb_list("port", tables);
    cx.topology.map_or_else(Vec::new, |topology| in_force(named, topology))
}

/// For each queue the ports of switches that have it: where several name a port, the last one. Queues that no port has are left
/// out.
fn in_force(named: Vec<(Rc<PortSet>, QueueConfig)>, topology: &Topology) -> Vec<(PortSet, QueueConfig)> {
    let is_switch = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Switch;
    let mut taken: FxHashSet<(NodeId, u32)> = FxHashSet::default();
    // What an equal pattern names is the same set, and all of it is taken.
    let mut seen: FxHashSet<*const PortSet> = FxHashSet::default();
    let mut found = Vec::new();
    for (ports, queue) in named.into_iter().rev().filter(|(ports, _)| seen.insert(Rc::as_ptr(ports))) {
        let own: PortSet =
            ports.iter().copied().filter(|&port| is_switch(port.0) && taken.insert(port)).collect();
        if !own.is_empty() {
            found.push((own, queue));
        }
    }
    found.reverse();
    found
}

/// One of them; none: something is wrong with it, and reported.
pub fn port_queue(
    table: &mut Section,
    cx: &SwitchContext,
    patterns: Option<&mut PortPatterns>,
) -> Option<(Rc<PortSet>, QueueConfig)> {
    let help = "which ports of switches, as a pattern: \"s0->s1\", \"leaf0.p3\", \"leaf*->spine*\"; where several match a port, \
                the last one applies";
    let pattern = table.parameters().text("match", None, help);
    if pattern.is_none() && table.peek("match").is_none() {
        table.complain("match", "missing: expected a pattern of ports such as \"leaf0->spine*\"".into());
    }
    let queue = queue(table, "queue discipline of these ports", cx);
    let (patterns, pattern) = (patterns?, pattern?);
    let nodes = &patterns.topology().nodes;
    match patterns.matching(&pattern) {
        Ok(ports) => {
            if ports.iter().all(|&(node, _)| nodes[node as usize].kind != NodeKind::Switch) {
                let message = format!(
                    "\"{pattern}\" matches only ports of hosts, whose queues belong to their transports"
                );
                table.complain("match", message);
            }
            Some((ports, queue?))
        }
        Err(message) => {
            table.complain("match", message);
            None
        }
    }
}

fn forwarding(section: &mut Section) -> Forwarding {
    let help = "when a packet may leave (published: store-and-forward)";
    let chosen = section.parameters().choice("forwarding", "store-and-forward", FORWARDING, help);
    let help = "bytes that must have arrived before a packet may leave a cut-through switch";
    let cuts_through = chosen != "store-and-forward";
    if cuts_through || section.peek("cut_through_header").is_none() {
        let header = section.parameters().bytes("cut_through_header", Bytes(64), help);
        if !(1..=9000).contains(&header.0) {
            section.complain("cut_through_header", format!("{header} is not between 1B and 9000B"));
        }
        let header = header.0.clamp(1, 9000) as u32;
        if cuts_through {
            return match chosen {
                "cut-through" => Forwarding::CutThrough { header },
                _ => Forwarding::IdealCutThrough { header },
            };
        }
        section.forget("cut_through_header");
        return Forwarding::StoreAndForward;
    }
    section.parameters().bytes("cut_through_header", Bytes(64), help);
    let message = "has no effect with forwarding = \"store-and-forward\": set forwarding = \"cut-through\"";
    section.complain("cut_through_header", message.to_string());
    Forwarding::StoreAndForward
}

/// Thresholds per rate: derived, the same for every rate (a table), or as listed (a list of tables).
fn ecn(section: &mut Section, cx: &SwitchContext) -> Vec<EcnThreshold> {
    let thresholds = match section.peek("ecn") {
        Some(Value::List(_)) => listed_ecn(section, cx),
        _ => common_ecn(section, cx),
    };
    let table = |t: &EcnThreshold| {
        let mut keys = vec![
            ("rate".into(), Value::Text(t.rate.to_string())),
            ("kmin".into(), Value::Text(t.kmin.to_string())),
            ("kmax".into(), Value::Text(t.kmax.to_string())),
            ("pmax".into(), Value::Number(t.pmax)),
        ];
        if t.at == MarkedAt::Arrival {
            keys.push(("at".into(), Value::Text("arrival".into())));
        }
        Value::Table(keys)
    };
    if !thresholds.is_empty() {
        section.resolve("ecn", Value::List(thresholds.iter().map(table).collect()));
    }
    thresholds
}

const KMIN_HELP: &str = "no packet is marked below this queue; auto (published): 100 KB per 25 Gb/s of the port, with DCTCP \
                         30 KB per 10 Gb/s, below 10 Gb/s as at 10 Gb/s";
const KMAX_HELP: &str = "every packet is marked above this queue; auto (published): 400 KB per 25 Gb/s of the port, with DCTCP \
                         30 KB per 10 Gb/s, below 10 Gb/s as at 10 Gb/s";
const PMAX_HELP: &str = "marking probability at kmax (published: 0.2; 1 for DCTCP)";

/// Where none are given; the simulators of `[compat]` have them in proportion to any rate.
fn auto_thresholds(cx: &SwitchContext, rate: Rate) -> EcnThreshold {
    if cx.rules.like == "none" { cx.defaults.ecn.auto(rate) } else { cx.defaults.ecn.at(rate) }
}

/// When a packet is held against the thresholds.
const MARKED_AT: &[(&str, &str)] = &[
    ("departure", "when it leaves, by what waits after it"),
    ("arrival", "when it comes, by what waits before it (DCTCP's paper)"),
];

fn marked_at(p: &mut Parameters) -> MarkedAt {
    let help = "when a packet is marked; auto: departure";
    match p.choice_or_auto("at", MARKED_AT, help) {
        Some("arrival") => MarkedAt::Arrival,
        _ => MarkedAt::Departure,
    }
}

fn common_ecn(section: &mut Section, cx: &SwitchContext) -> Vec<EcnThreshold> {
    let mut table = section.child("ecn");
    let enabled = table.parameters().flag("enabled", cx.defaults.marks, "mark packets at all");
    let kmin = table.parameters().bytes_or_auto("kmin", KMIN_HELP);
    let kmax = table.parameters().bytes_or_auto("kmax", KMAX_HELP);
    let default_pmax = cx.defaults.ecn.at(Rate(0)).pmax;
    let pmax = table.parameters().number("pmax", default_pmax, (0.0, 1.0), PMAX_HELP);
    let at = marked_at(&mut table.parameters());
    let mut thresholds = Vec::new();
    for &rate in cx.rates {
        let auto = auto_thresholds(cx, rate);
        let threshold =
            EcnThreshold { rate, kmin: kmin.unwrap_or(auto.kmin), kmax: kmax.unwrap_or(auto.kmax), pmax, at };
        if enabled && threshold.kmin > threshold.kmax {
            let EcnThreshold { kmin, kmax, .. } = threshold;
            table.complain("kmin", format!("{kmin} is above kmax, which is {kmax} at {rate}"));
            break;
        }
        thresholds.push(threshold);
    }
    section.absorb("ecn", table);
    if !enabled {
        section.resolve("ecn", Value::Table(vec![("enabled".into(), Value::Flag(false))]));
        return Vec::new();
    }
    thresholds
}

fn listed_ecn(section: &mut Section, cx: &SwitchContext) -> Vec<EcnThreshold> {
    let mut tables = section.children("ecn");
    let mut thresholds: Vec<EcnThreshold> = Vec::new();
    for table in &mut tables {
        let rate = table.parameters().rate_or_auto("rate", "rate of the ports that these thresholds are for");
        let kmin = table.parameters().bytes_or_auto("kmin", KMIN_HELP);
        let kmax = table.parameters().bytes_or_auto("kmax", KMAX_HELP);
        let pmax = table.parameters().number("pmax", cx.defaults.ecn.at(Rate(0)).pmax, (0.0, 1.0), PMAX_HELP);
        let at = marked_at(&mut table.parameters());
        let Some(rate) = rate else {
            if table.is_clean() {
                table.complain("rate", "missing: expected the rate of the ports, such as \"100Gbps\"".into());
            }
            continue;
        };
        let auto = auto_thresholds(cx, rate);
        let (kmin, kmax) = (kmin.unwrap_or(auto.kmin), kmax.unwrap_or(auto.kmax));
        if kmin > kmax {
            table.complain("kmin", format!("{kmin} is above kmax, which is {kmax}"));
        }
        if thresholds.iter().any(|t| t.rate == rate) {
            table.complain("rate", format!("{rate} has its thresholds already"));
        }
        thresholds.push(EcnThreshold { rate, kmin, kmax, pmax, at });
    }
    let all_have_rates = thresholds.len() == tables.len();
    section.absorb_list("ecn", tables);
    let given = |rate: &Rate| thresholds.iter().any(|t| t.rate == *rate);
    let missing: Vec<String> = cx.rates.iter().filter(|r| !given(r)).map(Rate::to_string).collect();
    if all_have_rates && !missing.is_empty() {
        let message = format!("no thresholds for links of {}: add a table for each rate", missing.join(", "));
        section.complain("ecn", message);
    }
    thresholds
}

fn pfc(section: &mut Section, cx: &SwitchContext) -> PfcConfig {
    let mut p = section.parameters();
    let enabled = p.flag(
        "enabled",
        cx.defaults.lossless,
        "pause the sender of a full ingress; off: packets are dropped",
    );
    let help = "buffer that belongs to every port and class (published: 4096 B)";
    let reserve = p.bytes("reserve", Bytes(4096), help);
    let help =
        "headroom of a port and class, in units of the port's rate times its link's delay (published: 3)";
    let headroom_factor = p.integer("headroom_factor", 3, (0, 1000), help) as u32;
    let resume_help = "resume when the shared part is this far below the threshold (published: 3072 B)";
    let resume_offset = p.bytes("resume_offset", Bytes(3072), resume_help);
    let help = "threshold = free pool >> shift at the NIC's rate, one less for every doubling above it \
                (published: 3, an alpha of 1/8)";
    let shift = p.integer("shift", 3, (0, 31), help) as u32;
    let help = "additional headroom for three packets and a pause frame, which may be in flight on very short links (the authors' \
                formula omits it, and so does like = \"hpcc-ns3\")";
    let headroom_extra =
        section.parameters().flag_or_auto("headroom_extra", !cx.rules.no_headroom_extra, help);
    PfcConfig { enabled, classes: 1, reserve, headroom_factor, headroom_extra, resume_offset, shift }
}

fn balancer(section: &mut Section, default: &'static str) -> BalancerConfig {
    let help = "how a switch chooses among the shortest paths";
    let kind = section.kind("balancer", Some(default), balancers(), help).unwrap_or(balance::DEFAULT);
    BalancerConfig::read(kind, &mut section.parameters()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
