//! The least time of a flow whose packets may take several paths, in any order.
//!
//! All shortest paths have the same number of hops, and every packet crosses each hop once. Let hop i have links that carry
//! C_i together, A_i be the least time after which a packet can begin to cross it, and L_i the least time from the end of
//! a packet's transmission there until the receiver has all of it. With W bytes on the wire, no order of the packets and no choice of
//! paths delivers the flow before
//!
//! > max over i of A_i + W / C_i + L_i
//!
//! and A_i and L_i are those of the fastest link of every hop. The same holds of the full packets alone, and of each packet. A smaller
//! last packet leaves its host behind the others, where they leave by one port in order.
//!
//! On paths that are all alike and no slower than the hosts' links it is what a flow takes on one of them, but for flows of fewer
//! packets than the paths have hops, whose smaller last packet may pass others; where paths differ it is a bound.

use super::alone::{Arrival, reaches};
use crate::net::port::{Line, Rounding};
use crate::transport::Framing;
use crate::units::Time;

/// The links of one hop.
#[derive(Clone, Copy)]
pub struct Hop {
    /// As fast and as short as any of them; forwards as soon as the header has come, if switches cut through.
    pub best: Line,
    /// As slow as any of them.
    pub slowest: Line,
    /// Bits per second of all together.
    pub total: u64,
}

impl Hop {
    pub fn is_one_link(&self) -> bool {
        self.total == self.best.rate.0 && self.best.rate == self.slowest.rate
    }
}

/// What crosses: full packets, and a last one that may be smaller.
#[derive(Clone, Copy)]
pub struct Load {
    full: u64,
    last: u64,
    packets: u64,
    /// The last packet leaves its host behind the others.
    in_order: bool,
    /// Switches forward packets before all of them has come, and without waiting for the rest.
    overtakes_tails: bool,
}

impl Load {
    pub fn new(size: u64, framing: &Framing, in_order: bool, overtakes_tails: bool) -> Load {
        let packets = size.div_ceil(framing.payload).max(1);
        let last = framing.data_bytes(size - (packets - 1) * framing.payload);
        Load { full: framing.data_bytes(framing.payload), last, packets, in_order, overtakes_tails }
    }

    /// The sizes of its packets.
    pub fn sizes(&self) -> impl Iterator<Item = u64> + use<> {
        let full = (self.packets > 1).then_some(self.full);
        full.into_iter().chain(std::iter::once(self.last))
    }

    /// When the last packet can leave at the soonest.
    fn last_leaves(&self, first: &Hop) -> Time {
        match self.in_order && first.is_one_link() {
            true => time(self.crossing(&first.best, first.total, false)),
            false => Time::ZERO,
        }
    }

    /// Picoseconds in which links that carry `total` together are done with the full packets and, where it is asked for, the last.
    /// `line` is the fastest of them.
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
            // Each transmission is cut by less than a nanosecond and a rounding error.
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

    /// From the end of its transmission over hop `at` until the receiver has all of it. May be less than nothing: where switches do
    /// not wait for the tail, a later and faster link is done with a packet before a slow one is.
    fn rest(&self, hops: &[Hop], at: usize) -> i128 {
        let from_start = i128::from(self.end.0) - i128::from(self.starts[at].0);
        from_start - i128::from(hops[at].slowest.transmission_time(self.bytes).0)
    }
}

/// Until the receiver has a flow whose packets may take any of the paths over `hops`.
pub fn delivery(hops: &[Hop], load: &Load) -> Time {
    let Some(first) = hops.first() else { return Time::ZERO };
    let leaves = load.last_leaves(first);
    let mut courses = vec![Course::of(hops, load.last, leaves)];
    if load.packets > 1 {
        courses.insert(0, Course::of(hops, load.full, Time::ZERO));
    }
    let mut least = courses.iter().map(|course| i128::from(course.end.0)).max().unwrap_or(0);
    for at in 0..hops.len() {
        least = least.max(load.through(hops, &courses, at, true));
        if load.packets > 1 {
            least = least.max(load.through(hops, &courses[..1], at, false));
        }
    }
    time(least)
}

impl Load {
    /// Until the receiver has the packets of these kinds, by what hop `at` carries.
    fn through(&self, hops: &[Hop], courses: &[Course], at: usize, last_too: bool) -> i128 {
        let start = courses.iter().map(|course| course.starts[at].0).min().unwrap_or(0);
        let rest = courses.iter().map(|course| course.rest(hops, at)).min().unwrap_or(0);
        let delays = || hops[at..].iter().map(|hop| i128::from(hop.best.delay.0)).sum();
        let rest = if self.overtakes_tails { rest } else { rest.max(delays()) };
        i128::from(start) + self.crossing(&hops[at].best, hops[at].total, last_too) + rest
    }
}
