//! The last ToR of a flow: answers the first one, reports marked paths, and holds packets of the new path until the TAIL.

use super::label::{EPOCHS, Flag, Label, Reply};
use super::{ConWeave, ConWeaveParameters, key};
use crate::balance::{Held, SwitchContext};
use crate::packet::Packet;
use crate::topology::NextHops;
use crate::units::Time;
use std::cmp::Reverse;

/// Bytes of an answer, which is in the class before all others.
pub(super) const REPLY_BYTES: u16 = 64;
/// From a TAIL to the packets that were held for it.
const BEHIND_TAIL: Time = Time::from_ns(1);

/// A flow at its last ToR.
#[derive(Debug, Default)]
pub struct Incoming {
    pub active: Time,
    pub epoch: u16,
    pub phase: bool,
    /// When the last packet of phase 0 of this epoch left the first ToR and came here.
    pub sample: Option<(u32, Time)>,
    /// Packets kept, in turn; some, while it puts the flow in order.
    pub kept: Vec<Held>,
    pub until: Time,
    /// When the TAIL left, as what is kept says.
    pub tail: u32,
    /// The timer is set for this time.
    pub armed: Time,
    pub tail_came: bool,
}

impl Incoming {
    /// By how many epochs a packet is newer than the flow, modulo their number.
    fn lag(&self, label: Label) -> u16 {
        label.epoch.wrapping_sub(self.epoch) % EPOCHS
    }
}

impl ConWeave {
    /// A packet with a label comes to its last ToR: whether its epoch is that of its flow, or a newer one. One of an older epoch
    /// passes, and nothing is made of it.
    pub(super) fn is_current(&mut self, packet: &Packet, label: Label, now: Time) -> bool {
        let fresh =
            || Incoming { epoch: label.epoch, phase: label.flag == Flag::Tail, ..Incoming::default() };
        let flow = self.incoming.entry(key(packet)).or_insert_with(fresh);
        if flow.kept.is_empty() && now > flow.active + self.config.ageing {
            *flow = fresh();
        }
        flow.active = now;
        flow.lag(label) < EPOCHS / 2
    }

    /// A packet of the present epoch, or of a newer one: given back, unless it is kept.
    pub(super) fn order(
        &mut self,
        packet: &Packet,
        held: Held,
        label: Label,
        cx: &mut impl SwitchContext,
    ) -> Option<Held> {
        let (now, key) = (cx.now(), key(packet));
        let ConWeaveParameters { resume_extra, wait, .. } = self.config;
        let Some(flow) = self.incoming.get_mut(&key) else { return Some(held) };
        let tail = label.flag == Flag::Tail;
        let ahead = flow.lag(label);
        let reordering = !flow.kept.is_empty();
        if ahead > 0 {
            (flow.epoch, flow.phase, flow.sample) = (label.epoch, tail, None);
        } else if tail && !reordering {
            flow.phase = true;
        }
        if !label.phase {
            flow.sample = Some((label.time, now));
        }
        let mut passes = Some(held);
        if label.phase && (reordering || !flow.phase) {
            if !reordering {
                (flow.tail, flow.tail_came) = (label.time, false);
                let expected = flow.sample.map_or(now + wait, |(left, came)| came + after(label.time, left));
                flow.until = expected + resume_extra;
                self.counts.holds += 1;
            }
            flow.kept.extend(passes.take());
            self.held += 1;
            self.counts.kept += 1;
            self.counts.max_held = self.counts.max_held.max(self.held);
        } else if reordering && tail {
            (flow.until, flow.tail_came) = (now + BEHIND_TAIL, true);
        } else if reordering && !label.phase && !flow.tail_came {
            // The TAIL is as late on the same path.
            flow.until = now + after(flow.tail, label.time) + resume_extra;
        }
        if !flow.kept.is_empty() && (flow.armed <= now || flow.until < flow.armed) {
            flow.armed = flow.until;
            self.due.push(Reverse((flow.until, key)));
            cx.wake(flow.until);
        }
        passes
    }

    /// Answers the first ToR of a packet.
    pub(super) fn reply(&mut self, packet: &Packet, reply: Reply, label: Label, cx: &mut impl SwitchContext) {
        let probe = Packet {
            size: REPLY_BYTES,
            class: 0,
            src: packet.dst,
            dst: packet.src,
            flow: packet.flow,
            sender: packet.hash,
            hash: packet.hash,
            aux: reply as u32,
            seq: label.pack(),
            sent: cx.now(),
            ..Packet::default()
        };
        self.pass_on(probe, cx);
    }

    /// Sends an answer on towards the ToR of its host.
    pub(super) fn pass_on(&mut self, probe: Packet, cx: &mut impl SwitchContext) {
        let port = match cx.hops(self.node, probe.dst) {
            NextHops::One(port) => port,
            NextHops::Many(ports) => ports[self.hash.way_of(&probe, ports)],
            NextHops::None => return,
        };
        if cx.is_up(port) {
            cx.send(port, probe);
        }
    }

    /// Sends what was held for long enough.
    pub(super) fn release_due(&mut self, cx: &mut impl SwitchContext) {
        let now = cx.now();
        while let Some(&Reverse((at, key))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let Some(flow) = self.incoming.get_mut(&key).filter(|flow| !flow.kept.is_empty()) else {
                continue;
            };
            if flow.until > now {
                if flow.armed <= now {
                    flow.armed = flow.until;
                    self.due.push(Reverse((flow.until, key)));
                    cx.wake(flow.until);
                }
                continue;
            }
            flow.phase = true;
            flow.armed = Time::ZERO;
            self.counts.timed_out += u64::from(!flow.tail_came);
            self.held -= flow.kept.len() as u64;
            flow.kept.drain(..).for_each(|held| cx.release(held));
        }
    }
}

/// How much later one time in ns was than another; zero, if it was earlier.
fn after(later: u32, earlier: u32) -> Time {
    let ns = later.wrapping_sub(earlier);
    if ns < u32::MAX / 2 { Time::from_ns(u64::from(ns)) } else { Time::ZERO }
}
