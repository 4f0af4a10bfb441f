//! Tests of `destination`.

use super::*;
use crate::parameters::{Nothing, Parameters};
use crate::transport::{ReadContext, TransportParameters};
use crate::units::Rate;

const T: Time = Time::from_ns(1200);

/// A flow of so many packets that becomes known at 0, with the published settings at 10 Gb/s.
fn flow(packets: u32, free_for: FreeTokens) -> (DestinationFlow, PhostConfig, Pace) {
    let cx = ReadContext { base_rtt: &|_| Time::from_us(3), ..ReadContext::listing() };
    let read = PhostConfig::read(&mut Parameters::new(&mut Nothing::default()), &cx).unwrap();
    let config = PhostConfig { free_for, ..read };
    let pace = Pace::new(&config, T, Time::from_us(3));
    let rank = Rank::new(config.policy, Time::MAX, packets, 0);
    let flow = DestinationFlow::new(&Packet::default(), packets, &config, rank, Time::ZERO, &pace);
    (flow, config, pace)
}

/// Offers a tick every packet time from `from` on: at which ticks a token is given, and for which packet.
fn ticks(
    flow: &mut DestinationFlow,
    config: &PhostConfig,
    pace: &Pace,
    from: u64,
    to: u64,
) -> Vec<(u64, u32)> {
    let given = |tick: u64| {
        let now = Time(tick * T.0);
        flow.admit(config, now, pace).ok()?;
        Some((tick, flow.give(now, pace, pace.interval)?.1))
    };
    (from..to).filter_map(given).collect()
}

#[test]
fn a_full_window_gets_one_token_after_twenty_five_packet_times_and_opens_with_data() {
    let (mut flow, config, pace) = flow(100, FreeTokens::Short);
    let first: Vec<(u64, u32)> = (0..8).map(|n| (n, n as u32)).collect();
    assert_eq!(ticks(&mut flow, &config, &pace, 0, 20), first);
    assert_eq!(ticks(&mut flow, &config, &pace, 20, 60), [(32, 8), (57, 9)]);
    // The packet of the tenth token comes: seven more may be given.
    assert!(flow.take(9, 9));
    let more: Vec<u64> = ticks(&mut flow, &config, &pace, 60, 80).iter().map(|(tick, _)| *tick).collect();
    assert_eq!(more, (60..68).collect::<Vec<u64>>());
}

#[test]
fn tokens_that_nothing_answers_become_as_rare_as_four_round_trips() {
    let (mut flow, mut config, _) = flow(100, FreeTokens::Short);
    config.downgrade = 2.0;
    // Four round trips of 12 us are 40 packet times.
    let pace = Pace::new(&config, T, Time(10 * T.0));
    let given: Vec<u64> = ticks(&mut flow, &config, &pace, 0, 300).iter().map(|(tick, _)| *tick).collect();
    let gaps: Vec<u64> = given[7..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..17], [2; 17]);
    assert_eq!(gaps[17..23], [4, 8, 16, 32, 40, 40]);
    // What comes brings the old pace back.
    flow.take(given.len() as u32 - 1, given.len() as u32 - 1);
    let more: Vec<u64> = ticks(&mut flow, &config, &pace, 300, 320).iter().map(|(tick, _)| *tick).collect();
    assert_eq!(more, [300, 301, 302, 303, 304, 305, 306, 307, 309, 311, 313, 315, 317, 319]);
}

#[test]
fn what_is_missing_when_all_tokens_were_given_is_asked_for_again_after_nine_packet_times() {
    let (mut flow, config, pace) = flow(9, FreeTokens::Short);
    for packet in 0..9 {
        assert_eq!(ticks(&mut flow, &config, &pace, packet, packet + 1), [(packet, packet as u32)]);
        // Packets 3 and 7 are lost.
        if packet != 3 && packet != 7 {
            flow.take(packet as u32, packet as u32);
        }
    }
    // The last token was given at tick 8; two are given from tick 17 on, and then nothing for nine.
    assert_eq!(ticks(&mut flow, &config, &pace, 9, 27), [(17, 3), (18, 7)]);
    assert_eq!(ticks(&mut flow, &config, &pace, 27, 28), [(27, 3)]);
}

#[test]
fn a_flow_with_free_tokens_only_is_left_alone_for_two_packet_times_each() {
    let (mut flow, config, pace) = flow(5, FreeTokens::Short);
    assert!(flow.take(0, 0) && flow.take(4, 4) && !flow.take(4, 4));
    assert_eq!(ticks(&mut flow, &config, &pace, 0, 15), [(10, 1), (11, 2), (12, 3)]);
}

/// 25 Gb/s and 100 us a link: 836 packets a round trip.
#[test]
fn where_a_round_trip_is_long_a_flow_waits_for_it_once_and_not_for_every_free_token() {
    let cx = ReadContext {
        base_rtt: &|bytes| {
            Time::from_us(400) + Time(Rate::from_gbps(25).transmission_time(bytes.into()).0 * 2)
        },
        product: &|_, _| 1_252_920,
        host_rate: Rate::from_gbps(25),
        ..ReadContext::listing()
    };
    let config = PhostConfig::read(&mut Parameters::new(&mut Nothing::default()), &cx).unwrap();
    assert_eq!((config.free_tokens, config.first_wait, config.first_wait_extra), (836, 2.0, 828.0));
    let pace = Pace::new(&config, Time::from_ns(480), Time::from_us(400));
    assert_eq!(pace.until_given(685), Time::from_ns(480 * (2 * 685 + 828)));
}

/// Six links of 10 Gb/s and 200 ns that store and forward: a packet arrives 5.9 packet times after its request.
#[test]
fn the_first_packet_is_awaited_where_it_has_to_come_over_many_links_of_one_rate() {
    let cx = ReadContext {
        base_rtt: &|bytes| {
            Time::from_ns(2400) + Time(Rate::from_gbps(10).transmission_time(bytes.into()).0 * 6)
        },
        product: &|_, _| 11_760,
        ..ReadContext::listing()
    };
    let config = PhostConfig::read(&mut Parameters::new(&mut Nothing::default()), &cx).unwrap();
    assert_eq!((config.free_tokens, config.first_wait, config.first_wait_extra), (8, 2.0, 6.0));
}

#[test]
fn free_tokens_of_a_longer_flow_do_not_fill_its_window() {
    let (mut flow, config, pace) = flow(100, FreeTokens::Every);
    let given = ticks(&mut flow, &config, &pace, 0, 20);
    assert_eq!(given, (0..8).map(|n| (n, 8 + n as u32)).collect::<Vec<_>>());
}

#[test]
fn a_slower_source_gets_tokens_at_its_own_pace_to_which_late_ones_add_up_and_waits_are_longer() {
    let (mut flow, config, pace) = flow(100, FreeTokens::Short);
    // Packets take the source 2.5 times as long.
    flow.learn_source(Time(T.0 * 5 / 2), &config, Time::ZERO, &pace);
    let mut given = Vec::new();
    for tick in 0..20 {
        let now = Time(tick * T.0);
        let own = flow.pace(&config, &pace);
        if flow.admit(&config, now, &own).is_ok() {
            let (number, packet) = flow.give(now, &own, pace.interval).unwrap();
            flow.take(packet, number);
            given.push(tick);
        }
    }
    assert_eq!(given, [0, 3, 5, 8, 10, 13, 15, 18]);
    assert_eq!(flow.pace(&config, &pace).retoken, Time(pace.retoken.0 * 5 / 2));
    // A faster source changes nothing.
    flow.learn_source(Time(T.0 / 2), &config, Time::ZERO, &pace);
    assert_eq!(flow.pace(&config, &pace), pace);
}
