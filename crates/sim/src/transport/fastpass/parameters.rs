//! The keys of `transport.kind = "fastpass"`: published values on the published network, scaled to others.
//!
//! Timeslots and epochs are packet times of the slowest host's link, so that every host can use its
//! timeslots. What stands for a round trip grows with it where it is longer than the published network's.
//!
//! Source: the Fastpass of the pHost authors' simulator (commit 8e9cf04; the start rule until September
//! 2015), 10 Gb/s: eight timeslots of 1.275 us, 17/16 of a packet time, in an epoch of 10.2 us.

use super::allocation::SLOTS_PER_EPOCH;
use super::{Fastpass, Racks};
use crate::balance;
use crate::doc::{SchemeDoc, Series};
use crate::packet::Packet;
use crate::parameters::{Parameters, Value, nearest};
use crate::telemetry::TelemetryConfig;
use crate::topology::{HostId, NodeKind, Topology};
use crate::transport::TransportConfig;
use crate::transport::pairs::far_above;
use crate::transport::parameters::{
    Answers, COUNTED, Facts, Framing, HostPlan, Permission, ReadContext, RunContext, TransportParameters,
};
use crate::transport::policy::{Policy, policy};
use crate::transport::silence::MAX_DOUBLINGS;
use crate::transport::switches::SwitchDefaults;
use crate::transport::wire_format::WireFormat;
use crate::units::{Bytes, Rate, Time, two_digits};
use std::ops::Range;

const STARTS: &[(&str, &str)] = &[
    ("boundary", "the first timeslot begins `lead` after the arbiter has computed it (as published)"),
    ("receipt", "the first timeslot begins when the schedule is received (the simulator as released)"),
];

const PUBLISHED_RATE: Rate = Rate::from_gbps(10);

const MIN_TIMEOUT: Time = Time::from_us(1);
const MAX_TIME: Time = Time::from_ms(100_000);

/// The rates of the links of hosts that workloads use, without one host.
fn rates_used(topology: &Topology, without: Option<HostId>) -> impl Iterator<Item = Rate> {
    let mut used = vec![false; topology.nodes.len()];
    let hosts = topology.hosts().into_iter().zip(0..).take(topology.ordinary_hosts());
    hosts.filter(|&(_, host)| Some(host) != without).for_each(|(node, _)| used[node as usize] = true);
    topology
        .links
        .iter()
        .filter(move |link| used[link.a as usize] || used[link.b as usize])
        .map(|link| link.rate)
}

/// What a packet takes on the slowest link of a host that workloads use; bounded, so that no sum can wrap.
fn packet_time(topology: Option<&Topology>, bytes: u32) -> Time {
    let slowest = topology.and_then(|topology| rates_used(topology, None).min());
    let rate = slowest.unwrap_or(PUBLISHED_RATE);
    Rate(rate.0.max(1)).transmission_time(u64::from(bytes)).min(Time::from_ms(1))
}

#[derive(Debug, Clone, PartialEq)]
pub struct FastpassConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    pub header: u32,
    /// Bytes of a request, a schedule, an acknowledgement or a word of completion.
    pub control: u32,
    /// Traffic class of control packets; data are in the next.
    pub class: u8,
    pub arbiter: ArbiterConfig,
    /// From the last packet of a flow until what is not acknowledged is requested again.
    pub retry: Time,
    /// After this time without timeslots a source repeats its request.
    pub request_timeout: Time,
    /// Every packet with a choice of paths has a label of its own.
    pub spray: bool,
}

impl FastpassConfig {
    /// Bytes of a full data packet.
    pub fn packet(&self) -> u32 {
        self.mtu + self.header
    }

    /// One packet in each timeslot.
    fn host_rate(&self) -> Rate {
        Rate((u128::from(self.packet()) * 8_000_000_000_000 / u128::from(self.arbiter.slot.0.max(1))) as u64)
    }
}

/// What all flows over Fastpass share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArbiterConfig {
    pub host: HostId,
    /// Epochs run back to back from time 0.
    pub epoch: Time,
    pub slot: Time,
    pub start: StartRule,
    /// From the beginning of an epoch until its schedules leave.
    pub compute_time: Time,
    pub policy: Policy,
    /// It says by which path the packet of each timeslot goes.
    pub assign_paths: bool,
}

impl ArbiterConfig {
    /// What a flow waits for whose request comes at any time of an epoch. It has a request, a schedule for each
    /// epoch in which it gets timeslots, and a message that it has ended.
    fn permission(&self) -> Permission {
        let slots = SLOTS_PER_EPOCH;
        let sent_after = match self.start {
            StartRule::Boundary { lead } => Some(lead),
            StartRule::Receipt => None,
        };
        Permission {
            host: self.host,
            granted_after: Time(self.epoch.0 / 2 + self.compute_time.0),
            sent_after,
            packets: Answers {
                once: 3.0,
                first: (slots.into(), 0.0),
                ..Answers::each(1.0 / f64::from(slots))
            },
        }
    }
}

/// When the first timeslot of a schedule begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartRule {
    /// This long after the arbiter computed the schedule, as published: one epoch there.
    Boundary { lead: Time },
    /// When the source receives the schedule, as in the simulator that was released.
    Receipt,
}

impl TransportParameters for FastpassConfig {
    const DOC: SchemeDoc = SchemeDoc {
        name: "fastpass",
        title: "a central arbiter gives every packet its timeslot (SIGCOMM 2014, as compared with pHost)",
        source: "Perry et al., \"Fastpass: A Centralized Zero-Queue Datacenter Network\", SIGCOMM 2014, as in the simulator of \
                 the pHost authors",
        validation: "Equal to the pHost authors' simulator on unit cases (tests/fastpass.rs); page: \
                     docs/schemes/fastpass.md.",
        series: &[
            Series::new(
                "unscheduled_packets",
                "packets",
                "Packets that the arbiter has given no timeslot yet.",
            ),
            Series::new("missing_packets", "packets", "Packets that no acknowledgement has come for."),
        ],
        ..SchemeDoc::NONE
    };
    type State = Box<Fastpass>;

    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<FastpassConfig> {
        let mtu = p.size("mtu", (1460, 64, 9000), "payload of a full packet (published: 1460 B)");
        let header = p.size("header", (40, 0, 1000), "header of a data packet (published: 40 B)");
        let help = "bytes of a request, schedule or acknowledgement (published: 40 B)";
        let control = p.size("control", (40, 1, 1000), help);
        let host = arbiter(p, cx.topology);
        if cx.topology.is_some_and(|topology| !topology.parts.is_empty()) {
            let message = "its arbiter must reach every host, and no switch joins all parts of this network";
            p.complain("kind", message.to_string());
        }
        let (epoch, slot) = epoch_and_slot(p, packet_time(cx.topology, mtu + header));
        let start = start(p, epoch, (cx.base_rtt)(control));
        let help = "computation time of the arbiter before its schedules leave (published: none)";
        let compute_time = bounded(p, "compute_time", Time::ZERO, (Time::ZERO, Time::from_ms(100)), help);
        let round_trip = (cx.base_rtt)(mtu + header);
        let help = "timeslots are requested again for packets that are not acknowledged within this time after the \
                    flow's last packet left (published: one epoch; here the larger of one epoch and two base RTTs)";
        let default = epoch.max(Time(round_trip.0.saturating_mul(2)));
        let retry = bounded(p, "retry", default, (MIN_RETRY, MAX_TIME), help);
        let default = Time(epoch.0.max(round_trip.0).saturating_mul(10));
        let help = "a flow that waits for timeslots and receives nothing within this time repeats its request, and \
                    doubles the time with every repetition (default: the larger of 10 epochs and 10 base RTTs); the \
                    authors' simulator repeats no request, so that a lost request or schedule loses the flow";
        let request_timeout = bounded(p, "request_timeout", default, (MIN_TIMEOUT, MAX_TIME), help);
        let help = "traffic class of requests, schedules and acknowledgements; data are in the next one";
        let class = p.integer("class", 1, (1, 6), help) as u8;
        let spray = p.flag("spray", true, COUNTED);
        let help = "whose packets get a timeslot first";
        let policy = policy(p, help);
        let help = "the arbiter chooses the path of every data packet, so that packets of one timeslot share as few \
                    links as possible (Fastpass paper; the pHost authors' simulator sprays); needs racks that are \
                    all connected by the same switches, and the balancer \"label\"";
        let assign_paths = p.flag("assign_paths", false, help);
        let arbiter = ArbiterConfig { host, epoch, slot, start, compute_time, policy, assign_paths };
        if arbiter.start == StartRule::Receipt {
            p.without_effect("lead", || {
                "has no effect with start = \"receipt\": set start = \"boundary\"".into()
            });
        }
        let alone = cx.topology.is_none_or(|topology| topology.extra_hosts > 0);
        if !alone && p.peek("arbiter").is_none() {
            let message = "transport.arbiter: the arbiter runs on the last host, which may carry traffic as well; \
                           set arbiter, or on a leaf-spine network topology.extra_hosts = 1 for a separate host";
            p.warn(message.into());
        }
        Some(FastpassConfig { mtu, header, control, class, arbiter, retry, request_timeout, spray })
    }

    fn of(transport: &TransportConfig) -> Option<&FastpassConfig> {
        if let TransportConfig::Fastpass(own) = transport { Some(own) } else { None }
    }

    fn classes(&self) -> u8 {
        0b11 << self.class
    }

    fn framing(&self, _telemetry: &TelemetryConfig) -> Framing {
        Framing::of(self.mtu, self.header, self.control)
    }

    fn data_header(&mut self) -> &mut u32 {
        &mut self.header
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            labels_packets: self.spray,
            spreads_flows: self.spray || self.arbiter.assign_paths,
            any_order: true,
            one_nic: Some("the arbiter gives a host one packet in every timeslot of one link"),
            longest_timeout: Time(self.request_timeout.0 << MAX_DOUBLINGS).max(self.retry),
            needs_host: Some(("transport.arbiter", self.arbiter.host)),
            host_rate: Some(self.host_rate()),
            permission: Some(self.arbiter.permission()),
            ns_per_hop: 58.0,
            ..Facts::default()
        }
    }

    fn switch_defaults(&self) -> SwitchDefaults {
        SwitchDefaults {
            queue: "priority",
            // Published: 36 KiB. Queues are those of packets that meet by chance, whatever the round trip.
            limit: Some(Bytes((24 * u64::from(self.packet())).max(36 << 10))),
            balancer: balance::BY_LABEL,
            ..SwitchDefaults::LOSSY
        }
    }

    fn clash(&self, other: &FastpassConfig) -> Option<String> {
        let message = "the workloads configure two different Fastpass arbiters: arbiter, epoch, slot, start, lead, \
                       compute_time and policy must be the same for all of them";
        (self.arbiter != other.arbiter).then(|| message.to_string())
    }

    /// The arbiter is to assign paths and cannot.
    fn refusals(&self, run: &RunContext) -> Vec<(&'static str, String)> {
        if !self.arbiter.assign_paths {
            return Vec::new();
        }
        let mut refused = Vec::new();
        if !run.switch.balancer.facts().follows_labels {
            let message = format!(
                "transport.assign_paths needs switches that follow the packet's label: set kind = {:?}",
                balance::BY_LABEL
            );
            refused.push(("balancer", message));
        }
        if let Err(why) = Racks::of(run.topology, run.routes) {
            let message = format!(
                "transport.assign_paths needs racks that are all connected by the same switches (leaf-spine, star): \
                 {why}"
            );
            refused.push(("balancer", message));
        }
        refused
    }

    /// Every source with a timeslot is sent a schedule in every epoch, over the arbiter's one link; and every flow
    /// waits for its first timeslot as long as the host that is farthest away needs.
    fn warnings(&self, run: &RunContext) -> Vec<String> {
        let (topology, arbiter) = (run.topology, &self.arbiter);
        let Some(&node) = topology.hosts().get(arbiter.host as usize) else { return Vec::new() };
        let links = topology.links.iter().filter(|link| link.a == node || link.b == node);
        let rate = Rate(links.map(|link| link.rate.0).sum());
        let packets = if arbiter.assign_paths { 2 } else { 1 };
        let hosts = topology.ordinary_hosts() as u64;
        let takes = rate.transmission_time(hosts * packets * u64::from(self.control));
        let name = &topology.nodes[node as usize].name;
        let warning = (takes > arbiter.epoch).then(|| {
            format!(
                "transport.arbiter: the link of {name} needs {takes} to send a schedule to each of {hosts} hosts, \
                 but an epoch is {}: if that many hosts send at the same time, schedules queue up; give it a faster \
                 link with [[topology.override]] between = [\"{name}\", \"*\"]",
                arbiter.epoch
            )
        });
        warning.into_iter().chain(self.held_back(run)).chain(self.lead_for_few(run)).collect()
    }

    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        let arbiter = run.topology.hosts().get(self.arbiter.host as usize).copied();
        let name = arbiter.map(|node| run.topology.nodes[node as usize].name.as_str());
        vec![
            ("base_rtt_ns", Some(self.base_rtt(run).as_ns().into())),
            ("data_packet_bytes", Some(self.packet().into())),
            ("ack_bytes", Some(self.control.into())),
            ("arbiter", name.map(Value::from)),
            ("epoch_ns", Some(self.arbiter.epoch.as_ns().into())),
            ("slot_ns", Some(self.arbiter.slot.as_ns().into())),
            ("retry_ns", Some(self.retry.as_ns().into())),
            ("request_timeout_ns", Some(self.request_timeout.as_ns().into())),
        ]
    }

    fn carried(packet: &Packet) -> Range<u64> {
        let number = packet.seq & u64::from(u32::MAX);
        number..number + 1
    }
    fn number_bytes(&self) -> u64 {
        self.mtu.into()
    }

    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Timeslots(self)
    }

    fn start(&self, host: &HostPlan) -> Box<Fastpass> {
        let arbiter = &self.arbiter;
        let assigns = arbiter.assign_paths && arbiter.host == host.host;
        // A scenario on a network where paths cannot be assigned is refused.
        let racks = assigns.then(|| Racks::of(host.topology, host.routes).ok()).flatten();
        Box::new(Fastpass::new(host.ports, arbiter, host.routes.hosts(), racks, (host.seed, host.host)))
    }
}

impl FastpassConfig {
    /// Timeslots that follow the slowest of hosts with links of different rates.
    fn held_back(&self, run: &RunContext) -> Option<String> {
        let slowest = rates_used(run.topology, None).min()?;
        let fastest = rates_used(run.topology, Some(self.arbiter.host)).max()?;
        // A longer timeslot than the slowest host needs is a choice of its own.
        (slowest < fastest && 2 * self.host_rate().0 > slowest.0).then(|| {
            format!(
                "transport.slot: timeslots are {} for all hosts, because the slowest link of a host ({slowest}) needs this time for a \
                 packet: hosts with links of up to {fastest} send and receive at most {}; give all hosts links of the same rate",
                self.arbiter.slot,
                Rate(two_digits(self.host_rate().0))
            )
        })
    }

    /// A lead that follows the longest round trip where that of most hosts is far shorter.
    fn lead_for_few(&self, run: &RunContext) -> Option<String> {
        let StartRule::Boundary { lead } = self.arbiter.start else { return None };
        let longest = run.base_rtt(self.control).0;
        if lead < longest {
            return None;
        }
        let epoch = self.arbiter.epoch;
        let median = Time(far_above(longest.0, epoch.0, || run.median_pair(self.control, false).0.0)?);
        Some(format!(
            "transport.lead: the default follows the longest round trip of control packets, {longest}, and that of the median pair \
             of hosts is {median}: every flow waits {lead} for its first timeslot; unless distant hosts have flows, set lead to \
             about {}, and retry and request_timeout for that round trip",
            epoch.max(median)
        ))
    }
}

/// Below it nothing could have been acknowledged anywhere.
const MIN_RETRY: Time = Time::from_ns(100);

/// A time within bounds; the default is brought within them.
fn bounded(
    p: &mut Parameters,
    key: &'static str,
    default: Time,
    (min, max): (Time, Time),
    help: &'static str,
) -> Time {
    let default = default.clamp(min, max);
    let time = p.time(key, default, help);
    if (min..=max).contains(&time) {
        return time;
    }
    p.complain(key, format!("expected a time from {min} to {max}, found {time}"));
    default
}

/// The host of the arbiter: the first that no workload uses, or the last of all.
fn arbiter(p: &mut Parameters, topology: Option<&Topology>) -> HostId {
    let help = "host of the arbiter, by name or id; default: the topology's first extra host, which no workload \
                uses, or the last host if there is no extra host";
    let Some(topology) = topology else {
        p.text("arbiter", Some("auto"), help);
        return 0;
    };
    let hosts = topology.hosts();
    let default = topology.ordinary_hosts().min(hosts.len().saturating_sub(1));
    let name = |host: usize| hosts.get(host).map_or("", |&node| &topology.nodes[node as usize].name);
    let given = p.text("arbiter", Some(name(default)), help).unwrap_or_default();
    if given == "auto" {
        return default as HostId;
    }
    let id: Option<u32> = given.parse().ok();
    let is_meant =
        |&host: &usize| name(host) == given || id.is_some_and(|id| topology.host_label(host as HostId) == id);
    match (0..hosts.len()).find(is_meant) {
        Some(host) => host as HostId,
        None => {
            p.complain("arbiter", no_such_host(&given, topology, name(hosts.len().saturating_sub(1))));
            default as HostId
        }
    }
}

fn no_such_host(given: &str, topology: &Topology, last: &str) -> String {
    let count = topology.hosts().len();
    if let Some(switch) = topology.nodes.iter().find(|n| n.name == given && n.kind == NodeKind::Switch) {
        return format!("{} is a switch: the arbiter needs a host, such as \"{last}\"", switch.name);
    }
    let names = || topology.nodes.iter().filter(|n| n.kind == NodeKind::Host).map(|n| n.name.as_str());
    let near = nearest(given, names()).filter(|_| count <= 1000);
    let meant = near.map_or(String::new(), |near| format!(": did you mean \"{near}\"?"));
    format!(
        "no host \"{given}\"{meant} (there are {count}, the last is \"{last}\"; leaf-spine can add one with \
         extra_hosts)"
    )
}

/// Lengths of an epoch and of one of its timeslots.
fn epoch_and_slot(p: &mut Parameters, packet_time: Time) -> (Time, Time) {
    let help = "length of a timeslot (published: 1.275 us at 10 Gb/s, 17/16 of a packet time)";
    let slot = p.time("slot", Time(packet_time.0 * 17 / 16), help);
    let slots = u64::from(SLOTS_PER_EPOCH);
    if slot < packet_time || slot > MAX_TIME {
        let message = format!(
            "{slot}: a timeslot must be at least the time that a full packet takes on a host's link, {packet_time}, \
             and at most {MAX_TIME}"
        );
        p.complain("slot", message);
    }
    let slot = slot.clamp(packet_time, MAX_TIME);
    let help = "length of an epoch, in which the arbiter assigns eight timeslots (published: 10.2 us at 10 Gb/s, \
                eight timeslots; 10 us in the first code)";
    let epoch = p.time("epoch", Time(slot.0 * slots), help);
    let min = Time(packet_time.0 * slots);
    if epoch < min || epoch > MAX_TIME {
        let message = format!(
            "{epoch}: an epoch has eight timeslots, and must be at least the time that eight packets take, {min}, \
             and at most {MAX_TIME}"
        );
        p.complain("epoch", message);
    }
    (epoch.clamp(min, MAX_TIME), slot)
}

/// The start rule; with receipt, a lead means nothing.
fn start(p: &mut Parameters, epoch: Time, control_rtt: Time) -> StartRule {
    let rule = p.choice("start", "boundary", STARTS, "when the first timeslot of a schedule begins");
    let help = "with start = \"boundary\": time from the end of the arbiter's computation to the first timeslot \
                (published: one epoch; here the larger of one epoch and a round trip of control packets)";
    let lead = bounded(p, "lead", epoch.max(control_rtt), (Time::ZERO, MAX_TIME), help);
    if rule == "receipt" { StartRule::Receipt } else { StartRule::Boundary { lead } }
}
