//! Laws that couple the windows of one multipath connection, one file each, and what they see of each other's subflows.
//!
//! The connection shows every law all its subflows before each acknowledgement ([`super::WindowController::couple`]). A law keeps
//! what it makes of them until the next. Slow start, recovery and timeouts are each subflow's own; what is coupled is the growth
//! in congestion avoidance, and in BALIA the cut.

pub mod balia;
pub mod lia;
pub mod olia;

use super::newreno::Growth;
use super::{Acked, CongestionWindow};
use crate::units::Time;

/// One subflow of a connection, as a coupled law sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subflow {
    /// Bytes; the threshold while it recovers (RFC 6356 §3).
    pub window: u64,
    /// Smoothed round-trip time.
    pub rtt: Time,
    /// Bytes between its last two losses, or since the last one: whichever is more.
    pub between_losses: u64,
}

impl Subflow {
    fn window(&self) -> f64 {
        self.window.max(1) as f64
    }
    /// Seconds; never zero.
    fn rtt(&self) -> f64 {
        self.rtt.0.max(1) as f64 * 1e-12
    }
    /// Bytes per second.
    fn rate(&self) -> f64 {
        self.window() / self.rtt()
    }
}

/// Growth by parts of a byte: what is left over counts with the next acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
struct Credit(f64);

impl Credit {
    /// Adds bytes, which may be negative, to a window that stays a segment at least.
    fn add(&mut self, bytes: f64, window: &mut CongestionWindow) {
        self.0 += bytes;
        let whole = self.0.floor();
        self.0 -= whole;
        let grown = window.cwnd as i64 + whole as i64;
        window.cwnd = grown.max(window.mss as i64) as u64;
    }
}

/// Slow start, which nobody couples; whether it was that.
fn slow_start(growth: Growth, ack: &Acked, window: &mut CongestionWindow) -> bool {
    let starts = window.in_slow_start();
    if starts && ack.window_limited {
        growth.slow_start(ack, window);
    }
    starts
}

#[cfg(test)]
mod tests;
