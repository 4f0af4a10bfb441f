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

use super::best_hops::{BestHops, HopRules};
use super::estimator::{EstimatorLaw, LinkEstimator};
use super::fabric::{Fabric, Neighbour, Side};
use super::flowlets::FlowletTable;
use super::steering::{Passing, Steering};
use super::subflows::SubflowMark;
use super::{HEADERS, LoadBalancer, Place, Ports, salted};
use crate::config::HulaConfig;
use crate::counters::{Counter, CounterGroup, CounterSet, Fold, Metric};
use crate::engine::random::{RandomStream, hash_salt};
use crate::packet::Packet;
use crate::units::Time;
use std::sync::Arc;

/// What is counted of probes.
pub static PROBES: CounterGroup = CounterGroup {
    counters: &[
        Counter::sum(
            "probes",
            "packets",
            "probes",
            "Probe packets of load balancers such as HULA, with probe_bytes.",
        ),
        Counter::sum(
            "probe_bytes",
            "bytes",
            "bytes of probes",
            "Bytes of the probes of load balancers on all links.",
        ),
        Counter {
            key: "probes_settled_ns",
            unit: "ns",
            title: "time until every switch knows every rack",
            text: "From the start until every switch has heard of every rack by a probe.",
            fold: Fold::MaxOfAll,
        },
    ],
    metrics: &[
        Metric { name: "probes", part: "probes", ..Metric::NONE },
        Metric { name: "probe_bytes", part: "probe_bytes", ..Metric::NONE },
        Metric {
            name: "probe_share",
            title: "probes (share of bytes on wire)",
            axis: "bytes of probes (% of all on the wire)",
            text: "Bytes of the probes of load balancers, over all bytes on the wire.",
            part: "probe_bytes",
            over: &["bytes_on_wire"],
            ..Metric::NONE
        },
        Metric { name: "probes_settled", part: "probes_settled_ns", ..Metric::NONE },
    ],
    ..CounterGroup::NONE
};

pub struct Hula {
    config: HulaConfig,
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
    heard: Vec<u64>,
    /// By ToR, what was passed on last.
    said: Vec<Said>,
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

#[derive(Debug, Clone, Copy)]
struct Said {
    at: u64,
    port: u32,
    utilisation: u8,
}

impl Hula {
    pub fn new(config: HulaConfig, seed: u64, at: &Place) -> Hula {
        let tors = at.fabric.host_on.len();
        let rules = HopRules {
            expiry: config.failure_time.0,
            refresh: config.refresh_on_best,
            hysteresis: config.hysteresis,
        };
        let tau = config.time_constant.0;
        let phase =
            || RandomStream::new(seed, &format!("switch.{}.probes", at.name)).below(config.interval.0.max(1));
        Hula {
            law: if config.hardware { EstimatorLaw::shifting(tau) } else { EstimatorLaw::exact(tau) },
            fabric: at.fabric.clone(),
            own: at.tor,
            salt: hash_salt(seed) ^ (u64::from(at.node) + 1),
            hops: BestHops::new(tors, usize::from(config.ranks), rules),
            flowlets: FlowletTable::new(config.flowlets.slots as usize, config.flowlets.gap.0),
            neighbours: at.neighbours.to_vec(),
            links: vec![LinkEstimator::default(); at.neighbours.len()],
            heard: vec![NEVER; at.neighbours.len()],
            said: vec![Said { at: NEVER, port: 0, utilisation: 0 }; tors],
            first: if config.staggered { Time(phase()) } else { Time::ZERO },
            probes: 0,
            steering: (config.ranks > 1 && config.subflows.multipath).then(|| {
                let tier = u32::from(at.tier.saturating_sub(1));
                let lasts = config.failure_time.0;
                let k = u32::from(config.ranks);
                Box::new(Steering::new(&config.subflows, k, tier, at.tor.is_some(), lasts))
            }),
            unmet: tors - usize::from(at.tor.is_some()).min(tors),
            met_last: Time::ZERO,
            config,
        }
    }

    /// When its first probes leave; none: it sends none of its own.
    pub fn first_probes(&self) -> Option<Time> {
        self.own.map(|_| self.first)
    }

    /// From the probes that leave now to the next.
    pub fn interval(&self) -> Time {
        self.config.interval
    }

    /// Class in which probes queue.
    pub fn probe_class(&self) -> u8 {
        self.config.probe_class
    }

    /// Bytes of a probe.
    pub fn probe_size(&self) -> u16 {
        self.config.probe_size
    }

    /// Its own number, if it has hosts.
    pub fn own(&self) -> Option<u32> {
        self.own
    }

    /// A host on the ToR with this number.
    pub fn host_on(&self, tor: u32) -> u32 {
        self.fabric.host_on[tor as usize]
    }

    pub fn neighbours(&self) -> &[Neighbour] {
        &self.neighbours
    }

    /// A packet leaves by a port; `carried` is what it carries between ToRs.
    #[inline]
    pub fn departs(&mut self, port: u32, bytes: u32, carried: u64, now: Time) {
        self.links[port as usize].add(&self.law, bytes, now.0);
        if let Some(steering) = &mut self.steering {
            steering.count(carried);
        }
    }

    /// It tells subflows apart.
    pub fn marks(&self) -> bool {
        self.steering.is_some()
    }

    /// A packet for a host comes in by a port: at the first ToR it is marked, at the last the mark is taken out. By how much it
    /// grows, or shrinks.
    pub fn passes(&mut self, packet: &Passing, dst: u32, port: u32, carried: &mut u64, now: Time) -> i32 {
        let from_host = self.neighbours[port as usize].side == Side::Host;
        let (Some(steering), Some(own)) = (&mut self.steering, self.own) else { return 0 };
        let here = self.fabric.tor_of[dst as usize] == own;
        if from_host {
            let (word, more) = steering.enters(packet, !here, now.0);
            *carried = word;
            return more;
        }
        if !here {
            return 0;
        }
        let less = steering.exits(packet, *carried, now.0);
        *carried = 0;
        less
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
            all.into_iter().find(|&at| self.heard[candidates[at] as usize] == NEVER && !taken(at))
        };
        ranked.filter(|&at| !taken(at)).or_else(fresh).or(ranked)
    }

    /// A probe of a ToR came by a port; `allowed`: the port is on a shortest path to it. What is to be passed on, if anything.
    pub fn hear(&mut self, tor: u32, said: u8, port: u32, allowed: bool, ports: &impl Ports) -> Option<u8> {
        let now = ports.now().0;
        self.heard[port as usize] = now;
        if !allowed || self.own == Some(tor) {
            return None;
        }
        let link = self.links[port as usize].utilisation(&self.law, now, ports.rate(port).0);
        if self.hops.is_new(tor) {
            self.unmet = self.unmet.saturating_sub(1);
            self.met_last = ports.now();
        }
        let best = self.hops.hear(tor, port, said.max(link), now);
        if self.own.is_some() {
            return None;
        }
        let last = &mut self.said[tor as usize];
        let news = last.at == NEVER || (last.port, last.utilisation) != (best.port, best.utilisation);
        // What is no news is due once an interval; copies of one round come closer together than half of one.
        let due = news || now - last.at >= self.config.interval.0 / 2;
        if self.config.suppress && !due {
            return None;
        }
        *last = Said { at: now, port: best.port, utilisation: best.utilisation };
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

    /// A probe was sent.
    pub fn count_probe(&mut self) {
        self.probes += 1;
    }

    /// A probe came by the port within the time of failure.
    fn is_alive(&self, port: u32, now: u64) -> bool {
        let heard = self.heard[port as usize];
        heard != NEVER && now - heard <= self.config.failure_time.0
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
        let mark = if self.steering.is_some() { ports.mark() } else { None };
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
