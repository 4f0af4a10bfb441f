//! A port: the egress queue and the transmitter at one end of a link.

use super::PortId;
use crate::config::Compat;
use crate::queue::Queue;
use crate::units::{Rate, Time};

pub struct Port {
    /// The transmitter is busy until then.
    pub busy_until: Time,
    /// Propagation delay of the link.
    pub delay: Time,
    pub rate: Rate,
    pub rate_kbps: u32,
    /// Picoseconds per byte where that is whole, else 0.
    ps_per_byte: u64,
    /// Bytes sent since the start, PFC included: what INT reports.
    pub bytes_sent: u64,
    pub packets_sent: u64,
    pub bytes_received: u64,
    pub packets_received: u64,
    pub node: u32,
    /// Number of this port at its node.
    pub local: u16,
    /// The port at the other end, its node, and its number there.
    pub peer: PortId,
    pub peer_node: u32,
    pub peer_local: u16,
    /// The peer forwards a packet once this many bytes of it have arrived (cut-through); 0: once all have.
    pub peer_cuts_through: u16,
    /// Bit c: the peer has paused class c.
    pub paused: u8,
    /// A departure event is on its way.
    pub departure_pending: bool,
    pub up: bool,
    /// Counts the times that the link went down, so that packets on it then are known.
    pub generation: u8,
    pub queue: Queue,
}

/// What a link is, as its two ports see it.
pub struct LinkEnd {
    pub node: u32,
    pub local: u16,
    pub peer: PortId,
    pub peer_node: u32,
    pub peer_local: u16,
    pub peer_cuts_through: u16,
    pub rate: Rate,
    pub delay: Time,
}

impl Port {
    pub fn new(end: &LinkEnd, queue: Queue) -> Port {
        let mut port = Port {
            busy_until: Time::ZERO,
            delay: end.delay,
            rate: end.rate,
            rate_kbps: 0,
            ps_per_byte: 0,
            bytes_sent: 0,
            packets_sent: 0,
            bytes_received: 0,
            packets_received: 0,
            node: end.node,
            local: end.local,
            peer: end.peer,
            peer_node: end.peer_node,
            peer_local: end.peer_local,
            peer_cuts_through: end.peer_cuts_through,
            paused: 0,
            departure_pending: false,
            up: true,
            generation: 0,
            queue,
        };
        port.set_rate(end.rate);
        port
    }

    pub fn set_rate(&mut self, rate: Rate) {
        const PICOBITS: u64 = 8_000_000_000_000;
        self.rate = rate;
        self.rate_kbps = u32::try_from(rate.0 / 1000).unwrap_or(u32::MAX);
        self.ps_per_byte = if PICOBITS % rate.0 == 0 { PICOBITS / rate.0 } else { 0 };
    }

    #[inline]
    pub fn transmission_time(&self, bytes: u64, compat: Compat) -> Time {
        match compat {
            Compat::None if self.ps_per_byte != 0 => Time(bytes * self.ps_per_byte),
            Compat::None => self.rate.transmission_time(bytes),
            Compat::HpccNs3 => truncated_transmission_time(bytes, self.rate),
        }
    }

    /// The transmitter sends nothing and nothing waits for it to become free.
    #[inline]
    pub fn is_idle(&self, now: Time) -> bool {
        !self.departure_pending && self.busy_until <= now
    }
}

/// Transmission time as the HPCC authors' simulator has it: bytes * 8 / rate as a double of seconds, turned into
/// 64.64 fixed point and truncated to whole nanoseconds.
pub fn truncated_transmission_time(bytes: u64, rate: Rate) -> Time {
    let seconds = bytes as f64 * 8.0 / rate.0 as f64;
    // Multiplying by a power of two is exact.
    let fixed = (seconds * 18_446_744_073_709_551_616.0) as u128;
    Time::from_ns(((fixed * 1_000_000_000) >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_times_are_those_of_the_authors_fixed_point() {
        let ns = |bytes, gbps| truncated_transmission_time(bytes, Rate::from_gbps(gbps)).ns();
        let sizes = [43, 60, 88, 1048, 1050, 1056, 1090, 1000];
        assert_eq!(sizes.map(|b| ns(b, 100)), [3, 4, 7, 83, 83, 84, 87, 79]);
        assert_eq!(sizes.map(|b| ns(b, 400)), [0, 1, 1, 20, 20, 21, 21, 19]);
    }
}
