//! The shortest paths between hosts, classified by the rates and delays of their links. A regular network has
//! few classes, however large it is.
//!
//! The paths between a switch and the switch of a destination are found once and stored; a host with several
//! ports is an end of its own. A pair of hosts then costs a table look-up.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::spread::Hop;
use crate::config::{Change, Config};
use crate::net::map::Map;
use crate::net::port::Line;
use crate::topology::{HostId, NodeId};
use crate::units::{Rate, Time};

/// Maximum number of classes of paths; with more of them only the bound by hops is available.
const MAX_PATHS: usize = 8;

const UNKNOWN: u32 = u32::MAX;
/// Index of the empty path, from a node to itself.
const NOTHING: u32 = 0;

/// The links of the network as configured, each at the maximum rate that it has in the run.
pub struct Links {
    /// By side of a link: index of its class in `lines`.
    kind: Vec<u32>,
    lines: Vec<Line>,
    /// A line that leads to a switch, and one that leads to a host.
    patterns: [Line; 2],
    cuts_through: bool,
}

impl Links {
    pub fn new(config: &Config, map: &Map) -> Links {
        let header = config.switch.forwarding.header().unwrap_or(0).min(u32::from(u16::MAX)) as u16;
        let mut rates: Vec<(Rate, bool)> = map.sides.iter().map(|side| (side.line.rate, false)).collect();
        raise(&mut rates, config, map);
        let mut kinds: FxHashMap<((Rate, bool), Time, bool), u32> = FxHashMap::default();
        let mut lines: Vec<Line> = Vec::new();
        let kind = map.sides.iter().zip(rates).map(|(side, rate)| {
            let to_host = map.routes.host_at(side.peer_node).is_some();
            *kinds.entry((rate, side.line.delay, to_host)).or_insert_with(|| {
                let mut line = side.line;
                line.set_rate(rate.0);
                // Before a fast link a cut-through switch waits for the tail; if that link is slower for a
                // time, the switch sends earlier.
                line.ideal |= rate.1 && header > 0;
                lines.push(line);
                lines.len() as u32 - 1
            })
        });
        let kind = kind.collect();
        let pattern = |header| {
            let line = Line::new(Rate(1), Time::ZERO, header).between(config.switch.forwarding);
            line.under(&config.rules)
        };
        Links { kind, lines, patterns: [pattern(header), pattern(0)], cuts_through: header > 0 }
    }

    /// The class of the link at port `local` of a node.
    fn of(&self, map: &Map, node: NodeId, local: u32) -> u32 {
        self.kind[(map.first_port[node as usize] + local) as usize]
    }

    pub fn line(&self, kind: u32) -> &Line {
        &self.lines[kind as usize]
    }

    /// All links of a host together.
    fn of_host(&self, map: &Map, host: HostId) -> Option<Layer> {
        let node = map.routes.host_node(host) as usize;
        let sides = map.first_port[node]..map.first_port[node + 1];
        sides.map(|side| Layer::of(self.line(self.kind[side as usize]))).reduce(Layer::with)
    }

    /// Rate of all links of a host together, and of the slowest of them.
    pub fn host_rates(&self, map: &Map, host: HostId) -> Option<[Rate; 2]> {
        self.of_host(map, host).map(|layer| [Rate(layer.total), layer.slowest])
    }

    /// A lower bound for paths with `hops` links: the best links of the two ends, and between them the best
    /// of the whole network. `one_path`: the packets of a flow use one path.
    pub fn detour(&self, map: &Map, src: HostId, dst: HostId, hops: usize, one_path: bool) -> Vec<Hop> {
        let Some((first, last)) = self.of_host(map, src).zip(self.of_host(map, dst)) else {
            return Vec::new();
        };
        let between = self.lines.iter().map(Layer::of).reduce(Layer::with).unwrap_or(first);
        let narrow = |layer: Layer| if one_path { Layer { total: layer.fastest.0, ..layer } } else { layer };
        let between = Layer { total: if one_path { between.fastest.0 } else { u64::MAX }, ..between };
        let middle = std::iter::repeat_n(between, hops.saturating_sub(2));
        let layers = std::iter::once(narrow(first)).chain(middle).chain(std::iter::once(narrow(last)));
        layers.enumerate().map(|(at, layer)| self.hop(&layer, at + 1 == hops)).collect()
    }

    fn hop(&self, layer: &Layer, to_host: bool) -> Hop {
        let line = |rate| {
            let mut line = self.patterns[usize::from(to_host)];
            line.delay = layer.delay;
            // The links of one hop may differ: a line that represents all of them does not wait for a tail.
            line.ideal = self.cuts_through;
            line.set_rate(rate);
            line
        };
        Hop { best: line(layer.fastest), slowest: line(layer.slowest), total: layer.total }
    }
}

/// Raises rates to the maximum that links have during the run; the flag marks links whose rate changes.
fn raise(rates: &mut [(Rate, bool)], config: &Config, map: &Map) {
    let changes = config.failures.events.iter().filter_map(|event| match event.change {
        Change::LinkRate(link, rate) => Some((link, rate)),
        _ => None,
    });
    let mut highest: FxHashMap<u32, Rate> = FxHashMap::default();
    for (link, rate) in changes {
        let known = highest.entry(link).or_insert(rate);
        *known = (*known).max(rate);
    }
    if highest.is_empty() {
        return;
    }
    for (node, ports) in config.topology.ports().iter().enumerate() {
        for (local, (link, _)) in ports.iter().enumerate() {
            if let Some(&rate) = highest.get(link) {
                let side = &mut rates[map.first_port[node] as usize + local];
                *side = (side.0.max(rate), true);
            }
        }
    }
}

/// All links of one hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Layer {
    total: u64,
    fastest: Rate,
    slowest: Rate,
    delay: Time,
}

impl Layer {
    fn of(line: &Line) -> Layer {
        Layer { total: line.rate.0, fastest: line.rate, slowest: line.rate, delay: line.delay }
    }

    /// The layer of `count` equal links.
    fn times(self, count: u64) -> Layer {
        Layer { total: self.total.saturating_mul(count), ..self }
    }

    fn with(self, other: Layer) -> Layer {
        Layer {
            total: self.total.saturating_add(other.total),
            fastest: self.fastest.max(other.fastest),
            slowest: self.slowest.min(other.slowest),
            delay: self.delay.min(other.delay),
        }
    }
}

/// The paths from a node to an end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Onward {
    /// The paths, each as the classes of its links; none: too many.
    paths: Option<Vec<Vec<u32>>>,
    /// Links from the node on are counted once for each path to them.
    layers: Vec<Layer>,
}

/// Whether two maps have the same next hops from one host to another, at every node of the paths.
pub fn are_alike(one: &Map, other: &Map, src: HostId, dst: HostId) -> bool {
    let start = one.routes.host_node(src);
    if one.routes.access_ports(src) != other.routes.access_ports(src) {
        return false;
    }
    let mut met = FxHashSet::from_iter([start]);
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        let hops = one.routes.next_hops(node, dst);
        if hops != other.routes.next_hops(node, dst) {
            return false;
        }
        let next = hops.iter().map(|&local| one.side(node, local).peer_node);
        open.extend(next.filter(|&node| met.insert(node)));
    }
    true
}

/// The paths of the network as configured.
pub struct ShortestPaths {
    map: Arc<Map>,
    /// Index of each node in the tables; none for hosts whose only link leads to a switch.
    place: Vec<u32>,
    places: usize,
    /// By end and node index: the paths in between.
    tables: FxHashMap<NodeId, Vec<u32>>,
    onward: Vec<Onward>,
    known: FxHashMap<Onward, u32>,
    /// What nodes with these next hops have onward: in a regular network most are alike.
    joined: FxHashMap<Steps, u32>,
}

/// Next hops of a node, each as the class of its link and the paths after it, and how many of them are alike;
/// sorted.
type Steps = Vec<((u32, u32), u64)>;

/// The paths from one host to another.
pub struct Pair<'w> {
    first: Option<u32>,
    onward: &'w Onward,
    last: Option<u32>,
}

impl ShortestPaths {
    pub fn new(map: Arc<Map>) -> ShortestPaths {
        let nodes = map.first_port.len() as u32 - 1;
        let mut places = 0;
        let own = |node: u32| map.routes.host_at(node).is_none_or(|host| port_of(&map, host).is_none());
        let place = (0..nodes).map(|node| {
            if own(node) {
                places += 1;
                places - 1
            } else {
                UNKNOWN
            }
        });
        let place = place.collect();
        let nothing = Onward { paths: Some(vec![Vec::new()]), layers: Vec::new() };
        ShortestPaths {
            map,
            place,
            places: places as usize,
            tables: FxHashMap::default(),
            onward: vec![nothing],
            known: FxHashMap::default(),
            joined: FxHashMap::default(),
        }
    }

    /// Finds the paths between two hosts, in both directions; none if there is no path.
    pub fn pairs(&mut self, links: &Links, src: HostId, dst: HostId) -> Option<[Pair<'_>; 2]> {
        let there = self.find(links, src, dst)?;
        let back = self.find(links, dst, src)?;
        Some([there, back].map(|(first, onward, last)| Pair {
            first,
            onward: &self.onward[onward as usize],
            last,
        }))
    }

    fn find(&mut self, links: &Links, src: HostId, dst: HostId) -> Option<(Option<u32>, u32, Option<u32>)> {
        let map = self.map.clone();
        let node = map.routes.host_node(src);
        if map.routes.next_hops(node, dst).is_empty() {
            return None;
        }
        let (from, first) = match port_of(&map, src) {
            Some(switch) => (switch, Some(links.of(&map, node, 0))),
            None => (node, None),
        };
        let goal = map.routes.host_node(dst);
        let (end, last) = match port_of(&map, dst) {
            Some(switch) => (switch, Some(links.kind[map.side(goal, 0).peer as usize])),
            None => (goal, None),
        };
        Some((first, self.between(links, from, end, dst), last))
    }

    /// The paths between two nodes; `end` is the host `dst` or its switch.
    fn between(&mut self, links: &Links, from: NodeId, end: NodeId, dst: HostId) -> u32 {
        if from == end {
            return NOTHING;
        }
        let mut table = self.tables.remove(&end).unwrap_or_else(|| vec![UNKNOWN; self.places]);
        let map = self.map.clone();
        let place = std::mem::take(&mut self.place);
        let at = |node: NodeId| place[node as usize] as usize;
        let mut open = vec![from];
        while let Some(&node) = open.last() {
            if table[at(node)] != UNKNOWN {
                open.pop();
                continue;
            }
            let hops = map.routes.next_hops(node, dst);
            let next = |local: u32| map.side(node, local).peer_node;
            let before = open.len();
            open.extend(hops.iter().map(|&l| next(l)).filter(|&n| n != end && table[at(n)] == UNKNOWN));
            if open.len() == before {
                let kept = |node: NodeId| if node == end { NOTHING } else { table[at(node)] };
                let steps = hops.iter().map(|&local| (links.of(&map, node, local), kept(next(local))));
                table[at(node)] = self.join(links, steps);
                open.pop();
            }
        }
        let found = table[at(from)];
        self.place = place;
        self.tables.insert(end, table);
        found
    }

    /// The paths from a node with these next hops: (class of the link, paths after it).
    fn join(&mut self, links: &Links, steps: impl Iterator<Item = (u32, u32)>) -> u32 {
        let mut kinds = Steps::new();
        for step in steps {
            match kinds.iter_mut().find(|(known, _)| *known == step) {
                Some((_, count)) => *count += 1,
                None => kinds.push((step, 1)),
            }
        }
        kinds.sort_unstable();
        if let Some(&joined) = self.joined.get(&kinds) {
            return joined;
        }
        let mut layers: Vec<Layer> = Vec::new();
        let mut paths: Option<Vec<Vec<u32>>> = Some(Vec::new());
        for &((link, onward), count) in &kinds {
            let onward = &self.onward[onward as usize];
            let own = std::iter::once(Layer::of(links.line(link))).chain(onward.layers.iter().copied());
            for (at, layer) in own.map(|layer| layer.times(count)).enumerate() {
                match layers.get_mut(at) {
                    Some(known) => *known = known.with(layer),
                    None => layers.push(layer),
                }
            }
            paths = paths.zip(onward.paths.as_ref()).map(|(mut paths, more)| {
                paths.extend(more.iter().map(|path| [&[link], path.as_slice()].concat()));
                paths
            });
            paths = paths.filter(|paths| paths.len() <= MAX_PATHS);
        }
        let joined = match self.known.entry(Onward { paths, layers }) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                self.onward.push(free.key().clone());
                *free.insert(self.onward.len() as u32 - 1)
            }
        };
        self.joined.insert(kinds, joined);
        joined
    }
}

/// The switch of a host whose only link leads to it; none for other hosts.
fn port_of(map: &Map, host: HostId) -> Option<NodeId> {
    let node = map.routes.host_node(host);
    let ports = map.first_port[node as usize + 1] - map.first_port[node as usize];
    let peer = (ports == 1).then(|| map.side(node, 0).peer_node)?;
    map.routes.host_at(peer).is_none().then_some(peer)
}

impl Pair<'_> {
    /// Number of links of each path.
    pub fn length(&self) -> usize {
        self.onward.layers.len() + self.first.iter().count() + self.last.iter().count()
    }

    /// Number of classes of paths; none if there are too many.
    pub fn count(&self) -> Option<usize> {
        self.onward.paths.as_ref().map(Vec::len)
    }

    /// The links of a path.
    pub fn path<'l>(&'l self, links: &'l Links, number: usize) -> impl Iterator<Item = &'l Line> {
        let middle = self.onward.paths.iter().flat_map(move |paths| paths[number].iter());
        self.first.iter().chain(middle).chain(self.last.iter()).map(|&kind| links.line(kind))
    }

    fn layers<'l>(&'l self, links: &'l Links) -> impl Iterator<Item = Layer> + 'l {
        let line = |kind: u32| Layer::of(links.line(kind));
        let middle = self.onward.layers.iter().copied();
        self.first.map(line).into_iter().chain(middle).chain(self.last.map(line))
    }

    /// The hops of the paths. A link near one end is on many paths from the other end, and is counted as
    /// often. The count from the nearer end is correct, and the smaller number.
    pub fn hops(&self, back: &Pair, links: &Links) -> Vec<Hop> {
        let layers: Vec<Layer> = self.layers(links).collect();
        let mut totals: Vec<u64> = back.layers(links).map(|layer| layer.total).collect();
        totals.reverse();
        let last = layers.len().saturating_sub(1);
        let hop = |(at, layer): (usize, &Layer)| {
            let total = totals.get(at).map_or(layer.total, |&total| total.min(layer.total));
            links.hop(&Layer { total, ..*layer }, at == last)
        };
        layers.iter().enumerate().map(hop).collect()
    }
}
