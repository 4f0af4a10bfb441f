//! Scenarios at the edge of what can be simulated: they end, with a result or with the reason.

use std::path::Path;

use crate::common::Kept;
use weftline_sim::congestion::{Ack, CongestionController, Control, ExternalController, Needs, Window};
use weftline_sim::measure::{Ending, Outcome};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::Time;
use weftline_sim::{Execution, RunError, Simulation};

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 3\n[transport]\nkind = \"rdma\"\n";

fn run(workload: &str) -> (Result<Outcome, RunError>, Kept) {
    let text = format!("{STAR}{workload}");
    let loaded = Scenario::load(&text, "edge.toml", Path::new("."), &[], None, Hooks::default());
    let config = loaded.and_then(|scenario| scenario.config()).unwrap_or_else(|error| panic!("{error}"));
    let mut kept = Kept::default();
    let result = weftline_sim::run(config, &mut kept, &mut |_| true);
    (result, kept)
}

#[test]
fn a_run_that_outlives_the_clock_fails_and_keeps_what_it_has() {
    // 46 days between two operations: the third begins after 92 days, the fourth after 138.
    let (result, kept) = run(
        "[[workload]]\nkind = \"collective\"\nbytes = \"3KB\"\ncompute = \"4000000s\"\nrepeat = 5\n[run]\nstall = \
         \"4000000s\"\ngrid = \"1000s\"\n",
    );
    let error = result.expect_err("beyond the clock").to_string();
    assert!(error.starts_with("simulated time exceeded 107 days"), "{error}");
    assert!(error.contains("a rank of workload.0 computes for more than 18000000s in all"), "{error}");
    assert!(!error.contains("link"), "{error}");
    assert_eq!(kept.flows.iter().filter(|flow| flow.finish.is_some()).count(), 3 * 12);
}

#[test]
fn time_without_flows_costs_no_events() {
    let (result, _) = run("[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\nstart = \"3999999s\"\n");
    let outcome = result.expect("a run");
    assert_eq!((outcome.ending, outcome.flows_done), (Ending::Done, 3));
    assert!(outcome.events < 1000, "{}", outcome.events);
}

#[test]
fn flows_that_nobody_can_mean_are_refused() {
    let problem = |workload: &str| {
        let text = format!("{STAR}[[workload]]\n{workload}\n");
        let loaded = Scenario::load(&text, "edge.toml", Path::new("."), &[], None, Hooks::default());
        loaded.err().expect("refused").to_string()
    };
    for (workload, expected) in [
        (
            "kind = \"incast\"\nsize = \"2TB\"",
            "edge.toml:8: workload.0.size: 2000GB is above the limit of 1 TB",
        ),
        ("kind = \"collective\"\nbytes = \"2TB\"", "edge.toml:8: workload.0.bytes: 2000GB is above"),
        ("kind = \"closed-loop\"\nrequest_size = \"2TB\"", "edge.toml:8: workload.0.request_size: 2000GB is"),
        (
            "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"2TB\" }]",
            "edge.toml:8: workload.0.flows: flow 0: size: 2000000000000 is above the limit of 1 TB",
        ),
    ] {
        assert!(problem(workload).starts_with(expected), "{}", problem(workload));
    }
}

#[test]
fn the_ideal_time_of_a_flow_that_takes_for_ever_does_not_wrap() {
    let (result, kept) = run(
        "[[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1TB\" }]\n[run]\nuntil = \"1ms\"\n\
         [topology.host_link]\nrate = \"1bps\"\n",
    );
    assert_eq!(result.expect("a run").flows_done, 0);
    assert_eq!(kept.flows[0].ideal, weftline_sim::units::Time::MAX);
}

#[test]
fn a_scheme_from_outside_that_panics_ends_the_run_with_its_name_and_keeps_what_was_recorded() {
    struct Panics;
    impl CongestionController for Panics {
        fn on_ack(&mut self, ack: &Ack, _: &mut Control) {
            assert!(ack.now < Time::from_us(200), "too late");
        }
    }
    let outside = [ExternalController {
        name: "panics".into(),
        needs: Needs::window(Window::FollowsRate),
        parameters: None,
        one_thread: false,
        stated: None,
        make: Some(std::sync::Arc::new(|_, _| Box::new(Panics))),
    }];
    let text = "[topology]\nkind = \"leaf-spine\"\n[transport]\ncontroller = { kind = \"python:panics\" }\n\
                [[workload]]\nkind = \"poisson\"\nsizes = \"google-rpc\"\nload = 0.3\nduration = \"400us\"\n";
    let hooks = Hooks { controllers: &outside, ..Hooks::default() };
    let mut flows = Vec::new();
    for regions in [1, 2, 3] {
        let scenario = Scenario::load(text, "outside.toml", Path::new("."), &[], None, hooks).ok().unwrap();
        let execution = Execution { threads: regions, regions: Some(regions), windows: None };
        let network = Simulation::new(scenario.config().unwrap(), execution).unwrap();
        assert_eq!(network.plan().regions, regions);
        let mut kept = Kept::default();
        let error = network.run(&mut kept, &mut |_| true).expect_err("it panics");
        assert!(matches!(error, RunError::Scheme(_)), "{error}");
        assert!(error.to_string().starts_with("controller \"panics\" panicked: too late"), "{error}");
        flows.push(kept.flows.len());
    }
    assert!(flows.iter().all(|&count| count > 10), "{flows:?}");
}

#[test]
fn a_run_on_links_that_are_too_slow_says_so() {
    let text = "[topology]\nkind = \"star\"\nhosts = 2\nhost_link = { rate = \"1bps\" }\n[transport]\nkind = \"rdma\"\n\
                [[workload]]\nkind = \"bulk\"\nsize = \"2MB\"\n";
    let loaded = Scenario::load(text, "edge.toml", Path::new("."), &[], None, Hooks::default());
    let config = loaded.and_then(|scenario| scenario.config()).unwrap_or_else(|error| panic!("{error}"));
    let result = weftline_sim::run(config, &mut Kept::default(), &mut |_| true);
    let error = result.expect_err("beyond the clock").to_string();
    let reason = "the slowest link (host0 - s0) has a rate of 1bps, at which the 2MB of all flows take about 16000000s";
    assert!(error.starts_with("simulated time exceeded 107 days, the limit of the clock: "), "{error}");
    assert!(error.contains(reason) && !error.contains("think"), "{error}");
}
