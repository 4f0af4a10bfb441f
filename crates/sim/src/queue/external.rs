//! A queue discipline of another crate, written like those of this room: over the switch's buffer with [`QueueParameters`], over one
//! of the port's own with [`DisciplineParameters`](super::DisciplineParameters).
//!
//! Each decision costs a call through a pointer, and its state lies in memory of its own. What it holds is counted here, so
//! that a discipline that loses or invents packets ends the run with an error that names it, as a panic in it does.

use super::{
    CLASSES, PortPlace, QueueCounters, QueueDefaults, QueueDiscipline, QueueFacts, QueueParameters, Verdict,
};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::external::{Added, ExternalParameters, Scheme, guarded};
use crate::packet::{Packet, PacketId, PacketSlab};
use crate::parameters::Parameters;
use crate::units::{Rate, Time};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

type Read = fn(&mut Parameters, QueueDefaults) -> ExternalQueue;

pub(crate) static ADDED: Added<Read> = Added::none("queue");

pub(crate) type ReadQueue = Scheme<Read>;

/// A discipline of another crate by its parameters.
pub(crate) fn external<P>() -> ReadQueue
where
    P: QueueParameters<State: Send + 'static> + fmt::Debug + Send + Sync + 'static,
{
    Scheme {
        doc: P::DOC,
        read: |p, defaults| ExternalParameters { doc: P::DOC, own: Arc::new(P::read(p, defaults)) },
    }
}

/// The parameters of a discipline of another crate.
pub type ExternalQueue = ExternalParameters<dyn AnyParameters>;

impl ExternalQueue {
    pub(super) fn named(kind: &str, p: &mut Parameters, defaults: QueueDefaults) -> Option<ExternalQueue> {
        ADDED.read(kind, p, |read, p| read(p, defaults))
    }
    pub(super) fn kinds(own: &[(&'static str, &'static str)]) -> &'static [(&'static str, &'static str)] {
        ADDED.kinds(own)
    }
    pub(super) fn doc(&self) -> SchemeDoc {
        self.doc
    }
    pub(super) fn facts(&self) -> QueueFacts {
        guarded("queue", self.doc.name, || self.own.facts())
    }
    pub(super) fn warning(&self, rate: Rate, port: &dyn Fn() -> String) -> Option<String> {
        guarded("queue", self.doc.name, || self.own.warning(rate, port))
    }
    pub(super) fn start(&self, place: &PortPlace) -> External {
        let name = self.doc.name;
        guarded("queue", name, || {
            let queue = self.own.start(place);
            let ledger = Ledger { owns_buffer: queue.owns_buffer(), ..Ledger::default() };
            External { name, queue, ledger: Box::new(ledger) }
        })
    }
}

/// [`QueueParameters`] behind a pointer.
pub trait AnyParameters: fmt::Debug + Send + Sync {
    fn facts(&self) -> QueueFacts;
    fn warning(&self, rate: Rate, port: &dyn Fn() -> String) -> Option<String>;
    fn start(&self, place: &PortPlace) -> Box<dyn QueueDiscipline + Send>;
}

impl<P: QueueParameters<State: Send + 'static> + fmt::Debug + Send + Sync> AnyParameters for P {
    fn facts(&self) -> QueueFacts {
        QueueParameters::facts(self)
    }
    fn warning(&self, rate: Rate, port: &dyn Fn() -> String) -> Option<String> {
        QueueParameters::warning(self, rate, port)
    }
    fn start(&self, place: &PortPlace) -> Box<dyn QueueDiscipline + Send> {
        Box::new(QueueParameters::start(self, place))
    }
}

/// The queue of a port, with a ledger of what the discipline holds.
pub struct External {
    name: &'static str,
    queue: Box<dyn QueueDiscipline + Send>,
    ledger: Box<Ledger>,
}

impl External {
    fn guarded<R>(&mut self, call: impl FnOnce(&mut dyn QueueDiscipline, &mut Ledger) -> R) -> R {
        guarded("queue", self.name, || call(&mut *self.queue, &mut self.ledger))
    }
    fn look<R>(&self, call: impl FnOnce(&dyn QueueDiscipline) -> R) -> R {
        guarded("queue", self.name, || call(&*self.queue))
    }
}

/// The packets of the switch's buffer that a discipline took and has not returned. It panics if the discipline
/// violates what a switch relies on. Packets in a buffer of the port's own are counted by that buffer.
#[derive(Default)]
struct Ledger {
    owns_buffer: bool,
    /// Class and size of each.
    packets: HashMap<PacketId, (u8, u16)>,
    class_bytes: [u64; CLASSES],
}

impl Ledger {
    fn take(&mut self, id: PacketId, packets: &PacketSlab) {
        let Packet { class, size, .. } = packets[id];
        self.packets.insert(id, (class, size));
        self.class_bytes[usize::from(class) % CLASSES] += u64::from(size);
    }

    fn give(&mut self, id: PacketId, packets: &PacketSlab) {
        let Some((class, size)) = self.packets.remove(&id) else {
            panic!("it returned packet {id}, which it does not hold");
        };
        let now = packets[id].size;
        assert!(now == size, "it changed the size of a packet from {size} to {now} bytes");
        self.class_bytes[usize::from(class) % CLASSES] -= u64::from(size);
    }
}

impl QueueDiscipline for External {
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict {
        self.guarded(|queue, ledger| {
            if ledger.owns_buffer {
                return queue.enqueue(id, packets, now);
            }
            ledger.take(id, packets);
            let verdict = queue.enqueue(id, packets, now);
            if let Verdict::Dropped(dropped) = verdict {
                ledger.give(dropped, packets);
                assert!(packets[dropped].class != 0, "it dropped a pause frame (class 0)");
            }
            verdict
        })
    }
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, now: Time) -> Option<PacketId> {
        self.guarded(|queue, ledger| {
            let id = queue.dequeue(paused, packets, now)?;
            if !ledger.owns_buffer {
                ledger.give(id, packets);
                let class = packets[id].class;
                assert!(
                    class == 0 || paused >> class & 1 == 0,
                    "it returned a packet of the paused class {class}"
                );
            }
            Some(id)
        })
    }
    fn evict(&mut self, packets: &mut PacketSlab) -> Option<PacketId> {
        self.guarded(|queue, ledger| {
            let evicted = queue.evict(packets);
            match evicted {
                Some(id) if !ledger.owns_buffer => ledger.give(id, packets),
                Some(_) => {}
                None => {
                    let left =
                        if ledger.owns_buffer { queue.bytes() } else { ledger.class_bytes.iter().sum() };
                    assert!(left == 0, "it lost packets of {left} bytes");
                }
            }
            evicted
        })
    }
    fn lets_through(&mut self, class: u8, paused: u8) -> bool {
        self.guarded(|queue, _| queue.lets_through(class, paused))
    }
    fn bytes(&self) -> u64 {
        if self.ledger.owns_buffer {
            self.look(|queue| queue.bytes())
        } else {
            self.ledger.class_bytes.iter().sum()
        }
    }
    fn class_bytes(&self, class: u8) -> u64 {
        if self.ledger.owns_buffer {
            return self.look(|queue| queue.class_bytes(class));
        }
        self.ledger.class_bytes[usize::from(class) % CLASSES]
    }
    fn is_empty(&self) -> bool {
        if self.ledger.owns_buffer {
            self.look(|queue| queue.is_empty())
        } else {
            self.ledger.packets.is_empty()
        }
    }
    fn owns_buffer(&self) -> bool {
        self.ledger.owns_buffer
    }
    fn account(&mut self) -> Option<&mut QueueCounters> {
        guarded("queue", self.name, || self.queue.account())
    }
    fn ask(&mut self, packets: &mut PacketSlab, now: Time) {
        self.guarded(|queue, _| queue.ask(packets, now));
    }
    fn set_rate(&mut self, rate: Rate) {
        self.guarded(|queue, _| queue.set_rate(rate));
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        self.guarded(|queue, _| queue.count(now, counters));
    }
}
