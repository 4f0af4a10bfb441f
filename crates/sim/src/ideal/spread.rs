//! The minimum time of a flow whose packets may take several paths, in any order.
//!
//! All shortest paths have the same number of hops, and every packet crosses each hop once. Let the links of
//! hop i have the total rate C_i, let A_i be the earliest time at which a packet can begin to cross it, and
//! L_i the minimum time from the end of a packet's transmission there until the receiver has the whole
//! packet. With W bytes on the wire, no order of the packets and no choice of paths delivers the flow before
//!
//! > max over i of A_i + W / C_i + L_i
//!
//! where A_i and L_i are those of the fastest link of every hop. The same holds for the packets that leave first, up
//! to each change of size, and for each packet. A smaller last packet leaves its host after the others if they
//! leave through one port in order.
//!
//! If all paths are equal and no slower than the hosts' links, the bound is the time that a flow takes on one
//! of them, except for flows with fewer packets than the paths have hops, whose smaller last packet may
//! overtake others. If paths differ it is a lower bound.

use super::alone::{Arrival, reaches};
use crate::net::port::{Line, Rounding};
use crate::transport::{Framing, PacketRun};
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

/// The packets of a flow.
#[derive(Clone, Copy)]
pub struct Load {
    /// In the order in which they leave.
    runs: [PacketRun; 4],
    /// Packets leave their host in order.
    in_order: bool,
    /// Switches may forward a packet before it has arrived completely, and without waiting for its tail.
    overtakes_tails: bool,
}

impl Load {
    pub fn new(size: u64, framing: &Framing, in_order: bool, overtakes_tails: bool) -> Load {
        Load { runs: framing.runs(size), in_order, overtakes_tails }
    }

    /// Runs with packets; the numbers of runs up to each, itself included.
    fn filled(&self) -> impl Iterator<Item = (usize, PacketRun)> {
        let numbered = self.runs.into_iter().enumerate().map(|(at, run)| (at + 1, run));
        numbered.filter(|(_, run)| run.packets > 0)
    }

    /// The sizes of the packets.
    pub fn sizes(&self) -> impl Iterator<Item = u64> {
        self.filled().map(|(_, run)| run.bytes)
    }

    /// Earliest start of the packets after the first `runs` runs.
    fn leave(&self, first: &Hop, runs: usize) -> Time {
        match self.in_order && first.is_one_link() {
            true => time(self.crossing(&first.best, first.total, runs)),
            false => Time::ZERO,
        }
    }

    /// Time in picoseconds in which links with the total rate `total` transmit the packets of the first `runs` runs.
    /// `line`: the fastest of the links.
    fn crossing(&self, line: &Line, total: u64, runs: usize) -> i128 {
        const PICOBITS: u128 = 8_000_000_000_000;
        let runs = &self.runs[..runs];
        if total == line.rate.0 {
            let tx = |bytes| u128::from(line.transmission_time(bytes).0);
            let of = |run: &PacketRun| u128::from(run.packets).saturating_mul(tx(run.bytes));
            return signed(runs.iter().map(of).fold(0, u128::saturating_add));
        }
        let bytes: u128 = runs.iter().map(|run| u128::from(run.packets) * u128::from(run.bytes)).sum();
        let mut work = bytes.saturating_mul(PICOBITS);
        if line.rounding != Rounding::Up {
            // Rounding shortens each transmission by less than a nanosecond and a rounding error.
            let packets: u128 = self.runs.iter().map(|run| u128::from(run.packets)).sum();
            let cut = 1001 * u128::from(line.rate.0) * packets;
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
    let course = |(runs, run): (usize, PacketRun)| Course::of(hops, run.bytes, load.leave(first, runs - 1));
    let courses: Vec<Course> = load.filled().map(course).collect();
    let mut min = courses.iter().map(|course| i128::from(course.end.0)).max().unwrap_or(0);
    for at in 0..hops.len() {
        for (number, (runs, _)) in load.filled().enumerate() {
            min = min.max(load.through(hops, &courses[..=number], at, runs));
        }
    }
    time(min)
}

impl Load {
    /// The bound on the delivery time of the packets of the first `runs` runs from the capacity of hop `at`.
    fn through(&self, hops: &[Hop], courses: &[Course], at: usize, runs: usize) -> i128 {
        let start = courses.iter().map(|course| course.starts[at].0).min().unwrap_or(0);
        let rest = courses.iter().map(|course| course.rest(hops, at)).min().unwrap_or(0);
        let delays = || hops[at..].iter().map(|hop| i128::from(hop.best.delay.0)).sum();
        let rest = if self.overtakes_tails { rest } else { rest.max(delays()) };
        i128::from(start) + self.crossing(&hops[at].best, hops[at].total, runs) + rest
    }
}
