//! Who is in flight when: a scenario's flows, played through in a few steps each, without packets.
//!
//! A flow takes its base RTT and the time of its bytes on the wire at its share of what it crosses (see
//! [`fabric`](super::fabric)), fixed when it starts. Under Poisson arrivals that gives about load / (1 - load) flows a link,
//! as processor sharing does; of an incast all flows are in flight to the end; a chain of dependent flows takes the
//! sum of its times.
//!
//! Differs from a run: no queueing delay, control loop or loss, and no collision of flows inside the fabric.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;

use super::fabric::Fabric;
use crate::config::Until;
use crate::scenario::Scenario;
use crate::topology::{HostId, Path, PathTimes};
use crate::transport::TransportConfig;
use crate::units::Time;
use crate::workload::merge::{Arrival, Dependents, Merged};
use crate::workload::{FlowId, TrafficSize};

/// Flows that are played if nothing else is said; the rest is taken to be like them.
pub const MOST_FLOWS: u64 = 2_000_000;

/// What a run's flows come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Replay {
    /// Flows that start before the run ends.
    pub flows: u64,
    /// Data packets and their acknowledgements, times the links they cross.
    pub packet_hops: f64,
    /// Simulated time at which the last flow, or the run, ends.
    pub end: Time,
    /// Most flows in flight at a time.
    pub flows_in_flight: u64,
    /// Connections that stay open to the end, over which flows follow each other.
    pub connections: u64,
    /// Most flows at a time that are known but wait for others.
    pub flows_waiting: u64,
    /// Most packets in flight at a time, acknowledgements included.
    pub packets_in_flight: u64,
    /// Packets in flight, averaged over the packets: what a packet finds in the caches.
    pub packets_met: f64,
}

impl Replay {
    /// Plays the first flows of a scenario's traffic; `size` is what all of it comes to.
    pub fn of(scenario: &Scenario, size: &TrafficSize, most_flows: u64) -> Replay {
        let mut player = Player::new(scenario);
        let mut played = player.play(scenario, most_flows);
        if player.bytes > 0 && !player.stopped_by_time {
            let (share, end) = match scenario.until {
                Until::At(stop) if stop < size.last_start => {
                    (stop.as_seconds() / size.last_start.as_seconds(), stop)
                }
                _ => (1.0, size.last_start),
            };
            played.flows = played.flows.max((size.flows as f64 * share) as u64);
            played.packet_hops *= (size.bytes as f64 * share / player.bytes as f64).max(1.0);
            played.end = played.end.max(end);
        }
        played
    }
}

/// A flow in flight.
#[derive(Clone, Copy)]
struct Flying {
    arrival: Arrival,
    places: [u32; 4],
    packets: u64,
    hops: f64,
    ends: Time,
}

/// A flow that waits for others.
#[derive(Default)]
struct Waiting {
    arrival: Option<Arrival>,
    ended: u16,
}

/// What the packets of a transport are like.
struct Wire {
    mtu: u64,
    overhead: u64,
    window: Option<u64>,
    keeps_connections: bool,
}

impl Wire {
    /// Bytes of a full packet.
    fn packet(&self) -> u64 {
        self.mtu + self.overhead
    }
}

struct Player<'s> {
    times: PathTimes<'s>,
    paths: FxHashMap<(HostId, HostId), Option<Path>>,
    wires: Vec<Wire>,
    fabric: Fabric,
    dependents: Dependents,
    waiting: FxHashMap<(u16, u32), Waiting>,
    ready: BTreeMap<(Time, FlowId), Arrival>,
    flying: Vec<Flying>,
    free: Vec<u32>,
    ends: BinaryHeap<Reverse<(Time, u32)>>,
    now: Time,
    packets: u64,
    /// Integrals over time of the packets in flight and of their square.
    packet_time: f64,
    packet_time_squared: f64,
    /// Payload of the flows that started.
    bytes: u64,
    stopped_by_time: bool,
    played: Replay,
}

impl<'s> Player<'s> {
    fn new(scenario: &'s Scenario) -> Player<'s> {
        let (network, run) = (&scenario.network, scenario.run());
        let wire = |transport: &TransportConfig| {
            let framing = transport.framing(&scenario.telemetry);
            Wire {
                mtu: framing.payload.max(1),
                overhead: framing.header,
                window: transport.window(&run),
                keeps_connections: transport.facts().keeps_connections,
            }
        };
        Player {
            times: PathTimes::new(&network.topology, &network.routes),
            paths: FxHashMap::default(),
            wires: scenario.transports.iter().map(wire).collect(),
            fabric: Fabric::of(network, scenario.switch.buffer.0),
            dependents: Dependents::new(&scenario.traffic),
            waiting: FxHashMap::default(),
            ready: BTreeMap::new(),
            flying: Vec::new(),
            free: Vec::new(),
            ends: BinaryHeap::new(),
            now: Time::ZERO,
            packets: 0,
            packet_time: 0.0,
            packet_time_squared: 0.0,
            bytes: 0,
            stopped_by_time: false,
            played: Replay::default(),
        }
    }

    fn play(&mut self, scenario: &Scenario, most_flows: u64) -> Replay {
        let stop = match scenario.until {
            Until::At(time) => time,
            Until::FlowsDone { .. } => Time::MAX,
        };
        let mut announced = Merged::new(&scenario.traffic).take(most_flows as usize).peekable();
        loop {
            let arrives = announced.peek().map(|arrival| arrival.spec.start);
            let starts = self.ready.first_key_value().map(|(key, _)| key.0);
            let ends = self.ends.peek().map(|Reverse((time, _))| *time);
            let Some(next) = [arrives, starts, ends].into_iter().flatten().min() else { break };
            if next > stop {
                self.stop_at(stop);
                break;
            }
            self.move_to(next);
            if ends == Some(next) {
                self.end_next();
            } else if starts == Some(next) {
                if let Some((_, arrival)) = self.ready.pop_first() {
                    self.start(arrival);
                }
            } else if let Some(arrival) = announced.next() {
                self.announce(arrival);
            }
        }
        self.played.end = self.now;
        if self.packet_time > 0.0 {
            self.played.packets_met = self.packet_time_squared / self.packet_time;
        }
        self.played
    }

    fn move_to(&mut self, time: Time) {
        let (span, packets) = (time.saturating_sub(self.now).0 as f64, self.packets as f64);
        self.packet_time += packets * span;
        self.packet_time_squared += packets * packets * span;
        self.now = time.max(self.now);
    }

    /// The run ends before its flows: those in flight have done a part of their packet-hops.
    fn stop_at(&mut self, time: Time) {
        self.move_to(time);
        self.stopped_by_time = true;
        for Reverse((ends, place)) in std::mem::take(&mut self.ends) {
            let flow = &self.flying[place as usize];
            let whole = (ends.0 - flow.arrival.spec.start.0.min(ends.0)).max(1) as f64;
            let left = (ends.0 - time.0.min(ends.0)) as f64;
            self.played.packet_hops -= flow.hops * (left / whole).min(1.0);
        }
    }

    fn announce(&mut self, arrival: Arrival) {
        if arrival.spec.waits_for == 0 {
            return self.start(arrival);
        }
        let place = (arrival.source, arrival.order);
        self.waiting.entry(place).or_default().arrival = Some(arrival);
        self.played.flows_waiting = self.played.flows_waiting.max(self.waiting.len() as u64);
        self.release_if_free(place);
    }

    fn release_if_free(&mut self, place: (u16, u32)) {
        let Some(waiting) = self.waiting.get(&place) else { return };
        let Some(mut arrival) = waiting.arrival.filter(|a| waiting.ended >= a.spec.waits_for) else { return };
        self.waiting.remove(&place);
        arrival.spec.start = self.now.saturating_add(arrival.spec.compute).max(arrival.spec.start);
        self.ready.insert((arrival.spec.start, arrival.id), arrival);
    }

    fn end_next(&mut self) {
        let Some(Reverse((_, place))) = self.ends.pop() else { return };
        let flow = self.flying[place as usize];
        self.free.push(place);
        self.fabric.leave(flow.places);
        self.packets -= flow.packets;
        let (source, order) = (flow.arrival.source, flow.arrival.order);
        let later: Vec<u32> = self.dependents.of(source, order).to_vec();
        for order in later {
            let waiting = self.waiting.entry((source, order)).or_default();
            waiting.ended = waiting.ended.saturating_add(1);
            self.release_if_free((source, order));
        }
    }

    fn start(&mut self, arrival: Arrival) {
        let spec = &arrival.spec;
        let times = &self.times;
        let path = *self.paths.entry((spec.src, spec.dst)).or_insert_with(|| times.pair(spec.src, spec.dst));
        let Some(path) = path else { return };
        let wire = &self.wires[usize::from(spec.transport)];
        let count = spec.size.div_ceil(wire.mtu);
        let bytes = spec.size.saturating_add(count.saturating_mul(wire.overhead));
        let crossing = self.fabric.join(spec.src, spec.dst, &path, bytes, self.now);
        let round_trip = round_trip(&path, wire.packet());
        let room = self.fabric.room(&crossing, round_trip, wire.window);
        let flow = Flying {
            places: crossing.places,
            packets: room.min(bytes).div_ceil(wire.packet()).clamp(1, count.max(1)),
            hops: count as f64 * f64::from(path.hops) * 2.0,
            ends: self.now.saturating_add(round_trip).saturating_add(crossing.time),
            arrival,
        };
        self.add(flow);
    }

    fn add(&mut self, mut flow: Flying) {
        flow.arrival.spec.start = self.now;
        self.bytes = self.bytes.saturating_add(flow.arrival.spec.size);
        self.packets += flow.packets;
        self.played.flows += 1;
        let opens = flow.arrival.spec.connection == Some(flow.arrival.id);
        let keeps = self.wires[usize::from(flow.arrival.spec.transport)].keeps_connections;
        self.played.connections += u64::from(opens && keeps);
        self.played.packet_hops += flow.hops;
        let place = match self.free.pop() {
            Some(place) => {
                self.flying[place as usize] = flow;
                place
            }
            None => {
                self.flying.push(flow);
                self.flying.len() as u32 - 1
            }
        };
        self.ends.push(Reverse((flow.ends, place)));
        self.played.packets_in_flight = self.played.packets_in_flight.max(self.packets);
        self.played.flows_in_flight = self.played.flows_in_flight.max(self.ends.len() as u64);
    }
}

/// Base RTT of a path for packets of this size.
fn round_trip(path: &Path, packet: u64) -> Time {
    let delays = path.delay.saturating_add(path.delay);
    let hop = path.bottleneck.transmission_time(packet);
    delays.saturating_add(Time(hop.0.saturating_mul(u64::from(path.hops))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Hooks;
    use std::path::Path as FilePath;

    /// What the flows of `workload` come to on a star of eight hosts with 100 Gb/s and 1 us.
    fn played(workload: &str) -> Replay {
        let text = format!("[topology]\nkind = \"star\"\nhosts = 8\n[[workload]]\n{workload}");
        let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
        scenario.map(|scenario| scenario.estimate().replay).unwrap()
    }

    #[test]
    fn a_lone_flow_takes_its_round_trip_and_its_bytes() {
        let replay =
            played("kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1MB\", start = \"5us\" }]");
        assert_eq!((replay.flows, replay.packet_hops), (1, 1000.0 * 2.0 * 2.0));
        assert_eq!((replay.flows_in_flight, replay.flows_waiting), (1, 0));
        // 1 000 packets of 1 000 B with 48 B of header and 42 B of INT; one more on each hop.
        let packet = Time(87_200);
        assert_eq!(replay.end, Time::from_us(5) + Time::from_us(4) + Time(packet.0 * 1002));
        // 4.17 us at line rate.
        assert_eq!(replay.packets_in_flight, 48);
        assert_eq!(replay.packets_met, 48.0);
    }

    #[test]
    fn an_incast_is_in_flight_to_the_end_with_all_its_windows() {
        let replay = played("kind = \"incast\"\nsenders = 4\nreceiver = 0\nsize = \"1MB\"");
        assert_eq!((replay.flows_in_flight, replay.flows_waiting), (4, 0));
        let end = replay.end.as_ns();
        assert!((end - 4.0 * 87_200.0).abs() < 6000.0, "{end}");
        // The first comes alone; the window of the others is a base RTT of 4.16 us at line rate.
        let window = 52_000u64.div_ceil(1090);
        assert_eq!(replay.packets_in_flight, 4 * window);
    }

    #[test]
    fn random_arrivals_hold_as_many_flows_as_processor_sharing() {
        let poisson = "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\ncount = 4000";
        let replay = played(poisson);
        assert_eq!(replay.flows, 4000);
        // Eight senders with one flow each on average; the most at a time is several times that.
        assert!((8..120).contains(&replay.flows_in_flight), "{replay:?}");
        assert!(replay.packets_met < replay.packets_in_flight as f64, "{replay:?}");
    }

    #[test]
    fn connections_that_stay_open_are_those_that_transports_keep() {
        let workload = "kind = \"request-response\"\nconnections = 1\nsize = \"100KB\"\nduration = \"1ms\"\n";
        let open = |rest: &str| played(&format!("{workload}{rest}"));
        // Four clients and four servers, one connection of each pair, both ways; some are not used in a millisecond.
        let replay = open("[transport]\nkind = \"tcp\"");
        assert!((16..=32).contains(&replay.connections) && replay.flows > 100, "{replay:?}");
        assert_eq!(open("persistent = false\n[transport]\nkind = \"tcp\"").connections, 0);
        assert_eq!(open("[transport]\nkind = \"phost\"").connections, 0);
        assert_eq!(open("[transport]\nkind = \"rdma\"").connections, replay.connections);
    }

    #[test]
    fn dependent_flows_come_one_after_the_other() {
        let replay = played("kind = \"collective\"\noperation = \"ring-all-reduce\"\nbytes = \"8MB\"");
        // 14 steps of 8 flows of 1 MB.
        assert_eq!((replay.flows, replay.flows_in_flight), (112, 8));
        assert_eq!(replay.flows_waiting, 112 - 8);
        let step = 4_000.0 + 1002.0 * 87.2;
        assert!((replay.end.as_ns() - 14.0 * step).abs() < 10.0, "{}", replay.end);
    }

    #[test]
    fn a_run_that_ends_before_its_flows_does_a_part_of_their_work() {
        let flows = "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1MB\", start = \"0us\" }, \
                     { src = 0, dst = 1, size = \"1MB\", start = \"1ms\" }]\n[run]\nuntil = ";
        let half = played(&format!("{flows}\"45.6872us\""));
        assert_eq!((half.flows, half.end), (1, Time(45_687_200)));
        assert!((half.packet_hops - 2000.0).abs() < 1.0, "{half:?}");
        let all = played(&format!("{flows}\"1s\""));
        assert_eq!((all.flows, all.packet_hops), (2, 8000.0));
    }
}
