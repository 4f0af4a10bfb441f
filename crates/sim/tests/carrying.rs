//! Telemetry in the data packets of transports that make no use of it: what it costs on the wire, and what arrives.

use crate::common::*;
use std::collections::BTreeSet;
use std::path::Path;
use weftline_sim::config::Config;
use weftline_sim::measure::NO_NODE;
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// Two leaves and four spines; hosts at 1 Gb/s and 1 ms, 100 Mb/s and 1 ms by each spine: 8 ns a byte, and 80.
const NETWORK: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
host_link = { rate = "1Gbps", delay = "1ms" }
fabric_link = { rate = "100Mbps", delay = "1ms" }

[[workload]]
kind = "permutation"
size = "1KB"
"#;

const TCP: &str = r#"{ kind = "tcp", mss = "1000B", header = "50B", ack_header = "50B", syn_header = "50B", ack_every = 1 }"#;
const MPTCP: &str = r#"{ kind = "mptcp", subflows = 4, join = "at-once" }"#;
const INT: &str = r#"{ kind = "int", all = true, max_hops = 3 }"#;

fn config(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/carrying");
    let scenario = load_in(&folder, NETWORK, sets).unwrap_or_else(|error| panic!("{error}"));
    Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") }
}

fn pint() -> &'static str {
    r#"{ kind = "pint", queries = "path.toml", paths = true }"#
}

#[test]
fn a_segment_of_tcp_is_longer_by_its_telemetry_and_its_acknowledgement_is_not() {
    // SYN and SYN-ACK, one segment, its acknowledgement: ways of 4 ms, 2 (8 + 80) ns a byte of what is sent alone.
    let alone = |bytes: u64| 4_000_000 + bytes * 176;
    for (telemetry, bytes) in [(r#"{ kind = "none" }"#, 0), (INT, 3 * 8 + 2), (pint(), 2)] {
        let sets = [("transport", TCP), ("telemetry", telemetry)];
        let (kept, outcome) = run(config(&sets, vec![flow(0, 4, 1_000, Time::ZERO)]));
        // The third packet of the handshake leaves just before the segment, which it does not hold up further on.
        let expected = 2 * alone(50) + 50 * 8 + alone(1_050 + bytes) + alone(50);
        assert_eq!(completion_times(&kept)[0].ns(), expected, "{telemetry}");
        assert_eq!(outcome.telemetry_bytes, bytes, "{telemetry}");
    }
}

#[test]
fn every_data_packet_of_every_transport_brings_its_path() {
    let transports = [
        TCP,
        MPTCP,
        r#"{ kind = "phost" }"#,
        r#"{ kind = "pfabric" }"#,
        r#"{ kind = "rdma", controller = { kind = "dctcp" } }"#,
        r#"{ kind = "ndp" }"#,
        r#"{ kind = "homa" }"#,
        r#"{ kind = "fastpass", arbiter = "7" }"#,
    ];
    for transport in transports {
        // No link is slower than the hosts', so that nothing is dropped.
        let sets = [("transport", transport), ("telemetry", pint()), ("topology.fabric_link.rate", "1Gbps")];
        let (kept, outcome) = run(config(&sets, vec![flow(0, 4, 500_000, Time::ZERO)]));
        let sent = kept.flows[0].packets_sent;
        assert_eq!(kept.digests.len() as u64, sent, "{transport}");
        let ids: BTreeSet<u64> = kept.digests.iter().map(|digest| digest.packet).collect();
        assert_eq!(ids.len() as u64, sent, "{transport}: packets with the same id");
        // RDMA's acknowledgements carry it, too.
        let carried = if transport.contains("rdma") { 4 * sent } else { 2 * sent };
        assert_eq!(outcome.telemetry_bytes, carried, "{transport}");
        for digest in &kept.digests {
            // Nodes 0 to 7 are hosts, 8 and 9 the leaves.
            let [first, spine, last, rest @ ..] = **digest.path.as_ref().expect("asked for");
            assert_eq!((first, last, rest), (8, 9, [NO_NODE; 3]), "{transport}");
            assert!((10..14).contains(&spine), "{transport}: {spine}");
            assert_eq!(digest.hops, 3);
        }
    }
}

#[test]
fn telemetry_is_a_longer_header_and_nothing_else() {
    let flows = || (0..4).map(|src| flow(src, 4 + src, 300_000, Time::ZERO)).collect();
    // pHost's defaults count the packets of a round trip without telemetry: 2 B change none of them, 26 B do.
    for (kind, header) in [("tcp", 66), ("mptcp", 90), ("phost", 40)] {
        let fingerprint = |header: u32, telemetry: &str| {
            let transport = format!("{{ kind = \"{kind}\", header = \"{header}B\" }}");
            run(config(&[("transport", &transport), ("telemetry", telemetry)], flows())).1.fingerprint
        };
        for (telemetry, bytes) in [(INT, 26), (pint(), 2)].into_iter().skip(usize::from(kind == "phost")) {
            let plain = fingerprint(header + bytes, r#"{ kind = "none" }"#);
            assert_eq!(fingerprint(header, telemetry), plain, "{kind} {telemetry}");
        }
    }
}

#[test]
fn presto_counts_the_bytes_of_a_flow_however_its_packets_are_numbered() {
    for (transport, payload) in [
        (r#"{ kind = "rdma", controller = { kind = "dctcp" }, mtu = "1000B" }"#, 1_000),
        (r#"{ kind = "phost", mtu = "1000B", spray = false }"#, 1_000),
        (r#"{ kind = "ndp", mtu = "1000B", spray = false }"#, 1_000),
        (r#"{ kind = "homa", mtu = "1000B", unscheduled_header = "0B", spray = false }"#, 1_000),
    ] {
        let sets = [
            ("transport", transport),
            ("telemetry", pint()),
            ("topology.fabric_link.rate", "1Gbps"),
            ("switch.balancer", r#"{ kind = "presto", cell = "50KB" }"#),
        ];
        let (kept, _) = run(config(&sets, vec![flow(0, 4, 400_000, Time::ZERO)]));
        // Eight cells of fifty packets, over each of the four spines in turn.
        let mut spines = vec![BTreeSet::new(); 8];
        for digest in &kept.digests {
            let number = digest.packet & u64::from(u32::MAX);
            let byte = if transport.contains("rdma") { number } else { number * payload };
            spines[(byte / 50_000) as usize].insert(digest.path.as_ref().expect("asked for")[1]);
        }
        assert!(spines.iter().all(|cell| cell.len() == 1), "{transport}: {spines:?}");
        let first: BTreeSet<_> = spines[..4].iter().flatten().collect();
        assert_eq!((first.len(), &spines[..4]), (4, &spines[4..]), "{transport}: {spines:?}");
    }
}

#[test]
fn packets_of_two_subflows_never_have_one_id() {
    let sets = [("transport", MPTCP), ("telemetry", pint())];
    let (kept, _) = run(config(&sets, vec![flow(0, 4, 2_000_000, Time::ZERO)]));
    let subflows: BTreeSet<u32> = kept.digests.iter().map(|digest| digest.subflow).collect();
    assert_eq!(subflows, (0..4).collect());
    let mut owners = std::collections::BTreeMap::new();
    for digest in &kept.digests {
        assert_eq!(*owners.entry(digest.packet).or_insert(digest.subflow), digest.subflow);
    }
}

#[test]
fn without_all_int_stays_with_those_who_read_it() {
    let sets = [("transport", TCP), ("telemetry", r#"{ kind = "int" }"#)];
    let (_, outcome) = run(config(&sets, vec![flow(0, 4, 100_000, Time::ZERO)]));
    assert_eq!(outcome.telemetry_bytes, 0);
}
