//! Links that have one event at a time, for their oldest packet, as in csg-htsim.
//!
//! There a packet is handed to its link at the end of its transmission, and a link inserts the arrival of a packet when the
//! one before it has been delivered. Which of simultaneous events comes first follows from that.

use super::{Action, Event};
use crate::net::PortId;
use std::collections::VecDeque;

#[derive(Default)]
pub struct Wires {
    /// By the port that sends: the arrival of the packet whose transmission has not ended.
    sending: Vec<Option<Event>>,
    /// The port whose departure was inserted last: the arrival that follows is of its packet.
    departing: Option<PortId>,
    /// By the port at the far end.
    wires: Vec<Wire>,
    /// The port at which a packet has arrived: its link inserts the next one now.
    delivered: Option<PortId>,
}

#[derive(Default, Clone)]
struct Wire {
    has_event: bool,
    waiting: VecDeque<Event>,
}

impl Wires {
    pub fn new(ports: usize) -> Wires {
        Wires { sending: vec![None; ports], wires: vec![Wire::default(); ports], ..Wires::default() }
    }

    /// Something is scheduled: the event to insert now, if any.
    pub fn push(&mut self, event: Event) -> Option<Event> {
        let departing = self.departing.take();
        match event.action() {
            Action::Departure { port } => self.departing = Some(port),
            Action::Arrival { port, .. } => match departing {
                Some(from) => {
                    self.sending[from as usize] = Some(event);
                    return None;
                }
                None => return self.hand_over(port, event),
            },
            _ => {}
        }
        Some(event)
    }

    /// The event at work is done, and another one is requested: the event to insert before.
    pub fn go_on(&mut self) -> Option<Event> {
        let wire = &mut self.wires[self.delivered.take()? as usize];
        let next = wire.waiting.pop_front();
        wire.has_event = next.is_some();
        next
    }

    /// An event comes up: the event to insert before it happens.
    pub fn pop(&mut self, event: &Event) -> Option<Event> {
        match event.action() {
            Action::Departure { port } => {
                let arrival = self.sending[port as usize].take()?;
                self.hand_over(arrival.port(), arrival)
            }
            Action::Arrival { port, .. } => {
                self.delivered = Some(port);
                None
            }
            _ => None,
        }
    }

    /// A link gets a packet.
    fn hand_over(&mut self, port: PortId, arrival: Event) -> Option<Event> {
        let wire = &mut self.wires[port as usize];
        if std::mem::replace(&mut wire.has_event, true) {
            wire.waiting.push_back(arrival);
            return None;
        }
        Some(arrival)
    }
}
