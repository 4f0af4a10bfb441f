use super::*;
use crate::parameters::Value;
use crate::workload::tests::{source, text};

fn traffic(sources: Vec<Box<dyn FlowSource>>) -> Traffic {
    Traffic { sources, groups: vec!["all".into()] }
}

fn merged(traffic: &Traffic) -> Vec<Arrival> {
    Merged::new(traffic).collect()
}

#[test]
fn flows_beyond_the_last_number_do_not_come_and_are_reported() {
    let mut merged = Merged::new(&traffic(vec![source("incast", 4, &[("receiver", text("0"))])]));
    merged.next_id = MAX_FLOWS - 1;
    assert_eq!(merged.next().map(|arrival| arrival.id), Some(MAX_FLOWS - 1));
    assert!(merged.too_many() && merged.next().is_none());
    let mut enough = Merged::new(&traffic(vec![source("incast", 2, &[("receiver", text("0"))])]));
    enough.next_id = MAX_FLOWS - 1;
    assert!(enough.next().is_some() && !enough.too_many());
}

#[test]
fn flows_are_numbered_by_start_then_source_then_order() {
    let stagger = |start: &str| [("stagger", text("2us")), ("receiver", text("0")), ("start", text(start))];
    let sources = vec![source("incast", 4, &stagger("0us")), source("incast", 4, &stagger("2us"))];
    let flows: Vec<_> =
        merged(&traffic(sources)).iter().map(|a| (a.id, a.spec.start.ns(), a.source, a.order)).collect();
    let expected =
        [(0, 0, 0, 0), (1, 2000, 0, 1), (2, 2000, 1, 0), (3, 4000, 0, 2), (4, 4000, 1, 1), (5, 6000, 1, 2)];
    assert_eq!(flows, expected);
}

#[test]
fn another_workload_leaves_the_flows_of_this_one_as_they_are() {
    let poisson = || source("poisson", 8, &[("count", Value::Integer(300))]);
    let alone = traffic(vec![poisson()]);
    let both = traffic(vec![poisson(), source("permutation", 8, &[])]);
    let mine: Vec<_> = merged(&both).iter().filter(|a| a.source == 0).map(|a| (a.order, a.spec)).collect();
    assert_eq!(merged(&alone).iter().map(|a| (a.order, a.spec)).collect::<Vec<_>>(), mine);
}

#[test]
fn those_who_wait_are_found_by_what_they_wait_for() {
    let ring = source("collective", 3, &[("repeat", Value::Integer(2))]);
    let pairs = ring.dependencies();
    let traffic = traffic(vec![source("permutation", 3, &[]), ring]);
    let dependents = Dependents::new(&traffic);
    assert!(!dependents.is_empty());
    for order in 0..30 {
        let expected: Vec<u32> = pairs.iter().filter(|p| p.0 == order).map(|p| p.1).collect();
        assert_eq!(dependents.of(1, order), expected);
        assert!(dependents.of(0, order).is_empty());
    }
}

#[test]
fn a_job_ends_with_the_last_of_its_flows() {
    let ring = source("collective", 2, &[("repeat", Value::Integer(2))]);
    let keys = [("senders", Value::Integer(2)), ("count", Value::Integer(1))];
    let incast = source("incast", 3, &keys);
    let mut jobs = Jobs::new(&traffic(vec![ring, source("permutation", 2, &[]), incast]));
    // The steps of a job graph are numbered; its messages are none of those that are counted.
    assert_eq!((jobs.len(), jobs.place(1), jobs.number(2, 0)), (3, (0, 1), 2));
    assert_eq!((jobs.of(0, 0), jobs.of(1, 0)), (None, None));
    assert_eq!((0..2).map(|k| jobs.of(2, k)).collect::<Vec<_>>(), [2, 2].map(Some));
    assert_eq!(jobs.flow_ended(2, 0), None);
    assert_eq!(jobs.flow_ended(2, 1), Some(2));
}

#[test]
fn sizing_up_counts_flows_and_bytes_and_leaves_the_sources_alone() {
    let sources = vec![source("permutation", 8, &[]), source("incast", 8, &[("start", text("1ms"))])];
    let (traffic, ring) =
        (traffic(sources), traffic(vec![source("collective", 4, &[("repeat", Value::Integer(2))])]));
    let size = traffic.size_up();
    assert_eq!((size.flows, size.bytes), (15, 8 * 1_000_000 + 7 * 500_000));
    assert_eq!((size.last_start, size.complete), (Time::from_us(1000), true));
    assert_eq!(traffic.size_up(), size);
    // A ring of two steps of three: 12 messages a step and four ranks, none of which is drawn.
    let (size, drawn) = (ring.size_up(), Merged::new(&ring).count_rest(TrafficSize::default(), u64::MAX));
    assert_eq!((size.flows, size.bytes, size.complete), (drawn.flows, drawn.bytes, true));
    assert_eq!((size.flows, size.drawn, drawn.drawn), (48, 0, 1));
}

#[test]
fn what_no_source_can_tell_is_counted_up_to_a_limit_and_the_others_in_full() {
    let many = [("count", Value::Integer(40)), ("arrivals", text("periodic")), ("every", text("1us"))];
    let sources = vec![source("incast", 8, &many), source("permutation", 8, &[])];
    let size = Merged::new(&traffic(sources)).count_rest(TrafficSize::default(), 10);
    assert_eq!((size.flows, size.complete), (40 * 7 + 8, true));
    assert!(size.drawn < 20, "{size:?}");
}
