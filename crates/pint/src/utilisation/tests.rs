use super::*;
use crate::hash::{Key, mix};

const RATE: u64 = 100_000_000_000;
const HORIZON: u64 = 12_240_000;

/// Packets of 1050 bytes on a 100 Gb/s port whose load swings between idle, half and full, with a queue when full.
fn traffic() -> impl Iterator<Item = (u64, u64, u32)> {
    (0..60_000u64).scan(1_000_000, |now, n| {
        let phase = n / 600 % 3;
        let spread = [84, 84 + mix(n) % 170, 84 + mix(n) % 900][phase as usize];
        *now += spread * 1_000;
        let queue = if phase == 0 { (n % 600) * 100 } else { 0 };
        Some((*now, queue, 1_050))
    })
}

#[test]
fn the_first_updates_are_those_of_the_formula() {
    // B T = 153 000 bytes. The first gap is capped at T.
    let mut code = Exact::new(Law::Code, RATE, HORIZON);
    assert_eq!(code.update(20_000_000, 0, 1_050), 0.0);
    let first = code.update(20_084_000, 15_300, 1_050);
    assert!((first - (84.0 / 12_240.0 * 0.1 + 1_050.0 / 153_000.0)).abs() < 1e-12);
    let mut paper = Exact::new(Law::Paper, RATE, HORIZON);
    assert!((paper.update(20_000_000, 0, 1_050) - 1_050.0 / 153_000.0).abs() < 1e-12);
    // An acknowledgement hides the data packet before it, under the law of the code only.
    code.pass(20_100_000, 0, 60);
    let second = code.update(20_110_000, 0, 1_050);
    assert!((second - (first * (1.0 - 10.0 / 12_240.0) + 60.0 / 153_000.0)).abs() < 1e-12);
}

#[test]
fn a_saturated_port_without_a_queue_has_a_load_of_one() {
    let mut exact = Exact::new(Law::Paper, RATE, HORIZON);
    let mut tabled = Tabled::new(Law::Paper, Tables::AUTHORS, RATE, HORIZON);
    for n in 1..3_000u64 {
        exact.update(n * 84_000, 0, 1_050);
        tabled.update(n * 84_000, 0, 1_050, Key::new(1, 1).word(n));
    }
    assert!((exact.load() - 1.0).abs() < 1e-6);
    assert!((tabled.load() as f64 / 1_048_576.0 - 1.0).abs() < 0.02, "{}", tabled.load());
    assert_eq!((scaled(1.0), scaled(0.0), scaled(1.000_001)), (512, 1, 513));
    assert_eq!((scaled_integer(1 << 20), scaled_integer(0), scaled_integer((1 << 20) + 1)), (512, 1, 513));
    assert_eq!((scaled(f64::NAN), scaled(f64::INFINITY)), (1, i64::MAX as u64));
}

/// Mean of the absolute error and of the error, against exact U, in loads above 0.05.
fn errors(mut estimate: impl FnMut(u64, u64, u32, u64) -> f64) -> (f64, f64) {
    let mut exact = Exact::new(Law::Paper, RATE, HORIZON);
    let (mut n, mut absolute, mut signed) = (0.0, 0.0, 0.0);
    for (packet, (now, queue, bytes)) in (0..).zip(traffic()) {
        let truth = exact.update(now, queue, bytes);
        let error = estimate(now, queue, bytes, packet) / truth - 1.0;
        if truth > 0.05 && packet > 600 {
            n += 1.0;
            absolute += error.abs();
            signed += error;
        }
    }
    (absolute / n, signed / n)
}

fn tabled(tables: Tables) -> (f64, f64) {
    let mut port = Tabled::new(Law::Paper, tables, RATE, HORIZON);
    errors(|now, queue, bytes, packet| {
        port.update(now, queue, bytes, Key::new(1, 1).word(packet)) as f64 / 1_048_576.0
    })
}

#[test]
fn tables_that_round_at_random_do_not_drift_and_tables_that_cut_do() {
    let authors = tabled(Tables::AUTHORS);
    assert!(authors.0 < 0.02 && authors.1.abs() < 0.02, "{authors:?}");
    let paper = tabled(Tables::PAPER);
    assert!(paper.0 < 0.04 && paper.1.abs() < 0.015, "{paper:?}");
    let cut = tabled(Tables { random: false, ..Tables::PAPER });
    println!("mean |error|, mean error: authors {authors:?}, 256 entries {paper:?}, cut off {cut:?}");
    assert!(cut.1 < -0.05, "{cut:?}");
}

#[test]
fn recirculating_each_nth_packet_costs_an_nth_of_the_bandwidth_and_some_accuracy() {
    let mut before = 0.0;
    for registers in [1, 4, 16] {
        let mut port = Recirculated::new(Law::Paper, RATE, HORIZON, registers, 0);
        let (absolute, signed) = errors(|now, queue, bytes, _| port.update(now, queue, bytes));
        println!("{registers} registers: mean |error| {absolute}, mean error {signed}");
        assert_eq!(port.recirculated().0, 60_000 / u64::from(registers));
        assert!(absolute >= before && absolute < 0.04 + 0.002 * f64::from(registers), "{absolute}");
        assert!(registers > 1 || absolute < 1e-9, "{absolute}");
        before = absolute;
    }
}

#[test]
fn a_round_that_is_shorter_than_the_second_pass_waits_for_it() {
    // Full packets come every 84 ns, a second pass takes 1 us: no packet sooner than the 12th after is recirculated.
    let mut port = Recirculated::new(Law::Paper, RATE, HORIZON, 1, 1_000_000);
    let (absolute, _) = errors(|now, queue, bytes, _| port.update(now, queue, bytes));
    assert!(absolute < 0.1, "{absolute}");
    let mut busy = Recirculated::new(Law::Paper, RATE, HORIZON, 1, 1_000_000);
    for packet in 1..=1_200u64 {
        busy.update(packet * 84_000, 0, 1_050);
    }
    assert_eq!(busy.recirculated().0, 100);
    assert!((busy.load() - 1.0).abs() < 0.03, "{}", busy.load());
}

proptest::proptest! {
    #[test]
    fn no_time_queue_or_rate_panics(rate: u64, horizon: u64, steps: Vec<(u64, u64, u32)>, q in 1u32..=16, shift: u32) {
        let arithmetic = Arithmetic::new(q, 20).unwrap();
        let tables = Tables { arithmetic, load_bits: shift, queue_shift: shift, random: q % 2 == 0 };
        let mut tabled = Tabled::new(Law::Code, tables, rate, horizon);
        let mut exact = Exact::new(Law::Code, rate, horizon);
        let mut twice = Recirculated::new(Law::Code, rate, horizon, q, horizon);
        for (now, queue, bytes) in steps {
            tabled.update(now, queue, bytes, Word(now));
            exact.update(now, queue, bytes);
            twice.update(now, queue, bytes);
        }
    }
}
