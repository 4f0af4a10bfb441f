//! Whether every message of a list has its receive, and every receive its message.
//!
//! A list in which some do not match is played all the same: what waits for them never starts, and the run stalls.
//! Here it is known before. Of each rank the messages that are sent to it and those that it receives are summed up as hashes,
//! so that a file of millions of operations takes no memory.

use super::super::graph::listed::{Op, RankList};
use crate::engine::random::mix64;
use rustc_hash::FxHashMap;

/// What is sent to a rank less what it receives: how many, and the sums of their hashes, without and with their sizes.
#[derive(Default, Clone, Copy)]
struct Rest {
    count: i64,
    plain: u64,
    sized: u64,
}

impl Rest {
    fn add(&mut self, sign: i64, (from, tag): (u32, u32), bytes: u64) {
        let plain = mix64(u64::from(from) << 32 | u64::from(tag));
        self.count += sign;
        self.plain = self.plain.wrapping_add(plain.wrapping_mul(sign as u64));
        self.sized = self.sized.wrapping_add(mix64(plain ^ bytes).wrapping_mul(sign as u64));
    }
}

/// The first thing that does not match; none: everything does, as far as receives say whose message they take.
pub fn problem(ranks: &[RankList], place: &str) -> Option<String> {
    let mut rest = vec![Rest::default(); ranks.len()];
    let mut any = false;
    for (rank, list) in ranks.iter().enumerate() {
        for op in &list.ops {
            match *op {
                Op::Send { to, bytes, tag } => rest[to as usize].add(1, (rank as u32, tag), bytes),
                Op::Receive { from, bytes, tag } => {
                    any |= from.is_none() || tag.is_none();
                    rest[rank].add(-1, (from.unwrap_or(0), tag.unwrap_or(0)), bytes);
                }
                _ => {}
            }
        }
    }
    if let Some(rank) = rest.iter().position(|rest| rest.count != 0) {
        let what = match rest[rank].count {
            more @ 1.. => format!("{more} messages more are sent to it than it receives"),
            fewer => format!("it receives {} messages more than are sent to it", -fewer),
        };
        let first = if any { None } else { first(ranks, rank as u32, place) };
        let first = first.map_or(String::new(), |first| format!(", first {first}"));
        return Some(format!("rank {rank}: {what}{first}; what waits for them never starts"));
    }
    if any {
        return None;
    }
    if let Some(rank) = rest.iter().position(|rest| rest.plain != 0) {
        let first = first(ranks, rank as u32, place)?;
        return Some(format!("rank {rank}: {first}; what waits for it never starts"));
    }
    let rank = rest.iter().position(|rest| rest.sized != 0)?;
    Some(format!(
        "rank {rank}: receives name other sizes than their messages have: those of the messages count"
    ))
}

/// The first receive of a rank without a message, or the first message to it without a receive.
fn first(ranks: &[RankList], to: u32, what: &str) -> Option<String> {
    let mut left: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    for (rank, list) in ranks.iter().enumerate() {
        for op in &list.ops {
            if let Op::Send { to: other, tag, .. } = *op
                && other == to
            {
                *left.entry((rank as u32, tag)).or_default() += 1;
            }
        }
    }
    let list = &ranks[to as usize];
    for (op, place) in list.ops.iter().zip(&list.places) {
        if let Op::Receive { from: Some(from), tag: Some(tag), .. } = *op {
            let left = left.entry((from, tag)).or_default();
            *left -= 1;
            if *left < 0 {
                return Some(format!(
                    "a receive from rank {from} with tag {tag} at {what} {place} without a message"
                ));
            }
        }
    }
    let (from, tag) = left.into_iter().filter(|(_, left)| *left > 0).map(|(key, _)| key).min()?;
    Some(format!("a message of rank {from} with tag {tag} without a receive"))
}
