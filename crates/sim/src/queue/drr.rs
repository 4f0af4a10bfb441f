//! Deficit round robin over flows, each with a queue of its own: fair queueing without hashing and without a law of drops.
//!
//! Flows with packets take turns. Each turn adds a quantum to what the flow may send; it sends while its next packet fits,
//! and keeps the rest for its next turn unless it has nothing left. A full port drops from the head of the longest queue.
//!
//! Source: Shreedhar, Varghese, "Efficient Fair Queueing using Deficit Round Robin", SIGCOMM 1995, §3; the longest queue
//! pays: McKenney, "Stochastic Fairness Queueing", INFOCOM 1990.
//! *Parameters*: `quantum` 1500 B (at least the largest packet, or a turn may send nothing: SIGCOMM 1995, §3.2).

use super::managed::{
    BUFFER, Discipline, DisciplineParameters, Limit, List, PortPlace, QueueContext, Queued,
};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::Bytes;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrrConfig {
    pub quantum: u32,
}

impl DisciplineParameters for DrrConfig {
    type State = Drr;
    const DOC: SchemeDoc = SchemeDoc {
        name: "drr",
        title: "one queue per flow, served in turns of equal bytes; a full port drops from the longest queue",
        source: "Shreedhar, Varghese, \"Efficient Fair Queueing using Deficit Round Robin\", SIGCOMM 1995",
        validation: "Turns follow the example of the paper; backlogged flows never differ by more than a quantum \
                     and two packets.",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> DrrConfig {
        DrrConfig { quantum: read_quantum(p) }
    }

    fn start(&self, _limit: Limit, _place: &PortPlace) -> Drr {
        Drr { quantum: u64::from(self.quantum), ..Drr::default() }
    }
}

/// `quantum`, of whoever serves flows by turns.
pub fn read_quantum(p: &mut Parameters) -> u32 {
    let quantum = p.bytes("quantum", Bytes(1500), "bytes that a flow may send in its turn (a full packet)");
    if quantum.0 == 0 || quantum.0 > 1 << 30 {
        p.complain("quantum", format!("{quantum} is not between 1B and 1GiB"));
    }
    quantum.0.clamp(1, 1 << 30) as u32
}

#[derive(Debug, Clone, Default)]
pub struct Drr {
    quantum: u64,
    /// Flows with packets, and the queue of each.
    places: FxHashMap<u64, u32>,
    queues: Vec<FlowQueue>,
    free: Vec<u32>,
    /// Queues with packets; the first has its turn.
    turns: VecDeque<u32>,
    /// The first has had its quantum for this turn.
    begun: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct FlowQueue {
    list: List,
    key: u64,
    deficit: u64,
}

impl Drr {
    fn place_of(&mut self, key: u64) -> u32 {
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        let place = self.free.pop().unwrap_or(self.queues.len() as u32);
        let queue = FlowQueue { key, ..FlowQueue::default() };
        match self.queues.get_mut(place as usize) {
            Some(free) => *free = queue,
            None => self.queues.push(queue),
        }
        self.places.insert(key, place);
        self.turns.push_back(place);
        place
    }

    /// The turn of the first goes to the next.
    fn pass_on(&mut self) {
        self.begun = false;
        self.turns.rotate_left(1);
    }

    /// A queue has nothing left: its flow is forgotten, and with it what it might still have sent.
    fn close(&mut self, at: usize) {
        self.begun &= at != 0;
        let Some(place) = self.turns.remove(at) else { return };
        self.places.remove(&self.queues[place as usize].key);
        self.free.push(place);
    }

    #[cold]
    fn drop_from_longest(&mut self, cx: &mut QueueContext) {
        let bytes = |at: &usize| self.queues[self.turns[*at] as usize].list.bytes;
        let Some(longest) = (0..self.turns.len()).rev().max_by_key(bytes) else { return };
        let queue = &mut self.queues[self.turns[longest] as usize];
        if let Some(packet) = cx.waiting.pop(&mut queue.list) {
            cx.drop(packet, &BUFFER);
        }
        if queue.list.packets == 0 {
            self.close(longest);
        }
    }
}

impl Discipline for Drr {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        let place = self.place_of(packet.key);
        cx.waiting.push(&mut self.queues[place as usize].list, packet);
        while cx.overflows() {
            self.drop_from_longest(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        loop {
            let queue = &mut self.queues[*self.turns.front()? as usize];
            if !self.begun {
                queue.deficit += self.quantum;
                self.begun = true;
            }
            let size = cx.waiting.first(&queue.list).map_or(0, |packet| u64::from(packet.size));
            if size > queue.deficit {
                self.pass_on();
                continue;
            }
            queue.deficit -= size;
            let packet = cx.waiting.pop(&mut queue.list);
            if queue.list.packets == 0 {
                self.close(0);
            }
            return packet;
        }
    }

    fn reset(&mut self) {
        *self = Drr { quantum: self.quantum, ..Drr::default() };
    }
}

#[cfg(test)]
mod tests;
