//! Cebinae's flow cache: bytes by flow, within what a switch can hold. Emptied at every recomputation.
//!
//! As in the authors' code: stages of slots, each with a hash of its own. A flow takes the first slot of its own that is
//! free; one that finds none is not counted in this window. The alternatives: the newcomer takes over the last stage's slot,
//! and exact counts.
//!
//! Source: Cebinae (SIGCOMM 2022), the authors' ns-3.35 code. Differs from the source: a hash of our own, so other flows collide,
//! as often; whoever adds bytes may give other hashes: theirs are Murmur3 over the five-tuple ([`crate::queue::five_tuple`]) with
//! the perturbations 0 and 2022.

use super::read::CacheKind;
use crate::engine::random::mix64;
use crate::queue::PortMemory;
use rustc_hash::FxHashMap;

/// Between the hashes of two stages, in the authors' code.
pub const PERTURBATION: u32 = 2022;

/// Our own hash of a flow at a stage.
pub fn own_hash(flow: u64, stage: u32) -> u64 {
    mix64(flow ^ mix64(u64::from(stage) + 1))
}

#[derive(Debug, Clone)]
pub struct FlowCache {
    kind: CacheKind,
    slots: usize,
    stage_count: usize,
    /// None until a flow is counted: many ports of a large network have no flow.
    stages: Vec<Vec<Slot>>,
    /// Exact counts, in the order in which flows came, and where each is.
    exact: Vec<Slot>,
    places: FxHashMap<u64, u32>,
    /// Packets of flows that found no slot, since the start.
    pub missed: u64,
}

/// A flow and its bytes; none yet, and the slot is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    pub flow: u64,
    pub bytes: u64,
}

impl FlowCache {
    pub fn new(kind: CacheKind, stages: u32, slots: u32) -> FlowCache {
        FlowCache {
            kind,
            slots: slots.max(1) as usize,
            stage_count: stages.max(1) as usize,
            stages: Vec::new(),
            exact: Vec::new(),
            places: FxHashMap::default(),
            missed: 0,
        }
    }

    /// What such a cache takes.
    pub fn memory(kind: CacheKind, stages: u32, slots: u32) -> PortMemory {
        const SLOT: u64 = size_of::<Slot>() as u64;
        match kind {
            // Of the counts and of the places.
            CacheKind::Exact => PortMemory { each_flow: 3 * SLOT, max: u64::MAX, ..PortMemory::default() },
            _ => PortMemory::of_tables(u64::from(stages.max(1)) * u64::from(slots.max(1)) * SLOT),
        }
    }

    /// Counts bytes of a flow, whose hash at each stage is given.
    pub fn add(&mut self, flow: u64, bytes: u64, hash: impl Fn(u32) -> u64) {
        if bytes == 0 {
            return;
        }
        if self.kind == CacheKind::Exact {
            let next = self.exact.len() as u32;
            let place = *self.places.entry(flow).or_insert(next);
            if place == next {
                self.exact.push(Slot { flow, bytes: 0 });
            }
            self.exact[place as usize].bytes += bytes;
            return;
        }
        if self.stages.is_empty() {
            self.stages = vec![vec![Slot::default(); self.slots]; self.stage_count];
        }
        let last = self.stages.len() - 1;
        for (number, stage) in self.stages.iter_mut().enumerate() {
            let place = (hash(number as u32) % self.slots as u64) as usize;
            let slot = &mut stage[place];
            if slot.bytes == 0 || slot.flow == flow {
                *slot = Slot { flow, bytes: slot.bytes + bytes };
                return;
            }
            if self.kind == CacheKind::Overwrite && number == last {
                *slot = Slot { flow, bytes };
                return;
            }
        }
        self.missed += 1;
    }

    /// What was counted since the cache was emptied, in no order that matters.
    pub fn counts(&self) -> impl Iterator<Item = Slot> + Clone + '_ {
        let staged = self.stages.iter().flatten().copied().filter(|slot| slot.bytes > 0);
        self.exact.iter().copied().chain(staged)
    }

    pub fn clear(&mut self) {
        self.stages.iter_mut().for_each(|stage| stage.fill(Slot::default()));
        self.exact.clear();
        self.places.clear();
    }
}

#[cfg(test)]
mod tests;
