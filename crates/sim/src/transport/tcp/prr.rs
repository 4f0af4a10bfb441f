//! Proportional rate reduction: what may be sent while fast recovery brings the window down to the threshold.
//!
//! ```text
//! pipe > ssthresh    sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out
//! else (SSRB)        sndcnt = min(ssthresh - pipe, max(prr_delivered - prr_out, delivered) + MSS)
//! else (CRB)         sndcnt = min(ssthresh - pipe, prr_delivered - prr_out)
//! else (RFC 9937)    sndcnt = min(ssthresh - pipe, max(prr_delivered - prr_out, delivered))
//! cwnd = pipe + sndcnt
//! ```
//!
//! The NIC pulls segments, so an acknowledgement may come while what the one before it let leave still waits
//! for the NIC. These bytes count as out, as they would in a sender that hands its segments down at once, and
//! may still leave.
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
        let Step { delivered, waiting, pipe, ssthresh, bound } = *step;
        self.delivered += delivered;
        let out = self.out + waiting;
        let may_send = if pipe > ssthresh {
            let product = u128::from(self.delivered) * u128::from(ssthresh);
            let product = if wraps { u128::from(product as u32) } else { product };
            (product.div_ceil(u128::from(self.flight)) as u64).saturating_sub(out) + waiting
        } else {
            let arrived = self.delivered.saturating_sub(out);
            let limit = match bound {
                Bound::Delivered => delivered,
                Bound::Conservative => arrived,
                Bound::AtLeastDelivered => arrived.max(delivered),
                // A negative difference is a large number in 32 bits, and negative again with the segment added.
                Bound::SlowStart if wraps && out > self.delivered => mss.saturating_sub(out - self.delivered),
                Bound::SlowStart => arrived.max(delivered) + mss,
            };
            (limit + waiting).min(ssthresh - pipe)
        };
        let min = if self.out == 0 { mss } else { 0 };
        pipe + may_send.max(min)
    }
}

/// What an acknowledgement finds.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Bytes that it shows to have arrived.
    pub delivered: u64,
    /// Bytes that an earlier one let leave, and that the NIC has not taken yet.
    pub waiting: u64,
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
    /// The same, and at least what this acknowledgement shows to be delivered.
    AtLeastDelivered,
    /// What this acknowledgement shows to be delivered.
    Delivered,
}

#[cfg(test)]
mod tests;
