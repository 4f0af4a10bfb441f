//! Tests of `options`.

use super::*;
use proptest::prelude::*;

#[test]
fn the_forms_of_both_versions_are_distinguished_by_their_length() {
    let capable =
        |version, sender, receiver| Some(MptcpOption::Capable { version, checksum: true, sender, receiver });
    // After a maximum segment size, padding and a timestamp, as in a first packet.
    let mut syn = vec![2, 4, 5, 0xb4, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0];
    syn.extend([30, 4, 0x01, 0x81]);
    assert_eq!(find(&syn), capable(1, None, None));
    let mut third = vec![30, 20, 0x01, 0x81];
    third.extend(7u64.to_be_bytes());
    third.extend(9u64.to_be_bytes());
    assert_eq!(find(&third), capable(1, Some(7), Some(9)));
    let mut old = vec![30, 12, 0x00, 0x81];
    old.extend(7u64.to_be_bytes());
    assert_eq!(find(&old), capable(0, Some(7), None));
    let join = [30, 12, 0x10, 2, 0xe9, 0xd6, 0x2d, 0xff, 0, 0, 0, 5];
    let expected = Join::Syn { address: 2, token: 0xe9d6_2dff, nonce: 5 };
    assert_eq!(find(&join), Some(MptcpOption::Join(expected)));
    assert_eq!(find(&[30, 8, 0x20, 1, 0, 0, 0, 0]), Some(MptcpOption::Other(2)), "a data sequence option");
}

const ANNOUNCED: Announcement =
    Announcement { id: 2, address: [10, 0, 0, 5], port: 50_002, proof: Some(7 << 40 | 9) };

#[test]
fn an_announced_address_without_a_port_or_of_ipv6_is_another_option() {
    let (bytes, _) = MptcpOption::Announcement(ANNOUNCED).write();
    assert_eq!(bytes[..12], [30, 18, 0x30, 2, 10, 0, 0, 5, 0xc3, 0x52, 0, 0]);
    // As Linux 6.18 sent one that was known, padding included.
    let known = [30, 10, 0x31, 3, 10, 0, 0, 2, 0x23, 0x2b];
    let expected = Announcement { id: 3, address: [10, 0, 0, 2], port: 9003, proof: None };
    assert_eq!(find(&known), Some(MptcpOption::Announcement(expected)));
    assert_eq!(MptcpOption::Announcement(expected).write().0[..12], [&known[..], &[1, 1]].concat());
    for length in [16, 8, 28, 30] {
        let mut option = vec![0; length];
        option[..4].copy_from_slice(&[30, length as u8, 0x30, 2]);
        assert_eq!(find(&option), Some(MptcpOption::Other(3)), "{length}");
    }
}

#[test]
fn what_was_written_is_found_again() {
    let capable =
        |version, sender, receiver| MptcpOption::Capable { version, checksum: false, sender, receiver };
    let all = [
        (MptcpOption::Capable { version: 1, checksum: true, sender: None, receiver: None }, 4),
        (capable(1, None, None), 4),
        (capable(0, Some(7), None), 12),
        (capable(1, Some(7), Some(u64::MAX)), 20),
        (MptcpOption::Join(Join::Syn { address: 3, token: 0xe9d6_2dff, nonce: 5 }), 12),
        (MptcpOption::Join(Join::SynAck { address: 3, proof: 1 << 60 | 9, nonce: 5 }), 16),
        (MptcpOption::Join(Join::Ack { proof: [1, 2, 3, 4, u32::MAX] }), 24),
        (MptcpOption::Announcement(ANNOUNCED), 20),
        (MptcpOption::Announcement(Announcement { proof: None, ..ANNOUNCED }), 12),
    ];
    for (option, expected) in all {
        let (bytes, length) = option.write();
        assert_eq!(length, expected, "{option:?}");
        assert_eq!(find(&bytes[..length]), Some(option));
    }
}

#[test]
fn what_is_cut_off_or_ends_before_is_no_option() {
    for options in [
        &[][..],
        &[30],
        &[30, 12, 0x10, 2],
        &[30, 1],
        &[30, 0, 0, 0],
        &[0, 30, 4, 1, 0x81],
        &[30, 9, 1, 0, 0, 0, 0, 0, 0],
    ] {
        assert_eq!(find(options), None, "{options:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        find(&bytes);
    }
}
