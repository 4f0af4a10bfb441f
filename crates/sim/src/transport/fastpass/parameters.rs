//! The keys of `transport.kind = "fastpass"`: published values on the published network, scaled to others.
//!
//! Timeslots and epochs are packet times of the slowest host's link, so that every host can use its timeslots. What stands for a round trip
//! grows with it where it is longer than the published network's.
//!
//! Source: the Fastpass of the pHost authors' simulator (commit 8e9cf04; the start rule until September 2015), 10 Gb/s:
//! eight timeslots of 1.275 us, 17/16 of a packet time, in an epoch of 10.2 us.

use super::allocation::SLOTS_PER_EPOCH;
use crate::config::{ArbiterConfig, FastpassConfig, StartRule};
use crate::parameters::{Parameters, nearest};
use crate::topology::{HostId, NodeKind, Topology};
use crate::transport::policy::policy;
use crate::units::{Rate, Time};

const STARTS: &[(&str, &str)] = &[
    ("boundary", "the first timeslot begins `lead` after the arbiter has computed it (as published)"),
    ("receipt", "the first timeslot begins when the schedule is received (the simulator as released)"),
];

const PUBLISHED_RATE: Rate = Rate::from_gbps(10);

const LEAST_TIMEOUT: Time = Time::from_us(1);
const MOST_TIME: Time = Time::from_ms(100_000);

/// What defaults follow from.
#[derive(Clone, Copy)]
pub struct Network<'a> {
    /// The largest base RTT for packets of this payload.
    pub base_rtt: &'a dyn Fn(u32) -> Time,
    /// None: there is none to look hosts and rates up in, and values are the published ones.
    pub topology: Option<&'a Topology>,
}

impl Network<'_> {
    /// What a packet takes on the slowest link of a host that workloads use; bounded, so that no sum can wrap.
    fn packet_time(&self, bytes: u32) -> Time {
        let slowest = self.topology.and_then(|topology| {
            let mut used = vec![false; topology.nodes.len()];
            let hosts = topology.hosts();
            hosts.iter().take(topology.ordinary_hosts()).for_each(|&host| used[host as usize] = true);
            let links = topology.links.iter().filter(|link| used[link.a as usize] || used[link.b as usize]);
            links.map(|link| link.rate).min()
        });
        let rate = slowest.unwrap_or(PUBLISHED_RATE);
        Rate(rate.0.max(1)).transmission_time(u64::from(bytes)).min(Time::from_ms(1))
    }
}

/// Reads the settings of Fastpass.
pub fn read(p: &mut Parameters, network: &Network) -> FastpassConfig {
    let mtu = p.size("mtu", (1460, 64, 9000), "payload of a full packet (published: 1460 B)");
    let header = p.size("header", (40, 0, 1000), "header of a data packet (published: 40 B)");
    let help = "bytes of a request, schedule or acknowledgement (published: 40 B)";
    let control = p.size("control", (40, 1, 1000), help);
    let host = arbiter(p, network.topology);
    let (epoch, slot) = epoch_and_slot(p, network.packet_time(mtu + header));
    let start = start(p, epoch, (network.base_rtt)(control));
    let help = "time that the arbiter computes before its schedules leave (published: none)";
    let compute_time = bounded(p, "compute_time", Time::ZERO, (Time::ZERO, Time::from_ms(100)), help);
    let round_trip = (network.base_rtt)(mtu + header);
    let help = "what is not acknowledged so long after a flow's last packet left is asked for again (published: one epoch; \
                where two base RTTs are more, so much)";
    let default = epoch.max(Time(round_trip.0.saturating_mul(2)));
    let retry = bounded(p, "retry", default, (LEAST_RETRY, MOST_TIME), help);
    let default = Time(epoch.0.max(round_trip.0).saturating_mul(10));
    let help = "a flow that waits for timeslots and hears nothing for so long repeats its request, then after twice the time; \
                the authors' never does, and a lost request or schedule loses the flow (the most of 10 epochs and 10 base \
                RTTs)";
    let request_timeout = bounded(p, "request_timeout", default, (LEAST_TIMEOUT, MOST_TIME), help);
    let help = "traffic class of requests, schedules and acknowledgements; data are in the next one";
    let class = p.integer("class", 1, (1, 6), help) as u8;
    let help = "every packet with a choice of paths is labelled anew, counting up, so that balancers spread it; false: a \
                flow keeps its path";
    let spray = p.flag("spray", true, help);
    let help = "whose packets get a timeslot first";
    let policy = policy(p, help);
    let help = "the arbiter chooses the path of every data packet, so that packets of one timeslot share links as little as can \
                be (Fastpass paper; the pHost authors' spray); between racks that are all joined by the same switches, with the \
                balancer \"label\"";
    let assign_paths = p.flag("assign_paths", false, help);
    let arbiter = ArbiterConfig { host, epoch, slot, start, compute_time, policy, assign_paths };
    FastpassConfig { mtu, header, control, class, arbiter, retry, request_timeout, spray }
}

/// Below it nothing could have been acknowledged anywhere.
const LEAST_RETRY: Time = Time::from_ns(100);

/// A time within bounds; the default is brought within them.
fn bounded(
    p: &mut Parameters,
    key: &'static str,
    default: Time,
    (least, most): (Time, Time),
    help: &'static str,
) -> Time {
    let default = default.clamp(least, most);
    let time = p.time(key, default, help);
    if (least..=most).contains(&time) {
        return time;
    }
    p.complain(key, format!("expected a time from {least} to {most}, found {time}"));
    default
}

/// The host of the arbiter: the first that no workload uses, or the last of all.
fn arbiter(p: &mut Parameters, topology: Option<&Topology>) -> HostId {
    let help = "host of the arbiter, by name or id; where it is not given, the topology's first extra host, which no workload \
                uses, and without one the last host";
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
        "no host \"{given}\"{meant} (there are {count}, the last is \"{last}\"; leaf-spine has extra_hosts for one more)"
    )
}

/// Lengths of an epoch and of one of its timeslots.
fn epoch_and_slot(p: &mut Parameters, packet_time: Time) -> (Time, Time) {
    let help = "length of a timeslot (published: 1.275 us at 10 Gb/s, 17/16 of a packet time)";
    let slot = p.time("slot", Time(packet_time.0 * 17 / 16), help);
    let slots = u64::from(SLOTS_PER_EPOCH);
    if slot < packet_time || slot > MOST_TIME {
        let message = format!(
            "{slot}: a timeslot must be at least as long as a full packet takes on a host's link, {packet_time}, and at most \
             {MOST_TIME}"
        );
        p.complain("slot", message);
    }
    let slot = slot.clamp(packet_time, MOST_TIME);
    let help = "length of an epoch, in which the arbiter gives eight timeslots (published: 10.2 us at 10 Gb/s, eight timeslots; \
                10 us in the first code)";
    let epoch = p.time("epoch", Time(slot.0 * slots), help);
    let least = Time(packet_time.0 * slots);
    if epoch < least || epoch > MOST_TIME {
        let message = format!(
            "{epoch}: an epoch gives eight timeslots, and must be at least as long as eight packets take, {least}, and at \
             most {MOST_TIME}"
        );
        p.complain("epoch", message);
    }
    (epoch.clamp(least, MOST_TIME), slot)
}

/// The start rule; with receipt, a lead means nothing.
fn start(p: &mut Parameters, epoch: Time, control_rtt: Time) -> StartRule {
    let rule = p.choice("start", "boundary", STARTS, "when the first timeslot of a schedule begins");
    let help = "with start = \"boundary\": from the end of the arbiter's computation to the first timeslot (published: one \
                epoch; where a round trip of control packets is more, so much)";
    let lead = bounded(p, "lead", epoch.max(control_rtt), (Time::ZERO, MOST_TIME), help);
    if rule == "receipt" { StartRule::Receipt } else { StartRule::Boundary { lead } }
}
