//! What a run does at intervals, whether packets move or not: samples of series, probes of balancers. While
//! the network is quiet this is all that a run costs: rows that must be written, and probes that must run;
//! and an end of flows that is looked for too often takes a window for each event.

use super::{Estimate, Replay, failing, is_due, ns_per_hop};
use crate::config::Until;
use crate::measure::Sampled;
use crate::scenario::Scenario;
use crate::scenario::probes::copies;
use crate::topology::{Link, NodeId, NodeKind, Topology};
use crate::units::{Time, two_digits};

/// CPU time of a row of a series, in ns: a row for each port every 10 ms of quiet time, with series.parquet.
/// A look at a queue discipline also makes up for what it does in an interval.
const NS_PER_ROW: f64 = 100.0;
/// What is added if each row of a row group has a name of its own, which the table looks up among all of them
/// (k = 32, a row for each port of a switch), and the rows of a row group.
const NS_PER_NAME: f64 = 150.0;
const ROWS_PER_GROUP: f64 = 65_536.0;
const NS_PER_DISCIPLINE: f64 = 5000.0;
/// CPU time of one sample of a histogram, in ns (`fat320-hpcc` with samples every 1 us and every 100 ns: 7
/// and 19).
const NS_PER_SAMPLE: f64 = 15.0;
/// CPU time of a window that ends for a sample or a look for the end of the run, in ns.
const NS_PER_WINDOW: f64 = 500.0;
/// Rows of a port, a queue discipline, or a controller; of the last two about that many.
const ROWS_OF_PORT_EVENTS: usize = 3;
const ROWS_OF_DISCIPLINE: usize = 8;
const ROWS_OF_CONTROLLER: usize = 4;
/// Work at intervals that takes this many seconds on the machine of the tables, and most of the run, gets a
/// warning.
const WORTH_A_WARNING: f64 = 10.0;

/// Something done at intervals.
struct Recurring {
    /// The key of the interval, and its value.
    key: String,
    every: Time,
    /// What is done each time: rows of series.parquet, packet-hops of probes, and their CPU time in ns.
    rows: f64,
    packet_hops: f64,
    ns: f64,
}

impl Recurring {
    fn work(&self, time: Time) -> Work {
        let times = (time.0 / self.every.0.max(1)) as f64;
        let (rows, packet_hops) = (times * self.rows, times * self.packet_hops);
        Work { seconds: times * self.ns / 1e9, rows, packet_hops }
    }

    /// "measure.queues.every = 1us: 1.2e9 rows of series.parquet in 1200s of simulated time, about 93 % of
    /// the estimated CPU time of the run". `planned`: estimated CPU time of the run.
    fn text(&self, time: Time, planned: f64) -> String {
        let Work { seconds, rows, packet_hops } = self.work(time);
        let time = Time(two_digits(time.0));
        let what = if rows > 0.0 {
            format!("{rows:.1e} rows of series.parquet")
        } else {
            format!("{packet_hops:.1e} packet-hops of probes")
        };
        format!(
            "{} = {}: {what} in {time} of simulated time, {}",
            self.key,
            self.every,
            of_run(seconds, planned)
        )
    }
}

/// What is done at intervals in some time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// CPU time.
    pub seconds: f64,
    /// Rows of series.parquet.
    pub rows: f64,
    /// Packet-hops of probes.
    pub packet_hops: f64,
}

/// Everything that a run does at intervals.
fn all(scenario: &Scenario) -> Vec<Recurring> {
    let measure = &scenario.measure;
    let series = |key: &str, sampled: Option<(usize, Time)>, rows_of_each: usize| {
        let (entities, every) = sampled?;
        let rows = (entities * rows_of_each) as f64;
        let key = format!("measure.{key}.every");
        let ns = NS_PER_ROW + NS_PER_NAME * (entities as f64 / ROWS_PER_GROUP).min(1.0);
        Some(Recurring { key, every, rows, packet_hops: 0.0, ns: rows * ns })
    };
    let disciplines = series("disciplines", count(&measure.disciplines), ROWS_OF_DISCIPLINE);
    let probes = scenario.switch.balancer.facts().probes.map(|(key, every)| {
        let packet_hops = hops_of_probes(scenario);
        let (key, ns) = (format!("switch.balancer.{key}"), packet_hops * ns_per_hop(scenario));
        Recurring { key, every, rows: 0.0, packet_hops, ns }
    });
    let found = [
        series("queues", count(&measure.queue_series), 1),
        series("utilisation", count(&measure.utilisation), 1),
        series("port_events", count(&measure.port_events), ROWS_OF_PORT_EVENTS),
        series("goodput", count(&measure.flow_goodput), 1),
        series("goodput", measure.group_goodput.map(|every| (scenario.traffic.groups.len(), every)), 1),
        series("controllers", count(&measure.controllers), ROWS_OF_CONTROLLER),
        disciplines.map(|of| Recurring {
            ns: of.ns + of.rows / ROWS_OF_DISCIPLINE as f64 * NS_PER_DISCIPLINE,
            ..of
        }),
        probes,
    ];
    found.into_iter().flatten().collect()
}

/// Packet-hops of a round of probes: one of each switch with hosts crosses each link between switches, or more where switches
/// pass on every probe.
fn hops_of_probes(scenario: &Scenario) -> f64 {
    let topology = &scenario.network.topology;
    if scenario.switch.balancer.facts().copies_probes {
        return copies(topology).iter().sum();
    }
    (super::with_hosts(topology) * between_switches(topology).count()) as f64
}

fn between_switches(topology: &Topology) -> impl Iterator<Item = &Link> {
    let is_switch = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Switch;
    topology.links.iter().filter(move |link| is_switch(link.a) && is_switch(link.b))
}

/// Probes that are on links at once.
pub(super) fn probes_in_flight(scenario: &Scenario) -> u64 {
    let topology = &scenario.network.topology;
    let facts = scenario.switch.balancer.facts();
    let Some((_, every)) = facts.probes else { return 0 };
    let probes: f64 = if facts.copies_probes {
        let crossed = copies(topology);
        topology
            .links
            .iter()
            .zip(crossed.chunks(2))
            .map(|(of, both)| of.delay.0 as f64 * (both[0] + both[1]))
            .sum()
    } else {
        let delays: f64 = between_switches(topology).map(|link| link.delay.0 as f64).sum();
        super::with_hosts(topology) as f64 * delays
    };
    (probes / every.0.max(1) as f64) as u64
}

fn count<T>(sampled: &Option<Sampled<Vec<T>>>) -> Option<(usize, Time)> {
    sampled.as_ref().map(|of| (of.what.len(), of.every))
}

/// What a scenario does at intervals in this time, and for its failures.
pub(super) fn work(scenario: &Scenario, time: Time) -> Work {
    let changes = failing::cost(scenario, failing::counted_until(scenario, time));
    let first = Work { seconds: changes.seconds, ..Work::default() };
    all(scenario).iter().map(|of| of.work(time)).fold(first, |sum, of| Work {
        seconds: sum.seconds + of.seconds,
        rows: sum.rows + of.rows,
        packet_hops: sum.packet_hops + of.packet_hops,
    })
}

/// CPU time relative to that of the run, which is the same on any machine: the tables of costs have the seconds
/// of one machine.
fn of_run(seconds: f64, planned: f64) -> String {
    let share = seconds / planned;
    let relative = match share < 2.0 {
        true => format!("{:.0} % of", 100.0 * share),
        false => format!("{} times", two_digits(share.round() as u64)),
    };
    format!("about {relative} the estimated CPU time of the run")
}

/// Names what is done at intervals in some time, in decreasing order of its cost, without what adds little.
/// `planned`: estimated CPU time of the run.
fn named(all: &[Recurring], time: Time, planned: f64) -> String {
    let seconds = |of: &Recurring| of.work(time).seconds;
    let mut sorted: Vec<&Recurring> = all.iter().collect();
    sorted.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    let threshold = sorted.first().map_or(0.0, |of| seconds(of)) / 4.0;
    sorted.retain(|of| seconds(of) >= threshold);
    sorted.into_iter().map(|of| of.text(time, planned)).collect::<Vec<_>>().join("; ")
}

/// CPU time in seconds of the windows that end for samples, for looks at the end of the run, and for what
/// ranks send each other outside the network, at most one for each event, and of the samples of histograms,
/// which cost nothing while nothing happens.
pub(super) fn window_seconds(scenario: &Scenario, replay: &Replay) -> f64 {
    let times = |every: Time| (replay.end.0 as f64 / every.0.max(1) as f64).min(replay.packet_hops);
    let histogram = count(&scenario.measure.queue_histogram);
    let series = all(scenario).into_iter().filter(|of| of.rows > 0.0).map(|of| of.every);
    let graphs = scenario.traffic.sources.iter().filter_map(|source| source.graph());
    let graphs = graphs.filter(|graph| is_due(scenario.until, graph.flow.start));
    let outside = graphs.filter_map(|graph| graph.shortest_delay());
    let looks = series.chain(histogram.map(|(_, every)| every)).chain(grid(scenario).map(|(grid, _)| grid));
    let looks = looks.chain(outside);
    let samples = histogram.map_or(0.0, |(ports, every)| ports as f64 * times(every));
    (looks.map(times).fold(0.0, f64::max) * NS_PER_WINDOW + samples * NS_PER_SAMPLE) / 1e9
}

/// The grid of looks for the end of the run and the stall time, if it ends with its flows.
fn grid(scenario: &Scenario) -> Option<(Time, Time)> {
    match scenario.until {
        Until::FlowsDone { grid, stall } => Some((grid, stall)),
        Until::At(_) => None,
    }
}

/// When a run ends whose flows stall at its end, and what it does until then.
pub(super) fn if_stalled(scenario: &Scenario, end: Time) -> Option<(Time, Work)> {
    let end = grid(scenario).map(|(_, stall)| end.saturating_add(stall))?;
    Some((end, work(scenario, end)))
}

/// CPU time in seconds of all that is done at intervals in some time.
fn seconds_of(all: &[Recurring], time: Time) -> f64 {
    all.iter().map(|of| of.work(time).seconds).sum()
}

/// Warns of what would take most of the time of a run whose flows stall; whether they do is not known before
/// the run. None where it takes most of the time anyway.
pub(super) fn warning_if_stalled(scenario: &Scenario, estimate: &Estimate) -> Option<String> {
    let (planned, (_, stall), all) = (estimate.seconds, grid(scenario)?, all(scenario));
    let is_planned = seconds_of(&all, estimate.replay.end) > WORTH_A_WARNING.max(planned / 2.0);
    let stalled = seconds_of(&all, stall) > WORTH_A_WARNING.max(10.0 * planned);
    (stalled && !is_planned && scenario.can_lose()).then(|| {
        format!(
            "{} if flows wait for timeouts until the run is given up (run.stall = {stall}): set a longer interval or a shorter stall",
            named(&all, stall, planned)
        )
    })
}

/// Warns of what takes most of a run's time though it moves no data.
pub(super) fn warnings(scenario: &Scenario, estimate: &Estimate) -> Vec<String> {
    let (end, planned) = (estimate.replay.end, estimate.seconds);
    let all = all(scenario);
    let mut found = Vec::new();
    if seconds_of(&all, end) > WORTH_A_WARNING.max(planned / 2.0) {
        found.push(format!("{}: set a longer interval, or an earlier end", named(&all, end, planned)));
    }
    let changes = failing::cost(scenario, failing::counted_until(scenario, end));
    if changes.seconds > WORTH_A_WARNING.max(planned / 2.0) {
        found.push(format!(
            "failures.event: {} changes of links and switches until the end of the run, after each of which routes are computed, \
             {}: have fewer of them, or an earlier end",
            changes.changes,
            of_run(changes.seconds, planned)
        ));
    }
    if let Some((grid, _)) = grid(scenario) {
        let windows = (end.0 as f64 / grid.0.max(1) as f64).min(estimate.replay.packet_hops);
        let seconds = windows * NS_PER_WINDOW / 1e9;
        if seconds > 1f64.max(planned / 2.0) {
            found.push(format!(
                "run.grid = {grid}: almost every event needs a window of its own, {}: set a longer one (default: 10us)",
                of_run(seconds, planned)
            ));
        }
    }
    found
}
