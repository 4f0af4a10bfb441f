//! A flow that nothing throttles takes the closed-form time, to the picosecond.

use crate::common::*;
use proptest::prelude::*;
use weftline_sim::config::{Config, Forwarding, IdealFct, Recovery, TelemetryConfig};
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::dumbbell::Dumbbell;
use weftline_sim::topology::fat_tree::FatTree;
use weftline_sim::topology::leaf_spine::LeafSpine;
use weftline_sim::topology::parking_lot::ParkingLot;
use weftline_sim::topology::star::Star;
use weftline_sim::topology::{LinkSpec, Topology};
use weftline_sim::units::{Rate, Time};

const SIZES: [u64; 7] = [1, 999, 1000, 1001, 2000, 10_000, 1_000_000];
const CUT_THROUGH: Forwarding = Forwarding::CutThrough { header: 48 };
const BOTH: [Forwarding; 2] = [Forwarding::StoreAndForward, CUT_THROUGH];

fn mbps(mbps: u64, delay_ns: u64) -> LinkSpec {
    link(Rate::from_mbps(mbps), Time::from_ns(delay_ns))
}

/// Completion and ideal time of one flow that is alone.
fn alone(mut config: Config, src: u32, dst: u32, size: u64) -> (Time, Time) {
    config.traffic = traffic(vec![flow(src, dst, size, Time::from_ns(7))]);
    let (kept, _) = run(config);
    let record = kept.flows[0];
    assert_eq!(record.packets_retransmitted, 0);
    (completion_times(&kept)[0], record.ideal)
}

fn star(link: LinkSpec) -> Topology {
    Star { hosts: 3, host_link: link }.build().unwrap()
}

fn dumbbell(host_link: LinkSpec, bottleneck_link: LinkSpec) -> Topology {
    Dumbbell { left: 2, right: 2, host_link, bottleneck_link, ..Dumbbell::default() }.build().unwrap()
}

/// Networks with the two hosts that are furthest apart.
fn networks() -> Vec<(&'static str, Topology, u32, u32)> {
    let leaf_spine = |host: u64, fabric: u64| {
        let network = LeafSpine {
            leaves: 2,
            spines: 3,
            hosts_per_leaf: 2,
            extra_hosts: 0,
            host_link: mbps(host, 1000),
            fabric_rate: Some(Rate::from_mbps(fabric)),
            fabric_delay: Time::from_ns(1500),
            oversubscription: 0.0,
        };
        network.build().unwrap()
    };
    let lot = ParkingLot {
        bottlenecks: 4,
        host_link: mbps(100_000, 500),
        bottleneck_link: mbps(40_000, 2000),
        ..ParkingLot::default()
    };
    let tree =
        FatTree { k: 4, hosts_per_tor: 0, host_link: mbps(25_000, 1000), fabric_link: mbps(100_000, 1000) };
    vec![
        ("star", star(mbps(100_000, 1000)), 0, 1),
        ("star, odd rate", star(mbps(33_300, 1)), 0, 2),
        ("slow bottleneck", dumbbell(mbps(100_000, 1000), mbps(10_000, 5000)), 0, 2),
        ("fast bottleneck", dumbbell(mbps(10_000, 1000), mbps(100_000, 10)), 1, 3),
        ("odd bottleneck", dumbbell(mbps(33_300, 1000), mbps(7_000, 1000)), 0, 3),
        ("leaf-spine, fast fabric", leaf_spine(100_000, 400_000), 0, 3),
        ("leaf-spine, slow fabric", leaf_spine(400_000, 33_300), 0, 3),
        ("fat tree", tree.build().unwrap(), 0, 15),
        ("parking lot", lot.build().unwrap(), 0, 1),
    ]
}

#[test]
fn one_packet_over_a_star_takes_the_time_computed_by_hand() {
    // 1048 B at 100 Gb/s: 83.84 ns a hop; the acknowledgement's 60 B: 4.8 ns a hop; 1 us a link.
    let config = || normal("none", star(mbps(100_000, 1000)), vec![]);
    let by_hand = Time(4_000_000 + 2 * 83_840 + 2 * 4_800);
    assert_eq!(alone(config(), 0, 1, 1000), (by_hand, by_hand));
    // Cut-through: the switch waits for 48 B (3.84 ns) only, of the packet and of its acknowledgement.
    let by_hand = Time(4_000_000 + 83_840 + 3_840 + 4_800 + 3_840);
    assert_eq!(alone(Config { switch: switch(CUT_THROUGH), ..config() }, 0, 1, 1000), (by_hand, by_hand));
    // Ten packets follow the first at 83.84 ns.
    let by_hand = Time(4_000_000 + 11 * 83_840 + 2 * 4_800);
    assert_eq!(alone(config(), 0, 1, 10_000), (by_hand, by_hand));
}

#[test]
fn the_last_acknowledgement_waits_for_the_one_before_it() {
    // The second packet, of 49 B (3.92 ns), comes sooner after the first than the first acknowledgement, of 60 B
    // (4.8 ns), has left the receiver.
    let by_hand = Time(4_000_000 + 83_840 + 83_840 + 2 * 4_800 + 4_800);
    let config = normal("none", star(mbps(100_000, 1000)), vec![]);
    assert_eq!(alone(config, 0, 1, 1001), (by_hand, by_hand));
}

fn switch(forwarding: Forwarding) -> weftline_sim::config::SwitchConfig {
    let config = normal("none", star(mbps(100_000, 1000)), vec![]);
    weftline_sim::config::SwitchConfig { forwarding, ..config.switch }
}

#[test]
fn a_lone_flow_takes_the_ideal_time_on_every_network() {
    for (name, topology, src, dst) in networks() {
        for forwarding in BOTH {
            for controller in ["none", "dcqcn"] {
                for size in SIZES {
                    let mut config = normal(controller, topology.clone(), vec![]);
                    config.switch.forwarding = forwarding;
                    // A slow bottleneck would mark, and DCQCN would rightly slow down.
                    config.switch.ecn.clear();
                    let (fct, ideal) = alone(config, src, dst, size);
                    assert_eq!(fct, ideal, "{name}, {forwarding:?}, {controller}, {size} B");
                }
            }
        }
    }
}

#[test]
fn a_lone_flow_with_telemetry_in_every_packet_takes_the_ideal_time() {
    for (name, topology, src, dst) in networks() {
        for forwarding in BOTH {
            let mut config = normal("none", topology.clone(), vec![]);
            config.switch.forwarding = forwarding;
            config.telemetry = TelemetryConfig::Int { max_hops: 5, path_id: true, all: true };
            let (fct, ideal) = alone(config, src, dst, 10_001);
            assert_eq!(fct, ideal, "{name}, {forwarding:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_lone_flow_takes_the_ideal_time_at_any_rate(
        size in prop_oneof![1u64..3_000, 1u64..200_000],
        host in 100u64..800_000,
        bottleneck in 100u64..800_000,
        delay in 1u64..5_000_000,
        mtu in prop_oneof![1u32..100, 100u32..9000],
        header in prop_oneof![Just(0u32), 1u32..2000],
        selective: bool,
    ) {
        let delay = Time(delay);
        let topology = dumbbell(link(Rate::from_mbps(host), delay), link(Rate::from_mbps(bottleneck), delay));
        let mut config = normal("none", topology, vec![]);
        if header > 0 {
            config.switch.forwarding = Forwarding::CutThrough { header };
        }
        let rdma = rdma_of(&mut config);
        rdma.mtu = mtu;
        rdma.rto = None;
        if selective {
            rdma.recovery = Recovery::SelectiveRepeat { reordering: 3 };
        }
        let size = size.min(u64::from(mtu) * 300);
        let (fct, ideal) = alone(config, 0, 3, size);
        prop_assert_eq!(fct, ideal);
    }
}

#[test]
fn the_time_to_delivery_is_that_of_the_flow_without_its_last_acknowledgement() {
    for forwarding in BOTH {
        for (name, topology, src, dst) in networks() {
            let mut config = normal("none", topology, vec![]);
            config.switch.forwarding = forwarding;
            let ideal = |ideal: IdealFct, size: u64| {
                let mut config = config.clone();
                config.measure.ideal = ideal;
                alone(config, src, dst, size).1
            };
            // The way back of one acknowledgement does not depend on what it acknowledges.
            let back = |size: u64| ideal(IdealFct::Alone, size) - ideal(IdealFct::Delivery, size);
            assert_eq!(back(1000), back(1), "{name}");
            assert_eq!(back(1000), back(100_000), "{name}");
        }
    }
    // By hand: 1048 B at 100 Gb/s twice, and 1 us a link.
    let mut config = normal("none", star(mbps(100_000, 1000)), vec![]);
    config.measure.ideal = IdealFct::Delivery;
    assert_eq!(alone(config, 0, 1, 1000).1, Time(2_000_000 + 2 * 83_840));
}
