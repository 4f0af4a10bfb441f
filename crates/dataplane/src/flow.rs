//! The hash of a flow, as `bpf/weftline_tc.h` has it.

use ::pint::hash::mix;

/// Of addresses (an IPv4 address as ::ffff:a.b.c.d), protocol, and source port (upper half) with destination port; ports are 0 in a
/// packet without ports.
pub fn flow_hash(source: u128, destination: u128, protocol: u8, ports: u32) -> u32 {
    let halves = |address: u128| [(address >> 64) as u64, address as u64];
    let ([a, b], [c, d]) = (halves(source), halves(destination));
    let words = [a, b, c, d, protocol.into(), ports.into()];
    (words.iter().fold(0, |hash, word| mix(hash ^ word)) >> 32) as u32
}
