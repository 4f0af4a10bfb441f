//! What one hop does to one field.

use super::{Blocks, Field, Task};
use crate::code::{Code, Layer, MAX_LAYERS, Selection, reservoir_acts, reservoir_threshold};
use crate::hash::Word;
use crate::value::Approximation;

/// What a switch sees of a packet.
pub trait Observed {
    /// The value for a query, by its number; None if the switch does not have it. Asked for only if the packet serves the query.
    fn value(&mut self, query: usize) -> Option<u64>;

    /// The code of a query's value, rounded by the coin, if it is above `now`; else `now`. A switch that sees the same few values again
    /// and again may look it up ([`crate::places`]).
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
pub(super) fn step(
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
        Task::Product(values) => now.saturating_add(values.encode_with(value, coin)).min(field.mask),
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
pub(super) fn choose(condition: bool, yes: u64, no: u64) -> u64 {
    no ^ ((yes ^ no) & u64::from(condition).wrapping_neg())
}

/// A path's code, made ready for one field: thresholds only, so that a hop compares and does not divide or branch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ready {
    /// Not a path, or a code that selects by words.
    No,
    /// One XOR layer, and hashed blocks.
    Hybrid { start: u64, threshold: u64 },
    /// Several.
    Layers(Thresholds),
}

impl Ready {
    pub fn of(task: &Task) -> Ready {
        let Task::Path { code, blocks } = task else { return Ready::No };
        match Thresholds::of(code) {
            None => Ready::No,
            Some(all) if all.count == 1 && *blocks == Blocks::Hashed => {
                Ready::Hybrid { start: all.starts[0], threshold: all.thresholds[0] }
            }
            Some(all) => Ready::Layers(all),
        }
    }
}

/// One hop of a code with one XOR layer from `start` on.
#[inline(always)]
pub(super) fn hybrid(start: u64, threshold: u64, word: Word, hop: u32, block: u64, now: u64) -> u64 {
    let xors = u64::from(word.layer()) >= start;
    let threshold = choose(xors, threshold, reservoir_threshold(hop));
    let kept = now & u64::from(xors).wrapping_neg();
    choose(u64::from(word.hop(hop)) < threshold, kept ^ block, now)
}

/// Layers that all select by threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Thresholds {
    /// H from which each layer on has the packets.
    pub starts: [u64; MAX_LAYERS],
    thresholds: [u64; MAX_LAYERS],
    count: usize,
}

impl Thresholds {
    /// None if a layer selects by words.
    pub fn of(code: &Code) -> Option<Thresholds> {
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
    pub fn step(&self, word: Word, hop: u32, block: u64, now: u64) -> u64 {
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
