//! CLOVE worked out by hand.

use super::*;
use crate::units::Rate;

fn config(feedback: CloveFeedback) -> CloveParameters {
    CloveParameters {
        feedback,
        flowlets: FlowletParameters { gap: Time::from_us(200), slots: 4096 },
        paths: 16,
        relay_interval: Time::from_us(40),
        congested_for: Time::from_us(80),
        cut: 512,
        hide_marks: false,
        time_constant: Time::from_us(160),
        ageing: Time::from_ms(10),
        header: 0,
    }
}

/// A host with one other, by so many paths with hashes 100, 101, ...
fn host(config: CloveParameters, paths: u32) -> CloveHost {
    let mut clove = CloveHost::new(config, 1, 0);
    clove.peers.push(Peer::default());
    clove.set_paths(0, &(100..100 + paths).collect::<Vec<_>>(), 4);
    clove
}

fn data(hash: u32) -> Packet {
    Packet { hash, size: 1000, ..Packet::default() }
}

/// Sends a packet of a flow; what it carries, with the utilisation that it met.
fn send(clove: &mut CloveHost, hash: u32, utilisation: u8, us: u64) -> (Packet, u64) {
    let mut packet = data(hash);
    let word = clove.sends(0, &mut packet, Time::from_us(us));
    (packet, CloveHeader { utilisation, ..CloveHeader::unpack(word) }.pack())
}

fn weights(clove: &CloveHost) -> Vec<u64> {
    clove.peers[0].paths.iter().map(|path| path.weight * 1024 / WHOLE).collect()
}

#[test]
fn headers_pack_into_a_word() {
    for feedback in [None, Some((0, 0)), Some((126, 255)), Some((3, 1))] {
        let header = CloveHeader { inner: 0xdead_beef, tag: NO_PATH, utilisation: 200, feedback };
        assert_eq!(CloveHeader::unpack(header.pack()), header);
    }
}

#[test]
fn packets_go_by_a_path_s_hash_and_arrive_with_their_own() {
    let mut a = host(config(CloveFeedback::Ecn), 4);
    let mut b = host(config(CloveFeedback::Ecn), 4);
    let (mut packet, word) = send(&mut a, 7, 0, 0);
    assert!((100..104).contains(&packet.hash));
    b.receives(0, &mut packet, word, Time::from_us(10));
    assert_eq!((packet.hash, packet.size), (7, 1000));
    // Where there is one path nothing is chosen, and no mark is told of.
    let mut alone = host(config(CloveFeedback::Ecn), 1);
    let (packet, word) = send(&mut alone, 7, 0, 0);
    assert_eq!((packet.hash, CloveHeader::unpack(word).tag), (7, NO_PATH));
}

#[test]
fn by_hand_a_marked_packet_halves_the_weight_of_its_path_for_the_others() {
    let mut a = host(config(CloveFeedback::Ecn), 4);
    let mut b = host(config(CloveFeedback::Ecn), 4);
    assert_eq!(weights(&a), [256; 4]);
    // Flowlets take the four paths in turn.
    let tags: Vec<u8> = (0..8).map(|flow| CloveHeader::unpack(send(&mut a, flow, 0, 0).1).tag).collect();
    assert_eq!(tags, [0, 1, 2, 3, 0, 1, 2, 3]);
    // A packet by path 2 is marked. The next packet back says so, and the one behind it does not.
    let (mut packet, word) = send(&mut a, 2, 0, 10);
    packet.flags |= flag::MARKED;
    b.receives(0, &mut packet, word, Time::from_us(20));
    let (mut back, word) = send(&mut b, 9, 0, 30);
    assert_eq!(CloveHeader::unpack(word).feedback, Some((2, 1)));
    assert_eq!(CloveHeader::unpack(send(&mut b, 9, 0, 31).1).feedback, None);
    // Half of 256 goes to the three others.
    a.receives(0, &mut back, word, Time::from_us(40));
    assert_eq!(weights(&a), [298, 298, 128, 298]);
    // Path 0 is marked too: within 80 us path 2 gets nothing of its half.
    a.learn(0, 0, 1, Time::from_us(60).0);
    assert_eq!(weights(&a), [149, 373, 128, 373]);
    // Marked again much later: all but it are free.
    a.learn(0, 0, 1, Time::from_us(600).0);
    assert_eq!(weights(&a), [74, 398, 152, 398]);
    // In the long run flowlets are as the weights are: 74 of 1024.
    let by_0 = (0..10_240).filter(|flow| a.choose(0, *flow, Time::from_ms(*flow as u64).0) == 0).count();
    assert!((735..760).contains(&by_0), "{by_0}");
}

#[test]
fn marks_are_relayed_once_an_interval() {
    let mut b = host(config(CloveFeedback::Ecn), 2);
    let header = CloveHeader { inner: 1, tag: 1, utilisation: 0, feedback: None };
    let mut reported = 0;
    for us in 0..400 {
        let mut packet = Packet { flags: flag::MARKED, ..data(1) };
        b.receives(0, &mut packet, header.pack(), Time::from_us(us));
        reported += u32::from(CloveHeader::unpack(send(&mut b, 9, 0, us).1).feedback.is_some());
    }
    assert_eq!(reported, 10, "every 40 of 400 us");
}

#[test]
fn weights_only_move_and_no_path_starves() {
    let mut a = host(config(CloveFeedback::Ecn), 4);
    let sum = |clove: &CloveHost| clove.peers[0].paths.iter().map(|path| path.weight).sum::<u64>();
    let mut random = RandomStream::new(3, "marks");
    let mut now = 0;
    for _ in 0..10_000 {
        now += random.below(100_000_000);
        a.learn(0, random.below(2) as u8, 1, now);
        assert_eq!(sum(&a), WHOLE);
        assert!(a.peers[0].paths.iter().all(|path| path.weight >= MIN_WEIGHT / 2));
    }
    assert!(weights(&a)[0] < 20 && weights(&a)[1] < 20, "{:?}", weights(&a));
}

#[test]
fn by_hand_flowlets_take_the_path_that_is_reported_as_having_the_lowest_utilisation() {
    let mut a = host(config(CloveFeedback::Int), 3);
    let mut b = host(config(CloveFeedback::Int), 3);
    for (tag, utilisation) in [(0, 90), (1, 40), (2, 200)] {
        let header = CloveHeader { inner: 1, tag, utilisation, feedback: None };
        b.receives(0, &mut data(1), header.pack(), Time::from_us(10));
    }
    for expected in [(0, 90), (1, 40), (2, 200)] {
        let (mut back, word) = send(&mut b, 9, 0, 20);
        assert_eq!(CloveHeader::unpack(word).feedback, Some(expected));
        a.receives(0, &mut back, word, Time::from_us(30));
    }
    assert!((0..20).all(|flow| a.choose(0, flow, Time::from_us(40).0) == 1));
    // After the time of ageing nothing is known: any.
    let later = Time::from_us(10_031).0;
    let taken: std::collections::BTreeSet<usize> = (50..90).map(|flow| a.choose(0, flow, later)).collect();
    assert_eq!(taken.len(), 3);
}

#[test]
fn a_switch_raises_what_packets_carry_to_its_own_utilisation() {
    let mut switch = CloveSwitch::new(&config(CloveFeedback::Int), Ecmp::new(1, 1));
    let mut header = CloveHeader { inner: 5, tag: 3, utilisation: 10, feedback: Some((2, 2)) }.pack();
    // 1250 B every 200 ns at 100 Gb/s are a half.
    for step in 0..10_000 {
        let (now, rate) = (Time::from_ns(step * 200), Rate::from_gbps(100));
        switch.on_departure(&Departure { port: 2, bytes: 1250, rate, now }, &mut header);
    }
    let carried = CloveHeader::unpack(header);
    assert!((126..=131).contains(&carried.utilisation), "{carried:?}");
    assert_eq!((carried.inner, carried.tag, carried.feedback), (5, 3, Some((2, 2))));
}

#[test]
fn with_hidden_marks_transports_receive_them_while_all_paths_are_congested() {
    let hide = CloveParameters { hide_marks: true, ..config(CloveFeedback::Ecn) };
    let mut a = host(hide, 2);
    let plain = CloveHeader { inner: 1, tag: 0, utilisation: 0, feedback: None }.pack();
    let mut packet = Packet { flags: flag::MARKED, ..data(1) };
    a.receives(0, &mut packet, plain, Time::ZERO);
    assert!(!packet.marked());
    let ack = |a: &mut CloveHost, us| {
        let mut ack = Packet { kind: PacketKind::Ack, ..data(1) };
        a.receives(0, &mut ack, plain, Time::from_us(us));
        ack.marked()
    };
    a.learn(0, 0, 1, Time::from_us(100).0);
    assert!(!ack(&mut a, 110));
    a.learn(0, 1, 1, Time::from_us(120).0);
    assert!(ack(&mut a, 130));
    assert!(!ack(&mut a, 190), "path 0 is free again after 80 us");
}

#[test]
fn on_the_wire_a_header_says_what_it_tells_of() {
    let header = CloveHeader { inner: 0x0102_0304, tag: 9, utilisation: 77, feedback: None };
    let tag = config(CloveFeedback::Ecn).tag(header.pack(), false).unwrap();
    assert_eq!((tag.kind, tag.first, tag.rest), (3, 255, [1, 2, 3, 4, 9, 77, 0, 0]));
}
