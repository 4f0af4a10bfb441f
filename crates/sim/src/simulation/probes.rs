//! Measures taken at points of a time grid, and the decision when the run ends.

use super::Simulation;
use crate::config::{MeasureConfig, Until};
use crate::measure::{Ending, Entity, PortTotals, QueueHistogram};
use crate::net::PortId;
use crate::net::partition::Partition;
use crate::queue::QueueDiscipline;
use crate::transport::Transport;
use crate::units::Time;
use crate::workload::FlowId;
use rustc_hash::FxHashMap;

/// A port with its name in results.
#[derive(Clone, Copy)]
struct NamedPort {
    id: PortId,
    node: u32,
    local: u32,
}

impl NamedPort {
    fn entity(self) -> Entity {
        Entity::Port(self.node, self.local)
    }
}

enum Measure {
    /// Ends the run when all flows are done, or nothing has moved for too long.
    FlowsDone {
        stall: Time,
        delivered: u64,
        since: Time,
    },
    At,
    QueueHistogram(Vec<(NamedPort, QueueHistogram)>),
    QueueSeries(Vec<NamedPort>),
    /// With the bytes sent at the last look.
    Utilisation(Vec<(NamedPort, u64)>),
    GroupGoodput(Vec<u64>),
    FlowGoodput(Vec<u64>),
    Controllers(Vec<FlowId>),
    /// With the totals at the last look.
    PortEvents(Vec<(NamedPort, PortTotals)>),
}

struct Probe {
    every: Time,
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
    pub fn new(measure: &MeasureConfig, until: Until, first_port: &[u32]) -> Probes {
        let named = |set: &[(u32, u32)]| -> Vec<NamedPort> {
            set.iter()
                .map(|&(node, local)| NamedPort { id: first_port[node as usize] + local, node, local })
                .collect()
        };
        let mut probes = Vec::new();
        let mut add = |every: Time, measure| probes.push(Probe { every: every.max(Time(1)), measure });
        if let Some(m) = &measure.queue_histogram {
            let ports = named(&m.what).into_iter().map(|p| (p, QueueHistogram::default())).collect();
            add(m.every, Measure::QueueHistogram(ports));
        }
        if let Some(m) = &measure.queue_series {
            add(m.every, Measure::QueueSeries(named(&m.what)));
        }
        if let Some(m) = &measure.utilisation {
            add(m.every, Measure::Utilisation(named(&m.what).into_iter().map(|p| (p, 0)).collect()));
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
        // The last of a time, so that the other measures see the end of the run.
        let end_at = match until {
            Until::FlowsDone { grid, stall } => {
                add(grid, Measure::FlowsDone { stall, delivered: 0, since: Time::ZERO });
                None
            }
            Until::At(time) => {
                add(time, Measure::At);
                Some(time)
            }
        };
        probes.reverse();
        Probes { probes, ending: None, end_at, watched }
    }

    /// The time at which the run ends, where that is known.
    pub fn end_at(&self) -> Option<Time> {
        self.end_at
    }

    pub fn schedule(&self, net: &mut Partition) {
        for (number, probe) in self.probes.iter().enumerate() {
            net.schedule_tick(probe.every, number as u32);
        }
    }

    pub fn flow_starts(&mut self, flow: FlowId, host: u32) {
        if let Some(place) = self.watched.get_mut(&flow) {
            *place = Some(host);
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
    /// A measure is due.
    pub(super) fn tick(&mut self, number: u32) {
        let mut probe = std::mem::replace(
            &mut self.probes.probes[number as usize],
            Probe { every: Time::MAX, measure: Measure::At },
        );
        let now = self.net.now;
        self.take(&mut probe);
        if self.probes.ending.is_none() {
            let next = match probe.measure {
                Measure::FlowsDone { .. } => self.after_idle_time(probe.every),
                _ => now + probe.every,
            };
            self.net.schedule_tick(next, number);
        }
        self.probes.probes[number as usize] = probe;
    }

    /// The next point of the grid at which the end of the run can be near: while no flow is under way, the last one before
    /// the next starts.
    fn after_idle_time(&self, every: Time) -> Time {
        let soonest = self.net.now + every;
        let busy = self.flows.in_progress(self.net.recorder.flows_done) > 0;
        match self.flows.next_start().filter(|_| !busy) {
            Some(start) => soonest.max(Time(start.0.saturating_sub(1) / every.0 * every.0)),
            None => soonest,
        }
    }

    fn take(&mut self, probe: &mut Probe) {
        let net = &mut self.net;
        let now = net.now;
        let seconds = probe.every.as_seconds();
        match &mut probe.measure {
            Measure::At => self.probes.ending = Some(Ending::Done),
            Measure::FlowsDone { stall, delivered, since } => {
                if net.recorder.delivered != *delivered {
                    (*delivered, *since) = (net.recorder.delivered, now);
                }
                let done = net.recorder.flows_done;
                if self.flows.all_done(done) {
                    self.probes.ending = Some(Ending::Done);
                } else if self.flows.in_progress(done) > 0 {
                    let comes = self.flows.next_start().is_some_and(|start| start <= now + *stall);
                    if !comes && now.saturating_sub(*since) >= *stall {
                        self.probes.ending = Some(Ending::Stalled);
                    }
                } else {
                    *since = now;
                }
            }
            Measure::QueueHistogram(ports) => {
                for (port, histogram) in ports {
                    histogram.add(net.ports[port.id as usize].queue.bytes());
                }
            }
            Measure::QueueSeries(ports) => {
                for port in ports {
                    let bytes = net.ports[port.id as usize].queue.bytes();
                    net.recorder.sample(now, port.entity(), "queue_bytes", bytes as f64);
                }
            }
            Measure::Utilisation(ports) => {
                for (port, before) in ports {
                    let there = &net.ports[port.id as usize];
                    let share = (there.bytes_sent - *before) as f64 * 8.0 / (there.rate.0 as f64 * seconds);
                    *before = there.bytes_sent;
                    net.recorder.sample(now, port.entity(), "utilisation", share);
                }
            }
            Measure::GroupGoodput(before) => {
                before.resize(net.recorder.group_delivered.len(), 0);
                for (group, before) in before.iter_mut().enumerate() {
                    let bytes = net.recorder.group_delivered[group];
                    let rate = (bytes - *before) as f64 * 8.0 / seconds;
                    *before = bytes;
                    net.recorder.sample(now, Entity::Group(group as u16), "goodput_bps", rate);
                }
            }
            Measure::FlowGoodput(before) => {
                before.resize(net.recorder.watched.len(), 0);
                for (at, before) in before.iter_mut().enumerate() {
                    let (flow, bytes) = net.recorder.watched[at];
                    let rate = (bytes - *before) as f64 * 8.0 / seconds;
                    *before = bytes;
                    net.recorder.sample(now, Entity::Flow(flow), "goodput_bps", rate);
                }
            }
            Measure::Controllers(flows) => self.view_controllers(flows),
            Measure::PortEvents(ports) => {
                for (port, before) in ports {
                    let totals = net.totals[port.id as usize];
                    let counts = [
                        ("ecn_marks", totals.ecn_marks - before.ecn_marks),
                        ("drops", totals.packets_dropped - before.packets_dropped),
                        ("pauses", totals.pauses - before.pauses),
                    ];
                    *before = totals;
                    for (metric, count) in counts {
                        net.recorder.sample(now, port.entity(), metric, count as f64);
                    }
                }
            }
        }
    }

    fn view_controllers(&mut self, flows: &[FlowId]) {
        for &flow in flows {
            let Some(&Some(host)) = self.probes.watched.get(&flow) else { continue };
            let transports = &self.hosts[host as usize].transports;
            let Some(view) = transports.iter().find_map(|transport| transport.view(flow)) else { continue };
            let (now, entity) = (self.net.now, Entity::Flow(flow));
            self.net.recorder.sample(now, entity, "rate_bps", view.rate_bps);
            if let Some(cwnd) = view.cwnd_bytes {
                self.net.recorder.sample(now, entity, "cwnd_bytes", cwnd);
            }
            for (metric, value) in view.internals {
                self.net.recorder.sample(now, entity, metric, value);
            }
        }
    }
}
