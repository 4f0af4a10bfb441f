//! Rows of next hops by target, small enough to stay in the cache.
//!
//! An *entry* is one word: a single port, or the index of a list of ports, each list stored once. A row is a
//! sequence of chunks of 64 targets. Equal chunks are stored once, and so are equal rows.
//!
//! A chunk has one of two forms. *Direct*: 64 entries, found with one load; regular networks have only a few
//! different ones. *Packed*: a list of the distinct entries in it (its palette, shared by chunks with equal
//! lists) and the index of each target's entry in that list, one bit plane after the other; with 5 to 8
//! distinct entries these are three bits per target. The first [`Limits::direct`] chunks are direct; networks
//! that need more are large and irregular, and their further chunks are packed.

use rustc_hash::FxHashMap;

use super::NextHops;

/// Targets per chunk: the bits of a mask.
pub(in super::super) const TARGETS: u32 = 64;
/// The entry without ports.
pub(super) const EMPTY: u32 = LIST;
/// Bit of an entry that is the index of a list instead of a port.
const LIST: u32 = 1 << 31;
/// Bit of a packed chunk: the other bits are its index in [`Table::packed`].
const PACKED: u32 = 1 << 31;

type Direct = [u32; TARGETS as usize];

#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Chunks of all rows: indices into `direct`, or into `packed` with the bit [`PACKED`].
    chunks: Vec<u32>,
    direct: Vec<Direct>,
    /// Packed chunks: the index of the palette in `lists` and, from bit 32, the number of planes; then the
    /// planes, lowest bit first.
    packed: Vec<u64>,
    /// Lists of ports, and palettes: the length, then the words.
    lists: Vec<u32>,
    /// 0, 1, 2, ...: each single port as a list.
    single: Vec<u32>,
}

impl Table {
    /// The entry of a target in the row that begins at an index given by [`Builder::finish`].
    #[inline(always)]
    pub fn entry(&self, row: usize, target: u32) -> u32 {
        let chunk = self.chunks[row + (target / TARGETS) as usize];
        let place = target % TARGETS;
        match self.direct.get(chunk as usize) {
            Some(entries) => entries[place as usize],
            None => self.packed(chunk & !PACKED, place),
        }
    }

    #[inline(never)]
    fn packed(&self, at: u32, place: u32) -> u32 {
        let at = at as usize;
        let (palette, planes) = (self.packed[at] as u32, (self.packed[at] >> 32) as usize);
        let planes = self.packed[at + 1..][..planes].iter().enumerate();
        let number: u64 = planes.map(|(bit, plane)| (plane >> place & 1) << bit).sum();
        self.list(palette)[number as usize]
    }

    /// The number of a row's chunk in a column.
    pub fn chunk(&self, row: usize, column: usize) -> u32 {
        self.chunks[row + column]
    }

    /// The ports that an entry represents.
    #[inline(always)]
    pub fn hops(&self, entry: u32) -> NextHops<'_> {
        if entry & LIST == 0 {
            NextHops::One(entry)
        } else if entry == EMPTY {
            NextHops::None
        } else {
            NextHops::Many(self.list(entry & !LIST))
        }
    }

    /// The entry represents several ports.
    #[inline(always)]
    pub fn is_list(entry: u32) -> bool {
        entry > EMPTY
    }

    #[inline]
    fn list(&self, at: u32) -> &[u32] {
        let at = at as usize;
        &self.lists[at + 1..][..self.lists[at] as usize]
    }

    /// A port as a list of one.
    pub fn single(&self, port: u32) -> &[u32] {
        std::slice::from_ref(&self.single[port as usize])
    }

    pub fn memory_bytes(&self) -> usize {
        let words = self.chunks.capacity() + self.lists.capacity() + self.single.capacity();
        let packed = self.packed.capacity() * size_of::<u64>();
        words * size_of::<u32>() + self.direct.capacity() * size_of::<Direct>() + packed
    }

    /// Number of direct chunks, and of words of packed ones.
    #[cfg(test)]
    pub fn forms(&self) -> (usize, usize) {
        (self.direct.len(), self.packed.len())
    }
}

/// Targets of a chunk that have the same entry in a row: one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Group {
    pub entry: u32,
    pub targets: u64,
}

/// Sizes from which on a builder saves memory instead of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Number of chunks in the direct form.
    pub direct: usize,
    /// Number of lists, and of chunks, that are remembered for sharing from one column of chunks to the next;
    /// a network with more is too irregular for sharing.
    pub known: usize,
}

impl Limits {
    /// 16 MiB of direct chunks, enough for an irregular graph of 2 000 switches.
    pub const USUAL: Limits = Limits { direct: 1 << 16, known: 1 << 16 };
}

/// Builds a table, one column of chunks after the other.
pub(super) struct Builder {
    table: Table,
    limits: Limits,
    /// Chunks per row.
    columns: usize,
    known_lists: FxHashMap<Box<[u32]>, u32>,
    known_chunks: FxHashMap<Box<[Group]>, u32>,
    /// The largest port that is an entry of its own.
    largest: u32,
}

impl Builder {
    /// For this number of rows and targets.
    pub fn new(limits: Limits, rows: usize, targets: usize) -> Builder {
        let columns = targets.div_ceil(TARGETS as usize);
        let table = Table {
            chunks: vec![0; rows * columns],
            direct: Vec::new(),
            packed: Vec::new(),
            lists: vec![0],
            single: Vec::new(),
        };
        let (known_lists, known_chunks) = (FxHashMap::default(), FxHashMap::default());
        Builder { table, limits, columns, known_lists, known_chunks, largest: 0 }
    }

    /// The entry for these ports.
    pub fn entry(&mut self, ports: &[u32]) -> u32 {
        match *ports {
            [] => EMPTY,
            [port] => {
                self.largest = self.largest.max(port);
                port
            }
            _ => LIST | self.list(ports),
        }
    }

    /// The index of a list, which is stored if it is new.
    fn list(&mut self, list: &[u32]) -> u32 {
        if let Some(&at) = self.known_lists.get(list) {
            return at;
        }
        let lists = &mut self.table.lists;
        let at = lists.len();
        assert!(at < LIST as usize, "lists of next hops take less than 8 GiB");
        lists.push(list.len() as u32);
        lists.extend_from_slice(list);
        self.known_lists.insert(list.into(), at as u32);
        at as u32
    }

    /// Sets the chunk of a row in a column. Groups have different entries and no common target. Targets in
    /// none of them are free: they get the entry of the largest group, so that more chunks are equal.
    pub fn put(&mut self, row: usize, column: usize, groups: &mut Vec<Group>) {
        let covered = groups.iter().fold(0, |all, group| all | group.targets);
        match groups.iter_mut().max_by_key(|group| (group.targets.count_ones(), group.entry)) {
            Some(largest) => largest.targets |= !covered,
            None => groups.push(Group { entry: EMPTY, targets: u64::MAX }),
        }
        groups.sort_unstable_by_key(|group| group.entry);
        let chunk = match self.known_chunks.get(&groups[..]) {
            Some(&chunk) => chunk,
            None => {
                let chunk = self.store(groups);
                self.known_chunks.insert(groups[..].into(), chunk);
                chunk
            }
        };
        self.table.chunks[row * self.columns + column] = chunk;
    }

    fn store(&mut self, groups: &[Group]) -> u32 {
        if self.table.direct.len() < self.limits.direct {
            self.table.direct.push(direct(groups));
            return self.table.direct.len() as u32 - 1;
        }
        let palette: Vec<u32> = groups.iter().map(|group| group.entry).collect();
        let palette = self.list(&palette);
        let packed = &mut self.table.packed;
        let at = packed.len();
        assert!(at < PACKED as usize, "packed routes take less than 16 GiB");
        let planes = usize::BITS - (groups.len() - 1).leading_zeros();
        packed.push(u64::from(palette) | u64::from(planes) << 32);
        for plane in 0..planes {
            let with_bit = groups.iter().enumerate().filter(|(number, _)| number >> plane & 1 == 1);
            packed.push(with_bit.fold(0, |targets, (_, group)| targets | group.targets));
        }
        PACKED | at as u32
    }

    /// Ends a column: discards what was not shared.
    pub fn end_column(&mut self) {
        if self.known_lists.len() > self.limits.known {
            self.known_lists.clear();
        }
        if self.known_chunks.len() > self.limits.known {
            self.known_chunks.clear();
        }
    }

    /// Returns the table, and the index of each row in it. `largest`: the largest port that may be requested
    /// as a list, in addition to those in entries.
    pub fn finish(mut self, largest: u32) -> (Table, Vec<usize>) {
        let begins = self.share_rows();
        let table = &mut self.table;
        table.single = (0..=largest.max(self.largest)).collect();
        table.chunks.shrink_to_fit();
        table.direct.shrink_to_fit();
        table.packed.shrink_to_fit();
        table.lists.shrink_to_fit();
        (self.table, begins)
    }

    /// Stores equal rows once. Returns the new index of each row.
    fn share_rows(&mut self) -> Vec<usize> {
        let (columns, chunks) = (self.columns, &mut self.table.chunks);
        if columns == 0 {
            return Vec::new();
        }
        let mut known: FxHashMap<u64, usize> = FxHashMap::default();
        let mut end = 0;
        let begins = (0..chunks.len() / columns)
            .map(|row| {
                let row = row * columns..(row + 1) * columns;
                let hash = std::hash::BuildHasher::hash_one(&rustc_hash::FxBuildHasher, &chunks[row.clone()]);
                match known.get(&hash) {
                    Some(&same) if chunks[same..same + columns] == chunks[row.clone()] => same,
                    _ => {
                        let begin = end;
                        chunks.copy_within(row, begin);
                        known.insert(hash, begin);
                        end += columns;
                        begin
                    }
                }
            })
            .collect();
        chunks.truncate(end);
        begins
    }
}

fn direct(groups: &[Group]) -> Direct {
    let mut entries = [EMPTY; TARGETS as usize];
    for group in groups {
        let mut left = group.targets;
        while left != 0 {
            entries[left.trailing_zeros() as usize] = group.entry;
            left &= left - 1;
        }
    }
    entries
}
