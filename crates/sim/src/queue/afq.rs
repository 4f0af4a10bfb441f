//! AFQ: approximate fair queueing with as many queues as a switch has, and bytes of flows in a sketch.
//!
//! Queues are rounds, used in turn. A flow may send a number of bytes a round; a packet is bid for the round in which its flow's
//! bytes end with it, and waits in that round's queue. A packet that is bid for a round too far ahead is dropped. A queue
//! that has been emptied ends its round; with all of them empty no round is too far ahead. Bytes of flows are kept in a count-min
//! sketch: of a flow's counters, one a row, the minimum holds, and the new bid raises those below it.
//!
//! Source: Sharma, Liu, Atreya, Krishnamurthy, "Approximating Fair Queueing on Reconfigurable Switches", NSDI 2018, §3, Figure 3.
//! Differs from the source: a hash of our own; the round moves on when the next packet is asked for.
//! *Parameters*: `rounds` (queues) 32, `round_bytes` 6000 B (at least a packet; a flow alone can have less than rounds times this
//! waiting), `sketch_rows` 2, `sketch_slots` 16384.

use super::PortMemory;
use super::managed::{
    BUFFER, Discipline, DisciplineParameters, Limit, List, PortPlace, QueueContext, Queued, cause,
};
use crate::doc::SchemeDoc;
use crate::engine::random::{hash_salt, mix64};
use crate::parameters::Parameters;
use crate::units::Bytes;
use rustc_hash::FxHashMap;

cause!(
    HORIZON,
    "horizon",
    "drops after the last round",
    "Packets that AFQ dropped because their round would have been later than its last one.",
    "Drops by AFQ in an interval, for rounds later than its last one."
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AfqConfig {
    /// Queues.
    pub rounds: u32,
    pub round_bytes: u32,
    pub sketch_rows: u32,
    pub sketch_slots: u32,
}

impl DisciplineParameters for AfqConfig {
    type State = Afq;
    const DOC: SchemeDoc = SchemeDoc {
        name: "afq",
        title: "each queue is a round in which every flow may send the same number of bytes; a sketch counts the \
                bytes of flows (NSDI 2018)",
        source: "Sharma, Liu, Atreya, Krishnamurthy, \"Approximating Fair Queueing on Reconfigurable Switches\", NSDI 2018",
        validation: "Which packets wait in which round and which are dropped, by hand; backlogged flows never \
                     differ by more than two rounds.",
        counters: &[&HORIZON],
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> AfqConfig {
        let rounds = p.integer(
            "rounds",
            32,
            (1, 1 << 16),
            "number of queues, each of which is a round (NSDI 2018: 32)",
        ) as u32;
        let round_bytes = p.bytes("round_bytes", Bytes(6000), "bytes that a flow may send in a round");
        if round_bytes.0 == 0 || round_bytes.0 > 1 << 30 {
            p.complain("round_bytes", format!("{round_bytes} is not between 1B and 1GiB"));
        }
        let sketch_rows = p.integer("sketch_rows", 2, (1, 16), "rows of the count-min sketch") as u32;
        let sketch_slots =
            p.integer("sketch_slots", 16_384, (1, 1 << 22), "counters per row of the sketch") as u32;
        let round_bytes = round_bytes.0.clamp(1, 1 << 30) as u32;
        AfqConfig { rounds, round_bytes, sketch_rows, sketch_slots }
    }

    fn tables(&self) -> PortMemory {
        // Of a counter in a map that is half full.
        const COUNTER: u64 = 2 * size_of::<(u32, u64)>() as u64;
        let (rows, slots) = (u64::from(self.sketch_rows), u64::from(self.sketch_slots));
        let state = u64::from(self.rounds) * size_of::<List>() as u64;
        PortMemory { state, each_flow: rows * COUNTER, max: rows * slots * COUNTER }
    }

    fn start(&self, _limit: Limit, place: &PortPlace) -> Afq {
        let (rows, slots) = (self.sketch_rows.max(1), self.sketch_slots.max(1));
        Afq {
            round_bytes: u64::from(self.round_bytes.max(1)),
            round: 0,
            salt: hash_salt(place.seed),
            queues: vec![List::default(); self.rounds.max(1) as usize],
            rows,
            slots,
            sketch: FxHashMap::default(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Afq {
    round_bytes: u64,
    round: u64,
    /// Of the hash; the run's seed.
    salt: u64,
    queues: Vec<List>,
    rows: u32,
    slots: u32,
    /// The counters that are not zero, by their place, row after row: few, as most ports of a large network have few flows.
    sketch: FxHashMap<u32, u64>,
}

impl Afq {
    /// Where the counter of a flow is in a row.
    fn slot(&self, row: u32, key: u64) -> u32 {
        let slot = mix64(key ^ self.salt ^ mix64(u64::from(row) + 1)) % u64::from(self.slots);
        row * self.slots + slot as u32
    }

    /// Bytes after which the flow's next packet begins.
    fn bid(&self, key: u64) -> u64 {
        let counter = |row| self.sketch.get(&self.slot(row, key)).copied().unwrap_or(0);
        let min = (0..self.rows).map(counter).min().unwrap_or(0);
        min.max(self.round * self.round_bytes)
    }

    fn raise(&mut self, key: u64, bid: u64) {
        for row in 0..self.rows {
            let slot = self.slot(row, key);
            let counter = self.sketch.entry(slot).or_insert(0);
            *counter = bid.max(*counter);
        }
    }
}

impl Discipline for Afq {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        let bid = self.bid(packet.key) + u64::from(packet.size);
        let round = bid / self.round_bytes;
        let rounds = self.queues.len() as u64;
        if round - self.round >= rounds {
            if !cx.waiting.is_empty() {
                return cx.drop(packet, &HORIZON);
            }
            self.round = round;
        }
        if cx.is_full_for(packet.size) {
            return cx.drop(packet, &BUFFER);
        }
        self.raise(packet.key, bid);
        cx.waiting.push(&mut self.queues[(round % rounds) as usize], packet);
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        if cx.waiting.is_empty() {
            return None;
        }
        let rounds = self.queues.len() as u64;
        // What waits is within the next rounds.
        while self.queues[(self.round % rounds) as usize].packets == 0 {
            self.round += 1;
        }
        cx.waiting.pop(&mut self.queues[(self.round % rounds) as usize])
    }

    fn reset(&mut self) {
        self.queues.fill(List::default());
    }
}

#[cfg(test)]
mod tests;
