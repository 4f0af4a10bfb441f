//! Priority levels: how many of them unscheduled packets have, and which sizes belong to each.

use super::parameters::HomaConfig;

/// How the levels of a run are divided. Level 0 is the highest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// The lowest ones are for scheduled packets.
    pub scheduled: u32,
    /// Senders that are granted to at once.
    pub overcommit: u32,
    /// A packet before which at most so many bytes of its message are left has this level; without such a one the level
    /// after the last.
    pub cutoffs: Vec<u64>,
}

impl Levels {
    /// Divides the levels for messages of these sizes.
    ///
    /// The unscheduled levels get the share of the bytes that is sent without grants, and each of them gets equal bytes:
    /// those of unscheduled packets and of the last ones of longer messages, with headers, and grants in the first.
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

fn cutoffs(config: &HomaConfig, sizes: &[u64], levels: u32) -> Vec<u64> {
    // Bytes left before a packet, and its bytes on the wire.
    let mut packets: Vec<(u64, u64)> = Vec::new();
    for &size in sizes {
        let layout = config.layout(size);
        let add = |number: u32| (size - layout.before(number), u64::from(layout.wire_bytes(number)));
        packets.extend((0..layout.unscheduled).map(add));
        let granted = layout.packets - layout.unscheduled;
        packets.push((0, u64::from(granted) * u64::from(config.control)));
        let tail = (layout.unscheduled..layout.packets).rev().map(add);
        packets.extend(tail.take_while(|(left, _)| layout.wire_of(*left) <= config.rtt_bytes));
    }
    packets.sort_unstable();
    let total: u64 = packets.iter().map(|packet| packet.1).sum();
    let (mut found, mut below) = (Vec::new(), 0);
    for (left, bytes) in packets {
        below += bytes;
        while (found.len() as u32) < levels - 1
            && below * u64::from(levels) >= total * (found.len() as u64 + 1)
        {
            found.push(left);
        }
    }
    found.resize(levels as usize - 1, u64::MAX);
    found
}
