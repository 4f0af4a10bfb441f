//! The network over time, as failures change it: the states that it has, and when it is in which.
//!
//! ```text
//! carried from a to b = sum over states of C T     C: rate of the links in a state, T: time in it from a to b
//! ```
//!
//! Differs from a run: routes avoid at once what is down. For what is lost there see [`outages`](super::outages).

use rustc_hash::{FxHashMap, FxHashSet};

use super::failing::{MAX_STATES, State};
use crate::config::{Change, Until};
use crate::engine::random::mix64;
use crate::net::failures::Failure;
use crate::scenario::Scenario;
use crate::scenario::network::Network;
use crate::topology::{KnownLongest, LinkId, Routes};
use crate::units::{Rate, Time};

/// Links of all states together; there are fewer states of larger networks.
const MAX_LINKS: usize = 1_000_000;

/// The states of a network, in the order in which they come first; the first is that without failures.
pub struct Course<'s> {
    healthy: &'s Network,
    changed: Vec<Network>,
    /// When a state begins, in order of time, the first at 0.
    turns: Vec<(Time, usize)>,
    /// By turn and state, the seconds in that state before the turn.
    passed: Vec<f64>,
}

impl<'s> Course<'s> {
    /// States beyond a maximum number are as the last one before.
    pub fn of(scenario: &'s Scenario) -> Course<'s> {
        let (healthy, events) = (&scenario.network, &scenario.failures.events);
        let limit = MAX_STATES.min(MAX_LINKS / healthy.topology.links.len().max(1)).max(1);
        let stop = match scenario.until {
            Until::At(stop) => stop,
            Until::FlowsDone { .. } => Time::MAX,
        };
        let mut course =
            Course { healthy, changed: Vec::new(), turns: vec![(Time::ZERO, 0)], passed: Vec::new() };
        let mut state = State::of(&healthy.topology);
        // Equal states have equal sums of numbers.
        let mut sum = 0u64;
        let mut known: FxHashMap<u64, usize> = FxHashMap::default();
        known.insert(sum, 0);
        for together in events.chunk_by(|one, next| one.at == next.at) {
            let at = together[0].at;
            if at > stop {
                break;
            }
            for event in together {
                let before = state.number(event.change);
                state.take(event.change);
                sum = sum.wrapping_sub(before).wrapping_add(state.number(event.change));
            }
            let place = known.get(&sum).copied().unwrap_or_else(|| {
                if course.changed.len() < limit {
                    course.changed.push(network(scenario, &state));
                    known.insert(sum, course.changed.len());
                }
                course.changed.len()
            });
            if at == Time::ZERO {
                course.turns[0].1 = place;
            } else if course.turns.last().is_some_and(|&(_, before)| before != place) {
                course.turns.push((at, place));
            }
        }
        let mut passed = vec![0.0; course.states()];
        let mut before: Option<(Time, usize)> = None;
        for &(at, state) in &course.turns {
            if let Some((from, state)) = before {
                passed[state] += at.saturating_sub(from).as_seconds();
            }
            course.passed.extend(&passed);
            before = Some((at, state));
        }
        course
    }

    pub fn states(&self) -> usize {
        1 + self.changed.len()
    }

    pub fn network(&self, state: usize) -> &Network {
        state.checked_sub(1).map_or(self.healthy, |place| &self.changed[place])
    }

    /// When a state begins, in order of time.
    pub fn turns(&self) -> &[(Time, usize)] {
        &self.turns
    }

    /// The network is in one state while the run lasts.
    pub fn is_constant(&self) -> bool {
        self.turns.len() == 1
    }

    /// When work ends that begins at a time and takes this number of seconds in each state.
    pub fn done(&self, from: Time, seconds: impl Fn(usize) -> f64) -> Time {
        const AT_ONCE: f64 = 1e-15;
        self.when(from, 1.0, |state| 1.0 / seconds(state).max(AT_ONCE))
    }

    /// The number of the turn before which nothing is later than a time.
    fn turn_at(&self, time: Time) -> usize {
        self.turns.partition_point(|&(at, _)| at <= time) - 1
    }

    pub fn state_at(&self, time: Time) -> usize {
        self.turns[self.turn_at(time)].1
    }

    /// When the last state before a time began; none for the first one.
    pub fn last_turn(&self, before: Time) -> Option<Time> {
        let turn = self.turns.partition_point(|&(at, _)| at < before);
        (turn > 1).then(|| self.turns[turn - 1].0)
    }

    /// The states that the network is in from one time to another; some may come twice.
    pub fn met(&self, (from, to): (Time, Time)) -> impl Iterator<Item = usize> {
        const MOST: usize = 4 * MAX_STATES;
        let turns = self.turns[self.turn_at(from)..].iter();
        turns.take(MOST).take_while(move |(at, _)| *at <= from || *at < to).map(|&(_, state)| state)
    }

    /// Bits that links carry until a time, with these rates by state.
    fn until(&self, time: Time, rate: &impl Fn(usize) -> f64) -> f64 {
        let turn = self.turn_at(time);
        let (at, state) = self.turns[turn];
        self.until_turn(turn, rate) + rate(state) * time.saturating_sub(at).as_seconds()
    }

    fn until_turn(&self, turn: usize, rate: &impl Fn(usize) -> f64) -> f64 {
        let states = self.states();
        let passed = &self.passed[turn * states..(turn + 1) * states];
        passed.iter().enumerate().map(|(state, seconds)| seconds * rate(state)).sum()
    }

    /// By state, the share of the time between two times that the network is in it.
    pub fn shares(&self, (from, to): (Time, Time)) -> Vec<f64> {
        let whole = to.saturating_sub(from).as_seconds();
        let share = |state: usize| match whole > 0.0 {
            true => self.carried((from, to), |of| f64::from(u8::from(of == state))) / whole,
            false => f64::from(u8::from(self.state_at(from) == state)),
        };
        (0..self.states()).map(share).collect()
    }

    /// Bits that links carry between two times.
    pub fn carried(&self, (from, to): (Time, Time), rate: impl Fn(usize) -> f64) -> f64 {
        (self.until(to, &rate) - self.until(from, &rate)).max(0.0)
    }

    /// When links have carried this many bits. Where they are down for good, which has no end, as if they were not.
    pub fn when(&self, from: Time, bits: f64, rate: impl Fn(usize) -> f64) -> Time {
        let wanted = self.until(from, &rate) + bits;
        let first = self.turn_at(from);
        // What is carried until a turn does not decrease.
        let later = self.turns[first + 1..].partition_point(|&(at, _)| self.until(at, &rate) < wanted);
        let turn = first + later;
        let (at, state) = self.turns[turn];
        let from = at.max(from);
        let left = (wanted - self.until(from, &rate)).max(0.0);
        let now = if rate(state) > 0.0 { rate(state) } else { rate(0) };
        from.saturating_add(Time((left / now * 1e12).min(4e18) as u64))
    }
}

/// The network with the rates that links have from the start on and keep, where that is not as it was built.
pub fn lasting(scenario: &Scenario) -> Option<Network> {
    let Network { topology, routes, .. } = &scenario.network;
    let mut last: FxHashMap<LinkId, (Time, Rate)> = FxHashMap::default();
    for event in &scenario.failures.events {
        if let Change::LinkRate(link, rate) = event.change {
            last.insert(link, (event.at, rate));
        }
    }
    last.retain(|&link, &mut (at, rate)| at == Time::ZERO && topology.links[link as usize].rate != rate);
    if last.is_empty() {
        return None;
    }
    let mut topology = topology.clone();
    last.into_iter().for_each(|(link, (_, rate))| topology.links[link as usize].rate = rate);
    Some(Network { topology, routes: routes.clone(), longest: KnownLongest::default() })
}

/// The network with the links and switches as failures leave them at the start, of those that do not change while the
/// run lasts; none where that is as it was built.
pub fn standing(scenario: &Scenario) -> Option<Network> {
    let thing = |of: Change| match of {
        Change::SwitchDown(node) | Change::SwitchUp(node) => (true, node),
        Change::LinkDown(link) | Change::LinkUp(link) | Change::LinkRate(link, _) => (false, link),
    };
    let (first, later): (Vec<&Failure>, Vec<&Failure>) =
        scenario.failures.events.iter().partition(|event| event.at == Time::ZERO);
    let is_due = |event: &&Failure| !matches!(scenario.until, Until::At(end) if event.at >= end);
    let later: FxHashSet<(bool, u32)> =
        later.into_iter().filter(is_due).map(|event| thing(event.change)).collect();
    let topology = &scenario.network.topology;
    let mut state = State::of(topology);
    let stays = |event: &&Failure| !later.contains(&thing(event.change));
    first.into_iter().filter(stays).for_each(|event| state.take(event.change));
    (state != State::of(topology)).then(|| network(scenario, &state))
}

/// The network in a state: links that are down carry nothing, and no route leads over them.
fn network(scenario: &Scenario, state: &State) -> Network {
    let mut topology = scenario.network.topology.clone();
    let up: Vec<bool> = (0..topology.links.len()).map(|link| state.is_up(&topology, link)).collect();
    for ((link, &up), &rate) in topology.links.iter_mut().zip(&up).zip(&state.rates) {
        link.rate = if up { rate } else { Rate(0) };
    }
    let routes = Routes::compute(&topology, &|link: LinkId| up[link as usize], scenario.rules.next_hops);
    Network { topology, routes, longest: KnownLongest::default() }
}

impl State {
    /// A number that looks random, of the present state of what changes.
    fn number(&self, of: Change) -> u64 {
        match of {
            Change::SwitchDown(node) | Change::SwitchUp(node) => {
                mix64((2 << 32) | u64::from(node)) * u64::from(self.switches_down[node as usize])
            }
            Change::LinkDown(link) | Change::LinkUp(link) | Change::LinkRate(link, _) => {
                let (rate, down) = (self.rates[link as usize].0, self.links_down[link as usize]);
                mix64(mix64((1 << 32) | u64::from(link)) ^ (2 * rate + u64::from(down)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Hooks;
    use std::path::Path;

    #[test]
    fn links_carry_what_they_can_in_each_state() {
        let event = |at: &str, rest: &str| format!("{{ at = \"{at}\", link = [\"host1\", \"s0\"], {rest} }}");
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 2\n[failures]\nevent = [{}, {}, {}]\n[[workload]]\nkind = \"permutation\"\n",
            event("1us", "change = \"rate\", rate = \"10Gbps\", lasts = \"2us\""),
            event("5us", "lasts = \"1us\""),
            event("9us", "change = \"rate\", rate = \"10Gbps\"")
        );
        let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let course = Course::of(&scenario);
        assert_eq!(course.states(), 3, "the last state is that of the first event");
        let rate = |state: usize| course.network(state).topology.links[1].rate.0 as f64;
        let us = |time: u64| Time::from_us(time);
        assert_eq!(
            [0, 1, 3, 5, 6, 10].map(|time| rate(course.state_at(us(time))) / 1e9),
            [100.0, 10.0, 100.0, 0.0, 100.0, 10.0]
        );
        // 100 + 20 + 200 + 0 + 300 Kb, and 10 in each further microsecond.
        for (from, to, bits) in [(0, 9, 620e3), (2, 4, 110e3), (5, 6, 0.0), (9, 11, 20e3)] {
            let carried = course.carried((us(from), us(to)), rate);
            assert!((carried - bits).abs() < 1.0, "{from} {to}: {carried}");
            let when = course.when(us(from), bits, rate).as_ns() / 1e3;
            assert!((when - if bits > 0.0 { to } else { from } as f64).abs() < 1e-3, "{from} {to}: {when}");
        }
        assert_eq!((course.last_turn(us(1)), course.last_turn(us(8))), (None, Some(us(6))));
    }
}
