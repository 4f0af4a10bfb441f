//! The application that reads a stream, and the window that it leaves to the sender.
//!
//! It reads at once, or at a rate, as a fluid; what it has not read takes up the receive buffer. The right edge of the window moves on
//! when it can by half of the buffer or a segment (no silly windows), and never moves back. A sender that the window may have stopped
//! learns of more room without asking: an update is sent when the window can be twice the last one announced, which segments that are not
//! answered yet make smaller.
//!
//! ```text
//! edge     read + buffer, once that is min(buffer / 2, MSS) more than it was told
//! update   when read + buffer - expected >= max(2 (edge - expected), edge - expected + min(buffer / 2, MSS))
//! ```
//!
//! Source: Eddy, RFC 9293 §3.8.6.2.2 (receiver's silly window avoidance); Borman et al., RFC 7323 §2 (scale); the time of updates from
//! Linux. It is computed when it is asked for: no event but for an update that is due.

use crate::transport::tcp::config::TcpConfig;
use crate::units::{Rate, Time};

/// The window of a receiver whose application reads at once: all of its buffer, at the resolution of the window scale that it needs.
pub fn whole_window(config: &TcpConfig) -> u32 {
    scaled(config.receive_buffer, config)
}

/// A window as it travels: whole steps of the scale that the buffer needs (RFC 7323 §2).
fn scaled(window: u64, config: &TcpConfig) -> u32 {
    let buffer = buffer_in_window(config);
    window.min(buffer) as u32 >> scale(buffer) << scale(buffer)
}

/// The bytes of the buffer that a window can tell.
fn buffer_in_window(config: &TcpConfig) -> u64 {
    config.receive_buffer.min(u64::from(u32::MAX >> 2))
}

fn scale(buffer: u64) -> u32 {
    (u64::BITS - (buffer >> 16).leading_zeros()).min(14)
}

#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// So much had been read at this time, since when there has always been something to read.
    read: u64,
    since: Time,
    /// Above the last byte that the sender was told it may send.
    edge: u64,
}

impl Reading {
    pub fn new(config: &TcpConfig) -> Reading {
        Reading { read: 0, since: Time::ZERO, edge: u64::from(whole_window(config)) }
    }

    /// New bytes are about to come in order, beyond `expected`: an application that has read everything begins anew with them.
    pub fn resume(&mut self, expected: u64, rate: Rate, now: Time) {
        if self.read_by(now, expected, rate) == expected {
            (self.read, self.since) = (expected, now);
        }
    }

    fn read_by(&self, now: Time, expected: u64, rate: Rate) -> u64 {
        expected.min(self.read + rate.bytes_in(now.saturating_sub(self.since)).0)
    }

    /// The window that an acknowledgement of everything below `expected` tells.
    pub fn window(&mut self, expected: u64, rate: Rate, now: Time, config: &TcpConfig) -> u32 {
        let room = config.receive_buffer - (expected - self.read_by(now, expected, rate));
        let edge = expected + u64::from(scaled(room, config));
        if edge >= self.edge + step(config) {
            self.edge = edge;
        }
        scaled(self.edge.saturating_sub(expected), config)
    }

    /// When an update is due, which may be past; none while the window is wide, or as wide as it gets.
    pub fn update_at(&self, expected: u64, rate: Rate, config: &TcpConfig) -> Option<Time> {
        let window = self.edge.saturating_sub(expected);
        let wanted = (2 * window).max(window + step(config));
        // With less room the window that travels would be the same still, and so would the next update.
        let wanted = wanted.next_multiple_of(1 << scale(buffer_in_window(config)));
        let read = (expected + wanted).saturating_sub(config.receive_buffer);
        let possible = wanted <= u64::from(whole_window(config));
        possible.then(|| self.since.saturating_add(rate.transmission_time(read.saturating_sub(self.read))))
    }
}

/// The least by which the edge moves on.
fn step(config: &TcpConfig) -> u64 {
    u64::from(config.mss).min(config.receive_buffer / 2)
}
