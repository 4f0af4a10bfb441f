//! What one subflow sends for another where the shared window or the send buffer is full.

use super::nics::UNEQUAL;
use crate::common::*;
use weftline_sim::units::Time;

/// This number of bytes between two hosts with two NICs each, on a path of 4 ms there and back and one with
/// this delay of its last link: the time, the bytes that left on a second subflow too, and the packets that
/// were sent again.
fn two_paths(size: &str, rate: &str, delay: &str, sets: &[(&str, &str)]) -> (Time, f64, u64) {
    let link = format!("{{ rate = \"{rate}\", delay = \"1ms\" }}");
    let last = format!("[{{ between = [\"host1\", \"tor0\"], rate = \"{rate}\", delay = \"{delay}\" }}]");
    let flows = format!("[{{ src = 0, dst = 1, size = \"{size}\" }}]");
    let own = [
        ("topology.host_link", link.as_str()),
        ("topology.override", &last),
        ("workload.0.flows", &flows),
        ("transport.ack_every", "1"),
    ];
    let scenario = load(UNEQUAL, &[&own, sets].concat()).unwrap_or_else(|error| panic!("{error}"));
    let (kept, _) = run(scenario.config().expect("a configuration"));
    let again = kept.samples.iter().rfind(|s| s.metric == "reinjected_bytes").expect("a row").value;
    (completion_times(&kept)[0], again, kept.flows[0].packets_retransmitted)
}

#[test]
fn on_paths_that_are_alike_no_subflow_sends_what_another_one_has() {
    // The send buffer is full as soon as slow start has opened the windows.
    for scheduler in ["\"min-rtt\"", "\"round-robin\""] {
        for subflows in ["4", "32"] {
            let with = |opportunistic: &str| {
                let sets = [
                    ("transport.subflows", subflows),
                    ("transport.scheduler", scheduler),
                    ("transport.send_buffer", "\"1MB\""),
                    ("transport.opportunistic", opportunistic),
                ];
                two_paths("20MB", "1Gbps", "1ms", &sets)
            };
            let on = with("true");
            assert_eq!((on.1, on.2), (0.0, 0), "{scheduler}, {subflows} subflows");
            assert_eq!(on, with("false"));
        }
    }
}

#[test]
fn what_a_slower_subflow_has_is_sent_once_more_and_in_its_stead() {
    // 102 ms and 4 ms, and 64 KB that both have at a time.
    for buffer in ["transport.receive_buffer", "transport.send_buffer"] {
        let with = |opportunistic: &str| {
            let sets = [
                ("transport.subflows", "2"),
                (buffer, "\"64KB\""),
                ("transport.opportunistic", opportunistic),
                ("transport.penalise", opportunistic),
            ];
            two_paths("5MB", "50Mbps", "50ms", &sets)
        };
        let (off, on) = (with("false"), with("true"));
        assert_eq!((off.1, off.2), (0.0, 0), "{buffer}");
        assert_eq!((on.1, on.2), (54.0 * 1424.0, 54), "{buffer}");
        // 5 MB in 1.09 and 3.64 s.
        assert!(on.0 < Time::from_ms(1100) && off.0 > Time::from_ms(3600), "{buffer}: {on:?}, {off:?}");
    }
}
