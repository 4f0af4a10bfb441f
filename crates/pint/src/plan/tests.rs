//! The language, plans and their files as a whole.

use proptest::prelude::*;

use super::*;

const QUERIES: &str = r#"bits = 16
seed = 7
hops = { expected = 5, maximal = 59 }

[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 8
copies = 2
code = "paper-evaluation"
ids = 753

[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
quantiles = [0.5, 0.99]
bits = 8
frequency = "15/16"
flow = "source-destination"
space = 1000
approximation = { epsilon = 0.022 }

[[query]]
name = "congestion"
value = "utilisation"
aggregation = "max"
bits = 8
frequency = "1/16"
approximation = { base = 1.05, rounding = "log" }
"#;

/// One query of every kind.
const ALL: &str = r#"bits = 64
[[query]]
name = "a"
value = "egress-port"
aggregation = "path"
bits = 8
code = { tau = 0.5, layers = [0.1, 0.3] }
select = "words"
blocks = "fragments"
value-bits = 16
[[query]]
name = "b"
value = "queue-bytes"
aggregation = "min"
bits = 8
approximation = { delta = 512 }
[[query]]
name = "c"
value = "hop-latency"
aggregation = "sum"
bits = 12
frequency = 0.5
[[query]]
name = "d"
value = "utilisation"
aggregation = "product"
bits = 8
approximation = { epsilon = 0.05 }
[[query]]
name = "e"
value = "queue-bytes"
aggregation = "count-above"
bits = 4
threshold = 30000
[[query]]
name = "f"
value = "switch-id"
aggregation = "loops"
bits = 16
[[query]]
name = "g"
value = "ingress-port"
aggregation = "frequent"
bits = 16
copies = 2
share = 0.05
frequency = 0.25
"#;

fn planned(text: &str) -> Plan {
    Plan::new(read(text, "queries.toml").unwrap()).unwrap()
}

fn problems(text: &str) -> String {
    read(text, "queries.toml").unwrap_err().to_string()
}

#[test]
fn the_papers_plan_comes_out_of_its_queries() {
    let plan = planned(QUERIES);
    let sets: Vec<_> = plan.sets().iter().map(|set| (set.share, set.queries.clone())).collect();
    assert_eq!(sets, [(61_440, vec![0, 1]), (4_096, vec![0, 2])]);
    let encoder = plan.encoder().unwrap();
    let shares = (0..100_000u64).filter(|&packet| encoder.set(packet) == Some(0)).count();
    assert!((93_350..=94_150).contains(&shares), "{shares}");
    assert_eq!(encoder.fields_of(1).len(), 3);
}

/// The stated error holds for every value, whatever the rounding, and is nearly met.
#[test]
fn the_error_of_an_approximation_is_that_of_its_rounding() {
    for (aggregation, rounding, expected) in
        [("max", "", 0.050625), ("max", "nearest", 0.025), ("max", "value", 0.050625), ("min", "", 0.025)]
    {
        let rounding =
            if rounding.is_empty() { String::new() } else { format!(", rounding = \"{rounding}\"") };
        let text = one(
            "hop-latency",
            aggregation,
            10,
            &format!("approximation = {{ epsilon = 0.025{rounding} }}\n"),
        );
        let prediction = predicted(&text);
        assert!((prediction["relative_error"].as_f64().unwrap() - expected).abs() < 1e-9, "{prediction}");
        let plan = planned(&text);
        assert!(plan.describe().contains(&format!("{:.2}%, up to", 100.0 * expected)), "{}", plan.describe());
        let (Task::Maximum(values) | Task::Minimum(values)) = plan.tasks()[0] else { panic!() };
        let encoder = plan.encoder().unwrap();
        let mut worst = 0.0f64;
        for packet in 0..20_000 {
            let value = 100 + 7 * packet;
            let found = values.decode(encoder.encode(0, packet, 1, &[value]));
            worst = worst.max((found / value as f64).max(value as f64 / found) - 1.0);
        }
        assert!(
            worst < 1.001 * expected + 1e-6 && worst > 0.9 * expected,
            "{aggregation}{rounding}: {worst}"
        );
    }
}

#[test]
fn loops_are_looked_for_in_ids_of_switches_only() {
    for (value, why) in [
        ("egress-port", "ports of different switches have equal numbers"),
        ("ingress-port", "ports of different switches have equal numbers"),
        ("hop-latency", "only an id that is found twice is a loop"),
    ] {
        let text = format!(
            "bits = 16\n[[query]]\nname = \"q\"\nvalue = \"{value}\"\naggregation = \"loops\"\nbits = 16\n"
        );
        let found = problems(&text);
        assert!(found.contains(why) && found.contains("expected value = \"switch-id\""), "{found}");
    }
}

#[test]
fn a_plan_comes_back_from_its_file() {
    for text in [QUERIES, ALL] {
        let plan = planned(text);
        let back = Plan::read(&plan.to_toml(), "plan.toml").unwrap();
        assert_eq!(back.version(), plan.version());
        assert_eq!(back.to_toml(), plan.to_toml());
        assert_eq!((back.sets(), back.tasks()), (plan.sets(), plan.tasks()));
        assert!(plan.encoder().is_ok());
    }
}

#[test]
fn a_label_with_a_digest_is_never_zero() {
    for version in 0..64 {
        let bits = super::label_bits(version);
        assert!((1..16).contains(&bits) && (bits == version & 15 || version & 15 == 0), "{version}: {bits}");
    }
}

#[test]
fn a_version_stands_for_what_digests_mean() {
    let version = |text: &str| planned(text).version();
    let plan = version(QUERIES);
    // Stated: a twin that computes it must agree, and a change here strands recorded digests.
    assert_eq!(plan, version(QUERIES));
    assert_ne!(plan, version(&QUERIES.replace("seed = 7", "seed = 8")));
    assert_ne!(plan, version(&QUERIES.replace("0.022", "0.025")));
    assert_ne!(plan, version(&QUERIES.replace("copies = 2", "copies = 1")));
    assert_eq!(plan, version(&QUERIES.replace("space = 1000", "space = 2000")));
    assert_eq!(plan, version(&QUERIES.replace("ids = 753", "ids = 157")));
}

#[test]
fn a_plan_that_was_changed_by_hand_is_refused() {
    let text = planned(QUERIES).to_toml().replace("seed = 7", "seed = 8");
    let refused = Plan::read(&text, "plan.toml").unwrap_err().to_string();
    assert!(refused.starts_with("plan.toml:1: version: the file states"), "{refused}");
    let short = planned(QUERIES).to_toml().replace("share = 4096", "share = 4095");
    assert!(Plan::read(&short, "plan.toml").unwrap_err().to_string().contains("65535"));
    let unknown = planned(QUERIES).to_toml().replace("[\"path\", \"latency\"]", "[\"path\", \"latancy\"]");
    assert!(Plan::read(&unknown, "plan.toml").unwrap_err().to_string().contains("did you mean \"latency\"?"));
    assert!(Plan::read(QUERIES, "queries.toml").unwrap_err().to_string().contains("version: missing"));
}

#[test]
fn every_problem_is_reported_with_line_key_and_the_nearest_name() {
    let text = QUERIES
        .replace("hop-latency", "hop-latancy")
        .replace("copies = 2", "copys = 2")
        .replace("\"1/16\"", "\"1/0\"")
        .replace("\"log\"", "\"logs\"");
    let reported = problems(&text);
    for expected in [
        "queries.toml:10: query.path.copys: unknown key \"copys\": did you mean \"copies\"?",
        "queries.toml:16: query.latency.value: unknown value \"hop-latancy\": did you mean \"hop-latency\"?",
        "queries.toml:30: query.congestion.frequency: expected a share of packets",
        "queries.toml:31: query.congestion.approximation.rounding: unknown rounding \"logs\": did you mean \"log\"?",
    ] {
        assert!(reported.contains(expected), "{expected}\nnot in\n{reported}");
    }
    assert_eq!(reported.lines().count(), 4, "{reported}");
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let case = |from: &str, to: &str, expected: &str| {
        let reported = problems(&QUERIES.replace(from, to));
        assert!(reported.contains(expected), "{expected}\nnot in\n{reported}");
    };
    case("copies = 2", "copies = 3", "8 bits do not divide into 3 equal copies");
    case("\"switch-id\"", "\"queue-bytes\"", "queue-bytes changes from packet to packet");
    case("{ epsilon = 0.022 }", "{ epsilon = 0.022 }\nlargest = 1000000", "need 9 bits per copy");
    case("{ epsilon = 0.022 }", "{ epsilon = 0.022, delta = 4 }", "only one of epsilon, base and delta");
    case("quantiles = [0.5, 0.99]", "threshold = 5", "belongs to aggregation count-above");
    case("maximal = 59", "maximal = 3", "less than expected");
    case("maximal = 59", "maximal = 300", "from 1 to 255");
    case("name = \"latency\"", "name = \"path\"", "two queries have this name");
    case("bits = 16", "bits = 6", "8 bits do not fit the digest of 6");
    case("bits = 16", "bits = ", "queries.toml:1: ");
    case("bits = 16", "", "bits: missing");
    case("\"paper-evaluation\"", "{ tau = 0.5 }", "tau below 1 needs at least one layer");
    case("\"paper-evaluation\"", "\"tunde\"", "did you mean \"tuned\"?");
    case("aggregation = \"max\"", "", "query.congestion.aggregation: missing");
    case(
        "name = \"path\"",
        "name = \"path\"\nflow = \"destination\"",
        "joins packets that take different paths",
    );
}

#[test]
fn a_path_of_packets_that_take_several_paths_is_refused_or_warned_of() {
    for flow in ["source", "destination", "all"] {
        let reported = problems(&one("switch-id", "path", 8, &format!("flow = \"{flow}\"\n")));
        assert!(reported.contains("joins packets that take different paths"), "{reported}");
    }
    let described =
        |flow: &str| planned(&one("switch-id", "path", 8, &format!("flow = \"{flow}\"\n"))).describe();
    assert!(described("source-destination").contains("which ECMP sends over different paths"));
    assert!(!described("5-tuple").contains("ECMP"));
}

#[test]
fn a_space_without_room_for_all_values_of_the_share_is_refused() {
    let exact = |more: &str| one("switch-id", "frequent", 16, &format!("approximation = \"exact\"\n{more}"));
    // 11 counters of 24 bytes at each of 3 hops.
    let reported = problems(&exact("share = 0.1\nspace = 791\n"));
    assert!(reported.contains("11 counters at each of 3 hops need 792 bytes"), "{reported}");
    assert_eq!(predicted(&exact("share = 0.1\nspace = 792\n"))["counters"], 11);
    assert_eq!(predicted(&exact("share = 0.1\nspace = 7200\n"))["counters"], 100);
    assert_eq!(predicted(&exact("share = 0.1\n"))["counters"], 40);
    assert!(problems(&exact("share = 0.0002\n")).contains("more than 4096: raise it"));
    // 2 bits have 4 codes.
    let short = one("switch-id", "frequent", 2, "approximation = \"exact\"\nshare = 0.0002\nspace = 288\n");
    assert_eq!(predicted(&short)["counters"], 4);
}

/// A file with one query `q`, of paths of 3 hops, 12 at most.
fn one(value: &str, aggregation: &str, bits: u32, more: &str) -> String {
    format!(
        "bits = {bits}\nhops = {{ expected = 3, maximal = 12 }}\n[[query]]\nname = \"q\"\nvalue = \"{value}\"\naggregation = \
         \"{aggregation}\"\nbits = {bits}\n{more}"
    )
}

/// What is predicted for that query.
fn predicted(text: &str) -> serde_json::Value {
    let plan = planned(text);
    assert_eq!(Plan::read(&plan.to_toml(), "plan.toml").unwrap().tasks(), plan.tasks());
    plan.to_json()["queries"][0]["prediction"].clone()
}

#[test]
fn names_of_switches_and_ports_are_never_rounded() {
    let exact = Task::Sample(value::Approximation::exact(8).unwrap());
    for name in ["switch-id", "ingress-port", "egress-port"] {
        assert_eq!(planned(&one(name, "frequent", 8, "")).tasks(), [exact]);
        for aggregation in ["max", "min", "frequent"] {
            let text = planned(&one(name, aggregation, 8, "")).describe();
            assert!(text.contains("exact, up to 255"), "{text}");
            let refused = problems(&one(name, aggregation, 8, "approximation = { epsilon = 0.1 }\n"));
            assert!(
                refused.contains("rounded it would be another one: leave out approximation"),
                "{refused}"
            );
        }
        for aggregation in ["quantiles", "sum", "product"] {
            let refused = problems(&one(name, aggregation, 8, ""));
            assert!(refused.contains("use aggregation = \"path\""), "{refused}");
        }
    }
    let refused = problems(&one("switch-id", "frequent", 8, "largest = 256\n"));
    assert!(refused.contains("query.q.largest: values up to 256 need 9 bits"), "{refused}");
    assert!(predicted(&one("switch-id", "frequent", 8, "largest = 255\n"))["share"].is_number());
}

#[test]
fn a_product_has_a_logarithmic_grid_that_reaches_the_product_of_all_hops() {
    for approximation in ["\"exact\"", "{ delta = 4 }"] {
        let refused =
            problems(&one("utilisation", "product", 16, &format!("approximation = {approximation}\n")));
        assert!(refused.contains("a product adds the logarithms"), "{refused}");
    }
    // Each value would fit the bits as it is; 600^3 is 2.16e8.
    let prediction = predicted(&one("utilisation", "product", 16, "largest = 600\n"));
    let (largest, error) = (prediction["largest"].as_f64().unwrap(), prediction["relative_error"].as_f64());
    assert!((2.16e8..2.5e8).contains(&largest) && error.unwrap() < 0.001, "{prediction}");
    // 2^54, and the coarsest grid where bits are too few: 16^3.
    let largest = |bits| predicted(&one("utilisation", "product", bits, ""))["largest"].as_f64().unwrap();
    assert!((largest(16) / libm::exp2(54.0) - 1.0).abs() < 0.01, "{}", largest(16));
    assert!((largest(2) - 4_096.0).abs() < 0.1, "{}", largest(2));
    let refused =
        problems(&one("utilisation", "product", 8, "largest = 600\napproximation = { epsilon = 0.01 }\n"));
    assert!(refused.contains("products of 3 values up to 600 need 10 bits per copy"), "{refused}");
    let text = planned(&one("utilisation", "product", 8, "approximation = { epsilon = 0.05 }\n")).describe();
    // Rounded at random, by less than a whole step: 1.05^2 - 1.
    assert!(text.contains("10.25% per hop, products up to 6.405e10, value"), "{text}");
    assert!(text.contains("a hop whose value is 0 counts as 1"), "{text}");
}

#[test]
fn a_sum_ends_where_its_counter_does() {
    for approximation in ["\"exact\"", "{ delta = 4 }"] {
        let refused = problems(&one("utilisation", "sum", 8, &format!("approximation = {approximation}\n")));
        assert!(refused.contains("a sum is counted at random"), "{refused}");
    }
    let refused = problems(&one("utilisation", "sum", 8, "approximation = { rounding = \"nearest\" }\n"));
    assert!(refused.contains("leave out rounding"), "{refused}");
    let text = one("utilisation", "sum", 8, "approximation = { epsilon = 0.05 }\n");
    let prediction = predicted(&text);
    let Task::Sum(counter) = planned(&text).tasks()[0] else { panic!() };
    assert_eq!(
        (&prediction["largest"], &prediction["relative_error"]),
        (&counter.largest().into(), &0.05.into())
    );
    assert!((counter.largest() / 49_084.0 - 1.0).abs() < 1e-3, "{}", counter.largest());
    // sqrt(12) / 2 on top, which is most of the deviation of small sums.
    assert!((prediction["error_of_small"].as_f64().unwrap() - 1.732).abs() < 1e-3, "{prediction}");
    assert!(planned(&text).describe().contains("counter, 5.00% + 1.7 deviation, up to 4.908e4 1/512"));
    let refused =
        problems(&one("utilisation", "sum", 8, "approximation = { epsilon = 0.01 }\nlargest = 3000\n"));
    for expected in ["sums of 3 values up to 3000 need 10 bits", "set epsilon = 0.0", "above 578."] {
        assert!(refused.contains(expected), "{expected}\nnot in\n{refused}");
    }
    // The one that is named instead is far enough.
    let (_, rest) = refused.split_once("set epsilon = ").unwrap();
    let epsilon = rest.split(',').next().unwrap();
    let advised = format!("approximation = {{ epsilon = {epsilon} }}\nlargest = 3000\n");
    assert!(predicted(&one("utilisation", "sum", 8, &advised))["largest"].as_f64() >= Some(9_000.0));
    // Without an approximation the counter reaches what is planned for, or is the coarsest one.
    assert!(predicted(&one("hop-latency", "sum", 12, ""))["largest"].as_f64() >= Some(3.0 * 4_294_967_295.0));
    assert_eq!(predicted(&one("hop-latency", "sum", 4, ""))["largest"], 32_767.0);
    let long = one("hop-latency", "sum", 4, "").replace("maximal = 12", "maximal = 255");
    assert_eq!(predicted(&long)["largest"], 32_767.0);
    // One value of more than 32 bits is taken as 2^32 - 1, so sums are not trusted from there on.
    assert!(predicted(&one("port-bytes", "sum", 12, ""))["largest"].as_f64() <= Some(4_294_967_295.0));
    assert!(
        problems(&one("port-bytes", "sum", 12, "largest = 5000000000\n")).contains("from 1 to 4294967295")
    );
}

#[test]
fn a_count_has_bits_for_the_hops_of_an_expected_path() {
    let refused = problems(&one("utilisation", "count-above", 1, "threshold = 5\n"));
    assert!(
        refused.contains("1 bits count up to 1 hops, and paths of 3 are expected: give it 2 bits, or 4"),
        "{refused}"
    );
    let text = planned(&one("utilisation", "count-above", 2, "threshold = 5\n")).describe();
    assert!(text.contains("q: 2 bits count up to 3 hops, and a path may have 12"), "{text}");
    assert!(text.contains("exact, up to 3"), "{text}");
    let text = planned(&one("utilisation", "count-above", 4, "threshold = 5\n")).describe();
    assert!(!text.contains("may have"), "{text}");
}

#[test]
fn a_complaint_of_a_whole_table_names_the_table() {
    let refused = problems(&one("utilisation", "max", 8, "approximation = { epsilon = 0.05, base = 1.1 }\n"));
    assert!(refused.contains(": query.q.approximation: expected only one"), "{refused}");
}

#[test]
fn an_infeasible_wish_says_what_to_relax() {
    let text = QUERIES.replace("\"15/16\"", "1").replace("\"1/16\"", "0.5");
    let refused = Plan::new(read(&text, "queries.toml").unwrap()).unwrap_err().to_string();
    for expected in [
        "they need 20.000 bits per packet",
        // Not 0.8: whole parts of 2^-16 do not keep that.
        "all frequencies times 0.7999: path 0.7999, latency 0.7999, congestion 0.3999",
        "latency: frequency 0.5 instead of 1",
        "bits = 24",
    ] {
        assert!(refused.contains(expected), "{expected}\nnot in\n{refused}");
    }
}

#[test]
fn a_refusal_states_why_where_the_bits_would_do() {
    let of = |bits: u32, each: u32, frequency: &str, count: usize| {
        let query = |n: usize| {
            format!(
                "[[query]]\nname = \"q{n}\"\nvalue = \"queue-bytes\"\naggregation = \"min\"\nbits = {each}\nfrequency = {frequency}\n"
            )
        };
        let text = format!("bits = {bits}\n{}", (0..count).map(query).collect::<String>());
        Plan::new(read(&text, "queries.toml").unwrap()).unwrap_err().to_string()
    };
    let rounded = of(8, 8, "\"1/3\"", 3);
    assert!(
        rounded.contains("need 8.000 bits per packet on average, and more as each share is rounded"),
        "{rounded}"
    );
    let packed = of(17, 9, "0.6", 2);
    assert!(
        packed.contains("need 10.800 bits per packet on average, but too few of them fit into one"),
        "{packed}"
    );
    let plain = of(8, 8, "1", 2);
    assert!(plain.contains("need 16.000 bits per packet on average. Any one"), "{plain}");
}

#[test]
fn a_maximum_of_additive_codes_keeps_the_mean_unless_another_rounding_is_stated() {
    let additive = |more: &str| {
        read(
            &one("queue-bytes", "max", 8, &format!("approximation = {{ delta = 50{more} }}\n")),
            "queries.toml",
        )
    };
    let rounding = |more: &str| {
        let queries = additive(more).unwrap().queries;
        queries[0].aggregation.approximation().unwrap().rounding
    };
    assert_eq!(
        (rounding(""), rounding(", rounding = \"nearest\"")),
        (crate::query::Rounding::Value, crate::query::Rounding::Nearest)
    );
    assert!(Plan::new(additive("").unwrap()).is_ok());
    let refused =
        problems(&one("queue-bytes", "max", 8, "approximation = { delta = 50, rounding = \"log\" }\n"));
    assert!(refused.contains("rounding = \"nearest\" or \"value\""), "{refused}");
}

#[test]
fn a_key_that_is_there_twice_is_named_with_the_brackets_of_lists() {
    let once = one("queue-bytes", "max", 8, "").replace("[[query]]", "[query]");
    let (_, query) = once.split_once("[query]").unwrap();
    let refused = problems(&format!("{once}\n[query]{query}"));
    assert!(refused.contains("duplicate key") && refused.contains("[[query]]"), "{refused}");
    // Keys that are known are listed once.
    let refused = problems(&one("switch-id", "path", 8, "colour = 1\n"));
    assert_eq!(refused.matches(" bits,").count(), 1, "{refused}");
}

/// The queries with a piece of advice entered as it is printed.
fn advised(queries: &Queries, line: &str) -> Queries {
    let mut queries = queries.clone();
    let number = |text: &str| text.parse::<f64>().expect("a number");
    if let Some(bits) = line.strip_prefix("bits = ") {
        queries.bits = bits.parse().expect("bits");
    } else if let Some(name) = line.strip_prefix("without the query ") {
        queries.queries.retain(|query| query.name != name);
    } else if let Some(rest) = line.strip_prefix("all frequencies times ") {
        let (_, each) = rest.split_once(": ").expect("a list");
        for (query, text) in queries.queries.iter_mut().zip(each.split(", ")) {
            let (name, frequency) = text.split_once(' ').expect("a name and a frequency");
            assert_eq!(name, query.name);
            query.frequency = number(frequency);
        }
    } else {
        let (name, rest) = line.split_once(": frequency ").expect("advice");
        let query =
            queries.queries.iter_mut().find(|query| query.name == name).expect("a query of this name");
        query.frequency = number(rest.split_once(" instead of ").expect("what was asked").0);
    }
    queries
}

/// Checks that every piece of advice gives a plan; how many there are.
fn follow_advice(queries: &Queries) -> usize {
    let Err(PlanError::Infeasible(refused)) = Plan::new(queries.clone()) else { return 0 };
    let text = refused.to_string();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.starts_with('(')).collect();
    assert!(!lines.is_empty() && lines.len() == refused.advice.len(), "{text}");
    for line in &lines {
        let made = Plan::new(advised(queries, line));
        assert!(made.is_ok(), "{line:?} of\n{text}\ngives {:?}", made.err().map(|error| error.to_string()));
    }
    lines.len()
}

#[test]
fn what_a_refusal_advises_can_be_entered_and_gives_a_plan() {
    let text = QUERIES.replace("bits = 16", "bits = 8");
    // Scaled down, a wider digest, or the path left out.
    assert_eq!(follow_advice(&read(&text, "queries.toml").unwrap()), 3);
}

proptest! {
    #[test]
    fn advice_for_any_queries_that_do_not_fit_gives_a_plan(
        bits in 8u32..=24, sizes in prop::collection::vec((0usize..7, 1e-4f64..=1.0), 2..7)
    ) {
        let all = read(ALL, "all.toml").unwrap();
        let mut queries = Queries { bits, queries: Vec::new(), ..all.clone() };
        for (place, (kind, frequency)) in sizes.iter().enumerate() {
            let mut query = all.queries[*kind].clone();
            (query.name, query.frequency) = (format!("q{place}"), *frequency);
            queries.queries.push(query);
        }
        follow_advice(&queries);
    }
}

#[test]
fn the_description_tells_sets_packets_and_errors() {
    let text = planned(QUERIES).describe();
    for expected in
        ["0.9375  61440     path 0-7, latency 8-15", "packets of a flow until its path is known", "quantile"]
    {
        assert!(text.contains(expected), "{expected}\nnot in\n{text}");
    }
    let json = planned(ALL).to_json();
    assert_eq!(json["queries"].as_array().map(Vec::len), Some(7));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_panics(cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[a-z0-9=\\[\\]\"{}., \n-]{0,8}"), 1..6), all in any::<bool>(), file in any::<bool>()) {
        let mut text = if all { ALL.to_string() } else { QUERIES.to_string() };
        if file {
            text = planned(&text).to_toml();
        }
        for (place, length, put) in cuts {
            let start = place.index(text.len() + 1);
            text.replace_range(start..(start + length).min(text.len()), &put);
        }
        if let Ok(queries) = read(&text, "queries.toml") {
            if let Ok(plan) = Plan::new(queries) {
                prop_assert!(plan.encoder().is_ok());
                prop_assert!(Plan::read(&plan.to_toml(), "plan.toml").is_ok(), "{}", plan.to_toml());
            }
        }
        let _ = Plan::read(&text, "plan.toml");
    }
}
