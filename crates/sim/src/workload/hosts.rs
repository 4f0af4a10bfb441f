//! Choosing hosts: lists such as "0-15,20" as people write them, and partners by permutation.

use super::spec::WorkloadContext;
use crate::engine::random::RandomStream;
use crate::topology::HostId;

/// The hosts that `text` names, in its order: "all", or ids and ranges such as "0-15,20". Ids are those of the
/// topology; "host3" is taken for 3. The error says what is wrong with which part.
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
                return Err(format!("host {label} is named twice"));
            }
            chosen.push(host);
        }
    }
    Ok(chosen)
}

/// One host by its id, such as "3" or "host3".
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

/// A random permutation of `0..n` in which nothing keeps its place, all such permutations equally likely.
/// `n` must be at least 2.
pub fn derangement(n: usize, stream: &mut RandomStream) -> Vec<u32> {
    debug_assert!(n >= 2);
    let mut partner: Vec<u32> = (0..n as u32).collect();
    // One shuffle in e has no fixed point, whatever n is.
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

/// Moves `count` random ones of `items` to its front, in random order.
pub fn draw_to_front<T>(items: &mut [T], count: usize, stream: &mut RandomStream) {
    for i in 0..count.min(items.len()) {
        let j = i + stream.below((items.len() - i) as u64) as usize;
        items.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing;

    #[test]
    fn hosts_are_chosen_by_ids_and_ranges_in_the_order_given() {
        testing::with_hosts(24, |cx| {
            assert_eq!(select("all", cx).unwrap().len(), 24);
            assert_eq!(select("20, 0-3", cx).unwrap(), [20, 0, 1, 2, 3]);
            assert_eq!(select("host5", cx).unwrap(), [5]);
        });
    }

    #[test]
    fn a_wrong_choice_says_which_part_is_wrong() {
        testing::with_hosts(4, |cx| {
            let error = |text| select(text, cx).unwrap_err();
            assert_eq!(error("0-4294967295"), "unknown host 4: the topology has hosts 0 to 3");
            assert_eq!(error("1,1"), "host 1 is named twice");
            assert_eq!(error("3-1"), "range \"3-1\" runs backwards");
            assert!(error("leaf").contains("expected host ids"));
            assert!(error("").contains("expected host ids"));
        });
    }

    #[test]
    fn a_derangement_moves_everything_once_and_all_are_equally_likely() {
        let mut stream = RandomStream::new(1, "derangement");
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..9000 {
            let partner = derangement(4, &mut stream);
            let mut sorted = partner.clone();
            sorted.sort();
            assert_eq!(sorted, [0, 1, 2, 3]);
            assert!((0..4).all(|i| partner[i as usize] != i));
            *seen.entry(partner).or_insert(0u32) += 1;
        }
        // Four things have nine derangements.
        assert_eq!(seen.len(), 9);
        assert!(seen.values().all(|&count| count.abs_diff(1000) < 130), "{seen:?}");
    }
}
