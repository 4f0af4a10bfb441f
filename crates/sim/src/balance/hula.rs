//! HULA and MP-HULA: probes tell every switch which next hop leads over the least busy path to each rack; flowlets follow.
//!
//! Every switch with hosts (ToR) sends a probe by each of its ports upward, once an interval. A switch that hears of a ToR by a
//! port takes the larger of what the probe says and of how busy its own link there is, remembers it, and passes its best value
//! on: what came from below to all ports but that, what came from above to those below. So probes run the paths of data
//! backwards and never go up after down. A hop that no probe names for the time of failure is forgotten, and flowlets on a port
//! that is silent for as long leave it at once. HULA remembers one hop for each ToR, MP-HULA the k best, for the subflows of
//! multipath transports; traffic that is none of these takes the best.
//!
//! Source: Katta et al., "HULA: scalable load balancing using programmable data planes", SOSR 2016; Benet et al., "MP-HULA:
//! multipath transport aware load balancing using programmable data planes", NetCompute 2018. Both papers were available as
//! abstracts and a talk only: the values below marked (recalled) are to be checked before they are quoted.
//! Differs from the source: a probe is taken in only from ports on a shortest path to its ToR, and sent only to switches
//! that would take it in (else a core that reaches two aggregation switches of a pod can make them point at each other);
//! ToRs begin at random moments; where no probe was heard ECMP chooses.
//! Parameters: interval 200 us (recalled), tau twice that (recalled), gap 100 us (recalled), failure three intervals (ours;
//! public versions have 3 to 5), probes of 64 B.

use super::best_hops::{BestHops, Hop, HopRules};
use super::connections::FlowKey;
use super::counted::{FLOWLETS, HEADERS, PROBES};
use super::estimator::{EstimatorLaw, LinkEstimator};
use super::fabric::{Fabric, Neighbour, Side};
use super::flowlets::{FlowletParameters, FlowletTable};
use super::steering::{InUse, Segment, Steering, mark};
use super::subflows::SubflowMark;
use super::{
    AGAINST_A_FAILED_LINK, Arrival, BalancerFacts, BalancerParameters, Departure, Events, LoadBalancer,
    NetworkView, Place, Ports, Reorders, SwitchContext, Tag, keys, salted,
};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::engine::random::{RandomStream, hash_salt};
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::units::{Bytes, Time};
use std::sync::Arc;

/// What MP-HULA has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HulaParameters {
    /// From one round of probes of a ToR to the next, and bytes of a probe.
    pub interval: Time,
    pub probe_size: u16,
    /// Class in which probes queue; 0: before all traffic, and never refused for want of room.
    pub probe_class: u8,
    /// Over which the load of a link is averaged.
    pub time_constant: Time,
    /// What was not heard of for longer counts as failed.
    pub failure_time: Time,
    /// Flowlets leave a port that has failed at once, not at their next gap.
    pub release: bool,
    pub flowlets: FlowletParameters,
    /// A probe of the best hop replaces its value, be it better or worse.
    pub refresh_on_best: bool,
    /// What is no news is passed on once an interval.
    pub suppress: bool,
    /// By how much, in 1/256, a hop must be better to pass the one ranked above it, or to replace the last one.
    pub hysteresis: u8,
    /// The estimator shifts instead of dividing.
    pub hardware: bool,
    /// ToRs begin at random moments of the first interval.
    pub staggered: bool,
}

impl BalancerParameters for HulaParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "hula",
        title: "every flowlet takes the next hop whose path probes report as the least utilised",
        source: "Katta et al., \"HULA: scalable load balancing using programmable data planes\", SOSR 2016",
        validation: AGAINST_A_FAILED_LINK,
        counters: &[&FLOWLETS, &PROBES],
        ..SchemeDoc::NONE
    };
    type State = Box<Hula>;

    fn read(p: &mut Parameters) -> HulaParameters {
        let help = "hula, mp-hula: time between two rounds of probes of a ToR (HULA's simulation: 200us; from \
                    memory, unverified)";
        let mut interval = p.time("probe_interval", Time::from_us(200), help);
        if interval == Time::ZERO {
            p.complain("probe_interval", "must be greater than 0".to_string());
            interval = Time::from_us(200);
        }
        let help = "bytes of a probe on the wire (64B: the minimum Ethernet frame)";
        let probe_size = p.bytes("probe_size", Bytes(64), help);
        if !(1..=1500).contains(&probe_size.0) {
            p.complain("probe_size", format!("{probe_size} is not between 1B and 1500B"));
        }
        let given = p.time_or_auto("time_constant", keys::TIME_CONSTANT);
        let time_constant = given.unwrap_or(Time(interval.0.saturating_mul(2)));
        keys::check_time_constant(p, time_constant);
        let help = "a hop or a port counts as failed if no probe has named it for longer than this; auto: three \
                    probe intervals (ours; public versions have 3 to 5)";
        let failure_time = p.time_or_auto("failure_time", help).unwrap_or(Time(interval.0.saturating_mul(3)));
        if failure_time < interval {
            let message = format!(
                "{failure_time} is less than the probe interval, {interval}: every hop would fail at once"
            );
            p.complain("failure_time", message);
        }
        let flowlets = FlowletParameters::read(p, Time::from_us(100), 1 << 16);
        let help = "traffic class in which probes queue; 0: before all traffic, as in HULA (from memory, unverified); other classes share their queue";
        let probe_class = p.integer("probe_class", 0, (0, 7), help) as u8;
        let help = "flowlets on a port through which no probe arrived for the failure time leave it at once (ours); \
                    off: at their next gap";
        let release = p.flag("release", true, help);
        let help = "a probe of the best hop replaces its value, whether better or worse; off, as in the published \
                    P4 listing, a hop that gets worse keeps its value until it fails";
        let refresh_on_best = p.flag("refresh_on_best", true, help);
        let help = "a probe that changes nothing is passed on once per interval; off: every received probe is passed on";
        let suppress = p.flag("suppress", true, help);
        let help = "difference in utilisation, in 1/256, by which a hop must be less utilised to replace the best one (hula), to \
                    overtake the one ranked above it, or to replace the last of all ranks (ours)";
        let hysteresis = p.integer("hysteresis", 0, (0, 255), help) as u8;
        let help = "the estimator counts ticks of 1.024 ns and shifts instead of dividing; tau becomes a power of two of ticks";
        let hardware = p.flag("hardware_estimator", false, help);
        let help = "ToRs begin at random times in the first interval; off: all at time 0";
        let staggered = p.flag("staggered", true, help);
        HulaParameters {
            interval,
            probe_size: probe_size.0.clamp(1, 1500) as u16,
            probe_class,
            time_constant,
            failure_time,
            release,
            flowlets,
            refresh_on_best,
            suppress,
            hysteresis,
            hardware,
            staggered,
        }
    }

    fn start(&self, at: &Place) -> Box<Hula> {
        Box::new(Hula::new(*self, 1, None, at))
    }
    fn order(&self) -> Reorders {
        Reorders::AfterPauses(self.flowlets.gap)
    }
    fn facts(&self) -> BalancerFacts {
        let probes = Some(("probe_interval", self.interval));
        let probe_packet = Some((self.probe_class, self.probe_size));
        BalancerFacts {
            goes_by_flow: true,
            knows_fabric: true,
            probes,
            copies_probes: !self.suppress,
            probe_packet,
            rack_bytes: rack_bytes(1),
            ..BalancerFacts::default()
        }
    }
    fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)> {
        no_tiers(Self::DOC.name, network).into_iter().collect()
    }

    /// 0; ToR that it is of (4 bytes), utilisation in 1/256, 0, 0, 0.
    fn probe_tag(&self, probe: &Packet) -> Option<Tag> {
        let [a, b, c, d] = probe.src.to_be_bytes();
        Some(Tag { kind: 4, first: 0, rest: [a, b, c, d, probe.aux.min(255) as u8, 0, 0, 0] })
    }
}

impl HulaParameters {
    /// That of every link's estimator.
    pub fn law(&self) -> EstimatorLaw {
        let tau = self.time_constant.0;
        if self.hardware { EstimatorLaw::shifting(tau) } else { EstimatorLaw::exact(tau) }
    }
}

/// What the hashes of a switch are mixed with.
pub fn salt(at: &Place) -> u64 {
    hash_salt(at.seed) ^ (u64::from(at.node) + 1)
}

/// Why probes of every rack do not come up to where paths part and down again, if they do not.
pub(super) fn no_tiers(name: &str, network: &NetworkView) -> Option<(&'static str, String)> {
    let why = network.reach_everywhere().err()?;
    let message = format!(
        "\"{name}\" needs tiers of switches, so that probes of every rack travel up to the switches where paths \
         diverge and down again (leaf-spine, fat-tree): {why}"
    );
    Some(("kind", message))
}

pub struct Hula {
    config: HulaParameters,
    law: EstimatorLaw,
    fabric: Arc<Fabric>,
    /// Its own number, if it has hosts.
    own: Option<u32>,
    salt: u64,
    hops: BestHops,
    flowlets: FlowletTable,
    /// By port.
    neighbours: Vec<Neighbour>,
    links: Vec<LinkEstimator>,
    /// When a probe came last; [`NEVER`] before the first.
    last_probe: Vec<u64>,
    /// By ToR, what was passed on last.
    passed_on: Vec<PassedOn>,
    /// When its first probes leave.
    first: Time,
    probes: u64,
    /// What it does with subflows; none: nothing.
    steering: Option<Box<Steering>>,
    /// ToRs that it has never heard of, itself apart; when it heard of the last new one.
    unmet: usize,
    met_last: Time,
}

const NEVER: u64 = u64::MAX;

/// Bytes that a switch keeps of a ToR with this number of ranks.
pub(super) const fn rack_bytes(ranks: u8) -> u64 {
    ranks as u64 * size_of::<Hop>() as u64 + 1 + size_of::<PassedOn>() as u64
}

/// What was passed on of a ToR last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedOn {
    pub at: u64,
    pub port: u32,
    pub utilisation: u8,
}

/// What a switch has learnt: another implementation has the same after the same events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers {
    /// By port: the estimator of its link, and when the last probe came.
    pub ports: Vec<(LinkEstimator, Option<u64>)>,
    /// By ToR: the first hop, and what was passed on last.
    pub tors: Vec<(Option<Hop>, Option<PassedOn>)>,
    /// By slot: when the last packet came, and its port.
    pub flowlets: Vec<(u64, Option<u32>)>,
    /// By ToR: all hops that were known when a probe of it last came, best first.
    pub ranks: Vec<Vec<Hop>>,
    /// By place in the table of ports in use.
    pub used: Vec<InUse>,
}

impl Hula {
    /// `ranks`: next hops kept for each ToR, 1 for HULA; `steering`: of subflows, for MP-HULA.
    pub fn new(config: HulaParameters, ranks: u8, steering: Option<Box<Steering>>, at: &Place) -> Hula {
        let (seed, tors) = (at.seed, at.fabric.host_on.len());
        let rules = HopRules {
            expiry: config.failure_time.0,
            refresh: config.refresh_on_best,
            hysteresis: config.hysteresis,
        };
        let phase =
            || RandomStream::new(seed, &format!("switch.{}.probes", at.name)).below(config.interval.0.max(1));
        Hula {
            law: config.law(),
            fabric: at.fabric.clone(),
            own: at.tor,
            salt: salt(at),
            hops: BestHops::new(tors, usize::from(ranks), rules),
            flowlets: config.flowlets.table(),
            neighbours: at.neighbours.to_vec(),
            links: vec![LinkEstimator::default(); at.neighbours.len()],
            last_probe: vec![NEVER; at.neighbours.len()],
            passed_on: vec![PassedOn { at: NEVER, port: 0, utilisation: 0 }; tors],
            first: if config.staggered { Time(phase()) } else { Time::ZERO },
            probes: 0,
            steering,
            unmet: tors - usize::from(at.tor.is_some()).min(tors),
            met_last: Time::ZERO,
            config,
        }
    }

    pub fn neighbours(&self) -> &[Neighbour] {
        &self.neighbours
    }

    pub fn registers(&self) -> Registers {
        let probed = self.last_probe.iter().map(|&at| Some(at).filter(|&at| at != NEVER));
        let passed = |last: &PassedOn| Some(*last).filter(|last| last.at != NEVER);
        let tors = self.passed_on.iter().enumerate();
        Registers {
            ports: self.links.iter().copied().zip(probed).collect(),
            tors: tors.map(|(tor, last)| (self.hops.first(tor as u32), passed(last))).collect(),
            flowlets: self.flowlets.slots().collect(),
            ranks: (0..self.passed_on.len()).map(|tor| self.hops.known(tor as u32).to_vec()).collect(),
            used: self.steering.iter().flat_map(|steering| steering.used()).collect(),
        }
    }

    /// What a ToR writes into packets of a flow between switches, if it knows the flow.
    pub fn mark_of(&self, flow: FlowKey) -> Option<SubflowMark> {
        self.steering.as_ref()?.mark_of(flow)
    }

    /// The hop of a subflow's new flowlet: of those that are alive, the one of its rank.
    fn ranked(&self, mark: SubflowMark, tor: u32, candidates: &[u32], now: u64) -> Option<usize> {
        let steering = self.steering.as_ref()?;
        let place = |port: u32| candidates.iter().position(|&candidate| candidate == port);
        let (mut live, mut ways, mut count) = ([0; 16], [0; 16], 0);
        for (port, way) in self.hops.live(tor, now).filter_map(|hop| Some((hop.port, place(hop.port)?))) {
            (live[count], ways[count]) = (port, way);
            count += 1;
        }
        (count > 0).then(|| ways[steering.choose(mark, &live[..count], now)])
    }

    /// The same; as long as the tables are not full, a port that no probe came by yet rather than one that another subflow of the
    /// connection uses, for a sender without gaps would stay there.
    fn ranked_apart(
        &self,
        mark: SubflowMark,
        tor: u32,
        hash: u32,
        candidates: &[u32],
        now: u64,
    ) -> Option<usize> {
        let ranked = self.ranked(mark, tor, candidates, now);
        let Some(steering) = self.steering.as_ref().filter(|steering| steering.parts()) else {
            return ranked;
        };
        let taken = |at: usize| steering.is_taken(mark, candidates[at], now);
        let fresh = || {
            let from = salted(hash, !self.salt) as usize;
            let all = (0..candidates.len()).map(|step| (from + step) % candidates.len());
            all.into_iter().find(|&at| self.last_probe[candidates[at] as usize] == NEVER && !taken(at))
        };
        ranked.filter(|&at| !taken(at)).or_else(fresh).or(ranked)
    }

    /// A probe of a ToR came by a port; `allowed`: the port is on a shortest path to it. What is to be passed on, if anything.
    fn record_probe(
        &mut self,
        tor: u32,
        passed_on: u8,
        port: u32,
        allowed: bool,
        ports: &impl Ports,
    ) -> Option<u8> {
        let now = ports.now().0;
        self.last_probe[port as usize] = now;
        if !allowed || self.own == Some(tor) {
            return None;
        }
        let link = self.links[port as usize].utilisation(&self.law, now, ports.rate(port).0);
        if self.hops.is_new(tor) {
            self.unmet = self.unmet.saturating_sub(1);
            self.met_last = ports.now();
        }
        let best = self.hops.record_probe(tor, port, passed_on.max(link), now);
        if self.own.is_some() {
            return None;
        }
        let last = &mut self.passed_on[tor as usize];
        let news = last.at == NEVER || (last.port, last.utilisation) != (best.port, best.utilisation);
        // What is no news is due once an interval; copies of one round come closer together than half of one.
        let due = news || now - last.at >= self.config.interval.0 / 2;
        if self.config.suppress && !due {
            return None;
        }
        *last = PassedOn { at: now, port: best.port, utilisation: best.utilisation };
        Some(best.utilisation)
    }

    /// Whether what came by a port is passed on by another: never back, and never up what came from above.
    pub fn passes_on(&self, from: u32, to: u32) -> bool {
        let side = |port: u32| self.neighbours[port as usize].side;
        from != to
            && match (side(from), side(to)) {
                (Side::Down, Side::Up | Side::Down) | (Side::Up, Side::Down) => true,
                (Side::Down | Side::Up | Side::Level | Side::Host, _) => false,
            }
    }

    /// Sends probes of a ToR by the ports for which `by` holds, to those who would take them in: for whom this switch is on
    /// a shortest path.
    fn send_probes(
        &mut self,
        tor: u32,
        utilisation: u8,
        cx: &mut impl SwitchContext,
        by: impl Fn(&Hula, u32) -> bool,
    ) {
        let host = self.fabric.host_on[tor as usize];
        for port in 0..self.neighbours.len() as u32 {
            if by(self, port) && cx.is_up(port) && cx.leads_here(&self.neighbours[port as usize], host) {
                self.probes += 1;
                let HulaParameters { probe_size: size, probe_class: class, .. } = self.config;
                cx.send(port, Packet { src: tor, aux: utilisation.into(), size, class, ..Packet::default() });
            }
        }
    }

    /// A probe came by the port within the time of failure, which for the first one begins with the run: before the first
    /// round of probes has come by all ports, none has failed.
    fn is_alive(&self, port: u32, now: u64) -> bool {
        let last_probe = self.last_probe[port as usize];
        let since = if last_probe == NEVER { 0 } else { last_probe };
        now - since <= self.config.failure_time.0
    }

    /// A flowlet may stay on the port.
    fn keeps(&self, port: u32, now: u64) -> bool {
        !self.config.release || self.is_alive(port, now)
    }

    /// Where nothing is known: a hash chooses among the ports that are alive, or among all.
    #[inline(never)]
    fn unprobed(&self, hash: u32, candidates: &[u32], now: u64) -> usize {
        let hash = u64::from(salted(hash, !self.salt));
        let alive = candidates.iter().filter(|&&port| self.is_alive(port, now)).count();
        let among = if alive > 0 { alive } else { candidates.len() };
        let place = ((hash * among as u64) >> 32) as usize;
        let mut ways = (0..candidates.len()).filter(|&at| alive == 0 || self.is_alive(candidates[at], now));
        ways.nth(place).unwrap_or(0)
    }
}

impl LoadBalancer for Hula {
    #[inline(never)]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        let now = ports.now().0;
        let place = |port: u32| candidates.iter().position(|&candidate| candidate == port);
        let mark = if self.steering.is_some() { mark(ports.word()) } else { None };
        let flowlet = self.flowlets.find(salted(packet.hash, self.salt), now);
        let kept = flowlet.port.filter(|&port| self.keeps(port, now)).and_then(place);
        let at = kept.unwrap_or_else(|| {
            let tor = self.fabric.tor_of[packet.dst as usize];
            let best = match mark {
                Some(mark) => self.ranked_apart(mark, tor, packet.hash, candidates, now),
                None => self.hops.live(tor, now).find_map(|hop| place(hop.port)),
            };
            let at = best.unwrap_or_else(|| self.unprobed(packet.hash, candidates, now));
            self.flowlets.put(flowlet, candidates[at], now);
            at
        });
        if let (Some(mark), Some(steering)) = (mark, &mut self.steering) {
            steering.uses(mark, candidates[at], now);
        }
        at
    }

    fn events(&self) -> Events {
        match self.steering {
            Some(_) => Events::FABRIC_DEPARTURES.and(Events::ARRIVALS).and(Events::WORDS),
            None => Events::FABRIC_DEPARTURES,
        }
    }

    /// At the first ToR a packet is marked, at the last the mark is taken out.
    fn on_arrival(&mut self, arrival: &Arrival, word: &mut u64) -> i32 {
        let from_host = self.neighbours[arrival.port as usize].side == Side::Host;
        let (Some(steering), Some(own)) = (&mut self.steering, self.own) else { return 0 };
        let here = self.fabric.tor_of[arrival.packet.dst as usize] == own;
        let (segment, now) = (&Segment::of(arrival), arrival.now.0);
        if from_host {
            let (marked, more) = steering.enters(segment, !here, now);
            *word = marked;
            return more;
        }
        if !here {
            return 0;
        }
        let less = steering.exits(segment, *word, now);
        *word = 0;
        less
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, word: &mut u64) {
        self.links[departure.port as usize].add(&self.law, departure.bytes, departure.now.0);
        if let Some(steering) = &mut self.steering {
            steering.count(*word);
        }
    }

    /// It is taken note of, and what is news is passed on.
    fn on_probe(&mut self, probe: &Packet, port: u32, cx: &mut impl SwitchContext) {
        let (tor, utilisation) = (probe.src, probe.aux as u8);
        let allowed = cx.leads_to(port, self.fabric.host_on[tor as usize]);
        if let Some(utilisation) = self.record_probe(tor, utilisation, port, allowed, cx) {
            self.send_probes(tor, utilisation, cx, |hula, to| hula.passes_on(port, to));
        }
    }

    fn first_timer(&self) -> Option<Time> {
        self.own.map(|_| self.first)
    }

    /// Probes are due: one of this switch by each port upward.
    fn on_timer(&mut self, cx: &mut impl SwitchContext) -> Option<Time> {
        let up = |hula: &Hula, port: u32| hula.neighbours[port as usize].side == Side::Up;
        self.send_probes(self.own?, 0, cx, up);
        Some(cx.now() + self.config.interval)
    }

    fn count(&mut self, _now: Time, counters: &mut CounterSet) {
        self.flowlets.count(counters);
        let bytes = self.probes * u64::from(self.config.probe_size);
        let settled = (self.unmet == 0).then_some(self.met_last.0);
        counters.add(&PROBES, [Some(self.probes), Some(bytes), settled]);
        if let Some(steering) = &self.steering {
            counters.add(&HEADERS, [steering.mark_bytes()]);
        }
    }
}

#[cfg(test)]
mod tests;
