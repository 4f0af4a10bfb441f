//! Counts over all records of a collector: distinct flows, known and confirmed paths, flows whose digests
//! were refused.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Refusal;
use super::events::{Ending, Findings, FlowReport};
use crate::plan::Plan;
use crate::query::FlowKey;
use crate::recorded::{Flow, Recorded};

/// Maximum number of flows that are distinguished.
const MAX_FLOWS: usize = 1 << 20;

/// Flows by 64 bits of a hash.
#[derive(Debug, Clone, Default)]
struct Distinct(HashSet<u64>);

impl Distinct {
    /// Does nothing where the maximum number is reached.
    fn add(&mut self, key: FlowKey, flow: &Flow) {
        if self.0.len() < MAX_FLOWS {
            let mut hasher = DefaultHasher::new();
            (key, flow).hash(&mut hasher);
            self.0.insert(hasher.finish());
        }
    }
}

/// What became of all records, each of which is a flow's between two changes of its path.
#[derive(Debug, Clone)]
pub struct Tally {
    keys: Vec<FlowKey>,
    flows: Distinct,
    refused: Distinct,
    pub records: u64,
    /// Records that ended because digests contradicted them.
    pub changed: u64,
    /// Records with a query for a path: one of their paths is known, or none.
    pub known: u64,
    pub unknown: u64,
    /// Of the known ones, those with a path that is confirmed.
    pub confirmed: u64,
    /// Paths that were not known when their record ended, by record and query.
    pub unknown_paths: u64,
    /// Digests of more hops than the plan allows, and the maximum of their hops.
    pub too_long: u64,
    pub longest: u32,
}

impl Tally {
    pub fn new(plan: &Plan) -> Tally {
        let mut keys: Vec<FlowKey> = Vec::new();
        for query in &plan.queries().queries {
            if !keys.contains(&query.flow) {
                keys.push(query.flow);
            }
        }
        Tally {
            keys,
            flows: Distinct::default(),
            refused: Distinct::default(),
            records: 0,
            changed: 0,
            known: 0,
            unknown: 0,
            confirmed: 0,
            unknown_paths: 0,
            too_long: 0,
            longest: 0,
        }
    }

    pub fn ended(&mut self, report: &FlowReport) {
        self.records += 1;
        self.changed += u64::from(report.ending == Some(Ending::Changed));
        // Later records of a flow follow the first one.
        if report.epoch == 0 {
            self.flows.add(report.key, &report.flow);
        }
        let paths = || {
            report.results.iter().filter_map(|(_, findings)| match findings {
                Findings::Path(path) => Some((path.path().is_some(), path.confirmed_after.is_some())),
                _ => None,
            })
        };
        let known = paths().any(|(known, _)| known);
        self.known += u64::from(known);
        self.unknown += u64::from(!known && paths().next().is_some());
        self.confirmed += u64::from(paths().any(|(known, confirmed)| known && confirmed));
        self.unknown_paths += paths().filter(|(known, _)| !known).count() as u64;
    }

    /// A digest was not taken.
    pub fn refused(&mut self, row: &Recorded, refusal: &Refusal) {
        let Refusal::Hops { hops, max } = *refusal else { return };
        if hops > max {
            self.too_long += 1;
            self.longest = self.longest.max(hops);
            for &key in &self.keys {
                self.refused.add(key, &row.flow.under(key));
            }
        }
    }

    /// Distinct flows with a record, counted under each key of the plan.
    pub fn flows(&self) -> u64 {
        self.flows.0.len() as u64
    }

    /// Distinct flows without a record, of which digests were of too many hops, counted in the same way.
    pub fn left_out(&self) -> u64 {
        self.refused.0.difference(&self.flows.0).count() as u64
    }

    /// Whether there may be more flows than are counted.
    pub fn is_minimum(&self) -> bool {
        self.flows.0.len().max(self.refused.0.len()) >= MAX_FLOWS
    }
}
