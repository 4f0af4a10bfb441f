//! Hosts with several NICs, and with several ranks: which NIC a flow takes, what it does when that one fails, and what stays in
//! a host. Nothing is lost of what was sent, and the bits are those of any number of threads ([`run`] looks at both).

use crate::common::*;
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

#[test]
fn packets_of_a_flow_over_all_nics_are_refused_with_what_serves_instead() {
    let error =
        load(&format!("{PLANES}{RING}"), &[("host.nic_policy", "all")]).err().expect("no such policy");
    assert!(
        error.contains("by one NIC") && error.contains("\"mptcp\"") && error.contains("channels"),
        "{error}"
    );
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
fn ranks_of_a_host_need_its_links_and_whole_domains() {
    let error = |sets: &[(&str, &str)]| load(NODES, sets).err().expect("wrong");
    let text = NODES.replace("scale_up_rate = \"3.6Tbps\"\n", "");
    let without = load(&text, &[]).err().expect("no links");
    assert!(
        without.contains("workload.0.ranks_per_host: 8 ranks of a host reach each other by its own links"),
        "{without}"
    );
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
