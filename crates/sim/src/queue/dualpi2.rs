//! DualPI2: two queues whose marks are coupled, so that scalable senders (DCTCP's kind) have a short queue of their own and
//! classic ones still get their share.
//!
//! A PI controller turns the time that classic packets wait (C) into a probability p' at every update:
//!
//! ```text
//! p' := p' + alpha (C - target) + beta (C - C at the last update)
//! p_C  = p'^2     classic packets are dropped or marked
//! p_CL = k p'     low-latency packets are marked, or by a ramp over their own time of waiting where that gives more
//! ```
//!
//! Marks are spread evenly: a probability is added up until it makes one. The low-latency queue goes first while its head
//! has waited at most `shift` less than the classic head (time-shifted FIFO). Once p_C reaches 1 / k^2 the low-latency
//! marks are all but certain and both queues drop with p_C.
//!
//! Source: De Schepper, Briscoe, White, RFC 9332 (2023), §2, §4.2 and Appendix A.
//! Differs from the source: what is low latency says the packet's class, or that it may be marked at all, as packets here have no
//! ECT(0) and ECT(1); `shift` is our choice, the RFC leaves the scheduler's weight open.
//! *Parameters*: `target` 15 ms, `update` 15 ms, `alpha` 0.15 Hz, `beta` 3 Hz, `coupling` 2, `ramp_from` 0.8 ms, `ramp` 0.4 ms (all
//! RFC 9332 Appendix A for round trips up to 100 ms), `shift` 30 ms, `l4s_class`.

use super::managed::{
    BUFFER, Bench, Discipline, DisciplineParameters, EARLY, Limit, List, PortPlace, Queued,
};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::Time;

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
    /// Classic packets are marked instead of dropped where their senders react to that.
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
        let help = "time that classic packets shall wait (RFC 9332: 15ms; codel: packets may wait so long)";
        let target = p.time("target", Time::from_ms(15), help);
        let update =
            p.time("update", Time::from_ms(15), "between two updates of the probability (RFC 9332: 15ms)");
        if update < Time::from_ns(100) {
            p.complain("update", format!("{update} is too short: expected at least 100ns"));
        }
        let alpha = p.number(
            "alpha",
            0.15,
            (0.0, 1e9),
            "gain on the difference to the target, in 1/s (RFC 9332: 0.15)",
        );
        let beta = p.number(
            "beta",
            3.0,
            (0.0, 1e9),
            "gain on the change since the last update, in 1/s (RFC 9332: 3)",
        );
        let help = "low-latency marks are this times the root of classic drops (RFC 9332: 2)";
        let coupling = p.number("coupling", 2.0, (0.01, 100.0), help);
        let help = "low-latency packets are marked that have waited so long (RFC 9332: 800us)";
        let ramp_from = p.time("ramp_from", Time::from_us(800), help);
        let help = "and all of them that have waited so much longer (RFC 9332: 400us)";
        let ramp = p.time("ramp", Time::from_us(400), help);
        if ramp == Time::ZERO {
            p.complain("ramp", "must be more than zero".to_string());
        }
        let help = "low-latency packets are served as if they had come so much earlier";
        let shift = p.time("shift", Time::from_ms(30), help);
        let help = "traffic class of low-latency packets; 0: all that may be marked";
        let l4s_class = p.integer("l4s_class", 0, (0, 7), help) as u8;
        let ecn =
            p.flag("ecn", true, "mark classic packets whose senders react to it instead of dropping them");
        let (update, ramp) = (update.max(Time::from_ns(100)), ramp.max(Time(1)));
        Dualpi2Config { target, update, alpha, beta, coupling, ramp_from, ramp, shift, l4s_class, ecn }
    }

    fn marks(&self) -> bool {
        true
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
    /// p', and the time that classic packets waited at the last update, in seconds.
    base: f64,
    waited: f64,
    next_update: Time,
    /// What probabilities have added up to, of either queue.
    classic_sum: f64,
    low_sum: f64,
}

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

    /// Makes up for the updates until now: between packets nothing changes but the time that the first has waited.
    fn keep_time(&mut self, cx: &Bench) {
        while self.next_update <= cx.now {
            let at = self.next_update;
            let first = cx.waiting.first(&self.classic);
            let waited = first.map_or(0.0, |packet| at.saturating_sub(packet.came).as_seconds());
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

    /// The low-latency queue's own: a ramp over what the packet has waited, unless it was alone.
    fn ramp(&self, waited: Time) -> f64 {
        let Dualpi2Config { ramp_from, ramp, .. } = self.config;
        if self.low.packets == 0 || waited < ramp_from {
            return 0.0;
        }
        ((waited - ramp_from).as_seconds() / ramp.as_seconds()).min(1.0)
    }

    fn low_is_next(&self, cx: &Bench) -> bool {
        match (cx.waiting.first(&self.low), cx.waiting.first(&self.classic)) {
            (Some(low), Some(classic)) => low.came <= classic.came + self.config.shift,
            (low, _) => low.is_some(),
        }
    }

    /// What becomes of a packet of the low-latency queue; none: it was dropped.
    fn signal_low(&mut self, packet: Queued, cx: &mut Bench) -> Option<Queued> {
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
    fn signal_classic(&mut self, packet: Queued, cx: &mut Bench) -> Option<Queued> {
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
    fn enqueue(&mut self, packet: Queued, cx: &mut Bench) {
        self.keep_time(cx);
        if cx.is_full_for(packet.size) {
            return cx.drop(packet, &BUFFER);
        }
        let list = if self.is_low(&packet) { &mut self.low } else { &mut self.classic };
        cx.waiting.push(list, packet);
    }

    fn dequeue(&mut self, cx: &mut Bench) -> Option<Queued> {
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

    fn forget(&mut self) {
        (self.classic, self.low) = (List::default(), List::default());
    }
}

#[cfg(test)]
mod tests {
    use super::super::managed::tests::{Port, config as managed, defaults};
    use super::*;
    use crate::packet::{Packet, flag};
    use crate::units::Rate;

    fn alone() -> Dualpi2 {
        defaults::<Dualpi2Config>().start(Limit::NONE, &PortPlace::TEST)
    }

    #[test]
    fn the_controller_and_the_coupling_follow_the_equations() {
        let mut pi = alone();
        // 0.15 * (35 - 15) ms + 3 * 35 ms = 0.003 + 0.105.
        pi.update(0.035);
        assert!((pi.base - 0.108).abs() < 1e-12);
        assert!((pi.classic_probability() - 0.108 * 0.108).abs() < 1e-12);
        assert!((pi.coupled_probability() - 0.216).abs() < 1e-12);
        // The square: p_C = (p_CL / k)^2, whatever the base.
        for step in 1..10 {
            pi.update(0.035 + 0.01 * f64::from(step % 3));
            let expected = (pi.coupled_probability() / 2.0).powi(2);
            assert!((pi.classic_probability() - expected).abs() < 1e-12);
        }
        // At the target nothing changes.
        pi.update(0.015);
        let before = pi.base;
        pi.update(0.015);
        assert_eq!(pi.base, before);
    }

    /// RFC 9332, Appendix A.1: Tupdate = min(target, RTT_max / 3), alpha = 0.1 Tupdate / RTT_max^2, beta = 0.3 / RTT_max for a target
    /// of 15 ms and round trips of at most 100 ms.
    #[test]
    fn the_default_gains_are_those_of_the_formulas() {
        let (target, longest) = (0.015f64, 0.1f64);
        let update = target.min(longest / 3.0);
        let defaults: Dualpi2Config = defaults();
        assert_eq!(defaults.update.as_seconds(), update);
        assert!((defaults.alpha - 0.1 * update / (longest * longest)).abs() < 1e-12);
        assert!((defaults.beta - 0.3 / longest).abs() < 1e-12);
    }

    /// p' := p' + alpha (C - target) + beta (C - C before), by hand over four updates with C = 20, 40, 30, 0 ms:
    /// 0.15 * 0.005 + 3 * 0.020 = 0.06075; + 0.15 * 0.025 + 3 * 0.020 = 0.1245; + 0.15 * 0.015 - 3 * 0.010 = 0.09675;
    /// + 0.15 * -0.015 - 3 * 0.030 = 0.0045.
    #[test]
    fn the_base_probability_follows_four_updates_by_hand_and_never_leaves_its_range() {
        let mut pi = alone();
        for (waited, expected) in [(0.020, 0.06075), (0.040, 0.1245), (0.030, 0.09675), (0.0, 0.0045)] {
            pi.update(waited);
            assert!((pi.base - expected).abs() < 1e-12, "{waited}: {}", pi.base);
        }
        pi.update(0.0);
        assert!((pi.base - 0.00225).abs() < 1e-12);
        (0..10).for_each(|_| pi.update(0.0));
        assert_eq!(pi.base, 0.0);
        (0..10).for_each(|_| pi.update(1000.0));
        assert_eq!((pi.base, pi.classic_probability(), pi.coupled_probability()), (1.0, 1.0, 1.0));
    }

    /// Overload begins where k p' reaches 1, that is p_C = 1 / k^2 = 1/4: from there low-latency packets are dropped with p_C too, and
    /// classic ones are dropped though they could be marked (RFC 9332, Appendix A.2).
    #[test]
    fn at_overload_both_queues_drop_and_below_it_only_mark() {
        let served = |base: f64, class: u8| {
            let config = Dualpi2Config { alpha: 0.0, beta: 0.0, l4s_class: 2, ..defaults() };
            let mut port = Port::new(managed(config, 100_000), Rate(100_000_000));
            port.discipline().base = base;
            (0..1000).for_each(|name| {
                port.offer_packet(Time::ZERO, Packet { seq: name, size: 1500, class, ..Packet::default() });
            });
            let (mut dropped, mut marked) = (0, 0);
            loop {
                let (packet, lost) = port.serve(Time::ZERO);
                dropped += lost.len();
                let Some(packet) = packet else { return (dropped, marked) };
                marked += usize::from(packet.flags & flag::MARKED != 0);
            }
        };
        // p' = 3/8: p_C = 9/64, p_CL = 3/4. A count that is added up has to exceed one: ceil(n p) - 1 signals.
        assert_eq!(served(0.375, 1), (0, 140));
        assert_eq!(served(0.375, 2), (0, 749));
        // p' = 1/2: p_C = 1/4, p_CL = 1. The low-latency queue adds both to one count: 1/4, 2/4, 3/4 and 1 let a packet live, marked,
        // then one in four is dropped.
        assert_eq!(served(0.5, 1), (249, 0));
        assert_eq!(served(0.5, 2), (249, 751));
    }

    #[test]
    fn signals_are_spread_evenly() {
        let mut sum = 0.0;
        let signals: Vec<usize> = (0..40).filter(|_| recurs(&mut sum, 0.125)).collect();
        assert_eq!(signals.len(), 4);
        assert!(signals.windows(2).all(|pair| pair[1] - pair[0] == 8), "{signals:?}");
    }

    #[test]
    fn the_ramp_begins_and_ends_where_it_should_and_spares_a_lone_packet() {
        let mut pi = alone();
        assert_eq!(pi.ramp(Time::from_ms(5)), 0.0);
        pi.low.packets = 3;
        let at = |us| pi.ramp(Time::from_us(us));
        assert_eq!((at(799), at(800), at(1000), at(1200), at(5000)), (0.0, 0.0, 0.5, 1.0, 1.0));
    }

    #[test]
    fn updates_that_were_missed_are_made_up_for() {
        let mut port = Port::new(managed(defaults::<Dualpi2Config>(), 100_000), Rate(100_000_000));
        let classic =
            |name| Packet { seq: name, size: 1500, class: 1, flags: flag::NOT_CAPABLE, ..Packet::default() };
        (0..3000).for_each(|name| assert!(port.offer_packet(Time::ZERO, classic(name)).is_empty()));
        // After four updates of a head that has waited 15, 30, 45, 60 ms: 0.045 + (0.00225 + 0.045) + (0.0045 + 0.045) + ...
        let (_, dropped) = port.serve(Time::from_ms(60));
        assert!(dropped.is_empty());
        let expected: f64 = (0..4).map(|n| 0.15 * 0.015 * f64::from(n) + 3.0 * 0.015).sum();
        assert!((expected - 0.1935).abs() < 1e-9);
        // p_C = 0.0374: until the next update one in 26.7 is dropped of those that come up, 801 / (1 - p_C) of them.
        let dropped: usize = (0..800).map(|_| port.serve(Time::from_ms(61)).1.len()).sum();
        let probability = expected * expected;
        assert_eq!(dropped, (801.0 / (1.0 - probability) * probability) as usize);
    }

    #[test]
    fn low_latency_packets_go_first_unless_classic_ones_have_waited_much_longer() {
        let mut port = Port::new(managed(defaults::<Dualpi2Config>(), 1000), Rate(100_000_000));
        let packet = |name, flags| Packet { seq: name, size: 1500, class: 1, flags, ..Packet::default() };
        port.offer_packet(Time::ZERO, packet(0, flag::NOT_CAPABLE));
        port.offer_packet(Time::from_ms(30), packet(1, 0));
        port.offer_packet(Time::from_ms(31), packet(2, 0));
        let order: Vec<u64> = (0..3).map(|_| port.serve(Time::from_ms(31)).0.unwrap().seq).collect();
        assert_eq!(order, [1, 0, 2]);
    }
}
