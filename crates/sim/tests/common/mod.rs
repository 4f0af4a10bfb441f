//! Networks, flows and settings for tests, stated in full so that nothing depends on defaults that may change.
#![allow(dead_code)]

mod kept;
pub mod phost_paper;

pub use kept::Kept;

use pint::utilisation::Law;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weftline_sim::balance::BalancerConfig;
use weftline_sim::balance::ecmp::EcmpParameters;
use weftline_sim::compat::Rules;
use weftline_sim::config::*;
use weftline_sim::congestion::ControllerConfig;
use weftline_sim::engine::random::RandomStream;
use weftline_sim::measure::{FlowRecord, LossCounters, Outcome, PortTotals};
use weftline_sim::parameters::{Declared, Parameters, Source, Value};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::telemetry::pint::{Computed, PintConfig};
use weftline_sim::topology::{LinkId, LinkSpec, NodeId, Topology};
use weftline_sim::units::{Bytes, Rate, Time};
use weftline_sim::workload::{FlowSource, FlowSpec, Traffic};
use weftline_sim::{Execution, Simulation};

/// A dumbbell with hosts at 1 Gb/s and 1 ms, 100 Mb/s and 8 ms between them: data of 1050 B, all else 50 B.
pub const DUMBBELL: &str = r#"
[topology]
kind = "dumbbell"
left = 4
right = 4
host_link = { rate = "1Gbps", delay = "1ms" }
bottleneck_link = { rate = "100Mbps", delay = "8ms" }

[transport]
kind = "tcp"
mss = "1000B"
header = "50B"
ack_header = "50B"
syn_header = "50B"
ack_every = 1
controller = { kind = "newreno" }

[[workload]]
kind = "permutation"
size = "1KB"
"#;

/// Three leaves of four hosts and two spines, all links at 100 Gb/s and 1 us.
pub const THREE_LEAVES: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 3
spines = 2
hosts_per_leaf = 4
host_link = { rate = "100Gbps", delay = "1us" }
fabric_link = { rate = "100Gbps", delay = "1us" }
"#;

/// Two leaves and four spines; hosts at 1 Gb/s and 1 ms, 100 Mb/s and 1 ms by each spine. Data have 1050 B, all else 50 B and
/// what an option of the set-up adds.
pub const FOUR_PATHS: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
host_link = { rate = "1Gbps", delay = "1ms" }
fabric_link = { rate = "100Mbps", delay = "1ms" }

[transport]
kind = "mptcp"
mss = "1000B"
header = "50B"
ack_header = "50B"
syn_header = "50B"
controller = { kind = "newreno" }

[[workload]]
kind = "permutation"
size = "1KB"
"#;

/// Runs to the end; flows come back by id. Outside the compat mode the run is repeated with the network cut into two to
/// eight regions, on two threads: it must be the same run.
pub fn run(config: Config) -> (Kept, Outcome) {
    let (mut kept, outcome) = run_in(1, config.clone());
    check_losses(&kept, &outcome);
    if config.rules == Rules::none() {
        // Another number with each run of a test, but the same each time that the test runs.
        let regions = 2 + (outcome.fingerprint % 7) as usize;
        let (again, outcome_again) = run_in(regions, config);
        assert_eq!(outcome, outcome_again, "in {regions} regions");
        assert_eq!(kept.flows, again.flows, "in {regions} regions");
        assert_eq!(kept.samples, again.samples, "in {regions} regions");
        assert_eq!(kept.digests, again.digests, "in {regions} regions");
        assert_eq!(kept.frames, again.frames, "in {regions} regions");
    }
    kept.flows.sort_by_key(|flow| flow.flow);
    (kept, outcome)
}

/// Runs to the end with the network cut into this number of regions.
pub fn run_in(regions: usize, config: Config) -> (Kept, Outcome) {
    // More than one thread now and then: they make no difference to the results, but to the time that tests take.
    let threads = if regions % 3 == 0 { 2 } else { 1 };
    run_as(Execution { threads, regions: Some(regions), windows: Some(regions % 2 == 0) }, config)
}

/// Runs to the end as the execution says.
pub fn run_as(execution: Execution, config: Config) -> (Kept, Outcome) {
    let mut kept = Kept::default();
    let simulation = Simulation::new(config, execution).expect("a valid configuration");
    let outcome = simulation.run(&mut kept, &mut |_| true).expect("a valid run");
    (kept, outcome)
}

/// A fixed list of flows, in order of start.
#[derive(Clone)]
pub struct Listed(pub std::vec::IntoIter<FlowSpec>);

impl FlowSource for Listed {
    fn next(&mut self) -> Option<FlowSpec> {
        self.0.next()
    }
    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }
}

pub fn traffic(flows: Vec<FlowSpec>) -> Traffic {
    Traffic { sources: vec![Box::new(Listed(flows.into_iter()))], groups: vec!["all".into()] }
}

/// Parameters given as (key, value).
pub struct Given<'a>(pub &'a [(&'a str, Value)]);

impl Source for Given<'_> {
    fn get(&mut self, key: &str) -> Option<Value> {
        self.0.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone())
    }
    fn complain(&mut self, key: &str, message: String) {
        panic!("{key}: {message}");
    }
    fn declare(&mut self, _declared: Declared, _resolved: Option<Value>) {}
}

/// A scenario with some settings changed, as `--set` changes them; or what is wrong with it.
pub fn load(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, String> {
    load_in(Path::new("."), text, sets)
}

/// The same, of a scenario that names files in a folder.
pub fn load_in(folder: &Path, text: &str, sets: &[(&str, &str)]) -> Result<Scenario, String> {
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Scenario::load(text, "s.toml", folder, &sets, None, Hooks::default()).map_err(|error| error.to_string())
}

/// A controller by the name used in the reference data: a trailing `w` adds the window.
pub fn controller(name: &str) -> ControllerConfig {
    let window = [("window", Value::Flag(true))];
    let (kind, given): (&str, &[(&str, Value)]) = match name {
        "dcqcnw" => ("dcqcn", &window),
        "timelyw" => ("timely", &window),
        "hpint" => ("hpcc-pint", &[]),
        "hpint16" => ("hpcc-pint", &[("p", Value::Number(1.0 / 16.0))]),
        other => (other, &[]),
    };
    ControllerConfig::read(kind, &mut Parameters::new(&mut Given(given))).expect("a known controller")
}

pub fn rdma(controller: ControllerConfig) -> RdmaConfig {
    RdmaConfig {
        ack_priority: controller.needs().ack_priority,
        acks_first: false,
        controller,
        mtu: 1000,
        header: 48,
        ack_header: 46,
        min_ack: 60,
        class: 3,
        recovery: Recovery::GoBackN,
        nack_interval: Time::from_us(500),
        rto: None,
        pacing: true,
        window: None,
        base_rtt: None,
        plb: None,
        derived: Default::default(),
    }
}

/// The published settings of a scheme on this network, in the compat mode.
pub fn published(name: &str, topology: Topology, flows: Vec<FlowSpec>, buffer: Bytes, seed: u64) -> Config {
    let dctcp = name == "dctcp";
    let ecn = [25u64, 50, 100, 200, 400]
        .map(|gbps| {
            let (kmin, kmax, pmax) = if dctcp {
                (30_000 * gbps / 10, 30_000 * gbps / 10, 1.0)
            } else {
                (100_000 * gbps / 25, 400_000 * gbps / 25, 0.2)
            };
            EcnThreshold {
                rate: Rate::from_gbps(gbps),
                kmin: Bytes(kmin),
                kmax: Bytes(kmax),
                pmax,
                at: Default::default(),
            }
        })
        .to_vec();
    Config {
        seed,
        topology,
        host: HostConfig::default(),
        switch: SwitchConfig {
            buffer,
            forwarding: Forwarding::StoreAndForward,
            ecn,
            pfc: PfcConfig {
                enabled: true,
                classes: 1,
                reserve: Bytes(4096),
                headroom_factor: 3,
                headroom_extra: false,
                resume_offset: Bytes(3072),
                shift: 3,
            },
            lossy_alpha: 1.0,
            balancer: BalancerConfig::Ecmp(EcmpParameters { salt: 0 }),
            queue: QueueConfig::default(),
            port_queues: Vec::new(),
        },
        transports: vec![TransportConfig::Rdma(rdma(controller(name)))],
        telemetry: match name {
            "hpint" | "hpint16" => pint_of_the_authors(seed),
            _ => TelemetryConfig::Int { max_hops: 5, path_id: false, all: false },
        },
        traffic: traffic(flows),
        failures: Failures::default(),
        until: Until::FlowsDone { grid: Time::from_us(10), stall: Time::from_ms(200) },
        measure: MeasureConfig { ideal: IdealFct::Hpcc, ..MeasureConfig::default() },
        slower: 1,
        rules: Rules::hpcc_ns3(),
        memo: false,
    }
}

/// HPCC-PINT's digest as in the authors' simulator: a code of base 1.05 in two bytes.
fn pint_of_the_authors(seed: u64) -> TelemetryConfig {
    let pint = PintConfig::of_load(Law::Code, Computed::Exact, 1.05, 8, 1 << 16, seed).expect("a grid");
    TelemetryConfig::Pint(Arc::new(PintConfig { wire_bytes: 2, ..pint }))
}

/// The reference folder: `WEFTLINE_REFERENCE`, or `../shared/reference` next to the repository.
pub fn reference() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("WEFTLINE_REFERENCE")
        .map_or_else(|| root.join("../shared/reference"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no reference data at {} (set WEFTLINE_REFERENCE)", folder.display());
    None
}

/// Rows of a gzipped CSV of whole numbers, without its header.
pub fn rows(path: &Path) -> Vec<Vec<u64>> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    let number = |field: &str| field.parse().unwrap_or_else(|_| panic!("{}: {field}", path.display()));
    text.lines().skip(1).map(|line| line.split(',').map(number).collect()).collect()
}

/// Topology and flows of a reference case.
pub fn case(name: &str) -> Option<(Topology, Vec<FlowSpec>, PathBuf)> {
    let folder = reference()?.join("hpcc").join(name);
    let text = std::fs::read(folder.join("topology.txt")).expect("topology.txt");
    let (topology, _) = weftline_sim::topology::hpcc_text::read(&text, "topology.txt").expect("a topology");
    let flows = flows_of(&folder.join("flows.csv.gz"));
    Some((topology, flows, folder))
}

/// The flows of a file of the reference: number, source, destination, size, start in ns.
pub fn flows_of(file: &Path) -> Vec<FlowSpec> {
    let flow = |row: Vec<u64>| FlowSpec {
        src: row[1] as u32,
        dst: row[2] as u32,
        size: row[3],
        start: Time::from_ns(row[4]),
        ..FlowSpec::default()
    };
    rows(file).into_iter().map(flow).collect()
}

/// Settings outside the compat mode: ideal times exact, no marking, PFC with headroom, no unread telemetry,
/// a retransmission timeout. Tests change what they are about.
pub fn normal(controller_name: &str, topology: Topology, flows: Vec<FlowSpec>) -> Config {
    let mut config = published(controller_name, topology, flows, Bytes(32 << 20), 1);
    config.rules = Rules::none();
    config.measure = MeasureConfig::default();
    config.switch.pfc.headroom_extra = true;
    config.until = Until::FlowsDone { grid: Time::from_us(1), stall: Time::from_ms(20) };
    rdma_of(&mut config).rto = Some(Time::from_us(500));
    config
}

/// The first transport's settings.
pub fn rdma_of(config: &mut Config) -> &mut RdmaConfig {
    match &mut config.transports[0] {
        TransportConfig::Rdma(rdma) => rdma,
        other => panic!("the transport is {}", other.name()),
    }
}

pub fn flow(src: u32, dst: u32, size: u64, start: Time) -> FlowSpec {
    FlowSpec { src, dst, size, start, ..FlowSpec::default() }
}

/// Flows between random hosts; starts on a grid so coarse that many are simultaneous.
pub fn random_flows(hosts: u32, count: usize, seed: u64) -> Vec<FlowSpec> {
    let mut random = RandomStream::new(seed, "flows");
    let mut flows: Vec<FlowSpec> = (0..count)
        .map(|_| {
            let src = random.below(u64::from(hosts)) as u32;
            let dst = (src + 1 + random.below(u64::from(hosts) - 1) as u32) % hosts;
            flow(src, dst, 1 + random.below(100_000), Time::from_us(random.below(10)))
        })
        .collect();
    flows.sort_by_key(|flow| flow.start);
    flows
}

/// What happens to a network at some microsecond, from numbers that a random test draws: a kind of change, and which of
/// `links` links or of `switches` it befalls.
pub fn failure((us, kind, which): (u64, u8, u32), links: u32, switches: &[NodeId]) -> Failure {
    let (link, switch) = (which % links, switches[which as usize % switches.len()]);
    let change = match kind {
        0 | 1 => Change::LinkDown(link),
        2 => Change::LinkUp(link),
        3 => Change::LinkRate(link, Rate::from_mbps(33_333)),
        4 => Change::SwitchDown(switch),
        _ => Change::SwitchUp(switch),
    };
    Failure { at: Time::from_us(us), change }
}

pub fn link(rate: Rate, delay: Time) -> LinkSpec {
    LinkSpec { rate, delay }
}

/// Port of `node` on the link between it and `neighbour`.
pub fn port_towards(topology: &Topology, node: NodeId, neighbour: NodeId) -> u32 {
    let ports = &topology.ports()[node as usize];
    ports.iter().position(|port| port.1 == neighbour).expect("the nodes are linked") as u32
}

pub fn link_between(topology: &Topology, a: NodeId, b: NodeId) -> LinkId {
    let joins = |l: &&weftline_sim::topology::Link| (l.a, l.b) == (a, b) || (l.a, l.b) == (b, a);
    let at = topology.links.iter().position(|l| joins(&l)).expect("the nodes are linked");
    at as LinkId
}

pub fn node_named(topology: &Topology, name: &str) -> NodeId {
    topology.nodes.iter().position(|node| node.name == name).expect("a node of this name") as NodeId
}

/// Totals of one port.
pub fn totals_of(outcome: &Outcome, node: NodeId, port: u32) -> PortTotals {
    outcome.ports.iter().find(|p| (p.0, p.1) == (node, port)).expect("a port").2
}

/// A quantity of all ports added up.
pub fn sum_of(outcome: &Outcome, of: impl Fn(&PortTotals) -> u64) -> u64 {
    outcome.ports.iter().map(|(_, _, totals)| of(totals)).sum()
}

/// A total that schemes counted; 0 where none did.
pub fn total(outcome: &Outcome, key: &str) -> u64 {
    outcome.counters.get(key).unwrap_or(0)
}

/// What became of the data packets of all groups.
pub fn losses_of(outcome: &Outcome) -> LossCounters {
    let mut all = LossCounters::default();
    outcome.losses.iter().for_each(|group| all += *group);
    all
}

/// No data packet and no retransmission goes astray. That each group receives what it sends except what was lost or is in flight is
/// asserted where the run adds up; here, that packets which came are new ones, ones that came again, or ones that were refused.
pub fn check_losses(kept: &Kept, outcome: &Outcome) {
    let all = losses_of(outcome);
    let sum = |of: fn(&FlowRecord) -> u64| kept.flows.iter().map(of).sum::<u64>();
    assert_eq!(all.data_sent, all.data_received + all.lost() + all.data_in_flight, "{all:?}");
    // A connection that stays open may repeat what is acknowledged when it carries no flow.
    assert!(all.retransmitted >= sum(|flow| flow.packets_retransmitted));
    assert_eq!(all.retransmitted, all.retransmitted_needed + all.retransmitted_spurious);
    if kept.flows.iter().all(|flow| flow.finish.is_some()) {
        let new = sum(|flow| flow.packets_sent - flow.packets_retransmitted);
        assert_eq!(all.data_received, new + all.retransmitted_spurious + all.data_refused, "{all:?}");
        assert!(all.timeouts >= sum(|flow| u64::from(flow.timeouts)));
    }
    // Ports count packets of every kind.
    assert!(all.data_dropped <= sum_of(outcome, |port| port.packets_dropped));
    assert!(all.data_stranded <= sum_of(outcome, |port| port.packets_stranded));
    assert!(all.data_lost_at_random <= sum_of(outcome, |port| port.packets_lost_at_random));
    let on_dead_links = sum_of(outcome, |port| port.packets_lost - port.packets_lost_at_random);
    assert!(all.data_lost_on_dead_links <= on_dead_links);
}

/// Completion times in the order of flow ids; every flow must have ended.
pub fn completion_times(kept: &Kept) -> Vec<Time> {
    let fct = |flow: &FlowRecord| flow.finish.unwrap_or_else(|| panic!("no end: {flow:?}")) - flow.start;
    kept.flows.iter().map(fct).collect()
}
