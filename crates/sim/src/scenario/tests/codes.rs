//! Codes of PINT's queries that end below what the network may have.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

const PINT: &str = "[transport]\ncontroller = { kind = \"hpcc-pint\" }\n[telemetry]\nkind = \"pint\"\n";

/// STAR with this text, whose telemetry has a file of queries.
fn load_planned(text: &str, queries: &str) -> Result<Scenario, ScenarioError> {
    load_planned_on(&format!("{STAR}{text}"), queries)
}

fn load_planned_on(text: &str, queries: &str) -> Result<Scenario, ScenarioError> {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("weftline-codes-{}-{number}.toml", std::process::id()));
    std::fs::write(&path, queries).unwrap();
    let loaded = load_with(&format!("{text}queries = \"{}\"\n", path.display()), &[]);
    std::fs::remove_file(&path).unwrap();
    loaded
}

/// The warnings of a run of TCP with these queries.
fn warnings(run: &str, queries: &str) -> Vec<String> {
    let text = format!("{run}[transport]\nkind = \"tcp\"\n[telemetry]\nkind = \"pint\"\n");
    load_planned(&text, queries).unwrap_or_else(|error| panic!("{error}")).warnings
}

fn query(name: &str, value: &str, aggregation: &str, bits: u32, more: &str) -> String {
    format!(
        "[[query]]\nname = \"{name}\"\nvalue = \"{value}\"\naggregation = \"{aggregation}\"\nbits = {bits}\nfrequency = 0.1\n{more}\n"
    )
}

#[test]
fn loads_that_end_at_the_target_are_refused_and_those_just_above_are_warned_of() {
    let with = |keys: &str| load_with(&format!("{STAR}{PINT}{keys}"), &[]);
    for keys in ["", "bits = 12\nbase = 1.01\n"] {
        assert_eq!(with(keys).ok().unwrap().warnings, [""; 0], "{keys}");
    }
    let refused = problems(&format!("{PINT}bits = 6\n"));
    let expected = "s.toml:10: telemetry.bits: the codes of the load end at 0.0422, and controller \"hpcc-pint\" lowers rates only \
                    above eta = 0.95: without a code above it there is no congestion control; set more bits or a larger base \
                    (published: bits = 8, base = 1.05)";
    assert_eq!(refused, [expected]);
    let found = with("bits = 7\n").ok().unwrap().warnings;
    let expected = "telemetry.bits: the codes of the load end at 0.959, but where flows meet, ports have a load of 2 and more: senders \
                    of \"hpcc-pint\" lower their rate by at most 1 % per round trip; set more bits or a larger base (published: bits \
                    = 8, base = 1.05)";
    assert_eq!(found, [expected]);
    // Without such a controller the load is only measured.
    let measured =
        load(&format!("{STAR}[transport]\nkind = \"tcp\"\n[telemetry]\nkind = \"pint\"\nbits = 6\n"));
    assert!(measured.warnings[0].contains("larger loads are decoded as 0.0422"), "{:?}", measured.warnings);
}

#[test]
fn a_plan_whose_loads_end_below_the_target_is_refused() {
    let load = query("load", "utilisation", "max", 8, "approximation = \"exact\"");
    let error = load_planned(PINT, &format!("bits = 8\n{load}")).err().unwrap();
    let problem = error.problems[0].to_string();
    assert!(
        problem.starts_with("s.toml:10: telemetry.queries: the codes of the load end at 0.498"),
        "{problem}"
    );
    assert!(problem.ends_with("give its query more bits or a larger base"), "{problem}");
}

#[test]
fn every_query_with_short_codes_is_named() {
    let exact = "approximation = \"exact\"";
    let queries = [
        "bits = 64\nhops = { expected = 3, maximal = 6 }\n".to_string(),
        query("longest", "hop-latency", "max", 20, exact),
        query("shortest", "hop-latency", "min", 20, exact),
        query("queue", "queue-bytes", "max", 22, exact),
        query("enough", "queue-bytes", "max", 26, exact),
        query("load", "utilisation", "max", 8, exact),
        query("host", "switch-id", "max", 2, ""),
        query("path", "switch-id", "path", 2, "blocks = \"fragments\"\nvalue-bits = 2"),
        query("short", "hop-latency", "sum", 8, "largest = 100000"),
    ];
    let warnings = warnings("", &queries.concat());
    let named: Vec<&str> = warnings.iter().filter_map(|warning| warning.split('"').nth(1)).collect();
    assert_eq!(named, ["longest", "shortest", "queue", "load", "host", "path", "short"], "{warnings:#?}");
    let expected = "telemetry.queries: the codes of query \"longest\" end at 1048.575us, but at port s0.p3, whose buffer is 16MiB, a packet \
                    may wait 1.34217728ms: larger values are decoded as 1048.575us; give the query more bits or a larger epsilon";
    assert_eq!(warnings[0], expected);
}

#[test]
fn paths_with_more_switches_than_the_plan_has_hops_are_warned_of() {
    let text = "[topology]\nkind = \"fat-tree\"\nk = 4\n[[workload]]\nkind = \"permutation\"\n\
                [transport]\nkind = \"tcp\"\n[telemetry]\nkind = \"pint\"\n";
    let warnings = |maximal: u32| {
        let hops = format!("bits = 8\nhops = {{ expected = 3, maximal = {maximal} }}\n");
        let queries = hops + &query("path", "switch-id", "path", 8, "");
        load_planned_on(text, &queries).unwrap_or_else(|error| panic!("{error}")).warnings
    };
    let named = |maximal| warnings(maximal).into_iter().find(|warning| warning.contains("hops.maximal"));
    assert_eq!(named(5), None);
    let expected = "telemetry.queries: paths have up to 5 switches, but the plan has hops.maximal = 4: weftline pint decode refuses \
                    the digests of longer paths, so that their flows have no results; set maximal = 5 or more";
    assert_eq!(named(4).as_deref(), Some(expected));
}

#[test]
fn sums_are_held_against_all_hops_and_times_against_the_end_of_the_run() {
    let sum = |largest: &str| {
        let precise = format!("largest = {largest}");
        let text = query("whole", "hop-latency", "sum", 8, &precise);
        warnings("", &format!("bits = 16\nhops = {{ expected = 3, maximal = 6 }}\n{text}"))
    };
    assert_eq!(sum("1400000"), [""; 0]);
    let found = sum("100000");
    assert!(found[0].contains("a packet may wait 1.34217728ms at each of 3 hops"), "{found:?}");
    let clock = |end: &str| {
        let exact = "approximation = \"exact\"";
        let text =
            query("time", "timestamp", "max", 20, exact) + &query("sent", "port-bytes", "max", 24, exact);
        warnings(&format!("[run]\nuntil = \"{end}\"\n"), &format!("bits = 44\n{text}"))
    };
    assert_eq!(clock("1ms"), [""; 0]);
    let found = clock("2ms");
    assert!(found[0].contains("end at 1048.575us, but the run ends at 2ms"), "{found:?}");
    assert!(found[1].contains("a port of 100Gbps may send 25MB until 2ms"), "{found:?}");
}

#[test]
fn queues_beyond_the_field_of_int_are_warned_of_where_they_wrap() {
    let found = |more: &str| {
        let star = STAR.replace("hosts = 4", "hosts = 4\nhost_link = { rate = \"25Gbps\", delay = \"1us\" }");
        load(&format!("{star}{more}")).warnings
    };
    let expected = "telemetry: INT's 17 bits for the queue end at 10.48568MB, but at port s0.p3, whose buffer is 32MiB, more may wait: \
                    longer queues are written as the remainder of dividing them by 10MiB";
    let repeats = "[compat]\nlike = \"hpcc-ns3\"\n";
    assert_eq!(found(repeats), [expected]);
    let small = format!("{repeats}[switch]\nbuffer = \"10MB\"\n");
    // Elsewhere they are written as the longest one.
    for fits in ["", &small, "[transport]\nkind = \"tcp\"\n"] {
        assert_eq!(found(fits), [""; 0], "{fits}");
    }
    assert_eq!(load(STAR).warnings, [""; 0]);
}

#[test]
fn keys_next_to_wrong_queries_stay_known() {
    let text = "[topology]\nkind = \"fat-tree\"\nk = 4\n[[workload]]\nkind = \"permutation\"\n\
                [telemetry]\nkind = \"pint\"\nrecord = 0.5\npaths = true\n";
    let queries = "bits = 20\n".to_string() + &query("longest", "hop-latency", "sum", 20, "");
    let refused = load_planned_on(text, &queries).err().unwrap().to_string();
    assert!(refused.contains("20 bits") && !refused.contains("unknown key"), "{refused}");
}
