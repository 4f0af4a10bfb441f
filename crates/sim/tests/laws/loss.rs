//! Lossy operation: what is dropped is sent again, by go-back-N and by selective repeat.

use crate::common::*;
use weftline_sim::balance::BalancerConfig;
use weftline_sim::balance::spray::SprayParameters;
use weftline_sim::config::{Change, Config, Failure, Failures, IrnConfig, Recovery};
use weftline_sim::measure::Outcome;
use weftline_sim::topology::Topology;
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::leaf_spine::LeafSpine;
use weftline_sim::topology::star::Star;
use weftline_sim::units::{Bytes, Rate, Time};
use weftline_sim::workload::FlowSpec;

const SELECTIVE: Recovery = Recovery::SelectiveRepeat { reordering: 3 };
const RATE: Rate = Rate::from_gbps(100);

fn star(hosts: u64) -> Topology {
    Star { hosts, host_link: link(RATE, Time::from_us(1)) }.build().unwrap()
}

/// PFC off and this much buffer.
fn lossy(
    controller: &str,
    topology: Topology,
    flows: Vec<FlowSpec>,
    recovery: Recovery,
    buffer: u64,
) -> Config {
    let mut config = normal(controller, topology, flows);
    config.switch.pfc.enabled = false;
    config.switch.buffer = Bytes(buffer);
    rdma_of(&mut config).recovery = recovery;
    rdma_of(&mut config).nack_interval = Time::from_us(10);
    config
}

fn retransmitted(kept: &Kept) -> u64 {
    kept.flows.iter().map(|flow| flow.packets_retransmitted).sum()
}

fn finished(config: Config) -> (Kept, Outcome) {
    let (kept, outcome) = run(config);
    assert_eq!(outcome.flows_done, outcome.flows, "{:?}", outcome.ending);
    for flow in &kept.flows {
        assert_eq!(flow.packets_sent, flow.size.div_ceil(1000) + flow.packets_retransmitted);
    }
    (kept, outcome)
}

#[test]
fn every_flow_of_a_lossy_incast_ends_and_selective_repeat_sends_again_only_what_was_dropped() {
    // A queue of up to 8/9 of 600 kB: ECN acts first, but sixteen windows of 52 kB do not fit.
    let flows: Vec<FlowSpec> = (0..16).map(|src| flow(src, 16, 500_000, Time::ZERO)).collect();
    for controller in ["dcqcn", "dcqcnw", "dctcp", "timely", "hpcc"] {
        let with = |recovery| {
            let mut config = lossy(controller, star(17), flows.clone(), recovery, 600_000);
            config.switch.lossy_alpha = 8.0;
            let (kept, outcome) = finished(config);
            assert_eq!(sum_of(&outcome, |port| port.pauses), 0);
            let last = completion_times(&kept).into_iter().max().unwrap();
            (retransmitted(&kept), sum_of(&outcome, |port| port.packets_dropped), last)
        };
        let (go_back, selective) = (with(Recovery::GoBackN), with(SELECTIVE));
        println!(
            "{controller}: again, dropped, last: {go_back:?} by go-back-N, {selective:?} by selective repeat"
        );
        assert!(selective.1 > 0 && selective.0 == selective.1, "{controller}: {selective:?}");
        assert!(go_back.0 > go_back.1, "{controller}: {go_back:?}");
        // What a loss costs beyond itself: nothing here, the packets in flight after it there. HPCC loses the ends of
        // its first windows, with little after them; TIMELY, unaware of losses, lets the network drop its excess.
        if controller != "hpcc" && controller != "timely" {
            assert!(4 * selective.0 < 3 * go_back.0, "{controller}: {selective:?} against {go_back:?}");
        }
    }
}

#[test]
fn without_congestion_control_selective_repeat_sends_again_exactly_what_was_dropped() {
    // Eight senders at full rate: what the port cannot carry is dropped, whatever comes back.
    let flows: Vec<FlowSpec> = (0..8).map(|src| flow(src, 8, 300_000, Time::ZERO)).collect();
    for recovery in [Recovery::GoBackN, SELECTIVE] {
        let (kept, outcome) = finished(lossy("none", star(9), flows.clone(), recovery, 100_000));
        let (again, dropped) = (retransmitted(&kept), sum_of(&outcome, |port| port.packets_dropped));
        assert!(if recovery == SELECTIVE { again == dropped } else { again > dropped }, "{again}, {dropped}");
    }
}

#[test]
fn selective_repeat_sends_again_what_was_lost_and_no_more_while_nothing_is_lost_twice() {
    // Two senders at full rate into one port: the buffer holds back 50 kB, and half of what follows is dropped.
    let flows = vec![flow(0, 2, 200_000, Time::ZERO), flow(1, 2, 60_000, Time::ZERO)];
    let (kept, outcome) = finished(lossy("none", star(3), flows, SELECTIVE, 50_000));
    let dropped = sum_of(&outcome, |port| port.packets_dropped);
    assert!(dropped > 0);
    assert!(retransmitted(&kept) >= dropped);
    // The timeout gives up all that is in flight, which is little when everything else has arrived.
    assert!(retransmitted(&kept) < 2 * dropped, "{} again for {dropped}", retransmitted(&kept));
}

/// Flow 0 has a port for itself except the last microseconds of `from..to`, in which its link is down.
fn cut(recovery: Recovery, size: u64, which: u32, from: Time, to: Time) -> (Kept, Outcome) {
    let mut config = lossy("none", star(2), vec![flow(0, 1, size, Time::ZERO)], recovery, 1 << 20);
    config.failures = Failures {
        detection: Time::from_ms(100),
        loss: None,
        events: vec![
            Failure { at: from, change: Change::LinkDown(which) },
            Failure { at: to, change: Change::LinkUp(which) },
        ],
    };
    finished(config)
}

#[test]
fn a_lost_last_packet_is_sent_again_after_the_timeout() {
    // Ten packets leave within 838.4 ns and arrive from 1 us on, 83.84 ns apart: the link is cut when eight are there.
    for recovery in [Recovery::GoBackN, SELECTIVE] {
        let (from, to) = (Time(1_000_000 + 8 * 83_840 + 40_000), Time::from_us(2));
        let (kept, outcome) = cut(recovery, 10_000, 0, from, to);
        assert_eq!(sum_of(&outcome, |port| port.packets_lost), 2);
        assert_eq!(kept.flows[0].packets_retransmitted, 2, "{recovery:?}");
        // The timeout runs from the last acknowledgement of something new, of the eighth packet.
        let eighth = Time(4_000_000 + 9 * 83_840 + 2 * 4_800);
        let again = Time(4_000_000 + 3 * 83_840 + 2 * 4_800);
        assert_eq!(completion_times(&kept)[0], eighth + Time::from_us(500) + again);
    }
}

#[test]
fn a_packet_that_is_lost_twice_is_sent_again_after_one_timeout_while_others_arrive() {
    // Twelve packets that leave from 9 us on are lost, and so are their copies, from 14.4 us on. 838 us carry all.
    let mut config = lossy("none", star(2), vec![flow(0, 1, 10_000_000, Time::ZERO)], SELECTIVE, 1 << 20);
    let cuts = [(10_000, 10_100), (15_400, 15_900)];
    let change = |ns, change| Failure { at: Time::from_ns(ns), change };
    let events = cuts
        .into_iter()
        .flat_map(|(from, to)| [change(from, Change::LinkDown(0)), change(to, Change::LinkUp(0))])
        .collect();
    config.failures = Failures { detection: Time::from_ms(100), loss: None, events };
    let (kept, _) = finished(config);
    let flow = &kept.flows[0];
    assert_eq!(flow.timeouts, 1);
    assert!(flow.packets_retransmitted < 100, "{}", flow.packets_retransmitted);
    let late = completion_times(&kept)[0].0 - flow.ideal.0;
    assert!(late < Time::from_us(20).0, "{} ns after a flow without losses", late / 1000);
}

/// Of ten packets the first ones arrive, and the timeout runs from the last acknowledgement: the short one, if few are outstanding.
#[test]
fn irn_waits_for_the_short_timeout_only_while_few_packets_are_outstanding() {
    let low = Time::from_us(200);
    let irn = Recovery::Irn(IrnConfig { reordering: 1, bdp_cap: None, rto_low: Some(low) });
    for (there, timeout) in [(8, low), (7, low), (6, Time::from_us(500)), (5, Time::from_us(500))] {
        let from = Time(1_000_000 + there * 83_840 + 40_000);
        let (kept, outcome) = cut(irn, 10_000, 0, from, Time::from_us(2));
        assert_eq!(sum_of(&outcome, |port| port.packets_lost), 10 - there);
        assert_eq!(kept.flows[0].packets_retransmitted, 10 - there);
        let last = Time(4_000_000 + (there + 1) * 83_840 + 2 * 4_800);
        let again = Time(4_000_000 + (11 - there) * 83_840 + 2 * 4_800);
        assert_eq!(completion_times(&kept)[0], last + timeout + again, "{there} arrived");
    }
}

#[test]
fn a_lost_last_acknowledgement_is_made_up_for() {
    for recovery in [Recovery::GoBackN, SELECTIVE] {
        // One packet: data crosses the second link up to 2.168 us, its acknowledgement until 3.172 us.
        let (kept, outcome) = cut(recovery, 1000, 1, Time(2_500_000), Time::from_us(4));
        assert_eq!(sum_of(&outcome, |port| port.packets_lost), 1);
        assert_eq!(kept.flows[0].packets_retransmitted, 1);
        let alone = Time(4_000_000 + 2 * 83_840 + 2 * 4_800);
        // The timeout runs from the start of the first packet.
        assert_eq!(completion_times(&kept)[0], Time::from_us(500) + alone, "{recovery:?}");
    }
}

#[test]
fn acknowledgements_lost_before_the_last_cost_nothing() {
    for recovery in [Recovery::GoBackN, SELECTIVE] {
        // A hundred packets; their acknowledgements cross the first link from 3.2 us to 12.4 us.
        let topology = star(2);
        let mut config = lossy("none", topology, vec![flow(0, 1, 100_000, Time::ZERO)], recovery, 1 << 20);
        config.failures = Failures {
            detection: Time::from_ms(100),
            loss: None,
            // The sender has sent all by 8.4 us, and all is at the switch by 9.4 us.
            events: vec![
                Failure { at: Time(9_500_000), change: Change::LinkDown(0) },
                Failure { at: Time(10_500_000), change: Change::LinkUp(0) },
            ],
        };
        let (kept, outcome) = finished(config);
        let lost = sum_of(&outcome, |port| port.packets_lost + port.packets_stranded);
        assert!(lost > 10, "{lost}");
        assert_eq!(kept.flows[0].packets_retransmitted, 0, "{recovery:?}");
        assert_eq!(completion_times(&kept)[0], kept.flows[0].ideal);
    }
}

/// Spraying over eight paths whose delays differ by up to 7 us, that is by 84 packets.
fn sprayed(recovery: Recovery) -> (Kept, Outcome) {
    let network = LeafSpine {
        leaves: 2,
        spines: 8,
        hosts_per_leaf: 4,
        extra_hosts: 0,
        host_link: link(RATE, Time::from_us(1)),
        fabric_rate: Some(RATE),
        fabric_delay: Time::from_us(1),
        oversubscription: 0.0,
    };
    let mut topology = network.build().unwrap();
    for spine in 0..8 {
        topology.links[8 + spine].delay = Time::from_us(1 + spine as u64);
    }
    let flows = (0..4).map(|src| flow(src, src + 4, 2_000_000, Time::ZERO)).collect();
    let mut config = normal("none", topology, flows);
    config.switch.balancer = BalancerConfig::Spray(SprayParameters::Random);
    rdma_of(&mut config).recovery = recovery;
    rdma_of(&mut config).nack_interval = Time::from_us(10);
    finished(config)
}

#[test]
fn spraying_with_selective_repeat_does_not_collapse() {
    let (kept, _) = sprayed(Recovery::SelectiveRepeat { reordering: 200 });
    assert_eq!(retransmitted(&kept), 0);
    for (flow, fct) in kept.flows.iter().zip(completion_times(&kept)) {
        assert!(fct.0 < flow.ideal.0 * 12 / 10, "{fct} for {}", flow.ideal);
    }
    // With little reordering allowed, packets that come late are sent once more, and only once.
    let (kept, _) = sprayed(SELECTIVE);
    assert!(retransmitted(&kept) > 0);
    for (flow, fct) in kept.flows.iter().zip(completion_times(&kept)) {
        assert!(flow.packets_sent <= 2 * 2000);
        assert!(fct.0 < flow.ideal.0 * 22 / 10, "{fct} for {}", flow.ideal);
    }
}

#[test]
fn spraying_with_go_back_n_collapses() {
    // Every packet that overtakes is refused, and all after it are sent again: what IRN set out to mend.
    let (kept, _) = sprayed(Recovery::GoBackN);
    let again = retransmitted(&kept);
    assert!(again > 3 * 4 * 2000, "{again}");
    assert!(completion_times(&kept).iter().zip(&kept.flows).all(|(fct, flow)| fct.0 > 3 * flow.ideal.0));
}

#[test]
fn what_arrives_twice_is_delivered_once() {
    // The timeout is far below the round trip of 80 us: all five packets are sent again after 10, 30 and 70 us, and
    // come when the flow is complete at its receiver.
    for recovery in [Recovery::GoBackN, SELECTIVE] {
        let topology = Star { hosts: 2, host_link: link(RATE, Time::from_us(20)) }.build().unwrap();
        let mut config = normal("none", topology, vec![flow(0, 1, 5000, Time::ZERO)]);
        config.measure.group_goodput = Some(Time::from_us(10));
        config.until = weftline_sim::config::Until::At(Time::from_us(200));
        let rdma = rdma_of(&mut config);
        rdma.recovery = recovery;
        rdma.rto = Some(Time::from_us(10));
        let (kept, outcome) = run(config);
        assert_eq!((outcome.flows_done, retransmitted(&kept)), (1, 15), "{recovery:?}");
        let bits: f64 = kept.samples.iter().map(|sample| sample.value * 1e-5).sum();
        assert_eq!((bits / 8.0).round(), 5000.0, "{recovery:?}");
        assert_eq!(completion_times(&kept)[0], kept.flows[0].ideal);
    }
}
