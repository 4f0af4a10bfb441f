//! Links: when they were down, and which of them flows waited for.

use super::Account;
use crate::config::{Change, Config};
use crate::units::Time;
use std::collections::BTreeMap;

/// The times at which each link of the topology was down: (its two ends by node, from, to).
pub fn down_times(config: &Config) -> Vec<([u32; 2], Time, Time)> {
    let links = &config.topology.links;
    // Since when, and how many of the link itself and its two nodes are down.
    let mut open: BTreeMap<usize, (Time, u8)> = BTreeMap::new();
    let mut spans = Vec::new();
    for failure in &config.failures.events {
        let of_switch = |node: u32| -> Vec<usize> {
            (0..links.len()).filter(|&l| links[l].a == node || links[l].b == node).collect()
        };
        let (affected, down) = match failure.change {
            Change::LinkDown(link) => (vec![link as usize], true),
            Change::LinkUp(link) => (vec![link as usize], false),
            Change::SwitchDown(node) => (of_switch(node), true),
            Change::SwitchUp(node) => (of_switch(node), false),
            Change::LinkRate(..) => continue,
        };
        for link in affected {
            if down {
                open.entry(link).or_insert((failure.at, 0)).1 += 1;
            } else if let Some((from, causes)) = open.get_mut(&link) {
                *causes -= 1;
                if *causes == 0 {
                    spans.push((link, *from, failure.at));
                    open.remove(&link);
                }
            }
        }
    }
    spans.extend(open.into_iter().map(|(link, (from, _))| (link, from, Time::MAX)));
    spans.into_iter().map(|(link, from, to)| ([links[link].a, links[link].b], from, to)).collect()
}

/// What a link did to the flows of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkShare {
    pub link: u32,
    /// Flows whose worst queue it was.
    pub flows: usize,
    /// How long all of them waited there for others.
    pub waited: Time,
}

/// Links by the time that flows waited there for others, longest first.
pub fn limits(accounts: &[Account]) -> Vec<LinkShare> {
    let mut links: BTreeMap<u32, LinkShare> = BTreeMap::new();
    for account in accounts {
        for part in account.intervals.iter().filter(|part| part.other.is_some()) {
            let Some(link) = part.link else { continue };
            let share = links.entry(link).or_insert(LinkShare { link, flows: 0, waited: Time::ZERO });
            share.waited += part.to - part.from;
        }
        if let Some((link, _)) = account.worst_queue() {
            links.entry(link).and_modify(|share| share.flows += 1);
        }
    }
    let mut shares: Vec<_> = links.into_values().collect();
    shares.sort_by_key(|share| (std::cmp::Reverse(share.waited), share.link));
    shares
}
