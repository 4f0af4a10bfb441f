//! A load balancer of another crate, written like those of this room.
//!
//! Each decision and each event that it asks for costs a call through a pointer. A panic ends the run with an error that names
//! the balancer, as does a decision that no switch can carry out: a candidate or a port that does not exist, a timer that does
//! not advance, a packet of impossible size or with another destination.

use super::{
    Arrival, BalancerFacts, BalancerParameters, Departure, Events, Forward, Held, HostPort, LoadBalancer,
    Neighbour, NetworkView, Place, Ports, Reorders, SwitchContext, Tag, Wiring,
};
use crate::counters::CounterSet;
use crate::external::{Added, ExternalParameters, Scheme, guarded};
use crate::packet::{Packet, flag};
use crate::parameters::Parameters;
use crate::topology::{NextHops, Routes};
use crate::units::{Rate, Time};
use std::fmt;
use std::sync::Arc;

pub(crate) static ADDED: Added<fn(&mut Parameters) -> ExternalBalancer> = Added::none("balancer");

pub(crate) type ReadBalancer = Scheme<fn(&mut Parameters) -> ExternalBalancer>;

/// A balancer of another crate by its parameters.
pub(crate) fn external<P>() -> ReadBalancer
where
    P: BalancerParameters<State: LoadBalancer + Send + 'static> + fmt::Debug + Send + Sync + 'static,
{
    Scheme { doc: P::DOC, read: |p| ExternalParameters { doc: P::DOC, own: Arc::new(P::read(p)) } }
}

/// The parameters of a balancer of another crate.
pub type ExternalBalancer = ExternalParameters<dyn AnyParameters>;

/// [`BalancerParameters`] behind a pointer.
pub trait AnyParameters: fmt::Debug + Send + Sync {
    fn start(&self, at: &Place) -> Box<dyn AnyBalancer>;
    fn order(&self) -> Reorders;
    fn facts(&self) -> BalancerFacts;
    fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)>;
    fn warning(&self, network: &NetworkView) -> Option<String>;
    fn at_host(&self, seed: u64, host: u32) -> Option<Box<dyn AnyBalancer>>;
    fn tag(&self, word: u64, between_switches: bool) -> Option<Tag>;
    fn probe_tag(&self, probe: &Packet) -> Option<Tag>;
}

impl<P> AnyParameters for P
where
    P: BalancerParameters<State: LoadBalancer + Send + 'static> + fmt::Debug + Send + Sync,
{
    fn start(&self, at: &Place) -> Box<dyn AnyBalancer> {
        Box::new(BalancerParameters::start(self, at))
    }
    fn order(&self) -> Reorders {
        BalancerParameters::order(self)
    }
    fn facts(&self) -> BalancerFacts {
        BalancerParameters::facts(self)
    }
    fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)> {
        BalancerParameters::problems(self, network)
    }
    fn warning(&self, network: &NetworkView) -> Option<String> {
        BalancerParameters::warning(self, network)
    }
    fn at_host(&self, seed: u64, host: u32) -> Option<Box<dyn AnyBalancer>> {
        Some(Box::new(BalancerParameters::at_host(self, seed, host)?))
    }
    fn tag(&self, word: u64, between_switches: bool) -> Option<Tag> {
        BalancerParameters::tag(self, word, between_switches)
    }
    fn probe_tag(&self, probe: &Packet) -> Option<Tag> {
        BalancerParameters::probe_tag(self, probe)
    }
}

/// What [`BalancerConfig`](super::BalancerConfig) asks of each of its variants.
impl ExternalBalancer {
    pub fn kinds(own: &'static [(&'static str, &'static str)]) -> &'static [(&'static str, &'static str)] {
        ADDED.kinds(own)
    }
    pub fn named(kind: &str, p: &mut Parameters) -> Option<ExternalBalancer> {
        ADDED.read(kind, p, |read, p| read(p))
    }
    pub fn name(&self) -> &'static str {
        self.doc.name
    }
    pub fn start(&self, at: &Place) -> External {
        self.guarded(|| External { name: self.name(), law: self.own.start(at) })
    }
    pub fn order(&self) -> Reorders {
        self.guarded(|| self.own.order())
    }
    pub fn facts(&self) -> BalancerFacts {
        self.guarded(|| self.own.facts())
    }
    pub fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)> {
        self.guarded(|| self.own.problems(network))
    }
    pub fn warning(&self, network: &NetworkView) -> Option<String> {
        self.guarded(|| self.own.warning(network))
    }
    pub fn at_host(&self, seed: u64, host: u32) -> Option<External> {
        let law = self.guarded(|| self.own.at_host(seed, host))?;
        Some(External { name: self.name(), law })
    }
    pub fn tag(&self, word: u64, between_switches: bool) -> Option<Tag> {
        self.guarded(|| self.own.tag(word, between_switches))
    }
    pub fn probe_tag(&self, probe: &Packet) -> Option<Tag> {
        self.guarded(|| self.own.probe_tag(probe))
    }

    fn guarded<R>(&self, call: impl FnOnce() -> R) -> R {
        guarded("balancer", self.name(), call)
    }
}

/// [`LoadBalancer`] behind a pointer.
pub trait AnyBalancer: Send {
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &dyn Ports) -> usize;
    fn events(&self) -> Events;
    fn on_arrival(&mut self, arrival: &Arrival, word: &mut u64) -> i32;
    fn on_forward(&mut self, forward: &Forward, word: &mut u64) -> i32;
    fn holds(
        &mut self,
        forward: &Forward,
        packet: Held,
        word: u64,
        cx: &mut dyn SwitchContext,
    ) -> Option<Held>;
    fn on_departure(&mut self, departure: &Departure, word: &mut u64);
    fn on_probe(&mut self, probe: &Packet, port: u32, cx: &mut dyn SwitchContext);
    fn first_timer(&self) -> Option<Time>;
    fn on_timer(&mut self, cx: &mut dyn SwitchContext) -> Option<Time>;
    fn on_send(&mut self, packet: &mut Packet, at: &HostPort<&dyn Wiring>) -> u64;
    fn on_receive(&mut self, packet: &mut Packet, word: u64, at: &HostPort<&dyn Wiring>);
    fn count(&mut self, now: Time, counters: &mut CounterSet);
}

impl<B: LoadBalancer + Send> AnyBalancer for B {
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &dyn Ports) -> usize {
        LoadBalancer::choose(self, packet, candidates, &ports)
    }
    fn events(&self) -> Events {
        LoadBalancer::events(self)
    }
    fn on_arrival(&mut self, arrival: &Arrival, word: &mut u64) -> i32 {
        LoadBalancer::on_arrival(self, arrival, word)
    }
    fn on_forward(&mut self, forward: &Forward, word: &mut u64) -> i32 {
        LoadBalancer::on_forward(self, forward, word)
    }
    fn holds(
        &mut self,
        forward: &Forward,
        packet: Held,
        word: u64,
        mut cx: &mut dyn SwitchContext,
    ) -> Option<Held> {
        LoadBalancer::holds(self, forward, packet, word, &mut cx)
    }
    fn on_departure(&mut self, departure: &Departure, word: &mut u64) {
        LoadBalancer::on_departure(self, departure, word);
    }
    fn on_probe(&mut self, probe: &Packet, port: u32, mut cx: &mut dyn SwitchContext) {
        LoadBalancer::on_probe(self, probe, port, &mut cx);
    }
    fn first_timer(&self) -> Option<Time> {
        LoadBalancer::first_timer(self)
    }
    fn on_timer(&mut self, mut cx: &mut dyn SwitchContext) -> Option<Time> {
        LoadBalancer::on_timer(self, &mut cx)
    }
    fn on_send(&mut self, packet: &mut Packet, at: &HostPort<&dyn Wiring>) -> u64 {
        LoadBalancer::on_send(self, packet, at)
    }
    fn on_receive(&mut self, packet: &mut Packet, word: u64, at: &HostPort<&dyn Wiring>) {
        LoadBalancer::on_receive(self, packet, word, at);
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        LoadBalancer::count(self, now, counters);
    }
}

/// The balancer of another crate at a switch, or its part at a host.
pub struct External {
    name: &'static str,
    law: Box<dyn AnyBalancer>,
}

impl External {
    fn guarded<R>(&mut self, call: impl FnOnce(&mut dyn AnyBalancer) -> R) -> R {
        guarded("balancer", self.name, || {
            Held::forget_dropped();
            let result = call(&mut *self.law);
            let lost = Held::dropped();
            assert!(lost == 0, "it dropped {lost} packets that it held: pass each to release");
            result
        })
    }
}

impl LoadBalancer for External {
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        self.guarded(|law| {
            let (chosen, n) = (law.choose(packet, candidates, ports), candidates.len());
            assert!(chosen < n, "it chose index {chosen} of {n} candidates");
            chosen
        })
    }
    fn events(&self) -> Events {
        guarded("balancer", self.name, || self.law.events())
    }
    fn on_arrival(&mut self, arrival: &Arrival, word: &mut u64) -> i32 {
        self.guarded(|law| possible(law.on_arrival(arrival, word), arrival.packet))
    }
    fn on_forward(&mut self, forward: &Forward, word: &mut u64) -> i32 {
        self.guarded(|law| possible(law.on_forward(forward, word), forward.packet))
    }
    fn holds(
        &mut self,
        forward: &Forward,
        packet: Held,
        word: u64,
        cx: &mut impl SwitchContext,
    ) -> Option<Held> {
        self.guarded(|own| own.holds(forward, packet, word, cx))
    }
    fn on_departure(&mut self, departure: &Departure, word: &mut u64) {
        self.guarded(|law| law.on_departure(departure, word));
    }
    fn on_probe(&mut self, probe: &Packet, port: u32, cx: &mut impl SwitchContext) {
        self.guarded(|law| law.on_probe(probe, port, cx));
    }
    fn first_timer(&self) -> Option<Time> {
        guarded("balancer", self.name, || self.law.first_timer())
    }
    fn on_timer(&mut self, cx: &mut impl SwitchContext) -> Option<Time> {
        self.guarded(|law| {
            let next = law.on_timer(cx)?;
            assert!(
                next > cx.now(),
                "its timer at {} must fire next at a later time, not at {next}",
                cx.now()
            );
            Some(next)
        })
    }
    fn on_send(&mut self, packet: &mut Packet, at: &HostPort<impl Wiring>) -> u64 {
        let wiring: &dyn Wiring = at.wiring;
        let at = HostPort { node: at.node, port: at.port, wiring: &wiring, now: at.now };
        self.guarded(|law| {
            let before = *packet;
            let word = law.on_send(packet, &at);
            check_changes(&before, packet);
            word
        })
    }
    fn on_receive(&mut self, packet: &mut Packet, word: u64, at: &HostPort<impl Wiring>) {
        let wiring: &dyn Wiring = at.wiring;
        let at = HostPort { node: at.node, port: at.port, wiring: &wiring, now: at.now };
        self.guarded(|law| {
            let before = *packet;
            law.on_receive(packet, word, &at);
            check_changes(&before, packet);
        });
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        self.guarded(|law| law.count(now, counters));
    }
}

/// Returns by how many bytes a packet grows. Panics if it then has no possible size.
fn possible(more: i32, packet: &Packet) -> i32 {
    let size = i64::from(packet.size) + i64::from(more);
    let range = i64::from(packet.payload.max(1))..=i64::from(u16::MAX);
    assert!(range.contains(&size), "it made a packet of {} bytes one of {size}", packet.size);
    more
}

/// Panics unless a host's part changed only what it may: the path, the size, and marks.
fn check_changes(before: &Packet, packet: &Packet) {
    possible(i32::from(packet.size) - i32::from(before.size), before);
    let rest = |p: &Packet| {
        let ends = (p.src, p.dst, p.flow, p.sender, p.seq, p.sent, p.payload, p.group, p.aux);
        (ends, p.kind, p.class, p.wire_class, p.transport, p.profile, p.carries, p.next)
    };
    let same = rest(before) == rest(packet) && (before.flags ^ packet.flags) & !flag::MARKED == 0;
    assert!(same, "it may change only hash, size and marks of a packet");
}

/// Implements [`Ports`] for a reference.
macro_rules! ports_by_reference {
    ($of:ty, $bound:ident) => {
        impl<T: $bound + ?Sized> Ports for $of {
            fn now(&self) -> Time {
                (**self).now()
            }
            fn backlog(&self, port: u32) -> u64 {
                (**self).backlog(port)
            }
            fn rate(&self, port: u32) -> Rate {
                (**self).rate(port)
            }
            fn word(&self) -> u64 {
                (**self).word()
            }
            fn first_byte(&self, packet: &Packet) -> u64 {
                (**self).first_byte(packet)
            }
            fn hops(&self, node: u32, host: u32) -> NextHops<'_> {
                (**self).hops(node, host)
            }
        }
    };
}
ports_by_reference!(&T, Ports);
ports_by_reference!(&mut T, SwitchContext);

impl<T: SwitchContext + ?Sized> SwitchContext for &mut T {
    fn is_up(&self, port: u32) -> bool {
        (**self).is_up(port)
    }
    fn leads_to(&self, port: u32, host: u32) -> bool {
        (**self).leads_to(port, host)
    }
    fn leads_here(&self, neighbour: &Neighbour, host: u32) -> bool {
        (**self).leads_here(neighbour, host)
    }
    fn send(&mut self, port: u32, probe: Packet) {
        (**self).send(port, probe);
    }
    fn release(&mut self, packet: Held) {
        (**self).release(packet);
    }
    fn wake(&mut self, at: Time) {
        (**self).wake(at);
    }
}

impl<T: Wiring + ?Sized> Wiring for &T {
    fn routes(&self) -> &Routes {
        (**self).routes()
    }
    fn version(&self) -> u32 {
        (**self).version()
    }
    fn peer(&self, node: u32, port: u32) -> u32 {
        (**self).peer(node, port)
    }
}
