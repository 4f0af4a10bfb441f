//! A queue discipline of another crate, written like those of this room: over the switch's buffer with [`QueueParameters`], over one
//! of the port's own with [`DisciplineParameters`](super::DisciplineParameters).
//!
//! Each decision costs a call through a pointer, and its state lies in memory of its own. What it holds is counted here, so
//! that a discipline that loses or invents packets ends the run with an error that names it, as a panic in it does.

use super::{
    CLASSES, PortFacts, PortPlace, QueueCounters, QueueDefaults, QueueDiscipline, QueueFacts,
    QueueParameters, Verdict,
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
    pub(super) fn warning(&self, port: &PortFacts) -> Option<String> {
        guarded("queue", self.doc.name, || self.own.warning(port))
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
    fn warning(&self, port: &PortFacts) -> Option<String>;
    fn start(&self, place: &PortPlace) -> Box<dyn QueueDiscipline + Send>;
}

impl<P: QueueParameters<State: Send + 'static> + fmt::Debug + Send + Sync> AnyParameters for P {
    fn facts(&self) -> QueueFacts {
        QueueParameters::facts(self)
    }
    fn warning(&self, port: &PortFacts) -> Option<String> {
        QueueParameters::warning(self, port)
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
}

/// The packets that a discipline took and has not returned or dropped. It panics if the discipline violates what a switch
/// relies on.
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
        let held = self.packets.remove(&id);
        let (class, size) = held.unwrap_or_else(|| panic!("it returned packet {id}, which it does not hold"));
        let now = &packets[id];
        let as_before = now.size == size || now.is_trimmed() && now.size < size;
        assert!(as_before, "it changed the size of a packet from {size} to {} bytes", now.size);
        self.class_bytes[usize::from(class) % CLASSES] -= u64::from(size);
    }

    /// Bytes that must not wait any longer when the port is free. Where any class is paused, a buffer of the port's own may
    /// hold all but pauses back.
    fn may_leave(&self, paused: u8) -> u64 {
        let held = match paused & !1 {
            0 => 0,
            _ if self.owns_buffer => !1,
            held => held,
        };
        (0..CLASSES).filter(|class| held >> class & 1 == 0).map(|class| self.class_bytes[class]).sum()
    }

    /// Packets that it dropped from a buffer of the port's own, or turned round.
    fn give_others(&mut self, queue: &mut dyn QueueDiscipline, packets: &PacketSlab) {
        let Some(account) = queue.account() else { return };
        account.dropped(packets).chain(account.returned(packets)).for_each(|id| self.give(id, packets));
    }
}

impl QueueDiscipline for External {
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict {
        self.guarded(|queue, ledger| {
            ledger.take(id, packets);
            let verdict = queue.enqueue(id, packets, now);
            let mut all = verdict;
            while let Some(dropped) = all.next_dropped(packets) {
                ledger.give(dropped, packets);
                assert!(packets[dropped].class != 0, "it dropped a pause frame (class 0)");
            }
            ledger.give_others(queue, packets);
            verdict
        })
    }
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, now: Time) -> Option<PacketId> {
        self.guarded(|queue, ledger| {
            let next = queue.dequeue(paused, packets, now);
            next.into_iter().for_each(|id| ledger.give(id, packets));
            ledger.give_others(queue, packets);
            if next.is_none() {
                let waiting = ledger.may_leave(paused);
                assert!(
                    waiting == 0,
                    "dequeue returned none although {waiting} bytes wait that no pause holds back"
                );
            }
            let class = next.map_or(0, |id| packets[id].class);
            assert!(paused & !1 & 1 << class == 0, "it returned a packet of class {class}, which is paused");
            next
        })
    }
    fn exchange(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict {
        self.guarded(|queue, ledger| {
            ledger.take(id, packets);
            let (verdict, mut bytes) = (queue.exchange(id, packets, now), 0);
            let mut all = verdict;
            while let Some(dropped) = all.next_dropped(packets) {
                ledger.give(dropped, packets);
                assert!(!packets[dropped].is_uncharged(), "it dropped a pause frame (class 0)");
                bytes += u64::from(packets[dropped].size);
            }
            let size = u64::from(packets[id].size);
            assert!(bytes >= size, "it took a packet for which the buffer has no room");
            verdict
        })
    }
    fn evict(&mut self, packets: &mut PacketSlab) -> Option<PacketId> {
        self.guarded(|queue, ledger| {
            let next = queue.evict(packets);
            next.into_iter().for_each(|id| ledger.give(id, packets));
            let lost = ledger.packets.len();
            assert!(next.is_some() || lost == 0, "it lost {lost} packets");
            next
        })
    }
    fn lets_through(&mut self, packet: &Packet, paused: u8) -> bool {
        self.guarded(|queue, _| queue.lets_through(packet, paused))
    }
    fn bytes(&self) -> u64 {
        self.ledger.class_bytes.iter().sum()
    }
    fn class_bytes(&self, class: u8) -> u64 {
        self.ledger.class_bytes[usize::from(class) % CLASSES]
    }
    fn is_empty(&self) -> bool {
        self.ledger.packets.is_empty()
    }
    fn owns_buffer(&self) -> bool {
        self.ledger.owns_buffer
    }
    fn account(&mut self) -> Option<&mut QueueCounters> {
        guarded("queue", self.name, || self.queue.account())
    }
    fn ask(&mut self, packets: &mut PacketSlab, now: Time) {
        self.guarded(|queue, ledger| {
            queue.ask(packets, now);
            ledger.give_others(queue, packets);
        });
    }
    fn rest(&mut self) {
        self.guarded(|queue, _| queue.rest());
    }
    fn set_rate(&mut self, rate: Rate) {
        self.guarded(|queue, _| queue.set_rate(rate));
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        self.guarded(|queue, _| queue.count(now, counters));
    }
}
