//! What messages of a job cost, and what decides how long a collective operation takes: its longest chain of
//! messages, and what its busiest rank sends. How both make a time: see `graphs`.

use rustc_hash::FxHashSet;

use super::replay::Wire;
use crate::units::Time;
use crate::workload::schedule::{Law, Schedule};

/// Messages that are followed along the chain of a collective operation.
pub const MAX_CHAIN: u64 = 1_000_000;

/// Time of a message apart from its bytes, and seconds per payload byte.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    pub latency: Time,
    pub per_byte: f64,
    /// Seconds for the headers of a packet.
    pub per_packet: f64,
}

impl Cost {
    /// The time of the packets of this number of messages, which have some bytes together.
    pub fn bytes(&self, bytes: f64, messages: u64, mtu: u64) -> Time {
        let packets = (bytes / mtu as f64).ceil().max(messages as f64);
        Time(((bytes * self.per_byte + packets * self.per_packet) * 1e12).min(4e18) as u64)
    }
}

/// What limits messages between two hosts: seconds for a byte of their payload.
#[derive(Clone, Copy, Default)]
pub struct Limits {
    pub latency: Time,
    /// On the NICs that they use.
    pub own: f64,
    /// On the path of each.
    pub path: f64,
    /// On all NICs of a host, if links between switches are as slow as now: to be multiplied by a squeeze.
    pub shared: f64,
    pub between_switches: bool,
}

impl Limits {
    pub fn cost(&self, per_byte: f64, wire: &Wire) -> Cost {
        Cost { latency: self.latency, per_byte, per_packet: (wire.packet() - wire.mtu) as f64 * per_byte }
    }

    /// Where the links between switches take `squeeze` times as long as those of hosts.
    pub fn of_message(&self, squeeze: f64) -> f64 {
        match self.between_switches {
            true => self.own.max(self.path).max(self.shared * squeeze),
            false => self.own,
        }
    }
}

/// Costs of messages among some ranks: of a message in the mean, and of the slowest link.
#[derive(Clone, Copy, Default)]
pub struct Costs {
    pub mean: Cost,
    pub worst: Cost,
}

impl Costs {
    pub fn of(all: &[Cost]) -> Costs {
        let count = all.len().max(1);
        let latencies = all.iter().map(|cost| cost.latency.0 as f64).sum::<f64>();
        Costs {
            mean: Cost {
                latency: Time((latencies / count as f64) as u64),
                per_byte: all.iter().map(|cost| cost.per_byte).sum::<f64>() / count as f64,
                per_packet: all.iter().map(|cost| cost.per_packet).sum::<f64>() / count as f64,
            },
            worst: Cost {
                latency: all.iter().map(|cost| cost.latency).max().unwrap_or(Time::ZERO),
                per_byte: all.iter().map(|cost| cost.per_byte).fold(0.0, f64::max),
                per_packet: all.iter().map(|cost| cost.per_packet).fold(0.0, f64::max),
            },
        }
    }
}

/// What decides how long a collective operation takes.
#[derive(Clone, Copy)]
pub struct Extent {
    pub messages: u64,
    pub chain_bytes: f64,
    /// What the busiest rank sends.
    pub rank_messages: u64,
    pub rank_bytes: f64,
}

impl Extent {
    pub fn of(law: &Law, ranks: u32) -> Extent {
        let mut longest = Extent { messages: 0, chain_bytes: 0.0, rank_messages: 0, rank_bytes: 0.0 };
        let mut next = Vec::new();
        for rank in [0, 1, ranks / 2, ranks.saturating_sub(1)] {
            next.clear();
            law.opens(rank, &mut next);
            let (opened_bytes, channels) = opened(law, &next);
            let opens = next.first().copied();
            // A tree may be deeper below the first of the ranks that a message is passed on to, or below the last.
            for is_last in [false, true] {
                let (mut at, mut messages, mut bytes) = (opens, 0, opened_bytes);
                while let Some(message) = at.filter(|_| messages < MAX_CHAIN) {
                    messages += 1;
                    next.clear();
                    law.after_arrival(message, &mut next);
                    law.after_acknowledgement(message, &mut next);
                    // Messages of later rounds wait for more.
                    let later = match is_last {
                        false => next.iter().copied().min_by_key(|&later| law.needs(later)),
                        true => next.iter().rev().copied().min_by_key(|&later| law.needs(later)),
                    };
                    at = later.or_else(|| law.after_sending(message));
                    bytes += at.map_or(0.0, |at| channels * freed_with(law, at, &next));
                }
                if messages > longest.messages {
                    (longest.messages, longest.chain_bytes) = (messages, bytes);
                }
            }
            let sent = law.sent(rank).map_or_else(
                || {
                    let looked_at = u64::from(law.messages()).clamp(1, MAX_CHAIN);
                    let sum: f64 =
                        (0..looked_at as u32).map(|message| law.transfer(message).bytes as f64).sum();
                    sum / looked_at as f64 * f64::from(law.sends(rank).max(law.receives(rank)))
                },
                |(_, _, bytes)| bytes as f64,
            );
            longest.rank_bytes = longest.rank_bytes.max(sent);
            longest.rank_messages = longest.rank_messages.max(u64::from(law.sends(rank)));
        }
        longest
    }

    pub fn time(&self, Costs { mean, worst }: Costs, mtu: u64) -> Time {
        let latencies = Time(mean.latency.0.saturating_mul(self.messages));
        let chain = latencies.saturating_add(mean.bytes(self.chain_bytes, self.messages, mtu));
        let rank = worst.bytes(self.rank_bytes, self.rank_messages, mtu);
        chain.max(worst.latency.saturating_add(rank))
    }

    /// The time of the busiest rank, until what it sends is acknowledged.
    pub fn of_rank(&self, Costs { worst, .. }: Costs, mtu: u64) -> Time {
        let latencies = worst.latency.saturating_add(worst.latency);
        latencies.saturating_add(worst.bytes(self.rank_bytes, self.rank_messages, mtu))
    }
}

/// The bytes that a rank sends at once when it begins, and over how many channels it sends to the first of its
/// receivers: of the messages of a channel to a rank the first, which the others follow.
fn opened(law: &Law, opens: &[u32]) -> (f64, f64) {
    let Some(to) = opens.first().map(|&first| law.transfer(first).to) else { return (0.0, 1.0) };
    let mut known = FxHashSet::default();
    let transfers = opens.iter().map(|&open| law.transfer(open));
    let bytes = transfers.filter(|of| known.insert((of.channel, of.to))).map(|of| of.bytes as f64).sum();
    (bytes, known.iter().filter(|of| of.1 == to).count().max(1) as f64)
}

/// The bytes of a message and of those to others that its rank sends at the same event.
fn freed_with(law: &Law, message: u32, freed: &[u32]) -> f64 {
    let (own, needs) = (law.transfer(message), law.needs(message));
    let others = freed.iter().filter(|&&other| other != message && law.needs(other) == needs);
    let others = others.map(|&other| law.transfer(other)).filter(|other| other.from == own.from);
    own.bytes as f64 + others.map(|other| other.bytes as f64).sum::<f64>()
}
