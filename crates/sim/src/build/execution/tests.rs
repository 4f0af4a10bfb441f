//! Tests of `execution`.

use super::*;
use crate::scenario::{Hooks, Scenario};
use std::path::Path;

const WEB: &str = "[[workload]]\nkind = \"poisson\"\nload = 0.5\nduration = \"2ms\"\n";
const POD: &str = "[topology]\nkind = \"hpcc-fat-tree\"\npods = 1\ntors_per_pod = 2\ncores_per_agg = 0\n";

fn plan_of(text: &str, threads: usize) -> Plan {
    let scenario = Scenario::load(text, "s.toml", Path::new("."), &[], None, Hooks::default());
    let config = scenario.unwrap_or_else(|error| panic!("{error}")).config().unwrap();
    Plan::of(&config, Execution { threads, ..Execution::default() })
}

fn why(plan: &Plan) -> &str {
    plan.why_fewer.as_deref().unwrap_or_default()
}

#[test]
fn as_many_threads_as_were_asked_for_where_the_network_keeps_them_busy() {
    let text = format!("[topology]\nkind = \"hpcc-fat-tree\"\n{WEB}");
    for threads in [1, 2, 3, 8] {
        let plan = plan_of(&text, threads);
        assert_eq!((plan.threads, plan.regions, why(&plan)), (threads, threads, ""));
    }
}

#[test]
fn no_more_threads_than_regions_with_equal_work() {
    let plan = plan_of(&format!("{POD}{WEB}"), 8);
    assert_eq!((plan.threads, plan.regions), (2, 2));
    assert!(why(&plan).contains("2 regions"), "{}", why(&plan));
}

#[test]
fn one_thread_where_there_is_nothing_to_cut_or_too_little_to_do() {
    let plan = plan_of(&format!("[topology]\nkind = \"star\"\n{WEB}"), 2);
    assert!(plan.threads == 1 && why(&plan).contains("one region"), "{}", why(&plan));
    let short = format!("{POD}fabric_link = {{ delay = \"10ns\" }}\n{WEB}");
    let plan = plan_of(&short, 2);
    assert!(plan.threads == 1 && why(&plan).contains("only 10ns"), "{}", why(&plan));
    let plan = plan_of(&format!("{POD}{WEB}[compat]\nlike = \"hpcc-ns3\"\n"), 2);
    assert!(plan.threads == 1 && why(&plan).contains("hpcc-ns3"), "{}", why(&plan));
}

#[test]
fn fewer_threads_are_not_reported_if_the_choice_is_automatic() {
    let plan = plan_of(&format!("[topology]\nkind = \"star\"\n{WEB}"), 0);
    assert_eq!((plan.threads, plan.why_fewer), (1, None));
}
