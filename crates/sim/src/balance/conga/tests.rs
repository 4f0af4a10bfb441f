use super::super::situation::{Still, place};
use super::*;
use crate::units::Rate;

/// Leaf number `own` of three, host h on leaf h: port 0 to its host, ports 1 to 3 up to three spines.
fn leaf(own: u32) -> Conga {
    let config = CongaParameters {
        flowlets: FlowletParameters { gap: Time::from_us(500), slots: 1 << 16 },
        time_constant: Time::from_us(160),
        alpha: 205,
        bits: 3,
        ageing: Time::from_ms(10),
        header: 2,
        three_tier: false,
    };
    let fabric = Arc::new(Fabric { tor_of: vec![0, 1, 2], host_on: vec![0, 1, 2], ..Fabric::default() });
    let neighbour = |side| Neighbour { node: 9, port: 0, side };
    let neighbours = [Side::Host, Side::Up, Side::Up, Side::Up].map(neighbour);
    let at = Place { node: own, tor: Some(own), neighbours: &neighbours, ..place(&fabric) };
    Conga::new(config, &at)
}

fn packet(src: u32, dst: u32) -> Packet {
    Packet { src, dst, ..Packet::default() }
}

/// A packet leaves a leaf by a port for the fabric, in which the busiest link stands at `congestion`.
fn send(leaf: &mut Conga, packet: &Packet, port: u32, congestion: u8, us: u64) -> CongaHeader {
    let mut header = 0;
    let forward = Forward { packet, from: 0, to: port, now: Time::from_us(us) };
    assert_eq!(leaf.on_forward(&forward, &mut header), 2);
    CongaHeader { congestion, ..CongaHeader::unpack(header) }
}

fn receive(leaf: &mut Conga, packet: &Packet, header: CongaHeader, us: u64) {
    let forward = Forward { packet, from: 1, to: 0, now: Time::from_us(us) };
    assert_eq!(leaf.on_forward(&forward, &mut header.pack()), -2);
}

fn chosen(leaf: &mut Conga, dst: u32, flow: u32, us: u64) -> u32 {
    let ports = Still { now: Time::from_us(us), ..Still::default() };
    let candidates = [1, 2, 3];
    let packet = Packet { hash: flow.wrapping_mul(0x9e37_79b9), ..packet(0, dst) };
    candidates[leaf.choose(&packet, &candidates, &ports)]
}

#[test]
fn headers_pack_into_a_word() {
    for feedback in [None, Some((0, 0)), Some((15, 7)), Some((3, 255))] {
        let header = CongaHeader { tag: 13, congestion: 6, feedback, leaf: u32::MAX };
        assert_eq!(CongaHeader::unpack(header.pack()), header);
    }
}

#[test]
fn by_hand_congestion_comes_back_on_reverse_packets_and_steers_the_next_flowlet() {
    let (mut a, mut b) = (leaf(0), leaf(1));
    let (there, back) = (packet(0, 1), packet(1, 0));
    // Leaf 0 has nothing to say yet. Its packets by tags 0, 1 and 2 meet 5, 2 and 7.
    for (port, congestion) in [(1, 5), (2, 2), (3, 7)] {
        let header = send(&mut a, &there, port, congestion, 10);
        assert_eq!((header.tag, header.feedback), (port as u8 - 1, None));
        receive(&mut b, &there, header, 20);
    }
    // Three packets back bring the three along, in turn, and say of the way back: by tag 1, idle.
    for expected in [(0, 5), (1, 2), (2, 7)] {
        let header = send(&mut b, &back, 2, 0, 30);
        assert_eq!(header.feedback, Some(expected));
        receive(&mut a, &back, header, 40);
    }
    // The least congested of 5, 2, 7 is the second.
    assert!((0..20).all(|flow| chosen(&mut a, 1, flow, 50) == 2));
    // Nothing is known of leaf 2: any uplink.
    let others: std::collections::BTreeSet<u32> =
        (100..140).map(|flow| chosen(&mut a, 2, flow, 50)).collect();
    assert_eq!(others.len(), 3);
    // What changed is fed back first: tag 2 falls to 1 while it would be the turn of tag 0.
    let header = send(&mut a, &there, 3, 1, 60);
    assert_eq!(header.feedback, Some((1, 0)), "leaf 0 feeds back what it heard of tag 1");
    receive(&mut b, &there, header, 70);
    assert_eq!(send(&mut b, &back, 2, 0, 80).feedback, Some((2, 1)));
    assert_eq!(send(&mut b, &back, 2, 0, 80).feedback, Some((0, 5)), "then in turn again");
}

#[test]
fn a_report_that_is_not_renewed_ages_to_zero() {
    let (mut a, back) = (leaf(0), packet(1, 0));
    for tag in [1, 2] {
        receive(&mut a, &back, CongaHeader { tag: 0, congestion: 0, feedback: Some((tag, 4)), leaf: 1 }, 100);
    }
    assert!((0..20).all(|flow| chosen(&mut a, 1, flow, 10_099) == 1));
    let later: std::collections::BTreeSet<u32> =
        (50..90).map(|flow| chosen(&mut a, 1, flow, 10_101)).collect();
    assert_eq!(later.len(), 3);
}

#[test]
fn its_own_busy_link_counts_as_much_and_raises_what_a_packet_carries() {
    let mut a = leaf(0);
    // Port 2 at full rate for two milliseconds: 1250 B every 100 ns at 100 Gb/s.
    let rate = Rate::from_gbps(100);
    let mut header = CongaHeader { tag: 1, congestion: 3, feedback: Some((2, 2)), leaf: 0 }.pack();
    for step in 0..20_000 {
        let now = Time::from_ns(step * 100);
        a.on_departure(&Departure { port: 2, bytes: 1250, rate, now }, &mut header);
    }
    let carried = CongaHeader::unpack(header);
    assert!(carried.congestion >= 6 && (carried.tag, carried.feedback) == (1, Some((2, 2))));
    assert!((0..40).all(|flow| chosen(&mut a, 1, flow, 2000) != 2));
    assert_eq!(a.header_bytes, 40_000);
}

#[test]
fn among_equals_a_flowlet_keeps_its_uplink() {
    let mut a = leaf(0);
    let first = chosen(&mut a, 1, 7, 0);
    for flowlet in 1..20 {
        assert_eq!(chosen(&mut a, 1, 7, flowlet * 501), first);
    }
}

#[test]
fn on_the_wire_a_header_says_what_it_tells_of() {
    let header = CongaHeader { tag: 3, congestion: 6, feedback: Some((2, 5)), leaf: 7 };
    let tag = leaf(0).config.tag(header.pack(), true).unwrap();
    assert_eq!((tag.kind, tag.first, tag.rest), (2, 2, [0, 0, 0, 7, 3, 6, 5, 0]));
    assert_eq!(leaf(0).config.tag(header.pack(), false), None);
}
