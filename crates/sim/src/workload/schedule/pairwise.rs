//! Pairwise: an all-to-all in n - 1 steps, in each of which a rank sends to one other and receives from one;
//! the next step begins when it has sent and received, or (the operation `pairwise-all-to-all`) when what it
//! sent is acknowledged, too.
//!
//! Source: Thakur, Rabenseifner and Gropp, IJHPCA 2005 (pairwise exchange).

use super::linear::{Exchange, Pace};
use super::{AlgorithmParameters, Asked, Kind, Phases, WorkloadError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairwiseParameters {
    pub acknowledged: bool,
}

impl AlgorithmParameters for PairwiseParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "pairwise",
        title: "n - 1 steps, in each of which a rank exchanges with others",
        source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005",
        equations: "T = (n - 1) (alpha + S beta / n)",
        validation: "Times by the equation, bytes of every link (tests/laws/collectives.rs).",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::AllToAll];

    fn read(_: &mut Parameters) -> PairwiseParameters {
        PairwiseParameters { acknowledged: false }
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        let pace = if self.acknowledged { Pace::Acknowledged } else { Pace::Received };
        Ok(Exchange::law(asked, pace)?.into())
    }
}
