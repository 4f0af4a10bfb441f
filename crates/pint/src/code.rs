//! Distributed coding of values that are constant on a path: which hops write into a packet, and how.
//!
//! Every packet belongs to one layer, by H. In layer 0 (*Baseline*) hop i overwrites the digest with probability 1/i, so each of k
//! hops is the last to write with probability 1/k. In an XOR layer every hop xors its block into the digest with the layer's
//! probability p. The collector computes the same hashes and knows who wrote.
//!
//! An XOR layer chooses its hops in one of two ways. By *threshold*: hop i acts if g < p; exact to 2^-32, one hash per hop and
//! packet. By *words*: with p = m / 2^n, n pseudo-random words are folded with AND and OR, and bit i of the result says whether hop
//! i acts; the collector then finds all writers among 64 hops with n hashes.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.2 and appendix A.2, A.3 (layers), §4.2 "Reducing the decoding complexity"
//! (words).
//! Differs from the source: tau and the layers' p are given, not computed from one formula; body and appendix disagree on it.

use crate::hash::Word;

/// XOR layers that a code may have.
pub const MAX_LAYERS: usize = 6;
/// Hops that a path may have.
pub const MAX_HOPS: u32 = 255;
/// Words of 64 hops that hold a path.
pub const HOP_WORDS: usize = 4;

/// Hops of a path as bits: hop i (from 1) is bit (i - 1) % 64 of word (i - 1) / 64.
pub type HopSet = [u64; HOP_WORDS];

/// How an XOR layer chooses the hops that act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Hop i acts if g(packet, i) is less than this; in units of 2^-32, 2^32 is always.
    Threshold(u64),
    /// With probability `numerator` / 2^`bits`; at most 16 bits, an odd numerator or 1/1.
    Words { numerator: u32, bits: u32 },
}

impl Selection {
    /// By threshold, p rounded to 2^-32.
    pub fn threshold(p: f64) -> Selection {
        Selection::Threshold((p * 4_294_967_296.0 + 0.5) as u64)
    }

    /// By words, p rounded to 2^-16, at least 2^-16.
    pub fn words(p: f64) -> Selection {
        let numerator = ((p * 65_536.0 + 0.5) as u32).clamp(1, 65_536);
        let shift = numerator.trailing_zeros().min(16);
        Selection::Words { numerator: numerator >> shift, bits: 16 - shift }
    }

    /// The probability that a hop acts, as it is after rounding.
    pub fn probability(self) -> f64 {
        match self {
            Selection::Threshold(threshold) => threshold as f64 / 4_294_967_296.0,
            Selection::Words { numerator, bits } => f64::from(numerator) / f64::from(1u32 << bits),
        }
    }

    /// Whether the `hop`-th hop (from 1) acts.
    #[inline]
    pub fn acts(self, word: Word, hop: u32) -> bool {
        match self {
            Selection::Threshold(threshold) => u64::from(word.hop(hop)) < threshold,
            Selection::Words { numerator, bits } => {
                fold(word, (hop - 1) / 64, numerator, bits) >> ((hop - 1) % 64) & 1 == 1
            }
        }
    }

    /// All of the first `hops` hops that act.
    #[inline]
    pub fn contributors(self, word: Word, hops: u32) -> HopSet {
        let mut set = [0; HOP_WORDS];
        match self {
            Selection::Threshold(threshold) => {
                for (block, place) in set.iter_mut().enumerate().take(hops.div_ceil(64) as usize) {
                    let first = 64 * block as u32 + 1;
                    // Gathered in a register: 64 hashes that do not wait for each other.
                    *place = (first..=hops.min(first + 63)).fold(0, |acting, hop| {
                        acting | u64::from(u64::from(word.hop(hop)) < threshold) << (hop - first)
                    });
                }
            }
            Selection::Words { numerator, bits } => {
                let mut left = hops;
                for (block, place) in set.iter_mut().enumerate() {
                    if left == 0 {
                        break;
                    }
                    let here = left.min(64);
                    *place = fold(word, block as u32, numerator, bits) & (u64::MAX >> (64 - here));
                    left -= here;
                }
            }
        }
        set
    }
}

/// A word whose bits are set with probability `numerator` / 2^`bits`, for the `block`-th 64 hops: from the lowest bit of the
/// numerator to the highest, a 1 joins another word by OR, a 0 by AND. Bit n of the numerator takes word 16 * block + n.
#[inline]
fn fold(word: Word, block: u32, numerator: u32, bits: u32) -> u64 {
    if numerator >> bits != 0 {
        return u64::MAX;
    }
    let mut folded = 0;
    for n in 0..bits {
        let random = word.bits(16 * block + n);
        folded = if numerator >> n & 1 == 1 { folded | random } else { folded & random };
    }
    folded
}

/// What a packet's layer asks of the hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Hop i overwrites with probability 1/i.
    Baseline,
    /// Every hop that the selection names xors.
    Xor(Selection),
}

/// A code: how the packets are shared out among the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// Layer 0 has the packets with H below this; in units of 2^-32.
    baseline: u64,
    /// XOR layers, the packets that are left shared evenly among them.
    layers: [Selection; MAX_LAYERS],
    count: u32,
}

impl Code {
    /// Baseline with probability `tau` (in [0, 1]), else one of the layers. None if there are more than [`MAX_LAYERS`] layers, none
    /// although tau is less than 1, or `tau` is out of range.
    pub fn new(tau: f64, layers: &[Selection]) -> Option<Code> {
        if !(0.0..=1.0).contains(&tau) || layers.len() > MAX_LAYERS || (layers.is_empty() && tau < 1.0) {
            return None;
        }
        let mut all = [Selection::Threshold(0); MAX_LAYERS];
        all[..layers.len()].copy_from_slice(layers);
        Some(Code { baseline: (tau * 4_294_967_296.0 + 0.5) as u64, layers: all, count: layers.len() as u32 })
    }

    /// The share of packets in layer 0.
    pub fn tau(&self) -> f64 {
        self.baseline as f64 / 4_294_967_296.0
    }

    pub fn layers(&self) -> &[Selection] {
        &self.layers[..self.count as usize]
    }

    /// The layer of a packet.
    #[inline]
    pub fn layer(&self, word: Word) -> Layer {
        let place = u64::from(word.layer());
        if place < self.baseline || self.count == 0 {
            return Layer::Baseline;
        }
        if self.count == 1 {
            return Layer::Xor(self.layers[0]);
        }
        let width = (1u64 << 32) - self.baseline;
        let index = ((place - self.baseline) * u64::from(self.count)) / width;
        Layer::Xor(self.layers[index as usize])
    }

    /// The hops of `hops` (beyond [`MAX_HOPS`] counts as that) whose blocks are in a packet's field, XORed: one in layer 0, any number
    /// in another layer.
    #[inline]
    pub fn writers(&self, word: Word, hops: u32) -> HopSet {
        match self.layer(word) {
            Layer::Baseline => {
                let hop = survivor(word, hops.min(MAX_HOPS)) - 1;
                let mut set = [0; HOP_WORDS];
                set[(hop / 64) as usize] = 1 << (hop % 64);
                set
            }
            Layer::Xor(selection) => selection.contributors(word, hops),
        }
    }
}

/// Whether hop `hop` (from 1) overwrites in reservoir sampling: g < floor(2^32 / hop).
#[inline]
pub fn reservoir_acts(word: Word, hop: u32) -> bool {
    u64::from(word.hop(hop)) < reservoir_threshold(hop)
}

/// floor(2^32 / hop): what g must be below.
#[inline]
pub(crate) const fn reservoir_threshold(hop: u32) -> u64 {
    RESERVOIR[if hop < MAX_HOPS { hop } else { MAX_HOPS } as usize]
}

/// The hop of `hops` whose value survives reservoir sampling: the last that acted.
#[inline]
pub fn survivor(word: Word, hops: u32) -> u32 {
    if hops <= SHORT {
        // The first hop always acts. A short path costs less without a branch that depends on the packet.
        let acting =
            (2..=hops).fold(1, |acting, hop| acting | u32::from(reservoir_acts(word, hop)) << (hop - 1));
        return 32 - acting.leading_zeros();
    }
    (2..=hops).rev().find(|&hop| reservoir_acts(word, hop)).unwrap_or(1)
}

/// Hops up to which [`survivor`] asks all.
const SHORT: u32 = 8;

/// floor(2^32 / i); place 0 is not used.
static RESERVOIR: [u64; MAX_HOPS as usize + 1] = {
    let mut table = [0; MAX_HOPS as usize + 1];
    let mut hop = 1;
    while hop <= MAX_HOPS as usize {
        table[hop] = (1 << 32) / hop as u64;
        hop += 1;
    }
    table
};

#[cfg(test)]
mod tests;
