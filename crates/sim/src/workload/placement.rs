//! Placement of a job: which hosts become its ranks, and in which order.
//!
//! `packed` takes hosts in their order, `strided` a host of each rack in turn, `by-rail` all hosts of a rack
//! before those of the next, `random` draws hosts from the seed. Jobs that name their number of `ranks` take different hosts, in the order of the scenario.

use super::hosts::shuffle;
use super::load::participants;
use super::spec::{WorkloadContext, WorkloadError};
use crate::parameters::Parameters;
use crate::topology::HostId;
use rustc_hash::{FxHashMap, FxHashSet};

const ORDERS: &[(&str, &str)] = &[
    ("packed", "in the order of `hosts`, one rack after the other"),
    ("strided", "a host of each rack in turn"),
    ("random", "drawn from the seed"),
    (
        "by-rail",
        "in the order of `hosts`, but all hosts of a rack (a rail's switch) before those of the next",
    ),
];

/// The hosts that jobs have so far.
#[derive(Debug, Default)]
pub struct Placed {
    /// Those that jobs with `ranks` have taken.
    taken: FxHashSet<HostId>,
    /// Those of the ranks of jobs with `ranks`, and of jobs with `hosts` alone, each with its first workload.
    by_ranks: FxHashMap<HostId, usize>,
    by_hosts: FxHashMap<HostId, usize>,
}

/// Keys that place a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    hosts: String,
    order: &'static str,
    /// Number of ranks of the job; 0: those of all of `hosts`, which other jobs may use too.
    ranks: u64,
    per_host: u32,
}

impl Placement {
    /// `per_host`: ranks of each host.
    pub fn read(p: &mut Parameters, per_host: u32) -> Placement {
        let hosts_help = "Participating hosts, in the order of ring or tree, such as \"0-15,20\".";
        let ranks_help = "Number of hosts (times `ranks_per_host`) that the job takes from `hosts`, none of which another job with \
                          `ranks` has taken; 0: all of `hosts`.";
        Placement {
            per_host,
            hosts: p.text("hosts", Some("all"), hosts_help).unwrap_or_default(),
            order: p.choice("placement", "packed", ORDERS, "Order in which `hosts` become the job's ranks."),
            ranks: {
                let ranks = p.integer("ranks", 0, (0, 1_000_000), ranks_help) as u64;
                if !ranks.is_multiple_of(u64::from(per_host)) {
                    let message = format!(
                        "{ranks} ranks do not fill hosts of {per_host}: expected a multiple of ranks_per_host"
                    );
                    p.complain("ranks", message);
                }
                ranks
            },
        }
    }

    /// The hosts of the job, by rank; at least two.
    pub fn ranks(&self, cx: &WorkloadContext) -> Result<Vec<HostId>, WorkloadError> {
        self.ranks_in_blocks(cx, 1)
    }

    /// The same, where this number of ranks whose hosts follow each other in `hosts` (the GPUs of a node) stay together.
    pub fn ranks_in_blocks(&self, cx: &WorkloadContext, size: u32) -> Result<Vec<HostId>, WorkloadError> {
        let all = participants(&self.hosts, "hosts", 2, cx)?;
        let size = (size / self.per_host).max(1) as usize;
        if size > 1 && self.order == "by-rail" {
            let message = "by-rail tears nodes apart: a job with scale_up_rate is packed, strided or random";
            return Err(WorkloadError::new("placement", message));
        }
        // A block is known by its first host.
        let mut rest: FxHashMap<HostId, &[HostId]> = FxHashMap::default();
        let mut firsts: Vec<HostId> = Vec::new();
        for block in all.chunks(size) {
            firsts.push(block[0]);
            rest.insert(block[0], block);
        }
        match self.order {
            "strided" => firsts = over_racks(&firsts, cx.racks),
            "by-rail" => firsts.sort_by_key(|&host| cx.racks.get(host as usize).copied()),
            "random" => shuffle(&mut firsts, &mut cx.stream("placement")),
            _ => {}
        }
        let mut hosts: Vec<HostId> = firsts
            .iter()
            .filter_map(|first| rest.get(first))
            .flat_map(|block| block.iter().copied())
            .collect();
        let each = self.per_host as usize;
        let seated =
            |hosts: Vec<HostId>| hosts.into_iter().flat_map(|host| std::iter::repeat_n(host, each)).collect();
        if self.ranks == 0 {
            return Ok(seated(hosts));
        }
        let mut placed = cx.placed.borrow_mut();
        let (all, asked) = (hosts.len(), self.ranks as usize / each);
        hosts.retain(|host| !placed.taken.contains(host));
        if asked < 2 || asked > hosts.len() {
            let taken = all - hosts.len();
            let needs = match each {
                1 => format!("{asked} ranks"),
                each => format!("{} ranks need {asked} hosts of {each}", asked * each),
            };
            let message = match taken {
                _ if asked < 2 => format!("a job needs at least 2 hosts, found {asked}"),
                0 => format!("{needs}, but `hosts` names {all} hosts"),
                _ => format!("{needs}, but other jobs have taken {taken} of the {all} hosts"),
            };
            return Err(WorkloadError::new("ranks", message));
        }
        hosts.truncate(asked);
        placed.taken.extend(&hosts);
        Ok(seated(hosts))
    }

    /// Notes the hosts of the job's ranks. Warns if some are those of a job that is placed by the other one
    /// of `ranks` and `hosts`: jobs with `ranks` take different hosts, and a job may list hosts of its own.
    pub fn settle(&self, cx: &WorkloadContext, ranks: &[HostId]) {
        let mut hosts = ranks.to_vec();
        hosts.dedup();
        let placed = &mut *cx.placed.borrow_mut();
        let (own, others, keys) = match self.ranks > 0 {
            true => (&mut placed.by_ranks, &placed.by_hosts, ["ranks", "hosts"]),
            false => (&mut placed.by_hosts, &placed.by_ranks, ["hosts", "ranks"]),
        };
        let shared: Vec<usize> = hosts.iter().filter_map(|host| others.get(host).copied()).collect();
        for &host in &hosts {
            own.entry(host).or_insert(cx.index);
        }
        let Some(other) = shared.iter().min() else { return };
        let count = match (shared.len(), hosts.len()) {
            (some, all) if some == all => format!("all of its {all} hosts"),
            (some, all) => format!("{some} of its {all} hosts"),
        };
        (cx.warn)(format!(
            "it shares {count}, given by `{}`, with workload.{other}, which has them by `{}`: both use their links; to \
             keep the jobs apart, give both `ranks`, or each its own `hosts`",
            keys[0], keys[1]
        ));
    }
}

/// The first host of each rack, then the second of each, and so on. Racks come in the order of their first
/// hosts.
fn over_racks(hosts: &[HostId], racks: &[u32]) -> Vec<HostId> {
    let mut place: FxHashMap<u32, usize> = FxHashMap::default();
    let mut by_rack: Vec<Vec<HostId>> = Vec::new();
    for &host in hosts {
        // Where racks are unknown all hosts are in one.
        let rack = racks.get(host as usize).copied().unwrap_or(0);
        let at = *place.entry(rack).or_insert_with(|| {
            by_rack.push(Vec::new());
            by_rack.len() - 1
        });
        by_rack[at].push(host);
    }
    let deepest = by_rack.iter().map(Vec::len).max().unwrap_or(0);
    (0..deepest).flat_map(|turn| by_rack.iter().filter_map(move |rack| rack.get(turn).copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Value;
    use crate::workload::tests::{drain, source, text};
    use std::collections::BTreeSet;

    #[test]
    fn a_strided_job_takes_a_host_of_each_rack_in_turn() {
        let racks = [5, 5, 5, 5, 9, 9, 9, 9];
        assert_eq!(over_racks(&[0, 1, 2, 3, 4, 5, 6, 7], &racks), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(over_racks(&[6, 1, 2], &racks), [6, 1, 2]);
        assert_eq!(over_racks(&[2, 1, 0], &[]), [2, 1, 0]);
    }

    #[test]
    fn a_random_job_has_other_hosts_in_another_order_and_every_one_once() {
        let keys = [("placement", text("random")), ("bytes", text("10KB"))];
        let flows = drain(&*source("collective", 64, &keys));
        let ring: Vec<HostId> = flows[..64].iter().map(|flow| flow.src).collect();
        assert_eq!(ring.iter().copied().collect::<BTreeSet<_>>().len(), 64);
        assert_ne!(ring, (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn a_job_takes_as_many_hosts_as_it_has_ranks() {
        let keys = [("ranks", Value::Integer(4)), ("bytes", text("10KB"))];
        let flows = drain(&*source("collective", 64, &keys));
        assert_eq!(flows.iter().map(|flow| flow.src).max(), Some(3));
    }
}
