//! A trace: what passed every link of a network while some flows lasted, to be read after the run.
//!
//! It replaces the captures of a partition's [taps](super::tap), so that a run that is not traced pays
//! nothing.

use super::tap::Taps;
use crate::packet::{Packet, PacketId, PacketKind};
use crate::transport::Numbering;
use crate::units::Time;
use rustc_hash::FxHashMap;

/// A packet that crossed a link.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    /// Its first bit leaves; its last bit has left; the far end may work on it.
    pub time: Time,
    pub until: Time,
    pub at: Time,
    /// Data: the first of the numbers that it [carries](Numbering::carried). Pauses: the class. Others:
    /// [`Packet::seq`].
    pub seq: u64,
    pub link: u32,
    pub id: PacketId,
    pub flow: u32,
    /// The sender's own number for the flow, or for one of its subflows.
    pub sender: u32,
    pub src: u32,
    pub dst: u32,
    pub size: u16,
    /// Data: how many numbers it carries. Others: one more than the place in [`Trace::timers`] of the timer because of which a
    /// receiver sent it; 0: none.
    pub numbers: u16,
    pub kind: PacketKind,
    pub class: u8,
}

const _: () = assert!(std::mem::size_of::<Passed>() == 64);

/// Maximum number of packets that a trace keeps: 2 GB.
pub const LIMIT: usize = 32_000_000;

/// Packets that are on these links in this time are kept.
#[derive(Debug, Default)]
pub struct Window {
    pub from: Time,
    pub to: Time,
    /// A bit for each link; none: all links.
    pub links: Option<Vec<u64>>,
}

impl Window {
    fn has(&self, link: u32) -> bool {
        let bits = self.links.as_ref();
        bits.is_none_or(|bits| bits.get(link as usize / 64).is_some_and(|bits| bits >> (link % 64) & 1 == 1))
    }
}

#[derive(Debug, Default)]
pub struct Trace {
    /// In order of time on each link.
    pub passed: Vec<Passed>,
    /// Packets that links lost, and when they would have arrived.
    pub lost: Vec<(Time, PacketId)>,
    /// Packets that a queue dropped: when, and the link that it leads to.
    pub dropped: Vec<(Time, PacketId, u32)>,
    /// Packets for which a switch had no route: when they came, the switch, and the host that they were for.
    pub without_route: Vec<((Time, PacketId), u32, u32)>,
    /// Packets of hosts that waited in the queue of their NIC: link, when they left, and when they had been
    /// made.
    pub queued: Vec<(u32, Time, Time)>,
    /// Those that wait there.
    waiting: FxHashMap<PacketId, Time>,
    /// What is kept, in order of time; pauses always.
    windows: Vec<Window>,
    /// Timers of receivers, in words.
    pub timers: Vec<&'static str>,
    /// By flow and timer: how often it had expired when a packet was sent because of it last, and when that one was made.
    expiries: FxHashMap<(u32, u16), (u64, Time)>,
    /// By [`Packet::profile`].
    numberings: Box<[Numbering]>,
    /// More passed than is kept.
    pub overflows: bool,
}

impl Trace {
    /// A window that begins later ends later.
    pub fn of(mut windows: Vec<Window>, numberings: Box<[Numbering]>) -> Trace {
        windows.sort_by_key(|window| (window.from, window.to));
        Trace { windows, numberings, ..Trace::default() }
    }

    /// Whether what is on a link from `now` to `at` is kept.
    fn keeps(&self, link: u32, now: Time, at: Time) -> bool {
        let over = self.windows.partition_point(|window| window.to < now);
        let begun = self.windows.partition_point(|window| window.from <= at);
        self.windows.get(over..begun).is_some_and(|all| all.iter().any(|window| window.has(link)))
    }

    /// A host has made a packet, which goes into the queue of its NIC.
    pub fn made(&mut self, id: PacketId, now: Time) {
        self.waiting.insert(id, now);
    }

    /// What [`Passed::numbers`] has of a packet without data that was made then.
    fn timer_of(&mut self, packet: &Packet, made: Time) -> u16 {
        let numbering = self.numberings.get(usize::from(packet.profile));
        let Some(timer) = numbering.and_then(|numbering| (numbering.receiver_timer)(packet)) else {
            return 0;
        };
        let known = self.timers.iter().position(|&until| until == timer.until);
        let place = known.unwrap_or(self.timers.len());
        if known.is_none() {
            self.timers.push(timer.until);
        }
        let place = place as u16 + 1;
        let (expired, at) = self.expiries.entry((packet.flow, place)).or_insert((0, made));
        if timer.expired > *expired {
            (*expired, *at) = (timer.expired, made);
        }
        if timer.expired == *expired && *expired > 0 && *at == made { place } else { 0 }
    }

    /// A packet leaves by a link, which it occupies until `until`, and arrives at `at`.
    pub fn note(&mut self, link: u32, packet: &Packet, id: PacketId, now: Time, until: Time, at: Time) {
        let made = if self.waiting.is_empty() { None } else { self.waiting.remove(&id) };
        let pauses = matches!(packet.kind, PacketKind::Pause | PacketKind::Resume);
        let over = self.windows.last().is_none_or(|window| now > window.to);
        if over || (!pauses && !self.keeps(link, now, at)) {
            return;
        }
        if self.passed.len() >= LIMIT {
            self.overflows = true;
            return;
        }
        if let Some(made) = made.filter(|&made| made < now) {
            self.queued.push((link, now, made));
        }
        let (seq, numbers) = match packet.kind {
            PacketKind::Data => {
                let carried = (self.numberings[usize::from(packet.profile)].carried)(packet);
                (carried.start, (carried.end - carried.start) as u16)
            }
            _ if pauses => (u64::from(packet.aux), 0),
            _ => (packet.seq, self.timer_of(packet, made.unwrap_or(now))),
        };
        self.passed.push(Passed {
            time: now,
            until,
            at,
            seq,
            link,
            id,
            flow: if pauses { u32::MAX } else { packet.flow },
            sender: packet.sender,
            src: packet.src,
            dst: packet.dst,
            size: packet.size,
            numbers,
            kind: packet.kind,
            class: packet.class,
        });
    }
}

impl Taps {
    /// Records what passes in a trace, in place of a capture.
    pub fn trace(&mut self, trace: Trace) {
        self.trace = Some(Box::new(trace));
    }
}
