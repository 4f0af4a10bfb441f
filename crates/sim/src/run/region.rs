//! A region: one partition of the network with the nodes in it. It works off its events up to the end of a
//! window, and touches nothing of another region.

use super::graphs::Graphs;
use super::starts::Starts;
use super::traced::Observer;
use crate::engine::prefetch::prefetch_lines;
use crate::external::{SchemePanic, caught};
use crate::net::NodeIndex;
use crate::net::agenda::{Action, Agenda, Event, Slot};
use crate::net::host::Host;
use crate::net::map::Map;
use crate::net::outbox::Outbox;
use crate::net::partition::Partition;
use crate::net::switch::Switch;
use crate::topology::Routes;
use crate::transport::Settings;
use crate::transport::{Ended, HostContext};
use crate::units::{Rate, Time};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Events of a region between two looks at the wall clock, and in one turn.
const STRIDE: u32 = 16_384;
/// How long regions work on a window between two looks at what the whole run does.
const ROUND: Duration = Duration::from_millis(10);

pub struct Region {
    pub net: Partition,
    pub switches: Vec<Switch>,
    pub hosts: Vec<Host>,
    pub map: Arc<Map>,
    pub settings: Arc<Settings>,
    pub starts: Starts,
    pub(crate) graphs: Graphs,
    pub(crate) ended: Vec<Ended>,
    /// What the other regions sent here in the last window, by region.
    pub inboxes: Vec<Outbox>,
    /// The end of the window that it works in, and whether it has got there.
    pub limit: Time,
    pub arrived: bool,
    /// The panic of a scheme of another crate: the region cannot continue.
    pub broken: Option<SchemePanic>,
    /// What looks at hosts after each of their events, in a run that is traced.
    pub observer: Option<Box<Observer>>,
}

/// A turn of a region, which ends even if its work panics: others may wait for its end.
struct Turn<'r>(&'r mut Region);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.net.end_turn();
    }
}

impl Region {
    /// Works as [`Region::work`] does, until a scheme of another crate panics.
    pub fn work_guarded(&mut self, max: u32) {
        self.broken = self.in_turn(|region| caught(|| region.work(max))).err();
    }

    /// Works until the end of the window, or for about [`ROUND`] of the wall clock. Regions share rounds by time,
    /// not by events, since some take longer for an event than others.
    pub fn work_round(&mut self) {
        self.arrived = false;
        let mut began = None;
        loop {
            self.work_guarded(STRIDE);
            if self.arrived || self.broken.is_some() {
                return;
            }
            if began.get_or_insert_with(Instant::now).elapsed() >= ROUND {
                return;
            }
        }
    }

    /// Does something with packets: within a turn of this region, since only then it may touch them.
    pub fn in_turn<R>(&mut self, what: impl FnOnce(&mut Region) -> R) -> R {
        self.net.begin_turn();
        what(Turn(self).0)
    }

    /// Handles the events before the limit; returns after `max` of them, to continue when called again.
    fn work(&mut self, max: u32) {
        self.take_mail();
        let before = self.net.events_handled();
        while self.net.events_handled() - before < u64::from(max) {
            let over = match &self.net.agenda {
                Agenda::Windows(_) => !self.net.open_window(self.limit),
                _ => self.net.agenda.nothing_before().is_none_or(|time| time >= self.limit),
            };
            if over {
                self.arrived = true;
                return;
            }
            match self.net.agenda {
                Agenda::Windows(_) => self.work_window(),
                Agenda::Calendar(ref calendar) if calendar.is_by_node() => self.work_by_node(max),
                _ => self.work_in_order(max),
            }
        }
        self.arrived = false;
    }

    /// One event after the other, through all nodes.
    #[inline(never)]
    fn work_in_order(&mut self, max: u32) {
        for _ in 0..max {
            let Some(event) = self.net.next_event(self.limit) else { return };
            match (event.arrival(), event.departure()) {
                (Some((port, packet)), _) => self.arrival(port, packet),
                (_, Some(port)) => self.departure(port),
                _ => self.handle(event.action()),
            }
        }
    }

    /// One node after the other, each with its events of the window.
    fn work_window(&mut self) {
        let mut next = self.net.next_node(0);
        let mut second = next.and_then(|node| self.net.next_node(node + 1));
        while let Some(node) = next {
            let works = self.net.begins(node);
            let third = second.and_then(|node| self.net.next_node(node + 1));
            if self.net.fetches_far {
                self.prefetch(second, third);
            }
            (next, second) = (second, third);
            match node.checked_sub(self.net.hosts) {
                _ if !works => {}
                None => self.work_host(node),
                Some(switch) => self.work_switch(switch),
            }
        }
    }

    /// Prefetches what the next node will access in any case and, for the second next one, what leads to
    /// that.
    #[inline(always)]
    fn prefetch(&self, next: Option<u32>, second: Option<u32>) {
        if let Some(node) = next {
            self.net.prefetch_packets(node);
            match node.checked_sub(self.net.hosts) {
                None => self.hosts[node as usize].prefetch(&self.net.ports),
                Some(switch) => prefetch_lines(&self.switches[switch as usize], 4),
            }
        }
        if let (Some(node), Agenda::Windows(windows)) = (second, &self.net.agenda) {
            windows.prefetch_inbox(node);
            if let Some(host) = self.hosts.get(node as usize) {
                prefetch_lines(host, 2);
            }
        }
    }

    /// The same where nodes have few events in one. On its own, or the loops share their registers.
    #[inline(never)]
    fn work_by_node(&mut self, max: u32) {
        let enough = self.net.events_handled() + u64::from(max);
        while self.net.events_handled() < enough
            && let Some(slot) = self.net.take_slot(self.limit)
        {
            self.work_slot(&slot);
            self.net.give_back_slot(slot);
        }
    }

    #[inline(always)]
    fn work_slot(&mut self, slot: &Slot) {
        let mut due = slot.due();
        while let Some((node, event, node_ahead)) = self.net.next_of_slot(&mut due) {
            if let Some(host) = self.hosts.get(node_ahead as usize) {
                host.prefetch(&self.net.ports);
            }
            let Region { net, switches, map, .. } = self;
            match node.checked_sub(net.hosts) {
                None => self.event_of_host(node, event),
                Some(switch) => event_of_switch(&mut switches[switch as usize], net, &map.routes, event),
            }
        }
    }

    /// The events of a host in this window.
    fn work_host(&mut self, host: u32) {
        let in_order = self.net.in_order();
        let mut due = in_order.due();
        while let Some(event) = self.net.next_of_node(&mut due) {
            self.event_of_host(host, event);
        }
        self.net.give_back(in_order);
    }

    /// The events of a switch in this window.
    fn work_switch(&mut self, switch: u32) {
        let Region { net, switches, map, .. } = self;
        let (switch, routes) = (&mut switches[switch as usize], &map.routes);
        let in_order = net.in_order();
        let mut due = in_order.due();
        while let Some(event) = net.next_of_node(&mut due) {
            event_of_switch(switch, net, routes, event);
        }
        net.give_back(in_order);
    }

    #[inline(always)]
    fn event_of_host(&mut self, host: u32, event: Event) {
        if let Some((port, packet)) = event.arrival() {
            return self.host_receives(host, port, packet);
        }
        if let Some(port) = event.departure() {
            self.net.ports[port as usize].departure_pending = false;
            let (host, mut cx) = self.host(host);
            host.kick(port, &mut cx);
        } else if let Some((port, serial, transport)) = event.wake() {
            let (host, mut cx) = self.host(host);
            host.wake(transport, port, serial, &mut cx);
        } else if let Some((transport, token)) = event.timer() {
            let (host, mut cx) = self.host(host);
            host.timer(transport, token, &mut cx);
        } else {
            return self.handle(event.action());
        }
        if !self.ended.is_empty() {
            self.release_dependents();
        }
    }

    /// Takes in what the other regions sent.
    pub fn take_mail(&mut self) {
        for inbox in self.inboxes.iter_mut().filter(|inbox| !inbox.is_empty()) {
            self.net.take_in(inbox);
        }
    }

    /// A time before which nothing happens here; none if nothing is to happen.
    pub fn nothing_before(&self) -> Option<Time> {
        let arrivals = self.inboxes.iter().filter_map(Outbox::first_arrival);
        arrivals.chain(self.net.agenda.nothing_before()).min()
    }

    #[inline]
    fn handle(&mut self, action: Action) {
        match action {
            Action::Arrival { port, packet } => self.arrival(port, packet),
            Action::Departure { port } => self.departure(port),
            Action::Wake { port, serial, transport } => match self.net.owner(port) {
                NodeIndex::Host(host) => {
                    let (host, mut cx) = self.host(host);
                    host.wake(transport, port, serial, &mut cx);
                }
                NodeIndex::Switch(switch) => self.switches[switch as usize].refill(&mut self.net, port),
            },
            Action::Timer { host, token, transport } => {
                let (host, mut cx) = self.host(host);
                host.timer(transport, token, &mut cx);
            }
            Action::SwitchTimer { switch, .. } => {
                self.switches[switch as usize].timer(&mut self.net, &self.map.routes);
            }
            Action::Forward { port, packet } => {
                if let NodeIndex::Switch(switch) = self.net.owner(port) {
                    self.switches[switch as usize].go_on(&mut self.net, packet);
                }
            }
            Action::StartFlow { arrival, stage, .. } => self.start_flow(arrival, stage),
        }
        if !self.ended.is_empty() {
            self.release_dependents();
        }
    }

    #[inline]
    fn arrival(&mut self, port: u32, packet: u32) {
        match self.net.owner(port) {
            NodeIndex::Switch(switch) => {
                self.switches[switch as usize].receive(&mut self.net, &self.map.routes, port, packet);
            }
            NodeIndex::Host(host) => self.host_receives(host, port, packet),
        }
    }

    #[inline]
    fn host_receives(&mut self, host: u32, port: u32, packet: u32) {
        let (host, mut cx) = self.host(host);
        host.receive(port, packet, &mut cx);
        if !self.ended.is_empty() {
            self.release_dependents();
        }
    }

    /// A transmitter becomes free.
    #[inline]
    fn departure(&mut self, port: u32) {
        self.net.ports[port as usize].departure_pending = false;
        self.kick(port);
    }

    /// A port may have something to send.
    #[inline]
    pub fn kick(&mut self, port: u32) {
        match self.net.owner(port) {
            NodeIndex::Switch(switch) => self.switches[switch as usize].kick(&mut self.net, port),
            NodeIndex::Host(host) => {
                let (host, mut cx) = self.host(host);
                host.kick(port, &mut cx);
            }
        }
    }

    /// Routes have changed, or a link of this host is down or up again.
    pub fn tell_host(&mut self, host: u32) {
        let (host, mut cx) = self.host(host);
        host.on_network_change(&mut cx);
        self.observe();
    }

    /// A host, and everything that it works with.
    #[inline(always)]
    pub fn host(&mut self, host: u32) -> (&mut Host, HostContext<'_>) {
        let host = &mut self.hosts[host as usize];
        let cx = HostContext {
            net: &mut self.net,
            settings: &self.settings,
            map: &self.map,
            ended: &mut self.ended,
            host: host.id,
            index: host.index,
            node: host.node,
            first_port: host.first_port,
            rows: host.rows,
            transport: 0,
        };
        (host, cx)
    }

    /// The rate of a port's link changes; `lasting` is the highest that the link has from now on.
    pub fn set_rate(&mut self, port: u32, rate: Rate, lasting: Rate) {
        self.net.bindings.expect(port, lasting);
        let owner = self.net.owner(port);
        let changed = &mut self.net.ports[port as usize];
        changed.set_rate(rate);
        if let NodeIndex::Switch(switch) = owner {
            self.switches[switch as usize].set_rate(changed.local, rate);
        }
    }

    /// The link of a port went down: what waits for it is lost.
    pub fn flush(&mut self, port: u32) {
        match self.net.owner(port) {
            NodeIndex::Switch(s) => self.switches[s as usize].flush_port(&mut self.net, port),
            NodeIndex::Host(h) => self.hosts[h as usize].flush_port(&mut self.net, port),
        }
    }

    /// Records these messages of a graph, as far as hosts here should have sent them and never started.
    pub fn record_unstarted(&mut self, graph: usize, numbers: Range<u32>) {
        let starts = &self.starts;
        let here = |host| starts.host_is_here(host);
        self.graphs.record_unstarted(graph, numbers, &here, &mut self.net.recorder);
    }

    /// The run ends at `now`: the flows that have not ended are recorded, without messages of graphs that never started.
    pub fn finish(&mut self, now: Time) {
        self.net.now = now;
        for host in 0..self.hosts.len() as u32 {
            let (host, mut cx) = self.host(host);
            host.finish(&mut cx);
        }
        self.starts.record_unstarted(&mut self.net.recorder);
        self.graphs.finish(now);
        for (totals, port) in self.net.totals.iter_mut().zip(&self.net.ports) {
            if port.paused != 0 {
                totals.paused += now.saturating_sub(totals.paused_since);
            }
        }
    }
}

#[inline(always)]
fn event_of_switch(switch: &mut Switch, net: &mut Partition, routes: &Routes, event: Event) {
    match (event.arrival(), event.departure()) {
        (Some((port, packet)), _) => return switch.receive(net, routes, port, packet),
        (_, Some(port)) => return switch.departure(net, port),
        _ => {}
    }
    match event.action() {
        Action::SwitchTimer { .. } => switch.timer(net, routes),
        Action::Forward { packet, .. } => switch.go_on(net, packet),
        Action::Arrival { .. } | Action::Departure { .. } => {}
        Action::Wake { port, .. } => switch.refill(net, port),
        Action::Timer { .. } | Action::StartFlow { .. } => {
            debug_assert!(false, "only hosts have timers and flows");
        }
    }
}
