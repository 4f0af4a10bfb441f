//! Flows beyond those that are replayed: what they bring to the links is looked at, and how many start together with
//! the last one that was replayed.

use super::drawn::Drawn;
use super::{Player, Replay};
use crate::config::Until;
use crate::estimate::offered::Left;
use crate::units::Time;
use crate::workload::{FlowSource, FlowSpec};

/// Of a workload of which fewer flows were replayed, this many are looked at for what they bring to the
/// links.
const LOOKED_AT: u64 = 100_000;

/// Of a workload of which not all flows were replayed, this many are asked whether they wait for others.
const ASKED: usize = 1000;

/// The workloads whose flows were not all replayed, because the maximum number was, and that wait for no others.
pub(super) fn independent(drawn: &Drawn) -> Vec<u16> {
    if drawn.left > 0 || !drawn.upcoming.is_empty() {
        return Vec::new();
    }
    let waits = |(_, first, rest): &(u16, FlowSpec, &dyn FlowSource)| {
        let mut rest = rest.clone_box();
        let mut all = std::iter::once(*first).chain(std::iter::from_fn(|| rest.next())).take(ASKED);
        all.any(|spec| spec.waits_for > 0)
    };
    let left = drawn.merged.left().into_iter();
    left.filter(|of| of.2.graph().is_none() && !waits(of)).map(|(source, ..)| source).collect()
}

impl Replay {
    /// Workloads whose other flows all start no later than the last one that was replayed: they are in flight together.
    pub(super) fn join<'a>(&mut self, workloads: impl Iterator<Item = &'a Left>, last: Time) {
        let more: u64 = workloads.filter(|left| left.last <= last).map(|left| left.flows).sum();
        let replayed = self.flows_in_flight.max(1);
        self.flows += more;
        self.spread((replayed + more) as f64 / replayed as f64);
    }
}

impl Player<'_> {
    /// Looks at flows of workloads of which few were drawn until the maximum number was, for what they bring
    /// to the links. Returns their number by source.
    pub(super) fn look_ahead(&mut self, drawn: &Drawn, max_flows: u64, until: Until) -> Vec<u64> {
        let mut counts = vec![0; self.of_sources.len()];
        if drawn.left > 0 || !drawn.upcoming.is_empty() {
            return counts;
        }
        let left = drawn.merged.left();
        let wanted = (max_flows / left.len().max(1) as u64).min(LOOKED_AT);
        for (source, first, rest) in left {
            let at = usize::from(source);
            let replayed = self.offered.looked_at(at).unwrap_or(wanted);
            if replayed < wanted {
                counts[at] = self.look_at(source, first, rest, (wanted - replayed, until));
            }
        }
        counts
    }

    /// Looks at this many flows of a source, from the first on. Returns how many of them come in time.
    fn look_at(
        &mut self,
        source: u16,
        first: FlowSpec,
        rest: &dyn FlowSource,
        (count, until): (u64, Until),
    ) -> u64 {
        let in_time = |spec: &FlowSpec| !matches!(until, Until::At(stop) if spec.start > stop);
        let mut rest = rest.clone_box();
        let all = std::iter::once(first).chain(std::iter::from_fn(|| rest.next()));
        let mut all = all.take(count as usize).take_while(in_time);
        let mut looked_at = 0;
        loop {
            let flows: Vec<FlowSpec> = all.by_ref().take(Drawn::TOGETHER as usize).collect();
            if flows.is_empty() {
                return looked_at;
            }
            looked_at += flows.len() as u64;
            let paths = self.times.pairs(flows.iter().map(|spec| (spec.src, spec.dst)));
            flows.iter().zip(paths).for_each(|(spec, path)| self.bring(source, spec, path));
        }
    }
}
