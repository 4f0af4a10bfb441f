//! What flows lose when links and switches go down, and the timeouts for which they wait.
//!
//! ```text
//! continues = first timeout after t + d, or after the link is back
//!                                  t: it goes down, d: until routes avoid it
//! ```
//!
//! From then on packets that leave by the link are lost until routes avoid it. Where there is no other route
//! they are lost until it is back, and routes use it. A flow that keeps to one path loses all packets there
//! with the share of its paths that are down; one whose packets take all paths loses that share of them, and
//! waits for the timeouts of the last of these. Where packets are lost for less than a round trip, those that
//! come later show it, and no timeout is needed if the transport heeds that.
//!
//! Differs from a run: what is still missing after a timeout is not lost again.

use std::cell::{Cell, RefCell};

use rustc_hash::{FxHashMap, FxHashSet};

use super::course::Course;
use super::odds::Paths;
use crate::scenario::Scenario;
use crate::topology::{HostId, LinkId};
use crate::transport::Resends;
use crate::units::Time;

/// Pairs of hosts whose paths are looked at; further ones have the mean chance of these.
const LOOKED_AT: usize = 5000;
/// A smaller chance is left out.
const RARE: f64 = 1e-6;
/// Flows with a higher chance of a loss all have one.
pub const CERTAIN: f64 = 1.0 - 1e-6;

/// Outages of a flow that are looked at.
const OF_A_FLOW: usize = 64;

/// Some of the links go down.
#[derive(Clone, Copy)]
struct Outage {
    at: Time,
    /// The number of the state's beginning.
    turn: usize,
    kind: usize,
}

/// Links that go down together.
struct Kind<'s> {
    dead: FxHashSet<LinkId>,
    /// Before.
    paths: Paths<'s>,
    known: RefCell<FxHashMap<(HostId, HostId), f64>>,
    sum: Cell<f64>,
}

/// What senders do about losses.
#[derive(Debug, Clone, Copy)]
pub struct Senders {
    pub resends: Resends,
    /// The packets of a flow take all paths.
    pub spread: bool,
    /// What is lost while others arrive waits for a timeout.
    pub wait: bool,
}

impl Senders {
    /// When packets are sent again of a flow that loses this share of them from a time on until paths are
    /// usable; none: no timeout is needed. `round_trip`: of the flow, in which it sends what it may have in
    /// flight.
    fn until(&self, share: f64, at: Time, gap: &Gap, round_trip: Time) -> Option<Time> {
        if self.spread && share < CERTAIN {
            return self.wait.then(|| gap.usable.saturating_add(self.resends.after));
        }
        (self.wait || gap.lost > round_trip).then(|| self.resends.first(at, gap.usable))
    }
}

/// How long packets between two hosts do not arrive.
struct Gap {
    /// When they arrive again.
    usable: Time,
    /// For how long no route leads there, and for how long packets leave and are lost.
    waited: Time,
    lost: Time,
}

/// How a flow stands still.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    pub chance: f64,
    /// How much later it ends.
    pub delay: Time,
}

pub struct Outages<'s> {
    course: &'s Course<'s>,
    detection: Time,
    kinds: Vec<Kind<'s>>,
    all: Vec<Outage>,
}

impl<'s> Outages<'s> {
    pub fn of(scenario: &'s Scenario, course: &'s Course<'s>) -> Outages<'s> {
        let mut kinds = Vec::new();
        let mut known: FxHashMap<(usize, usize), Option<usize>> = FxHashMap::default();
        let mut kind_of = |states: (usize, usize)| {
            let [before, after] = [states.0, states.1].map(|state| course.network(state));
            let pairs = before.topology.links.iter().zip(&after.topology.links).zip(0..);
            let dead: FxHashSet<LinkId> =
                pairs.filter(|((was, is), _)| was.rate.0 > 0 && is.rate.0 == 0).map(|(_, id)| id).collect();
            if dead.is_empty() {
                return None;
            }
            let (known, sum) = (RefCell::default(), Cell::default());
            kinds.push(Kind { dead, paths: Paths::over(before), known, sum });
            Some(kinds.len() - 1)
        };
        let pairs = course.turns().windows(2).zip(1..);
        let all = pairs.filter_map(|(pair, turn)| {
            let states = (pair[0].1, pair[1].1);
            let kind = *known.entry(states).or_insert_with(|| kind_of(states));
            Some(Outage { at: pair[1].0, turn, kind: kind? })
        });
        let all = all.collect();
        Outages { course, detection: scenario.failures.detection, kinds, all }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The chance that a path between two hosts is down.
    fn chance(&self, outage: &Outage, ends: (HostId, HostId)) -> f64 {
        let outage = &self.kinds[outage.kind];
        let mut known = outage.known.borrow_mut();
        let count = known.len();
        if let Some(&chance) = known.get(&ends) {
            return chance;
        }
        if count >= LOOKED_AT {
            return outage.sum.get() / count as f64;
        }
        let chance = outage.paths.share(ends, |link| outage.dead.contains(&link));
        outage.sum.set(outage.sum.get() + chance);
        known.insert(ends, chance);
        chance
    }

    /// For how long packets between two hosts do not arrive after an outage; none if for good.
    fn gap(&self, outage: &Outage, (src, dst): (HostId, HostId)) -> Option<Gap> {
        let turns = self.course.turns();
        let has_route = |state: usize| {
            let routes = &self.course.network(state).routes;
            !routes.next_hops(routes.host_node(src), dst).is_empty()
        };
        let detected = outage.at.saturating_add(self.detection);
        let (back, _) = turns[outage.turn..].iter().find(|&&(_, state)| has_route(state))?;
        let is_back = |&&(at, state): &&(Time, usize)| {
            at > outage.at && self.kinds[outage.kind].dead.iter().any(|&link| self.is_up(state, link))
        };
        let back_soon = turns[outage.turn..].iter().take_while(|(at, _)| *at < detected).find(is_back);
        let (usable, waited) = match (back_soon, *back == outage.at) {
            // Before routes have changed.
            (Some(&(at, _)), true) => (at, Time::ZERO),
            (None, true) => (detected, Time::ZERO),
            (_, false) if *back < detected => (*back, back.saturating_sub(outage.at)),
            (_, false) => (back.saturating_add(self.detection), back.saturating_sub(outage.at)),
        };
        Some(Gap { usable, waited, lost: usable.min(detected).saturating_sub(outage.at) })
    }

    fn is_up(&self, state: usize, link: LinkId) -> bool {
        self.course.network(state).topology.links[link as usize].rate.0 > 0
    }

    /// How a flow stands still that starts at a time and would end at another one.
    pub fn of_flow(
        &self,
        ends: (HostId, HostId),
        (start, mut end): (Time, Time),
        (senders, round_trip): (Senders, Time),
    ) -> Option<Stall> {
        let mut found: Option<Stall> = None;
        let next = self.all.partition_point(|outage| outage.at < start);
        for outage in self.all[next.saturating_sub(1)..].iter().take(OF_A_FLOW) {
            if outage.at >= end {
                break;
            }
            let Some(gap) = self.gap(outage, ends).filter(|gap| gap.usable > start) else { continue };
            let share = self.chance(outage, ends);
            if share < RARE {
                continue;
            }
            let at = outage.at.max(start);
            let Some(until) = senders.until(share, at, &gap, round_trip) else { continue };
            // While no route led there the links carried nothing, which its time has.
            let waited = gap.waited.saturating_sub(at.saturating_sub(outage.at));
            let delay = until.saturating_sub(at).saturating_sub(waited);
            let chance = if senders.spread { 1.0 } else { share };
            end = end.saturating_add(delay);
            let before = found.unwrap_or(Stall { chance: 0.0, delay: Time::ZERO });
            found = Some(Stall {
                chance: 1.0 - (1.0 - before.chance) * (1.0 - chance),
                delay: before.delay.saturating_add(delay),
            });
        }
        found
    }

    /// From when to when a job stands still that uses these connections together, where that is more probable
    /// than not.
    pub fn of_job(
        &self,
        pairs: &[(HostId, HostId)],
        (senders, round_trip): (Senders, Time),
    ) -> Vec<(Time, Time)> {
        let of_outage = |outage: &Outage| {
            let (mut others, mut until) = (1.0, outage.at);
            for &ends in pairs {
                let share = self.chance(outage, ends);
                let Some(gap) = self.gap(outage, ends).filter(|_| share >= RARE) else { continue };
                if let Some(at) = senders.until(share, outage.at, &gap, round_trip) {
                    others *= if senders.spread { 0.0 } else { 1.0 - share };
                    until = until.max(at);
                }
            }
            (others <= 0.5).then_some((outage.at, until))
        };
        self.all.iter().filter_map(of_outage).collect()
    }
}
