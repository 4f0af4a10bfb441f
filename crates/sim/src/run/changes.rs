//! Links and switches that fail, recover or degrade at given times; routes follow after the detection delay.

use super::Simulation;
use crate::config::{Change, Failures};
use crate::net::NodeIndex;
use crate::net::map::Map;
use crate::topology::{LinkId, NodeId, Routes, Topology};
use crate::units::{Rate, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub struct Changes {
    topology: Topology,
    /// What happens, in order of time.
    events: Vec<(Time, Event)>,
    /// The next of them.
    next: usize,
    /// By the place of a change of a link's rate in `events`: the highest rate that the link has from then
    /// on, at most its own, or what it has then if that is higher.
    lasting: FxHashMap<usize, Rate>,
    /// The two ends of each link, as (node, port of the node).
    ends: Vec<[(NodeId, u32); 2]>,
    /// What has failed by itself, now and as the routes know it.
    now: Health,
    routed: Health,
    /// What routes have known since the start, each once, with its number.
    known: FxHashMap<Health, usize>,
}

#[derive(Clone, Copy)]
enum Event {
    /// The network changes.
    Change(Change),
    /// The change has been detected: routes follow.
    Reroute(Change),
}

/// Which links and switches are down.
#[derive(Default, Clone, PartialEq, Eq, Hash)]
struct Health {
    links_down: Vec<bool>,
    nodes_down: Vec<bool>,
}

impl Health {
    fn new(topology: &Topology) -> Health {
        let (links, nodes) = (topology.links.len(), topology.nodes.len());
        Health { links_down: vec![false; links], nodes_down: vec![false; nodes] }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::LinkDown(link) => self.links_down[link as usize] = true,
            Change::LinkUp(link) => self.links_down[link as usize] = false,
            Change::SwitchDown(node) => self.nodes_down[node as usize] = true,
            Change::SwitchUp(node) => self.nodes_down[node as usize] = false,
            Change::LinkRate(..) => {}
        }
    }

    fn carries(&self, topology: &Topology, link: usize) -> bool {
        let spec = &topology.links[link];
        let down = |node: u32| self.nodes_down[node as usize];
        !self.links_down[link] && !down(spec.a) && !down(spec.b)
    }
}

impl Changes {
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    pub fn new(topology: Topology, failures: &Failures) -> Changes {
        let mut ends = vec![[(0, 0); 2]; topology.links.len()];
        for (node, list) in topology.ports().iter().enumerate() {
            for (local, &(link, _)) in list.iter().enumerate() {
                let side = usize::from(topology.links[link as usize].a != node as u32);
                ends[link as usize][side] = (node as u32, local as u32);
            }
        }
        let mut events = Vec::new();
        for failure in &failures.events {
            events.push((failure.at, Event::Change(failure.change)));
            if !matches!(failure.change, Change::LinkRate(..)) {
                events.push((failure.at + failures.detection, Event::Reroute(failure.change)));
            }
        }
        // With a detection delay of zero, routes follow right after their change: the order of insertion
        // decides.
        events.sort_by_key(|event| event.0);
        let lasting = lasting_rates(&topology, &events);
        let (now, routed) = (Health::new(&topology), Health::new(&topology));
        let known = FxHashMap::from_iter([(routed.clone(), 0)]);
        Changes { topology, events, next: 0, lasting, ends, now, routed, known }
    }

    /// The number of what routes know now among all that they have known.
    fn number_of_routes(&mut self) -> usize {
        if let Some(&number) = self.known.get(&self.routed) {
            return number;
        }
        let number = self.known.len();
        self.known.insert(self.routed.clone(), number);
        number
    }

    /// Rates that links take during the run.
    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        self.events.iter().filter_map(|(_, event)| match event {
            Event::Change(Change::LinkRate(_, rate)) => Some(*rate),
            _ => None,
        })
    }

    /// When the network changes next.
    pub fn next_time(&self) -> Option<Time> {
        self.events.get(self.next).map(|event| event.0)
    }
}

/// Of each change of a link's rate, by its place: the highest rate that the link has from then on, at most
/// its own, or what it has then if that is higher.
fn lasting_rates(topology: &Topology, events: &[(Time, Event)]) -> FxHashMap<usize, Rate> {
    let mut ahead: FxHashMap<LinkId, Rate> = FxHashMap::default();
    let mut lasting = FxHashMap::default();
    for (place, (_, event)) in events.iter().enumerate().rev() {
        let Event::Change(Change::LinkRate(link, rate)) = *event else { continue };
        let own = topology.links[link as usize].rate;
        let highest = ahead.entry(link).or_insert(rate);
        *highest = (*highest).max(rate);
        lasting.insert(place, rate.max(own.min(*highest)));
    }
    lasting
}

impl Simulation {
    /// Makes the changes that come at `now`, before anything else of that time.
    pub(crate) fn make_changes(&mut self, now: Time) {
        while self.changes.next_time() == Some(now) {
            let place = self.changes.next;
            let (_, event) = self.changes.events[place];
            self.changes.next += 1;
            self.regions.iter_mut().for_each(|region| region.net.now = now);
            match event {
                Event::Change(change) => self.change(place, change),
                Event::Reroute(change) => self.reroute(now, change),
            }
        }
    }

    /// The network changes now, by the event at this place; no node has been informed yet.
    fn change(&mut self, place: usize, change: Change) {
        if let Change::LinkRate(link, rate) = change {
            let mut map = (*self.map).clone();
            let lasting = self.changes.lasting.get(&place).copied().unwrap_or(rate);
            for (node, local) in self.changes.ends[link as usize] {
                let (region, port) = self.places.of_port(node, local);
                let net = &self.regions[region].net;
                self.probes.rate_changes((region, port), net.ports[port as usize].line.rate, net.now);
                self.regions[region].set_rate(port, rate, lasting);
                map.set_rate(map.first_port[node as usize] + local, rate);
            }
            return self.hand_out(map);
        }
        let before = self.changes.now.clone();
        self.changes.now.apply(change);
        for link in 0..self.changes.ends.len() {
            let was = before.carries(&self.changes.topology, link);
            let is = self.changes.now.carries(&self.changes.topology, link);
            if was != is {
                self.set_link(link, is);
            }
        }
    }

    /// A link begins or ceases to carry packets. What is on it, and what waits for it, is lost when it
    /// ceases.
    fn set_link(&mut self, link: usize, up: bool) {
        let ports = self.changes.ends[link].map(|(node, local)| self.places.of_port(node, local));
        for (region, id) in ports {
            let region = &mut self.regions[region];
            let port = &mut region.net.ports[id as usize];
            port.up = up;
            if !up {
                port.generation = port.generation.wrapping_add(1);
                region.net.release_pause(id);
                region.in_turn(|region| region.flush(id));
            }
        }
        for (region, port) in ports {
            self.regions[region].in_turn(|region| {
                if up {
                    region.kick(port);
                }
                if let NodeIndex::Host(host) = region.net.owner(port) {
                    region.tell_host(host);
                }
            });
        }
    }

    /// The change has been detected: routes follow it.
    fn reroute(&mut self, now: Time, change: Change) {
        let changes = &mut self.changes;
        changes.routed.apply(change);
        let (routed, topology) = (&changes.routed, &changes.topology);
        let order = self.settings.rules.next_hops;
        let routes = Routes::compute(topology, &|link| routed.carries(topology, link as usize), order);
        let first_port = self.map.first_port.clone();
        let version = self.map.version + 1;
        let intact = Some(self.map.intact.clone().unwrap_or_else(|| self.map.clone()));
        let number = changes.number_of_routes();
        self.hand_out(Map { routes, intact, version, first_port, sides: self.map.sides.clone() });
        self.ideals.reroute(now, &self.map, number);
        // Flows that found no way out may have one now.
        for region in &mut self.regions {
            region.in_turn(|region| {
                for port in 0..region.net.ports.len() as u32 {
                    if matches!(region.net.owner(port), NodeIndex::Host(_)) {
                        region.kick(port);
                    }
                }
                (0..region.hosts.len() as u32).for_each(|host| region.tell_host(host));
            });
        }
    }

    /// Every region gets the new map.
    fn hand_out(&mut self, map: Map) {
        self.map = Arc::new(map);
        for region in &mut self.regions {
            region.map = self.map.clone();
            for switch in &mut region.switches {
                switch.row = region.map.routes.row(switch.node);
            }
            for host in &mut region.hosts {
                host.rows = region.map.rows_of_host(host.node);
            }
        }
    }
}
