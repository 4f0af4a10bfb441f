//! Selection of hosts: lists such as "0-15,20", and partners by permutation.

use super::spec::WorkloadContext;
use crate::engine::random::RandomStream;
use crate::topology::HostId;

/// Returns the hosts that `text` names, in its order: "all", or ids and ranges such as "0-15,20". Ids are
/// those of the topology; "host3" means 3. The error states what is wrong with which part.
pub fn select(text: &str, cx: &WorkloadContext) -> Result<Vec<HostId>, String> {
    if text.trim() == "all" {
        return Ok((0..cx.hosts).collect());
    }
    let mut chosen = Vec::new();
    let mut taken = vec![false; cx.hosts as usize];
    for part in text.split(',').map(str::trim) {
        let (first, last) = range(part)?;
        for label in first..=last {
            let host = cx.host(label)?;
            if std::mem::replace(&mut taken[host as usize], true) {
                return Err(format!("host {label} is listed twice"));
            }
            chosen.push(host);
        }
    }
    Ok(chosen)
}

/// Returns one host by its id, such as "3" or "host3".
pub fn select_one(text: &str, cx: &WorkloadContext) -> Result<HostId, String> {
    cx.host(label(text)?)
}

fn range(part: &str) -> Result<(u32, u32), String> {
    match part.split_once('-') {
        None => label(part).map(|id| (id, id)),
        Some((first, last)) => match (label(first)?, label(last)?) {
            (first, last) if first <= last => Ok((first, last)),
            _ => Err(format!("range \"{part}\" runs backwards")),
        },
    }
}

fn label(text: &str) -> Result<u32, String> {
    let text = text.trim();
    text.strip_prefix("host")
        .unwrap_or(text)
        .parse()
        .map_err(|_| format!("expected host ids such as \"0-15,20\" or \"all\", found \"{text}\""))
}

/// Returns a random permutation of `0..n` without fixed points, all such permutations equally likely. `n`
/// must be at least 2.
pub fn derangement(n: usize, stream: &mut RandomStream) -> Vec<u32> {
    debug_assert!(n >= 2);
    let mut partner: Vec<u32> = (0..n as u32).collect();
    // One shuffle in e has no fixed point, for any n.
    loop {
        shuffle(&mut partner, stream);
        if partner.iter().enumerate().all(|(i, &p)| i as u32 != p) {
            return partner;
        }
    }
}

/// Fisher and Yates: all orders equally likely.
pub fn shuffle<T>(items: &mut [T], stream: &mut RandomStream) {
    for i in (1..items.len()).rev() {
        items.swap(i, stream.below(i as u64 + 1) as usize);
    }
}

/// Moves `count` random elements of `items` to its front, in random order.
pub fn draw_to_front<T>(items: &mut [T], count: usize, stream: &mut RandomStream) {
    for i in 0..count.min(items.len()) {
        let j = i + stream.below((items.len() - i) as u64) as usize;
        items.swap(i, j);
    }
}

#[cfg(test)]
mod tests;
