//! What the arrivals by a link tell a receiver about the queue at its other end.
//!
//! The last switch serves by strict priority, and each level in the order of arrival. So a packet that begins to leave
//! shows that none of a higher level waits there, and a link that is idle shows that none waits at all. A packet that left
//! its source at a time shows that none of its level waits that came to the switch before that time. A packet that is
//! missing although none as old can wait any more was lost, or has not left its source.

use crate::packet::{Packet, PacketKind};
use crate::units::{Rate, Time};

/// Levels are in classes below this.
const CLASSES: usize = 8;

/// One link into a host.
#[derive(Debug, Clone, Default)]
pub struct Downlink {
    /// The last packet came then.
    last: Time,
    /// The link was idle until then, at last.
    idle: Time,
    /// By class: when the last data packet began to leave the switch, as seen here, and the latest time at which one that
    /// came had left its source.
    began: [Time; CLASSES],
    left: [Time; CLASSES],
}

impl Downlink {
    /// A packet has come; `gap`: the longest time between two packets without an idle link.
    #[inline]
    pub fn arrived(&mut self, packet: &Packet, rate: Rate, gap: Time, now: Time) {
        let began = Time(now.0.saturating_sub(rate.transmission_time(u64::from(packet.size)).0));
        if began > self.last.saturating_add(gap) {
            self.idle = began;
        }
        self.last = now;
        if packet.kind == PacketKind::Data {
            let class = usize::from(packet.class) % CLASSES;
            self.began[class] = began;
            self.left[class] = self.left[class].max(packet.sent);
        }
    }

    /// No packet of a class, or of a higher one, waits at the switch any more if it came there before this time.
    pub fn empty_of(&self, class: u8, gap: Time, now: Time) -> Time {
        // One that is on the link now began to leave after this.
        let before = Time(now.0.saturating_sub(gap.0));
        if before > self.last.saturating_add(gap) {
            return before;
        }
        let class = usize::from(class) % CLASSES;
        let lower = self.began[class + 1..].iter().copied().max().unwrap_or(Time::ZERO);
        self.idle.max(lower).max(self.left[class])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 1 Gb/s a packet of 1 000 B takes 8 us; times in microseconds.
    fn arrive(link: &mut Downlink, class: u8, sent: u64, now: u64) {
        let (sent, now) = (Time::from_us(sent), Time::from_us(now));
        let packet = Packet { kind: PacketKind::Data, class, sent, size: 1000, ..Packet::default() };
        link.arrived(&packet, Rate::from_gbps(1), Time::from_us(8), now);
    }

    #[test]
    fn a_lower_packet_a_later_one_or_an_idle_link_shows_that_the_queue_was_emptied() {
        let mut link = Downlink::default();
        let empty = |link: &Downlink, class, now| link.empty_of(class, Time::from_us(8), Time::from_us(now));
        arrive(&mut link, 3, 80, 100);
        // Idle before it.
        assert_eq!(empty(&link, 3, 100), Time::from_us(92));
        for (now, sent) in [(108, 83), (116, 95), (124, 90)] {
            arrive(&mut link, 3, sent, now);
        }
        // No higher level waits; of its own level only what came after a packet that has left; lower levels may wait.
        assert_eq!([2, 3, 4].map(|class| empty(&link, class, 130)), [116, 95, 92].map(Time::from_us));
        // The link has been idle for longer than a packet.
        assert_eq!(empty(&link, 7, 141), Time::from_us(133));
    }
}
