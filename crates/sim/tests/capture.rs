//! Captures of links: frames against headers worked out by hand, and against what the run itself counts.

use crate::common::*;
use weftline_sim::config::Config;
use weftline_sim::measure::Outcome;

/// Two hosts on one switch, node 2; host 0 sends to host 1.
const STAR: &str = r#"
[topology]
kind = "star"
hosts = 2
host_link = { rate = "10Gbps", delay = "1us" }
[[workload]]
kind = "flows"
flows = [{ src = 0, dst = 1, size = "20KB" }]
"#;

/// Four hosts below two leaves and two spines, all sending to the last.
const CLOS: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_link = { rate = "10Gbps", delay = "1us" }
fabric_link = { rate = "10Gbps", delay = "1us" }
[[workload]]
kind = "flows"
flows = [{ src = 0, dst = 3, size = "400KB" }, { src = 1, dst = 3, size = "400KB" }, { src = 2, dst = 3, size = "400KB" }]
"#;

fn config(text: &str, rest: &str) -> Config {
    let text = format!("{rest}\n{text}");
    load(&text, &[]).unwrap_or_else(|error| panic!("{error}")).config().expect("a valid scenario")
}

fn captured(text: &str, rest: &str) -> (Kept, Outcome) {
    run(config(text, rest))
}

/// Of an Ethernet frame: its IPv4 header and what follows it.
fn ip(frame: &[u8]) -> (&[u8], &[u8]) {
    assert_eq!(frame[12..14], [8, 0], "IPv4");
    frame[14..].split_at(usize::from(frame[14] & 15) * 4)
}

#[test]
fn a_handshake_begins_with_the_syn_that_is_worked_out_by_hand() {
    let rest = "transport = { kind = \"tcp\" }\nmeasure = { pcap = \"host0->*\" }";
    let (kept, _) = captured(STAR, rest);
    let (link, time, length, syn) = &kept.frames[0];
    assert_eq!((*link, time.0, *length), (0, 0, 74));
    let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 8, 0];
    assert_eq!(syn[..14], ethernet);
    // Class 1, 60 bytes, not to be fragmented, TTL 64, TCP, from 10.0.0.1 to 10.0.0.2.
    let ipv4 = [0x45, 0x20, 0, 60, 0, 0, 0x40, 0, 64, 6, 0x26, 0x9a, 10, 0, 0, 1, 10, 0, 0, 2];
    assert_eq!(syn[14..34], ipv4);
    // From port 50000 to 50000, numbers 0, 40 bytes, SYN, window 65535, checksum.
    let tcp = [0xc3, 0x50, 0xc3, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0xa0, 2, 0xff, 0xff, 0xad, 0x68, 0, 0];
    assert_eq!(syn[34..54], tcp);
    // MSS 1448, SACK permitted, timestamps at 0, padding, window scale 7.
    let options = [2, 4, 5, 0xa8, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7];
    assert_eq!(syn[54..], options);
}

#[test]
fn data_are_numbered_from_the_syn_on_and_as_long_as_in_the_run() {
    let rest = "transport = { kind = \"tcp\" }\nmeasure = { pcap = \"host0->*\" }";
    let (kept, outcome) = captured(STAR, rest);
    let port = totals_of(&outcome, 0, 0);
    assert_eq!(kept.frames.len() as u64, port.packets_sent);
    assert_eq!(kept.frames.iter().map(|frame| u64::from(frame.2)).sum::<u64>(), port.bytes_sent);
    let data: Vec<_> = kept.frames.iter().filter(|frame| frame.2 > 100).collect();
    let mut expected = 1;
    for (_, _, length, bytes) in data {
        let (_, tcp) = ip(bytes);
        assert_eq!(u32::from_be_bytes(tcp[4..8].try_into().unwrap()), expected);
        expected += length - 66;
    }
    assert_eq!(expected, 20_001);
}

/// The bytes of the MPTCP option of a segment; empty without one.
fn multipath_option(tcp: &[u8]) -> &[u8] {
    let mut options = &tcp[20..usize::from(tcp[12] >> 4) * 4];
    loop {
        match options {
            [] | [0, ..] => return &[],
            [1, rest @ ..] => options = rest,
            [30, length, ..] => return &options[..usize::from(*length)],
            [_, length, ..] => options = &options[usize::from(*length)..],
            [_] => panic!("an option that is cut off"),
        }
    }
}

#[test]
fn mappings_number_the_stream_and_have_a_checksum_where_hosts_ask_for_one() {
    let rest = |keys: &str| {
        format!(
            "transport = {{ kind = \"mptcp\", subflows = 1, {keys} }}\nmeasure = {{ pcap = \"host0->*\" }}"
        )
    };
    let plain = captured(STAR, &rest("checksum = false"));
    for (checksum, length) in [(false, 18), (true, 20)] {
        let (kept, outcome) = captured(STAR, &rest(&format!("checksum = {checksum}")));
        assert_eq!(outcome, plain.1, "a checksum changes nothing");
        assert_eq!(
            kept.frames.iter().map(|frame| u64::from(frame.2)).sum::<u64>(),
            totals_of(&outcome, 0, 0).bytes_sent
        );
        let mut expected = 0;
        for (_, _, frame, bytes) in &kept.frames {
            let (ip, tcp) = ip(bytes);
            let option = multipath_option(tcp);
            if option[2] >> 4 == 0 {
                assert_eq!(option[3], if checksum { 0x81 } else { 0x01 }, "the flags of MP_CAPABLE");
                continue;
            }
            assert_eq!((option[1], option[2], option[3]), (length, 0x20, 0x05));
            let whole = u16::from_be_bytes([ip[2], ip[3]]);
            assert_eq!(u32::from(whole) + 14, *frame, "the frame ends where the IPv4 packet does");
            assert_eq!(u32::from_be_bytes(option[8..12].try_into().unwrap()), expected);
            let payload = u16::from_be_bytes([option[16], option[17]]);
            expected += u32::from(payload);
            if checksum {
                let words =
                    option[8..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
                let sum: u32 = words.sum();
                assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "one's complement");
            }
        }
        assert_eq!(expected, 20_000);
    }
    let (kept, _) = captured(STAR, &rest("capable = 0"));
    assert!(kept.frames.iter().all(|(_, _, _, bytes)| multipath_option(ip(bytes).1).is_empty()));
}

/// As Linux 6.18 did between two namespaces: announcement, echo, join, and then the next address.
#[test]
fn addresses_are_announced_one_after_the_other_and_joined_as_they_come() {
    let rest = "transport = { kind = \"mptcp\", subflows = 4, join = \"announced\" }\n\
                measure = { pcap = [\"host0->*\", \"*->host0\"] }";
    let (kept, _) = captured(&STAR.replace("20KB", "2MB"), rest);
    let mut frames: Vec<_> = kept.frames.iter().collect();
    frames.sort_by_key(|frame| frame.1);
    let mut signals = Vec::new();
    let mut times = Vec::new();
    for (_, time, _, bytes) in frames {
        let (ip, tcp) = ip(bytes);
        let option = multipath_option(tcp);
        let from_initiator = ip[15] == 1;
        let port = u16::from_be_bytes([tcp[2], tcp[3]]);
        match (option.get(2).map(|byte| byte >> 4), option.len()) {
            (Some(1), 12) => signals.push((from_initiator, "join", port - 50_000)),
            (Some(3), length @ (10 | 18)) => {
                assert_eq!(option[4..8], [10, 0, 0, 2]);
                let announced = u16::from_be_bytes([option[8], option[9]]) - 50_000;
                assert_eq!(u16::from(option[3]), announced, "the number is that of the port here");
                signals.push((from_initiator, if length == 18 { "address" } else { "known" }, announced));
                times.push(time.ns());
            }
            _ => {}
        }
    }
    let of = |id| [(false, "address", id), (true, "known", id), (true, "join", id)];
    assert_eq!(signals, [of(1), of(2), of(3)].concat());
    // Each takes a round trip of at least two links there and two back.
    assert!(
        times.chunks(2).zip(times.chunks(2).skip(1)).all(|(one, next)| next[0] >= one[0] + 4_000),
        "{times:?}"
    );
}

#[test]
fn a_capture_changes_nothing_of_its_run() {
    for transport in ["kind = \"rdma\"", "kind = \"tcp\"", "kind = \"phost\""] {
        let plain = captured(CLOS, &format!("transport = {{ {transport} }}"));
        let rest = format!("transport = {{ {transport} }}\nmeasure = {{ pcap = \"*\" }}");
        let watched = captured(CLOS, &rest);
        assert_eq!(plain.1, watched.1, "{transport}");
        assert_eq!(plain.0.flows, watched.0.flows);
        assert_eq!(
            watched.0.frames.len() as u64,
            watched.1.packet_hops,
            "{transport}: every packet of every link"
        );
        assert!(watched.0.frames.windows(2).all(|pair| (pair[0].1, pair[0].0) <= (pair[1].1, pair[1].0)));
        assert!(plain.0.frames.is_empty());
    }
}

#[test]
fn marked_packets_are_those_that_a_port_has_marked() {
    let ecn = "switch.ecn = { kmin = \"10KB\", kmax = \"20KB\", pmax = 0.5 }";
    let rest = format!("transport.controller.kind = \"dctcp\"\n{ecn}\nmeasure.pcap = \"leaf1->host3\"");
    let (kept, outcome) = captured(CLOS, &rest);
    let bits = |frame: &Vec<u8>| frame[15] & 3;
    let marked = kept.frames.iter().filter(|frame| bits(&frame.3) == 3).count() as u64;
    assert!(marked > 0);
    // Some may have been marked before they arrived there.
    assert!(marked >= sum_of(&outcome, |port| port.ecn_marks) / 2);
    assert!(kept.frames.iter().all(|frame| bits(&frame.3) == 2 || bits(&frame.3) == 3), "all are data");
    // RoCEv2 is kept whole, with its CRC: 1000 B of payload after 14 + 20 + 8 + 12 B.
    assert!(kept.frames.iter().all(|frame| frame.3.len() == frame.2 as usize && frame.2 == 1058));
}

#[test]
fn int_grows_by_a_record_with_every_switch() {
    let rest = |link| format!("transport.controller.kind = \"hpcc\"\nmeasure.pcap = \"{link}\"");
    let hops = |link| {
        let (kept, _) = captured(CLOS, &rest(link));
        let of = |frame: &Vec<u8>| {
            let (_, udp) = ip(frame);
            assert_eq!(udp[2..4], 49_201u16.to_be_bytes());
            let shim = &udp[8..];
            assert_eq!(shim[0], 0x11);
            let length = u16::from_be_bytes([shim[2], shim[3]]);
            assert_eq!(length, 8 + 8 * u16::from(shim[6] >> 4));
            // The units for 10 Gb/s are those of 25.
            assert_eq!((shim[1], u16::from_be_bytes([shim[4], shim[5]])), (1, 4791));
            shim[6] >> 4
        };
        let mut all: Vec<u8> = kept.frames.iter().map(|frame| of(&frame.3)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    assert_eq!(hops("host0->leaf0"), [0]);
    assert_eq!(hops("leaf0->spine*"), [1]);
    assert_eq!(hops("spine*->leaf1"), [2]);
    // Host 2 is on the same leaf.
    assert_eq!(hops("leaf1->host3"), [1, 3]);
}

#[test]
fn pint_digests_are_those_that_the_receiver_reads() {
    let rest = "transport.controller.kind = \"hpcc-pint\"\ntelemetry.kind = \"pint\"\nmeasure.pcap = \"leaf1->host3\"";
    let mut config = config(CLOS, rest);
    let weftline_sim::config::TelemetryConfig::Pint(pint) = &mut config.telemetry else { panic!("PINT") };
    std::sync::Arc::make_mut(pint).recorded = 1 << 32;
    let (kept, _) = run(config);
    let shown = |frame: &Vec<u8>| {
        let (_, udp) = ip(frame);
        let (shim, length) = (&udp[8..], usize::from(u16::from_be_bytes([udp[10], udp[11]])));
        assert_eq!((shim[0], usize::from(shim[1])), (0x12, length - 8));
        shim[8..length].iter().fold(0u64, |digest, &byte| digest << 8 | u64::from(byte))
    };
    let shown: Vec<u64> = kept.frames.iter().map(|frame| shown(&frame.3)).collect();
    let read: Vec<u64> = kept.digests.iter().map(|record| record.digest).collect();
    assert!(!read.is_empty());
    assert_eq!(shown, read, "one link into the host: the same packets in the same order");
}

#[test]
fn a_pause_and_a_resume_are_seen_on_the_link_that_they_stop() {
    let rest = "switch = { buffer = \"200KB\", pfc = { enabled = true } }\ntransport.controller.kind = \"none\"\n\
                measure.pcap = \"leaf1->*\"";
    let (kept, outcome) = captured(CLOS, rest);
    let pauses = kept.frames.iter().filter(|frame| frame.3[12..14] == [0x88, 8]);
    let stops = pauses.filter(|frame| frame.3[18..34].iter().any(|&byte| byte != 0)).count() as u64;
    assert!(stops > 0);
    assert!(stops <= sum_of(&outcome, |port| port.pauses));
}
