//! What every node may know of the network: its routes and its links. Partitions share one map; it changes
//! between their windows, when links change or routes follow.

use super::port::Line;
use crate::balance::Wiring;
use crate::topology::{Routes, Row};
use crate::units::{Rate, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Routes and links, ports numbered through the whole network.
#[derive(Clone)]
pub struct Map {
    pub routes: Routes,
    /// The first map, before routes followed any failure; none: this one is as good.
    pub intact: Option<Arc<Map>>,
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
    /// The routes of the network without failures.
    pub fn intact_routes(&self) -> &Routes {
        self.intact.as_ref().map_or(&self.routes, |map| &map.routes)
    }

    /// The way out of a node by its port `local`.
    pub fn side(&self, node: u32, local: u32) -> &Side {
        &self.sides[(self.first_port[node as usize] + local) as usize]
    }

    /// The table of next hops of the node at the far end of a port.
    #[inline(never)]
    pub fn row_of_peer(&self, node: u32, local: u32) -> Row {
        self.routes.row(self.side(node, local).peer_node)
    }

    /// The same of a host, and of the node behind its first port, if it has one.
    pub fn rows_of_host(&self, node: u32) -> [Row; 2] {
        let row = self.routes.row(node);
        let has_port = self.first_port[node as usize] < self.first_port[node as usize + 1];
        [row, if has_port { self.row_of_peer(node, 0) } else { row }]
    }

    /// Switches on a shortest path from the node of a host to a host; 0 if there is no path.
    pub fn switches_between(&self, from: u32, dst: u32) -> u32 {
        let (mut node, goal) = (from, self.routes.host_node(dst));
        // While routes follow a failure, no path is longer than all nodes in a row.
        for links in 0..self.first_port.len() as u32 {
            if node == goal {
                return links.saturating_sub(1);
            }
            let Some(&local) = self.routes.next_hops(node, dst).first() else { return 0 };
            node = self.side(node, local).peer_node;
        }
        0
    }

    /// The longest base RTT of the shortest paths from the node of a host to a host: all delays twice, and the
    /// time to send this number of bytes on each link in one direction. None if there is no path.
    pub fn base_rtt_between(&self, from: u32, dst: u32, bytes: u64) -> Option<Time> {
        let goal = self.routes.host_node(dst);
        let (mut reached, mut longest) = (BTreeMap::from([(from, Time::ZERO)]), None);
        // While routes follow a failure, no path is longer than all nodes in a row.
        for _ in 0..self.first_port.len() {
            let mut next: BTreeMap<u32, Time> = BTreeMap::new();
            for (node, so_far) in reached {
                if node == goal {
                    longest = longest.max(Some(so_far));
                    continue;
                }
                for &local in self.routes.next_hops(node, dst) {
                    let side = self.side(node, local);
                    let line = &side.line;
                    let here = line.delay.saturating_add(line.delay);
                    let here = here.saturating_add(line.rate.transmission_time(bytes));
                    let all = next.entry(side.peer_node).or_default();
                    *all = so_far.saturating_add(here).max(*all);
                }
            }
            reached = next;
            if reached.is_empty() {
                break;
            }
        }
        longest
    }

    /// How many ways the switches between the node of a host and another host can choose: the product of
    /// their next hops, along the first of each.
    pub fn paths_between(&self, from: u32, dst: u32) -> u32 {
        let (mut node, goal, mut paths) = (from, self.routes.host_node(dst), 1u32);
        for _ in 0..self.first_port.len() {
            let Some(&local) = self.routes.next_hops(node, dst).first() else { break };
            node = self.side(node, local).peer_node;
            if node == goal {
                break;
            }
            paths = paths.saturating_mul(self.routes.next_hops(node, dst).len() as u32);
        }
        paths
    }

    pub fn set_rate(&mut self, port: u32, rate: Rate) {
        self.sides[port as usize].line.set_rate(rate);
    }
}

impl Wiring for Map {
    fn routes(&self) -> &Routes {
        &self.routes
    }
    fn version(&self) -> u32 {
        self.version
    }
    fn peer(&self, node: u32, port: u32) -> u32 {
        self.side(node, port).peer_node
    }
}
