//! Measures taken at points of a time grid, and the decision when the run ends.

use super::Simulation;
use super::places::Places;
use super::region::Region;
use crate::config::{MeasureConfig, Until};
use crate::counters::CounterSet;
use crate::measure::recorder::BATCH;
use crate::measure::{Ending, Entity, PortTotals, QueueHistogram, Sample, Silence, SlowPort};
use crate::net::PortId;
use crate::net::map::Side;
use crate::net::partition::Partition;
use crate::net::port::Port;
use crate::queue::{self, QueueDiscipline};
use crate::transport::Transport;
use crate::units::{Rate, Time};
use crate::workload::FlowId;
use rustc_hash::FxHashMap;

/// A packet with which to tell whether a link is too slow for a run that waits.
const PACKET_BYTES: u64 = 1500;

/// A port with its name in results.
#[derive(Clone, Copy)]
struct NamedPort {
    region: usize,
    id: PortId,
    node: u32,
    local: u32,
}

impl NamedPort {
    fn entity(self) -> Entity {
        Entity::Port(self.node, self.local)
    }
    fn partition(self, regions: &[Box<Region>]) -> &Partition {
        &regions[self.region].net
    }
    fn port(self, regions: &[Box<Region>]) -> &Port {
        &self.partition(regions).ports[self.id as usize]
    }
}

/// What a utilisation is computed from.
struct Used {
    port: NamedPort,
    /// At the last look.
    bytes_sent: u64,
    /// When the rate last changed since then, and the bits times 10^12 that the link could have sent by then.
    changed: Option<(Time, u128)>,
}

impl Used {
    fn of(port: NamedPort) -> Used {
        Used { port, bytes_sent: 0, changed: None }
    }

    /// The rate was `rate` until `now`, in an interval that began at `begin`.
    fn rate_ends(&mut self, rate: Rate, begin: Time, now: Time) {
        let (since, before) = self.changed.unwrap_or((begin, 0));
        self.changed = Some((now, before + bits(rate, since, now)));
    }

    /// The share of the interval that ends `now`, after `seconds`, in which the link sent; the next one begins.
    fn share(&mut self, there: &Port, now: Time, seconds: f64) -> f64 {
        let sent = there.bytes_sent - std::mem::replace(&mut self.bytes_sent, there.bytes_sent);
        let rate = there.line.rate;
        let capacity = match self.changed.take() {
            None => rate.0 as f64 * seconds,
            Some((since, before)) => (before + bits(rate, since, now)) as f64 / 1e12,
        };
        sent as f64 * 8.0 / capacity
    }
}

/// What a link can send from one time to another, in bits times 10^12.
fn bits(rate: Rate, from: Time, to: Time) -> u128 {
    u128::from(rate.0) * u128::from((to - from).0)
}

enum Measure {
    /// Ends the run when all flows are done, or nothing has moved for too long.
    FlowsDone {
        stall: Time,
        delivered: u64,
        since: Time,
        /// When the network was still to change at the last such look.
        changes: Time,
        /// When the run is given up unless something happens before.
        given_up: Time,
    },
    At,
    QueueHistogram(Vec<(NamedPort, QueueHistogram)>),
    QueueSeries(Vec<NamedPort>),
    Utilisation(Vec<Used>),
    GroupGoodput(Vec<u64>),
    FlowGoodput(Vec<u64>),
    Controllers(Vec<FlowId>),
    /// With what had been counted at the last look.
    Disciplines(Vec<(NamedPort, CounterSet)>),
    /// With the totals at the last look.
    PortEvents(Vec<(NamedPort, PortTotals)>),
}

impl Measure {
    fn is_histogram(&self) -> bool {
        matches!(self, Measure::QueueHistogram(_))
    }

    /// Whether its values are of all that happened since the last look, not of the moment.
    fn is_of_intervals(&self) -> bool {
        match self {
            Measure::Utilisation(_)
            | Measure::GroupGoodput(_)
            | Measure::FlowGoodput(_)
            | Measure::Disciplines(_)
            | Measure::PortEvents(_) => true,
            Measure::FlowsDone { .. }
            | Measure::At
            | Measure::QueueHistogram(_)
            | Measure::QueueSeries(_)
            | Measure::Controllers(_) => false,
        }
    }
}

struct Probe {
    every: Time,
    /// When it is due next.
    due: Time,
    measure: Measure,
}

pub struct Probes {
    probes: Vec<Probe>,
    /// Set by the probe that ends the run.
    pub ending: Option<Ending>,
    end_at: Option<Time>,
    /// Where the watched flows are sent from.
    watched: FxHashMap<FlowId, Option<u32>>,
}

impl Probes {
    pub fn new(measure: &MeasureConfig, until: Until, places: &Places) -> Probes {
        let named = |set: &[(u32, u32)]| -> Vec<NamedPort> {
            set.iter()
                .map(|&(node, local)| {
                    let (region, id) = places.of_port(node, local);
                    NamedPort { region, id, node, local }
                })
                .collect()
        };
        let mut probes = Vec::new();
        let mut add = |every: Time, measure| {
            let every = every.max(Time(1));
            probes.push(Probe { every, due: every, measure });
        };
        if let Some(m) = &measure.queue_histogram {
            let ports = named(&m.what).into_iter().map(|p| (p, QueueHistogram::default())).collect();
            add(m.every, Measure::QueueHistogram(ports));
        }
        if let Some(m) = &measure.queue_series {
            add(m.every, Measure::QueueSeries(named(&m.what)));
        }
        if let Some(m) = &measure.utilisation {
            add(m.every, Measure::Utilisation(named(&m.what).into_iter().map(Used::of).collect()));
        }
        if let Some(every) = measure.group_goodput {
            add(every, Measure::GroupGoodput(Vec::new()));
        }
        if let Some(m) = &measure.flow_goodput {
            add(m.every, Measure::FlowGoodput(Vec::new()));
        }
        let mut watched = FxHashMap::default();
        if let Some(m) = &measure.controllers {
            watched = m.what.iter().map(|&flow| (flow, None)).collect();
            let mut flows = m.what.clone();
            flows.sort_unstable();
            flows.dedup();
            add(m.every, Measure::Controllers(flows));
        }
        if let Some(m) = &measure.port_events {
            let ports = named(&m.what).into_iter().map(|p| (p, PortTotals::default())).collect();
            add(m.every, Measure::PortEvents(ports));
        }
        if let Some(m) = &measure.disciplines {
            let ports = named(&m.what).into_iter().map(|p| (p, CounterSet::default())).collect();
            add(m.every, Measure::Disciplines(ports));
        }
        // The last of a time, so that the other measures see the end of the run.
        let end_at = match until {
            Until::FlowsDone { grid, stall } => {
                let (delivered, since, changes, given_up) = (0, Time::ZERO, Time::ZERO, stall);
                add(grid, Measure::FlowsDone { stall, delivered, since, changes, given_up });
                None
            }
            Until::At(time) => {
                add(time, Measure::At);
                Some(time)
            }
        };
        Probes { probes, ending: None, end_at, watched }
    }

    /// The time at which the run ends, where that is known.
    pub fn end_at(&self) -> Option<Time> {
        self.end_at
    }

    /// When the next measure is due.
    pub fn next_time(&self) -> Time {
        self.probes.iter().map(|probe| probe.due).min().unwrap_or(Time::MAX)
    }

    /// The points of time at which the run may end once all is done.
    pub fn grid(&self) -> Time {
        let ends = |probe: &&Probe| matches!(probe.measure, Measure::FlowsDone { .. });
        self.probes.iter().find(ends).map_or(Time(1), |probe| probe.every)
    }

    /// The flows that are watched.
    pub fn watched(&self) -> impl Iterator<Item = FlowId> {
        self.watched.keys().copied()
    }

    pub fn flow_announced(&mut self, flow: FlowId, host: u32) {
        if let Some(place) = self.watched.get_mut(&flow) {
            *place = Some(host);
        }
    }

    /// The rate of a port changes now; it was `rate`.
    pub fn rate_changes(&mut self, (region, id): (usize, PortId), rate: Rate, now: Time) {
        for probe in &mut self.probes {
            let Measure::Utilisation(ports) = &mut probe.measure else { continue };
            let begin = probe.due.saturating_sub(probe.every);
            let its = ports.iter_mut().filter(|used| (used.port.region, used.port.id) == (region, id));
            its.for_each(|used| used.rate_ends(rate, begin, now));
        }
    }

    /// Histograms of queues, by (node, port).
    pub fn queues(&mut self) -> Vec<(u32, u32, QueueHistogram)> {
        let mut queues = Vec::new();
        for probe in &mut self.probes {
            if let Measure::QueueHistogram(ports) = &mut probe.measure {
                queues.extend(ports.drain(..).map(|(port, histogram)| (port.node, port.local, histogram)));
            }
        }
        queues
    }
}

impl Simulation {
    /// Nothing happens before `next`: takes the measures that are due until then, unless the run ends or many samples
    /// wait to be handed on. No window is opened for them, and a histogram takes all its equal samples at once.
    pub(crate) fn pass_quiet_time(&mut self, next: Time) {
        let mut reached = next;
        loop {
            let others = self.probes.probes.iter().filter(|probe| !probe.measure.is_histogram());
            let due = others.map(|probe| probe.due).min().filter(|&due| due < next);
            let Some(due) = due else { break };
            self.take_measures(due, next);
            if self.probes.ending.is_some() || self.samples.len() >= BATCH {
                reached = due + Time(1);
                break;
            }
        }
        for probe in &mut self.probes.probes {
            let Measure::QueueHistogram(ports) = &mut probe.measure else { continue };
            let times = reached.saturating_sub(probe.due).0.div_ceil(probe.every.0);
            for (port, histogram) in ports {
                histogram.add(port.port(&self.regions).queue.bytes(), times);
            }
            probe.due = probe.due.saturating_add(Time(probe.every.0.saturating_mul(times)));
        }
    }

    /// Takes the measures that are due at `now`: after everything else that happens then. Nothing happens from then to `next`.
    pub(crate) fn take_measures(&mut self, now: Time, next: Time) {
        self.now = now;
        let mut probes = std::mem::take(&mut self.probes.probes);
        for probe in probes.iter_mut().filter(|probe| probe.due == now) {
            self.take(&mut probe.measure, probe.every);
            probe.due = match probe.measure {
                Measure::FlowsDone { given_up, .. } => self.next_look(probe.every, given_up, next),
                _ => now.saturating_add(probe.every),
            };
        }
        self.probes.probes = probes;
    }

    /// The next point of the grid at which the run can end or be given up: where nothing happens before `next`, or no flow is
    /// under way before the next one starts, the last point before that.
    fn next_look(&self, every: Time, given_up: Time, next: Time) -> Time {
        let busy = self.flows.in_progress(self.flows_done()) > 0;
        let start = self.flows.next_start().filter(|_| !busy).unwrap_or(Time::ZERO);
        let last = Time(next.max(start).0.saturating_sub(1) / every.0 * every.0);
        let given_up = Time(given_up.0.div_ceil(every.0).saturating_mul(every.0));
        self.now.saturating_add(every).max(last.min(given_up))
    }

    /// The run ends now: measures of what happened in an interval have a last, shorter one where it ends inside of one, so that
    /// their intervals cover all of the run.
    pub(crate) fn take_last_measures(&mut self) {
        let mut probes = std::mem::take(&mut self.probes.probes);
        for probe in probes.iter_mut().filter(|probe| probe.measure.is_of_intervals()) {
            let began = probe.due.saturating_sub(probe.every);
            if began < self.now && self.now < probe.due {
                self.take(&mut probe.measure, self.now - began);
            }
        }
        self.probes.probes = probes;
    }

    /// `interval`: the time since the last look.
    fn take(&mut self, measure: &mut Measure, interval: Time) {
        let (now, regions) = (self.now, &self.regions);
        let seconds = interval.as_seconds();
        let mut sample =
            |entity, metric, value| self.samples.push(Sample { time: now, entity, metric, value });
        match measure {
            Measure::At => self.probes.ending = Some(Ending::Done),
            Measure::FlowsDone { stall, delivered, since, changes, given_up } => {
                (self.probes.ending, *given_up) = self.near_end(*stall, delivered, since, changes);
            }
            Measure::QueueHistogram(ports) => {
                for (port, histogram) in ports {
                    histogram.add(port.port(regions).queue.bytes(), 1);
                }
            }
            Measure::QueueSeries(ports) => {
                for port in ports {
                    sample(port.entity(), "queue_bytes", port.port(regions).queue.bytes() as f64);
                }
            }
            Measure::Utilisation(ports) => {
                for used in ports {
                    let share = used.share(used.port.port(regions), now, seconds);
                    sample(used.port.entity(), "utilisation", share);
                }
            }
            Measure::GroupGoodput(before) => {
                before.resize(regions[0].net.recorder.group_delivered.len(), 0);
                for (group, before) in before.iter_mut().enumerate() {
                    let bytes = regions.iter().map(|r| r.net.recorder.group_delivered[group]).sum();
                    sample(Entity::Group(group as u16), "goodput_bps", goodput(before, bytes, seconds));
                }
            }
            Measure::FlowGoodput(before) => {
                let watched = &regions[0].net.recorder.watched;
                before.resize(watched.len(), 0);
                for (at, before) in before.iter_mut().enumerate() {
                    let bytes = regions.iter().map(|r| r.net.recorder.watched[at].1).sum();
                    sample(Entity::Flow(watched[at].0), "goodput_bps", goodput(before, bytes, seconds));
                }
            }
            Measure::Controllers(flows) => self.view_controllers(flows),
            Measure::Disciplines(ports) => self.view_disciplines(ports),
            Measure::PortEvents(ports) => {
                for (port, before) in ports {
                    let totals = port.partition(regions).totals[port.id as usize];
                    let counts = [
                        ("ecn_marks", totals.ecn_marks - before.ecn_marks),
                        ("drops", totals.packets_dropped - before.packets_dropped),
                        ("pauses", totals.pauses - before.pauses),
                    ];
                    *before = totals;
                    for (metric, count) in counts {
                        sample(port.entity(), metric, count as f64);
                    }
                }
            }
        }
    }

    /// Whether the run ends: all flows are done, or nothing has been delivered for the stall time though some should. And when
    /// it will be given up unless something happens. While links are still to fail or to recover the run continues; after the last
    /// change it continues for the length of the silence before it, because timeouts double: a sender that has failed for a minute
    /// may try again a minute later.
    fn near_end(
        &self,
        stall: Time,
        delivered: &mut u64,
        since: &mut Time,
        changes: &mut Time,
    ) -> (Option<Ending>, Time) {
        let (now, done) = (self.now, self.flows_done());
        let delivered_now = self.regions.iter().map(|r| r.net.recorder.delivered).sum();
        if delivered_now != *delivered {
            (*delivered, *since) = (delivered_now, now);
        }
        let ranks_left = self.unfinished_ranks();
        if self.flows.all_done(done) && ranks_left == 0 {
            return (Some(Ending::Done), now);
        }
        let comes = self.regions.iter().any(|region| region.starts.are_due())
            || self.flows.next_start().is_some_and(|start| start <= now + stall);
        let started = self.regions.iter().map(|region| region.graphs.started).sum();
        if !comes
            && ranks_left > 0
            && self.flows.next_start().is_none()
            && self.flows.under_way(started, done) == 0
        {
            // Ranks wait, and nothing is in flight to any of them.
            return (Some(Ending::Stalled), now);
        }
        if comes || self.flows.in_progress(done) == 0 {
            *since = now;
            return (None, Time::MAX);
        }
        if self.changes.next_time().is_some() {
            *changes = now;
            return (None, Time::MAX);
        }
        let given_up = (*since).max(*changes).saturating_add(patience(stall, *since, *changes));
        ((now >= given_up).then_some(Ending::Stalled), given_up)
    }

    /// Why the run was given up, if it was because nothing had been delivered for long.
    pub(super) fn silence(&self, ending: Ending) -> Option<Silence> {
        if ending != Ending::Stalled {
            return None;
        }
        self.probes.probes.iter().find_map(|probe| {
            let Measure::FlowsDone { stall, since, changes, .. } = probe.measure else { return None };
            let waited = patience(stall, since, changes);
            let after_change = changes > since;
            let given_up = since.max(changes).saturating_add(waited) <= self.now;
            given_up.then(|| Silence { stall, waited, after_change, slow: self.slow_ports(waited) })
        })
    }

    /// The ports that are busy with a packet on a link on which one takes longer than this, in the order of
    /// the nodes and their ports.
    fn slow_ports(&self, waited: Time) -> Vec<SlowPort> {
        let slow = |(number, side): (usize, &Side)| {
            let (node, local) = (side.node, number as u32 - self.map.first_port[side.node as usize]);
            let (region, id) = self.places.of_port(node, local);
            let port = &self.regions[region].net.ports[id as usize];
            let (left, rate) = (port.busy_until.saturating_sub(self.now), port.line.rate);
            let packet = rate.transmission_time(PACKET_BYTES).max(left);
            let is_slow = port.up && left > Time::ZERO && packet > waited;
            is_slow.then_some(SlowPort { node, local, peer: side.peer_node, rate, packet })
        };
        self.map.sides.iter().enumerate().filter_map(slow).collect()
    }

    /// What disciplines have counted since the last look, and their gauges. Disciplines that count nothing give nothing.
    fn view_disciplines(&mut self, ports: &mut [(NamedPort, CounterSet)]) {
        for (port, before) in ports {
            let mut counted = CounterSet::default();
            let region = &mut self.regions[port.region].net;
            region.ports[port.id as usize].queue.count(self.now, &mut counted);
            counted.complete(&queue::counters());
            let (time, entity) = (self.now, port.entity());
            let sample = |(metric, value)| Sample { time, entity, metric, value };
            self.samples.extend(counted.iter().flat_map(|counters| counters.series(before)).map(sample));
            *before = counted;
        }
    }

    fn view_controllers(&mut self, flows: &[FlowId]) {
        for &flow in flows {
            let Some(&Some(host)) = self.probes.watched.get(&flow) else { continue };
            let (region, index) = self.places.of_host(host);
            let transports = &self.regions[region].hosts[index as usize].transports;
            let Some(view) = transports.iter().find_map(|transport| transport.view(flow, self.now)) else {
                continue;
            };
            let mut values = Vec::new();
            values.extend(view.rate_bps.map(|rate| ("rate_bps", rate)));
            values.extend(view.cwnd_bytes.map(|cwnd| ("cwnd_bytes", cwnd)));
            values.extend(view.internals);
            for (metric, value) in values {
                self.samples.push(Sample { time: self.now, entity: Entity::Flow(flow), metric, value });
            }
        }
    }
}

/// For how long a run waits for a delivery, from the last one or the last change of the network, whichever is
/// later.
fn patience(stall: Time, since: Time, changes: Time) -> Time {
    stall.max(changes.saturating_sub(since))
}

/// Bits per second since the last look, from all bytes so far.
fn goodput(before: &mut u64, bytes: u64, seconds: f64) -> f64 {
    let new = bytes - std::mem::replace(before, bytes);
    new as f64 * 8.0 / seconds
}
