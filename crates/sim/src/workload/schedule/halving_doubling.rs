//! Recursive halving and doubling: a rank exchanges half of its data with the rank half of all away, then a
//! quarter with one a quarter away, and so on, adding up; and back in the reverse order, distributing.
//!
//! Ranks beyond the largest power of two first give their data to a partner, and get the result from it.
//!
//! Source: Thakur, Rabenseifner and Gropp, IJHPCA 2005 (Rabenseifner's algorithm).

use super::{
    AlgorithmParameters, Asked, Kind, Lanes, Law, Phases, Schedule, Transfer, WorkloadError, numbered,
};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalvingDoublingParameters;

impl AlgorithmParameters for HalvingDoublingParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "halving-doubling",
        title: "exchanges of halves, quarters, ... between ranks half of all, a quarter, ... apart",
        source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005",
        equations: "T = 2 log2(n) alpha + 2 (n - 1) S beta / n for an all-reduce, half of it otherwise",
        validation: "Times by the equation, bytes of every link (tests/laws/collectives.rs).",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::AllReduce, Kind::ReduceScatter, Kind::AllGather];

    fn read(_: &mut Parameters) -> HalvingDoublingParameters {
        HalvingDoublingParameters
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        Ok(HalvingDoubling::law(asked)?.into())
    }
}

/// The stages are: the extra ranks give; exchanges among the 2^rounds others; the extra ranks get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalvingDoubling {
    rounds: u32,
    extra: u32,
    halves: bool,
    exchanges: u32,
    lanes: Lanes,
    messages: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Give,
    Exchange(u32),
    Get,
}

impl HalvingDoubling {
    pub fn law(asked: &Asked) -> Result<Law, WorkloadError> {
        let n = asked.ranks;
        let rounds = n.ilog2();
        let core = 1 << rounds;
        let extra = n - core;
        if extra > 0 && asked.kind != Kind::AllReduce {
            let name = asked.kind.name();
            let message = format!(
                "halving-doubling does {name} among a power of two of ranks only, found {n}: use ring"
            );
            return Err(WorkloadError::new("algorithm", message));
        }
        let lanes = asked.lanes(u64::from(core))?;
        let halves = asked.kind != Kind::AllGather;
        let doubles = asked.kind != Kind::ReduceScatter;
        let exchanges = rounds * (u32::from(halves) + u32::from(doubles));
        let per_lane = u128::from(exchanges) * u128::from(core) + 2 * u128::from(extra);
        let messages = numbered(per_lane * u128::from(lanes.count))?;
        Ok(Law::HalvingDoubling(HalvingDoubling { rounds, extra, halves, exchanges, lanes, messages }))
    }

    fn core(&self) -> u32 {
        1 << self.rounds
    }

    fn number(&self, stage: Stage, lane: u32, rank: u32) -> u32 {
        let (lanes, core) = (self.lanes.count, self.core());
        match stage {
            Stage::Give => lane * self.extra + (rank - core),
            Stage::Exchange(at) => lanes * self.extra + (at * lanes + lane) * core + rank,
            Stage::Get => lanes * (self.extra + self.exchanges * core) + lane * self.extra + rank,
        }
    }

    /// Stage, lane and sender of a message.
    fn place(&self, message: u32) -> (Stage, u32, u32) {
        let (lanes, core) = (self.lanes.count, self.core());
        let given = lanes * self.extra;
        if message < given {
            return (Stage::Give, message / self.extra, core + message % self.extra);
        }
        let within = message - given;
        if within < lanes * self.exchanges * core {
            let (rank, rest) = (within % core, within / core);
            return (Stage::Exchange(rest / lanes), rest % lanes, rank);
        }
        let within = within - lanes * self.exchanges * core;
        (Stage::Get, within / self.extra, within % self.extra)
    }

    /// How far the partner is in an exchange, as a bit, and whether the exchange is one of halves.
    fn bit(&self, at: u32) -> u32 {
        if self.halves && at < self.rounds {
            self.rounds - 1 - at
        } else {
            at - if self.halves { self.rounds } else { 0 }
        }
    }

    /// Appends what a rank sends from an exchange on. Each waits for all that comes before it, since that of
    /// a later exchange may come first.
    fn later_messages(&self, at: u32, lane: u32, rank: u32, out: &mut Vec<u32>) {
        out.extend((at..self.exchanges).map(|at| self.number(Stage::Exchange(at), lane, rank)));
        if rank < self.extra {
            out.push(self.number(Stage::Get, lane, rank));
        }
    }

    /// The bytes of a lane's share that `count` of 2^rounds parts are, beginning with part `from`.
    fn parts(&self, lane: u32, from: u32, count: u32) -> u64 {
        let (share, core) = (self.lanes.share(lane), u64::from(self.core()));
        let up_to = |parts: u64| parts * (share / core) + parts.min(share % core);
        up_to(u64::from(from + count)) - up_to(u64::from(from))
    }
}

impl Schedule for HalvingDoubling {
    fn messages(&self) -> u32 {
        self.messages
    }

    fn transfer(&self, message: u32) -> Transfer {
        let (stage, lane, from) = self.place(message);
        let (to, bytes) = match stage {
            Stage::Give => (from - self.core(), self.lanes.share(lane)),
            Stage::Get => (from + self.core(), self.lanes.share(lane)),
            Stage::Exchange(at) => {
                let bit = self.bit(at);
                let (to, half) = (from ^ (1 << bit), 1 << bit);
                let halves = self.halves && at < self.rounds;
                // Parts that it gives away: those of the partner's half; that it has: its own.
                let whose = if halves { to } else { from };
                (to, self.parts(lane, whose & !(half - 1), half))
            }
        };
        Transfer { from, to, bytes, channel: self.lanes.channel(lane) }
    }

    fn opens(&self, rank: u32, out: &mut Vec<u32>) {
        for lane in 0..self.lanes.count {
            if rank >= self.core() {
                out.push(self.number(Stage::Give, lane, rank));
            } else if rank >= self.extra {
                out.push(self.number(Stage::Exchange(0), lane, rank));
            }
        }
    }

    fn needs(&self, message: u32) -> u32 {
        match self.place(message) {
            (Stage::Give, ..) => 0,
            (Stage::Exchange(at), _, rank) => at + u32::from(rank < self.extra),
            (Stage::Get, ..) => self.exchanges + 1,
        }
    }

    fn after_arrival(&self, message: u32, out: &mut Vec<u32>) {
        let (stage, lane, _) = self.place(message);
        let to = self.transfer(message).to;
        match stage {
            Stage::Give => self.later_messages(0, lane, to, out),
            Stage::Exchange(at) => self.later_messages(at + 1, lane, to, out),
            Stage::Get => {}
        }
    }

    fn sends(&self, rank: u32) -> u32 {
        let of_lane = match rank {
            rank if rank >= self.core() => 1,
            rank => self.exchanges + u32::from(rank < self.extra),
        };
        of_lane * self.lanes.count
    }

    fn receives(&self, rank: u32) -> u32 {
        self.sends(rank)
    }
}
