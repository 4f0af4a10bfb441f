//! Dumbbell: hosts on both sides of one link. The switches are `s0` (left) and `s1` (right).

use super::TopologyParameters;
use super::network::{LinkSpec, MAX_COUNT, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::{Parameters, Value, describe, unknown};
use crate::units::Time;

/// Two switches joined by the bottleneck; hosts 0 to `left - 1` are on `s0`, the others on `s1`. With groups
/// both sides have the same number of hosts, and host i of the left has the delay of host i of the right.
#[derive(Debug, Clone, PartialEq)]
pub struct Dumbbell {
    pub left: u64,
    pub right: u64,
    /// Instead of `left` and `right`: number of hosts per side, and the delay of their links.
    pub groups: Vec<(u64, Time)>,
    pub host_link: LinkSpec,
    pub bottleneck_link: LinkSpec,
}

impl Default for Dumbbell {
    fn default() -> Dumbbell {
        Dumbbell {
            left: 4,
            right: 4,
            groups: Vec::new(),
            host_link: LinkSpec::HOST,
            bottleneck_link: LinkSpec::HOST,
        }
    }
}

impl TopologyParameters for Dumbbell {
    const DOC: SchemeDoc = SchemeDoc {
        name: "dumbbell",
        title: "hosts on both sides of one link",
        source: "weftline's definition",
        validation: "The completion time of a single flow equals its closed form to the picosecond \
                     (tests/laws/lone_flow.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> Dumbbell {
        let d = Dumbbell::default();
        let groups = read_groups(p);
        if groups.is_empty() {
            return Dumbbell::read_sides(p, d);
        }
        let hosts = groups.iter().map(|group| group.0).sum();
        for key in ["left", "right"] {
            let help = "With `groups` it must be the number of hosts in the groups.";
            if p.integer(key, hosts as i64, (1, MAX_COUNT), help) as u64 != hosts {
                p.complain(key, format!("the groups have {hosts} hosts per side"));
            }
        }
        let (host_link, bottleneck_link) =
            (LinkSpec::read_host(p, d.host_link), LinkSpec::read_bottleneck(p, d.bottleneck_link));
        Dumbbell { left: hosts, right: hosts, groups, host_link, bottleneck_link }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        check_counts(&[("left", self.left), ("right", self.right)])?;
        self.host_link.check_host()?;
        self.bottleneck_link.check_bottleneck()?;
        let hosts = self.left + self.right;
        let mut network = Network::new(u128::from(hosts) + 2, u128::from(hosts) + 1)?;
        network.hosts(hosts);
        let left = network.switches("s", 2, 1);
        let right = left + 1;
        for host in 0..hosts {
            let (switch, place) = if host < self.left { (left, host) } else { (right, host - self.left) };
            let delay = self.delay_of(place);
            network.link(host, switch, LinkSpec { delay, ..self.host_link });
        }
        network.link(left, right, self.bottleneck_link);
        network.finish()
    }
}

impl Dumbbell {
    fn read_sides(p: &mut Parameters, d: Dumbbell) -> Dumbbell {
        Dumbbell {
            groups: Vec::new(),
            left: read_count(p, "left", d.left, 1, "Hosts on the left switch, s0; they come first."),
            right: read_count(p, "right", d.right, 1, "Hosts on the right switch, s1."),
            host_link: LinkSpec::read_host(p, d.host_link),
            bottleneck_link: LinkSpec::read_bottleneck(p, d.bottleneck_link),
        }
    }

    /// Delay of the link of the host with this index on its side.
    fn delay_of(&self, place: u64) -> Time {
        let mut first = 0;
        for &(hosts, delay) in &self.groups {
            first += hosts;
            if place < first {
                return delay;
            }
        }
        self.host_link.delay
    }
}

const GROUPS_HELP: &str = "List of tables with hosts (per side) and delay (of their links), instead of left \
                           and right: each group gives the flows from host i on the left to host i on the \
                           right its own round-trip time.";
const GROUP_KEYS: &[&str] = &["hosts", "delay"];

fn read_groups(p: &mut Parameters) -> Vec<(u64, Time)> {
    let list = p.list("groups", GROUPS_HELP).unwrap_or_default();
    let mut groups = Vec::new();
    for (place, value) in list.iter().enumerate() {
        match read_group(value) {
            Ok(group) => groups.push(group),
            Err(message) => {
                p.complain("groups", format!("group {place}: {message}"));
                return Vec::new();
            }
        }
    }
    if groups.iter().map(|group| u128::from(group.0)).sum::<u128>() > MAX_COUNT as u128 {
        p.complain("groups", format!("expected at most {MAX_COUNT} hosts"));
        return Vec::new();
    }
    groups
}

fn read_group(value: &Value) -> Result<(u64, Time), String> {
    let Value::Table(entries) = value else {
        return Err(format!("expected a table with hosts and delay, found {}", describe(value)));
    };
    let (mut hosts, mut delay) = (None, None);
    for (key, value) in entries {
        match (key.as_str(), value) {
            ("hosts", Value::Integer(count)) if (1..=MAX_COUNT).contains(count) => {
                hosts = Some(*count as u64)
            }
            ("hosts", other) => {
                return Err(format!("hosts: expected 1 to {MAX_COUNT}, found {}", describe(other)));
            }
            ("delay", Value::Text(text)) => {
                let parsed = text.parse::<Time>().map_err(|error| format!("delay: {error}"))?;
                delay = Some(parsed).filter(|delay| delay.0 > 0);
                if delay.is_none() {
                    return Err("delay must be greater than 0, such as \"1us\"".into());
                }
            }
            ("delay", other) => {
                return Err(format!("delay: expected a time such as \"2ms\", found {}", describe(other)));
            }
            (key, _) => return Err(unknown("key", key, GROUP_KEYS.iter().copied())),
        }
    }
    match (hosts, delay) {
        (Some(hosts), Some(delay)) => Ok((hosts, delay)),
        (None, _) => Err("hosts is missing".into()),
        (_, None) => Err("delay is missing".into()),
    }
}

#[cfg(test)]
mod tests;
