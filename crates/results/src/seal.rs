//! A seal: the digest of a text of JSON as its own last member, so that damage to the text is noticed without another file.
//!
//! ```text
//! {"format": 1, "begun_by": "weftline 0.1.0","digest":"0123456789abcdef0123456789abcdef"}
//! |<---------------- hashed ---------------->|
//! ```
//!
//! Source of the hash: XXH3, 128 bits (Yann Collet, xxHash 0.8). It is not a defence against forgery: accidents
//! are what is to be noticed, and of 2^128 values a damaged text hits the right one by chance never.

use twox_hash::XxHash3_128;

const BEFORE: &[u8] = b",\"digest\":\"";
const AFTER: &[u8] = b"\"}\n";
/// Hexadecimal digits of a digest.
const DIGITS: usize = 32;

/// What a text's own seal states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// It is what was written.
    Whole,
    /// It is not.
    Broken,
    /// It bears no seal, as what earlier versions wrote.
    Absent,
}

/// The digest of some bytes.
pub fn digest(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

/// A digest as text.
pub fn hex(digest: u128) -> String {
    format!("{digest:032x}")
}

/// `text`, an object of JSON, with its seal.
pub fn sealed(text: &str) -> String {
    let body = text.trim_end();
    let body = body.strip_suffix('}').unwrap_or(body).trim_end();
    format!("{body},\"digest\":\"{}\"}}\n", hex(digest(body.as_bytes())))
}

/// Whether a text is as it was sealed.
pub fn seal_of(text: &[u8]) -> Seal {
    let Some(rest) = text.strip_suffix(AFTER) else { return unsealed(text) };
    let Some((rest, digits)) = rest.split_last_chunk::<DIGITS>() else { return unsealed(text) };
    match rest.strip_suffix(BEFORE) {
        Some(body) if hex(digest(body)).as_bytes() == digits => Seal::Whole,
        Some(_) => Seal::Broken,
        None => unsealed(text),
    }
}

/// Of a text that does not end with a seal: broken if there is something left of one.
fn unsealed(text: &[u8]) -> Seal {
    let named = text.windows(8).any(|part| part == b"\"digest\"");
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let digits = text.split(|byte| !is_digit(byte)).any(|run| run.len() == DIGITS);
    if named || digits { Seal::Broken } else { Seal::Absent }
}

#[cfg(test)]
mod tests;
