//! What a switch does to a packet's digest: the compiled plan of several queries under one budget of bits.
//!
//! The packet's id chooses one of the plan's sets; each field of the set belongs to one query and is changed by that query's task. The
//! collector asks the same encoder which fields a packet carries and reads them.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §3.4 (sets), §4.1 to §4.3 (tasks), appendix A.4 (loops).

use crate::code::{Code, Layer, MAX_HOPS, MAX_LAYERS, Selection, reservoir_acts, reservoir_threshold};
use crate::counting::Counter;
use crate::hash::{Key, Word};
use crate::loops::LoopDetection;
use crate::value::Approximation;

/// Queries that an encoder may have.
pub const MAX_QUERIES: usize = 16;
/// Sets that a plan may have.
pub const MAX_SETS: usize = 32;
/// Fields in all sets together.
pub const MAX_FIELDS: usize = 256;
/// Copies of a query in one slot.
pub const MAX_COPIES: u32 = 16;

/// How a value that is constant on the path fits into a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// As many bits of a hash of value and packet as the field has.
    Hashed,
    /// One of `count` (1 to 64) pieces of the value, as wide as the field, from the lowest; the packet's id says which.
    Fragments { count: u32 },
}

/// What a query's field holds and how a hop changes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Task {
    /// A value that is constant per flow and hop, by distributed coding.
    Path {
        code: Code,
        blocks: Blocks,
    },
    /// The value of one hop, each with the same probability.
    Sample(Approximation),
    Maximum(Approximation),
    Minimum(Approximation),
    /// The sum of all hops' values, on average.
    Sum(Counter),
    /// The product of all hops' values (0 counts as 1), on average if the approximation rounds in the value domain.
    Product(Approximation),
    /// Hops whose value is greater than this; stays at the largest number that the field holds.
    Count {
        threshold: u64,
    },
    /// Whether the packet came back to a hop.
    Loop(LoopDetection),
}

/// Room for a query in a set: `copies` fields of `bits` bits from bit `offset` on, the first lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Index of the query.
    pub query: u32,
    pub offset: u32,
    /// Bits of one copy.
    pub bits: u32,
    pub copies: u32,
    /// Copy n hashes with `Key::new(key.0, n)`.
    pub key: Key,
}

/// One copy of one query in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The key of this copy.
    pub key: Key,
    pub query: u8,
    pub copy: u8,
    pub offset: u8,
    pub bits: u8,
    /// As many ones as bits.
    mask: u64,
}

impl Field {
    /// Its bits of a digest.
    #[inline]
    pub const fn read(&self, digest: u64) -> u64 {
        digest >> self.offset & self.mask
    }

    /// The digest with its bits replaced.
    #[inline]
    pub const fn write(&self, digest: u64, value: u64) -> u64 {
        digest & !(self.mask << self.offset) | (value & self.mask) << self.offset
    }
}

/// A set of queries: it has the packets with q from the previous set's `until` to its own, in units of 2^-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    /// Cumulative share, at most 65 536.
    pub until: u32,
    pub slots: &'a [Slot],
}

/// Why a plan cannot be an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    TooManyQueries,
    TooManySets,
    TooManyFields,
    /// Cumulative shares fall, or exceed 65 536, at this set.
    Shares {
        set: usize,
    },
    /// A slot of this set names a query that there is not.
    UnknownQuery {
        set: usize,
    },
    /// A slot of this set has no bits or copies, too many, or does not end within 64 bits.
    Width {
        set: usize,
    },
    /// Two slots of this set share a bit.
    Overlap {
        set: usize,
    },
    /// The query's own settings need another width than a slot of this set has.
    Mismatch {
        set: usize,
        query: usize,
    },
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Refused::TooManyQueries => write!(f, "more than {MAX_QUERIES} queries"),
            Refused::TooManySets => write!(f, "more than {MAX_SETS} sets of queries"),
            Refused::TooManyFields => write!(f, "more than {MAX_FIELDS} fields in all sets together"),
            Refused::Shares { set } => {
                write!(f, "cumulative shares must rise to at most 65536, set {set} does not")
            }
            Refused::UnknownQuery { set } => write!(f, "set {set} names a query that there is not"),
            Refused::Width { set } => {
                write!(f, "a slot of set {set} must have 1 to {MAX_COPIES} copies and end within 64 bits")
            }
            Refused::Overlap { set } => write!(f, "two slots of set {set} share a bit"),
            Refused::Mismatch { set, query } => {
                write!(f, "query {query} needs another width than its slot in set {set} has")
            }
        }
    }
}

impl core::error::Error for Refused {}

/// A plan as switches run it and collectors read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoder {
    selector: Key,
    tasks: [Task; MAX_QUERIES],
    /// Of the queries that trace paths.
    layers: [Option<Thresholds>; MAX_QUERIES],
    /// Cumulative shares; 0 beyond the last set.
    until: [u32; MAX_SETS],
    /// Each set's first field and the one after its last.
    ranges: [(u16, u16); MAX_SETS],
    fields: [Field; MAX_FIELDS],
    queries: usize,
    sets: usize,
}

impl Encoder {
    /// `selector` is the key of q. Packets beyond the last set's share carry nothing.
    pub fn new(selector: Key, tasks: &[Task], sets: &[Set]) -> Result<Encoder, Refused> {
        if tasks.len() > MAX_QUERIES {
            return Err(Refused::TooManyQueries);
        }
        if sets.len() > MAX_SETS {
            return Err(Refused::TooManySets);
        }
        let nothing = Field { key: Key(0), query: 0, copy: 0, offset: 0, bits: 1, mask: 1 };
        let mut encoder = Encoder {
            selector,
            tasks: [Task::Count { threshold: u64::MAX }; MAX_QUERIES],
            layers: [None; MAX_QUERIES],
            until: [0; MAX_SETS],
            ranges: [(0, 0); MAX_SETS],
            fields: [nothing; MAX_FIELDS],
            queries: tasks.len(),
            sets: sets.len(),
        };
        encoder.tasks[..tasks.len()].copy_from_slice(tasks);
        for (layers, task) in encoder.layers.iter_mut().zip(tasks) {
            if let Task::Path { code, .. } = task {
                *layers = Thresholds::of(code);
            }
        }
        let (mut place, mut before) = (0, 0);
        for (index, set) in sets.iter().enumerate() {
            if set.until < before || set.until > 1 << 16 {
                return Err(Refused::Shares { set: index });
            }
            before = set.until;
            encoder.until[index] = set.until;
            let first = place;
            encoder.add_fields(index, set.slots, &mut place)?;
            encoder.ranges[index] = (first as u16, place as u16);
        }
        Ok(encoder)
    }

    fn add_fields(&mut self, set: usize, slots: &[Slot], place: &mut usize) -> Result<(), Refused> {
        let mut used = 0u64;
        for slot in slots {
            let query = slot.query as usize;
            if query >= self.queries {
                return Err(Refused::UnknownQuery { set });
            }
            let fits =
                (1..=MAX_COPIES).contains(&slot.copies) && (1..=64).contains(&slot.bits) && slot.offset < 64;
            if !fits || slot.offset + slot.bits * slot.copies > 64 {
                return Err(Refused::Width { set });
            }
            if !fits_task(&self.tasks[query], slot.bits) {
                return Err(Refused::Mismatch { set, query });
            }
            for copy in 0..slot.copies {
                let key = Key::new(slot.key.0, u64::from(copy));
                let offset = (slot.offset + copy * slot.bits) as u8;
                let mask = u64::MAX >> (64 - slot.bits);
                let (query, copy, bits) = (slot.query as u8, copy as u8, slot.bits as u8);
                let field = Field { key, query, copy, offset, bits, mask };
                if used & mask << offset != 0 {
                    return Err(Refused::Overlap { set });
                }
                used |= mask << offset;
                *self.fields.get_mut(*place).ok_or(Refused::TooManyFields)? = field;
                *place += 1;
            }
        }
        Ok(())
    }

    /// The tasks of the queries, in their order.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks[..self.queries]
    }

    /// Which set a packet belongs to; None if it carries nothing.
    #[inline]
    pub fn set(&self, packet: u64) -> Option<usize> {
        let place = u32::from(self.selector.word(packet).share());
        self.until[..self.sets].iter().position(|&until| place < until)
    }

    /// The fields that a packet carries.
    #[inline]
    pub fn fields(&self, packet: u64) -> &[Field] {
        self.set(packet).map_or(&[], |set| self.fields_of(set))
    }

    /// The fields of a set; none if there is no such set.
    #[inline]
    pub fn fields_of(&self, set: usize) -> &[Field] {
        self.ranges.get(set).map_or(&[], |&(first, end)| &self.fields[usize::from(first)..usize::from(end)])
    }

    /// The digest after the `hop`-th hop (from 1, which starts from 0 whatever `digest` is; hops beyond [`MAX_HOPS`] count as that one).
    /// `values` has one number a query, in the queries' order; a query whose number is missing is left as it is.
    #[inline]
    pub fn encode(&self, digest: u64, packet: u64, hop: u32, values: &[u64]) -> u64 {
        self.encode_and_report(digest, packet, hop, values).0
    }

    /// As [`Encoder::encode`], and whether a query that looks for loops found the packet in one.
    #[inline]
    pub fn encode_and_report(&self, digest: u64, packet: u64, hop: u32, values: &[u64]) -> (u64, bool) {
        self.encode_from(digest, packet, hop, |query| values.get(query).copied())
    }

    /// As [`Encoder::encode_and_report`], where a query's value is only asked for if the packet serves it.
    #[inline]
    pub fn encode_from(
        &self,
        digest: u64,
        packet: u64,
        hop: u32,
        mut value_of: impl FnMut(usize) -> Option<u64>,
    ) -> (u64, bool) {
        let hop = hop.clamp(1, MAX_HOPS);
        let mut digest = if hop == 1 { 0 } else { digest };
        let mut looped = false;
        for field in self.fields(packet) {
            let query = usize::from(field.query);
            // There are as many tasks as a field's query can name.
            let (Some(value), Some(task)) = (value_of(query), self.tasks.get(query)) else { continue };
            let word = field.key.word(packet);
            let now = field.read(digest);
            let (now, report) = match (task, &self.layers[query]) {
                (Task::Path { blocks, .. }, Some(layers)) => {
                    (layers.step(word, hop, block(*blocks, u32::from(field.bits), word, value), now), false)
                }
                _ => step(task, field, now, word, hop, value),
            };
            digest = field.write(digest, now);
            looped |= report;
        }
        (digest, looped)
    }
}

/// A code whose layers all select by threshold, so that a hop compares and does not divide or branch.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Thresholds {
    /// H from which each layer on has the packets.
    starts: [u64; MAX_LAYERS],
    thresholds: [u64; MAX_LAYERS],
    count: usize,
}

impl Thresholds {
    /// None if a layer selects by words.
    fn of(code: &Code) -> Option<Thresholds> {
        let baseline = (code.tau() * 4_294_967_296.0) as u64;
        let count = code.layers().len();
        let mut all = Thresholds { starts: [u64::MAX; MAX_LAYERS], thresholds: [0; MAX_LAYERS], count };
        for (n, layer) in code.layers().iter().enumerate() {
            let Selection::Threshold(threshold) = *layer else { return None };
            // Layer n starts where (H - baseline) count reaches n times the width of all layers, as `Code::layer` divides.
            all.starts[n] = baseline + (n as u64 * ((1 << 32) - baseline)).div_ceil(count as u64);
            all.thresholds[n] = threshold;
        }
        Some(all)
    }

    #[inline]
    fn step(&self, word: Word, hop: u32, block: u64, now: u64) -> u64 {
        let place = u64::from(word.layer());
        let mut threshold = reservoir_threshold(hop);
        let mut kept = 0;
        for n in 0..self.count.min(MAX_LAYERS) {
            let here = place >= self.starts[n];
            threshold = choose(here, self.thresholds[n], threshold);
            kept |= u64::from(here).wrapping_neg();
        }
        choose(u64::from(word.hop(hop)) < threshold, (now & kept) ^ block, now)
    }
}

/// Whether a task can live in a field of `bits`.
fn fits_task(task: &Task, bits: u32) -> bool {
    match task {
        Task::Path { blocks: Blocks::Fragments { count }, .. } => (1..=64).contains(count),
        Task::Path { .. } | Task::Count { .. } => true,
        Task::Sample(values) | Task::Maximum(values) | Task::Minimum(values) => values.bits() <= bits,
        // A product's codes are wider than one value's.
        Task::Product(values) => values.bits() <= bits,
        Task::Sum(counter) => counter.bits() <= bits,
        Task::Loop(detection) => LoopDetection::new(bits, detection.tolerance()) == Some(*detection),
    }
}

/// A field after one hop, and whether a loop was found.
#[inline(always)]
fn step(task: &Task, field: &Field, now: u64, word: Word, hop: u32, value: u64) -> (u64, bool) {
    let next = match task {
        Task::Path { code, blocks } => {
            let block = block(*blocks, u32::from(field.bits), word, value);
            match code.layer(word) {
                Layer::Baseline => choose(reservoir_acts(word, hop), block, now),
                Layer::Xor(selection) => choose(selection.acts(word, hop), now ^ block, now),
            }
        }
        // Encoding takes longer than a branch that is guessed wrong.
        Task::Sample(values) if reservoir_acts(word, hop) => values.encode_with(value, || word.coin(hop)),
        Task::Sample(_) => now,
        Task::Maximum(values) => values.encode_with(value, || word.coin(hop)).max(now),
        Task::Minimum(values) => {
            let code = values.encode_with(value, || word.coin(hop));
            if hop == 1 { code } else { code.min(now) }
        }
        Task::Sum(counter) => counter.add(now, value, word.coin(hop)),
        Task::Product(values) => {
            now.saturating_add(values.encode_with(value, || word.coin(hop))).min(field.mask)
        }
        Task::Count { threshold } => {
            (now + u64::from(value > *threshold && now < field.mask)).min(field.mask)
        }
        Task::Loop(detection) => return detection.step(now, word, hop, value),
    };
    (next, false)
}

/// What a hop contributes to a code: a hash of its value, or the piece of it that the packet carries.
#[inline]
pub fn block(blocks: Blocks, bits: u32, word: Word, value: u64) -> u64 {
    match blocks {
        Blocks::Hashed => word.value(value, bits),
        Blocks::Fragments { count } => {
            let shift = word.fragment(count) * bits;
            value.checked_shr(shift).unwrap_or(0) & (u64::MAX >> (64 - bits))
        }
    }
}

/// `yes` or `no` without a branch that a processor would guess wrong half the time.
#[inline]
fn choose(condition: bool, yes: u64, no: u64) -> u64 {
    no ^ ((yes ^ no) & u64::from(condition).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Selection, survivor};
    use crate::value::Rounding;
    use proptest::prelude::*;

    const SELECTOR: Key = Key::new(7, 0);

    fn slot(query: u32, offset: u32, bits: u32, copies: u32) -> Slot {
        Slot { query, offset, bits, copies, key: Key::new(7, u64::from(query) + 1) }
    }

    fn log8() -> Approximation {
        Approximation::from_base(1.05, 8, Rounding::Value).unwrap()
    }

    fn along(encoder: &Encoder, packet: u64, path: &[[u64; 8]]) -> u64 {
        (1..).zip(path).fold(u64::MAX, |digest, (hop, values)| encoder.encode(digest, packet, hop, values))
    }

    /// Values of queries 0 to 7 at five hops.
    const PATH: [[u64; 8]; 5] = [
        [11, 900, 40, 500, 3, 1, 9, 11],
        [12, 100, 70, 400, 0, 2, 2, 12],
        [13, 5_000, 10, 800, 9, 1, 9, 13],
        [14, 30, 20, 300, 1, 4, 1, 14],
        [15, 1, 60, 900, 2, 1, 9, 15],
    ];

    #[test]
    fn each_aggregation_leaves_what_it_says() {
        let exact = |bits| Approximation::exact(bits).unwrap();
        let counter = Counter::new(1 << 32, 16).unwrap();
        let tasks = [
            Task::Path { code: Code::new(1.0, &[]).unwrap(), blocks: Blocks::Fragments { count: 1 } },
            Task::Sample(log8()),
            Task::Maximum(exact(8)),
            Task::Minimum(exact(10)),
            Task::Sum(counter),
            Task::Product(Approximation::from_base(2.0, 4, Rounding::Nearest).unwrap()),
            Task::Count { threshold: 5 },
            Task::Loop(LoopDetection::new(9, 0).unwrap()),
        ];
        let slots = [
            slot(0, 0, 5, 1),
            slot(1, 5, 8, 1),
            slot(2, 13, 8, 1),
            slot(3, 21, 10, 1),
            slot(4, 31, 16, 1),
            slot(5, 47, 4, 1),
            slot(6, 51, 2, 1),
            slot(7, 53, 9, 1),
        ];
        let encoder = Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap();
        let mut sums = 0.0;
        for packet in 0..2_000 {
            let digest = along(&encoder, packet, &PATH);
            let fields = encoder.fields(packet);
            let read: Vec<u64> = fields.iter().map(|field| field.read(digest)).collect();
            let hop = |n: usize| survivor(fields[n].key.word(packet), 5);
            assert_eq!(read[0], 10 + u64::from(hop(0)));
            let sampled = PATH[hop(1) as usize - 1][1];
            assert!((log8().decode(read[1]) / sampled as f64).ln().abs() <= 0.049);
            assert_eq!((read[2], read[3], read[5], read[6]), (70, 300, 3, 3));
            sums += counter.decode(read[4]);
            assert_eq!(digest >> 62, 0);
        }
        // Single sums are rounded at random; their mean is the truth.
        assert!((sums / 2_000.0 - 15.0).abs() <= 3.0 * counter.deviation(15.0, 5) / 2_000f64.sqrt());
    }

    #[test]
    fn copies_hash_apart_and_xor_layers_hold_the_blocks_of_who_acted() {
        let selection = Selection::words(0.5);
        let code = Code::new(0.0, &[selection]).unwrap();
        let tasks = [Task::Path { code, blocks: Blocks::Hashed }];
        let slots = [slot(0, 0, 8, 2)];
        let encoder = Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap();
        for packet in 0..1_000 {
            let digest = along(&encoder, packet, &PATH);
            for field in encoder.fields(packet) {
                let word = field.key.word(packet);
                let acted = (1..).zip(&PATH).filter(|&(hop, _)| selection.acts(word, hop));
                let expected = acted.fold(0, |sum, (_, values)| sum ^ word.value(values[0], 8));
                assert_eq!(field.read(digest), expected);
            }
        }
        let [first, second] = encoder.fields(1) else { panic!("two copies") };
        assert_ne!(first.key, second.key);
    }

    #[test]
    fn sets_have_their_shares_and_the_rest_carries_nothing() {
        let tasks = [Task::Maximum(log8()), Task::Sample(log8())];
        let (latency, load) = ([slot(1, 8, 8, 1)], [slot(0, 8, 8, 1)]);
        let sets = [Set { until: 32_768, slots: &latency }, Set { until: 36_864, slots: &load }];
        let encoder = Encoder::new(SELECTOR, &tasks, &sets).unwrap();
        let mut counts = [0f64; 3];
        for packet in 0..100_000 {
            counts[encoder.set(packet).unwrap_or(2)] += 1e-5;
            if encoder.set(packet).is_none() {
                assert_eq!(along(&encoder, packet, &PATH), 0);
            }
        }
        for (count, share) in counts.iter().zip([0.5, 0.0625, 0.4375]) {
            assert!((count - share).abs() < 0.008, "{count}, {share}");
        }
        assert!(encoder.fields_of(2).is_empty() && encoder.fields_of(99).is_empty());
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        let tasks = [Task::Maximum(log8())];
        let refused =
            |slots: &[Slot]| Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots }]).unwrap_err();
        assert_eq!(refused(&[slot(1, 0, 8, 1)]), Refused::UnknownQuery { set: 0 });
        assert_eq!(refused(&[slot(0, 60, 8, 1)]), Refused::Width { set: 0 });
        assert_eq!(refused(&[slot(0, u32::MAX, 8, 1)]), Refused::Width { set: 0 });
        assert_eq!(refused(&[slot(0, 0, 7, 1)]), Refused::Mismatch { set: 0, query: 0 });
        assert_eq!(refused(&[slot(0, 0, 8, 1), slot(0, 7, 8, 1)]), Refused::Overlap { set: 0 });
        let sets = [Set { until: 9, slots: &[] }, Set { until: 8, slots: &[] }];
        assert_eq!(Encoder::new(SELECTOR, &tasks, &sets).unwrap_err(), Refused::Shares { set: 1 });
        assert!(Refused::Overlap { set: 3 }.to_string().contains("set 3"));
    }

    proptest! {
        #[test]
        fn thresholds_step_as_the_code_says(tau in 0f64..=1.0, word: u64, hop in 1u32..=255, now: u64, count in 1usize..=6) {
            let layers: Vec<Selection> = (0..count).map(|n| Selection::threshold(0.1 * (n + 1) as f64)).collect();
            let code = Code::new(tau, &layers).unwrap();
            let thresholds = Thresholds::of(&code).unwrap();
            // Also where one layer ends and the next one starts.
            for place in thresholds.starts[..count].iter().flat_map(|&start| [start.wrapping_sub(1), start]).chain([word >> 32]) {
                let word = Word(place << 32 | word & 0xffff_ffff);
                let expected = match code.layer(word) {
                    Layer::Baseline => choose(reservoir_acts(word, hop), 5, now),
                    Layer::Xor(selection) => choose(selection.acts(word, hop), now ^ 5, now),
                };
                prop_assert_eq!(thresholds.step(word, hop, 5, now), expected);
            }
        }

        #[test]
        fn no_digest_packet_or_value_panics(digest: u64, packet: u64, hop: u32, value: u64, bits in 1u32..=64, count in 1u32..=64) {
            let code = Code::new(0.5, &[Selection::words(0.1), Selection::threshold(0.3)]).unwrap();
            let tasks = [
                Task::Path { code, blocks: Blocks::Fragments { count } },
                Task::Path { code, blocks: Blocks::Hashed },
                Task::Count { threshold: 3 },
                Task::Maximum(Approximation::exact(bits).unwrap()),
            ];
            for query in 0..4 {
                let slots = [slot(query, 64 - bits, bits, 1)];
                let encoder = Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap();
                encoder.encode(digest, packet, hop, &[value; 4]);
                encoder.encode(digest, packet, hop, &[]);
            }
        }
    }
}
