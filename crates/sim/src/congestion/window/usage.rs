//! Whether an acknowledgement finds that the window limited the sender.
//!
//! ```text
//! full      in_flight >= cwnd after a packet left (a transport with segments: no room for one more)
//! limited   full at some moment since everything that was out at the last such moment was acknowledged;
//!           in slow start also  cwnd < 2 max(in_flight)  over a round
//! ```
//!
//! Once the window is full, this counts until all bytes then in flight are acknowledged. For a sender that
//! always has data every acknowledgement is therefore window-limited: between an acknowledgement and the
//! segments sent after it the window is never full, which does not mean that the sender does not use it.
//!
//! Source: Fairhurst, Sathiaseelan, Secchi, RFC 7661 §4 (a window that is not used is not validated), as
//! implemented in Linux' tcp_cwnd_validate and tcp_is_cwnd_limited.

use super::CongestionWindow;

/// Of one flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowUsage {
    /// The window was full at the start of this round.
    full: bool,
    /// Otherwise the maximum of the bytes in flight in the round.
    peak: u64,
    /// The round ends when all bytes below this have been acknowledged: the next new byte at its start.
    round_end: u64,
}

impl WindowUsage {
    /// A packet was sent, and `in_flight` bytes are in flight now.
    #[inline]
    pub fn on_sent(&mut self, in_flight: u64, full: bool, acknowledged: u64, next: u64) {
        let higher = !self.full && in_flight > self.peak;
        if full || higher || acknowledged >= self.round_end {
            *self = WindowUsage { full, peak: in_flight, round_end: next };
        }
    }

    /// Whether the window, and not the application, the receiver or the NIC, limits the sender.
    #[inline]
    pub fn is_limited_by(&self, window: &CongestionWindow) -> bool {
        self.full || window.in_slow_start() && window.cwnd < 2 * self.peak
    }
}

#[cfg(test)]
mod tests;
