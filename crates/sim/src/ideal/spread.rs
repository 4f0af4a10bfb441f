//! The minimum time of a flow whose packets may take several paths, in any order.
//!
//! All shortest paths have the same number of hops, and every packet crosses each hop once. Let the links of
//! hop i have the total rate C_i, let A_i be the earliest time at which a packet can begin to cross it, and
//! L_i the minimum time from the end of a packet's transmission there until the receiver has the whole
//! packet. With W bytes on the wire, no order of the packets and no choice of paths delivers the flow before
//!
//! > max over i of A_i + W / C_i + L_i
//!
//! where A_i and L_i are those of the fastest link of every hop. The same holds for the full packets alone,
//! and for each packet. A smaller last packet leaves its host after the others if they leave through one port
//! in order.
//!
//! If all paths are equal and no slower than the hosts' links, the bound is the time that a flow takes on one
//! of them, except for flows with fewer packets than the paths have hops, whose smaller last packet may
//! overtake others. If paths differ it is a lower bound.

use super::alone::{Arrival, reaches};
use crate::net::port::{Line, Rounding};
use crate::transport::Framing;
use crate::units::Time;

/// The links of one hop.
#[derive(Clone, Copy)]
pub struct Hop {
    /// Combines the highest rate and the lowest delay of the links; forwards once the header has arrived if
    /// switches cut through.
    pub best: Line,
    /// Combines the lowest rate and the highest delay of the links.
    pub slowest: Line,
    /// Total rate in bit/s.
    pub total: u64,
}

impl Hop {
    pub fn is_one_link(&self) -> bool {
        self.total == self.best.rate.0 && self.best.rate == self.slowest.rate
    }
}

/// The packets of a flow: full ones, and a last one that may be smaller.
#[derive(Clone, Copy)]
pub struct Load {
    full: u64,
    last: u64,
    packets: u64,
    /// The last packet leaves its host after the others.
    in_order: bool,
    /// Switches may forward a packet before it has arrived completely, and without waiting for its tail.
    overtakes_tails: bool,
}

impl Load {
    pub fn new(size: u64, framing: &Framing, in_order: bool, overtakes_tails: bool) -> Load {
        let packets = size.div_ceil(framing.payload).max(1);
        let last = framing.data_bytes(size - (packets - 1) * framing.payload);
        Load { full: framing.data_bytes(framing.payload), last, packets, in_order, overtakes_tails }
    }

    /// The sizes of the packets.
    pub fn sizes(&self) -> impl Iterator<Item = u64> + use<> {
        let full = (self.packets > 1).then_some(self.full);
        full.into_iter().chain(std::iter::once(self.last))
    }

    /// Earliest start of the last packet.
    fn last_leaves(&self, first: &Hop) -> Time {
        match self.in_order && first.is_one_link() {
            true => time(self.crossing(&first.best, first.total, false)),
            false => Time::ZERO,
        }
    }

    /// Time in picoseconds in which links with the total rate `total` transmit the full packets and, with
    /// `last_too`, the last one. `line`: the fastest of them.
    fn crossing(&self, line: &Line, total: u64, last_too: bool) -> i128 {
        const PICOBITS: u128 = 8_000_000_000_000;
        let full_packets = self.packets - 1;
        let last = if last_too { self.last } else { 0 };
        if total == line.rate.0 {
            let tx = |bytes| u128::from(line.transmission_time(bytes).0);
            let all = u128::from(full_packets).saturating_mul(tx(self.full));
            return signed(all.saturating_add(if last_too { tx(last) } else { 0 }));
        }
        let bytes = u128::from(full_packets) * u128::from(self.full) + u128::from(last);
        let mut work = bytes.saturating_mul(PICOBITS);
        if line.rounding != Rounding::Up {
            // Rounding shortens each transmission by less than a nanosecond and a rounding error.
            let cut = 1001 * u128::from(line.rate.0) * u128::from(self.packets);
            work = work.saturating_sub(cut);
        }
        signed(work / u128::from(total.max(1)))
    }
}

fn signed(picoseconds: u128) -> i128 {
    i128::from(u64::try_from(picoseconds).unwrap_or(u64::MAX))
}

fn time(picoseconds: i128) -> Time {
    u64::try_from(picoseconds.max(0)).map_or(Time::MAX, Time)
}

/// One packet on the fastest link of every hop.
struct Course {
    /// When it begins to cross each hop.
    starts: Vec<Time>,
    end: Time,
    bytes: u64,
}

impl Course {
    fn of(hops: &[Hop], bytes: u64, leaves: Time) -> Course {
        let mut packet = Arrival::at(leaves);
        let mut starts = Vec::with_capacity(hops.len());
        for hop in hops {
            let start = packet.earliest(&hop.best, bytes);
            packet = reaches(&hop.best, start, bytes);
            starts.push(start);
        }
        Course { starts, end: packet.tail, bytes }
    }

    /// Time from the end of its transmission over hop `at` until the receiver has the whole packet. It may be
    /// negative: if switches do not wait for the tail, a later and faster link finishes a packet before an
    /// earlier, slow one.
    fn rest(&self, hops: &[Hop], at: usize) -> i128 {
        let from_start = i128::from(self.end.0) - i128::from(self.starts[at].0);
        from_start - i128::from(hops[at].slowest.transmission_time(self.bytes).0)
    }
}

/// Delivery time of a flow whose packets may take any of the paths over `hops`.
pub fn delivery(hops: &[Hop], load: &Load) -> Time {
    let Some(first) = hops.first() else { return Time::ZERO };
    let leaves = load.last_leaves(first);
    let mut courses = vec![Course::of(hops, load.last, leaves)];
    if load.packets > 1 {
        courses.insert(0, Course::of(hops, load.full, Time::ZERO));
    }
    let mut min = courses.iter().map(|course| i128::from(course.end.0)).max().unwrap_or(0);
    for at in 0..hops.len() {
        min = min.max(load.through(hops, &courses, at, true));
        if load.packets > 1 {
            min = min.max(load.through(hops, &courses[..1], at, false));
        }
    }
    time(min)
}

impl Load {
    /// The bound on the delivery time of the packets of these kinds from the capacity of hop `at`.
    fn through(&self, hops: &[Hop], courses: &[Course], at: usize, last_too: bool) -> i128 {
        let start = courses.iter().map(|course| course.starts[at].0).min().unwrap_or(0);
        let rest = courses.iter().map(|course| course.rest(hops, at)).min().unwrap_or(0);
        let delays = || hops[at..].iter().map(|hop| i128::from(hop.best.delay.0)).sum();
        let rest = if self.overtakes_tails { rest } else { rest.max(delays()) };
        i128::from(start) + self.crossing(&hops[at].best, hops[at].total, last_too) + rest
    }
}
