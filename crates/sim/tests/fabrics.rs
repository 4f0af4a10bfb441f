//! How packets of GPU clusters are spread, against the Ultra Ethernet Consortium's simulator on the same flows: order of the
//! schemes, and the size of the gaps between them. Transports differ (PowerTCP here, NSCC there), so nothing is equal.

use crate::common::*;
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::path::PathBuf;
use weftline_sim::config::Config;
use weftline_sim::units::Time;
use weftline_sim::{Execution, Simulation};

fn unpacked(name: &str) -> Option<String> {
    let file = std::fs::File::open(reference()?.join("ai").join(name)).expect(name);
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    Some(text)
}

/// A connection matrix as a file of flows, each over this number of connections; a flow that a trigger starts begins when the
/// flows that pull it have ended: at the sender of both, or where their receiver sends on, at the receiver.
fn flows_file(matrix: &str, connections: usize) -> Option<PathBuf> {
    let (mut rows, mut count) = ("src,dst,size_bytes,start_ns,after\n".to_string(), 0);
    let mut pulls: BTreeMap<&str, String> = BTreeMap::new();
    let text = unpacked(&format!("{matrix}.cm.gz"))?;
    for line in text.lines().filter(|line| line.contains("->")) {
        let words: Vec<&str> = line.split(' ').collect();
        let word = |key| words.iter().position(|word| *word == key).map(|at| words[at + 1]);
        let (src, dst) = words[0].split_once("->").expect("two hosts");
        let size = word("size").expect("a size").parse::<usize>().expect("bytes") / connections;
        let after = word("trigger").map_or("", |trigger| &pulls[trigger]);
        (0..connections).for_each(|_| writeln!(rows, "{src},{dst},{size},0,{after}").expect("text"));
        let own: Vec<String> = (count..count + connections).map(|row| row.to_string()).collect();
        count += connections;
        if let Some(trigger) = word("send_done_trigger") {
            pulls.insert(trigger, own.join(";"));
        }
    }
    let file =
        std::env::temp_dir().join(format!("weftline-{}-{matrix}-{connections}.csv", std::process::id()));
    std::fs::write(&file, rows).expect("a file");
    Some(file)
}

/// Mean and largest completion time and the last end in microseconds, in the mean over seeds.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    mean: f64,
    largest: f64,
    end: f64,
}

impl Times {
    /// Of (start, finish) of the flows of each seed.
    fn of(seeds: &[Vec<(f64, f64)>]) -> Times {
        let (mut times, share) = (Times::default(), 1.0 / seeds.len() as f64);
        for flows in seeds {
            let lasted = flows.iter().map(|(start, finish)| finish - start);
            times.mean += share * lasted.clone().sum::<f64>() / flows.len() as f64;
            times.largest += share * lasted.fold(0.0, f64::max);
            times.end += share * flows.iter().map(|flow| flow.1).fold(0.0, f64::max);
        }
        times
    }
}

/// Of a scheme in that simulator.
fn theirs(case: &str, scheme: &str) -> Times {
    let mut seeds: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for line in unpacked(&format!("{case}.csv.gz")).expect("the reference").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        if fields[0] == scheme {
            // NDP gives no start of flows that wait for others.
            let at = |field: &str| field.parse().unwrap_or(f64::NAN);
            seeds.entry(fields[1].to_string()).or_default().push((at(fields[6]), at(fields[7])));
        }
    }
    assert!(!seeds.is_empty(), "{case} has no {scheme}");
    Times::of(&seeds.into_values().collect::<Vec<_>>())
}

const LEAVES: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 8\nspines = 16\nhosts_per_leaf = 16\n\
    host_link = { rate = \"400Gbps\", delay = \"500ns\" }\nfabric_link = { rate = \"400Gbps\", delay = \"500ns\" }\n";
const TREE: &str = "[topology]\nkind = \"fat-tree\"\nk = 8\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
    fabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n";
/// Frames as theirs: 4086 + 64 B. Lossless, as RoCE is run.
const PAIRS: &str = "[transport]\nkind = \"rdma\"\nmtu = \"4086B\"\nheader = \"64B\"\nack_header = \"64B\"\n\
    recovery = \"selective-repeat\"\nreordering = 256\ncontroller = { kind = \"powertcp\" }\n";
const NDP: &str = "[transport]\nkind = \"ndp\"\nmtu = \"4086B\"\nheader = \"64B\"\nfirst_window = 53\n\
    [switch.queue]\nkind = \"priority\"\nlimit = \"219950B\"\n";
const SEEDS: u64 = 2;

fn ours(name: &str, network: &str, transport: &str, (balancer, connections): (&str, usize)) -> Option<Times> {
    let matrix = match name {
        "ring32" => "ring32_32MB",
        "a2a32" => "a2a32_250KB_w4",
        _ => "perm128_2MB",
    };
    let file = flows_file(matrix, connections)?;
    let text = format!("{network}{transport}[[workload]]\nkind = \"trace\"\nfile = {file:?}\n");
    let set = format!("{{ kind = \"{balancer}\" }}");
    let sets: &[(&str, &str)] = if balancer.is_empty() { &[] } else { &[("switch.balancer", &set)] };
    let scenario = load(&text, sets).unwrap_or_else(|error| panic!("{error}"));
    let config = scenario.config().expect("a configuration");
    let runs = (1..=SEEDS).map(|seed| {
        let (kept, _) = run_in(1, Config { seed, ..config.clone() });
        let us = |time: Time| time.0 as f64 / 1e6;
        kept.flows.iter().map(|flow| (us(flow.start), us(flow.finish.expect("it ends")))).collect()
    });
    let times = Times::of(&runs.collect::<Vec<Vec<_>>>());
    println!("{name} {balancer} {connections}: {times:.1?}");
    std::fs::remove_file(file).expect("the file goes");
    Some(times)
}

/// A gap of ours, a gap of theirs, and by which factor they may differ.
fn alike(what: &str, ours: f64, theirs: f64, factor: f64) {
    println!("{what}: {ours:.3}, theirs {theirs:.3}");
    let ratio = ours / theirs;
    assert!((1.0 / factor..factor).contains(&ratio), "{what}: {ours:.3}, theirs {theirs:.3}");
}

#[test]
fn a_ring_needs_more_than_one_path_and_switches_that_choose_are_as_good_as_senders() {
    let Some(hashed) = ours("ring32", LEAVES, PAIRS, ("ecmp", 1)) else { return };
    let times = |how| ours("ring32", LEAVES, PAIRS, how).expect("the reference");
    let (four, sprayed, adaptive) = (times(("ecmp", 4)), times(("spray", 1)), times(("adaptive", 1)));
    let (one_path, mixed) = (theirs("ring32", "nscc-1path"), theirs("ring32", "nscc-mixed"));
    alike("a flow beside adaptive routing", adaptive.mean, mixed.mean, 1.06);
    alike("oblivious over adaptive", sprayed.end / adaptive.end, 1.0, 1.02);
    alike("one path over many", hashed.end / adaptive.end, one_path.end / mixed.end, 1.3);
    assert!(adaptive.end < four.end && four.end < hashed.end, "{adaptive:?} {four:?} {hashed:?}");
}

#[test]
fn an_all_to_all_is_bound_by_its_receivers_whatever_its_paths() {
    let Some(adaptive) = ours("a2a32", LEAVES, PAIRS, ("adaptive", 1)) else { return };
    let mixed = theirs("a2a32", "nscc-mixed");
    alike("end of an all-to-all", adaptive.end, mixed.end, 1.05);
    alike("a flow of an all-to-all", adaptive.mean, mixed.mean, 1.06);
    for how in [("ecmp", 1), ("ecmp", 4), ("spray", 1)] {
        let other = ours("a2a32", LEAVES, PAIRS, how).expect("the reference");
        alike("other paths over adaptive", other.end / adaptive.end, 1.0, 1.06);
    }
    let ndp = ours("a2a32", LEAVES, NDP, ("", 1)).expect("the reference");
    alike("NDP", ndp.end, theirs("a2a32", "ndp").end, 1.05);
    assert!(adaptive.end < theirs("a2a32", "eqds").end);
}

#[test]
fn a_permutation_on_three_tiers_ends_first_with_adaptive_routing_then_spraying_then_one_path() {
    let Some(adaptive) = ours("perm128", TREE, PAIRS, ("adaptive", 1)) else { return };
    let times = |how| ours("perm128", TREE, PAIRS, how).expect("the reference");
    let (hashed, four, sprayed) = (times(("ecmp", 1)), times(("ecmp", 4)), times(("spray", 1)));
    let [ar, oblivious, one_path] =
        ["ar", "oblivious", "1path"].map(|lb| theirs("perm128", &format!("nscc-{lb}")));
    alike("one path over adaptive", hashed.largest / adaptive.largest, one_path.largest / ar.largest, 1.25);
    alike("oblivious over adaptive", sprayed.largest / adaptive.largest, oblivious.largest / ar.largest, 1.2);
    assert!(
        adaptive.largest < sprayed.largest && sprayed.largest < four.largest && four.largest < hashed.largest
    );
}

/// Eight nodes of four GPUs, two segments; no switch joins the rails.
const RAIL_ONLY: &str = "[topology]\nkind = \"rail-only\"\nnodes = 8\ngpus = 4\nnodes_per_segment = 4\nspines = 2\n\
    [transport]\ncontroller = { kind = \"hpcc\" }\n[[workload]]\nkind = \"collective\"\nbytes = \"1600KB\"\n";

#[test]
fn hierarchical_operations_cross_rails_in_their_domains() {
    for operation in ["all-reduce", "all-to-all"] {
        let sets = [
            ("workload.0.operation", operation),
            ("workload.0.algorithm", "hierarchical"),
            ("workload.0.domain", "4"),
            ("workload.0.scale_up_rate", "3.6Tbps"),
        ];
        let ends = ["rail", "rail-only"].map(|kind| {
            let sets: Vec<_> = sets.into_iter().chain([("topology.kind", kind)]).collect();
            let config = load(RAIL_ONLY, &sets).expect("a scenario").config().expect("a configuration");
            let (kept, outcome) = run(config);
            assert!(kept.flows.iter().all(|flow| flow.finish.is_some() && flow.src % 4 == flow.dst % 4));
            outcome.steps[0].finish.expect("an end").0 as f64
        });
        // Rails never shared a link that both have; spines of one's own differ in hashes only.
        alike(operation, ends[1], ends[0], 1.3);
    }
}

#[test]
fn traffic_that_no_rail_carries_is_refused() {
    let why = "no switch joins host0 to host1: such traffic must be forwarded in a scale-up domain";
    let message =
        load(RAIL_ONLY, &[("workload.0.operation", "all-reduce")]).err().expect("a ring over all hosts");
    assert!(message.contains("s.toml:9") && message.contains(why), "{message}");
    // What a scenario did not see is refused by the run.
    let rail = "[topology]\nkind = \"rail-only\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\nhosts = \"0,8\"\n";
    let config = load(rail, &[]).expect("a scenario of one rail").config().expect("a configuration");
    let config = Config {
        traffic: traffic(vec![flow(0, 8, 1000, Time::ZERO), flow(0, 1, 1000, Time::ZERO)]),
        ..config
    };
    let simulation = Simulation::new(config, Execution::default()).expect("a network");
    let error = simulation.run(&mut Kept::default(), &mut |_| true).expect_err("a flow between rails");
    assert!(error.to_string().starts_with(why), "{error}");
}

#[test]
fn jobs_under_loggops_end_when_the_authors_simulator_ends_them() {
    let Some(folder) = reference().map(|folder| folder.join("ai/goal")) else { return };
    for (name, ends) in [
        ("ring4", vec![2_397_260; 4]),
        ("wild", vec![9344, 4500, 1500]),
        ("rendezvous", vec![2_000_010, 2_601_494]),
    ] {
        for format in ["goal", "bin"] {
            let file = folder.join(format!("{name}.{format}"));
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 4\n[[workload]]\nkind = \"job-file\"\nfile = {file:?}\nnetwork = \"loggops\"\n\
                 start = \"3us\"\n"
            );
            let (_, outcome) = run(load(&text, &[]).expect("a scenario").config().expect("a configuration"));
            let lasted = |end: Option<Time>| (end.expect("an end") - Time::from_us(3)).ns();
            let found: Vec<u64> = outcome.ranks.iter().map(|rank| lasted(rank.end)).collect();
            assert_eq!(found, ends, "{name}.{format}");
            assert_eq!(
                (outcome.flows, lasted(outcome.steps[0].finish)),
                (0, *ends.iter().max().expect("ranks"))
            );
        }
    }
    let text = |more: &str| {
        let file = folder.join("wild.goal");
        format!(
            "[topology]\nkind = \"star\"\nhosts = 4\n[[workload]]\nkind = \"job-file\"\nfile = {file:?}\n{more}\n"
        )
    };
    let message = |more: &str| load(&text(more), &[]).err().expect("wrong");
    let wrong = message("network = \"loggops\"\nmachine = \"L=fast\"");
    assert!(wrong.contains("s.toml:8: workload.0.machine: L: expected a number"), "{wrong}");
    let idle = message("machine = \"L=1\"");
    assert!(idle.contains("s.toml:7: workload.0.machine: has no effect without network"), "{idle}");
}

#[test]
fn connections_of_a_job_take_all_ports_of_a_nic_and_move_when_one_fails() {
    let text = "[topology]\nkind = \"hpn\"\nsegments = 2\nnodes_per_segment = 2\ngpus = 2\nplanes = 4\nspines = 2\n\
        [transport]\nrecovery = \"selective-repeat\"\nrto = \"100us\"\ncontroller = { kind = \"hpcc\" }\n\
        [[workload]]\nkind = \"collective\"\noperation = \"all-reduce\"\nchannels = 16\nbytes = \"8MB\"\nrepeat = 3\n";
    let sent = |sets: &[(&str, &str)]| {
        let config =
            load(text, sets).unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
        let (topology, (kept, outcome)) = (config.topology.clone(), run(config));
        assert!(kept.flows.iter().all(|flow| flow.finish.is_some()), "{:?}", outcome.ending);
        let ports = (0..4).map(|plane| {
            let tor = node_named(&topology, &format!("tor{plane}"));
            totals_of(&outcome, 0, port_towards(&topology, 0, tor)).bytes_sent
        });
        (ports.collect::<Vec<u64>>(), outcome.end)
    };
    let (whole, end) = sent(&[]);
    assert!(whole.iter().filter(|bytes| **bytes > 1_000_000).count() > 2, "{whole:?}");
    // A quarter of the way the busiest port's link goes for good.
    let busiest = (0..4).max_by_key(|&port| whole[port]).expect("four ports");
    let at = format!("{}ns", end.ns() / 4);
    let failure = format!("[{{ at = \"{at}\", link = [\"host0\", \"tor{busiest}\"] }}]");
    let (left, longer) = sent(&[("failures.event", &failure)]);
    let others = |bytes: &[u64]| bytes.iter().sum::<u64>() - bytes[busiest];
    assert!(left[busiest] < whole[busiest] / 2 && others(&left) > others(&whole), "{left:?} of {whole:?}");
    assert!(longer < Time(3 * end.0), "{longer} after {end}");
    // TCP's connections move too.
    let tcp = [("transport", "{ kind = \"tcp\" }"), ("failures.event", &*failure)];
    assert!(sent(&tcp).0[busiest] > 0);
}
