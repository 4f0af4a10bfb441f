//! DCTCP as a rate: the share of marked packets sets the size of the cut.
//!
//! ```text
//! F     = marked / acknowledged, per window          alpha = (1 - g) alpha + g F
//! rate  = rate (1 - alpha / 2)     at a mark, once per window (CWR)
//! rate  = rate + R_AI              per window outside CWR
//! ```
//!
//! States: open; CWR (reduced) from a cut until an ACK passes the byte that was next at the cut.
//!
//! Source: Alizadeh et al., "Data Center TCP", SIGCOMM 2010, Eq. 1 and 2; as the rate-based sender of the
//! HPCC authors' simulator, which starts at line rate and has no slow start.
//! Differs from the source: rate instead of window (the window follows the rate); alpha starts at 1; batches
//! count the packets that were in flight, not those acknowledged.
//! Parameters: see [`DctcpParameters::read`].

use super::rates::{LeastRate, RateRange, in_proportion, times, window};
use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, SchemeDoc, Window,
};
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

pub const DOC: SchemeDoc = SchemeDoc {
    name: "dctcp",
    title: "DCTCP: cuts in proportion to the share of ECN marks",
    text: "Switches mark above one queue threshold. The sender keeps a moving average alpha of the share of marked \
           packets per window and, once per window with a mark, cuts its rate by alpha/2; without marks it adds one \
           packet per RTT. This is the rate-based form of the HPCC authors' simulator, with a window that follows.",
    source: "Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010; the HPCC authors' simulator",
    equations: "alpha = (1 - g) alpha + g F\n\
                rate = rate (1 - alpha/2) at a mark, once per window\n\
                rate = rate + R_AI per window otherwise",
    validation: "Completion times equal those of the HPCC authors' simulator to the nanosecond on lone flows, a 16-to-1 \
                 incast, four flows that join a bottleneck, web search on a 32-host pod, and the incast with PFC acting \
                 (tests/reference.rs).",
    series: &[Series::new(
        "alpha",
        "",
        "Moving average of the share of packets that came with a mark, under RDMA.",
    )],
    ..SchemeDoc::NONE
};

/// Published step: a packet of 1 000 B per 13 us at 100 Gb/s.
const RAI: Rate = Rate::from_mbps(615);
const RAI_PER: Rate = Rate::from_gbps(100);

/// Parameters of DCTCP.
#[derive(Debug, Clone, PartialEq)]
pub struct DctcpParameters {
    /// Weight of a new sample in alpha.
    pub g: f64,
    /// Additive increase per window; none: in proportion to the line rate.
    pub rai: Option<Rate>,
    pub min_rate: LeastRate,
    pub window: Window,
}

impl ControllerParameters for DctcpParameters {
    type State = Dctcp;
    const DOC: SchemeDoc = DOC;
    const MARKS_AT_STEP: bool = true;
    const QUEUE_AT_MARKS: Option<f64> = Some(super::window::dctcp::QUEUE_AT_MARKS);
    /// Measured: `fat320-dctcp`, `p8` and `w8-0.5` (benches/).
    const NS_PER_HOP: f64 = 52.0;

    fn read(p: &mut Parameters) -> DctcpParameters {
        DctcpParameters {
            g: p.number("g", 1.0 / 16.0, (0.0, 1.0), "Weight of a new sample in alpha (DCTCP paper: 1/16)."),
            rai: p.rate_or_auto(
                "rai",
                "Increase per window; auto: 615 Mb/s per 100 Gb/s of line rate (1 packet per 13 us).",
            ),
            min_rate: LeastRate::of_hpcc(p),
            window: window(p, true),
        }
    }

    fn needs(&self) -> Needs {
        Needs { marks: true, ..Needs::window(self.window) }
    }

    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
        self.min_rate.derived(line_rate).into_iter().collect()
    }

    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        self.min_rate.published(line_rate).into_iter().collect()
    }

    fn start(&self, flow: &FlowContext, _int_hops: usize) -> Dctcp {
        Dctcp {
            g: self.g,
            rai: self.rai.map_or_else(|| in_proportion(RAI, RAI_PER, flow.line_rate), |rate| rate.0),
            range: RateRange::new(self.min_rate.at(flow.line_rate), flow.line_rate),
            mtu: u64::from(flow.mtu.max(1)),
            alpha: 1.0,
            marked: 0,
            batch: 0,
            last_update_seq: 0,
            cwr_until: None,
        }
    }
}

/// State of one flow.
pub struct Dctcp {
    g: f64,
    rai: u64,
    range: RateRange,
    mtu: u64,
    /// Moving average of the share of marked packets; changes once per window.
    alpha: f64,
    /// Marked ACKs since alpha changed.
    marked: u64,
    /// Packets that were in flight when alpha changed.
    batch: u64,
    /// An ACK beyond this byte ends the window; 0 until the first ACK.
    last_update_seq: u64,
    /// In CWR until an ACK passes this byte.
    cwr_until: Option<u64>,
}

impl CongestionController for Dctcp {
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        self.marked += u64::from(ack.marked);
        let new_window = ack.acknowledged > self.last_update_seq;
        if new_window {
            self.end_window(ack);
        }
        if self.cwr_until.is_some_and(|byte| ack.acknowledged > byte) {
            self.cwr_until = None;
        }
        // The cut comes before the increase: an ACK that cuts does not also add.
        if ack.marked && self.cwr_until.is_none() {
            control.rate = Rate(self.range.clamp(times(control.rate.0, 1.0 - self.alpha / 2.0)));
            self.cwr_until = Some(ack.next_byte);
        }
        if new_window && self.cwr_until.is_none() {
            control.rate = Rate(control.rate.0.saturating_add(self.rai).min(self.range.max));
        }
    }

    fn internals(&self, _now: Time, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
    }
}

impl Dctcp {
    /// Alpha includes the share of marks (Eq. 1), except at the first ACK, whose batch is only beginning.
    fn end_window(&mut self, ack: &Ack) {
        if self.last_update_seq == 0 {
            self.batch = ack.next_byte / self.mtu + 1;
        } else {
            let share = (self.marked as f64 / self.batch as f64).min(1.0);
            self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
            self.marked = 0;
            self.batch = ack.next_byte.saturating_sub(ack.acknowledged) / self.mtu + 1;
        }
        self.last_update_seq = ack.next_byte;
    }
}

#[cfg(test)]
mod tests;
