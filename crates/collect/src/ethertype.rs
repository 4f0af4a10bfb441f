//! What may stand between the EtherType of a frame and its IP packet: VLAN and service tags, a provider's own
//! Ethernet header, LLC with SNAP, a PPPoE session, and MPLS labels with IP or a whole Ethernet frame below
//! them.
//!
//! A label stack does not state what it carries: that follows from the first four bits, as routers take it
//! that spread flows over links. A pseudowire without a control word whose frame begins with 4 or 6 is taken
//! for IP.
//!
//! Source: IEEE 802.1Q (tags), 802.1ah (service instance tag); RFC 1042 (SNAP); RFC 2516 §4, RFC 1661 (PPPoE,
//! PPP); RFC 3032 §2.1, RFC 4385 §3, RFC 4448 §4, RFC 4928 §3 (MPLS).

use crate::Malformed;
use crate::bytes::u16_at;
use crate::ip::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};

/// The maximum number of tags, labels and frames in frames that are followed.
const MAX_NESTED: usize = 8;
/// An EtherType of up to this is the length of an IEEE 802.3 frame.
const MAX_LENGTH: u16 = 1_500;
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// The IP packet of an Ethernet frame; None if it carries something else.
pub(crate) fn ethernet(frame: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    nested_ethernet(frame, 0)
}

/// The IP packet at `at`, after an EtherType; None if there is something else.
pub(crate) fn after_ethertype(frame: &[u8], ethertype: u16, at: usize) -> Result<Option<&[u8]>, Malformed> {
    nested(frame, ethertype, at, 0)
}

fn nested_ethernet(frame: &[u8], depth: usize) -> Result<Option<&[u8]>, Malformed> {
    nested(frame, u16_at(frame, 12).ok_or(Malformed::Frame)?, 14, depth)
}

fn nested(frame: &[u8], mut ethertype: u16, mut at: usize, depth: usize) -> Result<Option<&[u8]>, Malformed> {
    let number = |at| u16_at(frame, at).ok_or(Malformed::Frame);
    let rest = |at| frame.get(at..).ok_or(Malformed::Frame);
    for depth in depth..MAX_NESTED {
        match ethertype {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return rest(at).map(Some),
            // Tags; CSIG's (TPID 0x9900) has the same shape.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 | 0x9900 => {
                ethertype = number(at + 2)?;
                at += 4;
            }
            0x8847 | 0x8848 => return below_labels(rest(at)?, depth + 1),
            0x8864 => {
                return match number(at + 6)? {
                    0x0021 | 0x0057 => rest(at + 8).map(Some),
                    0x0281 | 0x0283 => below_labels(rest(at + 8)?, depth + 1),
                    _ => Ok(None),
                };
            }
            0x88e7 => return nested_ethernet(rest(at + 4)?, depth + 1),
            ..=MAX_LENGTH if rest(at)?.starts_with(&SNAP) => {
                ethertype = number(at + 6)?;
                at += 8;
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn below_labels(labels: &[u8], depth: usize) -> Result<Option<&[u8]>, Malformed> {
    // The lowest bit of the third byte ends the stack.
    let last = labels.chunks_exact(4).position(|label| label[2] & 1 == 1).ok_or(Malformed::Frame)?;
    let below = &labels[4 * (last + 1)..];
    match below.first().ok_or(Malformed::Frame)? {
        0x45..=0x4f | 0x60..=0x6f => Ok(Some(below)),
        // The control word of a pseudowire, or an address that begins with zeros.
        0x00..=0x0f => match nested_ethernet(below.get(4..).ok_or(Malformed::Frame)?, depth) {
            Ok(Some(ip)) if matches!(ip.first().map(|first| first >> 4), Some(4 | 6)) => Ok(Some(ip)),
            _ => nested_ethernet(below, depth),
        },
        // An associated channel.
        0x10..=0x1f => Ok(None),
        _ => nested_ethernet(below, depth),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        let mut whole = vec![2; 12];
        parts.iter().for_each(|part| whole.extend(*part));
        whole
    }

    #[test]
    fn ip_is_found_after_all_that_may_stand_before_it() {
        let label = |more: u8| [0, 1, more, 64];
        let (top, bottom) = (label(0), label(1));
        let inner = frame(&[&[0x81, 0, 0, 7, 8, 0], &IP]);
        let zeros = [&[0; 12][..], &[8, 0], &IP].concat();
        for parts in [
            vec![&[8, 0][..], &IP],
            vec![&[0x88, 0xa8, 0, 5, 0x92, 0, 0, 6, 8, 0], &IP],
            vec![&[0x88, 0x47], &bottom, &IP],
            vec![&[0x81, 0, 0, 5, 0x88, 0x48], &top, &top, &bottom, &IP],
            vec![&[0x88, 0x47], &top, &bottom, &[0, 0, 0, 9], &inner],
            vec![&[0x88, 0x47], &bottom, &inner],
            vec![&[0x88, 0x47], &bottom, &zeros],
            vec![&[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21], &IP],
            vec![&[0x88, 0x64, 0x11, 0, 0, 1, 0, 26, 2, 0x81], &bottom, &IP],
            vec![&[0x88, 0xe7, 0, 1, 2, 3], &inner],
            vec![&[0, 28], &SNAP, &[8, 0], &IP],
        ] {
            let whole = frame(&parts);
            assert_eq!(ethernet(&whole), Ok(Some(&IP[..])), "{parts:x?}");
            // Cut off anywhere, nothing else is found.
            for length in 0..whole.len() {
                let found = ethernet(&whole[..length]);
                assert!(
                    found.is_err() || found.is_ok_and(|ip| ip.is_none_or(|ip| IP.starts_with(ip))),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_ip_is_recognised() {
        let bottom = [0, 1, 1, 64];
        for parts in [
            vec![&[8, 6][..], &IP],
            vec![&[0x88, 0x47], &bottom, &[0x10, 0, 0, 7], &IP],
            vec![&[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0xc0, 0x21], &IP],
            vec![&[0, 23, 0x42, 0x42, 3], &IP],
        ] {
            assert_eq!(ethernet(&frame(&parts)), Ok(None), "{parts:x?}");
        }
        // Labels without end, and frames in frames.
        assert_eq!(ethernet(&frame(&[&[0x88, 0x47], &[0; 400]])), Err(Malformed::Frame));
        let mut deep = frame(&[&[8, 0], &IP]);
        for _ in 0..40 {
            deep = frame(&[&[0x88, 0xe7, 0, 0, 0, 0], &deep]);
        }
        assert_eq!(ethernet(&deep), Ok(None));
    }
}
