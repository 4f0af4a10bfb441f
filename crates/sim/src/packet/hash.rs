//! The hashes that senders give their packets; balancers choose paths by them.

use crate::engine::random::mix64;

/// Hash of a flow in its forward direction.
pub fn flow_hash(src: u32, dst: u32, flow: u32) -> u32 {
    (mix64(mix64(u64::from(src) << 32 | u64::from(dst)) ^ u64::from(flow)) >> 32) as u32
}

/// Hash of the same flow's acknowledgements, which choose their path on their own.
#[inline]
pub fn reverse_hash(hash: u32) -> u32 {
    hash.rotate_left(16).wrapping_mul(0x9e37_79b1) ^ 0x5bd1_e995
}
