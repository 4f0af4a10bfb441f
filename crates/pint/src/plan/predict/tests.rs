use super::*;
use crate::plan::presets::Preset;

fn model(preset: Preset, hops: u32, bits: u32, copies: u32) -> PathModel {
    let (tau, layers) = preset.numbers(hops);
    let layers: Vec<Selection> = layers.into_iter().map(Selection::threshold).collect();
    let code = Code::new(tau, &layers).unwrap();
    PathModel { code, bits, copies, ids: 753, fragments: 1, raw: false, frequency: 1.0 }
}

#[test]
fn two_hops_take_three_packets_of_the_baseline() {
    let raw = PathModel { raw: true, ..model(Preset::Baseline, 2, 16, 1) };
    assert!((path_packets(&raw, 2, 20_000, 1).mean - 3.0).abs() < 0.05);
    assert_eq!(path_packets(&raw, 1, 10, 1).mean, 1.0);
}

#[test]
fn the_hybrid_toy_takes_eight_thirds() {
    // Spec §1.6: k = 2, tau 1/2, p = 1.
    let code = Code::new(0.5, &[Selection::threshold(1.0)]).unwrap();
    let raw = PathModel { code, raw: true, ..model(Preset::Baseline, 2, 16, 1) };
    assert!((path_packets(&raw, 2, 20_000, 1).mean - 8.0 / 3.0).abs() < 0.05);
}

#[test]
fn the_papers_example_of_25_hops_is_met() {
    let raw = |preset| PathModel { raw: true, ..model(preset, 25, 16, 1) };
    let baseline = path_packets(&raw(Preset::Baseline), 25, 4_000, 1);
    assert!((87..=91).contains(&baseline.median) && (180..=198).contains(&baseline.p99), "{baseline:?}");
    let hybrid = path_packets(&raw(Preset::PaperBody), 25, 4_000, 1);
    assert!((41..=45).contains(&hybrid.median) && (62..=72).contains(&hybrid.p99), "{hybrid:?}");
}

#[test]
fn the_evaluated_setting_takes_the_packets_of_the_reference_decoder() {
    // Spec §5.1, 753 ids, 2 x 8 bits, means.
    let (isp, tree) = (Preset::PaperEvaluationIsp, Preset::PaperEvaluationFatTree);
    for (preset, hops, mean) in [(tree, 5, 9.7), (isp, 10, 22.9), (isp, 25, 41.5), (isp, 59, 82.5)] {
        let found = path_packets(&model(preset, hops, 8, 2), hops, 1_000, 7);
        assert!((found.mean / mean - 1.0).abs() < 0.06, "{hops}: {found:?}");
    }
}

#[test]
fn of_many_wrong_ids_none_may_be_left_where_their_mean_is_about_one() {
    // 5,000 ids and 12 bits: none is left with probability (1 - 2^-12)^5000, or e^-1.22.
    let mut draws = Draws(5);
    let left: Vec<u32> = (0..20_000).map(|_| survivors(5_000, 12, &mut draws)).collect();
    let none = left.iter().filter(|&&count| count == 0).count() as f64 / 2e4;
    let mean = left.iter().map(|&count| f64::from(count)).sum::<f64>() / 2e4;
    assert!((none - 0.295).abs() < 0.012 && (mean - 1.2207).abs() < 0.03, "{none} {mean}");
}

#[test]
fn one_packet_in_sixteen_takes_sixteen_times_the_packets() {
    let all = model(Preset::Tuned, 5, 8, 2);
    let some = PathModel { frequency: 1.0 / 16.0, ..all };
    let ratio = path_packets(&some, 5, 2_000, 3).mean / path_packets(&all, 5, 2_000, 3).mean;
    assert!((ratio - 16.0).abs() < 1.0, "{ratio}");
}

#[test]
fn a_code_that_never_ends_is_given_up() {
    let nothing = Code::new(0.0, &[Selection::Threshold(0)]).unwrap();
    let stuck = PathModel { code: nothing, ..model(Preset::Tuned, 2, 8, 1) };
    assert_eq!(path_packets(&stuck, 2, 1, 1).unfinished, 1);
}

#[test]
fn quantile_errors_are_those_of_independent_lognormal_samples() {
    // Spec §5.3, sigma 1.2, 8 bits, no sketch: 12.4 % at z = 100 and 3.9 % at 1 000 for the median, 12 to 15
    // % for p99 at 1 000.
    let error = |phi, z| quantile_error(phi, z, u32::MAX, 0.022).relative_error;
    assert!((error(0.5, 100.0) - 0.124).abs() < 0.01, "{}", error(0.5, 100.0));
    assert!((error(0.5, 1_000.0) - 0.039).abs() < 0.005);
    assert!((0.10..=0.15).contains(&error(0.99, 1_000.0)));
    assert!((packets_for_rank(0.05, 0.01, 1.0) - 1_059.7).abs() < 0.1);
    assert!((kll::normal_quantile(0.975) - 1.959_964).abs() < 1e-6);
}

#[test]
fn the_number_of_packets_for_a_rank_counts_the_sketch() {
    // 40, 80 and 200 bytes a hop; a hop has a sample of 3/16 of the packets.
    let text = |space: u32| {
        format!(
            "bits = 8\nhops = {{ expected = 5, maximal = 8 }}\n[[query]]\nname = \"latency\"\nvalue = \"hop-latency\"\naggregation = \
             \"quantiles\"\nbits = 8\nfrequency = \"15/16\"\nspace = {space}\n"
        )
    };
    let plan = |space| crate::plan::Plan::open(&text(space), "queries.toml").unwrap();
    let predicted = |space| plan(space).to_json()["queries"][0]["prediction"].clone();
    for space in [200, 400] {
        assert!(predicted(space)["packets_for_rank_5_percent"].is_null());
        assert!(
            plan(space).describe().contains("whatever the values: never, the sketch alone may be off by")
        );
    }
    let (found, share) = (predicted(1_000), plan(1_000).served(0) as f64 / 65_536.0 / 5.0);
    let left = 0.05 - found["sketch_rank_error"].as_f64().unwrap();
    let packets = found["packets_for_rank_5_percent"].as_f64().unwrap();
    assert!((packets * share * 2.0 * left * left / (400f64).ln() - 1.0).abs() < 0.002, "{found}");
}

#[test]
fn quantile_errors_are_those_of_trials_with_and_without_a_full_sketch() {
    use crate::accuracy::quantile_trials;
    let text = "bits = 12\nhops = { expected = 1, maximal = 2 }\n[[query]]\nname = \"latency\"\nvalue = \"hop-latency\"\n\
                aggregation = \"quantiles\"\nquantiles = [0.5, 0.99]\napproximation = { epsilon = 0.0025 }\nbits = 12\n";
    let hold = |space: &str, k: u32, packets: u64, flows: u32| {
        let plan = crate::plan::Plan::open(&format!("{text}{space}"), "queries.toml").unwrap();
        let prediction = plan.to_json()["queries"][0]["prediction"].clone();
        assert_eq!(prediction["sketch_k"], k);
        let trials = quantile_trials(&plan, &crate::collector::NoPaths, 0, (flows, packets, 1), 1).unwrap();
        let errors = prediction["errors"].as_array().unwrap().iter();
        for (found, expected) in trials.iter().zip(errors.filter(|error| error["packets"] == packets)) {
            assert_eq!(expected["quantile"], found.quantile);
            let sketch = if packets > u64::from(k) { kll::rank_error(k) } else { 0.0 };
            assert_eq!(expected["sketch_rank_error"], sketch);
            let ratio = expected["relative_error"].as_f64().unwrap() / found.mean_error;
            // In the last case the error of the rank equals the rest of the ranks: the law is rough there.
            let within = if (k, packets, found.quantile) == (67, 10_000, 0.99) { 0.4 } else { 0.2 };
            assert!((ratio - 1.0).abs() < within, "k {k}, {packets} packets: {found:?}, {ratio}");
        }
    };
    hold("", 200, 100, 2_000);
    hold("", 200, 1_000, 1_000);
    hold("", 200, 10_000, 200);
    hold("space = 400\n", 67, 1_000, 1_000);
    hold("space = 400\n", 67, 10_000, 200);
}
