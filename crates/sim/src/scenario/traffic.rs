//! `[[workload]]`: what the hosts send, in which groups, over which transport.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::document::{Data, Entry, Table};
use super::network::Network;
use super::section::Section;
use super::transport;
use crate::compat::Rules;
use crate::config::Until;
use crate::parameters::{Source, Value, nearest};
use crate::telemetry::TelemetryConfig;
use crate::topology::{HostId, NodeId, Topology};
use crate::transport::{DEFAULT, Framing, ReadContext, TransportConfig};
use crate::units::{Rate, Time, two_digits};
use crate::workload::placement::Placed;
use crate::workload::sizes::SizeDistribution;
use crate::workload::spec::ReadParquet;
use crate::workload::{self, FlowSource, Traffic, WITHOUT_END, WorkloadContext, WorkloadSpec};

/// The workloads as read, before the network's hosts are needed.
pub struct Workloads<'d> {
    sections: Vec<Section<'d>>,
    /// For each: what it is and the index of its transport. None: something is wrong, and reported.
    specs: Vec<Option<(WorkloadSpec, u16)>>,
}

/// Reads the workloads, and adds the transports that they name themselves to `transports`.
pub fn read<'d>(
    root: &mut Section<'d>,
    cx: &ReadContext,
    transports: &mut Vec<TransportConfig>,
    base_dir: &Path,
) -> Workloads<'d> {
    let mut sections = root.children("workload");
    if sections.is_empty() && root.is_clean() {
        let message = "no traffic: add a [[workload]] section, such as kind = \"poisson\", load = 0.5, duration = \"1ms\"";
        root.complain("workload", message.to_string());
    }
    let base = root.child("transport");
    let mut taken = Taken::default();
    let mut specs = Vec::with_capacity(sections.len());
    for section in &mut sections {
        let kind = section.kind("workload", None, workload::KINDS, "which pattern of traffic");
        let spec = kind.and_then(|kind| WorkloadSpec::read(kind, &mut section.parameters()));
        super::keep_path(section, "file", base_dir);
        if !section.resolved("sizes").is_some_and(is_built_in) {
            super::keep_path(section, "sizes", base_dir);
        }
        let index = own_transport(section, &base, cx, transports, &mut taken);
        specs.push(spec.zip(index).filter(|_| section.is_clean()));
    }
    if !specs.is_empty() && specs.iter().all(Option::is_some) {
        warn_of_idle_keys(root, base.table(), &taken);
    }
    Workloads { sections, specs }
}

/// What workloads take from `[transport]`.
#[derive(Default)]
struct Taken {
    /// A workload names no transport of its own.
    all: bool,
    /// A workload's own transport is of the same kind.
    kind: bool,
    /// Dotted keys that own transports of the same kind inherit, or give the same value.
    keys: BTreeSet<String>,
}

/// Warns of given keys of `[transport]` that no workload takes: each names another kind of transport, another
/// controller, or a value of its own.
fn warn_of_idle_keys(root: &mut Section, base: &Table, taken: &Taken) {
    // Runs store scenarios with every value in force, and with the transport of each workload.
    if taken.all || root.resolved("transport").is_none_or(|all| states_all(base, all)) {
        return;
    }
    let idle = |key: &String| match key.rsplit('.').next() {
        // Thresholds of switches follow from the schemes of `[transport]`.
        Some("kind") => key == "kind" && !taken.kind,
        _ => !taken.keys.contains(key),
    };
    let mut keys: Vec<String> = leaves(base, "").into_iter().map(|(key, _)| key).collect();
    keys.retain(|key| {
        let path = format!("transport.{key}");
        idle(key) && root.resolved(&path).is_some() && (key == "kind" || !root.is_default(&path))
    });
    if keys.is_empty() {
        return;
    }
    let named: Vec<&str> = keys.iter().take(5).map(String::as_str).collect();
    let more = if keys.len() > named.len() { " and others" } else { "" };
    root.warn(format!(
        "[transport]: no workload takes {}{more} from it, as each has a transport table of its own with \
         another kind or value: no flow depends on them, and only defaults of [switch] may follow from them; \
         set them in the transport of the workloads, or leave them out",
        named.join(", ")
    ));
}

/// The values of a table by their dotted keys.
fn leaves(table: &Table, path: &str) -> Vec<(String, Value)> {
    let of = |entry: &Entry| {
        let key = format!("{path}{}", entry.key);
        match &entry.node.data {
            Data::Table(inner) => leaves(inner, &format!("{key}.")),
            _ => vec![(key, entry.node.value())],
        }
    };
    table.entries.iter().flat_map(of).collect()
}

/// Whether a table gives all keys that hold.
fn states_all(table: &Table, holds: &Value) -> bool {
    let Value::Table(keys) = holds else { return true };
    keys.iter().all(|(key, value)| match table.get(key).map(|entry| &entry.node.data) {
        Some(Data::Table(inner)) => states_all(inner, value),
        given => given.is_some(),
    })
}

/// Index of the transport that a workload runs over: its own, laid on `[transport]`, or 0.
fn own_transport(
    section: &mut Section,
    base: &Section,
    cx: &ReadContext,
    transports: &mut Vec<TransportConfig>,
    taken: &mut Taken,
) -> Option<u16> {
    if section.peek("transport").is_none() {
        taken.all = true;
        section.child("transport");
        return Some(0);
    }
    let over = section.child("transport");
    // Without the base there is nothing to lay it on, and its problems would be reported twice.
    if transports.is_empty() {
        return None;
    }
    // Of another kind of transport none of the base's keys means the same.
    let kind = |section: &Section| match section.peek("kind") {
        Some(Value::Text(kind)) => kind,
        _ => DEFAULT.to_string(),
    };
    let another = over.peek("kind").is_some() && kind(&over) != kind(base);
    let merged = if another { over.table().clone() } else { base.table().overlaid(over.table()) };
    if !another {
        taken.kind = true;
        let given = leaves(base.table(), "");
        let same = leaves(&merged, "").into_iter().filter(|of| given.contains(of));
        taken.keys.extend(same.map(|(key, _)| key));
    }
    let mut own = Section::over(section.file(), over.path(), &merged, over.origin());
    let config = transport::read(&mut own, cx);
    section.absorb("transport", own);
    let config = config?;
    let index = transports.iter().position(|known| *known == config).unwrap_or_else(|| {
        transports.push(config);
        transports.len() - 1
    });
    u16::try_from(index).ok()
}

/// What a workload's flows depend on in addition to its own keys.
pub struct TrafficContext<'a> {
    pub seed: u64,
    /// The factor by which `[scale]` made time slower.
    pub slower: u32,
    pub rules: Rules,
    pub base_dir: &'a Path,
    pub read_parquet: Option<ReadParquet<'a>>,
    pub transports: &'a [TransportConfig],
    pub telemetry: &'a TelemetryConfig,
    pub until: Until,
}

impl<'d> Workloads<'d> {
    /// Traffic classes of all packets, one bit each; of `[transport]` only where a workload runs over it.
    pub fn classes(&self, transports: &[TransportConfig]) -> u8 {
        let used = self.specs.iter().flatten().filter_map(|(_, at)| transports.get(usize::from(*at)));
        used.fold(0, |all, transport| all | transport.classes())
    }

    /// Makes the sources of flows, and hands the sections back to `root`.
    pub fn finish(
        mut self,
        root: &mut Section<'d>,
        network: Option<&Network>,
        cx: &TrafficContext,
    ) -> Traffic {
        let mut traffic = Traffic { sources: Vec::new(), groups: Vec::new() };
        if let Some(network) = network {
            let hosts = Hosts::of(&network.topology);
            for (index, (section, spec)) in self.sections.iter_mut().zip(&self.specs).enumerate() {
                if let Some((spec, transport)) = spec {
                    if spec.pattern.facts().is_endless && matches!(cx.until, Until::FlowsDone { .. }) {
                        let message = "\"auto\" is a flow without end, and so is the run: set run.until to a time, or a size";
                        section.complain("size", message.to_string());
                    }
                    if let Until::At(end) = cx.until
                        && spec.start >= end
                    {
                        let (path, start) = (section.path_of("start"), spec.start);
                        section.warn(format!(
                            "{path}: none of its flows start, as the run ends at {end}, before {start}"
                        ));
                    }
                    add_source(&mut traffic, section, index, spec, *transport, &hosts, cx);
                }
            }
        }
        root.absorb_list("workload", self.sections);
        traffic
    }
}

/// Whether a text is the name of a table of sizes, which goes before a file of this name.
fn is_built_in(sizes: &Value) -> bool {
    let Value::Text(name) = sizes else { return false };
    SizeDistribution::names().any(|known| known == name)
}

/// What workloads know about hosts.
struct Hosts<'t> {
    topology: &'t Topology,
    rates: Vec<Rate>,
    racks: Vec<u32>,
    /// Those that jobs have.
    placed: RefCell<Placed>,
    /// (label, host), by label.
    labels: Vec<(u32, HostId)>,
    /// Made for the first file of flows that names a host.
    names: OnceCell<FxHashMap<&'t str, HostId>>,
}

/// Names among which the nearest to an unknown one is looked for.
const COMPARED_NAMES: usize = 100_000;

impl<'t> Hosts<'t> {
    fn of(topology: &'t Topology) -> Hosts<'t> {
        let mut nodes = topology.hosts();
        nodes.truncate(topology.ordinary_hosts());
        let ports = topology.ports();
        let rate = |node: &NodeId| {
            Rate(ports[*node as usize].iter().map(|(link, _)| topology.links[*link as usize].rate.0).sum())
        };
        let rack = |node: &NodeId| ports[*node as usize].first().map_or(u32::MAX, |(_, switch)| *switch);
        let mut labels: Vec<(u32, HostId)> =
            (0..nodes.len() as HostId).map(|host| (topology.host_label(host), host)).collect();
        labels.sort_unstable();
        Hosts {
            topology,
            rates: nodes.iter().map(rate).collect(),
            racks: nodes.iter().map(rack).collect(),
            placed: RefCell::default(),
            labels,
            names: OnceCell::new(),
        }
    }

    fn by_label(&self, label: u32) -> Option<HostId> {
        let found = self.labels.binary_search_by_key(&label, |(known, _)| *known).ok()?;
        Some(self.labels[found].1)
    }

    fn named(&self, name: &str) -> Result<HostId, String> {
        let nodes = || self.topology.hosts().into_iter().take(self.rates.len());
        let name_of = |node: NodeId| self.topology.nodes[node as usize].name.as_str();
        let names = self.names.get_or_init(|| nodes().map(name_of).zip(0..).collect());
        names.get(name).copied().ok_or_else(|| {
            match nearest(name, nodes().take(COMPARED_NAMES).map(name_of)) {
                Some(near) => format!("unknown host \"{name}\": did you mean \"{near}\"?"),
                None => match nodes().next() {
                    Some(first) => format!(
                        "unknown host \"{name}\": the topology has {} hosts, the first of which is \"{}\"",
                        self.rates.len(),
                        name_of(first)
                    ),
                    None => format!("unknown host \"{name}\": the topology has no hosts"),
                },
            }
        })
    }
}

/// Replaces a transport that is wrong, so that what is wrong with the workload is reported as well.
const PLAIN: Framing = Framing { payload: 1000, header: 0, ack: 0, acks_each: true, first: None };

fn add_source(
    traffic: &mut Traffic,
    section: &mut Section,
    index: usize,
    spec: &WorkloadSpec,
    transport: u16,
    hosts: &Hosts,
    cx: &TrafficContext,
) {
    let known = traffic.groups.len();
    let groups = RefCell::new(std::mem::take(&mut traffic.groups));
    let group_named = |name: &str| group_index(&mut groups.borrow_mut(), name);
    let warnings = RefCell::new(Vec::new());
    let framing =
        cx.transports.get(usize::from(transport)).map_or(PLAIN, |transport| transport.framing(cx.telemetry));
    let context = WorkloadContext {
        seed: cx.seed,
        index,
        hosts: hosts.rates.len() as u32,
        host_rate: &hosts.rates,
        slower: cx.slower,
        racks: &hosts.racks,
        gpus_per_node: hosts.topology.gpus_per_node,
        placed: &hosts.placed,
        label_to_host: &|label| hosts.by_label(label),
        host_named: &|name| hosts.named(name),
        base_dir: cx.base_dir,
        group: group_named(&spec.group),
        group_named: &group_named,
        transport,
        header: framing.header,
        ack: framing.ack,
        mtu: framing.payload,
        whole_ns: cx.rules.whole_ns_arrivals,
        read_parquet: cx.read_parquet,
        warn: &|message| warnings.borrow_mut().push(message),
    };
    match spec.source(&context) {
        Ok(source) => {
            if let Some(message) = stranded(&*source, hosts.topology) {
                section.complain_here(message);
            }
            let may_lack_end =
                spec.pattern.facts().lists_flows && matches!(cx.until, Until::FlowsDone { .. });
            if may_lack_end && has_endless(&*source) {
                let message = format!(
                    "a flow of {} B sends until the run ends, and the run until its flows have: set run.until to a time",
                    WITHOUT_END.0
                );
                section.complain("file", message);
            }
            if let Some(message) = too_short(&*source, spec, cx.until) {
                section.warn(format!("{}: {message}", section.path_of("duration")));
            }
            traffic.sources.push(source);
        }
        Err(error) => section.complain(error.key, error.message),
    }
    for warning in warnings.into_inner() {
        section.warn(format!("{}: {warning}", section.path()));
    }
    let groups = groups.into_inner();
    for name in groups[known..].iter().filter(|name| is_name_of_flow(name)) {
        let message = format!("\"{name}\" is the name of a flow in series: expected another name of a group");
        if *name == spec.group {
            section.complain("group", message);
        } else {
            section.complain_here(format!("group: {message}"));
        }
    }
    traffic.groups = groups;
}

/// Whether some flow of a list sends until the run ends.
fn has_endless(source: &dyn FlowSource) -> bool {
    let mut flows = source.clone_box();
    std::iter::from_fn(|| flows.next()).any(|flow| flow.size >= WITHOUT_END.0)
}

/// Whether series.parquet has flows by such a name: `flow12`.
fn is_name_of_flow(name: &str) -> bool {
    let number = name.strip_prefix("flow").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Flows of a source that are held against a network of several parts before it runs; a run looks at all of
/// them.
const LOOKED_AT: usize = 1_000_000;

/// What is wrong with the first flow that leads from one part of the network to another.
fn stranded(source: &dyn FlowSource, topology: &Topology) -> Option<String> {
    if topology.parts.is_empty() {
        return None;
    }
    let mut flows = source.clone_box();
    let mut flows = std::iter::from_fn(|| flows.next()).take(LOOKED_AT);
    flows.find_map(|flow| topology.stranded(flow.src, flow.dst))
}

/// What is wrong with the time of a source whose flows arrive at random, if none of them arrives in it.
fn too_short(source: &dyn FlowSource, spec: &WorkloadSpec, until: Until) -> Option<String> {
    let (asked, duration) = (source.asked()?, spec.duration?);
    let end = match until {
        Until::At(end) => end,
        Until::FlowsDone { .. } => Time::MAX,
    };
    // That the run ends before it starts is another warning.
    if spec.start >= end || source.clone_box().next().is_some_and(|first| first.start <= end) {
        return None;
    }
    let within = duration.min(end.saturating_sub(spec.start));
    let expected = within.as_seconds() * asked.arrivals;
    Some(format!(
        "none of its flows start: at this load they arrive every {} on average, {expected:.2} of them within {within}; use a longer \
         duration or a higher load",
        Time(two_digits((1e12 / asked.arrivals) as u64))
    ))
}

/// Index of the group of this name, made if it is new. The last index stands for all beyond it.
fn group_index(groups: &mut Vec<String>, name: &str) -> u16 {
    let index = groups.iter().position(|known| known == name).unwrap_or_else(|| {
        if groups.len() <= usize::from(u16::MAX) {
            groups.push(name.to_string());
        }
        groups.len() - 1
    });
    u16::try_from(index).unwrap_or(u16::MAX)
}
