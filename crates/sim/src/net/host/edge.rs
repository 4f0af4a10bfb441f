//! A host's edge: what stands between its transports and its links, as a virtual switch does. It sees every packet that leaves
//! or comes, may send it by another path, may hold it back, puts telemetry in and takes it off, counts,
//! and lets what came wait for the host's processor. A host that nobody asks for anything has none.

use super::HostConfig;
use super::processor::Processor;
use super::resequencer::Resequencer;
use super::telemetry_shim::TelemetryShim;
use crate::balance::{Balancer, HostPort, LoadBalancer};
use crate::counters::CounterSet;
use crate::measure::{self, MeasureConfig};
use crate::net::map::Map;
use crate::net::partition::Partition;
use crate::packet::{PacketId, PacketKind};
use crate::units::Time;

pub struct Edge {
    /// The balancer's part at this host.
    balancer: Option<Balancer>,
    shim: Option<TelemetryShim>,
    resequencer: Option<Resequencer>,
    processor: Option<Processor>,
    /// Packets that the transports are to see now, in order.
    ready: Vec<PacketId>,
}

impl Edge {
    /// What a host needs in a run, if anything.
    pub fn new(
        balancer: Option<Balancer>,
        shim: Option<TelemetryShim>,
        host: &HostConfig,
        measure: &MeasureConfig,
    ) -> Option<Box<Edge>> {
        let resequencing = host.resequencing;
        let asked = resequencing.is_some() || measure.reordering || measure.paths;
        let resequencer = asked.then(|| Resequencer::new(resequencing, measure.paths));
        let processor = (host.packet_time > Time::ZERO).then(|| Processor::new(host.packet_time));
        let needed = balancer.is_some() || shim.is_some() || resequencer.is_some() || processor.is_some();
        needed.then(|| Box::new(Edge { balancer, shim, resequencer, processor, ready: Vec::new() }))
    }

    /// A packet leaves for the link behind a port.
    #[inline(never)]
    pub fn on_egress(&mut self, net: &mut Partition, map: &Map, id: PacketId, at: (u32, u32)) {
        if self.resequencer.as_ref().is_some_and(Resequencer::traces) {
            net.trails.set(id, 0);
        }
        if let Some(shim) = &self.shim {
            shim.on_egress(net, id);
        }
        let Some(balancer) = &mut self.balancer else { return };
        let at = HostPort { node: at.0, port: at.1, wiring: map, now: net.now };
        let word = balancer.on_send(&mut net.packets[id], &at);
        net.headers.set(id, word);
    }

    /// A packet has come; by `at` the way back leads. Afterwards [`Edge::ready`] has what the transports are to see.
    #[inline(never)]
    pub fn on_ingress(&mut self, net: &mut Partition, map: &Map, id: PacketId, at: (u32, u32)) {
        if let Some(balancer) = &mut self.balancer {
            let at = HostPort { node: at.0, port: at.1, wiring: map, now: net.now };
            let word = net.headers.get(id);
            balancer.on_receive(&mut net.packets[id], word, &at);
        }
        if let Some(shim) = &self.shim {
            shim.on_ingress(net, id);
        }
        match &mut self.resequencer {
            Some(resequencer) if net.packets[id].kind == PacketKind::Data => {
                resequencer.take(net, id, &mut self.ready);
            }
            _ => self.ready.push(id),
        }
        self.hand_over(net.now);
    }

    /// What has come through the rest of the edge waits for the processor, if there is one.
    fn hand_over(&mut self, now: Time) {
        if let Some(processor) = &mut self.processor {
            self.ready.drain(..).for_each(|id| processor.take(id, now));
        }
    }

    /// Takes out what the transports are to see, to be given back empty by [`Edge::give_back`].
    pub fn ready(&mut self) -> Vec<PacketId> {
        std::mem::take(&mut self.ready)
    }

    pub fn give_back(&mut self, mut ready: Vec<PacketId>) {
        ready.clear();
        self.ready = ready;
    }

    /// When packets are given up waiting for, and when the processor is done with the next one, where an event is to be set for it.
    pub fn alarms(&mut self) -> [Option<Time>; 2] {
        let given_up = self.resequencer.as_mut().and_then(Resequencer::alarm);
        [given_up, self.processor.as_mut().and_then(Processor::alarm)]
    }

    /// An event that was set for one of [`Edge::alarms`], by its place there, has come.
    pub fn timer(&mut self, alarm: u32, net: &mut Partition) {
        if alarm == 0 {
            if let Some(resequencer) = &mut self.resequencer {
                resequencer.expire(net, &mut self.ready);
            }
            self.hand_over(net.now);
        } else if let Some(processor) = &mut self.processor {
            processor.expire(net, &mut self.ready);
        }
    }

    /// No packet of this flow can come any more.
    pub fn forget(&mut self, flow: u32) {
        if let Some(resequencer) = &mut self.resequencer {
            resequencer.forget(flow);
        }
    }

    /// The run ends: what is held is freed.
    pub fn finish(&mut self, net: &mut Partition) {
        if let Some(resequencer) = &mut self.resequencer {
            resequencer.finish(net);
        }
        if let Some(processor) = &mut self.processor {
            processor.finish(net);
        }
    }

    pub fn count(&mut self, now: Time, counters: &mut CounterSet) {
        if let Some(balancer) = &mut self.balancer {
            balancer.count(now, counters);
        }
        if let Some(processor) = &self.processor {
            processor.count(counters);
        }
    }

    /// Adds what came to the host.
    pub fn add_to(&self, totals: &mut measure::Receiving) {
        if let Some(resequencer) = &self.resequencer {
            resequencer.add_to(totals);
        }
    }
}
