use super::*;
use crate::congestion::tests::situations::{LINE, ack, flow, published};

fn started(released: bool) -> (ThetaPowerTcp, Control) {
    let mut parameters = published::<ThetaPowerTcpParameters>();
    parameters.released = Some(released);
    (parameters.start(&flow(), 0), Control::new(Rate(LINE)))
}

fn tell(law: &mut ThetaPowerTcp, control: &mut Control, at_ns: u64, rtt_ns: u64) -> u64 {
    let (now, rtt) = (Time::from_ns(at_ns), Time::from_ns(rtt_ns));
    law.on_ack(&Ack { now, rtt, ..ack(at_ns, at_ns + 10) }, control);
    control.rate.0
}

#[test]
fn a_base_rtt_that_stays_gives_power_one_and_a_doubled_one_two() {
    let (mut law, mut control) = started(false);
    tell(&mut law, &mut control, 20_000, 12_240);
    assert_eq!(tell(&mut law, &mut control, 40_000, 12_240), LINE);
    assert_eq!(law.u, 1.0);
    // Twice the base RTT, and it stays there: 0.7 (50 + 0.15) + 0.3 * (the rate before).
    tell(&mut law, &mut control, 60_000, 24_480);
    control.rate = Rate(LINE);
    law.reference = LINE;
    assert_eq!(tell(&mut law, &mut control, 80_000, 24_480), 65_105_000_000);
    assert_eq!(law.u, 2.0);
    // The window is the rate times T.
    assert_eq!(control.cwnd, Some(65_105_000_000 / 1_000 * 12_240 / 8 / 1_000_000));
}

#[test]
fn the_released_law_leaves_a_margin_and_counts_falls_up_to_a_half() {
    let (mut law, mut control) = started(true);
    // Compared with time 0: theta' + 1 is about 1; the margin makes it less.
    tell(&mut law, &mut control, 1_224_000_000, 12_240);
    assert!((law.u - 1.00001 / 1.05).abs() < 1e-4, "{}", law.u);
    tell(&mut law, &mut control, 1_224_020_000, 32_240);
    // The RTT falls faster than time passes: 0.5 counts.
    tell(&mut law, &mut control, 1_224_033_000, 12_240);
    assert!((law.u - 0.5 / 1.05).abs() < 1e-9, "{}", law.u);
}

#[test]
fn the_lowest_rtt_that_a_flow_sees_becomes_its_base() {
    let (mut law, mut control) = started(false);
    tell(&mut law, &mut control, 20_000, 6_000);
    assert_eq!(law.base_rtt_ns, 6_000);
    // Acknowledgements of the same nanosecond change nothing.
    let rate = control.rate;
    tell(&mut law, &mut control, 20_000, 9_000);
    assert_eq!((law.u, control.rate), (1.0, rate));
}

#[test]
fn rtts_of_short_packets_are_not_compared_with_those_of_long_ones() {
    let (mut law, mut control) = started(false);
    let mut answer = |at_ns: u64, rtt_ns: u64, payload: u32| {
        let (now, rtt) = (Time::from_ns(at_ns), Time::from_ns(rtt_ns));
        law.on_ack(&Ack { now, rtt, payload, ..ack(at_ns, at_ns + 10) }, &mut control);
        (law.base_rtt_ns, control.rate.0)
    };
    // Short ones by themselves are what there is to compare; the first long one begins anew.
    assert_eq!(answer(20_000, 6_000, 4), (6_000, LINE));
    assert_eq!(answer(40_000, 12_240, 1_000), (12_240, LINE));
    assert_eq!(answer(60_000, 12_000, 1_000), (12_000, LINE));
    // A short one between says nothing, nor does one whose message has ended.
    assert_eq!(answer(61_000, 6_000, 4), (12_000, LINE));
    assert_eq!(answer(62_000, 6_000, 0), (12_000, LINE));
    assert_eq!(answer(80_000, 12_000, 1_000), (12_000, LINE));
}
