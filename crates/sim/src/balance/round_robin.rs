//! Spraying in turn: at every switch the packets to one host take the shortest paths one after the other.
//!
//! Where switches of two tiers do so, the second takes its ports half as fast as the first: the paths of a tree come in the
//! order of their digits reversed, so that consecutive packets meet as few common links as can be (digit-reversal bouncing).
//!
//! Source: Cao et al., "Per-packet load-balanced, low-latency routing for Clos-based data center networks" (DRB), CoNEXT 2013.
//! Differs from the source: switches count, not the hosts that send, so the packets of several senders to one host share the
//! turns. Each count begins at a random port.

use crate::engine::random::mix64;

pub struct RoundRobin {
    salt: u64,
    /// By host: whose turn it is, [`UNUSED`] before the first.
    turns: Vec<u32>,
}

const UNUSED: u32 = u32::MAX;

impl RoundRobin {
    pub fn new(seed: u64, node: u32) -> RoundRobin {
        RoundRobin { salt: mix64(seed ^ mix64(u64::from(node) + 1)), turns: Vec::new() }
    }

    /// Which of `count` paths the next packet to a host takes.
    #[inline(never)]
    pub fn choose(&mut self, dst: u32, count: usize) -> usize {
        let dst = dst as usize;
        if dst >= self.turns.len() {
            self.turns.resize(dst + 1, UNUSED);
        }
        let turn = match self.turns[dst] {
            UNUSED => (mix64(self.salt ^ dst as u64) >> 33) as u32,
            turn => turn,
        };
        let at = turn as usize % count;
        self.turns[dst] = ((at + 1) % count) as u32;
        at
    }
}

#[cfg(test)]
mod tests;
