//! Paths that fail and are repaired, between two hosts with two NICs.

use super::{goodput, two_nics, until};
use crate::common::run_in;
use weftline_sim::config::{Change, Failure};
use weftline_sim::units::Time;

/// Goodput of a connection between two hosts with two NICs, in Mb/s, before these changes and at the end:
/// they are at these tenths of a second, and known after `detection`.
fn through_changes(sets: &[(&str, &str)], changes: &[(u64, Change)], detection: Time, end: u64) -> [f64; 2] {
    let mut config = two_nics(sets, Time::from_ms(1));
    let at = |&(tenths, change): &(u64, Change)| Failure { at: Time::from_ms(100 * tenths), change };
    config.failures.events = changes.iter().map(at).collect();
    config.failures.detection = detection;
    let (kept, _) = run_in(1, until(config, end));
    [goodput(&kept, 0, 3, 5), goodput(&kept, 0, end - 3, end)]
}

#[test]
fn a_path_that_was_repaired_is_used_again_whatever_failed_and_whoever_knew_of_it() {
    use Change::{LinkDown, LinkUp, SwitchDown, SwitchUp};
    // Links of the sender, of the receiver, of the first path and of the other one; a switch.
    let failures = [
        (LinkDown(0), LinkUp(0)),
        (LinkDown(1), LinkUp(1)),
        (LinkDown(2), LinkUp(2)),
        (LinkDown(3), LinkUp(3)),
        (SwitchDown(2), SwitchUp(2)),
    ];
    let never = Time::from_ms(1_000_000);
    let outages = [(5, never, "2"), (100, never, "4"), (30, Time::from_ms(1), "2")];
    for ((down, up), (lasts, detection, subflows)) in
        failures.iter().flat_map(|f| outages.map(|outage| (*f, outage)))
    {
        let changes = [(50, down), (50 + lasts, up)];
        let end = 5 + lasts / 10 + 9;
        let [before, after] = through_changes(&[("transport.subflows", subflows)], &changes, detection, end);
        let case = format!("{down:?} for {lasts}00 ms, known after {detection}, {subflows} subflows");
        assert!(before > 88.0, "{case}: {before} before");
        assert!(after > 0.95 * before, "{case}: {before} before, {after} after");
    }
}

#[test]
fn a_connection_that_began_during_an_outage_uses_both_paths_after_it() {
    use Change::{LinkDown, LinkUp};
    for (down, up) in [(LinkDown(0), LinkUp(0)), (LinkDown(2), LinkUp(2)), (LinkDown(1), LinkUp(1))] {
        for subflows in ["2", "4"] {
            // The first packet leaves at 0, before or after the link fails: routes know it before the second
            // subflow joins.
            let changes = [(0, down), (80, up)];
            let sets = [("transport.subflows", subflows), ("transport.rto_syn", "\"100ms\"")];
            let [_, after] = through_changes(&sets, &changes, Time::ZERO, 16);
            assert!(after > 88.0, "{down:?}, {subflows} subflows: {after}");
        }
    }
}

#[test]
fn attempts_to_open_a_subflow_again_outlast_the_ports_that_there_are() {
    use Change::{LinkDown, LinkUp};
    let sets = [("transport.rejoin", "\"50ms\""), ("transport.rto_syn", "\"50ms\"")];
    // 250 ms an attempt: 255 ports are used up after 64 s.
    let changes = [(50, LinkDown(1)), (750, LinkUp(1))];
    let [before, after] = through_changes(&sets, &changes, Time::from_ms(1_000_000), 80);
    assert!(after > 0.95 * before, "{before} before, {after} after");
}

#[test]
fn a_subflow_that_is_never_opened_again_is_kept_and_used_when_it_answers() {
    use Change::{LinkDown, LinkUp};
    let changes = [(50, LinkDown(1)), (150, LinkUp(1))];
    let sets = [("transport.rejoin", "\"0s\"")];
    let [before, after] = through_changes(&sets, &changes, Time::from_ms(1_000_000), 35);
    assert!(after > 0.95 * before, "{before} before, {after} after");
}
