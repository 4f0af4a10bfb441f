//! `[scale]`: a slower network does the same, as many times as late, whatever is counted on the wire.

use crate::common::{load, run_in};
use weftline_sim::units::Time;

const INCAST: &str = r#"
[topology]
kind = "star"
hosts = 5
host_link = { rate = "10Gbps", delay = "8us" }

[switch]
queue = { kind = "fifo", limit = "400KB" }
pfc = { enabled = false }
ecn = { enabled = false }

[transport]
kind = "rdma"
rto = "2ms"
nack_interval = "500us"

[[workload]]
kind = "flows"
flows = [
    { src = 1, dst = 0, size = "150KB", start = "0us" },
    { src = 2, dst = 0, size = "150KB", start = "10us" },
    { src = 3, dst = 0, size = "150KB", start = "20us" },
    { src = 4, dst = 0, size = "3KB", start = "500us" },
    # After a pause of more than 2^24 ns in the slower time.
    { src = 4, dst = 0, size = "150KB", start = "1ms" },
]
"#;

fn completion(controller: &str, by: &str) -> Vec<(u32, Time)> {
    let sets = [("transport.controller", controller), ("scale.by", by)];
    let scenario = load(INCAST, &sets).unwrap_or_else(|error| panic!("{error}"));
    let (kept, _) = run_in(1, scenario.config().unwrap());
    let mut found: Vec<(u32, Time)> =
        kept.flows.iter().map(|one| (one.flow, one.finish.unwrap() - one.start)).collect();
    found.sort();
    found
}

#[test]
fn schemes_with_int_complete_as_many_times_as_late() {
    for controller in [
        "{ kind = \"hpcc\", rai = \"25Mbps\", min_rate = \"10Mbps\" }",
        "{ kind = \"powertcp\", additive = \"100Mbps\", min_rate = \"10Mbps\" }",
    ] {
        let fast = completion(controller, "1");
        assert_eq!(fast.len(), 5);
        for by in [20u64, 500] {
            let slow = completion(controller, &by.to_string());
            for ((flow, one), (_, other)) in fast.iter().zip(&slow) {
                let expected = one.0 * by;
                let apart = expected.abs_diff(other.0) as f64 / expected as f64;
                assert!(apart < 1e-3, "{controller}, by {by}, flow {flow}: {one} and {other}");
            }
        }
    }
}

#[test]
fn tcp_completes_exactly_as_many_times_as_late_on_every_topology() {
    let completion = |kind: &str, by: &str| {
        // Rails that nothing joins carry traffic between GPUs of one place in their nodes.
        let [one, other, to] = if kind == "rail-only" { [0, 16, 8] } else { [0, 1, 3] };
        let text = format!(
            "[topology]\nkind = \"{kind}\"\n[transport]\nkind = \"tcp\"\nrto_min = \"1ms\"\nack_delay = \"100us\"\n\
             [[workload]]\nkind = \"flows\"\nflows = [\n{{ src = {one}, dst = {to}, size = \"150KB\" }},\n\
             {{ src = {other}, dst = {to}, size = \"150KB\", start = \"5us\" }},\n]\n"
        );
        let scenario = load(&text, &[("scale.by", by)]).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let (kept, _) = run_in(1, scenario.config().unwrap());
        let times = |one: &weftline_sim::measure::FlowRecord| [one.finish.unwrap() - one.start, one.ideal];
        kept.flows.iter().map(times).collect::<Vec<_>>()
    };
    for doc in weftline_sim::topology::DOCS.iter().filter(|doc| doc.name != "file") {
        let (fast, slow) = (completion(doc.name, "1"), completion(doc.name, "10"));
        let expected: Vec<[Time; 2]> = fast.iter().map(|times| times.map(|time| Time(10 * time.0))).collect();
        assert_eq!(slow, expected, "{}", doc.name);
    }
}
