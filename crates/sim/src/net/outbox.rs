//! Packets on links that lead into another partition: they cross by value, with the telemetry that they carry.
//!
//! A partition fills its outboxes while it works; between windows whole outboxes change hands. Nothing is shared, so
//! nothing is locked. What is for one node lies together, so that the node takes it in, in order of memory, right before
//! it works on it.

use super::PortId;
use super::agenda::Event;
use super::headers::Headers;
use crate::packet::{NONE, Packet, PacketSlab};
use crate::telemetry::int::{IntRecord, IntStacks};
use crate::units::Time;

/// Where a partition keeps packets, and what belongs to them.
type Slabs<'a> = (&'a mut PacketSlab, &'a mut IntStacks, &'a mut Headers, &'a mut Headers);

/// What one partition sends to one other.
pub struct Outbox {
    /// Of each node that something was ever sent to.
    mail: Vec<Mail>,
    /// By node: where its mail is, or [`NONE`].
    places: Vec<u32>,
    /// Nodes that have mail.
    nodes: Vec<u32>,
    /// When the first packet arrives.
    first: Time,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox { mail: Vec::new(), places: Vec::new(), nodes: Vec::new(), first: Time::MAX }
    }
}

impl Outbox {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Nodes of the other partition that have mail.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// When the first of its packets arrives.
    pub fn first_arrival(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.first)
    }

    /// Where to post what reaches the other partition's `node` at `at`.
    #[inline(always)]
    pub fn to_node(&mut self, node: u32, at: Time) -> &mut Mail {
        self.first = self.first.min(at);
        let place = match self.places.get(node as usize) {
            Some(&place) if place != NONE => place,
            _ => self.first_to(node),
        };
        let mail = &mut self.mail[place as usize];
        if mail.packets.is_empty() {
            self.nodes.push(node);
        }
        mail
    }

    /// The place of a node that nothing was sent to before.
    #[cold]
    #[inline(never)]
    fn first_to(&mut self, node: u32) -> u32 {
        if self.places.len() <= node as usize {
            self.places.resize(node as usize + 1, NONE);
        }
        self.places[node as usize] = self.mail.len() as u32;
        self.mail.push(Mail::default());
        self.places[node as usize]
    }

    /// The mail of a node, if it has any.
    #[inline]
    pub fn of_node(&mut self, node: u32) -> Option<&mut Mail> {
        let place = *self.places.get(node as usize)?;
        self.mail.get_mut(place as usize).filter(|mail| !mail.packets.is_empty())
    }

    /// Hands out all mail: packets into the receiver's slabs, and their arrivals as (node, event).
    pub fn empty_into(
        &mut self,
        (packets, stacks, headers, trails): Slabs<'_>,
        mut deliver: impl FnMut(u32, Event),
    ) {
        for &node in &self.nodes {
            let mail = &mut self.mail[self.places[node as usize] as usize];
            mail.empty_into((packets, stacks, headers, trails), |event| deliver(node, event));
        }
        self.clear();
    }

    /// The mail of all nodes has been taken out.
    pub fn clear(&mut self) {
        debug_assert!(self.mail.iter().all(|mail| mail.packets.is_empty()));
        self.nodes.clear();
        self.first = Time::MAX;
    }
}

/// What one partition sends to one node of another.
#[derive(Default)]
pub struct Mail {
    packets: Vec<Packet>,
    /// Of each packet, its arrival.
    arrivals: Vec<Event>,
    /// Of the packets that carry a stack, in their order: its head and then its records.
    records: Vec<IntRecord>,
    /// What they carry for load balancers: of each, once one of them carries something.
    headers: Vec<u64>,
    /// Where they have been, likewise.
    trails: Vec<u64>,
}

impl Mail {
    /// Takes in a packet that reaches `port` of the node at `at`.
    #[inline(always)]
    pub fn post(&mut self, at: Time, port: PortId, packet: &Packet, stacks: &IntStacks) {
        if packet.telemetry != NONE {
            stacks.copy_out(packet.telemetry, &mut self.records);
        }
        self.arrivals.push(Event::of_arrival(at, port, 0));
        self.packets.push(*packet);
    }

    /// What the packet that was taken in last carries for load balancers.
    pub fn post_header(&mut self, header: u64) {
        // Those before it carry nothing.
        self.headers.resize(self.packets.len() - 1, 0);
        self.headers.push(header);
    }

    /// Where the packet that was taken in last has been.
    pub fn post_trail(&mut self, trail: u64) {
        self.trails.resize(self.packets.len() - 1, 0);
        self.trails.push(trail);
    }

    /// Hands out its packets into the receiver's slabs, and their arrivals.
    #[inline(always)]
    pub fn empty_into(
        &mut self,
        (packets, stacks, headers, trails): Slabs<'_>,
        mut deliver: impl FnMut(Event),
    ) {
        let mut records = &self.records[..];
        let (mut words, mut ways) = (self.headers.iter(), self.trails.iter());
        for (packet, arrival) in self.packets.iter().zip(&self.arrivals) {
            let mut arrived = *packet;
            if arrived.telemetry != NONE {
                arrived.telemetry = stacks.copy_in(&mut records);
            }
            let id = packets.insert(arrived);
            if let Some(&word) = words.next() {
                headers.set(id, word);
            }
            if let Some(&trail) = ways.next() {
                trails.set(id, trail);
            }
            deliver(arrival.with_packet(id));
        }
        self.packets.clear();
        self.arrivals.clear();
        self.records.clear();
        self.headers.clear();
        self.trails.clear();
    }
}
