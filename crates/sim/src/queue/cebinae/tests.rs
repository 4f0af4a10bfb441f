//! The clock, the filter and the agent by hand, and against the authors' stored control traces.

use super::super::managed::tests::{Port, config as managed, defaults, reference};
use super::read::{Enforced, Products};
use super::*;
use crate::units::Time;

/// Of all 25 rows but for the round.
pub fn config(round: u64) -> CebinaeConfig {
    CebinaeConfig { round: Some(Time::from_ns(round)), ..defaults() }
}

pub const C: u64 = 100_000_000;
pub const DT: u64 = 1 << 25;

pub fn place(rate: u64) -> PortPlace<'static> {
    PortPlace { rate: Rate(rate), ..PortPlace::TEST }
}

fn cebinae() -> Cebinae {
    Cebinae::new(&config(DT), Limit::of_packets(250), &place(C))
}

fn filter_of(config: CebinaeConfig) -> Filter {
    Filter::new(&config, DT, C)
}

/// Rotates so that the top group has no rate in the head and 20 Mbps in the tail.
pub fn after_saturation() -> Filter {
    let mut filter = filter_of(config(DT));
    filter.rotate([20_000_000, 80_000_000]);
    filter.note_rates();
    filter
}

#[test]
fn in_the_first_round_after_saturation_one_packet_is_sent_56_wait_and_the_others_are_dropped() {
    let mut filter = after_saturation();
    let passages: Vec<Passage> = (0..60).map(|_| filter.pass(Group::Top, 1492, DT + 1)).collect();
    assert_eq!(passages[0], Passage::Head);
    assert!(passages[1..57].iter().all(|&passage| passage == Passage::Tail));
    assert!(passages[57..].iter().all(|&passage| passage == Passage::Drop));
    // What was dropped stays counted, and nothing is taken off for a head that had no rate.
    filter.rotate([0, C]);
    assert_eq!(filter.bytes[Group::Top as usize], 60 * 1492);
    // The queue of 20 Mbps, now the head, sees the full count: no more fit in.
    assert_eq!(filter.rates(filter.head), [20_000_000, 80_000_000]);
    assert_eq!(filter.pass(Group::Top, 1492, 2 * DT + 1), Passage::Drop);
    // Its budget is taken off one rotation after that which follows the next reconfiguration.
    filter.note_rates();
    filter.rotate([0, C]);
    assert_eq!(filter.bytes[Group::Top as usize], 61 * 1492 - 83_886);
}

#[test]
fn by_drops_a_round_without_a_rate_drops_a_top_flow_or_does_not_judge_it() {
    let passages = |enforced| {
        let mut filter = filter_of(CebinaeConfig { enforced, ..config(DT) });
        filter.rotate([20_000_000, 80_000_000]);
        filter.note_rates();
        let first: Vec<Passage> = (0..60).map(|_| filter.pass(Group::Top, 1492, DT + 1)).collect();
        filter.rotate([20_000_000, 80_000_000]);
        let second: Vec<Passage> = (0..60).map(|_| filter.pass(Group::Top, 1492, 2 * DT + 1)).collect();
        let passed = |passages: Vec<Passage>| passages.iter().filter(|&&p| p == Passage::Head).count();
        (passed(first), passed(second))
    };
    // 83 886 bytes of 20 Mb/s are in the budget of a round: 57 packets, the last of which exceeds it.
    assert_eq!(passages(Enforced::Drops), (1, 0));
    assert_eq!(passages(Enforced::DropsFromNextRound), (60, 57));
}

#[test]
fn with_itself_counted_the_first_packet_waits_already() {
    let mut filter = filter_of(CebinaeConfig { counts_itself: true, ..config(DT) });
    filter.rotate([20_000_000, 80_000_000]);
    assert_eq!(filter.pass(Group::Top, 1492, DT + 1), Passage::Tail);
}

#[test]
fn idle_time_earns_no_credit() {
    let mut filter = filter_of(config(DT));
    // Half a round of silence: the counter has followed the line, 100 Mbps for 10 ms.
    assert_eq!(filter.pass(Group::Bottom, 1492, 10_000_000), Passage::Head);
    assert_eq!(filter.bytes, [0, 125_000 + 1492]);
    // Behind the end of the round the line goes on at the tail's rate.
    filter.rotate([10_000_000, 90_000_000]);
    assert_eq!(filter.pass(Group::Bottom, 1, DT + DT + 10_000_000), Passage::Head);
    let line = (C * DT + 90_000_000 * 10_000_000) / 8_000_000_000;
    assert_eq!(filter.bytes[1], line + 1);
}

#[test]
fn coarse_virtual_rounds_hold_the_time_until_the_next_begins() {
    let mut filter = filter_of(CebinaeConfig { virtual_round: Time::from_ns(1 << 20), ..config(DT) });
    filter.pass(Group::Bottom, 0, (1 << 20) - 1);
    assert_eq!(filter.bytes[1], 0);
    filter.pass(Group::Bottom, 0, 1 << 20);
    assert_eq!(filter.bytes[1], C * (1 << 20) / 8_000_000_000);
}

/// The prototype's tables know only powers of two: 100 Mb/s counts as 2^26 bit/s, 10 ms as 2^23 ns; a whole round's budget is exact.
#[test]
fn products_by_tables_round_both_factors_down_to_powers_of_two() {
    let mut filter = filter_of(CebinaeConfig { products: Products::Tables, ..config(DT) });
    filter.pass(Group::Bottom, 0, 10_000_000);
    assert_eq!(filter.bytes[1], (1 << 26) * (1 << 23) / 8_000_000_000);
    filter.pass(Group::Bottom, 0, DT + 10_000_000);
    assert_eq!(filter.bytes[1], C * DT / 8_000_000_000 + (1 << 49) / 8_000_000_000);
    // A group without a rate has no line; factors that are powers of two stay what they are.
    filter.pass(Group::Top, 0, DT + 10_000_000);
    assert_eq!(filter.bytes[0], 0);
    let mut exact = Filter::new(&CebinaeConfig { products: Products::Tables, ..config(DT) }, DT, 1 << 26);
    exact.pass(Group::Bottom, 0, 1 << 24);
    assert_eq!(exact.bytes[1], (1 << 50) / 8_000_000_000);
}

#[test]
fn packets_that_are_not_judged_wait_in_the_default_queue_after_both_rounds() {
    let settings = CebinaeConfig { only_saturated: true, default_queue: true, ..config(DT) };
    let mut port = Port::new(managed(settings, 250), Rate(C));
    let at = Time::from_ns;
    // Flow 0 fills the link; nothing is judged before the first recomputation has found it so.
    for step in 0..2 * DT / 119_360 {
        port.offer(at(step * 119_360), 0, step, 1492);
        port.serve(at(step * 119_360));
    }
    port.offer(at(2 * DT), 0, 7_000, 1492);
    let judged = at(2 * DT + 2);
    assert!(port.offer(judged, 1, 8_000, 1492).is_empty());
    let order: Vec<u64> = std::iter::from_fn(|| port.serve(judged).0).map(|packet| packet.seq).collect();
    assert_eq!(order, [8_000, 7_000]);
}

/// As the prototype is: judged only while the port is full, counter first, tables, two-tuples, 2 x 1024 slots, means of two windows,
/// five more windows, a queue for each round and one by default; slacks of 10 %, a tax of 5 %, rounds of 2^24 ns.
#[test]
fn the_prototype_conserves_packets_too() {
    let prototype = CebinaeConfig {
        by_hosts: true,
        only_saturated: true,
        default_queue: true,
        counts_itself: true,
        products: Products::Tables,
        smooth: true,
        hold: 5,
        cache_slots: 1024,
        tax: WHOLE / 20,
        enforced: Enforced::Delay,
        port_slack: WHOLE / 10,
        flow_slack: WHOLE / 10,
        ..config(1 << 24)
    };
    let mut port = Port::new(managed(prototype, 100), Rate(C));
    let (mut lost, mut left) = (0, 0);
    for name in 0..4000u64 {
        let now = Time::from_ns(name * 60_000);
        lost += port.offer(now, (name % 7) as u32, name, 1492).len();
        left += usize::from(name % 2 == 0 && port.serve(now).0.is_some());
    }
    left += std::iter::from_fn(|| port.serve(Time::from_ns(4000 * 60_000)).0).count();
    assert_eq!(lost + left, 4000);
    assert!(lost > 0);
}

#[test]
fn control_comes_at_the_specified_times_and_in_the_specified_order() {
    let mut port = cebinae();
    let (l, vdt) = (100_000, 1);
    let mut seen = Vec::new();
    for now in
        [DT + vdt + l - 1, DT + vdt + l, 2 * DT + vdt - 1, 2 * DT + vdt, 2 * DT + vdt + l, 3 * DT + vdt]
    {
        port.keep_time(now, 0);
        seen.push((port.filter.head, port.first, port.tally.windows));
    }
    assert_eq!(seen, [(0, 1, 0), (1, 1, 0), (1, 1, 0), (1, 0, 1), (0, 0, 1), (0, 1, 2)]);
}

#[test]
fn at_the_time_of_a_step_that_goes_first_whose_event_was_made_first() {
    let seen = |under_way: u64, now: u64| {
        let place = PortPlace { under_way: Time::from_ns(under_way), ..place(C) };
        let mut port = Cebinae::new(&config(DT), Limit::of_packets(250), &place);
        port.keep_time(now, port.under_way);
        (port.filter.head, port.tally.windows)
    };
    // A rotation is announced 100 us before it, new rates a round less that.
    let (rotation, rates) = (DT + 1 + 100_000, 2 * DT + 1);
    assert_eq!([0, 99_999, 100_000].map(|under_way| seen(under_way, rotation)), [(1, 0), (1, 0), (0, 0)]);
    assert_eq!(seen(100_000, rotation + 1), (1, 0));
    let announced = DT - 100_000;
    assert_eq!([0, announced - 1, announced].map(|of| seen(of, rates)), [(1, 1), (1, 1), (1, 0)]);
}

#[test]
fn long_silence_is_skipped_as_if_every_round_had_passed() {
    for period in [1, 2, 3, 5] {
        let config = CebinaeConfig { period, ..config(DT) };
        let new = || Cebinae::new(&config, Limit::of_packets(250), &place(C));
        for now in [100 * DT + 5, 1001 * DT + 99_999, 4096 * DT + 200_000] {
            let (mut skipped, mut stepped) = (new(), new());
            skipped.keep_time(now, 0);
            (0..=now / 1000).for_each(|step| stepped.keep_time(step * 1000, 0));
            stepped.keep_time(now, 0);
            assert_eq!(format!("{skipped:?}"), format!("{stepped:?}"), "period {period} at {now}");
        }
    }
}

#[test]
fn rates_are_of_whole_bytes_of_a_round_and_what_slacks_leave_is_in_floating_point() {
    // As the authors' logs of fig1 and thresh have them: packets count 1472 B.
    let rate = |config: CebinaeConfig, round: u64, packets: u64| {
        let mut agent = Agent::new(&config, C, round);
        let decision = agent.decide(1 << 24, [Slot { flow: 0, bytes: packets * 1472 }].into_iter());
        (agent.threshold_bits(), decision.rates[0])
    };
    let fig1 = CebinaeConfig { period: 4, products: Products::Double, ..config(DT) };
    assert_eq!(rate(fig1, 12_000_000, 401), (4_752_000, 97_394_666));
    let shares = WHOLE / 5 * 4;
    let thresh = CebinaeConfig { tax: shares, port_slack: shares, flow_slack: shares, ..config(DT) };
    let double = CebinaeConfig { products: Products::Double, ..thresh };
    // A byte less than a fifth of 169 280 B, which is whole.
    assert_eq!(rate(double, 1 << 26, 115), (1_342_177, 4_035_830));
    assert_eq!(rate(thresh, 1 << 26, 115), (1_342_177, 4_035_949));
}

#[test]
fn one_flow_of_a_full_link_is_taxed_and_the_bottom_gets_the_rest() {
    let mut agent = Agent::new(&config(DT), C, DT);
    assert_eq!(agent.threshold_bits(), 3_321_888);
    let full = C * DT / 8_000_000_000;
    let flows = |shares: &[u64]| -> Vec<Slot> {
        shares.iter().enumerate().map(|(f, s)| Slot { flow: f as u64, bytes: full * s / 1000 }).collect()
    };
    let decision = agent.decide(full, flows(&[950, 50]).into_iter());
    assert_eq!(decision.top, [0]);
    assert!(decision.rates[0].abs_diff(94_050_000) < 1000, "{:?}", decision.rates);
    assert_eq!(decision.rates[0] + decision.rates[1], C);
    // All within one percent of the largest: the whole is capped at 99 Mbps.
    let decision = agent.decide(full, flows(&[250, 250, 249, 251]).into_iter());
    assert_eq!((decision.top.as_slice(), decision.saturated), (&[0, 1, 2, 3][..], true));
    assert!(decision.rates[0] <= 99_000_000 && decision.rates[0] > 98_900_000, "{:?}", decision.rates);
    // At the threshold itself the link is not saturated.
    let decision = agent.decide(3_321_888 / 8, flows(&[990]).into_iter());
    assert_eq!((decision.saturated, decision.rates), (false, [0, C]));
}

#[test]
fn a_port_that_holds_stays_saturated_for_its_windows() {
    let mut agent = Agent::new(&CebinaeConfig { hold: 2, ..config(DT) }, C, DT);
    let slot = || [Slot { flow: 1, bytes: 1000 }].into_iter();
    let saturated: Vec<bool> =
        [500_000, 0, 0, 0].into_iter().map(|bytes| agent.decide(bytes, slot()).saturated).collect();
    assert_eq!(saturated, [true, true, true, false]);
}

#[test]
fn smoothed_counts_are_means_of_two_windows() {
    let mut agent = Agent::new(&CebinaeConfig { smooth: true, ..config(DT) }, C, DT);
    let window = |a, b| [Slot { flow: 1, bytes: a }, Slot { flow: 2, bytes: b }].into_iter();
    assert_eq!(agent.decide(500_000, window(300, 200)).top, [1]);
    // (300 + 100) / 2 against (200 + 310) / 2.
    assert_eq!(agent.decide(500_000, window(100, 310)).top, [2]);
    assert_eq!(agent.decide(500_000, window(260, 200)).top, [2]);
}

/// The authors' traces: when the agent woke, whether the port was saturated, and both rates. Port bytes are in them; the top
/// flow's bytes are not, but they are a whole number of packets, and rounding leaves no choice which. (1472 bytes each: the
/// authors count flows without the IP header of 20 bytes that their count of the port has.)
#[test]
fn the_authors_control_traces_come_out_bit_for_bit() {
    let Some(folder) = reference("cebinae/control_trace") else { return };
    for (row, exponent, windows) in [("r0", 25, 2979), ("r3", 28, 371), ("r5", 26, 1489)] {
        let file = folder.join(format!("{row}.csv.gz"));
        assert_eq!(replay(&file, 1 << exponent), windows, "{row}");
    }
}

/// Replays a trace; its windows.
fn replay(file: &std::path::Path, round: u64) -> usize {
    use std::io::Read;
    let mut text = String::new();
    let bytes = std::fs::File::open(file).unwrap();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    let mut agent = Agent::new(&config(round), C, round);
    let mut port = Cebinae::new(&config(round), Limit::of_packets(250), &place(C));
    let mut windows = 0;
    for line in text.lines().skip(1) {
        let mut fields = line.split(',');
        let numbers: Vec<u64> = fields.by_ref().take(8).map(|field| field.parse().unwrap()).collect();
        let top: Vec<u64> =
            fields.next().unwrap().split_whitespace().map(|flow| flow.parse().unwrap()).collect();
        let (time, saturated, bits, threshold) = (numbers[0], numbers[1] == 1, numbers[2], numbers[3]);
        windows += 1;
        port.keep_time(time - 1, 0);
        assert_eq!(port.tally.windows, windows as u64 - 1, "{line}");
        port.keep_time(time, 0);
        assert_eq!(port.tally.windows, windows as u64, "{line}");
        assert_eq!(agent.threshold_bits(), threshold, "{line}");
        // Packets of the top flows: the one number of them that gives this rate.
        let packets = (numbers[4] * round / 8_000_000_000 * 100).div_ceil(99 * 1472);
        let count = top.len().max(1) as u64;
        let counts = top.iter().enumerate().map(|(place, &flow)| {
            let share = packets / count + u64::from((place as u64) < packets % count);
            Slot { flow, bytes: share * 1472 }
        });
        let decision = agent.decide(bits / 8, counts);
        assert_eq!(decision.saturated, saturated, "{line}");
        assert_eq!(decision.rates, [numbers[4], numbers[5]], "{line}");
        let mut top = top.clone();
        top.sort_unstable();
        assert_eq!(decision.top, top, "{line}");
    }
    windows
}

#[test]
fn a_packet_of_a_top_flow_waits_for_the_next_round_and_leaves_first_in_it() {
    let discipline = config(DT);
    let mut port = Port::new(managed(discipline, 250), Rate(C));
    let at = Time::from_ns;
    // Flow 0 fills the link until the agent has made it top and the rates hold for the tail.
    let steps = (2 * DT + 200_000) / 119_360;
    for step in 0..=steps {
        port.offer(at(step * 119_360), 0, step, 1492);
        assert_eq!(port.serve(at(step * 119_360)).0.unwrap().seq, step);
    }
    // The head has no rate for it: its packets wait for the next round, and flow 1 goes before them.
    let now = at((steps + 1) * 119_360);
    for (flow, name) in [(0, 1000), (0, 1001), (1, 1002), (0, 1003)] {
        assert_eq!(port.offer(now, flow, name, 1492), [0u64; 0]);
    }
    let order: Vec<u64> = std::iter::from_fn(|| port.serve(now).0).map(|packet| packet.seq).collect();
    assert_eq!(order, [1002, 1000, 1001, 1003]);
}

#[test]
fn split_buffers_hold_half_each() {
    let split = CebinaeConfig { shared: false, ..config(DT) };
    let mut port = Port::new(managed(split, 10), Rate(C));
    let dropped: Vec<u64> = (0..8).flat_map(|name| port.offer(Time::ZERO, 0, name, 1492)).collect();
    assert_eq!(dropped, [5, 6, 7]);
}

#[test]
fn a_round_is_as_long_as_a_slow_control_needs() {
    let slow = |deadline: u64| CebinaeConfig { deadline: Time::from_us(deadline), ..defaults() };
    let round = |deadline: u64, rate: u64| slow(deadline).round_at(Rate(rate), Limit::of_packets(250));
    // 250 packets of 1500 B drain in 30 ms at 100 Mb/s; at 1 bit/s they count for half a minute.
    assert_eq!([round(100, C), round(100, 1)], [DT, 1 << 35]);
    // Twice 1000 s, and twice the nanosecond of a virtual round.
    assert_eq!(round(1_000_000_000, C), 1 << 41);
}
