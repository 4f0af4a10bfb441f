//! The time that frames take on a link whose port is a kernel's: length / rate each, one after the other.
//!
//! Linux's `tbf` gives a frame to its link at once while it has tokens, up to its burst. A link takes the
//! bits of a frame at its rate, so here a frame has ended at end_i = max(end_(i-1), given_i) + length / rate.
//! What tbf gives in any time t is at most burst + rate t, so this holds back the burst and never the rate.

use serde_json::Value;
use weftline_sim::units::{Rate, Time};

pub struct Transmitter {
    rate: Rate,
    /// How long the burst of the kernel's port takes.
    burst: Time,
    /// When the last frame has ended.
    free: Time,
}

impl Transmitter {
    /// Reads `rate_bps` and `burst_bytes` of a task; none without them: frames come at the rate of their
    /// link.
    pub fn read(task: &Value) -> Option<Transmitter> {
        let rate = Rate(task["rate_bps"].as_u64().filter(|&bps| bps > 0)?);
        let burst = rate.transmission_time(task["burst_bytes"].as_u64().unwrap_or(0));
        Some(Transmitter { rate, burst, free: Time::ZERO })
    }

    /// When the last bit of a frame has left that the kernel's port gave at this time.
    pub fn ends(&mut self, given: Time, bytes: usize) -> Time {
        // tbf rounds the time of a frame down: without this bound the delay of a full link would grow.
        let begins = self.free.clamp(given, given + self.burst);
        self.free = begins + self.rate.transmission_time(bytes as u64);
        self.free
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FRAME: usize = 1_500;

    /// 2 Mb/s: 6 ms for each of these frames.
    fn transmitter() -> Transmitter {
        Transmitter::read(&json!({"rate_bps": 2_000_000, "burst_bytes": 2 * FRAME})).unwrap()
    }

    fn ms(number: u64) -> Time {
        Time::from_ns(number * 1_000_000)
    }

    #[test]
    fn a_frame_after_a_pause_takes_its_length_over_the_rate() {
        let mut link = transmitter();
        assert_eq!(link.ends(ms(100), FRAME), ms(106));
        assert_eq!(link.ends(ms(200), FRAME / 3), ms(202));
    }

    #[test]
    fn frames_of_a_burst_end_one_after_the_other_and_the_rate_is_the_ports() {
        let mut link = transmitter();
        // As tbf gives them: two at once, then one for each time of a frame.
        for number in 0..1_000 {
            let given = ms(6 * u64::max(number, 1) - 6);
            assert_eq!(link.ends(given, FRAME), ms(6 * number + 6), "frame {number}");
        }
    }

    #[test]
    fn a_kernel_whose_clock_is_faster_is_not_held_back_more_than_its_burst() {
        let mut link = transmitter();
        for number in 0..1_000_000 {
            let given = Time::from_ns(number * 5_999_000);
            assert!(link.ends(given, FRAME) <= given + ms(18), "frame {number}");
        }
    }

    #[test]
    fn without_a_rate_there_is_none() {
        assert!(Transmitter::read(&json!({"delay_ns": 5})).is_none());
    }
}
