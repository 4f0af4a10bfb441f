//! CoDel: drops at departure once packets have waited longer than a target for a whole interval, then ever faster while
//! they still do: the n-th drop comes `interval / sqrt(n)` after the one before.
//!
//! States: *below* (the time of waiting was below the target within the last interval) and *dropping*. A queue that comes
//! back to dropping soon after it left begins with the rate of drops that controlled it then.
//!
//! Source: Nichols, Jacobson, McGregor, Iyengar, RFC 8289 (2018), §5.3 to §5.5. With `arithmetic = "fixed-point"` as Linux and
//! ns-3 compute it: ticks of 1024 ns, 16 bits of 1/sqrt(n) improved by one Newton step per drop.
//! Differs from the source: with a `least` of its own nothing is dropped while fewer bytes than that remain.
//! *Parameters*: `target` 5 ms and `interval` 100 ms (RFC 8289 §4.3, §4.4), `least`, `ecn` marks what may be marked.

use super::managed::{
    BUFFER, Discipline, DisciplineParameters, EARLY, Limit, List, PortFacts, PortPlace, QueueContext, Queued,
};
use crate::doc::SchemeDoc;
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::units::Time;

/// Share by which a time may change when it is counted in ticks; a larger change gives a warning.
const LARGEST_ROUNDING: f64 = 0.01;

const ARITHMETIC: &[(&str, &str)] = &[
    ("exact", "square roots of the count, in picoseconds"),
    ("fixed-point", "ticks of 1024 ns and 16 bits of the inverse root, as Linux and ns-3"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodelConfig {
    pub target: Time,
    pub interval: Time,
    /// Fewer bytes than these do not remain in a queue that drops; none: more than the largest packet of the port.
    pub minimum: Option<u32>,
    /// As Linux and ns-3 compute it.
    pub fixed_point: bool,
    /// Packets are marked instead of dropped where they may be.
    pub ecn: bool,
}

impl CodelConfig {
    /// Reads the keys of the law, with the defaults of whoever works by it: marks, and ticks where they are fine enough.
    pub fn read_law(p: &mut Parameters, ecn: bool, in_ticks: bool) -> CodelConfig {
        let help =
            "acceptable time that packets wait (RFC 8289: 5ms; in a datacenter some tens of microseconds)";
        let target = p.time("target", Time::from_ms(5), help);
        let help = "time above the target before the first drop, and initial time between drops (RFC 8289: 100ms, a large round trip)";
        let interval = p.time("interval", Time::from_ms(100), help);
        if target == Time::ZERO || interval <= target || interval > Time::from_ms(1_000_000) {
            let message =
                format!("{interval} must be above the target, which is {target}, and at most 1000s");
            p.complain("interval", message);
        }
        let help = "no packet is dropped if fewer bytes than this would remain queued; auto: if no more than the largest packet that has \
                    come to the port would remain (RFC 8289), or fewer than 1500 B where [compat] repeats a simulator (ns-3)";
        let minimum = p.bytes_or_auto("least", help).map(|bytes| bytes.0.min(u64::from(u32::MAX)) as u32);
        let help = "how times are computed (codel: exact; fq-codel: fixed-point, unless its ticks would change target or interval by \
                    more than 1 %)";
        let fine = [target, interval].into_iter().all(|time| rounding(time) <= LARGEST_ROUNDING);
        let default = if in_ticks && fine { "fixed-point" } else { "exact" };
        let fixed_point = p.choice("arithmetic", default, ARITHMETIC, help) == "fixed-point";
        if fixed_point && target > Time::ZERO && ticks(target, true) == 0 {
            let message = format!(
                "{target} is less than a tick of 1024 ns, so that every wait would be too long: set a longer target, or \
                 arithmetic = \"exact\""
            );
            p.complain("target", message);
        }
        let help = "mark packets that may be marked instead of dropping them: data, but not those of TCP without ECN (fq-codel, red and \
                    dualpi2: true; codel: false)";
        CodelConfig { target, interval, minimum, fixed_point, ecn: p.flag("ecn", ecn, help) }
    }

    /// Ticks hold other times than the scenario has.
    pub fn rounded(&self) -> Option<String> {
        let mut times = [("target", self.target), ("interval", self.interval)].into_iter();
        let (key, time) = times.find(|&(_, time)| self.fixed_point && rounding(time) > LARGEST_ROUNDING)?;
        Some(format!(
            "switch.queue.{key}: {time} is {} in the ticks of 1024 ns of arithmetic = \"fixed-point\", and that is in force: set \
             arithmetic = \"exact\", or a whole number of ticks",
            Time::from_ns(ticks(time, true) << 10)
        ))
    }
}

impl DisciplineParameters for CodelConfig {
    type State = CodelQueue;
    const DOC: SchemeDoc = SchemeDoc {
        name: "codel",
        title: "first come, first served; drops or marks packets while queueing delay stays above a target (RFC 8289)",
        source: "RFC 8289 (2018)",
        validation: "Times of the first eight drops of a standing queue, worked out from the law \
                     (docs/schemes/queues.md).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> CodelConfig {
        CodelConfig::read_law(p, false, false)
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn drops_instead(&self) -> Option<&'static str> {
        self.ecn.then_some("ecn = false")
    }

    fn warning(&self, _limit: Limit, port: &PortFacts) -> Option<String> {
        self.rounded().or_else(|| port.aims_too_long(self.target))
    }

    fn start(&self, _limit: Limit, place: &PortPlace) -> CodelQueue {
        CodelQueue { law: Law::new(self, place), state: Codel::default(), list: List::default() }
    }
}

/// When the next drop is due, and in which time.
#[derive(Debug, Clone, Copy)]
pub struct Law {
    fixed_point: bool,
    /// In ticks.
    target: u64,
    interval: u64,
    /// With fewer bytes left nothing is dropped; a byte more than the largest packet yet, if it grows.
    minimum: u64,
    grows: bool,
    ecn: bool,
}

/// Of ns-3: the payload of a full frame of Ethernet.
const NS3_MINIMUM: u32 = 1500;

impl Law {
    pub fn new(config: &CodelConfig, place: &PortPlace) -> Law {
        let ticks = |time| ticks(time, config.fixed_point);
        Law {
            fixed_point: config.fixed_point,
            target: ticks(config.target),
            interval: ticks(config.interval),
            minimum: u64::from(config.minimum.unwrap_or(if place.fixed_minimum { NS3_MINIMUM } else { 1 })),
            grows: config.minimum.is_none() && !place.fixed_minimum,
            ecn: config.ecn,
        }
    }

    /// A packet of this size has come to the port.
    #[inline]
    pub fn came(&mut self, size: u32) {
        if self.grows {
            self.minimum = self.minimum.max(u64::from(size) + 1);
        }
    }

    fn ticks(&self, time: Time) -> u64 {
        ticks(time, self.fixed_point)
    }
}

/// Picoseconds, or units of 1024 ns.
fn ticks(time: Time, fixed_point: bool) -> u64 {
    if fixed_point { time.ns() >> 10 } else { time.0 }
}

/// The share of a time that is left out when it becomes ticks.
fn rounding(time: Time) -> f64 {
    let left_out = time.0 - (Time::from_ns(ticks(time, true) << 10)).0;
    left_out as f64 / time.0.max(1) as f64
}

/// CoDel's memory of one queue. Times are ticks; 0 stands for never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codel {
    /// When the packets will have waited too long for an interval.
    above_until: u64,
    drop_next: u64,
    /// Drops since dropping began, and what they began with.
    count: u32,
    last_count: u32,
    /// 1/sqrt(count) in parts of 2^16.
    inverse: u16,
    dropping: bool,
}

impl Codel {
    /// Takes the next packet that shall leave out of the list.
    pub fn dequeue(&mut self, law: &Law, list: &mut List, cx: &mut QueueContext) -> Option<Queued> {
        let now = law.ticks(cx.now);
        let (mut packet, mut too_late) = self.take(law, list, cx, now);
        if self.dropping {
            self.dropping = too_late;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.improve();
                if law.ecn && packet.is_some_and(|packet| cx.mark(&packet)) {
                    self.drop_next = self.after(self.drop_next, law);
                    return packet;
                }
                packet.into_iter().for_each(|packet| cx.drop(packet, &EARLY));
                (packet, too_late) = self.take(law, list, cx, now);
                self.dropping = too_late;
                if too_late {
                    self.drop_next = self.after(self.drop_next, law);
                }
            }
        } else if too_late {
            if !(law.ecn && packet.is_some_and(|packet| cx.mark(&packet))) {
                packet.into_iter().for_each(|packet| cx.drop(packet, &EARLY));
                (packet, _) = self.take(law, list, cx, now);
            }
            self.begin(law, now);
        }
        packet
    }

    /// The link finds no packet.
    #[inline]
    pub fn rest(&mut self) {
        (self.above_until, self.dropping) = (0, false);
    }

    /// A packet that has not waited leaves a queue that is empty then: whether that is all to know.
    #[inline]
    pub fn pass(&mut self, law: &Law) -> bool {
        // Where no time is too long, nor a queue too short, the packet would be judged.
        let passes = law.target > 0 && law.minimum > 0;
        if passes {
            self.rest();
        }
        passes
    }

    /// The next packet, and whether packets have waited too long for an interval by now (RFC 8289 §5.4).
    fn take(
        &mut self,
        law: &Law,
        list: &mut List,
        cx: &mut QueueContext,
        now: u64,
    ) -> (Option<Queued>, bool) {
        let Some(packet) = cx.waiting.pop(list) else {
            self.above_until = 0;
            return (None, false);
        };
        let waited = law.ticks(cx.now - packet.came);
        if waited < law.target || list.bytes < law.minimum {
            self.above_until = 0;
            return (Some(packet), false);
        }
        if self.above_until == 0 {
            self.above_until = now + law.interval;
            return (Some(packet), false);
        }
        // ns-3 and Linux compare strictly in their ticks.
        (Some(packet), now >= self.above_until + u64::from(law.fixed_point))
    }

    /// Enters the dropping state (RFC 8289 §5.5).
    fn begin(&mut self, law: &Law, now: u64) {
        self.dropping = true;
        let before = self.count.saturating_sub(self.last_count);
        if before > 1 && now.saturating_sub(self.drop_next) < 16 * law.interval {
            self.count = before;
            self.improve();
        } else {
            self.count = 1;
            self.inverse = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.after(now, law);
    }

    fn after(&self, time: u64, law: &Law) -> u64 {
        if law.fixed_point {
            return time + ((law.interval * (u64::from(self.inverse) << 16)) >> 32);
        }
        // Root and quotient are rounded the same on every platform.
        time + (law.interval as f64 / f64::from(self.count).sqrt()).round() as u64
    }

    /// One step of Newton's method for 1/sqrt(count): x (3 - count x^2) / 2, in parts of 2^32.
    fn improve(&mut self) {
        let x = u64::from(self.inverse) << 16;
        let square = (x * x) >> 32;
        let factor = (3u64 << 32).saturating_sub(u64::from(self.count) * square) >> 2;
        self.inverse = ((factor * x) >> 31 >> 16) as u16;
    }
}

/// One queue under CoDel; a full port drops the packet that comes.
#[derive(Debug, Clone)]
pub struct CodelQueue {
    law: Law,
    state: Codel,
    list: List,
}

impl Discipline for CodelQueue {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        self.law.came(packet.size);
        if cx.is_full_for(packet.size) {
            return cx.drop(packet, &BUFFER);
        }
        cx.waiting.push(&mut self.list, packet);
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        self.state.dequeue(&self.law, &mut self.list, cx)
    }

    fn lets_through(&mut self, _packet: &Packet, size: u32) -> bool {
        self.law.came(size);
        self.state.pass(&self.law)
    }

    #[inline]
    fn rest(&mut self) {
        self.state.rest();
    }

    fn reset(&mut self) {
        (self.state, self.list) = (Codel::default(), List::default());
    }
}

#[cfg(test)]
mod tests;
