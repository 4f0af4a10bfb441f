//! Dissemination: a barrier in ceil(log2 n) rounds. In round k a rank tells rank + 2^k that it and all of
//! whom it knows have come.
//!
//! Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", IJPP 1988.

use super::{AlgorithmParameters, Asked, Kind, Law, Phases, Schedule, Transfer, WorkloadError, numbered};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

/// Bytes of a message.
const WORD: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisseminationParameters;

impl AlgorithmParameters for DisseminationParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "dissemination",
        title: "a barrier in ceil(log2 n) rounds of 8 bytes",
        source: "Hensgen, Finkel, Manber, IJPP 1988",
        equations: "T = ceil(log2 n) alpha",
        validation: "Times by the equation (tests/laws/collectives.rs).",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::Barrier];

    fn read(_: &mut Parameters) -> DisseminationParameters {
        DisseminationParameters
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        let n = asked.ranks;
        let rounds = n.next_power_of_two().trailing_zeros();
        let messages = numbered(u128::from(rounds) * u128::from(n))?;
        Ok(Law::Dissemination(Dissemination { n, rounds, messages }).into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dissemination {
    n: u32,
    rounds: u32,
    messages: u32,
}

impl Schedule for Dissemination {
    fn messages(&self) -> u32 {
        self.messages
    }

    fn transfer(&self, message: u32) -> Transfer {
        let (round, from) = (message / self.n, message % self.n);
        let to = ((u64::from(from) + (1u64 << round)) % u64::from(self.n)) as u32;
        Transfer { from, to, bytes: WORD, channel: 0 }
    }

    fn opens(&self, rank: u32, out: &mut Vec<u32>) {
        out.push(rank);
    }

    /// All that comes in the rounds before: that of a later round may come first.
    fn needs(&self, message: u32) -> u32 {
        message / self.n
    }

    fn after_arrival(&self, message: u32, out: &mut Vec<u32>) {
        let (round, to) = (message / self.n, self.transfer(message).to);
        out.extend((round + 1..self.rounds).map(|later| later * self.n + to));
    }

    fn sends(&self, _rank: u32) -> u32 {
        self.rounds
    }

    fn receives(&self, rank: u32) -> u32 {
        self.sends(rank)
    }
}
