//! Proportional rate reduction: what may be sent while fast recovery brings the window down to the threshold.
//!
//! ```text
//! pipe > ssthresh    sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out
//! else (SSRB)        sndcnt = min(ssthresh - pipe, max(prr_delivered - prr_out, delivered) + MSS)
//! else (CRB)         sndcnt = min(ssthresh - pipe, prr_delivered - prr_out)
//! cwnd = pipe + sndcnt
//! ```
//!
//! In ns-3.35 SSRB holds only when something that was sent again is acknowledged; otherwise sndcnt = min(ssthresh - pipe, delivered).
//!
//! Source: Mathis, Dukkipati, Cheng, RFC 6937 §3; Mathis, Cardwell, Cheng, Dukkipati, RFC 9937 (which of the two bounds
//! holds follows from the acknowledgement). The first segment is sent again whatever the formula says (§3, note).

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

    /// The window after an acknowledgement. `wraps`: the product of two byte counts is taken modulo 2^32, so that windows
    /// above some 64 KB are held back until the pipe is at the threshold (ns-3.35).
    pub fn window(&mut self, step: &Step, mss: u64, wraps: bool) -> u64 {
        let Step { delivered, pipe, ssthresh, bound } = *step;
        self.delivered += delivered;
        let may_send = if pipe > ssthresh {
            let product = u128::from(self.delivered) * u128::from(ssthresh);
            let product = if wraps { u128::from(product as u32) } else { product };
            (product.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.out)
        } else {
            let arrived = self.delivered.saturating_sub(self.out);
            let limit = match bound {
                Bound::Delivered => delivered,
                Bound::Conservative => arrived,
                // A negative difference is a large number in 32 bits, and negative again with the segment added.
                Bound::SlowStart if wraps && self.out > self.delivered => {
                    mss.saturating_sub(self.out - self.delivered)
                }
                Bound::SlowStart => arrived.max(delivered) + mss,
            };
            limit.min(ssthresh - pipe)
        };
        let least = if self.out == 0 { mss } else { 0 };
        pipe + may_send.max(least)
    }
}

/// What an acknowledgement finds.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Bytes that it shows to have arrived.
    pub delivered: u64,
    pub pipe: u64,
    pub ssthresh: u64,
    pub bound: Bound,
}

/// What may be sent below the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// SSRB: a segment more than was delivered.
    SlowStart,
    /// CRB: what was delivered and not sent yet.
    Conservative,
    /// What this acknowledgement shows to be delivered.
    Delivered,
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
            let cwnd = prr.window(
                &Step { delivered, pipe, ssthresh: 10_000, bound: Bound::SlowStart },
                1_000,
                false,
            );
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
        let window = |bound| {
            let mut prr = Prr::new(20_000);
            let step = Step { delivered: 1_000, pipe: 4_000, ssthresh: 10_000, bound };
            prr.window(&step, 1_000, false);
            prr.sent(1_000);
            prr.window(&step, 1_000, false)
        };
        assert_eq!((window(Bound::SlowStart), window(Bound::Conservative)), (6_000, 5_000));
    }

    #[test]
    fn in_32_bits_a_large_window_sends_a_few_segments_and_then_waits_for_the_threshold() {
        // 543 segments of 1440 B in flight, threshold half: 1440 k * 390 960 passes 2^32 at k = 7.6, worth 3.8 segments.
        let mut prr = Prr::new(543 * 1440);
        let mut pipe = 543 * 1440;
        let mut sent = 0;
        for _ in 0..100 {
            let step = Step { delivered: 1440, pipe, ssthresh: 543 * 720, bound: Bound::Delivered };
            let count = (prr.window(&step, 1440, true) - pipe) / 1440;
            prr.sent(count * 1440);
            sent += count;
            pipe -= 2 * 1440;
        }
        assert_eq!(sent, 3);
    }
}
