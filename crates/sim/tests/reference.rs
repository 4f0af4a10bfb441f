//! The HPCC authors' simulator on the same flows: every completion time, to the nanosecond.

mod common;

use common::{case, published, rows, run};
use weftline_sim::units::Bytes;

const BUFFER: Bytes = Bytes(32 << 20);

/// Runs a case and counts the flows whose completion time differs from the authors' by a nanosecond or more.
fn differing(name: &str, scheme: &str, buffer: Bytes) -> Option<(usize, usize, u64)> {
    let (topology, flows, folder) = case(name)?;
    let expected = rows(&folder.join(format!("fct_{scheme}.csv.gz")));
    let (kept, outcome) = run(published(scheme, topology, flows, buffer, 1));
    assert_eq!(kept.flows.len(), expected.len());
    let mut differ = 0;
    for (flow, row) in kept.flows.iter().zip(&expected) {
        let fct = flow.finish.map(|finish| (finish - flow.start).ns());
        assert_eq!(u64::from(flow.flow), row[0]);
        assert_eq!(flow.ideal.ns(), row[2], "ideal time of flow {}", flow.flow);
        if fct != Some(row[1]) {
            differ += 1;
            if differ <= 3 {
                println!("{name} {scheme}: flow {} took {fct:?} ns, the authors' {}", flow.flow, row[1]);
            }
        }
    }
    let pauses = outcome.ports.iter().map(|(_, _, totals)| totals.pauses).sum();
    Some((differ, expected.len(), pauses))
}

fn all_equal(name: &str, schemes: &[&str]) {
    for scheme in schemes {
        if let Some((differ, flows, _)) = differing(name, scheme, BUFFER) {
            assert_eq!(differ, 0, "{name} under {scheme}: {differ} of {flows} flows differ");
        }
    }
}

#[test]
fn lone_flows_are_equal_to_the_nanosecond() {
    all_equal("star_single", &["hpcc", "dctcp", "timely", "dcqcn"]);
}

#[test]
fn incast_is_equal_to_the_nanosecond() {
    all_equal("star_incast16", &["hpcc", "dctcp", "timely", "timelyw"]);
}

#[test]
fn flows_joining_a_bottleneck_are_equal_to_the_nanosecond() {
    all_equal("dumb_fair4", &["hpcc", "dctcp", "timely", "timelyw", "dcqcnw"]);
}

#[test]
fn web_search_on_the_pod_is_equal_to_the_nanosecond() {
    all_equal("pod_wb_0.5", &["hpcc", "dctcp", "timely", "timelyw"]);
}

#[test]
fn incast_under_pfc_is_equal_to_the_nanosecond() {
    for (scheme, pauses) in [("hpcc", 16), ("dctcp", 147), ("timely", 233), ("timelyw", 237)] {
        if let Some(found) = differing("pfc_star_incast16_buf1", scheme, Bytes(1 << 20)) {
            println!("{scheme}: {found:?}, the authors' pauses {pauses}");
            assert_eq!((found.0, found.2), (0, pauses), "{scheme}: flows differing, pauses");
        }
    }
}
