//! Names of what a run counts by number: hosts, ports, groups, transports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{DictionaryArray, Int32Array, StringArray, types::Int32Type};
use weftline_sim::config::{Change, Config, IdealFct, TransportConfig};
use weftline_sim::measure::Entity;
use weftline_sim::units::{Bytes, Time};

/// What numbers in records stand for; strings are made when rows are written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    /// A host's id as the user writes it; empty when that is its number.
    pub host_labels: Vec<u32>,
    /// `leaf0`, `host17`, ... by node.
    pub nodes: Vec<String>,
    /// Kinds of links: `host -> leaf`, `leaf -> spine`, ...
    pub link_kinds: Vec<String>,
    /// Place in `link_kinds` by node and port.
    pub links: Vec<Vec<u16>>,
    pub groups: Vec<String>,
    /// (transport, controller) by the index that a flow names, such as ("rdma", "hpcc").
    pub transports: Vec<(String, String)>,
    /// Controllers among them that steer by marks of switches.
    pub marked: Vec<String>,
    /// The shortest time for which a sender waits before a tail loss probe with one packet in flight; none: no
    /// transport sends probes.
    pub loss_probe: Option<Time>,
    /// PFC is on, and no port has a buffer of its own, which drops instead of pausing.
    pub lossless: bool,
    /// Nodes that are hosts.
    pub hosts: BTreeSet<u32>,
    /// With PFC on: bytes that may wait at a port of a switch, by node and port, if the queue there has such a limit.
    pub limits: BTreeMap<(u32, u32), Bytes>,
    /// What was to fail and when, in the order of time, such as `leaf0 - spine1 down`.
    pub failures: Vec<(Time, String)>,
    /// Slowdowns below 1 are raised to 1, as the definition of the ideal time has it.
    pub raises_slowdowns: bool,
}

/// The changes of links and switches of a run; those drawn from its seed by the names of what was drawn.
fn failures(config: &Config) -> Vec<(Time, String)> {
    let node = |id: u32| &config.topology.nodes[id as usize].name;
    let link = |id: u32| {
        let link = &config.topology.links[id as usize];
        format!("{} - {}", node(link.a), node(link.b))
    };
    let text = |change: Change| match change {
        Change::LinkDown(id) => format!("{} down", link(id)),
        Change::LinkUp(id) => format!("{} up", link(id)),
        Change::LinkRate(id, rate) => format!("{} at {rate}", link(id)),
        Change::SwitchDown(id) => format!("{} down", node(id)),
        Change::SwitchUp(id) => format!("{} up", node(id)),
    };
    config.failures.events.iter().map(|failure| (failure.at, text(failure.change))).collect()
}

/// [`Names::limits`].
fn limits(config: &Config) -> BTreeMap<(u32, u32), Bytes> {
    let switch = &config.switch;
    if !switch.pfc.enabled || switch.queues().all(|queue| queue.facts().capacity.is_none()) {
        return BTreeMap::new();
    }
    let ports = config.topology.ports();
    let of_node = |node: u32| (0..ports[node as usize].len() as u32).map(move |local| (node, local));
    let packet = config.largest_packet();
    let limit = |(node, local)| Some(((node, local), switch.queue_at(node, local).facts().room(packet)?));
    let hosts = config.topology.hosts();
    let switches = (0..ports.len() as u32).filter(|node| hosts.binary_search(node).is_err());
    switches.flat_map(of_node).filter_map(limit).collect()
}

impl Names {
    /// The names in a run's configuration.
    pub fn of(config: &Config) -> Names {
        let names = |transport: &TransportConfig| {
            let controller = transport.facts().controller_name.unwrap_or("");
            (transport.name().to_string(), controller.to_string())
        };
        let transports = config.transports.iter().map(names);
        let marked = config.transports.iter().filter_map(|transport| transport.facts().marked_controller);
        let mut marked: Vec<String> = marked.map(str::to_string).collect();
        marked.sort_unstable();
        marked.dedup();
        let (link_kinds, links) = config.topology.link_kinds();
        let of_nics = config.nic_queue();
        let mut queues = config.switch.queues().chain([&of_nics]);
        Names {
            link_kinds,
            links,
            host_labels: config.topology.host_labels.clone(),
            nodes: config.topology.nodes.iter().map(|node| node.name.clone()).collect(),
            groups: config.traffic.groups.clone(),
            transports: transports.collect(),
            marked,
            loss_probe: config.transports.iter().filter_map(|transport| transport.facts().loss_probe).min(),
            lossless: config.switch.pfc.enabled && !queues.any(|queue| queue.facts().owns_buffer),
            hosts: config.topology.hosts().into_iter().collect(),
            limits: limits(config),
            failures: failures(config),
            raises_slowdowns: config.measure.ideal == IdealFct::Hpcc,
        }
    }

    pub fn host(&self, host: u32) -> u32 {
        self.host_labels.get(host as usize).copied().unwrap_or(host)
    }

    /// `leaf0.p3`: the fourth port of leaf0.
    pub fn port(&self, node: u32, port: u32) -> String {
        match self.nodes.get(node as usize) {
            Some(name) => format!("{name}.p{port}"),
            None => format!("node{node}.p{port}"),
        }
    }

    /// `leaf -> spine`: the kinds of nodes at both ends of the link of a port.
    pub fn link(&self, node: u32, port: u32) -> &str {
        let kind = self.links.get(node as usize).and_then(|ports| ports.get(port as usize));
        kind.map_or("?", |&kind| &self.link_kinds[usize::from(kind)])
    }

    pub fn group(&self, group: u16) -> String {
        self.groups.get(usize::from(group)).cloned().unwrap_or_else(|| format!("group{group}"))
    }

    pub fn entity(&self, entity: Entity) -> String {
        match entity {
            Entity::Port(node, port) => self.port(node, port),
            Entity::Flow(flow) => format!("flow{flow}"),
            Entity::Group(group) => self.group(group),
            Entity::Run => "run".to_string(),
        }
    }
}

/// Strings of one column that a small index selects; each distinct string is stored once.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    values: Arc<StringArray>,
    /// Place of index i's string in `values`; an index beyond the end is the last one, "?".
    place: Vec<i32>,
}

impl Labels {
    pub fn new<'n>(names: impl Iterator<Item = &'n str>) -> Labels {
        let mut values: Vec<&str> = Vec::new();
        let mut place = Vec::new();
        for name in names.chain(["?"]) {
            let found = values.iter().position(|v| *v == name).unwrap_or(values.len());
            if found == values.len() {
                values.push(name);
            }
            place.push(found as i32);
        }
        Labels { values: Arc::new(StringArray::from(values)), place }
    }

    /// The column whose row i reads as the string of index `indices[i]`.
    pub fn column(&self, indices: impl Iterator<Item = u16>) -> DictionaryArray<Int32Type> {
        let last = self.place.len() - 1;
        let keys: Int32Array = indices.map(|i| Some(self.place[usize::from(i).min(last)])).collect();
        // Keys come from `place`, whose entries are places in `values`.
        DictionaryArray::new(keys, self.values.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn entities_read_as_a_person_would_name_them() {
        let names = Names {
            nodes: vec!["host0".into(), "leaf0".into()],
            groups: vec!["web".into()],
            ..Names::default()
        };
        let read = |entity| names.entity(entity);
        assert_eq!(read(Entity::Port(1, 3)), "leaf0.p3");
        assert_eq!(read(Entity::Flow(12)), "flow12");
        assert_eq!(read(Entity::Group(0)), "web");
        assert_eq!(read(Entity::Run), "run");
        assert_eq!(names.host(7), 7);
    }

    #[test]
    fn equal_labels_are_stored_once() {
        let labels = Labels::new(["rdma", "rdma", "tcp"].into_iter());
        let column = labels.column([1u16, 2, 9].into_iter());
        let read: Vec<_> = column.downcast_dict::<StringArray>().unwrap().into_iter().collect();
        assert_eq!(read, [Some("rdma"), Some("tcp"), Some("?")]);
        assert_eq!(labels.values.len(), 3);
    }
}
