//! Completion of a flow alone on one path, to the picosecond: its packets leave back to back, every hop
//! forwards them (store-and-forward or cut-through), and its acknowledgements return back to back.

use crate::net::port::Line;
use crate::transport::{Framing, PacketRun};
use crate::units::Time;

/// The packets of `size` payload bytes as they arrive at the receiver.
pub fn delivery<'l>(path: impl Iterator<Item = &'l Line>, framing: &Framing, size: u64) -> Train {
    let train = Train(framing.runs(size).map(|run| Run { of: run, ..Run::default() }));
    path.fold(train, |train, line| train.cross(line))
}

/// The time at which the last byte has been acknowledged by a receiver that got a train of packets. `back`:
/// the path of acknowledgements.
pub fn acknowledged<'l>(train: Train, back: impl Iterator<Item = &'l Line>, framing: &Framing) -> Time {
    // A packet is acknowledged when it has arrived completely; acknowledgements, too, follow each other back
    // to back.
    let ack = |run: Run| Run {
        of: PacketRun { packets: run.of.packets, bytes: framing.ack },
        first: run.first.whole(),
        last: run.last.whole(),
    };
    match framing.acks_each {
        true => back.fold(Train(train.0.map(ack)), |acks, line| acks.cross(line)).end(),
        false => back.fold(Arrival::at(train.end()), |last, line| crosses(line, last, framing.ack)).tail,
    }
}

/// Latency of one packet.
pub fn lone<'l>(path: impl Iterator<Item = &'l Line>, bytes: u64) -> Time {
    path.fold(Arrival::default(), |packet, line| crosses(line, packet, bytes)).tail
}

/// A packet at the far end of a link that nothing else uses.
fn crosses(line: &Line, packet: Arrival, bytes: u64) -> Arrival {
    reaches(line, packet.earliest(line, bytes), bytes)
}

/// The packets of a flow, run by run, as they arrive at a hop.
#[derive(Clone, Copy)]
pub struct Train([Run; 4]);

/// Equal packets as they arrive at a hop. Between the first and the last one the spacing does not decrease: each
/// leaves a link when it has arrived or when those before it have left, whichever is later.
#[derive(Clone, Copy, Default)]
struct Run {
    of: PacketRun,
    first: Arrival,
    last: Arrival,
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
    /// When the last packet has arrived completely.
    pub fn end(&self) -> Time {
        self.0.iter().filter(|run| run.of.packets > 0).map(|run| run.last.tail).max().unwrap_or(Time::ZERO)
    }

    /// The train at the far end of a link.
    fn cross(mut self, line: &Line) -> Train {
        // When the packets before have left.
        let mut free = Time::ZERO;
        for run in self.0.iter_mut().filter(|run| run.of.packets > 0) {
            let PacketRun { packets, bytes } = run.of;
            let tx = line.transmission_time(bytes);
            let first = run.first.earliest(line, bytes).max(free);
            let together = Time(tx.0.saturating_mul(packets - 1));
            let last = match packets {
                1 => first,
                _ => run.last.earliest(line, bytes).max(first.saturating_add(together)),
            };
            free = last.saturating_add(tx);
            (run.first, run.last) = (reaches(line, first, bytes), reaches(line, last, bytes));
        }
        self
    }
}

/// For a packet whose transmission begins at `start`: when the next hop may forward it, and when it has
/// arrived completely.
pub fn reaches(line: &Line, start: Time, bytes: u64) -> Arrival {
    let (whole, to_head) = line.times(bytes);
    let after = |time| start.saturating_add(time).saturating_add(line.delay);
    Arrival { head: after(to_head), tail: after(whole) }
}
