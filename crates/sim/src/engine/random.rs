//! Random streams: one for each entity and purpose, derived from the run's seed and a name.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64 over the seed and an FNV-1a
//! hash of the name. The bits are part of a run's result: generator, seeding and the transformations below
//! must not change. Logarithms come from `libm`, which is the same on every platform.

/// A reproducible stream of random numbers.
#[derive(Clone, Debug)]
pub struct RandomStream {
    state: [u64; 4],
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix64(*state)
}

/// The finaliser of splitmix64: every output bit depends on every input bit.
pub fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a run's seed adds to the salts of the hashes that select paths and queues of flows: 0 for seed 1, the
/// default, so that the salt alone determines the hash then.
pub fn hash_salt(seed: u64) -> u64 {
    mix64(seed.wrapping_sub(1))
}

impl RandomStream {
    /// Creates the stream of `name` (such as `workload.0.host17.sizes`) in a run with this seed.
    pub fn new(seed: u64, name: &str) -> RandomStream {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut state = mix64(seed) ^ hash;
        RandomStream { state: std::array::from_fn(|_| splitmix64(&mut state)) }
    }

    /// A number for its position.
    pub fn position(&self) -> u64 {
        self.state.iter().fold(0, |sum, &word| mix64(sum ^ word))
    }

    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform number in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a uniform integer in 0..n without bias (Lemire 2019). `n` must not be zero.
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        let threshold = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns an exponentially distributed number with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u lies in (0, 1], so the logarithm is finite.
        -mean * libm::log(1.0 - self.uniform())
    }
}

#[cfg(test)]
mod tests;
