//! Whether several threads pay: measured while a run goes on, by working alone for a moment.
//!
//! Work is counted, and so is the time that it takes. While all work together, they are tried against one that works alone, every
//! half second: two short spells of each in turn, so that what changes meanwhile falls on both. If together they are not faster by
//! `PAYS`, one goes on alone. That is tried again too, more and more rarely, and until they are faster by more than that: a
//! decision that stands on the edge does not change to and fro. A spell in which work together is at once much slower than it was,
//! because something else has taken the cores, is followed by a trial right away.
//!
//! What is chosen shows in how long a run takes and in nothing else.

use std::time::Duration;

/// Together must be faster by this to go on together, and by this to begin again.
const PAYS: f64 = 1.1;
const PAYS_AGAIN: f64 = 1.2;
/// The length of a spell of a trial, and of the spells in between in which the speed is watched.
const SPELL: Duration = Duration::from_millis(10);
/// Spells of a trial: together, alone, together, alone.
const TRIAL: u32 = 4;
/// From a trial to the next while all work together, and the longest while one works alone.
const OFTEN: Duration = Duration::from_millis(500);
const SELDOM: Duration = Duration::from_secs(8);
/// The share of its speed below which work together is tried at once.
const SLUMP: f64 = 0.5;

/// Who works on the next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Together,
    Alone,
}

/// Decides, round by round.
#[derive(Debug)]
pub struct Payoff {
    chosen: Mode,
    /// The spell of the trial that is under way; none between trials.
    trial: Option<u32>,
    /// Work and time of the spells of the trial so far, together and alone.
    together: Speed,
    alone: Speed,
    /// The spell that goes on.
    spell: Speed,
    /// Since the last trial, and until the next.
    since: Duration,
    until: Duration,
    /// Of work together, when it was last tried.
    usual: f64,
    /// Of the whole run.
    seen: Option<(Duration, u64)>,
    time: Duration,
    time_alone: Duration,
    /// How much faster together was than alone, when it was last tried.
    ratio: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Speed {
    work: u64,
    time: Duration,
}

impl Speed {
    fn add(&mut self, other: Speed) {
        self.work += other.work;
        self.time += other.time;
    }

    fn per_second(self) -> f64 {
        self.work as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

impl Default for Payoff {
    /// All work together at first.
    fn default() -> Payoff {
        Payoff {
            chosen: Mode::Together,
            trial: None,
            together: Speed::default(),
            alone: Speed::default(),
            spell: Speed::default(),
            since: Duration::ZERO,
            // The first comes soon: a machine may be busy from the start.
            until: 2 * SPELL,
            usual: 0.0,
            seen: None,
            time: Duration::ZERO,
            time_alone: Duration::ZERO,
            ratio: None,
        }
    }
}

impl Payoff {
    /// Who works on the round that begins now, after so much work in all.
    pub fn next(&mut self, now: Duration, work: u64) -> Mode {
        if let Some((before, done)) = self.seen.replace((now, work)) {
            let time = now.saturating_sub(before);
            let mode = self.mode();
            self.spell.add(Speed { work: work - done, time });
            self.time += time;
            self.since += time;
            self.time_alone += if mode == Mode::Alone { time } else { Duration::ZERO };
            if self.spell.time >= SPELL {
                let spell = std::mem::take(&mut self.spell);
                self.spell_over(spell);
            }
        }
        self.mode()
    }

    fn mode(&self) -> Mode {
        match self.trial {
            Some(spell) if spell % 2 == 0 => Mode::Together,
            Some(_) => Mode::Alone,
            None => self.chosen,
        }
    }

    fn spell_over(&mut self, spell: Speed) {
        let Some(number) = self.trial else {
            let slump = self.chosen == Mode::Together && spell.per_second() < SLUMP * self.usual;
            if self.since >= self.until || slump {
                self.trial = Some(0);
            }
            return;
        };
        match number % 2 {
            0 => self.together.add(spell),
            _ => self.alone.add(spell),
        }
        self.trial = (number + 1 < TRIAL).then_some(number + 1);
        if self.trial.is_none() {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let (together, alone) = (std::mem::take(&mut self.together), std::mem::take(&mut self.alone));
        self.since = Duration::ZERO;
        if together.work + alone.work == 0 {
            return;
        }
        let ratio = together.per_second() / alone.per_second().max(1e-9);
        self.usual = together.per_second();
        self.ratio = Some(ratio);
        let needed = if self.chosen == Mode::Together { PAYS } else { PAYS_AGAIN };
        let before = self.chosen;
        self.chosen = if ratio >= needed { Mode::Together } else { Mode::Alone };
        self.until = match (before, self.chosen) {
            (Mode::Alone, Mode::Alone) => (2 * self.until).min(SELDOM),
            _ => OFTEN,
        };
    }

    /// The share of the time in which one worked alone.
    pub fn share_alone(&self) -> f64 {
        self.time_alone.as_secs_f64() / self.time.as_secs_f64().max(1e-9)
    }

    /// How much faster all together were than one alone, when that was last measured.
    pub fn ratio(&self) -> Option<f64> {
        self.ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which together is `ratio(t)` times as fast as alone, for so long; rounds of 50 us alone. The work done and the share alone.
    fn run(seconds: f64, ratio: impl Fn(f64) -> f64) -> (f64, Payoff) {
        let mut payoff = Payoff::default();
        let (mut now, mut work) = (0.0, 0u64);
        while now < seconds {
            let mode = payoff.next(Duration::from_secs_f64(now), work);
            let speed = if mode == Mode::Together { ratio(now) } else { 1.0 };
            now += 50e-6 / speed;
            work += 50;
        }
        (work as f64 / 1e6 / now, payoff)
    }

    #[test]
    fn threads_that_pay_go_on_and_cost_little_to_watch() {
        let (speed, payoff) = run(10.0, |_| 1.6);
        assert!(speed > 1.6 * 0.97, "{speed}");
        assert!(payoff.share_alone() < 0.06, "{payoff:?}");
    }

    #[test]
    fn threads_that_are_much_slower_cost_little() {
        for ratio in [0.04, 0.2, 0.9, 1.05] {
            let (speed, payoff) = run(10.0, |_| ratio);
            assert!(speed > 0.97, "{ratio}: {speed}");
            assert!(payoff.share_alone() > 0.9, "{ratio}: {payoff:?}");
            assert!((payoff.ratio().unwrap() / ratio - 1.0).abs() < 0.05, "{ratio}: {payoff:?}");
        }
    }

    #[test]
    fn cores_that_are_taken_in_the_middle_of_a_run_are_noticed_and_their_return_too() {
        let busy = |now: f64| if (5.0..10.0).contains(&now) { 0.05 } else { 1.7 };
        let (speed, payoff) = run(30.0, busy);
        // 25 s at 1.7 and 5 s at 1 would be 1.58; the return is noticed within the longest time between trials.
        assert!(speed > 1.3, "{speed}");
        assert_eq!(payoff.chosen, Mode::Together);
    }

    #[test]
    fn on_the_edge_a_decision_stays() {
        let mut payoff = Payoff::default();
        let (mut now, mut work, mut changes, mut chosen) = (0.0, 0u64, 0, Mode::Together);
        let mut turn = 0u32;
        while now < 60.0 {
            let mode = payoff.next(Duration::from_secs_f64(now), work);
            // Between what is needed to go on, and what is needed to begin again, with some noise.
            turn = turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = 1.0 + 0.02 * (f64::from(turn >> 16) / 32_768.0 - 1.0);
            now += 50e-6 * noise / if mode == Mode::Together { 1.13 } else { 1.0 };
            work += 50;
            changes += u32::from(std::mem::replace(&mut chosen, payoff.chosen) != payoff.chosen);
        }
        assert!(changes <= 1, "{changes} changes");
    }

    #[test]
    fn rounds_longer_than_a_spell_are_measured_as_they_are() {
        let mut payoff = Payoff::default();
        let (mut now, mut work) = (0.0, 0u64);
        for _ in 0..200 {
            let mode = payoff.next(Duration::from_secs_f64(now), work);
            now += if mode == Mode::Together { 0.3 } else { 0.1 };
            work += 1000;
        }
        assert_eq!(payoff.chosen, Mode::Alone);
    }
}
