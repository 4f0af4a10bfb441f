//! Whether the parts of a scenario fit each other: queues, headroom, arbiters, rounds.

use super::Scenario;
use super::network::Network;
use super::section::Section;
use super::transport::switch_defaults;
use crate::balance;
use crate::config::{PhostConfig, RdmaConfig, SwitchConfig, TelemetryConfig, TransportConfig};
use crate::congestion::Window;
use crate::net::buffer::{BufferedPort, headroom};
use crate::parameters::Source;
use crate::settings::Settings;
use crate::topology::{Link, PathTimes, Topology};
use crate::transport::fastpass::Racks;
use crate::units::{Bytes, Rate, Time};

/// Links on the longest of the shortest paths between hosts.
pub fn diameter(network: &Network) -> u32 {
    let times = PathTimes::new(&network.topology, &network.routes);
    let hosts = times.representatives();
    let pairs = hosts.iter().flat_map(|&src| hosts.iter().map(move |&dst| (src, dst)));
    pairs.filter_map(|(src, dst)| times.pair(src, dst)).map(|path| path.hops).max().unwrap_or(0)
}

/// T, and the window at full rate in bytes if there is one.
pub fn base_rtt_and_window(scenario: &Scenario, rdma: &RdmaConfig) -> (Time, Option<u64>) {
    let (longest, largest) = scenario.network.base_rtt(rdma.mtu, &scenario.rules);
    let base_rtt = rdma.base_rtt.unwrap_or(longest);
    let derived = match (rdma.controller.windowed(), scenario.rules.widest_window) {
        (Window::None, _) => None,
        (_, true) => Some(largest),
        (_, false) => Some(host_rate(&scenario.network.topology).bytes_in(base_rtt).0),
    };
    (base_rtt, rdma.window.map(|window| window.0).or(derived))
}

/// The highest rate of a host's link.
pub fn host_rate(topology: &Topology) -> Rate {
    let host_link = |link: &&Link| [link.a, link.b].iter().any(|&n| topology.nodes[n as usize].tier == 0);
    topology.links.iter().filter(host_link).map(|link| link.rate).max().unwrap_or_default()
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
    let in_turn = switch.queues().find(|queue| queue.facts().serves_in_turn);
    let ranks = transports.iter().find(|transport| transport.phost().is_some_and(|phost| phost.short > 0));
    if let (Some(queue), Some(ranks)) = (in_turn, ranks) {
        let message = format!(
            "\"{}\" serves its classes in turn, but pHost sends short flows above long ones: set kind = \"{}\", or \
             transport.short_flow = 0",
            queue.name(),
            switch_defaults(Some(ranks)).queue
        );
        section.complain("queue.kind", message);
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
    if !switch.balancer.follows_labels() {
        let message = format!(
            "transport.assign_paths needs switches that follow the packet's label: set kind = {:?}",
            balance::BY_LABEL
        );
        section.complain("balancer", message);
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
    let pfabric = scenario.transports.iter().find(|transport| transport.pfabric().is_some())?;
    let other = !scenario.switch.queues().all(|queue| queue.facts().serves_by_remaining);
    other.then(|| {
        format!(
            "switch.queue: switches do not serve pFabric's packets by what is left: set kind = \"{}\" unless that is meant",
            switch_defaults(Some(pfabric)).queue
        )
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

/// What the queue of a switch's port says of the port's rate; the first that says something.
fn queue_warning(scenario: &Scenario) -> Option<String> {
    let topology = &scenario.network.topology;
    let ports = topology.ports();
    topology.switches().into_iter().find_map(|node| {
        ports[node as usize].iter().zip(0..).find_map(|(&(link, _), local)| {
            let queue = scenario.switch.queue_at(node, local);
            queue.warning(topology.links[link as usize].rate, &|| topology.port_name(node, local))
        })
    })
}

/// Ports with buffers of their own drop; nobody is paused for them.
fn pauses_passed_by(scenario: &Scenario) -> Option<String> {
    let managed = scenario.switch.queues().any(|queue| queue.facts().owns_buffer);
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
    warnings.extend(queue_warning(scenario));
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
