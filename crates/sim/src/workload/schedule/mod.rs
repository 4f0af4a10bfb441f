//! Schedules of collective operations: who sends what to whom, and after what. One file each.
//!
//! A schedule is law, not a list: everything about a message follows from its number, so that an operation
//! of millions of messages takes no memory. Messages are numbered so that each comes after those that it
//! waits for. Ranks are numbers from 0; on which hosts they are is not known here.
//!
//! An operation is cut into *lanes*: each channel carries an equal share of the data, in pieces of which none
//! is larger than a chunk. A lane runs the whole schedule on its share, and waits for no other lane, so that
//! the steps of chunks overlap without anything that arranges it. Messages of all lanes of a channel between
//! the same two ranks share a connection.

pub mod dissemination;
pub mod double_tree;
pub mod halving_doubling;
pub mod hierarchical;
pub mod linear;
pub mod nccl;
pub mod pairwise;
pub mod ring;
#[cfg(test)]
mod tests;
pub mod tree;

use super::spec::WorkloadError;
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::Rate;

/// What an operation does with the data of its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    AllReduce,
    ReduceScatter,
    AllGather,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
    AllToAll,
    Barrier,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::AllReduce,
        Kind::ReduceScatter,
        Kind::AllGather,
        Kind::Broadcast,
        Kind::Reduce,
        Kind::Gather,
        Kind::Scatter,
        Kind::AllToAll,
        Kind::Barrier,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::AllReduce => "all-reduce",
            Kind::ReduceScatter => "reduce-scatter",
            Kind::AllGather => "all-gather",
            Kind::Broadcast => "broadcast",
            Kind::Reduce => "reduce",
            Kind::Gather => "gather",
            Kind::Scatter => "scatter",
            Kind::AllToAll => "all-to-all",
            Kind::Barrier => "barrier",
        }
    }

    /// Bus bandwidth over algorithm bandwidth, among n ranks; none: a barrier moves no data.
    /// Source: nccl-tests, doc/PERFORMANCE.md.
    pub fn bus(self, n: u32) -> Option<(u64, u64)> {
        let (others, n) = (u64::from(n - 1), u64::from(n));
        match self {
            Kind::AllReduce => Some((2 * others, n)),
            Kind::ReduceScatter | Kind::AllGather | Kind::AllToAll => Some((others, n)),
            Kind::Gather | Kind::Scatter => Some((others, n)),
            Kind::Broadcast | Kind::Reduce => Some((1, 1)),
            Kind::Barrier => None,
        }
    }

    /// Whether one of the ranks gives or gets what all others do not.
    pub fn has_root(self) -> bool {
        matches!(self, Kind::Broadcast | Kind::Reduce | Kind::Gather | Kind::Scatter)
    }

    /// The algorithm where none is named.
    pub fn default_algorithm(self) -> &'static str {
        match self {
            Kind::AllReduce | Kind::ReduceScatter | Kind::AllGather => ring::RingParameters::DOC.name,
            Kind::Broadcast | Kind::Reduce => tree::TreeParameters::DOC.name,
            Kind::AllToAll | Kind::Gather | Kind::Scatter => linear::LinearParameters::DOC.name,
            Kind::Barrier => dissemination::DisseminationParameters::DOC.name,
        }
    }
}

/// An operation that is to be scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub kind: Kind,
    pub ranks: u32,
    /// Data of every rank: the whole vector, also where a rank begins or ends with one part of it.
    pub bytes: u64,
    pub channels: u32,
    /// The largest message; none: a channel's share of a step is one message.
    pub chunk: Option<u64>,
    /// The rank whose data a broadcast or scatter distributes, or that a reduce or gather ends at.
    pub root: u32,
    /// Of a rank's NIC, or its share of those of its host, before `[scale]`.
    pub rate: Rate,
    /// The smallest and the largest number of bytes of the groups that carry out the same operation side by
    /// side, each on its own data: they have the same number of lanes, and of messages. None: all
    /// have `bytes`.
    pub among: Option<(u64, u64)>,
}

impl Asked {
    /// In one channel, in messages as large as they come, from or to rank 0.
    pub fn plain(kind: Kind, ranks: u32, bytes: u64, rate: Rate) -> Asked {
        Asked { kind, ranks, bytes, channels: 1, chunk: None, root: 0, rate, among: None }
    }

    /// The lanes of an operation whose largest message is one of `parts` equal parts of a lane.
    pub fn lanes(&self, parts: u64) -> Result<Lanes, WorkloadError> {
        let (min, max) = self.among.unwrap_or((self.bytes, self.bytes));
        let [min, max] = [min, max].map(|bytes| bytes / u64::from(self.channels));
        if min < parts {
            let needed = parts.saturating_mul(u64::from(self.channels));
            let channels = match self.channels {
                1 => String::new(),
                more => format!(" over {more} channels"),
            };
            let message =
                format!("{} ranks{channels} need at least {needed} bytes, one per chunk", self.ranks);
            return Err(WorkloadError::new("bytes", message));
        }
        let part = max.div_ceil(parts);
        let loops = self.chunk.map_or(1, |chunk| part.div_ceil(chunk.max(1))).min(min / parts);
        let lanes = loops.saturating_mul(u64::from(self.channels));
        let lanes = numbered(u128::from(lanes))?;
        Ok(Lanes { bytes: self.bytes, channels: self.channels, count: lanes })
    }
}

/// The text of an operation with more messages than can be numbered.
pub fn too_many(messages: u128) -> String {
    format!(
        "{messages} messages in one operation exceed the limit of {}: use fewer ranks, an algorithm with fewer messages, or a \
         larger chunk if one is set",
        u32::MAX
    )
}

/// The number of messages, if they can be numbered.
pub fn counted(messages: u128) -> Result<u32, String> {
    u32::try_from(messages).map_err(|_| too_many(messages))
}

/// The number of messages of an operation, as [`counted`]: the error is one of its bytes.
fn numbered(messages: u128) -> Result<u32, WorkloadError> {
    counted(messages).map_err(|message| WorkloadError::new("bytes", message))
}

/// The shares that run side by side: the first `channels` are the first chunks of all channels, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    pub bytes: u64,
    pub channels: u32,
    pub count: u32,
}

impl Lanes {
    /// Bytes of a lane.
    pub fn share(&self, lane: u32) -> u64 {
        part(self.bytes, self.count, lane)
    }

    pub fn channel(&self, lane: u32) -> u32 {
        lane % self.channels
    }

    /// Bytes of one of `parts` parts of every lane, all lanes together.
    pub fn parts(&self, parts: u32, index: u32) -> u64 {
        let (count, share) = (u64::from(self.count), self.bytes / u64::from(self.count));
        let longer = self.bytes % count;
        longer * part(share + 1, parts, index) + (count - longer) * part(share, parts, index)
    }
}

/// One of `parts` parts of some bytes: the first ones get the remainder of the division.
pub fn part(bytes: u64, parts: u32, index: u32) -> u64 {
    let parts = u64::from(parts.max(1));
    bytes / parts + u64::from(u64::from(index) < bytes % parts)
}

/// A message of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
    pub channel: u32,
}

/// The law of one operation among ranks 0 to n - 1.
pub trait Schedule {
    /// Number of messages.
    fn messages(&self) -> u32;
    fn transfer(&self, message: u32) -> Transfer;
    /// Appends the messages that a rank sends when it joins, in order.
    fn opens(&self, rank: u32, out: &mut Vec<u32>);
    /// Number of events (arrivals at its sender, and its sender's messages that were sent, or acknowledged)
    /// for which a message waits; 0: the sender's joining.
    fn needs(&self, message: u32) -> u32;
    /// Appends the messages of its receiver that wait for the arrival of a message.
    fn after_arrival(&self, message: u32, out: &mut Vec<u32>);
    /// The message of its sender that waits until a message has been handed to the NIC, if one does.
    fn after_sending(&self, _message: u32) -> Option<u32> {
        None
    }
    /// Appends the messages of its sender that wait for the acknowledgement of a message; none unless the law
    /// [ends](Schedule::ends_acknowledged) with acknowledgements.
    fn after_acknowledgement(&self, _message: u32, _out: &mut Vec<u32>) {}
    /// Messages that a rank sends, and that it receives.
    fn sends(&self, rank: u32) -> u32;
    fn receives(&self, rank: u32) -> u32;
    /// If each rank sends to one other rank only: that one, the number of messages, and their bytes.
    fn sent(&self, _rank: u32) -> Option<(u32, u64, u64)> {
        None
    }
    /// A rank is done only when its messages are acknowledged. Otherwise it is when it has received and sent
    /// all; a rank that receives nothing waits for its acknowledgements in any case.
    fn ends_acknowledged(&self) -> bool {
        false
    }
    /// Whether a rank's part ends only when its messages are acknowledged.
    fn awaits_acknowledgements(&self, rank: u32) -> bool {
        self.ends_acknowledged() || self.receives(rank) == 0
    }
}

/// One part of an operation that all ranks go through, in independent groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// One for all groups, or one for each, the largest first. They differ only in bytes.
    laws: Vec<Law>,
    pub groups: Groups,
    /// Its messages stay within a scale-up domain.
    pub inside: bool,
}

impl Phase {
    /// A phase of groups of which each has a law; one where they have the same.
    pub fn of(mut laws: Vec<Law>, groups: Groups, inside: bool) -> Phase {
        if laws.windows(2).all(|pair| pair[0] == pair[1]) {
            laws.truncate(1);
        }
        Phase { laws, groups, inside }
    }

    /// The law of a group.
    pub fn law(&self, group: u32) -> &Law {
        self.laws.get(group as usize).unwrap_or(&self.laws[0])
    }

    /// The law with the largest number of bytes; all have the same messages.
    pub fn largest(&self) -> &Law {
        &self.laws[0]
    }

    /// Each law, and by how many of the groups it is carried out.
    pub fn laws(&self, ranks: u32) -> impl Iterator<Item = (&Law, u32)> {
        let all = self.groups.count(ranks);
        let each = if self.laws.len() == 1 { all } else { 1 };
        self.laws.iter().map(move |law| (law, each))
    }

    /// The law of a phase of one group.
    pub fn only(mut self) -> Law {
        self.laws.swap_remove(0)
    }
}

/// How ranks form groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// All ranks are one group.
    One,
    /// Groups of consecutive ranks.
    Blocks { size: u32 },
    /// Every so-manieth rank.
    Strided { stride: u32 },
}

impl Groups {
    /// The group of a rank, and its number within it.
    pub fn place(self, rank: u32) -> (u32, u32) {
        match self {
            Groups::One => (0, rank),
            Groups::Blocks { size } => (rank / size, rank % size),
            Groups::Strided { stride } => (rank % stride, rank / stride),
        }
    }

    pub fn rank(self, group: u32, member: u32) -> u32 {
        match self {
            Groups::One => member,
            Groups::Blocks { size } => group * size + member,
            Groups::Strided { stride } => member * stride + group,
        }
    }

    /// Number of groups among these ranks.
    pub fn count(self, ranks: u32) -> u32 {
        match self {
            Groups::One => 1,
            Groups::Blocks { size } => ranks / size,
            Groups::Strided { stride } => stride,
        }
    }
}

/// What an algorithm makes of an operation: phases that a rank goes through one after the other.
pub type Phases = Vec<Phase>;

/// An algorithm with its keys: a file of this room, and a line in the registry below.
pub trait AlgorithmParameters: Sized {
    const DOC: SchemeDoc;
    /// The operations that it can carry out.
    const CAN: &'static [Kind];
    /// Keys that no other algorithm has.
    const OWN_KEYS: &'static [&'static str] = &[];
    fn read(p: &mut Parameters) -> Self;
    /// The schedule; the error has the key that is wrong for these ranks and bytes.
    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError>;
    /// Number of connections between two neighbours.
    fn channels(&self, asked: &Asked) -> u32 {
        asked.channels
    }
    /// What it chose, and why, where it chooses.
    fn why(&self, _asked: &Asked) -> Option<String> {
        None
    }
    fn can(&self, kind: Kind) -> bool {
        Self::CAN.contains(&kind)
    }
}

registry! {
    /// An algorithm of collective operations.
    Algorithm: AlgorithmParameters {
        Ring = ring::RingParameters;
        Tree = tree::TreeParameters;
        DoubleTree = double_tree::DoubleTreeParameters;
        HalvingDoubling = halving_doubling::HalvingDoublingParameters;
        Linear = linear::LinearParameters;
        Pairwise = pairwise::PairwiseParameters;
        Hierarchical = hierarchical::HierarchicalParameters;
        Dissemination = dissemination::DisseminationParameters;
        Nccl = nccl::NcclParameters;
    }
}

impl Algorithm {
    /// Reports keys that only other algorithms have.
    pub fn refuse_keys_of_others(name: &str, p: &mut Parameters) {
        let all = each_type!(P => (P::DOC.name, P::OWN_KEYS));
        for (other, keys) in all.into_iter().filter(|(other, _)| *other != name) {
            for key in keys {
                p.refuse(key, || format!("only algorithm = \"{other}\" has this key, found {name}"));
            }
        }
    }

    pub fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        each_kind!(self, own => own.phases(asked))
    }

    pub fn channels(&self, asked: &Asked) -> u32 {
        each_kind!(self, own => own.channels(asked))
    }

    pub fn why(&self, asked: &Asked) -> Option<String> {
        each_kind!(self, own => own.why(asked))
    }

    pub fn can(&self, kind: Kind) -> bool {
        each_kind!(self, own => own.can(kind))
    }

    pub fn name(&self) -> &'static str {
        fn name<P: AlgorithmParameters>(_: &P) -> &'static str {
            P::DOC.name
        }
        each_kind!(self, own => name(own))
    }
}

/// The algorithms that carry out an operation.
pub fn algorithms(kind: Kind) -> Vec<&'static str> {
    let all = each_type!(P => (P::DOC.name, P::CAN));
    all.iter().filter(|(_, can)| can.contains(&kind)).map(|(name, _)| *name).collect()
}

/// Every law, without a table of functions in between.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    Ring(ring::Ring),
    Trees(tree::Trees),
    HalvingDoubling(halving_doubling::HalvingDoubling),
    Exchange(linear::Exchange),
    Rooted(linear::Rooted),
    Dissemination(dissemination::Dissemination),
}

macro_rules! each_law {
    ($self:expr, $it:ident => $call:expr) => {
        match $self {
            Law::Ring($it) => $call,
            Law::Trees($it) => $call,
            Law::HalvingDoubling($it) => $call,
            Law::Exchange($it) => $call,
            Law::Rooted($it) => $call,
            Law::Dissemination($it) => $call,
        }
    };
}

impl Schedule for Law {
    fn messages(&self) -> u32 {
        each_law!(self, law => law.messages())
    }
    fn transfer(&self, message: u32) -> Transfer {
        each_law!(self, law => law.transfer(message))
    }
    fn opens(&self, rank: u32, out: &mut Vec<u32>) {
        each_law!(self, law => law.opens(rank, out))
    }
    fn needs(&self, message: u32) -> u32 {
        each_law!(self, law => law.needs(message))
    }
    fn after_arrival(&self, message: u32, out: &mut Vec<u32>) {
        each_law!(self, law => law.after_arrival(message, out))
    }
    fn after_sending(&self, message: u32) -> Option<u32> {
        each_law!(self, law => law.after_sending(message))
    }
    fn after_acknowledgement(&self, message: u32, out: &mut Vec<u32>) {
        each_law!(self, law => law.after_acknowledgement(message, out))
    }
    fn sends(&self, rank: u32) -> u32 {
        each_law!(self, law => law.sends(rank))
    }
    fn receives(&self, rank: u32) -> u32 {
        each_law!(self, law => law.receives(rank))
    }
    fn sent(&self, rank: u32) -> Option<(u32, u64, u64)> {
        each_law!(self, law => law.sent(rank))
    }
    fn ends_acknowledged(&self) -> bool {
        each_law!(self, law => law.ends_acknowledged())
    }
}

impl From<Law> for Phases {
    /// One phase of all ranks.
    fn from(law: Law) -> Phases {
        vec![Phase::of(vec![law], Groups::One, false)]
    }
}
