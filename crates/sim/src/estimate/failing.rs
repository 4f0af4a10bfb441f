//! How failed and slowed links delay a job: the times at which links change, and how much longer its messages
//! take until the next change.
//!
//! A job progresses at the speed that its slowest messages allow, as its operations wait for each other:
//!
//! ```text
//! speed = T / T'      T: duration of the whole job on healthy links, T': with the links as they are; 0: a host is cut off
//! ```
//!
//! When links go down, a job whose packets are lost there waits for a timeout (see
//! [`outages`](super::outages)). Where only some of a switch's links to others are slow, a message takes the
//! mean time over all of them, as its path is not known. Differs from a run: a message takes one path, if its
//! transport does not spread packets.

use crate::config::Until;
use crate::engine::random::mix64;
use crate::net::failures::{Change, Failure};
use crate::scenario::Scenario;
use crate::topology::{HostId, Link, NodeId, Topology};
use crate::units::{Rate, Time};
use rustc_hash::FxHashSet;

/// Different states of the network whose durations are computed; later ones are as the last of these.
pub(super) const MAX_STATES: usize = 16;

/// CPU time in ns of a link or switch that fails or comes back, with new routes: for each, and for each link
/// of the network (leaf-spine networks with 24 to 4 096 links, 7 to 460 us; fat trees with k = 8 and 16, 55
/// and 400 us).
const NS_PER_CHANGE: f64 = 4000.0;
const NS_PER_CHANGE_AND_LINK: f64 = 180.0;
/// The same of a link that takes another rate (24 and 1 024 links, 0.65 and 5 us).
const NS_PER_RATE: f64 = 600.0;
const NS_PER_RATE_AND_LINK: f64 = 5.0;

/// What the changes of a network cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Changes of links and switches.
    pub changes: u64,
    /// CPU time.
    pub seconds: f64,
    /// Different sets of links and switches that are down: a run keeps the routes of each.
    pub states: u64,
}

/// Returns what the changes until `end` cost.
pub fn cost(scenario: &Scenario, end: Time) -> Cost {
    let links = scenario.network.topology.links.len() as f64;
    // Equal sets have equal sums of the numbers of what is down.
    let mut down: FxHashSet<u64> = FxHashSet::default();
    let (mut sum, mut states) = (0u64, FxHashSet::default());
    let mut found = Cost::default();
    for event in scenario.failures.events.iter().take_while(|event| event.at <= end) {
        found.changes += 1;
        let number = number(event.change);
        match event.change {
            Change::LinkRate(..) => {
                found.seconds += (NS_PER_RATE + NS_PER_RATE_AND_LINK * links) / 1e9;
                continue;
            }
            Change::LinkDown(_) | Change::SwitchDown(_) if down.insert(number) => {
                sum = sum.wrapping_add(number)
            }
            Change::LinkUp(_) | Change::SwitchUp(_) if down.remove(&number) => sum = sum.wrapping_sub(number),
            _ => {}
        }
        found.seconds += (NS_PER_CHANGE + NS_PER_CHANGE_AND_LINK * links) / 1e9;
        states.insert(sum);
    }
    found.states = states.len() as u64;
    found
}

/// A number that looks random, of the link or switch that changes.
fn number(of: Change) -> u64 {
    mix64(match of {
        Change::SwitchDown(node) | Change::SwitchUp(node) => (2 << 32) | u64::from(node),
        Change::LinkDown(link) | Change::LinkUp(link) | Change::LinkRate(link, _) => {
            (1 << 32) | u64::from(link)
        }
    })
}

/// Until when changes count in a run whose flows end at `end`: senders whose packets are lost wait for a
/// timeout.
pub fn counted_until(scenario: &Scenario, end: Time) -> Time {
    let is_down = |change: &Change| matches!(change, Change::LinkDown(_) | Change::SwitchDown(_));
    let breaks = scenario.failures.events.iter().any(|event| event.at <= end && is_down(&event.change));
    let timeouts = scenario.transports.iter().map(|transport| transport.facts().timer_left);
    match scenario.until {
        Until::FlowsDone { .. } if breaks => end.saturating_add(timeouts.max().unwrap_or(Time::ZERO)),
        _ => end,
    }
}

/// How many times longer bytes take by the links of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowed {
    /// By host: out of it and into it; infinite where it is cut off.
    pub own: Vec<f64>,
    /// By host: between the switches next to it and others.
    pub beyond: Vec<f64>,
}

impl Slowed {
    /// No link has changed.
    pub fn healthy(hosts: usize) -> Slowed {
        Slowed { own: vec![1.0; hosts], beyond: vec![1.0; hosts] }
    }

    /// Of a message between two hosts: by their own links, and by those between switches.
    pub fn between(&self, src: HostId, dst: HostId) -> (f64, f64) {
        let [src, dst] = [src as usize, dst as usize];
        (self.own[src].max(self.own[dst]), self.beyond[src].max(self.beyond[dst]))
    }
}

/// The links as they are at a time.
#[derive(PartialEq)]
pub(super) struct State {
    pub rates: Vec<Rate>,
    pub links_down: Vec<bool>,
    pub switches_down: Vec<bool>,
}

impl State {
    pub fn of(topology: &Topology) -> State {
        State {
            rates: topology.links.iter().map(|link| link.rate).collect(),
            links_down: vec![false; topology.links.len()],
            switches_down: vec![false; topology.nodes.len()],
        }
    }

    pub fn take(&mut self, change: Change) {
        match change {
            Change::LinkDown(link) => self.links_down[link as usize] = true,
            Change::LinkUp(link) => self.links_down[link as usize] = false,
            Change::LinkRate(link, rate) => self.rates[link as usize] = rate,
            Change::SwitchDown(node) => self.switches_down[node as usize] = true,
            Change::SwitchUp(node) => self.switches_down[node as usize] = false,
        }
    }

    pub fn is_up(&self, topology: &Topology, link: usize) -> bool {
        let of = &topology.links[link];
        !(self.links_down[link] || [of.a, of.b].iter().any(|&node| self.switches_down[node as usize]))
    }

    fn slowed(&self, topology: &Topology, hosts: &[NodeId]) -> Slowed {
        let mut place = vec![None; topology.nodes.len()];
        hosts.iter().enumerate().for_each(|(host, &node)| place[node as usize] = Some(host));
        // Of the links of a host, and of those from a switch to others: all, those that are up, and of these
        // how slow the slowest is, or the sum of how slow they are for a message that leaves its host at full
        // rate.
        let mut own = vec![(0u32, 0u32, 1.0f64); hosts.len()];
        let mut from = vec![(0u32, 0u32, 0.0f64); topology.nodes.len()];
        let is_own = |link: &Link| [link.a, link.b].iter().any(|&node| place[node as usize].is_some());
        let fastest = topology.links.iter().filter(|link| is_own(link)).map(|link| link.rate).max();
        let fastest = fastest.unwrap_or(Rate(1)).0 as f64;
        for (id, link) in topology.links.iter().enumerate() {
            let slow = link.rate.0 as f64 / self.rates[id].0.max(1) as f64;
            let ends = [link.a, link.b].map(|node| place[node as usize]);
            let up = self.is_up(topology, id);
            for host in ends.into_iter().flatten() {
                let of = &mut own[host];
                *of = (of.0 + 1, of.1 + u32::from(up), if up { of.2.max(slow) } else { of.2 });
            }
            if ends == [None, None] {
                let rate = self.rates[id].0.max(1) as f64;
                let slow = (fastest.min(link.rate.0 as f64) / rate).max(1.0);
                for node in [link.a, link.b] {
                    let of = &mut from[node as usize];
                    *of = (of.0 + 1, of.1 + u32::from(up), if up { of.2 + slow } else { of.2 });
                }
            }
        }
        // Messages of links that are down take the others.
        let own = own.into_iter().map(|(all, up, slowest)| match up {
            0 => f64::INFINITY,
            _ => slowest * f64::from(all) / f64::from(up),
        });
        let mut beyond = vec![1.0f64; hosts.len()];
        for link in &topology.links {
            for (node, switch) in [(link.a, link.b), (link.b, link.a)] {
                if let (Some(host), None) = (place[node as usize], place[switch as usize]) {
                    let (_, up, sum) = from[switch as usize];
                    beyond[host] = beyond[host].max(if up > 0 { sum / f64::from(up) } else { 1.0 });
                }
            }
        }
        Slowed { own: own.collect(), beyond }
    }
}

/// When a job ends that starts at a time. `duration`: how long all of it takes on such links; `hosts`: the
/// node of every host, and those that the job uses; `stalls`: from when to when it waits for timeouts, if it
/// has not ended before.
pub fn end(
    topology: &Topology,
    (events, stalls): (&[Failure], &[(Time, Time)]),
    (hosts, used): (&[NodeId], &[HostId]),
    start: Time,
    mut duration: impl FnMut(&Slowed) -> Time,
) -> Time {
    let mut slowed = Slowed::healthy(hosts.len());
    let whole = duration(&slowed);
    let (mut state, mut states, mut speed) = (State::of(topology), 0, 1.0);
    let (mut now, mut left) = (start, whole.as_seconds());
    let mut stalls = stalls.iter().peekable();
    for (place, event) in events.iter().enumerate() {
        let passed = event.at.saturating_sub(now).as_seconds();
        if passed * speed >= left {
            break;
        }
        left -= passed * speed;
        now = now.max(event.at);
        while let Some((_, until)) = stalls.next_if(|(at, _)| *at <= event.at) {
            now = now.max(*until);
        }
        state.take(event.change);
        if events.get(place + 1).is_some_and(|next| next.at <= now) || states == MAX_STATES {
            continue;
        }
        let found = state.slowed(topology, hosts);
        if found != slowed {
            (slowed, states) = (found, states + 1);
            let cut_off = used.iter().any(|&host| slowed.own[host as usize].is_infinite());
            speed =
                if cut_off { 0.0 } else { whole.as_seconds() / duration(&slowed).as_seconds().max(1e-12) };
        }
    }
    // A job that is cut off for good has no end that could be estimated.
    let rest = if speed > 0.0 { left / speed } else { left };
    now.saturating_add(Time((rest * 1e12).min(4e18) as u64))
}
