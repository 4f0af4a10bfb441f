//! A collective operation, repeated: a rank starts the next one, after it has computed, when it has its
//! own result of the one before. There is no global barrier, because ranks have no information about each
//! other.

use super::super::JobShape;
use super::super::schedule::{Law, Phase, Phases, Schedule, Transfer, counted};
use super::{Member, Place, Seats};
use crate::units::{Rate, Time};

/// The links within scale-up domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleUp {
    /// At which a rank sends.
    pub rate: Rate,
    pub delay: Time,
}

pub struct Repeated {
    phases: Phases,
    /// The number of the first message of each phase, within one operation.
    bases: Vec<u32>,
    /// Messages of one operation.
    each: u32,
    ranks: u32,
    pub repeat: u32,
    /// Computation of a rank between two operations.
    pub compute: Time,
    pub shape: JobShape,
    /// Messages within domains take their time by this; none: they cross the network.
    pub scale_up: Option<ScaleUp>,
    seats: Seats,
    flows_each: u64,
    bytes_each: u64,
    /// Some rank waits for the acknowledgement of a message.
    pub heeds_acknowledgements: bool,
}

impl Repeated {
    /// The error names what is too large.
    pub fn new(
        phases: Phases,
        ranks: u32,
        (repeat, compute): (u32, Time),
        shape: JobShape,
        (scale_up, seats): (Option<ScaleUp>, Seats),
    ) -> Result<Repeated, String> {
        let (mut bases, mut each) = (Vec::new(), 0u128);
        let (mut flows_each, mut bytes_each) = (0u64, 0u64);
        for phase in &phases {
            bases.push(counted(each)?);
            let groups = phase.groups.count(ranks);
            let messages = u128::from(phase.largest().messages()) * u128::from(groups);
            each += messages;
            if phase.inside && scale_up.is_some() {
                continue;
            }
            let members = ranks / groups.max(1);
            if seats.per_host == 1 {
                flows_each += messages as u64;
                for (law, groups) in phase.laws(ranks) {
                    each_sent(law, members, |_, _, _, bytes| {
                        bytes_each = bytes_each.saturating_add(bytes.saturating_mul(u64::from(groups)));
                    });
                }
                continue;
            }
            for group in 0..groups {
                each_sent(phase.law(group), members, |from, to, messages, bytes| {
                    let [from, to] = [from, to].map(|member| phase.groups.rank(group, member));
                    if !seats.together(from, to) {
                        flows_each += messages;
                        bytes_each = bytes_each.saturating_add(bytes);
                    }
                });
            }
        }
        let each = counted(each)?;
        let numbers = u128::from(each).max(phases.len() as u128) * u128::from(repeat);
        if numbers > u128::from(u32::MAX) {
            return Err(format!(
                "{numbers} messages in {repeat} operations exceed the limit of {}: use fewer operations (repeat), fewer ranks, an \
                 algorithm with fewer messages, or a larger chunk if one is set",
                u32::MAX
            ));
        }
        let heeds = |phase: &Phase| {
            let (law, members) = (phase.largest(), ranks / phase.groups.count(ranks).max(1));
            (0..members).any(|member| law.awaits_acknowledgements(member))
        };
        Ok(Repeated {
            heeds_acknowledgements: phases.iter().any(heeds),
            phases,
            bases,
            each,
            ranks,
            repeat,
            compute,
            shape,
            scale_up,
            seats,
            flows_each,
            bytes_each,
        })
    }

    pub fn messages(&self) -> u32 {
        self.each * self.repeat
    }

    /// Messages of one operation.
    pub fn each(&self) -> u32 {
        self.each
    }

    pub fn flows(&self) -> u64 {
        self.flows_each * u64::from(self.repeat)
    }

    pub fn bytes_sent(&self) -> u64 {
        self.bytes_each.saturating_mul(u64::from(self.repeat))
    }

    /// Instances are the phases of all operations, one after the other.
    pub fn instances(&self) -> u32 {
        self.phases.len() as u32 * self.repeat
    }

    pub fn phase(&self, instance: u32) -> &Phase {
        &self.phases[instance as usize % self.phases.len()]
    }

    /// Whether a message of an instance stays off the network.
    pub fn is_inside(&self, instance: u32, from: u32, to: u32) -> bool {
        self.scale_up.is_some() && self.phase(instance).inside || self.seats.together(from, to)
    }

    /// The operation of an instance, and whether it is its first and its last phase.
    pub fn step(&self, instance: u32) -> (u32, bool, bool) {
        let phases = self.phases.len() as u32;
        (instance / phases, instance % phases == 0, instance % phases == phases - 1)
    }

    pub fn place(&self, number: u32) -> Place {
        let (step, within) = (number / self.each, number % self.each);
        let phase = self.bases.partition_point(|&base| base <= within) - 1;
        let messages = self.phases[phase].largest().messages();
        let within = within - self.bases[phase];
        Place::Collective {
            instance: step * self.phases.len() as u32 + phase as u32,
            group: within / messages,
            message: within % messages,
        }
    }

    pub fn member(&self, instance: u32, rank: u32) -> Member<'_> {
        let phases = self.phases.len() as u32;
        let (step, at) = (instance / phases, (instance % phases) as usize);
        let phase = &self.phases[at];
        let (group, member) = phase.groups.place(rank);
        let law = phase.law(group);
        let first = step * self.each + self.bases[at] + group * law.messages();
        Member { law, first, member, group }
    }

    /// Ranks of a domain, within which a phase stays.
    pub fn domain(&self) -> Option<u32> {
        let inside = self.phases.iter().find(|phase| phase.inside)?;
        Some(self.ranks / inside.groups.count(self.ranks).max(1))
    }

    /// Whether ranks send to each other outside the network.
    pub fn has_inside(&self) -> bool {
        self.scale_up.is_some() && (self.seats.per_host > 1 || self.phases.iter().any(|phase| phase.inside))
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }
}

/// Calls `each` with sender, receiver, number and bytes of the messages of a law, where it says them
/// together, or else of each message.
fn each_sent(law: &Law, members: u32, mut each: impl FnMut(u32, u32, u64, u64)) {
    if members == 0 || law.sent(0).is_none() {
        for message in 0..law.messages() {
            let Transfer { from, to, bytes, .. } = law.transfer(message);
            each(from, to, 1, bytes);
        }
        return;
    }
    for from in 0..members {
        let Some((to, messages, bytes)) = law.sent(from) else { continue };
        each(from, to, messages, bytes);
    }
}
