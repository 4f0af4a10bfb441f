use super::super::QueueDiscipline;
use super::super::managed::ManagedConfig;
use super::super::managed::tests::Port;
use super::*;
use crate::packet::{Packet, trimming};
use crate::units::Rate;
use proptest::prelude::*;

/// A port that holds 7 packets of 1 000 bytes, and this number of bytes of headers.
fn port(victim: Victim, header_limit: u64, returns: bool) -> Port<Trimming> {
    port_with(TrimmingConfig {
        victim,
        to: 64,
        class: 1,
        header_limit: Bytes(header_limit),
        returns,
        headers_per_data: 0,
    })
}

fn port_with(discipline: TrimmingConfig) -> Port<Trimming> {
    let limit = Limit { bytes: Bytes(7999), ..Limit::NONE };
    Port::new(ManagedConfig { discipline, limit, nic_packets: 0, link_header: 0 }, Rate(1_000_000_000))
}

fn data(name: u64, allowed: u8) -> Packet {
    let (class, src, dst) = (2, 1, 2);
    Packet {
        seq: name,
        size: 1000,
        payload: 936,
        class,
        wire_class: class,
        src,
        dst,
        trimming: allowed,
        ..Packet::default()
    }
}

/// Names and sizes of what leaves, in order.
fn served(port: &mut Port<Trimming>) -> Vec<(u64, u16)> {
    std::iter::from_fn(|| port.serve(Time::ZERO).0).map(|packet| (packet.seq, packet.size)).collect()
}

#[test]
fn the_arriving_packet_loses_its_payload_and_goes_first() {
    let mut port = port(Victim::Arriving, 16_000, false);
    (0..9)
        .for_each(|name| assert_eq!(port.offer_packet(Time::ZERO, data(name, trimming::ALLOWED)), [0u64; 0]));
    let data = (0..7).map(|name| (name, 1000));
    assert_eq!(served(&mut port), [(7, 64), (8, 64)].into_iter().chain(data).collect::<Vec<_>>());
    let tally = port.discipline().tally;
    assert_eq!(tally, Tally { trimmed: 2, trimmed_bytes: 2 * 936, ..Tally::default() });
}

#[test]
fn data_have_a_turn_after_some_headers() {
    let header_limit = Bytes(16_000);
    let mut port = port_with(TrimmingConfig {
        victim: Victim::Arriving,
        to: 64,
        class: 1,
        header_limit,
        returns: false,
        headers_per_data: 2,
    });
    (0..12)
        .for_each(|name| assert_eq!(port.offer_packet(Time::ZERO, data(name, trimming::ALLOWED)), [0u64; 0]));
    let names: Vec<_> = served(&mut port).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [7, 8, 0, 9, 10, 1, 11, 2, 3, 4, 5, 6]);
}

#[test]
fn the_last_packet_loses_its_payload_and_the_new_one_takes_its_place() {
    let mut port = port(Victim::Last, 16_000, false);
    (0..9)
        .for_each(|name| assert_eq!(port.offer_packet(Time::ZERO, data(name, trimming::ALLOWED)), [0u64; 0]));
    let data = [0, 1, 2, 3, 4, 5, 8].map(|name| (name, 1000));
    assert_eq!(served(&mut port), [&[(6, 64), (7, 64)], &data[..]].concat());
}

#[test]
fn the_coin_is_fair() {
    let mut port = port(Victim::Coin, 1 << 30, false);
    (0..4007)
        .for_each(|name| assert_eq!(port.offer_packet(Time::ZERO, data(name, trimming::ALLOWED)), [0u64; 0]));
    // Each of the 4 000 that do not fit either becomes the next header itself, or takes the place of the one that does.
    let order = served(&mut port);
    let own = order
        .iter()
        .filter(|(_, size)| *size == 64)
        .enumerate()
        .filter(|(at, (name, _))| *name == *at as u64 + 7);
    let share = own.count() as f64 / 4000.0;
    assert!((share - 0.5).abs() < 0.03, "{share}");
    assert_eq!(port.discipline().tally.trimmed, 4000);
}

#[test]
fn what_must_not_be_trimmed_is_dropped() {
    for victim in [Victim::Arriving, Victim::Last] {
        let mut port = port(victim, 16_000, false);
        (0..7).for_each(|name| assert_eq!(port.offer_packet(Time::ZERO, data(name, 0)), [0u64; 0]));
        assert_eq!(port.offer_packet(Time::ZERO, data(7, 0)), [7]);
        // The last of those that wait must not be trimmed either.
        assert_eq!(port.offer_packet(Time::ZERO, data(8, trimming::ALLOWED)), [0u64; 0]);
        assert_eq!(served(&mut port)[0], (8, 64));
    }
}

#[test]
fn headers_without_room_are_dropped_or_turned_round_once() {
    for returns in [false, true] {
        let mut port = port(Victim::Arriving, 64, returns);
        (0..8).for_each(|name| {
            assert_eq!(port.offer_packet(Time::ZERO, data(name, trimming::ALLOWED)), [0u64; 0])
        });
        // The ninth is trimmed, and there is room for one header only.
        let id = port.packets.insert(data(8, trimming::ALLOWED));
        port.queue.enqueue(id, &mut port.packets, Time::ZERO);
        let account = port.queue.account().expect("a buffer of its own");
        let (dropped, back) = (account.take_dropped(), account.take_returned());
        assert_eq!((dropped == id, back == id), (!returns, returns));
        if returns {
            let packet = port.packets[id];
            assert_eq!((packet.src, packet.dst, packet.size), (2, 1, 64));
            // As it returns it is not turned round again.
            port.queue.enqueue(id, &mut port.packets, Time::ZERO);
            let account = port.queue.account().expect("a buffer of its own");
            assert_eq!((account.take_dropped(), account.take_returned()), (id, crate::packet::NONE));
        }
    }
}

proptest! {
    /// Bytes that come leave, are trimmed off, or are dropped; data never exceed their limit, nor headers theirs.
    #[test]
    fn bytes_are_conserved_whatever_comes(
        steps in prop::collection::vec((0u8..4, 20u16..3000, 1u8..5, 0u8..2), 1..400),
        victim in prop::sample::select(vec![Victim::Arriving, Victim::Last, Victim::Coin]),
        header_limit in 64u64..4000,
    ) {
        let mut port = port(victim, header_limit, false);
        let (mut came, mut left, mut dropped) = (0, 0, 0u64);
        for (number, (what, size, class, allowed)) in steps.into_iter().enumerate() {
            if what == 0 {
                left += port.serve(Time::ZERO).0.map_or(0, |packet| u64::from(packet.size));
                continue;
            }
            came += u64::from(size);
            let packet = Packet { size, payload: size, class, wire_class: class, ..data(number as u64, allowed) };
            let before = port.packets.live();
            let names = port.offer_packet(Time::ZERO, packet);
            prop_assert_eq!(port.packets.live(), before + 1 - names.len());
            dropped += names.len() as u64;
            let queue = &mut port.queue;
            prop_assert!(queue.class_bytes(1) <= header_limit);
            prop_assert!((2..8).map(|class| queue.class_bytes(class)).sum::<u64>() <= 7999);
        }
        let dropped_before = dropped;
        left += served(&mut port).iter().map(|(_, size)| u64::from(*size)).sum::<u64>();
        let tally = port.discipline().tally;
        if dropped_before == 0 {
            prop_assert_eq!(came, left + tally.trimmed_bytes);
        }
        prop_assert!(left + tally.trimmed_bytes <= came);
        prop_assert_eq!(port.queue.bytes(), 0);
    }
}
