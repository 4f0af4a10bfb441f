//! Events in the order in which another simulator would have inserted them: the agenda of the compat modes.

use super::wires::Wires;
use super::{Event, Time};
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
    whole_ns: bool,
    wires: Option<Wires>,
}

impl Insertion {
    /// Slots of the queue are about this wide at first.
    pub fn new(slot: Time, whole_ns: bool, wires: Option<Wires>) -> Insertion {
        Insertion { queue: EventQueue::new(slot), inserted: 0, whole_ns, wires }
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
        let event = self.queue.pop_before(limit)?.event();
        if let Some(next) = self.wires.as_mut().and_then(|wires| wires.pop(&event)) {
            self.insert(next);
        }
        Some(event)
    }

    pub fn none_before(&self) -> Option<Time> {
        self.queue.none_before()
    }
}
