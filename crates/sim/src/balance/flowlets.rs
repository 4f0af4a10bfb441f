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

/// A table of flowlets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowletParameters {
    /// A longer pause between two packets ends a flowlet.
    pub gap: Time,
    pub slots: u32,
}

/// More slots would be a slip of the keyboard.
const MOST_SLOTS: i64 = 1 << 24;

impl FlowletParameters {
    /// With this gap and so many slots where nothing is said.
    pub fn read(p: &mut Parameters, gap: Time, slots: i64) -> FlowletParameters {
        let gap = p.time("gap", gap, keys::GAP);
        if gap == Time::ZERO {
            let message =
                "0s would make a flowlet of every packet: expected more than 0, or kind = \"spray\"";
            p.complain("gap", message.to_string());
        }
        let help = "slots of a flowlet table, of a switch (65536) or of a host (clove: 4096); flows whose hashes meet in one share it";
        FlowletParameters { gap, slots: p.integer("flowlets", slots, (1, MOST_SLOTS), help) as u32 }
    }

    pub fn table(&self) -> FlowletTable {
        FlowletTable::new(self.slots as usize, self.gap.0)
    }
}

/// Slots by hash.
#[derive(Debug, Clone)]
pub struct FlowletTable {
    slots: Vec<Slot>,
    gap: u64,
    /// Flowlets begun, and those of them that left a port that an earlier one of their slot had taken.
    begun: u64,
    moved: u64,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// When its last packet came.
    last: u64,
    /// Where it goes; [`FREE`] before the first.
    port: u32,
}

const FREE: u32 = u32::MAX;

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
        FlowletTable { slots: vec![Slot { last: 0, port: FREE }; slots.max(1)], gap, begun: 0, moved: 0 }
    }

    /// Where a packet with this well mixed hash belongs. If its flowlet goes on, this is its last packet now.
    #[inline]
    pub fn find(&mut self, hash: u32, now: u64) -> Flowlet {
        let slot = ((u64::from(hash) * self.slots.len() as u64) >> 32) as u32;
        let at = &mut self.slots[slot as usize];
        let before = (at.port != FREE).then_some(at.port);
        let port = before.filter(|_| now - at.last <= self.gap);
        if port.is_some() {
            at.last = now;
        }
        Flowlet { slot, port, before }
    }

    /// A flowlet begins, or is sent elsewhere: its packets take this port from now on.
    #[inline]
    pub fn put(&mut self, flowlet: Flowlet, port: u32, now: u64) {
        self.begun += 1;
        self.moved += u64::from(flowlet.before.is_some_and(|before| before != port));
        self.slots[flowlet.slot as usize] = Slot { last: now, port };
    }

    /// Adds flowlets begun so far, and how many of them took another port than the last one of their slot.
    pub fn count(&self, counters: &mut CounterSet) {
        counters.add(&FLOWLETS, [self.begun, self.moved]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flowlet_lasts_while_no_pause_is_longer_than_the_gap() {
        let mut table = FlowletTable::new(4, 100);
        let first = table.find(7, 1000);
        assert_eq!((first.port, first.before), (None, None));
        table.put(first, 3, 1000);
        // Every packet begins the pause anew: 1100, 1200 and 1300 are each 100 behind the one before.
        for now in [1100, 1200, 1300] {
            assert_eq!(table.find(7, now).port, Some(3));
        }
        let next = table.find(7, 1401);
        assert_eq!((next.port, next.before), (None, Some(3)));
        // What was only asked for does not begin a flowlet.
        assert_eq!(table.find(7, 1401).port, None);
        table.put(next, 2, 1401);
        assert_eq!(table.find(7, 1402).port, Some(2));
        assert_eq!((table.begun, table.moved), (2, 1));
    }

    #[test]
    fn flows_that_share_a_slot_share_their_flowlet() {
        let mut table = FlowletTable::new(2, 100);
        let low = table.find(0x1000_0000, 0);
        table.put(low, 5, 0);
        assert_eq!(table.find(0x7fff_ffff, 50).port, Some(5), "the lower half of all hashes is slot 0");
        assert_eq!(table.find(0x8000_0000, 50).port, None, "the upper half is slot 1");
    }

    #[test]
    fn collisions_are_as_many_as_chance_has_them() {
        // k flows in n slots occupy n (1 - (1 - 1/n)^k) of them: 1000 in 1024, 638.
        let mut table = FlowletTable::new(1024, 100);
        for flow in 0..1000u64 {
            let hash = (crate::engine::random::mix64(flow) >> 32) as u32;
            let flowlet = table.find(hash, 0);
            if flowlet.port.is_none() {
                table.put(flowlet, 0, 0);
            }
        }
        let expected = 1024.0 * (1.0 - (1.0 - 1.0 / 1024.0_f64).powi(1000));
        let occupied = table.begun;
        assert!((occupied as f64 - expected).abs() < 40.0, "{occupied} slots, expected {expected:.0}");
    }
}
