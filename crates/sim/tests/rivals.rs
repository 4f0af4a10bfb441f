//! The authors' simulators of PowerTCP and Swift on the same flows.

use crate::common::{
    Given, case, controller, flows_of, load, normal, published, rdma_of, reference, rows, run,
};
use weftline_sim::balance::BalancerConfig;
use weftline_sim::balance::label::LabelParameters;
use weftline_sim::compat::Rules;
use weftline_sim::congestion::window::{Profile, WindowConfig};
use weftline_sim::congestion::{ControllerConfig, PairWindow};
use weftline_sim::parameters::{Parameters, Value};
use weftline_sim::telemetry::TelemetryConfig;
use weftline_sim::topology::{Topology, hpcc_text};
use weftline_sim::units::{Bytes, Time};
use weftline_sim::workload::FlowSpec;

/// Their runs begin here; the released laws compare first acknowledgements with time 0.
const BASE: Time = Time::from_ms(100);

/// Runs a case as the PowerTCP authors' simulator does, and compares every completion time with the file's.
fn all_equal(name: &str, kind: &str, file: &str) {
    let Some((topology, mut flows, _)) = case(name) else { return };
    let folder = reference().expect("it was found").join("rivals/powertcp").join(name);
    let expected = rows(&folder.join(format!("{file}.csv.gz")));
    flows.iter_mut().for_each(|flow| flow.start += BASE);
    let mut config = published("hpcc", topology, flows, Bytes(32 << 20), 1);
    config.rules = Rules::powertcp_ns3();
    config.telemetry = TelemetryConfig::Int { max_hops: 5, path_id: false, all: true };
    let mut law = controller(kind);
    law.follow(&config.rules);
    rdma_of(&mut config).controller = law;
    let (kept, _) = run(config);
    assert_eq!(kept.flows.len(), expected.len());
    let mut differ = 0;
    for (flow, row) in kept.flows.iter().zip(&expected) {
        let fct = flow.finish.map(|finish| (finish - flow.start).ns());
        assert_eq!(u64::from(flow.flow), row[0]);
        if fct != Some(row[1]) {
            differ += 1;
            if differ <= 3 {
                println!("{name} {kind}: flow {} took {fct:?} ns, the authors' {}", flow.flow, row[1]);
            }
        }
    }
    println!("{name} {kind}: {} of {} flows equal", expected.len() - differ, expected.len());
    assert_eq!(differ, 0, "{name} under {kind}: {differ} of {} flows differ", expected.len());
}

const CASES: [&str; 4] = ["star_single", "star_incast16", "dumb_fair4", "pod_wb_0.5"];

#[test]
fn powertcp_is_equal_to_the_nanosecond() {
    CASES.iter().for_each(|name| all_equal(name, "powertcp", "fct_powertcp"));
}

#[test]
fn theta_powertcp_is_equal_to_the_nanosecond() {
    CASES.iter().for_each(|name| all_equal(name, "theta-powertcp", "fct_theta"));
}

/// The simulator from which the authors began, on web search: only times of transmission differ from `hpcc-ns3`.
#[test]
fn hpcc_in_the_simulator_of_powertcp_is_equal_to_the_nanosecond() {
    all_equal("pod_wb_0.5", "hpcc", "fct_hpcc");
}

/// The simulator of ConWeave's authors, which descends from HPCC's: flows alone on their fabric of four leaves and
/// four spines, under DCQCN without a window and ECMP. Their ideal times are equal too.
#[test]
fn lone_flows_of_the_simulator_of_conweave_are_equal_to_the_nanosecond() {
    let Some(folder) = reference().map(|folder| folder.join("rivals/conweave/ls32_single")) else { return };
    let text = std::fs::read(folder.join("topology.txt")).expect("topology.txt");
    let (topology, _) = hpcc_text::read(&text, "topology.txt").expect("a topology");
    let flows = flows_of(&folder.join("flows.csv.gz"));
    let (kept, _) = run(published("dcqcn", topology, flows, Bytes(9_000_000), 1));
    let expected = rows(&folder.join("fct_fecmp_pfc_s1.csv.gz"));
    assert_eq!(kept.flows.len(), expected.len());
    for (flow, row) in kept.flows.iter().zip(&expected) {
        let fct = (flow.finish.expect("it ends") - flow.start).ns();
        assert_eq!(
            [u64::from(flow.flow), fct, flow.ideal.ns()],
            row[..],
            "flow, completion time, ideal time"
        );
    }
}

/// Runs flows under Swift with packets of `mss` bytes on the wire, and compares every completion time with csg-htsim's.
fn swift_equal(name: &str, topology: Topology, mut flows: Vec<FlowSpec>, mss: u64, initial: u32) {
    let folder = reference().expect("it was found").join("rivals/swift").join(name);
    let expected = rows(&folder.join(format!("fct_mss{mss}.csv.gz")));
    flows.iter_mut().zip(&expected).for_each(|(flow, row)| flow.size = row[1]);
    let mut config = normal("none", topology, flows);
    config.switch.pfc.enabled = false;
    config.switch.buffer = Bytes(1 << 34);
    config.rules = Rules::htsim();
    config.switch.ecn.clear();
    config.switch.balancer = BalancerConfig::Label(LabelParameters);
    config.telemetry = TelemetryConfig::None;
    let released = [("law", Value::Text("released".into()))];
    let law = WindowConfig::read("swift", &mut Parameters::new(&mut Given(&released)), Profile::Rfc);
    let law = Box::new(law.expect("a law"));
    let rdma = rdma_of(&mut config);
    rdma.controller = ControllerConfig::Window(PairWindow { name: "swift", law, initial });
    (rdma.mtu, rdma.header, rdma.ack_header, rdma.min_ack, rdma.rto) = (mss as u32, 0, 40, 40, None);
    let (kept, _) = run(config);
    assert_eq!(kept.flows.len(), expected.len());
    for (flow, row) in kept.flows.iter().zip(&expected) {
        let fct = (flow.finish.expect("it ends") - flow.start).0;
        assert_eq!(fct, row[2], "{name} at {mss} B: flow {}", flow.flow);
    }
    println!("{name} at {mss} B: {} flows equal", expected.len());
}

#[test]
fn swift_is_equal_to_the_picosecond() {
    for name in CASES {
        for mss in [1000, 4000] {
            let Some((topology, flows, _)) = case(name) else { return };
            swift_equal(name, topology, flows, mss, 60_000 / mss as u32);
        }
    }
}

/// 320 flows to one host, with windows that fall below one packet.
#[test]
fn paced_swift_is_equal_to_the_picosecond() {
    let Some((topology, _, _)) = case("star_incast16") else { return };
    let name = "star_pace320";
    let file = reference().expect("it was found").join("rivals/swift").join(name).join("flows.csv.gz");
    swift_equal(name, topology, flows_of(&file), 4000, 1);
}

/// A fabric that loses 20 % of all packets and a link, with HPCC beside the controller; with and without PFC, with the NIC of csg-htsim too. Such a run is
/// repeated in several regions, with the same bits.
#[test]
fn no_flow_is_stuck_at_20_percent_loss_among_others() {
    let text = r#"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 2
        hosts_per_leaf = 4
        host_link = { rate = "100Gbps", delay = "1us" }
        fabric_link = { rate = "100Gbps", delay = "1us" }
        [transport]
        kind = "rdma"
        rto = "300us"
        [failures]
        loss = 0.2
        [[failures.event]]
        link = ["leaf0", "spine0"]
        at = "20us"
        change = "down"
        [[workload]]
        kind = "permutation"
        size = "60KB"
        [[workload]]
        kind = "incast"
        hosts = "0-5"
        receiver = "7"
        size = "30KB"
        transport = { kind = "rdma", rto = "300us", controller = { kind = "hpcc" } }
    "#;
    for kind in ["powertcp", "theta-powertcp", "swift"] {
        for (pfc, like) in [("true", "none"), ("false", "none"), ("true", "htsim"), ("false", "htsim")] {
            let sets =
                [("transport.controller.kind", kind), ("switch.pfc.enabled", pfc), ("compat.like", like)];
            let scenario = load(text, &sets).unwrap_or_else(|error| panic!("{error}"));
            let (kept, _) = run(scenario.config().expect("a configuration"));
            assert!(kept.flows.len() == 14 && kept.flows.iter().all(|flow| flow.finish.is_some()), "{kind}");
        }
    }
}

/// Flows that ECMP puts on one of eight uplinks, with seven others idle, find uplinks of their own under Swift, so that they end sooner.
#[test]
fn plb_moves_flows_that_share_an_uplink_apart() {
    let text = r#"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 8
        hosts_per_leaf = 8
        host_link = { rate = "100Gbps", delay = "1us" }
        fabric_link = { rate = "100Gbps", delay = "1us" }
        [transport]
        kind = "rdma"
        [[workload]]
        kind = "flows"
        flows = [
            { src = 0, dst = 8, size = "20MB" }, { src = 1, dst = 9, size = "20MB" }, { src = 2, dst = 10, size = "20MB" },
            { src = 3, dst = 11, size = "20MB" }, { src = 4, dst = 12, size = "20MB" }, { src = 5, dst = 13, size = "20MB" },
        ]
    "#;
    let mean = |plb: &str| -> f64 {
        let sets = [("transport.controller.kind", "swift"), ("transport.plb", plb)];
        let scenario = load(text, &sets).unwrap_or_else(|error| panic!("{error}"));
        let (kept, _) = run(scenario.config().expect("a configuration"));
        let times = kept.flows.iter().map(|flow| (flow.finish.expect("it ends") - flow.start).as_us());
        times.sum::<f64>() / kept.flows.len() as f64
    };
    let (without, with) = (mean("none"), mean("delay"));
    println!("{without:.0} us without PLB, {with:.0} us with");
    assert!(with < 0.9 * without, "{without:.0} us without PLB, {with:.0} us with");
}
