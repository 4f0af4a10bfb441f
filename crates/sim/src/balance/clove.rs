//! CLOVE: sending hosts choose the path of every flowlet, by the hash that the switches go by.
//!
//! Switches hash as they always did. A host's virtual switch knows for each other host a few hashes (source ports of the overlay)
//! that lead by different paths, puts one of them into each packet in place of the flow's own, and says on the way back what
//! the packets of the other host met:
//!
//! ```text
//! ECN   a marked packet came by path p: "p is congested", on the next packet back, once in a relay interval at most
//!       the sender takes a third of p's weight and shares it out among the paths that are not congested;
//!       flowlets take the paths in turn, in proportion to the weights
//! INT   every link on the way raises the packet's utilisation to its own: that of the busiest link is told back
//!       flowlets take the path that is told to be the least utilised
//! none  flowlets take a random path (Edge-Flowlet)
//! ```
//!
//! The receiving host puts the flow's own hash back, so transports see nothing of it.
//!
//! Source: Katta et al., "Clove: congestion-aware load balancing at the virtual edge", CoNEXT 2017 (abstract and slides; the
//! values are recalled and to be checked before they are quoted).
//! Differs from the source: the paths are computed from the switches' hash and routes, where the source traces them with probes;
//! they are found anew when routes change, not at an interval.
//! Parameters: gap 200 us and relay interval 40 us (a public ns-3 version has them so), a third, 16 paths.
//!
//! The file is above 500 lines because the scheme works at switches and at hosts.

mod paths;

use super::counted::{FLOWLETS, HEADERS};
use super::ecmp::Ecmp;
use super::estimator::{EstimatorLaw, LinkEstimator};
use super::flowlets::{FlowletParameters, FlowletTable};
use super::{
    BalancerFacts, BalancerParameters, Departure, Events, HostPort, LoadBalancer, NetworkView, Place, Ports,
    Reorders, Tag, Wiring, keys, salted,
};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::engine::random::{RandomStream, hash_salt};
use crate::packet::{Packet, PacketKind, flag};
use crate::parameters::Parameters;
use crate::units::{Bytes, Time};
use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloveParameters {
    /// What hosts tell each other of the paths.
    pub feedback: CloveFeedback,
    pub flowlets: FlowletParameters,
    /// Paths that a host knows to another, at most.
    pub paths: u8,
    /// A path is told of once in this time at most.
    pub relay_interval: Time,
    /// ECN: a path that was told of as congested counts as such for so long.
    pub congested_for: Time,
    /// ECN: share of its weight that a congested path gives away, in 1/1024.
    pub cut: u32,
    /// ECN: transports hear of marks only while all paths are congested.
    pub hide_marks: bool,
    /// INT: over which the load of a link is averaged.
    pub time_constant: Time,
    /// INT: what was not heard of for longer counts as idle.
    pub ageing: Time,
    /// Bytes that a packet is longer by.
    pub header: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloveFeedback {
    /// Nothing: every flowlet takes a random path (Edge-Flowlet).
    None,
    /// Marks of switches (CLOVE-ECN).
    Ecn,
    /// The busiest link of each path (CLOVE-INT).
    Int,
}

const FEEDBACKS: &[(&str, &str)] = &[
    ("ecn", "ECN marks of received packets: CLOVE-ECN"),
    ("int", "the utilisation of the busiest link, which switches write into packets: CLOVE-INT"),
    ("none", "nothing; flowlets take random paths: Edge-Flowlet"),
];

impl BalancerParameters for CloveParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "clove",
        title: "sending hosts choose the path of every flowlet, by marks or utilisation that receivers report",
        source: "Katta et al., \"Clove: congestion-aware load balancing at the virtual edge\", CoNEXT 2017 \
                 (abstract and slides; values from memory, unverified)",
        validation: "Weights, feedback and choices by hand (balance/clove); flowlets leave a slow path \
                     (tests/edges.rs).",
        counters: &[&FLOWLETS, &HEADERS],
        ..SchemeDoc::NONE
    };
    type State = Clove;

    fn read(p: &mut Parameters) -> CloveParameters {
        let help = "clove: what hosts report to each other about paths";
        let feedback = match p.choice("feedback", "ecn", FEEDBACKS, help) {
            "int" => CloveFeedback::Int,
            "none" => CloveFeedback::None,
            _ => CloveFeedback::Ecn,
        };
        let flowlets = FlowletParameters::read(p, Time::from_us(200), 1 << 12);
        let help = "clove: maximum number of paths that a host keeps to another host (ours)";
        let paths = p.integer("paths", 16, (1, i64::from(MAX_PATHS)), help) as u8;
        let help = "clove: minimum time between two reports of a path (published: half a round trip; a public ns-3 version: 40us)";
        let relay_interval = p.time("relay_interval", Time::from_us(40), help);
        let help = "clove, ecn: time for which a path counts as congested after it was reported congested (ours: two relay intervals)";
        let congested_for = p.time("congested_for", Time::from_us(80), help);
        let help = "clove, ecn: share of its weight that a congested path gives to the others (a third: from memory, unverified)";
        let cut = (p.number("cut", 1.0 / 3.0, (0.001, 1.0), help) * 1024.0).round() as u32;
        let help = "clove, ecn: marks are passed to the transport only while all paths are congested (true: from memory, unverified; false is ours, as senders here may be controlled by marks)";
        let hide_marks = p.flag("hide_marks", false, help);
        let time_constant = keys::time_constant(p);
        let ageing = keys::ageing(p);
        let header = keys::header(p, Bytes(0));
        CloveParameters {
            feedback,
            flowlets,
            paths,
            relay_interval,
            congested_for,
            cut,
            hide_marks,
            time_constant,
            ageing,
            header,
        }
    }

    fn start(&self, at: &Place) -> Clove {
        let above = Ecmp::new(hash_salt(at.seed), at.node);
        match self.feedback {
            CloveFeedback::Int => Clove::Raises(Box::new(CloveSwitch::new(self, above))),
            CloveFeedback::None | CloveFeedback::Ecn => Clove::Hashes(above),
        }
    }
    fn at_host(&self, seed: u64, host: u32) -> Option<Clove> {
        Some(Clove::Host(Box::new(CloveHost::new(*self, seed, host))))
    }
    fn order(&self) -> Reorders {
        Reorders::AfterPauses(self.flowlets.gap)
    }
    fn facts(&self) -> BalancerFacts {
        BalancerFacts { goes_by_flow: true, ..BalancerFacts::default() }
    }

    /// Hosts choose among the paths behind one link.
    fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)> {
        let Some((host, links)) = network.host_with_several_links() else { return Vec::new() };
        let message = format!(
            "\"clove\" is for hosts with one link, and {} has {links}: a report of a path does not name the link",
            network.name(host),
        );
        Vec::from([("kind", message)])
    }

    /// Path that is told of, 255 for none; hash of the flow (4 bytes), path or 255, utilisation so far, what was met where it
    /// tells of, 0.
    fn tag(&self, word: u64, _between_switches: bool) -> Option<Tag> {
        let header = CloveHeader::unpack(word);
        let (path, met) = header.feedback.unwrap_or((255, 0));
        let [a, b, c, d] = header.inner.to_be_bytes();
        Some(Tag { kind: 3, first: path, rest: [a, b, c, d, header.tag, header.utilisation, met, 0] })
    }
}

/// At a switch that only hashes, at one that takes part in CLOVE-INT, or at a host.
pub enum Clove {
    Hashes(Ecmp),
    Raises(Box<CloveSwitch>),
    Host(Box<CloveHost>),
}

impl LoadBalancer for Clove {
    fn choose(&mut self, packet: &Packet, candidates: &[u32], _ports: &impl Ports) -> usize {
        match self {
            Clove::Hashes(above) => above.way(packet.hash, candidates.len()),
            Clove::Raises(switch) => switch.above.way(packet.hash, candidates.len()),
            // A host has one link.
            Clove::Host(_) => 0,
        }
    }
    fn events(&self) -> Events {
        match self {
            Clove::Raises(_) => Events::DEPARTURES.and(Events::WORDS),
            Clove::Hashes(_) | Clove::Host(_) => Events::NONE,
        }
    }
    fn on_departure(&mut self, departure: &Departure, word: &mut u64) {
        if let Clove::Raises(switch) = self {
            switch.on_departure(departure, word);
        }
    }
    fn on_send(&mut self, packet: &mut Packet, at: &HostPort<impl Wiring>) -> u64 {
        let Clove::Host(host) = self else { return 0 };
        let peer = host.peer(packet.dst, at);
        host.sends(peer, packet, at.now)
    }
    fn on_receive(&mut self, packet: &mut Packet, word: u64, at: &HostPort<impl Wiring>) {
        if let Clove::Host(host) = self {
            let peer = host.peer(packet.src, at);
            host.receives(peer, packet, word, at.now);
        }
    }
    /// Headers on every link of the paths that packets were sent on, however far they came: switches that
    /// only hash get no events of departures.
    fn count(&mut self, _now: Time, counters: &mut CounterSet) {
        if let Clove::Host(host) = self {
            host.flowlets.count(counters);
            counters.add(&HEADERS, [host.header_bytes]);
        }
    }
}

/// The tag of a packet that had no choice.
const NO_PATH: u8 = 127;
/// Paths that a tag can name.
const MAX_PATHS: u8 = 64;
/// All weights of a host together, shared equally at first.
const WHOLE: u64 = 1 << 20;
/// What no cut takes away.
const MIN_WEIGHT: u64 = WHOLE >> 10;
const NEVER: u64 = u64::MAX;

/// What a packet carries from host to host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CloveHeader {
    /// The flow's own hash.
    inner: u32,
    /// By which path of its sender it goes.
    tag: u8,
    /// The busiest link so far, in 1/256.
    utilisation: u8,
    /// For the host that it goes to: one of that host's own paths, and what was met on it.
    feedback: Option<(u8, u8)>,
}

impl CloveHeader {
    fn pack(self) -> u64 {
        let (tag, value) = self.feedback.unwrap_or_default();
        let feedback =
            u64::from(self.feedback.is_some()) << 31 | u64::from(tag & 127) << 24 | u64::from(value) << 16;
        u64::from(self.inner) << 32 | feedback | u64::from(self.tag) << 8 | u64::from(self.utilisation)
    }

    fn unpack(word: u64) -> CloveHeader {
        let feedback = ((word >> 24 & 127) as u8, (word >> 16) as u8);
        CloveHeader {
            inner: (word >> 32) as u32,
            tag: (word >> 8) as u8,
            utilisation: word as u8,
            feedback: (word >> 31 & 1 == 1).then_some(feedback),
        }
    }
}

/// One path to another host.
#[derive(Debug, Clone)]
struct Path {
    hash: u32,
    /// ECN: its share of the flowlets, and what it has run up in the round robin.
    weight: u64,
    credit: i64,
    /// When it was told of as congested last.
    congested: u64,
    /// INT: what was told of it last, and when.
    utilisation: u8,
    reported: u64,
}

/// What came by one of the paths of another host.
#[derive(Debug, Clone, Copy)]
struct Received {
    value: u8,
    /// It has not been told since.
    news: bool,
    reported: u64,
}

/// Another host.
#[derive(Debug, Clone, Default)]
struct Peer {
    paths: Vec<Path>,
    /// Links on each of them.
    links: u32,
    received: Vec<Received>,
    /// Behind the path that was told of last.
    turn: usize,
}

/// The virtual switch of one host.
pub struct CloveHost {
    config: CloveParameters,
    random: RandomStream,
    flowlets: FlowletTable,
    peers: Vec<Peer>,
    header_bytes: u64,
    /// By host, its number among `peers`.
    numbers: FxHashMap<u32, u32>,
    host: u32,
    /// Of the switches' hash.
    salt: u64,
    /// The routes that the paths were found on.
    routed: u32,
}

impl CloveHost {
    fn new(config: CloveParameters, seed: u64, host: u32) -> CloveHost {
        CloveHost {
            random: RandomStream::new(seed, &format!("host{host}.clove")),
            flowlets: config.flowlets.table(),
            peers: Vec::new(),
            header_bytes: 0,
            numbers: FxHashMap::default(),
            host,
            salt: hash_salt(seed),
            routed: 0,
            config,
        }
    }

    /// The number of another host; its paths are found when it is met first, and anew when routes have changed.
    #[inline]
    fn peer(&mut self, host: u32, at: &HostPort<impl Wiring>) -> usize {
        if self.routed != at.wiring.version() {
            self.rediscover(at);
        }
        match self.numbers.get(&host) {
            Some(&peer) => peer as usize,
            None => self.meet(host, at),
        }
    }

    #[inline(never)]
    fn meet(&mut self, host: u32, at: &HostPort<impl Wiring>) -> usize {
        let peer = self.peers.len();
        self.peers.push(Peer::default());
        self.numbers.insert(host, peer as u32);
        self.discover(peer, host, at);
        peer
    }

    #[inline(never)]
    fn rediscover(&mut self, at: &HostPort<impl Wiring>) {
        self.routed = at.wiring.version();
        let mut all: Vec<(u32, u32)> = self.numbers.iter().map(|(&host, &peer)| (peer, host)).collect();
        all.sort_unstable();
        all.into_iter().for_each(|(peer, host)| self.discover(peer as usize, host, at));
    }

    fn discover(&mut self, peer: usize, to: u32, at: &HostPort<impl Wiring>) {
        let max = usize::from(self.config.paths);
        let (hashes, links) = paths::discover(at, self.salt, (self.host, to), max);
        self.set_paths(peer, &hashes, links);
    }

    /// The paths to a host, each by a hash that leads over it, of so many links. What was told of others is forgotten.
    fn set_paths(&mut self, peer: usize, hashes: &[u32], links: u32) {
        let weight = WHOLE / hashes.len().max(1) as u64;
        let path =
            |&hash: &u32| Path { hash, weight, credit: 0, congested: NEVER, utilisation: 0, reported: NEVER };
        self.peers[peer].paths = hashes.iter().map(path).collect();
        self.peers[peer].links = links;
    }

    /// A packet leaves for a host: what it takes along.
    fn sends(&mut self, peer: usize, packet: &mut Packet, now: Time) -> u64 {
        let inner = packet.hash;
        let mut tag = NO_PATH;
        if self.peers[peer].paths.len() > 1 {
            let at = self.choose(peer, inner, now.0);
            packet.hash = self.peers[peer].paths[at].hash;
            tag = at as u8;
            if self.config.feedback == CloveFeedback::Ecn && packet.kind == PacketKind::Data {
                // The overlay's header can be marked, whatever the flow's own says.
                packet.flags &= !flag::NOT_CAPABLE;
            }
        }
        let feedback = self.feed_back(peer, now.0);
        packet.size += self.config.header;
        self.header_bytes += u64::from(self.config.header) * u64::from(self.peers[peer].links);
        CloveHeader { inner, tag, utilisation: 0, feedback }.pack()
    }

    /// A packet of a host has come, with what it took along.
    fn receives(&mut self, peer: usize, packet: &mut Packet, word: u64, now: Time) {
        let header = CloveHeader::unpack(word);
        packet.hash = header.inner;
        packet.size -= self.config.header;
        if header.tag != NO_PATH {
            self.note(peer, packet, header);
        }
        if let Some((tag, value)) = header.feedback {
            self.learn(peer, tag, value, now.0);
        }
        if self.config.hide_marks {
            match packet.kind {
                PacketKind::Data => packet.flags &= !flag::MARKED,
                PacketKind::Ack if self.all_congested(peer, now.0) => packet.flags |= flag::MARKED,
                _ => {}
            }
        }
    }

    /// The path of a packet with this hash.
    fn choose(&mut self, peer: usize, hash: u32, now: u64) -> usize {
        let count = self.peers[peer].paths.len();
        // A flow's slot, and another for its acknowledgements: their hashes differ.
        let flowlet = self.flowlets.find(salted(hash, peer as u64 + 1), now);
        if let Some(at) = flowlet.port.filter(|&at| (at as usize) < count) {
            return at as usize;
        }
        let at = match self.config.feedback {
            CloveFeedback::None => self.random.below(count as u64) as usize,
            CloveFeedback::Ecn => self.peers[peer].next_in_turn(),
            CloveFeedback::Int => self.min_utilised(peer, flowlet.before, now),
        };
        self.flowlets.put(flowlet, at as u32, now);
        at
    }

    /// Among equals the flowlet's last path, else a random one.
    fn min_utilised(&mut self, peer: usize, before: Option<u32>, now: u64) -> usize {
        let ageing = self.config.ageing.0;
        let paths = &self.peers[peer].paths;
        let utilisation = |path: &Path| match path.reported != NEVER && now - path.reported <= ageing {
            true => path.utilisation,
            false => 0,
        };
        let min = paths.iter().map(utilisation).min().unwrap_or(0);
        let best = |at: &usize| utilisation(&paths[*at]) == min;
        let last = before.map(|at| at as usize).filter(|&at| at < paths.len());
        last.filter(best).unwrap_or_else(|| {
            let count = (0..paths.len()).filter(best).count();
            let drawn = self.random.below(count.max(1) as u64) as usize;
            (0..paths.len()).filter(best).nth(drawn).unwrap_or(0)
        })
    }

    /// A packet came by one of a host's paths: what it met.
    fn note(&mut self, peer: usize, packet: &Packet, header: CloveHeader) {
        let at = usize::from(header.tag);
        let received = &mut self.peers[peer].received;
        if at >= received.len() {
            received.resize(at + 1, Received { value: 0, news: false, reported: NEVER });
        }
        match self.config.feedback {
            CloveFeedback::None => {}
            CloveFeedback::Ecn if packet.kind != PacketKind::Data || !packet.marked() => {}
            CloveFeedback::Ecn => received[at] = Received { value: 1, news: true, ..received[at] },
            CloveFeedback::Int => {
                received[at] = Received { value: header.utilisation, news: true, ..received[at] }
            }
        }
    }

    /// What a packet to a host takes along for it: the next of its paths of which there is news.
    fn feed_back(&mut self, peer: usize, now: u64) -> Option<(u8, u8)> {
        let Peer { received, turn, .. } = &mut self.peers[peer];
        let interval = self.config.relay_interval.0;
        let due = |received: &Received| {
            received.news && (received.reported == NEVER || now - received.reported >= interval)
        };
        let count = received.len();
        let at = (0..count).map(|step| (*turn + step) % count).find(|&at| due(&received[at]))?;
        received[at] = Received { news: false, reported: now, ..received[at] };
        *turn = at + 1;
        Some((at as u8, received[at].value))
    }

    /// A host tells what its packets met on one of our paths to it.
    fn learn(&mut self, peer: usize, tag: u8, value: u8, now: u64) {
        let (at, config) = (usize::from(tag), &self.config);
        let peer = &mut self.peers[peer];
        if at >= peer.paths.len() {
            return;
        }
        match config.feedback {
            CloveFeedback::None => {}
            CloveFeedback::Int => {
                peer.paths[at].utilisation = value;
                peer.paths[at].reported = now;
            }
            CloveFeedback::Ecn => {
                peer.paths[at].congested = now;
                peer.cut(at, u64::from(config.cut), config.congested_for.0, now);
            }
        }
    }

    fn all_congested(&self, peer: usize, now: u64) -> bool {
        let within = self.config.congested_for.0;
        let paths = &self.peers[peer].paths;
        paths.len() > 1 && paths.iter().all(|path| path.is_congested(within, now))
    }
}

impl Path {
    fn is_congested(&self, within: u64, now: u64) -> bool {
        self.congested != NEVER && now - self.congested <= within
    }
}

impl Peer {
    /// Weighted round robin in which the turns of a path lie apart.
    fn next_in_turn(&mut self) -> usize {
        let whole: u64 = self.paths.iter().map(|path| path.weight).sum();
        let mut best = 0;
        for at in 0..self.paths.len() {
            self.paths[at].credit += self.paths[at].weight as i64;
            if self.paths[at].credit > self.paths[best].credit {
                best = at;
            }
        }
        self.paths[best].credit -= whole as i64;
        best
    }

    /// A congested path gives a share of its weight, in 1/1024, to those that are not; to none where all are.
    fn cut(&mut self, at: usize, share: u64, within: u64, now: u64) {
        let free = |path: &Path| !path.is_congested(within, now);
        let others = self.paths.iter().filter(|path| free(path)).count() as u64;
        let spare = self.paths[at].weight.saturating_sub(MIN_WEIGHT);
        let each = (self.paths[at].weight * share / 1024).min(spare) / others.max(1);
        if others == 0 || each == 0 {
            return;
        }
        self.paths[at].weight -= each * others;
        self.paths.iter_mut().filter(|path| free(path)).for_each(|path| path.weight += each);
    }
}

/// What a switch does for CLOVE-INT: hashes, and raises what packets carry to the utilisation of its links.
pub struct CloveSwitch {
    above: Ecmp,
    law: EstimatorLaw,
    links: Vec<LinkEstimator>,
}

impl CloveSwitch {
    fn new(config: &CloveParameters, above: Ecmp) -> CloveSwitch {
        let law = EstimatorLaw::exact(config.time_constant.0);
        CloveSwitch { above, law, links: Vec::new() }
    }

    fn on_departure(&mut self, departure: &Departure, word: &mut u64) {
        let (port, now) = (departure.port as usize, departure.now.0);
        if port >= self.links.len() {
            self.links.resize(port + 1, LinkEstimator::default());
        }
        let link = &mut self.links[port];
        link.add(&self.law, departure.bytes, now);
        let utilisation = link.utilisation(&self.law, now, departure.rate.0);
        if utilisation > *word as u8 {
            *word = *word & !255 | u64::from(utilisation);
        }
    }
}

#[cfg(test)]
mod tests;
