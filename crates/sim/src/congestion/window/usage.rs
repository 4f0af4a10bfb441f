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
mod tests;
