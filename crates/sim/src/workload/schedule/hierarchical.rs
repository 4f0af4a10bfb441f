//! Hierarchical: ranks form domains of `domain` consecutive ranks. An all-reduce is a reduce-scatter in every
//! domain, an all-reduce of the part of each rank among the ranks with the same place in all domains (a
//! rail), and an all-gather in every domain. An all-to-all gathers in the domain what goes to each rail, and
//! then exchanges along the rails.
//!
//! A rank starts the next phase when it has ended the one before. Where bytes do not divide, the first rails
//! have the remainder, byte for byte what their ranks have of their domains.
//!
//! Source: NCCL's PXN for the all-to-all; for the others Cho et al., "BlueConnect", MLSys 2019.

use super::halving_doubling::HalvingDoubling;
use super::linear::{Exchange, Pace};
use super::ring::Ring;
use super::{AlgorithmParameters, Asked, Groups, Kind, Lanes, Phase, Phases, WorkloadError};
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

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        let (size, nodes) = self.shape(asked.ranks)?;
        asked.lanes(u64::from(asked.ranks))?;
        let lanes = Asked { ranks: size, ..*asked }.lanes(u64::from(size))?;
        let rails = Rails { bytes: rails(asked.kind, &lanes, size), nodes, halves: self.halves };
        let inside = |kind: Kind, first: u32| {
            let asked = Asked { kind, ranks: size, ..*asked };
            let law = match kind {
                Kind::AllToAll => Exchange::law(&asked, Pace::AtOnce),
                _ => Ring::law(&asked, first),
            };
            Ok::<_, WorkloadError>(Phase::of(vec![law?], Groups::Blocks { size }, true))
        };
        // Rank i of a domain ends the reduce-scatter with part i, which is what its rail adds up, and with
        // which it begins the all-gather.
        let (reduces, gathers) = (Kind::ReduceScatter, Kind::AllGather);
        let mut all = Vec::new();
        match asked.kind {
            Kind::AllToAll => all.push(inside(Kind::AllToAll, 0)?),
            Kind::AllGather => {}
            _ => all.push(inside(reduces, size - 1)?),
        }
        all.push(rails.phase(asked)?);
        if matches!(asked.kind, Kind::AllReduce | Kind::AllGather) {
            all.push(inside(gathers, 0)?);
        }
        Ok(all)
    }
}

impl HierarchicalParameters {
    /// Ranks of a domain, and the number of domains; the error names what is wrong with them.
    pub fn shape(&self, ranks: u32) -> Result<(u32, u32), WorkloadError> {
        let domain = self.domain.unwrap_or(USUAL_DOMAIN);
        if ranks % domain != 0 || ranks / domain < 2 {
            let message = format!(
                "{ranks} ranks are not two or more domains of {domain}: give ranks that `domain` divides"
            );
            return Err(WorkloadError::new("domain", message));
        }
        Ok((domain, ranks / domain))
    }
}

/// What the ranks of each rail have when they come from their domains: of a sum the part that a rank has of
/// its domain's vectors, of an all-to-all that part of the vectors of all ranks of its domain.
fn rails(kind: Kind, lanes: &Lanes, size: u32) -> Vec<u64> {
    let of_each = if kind == Kind::AllToAll { u64::from(size) } else { 1 };
    (0..size).map(|number| lanes.parts(size, number) * of_each).collect()
}

struct Rails {
    /// Of the ranks of each rail, the largest first.
    bytes: Vec<u64>,
    nodes: u32,
    halves: bool,
}

impl Rails {
    fn phase(&self, asked: &Asked) -> Result<Phase, WorkloadError> {
        let [max, min] = [self.bytes.first(), self.bytes.last()].map(|bytes| *bytes.unwrap_or(&0));
        let needed = u64::from(self.nodes) * u64::from(asked.channels);
        if min < needed {
            let message = format!(
                "chunks of few bytes leave {min} of {} bytes to a rail of {} ranks, which needs at least {needed}: use a \
                 larger chunk",
                asked.bytes, self.nodes
            );
            return Err(WorkloadError::new("chunk", message));
        }
        let law = |&bytes: &u64| {
            let asked = Asked { ranks: self.nodes, bytes, among: Some((min, max)), ..*asked };
            match asked.kind {
                Kind::AllToAll => Exchange::law(&asked, Pace::AtOnce),
                _ if self.halves => HalvingDoubling::law(&asked)
                    .map_err(|error| WorkloadError::new("in_rails", error.message)),
                _ => Ring::law(&asked, 0),
            }
        };
        let laws = self.bytes.iter().map(law).collect::<Result<Vec<_>, _>>()?;
        Ok(Phase::of(laws, Groups::Strided { stride: self.bytes.len() as u32 }, false))
    }
}
