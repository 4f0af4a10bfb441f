//! `[host]`: what a host does with packets between its transports and its links.

use super::document::{self, Table};
use super::network::Network;
use super::section::Section;
use crate::compat::Rules;
use crate::config::{HostConfig, ResequencingConfig};
use crate::parameters::{Source, Value};
use crate::queue::{self, QueueConfig, QueueDefaults};
use crate::transport::TransportConfig;
use crate::transport::binding::{NicPolicy, POLICIES};
use crate::units::{Bytes, Time};
use std::sync::LazyLock;

/// More would be a host that answers once a second.
const MAX_PACKET_TIME: Time = Time::from_ms(1000);

/// The queue of every NIC of ns-3.
static NS3_QUEUE: LazyLock<Table> =
    LazyLock::new(|| document::parse(queue::OF_NS3_HOSTS, "").expect("a table of a discipline"));

/// Reads `[host]`.
pub fn read(
    section: &mut Section,
    transports: &[TransportConfig],
    net: Option<&Network>,
    rules: &Rules,
) -> HostConfig {
    let help = "time that a host's processor takes for each packet that comes, data, acknowledgement or signal, one after the other; \
                the packets wait for it in order, without limit";
    let packet_time = section.parameters().time("packet_time", Time::ZERO, help);
    if packet_time > MAX_PACKET_TIME {
        section.complain("packet_time", format!("expected at most {MAX_PACKET_TIME}, found {packet_time}"));
    }
    let mut table = section.child("resequencing");
    let help = "receivers put data packets back in order before their transports see them; packet-level balancers need it";
    let enabled = table.parameters().flag("enabled", false, help);
    let help =
        "maximum time for which a packet waits for those before it (ours; public versions: 50us to 500us)";
    let timeout = table.parameters().time("timeout", Time::from_us(250), help);
    let help = "maximum payload of one flow that is held (ours); beyond it, all of it is delivered";
    let buffer = table.parameters().bytes("buffer", Bytes(1_000_000), help);
    if enabled {
        if timeout == Time::ZERO {
            table.complain(
                "timeout",
                "must be greater than 0; enabled = false switches resequencing off".into(),
            );
        }
        let by_number = transports.iter().find(|transport| transport.facts().any_order);
        if let Some(transport) = by_number {
            let message = format!(
                "{} accepts packets in any order: resequencing is for rdma, tcp and pfabric",
                transport.name()
            );
            table.complain("enabled", message);
        }
    }
    section.absorb("resequencing", table);
    let queue = queue(section, transports, rules);
    let nic_policy = nic_policy(section, transports, net, rules);
    // A mode that has a queue refuses this by itself.
    if queue.is_some() && section.peek("queue").is_some() && nic_policy == NicPolicy::All {
        let message =
            "\"all\" is not possible with host.queue: a packet waits for one NIC; take \"round-robin\"";
        section.complain("nic_policy", message.into());
    }
    HostConfig {
        queue,
        resequencing: enabled.then_some(ResequencingConfig { timeout, buffer }),
        packet_time,
        nic_policy,
    }
}

/// `queue`; none: there is none, or something is wrong with it and reported.
fn queue(section: &mut Section, transports: &[TransportConfig], rules: &Rules) -> Option<QueueConfig> {
    let mut table = if section.peek("queue").is_some() {
        section.scheme("queue")
    } else {
        section.offer("queue");
        let fit = !transports.is_empty() && transports.iter().all(|transport| transport.facts().fills_queue);
        if !rules.queues_in_hosts || !fit {
            return None;
        }
        let path = format!("{}.queue", section.path());
        Section::over(section.file(), &path, &NS3_QUEUE, section.origin())
    };
    let kind = queue_kind(&mut table);
    let queue =
        kind.and_then(|kind| QueueConfig::read(kind, &mut table.parameters(), QueueDefaults::default()));
    if let Some(queue) = queue.as_ref().filter(|queue| !queue.facts().owns_buffer) {
        let message = format!(
            "{:?} shares the buffer of a switch, which hosts do not have: give it a limit of its own if it has one \
             (packets), or choose another, such as \"fq-codel\"",
            queue.name()
        );
        table.complain("kind", message);
    }
    if let Some(transport) = transports.iter().find(|transport| !transport.facts().fills_queue) {
        let message = format!(
            "{} makes a packet when the NIC is free: a queue of the host is for tcp and mptcp",
            transport.name()
        );
        table.complain("kind", message);
    }
    section.absorb("queue", table);
    queue
}

/// Which discipline the table `queue` names.
pub fn queue_kind(table: &mut Section) -> Option<&'static str> {
    let help = "queue discipline in front of every NIC of a host, which transports fill as their windows allow, as operating systems \
                do; without it they make a packet when the NIC is free";
    table.kind("queue", None, queue::kinds(), help)
}

/// The policy, before `[host]` is read: what transports derive from the rate of a host depends on it.
pub fn peek_policy(root: &Section) -> NicPolicy {
    match root.peek("host.nic_policy") {
        Some(Value::Text(name)) => NicPolicy::named(&name),
        _ => NicPolicy::default(),
    }
}

fn nic_policy(
    section: &mut Section,
    transports: &[TransportConfig],
    net: Option<&Network>,
    rules: &Rules,
) -> NicPolicy {
    let mut p = section.parameters();
    let help = "by which of its NICs a flow leaves a host that has several";
    let name = p.choice("nic_policy", POLICIES[0].0, POLICIES, help);
    if let Some(net) = net.filter(|net| nics_of_hosts(net) < 2) {
        let hosts = net.topology.hosts().len();
        let message = format!(
            "has no effect: each of the {hosts} hosts has one NIC (topology.kind = \"hpn\" has several)"
        );
        p.without_effect("nic_policy", || message);
    } else if !transports.is_empty()
        && transports.iter().all(|transport| transport.facts().subflows.is_some())
    {
        p.without_effect("nic_policy", || "has no effect: subflows of mptcp use all NICs".to_string());
    } else if NicPolicy::named(name) == NicPolicy::All {
        if let Some(reason) = bound(transports, rules) {
            p.complain("nic_policy", format!("\"all\" is not possible: {reason}; take \"round-robin\""));
        }
    }
    NicPolicy::named(name)
}

/// Why packets of a flow keep to one NIC in a scenario.
fn bound(transports: &[TransportConfig], rules: &Rules) -> Option<String> {
    if rules.like != "none" {
        return Some(format!("with compat.like = \"{}\" a flow leaves by one NIC", rules.like));
    }
    transports.iter().find_map(|transport| {
        let why = transport.facts().one_nic?;
        Some(format!("with transport.kind = \"{}\" {why}", transport.name()))
    })
}

/// Links of the host that has the highest number of them.
pub fn nics_of_hosts(net: &Network) -> usize {
    let ports = net.topology.ports();
    net.topology.hosts().iter().map(|&node| ports[node as usize].len()).max().unwrap_or(0)
}
