//! NDP on the networks of the reference, against exact unit cases and the completion times of its authors'
//! simulator (csg-htsim), whose packets are all full: sizes are rounded up.

use crate::common::*;
use std::path::Path;
use weftline_sim::config::{Change, Config, Failure, Failures, LinkLoss};
use weftline_sim::measure::Outcome;
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// Payload of a full packet, and packets of the first window.
const SIZES: [(&str, u64, u32); 2] = [("mtu1500", 1436, 72), ("mtu9064", 9000, 15)];

/// The reference network of a case, with these flows of full packets.
fn network(case: &str, (mtu, window): (u64, u32), sets: &[(&str, &str)], flows: &[FlowSpec]) -> Config {
    let file = reference().expect("the reference").join("hpcc").join(case).join("topology.txt");
    let text = format!(
        "[topology]\nkind = \"file\"\nfile = {file:?}\n[transport]\nkind = \"ndp\"\nmtu = \"{mtu}B\"\nfirst_window = {window}\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    let full = |flow: &FlowSpec| FlowSpec { size: flow.size.div_ceil(mtu) * mtu, ..*flow };
    let flows = flows.iter().map(full).collect();
    let scenario = load_in(Path::new("."), &text, sets).unwrap_or_else(|error| panic!("{error}"));
    Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") }
}

/// The authors' completion times in picoseconds.
fn authors(case: &str, run: &str) -> Vec<u64> {
    let folder = reference().expect("the reference").join("rivals/ndp").join(case);
    rows(&folder.join(format!("fct_{run}.csv.gz"))).iter().map(|row| row[1]).collect()
}

fn fct_ps(config: Config) -> (Vec<u64>, Outcome) {
    let (kept, outcome) = run(config);
    (completion_times(&kept).iter().map(|fct| fct.0).collect(), outcome)
}

const ARRIVING: &[(&str, &str)] = &[("switch.queue.trim", "arriving")];

#[test]
fn lone_flows_take_the_authors_time_to_the_picosecond() {
    let Some((_, flows, _)) = case("star_single") else { return };
    for (name, mtu, window) in SIZES {
        let (found, outcome) = fct_ps(network("star_single", (mtu, window), ARRIVING, &flows));
        assert_eq!(found, authors("star_single", &format!("{name}_arriving")), "{name}");
        assert_eq!(trims(&outcome), 0);
    }
}

/// Trims of all ports.
fn trims(outcome: &Outcome) -> u64 {
    outcome.disciplines.iter().map(|(_, _, counters)| counters.get("trimmed").unwrap_or(0)).sum()
}

/// Also the order of simultaneous events is theirs.
const LIKE_HTSIM: &[(&str, &str)] = &[("switch.queue.trim", "arriving"), ("compat.like", "htsim")];

#[test]
fn incast_takes_the_authors_time_to_the_picosecond() {
    let Some((_, flows, _)) = case("star_incast16") else { return };
    for ((name, mtu, window), expected_trims) in SIZES.into_iter().zip([1160, 228]) {
        let (found, outcome) = fct_ps(network("star_incast16", (mtu, window), LIKE_HTSIM, &flows));
        assert_eq!(found, authors("star_incast16", &format!("{name}_arriving")), "{name}");
        assert_eq!(trims(&outcome), expected_trims);
        assert_eq!(outcome.losses.iter().map(|losses| losses.data_dropped).sum::<u64>(), 0);
    }
}

/// Mean and 99th percentile of completion times.
fn summary(mut times: Vec<u64>) -> (f64, f64) {
    times.sort_unstable();
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
    (mean, times[(times.len() * 99).div_ceil(100) - 1] as f64)
}

#[test]
fn coins_and_random_paths_give_the_authors_distribution() {
    for (case_name, policy) in [("star_incast16", "coin"), ("pod_wb_0.5", "coin"), ("pod_wb_0.5", "arriving")]
    {
        let Some((_, flows, _)) = case(case_name) else { return };
        for (size, mtu, window) in SIZES {
            let runs = (1..=5).map(|seed| authors(case_name, &format!("{size}_{policy}_s{seed}")));
            let theirs: Vec<(f64, f64)> = runs.map(summary).collect();
            let (seeds, mut trimmed) = (1..=10, 0);
            let ours: Vec<(f64, f64)> = seeds
                .map(|seed| {
                    let config = network(case_name, (mtu, window), &[("switch.queue.trim", policy)], &flows);
                    let (mut kept, outcome) = run_in(1, Config { seed, ..config });
                    trimmed += trims(&outcome);
                    kept.flows.sort_by_key(|flow| flow.flow);
                    summary(completion_times(&kept).iter().map(|fct| fct.0).collect())
                })
                .collect();
            println!("{case_name} {size} {policy} trims {}", trimmed / 10);
            for (what, of) in [("mean", (|run| run.0) as fn(&(f64, f64)) -> f64), ("p99", |run| run.1)] {
                let mean = |all: &[(f64, f64)]| all.iter().map(of).sum::<f64>() / all.len() as f64;
                let ratio = mean(&ours) / mean(&theirs);
                println!("{case_name} {size} {policy} {what} {ratio:.4}");
                // Of four flows the 99th percentile is the last one.
                let bar = if case_name == "dumb_fair4" && what == "p99" { 0.02 } else { 0.005 };
                assert!((ratio - 1.0).abs() < bar, "{case_name} {size} {policy} {what} {ratio}");
            }
        }
    }
}

/// Two racks, on which links lose this share of packets of these kinds.
fn lossy(kinds: u32, share: f64, seed: u64, sets: &[(&str, &str)]) -> Config {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n\
                [transport]\nkind = \"ndp\"\n[run]\nstall = \"10s\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    let mut config = Config {
        seed,
        traffic: traffic(random_flows(6, 60, seed)),
        ..scenario.config().expect("a configuration")
    };
    config.failures.loss = Some(LinkLoss { share, kinds });
    config
}

#[test]
fn no_flow_is_stuck_whatever_kind_of_packet_links_lose() {
    let kinds = [LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS, LinkLoss::control(0), LinkLoss::ALL];
    for (number, kinds) in kinds.into_iter().enumerate() {
        for returns in ["false", "true"] {
            for share in [0.02, 0.2] {
                let sets = [("switch.queue.return_to_sender", returns), ("switch.queue.limit", "3KB")];
                let (kept, _) = run(lossy(kinds, share, number as u64, &sets));
                let done = kept.flows.iter().filter(|flow| flow.finish.is_some()).count();
                assert_eq!(done, 60, "kind {number} lost at {share}, return to sender {returns}");
            }
        }
    }
}

#[test]
fn headers_without_room_come_back_and_nothing_is_lost() {
    let Some((_, flows, _)) = case("star_incast16") else { return };
    // Room for three headers.
    let sets = [("switch.queue.header_limit", "192B"), ("switch.queue.return_to_sender", "true")];
    let (kept, outcome) = run(network("star_incast16", (1436, 72), &sets, &flows));
    let returned: u64 =
        outcome.disciplines.iter().map(|(_, _, counters)| counters.get("returned").unwrap_or(0)).sum();
    assert!(returned > 0);
    assert!(kept.flows.iter().all(|flow| flow.finish.is_some()));
    let sets = [sets[0], ("switch.queue.return_to_sender", "false")];
    let (_, dropping) = run(network("star_incast16", (1436, 72), &sets, &flows));
    let dropped = |outcome: &Outcome| sum_of(outcome, |port| port.packets_dropped);
    assert!(dropped(&outcome) < dropped(&dropping), "{} {}", dropped(&outcome), dropped(&dropping));
}

/// How many data packets every port carries, rounded to tens, in order, with a flow of 400 to the last host
/// of a tree and one back. Answers and pulls make up less than ten of them.
fn there_and_back(tree: &str) -> Vec<u64> {
    let text = format!(
        "[topology]\n{tree}\n[transport]\nkind = \"ndp\"\nmtu = \"9000B\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    let config =
        load(&text, &[]).and_then(|scenario| scenario.config().map_err(|error| error.to_string())).unwrap();
    let last = config.topology.hosts().len() as u32 - 1;
    let both = [(0, last), (last, 0)].map(|(src, dst)| flow(src, dst, 400 * 9000, Time::ZERO));
    let (kept, outcome) = run(Config { traffic: traffic(both.to_vec()), ..config });
    assert!(kept.flows.iter().all(|flow| flow.packets_sent == 400));
    let mut found: Vec<u64> =
        outcome.ports.iter().map(|(_, _, port)| port.bytes_sent / 9064 / 10 * 10).collect();
    found.retain(|&packets| packets > 0);
    found.sort_unstable();
    found
}

#[test]
fn the_packets_of_a_flow_take_all_paths_equally_also_where_its_host_answers_another() {
    // Two hosts and their switches, two ports to aggregation switches and two from them, four core switches.
    let equal = [[100; 16].as_slice(), &[200; 8], &[400; 4]].concat();
    assert_eq!(there_and_back("kind = \"fat-tree\"\nk = 4"), equal);
    // Four links up from the first tier, and two from each of four switches of the second;
    // two and five.
    let tree = |aggs, cores| {
        format!(
            "kind = \"hpcc-fat-tree\"\npods = 2\ntors_per_pod = 1\naggs_per_pod = {aggs}\ncores_per_agg = {cores}"
        )
    };
    let narrower = [[50; 32].as_slice(), &[100; 16], &[400; 4]].concat();
    assert_eq!(there_and_back(&tree(4, 2)), narrower);
    let wider = [[40; 40].as_slice(), &[200; 8], &[400; 4]].concat();
    assert_eq!(there_and_back(&tree(2, 5)), wider);
    // Two links from each of two leaves to each of two spines.
    let bundles = "kind = \"clos\"\nleaves = 2\nhosts_per_leaf = 4\nuplinks = 4\nbundle = 2";
    assert_eq!(there_and_back(bundles), [[100; 16].as_slice(), &[400; 4]].concat());
}

#[test]
fn trimming_leaves_the_packets_of_other_transports_alone() {
    let sets = [
        ("transport.kind", "tcp"),
        ("switch.queue.kind", "priority"),
        ("switch.queue.trim", "coin"),
        ("switch.queue.limit", "12KB"),
    ];
    let (kept, outcome) = run(lossy(LinkLoss::ALL, 0.0, 1, &sets));
    assert!(kept.flows.iter().all(|flow| flow.finish.is_some()));
    assert_eq!(trims(&outcome), 0);
}

#[test]
fn invalid_settings_are_refused_with_a_reason() {
    let problems = |sets: &[(&str, &str)]| {
        let text = "[topology]\nkind = \"star\"\nhosts = 4\n[transport]\nkind = \"ndp\"\n\
                    [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        load(text, sets).map(|_| String::new()).unwrap_or_else(|error| error)
    };
    for (sets, part) in [
        ([("transport.first_window", "0")], "never send"),
        ([("transport.rto", "1ns")], "expected a time"),
        ([("switch.queue.limit", "0B")], "needs a limit"),
        ([("switch.queue.drop", "tail")], "trimmed, not dropped"),
        ([("switch.queue.header_limit", "10B")], "no room for a header"),
        ([("switch.queue.trim", "first")], "trim"),
    ] {
        let found = problems(&sets);
        assert!(found.contains(part), "{sets:?}: {found}");
    }
}

/// Hosts at one switch, 100 Gb/s and 1 us.
fn star(hosts: u32, sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = {hosts}\n[transport]\nkind = \"ndp\"\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    let scenario = load(&text, sets).unwrap_or_else(|error| panic!("{error}"));
    Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") }
}

/// What an outage loses is sent again a timeout later, at the pace of before.
#[test]
fn an_outage_costs_its_time_and_a_timeout() {
    let alone = || star(2, &[], vec![flow(0, 1, 10_000_000, Time::ZERO)]);
    let whole = fct_ps(alone()).0[0];
    for outage in [Time::from_ns(100), Time::from_us(2), Time::from_us(50), Time::from_ms(1)] {
        let mut config = alone();
        let link = link_between(&config.topology, 1, 2);
        let change = |at, change| Failure { at, change };
        let at = Time::from_us(200);
        let events = vec![change(at, Change::LinkDown(link)), change(at + outage, Change::LinkUp(link))];
        config.failures = Failures { detection: Time::from_us(1), events, loss: None };
        let (found, outcome) = fct_ps(config);
        assert!(sum_of(&outcome, |port| port.packets_lost) > 0);
        // The wait doubles while nothing arrives.
        let longest = whole + outage.0 + outage.0.max(2 * Time::from_us(200).0) + Time::from_us(20).0;
        assert!(found[0] <= longest, "{outage}: {} of {whole}", found[0]);
    }
}

#[test]
fn in_an_incast_headers_come_back_unless_the_mode_drops_them() {
    let flows = || (0..100).map(|src| flow(src, 100, 20_000, Time::ZERO)).collect();
    let (kept, outcome) = run(star(101, &[], flows()));
    assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0);
    assert_eq!(kept.flows.iter().map(|flow| flow.timeouts).sum::<u32>(), 0);
    let last = kept.flows.iter().filter_map(|flow| flow.finish).max().expect("flows");
    // Most packets come as headers first, a sixteenth of their time.
    let bits = Time(100 * 20_896 * 80);
    assert!(last < Time(bits.0 / 100 * 108), "{last} for {bits}");
    let (_, outcome) = run(star(101, &[("compat.like", "htsim")], flows()));
    assert!(sum_of(&outcome, |port| port.packets_dropped) > 0);
}

#[test]
fn headers_fill_a_slow_link_between_switches_and_not_that_of_a_receiver() {
    let warns = |topology: &str| {
        let text = format!(
            "[topology]\n{topology}\n[transport]\nkind = \"ndp\"\n[[workload]]\nkind = \"incast\"\nsize = \"1MB\"\n"
        );
        let warnings = load(&text, &[]).unwrap_or_else(|error| panic!("{error}")).warnings;
        warnings.iter().any(|warning| warning.contains("headers_per_data"))
    };
    let star = "kind = \"star\"\nhosts = 3\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                override = [{ between = [\"host2\", \"*\"], rate = \"1Gbps\" }]";
    let dumbbell = "kind = \"dumbbell\"\nleft = 2\nright = 2\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                    bottleneck_link = { rate = \"1Gbps\", delay = \"1us\" }";
    assert_eq!([star, dumbbell].map(warns), [false, true]);
}

#[test]
fn receivers_that_ask_at_the_rate_of_all_their_links_are_warned_of() {
    for (kind, policy, expected) in
        [("ndp", "hash", 1), ("phost", "hash", 1), ("ndp", "all", 0), ("homa", "hash", 0)]
    {
        let text = format!(
            "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 4\ngpus = 1\nspines = 2\n[transport]\nkind = \"{kind}\"\n\
             [host]\nnic_policy = \"{policy}\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\n"
        );
        let warnings = load(&text, &[]).unwrap_or_else(|error| panic!("{error}")).warnings;
        let found = warnings
            .iter()
            .filter(|warning| warning.contains("a receiver with several links requests"))
            .count();
        assert_eq!(found, expected, "{kind}, {policy}: {warnings:?}");
    }
}

/// After a pull the pacer waits for the time of the packet that it asks for, whatever came last: only the first windows are trimmed,
/// and what they trimmed is not trimmed again.
#[test]
fn flows_with_packets_of_different_length_are_pulled_at_the_rate_of_the_link() {
    let trims = |mtus: [u32; 2], size: &str| {
        let [short, long] = mtus;
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 3\nhost_link = {{ rate = \"10Gbps\", delay = \"500ns\" }}\n\
             [switch.queue]\nkind = \"priority\"\ntrim = \"arriving\"\nlimit = \"72KB\"\n\
             [transport]\nkind = \"ndp\"\nmtu = \"{short}B\"\n\
             [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 2, size = \"{size}\" }}]\n\
             [[workload]]\nkind = \"flows\"\ngroup = \"long\"\ntransport = {{ mtu = \"{long}B\" }}\n\
             flows = [{{ src = 1, dst = 2, size = \"{size}\" }}]\n"
        );
        let (_, outcome) = run(load(&text, &[]).unwrap().config().unwrap());
        trims(&outcome)
    };
    for mtus in [[1000, 9000], [9000, 1000], [4000, 9000]] {
        assert_eq!(trims(mtus, "4MB"), trims(mtus, "2MB"), "{mtus:?}");
    }
}
