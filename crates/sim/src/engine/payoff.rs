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
mod tests;
