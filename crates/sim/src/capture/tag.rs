//! Headers that switches add to packets for load balancers, as an option of the IPv4 header; and their
//! probes, as frames with their own EtherType.
//!
//! ```text
//!  0      158: an option for experiments, copied to fragments; of a probe 0
//!  1      bytes of the option, 12
//!  2      what it is: every balancer that writes one has a number of its own
//!  3      and what the balancer has there ([`BalancerParameters::tag`](crate::balance::BalancerParameters::tag) says it)
//! ```
//!
//! Source: The form is ours, and so is the place, which every reader of captures can pass over; number and type are those kept for
//! experiments (RFC 4727 §3.1; IEEE Std 802).

use crate::balance::Tag;

/// The EtherType of probes (IEEE Std 802, local experimental 1).
pub const ETHERTYPE: u16 = 0x88b5;
/// The number of the option (RFC 4727 §3.1), with the bit that says that fragments have it too.
pub const OPTION: u8 = 158;

/// The bytes of a tag; `option`: [`OPTION`], or 0 in a probe.
pub fn bytes(option: u8, tag: &Tag) -> Vec<u8> {
    [&[option, 12, tag.kind, tag.first][..], &tag.rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_an_option_of_twelve_bytes() {
        let tag = Tag { kind: 2, first: 5, rest: [0, 0, 0, 7, 3, 6, 5, 0] };
        assert_eq!(bytes(OPTION, &tag), [158, 12, 2, 5, 0, 0, 0, 7, 3, 6, 5, 0]);
    }
}
