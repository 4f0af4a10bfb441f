//! Hosts with several NICs, and with several ranks: which NIC a flow takes, what it does when that one fails, and what stays in
//! a host. Nothing is lost of what was sent, and the bits are those of any number of threads ([`run`] looks at both).

use crate::common::*;
use weftline_sim::congestion::KINDS as CONTROLLERS;
use weftline_sim::measure::Outcome;
use weftline_sim::transport::KINDS;
use weftline_sim::units::Time;

/// Hosts with four NICs in four planes.
const PLANES: &str = "[topology]\nkind = \"hpn\"\nsegments = 2\nnodes_per_segment = 2\ngpus = 2\nplanes = 4\nspines = 2\n\
    [transport]\nrecovery = \"selective-repeat\"\nrto = \"100us\"\ncontroller = { kind = \"hpcc\" }\n";
const RING: &str =
    "[[workload]]\nkind = \"collective\"\noperation = \"all-reduce\"\nchannels = 8\nbytes = \"8MB\"\n";

/// A run to its end, and the bytes that the ports of host 0 sent.
fn sent(text: &str, sets: &[(&str, &str)]) -> (Vec<u64>, Kept, Outcome) {
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    let config = scenario.config().expect("a configuration");
    let topology = config.topology.clone();
    let (kept, outcome) = run(config);
    let unfinished = kept.flows.iter().filter(|flow| flow.finish.is_none()).count();
    assert_eq!(unfinished, 0, "{sets:?} {text}: {:?}", outcome.ending);
    let ports = (0..4).map(|plane| {
        let tor = node_named(&topology, &format!("tor{plane}"));
        totals_of(&outcome, 0, port_towards(&topology, 0, tor)).bytes_sent
    });
    (ports.collect(), kept, outcome)
}

/// Flows of host 0 to host 7: sizes and starts in microseconds.
fn flows(list: &[(&str, u64)]) -> String {
    let one =
        |(size, us): &(&str, u64)| format!("{{ src = 0, dst = 7, size = \"{size}\", start = \"{us}us\" }}");
    let all: Vec<String> = list.iter().map(one).collect();
    format!("[[workload]]\nkind = \"flows\"\nflows = [{}]\n", all.join(", "))
}

/// The largest over the mean. Acknowledgements, some 6 % of all bytes, go by hash.
fn imbalance(bytes: &[u64]) -> f64 {
    let sum: u64 = bytes.iter().sum();
    *bytes.iter().max().expect("ports") as f64 * bytes.len() as f64 / sum as f64
}

#[test]
fn a_policy_spreads_connections_equally_over_nics_and_a_hash_does_not() {
    let text = format!("{PLANES}{RING}");
    let (hashed, _, whole) = sent(&text, &[]);
    assert!(imbalance(&hashed) > 1.2, "{hashed:?}");
    for transport in ["rdma", "tcp"] {
        for policy in ["round-robin", "by-rail", "least-bytes"] {
            let kind = format!("{{ kind = \"{transport}\" }}");
            let mut sets = vec![("host.nic_policy", policy)];
            if transport != "rdma" {
                sets.push(("transport", &kind));
            }
            let (bytes, _, outcome) = sent(&text, &sets);
            assert!(imbalance(&bytes) < 1.05, "{transport} by {policy}: {bytes:?}");
            assert!(
                transport != "rdma" || outcome.end < whole.end,
                "{policy}: {} of {}",
                outcome.end,
                whole.end
            );
        }
    }
}

#[test]
fn flows_of_any_transport_take_nics_in_turn() {
    let flows = flows(&(0..16).map(|n| ("100KB", 20 * n)).collect::<Vec<_>>());
    // Subflows use all NICs.
    for transport in KINDS.iter().map(|kind| kind.0).filter(|name| *name != "mptcp") {
        let text = format!("{}[transport]\nkind = \"{transport}\"\n{flows}", planes());
        let (bytes, _, _) = sent(&text, &[("host.nic_policy", "round-robin")]);
        assert!(imbalance(&bytes) < 1.1, "{transport}: {bytes:?}");
    }
}

#[test]
fn a_long_flow_keeps_short_ones_off_its_nic_where_loads_are_compared() {
    let short = (0..30).map(|n| ("50KB", 1 + 5 * n));
    let text = format!("{PLANES}{}", flows(&[("4MB", 0)].into_iter().chain(short).collect::<Vec<_>>()));
    let slowest = |policy: &str| {
        let (bytes, kept, _) = sent(&text, &[("host.nic_policy", policy)]);
        let short = kept.flows.iter().filter(|flow| flow.size == 50_000);
        (bytes, short.filter_map(|flow| flow.finish.map(|end| end - flow.start)).max().expect("short flows"))
    };
    let ((bytes, alone), (_, shared)) = (slowest("least-bytes"), slowest("round-robin"));
    // The long one is by itself on the first port.
    assert!(bytes[0] > 4_000_000 && bytes[0] < 4_400_000, "{bytes:?}");
    assert!(shared > alone, "{shared} {alone}");
}

#[test]
fn connections_move_off_a_nic_that_fails_by_every_policy() {
    let text = format!("{PLANES}{RING}repeat = 3\n");
    for transport in ["rdma", "tcp"] {
        let kind = format!("{{ kind = \"{transport}\" }}");
        for policy in ["round-robin", "by-rail", "least-bytes"] {
            let mut sets = vec![("host.nic_policy", policy)];
            if transport != "rdma" {
                sets.push(("transport", &kind));
            }
            let (whole, _, outcome) = sent(&text, &sets);
            let at = format!("{}ns", outcome.end.ns() / 4);
            let failure = format!("[{{ at = \"{at}\", link = [\"host0\", \"tor1\"] }}]");
            sets.push(("failures.event", &failure));
            let (left, _, longer) = sent(&text, &sets);
            assert!(left[1] < whole[1] / 2, "{transport} by {policy}: {left:?} of {whole:?}");
            // TCP's first timeout is its shortest, 200 ms.
            let waits = Time::from_ms(if transport == "tcp" { 300 } else { 0 });
            assert!(longer.end < Time(4 * outcome.end.0) + waits, "{transport} by {policy}: {}", longer.end);
            let rest = |bytes: &[u64]| bytes[0] + bytes[2] + bytes[3];
            assert!(rest(&left) > rest(&whole), "{transport} by {policy}: {left:?} of {whole:?}");
        }
    }
}

/// A network of four planes without a transport.
fn planes() -> &'static str {
    PLANES.split("[transport]").next().expect("a network")
}

#[test]
fn flows_move_off_a_nic_that_fails_with_every_transport() {
    for (kind, _) in KINDS {
        let flows = flows(&[("8MB", 0), ("8MB", 1)]);
        let text = format!("{}[transport]\nkind = \"{}\"\n{flows}", planes(), kind);
        let topology = load(&text, &[]).expect("a scenario").config().expect("a configuration").topology;
        let subflows = load(&text, &[("host.nic_policy", "round-robin")]).is_err();
        for policy in
            if subflows { &["hash"][..] } else { &["hash", "round-robin", "by-rail", "least-bytes"] }
        {
            let mut sets = vec![];
            if !subflows {
                sets.push(("host.nic_policy", *policy));
            }
            let (whole, _, outcome) = sent(&text, &sets);
            let used = (0..4).max_by_key(|&plane| whole[plane]).expect("planes");
            let at = format!("{}ns", outcome.end.ns() / 4);
            // The sender's own link, and the receiver's in the same plane.
            for (host, near) in [(0, true), (7, false)] {
                let node = topology.hosts()[host];
                let tor = topology.ports()[node as usize][used].1;
                let tor = &topology.nodes[tor as usize].name;
                let failure = format!("[{{ at = \"{at}\", link = [\"host{host}\", \"{tor}\"] }}]");
                let mut sets = sets.clone();
                sets.extend([("failures.event", &failure[..]), ("failures.detection", "10us")]);
                let (left, _, longer) = sent(&text, &sets);
                let case = format!("{} by {policy}, near {near}: {left:?} of {whole:?}", kind);
                assert!(left[used] < whole[used] * 3 / 4, "{case}");
                let rest = |bytes: &[u64]| bytes.iter().sum::<u64>() - bytes[used];
                assert!(rest(&left) > rest(&whole) + whole[used] / 4, "{case}");
                // TCP's first timeout is its shortest, 200 ms.
                let waits = Time::from_ms(if ["tcp", "mptcp"].contains(kind) { 700 } else { 5 });
                assert!(longer.end < Time(4 * outcome.end.0) + waits, "{case}: {}", longer.end);
            }
        }
    }
}

/// A network of four planes whose queue pairs send at the rate of their host, and wait for packets that are overtaken.
fn all_nics(flows: &str) -> String {
    let pairs = "[transport]\nrecovery = \"selective-repeat\"\nreordering = 4096\nrto = \"200us\"\ncontroller = { kind = \"none\" }\n";
    format!("{}[host]\nnic_policy = \"all\"\n{pairs}{flows}", planes())
}

/// Of the flows in order: how long they took.
fn times(kept: &Kept) -> Vec<Time> {
    kept.flows.iter().map(|flow| flow.finish.expect("a flow that ends") - flow.start).collect()
}

/// Time of a full packet (1000 B and 48 B) at 200 Gb/s, the rate of one of the four NICs, in picoseconds.
const PACKET: u64 = 1048 * 8 * 5;

/// Time between the ends of a flow of one packet and one of this many, over this many NICs, all of them full.
fn beyond_first(packets: u64, nics: u64) -> u64 {
    (packets - 1) * PACKET / nics
}

#[test]
fn a_lone_flow_over_all_nics_has_the_sum_of_their_rates() {
    let (_, kept, _) = sent(&all_nics(&flows(&[("1000B", 0)])), &[]);
    let first = times(&kept)[0];
    for packets in [4u64, 1000, 8001] {
        let (bytes, kept, _) = sent(&all_nics(&flows(&[(&format!("{packets}KB"), 5)])), &[]);
        let took = times(&kept)[0];
        // A packet that leaves by a NIC ahead of its turn, or after it, by the time of one packet at most.
        assert!((took - first).0.abs_diff(beyond_first(packets, 4)) <= PACKET, "{packets}: {took} {first}");
        let flow = &kept.flows[0];
        assert!(flow.ideal <= took && (took - flow.ideal).0 <= PACKET, "{packets}: {took} of {}", flow.ideal);
        assert_eq!((flow.packets_sent, flow.packets_retransmitted), (packets, 0));
        let (min, max) = (bytes.iter().min().expect("ports"), bytes.iter().max().expect("ports"));
        assert!(max - min <= 1048, "{bytes:?}");
    }
    // Receivers that put packets in order serve a transport that takes what is overtaken for lost.
    let in_order = [("transport.recovery", "go-back-n"), ("host.resequencing.enabled", "true")];
    let text = all_nics(&flows(&[("4MB", 0)])).replace("reordering = 4096\n", "");
    let (_, kept, _) = sent(&text, &in_order);
    assert!((times(&kept)[0] - first).0.abs_diff(beyond_first(4000, 4)) <= PACKET);
    assert_eq!(kept.flows[0].packets_retransmitted, 0);
}

#[test]
fn a_lone_flow_over_nics_of_unlike_rates_has_the_sum_of_them() {
    let (_, kept, _) = sent(&all_nics(&flows(&[("1000B", 0)])), &[]);
    let first = times(&kept)[0];
    for gbps in [150u64, 100, 50] {
        let slower = format!("[{{ between = [\"host0\", \"tor1\"], rate = \"{gbps}Gbps\" }}]");
        let (bytes, kept, _) = sent(&all_nics(&flows(&[("8001KB", 5)])), &[("topology.override", &slower)]);
        let took = times(&kept)[0];
        // 600 Gb/s of the other three NICs; a packet may leave late by the time of one at the slowest NIC.
        let (all, packet) = (8000 * 1048 * 8000 / (600 + gbps), Time(1048 * 8000 / gbps));
        assert!((took - first).0.abs_diff(all) <= packet.0, "{gbps}: {took} {first}");
        assert!(kept.flows[0].ideal <= took && kept.flows[0].packets_retransmitted == 0, "{gbps}: {took}");
        let share = bytes[1] as f64 / bytes.iter().sum::<u64>() as f64;
        assert!((share - gbps as f64 / (600 + gbps) as f64).abs() < 0.002, "{gbps}: {bytes:?}");
    }
}

#[test]
fn a_flow_over_all_nics_has_the_rate_of_those_that_lead_to_its_receiver() {
    let (_, kept, _) = sent(&all_nics(&flows(&[("1000B", 0)])), &[]);
    let first = times(&kept)[0];
    // The sender's own link, of which it knows at once, and the receiver's in the same plane, of which routes know in time.
    for link in ["[\"host0\", \"tor1\"]", "[\"host7\", \"tor13\"]"] {
        let failure = format!("[{{ at = \"0ns\", link = {link} }}]");
        let sets = [("failures.event", &failure[..]), ("failures.detection", "10us")];
        let (bytes, kept, _) = sent(&all_nics(&flows(&[("4MB", 50)])), &sets);
        let took = times(&kept)[0];
        assert!((took - first).0.abs_diff(beyond_first(4000, 3)) <= PACKET, "{link}: {took} {first}");
        assert_eq!((bytes[1], kept.flows[0].packets_retransmitted), (0, 0), "{link}: {bytes:?}");
    }
}

#[test]
fn a_nic_that_fails_takes_no_more_packets_and_a_flow_over_all_nics_ends() {
    for (link, near) in [("[\"host0\", \"tor1\"]", true), ("[\"host7\", \"tor13\"]", false)] {
        let failure = format!("[{{ at = \"20us\", link = {link} }}]");
        let sets = [("failures.event", &failure[..]), ("failures.detection", "10us")];
        let (bytes, kept, _) = sent(&all_nics(&flows(&[("8MB", 0)])), &sets);
        let flow = &kept.flows[0];
        // 20 us of 84 us, or 30 us where routes must follow first.
        let until = if near { 0.27 } else { 0.42 };
        assert!((bytes[1] as f64) < until * bytes[0] as f64, "{link}: {bytes:?}");
        assert!(flow.packets_retransmitted > 0, "{link}: {flow:?}");
        // What was lost comes after a timeout, and the rest by three NICs.
        assert!(times(&kept)[0] < Time(beyond_first(8000, 3)) + Time::from_us(450), "{link}: {flow:?}");
        let back = format!("[{{ at = \"20us\", link = {link}, lasts = \"20us\" }}]");
        let sets = [("failures.event", &back[..]), ("failures.detection", "10us")];
        let (again, _, _) = sent(&all_nics(&flows(&[("8MB", 0)])), &sets);
        assert!(again[1] > bytes[1], "{link}: {again:?} {bytes:?}");
    }
}

#[test]
fn flows_of_a_host_share_all_its_nics_equally() {
    let two = "[[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 7, size = \"4MB\" }, { src = 0, dst = 6, size = \"4MB\" }]\n";
    let (bytes, kept, _) = sent(&all_nics(two), &[]);
    let took = times(&kept);
    assert!(took[0].0.abs_diff(took[1].0) <= PACKET, "{took:?}");
    let whole = beyond_first(8000, 4);
    assert!(
        took[0].0.abs_diff(whole) < Time::from_us(10).0 && imbalance(&bytes) < 1.001,
        "{took:?} {bytes:?}"
    );
    // One receiver is reached by three of the NICs: the fourth sends to the other one only.
    let failure = [
        ("failures.event", "[{ at = \"0ns\", link = [\"host7\", \"tor13\"] }]"),
        ("failures.detection", "0ns"),
    ];
    let late = two.replace("\"4MB\"", "\"4MB\", start = \"50us\"");
    let (bytes, kept, _) = sent(&all_nics(&late), &failure);
    let took = times(&kept);
    assert!(imbalance(&bytes) < 1.35 && bytes[1] > 1_048_000, "{bytes:?}");
    assert!(took.iter().all(|time| time.0 < beyond_first(8000, 3)), "{took:?}");
}

#[test]
fn flows_of_any_transport_that_can_use_all_nics_do() {
    let mut able = 0;
    for (kind, _) in KINDS {
        let text =
            format!("{}[transport]\nkind = \"{kind}\"\n{}", planes(), flows(&[("8MB", 0), ("1MB", 3)]));
        let refused = load(&text, &[("host.nic_policy", "all")]).err();
        if let Some(error) = refused {
            assert!(error.contains("host.nic_policy") && error.contains(kind), "{kind}: {error}");
            continue;
        }
        able += 1;
        let failure = "[{ at = \"30us\", link = [\"host0\", \"tor1\"], lasts = \"30us\" }]";
        for sets in [&[][..], &[("failures.event", failure), ("failures.detection", "10us")]] {
            let mut sets = sets.to_vec();
            sets.push(("host.nic_policy", "all"));
            if *kind == "rdma" {
                sets.extend([
                    ("transport.controller.kind", "dcqcn"),
                    ("transport.recovery", "selective-repeat"),
                ]);
                sets.push(("transport.reordering", "1000"));
            }
            let (bytes, kept, _) = sent(&text, &sets);
            assert!(sets.len() > 3 && *kind == "rdma" || imbalance(&bytes) < 1.2, "{kind}: {bytes:?}");
            for flow in &kept.flows {
                assert!(flow.finish.expect("an end") - flow.start >= flow.ideal, "{kind}: {flow:?}");
            }
        }
        let slowest = |policy: &str| {
            let (_, kept, _) = sent(&text, &[("host.nic_policy", policy)]);
            times(&kept)[0]
        };
        let (all, one) = (slowest("all"), slowest("round-robin"));
        assert!(all < one, "{kind}: {all} by all NICs, {one} by one");
    }
    assert_eq!(able, KINDS.len() - 2);
}

#[test]
fn every_controller_of_queue_pairs_sends_by_all_nics() {
    for (controller, _) in CONTROLLERS {
        let text = all_nics(RING).replace("kind = \"none\"", &format!("kind = \"{controller}\""));
        let (bytes, kept, _) = sent(&text, &[]);
        assert!(imbalance(&bytes) < 1.01, "{controller}: {bytes:?}");
        for flow in &kept.flows {
            assert!(flow.finish.expect("an end") - flow.start >= flow.ideal, "{controller}: {flow:?}");
        }
    }
}

#[test]
fn what_overtakes_itself_over_all_nics_is_warned_of_and_what_cannot_use_them_refused() {
    let warnings = |sets: &[(&str, &str)]| {
        load(&format!("{PLANES}{RING}"), &[&[("host.nic_policy", "all")], sets].concat())
            .expect("a scenario")
            .warnings
    };
    let of = |warnings: &[String]| {
        warnings.iter().filter(|warning| warning.starts_with("host.nic_policy")).count()
    };
    // HPCC compares hops, and a packet counts as lost when three others have overtaken it.
    assert_eq!(of(&warnings(&[])), 2);
    // How far packets overtake each other is known only from the run.
    assert!(warnings(&[]).iter().any(|warning| warning.contains("packets may be retransmitted")));
    let calm = [("transport.controller.kind", "dcqcn"), ("transport.reordering", "4096")];
    assert_eq!(of(&warnings(&calm)), 0);
    assert_eq!(of(&warnings(&[calm[0], ("host.resequencing.enabled", "true")])), 0);
    let error = |sets: &[(&str, &str)]| {
        load(&format!("{}{RING}", planes()), &[&[("host.nic_policy", "all")], sets].concat())
            .err()
            .expect("refused")
    };
    let central = error(&[("transport", "{ kind = \"fastpass\" }")]);
    assert!(
        central.contains("one packet in every timeslot") && central.contains("\"round-robin\""),
        "{central}"
    );
    assert!(error(&[("compat.like", "htsim")]).contains("compat.like = \"htsim\""));
    assert!(error(&[("run.memo", "true")]).contains("host.nic_policy"));
}

#[test]
fn a_check_knows_the_rate_of_all_nics() {
    let text = all_nics(&flows(&[("40MB", 0)]));
    let ends = |sets: &[(&str, &str)]| {
        let scenario = load(&text, sets).expect("a scenario");
        let window = scenario.check()["transports"][0]["window_bytes"].clone();
        (scenario.estimate().replay.end, sent(&text, sets).2.end, window)
    };
    let (estimated, took, _) = ends(&[]);
    assert!((estimated.as_ns() / took.as_ns() - 1.0).abs() < 0.05, "{estimated} {took}");
    let window = |policy| ends(&[("host.nic_policy", policy), ("transport.controller.kind", "hpcc")]).2;
    assert_eq!(window("all").as_u64(), window("hash").as_u64().map(|one| 4 * one));
}

#[test]
fn what_has_no_choice_is_refused_or_warned_of() {
    let star = "[topology]\nkind = \"star\"\nhosts = 4\n[host]\nnic_policy = \"by-rail\"\n[[workload]]\nkind = \"collective\"\n";
    let error = load(star, &[]).err().expect("one NIC");
    assert!(
        error.contains("s.toml:5: host.nic_policy: has no effect: each of the 4 hosts has one NIC"),
        "{error}"
    );
    let text = format!("{PLANES}{RING}");
    let error = load(&text, &[("host.nic_policy", "by-rails")]).err().expect("no such policy");
    assert!(error.contains("did you mean \"by-rail\"?"), "{error}");
    let error = load(&text, &[("host.nic_policy", "by-rail"), ("transport", "{ kind = \"mptcp\" }")]).err();
    assert!(error.as_ref().is_some_and(|error| error.contains("subflows")), "{error:?}");
    let few =
        load(&text, &[("host.nic_policy", "by-rail"), ("workload.0.channels", "2")]).expect("a scenario");
    assert!(
        few.warnings.iter().any(|warning| warning.contains("by 2 of their 4 NICs")),
        "{:?}",
        few.warnings
    );
    let facts = few.check();
    assert_eq!((&facts["hosts"]["nics"], &facts["hosts"]["nic_policy"]), (&4.into(), &"by-rail".into()));
}

/// Four hosts of eight GPUs with four NICs.
const NODES: &str = "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 4\ngpus = 1\nplanes = 4\nspines = 1\n\
    [host]\nnic_policy = \"by-rail\"\n[transport]\ncontroller = { kind = \"none\" }\n[[workload]]\nkind = \"collective\"\n\
    operation = \"all-reduce\"\nranks_per_host = 8\nscale_up_rate = \"3.6Tbps\"\nbytes = \"8MB\"\n";

#[test]
fn ranks_of_a_host_share_its_nics_and_reach_each_other_outside_the_network() {
    let (bytes, kept, outcome) = sent(&format!("{NODES}algorithm = \"hierarchical\"\n"), &[]);
    assert_eq!((outcome.ranks.len(), outcome.ranks[9].host), (32, 1));
    assert!(kept.flows.iter().all(|flow| flow.src != flow.dst));
    // 2 (N - 1) / N S / g a rank, of four hosts with eight ranks; two ranks a NIC.
    let each: u64 = kept.flows.iter().filter(|flow| flow.src == 0).map(|flow| flow.size).sum();
    assert_eq!(each, 2 * 3 * 8_000_000 / 4);
    assert!(imbalance(&bytes) < 1.07, "{bytes:?}");
    // A ring of all ranks goes once into and out of every host, by the NIC of its channel.
    let (bytes, kept, _) = sent(NODES, &[("workload.0.channels", "4")]);
    let each: u64 = kept.flows.iter().filter(|flow| flow.src == 0).map(|flow| flow.size).sum();
    assert_eq!(each, 2 * 31 * 8_000_000 / 32);
    assert!(imbalance(&bytes) < 1.07, "{bytes:?}");
}

#[test]
fn channels_that_nccl_takes_and_both_trees_of_a_channel_use_all_nics() {
    let text = "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 8\ngpus = 1\nplanes = 2\nspines = 1\n\
                [host]\nnic_policy = \"by-rail\"\n[transport]\ncontroller = { kind = \"none\" }\n[[workload]]\n\
                kind = \"collective\"\noperation = \"all-reduce\"\nbytes = \"8MB\"\n";
    // NCCL's default is two channels.
    for sets in [&[("algorithm", "nccl")][..], &[("algorithm", "double-tree"), ("channels", "2")]] {
        let sets: Vec<_> = sets.iter().map(|(key, value)| (format!("workload.0.{key}"), *value)).collect();
        let sets: Vec<_> = sets.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let config = load(text, &sets).expect("a scenario").config().expect("a configuration");
        let topology = config.topology.clone();
        let (_, outcome) = run(config);
        for host in 0..8 {
            let nics = ["tor0", "tor1"].map(|tor| {
                let tor = node_named(&topology, tor);
                totals_of(&outcome, host, port_towards(&topology, host, tor)).bytes_sent
            });
            assert!(imbalance(&nics) < 1.07, "{sets:?}, host {host}: {nics:?}");
        }
    }
}

#[test]
fn ranks_of_a_host_need_its_links_and_whole_domains() {
    let error = |sets: &[(&str, &str)]| load(NODES, sets).err().expect("wrong");
    let text = NODES.replace("scale_up_rate = \"3.6Tbps\"\n", "");
    let without = load(&text, &[]).err().expect("no links");
    assert!(
        without.contains("workload.0.ranks_per_host: 8 ranks of a host reach each other by its own links"),
        "{without}"
    );
    let still = error(&[("workload.0.scale_up_rate", "0bps")]);
    assert!(still.contains("scale_up_rate=0bps: must be greater than 0"), "{still}");
    let torn = error(&[("workload.0.algorithm", "hierarchical"), ("workload.0.domain", "12")]);
    assert!(torn.contains("12 ranks are not whole hosts of 8 ranks"), "{torn}");
    assert!(error(&[("workload.0.ranks", "12")]).contains("12 ranks do not fill hosts of 8"));
    let many = error(&[("workload.0.ranks", "40")]);
    assert!(many.contains("40 ranks need 5 hosts of 8, but `hosts` names 4 hosts"), "{many}");
}

#[test]
fn a_training_job_has_its_tensor_groups_in_hosts() {
    let text = "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 4\ngpus = 1\nplanes = 4\nspines = 1\n\
        [host]\nnic_policy = \"by-rail\"\n[[workload]]\nkind = \"training\"\nlayers = 4\nhidden = 1024\nsequence = 512\n\
        tensor = 8\nmicro_batches = 2\nranks_per_host = 8\nscale_up_rate = \"3.6Tbps\"\n";
    let (bytes, kept, outcome) = sent(text, &[]);
    assert_eq!(outcome.ranks.iter().filter(|rank| rank.number == 0).count(), 32);
    // Only gradients cross the network: each rank's ring with the same place in other hosts.
    assert!(!kept.flows.is_empty() && imbalance(&bytes) < 1.07, "{bytes:?}");
}

#[test]
fn no_step_over_several_links_of_a_host_takes_less_than_its_ideal_time() {
    for (channels, bytes) in [(4, "1000B"), (4, "10KB"), (4, "8MB"), (3, "4KB"), (1, "10KB")] {
        for policy in ["round-robin", "least-bytes", "all"] {
            let text = format!(
                "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 2\ngpus = 1\nplanes = 4\nspines = 2\n[host]\n\
                 nic_policy = \"{policy}\"\n[transport]\nrecovery = \"selective-repeat\"\nreordering = 4096\nmtu = \"4KB\"\n\
                 controller = {{ kind = \"none\" }}\n[[workload]]\nkind = \"collective\"\noperation = \"broadcast\"\n\
                 algorithm = \"tree\"\nbytes = \"{bytes}\"\nchannels = {channels}\n"
            );
            let (_, _, outcome) = sent(&text, &[]);
            let step = &outcome.steps[0];
            let (took, ideal) = (step.finish.expect("an end").0, step.ideal.expect("an ideal time").0);
            let what = format!("{bytes}, {channels} channels, {policy}: {took} of {ideal}");
            assert!(took >= ideal && (channels < 4 || took * 100 <= ideal * 105), "{what}");
        }
    }
}
