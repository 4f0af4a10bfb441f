//! What sources send between which hosts, as far as warnings look: the first flows of a workload, or messages
//! that are spread over a job, stand for all of it.

use super::FlowSource;
use crate::topology::HostId;
use rustc_hash::FxHashSet;

/// Flows, or messages of jobs, that are looked at.
const LOOKED_AT: usize = 1000;
/// Flows of a workload whose bytes are counted, where it does not know those of all.
const COUNTED: usize = 1_000_000;

/// Flows, or messages of a job, of one size between two hosts.
#[derive(Debug, Clone, Copy)]
pub struct Sending {
    pub ends: (HostId, HostId),
    /// Of each.
    pub bytes: u64,
    pub count: f64,
}

impl Sending {
    /// Of all.
    pub fn all_bytes(&self) -> f64 {
        self.bytes as f64 * self.count
    }
}

/// For every source what is looked at of it, of the transports that `is_own` accepts by number.
pub fn looked_at<'s>(
    sources: &'s [Box<dyn FlowSource>],
    is_own: impl Fn(u16) -> bool + 's,
) -> impl Iterator<Item = (&'s dyn FlowSource, Vec<Sending>)> {
    let each = (LOOKED_AT / sources.len().max(1)).max(1);
    sources.iter().take(LOOKED_AT).map(move |source| {
        let source = source.as_ref();
        (source, first_of(source, &is_own, each))
    })
}

fn first_of(source: &dyn FlowSource, is_own: &impl Fn(u16) -> bool, count: usize) -> Vec<Sending> {
    if let Some(graph) = source.graph() {
        let mut messages = Vec::new();
        if is_own(graph.flow.transport) {
            graph.each_sent(count as u64, |_, sent| {
                let [from, to] = [sent.from, sent.to].map(|rank| graph.hosts[rank as usize]);
                messages.push(Sending { ends: (from, to), bytes: sent.bytes, count: sent.messages });
            });
        }
        return messages;
    }
    let mut copy = source.glance().map_or_else(|| source.clone_box(), |glance| glance.source);
    let flows = std::iter::from_fn(move || copy.next()).take(count).filter(|flow| is_own(flow.transport));
    flows.map(|flow| Sending { ends: (flow.src, flow.dst), bytes: flow.size, count: 1.0 }).collect()
}

/// The hosts that sources send from and to; none: too many flows to look at all of them.
pub fn hosts_in_use(sources: &[Box<dyn FlowSource>]) -> Option<FxHashSet<HostId>> {
    let mut used = FxHashSet::default();
    for source in sources {
        let ends = source.ends();
        if let Some(graph) = source.graph() {
            used.extend(graph.hosts.iter().copied());
        } else if !ends.senders.is_empty() {
            used.extend(ends.senders.into_iter().chain(ends.receivers));
        } else {
            let mut copy = source.clone_box();
            let flows = std::iter::from_fn(|| copy.next()).take(COUNTED);
            used.extend(flows.flat_map(|flow| [flow.src, flow.dst]));
            if copy.next().is_some() {
                return None;
            }
        }
    }
    Some(used)
}

/// The share of the bytes that are of sendings which `counts` accepts; those of which it does not know are
/// left out. None without any.
pub fn share_of_bytes(
    sources: &[Box<dyn FlowSource>],
    is_own: impl Fn(u16) -> bool,
    mut counts: impl FnMut(&Sending) -> Option<bool>,
) -> Option<f64> {
    let mut shares: Vec<(f64, &dyn FlowSource)> = Vec::new();
    for (source, sent) in looked_at(sources, is_own) {
        let (mut all, mut counted) = (0.0, 0.0);
        for one in sent {
            let Some(counts) = counts(&one) else { continue };
            all += one.all_bytes();
            counted += if counts { one.all_bytes() } else { 0.0 };
        }
        if all > 0.0 {
            shares.push((counted / all, source));
        }
    }
    let first = shares.first()?.0;
    if shares.iter().all(|(share, _)| *share == first) {
        return Some(first);
    }
    let (mut all, mut counted) = (0.0, 0.0);
    for (share, source) in shares {
        let bytes = bytes_of_all(source);
        (all, counted) = (all + bytes, counted + share * bytes);
    }
    Some(counted / all)
}

/// The expected bytes of all flows of a source, or the bytes of those that are counted.
fn bytes_of_all(source: &dyn FlowSource) -> f64 {
    if let Some(graph) = source.graph() {
        return graph.bytes() as f64;
    }
    let counted = || {
        let mut copy = source.clone_box();
        std::iter::from_fn(move || copy.next()).take(COUNTED).map(|flow| flow.size as f64).sum()
    };
    source.rest().map_or_else(counted, |rest| rest.bytes as f64)
}
