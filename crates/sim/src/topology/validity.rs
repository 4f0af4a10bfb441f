//! Requirements for every network before it is simulated: valid names and links, and a path between all
//! hosts.

use rustc_hash::FxHashMap;

use super::memory::check_size;
use super::{Link, LinkId, NodeId, NodeKind, Ports, Topology, TopologyError};

/// Maximum number of nodes of a topology: 24 bits of an event number a node.
pub const MAX_NODES: usize = (1 << 24) - 1;
/// Maximum number of links of a topology: 28 bits of an event number a port, and a link has two.
pub const MAX_LINKS: usize = (1 << 27) - 1;
/// Maximum number of ports of a node: a packet has 16 bits for the port that it came by.
pub const MAX_PORTS: usize = u16::MAX as usize;
const LONGEST_NAME: usize = 64;

impl Topology {
    /// Checks that the topology can be simulated.
    ///
    /// Names are unique and simple; links have two different ends, a rate and a delay; every host has a link;
    /// and every pair of hosts is connected through switches (hosts do not forward). Two planes of switches
    /// that are connected only through hosts are valid.
    pub fn validate(&self) -> Result<(), TopologyError> {
        self.check_names()?;
        self.check_links()?;
        self.check_connected()
    }

    fn check_names(&self) -> Result<(), TopologyError> {
        check_size(self.nodes.len() as u128, self.links.len() as u128)?;
        let mut seen: FxHashMap<&str, ()> = FxHashMap::default();
        for node in &self.nodes {
            check_name(&node.name).map_err(TopologyError::new)?;
            if seen.insert(&node.name, ()).is_some() {
                return Err(TopologyError::new(format!("two nodes are named \"{}\"", node.name)));
            }
        }
        let hosts = self.hosts().len();
        if hosts < 2 {
            return Err(TopologyError::new(format!("at least two hosts are needed, found {hosts}")));
        }
        if !self.host_labels.is_empty() && self.host_labels.len() != hosts {
            let labels = self.host_labels.len();
            return Err(TopologyError::new(format!("{labels} host labels for {hosts} hosts")));
        }
        let mut labels = self.host_labels.clone();
        labels.sort_unstable();
        match labels.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(TopologyError::new(format!("two hosts have the id {}", pair[0]))),
            None => Ok(()),
        }
    }

    fn check_links(&self) -> Result<(), TopologyError> {
        let mut degree = vec![0u32; self.nodes.len()];
        for (index, link) in self.links.iter().enumerate() {
            for end in [link.a, link.b] {
                match degree.get_mut(end as usize) {
                    Some(count) => *count += 1,
                    None => {
                        let message = format!("link {index} ends at node {end}, which does not exist");
                        return Err(TopologyError::new(message));
                    }
                }
            }
            self.check_link(link).map_err(TopologyError::new)?;
        }
        if let Some((node, ports)) = degree.iter().enumerate().find(|(_, ports)| **ports as usize > MAX_PORTS)
        {
            let name = &self.nodes[node].name;
            let message = format!("{name} has {ports} links, and a node has at most {MAX_PORTS} ports");
            return Err(TopologyError::new(message));
        }
        for host in self.hosts() {
            if degree[host as usize] == 0 {
                let name = &self.nodes[host as usize].name;
                return Err(TopologyError::new(format!("host \"{name}\" has no link")));
            }
        }
        Ok(())
    }

    pub(super) fn check_link(&self, link: &Link) -> Result<(), String> {
        let name = |node: NodeId| &self.nodes[node as usize].name;
        let between = || format!("the link between {} and {}", name(link.a), name(link.b));
        if link.a == link.b {
            return Err(format!("a link joins {} to itself", name(link.a)));
        }
        if link.rate.0 == 0 {
            return Err(format!("{} has rate 0: it must be greater than 0", between()));
        }
        if link.delay.0 == 0 {
            return Err(format!("{} has delay 0: it must be greater than 0, such as \"10ns\"", between()));
        }
        Ok(())
    }

    /// Every two hosts share an island of connected switches, or a link of their own.
    fn check_connected(&self) -> Result<(), TopologyError> {
        let ports = self.ports();
        let island = self.islands(&ports, |_| true);
        let hosts = self.hosts();
        let reach: Vec<Vec<u32>> = hosts
            .iter()
            .map(|&host| {
                let mut reached: Vec<u32> =
                    ports[host as usize].iter().filter_map(|&(_, n)| island[n as usize]).collect();
                reached.sort_unstable();
                reached.dedup();
                reached
            })
            .collect();
        let mut touched = vec![0usize; self.nodes.len()];
        for islands in &reach {
            islands.iter().for_each(|&i| touched[i as usize] += 1);
        }
        let name = |node: NodeId| &self.nodes[node as usize].name;
        for switch in self.switches() {
            // Every switch belongs to an island.
            if island[switch as usize].is_some_and(|i| touched[i as usize] == 0) {
                let message = format!("not connected: switch \"{}\" reaches no host", name(switch));
                return Err(TopologyError::new(message));
            }
        }
        if touched.contains(&hosts.len()) {
            return Ok(());
        }
        // Of each part of the network: its hosts, by number.
        let mut parts: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for host in 0..hosts.len() {
            parts.entry(self.parts.get(host).copied().unwrap_or(0)).or_default().push(host);
        }
        let mut parts: Vec<Vec<usize>> = parts.into_values().collect();
        parts.sort_unstable();
        parts.iter().try_for_each(|part| self.check_part(part, &hosts, &reach, &ports))
    }

    /// The same for the hosts of one part of the network.
    fn check_part(
        &self,
        part: &[usize],
        hosts: &[NodeId],
        reach: &[Vec<u32>],
        ports: &Ports,
    ) -> Result<(), TopologyError> {
        let of_all = |island: &u32| part.iter().all(|&host| reach[host].contains(island));
        if reach[part[0]].iter().any(of_all) {
            return Ok(());
        }
        let name = |node: NodeId| &self.nodes[node as usize].name;
        for (at, &i) in part.iter().enumerate() {
            for &j in &part[at + 1..] {
                let (a, b) = (hosts[i], hosts[j]);
                let shared = reach[i].iter().any(|island| reach[j].contains(island));
                if !shared && !ports[a as usize].iter().any(|&(_, n)| n == b) {
                    let message = format!("not connected: no path from {} to {}", name(a), name(b));
                    return Err(TopologyError::new(message));
                }
            }
        }
        Ok(())
    }

    /// For each switch the lowest switch that it can reach over links that work, without passing a host; none for
    /// hosts.
    pub fn islands(&self, ports: &Ports, works: impl Fn(LinkId) -> bool) -> Vec<Option<u32>> {
        let mut island = vec![None; self.nodes.len()];
        let mut waiting = Vec::new();
        for first in self.switches() {
            if island[first as usize].is_some() {
                continue;
            }
            island[first as usize] = Some(first);
            waiting.push(first);
            while let Some(node) = waiting.pop() {
                for &(link, next) in &ports[node as usize] {
                    let is_switch = self.nodes[next as usize].kind == NodeKind::Switch;
                    if is_switch && works(link) && island[next as usize].is_none() {
                        island[next as usize] = Some(first);
                        waiting.push(next);
                    }
                }
            }
        }
        island
    }
}

/// A name consists of letters, digits, `-` and `_`, so that `name.p3` and patterns remain readable.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let length = name.chars().count();
    if plain && (1..=LONGEST_NAME).contains(&length) {
        return Ok(());
    }
    let shown: String = name.chars().take(LONGEST_NAME).collect();
    Err(format!(
        "{shown:?} is not a valid name of a node: expected 1 to {LONGEST_NAME} letters, digits, \
                 \"-\" or \"_\""
    ))
}

#[cfg(test)]
mod tests;
