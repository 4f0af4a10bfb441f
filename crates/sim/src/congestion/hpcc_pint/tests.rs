use super::super::PathLoad;
use super::super::tests::situations::{ack, flow, published};
use super::*;

fn used(load: f64, coin: u32, acknowledged: u64, next_byte: u64) -> Ack<'static> {
    Ack { load: Some(PathLoad { load, coin }), ..ack(acknowledged, next_byte) }
}

#[test]
fn the_first_feedback_only_sets_the_round_and_the_next_scale_the_rate() {
    let parameters: HpccPintParameters = published();
    let (mut hpcc, mut control) = (parameters.start(&flow(), 0), Control::new(flow().line_rate));
    let line = flow().line_rate.0 as f64;
    hpcc.on_ack(&used(1.9, 0, 1_000, 50_000), &mut control);
    assert_eq!(control.rate, flow().line_rate);
    // c = 1.9 / 0.95 = 2: a fast update halves the rate and keeps the reference.
    hpcc.on_ack(&used(1.9, 0, 2_000, 51_000), &mut control);
    assert_eq!(control.rate.0, (line / 2.0) as u64 + 50_000_000);
    hpcc.on_ack(&used(1.9, 0, 3_000, 52_000), &mut control);
    assert_eq!(control.rate.0, (line / 2.0) as u64 + 50_000_000);
    // After the round the reference changes, too.
    hpcc.on_ack(&used(1.9, 0, 50_001, 90_000), &mut control);
    let reference = control.rate.0;
    hpcc.on_ack(&used(1.9, 0, 50_002, 90_000), &mut control);
    assert_eq!(control.rate.0, (reference as f64 / 2.0) as u64 + 50_000_000);
}

#[test]
fn of_the_feedback_a_share_p_is_used() {
    let parameters = HpccPintParameters { p: 1.0 / 16.0, ..published() };
    let mut control = Control::new(flow().line_rate);
    let mut hpcc = parameters.start(&flow(), 0);
    let drawn = |n: u32| n.wrapping_mul(0x9e37_79b9);
    let mut count = 0;
    for n in 0..64_000u32 {
        control.repace = false;
        hpcc.on_ack(&used(0.5, drawn(n), 1 + u64::from(n), 2 + u64::from(n)), &mut control);
        count += u32::from(control.repace);
    }
    assert!((3_900..=4_100).contains(&count), "{count}");
    // Packets without a load change nothing.
    control.repace = false;
    hpcc.on_ack(&ack(100_000, 200_000), &mut control);
    assert!(!control.repace);
}
