//! A look at a job graph without playing it: how many messages are under way together, and over how many
//! connections.

use super::super::schedule::Schedule;
use super::{JobGraph, Work};
use crate::units::Time;
use rustc_hash::FxHashSet;

/// Messages that are looked at for their connections.
const LOOKED_AT: u64 = 4_000_000;

impl JobGraph {
    /// Messages that cross the network together. Not more than `limit` of them, and their number.
    pub fn wave(&self, limit: usize) -> (Vec<u32>, u64) {
        let (numbers, count) = self.opening_wave(limit);
        if count > 0 || self.flows() == 0 { (numbers, count) } else { self.first_to_cross(limit) }
    }

    /// Where ranks begin with messages to others of their host: the first one of each rank that crosses the
    /// network.
    fn first_to_cross(&self, limit: usize) -> (Vec<u32>, u64) {
        let mut wave = Wave::new(limit);
        let mut known = FxHashSet::default();
        for number in 0..u64::from(self.messages()).min(LOOKED_AT) as u32 {
            let message = self.message(number);
            if !message.inside && known.insert(message.from) {
                wave.add(self, number);
            }
        }
        (wave.numbers, wave.count)
    }

    /// Those with which the ranks begin their largest operation, as each later one takes the place of
    /// another. Of a list also the first send of each rank.
    fn opening_wave(&self, limit: usize) -> (Vec<u32>, u64) {
        match &self.work {
            Work::Repeated(work) => {
                let phases = 0..work.instances() / work.repeat;
                let waves = phases.map(|instance| {
                    let mut wave = Wave::new(limit);
                    (0..self.ranks()).for_each(|rank| wave.open(self, instance, rank));
                    wave
                });
                waves.max_by_key(|wave| wave.count).map_or((Vec::new(), 0), |wave| (wave.numbers, wave.count))
            }
            Work::Listed(work) => {
                let mut wave = Wave::new(limit);
                for (rank, widest) in work.widest().into_iter().enumerate() {
                    let rank = rank as u32;
                    widest.into_iter().for_each(|instance| wave.open(self, instance, rank));
                    work.first_send(rank).into_iter().for_each(|number| wave.add(self, number));
                }
                (wave.numbers, wave.count)
            }
        }
    }

    /// The longest time for which a rank computes: the job takes at least that long, whatever the network
    /// does.
    pub fn computing(&self) -> Time {
        match &self.work {
            Work::Repeated(work) => {
                Time(work.compute.0.saturating_mul(u64::from(work.repeat.saturating_sub(1))))
            }
            Work::Listed(work) => work.computing(),
        }
    }

    /// Connections that its messages use, as far as it is looked through.
    pub fn connections(&self) -> u64 {
        let mut known = FxHashSet::default();
        match &self.work {
            Work::Repeated(work) => {
                let mut count = 0u64;
                for instance in 0..work.instances() / work.repeat {
                    // Groups differ only in bytes.
                    let phase = work.phase(instance);
                    known.clear();
                    for message in 0..u64::from(phase.largest().messages()).min(LOOKED_AT) as u32 {
                        let transfer = phase.largest().transfer(message);
                        let [from, to] =
                            [transfer.from, transfer.to].map(|member| phase.groups.rank(0, member));
                        if !work.is_inside(instance, from, to) {
                            known.insert((from, to, transfer.channel));
                        }
                    }
                    let groups = u64::from(phase.groups.count(self.ranks()));
                    count = count.max(known.len() as u64 * groups);
                }
                count
            }
            Work::Listed(_) => {
                for number in 0..u64::from(self.messages()).min(LOOKED_AT) as u32 {
                    let message = self.message(number);
                    if !message.inside {
                        known.insert((message.from, message.to, message.channel));
                    }
                }
                known.len() as u64
            }
        }
    }
}

/// Messages under way.
struct Wave {
    numbers: Vec<u32>,
    limit: usize,
    count: u64,
    opens: Vec<u32>,
}

impl Wave {
    fn new(limit: usize) -> Wave {
        Wave { numbers: Vec::new(), limit, count: 0, opens: Vec::new() }
    }

    /// What a rank sends when it joins an operation.
    fn open(&mut self, graph: &JobGraph, instance: u32, rank: u32) {
        let member = graph.member(instance, rank);
        let mut opens = std::mem::take(&mut self.opens);
        opens.clear();
        member.law.opens(member.member, &mut opens);
        // Of the messages beyond the limit the same share crosses the network.
        let room = self.limit - self.numbers.len();
        let (before, looked_at) = (self.count, opens.len().min(room.max(1)));
        opens[..looked_at].iter().for_each(|&open| self.add(graph, member.first + open));
        let (crossing, rest) = (self.count - before, (opens.len() - looked_at) as u64);
        self.count += rest * crossing / looked_at.max(1) as u64;
        self.opens = opens;
    }

    fn add(&mut self, graph: &JobGraph, number: u32) {
        if graph.message(number).inside {
            return;
        }
        self.count += 1;
        if self.numbers.len() < self.limit {
            self.numbers.push(number);
        }
    }
}
