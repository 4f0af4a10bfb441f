//! What passed on the network of a run, in the orders in which the walk back from a flow's end asks for it.

use super::{Findings, Place, Traced};
use crate::net::trace::Passed;
use crate::packet::PacketKind;
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// Numbers, as ranges that do not touch: their ends by their beginnings.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range; returns true if some of it was there.
    fn add(&mut self, range: Range<u64>) -> bool {
        let (mut joined, mut again) = (range.clone(), false);
        while let Some((&start, &end)) = self.0.range(..=range.end).next_back()
            && end >= range.start
        {
            again |= start < range.end && end > range.start;
            joined = joined.start.min(start)..joined.end.max(end);
            self.0.remove(&start);
        }
        self.0.insert(joined.start, joined.end);
        again
    }
}

/// What passed, by link, and when links were paused.
pub struct Index {
    /// By link: what passed it, in order.
    pub(super) by_link: HashMap<u32, Vec<u32>>,
    /// By link and class: when the node that it leaves had to pause it, and when it was let go.
    pub(super) pauses: HashMap<(u32, u8), Vec<(Time, bool)>>,
    /// By number of a packet: what passed with it, in order.
    pub(super) by_id: HashMap<u32, Vec<u32>>,
    /// Packets that were lost, and when they would have come.
    pub(super) lost: HashSet<(Time, u32)>,
    /// Packets that a queue, or a port whose link was down, dropped, and when they had come to its node: when it did, and the link
    /// that it leads to.
    pub(super) dropped: HashMap<(Time, u32), (Time, u32)>,
    /// Packets that a switch had no route for: when they came, and the place where they were lost.
    pub(super) without_route: HashMap<(Time, u32), Place>,
    /// By link and the time at which a packet left its host: when it had been made, if it waited there.
    pub(super) made: HashMap<(u32, Time), Time>,
    /// Data of which something had left the host before: by which link, and when.
    pub(super) again: HashSet<(u32, Time)>,
}

impl Index {
    pub fn new(findings: &Findings) -> Index {
        let (mut by_link, mut by_id): (HashMap<u32, Vec<u32>>, HashMap<u32, Vec<u32>>) = Default::default();
        let mut pauses: HashMap<_, Vec<_>> = HashMap::new();
        for (number, one) in findings.trace.passed.iter().enumerate() {
            by_link.entry(one.link).or_default().push(number as u32);
            by_id.entry(one.id).or_default().push(number as u32);
            if matches!(one.kind, PacketKind::Pause | PacketKind::Resume) {
                let (_, _, back, _) = findings.links[one.link as usize];
                let pauses = pauses.entry((back, one.seq as u8)).or_default();
                pauses.push((one.at, one.kind == PacketKind::Pause));
            }
        }
        let passed = &findings.trace.passed;
        let in_order = |all: &mut Vec<u32>| all.sort_by_key(|&number| passed[number as usize].time);
        by_link.values_mut().for_each(in_order);
        by_id.values_mut().for_each(in_order);
        pauses.values_mut().for_each(|all| all.sort());
        let lost = findings.trace.lost.iter().copied().collect();
        let without_route = findings.trace.without_route.iter().map(|&(packet, node, dst)| {
            let since = findings.without_route.get(&(node, dst)).into_iter().flatten();
            let since = since.take_while(|&&time| time <= packet.0).last().copied().unwrap_or_default();
            (packet, Place::WithoutRoute { node, dst, since })
        });
        let without_route = without_route.collect();
        let dropped = findings.trace.dropped.iter().filter_map(|&(time, id, link)| {
            let hops: &Vec<u32> = by_id.get(&id)?;
            let came = hops.iter().rev().map(|&number| passed[number as usize]).find(|hop| hop.at <= time)?;
            let is_here = findings.links[came.link as usize].1 == findings.links[link as usize].0;
            is_here.then_some(((came.at, id), (time, link)))
        });
        let dropped = dropped.collect();
        let queued = findings.trace.queued.iter();
        let made = queued.map(|&(link, time, made)| ((link, time), made)).collect();
        let again = sent_again(findings);
        Index { by_link, pauses, by_id, lost, dropped, without_route, made, again }
    }

    /// Where packets of a flow, of `own`, were lost while it lasted: on links, at switches without a route, and in queues.
    pub fn lost_of<'a>(
        &self,
        flow: &Traced,
        own: impl Iterator<Item = &'a Passed>,
    ) -> BTreeMap<Place, usize> {
        let mut lost = BTreeMap::new();
        for one in own.filter(|one| (flow.start..=flow.finish).contains(&one.at)) {
            let packet = (one.at, one.id);
            let place = match (self.without_route.get(&packet), self.dropped.get(&packet)) {
                _ if self.lost.contains(&packet) => Place::Link(one.link),
                (Some(&place), _) => place,
                (_, Some(&(time, link))) if time <= flow.finish => Place::Link(link),
                _ => continue,
            };
            *lost.entry(place).or_default() += 1;
        }
        lost
    }

    /// How long each link that data of a flow, of `own`, crossed was busy while the flow lasted.
    pub fn used_by(&self, flow: &Traced, own: &[Passed], findings: &Findings) -> BTreeMap<u32, Time> {
        let passed = &findings.trace.passed;
        let lasts = |one: &Passed| one.until.min(flow.finish).saturating_sub(one.time.max(flow.start));
        let is_data = |one: &&Passed| one.kind == PacketKind::Data && one.src == flow.src;
        let links: BTreeSet<u32> = own.iter().filter(is_data).map(|one| one.link).collect();
        let busy = |link: u32| {
            let all = self.by_link.get(&link).map_or(&[][..], |all| all);
            let before = |time: Time| all.partition_point(|&number| passed[number as usize].time < time);
            // The last one before the start may still be on the link then.
            let within = &all[before(flow.start).saturating_sub(1)..before(flow.finish)];
            Time(within.iter().map(|&number| lasts(&passed[number as usize]).0).sum())
        };
        links.into_iter().map(|link| (link, busy(link))).collect()
    }

    /// Where data of a flow, of `own`, were cut to their headers while it lasted, and how many. A header that goes back to its
    /// source does not leave by the port that cut it: of such a one the switch is known.
    pub fn trimmed_of(&self, flow: &Traced, own: &[Passed], findings: &Findings) -> BTreeMap<Place, usize> {
        let passed = &findings.trace.passed;
        let mut trimmed = BTreeMap::new();
        let lasts = flow.start..=flow.finish;
        for one in own.iter().filter(|one| one.kind == PacketKind::Data && lasts.contains(&one.time)) {
            let hops = self.by_id.get(&one.id).map_or(&[][..], |all| all);
            let before = hops.partition_point(|&number| passed[number as usize].time < one.time);
            let Some(hop) = before.checked_sub(1).map(|last| passed[hops[last] as usize]) else { continue };
            let (node, ..) = findings.links[one.link as usize];
            let is_same = (hop.kind, hop.flow, hop.seq) == (one.kind, one.flow, one.seq)
                && findings.links[hop.link as usize].1 == node
                && hop.at <= one.time;
            if is_same && one.size < hop.size {
                let place = if hop.src == one.src { Place::Link(one.link) } else { Place::Node(node) };
                *trimmed.entry(place).or_default() += 1;
            }
        }
        trimmed
    }
}

/// Data that hosts sent of which they had sent something before: by which link, and when.
fn sent_again(findings: &Findings) -> HashSet<(u32, Time)> {
    let from_host = |one: &&Passed| {
        one.kind == PacketKind::Data
            && findings.host_node.get(one.src as usize) == Some(&findings.links[one.link as usize].0)
    };
    let mut launches: Vec<&Passed> = findings.trace.passed.iter().filter(from_host).collect();
    launches.sort_by_key(|one| (one.time, one.at));
    let (mut sent, mut again): (HashMap<_, Ranges>, _) = (HashMap::new(), HashSet::new());
    for one in launches {
        let carried = one.seq..one.seq + u64::from(one.numbers);
        if sent.entry((one.flow, one.sender, one.src)).or_default().add(carried) {
            again.insert((one.link, one.time));
        }
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_known_again_by_any_part_of_it() {
        let mut ranges = Ranges::default();
        for (range, again) in [
            (0..1000, false),
            (2000..3000, false),
            (1000..2000, false),
            // Cut at other places.
            (500..1500, true),
            (2900..3900, true),
            (3900..3901, false),
            (5000..6000, false),
            (3901..5000, false),
            (5999..7000, true),
        ] {
            assert_eq!(ranges.add(range.clone()), again, "{range:?}");
        }
        assert_eq!(ranges.0, BTreeMap::from([(0, 7000)]));
    }
}
