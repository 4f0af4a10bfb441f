//! Proportional rate reduction: what may be sent while fast recovery brings the window down to the threshold.
//!
//! ```text
//! pipe > ssthresh    sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out
//! else (SSRB)        sndcnt = min(ssthresh - pipe, max(prr_delivered - prr_out, delivered) + MSS)
//! else (CRB)         sndcnt = min(ssthresh - pipe, prr_delivered - prr_out)
//! cwnd = pipe + sndcnt
//! ```
//!
//! Source: Mathis, Dukkipati, Cheng, RFC 6937 §3. The first segment is sent again whatever the formula says (§3, note).

/// State of one recovery, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prr {
    delivered: u64,
    out: u64,
    /// In flight when recovery began.
    flight: u64,
}

impl Prr {
    pub fn new(flight: u64) -> Prr {
        Prr { delivered: 0, out: 0, flight: flight.max(1) }
    }

    pub fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// The window after an acknowledgement that shows `delivered` bytes to have arrived.
    pub fn window(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64, slow_start: bool) -> u64 {
        self.delivered += delivered;
        let may_send = if pipe > ssthresh {
            let whole = u128::from(self.delivered) * u128::from(ssthresh);
            (whole.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.out)
        } else {
            let arrived = self.delivered.saturating_sub(self.out);
            let limit = if slow_start { arrived.max(delivered) + mss } else { arrived };
            limit.min(ssthresh - pipe)
        };
        let least = if self.out == 0 { mss } else { 0 };
        pipe + may_send.max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_falls_to_the_threshold_in_proportion_to_what_is_delivered() {
        // RFC 6937 §4, first example in spirit: 20 segments of 1000 B, the first is lost, ssthresh 10.
        let mut prr = Prr::new(20_000);
        let mut pipe = 16_000; // One lost, three arrived.
        let mut sent = Vec::new();
        for ack in 0..16 {
            let delivered = if ack == 0 { 3_000 } else { 1_000 };
            pipe -= if ack == 0 { 0 } else { 1_000 };
            let cwnd = prr.window(delivered, pipe, 10_000, 1_000, true);
            let count = (cwnd - pipe) / 1_000;
            prr.sent(count * 1_000);
            pipe += count * 1_000;
            sent.push(count);
        }
        // Three delivered are worth one and a half, then every second acknowledgement lets one out; one for one at the end.
        assert_eq!(sent, [1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!(pipe, 10_000);
    }

    #[test]
    fn below_the_threshold_slow_start_adds_a_segment_per_acknowledgement() {
        let window = |slow_start| {
            let mut prr = Prr::new(20_000);
            prr.window(1_000, 4_000, 10_000, 1_000, slow_start);
            prr.sent(1_000);
            prr.window(1_000, 4_000, 10_000, 1_000, slow_start)
        };
        assert_eq!((window(true), window(false)), (6_000, 5_000));
    }
}
