//! The same configuration gives the same bits, whatever the order in which its flows are listed; and how runs end.

use crate::common::*;
use proptest::prelude::*;
use std::time::Instant;
use weftline_sim::balance::BalancerConfig;
use weftline_sim::balance::ecmp::EcmpParameters;
use weftline_sim::balance::spray::SprayParameters;
use weftline_sim::config::{Change, Config, Failure, Failures, Forwarding, Recovery, Until};
use weftline_sim::measure::{Ending, Outcome};
use weftline_sim::topology::Topology;
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::fat_tree::FatTree;
use weftline_sim::topology::leaf_spine::LeafSpine;
use weftline_sim::topology::star::Star;
use weftline_sim::units::{Bytes, Rate, Time};
use weftline_sim::workload::{FlowSpec, Traffic};

fn star(hosts: u64) -> Topology {
    Star { hosts, host_link: link(Rate::from_gbps(100), Time::from_us(1)) }.build().unwrap()
}

#[test]
fn the_same_configuration_gives_the_same_fingerprint() {
    let tree = FatTree { k: 4, ..FatTree::default() }.build().unwrap();
    let mut seen = Vec::new();
    for controller in ["none", "hpcc", "dcqcn", "dcqcnw", "timely", "timelyw", "dctcp"] {
        for balancer in
            [BalancerConfig::Ecmp(EcmpParameters { salt: 1 }), BalancerConfig::Spray(SprayParameters::Random)]
        {
            let once = || {
                let mut config = normal(controller, tree.clone(), random_flows(16, 200, 5));
                config.switch.balancer = balancer.clone();
                rdma_of(&mut config).recovery = Recovery::SelectiveRepeat { reordering: 50 };
                let (kept, outcome) = run(config);
                assert_eq!(outcome.flows_done, 200);
                (kept.flows, outcome.fingerprint, outcome.events, outcome.packet_hops)
            };
            let first = once();
            assert_eq!(first, once(), "{controller}, {balancer:?}");
            seen.push(first.1);
        }
    }
    seen.sort_unstable();
    seen.dedup();
    // What is on the wire differs between plain packets, telemetry and timestamps, and between the balancers.
    assert!(seen.len() >= 6, "fingerprints tell runs apart: {seen:?}");
}

#[test]
fn the_order_of_the_sources_does_not_matter_to_flows_of_different_hosts() {
    // All hosts start at the same time, every host in a source of its own. Flow ids follow the order of the sources, and
    // ECMP hashes them: so there is one path only.
    let topology = star(16);
    let with = |order: &[u32], controller: &str| {
        let mut config = normal(controller, topology.clone(), vec![]);
        let of_host = |&src: &u32| -> Box<dyn weftline_sim::workload::FlowSource> {
            let to = |k: u32| flow(src, (src + k) % 16, 20_000 + 1000 * u64::from(k), Time::from_us(1));
            Box::new(Listed([1, 5, 9].map(to).to_vec().into_iter()))
        };
        let sources = order.iter().map(of_host).collect();
        config.traffic = Traffic { sources, groups: vec!["all".into()] };
        let (kept, outcome) = run(config);
        let mut flows: Vec<_> = kept.flows.iter().map(|f| (f.src, f.dst, f.finish, f.packets_sent)).collect();
        flows.sort_unstable();
        (flows, outcome.packet_hops, outcome.events, outcome.ports)
    };
    let forwards: Vec<u32> = (0..16).collect();
    let backwards: Vec<u32> = (0..16).rev().collect();
    let mixed: Vec<u32> = (0..16).map(|k| k * 7 % 16).collect();
    for controller in ["none", "hpcc", "dcqcn", "timely"] {
        let first = with(&forwards, controller);
        assert_eq!(first, with(&backwards, controller), "{controller}");
        assert_eq!(first, with(&mixed, controller), "{controller}");
    }
}

#[test]
fn a_run_whose_flow_cannot_end_is_stalled() {
    for rto in [None, Some(Time::from_us(100))] {
        let flows = vec![flow(0, 1, 1_000_000, Time::ZERO), flow(2, 1, 10_000, Time::ZERO)];
        let mut config = normal("none", star(3), flows);
        rdma_of(&mut config).rto = rto;
        let down = Failure { at: Time::from_us(20), change: Change::LinkDown(0) };
        config.failures = Failures { detection: Time::from_us(5), events: vec![down], loss: None };
        config.until = Until::FlowsDone { grid: Time::from_us(10), stall: Time::from_ms(2) };
        let (kept, outcome) = run(config);
        assert_eq!((outcome.ending, outcome.flows, outcome.flows_done), (Ending::Stalled, 2, 1));
        // The last byte comes within 5 us of the failure; the run ends at the next point of the grid 2 ms later.
        assert!(outcome.end >= Time::from_us(2020) && outcome.end <= Time::from_us(2040), "{}", outcome.end);
        assert_eq!(kept.flows.iter().map(|f| f.finish.is_some()).collect::<Vec<_>>(), [false, true]);
    }
}

#[test]
fn a_pause_between_flows_is_no_stall() {
    let flows = vec![flow(0, 1, 1000, Time::ZERO), flow(0, 1, 1000, Time::from_ms(50))];
    let mut config = normal("none", star(2), flows);
    config.until = Until::FlowsDone { grid: Time::from_us(10), stall: Time::from_ms(1) };
    let (_, outcome) = run(config);
    assert_eq!((outcome.ending, outcome.flows_done), (Ending::Done, 2));
}

#[test]
fn an_interrupted_run_ends_soon_with_its_accounts_in_order() {
    // An hour of simulated traffic; the watcher stops it at the second call.
    let flows = (0..8).map(|src| flow(src, 8, 1 << 42, Time::ZERO)).collect();
    let config = normal("dctcp", star(9), flows);
    let (mut kept, started, mut looks) = (Kept::default(), Instant::now(), 0);
    let outcome = weftline_sim::run(config, &mut kept, &mut |progress| {
        assert!(progress.now > Time::ZERO && progress.packet_hops > 0);
        looks += 1;
        looks < 2
    })
    .expect("a valid run");
    assert!(started.elapsed().as_secs() < 5);
    assert_eq!((outcome.ending, outcome.flows_done, kept.flows.len()), (Ending::Interrupted, 0, 8));
    assert!(kept.flows.iter().all(|flow| flow.finish.is_none() && flow.packets_sent > 0));
    assert_eq!(sum_of(&outcome, |port| port.packets_sent), outcome.packet_hops);
    assert_eq!(sum_of(&outcome, |port| port.bytes_sent), outcome.bytes_on_wire);
}

/// What may go wrong, all at once.
#[derive(Debug, Clone)]
struct Chaos {
    flows: Vec<FlowSpec>,
    events: Vec<(u64, u8, u32)>,
    detection_us: u64,
    pfc: bool,
    cut_through: bool,
    spray: bool,
    selective: bool,
    controller: &'static str,
    buffer: u64,
    until_ns: u64,
}

fn chaos() -> impl Strategy<Value = Chaos> {
    let flows = (1usize..60, 0u64..1000).prop_map(|(count, seed)| random_flows(8, count, seed));
    let events = prop::collection::vec((0u64..120, 0u8..6, 0u32..12), 0..8);
    let controller = prop::sample::select(vec!["none", "hpcc", "dcqcn", "timelyw", "dctcp"]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flows, events, 0u64..30, flags, controller, 20_000u64..2_000_000, 1u64..300_000).prop_map(
        |(flows, mut events, detection_us, flags, controller, buffer, until_ns)| {
            events.sort_unstable();
            let (pfc, cut_through, spray, selective) = flags;
            Chaos {
                flows,
                events,
                detection_us,
                pfc,
                cut_through,
                spray,
                selective,
                controller,
                buffer,
                until_ns,
            }
        },
    )
}

/// Eight hosts on two leaves under two spines, with everything that the chaos asks for.
fn chaotic(chaos: &Chaos) -> Config {
    let network = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 4,
        extra_hosts: 0,
        host_link: link(Rate::from_gbps(100), Time::from_ns(500)),
        fabric_rate: Some(Rate::from_gbps(100)),
        fabric_delay: Time::from_us(1),
        oversubscription: 0.0,
    };
    let mut config = normal(chaos.controller, network.build().unwrap(), chaos.flows.clone());
    let switches: Vec<u32> = (8..12).collect();
    config.failures = Failures {
        detection: Time::from_us(chaos.detection_us),
        loss: None,
        events: chaos.events.iter().map(|&event| failure(event, 12, &switches)).collect(),
    };
    config.switch.pfc.enabled = chaos.pfc;
    // With PFC, headroom and reserves come on top of what is to be shared.
    config.switch.buffer = Bytes(chaos.buffer + if chaos.pfc { 400_000 } else { 0 });
    if chaos.cut_through {
        config.switch.forwarding = Forwarding::CutThrough { header: 64 };
    }
    if chaos.spray {
        config.switch.balancer = BalancerConfig::Spray(SprayParameters::Random);
    }
    let rdma = rdma_of(&mut config);
    rdma.rto = Some(Time::from_us(50));
    rdma.nack_interval = Time::from_us(5);
    if chaos.selective {
        rdma.recovery = Recovery::SelectiveRepeat { reordering: 3 };
    }
    config.until = Until::At(Time::from_ns(chaos.until_ns));
    config
}

fn in_order(kept: &Kept, outcome: &Outcome) {
    assert_eq!(sum_of(outcome, |port| port.packets_sent), outcome.packet_hops);
    let ended = kept.flows.iter().filter(|flow| flow.finish.is_some()).count() as u64;
    assert_eq!(ended, outcome.flows_done);
    for flow in &kept.flows {
        if let Some(finish) = flow.finish {
            let needed = flow.size.div_ceil(1000) + flow.packets_retransmitted;
            assert_eq!(flow.packets_sent, needed, "{flow:?}");
            assert!(finish <= outcome.end);
        }
    }
}

#[test]
fn packets_that_turn_back_and_the_pauses_of_their_peer_share_a_port() {
    // After the failure of leaf0 - spine1, packets from leaf1 that are at that spine go back to where they came from,
    // while pauses of that very link come and go. Found by the chaos below, once in some thousand runs.
    let mut paused = 0;
    for seed in 0..40 {
        let chaos = Chaos {
            flows: random_flows(8, 60, seed),
            events: vec![(20, 0, 9), (50, 2, 9), (80, 0, 10)],
            detection_us: 0,
            pfc: true,
            cut_through: seed % 2 == 0,
            spray: true,
            selective: seed % 4 < 2,
            controller: "dcqcn",
            buffer: 300_000,
            until_ns: 200_000,
        };
        let (kept, outcome) = run(chaotic(&chaos));
        in_order(&kept, &outcome);
        paused += sum_of(&outcome, |port| port.pauses);
    }
    assert!(paused > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// The engine balances every link and every buffer at the end, here in the middle of everything.
    #[test]
    fn accounts_balance_and_repeat_in_any_chaos(chaos in chaos()) {
        let (kept, outcome) = run(chaotic(&chaos));
        in_order(&kept, &outcome);
        if chaos.pfc && chaos.events.is_empty() {
            prop_assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0);
        }
        let (_, again) = run(chaotic(&chaos));
        prop_assert_eq!(outcome.fingerprint, again.fingerprint);
    }

    #[test]
    fn every_flow_ends_once_the_chaos_is_over(chaos in chaos()) {
        let mut config = chaotic(&chaos);
        let healed = Time::from_us(200);
        let up = |change| Failure { at: healed, change };
        config.failures.events.extend((0..12).map(|link| up(Change::LinkUp(link))));
        config.failures.events.extend((8..12).map(|switch| up(Change::SwitchUp(switch))));
        config.until = Until::FlowsDone { grid: Time::from_us(10), stall: Time::from_ms(50) };
        let (kept, outcome) = run(config);
        in_order(&kept, &outcome);
        let unfinished: Vec<_> = kept.flows.iter().filter(|flow| flow.finish.is_none()).collect();
        prop_assert!(outcome.ending == Ending::Done && unfinished.is_empty(), "{:?} {:?}", outcome.ending, unfinished);
    }
}
