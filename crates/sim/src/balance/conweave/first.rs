//! The first ToR of a flow: requests answers, and moves the flow when one is late.

use super::label::{EPOCHS, Flag, Label, REPLIES, Reply};
use super::last::REPLY_BYTES;
use super::{ConWeave, key};
use crate::balance::Ports;
use crate::packet::Packet;
use crate::topology::NextHops;
use crate::units::{Rate, Time};

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
            flow.deadline = now + self.allowed(packet.dst, ports);
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

    /// What an answer of the ToR of a host may take: there and back over links alone, and the extra time.
    pub(super) fn allowed(&mut self, host: u32, ports: &impl Ports) -> Time {
        let tor = self.fabric.tor_of[host as usize];
        let (fabric, own, slower) = (&self.fabric, self.node, self.slower);
        *self.allowed.entry(tor).or_insert_with(|| {
            let (mut node, mut time) = (own, self.config.reply_extra.unwrap_or(REPLY_EXTRA));
            while Some(&node) != fabric.node_of.get(tor as usize) {
                let port = match ports.hops(node, host) {
                    NextHops::One(port) => port,
                    NextHops::Many(ports) => ports[0],
                    NextHops::None => break,
                };
                let Some(&(next, link)) = fabric.links[node as usize].get(port as usize) else { break };
                (node, time) =
                    (next, time + link.delay + link.delay + slower.map_or(Time::ZERO, |by| by.on(link.rate)));
            }
            time
        })
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
