//! Estimates the duration and the memory of a run before it starts.
//!
//! The time is the number of packet-hops times the cost of one under the scheme, times a factor for data that
//! no longer fits the caches, plus the costs of building, flows and samples. The memory is the peak resident
//! memory of the process, as in summary.json: the program with its interpreter, the network, the flows of
//! traces, the tables being written, and the maximum in flight (see [`replay`](super::replay)). The estimate
//! should be too large rather than too small, because sweeps run as many points at a time as fit.
//!
//! All costs are in the tables below. They were measured with `weftline run` of the scenarios in benches/ and
//! of fat trees with k = 4 to 32, with one thread, on a shared x86-64 server (KVM, Sapphire Rapids class):
//! docs/performance.md compares estimates with measurements.

mod collisions;
mod costs;
mod course;
mod fabric;
mod facts;
mod failing;
mod graphs;
mod inner;
mod loads;
mod nics;
mod odds;
mod offered;
mod outages;
mod recurring;
mod replay;
mod rounds;
mod shares;
mod spread;
mod tiers;

pub use recurring::Work;
pub use replay::Replay;

use crate::clock;
use crate::config::Until;
use crate::machine;
use crate::measure::PortTotals;
use crate::net::failures::Change;
use crate::net::map::Side;
use crate::net::port::Port;
use crate::packet::Packet;
use crate::scenario::Scenario;
use crate::telemetry::TelemetryConfig;
use crate::telemetry::int::{IntRecord, places_of};
use crate::telemetry::packet_digest::PLACES;
use crate::topology::{NodeId, NodeKind, Topology};
use crate::transport::TransportConfig;
use crate::units::{Bytes, Time, two_digits};
use crate::workload::TrafficSize;
use crate::workload::graph::Repeated;
use crate::workload::graph::source::LISTED;
use odds::Ends;
use offered::Overload;

/// (bytes that packets and flows in flight use, factor on the cost of a hop), interpolated over the logarithm
/// of the bytes. The factors lie between the costs of fat trees with k = 16, 24 and 32 relative to k = 8
/// under a shift permutation (1.1, 1.3, 1.55) and under random partners, whose packets queue (2.1 with k =
/// 24).
const CACHE_FACTOR: &[(f64, f64)] = &[(2e6, 1.0), (13e6, 1.3), (44e6, 1.6), (105e6, 1.9)];
/// CPU time of starting, ending and recording a flow, in ns: 10^6 flows of `google-rpc` on k = 8.
const NS_PER_FLOW: f64 = 3000.0;
/// The same of a message of a job, without and with its row, in ns: a ring of 1 000 hosts, kept or fresh
/// connections.
const NS_PER_MESSAGE: f64 = 300.0;
const NS_PER_RECORDED_MESSAGE: f64 = 1700.0;
/// CPU time of the row of a flow that never started, in ns: a training step of 15 ranks and a ring of 1 024,
/// cut off after 1 us.
const NS_PER_UNSTARTED: f64 = 1300.0;
/// CPU time of a message within a scale-up domain, in ns: no packet shows it.
const NS_PER_INSIDE: f64 = 400.0;
/// CPU time of building a port, in ns: k = 32 with flows of one packet.
const NS_PER_PORT: f64 = 2500.0;
/// CPU time of a captured packet, in ns (a dumbbell with `pcap = "*"`, 687 B a packet in the file).
const NS_PER_FRAME: f64 = 2000.0;
/// Additional speed per thread beyond the first, relative to one thread: 0.5, 0.6 and 0.8 on two idle cores
/// for `fat320-hpcc`, `w8-0.5` and `p8` (docs/threads.md).
const GAIN_PER_THREAD: f64 = 0.6;

/// The program with the Python interpreter and its libraries: k = 4 with one flow.
const PROGRAM_BYTES: u64 = 38_500_000;
/// Memory of flows.parquet while a row group is being written: for the first rows, and per flow of the
/// group.
const FLOW_TABLE_BYTES: u64 = 2_500_000;
const FLOW_ROW_BYTES: u64 = 310;
const FLOW_ROWS: u64 = 65_536;
/// The same per row of ranks.parquet or jobs.parquet, which are written when the run has ended.
const RANK_ROW_BYTES: u64 = 250;
/// The same for series.parquet and digests.parquet, with the rows that wait to be written.
const OTHER_TABLE_BYTES: u64 = 3_000_000;
/// Of a long table, a 32nd of its rows waits in memory for a footer, up to a number of bytes.
const WAITING_ROW_BYTES: f64 = 3.0 / 32.0;
const WAITING_BYTES: f64 = 8e6;
/// Share of packets in flight that queue because flows collide, which the replay does not model: between 0
/// for a shift permutation and half for random partners under ECMP.
const QUEUED_SHARE: f64 = 0.4;
/// In addition to its [`Port`] and its totals (twice: they are copied at the end): marker, buffer counters,
/// lists of the topology in its two copies.
const OTHER_PORT_BYTES: u64 = 250;
/// Node, name (three copies), and the state of a host or a switch.
const HOST_BYTES: u64 = 1200;
const SWITCH_BYTES: u64 = 600;
/// Ports of switches that the data and the acknowledgements of a flow pass: there and back through three tiers.
const PASSED_PORTS: f64 = 10.0;
/// Ports of hosts that it passes: data at one end, acknowledgements at the other.
const PASSED_NICS: f64 = 2.0;
/// An entry of the event queue: time, key, action, link.
const EVENT_BYTES: u64 = 40;
/// A flow in flight: queue pair, receiver, gate, timers.
const FLOW_BYTES: u64 = 700;
/// A flow on a connection, until it is acknowledged.
const MESSAGE_BYTES: u64 = 150;
/// A rank of a job, and a rank's part of an operation, until the run ends.
const RANK_BYTES: u64 = 800;
const RANK_STEP_BYTES: u64 = 120;
/// A flow that waits for others: the flow, and the list of flows that wait for it, in hash tables that
/// double.
const WAITING_FLOW_BYTES: u64 = 400;
/// Of a message in the first step of a job, whose order is listed for the ideal time of the step: a ring of 1
/// 000 hosts takes 44 to 52.
const LISTED_MESSAGE_BYTES: u64 = 56;
/// State that receivers keep for a flow that has ended, in hash tables that double; none for a flow without
/// retransmissions.
const ENDED_FLOW_BYTES: u64 = 40;
/// The retransmission timer of a flow that has ended, until it fires.
const TIMER_BYTES: u64 = 64;
/// A finished flow while summary.json is made: percentiles sort all of them.
const SUMMARY_FLOW_BYTES: u64 = 40;
/// The histogram of a port's queue: 250 bins.
const HISTOGRAM_BYTES: u64 = 2000;

/// The estimated cost of a run; for its accuracy see the table in docs/performance.md.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    pub replay: Replay,
    /// CPU time on one core, including building.
    pub seconds: f64,
    /// Wall-clock time with the run's number of threads.
    pub seconds_on_threads: f64,
    /// What the run does at intervals, which is part of its time.
    pub recurring: Work,
    /// When it ends if flows stall, and what it does at intervals until then; none if it ends at a time.
    pub if_stalled: Option<(Time, Work)>,
    pub memory: Memory,
}

/// Peak memory of the process in bytes, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub program: u64,
    /// Ports, hosts, switches, histograms.
    pub network: u64,
    pub routes: u64,
    /// Flows of traces, which are kept for the whole run.
    pub traces: u64,
    /// Tables being written.
    pub tables: u64,
    /// Packets in flight with their telemetry and events.
    pub packets: u64,
    /// Flows in flight, waiting, and ended.
    pub flows: u64,
    /// Memory of the summary, after packets and flows were freed.
    pub summary: u64,
}

impl Memory {
    /// Returns the peak: of the run, or of its summary.
    pub fn peak(&self) -> Bytes {
        let lasting = [self.network, self.routes, self.traces, self.tables];
        let lasting = lasting.into_iter().fold(self.program, u64::saturating_add);
        Bytes(lasting.saturating_add(self.summary.max(self.packets.saturating_add(self.flows))))
    }
}

/// Messages of jobs that fit any machine, whatever a run does with them.
const FEW_MESSAGES: u64 = 10_000_000;
/// Flows looked at for that, apart from those of jobs.
const FIRST_FLOWS: u64 = 1000;
/// Flows looked at before a run starts.
const FLOWS_BEFORE_A_RUN: u64 = 200_000;
/// Parts of the memory of a run that are named in a warning.
const PARTS_NAMED: usize = 2;
/// How far a run's memory may be below its estimate.
const OVERESTIMATE: u64 = 2;

impl Scenario {
    /// Returns everything that follows from the scenario: rates, base RTT, windows, thresholds, headroom,
    /// flows, and the amount of work.
    pub fn check(&self) -> serde_json::Value {
        self.check_on(self.threads.max(1))
    }

    /// The same, with a known number of threads.
    pub fn check_on(&self, threads: usize) -> serde_json::Value {
        facts::facts(self, threads)
    }

    /// Estimates the duration and the memory of the run.
    pub fn estimate(&self) -> Estimate {
        self.estimate_from(replay::MAX_FLOWS)
    }

    /// The same from the first flows only: faster, and equally good if the other flows are similar. What
    /// sources cannot report about the others is counted.
    pub fn estimate_from(&self, max_flows: u64) -> Estimate {
        Estimate::of(self, self.threads.max(1), max_flows).0
    }

    /// Refuses jobs that would fill a machine with this memory before anything could end the run: messages that
    /// ranks send at once begin at one time. Errors: what they would need.
    pub fn fits(&self, machine: Bytes) -> Result<(), String> {
        let graphs = self.traffic.sources.iter().filter_map(|source| source.graph());
        if graphs.map(|graph| u64::from(graph.messages())).sum::<u64>() < FEW_MESSAGES {
            return Ok(());
        }
        let needed = self.estimate_from(FIRST_FLOWS).memory.peak();
        if needed.0 / OVERESTIMATE <= machine.0 {
            return Ok(());
        }
        Err(format!(
            "run.memory: the run would need about {}, and this machine has {}: take fewer messages at a time, such as by a \
             larger chunk; with a limit of your own (--memory) it runs until it holds that",
            Bytes(two_digits(needed.0)),
            Bytes(two_digits(machine.0))
        ))
    }

    /// Returns what deserves a look before a run starts with this limit of memory in a process that holds `held` bytes. The
    /// estimate replays fewer flows than that of `check`, and takes less time.
    pub fn foreseen(&self, limit: Option<Bytes>, held: u64) -> Vec<String> {
        // A limit is what a run may come close to: it is compared with the whole estimate.
        let flows = if limit.is_some() { replay::MAX_FLOWS } else { FLOWS_BEFORE_A_RUN };
        let (mut estimate, size) = Estimate::of(self, self.threads.max(1), flows);
        // A notebook holds more than the bare program.
        estimate.memory.program = estimate.memory.program.max(held);
        estimate.warnings(self, &size, limit)
    }

    /// The estimate from the first flows, as `check` prints it.
    pub fn look(&self, max_flows: u64) -> serde_json::Value {
        facts::estimate_facts(&self.estimate_from(max_flows))
    }
}

impl Estimate {
    /// Replays the first `max_flows` flows of a scenario, and returns the size of all its traffic too.
    /// `threads`: number of threads of the run.
    pub fn of(scenario: &Scenario, threads: usize, max_flows: u64) -> (Estimate, TrafficSize) {
        let (replay, size) = Replay::of(scenario, max_flows);
        let recurring = recurring::work(scenario, replay.end);
        let if_stalled = recurring::if_stalled(scenario, replay.end);
        let memory = memory(scenario, &replay, recurring.rows.max(if_stalled.map_or(0.0, |(_, of)| of.rows)));
        let seconds = seconds(scenario, &replay) + recurring.seconds;
        let memory =
            Memory { routes: memory.routes.saturating_add(rerouted_bytes(scenario, replay.end)), ..memory };
        let extra_threads = threads.saturating_sub(1) as f64;
        let estimate = Estimate {
            replay,
            seconds,
            seconds_on_threads: seconds / (1.0 + GAIN_PER_THREAD * extra_threads),
            recurring,
            if_stalled,
            memory,
        };
        (estimate, size)
    }

    /// Whether the run would exceed the limit of the clock.
    pub fn is_beyond_clock(&self) -> bool {
        self.replay.end > clock::LATEST
    }

    /// Returns what a run will probably come to that deserves a look before it starts: it fills its limit of memory or the
    /// machine, outlives the clock, or does little but take samples. `size`: of all its traffic.
    pub fn warnings(&self, scenario: &Scenario, size: &TrafficSize, limit: Option<Bytes>) -> Vec<String> {
        let machine = machine::memory().map(|memory| memory.total);
        let mut found: Vec<String> = match (limit, machine) {
            (Some(limit), _) => self.memory_warning(limit),
            (None, Some(machine)) => self.machine_warning(scenario, machine),
            (None, None) => None,
        }
        .into_iter()
        .collect();
        found.extend(self.clock_warning(scenario, size));
        let lasting = course::lasting(scenario);
        found.extend(shares::warning(scenario, lasting.as_ref().unwrap_or(&scenario.network)));
        found.extend(self.replay.ends.map(|ends| ends_warning(scenario, ends)));
        found.extend(self.replay.overload.as_ref().map(overload_warning));
        found.extend(recurring::warnings(scenario, self));
        if size.complete && size.drawn == size.flows {
            found.extend(scenario.measure.without_flow(size.flows));
        }
        found
    }

    /// Returns a warning for a run that will probably exceed the limit of the clock, with what makes its time long.
    fn clock_warning(&self, scenario: &Scenario, size: &TrafficSize) -> Option<String> {
        if !self.is_beyond_clock() {
            return None;
        }
        let graphs: Vec<_> = scenario.traffic.sources.iter().map(|source| source.graph()).collect();
        let graphs = graphs.iter().zip(0..).filter_map(|(graph, place)| Some((place, &**graph.as_ref()?)));
        let changed = scenario.failures.events.iter().filter_map(|event| match event.change {
            Change::LinkRate(_, rate) => Some(rate),
            _ => None,
        });
        let reasons = clock::reasons(&scenario.network.topology, changed, size, graphs);
        Some(format!(
            "run.until = flows-done: the run would end after more than {}, and fails there: {reasons}; or set run.until to a time",
            clock::limit()
        ))
    }

    /// Returns a warning for a run that will probably fill the memory of a machine, with what takes most of it.
    fn machine_warning(&self, scenario: &Scenario, machine: Bytes) -> Option<String> {
        let (peak, replay, memory) = (self.memory.peak(), &self.replay, &self.memory);
        if peak <= machine {
            return None;
        }
        let topology = &scenario.network.topology;
        let network = || format!("topology: {} nodes, {} links", topology.nodes.len(), topology.links.len());
        let workload = |text: String| match scenario.traffic.sources.len() {
            1 => format!("workload.0: {text}"),
            _ => format!("workload: {text}"),
        };
        let flows = || {
            let in_flight = two_digits(replay.flows_in_flight);
            workload(format!("{} flows, of which about {in_flight} are in flight at once", replay.flows))
        };
        let packets =
            || workload(format!("about {} packets in flight at once", two_digits(replay.packets_in_flight)));
        let mut parts: Vec<(u64, String)> = vec![
            (memory.network, network()),
            (memory.routes, format!("{}, with the routes of each set of failures", network())),
            (memory.traces, workload("flows of traces".to_string())),
            (memory.tables, "measure: tables while they are written".to_string()),
        ];
        // The summary is made after packets and flows were freed.
        match memory.summary > memory.packets.saturating_add(memory.flows) {
            true => parts.push((memory.summary, flows())),
            false => parts.extend([(memory.packets, packets()), (memory.flows, flows())]),
        }
        parts.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        parts.truncate(PARTS_NAMED);
        parts.retain(|(bytes, _)| *bytes >= peak.0 / 10);
        let parts = parts.iter().map(|(bytes, what)| format!("{} for {what}", Bytes(two_digits(*bytes))));
        Some(format!(
            "run.memory = none: the run will probably need about {}, and this machine has {}, so that it ends early ({}): lower the \
             load or the number of flows at a time, or use a smaller network",
            Bytes(two_digits(peak.0)),
            Bytes(two_digits(machine.0)),
            parts.collect::<Vec<_>>().join("; "),
        ))
    }

    /// Returns a warning for a run that will probably exceed its memory limit.
    pub fn memory_warning(&self, limit: Bytes) -> Option<String> {
        let peak = self.memory.peak();
        (peak > limit).then(|| {
            format!(
                "run.memory: the run will probably need about {} and exceed its limit of {limit}, which \
                 ends it early: lower the load, reduce the packets in flight, or raise the limit",
                Bytes(two_digits(peak.0))
            )
        })
    }
}

/// Warns of links to which flows bring more than they carry.
fn overload_warning(Overload { links, share, .. }: &Overload) -> String {
    format!(
        "workload: flows bring {:.0} % of what {links} can carry, with headers and acknowledgements: queues grow until the arrivals end, so that completion \
         times depend on how long the run is; lower the load",
        100.0 * share
    )
}

/// Warns of an end that depends on the next hops that flows take.
fn ends_warning(scenario: &Scenario, Ends { early, late, chance }: Ends) -> String {
    let [early, late] = [early, late].map(|time| Time(two_digits(time.0)));
    let (next_hops, taken) = match scenario.failures.events.iter().any(|event| event.change.is_down()) {
        true => ("next hops, some of which fail or are slow,", "one that fails or is slow"),
        false => ("next hops of unequal rates", "a slow one"),
    };
    format!(
        "switch.balancer: \"{}\" has {next_hops} to choose from for flows that decide when the run ends: with a chance of \
         {:.0} % one of them takes {taken}; the run ends at about {early} if none does, and at about {late} if one does",
        scenario.switch.balancer.name(),
        100.0 * chance
    )
}

/// Memory of the routes that failures lead to.
fn rerouted_bytes(scenario: &Scenario, end: Time) -> u64 {
    let states = failing::cost(scenario, failing::counted_until(scenario, end)).states;
    let sides = 2 * scenario.network.topology.links.len() * size_of::<Side>();
    states.saturating_mul((scenario.network.routes.memory_bytes() + sides) as u64)
}

fn seconds(scenario: &Scenario, replay: &Replay) -> f64 {
    let topology = &scenario.network.topology;
    let busy = replay.packets_met / (replay.packets_in_flight as f64).max(1.0);
    let in_use = replay.packets_met * packet_bytes(scenario) as f64
        + busy * replay.flows_in_flight as f64 * FLOW_BYTES as f64;
    let links = topology.links.len() as f64;
    let captured = scenario.measure.capture.as_ref().map_or(0.0, |capture| capture.ports.len() as f64);
    let jobs = Jobs::of(scenario);
    let ns = replay.packet_hops * ns_per_hop(scenario) * cache_factor(in_use)
        + replay.packet_hops * captured / (2.0 * links) * NS_PER_FRAME
        + replay.flows.saturating_sub(jobs.recorded + jobs.unrecorded) as f64 * NS_PER_FLOW
        + replay.flows.min(jobs.unrecorded) as f64 * NS_PER_MESSAGE
        + replay.flows.min(jobs.recorded) as f64 * NS_PER_RECORDED_MESSAGE
        + unstarted(replay, &jobs) as f64 * NS_PER_UNSTARTED
        + jobs.inside as f64 * NS_PER_INSIDE
        + 2.0 * links * NS_PER_PORT;
    ns / 1e9 + recurring::window_seconds(scenario, replay)
}

/// Flows that have rows although they never started.
fn unstarted(replay: &Replay, jobs: &Jobs) -> u64 {
    replay.unstarted + jobs.recorded.saturating_sub(replay.flows)
}

/// CPU time of a packet-hop under the most expensive transport and controller of the scenario.
fn ns_per_hop(scenario: &Scenario) -> f64 {
    scenario.transports.iter().map(|transport| transport.facts().ns_per_hop).fold(0.0, f64::max)
}

/// The factor on the cost of a hop if this many bytes are in use.
fn cache_factor(bytes: f64) -> f64 {
    let (first, last) = (CACHE_FACTOR[0], CACHE_FACTOR[CACHE_FACTOR.len() - 1]);
    if bytes <= first.0 {
        return first.1;
    }
    let between = CACHE_FACTOR.windows(2).find(|pair| bytes <= pair[1].0);
    between.map_or(last.1, |pair| {
        let share = (bytes / pair[0].0).ln() / (pair[1].0 / pair[0].0).ln();
        pair[0].1 + share * (pair[1].1 - pair[0].1)
    })
}

fn memory(scenario: &Scenario, replay: &Replay, rows: f64) -> Memory {
    let topology = &scenario.network.topology;
    let (ports, hosts) = (2 * topology.links.len() as u64, topology.hosts().len() as u64);
    let switches = topology.switches().len() as u64;
    let port = (size_of::<Port>() + 2 * size_of::<PortTotals>()) as u64 + OTHER_PORT_BYTES;
    let histograms = scenario.measure.queue_histogram.as_ref().map_or(0, |m| m.what.len() as u64);
    let jobs = Jobs::of(scenario);
    let ended = replay.flows.saturating_sub(jobs.kept);
    let timers = (ended as f64 * timers_left(scenario, replay.end)) as u64;
    Memory {
        program: PROGRAM_BYTES,
        network: (ports * port + hosts * HOST_BYTES + switches * SWITCH_BYTES + histograms * HISTOGRAM_BYTES)
            .saturating_add(disciplines_bytes(scenario, replay.flows))
            .saturating_add(balancers_bytes(scenario, switches, replay.flows)),
        // The routes of the scenario, and those of the run, which failures change.
        routes: 2 * scenario.network.routes.memory_bytes() as u64,
        traces: scenario.traffic.sources.iter().map(|source| source.memory_bytes()).sum(),
        tables: table_bytes(
            scenario,
            replay.flows.saturating_sub(jobs.unrecorded) + unstarted(replay, &jobs),
            jobs.rows,
            rows,
        ),
        packets: ((replay.packets_in_flight as f64 * (1.0 + QUEUED_SHARE)) as u64)
            .saturating_add(recurring::probes_in_flight(scenario))
            .saturating_mul(packet_bytes(scenario)),
        flows: ((replay.flows_in_flight - replay.messages_in_flight).saturating_mul(FLOW_BYTES))
            .saturating_add(replay.messages_in_flight.saturating_mul(MESSAGE_BYTES))
            .saturating_add(connections_bytes(scenario, replay.connections.max(jobs.connections)))
            .saturating_add(jobs.bytes)
            .saturating_add(replay.flows_waiting.saturating_mul(WAITING_FLOW_BYTES))
            .saturating_add(ended.saturating_mul(ENDED_FLOW_BYTES))
            .saturating_add(timers.saturating_mul(TIMER_BYTES)),
        summary: replay.flows.saturating_sub(jobs.unrecorded).saturating_mul(SUMMARY_FLOW_BYTES),
    }
}

/// Memory of the disciplines at the ports of switches and hosts: of all ports, and of those that flows pass.
fn disciplines_bytes(scenario: &Scenario, flows: u64) -> u64 {
    let (topology, switch) = (&scenario.network.topology, &scenario.switch);
    let is_switch = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Switch;
    let ends = topology.links.iter().flat_map(|link| [link.a, link.b]);
    let ports = ends.filter(|&node| is_switch(node)).count() as u64;
    let nics = 2 * topology.links.len() as u64 - ports;
    let passing = |ports: u64, passed: f64| flows as f64 * passed / ports.max(1) as f64;
    let of_hosts = scenario.host.queue.iter().map(|queue| (nics, queue, passing(nics, PASSED_NICS)));
    let others: u64 = switch.port_queues.iter().map(|(ports, _)| ports.len() as u64).sum();
    let own = switch.port_queues.iter().map(|(ports, queue)| (ports.len() as u64, queue));
    let of_switches = own.chain([(ports.saturating_sub(others), &switch.queue)]);
    let all = of_switches.map(|(at, queue)| (at, queue, passing(ports, PASSED_PORTS))).chain(of_hosts);
    all.map(|(at, queue, flows)| queue.facts().memory.of_ports(at, flows)).fold(0, u64::saturating_add)
}

/// Memory of the tables of balancers: for all switches with hosts, and for those that flows connect. A flow takes up to four
/// pages at each end: one of each of two lists, in two tables.
fn balancers_bytes(scenario: &Scenario, switches: u64, flows: u64) -> u64 {
    const PAGES_OF_FLOW: u64 = 8 * 4096;
    let (facts, racks) = (scenario.switch.balancer.facts(), with_hosts(&scenario.network.topology) as u64);
    let of_leaves = (racks * racks).saturating_mul(facts.leaf_bytes).min(flows.saturating_mul(PAGES_OF_FLOW));
    (switches * racks).saturating_mul(facts.rack_bytes).saturating_add(of_leaves)
}

/// The number of switches with hosts.
fn with_hosts(topology: &Topology) -> usize {
    topology.nodes.iter().filter(|node| node.tier == 1).count()
}

/// Whether what starts at a time does so before the run ends.
fn is_due(until: Until, start: Time) -> bool {
    !matches!(until, Until::At(stop) if start > stop)
}

/// What job graphs keep that start before the run ends, and what their messages do not.
#[derive(Default)]
struct Jobs {
    /// Messages of which nothing is left when they have ended: their connections stay.
    kept: u64,
    /// Messages without rows, and those with one, also where they never start.
    unrecorded: u64,
    recorded: u64,
    /// Messages that stay off the network.
    inside: u64,
    connections: u64,
    /// Rows of ranks.parquet and jobs.parquet.
    rows: u64,
    /// Ranks, what they ended, and a bit for each message.
    bytes: u64,
}

impl Jobs {
    fn of(scenario: &Scenario) -> Jobs {
        let mut jobs = Jobs::default();
        let graphs = scenario.traffic.sources.iter().filter_map(|source| source.graph());
        for graph in graphs.filter(|graph| is_due(scenario.until, graph.flow.start)) {
            let transport = scenario.transports.get(usize::from(graph.flow.transport));
            let keeps = transport.is_some_and(|transport| transport.facts().keeps_connections);
            if keeps && !graph.fresh {
                jobs.kept += graph.flows();
                jobs.connections += graph.connections();
            }
            *(if graph.recorded { &mut jobs.recorded } else { &mut jobs.unrecorded }) += graph.flows();
            jobs.inside += u64::from(graph.messages()).saturating_sub(graph.flows());
            let rank_steps: u64 = (0..graph.steps()).map(|step| u64::from(graph.ranks_of(step))).sum();
            let listed = graph.repeated().map(Repeated::each).filter(|&count| count <= LISTED).unwrap_or(0);
            jobs.rows += rank_steps + u64::from(graph.steps());
            jobs.bytes += u64::from(graph.ranks()) * RANK_BYTES
                + u64::from(listed) * LISTED_MESSAGE_BYTES
                + rank_steps * RANK_STEP_BYTES
                + u64::from(graph.messages()) / 8;
        }
        jobs
    }
}

/// Memory of tables while they are written.
fn table_bytes(scenario: &Scenario, flows: u64, ranks: u64, series: f64) -> u64 {
    let table = |rows: u64, row: u64| {
        let rows = rows.min(FLOW_ROWS);
        rows * row + (rows * row * 3).min(FLOW_TABLE_BYTES)
    };
    let flows = table(flows, FLOW_ROW_BYTES) + table(ranks, RANK_ROW_BYTES);
    let others = u64::from(series >= 1.0) + u64::from(matches!(scenario.telemetry, TelemetryConfig::Pint(_)));
    let waiting = (series * WAITING_ROW_BYTES).min(WAITING_BYTES) as u64;
    flows + others * OTHER_TABLE_BYTES + waiting
}

/// Memory of connections that stay open. A host has them in a list that doubles, from four places on.
fn connections_bytes(scenario: &Scenario, connections: u64) -> u64 {
    let hosts = (scenario.network.topology.hosts().len() as u64).min(connections).max(1);
    let places = hosts.saturating_mul(connections.div_ceil(hosts).next_power_of_two().max(4));
    let of_transport = |transport: &TransportConfig| {
        let facts = transport.facts();
        let empty = places.saturating_sub(connections).saturating_mul(facts.connection_place);
        connections.saturating_mul(facts.connection_bytes).saturating_add(empty)
    };
    if connections == 0 { 0 } else { scenario.transports.iter().map(of_transport).max().unwrap_or(0) }
}

/// Share of the flows whose retransmission timer has not fired when the run ends.
fn timers_left(scenario: &Scenario, end: Time) -> f64 {
    let timeouts = scenario.transports.iter().map(|transport| transport.facts().timer_left);
    let longest = timeouts.max().unwrap_or(Time::ZERO);
    (longest.as_seconds() / end.as_seconds().max(1e-12)).min(1.0)
}

/// Memory of a packet in flight, with its event, and its telemetry if packets have any.
fn packet_bytes(scenario: &Scenario) -> u64 {
    let telemetry = match &scenario.telemetry {
        TelemetryConfig::None => 0,
        TelemetryConfig::Int { max_hops, .. } => {
            (places_of(*max_hops as usize) * size_of::<IntRecord>()) as u64
        }
        TelemetryConfig::Pint(_) => (PLACES * size_of::<IntRecord>()) as u64,
    };
    size_of::<Packet>() as u64 + EVENT_BYTES + telemetry
}

#[cfg(test)]
mod tests;
