//! From a graph of the Topology Zoo to a network: places become switches, each with hosts on access links.
//!
//! A link's rate is its `LinkSpeedRaw` (bit/s), or its `LinkSpeed` in its `LinkSpeedUnits`, if the graph has
//! them; its delay is the great-circle distance of its ends at two thirds of the speed of light. Warnings count
//! the links that have a default of weftline instead. Duplicate edges and self-loops are removed, with a warning
//! that names the rate that is lost.
//!
//! Source: Knight et al., "The Internet Topology Zoo", IEEE JSAC 29(9), 2011 (attributes).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::memory::check_size;
use super::network::{LinkSpec, read_count};
use super::{Link, Node, NodeId, NodeKind, Topology, TopologyError};
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

/// Values that the graph does not contain.
#[derive(Debug, Clone, PartialEq)]
pub struct ZooOptions {
    /// Rate of links whose edge states none.
    pub default_rate: Rate,
    /// Delay of links with an end of unknown location.
    pub default_delay: Time,
    /// Whether the scenario states them: links that have them need no warning then.
    pub states_rate: bool,
    pub states_delay: bool,
    pub hosts_per_node: u64,
    pub host_link: LinkSpec,
}

impl Default for ZooOptions {
    fn default() -> ZooOptions {
        ZooOptions {
            default_rate: Rate::from_gbps(100),
            default_delay: Time::from_ms(1),
            states_rate: false,
            states_delay: false,
            hosts_per_node: 1,
            host_link: LinkSpec::HOST,
        }
    }
}

impl ZooOptions {
    pub const KEYS: [&str; 5] =
        ["default_rate", "default_delay", "hosts_per_node", "host_link.rate", "host_link.delay"];

    pub fn read(p: &mut Parameters) -> ZooOptions {
        let d = ZooOptions::default();
        let rate = "GML and GraphML: rate of links without LinkSpeedRaw, or LinkSpeed and LinkSpeedUnits.";
        let delay = "GML and GraphML: delay of links with an end whose coordinates are unknown.";
        ZooOptions {
            default_rate: p.rate("default_rate", d.default_rate, rate),
            default_delay: p.time("default_delay", d.default_delay, delay),
            states_rate: p.peek("default_rate").is_some(),
            states_delay: p.peek("default_delay").is_some(),
            hosts_per_node: read_count(
                p,
                "hosts_per_node",
                d.hosts_per_node,
                1,
                "GML and GraphML: hosts on each node.",
            ),
            host_link: LinkSpec::read_host(p, d.host_link),
        }
    }

    pub(super) fn check(&self) -> Result<(), TopologyError> {
        LinkSpec { rate: self.default_rate, delay: self.default_delay }
            .check("default_rate", "default_delay")?;
        super::network::check_counts(&[("hosts_per_node", self.hosts_per_node)])?;
        self.host_link.check_host()
    }
}

/// A graph as in its file.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub places: Vec<Place>,
    pub edges: Vec<Edge>,
    /// Attributes of edges that are not read and whose names are those of rates or delays, with their first
    /// lines.
    unread: BTreeMap<String, usize>,
}

#[derive(Debug, Default)]
pub(super) struct Place {
    pub line: usize,
    pub id: String,
    pub label: String,
    pub latitude: Option<f64>,
    pub longitude: Option<f64>,
}

#[derive(Debug, Default)]
pub(super) struct Edge {
    pub line: usize,
    pub source: String,
    pub target: String,
    /// `LinkSpeedRaw`, bit/s.
    pub speed: Option<f64>,
    /// `LinkSpeed` and `LinkSpeedUnits`, such as "2.5" and "G".
    pub number: String,
    pub unit: String,
}

const LIKE_RATES: [&str; 7] = ["bandwidth", "bw", "capacity", "delay", "latency", "rate", "speed"];
const ENDS: [&str; 8] = ["bandwidth", "_bw", "capacity", "delay", "latency", "_rate", "datarate", "bitrate"];
const READ: [&str; 3] = ["linkspeed", "linkspeedraw", "linkspeedunits"];
/// Attributes of nodes that state what a node is, in graphs that programs write, and values of a host.
const KINDS: [&str; 5] = ["kind", "type", "role", "node_type", "nodetype"];
const HOSTS: [&str; 6] = ["host", "hosts", "server", "endhost", "end-host", "end_host"];

impl Graph {
    /// Notes an attribute of an edge, by which a warning names those that look like rates or delays and are not
    /// read.
    pub fn note(&mut self, name: &str, line: usize) {
        let low = name.to_ascii_lowercase();
        let like = LIKE_RATES.iter().any(|begin| low.starts_with(begin))
            || ENDS.iter().any(|end| low.ends_with(end));
        if like && !READ.contains(&low.as_str()) && !self.unread.contains_key(name) {
            self.unread.insert(name.to_string(), line);
        }
    }

    /// Refuses a node that its attribute `name` calls a host: each node becomes a switch with hosts of its own.
    pub fn check_kind(name: &str, value: &str, line: usize) -> Result<(), TopologyError> {
        let is = |names: &[&str], text: &str| names.iter().any(|one| one.eq_ignore_ascii_case(text.trim()));
        if !is(&KINDS, name) || !is(&HOSTS, value) {
            return Ok(());
        }
        let message = format!(
            "{name} {} of a node: each node of GML and GraphML is a switch, with hosts of its own \
             (hosts_per_node); leave the hosts out of the graph, or write a file of format \"toml\", which states \
             the kind of each node",
            super::lines::shown(value)
        );
        Err(TopologyError::line(line, message))
    }

    fn unread(&self) -> Option<String> {
        let line = self.unread.values().min()?;
        let names: Vec<String> = self.unread.keys().take(5).map(|name| super::lines::shown(name)).collect();
        let more = if self.unread.len() > names.len() { " and others" } else { "" };
        Some(format!(
            "attributes of edges that are not read: {}{more} (first: line {line}); rates are LinkSpeedRaw in \
             bit/s, delays follow from coordinates, and a file of format \"toml\" states both",
            names.join(", ")
        ))
    }

    /// Returns the network of this graph, with warnings about changes.
    pub fn network(self, options: &ZooOptions) -> Result<(Topology, Vec<String>), TopologyError> {
        options.check()?;
        let (places, per_node) = (self.places.len(), options.hosts_per_node);
        let nodes = places as u128 * (u128::from(per_node) + 1);
        let links = nodes + self.edges.len() as u128;
        check_size(nodes, links).map_err(|error| TopologyError { key: Some("hosts_per_node"), ..error })?;
        let hosts = places * per_node as usize;
        let mut topology = Topology::default();
        let host = |i: usize| Node { name: format!("host{i}"), kind: NodeKind::Host, tier: 0 };
        topology.nodes.extend((0..hosts).map(host));
        let switch = |name: String| Node { name, kind: NodeKind::Switch, tier: 1 };
        topology.nodes.extend(names(&self.places).into_iter().map(switch));
        for h in 0..hosts {
            let place = hosts + h / per_node as usize;
            let LinkSpec { rate, delay } = options.host_link;
            topology.links.push(Link { a: h as NodeId, b: place as NodeId, rate, delay });
        }
        let warnings = self.join(&mut topology, hosts, options)?;
        Ok((topology, warnings))
    }

    /// Adds a link for each edge between two different places.
    fn join(
        &self,
        topology: &mut Topology,
        first: usize,
        options: &ZooOptions,
    ) -> Result<Vec<String>, TopologyError> {
        let mut by_id: FxHashMap<&str, usize> = FxHashMap::default();
        for (i, place) in self.places.iter().enumerate() {
            place.check()?;
            if by_id.insert(&place.id, i).is_some() {
                return Err(TopologyError::line(
                    place.line,
                    format!("two nodes have the id \"{}\"", place.id),
                ));
            }
        }
        let mut joined: FxHashMap<(usize, usize), Rate> = FxHashMap::default();
        let (mut loops, mut duplicates, mut unplaced, mut unrated) = (
            Changed::new("self-loop(s) dropped"),
            Changed::new("duplicate edge(s) dropped"),
            Changed::new("link(s)"),
            Changed::new("link(s)"),
        );
        for edge in &self.edges {
            let end =
                |id: &str| by_id.get(id).copied().ok_or_else(|| edge.unknown(id, by_id.len(), &self.places));
            let (a, b) = (end(&edge.source)?, end(&edge.target)?);
            let ends = || format!("{} - {}", topology.nodes[first + a].name, topology.nodes[first + b].name);
            if a == b {
                loops.add(edge.line, ends());
                continue;
            }
            if let Some(kept) = joined.get(&(a.min(b), a.max(b))) {
                let lost = edge.rate().ok().flatten().unwrap_or(options.default_rate);
                duplicates.add(edge.line, format!("{}: its link keeps {kept}, without these {lost}", ends()));
                continue;
            }
            let delay = match (self.places[a].position(), self.places[b].position()) {
                (Some(here), Some(there)) => great_circle_delay(here, there),
                _ => {
                    unplaced.add(edge.line, ends());
                    options.default_delay
                }
            };
            let rate = edge.rate()?.unwrap_or_else(|| {
                unrated.add(edge.line, ends());
                options.default_rate
            });
            joined.insert((a.min(b), a.max(b)), rate);
            topology.links.push(Link { a: (first + a) as NodeId, b: (first + b) as NodeId, rate, delay });
        }
        let default =
            format!(" without the coordinates of both ends have default_delay = {}", options.default_delay);
        let first = ", as a link has the rate of its first edge";
        let rate = format!(
            " without LinkSpeedRaw, or LinkSpeed with LinkSpeedUnits, have default_rate = {}",
            options.default_rate
        );
        let warnings = [
            loops.warning(""),
            duplicates.warning(first),
            unplaced.warning(&default).filter(|_| !options.states_delay),
            unrated.warning(&rate).filter(|_| !options.states_rate),
        ];
        Ok(warnings.into_iter().flatten().chain(self.unread()).collect())
    }
}

impl Place {
    fn position(&self) -> Option<(f64, f64)> {
        self.latitude.zip(self.longitude)
    }

    fn check(&self) -> Result<(), TopologyError> {
        for (what, value, max) in [("Latitude", self.latitude, 90.0), ("Longitude", self.longitude, 180.0)] {
            if let Some(value) = value.filter(|v| !(-max..=max).contains(v)) {
                let message = format!("{what} {value} is not between -{max} and {max}");
                return Err(TopologyError::line(self.line, message));
            }
        }
        Ok(())
    }
}

/// Bit/s that a link may have: 1 Pbit/s is more than any has.
const SPEEDS: std::ops::RangeInclusive<f64> = 1.0..=1e15;

impl Edge {
    fn rate(&self) -> Result<Option<Rate>, TopologyError> {
        match self.speed.or_else(|| self.in_units()) {
            None => Ok(None),
            Some(speed) if SPEEDS.contains(&speed) => Ok(Some(Rate(speed.round() as u64))),
            Some(speed) => {
                let message = format!("LinkSpeedRaw {speed} is not a valid rate: expected 1 to 1e15 bit/s");
                Err(TopologyError::line(self.line, message))
            }
        }
    }

    /// `LinkSpeed` in bit/s; none where it or its unit is missing or another text, such as "10-100".
    fn in_units(&self) -> Option<f64> {
        let unit = self.unit.trim();
        let (prefix, rest) = unit.split_at_checked(1)?;
        let factor = match prefix {
            "k" | "K" => 1e3,
            "m" | "M" => 1e6,
            "g" | "G" => 1e9,
            "t" | "T" => 1e12,
            _ => return None,
        };
        let is_of_bits = ["", "b", "bps", "b/s", "bit", "bit/s", "bits/s"].contains(&rest);
        let number = self.number.trim().parse::<f64>().ok().filter(|_| is_of_bits)?;
        Some(number * factor).filter(|speed| SPEEDS.contains(speed))
    }

    fn unknown(&self, id: &str, known: usize, places: &[Place]) -> TopologyError {
        let near = crate::parameters::nearest(id, places.iter().take(10_000).map(|place| place.id.as_str()));
        let hint =
            near.map_or(format!("there are {known} nodes"), |near| format!("did you mean \"{near}\"?"));
        TopologyError::line(self.line, format!("edge to unknown node {}: {hint}", super::lines::shown(id)))
    }
}

/// One warning for all changes of a kind, with the first as an example.
struct Changed {
    what: &'static str,
    count: usize,
    first: Option<(usize, String)>,
}

impl Changed {
    fn new(what: &'static str) -> Changed {
        Changed { what, count: 0, first: None }
    }
    fn add(&mut self, line: usize, ends: String) {
        self.count += 1;
        self.first.get_or_insert((line, ends));
    }
    fn warning(self, rest: &str) -> Option<String> {
        let (line, ends) = self.first?;
        Some(format!("{} {}{rest} (first: line {line}, {ends})", self.count, self.what))
    }
}

/// Speed of light in fibre, about two thirds of that in vacuum, m/s; and the mean radius of the Earth, m.
const FIBRE_SPEED: f64 = 2e8;
const EARTH_RADIUS: f64 = 6_371_000.0;

/// Delay over the great circle between two (latitude, longitude) in degrees: whole nanoseconds, at least 1
/// us.
fn great_circle_delay(here: (f64, f64), there: (f64, f64)) -> Time {
    let radians = |degrees: f64| degrees * std::f64::consts::PI / 180.0;
    let half_sine = |from: f64, to: f64| libm::sin(radians(to - from) / 2.0);
    let (across, along) = (half_sine(here.0, there.0), half_sine(here.1, there.1));
    // Haversine formula.
    let h = across * across + libm::cos(radians(here.0)) * libm::cos(radians(there.0)) * along * along;
    let metres = 2.0 * EARTH_RADIUS * libm::asin(libm::sqrt(h.clamp(0.0, 1.0)));
    Time::from_ns(libm::round(metres / FIBRE_SPEED * 1e9) as u64).max(Time::from_us(1))
}

/// A name for each place: a word made from its label, with the id if the label is missing, not unique, or has
/// the form of a host's name.
fn names(places: &[Place]) -> Vec<String> {
    let words: Vec<String> = places.iter().map(|place| word(&place.label)).collect();
    let mut uses: FxHashMap<&str, u32> = FxHashMap::default();
    words.iter().for_each(|word| *uses.entry(word).or_default() += 1);
    let mut taken: FxHashMap<String, ()> = FxHashMap::default();
    let mut names = Vec::with_capacity(places.len());
    for (i, (place, base)) in places.iter().zip(&words).enumerate() {
        let like_a_host = base.strip_prefix("host").is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()));
        let mut name = match base.as_str() {
            "" => format!("node-{}", word(&place.id)),
            base if uses[base] > 1 || like_a_host => format!("{base}-{}", word(&place.id)),
            base => base.to_string(),
        };
        if taken.contains_key(&name) {
            // Places are numbered uniquely, and no word ends in two dashes and a number.
            name = format!("{name}--{i}");
        }
        taken.insert(name.clone(), ());
        names.push(name);
    }
    names
}

/// The letters and digits of a text, with one dash for whatever is between them; at most 20 characters.
fn word(text: &str) -> String {
    let parts = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join("-");
    joined.chars().take(20).collect::<String>().trim_end_matches('-').to_string()
}

#[cfg(test)]
mod tests;
