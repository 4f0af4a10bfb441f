use super::*;
use crate::congestion::tests::situations::{LINE, ack, flow, published};

/// A flow at half the line rate whose first ACK saw this rtt.
fn after_first_ack(rtt_us: u64) -> (Timely, Control) {
    let mut timely = published::<TimelyParameters>().start(&flow(), 0);
    timely.rate = LINE / 2;
    let mut control = Control::new(Rate(LINE / 2));
    timely.on_ack(&Ack { rtt: Time::from_us(rtt_us), ..ack(1, 10) }, &mut control);
    assert_eq!(control.rate.0, LINE / 2);
    (timely, control)
}

/// The rates after one ACK per round trip with these rtts.
fn rates(first_us: u64, rtts_us: &[u64]) -> Vec<u64> {
    let (mut timely, mut control) = after_first_ack(first_us);
    let ack_of = |(i, &rtt): (usize, &u64)| {
        let seq = (i as u64 + 1) * 10;
        timely.on_ack(&Ack { rtt: Time::from_us(rtt), ..ack(seq + 1, seq + 10) }, &mut control);
        control.rate.0
    };
    rtts_us.iter().enumerate().map(ack_of).collect()
}

#[test]
fn low_round_trip_times_grow_the_rate_and_the_sixth_step_is_larger() {
    let step = 100_000_000;
    let half = LINE / 2;
    let expected = [1, 2, 3, 4, 5, 10, 15].map(|steps| half + steps * step);
    assert_eq!(rates(10, &[20, 30, 40, 45, 48, 49, 49]), expected);
}

#[test]
fn a_rising_round_trip_time_cuts_by_its_gradient() {
    // diff = 0.875 * 10 us, gradient = 8.75 / 20, factor = 1 - 0.8 * 0.4375 = 0.65.
    assert_eq!(rates(60, &[70]), [(50e9 * (1.0 - 0.8 * 0.4375)) as u64]);
    // A gradient above 1.25 would make the rate negative: the minimum rate applies.
    assert_eq!(rates(60, &[100]), [1_000_000_000]);
}

#[test]
fn a_falling_round_trip_time_grows_the_rate_even_when_it_is_high() {
    assert_eq!(rates(400, &[390, 390]), [LINE / 2 + 100_000_000, LINE / 2 + 200_000_000]);
}

#[test]
fn above_t_high_the_cut_is_by_the_excess_whatever_the_gradient() {
    // 1 - 0.8 (1 - 500 / 1000) = 0.6; at exactly 500 us the gradient decides.
    assert_eq!(rates(2_000, &[1_000]), [30_000_000_000]);
    assert_eq!(rates(2_000, &[500]), [LINE / 2 + 100_000_000]);
}

#[test]
fn a_cut_ends_the_row_of_increases() {
    let rates = rates(10, &[11, 12, 13, 14, 15, 60, 40]);
    assert_eq!(rates[6] - rates[5], 100_000_000);
}

#[test]
fn acknowledgements_within_a_round_trip_change_nothing() {
    let (mut timely, mut control) = after_first_ack(10);
    timely.on_ack(&Ack { rtt: Time::from_us(900), ..ack(10, 20) }, &mut control);
    assert_eq!((control.rate.0, timely.last_rtt_ns), (LINE / 2, 10_000));
}
