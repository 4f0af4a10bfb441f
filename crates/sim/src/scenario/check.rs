//! What follows from a scenario before it is run: rates, base RTT, windows, thresholds, headroom, flows, and how much
//! work the run is.

use serde_json::{Value, json};

use super::Scenario;
use super::estimate::Estimate;
use super::network::Network;
use super::replay::MOST_FLOWS;
use super::section::Section;
use crate::config::{
    BalancerConfig, Compat, DisciplineConfig, FastpassConfig, ManagedConfig, MptcpConfig, PfabricConfig,
    PhostConfig, QueueConfig, RdmaConfig, SwitchConfig, TcpConfig, TelemetryConfig, TransportConfig, Until,
};
use crate::congestion::Window;
use crate::net::buffer::{BufferedPort, headroom};
use crate::parameters::Source;
use crate::settings::{Settings, telemetry_bytes, with_telemetry};
use crate::topology::{Link, NodeId, NodeKind, PathTimes, Topology};
use crate::transport::fastpass::Racks;
use crate::units::{Bytes, Rate, Time};
use crate::workload::{AskedLoad, TrafficSize};

/// Everything that can be said before the run on so many threads, as `weftline check` prints it.
pub fn facts(scenario: &Scenario, threads: usize) -> Value {
    let size = scenario.traffic.size_up();
    let estimate = Estimate::of(scenario, &size, threads, MOST_FLOWS);
    let too_large = scenario.memory.and_then(|limit| estimate.memory_warning(limit));
    let warnings: Vec<&String> = scenario.warnings.iter().chain(&too_large).collect();
    let asked = asked_load(scenario, &size);
    let until_ns = match scenario.until {
        Until::At(time) => Some(time.as_ns()),
        Until::FlowsDone { .. } => None,
    };
    json!({
        "name": scenario.name,
        "seed": scenario.seed,
        "compat": if scenario.compat == Compat::HpccNs3 { "hpcc-ns3" } else { "none" },
        "topology": topology_facts(&scenario.network),
        "transports": scenario.transports.iter().map(|t| transport_facts(scenario, t)).collect::<Vec<_>>(),
        "ecn": ecn_facts(&scenario.switch),
        "pfc": pfc_facts(scenario),
        "traffic": {
            "flows": size.flows,
            "counted_all": size.complete,
            "bytes": size.bytes,
            "last_start_ns": size.last_start.as_ns(),
            "flows_not_due": not_due(scenario, &size, &estimate),
            "offered_load": offered_load(&size, &scenario.network.topology),
            "offered_load_asked": asked.map(|(asked, _)| asked),
            "offered_load_error": asked.map(|(_, error)| error),
            "groups": scenario.traffic.groups,
        },
        "run": {
            "until_ns": until_ns,
            "threads": threads,
            "memory_limit_bytes": scenario.memory.map(|limit| limit.0),
        },
        "estimate": estimate_facts(&estimate),
        "warnings": warnings,
    })
}

fn topology_facts(network: &Network) -> Value {
    let topology = &network.topology;
    let mut links: Vec<(Rate, Time, u64)> = Vec::new();
    for link in &topology.links {
        match links.iter_mut().find(|(rate, delay, _)| (*rate, *delay) == (link.rate, link.delay)) {
            Some((_, _, count)) => *count += 1,
            None => links.push((link.rate, link.delay, 1)),
        }
    }
    links.sort_unstable();
    let link = |&(rate, delay, count): &(Rate, Time, u64)| json!({ "rate_bps": rate.0, "delay_ns": delay.as_ns(), "count": count });
    json!({
        "nodes": topology.nodes.len(),
        "hosts": topology.hosts().len(),
        "extra_hosts": topology.extra_hosts,
        "switches": topology.switches().len(),
        "links": topology.links.len(),
        "kinds_of_link": links.iter().map(link).collect::<Vec<_>>(),
        "diameter_hops": diameter(network),
        "oversubscription": oversubscription(topology),
    })
}

/// Links on the longest of the shortest paths between hosts.
fn diameter(network: &Network) -> u32 {
    let times = PathTimes::new(&network.topology, &network.routes);
    let hosts = times.representatives();
    let pairs = hosts.iter().flat_map(|&src| hosts.iter().map(move |&dst| (src, dst)));
    pairs.filter_map(|(src, dst)| times.pair(src, dst)).map(|path| path.hops).max().unwrap_or(0)
}

/// Largest ratio, over the switches next to hosts, of what the hosts can send to what leads on; none without links
/// that lead on.
fn oversubscription(topology: &Topology) -> Option<f64> {
    let tier = |node: NodeId| topology.nodes[node as usize].tier;
    let mut down = vec![0u128; topology.nodes.len()];
    let mut up = vec![0u128; topology.nodes.len()];
    for Link { a, b, rate, .. } in &topology.links {
        for (near, far) in [(*a, *b), (*b, *a)] {
            let sum = if tier(far) == 0 { &mut down } else { &mut up };
            sum[near as usize] += u128::from(rate.0);
        }
    }
    let edges = (0..topology.nodes.len()).filter(|&n| tier(n as NodeId) > 0 && down[n] > 0 && up[n] > 0);
    edges.map(|n| down[n] as f64 / up[n] as f64).max_by(f64::total_cmp)
}

fn transport_facts(scenario: &Scenario, transport: &TransportConfig) -> Value {
    match &with_telemetry(transport, &scenario.telemetry) {
        TransportConfig::Rdma(rdma) => rdma_facts(scenario, rdma),
        TransportConfig::Phost(phost) => phost_facts(scenario, phost),
        TransportConfig::Pfabric(pfabric) => pfabric_facts(scenario, pfabric),
        TransportConfig::Fastpass(fastpass) => fastpass_facts(scenario, fastpass),
        TransportConfig::Tcp(tcp) => tcp_facts(scenario, tcp),
        TransportConfig::Mptcp(mptcp) => mptcp_facts(scenario, mptcp),
    }
}

fn pfabric_facts(scenario: &Scenario, pfabric: &PfabricConfig) -> Value {
    let (base_rtt, _) = scenario.network.base_rtt(pfabric.mtu, scenario.compat);
    json!({
        "transport": "pfabric",
        "base_rtt_ns": base_rtt.as_ns(),
        "data_packet_bytes": pfabric.mtu + pfabric.header,
        "ack_bytes": pfabric.ack_header,
        "window_packets": pfabric.initial_window,
        "queue_limit_bytes": pfabric.queue_limit.0,
        "rto_ns": pfabric.rto.as_ns(),
    })
}

fn fastpass_facts(scenario: &Scenario, fastpass: &FastpassConfig) -> Value {
    let (base_rtt, _) = scenario.network.base_rtt(fastpass.packet(), scenario.compat);
    let topology = &scenario.network.topology;
    let arbiter = topology.hosts().get(fastpass.arbiter.host as usize).copied();
    json!({
        "transport": "fastpass",
        "base_rtt_ns": base_rtt.as_ns(),
        "data_packet_bytes": fastpass.packet(),
        "ack_bytes": fastpass.control,
        "arbiter": arbiter.map(|node| &topology.nodes[node as usize].name),
        "epoch_ns": fastpass.arbiter.epoch.as_ns(),
        "slot_ns": fastpass.arbiter.slot.as_ns(),
        "retry_ns": fastpass.retry.as_ns(),
        "request_timeout_ns": fastpass.request_timeout.as_ns(),
    })
}

fn tcp_facts(scenario: &Scenario, tcp: &TcpConfig) -> Value {
    let (base_rtt, _) = scenario.network.base_rtt(tcp.packet(), scenario.compat);
    json!({
        "transport": "tcp",
        "controller": tcp.controller.name(),
        "base_rtt_ns": base_rtt.as_ns(),
        "data_packet_bytes": tcp.packet(),
        "ack_bytes": tcp.ack_header,
        "send_buffer_bytes": tcp.send_buffer,
        "receive_buffer_bytes": tcp.receive_buffer,
        "rto_ns": tcp.rto.least.as_ns(),
    })
}

fn mptcp_facts(scenario: &Scenario, mptcp: &MptcpConfig) -> Value {
    let mut facts = tcp_facts(scenario, &mptcp.tcp);
    facts["transport"] = json!("mptcp");
    facts["subflows"] = json!(mptcp.subflows);
    facts
}

fn phost_facts(scenario: &Scenario, phost: &PhostConfig) -> Value {
    let (base_rtt, _) = scenario.network.base_rtt(phost.packet(), scenario.compat);
    json!({
        "transport": "phost",
        "base_rtt_ns": base_rtt.as_ns(),
        "data_packet_bytes": phost.packet(),
        "ack_bytes": phost.control,
        "free_tokens": phost.free_tokens,
        "window_tokens": phost.window,
        "request_timeout_ns": phost.request_timeout.as_ns(),
    })
}

fn rdma_facts(scenario: &Scenario, rdma: &RdmaConfig) -> Value {
    let (base_rtt, window) = base_rtt_and_window(scenario, rdma);
    let telemetry = telemetry_bytes(rdma, &scenario.telemetry);
    json!({
        "controller": rdma.controller.name(),
        "base_rtt_ns": base_rtt.as_ns(),
        "window_bytes": window,
        "data_packet_bytes": rdma.mtu + rdma.header + telemetry,
        "ack_bytes": (rdma.ack_header + telemetry).max(rdma.ack_least),
        "telemetry_bytes": telemetry,
        "ack_priority": rdma.ack_priority,
        "rto_ns": rdma.rto.map(Time::as_ns),
    })
}

/// T, and the window at full rate in bytes if there is one.
pub fn base_rtt_and_window(scenario: &Scenario, rdma: &RdmaConfig) -> (Time, Option<u64>) {
    let (longest, largest) = scenario.network.base_rtt(rdma.mtu, scenario.compat);
    let base_rtt = rdma.base_rtt.unwrap_or(longest);
    let derived = match (rdma.controller.windowed(), scenario.compat) {
        (Window::None, _) => None,
        // The authors size every window by the largest bandwidth-delay product of the network.
        (_, Compat::HpccNs3) => Some(largest),
        (_, Compat::None) => Some(host_rate(&scenario.network.topology).bytes_in(base_rtt).0),
    };
    (base_rtt, rdma.window.map(|window| window.0).or(derived))
}

/// The highest rate of a host's link.
pub fn host_rate(topology: &Topology) -> Rate {
    let host_link = |link: &&Link| [link.a, link.b].iter().any(|&n| topology.nodes[n as usize].tier == 0);
    topology.links.iter().filter(host_link).map(|link| link.rate).max().unwrap_or_default()
}

fn ecn_facts(switch: &SwitchConfig) -> Vec<Value> {
    let threshold = |t: &crate::config::EcnThreshold| json!({ "rate_bps": t.rate.0, "kmin_bytes": t.kmin.0, "kmax_bytes": t.kmax.0, "pmax": t.pmax });
    switch.ecn.iter().map(threshold).collect()
}

fn pfc_facts(scenario: &Scenario) -> Value {
    let mut kinds: Vec<(Rate, Time)> =
        scenario.network.topology.links.iter().map(|link| (link.rate, link.delay)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let packet = Settings::largest_packet(&scenario.transports, &scenario.telemetry);
    let headroom = |&(rate, delay): &(Rate, Time)| {
        let bytes = headroom(&BufferedPort { rate, delay }, &scenario.switch.pfc, packet);
        json!({ "rate_bps": rate.0, "delay_ns": delay.as_ns(), "headroom_bytes": bytes })
    };
    json!({
        "enabled": scenario.switch.pfc.enabled,
        "buffer_bytes": scenario.switch.buffer.0,
        "headroom": kinds.iter().map(headroom).collect::<Vec<_>>(),
    })
}

/// With PFC on, says so if what every port reserves does not fit a switch's buffer.
pub fn headroom_fits(
    section: &mut Section,
    network: Option<&Network>,
    switch: &SwitchConfig,
    transports: &[TransportConfig],
    telemetry: &TelemetryConfig,
) {
    let Some(network) = network.filter(|_| switch.pfc.enabled && section.is_clean()) else { return };
    let topology = &network.topology;
    let packet = Settings::largest_packet(transports, telemetry);
    let mut taken = vec![0u64; topology.nodes.len()];
    for link in &topology.links {
        let port = BufferedPort { rate: link.rate, delay: link.delay };
        let bytes = headroom(&port, &switch.pfc, packet).saturating_add(switch.pfc.reserve.0);
        for node in [link.a, link.b] {
            taken[node as usize] = taken[node as usize].saturating_add(bytes);
        }
    }
    let largest = topology.switches().into_iter().max_by_key(|&node| taken[node as usize]);
    let Some(fullest) = largest.filter(|&node| taken[node as usize] >= switch.buffer.0) else { return };
    let message = format!(
        "the ports of {} need {} of headroom and reserve for PFC, the buffer has {}: set a larger buffer, or \
         pfc = {{ enabled = false }}",
        topology.nodes[fullest as usize].name,
        Bytes(taken[fullest as usize]),
        switch.buffer,
    );
    section.complain("buffer", message);
}

/// Says so if the queues of the switches do not do what a transport relies on.
pub fn queue_serves(section: &mut Section, switch: &SwitchConfig, transports: &[TransportConfig]) {
    if !section.is_clean() {
        return;
    }
    let phosts: Vec<&PhostConfig> = transports.iter().filter_map(TransportConfig::phost).collect();
    if switch.queues().any(|queue| *queue == QueueConfig::Fifo) && phosts.iter().any(|phost| phost.short > 0)
    {
        let message = "\"fifo\" serves its classes in turn, but pHost sends short flows above long ones: set kind = \
                       \"priority\", or transport.short_flow = 0";
        section.complain("queue.kind", message.to_string());
    }
    if let Some(other) = phosts.iter().find(|phost| phost.policy != phosts[0].policy) {
        let message = format!(
            "hosts have one policy, but workloads ask for {:?} and {:?}: give all of them one transport.policy",
            phosts[0].policy, other.policy
        );
        section.complain("queue", message);
    }
    let mut arbiters = transports.iter().filter_map(|transport| Some(transport.fastpass()?.arbiter));
    if arbiters.next().is_some_and(|first| arbiters.any(|other| other != first)) {
        let message = "workloads ask for two arbiters of Fastpass: arbiter, epoch, slot, start, lead, compute_time and policy \
                       must be the same for all of them";
        section.complain("queue", message.to_string());
    }
}

/// Says so if the arbiter of Fastpass is to assign paths and cannot.
pub fn paths_can_be_assigned(
    section: &mut Section,
    network: Option<&Network>,
    switch: &SwitchConfig,
    transports: &[TransportConfig],
) {
    let mut fastpasses = transports.iter().filter_map(TransportConfig::fastpass);
    let Some(network) = network.filter(|_| fastpasses.any(|fastpass| fastpass.arbiter.assign_paths)) else {
        return;
    };
    if switch.balancer != BalancerConfig::Label {
        let message =
            "transport.assign_paths needs switches that follow the packet's label: set kind = \"label\"";
        section.complain("balancer", message.to_string());
    }
    if let Err(why) = Racks::of(&network.topology, &network.routes) {
        let message = format!(
            "transport.assign_paths needs racks that are all joined by the same switches (leaf-spine, star): {why}"
        );
        section.complain("balancer", message);
    }
}

/// pFabric over queues that know nothing of what flows have left is another scheme.
fn other_queue(scenario: &Scenario) -> Option<String> {
    let pfabric = scenario.transports.iter().any(|transport| transport.pfabric().is_some());
    let other = !scenario.switch.queues().all(|queue| matches!(queue, QueueConfig::Pfabric { .. }));
    (pfabric && other).then(|| {
        "switch.queue: switches do not serve pFabric's packets by what is left: set kind = \"pfabric\" unless that is meant"
            .to_string()
    })
}

/// Every source with a timeslot is sent a schedule in every epoch, over the arbiter's one link.
fn busy_arbiter(scenario: &Scenario) -> Option<String> {
    let fastpass = scenario.transports.iter().find_map(TransportConfig::fastpass)?;
    let topology = &scenario.network.topology;
    let node = *topology.hosts().get(fastpass.arbiter.host as usize)?;
    let links = topology.links.iter().filter(|link| link.a == node || link.b == node);
    let rate = Rate(links.map(|link| link.rate.0).sum());
    let packets = if fastpass.arbiter.assign_paths { 2 } else { 1 };
    let hosts = topology.ordinary_hosts() as u64;
    let takes = rate.transmission_time(hosts * packets * u64::from(fastpass.control));
    let name = &topology.nodes[node as usize].name;
    (takes > fastpass.arbiter.epoch).then(|| {
        format!(
            "transport.arbiter: the link of {name} takes {takes} for a schedule to each of {hosts} hosts, an epoch is {}: where \
             so many send at a time, schedules queue up; give it a faster link by [[topology.override]] between = \
             [\"{name}\", \"*\"]",
            fastpass.arbiter.epoch
        )
    })
}

/// Cebinae's rounds must be as long as a full buffer needs to drain, or packets of two rounds meet.
fn undrained_round(scenario: &Scenario) -> Option<String> {
    let topology = &scenario.network.topology;
    topology.ports().iter().enumerate().find_map(|(node, ports)| {
        ports.iter().enumerate().find_map(|(local, &(link, _))| {
            let is_switch = topology.nodes[node].kind == NodeKind::Switch;
            let queue = is_switch.then(|| scenario.switch.queue_at(node as NodeId, local as u32))?;
            let QueueConfig::Managed(ManagedConfig { discipline, limit, .. }) = queue else { return None };
            let DisciplineConfig::Cebinae(cebinae) = discipline else { return None };
            let rate = topology.links[link as usize].rate;
            let round = Time::from_ns(cebinae.round_at(rate, *limit));
            let full = limit.bytes.0.min(u64::from(limit.packets).saturating_mul(1500));
            let drain = rate.transmission_time(full);
            (drain > round).then(|| {
                let port = topology.port_name(node as NodeId, local as u32);
                format!(
                    "switch.queue.round: the buffer of {port}, {}, cannot drain in a round of {round}: it takes {drain}, and \
                     packets of two rounds will wait in one queue; set a longer round or a smaller buffer",
                    Bytes(full)
                )
            })
        })
    })
}

/// Ports with buffers of their own drop; nobody is paused for them.
fn pauses_passed_by(scenario: &Scenario) -> Option<String> {
    let managed = scenario.switch.queues().any(|queue| matches!(queue, QueueConfig::Managed(_)));
    (managed && scenario.switch.pfc.enabled).then(|| {
        "switch.pfc: ports whose queue has a buffer of its own drop instead of pausing: set pfc = { enabled = false } unless \
         others are to be lossless"
            .to_string()
    })
}

/// What deserves a look before the result is trusted.
pub fn warnings(scenario: &Scenario) -> Vec<String> {
    let mut warnings: Vec<String> = other_queue(scenario)
        .into_iter()
        .chain(busy_arbiter(scenario))
        .chain(super::balancing::sprayed(scenario))
        .chain(super::balancing::wrapped_subflows(scenario))
        .chain(super::buffers::held_by_buffers(scenario))
        .collect();
    warnings.extend(undrained_round(scenario));
    warnings.extend(pauses_passed_by(scenario));
    warnings.extend(super::pairs::warnings(scenario));
    if let TelemetryConfig::Int { max_hops, .. } = &scenario.telemetry {
        let switches = diameter(&scenario.network).saturating_sub(1);
        let needed = scenario
            .transports
            .iter()
            .filter_map(|t| t.controller())
            .any(|controller| controller.needs_int());
        if needed && switches > *max_hops {
            warnings.push(format!(
                "telemetry.max_hops: paths have up to {switches} switches, the INT header has room for {max_hops}: \
                 senders ignore what longer paths report; set max_hops = {switches}"
            ));
        }
    }
    warnings
}

/// Payload bits over what the hosts' links carry until the last flow starts; none if all start at once.
fn offered_load(size: &TrafficSize, topology: &Topology) -> Option<f64> {
    let capacity = host_capacity(topology);
    let seconds = size.last_start.as_seconds();
    (seconds > 0.0 && capacity > 0.0).then(|| size.bytes as f64 * 8.0 / (capacity * seconds))
}

/// Bits per second of the links of the hosts that workloads use.
fn host_capacity(topology: &Topology) -> f64 {
    let mut used = vec![false; topology.nodes.len()];
    topology.hosts().iter().take(topology.ordinary_hosts()).for_each(|&host| used[host as usize] = true);
    let used = |node: NodeId| used[node as usize];
    let host_links = topology.links.iter().filter(|link| used(link.a) || used(link.b));
    host_links.map(|link| link.rate.0 as f64).sum()
}

/// The load that the workloads were asked for, as a share of what the hosts' links carry, and the standard deviation of what flows
/// drawn to it for as long as these come to; none where some workload is not asked for a load.
fn asked_load(scenario: &Scenario, size: &TrafficSize) -> Option<(f64, f64)> {
    let asked: Option<Vec<AskedLoad>> =
        scenario.traffic.sources.iter().map(|source| source.asked()).collect();
    let asked = asked.filter(|asked| !asked.is_empty())?;
    let capacity = host_capacity(&scenario.network.topology);
    let seconds = size.last_start.as_seconds();
    let (rate, variance) = asked.iter().fold((0.0, 0.0), |sum, of| (sum.0 + of.rate, sum.1 + of.variance));
    (capacity > 0.0 && seconds > 0.0).then(|| (rate / capacity, (variance / seconds).sqrt() / capacity))
}

/// Flows whose start lies behind the end of the run: it does not count them.
fn not_due(scenario: &Scenario, size: &TrafficSize, estimate: &Estimate) -> u64 {
    match scenario.until {
        Until::At(stop) if stop < size.last_start => size.flows.saturating_sub(estimate.replay.flows),
        _ => 0,
    }
}

pub fn estimate_facts(estimate: &Estimate) -> Value {
    let Estimate { replay, seconds, seconds_on_threads, memory } = estimate;
    json!({
        "packet_hops": replay.packet_hops.round(),
        "end_ns": replay.end.as_ns(),
        "flows_in_flight": replay.flows_in_flight,
        "connections": replay.connections,
        "packets_in_flight": replay.packets_in_flight,
        "seconds": seconds,
        "seconds_on_threads": seconds_on_threads,
        "memory_bytes": memory.peak().0,
        "memory": {
            "program_bytes": memory.program,
            "network_bytes": memory.network,
            "routes_bytes": memory.routes,
            "traces_bytes": memory.traces,
            "tables_bytes": memory.tables,
            "packets_bytes": memory.packets,
            "flows_bytes": memory.flows,
            "summary_bytes": memory.summary,
        },
    })
}
