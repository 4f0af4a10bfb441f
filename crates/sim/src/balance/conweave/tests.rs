use super::super::situation::{Still, place};
use super::*;
use crate::packet::flag;
use crate::topology::{LinkSpec, NextHops};
use crate::units::Rate;

/// ToR number `own` of two, host h on ToR h: port 0 to its host, ports 1 and 2 up to two spines. Links of 1 us.
fn tor(own: u32) -> ConWeave {
    tor_on(own, Rate::from_gbps(100), |place| place)
}

/// The same over links of this rate, with other facts of its place.
fn tor_on(own: u32, rate: Rate, with: impl Fn(Place) -> Place) -> ConWeave {
    let one = LinkSpec { rate, delay: Time::from_us(1) };
    tor_in(own, over(one, one), with)
}

/// Nodes 0 and 1, the ToRs, over the spines 9 and 10 with these links.
fn over(first: LinkSpec, second: LinkSpec) -> Fabric {
    let mut links = vec![Vec::new(); 11];
    (links[0], links[1]) =
        (vec![(7, first), (9, first), (10, second)], vec![(8, first), (9, first), (10, second)]);
    (links[9], links[10]) = (vec![(0, first), (1, first)], vec![(0, second), (1, second)]);
    let alike = first == second;
    Fabric { tor_of: vec![0, 1], host_on: vec![0, 1], node_of: vec![0, 1], links, alike }
}

fn tor_in(own: u32, fabric: Fabric, with: impl Fn(Place) -> Place) -> ConWeave {
    let us = Time::from_us;
    let config = ConWeaveParameters {
        reply_extra: None,
        busy: us(16),
        resume_extra: us(16),
        wait: us(200),
        inactive: us(300),
        ageing: us(2000),
    };
    let neighbour = |side| Neighbour { node: 9, port: 0, side };
    let neighbours = [Side::Host, Side::Up, Side::Up].map(neighbour);
    let fabric = Arc::new(fabric);
    let place = Place { node: own, tor: Some(own), neighbours: &neighbours, ..place(&fabric) };
    ConWeave::new(config, &with(place))
}

fn data() -> Packet {
    Packet { src: 0, dst: 1, hash: 7, size: 1000, ..Packet::default() }
}

/// A packet at its first ToR at a time in ns: its port, and what it takes along.
fn leaves(tor: &mut ConWeave, ns: u64) -> (u32, Label) {
    // Port 1 of the first ToR leads to a spine, whose port 1 leads to the last ToR.
    let ports = Still { now: Time::from_ns(ns), hops: vec![1], ..Still::default() };
    let candidates = [1, 2];
    let packet = data();
    let to = candidates[tor.choose(&packet, &candidates, &ports)];
    let mut word = 0;
    tor.on_forward(&Forward { packet: &packet, from: 0, to, now: ports.now }, &mut word);
    (to, Label::unpack(word).expect("a label"))
}

/// A packet at its last ToR: whether it passes, and what that ToR does.
fn comes(tor: &mut ConWeave, id: u32, label: Label, ns: u64, marked: bool) -> (bool, Still) {
    let mut cx = Still { now: Time::from_ns(ns), hops: vec![1], ..Still::default() };
    let packet = Packet { flags: if marked { flag::MARKED } else { 0 }, ..data() };
    let forward = Forward { packet: &packet, from: 1, to: 0, now: cx.now };
    let passes = tor.holds(&forward, Held(id), label.pack(), &mut cx).is_some();
    (passes, cx)
}

fn timer(tor: &mut ConWeave, ns: u64) -> Vec<u32> {
    let mut cx = Still { now: Time::from_ns(ns), ..Still::default() };
    tor.on_timer(&mut cx);
    cx.released.into_iter().map(|Held(id)| id).collect()
}

#[test]
fn labels_pack_into_a_word() {
    for (flag, phase) in [(Flag::Data, true), (Flag::Init, false), (Flag::Tail, false)] {
        let label = Label { flag, phase, epoch: 4095, path: 0xfe01, time: u32::MAX };
        assert_eq!(Label::unpack(label.pack()), Some(label));
    }
    assert_eq!(Label::unpack(0), None);
}

#[test]
fn an_answer_in_time_opens_the_next_epoch_on_the_same_path() {
    let (mut first, mut last) = (tor(0), tor(1));
    let (port, label) = leaves(&mut first, 0);
    assert_eq!((label.flag, label.phase, label.epoch), (Flag::Init, false, 1));
    let (passes, cx) = comes(&mut last, 1, label, 2000, false);
    let [(1, reply)] = cx.sent[..] else { panic!("one answer by the only port: {:?}", cx.sent) };
    assert!(passes && reply.size == 64 && reply.class == 0 && reply.dst == 0);
    // A packet before the answer belongs to the same epoch; a later one opens the next.
    assert_eq!(leaves(&mut first, 1000).1.flag, Flag::Data);
    first.on_probe(&reply, 1, &mut Still { now: Time::from_ns(4000), ..Still::default() });
    let (next, label) = leaves(&mut first, 4100);
    assert_eq!((next, label.flag, label.epoch), (port, Flag::Init, 2));
}

#[test]
fn a_late_answer_moves_the_flow_after_a_tail() {
    let mut first = tor(0);
    let (port, _) = leaves(&mut first, 0);
    // Two links there and two back, and 4 us more; at the deadline nothing has happened yet.
    assert_eq!(leaves(&mut first, 8000).1.flag, Flag::Data);
    let (tail, label) = leaves(&mut first, 8001);
    assert_eq!((tail, label.flag, label.phase, label.time), (port, Flag::Tail, false, 8001));
    let (_, label) = leaves(&mut first, 8100);
    assert_eq!((label.flag, label.phase, label.epoch, label.time), (Flag::Data, true, 1, 8001));
}

/// The deadline allows 4 us beyond two links there and back; by how much longer it is on other links.
fn extra_ns(rate: Rate, largest_packet: u64, released: bool) -> u64 {
    let ports = Still { hops: vec![1], ..Still::default() };
    let mut first = tor_on(0, rate, |place| Place { largest_packet, released, ..place });
    (first.allowed(1, 1, &ports) - Time::from_us(8)).ns()
}

#[test]
fn the_deadline_of_an_answer_allows_for_slower_links_and_larger_packets_than_the_authors() {
    let gbps = Rate::from_gbps;
    // Theirs, and what is faster.
    assert_eq!([extra_ns(gbps(100), 1048, false), extra_ns(gbps(400), 1500, false)], [0, 0]);
    // On each of two links two packets and an answer: 17 984 B take 5754.88 ns, theirs 172.8 ns.
    assert_eq!(extra_ns(gbps(25), 8960, false), 11_164);
    assert_eq!(extra_ns(gbps(1), 1048, false), 34_214);
    // Their simulator has the same time on all links.
    assert_eq!(extra_ns(gbps(1), 8960, true), 0);
}

#[test]
fn an_answer_may_take_the_time_there_by_its_path_and_back_by_the_longest() {
    let link = |us| LinkSpec { rate: Rate::from_gbps(100), delay: Time::from_us(us) };
    let ports = Still { hops: vec![1, 2], ..Still::default() };
    for (first, second, expected) in [(1, 20, [46, 84]), (20, 1, [84, 46])] {
        let mut tor = tor_in(0, over(link(first), link(second)), |place| place);
        assert_eq!([1, 2].map(|path| tor.allowed(path, 1, &ports)), expected.map(Time::from_us));
    }
    // While the network is cut nothing is remembered.
    let mut tor = tor_in(0, over(link(1), link(20)), |place| place);
    assert_eq!(tor.allowed(1, 1, &Still::default()), Time::from_us(4));
    assert_eq!(tor.allowed(1, 1, &ports), Time::from_us(46));
}

#[test]
fn a_path_that_was_reported_is_avoided_for_its_time() {
    let mut first = tor(0);
    for reported in [1u16, 2] {
        let label = Label { flag: Flag::Data, phase: false, epoch: 0, path: reported, time: 0 };
        let probe =
            Packet { src: 1, dst: 0, aux: Reply::Notify as u32, seq: label.pack(), ..Packet::default() };
        first.on_probe(&probe, 1, &mut Still { now: Time::from_us(100), ..Still::default() });
        let ports = Still { now: Time::from_us(110), ..Still::default() };
        let free: Vec<u16> = (0..64).filter_map(|_| first.draw(1, &[1, 2], &ports).1).collect();
        assert!(free.iter().all(|&path| path != reported), "{free:?}");
        // Of two draws from two paths one is free in 3 of 4 cases, while one path is avoided; then both are.
        assert_eq!(free.is_empty(), reported == 2);
        let later = Still { now: Time::from_us(117), ..Still::default() };
        assert!((0..64).all(|_| first.draw(1, &[1, 2], &later).1.is_some()));
    }
}

#[test]
fn what_comes_before_the_tail_waits_for_it() {
    let mut last = tor(1);
    let label = |flag, phase, time| Label { flag, phase, epoch: 1, path: 1, time };
    assert!(comes(&mut last, 1, label(Flag::Init, false, 1000), 3000, false).0);
    // The TAIL left at 6000 ns, 5000 after the packet that came at 3000: it is expected at 8000, and awaited until 24 000.
    let (passes, cx) = comes(&mut last, 2, label(Flag::Data, true, 6000), 7000, false);
    assert_eq!((passes, cx.wakes), (false, vec![Time::from_ns(24_000)]));
    assert!(!comes(&mut last, 3, label(Flag::Data, true, 6000), 7100, false).0);
    // One more of the old path: 1000 ns before the TAIL.
    assert!(comes(&mut last, 4, label(Flag::Data, false, 5000), 9000, false).0);
    let (passes, cx) = comes(&mut last, 5, label(Flag::Tail, false, 6000), 9500, false);
    assert_eq!((passes, cx.wakes), (true, vec![Time::from_ns(9501)]));
    assert_eq!(timer(&mut last, 9501), [2, 3]);
    assert!(comes(&mut last, 6, label(Flag::Data, true, 6000), 9600, false).0);
    assert_eq!((last.counts.holds, last.counts.kept, last.counts.timed_out, last.held), (1, 2, 0, 0));
}

#[test]
fn a_tail_that_never_comes_does_not_hold_packets_forever() {
    let mut last = tor(1);
    let label = |epoch, flag, phase| Label { flag, phase, epoch, path: 1, time: 6000 };
    // Nothing of the old path came: 200 us and 16 us.
    let (passes, cx) = comes(&mut last, 1, label(1, Flag::Data, true), 7000, false);
    assert_eq!((passes, cx.wakes), (false, vec![Time::from_ns(223_000)]));
    assert!(timer(&mut last, 222_999).is_empty());
    assert_eq!(timer(&mut last, 223_000), [1]);
    assert_eq!(last.counts.timed_out, 1);
    // A marked packet names its path; one of an older epoch passes.
    let (passes, cx) = comes(&mut last, 2, label(2, Flag::Data, false), 230_000, true);
    assert!(passes && cx.sent.len() == 1 && cx.sent[0].1.aux == Reply::Notify as u32);
    let (passes, cx) = comes(&mut last, 3, label(1, Flag::Data, true), 230_100, true);
    assert!(passes && cx.sent.is_empty());
}

#[test]
fn paths_of_three_tiers_name_the_port_of_the_second_switch() {
    let mut first = tor(0);
    let ports = Still { hops: vec![3, 5], ..Still::default() };
    assert!(matches!(ports.hops(9, 1), NextHops::Many(_)));
    let mut met: Vec<u16> = (0..200).map(|_| first.draw(1, &[1, 2], &ports).0).collect();
    met.sort_unstable();
    met.dedup();
    assert_eq!(met, [0x301, 0x302, 0x501, 0x502]);
}
