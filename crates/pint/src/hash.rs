//! The global hash functions, stated to the bit: what a twin in C, P4 or eBPF must compute.
//!
//! All arithmetic is on unsigned 64-bit words and wraps. With `mix` the finaliser of splitmix64 and G = 0x9e3779b97f4a7c15:
//!
//! | function | value |
//! |---|---|
//! | key of purpose n under a seed | mix(seed + n G) |
//! | word of a packet under a key | w = (mix(packet id) xor key) 0xbf58476d1ce4e5b9 |
//! | q, which query set | w(key 0) >> 48, in units of 2^-16 |
//! | H, which layer | w >> 32, in units of 2^-32 |
//! | g, does hop i act (i from 1) | fold(w + i G) >> 32, in units of 2^-32 |
//! | bits of 64 hops for the word selection | mix(w + (2^32 + n) G), n-th word |
//! | h, b bits of a value | fold(w xor (((v xor (v >> 32)) + 1) 0xd1342543de82ef95)) >> (64 - b) |
//! | r, the coin of hop i for rounding | fold(w + (2^33 + i) G) >> 32, in units of 2^-32 |
//! | which of F fragments | ((mix(w + 2^34 G) >> 32) F) >> 32 |
//!
//! with fold(x) = (x xor (x >> 32)) 0x94d049bb133111eb. A packet's id is mixed once, for all keys: its words are as good as random numbers
//! already, and one more multiplication, of which the upper bits are taken, keeps what is drawn from them apart.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.1 (which functions, and on what). The mixer is Steele, Lea and Flood,
//! "Fast splittable pseudorandom number generators", OOPSLA 2014, with the constants of splitmix64.

/// 2^64 over the golden ratio; steps between the inputs of one packet's hashes.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Spreads values before they meet the packet's word.
pub const VALUE_FACTOR: u64 = 0xd134_2543_de82_ef95;
/// Keep the words of one packet under two keys apart, and what is drawn from one word.
const KEY_FACTOR: u64 = 0xbf58_476d_1ce4_e5b9;
const FOLD_FACTOR: u64 = 0x94d0_49bb_1331_11eb;
const WORDS: u64 = 1 << 32;
const COINS: u64 = 1 << 33;
const FRAGMENT: u64 = 1 << 34;

/// The finaliser of splitmix64: every bit of the result depends on every bit of `x`.
#[inline]
pub const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// One step of mixing; the upper bits depend on every bit of `x`.
#[inline]
const fn fold(x: u64) -> u64 {
    (x ^ (x >> 32)).wrapping_mul(FOLD_FACTOR)
}

/// A value as it meets a packet's word in h; a collector that hashes it again and again keeps this.
#[inline]
pub const fn spread(value: u64) -> u64 {
    (value ^ (value >> 32)).wrapping_add(1).wrapping_mul(VALUE_FACTOR)
}

/// The key of one use of the hashes: purpose 0 is the choice of the query set, each instance of a query has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

impl Key {
    pub const fn new(seed: u64, purpose: u64) -> Key {
        Key(mix(seed.wrapping_add(purpose.wrapping_mul(GOLDEN))))
    }

    /// What all hashes of this packet under this key start from.
    #[inline]
    pub const fn word(self, packet: u64) -> Word {
        self.word_of(Mixed::new(packet))
    }

    /// The same of a packet whose id is mixed already.
    #[inline]
    pub const fn word_of(self, packet: Mixed) -> Word {
        Word((packet.0 ^ self.0).wrapping_mul(KEY_FACTOR))
    }
}

#[cfg(test)]
impl Key {
    /// The key under which a packet has this word.
    pub(crate) fn giving(packet: Mixed, word: u64) -> Key {
        // Newton's iteration for the inverse of an odd number; each step doubles the bits that are right.
        let inverse = (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub(KEY_FACTOR.wrapping_mul(x))));
        Key(word.wrapping_mul(inverse) ^ packet.0)
    }
}

/// A packet's id, mixed for all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mixed(u64);

impl Mixed {
    #[inline]
    pub const fn new(packet: u64) -> Mixed {
        Mixed(mix(packet))
    }
}

/// What sets the hashes of one hop apart, for all packets and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopSalt(u64);

impl HopSalt {
    #[inline]
    pub const fn new(hop: u32) -> HopSalt {
        HopSalt((hop as u64).wrapping_mul(GOLDEN))
    }
}

/// The hashes of one packet under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// q: which query set, in units of 2^-16.
    #[inline]
    pub const fn share(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// H: which layer, in units of 2^-32.
    #[inline]
    pub const fn layer(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// g: whether the `hop`-th hop (from 1) acts, in units of 2^-32.
    #[inline]
    pub const fn hop(self, hop: u32) -> u32 {
        self.hop_of(HopSalt::new(hop))
    }

    /// g of a hop whose salt is kept.
    #[inline]
    pub const fn hop_of(self, hop: HopSalt) -> u32 {
        (self.hop_word(hop) >> 32) as u32
    }

    /// The word whose upper half is g, for one who compares it with a threshold that is as wide.
    #[inline]
    pub(crate) const fn hop_word(self, hop: HopSalt) -> u64 {
        fold(self.0.wrapping_add(hop.0))
    }

    /// The `n`-th pseudo-random word; bit i of it belongs to one hop.
    #[inline]
    pub const fn bits(self, n: u32) -> u64 {
        mix(self.0.wrapping_add((WORDS + n as u64).wrapping_mul(GOLDEN)))
    }

    /// h: `bits` bits (1 to 64) of `value` on this packet.
    #[inline]
    pub const fn value(self, value: u64, bits: u32) -> u64 {
        self.spread_value(spread(value), bits)
    }

    /// h of a value that was [`spread`] before.
    #[inline]
    pub const fn spread_value(self, spread: u64, bits: u32) -> u64 {
        fold(self.0 ^ spread) >> (64 - bits)
    }

    /// r: the coin of the `hop`-th hop, in units of 2^-32.
    #[inline]
    pub const fn coin(self, hop: u32) -> u32 {
        self.coin_of(HopSalt::new(hop))
    }

    /// r of a hop whose salt is kept.
    #[inline]
    pub const fn coin_of(self, hop: HopSalt) -> u32 {
        const COINS_SALT: u64 = COINS.wrapping_mul(GOLDEN);
        (fold(self.0.wrapping_add(COINS_SALT).wrapping_add(hop.0)) >> 32) as u32
    }

    /// Which of `count` fragments of a value this packet carries, from 0.
    #[inline]
    pub const fn fragment(self, count: u32) -> u32 {
        let place = mix(self.0.wrapping_add(FRAGMENT.wrapping_mul(GOLDEN))) >> 32;
        ((place * count as u64) >> 32) as u32
    }
}

#[cfg(test)]
mod tests;
