//! A port of the simulator between two interfaces, with the bytes of its frames in a side table.
//!
//! The queue, the line and the moment at which the transmitter is free are the simulator's own. What is here
//! is what a partition does around them: time is that of the arrivals, and every departure has the time that
//! it has in a simulation of the same arrivals, however late the process is that asks.

use std::collections::VecDeque;

use weftline_dataplane::stack;
use weftline_sim::counters::CounterSet;
use weftline_sim::engine::random::RandomStream;
use weftline_sim::net::ecn::EcnMarker;
use weftline_sim::net::port::{Line, Port, PortPlan};
use weftline_sim::packet::{NONE, Packet, PacketId, PacketKind, PacketSlab, flag};
use weftline_sim::queue::{Queue, QueueDiscipline};
use weftline_sim::units::{Rate, Time};

use crate::frame;

/// What marks packets by the switch's thresholds, as they leave and as they come.
pub struct Markers {
    pub departing: EcnMarker,
    pub arriving: EcnMarker,
    pub random: RandomStream,
}

/// Frames and bytes since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    pub received: u64,
    pub bytes_received: u64,
    /// On the link or beyond it.
    pub sent: u64,
    pub bytes_sent: u64,
    pub dropped: u64,
    pub bytes_dropped: u64,
    /// In the queue.
    pub queued: u64,
    pub bytes_queued: u64,
    pub marked: u64,
}

impl Account {
    /// Whether all that came in is accounted for.
    pub fn holds(&self) -> bool {
        self.received == self.sent + self.dropped + self.queued
            && self.bytes_received == self.bytes_sent + self.bytes_dropped + self.bytes_queued
    }
}

/// One port with what waits in it and what is on its link.
pub struct EnginePort {
    port: Port,
    packets: PacketSlab,
    /// The bytes of each packet.
    frames: Vec<Vec<u8>>,
    /// What is on the link, by the time of its arrival at the far end.
    wire: VecDeque<(Time, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    markers: Markers,
    now: Time,
    account: Account,
    /// The node as which it writes INT into frames that ask for it.
    node: Option<u32>,
}

/// Buffers that are kept for later frames.
const MOST_SPARE: usize = 1024;

impl EnginePort {
    pub fn new(queue: Queue, line: Line, markers: Markers) -> EnginePort {
        let plan = PortPlan {
            slot: 0,
            node: 0,
            local: 0,
            peer: 0,
            peer_local: 0,
            peer_slot: 0,
            peer_partition: 0,
            line,
        };
        let mut packets = PacketSlab::new();
        packets.begin_turn();
        EnginePort {
            port: Port::new(&plan, queue),
            packets,
            frames: Vec::new(),
            wire: VecDeque::new(),
            spare: Vec::new(),
            markers,
            now: Time::ZERO,
            account: Account::default(),
            node: None,
        }
    }

    /// The port of a node that writes INT into frames that ask for it, which become longer for that.
    pub fn with_int(self, node: u32) -> EnginePort {
        EnginePort { node: Some(node), ..self }
    }

    /// A frame has come. A time before that of an earlier call is as if it were that one.
    pub fn offer(&mut self, at: Time, packet: Packet, bytes: &[u8]) {
        self.advance(at);
        self.account.received += 1;
        self.account.bytes_received += u64::from(packet.size);
        let id = self.packets.insert(packet);
        self.keep(id, bytes);
        let came_marked = packet.marked();
        let waiting = self.port.queue.class_bytes(packet.class);
        if !came_marked && self.markers.arriving.marks(waiting, &mut self.markers.random) {
            self.mark(id);
        }
        let mut verdict = self.port.enqueue(id, &mut self.packets, self.now);
        while let Some(dropped) = verdict.next_dropped(&self.packets) {
            self.drop(dropped);
        }
        self.settle();
        if self.port.is_idle(self.now) {
            self.serve();
        } else {
            self.port.departure_pending |= !self.port.queue.is_empty();
        }
    }

    /// Sends what leaves before this time; at this very time an arrival goes first.
    pub fn advance(&mut self, to: Time) {
        while self.port.departure_pending && self.port.busy_until < to {
            self.now = self.now.max(self.port.busy_until);
            self.port.departure_pending = false;
            self.serve();
        }
        self.now = self.now.max(to);
    }

    /// When the transmitter will be free for a packet that waits.
    pub fn departs_at(&self) -> Option<Time> {
        self.port.departure_pending.then_some(self.port.busy_until)
    }

    /// When the next frame arrives at the far end.
    pub fn arrives_at(&self) -> Option<Time> {
        self.wire.front().map(|(at, _)| *at)
    }

    /// The next frame that has arrived at the far end until now, and when it did.
    pub fn arrived(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        self.arrives_at().filter(|at| *at <= now)?;
        self.wire.pop_front()
    }

    /// The buffer of a frame that is done with.
    pub fn give_back(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(bytes);
        }
    }

    /// Bytes in the queue.
    pub fn queue_bytes(&self) -> u64 {
        self.port.queue.bytes()
    }

    /// Frames on the link.
    pub fn on_link(&self) -> usize {
        self.wire.len()
    }

    pub fn account(&self) -> Account {
        let on_queue = self.packets.live() as u64;
        Account { queued: on_queue, bytes_queued: self.port.queue.bytes(), ..self.account }
    }

    /// What the discipline has counted.
    pub fn counters(&mut self) -> CounterSet {
        let mut counters = CounterSet::default();
        self.port.queue.count(self.now, &mut counters);
        counters
    }

    pub fn rate(&self) -> Rate {
        self.port.line.rate
    }

    fn keep(&mut self, id: PacketId, bytes: &[u8]) {
        let place = id as usize;
        if place >= self.frames.len() {
            self.frames.resize_with(place + 1, Vec::new);
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(bytes);
        self.frames[place] = kept;
    }

    fn mark(&mut self, id: PacketId) {
        let packet = &mut self.packets[id];
        if packet.kind == PacketKind::Data {
            packet.flags |= flag::MARKED;
        }
    }

    /// The transmitter is free: the next packet goes onto the link.
    fn serve(&mut self) {
        let next = self.port.queue.dequeue(0, &mut self.packets, self.now);
        self.settle();
        let Some(id) = next else { return };
        let left = self.port.queue.class_bytes(self.packets[id].class);
        if self.markers.departing.marks(left, &mut self.markers.random) {
            self.mark(id);
        }
        let sent = self.port.bytes_sent;
        let packet = &mut self.packets[id];
        let at = self.port.launch(packet, self.now, false).at;
        let (marked, size) = (packet.marked(), u64::from(packet.size));
        let mut bytes = std::mem::take(&mut self.frames[id as usize]);
        if let Some(node) = self.node {
            let queue = u32::try_from(self.port.queue.bytes()).unwrap_or(u32::MAX);
            let (time_ns, rate_kbps) = (self.now.ns(), self.port.rate_kbps);
            stack::push(&mut bytes, &stack::Hop { node, queue, time_ns, rate_kbps, sent });
        }
        self.account.marked += u64::from(marked && frame::mark(&mut bytes));
        self.account.sent += 1;
        self.account.bytes_sent += size;
        self.packets.remove(id);
        self.wire.push_back((at, bytes));
        self.port.departure_pending = !self.port.queue.is_empty();
    }

    /// Frees what the discipline has dropped.
    fn settle(&mut self) {
        let Some(account) = self.port.queue.account() else { return };
        let mut dropped = account.take_dropped();
        account.take_marks();
        let wakes = account.take_wake();
        while dropped != NONE {
            let next = self.packets[dropped].next;
            self.drop(dropped);
            dropped = next;
        }
        if wakes {
            self.port.queue.ask(&mut self.packets, self.now);
            self.settle();
        }
    }

    fn drop(&mut self, id: PacketId) {
        self.account.dropped += 1;
        self.account.bytes_dropped += u64::from(self.packets[id].size);
        let bytes = std::mem::take(&mut self.frames[id as usize]);
        self.give_back(bytes);
        self.packets.remove(id);
    }
}
