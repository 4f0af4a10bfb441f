use super::*;
use crate::workload::tests;

fn load(share: f64, counts: LoadCounts) -> Load {
    Load { share, counts, capacity: None }
}

/// Flows per second of one host with links of `gbps`.
fn flows_per_second(name: &str, load: &Load, gbps: u64, cx: &WorkloadContext) -> f64 {
    let rate = [Rate::from_gbps(gbps)];
    let cx = WorkloadContext { host_rate: &rate, header: 40, mtu: 1460, ..*cx };
    let bytes = load.bytes_per_flow(&SizeDistribution::named(name).unwrap(), &cx);
    1e12 / mean_gap(bytes, load.host_rate(0, 1, &cx))
}

#[test]
fn half_payload_load_at_100_gbps_gives_the_rates_of_the_hpcc_generator() {
    let published = [
        ("websearch", 3652.3),
        ("fb-hadoop", 51_901.0),
        ("ali-storage", 152_925.0),
        ("google-rpc", 2_161_417.0),
    ];
    tests::with_hosts(4, |cx| {
        for (name, rate) in published {
            let ours = flows_per_second(name, &load(0.5, LoadCounts::Payload), 100, cx);
            assert!((ours / rate - 1.0).abs() < 2e-5, "{name}: {ours}");
        }
    });
}

#[test]
fn wire_load_of_60_percent_at_10_gbps_gives_the_rates_of_the_phost_generator() {
    tests::with_hosts(4, |cx| {
        for (name, rate) in [("imc10", 3736.7), ("datamining", 97.72)] {
            let ours = flows_per_second(name, &load(0.6, LoadCounts::Wire), 10, cx);
            assert!((ours / rate - 1.0).abs() < 1e-4, "{name}: {ours}");
        }
    });
}

#[test]
fn headers_and_acknowledgements_count_when_they_are_asked_to() {
    tests::with_hosts(4, |cx| {
        let sizes = SizeDistribution::constant(2500);
        let bytes = |counts| load(0.5, counts).bytes_per_flow(&sizes, cx);
        assert_eq!(bytes(LoadCounts::Payload), 2500.0);
        assert_eq!(bytes(LoadCounts::Wire), 2500.0 + 3.0 * 48.0);
        assert_eq!(bytes(LoadCounts::WireAndAcks), 2500.0 + 3.0 * 108.0);
    });
}

#[test]
fn a_stated_capacity_is_shared_by_the_senders() {
    tests::with_hosts(4, |cx| {
        let load = Load { capacity: Some(Rate::from_gbps(40)), ..load(0.5, LoadCounts::Payload) };
        assert_eq!(load.host_rate(0, 4, cx), 5e9);
        assert_eq!(load.whole_rate(&[0, 1, 2, 3], cx), 20e9);
    });
}
