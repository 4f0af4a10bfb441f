//! In-band network telemetry (INT): every switch on the path writes a record into the data packet.
//!
//! A record is 64 bits on the wire: rate code, 24 bits of time in ns, 20 bits of bytes sent, 17 bits of queue
//! length, the last two in units that grow with the NIC's rate. Time and bytes sent wrap, and differences
//! undo one wrap, so that they hold for [`IntLayout::comparable`]; a longer queue than the field holds is
//! written as the largest one. The rate code is an index into a table of the network's rates; here the record
//! contains the rate itself, in kb/s. A 16-bit hop count follows the records; the 12-bit path id (XOR of the
//! switches' ids) shares its bits.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Fig 7; field widths as in the
//! authors' simulator, which has no path id.

use crate::doc::SchemeDoc;
use crate::engine::random::mix64;
use crate::engine::shared_memory::Plain;
use crate::units::{Rate, Time};

pub const DOC: SchemeDoc = SchemeDoc {
    name: "int",
    title: "every switch writes time, bytes sent, queue and rate into the packet (INT)",
    source: "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator",
    validation: "Records by hand at every hop; HPCC, which reads them, equals its authors' simulator to the nanosecond.",
    ..SchemeDoc::NONE
};

/// One hop's record, quantised as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct IntRecord {
    /// Departure time in [`IntLayout::time_unit`], modulo 2^24.
    pub time: u32,
    /// Bytes the port had sent before this packet, in [`IntLayout::sent_unit`], modulo 2^20.
    pub sent: u32,
    /// Bytes left in the port's queues after this packet, in [`IntLayout::queue_unit`], 17 bits; the largest
    /// number stands for all larger ones ([`IntLayout::wraps_queue`]).
    pub queue: u32,
    /// Rate of the port in kb/s.
    pub rate_kbps: u32,
}

// SAFETY: four 32-bit numbers.
unsafe impl Plain for IntRecord {}

/// Units of the quantised fields, equal in the whole network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntLayout {
    pub sent_unit: u32,
    pub queue_unit: u32,
    /// In ns: 1, or the factor of a slower time (`[scale]`), in which a round trip would not fit 24 bits of
    /// ns.
    pub time_unit: u32,
    /// `sent` counts the bytes that came to the port so far, this packet included
    /// ([`Rules::int_counts_arrivals`]).
    ///
    /// [`Rules::int_counts_arrivals`]: crate::compat::Rules::int_counts_arrivals
    pub counts_arrivals: bool,
    /// A queue beyond 17 bits is written modulo 2^17 ([`Rules::wraps_queue`]).
    ///
    /// [`Rules::wraps_queue`]: crate::compat::Rules::wraps_queue
    pub wraps_queue: bool,
    /// Time between two acknowledgements up to which their records may be compared: half a round of the
    /// counter of time, or of bytes at the fastest port. The other half allows for queues of different
    /// length. Without end under [`Rules::undated_int`].
    ///
    /// [`Rules::undated_int`]: crate::compat::Rules::undated_int
    pub comparable: Time,
}

impl<'a> IntView<'a> {
    /// A view of a head and its records; none if there are no places.
    pub fn of(places: &'a [IntRecord]) -> Option<IntView<'a>> {
        let (head, records) = places.split_first()?;
        Some(IntView { hops: head.time, records, path_id: head.sent as u16 })
    }
}

impl IntLayout {
    /// Units for NICs of this rate, in a time that was made slower by a factor: 128 B and 80 B at 25 Gb/s
    /// before that, and proportionally more above, but at most half of a full packet of `packet` bytes: every
    /// packet moves a counter then.
    pub fn for_nic(rate: Rate, slower: u32, packet: Option<u64>) -> IntLayout {
        let fine = IntLayout::FINE;
        let bound = packet.map_or(u64::MAX, |bytes| bytes / 2 / u64::from(fine.sent_unit));
        let multiple = (rate.0.saturating_mul(slower.into()) / 25_000_000_000).min(bound).max(1) as u32;
        IntLayout {
            sent_unit: fine.sent_unit * multiple,
            queue_unit: fine.queue_unit * multiple,
            time_unit: slower.max(1),
            ..fine
        }
    }

    /// The same in a network whose fastest port has this rate.
    pub fn up_to(self, fastest: Rate) -> IntLayout {
        let unit = Time::from_ns(self.time_unit.into());
        let time = Time(unit.0.saturating_mul(1 << (IntRecord::TIME_BITS - 1)));
        let bytes = u64::from(self.sent_unit) << (IntRecord::SENT_BITS - 1);
        IntLayout { comparable: time.min(fastest.transmission_time(bytes)), ..self }
    }

    /// The finest units.
    pub const FINE: IntLayout = IntLayout {
        sent_unit: 128,
        queue_unit: 80,
        time_unit: 1,
        counts_arrivals: false,
        wraps_queue: false,
        comparable: Time::from_ns(1 << (IntRecord::TIME_BITS - 1)),
    };

    /// The longest queue that a record states; longer ones are written as this, or modulo 2^17 units.
    pub const fn longest_queue(&self) -> u64 {
        IntRecord::LONGEST_QUEUE as u64 * self.queue_unit as u64
    }

    /// The largest number of units that is not lowered to [`IntRecord::LONGEST_QUEUE`].
    const fn queue_limit(&self) -> u32 {
        if self.wraps_queue { u32::MAX } else { IntRecord::LONGEST_QUEUE }
    }
}

impl IntRecord {
    /// A place as four 32-bit words: for data other than INT records that uses the same places.
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
    /// In [`IntLayout::queue_unit`].
    pub const LONGEST_QUEUE: u32 = (1 << Self::QUEUE_BITS) - 1;
    /// Bytes of a record on the wire, and of the counter after the records.
    pub const WIRE_BYTES: u32 = 8;
    pub const COUNT_BYTES: u32 = 2;

    /// The record of a hop by absolute numbers, which need not be the simulator's: ns, bytes sent, bytes that
    /// wait.
    pub fn of(ns: u64, sent: u64, queue: u64, rate_kbps: u32, layout: IntLayout) -> IntRecord {
        let field =
            |value: u64, unit: u32, bits: u32| ((value / u64::from(unit.max(1))) & ((1 << bits) - 1)) as u32;
        let waiting = (queue / u64::from(layout.queue_unit.max(1))).min(layout.queue_limit().into());
        IntRecord {
            time: field(ns, layout.time_unit, Self::TIME_BITS),
            sent: field(sent, layout.sent_unit, Self::SENT_BITS),
            queue: waiting as u32 & Self::LONGEST_QUEUE,
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

    /// Bytes that came to the port between the two records: those that it sent, and those by which its queue
    /// grew.
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

/// How switches write into what packets carry: a head, stored as a record, and the records after it.
pub struct IntWriter {
    max_hops: usize,
    layout: IntLayout,
    /// Set if bytes sent are counted, in a unit that is a power of two.
    sent_shift: Option<u32>,
    /// 2^64 over the unit of queue lengths, rounded up: multiplying by it and taking the high half divides
    /// 32-bit numbers exactly.
    queue_reciprocal: u64,
    queue_limit: u32,
}

impl IntWriter {
    /// For packets with room for the records of `max_hops` hops.
    pub fn new(max_hops: usize, layout: IntLayout) -> IntWriter {
        let unit = layout.sent_unit;
        IntWriter {
            max_hops,
            layout,
            sent_shift: (unit.is_power_of_two() && !layout.counts_arrivals).then(|| unit.trailing_zeros()),
            queue_reciprocal: (u64::MAX / u64::from(layout.queue_unit.max(1))).saturating_add(1),
            queue_limit: layout.queue_limit(),
        }
    }

    /// No hop has written yet.
    #[inline(always)]
    pub fn begin(carried: &mut [IntRecord]) {
        carried[0] = IntRecord::default();
    }

    /// Number of places in use, the head included.
    pub fn places_in_use(&self, carried: &[IntRecord]) -> usize {
        (carried[0].time as usize).min(self.max_hops) + 1
    }

    /// Writes the record of one hop. `switch` is XORed into the path id (12 bits). If a packet has no place
    /// left, records overwrite the oldest, and the count tells the receiver that they are invalid.
    #[inline(always)]
    pub fn push(&self, carried: &mut [IntRecord], switch: u16, hop: HopState) {
        const TIME: u64 = (1 << IntRecord::TIME_BITS) - 1;
        const SENT: u64 = (1 << IntRecord::SENT_BITS) - 1;
        let time = self.time_of(hop.now);
        let Some((head, records)) = carried.split_first_mut() else { return };
        let hops = head.time as usize;
        let place = if hops < self.max_hops { hops } else { hops % self.max_hops };
        head.time += 1;
        head.sent ^= u32::from(switch & 0xfff);
        // The unit of bytes sent is a power of two for every NIC rate in the authors' table.
        let sent = match self.sent_shift {
            Some(shift) => hop.bytes_sent >> shift,
            None if self.layout.counts_arrivals => {
                (hop.bytes_sent + u64::from(hop.size) + hop.queue_bytes) / u64::from(self.layout.sent_unit)
            }
            None => hop.bytes_sent / u64::from(self.layout.sent_unit),
        };
        let waiting = hop.queue_bytes.min(u32::MAX.into());
        let queue = ((u128::from(waiting) * u128::from(self.queue_reciprocal)) >> 64) as u32;
        records[place] = IntRecord {
            time: (time & TIME) as u32,
            sent: (sent & SENT) as u32,
            queue: queue.min(self.queue_limit) & IntRecord::LONGEST_QUEUE,
            rate_kbps: hop.rate_kbps,
        };
    }

    #[inline(always)]
    fn time_of(&self, now: Time) -> u64 {
        match self.layout.time_unit {
            0 | 1 => now.ns(),
            unit => now.ns() / u64::from(unit),
        }
    }

    #[inline]
    pub fn view<'a>(&self, carried: &'a [IntRecord]) -> Option<IntView<'a>> {
        IntView::of(&carried[..self.places_in_use(carried)])
    }
}

/// What a switch XORs into the path ids of packets; never 0.
pub fn path_id(node: u32) -> u16 {
    (mix64(u64::from(node)) % 0xfff + 1) as u16
}

/// Places that a packet has room for, whole cache lines of them: the head and a record a hop.
pub const fn places_of(max_hops: usize) -> usize {
    /// Records in a cache line.
    const LINE: usize = 4;
    (max_hops + 1).next_multiple_of(LINE)
}

/// Six numbers of a transport in two places, such as SACK blocks; the head counts one record.
pub fn places_of_numbers([a, b, c, d, e, f]: [u32; 6]) -> [IntRecord; 2] {
    [[1, 0, a, b], [c, d, e, f]].map(IntRecord::from_words)
}

/// The numbers that [`places_of_numbers`] put into these two places.
pub fn numbers_in([first, second]: [IntRecord; 2]) -> [u32; 6] {
    let ([_, _, a, b], [c, d, e, f]) = (first.words(), second.words());
    [a, b, c, d, e, f]
}

/// The state of a port when a packet leaves it.
#[derive(Clone, Copy)]
pub struct HopState {
    pub now: Time,
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
        let layout = IntLayout::for_nic(Rate::from_gbps(100), 1, Some(1_090));
        assert_eq!(layout, IntLayout { sent_unit: 512, queue_unit: 320, ..IntLayout::FINE });
        let old = IntRecord { time: (1 << 24) - 10, sent: (1 << 20) - 1, queue: 3, rate_kbps: 1 };
        let new = IntRecord { time: 90, sent: 1, queue: 0, rate_kbps: 1 };
        assert_eq!(new.ns_since(&old, layout), 100);
        assert_eq!(new.bytes_since(&old, layout), 2 * 512);
        assert_eq!(old.queue_bytes(layout), 960);
    }

    #[test]
    fn records_hold_for_half_a_round_of_the_counter_that_is_round_first() {
        let within = |layout: IntLayout, gbps| layout.up_to(Rate::from_gbps(gbps)).comparable.as_us();
        let of = |gbps| IntLayout::for_nic(Rate::from_gbps(gbps), 1, Some(1_090));
        // 2^23 ns; 2^19 units of 512 B at 800 Gb/s, and of 128 B.
        assert_eq!([within(of(100), 100), within(of(100), 800)], [8_388.608, 2_684.354_56]);
        assert_eq!([within(IntLayout::FINE, 25), within(IntLayout::FINE, 800)], [8_388.608, 671.088_64]);
        let slow = Rate::from_mbps(200);
        assert_eq!(IntLayout::for_nic(slow, 500, None).up_to(slow).comparable, Time::from_us(4_194_304));
    }

    #[test]
    fn a_unit_never_exceeds_half_of_a_packet_however_fast_the_nic() {
        let unit = |gbps, packet| IntLayout::for_nic(Rate::from_gbps(gbps), 1, packet).sent_unit;
        let units = [25, 100, 200, 400, 800].map(|gbps| unit(gbps, Some(1_090)));
        assert_eq!(units, [128, 512, 512, 512, 512]);
        assert_eq!((unit(100, Some(346)), unit(100, Some(100)), unit(400, Some(4_138))), (128, 128, 2_048));
        assert_eq!(unit(400, None), 2_048);
    }

    #[test]
    fn a_queue_beyond_the_field_is_the_longest_one_and_wraps_only_where_a_simulator_is_repeated() {
        let fine = IntLayout::FINE;
        assert_eq!(fine.longest_queue(), 10_485_680);
        for (wraps_queue, expected) in [(false, [0x1_ffff, 0x1_ffff, 0x1_ffff]), (true, [0x1_ffff, 0, 1_250])]
        {
            let layout = IntLayout { wraps_queue, ..fine };
            let writer = IntWriter::new(3, layout);
            let mut carried = [IntRecord::default(); places_of(3)];
            let queues = [10_485_680, 10_485_760, 10_585_760];
            for queue_bytes in queues {
                let now = Time::ZERO;
                let hop = HopState { now, bytes_sent: 0, queue_bytes, rate_kbps: 7, size: 1 };
                writer.push(&mut carried, 1, hop);
            }
            let written = writer.view(&carried).unwrap().records;
            assert_eq!([written[0].queue, written[1].queue, written[2].queue], expected);
            let made = queues.map(|queue| IntRecord::of(0, 0, queue, 7, layout).queue);
            assert_eq!(made, expected);
        }
    }

    #[test]
    fn a_hop_writes_the_record_of_its_absolute_numbers() {
        for (slower, nic) in
            [(1, Rate::from_gbps(25)), (1, Rate::from_gbps(100)), (500, Rate::from_mbps(200))]
        {
            let layout = IntLayout::for_nic(nic, slower, None);
            assert_eq!(layout.queue_unit, if nic == Rate::from_gbps(25) { 80 } else { 320 });
            let writer = IntWriter::new(3, layout);
            let mut carried = [IntRecord::default(); places_of(3)];
            let at = [
                (7u64, 0u64, 0u64),
                (16_777_300, 134_217_800, 123_456),
                (90_000_000_123, 5_000_000_000, 9_999_999),
            ];
            for (ns, bytes_sent, queue_bytes) in at {
                let hop = HopState { now: Time::from_ns(ns), bytes_sent, queue_bytes, rate_kbps: 7, size: 1 };
                writer.push(&mut carried, path_id(2), hop);
            }
            let records: Vec<IntRecord> =
                at.iter().map(|&(ns, sent, queue)| IntRecord::of(ns, sent, queue, 7, layout)).collect();
            assert_eq!(writer.view(&carried).unwrap().records, records);
            let ns = records[2].ns_since(&records[1], layout);
            let span = u64::from(slower) << IntRecord::TIME_BITS;
            assert!(ns.abs_diff((90_000_000_123 - 16_777_300) % span) < u64::from(slower).max(1));
        }
    }
}
