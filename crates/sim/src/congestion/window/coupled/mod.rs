//! Laws that couple the windows of one multipath connection, one file each, and their view of each other's
//! subflows.
//!
//! The connection passes all its subflows to every law before each acknowledgement
//! ([`super::WindowController::couple`]). A law stores what it computes from them until the next. Slow start,
//! recovery and timeouts are separate for each subflow; coupled are the growth in congestion avoidance, and
//! in BALIA the cut.

pub mod balia;
pub mod lia;
pub mod olia;

use super::newreno::Growth;
use super::{Acked, CongestionWindow};
use crate::units::Time;

/// One subflow of a connection, as a coupled law sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subflow {
    /// In bytes; the threshold during recovery (RFC 6356 §3).
    pub window: u64,
    /// Smoothed round-trip time.
    pub rtt: Time,
    /// Bytes between its last two losses, or since the last one: the larger number.
    pub between_losses: u64,
}

impl Subflow {
    fn window(&self) -> f64 {
        self.window.max(1) as f64
    }
    /// In seconds; never zero.
    fn rtt(&self) -> f64 {
        self.rtt.0.max(1) as f64 * 1e-12
    }
    /// In bytes per second.
    fn rate(&self) -> f64 {
        self.window() / self.rtt()
    }
}

/// Growth by fractions of a byte: the remainder counts with the next acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
struct Credit(f64);

impl Credit {
    /// Adds bytes, possibly a negative number, to a window that remains at least one segment.
    fn add(&mut self, bytes: f64, window: &mut CongestionWindow) {
        self.0 += bytes;
        let whole = self.0.floor();
        self.0 -= whole;
        let grown = window.cwnd as i64 + whole as i64;
        window.cwnd = grown.max(window.mss as i64) as u64;
    }
}

/// Slow start, which is not coupled. Returns whether the window is in slow start.
fn slow_start(growth: Growth, ack: &Acked, window: &mut CongestionWindow) -> bool {
    let starts = window.in_slow_start();
    if starts && ack.window_limited {
        growth.slow_start(ack, window);
    }
    starts
}

#[cfg(test)]
mod tests;
