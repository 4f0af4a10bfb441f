//! One block of SHA-1 or SHA-256: all that keys, tokens and the codes of MPTCP need.
//!
//! Source: FIPS 180-4 §6.1.2, §6.2.2 (compression), §5.3 (initial values).

pub const SHA1: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

pub const SHA256: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The end of a message: at most 13 words, a bit, and the length of the whole message in bytes.
pub fn last_block(words: &[u32], length: u32) -> [u32; 16] {
    let mut block = [0; 16];
    block[..words.len()].copy_from_slice(words);
    block[words.len()] = 1 << 31;
    block[15] = 8 * length;
    block
}

/// SHA-1's state after one more block.
pub fn sha1(state: [u32; 5], block: &[u32; 16]) -> [u32; 5] {
    let mut words = [0u32; 80];
    words[..16].copy_from_slice(block);
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for (round, word) in words.into_iter().enumerate() {
        let (mixed, constant) = match round / 20 {
            0 => (b & c | !b & d, 0x5a82_7999u32),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next =
            a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    let end = [a, b, c, d, e];
    std::array::from_fn(|at| state[at].wrapping_add(end[at]))
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// SHA-256's state after one more block.
pub fn sha256(state: [u32; 8], block: &[u32; 16]) -> [u32; 8] {
    let mut words = [0u32; 64];
    words[..16].copy_from_slice(block);
    for at in 16..64 {
        let (early, late) = (words[at - 15], words[at - 2]);
        let first = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let second = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        words[at] = words[at - 16].wrapping_add(first).wrapping_add(words[at - 7]).wrapping_add(second);
    }
    let mut s = state;
    for (word, constant) in words.into_iter().zip(ROUNDS) {
        let choice = s[4] & s[5] ^ !s[4] & s[6];
        let majority = s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2];
        let low = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
        let high = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
        let first = s[7].wrapping_add(low).wrapping_add(choice).wrapping_add(constant).wrapping_add(word);
        s = [
            first.wrapping_add(high.wrapping_add(majority)),
            s[0],
            s[1],
            s[2],
            s[3].wrapping_add(first),
            s[4],
            s[5],
            s[6],
        ];
    }
    std::array::from_fn(|at| state[at].wrapping_add(s[at]))
}
