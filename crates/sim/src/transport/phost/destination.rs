//! A flow at its destination: which packets have come, how many tokens were given, and whether another may
//! be.
//!
//! Tokens are counted. A flow may have `window` of them outstanding beyond the highest one that data has
//! brought back; when it has more, its source is busy elsewhere and it is *downgraded*: it gets one token
//! when `downgrade` has passed since the last one, until data come again. When as many tokens were given as
//! packets are needed, the flow is left alone for a while; what is missing then is asked for again. Loss
//! needs no other treatment.
//!
//! A source whose packets take longer than this host's would let most tokens expire. Its request states this
//! time; its flow then gets tokens, and has its times, at the pace of the source, and the ticks between go to
//! other flows.
//!
//! Tokens go before data, so tokens that nothing answers could fill a slow fabric and keep the answers from
//! coming. Where `downgrade` is shorter than four round trips it doubles up to them once [`PATIENCE`] tokens
//! in a row brought nothing back; on the published network it is longer.
//!
//! Source: Gao et al., "pHost", CoNEXT 2015; the states are those of its authors' simulator.

use super::ranking::Rank;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketKind, flag};
use crate::transport::arrived::Arrived;
use crate::transport::phost::parameters::{FreeTokens, PhostConfig};
use crate::units::Time;

#[derive(Debug)]
pub struct DestinationFlow {
    pub flow: u32,
    pub src: u32,
    /// The source's own number for it.
    pub sender: u32,
    pub profile: u8,
    pub group: u16,
    pub hash: u32,
    pub arrived: Arrived,
    pub rank: Rank,
    pub place: Place,
    /// Its request has come; data may overtake it.
    pub requested: bool,
    /// A repeated request was the first packet of it that came: all earlier ones had been lost.
    late: bool,
    /// Tokens given, free ones included.
    given: u64,
    /// Tokens to give before it is left alone.
    goal: u64,
    /// One more than the highest token that data has brought back; moved up when a downgraded flow gets
    /// another chance.
    returned: u64,
    /// It is left alone until then.
    waits_until: Option<Time>,
    last_given: Time,
    /// How often packets were still missing when it had been left alone for them.
    pub rounds: u32,
    /// Time of a full packet at its source; 0: no request has come.
    source_time: Time,
    /// No token before; only flows of slower sources have such a time.
    due: Time,
    /// Tokens given to it while downgraded since data last came.
    unanswered: u32,
    /// The next token is for the first packet from here on that is missing.
    next_packet: u32,
}

/// Where a flow is among those that want tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the order of those that may get one.
    Ranked,
    /// Nothing for it until then: its window is full (which data may change), or its packets are awaited.
    Blocked { until: Time, by_window: bool },
    /// It has arrived in full.
    Gone,
}

/// Tokens of a downgraded flow that may go unanswered before they become rarer.
const PATIENCE: u32 = 16;

/// Times of the token clock on a network whose packets take `packet_time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    packet_time: Time,
    pub interval: Time,
    pub retoken: Time,
    pub downgrade: Time,
    /// What it grows to while nothing comes back.
    pub longest_downgrade: Time,
    /// For every free token of a flow that has no others, and once for the flow.
    first_wait: Time,
    first_wait_extra: Time,
}

impl Pace {
    pub fn new(config: &PhostConfig, packet_time: Time, base_rtt: Time) -> Pace {
        let times = |factor: f64| scaled(packet_time, factor);
        let downgrade = times(config.downgrade);
        Pace {
            packet_time,
            interval: times(config.token_interval).max(Time(1)),
            retoken: times(config.retoken),
            downgrade,
            longest_downgrade: downgrade.max(Time(base_rtt.0.saturating_mul(4))),
            first_wait: times(config.first_wait),
            first_wait_extra: times(config.first_wait_extra),
        }
    }

    /// From the first packet of a flow with this many free tokens and no others until it may be given new ones.
    fn until_given(&self, free: u64) -> Time {
        Time(self.first_wait.0.saturating_mul(free)).saturating_add(self.first_wait_extra)
    }

    /// From one token of a downgraded flow to the next, when so many have gone unanswered.
    fn until_next_chance(&self, unanswered: u32) -> Time {
        let doublings = unanswered.saturating_sub(PATIENCE).min(40);
        Time(self.downgrade.0.max(1).saturating_mul(1 << doublings))
            .clamp(self.downgrade, self.longest_downgrade)
    }
}

/// So many times a packet's time, to the nearest picosecond; 53 days at most, so that no sum of times wraps.
pub fn scaled(packet_time: Time, factor: f64) -> Time {
    const MAX: u64 = 1 << 62;
    Time(((packet_time.0 as f64 * factor).round() as u64).min(MAX))
}

impl DestinationFlow {
    /// The flow of a packet that was the first to come, `now`.
    pub fn new(
        first: &Packet,
        packets: u32,
        config: &PhostConfig,
        rank: Rank,
        now: Time,
        pace: &Pace,
    ) -> DestinationFlow {
        let free = config.free_tokens_of(packets);
        let all_free = free == packets;
        // The window counts what this end gave: free tokens of a longer flow are left out, or they would fill
        // it at once.
        let returned = if config.free_for == FreeTokens::Every && !all_free { free } else { 0 };
        DestinationFlow {
            flow: first.flow,
            src: first.src,
            sender: first.sender,
            profile: first.profile,
            group: first.group,
            hash: flow_hash(first.dst, first.src, first.flow),
            arrived: Arrived::new(packets),
            rank,
            place: Place::Ranked,
            requested: false,
            late: first.kind == PacketKind::Control && first.is_last(),
            given: u64::from(free),
            goal: u64::from(packets),
            returned: u64::from(returned),
            waits_until: all_free.then(|| now.saturating_add(pace.until_given(u64::from(free)))),
            last_given: Time::ZERO,
            rounds: 0,
            source_time: Time::ZERO,
            due: Time::ZERO,
            unanswered: 0,
            next_packet: free,
        }
    }

    /// Its request has come: a full packet takes the source this time.
    pub fn learn_source(&mut self, source_time: Time, config: &PhostConfig, now: Time, pace: &Pace) {
        let first = std::mem::replace(&mut self.source_time, source_time) == Time::ZERO;
        let slow = first && source_time > pace.packet_time && self.last_given == Time::ZERO;
        if let Some(until) = self.waits_until.filter(|_| slow) {
            let wait = self.pace(config, pace).until_given(self.given);
            self.waits_until = Some(until.max(now.saturating_add(wait)));
        }
    }

    /// The pace of this flow, by that of the host.
    pub fn pace(&self, config: &PhostConfig, of_host: &Pace) -> Pace {
        if self.source_time <= of_host.packet_time {
            return *of_host;
        }
        Pace::new(config, self.source_time, config.longest_rtt)
    }

    /// Takes in a data packet that a token brought; whether it is new.
    pub fn take(&mut self, packet: u32, token: u32) -> bool {
        self.returned = self.returned.max(u64::from(token) + 1);
        self.unanswered = 0;
        self.arrived.take(packet)
    }

    /// The window has room.
    pub fn has_room(&self, config: &PhostConfig) -> bool {
        // Tokens that data brought back may have been given before a downgraded flow was given another
        // chance.
        self.given.saturating_sub(self.returned) < u64::from(config.window)
    }

    /// It is this flow's turn: whether it may get a token now. If not, where it is instead.
    pub fn admit(&mut self, config: &PhostConfig, now: Time, pace: &Pace) -> Result<(), Place> {
        if now < self.due {
            return Err(Place::Blocked { until: self.due, by_window: false });
        }
        if let Some(until) = self.waits_until {
            if now < until {
                return Err(Place::Blocked { until, by_window: false });
            }
            self.waits_until = None;
            self.goal += u64::from(self.arrived.missing());
            self.rounds += 1;
        }
        if !self.has_room(config) {
            let until = self.last_given.saturating_add(pace.until_next_chance(self.unanswered));
            if now < until {
                return Err(Place::Blocked { until, by_window: true });
            }
            self.returned = self.given + 1 - u64::from(config.window);
            self.unanswered = self.unanswered.saturating_add(1);
        }
        Ok(())
    }

    /// Gives a token: (its number, the packet that it is for). None: nothing is missing. `tick`: the interval
    /// of the clock, by which a token may be late: the next one makes up for it.
    pub fn give(&mut self, now: Time, pace: &Pace, tick: Time) -> Option<(u32, u32)> {
        let packet = self.arrived.missing_from(self.next_packet)?;
        let number = self.given as u32;
        self.next_packet = packet.saturating_add(1);
        self.given += 1;
        self.last_given = now;
        if pace.interval > tick {
            self.due = self.due.max(now.saturating_sub(tick)).saturating_add(pace.interval);
        }
        if self.given >= self.goal {
            self.waits_until = Some(now.saturating_add(pace.retoken));
        }
        Some((number, packet))
    }

    /// The flag by which answers state that the request that was answered was a repeated one.
    pub fn late(&self) -> u8 {
        if self.late { flag::LAST } else { 0 }
    }

    /// Whether it needs tokens of this end and none was given.
    pub fn awaits_token(&self) -> bool {
        self.waits_until.is_none() && self.last_given == Time::ZERO
    }

    /// Until when it is left alone, if it is.
    pub fn left_alone(&self) -> Option<Time> {
        self.waits_until
    }
}

#[cfg(test)]
mod tests;
