//! RED: drops or marks arriving packets with a probability that grows with the average queue.
//!
//! ```text
//! avg := (1 - w) avg + w q                        at every arrival
//! avg := (1 - w)^m avg                            over a time in which the link is idle, in which m mean packets could be sent
//! pb  := p (avg - min) / (max - min)              between min and max
//! pb  := p + (1 - p) (avg - max) / max            gentle: between max and 2 max
//! pa  := pb / (1 - n pb)                          n packets since the last one, so that gaps are uniform
//! ```
//!
//! Above max (gentle: 2 max) every packet is dropped, below min none.
//!
//! Source: Floyd, Jacobson, "Random Early Detection Gateways for Congestion Avoidance", ToN 1993, §4; gentle: Floyd,
//! "Recommendation on using the gentle_ variant of RED", 2000; marks instead of drops below the upper end: RFC 3168 §7.
//! Queues are bytes; a packet's probability does not depend on its size.
//! *Parameters*: `min_queue`, `max_queue`, `weight` 0.002, `probability` 0.1 (the values that Floyd recommends with gentle),
//! `gentle`, `mean_packet` (what idle time is counted in), `ecn`.

use super::managed::{
    BUFFER, Discipline, DisciplineParameters, EARLY, FAR, Limit, List, PortFacts, PortPlace, QueueContext,
    Queued,
};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::units::{Bytes, Rate, Time};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedConfig {
    /// Of the average queue: below the one nothing is dropped, at the other a share of `probability`.
    pub min_th: Bytes,
    pub max_th: Bytes,
    /// Of a new sample in the average.
    pub weight: f64,
    pub probability: f64,
    pub gentle: bool,
    /// In which idle time is counted.
    pub mean_packet: Bytes,
    /// Packets are marked instead of dropped where they may be.
    pub ecn: bool,
}

impl DisciplineParameters for RedConfig {
    type State = Red;
    const DOC: SchemeDoc = SchemeDoc {
        name: "red",
        title: "first come, first served; early random drops or marks by the average queue",
        source: "Floyd, Jacobson, \"Random Early Detection Gateways for Congestion Avoidance\", ToN 1993",
        validation: "The average by hand, the shape of the probability, uniform gaps between signals (the paper's \
                     section 7).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> RedConfig {
        let min_th = p.bytes("min_queue", Bytes(50_000), "no packet is dropped below this average queue");
        let max_th = p.bytes(
            "max_queue",
            Bytes(150_000),
            "above this average queue the drop probability rises steeply (Floyd: three times min_queue)",
        );
        if min_th >= max_th || max_th.0 > 1 << 50 {
            p.complain("min_queue", format!("{min_th} must be below max_queue, which is {max_th}"));
        }
        let weight = p.number(
            "weight",
            0.002,
            (1e-9, 1.0),
            "weight of a new sample in the average queue (Floyd: 0.002)",
        );
        let help = "probability of a drop at max_queue (Floyd: 0.1 with gentle)";
        let probability = p.number("probability", 0.1, (0.0, 1.0), help);
        let help = "above max_queue the probability rises linearly to 1 at twice max_queue, instead of dropping everything";
        let gentle = p.flag("gentle", true, help);
        let mean_packet = p.bytes("mean_packet", Bytes(1500), "packet size in which idle time is counted");
        if mean_packet.0 == 0 || mean_packet.0 > 1 << 20 {
            p.complain(
                "mean_packet",
                format!("{mean_packet} is not a valid packet size: expected 1B to 1MiB"),
            );
        }
        let ecn = p.flag("ecn", true, "mark packets that may be marked instead of dropping them");
        let mean_packet = Bytes(mean_packet.0.clamp(1, 1 << 20));
        RedConfig { min_th, max_th, weight, probability, gentle, mean_packet, ecn }
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn drops_instead(&self) -> Option<&'static str> {
        self.ecn.then_some("ecn = false")
    }

    fn warning(&self, limit: Limit, port: &PortFacts) -> Option<String> {
        let by_queue = self.never_begins(limit, port).or_else(|| self.begins_late(port));
        by_queue.or_else(|| self.averages_too_long(port)).or_else(|| self.averages_too_briefly(port))
    }

    fn start(&self, _limit: Limit, place: &PortPlace) -> Red {
        let name = format!("switch.{}.p{}.red", place.node, place.local);
        Red {
            config: *self,
            random: RandomStream::new(place.seed, &name),
            list: List::default(),
            average: 0.0,
            since: None,
            idle_since: Some(Time::ZERO),
            rate: place.rate,
            packet_time: place.rate.transmission_time(self.mean_packet.0),
        }
    }
}

/// Round trips over which the average that a warning advises is taken.
const AVERAGED: f64 = 10.0;

impl RedConfig {
    /// The average is never above the longest queue.
    fn never_begins(&self, limit: Limit, port: &PortFacts) -> Option<String> {
        let room = Bytes(limit.bytes.0.min(u64::from(limit.packets).saturating_mul(port.packet)));
        (self.min_th >= room).then(|| {
            format!(
                "switch.queue.min_queue: {} at {}, and no queue there holds more than {room}: the average never comes above it, so that \
                 nothing is dropped or marked early. Set min_queue and max_queue below {room}, or a larger buffer (packets, limit)",
                self.min_th,
                (port.name)()
            )
        })
    }

    fn begins_late(&self, port: &PortFacts) -> Option<String> {
        let advice = "Set min_queue and max_queue to what the link carries in some round trips, or less";
        let waits = port.rate.transmission_time(self.min_th.0);
        port.waits_long("min_queue", waits, advice)
    }

    /// In which the average comes to what a lasting queue is, but for a part of 1/e.
    fn averages_over(&self, port: &PortFacts) -> Time {
        Time((port.rate.transmission_time(self.mean_packet.0).0 as f64 / self.weight).round() as u64)
    }

    /// The buffer is full before the average shows it.
    fn averages_too_long(&self, port: &PortFacts) -> Option<String> {
        let round_trip = (port.base_rtt)().saturating_add(port.rate.transmission_time(self.min_th.0));
        let over = self.averages_over(port);
        (over.0 / FAR > round_trip.0).then(|| {
            let what = format!(
                "a round trip with a queue of min_queue takes {round_trip}: queues that last for many round trips do not show"
            );
            self.averaged(port, over, &what, round_trip)
        })
    }

    /// What senders do within a round trip counts as a queue that lasts; a weight of 1 asks for that.
    fn averages_too_briefly(&self, port: &PortFacts) -> Option<String> {
        let (round_trip, over) = ((port.base_rtt)(), self.averages_over(port));
        (self.weight < 1.0 && over.0.saturating_mul(FAR) < round_trip.0).then(|| {
            let what =
                format!("the longest base RTT is {round_trip}: a short burst counts as a queue that lasts");
            self.averaged(port, over, &what, round_trip)
        })
    }

    fn averaged(&self, port: &PortFacts, over: Time, what: &str, round_trip: Time) -> String {
        let packet = port.rate.transmission_time(self.mean_packet.0);
        format!(
            "switch.queue.weight: {} at {} averages the queue over {over}, and {what}. Set weight = {:.1e}, which averages over \
             {AVERAGED} round trips",
            self.weight,
            (port.name)(),
            packet.0 as f64 / (AVERAGED * round_trip.0 as f64)
        )
    }
}

#[derive(Debug, Clone)]
pub struct Red {
    config: RedConfig,
    random: RandomStream,
    list: List,
    /// Average queue in bytes.
    average: f64,
    /// Packets since the last one that was marked or dropped, while the average was above min; none: below.
    since: Option<u32>,
    /// Until when the empty queue has been counted, which begins when its last packet has been sent. None: packets wait.
    idle_since: Option<Time>,
    rate: Rate,
    /// Time of an average packet on the link.
    packet_time: Time,
}

/// What becomes of an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Queue,
    Signal,
    Drop,
}

impl Red {
    fn average_over(&mut self, queue: u64, now: Time) {
        let weight = self.config.weight;
        if let Some(since) = self.idle_since {
            let packets = now.saturating_sub(since).0 / self.packet_time.0.max(1);
            self.average *= libm::pow(1.0 - weight, packets as f64);
            self.idle_since = Some(since.max(now));
        }
        self.average += weight * (queue as f64 - self.average);
    }

    /// The probability before gaps are made uniform; none: every packet is dropped.
    fn base_probability(&self) -> Option<f64> {
        let (min_th, max_th) = (self.config.min_th.0 as f64, self.config.max_th.0 as f64);
        let p = self.config.probability;
        match self.average {
            average if average < max_th => Some(p * (average - min_th) / (max_th - min_th)),
            average if self.config.gentle && average < 2.0 * max_th => {
                Some(p + (1.0 - p) * (average - max_th) / max_th)
            }
            _ => None,
        }
    }

    fn fate(&mut self) -> Fate {
        if self.average < self.config.min_th.0 as f64 {
            self.since = None;
            return Fate::Queue;
        }
        let since = self.since.map_or(0, |since| since.saturating_add(1));
        self.since = Some(since);
        let Some(base) = self.base_probability() else {
            self.since = Some(0);
            return Fate::Drop;
        };
        let spread = 1.0 - f64::from(since) * base;
        if spread > 0.0 && self.random.uniform() >= base / spread {
            return Fate::Queue;
        }
        self.since = Some(0);
        Fate::Signal
    }
}

impl Discipline for Red {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        self.average_over(self.list.bytes, cx.now);
        let dropped = match self.fate() {
            Fate::Queue => false,
            Fate::Signal => !(self.config.ecn && cx.mark(&packet)),
            Fate::Drop => true,
        };
        if dropped || cx.is_full_for(packet.size) {
            return cx.drop(packet, if dropped { &EARLY } else { &BUFFER });
        }
        self.idle_since = None;
        cx.waiting.push(&mut self.list, packet);
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        let packet = cx.waiting.pop(&mut self.list)?;
        if self.list.packets == 0 {
            self.idle_since = Some(cx.now + self.rate.transmission_time(u64::from(packet.size)));
        }
        Some(packet)
    }

    fn reset(&mut self) {
        (self.list, self.average, self.since) = (List::default(), 0.0, None);
        self.idle_since = Some(Time::ZERO);
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.packet_time = rate.transmission_time(self.config.mean_packet.0);
    }
}

#[cfg(test)]
mod tests;
