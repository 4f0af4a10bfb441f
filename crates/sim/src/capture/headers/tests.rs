use super::*;

#[test]
fn a_header_is_that_which_is_worked_out_by_hand() {
    let packet = Packet { wire_class: 3, flags: flag::MARKED, ..Packet::default() };
    let header = ipv4(&packet, TCP, [0, 256], 40);
    // 4500 with class 3 and CE: 4563; 60 bytes; ttl 64 and TCP: 4006; 10.0.0.1 and 10.0.1.1.
    let words: [u16; 9] = [0x4563, 60, 0, 0x4000, 0x4006, 0x0a00, 0x0001, 0x0a00, 0x0101];
    let sum = words.iter().map(|&word| u32::from(word)).sum::<u32>();
    assert_eq!(sum, 0xdaa7);
    assert_eq!(header[10..12], (!0xdaa7u16).to_be_bytes());
    assert_eq!(checksum(&[&header]), 0, "a header sums to zero with its checksum");
    assert_eq!(header[16..], [10, 0, 1, 1]);
}

#[test]
fn options_lengthen_a_header_and_its_checksum_holds() {
    let mut frame = vec![7; 3];
    frame.extend(ipv4(&Packet::default(), UDP, [0, 1], 8));
    frame.extend([9; 8]);
    add_options(&mut frame, 3, &[0x9e, 4, 1, 2]);
    assert_eq!((frame[3], frame[5..7].to_vec()), (0x46, vec![0, 32]));
    assert_eq!(frame[23..31], [0x9e, 4, 1, 2, 9, 9, 9, 9]);
    assert_eq!(checksum(&[&frame[3..27]]), 0);
}

#[test]
fn the_checksum_of_the_example_in_rfc_1071_is_right() {
    // §3: 0001 f203 f4f5 f6f7 sum to ddf2.
    assert_eq!(checksum(&[&[0, 1, 0xf2, 3], &[0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
    assert_eq!(checksum(&[&[1]]), !0x0100, "an odd byte is the high one");
}

#[test]
fn only_data_say_that_they_may_be_marked() {
    let bits = |kind, flags| congestion_bits(&Packet { kind, flags, ..Packet::default() });
    assert_eq!(bits(PacketKind::Data, 0), 2);
    assert_eq!(bits(PacketKind::Data, flag::NOT_CAPABLE), 0);
    assert_eq!(bits(PacketKind::Data, flag::MARKED), 3);
    assert_eq!(bits(PacketKind::Ack, flag::MARKED), 0, "an echo is no mark");
}
