//! A job graph as a file spells it out: the operations of every rank, and which waits for which.

use super::super::schedule::{Kind, Law, Schedule, counted};
use super::super::{JobShape, schedule};
use super::{Member, Message, Place, ScaleUp};
use crate::units::Time;
use rustc_hash::FxHashMap;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Occupies a stream of its rank.
    Compute {
        time: Time,
        stream: u16,
    },
    /// Time passes in which the rank does not compute.
    Wait {
        time: Time,
    },
    Send {
        to: u32,
        bytes: u64,
        tag: u32,
    },
    /// None: any source, any tag.
    Receive {
        from: Option<u32>,
        bytes: u64,
        tag: Option<u32>,
    },
    /// The rank takes part in a collective operation.
    Collective {
        instance: u32,
    },
    /// A step of the rank ends, and the next one begins.
    StepEnd,
}

/// Different operations whose messages were counted, among which the next one is looked for.
const REMEMBERED: usize = 64;

/// A collective operation among some ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    pub law: Law,
    pub kind: Kind,
    pub bytes: u64,
    /// Of [`Listed::groups`].
    pub group: u32,
}

/// Ranks that take part in operations together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    pub ranks: Vec<u32>,
    places: FxHashMap<u32, u32>,
}

impl Group {
    pub fn new(ranks: Vec<u32>) -> Group {
        let places = ranks.iter().enumerate().map(|(at, &rank)| (rank, at as u32)).collect();
        Group { ranks, places }
    }

    pub fn place(&self, rank: u32) -> Option<u32> {
        self.places.get(&rank).copied()
    }
}

/// When a send ends for the operations of its rank that wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendEnds {
    /// As soon as it has been handed to the NIC.
    Posted,
    /// When all of it is acknowledged.
    Acknowledged,
}

/// The operations of all ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub ranks: Vec<RankList>,
    groups: Vec<Group>,
    instances: Vec<Instance>,
    /// The number of each rank's first send, and of each instance's first message; one more at the end.
    first_send: Vec<u32>,
    first_message: Vec<u32>,
    pub send_ends: SendEnds,
    /// What the file is, such as `goal`.
    pub name: &'static str,
    /// What the numbers of [`RankList::places`] are, such as `line`; empty: nothing.
    pub place: &'static str,
    /// How many steps the ranks go through, one after the other, each all that they do until [`Op::StepEnd`].
    wholes: u32,
    /// Scale-up domains of this number of consecutive ranks; none: all messages cross the network.
    domains: Option<(u32, ScaleUp)>,
    /// Messages that cross the network, and their bytes.
    flows: u64,
    bytes: u64,
}

/// The operations of one rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankList {
    pub ops: Vec<Op>,
    /// Where each was found, for messages: a line, a node's id.
    pub places: Vec<u64>,
    /// How many others each waits for.
    pub needs: Vec<u32>,
    /// Those that wait for the end of each, and for its start.
    pub after_end: Lists,
    pub after_start: Lists,
    /// The processor and NIC that each uses; empty: the first of both.
    pub resources: Vec<(u8, u8)>,
    /// The operations that send, in their order.
    sends: Vec<u32>,
}

/// Many short lists, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    first: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    /// From pairs (list, entry), in their order.
    pub fn new(lists: usize, pairs: &[(u32, u32)]) -> Lists {
        if pairs.is_empty() {
            return Lists::default();
        }
        let mut first = vec![0; lists + 1];
        pairs.iter().for_each(|pair| first[pair.0 as usize + 1] += 1);
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let (mut next, mut all) = (first.clone(), vec![0; pairs.len()]);
        for &(list, entry) in pairs {
            all[next[list as usize] as usize] = entry;
            next[list as usize] += 1;
        }
        Lists { first, all }
    }

    pub fn of(&self, list: u32) -> &[u32] {
        match (self.first.get(list as usize), self.first.get(list as usize + 1)) {
            (Some(&from), Some(&to)) => &self.all[from as usize..to as usize],
            _ => &[],
        }
    }
}

impl RankList {
    /// `ends`, `starts`: pairs (operation, the one that waits for its end or for its start).
    pub fn new(ops: Vec<Op>, places: Vec<u64>, ends: &[(u32, u32)], starts: &[(u32, u32)]) -> RankList {
        let mut needs = vec![0; ops.len()];
        ends.iter().chain(starts).for_each(|pair| needs[pair.1 as usize] += 1);
        let (after_end, after_start) = (Lists::new(ops.len(), ends), Lists::new(ops.len(), starts));
        let is_send = |(at, op): (usize, &Op)| matches!(op, Op::Send { .. }).then_some(at as u32);
        let sends = ops.iter().enumerate().filter_map(is_send).collect();
        RankList { ops, places, needs, after_end, after_start, resources: Vec::new(), sends }
    }

    /// With the processor and NIC of each operation; they are left out where all are the first.
    pub fn with_resources(mut self, mut resources: Vec<(u8, u8)>) -> RankList {
        if resources.iter().any(|one| *one != (0, 0)) {
            resources.shrink_to_fit();
            self.resources = resources;
        }
        self
    }

    /// An operation that waits for itself, by way of others; none: all can be started in some order.
    pub fn cycle(&self) -> Option<Vec<u32>> {
        let mut left = self.needs.clone();
        let mut ready: Vec<u32> = (0..self.ops.len() as u32).filter(|&op| left[op as usize] == 0).collect();
        let mut started = 0;
        while let Some(op) = ready.pop() {
            started += 1;
            for &next in self.after_end.of(op).iter().chain(self.after_start.of(op)) {
                left[next as usize] -= 1;
                if left[next as usize] == 0 {
                    ready.push(next);
                }
            }
        }
        if started == self.ops.len() {
            return None;
        }
        // Every operation that is left waits for one that is left: going back from one of them ends in a
        // cycle.
        let mut before = FxHashMap::default();
        for op in (0..self.ops.len() as u32).filter(|&op| left[op as usize] > 0) {
            for &next in self.after_end.of(op).iter().chain(self.after_start.of(op)) {
                before.insert(next, op);
            }
        }
        let mut at = (0..self.ops.len() as u32).find(|&op| left[op as usize] > 0)?;
        let mut seen: Vec<u32> = Vec::new();
        loop {
            if let Some(from) = seen.iter().position(|&op| op == at) {
                seen.drain(..from);
                seen.reverse();
                return Some(seen);
            }
            seen.push(at);
            at = *before.get(&at)?;
        }
    }
}

impl Listed {
    /// The error names what is too large.
    pub fn new(
        ranks: Vec<RankList>,
        groups: Vec<Group>,
        instances: Vec<Instance>,
        send_ends: SendEnds,
        name: &'static str,
    ) -> Result<Listed, String> {
        let (mut first_send, mut first_message) = (Vec::new(), Vec::new());
        let mut count = 0u128;
        for rank in &ranks {
            first_send.push(counted(count)?);
            count += rank.sends.len() as u128;
        }
        first_send.push(counted(count)?);
        for instance in &instances {
            first_message.push(counted(count)?);
            count += u128::from(instance.law.messages());
        }
        first_message.push(counted(count)?);
        let (wholes, domains, flows, bytes) = (1, None, 0, 0);
        let listed = Listed {
            ranks,
            groups,
            instances,
            first_send,
            first_message,
            send_ends,
            name,
            place: "",
            wholes,
            domains,
            flows,
            bytes,
        };
        Ok(listed.counted())
    }

    /// With what the places of its operations are.
    pub fn with_places(self, place: &'static str) -> Listed {
        Listed { place, ..self }
    }

    /// With the number of steps that the ranks go through.
    pub fn with_wholes(self, wholes: u32) -> Listed {
        Listed { wholes, ..self }
    }

    /// Where the file has an operation, such as "line 3"; none: nowhere.
    pub fn place_of(&self, rank: u32, op: u32) -> Option<String> {
        let number = self.ranks[rank as usize].places.get(op as usize)?;
        (!self.place.is_empty()).then(|| format!("{} {number}", self.place))
    }

    /// An operation that never ends: its rank, what it is, and where it is written.
    pub fn waiting(&self, rank: u32, op: u32) -> String {
        let any = |number: Option<u32>, what: &str| match number {
            Some(number) => format!("{what} {number}"),
            None => format!("any {what}"),
        };
        let what = match self.ranks[rank as usize].ops.get(op as usize) {
            Some(Op::Send { to, tag, .. }) => format!("a send to rank {to} with tag {tag}"),
            Some(Op::Receive { from, tag, .. }) => {
                format!("a receive from {} with {}", any(*from, "rank"), any(*tag, "tag"))
            }
            Some(Op::Compute { .. }) => "a computation".to_string(),
            _ => "an operation".to_string(),
        };
        let place = self.place_of(rank, op).map_or(String::new(), |place| format!(" ({place})"));
        format!("rank {rank}: {what}{place}")
    }

    /// Messages between ranks of one domain of `size` consecutive ranks stay off the network.
    pub fn with_domains(self, size: u32, scale_up: ScaleUp) -> Listed {
        Listed { domains: Some((size.max(1), scale_up)), ..self }.counted()
    }

    /// Counts what crosses the network.
    fn counted(self) -> Listed {
        let (mut flows, mut bytes) = (0u64, 0u64);
        let mut add = |from: u32, to: u32, size: u64| {
            if !self.is_inside(from, to) {
                flows += 1;
                bytes = bytes.saturating_add(size);
            }
        };
        for (from, rank) in self.ranks.iter().enumerate() {
            for &op in &rank.sends {
                if let Op::Send { to, bytes, .. } = rank.ops[op as usize] {
                    add(from as u32, to, bytes);
                }
            }
        }
        // Operations of a job repeat: those that were counted, the latest last.
        let mut counted: Vec<(&Instance, (u64, u64))> = Vec::new();
        for instance in &self.instances {
            let known =
                counted.iter().rev().find(|(of, _)| of.group == instance.group && of.law == instance.law);
            let (more, size) = known.map_or_else(|| self.crossing(instance), |(_, found)| *found);
            if known.is_none() {
                if counted.len() == REMEMBERED {
                    counted.remove(0);
                }
                counted.push((instance, (more, size)));
            }
            flows += more;
            bytes = bytes.saturating_add(size);
        }
        Listed { flows, bytes, ..self }
    }

    /// Messages of an operation that cross the network, and their bytes.
    fn crossing(&self, instance: &Instance) -> (u64, u64) {
        let ranks = &self.groups[instance.group as usize].ranks;
        if ranks.iter().all(|&rank| self.is_inside(ranks[0], rank)) {
            return (0, 0);
        }
        let transfers = (0..instance.law.messages()).map(|message| instance.law.transfer(message));
        let crossing = transfers.filter(|of| !self.is_inside(ranks[of.from as usize], ranks[of.to as usize]));
        crossing.fold((0, 0u64), |(flows, bytes), of| (flows + 1, bytes.saturating_add(of.bytes)))
    }

    /// Whether a message between two ranks stays off the network.
    pub fn is_inside(&self, from: u32, to: u32) -> bool {
        from == to || self.domains.is_some_and(|(size, _)| from / size == to / size)
    }

    pub fn domain(&self) -> Option<u32> {
        self.domains.map(|(size, _)| size)
    }

    pub fn scale_up(&self) -> Option<ScaleUp> {
        self.domains.map(|(_, links)| links)
    }

    pub fn messages(&self) -> u32 {
        self.first_message.last().copied().unwrap_or(0)
    }

    /// Memory of the operations, with what a rank keeps of each while it runs.
    pub fn memory_bytes(&self) -> u64 {
        let of_rank = |rank: &RankList| {
            let waits = rank.after_end.all.len() + rank.after_start.all.len() + rank.ops.len();
            rank.ops.len() * (size_of::<Op>() + 8 + 4 + 4) + (waits + rank.sends.len()) * 4
        };
        let lists: usize = self.ranks.iter().map(of_rank).sum();
        (lists + self.instances.len() * size_of::<Instance>()) as u64
    }

    /// Messages that cross the network.
    pub fn flows(&self) -> u64 {
        self.flows
    }

    pub fn bytes_sent(&self) -> u64 {
        self.bytes
    }

    pub fn instance(&self, instance: u32) -> &Instance {
        &self.instances[instance as usize]
    }

    fn group(&self, instance: u32) -> &Group {
        &self.groups[self.instance(instance).group as usize]
    }

    /// The ranks of an operation.
    pub fn members(&self, instance: u32) -> &[u32] {
        &self.group(instance).ranks
    }

    pub fn law(&self, instance: u32) -> &Law {
        &self.instance(instance).law
    }

    pub fn rank(&self, instance: u32, member: u32) -> u32 {
        self.group(instance).ranks[member as usize]
    }

    pub fn member(&self, instance: u32, rank: u32) -> Member<'_> {
        Member {
            law: self.law(instance),
            first: self.first_message[instance as usize],
            member: self.group(instance).place(rank).unwrap_or(0),
            group: 0,
        }
    }

    /// Whether a message is a send of its own, not one of a collective operation.
    pub fn is_send(&self, number: u32) -> bool {
        number < self.own_sends()
    }

    /// The number of messages that belong to no collective operation.
    pub fn own_sends(&self) -> u32 {
        self.first_send.last().copied().unwrap_or(0)
    }

    pub fn place(&self, number: u32) -> Place {
        if self.is_send(number) {
            let rank = self.first_send.partition_point(|&first| first <= number) - 1;
            let op = self.ranks[rank].sends[(number - self.first_send[rank]) as usize];
            return Place::Send { rank: rank as u32, op };
        }
        let instance = self.first_message.partition_point(|&first| first <= number) - 1;
        let message = number - self.first_message[instance];
        Place::Collective { instance: instance as u32, group: 0, message }
    }

    /// Of each rank, the collective operation with the largest number of messages that it sends, of those that are
    /// not within one domain.
    pub fn widest(&self) -> Vec<Option<u32>> {
        let mut widest: Vec<(u32, Option<u32>)> = vec![(0, None); self.ranks.len()];
        let crosses = |group: &Group| group.ranks.iter().any(|&rank| !self.is_inside(group.ranks[0], rank));
        let crosses: Vec<bool> = self.groups.iter().map(crosses).collect();
        let all = (0..).zip(&self.instances);
        for (number, instance) in all.filter(|(_, instance)| crosses[instance.group as usize]) {
            for (&rank, member) in self.groups[instance.group as usize].ranks.iter().zip(0..) {
                let sends = instance.law.sends(member);
                if sends > widest[rank as usize].0 {
                    widest[rank as usize] = (sends, Some(number));
                }
            }
        }
        widest.into_iter().map(|(_, instance)| instance).collect()
    }

    /// The longest time for which one stream of a rank computes.
    pub fn computing(&self) -> Time {
        let of_rank = |list: &RankList| {
            let mut streams: FxHashMap<u16, u64> = FxHashMap::default();
            for op in &list.ops {
                if let Op::Compute { time, stream } = *op {
                    let sum = streams.entry(stream).or_default();
                    *sum = sum.saturating_add(time.0);
                }
            }
            streams.into_values().max().unwrap_or(0)
        };
        Time(self.ranks.iter().map(of_rank).max().unwrap_or(0))
    }

    /// Sender, receiver and bytes of the messages that belong to no collective operation.
    pub fn sends(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        let of_rank = |(from, list)| {
            let list: &RankList = list;
            list.sends.iter().filter_map(move |&op| match list.ops[op as usize] {
                Op::Send { to, bytes, .. } => Some((from, to, bytes)),
                _ => None,
            })
        };
        (0u32..).zip(&self.ranks).flat_map(of_rank)
    }

    /// The message of the first send of a rank.
    pub fn first_send(&self, rank: u32) -> Option<u32> {
        let first = self.first_send[rank as usize];
        (first < self.first_send[rank as usize + 1]).then_some(first)
    }

    /// The number of the message of a send.
    pub fn number(&self, rank: u32, op: u32) -> u32 {
        let sends = &self.ranks[rank as usize].sends;
        self.first_send[rank as usize] + sends.partition_point(|&send| send < op) as u32
    }

    pub fn message(&self, rank: u32, op: u32) -> Message {
        match self.ranks[rank as usize].ops[op as usize] {
            Op::Send { to, bytes, .. } => {
                Message { from: rank, to, bytes, channel: 0, inside: self.is_inside(rank, to) }
            }
            _ => Message { from: rank, to: rank, bytes: 0, channel: 0, inside: true },
        }
    }

    /// The steps of the ranks come first, then their collective operations.
    pub fn steps(&self) -> u32 {
        self.wholes + self.instances.len() as u32
    }

    pub fn wholes(&self) -> u32 {
        self.wholes
    }

    /// The number of the step that a collective operation is.
    pub fn step_of(&self, instance: u32) -> u32 {
        self.wholes + instance
    }

    pub fn shape(&self, step: u32, ranks: u32) -> JobShape {
        let Some(at) = step.checked_sub(self.wholes) else {
            return JobShape { operation: self.name, ranks, ..JobShape::default() };
        };
        let Instance { kind, bytes, .. } = self.instances[at as usize];
        let members = &self.group(at).ranks;
        let ranks = members.len() as u32;
        JobShape {
            operation: schedule::Kind::name(kind),
            ranks,
            // A barrier has no data: what counts are its messages.
            bytes: (kind != Kind::Barrier).then_some(bytes),
            bus: kind.bus(ranks),
            inside: members.iter().all(|&rank| self.is_inside(members[0], rank)),
        }
    }

    pub fn ranks_of(&self, step: u32, ranks: u32) -> u32 {
        step.checked_sub(self.wholes).map_or(ranks, |at| self.group(at).ranks.len() as u32)
    }
}
