//! Events in the order in which another simulator would have inserted them: the agenda of the compat modes.

use super::wires::Wires;
use super::{Event, PortId, Time};
use crate::engine::queue::{EventQueue, Timed};

/// Numbers of events after all that were inserted for the same time.
const BEHIND: u64 = 1 << 63;

/// An event of the compat mode, without the alignment of its 128 bits: three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inserted {
    time: Time,
    /// As the HPCC authors' simulator would have inserted it.
    number: u64,
    order: u64,
}

impl Inserted {
    #[inline(always)]
    fn new(event: Event, number: u64) -> Inserted {
        Inserted { time: event.time(), number, order: event.order() }
    }

    #[inline(always)]
    fn event(self) -> Event {
        Event(u128::from(self.time.0) << 64 | u128::from(self.order))
    }
}

impl Ord for Inserted {
    #[inline(always)]
    fn cmp(&self, other: &Inserted) -> std::cmp::Ordering {
        let key = |event: &Inserted| u128::from(event.time.0) << 64 | u128::from(event.number);
        // Numbers repeat only where wake-ups of one port are put off to one time.
        key(self).cmp(&key(other)).then_with(|| self.order.cmp(&other.order))
    }
}

impl PartialOrd for Inserted {
    #[inline(always)]
    fn partial_cmp(&self, other: &Inserted) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Timed for Inserted {
    #[inline]
    fn time(&self) -> Time {
        self.time
    }
}

/// Events by the order in which another simulator would have inserted them.
pub struct Insertion {
    queue: EventQueue<Inserted>,
    inserted: u64,
    /// Time and number of the event at work.
    at_work: (Time, u64),
    /// By port: the number that the end of its transmission would have had; 0: it has one, or ended before.
    reserved: Vec<u64>,
    whole_ns: bool,
    wires: Option<Wires>,
}

impl Insertion {
    /// Slots of the queue are about this wide at first.
    pub fn new(slot: Time, whole_ns: bool, ports: usize, wires: Option<Wires>) -> Insertion {
        let reserved = vec![0; if wires.is_some() { 0 } else { ports }];
        Insertion {
            queue: EventQueue::new(slot),
            inserted: 0,
            at_work: (Time::ZERO, 0),
            reserved,
            whole_ns,
            wires,
        }
    }

    /// A transmission begins at a port where nothing waits: its end only has a number, until something waits. False if
    /// it must be an event (where there are wires).
    #[inline]
    pub fn reserve(&mut self, port: PortId) -> bool {
        let Some(reserved) = self.reserved.get_mut(port as usize) else { return false };
        self.inserted += 1;
        *reserved = self.inserted;
        true
    }

    /// Something is to be done at a port whose transmission ends at `free`: if that end only has a number and is yet to
    /// come, it becomes an event. Whether it does.
    #[inline]
    pub fn redeem(&mut self, port: PortId, free: Time, now: Time) -> bool {
        let Some(reserved) = self.reserved.get_mut(port as usize) else { return false };
        let number = std::mem::take(reserved);
        let (time, at_work) = self.at_work;
        let is_over = free < now || (free == now && time == now && number < at_work);
        if number == 0 || is_over {
            return false;
        }
        self.queue.push(Inserted::new(Event::of_departure(free, port), number));
        true
    }

    #[inline(always)]
    fn insert(&mut self, event: Event) {
        self.inserted += 1;
        let put_off = if self.whole_ns { event.put_off() } else { None };
        let (number, event) = match put_off {
            Some(event) => (BEHIND | u64::from(event.port()), event),
            None => (self.inserted, event),
        };
        self.queue.push(Inserted::new(event, number));
    }

    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        let now = match &mut self.wires {
            Some(wires) => wires.push(event),
            None => Some(event),
        };
        now.into_iter().for_each(|event| self.insert(event));
    }

    #[inline(always)]
    pub fn next(&mut self, limit: Time) -> Option<Event> {
        if let Some(next) = self.wires.as_mut().and_then(Wires::go_on) {
            self.insert(next);
        }
        let next = self.queue.pop_before(limit)?;
        self.at_work = (next.time, next.number);
        let event = next.event();
        if let Some(next) = self.wires.as_mut().and_then(|wires| wires.pop(&event)) {
            self.insert(next);
        }
        Some(event)
    }

    pub fn none_before(&self) -> Option<Time> {
        self.queue.none_before()
    }
}
