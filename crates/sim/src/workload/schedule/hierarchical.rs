//! Hierarchical: ranks form domains of `domain` consecutive ranks. An all-reduce is a reduce-scatter in every
//! domain, an all-reduce of the part of each rank among the ranks with the same place in all domains (a
//! rail), and an all-gather in every domain. An all-to-all gathers in the domain what goes to each rail, and
//! then exchanges along the rails.
//!
//! A rank starts the next phase when it has ended the one before.
//!
//! Source: NCCL's PXN for the all-to-all; for the others Cho et al., "BlueConnect", MLSys 2019.

use super::ring::RingParameters;
use super::{AlgorithmParameters, Asked, Groups, Kind, Phase, Phases};
use super::{halving_doubling::HalvingDoublingParameters, linear::LinearParameters};
use crate::doc::SchemeDoc;
use crate::parameters::{Parameters, Value};
use crate::workload::graph::seats::{USUAL_DOMAIN, read_domain};

const IN_RAILS: &[(&str, &str)] =
    &[("ring", "rings along the rails"), ("halving-doubling", "halving and doubling along the rails")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HierarchicalParameters {
    /// None: what follows from nodes and hosts.
    pub domain: Option<u32>,
    /// Rails halve and double instead of forming rings.
    pub halves: bool,
}

impl AlgorithmParameters for HierarchicalParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "hierarchical",
        title: "within domains of ranks first, then along the rails between domains, and back",
        source: "Cho et al., BlueConnect, MLSys 2019; the all-to-all: NCCL's PXN",
        equations: "T = 2 (g - 1)/g S beta_in + 2 (N - 1)/N (S / g) beta_out + alphas",
        validation: "Bytes of every link; times on a rail fabric (tests/laws/collectives.rs).",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::AllReduce, Kind::ReduceScatter, Kind::AllGather, Kind::AllToAll];

    fn read(p: &mut Parameters) -> HierarchicalParameters {
        let per_host = match p.peek("ranks_per_host") {
            Some(Value::Integer(count)) => count.clamp(1, 1024) as u32,
            _ => 1,
        };
        let in_rails = p.choice("in_rails", "ring", IN_RAILS, "How rails reduce and gather.");
        HierarchicalParameters { domain: read_domain(p, 2, per_host), halves: in_rails == IN_RAILS[1].0 }
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, String> {
        let (n, domain) = (asked.ranks, self.domain.unwrap_or(USUAL_DOMAIN));
        if n % domain != 0 || n / domain < 2 {
            return Err(format!(
                "{n} ranks are not two or more domains of {domain}: give ranks that `domain` divides"
            ));
        }
        let inside = Groups::Blocks { size: domain };
        let rails = Groups::Strided { stride: domain };
        let (size, nodes) = (domain, n / domain);
        let part = asked.bytes / u64::from(domain);
        let phase = |kind: Kind, groups: Groups, ranks: u32, bytes: u64| {
            let asked = Asked { kind, ranks, bytes, ..*asked };
            let phases = match (kind, groups) {
                (Kind::AllToAll, _) => LinearParameters.phases(&asked),
                (_, Groups::Strided { .. }) if self.halves => HalvingDoublingParameters.phases(&asked),
                _ => RingParameters.phases(&asked),
            };
            let is_inside = groups == inside;
            phases.map(|all| all.into_iter().map(move |one| Phase { groups, inside: is_inside, ..one }))
        };
        let mut all = Vec::new();
        match asked.kind {
            Kind::AllToAll => {
                all.extend(phase(Kind::AllToAll, inside, size, asked.bytes)?);
                all.extend(phase(Kind::AllToAll, rails, nodes, asked.bytes)?);
            }
            kind => {
                if kind != Kind::AllGather {
                    all.extend(phase(Kind::ReduceScatter, inside, size, asked.bytes)?);
                }
                all.extend(phase(kind, rails, nodes, part)?);
                if kind != Kind::ReduceScatter {
                    all.extend(phase(Kind::AllGather, inside, size, asked.bytes)?);
                }
            }
        }
        Ok(all)
    }
}
