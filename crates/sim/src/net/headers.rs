//! What packets carry for load balancers between their first and their last switch, for measures of their way, or of waits in hosts, one word each:
//! beside the packets, by their index, so that others do not pay for it.

use crate::packet::PacketId;

/// The words; empty where none is written. A place in which no packet of this region lies has 0.
#[derive(Default)]
pub struct Headers(Vec<u64>);

impl Headers {
    /// The word of a packet; 0 where none was written.
    pub fn get(&self, id: PacketId) -> u64 {
        self.0.get(id as usize).copied().unwrap_or(0)
    }

    pub fn set(&mut self, id: PacketId, word: u64) {
        if id as usize >= self.0.len() {
            self.0.resize(id as usize + 1, 0);
        }
        self.0[id as usize] = word;
    }

    /// The packet leaves this place.
    pub fn clear(&mut self, id: PacketId) {
        if let Some(word) = self.0.get_mut(id as usize) {
            *word = 0;
        }
    }

    /// None was ever written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
