//! Cebinae: a link that is full taxes its largest flows and leaves what they give up to the others.
//!
//! Two queues take turns as *head*, which is being sent, and *tail*, the next round's. At arrival the [`filter`] puts a
//! packet into the head, the tail or nowhere, by what its group (top or bottom) may send. At departure the port's bytes and
//! each flow's are counted ([`cache`]). The control [`agent`] judges them once per period.
//!
//! The clock: rounds of length dT; rotation number k at k dT + vdT + L; reconfiguration at (k+1) dT + vdT, that is L before
//! the next rotation. Nothing else is timed, and neither of the two sends anything: so they are made up for when the next
//! packet comes or leaves, before it, which is as if each had its event.
//!
//! Source: Yu, Sonchack and Liu, "Cebinae: Scalable In-network Fairness Augmentation", SIGCOMM 2022, as the authors' ns-3.35
//! code has it (their commit cebcbdb); options of their Tofino prototype.
//! Differs from the source: the hash of the flow cache where `ns3_senders` is not given ([`cache`]).
//! *Parameters*: see `weftline explain cebinae`.
//! Validated by: the hand-worked sequence and clock below; the authors' stored control traces of three rows, replayed bit for
//! bit (`tests.rs`).

mod accuracy;
mod agent;
mod cache;
mod counters;
mod filter;
mod read;

use super::PortMemory;
use super::five_tuple::FiveTuples;
use super::managed::{
    BUFFER, Discipline, DisciplineParameters, Limit, List, PortFacts, PortPlace, QueueContext, Queued,
};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::{Bytes, Rate, Time};
pub use accuracy::{CacheErrors, CacheTrial};
use agent::{Agent, Decision, WHOLE};
#[cfg(test)]
use cache::Slot;
use cache::{FlowCache, PERTURBATION, own_hash};
use counters::{COUNTERS, FILTER, Tally};
use filter::{Filter, Group, Passage};
pub use read::{CacheKind, CebinaeConfig};

impl DisciplineParameters for CebinaeConfig {
    type State = Cebinae;
    const DOC: SchemeDoc = SchemeDoc {
        name: "cebinae",
        title: "two FIFO rounds; a saturated link limits its largest flows and leaves capacity to the others",
        source: "Yu, Sonchack, Liu, \"Cebinae: Scalable In-network Fairness Augmentation\", SIGCOMM 2022, and its authors' ns-3.35 code",
        validation: "Filter and agent by a hand-worked sequence; the authors' stored control traces replayed bit for bit; page: \
                     docs/schemes/cebinae.md.",
        counters: &[&FILTER, &COUNTERS],
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> CebinaeConfig {
        read::read(p)
    }

    fn warning(&self, limit: Limit, port: &PortFacts) -> Option<String> {
        let of_limit = self.drains_late(limit, port).or_else(|| self.never_has_room(limit, port));
        of_limit.or_else(|| self.decides_late(port))
    }

    fn largest(&self, limit: Limit) -> Bytes {
        if self.shared { limit.bytes } else { Bytes(limit.bytes.0 / 2) }
    }

    fn tables(&self) -> PortMemory {
        FlowCache::memory(self.cache, self.cache_stages, self.cache_slots)
    }

    fn start(&self, limit: Limit, place: &PortPlace) -> Cebinae {
        Cebinae::new(self, limit, place)
    }
}

impl CebinaeConfig {
    /// Rounds must be as long as a full buffer needs to drain, or packets of two rounds meet.
    fn drains_late(&self, limit: Limit, port: &PortFacts) -> Option<String> {
        let (round, full) = (Time::from_ns(self.round_at(port.rate, limit)), limit.full());
        let drain = port.rate.transmission_time(full.0);
        (drain > round).then(|| {
            format!(
                "switch.queue.round: the buffer of {}, {full}, cannot drain in a round of {round}: it needs \
                 {drain}, so that packets of two rounds wait in one queue; set a longer round or a smaller buffer",
                (port.name)()
            )
        })
    }

    /// Half of one packet is none.
    fn never_has_room(&self, limit: Limit, port: &PortFacts) -> Option<String> {
        (!self.shared && limit.packets < 2).then(|| {
            format!(
                "switch.queue.packets: each of two rounds has half of the buffer of {} (buffer = \"split\"), which has room for {} \
                 packet: none ever passes. Set packets = 2 or more, or buffer = \"pool\"",
                (port.name)(),
                limit.packets
            )
        })
    }

    /// From a decision to the next rotation new top flows have no rate: for a round trip, that is a whole window of each.
    fn decides_late(&self, port: &PortFacts) -> Option<String> {
        let base_rtt = (port.base_rtt)();
        (self.deadline > base_rtt).then(|| {
            format!(
                "switch.queue.deadline: {} at {}, and the longest base RTT is {base_rtt}: a flow that becomes one of the largest has no \
                 rate for that time, so that a whole window of it is dropped and it waits for a retransmission timeout. Set a deadline \
                 below a base RTT",
                self.deadline,
                (port.name)()
            )
        })
    }
}

/// The queue of packets that are not judged.
const DEFAULT: usize = 2;

#[derive(Debug, Clone)]
pub struct Cebinae {
    config: CebinaeConfig,
    round: u64,
    /// The two rounds', and the one of packets that are not judged.
    queues: [List; 3],
    /// The queue that is served first.
    first: usize,
    filter: Filter,
    agent: Agent,
    cache: FlowCache,
    tuples: Option<FiveTuples>,
    /// What the agent decided last; its rates are for the next queue that becomes the tail.
    decision: Decision,
    port_bytes: u64,
    /// Rounds since the last recomputation.
    rounds: u32,
    next: Step,
    /// When that is, in nanoseconds.
    due: u64,
    /// A packet that comes goes before a step of the same time whose event was made later than the one for its arrival: at least
    /// this before it, in nanoseconds.
    under_way: u64,
    tally: Tally,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Rotate,
    Reconfigure,
}

impl Cebinae {
    pub fn new(config: &CebinaeConfig, limit: Limit, place: &PortPlace) -> Cebinae {
        let rate = place.rate.0;
        let round = config.round_at(place.rate, limit).max(1);
        let tick = config.virtual_round.ns().max(1);
        let agent = Agent::new(config, rate, round);
        let decision = Decision { saturated: false, top: Vec::new(), rates: agent.idle_rates() };
        Cebinae {
            config: *config,
            round,
            queues: [List::default(); 3],
            first: 1,
            filter: Filter::new(config, round, rate),
            agent,
            cache: FlowCache::new(config.cache, config.cache_stages, config.cache_slots),
            tuples: FiveTuples::of(config.ns3_senders),
            decision,
            port_bytes: 0,
            rounds: 1,
            next: Step::Rotate,
            due: round + tick + config.deadline.ns(),
            under_way: place.under_way.ns(),
            tally: Tally::default(),
        }
    }

    /// Makes up for what control did until now. At the same moment control goes before packets, except a packet whose arrival had been
    /// made an event before control's step was (`under_way` nanoseconds before it).
    #[inline]
    fn keep_time(&mut self, now: u64, under_way: u64) {
        if now >= self.due {
            self.catch_up(now, under_way);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self, now: u64, under_way: u64) {
        while self.due < now || self.due == now && (under_way == 0 || under_way < self.announced()) {
            let deadline = self.config.deadline.ns();
            match self.next {
                Step::Rotate => {
                    self.filter.rotate(self.decision.rates);
                    (self.next, self.due) = (Step::Reconfigure, self.due + self.round - deadline);
                    self.skip_idle(now);
                }
                Step::Reconfigure => {
                    self.reconfigure();
                    (self.next, self.due) = (Step::Rotate, self.due + deadline);
                }
            }
        }
    }

    /// How long before it the event of the next step is made, in nanoseconds.
    fn announced(&self) -> u64 {
        let deadline = self.config.deadline.ns();
        match self.next {
            Step::Rotate => deadline,
            Step::Reconfigure => self.round - deadline,
        }
    }

    /// Rounds without packets and without anything to forget change nothing but the time.
    fn skip_idle(&mut self, now: u64) {
        let idle = self.agent.idle_rates();
        let rests = self.port_bytes == 0
            && self.agent.rests()
            && self.decision.top.is_empty()
            && self.decision.rates == idle
            && self.filter.rests_at(idle);
        // Whole pairs of rounds, and whole periods, are as if they had been gone through.
        let unit = 2 * u64::from(self.config.period);
        let units = now.saturating_sub(self.due) / self.round / unit;
        if rests && units > 1 {
            let rounds = (units - 1) * unit;
            self.filter.skip(rounds);
            self.due += rounds * self.round;
            self.tally.windows += rounds / u64::from(self.config.period);
        }
    }

    fn reconfigure(&mut self) {
        self.first = 1 - self.filter.head;
        self.rounds += 1;
        if self.rounds % self.config.period == 0 {
            self.rounds = 0;
            self.decision = self.agent.decide(self.port_bytes, self.cache.counts());
            self.cache.clear();
            self.port_bytes = 0;
            self.tally.windows += 1;
            self.tally.windows_saturated += u64::from(self.decision.saturated);
            self.tally.top_flows += self.decision.top.len() as u64;
        }
        self.filter.note_rates();
    }

    /// Who the packet counts for.
    fn flow_of(&self, packet: &Queued, cx: &QueueContext) -> u64 {
        if self.config.by_hosts { cx.hosts_of(packet) } else { u64::from(packet.flow) }
    }

    /// Counts bytes of the packet's flow.
    fn count(&mut self, packet: &Queued, bytes: u64, cx: &QueueContext) {
        let flow = self.flow_of(packet, cx);
        match self.tuples {
            None => self.cache.add(flow, bytes, |stage| own_hash(flow, stage)),
            Some(tuples) => {
                let hash = |stage: u32| cx.five_tuple(packet, tuples, stage.wrapping_mul(PERTURBATION));
                self.cache.add(flow, bytes, |stage| u64::from(hash(stage)));
            }
        }
    }

    fn group_of(&self, packet: &Queued, cx: &QueueContext) -> Group {
        let top = &self.decision.top;
        let is_top = packet.data && !top.is_empty() && top.binary_search(&self.flow_of(packet, cx)).is_ok();
        if is_top { Group::Top } else { Group::Bottom }
    }

    fn has_room(&self, queue: usize, size: u32, cx: &QueueContext) -> bool {
        if self.config.shared {
            return !cx.is_full_for(size);
        }
        let (list, limit) = (&self.queues[queue], cx.limit());
        list.packets < limit.packets / 2 && list.bytes + u64::from(size) <= limit.bytes.0 / 2
    }
}

impl Discipline for Cebinae {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        let now = cx.now.ns();
        self.keep_time(now, self.under_way);
        let group = self.group_of(&packet, cx);
        let judged = !self.config.only_saturated || self.decision.saturated;
        let passage =
            if judged { self.filter.pass(group, u64::from(packet.size), now) } else { Passage::Head };
        let queue = match passage {
            Passage::Head if !judged && self.config.default_queue => DEFAULT,
            Passage::Head => self.filter.head,
            Passage::Tail => 1 - self.filter.head,
            Passage::Drop => {
                self.tally.dropped_by_filter += 1;
                return cx.drop(packet, &FILTER);
            }
        };
        if !self.has_room(queue, packet.size, cx) {
            self.tally.dropped_by_buffer += 1;
            return cx.drop(packet, &BUFFER);
        }
        match passage {
            Passage::Head => self.tally.to_head += 1,
            _ => self.tally.to_tail += 1,
        }
        cx.waiting.push(&mut self.queues[queue], packet);
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        // A rotation changes nothing of what leaves, and packets may yet come that go before it.
        let waits = self.under_way > 0 && self.next == Step::Rotate && self.due == cx.now.ns();
        if !waits {
            self.keep_time(cx.now.ns(), 0);
        }
        let order = [self.first, 1 - self.first, DEFAULT];
        let queue = order.into_iter().find(|&queue| self.queues[queue].packets > 0)?;
        let packet = cx.waiting.pop(&mut self.queues[queue])?;
        self.port_bytes += u64::from(packet.size);
        if packet.data {
            let bytes = packet.size.saturating_sub(self.config.cache_header);
            self.count(&packet, u64::from(bytes), cx);
        }
        Some(packet)
    }

    fn reset(&mut self) {
        self.queues = [List::default(); 3];
    }

    /// Rates in force stay until the agent decides anew.
    fn set_rate(&mut self, rate: Rate) {
        self.agent.set_rate(rate.0);
        self.decision.rates[Group::Bottom as usize] =
            rate.0.saturating_sub(self.decision.rates[Group::Top as usize]);
    }

    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        self.keep_time(now.ns(), 0);
        let tally = Tally { missed_by_cache: self.cache.missed, ..self.tally };
        counters.add(&COUNTERS, tally.each().map(|(_, value)| value).chain(self.decision.rates));
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
