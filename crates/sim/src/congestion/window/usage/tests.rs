use super::super::tests::situations::{mss, window};
use super::*;

/// A sender with a window of ten segments, counted in segments.
struct Sender {
    usage: WindowUsage,
    acknowledged: u64,
    next: u64,
}

impl Sender {
    fn new() -> Sender {
        Sender { usage: WindowUsage::default(), acknowledged: 0, next: 0 }
    }
    fn sends(&mut self, segments: u64) {
        for _ in 0..segments {
            self.next += mss();
            let in_flight = self.next - self.acknowledged;
            let full = in_flight + mss() > window().cwnd;
            self.usage.on_sent(in_flight, full, self.acknowledged, self.next);
        }
    }
    /// Acknowledges segments. Returns whether that finds the window limited after slow start, and in it.
    fn is_limited_after(&mut self, segments: u64) -> (bool, bool) {
        self.acknowledged += segments * mss();
        let avoiding = CongestionWindow { ssthresh: window().cwnd, ..window() };
        (self.usage.is_limited_by(&avoiding), self.usage.is_limited_by(&window()))
    }
}

#[test]
fn a_sender_that_always_has_data_is_limited_at_every_acknowledgement() {
    for delayed in 1..=10 {
        let mut sender = Sender::new();
        sender.sends(10);
        for ack in 0..1_000 {
            assert_eq!(sender.is_limited_after(delayed), (true, true), "{delayed} at a time, {ack}");
            sender.sends(delayed);
        }
    }
}

#[test]
fn a_full_window_counts_until_what_was_out_then_is_acknowledged() {
    let mut sender = Sender::new();
    sender.sends(10);
    for _ in 0..9 {
        assert_eq!(sender.is_limited_after(1), (true, true));
    }
    // The application has one more segment: nine of the round are acknowledged, and then all.
    sender.sends(1);
    assert_eq!(sender.is_limited_after(1), (true, true));
    sender.sends(1);
    assert_eq!(sender.is_limited_after(1), (false, false), "two in flight");
}

#[test]
fn in_slow_start_more_than_half_of_the_window_is_enough() {
    for (burst, starts) in [(5, false), (6, true), (9, true)] {
        let mut sender = Sender::new();
        for _ in 0..20 {
            sender.sends(burst);
            for _ in 0..burst {
                assert_eq!(sender.is_limited_after(1), (false, starts), "{burst}");
            }
        }
    }
}
