//! Parking lot: a chain of switches `s0` to `sN`, with flows that cross one bottleneck and flows that cross
//! all.
//!
//! Host ids, in order: senders of the long path (on `s0`), its receivers (on `sN`), then for each
//! bottleneck its senders (on its left switch) and its receivers (on its right one).

use super::TopologyParameters;
use super::network::{LinkSpec, MAX_COUNT, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::{Parameters, Value, describe};

/// `bottlenecks` links in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct ParkingLot {
    pub bottlenecks: u64,
    /// Number of senders, and of receivers, around each bottleneck.
    pub hosts_per_hop: u64,
    /// The same for each bottleneck separately; empty: `hosts_per_hop` for all.
    pub hosts_by_hop: Vec<u64>,
    /// Number of senders at the first switch, and of receivers at the last.
    pub long_hosts: u64,
    pub host_link: LinkSpec,
    pub bottleneck_link: LinkSpec,
}

impl Default for ParkingLot {
    fn default() -> ParkingLot {
        let (host_link, bottleneck_link) = (LinkSpec::HOST, LinkSpec::HOST);
        let hosts_by_hop = Vec::new();
        ParkingLot {
            bottlenecks: 3,
            hosts_per_hop: 1,
            hosts_by_hop,
            long_hosts: 1,
            host_link,
            bottleneck_link,
        }
    }
}

impl TopologyParameters for ParkingLot {
    const DOC: SchemeDoc = SchemeDoc {
        name: "parking-lot",
        title: "a chain of bottlenecks, with flows over one and flows over all",
        source: "weftline's definition",
        validation: "The completion time of a single flow equals its closed form to the picosecond \
                     (tests/laws/lone_flow.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> ParkingLot {
        let d = ParkingLot::default();
        let hops = "Senders around each bottleneck (separate hosts), and the same number of receivers.";
        let long = "Senders whose path is the whole chain, and the same number of receivers.";
        let bottlenecks = read_count(p, "bottlenecks", d.bottlenecks, 1, "Links between switches, in a row.");
        let hosts_by_hop = read_by_hop(p, bottlenecks);
        let hosts_per_hop = read_count(p, "hosts_per_hop", d.hosts_per_hop, 0, hops);
        if !hosts_by_hop.is_empty() {
            p.idle("hosts_per_hop", || "has no effect with hosts_by_hop: give one of them".into());
        }
        ParkingLot {
            hosts_by_hop,
            bottlenecks,
            hosts_per_hop,
            long_hosts: read_count(p, "long_hosts", d.long_hosts, 1, long),
            host_link: LinkSpec::read_host(p, d.host_link),
            bottleneck_link: LinkSpec::read_bottleneck(p, d.bottleneck_link),
        }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        check_counts(&[
            ("bottlenecks", self.bottlenecks),
            ("hosts_per_hop", self.hosts_per_hop.max(1)),
            ("long_hosts", self.long_hosts),
        ])?;
        let at_hop = |hop: u64| self.hosts_by_hop.get(hop as usize).copied().unwrap_or(self.hosts_per_hop);
        self.host_link.check_host()?;
        self.bottleneck_link.check_bottleneck()?;
        // Each factor is at most a million.
        let around = match self.hosts_by_hop.is_empty() {
            true => self.hosts_per_hop * self.bottlenecks,
            false => self.hosts_by_hop.iter().sum(),
        };
        let hosts = 2 * self.long_hosts + 2 * around;
        let mut network =
            Network::new(u128::from(hosts + self.bottlenecks + 1), u128::from(hosts + self.bottlenecks))?;
        network.hosts(hosts);
        let first = network.switches("s", self.bottlenecks + 1, 1);
        let mut host = 0;
        let mut attach = |network: &mut Network, count: u64, switch: u64| {
            for _ in 0..count {
                network.link(host, switch, self.host_link);
                host += 1;
            }
        };
        attach(&mut network, self.long_hosts, first);
        attach(&mut network, self.long_hosts, first + self.bottlenecks);
        for hop in 0..self.bottlenecks {
            attach(&mut network, at_hop(hop), first + hop);
            attach(&mut network, at_hop(hop), first + hop + 1);
        }
        for hop in 0..self.bottlenecks {
            network.link(first + hop, first + hop + 1, self.bottleneck_link);
        }
        network.finish()
    }
}

fn read_by_hop(p: &mut Parameters, bottlenecks: u64) -> Vec<u64> {
    let help = "Senders around each bottleneck, such as [2, 8, 1], instead of hosts_per_hop.";
    let Some(list) = p.list("hosts_by_hop", help) else { return Vec::new() };
    let mut counts = Vec::new();
    for value in &list {
        match value {
            Value::Integer(count) if (0..=MAX_COUNT).contains(count) => counts.push(*count as u64),
            other => {
                let found = describe(other);
                p.complain(
                    "hosts_by_hop",
                    format!("expected numbers of hosts, 0 to {MAX_COUNT}, found {found}"),
                );
                return Vec::new();
            }
        }
    }
    if counts.len() as u64 != bottlenecks || counts.iter().sum::<u64>() > MAX_COUNT as u64 {
        let message = format!(
            "expected {bottlenecks} numbers, one for each bottleneck, at most {MAX_COUNT} hosts together"
        );
        p.complain("hosts_by_hop", message);
        return Vec::new();
    }
    counts
}

#[cfg(test)]
mod tests;
