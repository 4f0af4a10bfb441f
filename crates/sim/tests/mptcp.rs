//! Multipath TCP end to end: times computed by hand, subflows and their paths, losses, coupling, failures.

mod announced;
mod nics;
mod repaired;
mod resending;

use crate::common::*;
use nics::two_nics;
use weftline_sim::config::{Change, Config, Failure, LinkLoss, Sampled, Until};
use weftline_sim::measure::{Entity, Outcome};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

fn four_paths(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    let scenario = load(FOUR_PATHS, sets).unwrap_or_else(|error| panic!("{error}"));
    let mut config = Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") };
    config.until = Until::FlowsDone { grid: Time::from_ms(1), stall: Time::from_ms(100_000) };
    config
}

#[test]
fn a_handshake_and_one_window_take_the_time_that_links_take() {
    // One subflow: SYN and SYN-ACK with 4 and 12 B of option, ten segments, one data acknowledgement; ways of 4 ms.
    let sets = [("transport.subflows", "1"), ("transport.ack_every", "1")];
    let (kept, _) = run(four_paths(&sets, vec![flow(0, 4, 10_000, Time::ZERO)]));
    // At 1 Gb/s a byte takes 8 ns, at 100 Mb/s 80: 2 (8 + 80) ns a byte of what is sent alone.
    let alone = |bytes: u64| 4_000_000 + bytes * 176;
    let syns = alone(54) + alone(62);
    // The third packet, 50 B and 20 of option in place of the data acknowledgement's 12, leaves before the data.
    let (third, data) = (58 * 8, alone(1050) + 9 * 1050 * 80);
    assert_eq!(completion_times(&kept)[0].ns(), syns + third + data + alone(50));
}

#[test]
fn a_connection_to_a_host_of_tcp_alone_falls_back_to_one_subflow() {
    // As above, with no option in any packet: all three packets of the handshake have 50 B.
    let sets = [("transport.capable", "0"), ("transport.ack_every", "1")];
    let mut config = four_paths(&sets, vec![flow(0, 4, 10_000, Time::ZERO)]);
    config.measure.subflows = true;
    let (kept, _) = run(config);
    let alone = |bytes: u64| 4_000_000 + bytes * 176;
    let data = alone(1050) + 9 * 1050 * 80;
    assert_eq!(completion_times(&kept)[0].ns(), 2 * alone(50) + 50 * 8 + data + alone(50));
    assert_eq!(kept.samples.iter().find(|s| s.metric == "subflows_used").expect("a row").value, 1.0);
}

#[test]
fn where_some_hosts_support_multipath_tcp_the_connections_between_them_have_several_subflows() {
    for (version, join) in [("1", "\"confirmed\""), ("0", "\"at-once\"")] {
        let mut mixed = 0;
        for seed in 1..=6 {
            let sets = [
                ("transport.capable", "0.6"),
                ("transport.version", version),
                ("transport.join", join),
                ("switch.balancer", "{ kind = \"mp-hula\", ranks = 4 }"),
            ];
            let flows = (0..4).map(|src| flow(src, 4 + src, 2_000_000, Time::ZERO)).collect();
            let mut config = four_paths(&sets, flows);
            config.seed = seed;
            config.measure.subflows = true;
            let (kept, _) = run(config);
            assert!(kept.flows.iter().all(|flow| flow.finish.is_some()));
            let used = kept.samples.iter().filter(|s| s.metric == "subflows_used").map(|s| s.value as u32);
            let used: Vec<u32> = used.collect();
            assert!(used.iter().all(|&used| used == 1 || used == 4), "{used:?}");
            mixed += usize::from(used.contains(&1) && used.contains(&4));
        }
        assert!(mixed >= 3, "{mixed} of six seeds have both kinds of connections");
    }
}

#[test]
fn four_subflows_carry_a_flow_to_its_end() {
    for scheduler in ["min-rtt", "round-robin", "redundant", "linux"] {
        let kind = format!("\"{scheduler}\"");
        let sets = [("transport.scheduler", kind.as_str())];
        let (kept, outcome) = run(four_paths(&sets, vec![flow(0, 4, 20_000_000, Time::ZERO)]));
        println!("{scheduler}: {:?} {:?}", kept.flows[0], outcome.ending);
        assert!(kept.flows[0].finish.is_some());
    }
}

#[test]
fn whatever_packets_are_lost_no_connection_is_stuck() {
    for kinds in [
        LinkLoss::ALL,
        LinkLoss::DATA,
        LinkLoss::ACKNOWLEDGEMENTS,
        LinkLoss::control(1),
        LinkLoss::control(2),
        LinkLoss::control(3),
        LinkLoss::control(4),
        LinkLoss::control(7),
        LinkLoss::control(8),
    ] {
        for (size, capable, join) in [
            (500, "1", "confirmed"),
            (30_000, "1", "announced"),
            (1_000_000, "1", "confirmed"),
            (1_000_000, "1", "announced"),
            (500, "0.5", "confirmed"),
            (30_000, "0", "announced"),
        ] {
            let join = format!("\"{join}\"");
            let flows = (0..4).map(|src| flow(src, 4 + src, size, Time::ZERO)).collect();
            let sets = [
                ("transport.rto_syn", "\"20ms\""),
                ("transport.rto_min", "\"20ms\""),
                ("transport.rto_max", "\"1s\""),
                ("transport.syn_retries", "30"),
                ("transport.retries", "1000"),
                ("transport.capable", capable),
                ("transport.join", &join),
            ];
            let mut config = four_paths(&sets, flows);
            config.failures.loss = Some(LinkLoss { share: 0.05, kinds });
            let (kept, _) = run(config);
            assert!(kept.flows.iter().all(|flow| flow.finish.is_some()), "{kinds:x}: {:?}", kept.flows);
            for flow in &kept.flows {
                assert_eq!(flow.packets_sent, flow.size.div_ceil(1000) + flow.packets_retransmitted);
            }
        }
    }
}

/// The end of a run is at this second.
fn until(mut config: Config, seconds: u64) -> Config {
    config.until = Until::At(Time::from_ms(1000 * seconds));
    config
}

/// Mb/s of a flow from one second to another.
fn goodput(kept: &Kept, flow: u32, from: u64, to: u64) -> f64 {
    let within = |time: Time| time > Time::from_ms(1000 * from) && time <= Time::from_ms(1000 * to);
    let of = |s: &&weftline_sim::measure::Sample| {
        s.metric == "goodput_bps" && s.entity == Entity::Flow(flow) && within(s.time)
    };
    let rates: Vec<f64> = kept.samples.iter().filter(of).map(|s| s.value / 1e6).collect();
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Rates of these flows every 100 ms.
fn watched(mut config: Config, flows: Vec<u32>) -> Config {
    config.measure.flow_goodput = Some(Sampled { what: flows, every: Time::from_ms(100) });
    config
}

/// Two ToRs, four spines at 50 Mb/s with buffers of 100 packets, one long flow of four subflows: what was tried on Linux.
const TRIAL: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 2
host_link = { rate = "1Gbps", delay = "100us" }
fabric_link = { rate = "50Mbps", delay = "1ms" }

[switch]
queue = { kind = "fifo", packets = 100 }

[transport]
kind = "mptcp"
subflows = 4
controller = { kind = "newreno" }

[[workload]]
kind = "permutation"
size = "1KB"
"#;

/// Subflows take the four paths in turn, and each keeps to its own: flowlets, learned next hops, and their ranks last for
/// the whole run.
const STEERED: &str = r#"{ kind = "mp-hula", ranks = 4, rank = "round-robin", hysteresis = 255, disjoint = false,
    probe_interval = "10ms", failure_time = "100s", gap = "100s" }"#;
/// Ranks follow the load, so that a path may have another one when the next subflow comes; but its port is passed over (the default).
const DISJOINT: &str = r#"{ kind = "mp-hula", ranks = 4,
    probe_interval = "10ms", failure_time = "100s", gap = "100s" }"#;

fn trial(sets: &[(&str, &str)], seed: u64, seconds: u64) -> Config {
    let scenario = load(TRIAL, sets).unwrap_or_else(|error| panic!("{error}"));
    let flows = vec![flow(0, 2, 1 << 40, Time::from_ms(50))];
    let config = Config { traffic: traffic(flows), seed, ..scenario.config().expect("a configuration") };
    until(watched(config, vec![0]), seconds)
}

#[test]
fn steered_subflows_carry_half_as_much_again_as_hashed_ones() {
    // Expected by counting: four balls fall into 2.73 of four bins, and 4 / 2.73 = 1.46.
    let salts = 16;
    let mut hashed = Vec::new();
    for salt in 0..salts {
        let balancer = format!("{{ kind = \"ecmp\", salt = {salt} }}");
        let (kept, _) = run_in(1, trial(&[("switch.balancer", &balancer)], 1, 6));
        hashed.push(goodput(&kept, 0, 1, 6));
    }
    let mut steered = Vec::new();
    for (balancer, seed) in
        [(STEERED, 1), (STEERED, 2), (STEERED, 3), (DISJOINT, 1), (DISJOINT, 2), (DISJOINT, 3)]
    {
        let (kept, _) = run_in(1, trial(&[("switch.balancer", balancer)], seed, 6));
        steered.push(goodput(&kept, 0, 1, 6));
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let ratio = mean(&steered) / mean(&hashed);
    println!("hashed {hashed:.0?}, mean {:.0}; steered {steered:.0?}; ratio {ratio:.3}", mean(&hashed));
    assert!(steered.iter().all(|&rate| rate > 175.0), "{steered:?}");
    assert!((1.4..1.5).contains(&ratio), "{ratio}");
}

#[test]
fn a_path_that_swallows_everything_leaves_what_the_three_others_carry() {
    let mut config = trial(&[("switch.balancer", STEERED)], 1, 20);
    let topology = &config.topology;
    let spine = node_named(topology, "spine2");
    let links = ["leaf0", "leaf1"].map(|leaf| link_between(topology, spine, node_named(topology, leaf)));
    let down = |link| Failure { at: Time::from_ms(5_000), change: Change::LinkDown(link) };
    config.failures.events = links.map(down).to_vec();
    // Routes are not informed.
    config.failures.detection = Time::from_ms(1_000_000);
    let (kept, _) = run_in(1, config);
    let seconds: Vec<f64> = (0..20).map(|second| goodput(&kept, 0, second, second + 1)).collect();
    println!("{seconds:.0?}");
    let (before, after) = (goodput(&kept, 0, 2, 5), goodput(&kept, 0, 10, 20));
    assert!(before > 175.0 && after > 0.7 * before && after < 0.8 * before, "{before} and {after}");
}

/// Both sides of a bottleneck of 50 Mb/s: a flow of four subflows, and one of TCP.
fn share_at_a_bottleneck(controller: &str) -> f64 {
    let text = format!(
        r#"
[topology]
kind = "dumbbell"
left = 2
right = 2
host_link = {{ rate = "1Gbps", delay = "1ms" }}
bottleneck_link = {{ rate = "50Mbps", delay = "8ms" }}

[switch]
queue = {{ kind = "red", limit = "300KB", min_queue = "15KB", max_queue = "60KB", gentle = true }}

[transport]
kind = "mptcp"
subflows = 4
controller = {{ kind = "{controller}" }}

[[workload]]
kind = "flows"
flows = [{{ src = 0, dst = 2, size = "100GB" }}]

[[workload]]
kind = "flows"
flows = [{{ src = 1, dst = 3, size = "100GB" }}]
transport = {{ kind = "tcp", controller = {{ kind = "newreno" }} }}
"#
    );
    let config =
        load(&text, &[]).unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
    let (kept, _) = run_in(1, until(watched(config, vec![0, 1]), 120));
    let [multipath, tcp] = [0, 1].map(|flow| goodput(&kept, flow, 20, 120));
    println!("{controller}: {multipath:.1} and {tcp:.1} Mb/s");
    multipath / tcp
}

#[test]
fn coupled_subflows_take_no_more_than_one_tcp_at_a_shared_bottleneck_and_uncoupled_ones_do() {
    for coupled in ["lia", "olia", "balia"] {
        let share = share_at_a_bottleneck(coupled);
        assert!((0.6..1.15).contains(&share), "{coupled}: {share}");
    }
    assert!(share_at_a_bottleneck("newreno") > 2.0);
}

/// One flow of four subflows from one pod of a fat tree to another; two ways up at each of two tiers.
fn on_a_clos(rank: &str) -> Outcome {
    let text = r#"
[topology]
kind = "fat-tree"
k = 4
[switch]
balancer = { kind = "mp-hula", ranks = 2, gap = "100ms", disjoint = false }
[transport]
kind = "mptcp"
subflows = 4
controller = { kind = "newreno" }
[[workload]]
kind = "flows"
flows = [{ src = 0, dst = 12, size = "3MB", start = "2ms" }]
[measure]
paths = true
subflows = true
"#;
    let rank = format!("\"{rank}\"");
    let scenario = load(text, &[("switch.balancer.rank", &rank)]).unwrap_or_else(|error| panic!("{error}"));
    let (kept, outcome) = run(scenario.config().expect("a configuration"));
    let used = kept.samples.iter().find(|s| s.metric == "subflows_used").expect("a row");
    assert_eq!(used.value, 4.0);
    outcome
}

#[test]
fn four_subflows_on_a_clos_of_two_by_two_take_four_paths_by_digits_and_two_by_turns() {
    let paths = |rank| on_a_clos(rank).receiving.expect("paths were counted").paths;
    assert_eq!((paths("digits"), paths("round-robin")), (4, 2));
}

#[test]
fn traffic_that_is_not_multipath_is_untouched_by_the_mark() {
    let run_with = |mptcp: &str| {
        let text = format!(
            r#"
[topology]
kind = "fat-tree"
k = 4
[switch]
balancer = {{ kind = "mp-hula", ranks = 2 }}
[transport]
kind = "tcp"
[[workload]]
kind = "permutation"
size = "300KB"
{mptcp}
"#
        );
        let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
        run(scenario.config().expect("a configuration"))
    };
    let (alone, without) = run_with("");
    let late = "[[workload]]\nkind = \"flows\"\ntransport = { kind = \"mptcp\" }\n\
                flows = [{ src = 0, dst = 12, size = \"1MB\", start = \"500ms\" }]";
    let (kept, with) = run_with(late);
    let times = |kept: &Kept| kept.flows.iter().take(16).map(|f| f.finish).collect::<Vec<_>>();
    assert_eq!(times(&alone), times(&kept), "as if nobody looked for subflows");
    assert_eq!(total(&without, "balancer_header_bytes"), 0);
    assert!(total(&with, "balancer_header_bytes") > 0, "the multipath flow was marked");
}

#[test]
fn results_do_not_depend_on_how_the_network_is_cut() {
    let text = r#"
[topology]
kind = "fat-tree"
k = 4
[switch]
balancer = { kind = "mp-hula", ranks = 2 }
[transport]
kind = "mptcp"
[[workload]]
kind = "permutation"
size = "200KB"
[failures]
loss = 0.002
[measure]
subflows = true
"#;
    let config =
        || load(text, &[]).unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
    let (first, outcome) = run_in(1, config());
    for regions in 2..=8 {
        let (again, same) = run_in(regions, config());
        assert_eq!(outcome, same, "{regions} regions");
        assert_eq!((&first.flows, &first.samples), (&again.flows, &again.samples), "{regions} regions");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_the_reason() {
    let refused = |sets: &[(&str, &str)]| load(FOUR_PATHS, sets).err().expect("a refusal");
    for kind in ["lia", "olia", "balia"] {
        let kind = format!("{{ kind = \"{kind}\" }}");
        let tcp = [("transport.kind", "\"tcp\""), ("transport.controller", kind.as_str())];
        let wrong = refused(&tcp);
        assert!(
            wrong.contains("couples the subflows") && wrong.contains("set transport.kind = \"mptcp\""),
            "{wrong}"
        );
    }
    let wrong = refused(&[("transport.app_rate", "\"1Mbps\"")]);
    assert!(wrong.contains("not modelled over several subflows"), "{wrong}");
    let wrong = refused(&[("transport.capable", "2")]);
    assert!(wrong.contains("expected a number from 0 to 1, found 2"), "{wrong}");
    let wrong = refused(&[("transport.subflows", "0")]);
    assert!(wrong.contains("transport.subflows"), "{wrong}");
    let wrong = refused(&[("transport.scheduler", "\"minrtt\"")]);
    assert!(wrong.contains("did you mean \"min-rtt\"?"), "{wrong}");
    let many = [("transport.subflows", "17"), ("switch.balancer", "{ kind = \"mp-hula\", ranks = 4 }")];
    let scenario = load(FOUR_PATHS, &many).unwrap_or_else(|error| panic!("{error}"));
    assert!(scenario.warnings.iter().any(|w| w.contains("subflow 17 is taken for the first again")));
}

#[test]
fn a_nic_that_is_slower_than_the_windows_sends_the_stream_in_order() {
    // One path, so what arrives out of order left so. Flows follow each other over the connection while those before them wait.
    // A tail loss probe may send a new segment out of turn.
    let text = r#"
[topology]
kind = "star"
hosts = 4
[transport]
kind = "mptcp"
loss_probe = false
[[workload]]
kind = "collective"
hosts = "0-3"
bytes = "4MB"
repeat = 3
[[workload]]
kind = "flows"
flows = [{ src = 0, dst = 2, size = "3MB" }, { src = 3, dst = 1, size = "2MB", start = "300us" }]
[measure]
subflows = true
"#;
    for scheduler in ["min-rtt", "round-robin"] {
        for (controller, subflows) in [("newreno", "2"), ("lia", "4"), ("cubic", "8")] {
            let kind = format!("{{ kind = \"{controller}\" }}");
            let scheduler = format!("\"{scheduler}\"");
            let sets = [
                ("transport.controller", kind.as_str()),
                ("transport.subflows", subflows),
                ("transport.scheduler", &scheduler),
            ];
            let scenario = load(text, &sets).unwrap_or_else(|error| panic!("{error}"));
            let (kept, _) = run(scenario.config().expect("a configuration"));
            let waited: Vec<f64> =
                kept.samples.iter().filter(|s| s.metric == "reorder_bytes").map(|s| s.value).collect();
            assert!(!waited.is_empty());
            assert!(waited.iter().all(|&bytes| bytes == 0.0), "{controller}, {scheduler}: {waited:?}");
        }
    }
}

#[test]
fn subflows_part_that_send_before_a_probe_has_come() {
    let balancer =
        r#"{ kind = "mp-hula", ranks = 4, probe_interval = "5s", failure_time = "100s", gap = "100s" }"#;
    for seed in 1..=6 {
        let mut config = trial(&[("switch.balancer", balancer)], seed, 4);
        config.traffic = traffic(vec![flow(0, 2, 1 << 40, Time::ZERO)]);
        let (kept, _) = run_in(1, config);
        let rate = goodput(&kept, 0, 2, 4);
        assert!(rate > 175.0, "seed {seed}: {rate}");
    }
}

#[test]
fn buffers_that_hold_less_than_the_paths_are_warned_of() {
    let text = |extra: &str| {
        format!(
            r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 2
host_link = {{ rate = "40Gbps", delay = "1us" }}
fabric_link = {{ rate = "10Gbps", delay = "1ms" }}
[transport]
kind = "mptcp"
{extra}
[[workload]]
kind = "permutation"
size = "1KB"
"#
        )
    };
    let warnings = |extra: &str| load(&text(extra), &[]).unwrap_or_else(|error| panic!("{error}")).warnings;
    let of = |extra: &str| warnings(extra).into_iter().find(|w| w.contains("_buffer"));
    // Four paths of 10 Gb/s and 4 ms hold 20 MB; 4 MiB in that time are 8.4 Gb/s.
    let message = of("").expect("a warning");
    assert!(
        message.contains("transport.send_buffer: 4MiB") && message.contains("at most 8.4Gbps"),
        "{message}"
    );
    let message = of("send_buffer = \"60MB\"").expect("a warning");
    assert!(message.contains("transport.receive_buffer: 6MiB"), "{message}");
    assert_eq!(of("send_buffer = \"60MB\"\nreceive_buffer = \"60MB\""), None);
    assert_eq!(of("subflows = 1\nsend_buffer = \"6MB\"\nreceive_buffer = \"6MB\""), None);
}

#[test]
fn short_flows_have_one_subflow_where_joins_wait_for_data_to_be_acknowledged() {
    let used = |join: &str| {
        let join = format!("\"{join}\"");
        let mut config = four_paths(&[("transport.join", &join)], vec![flow(0, 4, 60_000, Time::ZERO)]);
        config.measure.subflows = true;
        let (kept, _) = run(config);
        let of = |metric| kept.samples.iter().find(|s| s.metric == metric).expect("a row").value;
        assert_eq!(
            (0..4)
                .map(|n| of(["subflow0_bytes", "subflow1_bytes", "subflow2_bytes", "subflow3_bytes"][n]))
                .sum::<f64>(),
            60_000.0
        );
        of("subflows_used")
    };
    assert_eq!((used("confirmed"), used("at-once")), (1.0, 4.0));
}

/// A probe in a data class once counted as marked if the packet before it in its place had been.
#[test]
fn marks_are_counted_for_marked_packets_only_however_many_regions_there_are() {
    let text = r#"
[topology]
kind = "leaf-spine"
[switch]
balancer = { kind = "mp-hula", probe_class = 1, probe_interval = "20us", gap = "157ps" }
[transport]
kind = "mptcp"
[[workload]]
kind = "flows"
flows = [{ src = 0, dst = 40, size = "20KB" }]
"#;
    let scenario = load(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let outcome = |regions| format!("{:?}", run_in(regions, scenario.config().expect("a configuration")).1);
    let whole = outcome(1);
    assert!(whole.contains("balancer_header_bytes"));
    for regions in [2, 4] {
        assert_eq!(outcome(regions), whole, "{regions} regions");
    }
}
