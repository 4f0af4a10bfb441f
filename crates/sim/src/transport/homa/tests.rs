//! Layouts, levels and what a sender lets go, without a network.

use super::levels::Levels;
use super::parameters::HomaConfig;
use super::sender::Outgoing;
use crate::engine::random::RandomStream;
use crate::units::Time;
use crate::workload::{FlowSpec, SizeDistribution};
use proptest::prelude::*;

fn config() -> HomaConfig {
    HomaConfig {
        mtu: 1456,
        header: 82,
        extra: 14,
        control: 84,
        rtt_bytes: 10_000,
        priorities: 8,
        scheduled: 0,
        overcommit: 0,
        cutoffs: None,
        rto: Time::from_ms(1),
        spray: true,
        levels: Levels::default(),
        longest: 1456 + 82 + 14,
    }
}

#[test]
fn a_round_trip_of_bytes_is_cut_as_in_the_authors_simulator() {
    let layout = config().layout(100_000);
    assert_eq!((layout.unscheduled_bytes, layout.unscheduled), (9328, 7));
    let wire: Vec<u32> = (0..8).map(|number| layout.wire_bytes(number)).collect();
    assert_eq!(wire, [1538, 1538, 1538, 1538, 1538, 1538, 772, 1538]);
    assert_eq!((layout.payload(0), layout.payload(6), layout.payload(7)), (1442, 676, 1456));
    assert_eq!(layout.packets, 7 + (100_000u32 - 9328).div_ceil(1456));
}

#[test]
fn the_payloads_of_a_message_are_its_bytes() {
    for size in (1..40_000).step_by(7).chain([1, 1442, 1443, 9328, 9329, 9328 + 1456]) {
        let layout = config().layout(size);
        let sum: u64 = (0..layout.packets).map(|number| u64::from(layout.payload(number))).sum();
        assert_eq!(sum, size);
        assert!((0..layout.packets).all(|number| layout.payload(number) > 0), "{size}");
    }
}

/// The levels for a table of sizes, from draws of it.
fn levels(name: &str) -> Levels {
    let table = SizeDistribution::named(name).unwrap();
    let mut stream = RandomStream::new(1, "sizes");
    let sizes: Vec<u64> = (0..20_000).map(|_| table.sample(&mut stream)).collect();
    Levels::new(&config(), &sizes)
}

#[test]
fn the_share_that_needs_no_grant_gives_the_levels() {
    // Published scheduled levels: 1, 3, 4, 7, 7.
    let scheduled: Vec<u32> = ["w1", "w2", "w3", "w4", "w5"].map(|name| levels(name).scheduled).to_vec();
    assert_eq!(scheduled, [1, 2, 6, 7, 7]);
}

#[test]
fn every_unscheduled_level_carries_equal_bytes() {
    // Messages of one packet, of 100 to 1 400 B: the bytes of a level are those of its sizes.
    let sizes: Vec<u64> = (0..14_000).map(|number| 100 + number % 1301).collect();
    let levels = Levels::new(&HomaConfig { scheduled: 4, ..config() }, &sizes);
    assert_eq!(levels.cutoffs.len(), 3);
    let mut bytes = [0; 4];
    sizes.iter().for_each(|&size| bytes[usize::from(levels.unscheduled(size))] += size + 96);
    let total: u64 = bytes.iter().sum();
    for level in bytes {
        assert!((level as f64 / total as f64 - 0.25).abs() < 0.002, "{bytes:?}");
    }
}

/// The cutoffs from a list of all packets: what is counted must be this.
fn cutoffs_by_list(config: &HomaConfig, sizes: &[u64], levels: u64) -> Vec<u64> {
    let mut packets: Vec<(u64, u64)> = Vec::new();
    for &size in sizes {
        let layout = config.layout(size);
        for number in 0..layout.packets {
            let left = size - layout.before(number);
            if number < layout.unscheduled || layout.wire_of(left) <= config.rtt_bytes {
                packets.push((left, u64::from(layout.wire_bytes(number))));
            }
        }
        packets.push((0, u64::from(layout.packets - layout.unscheduled) * u64::from(config.control)));
    }
    packets.sort_unstable();
    let total: u64 = packets.iter().map(|packet| packet.1).sum();
    let passes = |level: u64| {
        let mut below = 0;
        packets.iter().find(|packet| {
            below += packet.1;
            below * levels >= total * level
        })
    };
    (1..levels).map(|level| passes(level).map_or(u64::MAX, |packet| packet.0)).collect()
}

proptest! {
    #[test]
    fn packets_are_counted_as_if_they_were_listed(
        sizes in prop::collection::vec(prop_oneof![1u64..3_000, 1u64..60_000, 1u64..3_000_000], 0..30),
        rtt_bytes in 1538u64..200_000, extra in 0u32..100, scheduled in 1u32..8,
    ) {
        let config = HomaConfig { scheduled, rtt_bytes, extra, ..config() };
        let levels = Levels::new(&config, &sizes);
        prop_assert_eq!(levels.cutoffs, cutoffs_by_list(&config, &sizes, 8 - u64::from(scheduled)));
    }
}

/// Listed, their packets would need 11 GB.
#[test]
fn levels_of_messages_of_a_million_packets_are_found_at_once() {
    let sizes: Vec<u64> = (0..1_000).map(|number| 1_000_000_000 + number).collect();
    let config = HomaConfig { scheduled: 4, rtt_bytes: 1 << 30, ..config() };
    let cutoffs = Levels::new(&config, &sizes).cutoffs;
    for (cutoff, quarters) in cutoffs.iter().zip(1..) {
        assert!(cutoff.abs_diff(quarters * 250_000_000) < 3_000, "{cutoffs:?}");
    }
}

#[test]
fn equal_messages_have_one_unscheduled_level() {
    let levels = Levels::new(&HomaConfig { scheduled: 4, ..config() }, &[500; 100]);
    assert_eq!((levels.unscheduled(500), levels.unscheduled(501)), (0, 3));
}

#[test]
fn few_active_senders_use_the_lowest_levels() {
    let levels = Levels { scheduled: 4, overcommit: 6, cutoffs: vec![1, 2, 3] };
    assert_eq!(levels.scheduled(8, 0, 1), 7);
    assert_eq!((levels.scheduled(8, 0, 2), levels.scheduled(8, 1, 2)), (6, 7));
    let all: Vec<u8> = (0..6).map(|place| levels.scheduled(8, place, 9)).collect();
    assert_eq!(all, [4, 5, 6, 7, 7, 7]);
}

#[test]
fn a_sender_obeys_grants_and_repeats_what_is_asked_for() {
    let spec = FlowSpec { size: 9328 + 10 * 1456, ..FlowSpec::default() };
    let mut message = Outgoing::new(0, &spec, &config(), Time::ZERO);
    let sent = |message: &mut Outgoing| std::iter::from_fn(|| message.leave()).collect::<Vec<u32>>();
    assert_eq!(sent(&mut message), [0, 1, 2, 3, 4, 5, 6]);
    assert!(message.waits_for_grants());
    // A lost grant is made up for by the next; an old one does nothing.
    message.grant(9, 7);
    message.grant(8, 7);
    assert_eq!(sent(&mut message), [7, 8]);
    // What has not left is granted by that, and is no repetition.
    assert_eq!(message.resend(2, 11, 0), (true, true));
    assert_eq!(sent(&mut message), [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(message.resend(2, 4, 0), (true, false));
    assert_eq!(message.left(), 6 * 1456 + 2 * 1442);
    assert_eq!(sent(&mut message), [2, 3]);
}
