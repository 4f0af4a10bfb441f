//! Dumbbell: hosts on either side of one link. The switches are `s0` (left) and `s1` (right).

use super::network::{LinkSpec, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::parameters::Parameters;

/// Two switches joined by the bottleneck; hosts 0 to `left - 1` are on `s0`, the others on `s1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dumbbell {
    pub left: u64,
    pub right: u64,
    pub host_link: LinkSpec,
    pub bottleneck_link: LinkSpec,
}

impl Default for Dumbbell {
    fn default() -> Dumbbell {
        Dumbbell { left: 4, right: 4, host_link: LinkSpec::HOST, bottleneck_link: LinkSpec::HOST }
    }
}

impl Dumbbell {
    pub fn read(p: &mut Parameters) -> Dumbbell {
        let d = Dumbbell::default();
        Dumbbell {
            left: read_count(p, "left", d.left, 1, "Hosts on the left switch, s0; they come first."),
            right: read_count(p, "right", d.right, 1, "Hosts on the right switch, s1."),
            host_link: LinkSpec::read_host(p, d.host_link),
            bottleneck_link: LinkSpec::read_bottleneck(p, d.bottleneck_link),
        }
    }

    pub fn build(&self) -> Result<Topology, TopologyError> {
        check_counts(&[("left", self.left), ("right", self.right)])?;
        self.host_link.check_host()?;
        self.bottleneck_link.check_bottleneck()?;
        let hosts = self.left + self.right;
        let mut network = Network::new(u128::from(hosts) + 2, u128::from(hosts) + 1)?;
        network.hosts(hosts);
        let left = network.switches("s", 2, 1);
        let right = left + 1;
        for host in 0..hosts {
            network.link(host, if host < self.left { left } else { right }, self.host_link);
        }
        network.link(left, right, self.bottleneck_link);
        network.finish()
    }
}
