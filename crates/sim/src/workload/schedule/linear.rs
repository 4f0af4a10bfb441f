//! Linear: every rank sends its parts to all others at once (the direct all-to-all).
//!
//! The law is shared with `pairwise`, in which each step waits for the one before. In operations with a root
//! all other ranks send to it at once (a reduce the whole vector, a gather a part), or it sends a part to
//! each (a scatter).

use super::{
    AlgorithmParameters, Asked, Kind, Lanes, Law, Phases, Schedule, Transfer, WorkloadError, numbered, part,
};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearParameters;

impl AlgorithmParameters for LinearParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "linear",
        title: "all parts at once, each straight to its rank",
        source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005",
        equations: "T >= (n - 1) S beta / n + alpha\nreduce: T >= (n - 1) S beta + alpha",
        validation: "Bytes of every link (tests/laws/collectives.rs).",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::AllToAll, Kind::Gather, Kind::Scatter, Kind::Reduce];

    fn read(_: &mut Parameters) -> LinearParameters {
        LinearParameters
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        if asked.kind.has_root() {
            Rooted::phases(asked)
        } else {
            Ok(Exchange::law(asked, Pace::AtOnce)?.into())
        }
    }
}

/// When a rank sends the message of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    AtOnce,
    /// When it has sent and received that of the step before.
    Received,
    /// When that of the step before is acknowledged, too.
    Acknowledged,
}

/// In step k rank r sends to rank r + k + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    n: u32,
    lanes: Lanes,
    pace: Pace,
    messages: u32,
}

impl Exchange {
    pub fn law(asked: &Asked, pace: Pace) -> Result<Law, WorkloadError> {
        let n = asked.ranks;
        let lanes = asked.lanes(u64::from(n))?;
        let messages = numbered(u128::from(n - 1) * u128::from(lanes.count) * u128::from(n))?;
        Ok(Law::Exchange(Exchange { n, lanes, pace, messages }))
    }

    fn number(&self, step: u32, lane: u32, rank: u32) -> u32 {
        (step * self.lanes.count + lane) * self.n + rank
    }

    /// (step, lane, rank) of a message.
    fn place(&self, message: u32) -> (u32, u32, u32) {
        let (rank, rest) = (message % self.n, message / self.n);
        (rest / self.lanes.count, rest % self.lanes.count, rank)
    }

    /// Appends the message of a rank in the next step of its lane.
    fn next(&self, step: u32, lane: u32, rank: u32, out: &mut Vec<u32>) {
        if step + 2 < self.n {
            out.push(self.number(step + 1, lane, rank));
        }
    }
}

impl Schedule for Exchange {
    fn messages(&self) -> u32 {
        self.messages
    }

    fn transfer(&self, message: u32) -> Transfer {
        let (step, lane, from) = self.place(message);
        let to = (from + step + 1) % self.n;
        let bytes = part(self.lanes.share(lane), self.n, to);
        Transfer { from, to, bytes, channel: self.lanes.channel(lane) }
    }

    fn opens(&self, rank: u32, out: &mut Vec<u32>) {
        let steps = if self.pace == Pace::AtOnce { self.n - 1 } else { 1 };
        for step in 0..steps {
            out.extend((0..self.lanes.count).map(|lane| self.number(step, lane, rank)));
        }
    }

    fn needs(&self, message: u32) -> u32 {
        if self.pace != Pace::AtOnce && self.place(message).0 > 0 { 2 } else { 0 }
    }

    fn after_arrival(&self, message: u32, out: &mut Vec<u32>) {
        let (step, lane, rank) = self.place(message);
        if self.pace != Pace::AtOnce {
            self.next(step, lane, (rank + step + 1) % self.n, out);
        }
    }

    fn after_sending(&self, message: u32) -> Option<u32> {
        let (step, lane, rank) = self.place(message);
        let waits = self.pace == Pace::Received && step + 2 < self.n;
        waits.then(|| self.number(step + 1, lane, rank))
    }

    fn after_acknowledgement(&self, message: u32, out: &mut Vec<u32>) {
        let (step, lane, rank) = self.place(message);
        if self.pace == Pace::Acknowledged {
            self.next(step, lane, rank, out);
        }
    }

    fn sends(&self, _rank: u32) -> u32 {
        (self.n - 1) * self.lanes.count
    }

    fn receives(&self, rank: u32) -> u32 {
        self.sends(rank)
    }

    fn ends_acknowledged(&self) -> bool {
        self.pace == Pace::Acknowledged
    }
}

/// Rank root + k + 1 sends its message k of each lane to the root, or gets it from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rooted {
    n: u32,
    root: u32,
    to_root: bool,
    /// Every message is a lane's whole share, not a part of it.
    whole: bool,
    lanes: Lanes,
    messages: u32,
}

impl Rooted {
    fn phases(asked: &Asked) -> Result<Phases, WorkloadError> {
        let (n, whole) = (asked.ranks, asked.kind == Kind::Reduce);
        let lanes = asked.lanes(if whole { 1 } else { u64::from(n) })?;
        let messages = numbered(u128::from(n - 1) * u128::from(lanes.count))?;
        let (root, to_root) = (asked.root, asked.kind != Kind::Scatter);
        Ok(Law::Rooted(Rooted { n, root, to_root, whole, lanes, messages }).into())
    }
}

impl Schedule for Rooted {
    fn messages(&self) -> u32 {
        self.messages
    }

    fn transfer(&self, message: u32) -> Transfer {
        let (at, lane) = (message / self.lanes.count, message % self.lanes.count);
        let other = (self.root + 1 + at) % self.n;
        let share = self.lanes.share(lane);
        let bytes = if self.whole { share } else { part(share, self.n, other) };
        let (from, to) = if self.to_root { (other, self.root) } else { (self.root, other) };
        Transfer { from, to, bytes, channel: self.lanes.channel(lane) }
    }

    fn opens(&self, rank: u32, out: &mut Vec<u32>) {
        match (rank == self.root, self.to_root) {
            (true, false) => out.extend(0..self.messages),
            (false, true) => {
                let first = (rank + self.n - self.root - 1) % self.n * self.lanes.count;
                out.extend(first..first + self.lanes.count);
            }
            _ => {}
        }
    }

    fn needs(&self, _message: u32) -> u32 {
        0
    }

    fn after_arrival(&self, _message: u32, _out: &mut Vec<u32>) {}

    fn sends(&self, rank: u32) -> u32 {
        match (rank == self.root, self.to_root) {
            (true, false) => self.messages,
            (false, true) => self.lanes.count,
            _ => 0,
        }
    }

    fn receives(&self, rank: u32) -> u32 {
        Rooted { to_root: !self.to_root, ..*self }.sends(rank)
    }
}
