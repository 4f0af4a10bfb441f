//! The flowlet table of a switch: where the last burst of a flow went, by hash.
//!
//! A flow pauses longer than the gap; what follows is a new flowlet, which may take another path without overtaking. Flows
//! whose hashes fall on one slot share it: they then count as one, as in hardware.
//!
//! A kernel: whole numbers, no clock, no randomness; times are in any unit that is the same throughout.
//!
//! Source: Sinha, Kandula, Katabi, "Harnessing TCP's burstiness with flowlet switching", HotNets 2004; tables as in Katta
//! et al., "HULA", SOSR 2016, and Alizadeh et al., "CONGA", SIGCOMM 2014.

use super::counted::FLOWLETS;
use super::keys;
use crate::counters::CounterSet;
use crate::parameters::Parameters;
use crate::units::Time;
use rustc_hash::FxHashMap;

/// A table of flowlets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowletParameters {
    /// A longer pause between two packets ends a flowlet.
    pub gap: Time,
    pub slots: u32,
}

/// More slots would be a slip of the keyboard.
const MAX_SLOTS: i64 = 1 << 24;

impl FlowletParameters {
    /// With this gap and so many slots by default.
    pub fn read(p: &mut Parameters, gap: Time, slots: i64) -> FlowletParameters {
        let gap = p.time("gap", gap, keys::GAP);
        if gap == Time::ZERO {
            let message =
                "with 0s every packet would begin a flowlet: expected more than 0, or kind = \"spray\"";
            p.complain("gap", message.to_string());
        }
        let help = "slots of the flowlet table of a switch (65536) or of a host (clove: 4096); flows whose hashes \
                    collide share a slot";
        FlowletParameters { gap, slots: p.integer("flowlets", slots, (1, MAX_SLOTS), help) as u32 }
    }

    pub fn table(&self) -> FlowletTable {
        FlowletTable::new(self.slots as usize, self.gap.0)
    }
}

/// Slots by hash.
#[derive(Debug, Clone)]
pub struct FlowletTable {
    count: u32,
    /// The slots that had a packet: few, as most switches of a large network have few flows.
    slots: FxHashMap<u32, Slot>,
    gap: u64,
    /// Flowlets begun, and those of them that left a port that an earlier one of their slot had taken.
    begun: u64,
    moved: u64,
}

/// When the last packet of a slot came, and the port that it takes.
type Slot = (u64, u32);

/// What a table says of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flowlet {
    slot: u32,
    /// The port of the flowlet that the packet belongs to; none: it begins a new one.
    pub port: Option<u32>,
    /// The port that its slot had last, whatever the time since.
    pub before: Option<u32>,
}

impl FlowletTable {
    /// With so many slots, at least one. A flowlet ends when more than `gap` passes between two packets.
    pub fn new(slots: usize, gap: u64) -> FlowletTable {
        FlowletTable { count: slots.max(1) as u32, slots: FxHashMap::default(), gap, begun: 0, moved: 0 }
    }

    /// Where a packet with this well mixed hash belongs. If its flowlet goes on, this is its last packet now.
    #[inline]
    pub fn find(&mut self, hash: u32, now: u64) -> Flowlet {
        let slot = ((u64::from(hash) * u64::from(self.count)) >> 32) as u32;
        let Some((last, port)) = self.slots.get_mut(&slot) else {
            return Flowlet { slot, port: None, before: None };
        };
        let goes_on = now - *last <= self.gap;
        if goes_on {
            *last = now;
        }
        Flowlet { slot, port: goes_on.then_some(*port), before: Some(*port) }
    }

    /// A flowlet begins, or is sent elsewhere: its packets take this port from now on.
    #[inline]
    pub fn put(&mut self, flowlet: Flowlet, port: u32, now: u64) {
        self.begun += 1;
        self.moved += u64::from(flowlet.before.is_some_and(|before| before != port));
        self.slots.insert(flowlet.slot, (now, port));
    }

    /// By slot: when its last packet came, and the port that it has.
    pub fn slots(&self) -> impl Iterator<Item = (u64, Option<u32>)> + '_ {
        let slot = |slot| self.slots.get(&slot).map_or((0, None), |&(last, port)| (last, Some(port)));
        (0..self.count).map(slot)
    }

    /// Adds flowlets begun so far, and how many of them took another port than the last one of their slot.
    pub fn count(&self, counters: &mut CounterSet) {
        counters.add(&FLOWLETS, [self.begun, self.moved]);
    }
}

#[cfg(test)]
mod tests;
