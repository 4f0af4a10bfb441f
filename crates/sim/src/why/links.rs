//! Links: when they were down, and which of them flows waited for.

use super::{Account, Cause};
use crate::config::{Change, Config};
use crate::units::Time;
use std::cmp::Reverse;
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
    /// Flows that waited longer here than at any other link.
    pub flows: usize,
    /// How long all of them waited here, and for what most.
    pub waited: Time,
    pub cause: Cause,
    /// The link whose queue most of its pauses go back to.
    pub paused_for: Option<u32>,
}

/// Links by the time that flows waited there, longest first.
pub fn limits(accounts: &[Account]) -> Vec<LinkShare> {
    let mut waits: BTreeMap<u32, BTreeMap<Cause, Time>> = BTreeMap::new();
    let mut longest: BTreeMap<u32, usize> = BTreeMap::new();
    let mut origins: BTreeMap<u32, BTreeMap<u32, Time>> = BTreeMap::new();
    for (&(link, origin), &time) in accounts.iter().flat_map(|account| &account.paused_for) {
        if let Some(origin) = origin {
            *origins.entry(link).or_default().entry(origin).or_default() += time;
        }
    }
    let sum = |causes: &BTreeMap<Cause, Time>| Time(causes.values().map(|time| time.0).sum());
    for account in accounts {
        let mut own: BTreeMap<u32, BTreeMap<Cause, Time>> = BTreeMap::new();
        for ((link, cause), time) in
            account.by_link().into_iter().filter(|((_, cause), _)| cause.is_at_link())
        {
            own.entry(link).or_default().insert(cause, time);
            *waits.entry(link).or_default().entry(cause).or_default() += time;
        }
        if let Some((&link, _)) = own.iter().max_by_key(|(link, causes)| (sum(causes), Reverse(**link))) {
            *longest.entry(link).or_default() += 1;
        }
    }
    let share = |(link, causes): (&u32, &BTreeMap<Cause, Time>)| {
        let (&cause, _) = causes.iter().max_by_key(|(cause, time)| (**time, Reverse(**cause)))?;
        let flows = longest.get(link).copied().unwrap_or_default();
        let origins = origins.get(link).into_iter().flatten();
        let paused_for = origins.max_by_key(|(link, time)| (**time, Reverse(**link))).map(|(&link, _)| link);
        Some(LinkShare { link: *link, flows, waited: sum(causes), cause, paused_for })
    };
    let mut shares: Vec<_> = waits.iter().filter_map(share).collect();
    shares.sort_by_key(|share| (Reverse(share.waited), share.link));
    shares
}
