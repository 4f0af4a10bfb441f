//! Parking lot: a chain of switches `s0` to `sN`, with flows that take one bottleneck and flows that take
//! all.
//!
//! Host ids, in order: senders of the long path (on `s0`), its receivers (on `sN`), then for each
//! bottleneck its senders (on its left switch) and its receivers (on its right one).

use super::network::{LinkSpec, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::parameters::Parameters;

/// `bottlenecks` links in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct ParkingLot {
    pub bottlenecks: u64,
    /// Senders, and as many receivers, around each bottleneck.
    pub hosts_per_hop: u64,
    /// Senders at the first switch, and as many receivers at the last.
    pub long_hosts: u64,
    pub host_link: LinkSpec,
    pub bottleneck_link: LinkSpec,
}

impl Default for ParkingLot {
    fn default() -> ParkingLot {
        let (host_link, bottleneck_link) = (LinkSpec::HOST, LinkSpec::HOST);
        ParkingLot { bottlenecks: 3, hosts_per_hop: 1, long_hosts: 1, host_link, bottleneck_link }
    }
}

impl ParkingLot {
    pub fn read(p: &mut Parameters) -> ParkingLot {
        let d = ParkingLot::default();
        let hops = "Senders around each bottleneck (hosts of their own), and as many receivers.";
        let long = "Senders whose path is the whole chain, and as many receivers.";
        ParkingLot {
            bottlenecks: read_count(p, "bottlenecks", d.bottlenecks, 1, "Links between switches, in a row."),
            hosts_per_hop: read_count(p, "hosts_per_hop", d.hosts_per_hop, 0, hops),
            long_hosts: read_count(p, "long_hosts", d.long_hosts, 1, long),
            host_link: LinkSpec::read_host(p, d.host_link),
            bottleneck_link: LinkSpec::read_bottleneck(p, d.bottleneck_link),
        }
    }

    pub fn build(&self) -> Result<Topology, TopologyError> {
        let hops = self.hosts_per_hop;
        check_counts(&[
            ("bottlenecks", self.bottlenecks),
            ("hosts_per_hop", hops.max(1)),
            ("long_hosts", self.long_hosts),
        ])?;
        self.host_link.check_host()?;
        self.bottleneck_link.check_bottleneck()?;
        // Each factor is at most a million.
        let hosts = 2 * self.long_hosts + 2 * hops * self.bottlenecks;
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
            attach(&mut network, hops, first + hop);
            attach(&mut network, hops, first + hop + 1);
        }
        for hop in 0..self.bottlenecks {
            network.link(first + hop, first + hop + 1, self.bottleneck_link);
        }
        network.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_sit_where_their_flows_enter_and_leave() {
        let t = ParkingLot { bottlenecks: 2, hosts_per_hop: 1, long_hosts: 1, ..ParkingLot::default() }
            .build()
            .unwrap();
        // Hosts 0 to 5, switches 6 to 8.
        let ends: Vec<(u32, u32)> = t.links.iter().map(|l| (l.a, l.b)).collect();
        assert_eq!(ends, [(0, 6), (1, 8), (2, 6), (3, 7), (4, 7), (5, 8), (6, 7), (7, 8)]);
        assert_eq!(t.nodes[8].name, "s2");
    }
}
