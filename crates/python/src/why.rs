//! Where the completion times of flows went: the run repeated, then repeated again with these flows traced.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;

use pyo3::prelude::*;
use serde_json::{Value, json};
use weftline_sim::config::Config;
use weftline_sim::measure::{DigestRecord, FlowRecord, Frames, Outcome, Progress, Sample, Sink, StepRecord};
use weftline_sim::parameters::nearest;
use weftline_sim::scenario::Scenario;
use weftline_sim::topology::Topology;
use weftline_sim::why::steps::{Leg, Operation, What, chain};
use weftline_sim::why::{
    Account, Breadth, Findings, Interval, Place, Traced, accounts, alone, breadth, fitting, limits, trace,
};
use weftline_sim::{Execution, RunError, Simulation};

use crate::errors::{failed, input};

/// Keeps the records of flows.
#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl Sink for Flows {
    fn flows(&mut self, batch: &[FlowRecord]) -> io::Result<()> {
        self.0.extend_from_slice(batch);
        Ok(())
    }
    fn samples(&mut self, _: &[Sample]) -> io::Result<()> {
        Ok(())
    }
    fn digests(&mut self, _: &[DigestRecord]) -> io::Result<()> {
        Ok(())
    }
    fn frames(&mut self, _: &Frames) -> io::Result<bool> {
        Ok(false)
    }
}

/// What legs of a chain that are neither flows nor computations are called.
const SCALE_UP: &str = "scale-up link";
const MACHINE: &str = "model of the machine";

/// What a trace of the paths of a chain does not tell.
const PATHS: &str = "more packets crossed links during the step than can be kept (32 million), so that only those on the shortest \
                     paths between the two hosts of each message were: a packet of a higher priority that came from another link \
                     counts as queue of others, and what leaves these paths as transport";

/// The choice of flows.
pub struct Asked {
    pub flow: Option<u32>,
    pub slowest: usize,
    pub group: Option<String>,
    /// The number of the workload of the step, where several jobs have one group.
    pub workload: Option<usize>,
    /// A link at which flows waited, which the network must have.
    pub link: Option<String>,
    /// A step of a job instead of flows.
    pub step: Option<Step>,
    /// Whether each interval of the chain is wanted too.
    pub intervals: bool,
}

/// The choice of a step.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Number(u32),
    /// The one that took longest from its own start, as the answer has it.
    Slowest,
}

/// Where the completion times of some flows of a run went, as JSON. `fingerprint` is that of the stored run:
/// if the run does not give it again, nothing is reported of its flows.
pub fn why(scenario: &Scenario, fingerprint: &str, asked: &Asked) -> PyResult<String> {
    let mut config = scenario.config().map_err(input)?;
    config.measure.capture = None;
    // No packet passes in a step that is taken from an earlier one; its results have the same bits without that.
    config.memo = false;
    if let Some(link) = &asked.link {
        known_link(link, &config.topology)?;
    }
    // What is computed before Ctrl-C is a part of the run: nothing of it is compared or reported.
    let interrupt = Cell::new(None);
    let mut goes_on = |_: &Progress| {
        let signals = Python::attach(|py| py.check_signals());
        signals.map_err(|error| interrupt.set(Some(error))).is_ok()
    };
    let uninterrupted = || interrupt.take().map_or(Ok(()), Err);
    let mut flows = Flows::default();
    let mut network = Simulation::new(config.clone(), Execution::default()).map_err(failed)?;
    if asked.step.is_some() {
        network.note_causes();
    }
    let outcome = network.run(&mut flows, &mut goes_on).map_err(failed)?;
    uninterrupted()?;
    let found = format!("{:016x}", outcome.fingerprint);
    if found != fingerprint {
        return Err(input(format!(
            "the run gives other results than those that are stored: fingerprint {found}, stored {fingerprint}; \
                 another version made them, they were interrupted, or a file that the scenario names has changed"
        )));
    }
    let step = asked.step.map(|step| chosen_step(&outcome, &config, step, asked)).transpose()?;
    let causes = outcome.causes.as_ref();
    let legs = step.zip(causes).map(|(step, causes)| chain(step, causes, &config.traffic));
    let (mut traced, asked_for) = match &legs {
        Some(legs) => (legs.iter().filter_map(|(leg, _)| leg.traced()).collect(), 0),
        None => {
            let all: Vec<Traced> = chosen(&flows.0, &config, asked)?.iter().filter_map(traced_of).collect();
            (fitting(&all, &outcome), all.len())
        }
    };
    let mut again = Flows::default();
    let breadth = if step.is_some() { breadth(&traced, &config, &outcome) } else { Ok(Breadth::All) };
    let covers = matches!(breadth, Ok(Breadth::Paths)).then_some(PATHS);
    let traced_run = breadth.and_then(|breadth| {
        loop {
            match trace(config.clone(), &traced, breadth, &mut again, &mut goes_on) {
                // More than the mean of the run lets expect.
                Err(RunError::Impossible(_)) if step.is_none() && traced.len() > 1 => {
                    traced.truncate(traced.len() / 2);
                    again = Flows::default();
                }
                result => return result,
            }
        }
    });
    uninterrupted()?;
    let (found_accounts, findings, undivided) = match traced_run {
        Ok((repeated, findings)) if repeated.fingerprint == outcome.fingerprint => {
            (accounts(&traced, &findings), Some(findings), None)
        }
        Ok((repeated, _)) => {
            return Err(failed(format!(
                "the traced run is another run: fingerprint {:016x}, expected {found}",
                repeated.fingerprint
            )));
        }
        // The chain of a step is known without it.
        Err(RunError::Impossible(why)) if step.is_some() => (Vec::new(), None, Some(why)),
        Err(error) => return Err(failed(error)),
    };
    if let Some(wrong) = found_accounts.iter().find(|account| !account.adds_up()) {
        return Err(failed(format!("flow {}: the causes do not add up", wrong.flow.flow)));
    }
    let names = Names { config: &config, findings: findings.as_ref() };
    let records: BTreeMap<u32, &FlowRecord> = flows.0.iter().map(|record| (record.flow, record)).collect();
    // The messages of a job may have no records.
    let graph = step.and_then(|step| config.traffic.sources[usize::from(step.source)].graph());
    let specs = graph
        .zip(legs.as_ref())
        .map(|(graph, legs)| legs.iter().filter_map(|(leg, _)| leg.asked(&graph)).collect::<Vec<_>>());
    let alone = match specs.filter(|_| traced.iter().any(|flow| !records.contains_key(&flow.flow))) {
        Some(specs) => alone(config.clone(), &specs).map_err(failed)?,
        None => Vec::new(),
    };
    let report = |(number, flow): (usize, &Traced)| {
        let (record, account) = (records.get(&flow.flow).copied(), found_accounts.get(number));
        let mut report = names.flow(flow, record, account, asked.intervals);
        if let Some(ideal) = alone.get(number) {
            report["ideal_ps"] = json!(ideal.0);
        }
        report
    };
    let mut reports: Vec<Value> = traced.iter().enumerate().map(report).collect();
    let links: Vec<Value> = limits(&found_accounts)
        .iter()
        .map(|one| {
            json!({
                "link": names.link(one.link), "flows": one.flows, "waited_ps": one.waited.0, "cause": one.cause.name(),
                "queue_at": one.paused_for.map(|link| names.link(link)),
            })
        })
        .collect();
    let mut answer = json!({"fingerprint": fingerprint, "links": links});
    if let Some((step, legs)) = step.zip(legs) {
        let covers = covers.filter(|_| undivided.is_none());
        answer["step"] = names.step(step, &legs, &mut reports, undivided)?;
        answer["step"]["covers"] = json!(covers);
    }
    answer["flows"] = json!(reports);
    answer["left_out"] = json!(asked_for.saturating_sub(traced.len()));
    Ok(answer.to_string())
}

/// Links among which the nearest to an unknown one is looked for.
const COMPARED_LINKS: usize = 100_000;

/// Whether the network has this link, written `leaf0->host3`.
fn known_link(link: &str, topology: &Topology) -> PyResult<()> {
    let name = |node: u32| topology.nodes[node as usize].name.as_str();
    let both = topology.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    if link.split_once("->").is_some_and(|ends| both.clone().any(|(from, to)| ends == (name(from), name(to))))
    {
        return Ok(());
    }
    let names: Vec<String> =
        both.take(COMPARED_LINKS).map(|(from, to)| format!("{}->{}", name(from), name(to))).collect();
    let hint = match (nearest(link, names.iter().map(String::as_str)), names.first()) {
        (Some(near), _) => format!("did you mean \"{near}\"?"),
        (None, Some(first)) => format!("links are written like \"{first}\""),
        (None, None) => "the network has no links".to_string(),
    };
    Err(input(format!("--link: the network has no link \"{link}\": {hint}")))
}

/// A job of a run: its group, and the number of its workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job<'n> {
    group: &'n str,
    workload: usize,
}

/// `ring, shuffle (workload 1), shuffle (workload 2)`: groups of jobs, with the workload where several have
/// that group.
fn jobs_text(jobs: &[Job]) -> String {
    let is_shared = |job: &Job| jobs.iter().filter(|other| other.group == job.group).count() > 1;
    let text = |job: &Job| match is_shared(job) {
        true => format!("{} (workload {})", job.group, job.workload),
        false => job.group.to_string(),
    };
    jobs.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The one job that `--group` and `--workload` leave of those of a run; none: there are several, and the step
/// is the slowest of them.
fn chosen_job<'n>(jobs: &[Job<'n>], step: Step, asked: &Asked) -> PyResult<Option<Job<'n>>> {
    let known = format!("its jobs are {}", jobs_text(jobs));
    let has = |job: &Job| asked.group.as_ref().is_none_or(|group| group == job.group);
    let of_group: Vec<Job> = jobs.iter().copied().filter(has).collect();
    if let (Some(group), true) = (&asked.group, of_group.is_empty()) {
        return Err(input(format!("{group}: the run has no such job; {known}")));
    }
    if let Some(workload) = asked.workload {
        let found = of_group.iter().find(|job| job.workload == workload);
        let of = asked.group.as_ref().map(|group| format!(" of group {group}")).unwrap_or_default();
        let numbers: Vec<String> =
            of_group.iter().map(|job| format!("{} ({})", job.workload, job.group)).collect();
        return found.copied().map(Some).ok_or_else(|| {
            let known = numbers.join(", ");
            input(format!("--workload {workload}: it has no job{of}; the workloads with jobs are {known}"))
        });
    }
    match of_group[..] {
        [job] => Ok(Some(job)),
        _ if matches!(step, Step::Slowest) => Ok(None),
        [first, ..] if of_group.iter().all(|job| job.group == first.group) => {
            let numbers: Vec<String> = of_group.iter().map(|job| job.workload.to_string()).collect();
            let (group, numbers) = (first.group, numbers.join(", "));
            Err(input(format!(
                "--step: {} jobs have the group {group}: choose one with --workload ({numbers})",
                of_group.len()
            )))
        }
        _ => Err(input(format!("--step: name the job with --group; {known}"))),
    }
}

/// The requested step, which must have ended.
fn chosen_step<'o>(
    outcome: &'o Outcome,
    config: &Config,
    step: Step,
    asked: &Asked,
) -> PyResult<&'o StepRecord> {
    let groups = &config.traffic.groups;
    let job = |step: &StepRecord| Job {
        group: &groups[usize::from(step.group)],
        workload: usize::from(step.source),
    };
    let sources = &config.traffic.sources;
    let of_graph = |step: &&StepRecord| sources[usize::from(step.source)].graph().is_some();
    let mut jobs: Vec<Job> = outcome.steps.iter().filter(of_graph).map(job).collect();
    jobs.sort_by_key(|job| job.workload);
    jobs.dedup();
    if jobs.is_empty() {
        return Err(input(
            "--step: the run has no collective, training job or job file, whose steps could be explained; `weftline why RUN --slowest 5` \
             says why flows were slow",
        ));
    }
    let chosen = chosen_job(&jobs, step, asked)?;
    let of_job = |step: &&StepRecord| match chosen {
        Some(chosen) => job(step) == chosen,
        None => asked.group.as_ref().is_none_or(|group| group == job(step).group),
    };
    let steps = || outcome.steps.iter().filter(of_graph).filter(of_job);
    match step {
        Step::Number(number) => match steps().find(|step| step.step == number) {
            Some(step) if step.finish.is_some() => Ok(step),
            Some(_) => Err(input(format!("step {number}: it had not ended when the run did"))),
            None => {
                // Those that had not begun have no record.
                let of_job = jobs.iter().filter(|one| chosen.is_none_or(|chosen| chosen == **one));
                let graphs = of_job.filter_map(|one| sources[one.workload].graph());
                let count = graphs.map(|graph| graph.steps()).max().unwrap_or(0);
                Err(input(match number < count {
                    true => format!("step {number}: it had not begun when the run ended"),
                    false => {
                        format!("step {number}: there is no such step; steps are 0 to {}", count.max(1) - 1)
                    }
                }))
            }
        },
        Step::Slowest => {
            let took = |step: &StepRecord| step.finish.map(|finish| finish.saturating_sub(step.start));
            let ended = steps().filter(|step| step.finish.is_some());
            ended.max_by_key(|step| took(step)).ok_or_else(|| input("no step has ended"))
        }
    }
}

fn traced_of(record: &FlowRecord) -> Option<Traced> {
    let finish = record.finish?;
    Some(Traced { flow: record.flow, src: record.src, dst: record.dst, start: record.start, finish })
}

fn slowdown(record: &FlowRecord) -> f64 {
    let spent = record.finish.map_or(0, |finish| finish.0 - record.start.0);
    spent as f64 / record.ideal.0.max(1) as f64
}

/// The chosen flows: one, or the slowest.
fn chosen(records: &[FlowRecord], config: &Config, asked: &Asked) -> PyResult<Vec<FlowRecord>> {
    if let Some(flow) = asked.flow {
        let Some(record) = records.iter().find(|record| record.flow == flow) else {
            return Err(input(format!("flow {flow}: the run has no such flow")));
        };
        if record.finish.is_none() {
            return Err(input(format!("flow {flow}: it had not finished when the run ended")));
        }
        return Ok(vec![*record]);
    }
    let groups = &config.traffic.groups;
    let wanted = asked.group.as_deref().map(|name| {
        let known = || format!("{name}: no such group; known: {}", groups.join(", "));
        groups.iter().position(|known| known == name).ok_or_else(|| input(known()))
    });
    let wanted = wanted.transpose()?;
    let mut all: Vec<FlowRecord> = records
        .iter()
        .filter(|record| record.finish.is_some() && wanted.is_none_or(|w| usize::from(record.group) == w))
        .copied()
        .collect();
    if all.is_empty() {
        let mut graphs = config.traffic.sources.iter().filter_map(|source| source.graph());
        let hidden = graphs.any(|graph| !graph.recorded);
        let more =
            if hidden { ", apart from messages of jobs with messages = false: ask with --step" } else { "" };
        return Err(input(format!("no flow has finished{more}")));
    }
    all.sort_by(|a, b| slowdown(b).total_cmp(&slowdown(a)).then(a.flow.cmp(&b.flow)));
    all.truncate(asked.slowest);
    Ok(all)
}

/// Names of links, hosts and flows.
struct Names<'a> {
    config: &'a Config,
    /// None: nothing could be traced.
    findings: Option<&'a Findings>,
}

impl Names<'_> {
    fn node(&self, node: u32) -> &str {
        &self.config.topology.nodes[node as usize].name
    }

    fn host(&self, host: u32) -> &str {
        self.node(self.config.topology.hosts()[host as usize])
    }

    fn link(&self, link: u32) -> String {
        let ends = self.findings.map_or((0, 0), |findings| {
            let (from, to, ..) = findings.links[link as usize];
            (from, to)
        });
        format!("{}->{}", self.node(ends.0), self.node(ends.1))
    }

    /// A step, with its chain and the sums of the causes over it, which make up its time. `flows`: its
    /// messages that crossed the network, whose size and group are set.
    fn step(
        &self,
        step: &StepRecord,
        legs: &[(Leg, Operation)],
        flows: &mut [Value],
        undivided: Option<String>,
    ) -> PyResult<Value> {
        let group = &self.config.traffic.groups[usize::from(step.group)];
        let mut causes: Vec<(String, u64)> = Vec::new();
        let mut add = |name: &str, time: u64| match causes.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += time,
            None => causes.push((name.to_string(), time)),
        };
        let (mut chain, mut next) = (Vec::new(), 0);
        for (leg, operation) in legs {
            let time = leg.to.0 - leg.from.0;
            let mut part = json!({
                "rank": leg.rank, "host": self.host(leg.host), "from_ps": leg.from.0, "ps": time,
                "operation": operation.name, "step": operation.step, "place": operation.place,
            });
            match leg.what {
                What::Message { message, dst, flow } => {
                    part["what"] = json!(if flow.is_some() { "message" } else { "scale-up message" });
                    (part["to"], part["to_host"]) = (json!(message.to), json!(self.host(dst)));
                    part["bytes"] = json!(message.bytes);
                    if flow.is_some() {
                        let report = &mut flows[next];
                        for cause in report["causes"].as_array().into_iter().flatten() {
                            add(cause["cause"].as_str().unwrap_or(""), cause["ps"].as_u64().unwrap_or(0));
                        }
                        (report["size_bytes"], report["group"]) = (json!(message.bytes), json!(group));
                        part["flow"] = json!(next);
                        next += 1;
                    } else {
                        add(SCALE_UP, time);
                    }
                }
                What::Computation => {
                    part["what"] = json!("computation");
                    add("computation", time);
                }
                What::Machine => {
                    part["what"] = json!(MACHINE);
                    add(MACHINE, time);
                }
            }
            chain.push(part);
        }
        let time = step.finish.map_or(0, |finish| finish.0 - step.start.0);
        if causes.iter().map(|cause| cause.1).sum::<u64>() != time {
            return Err(failed(format!("step {}: the causes do not add up to its time", step.step)));
        }
        Ok(json!({
            "job": group,
            "workload": step.source,
            "step": step.step,
            "operation": step.shape.operation,
            "ranks": step.shape.ranks,
            "bytes": step.bytes,
            "start_ps": step.start.0,
            "time_ps": time,
            "overlap_ps": step.begin.0 - step.start.0,
            "ideal_ps": step.ideal.map(|ideal| ideal.0),
            "causes": causes.iter().map(|(cause, ps)| json!({"cause": cause, "ps": ps})).collect::<Vec<_>>(),
            "chain": chain,
            "undivided": undivided,
        }))
    }

    /// A flow, by cause if it was traced.
    fn flow(
        &self,
        flow: &Traced,
        record: Option<&FlowRecord>,
        account: Option<&Account>,
        intervals: bool,
    ) -> Value {
        let time = flow.finish.0 - flow.start.0;
        let mut report = json!({
            "flow": flow.flow,
            "src": self.host(flow.src),
            "dst": self.host(flow.dst),
            "size_bytes": record.map(|record| record.size),
            "group": record.map(|record| &self.config.traffic.groups[usize::from(record.group)]),
            "start_ps": flow.start.0,
            "fct_ps": time,
            "ideal_ps": record.map(|record| record.ideal.0),
            "path": [],
            "causes": [{"cause": "message", "ps": time}],
            "waits": [],
            "lost": [],
            "timeouts": [],
            "pauses": [],
            "used": [],
            "trimmed": [],
            "nic_again_ps": 0,
            "worst_queue": null,
        });
        let Some(account) = account else { return report };
        let causes: Vec<Value> = account
            .by_cause()
            .iter()
            .map(|(cause, time)| json!({"cause": cause.name(), "ps": time.0}))
            .collect();
        let at_links = account.by_link().into_iter().filter(|((_, cause), _)| cause.is_at_link());
        let at_links = at_links.map(|((link, cause), time)| (Some(self.link(link)), cause, time));
        let at_ends = account.by_cause().into_iter().filter(|(cause, _)| cause.is_at_end());
        let at_ends = at_ends.map(|(cause, time)| (None, cause, time));
        let waits: Vec<Value> = at_links
            .chain(at_ends)
            .map(|(link, cause, time)| json!({"link": link, "cause": cause.name(), "ps": time.0}))
            .collect();
        let place_name = |place: &Place| match *place {
            Place::Link(link) => self.link(link),
            Place::Node(node) | Place::WithoutRoute { node, .. } => self.node(node).to_string(),
        };
        let lost = |(place, packets): (&Place, &usize)| {
            let answers = account.answers_lost.get(place).copied().unwrap_or_default();
            let mut lost = json!({"at": place_name(place), "packets": packets, "answers": answers});
            if let Place::WithoutRoute { dst, since, .. } = *place {
                (lost["no_route_to"], lost["since_ps"]) = (json!(self.host(dst)), json!(since.0));
            }
            lost
        };
        report["lost"] = account.lost.iter().map(lost).collect();
        let timeouts = account.waited_until.iter().map(|(until, time)| json!({"until": until, "ps": time.0}));
        report["timeouts"] = timeouts.collect();
        let pauses = account.paused_for.iter().map(|(&(link, origin), time)| {
            json!({"link": self.link(link), "queue_at": origin.map(|origin| self.link(origin)), "ps": time.0})
        });
        report["pauses"] = pauses.collect();
        let used = account.used.iter().map(
            |(&link, busy)| json!({"link": self.link(link), "share": busy.0 as f64 / time.max(1) as f64}),
        );
        report["used"] = used.collect();
        let trimmed = account.trimmed.iter();
        report["trimmed"] =
            trimmed.map(|(place, packets)| json!({"at": place_name(place), "packets": packets})).collect();
        report["nic_again_ps"] = json!(account.nic_again.0);
        let worst = account.worst_queue().map(|(link, time)| {
            let shared: Vec<Value> =
                account.shared(link).iter().map(|(flow, time)| json!({"flow": flow, "ps": time.0})).collect();
            json!({"link": self.link(link), "ps": time.0, "shared": shared})
        });
        report["path"] = account.path.iter().map(|&link| self.link(link)).collect();
        (report["causes"], report["waits"], report["worst_queue"]) =
            (json!(causes), json!(waits), json!(worst));
        if intervals {
            let part = |part: &Interval| {
                json!({
                    "from_ps": part.from.0, "to_ps": part.to.0, "cause": part.cause.name(),
                    "link": part.link.map(|link| self.link(link)), "other": part.other,
                })
            };
            report["intervals"] = account.intervals.iter().map(part).collect();
        }
        report
    }
}
