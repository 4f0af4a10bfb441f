//! A lower bound of the time that a job takes alone on the network: a collective operation, whose flows wait for
//! each other.
//!
//! A flow starts when those that it waits for have been delivered to its host (or acknowledged, if its own host
//! sent them), and takes at least the time that it takes alone. What a host has to receive before a flow of its
//! own starts passes through its links, and takes at least
//!
//! ```text
//! start of the first + latency of one packet up to the host's link + bytes on the wire / rate of the host's links
//! ```
//!
//! The same holds for everything that a host receives or sends during the job. The bound omits that
//! acknowledgements share links with data.

use super::{Ideals, lone};
use crate::topology::HostId;
use crate::units::Time;
use crate::workload::{FlowSource, FlowSpec};
use rustc_hash::FxHashMap;

/// A flow alone.
#[derive(Debug, Clone, Copy)]
struct Alone {
    delivered: Time,
    acknowledged: Time,
    /// Transmission of all its packets at the rate of its sender, and at that of its receiver.
    sending: Time,
    receiving: Time,
    /// Latency of its smallest packet without its transmission on the first link, and without the last one.
    after: Time,
    before: Time,
}

/// What passes through the links of a host.
#[derive(Debug, Clone, Copy)]
struct Through {
    start: Time,
    latency: Time,
    busy: Time,
}

impl Default for Through {
    fn default() -> Through {
        Through { start: Time::MAX, latency: Time::MAX, busy: Time::ZERO }
    }
}

impl Through {
    fn add(&mut self, start: Time, latency: Time, busy: Time) {
        self.start = self.start.min(start);
        self.latency = self.latency.min(latency);
        self.busy = self.busy.saturating_add(busy);
    }

    fn end(&self) -> Time {
        match self.start {
            Time::MAX => Time::ZERO,
            start => start.saturating_add(self.latency).saturating_add(self.busy),
        }
    }
}

/// What a flow waits for.
#[derive(Debug, Clone, Copy, Default)]
struct Awaited {
    ready: Time,
    received: Through,
}

impl Ideals {
    /// Returns the bound for the first `count` flows of a source, which are those of its first job; none if the
    /// network as configured has no path for one of them. `later`: the flows that wait for a flow, by order.
    pub fn job<'d>(
        &mut self,
        source: &dyn FlowSource,
        count: u32,
        later: impl Fn(u32) -> &'d [u32],
    ) -> Option<Time> {
        let flows = || {
            let mut source = source.clone_box();
            (0..count).map_while(move |_| source.next())
        };
        let senders: Vec<HostId> = flows().map(|flow| flow.src).collect();
        let mut awaited = vec![Awaited::default(); senders.len()];
        let mut known: FxHashMap<(HostId, HostId, u64), Alone> = FxHashMap::default();
        let (mut sent, mut received): (FxHashMap<HostId, Through>, FxHashMap<HostId, Through>) =
            Default::default();
        let mut end = Time::ZERO;
        for (order, flow) in flows().enumerate() {
            let key = (flow.src, flow.dst, flow.size);
            let alone = match known.get(&key) {
                Some(alone) => *alone,
                None => *known.entry(key).or_insert(self.flow_of_job(&flow)?),
            };
            let waited = &awaited[order];
            let start = waited.ready.max(waited.received.end()).saturating_add(flow.compute);
            let delivered = start.saturating_add(alone.delivered);
            let acknowledged = start.saturating_add(alone.acknowledged);
            end = end.max(delivered);
            sent.entry(flow.src).or_default().add(start, alone.after, alone.sending);
            received.entry(flow.dst).or_default().add(start, alone.before, alone.receiving);
            for &next in later(order as u32) {
                // Flows of the next job wait for this one too.
                let Some(next_sender) = senders.get(next as usize) else { continue };
                let next = &mut awaited[next as usize];
                if *next_sender == flow.dst {
                    next.ready = next.ready.max(delivered);
                    next.received.add(start, alone.before, alone.receiving);
                } else {
                    next.ready = next.ready.max(acknowledged);
                }
            }
        }
        let busy = sent.values().chain(received.values()).map(Through::end);
        Some(busy.fold(end, Time::max))
    }

    /// A flow of a job alone; none if there is no path.
    fn flow_of_job(&mut self, flow: &FlowSpec) -> Option<Alone> {
        let sending = self.transports[usize::from(flow.transport)];
        let (delivered, _) = self.configured(flow, &sending, &sending, false)?;
        let (acknowledged, _) = self.configured(flow, &sending, &sending, true)?;
        let rate = |host| self.links.host_rate(&self.routes[0], host);
        let (from, to) = (rate(flow.src)?, rate(flow.dst)?);
        let framing = sending.framing;
        let packets = flow.size.div_ceil(framing.payload).max(1);
        let wire = flow.size + packets * framing.header;
        let smallest = framing.data_bytes(flow.size - (packets - 1) * framing.payload);
        let [there, back] = self.paths.pairs(&self.links, flow.src, flow.dst)?;
        let latency = lone(&there, &back, &self.links, smallest);
        Some(Alone {
            delivered,
            acknowledged,
            sending: from.transmission_time(wire),
            receiving: to.transmission_time(wire),
            after: latency.saturating_sub(from.transmission_time(smallest)),
            before: latency.saturating_sub(to.transmission_time(smallest)),
        })
    }
}
