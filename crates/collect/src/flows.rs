//! Flows, their paths and the changes of these, under a hard limit of memory.
//!
//! A flow takes 80 bytes and a place in an index; a path is kept once for all flows that take it. When the
//! table is full, a new flow has to pass a doorkeeper (bits under two hashes: its second packet within
//! 10 s lets it in) and then replaces the one of 16 flows that was not seen for longest. What an evicted
//! flow had sent goes to a Space-Saving summary, so that the largest flows are known even after eviction:
//! their counts are at most 1/4096 of all evicted packets too high.
//!
//! The path of a flow is that of its newest packet by time; a packet that is older than the newest changes
//! nothing. Packets of the same time count in the order of arrival. When 64 packets in a row take another path
//! and are more than a minute older than the newest one, the clock was set back, or the newest packet's time
//! was wrong: the flow continues from the last of them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::heavy::Heavy;
use crate::ip::FlowKey;
use crate::key::Key;

/// Changes that wait to be taken out.
const MAX_EVENTS: usize = 100_000;
const MAX_PATHS: usize = 100_000;
const CHUNK: usize = 4_096;
/// Flows among which the one to evict is chosen.
const CANDIDATES: u32 = 16;
const MAX_HEAVY: usize = 4_096;
/// Packets in a row, all too old by more than [`CLOCK_STEP_NS`], after which the newest time is no longer used.
const LATE_IN_A_ROW: u8 = 64;
const CLOCK_STEP_NS: u64 = 60_000_000_000;
const DOOR_INTERVAL_NS: u64 = 10_000_000_000;

/// Where a flow is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Of this machine.
    Interface(u32),
    /// An interface of captures that are one point of observation.
    Capture {
        point: u16,
        interface: u32,
    },
    Node(u32),
}

/// What is known of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowState {
    pub packets: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub changes: u32,
    /// Of [`FlowTable::path`].
    pub path: u32,
}

/// A flow took another path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub time_ns: u64,
    pub point: Point,
    pub flow: FlowKey,
    pub before: u32,
    pub after: u32,
}

/// What happened to packets with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowCounts {
    /// Packets of flows that found no place.
    pub refused: u64,
    pub evicted: u64,
    pub paths_refused: u64,
    pub events_refused: u64,
    /// Packets with another path than the flow's, but older than its newest packet.
    pub late: u64,
    /// Flows whose times were set back. Checkpoints of earlier versions lack it.
    #[serde(default)]
    pub clock_steps: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub key: Key,
    pub path: PathId,
    /// Packets in a row that take another path and are older than the newest by more than [`CLOCK_STEP_NS`].
    pub late: u8,
    pub changes: u32,
    pub packets: u64,
    pub first_ns: u64,
    pub last_ns: u64,
}

const _: () = assert!(size_of::<Record>() == 80);

/// The number of a path, in three bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathId([u8; 3]);

const _: () = assert!(MAX_PATHS < 1 << 24);

impl PathId {
    pub fn new(number: u32) -> PathId {
        let [a, b, c, _] = number.to_le_bytes();
        PathId([a, b, c])
    }

    pub fn get(self) -> u32 {
        let [a, b, c] = self.0;
        u32::from_le_bytes([a, b, c, 0])
    }
}

impl FlowCounts {
    pub fn add(&mut self, other: &FlowCounts) {
        self.refused += other.refused;
        self.evicted += other.evicted;
        self.paths_refused += other.paths_refused;
        self.events_refused += other.events_refused;
        self.late += other.late;
        self.clock_steps += other.clock_steps;
    }
}

/// The flows of one shard.
#[derive(Debug)]
pub struct FlowTable {
    seed: u64,
    limit_bytes: usize,
    max_flows: usize,
    max_events: usize,
    chunks: Vec<Box<[Record]>>,
    used: usize,
    /// Place of a flow plus 1; 0: empty. A power of two, at most three quarters full.
    index: Vec<u32>,
    /// Of the first candidate for the next eviction.
    hand: u32,
    door: Doorkeeper,
    heavy: Heavy,
    paths: Vec<Box<[u64]>>,
    path_ids: HashMap<Box<[u64]>, u32>,
    path_bytes: usize,
    changes: Vec<Change>,
    counts: FlowCounts,
}

impl FlowTable {
    /// A table that takes at most this memory. `seed` decides which flows collide.
    pub fn new(limit_bytes: usize, seed: u64) -> FlowTable {
        let max_events = (limit_bytes / 16 / size_of::<Change>()).min(MAX_EVENTS);
        let door = Doorkeeper::new((limit_bytes / 64).min(1 << 20));
        let heavy = Heavy::new((limit_bytes / 64 / Heavy::ENTRY_BYTES).clamp(1, MAX_HEAVY));
        let rest = limit_bytes.saturating_sub(
            limit_bytes / 10 + max_events * size_of::<Change>() + door.bytes() + heavy.max_bytes(),
        );
        // The largest index whose flows still find room next to it.
        let flows_with =
            |slots: usize| (rest.saturating_sub(4 * slots) / size_of::<Record>()).min(slots / 4 * 3);
        let slots = (4..28).map(|bits| 1usize << bits).max_by_key(|&slots| flows_with(slots)).unwrap_or(16);
        FlowTable {
            seed,
            limit_bytes,
            max_flows: flows_with(slots).max(1),
            max_events,
            chunks: Vec::new(),
            used: 0,
            // Zeros: pages that are not touched take no memory.
            index: vec![0; slots],
            hand: 0,
            door,
            heavy,
            paths: Vec::new(),
            path_ids: HashMap::new(),
            path_bytes: 0,
            changes: Vec::new(),
            counts: FlowCounts::default(),
        }
    }

    pub fn counts(&self) -> FlowCounts {
        self.counts
    }

    pub fn len(&self) -> usize {
        self.used
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The number of flows for which there is room.
    pub fn max_flows(&self) -> usize {
        self.max_flows
    }

    /// Flows in no particular order.
    pub fn each(&self) -> impl Iterator<Item = (FlowKey, Point, FlowState)> + '_ {
        (0..self.used as u32).map(|place| {
            let record = self.record(place);
            let (flow, point) = record.key.flow();
            (flow, point, record.state())
        })
    }

    /// Flows in the order of their keys.
    pub fn flows(&self) -> Vec<((FlowKey, Point), FlowState)> {
        let mut flows: Vec<_> = self.each().map(|(flow, point, state)| ((flow, point), state)).collect();
        flows.sort_unstable_by_key(|&(key, _)| key);
        flows
    }

    /// The largest evicted flows: packets, and by how many that may exceed high.
    pub fn heavy(&self) -> Vec<(FlowKey, Point, u64, u64)> {
        let row = |(key, packets, excess): (Key, u64, u64)| {
            let (flow, point) = key.flow();
            (flow, point, packets, excess)
        };
        self.heavy.largest().into_iter().map(row).collect()
    }

    /// The nodes of a path, in the order in which packets pass them.
    pub fn path(&self, id: u32) -> &[u64] {
        self.paths.get(id as usize).map_or(&[], |path| path)
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| size_of_val::<[Record]>(chunk)).sum::<usize>()
            + self.chunks.capacity() * size_of::<Box<[Record]>>()
            + 4 * self.index.len()
            + self.path_bytes
            + self.changes.capacity() * size_of::<Change>()
            + self.door.bytes()
            + self.heavy.bytes()
    }

    /// Takes the path of a packet.
    pub fn observe(&mut self, flow: &FlowKey, point: Point, time_ns: u64, nodes: &[u64]) {
        let key = Key::new(flow, point);
        self.observe_key(key, key.hash(self.seed), time_ns, nodes);
    }

    /// The same for a key whose hash under this table's seed is known.
    pub(crate) fn observe_key(&mut self, key: Key, hash: u64, time_ns: u64, nodes: &[u64]) {
        match self.find(&key, hash) {
            Ok(place) => self.update(place, time_ns, nodes),
            Err(slot) => self.admit(key, hash, slot, time_ns, nodes),
        }
    }

    fn update(&mut self, place: u32, time_ns: u64, nodes: &[u64]) {
        let before = self.record(place).path.get();
        let path = if self.path(before) == nodes { Some(before) } else { self.intern(nodes) };
        let record = self.record_mut(place);
        let newest = time_ns >= record.last_ns;
        let too_old = record.last_ns.saturating_sub(time_ns) > CLOCK_STEP_NS;
        record.packets += 1;
        record.first_ns = record.first_ns.min(time_ns);
        record.last_ns = record.last_ns.max(time_ns);
        let Some(path) = path else {
            self.counts.paths_refused += 1;
            return;
        };
        record.late = if too_old && path != before { record.late + 1 } else { 0 };
        if path == before {
            return;
        }
        let step = record.late >= LATE_IN_A_ROW;
        if !newest && !step {
            self.counts.late += 1;
            return;
        }
        self.counts.clock_steps += u64::from(step);
        let record = self.record_mut(place);
        if step {
            (record.last_ns, record.late) = (time_ns, 0);
        }
        record.path = PathId::new(path);
        record.changes = record.changes.saturating_add(1);
        let (flow, point) = record.key.flow();
        if self.changes.len() >= self.max_events {
            self.counts.events_refused += 1;
            return;
        }
        if self.changes.len() == self.changes.capacity() {
            let more = self.changes.len().clamp(4, self.max_events - self.changes.len());
            self.changes.reserve_exact(more);
        }
        self.changes.push(Change { time_ns, point, flow, before, after: path });
    }

    fn admit(&mut self, key: Key, hash: u64, slot: usize, time_ns: u64, nodes: &[u64]) {
        if self.is_full() && !self.door.passes(hash, time_ns) {
            self.counts.refused += 1;
            return;
        }
        let Some(path) = self.intern(nodes) else {
            self.counts.paths_refused += 1;
            return;
        };
        let path = PathId::new(path);
        let record =
            Record { key, path, late: 0, changes: 0, packets: 1, first_ns: time_ns, last_ns: time_ns };
        self.insert(record, hash, slot);
    }

    fn is_full(&self) -> bool {
        self.used >= self.max_flows
    }

    /// Puts a new flow into the slot of the index where it belongs.
    fn insert(&mut self, record: Record, hash: u64, slot: usize) {
        if !self.is_full() {
            if self.used % CHUNK == 0 {
                let length = CHUNK.min(self.max_flows - self.used);
                self.chunks.push(vec![record; length].into_boxed_slice());
            }
            self.used += 1;
            let place = (self.used - 1) as u32;
            *self.record_mut(place) = record;
            self.index[slot] = place + 1;
            return;
        }
        let place = self.evict();
        *self.record_mut(place) = record;
        // The eviction may have moved the slot.
        if let Err(slot) = self.find(&record.key, hash) {
            self.index[slot] = place + 1;
        }
    }

    pub(crate) fn paths(&self) -> &[Box<[u64]>] {
        &self.paths
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        (0..self.used as u32).map(|place| self.record(place))
    }

    /// Puts a flow back, whose record names a path of its own list.
    pub(crate) fn restore(&mut self, record: &Record, nodes: &[u64]) {
        let hash = record.key.hash(self.seed);
        match (self.find(&record.key, hash), self.intern(nodes)) {
            (Err(slot), Some(path)) => self.insert(Record { path: PathId::new(path), ..*record }, hash, slot),
            _ => self.counts.refused += record.packets,
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn restore_counts(&mut self, counts: FlowCounts) {
        self.counts = counts;
    }

    /// Takes a flow out of the index; returns its place.
    fn evict(&mut self) -> u32 {
        let used = self.used as u32;
        let candidates = (0..CANDIDATES.min(used)).map(|step| (self.hand + step) % used);
        let place = candidates.min_by_key(|&place| self.record(place).last_ns).unwrap_or(0);
        self.hand = (self.hand + CANDIDATES) % used;
        let record = *self.record(place);
        self.heavy.add(record.key, record.packets);
        self.counts.evicted += 1;
        self.remove_from_index(&record.key);
        place
    }

    /// Linear probing: entries after the gap move into it if they may.
    fn remove_from_index(&mut self, key: &Key) {
        let mask = self.index.len() - 1;
        let mut gap = key.hash(self.seed) as usize & mask;
        while self.index[gap] == 0 || self.record(self.index[gap] - 1).key != *key {
            gap = (gap + 1) & mask;
        }
        let mut next = gap;
        loop {
            self.index[gap] = 0;
            loop {
                next = (next + 1) & mask;
                let Some(place) = self.index[next].checked_sub(1) else { return };
                let home = self.record(place).key.hash(self.seed) as usize & mask;
                // Not before its home.
                if next.wrapping_sub(home) & mask >= next.wrapping_sub(gap) & mask {
                    self.index[gap] = place + 1;
                    gap = next;
                    break;
                }
            }
        }
    }

    /// The place of a flow, or the empty slot where it belongs.
    fn find(&self, key: &Key, hash: u64) -> Result<u32, usize> {
        let mask = self.index.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.index[slot].checked_sub(1) {
                None => return Err(slot),
                Some(place) if self.record(place).key == *key => return Ok(place),
                Some(_) => slot = (slot + 1) & mask,
            }
        }
    }

    fn record(&self, place: u32) -> &Record {
        &self.chunks[place as usize / CHUNK][place as usize % CHUNK]
    }

    fn record_mut(&mut self, place: u32) -> &mut Record {
        &mut self.chunks[place as usize / CHUNK][place as usize % CHUNK]
    }

    /// The number of a path; None if there is no room for another.
    fn intern(&mut self, nodes: &[u64]) -> Option<u32> {
        if let Some(&id) = self.path_ids.get(nodes) {
            return Some(id);
        }
        // Twice the nodes, two fat pointers, the number, room that tables keep free.
        let bytes = 2 * size_of_val(nodes) + 128;
        if self.paths.len() >= MAX_PATHS || self.path_bytes + bytes > self.limit_bytes / 10 {
            return None;
        }
        self.path_bytes += bytes;
        let id = self.paths.len() as u32;
        self.paths.push(nodes.into());
        self.path_ids.insert(nodes.into(), id);
        Some(id)
    }
}

impl Record {
    fn state(&self) -> FlowState {
        FlowState {
            packets: self.packets,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            changes: self.changes,
            path: self.path.get(),
        }
    }
}

/// Two rows of bits, which start again with every interval, and when a quarter of them is set.
#[derive(Debug)]
struct Doorkeeper {
    rows: [Vec<u64>; 2],
    set: usize,
    interval: u64,
}

impl Doorkeeper {
    fn new(bytes: usize) -> Doorkeeper {
        let row = vec![0; (bytes / 16).max(8).next_power_of_two()];
        Doorkeeper { rows: [row.clone(), row], set: 0, interval: 0 }
    }

    fn bytes(&self) -> usize {
        self.rows.iter().map(|row| 8 * row.len()).sum()
    }

    /// Whether this is a second packet.
    fn passes(&mut self, hash: u64, time_ns: u64) -> bool {
        let interval = time_ns / DOOR_INTERVAL_NS;
        if interval > self.interval || self.set > 16 * self.rows[0].len() {
            self.interval = self.interval.max(interval);
            self.set = 0;
            self.rows.iter_mut().for_each(|row| row.fill(0));
        }
        let mut known = true;
        for (row, hash) in self.rows.iter_mut().zip([hash >> 32, hash]) {
            let bit = 1 << (hash & 63);
            let word = (hash >> 6) as usize & (row.len() - 1);
            known &= row[word] & bit != 0;
            row[word] |= bit;
        }
        self.set += usize::from(!known);
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    fn flow(number: u32) -> FlowKey {
        FlowKey {
            source: IpAddr::V4(Ipv4Addr::from(number)),
            destination: IpAddr::V6(Ipv6Addr::from(u128::from(number))),
            source_port: number as u16,
            destination_port: 9,
            protocol: 17,
            vni: number.is_multiple_of(2).then_some(number & 0xff_ffff),
            namespace: None,
        }
    }

    #[test]
    fn a_key_holds_its_flow() {
        for number in [0, 1, 77, u32::MAX] {
            for point in [Point::Interface(number), Point::Node(number)] {
                assert_eq!(Key::new(&flow(number), point).flow(), (flow(number), point));
            }
        }
    }

    #[test]
    fn two_million_flows_fit_into_256_megabytes() {
        let table = FlowTable::new(256_000_000 * 9 / 10, 1);
        assert!(table.max_flows() >= 2_000_000, "{}", table.max_flows());
    }

    #[test]
    fn a_flow_that_returns_enters_a_full_table_and_one_that_does_not_is_refused() {
        let mut table = FlowTable::new(1 << 18, 1);
        let room = table.max_flows() as u32;
        for number in 0..3 * room {
            table.observe(&flow(number), Point::Interface(0), u64::from(number), &[1, 2]);
        }
        assert_eq!(table.len(), room as usize);
        let refused = table.counts().refused;
        assert!(refused > u64::from(room), "{refused} of {}", 2 * room);
        for time in 0..2 {
            table.observe(&flow(u32::MAX), Point::Interface(0), 1 << 40 | time, &[1, 3]);
        }
        let late = table.each().find(|(key, ..)| *key == flow(u32::MAX)).unwrap();
        assert_eq!(table.path(late.2.path), [1, 3]);
        assert!(table.bytes() <= 1 << 18, "{}", table.bytes());
        let kept: u64 = table.each().map(|(.., state)| state.packets).sum();
        let evicted: u64 = table.heavy().iter().map(|row| row.2).sum();
        assert_eq!(kept + evicted + table.counts().refused, u64::from(3 * room) + 2);
        // Every flow is still found, after the gaps of the evicted were closed.
        for (key, point, _) in table.each() {
            let key = Key::new(&key, point);
            assert!(table.find(&key, key.hash(1)).is_ok());
        }
    }

    #[test]
    fn the_path_is_that_of_the_newest_packet_in_any_order_of_arrival() {
        let mut packets: Vec<(u64, [u64; 3])> = (0..50).map(|time| (time, [1, time / 10, 9])).collect();
        let found = |packets: &[(u64, [u64; 3])]| {
            let mut table = FlowTable::new(1 << 20, 1);
            for (time, path) in packets {
                table.observe(&flow(1), Point::Node(3), *time, path);
            }
            let (.., state) = table.each().next().unwrap();
            (table.path(state.path).to_vec(), state.packets, state.first_ns, state.last_ns)
        };
        let forward = found(&packets);
        packets.reverse();
        assert_eq!(found(&packets), forward);
        packets.sort_by_key(|(time, _)| time * 7 % 50);
        assert_eq!(found(&packets), forward);
    }

    #[test]
    fn one_packet_of_the_future_or_a_clock_that_is_set_back_stops_no_changes() {
        const SECOND: u64 = 1_000_000_000;
        let hour = 3_600 * SECOND;
        let mut table = FlowTable::new(1 << 20, 1);
        let mut observe =
            |time_ns: u64, node: u64| table.observe(&flow(1), Point::Node(3), time_ns, &[1, node, 9]);
        (0..5).for_each(|n| observe(hour + n, 2));
        observe(1_000 * hour, 2);
        (0..200).for_each(|n| observe(hour + SECOND + n, 4));
        // Back by an hour, to a third path.
        (0..200).for_each(|n| observe(n, 5));
        let (.., state) = table.each().next().unwrap();
        assert_eq!((table.path(state.path), state.changes, state.last_ns), (&[1, 5, 9][..], 2, 199));
        assert_eq!((table.counts().clock_steps, table.counts().late), (2, 126));
        assert_eq!(table.changes()[0].time_ns, hour + SECOND + 63);
    }

    #[test]
    fn packets_of_one_minute_may_come_in_any_order() {
        let mut table = FlowTable::new(1 << 20, 1);
        for second in (0..600).rev() {
            let path = [1, u64::from(second > 300), 9];
            table.observe(&flow(1), Point::Node(3), second * 100_000_000, &path);
        }
        let (.., state) = table.each().next().unwrap();
        assert_eq!((table.path(state.path), table.counts().clock_steps), (&[1, 1, 9][..], 0));
    }
}
