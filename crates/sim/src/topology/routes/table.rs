//! Rows of next hops by target, small enough to stay in the cache.
//!
//! An *entry* is one word: a single port, or the place of a list of ports, each list stored once. A row is a
//! sequence of chunks of 64 targets. Equal chunks are stored once, and so are equal rows.
//!
//! A chunk has one of two forms. *Direct*: 64 entries, one load away; regular networks have a handful of
//! them. *Packed*: the list of the different entries in it (its palette, shared by all chunks with the same
//! entries) and the number of each target's entry in that list, one bit plane after the other: with 5 to 8
//! different entries three bits a target. The first [`Limits::direct`] chunks are direct, which is as much
//! as a second-level cache holds; networks that need more are irregular ones, whose further chunks are packed.

use rustc_hash::FxHashMap;

use super::NextHops;

/// Targets in a chunk: the bits of a mask.
pub(super) const TARGETS: u32 = 64;
/// The entry without ports.
pub(super) const EMPTY: u32 = 0;
/// Bit of an entry that is a port and not the place of a list.
const ONE: u32 = 1 << 31;
/// Palette of a direct chunk: the empty list, which is no palette.
const DIRECT: u32 = 0;

#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Chunks of all rows.
    chunks: Vec<Chunk>,
    direct: Vec<[u32; TARGETS as usize]>,
    /// Bit planes of packed chunks, lowest bit first.
    planes: Vec<u64>,
    /// Lists of ports and palettes: the length, then that many words.
    lists: Vec<u32>,
    /// 0, 1, 2, ...: each single port as a list.
    single: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Chunk {
    /// Index in `direct`, or of the first bit plane.
    at: u32,
    /// Place of the palette in `lists`, or [`DIRECT`].
    palette: u32,
}

impl Table {
    /// The entry of a target in the row that begins at a place given by [`Builder::finish`].
    #[inline]
    pub fn entry(&self, row: usize, target: u32) -> u32 {
        let chunk = self.chunks[row + (target / TARGETS) as usize];
        let place = target % TARGETS;
        match chunk.palette {
            DIRECT => self.direct[chunk.at as usize][place as usize],
            _ => self.packed(chunk, place),
        }
    }

    #[inline(never)]
    fn packed(&self, chunk: Chunk, place: u32) -> u32 {
        let palette = self.list(chunk.palette);
        let planes = &self.planes[chunk.at as usize..];
        let number = (0..planes_for(palette.len())).map(|bit| (planes[bit] >> place & 1) << bit).sum::<u64>();
        palette[number as usize]
    }

    /// The ports that an entry stands for.
    #[inline]
    pub fn hops(&self, entry: u32) -> NextHops<'_> {
        if entry & ONE != 0 {
            NextHops::One(entry & !ONE)
        } else if entry == EMPTY {
            NextHops::None
        } else {
            NextHops::Many(self.list(entry))
        }
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
        self.chunks.capacity() * size_of::<Chunk>()
            + self.direct.capacity() * size_of::<[u32; TARGETS as usize]>()
            + self.planes.capacity() * size_of::<u64>()
            + (self.lists.capacity() + self.single.capacity()) * size_of::<u32>()
    }

    /// Direct chunks, and bit planes of packed ones.
    #[cfg(test)]
    pub fn forms(&self) -> (usize, usize) {
        (self.direct.len(), self.planes.len())
    }
}

/// Bits that tell so many entries apart.
#[inline]
fn planes_for(entries: usize) -> usize {
    (usize::BITS - (entries - 1).leading_zeros()) as usize
}

/// Targets of a chunk that have the same entry in a row: one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Group {
    pub entry: u32,
    pub targets: u64,
}

/// When a builder turns from speed to memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Chunks in the direct form.
    pub direct: usize,
    /// Lists, and chunks, that are remembered for sharing from one column of chunks to the next: with more
    /// the network is too irregular for that.
    pub known: usize,
}

impl Limits {
    /// 1 MiB of direct chunks.
    pub const USUAL: Limits = Limits { direct: 4096, known: 1 << 16 };
}

/// Makes a table, one column of chunks after the other.
pub(super) struct Builder {
    table: Table,
    limits: Limits,
    /// Chunks of a row.
    columns: usize,
    known_lists: FxHashMap<Box<[u32]>, u32>,
    known_chunks: FxHashMap<Box<[Group]>, Chunk>,
    /// The largest port that stands alone in an entry.
    largest: u32,
}

impl Builder {
    /// For so many rows of so many targets.
    pub fn new(limits: Limits, rows: usize, targets: usize) -> Builder {
        let columns = targets.div_ceil(TARGETS as usize);
        let chunks = vec![Chunk { at: 0, palette: DIRECT }; rows * columns];
        let table =
            Table { chunks, direct: Vec::new(), planes: Vec::new(), lists: vec![0], single: Vec::new() };
        let known_lists = FxHashMap::from_iter([(Box::default(), EMPTY)]);
        Builder { table, limits, columns, known_lists, known_chunks: FxHashMap::default(), largest: 0 }
    }

    /// The entry that stands for these ports.
    pub fn entry(&mut self, ports: &[u32]) -> u32 {
        match *ports {
            [port] => {
                self.largest = self.largest.max(port);
                ONE | port
            }
            _ => self.intern(ports),
        }
    }

    fn intern(&mut self, list: &[u32]) -> u32 {
        if let Some(&at) = self.known_lists.get(list) {
            return at;
        }
        let lists = &mut self.table.lists;
        let at = lists.len() as u32;
        // Each list is made of one to 64 different lists of ports, or of the ports of a node: far fewer
        // words than there are links and chunks.
        assert!(at & ONE == 0, "lists of next hops take less than 8 GiB");
        lists.push(list.len() as u32);
        lists.extend_from_slice(list);
        self.known_lists.insert(list.into(), at);
        at
    }

    /// Sets the chunk of a row in a column. Groups have different entries and no target in common; targets
    /// that are in none of them are free: they get the entry of the largest group, so that more chunks are
    /// equal.
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

    fn store(&mut self, groups: &[Group]) -> Chunk {
        if self.table.direct.len() < self.limits.direct {
            let mut entries = [EMPTY; TARGETS as usize];
            for (place, entry) in entries.iter_mut().enumerate() {
                let group = groups.iter().find(|group| group.targets >> place & 1 == 1);
                *entry = group.map_or(EMPTY, |group| group.entry);
            }
            self.table.direct.push(entries);
            return Chunk { at: self.table.direct.len() as u32 - 1, palette: DIRECT };
        }
        let palette: Vec<u32> = groups.iter().map(|group| group.entry).collect();
        let palette = self.intern(&palette);
        let at = u32::try_from(self.table.planes.len()).expect("bit planes take less than 32 GiB");
        for bit in 0..planes_for(groups.len()) {
            let with_bit = groups.iter().enumerate().filter(|(number, _)| number >> bit & 1 == 1);
            self.table.planes.push(with_bit.fold(0, |plane, (_, group)| plane | group.targets));
        }
        Chunk { at, palette }
    }

    /// A column is done: forgets what has turned out not to be shared.
    pub fn end_column(&mut self) {
        if self.known_lists.len() > self.limits.known {
            self.known_lists.retain(|list, _| list.is_empty());
        }
        if self.known_chunks.len() > self.limits.known {
            self.known_chunks.clear();
        }
    }

    /// The table, and where each row begins in it. `largest` is the largest port that may be asked for as a
    /// list, besides those in entries.
    pub fn finish(mut self, largest: u32) -> (Table, Vec<usize>) {
        let begins = self.share_rows();
        let table = &mut self.table;
        table.single = (0..=largest.max(self.largest)).collect();
        table.chunks.shrink_to_fit();
        table.direct.shrink_to_fit();
        table.planes.shrink_to_fit();
        table.lists.shrink_to_fit();
        (self.table, begins)
    }

    /// Keeps equal rows once; where each row begins then.
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
