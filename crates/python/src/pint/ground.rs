//! What a collector knows about the network: ids of switches, links between them, where hosts are attached.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::file::{FORMATS, FileSpec};
use weftline_sim::topology::{NodeKind, Topology};

use crate::errors::input;

/// Switches and links. The id of a switch is its node's number in the topology, as the simulator's switches
/// write it.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// Ids, ascending.
    pub ids: Vec<u64>,
    /// Pairs of ids.
    pub edges: Vec<(u64, u64)>,
    /// The switch at which each host is attached, by the host's id; none for hosts with several.
    pub attached: BTreeMap<u64, u64>,
    /// The ports of every switch have numbers below this.
    pub ports: u32,
    /// The ids of all hosts.
    pub hosts: BTreeSet<u64>,
    pub names: BTreeMap<u64, String>,
    /// What the file's reader had to leave out.
    pub warnings: Vec<String>,
}

/// The text of a file if it is a scenario.
fn scenario(path: &Path) -> Option<String> {
    let text =
        std::fs::read_to_string(path).ok().filter(|_| path.extension().is_some_and(|end| end == "toml"))?;
    let is_scenario = |line: &str| line.trim().starts_with("[topology]");
    text.lines().any(is_scenario).then_some(text)
}

/// What is set over a file that has a network alone: no switch depends on traffic, which a scenario must
/// have.
fn traffic_for(text: &str) -> Vec<(String, String)> {
    let has_traffic =
        text.lines().any(|line| line.trim_start_matches(['[', ' ', '\t']).starts_with("workload"));
    let any = r#"[{ kind = "flows", flows = [{ src = 0, dst = 1, size = "1KB" }] }]"#;
    if has_traffic { Vec::new() } else { vec![("workload".to_string(), any.to_string())] }
}

impl Ground {
    /// Of a topology file, its format by its extension; or of a scenario, such as the one in a run's folder,
    /// which needs no traffic here.
    pub fn read(path: &Path) -> PyResult<Ground> {
        let file = path.display().to_string();
        if let Some(text) = scenario(path) {
            let base = path.parent().unwrap_or(Path::new("."));
            let sets = traffic_for(&text);
            let scenario =
                Scenario::load(&text, &file, base, &sets, None, Hooks::default()).map_err(input)?;
            return Ok(Ground::of(&scenario.config().map_err(input)?.topology));
        }
        let spec = FileSpec { file, ..FileSpec::default() };
        let (topology, warnings) = spec.build_in(&PathBuf::new()).map_err(|error| match error.key {
            // A command has the file's name only, and not the other keys of `[topology]`.
            Some("format") => {
                let known = FORMATS[0].1.rsplit(": ").next().unwrap_or_default();
                input(format!("topology: expected a file that ends in {known}, found \"{}\"", spec.file))
            }
            Some(_) => input(format!("topology: {}", error.message)),
            None => input(error),
        })?;
        Ok(Ground { warnings, ..Ground::of(&topology) })
    }

    fn of(topology: &Topology) -> Ground {
        let is_switch = |node: u32| topology.nodes[node as usize].kind == NodeKind::Switch;
        let ids: Vec<u64> = topology.switches().into_iter().map(u64::from).collect();
        let between = topology.links.iter().filter(|link| is_switch(link.a) && is_switch(link.b));
        let edges = between.map(|link| (u64::from(link.a), u64::from(link.b))).collect();
        let ports = topology.ports();
        let (mut attached, mut hosts) = (BTreeMap::new(), BTreeSet::new());
        for (host, node) in (0..).zip(topology.hosts()) {
            let id = u64::from(topology.host_label(host));
            hosts.insert(id);
            if let [(_, switch)] = ports[node as usize][..] {
                attached.insert(id, u64::from(switch));
            }
        }
        let named = topology.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Switch);
        let names = named.map(|(id, node)| (id as u64, node.name.clone())).collect();
        let switches = topology.switches().into_iter();
        let largest = switches.map(|node| ports[node as usize].len() as u32).max().unwrap_or(0);
        Ground { ids, edges, attached, ports: largest, hosts, names, warnings: Vec::new() }
    }
}
