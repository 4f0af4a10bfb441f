//! DualPI2: two queues whose marks are coupled, so that scalable senders (DCTCP's kind) have a short queue of
//! their own and classic ones still get their share.
//!
//! A PI controller turns a time of waiting (C), the longer of those of the first packets of both queues, into
//! a probability p' at every update:
//!
//! ```text
//! p' := p' + alpha (C - target) + beta (C - C at the last update)
//! p_C  = p'^2     classic packets are dropped or marked
//! p_CL = k p'     low-latency packets are marked, or by a ramp over their own time of waiting where that gives more
//! ```
//!
//! Marks are spread evenly: a probability is added up until it makes one. The low-latency queue goes first
//! while its head has waited at most `shift` less than the classic head (time-shifted FIFO). The ramp does
//! not count for a packet after which at most one other low-latency packet waits. Once p_C reaches 1 / k^2
//! the low-latency marks are all but certain and both queues drop with p_C; senders that ignore marks bring
//! the low-latency queue there alone.
//!
//! Source: De Schepper, Briscoe, White, RFC 9332 (2023), §2, §4.2 and Appendix A; the longer of both times as
//! in its authors' module for Linux (sch_dualpi2).
//!
//! Differs from the source: what is low latency says the packet's class, or that it may be marked at all, as
//! packets here have no ECT(0) and ECT(1); `shift` is our choice, the RFC leaves the scheduler's weight open.
//!
//! *Parameters*: `target` 15 ms, `update` 15 ms, `alpha` 0.15 Hz, `beta` 3 Hz, `coupling` 2, `ramp_from`
//! 0.8 ms, `ramp` 0.4 ms (all RFC 9332 Appendix A for round trips up to 100 ms), `shift` 30 ms, `l4s_class`.

use super::managed::{
    BUFFER, Discipline, DisciplineParameters, EARLY, Limit, List, PortFacts, PortPlace, QueueContext, Queued,
};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::{Frequency, Time};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dualpi2Config {
    pub target: Time,
    /// Between two updates of the probability.
    pub update: Time,
    /// Gains, in 1/s.
    pub alpha: f64,
    pub beta: f64,
    pub coupling: f64,
    /// Low-latency packets are marked from the one time of waiting on, all of them the other later.
    pub ramp_from: Time,
    pub ramp: Time,
    /// Low-latency packets are served as if they had come so much earlier.
    pub shift: Time,
    /// Traffic class of low-latency packets; 0: all that may be marked.
    pub l4s_class: u8,
    /// Classic packets are marked instead of dropped where they may be.
    pub ecn: bool,
}

impl DisciplineParameters for Dualpi2Config {
    type State = Dualpi2;
    const DOC: SchemeDoc = SchemeDoc {
        name: "dualpi2",
        title: "a low-latency and a classic queue with coupled marks (RFC 9332)",
        source: "RFC 9332 (2023), Appendix A",
        validation: "Steps of the controller and the coupling by hand, the ramp's ends, even spacing of signals; \
                     not yet compared with another implementation.",
        ..SchemeDoc::NONE
    };
    const PACKETS: u32 = 10_000;

    fn read(p: &mut Parameters) -> Dualpi2Config {
        let help = "target waiting time of classic packets (RFC 9332: 15ms)";
        let target = p.time("target", Time::from_ms(15), help);
        let update = p.time(
            "update",
            Time::from_ms(15),
            "time between two updates of the probability (RFC 9332: 15ms)",
        );
        if update < Time::from_ns(100) {
            p.complain("update", format!("{update} is too short: expected at least 100ns"));
        }
        let help = "gain on the difference to the target (RFC 9332: 0.15Hz)";
        let alpha = p.frequency("alpha", Frequency(0.15), help);
        let help = "gain on the change since the last update (RFC 9332: 3Hz)";
        let beta = p.frequency("beta", Frequency(3.0), help);
        let help = "the probability of low-latency marks is this factor times the square root of that of classic \
                    drops (RFC 9332: 2)";
        let coupling = p.number("coupling", 2.0, (0.01, 100.0), help);
        let help = "low-latency packets that have waited longer than this are marked with rising probability (RFC 9332: 800us)";
        let ramp_from = p.time("ramp_from", Time::from_us(800), help);
        let help = "waiting time from ramp_from to the time from which all low-latency packets are marked (RFC 9332: 400us)";
        let ramp = p.time("ramp", Time::from_us(400), help);
        if ramp == Time::ZERO {
            p.complain("ramp", "must be greater than 0".to_string());
        }
        let help = "low-latency packets are served as if they had arrived this time earlier";
        let shift = p.time("shift", Time::from_ms(30), help);
        let help = "traffic class of low-latency packets; 0: all ECN-capable packets";
        let l4s_class = p.integer("l4s_class", 0, (0, 7), help) as u8;
        let ecn = p.flag("ecn", true, "mark classic packets that may be marked instead of dropping them");
        let (update, ramp) = (update.max(Time::from_ns(100)), ramp.max(Time(1)));
        Dualpi2Config { target, update, alpha, beta, coupling, ramp_from, ramp, shift, l4s_class, ecn }
    }

    fn marks(&self) -> bool {
        true
    }

    fn drops_instead(&self) -> Option<&'static str> {
        match self.l4s_class {
            0 => Some("ecn = false, and l4s_class to a class of none of its packets"),
            _ => self.ecn.then_some("ecn = false"),
        }
    }

    fn warning(&self, _limit: Limit, port: &PortFacts) -> Option<String> {
        port.aims_too_long(self.target)
    }

    fn start(&self, _limit: Limit, _place: &PortPlace) -> Dualpi2 {
        Dualpi2 {
            config: *self,
            classic: List::default(),
            low: List::default(),
            base: 0.0,
            waited: 0.0,
            next_update: self.update,
            classic_sum: 0.0,
            low_sum: 0.0,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Dualpi2 {
    config: Dualpi2Config,
    classic: List,
    low: List,
    /// p', and C at the last update, in seconds.
    base: f64,
    waited: f64,
    next_update: Time,
    /// What probabilities have added up to, of either queue.
    classic_sum: f64,
    low_sum: f64,
}

/// The ramp counts while more packets than this wait in the low-latency queue after the one that leaves
/// (Th_len of RFC 9332, Appendix A).
const RAMP_PACKETS: u32 = 1;

/// Adds up a probability; whether it makes one.
fn recurs(sum: &mut f64, probability: f64) -> bool {
    *sum += probability;
    let full = *sum > 1.0;
    *sum -= f64::from(u8::from(full));
    full
}

impl Dualpi2 {
    fn is_low(&self, packet: &Queued) -> bool {
        match self.config.l4s_class {
            0 => packet.capable,
            class => packet.class == class,
        }
    }

    /// Makes up for the updates until now: between packets nothing changes but the time that the first has
    /// waited.
    fn keep_time(&mut self, cx: &QueueContext) {
        while self.next_update <= cx.now {
            let at = self.next_update;
            let both = [&self.classic, &self.low].into_iter();
            let first = both.filter_map(|list| cx.waiting.first(list)).map(|packet| packet.came).min();
            let waited = first.map_or(0.0, |came| at.saturating_sub(came).as_seconds());
            self.update(waited);
            if self.base == 0.0 && self.waited == 0.0 && first.is_none() {
                // Nothing changes any more.
                let missed = (cx.now - at).0 / self.config.update.0;
                self.next_update += Time(missed * self.config.update.0);
            }
            self.next_update += self.config.update;
        }
    }

    /// One step of the PI controller; `waited` in seconds.
    fn update(&mut self, waited: f64) {
        let Dualpi2Config { alpha, beta, target, .. } = self.config;
        let change = alpha * (waited - target.as_seconds()) + beta * (waited - self.waited);
        self.base = (self.base + change).clamp(0.0, 1.0);
        self.waited = waited;
    }

    fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    fn coupled_probability(&self) -> f64 {
        (self.config.coupling * self.base).min(1.0)
    }

    fn overloaded(&self) -> bool {
        self.classic_probability() >= (1.0 / (self.config.coupling * self.config.coupling)).min(1.0)
    }

    /// The low-latency queue's own: a ramp over what the packet that leaves has waited, if enough others wait
    /// after it.
    fn ramp(&self, waited: Time) -> f64 {
        let Dualpi2Config { ramp_from, ramp, .. } = self.config;
        if self.low.packets <= RAMP_PACKETS || waited < ramp_from {
            return 0.0;
        }
        ((waited - ramp_from).as_seconds() / ramp.as_seconds()).min(1.0)
    }

    fn low_is_next(&self, cx: &QueueContext) -> bool {
        match (cx.waiting.first(&self.low), cx.waiting.first(&self.classic)) {
            (Some(low), Some(classic)) => low.came <= classic.came + self.config.shift,
            (low, _) => low.is_some(),
        }
    }

    /// What becomes of a packet of the low-latency queue; none: it was dropped.
    fn signal_low(&mut self, packet: Queued, cx: &mut QueueContext) -> Option<Queued> {
        let coupled = self.coupled_probability();
        let probability = if self.overloaded() {
            let classic = self.classic_probability();
            if recurs(&mut self.low_sum, classic) {
                cx.drop(packet, &EARLY);
                return None;
            }
            coupled
        } else {
            coupled.max(self.ramp(cx.now - packet.came))
        };
        if recurs(&mut self.low_sum, probability) {
            cx.mark(&packet);
        }
        Some(packet)
    }

    /// The same for the classic queue.
    fn signal_classic(&mut self, packet: Queued, cx: &mut QueueContext) -> Option<Queued> {
        let probability = self.classic_probability();
        if recurs(&mut self.classic_sum, probability)
            && (self.overloaded() || !(self.config.ecn && cx.mark(&packet)))
        {
            cx.drop(packet, &EARLY);
            return None;
        }
        Some(packet)
    }
}

impl Discipline for Dualpi2 {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        self.keep_time(cx);
        if cx.is_full_for(packet.size) {
            return cx.drop(packet, &BUFFER);
        }
        let list = if self.is_low(&packet) { &mut self.low } else { &mut self.classic };
        cx.waiting.push(list, packet);
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        self.keep_time(cx);
        loop {
            let next = if self.low_is_next(cx) {
                let packet = cx.waiting.pop(&mut self.low)?;
                self.signal_low(packet, cx)
            } else {
                let packet = cx.waiting.pop(&mut self.classic)?;
                self.signal_classic(packet, cx)
            };
            if next.is_some() {
                return next;
            }
        }
    }

    fn reset(&mut self) {
        (self.classic, self.low) = (List::default(), List::default());
    }
}

#[cfg(test)]
mod tests;
