//! A flow at its sender: which packet next, how many at a time, what a timeout means.
//!
//! Packets are numbered. `c` is the number of packets that the receiver has without a gap, and `s` the bytes that it has
//! beyond them. A packet may be sent when it ends within
//!
//! ```text
//! c * mtu + cwnd * mtu + s
//! ```
//!
//! Packets that the receiver has are passed over. `cwnd` grows by one packet for every acknowledgement that moves `c`
//! while it is below `ssthresh` (without bound at first), then by one for every `cwnd` of them, up to the largest window. A
//! timeout sets `ssthresh` to half of `cwnd`, `cwnd` to one packet, and goes back to `c`. Nothing else is taken as a loss.
//!
//! Probe mode, where it is asked for: after so many timeouts in a row the flow sends probes instead, until any
//! acknowledgement comes.
//!
//! Source: Alizadeh et al., "pFabric", SIGCOMM 2013 (probe mode); the rest as the pHost authors' simulator has it.

use super::super::arrived::Arrived;
use crate::transport::pfabric::parameters::PfabricConfig;

/// The least `ssthresh` that a timeout sets.
const MIN_THRESHOLD: u32 = 2;

#[derive(Debug, Clone)]
pub struct Sender {
    size: u64,
    mtu: u64,
    packets: u32,
    /// Packets that the receiver has without a gap.
    whole: u32,
    /// Packets that the receiver is known to have.
    arrived: Arrived,
    /// Packet to send next; goes back with a timeout.
    next: u32,
    /// Packets below this one have been sent.
    sent_up_to: u32,
    cwnd: u32,
    max_window: u32,
    threshold: u32,
    /// Acknowledgements counted towards the next packet of `cwnd` above the threshold.
    counted: u32,
    /// Timeouts since the last acknowledgement.
    timeouts: u32,
    /// Timeouts after which it probes; 0: it never does.
    probe_after: u32,
}

/// A packet that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    pub number: u32,
    pub first_byte: u64,
    pub payload: u16,
    pub again: bool,
    pub last: bool,
}

impl Sender {
    pub fn new(size: u64, config: &PfabricConfig) -> Sender {
        let mtu = u64::from(config.mtu);
        let packets = u32::try_from(size.div_ceil(mtu)).unwrap_or(u32::MAX);
        Sender {
            size,
            mtu,
            packets,
            whole: 0,
            arrived: Arrived::new(packets),
            next: 0,
            sent_up_to: 0,
            cwnd: config.initial_window,
            max_window: config.max_window,
            threshold: u32::MAX,
            counted: 0,
            timeouts: 0,
            probe_after: config.probe_after,
        }
    }

    pub fn is_done(&self) -> bool {
        self.whole >= self.packets
    }

    pub fn is_probing(&self) -> bool {
        self.probe_after > 0 && self.timeouts >= self.probe_after
    }

    /// Packets that it may have on the way.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Payload bytes of a full packet.
    pub fn mtu(&self) -> u64 {
        self.mtu
    }

    /// First byte that the receiver misses.
    pub fn acknowledged(&self) -> u64 {
        self.first_byte(self.whole)
    }

    /// Bytes that the receiver is not known to have: what the packets' priority is.
    pub fn remaining(&self) -> u64 {
        self.size - self.acknowledged() - self.beyond()
    }

    fn first_byte(&self, packet: u32) -> u64 {
        (u64::from(packet) * self.mtu).min(self.size)
    }

    fn payload(&self, packet: u32) -> u64 {
        self.first_byte(packet.saturating_add(1)) - self.first_byte(packet)
    }

    /// Bytes that the receiver has beyond a gap.
    fn beyond(&self) -> u64 {
        let packets = u64::from(self.packets - self.arrived.missing() - self.whole);
        if packets == 0 {
            return 0;
        }
        let last = self.packets - 1;
        let short = if self.arrived.has(last) { self.mtu - self.payload(last) } else { 0 };
        packets * self.mtu - short
    }

    /// Where the last packet that may be sent now must end.
    pub fn window_end(&self) -> u64 {
        if self.is_probing() {
            return 0;
        }
        self.acknowledged() + u64::from(self.cwnd) * self.mtu + self.beyond()
    }

    /// The next packet, if it ends within the window, which ends at this byte.
    #[inline]
    pub fn send(&mut self, window_end: u64) -> Option<Sending> {
        let number = self.arrived.search(self.next)?;
        let (first_byte, end) = (self.first_byte(number), self.first_byte(number.saturating_add(1)));
        if end > window_end {
            return None;
        }
        let payload = end - first_byte;
        let again = number < self.sent_up_to;
        self.next = number + 1;
        self.sent_up_to = self.sent_up_to.max(self.next);
        let last = self.next == self.packets;
        Some(Sending { number, first_byte, payload: payload as u16, again, last })
    }

    /// An acknowledgement: the receiver has everything below `expected`, and packet `number` if it is said. Whether the
    /// receiver has got further without a gap.
    pub fn acknowledge(&mut self, expected: u64, number: Option<u32>) -> bool {
        let probed = self.is_probing();
        self.timeouts = 0;
        let whole = u32::try_from(expected.div_ceil(self.mtu)).unwrap_or(u32::MAX).min(self.packets);
        let further = whole > self.whole;
        for packet in self.whole..whole {
            self.arrived.take(packet);
        }
        self.whole = self.whole.max(whole);
        if let Some(number) = number.filter(|&number| number >= self.whole) {
            self.arrived.take(number);
        }
        // What comes late may have been passed over while it was counted as missing.
        self.next = self.next.max(self.whole);
        // The answer to a probe lets the flow begin anew, with the window of one packet that the timeouts left.
        if further && !probed {
            self.grow();
        }
        further
    }

    fn grow(&mut self) {
        if self.cwnd < self.threshold {
            self.cwnd += 1;
        } else {
            self.counted += 1;
            if self.counted >= self.cwnd {
                self.counted = 0;
                self.cwnd += 1;
            }
        }
        self.cwnd = self.cwnd.min(self.max_window);
    }

    /// Nothing has been acknowledged for the time of the timeout. Whether a probe is to be sent.
    pub fn time_out(&mut self) -> bool {
        self.timeouts = self.timeouts.saturating_add(1);
        self.threshold = (self.cwnd / 2).max(MIN_THRESHOLD);
        self.counted = 0;
        self.cwnd = 1;
        self.next = self.whole;
        self.is_probing()
    }
}

#[cfg(test)]
mod tests;
