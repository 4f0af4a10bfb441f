//! What `[host]` refuses, and warns of.

use super::*;

#[test]
fn a_queue_of_hosts_has_a_buffer_of_its_own_and_a_transport_that_fills_it() {
    let queue = |value: &str, transport: &str| {
        problems(&format!("[host]\nqueue = {value}\n[transport]\nkind = \"{transport}\"\n"))
    };
    for kind in ["fq-codel", "codel", "red", "drr", "dualpi2", "afq"] {
        for transport in ["tcp", "mptcp"] {
            assert_eq!(queue(&format!("{{ kind = \"{kind}\" }}"), transport), [""; 0]);
        }
    }
    assert_eq!(queue("{ kind = \"fifo\", packets = 100 }", "tcp"), [""; 0]);
    let found = queue("{ kind = \"fifo\" }", "tcp");
    assert!(found[0].contains("host.queue.kind: \"fifo\" shares the buffer of a switch"), "{found:?}");
    for transport in ["rdma", "homa", "ndp", "phost"] {
        let found = queue("{ kind = \"fq-codel\" }", transport);
        assert!(found[0].contains("a queue of the host is for tcp and mptcp"), "{found:?}");
    }
    let found = queue("{ kind = \"fq-codle\" }", "tcp");
    assert!(found[0].contains("did you mean \"fq-codel\""), "{found:?}");
    for wrong in ["5", "\"fifo\"", "{}", "{ kind = 3 }", "[]"] {
        let found = queue(wrong, "tcp");
        assert!(!found.is_empty() && found[0].starts_with("s.toml:7: host.queue"), "{wrong}: {found:?}");
    }
}

#[test]
fn hosts_like_those_of_ns3_have_its_queue_where_transports_fill_one() {
    let of = |more: &str| {
        let scenario = load(&format!("{STAR}[compat]\nlike = \"ns3-3.35\"\n{more}"));
        let text = scenario.resolved().to_string();
        assert_eq!(load(&text).resolved().to_string(), text);
        scenario.host.queue.map(|queue| (queue.name(), text.contains("nic_packets = 100")))
    };
    let tcp = "[transport]\nkind = \"tcp\"\n";
    assert_eq!(of(tcp), Some(("fq-codel", true)));
    assert_eq!(of(&format!("{tcp}[host]\npacket_time = \"1ns\"\n")), Some(("fq-codel", true)));
    assert_eq!(of(&format!("{tcp}[host]\nqueue = {{ kind = \"codel\" }}\n")), Some(("codel", false)));
    assert_eq!(of("[transport]\nkind = \"homa\"\n"), None);
    assert_eq!(load(&format!("{STAR}{tcp}")).host.queue, None);
    // No problem names a queue that is not in the file.
    let hpn = "[topology]\nkind = \"hpn\"\n[[workload]]\nkind = \"permutation\"\n";
    let all = "[host]\nnic_policy = \"all\"\n[compat]\nlike = \"ns3-3.35\"\n";
    let found = load_with(&format!("{hpn}{all}{tcp}"), &[]).err().expect("a refusal").problems;
    assert!(found.iter().all(|problem| !problem.to_string().contains("host.queue")), "{found:?}");
}

#[test]
fn times_of_hosts_that_nobody_can_mean_are_refused_and_slow_hosts_are_named() {
    let packet_time = |value: &str| problems(&format!("[host]\npacket_time = {value}\n"));
    assert_eq!(packet_time("\"2s\""), ["s.toml:7: host.packet_time: expected at most 1s, found 2s"]);
    for wrong in ["5", "\"5\"", "\"-1us\"", "\"fast\"", "[\"1us\"]"] {
        let found = packet_time(wrong);
        assert!(found.len() == 1 && found[0].starts_with("s.toml:7: host.packet_time: "), "{found:?}");
    }
    let unknown = problems("[host]\npacket_tme = \"1us\"\n");
    assert!(
        unknown[0]
            .contains("did you mean \"packet_time\"? (known: packet_time, queue, nic_policy, resequencing)"),
        "{unknown:?}"
    );
    let warned = |value: &str| load_with(STAR, &[("host.packet_time", value)]).expect("a scenario").check();
    let slow = warned("1us");
    let warning = slow["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("host.packet_time: a host takes a packet every 1us, and its link of "),
        "{warning}"
    );
    assert_eq!(slow["host"]["packets_per_second"], 1e6);
    assert_eq!(slow["host"]["full_packets"][0]["most_payload_bps"], 8e9);
    assert_eq!(slow["host"]["counted_in_ideal_times"], false);
    assert_eq!(warned("0s")["host"], serde_json::Value::Null);
    assert_eq!(warned("1ns")["warnings"].as_array().unwrap().len(), 0);
}

#[test]
fn headers_that_fill_a_slow_link_are_warned_about() {
    let warned = |rate: &str, queue: &str| {
        let text = format!(
            "[topology]\nkind = \"dumbbell\"\nbottleneck_link = {{ rate = \"{rate}\", delay = \"1us\" }}\n\
             [transport]\nkind = \"ndp\"\n[[workload]]\nkind = \"permutation\"\n{queue}"
        );
        load_with(&text, &[]).ok().unwrap().warnings.join("")
    };
    // Of a packet of 1 500 B 64 are left: 4.27 Gb/s of 100.
    assert!(warned("4Gbps", "").contains("set headers_per_data = 10"), "{}", warned("4Gbps", ""));
    assert_eq!(warned("5Gbps", ""), "");
    assert_eq!(warned("4Gbps", "[switch]\nqueue = { headers_per_data = 10 }\n"), "");
}
