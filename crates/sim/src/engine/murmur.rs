//! MurmurHash3, the 32-bit variant for x86, which two of the reproduced simulators use.
//!
//! For each word k of four bytes in little-endian order: `h := 5 rotl(h ^ rotl(k c1, 15) c2, 13) + n`. Up to
//! three remaining bytes are mixed in without the last rotation. Then the length is added, and a final mix
//! makes every output bit depend on every input bit.
//!
//! Source: A. Appleby, MurmurHash3 (2011, public domain).

/// Hash of whole words.
pub fn of_words(words: &[u32], seed: u32) -> u32 {
    finish(words.iter().fold(seed, |hash, &word| add(hash, word)), words.len() * 4)
}

/// Hash of any number of bytes.
pub fn of_bytes(bytes: &[u8], seed: u32) -> u32 {
    let words = bytes.chunks_exact(4);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    let last = word(words.remainder());
    let hash = words.fold(seed, |hash, bytes| add(hash, word(bytes)));
    finish(hash ^ scramble(last), bytes.len())
}

fn scramble(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

fn add(hash: u32, word: u32) -> u32 {
    (hash ^ scramble(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

fn finish(hash: u32, bytes: usize) -> u32 {
    let hash = hash ^ bytes as u32;
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests;
