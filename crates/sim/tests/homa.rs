//! Homa against unit cases that follow from its design by hand: equal links of 10 Gb/s, full packets of 1 538 B on the wire, a
//! sender that knows the end by one packet of 84 B on its way back.

use crate::common::*;
use weftline_sim::config::{Config, LinkLoss};
use weftline_sim::measure::Outcome;
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// Picoseconds of a full packet and of one without data on a link; the links of a path; their delay in sum.
const W: u64 = 1_230_400;
const C: u64 = 67_200;
const H: u64 = 2;
const D: u64 = 1_000_000;
/// The way of an acknowledgement.
const BACK: u64 = D + H * C;
/// Payload of full packets without and with a grant, and six of the former.
const G: u64 = 1442;
const GRANTED: u64 = 1456;
const U: u64 = 6 * G;

/// A star on which messages need no grants for six packets.
fn star(hosts: u32, flows: Vec<FlowSpec>, sets: &[(&str, &str)]) -> Config {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = {hosts}\nhost_link = {{ rate = \"10Gbps\", delay = \"500ns\" }}\n\
         [transport]\nkind = \"homa\"\nrtt_bytes = \"9228B\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    let scenario = load(&text, sets).unwrap_or_else(|error| panic!("{error}"));
    Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") }
}

fn message(src: u32, dst: u32, size: u64) -> FlowSpec {
    FlowSpec { src, dst, size, ..FlowSpec::default() }
}

/// Times at which the last bytes are at the receivers, in picoseconds.
fn ends(config: Config) -> (Vec<u64>, Outcome) {
    let (kept, outcome) = run(config);
    (completion_times(&kept).iter().map(|fct| fct.0 - BACK).collect(), outcome)
}

#[test]
fn a_lone_message_takes_its_packets_and_its_path() {
    for packets in 1..=6 {
        let (found, outcome) = ends(star(3, vec![message(0, 1, packets * G)], &[]));
        assert_eq!(found, [D + (packets + H - 1) * W], "{packets} packets");
        // One acknowledgement, over two links, and no grant.
        assert_eq!(sum_of(&outcome, |port| port.packets_sent), packets * 2 + 2);
    }
}

#[test]
fn a_longer_message_is_granted_in_time_packet_by_packet() {
    for granted in [1, 2, 20, 1000] {
        let (found, outcome) = ends(star(3, vec![message(0, 1, U + granted * GRANTED)], &[]));
        assert_eq!(found, [D + (6 + granted + H - 1) * W], "{granted} granted");
        assert_eq!(sum_of(&outcome, |port| port.packets_sent), (6 + granted) * 2 + 2 * (granted + 1));
    }
    // Bytes in flight that do not fill the path: two packets a loop, which is longer than two packet times.
    let sets = [("transport.rtt_bytes", "3076B")];
    let (found, _) = ends(star(3, vec![message(0, 1, 2 * G + 20 * GRANTED)], &sets));
    let lap = D + H * W + BACK;
    assert_eq!(found, [D + H * W + 10 * lap + W]);
}

#[test]
fn of_two_messages_to_one_host_the_shorter_is_not_delayed() {
    for (short, long) in [(1, 5), (2, 6), (6, 60), (30, 60), (100, 400)] {
        let size = |packets: u64| packets.min(6) * G + packets.saturating_sub(6) * GRANTED;
        let flows = vec![message(0, 2, size(short)), message(1, 2, size(long))];
        let sets = [("transport.scheduled", "4"), ("transport.cutoffs", "[\"9KB\", \"50KB\", \"300KB\"]")];
        let (found, _) = ends(star(3, flows, &sets));
        let alone = D + (short + H - 1) * W;
        // What needs no grant of the longer one goes before what needs one of the shorter.
        let ahead = if short > 6 { 6 * W } else { 0 };
        assert!((alone..=alone + ahead + H * W).contains(&found[0]), "{short} {long}: {} {alone}", found[0]);
        assert_eq!(found[1], D + (short + long + H - 1) * W, "{short} {long}");
    }
}

#[test]
fn a_sender_serves_the_shorter_message_first() {
    for (short, long) in [(1, 2), (2, 6), (5, 6)] {
        let flows = vec![message(0, 1, short * G), message(0, 2, long * G)];
        let (found, _) = ends(star(3, flows, &[]));
        assert_eq!(found[0], D + (short + H - 1) * W, "{short} {long}");
        assert_eq!(found[1], D + (short + long + H - 1) * W, "{short} {long}");
    }
}

#[test]
fn nothing_limits_an_incast_of_short_messages() {
    for (senders, packets) in [(2, 1), (8, 6), (32, 3)] {
        let flows = (0..senders).map(|src| message(src, senders, packets * G)).collect();
        let (mut found, outcome) = ends(star(senders + 1, flows, &[]));
        found.sort_unstable();
        let senders = u64::from(senders);
        assert_eq!(*found.last().unwrap(), D + (senders * packets + H - 1) * W);
        assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0);
    }
}

#[test]
fn messages_of_a_pair_end_in_the_order_of_their_sizes() {
    for seed in 0..4u64 {
        let sizes = (0..40).map(|number: u64| 100 + (number * 7919 + seed * 104_729) % 97 * 911);
        let (found, _) = ends(star(2, sizes.clone().map(|size| message(0, 1, size)).collect(), &[]));
        let mut order: Vec<(u64, u64)> = found.into_iter().zip(sizes).collect();
        order.sort_unstable();
        assert!(order.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{order:?}");
    }
}

/// Two racks, on which links lose this share of packets of these kinds.
fn lossy(kinds: u32, share: f64, seed: u64, sets: &[(&str, &str)]) -> Config {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n\
                [transport]\nkind = \"homa\"\n[run]\nstall = \"10s\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    let mut config = Config {
        seed,
        traffic: traffic(random_flows(6, 60, seed)),
        ..scenario.config().expect("a configuration")
    };
    config.failures.loss = Some(LinkLoss { share, kinds });
    config
}

#[test]
fn no_message_is_stuck_whatever_kind_of_packet_links_lose() {
    let mut kinds = vec![LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS, LinkLoss::ALL];
    kinds.extend((0..5).map(LinkLoss::control));
    for (number, kinds) in kinds.into_iter().enumerate() {
        for overcommit in ["0", "1"] {
            for share in [0.02, 0.2] {
                let sets = [("transport.overcommit", overcommit)];
                let (kept, _) = run(lossy(kinds, share, number as u64, &sets));
                let done = kept.flows.iter().filter(|flow| flow.finish.is_some()).count();
                assert_eq!(done, 60, "kind {number} lost at {share}, overcommitment {overcommit}");
            }
        }
    }
}

#[test]
fn a_sender_that_vanishes_does_not_hold_up_others() {
    // The shorter message has the only grants when its host's link goes down.
    let sets = [
        ("transport.overcommit", "1"),
        ("failures.event", "[{ at = \"50us\", link = [\"host0\", \"s0\"], change = \"down\" }]"),
        ("run.until", "100ms"),
    ];
    let flows = vec![message(0, 2, 500_000), message(1, 2, 1_000_000)];
    let (kept, _) = run(star(3, flows, &sets));
    let mut done: Vec<(u32, bool)> =
        kept.flows.iter().map(|flow| (flow.flow, flow.finish.is_some())).collect();
    done.sort_unstable();
    assert_eq!(done, [(0, false), (1, true)]);
}

#[test]
fn pauses_and_every_number_of_levels_lose_nothing() {
    for priorities in 1..=8 {
        for pauses in ["true", "false"] {
            let levels = priorities.to_string();
            let sets = [
                ("transport.priorities", levels.as_str()),
                ("switch.pfc.enabled", pauses),
                ("switch.buffer", "4MB"),
            ];
            let (kept, _) = run(lossy(LinkLoss::ALL, 0.0, 7, &sets));
            assert!(kept.flows.iter().all(|flow| flow.finish.is_some()), "{priorities} {pauses}");
        }
    }
}

#[test]
fn an_impossible_setting_is_an_error() {
    let problems = |sets: &[(&str, &str)]| {
        let text = "[topology]\nkind = \"star\"\nhosts = 4\n[transport]\nkind = \"homa\"\n\
                    [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        load(text, sets).map(|_| String::new()).unwrap_or_else(|error| error)
    };
    for (set, part) in [
        (("transport.rtt_bytes", "10B"), "at least a packet"),
        (("transport.rto", "1ns"), "expected a time"),
        (("transport.cutoffs", "[\"2KB\", \"1KB\"]"), "ascending"),
        (("transport.cutoffs", "[true]"), "expected a size"),
        (("transport.cutoffs", "[1, 2, 3, 4, 5, 6, 7]"), "at most 8"),
        (("transport.scheduled", "8"), "at most 8"),
    ] {
        let found = problems(&[set]);
        assert!(found.contains(part), "{set:?}: {found}");
    }
}

#[test]
fn check_reports_the_cutoffs_that_follow_from_the_sizes() {
    let text = "[topology]\nkind = \"star\"\nhosts = 4\nhost_link = { rate = \"10Gbps\", delay = \"500ns\" }\n\
                [transport]\nkind = \"homa\"\n[[workload]]\nkind = \"poisson\"\nsizes = \"w1\"\ncount = 1000\n";
    let cutoffs = |sets: &[(&str, &str)]| {
        let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
        scenario.check()["transports"][0]["unscheduled_cutoffs_bytes"].clone()
    };
    let found: Vec<u64> = serde_json::from_value(cutoffs(&[])).expect("a list of sizes");
    assert_eq!(found.len(), 6, "seven unscheduled levels for W1");
    assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
    assert_eq!(cutoffs(&[("transport.cutoffs", "[\"1KB\", 5000]")]), serde_json::json!([1000, 5000]));
}

#[test]
fn a_message_that_waits_for_grants_has_no_timeout() {
    let flows = (0..8).map(|src| message(src, 8, 200_000)).collect();
    let sets = [("transport.rto", "100us"), ("transport.overcommit", "1")];
    let (kept, _) = run(star(9, flows, &sets));
    // One after the other: the last one waits for more than a millisecond.
    assert!(
        completion_times(&kept).iter().any(|fct| *fct > Time::from_us(1200)),
        "{:?}",
        completion_times(&kept)
    );
    // The first packet that is granted has the lowest level, as one sender is active then: it waits below all later
    // ones. The other seven messages only wait for grants.
    assert!(kept.flows.iter().all(|flow| flow.timeouts == 0), "{:?}", kept.flows);
}

#[test]
fn nothing_is_sent_again_that_only_waits_before_the_receiver() {
    for (size, rto) in [(8_000, "50us"), (8_000, "20us"), (300_000, "50us"), (300_000, "1ms")] {
        let flows = (0..16).map(|src| message(src, 16, size)).collect();
        let (kept, outcome) = run(star(17, flows, &[("transport.rto", rto)]));
        let last = completion_times(&kept).into_iter().max().expect("flows");
        assert!(last.0 > 16 * 8 * size * 100, "queues are full until {last}");
        assert_eq!(losses_of(&outcome).retransmitted, 0, "{size} B, rto {rto}");
        assert!(kept.flows.iter().all(|flow| flow.timeouts == 0), "{size} B, rto {rto}");
    }
}

#[test]
fn a_loss_is_repaired_after_a_timeout_although_the_link_is_busy_with_others() {
    // Three messages keep the receiver's link busy for 12 ms; packets of a fourth are lost, which has a higher level.
    let event = "[{ at = \"500us\", lasts = \"10us\", link = [\"host0\", \"s0\"], change = \"down\" }]";
    let sets = [("transport.rto", "200us"), ("failures.event", event)];
    let mut flows: Vec<FlowSpec> = (1..4).map(|src| message(src, 4, 5_000_000)).collect();
    flows.push(FlowSpec { start: Time::from_us(498), ..message(0, 4, U) });
    let (kept, outcome) = run(star(5, flows, &sets));
    assert!(losses_of(&outcome).lost() > 0);
    let time = completion_times(&kept)[3];
    assert!(time < Time::from_us(400), "{time}");
}

/// One timeout requests all that is missing: without it every packet that was lost would cost one.
#[test]
fn all_that_is_missing_is_requested_at_once() {
    let sets = [("transport.rto", "500us")];
    let alone = star(2, vec![message(0, 1, 5_000_000)], &sets);
    for seed in 0..4 {
        let mut config = Config { seed, ..alone.clone() };
        config.failures.loss = Some(LinkLoss { share: 0.01, kinds: LinkLoss::DATA });
        let (kept, outcome) = run(config);
        let lost = sum_of(&outcome, |port| port.packets_lost);
        assert!(lost > 20, "{lost}");
        let timeouts = kept.flows[0].timeouts;
        // New packets are lost as well, before and after each round.
        assert!(u64::from(4 * timeouts) < lost, "{timeouts} timeouts of {lost} packets");
    }
}

/// A star at 100 Gb/s with 1 us links. Links of these hosts are down from a time on, for another one, both in nanoseconds.
fn outages(size: u64, times: &[(u32, u32, u32)]) -> Config {
    let text = "[topology]\nkind = \"star\"\nhosts = 2\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                [transport]\nkind = \"homa\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let event = |(host, at, lasts): &(u32, u32, u32)| {
        format!(
            "{{ at = \"{at}ns\", lasts = \"{lasts}ns\", link = [\"host{host}\", \"s0\"], change = \"down\" }}"
        )
    };
    let events = format!("[{}]", times.iter().map(event).collect::<Vec<_>>().join(", "));
    let sets: &[(&str, &str)] = if times.is_empty() { &[] } else { &[("failures.event", &events)] };
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    Config { traffic: traffic(vec![message(0, 1, size)]), ..scenario.config().expect("a configuration") }
}

#[test]
fn lost_packets_cost_one_timeout_however_many_gaps_they_leave() {
    let gaps = [200_000, 230_000, 260_000, 290_000].map(|at| (0, at, 100));
    let took = |gaps: &[(u32, u32, u32)]| {
        let (kept, outcome) = run(outages(5_000_000, gaps));
        (completion_times(&kept)[0], losses_of(&outcome), kept.flows[0].timeouts)
    };
    let (whole, ..) = took(&[]);
    let rto = Time::from_ms(1);
    for number in 1..=gaps.len() {
        let (time, losses, timeouts) = took(&gaps[..number]);
        assert!(losses.lost() as usize >= 2 * number, "{losses:?}");
        assert_eq!(losses.retransmitted, losses.lost());
        assert_eq!(losses.retransmitted_spurious, 0);
        // The link is not full for the rest of the message: what is missing counts as in flight until it is requested.
        let slower = Time(whole.0 * 3);
        assert!(time < rto + slower, "{number} gaps: {time}");
        // The receiver's round of RESENDs, and the sender's request for the acknowledgement.
        assert!(timeouts <= 2, "{number} gaps: {timeouts} timeouts");
    }
}

#[test]
fn a_window_that_was_lost_is_whole_again_after_a_round() {
    // All that is in flight is lost, in the middle of a message; the rest goes at line rate.
    let (kept, outcome) = run(outages(20_000_000, &[(1, 200_000, 20_000)]));
    let (whole, _) = run(outages(20_000_000, &[]));
    let [time, whole] = [kept, whole].map(|kept| completion_times(&kept)[0]);
    assert!(losses_of(&outcome).lost() > 20);
    assert!(time < whole + Time::from_us(1060), "{time} {whole}");
}

#[test]
fn a_request_of_the_sender_has_what_is_missing_sent_again() {
    // Packets are lost, and so are the requests that the receiver sends after 1 005 and 3 005 us, when its timeout has doubled.
    let (kept, _) = run(outages(20_000, &[(0, 1000, 1000), (1, 1_005_000, 500), (1, 3_004_900, 200)]));
    let time = completion_times(&kept)[0];
    assert!(time < Time::from_us(3100), "{time}");
}

#[test]
fn packets_that_are_late_and_not_lost_are_not_sent_again() {
    // Sprayed over paths of unlike delay, and waiting in a queue for less than a timeout.
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\n\
                [transport]\nkind = \"homa\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let scenario = load(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let flows = (0..8).map(|src| message(src, 8 + src % 4, 300_000)).collect();
    let (kept, outcome) =
        run(Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") });
    assert!(kept.flows.iter().all(|flow| flow.timeouts == 0 && flow.packets_retransmitted == 0));
    assert_eq!(losses_of(&outcome).retransmitted, 0);
}

#[test]
fn a_lone_message_takes_its_ideal_time_to_the_picosecond() {
    let sizes =
        [1, 281, 1000, 1442, 1443, 1456, 1457, 2884, 2890, 10_000, 55_000, 55_500, 100_000, 1_000_000];
    for size in sizes {
        let (kept, _) = run(outages(size, &[]));
        assert_eq!(completion_times(&kept)[0], kept.flows[0].ideal, "{size} B");
    }
    // The same with all packets of a message on one path.
    for size in sizes {
        let text = "[topology]\nkind = \"star\"\nhosts = 2\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                    [transport]\nkind = \"homa\"\nspray = false\n[switch]\nbalancer = { kind = \"ecmp\" }\n\
                    [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        let config =
            load(text, &[]).unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
        let (kept, _) = run(Config { traffic: traffic(vec![message(0, 1, size)]), ..config });
        assert_eq!(completion_times(&kept)[0], kept.flows[0].ideal, "{size} B on one path");
    }
}

/// While a long packet of another message is on the link, nothing comes, and the link is not idle.
#[test]
fn messages_with_longer_packets_make_no_packet_count_as_lost_that_only_waits() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\nhost_link = { rate = \"10Gbps\", delay = \"500ns\" }\n\
                [transport]\nkind = \"homa\"\nmtu = \"1000B\"\n\
                [[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 2, size = \"4MB\" }]\n\
                [[workload]]\nkind = \"flows\"\ngroup = \"long\"\ntransport = { mtu = \"9000B\" }\n\
                flows = [{ src = 1, dst = 2, size = \"4MB\" }]\n";
    let (_, outcome) = run(load(text, &[]).unwrap().config().unwrap());
    let losses = losses_of(&outcome);
    assert_eq!((losses.retransmitted, losses.timeouts), (0, 0));
}
