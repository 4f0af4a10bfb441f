//! CONGA: leaves tell each other how busy the paths between them are, and send every flowlet by the least busy one.
//!
//! A leaf writes into each packet by which of its uplinks it goes (tag); every link on the way raises the packet's congestion
//! (CE) to its own, if that is more. The leaf at the other end remembers it (*congestion from leaf*) and, when it sends a packet
//! back, gives one tag and its congestion along, those that changed first. The first leaf remembers that (*congestion to leaf*):
//!
//! ```text
//! uplink of a new flowlet = argmin over uplinks of max(own link's congestion, congestion to the leaf by this uplink)
//! ```
//!
//! Among equals the flowlet's last uplink, else a random one. What was not heard of for the time of ageing counts as idle.
//! Switches above the leaves hash. On three tiers (`three_tier`, CONGA') the leaf does the same, and all above it hash, so that
//! what it learns of an uplink is what the last packets met behind it.
//!
//! Source: Alizadeh et al., "CONGA: distributed congestion-aware load balancing for datacenters", SIGCOMM 2014, §3; CONGA' as
//! Katta et al., "HULA", SOSR 2016, name it (both recalled: the values are to be checked before they are quoted).
//! Parameters: gap 500 us, tau 160 us, alpha 0.2, 3 bits, ageing 10 ms, header 14 bits in 2 B.

use super::counted::{FLOWLETS, HEADERS};
use super::dre::{Dre, DreLaw};
use super::fabric::{Fabric, Neighbour, Side};
use super::flowlets::{FlowletParameters, FlowletTable};
use super::{
    AGAINST_A_FAILED_LINK, BalancerFacts, BalancerParameters, Departure, Events, Forward, LoadBalancer,
    NetworkView, Place, Ports, Reorders, Tag, ecmp::Ecmp, keys, salted,
};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::engine::random::{RandomStream, hash_salt};
use crate::packet::{Packet, PacketKind};
use crate::parameters::Parameters;
use crate::units::{Bytes, Time};
use std::sync::Arc;

/// Uplinks that a tag can name.
const TAGS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongaParameters {
    pub flowlets: FlowletParameters,
    /// Over which the load of a link is averaged.
    pub time_constant: Time,
    /// Share of it that is forgotten at a time, in 1/1024.
    pub alpha: u32,
    /// In which congestion is told.
    pub bits: u8,
    /// What was not heard of for longer counts as idle.
    pub ageing: Time,
    /// Bytes that a packet is longer by between leaves.
    pub header: u16,
    /// The network may have three tiers (CONGA').
    pub three_tier: bool,
}

impl BalancerParameters for CongaParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "conga",
        title: "every flowlet takes the uplink that the destination's leaf reports as the least congested",
        source: "Alizadeh et al., \"CONGA: distributed congestion-aware load balancing for datacenters\", \
                 SIGCOMM 2014, §3",
        validation: AGAINST_A_FAILED_LINK,
        counters: &[&FLOWLETS, &HEADERS],
        ..SchemeDoc::NONE
    };
    type State = Box<Conga>;

    fn read(p: &mut Parameters) -> CongaParameters {
        let flowlets = FlowletParameters::read(p, Time::from_us(500), 1 << 16);
        let time_constant = keys::time_constant(p);
        let help = "conga: the load estimate of a link decays by this share every alpha tau (0.2: from memory, \
             unverified)";
        let alpha = (p.number("alpha", 0.2, (0.001, 1.0), help) * 1024.0).round() as u32;
        let help = "conga: bits in which congestion is reported (published: 3)";
        let bits = p.integer("bits", 3, (1, 8), help) as u8;
        let ageing = keys::ageing(p);
        let header = keys::header(p, Bytes(2));
        let help = "conga: on three tiers leaves choose by the reported load of their uplinks, and upper switches hash (CONGA')";
        let three_tier = p.flag("three_tier", false, help);
        CongaParameters { flowlets, time_constant, alpha, bits, ageing, header, three_tier }
    }
    fn start(&self, at: &Place) -> Box<Conga> {
        Box::new(Conga::new(*self, at))
    }
    fn order(&self) -> Reorders {
        Reorders::AfterPauses(self.flowlets.gap)
    }
    fn facts(&self) -> BalancerFacts {
        BalancerFacts {
            goes_by_flow: true,
            knows_fabric: true,
            // With the tags that it received, those that are new, and the next in turn.
            leaf_bytes: 2 * Metrics::BYTES + 5,
            ..BalancerFacts::default()
        }
    }

    /// Leaves choose for the whole way: what is between them must be one tier, or CONGA' is asked for.
    fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)> {
        let upper = network.switches().find(|&switch| network.tier(switch) > 2);
        let message = match (network.reach_everywhere(), upper) {
            (Err(why), _) => {
                format!(
                    "\"conga\" needs leaves that are connected by switches above them (leaf-spine): {why}"
                )
            }
            (Ok(()), Some(upper)) if !self.three_tier => format!(
                "\"conga\" is for leaves and spines, and {} is in a third tier: set three_tier = true for the variant whose \
                 leaves choose and whose upper switches hash, or kind = \"hula\"",
                network.name(upper)
            ),
            (Ok(()), _) => match network.max_uplinks().filter(|&(count, _)| count > TAGS) {
                Some((count, leaf)) => format!(
                    "{} has {count} uplinks; the tag of 4 bits in conga's header names {TAGS}",
                    network.name(leaf)
                ),
                None => return Vec::new(),
            },
        };
        Vec::from([("kind", message)])
    }

    /// Uplink that is told of, 255 for none; leaf that wrote it (4 bytes), uplink, congestion so far, congestion of what is told
    /// of, 0.
    fn tag(&self, word: u64, between_switches: bool) -> Option<Tag> {
        let header = CongaHeader::unpack(word);
        let (uplink, congestion) = header.feedback.unwrap_or((255, 0));
        let [a, b, c, d] = header.leaf.to_be_bytes();
        let rest = [a, b, c, d, header.tag, header.congestion, congestion, 0];
        between_switches.then_some(Tag { kind: 2, first: uplink, rest })
    }
}

/// What a packet carries between leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CongaHeader {
    /// By which uplink of its first leaf it goes.
    pub tag: u8,
    /// The busiest link so far.
    pub congestion: u8,
    /// For the leaf that it goes to: one of that leaf's own tags, and how busy its path is.
    pub feedback: Option<(u8, u8)>,
    /// The leaf that wrote it: whose address the overlay has.
    pub leaf: u32,
}

impl CongaHeader {
    fn pack(self) -> u64 {
        let (tag, metric) = self.feedback.unwrap_or_default();
        let feedback =
            u64::from(tag) << 16 | u64::from(metric) << 8 | u64::from(self.feedback.is_some()) << 24;
        u64::from(self.leaf) << 32 | feedback | u64::from(self.tag) << 28 | u64::from(self.congestion)
    }

    fn unpack(word: u64) -> CongaHeader {
        let feedback = ((word >> 16 & 15) as u8, (word >> 8) as u8);
        CongaHeader {
            tag: (word >> 28 & 15) as u8,
            congestion: word as u8,
            feedback: (word >> 24 & 1 == 1).then_some(feedback),
            leaf: (word >> 32) as u32,
        }
    }
}

pub struct Conga {
    config: CongaParameters,
    law: DreLaw,
    fabric: Arc<Fabric>,
    /// Its own number, if it is a leaf.
    own: Option<u32>,
    salt: u64,
    random: RandomStream,
    above: Ecmp,
    flowlets: FlowletTable,
    neighbours: Vec<Neighbour>,
    /// By port: the tag of an uplink.
    tags: Vec<u8>,
    links: Vec<Dre>,
    to_leaf: Metrics,
    from_leaf: Metrics,
    /// By leaf, a bit for each tag: it was heard of, it has changed since it was fed back; and behind the tag that was fed
    /// back last.
    received: Vec<u16>,
    news: Vec<u16>,
    turn: Vec<u8>,
    header_bytes: u64,
    only_data: bool,
    /// What differs from the paper in the code of ConWeave's authors.
    released: bool,
}

/// Congestion by leaf and tag. Zeros stand for leaves that never sent any: their memory is not touched.
struct Metrics {
    /// One more than the time at which it was set last.
    times: Vec<u64>,
    values: Vec<u8>,
}

impl Metrics {
    /// Bytes of a leaf.
    const BYTES: u64 = (TAGS * (size_of::<u64>() + size_of::<u8>())) as u64;

    fn of(leaves: usize) -> Metrics {
        Metrics { times: vec![0; leaves * TAGS], values: vec![0; leaves * TAGS] }
    }

    fn read(&self, place: usize, now: u64, ageing: Time) -> u8 {
        match self.times[place].checked_sub(1) {
            Some(at) if now - at <= ageing.0 => self.values[place],
            _ => 0,
        }
    }

    /// Sets one; whether it is another one than before.
    fn set(&mut self, place: usize, now: u64, value: u8) -> bool {
        let changes = self.times[place] == 0 || self.values[place] != value;
        (self.times[place], self.values[place]) = (now + 1, value);
        changes
    }
}

impl Conga {
    fn new(config: CongaParameters, at: &Place) -> Conga {
        let seed = at.seed;
        let leaves = if at.tor.is_some() { at.fabric.host_on.len() } else { 0 };
        let mut uplinks = 0u8;
        let tags = at.neighbours.iter().map(|neighbour| match neighbour.side {
            Side::Up => {
                uplinks = uplinks.wrapping_add(1);
                uplinks.wrapping_sub(1) % TAGS as u8
            }
            Side::Host | Side::Level | Side::Down => 0,
        });
        Conga {
            law: DreLaw::new(config.time_constant.0, config.alpha, config.bits),
            fabric: at.fabric.clone(),
            own: at.tor,
            salt: hash_salt(seed) ^ (u64::from(at.node) + 1),
            random: RandomStream::new(seed, &format!("switch.{}.conga", at.name)),
            above: Ecmp::new(hash_salt(seed), at.node),
            flowlets: config.flowlets.table(),
            tags: tags.collect(),
            neighbours: at.neighbours.to_vec(),
            links: vec![Dre::default(); at.neighbours.len()],
            to_leaf: Metrics::of(leaves),
            from_leaf: Metrics::of(leaves),
            received: vec![0; leaves],
            news: vec![0; leaves],
            turn: vec![0; leaves],
            header_bytes: 0,
            only_data: at.only_data,
            released: at.released,
            config,
        }
    }

    fn place(leaf: u32, tag: u8) -> usize {
        leaf as usize * TAGS + usize::from(tag) % TAGS
    }

    /// The packet is none of those that are balanced.
    fn passes_over(&self, packet: &Packet) -> bool {
        self.only_data && packet.kind != PacketKind::Data
    }

    /// A packet of a leaf has come.
    fn take_in(&mut self, header: CongaHeader, now: u64) {
        let leaf = header.leaf;
        if self.from_leaf.set(Self::place(leaf, header.tag), now, header.congestion) {
            self.news[leaf as usize] |= 1 << header.tag;
        }
        self.received[leaf as usize] |= 1 << header.tag;
        if let Some((tag, value)) = header.feedback {
            self.to_leaf.set(Self::place(leaf, tag), now, value);
        }
    }

    /// What a packet to a leaf takes along for it: the next of its tags that has changed, else the next one.
    fn feed_back(&mut self, leaf: u32, now: u64) -> Option<(u8, u8)> {
        let leaf = leaf as usize;
        let among = if self.news[leaf] != 0 { self.news[leaf] } else { self.received[leaf] };
        if among == 0 {
            return None;
        }
        let turn = u32::from(self.turn[leaf]);
        let tag = match self.released {
            true => {
                let drawn = self.random.below(u64::from(self.received[leaf].count_ones()));
                let mut known = (0..TAGS as u32).filter(|tag| self.received[leaf] >> tag & 1 == 1);
                known.nth(drawn as usize).unwrap_or(0)
            }
            false => (turn + among.rotate_right(turn).trailing_zeros()) % TAGS as u32,
        };
        self.news[leaf] &= !(1 << tag);
        self.turn[leaf] = ((tag + 1) % TAGS as u32) as u8;
        Some((tag as u8, self.from_leaf.read(leaf * TAGS + tag as usize, now, self.config.ageing)))
    }
}

impl LoadBalancer for Conga {
    #[inline(never)]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        if self.own.is_none() || self.passes_over(packet) {
            return self.above.way(packet.hash, candidates.len());
        }
        let now = ports.now().0;
        let place = |port: u32| candidates.iter().position(|&candidate| candidate == port);
        let flowlet = self.flowlets.find(salted(packet.hash, self.salt), now);
        if let Some(at) = flowlet.port.and_then(place) {
            return at;
        }
        let leaf = self.fabric.tor_of[packet.dst as usize];
        let Conga { links, law, to_leaf, tags, config, random, .. } = self;
        let metric = |port: u32| {
            let own = links[port as usize].metric(law, now);
            own.max(to_leaf.read(Self::place(leaf, tags[port as usize]), now, config.ageing))
        };
        let min = candidates.iter().map(|&port| metric(port)).min().unwrap_or(0);
        let best = |at: &usize| metric(candidates[*at]) == min;
        let last = flowlet.before.filter(|_| !self.released);
        let at = last.and_then(place).filter(best).unwrap_or_else(|| {
            let count = (0..candidates.len()).filter(best).count();
            let drawn = random.below(count.max(1) as u64) as usize;
            (0..candidates.len()).filter(best).nth(drawn).unwrap_or(0)
        });
        self.flowlets.put(flowlet, candidates[at], now);
        at
    }

    fn events(&self) -> Events {
        Events::FORWARDS.and(Events::FABRIC_DEPARTURES).and(Events::WORDS)
    }

    /// At its first leaf a packet gets the header that it takes along; what it took along is read at its last.
    fn on_forward(&mut self, forward: &Forward, word: &mut u64) -> i32 {
        let side = |port: u32| self.neighbours[port as usize].side;
        if self.passes_over(forward.packet) {
            return 0;
        }
        if self.released && side(forward.to) != Side::Host {
            self.links[forward.to as usize].add(&self.law, u32::from(forward.packet.size), forward.now.0);
        }
        let Some(own) = self.own else { return 0 };
        let (size, now) = (i32::from(self.config.header), forward.now.0);
        match (side(forward.from), side(forward.to)) {
            (Side::Host, Side::Up) => {
                let feedback = self.feed_back(self.fabric.tor_of[forward.packet.dst as usize], now);
                let tag = self.tags[forward.to as usize];
                *word = CongaHeader { tag, congestion: 0, feedback, leaf: own }.pack();
                size
            }
            (Side::Up, Side::Host) => {
                self.take_in(CongaHeader::unpack(*word), now);
                -size
            }
            _ => 0,
        }
    }

    /// By a link between switches a packet takes the link's congestion along.
    #[inline]
    fn on_departure(&mut self, departure: &Departure, word: &mut u64) {
        let (port, now) = (departure.port as usize, departure.now.0);
        if self.neighbours[port].side == Side::Host {
            return;
        }
        let link = &mut self.links[port];
        if !self.released {
            link.add(&self.law, departure.bytes, now);
        }
        link.set_rate(&self.law, departure.rate.0);
        let metric = link.metric(&self.law, now);
        self.header_bytes += u64::from(self.config.header);
        if metric > *word as u8 {
            *word = *word & !255 | u64::from(metric);
        }
    }

    fn count(&mut self, _now: Time, counters: &mut CounterSet) {
        self.flowlets.count(counters);
        counters.add(&HEADERS, [self.header_bytes]);
    }
}

#[cfg(test)]
mod tests;
