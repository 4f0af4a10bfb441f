//! What the tests of this room share: hosts, keys and flows.

use super::spec::{WorkloadContext, WorkloadError, WorkloadSpec};
use super::{FlowSource, FlowSpec};
use crate::parameters::{Declared, Parameters, Source, Value};
use crate::units::{Rate, Time};
use std::path::Path;

/// Keys given in a test, and the errors about them.
#[derive(Default)]
pub struct Given {
    pub values: Vec<(&'static str, Value)>,
    pub complaints: Vec<String>,
    /// The values in the resolved scenario.
    pub resolved: Vec<(&'static str, Value)>,
}

impl Source for Given {
    fn get(&mut self, key: &str) -> Option<Value> {
        self.values.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone())
    }
    fn complain(&mut self, key: &str, message: String) {
        self.complaints.push(format!("{key}: {message}"));
    }
    fn declare(&mut self, declared: Declared, resolved: Option<Value>) {
        self.resolved.extend(resolved.map(|value| (declared.key, value)));
    }
}

pub fn text(value: &str) -> Value {
    Value::Text(value.to_string())
}

/// `n` hosts of 100 Gb/s, four in a rack, mtu 1000, 48 B of header, 60 B acknowledgements.
pub fn with_hosts<R>(n: u32, body: impl FnOnce(&WorkloadContext) -> R) -> R {
    let rates = vec![Rate::from_gbps(100); n as usize];
    let racks: Vec<u32> = (0..n).map(|host| host / 4).collect();
    body(&WorkloadContext {
        seed: 1,
        index: 0,
        hosts: n,
        host_rate: &rates,
        slower: 1,
        racks: &racks,
        gpus_per_node: None,
        placed: &Default::default(),
        label_to_host: &|label| (label < n).then_some(label),
        host_named: &|name| Err(format!("unknown host \"{name}\"")),
        base_dir: Path::new("."),
        group: 0,
        group_named: &|_| 7,
        transport: 0,
        header: 48,
        ack: 60,
        mtu: 1000,
        whole_ns: false,
        read_parquet: None,
        warn: &|_| (),
    })
}

/// Reads a workload from keys; panics on errors.
pub fn spec(kind: &str, values: &[(&'static str, Value)]) -> WorkloadSpec {
    let mut given = Given { values: values.to_vec(), ..Given::default() };
    let spec = WorkloadSpec::read(kind, &mut Parameters::new(&mut given)).expect("a known kind");
    assert!(given.complaints.is_empty(), "{:?}", given.complaints);
    spec
}

/// The errors about these keys.
pub fn complaints(kind: &str, values: &[(&'static str, Value)]) -> Vec<String> {
    let mut given = Given { values: values.to_vec(), ..Given::default() };
    WorkloadSpec::read(kind, &mut Parameters::new(&mut given)).expect("a known kind");
    given.complaints
}

pub fn source(kind: &str, hosts: u32, values: &[(&'static str, Value)]) -> Box<dyn FlowSource> {
    with_hosts(hosts, |cx| spec(kind, values).source(cx)).expect("a workload that can be made")
}

pub fn source_error(kind: &str, hosts: u32, values: &[(&'static str, Value)]) -> WorkloadError {
    match with_hosts(hosts, |cx| spec(kind, values).source(cx)) {
        Err(error) => error,
        Ok(_) => panic!("this workload should not be made"),
    }
}

/// All flows of a source, after checking what every source guarantees.
pub fn drain(source: &dyn FlowSource) -> Vec<FlowSpec> {
    let mut copy = source.clone_box();
    let flows: Vec<FlowSpec> = std::iter::from_fn(|| copy.next()).collect();
    check_promises(source, &flows);
    flows
}

/// Sorted starts, valid flows, and dependencies that point backwards, are counted, and use only information
/// that hosts have.
fn check_promises(source: &dyn FlowSource, flows: &[FlowSpec]) {
    assert!(flows.is_sorted_by_key(|flow| flow.start));
    assert!(flows.iter().all(|flow| flow.size > 0 && flow.src != flow.dst));
    let dependencies = source.dependencies();
    assert!(dependencies.is_sorted());
    let mut waits = vec![0u16; flows.len()];
    for &(earlier, later) in &dependencies {
        assert!(earlier < later);
        let (a, b) = (flows[earlier as usize], flows[later as usize]);
        assert!(b.src == a.src || b.src == a.dst, "{a:?} ends, but {b:?} cannot know");
        waits[later as usize] += 1;
    }
    assert!(flows.iter().zip(&waits).all(|(flow, &waits)| flow.waits_for == waits));
    let jobs = source.jobs();
    assert!(jobs.is_sorted() && (jobs.len() == flows.len() || jobs.is_sorted_by_key(|job| job.1)));
    assert!(jobs.iter().all(|job| (job.0 as usize) < flows.len()));
}

/// Plays the dependencies: each flow takes `transfer` once it may start. Returns (start, end) of each.
pub fn play(source: &dyn FlowSource, transfer: Time) -> Vec<(Time, Time)> {
    let flows = drain(source);
    let mut ready: Vec<Time> = vec![Time::ZERO; flows.len()];
    let mut times = Vec::new();
    let dependencies = source.dependencies();
    let mut of: Vec<Vec<u32>> = vec![Vec::new(); flows.len()];
    for (earlier, later) in dependencies {
        of[earlier as usize].push(later);
    }
    for (order, flow) in flows.iter().enumerate() {
        let start =
            if flow.waits_for > 0 { (ready[order] + flow.compute).max(flow.start) } else { flow.start };
        let end = start + transfer;
        times.push((start, end));
        for &later in &of[order] {
            ready[later as usize] = ready[later as usize].max(end);
        }
    }
    times
}
