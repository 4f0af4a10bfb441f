//! A switch and ports that stand still, for the tests of single balancers.

use super::{Fabric, Held, Neighbour, Place, Ports, SwitchContext};
use crate::packet::Packet;
use crate::topology::NextHops;
use crate::units::{Rate, Time};
use std::sync::Arc;

/// A switch next to hosts that knows no neighbours.
pub fn place(fabric: &Arc<Fabric>) -> Place<'_> {
    Place {
        seed: 1,
        node: 0,
        name: "s",
        tier: 1,
        ways_below: 1,
        tor: None,
        neighbours: &[],
        fabric,
        largest_packet: 1048,
        subflows: false,
        murmur: false,
        only_data: false,
        released: false,
    }
}

/// What a balancer is shown; what is not said is zero, or 100 Gb/s.
#[derive(Default)]
pub struct Still {
    pub now: Time,
    pub backlogs: Vec<u64>,
    pub rates: Vec<Rate>,
    /// Probes that were sent, by port.
    pub sent: Vec<(u32, Packet)>,
    /// Packets that were released, in turn, and the times for which the timer was set.
    pub released: Vec<Held>,
    pub wakes: Vec<Time>,
    /// The ports of every node that lead to hosts.
    pub hops: Vec<u32>,
}

impl Ports for Still {
    fn now(&self) -> Time {
        self.now
    }
    fn backlog(&self, port: u32) -> u64 {
        self.backlogs.get(port as usize).copied().unwrap_or(0)
    }
    fn rate(&self, port: u32) -> Rate {
        self.rates.get(port as usize).copied().unwrap_or(Rate::from_gbps(100))
    }
    fn hops(&self, _node: u32, _host: u32) -> NextHops<'_> {
        if self.hops.is_empty() { NextHops::None } else { NextHops::Many(&self.hops) }
    }
}

/// All links are up, and all ports lead everywhere.
impl SwitchContext for Still {
    fn is_up(&self, _port: u32) -> bool {
        true
    }
    fn leads_to(&self, _port: u32, _host: u32) -> bool {
        true
    }
    fn leads_here(&self, _neighbour: &Neighbour, _host: u32) -> bool {
        true
    }
    fn send(&mut self, port: u32, probe: Packet) {
        self.sent.push((port, probe));
    }
    fn release(&mut self, packet: Held) {
        self.released.push(packet);
    }
    fn wake(&mut self, at: Time) {
        self.wakes.push(at);
    }
}
