//! Detects a full pipe in start-up: three rounds in which the bandwidth grew by less than a quarter.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00 §4.3.2.

const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;

#[derive(Default)]
pub struct FullPipe {
    filled: bool,
    /// The bandwidth to which growth is relative, in bit/s.
    bandwidth: u64,
    /// Rounds without that growth.
    rounds: u32,
}

impl FullPipe {
    pub fn filled(&self) -> bool {
        self.filled
    }

    /// Called at the start of a round that was not limited by the application.
    pub fn round(&mut self, bandwidth: u64) {
        if self.filled {
            return;
        }
        if bandwidth as f64 >= self.bandwidth as f64 * GROWTH {
            (self.bandwidth, self.rounds) = (bandwidth, 0);
            return;
        }
        self.rounds += 1;
        self.filled = self.rounds >= ROUNDS;
    }

    /// Restarts the measurement of growth.
    pub fn forget(&mut self) {
        self.bandwidth = 0;
    }
}
