//! Connections that stay open over TCP and multipath TCP: times computed by hand, windows that stay, losses, regions.

use crate::common::*;
use proptest::prelude::*;
use weftline_sim::config::{Config, LinkLoss, Sampled, Until};
use weftline_sim::measure::{Entity, FlowRecord};
use weftline_sim::units::Time;
use weftline_sim::workload::{FlowSource, FlowSpec, Traffic};

/// Flows over one connection, each of which waits for the one before it: (bytes, from when on). The connection may stay open.
fn chain(src: u32, dst: u32, persistent: bool, flows: &[(u64, Time)]) -> Chain {
    let flow = |(order, &(size, start)): (usize, &(u64, Time))| FlowSpec {
        waits_for: u16::from(order > 0),
        connection: persistent.then_some(0),
        ..flow(src, dst, size, start)
    };
    Chain { flows: flows.iter().enumerate().map(flow).collect(), next: 0 }
}

#[derive(Clone)]
struct Chain {
    flows: Vec<FlowSpec>,
    next: usize,
}

impl FlowSource for Chain {
    fn next(&mut self) -> Option<FlowSpec> {
        self.next += 1;
        self.flows.get(self.next - 1).copied()
    }
    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }
    fn dependencies(&self) -> Vec<(u32, u32)> {
        (1..self.flows.len() as u32).map(|order| (order - 1, order)).collect()
    }
}

fn config(text: &str, sets: &[(&str, &str)], chains: Vec<Chain>) -> Config {
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    let sources = chains.into_iter().map(|chain| Box::new(chain) as Box<dyn FlowSource>).collect();
    let traffic = Traffic { sources, groups: vec!["all".into()] };
    let mut config = Config { traffic, ..scenario.config().expect("a configuration") };
    config.until = Until::FlowsDone { grid: Time::from_ms(1), stall: Time::from_ms(100_000) };
    config
}

/// Flows of one host to another, in tenths of a microsecond.
fn tenths(text: &str, sets: &[(&str, &str)], persistent: bool, flows: &[(u64, Time)]) -> Vec<u64> {
    let (kept, _) = run(config(text, sets, vec![chain(0, 4, persistent, flows)]));
    completion_times(&kept).iter().map(|fct| fct.ns() / 100).collect()
}

/// From the first bit of a full segment to its end at the other side, and of an acknowledgement back.
const WAY: u64 = 84 + 84 + 840 + 100_000;
const BACK: u64 = 100_048;

#[test]
fn a_second_flow_leaves_in_the_window_that_the_first_has_left_without_a_handshake() {
    // Ten segments open the window to twenty, thirty (in two rounds) to forty.
    let flows = [(10_000, Time::ZERO), (20_000, Time::ZERO), (30_000, Time::ZERO), (500, Time::ZERO)];
    let handshake = 2 * 100_048 + 4;
    let first = handshake + WAY + 9 * 840 + BACK;
    // All of it back to back: one round trip and the time that the bottleneck takes.
    let at_once = |segments: u64| WAY + (segments - 1) * 840 + BACK;
    let short = 44 + 44 + 440 + 100_000 + BACK;
    let warm = tenths(DUMBBELL, &[], true, &flows);
    assert_eq!(warm, [first, at_once(20), at_once(30), short]);
    // Each over its own: a handshake, and twenty and thirty in two rounds of ten and what is left.
    let two_rounds = |segments: u64| handshake + WAY + BACK + at_once(segments - 10);
    let cold = tenths(DUMBBELL, &[], false, &flows);
    assert_eq!(cold, [first, two_rounds(20), two_rounds(30), handshake + short]);
}

#[test]
fn a_warm_connection_takes_its_ideal_time() {
    let flows = [(100_000, Time::ZERO), (100_000, Time::ZERO)];
    let wide = [("transport.initial_window", "100")];
    let (kept, _) = run(config(DUMBBELL, &wide, vec![chain(0, 4, true, &flows)]));
    let [first, second] = [0, 1].map(|flow: usize| &kept.flows[flow]);
    assert_eq!(second.finish.unwrap() - second.start, second.ideal);
    assert_eq!(first.ideal, second.ideal, "the ideal has no handshake");
    assert!(first.finish.unwrap() - first.start > first.ideal);
}

#[test]
fn after_idling_for_longer_than_the_timeout_the_first_window_comes_back() {
    let at = |ms| [(10_000, Time::ZERO), (20_000, Time::from_ms(ms))];
    let at_once = WAY + 19 * 840 + BACK;
    let two_rounds = WAY + BACK + WAY + 9 * 840 + BACK;
    // The first ends after 41 ms; the timeout is 200 ms.
    let second = |sets: &[(&str, &str)], ms| tenths(DUMBBELL, sets, true, &at(ms))[1];
    assert_eq!(second(&[], 200), at_once);
    assert_eq!(second(&[], 300), two_rounds);
    assert_eq!(second(&[("transport.window_validation", "false")], 300), at_once);
    let four = [("transport.subflows", "1"), ("transport.ack_every", "1")];
    let second =
        |sets: &[(&str, &str)], ms| tenths(FOUR_PATHS, &[&four[..], sets].concat(), true, &at(ms))[1];
    // At 1 Gb/s a byte takes 8 ns, at 100 Mb/s 80: 2 (8 + 80) ns a byte of what is sent alone.
    let alone = |bytes: u64| (4_000_000 + bytes * 176) / 100;
    let at_once = alone(1050) + 19 * 840 + alone(50);
    assert_eq!(second(&[], 100), at_once);
    assert_eq!(second(&[], 300), 2 * (alone(1050) + alone(50)) + 9 * 840);
    assert_eq!(second(&[("transport.window_validation", "false")], 300), at_once);
}

#[test]
fn flows_keep_their_order_their_packets_and_their_goodput() {
    let flows: Vec<(u64, Time)> = (0..20).map(|flow| (700 * flow + 1, Time::from_us(10 * flow))).collect();
    for text in [DUMBBELL, FOUR_PATHS] {
        let mut config = config(text, &[], vec![chain(0, 4, true, &flows)]);
        config.measure.flow_goodput = Some(Sampled { what: vec![3, 19], every: Time::from_ms(1) });
        let (kept, _) = run(config);
        for (flow, &(size, _)) in kept.flows.iter().zip(&flows) {
            assert_eq!(
                (flow.size, flow.packets_sent, flow.packets_retransmitted),
                (size, size.div_ceil(1000), 0)
            );
        }
        assert!(kept.flows.windows(2).all(|pair| pair[1].start >= pair[0].finish.unwrap_or(Time::MAX)));
        // A sample reports what came in the millisecond before it.
        let bits = |flow: u32| -> f64 {
            let of = |s: &&weftline_sim::measure::Sample| {
                s.metric == "goodput_bps" && s.entity == Entity::Flow(flow)
            };
            kept.samples.iter().filter(of).map(|s| s.value / 1000.0).sum()
        };
        assert!(
            (bits(3) - 8.0 * 2101.0).abs() < 1.0 && (bits(19) - 8.0 * 13_301.0).abs() < 1.0,
            "{}",
            bits(19)
        );
    }
}

#[test]
fn subflows_are_opened_once_and_used_by_all_flows() {
    let flows = [(400_000, Time::ZERO), (400_000, Time::ZERO), (400_000, Time::ZERO)];
    let opened = |persistent| {
        let sets = [("measure.pcap", "\"host0->*\""), ("measure.subflows", "true")];
        let config = config(FOUR_PATHS, &sets, vec![chain(0, 4, persistent, &flows)]);
        let (kept, _) = run(config);
        syns(&kept, persistent);
        let used = |flow: u32| {
            let of = |s: &&weftline_sim::measure::Sample| {
                s.metric == "subflows_used" && s.entity == Entity::Flow(flow)
            };
            kept.samples.iter().find(of).map(|s| s.value)
        };
        assert_eq!([0, 1, 2].map(used), [Some(4.0); 3]);
        let carried = |flow: u32| -> f64 {
            let of = |s: &&weftline_sim::measure::Sample| {
                s.metric.starts_with("subflow")
                    && s.metric.ends_with("_bytes")
                    && s.entity == Entity::Flow(flow)
            };
            kept.samples.iter().filter(of).map(|s| s.value).sum()
        };
        assert_eq!([0, 1, 2].map(carried), [400_000.0; 3]);
        completion_times(&kept)
    };
    let (warm, cold) = (opened(true), opened(false));
    assert_eq!(warm[0], cold[0]);
    // A handshake of two ways of 4 ms, a round trip until the joins, two more for theirs.
    assert!(
        warm[1] + Time::from_ms(8) < cold[1] && warm[2] + Time::from_ms(8) < cold[2],
        "{warm:?} {cold:?}"
    );
}

/// Of the frames that host 0 sent: SYNs that open a connection, and SYNs that join one, of all flows together.
fn syns(kept: &Kept, persistent: bool) {
    // An MPTCP option, its subtype in the upper half of its third byte, in a frame of 14 B of Ethernet, 20 B of IPv4, and TCP.
    let subtype = |frame: &[u8]| {
        let options = &frame[54..];
        let at = options.windows(2).position(|pair| pair[0] == 30 && (pair[1] == 4 || pair[1] == 12))?;
        Some(options[at + 2] >> 4)
    };
    let syns = kept.frames.iter().filter(|frame| frame.3[47] & 2 != 0);
    let subtypes: Vec<_> = syns.map(|frame| subtype(&frame.3)).collect();
    let of = |subtype: u8| subtypes.iter().filter(|&&other| other == Some(subtype)).count();
    let connections = if persistent { 1 } else { 3 };
    assert_eq!((of(0), of(1), subtypes.len()), (connections, 3 * connections, 4 * connections));
}

fn lossy(text: &str, sets: &[(&str, &str)], seed: u64, share: f64, kinds: u32) -> Vec<FlowRecord> {
    let sizes = [100, 30_000, 999, 1_000, 250_000, 1, 64_001, 20_000];
    let chain_of = |src: u32| {
        let flow = |at: u64| (sizes[(at + u64::from(src)) as usize % 8], Time::from_ms(at * at * 40));
        chain(src, 4 + src, true, &(0..8).map(flow).collect::<Vec<_>>())
    };
    let sets = [
        &[
            ("transport.rto_syn", "\"20ms\""),
            ("transport.rto_min", "\"20ms\""),
            ("transport.rto_max", "\"1s\""),
            ("transport.syn_retries", "30"),
            ("transport.retries", "1000"),
        ],
        sets,
    ]
    .concat();
    let mut config = config(text, &sets, (0..3).map(chain_of).collect());
    config.seed = seed;
    config.failures.loss = Some(LinkLoss { share, kinds });
    run(config).0.flows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_packets_are_lost_nothing_is_stuck(
        seed in 0u64..1 << 40, multipath: bool, kind in 0usize..7, percent in 1u32..8, law in 0usize..4, ns3: bool,
    ) {
        let kinds = [
            LinkLoss::ALL, LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS, LinkLoss::control(1), LinkLoss::control(2),
            LinkLoss::control(3), LinkLoss::control(4),
        ][kind];
        let text = if multipath { FOUR_PATHS } else { DUMBBELL };
        let laws = ["newreno", "cubic", "bbr", "vegas"];
        let controller = format!("{{ kind = \"{}\" }}", if multipath { "lia" } else { laws[law] });
        let mut sets = vec![("transport.controller", controller.as_str())];
        if multipath {
            sets.push(("transport.scheduler", ["\"min-rtt\"", "\"round-robin\"", "\"redundant\"", "\"linux\""][law]));
        } else if ns3 && law < 3 {
            sets.push(("transport.profile", "\"ns3-3.35\""));
        }
        let flows = lossy(text, &sets, seed, f64::from(percent) / 100.0, kinds);
        prop_assert_eq!(flows.len(), 24);
        for flow in &flows {
            prop_assert!(flow.finish.is_some(), "{:?}", flow);
        }
        let (sent, again) = flows.iter().fold((0, 0), |sum, flow| {
            (sum.0 + flow.packets_sent, sum.1 + flow.packets_retransmitted)
        });
        let whole: u64 = flows.iter().map(|flow| flow.size.div_ceil(1000)).sum();
        if !ns3 || multipath {
            prop_assert_eq!(sent, whole + again);
        }
    }
}

#[test]
fn flows_after_a_connection_that_dies_are_unfinished() {
    for text in [DUMBBELL, FOUR_PATHS] {
        let sets = [("transport.syn_retries", "2"), ("transport.rto_syn", "\"20ms\"")];
        let flows = [(1_000, Time::ZERO), (1_000, Time::from_ms(5_000))];
        let mut chain = chain(0, 4, true, &flows);
        // It does not wait, but comes when the first has died.
        chain.flows[1].waits_for = 0;
        let mut config = config(text, &sets, vec![chain]);
        config.failures.loss = Some(LinkLoss { share: 1.0, kinds: LinkLoss::ALL });
        config.until = Until::At(Time::from_ms(10_000));
        let (kept, _) = run(config);
        assert_eq!(
            kept.flows.iter().map(|flow| (flow.flow, flow.finish)).collect::<Vec<_>>(),
            [(0, None), (1, None)]
        );
        assert!(kept.flows[1].start >= Time::from_ms(5_000));
    }
}

/// Two pods whose ToRs learn subflows and their connections from the packets of set-up; what a ToR does not know it leaves alone.
const PODS: &str = r#"
[topology]
kind = "pods"
hosts_per_leaf = 2

[switch]
pfc = { enabled = false }
balancer = { kind = "mp-hula", ranks = 2, idle = "3ms" }

[transport]
kind = "mptcp"
subflows = 4
rto_min = "1ms"
controller = { kind = "lia" }

[[workload]]
kind = "request-response"
size = "200KB"
load = 0.05
connections = 1
duration = "20ms"
"#;

#[test]
fn tors_mark_the_packets_of_a_connection_that_stays_open_for_as_long_as_they_remember_it() {
    let marked = |idle: &str| {
        let sets = [("switch.balancer.idle", idle), ("measure.pcap", "\"leaf2->agg*\"")];
        let scenario = load(PODS, &sets).unwrap_or_else(|error| panic!("{error}"));
        let (kept, _) = run(scenario.config().expect("a configuration"));
        assert!(kept.flows.iter().all(|flow| flow.finish.is_some()));
        let full = kept.frames.iter().map(|frame| frame.2).max().unwrap();
        // A mark is 9 B on every packet, in a capture an IPv4 option of 12.
        let marked = kept.frames.iter().filter(|frame| frame.2 == full).count();
        let plain = kept.frames.iter().filter(|frame| frame.2 == full - 12).count();
        (marked, plain)
    };
    let (all, none) = marked("\"1s\"");
    assert!(all > 1000 && none == 0, "{all} {none}");
    let (some, others) = marked("\"1ms\"");
    assert!(some > 100 && others > 100, "a token that was forgotten is not told again: {some} {others}");
}

#[test]
fn requests_may_overtake_the_acknowledgements_of_what_they_follow() {
    for (transport, loss) in [("tcp", 0.0), ("tcp", 0.02), ("mptcp", 0.0), ("mptcp", 0.02)] {
        let kind = format!("\"{transport}\"");
        let sets = [
            ("transport.kind", kind.as_str()),
            ("transport.controller.kind", "\"newreno\""),
            ("switch.balancer", "{ kind = \"spray\" }"),
            ("workload.0.load", "0.3"),
            ("workload.0.size", "\"7KB\""),
            ("workload.0.duration", "\"2ms\""),
            ("transport.rto_syn", "\"1ms\""),
            ("transport.rto_initial", "\"1ms\""),
        ];
        let text = if transport == "tcp" { PODS.replace("subflows = 4\n", "") } else { PODS.to_string() };
        let mut config =
            load(&text, &sets).unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
        config.failures.loss = (loss > 0.0).then_some(LinkLoss { share: loss, kinds: LinkLoss::ALL });
        let (kept, outcome) = run(config);
        assert!(kept.flows.len() > 200, "{}", kept.flows.len());
        assert!(
            kept.flows.iter().all(|flow| flow.finish.is_some()),
            "{transport} {loss} {:?}",
            outcome.ending
        );
        for flow in &kept.flows {
            assert_eq!(
                flow.packets_sent,
                flow.size.div_ceil(1448) + flow.packets_retransmitted,
                "{transport} {flow:?}"
            );
        }
    }
}
