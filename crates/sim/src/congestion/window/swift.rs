//! Swift: additive increase and multiplicative decrease around a target of the end-to-end delay.
//!
//! Per acknowledgement, with `delay` the part of the round trip that hosts did not take, the window w of the
//! fabric in packets:
//!
//! ```text
//! target   = base + hops per_hop + clamp(alpha / sqrt(w) + beta', 0, range)
//! alpha    = range / (1 / sqrt(fs_min) - 1 / sqrt(fs_max)),  beta' = -alpha / sqrt(fs_max)
//! delay < target    w += ai acked / w  (w >= 1),  w += ai acked  (w < 1)
//! else              w = w max(1 - beta (delay - target) / delay, 1 - max_mdf), once per RTT
//! loss, timeout     w = w (1 - max_mdf), once per RTT; after `resets` timeouts in a row w = least_window
//! hosts             a window of their own by the same law, with what they took of the round trip as its delay, smoothed,
//!                   against `endpoint_target`, which is not scaled; the smaller of the two windows counts as w below
//! w < 1             one packet every rtt / w; otherwise no pacing
//! ```
//!
//! What hosts take is what the packet waited at its receiver, which the acknowledgement returns, and what the
//! acknowledgement waited at the sender. Where they take nothing there is no second window.
//!
//! `auto`: base = the base RTT of the flow's own path by the routes of now, per_hop = T / 32, range = 5 T, where T is the largest base
//! RTT of the network (the 5: csg-htsim; the 32: ours).
//!
//! Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
//! SIGCOMM 2020, §3; constants and `law = "released"` of Broadcom/csg-htsim at 841d9e7.
//!
//! Differs from the source: a resequencer, and delayed acknowledgements, count as fabric. The weight of the
//! mean and `endpoint_target` are ours. Hops are switches on the shortest path by the routes of now (the paper
//! reads them from TTL). `law = "released"` is the arithmetic of csg-htsim: one window, of whole bytes, for
//! the whole delay, the square root of whole packets, no hops (its senders lose their number), times cut to
//! picoseconds.
//!
//! Parameters: see [`SwiftParameters::read`].

use super::{
    Acked, Change, Congestion, CongestionWindow, FlowPath, Profile, Signal, TimeKey, WindowContext,
    WindowController, WindowParameters,
};
use crate::compat::Rules;
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::{Names, Parameters};
use crate::units::{Rate, Time};

pub const DOC: SchemeDoc = SchemeDoc {
    name: "swift",
    title: "Swift: window from the end-to-end delay against a target that scales with hops and flows",
    text: "The window grows while the round-trip time is below a target and shrinks in proportion to the excess above it, \
           once per round trip. The target grows with the number of switches on the path and as the window becomes \
           small, so that many flows share a link with windows below one packet, which are paced. A second window \
           follows the time that packets wait in the hosts, against a target of its own; the smaller one counts.",
    source: "Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter, SIGCOMM 2020; \
             Broadcom/csg-htsim at 841d9e7",
    equations: "target = base + hops per_hop + clamp(alpha / sqrt(w) + beta', 0, range)\n\
                delay < target: w + ai acked / w; else w max(1 - beta (delay - target) / delay, 1 - max_mdf), once per RTT\n\
                two windows: delay = rtt - hosts against target, delay = hosts against endpoint_target; w = the smaller one\n\
                w < 1: one packet every rtt / w",
    validation: "Steps by hand. With like = \"htsim\", completion times equal those of csg-htsim to the picosecond on lone flows, a \
                 16-to-1 incast, four flows that join a bottleneck, web search on a pod, and 320 paced flows (tests/rivals.rs).",
    series: &[
        Series::new("target_ns", "ns", "Target of the delay at the last acknowledgement."),
        Series::new("window_packets", "packets", "Window, which may be less than a packet."),
        Series::new(
            "fabric_delay_ns",
            "ns",
            "Last delay without the time in hosts; only where hosts take time.",
        ),
        Series::new("fabric_window_packets", "packets", "Window by that delay."),
        Series::new("host_delay_ns", "ns", "Moving average of the time that packets wait in hosts."),
        Series::new("host_window_packets", "packets", "Window by that time."),
    ],
    ..SchemeDoc::NONE
};

/// The target of csg-htsim, with its parts for a hop (the target / 6.55) and for small windows (five times
/// it).
const BASE_TARGET: Time = Time::from_ns(20_000);
const PER_HOP: Time = Time::from_ns(3_053);
const RANGE: Time = Time::from_ns(100_000);
/// `auto`: a hop's part of the largest base RTT. The base covers each path; this only makes up for the slower
/// growth over longer paths.
const HOPS_OF_BASE_RTT: u64 = 32;

const LAWS: Names = &[("paper", "as published"), ("released", "the arithmetic of csg-htsim")];

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwiftParameters {
    /// None: the base RTT of the flow's own path.
    pub base_target: Option<Time>,
    /// Of the time that the hosts take of a round trip.
    pub endpoint_target: Time,
    /// Of the mean of that time, the share of the newest.
    pub endpoint_gain: f64,
    /// Added to the target for each switch on the path; none: in proportion to `base_target`, or to the largest
    /// base RTT.
    pub per_hop: Option<Time>,
    /// The largest amount that small windows add to the target; none: in the same way.
    pub range: Option<Time>,
    /// Windows in packets at which the target is scaled by all of the range, and by nothing.
    pub fs_min: f64,
    pub fs_max: f64,
    /// Packets added per round trip.
    pub ai: f64,
    pub beta: f64,
    /// The largest decrease of a round trip, as a share.
    pub max_mdf: f64,
    /// Limits of the window in packets.
    pub min_window: f64,
    pub max_window: f64,
    /// Timeouts in a row after which the window is the smallest.
    pub resets: u32,
    /// The law is that of csg-htsim; none: as the rules of the run say.
    pub released: Option<bool>,
}

impl WindowParameters for SwiftParameters {
    type State = Swift;
    const HEEDS_MARKS: bool = false;
    const FOLLOWS_DELAY: bool = true;
    const FOLLOWS_PATH: bool = true;
    const ACKS_AT_ONCE: bool = true;
    const DOC: SchemeDoc = DOC;

    fn read(p: &mut Parameters, _profile: Profile) -> SwiftParameters {
        let help = "target of the delay before scaling (csg-htsim: 20 us); auto: the base RTT of the flow's own path";
        let base_target = p.time_unless_auto("base_target", BASE_TARGET, help);
        let mut part = |key, default, help| match base_target {
            None => p.time_or_auto(key, help),
            Some(_) => p.time_unless_auto(key, default, help),
        };
        let help = "added to the target for each switch on the path (csg-htsim means base / 6.55, but adds nothing); auto: \
                    base_target / 6.55; auto with base_target = \"auto\", and the default there: 1/32 of the largest base RTT of the \
                    network (ours)";
        let per_hop = part("per_hop", PER_HOP, help);
        let help = "the largest amount that small windows add to the target (csg-htsim: five times the base); auto: five times \
                    base_target; auto with base_target = \"auto\", and the default there: five times the largest base RTT of the \
                    network";
        let range = part("range", RANGE, help);
        let help =
            "target of the time that packet and acknowledgement wait in hosts ([host] packet_time; ours)";
        let endpoint_target = p.time("endpoint_target", Time::from_us(100), help);
        let help = "share of the newest such time in their mean (the paper smooths them, its share is not known; ours)";
        let endpoint_gain = p.number("endpoint_gain", 0.125, (1e-3, 1.0), help);
        let help = "window in packets up to which the target is scaled by all of the range";
        let fs_min = p.number("fs_min", 0.1, (1e-6, 1e6), help);
        let help = "window in packets from which on the target is not scaled";
        let fs_max = p.number("fs_max", 100.0, (1e-6, 1e9), help);
        if fs_max <= fs_min {
            p.complain("fs_max", format!("expected more than fs_min ({fs_min}), found {fs_max}"));
        }
        let ai = p.number("ai", 1.0, (1e-6, 1e6), "packets added per round trip");
        let beta =
            p.number("beta", 0.8, (0.0, 1.0), "share of the excess of the delay by which the window shrinks");
        let max_mdf =
            p.number("max_mdf", 0.5, (0.0, 0.99), "the largest decrease of a round trip, as a share");
        let help = "minimum window in packets (csg-htsim: 10 B)";
        let min_window = p.number("least_window", 0.01, (1e-4, 1.0), help);
        let max_window = p.number("most_window", 1000.0, (1.0, 1e6), "maximum window in packets");
        let help = "timeouts in a row after which the window is the minimum";
        let resets = p.integer("resets", 5, (1, 1 << 20), help) as u32;
        let help = "which law; auto: paper, or released where [compat] like repeats a simulator's laws";
        let released = p.choice_or_auto("law", LAWS, help).map(|chosen| chosen == "released");
        if base_target.is_none() && released == Some(true) {
            p.complain("base_target", NO_HOPS.into());
        }
        if base_target.is_none() && per_hop == Some(Time::ZERO) {
            let message = "expected more than 0s with base_target = \"auto\", which is the round trip of an idle path: queues would \
                           have no room below the target";
            p.complain("per_hop", message.into());
        }
        SwiftParameters {
            base_target,
            endpoint_target,
            endpoint_gain,
            per_hop,
            range,
            fs_min,
            fs_max,
            ai,
            beta,
            max_mdf,
            min_window,
            max_window,
            resets,
            released,
        }
    }

    fn follow(&mut self, rules: &Rules) -> Result<(), (&'static str, String)> {
        let repeats = self.released.is_none() && rules.released_laws;
        self.released = self.released.or(Some(rules.released_laws));
        if self.base_target.is_none() && repeats { Err(("base_target", NO_HOPS.into())) } else { Ok(()) }
    }

    fn derived(&self, base_rtt: Time) -> Vec<(&'static str, Time)> {
        let given = [self.base_target, self.per_hop, self.range];
        let named = ["base_target_ns", "per_hop_ns", "range_ns"].into_iter().zip(self.targets(base_rtt));
        named.zip(given).filter(|(_, given)| given.is_none()).map(|(named, _)| named).collect()
    }

    fn published(&self, base_rtt: Time) -> Option<(&'static str, Time, Time)> {
        (self.base_target == Some(BASE_TARGET)).then_some(("base_target", BASE_TARGET, base_rtt))
    }

    fn longest_times(&self) -> Vec<TimeKey> {
        let parts: [(Option<Time>, TimeKey); 2] =
            [(self.per_hop, ("per_hop", hop_of)), (self.range, ("range", range_of))];
        let derived = parts.into_iter().filter(|(given, _)| self.base_target.is_none() && given.is_none());
        derived.map(|(_, key)| key).collect()
    }

    fn max_packets(&self) -> Option<(&'static str, f64)> {
        Some(("most_window", self.max_window))
    }

    fn settle(&mut self, base_rtt: Time) {
        let [_, per_hop, range] = self.targets(base_rtt).map(Some);
        *self = SwiftParameters { per_hop, range, ..*self };
    }

    fn needs_base_rtt(&self) -> bool {
        self.base_target.is_none()
    }

    fn start(&self, flow: &WindowContext) -> Swift {
        let released = self.released == Some(true);
        let [_, _, range] = self.targets(flow.path.base_rtt.unwrap_or_default());
        let alpha = range.0 as f64 / ((1.0 / self.fs_min.sqrt()) - (1.0 / self.fs_max.sqrt())).max(1e-12);
        Swift {
            p: *self,
            released,
            mss: flow.mss as f64,
            packet: flow.packet,
            alpha,
            beta: -alpha / self.fs_max.sqrt(),
            range: range.0 as f64,
            fixed: self.fixed_target(&flow.path).0,
            fabric: Limit { window: flow.initial as f64, last_decrease: Time::ZERO },
            hosts: None,
            srtt: Time::ZERO,
            timeouts: 0,
            target: Time::ZERO,
            fabric_delay: Time::ZERO,
        }
    }
}

/// Why the law of csg-htsim needs a time.
const NO_HOPS: &str = "auto is the round trip of an idle path, to which law = \"released\" adds nothing for switches, so that queues \
                       would have no room below the target: set a time, or law = \"paper\"";

impl SwiftParameters {
    /// The target of flows over a path, before it is scaled by their windows.
    fn fixed_target(&self, path: &FlowPath) -> Time {
        let [base_target, per_hop, _] = self.targets(path.base_rtt.unwrap_or_default());
        let hops = if self.released == Some(true) { 0 } else { u64::from(path.hops) };
        base_target.saturating_add(Time(per_hop.0.saturating_mul(hops)))
    }

    /// `base_target` of a path with this base RTT, and `per_hop` and `range`, where they are not known, of a
    /// network in which it is the largest.
    fn targets(&self, base_rtt: Time) -> [Time; 3] {
        let base = self.base_target.unwrap_or(base_rtt);
        let per_hop = match self.base_target {
            Some(base) => Time((u128::from(base.0) * 100 / 655) as u64),
            None => hop_of(base_rtt),
        };
        [base, self.per_hop.unwrap_or(per_hop), self.range.unwrap_or(range_of(base))]
    }
}

/// `per_hop` under `auto` where this is the largest base RTT.
fn hop_of(base_rtt: Time) -> Time {
    Time(base_rtt.0 / HOPS_OF_BASE_RTT)
}

/// `range` for this base.
fn range_of(base: Time) -> Time {
    Time(base.0.saturating_mul(5))
}

/// State of one flow.
pub struct Swift {
    p: SwiftParameters,
    released: bool,
    mss: f64,
    /// Bytes of a full packet on the wire.
    packet: u64,
    /// Of the scaling by windows, in ps.
    alpha: f64,
    beta: f64,
    /// The largest amount of it.
    range: f64,
    /// The target before it, in ps.
    fixed: u64,
    fabric: Limit,
    /// What follows the time that hosts take, once they have taken any.
    hosts: Option<Hosts>,
    srtt: Time,
    /// Timeouts since something was acknowledged.
    timeouts: u32,
    /// The target of the last acknowledgement, and its delay without hosts.
    target: Time,
    fabric_delay: Time,
}

/// A window in bytes, and when it became smaller last.
#[derive(Debug, Clone, Copy)]
struct Limit {
    window: f64,
    last_decrease: Time,
}

#[derive(Debug, Clone, Copy)]
struct Hosts {
    limit: Limit,
    /// The mean of what they took, in ps.
    delay: f64,
}

impl Swift {
    fn target(&self) -> Time {
        let packets = self.fabric.window / self.mss;
        // csg-htsim: whole packets, and infinity below one.
        let packets = if self.released { packets.floor() } else { packets };
        let scaled = (self.alpha / packets.sqrt() + self.beta).clamp(0.0, self.range);
        match self.released {
            true => Time((self.fixed as f64 + scaled) as u64),
            false => Time(self.fixed.saturating_add(scaled as u64)),
        }
    }

    /// Processes a round trip, of which hosts took a part, with the bytes that are newly acknowledged.
    fn take(&mut self, rtt: Time, in_hosts: Time, acked: u64, now: Time) {
        let before = self.srtt;
        self.srtt = match self.srtt {
            Time::ZERO => rtt,
            mean => Time(mean.0 * 7 / 8 + rtt.0 / 8),
        };
        let in_hosts = if self.released { Time::ZERO } else { in_hosts };
        self.target = self.target();
        self.fabric_delay = rtt.saturating_sub(in_hosts);
        if in_hosts > Time::ZERO && self.hosts.is_none() {
            self.hosts = Some(Hosts { limit: self.fabric, delay: in_hosts.0 as f64 });
        }
        self.fabric = self.follow(self.fabric, self.fabric_delay, self.target, acked, before, now);
        if let Some(mut hosts) = self.hosts {
            hosts.delay += (in_hosts.0 as f64 - hosts.delay) * self.p.endpoint_gain;
            let (delay, target) = (Time(hosts.delay as u64), self.p.endpoint_target);
            hosts.limit = self.follow(hosts.limit, delay, target, acked, before, now);
            self.hosts = Some(hosts);
        }
    }

    /// A window after a delay; it becomes smaller once per round trip, which takes `rtt`.
    fn follow(&self, limit: Limit, delay: Time, target: Time, acked: u64, rtt: Time, now: Time) -> Limit {
        if delay < target {
            let acked = acked as f64 * self.p.ai;
            let step = if limit.window >= self.mss { self.mss * acked / limit.window } else { acked };
            Limit { window: self.within(limit.window + step), ..limit }
        } else if now.saturating_sub(limit.last_decrease) >= rtt {
            let excess = (delay.0 - target.0) as f64 / (delay.0 as f64).max(1.0);
            self.decreased(limit, (1.0 - self.p.beta * excess).max(1.0 - self.p.max_mdf), now)
        } else {
            limit
        }
    }

    fn decreased(&self, limit: Limit, factor: f64, now: Time) -> Limit {
        let window = self.within(limit.window * factor);
        Limit { window, last_decrease: if window < limit.window { now } else { limit.last_decrease } }
    }

    fn within(&self, bytes: f64) -> f64 {
        let limited = bytes.clamp(self.p.min_window * self.mss, self.p.max_window * self.mss);
        if self.released { limited.floor() } else { limited }
    }

    /// The smaller of the two windows, in bytes.
    fn window(&self) -> f64 {
        self.hosts.map_or(self.fabric.window, |hosts| hosts.limit.window.min(self.fabric.window))
    }

    /// Whole packets, and a pace below one.
    fn apply(&self, window: &mut CongestionWindow) {
        let packets = self.window() / self.mss;
        window.cwnd = packets.floor().max(1.0) as u64 * window.mss;
        window.ssthresh = window.cwnd;
        window.pacing = (packets < 1.0 && self.srtt > Time::ZERO).then(|| {
            let rate = (self.packet * 8) as f64 * packets / self.srtt.as_seconds();
            Rate((rate as u64).max(1))
        });
    }
}

impl WindowController for Swift {
    fn on_start(&mut self, _now: Time, _rtt: Option<Time>, window: &mut CongestionWindow) {
        self.apply(window);
    }

    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if ack.bytes > 0 {
            self.timeouts = 0;
        }
        if let Some(delay) = ack.rtt {
            self.take(delay, ack.in_hosts.min(delay), ack.bytes, ack.now);
        }
        self.apply(window);
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        let now = congestion.now;
        // Nothing is lost of what was not sent: a timeout while a packet waits for its pace has no meaning.
        let timeout = congestion.by == Signal::Timeout && congestion.in_flight > 0;
        self.timeouts += u32::from(timeout);
        let resets = timeout && self.timeouts >= self.p.resets;
        if !(resets || timeout || congestion.by == Signal::Loss) {
            return (self.window() as u64).max(window.mss);
        }
        let lost = |limit: Limit| match now.saturating_sub(limit.last_decrease) >= self.srtt {
            _ if resets => Limit { window: self.within(0.0), last_decrease: now },
            true => self.decreased(limit, 1.0 - self.p.max_mdf, now),
            false => limit,
        };
        let (fabric, hosts) = (lost(self.fabric), self.hosts.map(|h| Hosts { limit: lost(h.limit), ..h }));
        (self.fabric, self.hosts) = (fabric, hosts);
        (self.window() as u64).max(window.mss)
    }

    fn on_state(&mut self, _change: &Change, window: &mut CongestionWindow) {
        self.apply(window);
    }

    fn on_path(&mut self, path: &FlowPath) {
        self.fixed = self.p.fixed_target(path).0;
    }

    fn steers_recovery(&self) -> bool {
        true
    }

    fn pacing_delay(&self) -> Option<Time> {
        let (window, mss) = (self.window(), self.mss);
        (window < mss && self.srtt > Time::ZERO).then(|| Time((self.srtt.0 as f64 * mss / window) as u64))
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("target_ns", self.target.as_ns()));
        out.push(("window_packets", self.window() / self.mss));
        if let Some(hosts) = &self.hosts {
            out.push(("fabric_delay_ns", self.fabric_delay.as_ns()));
            out.push(("fabric_window_packets", self.fabric.window / self.mss));
            out.push(("host_delay_ns", hosts.delay / 1e3));
            out.push(("host_window_packets", hosts.limit.window / self.mss));
        }
    }
}

#[cfg(test)]
mod tests;
