use super::*;
use crate::parameters::Value;
use crate::workload::tests::{self, drain, source, source_error, spec, text, with_hosts};

#[test]
fn the_measured_load_is_the_one_asked_for() {
    for (counts, per_packet) in [("payload", 0), ("wire", 48), ("wire-and-acks", 108)] {
        let keys = [
            ("sizes", text("fb-hadoop")),
            ("load", Value::Number(0.3)),
            ("load_counts", text(counts)),
            ("duration", text("500ms")),
        ];
        let flows = drain(&*source("poisson", 32, &keys));
        let bytes: u64 = flows.iter().map(|f| f.size + f.size.div_ceil(1000) * per_packet).sum();
        let load = bytes as f64 * 8.0 / (32.0 * 100e9 * 0.5);
        assert!((load / 0.3 - 1.0).abs() < 0.01, "{counts}: {load}");
    }
}

#[test]
fn coming_flows_are_announced_as_they_are_drawn() {
    let until = [("duration", text("40ms"))];
    let counted = [("count", Value::Integer(30_000))];
    let both = [("duration", text("40ms")), ("count", Value::Integer(5_000))];
    for limits in [&until[..], &counted, &both] {
        let keys = [&[("size", text("100KB")), ("load", Value::Number(0.3))], limits].concat();
        let mut source = source("poisson", 32, &keys);
        for _ in 0..1000 {
            source.next();
        }
        let expected = source.rest().unwrap();
        let drawn = drain(&*source);
        let bytes: u64 = drawn.iter().map(|flow| flow.size).sum();
        let last = drawn.last().unwrap().start.as_ns();
        for (expected, drawn) in [
            (expected.flows as f64, drawn.len() as f64),
            (expected.bytes as f64, bytes as f64),
            (expected.last_start.as_ns(), last),
        ] {
            assert!((expected / drawn - 1.0).abs() < 0.05, "{limits:?}: {expected} for {drawn}");
        }
    }
    let mut few = source("poisson", 8, &[("count", Value::Integer(3)), ("duration", text("1s"))]);
    assert_eq!(few.rest().unwrap().flows, 3);
    while few.next().is_some() {}
    assert_eq!(few.rest().unwrap().flows, 0);
}

#[test]
fn a_stated_capacity_holds_for_all_senders_together() {
    let keys = [
        ("size", text("20KB")),
        ("load", Value::Number(0.5)),
        ("capacity", text("200Gbps")),
        ("duration", text("100ms")),
    ];
    let bytes: u64 = drain(&*source("poisson", 8, &keys)).iter().map(|f| f.size).sum();
    let load = bytes as f64 * 8.0 / (200e9 * 0.1);
    assert!((load / 0.5 - 1.0).abs() < 0.01, "{load}");
}

#[test]
fn every_pair_of_hosts_gets_its_share() {
    let keys = [("size", text("10KB")), ("duration", text("60ms"))];
    let flows = drain(&*source("poisson", 8, &keys));
    let mut count = vec![0f64; 64];
    flows.iter().for_each(|f| count[(f.src * 8 + f.dst) as usize] += 1.0);
    let mean = flows.len() as f64 / 56.0;
    let chi: f64 = (0..64).filter(|i| i / 8 != i % 8).map(|i| (count[i] - mean).powi(2) / mean).sum();
    // 55 degrees of freedom: the 99.9th percentile is 93.2.
    assert!(chi < 93.2, "{chi}");
    assert!((0..8).all(|i| count[i * 9] == 0.0));
}

#[test]
fn what_one_workload_sends_does_not_depend_on_load_or_sizes_of_another_draw() {
    let flows = |load: f64, sizes: &str| {
        let keys = [("sizes", text(sizes)), ("load", Value::Number(load)), ("count", Value::Integer(400))];
        drain(&*source("poisson", 1 + 15, &keys))
    };
    let of = |flows: &[FlowSpec], host| -> Vec<(u64, HostId)> {
        flows.iter().filter(|f| f.src == host).map(|f| (f.size, f.dst)).take(10).collect()
    };
    // Another load changes the starts, but not sizes and destinations.
    assert_eq!(of(&flows(0.3, "websearch"), 3), of(&flows(0.7, "websearch"), 3));
    let destinations = |sizes| of(&flows(0.3, sizes), 3).iter().map(|f| f.1).collect::<Vec<_>>();
    assert_eq!(destinations("websearch"), destinations("imc10"));
}

#[test]
fn workloads_of_another_place_or_seed_send_other_flows() {
    let spec = spec("poisson", &[("count", Value::Integer(20))]);
    let flows = |seed, index| {
        with_hosts(8, |cx| drain(&*spec.source(&WorkloadContext { seed, index, ..*cx }).unwrap()))
    };
    assert_eq!(flows(1, 0), flows(1, 0));
    assert_ne!(flows(1, 0), flows(2, 0));
    assert_ne!(flows(1, 0), flows(1, 1));
}

#[test]
fn whole_nanoseconds_in_compat_mode() {
    let spec = spec("poisson", &[("count", Value::Integer(200))]);
    let flows = with_hosts(8, |cx| drain(&*spec.source(&WorkloadContext { whole_ns: true, ..*cx }).unwrap()));
    assert!(flows.iter().all(|flow| flow.start.0 % 1000 == 0));
}

#[test]
fn starts_lie_within_start_and_duration() {
    let keys = [("start", text("1ms")), ("duration", text("100us")), ("sizes", text("google-rpc"))];
    let flows = drain(&*source("poisson", 4, &keys));
    assert!(!flows.is_empty());
    let window = Time::from_us(1000)..Time::from_us(1100);
    assert!(flows.iter().all(|flow| window.contains(&flow.start)));
}

#[test]
fn destinations_can_be_a_permutation_another_rack_or_chosen_hosts() {
    let flows = |keys: &[(&'static str, Value)]| {
        let count = ("count", Value::Integer(500));
        drain(&*source("poisson", 16, &[keys, &[count]].concat()))
    };
    let mut partner = [None; 16];
    for flow in flows(&[("destinations", text("permutation"))]) {
        assert_eq!(*partner[flow.src as usize].get_or_insert(flow.dst), flow.dst);
    }
    assert!(flows(&[("destinations", text("inter-rack"))]).iter().all(|f| f.src / 4 != f.dst / 4));
    let chosen = flows(&[("hosts", text("0-3")), ("to", text("2-9"))]);
    assert!(chosen.iter().all(|f| f.src < 4 && (2..10).contains(&f.dst)));
}

#[test]
fn what_cannot_be_sent_is_an_error_that_names_its_key() {
    assert_eq!(source_error("poisson", 8, &[]).key, "duration");
    let duration = ("duration", text("1ms"));
    let error = |key, value: &str| source_error("poisson", 8, &[(key, text(value)), duration.clone()]);
    assert_eq!(error("hosts", "3").to_string(), "needs at least 2 hosts, found 1");
    assert_eq!(error("hosts", "3-9").to_string(), "unknown host 8: the topology has hosts 0 to 7");
    assert!(error("sizes", "websaerch").to_string().contains("did you mean \"websearch\""));
    assert!(error("sizes", "no/such.cdf").to_string().contains("no/such.cdf"));
    let lonely = [("hosts", text("1")), ("to", text("1")), duration.clone()];
    assert_eq!(source_error("poisson", 8, &lonely).to_string(), "host 1 has no receiver except itself");
    let rack = [("hosts", text("0-3")), ("destinations", text("inter-rack")), duration.clone()];
    assert_eq!(source_error("poisson", 8, &rack).key, "destinations");
    let both = [("size", text("1KB")), ("sizes", text("imc10")), duration];
    assert_eq!(tests::complaints("poisson", &both), ["size: give either size or sizes"]);
}
