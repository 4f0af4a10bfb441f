//! A host's edge: what stands between its transports and its links, as a virtual switch does. It sees every packet that leaves
//! or comes, may send it by another path, may hold it back, puts telemetry in and takes it off, and counts. A host that nobody asks for anything has none.

use super::carrying::Carrying;
use super::receiving::Receiving;
use crate::balance::Clove;
use crate::config::{BalancerConfig, Config};
use crate::counters::CounterSet;
use crate::engine::random::hash_salt;
use crate::measure;
use crate::net::host::paths;
use crate::net::map::Map;
use crate::net::partition::Partition;
use crate::packet::{PacketId, PacketKind};
use crate::units::Time;
use rustc_hash::FxHashMap;

/// Stands where a transport would, for timers of the edge.
pub const TIMER: u8 = 14;

pub struct Edge {
    overlay: Option<Overlay>,
    carrying: Option<Carrying>,
    receiving: Option<Receiving>,
    /// Packets that the transports are to see now, in order.
    ready: Vec<PacketId>,
}

/// CLOVE at this host.
struct Overlay {
    clove: Clove,
    /// By host, its number in there.
    peers: FxHashMap<u32, u32>,
    host: u32,
    /// Of the switches' hash.
    salt: u64,
    /// The routes that the paths were found on.
    routed: u32,
}

impl Edge {
    /// What a host needs in a run with these settings, if anything.
    pub fn new(config: &Config, host: u32) -> Option<Box<Edge>> {
        let overlay = match config.switch.balancer {
            BalancerConfig::Clove(clove) => Some(Overlay {
                clove: Clove::new(clove, config.seed, host),
                peers: FxHashMap::default(),
                host,
                salt: hash_salt(config.seed),
                routed: 0,
            }),
            _ => None,
        };
        let (resequencing, measure) = (config.host.resequencing, &config.measure);
        let asked = resequencing.is_some() || measure.reordering || measure.paths;
        let receiving = asked.then(|| Receiving::new(resequencing, measure.paths));
        let carrying = Carrying::new(config);
        let needed = overlay.is_some() || carrying.is_some() || receiving.is_some();
        needed.then(|| Box::new(Edge { overlay, carrying, receiving, ready: Vec::new() }))
    }

    /// A packet leaves for the link behind a port.
    #[inline(never)]
    pub fn leaves(&mut self, net: &mut Partition, map: &Map, id: PacketId, at: (u32, u32)) {
        if self.receiving.as_ref().is_some_and(Receiving::traces) {
            net.trails.set(id, 0);
        }
        if let Some(carrying) = &self.carrying {
            carrying.leaves(net, id);
        }
        let Some(overlay) = &mut self.overlay else { return };
        let peer = overlay.peer(net.packets[id].dst, map, at);
        let word = overlay.clove.leaves(peer, &mut net.packets[id], net.now);
        net.headers.set(id, word);
    }

    /// A packet has come; by `at` the way back leads. Afterwards [`Edge::ready`] has what the transports are to see.
    #[inline(never)]
    pub fn comes(&mut self, net: &mut Partition, map: &Map, id: PacketId, at: (u32, u32)) {
        if let Some(overlay) = &mut self.overlay {
            let peer = overlay.peer(net.packets[id].src, map, at);
            let word = net.headers.get(id);
            overlay.clove.comes(peer, &mut net.packets[id], word, net.now);
        }
        if let Some(carrying) = &self.carrying {
            carrying.comes(net, id);
        }
        match &mut self.receiving {
            Some(receiving) if net.packets[id].kind == PacketKind::Data => {
                receiving.take(net, id, &mut self.ready);
            }
            _ => self.ready.push(id),
        }
    }

    /// Takes out what the transports are to see, to be given back empty by [`Edge::give_back`].
    pub fn ready(&mut self) -> Vec<PacketId> {
        std::mem::take(&mut self.ready)
    }

    pub fn give_back(&mut self, mut ready: Vec<PacketId>) {
        ready.clear();
        self.ready = ready;
    }

    /// When packets are given up waiting for, if an event is to be set for it.
    pub fn alarm(&mut self) -> Option<Time> {
        self.receiving.as_mut().and_then(Receiving::alarm)
    }

    /// An event that was set by [`Edge::alarm`] has come.
    pub fn timer(&mut self, net: &mut Partition) {
        if let Some(receiving) = &mut self.receiving {
            receiving.expire(net, &mut self.ready);
        }
    }

    /// No packet of this flow can come any more.
    pub fn forget(&mut self, flow: u32) {
        if let Some(receiving) = &mut self.receiving {
            receiving.forget(flow);
        }
    }

    /// The run ends: what is held is freed.
    pub fn finish(&mut self, net: &mut Partition) {
        if let Some(receiving) = &mut self.receiving {
            receiving.finish(net);
        }
    }

    pub fn count(&mut self, now: Time, counters: &mut CounterSet) {
        if let Some(overlay) = &mut self.overlay {
            overlay.clove.count(now, counters);
        }
    }

    /// Adds what came to the host.
    pub fn add_to(&self, totals: &mut measure::Receiving) {
        if let Some(receiving) = &self.receiving {
            receiving.add_to(totals);
        }
    }
}

impl Overlay {
    /// The number of another host; its paths are found when it is met first, and anew when routes have changed.
    #[inline]
    fn peer(&mut self, host: u32, map: &Map, at: (u32, u32)) -> usize {
        if self.routed != map.version {
            self.rediscover(map, at);
        }
        match self.peers.get(&host) {
            Some(&peer) => peer as usize,
            None => self.meet(host, map, at),
        }
    }

    #[inline(never)]
    fn meet(&mut self, host: u32, map: &Map, at: (u32, u32)) -> usize {
        let peer = self.clove.add_peer();
        self.peers.insert(host, peer as u32);
        self.discover(peer, host, map, at);
        peer
    }

    #[inline(never)]
    fn rediscover(&mut self, map: &Map, at: (u32, u32)) {
        self.routed = map.version;
        let mut all: Vec<(u32, u32)> = self.peers.iter().map(|(&host, &peer)| (peer, host)).collect();
        all.sort_unstable();
        all.into_iter().for_each(|(peer, host)| self.discover(peer as usize, host, map, at));
    }

    fn discover(&mut self, peer: usize, to: u32, map: &Map, at: (u32, u32)) {
        let (hashes, links) = paths::discover(map, self.salt, at, (self.host, to), self.clove.most_paths());
        self.clove.set_paths(peer, &hashes, links);
    }
}
