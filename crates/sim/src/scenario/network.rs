//! `[topology]`: which network, with what changed on single links; built, checked and measured.

use std::path::Path;

use super::section::Section;
use crate::compat::Rules;
use crate::parameters::{Source, Value, describe};
use crate::topology::{self, HostId, KnownLongest, LinkOverride, NodeId, Routes, Topology, TopologySpec};
use crate::units::{Rate, Time};
use rustc_hash::FxHashSet;

/// A network that was built, and its routes while nothing has failed.
pub struct Network {
    pub topology: Topology,
    pub routes: Routes,
    pub longest: KnownLongest,
}

impl Network {
    /// The largest base RTT of all host pairs, and the largest product of it with the bottleneck's rate in bytes.
    pub fn base_rtt(&self, payload: u32, rules: &Rules) -> (Time, u64) {
        let whole_ns = rules.whole_ns_base_rtt;
        let longest = self.longest.find(&self.topology, &self.routes, u64::from(payload), whole_ns);
        (longest.base_rtt, longest.product)
    }

    /// Links on the longest of the shortest paths between hosts.
    pub fn diameter(&self) -> u32 {
        self.longest.find(&self.topology, &self.routes, 0, false).hops
    }

    /// A host for each set of switches that hosts have links to.
    pub fn destinations(&self) -> Vec<HostId> {
        let ports = self.topology.ports();
        let mut seen = FxHashSet::default();
        let hosts = 0..self.routes.hosts() as HostId;
        hosts
            .filter(|&host| {
                let switches = ports[self.routes.host_node(host) as usize].iter().map(|&(_, peer)| peer);
                seen.insert(switches.collect::<Vec<NodeId>>())
            })
            .collect()
    }
}

/// Reads `[topology]` and builds it. None: something is wrong, and reported.
pub fn read(section: &mut Section, base_dir: &Path, rules: &Rules) -> Option<Network> {
    let kind = section.kind("topology", None, topology::KINDS, "which network")?;
    let spec = TopologySpec::read(kind, &mut section.parameters())?;
    super::keep_path(section, "file", base_dir);
    let mut tables = section.children("override");
    let overrides: Vec<Option<LinkOverride>> = tables.iter_mut().map(link_override).collect();
    let readable = section.is_clean() && tables.iter().all(Section::is_clean);
    let built = if readable { build(section, &spec, base_dir) } else { None };
    let network = built.and_then(|mut topology| {
        for (table, change) in tables.iter_mut().zip(&overrides) {
            let change = change.as_ref()?;
            if let Err(message) = topology::apply_overrides(&mut topology, std::slice::from_ref(change)) {
                table.complain_here(message);
                return None;
            }
        }
        if let Err(error) = topology.validate() {
            section.complain_here(error.to_string());
            return None;
        }
        if let Some(message) = absurd_link(&topology) {
            section.complain_here(message);
            return None;
        }
        let routes = Routes::compute(&topology, &|_| true, rules.next_hops);
        Some(Network { topology, routes, longest: KnownLongest::default() })
    });
    section.absorb_list("override", tables);
    super::presets::offer(section);
    network
}

fn build(section: &mut Section, spec: &TopologySpec, base_dir: &Path) -> Option<Topology> {
    match spec.build(base_dir) {
        Ok((topology, warnings)) => {
            for warning in warnings {
                section.warn(warning);
            }
            Some(topology)
        }
        Err(mut error) => {
            match error.key.take() {
                Some(key) => section.complain(key, error.to_string()),
                None if error.file.is_some() => section.complain("file", error.to_string()),
                None => section.complain_here(error.to_string()),
            }
            None
        }
    }
}

/// The highest rate that a telemetry record can hold, rounded down.
pub const HIGHEST_RATE: Rate = Rate::from_gbps(4000);
/// The longest link: to a distant spacecraft it would be more, to anything in a fabric less.
const LONGEST_DELAY: Time = Time::from_ms(10_000);

/// What is wrong with the first link whose values are certainly a mistake.
fn absurd_link(topology: &Topology) -> Option<String> {
    let absurd = topology.links.iter().find(|link| link.rate > HIGHEST_RATE || link.delay > LONGEST_DELAY)?;
    let name = |node: u32| &topology.nodes[node as usize].name;
    let (a, b) = (name(absurd.a), name(absurd.b));
    Some(if absurd.rate > HIGHEST_RATE {
        format!("the link from {a} to {b} has {}: expected at most {HIGHEST_RATE}", absurd.rate)
    } else {
        format!("the link from {a} to {b} has a delay of {}: expected at most {LONGEST_DELAY}", absurd.delay)
    })
}

/// One `[[topology.override]]`.
pub fn link_override(table: &mut Section) -> Option<LinkOverride> {
    let help = "names of the two ends, each a pattern: [\"leaf0\", \"spine*\"]";
    let ends = table.parameters().list("between", help);
    let rate = table.parameters().rate_or_auto("rate", "rate of these links; auto: as built");
    let delay = table.parameters().time_or_auto("delay", "delay of these links; auto: as built");
    let Some(ends) = ends else {
        if table.peek("between").is_none() {
            let message = "missing: expected two names, such as [\"leaf0\", \"spine*\"]";
            table.complain("between", message.to_string());
        }
        return None;
    };
    match ends.as_slice() {
        [Value::Text(a), Value::Text(b)] => {
            Some(LinkOverride { between: (a.clone(), b.clone()), rate, delay })
        }
        other => {
            let found: Vec<String> = other.iter().map(describe).collect();
            let message =
                format!("expected two names, such as [\"leaf0\", \"spine*\"], found [{}]", found.join(", "));
            table.complain("between", message);
            None
        }
    }
}
