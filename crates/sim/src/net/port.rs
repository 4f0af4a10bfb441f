//! A port: the egress queue and the transmitter at one end of a link.

use super::PortId;
use super::tap::Destination;
use crate::compat::Rules;
use crate::packet::{Packet, PacketId, PacketSlab};
use crate::queue::{Queue, QueueDiscipline, Verdict};
use crate::units::{Rate, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    StoreAndForward,
    /// A packet may leave once this many of its bytes have arrived.
    CutThrough {
        header: u32,
    },
    /// The same, but it does not wait for its tail where the outgoing link is the faster one: a port may send bytes that
    /// have not come (the pHost authors' simulator).
    IdealCutThrough {
        header: u32,
    },
}

impl Forwarding {
    /// Bytes after which a switch forwards; none: all.
    pub fn header(self) -> Option<u32> {
        match self {
            Forwarding::StoreAndForward => None,
            Forwarding::CutThrough { header } | Forwarding::IdealCutThrough { header } => Some(header),
        }
    }
}

/// What a packet touches that leaves by a port fills one cache line, what it touches to find out whether it may another.
#[repr(C, align(64))]
pub struct Port {
    /// Bytes sent since the start, PFC included: what INT reports.
    pub bytes_sent: u64,
    pub packets_sent: u64,
    pub line: Line,
    pub rate_kbps: u32,
    /// The port at the other end, as its own partition numbers it, and its number at its node.
    pub peer: PortId,
    /// The node at the other end, as its own partition numbers it.
    pub peer_slot: u32,
    pub peer_local: u16,
    /// The partition of the peer, or the tap on the link.
    pub destination: Destination,
    /// The transmitter is busy until then. From here on: all that is looked at of a busy port.
    pub busy_until: Time,
    /// Bit c: the peer has paused class c.
    pub paused: u8,
    /// A departure event is on its way.
    pub departure_pending: bool,
    pub up: bool,
    /// Counts the times that the link went down, so that packets on it then are known.
    pub generation: u8,
    /// Number of this port at its node.
    pub local: u16,
    /// What waits here is in a buffer of its own, not charged to the one of the switch.
    pub owns_buffer: bool,
    /// The node that it belongs to, among those of the partition.
    pub slot: u32,
    pub queue: Queue,
    /// Counted where assertions are on, to hold what follows from the peer's counters against.
    pub bytes_received: u64,
    pub packets_received: u64,
    /// The node among all nodes of the network.
    pub node: u32,
}

/// What a packet touches that finds the port idle lies in the first two lines.
const _: () = assert!(std::mem::offset_of!(Port, busy_until) == 64);
const _: () = assert!(std::mem::offset_of!(Port, queue) + 16 <= 128);

/// More bytes than any packet has.
const ALL: u32 = u32::MAX;

/// One direction of a link, as packets cross it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Line {
    pub rate: Rate,
    /// Picoseconds per byte where that is whole, else 0.
    ps_per_byte: u64,
    /// Propagation delay.
    pub delay: Time,
    /// The far end forwards a packet once this many bytes of it have arrived (cut-through), or all of fewer.
    head: u32,
    /// Switches forward without waiting for the tail ([`Forwarding::IdealCutThrough`]).
    pub ideal: bool,
    pub rounding: Rounding,
}

/// What becomes of fractions in a transmission time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Picoseconds, rounded up.
    Up,
    /// Cut to whole nanoseconds.
    WholeNs,
    /// [`truncated_transmission_time`].
    FixedPoint,
}

impl Line {
    /// A line towards a node that forwards a packet once `cuts_through` bytes of it have come; 0: once all have.
    pub fn new(rate: Rate, delay: Time, cuts_through: u16) -> Line {
        let line = Line { rate, ps_per_byte: 0, delay, head: ALL, ideal: false, rounding: Rounding::Up };
        let mut line = line.towards(cuts_through);
        line.set_rate(rate);
        line
    }

    /// The same line in a network whose switches forward like this.
    pub fn between(self, forwarding: Forwarding) -> Line {
        Line { ideal: matches!(forwarding, Forwarding::IdealCutThrough { .. }), ..self }
    }

    /// The same line in a run with these rules.
    pub fn under(self, rules: &Rules) -> Line {
        let rounding = match (rules.fixed_point_times, rules.whole_ns_times) {
            (true, _) => Rounding::FixedPoint,
            (_, true) => Rounding::WholeNs,
            _ => Rounding::Up,
        };
        let mut line = Line { rounding, ..self };
        line.set_rate(self.rate);
        line
    }

    /// The same line towards a node that forwards after so many bytes.
    pub fn towards(self, cuts_through: u16) -> Line {
        let head = if cuts_through > 0 { u32::from(cuts_through) } else { ALL };
        Line { head, ..self }
    }

    /// The far end forwards packets before all of them has come.
    pub fn cuts_through(&self) -> bool {
        self.head < ALL
    }

    pub fn set_rate(&mut self, rate: Rate) {
        const PICOBITS: u64 = 8_000_000_000_000;
        self.rate = rate;
        let whole = match self.rounding {
            Rounding::Up => PICOBITS % rate.0 == 0,
            Rounding::WholeNs => PICOBITS % rate.0 == 0 && PICOBITS / rate.0 % 1000 == 0,
            Rounding::FixedPoint => false,
        };
        self.ps_per_byte = if whole { PICOBITS / rate.0 } else { 0 };
    }

    #[inline(always)]
    pub fn transmission_time(&self, bytes: u64) -> Time {
        match self.rounding {
            _ if self.ps_per_byte != 0 => Time(bytes * self.ps_per_byte),
            Rounding::Up => self.rate.transmission_time(bytes),
            Rounding::WholeNs => cut_transmission_time(bytes, self.rate),
            Rounding::FixedPoint => truncated_transmission_time(bytes, self.rate),
        }
    }

    /// How long a packet's transmission takes, and how long it takes from its start until the far end may forward the packet.
    #[inline(always)]
    pub fn times(&self, bytes: u64) -> (Time, Time) {
        if self.ps_per_byte == 0 {
            return self.times_by_division(bytes);
        }
        // Without a branch: control packets and data come in turns that nobody can guess.
        let head = bytes.min(u64::from(self.head));
        (Time(bytes * self.ps_per_byte), Time(head * self.ps_per_byte))
    }

    #[inline(never)]
    fn times_by_division(&self, bytes: u64) -> (Time, Time) {
        let (whole, head) = (self.transmission_time(bytes), bytes.min(u64::from(self.head)));
        (whole, if head < bytes { self.transmission_time(head) } else { whole })
    }
}

/// A packet that was put on the link of a port.
pub struct Launched {
    /// When it arrives at the other end (its head, if that cuts through).
    pub at: Time,
    pub there: Destination,
    pub node: u32,
    pub peer: PortId,
    /// If something will want to leave after it: the node of the port, and when its transmitter is free.
    pub free: Option<(u32, Time)>,
}

/// A port as it is before the run.
pub struct PortPlan {
    pub slot: u32,
    pub node: u32,
    pub local: u16,
    pub peer: PortId,
    pub peer_local: u16,
    pub peer_slot: u32,
    pub peer_partition: u16,
    pub line: Line,
}

impl Port {
    pub fn new(plan: &PortPlan, queue: Queue) -> Port {
        Port {
            busy_until: Time::ZERO,
            bytes_sent: 0,
            packets_sent: 0,
            line: plan.line,
            rate_kbps: kbps(plan.line.rate),
            peer: plan.peer,
            peer_local: plan.peer_local,
            destination: Destination::partition(plan.peer_partition),
            paused: 0,
            departure_pending: false,
            up: true,
            generation: 0,
            owns_buffer: queue.owns_buffer(),
            queue,
            slot: plan.slot,
            peer_slot: plan.peer_slot,
            bytes_received: 0,
            packets_received: 0,
            node: plan.node,
            local: plan.local,
        }
    }

    pub fn set_rate(&mut self, rate: Rate) {
        self.line.set_rate(rate);
        self.rate_kbps = kbps(rate);
        self.queue.set_rate(rate);
    }

    /// Puts a packet into the queue.
    #[inline]
    pub fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict {
        if self.owns_buffer && self.is_idle(now) {
            self.queue.rest();
        }
        self.queue.enqueue(id, packets, now)
    }

    /// Puts a packet on the link. `more` says that something will want to leave after it.
    #[inline(always)]
    pub fn launch(&mut self, packet: &mut Packet, now: Time, more: bool) -> Launched {
        let size = u64::from(packet.size);
        let (whole, to_head) = self.line.times(size);
        self.busy_until = now + whole;
        self.bytes_sent += size;
        self.packets_sent += 1;
        packet.generation = self.generation;
        packet.ingress = self.peer_local;
        self.departure_pending |= more;
        Launched {
            at: now + to_head + self.line.delay,
            there: self.destination,
            node: self.peer_slot,
            peer: self.peer,
            free: more.then_some((self.slot, self.busy_until)),
        }
    }

    /// The transmitter sends nothing and nothing waits for it to become free.
    #[inline]
    pub fn is_idle(&self, now: Time) -> bool {
        // Not one after the other: there is nothing to guess twice.
        !self.departure_pending & (self.busy_until <= now)
    }
}

fn kbps(rate: Rate) -> u32 {
    u32::try_from(rate.0 / 1000).unwrap_or(u32::MAX)
}

/// Transmission time cut to whole nanoseconds, as ns-3.35 has it.
pub fn cut_transmission_time(bytes: u64, rate: Rate) -> Time {
    const NANOBITS: u64 = 8_000_000_000;
    match bytes.checked_mul(NANOBITS) {
        Some(bits) => Time::from_ns(bits / rate.0),
        None => Time::from_ns(rate.transmission_time(bytes).ns()),
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
    fn nanoseconds_are_cut_and_whole_ones_stay() {
        let ns = |bytes| cut_transmission_time(bytes, Rate::from_gbps(10)).0 / 1000;
        // 1195.2, 43.2, 49.6 and 56 ns.
        assert_eq!([1494, 54, 62, 70].map(ns), [1195, 43, 49, 56]);
        let line = Line::new(Rate::from_gbps(10), Time::ZERO, 0).under(&Rules::ns3_3_35());
        assert_eq!(line.transmission_time(62), Time::from_ns(49));
        let slow = Line::new(Rate::from_mbps(100), Time::ZERO, 0).under(&Rules::ns3_3_35());
        assert_eq!(slow.transmission_time(1494), Time::from_ns(119_520));
    }

    #[test]
    fn truncated_times_are_those_of_the_authors_fixed_point() {
        let ns = |bytes, gbps| truncated_transmission_time(bytes, Rate::from_gbps(gbps)).ns();
        let sizes = [43, 60, 88, 1048, 1050, 1056, 1090, 1000];
        assert_eq!(sizes.map(|b| ns(b, 100)), [3, 4, 7, 83, 83, 84, 87, 79]);
        assert_eq!(sizes.map(|b| ns(b, 400)), [0, 1, 1, 20, 20, 21, 21, 19]);
    }
}
