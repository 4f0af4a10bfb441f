//! Whole scenarios: the one of the contract, every kind of mistake with its message, and laws of the reader.

use proptest::prelude::*;

use super::*;
use crate::config::{BalancerConfig, Change, Recovery};
use crate::congestion::{CongestionController, Needs, Window};
use crate::units::Bytes;

/// The example of the contract, without its trace file.
const EXAMPLE: &str = r#"
name = "websearch-50"
seed = 1

[topology]                        # star, dumbbell, parking-lot, leaf-spine, fat-tree, hpcc-fat-tree, file
kind = "leaf-spine"               # kind = "file" takes file = "kdl.gml"
leaves = 4
spines = 2
hosts_per_leaf = 16
host_link = { rate = "100Gbps", delay = "1us" }
fabric_link = { rate = "400Gbps", delay = "1us" }

[switch]
buffer = "32MiB"
queue = { kind = "fifo" }
ecn = { kmin = "400KB", kmax = "1600KB", pmax = 0.2 }     # also per rate
pfc = { enabled = true }
balancer = { kind = "ecmp" }

[transport]
kind = "rdma"
controller = { kind = "hpcc", eta = 0.95, max_stage = 0 }

[telemetry]
kind = "int"

[[workload]]
kind = "poisson"
sizes = "websearch"
load = 0.5
duration = "2ms"

[run]
until = "flows-done"
threads = 1

[compat]
like = "hpcc-ns3"

[measure]
queues = { ports = "leaf0.*", every = "10us" }
"#;

/// Four hosts on a switch, one line of traffic.
const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 4\n[[workload]]\nkind = \"permutation\"\n";

fn load_with(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let sets: Vec<(String, String)> = sets.iter().map(|(p, v)| (p.to_string(), v.to_string())).collect();
    Scenario::load(text, "s.toml", Path::new("."), &sets, None, Hooks::default())
}

fn load(text: &str) -> Scenario {
    load_with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The problems of STAR followed by `more`; lines of `more` count from 6.
fn problems(more: &str) -> Vec<String> {
    match load_with(&format!("{STAR}{more}"), &[]) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems.iter().map(Problem::to_string).collect(),
    }
}

fn problems_set(sets: &[(&str, &str)]) -> Vec<String> {
    match load_with(STAR, sets) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems.iter().map(Problem::to_string).collect(),
    }
}

#[test]
fn the_example_of_the_contract_loads() {
    let scenario = load(EXAMPLE);
    assert_eq!(scenario.name, "websearch-50");
    assert!(scenario.warnings.is_empty(), "{:?}", scenario.warnings);
    let config = scenario.config().unwrap();
    assert_eq!(config.topology.hosts().len(), 64);
    assert_eq!(config.compat, Compat::HpccNs3);
    assert_eq!(config.telemetry, TelemetryConfig::Int { max_hops: 5, path_id: false, all: false });
    assert!(!config.switch.pfc.headroom_extra);
    let rdma = config.transports[0].rdma().unwrap();
    assert_eq!((rdma.mtu, rdma.header, rdma.ack_header, rdma.ack_least, rdma.class), (1000, 48, 46, 60, 3));
    assert_eq!((rdma.rto, rdma.ack_priority, rdma.recovery), (None, false, Recovery::GoBackN));
    // leaf0: 16 hosts and 2 spines.
    assert_eq!(config.measure.queue_series.unwrap().what.len(), 18);
}

#[test]
fn the_resolved_text_of_the_example_reads_back_to_itself() {
    let first = load(EXAMPLE).resolved().to_string();
    let second = load(&first).resolved().to_string();
    assert_eq!(first, second);
    for line in [
        "ack_priority = false",
        "rto = \"none\"",
        "until = \"flows-done\"",
        "balancer = { kind = \"ecmp\", salt = 0 }",
    ] {
        assert!(first.contains(line), "{line} is missing:\n{first}");
    }
}

#[test]
fn a_wrong_controller_is_named_with_its_line_and_the_nearest() {
    let known = "(known: hpcc, hpcc-pint, dcqcn, timely, dctcp, none)";
    assert_eq!(
        problems("[transport]\nkind = \"rdma\"\ncontroller = { kind = \"hpc\", eta = 0.95 }\n"),
        [format!(
            "s.toml:8: transport.controller.kind: unknown controller \"hpc\": did you mean \"hpcc\"? {known}"
        )]
    );
    assert_eq!(
        problems_set(&[("transport.controller.kind", "hpc")]),
        [format!(
            "--set transport.controller.kind=hpc: unknown controller \"hpc\": did you mean \"hpcc\"? {known}"
        )]
    );
}

#[test]
fn unknown_keys_and_sections_get_the_nearest_name() {
    assert_eq!(
        problems("[transport]\nmto = \"1KB\"\n[swich]\nbuffer = \"1MB\"\n[run]\nuntill = \"1ms\"\n"),
        [
            "s.toml:7: transport.mto: unknown key: did you mean \"mtu\"? (known: kind, mtu, header, \
             ack_header, ack_least, class, ack_priority, recovery, reordering, nack_interval, rto, pacing, window, \
             base_rtt, controller)",
            "s.toml:8: swich: unknown key: did you mean \"switch\"? (known: name, seed, compat, topology, transport, \
             workload, telemetry, failures, switch, host, run, measure)",
            "s.toml:11: run.untill: unknown key: did you mean \"until\"? (known: until, grid, stall, threads, memory)",
        ]
    );
}

#[test]
fn all_problems_are_reported_in_the_order_of_their_lines() {
    let text = "seed = -1\n[topology]\nkind = \"ring\"\n[run]\nthreads = \"two\"\n";
    let error = load_with(text, &[("run.grid", "10")]).err().unwrap();
    let lines: Vec<Option<usize>> = error.problems.iter().map(Problem::line).collect();
    assert_eq!(lines, [Some(1), Some(3), Some(5), None]);
    let last = error.problems.last().unwrap().to_string();
    assert!(last.starts_with("--set run.grid=10: expected a time such as \"10us\""), "{last}");
}

#[test]
fn what_must_be_there_is_asked_for() {
    let list = |kinds: &[(&str, &str)]| kinds.iter().map(|k| k.0).collect::<Vec<_>>().join(", ");
    let topologies = list(crate::topology::KINDS);
    let text = load_with("", &[]).err().unwrap().to_string();
    assert!(
        text.contains(&format!("s.toml: topology.kind: missing: expected a topology (one of {topologies})"))
    );
    let text = load_with("[topology]\nkind = \"star\"\n", &[]).err().unwrap().to_string();
    assert!(text.starts_with("s.toml: workload: no traffic: add a [[workload]] section"), "{text}");
    let workloads = list(crate::workload::KINDS);
    assert_eq!(
        problems("[[workload]]\nload = 0.5\n"),
        [format!("s.toml:6: workload.1.kind: missing: expected a workload (one of {workloads})")]
    );
}

#[test]
fn missing_units_and_absurd_values_are_refused_with_their_reason() {
    assert_eq!(
        problems("[transport]\nmtu = 1000\nheader = \"2MB\"\nwindow = \"0B\"\nrto = \"fast\"\nclass = 9\n"),
        [
            "s.toml:7: transport.mtu: expected a size such as \"32MB\" (with its unit), found 1000",
            "s.toml:8: transport.header: 2MB is out of range: expected 0B to 1000B",
            "s.toml:9: transport.window: a window of 0 would never send: expected a size above 0B",
            "s.toml:10: transport.rto: expected a time such as \"1ms\", \"auto\" or \"none\": expected a time with its \
             unit such as \"10us\", found \"fast\"",
            "s.toml:11: transport.class: expected a whole number from 1 to 7, found 9",
        ]
    );
    assert_eq!(
        problems("[transport]\nrto = \"1ps\"\n"),
        ["s.toml:7: transport.rto: expected a time from 1us to 1000000s, found 1ps"]
    );
    let load = &problems_set(&[("workload.0.kind", "poisson"), ("workload.0.load", "1.7")])[0];
    assert!(load.starts_with("--set workload.0.load=1.7: expected a number from "), "{load}");
}

#[test]
fn keys_without_effect_are_refused() {
    assert_eq!(
        problems("[transport]\nreordering = 5\n"),
        ["s.toml:7: transport.reordering: has no effect with recovery = \"go-back-n\": set recovery = \
          \"selective-repeat\""]
    );
    let scenario =
        load_with(STAR, &[("transport.recovery", "selective-repeat"), ("transport.reordering", "5")]);
    let scenario = scenario.ok().unwrap();
    let rdma = scenario.transports[0].rdma().unwrap();
    assert_eq!(rdma.recovery, Recovery::SelectiveRepeat { reordering: 5 });
}

#[test]
fn hpcc_without_int_is_a_contradiction() {
    assert_eq!(
        problems("[telemetry]\nkind = \"none\"\n"),
        [
            "s.toml:7: telemetry.kind: controller \"hpcc\" needs telemetry of kind \"int\", not \"none\": set kind = \
          \"int\" or choose another controller"
        ]
    );
    let scenario = load_with(STAR, &[("transport.controller.kind", "dctcp")]).ok().unwrap();
    assert_eq!(scenario.telemetry, TelemetryConfig::None);
}

#[test]
fn ports_that_do_not_exist_are_named_with_the_nearest() {
    let found = problems("[measure]\nqueues = { ports = \"hots0.*\" }\ngoodput = { by = \"flow\" }\n");
    assert!(found[0].starts_with("s.toml:7: measure.queues.ports: "), "{found:?}");
    assert!(found[0].contains("host0"), "{found:?}");
    assert_eq!(
        found[1],
        "s.toml:8: measure.goodput.flows: missing: expected numbers of flows such as [0, 1]"
    );
    assert_eq!(
        problems("[measure]\nutilisation = { every = \"1ns\" }\n"),
        ["s.toml:7: measure.utilisation.every: 1ns is too short: expected at least 10ns"]
    );
}

#[test]
fn ports_of_a_queue_of_their_own_are_switch_ports_that_exist() {
    let found = problems(
        "[[switch.port]]\nmatch = \"swich0.*\"\n[[switch.port]]\nqueue = { kind = \"fifo\", packets = 9 }\n\
         [[switch.port]]\nmatch = \"host*\"\nqueue = { kind = \"fif\", paquets = 3 }\n",
    );
    assert!(found[0].starts_with("s.toml:7: switch.port.0.match: unknown node \"swich0\""), "{found:?}");
    assert!(found[1].starts_with("s.toml:8: switch.port.1.match: missing: expected a pattern"), "{found:?}");
    assert!(
        found[2].starts_with("s.toml:11: switch.port.2.match: \"host*\" fits only ports of hosts"),
        "{found:?}"
    );
    assert!(found[3].contains("unknown queue \"fif\": did you mean \"fifo\"?"), "{found:?}");
    assert_eq!(found.len(), 4);
}

#[test]
fn cebinae_refuses_shares_outside_their_range_and_rounds_that_control_cannot_meet() {
    let found = problems(
        "[switch.queue]\nkind = \"cebinae\"\ntax = 0\nport_slack = 1.5\nflow_slack = -0.1\nround = \"90us\"\n",
    );
    assert!(found[0].starts_with("s.toml:8: switch.queue.tax: 0 is not in (0, 1]"), "{found:?}");
    let range = "expected a number from 0 to 1, found";
    assert!(found[1].starts_with(&format!("s.toml:9: switch.queue.port_slack: {range}")), "{found:?}");
    assert!(found[2].starts_with(&format!("s.toml:10: switch.queue.flow_slack: {range}")), "{found:?}");
    assert!(
        found[3].starts_with("s.toml:11: switch.queue.round: 90us is shorter than control needs"),
        "{found:?}"
    );
    assert_eq!(found.len(), 4);
}

#[test]
fn a_buffer_that_cannot_drain_in_a_round_is_warned_about() {
    let queue = |round| {
        format!(
            "{STAR}[switch]\npfc = {{ enabled = false }}\nqueue = {{ kind = \"cebinae\", packets = 9000, round = \"{round}\" }}\n"
        )
    };
    assert_eq!(load(&queue("2ms")).warnings, [""; 0]);
    let warnings = load(&queue("1ms")).warnings;
    assert!(warnings[0].contains("cannot drain in a round of 1ms: it takes 1.08ms"), "{warnings:?}");
    assert_eq!(load(&queue("auto")).warnings, [""; 0]);
}

#[test]
fn failures_name_links_and_switches_that_exist() {
    let event = |text: &str| problems(&format!("[[failures.event]]\n{text}\n"));
    let star = load(STAR);
    let switch = star.network.topology.nodes[4].name.clone();
    assert_eq!(
        event(&format!("at = \"1ms\"\nlink = [\"host0\", \"host1\"]\nswitch = \"{switch}\"")),
        ["s.toml:6: failures.event.0: expected either link = [\"leaf0\", \"spine1\"] or switch = \"spine1\""]
    );
    assert_eq!(
        event("at = \"1ms\"\nlink = [\"host0\", \"host1\"]"),
        ["s.toml:8: failures.event.0.link: there is no link between host0 and host1"]
    );
    assert_eq!(
        event("at = \"1ms\"\nchange = \"rate\"\nlink = [\"host0\", \"host1\"]")[0],
        "s.toml:6: failures.event.0.rate: missing: change = \"rate\" needs the new rate"
    );
    assert_eq!(
        event("at = \"1ms\"\nswitch = \"host0\""),
        ["s.toml:8: failures.event.0.switch: host0 is a host: expected the name of a switch"]
    );
    assert_eq!(
        event("switch = \"host0\""),
        ["s.toml:6: failures.event.0.at: missing: expected a time such as \"1ms\""]
    );
}

#[test]
fn a_degraded_rate_gets_its_marking_thresholds() {
    let switch = load(STAR).network.topology.nodes[4].name.clone();
    let more = format!(
        "[[failures.event]]\nat = \"2ms\"\nlink = [\"host1\", \"{switch}\"]\nchange = \"rate\"\nrate = \"25Gbps\"\n\
         [[failures.event]]\nat = \"1ms\"\nlink = [\"host0\", \"{switch}\"]\n"
    );
    let scenario = load(&format!("{STAR}{more}"));
    let rates: Vec<Rate> = scenario.switch.ecn.iter().map(|t| t.rate).collect();
    assert_eq!(rates, [Rate::from_gbps(25), Rate::from_gbps(100)]);
    assert_eq!(scenario.switch.ecn[0].kmin, Bytes(100_000));
    assert_eq!(scenario.failures.events[0].change, Change::LinkDown(0));
    assert_eq!(scenario.failures.events[1].change, Change::LinkRate(1, Rate::from_gbps(25)));
}

#[test]
fn headroom_that_does_not_fit_the_buffer_is_refused() {
    let found = problems("[switch]\nbuffer = \"100KB\"\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("s.toml:7: switch.buffer: the ports of "), "{found:?}");
    assert!(found[0].ends_with("set a larger buffer, or pfc = { enabled = false }"), "{found:?}");
}

#[test]
fn an_override_that_fits_no_link_is_refused() {
    let found = problems("[[topology.override]]\nbetween = [\"host0\", \"spine*\"]\nrate = \"10Gbps\"\n");
    assert!(found[0].starts_with("s.toml:6: topology.override.0: "), "{found:?}");
    assert_eq!(
        problems("[[topology.override]]\nbetween = [\"host0\"]\n"),
        [
            "s.toml:7: topology.override.0.between: expected two names, such as [\"leaf0\", \"spine*\"], found \
          [\"host0\"]"
        ]
    );
}

#[test]
fn a_workload_may_have_a_transport_of_its_own() {
    let more = "[transport]\nmtu = \"1500B\"\ncontroller = { kind = \"dctcp\" }\n[[workload]]\nkind = \"incast\"\n\
                transport = { controller = { kind = \"timely\", window = true }, class = 2 }\n";
    let scenario = load(&format!("{STAR}{more}"));
    assert_eq!(scenario.transports.len(), 2);
    let own = scenario.transports[1].rdma().unwrap();
    assert_eq!((own.controller.name(), own.mtu, own.class, own.ack_priority), ("timely", 1500, 2, false));
    assert_eq!(load(scenario.resolved()).transports, scenario.transports);
    let found = problems("[[workload]]\nkind = \"incast\"\ntransport = { clas = 2 }\n");
    assert!(
        found[0].starts_with("s.toml:8: workload.1.transport.clas: unknown key: did you mean \"class\"?")
    );
    assert_eq!(found.len(), 1);
}

#[test]
fn set_changes_the_scheme_and_leaves_the_old_ones_keys_out() {
    let scenario = load_with(
        EXAMPLE,
        &[
            ("transport.controller.kind", "dctcp"),
            ("telemetry.kind", "none"),
            ("workload.0.load", "0.7"),
            ("switch.balancer.kind", "spray"),
        ],
    );
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.switch.balancer, BalancerConfig::Spray);
    let rdma = scenario.transports[0].rdma().unwrap();
    assert_eq!(rdma.controller.name(), "dctcp");
    assert_eq!(scenario.warnings.len(), 2, "{:?}", scenario.warnings);
    assert!(scenario.resolved().contains("load = 0.7"));
}

#[test]
fn marking_follows_the_controller_and_timeouts_the_base_rtt() {
    let scenario = load_with(STAR, &[("transport.controller.kind", "dctcp")]).ok().unwrap();
    let ecn = scenario.switch.ecn[0];
    assert_eq!((ecn.kmin, ecn.kmax, ecn.pmax), (Bytes(300_000), Bytes(300_000), 1.0));
    let rdma = scenario.transports[0].rdma().unwrap();
    // Four times 32 MiB at 100 Gb/s.
    assert_eq!(rdma.rto, Some(Time(4 * 2_684_354_560)));
    let far =
        load_with(STAR, &[("switch.buffer", "60GB"), ("topology.host_link.delay", "1ms")]).ok().unwrap();
    let rdma = far.transports[0].rdma().unwrap();
    // Base RTT: 4 ms of links and two payloads of 1000 B at 100 Gb/s.
    assert_eq!(rdma.rto, Some(Time::from_ms(10_000)), "the 60 GB buffer takes longer to empty");
    let far = [("switch.pfc.enabled", "false"), ("topology.host_link.delay", "1ms")];
    let far = load_with(STAR, &far).ok().unwrap();
    let rdma = far.transports[0].rdma().unwrap();
    assert_eq!(rdma.rto, Some(Time(10 * (4_000_000_000 + 160_000))));
}

#[test]
fn acknowledgements_pass_pauses_where_the_authors_let_them() {
    for (kind, window, passes) in [
        ("dcqcn", "false", true),
        ("dcqcn", "true", false),
        ("timely", "true", true),
        ("hpcc", "true", false),
    ] {
        for (like, compat) in [("none", false), ("hpcc-ns3", true)] {
            let sets = [
                ("transport.controller.kind", kind),
                ("transport.controller.window", window),
                ("compat.like", like),
            ];
            let scenario = load_with(STAR, &sets).unwrap_or_else(|error| panic!("{kind}: {error}"));
            let rdma = scenario.transports[0].rdma().unwrap();
            assert_eq!(rdma.ack_priority, passes && compat, "{kind} with window = {window}, like {like}");
        }
    }
}

#[test]
fn the_seed_given_beside_the_file_holds() {
    let hooks = Hooks::default();
    let load = |seed| Scenario::load(STAR, "s.toml", Path::new("."), &[], seed, hooks);
    assert_eq!(load(Some(7)).ok().unwrap().seed, 7);
    assert!(load(Some(7)).ok().unwrap().resolved().contains("seed = 7"));
    assert_eq!(load(None).ok().unwrap().seed, 1);
    let error = load(Some(u64::MAX)).err().unwrap().to_string();
    assert!(error.starts_with("--set seed=18446744073709551615: expected a whole number from 0"), "{error}");
}

#[test]
fn a_controller_from_outside_is_found_by_name() {
    struct Still;
    impl CongestionController for Still {
        fn on_ack(&mut self, _: &crate::congestion::Ack, _: &mut crate::congestion::Control) {}
    }
    let external = ExternalController {
        name: "still".into(),
        needs: Needs::window(Window::None),
        make: std::sync::Arc::new(|_| Box::new(Still)),
    };
    let controllers = [external];
    let hooks = Hooks { read_parquet: None, controllers: &controllers };
    let sets = [("transport.controller.kind".to_string(), "python:still".to_string())];
    let scenario = Scenario::load(STAR, "s.toml", Path::new("."), &sets, None, hooks).ok().unwrap();
    assert_eq!(scenario.transports[0].controller().unwrap().name(), "still");
    assert_eq!(
        problems_set(&[("transport.controller.kind", "python:still")]),
        [
            "--set transport.controller.kind=python:still: controller \"still\" is written in Python: run this scenario \
          with weftline.run(..., controllers={\"still\": ...})"
        ]
    );
}

#[test]
fn an_estimate_grows_with_the_network_the_load_and_the_length() {
    let estimate = |change: &[(&str, &str)]| {
        let sets: Vec<(String, String)> =
            change.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
        let loaded = Scenario::load(EXAMPLE, "s.toml", Path::new("."), &sets, None, Hooks::default());
        loaded.map(|scenario| scenario.estimate()).unwrap()
    };
    let first = estimate(&[]);
    let [longer, busier, larger] =
        [("workload.0.duration", "4ms"), ("workload.0.load", "0.9"), ("topology.leaves", "8")]
            .map(|change| estimate(&[change]));
    assert!(longer.seconds > 1.5 * first.seconds && larger.seconds > 1.5 * first.seconds);
    assert!(busier.replay.packets_in_flight > first.replay.packets_in_flight);
    assert!(larger.memory.network > first.memory.network && larger.memory.peak() > first.memory.peak());
    let two = estimate(&[("run.threads", "2")]);
    assert!(two.seconds == first.seconds && two.seconds_on_threads < 0.7 * first.seconds);
}

#[test]
fn a_run_that_will_not_fit_its_limit_is_told_before_it_starts() {
    let said = |limit: &str| {
        let sets = [("run.memory".to_string(), limit.to_string())];
        let loaded = Scenario::load(STAR, "s.toml", Path::new("."), &sets, None, Hooks::default());
        loaded.map(|scenario| scenario.check()["warnings"].to_string()).unwrap()
    };
    assert_eq!(said("1GB"), "[]");
    let warning = said("2MB");
    assert!(
        warning.contains("run.memory: the run will probably hold about 24MB, its limit is 2MB"),
        "{warning}"
    );
}

#[test]
fn check_tells_what_follows_from_the_scenario() {
    let facts = load(STAR).check();
    assert_eq!(facts["topology"]["hosts"], 4);
    assert_eq!(facts["topology"]["diameter_hops"], 2);
    assert_eq!(facts["transports"][0]["base_rtt_ns"], 4160.0);
    assert_eq!(facts["transports"][0]["window_bytes"], 52_000);
    assert_eq!(facts["transports"][0]["data_packet_bytes"], 1090);
    assert_eq!(facts["ecn"][0]["kmin_bytes"], 400_000);
    assert_eq!(facts["traffic"]["flows"], 4);
    let facts = load(EXAMPLE).check();
    assert_eq!(facts["topology"]["oversubscription"], 2.0);
    assert_eq!(facts["pfc"]["headroom"][0]["headroom_bytes"], 37_500);
    assert_eq!(facts["pfc"]["headroom"][1]["headroom_bytes"], 150_000);
    let routes = load(EXAMPLE).network.routes.memory_bytes();
    assert_eq!(facts["estimate"]["memory"]["routes_bytes"], 2 * routes);
    assert_eq!(facts["run"]["memory_limit_bytes"], serde_json::Value::Null);
}

#[test]
fn names_lists_every_kind() {
    let names = names();
    for (list, name) in [("controllers", "dcqcn"), ("topologies", "hpcc-fat-tree"), ("balancers", "spray")] {
        assert!(names[list].as_array().unwrap().iter().any(|entry| entry["name"] == name), "{name}");
    }
}

/// Lines that a scenario may or may not have; most combinations are wrong somewhere.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("[switch]".to_string()),
        Just("[transport]".to_string()),
        Just("[[workload]]".to_string()),
        Just("[measure]".to_string()),
        Just("[[failures.event]]".to_string()),
        Just("kind = \"poisson\"".to_string()),
        Just("queues = { ports = [\"*\", 3] }".to_string()),
        Just("at = \"1ms\"".to_string()),
        Just("link = [\"host0\"]".to_string()),
        Just("transport = { mtu = \"9KB\" }".to_string()),
        ("[a-z_]{1,8}", "[0-9]{0,4}[a-zA-Z]{0,3}").prop_map(|(key, value)| format!("{key} = \"{value}\"")),
        "[a-z.]{1,12} = [0-9{\\[\"]{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = load_with(&text, &[]);
    }

    #[test]
    fn arbitrary_sections_and_sets_never_panic(
        lines in prop::collection::vec(line(), 0..12),
        path in "[a-z0-9.]{0,20}|topology.kind|workload.0.load|switch.ecn",
        value in ".{0,10}",
    ) {
        let _ = load_with(&format!("{STAR}{}", lines.join("\n")), &[(&path, &value)]);
    }

    #[test]
    fn what_is_resolved_resolves_to_itself(
        hosts in 2..9u32,
        seed in 0..=i64::MAX as u64,
        eta in 0.5..1.0f64,
        delay_ns in 1..100_000u64,
        class in 1..8u8,
        kind in prop::sample::select(vec!["hpcc", "dcqcn", "timely", "dctcp", "none"]),
        recovery in prop::sample::select(vec!["go-back-n", "selective-repeat"]),
        workload in prop::sample::select(vec!["permutation", "all-to-all", "incast", "poisson"]),
        compat in prop::sample::select(vec!["none", "hpcc-ns3"]),
        marking in any::<bool>(),
    ) {
        let eta = if kind == "hpcc" { format!(", eta = {eta:?}") } else { String::new() };
        let text = format!(
            "seed = {seed}\n[topology]\nkind = \"star\"\nhosts = {hosts}\nhost_link.delay = \"{delay_ns}ns\"\n\
             [switch]\nbuffer = \"4GiB\"\necn = {{ enabled = {marking} }}\n\
             [transport]\ncontroller = {{ kind = \"{kind}\"{eta} }}\nclass = {class}\nrecovery = \"{recovery}\"\n\
             [compat]\nlike = \"{compat}\"\n[[workload]]\nkind = \"{workload}\"\nduration = \"10us\"\n\
             [measure]\nutilisation = {{}}\npauses = true\n"
        );
        let first = load_with(&text, &[]).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let second = load_with(first.resolved(), &[]).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(first.resolved(), second.resolved());
        prop_assert_eq!(&first.switch, &second.switch);
        prop_assert_eq!(&first.transports, &second.transports);
        prop_assert_eq!(first.telemetry, second.telemetry);
        prop_assert_eq!(first.until, second.until);
    }
}

#[test]
fn links_that_nobody_can_mean_are_refused() {
    assert_eq!(
        problems_set(&[("topology.host_link.rate", "9Tbps")]),
        ["s.toml:1: topology: the link from host0 to s0 has 9000Gbps: expected at most 4000Gbps"]
    );
    assert_eq!(
        problems_set(&[("topology.host_link.delay", "11s")]),
        ["s.toml:1: topology: the link from host0 to s0 has a delay of 11s: expected at most 10s"]
    );
}

#[test]
fn every_kind_of_topology_and_of_generated_traffic_loads_with_its_defaults() {
    for (kind, _) in crate::topology::KINDS.iter().filter(|(kind, _)| *kind != "file") {
        load(&format!("[topology]\nkind = \"{kind}\"\n[[workload]]\nkind = \"permutation\"\n"));
    }
    for (kind, _) in crate::workload::KINDS.iter().filter(|(kind, _)| !["flows", "trace"].contains(kind)) {
        // Arrivals at random times have no end of their own.
        let duration = if ["poisson", "request-response"].contains(kind) { "100us" } else { "auto" };
        load_with(STAR, &[("workload.0.kind", kind), ("workload.0.duration", duration)])
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

#[test]
fn files_are_found_beside_the_scenario_and_kept_by_their_whole_path() {
    let folder = std::env::temp_dir().join(format!("weftline-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("net.txt"), "3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 1000ns 0\n").unwrap();
    std::fs::write(folder.join("flows.csv"), "src,dst,size_bytes,start_ns\n0,1,1000,0\n1,0,5000,10\n")
        .unwrap();
    let text = "[topology]\nkind = \"file\"\nfile = \"net.txt\"\nformat = \"hpcc\"\n[[workload]]\nkind = \"trace\"\n\
                file = \"flows.csv\"\n";
    let load = |text: &str, base: &Path| Scenario::load(text, "s.toml", base, &[], None, Hooks::default());
    let first = load(text, &folder).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(first.traffic.size_up().flows, 2);
    let again = load(first.resolved(), Path::new("/")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.resolved(), first.resolved());
    std::fs::write(folder.join("flows.csv"), "src,dst,size_bytes,start_ns\n0,7,1000,0\n").unwrap();
    let error = load(text, &folder).err().unwrap().to_string();
    assert!(error.starts_with("s.toml:7: workload.0.file: "), "{error}");
    assert!(error.contains("unknown host 7"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
