//! Job graphs that are played: each region plays the ranks of its hosts. What they send are flows, made when
//! they start.

use super::Simulation;
use super::region::Region;
use super::starts::Due;
use crate::measure::recorder::Recorder;
use crate::measure::{Caused, Causes, FlowRecord, RankEvent};
use crate::topology::HostId;
use crate::transport::Ended;
use crate::units::Time;
use crate::workload::FlowId;
use crate::workload::graph::waits::{self, Wait};
use crate::workload::graph::{Blocked, Effect, JobGraph, Message, Player, RankStep};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Largest number of ranks of a job that are listed as cut off.
const MOST_CUT_OFF: usize = 4;

/// The graphs of a region.
#[derive(Default)]
pub struct Graphs {
    playing: Vec<Playing>,
    /// Flows that have started.
    pub started: u64,
    /// What ranks have ended, by source.
    pub steps: Vec<(u16, RankStep)>,
    /// For which time the end of an operation kept a rank from computing, by source.
    pub blocked: Vec<(u16, Blocked)>,
    /// Messages that ranks of other regions wait for.
    coming: Vec<Coming>,
    /// Flows over connections whose receivers are in other regions.
    openings: Vec<Opening>,
    /// Messages within scale-up domains for ranks in other regions.
    inside: Vec<Inside>,
    /// The events that decided when the ranks here acted, if that is requested.
    pub causes: Option<Box<Causes>>,
    effects: Vec<Effect>,
    /// When ranks that compute begin which operation, by rank, if that is to be known.
    pub computing: Option<FxHashMap<u32, (Time, u32)>>,
}

struct Playing {
    player: Player,
    source: u16,
    /// The flow that its first message is.
    first: FlowId,
    connections: Connections,
    started: Started,
    heeds_acknowledgements: bool,
    /// Until when each rank sends within its domain.
    busy: FxHashMap<u32, Time>,
    /// Messages that ranks here have sent, less those that have come to ranks here.
    under_way: i64,
    /// Flows of it that have started here.
    flows: u64,
}

/// By (sender, receiver, channel): the flow that opened the connection.
struct Connections {
    all: FxHashMap<(u32, u32, u32), FlowId>,
    /// By sender: the receiver and channel of its last message, and the connection. Mostly it is the next one's.
    last: Vec<(u32, u32, FlowId)>,
}

impl Connections {
    fn new(ranks: u32) -> Connections {
        Connections { all: FxHashMap::default(), last: vec![(u32::MAX, 0, 0); ranks as usize] }
    }

    /// The connection of a message, which `flow` opens if there is none.
    fn of(&mut self, &Message { from, to, channel, .. }: &Message, flow: FlowId) -> FlowId {
        let last = &mut self.last[from as usize];
        if (last.0, last.1) != (to, channel) {
            *last = (to, channel, *self.all.entry((from, to, channel)).or_insert(flow));
        }
        last.2
    }
}

/// A flow will come over a connection.
struct Opening {
    to: HostId,
    connection: FlowId,
    flow: FlowId,
}

/// A rank was sent a message.
struct Coming {
    to: HostId,
    graph: u16,
    number: u32,
    rank: u32,
    at: Time,
}

/// A message within a domain reaches a rank.
#[derive(Clone, Copy)]
struct Inside {
    to: HostId,
    graph: u16,
    number: u32,
    at: Time,
}

/// Which messages have been started, a bit each, in pages that are made when needed.
#[derive(Default)]
struct Started {
    pages: Vec<Option<Box<[u64; 64]>>>,
}

impl Started {
    const PAGE: u32 = 64 * 64;

    fn set(&mut self, number: u32) {
        let page = (number / Self::PAGE) as usize;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let bits = self.pages[page].get_or_insert_with(|| Box::new([0; 64]));
        let within = number % Self::PAGE;
        bits[within as usize / 64] |= 1 << (within % 64);
    }

    fn has(&self, number: u32) -> bool {
        let within = number % Self::PAGE;
        let page = self.pages.get((number / Self::PAGE) as usize).and_then(|page| page.as_deref());
        page.is_some_and(|bits| bits[within as usize / 64] >> (within % 64) & 1 == 1)
    }
}

impl Graphs {
    /// The graph of which a flow is a message, and the number of the message.
    fn of_flow(&self, flow: FlowId) -> Option<(usize, u32)> {
        let graph = self.playing.iter().rposition(|playing| playing.first <= flow)?;
        let number = flow - self.playing[graph].first;
        (number < self.playing[graph].player.graph().messages()).then_some((graph, number))
    }

    /// The order of the ends of computations at a host among what happens there at one time: after all flows, and of
    /// their own for each of its ranks. Equal ones would be ordered by where they are kept, which regions decide.
    fn order_of_wake(&self, graph: usize, rank: u32, op: u32) -> FlowId {
        const SEAT_BITS: u32 = 12;
        const OP_BITS: u32 = 18;
        let seats = |graph: &Playing| graph.player.graph().seats.per_host;
        let before: u32 = self.playing[..graph].iter().map(seats).sum();
        let seat = before + rank % seats(&self.playing[graph]);
        FlowId::MAX - (((op % (1 << OP_BITS)) << SEAT_BITS) | (seat % (1 << SEAT_BITS)))
    }

    /// Ranks here that have not ended.
    pub fn unfinished(&self) -> u64 {
        self.playing.iter().map(|playing| u64::from(playing.player.unfinished())).sum()
    }

    /// What ranks have not done yet is done elsewhere.
    pub fn leave(&mut self) {
        self.playing.iter_mut().for_each(|playing| playing.player.leave());
    }

    pub fn is_empty(&self) -> bool {
        self.playing.is_empty()
    }

    /// The operations that wait for messages, each with the number of its graph.
    fn waits(&self) -> impl Iterator<Item = (usize, Wait)> {
        let graphs = self.playing.iter().enumerate();
        graphs.flat_map(|(graph, playing)| playing.player.waits().into_iter().map(move |wait| (graph, wait)))
    }

    /// Number of messages of each graph, in the order in which they began.
    pub fn messages(&self) -> Vec<u32> {
        self.playing.iter().map(|playing| playing.player.graph().messages()).collect()
    }

    /// Visits every number that is counted up.
    pub fn each_number(&mut self, visit: &mut impl FnMut(&mut u64)) {
        visit(&mut self.started);
        self.playing.iter_mut().for_each(|playing| visit(&mut playing.flows));
    }

    /// Those of these messages of a graph that a host here never started.
    pub fn record_unstarted(
        &self,
        graph: usize,
        numbers: Range<u32>,
        here: &dyn Fn(HostId) -> bool,
        recorder: &mut Recorder,
    ) {
        let playing = &self.playing[graph];
        let graph = playing.player.graph();
        if playing.player.unfinished() == 0 || !graph.recorded || graph.flows() == 0 {
            return;
        }
        for number in numbers.filter(|&number| !playing.started.has(number)) {
            let message = graph.message(number);
            let spec = graph.flow(&message);
            if !message.inside && here(spec.src) {
                recorder.flow(FlowRecord::of(playing.first + number, &spec, spec.src, spec.start));
            }
        }
    }

    /// Notes why a rank does what it does.
    fn note(&mut self, index: usize, effects: &[Effect], caused: Caused) {
        let (Some(causes), Playing { first, source, .. }) = (&mut self.causes, &self.playing[index]) else {
            return;
        };
        for effect in effects {
            match *effect {
                Effect::Send { number, .. } => causes.sent.insert(first + number, caused),
                Effect::Wake { rank, op, .. } => causes.began.insert((*source, rank, op), caused),
                Effect::Step(step) => causes.ended.insert((*source, step.step, step.rank), caused),
                Effect::Blocked(_) => None,
            };
        }
    }

    /// The run ends: the steps of the ranks here.
    pub fn finish(&mut self, now: Time) {
        for playing in &self.playing {
            let steps = playing.player.finish(now);
            self.steps.extend(steps.into_iter().map(|step| (playing.source, step)));
        }
    }
}

impl Region {
    /// A job starts, some of whose ranks are here.
    pub fn begin_graph(&mut self, source: u16, first: FlowId, graph: Arc<JobGraph>, here: &[bool]) {
        let start = graph.flow.start;
        if !graph.recorded {
            self.net.recorder.unrecorded.push(first..first.saturating_add(graph.messages()));
        }
        let player = Player::new(graph, |host| here[host as usize]);
        let (connections, busy) = (Connections::new(player.graph().ranks()), FxHashMap::default());
        let started = Started::default();
        let heeds_acknowledgements = player.graph().heeds_acknowledgements();
        self.graphs.playing.push(Playing {
            player,
            source,
            first,
            connections,
            started,
            heeds_acknowledgements,
            busy,
            under_way: 0,
            flows: 0,
        });
        let index = self.graphs.playing.len() - 1;
        let mut effects = std::mem::take(&mut self.graphs.effects);
        self.graphs.playing[index].player.begin(start, &mut effects);
        self.take_effects(index, start, RankEvent::Begun, effects);
    }

    /// Does what a graph says after an event of one of its ranks.
    fn take_effects(&mut self, index: usize, now: Time, event: RankEvent, mut effects: Vec<Effect>) {
        if self.graphs.causes.is_some() {
            self.graphs.note(index, &effects, (now, event));
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { number, message } => self.send(index, number, message, now),
                Effect::Wake { rank, op, at } => {
                    let host = self.graphs.playing[index].player.graph().hosts[rank as usize];
                    if let Some(computing) = &mut self.graphs.computing {
                        computing.insert(rank, (at, op));
                    }
                    let due = Due::Woken { graph: index as u16, rank, op };
                    let order = self.graphs.order_of_wake(index, rank, op);
                    self.schedule_due(host, order, due, at);
                }
                Effect::Step(step) => {
                    let source = self.graphs.playing[index].source;
                    self.graphs.steps.push((source, step));
                }
                Effect::Blocked(blocked) => {
                    let source = self.graphs.playing[index].source;
                    self.graphs.blocked.push((source, blocked));
                }
            }
        }
        self.graphs.effects = effects;
    }

    /// A rank sends a message.
    fn send(&mut self, index: usize, number: u32, message: Message, now: Time) {
        let playing = &mut self.graphs.playing[index];
        playing.under_way += 1;
        let graph = playing.player.graph();
        let flow = playing.first + number;
        if graph.recorded {
            playing.started.set(number);
        }
        let due = Due::Message { graph: index as u16, number, message };
        let host = graph.hosts[message.from as usize];
        if playing.player.is_awaited_elsewhere(number, message.to) {
            let (to, rank) = (graph.hosts[message.to as usize], message.to);
            self.graphs.coming.push(Coming { to, graph: index as u16, number, rank, at: now });
        }
        if !message.inside {
            return self.schedule_due(host, flow, due, now);
        }
        let Some(scale_up) = graph.scale_up() else { return };
        let busy = playing.busy.entry(message.from).or_default();
        *busy = now.max(*busy).saturating_add(scale_up.rate.transmission_time(message.bytes));
        let at = busy.saturating_add(scale_up.delay);
        let to = graph.hosts[message.to as usize];
        let inside = Inside { to, graph: index as u16, number, at };
        // What happens at one host at one time is ordered by its flow: there it is one event.
        if graph.awaits_acknowledgement(number) && !graph.stays_at_host(number) {
            self.schedule_due(host, flow, Due::InsideKnown { graph: index as u16, number }, at);
        }
        if self.starts.host_is_here(to) {
            self.schedule_inside(inside, flow);
        } else {
            self.graphs.inside.push(inside);
        }
    }

    fn schedule_inside(&mut self, inside: Inside, flow: FlowId) {
        let due = Due::Inside { graph: inside.graph, number: inside.number };
        self.schedule_due(inside.to, flow, due, inside.at);
    }

    /// The host that sends a message, and the flow that it is.
    pub(super) fn sender_of(&self, index: usize, number: u32, message: &Message) -> (HostId, FlowId) {
        let playing = &self.graphs.playing[index];
        (playing.player.graph().hosts[message.from as usize], playing.first + number)
    }

    /// A message starts, as a flow.
    pub(super) fn start_message(&mut self, index: usize, number: u32, message: Message) {
        let playing = &mut self.graphs.playing[index];
        let graph = playing.player.graph();
        let mut spec = graph.flow(&message);
        let flow = playing.first + number;
        self.graphs.started += 1;
        playing.flows += 1;
        let keeps = self.settings.keeps_connections[usize::from(spec.transport)];
        if graph.fresh {
            spec.path_of = Some(playing.connections.of(&message, flow));
        } else if keeps && !self.settings.rules.pair_per_message {
            let connection = playing.connections.of(&message, flow);
            spec.connection = Some(connection);
            if self.starts.host_is_here(spec.dst) {
                self.net.awaited.announce(connection, flow);
            } else {
                self.graphs.openings.push(Opening { to: spec.dst, connection, flow });
            }
        }
        let index = self.starts.host_index(spec.src);
        let (host, mut cx) = self.host(index);
        host.start_flow(flow, &spec, &mut cx);
    }

    /// Ranks of a job learn of an event: `learn` gives it to them, and what follows from it happens.
    fn ranks_learn(
        &mut self,
        index: usize,
        event: RankEvent,
        learn: impl FnOnce(&mut Player, Time, &mut Vec<Effect>),
    ) {
        let mut effects = std::mem::take(&mut self.graphs.effects);
        let now = self.net.now;
        learn(&mut self.graphs.playing[index].player, now, &mut effects);
        self.take_effects(index, now, event, effects);
    }

    /// A rank's computation has ended.
    pub(super) fn wake_rank(&mut self, index: usize, rank: u32, op: u32) {
        if let Some(computing) = &mut self.graphs.computing {
            computing.remove(&rank);
        }
        self.ranks_learn(index, RankEvent::Woken(op), |player, now, effects| {
            player.woken(rank, op, now, effects);
        });
    }

    /// A message within a domain has reached its rank. No packet acknowledges it: a sender of the same host
    /// knows at once, one of another by an event of its own.
    pub(super) fn arrived_inside(&mut self, index: usize, number: u32) {
        let playing = &self.graphs.playing[index];
        let graph = playing.player.graph();
        let known = graph.awaits_acknowledgement(number) && graph.stays_at_host(number);
        self.arrived(index, playing.first + number, number);
        if known {
            self.known_inside(index, number);
        }
    }

    /// The sender of a message within a domain knows that it has reached its rank.
    pub(super) fn known_inside(&mut self, index: usize, number: u32) {
        self.acknowledged(index, self.graphs.playing[index].first + number, number);
    }

    /// A flow ended at one of its hosts; false: it does not belong to a graph.
    pub(super) fn message_ended(&mut self, ended: &Ended) -> bool {
        let Some((index, number)) = self.graphs.of_flow(ended.flow) else { return false };
        if ended.at_receiver {
            self.arrived(index, ended.flow, number);
        } else if self.graphs.playing[index].heeds_acknowledgements {
            self.acknowledged(index, ended.flow, number);
        }
        true
    }

    fn arrived(&mut self, index: usize, flow: FlowId, number: u32) {
        self.graphs.playing[index].under_way -= 1;
        self.ranks_learn(index, RankEvent::Arrived(flow), |player, now, effects| {
            player.arrived(number, now, effects);
        });
    }

    fn acknowledged(&mut self, index: usize, flow: FlowId, number: u32) {
        self.ranks_learn(index, RankEvent::Acknowledged(flow), |player, now, effects| {
            player.acknowledged(number, now, effects);
        });
    }
}

impl Simulation {
    /// What ranks of one region get about those of another.
    pub(super) fn exchange_messages(&mut self) {
        for from in 0..self.regions.len() {
            let openings = std::mem::take(&mut self.regions[from].graphs.openings);
            for Opening { to, connection, flow } in openings {
                let region = self.places.of_host(to).0;
                self.regions[region].net.awaited.announce(connection, flow);
            }
            for Coming { to, graph, number, rank, at } in
                std::mem::take(&mut self.regions[from].graphs.coming)
            {
                let region = self.places.of_host(to).0;
                self.regions[region].graphs.playing[usize::from(graph)].player.announced(number, rank, at);
            }
            for inside in std::mem::take(&mut self.regions[from].graphs.inside) {
                let region = self.places.of_host(inside.to).0;
                let first = self.regions[from].graphs.playing[usize::from(inside.graph)].first;
                self.regions[region].schedule_inside(inside, first + inside.number);
            }
        }
    }

    /// A job starts at `start`: every region plays its ranks.
    pub(super) fn begin_graph(&mut self, source: u16, first: FlowId, graph: &Arc<JobGraph>) {
        for region in 0..self.regions.len() {
            let here: Vec<bool> = (0..self.places.host_node.len() as u32)
                .map(|host| self.places.of_host(host).0 == region)
                .collect();
            self.regions[region].begin_graph(source, first, graph.clone(), &here);
        }
    }

    /// The events that decided when ranks of all regions acted, if that was requested.
    pub(super) fn causes(&mut self) -> Option<Causes> {
        let mut all = self.regions.iter_mut().filter_map(|region| region.graphs.causes.take());
        let mut causes = *all.next()?;
        all.for_each(|more| causes.append(*more));
        causes.first_flows = self.flows.first_flows.clone();
        Some(causes)
    }

    /// Messages without rows that had not started when the run ended, of jobs that had begun.
    pub(super) fn unstarted_without_rows(&self) -> u64 {
        let unstarted = |(place, playing): (usize, &Playing)| {
            let graph = playing.player.graph();
            let started = self.regions.iter().map(|region| region.graphs.playing[place].flows).sum::<u64>();
            if graph.recorded { 0 } else { graph.flows().saturating_sub(started) }
        };
        self.regions[0].graphs.playing.iter().enumerate().map(unstarted).sum()
    }

    /// Ranks that have not ended.
    pub(super) fn unfinished_ranks(&self) -> u64 {
        self.regions.iter().map(|region| region.graphs.unfinished()).sum()
    }

    /// Why graphs have not ended: ranks that no path leads to any more, and the operations that wait; in a run
    /// that is stalled, for each other, if no message of theirs is under way.
    pub(super) fn waiting_operations(&self, stalled: bool) -> Vec<String> {
        let mut all: BTreeMap<usize, Vec<Wait>> = BTreeMap::new();
        for (graph, wait) in self.regions.iter().flat_map(|region| region.graphs.waits()) {
            all.entry(graph).or_default().push(wait);
        }
        let each = (waits::LISTED / all.len().max(1)).max(2);
        let jobs = self.regions.first().map_or(0, |region| region.graphs.playing.len());
        let mut text = Vec::new();
        for (graph, mut waits) in all {
            waits.sort_by_key(|wait| wait.rank);
            let under_way: i64 =
                self.regions.iter().map(|region| region.graphs.playing[graph].under_way).sum();
            let Playing { player, source, .. } = &self.regions[0].graphs.playing[graph];
            let own =
                self.cut_off(player.graph()).chain(waits::text(&waits, stalled && under_way == 0, each));
            let job = if jobs > 1 { format!("workload {source}: ") } else { String::new() };
            text.extend(own.map(|line| format!("{job}{line}")));
        }
        text
    }

    /// The first ranks of a job that reach no rank at another host, although there are some.
    fn cut_off(&self, graph: &JobGraph) -> impl Iterator<Item = String> {
        let routes = &self.map.routes;
        let leads = move |from: u32, to: u32| !routes.next_hops(routes.host_node(from), to).is_empty();
        let is_cut_off = move |rank: u32| {
            let own = graph.hosts[rank as usize];
            let mut others = graph.hosts.iter().filter(|&&host| host != own).peekable();
            others.peek().is_some() && !others.any(|&host| leads(own, host) && leads(host, own))
        };
        let ranks = (0..graph.ranks()).filter(move |&rank| is_cut_off(rank)).take(MOST_CUT_OFF);
        ranks.map(|rank| format!("no path leads from rank {rank} to others since links or switches failed"))
    }
}
