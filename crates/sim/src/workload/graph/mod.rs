//! Job graphs: what the ranks of a job do, and in which order. Run by [`Player`], one for the ranks of a
//! region.
//!
//! An operation of a rank computes, sends, receives, or takes part in a collective operation. It may start
//! when others of the same rank have ended, or have started. Ranks learn of each other only by messages: a
//! receive is matched with the oldest message of its source and tag, a message with the oldest receive; a
//! message ends at its receiver when its last byte has arrived. Messages of one rank to another over one
//! channel use one connection, and arrive in the order in which they were sent.
//!
//! A graph is law where it repeats a collective operation ([`Repeated`]), and a list where a file says what
//! happens ([`Listed`]). In neither case are its messages held: each has a number, from which all follows,
//! and is a flow when it starts.

pub mod glance;
mod idle;
pub mod listed;
pub mod matching;
pub mod operations;
mod part;
pub mod player;
pub mod repeated;
pub mod seats;
pub mod source;
#[cfg(test)]
mod tests;
pub mod waits;

pub use idle::Blocked;
pub use listed::Listed;
pub use player::{Effect, Player, RankStep};
pub use repeated::{Repeated, ScaleUp};
pub use seats::Seats;

use super::schedule::{Law, Schedule, Transfer};
use super::{FlowSpec, JobShape};
use crate::topology::HostId;
use crate::units::Time;
use listed::SendEnds;

/// A job graph on the hosts of its ranks.
pub struct JobGraph {
    /// By rank; ranks of one host follow each other.
    pub hosts: Vec<HostId>,
    pub seats: Seats,
    /// All that its messages have in common, with the start of the job.
    pub flow: FlowSpec,
    /// Whether its messages are flows in the results.
    pub recorded: bool,
    /// Every message has a connection of its own, on the path of the first between its ranks.
    pub fresh: bool,
    pub work: Work,
}

pub enum Work {
    Repeated(Repeated),
    Listed(Listed),
}

/// The part of a rank in a collective operation.
#[derive(Clone, Copy)]
pub struct Member<'g> {
    pub law: &'g Law,
    /// The number of the operation's first message.
    pub first: u32,
    /// The rank, as the law numbers it, and the group of ranks that it is in.
    pub member: u32,
    pub group: u32,
}

/// What a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A collective operation (among the ranks of `group`), and the number of the message in its law.
    Collective { instance: u32, group: u32, message: u32 },
    /// The send operation of a rank.
    Send { rank: u32, op: u32 },
}

/// A message between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
    pub channel: u32,
    pub inside: bool,
}

impl JobGraph {
    pub fn ranks(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Number of messages, those within scale-up domains among them.
    pub fn messages(&self) -> u32 {
        match &self.work {
            Work::Repeated(work) => work.messages(),
            Work::Listed(work) => work.messages(),
        }
    }

    /// Number of messages that cross the network.
    pub fn flows(&self) -> u64 {
        match &self.work {
            Work::Repeated(work) => work.flows(),
            Work::Listed(work) => work.flows(),
        }
    }

    /// Payload of the messages that cross the network.
    pub fn bytes(&self) -> u64 {
        match &self.work {
            Work::Repeated(work) => work.bytes_sent(),
            Work::Listed(work) => work.bytes_sent(),
        }
    }

    pub fn place(&self, number: u32) -> Place {
        match &self.work {
            Work::Repeated(work) => work.place(number),
            Work::Listed(work) => work.place(number),
        }
    }

    /// The part of a rank in a collective operation.
    pub fn member(&self, instance: u32, rank: u32) -> Member<'_> {
        match &self.work {
            Work::Repeated(work) => work.member(instance, rank),
            Work::Listed(work) => work.member(instance, rank),
        }
    }

    /// The law of a collective operation among the ranks of a group.
    pub fn law(&self, instance: u32, group: u32) -> &Law {
        match &self.work {
            Work::Repeated(work) => work.phase(instance).law(group),
            Work::Listed(work) => work.law(instance),
        }
    }

    /// The rank that is a member of a collective operation.
    pub fn rank(&self, instance: u32, group: u32, member: u32) -> u32 {
        match &self.work {
            Work::Repeated(work) => work.phase(instance).groups.rank(group, member),
            Work::Listed(work) => work.rank(instance, member),
        }
    }

    pub fn message(&self, number: u32) -> Message {
        match self.place(number) {
            Place::Collective { instance, group, message } => {
                let transfer = self.law(instance, group).transfer(message);
                self.message_in(instance, group, transfer)
            }
            Place::Send { rank, op } => match &self.work {
                Work::Listed(work) => work.message(rank, op),
                Work::Repeated(_) => Message { from: rank, to: rank, bytes: 0, channel: 0, inside: true },
            },
        }
    }

    /// A message of a collective operation, as its law has it.
    pub fn message_in(&self, instance: u32, group: u32, transfer: Transfer) -> Message {
        let Transfer { from, to, bytes, channel } = transfer;
        let [from, to] = [from, to].map(|member| self.rank(instance, group, member));
        let inside = match &self.work {
            Work::Repeated(work) => work.is_inside(instance, from, to),
            Work::Listed(work) => work.is_inside(from, to),
        };
        Message { from, to, bytes, channel, inside }
    }

    /// Whether some rank waits for a message's acknowledgement.
    pub fn heeds_acknowledgements(&self) -> bool {
        match &self.work {
            Work::Repeated(work) => work.heeds_acknowledgements,
            Work::Listed(_) => true,
        }
    }

    /// Whether a message is of one rank of a host to another.
    pub fn stays_at_host(&self, number: u32) -> bool {
        let Message { from, to, .. } = self.message(number);
        self.hosts[from as usize] == self.hosts[to as usize]
    }

    /// Whether its sender waits for the acknowledgement of a message.
    pub fn awaits_acknowledgement(&self, number: u32) -> bool {
        self.heeds_acknowledgements()
            && match self.place(number) {
                Place::Collective { instance, group, message } => {
                    let law = self.law(instance, group);
                    law.awaits_acknowledgements(law.transfer(message).from)
                }
                Place::Send { .. } => match &self.work {
                    Work::Listed(work) => work.send_ends == SendEnds::Acknowledged,
                    Work::Repeated(_) => false,
                },
            }
    }

    /// The flow that a message is, before it knows its connection.
    pub fn flow(&self, message: &Message) -> FlowSpec {
        FlowSpec {
            src: self.hosts[message.from as usize],
            dst: self.hosts[message.to as usize],
            size: message.bytes,
            lane: self.seats.lane(message.from, message.channel),
            ..self.flow
        }
    }

    /// The shortest time in which a rank reaches another outside the network.
    pub fn shortest_delay(&self) -> Option<Time> {
        self.scale_up().map(|links| links.delay)
    }

    /// The links within scale-up domains, where messages use them.
    pub fn scale_up(&self) -> Option<ScaleUp> {
        match &self.work {
            Work::Repeated(work) => work.scale_up.filter(|_| work.has_inside()),
            Work::Listed(work) => work.scale_up(),
        }
    }

    /// Ranks of a domain, if there are domains.
    pub fn domain(&self) -> Option<u32> {
        match &self.work {
            Work::Repeated(work) => work.domain(),
            Work::Listed(work) => work.domain(),
        }
    }

    /// Number of steps: rows of jobs.parquet.
    pub fn steps(&self) -> u32 {
        match &self.work {
            Work::Repeated(work) => work.repeat,
            Work::Listed(work) => work.steps(),
        }
    }

    /// The operation that is repeated, if there is one.
    pub fn repeated(&self) -> Option<&Repeated> {
        match &self.work {
            Work::Repeated(work) => Some(work),
            Work::Listed(_) => None,
        }
    }

    /// A step is all that the ranks do, not one operation.
    pub fn is_whole(&self, step: u32) -> bool {
        matches!(&self.work, Work::Listed(work) if step < work.wholes())
    }

    /// A step is one operation within such a whole.
    pub fn is_part(&self, step: u32) -> bool {
        matches!(&self.work, Work::Listed(work) if step >= work.wholes())
    }

    /// The step that a collective operation is, or belongs to.
    pub fn step_of(&self, instance: u32) -> u32 {
        match &self.work {
            Work::Repeated(work) => work.step(instance).0,
            Work::Listed(work) => work.step_of(instance),
        }
    }

    /// What a step is.
    pub fn shape(&self, step: u32) -> JobShape {
        match &self.work {
            Work::Repeated(work) => work.shape,
            Work::Listed(work) => work.shape(step, self.ranks()),
        }
    }

    /// Ranks that take part in a step.
    pub fn ranks_of(&self, step: u32) -> u32 {
        match &self.work {
            Work::Repeated(_) => self.ranks(),
            Work::Listed(work) => work.ranks_of(step, self.ranks()),
        }
    }
}
