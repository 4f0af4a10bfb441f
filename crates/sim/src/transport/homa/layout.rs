//! How a message is cut into packets: full unscheduled ones up to a round trip's bytes on the wire, then
//! scheduled ones.

use super::parameters::HomaConfig;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub size: u64,
    pub packets: u32,
    /// Those of them that need no grant.
    pub unscheduled: u32,
    pub unscheduled_bytes: u64,
    /// Payload and header of full packets; unscheduled ones have the longer header.
    mtu: u32,
    header: u32,
    extra: u32,
}

impl HomaConfig {
    #[inline]
    pub fn layout(&self, size: u64) -> Layout {
        let (wire, payload) = (u64::from(self.mtu + self.header), u64::from(self.mtu - self.extra));
        let rest = (self.rtt_bytes % wire).saturating_sub(u64::from(self.header + self.extra));
        let limit = (self.rtt_bytes / wire * payload + rest).max(payload);
        let unscheduled_bytes = size.min(limit);
        let count = |packets: u64| u32::try_from(packets.max(1)).unwrap_or(u32::MAX / 2);
        let unscheduled = count(unscheduled_bytes.div_ceil(payload));
        let scheduled = u32::try_from((size - unscheduled_bytes).div_ceil(u64::from(self.mtu)));
        Layout {
            size,
            packets: unscheduled + scheduled.unwrap_or(u32::MAX / 2),
            unscheduled,
            unscheduled_bytes,
            mtu: self.mtu,
            header: self.header,
            extra: self.extra,
        }
    }
}

impl Layout {
    /// Bytes of the message before a packet; all of them after the last.
    #[inline]
    pub fn before(&self, number: u32) -> u64 {
        match number.checked_sub(self.unscheduled) {
            None => u64::from(number) * u64::from(self.mtu - self.extra),
            Some(scheduled) => self.unscheduled_bytes + u64::from(scheduled) * u64::from(self.mtu),
        }
        .min(self.size)
    }

    /// The first packet that has at least this number of bytes before it; the number of packets if all have
    /// fewer.
    #[inline]
    pub fn number_at(&self, bytes: u64) -> u32 {
        let number = match bytes.checked_sub(self.unscheduled_bytes) {
            None | Some(0) => return bytes.div_ceil(u64::from(self.mtu - self.extra)) as u32,
            Some(scheduled) => u64::from(self.unscheduled) + scheduled.div_ceil(u64::from(self.mtu)),
        };
        number.min(u64::from(self.packets)) as u32
    }

    #[inline]
    pub fn payload(&self, number: u32) -> u32 {
        let end =
            if number + 1 == self.unscheduled { self.unscheduled_bytes } else { self.before(number + 1) };
        (end - self.before(number)) as u32
    }

    #[inline]
    pub fn wire_bytes(&self, number: u32) -> u32 {
        self.payload(number) + self.header + if number < self.unscheduled { self.extra } else { 0 }
    }

    /// So many scheduled bytes on the wire.
    #[inline]
    pub fn wire_of(&self, bytes: u64) -> u64 {
        bytes + bytes.div_ceil(u64::from(self.mtu)) * u64::from(self.header)
    }
}
