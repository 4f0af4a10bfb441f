use super::*;
use crate::congestion::tests::situations::{LINE, ack, flow, published};

/// State and control after the first ACK: the first window ends at byte 10 000 and has 11 packets.
fn after_first_ack() -> (Dctcp, Control) {
    let mut dctcp = published::<DctcpParameters>().start(&flow(), 0);
    let mut control = Control::new(Rate(LINE));
    dctcp.on_ack(&ack(1_000, 10_000), &mut control);
    assert_eq!((dctcp.last_update_seq, dctcp.batch, control.rate.0), (10_000, 11, LINE));
    (dctcp, control)
}

fn marked(acknowledged: u64, next_byte: u64) -> Ack<'static> {
    Ack { marked: true, ..ack(acknowledged, next_byte) }
}

#[test]
fn the_rate_halves_once_per_window_when_every_packet_is_marked() {
    let (mut dctcp, mut control) = after_first_ack();
    let mut rates = Vec::new();
    for packet in 2..=22 {
        dctcp.on_ack(&marked(packet * 1_000, (packet + 10) * 1_000), &mut control);
        rates.push(control.rate.0);
    }
    // Cut at byte 2 000 with alpha 1. This CWR lasts to byte 12 000; the ACK of 13 000 cuts again, with the
    // alpha that includes 10 marks of 11 packets at byte 11 000.
    assert!(rates[..11].iter().all(|&rate| rate == LINE / 2));
    let alpha = 15.0 / 16.0 + 10.0 / 11.0 / 16.0;
    assert!(rates[11..].iter().all(|&rate| rate == (50e9 * (1.0 - alpha / 2.0)) as u64));
}

#[test]
fn alpha_decays_in_closed_form_without_marks() {
    let (mut dctcp, mut control) = after_first_ack();
    for window in 1..=40 {
        dctcp.on_ack(&ack(window * 10_000 + 1, (window + 1) * 10_000), &mut control);
    }
    assert!((dctcp.alpha - (15.0_f64 / 16.0).powi(40)).abs() < 1e-15);
    assert_eq!(control.rate.0, LINE);
}

#[test]
fn a_window_without_marks_adds_one_step_and_an_ack_that_cuts_adds_none() {
    let (mut dctcp, mut control) = after_first_ack();
    dctcp.on_ack(&marked(2_000, 11_000), &mut control);
    assert_eq!(control.rate.0, LINE / 2);
    // Ends the window, but CWR lasts until byte 11 000 is passed.
    dctcp.on_ack(&ack(11_000, 21_000), &mut control);
    assert_eq!(control.rate.0, LINE / 2);
    dctcp.on_ack(&ack(21_001, 31_000), &mut control);
    assert_eq!(control.rate.0, LINE / 2 + 615_000_000);
    dctcp.on_ack(&marked(31_001, 41_000), &mut control);
    assert!(control.rate.0 < LINE / 2);
}

#[test]
fn a_rate_never_falls_below_the_minimum() {
    let (mut dctcp, mut control) = after_first_ack();
    for window in 1..=40 {
        dctcp.on_ack(&marked(window * 10_000 + 1, (window + 1) * 10_000), &mut control);
    }
    assert_eq!(control.rate.0, 1_000_000_000);
}
