//! Priority levels: how many of them unscheduled packets have, and which sizes belong to each.

use super::layout::Layout;
use super::parameters::HomaConfig;

/// How the levels of a run are divided. Level 0 is the highest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// The lowest ones are for scheduled packets.
    pub scheduled: u32,
    /// Senders that are granted to at once.
    pub overcommit: u32,
    /// A packet before which at most so many bytes of its message are left has this level; without such a one
    /// the level after the last.
    pub cutoffs: Vec<u64>,
}

impl Levels {
    /// Divides the levels for messages of these sizes.
    ///
    /// The unscheduled levels get the share of the bytes that is sent without grants, and each of them gets
    /// equal bytes: those of unscheduled packets and of the last ones of longer messages, with headers, and
    /// grants in the first.
    pub fn new(config: &HomaConfig, sizes: &[u64]) -> Levels {
        let all = config.priorities;
        let limit = all.saturating_sub(1).max(1);
        let given = config.cutoffs.as_ref().map(|cutoffs| cutoffs.len() as u32 + 1);
        let unscheduled = match (config.scheduled, given) {
            (_, Some(given)) => given,
            (0, None) => unscheduled_levels(config, sizes).min(limit),
            (scheduled, None) => all.saturating_sub(scheduled).max(1),
        };
        let scheduled = match config.scheduled {
            0 => all.saturating_sub(unscheduled).max(1),
            given => given,
        };
        let overcommit = if config.overcommit == 0 { scheduled } else { config.overcommit };
        let cutoffs = match &config.cutoffs {
            Some(given) => given.clone(),
            None => cutoffs(config, sizes, unscheduled),
        };
        Levels { scheduled, overcommit, cutoffs }
    }

    /// The level of a packet that needs no grant.
    #[inline]
    pub fn unscheduled(&self, left: u64) -> u8 {
        self.cutoffs.partition_point(|&cutoff| cutoff < left) as u8
    }

    /// The level of a grant for the sender at `place` among `active` ones: with few of them the lowest ones.
    #[inline]
    pub fn scheduled(&self, priorities: u32, place: u32, active: u32) -> u8 {
        let used = active.clamp(1, self.scheduled);
        (priorities - used + place.min(used - 1)) as u8
    }
}

/// The share of bytes that is sent without grants, in levels, rounded.
fn unscheduled_levels(config: &HomaConfig, sizes: &[u64]) -> u32 {
    let first: f64 = sizes.iter().map(|&size| config.layout(size).unscheduled_bytes as f64).sum();
    let all: f64 = sizes.iter().map(|&size| size as f64).sum();
    let share = if all > 0.0 { first / all } else { 0.5 };
    ((share * f64::from(config.priorities)).round() as u32).max(1)
}

/// Messages of one size, whose packets are counted, not listed: one may have a million of them.
struct Messages {
    layout: Layout,
    count: u64,
    /// Of the scheduled packets the first of those at the end that are in flight together.
    tail: u32,
    /// Counted bytes of all smaller messages.
    before: u64,
}

impl Messages {
    /// Those of a number of messages, in order of size, and the counted bytes of all.
    fn of(config: &HomaConfig, sizes: &[u64]) -> (Vec<Messages>, u64) {
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        let (mut all, mut total) = (Vec::new(), 0);
        for same in sizes.chunk_by(|one, other| one == other) {
            let layout = config.layout(same[0]);
            let (mut first, mut tail) = (layout.unscheduled, layout.packets);
            while first < tail {
                let middle = first.midpoint(tail);
                match layout.wire_of(layout.size - layout.before(middle)) <= config.rtt_bytes {
                    true => tail = middle,
                    false => first = middle + 1,
                }
            }
            let messages = Messages { layout, count: same.len() as u64, tail, before: total };
            total += messages.bytes(config, layout.size);
            all.push(messages);
        }
        (all, total)
    }

    /// Bytes on the wire of the packets that have at most this number of bytes of their message left before
    /// them: of those without a grant, and of the tail. All grants are counted with them.
    fn bytes(&self, config: &HomaConfig, left: u64) -> u64 {
        let (of, header) = (&self.layout, u64::from(config.header));
        let first = of.number_at(of.size.saturating_sub(left));
        let mut bytes = u64::from(of.packets - of.unscheduled) * u64::from(config.control);
        if first < of.unscheduled {
            let packets = u64::from(of.unscheduled - first);
            bytes += of.unscheduled_bytes - of.before(first) + packets * (header + u64::from(config.extra));
        }
        let from = first.max(self.tail);
        bytes += of.size - of.before(from) + u64::from(of.packets - from) * header;
        self.count * bytes
    }
}

fn cutoffs(config: &HomaConfig, sizes: &[u64], levels: u32) -> Vec<u64> {
    let (messages, total) = Messages::of(config, sizes);
    let Some(largest) = messages.last().map(|messages| messages.layout.size) else {
        return vec![u64::MAX; levels as usize - 1];
    };
    let bytes = |left: u64| {
        let larger = messages.partition_point(|messages| messages.layout.size <= left);
        let smaller = messages.get(larger).map_or(total, |messages| messages.before);
        smaller + messages[larger..].iter().map(|messages| messages.bytes(config, left)).sum::<u64>()
    };
    let mut cutoff = 0;
    let smallest = |level: u32| {
        let mut above = largest;
        while cutoff < above {
            let middle = cutoff.midpoint(above);
            match bytes(middle) * u64::from(levels) >= total * u64::from(level) {
                true => above = middle,
                false => cutoff = middle + 1,
            }
        }
        cutoff
    };
    (1..levels).map(smallest).collect()
}
