//! A flow that starts: how fast it can be on its path, and when it is expected to end.

use super::bursts::First;
use super::*;
use crate::estimate::collisions;
use crate::estimate::outages::CERTAIN;
use crate::topology::HostId;

impl Player<'_> {
    pub(super) fn start(&mut self, arrival: Arrival, path: Option<Path>) {
        let spec = &arrival.spec;
        let Some(path) = path else { return };
        let path = self.paths.as_ref().map_or(path, |paths| paths.best((spec.src, spec.dst), path));
        let wire = &self.wires[usize::from(spec.transport)];
        let (count, bytes) = (spec.size.div_ceil(wire.mtu), wire.bytes(spec.size));
        let of_graph = self.graphs.get(usize::from(arrival.source)) == Some(&true);
        // How failures delay a job follows from all of it.
        let course = (!of_graph).then_some(self.course);
        let crossing = self.fabric.join((spec.src, spec.dst), &path, bytes, self.now, course);
        let round_trip = of_flow::round_trip(&path, wire.packet());
        let room = self.fabric.room(&crossing, round_trip, wire.window, wire.slows_down);
        let packets = room.min(bytes).div_ceil(wire.packet()).clamp(1, count.max(1));
        let losses = self.losses(spec.transport, &path, round_trip);
        // In slow start a window is as large as what was sent before, until the first loss.
        let before_loss = losses.map_or(u64::MAX, |(lost, _)| (1.0 / lost) as u64);
        let lossy = losses.map_or(0.0, |(lost, steady)| {
            let own = count as f64 * round_trip.as_seconds() / crossing.time.as_seconds().max(1e-12);
            let windows = (own.min(before_loss as f64).max(1.0), steady);
            of_flow::rounds_under_loss(count, lost, windows) * round_trip.as_seconds()
        });
        let share = |bytes: f64| bytes / wire.packet() as f64;
        let requests = wire.asks.map(|asks| Requests {
            asks,
            // A header or a request takes no time on links.
            round_trip: Time(2 * path.delay.0)
                .saturating_add(path.bottleneck.transmission_time(wire.packet())),
            packet: wire.packet(),
            waiting: self.port_room,
            trimmed: self.trims.then(|| share(wire.overhead as f64)),
            answers: share(wire.answers.each * wire.answer as f64),
        });
        let requested = requests.as_ref().map(|requests| self.fabric.requested(&crossing, requests));
        let of_requests = requested.as_ref().map_or(0.0, |requested| requested.seconds);
        let slowest = lossy.max(self.seconds_of_ends(spec, &path)).max(of_requests);
        // Of a flow that takes longer than any `Time`, as an endless one does, only the part until the last
        // one counts.
        let part = (Time::MAX.as_seconds() / slowest).min(1.0);
        let slowest = Time((slowest * part * 1e12) as u64);
        let on_the_way = path.bottleneck.bytes_in(round_trip).0.min(wire.window.unwrap_or(u64::MAX));
        // What waits for a flow at its destination, as in jobs, starts when it has arrived, and at its source when it is
        // acknowledged.
        let latency =
            if of_graph || self.is_awaited_there(&arrival) { Time(round_trip.0 / 2) } else { round_trip };
        let latency = latency.saturating_add(wire.waiting(&self.times, spec.src));
        let opens = spec.connection.is_none_or(|connection| connection == arrival.id);
        let [opening, joins] = wire.control;
        let control = opening + if count > 1 { joins } else { 0 };
        let opens = opens || !wire.keeps_connections;
        let control = if opens { f64::from(control * path.hops) } else { 0.0 };
        let control = control + wire.hops_of_asking(&self.times, spec.src, count);
        let held = wire.window_packets().unwrap_or(u64::MAX).min(before_loss);
        let pipe = (path.bottleneck.bytes_in(round_trip).0 / wire.packet()).min(held);
        let first_window = wire.first_window.filter(|_| opens);
        let starting = first_window.map_or(0.0, |first| of_flow::slow_start(first, count, pipe));
        let latency = latency.saturating_add(Time((starting * round_trip.0 as f64) as u64));
        let resent = if wire.goes_back { on_the_way.div_ceil(wire.packet()).min(count) } else { 0 };
        let asked_for = requested.as_ref().map_or(1.0, |requested| requested.sendings);
        // On half of its path a packet has not come to where it may be dropped; the headers of trimmed ones
        // cross all of it.
        let again = if self.trims { asked_for } else { (asked_for + 1.0) / 2.0 };
        let answers = if opens { wire.answers.of(count) } else { wire.answers.of_next(count) };
        // What comes after a lost packet is answered at once: at most one answer for each packet.
        let answers = if losses.is_some() { answers.max(count as f64) } else { answers };
        // What is sent again has been requested.
        let answers = answers / count.max(1) as f64 + (asked_for - 1.0) * wire.answers.each;
        let crossed =
            of_flow::links_crossed(f64::from(path.hops), self.loss, (resent as f64, again, answers));
        let to_answer = count as f64 * answers * wire.answer as f64 * 8.0;
        let mut flow = Flying {
            places: crossing.places,
            packets,
            hops: (count as f64 * part * crossed) as f32 + control as f32,
            // Between the first link and the last.
            first: packets as f32 * path.hops as f32 * 0.5,
            bits: bytes as f64 * 8.0 * part,
            ends: self.now.saturating_add(latency).saturating_add(crossing.time.max(slowest)),
            start: self.now,
            source: arrival.source,
            order: arrival.order,
            on_connection: spec.connection.is_some() && wire.keeps_connections,
        };
        let given = self.given.as_mut().filter(|_| !of_graph);
        if let Some((given, ends)) = given.zip(self.inner.ends(spec.src, spec.dst)) {
            given.add(arrival.source, self.now, ends, [flow.bits, to_answer * part]);
        }
        let first = requests.map(|requests| {
            let packets = requests.asks.first_of(count);
            let (hops, answers) = (f64::from(path.hops), wire.answers.each);
            First {
                flying: 0,
                src: spec.src,
                bits: wire.bytes(spec.size.min(packets.saturating_mul(wire.mtu))) as f64 * 8.0,
                packets: packets as f64,
                // What is trimmed comes to the end as a header, and is answered.
                lost: hops * answers + if self.trims { hops } else { hops - 1.0 },
                asked: hops * answers,
                sendings: asked_for,
                again: count as f64 * part * hops * (if self.trims { 1.0 } else { 0.5 } + answers),
                crossing,
                requests,
            }
        });
        if let Some(of) = self.of_sources.get_mut(usize::from(arrival.source)) {
            of.bytes = of.bytes.saturating_add(spec.size);
            of.hops += f64::from(flow.hops) - control;
            of.crossings += count as f64 * f64::from(path.hops);
            of.control += control;
            of.controlled += u64::from(control > 0.0);
        }
        let (keeps, stalls) = (opens && self.keeps_to_path(&arrival), !of_graph && !self.outages.is_empty());
        let is_awaited = (keeps || stalls) && !self.dependents.of(arrival.source, arrival.order).is_empty();
        if keeps {
            if self.course.is_constant() {
                let odds =
                    self.paths.as_ref().map_or(Odds::default(), |paths| paths.between(spec.src, spec.dst));
                let time = Time((flow.bits / odds.slowest.max(1.0) * 1e12) as u64);
                let late = flow.ends.max(self.now.saturating_add(latency).saturating_add(time));
                self.late.add((flow.ends, late), odds.slows, is_awaited);
            } else {
                self.meet_slow(spec, (&mut flow, latency), is_awaited);
            }
            self.collide(spec, (&flow, latency), is_awaited);
        }
        if stalls {
            self.stall(spec, (&mut flow, round_trip), is_awaited);
        }
        let flying = self.add(flow, &arrival);
        if let Some(first) = first {
            if !self.bursts.takes(self.now) {
                self.end_burst();
            }
            self.bursts.add(self.now, First { flying, ..first });
        }
    }

    /// A flow is no faster than the best path in each state of the network. Notes when it ends if the next hop
    /// that it takes is slow in some of them, or if others take a slow one, too.
    fn meet_slow(&mut self, spec: &FlowSpec, (flow, latency): (&mut Flying, Time), is_awaited: bool) {
        let odds = |(paths, rate): (&Option<Paths>, &Option<f64>)| match paths {
            Some(paths) => paths.between(spec.src, spec.dst),
            None => Odds { best: rate.unwrap_or(f64::INFINITY), ..Odds::default() },
        };
        let crosses = flow.places[2] != 0;
        let odds: Vec<Odds> = self.paths_in.iter().zip(&self.rates_in).map(odds).collect();
        let own = flow.bits / flow.ends.saturating_sub(flow.start).as_seconds().max(1e-12);
        let met = || self.course.met((flow.start, flow.ends)).map(|state| odds[state]);
        let slows = met().map(|odds| odds.slows).fold(0.0, f64::max);
        let best = met().map(|odds| odds.best).fold(f64::INFINITY, f64::min);
        let line = self.rate_between.unwrap_or(own);
        if !crosses || slows <= 0.0 && best >= line {
            return;
        }
        let course = self.course;
        // As fast as until now where no next hop is slow.
        let end = |bits: f64, fastest: f64, slow: bool| {
            let of = |state: usize| {
                let Odds { slows, slowest, best, .. } = odds[state];
                if slow && slows > 0.0 { slowest } else { best }.min(fastest)
            };
            course.when(flow.start, bits, of).saturating_add(latency)
        };
        flow.ends = flow.ends.max(end(flow.bits, own, false));
        // At these next hops themselves, or beyond all of them.
        let slow_hops = |switch: NodeId, to: HostId, line: f64| {
            let of = |paths: &Paths| paths.slow_hops(switch, to, line);
            let met = self.course.met((flow.start, flow.ends));
            let own = met.filter_map(|state| Some(of(self.paths_in[state].as_ref()?))).fold(0.0, f64::max);
            if best < line { 1.0 } else { own }
        };
        let mut late = vec![(end(flow.bits, own, true), slows)];
        let ends = [(spec.src, spec.dst), (spec.dst, spec.src)];
        for ((host, other), &place) in ends.into_iter().zip(&flow.places[2..]) {
            let (Some(line), Some(switch)) = (self.rate_between, self.fabric.switch(host)) else { continue };
            let Some((others, left)) = self.fabric.others(place, flow.bits) else { continue };
            let hops = self.routes.next_hops(switch, other).len();
            let found = collisions::chances(others, hops);
            let with = |others: u32| end(flow.bits + f64::from(others) * left, line, true);
            let slow = slow_hops(switch, other, line);
            late.extend(found.map(|(others, chance)| (with(others), chance * slow)));
        }
        for (late, chance) in late {
            self.late.add((flow.ends, late.max(flow.ends)), chance, is_awaited);
        }
    }

    /// A flow that loses packets because links go down waits for its timeouts.
    fn stall(&mut self, spec: &FlowSpec, (flow, round_trip): (&mut Flying, Time), is_awaited: bool) {
        let one_path = self.one_path[usize::from(spec.transport)];
        let Some(senders) = self.senders(spec.transport, !one_path) else { return };
        let found =
            self.outages.of_flow((spec.src, spec.dst), (flow.start, flow.ends), (senders, round_trip));
        let Some(stall) = found else { return };
        let late = flow.ends.saturating_add(stall.delay);
        if stall.chance >= CERTAIN {
            flow.ends = late;
        } else {
            self.late.add((flow.ends, late), stall.chance, is_awaited);
        }
    }

    /// Notes when a flow ends if others that have started are at the next hops that it takes.
    fn collide(&mut self, spec: &FlowSpec, (flow, latency): (&Flying, Time), is_awaited: bool) {
        let Some(rate) = self.rate_between else { return };
        let ends = [(spec.src, spec.dst), (spec.dst, spec.src)];
        for ((host, other), &place) in ends.into_iter().zip(&flow.places[2..]) {
            let Some(switch) = self.fabric.switch(host) else { continue };
            let Some((others, left)) = self.fabric.others(place, flow.bits) else { continue };
            let hops = self.routes.next_hops(switch, other).len();
            for (found, chance) in collisions::chances(others, hops) {
                let seconds = (flow.bits + f64::from(found) * left) / rate;
                let late = self.now.saturating_add(latency).saturating_add(Time((seconds * 1e12) as u64));
                self.colliding.add((flow.ends, late.max(flow.ends)), chance, is_awaited);
            }
        }
    }

    /// Whether flows wait for this one, all of them known and at its destination.
    fn is_awaited_there(&self, arrival: &Arrival) -> bool {
        let later = self.dependents.of(arrival.source, arrival.order);
        let starts_there = |order: &u32| {
            let waiting = self.waiting.get(&(arrival.source, *order)).and_then(|waiting| waiting.arrival);
            waiting.is_some_and(|later| later.spec.src == arrival.spec.dst)
        };
        !later.is_empty() && later.iter().all(starts_there)
    }

    /// Whether the packets of a flow take one next hop each, of a workload without a load.
    fn keeps_to_path(&self, arrival: &Arrival) -> bool {
        let of_source = self.single_flows.get(usize::from(arrival.source)) == Some(&true);
        of_source && self.one_path[usize::from(arrival.spec.transport)]
    }

    /// Seconds that its windows and the applications at its ends allow a flow at least.
    fn seconds_of_ends(&self, spec: &FlowSpec, path: &Path) -> f64 {
        let wire = &self.wires[usize::from(spec.transport)];
        let count = spec.size.div_ceil(wire.mtu);
        let window = wire.window_packets().filter(|&packets| packets < count);
        let of_windows = window.and_then(|window| {
            let round =
                self.times.base_rtt(spec.src, spec.dst, wire.packet().saturating_add(wire.answer), false)?;
            let line_rate = Rate(self.fabric.line_rate(spec.src, spec.dst, path));
            let packet = line_rate.transmission_time(wire.packet());
            Some(of_flow::seconds_of_windows(count, window, round, packet))
        });
        let applications = wire.applications.iter().flatten();
        let of_applications = applications.map(|pace| of_flow::seconds_of_application(spec.size, pace));
        of_applications.fold(of_windows.unwrap_or(0.0), f64::max)
    }

    /// The share of packets that a path loses at random, and the mean window that many losses leave, if they limit it.
    fn losses(&self, transport: u16, path: &Path, round_trip: Time) -> Option<(f64, f64)> {
        let lost = 1.0 - (1.0 - self.loss[0]).powf(f64::from(path.hops));
        if lost <= 0.0 {
            return None;
        }
        let steady = self.transports[usize::from(transport)].window_at_loss(lost, round_trip)?;
        Some((lost, steady.max(1.0)))
    }
}
