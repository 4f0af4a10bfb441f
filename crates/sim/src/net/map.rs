//! What every node may know of the network: its routes and its links. Partitions share one map; it changes between their
//! windows, when links change or routes follow.

use super::port::Line;
use crate::topology::Routes;
use crate::units::Rate;

/// Routes and links, ports numbered through the whole network.
#[derive(Clone)]
pub struct Map {
    pub routes: Routes,
    /// Another one for other routes.
    pub version: u32,
    /// Of each node, the number of its first port; one more at the end.
    pub first_port: Vec<u32>,
    pub sides: Vec<Side>,
}

/// One end of a link.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    pub node: u32,
    /// The other end and its node.
    pub peer: u32,
    pub peer_node: u32,
    /// The way from here to there.
    pub line: Line,
}

impl Map {
    /// The way out of a node by its port `local`.
    pub fn side(&self, node: u32, local: u32) -> &Side {
        &self.sides[(self.first_port[node as usize] + local) as usize]
    }

    /// The way back.
    pub fn opposite(&self, side: &Side) -> &Side {
        &self.sides[side.peer as usize]
    }

    pub fn set_rate(&mut self, port: u32, rate: Rate) {
        self.sides[port as usize].line.set_rate(rate);
    }
}
