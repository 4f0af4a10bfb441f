//! `run.memo`: steps that repeat have the same bits as steps that were simulated, and what may not repeat is
//! refused by its key.

use crate::common::*;
use weftline_sim::measure::{Ending, Memoised, Outcome};
use weftline_sim::{Execution, Simulation};

const STAR: &str =
    "[topology]\nkind = \"star\"\nhosts = 12\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }";
const LEAVES: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4";
const RAIL: &str = "[topology]\nkind = \"rail\"\nnodes = 4\ngpus = 4\nspines = 2";

const NEVER: &str = "no two steps began in the same state, with nothing in flight";

fn text(topology: &str, controller: &str, workload: &str) -> String {
    format!(
        "{topology}\n[transport]\ncontroller = {{ kind = \"{controller}\" }}\n[[workload]]\nkind = \"collective\"\n\
         connections = \"fresh\"\ncompute = \"60us\"\n{workload}\n"
    )
}

fn of(text: &str, memo: bool, threads: usize) -> (Kept, Outcome) {
    let sets: &[(&str, &str)] = if memo { &[("run.memo", "true")] } else { &[] };
    let config = load(text, sets).expect("a scenario").config().expect("a configuration");
    let execution = Execution { threads, regions: Some(threads), ..Execution::default() };
    let mut kept = Kept::default();
    let run = Simulation::new(config, execution).expect("a network");
    let outcome = run.run(&mut kept, &mut |_| true).expect("a run");
    assert_eq!(outcome.ending, Ending::Done);
    (kept, outcome)
}

/// The rows as they come, and all but the number of events.
fn repeats(text: &str) -> Memoised {
    let (rows, outcome) = of(text, false, 1);
    let mut reports = Vec::new();
    for threads in [1, 2, 4] {
        let (others, mut other) = of(text, true, threads);
        assert_eq!(rows.flows, others.flows, "{text}");
        reports.extend(other.memo.take());
        other.events = outcome.events;
        assert_eq!(outcome, other, "{text}");
    }
    assert!(reports.windows(2).all(|pair| pair[0] == pair[1]), "{reports:?}");
    reports.remove(0)
}

#[test]
fn a_ring_on_a_star_is_simulated_once() {
    let workload = "operation = \"all-reduce\"\nbytes = \"600KB\"\nrepeat = 40";
    for controller in ["none", "dcqcn", "timely"] {
        let found = repeats(&text(STAR, controller, workload));
        assert_eq!(found, Memoised { simulated: 1, repeated: 39, why_not: None }, "{controller}");
    }
    let unrecorded = format!("{workload}\nmessages = false");
    assert_eq!(repeats(&text(STAR, "none", &unrecorded)).repeated, 39);
}

#[test]
fn all_that_repeats_has_the_same_bits_on_any_number_of_threads() {
    for topology in [STAR, LEAVES, RAIL] {
        for workload in [
            "operation = \"all-reduce\"\nbytes = \"1MB\"\nchannels = 2\nrepeat = 9",
            "operation = \"all-reduce\"\nalgorithm = \"double-tree\"\nchunk = \"20KB\"\nbytes = \"400KB\"\nrepeat = 7",
            "operation = \"all-reduce\"\nalgorithm = \"halving-doubling\"\nranks = 11\nbytes = \"400KB\"\nrepeat = 8",
            "operation = \"all-to-all\"\nbytes = \"160KB\"\nrepeat = 6",
            "operation = \"all-to-all\"\nalgorithm = \"pairwise\"\nbytes = \"160KB\"\nrepeat = 6",
            "operation = \"barrier\"\nrepeat = 9",
            "operation = \"all-reduce\"\nalgorithm = \"hierarchical\"\ndomain = 4\nscale_up_rate = \"900Gbps\"\n\
             bytes = \"1600KB\"\nrepeat = 12\nmessages = false",
        ] {
            let found = repeats(&text(topology, "dcqcn", workload));
            println!("{topology} {workload}: {found:?}");
            assert_eq!(
                found.simulated + found.repeated,
                repeat_of(workload),
                "{topology} {workload}: {found:?}"
            );
        }
    }
}

fn repeat_of(workload: &str) -> u32 {
    let line = workload.lines().find_map(|line| line.strip_prefix("repeat = "));
    line.and_then(|number| number.parse().ok()).expect("a number of repeats")
}

#[test]
fn steps_with_random_marks_and_steps_that_overlap_are_not_repeated() {
    // Two children at once send to their parent: ECN's ramp draws, so no state comes back.
    let tree = "operation = \"all-reduce\"\nalgorithm = \"tree\"\nbytes = \"4MB\"\nrepeat = 3";
    let crowded = text(STAR, "dcqcn", tree).replace("60us", "3ms");
    let (_, outcome) = of(&crowded, true, 1);
    assert_eq!(outcome.memo.as_ref().and_then(|memo| memo.why_not.as_deref()), Some(NEVER));
    assert!(sum_of(&outcome, |port| port.ecn_marks) > 0);
    assert_eq!(repeats(&crowded).repeated, 0);
    // A leaf's own ring is ahead of the ranks that the computation does not cover.
    let short = text(LEAVES, "none", "operation = \"all-reduce\"\nbytes = \"1MB\"\nrepeat = 4")
        .replace("60us", "1ns");
    let found = repeats(&short);
    assert_eq!((found.simulated, found.repeated), (4, 0));
}

#[test]
fn what_does_not_repeat_is_refused_by_its_key() {
    let base =
        text(STAR, "none", "operation = \"all-reduce\"\nbytes = \"100KB\"\nrepeat = 4\n[run]\nmemo = true");
    let spine =
        text(LEAVES, "none", "operation = \"all-reduce\"\nbytes = \"100KB\"\nrepeat = 4\n[run]\nmemo = true");
    let refused = |text: &str, sets: &[(&str, &str)], key: &str| {
        let problems = load(text, sets).err().unwrap_or_default();
        let expected = format!("run.memo: {key}");
        assert!(problems.contains(&expected), "expected {expected:?}, found: {problems}");
    };
    refused(&base, &[("workload.0.connections", "kept")], "workload.0.connections: ");
    refused(&base, &[("workload.0.compute", "0us")], "workload.0.compute: ");
    refused(&base, &[("run.until", "2ms")], "run.until: ");
    let others = ": expected one of dcqcn, timely, dctcp, theta-powertcp, none";
    let hpcc = "transport.controller.kind: \"hpcc\" goes by telemetry, which has times and counters since the start of the \
                run";
    refused(&base, &[("transport.controller.kind", "hpcc")], &format!("{hpcc}{others}"));
    refused(
        &base,
        &[("transport.controller.kind", "hpcc-pint")],
        "transport.controller.kind: \"hpcc-pint\" goes by",
    );
    let swift = "transport.controller.kind: \"swift\" draws by the number of its flow";
    refused(&base, &[("transport.controller.kind", "swift")], &format!("{swift}{others}"));
    refused(
        &base,
        &[("transport.plb", "delay")],
        "transport.plb: moves flows by what they have seen: leave it out",
    );
    refused(&base, &[("measure.pauses", "true")], "measure: ");
    refused(&spine, &[("switch.balancer.kind", "spray")], "switch.balancer: ");
    refused(&base, &[("failures.loss", "0.001")], "failures: ");
    let two =
        format!("{base}[[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"1KB\" }}]\n");
    refused(&two, &[], "workload.1: ");
    let other = base.replace("kind = \"collective\"\nconnections = \"fresh\"", "kind = \"all-to-all\"");
    assert!(load(&other, &[]).is_err());
}
