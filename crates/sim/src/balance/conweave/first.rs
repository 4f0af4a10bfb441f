//! The first ToR of a flow: requests answers, and moves the flow when one is late.

use super::label::{EPOCHS, Flag, Label, REPLIES, Reply};
use super::last::REPLY_BYTES;
use super::{ConWeave, key};
use crate::balance::Ports;
use crate::packet::Packet;
use crate::topology::NextHops;
use crate::units::{Rate, Time};

use rustc_hash::FxHashMap;

/// What an answer may take beyond the propagation delays in the authors' simulator, whose links have 100 Gb/s
/// and whose packets have 1048 B.
const REPLY_EXTRA: Time = Time::from_us(4);
const AUTHORS_RATE: Rate = Rate::from_gbps(100);
const AUTHORS_PACKET: u64 = 1048;

/// How much longer packets take on a link than on those of the authors.
#[derive(Debug, Clone, Copy)]
pub struct Slower {
    /// Bytes of the largest data packet.
    pub packet: u64,
}

impl Slower {
    /// On a link, there and back. A request takes the time of a full packet even if it is short, because it
    /// follows full ones. Going back the answer goes first, but not before a packet that is being sent.
    fn on(self, rate: Rate) -> Time {
        let time = |rate: Rate, packet: u64| rate.transmission_time(2 * packet + u64::from(REPLY_BYTES));
        time(rate, self.packet).saturating_sub(time(AUTHORS_RATE, AUTHORS_PACKET))
    }
}

/// A way to a host ends at its ToR.
#[derive(Debug, Clone, Copy)]
struct Way {
    last: Option<u32>,
    host: u32,
}

/// A flow at its first ToR.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// Its path answered in time.
    pub stable: bool,
    pub active: Time,
    pub deadline: Time,
    pub epoch: u16,
    pub phase: bool,
    pub path: u16,
    pub tail: u32,
}

impl ConWeave {
    /// A packet of a host here for another rack: its path. What it takes along is kept for [`LoadBalancer::on_forward`].
    pub(super) fn steer(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> u32 {
        let (now, key) = (ports.now(), key(packet));
        self.sweep(now);
        let goes = |path: u16| candidates.contains(&u32::from(path & 255));
        let known = self.outgoing.get(&key).copied().filter(|flow| goes(flow.path));
        let mut flow = known.unwrap_or_else(|| Outgoing {
            stable: true,
            active: Time::ZERO,
            deadline: Time::MAX,
            epoch: self.outgoing.get(&key).map_or(0, |flow| flow.epoch),
            phase: false,
            path: 0,
            tail: 0,
        });
        let expired = known.is_none() || now > flow.active + self.config.inactive;
        let renews = expired || flow.stable;
        flow.active = now;
        let mut flag = Flag::Data;
        let (mut phase, old) = (flow.phase, flow.path);
        let stamp = now.ns() as u32;
        if renews {
            flow.stable = false;
            (flow.epoch, flow.phase) = ((flow.epoch + 1) % EPOCHS, false);
            (flag, phase) = (Flag::Init, false);
            self.counts.requests += 1;
        } else if flow.deadline < now {
            flow.deadline = Time::MAX;
            (flag, flow.phase, flow.tail) = (Flag::Tail, true, stamp);
            self.counts.moves += 1;
        }
        let mut path = old;
        if expired || flag == Flag::Tail {
            let (first, free) = self.draw(packet.dst, candidates, ports);
            let stays = if known.is_none() { first } else { old };
            flow.path = free.unwrap_or(stays);
            // A TAIL still takes the old path.
            path = if flag == Flag::Tail { old } else { flow.path };
        }
        if renews {
            flow.deadline = now + self.allowed(path, packet.dst, ports);
        }
        self.outgoing.insert(key, flow);
        let time = if phase { flow.tail } else { stamp };
        self.label = Label { flag, phase, epoch: flow.epoch, path, time }.pack();
        u32::from(path & 255)
    }

    /// Draws two paths to a host: the first, and the first that is not avoided.
    pub(super) fn draw(&mut self, dst: u32, candidates: &[u32], ports: &impl Ports) -> (u16, Option<u16>) {
        let (tor, now) = (self.fabric.tor_of[dst as usize], ports.now());
        let mut one = || {
            let port = candidates[self.random.below(candidates.len() as u64) as usize];
            let above = match ports.hops(self.neighbours[port as usize].node, dst) {
                NextHops::Many(ports) => ports[self.random.below(ports.len() as u64) as usize],
                NextHops::One(_) | NextHops::None => 0,
            };
            (port & 255 | (above & 255) << 8) as u16
        };
        let drawn = [one(), one()];
        let free = |path: &u16| self.busy.get(&(tor, *path)).is_none_or(|&until| until < now);
        (drawn[0], drawn.into_iter().find(free))
    }

    /// What an answer of the ToR of a host may take: there by this path and back by any, over links alone, and
    /// the extra time.
    pub(super) fn allowed(&mut self, path: u16, host: u32, ports: &impl Ports) -> Time {
        let tor = self.fabric.tor_of[host as usize];
        if let Some(&known) = self.allowed.get(&(tor, path)) {
            return known;
        }
        let way = Way { last: self.fabric.node_of.get(tor as usize).copied(), host };
        let there = self.along(self.node, &[path & 255, path >> 8], way, ports);
        // An answer is hashed, so it may take the longest way of all.
        let longest = match self.fabric.alike {
            true => there,
            false => self.longest(self.node, way, ports, &mut FxHashMap::default()),
        };
        let both = there.zip(longest).map(|(there, longest)| Time((there + longest).0 / 2));
        let allowed = self.config.reply_extra.unwrap_or(REPLY_EXTRA) + both.unwrap_or(Time::ZERO);
        // A network that is cut may be whole again.
        if both.is_some() {
            self.allowed.insert((tor, path), allowed);
        }
        allowed
    }

    /// There and back over the links of a path, whose first ports at switches with a choice are given.
    fn along(&self, from: u32, chosen: &[u16], way: Way, ports: &impl Ports) -> Option<Time> {
        let (mut node, mut time, mut chosen) = (from, Time::ZERO, chosen.iter());
        while Some(node) != way.last {
            let wish = chosen.next().map(|&port| u32::from(port));
            let port = match ports.hops(node, way.host) {
                NextHops::One(port) => port,
                NextHops::Many(ports) => wish.filter(|port| ports.contains(port)).unwrap_or(ports[0]),
                NextHops::None => return None,
            };
            let (next, link) = self.link(node, port)?;
            (node, time) = (next, time + link);
        }
        Some(time)
    }

    /// There and back over the links of the longest of all shortest paths. `known` has the rest of the way by switch.
    fn longest(
        &self,
        node: u32,
        way: Way,
        ports: &impl Ports,
        known: &mut FxHashMap<u32, Option<Time>>,
    ) -> Option<Time> {
        if Some(node) == way.last {
            return Some(Time::ZERO);
        }
        if let Some(&rest) = known.get(&node) {
            return rest;
        }
        let mut by = |port: u32| {
            let (next, link) = self.link(node, port)?;
            Some(link + self.longest(next, way, ports, known)?)
        };
        let rest = match ports.hops(node, way.host) {
            NextHops::One(port) => by(port),
            NextHops::Many(ports) => ports.iter().filter_map(|&port| by(port)).max(),
            NextHops::None => None,
        };
        known.insert(node, rest);
        rest
    }

    /// Where a port leads, and the time there and back.
    fn link(&self, node: u32, port: u32) -> Option<(u32, Time)> {
        let &(next, link) = self.fabric.links[node as usize].get(port as usize)?;
        Some((next, link.delay + link.delay + self.slower.map_or(Time::ZERO, |by| by.on(link.rate))))
    }

    pub(super) fn learn(&mut self, probe: &Packet, now: Time) {
        let Some(label) = Label::unpack(probe.seq) else { return };
        let Some(reply) = REPLIES.get(probe.aux as usize) else { return };
        if *reply == Reply::Notify {
            let tor = self.fabric.tor_of[probe.src as usize];
            self.busy.insert((tor, label.path), now + self.config.busy);
            return;
        }
        let Some(flow) = self.outgoing.get_mut(&(probe.flow, probe.sender)) else { return };
        let waits = match reply {
            Reply::Init => !flow.phase && flow.deadline >= now && flow.deadline != Time::MAX,
            _ => flow.phase,
        };
        if waits && label.epoch == flow.epoch {
            (flow.stable, flow.deadline) = (true, Time::MAX);
            self.counts.answers += u64::from(*reply == Reply::Init);
        }
    }
}
