//! Ring: in every step each rank sends one of n parts to the next rank, once it has received the part of the
//! step before.
//!
//! n - 1 steps add up (reduce-scatter), n - 1 distribute (all-gather), both make an all-reduce.
//!
//! Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009.

use super::{
    AlgorithmParameters, Asked, Kind, Lanes, Law, Phases, Schedule, Transfer, WorkloadError, numbered, part,
};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingParameters;

impl AlgorithmParameters for RingParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "ring",
        title: "parts go around a ring of all ranks",
        source: "Patarasuk, Yuan, JPDC 2009",
        equations: "T = 2 (n - 1) (alpha + S beta / n) for an all-reduce, half of it otherwise",
        validation: "Times by the equation (tests/laws/collectives.rs), bytes of every link.",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::AllReduce, Kind::ReduceScatter, Kind::AllGather];

    fn read(_: &mut Parameters) -> RingParameters {
        RingParameters
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        Ok(Ring::law(asked, 0)?.into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    n: u32,
    /// The part with which rank 0 begins.
    first: u32,
    steps: u32,
    lanes: Lanes,
    messages: u32,
}

impl Ring {
    /// Rank 0 begins with part `first`, and the others with those that follow it.
    pub fn law(asked: &Asked, first: u32) -> Result<Law, WorkloadError> {
        let n = asked.ranks;
        let steps = if asked.kind == Kind::AllReduce { 2 * (n - 1) } else { n - 1 };
        let lanes = asked.lanes(u64::from(n))?;
        let messages = numbered(u128::from(steps) * u128::from(lanes.count) * u128::from(n))?;
        Ok(Law::Ring(Ring { n, first, steps, lanes, messages }))
    }
}

impl Schedule for Ring {
    fn messages(&self) -> u32 {
        self.messages
    }

    /// In step s rank i sends part i + first - s; from step n - 1 on, when the sums are complete, part
    /// i + first + 1 - (s - n + 1), which is the same modulo n.
    fn transfer(&self, message: u32) -> Transfer {
        let (n, rank) = (self.n, message % self.n);
        let (step, lane) = (message / n / self.lanes.count, message / n % self.lanes.count);
        let which = (rank + self.first + 2 * n - step) % n;
        Transfer {
            from: rank,
            to: (rank + 1) % n,
            bytes: part(self.lanes.share(lane), n, which),
            channel: self.lanes.channel(lane),
        }
    }

    fn opens(&self, rank: u32, out: &mut Vec<u32>) {
        out.extend((0..self.lanes.count).map(|lane| lane * self.n + rank));
    }

    fn needs(&self, message: u32) -> u32 {
        u32::from(message >= self.lanes.count * self.n)
    }

    fn after_arrival(&self, message: u32, out: &mut Vec<u32>) {
        let (n, rank) = (self.n, message % self.n);
        let next = message - rank + (rank + 1) % n;
        let step = self.lanes.count * n;
        if next / step + 1 < self.steps {
            out.push(next + step);
        }
    }

    fn sends(&self, _rank: u32) -> u32 {
        self.steps * self.lanes.count
    }

    fn receives(&self, rank: u32) -> u32 {
        self.sends(rank)
    }

    /// In n - 1 steps a rank sends every part but one: at first the next rank's, then the second next one's.
    fn sent(&self, rank: u32) -> Option<(u32, u64, u64)> {
        let n = self.n;
        let of_lane = |lane| {
            let share = self.lanes.share(lane);
            let rounds = 1..=self.steps / (n - 1).max(1);
            rounds.map(move |round| share - part(share, n, (rank + self.first + round) % n))
        };
        let bytes = (0..self.lanes.count).flat_map(of_lane).fold(0, u64::saturating_add);
        Some(((rank + 1) % n, u64::from(self.sends(rank)), bytes))
    }
}
