//! Situations in which window controllers are tested alone: a path of one bottleneck, segment by segment, in which the law
//! is all that there is to see. Tables have one line for every few round trips: window and threshold in segments, RTT.

use super::*;
use crate::parameters::Nothing;

pub const MSS: u64 = 1_000;

pub fn mss() -> u64 {
    MSS
}

/// What a scenario that names nothing but the controller gives.
pub fn published<P: WindowParameters>() -> P {
    P::read(&mut Parameters::new(&mut Nothing::default()), Profile::Rfc)
}

pub fn flow() -> WindowContext {
    WindowContext { initial: 10 * MSS, mss: MSS, packet: MSS, random: 3 }
}

pub fn window() -> CongestionWindow {
    CongestionWindow { cwnd: 10 * MSS, ssthresh: NO_THRESHOLD, pacing: None, mss: MSS }
}

pub fn loss(in_flight: u64) -> Congestion {
    Congestion { now: Time::ZERO, in_flight, by: Signal::Loss }
}

/// The acknowledgement of the segment of this number, counted from 1.
pub fn acked(segment: u64) -> Acked {
    Acked {
        now: Time::ZERO,
        bytes: MSS,
        segments: 1,
        delivered: MSS,
        delivered_ever: segment * MSS,
        lost: 0,
        prior_in_flight: 10 * MSS,
        in_flight: 9 * MSS,
        acknowledged: segment * MSS,
        next: (segment + 10) * MSS,
        rtt: Some(Time::from_ms(20)),
        min_rtt: Time::from_ms(20),
        rate: RateSample::default(),
        marked: false,
        window_limited: true,
        state: State::Open,
    }
}

/// What happens to a flow on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    /// Segments are lost in the round of this number; more than one, as bursts are.
    Lost(u64),
    /// All that is out is lost: the timeout expires.
    TimedOut(u64),
    /// The path gets longer.
    Longer(u64, Time),
    /// In rounds from the first to the second the application fills a quarter of the window.
    AppLimited(u64, u64),
    /// Segments are marked while more than so many wait.
    MarksAbove(u64),
}

/// A link of one segment a millisecond, 20 ms from end to end and back.
struct Path {
    base: Time,
    now: Time,
    sent: u64,
    events: Vec<Event>,
}

impl Path {
    /// Round trips of the law: a window goes out, the link takes a millisecond for each segment, each is acknowledged.
    fn table(law: &mut dyn WindowController, rounds: u64, every: u64, events: &[Event]) -> String {
        let mut path = Path { base: Time::from_ms(20), now: Time::ZERO, sent: 0, events: events.to_vec() };
        let mut w = window();
        law.on_start(Time::ZERO, &mut w);
        let mut table = "\n    ms  cwnd ssthresh    rtt\n".to_string();
        for round in 1..=rounds {
            let rtt = path.round(law, &mut w, round);
            if round % every == 0 {
                let threshold =
                    if w.ssthresh == NO_THRESHOLD { "-".into() } else { (w.ssthresh / MSS).to_string() };
                let (ms, cwnd) = (path.now.0 / 1_000_000_000, w.cwnd as f64 / MSS as f64);
                table += &format!("{ms:6} {cwnd:5.1} {threshold:>8} {:6.1}\n", rtt.as_us() / 1e3);
            }
        }
        table
    }

    fn round(&mut self, law: &mut dyn WindowController, w: &mut CongestionWindow, round: u64) -> Time {
        for event in self.events.clone() {
            match event {
                Event::Longer(at, by) if at == round => self.base += by,
                Event::Lost(at) if at == round => return self.recover(law, w),
                Event::TimedOut(at) if at == round => return self.time_out(law, w),
                _ => {}
            }
        }
        let limited =
            self.events.iter().any(|e| matches!(e, Event::AppLimited(a, b) if (*a..=*b).contains(&round)));
        let segments = if limited { (w.cwnd / MSS / 4).max(1) } else { (w.cwnd / MSS).max(1) };
        let kmin =
            self.events.iter().find_map(|e| if let Event::MarksAbove(k) = e { Some(*k) } else { None });
        let per_ms = self.base.0 / 1_000_000_000;
        let (start, first) = (self.now, self.sent);
        self.sent += segments;
        let queue = segments.saturating_sub(per_ms);
        // Those that exceed what fits the path wait.
        let rtt = self.base + Time::from_ms(queue);
        let mut cut = false;
        for segment in 1..=segments {
            let waits = segment.saturating_sub(per_ms);
            self.now = start + rtt.min(self.base + Time::from_ms(segment - 1)).max(Time::from_ms(1));
            let marked = kmin.is_some_and(|kmin| waits > kmin);
            let ack = Acked {
                now: self.now,
                rtt: Some(self.base + Time::from_ms(waits)),
                min_rtt: self.base,
                next: (self.sent + segment) * MSS,
                prior_in_flight: segments * MSS,
                in_flight: segments * MSS,
                window_limited: !limited,
                marked,
                rate: RateSample {
                    delivered: segments.min(per_ms) * MSS,
                    interval: self.base,
                    prior_delivered: first * MSS,
                    app_limited: limited,
                },
                ..acked(first + segment)
            };
            law.on_feedback(&ack, w);
            if marked && !cut {
                cut = true;
                let mark = Congestion { now: self.now, in_flight: segments * MSS, by: Signal::Mark };
                w.ssthresh = law.on_congestion(&mark, w);
                w.cwnd = w.ssthresh;
            } else if !cut {
                law.on_ack(&ack, w);
            }
        }
        rtt
    }

    fn change(&self, law: &mut dyn WindowController, w: &mut CongestionWindow, from: State, to: State) {
        let change = Change { now: self.now, from, to, next: self.sent * MSS, in_flight: w.cwnd };
        law.on_state(&change, w);
    }

    /// One round trip of fast recovery.
    fn recover(&mut self, law: &mut dyn WindowController, w: &mut CongestionWindow) -> Time {
        self.change(law, w, State::Open, State::Recovery);
        let congestion = Congestion { now: self.now, in_flight: w.cwnd, by: Signal::Loss };
        w.ssthresh = law.on_congestion(&congestion, w);
        self.now += self.base;
        w.cwnd = w.ssthresh;
        self.change(law, w, State::Recovery, State::Open);
        self.base
    }

    fn time_out(&mut self, law: &mut dyn WindowController, w: &mut CongestionWindow) -> Time {
        let congestion = Congestion { now: self.now, in_flight: w.cwnd, by: Signal::Timeout };
        w.ssthresh = law.on_congestion(&congestion, w);
        w.cwnd = MSS;
        self.change(law, w, State::Open, State::Loss);
        self.now += Time::from_ms(1000);
        self.change(law, w, State::Loss, State::Open);
        self.base
    }
}

fn law(kind: &str) -> WindowLaw {
    let config = WindowConfig::read(kind, &mut Parameters::new(&mut Nothing::default()), Profile::Rfc);
    config.expect("a known law").start(&flow())
}

fn expect_table(kind: &str, (rounds, every): (u64, u64), events: &[Event], expected: &str) {
    let table = Path::table(&mut law(kind), rounds, every, events);
    assert!(table == expected, "{kind}:{table}");
}

#[test]
fn every_name_reads_and_has_its_text() {
    for doc in DOCS {
        let config =
            WindowConfig::read(doc.name, &mut Parameters::new(&mut Nothing::default()), Profile::Rfc);
        assert_eq!(config.map(|config| config.name()), Some(doc.name));
        for text in [doc.title, doc.text, doc.source, doc.equations, doc.validation] {
            assert!(!text.is_empty() && !text.contains("  "), "{}: {text}", doc.name);
        }
    }
}

/// Slow start into a loss, growth after it, a burst of losses, a timeout.
const LOSSES: &[Event] = &[Event::Lost(5), Event::Lost(40), Event::Lost(42), Event::TimedOut(60)];

#[test]
fn print() {
    for doc in DOCS {
        for (name, events) in [
            ("losses", LOSSES),
            ("app", &[Event::Lost(4), Event::AppLimited(10, 40)][..]),
            ("longer", &[Event::Lost(4), Event::Longer(20, Time::from_ms(20))][..]),
            ("marks", &[Event::MarksAbove(5)][..]),
        ] {
            println!("{} {name}{}", doc.name, Path::table(&mut law(doc.name), 72, 6, events));
        }
    }
}
