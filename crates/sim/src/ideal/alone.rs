//! Completion of a flow alone on one path, to the picosecond: its packets leave back to back, every hop
//! forwards them (store-and-forward or cut-through), and its acknowledgements return back to back.

use crate::net::port::Line;
use crate::transport::Framing;
use crate::units::Time;

/// The packets of `size` payload bytes as they arrive at the receiver.
pub fn delivery<'l>(path: impl Iterator<Item = &'l Line>, framing: &Framing, size: u64) -> Train {
    let packets = size.div_ceil(framing.payload).max(1);
    let full = framing.data_bytes(framing.payload);
    let last = framing.data_bytes(size - (packets - 1) * framing.payload);
    let train = Train { full_packets: packets - 1, ..Train::default() };
    path.fold(train, |train, line| train.cross(line, full, last))
}

/// The time at which the last byte has been acknowledged by a receiver that got a train of packets. `back`:
/// the path of acknowledgements.
pub fn acknowledged<'l>(train: Train, back: impl Iterator<Item = &'l Line>, framing: &Framing) -> Time {
    // A packet is acknowledged when it has arrived completely; acknowledgements, too, follow each other back
    // to back.
    let full_packets = if framing.acks_each { train.full_packets } else { 0 };
    let acks = Train { first: train.first.whole(), last: train.last.whole(), full_packets, ..train };
    let ack = framing.ack;
    back.fold(acks, |acks, line| acks.cross(line, ack, ack)).last.tail
}

/// Latency of one packet.
pub fn lone<'l>(path: impl Iterator<Item = &'l Line>, bytes: u64) -> Time {
    let cross = |packet: Arrival, line: &Line| reaches(line, packet.earliest(line, bytes), bytes);
    path.fold(Arrival::default(), cross).tail
}

/// Equal packets, and a last one that may be smaller, as they arrive at a hop. The equal ones have a constant
/// spacing: that of the slowest hop so far.
#[derive(Clone, Copy, Default)]
pub struct Train {
    full_packets: u64,
    first: Arrival,
    pace: Time,
    pub last: Arrival,
}

/// When a packet may be forwarded, and when it has arrived completely.
#[derive(Clone, Copy, Default)]
pub struct Arrival {
    head: Time,
    pub tail: Time,
}

impl Arrival {
    /// The arrival of a packet that is complete at this time.
    pub fn at(time: Time) -> Arrival {
        Arrival { head: time, tail: time }
    }

    fn whole(self) -> Arrival {
        Arrival { head: self.tail, ..self }
    }

    /// The earliest time at which the next hop can start to send the packet: not before its header has
    /// arrived, and not so early that its end would leave before it has arrived.
    pub fn earliest(self, line: &Line, bytes: u64) -> Time {
        match line.ideal {
            true => self.head,
            false => self.head.max(self.tail.saturating_sub(line.transmission_time(bytes))),
        }
    }
}

impl Train {
    /// The train at the far end of a link.
    fn cross(self, line: &Line, full: u64, last: u64) -> Train {
        let tx = |bytes| line.transmission_time(bytes);
        let mut start = self.last.earliest(line, last);
        let mut next = Train { pace: self.pace.max(tx(full)), ..self };
        if self.full_packets > 0 {
            let first = self.first.earliest(line, full);
            let last_sent = first
                .saturating_add(Time(next.pace.0.saturating_mul(self.full_packets - 1)))
                .saturating_add(tx(full));
            start = start.max(last_sent);
            next.first = reaches(line, first, full);
        }
        next.last = reaches(line, start, last);
        next
    }
}

/// For a packet whose transmission begins at `start`: when the next hop may forward it, and when it has
/// arrived completely.
pub fn reaches(line: &Line, start: Time, bytes: u64) -> Arrival {
    let (whole, to_head) = line.times(bytes);
    let after = |time| start.saturating_add(time).saturating_add(line.delay);
    Arrival { head: after(to_head), tail: after(whole) }
}
