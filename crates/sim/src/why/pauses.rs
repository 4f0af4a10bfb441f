//! Because of which queue a port was paused.
//!
//! A node pauses the port of a link while too many bytes that came by it wait in the node. What waits there waits for
//! the links that lead on: most of it for one, whose queue is where the pause goes back to. Where that link was itself
//! paused while it waited, the same holds at the node at its end, so that a tree of pauses is followed to the port
//! at its root, which sends as fast as it can.

use super::Findings;
use super::index::Index;
use crate::net::trace::Passed;
use crate::packet::PacketKind;
use crate::units::Time;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Share of the time that packets wait for a link above which its pauses are the reason, and not its rate: of two equal
/// ports that lead to a third one, each is paused for half of the time.
const BY_PAUSES: f64 = 0.25;

/// A packet in a node: when it had come, and when it had left, by which link.
struct Stay {
    at: Time,
    left: Time,
    link: u32,
    /// Classes in which it came and left.
    classes: [u8; 2],
    size: u16,
}

/// What came by a link, in order, and when the last of those up to each had left.
struct Stays {
    all: Vec<Stay>,
    last_left: Vec<Time>,
}

/// A pause: a link, the class, and when it began.
pub type Pause = (u32, u8, Time);

/// Finds the queues that pauses go back to.
pub struct Origins<'a> {
    findings: &'a Findings,
    index: &'a Index,
    stays: HashMap<u32, Rc<Stays>>,
    known: HashMap<Pause, Option<u32>>,
}

/// Weights of what waits for a link: bytes times time within a pause, bytes times the whole wait, and of that the part
/// in which the link was paused; and since when the first of it waited.
#[derive(Clone, Copy)]
struct Waiting {
    within: f64,
    whole: f64,
    paused: f64,
    since: Time,
}

impl<'a> Origins<'a> {
    pub fn new(findings: &'a Findings, index: &'a Index) -> Origins<'a> {
        Origins { findings, index, stays: HashMap::new(), known: HashMap::new() }
    }

    /// The link whose queue a pause goes back to; none: what waited then is not known, or the pauses close a circle.
    pub fn of(&mut self, pause: Pause) -> Option<u32> {
        if let Some(&known) = self.known.get(&pause) {
            return known;
        }
        let found = self.follow(pause);
        self.known.insert(pause, found);
        found
    }

    fn follow(&mut self, (mut link, mut class, mut from): Pause) -> Option<u32> {
        let to = self.end_of(link, class, from);
        // What the node had when it sent the pause.
        from = from.saturating_sub(self.findings.links[link as usize].3);
        let mut visited = vec![link];
        loop {
            let waiting = self.waiting(link, class, from, to);
            let (&(next, next_class), largest) =
                waiting.iter().max_by(|a, b| a.1.within.total_cmp(&b.1.within).then(b.0.cmp(a.0)))?;
            if largest.paused < BY_PAUSES * largest.whole {
                return Some(next);
            }
            if visited.contains(&next) {
                return None;
            }
            visited.push(next);
            (link, class, from) = (next, next_class, largest.since);
        }
    }

    /// When a pause that began at a time ended.
    fn end_of(&self, link: u32, class: u8, from: Time) -> Time {
        let all = self.index.pauses.get(&(link, class)).map_or(&[][..], |all| all);
        let after = all.partition_point(|&(at, _)| at <= from);
        all[after..].iter().find(|(_, paused)| !paused).map_or(Time::MAX, |&(at, _)| at)
    }

    /// What had come by a link in a class and waited within a time, by the link and the class in which it left.
    fn waiting(&mut self, link: u32, class: u8, from: Time, to: Time) -> BTreeMap<(u32, u8), Waiting> {
        let mut found: BTreeMap<(u32, u8), Waiting> = BTreeMap::new();
        let stays = self.stays_of(link);
        let end = stays.all.partition_point(|stay| stay.at < to);
        for (stay, last_left) in stays.all[..end].iter().zip(&stays.last_left).rev() {
            if *last_left <= from {
                break;
            }
            if stay.classes[0] != class || stay.left <= from {
                continue;
            }
            let (size, left) = (f64::from(stay.size), stay.left.min(to));
            let one = found.entry((stay.link, stay.classes[1])).or_insert(Waiting {
                within: 0.0,
                whole: 0.0,
                paused: 0.0,
                since: stay.at,
            });
            one.within += size * (left.0 - stay.at.max(from).0) as f64;
            one.whole += size * (left.0 - stay.at.0) as f64;
            one.paused += size * self.paused_within(stay.link, stay.classes[1], stay.at, left) as f64;
            one.since = one.since.min(stay.at);
        }
        found
    }

    /// For how many picoseconds of a time a link was paused.
    fn paused_within(&self, link: u32, class: u8, from: Time, to: Time) -> u64 {
        let Some(all) = self.index.pauses.get(&(link, class)) else { return 0 };
        let first = all.partition_point(|&(at, _)| at <= from);
        let mut since = first.checked_sub(1).filter(|&last| all[last].1).map(|_| from);
        let mut sum = 0;
        for &(at, paused) in all[first..].iter().take_while(|(at, _)| *at < to) {
            match since {
                Some(begin) if !paused => {
                    sum += (at - begin).0;
                    since = None;
                }
                None if paused => since = Some(at),
                _ => {}
            }
        }
        sum + since.map_or(0, |begin| (to - begin).0)
    }

    fn stays_of(&mut self, link: u32) -> Rc<Stays> {
        let (findings, index) = (self.findings, self.index);
        let stays = self.stays.entry(link).or_insert_with(|| Rc::new(Stays::of(link, findings, index)));
        Rc::clone(stays)
    }
}

impl Stays {
    fn of(link: u32, findings: &Findings, index: &Index) -> Stays {
        let passed = &findings.trace.passed;
        let node = findings.links[link as usize].1;
        let stay = |came: &Passed| {
            let hops = index.by_id.get(&came.id)?;
            let next = hops.partition_point(|&number| passed[number as usize].time < came.at);
            let hop = &passed[*hops.get(next)? as usize];
            let is_same = findings.links[hop.link as usize].0 == node
                && (hop.kind, hop.flow, hop.seq) == (came.kind, came.flow, came.seq);
            let classes = [came.class, hop.class];
            is_same.then_some(Stay { at: came.at, left: hop.time, link: hop.link, classes, size: came.size })
        };
        let came = index.by_link.get(&link).into_iter().flatten().map(|&number| &passed[number as usize]);
        let is_pause = |one: &&Passed| matches!(one.kind, PacketKind::Pause | PacketKind::Resume);
        let all: Vec<Stay> = came.filter(|one| !is_pause(one)).filter_map(stay).collect();
        let mut last = Time::ZERO;
        let last_left = all.iter().map(|stay| {
            last = last.max(stay.left);
            last
        });
        let last_left = last_left.collect();
        Stays { all, last_left }
    }
}
