//! Rates, steps and windows as controllers of queue pairs read, limit and scale them.

use super::Window;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

/// Limits of a flow's rate: the configured minimum (at most the line rate) and the line rate.
#[derive(Debug, Clone, Copy)]
pub struct RateRange {
    pub min: u64,
    pub max: u64,
}

impl RateRange {
    /// From `min`, or the line rate if that is lower, to the line rate.
    pub fn new(min: Rate, line_rate: Rate) -> RateRange {
        let max = line_rate.0.max(1);
        RateRange { min: min.0.clamp(1, max), max }
    }
    /// The rate of the range that is nearest.
    pub fn clamp(&self, rate_bps: u64) -> u64 {
        rate_bps.clamp(self.min, self.max)
    }
}

/// `rate * factor` in whole bit/s, rounded down: the authors' rates are integers in bit/s.
pub fn times(rate_bps: u64, factor: f64) -> u64 {
    (rate_bps as f64 * factor) as u64
}

/// A step published for `per`, scaled to the line rate, in whole bit/s; at least 1.
pub fn in_proportion(published: Rate, per: Rate, line_rate: Rate) -> u64 {
    (published.0 as u128 * line_rate.0 as u128 / per.0 as u128).max(1) as u64
}

/// Times the step in proportion to the line rate, above which a published one is too large: then the steps of ten flows
/// come to more than the twentieth of the link that HPCC leaves free.
const LARGE_STEP: u64 = 10;

/// A published step is too large for a link, for which `auto` stands for this one.
pub(super) fn is_large_step(published: Rate, auto: Rate) -> bool {
    published.0 > LARGE_STEP * auto.0
}

/// Reads a rate that must not be zero; none only for `auto`.
pub fn positive_rate_or_auto(
    p: &mut Parameters,
    key: &'static str,
    default: Rate,
    help: &'static str,
) -> Option<Rate> {
    let rate = p.rate_unless_auto(key, default, help);
    if rate == Some(Rate(0)) {
        p.complain(key, "must be greater than 0: a flow at 0 bit/s would never end".into());
    }
    rate
}

/// Reads a time that must not be zero.
pub fn positive_time(p: &mut Parameters, key: &'static str, default: Time, help: &'static str) -> Time {
    let time = p.time(key, default, help);
    if time > Time::ZERO {
        return time;
    }
    p.complain(key, "must be greater than 0".into());
    default
}

/// Reads a time that must not be zero; none only for `auto`.
pub fn positive_time_or_auto(
    p: &mut Parameters,
    key: &'static str,
    default: Time,
    help: &'static str,
) -> Option<Time> {
    let time = p.time_unless_auto(key, default, help);
    if time == Some(Time::ZERO) {
        p.complain(key, "must be greater than 0".into());
        return Some(default);
    }
    time
}

/// The rate below which no flow is cut. It takes control away from as many flows as it fits into a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeastRate {
    /// None: the share of the published one in the rate of its NICs.
    given: Option<Rate>,
    published: Rate,
    per: Rate,
}

impl LeastRate {
    /// Published for NICs of the rate `per`.
    pub fn read(p: &mut Parameters, published: Rate, per: Rate, help: &'static str) -> LeastRate {
        LeastRate { given: positive_rate_or_auto(p, "min_rate", published, help), published, per }
    }

    /// Of the HPCC authors' run.py, for all schemes in it; their sample configuration has 100 Mb/s.
    pub(super) fn of_hpcc(p: &mut Parameters) -> LeastRate {
        let help =
            "minimum rate of a flow (HPCC authors' run.py: 1 Gb/s); auto: a hundredth of the line rate";
        LeastRate::read(p, Rate::from_gbps(1), Rate::from_gbps(100), help)
    }

    /// The share of the published one in this rate of a NIC.
    pub fn auto(self, line_rate: Rate) -> Rate {
        Rate(in_proportion(self.published, self.per, line_rate))
    }

    /// At a NIC of this rate.
    pub fn at(self, line_rate: Rate) -> Rate {
        self.given.unwrap_or_else(|| self.auto(line_rate))
    }

    /// For [`ControllerParameters::derived`](super::ControllerParameters::derived).
    pub fn derived(self, line_rate: Rate) -> Option<(&'static str, Rate)> {
        self.given.is_none().then(|| ("min_rate_bps", self.at(line_rate)))
    }

    /// For [`ControllerParameters::published`](super::ControllerParameters::published): a published one that is lower than it need be does no harm; four times the share is what the authors'
    /// testbed has.
    pub fn published(self, line_rate: Rate) -> Option<(&'static str, Rate, Rate)> {
        let (published, auto) = (self.published, self.auto(line_rate));
        (self.given == Some(published) && published.0 > 4 * auto.0).then_some(("min_rate", published, auto))
    }
}

/// Reads whether and how a window accompanies the rate (the `+win` variants of the HPCC paper).
pub fn window(p: &mut Parameters, default: bool) -> Window {
    let has = p.flag("window", default, "Limit the bytes in flight to W0 = line rate * T (HAS_WIN).");
    let follows = p.flag("var_window", true, "The window shrinks in proportion to the rate (VAR_WIN).");
    // No error, since a sweep may go over `window`; a transport of a workload may inherit the value.
    if !has && !follows && p.is_own("var_window") {
        p.warn("transport.controller.var_window has no effect here: set window = true".into());
    }
    match (has, follows) {
        (false, _) => Window::None,
        (true, false) => Window::Fixed,
        (true, true) => Window::FollowsRate,
    }
}

/// An additive step against the queue of one packet, by which a law that knows the length of queues judges the load.
pub(super) struct SmallStep {
    /// What the step adds in a base RTT, as a share of a full packet.
    pub share: f64,
    /// The step that adds the wanted share, rounded up to two digits.
    pub wanted: Rate,
}

impl SmallStep {
    /// None if the step adds at least the share `min` of a packet of this number of bytes.
    pub fn below(min: f64, wanted: f64, step: Rate, packet: u64, base_rtt: Time) -> Option<SmallStep> {
        let round_trips = 8.0 * packet as f64 / base_rtt.as_seconds();
        let share = step.0 as f64 / round_trips;
        let rate = (wanted * round_trips) as u64;
        let unit = 10u64.pow(rate.max(10).ilog10() - 1);
        let wanted = Rate(rate.div_ceil(unit) * unit);
        (base_rtt > Time::ZERO && share < min).then_some(SmallStep { share, wanted })
    }

    /// That flows which share a link do not become equal.
    pub fn unfair(&self, key: &str, step: Rate, packet: u64, base_rtt: Time) -> String {
        format!(
            "transport.controller.{key} = {step}: in a base RTT of {base_rtt} it adds {:.1} % of a full packet ({packet} B) to what a flow \
             has in flight, and one packet in a queue cuts it by more than many such steps add: flows that share a link become \
             equal slowly or never. Set {key} to about {}, or a smaller transport.mtu",
            100.0 * self.share,
            self.wanted
        )
    }
}
