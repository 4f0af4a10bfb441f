//! Parts of a scenario that do not suit each other: balancers that reorder under transports that take that
//! for loss, controllers that steer by marks over switches that never mark, go-back-N over buffers that drop.
//!
//! Every part says for itself what it does and needs
//! ([`BalancerConfig::order`](crate::balance::BalancerConfig::order), [`TransportConfig::facts`]); what
//! follows from two of them together stands here.

use super::Scenario;
use super::bottlenecks::{narrowest_share, share_on_short_paths};
use super::unfit_marks::{marked_too_early, never_marked};
use crate::balance::{self, NetworkView, Reorders};
use crate::compat::Rules;
use crate::config::{Change, Failure, QueueConfig, Until};
use crate::net::ecn::EcnThreshold;
use crate::net::loss::LinkLoss;
use crate::topology::NodeKind;
use crate::transport::{NicPolicy, Overtaken, TransportConfig, largest_packet, rounded};
use crate::units::{Bytes, Rate, Time};

/// Share of the packets whose answer arrives, below which timeouts determine what happens.
const FEW_ANSWERS: f64 = 0.5;
/// A default or fewer later packets find every loss but that of the last ones.
const USUAL_REORDERING: u32 = 3;
/// Share of packets above which what happens to them is usual.
const MOST_PACKETS: f64 = 0.5;
/// How many times as long the longest base RTT is, at least, so that it is far from that of a flow.
const FAR: u64 = 4;
/// Share of the bytes above which a window does not suit most of them.
const MOST_BYTES: f64 = 0.5;
/// Flows whose sizes are looked at.
const FLOWS_LOOKED_AT: usize = 1000;
/// Share of connections that never open, above which it is worth a word.
const FEW_ABORTED: f64 = 0.001;

/// What deserves a look because of two parts that do not suit each other.
pub fn warnings(scenario: &Scenario) -> Vec<String> {
    let reorders = reorders(scenario);
    let mut found = Vec::new();
    for (index, transport) in scenario.transports_used() {
        let in_order = scenario.host.resequencing.is_some();
        let overtaken = reorders.as_ref().filter(|_| !in_order);
        found.extend(overtaken.and_then(|reason| takes_for_loss(scenario, transport, reason)));
        found.extend(reorders.as_ref().and_then(|reason| compares_paths(transport, reason)));
        found.extend(dropped_from(scenario, transport));
        found.extend(never_marked(scenario, transport, index));
        found.extend(marked_too_early(scenario, transport, index));
        found.extend(compared_too_rarely(scenario, transport, index));
        found.extend(held_back(scenario, transport));
        found.extend(slow_hosts(scenario, transport));
        found.extend(windows_for_few(scenario, transport, index));
        found.extend(targets_for_few(scenario, transport, index));
        found.extend(never_fits(scenario, transport));
        found.extend(never_shared(scenario, transport));
        found.extend(mostly_lost(scenario, transport));
        found.extend(noticed_late(scenario, transport, index));
        found.extend(never_repeated(scenario, transport));
        found.extend(asks_too_often(scenario, transport));
    }
    found.dedup();
    found.extend(found_late(scenario));
    found.extend(never_apart_again(scenario));
    found.extend(super::cut_off::warning(scenario));
    found
}

/// Messages of a job on connections of their own stay together once something has held them up.
fn never_apart_again(scenario: &Scenario) -> Option<String> {
    let graphs = scenario.traffic.sources.iter().filter_map(|source| source.graph());
    let mut fresh =
        graphs.filter(|graph| graph.fresh && graph.repeated().is_some_and(|work| work.repeat > 1));
    let failures = &scenario.failures;
    let is_disturbed =
        scenario.traffic.sources.len() > 1 || !failures.events.is_empty() || failures.loss.is_some();
    (is_disturbed && fresh.next().is_some()).then(|| {
        "connections = \"fresh\" of a workload: each message has a connection of its own, so that those of one \
         rank which a failure or other traffic held up share its link and end together, in all later steps too: \
         a ring does not recover. Set connections = \"kept\""
            .to_string()
    })
}

/// What is down from the start is found by routes only after a while.
fn found_late(scenario: &Scenario) -> Option<String> {
    let (events, detection) = (&scenario.failures.events, scenario.failures.detection);
    let from_start = events.iter().any(|event| event.at == Time::ZERO && event.change.is_down());
    (from_start && detection > Time::ZERO).then(|| {
        format!(
            "failures: routes lead over what is down from the start until failures.detection = {detection} has passed: packets \
             that are sent before are lost, and flows wait for timeouts. Where it was down long before, set detection = \"0us\""
        )
    })
}

/// Windows follow the longest path of the network, and most bytes take far shorter ones.
fn windows_for_few(scenario: &Scenario, transport: &TransportConfig, index: u16) -> Option<String> {
    let key = transport.facts().longest_windows.filter(|_| scenario.rules.like == "none")?;
    let longest = transport.base_rtt(&scenario.run());
    let framing = transport.framing(&scenario.telemetry);
    let packet = framing.data_bytes(framing.payload);
    let (share, round_trip) = share_on_short_paths(scenario, (index, packet), Time(longest.0 / FAR))?;
    (share > MOST_BYTES).then(|| {
        format!(
            "{key}: windows of {} follow the longest base RTT of the network, {longest}, and {:.0} % of the bytes are of flows whose own \
             is {round_trip} or less: these may have more than {FAR} times in flight what their paths hold, which waits in queues. Set \
             {key} for them, in a transport of their workload where others take longer paths",
            transport.name(),
            100.0 * share
        )
    })
}

/// Targets of the delay follow the longest path of the network, and most bytes take far shorter ones.
fn targets_for_few(scenario: &Scenario, transport: &TransportConfig, index: u16) -> Option<String> {
    let times = Some(transport.longest_times()).filter(|times| !times.is_empty())?;
    let longest = transport.base_rtt(&scenario.run());
    let framing = transport.framing(&scenario.telemetry);
    let packet = framing.data_bytes(framing.payload);
    let (share, round_trip) = share_on_short_paths(scenario, (index, packet), Time(longest.0 / FAR))?;
    let keys: Vec<&str> = times.iter().map(|(key, _)| *key).collect();
    let set = times.iter().map(|(key, of)| format!("{key} = {}", Time(rounded(of(round_trip).0))));
    (share > MOST_BYTES).then(|| {
        format!(
            "transport.controller: {} follow the longest base RTT of the network, {longest}, and {:.0} % of the bytes are of flows \
             whose own is {round_trip} or less: the targets of these let queues grow until packets wait for many such round trips. Set \
             {} for them, in a transport of their workload where others take longer paths",
            keys.join(" and "),
            100.0 * share,
            set.collect::<Vec<_>>().join(" and ")
        )
    })
}

/// Hosts take fewer packets than their links bring.
fn slow_hosts(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let (time, framing) = (scenario.host.packet_time, transport.framing(&scenario.telemetry));
    let packet = framing.data_bytes(framing.payload);
    let line = scenario.network.topology.host_rate();
    (time > line.transmission_time(packet)).then(|| {
        format!(
            "host.packet_time: a host takes a packet every {time}, and its link of {line} brings one of {} ({packet} B) every {}: \
             what comes faster waits in the host without limit, and ideal completion times do not count it",
            transport.name(),
            line.transmission_time(packet)
        )
    })
}

/// A port with a buffer of its own has no room for a full packet, so that none ever passes it.
fn never_fits(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let framing = transport.framing(&scenario.telemetry);
    let packet = framing.data_bytes(framing.payload);
    let own = scenario.switch.queues().filter_map(|queue| Some((queue, queue.facts().largest?)));
    let (queue, room) = own.filter(|(_, room)| room.0 < packet).min_by_key(|(_, room)| room.0)?;
    Some(format!(
        "switch.queue.limit: ports of kind \"{}\" with {room} have no room for a full packet of {} ({packet} B): none ever passes",
        queue.name(),
        transport.name()
    ))
}

/// The shared buffer has no room for a full packet, even where nothing else waits in it.
fn never_shared(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let switch = &scenario.switch;
    if switch.pfc.enabled || switch.queues().all(|queue| queue.facts().owns_buffer) {
        return None;
    }
    let framing = transport.framing(&scenario.telemetry);
    let packet = framing.data_bytes(framing.payload);
    let room = Bytes((switch.buffer.0 as f64 * switch.lossy_alpha.min(1.0)) as u64);
    (room.0 < packet).then(|| {
        format!(
            "switch.buffer: of {}, with lossy_alpha = {}, a queue gets at most {room}, which is less than a full packet of {} \
             ({packet} B): none ever passes. Set a larger buffer or lossy_alpha",
            switch.buffer,
            switch.lossy_alpha,
            transport.name()
        )
    })
}

/// Links lose packets at random at such a rate that most round trips fail.
fn mostly_lost(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let loss = scenario.failures.loss?;
    let hops = scenario.network.diameter();
    let arrives =
        [LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS].map(|kind| loss.arrives(kind, f64::from(hops)));
    let answered = arrives[0] * arrives[1];
    if answered >= FEW_ANSWERS {
        return None;
    }
    let first = 1.0 - loss.arrives(LinkLoss::ACKNOWLEDGEMENTS, 2.0 * f64::from(hops));
    let opened = transport.facts().openings.map(|attempts| first.powi(attempts as i32));
    let aborted = opened.filter(|share| *share > FEW_ABORTED).map_or(String::new(), |share| {
        format!(
            "; {:.2} % of the connections over such a path are aborted before they open, and their flows never end: raise \
             transport.syn_retries",
            100.0 * share
        )
    });
    Some(format!(
        "failures.loss: over the longest path, {hops} links, {:.2} % of the packets of {} arrive and {:.2} % are answered: flows \
         wait for one timeout after another, and no estimate of the end of the run counts these{aborted}",
        100.0 * arrives[0],
        transport.name(),
        100.0 * answered
    ))
}

/// Why packets of a flow overtake each other.
struct Reason {
    key: &'static str,
    text: String,
    /// One at a time: an overtaken packet is not late by much.
    one_by_one: bool,
    /// What to set so that they do not.
    instead: String,
}

/// Why packets of a flow may come out of order, if they may.
fn reorders(scenario: &Scenario) -> Option<Reason> {
    let network = &scenario.network;
    if scenario.host.nic_policy == NicPolicy::All {
        return Some(Reason {
            key: "host.nic_policy",
            text: "\"all\" sends the packets of a flow by all NICs, where they overtake each other".to_string(),
            one_by_one: true,
            instead: "a policy that keeps a flow on one NIC (\"round-robin\"), or host.resequencing = { enabled = true }"
                .to_string(),
        });
    }
    if !NetworkView::of(&network.topology, &network.routes).has_a_choice() {
        return None;
    }
    let (name, order) = (scenario.switch.balancer.name(), scenario.switch.balancer.order());
    let instead = || {
        format!(
            "a balancer that keeps a flow on one path ({:?}), or host.resequencing = {{ enabled = true }}",
            balance::DEFAULT
        )
    };
    let by_balancer =
        |text, one_by_one| Some(Reason { key: "switch.balancer", text, one_by_one, instead: instead() });
    match order {
        Reorders::Packets => by_balancer(
            format!(
                "\"{name}\" sends the packets of a flow over several paths, where they overtake each other"
            ),
            true,
        ),
        Reorders::Blocks => by_balancer(
            format!("\"{name}\" sends blocks of a flow over several paths, where they overtake each other"),
            false,
        ),
        Reorders::AfterPauses(gap) if gap < in_turn(scenario).0 => {
            let (time, about) = in_turn(scenario);
            by_balancer(
                format!(
                    "\"{name}\" may send packets after a pause of {gap} over another path, where they can overtake packets in flight: \
                     a round trip with queues takes {about} {time}"
                ),
                false,
            )
        }
        Reorders::AfterPauses(_) | Reorders::Never => rerouted(scenario),
    }
}

/// A pause after which little is still in flight: the longest round trip, and a queue halfway up the ramp of
/// marks, which are the published ones where nothing is marked but senders steer by something else. Where
/// nothing keeps queues short, they grow until one has all of the buffer that it can have. Also returns
/// whether the time is about that, or up to it.
fn in_turn(scenario: &Scenario) -> (Time, &'static str) {
    const PUBLISHED: (Bytes, Rate) = (Bytes(250_000), Rate::from_gbps(25));
    let drains = |&EcnThreshold { rate, kmin, kmax, .. }: &EcnThreshold| {
        rate.transmission_time(u64::midpoint(kmin.0, kmax.0))
    };
    let round_trip = scenario.network.base_rtt(1000, &Rules::none()).0;
    let full = scenario.transports_used().iter().any(|(_, transport)| fills_buffers(scenario, transport));
    if let Some(waits) = slowest_between_switches(scenario).filter(|_| full).map(|rate| {
        let room = scenario.switch.queues().map(|queue| capacity(queue, scenario)).max();
        rate.transmission_time(room.unwrap_or(scenario.switch.buffer).0)
    }) {
        return (round_trip.saturating_add(waits), "up to");
    }
    let waits = scenario.switch.ecn.iter().map(drains).max();
    let waits = waits.unwrap_or(PUBLISHED.1.transmission_time(PUBLISHED.0.0));
    (round_trip.saturating_add(waits), "about")
}

/// Senders to which the order of packets matters, and that slow down only when packets are lost, if at all.
fn fills_buffers(scenario: &Scenario, transport: &TransportConfig) -> bool {
    let (facts, switch) = (transport.facts(), &scenario.switch);
    let marks = !switch.ecn.is_empty() || switch.queues().any(|queue| queue.facts().marks);
    let by_marks = marks && facts.heeds_marks && transport.switch_defaults().marks;
    let by_telemetry = facts.controller.is_some_and(|controller| {
        let needs = controller.needs();
        needs.int || needs.load.is_some()
    });
    facts.overtaken != Overtaken::Nothing && !by_marks && !by_telemetry && facts.delay_controller.is_none()
}

fn slowest_between_switches(scenario: &Scenario) -> Option<Rate> {
    let topology = &scenario.network.topology;
    let is_switch = |node: u32| topology.nodes[node as usize].kind == NodeKind::Switch;
    let between = topology.links.iter().filter(|link| is_switch(link.a) && is_switch(link.b));
    between.map(|link| link.rate).min()
}

/// Routes change while flows are under way.
fn rerouted(scenario: &Scenario) -> Option<Reason> {
    let changes = |change: &Change| {
        matches!(
            change,
            Change::LinkDown(_) | Change::LinkUp(_) | Change::SwitchDown(_) | Change::SwitchUp(_)
        )
    };
    let ends = match scenario.until {
        Until::At(time) => time,
        Until::FlowsDone { .. } => Time::MAX,
    };
    let failures = &scenario.failures;
    // What routes avoid from the start is a network like any other.
    let later = |event: &Failure| event.at < ends && event.at.saturating_add(failures.detection) > Time::ZERO;
    let any = failures.events.iter().any(|event| changes(&event.change) && later(event));
    any.then(|| Reason {
        key: "failures",
        text: "flows change their paths when links or switches fail and come back, and packets on the new path may overtake those \
               on the old one"
            .to_string(),
        one_by_one: false,
        instead: "host.resequencing = { enabled = true }".to_string(),
    })
}

/// A transport takes for lost what was only overtaken.
fn takes_for_loss(scenario: &Scenario, transport: &TransportConfig, reason: &Reason) -> Option<String> {
    let (why, change) = match transport.facts().overtaken {
        // Routes change too seldom to matter to a transport that retransmits single packets.
        Overtaken::LostAfter { packets, why, instead }
            if u64::from(packets) <= window_packets(scenario, transport)
                && (packets == 1 || reason.key != "failures") =>
        {
            (why, format!("{instead}, or "))
        }
        Overtaken::WaitedFor { why } if !reason.one_by_one && reason.key != "failures" => {
            (why, String::new())
        }
        _ => return None,
    };
    let (Reason { key, text, instead, .. }, name) = (reason, transport.name());
    Some(format!(
        "{key}: {text}, and with {name} {why}: packets may be retransmitted that were not lost, which the estimates of time and \
         packet-hops leave out. Set {change}{instead}"
    ))
}

/// Without a timeout nothing finds the loss of what a flow sends last.
fn never_repeated(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let facts = transport.facts();
    let failures = &scenario.failures;
    let fails = failures.loss.is_some() || failures.events.iter().any(|event| event.change.is_down());
    let own_buffers = scenario.switch.queues().any(|queue| queue.facts().owns_buffer);
    let drops = scenario.rules.like == "none" && (own_buffers || !scenario.switch.pfc.enabled);
    let why = [(fails, "[failures] lose"), (drops, "full buffers drop")];
    let why = why.into_iter().find(|(holds, _)| *holds)?.1;
    (facts.controller.is_some() && facts.longest_timeout == Time::ZERO).then(|| {
        format!(
            "transport.rto = \"none\": where {why} the last packets of a flow, or their acknowledgements, they are never sent again \
             and the flow does not end. Set rto = \"auto\""
        )
    })
}

/// A receiver asks again for a lost packet before it can have come, and each time all packets from it on are sent again.
fn asks_too_often(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let interval = transport.facts().asks_again.filter(|_| scenario.can_lose())?;
    let payload = transport.framing(&scenario.telemetry).payload as u32;
    let round_trip = scenario.network.base_rtt(payload, &Rules::none()).0;
    (interval < round_trip && scenario.rules.like == "none").then(|| {
        format!(
            "transport.nack_interval = {interval} is shorter than the base RTT of the longest path, {round_trip}: there a receiver sends \
             {} NACKs for one lost packet before its copy can arrive, and at each of them go-back-N sends all packets from the lost one \
             on again. Set transport.nack_interval above {round_trip}",
            round_trip.0.div_ceil(interval.0.max(1))
        )
    })
}

/// Losses are found by later packets of the flow, of which most packets have too few.
fn noticed_late(scenario: &Scenario, transport: &TransportConfig, index: u16) -> Option<String> {
    let Overtaken::LostAfter { packets, .. } = transport.facts().overtaken else { return None };
    if packets <= USUAL_REORDERING || !scenario.can_lose() {
        return None;
    }
    let last = last_packets(scenario, transport, (index, packets))?;
    (last > MOST_PACKETS).then(|| {
        format!(
            "transport.reordering: {packets} packets must arrive before one counts as lost, and {:.0} % of the packets have fewer after \
             them in their flow: if these are lost, they are sent again only after a timeout (transport.rto)",
            100.0 * last
        )
    })
}

/// Of the packets of the first flows of a transport, the share that has fewer than a number of later ones in
/// their flow.
fn last_packets(
    scenario: &Scenario,
    transport: &TransportConfig,
    (index, packets): (u16, u32),
) -> Option<f64> {
    let payload = transport.framing(&scenario.telemetry).payload.max(1);
    let sources = &scenario.traffic.sources;
    let each = (FLOWS_LOOKED_AT / sources.len().max(1)).max(1);
    let (mut last, mut all) = (0.0, 0.0);
    for source in sources.iter().take(FLOWS_LOOKED_AT) {
        let mut copy = source.glance().map_or_else(|| source.clone_box(), |glance| glance.source);
        for flow in std::iter::from_fn(|| copy.next()).take(each).filter(|flow| flow.transport == index) {
            let count = flow.size.div_ceil(payload);
            last += count.min(u64::from(packets)) as f64;
            all += count as f64;
        }
    }
    (all > 0.0).then(|| last / all)
}

/// A controller compares what a packet met at every hop with what the one before it met there.
fn compares_paths(transport: &TransportConfig, reason: &Reason) -> Option<String> {
    let facts = transport.facts();
    let controller =
        facts.controller.filter(|controller| reason.one_by_one && controller.needs().int)?.name();
    Some(format!(
        "{}: packets of a flow take several paths in turn, and the controller \"{controller}\" of {} compares the telemetry of \
         packets that follow each other on one path: it ignores that of the others, and steers late or not at all. Set another \
         transport.controller, one that steers by marks or delays",
        reason.key,
        transport.name()
    ))
}

/// Packets of a bandwidth-delay product at a host's rate.
fn window_packets(scenario: &Scenario, transport: &TransportConfig) -> u64 {
    let payload = transport.framing(&scenario.telemetry).payload as u32;
    let round_trip = scenario.network.base_rtt(payload, &Rules::none()).0;
    scenario.run().host_rate().bytes_in(round_trip).0.div_ceil(u64::from(payload.max(1)))
}

/// A transport that is made for networks without drops meets buffers that drop.
fn dropped_from(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let (why, instead) = transport.facts().wants_lossless.filter(|_| !scenario.switch.pfc.enabled)?;
    Some(format!(
        "switch.pfc: off, so full buffers drop packets, and {why}: set switch.pfc = {{ enabled = true }}, or {instead}"
    ))
}

/// A controller compares the telemetry of two acknowledgements unless its counters may have wrapped between them.
fn compared_too_rarely(scenario: &Scenario, transport: &TransportConfig, index: u16) -> Option<String> {
    let facts = transport.facts();
    let controller = facts.controller.filter(|controller| controller.needs().int)?.name();
    let comparable = scenario.run().int_layout(scenario.slower()).comparable;
    let framing = transport.framing(&scenario.telemetry);
    let packet = framing.data_bytes(framing.payload);
    let (rate, flows) = narrowest_share(scenario, index)?;
    let gap = rate.transmission_time(packet.saturating_mul(flows));
    (gap > comparable).then(|| {
        format!(
            "transport.controller: \"{controller}\" of {} compares the telemetry of acknowledgements that come within {comparable}, before \
             INT's counters may wrap, and each of {flows} flows that share {rate} gets one every {gap}: windows never change. Set another \
             transport.controller, one that steers by marks or delays",
            transport.name()
        )
    })
}

/// A controller steers by round trips, and switches keep packets.
fn held_back(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let balancer = &scenario.switch.balancer;
    let controller = transport.facts().delay_controller.filter(|_| balancer.facts().holds_packets)?;
    Some(format!(
        "switch.balancer: \"{}\" keeps packets at switches to put them in order, and the controller \"{controller}\" of {} takes \
         such a delay for congestion",
        balancer.name(),
        transport.name()
    ))
}

/// Bytes that a queue can hold.
pub(super) fn capacity(queue: &QueueConfig, scenario: &Scenario) -> Bytes {
    capacity_for(queue, scenario, largest_packet(&scenario.transports, &scenario.telemetry))
}

/// The same if all packets have this size. In a shared buffer without PFC one queue alone takes `lossy_alpha`
/// times what it leaves free.
pub(super) fn capacity_for(queue: &QueueConfig, scenario: &Scenario, packet: u64) -> Bytes {
    let switch = &scenario.switch;
    let shared = || match switch.pfc.enabled {
        true => switch.buffer,
        false => Bytes((switch.buffer.0 as f64 * switch.lossy_alpha / (1.0 + switch.lossy_alpha)) as u64),
    };
    queue.facts().room(packet).unwrap_or_else(shared)
}
