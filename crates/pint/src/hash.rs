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
mod tests {
    use super::*;

    #[test]
    fn the_mixer_is_splitmix64() {
        // First outputs of splitmix64 seeded with 1234567, as published with the generator.
        let outputs: Vec<u64> =
            (1..=3).map(|n| mix(1_234_567u64.wrapping_add(GOLDEN.wrapping_mul(n)))).collect();
        assert_eq!(
            outputs,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn fragments_are_drawn_evenly() {
        let mut counts = [0u32; 5];
        (0..50_000).for_each(|packet| counts[Key::new(3, 1).word(packet).fragment(5) as usize] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 450), "{counts:?}");
        assert_eq!(Word(9).fragment(1), 0);
    }

    /// What is drawn for one packet, each as its upper 32 bits.
    fn drawn(packet: u64) -> Vec<u32> {
        let [selector, first, second] = [0, 1, 2].map(|purpose| Key::new(7, purpose).word(packet));
        let mut all = vec![u32::from(selector.share()) << 16, first.layer(), second.layer()];
        all.extend((1..=4).chain([17, 200]).map(|hop| first.hop(hop)));
        all.extend([second.hop(1), second.hop(2), first.coin(1), first.coin(2), selector.hop(1)]);
        all.extend([0, 1, 2, 3, 511, 512, 1 << 20, 1 << 40].map(|v| first.value(v, 32) as u32));
        all.extend([1, 2].map(|v| second.value(v, 32) as u32));
        all
    }

    #[test]
    fn what_is_drawn_for_one_packet_is_independent_in_pairs() {
        // Chi square of 64 cells has 63 degrees of freedom: mean 63, deviation 11.2; 171 pairs and three kinds of ids.
        const PACKETS: u64 = 100_000;
        for ids in [|n: u64| n, |n: u64| n << 32 ^ 1_000, |n: u64| ((n / 100) << 32) ^ ((n % 100) * 1_000)] {
            let all: Vec<Vec<u32>> = (0..PACKETS).map(|n| drawn(ids(n))).collect();
            for a in 0..all[0].len() {
                for b in 0..a {
                    let mut cells = [0f64; 64];
                    all.iter()
                        .for_each(|draws| cells[(draws[a] >> 29 << 3 | draws[b] >> 29) as usize] += 1.0);
                    let expected = PACKETS as f64 / 64.0;
                    let chi: f64 = cells.iter().map(|n| (n - expected) * (n - expected) / expected).sum();
                    assert!(chi < 63.0 + 5.5 * 11.2, "{a} and {b}: {chi}");
                }
            }
        }
    }

    #[test]
    fn the_sum_of_three_draws_is_even_half_the_time() {
        const PACKETS: u64 = 100_000;
        let all: Vec<Vec<u32>> = (0..PACKETS).map(|n| drawn((n << 32) ^ (n * 1_000))).collect();
        let draws = all[0].len();
        for (a, b, c) in (0..draws).flat_map(|a| (0..a).flat_map(move |b| (0..b).map(move |c| (a, b, c)))) {
            let odd = all.iter().filter(|draws| (draws[a] ^ draws[b] ^ draws[c]) >> 31 == 1).count();
            // 5.5 deviations.
            assert!((odd as f64 - 50_000.0).abs() < 5.5 * 158.1, "{a}, {b} and {c}: {odd}");
        }
    }

    #[test]
    fn two_values_share_a_hash_as_often_as_its_bits_say() {
        for (a, b) in
            [(0, 1), (1, 2), (3, 1 << 33), (7, 7 + (1 << 63)), (100, 356), (2 << 56 | 5, 3 << 56 | 5)]
        {
            for bits in [1, 4, 8] {
                let same = (0..1_000_000u64).filter(|&packet| {
                    let word = Key::new(3, 1).word(packet);
                    word.value(a, bits) == word.value(b, bits)
                });
                let (n, p) = (same.count() as f64, (-(f64::from(bits))).exp2());
                assert!(
                    (n - 1e6 * p).abs() < 5.0 * (1e6 * p * (1.0 - p)).sqrt(),
                    "{a}, {b}, {bits} bits: {n}"
                );
            }
        }
    }

    #[test]
    fn hashes_of_other_hops_packets_and_keys_differ() {
        let word = Key::new(1, 1).word(7);
        assert_ne!(word.hop(1), word.hop(2));
        assert_ne!(word.hop(1), word.coin(1));
        assert_ne!(word, Key::new(1, 2).word(7));
        assert_ne!(word, Key::new(1, 1).word(8));
        assert_ne!(word.value(3, 64), word.value(4, 64));
        assert_eq!(word.value(3, 8), word.value(3, 64) >> 56);
    }
}
