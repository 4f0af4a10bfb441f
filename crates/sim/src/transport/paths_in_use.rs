//! The paths that flows of a run take, for warnings of what holds less than such a path does.

use super::parameters::RunContext;
use crate::topology::{HostId, PathTimes};
use crate::units::Time;
use crate::workload::FlowSource;
use crate::workload::sent::looked_at;
use std::collections::BTreeSet;

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
        let is_own = |transport: u16| {
            self.transports.get(usize::from(transport)).is_some_and(|transport| transport.name() == kind)
        };
        looked_at(self.sources(), is_own).flat_map(|(_, sent)| sent).map(|sending| sending.ends).collect()
    }

    /// The workloads; none while the scenario is being read.
    pub fn sources(&self) -> &[Box<dyn FlowSource>] {
        self.traffic.map_or(&[], |traffic| &traffic.sources)
    }
}
