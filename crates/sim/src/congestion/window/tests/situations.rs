//! Situations in which window controllers are tested alone: a path of one bottleneck, segment by segment, in which the law
//! is all that there is to see. Tables have one line for every few round trips: window and threshold in segments, RTT. All laws side by
//! side, a situation at a time, are in `golden.rs`.
//!
//! A law that paces fills the path as its rate lets it: what it sends in a round trip beyond what the link takes in that time waits.

use crate::congestion::window::*;
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
    WindowContext { initial: 10 * MSS, mss: MSS, packet: MSS, random: 3, path: FlowPath::default() }
}

pub fn window() -> CongestionWindow {
    CongestionWindow { cwnd: 10 * MSS, ssthresh: NO_THRESHOLD, pacing: None, paced: false, mss: MSS }
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
        cursor: (segment + 10) * MSS,
        rtt: Some(Time::from_ms(20)),
        min_rtt: Time::from_ms(20),
        in_hosts: Time::ZERO,
        rate: RateSample::default(),
        marked: false,
        window_limited: true,
        state: State::Open,
    }
}

/// What happens to a flow on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
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

/// Segments that may wait.
const BUFFER: u64 = 60;

/// A link of one segment a millisecond, 20 ms from end to end and back.
pub struct Path {
    base: Time,
    now: Time,
    sent: u64,
    /// Segments that wait, as the last round left them.
    queue: u64,
    /// A law that steers recovery is in it, until the round trip after the loss is over.
    recovering: bool,
    events: Vec<Event>,
}

impl Path {
    fn new(events: &[Event]) -> Path {
        Path {
            base: Time::from_ms(20),
            now: Time::ZERO,
            sent: 0,
            queue: 0,
            recovering: false,
            events: events.to_vec(),
        }
    }

    /// The window in segments after each of so many round trips.
    pub fn windows(law: &mut dyn WindowController, rounds: u64, events: &[Event]) -> Vec<u64> {
        let mut path = Path::new(events);
        let mut w = window();
        law.on_start(Time::ZERO, None, &mut w);
        let mut windows = Vec::new();
        for round in 1..=rounds {
            path.round(law, &mut w, round);
            windows.push(w.cwnd / MSS);
        }
        windows
    }

    /// Round trips of the law: a window goes out, the link takes a millisecond for each segment, each is acknowledged.
    fn table(law: &mut dyn WindowController, rounds: u64, every: u64, events: &[Event]) -> String {
        let mut path = Path::new(events);
        let mut w = window();
        law.on_start(Time::ZERO, None, &mut w);
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
        let recovering = self.recovering;
        let rtt = self.act(law, w, round);
        if recovering {
            self.recovering = false;
            self.change(law, w, State::Recovery, State::Open);
        }
        rtt
    }

    fn act(&mut self, law: &mut dyn WindowController, w: &mut CongestionWindow, round: u64) -> Time {
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
        let segments = self.in_flight(w);
        let segments = if limited { (segments / 4).max(1) } else { segments };
        let kmin =
            self.events.iter().find_map(|e| if let Event::MarksAbove(k) = e { Some(*k) } else { None });
        let per_ms = self.base.0 / 1_000_000_000;
        if segments > per_ms + BUFFER {
            return self.recover(law, w);
        }
        self.acknowledge(law, w, segments, (limited, 0), kmin)
    }

    /// Segments in flight: the window, or what pacing makes of the last round trip.
    fn in_flight(&self, w: &CongestionWindow) -> u64 {
        let (window, path) = ((w.cwnd / MSS).max(1), self.base.0 / 1_000_000_000);
        let Some(rate) = w.pacing else { return window };
        let last = self.base + Time::from_ms(self.queue);
        let (sent, taken) = (rate.bytes_in(last).0 / MSS + self.queue, last.0 / 1_000_000_000);
        let paced = if sent > taken { path + sent - taken } else { rate.bytes_in(self.base).0 / MSS };
        window.min(paced.max(1))
    }

    /// A round trip of so many segments that arrive, while the application may limit the sender, and so many others are lost.
    fn acknowledge(
        &mut self,
        law: &mut dyn WindowController,
        w: &mut CongestionWindow,
        segments: u64,
        (limited, lost): (bool, u64),
        kmin: Option<u64>,
    ) -> Time {
        let per_ms = self.base.0 / 1_000_000_000;
        let (start, first) = (self.now, self.sent);
        self.sent += segments;
        let queue = segments.saturating_sub(per_ms);
        let before = std::mem::replace(&mut self.queue, queue);
        // Those that exceed what fits the path wait.
        let rtt = self.base + Time::from_ms(queue);
        let mut cut = false;
        for segment in 1..=segments {
            // Acknowledgements clock segments out, so that the queue goes from what it was to what it will be.
            let waits = (before * (segments - segment) + queue * segment) / segments;
            self.now = start + rtt.min(self.base + Time::from_ms(segment - 1)).max(Time::from_ms(1));
            let marked = kmin.is_some_and(|kmin| waits > kmin);
            let ack = Acked {
                now: self.now,
                rtt: Some(self.base + Time::from_ms(waits)),
                min_rtt: self.base,
                next: (self.sent + segment) * MSS,
                cursor: (self.sent + segment) * MSS,
                prior_in_flight: segments * MSS,
                in_flight: segments * MSS,
                window_limited: !limited,
                marked,
                state: if self.recovering { State::Recovery } else { State::Open },
                lost: if segment == 1 { lost * MSS } else { 0 },
                rate: RateSample {
                    delivered: segments.min(per_ms) * MSS,
                    interval: self.base,
                    prior_delivered: first * MSS,
                    app_limited: limited,
                    in_flight: (segments + lost) * MSS,
                    lost: lost * MSS,
                    ..RateSample::default()
                },
                ..acked(first + segment)
            };
            law.on_feedback(&ack, w);
            if marked && !cut {
                cut = true;
                let mark = Congestion { now: self.now, in_flight: segments * MSS, by: Signal::Mark };
                w.ssthresh = law.on_congestion(&mark, w);
                if !law.steers_recovery() {
                    w.cwnd = w.ssthresh;
                }
            }
            if !cut || law.steers_recovery() {
                law.on_ack(&ack, w);
            }
        }
        rtt
    }

    fn change(&self, law: &mut dyn WindowController, w: &mut CongestionWindow, from: State, to: State) {
        let change = Change {
            now: self.now,
            from,
            to,
            next: self.sent * MSS,
            cursor: self.sent * MSS,
            in_flight: w.cwnd.min(self.base.0 / 1_000_000_000 * MSS + BUFFER * MSS),
            delivered: 0,
            rtt: None,
        };
        law.on_state(&change, w);
    }

    /// One round trip of fast recovery.
    fn recover(&mut self, law: &mut dyn WindowController, w: &mut CongestionWindow) -> Time {
        if law.steers_recovery() {
            return self.lose(law, w);
        }
        self.change(law, w, State::Open, State::Recovery);
        let congestion = Congestion { now: self.now, in_flight: w.cwnd, by: Signal::Loss };
        w.ssthresh = law.on_congestion(&congestion, w);
        self.now += self.base;
        w.cwnd = w.ssthresh;
        self.queue = 0;
        self.change(law, w, State::Recovery, State::Open);
        self.base
    }

    /// The same of a law that steers it: what does not fit is lost, or a segment; the others arrive.
    fn lose(&mut self, law: &mut dyn WindowController, w: &mut CongestionWindow) -> Time {
        let segments = self.in_flight(w);
        let lost = segments.saturating_sub(self.base.0 / 1_000_000_000 + BUFFER).max(1);
        if !self.recovering {
            self.recovering = true;
            self.change(law, w, State::Open, State::Recovery);
        }
        for number in 1..=lost {
            let lost = LostSegment {
                now: self.now,
                first: (self.sent + 2 * number) * MSS,
                bytes: MSS,
                in_flight: segments * MSS,
                lost_since: number * MSS,
                app_limited: false,
                delivered_ever: self.sent * MSS,
            };
            law.on_lost(&lost, w);
        }
        self.acknowledge(law, w, (segments - lost).max(1), (false, lost), None)
    }

    fn time_out(&mut self, law: &mut dyn WindowController, w: &mut CongestionWindow) -> Time {
        self.recovering = false;
        let congestion = Congestion { now: self.now, in_flight: w.cwnd, by: Signal::Timeout };
        w.ssthresh = law.on_congestion(&congestion, w);
        w.cwnd = MSS;
        self.change(law, w, State::Open, State::Loss);
        self.now += Time::from_ms(1000);
        self.queue = 0;
        self.change(law, w, State::Loss, State::Open);
        self.base
    }
}

pub fn law(kind: &str) -> WindowLaw {
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

/// The application fills a quarter of the window for thirty rounds.
const APPLICATION: &[Event] = &[Event::Lost(4), Event::AppLimited(10, 40)];
/// The path gets twice as long.
const LONGER: &[Event] = &[Event::Lost(4), Event::Longer(20, Time::from_ms(20))];
const MARKS: &[Event] = &[Event::MarksAbove(5)];

#[test]
fn newreno_meets_losses() {
    // Doubles to 80, halves; one segment a round trip; half again twice; after the timeout slow start up to half.
    expect_table(
        "newreno",
        (72, 6),
        LOSSES,
        "
    ms  cwnd ssthresh    rtt
   260  81.0       80   80.0
   486  44.5       40   43.0
   765  50.5       40   49.0
  1080  56.5       40   55.0
  1431  62.5       40   61.0
  1818  68.5       40   67.0
  2100  18.4       18   20.0
  2230  25.4       18   24.0
  2395  30.4       18   30.0
  3555   1.0       17   20.0
  3675  21.0       17   20.0
  3816  27.0       17   26.0
",
    );
}

#[test]
fn cubic_meets_losses() {
    // 0.7 at a loss; then, for the path is short, what is fair to Reno: 3 (1 - 0.7) / (1 + 0.7) = 0.53 segments a round trip.
    expect_table(
        "cubic",
        (72, 6),
        LOSSES,
        "
    ms  cwnd ssthresh    rtt
   193  39.9       39   39.0
   436  42.9       39   42.0
   698  45.9       39   45.0
   977  48.9       39   48.0
  1274  51.9       39   51.0
  1589  54.9       39   54.0
  1832  27.9       27   20.0
  2001  30.9       27   29.0
  2187  33.9       27   32.0
  3356   1.0       25   20.0
  3482  28.0       25   26.0
  3670  37.0       25   35.0
",
    );
}

#[test]
fn bic_meets_losses() {
    // 0.8 at a loss; back by a quarter of the distance a round trip.
    expect_table(
        "bic",
        (72, 6),
        LOSSES,
        "
    ms  cwnd ssthresh    rtt
   200 102.0      102   20.0
   502  67.0       64   67.0
   918  72.0       64   71.0
  1364  78.0       64   77.0
  1735  74.0       64   72.0
  2189  78.0       64   78.0
  2530  53.0       53   20.0
  2861  58.0       53   57.0
  3221  63.0       53   62.0
  4550   1.0       59   20.0
  4682  60.0       59   32.0
  5068  82.0       73   80.0
",
    );
}

#[test]
fn vegas_meets_losses() {
    // Slow start ends where a queue stands; from then on two to four segments wait. A loss halves, the rest is taken back
    // segment by segment.
    expect_table(
        "vegas",
        (72, 6),
        LOSSES,
        "
    ms  cwnd ssthresh    rtt
   218  38.5       38   38.0
   441  34.0       33   35.0
   630  28.0       27   29.0
   784  24.0       23   24.0
   928  24.0       23   24.0
  1072  24.0       23   24.0
  1204   6.0        6   20.0
  1324  11.0        8   20.0
  1444  17.0       12   20.0
  2545   1.0       11   20.0
  2665  13.0       11   20.0
  2785  19.0       14   20.0
",
    );
}

#[test]
fn newreno_waits_for_its_application() {
    // The window stands still while the application fills a quarter of it.
    expect_table(
        "newreno",
        (72, 6),
        APPLICATION,
        "
    ms  cwnd ssthresh    rtt
   181  42.0       40   41.0
   370  45.0       40   20.0
   490  45.0       40   20.0
   610  45.0       40   20.0
   730  45.0       40   20.0
   850  45.0       40   20.0
  1021  47.0       40   46.0
  1318  53.0       40   52.0
  1651  59.0       40   58.0
  2020  65.0       40   64.0
  2425  71.0       40   70.0
  2866  77.0       40   76.0
",
    );
}

#[test]
fn cubic_waits_for_its_application() {
    // The same; the epoch begins anew after it.
    expect_table(
        "cubic",
        (72, 6),
        APPLICATION,
        "
    ms  cwnd ssthresh    rtt
   174  38.8       37   37.0
   349  39.8       37   20.0
   469  39.8       37   20.0
   589  39.8       37   20.0
   709  39.8       37   20.0
   829  39.8       37   20.0
   988  40.8       37   40.0
  1237  43.8       37   43.0
  1504  46.8       37   46.0
  1789  49.8       37   49.0
  2092  53.8       37   52.0
  2420  58.8       37   57.0
",
    );
}

#[test]
fn vegas_meets_a_longer_path() {
    // A longer path looks like a queue: base stays at the old RTT, and the window falls.
    expect_table(
        "vegas",
        (72, 6),
        LONGER,
        "
    ms  cwnd ssthresh    rtt
   180  41.0       40   40.0
   411  35.0       34   36.0
   606  29.0       28   30.0
   835  23.0       22   40.0
  1075  17.0       16   40.0
  1315  11.0       10   40.0
  1555   8.0        7   40.0
  1795   8.0        7   40.0
  2035   8.0        7   40.0
  2275   8.0        7   40.0
  2515   8.0        7   40.0
  2755   8.0        7   40.0
",
    );
}

#[test]
fn dctcp_meets_marks() {
    // Alpha falls from 1; in the end small cuts hold the queue at the mark.
    expect_table(
        "dctcp",
        (72, 6),
        MARKS,
        "
    ms  cwnd ssthresh    rtt
   149  10.4       10   20.0
   269  16.4       10   20.0
   390  22.4       10   21.0
   533  24.8       23   23.0
   680  26.9       23   25.0
   833  26.6       25   25.0
   985  27.0       24   25.0
  1137  26.1       25   25.0
  1290  26.7       25   25.0
  1444  25.6       25   26.0
  1596  25.7       24   24.0
  1749  26.4       26   26.0
",
    );
}

#[test]
fn cubic_meets_marks() {
    // A mark is worth a loss.
    expect_table(
        "cubic",
        (72, 6),
        MARKS,
        "
    ms  cwnd ssthresh    rtt
   159  17.5       17   20.0
   279  20.5       17   20.0
   408  23.5       17   23.0
   550  19.2       19   20.0
   674  22.2       19   22.0
   815  25.2       19   25.0
   946  20.4       18   20.0
  1072  23.4       18   22.0
  1216  26.4       18   25.0
  1343  21.2       19   21.0
  1478  24.2       19   24.0
  1618  19.3       18   20.0
",
    );
}
