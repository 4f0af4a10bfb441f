//! No flow takes less than its ideal time: on random small networks with unlike paths, under every balancer and transport, while
//! links fail and come back.
//!
//! Many more than are run with the other tests:
//!
//! ```text
//! IDEAL_FROM=0 IDEAL_SEEDS=100000 cargo test --release -p weftline-sim --test runs ideal:: -- --nocapture
//! ```

use crate::common::*;
use std::fmt::Write;
use weftline_sim::config::{Change, Config, Failure};
use weftline_sim::engine::random::RandomStream;
use weftline_sim::measure::FlowRecord;
use weftline_sim::topology::{LinkId, NodeKind};
use weftline_sim::units::{Rate, Time};

const BALANCERS: &[&str] = &[
    "kind = \"ecmp\"",
    "kind = \"ecmp\"",
    "kind = \"destination\"",
    "kind = \"label\"",
    "kind = \"spray\"",
    "kind = \"spray\", order = \"round-robin\"",
    "kind = \"letflow\", gap = \"1us\"",
    "kind = \"drill\"",
    "kind = \"presto\", cell = \"3KB\"",
    "kind = \"conga\", gap = \"2us\"",
    "kind = \"clove\", gap = \"2us\"",
    "kind = \"hula\", gap = \"1us\", probe_interval = \"20us\"",
    "kind = \"mp-hula\", gap = \"1us\", probe_interval = \"20us\"",
];

const TRANSPORTS: &[&str] = &[
    "kind = \"rdma\", controller = \"none\"",
    "kind = \"rdma\", controller = \"none\", recovery = \"selective-repeat\"",
    "kind = \"rdma\", controller = \"hpcc\"",
    "kind = \"rdma\", controller = \"dctcp\"",
    "kind = \"phost\", spray = true",
    "kind = \"phost\", spray = false, free_tokens = 500",
    "kind = \"pfabric\", spray = true",
    "kind = \"pfabric\", spray = false",
    "kind = \"fastpass\", spray = true",
    "kind = \"tcp\"",
    "kind = \"tcp\", initial_window = 100",
    "kind = \"mptcp\"",
    "kind = \"mptcp\", subflows = 4, initial_window = 100",
];

struct Draw(RandomStream);

impl Draw {
    fn number(&mut self, min: u64, max: u64) -> u64 {
        min + self.0.below(max - min + 1)
    }

    /// As often small as large.
    fn magnitude(&mut self, min: u64, max: u64) -> u64 {
        ((min as f64 * (max as f64 / min as f64).powf(self.0.uniform())) as u64).clamp(min, max)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    fn rate(&mut self) -> Rate {
        Rate::from_mbps(self.of(&[1_000, 3_333, 10_000, 25_000, 100_000, 400_000]))
    }

    fn delay(&mut self) -> Time {
        Time::from_ns(self.magnitude(20, 20_000))
    }
}

fn network(draw: &mut Draw) -> (String, u64) {
    let link = |draw: &mut Draw| {
        format!("{{ rate = \"{}Mbps\", delay = \"{}ns\" }}", draw.rate().0 / 1_000_000, draw.delay().ns())
    };
    let (host, fabric) = (link(draw), link(draw));
    match draw.number(0, 5) {
        0 => (format!("kind = \"star\"\nhosts = 4\nhost_link = {host}\n"), 4),
        1 => (format!("kind = \"fat-tree\"\nk = 4\nhost_link = {host}\nfabric_link = {fabric}\n"), 16),
        _ => {
            let (leaves, spines, hosts) = (draw.number(2, 3), draw.number(1, 4), draw.number(1, 3));
            let text = format!(
                "kind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n\
                 host_link = {host}\nfabric_link = {fabric}\n"
            );
            (text, leaves * hosts)
        }
    }
}

fn scenario(draw: &mut Draw, seed: u64) -> String {
    let (network, hosts) = network(draw);
    let mut text =
        format!("seed = {seed}\n[topology]\n{network}[switch]\npfc.enabled = {}\n", draw.once_in(2));
    writeln!(text, "balancer = {{ {} }}", draw.of(BALANCERS)).unwrap();
    match draw.number(0, 3) {
        0 => text += "forwarding = \"cut-through\"\n",
        1 => text += "forwarding = \"ideal-cut-through\"\n",
        _ => {}
    }
    let transport = draw.of(TRANSPORTS);
    if transport.contains("phost") {
        text += "queue = { kind = \"priority\" }\n";
    }
    writeln!(text, "[transport]\n{}", transport.replace(", ", "\n")).unwrap();
    text += "[run]\nuntil = \"20ms\"\n[[workload]]\nkind = \"flows\"\nflows = [\n";
    let (count, mtu) = (draw.number(1, 6), 1000);
    for _ in 0..count {
        let src = draw.number(0, hosts - 1);
        let dst = (src + draw.number(1, hosts - 1)) % hosts;
        let size = if draw.once_in(3) { mtu * draw.number(1, 40) } else { draw.magnitude(1, 60 * mtu) };
        let start = if draw.once_in(2) { draw.magnitude(1, 300_000) } else { 0 };
        writeln!(text, "{{ src = {src}, dst = {dst}, size = \"{size}B\", start = \"{start}ns\" }},").unwrap();
    }
    text + "]\n"
}

/// Links of other rates and delays, parallel ones, hosts with a second link.
fn disorder(draw: &mut Draw, config: &mut Config) {
    for at in 0..config.topology.links.len() {
        let link = config.topology.links[at].clone();
        let is_host = |node: u32| config.topology.nodes[node as usize].kind == NodeKind::Host;
        let between_switches = !is_host(link.a) && !is_host(link.b);
        if draw.once_in(if between_switches { 2 } else { 6 }) {
            let (rate, delay) = (draw.rate(), draw.delay());
            let link = &mut config.topology.links[at];
            (link.rate, link.delay) = (rate, delay);
        }
        if between_switches && draw.once_in(5) {
            let mut parallel = link;
            (parallel.rate, parallel.delay) = (draw.rate(), draw.delay());
            config.topology.links.push(parallel);
        }
    }
}

/// Links that fail, come back, and change their rates.
fn failures(draw: &mut Draw, config: &mut Config) {
    config.failures.detection = Time::from_us(draw.of(&[0, 1, 20]));
    for _ in 0..draw.number(1, 6) {
        let link = draw.number(0, config.topology.links.len() as u64 - 1) as LinkId;
        let at = Time::from_ns(draw.magnitude(1, 400_000));
        let change =
            if draw.once_in(4) { Change::LinkRate(link, draw.rate()) } else { Change::LinkDown(link) };
        config.failures.events.push(Failure { at, change });
        if matches!(change, Change::LinkDown(_)) && !draw.once_in(4) {
            let later = at + Time::from_ns(draw.magnitude(1, 400_000));
            config.failures.events.push(Failure { at: later, change: Change::LinkUp(link) });
        }
    }
    config.failures.events.sort_by_key(|event| event.at);
}

/// The flows of a seed; none where the scenario is refused.
fn flows_of(seed: u64) -> Option<(String, Vec<FlowRecord>)> {
    let mut draw = Draw(RandomStream::new(seed, "ideal"));
    let mut text = scenario(&mut draw, seed);
    let mut config = load(&text, &[]).ok()?.config().ok()?;
    if draw.once_in(2) {
        disorder(&mut draw, &mut config);
    }
    if draw.once_in(3) {
        failures(&mut draw, &mut config);
    }
    for link in &config.topology.links {
        writeln!(text, "# {} - {}: {}, {}", link.a, link.b, link.rate, link.delay).unwrap();
    }
    writeln!(text, "# {:?}", config.failures.events).unwrap();
    let regions = draw.number(1, 3) as usize;
    Some((text, run_in(regions, config).0.flows))
}

#[test]
fn no_flow_takes_less_than_its_ideal_time_whatever_the_paths() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a whole number"))
    };
    let (from, seeds) = (number("IDEAL_FROM", 0), number("IDEAL_SEEDS", 600));
    let (mut finished, mut near, mut wrong) = (0, 0, Vec::new());
    for seed in from..from + seeds {
        let Some((text, flows)) = flows_of(seed) else { continue };
        for flow in &flows {
            assert!(flow.ideal > Time::ZERO, "seed {seed}: {flow:?}");
            let Some(fct) = flow.finish.map(|finish| finish - flow.start) else { continue };
            finished += 1;
            near += u64::from(fct.0 as f64 <= 1.01 * flow.ideal.0 as f64);
            if fct < flow.ideal {
                println!("seed {seed}: {fct} for an ideal {}: {flow:?}\n{text}", flow.ideal);
                wrong.push((seed, fct.0 as f64 / flow.ideal.0 as f64));
            }
        }
    }
    println!("{finished} flows, of which {near} within 1 % of their ideal time");
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(
        seeds < 300 || near * 20 > finished && finished > seeds,
        "{near} of {finished}: the bound says too little"
    );
}

#[test]
fn a_failure_elsewhere_changes_no_ideal_time() {
    let ideal = |topology: &str, flow: &str, failure: &str| {
        let text = format!(
            "[topology]\n{topology}\n[transport]\ncontroller = {{ kind = \"none\" }}\n[[workload]]\nkind = \"flows\"\n\
             flows = [{{ {flow}, size = \"2MB\" }}]\n[failures]\ndetection = \"20us\"\n{failure}\n"
        );
        let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
        let (kept, _) = run_in(1, scenario.config().unwrap());
        let flow = &kept.flows[0];
        (flow.ideal, flow.finish.map(|finish| finish - flow.start))
    };
    let leaves = "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 1\nhost_link = { rate = \"400Gbps\" }\n\
                  fabric_link = { rate = \"100Gbps\" }";
    let planes = "kind = \"hpn\"\nsegments = 2\nnodes_per_segment = 2\ngpus = 2";
    let event = |link: &str| format!("[[failures.event]]\nat = \"20us\"\nlink = {link}");
    for (topology, flow, elsewhere) in [
        (leaves, "src = 1, dst = 2", "[\"leaf0\", \"spine0\"]"),
        (planes, "src = 1, dst = 5", "[\"host0\", \"tor0\"]"),
    ] {
        let intact = ideal(topology, flow, "");
        assert_eq!(ideal(topology, flow, &event(elsewhere)), intact);
        assert_eq!(Some(intact.0), intact.1, "it takes its ideal time");
    }
    // On its own way a failure leaves a bound that holds for both of its paths together.
    let moved = ideal(leaves, "src = 0, dst = 1", &event("[\"leaf0\", \"spine0\"]"));
    assert!(moved.0 < ideal(leaves, "src = 0, dst = 1", "").0);
}
