//! Deadlocks by PFC at the end of a run: paused ports that wait for each other in a circle.
//!
//! A port that is paused waits until packets that came from it have left the switch at its other end. It waits for good
//! if each of them is queued at a port that waits for good, too.

use super::Simulation;
use super::region::Region;
use crate::measure::Deadlock;
use crate::units::Time;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Packets of a class in a switch: the port that they came by, whose sender has been paused, and the one that they are
/// queued at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Queued {
    pub node: u32,
    pub class: u8,
    pub came_by: u16,
    pub at: u16,
}

impl Simulation {
    /// The ports that wait for each other, if some do.
    pub(super) fn deadlock(&self, queued: &FxHashSet<Queued>) -> Option<Deadlock> {
        let number = |node: u32, local: u16| self.map.first_port[node as usize] + u32::from(local);
        let mut waits: BTreeMap<(u32, u8), Vec<u32>> = BTreeMap::new();
        for &Queued { node, class, came_by, at } in queued {
            let sender = self.map.sides[number(node, came_by) as usize].peer;
            if self.held_since(sender, class).is_some() {
                waits.entry((sender, class)).or_default().push(number(node, at));
            }
        }
        loop {
            let waiting: FxHashSet<(u32, u8)> = waits.keys().copied().collect();
            waits.retain(|&(_, class), at| at.iter().all(|&port| waiting.contains(&(port, class))));
            if waits.len() == waiting.len() {
                break;
            }
        }
        let (&(first, class), _) = waits.first_key_value()?;
        let (mut path, mut next) = (Vec::new(), first);
        let start = loop {
            if let Some(start) = path.iter().position(|&port| port == next) {
                break start;
            }
            path.push(next);
            next = *waits.get(&(next, class))?.iter().min()?;
        };
        let circle = &path[start..];
        let ports: FxHashSet<u32> = waits.keys().map(|&(port, _)| port).collect();
        Some(Deadlock {
            since: circle.iter().filter_map(|&port| self.held_since(port, class)).max()?,
            circle: circle.iter().map(|&port| self.node_and_local(port)).collect(),
            ports: ports.len() as u32,
        })
    }

    fn node_and_local(&self, port: u32) -> (u32, u32) {
        let node = self.map.sides[port as usize].node;
        (node, port - self.map.first_port[node as usize])
    }

    /// Since when a port has been paused, if a class is and nothing leaves the port any more.
    fn held_since(&self, port: u32, class: u8) -> Option<Time> {
        let (node, local) = self.node_and_local(port);
        let (region, id) = self.places.of_port(node, local);
        let net = &self.regions[region].net;
        let port = &net.ports[id as usize];
        let held = port.paused & 1 << class != 0 && port.busy_until <= self.now;
        held.then(|| net.totals[id as usize].paused_since)
    }
}

impl Region {
    /// The node of a switch, if it has paused the sender at the other end of this port for this class.
    pub(super) fn pauses(&self, switch: u32, came_by: u16, class: u8) -> Option<u32> {
        let switch = &self.switches[switch as usize];
        switch.buffer.has_paused(came_by, class).then_some(switch.node)
    }
}
