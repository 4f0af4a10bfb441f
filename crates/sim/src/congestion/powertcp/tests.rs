use super::*;
use crate::congestion::tests::situations::{LINE, ack, flow, published, record};

/// A flow of this law at line rate, and how a record of its one hop changes it. T = 12.24 us: 153 000 B at 100 Gb/s.
fn started(released: bool) -> (PowerTcp, Control) {
    let mut parameters = published::<PowerTcpParameters>();
    parameters.released = Some(released);
    (parameters.start(&flow(), 1), Control::new(Rate(LINE)))
}

fn tell(law: &mut PowerTcp, control: &mut Control, seq: u64, records: &[IntRecord]) -> u64 {
    let telemetry = Some(IntView { hops: 1, records, path_id: 1 });
    law.on_ack(&Ack { telemetry, ..ack(seq, seq + 100_000) }, control);
    control.rate.0
}

#[test]
fn power_one_adds_the_additive_part_up_to_the_line_rate_and_power_two_halves() {
    let (mut law, mut control) = started(false);
    // The first ACK only stores; then a base RTT at full rate without queue: power 1.
    assert_eq!(tell(&mut law, &mut control, 1, &[record(0, 0, 0, Rate(LINE))]), LINE);
    let full = |rtts: u64, queue| record(12_240 * rtts, 153_088 * rtts, queue, Rate(LINE));
    assert_eq!(tell(&mut law, &mut control, 200_000, &[full(1, 0)]), LINE);
    assert!((law.u - 1.0).abs() < 1e-3, "{}", law.u);
    // A queue of a bandwidth-delay product that came within one T: arrivals at twice the rate, voltage twice as high.
    tell(&mut law, &mut control, 400_000, &[full(2, 153_600)]);
    assert!((law.u - 4.0).abs() < 0.02, "{}", law.u);
    // 0.9 (100 / 4 + 0.15) + 0.1 * 100 Gb/s.
    assert!((control.rate.as_gbps() - 32.63).abs() < 0.2, "{}", control.rate.as_gbps());
}

#[test]
fn the_released_law_compares_the_first_record_with_zeros_and_aims_at_95_percent() {
    let (mut law, mut control) = started(true);
    // No bytes in 20 us: arrivals count as half of the rate, so power is a half.
    tell(&mut law, &mut control, 1, &[record(20_000, 0, 0, Rate(LINE))]);
    assert_eq!((law.u, control.rate.0), (0.5, LINE));
    // Power 1 for a base RTT: 0.9 (95 + 0.15) + 0.1 * 100 Gb/s.
    let mut law = PowerTcp { u: 1.0, ..law };
    assert_eq!(law.step.rate(1.0 / law.target, LINE, LINE), 95_635_000_000);
    // An ACK of the same nanosecond changes nothing.
    tell(&mut law, &mut control, 1, &[record(20_000, 0, 0, Rate(LINE))]);
    assert_eq!(law.u, 1.0);
}

#[test]
fn after_a_rest_in_which_a_counter_may_have_wrapped_records_are_only_stored() {
    let (mut law, mut control) = started(false);
    tell(&mut law, &mut control, 1, &[record(0, 0, 0, Rate(LINE))]);
    let later = |law: &mut PowerTcp, control: &mut Control, us, seq, record| {
        let telemetry = Some(IntView { hops: 1, records: &[record], path_id: 1 });
        let now = Time::from_us(us);
        law.on_ack(&Ack { now, telemetry, ..ack(seq, seq + 100_000) }, control);
        law.u
    };
    let after = record(16_780_000, 83_900_000, 0, Rate(LINE));
    assert_eq!(later(&mut law, &mut control, 16_780, 200_000, after), 1.0);
    // Half of the rate since then, for more than T.
    let half = record(16_792_288, 83_976_800, 0, Rate(LINE));
    assert!((later(&mut law, &mut control, 16_792, 400_000, half) - 0.5).abs() < 0.01, "{}", law.u);
}

#[test]
fn records_of_another_path_are_only_stored() {
    for released in [false, true] {
        let (mut law, mut control) = started(released);
        tell(&mut law, &mut control, 1, &[record(0, 0, 0, Rate(LINE))]);
        let (u, rate) = (law.u, control.rate);
        let records = [record(1_000, 900_000, 900_000, Rate(LINE))];
        let other = Some(IntView { hops: 1, records: &records, path_id: 2 });
        law.on_ack(&Ack { telemetry: other, ..ack(2, 10) }, &mut control);
        assert_eq!((law.u, control.rate), (u, rate));
    }
}
