//! HPCC in cases computed by hand: each step of the law was computed separately from this code, in IEEE
//! doubles.

use super::*;
use crate::congestion::tests::situations::{LINE, ack, flow, published, record};

/// One flow with its control, over a path whose records come as (ns, bytes sent, queue, Gb/s).
struct Run {
    hpcc: Hpcc,
    control: Control,
    now: Time,
}

type Hop = (u64, u64, u64, u64);

impl Run {
    fn new(parameters: HpccParameters) -> Run {
        Run { hpcc: parameters.start(&flow(), 5), control: Control::new(Rate(LINE)), now: Time::ZERO }
    }
    fn ack(&mut self, acknowledged: u64, next_byte: u64, hops: &[Hop]) -> u64 {
        self.ack_on_path(7, acknowledged, next_byte, hops)
    }
    fn ack_on_path(&mut self, path_id: u16, acknowledged: u64, next_byte: u64, hops: &[Hop]) -> u64 {
        let records: Vec<_> = hops.iter().map(|h| record(h.0, h.1, h.2, Rate::from_gbps(h.3))).collect();
        self.view(acknowledged, next_byte, IntView { hops: hops.len() as u32, records: &records, path_id })
    }
    fn view(&mut self, acknowledged: u64, next_byte: u64, telemetry: IntView) -> u64 {
        self.control.repace = false;
        let ack = Ack { now: self.now, telemetry: Some(telemetry), ..ack(acknowledged, next_byte) };
        self.hpcc.on_ack(&ack, &mut self.control);
        self.control.rate.0
    }
    /// The first ACK only stores records; its next byte begins the first full update.
    fn after_first_ack(parameters: HpccParameters, hops: &[Hop]) -> Run {
        let mut run = Run::new(parameters);
        assert_eq!(run.ack(1_000, 10_000, hops), LINE);
        assert!(!run.control.repace);
        run
    }
    fn internals(&self) -> [f64; 2] {
        let mut out = Vec::new();
        self.hpcc.internals(self.now, &mut out);
        [out[0].1, out[1].1]
    }
}

#[test]
fn the_rate_halves_when_the_load_is_twice_eta() {
    let parameters = HpccParameters { eta: 0.5, ..published() };
    let mut run = Run::after_first_ack(parameters, &[(1_000, 0, 0, 100)]);
    // 153 600 B in 12 288 ns are 100 Gb/s, and the interval is longer than T: u becomes 1 = 2 eta.
    assert_eq!(run.ack(11_000, 20_000, &[(13_288, 153_600, 0, 100)]), LINE / 2 + 50_000_000);
    assert!(run.control.repace);
}

#[test]
fn two_hops_give_the_rates_of_the_authors_arithmetic_to_the_last_bit() {
    let mut run = Run::after_first_ack(published(), &[(1_000, 0, 64_000, 100), (3_000, 0, 0, 400)]);
    assert_eq!(
        run.ack(11_000, 20_000, &[(1_087, 1_024, 64_320, 100), (3_087, 4_096, 0, 400)]),
        94_807_592_760
    );
    assert_eq!(run.internals(), [1.0025581827502243, 94_807_592_760.0]);
    // Between full updates u changes, the reference does not.
    assert_eq!(
        run.ack(12_000, 21_000, &[(1_261, 3_072, 32_000, 100), (3_177, 5_120, 640, 400)]),
        89_699_003_524
    );
    assert_eq!(run.internals(), [1.0046649664973, 94_807_592_760.0]);
    assert_eq!(
        run.ack(20_001, 30_000, &[(1_361, 4_096, 32_000, 100), (3_267, 6_144, 640, 400)]),
        89_681_739_614
    );
    assert_eq!(run.internals(), [1.0048584743428888, 89_681_739_614.0]);
}

#[test]
fn without_fast_reaction_the_rate_moves_once_per_round_trip() {
    let parameters = HpccParameters { reaction: Reaction::EachRoundTrip, ..published() };
    let mut run = Run::after_first_ack(parameters, &[(0, 0, 0, 100)]);
    assert_eq!(run.ack(10_000, 12_000, &[(12_288, 153_600, 64_000, 100)]), LINE);
    assert!(!run.control.repace);
    assert!(run.ack(10_001, 13_000, &[(24_576, 307_200, 64_000, 100)]) < LINE);
}

#[test]
fn below_eta_the_rate_grows_by_steps_and_leaps_after_max_stage() {
    let parameters = HpccParameters { max_stage: 2, ..published() };
    let mut run = Run::after_first_ack(parameters, &[(0, 0, 0, 100)]);
    run.hpcc.reference.rate = LINE / 2;
    let mut rates = Vec::new();
    for i in 1..=4 {
        rates.push(run.ack(i * 10_000 + 1, (i + 1) * 10_000, &[(i * 12_240, i * 51_200, 0, 100)]));
    }
    assert_eq!(rates, [50_050_000_000, 50_100_000_000, LINE, LINE]);
    assert_eq!(run.internals()[0], 0.33464052287581697);
    assert_eq!(run.hpcc.reference.stage, 1);
}

#[test]
fn a_rate_never_falls_below_the_minimum() {
    let mut run = Run::after_first_ack(published(), &[(0, 0, 32_000_000, 100)]);
    assert_eq!(run.ack(11_000, 20_000, &[(12_240, 153_600, 32_000_000, 100)]), 1_000_000_000);
}

#[test]
fn a_new_path_discards_the_records_and_keeps_load_and_reference() {
    let mut run = Run::after_first_ack(published(), &[(1_000, 0, 64_000, 100), (3_000, 0, 0, 400)]);
    let before = run.ack(11_000, 20_000, &[(1_087, 1_024, 64_320, 100), (3_087, 4_096, 0, 400)]);
    let internals = run.internals();
    // Other switches, other counters: the difference is meaningless.
    assert_eq!(run.ack_on_path(9, 20_001, 30_000, &[(900, 9_999_872, 0, 100), (3_000, 0, 0, 400)]), before);
    assert!(!run.control.repace);
    assert_eq!(run.internals(), internals);
    assert_eq!(run.hpcc.last_update_seq, 30_000);
    // The next ACK of that path is compared with the new records: a hop with 1 024 B in 1 000 ns is idle.
    run.ack_on_path(9, 30_001, 40_000, &[(1_900, 10_000_896, 0, 100), (4_000, 1_024, 0, 400)]);
    assert!(run.control.repace);
    assert!(run.internals()[0] < internals[0]);
    // A path with another number of hops is another path, with any id.
    let before = run.control.rate.0;
    assert_eq!(run.ack_on_path(9, 40_001, 50_000, &[(2_000, 10_002_944, 0, 100)]), before);
    assert_eq!(run.hpcc.kept, 1);
}

#[test]
fn after_a_rest_in_which_the_clock_may_have_wrapped_records_are_only_stored() {
    let parameters = HpccParameters { eta: 0.5, ..published() };
    let half = 8_388_608;
    // After the longest rest the load counts: the port was almost idle, so that the rate is the line rate.
    let mut run = Run::after_first_ack(parameters.clone(), &[(0, 0, 0, 100)]);
    run.hpcc.reference.rate = LINE / 2;
    run.now = Time::from_ns(half);
    assert_eq!(run.ack(11_000, 20_000, &[(half, 2_048, 0, 100)]), LINE);
    // 84 MB of others in 16.78 ms would be 84 MB in 2.8 us.
    let mut run = Run::after_first_ack(parameters, &[(0, 0, 0, 100)]);
    let before = run.internals();
    run.now = Time::from_us(16_780);
    run.ack(11_000, 20_000, &[(16_780_000, 83_900_000, 0, 100)]);
    assert_eq!((run.control.repace, run.internals(), run.hpcc.last_update_seq), (false, before, 20_000));
    // The next one is compared with this one: half of the rate in 12 288 ns, which is eta.
    run.now += Time::from_ns(12_288);
    run.ack(21_000, 30_000, &[(16_792_288, 83_976_800, 0, 100)]);
    assert!(run.control.repace && (run.internals()[0] - 0.5).abs() < 0.01, "{:?}", run.internals());
    // Where a simulator is repeated, they are always compared.
    let mut run = Run::after_first_ack(published(), &[(0, 0, 0, 100)]);
    run.hpcc.layout.comparable = Time::MAX;
    run.now = Time::from_us(16_780);
    assert_eq!(run.ack(11_000, 20_000, &[(16_780_000, 83_900_000, 0, 100)]), 1_000_000_000);
}

#[test]
fn a_record_that_sampling_has_left_out_is_as_old_as_it_is() {
    let parameters = HpccParameters { sample_feedback: true, ..published() };
    let mut run = Run::after_first_ack(parameters, &[(0, 0, 0, 100)]);
    run.now = Time::from_us(8_000);
    run.ack(9_000, 11_000, &[(8_000_000, 153_600, 0, 100)]);
    run.now = Time::from_us(9_000);
    run.ack(10_001, 12_000, &[(9_000_000, 153_600, 0, 100)]);
    assert_eq!((run.control.repace, run.hpcc.kept_at), (false, Time::from_us(9_000)));
}

#[test]
fn more_hops_than_records_change_nothing_but_the_start_of_the_next_update() {
    let mut run = Run::after_first_ack(published(), &[(1_000, 0, 0, 100)]);
    let records = [record(2_000, 99_840, 64_000, Rate(LINE)); 5];
    assert_eq!(run.view(11_000, 20_000, IntView { hops: 6, records: &records, path_id: 7 }), LINE);
    assert!(!run.control.repace);
    assert_eq!((run.hpcc.last_update_seq, run.hpcc.kept), (20_000, 1));
    assert_eq!(run.hpcc.records[0], record(1_000, 0, 0, Rate(LINE)));
    // Between updates u does not change, either.
    run.view(12_000, 21_000, IntView { hops: 6, records: &records, path_id: 7 });
    assert_eq!(run.hpcc.last_update_seq, 20_000);
}

#[test]
fn with_one_rate_per_hop_the_minimum_counts() {
    let parameters = HpccParameters { multi_rate: true, ..published() };
    let mut run = Run::after_first_ack(parameters, &[(0, 0, 0, 100), (0, 0, 0, 100)]);
    let rate = run.ack(11_000, 20_000, &[(12_288, 51_200, 0, 100), (12_288, 153_600, 0, 100)]);
    // The second hop is full: 1 / 0.95 too much. With the first alone the rate would have remained the line
    // rate.
    assert_eq!(rate, (LINE as f64 / (0.9999999999999999 / 0.95)) as u64 + 50_000_000);
    assert_eq!(run.internals()[1], rate as f64);
    assert_eq!(run.hpcc.per_hop[0].rate, LINE);
}

#[test]
fn sampled_feedback_leaves_out_empty_queues_between_updates() {
    let parameters = HpccParameters { sample_feedback: true, ..published() };
    let mut run = Run::after_first_ack(parameters, &[(0, 0, 0, 100)]);
    run.ack(9_000, 11_000, &[(12_288, 153_600, 0, 100)]);
    assert!(!run.control.repace);
    assert_eq!(run.hpcc.records[0], record(0, 0, 0, Rate(LINE)));
    run.ack(9_500, 11_500, &[(12_288, 153_600, 640, 100)]);
    assert!(run.control.repace);
    run.ack(10_001, 12_000, &[(24_576, 307_200, 0, 100)]);
    assert!(run.control.repace);
}

#[test]
fn without_telemetry_nothing_happens() {
    let mut run = Run::new(published());
    run.hpcc.on_ack(&ack(1_000, 10_000), &mut run.control);
    assert_eq!((run.hpcc.last_update_seq, run.control), (0, Control::new(Rate(LINE))));
}

#[test]
fn two_records_of_the_same_time_are_not_judged() {
    let mut run = Run::after_first_ack(published(), &[(1_000, 0, 0, 100)]);
    let rate = run.ack(11_000, 20_000, &[(1_000, 5_120, 0, 100)]);
    // u remains 1.
    assert_eq!(rate, (LINE as f64 / (1.0 / 0.95)) as u64 + 50_000_000);
}
