//! Star: hosts around one switch `s0`.

use super::TopologyParameters;
use super::network::{LinkSpec, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

/// All hosts on one switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Star {
    pub hosts: u64,
    pub host_link: LinkSpec,
}

impl Default for Star {
    fn default() -> Star {
        Star { hosts: 16, host_link: LinkSpec::HOST }
    }
}

impl TopologyParameters for Star {
    const DOC: SchemeDoc = SchemeDoc {
        name: "star",
        title: "hosts around one switch",
        source: "weftline's definition",
        validation: "The completion time of a single flow equals its closed form to the picosecond \
                     (tests/laws/lone_flow.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> Star {
        let d = Star::default();
        Star {
            hosts: read_count(p, "hosts", d.hosts, 2, "Hosts around the switch."),
            host_link: LinkSpec::read_host(p, d.host_link),
        }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        check_counts(&[("hosts", self.hosts)])?;
        self.host_link.check_host()?;
        let mut network = Network::new(u128::from(self.hosts) + 1, u128::from(self.hosts))?;
        network.hosts(self.hosts);
        let switch = network.switches("s", 1, 1);
        for host in 0..self.hosts {
            network.link(host, switch, self.host_link);
        }
        network.finish()
    }
}
