//! What passed on the network of a run, in the orders in which the walk back from a flow's end asks for it.

use super::{Findings, Place, Traced};
use crate::net::trace::Passed;
use crate::packet::PacketKind;
use crate::units::Time;
use std::collections::{BTreeMap, HashMap, HashSet};

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
        Index { by_link, pauses, by_id, lost, dropped, without_route, made }
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
}
