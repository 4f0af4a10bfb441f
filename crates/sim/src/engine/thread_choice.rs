//! Chooses between several threads and one, by measuring during the run which is faster.
//!
//! The speed is the number of events per wall-clock second. While all threads work, a trial every half second
//! compares them with one thread: two short spells of each, alternating, so that changes of the machine's
//! load affect both, or one of each if all threads are faster beyond doubt. Where rounds are long, so are
//! spells, and trials become rarer and the first one comes later: the time that they lose stays about 1 % of
//! the run. If all threads are not faster by a factor of `STAY_PARALLEL`, the run continues with one thread.
//! Trials then become rarer, and the run returns to all threads if they are faster by `RETURN_PARALLEL`,
//! which is larger, so that the choice does not oscillate. A sudden loss of speed, for example because
//! another program takes the cores, starts a trial at once.
//!
//! The choice changes the wall-clock time of a run and nothing else.

use std::time::Duration;

/// Speedup that all threads must reach to stay in use, and to return to use.
const STAY_PARALLEL: f64 = 1.1;
const RETURN_PARALLEL: f64 = 1.2;
/// Speedup in the first two spells of a trial at which all threads stay in use without two more.
const BEYOND_DOUBT: f64 = 1.4;
/// Length of a spell of a trial, and of the spells between trials for which the speed is measured.
const SPELL: Duration = Duration::from_millis(10);
/// Spells of a trial: all threads, one thread, all threads, one thread.
const SPELLS_PER_TRIAL: u32 = 4;
/// Time between trials while all threads work, and its maximum while one thread works.
const TRIAL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_TRIAL_INTERVAL: Duration = Duration::from_secs(8);
/// Time between trials, in units of what the last trial lost.
const LOSS_TO_INTERVAL: f64 = 200.0;
/// Rounds before the first trial, which may lose about the time of one.
const ROUNDS_TO_FIRST: u32 = 100;
/// Speed relative to the last trial below which a new trial starts at once.
const SLOWDOWN: f64 = 0.5;

/// Which threads work on the next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    All,
    One,
}

/// Makes the choice, round by round.
#[derive(Debug)]
pub struct ThreadChoice {
    chosen: Threads,
    /// Number of the current spell of a trial; none between trials.
    trial: Option<u32>,
    /// Work and time of the trial so far, with all threads and with one.
    all: Speed,
    one: Speed,
    /// The current spell.
    spell: Speed,
    /// Time since the last trial, and time from it to the next.
    since: Duration,
    until: Duration,
    /// Speed of all threads in the last trial, in events per second.
    usual_all: f64,
    /// Time and work at the last call, and totals of the whole run.
    seen: Option<(Duration, u64)>,
    time: Duration,
    time_one: Duration,
    /// Speedup of all threads over one in the last trial.
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

impl Default for ThreadChoice {
    /// A run begins with all threads.
    fn default() -> ThreadChoice {
        ThreadChoice {
            chosen: Threads::All,
            trial: None,
            all: Speed::default(),
            one: Speed::default(),
            spell: Speed::default(),
            since: Duration::ZERO,
            // The first trial comes early, as the machine may be busy from the start.
            until: 2 * SPELL,
            usual_all: 0.0,
            seen: None,
            time: Duration::ZERO,
            time_one: Duration::ZERO,
            ratio: None,
        }
    }
}

impl ThreadChoice {
    /// Returns which threads work on the round that begins now. `work` is the total work done so far.
    pub fn next(&mut self, now: Duration, work: u64) -> Threads {
        if let Some((before, done)) = self.seen.replace((now, work)) {
            let time = now.saturating_sub(before);
            let mode = self.mode();
            self.spell.add(Speed { work: work - done, time });
            if self.ratio.is_none() {
                self.until = self.until.max(time * ROUNDS_TO_FIRST).min(MAX_TRIAL_INTERVAL);
            }
            self.time += time;
            self.since += time;
            self.time_one += if mode == Threads::One { time } else { Duration::ZERO };
            if self.spell.time >= SPELL {
                let spell = std::mem::take(&mut self.spell);
                self.spell_over(spell);
            }
        }
        self.mode()
    }

    fn mode(&self) -> Threads {
        match self.trial {
            Some(spell) if spell % 2 == 0 => Threads::All,
            Some(_) => Threads::One,
            None => self.chosen,
        }
    }

    fn spell_over(&mut self, spell: Speed) {
        let Some(number) = self.trial else {
            let slower = self.chosen == Threads::All && spell.per_second() < SLOWDOWN * self.usual_all;
            if self.since >= self.until || slower {
                self.trial = Some(0);
            }
            return;
        };
        match number % 2 {
            0 => self.all.add(spell),
            _ => self.one.add(spell),
        }
        let ratio = self.all.per_second() / self.one.per_second().max(1e-9);
        let is_clear = number == 1 && self.chosen == Threads::All && ratio >= BEYOND_DOUBT;
        self.trial = (number + 1 < SPELLS_PER_TRIAL && !is_clear).then_some(number + 1);
        if self.trial.is_none() {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let (all, one) = (std::mem::take(&mut self.all), std::mem::take(&mut self.one));
        self.since = Duration::ZERO;
        if all.work + one.work == 0 {
            return;
        }
        let ratio = all.per_second() / one.per_second().max(1e-9);
        self.usual_all = all.per_second();
        self.ratio = Some(ratio);
        let needed = if self.chosen == Threads::All { STAY_PARALLEL } else { RETURN_PARALLEL };
        let before = self.chosen;
        // What the slower kind of spells took longer than the faster kind would have taken for the same work.
        let lost =
            if ratio >= 1.0 { one.time.mul_f64(1.0 - 1.0 / ratio) } else { all.time.mul_f64(1.0 - ratio) };
        let interval = TRIAL_INTERVAL.max(lost.mul_f64(LOSS_TO_INTERVAL)).min(MAX_TRIAL_INTERVAL);
        self.chosen = if ratio >= needed { Threads::All } else { Threads::One };
        self.until = match (before, self.chosen) {
            (Threads::One, Threads::One) => (2 * self.until).max(interval).min(MAX_TRIAL_INTERVAL),
            _ => interval,
        };
    }

    /// Returns the share of the time in which one thread worked.
    pub fn share_alone(&self) -> f64 {
        self.time_one.as_secs_f64() / self.time.as_secs_f64().max(1e-9)
    }

    /// Returns the speedup of all threads over one in the last trial.
    pub fn ratio(&self) -> Option<f64> {
        self.ratio
    }
}

#[cfg(test)]
mod tests;
