//! Collective operations take the times of their closed forms, and put the bytes of their formulas on every link.
//!
//! With one channel and one message a step, on a network whose links have one rate R and h links between any two hosts, alpha
//! = (h - 1) m / R + h d for packets of m bytes on the wire, and c beta = wire bytes / R. An operation takes at least its
//! law, and at most the law and what the acknowledgements of every step take on a link.

use crate::common::*;
use crate::jobs::{on_star, text, workload};
use weftline_sim::config::Config;
use weftline_sim::parameters::Value;
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::rail::Rail;
use weftline_sim::units::{Rate, Time};
use weftline_sim::workload::Traffic;

const RATE: Rate = Rate::from_gbps(100);
/// 1048 B and 60 B at 100 Gb/s, in ps.
const PACKET: u64 = 83_840;
const ACK: u64 = 4_800;
const DELAY: u64 = 1_000_000;
/// On a star: two links.
const ALPHA: u64 = PACKET + 2 * DELAY;

/// Time of a message's packets on a link, each of at most 1000 bytes.
fn beta(bytes: u64) -> u64 {
    let packets = bytes.div_ceil(1000);
    RATE.transmission_time(bytes + 48 * packets).0
}

fn keys(operation: &str, algorithm: &str, bytes: u64) -> Vec<(&'static str, Value)> {
    vec![
        ("operation", text(operation)),
        ("algorithm", text(algorithm)),
        ("bytes", text(&format!("{bytes}B"))),
    ]
}

/// Time of an operation on a star.
fn time(hosts: u32, keys: &[(&'static str, Value)]) -> u64 {
    let (_, outcome) = on_star(hosts, vec![workload("collective", hosts, keys)]);
    assert_eq!(outcome.steps.len(), 1);
    assert_eq!(outcome.ranks.len(), hosts as usize);
    let end = outcome.ranks.iter().filter_map(|rank| rank.end).max().expect("ranks that ended");
    let finish = outcome.steps[0].finish.expect("a step that ended");
    assert!(outcome.steps[0].ideal.expect("an ideal time") <= finish);
    assert!(end >= finish);
    finish.0
}

/// `law` <= time <= `law` + steps times acknowledgements of a step; equal where no acknowledgement meets data.
fn follows(time: u64, law: u64, steps: u64, acks: u64, exact: bool, what: &str) {
    let late = time as i64 - law as i64;
    assert!(
        late >= 0 && late as u64 <= steps * acks * ACK,
        "{what}: {time} ps, law {law} ps, {late} ps late"
    );
    assert!(!exact || late as u64 <= (steps - 1) * ACK, "{what}: {late} ps late");
}

#[test]
fn rings_take_their_steps() {
    for n in [2u64, 3, 4, 8, 13] {
        for packets in [1, 7, 24] {
            let bytes = n * packets * 1000;
            let step = ALPHA + beta(bytes / n);
            let operations = [("all-reduce", 2), ("reduce-scatter", 1), ("all-gather", 1)];
            for (operation, times) in operations {
                let steps = times * (n - 1);
                let took = time(n as u32, &keys(operation, "ring", bytes));
                // A rank acknowledges the last packet of a step before it sends that of the next.
                assert_eq!(took, steps * step + (steps - 1) * ACK, "{operation} of {n}, {packets} packets");
            }
        }
    }
}

#[test]
fn halving_and_doubling_takes_log_n_steps_of_shrinking_and_growing_messages() {
    for q in 1u32..5 {
        let n = 1u64 << q;
        for packets in [1, 4, 16] {
            let bytes = n * packets * 1000;
            let halves: u64 = (1..=q).map(|k| ALPHA + beta(bytes >> k)).sum();
            for (operation, times) in [("all-reduce", 2), ("reduce-scatter", 1), ("all-gather", 1)] {
                let took = time(n as u32, &keys(operation, "halving-doubling", bytes));
                let (law, steps) = (times * halves, times * u64::from(q));
                // As many acknowledgements as packets meet the data of a step.
                follows(
                    took,
                    law,
                    steps,
                    n * packets,
                    packets == 1 && n == 2,
                    &format!("{operation} of {n}"),
                );
            }
        }
    }
}

#[test]
fn a_pairwise_all_to_all_takes_n_less_one_steps() {
    for n in [2u64, 3, 4, 8] {
        for packets in [1, 8, 20] {
            let took = time(n as u32, &keys("all-to-all", "pairwise", n * packets * 1000));
            let law = (n - 1) * (ALPHA + beta(packets * 1000));
            follows(took, law, n - 1, packets + 1, packets == 1, &format!("{n} ranks, {packets} packets"));
        }
    }
}

#[test]
fn a_barrier_takes_log_n_rounds() {
    for n in [2u64, 3, 5, 8, 16] {
        let rounds = u64::from(n.next_power_of_two().trailing_zeros());
        let packet = RATE.transmission_time(8 + 48).0;
        let law = rounds * 2 * (packet + DELAY);
        follows(time(n as u32, &keys("barrier", "dissemination", 1)), law, rounds, 1, false, "barrier");
    }
}

#[test]
fn a_broadcast_goes_down_level_by_level_and_in_chunks_along_each_other() {
    // Three levels of 15 hosts: a parent's link sends to both children, one after the other.
    let took = time(15, &keys("broadcast", "tree", 10_000));
    follows(took, 3 * (ALPHA + 2 * beta(10_000)), 3, 20, false, "whole");
    let mut chunked = keys("broadcast", "tree", 1_000_000);
    let whole = time(15, &chunked);
    chunked.push(("chunk", text("10KB")));
    let pieces = time(15, &chunked);
    // Inner hosts acknowledge what they get, on the same link; both children at the rate of the link, and the first chunk down the other levels.
    let bound = 2 * beta(1_000_000) + 3 * (ALPHA + 2 * beta(10_000)) + 1000 * ACK;
    assert!(pieces < bound && pieces < whole / 2, "{pieces} ps in chunks, {whole} ps whole");
}

/// The time of a packet of a message that is the last one, or the only one.
fn last_packet(bytes: u64) -> u64 {
    beta(if bytes % 1000 == 0 { bytes.min(1000) } else { bytes % 1000 })
}

/// Sizes of the parts of n ranks: the first ones get the remainder of the division.
fn parts(bytes: u64, n: u64) -> Vec<u64> {
    (0..n).map(|rank| bytes / n + u64::from(rank < bytes % n)).collect()
}

#[test]
fn a_gather_and_a_scatter_take_the_link_of_their_root() {
    for n in 2u64..=12 {
        for (bytes, root) in
            [(n * 1000, 0), (n * 24_000, n - 1), (n * 7000 + 1, n / 2), (100_003, 0), (12_345, 1)]
        {
            let parts = parts(bytes, n);
            let others = || (0..n).filter(|&rank| rank != root).map(|rank| parts[rank as usize]);
            let sum: u64 = others().map(beta).sum();
            // The first packet to the root, or the last from it, is alone on its link: any may be that one.
            let shortest = others().map(last_packet).min().expect("a part");
            let longest = others().map(|part| beta(part.min(1000))).max().expect("a part");
            for operation in ["gather", "scatter"] {
                let mut keys = keys(operation, "linear", bytes);
                keys.push(("root", Value::Integer(root as i64)));
                let took = time(n as u32, &keys);
                let (low, high) = (sum + shortest + 2 * DELAY, sum + longest + 2 * DELAY);
                // Acknowledgements go the other way.
                assert!(
                    (low..=high).contains(&took),
                    "{operation} of {bytes} B among {n}: {low} <= {took} <= {high}"
                );
            }
        }
    }
}

/// When a rank of a binary tree of n has its vector with all below it, and the levels below: of two vectors
/// that come at once one waits for the other. `whole`: the time of a vector on a link; `way`: of its last
/// packet to the next rank, after that.
fn complete(rank: u64, n: u64, whole: u64, way: u64) -> (u64, u64) {
    let (mut levels, mut ready) = (0, Vec::new());
    for child in [2 * rank + 1, 2 * rank + 2].into_iter().filter(|&child| child < n) {
        let (at, deep) = complete(child, n, whole, way);
        levels = levels.max(deep + 1);
        ready.push(at);
    }
    ready.sort_unstable();
    match ready[..] {
        [] => (0, 0),
        [one] => (one + whole + way, levels),
        [first, second, ..] => ((first + 2 * whole).max(second + whole) + way, levels),
    }
}

#[test]
fn a_reduce_takes_the_link_of_its_root_or_a_level_of_its_tree_after_the_other() {
    for n in 2u64..=12 {
        for (bytes, root) in [(1000, 0), (24_000, n - 1), (7001, n / 2), (12_345, 1)] {
            let (whole, tail) = (beta(bytes), last_packet(bytes));
            let take = |algorithm: &str| {
                let mut keys = keys("reduce", algorithm, bytes);
                keys.push(("root", Value::Integer(root as i64)));
                time(n as u32, &keys)
            };
            let took = take("linear");
            let low = (n - 1) * whole + tail + 2 * DELAY;
            let high = (n - 1) * whole + beta(bytes.min(1000)) + 2 * DELAY;
            assert!((low..=high).contains(&took), "{bytes} B among {n}: {low} <= {took} <= {high}");

            let took = take("tree");
            let (law, levels) = complete(0, n, whole, tail + 2 * DELAY);
            let late = levels * (beta(bytes.min(1000)) - tail + 2 * ACK);
            assert!(
                (law..=law + late).contains(&took),
                "a tree of {n}, {bytes} B: {law} <= {took} <= {}",
                law + late
            );
        }
    }
}

#[test]
fn operations_with_a_root_send_the_bytes_of_their_formulas() {
    for n in 2u64..=12 {
        for (s, root) in [(800_000u64, 0u64), (100_003, n - 1)] {
            let parts = parts(s, n);
            for (operation, algorithm) in
                [("gather", "linear"), ("scatter", "linear"), ("reduce", "linear"), ("reduce", "tree")]
            {
                for (channels, chunk) in [(1, "auto"), (3, "auto"), (2, "3333B")] {
                    let mut keys = keys(operation, algorithm, s);
                    keys.extend([("channels", Value::Integer(channels)), ("chunk", text(chunk))]);
                    keys.push(("root", Value::Integer(root as i64)));
                    let (kept, outcome) = on_star(n as u32, vec![workload("collective", n as u32, &keys)]);
                    let what =
                        format!("{operation} by {algorithm} of {s} B among {n}, {channels} of {chunk}");
                    let (mut sent, mut got) = (vec![0u64; n as usize], vec![0u64; n as usize]);
                    for flow in &kept.flows {
                        sent[flow.src as usize] += flow.size;
                        got[flow.dst as usize] += flow.size;
                    }
                    let ranks: Vec<u64> = outcome.ranks.iter().map(|rank| rank.bytes).collect();
                    assert_eq!(ranks, sent, "{what}");
                    let (to_root, from_others) = match (operation, algorithm) {
                        ("scatter", _) => (&sent, &got),
                        _ => (&got, &sent),
                    };
                    let alone = |rank: u64| rank != root;
                    if operation == "reduce" {
                        // All but the root send the vector once; in a tree inner ranks get it once or twice.
                        assert!((0..n).all(|r| from_others[r as usize] == u64::from(alone(r)) * s), "{what}");
                        assert_eq!(to_root.iter().sum::<u64>(), (n - 1) * s, "{what}");
                        let at_root = if algorithm == "linear" { n - 1 } else { (n - 1).min(2) };
                        assert_eq!(to_root[root as usize], at_root * s, "{what}");
                        continue;
                    }
                    // A channel and a chunk round each share on its own: a byte a piece.
                    let pieces = outcome.flows / (n - 1);
                    let near = |bytes: u64, part: u64| bytes.abs_diff(part) <= pieces;
                    assert!(
                        (0..n).all(|r| !alone(r) || near(from_others[r as usize], parts[r as usize])),
                        "{what}: {from_others:?}, parts {parts:?}"
                    );
                    let others: u64 = (0..n).filter(|&r| alone(r)).map(|r| from_others[r as usize]).sum();
                    assert_eq!((to_root[root as usize], from_others[root as usize]), (others, 0), "{what}");
                    assert!(near(s - others, parts[root as usize]), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_double_tree_lies_within_its_bounds_and_small_chunks_bring_it_to_the_rate_of_the_links() {
    for n in [4u64, 8, 15, 16] {
        let bytes = 4_000_000;
        let mut keys = keys("all-reduce", "double-tree", bytes);
        keys.push(("chunk", text("20KB")));
        let took = time(n as u32, &keys);
        let levels = u64::from(n.next_power_of_two().trailing_zeros());
        assert!(took >= 2 * (n - 1) * beta(bytes) / n, "{n} ranks: {took} ps");
        assert!(took >= 2 * levels * ALPHA);
        // A rank sends S up and S down at most, with the acknowledgements of as much.
        let limit = 2 * beta(bytes) * 125 / 100 + 2 * (levels + 2) * 3 * (ALPHA + beta(20_000));
        assert!(took <= limit, "{n} ranks: {took} ps, expected at most {limit} ps");
    }
}

#[test]
fn the_bus_bandwidth_of_large_sizes_is_the_rate_of_the_links_less_headers_and_acknowledgements() {
    let bytes = 32_000_000;
    for (operation, algorithm, n) in [
        ("all-reduce", "ring", 8u64),
        ("all-gather", "ring", 5),
        ("all-reduce", "halving-doubling", 8),
        ("all-to-all", "pairwise", 8),
    ] {
        let took = time(n as u32, &keys(operation, algorithm, bytes));
        let factor = if operation == "all-reduce" { 2.0 } else { 1.0 } * (n - 1) as f64 / n as f64;
        let bus = bytes as f64 * 8.0 * factor / (took as f64 * 1e-12);
        // Every rank sends an acknowledgement for every packet that it receives.
        let highest = RATE.0 as f64 * 1000.0 / 1108.0;
        assert!(
            bus > highest * 0.98 && bus < RATE.0 as f64 * 1000.0 / 1048.0,
            "{algorithm}: {bus} of {highest}"
        );
    }
}

#[test]
fn every_link_carries_the_bytes_of_the_formula() {
    let (n, s) = (8u64, 800_000u64);
    for (operation, algorithm, share) in [
        ("all-reduce", "ring", 2 * (n - 1) * s / n),
        ("reduce-scatter", "ring", (n - 1) * s / n),
        ("all-gather", "ring", (n - 1) * s / n),
        ("all-reduce", "halving-doubling", 2 * (n - 1) * s / n),
        ("all-to-all", "linear", (n - 1) * s / n),
        ("all-to-all", "pairwise", (n - 1) * s / n),
    ] {
        for (channels, chunk) in [(1, "auto"), (4, "auto"), (4, "5KB")] {
            let mut keys = keys(operation, algorithm, s);
            keys.extend([("channels", Value::Integer(channels)), ("chunk", text(chunk))]);
            let (kept, outcome) = on_star(n as u32, vec![workload("collective", n as u32, &keys)]);
            let what = format!("{operation} by {algorithm}, {channels} channels of {chunk}");
            let mut sent = vec![0u64; n as usize];
            let mut packets = vec![(0u64, 0u64); n as usize];
            for flow in &kept.flows {
                sent[flow.src as usize] += flow.size;
                packets[flow.src as usize].0 += flow.packets_sent;
                packets[flow.dst as usize].1 += flow.packets_sent;
            }
            assert_eq!(sent, vec![share; n as usize], "{what}");
            assert!(outcome.ranks.iter().all(|rank| rank.bytes == share), "{what}");
            // On the wire: payload, headers of every packet, an acknowledgement for every packet that came.
            for (node, port, totals) in &outcome.ports {
                if *node < n as u32 && *port == 0 {
                    let (out, back) = packets[*node as usize];
                    assert_eq!(totals.bytes_sent, share + 48 * out + 60 * back, "{what}, host {node}");
                }
            }
        }
    }
}

#[test]
fn a_hierarchical_all_reduce_takes_its_domains_outside_the_network() {
    // Four domains of four: 12 KB each way at 1 Tb/s inside, 2 (N - 1) steps along four rails.
    let (n, g, s) = (16u64, 4u64, 64_000u64);
    let mut keys = keys("all-reduce", "hierarchical", s);
    keys.extend([
        ("domain", Value::Integer(4)),
        ("scale_up_rate", text("1Tbps")),
        ("scale_up_delay", text("500ns")),
    ]);
    let (_, outcome) = on_star(n as u32, vec![workload("collective", n as u32, &keys)]);
    let end = outcome.ranks.iter().filter_map(|rank| rank.end).max().expect("an end").0;
    let inside = 2 * (g - 1) * (Rate::from_gbps(1000).transmission_time(s / g).0 + 500_000);
    let nodes = n / g;
    let rails = 2 * (nodes - 1) * (ALPHA + beta(s / g / nodes)) + (2 * (nodes - 1) - 1) * ACK;
    assert_eq!(end, inside + rails);
    // Only the rails are on the network.
    assert_eq!(outcome.flows, 2 * (nodes - 1) * nodes * g);
    assert_eq!(Time(end), outcome.ranks[0].end.expect("an end"));
    // The bound omits acknowledgements alone.
    let acks = (2 * (nodes - 1) - 1) * ACK;
    assert_eq!(outcome.steps[0].ideal, Some(Time(end - acks)));
}

#[test]
fn no_step_with_scale_up_links_takes_less_than_its_ideal_time() {
    // In domains and on hosts of several ranks; scale-up links that are faster and slower than NICs.
    let hosts = 16;
    let operations = [
        ("all-reduce", "ring"),
        ("all-reduce", "tree"),
        ("all-reduce", "double-tree"),
        ("all-reduce", "halving-doubling"),
        ("all-reduce", "hierarchical"),
        ("reduce-scatter", "hierarchical"),
        ("all-gather", "hierarchical"),
        ("all-to-all", "hierarchical"),
        ("all-to-all", "linear"),
        ("all-to-all", "pairwise"),
        ("pairwise-all-to-all", "auto"),
        ("broadcast", "tree"),
        ("reduce", "linear"),
        ("gather", "linear"),
        ("scatter", "linear"),
        ("barrier", "dissemination"),
    ];
    let mut near = 0;
    for (operation, algorithm) in operations {
        for per_host in if algorithm == "hierarchical" { &[1, 4][..] } else { &[4][..] } {
            for (rate, delay) in [("3Tbps", "1us"), ("40Gbps", "100ns"), ("100Gbps", "20us")] {
                for (bytes, channels, chunk) in
                    [("1603200B", 1, "auto"), ("100003B", 2, "auto"), ("400KB", 3, "7KB")]
                {
                    let mut keys = vec![
                        ("operation", text(operation)),
                        ("algorithm", text(algorithm)),
                        ("ranks_per_host", Value::Integer(*per_host)),
                        ("scale_up_rate", text(rate)),
                        ("scale_up_delay", text(delay)),
                        ("repeat", Value::Integer(3)),
                    ];
                    if operation != "barrier" {
                        keys.extend([("bytes", text(bytes)), ("chunk", text(chunk))]);
                        keys.push(("channels", Value::Integer(channels)));
                    }
                    let hosts = if *per_host > 1 { hosts / 4 } else { hosts };
                    let (_, outcome) = on_star(hosts, vec![workload("collective", hosts, &keys)]);
                    let what =
                        format!("{operation} by {algorithm}, {per_host} a host, {rate}, {bytes}, {chunk}");
                    assert_eq!(outcome.steps.len(), 3, "{what}");
                    for step in &outcome.steps {
                        let took = step.finish.expect("an end").saturating_sub(step.start);
                        let ideal = step.ideal.expect("an ideal time");
                        assert!(ideal > Time::ZERO && took >= ideal, "{what}: {took} of {ideal}");
                    }
                    let first = &outcome.steps[0];
                    let (took, ideal) = (first.finish.expect("an end"), first.ideal.expect("an ideal time"));
                    near += u32::from(took.0 as f64 <= 1.05 * ideal.0 as f64);
                }
            }
        }
    }
    assert!(near >= 80, "{near} within 5 % of their bounds");
}

#[test]
fn a_large_hierarchical_all_reduce_is_within_a_few_per_cent_of_its_ideal_time() {
    let rail = Rail { nodes: 8, gpus: 4, nodes_per_segment: 8, spines: 1, ..Rail::default() };
    let (n, s) = (32u32, 32_000_000u64);
    // Every link also carries the acknowledgements of what comes the other way: 60 B for 1048 B.
    for chunk in ["auto", "128KB"] {
        for rate in ["3.6Tbps", "400Gbps"] {
            let mut keys = keys("all-reduce", "hierarchical", s);
            keys.extend([
                ("domain", Value::Integer(4)),
                ("scale_up_rate", text(rate)),
                ("chunk", text(chunk)),
            ]);
            let traffic =
                Traffic { sources: vec![workload("collective", n, &keys)], groups: vec!["all".into()] };
            let topology = rail.build().expect("a network");
            let (_, outcome) = run(Config { traffic, ..normal("none", topology, vec![]) });
            let step = &outcome.steps[0];
            let (took, ideal) = (step.finish.expect("an end").0, step.ideal.expect("an ideal time").0);
            assert!(took >= ideal && took * 100 <= ideal * 105, "{chunk}, {rate}: {took} of {ideal}");
        }
    }
}

#[test]
fn every_algorithm_puts_the_same_bytes_on_the_uplinks_of_rails() {
    // Four nodes of four, their rails in two segments: a hierarchical all-reduce crosses the spines only along rails.
    let rail = Rail { nodes: 4, gpus: 4, nodes_per_segment: 2, spines: 2, ..Rail::default() };
    let (n, s, g, nodes) = (16u32, 160_000u64, 4u64, 4u64);
    let mut keys = keys("all-reduce", "hierarchical", s);
    keys.extend([("domain", Value::Integer(4)), ("scale_up_rate", text("3Tbps"))]);
    let topology = rail.build().expect("a network");
    let traffic = Traffic { sources: vec![workload("collective", n, &keys)], groups: vec!["all".into()] };
    let (kept, outcome) = run(Config { traffic, ..normal("none", topology, vec![]) });
    assert_eq!(outcome.flows_done, outcome.flows);
    let mut sent = vec![0; n as usize];
    kept.flows.iter().for_each(|flow| sent[flow.src as usize] += flow.size);
    assert_eq!(sent, vec![2 * (nodes - 1) * (s / g) / nodes; n as usize]);
    assert!(kept.flows.iter().all(|flow| flow.src % 4 == flow.dst % 4));
    // Between segments: of the four edges of a rail's ring two.
    let across = kept.flows.iter().filter(|flow| flow.src / 8 != flow.dst / 8);
    assert_eq!(across.map(|flow| flow.size).sum::<u64>(), sent.iter().sum::<u64>() / 2);
}

#[test]
fn hierarchical_operations_of_sizes_that_do_not_divide_lose_no_byte() {
    let (n, g, nodes, s) = (12u64, 4u64, 3u64, 100_003u64);
    // Bytes of all ranks within their domains, and along their rails.
    let (once, rails) = (nodes * (g - 1) * s, (nodes - 1) * s);
    for (operation, sum) in [
        ("all-reduce", 2 * once + 2 * rails),
        ("reduce-scatter", once + rails),
        ("all-gather", once + rails),
        ("all-to-all", once + g * rails),
    ] {
        for (channels, chunk) in [(1, "auto"), (3, "auto"), (2, "3333B")] {
            let mut keys = keys(operation, "hierarchical", s);
            keys.extend([("channels", Value::Integer(channels)), ("chunk", text(chunk))]);
            keys.push(("domain", Value::Integer(g as i64)));
            let (kept, outcome) = on_star(n as u32, vec![workload("collective", n as u32, &keys)]);
            let sent: u64 = outcome.ranks.iter().map(|rank| rank.bytes).sum();
            let what = format!("{operation}, {channels} channels of {chunk}");
            assert_eq!((sent, kept.flows.iter().map(|flow| flow.size).sum::<u64>()), (sum, sum), "{what}");
        }
    }
}

#[test]
fn rings_of_sizes_that_do_not_divide_stay_between_the_laws_of_their_parts() {
    // Parts differ by a byte: a step takes at least that of the smaller part, at most that of the larger one.
    for n in [2u64, 3, 5, 7] {
        for bytes in [12_345, 100_003] {
            let steps = 2 * (n - 1);
            let last = |part: u64| if part % 1000 == 0 { PACKET } else { beta(part % 1000).min(PACKET) };
            let (small, large) = (bytes / n, bytes.div_ceil(n));
            let law = steps * (last(small) + 2 * DELAY + beta(small));
            let limit = steps * (ALPHA + beta(large) + large.div_ceil(1000) * ACK);
            let took = time(n as u32, &keys("all-reduce", "ring", bytes));
            assert!(law <= took && took <= limit, "{n} ranks, {bytes} bytes: {law} <= {took} <= {limit}");
        }
    }
}

#[test]
fn the_bytes_of_all_ranks_are_those_of_the_algorithm_for_any_number_of_ranks() {
    let s = 100_003u64;
    for n in [3u64, 5, 6] {
        // Halving and doubling: ranks beyond a power of two give all they have to a partner, and get the result.
        let power = 1 << (n.ilog2() as u64);
        let halving = 2 * (power - 1) * s + 2 * (n - power) * s;
        for (operation, algorithm, sum) in [
            ("all-reduce", "ring", 2 * (n - 1) * s),
            ("all-reduce", "halving-doubling", halving),
            ("all-reduce", "tree", 2 * (n - 1) * s),
            ("all-reduce", "double-tree", 2 * (n - 1) * s),
            ("broadcast", "tree", (n - 1) * s),
            ("all-to-all", "pairwise", (n - 1) * s),
        ] {
            for (channels, chunk) in [(1, "auto"), (3, "auto"), (2, "3333B")] {
                let mut keys = keys(operation, algorithm, s);
                keys.extend([("channels", Value::Integer(channels)), ("chunk", text(chunk))]);
                let (_, outcome) = on_star(n as u32, vec![workload("collective", n as u32, &keys)]);
                let sent: u64 = outcome.ranks.iter().map(|rank| rank.bytes).sum();
                assert_eq!(sent, sum, "{operation} by {algorithm} of {n}, {channels} channels of {chunk}");
            }
        }
    }
}
