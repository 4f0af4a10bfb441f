//! Flows that start together, of which receivers have requested nothing yet: what is lost of their first packets
//! on the links of receivers, or of switches to others, and what receivers request because it comes late.
//!
//! ```text
//! lost = F - B - R T               F: bits of the first packets on a link; B: that may wait at a port; R: rate
//!                                  of the link; T: mean time in which their sources send them
//! ```
//!
//! All of them share their links from then on: each has as much sent again as the last one.

use rustc_hash::FxHashMap;

use crate::estimate::fabric::{Crossing, Fabric, Requests};
use crate::topology::HostId;
use crate::units::Time;

/// Flows that are looked at together.
const TOGETHER: usize = 20_000;

/// The first packets of a flow.
pub(super) struct First {
    /// Its place among the flows in flight.
    pub flying: u32,
    pub src: HostId,
    pub crossing: Crossing,
    pub requests: Requests,
    pub bits: f64,
    pub packets: f64,
    /// Packet-hops of each that is lost, and of a request.
    pub lost: f64,
    pub asked: f64,
    /// How many times each packet of the flow is sent, and the packet-hops of all of them once more.
    pub sendings: f64,
    pub again: f64,
}

/// Flows that start at one time.
#[derive(Default)]
pub(super) struct Bursts {
    at: Time,
    flows: Vec<First>,
}

impl Bursts {
    /// Whether a flow that starts at a time is one of these.
    pub fn takes(&self, now: Time) -> bool {
        self.flows.is_empty() || self.at == now && self.flows.len() < TOGETHER
    }

    pub fn add(&mut self, now: Time, first: First) {
        self.at = now;
        self.flows.push(first);
    }

    /// The packet-hops that are added to flows, by their places. `room`: bytes that may wait at a port.
    pub fn end(&mut self, fabric: &Fabric, room: u64) -> Vec<(u32, f64)> {
        let flows = std::mem::take(&mut self.flows);
        if flows.len() < 2 {
            return Vec::new();
        }
        let mut sent: FxHashMap<HostId, f64> = FxHashMap::default();
        flows.iter().for_each(|first| *sent.entry(first.src).or_default() += first.bits);
        let time = |first: &First| sent[&first.src] / fabric.rate(first.crossing.places[0]).max(1.0);
        // By link: bits, and bits times the time in which they are sent.
        let mut links: FxHashMap<u32, (f64, f64)> = FxHashMap::default();
        for first in &flows {
            for &place in &first.crossing.places[1..] {
                let (bits, times) = links.entry(place).or_default();
                (*bits, *times) = (*bits + first.bits, *times + first.bits * time(first));
            }
        }
        let more = |first: &First| {
            let sendings = fabric.requested(&first.crossing, &first.requests).sendings;
            let again = (sendings - first.sendings).max(0.0) * first.again;
            if first.packets == 0.0 {
                return (first.flying, again);
            }
            let (mut lost, mut taken) = (0.0f64, time(first));
            for place in &first.crossing.places[1..] {
                let ((bits, times), rate) = (links[place], fabric.rate(*place).max(1.0));
                let over = bits - room as f64 * 8.0 - rate * times / bits.max(1.0);
                let there = over.max(0.0) / bits.max(1.0);
                // Until all have arrived that do.
                (lost, taken) = (lost.max(there), taken.max(bits * (1.0 - there) / rate));
            }
            let packet = first.bits / first.packets / fabric.rate(first.crossing.places[1]).max(1.0);
            let late = first.requests.asks.patience.map_or(0.0, |(times, packets)| {
                (1.0 - (times * first.packets + packets) * packet / taken.max(1e-12)).max(0.0)
            });
            let hops = (lost * first.lost).max(late * first.asked + lost * (first.lost - first.asked));
            (first.flying, again + first.packets * hops)
        };
        flows.iter().map(more).collect()
    }
}
