//! A switch and ports that stand still, for the tests of single balancers.

use super::{Fabric, Place, Ports};
use crate::units::{Rate, Time};
use std::sync::Arc;

/// A switch next to hosts that knows no neighbours.
pub fn place(fabric: &Arc<Fabric>) -> Place<'_> {
    Place {
        seed: 1,
        node: 0,
        name: "s",
        tier: 1,
        tor: None,
        neighbours: &[],
        fabric,
        subflows: false,
        murmur: false,
    }
}

/// What a balancer is shown; what is not said is zero, or 100 Gb/s.
#[derive(Default)]
pub struct Still {
    pub now: Time,
    pub backlogs: Vec<u64>,
    pub rates: Vec<Rate>,
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
}
