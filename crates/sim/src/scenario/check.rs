//! Whether the parts of a scenario fit each other: queues, headroom, arbiters, rounds.

use super::Scenario;
use super::network::Network;
use super::section::Section;
use crate::compat::Rules;
use crate::config::SwitchConfig;
use crate::net::buffer::{
    BufferedPort, first_pause, headroom, kept_at_resume, longest_queue, lossless_headroom, set_aside,
};
use crate::parameters::Source;
use crate::queue::PortFacts;
use crate::telemetry::TelemetryConfig;
use crate::topology::NodeKind;
use crate::transport::{self, NicPolicy, RunContext, TransportConfig};
use crate::units::{Bytes, Time, two_digits};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Delay of the longest link, from which on it is computed how long ports are idle after pauses.
const LONG: Time = Time::from_us(10);
/// The part of that time, as its divisor, above which it is worth a warning that a port is idle.
const IDLE: u64 = 10;

/// With PFC on, complains if the reserves of all ports do not fit a switch's buffer.
pub fn headroom_fits(
    section: &mut Section,
    network: Option<&Network>,
    switch: &SwitchConfig,
    transports: &[TransportConfig],
    telemetry: &TelemetryConfig,
) {
    let Some(network) = network.filter(|_| switch.pfc.enabled && section.is_clean()) else { return };
    let topology = &network.topology;
    let packet = transport::largest_packet(transports, telemetry);
    let mut taken = vec![0u64; topology.nodes.len()];
    for link in &topology.links {
        let port = BufferedPort { rate: link.rate, delay: link.delay };
        let bytes = set_aside(&port, &switch.pfc, packet);
        for node in [link.a, link.b] {
            taken[node as usize] = taken[node as usize].saturating_add(bytes);
        }
    }
    let largest = topology.switches().into_iter().max_by_key(|&node| taken[node as usize]);
    let Some(fullest) = largest.filter(|&node| taken[node as usize] >= switch.buffer.0) else { return };
    let classes = match switch.pfc.classes {
        1 => String::new(),
        several => format!(" in {several} classes"),
    };
    let message = format!(
        "the ports of {} need {} of headroom and reserve for PFC{classes}, but the buffer has {}: set a larger buffer, or \
         pfc = {{ enabled = false }}",
        topology.nodes[fullest as usize].name,
        Bytes(taken[fullest as usize]),
        switch.buffer,
    );
    section.complain("buffer", message);
}

/// Complains if transports cannot run with the switches, or with each other.
pub fn transports_fit(
    section: &mut Section,
    network: Option<&Network>,
    (switch, nic_policy): (&SwitchConfig, NicPolicy),
    transports: &[TransportConfig],
    telemetry: &TelemetryConfig,
    rules: &Rules,
) {
    let Some(network) = network.filter(|_| section.is_clean()) else { return };
    let (topology, routes, longest) = (&network.topology, &network.routes, Some(&network.longest));
    let traffic = None;
    let run =
        RunContext { rules, topology, routes, longest, switch, telemetry, transports, nic_policy, traffic };
    for (key, message) in transport::refusals(transports, &run) {
        section.complain(key, message);
    }
}

/// The first warning of a queue about its port.
fn queue_warning(scenario: &Scenario) -> Option<String> {
    let topology = &scenario.network.topology;
    let ports = topology.ports();
    let longest = OnceCell::new();
    let base_rtt = || *longest.get_or_init(|| scenario.network.base_rtt(1000, &Rules::none()).0);
    let packet = transport::largest_packet(&scenario.transports, &scenario.telemetry);
    (0..topology.nodes.len() as u32).find_map(|node| {
        ports[node as usize].iter().zip(0..).find_map(|(&(link, _), local)| {
            let queue = match topology.nodes[node as usize].kind {
                NodeKind::Switch => scenario.switch.queue_at(node, local),
                NodeKind::Host => scenario.host.queue.as_ref()?,
            };
            queue.warning(&PortFacts {
                rate: topology.links[link as usize].rate,
                packet,
                base_rtt: &base_rtt,
                name: &|| topology.port_name(node, local),
            })
        })
    })
}

/// Ports with a private buffer drop and never trigger PFC; others with a limit drop before it.
fn pauses_passed_by(scenario: &Scenario) -> Option<String> {
    let switch = &scenario.switch;
    if !switch.pfc.enabled {
        return None;
    }
    if switch.queues().any(|queue| queue.facts().owns_buffer) {
        let text = "switch.pfc: ports whose queue has a buffer of its own drop instead of pausing: set pfc = { enabled = false } \
                    unless others are to be lossless";
        return Some(text.into());
    }
    if switch.queues().all(|queue| queue.facts().capacity.is_none()) {
        return None;
    }
    let topology = &scenario.network.topology;
    let packet = transport::largest_packet(&scenario.transports, &scenario.telemetry);
    let ports = topology.ports();
    topology.switches().into_iter().find_map(|node| {
        let of_node = &ports[node as usize];
        let limit = |local| switch.queue_at(node, local).facts().capacity;
        let limit = (0..of_node.len() as u32).filter_map(limit).min()?;
        let port = |&(link, _): &(u32, u32)| BufferedPort {
            rate: topology.links[link as usize].rate,
            delay: topology.links[link as usize].delay,
        };
        let buffered: Vec<BufferedPort> = of_node.iter().map(port).collect();
        let nic = topology.nic_rate();
        let pause = first_pause(switch.buffer, &buffered, &switch.pfc, nic, packet)?;
        let longest = longest_queue(switch.buffer, &buffered, &switch.pfc, nic, packet)?;
        let longest = Bytes(longest.next_multiple_of(1000));
        let but = match limit {
            limit if limit.0 < pause => format!(
                "a sender is paused only when {} of its packets wait: pauses prevent no loss",
                Bytes(pause / 1000 * 1000)
            ),
            limit if limit < longest => format!(
                "up to {longest} can wait for one of them before the senders at all other ports are paused: pauses do not \
                 prevent every loss"
            ),
            _ => return None,
        };
        Some(format!(
            "switch.pfc: ports of {} drop what exceeds their limit of {limit} (switch.queue.limit), but {but}. Set pfc = {{ enabled = \
             false }}, or a limit of at least {longest}",
            topology.nodes[node as usize].name,
        ))
    })
}

/// PFC whose headroom does not take all that arrives after a pause is sent. The simulators of `[compat]` have such headroom.
fn headroom_too_small(scenario: &Scenario) -> Option<String> {
    let (switch, links) = (&scenario.switch, &scenario.network.topology.links);
    let pauses = switch.pfc.enabled && switch.queues().any(|queue| !queue.facts().owns_buffer);
    let packet = transport::largest_packet(&scenario.transports, &scenario.telemetry);
    links.iter().filter(|_| pauses && scenario.rules.like == "none").find_map(|link| {
        let port = BufferedPort { rate: link.rate, delay: link.delay };
        let (has, needs) = (headroom(&port, &switch.pfc, packet), lossless_headroom(&port, packet));
        (has < needs).then(|| {
            format!(
                "switch.pfc: headroom is {}, but up to {} may arrive after a pause is sent on a link of {} and {} (what is in flight both \
                 ways, three packets and a pause frame): switches may drop packets although PFC is on. Set headroom_factor = 2 or \
                 more and headroom_extra = true",
                Bytes(has),
                Bytes(needs),
                link.rate,
                link.delay
            )
        })
    })
}

/// Long links after whose pauses a port is idle: what waits there when a pause ends has been sent before data comes again.
fn idle_after_pauses(scenario: &Scenario) -> Option<String> {
    let (switch, topology) = (&scenario.switch, &scenario.network.topology);
    let pauses = switch.pfc.enabled && switch.queues().all(|queue| !queue.facts().owns_buffer);
    let longest = topology.links.iter().map(|link| link.delay).max()?;
    if !pauses || scenario.rules.like != "none" || longest < LONG {
        return None;
    }
    let packet = transport::largest_packet(&scenario.transports, &scenario.telemetry);
    let ports = topology.ports();
    let link = |id: u32| &topology.links[id as usize];
    let idle = |(node, out, from): (u32, u32, Vec<u32>)| {
        let of_node = &ports[node as usize];
        let comes: u128 = from.iter().map(|&id| u128::from(link(id).rate.0)).sum();
        if comes <= u128::from(link(out).rate.0) {
            return None;
        }
        let buffered: Vec<BufferedPort> = of_node
            .iter()
            .map(|&(id, _)| BufferedPort { rate: link(id).rate, delay: link(id).delay })
            .collect();
        let places: Vec<usize> =
            from.iter().filter_map(|id| of_node.iter().position(|(link, _)| link == id)).collect();
        let limits = (topology.nic_rate(), packet);
        let kept = kept_at_resume(switch.buffer, &buffered, &switch.pfc, limits, &places);
        let away = from.iter().map(|&id| link(id).delay).min()?;
        let again = away.saturating_add(away);
        let busy = link(out).rate.transmission_time(kept);
        Some((again.saturating_sub(busy), (node, out, kept, again)))
    };
    let found = super::bottlenecks::queues(scenario).into_iter().filter_map(idle);
    let (idle, (node, out, kept, again)) = found.max_by_key(|(idle, _)| *idle)?;
    (idle.0 > again.0 / IDLE).then(|| {
        format!(
            "switch.pfc: at {} about {} wait when the pauses of its senders end, and their data arrives {again} later: the port is idle for \
             up to {idle} after each pause. Set a larger switch.buffer, so that {} can wait without a pause, or a \
             controller that keeps queues short",
            topology.direction_name(out, node),
            Bytes(two_digits(kept)),
            Bytes(two_digits(link(out).rate.bytes_in(again).0)),
        )
    })
}

/// What deserves a look before the result is trusted.
pub fn warnings(scenario: &Scenario) -> Vec<String> {
    let used: Vec<&TransportConfig> = scenario.transports_used().into_iter().map(|(_, used)| used).collect();
    let mut warnings: Vec<String> = Vec::new();
    for warning in transport::warnings(&used, &scenario.run()) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings.extend(super::balancing::sprayed(scenario));
    warnings.extend(super::balancing::wrapped_subflows(scenario));
    warnings.extend(super::balancing::balancer_warning(scenario));
    warnings.extend(super::balancing::probes_fill_links(scenario));
    warnings.extend(queue_warning(scenario));
    warnings.extend(super::marking::ignored(scenario));
    warnings.extend(pauses_passed_by(scenario));
    warnings.extend(headroom_too_small(scenario));
    warnings.extend(idle_after_pauses(scenario));
    warnings.extend(super::pairs::warnings(scenario));
    warnings.extend(super::codes::warnings(scenario));
    warnings.extend(idle_nics(scenario));
    warnings.extend(jobs_of_one_group(scenario));
    warnings.extend(paths_longer_than_telemetry(scenario));
    warnings
}

/// Telemetry whose number of hops is below the longest path of the network.
fn paths_longer_than_telemetry(scenario: &Scenario) -> Option<String> {
    let switches = || scenario.network.diameter().saturating_sub(1);
    if let TelemetryConfig::Int { max_hops, .. } = &scenario.telemetry {
        let switches = switches();
        let needed = scenario
            .transports_used()
            .into_iter()
            .filter_map(|(_, transport)| transport.facts().controller)
            .any(|controller| controller.needs().int);
        return (needed && switches > *max_hops).then(|| {
            format!(
                "telemetry.max_hops: paths have up to {switches} switches, but the INT header has room for {max_hops}: \
                 senders ignore what longer paths report; set max_hops = {switches}"
            )
        });
    }
    let TelemetryConfig::Pint(pint) = &scenario.telemetry else { return None };
    let maximal = pint.plan.as_ref()?.queries().hops.maximal;
    let switches = switches();
    (switches > maximal).then(|| {
        format!(
            "telemetry.queries: paths have up to {switches} switches, but the plan has hops.maximal = {maximal}: weftline pint decode \
             refuses the digests of longer paths, so that their flows have no results; set maximal = {switches} or more"
        )
    })
}

/// Jobs whose group an earlier one has: their steps are averaged together.
fn jobs_of_one_group(scenario: &Scenario) -> Vec<String> {
    let mut first: BTreeMap<u16, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (index, source) in scenario.traffic.sources.iter().enumerate() {
        let Some(graph) = source.graph() else { continue };
        let before = *first.entry(graph.flow.group).or_insert(index);
        if before != index {
            let name = &scenario.traffic.groups[usize::from(graph.flow.group)];
            found.push(format!(
                "workload.{index}.group: workload {before} is a job of the group \"{name}\", too: metrics of steps are means over \
                 both jobs; give each a group of its own"
            ));
        }
    }
    found
}

/// A job whose lanes are fewer than the NICs of its hosts, where each lane has its NIC.
fn idle_nics(scenario: &Scenario) -> Option<String> {
    let nics = super::host::nics_of_hosts(&scenario.network);
    let graphs = scenario.traffic.sources.iter().filter_map(|source| source.graph());
    let lanes = graphs.map(|graph| graph.seats.lanes() as usize).min()?;
    (scenario.host.nic_policy == NicPolicy::ByLane && lanes < nics).then(|| {
        format!(
            "host.nic_policy: by-rail, a job's hosts send by {lanes} of their {nics} NICs, one for each channel, or for each GPU by \
             ranks_per_host: set channels = {nics}, or another policy"
        )
    })
}
