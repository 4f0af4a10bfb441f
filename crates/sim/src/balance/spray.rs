//! Packet spraying: every packet takes a random one of the shortest paths, from the switch's own stream.

use super::{LoadBalancer, Ports};
use crate::engine::random::RandomStream;
use crate::packet::Packet;

pub struct Spray {
    random: RandomStream,
}

impl Spray {
    pub fn new(seed: u64, switch: &str) -> Spray {
        Spray { random: RandomStream::new(seed, &format!("switch.{switch}.spray")) }
    }
}

impl LoadBalancer for Spray {
    fn choose(&mut self, _packet: &Packet, candidates: &[u32], _ports: &impl Ports) -> usize {
        self.random.below(candidates.len() as u64) as usize
    }
}
