//! FQ-CoDel: flows hashed into queues, served by deficit round robin with new ones first, each under CoDel.
//!
//! A queue that gets its first packet joins the list of *new* queues with a quantum of bytes to spend; one that has spent
//! them moves to the list of *old* queues with a new quantum; one that is empty leaves, from the new ones by way of the old.
//! A port that holds too much drops from the head of the queue with the most bytes, half of it or a batch.
//!
//! Source: Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290 (2018), §4. The defaults here are those of §5.2 but for
//! the fixed-point arithmetic of Linux and ns-3 (exact where its ticks are too coarse for a scenario's times); with `ecn = false`
//! they are exactly what ns-3.35 installs by default: 1024 queues, 10240 packets, quantum 1500 B, batches of 64, `least` 1500 B
//! (where [compat] does not decide it, it has to be set).
//! Differs from the source: flows are told apart by source, destination and flow, with a hash of our own; other flows
//! collide, as often. With `ns3_senders` the same ones collide ([`super::five_tuple`]).
//! *Parameters*: `queues` (0: one for every flow, no collisions), `quantum`, `batch`, `salt`, `retire`, `ns3_senders`, and CoDel's.

use super::PortMemory;
use super::codel::{Codel, CodelConfig, Law};
use super::drr::read_quantum;
use super::five_tuple::{FiveTuples, ns3_senders};
use super::managed::{
    BUFFER, Discipline, DisciplineParameters, Limit, List, PortFacts, PortPlace, QueueContext, Queued,
    flow_key,
};
use crate::doc::SchemeDoc;
use crate::engine::random::{hash_salt, mix64};
use crate::packet::Packet;
use crate::parameters::Parameters;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::VecDeque;

const RETIREMENTS: &[(&str, &str)] =
    &[("behind", "if there are old queues (RFC 8290, Linux)"), ("always", "always (ns-3.35)")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCodelConfig {
    pub codel: CodelConfig,
    /// 0: one for every flow.
    pub queues: u32,
    pub quantum: u32,
    /// Packets that a full port drops at once.
    pub batch: u32,
    /// Of the hash.
    pub salt: u64,
    /// A new queue that is empty passes through the old ones even if there are none.
    pub always_old: bool,
    /// Flows are hashed as in ns-3, of a dumbbell with so many senders; 0: as they are here.
    pub ns3_senders: u32,
}

impl DisciplineParameters for FqCodelConfig {
    type State = FqCodel;
    const DOC: SchemeDoc = SchemeDoc {
        name: "fq-codel",
        title: "flows are hashed into queues, which are served in turns of equal bytes, new ones first, each with \
                CoDel (RFC 8290)",
        source: "RFC 8290 (2018)",
        validation: "Equal shares in bytes, new flows first, drops of half of the longest queue or 64 packets, and \
                     the expected number of hash collisions (queue/fq_codel.rs).",
        ..SchemeDoc::NONE
    };
    const PACKETS: u32 = 10_240;

    fn read(p: &mut Parameters) -> FqCodelConfig {
        let codel = CodelConfig::read_law(p, true, true);
        let help = "queues that flows are hashed into; 0: one for every flow, without collisions";
        let queues = p.integer("queues", 1024, (0, 1 << 20), help) as u32;
        let quantum = read_quantum(p);
        let batch =
            p.integer("batch", 64, (1, 1 << 20), "maximum number of packets that a full port drops at once")
                as u32;
        let salt = p.integer("salt", 0, (0, i64::MAX), "salt of the hash of flows into queues") as u64;
        let ns3_senders = ns3_senders(p);
        let help = "when a new queue that becomes empty moves to the list of old queues";
        let always_old = p.choice("retire", "behind", RETIREMENTS, help) == "always";
        FqCodelConfig { codel, queues, quantum, batch, salt, ns3_senders, always_old }
    }

    fn marks(&self) -> bool {
        self.codel.ecn
    }

    fn drops_instead(&self) -> Option<&'static str> {
        self.codel.drops_instead()
    }

    fn warning(&self, _limit: Limit, port: &PortFacts) -> Option<String> {
        self.codel.rounded().or_else(|| port.aims_too_long(self.codel.target))
    }

    fn tables(&self) -> PortMemory {
        const QUEUE: u64 = size_of::<FlowQueue>() as u64;
        match u64::from(self.queues) {
            0 => PortMemory { each_flow: 2 * QUEUE, max: u64::MAX, ..PortMemory::default() },
            queues => PortMemory::of_tables(queues * QUEUE),
        }
    }

    fn start(&self, _limit: Limit, place: &PortPlace) -> FqCodel {
        FqCodel {
            law: Law::new(&self.codel, place),
            quantum: i64::from(self.quantum),
            batch: self.batch,
            salt: mix64(self.salt) ^ hash_salt(place.seed),
            always_old: self.always_old,
            tuples: FiveTuples::of(self.ns3_senders),
            hashed: u64::from(self.queues),
            places: FxHashMap::default(),
            queues: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            used: 0,
        }
    }
}

#[derive(Debug, Clone)]
pub struct FqCodel {
    law: Law,
    quantum: i64,
    batch: u32,
    salt: u64,
    /// An empty new queue passes through the old ones even if there are none.
    always_old: bool,
    tuples: Option<FiveTuples>,
    /// 0: as many as flows.
    hashed: u64,
    /// Where a flow's queue is, if each has its own.
    places: FxHashMap<u64, u32>,
    /// None before the first packet: most ports of a large network never have one that waits.
    queues: Vec<FlowQueue>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Queues that were ever used.
    used: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct FlowQueue {
    list: List,
    codel: Codel,
    /// Bytes that it may still send before others have their turn.
    deficit: i64,
    /// In one of the lists.
    active: bool,
    /// Which of the queues was used first, counted from 1; 0: not used yet.
    order: u32,
}

impl FqCodel {
    fn place_of(&mut self, key: u64, five_tuple: impl FnOnce(FiveTuples) -> u32) -> u32 {
        if let Some(tuples) = self.tuples.filter(|_| self.hashed > 0) {
            return (u64::from(five_tuple(tuples)) % self.hashed) as u32;
        }
        if self.hashed > 0 {
            return (mix64(key ^ self.salt) % self.hashed) as u32;
        }
        let next = self.queues.len() as u32;
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.queues.push(FlowQueue::default());
        }
        place
    }

    /// A packet comes to the queue at this place: it is in one of the lists from now on.
    #[inline]
    fn enter(&mut self, place: u32) {
        let queue = &mut self.queues[place as usize];
        if queue.order == 0 {
            self.used += 1;
            queue.order = self.used;
        }
        if !queue.active {
            (queue.active, queue.deficit) = (true, self.quantum);
            self.new.push_back(place);
        }
    }

    /// The queue whose turn it was is empty.
    #[inline]
    fn retire(&mut self, place: u32, is_new: bool) {
        let from = if is_new { &mut self.new } else { &mut self.old };
        from.pop_front();
        // A new queue that is empty passes through the old ones, so that it cannot come back as new at once.
        if is_new && (self.always_old || !self.old.is_empty()) {
            self.old.push_back(place);
        } else {
            self.queues[place as usize].active = false;
        }
    }

    fn make_queues(&mut self) {
        if self.queues.is_empty() {
            self.queues.resize(self.hashed as usize, FlowQueue::default());
        }
    }

    /// Drops from the head of the fattest queue, of equals the one that was used first: half of its bytes, at most a batch.
    #[cold]
    fn drop_from_fattest(&mut self, cx: &mut QueueContext) {
        let lists = self.new.iter().chain(&self.old).copied();
        let fattest = lists.max_by_key(|&q| {
            let queue = &self.queues[q as usize];
            (queue.list.bytes, Reverse(queue.order))
        });
        let Some(fattest) = fattest else { return };
        let list = &mut self.queues[fattest as usize].list;
        let half = list.bytes / 2;
        let (mut bytes, mut packets) = (0, 0);
        while let Some(packet) = cx.waiting.pop(list) {
            bytes += u64::from(packet.size);
            packets += 1;
            cx.drop(packet, &BUFFER);
            if packets >= self.batch || bytes >= half {
                break;
            }
        }
    }

    /// The queue whose turn it is, and whether it is a new one. Queues without anything to spend go to the end of the old ones.
    fn turn(&mut self) -> Option<(u32, bool)> {
        loop {
            let (from, is_new) =
                if self.new.is_empty() { (&mut self.old, false) } else { (&mut self.new, true) };
            let place = *from.front()?;
            let queue = &mut self.queues[place as usize];
            if queue.deficit > 0 {
                return Some((place, is_new));
            }
            queue.deficit += self.quantum;
            from.pop_front();
            self.old.push_back(place);
        }
    }
}

impl Discipline for FqCodel {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        self.law.came(packet.size);
        self.make_queues();
        let place = self.place_of(packet.key, |tuples| cx.five_tuple(&packet, tuples, 0));
        cx.waiting.push(&mut self.queues[place as usize].list, packet);
        self.enter(place);
        while cx.overflows() {
            self.drop_from_fattest(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        loop {
            let (place, is_new) = self.turn()?;
            let queue = &mut self.queues[place as usize];
            if let Some(packet) = queue.codel.dequeue(&self.law, &mut queue.list, cx) {
                queue.deficit -= i64::from(packet.size);
                return Some(packet);
            }
            self.retire(place, is_new);
        }
    }

    fn lets_through(&mut self, packet: &Packet, size: u32) -> bool {
        self.law.came(size);
        self.make_queues();
        let own = self.place_of(flow_key(packet), |tuples| tuples.hash(packet.src, packet.dst, 0));
        if !self.queues[own as usize].codel.pass(&self.law) {
            return false;
        }
        // No other queue is in a list: it is this one's turn.
        self.enter(own);
        self.queues[own as usize].deficit -= i64::from(size);
        true
    }

    /// Queues are found to be empty one after the other, until none is left in a list.
    #[inline]
    fn rest(&mut self) {
        // Mostly one or none: `drain` takes longer.
        while let Some(place) = self.new.pop_front().or_else(|| self.old.pop_front()) {
            let queue = &mut self.queues[place as usize];
            queue.active = false;
            queue.codel.rest();
        }
    }

    fn reset(&mut self) {
        self.queues.iter_mut().for_each(|queue| *queue = FlowQueue::default());
        self.new.clear();
        self.old.clear();
        self.used = 0;
    }
}

#[cfg(test)]
mod tests;
