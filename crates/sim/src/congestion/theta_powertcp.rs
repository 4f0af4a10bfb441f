//! theta-PowerTCP: PowerTCP without telemetry, from round-trip times alone.
//!
//! With theta the round-trip time, theta' its change over the time between two acknowledgements, T the base RTT:
//!
//! ```text
//! U     = (theta' + 1) theta / T                   power over that of a full link without queue
//! u     = (u (T - dt) + U dt) / T                  dt = time since the acknowledgement before, at most T
//! R     = gamma (R_ref / u + additive) + (1 - gamma) R,  R_ref = R      both once per RTT
//! W     = R T
//! ```
//!
//! Source: Addanki, Michel, Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022,
//! Alg. 2; the released code, inet-tub/ns3-datacenter at 6ddb4a4.
//! Differs from the source: T is the minimum of the network's base RTT, headers and the acknowledgement included,
//! and the RTTs that the flow has seen, and the additive part is 150 Mb/s, as in the released code. `law =
//! "released"` repeats what the code does beyond the paper: a power that is over 1.05 T, theta' + 1 at least 0.5,
//! gamma 0.7, a new rate with every acknowledgement relative to that of a round trip ago, INT on the wire that is
//! not used, and a first acknowledgement that is compared with time 0.
//! The RTT of a short packet is shorter, however long the queues are: where flows follow each other over a queue pair that
//! stays open, the published law takes in the RTTs of its longest packets only.
//! Parameters: see [`ThetaPowerTcpParameters::read`].

use super::powertcp::{
    ADDITIVE, ADDITIVE_PER, POWER, REFERENCE, Step, additive, average, derived, law, min_rate, step,
};
use super::rates::{LeastRate, RateRange, SmallStep, is_large_step, window};
use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, SchemeDoc, Window,
};
use crate::compat::Rules;
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

pub const DOC: SchemeDoc = SchemeDoc {
    name: "theta-powertcp",
    title: "theta-PowerTCP: rate and window from power, by round-trip times alone",
    text: "The variant of PowerTCP for switches without INT. The round-trip time stands for the bytes that wait and travel, \
           its change for the rate at which they come. Long paths that share one bottleneck with short ones see other \
           gradients than their share, so it is less precise.",
    source: "Addanki, Michel, Schmid, PowerTCP: Pushing the Performance Limits of Datacenter Networks, NSDI 2022, Alg. 2; \
             the released code, inet-tub/ns3-datacenter at 6ddb4a4",
    equations: "U = (theta' + 1) theta / T\n\
                u = (u (T - dt) + U dt) / T\n\
                R = gamma (R_ref / u + additive) + (1 - gamma) R; R_ref = R once per RTT; W = R T",
    validation: "With like = \"powertcp-ns3\", completion times equal those of the authors' simulator with its unset memory \
                 cleared to the nanosecond, on lone flows, a 16-to-1 incast, four flows that join a bottleneck and web \
                 search on a 32-host pod (tests/rivals.rs). Each step of both laws is checked by hand.",
    series: &[
        POWER,
        REFERENCE,
        Series::new("least_rtt_ns", "ns", "T: the minimum of the base RTT and the flow's RTTs."),
    ],
    ..SchemeDoc::NONE
};

/// Parameters of theta-PowerTCP.
#[derive(Debug, Clone, PartialEq)]
pub struct ThetaPowerTcpParameters {
    /// Weight of the newest rate; none: as published for the law.
    pub gamma: f64,
    /// Additive increase per update; none: in proportion to the line rate.
    pub additive: Option<Rate>,
    pub min_rate: LeastRate,
    pub window: Window,
    /// The law is that of the released code; none: as the rules of the run say.
    pub released: Option<bool>,
}

impl ControllerParameters for ThetaPowerTcpParameters {
    type State = ThetaPowerTcp;
    const DOC: SchemeDoc = DOC;

    fn read(p: &mut Parameters) -> ThetaPowerTcpParameters {
        let help = "Weight of the newest rate (released code: 0.7; PowerTCP: 0.9).";
        ThetaPowerTcpParameters {
            gamma: p.number("gamma", 0.7, (0.01, 1.0), help),
            additive: additive(p),
            min_rate: min_rate(p),
            window: window(p, true),
            released: law(p),
        }
    }

    fn follow(&mut self, rules: &Rules) {
        self.released = self.released.or(Some(rules.released_laws));
    }

    fn needs(&self) -> Needs {
        let released = self.released == Some(true);
        Needs { delay: true, int: released, timestamp: !released, ..Needs::window(self.window) }
    }

    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
        derived(self.additive, self.min_rate, line_rate)
    }

    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        // A queue of one packet holds the rate at this part over the packet's share of T, which leaves fast
        // links mostly empty. The power from INT falls below 1 on a link that is not full, and the rate rises
        // by it.
        let auto = step(None, line_rate);
        let far =
            self.additive == Some(ADDITIVE) && (line_rate > ADDITIVE_PER || is_large_step(ADDITIVE, auto));
        let additive = far.then_some(("additive", ADDITIVE, auto));
        additive.into_iter().chain(self.min_rate.published(line_rate)).collect()
    }

    fn unfit_at(&self, line_rate: Rate, packet: u64, base_rtt: Time) -> Option<String> {
        if self.released == Some(true) {
            return None;
        }
        let additive = step(self.additive, line_rate);
        let small = SmallStep::below(MIN_STEP, FULL_STEP, additive, packet, base_rtt)?;
        Some(format!(
            "transport.controller.additive = {additive}: in a base RTT of {base_rtt} it adds {:.1} % of a full packet ({packet} B) to what a \
             flow has in flight, and a queue of one packet takes more: a few flows leave up to 60 % of their link empty. Set additive \
             to about {}, a smaller transport.mtu, or law = \"released\"",
            100.0 * small.share,
            small.wanted
        ))
    }

    fn start(&self, flow: &FlowContext, _int_hops: usize) -> ThetaPowerTcp {
        let released = self.released.unwrap_or(false);
        let base_rtt_ns = if released { flow.base_rtt } else { flow.round_trip }.ns().max(1);
        let range = RateRange::new(self.min_rate.at(flow.line_rate), flow.line_rate);
        ThetaPowerTcp {
            step: Step {
                gamma: self.gamma,
                additive: step(self.additive, flow.line_rate).0,
                range,
                released,
            },
            margin: if released { RELEASED_MARGIN } else { 1.0 },
            min_change: if released { RELEASED_MIN_CHANGE } else { 0.0 },
            window: self.window,
            configured_rtt_ns: base_rtt_ns,
            base_rtt_ns,
            longest: 0,
            u: 1.0,
            reference: range.max,
            last_update_seq: 0,
            last: released.then_some((0, Time::ZERO)),
        }
    }
}

/// Of a full packet, what the additive part must add in a base RTT at least so that few flows fill most of their
/// link (at 0.07 four fill two thirds), and what lets them fill nine tenths (measured: docs/schemes/powertcp.md).
const MIN_STEP: f64 = 0.05;
const FULL_STEP: f64 = 0.14;
/// The released code takes an RTT of this multiple of T for a full link without queue.
const RELEASED_MARGIN: f64 = 1.05;
/// The lowest theta' + 1 that the released code counts.
const RELEASED_MIN_CHANGE: f64 = 0.5;

/// State of one flow.
pub struct ThetaPowerTcp {
    step: Step,
    /// RTT at which the rate stays, over T.
    margin: f64,
    /// The lowest theta' + 1 that counts.
    min_change: f64,
    window: Window,
    /// T of the network in whole ns.
    configured_rtt_ns: u64,
    /// T in whole ns: the minimum of that and of the RTTs that the flow has seen.
    base_rtt_ns: u64,
    /// Payload bytes of the longest packet that was acknowledged.
    longest: u32,
    /// Moving average of power over T, relative to that of a full link without queue.
    u: f64,
    /// The rate of one round trip ago, in bit/s.
    reference: u64,
    /// An ACK beyond this byte begins a round trip.
    last_update_seq: u64,
    /// RTT in ns and time of the acknowledgement before.
    last: Option<(u64, Time)>,
}

impl CongestionController for ThetaPowerTcp {
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        if !self.step.released && !self.compares(ack.payload) {
            return;
        }
        let rtt_ns = ack.rtt.ns().max(1);
        self.base_rtt_ns = self.base_rtt_ns.min(rtt_ns);
        let full = ack.acknowledged > self.last_update_seq;
        let last = self.last.replace((rtt_ns, ack.now));
        let measured = last.is_some_and(|before| self.measure(rtt_ns, ack.now, before));
        if measured && (full || self.step.released) {
            let rate = self.step.rate(self.u, self.reference, control.rate.0);
            control.rate = Rate(rate);
            control.repace = true;
            if full {
                self.reference = rate;
            }
            if self.window == Window::FollowsRate {
                let bits = u128::from(rate) * u128::from(self.base_rtt_ns) / 1_000_000_000;
                control.cwnd = Some((bits / 8) as u64);
            }
        }
        if full {
            self.last_update_seq = self.last_update_seq.max(ack.next_byte);
        }
    }

    fn internals(&self, _now: Time, out: &mut Vec<(&'static str, f64)>) {
        out.push(("power", self.u));
        out.push(("r_ref_bps", self.reference as f64));
        out.push(("least_rtt_ns", self.base_rtt_ns as f64));
    }
}

impl ThetaPowerTcp {
    /// Whether the RTT of a packet of this length can be compared with those before; a longer one begins anew.
    fn compares(&mut self, payload: u32) -> bool {
        if payload > self.longest {
            self.longest = payload;
            self.base_rtt_ns = self.configured_rtt_ns;
            self.last = None;
        }
        payload == self.longest
    }

    /// Takes in an RTT at `now`, after the one `before`; whether time has passed between them.
    fn measure(&mut self, rtt_ns: u64, now: Time, before: (u64, Time)) -> bool {
        let dt = (now - before.1).ns();
        if dt == 0 {
            return false;
        }
        let change = (rtt_ns as f64 - before.0 as f64) / dt as f64 + 1.0;
        let power = change.max(self.min_change) * rtt_ns as f64 / (self.margin * self.base_rtt_ns as f64);
        self.u = average(self.u, power, dt, self.base_rtt_ns);
        true
    }
}

#[cfg(test)]
mod tests;
