//! What follows from the keys of the two ends of a connection: tokens, initial data sequence numbers, and the codes by which a
//! host that joins a subflow proves that it knows both keys.
//!
//! The token is the first 32 bits of a hash of the key, the initial data sequence number its last 64: of SHA-1 in version 0, of
//! SHA-256 in version 1. The code is the HMAC of two nonces under the two keys, the prover's first, cut to 160 bits.
//!
//! Source: RFC 6824 §3.1 and §3.2, RFC 8684 §3.1 and §3.2; FIPS 180-4 for the hashes, RFC 2104 for HMAC.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Of MPTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V0,
    V1,
}

impl Version {
    /// The number that MP_CAPABLE has.
    pub fn number(self) -> u8 {
        match self {
            Version::V0 => 0,
            Version::V1 => 1,
        }
    }
}

/// The token of the host with this key.
pub fn token(version: Version, key: u64) -> u32 {
    let key = key.to_be_bytes();
    match version {
        Version::V0 => word(&Sha1::digest(key)),
        Version::V1 => word(&Sha256::digest(key)),
    }
}

/// The initial data sequence number of the host with this key.
pub fn initial_sequence(version: Version, key: u64) -> u64 {
    let key = key.to_be_bytes();
    match version {
        Version::V0 => last_words(&Sha1::digest(key)),
        Version::V1 => last_words(&Sha256::digest(key)),
    }
}

/// The code of the end whose key and nonce stand first.
pub fn proof(version: Version, keys: [u64; 2], nonces: [u32; 2]) -> [u32; 5] {
    let key = (u128::from(keys[0]) << 64 | u128::from(keys[1])).to_be_bytes();
    let message = (u64::from(nonces[0]) << 32 | u64::from(nonces[1])).to_be_bytes();
    match version {
        Version::V0 => first_words(&code::<Hmac<Sha1>>(&key, &message)),
        Version::V1 => first_words(&code::<Hmac<Sha256>>(&key, &message)),
    }
}

fn code<M: Mac + KeyInit>(key: &[u8; 16], message: &[u8]) -> impl AsRef<[u8]> {
    let mut mac =
        <M as KeyInit>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(message);
    mac.finalize().into_bytes()
}

/// The code of an announced address: `keys` are that of the end which announces it and the other end's; the last 64 bits
/// of an HMAC (RFC 8684 §3.4.1, so of version 1).
pub fn announcement(keys: [u64; 2], id: u8, address: [u8; 4], port: u16) -> u64 {
    let key = (u128::from(keys[0]) << 64 | u128::from(keys[1])).to_be_bytes();
    let [a, b, c, d] = address;
    let [high, low] = port.to_be_bytes();
    last_words(code::<Hmac<Sha256>>(&key, &[id, a, b, c, d, high, low]).as_ref())
}

/// The first 64 bits of a code, which the answer to a join has.
pub fn short(proof: [u32; 5]) -> u64 {
    u64::from(proof[0]) << 32 | u64::from(proof[1])
}

/// The first 32 bits of a hash.
fn word(bytes: &[u8]) -> u32 {
    bytes[..4].iter().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// The last 64.
fn last_words(bytes: &[u8]) -> u64 {
    let low = bytes.len() - 4;
    u64::from(word(&bytes[low - 4..])) << 32 | u64::from(word(&bytes[low..]))
}

/// The first 160.
fn first_words(bytes: &impl AsRef<[u8]>) -> [u32; 5] {
    std::array::from_fn(|at| word(&bytes.as_ref()[4 * at..]))
}

#[cfg(test)]
mod tests;
