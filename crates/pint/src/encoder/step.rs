//! What one hop does to one field.

use super::{Blocks, Field, Task};
use crate::code::{Layer, MAX_HOPS, MAX_LAYERS, Selection, reservoir_acts, reservoir_threshold};
use crate::hash::{HopSalt, Mixed, Word, spread};
use crate::value::{Approximation, Logarithmic};

/// What a switch sees of a packet.
pub trait Observed {
    /// The value for a query, by its number; None if the switch does not have it. Requested only if the
    /// packet serves the query.
    fn value(&mut self, query: usize) -> Option<u64>;

    /// The code of a query's value, rounded by the coin, if it is above `now`; else `now`. A switch that sees
    /// the same few values again and again may look it up ([`crate::places`]).
    #[inline]
    fn raise(
        &mut self,
        query: usize,
        values: &Approximation,
        now: u64,
        value: u64,
        coin: impl FnOnce() -> u32,
    ) -> u64 {
        _ = query;
        values.raise(now, value, coin)
    }
}

impl<F: FnMut(usize) -> Option<u64>> Observed for F {
    #[inline]
    fn value(&mut self, query: usize) -> Option<u64> {
        self(query)
    }
}

/// A field after one hop that saw `value`, and whether a loop was found.
#[inline(always)]
pub(super) fn task_step(
    task: &Task,
    field: &Field,
    now: u64,
    word: Word,
    hop: u32,
    value: u64,
    observed: &mut impl Observed,
) -> (u64, bool) {
    match task {
        // Encoding takes longer than a branch that is guessed wrong.
        Task::Sample(values) if reservoir_acts(word, hop) => {
            (values.encode_with(value, || word.coin(hop)), false)
        }
        Task::Sample(_) => (now, false),
        Task::Maximum(values) => {
            (observed.raise(usize::from(field.query), values, now, value, || word.coin(hop)), false)
        }
        _ => rarer_step(task, field, now, word, hop, value),
    }
}

/// The tasks that the paper's plan does not have: out of the way of those that it has.
#[inline(never)]
fn rarer_step(task: &Task, field: &Field, now: u64, word: Word, hop: u32, value: u64) -> (u64, bool) {
    let coin = || word.coin(hop);
    let next = match task {
        Task::Path { code, blocks } => {
            let block = block(*blocks, u32::from(field.bits), word, value);
            match code.layer(word) {
                Layer::Baseline => choose(reservoir_acts(word, hop), block, now),
                Layer::Xor(selection) => choose(selection.acts(word, hop), now ^ block, now),
            }
        }
        // Those two are not rare.
        Task::Sample(_) | Task::Maximum(_) => now,
        Task::Minimum(values) => {
            let code = values.encode_with(value, coin);
            if hop == 1 { code } else { code.min(now) }
        }
        Task::Sum(counter) => counter.add(now, value, coin()),
        Task::Product(values) => now.saturating_add(values.encode_with(value, coin)).min(field.limit()),
        Task::Count { threshold } => {
            (now + u64::from(value > *threshold && now < field.limit())).min(field.limit())
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
pub(super) fn choose(condition: bool, yes: u64, no: u64) -> u64 {
    no ^ ((yes ^ no) & u64::from(condition).wrapping_neg())
}

/// What a hop does to a field, with all that the plan decides resolved: it compares with thresholds, and
/// neither divides nor asks what task the field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    /// A path by one XOR layer for the packets whose word is from `start` on, where hops act whose word is up
    /// to `until`; hashed blocks.
    Hybrid { start: u64, until: u64 },
    /// One hop's value on a geometric grid, rounded to the nearest or in the logarithm domain.
    Sample(Logarithmic),
    /// The largest of the hops' values.
    Maximum,
    /// As the query's task says.
    Other,
}

impl Operation {
    /// The largest [`Operation::rank`].
    pub const LAST_RANK: u32 = 2;

    /// Where in a set its fields stand: first those that a set's program may take in.
    pub fn rank(self) -> u32 {
        match self {
            Operation::Hybrid { .. } => 0,
            Operation::Sample(_) => 1,
            Operation::Maximum | Operation::Other => 2,
        }
    }

    pub fn of(task: &Task) -> Operation {
        match task {
            Task::Path { blocks: Blocks::Hashed, .. } => match Thresholds::of(task) {
                Some(all) if all.count == 1 && all.starts[0] < 1 << 32 && all.thresholds[0] > 0 => {
                    Operation::Hybrid { start: all.starts[0] << 32, until: last(all.thresholds[0]) }
                }
                _ => Operation::Other,
            },
            Task::Sample(values) => values.logarithmic().map_or(Operation::Other, Operation::Sample),
            Task::Maximum(_) => Operation::Maximum,
            _ => Operation::Other,
        }
    }
}

/// A hop of a path, and what all fields need of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    number: u32,
    drawn: Drawn,
}

/// What a hop's number decides.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    salt: HopSalt,
    /// A word whose upper half is g acts in reservoir sampling up to here.
    reservoir: u64,
}

/// By number; hop 0 is not used.
static DRAWN: [Drawn; MAX_HOPS as usize + 1] = {
    let mut table = [Drawn { salt: HopSalt::new(0), reservoir: 0 }; MAX_HOPS as usize + 1];
    let mut hop = 1;
    while hop <= MAX_HOPS {
        table[hop as usize] = Drawn { salt: HopSalt::new(hop), reservoir: last(reservoir_threshold(hop)) };
        hop += 1;
    }
    table
};

/// The largest word of 64 bits whose upper 32 are below `threshold`, which is above 0.
const fn last(threshold: u64) -> u64 {
    if threshold < 1 << 32 { (threshold << 32) - 1 } else { u64::MAX }
}

/// The first `hops` hops (1 to 64) whose blocks are in a field; bit n is hop n + 1. By reservoir sampling it
/// is the last that acts, and the first one always does; in a layer that `xors` all act whose word is up to
/// `until`.
#[inline(always)]
fn writers(word: Word, hops: u32, xors: bool, until: u64) -> u64 {
    let drawn = (0..hops).zip(&DRAWN[1..]);
    let acting = drawn.fold(0u64, |acting, (n, drawn)| {
        let until = choose(xors, until, drawn.reservoir);
        acting | u64::from(word.hop_word(drawn.salt) <= until) << n
    });
    choose(xors, acting, (1 << 63) >> (acting | 1).leading_zeros())
}

impl Field {
    /// The bits of the digest that are the field's after the first `hops` hops, of which `at(n)` is what hop
    /// n + 1 saw. None if the field has another operation, the path is longer than 64 hops, or a hop that
    /// writes saw nothing.
    #[inline(always)]
    pub(super) fn after<O: Observed>(&self, packet: Mixed, hops: u32, at: impl Fn(u32) -> O) -> Option<u64> {
        if hops == 0 || hops > 64 {
            return None;
        }
        let (word, query) = (self.key.word_of(packet), usize::from(self.query));
        match self.operation {
            Operation::Hybrid { start, until } => {
                let mut left = writers(word, hops, word.0 >= start, until);
                let mut blocks = 0;
                while left != 0 {
                    let id = at(left.trailing_zeros()).value(query)?;
                    blocks ^= word.spread_value(spread(id), 64);
                    left &= left - 1;
                }
                Some(blocks >> self.down & self.mask)
            }
            Operation::Sample(values) => {
                let last = writers(word, hops, false, 0).trailing_zeros();
                let salt = DRAWN[last as usize + 1].salt;
                Some(values.encode(at(last).value(query)?, || word.coin_of(salt)) << self.offset & self.mask)
            }
            Operation::Maximum | Operation::Other => None,
        }
    }
}

impl Hop {
    /// Hops beyond [`MAX_HOPS`] count as that one.
    #[inline(always)]
    pub fn new(number: u32) -> Hop {
        let number = number.clamp(1, MAX_HOPS);
        Hop { number, drawn: DRAWN[number as usize] }
    }

    #[inline(always)]
    pub fn number(self) -> u32 {
        self.number
    }

    #[inline(always)]
    pub fn coin(self, word: Word) -> u32 {
        word.coin_of(self.drawn.salt)
    }

    /// The bits of the digest that a path's field changes, by a code with one XOR layer from `start` on; the
    /// hop's id is spread.
    #[inline(always)]
    pub fn hybrid(self, start: u64, until: u64, field: &Field, packet: Mixed, id: u64, came: u64) -> u64 {
        let word = field.key.word_of(packet);
        let xors = word.0 >= start;
        let until = choose(xors, until, self.drawn.reservoir);
        let replaced = choose(xors, 0, came);
        let block = word.spread_value(id, 64) >> field.down;
        let acts = word.hop_word(self.drawn.salt) <= until;
        choose(acts, (replaced ^ block) & field.mask, 0)
    }

    /// The bits of the digest that the sample of a value changes. Encoding takes longer than a branch that is
    /// guessed wrong.
    #[inline(always)]
    pub fn sample(self, values: Logarithmic, field: &Field, packet: Mixed, value: u64, came: u64) -> u64 {
        let word = field.key.word_of(packet);
        let code = values.encode(value, || word.coin_of(self.drawn.salt));
        let acts = word.hop_word(self.drawn.salt) <= self.drawn.reservoir;
        choose(acts, (code << field.offset ^ came) & field.mask, 0)
    }
}

/// The layers of a code that all select by threshold, so that a hop compares and does not divide or branch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Thresholds {
    /// H from which each layer on has the packets.
    pub starts: [u64; MAX_LAYERS],
    thresholds: [u64; MAX_LAYERS],
    count: usize,
}

impl Thresholds {
    /// None for a task that is not a path, and for a path with a layer that selects by words.
    pub fn of(task: &Task) -> Option<Thresholds> {
        let Task::Path { code, .. } = task else { return None };
        let baseline = (code.tau() * 4_294_967_296.0) as u64;
        let count = code.layers().len();
        let mut all = Thresholds { starts: [u64::MAX; MAX_LAYERS], thresholds: [0; MAX_LAYERS], count };
        for (n, layer) in code.layers().iter().enumerate() {
            let Selection::Threshold(threshold) = *layer else { return None };
            // Layer n starts where (H - baseline) count reaches n times the width of all layers, as
            // `Code::layer` divides.
            all.starts[n] = baseline + (n as u64 * ((1 << 32) - baseline)).div_ceil(count as u64);
            all.thresholds[n] = threshold;
        }
        Some(all)
    }

    /// A field after a hop.
    #[inline]
    pub fn step(&self, hop: Hop, word: Word, block: u64, now: u64) -> u64 {
        let place = u64::from(word.layer());
        let (mut threshold, mut kept) = (reservoir_threshold(hop.number), 0);
        for n in 0..self.count.min(MAX_LAYERS) {
            let here = place >= self.starts[n];
            threshold = choose(here, self.thresholds[n], threshold);
            kept = choose(here, now, kept);
        }
        choose(u64::from(word.hop_of(hop.drawn.salt)) < threshold, kept ^ block, now)
    }
}
