//! Whether several threads are faster than one right now, found by trying.
//!
//! Threads that work in step wait for each other after every window. On an idle machine that costs little; where other
//! programs use the cores, one thread that is held up holds up all. So the work is timed, mostly together; now and then
//! one stretch is done the other way, and what is faster stays until the next trial. Trials become rarer while nothing
//! changes, and one that is clearly slower is cut short.
//!
//! Time comes in from outside: nothing here reads a clock.

use std::time::Duration;

/// How the next piece of work is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Together,
    Alone,
}

impl Way {
    fn other(self) -> Way {
        match self {
            Way::Together => Way::Alone,
            Way::Alone => Way::Together,
        }
    }
}

/// Work until the first trial, and after a change; four times as much after each trial that changes nothing.
const FIRST_REST: Duration = Duration::from_millis(200);
const LONGEST_REST: Duration = Duration::from_secs(10);
/// The time for which each way is measured; several times what a busy system gives to one thread at a time.
const TRIAL: Duration = Duration::from_millis(16);
/// After this much of it, a trial that is clearly slower ends.
const GLIMPSE: Duration = Duration::from_millis(4);
const CLEARLY: f64 = 0.75;
/// What is to stay must be beaten by so much.
const MARGIN: f64 = 1.05;

/// Where in its round of trials it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Rest,
    /// The way that is in force is measured.
    Here,
    /// The other way is tried; what was measured here is in `speed`.
    There,
}

/// Keeps the faster way.
#[derive(Debug)]
pub struct Pace {
    way: Way,
    stage: Stage,
    rest: Duration,
    /// Of this stage.
    spent: Duration,
    done: u64,
    /// Work a second the way that is in force.
    speed: f64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            way: Way::Together,
            stage: Stage::Rest,
            rest: FIRST_REST,
            spent: Duration::ZERO,
            done: 0,
            speed: 0.0,
        }
    }
}

impl Pace {
    /// How the next piece of work is to be done.
    pub fn way(&self) -> Way {
        match self.stage {
            Stage::There => self.way.other(),
            Stage::Rest | Stage::Here => self.way,
        }
    }

    /// A piece of work, as large as `amount` in any unit, was done that way and took this long.
    pub fn took(&mut self, elapsed: Duration, amount: u64) {
        self.spent += elapsed;
        self.done += amount;
        match self.stage {
            Stage::Rest if self.spent >= self.rest => self.enter(Stage::Here),
            Stage::Here if self.spent >= TRIAL => {
                self.speed = self.measured();
                self.enter(Stage::There);
            }
            Stage::There if self.spent >= TRIAL => self.decide(),
            Stage::There if self.spent >= GLIMPSE && self.measured() < CLEARLY * self.speed => self.decide(),
            _ => {}
        }
    }

    fn measured(&self) -> f64 {
        self.done as f64 / self.spent.as_secs_f64()
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.spent, self.done) = (stage, Duration::ZERO, 0);
    }

    fn decide(&mut self) {
        if self.measured() > MARGIN * self.speed {
            self.way = self.way.other();
            self.rest = FIRST_REST;
        } else {
            self.rest = (self.rest * 4).min(LONGEST_REST);
        }
        self.enter(Stage::Rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work for `seconds` in pieces of 100 us, done so many times as fast together as alone; the share of the time that
    /// was spent together.
    fn share_together(pace: &mut Pace, seconds: f64, gain: f64) -> f64 {
        let piece = Duration::from_micros(100);
        let (mut all, mut together) = (Duration::ZERO, Duration::ZERO);
        while all.as_secs_f64() < seconds {
            let way = pace.way();
            let amount = if way == Way::Together { 1000.0 * gain } else { 1000.0 };
            pace.took(piece, amount as u64);
            all += piece;
            together += if way == Way::Together { piece } else { Duration::ZERO };
        }
        together.as_secs_f64() / seconds
    }

    #[test]
    fn what_is_faster_is_done_nearly_all_the_time() {
        let share = share_together(&mut Pace::default(), 60.0, 1.9);
        assert!(share > 0.999 && share < 1.0, "{share}");
        let share = share_together(&mut Pace::default(), 60.0, 0.6);
        assert!(share < 0.01, "{share}");
    }

    #[test]
    fn a_trial_that_is_clearly_slower_is_cut_short() {
        // Within the first second there is one trial.
        let short = share_together(&mut Pace::default(), 1.0, 1.9);
        let long = share_together(&mut Pace::default(), 1.0, 1.1);
        assert!((short - 0.996).abs() < 1e-3, "{short}");
        assert!((long - 0.984).abs() < 1e-3, "{long}");
    }

    #[test]
    fn it_changes_when_the_machine_does() {
        let mut pace = Pace::default();
        share_together(&mut pace, 5.0, 1.9);
        share_together(&mut pace, 20.0, 0.5);
        assert_eq!(pace.way(), Way::Alone);
        share_together(&mut pace, 20.0, 1.9);
        assert_eq!(pace.way(), Way::Together);
    }

    #[test]
    fn a_small_difference_changes_nothing() {
        assert!(share_together(&mut Pace::default(), 20.0, 0.97) > 0.99);
    }

    #[test]
    fn no_time_and_no_work_do_no_harm() {
        let mut pace = Pace::default();
        (0..1000).for_each(|_| pace.took(Duration::ZERO, 0));
        (0..1000).for_each(|_| pace.took(Duration::from_millis(1), 0));
    }
}
