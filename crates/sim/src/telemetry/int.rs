//! In-band network telemetry (INT): every switch on the path writes a record into the data packet.
//!
//! A record is 64 bits on the wire: rate code, 24 bits of time in ns, 20 bits of bytes sent, 17 bits of queue
//! length, the last two in units that grow with the NIC's rate. Both counters wrap, and differences undo the
//! wrap. The rate code is an index into a table of the network's rates; here the record contains the rate
//! itself, in kb/s. A 16-bit hop count follows the records; the 12-bit path id (XOR of the switches' ids)
//! shares its bits.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Fig 7; field widths as in the
//! authors' simulator, which has no path id.

use super::packet_digest::{PLACES, PacketDigest};
use crate::doc::SchemeDoc;
use crate::engine::random::mix64;
use crate::engine::segments::Segments;
use crate::engine::shared_memory::Taken;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "int",
    title: "every switch writes time, bytes sent, queue and rate into the packet (INT)",
    source: "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator",
    validation: "Records by hand at every hop; HPCC, which reads them, equals its authors' simulator to the nanosecond.",
    ..SchemeDoc::NONE
};

/// One hop's record, quantised as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IntRecord {
    /// Departure time in [`IntLayout::time_unit`], modulo 2^24.
    pub time: u32,
    /// Bytes the port had sent before this packet, in [`IntLayout::sent_unit`], modulo 2^20.
    pub sent: u32,
    /// Bytes left in the port's queues after this packet, in [`IntLayout::queue_unit`], 17 bits.
    pub queue: u32,
    /// Rate of the port in kb/s.
    pub rate_kbps: u32,
}

/// Units of the quantised fields, equal in the whole network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntLayout {
    pub sent_unit: u32,
    pub queue_unit: u32,
    /// In ns: 1, or the factor of a slower time (`[scale]`), in which a round trip would not fit 24 bits of ns.
    pub time_unit: u32,
    /// `sent` counts the bytes that came to the port so far, this packet included ([`Rules::int_counts_arrivals`]).
    ///
    /// [`Rules::int_counts_arrivals`]: crate::compat::Rules::int_counts_arrivals
    pub counts_arrivals: bool,
}

impl<'a> IntView<'a> {
    /// A view of a stack that [`IntStacks::copy_out`] copied; none if there are no places.
    pub fn of(places: &'a [IntRecord]) -> Option<IntView<'a>> {
        let (head, records) = places.split_first()?;
        Some(IntView { hops: head.time, records, path_id: head.sent as u16 })
    }
}

impl IntLayout {
    /// Units for NICs of this rate, in a time that was made slower by a factor: 128 B and 80 B at 25 Gb/s before that, and
    /// proportionally more above.
    pub fn for_nic(rate: crate::units::Rate, slower: u32) -> IntLayout {
        let multiple = (rate.0.saturating_mul(slower.into()) / 25_000_000_000).max(1) as u32;
        let fine = IntLayout::FINE;
        IntLayout {
            sent_unit: fine.sent_unit * multiple,
            queue_unit: fine.queue_unit * multiple,
            time_unit: slower.max(1),
            ..fine
        }
    }

    /// The finest units.
    pub const FINE: IntLayout =
        IntLayout { sent_unit: 128, queue_unit: 80, time_unit: 1, counts_arrivals: false };
}

impl IntRecord {
    /// A place of the slab as four 32-bit words: for data other than INT records that uses the same places.
    #[inline(always)]
    pub const fn words(&self) -> [u32; 4] {
        [self.time, self.sent, self.queue, self.rate_kbps]
    }
    #[inline(always)]
    pub fn words_mut(&mut self) -> [&mut u32; 4] {
        [&mut self.time, &mut self.sent, &mut self.queue, &mut self.rate_kbps]
    }
    #[inline(always)]
    pub const fn from_words([time, sent, queue, rate_kbps]: [u32; 4]) -> IntRecord {
        IntRecord { time, sent, queue, rate_kbps }
    }

    pub const TIME_BITS: u32 = 24;
    pub const SENT_BITS: u32 = 20;
    pub const QUEUE_BITS: u32 = 17;
    /// Bytes of a record on the wire, and of the counter after the records.
    pub const WIRE_BYTES: u32 = 8;
    pub const COUNT_BYTES: u32 = 2;

    /// The record of a hop by absolute numbers, which need not be the simulator's: ns, bytes sent, bytes that wait.
    pub fn of(ns: u64, sent: u64, queue: u64, rate_kbps: u32, layout: IntLayout) -> IntRecord {
        let field =
            |value: u64, unit: u32, bits: u32| ((value / u64::from(unit.max(1))) & ((1 << bits) - 1)) as u32;
        IntRecord {
            time: field(ns, layout.time_unit, Self::TIME_BITS),
            sent: field(sent, layout.sent_unit, Self::SENT_BITS),
            queue: field(queue, layout.queue_unit, Self::QUEUE_BITS),
            rate_kbps,
        }
    }

    /// Nanoseconds from `earlier` to this record of the same hop.
    pub fn ns_since(&self, earlier: &IntRecord, layout: IntLayout) -> u64 {
        let units = self.time.wrapping_sub(earlier.time) & ((1 << Self::TIME_BITS) - 1);
        u64::from(units) * u64::from(layout.time_unit)
    }

    /// Bytes that the port sent between the two records.
    pub fn bytes_since(&self, earlier: &IntRecord, layout: IntLayout) -> u64 {
        let counted = self.counted_since(earlier, layout);
        match layout.counts_arrivals {
            false => counted,
            true => counted.saturating_add_signed(-self.growth_since(earlier, layout)),
        }
    }

    /// Bytes that came to the port between the two records: those that it sent, and those by which its queue grew.
    pub fn arrived_since(&self, earlier: &IntRecord, layout: IntLayout) -> u64 {
        let counted = self.counted_since(earlier, layout);
        match layout.counts_arrivals {
            false => counted.saturating_add_signed(self.growth_since(earlier, layout)),
            true => counted,
        }
    }

    fn counted_since(&self, earlier: &IntRecord, layout: IntLayout) -> u64 {
        let units = self.sent.wrapping_sub(earlier.sent) & ((1 << Self::SENT_BITS) - 1);
        u64::from(units) * u64::from(layout.sent_unit)
    }

    fn growth_since(&self, earlier: &IntRecord, layout: IntLayout) -> i64 {
        self.queue_bytes(layout) as i64 - earlier.queue_bytes(layout) as i64
    }

    pub fn queue_bytes(&self, layout: IntLayout) -> u64 {
        u64::from(self.queue) * u64::from(layout.queue_unit)
    }
}

/// What an acknowledgement returns: the records of the path and its id.
#[derive(Debug, Clone, Copy)]
pub struct IntView<'a> {
    /// Number of hops that wrote a record. If it exceeds `records.len()`, records were overwritten and are
    /// invalid.
    pub hops: u32,
    pub records: &'a [IntRecord],
    pub path_id: u16,
}

/// The records that packets carry, by index. Places are reused. The memory is shared with the other
/// partitions of a run, as that of the packets is.
pub struct IntStacks {
    max_hops: usize,
    /// The stacks carry digests.
    digests: bool,
    /// Each stack is its head, stored as a record, followed by its records, so that what one hop accesses is
    /// contiguous.
    records: Segments<IntRecord>,
    free: Vec<u32>,
    live: usize,
    layout: IntLayout,
    /// Set if bytes sent are counted, in a unit that is a power of two.
    sent_shift: Option<u32>,
    /// 2^64 over the unit of queue lengths, rounded up: multiplying by it and taking the high half divides
    /// 32-bit numbers exactly.
    queue_reciprocal: u64,
}

/// Number of hops that have written into a stack, and the id of their path.
#[derive(Debug, Clone, Copy, Default)]
pub struct StackHead {
    hops: u32,
    path_id: u32,
}

impl IntStacks {
    /// Stacks with one digest each ([`PacketDigest`]).
    pub fn of_digests(layout: IntLayout) -> IntStacks {
        let mut stacks = IntStacks::new(PLACES - 1, layout);
        stacks.digests = true;
        stacks
    }

    /// Stacks with room for `max_hops` records each.
    pub fn new(max_hops: usize, layout: IntLayout) -> IntStacks {
        let unit = layout.sent_unit;
        IntStacks {
            max_hops,
            digests: false,
            records: Segments::new(places_of(max_hops)),
            free: Vec::new(),
            live: 0,
            layout,
            sent_shift: (unit.is_power_of_two() && !layout.counts_arrivals).then(|| unit.trailing_zeros()),
            queue_reciprocal: (u64::MAX / u64::from(layout.queue_unit.max(1))).saturating_add(1),
        }
    }

    /// The stacks of one more partition, with the same memory; the partition is not at work.
    pub fn another(&self) -> IntStacks {
        let mut stacks = IntStacks::new(self.max_hops, self.layout);
        (stacks.records, stacks.digests) = (self.records.another(), self.digests);
        stacks
    }

    /// The partition begins to work, perhaps with stacks that came from others.
    pub fn begin_turn(&mut self) {
        self.records.begin_turn();
    }

    /// Others may take free places of which there are too many.
    pub fn end_turn(&mut self) {
        let spare = self.free.len().saturating_sub(2 * self.live);
        if spare > ENOUGH_FREE && self.records.lacks_spare() {
            self.records.give_back(self.free.split_off(self.free.len() - spare / 2));
        }
    }

    pub fn layout(&self) -> IntLayout {
        self.layout
    }

    /// Memory of all stacks that were taken for this partition.
    pub fn bytes(&self) -> usize {
        self.records.bytes()
    }

    /// Prefetches a stack into the cache: its head and the cache line after it.
    #[inline(always)]
    pub fn prefetch(&self, id: u32) {
        self.records.prefetch(id, 2);
    }

    /// Returns an empty stack.
    #[inline]
    pub fn insert(&mut self) -> u32 {
        self.live += 1;
        let id = self.free.pop().unwrap_or_else(|| self.grow());
        self.set_head(id, StackHead::default());
        id
    }

    /// A free place, where there is none.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        match self.records.take() {
            Taken::One(place) => {
                self.records.fill(place, IntRecord::default());
                place
            }
            Taken::Spare(mut places) => {
                let first = places.pop();
                self.free = places;
                first.unwrap_or_else(|| self.grow())
            }
        }
    }

    /// A stack leaves for another partition, with its place.
    #[inline]
    pub fn hand_over(&mut self) {
        self.live -= 1;
    }

    /// This number of stacks comes from another partition, with their places.
    pub fn receive(&mut self, stacks: usize) {
        self.live += stacks;
    }

    fn head(&self, id: u32) -> StackHead {
        let head = self.records.elements(id, 1)[0];
        StackHead { hops: head.time, path_id: head.sent }
    }

    /// Stores six numbers for a packet instead of records: SACK blocks. Two places are used, whatever the
    /// stacks of the run are for.
    #[inline]
    pub fn carry_numbers(&mut self, id: u32, numbers: [u32; 6]) {
        let [a, b, c, d, e, f] = numbers;
        // The head contains the number of records in use, here 1, and two of the numbers.
        let words = [[1, 0, a, b], [c, d, e, f]].map(IntRecord::from_words);
        self.records.elements_mut(id, 2).copy_from_slice(&words);
    }

    /// The numbers stored by [`IntStacks::carry_numbers`].
    #[inline]
    pub fn numbers(&self, id: u32) -> [u32; 6] {
        let places = self.records.elements(id, 2);
        numbers_in([places[0], places[1]])
    }

    /// The digest in a stack, in a run with digests.
    #[inline(always)]
    pub fn packet_digest(&mut self, id: u32) -> PacketDigest<'_> {
        debug_assert!(self.digests);
        PacketDigest::of(self.records.elements_mut(id, PLACES))
    }

    fn set_head(&mut self, id: u32, head: StackHead) {
        let place = &mut self.records.elements_mut(id, 1)[0];
        (place.time, place.sent) = (head.hops, head.path_id);
    }

    /// Appends a stack, its head first, to a list of records.
    #[inline]
    pub fn copy_out(&self, id: u32, to: &mut Vec<IntRecord>) {
        let used = self.places_in_use(&self.records.elements(id, 1)[0]);
        to.extend_from_slice(self.records.elements(id, used));
    }

    /// A stack with what [`IntStacks::copy_out`] copied out of one, as far as it has places for it.
    pub fn copy_in(&mut self, places: &[IntRecord]) -> u32 {
        let id = self.insert();
        let kept = places.len().min(self.max_hops + 1);
        self.records.elements_mut(id, kept).copy_from_slice(&places[..kept]);
        id
    }

    /// Number of places in use, including the head.
    #[inline]
    fn places_in_use(&self, head: &IntRecord) -> usize {
        if self.digests {
            return PacketDigest::places_in_use(head).min(PLACES);
        }
        (head.time as usize).min(self.max_hops) + 1
    }

    #[inline]
    pub fn remove(&mut self, id: u32) {
        self.live -= 1;
        self.free.push(id);
    }

    /// Writes the record of one hop. `switch` is XORed into the path id (12 bits). If a packet has no place
    /// left, records overwrite the oldest, and the count tells the receiver that they are invalid.
    #[inline(always)]
    pub fn push(&mut self, id: u32, switch: u16, hop: HopState) {
        const TIME: u64 = (1 << IntRecord::TIME_BITS) - 1;
        const SENT: u64 = (1 << IntRecord::SENT_BITS) - 1;
        const QUEUE: u32 = (1 << IntRecord::QUEUE_BITS) - 1;
        let time = self.time_of(hop.now);
        let stack = self.records.elements_mut(id, self.max_hops + 1);
        let hops = stack[0].time as usize;
        let place = if hops < self.max_hops { hops } else { hops % self.max_hops };
        stack[0].time += 1;
        stack[0].sent ^= u32::from(switch & 0xfff);
        // The unit of bytes sent is a power of two for every NIC rate in the authors' table.
        let sent = match self.sent_shift {
            Some(shift) => hop.bytes_sent >> shift,
            None if self.layout.counts_arrivals => {
                (hop.bytes_sent + u64::from(hop.size) + hop.queue_bytes) / u64::from(self.layout.sent_unit)
            }
            None => hop.bytes_sent / u64::from(self.layout.sent_unit),
        };
        let queue = (u128::from(hop.queue_bytes as u32) * u128::from(self.queue_reciprocal)) >> 64;
        stack[place + 1] = IntRecord {
            time: (time & TIME) as u32,
            sent: (sent & SENT) as u32,
            queue: queue as u32 & QUEUE,
            rate_kbps: hop.rate_kbps,
        };
    }

    #[inline(always)]
    fn time_of(&self, now: crate::units::Time) -> u64 {
        match self.layout.time_unit {
            0 | 1 => now.ns(),
            unit => now.ns() / u64::from(unit),
        }
    }

    #[inline]
    pub fn view(&self, id: u32) -> IntView<'_> {
        let head = self.head(id);
        let records = &self.records.elements(id, (head.hops as usize).min(self.max_hops) + 1)[1..];
        IntView { hops: head.hops, records, path_id: head.path_id as u16 }
    }
}

/// What a switch XORs into the path ids of packets; never 0.
pub fn path_id(node: u32) -> u16 {
    (mix64(u64::from(node)) % 0xfff + 1) as u16
}

/// Records in a cache line.
const LINE: usize = 4;

/// Places from one stack to the next: whole cache lines, where stacks are not much smaller, so that no line
/// is in stacks of two partitions, and a stack in as few as possible.
pub const fn places_of(max_hops: usize) -> usize {
    if max_hops < LINE { max_hops + 1 } else { (max_hops + 1).next_multiple_of(LINE) }
}

/// Free stacks that a partition keeps in any case.
const ENOUGH_FREE: usize = 4096;

/// The numbers that [`IntStacks::carry_numbers`] stored in these two places.
pub fn numbers_in([first, second]: [IntRecord; 2]) -> [u32; 6] {
    let ([_, _, a, b], [c, d, e, f]) = (first.words(), second.words());
    [a, b, c, d, e, f]
}

/// The state of a port when a packet leaves it.
#[derive(Clone, Copy)]
pub struct HopState {
    pub now: crate::units::Time,
    /// Bytes sent by the port before this packet.
    pub bytes_sent: u64,
    /// Bytes in all its queues, without this packet.
    pub queue_bytes: u64,
    pub rate_kbps: u32,
    /// Bytes of this packet.
    pub size: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_undo_the_wrap_of_both_counters() {
        let layout = IntLayout::for_nic(crate::units::Rate::from_gbps(100), 1);
        assert_eq!(layout, IntLayout { sent_unit: 512, queue_unit: 320, ..IntLayout::FINE });
        let old = IntRecord { time: (1 << 24) - 10, sent: (1 << 20) - 1, queue: 3, rate_kbps: 1 };
        let new = IntRecord { time: 90, sent: 1, queue: 0, rate_kbps: 1 };
        assert_eq!(new.ns_since(&old, layout), 100);
        assert_eq!(new.bytes_since(&old, layout), 2 * 512);
        assert_eq!(old.queue_bytes(layout), 960);
    }

    #[test]
    fn a_hop_writes_the_record_of_its_absolute_numbers() {
        use crate::units::{Rate, Time};
        for (slower, nic) in
            [(1, Rate::from_gbps(25)), (1, Rate::from_gbps(100)), (500, Rate::from_mbps(200))]
        {
            let layout = IntLayout::for_nic(nic, slower);
            assert_eq!(layout.queue_unit, if nic == Rate::from_gbps(25) { 80 } else { 320 });
            let mut stacks = IntStacks::new(3, layout);
            stacks.begin_turn();
            let id = stacks.insert();
            let at = [
                (7u64, 0u64, 0u64),
                (16_777_300, 134_217_800, 123_456),
                (90_000_000_123, 5_000_000_000, 9_999_999),
            ];
            for (ns, bytes_sent, queue_bytes) in at {
                let hop = HopState { now: Time::from_ns(ns), bytes_sent, queue_bytes, rate_kbps: 7, size: 1 };
                stacks.push(id, path_id(2), hop);
            }
            let records: Vec<IntRecord> =
                at.iter().map(|&(ns, sent, queue)| IntRecord::of(ns, sent, queue, 7, layout)).collect();
            assert_eq!(stacks.view(id).records, records);
            let ns = records[2].ns_since(&records[1], layout);
            let span = u64::from(slower) << IntRecord::TIME_BITS;
            assert!(ns.abs_diff((90_000_000_123 - 16_777_300) % span) < u64::from(slower).max(1));
        }
    }
}
