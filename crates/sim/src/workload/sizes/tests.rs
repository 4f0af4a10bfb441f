use super::*;
use proptest::prelude::*;

#[test]
fn built_in_tables_have_their_published_means() {
    let mean = |name| SizeDistribution::named(name).unwrap().mean();
    assert_eq!(mean("websearch"), 1_711_250.0);
    assert!((mean("fb-hadoop") - 120_420.75).abs() < 1e-6, "{}", mean("fb-hadoop"));
    assert!((mean("ali-storage") - 40_869.8).abs() < 1e-6, "{}", mean("ali-storage"));
    assert!((mean("google-rpc") - 2_891.6).abs() < 0.05, "{}", mean("google-rpc"));
    assert!((mean("imc10") / 1460.0 - 133.806).abs() < 5e-4, "{}", mean("imc10") / 1460.0);
    assert!((mean("datamining") / 1460.0 - 5116.6).abs() < 5e-3);
    // W1's tail is a function, for which the authors state 185 B.
    assert!((mean("w1") / 185.0 - 1.0).abs() < 0.003, "{}", mean("w1"));
    assert!((mean("w2") - 440.7907).abs() < 1e-3, "{}", mean("w2"));
    assert!((mean("w3") - 2_927.354).abs() < 1e-3, "{}", mean("w3"));
    assert!((mean("w4") - 127_796.6).abs() < 0.1, "{}", mean("w4"));
    assert!((mean("w5") / 1442.0 - 1_744.70).abs() < 0.01, "{}", mean("w5") / 1442.0);
}

#[test]
fn a_quantile_is_cut_to_whole_bytes_and_never_zero() {
    let websearch = SizeDistribution::named("websearch").unwrap();
    assert_eq!(websearch.quantile(0.0), 1);
    assert_eq!(websearch.quantile(0.15), 10_000);
    assert_eq!(websearch.quantile(0.175), 15_000);
    // 10000 + 10000 / 5 * 0.00007 = 10000.14
    assert_eq!(websearch.quantile(0.150_000_7), 10_000);
    assert_eq!(websearch.quantile(1.0), 30_000_000);
    assert_eq!(SizeDistribution::constant(20_000).quantile(0.7), 20_000);
}

#[test]
fn tables_in_packets_give_whole_packets_and_keep_their_point_masses() {
    let imc10 = SizeDistribution::named("imc10").unwrap();
    assert_eq!(imc10.quantile(0.0), 1460);
    assert_eq!(imc10.quantile(0.5), 1460);
    assert_eq!(imc10.quantile(0.57), 2 * 1460);
    assert_eq!(imc10.quantile(1.0), 2107 * 1460);
}

#[test]
fn of_a_table_in_steps_only_its_sizes_occur() {
    let sizes = SizeDistribution::from_text("steps\n10 0.25\n100 0.5\n1000 1\n", "sizes").unwrap();
    let drawn: Vec<u64> = [0.0, 0.25, 0.26, 0.5, 0.51, 1.0].map(|share| sizes.quantile(share)).to_vec();
    assert_eq!(drawn, [10, 10, 100, 100, 1000, 1000]);
    assert_eq!(sizes.mean(), 527.5);
}

#[test]
fn sampled_sizes_have_the_mean_of_their_table() {
    for name in ["websearch", "fb-hadoop", "ali-storage", "imc10"] {
        let sizes = SizeDistribution::named(name).unwrap();
        let mut stream = RandomStream::new(3, name);
        let n = 400_000;
        let mean = (0..n).map(|_| sizes.sample(&mut stream) as f64).sum::<f64>() / n as f64;
        assert!((mean / sizes.mean() - 1.0).abs() < 0.02, "{name}: {mean} for {}", sizes.mean());
    }
}

#[test]
fn mean_packets_agrees_with_counting_them() {
    assert_eq!(SizeDistribution::constant(2500).mean_packets(1000), 3.0);
    assert_eq!(SizeDistribution::constant(2000).mean_packets(1000), 2.0);
    for (name, mtu) in [("websearch", 1000), ("google-rpc", 1000), ("imc10", 1460), ("imc10", 1000)] {
        let sizes = SizeDistribution::named(name).unwrap();
        let n = 200_000;
        let counted = (0..n).map(|i| sizes.quantile((i as f64 + 0.5) / n as f64).div_ceil(mtu)).sum::<u64>();
        let counted = counted as f64 / n as f64;
        let mean = sizes.mean_packets(mtu);
        assert!((mean / counted - 1.0).abs() < 1e-3, "{name}: {mean} for {counted}");
    }
}

/// The sum over k > `counted` of P(size > k mtu), term by term.
fn counted_beyond(sizes: &SizeDistribution, counted: u64, mtu: u64) -> f64 {
    let largest = sizes.points.last().unwrap().0;
    let share_above = |min: f64| {
        let next = sizes.points.iter().position(|point| point.0 > min).unwrap();
        1.0 - sizes.share_below(next, min) / sizes.total
    };
    (counted + 1..)
        .map(|k| sizes.smallest_above(k, mtu))
        .take_while(|&min| min < largest)
        .map(share_above)
        .sum()
}

#[test]
fn packets_of_large_sizes_are_counted_at_once() {
    // Uniform from 0 to 1 TB: half of 10^9 packets of 1000 B, and the half packet by which the last one is
    // rounded up.
    let sizes = SizeDistribution::from_text("0 0\n1000000000000 100\n", "large").unwrap();
    let packets = sizes.mean_packets(1000);
    assert!((packets / (5e8 + 0.5) - 1.0).abs() < 1e-9, "{packets}");
    // Packets of one byte: 10^12 of them.
    assert!((sizes.mean_packets(1) / 5e11 - 1.0).abs() < 1e-9, "{}", sizes.mean_packets(1));
    // All flows of two sizes, to the packet.
    let sizes = SizeDistribution::from_text("unit 1460\nsteps\n2 50\n600000000 100\n", "steps").unwrap();
    assert!((sizes.mean_packets(1460) - 300_000_001.0).abs() < 1e-3, "{}", sizes.mean_packets(1460));
}

#[test]
fn a_sum_of_rounded_quotients_is_that_of_its_terms() {
    for (a, b, m) in
        [(0, 0, 1), (1, 0, 1), (1000, 7, 1), (3, 2, 7), (1000, 1459, 1460), (1461, 5, 1460), (6, 1, 4)]
    {
        for n in 0..50 {
            let terms = (0..n).map(|i| u128::from((a * i + b) / m)).sum::<u128>();
            assert_eq!(floor_sum(n, a, b, m), terms, "{n} {a} {b} {m}");
        }
    }
}

#[test]
fn fractions_and_percent_and_commas_are_read() {
    let percent = SizeDistribution::from_text("# mine\n0 0\n100, 50\n200\t100\n", "a").unwrap();
    let fraction = SizeDistribution::from_text("\u{feff}0 0\r\n100 0.5\r\n200 1\r\n", "a").unwrap();
    assert_eq!(percent.mean(), 100.0);
    assert_eq!(fraction.mean(), 100.0);
    assert_eq!(percent.quantile(0.25), 50);
    assert_eq!(fraction.quantile(0.25), 50);
}

#[test]
fn errors_name_the_file_and_the_line() {
    let error = |text: &str| SizeDistribution::from_text(text, "my.cdf").unwrap_err().to_string();
    assert_eq!(error("0 0\n100 fifty\n"), "my.cdf:2: cumulative share \"fifty\" is not a number");
    assert_eq!(error("0 0\n100\n"), "my.cdf:2: expected two numbers, \"size cumulative\", found 1 fields");
    assert_eq!(error("5 0\n3 100\n"), "my.cdf:2: size 3 after 5: sizes must not decrease");
    assert_eq!(error("0 9\n3 4\n"), "my.cdf:2: cumulative share 4 after 9: it must not decrease");
    assert_eq!(
        error("0 0\n3 90\n\n"),
        "my.cdf:2: the last cumulative share is 90: expected 100 (percent) or 1 (fraction)"
    );
    assert!(error("").contains("no points"));
    assert!(error("-1 0\n").contains("at least 0"));
    assert!(error("1 nan\n").contains("at least 0"));
    assert!(SizeDistribution::from_bytes(b"0 0\n\xff\xfe", "b").unwrap_err().to_string().contains("b:2"));
    assert!(SizeDistribution::named("web-search").unwrap_err().contains("did you mean \"websearch\""));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = SizeDistribution::from_bytes(&bytes, "x");
    }

    #[test]
    fn no_table_makes_it_panic_and_quantiles_rise(
        text in "(unit 7\n)?([0-9]{1,3} [0-9]{1,2}\n){0,4}[0-9]{1,4} 100"
    ) {
        if let Ok(sizes) = SizeDistribution::from_text(&text, "x") {
            let quantiles: Vec<u64> = (0..=100).map(|i| sizes.quantile(i as f64 / 100.0)).collect();
            prop_assert!(quantiles.is_sorted() && quantiles[0] > 0);
            prop_assert!(sizes.mean_packets(100) >= 1.0);
            for (counted, mtu) in [(0, 1), (0, 3), (0, 100), (5, 7), (1, 20_000)] {
                let (sum, term_by_term) = (sizes.packets_beyond(counted, mtu), counted_beyond(&sizes, counted, mtu));
                prop_assert!((sum - term_by_term).abs() <= 1e-9 * term_by_term.max(1.0), "{sum} for {term_by_term}");
            }
        }
    }
}

#[test]
fn a_size_below_one_byte_is_refused() {
    let error = |text: &str| SizeDistribution::from_text(text, "own.cdf").unwrap_err().to_string();
    assert_eq!(
        error("0 0\n1e-300 100\n"),
        "own.cdf:2: size 1e-300 is below one byte: expected 0, or at least 1"
    );
    assert!(error("10% 100\n").contains("\"10%\" is not a number"));
    assert!(error("10 100%%\n").contains("is not a number"));
    assert_eq!(
        SizeDistribution::from_text("\u{feff}10 50%\r\n20 100%\r\n", "own.cdf").unwrap().quantile(1.0),
        20
    );
    // The 1 % row of a table that was cut there is not the whole of a table in fractions.
    assert_eq!(
        error("1000 0.5%\n2000 1%\n"),
        "own.cdf:2: the last cumulative share is 1%: expected 100%; is the file truncated?"
    );
    assert!(SizeDistribution::from_text("1000 0.5\n2000 1\n", "own.cdf").is_ok());
}
