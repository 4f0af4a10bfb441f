//! How far a sender uses its window: whether an acknowledgement finds that the window was what limited it.
//!
//! ```text
//! full      in_flight >= cwnd after a packet left (a transport with segments: no room for one more)
//! limited   full at some moment since everything that was out at the last such moment was acknowledged;
//!           in slow start also  cwnd < 2 max(in_flight)  over a round
//! ```
//!
//! A moment at which the window is full counts until all that was out then is acknowledged. So the acknowledgements of a sender that
//! always has data are limited without exception: between an acknowledgement and the segments that it lets out the window is
//! never full, and that is no reason to doubt it.
//!
//! Source: Fairhurst, Sathiaseelan, Secchi, RFC 7661 §4 (a window that is not used is not validated), in the form of Linux'
//! tcp_cwnd_validate and tcp_is_cwnd_limited.

use super::CongestionWindow;

/// Of one flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowUsage {
    /// The window was full at the moment from which this round counts.
    full: bool,
    /// Otherwise the most that was in flight in the round, in bytes.
    peak: u64,
    /// The round ends when every byte below has been acknowledged: the next new byte at the moment above.
    round_end: u64,
}

impl WindowUsage {
    /// A packet has left, and `in_flight` bytes are out now.
    #[inline]
    pub fn on_sent(&mut self, in_flight: u64, full: bool, acknowledged: u64, next: u64) {
        let higher = !self.full && in_flight > self.peak;
        if full || higher || acknowledged >= self.round_end {
            *self = WindowUsage { full, peak: in_flight, round_end: next };
        }
    }

    /// The window, and not the application, the receiver or the NIC, is what limits the sender.
    #[inline]
    pub fn is_limited_by(&self, window: &CongestionWindow) -> bool {
        self.full || window.in_slow_start() && window.cwnd < 2 * self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::super::situations::{mss, window};
    use super::*;

    /// A sender with a window of ten segments, by segments.
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
        /// Segments are acknowledged; whether that finds the window limited after slow start, and in it.
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
        // The application has one segment more: nine of the round are acknowledged, and then all.
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
}
