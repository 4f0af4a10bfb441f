//! Where the completion times of flows went: the run repeated, then repeated again with these flows traced.

use std::io;

use pyo3::prelude::*;
use serde_json::{Value, json};
use weftline_sim::config::Config;
use weftline_sim::measure::{DigestRecord, FlowRecord, Frames, Outcome, Progress, Sample, Sink, StepRecord};
use weftline_sim::scenario::Scenario;
use weftline_sim::why::steps::{Known, Leg, chain};
use weftline_sim::why::{Account, Cause, Findings, Interval, Traced, accounts, limits, trace};
use weftline_sim::{Execution, Simulation};

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

/// The choice of flows.
pub struct Asked {
    pub flow: Option<u32>,
    pub slowest: usize,
    pub group: Option<String>,
    /// A step of a job instead of flows.
    pub step: Option<Step>,
    /// Whether each interval of the chain is wanted too.
    pub intervals: bool,
}

/// The choice of a step.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Number(u32),
    /// The one that took longest.
    Slowest,
}

/// Where the completion times of some flows of a run went, as JSON. `fingerprint` is that of the stored run: if the run does
/// not give it again, nothing is reported of its flows.
pub fn why(scenario: &Scenario, fingerprint: &str, asked: &Asked) -> PyResult<String> {
    let mut config = scenario.config().map_err(input)?;
    config.measure.capture = None;
    let mut goes_on = |_: &Progress| Python::attach(|py| py.check_signals()).is_ok();
    let mut flows = Flows::default();
    let mut network = Simulation::new(config.clone(), Execution::default()).map_err(failed)?;
    network.note_deliveries();
    let outcome = network.run(&mut flows, &mut goes_on).map_err(failed)?;
    let found = format!("{:016x}", outcome.fingerprint);
    if found != fingerprint {
        return Err(input(format!(
            "the run gives other results than those that are stored: fingerprint {found}, stored {fingerprint}; \
                 another version made them, they were interrupted, or a file that the scenario names has changed"
        )));
    }
    let step = asked.step.map(|step| chosen_step(&outcome, &config, step, asked)).transpose()?;
    let legs = step.map(|step| chain_of(step, &config, &flows.0, &outcome));
    let (records, traced): (Vec<FlowRecord>, Vec<Traced>) = match &legs {
        Some(legs) => legs.iter().map(|(leg, record)| (*record, leg.flow)).unzip(),
        None => {
            let records = chosen(&flows.0, &config, asked)?;
            records.into_iter().filter_map(|record| Some((record, traced_of(&record)?))).unzip()
        }
    };
    let mut again = Flows::default();
    let (repeated, findings) = trace(config.clone(), &traced, &mut again, &mut goes_on).map_err(failed)?;
    if repeated.fingerprint != outcome.fingerprint {
        return Err(failed(format!(
            "the traced run is another run: fingerprint {:016x}, expected {found}",
            repeated.fingerprint
        )));
    }
    let found_accounts = accounts(&traced, &findings);
    if let Some(wrong) = found_accounts.iter().find(|account| !account.adds_up()) {
        return Err(failed(format!("flow {}: the causes do not add up", wrong.flow.flow)));
    }
    let names = Names { config: &config, findings: &findings };
    let reports = found_accounts.iter().zip(&records);
    let all: Vec<Value> =
        reports.map(|(account, record)| names.account(account, record, asked.intervals)).collect();
    let links: Vec<Value> = limits(&found_accounts)
        .iter()
        .map(|one| json!({"link": names.link(one.link), "flows": one.flows, "waited_ps": one.waited.0}))
        .collect();
    let mut found = json!({"fingerprint": fingerprint, "flows": all, "links": links});
    if let Some((step, legs)) = step.zip(legs) {
        found["step"] = names.step(step, &legs, &found_accounts)?;
    }
    Ok(found.to_string())
}

/// The requested step, which must have ended.
fn chosen_step<'o>(
    outcome: &'o Outcome,
    config: &Config,
    step: Step,
    asked: &Asked,
) -> PyResult<&'o StepRecord> {
    let groups = &config.traffic.groups;
    let name = |step: &StepRecord| groups[usize::from(step.group)].clone();
    let collective = |step: &&StepRecord| step.shape.alike;
    let mut jobs: Vec<String> = outcome.steps.iter().filter(collective).map(name).collect();
    jobs.dedup();
    if jobs.is_empty() {
        return Err(input(
            "--step: the run has no collective, whose steps could be explained; of other jobs `weftline jobs RUN` says where their \
             time went, and `weftline why RUN --slowest 5` which messages were slow",
        ));
    }
    let known = format!("its jobs are {}", jobs.join(", "));
    if let Some(group) = &asked.group
        && !jobs.contains(group)
    {
        return Err(input(format!("{group}: the run has no such job; {known}")));
    }
    let several = jobs.iter().any(|job| *job != jobs[0]);
    if matches!(step, Step::Number(_)) && asked.group.is_none() && several {
        return Err(input(format!("--step: name the job with --group; {known}")));
    }
    let of_job = |step: &&StepRecord| asked.group.as_ref().is_none_or(|group| *group == name(step));
    let steps = || outcome.steps.iter().filter(collective).filter(of_job);
    match step {
        Step::Number(number) => match steps().find(|step| step.step == number) {
            Some(step) if step.finish.is_some() => Ok(step),
            Some(_) => Err(input(format!("step {number}: it had not ended when the run did"))),
            None => {
                let last = steps().map(|step| step.step).max().unwrap_or(0);
                Err(input(format!("step {number}: there is no such step; steps are 0 to {last}")))
            }
        },
        Step::Slowest => {
            let time = |step: &&StepRecord| step.finish.map(|finish| finish.saturating_sub(step.start));
            let ended = steps().filter(|step| step.finish.is_some());
            ended.max_by_key(time).ok_or_else(|| input("no step has ended"))
        }
    }
}

/// The flows that decided when a step ended, with their records.
fn chain_of(
    step: &StepRecord,
    config: &Config,
    flows: &[FlowRecord],
    outcome: &Outcome,
) -> Vec<(Leg, FlowRecord)> {
    let known = Known {
        traffic: &config.traffic,
        records: flows.iter().map(|record| (record.flow, *record)).collect(),
        deliveries: outcome.deliveries.iter().copied().collect(),
    };
    let record = |leg: Leg| Some((leg, *known.records.get(&leg.flow.flow)?));
    chain(step, &known).into_iter().filter_map(record).collect()
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
        let found = records.iter().find(|record| record.flow == flow);
        let last = records.iter().map(|record| record.flow).max();
        let Some(record) = found else {
            let known =
                last.map_or("it has no flows".to_string(), |last| format!("its flows are 0 to {last}"));
            return Err(input(format!("flow {flow}: the run has no such flow; {known}")));
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
        return Err(input("no flow has finished"));
    }
    all.sort_by(|a, b| slowdown(b).total_cmp(&slowdown(a)).then(a.flow.cmp(&b.flow)));
    all.truncate(asked.slowest);
    Ok(all)
}

/// Names of links and flows.
struct Names<'a> {
    config: &'a Config,
    findings: &'a Findings,
}

impl Names<'_> {
    fn node(&self, node: u32) -> &str {
        &self.config.topology.nodes[node as usize].name
    }

    fn link(&self, link: u32) -> String {
        let (from, to, _, _) = self.findings.links[link as usize];
        format!("{}->{}", self.node(from), self.node(to))
    }

    /// A step, with the sums of the causes over its chain, which make up its time.
    fn step(&self, step: &StepRecord, legs: &[(Leg, FlowRecord)], accounts: &[Account]) -> PyResult<Value> {
        let mut causes: Vec<(&str, u64)> = Vec::new();
        let mut add = |name: &'static str, time: u64| match causes.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += time,
            None if time > 0 => causes.push((name, time)),
            None => {}
        };
        for account in accounts {
            account.by_cause().into_iter().for_each(|(cause, time)| add(cause.name(), time.0));
        }
        legs.iter().for_each(|(leg, _)| {
            add("computation", leg.compute.0);
            add("connection in use", leg.held.0);
        });
        let time = step.finish.map_or(0, |finish| finish.0 - step.start.0);
        if causes.iter().map(|cause| cause.1).sum::<u64>() != time {
            return Err(failed(format!("step {}: the causes do not add up to its time", step.step)));
        }
        let gaps = legs.iter().map(|(leg, _)| json!({"compute_ps": leg.compute.0, "held_ps": leg.held.0}));
        Ok(json!({
            "job": self.config.traffic.groups[usize::from(step.group)],
            "step": step.step,
            "operation": step.shape.operation,
            "ranks": step.shape.ranks,
            "bytes": step.bytes,
            "start_ps": step.start.0,
            "time_ps": time,
            "ideal_ps": step.ideal.map(|ideal| ideal.0),
            "causes": causes.iter().map(|(cause, ps)| json!({"cause": cause, "ps": ps})).collect::<Vec<_>>(),
            "gaps": gaps.collect::<Vec<_>>(),
        }))
    }

    fn account(&self, account: &Account, record: &FlowRecord, intervals: bool) -> Value {
        let flow = &account.flow;
        let host = |host: u32| self.node(self.findings.host_node[host as usize]);
        let causes: Vec<Value> = account
            .by_cause()
            .iter()
            .map(|(cause, time)| json!({"cause": cause.name(), "ps": time.0}))
            .collect();
        let waits: Vec<Value> = account
            .by_link()
            .iter()
            .filter(|((_, cause), _)| !matches!(cause, Cause::Transmission | Cause::Propagation))
            .map(|((link, cause), time)| json!({"link": self.link(*link), "cause": cause.name(), "ps": time.0}))
            .collect();
        let worst = account.worst_queue().map(|(link, time)| {
            let shared: Vec<Value> =
                account.shared(link).iter().map(|(flow, time)| json!({"flow": flow, "ps": time.0})).collect();
            json!({"link": self.link(link), "ps": time.0, "shared": shared})
        });
        let mut report = json!({
            "flow": flow.flow,
            "src": host(flow.src),
            "dst": host(flow.dst),
            "size_bytes": record.size,
            "group": self.config.traffic.groups[usize::from(record.group)],
            "start_ps": flow.start.0,
            "fct_ps": flow.finish.0 - flow.start.0,
            "ideal_ps": record.ideal.0,
            "path": account.path.iter().map(|&link| self.link(link)).collect::<Vec<_>>(),
            "causes": causes,
            "waits": waits,
            "worst_queue": worst,
        });
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
