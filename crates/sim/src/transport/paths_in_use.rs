//! The paths that flows of a run take, for warnings of what holds less than such a path does.

use super::parameters::RunContext;
use crate::topology::{HostId, PathTimes};
use crate::units::Time;
use crate::workload::FlowSource;
use std::collections::BTreeSet;

/// Flows, or messages of jobs, that are looked at.
const FLOWS: usize = 1000;

impl RunContext<'_> {
    /// The base RTT of the path that holds most bytes, and these bytes: of the paths between hosts that exchange flows over a
    /// transport of this kind. Nothing where there are none.
    pub fn fullest_path(&self, packet: u32, kind: &str) -> (Time, u64) {
        let times = PathTimes::new(self.topology, self.routes);
        let held = |(src, dst): (HostId, HostId)| {
            let rtt = times.base_rtt(src, dst, u64::from(packet), self.rules.whole_ns_base_rtt)?;
            Some((rtt, times.pair(src, dst)?.bottleneck.bytes_in(rtt).0))
        };
        let all = self.pairs(kind).into_iter().filter_map(held);
        all.max_by_key(|&(rtt, bytes)| (bytes, rtt)).unwrap_or_default()
    }

    /// The hosts at the ends of the first flows over transports of a kind.
    fn pairs(&self, kind: &str) -> BTreeSet<(HostId, HostId)> {
        let sources = self.traffic.map_or(&[][..], |traffic| &traffic.sources);
        let each = (FLOWS / sources.len().max(1)).max(1);
        let is_own = |transport: u16| {
            self.transports.get(usize::from(transport)).is_some_and(|transport| transport.name() == kind)
        };
        let mut pairs = BTreeSet::new();
        for source in sources.iter().take(FLOWS) {
            if let Some(graph) = source.graph() {
                if is_own(graph.flow.transport) {
                    graph.each_sent(each as u64, |_, sent| {
                        let [from, to] = [sent.from, sent.to].map(|rank| graph.hosts[rank as usize]);
                        pairs.insert((from, to));
                    });
                }
                continue;
            }
            let mut copy: Box<dyn FlowSource> =
                source.glance().map_or_else(|| source.clone_box(), |glance| glance.source);
            let flows = std::iter::from_fn(|| copy.next()).take(each);
            pairs.extend(flows.filter(|flow| is_own(flow.transport)).map(|flow| (flow.src, flow.dst)));
        }
        pairs
    }
}
