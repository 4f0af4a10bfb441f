//! Thresholds of marks that do not suit what controllers, queues and links are.

use super::Scenario;
use super::bottlenecks::RoundTrips;
use super::pairs::{capacity, capacity_for};
use crate::config::QueueConfig;
use crate::net::ecn::EcnThreshold;
use crate::topology::NodeKind;
use crate::transport::{TransportConfig, largest_packet};
use crate::units::{Bytes, Rate, Time};

/// A controller steers by marks, and no switch can mark.
pub(super) fn never_marked(scenario: &Scenario, transport: &TransportConfig, index: u16) -> Option<String> {
    let name = transport.facts().marked_controller?;
    let switch = &scenario.switch;
    if switch.queues().any(|queue| queue.facts().marks) {
        return None;
    }
    let steers = format!("but the controller \"{name}\" of {} reacts to marks", transport.name());
    if switch.ecn.is_empty() {
        let first = scenario.transports.first().filter(|first| first.facts().marked_controller.is_none());
        let because = first.map_or(String::new(), |first| {
            format!(" (the default for switches is that of the first transport, {})", first.name())
        });
        return Some(format!(
            "switch.ecn: off{because}, {steers}: it will notice congestion only by losses. Set switch.ecn = {}",
            advice(scenario, transport, index)
        ));
    }
    let lowest = lowest_threshold(scenario)?;
    // A full queue without the packet that leaves it.
    let packet = largest_packet(&scenario.transports, &scenario.telemetry);
    let room = switch.queues().map(|queue| capacity(queue, scenario)).max()?;
    let is_share = !switch.pfc.enabled && switch.queues().any(|queue| queue.facts().room(packet).is_none());
    let share = if is_share { " (lossy_alpha / (1 + lossy_alpha) of the buffer)" } else { "" };
    if lowest >= room {
        return Some(format!(
            "switch.ecn: marks begin at a queue of {lowest}, and no queue holds more than {room}{share}, {steers}: it will notice \
             congestion only by losses. Set switch.ecn = {}",
            advice(scenario, transport, index)
        ));
    }
    let ramps = thresholds_in_use(scenario)
        .map(|threshold| (ramp(threshold, room.0.saturating_sub(packet)), threshold));
    let (ramp, at) = ramps.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(ramp, _)| *ramp < SELDOM)?;
    let in_packets =
        switch.queues().any(|queue| capacity_for(queue, scenario, 2 * packet) > capacity(queue, scenario));
    let larger = match in_packets {
        true => format!(
            ", or larger packets (transport.mtu): ports hold a number of packets, of up to {packet} B"
        ),
        false => String::new(),
    };
    Some(format!(
        "switch.ecn: marks begin at a queue of {}, and a queue of {}, where pmax is reached, does not fit the {room} that queues hold{share}: \
         the fullest queue marks {:.1} % of its packets, {steers}: it will notice congestion nearly only by losses. Set switch.ecn = \
         {}{larger}",
        at.kmin,
        at.kmax,
        ramp * at.pmax * 100.0,
        advice(scenario, transport, index)
    ))
}

/// Of the way from `kmin` to `kmax`, up to where a full queue must come for its marks to count as a signal.
const SELDOM: f64 = 0.1;

/// The part of the way from `kmin` to `kmax` that a queue has come.
fn ramp(threshold: &EcnThreshold, queue: u64) -> f64 {
    if queue >= threshold.kmax.0 {
        return 1.0;
    }
    queue.saturating_sub(threshold.kmin.0) as f64
        / threshold.kmax.0.saturating_sub(threshold.kmin.0).max(1) as f64
}

/// Flows react to marks, and every packet is marked whenever another one waits, or above a queue too short to
/// keep a link busy.
pub(super) fn marked_too_early(
    scenario: &Scenario,
    transport: &TransportConfig,
    index: u16,
) -> Option<String> {
    let facts = transport.facts();
    // Without the second its packets have no marks.
    let answers = facts.heeds_marks && transport.switch_defaults().marks;
    if !answers || scenario.rules.like != "none" || scenario.switch.queues().all(|queue| queue.facts().marks)
    {
        return None;
    }
    let framing = transport.framing(&scenario.telemetry);
    let packet = framing.data_bytes(framing.payload);
    let longest = transport.base_rtt(&scenario.run());
    let suspect = |threshold: &&EcnThreshold| {
        threshold.kmax.0 < packet || threshold.kmax < queue_at_marks(transport, threshold.rate, longest)
    };
    let suspects: Vec<&EcnThreshold> = thresholds_in_use(scenario).filter(suspect).collect();
    if suspects.is_empty() {
        return None;
    }
    let round_trips = RoundTrips::of(scenario, transport, index);
    // Short queues leave no room for such a threshold.
    let half = scenario.switch.queues().map(|queue| capacity(queue, scenario).0 / 2).min()?;
    let too_early = |&&EcnThreshold { rate, kmax, .. }: &&EcnThreshold| {
        let round_trip = round_trips.at(rate);
        let needed = round_trip.map_or(Bytes(0), |round_trip| queue_at_marks(transport, rate, round_trip));
        let (why, above) = if kmax.0 < packet {
            let why = format!(
                "less than a full packet of {} ({packet} B): a packet is marked whenever another one waits",
                transport.name()
            );
            (why, needed.max(Bytes(packet)))
        } else if kmax < needed && needed.0 <= half {
            let round_trip = round_trip.unwrap_or_default();
            let why = format!(
                "less than {needed}, the queue that keeps such a link busy when one flow cuts its window at a mark: {} fill it for \
                 {round_trip}, the longest base RTT of flows over such ports",
                rate.bytes_in(round_trip)
            );
            (why, needed)
        } else {
            return None;
        };
        Some((rate, kmax, why, above))
    };
    let found: Vec<_> = suspects.iter().filter_map(too_early).collect();
    let (rate, kmax, why, above) = found.first()?;
    let set = if super::rates(Some(&scenario.network), &scenario.failures).len() == 1 {
        format!("switch.ecn.kmin and switch.ecn.kmax above {above}")
    } else {
        let each = found.iter().map(|(rate, _, _, above)| format!("above {above} for {rate}"));
        format!("kmin and kmax of [[switch.ecn]] {}", each.collect::<Vec<_>>().join(" and "))
    };
    Some(format!(
        "switch.ecn: at ports of {rate} every packet is marked above a queue of {kmax} (kmax), {why}, so that flows of \"{}\" may \
         not fill the link. Set {set}",
        facts.controller_name.unwrap_or(transport.name())
    ))
}

/// The queue up to which some packets must stay without a mark, so that one flow keeps a link of this rate busy.
fn queue_at_marks(transport: &TransportConfig, rate: Rate, round_trip: Time) -> Bytes {
    let share = transport.facts().queue_at_marks.unwrap_or(0.0);
    Bytes((rate.bytes_in(round_trip).0 as f64 * share) as u64)
}

/// The lowest threshold at a port of a switch.
fn lowest_threshold(scenario: &Scenario) -> Option<Bytes> {
    thresholds_in_use(scenario).map(|threshold| threshold.kmin).min()
}

/// Thresholds for rates that ports of switches have.
fn thresholds_in_use(scenario: &Scenario) -> impl Iterator<Item = &EcnThreshold> {
    let topology = &scenario.network.topology;
    let is_switch = |node| topology.nodes[node as usize].kind == NodeKind::Switch;
    let links = topology.links.iter().filter(|link| is_switch(link.a) || is_switch(link.b));
    let rates: Vec<Rate> = links.map(|link| link.rate).collect();
    scenario.switch.ecn.iter().filter(move |threshold| rates.contains(&threshold.rate))
}

/// What to write under `switch.ecn`, so that queues as they are do mark, and not too early for the transport of this number.
fn advice(scenario: &Scenario, transport: &TransportConfig, index: u16) -> String {
    let switch = &scenario.switch;
    let packet = largest_packet(&scenario.transports, &scenario.telemetry);
    let short = |queue: &QueueConfig| queue.facts().room(packet).is_some_and(|room| room < switch.buffer);
    let half = switch.queues().map(|queue| capacity(queue, scenario).0 / 2).min().unwrap_or(u64::MAX);
    // Up to which `kmax` may be: of a shared buffer all that one queue can take.
    let limits = switch.queues().map(|queue| capacity(queue, scenario).0 / if short(queue) { 2 } else { 1 });
    let limit = limits.min().unwrap_or(u64::MAX);
    let round_trips = RoundTrips::of(scenario, transport, index);
    let rates = super::rates(Some(&scenario.network), &scenario.failures);
    let needed = |rate: Rate| {
        let round_trip = round_trips.at(rate)?;
        // In whole kilobytes, rounded up: it is a threshold to stay above.
        Some(queue_at_marks(transport, rate, round_trip).0.div_ceil(1000) * 1000)
    };
    let by_default = scenario.transports.first().unwrap_or(transport).switch_defaults().ecn;
    let is_enough = |&rate: &Rate| {
        let kmax = by_default.auto(rate).kmax.0;
        kmax <= limit && kmax >= needed(rate).unwrap_or(0)
    };
    if !switch.queues().any(short) && rates.iter().all(is_enough) {
        return "{ enabled = true }".to_string();
    }
    // RFC 8257 §4.1 asks for a threshold above a seventh of the bandwidth-delay product; a short queue allows at most half of
    // itself.
    let thresholds = |rate: Rate| {
        let auto = transport.switch_defaults().ecn.auto(rate);
        let needed = needed(rate).unwrap_or(0);
        if auto.kmax.0 <= limit && auto.kmax.0 >= needed {
            return (auto.kmin, auto.kmax, auto.pmax);
        }
        let step = Bytes(auto.kmin.0.max(needed).min(half));
        (step, step, 1.0)
    };
    let table = |(kmin, kmax, pmax): (Bytes, Bytes, f64)| {
        format!("kmin = \"{kmin}\", kmax = \"{kmax}\", pmax = {pmax:?} }}")
    };
    let (waited, passed): (Vec<Rate>, Vec<Rate>) =
        rates.iter().partition(|&&rate| round_trips.at(rate).is_some());
    let mut different: Vec<_> = if waited.is_empty() { passed } else { waited };
    different.dedup_by_key(|rate| thresholds(*rate));
    if let [rate] = different[..] {
        return format!("{{ enabled = true, {}", table(thresholds(rate)));
    }
    let each = rates.iter().map(|&rate| format!("{{ rate = \"{rate}\", {}", table(thresholds(rate))));
    format!("[{}]", each.collect::<Vec<_>>().join(", "))
}
