//! Flows beyond those that are replayed: only what they bring to the links is looked at.

use super::Player;
use super::drawn::Drawn;
use crate::config::Until;
use crate::workload::{FlowSource, FlowSpec};

/// Of a workload of which fewer flows were replayed, this many are looked at for what they bring to the
/// links.
const LOOKED_AT: u64 = 100_000;

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
