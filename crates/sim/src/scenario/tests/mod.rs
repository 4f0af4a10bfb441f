//! Whole scenarios. Mistakes are in `wrong`, warnings in `warned`, laws of the reader in `drawn`.

mod codes;
mod drawn;
mod files;
mod groups;
mod hosts;
mod marks;
mod outages;
mod queues;
mod scale;
mod sets;
mod suited;
mod warned;
mod windows;
mod wrong;

use super::*;
use crate::balance::{BalancerConfig, spray::SprayParameters};
use crate::config::{Change, Failure};
use crate::congestion::{CongestionController, ControllerConfig, Needs, Window};
use crate::topology::NodeKind;
use crate::transport::rdma::{RdmaConfig, Recovery};
use crate::transport::{TransportConfig, TransportParameters};
use crate::units::Bytes;
use crate::workload::FlowSource;

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

fn rdma_of(transport: &TransportConfig) -> &RdmaConfig {
    RdmaConfig::of(transport).unwrap()
}

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
    assert_eq!(config.rules, Rules::hpcc_ns3());
    assert_eq!(config.telemetry, TelemetryConfig::Int { max_hops: 5, path_id: false, all: false });
    assert!(!config.switch.pfc.headroom_extra);
    let rdma = rdma_of(&config.transports[0]);
    assert_eq!((rdma.mtu, rdma.header, rdma.ack_header, rdma.min_ack, rdma.class), (1000, 48, 46, 60, 3));
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
fn the_resolved_text_of_every_kind_reads_back_to_itself() {
    let bare = "[topology]\nkind = \"leaf-spine\"\n[[workload]]\nkind = \"incast\"\n";
    let mut tried = Vec::new();
    for section in catalogue::sections() {
        let (Some(kind), false) = (section.kind, section.path == catalogue::TCP_CONTROLLER) else { continue };
        let Ok(scenario) = load_with(bare, &[(&format!("{}.kind", section.path), kind)]) else { continue };
        let again = load_with(scenario.resolved(), &[]).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(again.resolved(), scenario.resolved(), "{kind}");
        tried.push(kind);
    }
    assert!(tried.len() > 40 && tried.contains(&"clos"), "these work without further keys: {tried:?}");
}

#[test]
fn a_workload_may_have_a_transport_of_its_own() {
    let more = "[transport]\nmtu = \"1500B\"\ncontroller = { kind = \"dctcp\" }\n[[workload]]\nkind = \"incast\"\n\
                transport = { controller = { kind = \"timely\", window = true }, class = 2 }\n";
    let scenario = load(&format!("{STAR}{more}"));
    assert_eq!(scenario.transports.len(), 2);
    let own = rdma_of(&scenario.transports[1]);
    assert_eq!((own.controller.name(), own.mtu, own.class, own.ack_priority), ("timely", 1500, 2, false));
    assert_eq!(load(scenario.resolved()).transports, scenario.transports);
    let found = problems("[[workload]]\nkind = \"incast\"\ntransport = { clas = 2 }\n");
    assert!(
        found[0].starts_with("s.toml:8: workload.1.transport.clas: unknown key: did you mean \"class\"?")
    );
    assert_eq!(found.len(), 1);
}

#[test]
fn what_a_workload_inherits_and_its_own_choice_leaves_without_effect_is_left_out() {
    for (base, own, removed) in [
        (
            "controller = { kind = \"bbr3\" }\ninitial_window = 20",
            "controller = { kind = \"timely\" }",
            "initial_window",
        ),
        ("recovery = \"selective-repeat\"\nreordering = 9", "recovery = \"go-back-n\"", "reordering"),
    ] {
        let more = |own: &str| {
            format!("{STAR}[transport]\n{base}\n[[workload]]\nkind = \"incast\"\ntransport = {{ {own} }}\n")
        };
        let scenario = load(&more(own));
        assert!(!scenario.resolved().contains(&format!(", {removed} = ")), "{}", scenario.resolved());
        assert_eq!(load(scenario.resolved()).resolved(), scenario.resolved());
        let error = load_with(&more(&format!("{own}, {removed} = 3")), &[])
            .err()
            .expect("without effect")
            .to_string();
        assert!(error.contains(&format!("workload.1.transport.{removed}: has no effect")), "{error}");
    }
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
    assert_eq!(scenario.switch.balancer, BalancerConfig::Spray(SprayParameters::Random));
    let rdma = rdma_of(&scenario.transports[0]);
    assert_eq!(rdma.controller.name(), "dctcp");
    let ignored = scenario.warnings.iter().filter(|warning| warning.contains("is ignored"));
    assert_eq!(ignored.count(), 2, "{:?}", scenario.warnings);
    assert!(scenario.resolved().contains("load = 0.7"));
}

#[test]
fn marking_follows_the_controller_and_timeouts_the_base_rtt() {
    let scenario = load_with(STAR, &[("transport.controller.kind", "dctcp")]).ok().unwrap();
    let ecn = scenario.switch.ecn[0];
    assert_eq!((ecn.kmin, ecn.kmax, ecn.pmax), (Bytes(300_000), Bytes(300_000), 1.0));
    let rdma = rdma_of(&scenario.transports[0]);
    // Four times 32 MiB at 100 Gb/s.
    assert_eq!(rdma.rto, Some(Time(4 * 2_684_354_560)));
    let slow = [("switch.buffer", "4GB"), ("topology.host_link.rate", "1Gbps")];
    let slow = load_with(STAR, &slow).ok().unwrap();
    assert_eq!(
        rdma_of(&slow.transports[0]).rto,
        Some(Time::from_ms(10_000)),
        "the buffer takes longer to empty"
    );
    assert!(load_with(STAR, &[("switch.buffer", "4GiB")]).is_ok());
    let refused = load_with(STAR, &[("switch.buffer", "4294967297B")]).err().unwrap().to_string();
    assert!(refused.contains("is not a buffer: expected more than 0 and at most"), "{refused}");
    // Base RTT: 4 ms of links and two payloads of 1000 B at 100 Gb/s.
    let far = [("switch.pfc.enabled", "false"), ("topology.host_link.delay", "1ms")];
    let far = load_with(STAR, &far).ok().unwrap();
    let rdma = rdma_of(&far.transports[0]);
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
            let rdma = rdma_of(&scenario.transports[0]);
            assert_eq!(rdma.ack_priority, passes && compat, "{kind} with window = {window}, like {like}");
        }
    }
}

#[test]
fn a_seed_given_with_the_file_overrides_it() {
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
        parameters: None,
        one_thread: true,
        stated: None,
        make: Some(std::sync::Arc::new(|_, _| Box::new(Still))),
    };
    let controllers = [external];
    let hooks = Hooks { controllers: &controllers, ..Hooks::default() };
    let sets = [("transport.controller.kind".to_string(), "python:still".to_string())];
    let scenario = Scenario::load(STAR, "s.toml", Path::new("."), &sets, None, hooks).ok().unwrap();
    assert_eq!(scenario.transports[0].facts().controller.unwrap().name(), "still");
    let bare = [("transport.controller.kind".to_string(), "still".to_string())];
    let error = Scenario::load(STAR, "s.toml", Path::new("."), &bare, None, hooks).err().unwrap().to_string();
    assert!(error.ends_with("controller \"still\" is written in Python: set \"python:still\""), "{error}");
    assert_eq!(
        problems_set(&[("transport.controller.kind", "python:still")]),
        [
            "--set transport.controller.kind=python:still: controller \"still\" is written in Python; set its location: \
             --controller still=FILE.py:CLASS, still = \"FILE.py:CLASS\" below [controllers] of a sweep, or \
             controllers={\"still\": ...} in Python"
        ]
    );
}

#[test]
fn a_built_in_controller_is_found_where_one_from_outside_has_its_name() {
    let external = ExternalController {
        name: "dctcp".into(),
        needs: Needs::window(Window::None),
        parameters: None,
        one_thread: true,
        stated: None,
        make: Some(std::sync::Arc::new(|_, _| unreachable!("no run is made"))),
    };
    let controllers = [external];
    let hooks = Hooks { controllers: &controllers, ..Hooks::default() };
    for (kind, is_built_in) in [("dctcp", true), ("python:dctcp", false)] {
        let sets = [("transport.controller.kind".to_string(), kind.to_string())];
        let scenario = Scenario::load(STAR, "s.toml", Path::new("."), &sets, None, hooks).ok().unwrap();
        let found = scenario.transports[0].facts().controller.unwrap();
        assert_eq!(!matches!(found, ControllerConfig::External(_)), is_built_in, "{kind}");
    }
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
fn the_first_flows_tell_about_what_a_run_costs() {
    let loaded =
        |change: &[(&str, &str)]| load_with(EXAMPLE, change).unwrap_or_else(|error| panic!("{error}"));
    for change in [("workload.0.duration", "20ms"), ("workload.0.load", "0.8"), ("run.until", "8ms")] {
        let scenario = loaded(&[("workload.0.duration", "16ms"), change]);
        let (all, some) = (scenario.estimate(), scenario.estimate_from(1000));
        assert!(all.replay.flows > 1500, "{}", all.replay.flows);
        let off = some.seconds / all.seconds - 1.0;
        assert!(off.abs() < 0.15, "{change:?}: {some:?}, {all:?}");
    }
    let whole = loaded(&[]);
    assert_eq!(whole.estimate_from(1_000_000), whole.estimate());
}

#[test]
fn a_run_that_will_not_fit_its_limit_is_reported_before_it_starts() {
    let message = |limit: &str| {
        let sets = [("run.memory".to_string(), limit.to_string())];
        let loaded = Scenario::load(STAR, "s.toml", Path::new("."), &sets, None, Hooks::default());
        loaded.map(|scenario| scenario.check()["warnings"].to_string()).unwrap()
    };
    assert_eq!(message("1GB"), "[]");
    let warning = message("2MB");
    assert!(
        warning.contains("run.memory: the run will probably need about 38MB and exceed its limit of 2MB"),
        "{warning}"
    );
}

#[test]
fn a_workload_that_begins_after_the_end_of_the_run_is_warned_about() {
    let warned = |end: &str| {
        let sets = [("workload.0.start", "2ms"), ("run.until", end)];
        load_with(STAR, &sets).ok().unwrap().warnings.join("")
    };
    assert!(warned("2ms").contains("workload.0.start: none of its flows start, as the run ends at 2ms"));
    assert_eq!(warned("3ms"), "");
}

#[test]
fn a_workload_with_a_load_that_brings_no_flow_is_warned_about() {
    let warned = |duration: &str, more: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 4\n[[workload]]\nkind = \"poisson\"\nload = 0.1\nduration = \"{duration}\"\n{more}"
        );
        load(&text).warnings
    };
    // Four hosts bring 10 Gb/s each, in flows of 1.7 MB.
    let none = |within: &str| {
        format!(
            "workload.0.duration: none of its flows start: at this load they arrive every 340us on average, 0.03 of them within \
             {within}; use a longer duration or a higher load"
        )
    };
    assert_eq!(warned("10us", ""), [none("10us")]);
    assert_eq!(warned("10ms", "[run]\nuntil = \"10us\"\n"), [none("10us")]);
    assert_eq!(warned("10ms", ""), [""; 0]);
    let later = warned("10us", "start = \"1ms\"\n[run]\nuntil = \"1ms\"\n");
    assert!(later.len() == 1 && later[0].contains("the run ends at 1ms"), "{later:?}");
}

#[test]
fn a_job_whose_messages_fill_the_machine_is_refused_with_what_it_would_need() {
    let ring = |chunk: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 32\n[[workload]]\nkind = \"collective\"\nbytes = \"640KB\"\nchunk = \"{chunk}\"\n"
        );
        load(&text)
    };
    let machine = Bytes(160_000_000);
    let bytes = ring("1B");
    let message = bytes.fits(machine).unwrap_err();
    assert!(
        message.contains("run.memory: the run would need about") && message.contains("has 160MB"),
        "{message}"
    );
    assert_eq!(ring("4KB").fits(machine), Ok(()));
    assert_eq!(bytes.fits(Bytes(10_000_000_000)), Ok(()));
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
    let names = crate::describe::names();
    for (list, name) in [("controllers", "dcqcn"), ("topologies", "hpcc-fat-tree"), ("balancers", "spray")] {
        assert!(names[list].as_array().unwrap().iter().any(|entry| entry["name"] == name), "{name}");
    }
}

#[test]
fn every_kind_of_topology_and_of_generated_traffic_loads_with_its_defaults() {
    for (kind, _) in crate::topology::KINDS.iter().filter(|(kind, _)| *kind != "file") {
        // Rails that nothing joins carry traffic among GPUs of one place.
        let hosts = if *kind == "rail-only" { "0,8,16,24" } else { "all" };
        let workload = format!("[[workload]]\nkind = \"permutation\"\nhosts = \"{hosts}\"\n");
        load(&format!("[topology]\nkind = \"{kind}\"\n{workload}"));
    }
    for (kind, _) in
        crate::workload::KINDS.iter().filter(|(kind, _)| !["flows", "trace", "job-file"].contains(kind))
    {
        // Arrivals at random times have no end of their own, nor have flows without a size.
        let duration = if ["poisson", "request-response"].contains(kind) { "100us" } else { "auto" };
        let until = if *kind == "bulk" { "100us" } else { "flows-done" };
        let sets = [("workload.0.kind", *kind), ("workload.0.duration", duration), ("run.until", until)];
        load_with(STAR, &sets).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

#[test]
fn files_are_found_next_to_the_scenario_and_kept_by_their_whole_path() {
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

/// Four leaves and two spines with two hosts on each leaf.
const FABRIC: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\n";

#[test]
fn a_failure_draws_its_links_from_the_seed_and_ends() {
    let scenario = |seed: u64, event: &str| {
        let traffic = "[[workload]]\nkind = \"permutation\"\n";
        let text = format!("seed = {seed}\n{FABRIC}{traffic}[[failures.event]]\nat = \"1ms\"\n{event}");
        load(&text)
    };
    let between_switches = |scenario: &Scenario, change: Change| match change {
        Change::LinkDown(id) | Change::LinkUp(id) => {
            let topology = &scenario.network.topology;
            let link = &topology.links[id as usize];
            [link.a, link.b].into_iter().all(|node| topology.nodes[node as usize].kind == NodeKind::Switch)
        }
        _ => false,
    };
    let mut drawn = Vec::new();
    for seed in 1..=20 {
        let found = scenario(seed, "random = 2\nlasts = \"500us\"\n");
        let events = &found.failures.events;
        assert_eq!(events.iter().map(|one| one.at.ns() / 1000).collect::<Vec<_>>(), [1000, 1000, 1500, 1500]);
        assert!(events.iter().all(|event| between_switches(&found, event.change)));
        assert_ne!(events[0].change, events[1].change, "drawn without replacement");
        let Change::LinkDown(first) = events[0].change else { panic!("{:?}", events[0]) };
        assert_eq!(events[2].change, Change::LinkUp(first), "what went down comes back");
        assert_eq!(found.failures.events, scenario(seed, "random = 2\nlasts = \"500us\"\n").failures.events);
        drawn.push(first);
    }
    drawn.sort_unstable();
    drawn.dedup();
    assert!(drawn.len() >= 5, "twenty seeds draw from eight links: {drawn:?}");
    let named = scenario(3, "random = 1\nlink = [\"spine1\", \"leaf*\"]\n");
    let Change::LinkDown(link) = named.failures.events[0].change else { panic!() };
    let topology = &named.network.topology;
    let ends = [topology.links[link as usize].a, topology.links[link as usize].b];
    assert!(ends.iter().any(|&node| topology.nodes[node as usize].name == "spine1"));
    let switch = scenario(3, "random = 1\nswitch = \"spine*\"\n");
    assert!(matches!(switch.failures.events[..], [Failure { change: Change::SwitchDown(_), .. }]));
}

#[test]
fn jobs_with_ranks_take_different_hosts_as_their_placement_says() {
    let jobs = |placement: &str| {
        let job = format!(
            "[[workload]]\nkind = \"collective\"\nbytes = \"1MB\"\nranks = 4\nplacement = \"{placement}\"\n"
        );
        let found = load(&format!("{FABRIC}{job}{job}"));
        let hosts = |source: &dyn FlowSource| {
            let mut source = source.clone_box();
            (0..4).filter_map(|_| source.next()).map(|flow| flow.src).collect::<Vec<_>>()
        };
        found.traffic.sources.iter().map(|source| hosts(&**source)).collect::<Vec<_>>()
    };
    assert_eq!(jobs("packed"), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert_eq!(jobs("strided"), [[0, 2, 4, 6], [1, 3, 5, 7]]);
    let mut all = jobs("random").concat();
    assert_ne!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
}
