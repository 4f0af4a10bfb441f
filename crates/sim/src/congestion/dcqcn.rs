//! DCQCN: ECN marks cause a cut, followed by three stages of recovery, all driven by timers.
//!
//! ```text
//! alpha = (1 - g) alpha + g [a mark came]             every alpha interval
//! rate  = rate (1 - alpha / 2), target = rate before  every decrease interval in which a mark came; stage = 0
//! rate  = rate / 2 + target / 2                       every increase interval; before it, by stage:
//!           stage < F: nothing;  stage = F: target += R_AI;  stage > F: target += R_HAI;  then stage + 1
//! ```
//!
//! Timers run from the first mark of a flow on: alpha at t0 + k * 1 us; decrease 1 ns after every fourth of
//! these, so that it uses the new alpha; increase 300 us after the last cut or increase.
//!
//! Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015; intervals and
//! order as in the HPCC authors' simulator (its NIC vendor's version).
//! Differs from the source: every ACK echoes the mark, there is no notification packet with its interval of
//! 50 us; no byte counter. The target is set to the rate before a cut only if an increase came since the last
//! cut, unless `clamp_target_rate` is set. Alpha has no events here: its ticks are computed when it is read.
//! Parameters: see [`DcqcnParameters::read`].

use super::rates::{LeastRate, RateRange, in_proportion, positive_time_or_auto, times, window};
use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, SchemeDoc, Window,
};
use crate::compat::Rules;
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

pub const DOC: SchemeDoc = SchemeDoc {
    name: "dcqcn",
    title: "DCQCN: ECN marks, timed cuts and staged recovery",
    text: "Switches mark with a probability that grows with the queue. The sender keeps a moving average alpha of whether \
           marks came, cuts its rate by alpha/2 at most once per decrease interval, and recovers towards the rate before \
           the cut, then beyond it by additive and hyper increase.",
    source: "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015; the HPCC authors' simulator",
    equations: "alpha = (1 - g) alpha + g [mark], every alpha interval\n\
                rate = rate (1 - alpha/2), stage = 0, every decrease interval with a mark\n\
                rate = rate/2 + target/2, every increase interval; target += R_AI at stage F, R_HAI beyond",
    validation: "Completion times equal those of the HPCC authors' simulator to the nanosecond where no mark is drawn at \
                 random (lone flows; four flows that join a bottleneck, with a window). Elsewhere the authors' mean, p50, p95 \
                 and p99 lie within the 0.5th and 99.5th percentile of ours over 200 seeds (tests/distributions.rs).",
    series: &[
        Series::new("alpha", "", "Moving average of the ticks of its timer with a mark."),
        Series::new("target_bps", "bit/s", "Target rate."),
    ],
    ..SchemeDoc::NONE
};

/// Published steps, per 25 Gb/s of line rate.
const STEP_PER: Rate = Rate::from_gbps(25);
const RAI: Rate = Rate::from_mbps(5);
const RHAI: Rate = Rate::from_mbps(50);
/// Published intervals, and the lowest rate of NICs that they have been published for.
const ALPHA_INTERVAL: Time = Time::from_us(1);
const DECREASE_INTERVAL: Time = Time::from_us(4);
const INCREASE_INTERVAL: Time = Time::from_us(300);
const INTERVALS_FROM: Rate = Rate::from_gbps(25);
/// Flows on a link at which the intervals are judged; packets of each that an increase takes at least; and the share of
/// alpha that may decay between two of them.
const SHARES: u64 = 10;
const PACKETS_PER_INCREASE: u64 = 5;
const MAX_DECAY: f64 = 0.25;
/// A decrease comes this long after its alpha tick.
const AFTER_ALPHA: Time = Time::from_ns(1);
const DECREASE: usize = 0;
const INCREASE: usize = 1;

/// Parameters of DCQCN.
#[derive(Debug, Clone, PartialEq)]
pub struct DcqcnParameters {
    /// Weight of a tick in alpha.
    pub g: f64,
    /// The three intervals; none: in proportion to the time of a packet at NICs slower than those that they are for.
    pub alpha_interval: Option<Time>,
    pub decrease_interval: Option<Time>,
    pub increase_interval: Option<Time>,
    /// F: increases towards the old rate before the target grows.
    pub fast_recovery: u32,
    /// Additive step of the target; none: in proportion to the line rate.
    pub rai: Option<Rate>,
    /// Step of the target in hyper increase; none: in proportion to the line rate.
    pub rhai: Option<Rate>,
    pub min_rate: LeastRate,
    /// Every cut sets the target to the rate before it.
    pub clamp_target_rate: bool,
    /// Share of the rate that is kept at the first mark.
    pub rate_on_first: f64,
    /// Timers fire even if they change nothing, as in the authors' simulator. The rates are the same.
    pub eager: bool,
    pub window: Window,
}

impl ControllerParameters for DcqcnParameters {
    type State = Dcqcn;
    const DOC: SchemeDoc = DOC;
    /// Measured: `fat320-hpcc` with this one (benches/).
    const NS_PER_HOP: f64 = 54.0;

    fn read(p: &mut Parameters) -> DcqcnParameters {
        DcqcnParameters {
            g: p.number("g", 1.0 / 256.0, (0.0, 1.0), "Weight of a tick in alpha (published runs: 1/256)."),
            alpha_interval: positive_time_or_auto(
                p,
                "alpha_interval",
                ALPHA_INTERVAL,
                "Time between ticks of alpha; auto: 1 us, longer below 25 Gb/s in proportion to the time of a packet.",
            ),
            decrease_interval: positive_time_or_auto(
                p,
                "decrease_interval",
                DECREASE_INTERVAL,
                "Minimum time between cuts; auto: 4 us, longer below 25 Gb/s in proportion to the time of a packet.",
            ),
            increase_interval: positive_time_or_auto(
                p,
                "increase_interval",
                INCREASE_INTERVAL,
                "Time between increases (vendor default 300 us; the authors' dcqcn_paper 55 us); auto: 300 us, longer below 25 \
                 Gb/s in proportion to the time of a packet.",
            ),
            fast_recovery: p.integer(
                "fast_recovery",
                1,
                (0, 1_000_000),
                "F: increases before the target grows (published runs: 1).",
            ) as u32,
            rai: p.rate_or_auto("rai", "Additive step; auto: 5 Mb/s per 25 Gb/s of line rate."),
            rhai: p.rate_or_auto("rhai", "Hyper step; auto: 50 Mb/s per 25 Gb/s of line rate."),
            min_rate: LeastRate::of_hpcc(p),
            clamp_target_rate: p.flag(
                "clamp_target_rate",
                false,
                "Every cut sets the target, including a second one in a row (CLAMP_TARGET_RATE; 0 in the \
                 published runs).",
            ),
            rate_on_first: p.number(
                "rate_on_first_cnp",
                1.0,
                (0.0, 1.0),
                "Share of the rate that is kept at the first mark.",
            ),
            eager: false,
            window: window(p, false),
        }
    }

    fn follow(&mut self, rules: &Rules) {
        self.eager = rules.eager_timers;
    }

    fn needs(&self) -> Needs {
        // The authors' dcqcn runs have ACK_HIGH_PRIO 1, dcqcn_vwin 0.
        Needs { marks: true, ack_priority: self.window == Window::None, ..Needs::window(self.window) }
    }

    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
        let steps = [("rai_bps", self.rai, RAI), ("rhai_bps", self.rhai, RHAI)];
        let auto = steps.iter().filter(|(_, given, _)| given.is_none());
        let auto = auto.map(|&(key, given, published)| (key, step(given, published, line_rate)));
        auto.chain(self.min_rate.derived(line_rate)).collect()
    }

    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        self.min_rate.published(line_rate).into_iter().collect()
    }

    /// Marks come with packets. Where these are rare, alpha decays between two of them, and increases take back what a
    /// mark cut.
    fn unfit_at(&self, line_rate: Rate, packet: u64, _base_rtt: Time) -> Option<String> {
        let (alpha, _, increase) = self.intervals(line_rate);
        let slow = Rate((line_rate.0 / SHARES).max(1));
        let gap = slow.transmission_time(packet);
        let decay = gap.0 as f64 * self.g / alpha.0 as f64;
        (gap.0 > increase.0 / PACKETS_PER_INCREASE || decay > MAX_DECAY).then(|| {
            format!(
                "transport.controller.increase_interval = {increase} and alpha_interval = {alpha}: with NICs of {line_rate} a flow that has \
                 a tenth of the link sends a packet, which can bring a mark, only every {gap}. Alpha decays between two marks, and the \
                 rate rises again after a few packets, so that queues grow far above the marking thresholds; set alpha_interval, \
                 decrease_interval and increase_interval = \"auto\", or values of your own, unless the published values are what you study"
            )
        })
    }

    fn start(&self, flow: &FlowContext, _int_hops: usize) -> Dcqcn {
        let range = RateRange::new(self.min_rate.at(flow.line_rate), flow.line_rate);
        let (alpha_interval, decrease_interval, increase_interval) = self.intervals(flow.line_rate);
        Dcqcn {
            g: self.g,
            alpha: 1.0,
            alpha_tick: Time::ZERO,
            alpha_interval,
            first_cnp: None,
            decrease_interval,
            increase_interval,
            rate_on_first: self.rate_on_first,
            target: range.max,
            range,
            rai: step(self.rai, RAI, flow.line_rate).0,
            rhai: step(self.rhai, RHAI, flow.line_rate).0,
            fast_recovery: self.fast_recovery,
            stage: 0,
            alpha_cnp: false,
            decrease_cnp: false,
            clamp_target_rate: self.clamp_target_rate,
            eager: self.eager,
        }
    }
}

impl DcqcnParameters {
    /// Those of alpha, decreases and increases at a NIC of this rate.
    fn intervals(&self, line_rate: Rate) -> (Time, Time, Time) {
        let slower = line_rate.0.clamp(1, INTERVALS_FROM.0);
        let stretched = |published: Time| {
            let time = u128::from(published.0) * u128::from(INTERVALS_FROM.0) / u128::from(slower);
            Time(u64::try_from(time).unwrap_or(u64::MAX))
        };
        (
            self.alpha_interval.unwrap_or_else(|| stretched(ALPHA_INTERVAL)),
            self.decrease_interval.unwrap_or_else(|| stretched(DECREASE_INTERVAL)),
            self.increase_interval.unwrap_or_else(|| stretched(INCREASE_INTERVAL)),
        )
    }
}

fn step(given: Option<Rate>, published: Rate, line_rate: Rate) -> Rate {
    given.unwrap_or_else(|| Rate(in_proportion(published, STEP_PER, line_rate)))
}

/// State of one flow.
pub struct Dcqcn {
    g: f64,
    /// Moving average of "a mark was received", as of `alpha_tick`.
    alpha: f64,
    /// Last tick that alpha includes.
    alpha_tick: Time,
    alpha_interval: Time,
    /// t0: the origin of the timers.
    first_cnp: Option<Time>,
    decrease_interval: Time,
    increase_interval: Time,
    rate_on_first: f64,
    /// Rate to recover to, in bit/s; set at a cut, grows in additive and hyper increase.
    target: u64,
    range: RateRange,
    rai: u64,
    rhai: u64,
    fast_recovery: u32,
    /// Increases since the last cut.
    stage: u32,
    /// A mark came since the last tick of alpha.
    alpha_cnp: bool,
    /// A mark came since the last decrease timer.
    decrease_cnp: bool,
    clamp_target_rate: bool,
    eager: bool,
}

impl CongestionController for Dcqcn {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        if ack.marked {
            self.on_mark(ack.now, control);
        }
    }

    fn on_timer(&mut self, timer: usize, now: Time, control: &mut Control) {
        if timer == DECREASE {
            self.on_decrease_timer(now, control);
        } else {
            self.on_increase_timer(now, control);
        }
    }

    fn internals(&self, now: Time, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha_before(now)));
        out.push(("target_bps", self.target as f64));
    }
}

impl Dcqcn {
    fn on_mark(&mut self, now: Time, control: &mut Control) {
        self.decrease_cnp = true;
        let Some(first) = self.first_cnp else {
            return self.on_first_mark(now, control);
        };
        // A mark at the time of a tick counts for that tick.
        self.take_ticks_before(now);
        self.alpha_cnp = true;
        if control.timers[DECREASE] == Time::MAX {
            control.timers[DECREASE] = self.next_decrease(first, now);
        }
    }

    /// Starts the timers; alpha stays 1 until a second mark or its first tick.
    fn on_first_mark(&mut self, now: Time, control: &mut Control) {
        self.first_cnp = Some(now);
        self.alpha = 1.0;
        self.alpha_tick = now;
        self.alpha_cnp = false;
        control.rate = Rate(self.range.clamp(times(control.rate.0, self.rate_on_first)));
        self.target = control.rate.0;
        control.timers[DECREASE] = now.saturating_add(AFTER_ALPHA).saturating_add(self.decrease_interval);
    }

    fn on_decrease_timer(&mut self, now: Time, control: &mut Control) {
        // Timers due at the same time run in the order in which the authors' simulator would have set them:
        // the longer one first.
        if control.timers[INCREASE] <= now && self.increase_interval > self.decrease_interval {
            control.timers[INCREASE] = Time::MAX;
            self.on_increase_timer(now, control);
        }
        if self.eager {
            control.timers[DECREASE] = now.saturating_add(self.decrease_interval);
        }
        if !self.decrease_cnp {
            return;
        }
        self.take_ticks_before(now.saturating_add(Time(1)));
        if self.clamp_target_rate || self.stage != 0 {
            self.target = control.rate.0;
        }
        control.rate = Rate(self.range.clamp(times(control.rate.0, 1.0 - self.alpha / 2.0)));
        self.stage = 0;
        self.decrease_cnp = false;
        control.timers[INCREASE] = now.saturating_add(self.increase_interval);
    }

    fn on_increase_timer(&mut self, now: Time, control: &mut Control) {
        let before = control.rate.0;
        if self.stage >= self.fast_recovery {
            let step = if self.stage == self.fast_recovery { self.rai } else { self.rhai };
            self.target = self.target.saturating_add(step).min(self.range.max);
        }
        // Each half is rounded to whole bit/s, as the authors add them.
        let rate = self.range.clamp(before / 2 + self.target / 2);
        control.rate = Rate(rate);
        self.stage = self.stage.saturating_add(1);
        // At the line rate without further recovery, increases change nothing until a cut starts the timer
        // again.
        let at_rest = rate == before && self.target == self.range.max;
        if self.eager || !at_rest {
            control.timers[INCREASE] = now.saturating_add(self.increase_interval);
        }
    }

    /// Updates alpha to the last tick strictly before `end`; only the first tick can have a mark to count.
    fn take_ticks_before(&mut self, end: Time) {
        let ticks = self.ticks_before(end);
        self.alpha_tick = self.alpha_tick.saturating_add(Time(ticks * self.alpha_interval.0));
        for _ in 0..ticks {
            let decayed = (1.0 - self.g) * self.alpha;
            let alpha = if self.alpha_cnp { decayed + self.g } else { decayed };
            // Without marks, alpha has reached its limit if a tick does not change it (after about 0.2 s).
            let at_rest = !self.alpha_cnp && alpha == self.alpha;
            self.alpha_cnp = false;
            self.alpha = alpha;
            if at_rest {
                break;
            }
        }
    }

    /// Ticks that alpha does not include yet.
    fn ticks_before(&self, end: Time) -> u64 {
        end.saturating_sub(self.alpha_tick).0.saturating_sub(1) / self.alpha_interval.0
    }

    /// Alpha after the last tick strictly before `end`, but for the last bits of the product.
    fn alpha_before(&self, end: Time) -> f64 {
        let Some(later) = self.ticks_before(end).checked_sub(1).filter(|_| self.first_cnp.is_some()) else {
            return self.alpha;
        };
        let mark = if self.alpha_cnp { self.g } else { 0.0 };
        ((1.0 - self.g) * self.alpha + mark) * libm::pow(1.0 - self.g, later as f64)
    }

    /// First point of the grid t0 + 1 ns + k * interval that is not before `now`.
    fn next_decrease(&self, first: Time, now: Time) -> Time {
        let origin = first.saturating_add(AFTER_ALPHA);
        let steps = now.saturating_sub(origin).0.div_ceil(self.decrease_interval.0);
        origin.saturating_add(Time(steps.saturating_mul(self.decrease_interval.0)))
    }
}

#[cfg(test)]
mod tests;
