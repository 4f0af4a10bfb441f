//! What the balancers of a network know of it, as its control plane would tell them: which switches have hosts, and for each
//! switch where its ports lead.

use crate::topology::LinkSpec;

/// The switches with hosts of one plane, numbered: probes, feedback and tables are by them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fabric {
    /// By host, the number of the switch of the plane that it hangs on; [`u32::MAX`]: of none.
    pub tor_of: Vec<u32>,
    /// By number, a host on it: the ways to it are those to the switch.
    pub host_on: Vec<u32>,
    /// By number, the switch as a node; in order.
    pub node_of: Vec<u32>,
    /// By node and port, where it leads, and the link; empty for nodes outside the plane.
    pub links: Vec<Vec<(u32, LinkSpec)>>,
    /// Whether all links between switches have one rate and one delay.
    pub alike: bool,
}

/// Where a port leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Host,
    /// A switch of a higher tier, of the same, of a lower one.
    Up,
    Level,
    Down,
}

/// What is at the other end of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    pub node: u32,
    /// The port there.
    pub port: u32,
    pub side: Side,
}
