//! Where the completion times of flows went: the run repeated, then repeated again with these flows traced.

use std::io;

use pyo3::prelude::*;
use serde_json::{Value, json};
use weftline_sim::config::Config;
use weftline_sim::measure::{DigestRecord, FlowRecord, Frames, Progress, Sample, Sink};
use weftline_sim::scenario::Scenario;
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
    /// Whether each interval of the chain is wanted too.
    pub intervals: bool,
}

/// Where the completion times of some flows of a run went, as JSON. `fingerprint` is that of the stored run: if the run does
/// not give it again, nothing is reported of its flows.
pub fn why(scenario: &Scenario, fingerprint: &str, asked: &Asked) -> PyResult<String> {
    let mut config = scenario.config().map_err(input)?;
    config.measure.capture = None;
    let mut goes_on = |_: &Progress| Python::attach(|py| py.check_signals()).is_ok();
    let mut flows = Flows::default();
    let network = Simulation::new(config.clone(), Execution::default()).map_err(failed)?;
    let outcome = network.run(&mut flows, &mut goes_on).map_err(failed)?;
    let found = format!("{:016x}", outcome.fingerprint);
    if found != fingerprint {
        return Err(input(format!(
            "the run gives other results than those that are stored: fingerprint {found}, stored {fingerprint}; \
                 another version made them, they were interrupted, or a file that the scenario names has changed"
        )));
    }
    let records = chosen(&flows.0, &config, asked)?;
    let traced: Vec<Traced> = records.iter().filter_map(traced_of).collect();
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
    Ok(json!({"fingerprint": fingerprint, "flows": all, "links": links}).to_string())
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
