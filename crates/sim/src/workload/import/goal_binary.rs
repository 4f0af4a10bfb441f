//! GOAL as LogGOPSim's binary: a header with the place of every rank's block, blocks with their nodes of 39
//! bytes, and after them the lists of dependencies. Little-endian, packed.
//!
//! Source: LogGOPSim, Parser.hpp (layout from there, and from files that its converter wrote).

use super::super::graph::listed::{Op, RankList};
use super::{Choices, Imported, MAX_BYTES};
use crate::units::Time;

const MAGIC: u64 = 4223;
/// Marks a file that a run in place has changed.
const USED: u64 = 2342;
const NODE: usize = 39;
/// Places count from here.
const BASE: usize = 8;

/// Whether a file is GOAL's binary: no text begins so.
pub fn is(bytes: &[u8]) -> bool {
    bytes.get(..8).is_some_and(|head| head[2..] == [0; 6])
}

struct Reader<'b, 'n> {
    name: &'n str,
    bytes: &'b [u8],
}

impl Reader<'_, '_> {
    fn error(&self, at: usize, message: impl std::fmt::Display) -> String {
        format!("{}: byte {at}: {message}", self.name)
    }

    fn take<const N: usize>(&self, at: usize, what: &str) -> Result<[u8; N], String> {
        let found = at.checked_add(N).and_then(|end| self.bytes.get(at..end));
        found.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
            self.error(
                at.min(self.bytes.len()),
                format!("the file ends within {what}: it has {} bytes", self.bytes.len()),
            )
        })
    }

    fn u8(&self, at: usize, what: &str) -> Result<u8, String> {
        self.take::<1>(at, what).map(|[byte]| byte)
    }

    fn u32(&self, at: usize, what: &str) -> Result<u32, String> {
        self.take(at, what).map(u32::from_le_bytes)
    }

    fn u64(&self, at: usize, what: &str) -> Result<u64, String> {
        self.take(at, what).map(u64::from_le_bytes)
    }
}

/// Reads a file. The error begins with `name` and the byte.
pub fn read(name: &str, bytes: &[u8], choices: &Choices) -> Result<Imported, String> {
    let file = Reader { name, bytes };
    match file.u64(0, "its header")? {
        MAGIC => {}
        USED => return Err(file.error(0, "a run has changed this file: make it again from its text")),
        other => {
            return Err(file.error(0, format!("expected {MAGIC}, which begins GOAL's binary; found {other}")));
        }
    }
    let ranks = file.u32(8, "its header")?;
    let table = 14;
    let rest = bytes.len().saturating_sub(table) / 16;
    if ranks == 0 || ranks as usize > rest {
        return Err(file.error(8, format!("{ranks} ranks, but the file has room for {rest} at most")));
    }
    let mut lists = Vec::with_capacity(ranks as usize);
    for rank in 0..ranks {
        let at = table + 16 * rank as usize;
        let what = format!("the place of rank {rank}");
        let (start, end) = (file.u64(at, &what)?, file.u64(at + 8, &what)?);
        let [start, end] = [start, end].map(|place| usize::try_from(place).ok()?.checked_add(BASE));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(file.error(at, format!("rank {rank} lies outside of the file")));
        };
        if end > bytes.len() || start > end {
            return Err(
                file.error(at, format!("rank {rank} lies in bytes {start} to {end} of {}", bytes.len()))
            );
        }
        let block = Reader { name, bytes: &bytes[..end] };
        lists.push(block_of(&block, start, rank, ranks)?);
    }
    super::goal_text::finished((name, "node"), lists, choices)
}

/// The operations of a rank, in the block that begins at `start` and ends with the reader.
fn block_of(file: &Reader, start: usize, rank: u32, ranks: u32) -> Result<RankList, String> {
    let what = format!("rank {rank}");
    let (count, roots) = (file.u32(start, &what)? as usize, file.u32(start + 4, &what)? as usize);
    let nodes = start + 8 + 4 * roots;
    let room = file.bytes.len().saturating_sub(nodes) / NODE;
    if count > room {
        return Err(file.error(start, format!("rank {rank} has {count} nodes, but room for {room}")));
    }
    let appendix = nodes + NODE * count;
    let (mut ops, mut places) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut resources = Vec::with_capacity(count);
    let (mut ends, mut starts) = (Vec::new(), Vec::new());
    let mut declared = Vec::with_capacity(count);
    for node in 0..count {
        let at = nodes + NODE * node;
        let what = format!("node {node} of rank {rank}");
        declared.push(file.u32(at, &what)?);
        let (kind, peer, size) =
            (file.u8(at + 4, &what)?, file.u32(at + 5, &what)?, file.u64(at + 9, &what)?);
        let (tag, cpu, nic) = (file.u32(at + 17, &what)?, file.u8(at + 21, &what)?, file.u8(at + 22, &what)?);
        let known = |any: bool| match peer {
            u32::MAX if any => Ok(None),
            peer if peer < ranks => Ok(Some(peer)),
            peer => {
                Err(file.error(at + 5, format!("{what}: rank {peer} does not exist: the file has {ranks}")))
            }
        };
        let op = match kind {
            1 | 2 if size > MAX_BYTES => {
                return Err(file.error(at + 9, format!("{what}: {size} bytes are above the limit of 1 TB")));
            }
            1 => Op::Send { to: known(false)?.unwrap_or(0), bytes: size, tag },
            2 => Op::Receive { from: known(true)?, bytes: size, tag: (tag != u32::MAX).then_some(tag) },
            3 => {
                let time = size.checked_mul(1000).map(Time).filter(|&t| t < super::super::spec::LAST_START);
                let time = time.ok_or_else(|| file.error(at + 9, format!("{what}: longer than 46 days")))?;
                Op::Compute { time, stream: u16::from(cpu) }
            }
            other => {
                let message = format!("{what}: unknown type {other} (known: 1 send, 2 recv, 3 calc)");
                return Err(file.error(at + 4, message));
            }
        };
        for (offset, pairs) in [(23, &mut ends), (31, &mut starts)] {
            let (number, first) = (file.u32(at + offset, &what)?, file.u32(at + offset + 4, &what)?);
            let from = appendix.saturating_add(4 * first as usize);
            let room = file.bytes.len().saturating_sub(from) / 4;
            if number as usize > room {
                let message = format!("{what}: {number} nodes wait for it, but the list has room for {room}");
                return Err(file.error(at + offset, message));
            }
            for place in (0..number as usize).map(|place| from + 4 * place) {
                let later = file.u32(place, &what)?;
                if later as usize >= count {
                    let message = format!("node {later} does not exist: rank {rank} has {count}");
                    return Err(file.error(place, message));
                }
                pairs.push((node as u32, later));
            }
        }
        ops.push(op);
        places.push(node as u64);
        resources.push((cpu, nic));
    }
    let list = RankList::new(ops, places, &ends, &starts).with_resources(resources);
    if let Some(node) = (0..count).find(|&node| declared[node] != list.needs[node]) {
        let (says, found) = (declared[node], list.needs[node]);
        let message = format!("node {node} of rank {rank} waits for {says} nodes, but {found} name it");
        return Err(file.error(nodes + NODE * node, message));
    }
    Ok(list)
}
