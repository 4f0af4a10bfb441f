//! A port without a simulator around it against the same port in a simulation: the frames that the simulated switch received,
//! at their times, must leave in the same order, at the same picosecond, with the same marks.

use std::io;

use weftline_ports::frame::Names;
use weftline_ports::plan::Plan;
use weftline_ports::port::{Account, EnginePort};
use weftline_sim::measure::{FlowRecord, Frames, Sample, Sink};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::{Rate, Time};

/// The four left hosts send to the right over a bottleneck with the discipline in question.
fn scenario(queue: &str, transport: &str) -> String {
    format!(
        r#"
seed = 7
switch = {{ queue = {queue}, pfc = {{ enabled = false }}, ecn = {{ enabled = false }} }}
transport = {{ kind = "tcp", {transport} }}
measure = {{ pcap = ["host*->s0", "s0->s1"], pcap_bytes = "1GB" }}
[topology]
kind = "dumbbell"
left = 4
right = 4
host_link = {{ rate = "1Gbps", delay = "1ms" }}
bottleneck_link = {{ rate = "50Mbps", delay = "5ms" }}
[[workload]]
kind = "flows"
flows = [
    {{ src = 0, dst = 4, size = "3MB", start = "0ms" }},
    {{ src = 1, dst = 5, size = "2MB", start = "3ms" }},
    {{ src = 2, dst = 6, size = "2MB", start = "5.5ms", transport = {{ controller = {{ kind = "newreno" }} }} }},
    {{ src = 3, dst = 7, size = "1MB", start = "40ms" }},
]
"#
    )
    .replace(", transport = { controller = { kind = \"newreno\" } }", "")
}

type Caught = (usize, Time, Vec<u8>);

#[derive(Default)]
struct Captured(Vec<Caught>);

impl Sink for Captured {
    fn flows(&mut self, _: &[FlowRecord]) -> io::Result<()> {
        Ok(())
    }
    fn samples(&mut self, _: &[Sample]) -> io::Result<()> {
        Ok(())
    }
    fn frames(&mut self, batch: &Frames) -> io::Result<bool> {
        for frame in &batch.frames {
            let mut bytes = batch.bytes[frame.bytes.clone()].to_vec();
            bytes.resize(frame.length as usize, 0);
            self.0.push((frame.link as usize, frame.time, bytes));
        }
        Ok(true)
    }
}

struct Both {
    /// What left the simulated port, when.
    simulated: Vec<(Time, Vec<u8>)>,
    /// What reached the far end of the port's link, when its transmission began.
    alone: Vec<(Time, Vec<u8>)>,
    account: Account,
    drops: u64,
}

fn both(text: &str) -> Both {
    let load = Scenario::load(text, "test", std::path::Path::new("."), &[], None, Hooks::default());
    let config = load.unwrap_or_else(|error| panic!("{error}")).config().unwrap();
    let captured_ports = config.measure.capture.as_ref().unwrap().ports.clone();
    let topology = config.topology.clone();
    let s0 = topology.nodes.iter().position(|node| node.name == "s0").unwrap() as u32;
    let local = captured_ports.iter().find(|(node, _)| *node == s0).unwrap().1;
    let mut sink = Captured::default();
    let outcome = weftline_sim::run(config, &mut sink, &mut |_| true).unwrap();
    let bottleneck = captured_ports.iter().position(|(node, _)| *node == s0).unwrap();

    let host_link =
        |bytes: &[u8]| Rate::from_mbps(1000).transmission_time(bytes.len() as u64) + Time::from_ms(1);
    let (simulated, arriving): (Vec<Caught>, Vec<Caught>) =
        sink.0.into_iter().partition(|(link, ..)| *link == bottleneck);
    let mut arriving: Vec<Caught> =
        arriving.into_iter().map(|(link, at, bytes)| (link, at + host_link(&bytes), bytes)).collect();
    arriving.sort_by_key(|(link, at, _)| (*at, *link));

    let task = serde_json::json!({
        "scenario": text, "base": ".", "directions": [
            { "from": "a", "to": "b", "entity": "s0->s1", "node": s0, "local": local },
        ],
    });
    let mut plan = Plan::read(&task.to_string()).unwrap();
    let mut port: EnginePort = plan.directions.remove(0).port.unwrap();
    let mut names = Names::new((0..8).map(|host| (0x0a00_0001 + host, host)));
    let mut alone = Vec::new();
    for (_, at, bytes) in &arriving {
        port.offer(*at, names.packet(bytes, *at), bytes);
        assert!(port.account().holds());
    }
    port.advance(Time::MAX);
    let link = |bytes: &[u8]| Rate::from_mbps(50).transmission_time(bytes.len() as u64) + Time::from_ms(5);
    while let Some((at, bytes)) = port.arrived(Time::MAX) {
        alone.push((at - link(&bytes), bytes));
    }
    let simulated = simulated.into_iter().map(|(_, at, bytes)| (at, bytes)).collect();
    let drops = outcome.ports.iter().map(|(_, _, port)| port.packets_dropped).sum();
    Both { simulated, alone, account: port.account(), drops }
}

fn check(queue: &str, transport: &str) -> (Account, u64) {
    let both = both(&scenario(queue, transport));
    assert!(both.simulated.len() > 5000, "{queue}: {} packets", both.simulated.len());
    for (number, (one, other)) in both.simulated.iter().zip(&both.alone).enumerate() {
        assert_eq!(one.0, other.0, "{queue}: departure {number}");
        // The addresses of the link before them differ.
        assert_eq!(one.1[14..], other.1[14..], "{queue}: departure {number}");
    }
    assert_eq!(both.simulated.len(), both.alone.len(), "{queue}");
    assert_eq!(both.account.dropped, both.drops, "{queue}");
    assert_eq!((both.account.queued, both.account.bytes_queued), (0, 0), "{queue}");
    (both.account, both.drops)
}

#[test]
fn every_discipline_decides_as_in_a_simulation() {
    for queue in [
        r#"{ kind = "fifo", limit = "60KB" }"#,
        r#"{ kind = "fifo", packets = 40, nic_packets = 1 }"#,
        r#"{ kind = "fq-codel" }"#,
        r#"{ kind = "codel" }"#,
        r#"{ kind = "afq" }"#,
        r#"{ kind = "drr" }"#,
        r#"{ kind = "red" }"#,
        r#"{ kind = "dualpi2" }"#,
        r#"{ kind = "cebinae", packets = 100, round = "33554432ns" }"#,
    ] {
        let (account, drops) = check(queue, "profile = \"rfc\"");
        eprintln!("{queue}: {} packets, {drops} drops", account.sent);
    }
}

#[test]
fn marks_are_those_of_the_simulation() {
    for queue in [r#"{ kind = "fq-codel" }"#, r#"{ kind = "codel", ecn = true }"#, r#"{ kind = "dualpi2" }"#]
    {
        let (account, _) = check(queue, "ecn = \"classic\"");
        assert!(account.marked > 0, "{queue}");
        eprintln!("{queue}: {} marks", account.marked);
    }
}

#[test]
fn what_cannot_stand_between_real_interfaces_is_refused() {
    for queue in [r#"{ kind = "fifo" }"#, r#"{ kind = "pfabric" }"#] {
        let text = scenario(queue, "profile = \"rfc\"")
            .replace("pcap = [\"host*->s0\", \"s0->s1\"], pcap_bytes = \"1GB\"", "");
        let task = serde_json::json!({ "scenario": text, "base": ".", "directions": [] });
        let error = Plan::read(&task.to_string()).err().unwrap();
        assert!(error.contains("limit of its own"), "{error}");
    }
}
