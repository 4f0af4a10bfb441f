//! A host's processor: it takes a time for every packet that the host receives, one after the other in the order in which they
//! came, before a transport sees them. Pauses are the NIC's and take none.
//!
//! What a packet waited, its own time included, is written to [`Partition::waits`] when its transport sees it. Queue pairs and TCP
//! receivers return it with the acknowledgement, to which its own wait at the sender is added: so a sender knows how much of a
//! round trip hosts took.

use crate::counters::CounterSet;
use crate::measure::WAITS;
use crate::net::partition::Partition;
use crate::packet::{PacketId, PacketKind};
use crate::units::Time;
use std::collections::VecDeque;

pub struct Processor {
    packet_time: Time,
    /// Each with its arrival and the time at which its transport sees it.
    queue: VecDeque<Waiting>,
    /// When the last one of the queue is done.
    free_at: Time,
    /// Of the event that was set last; [`Time::MAX`]: it has come.
    armed: Time,
    done: u64,
    waited: Time,
    max_wait: Time,
    max_packets: usize,
}

struct Waiting {
    id: PacketId,
    came: Time,
    done: Time,
}

impl Processor {
    pub fn new(packet_time: Time) -> Processor {
        Processor {
            packet_time,
            queue: VecDeque::new(),
            free_at: Time::ZERO,
            armed: Time::MAX,
            done: 0,
            waited: Time::ZERO,
            max_wait: Time::ZERO,
            max_packets: 0,
        }
    }

    /// A packet has come.
    pub fn take(&mut self, id: PacketId, now: Time) {
        self.free_at = self.free_at.max(now).saturating_add(self.packet_time);
        self.queue.push_back(Waiting { id, came: now, done: self.free_at });
        self.max_packets = self.max_packets.max(self.queue.len());
    }

    /// When the next packet is done, if an event is to be set for it.
    pub fn alarm(&mut self) -> Option<Time> {
        let next = self.queue.front()?.done;
        (next < self.armed).then(|| {
            self.armed = next;
            next
        })
    }

    /// An event has come: the transports are to see what is done.
    pub fn expire(&mut self, net: &mut Partition, ready: &mut Vec<PacketId>) {
        if net.now >= self.armed {
            self.armed = Time::MAX;
        }
        while self.queue.front().is_some_and(|first| first.done <= net.now) {
            let Some(Waiting { id, came, .. }) = self.queue.pop_front() else { break };
            let wait = net.now - came;
            let before = match net.packets[id].kind {
                PacketKind::Ack | PacketKind::Nack => net.waits.get(id),
                _ => 0,
            };
            net.waits.set(id, before.saturating_add(wait.0));
            self.done += 1;
            self.waited = self.waited.saturating_add(wait);
            self.max_wait = self.max_wait.max(wait);
            ready.push(id);
        }
    }

    /// The run ends: what no transport has seen is in flight.
    pub fn finish(&mut self, net: &mut Partition) {
        for Waiting { id, .. } in self.queue.drain(..) {
            net.leave_in_flight(id);
            let packet = &net.packets[id];
            if cfg!(debug_assertions) && packet.kind == PacketKind::Data {
                net.recorder.losses[usize::from(packet.group)].data_received -= 1;
            }
            net.discard(id);
        }
    }

    pub fn count(&self, counters: &mut CounterSet) {
        let max_packets = self.max_packets as u64;
        counters.add(&WAITS, [self.done, self.waited.0, self.max_wait.0, max_packets]);
    }
}
