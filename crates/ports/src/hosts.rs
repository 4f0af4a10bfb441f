//! The process of hosts: the hosts of a scenario as the engine has them, between real interfaces that lead to
//! switches.
//!
//! A frame counts from when the kernel received it plus its own time on the link and the link's delay, and
//! what a host sends leaves here when it is due at the far end of its link. So a process that is late decides
//! as one that is not, if it is late by less than a delay.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use weftline_sim::config::Config;
use weftline_sim::measure::{FlowRecord, Outcome, Sample, Sink};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::telemetry::int::IntLayout;
use weftline_sim::topology::NodeKind;
use weftline_sim::units::Time;
use weftline_sim::{Passing, RunError, Simulation, World};

use crate::carrier::{self, Ends, Int};
use crate::plan::{number, text};
use crate::socket::{Batch, Interface};
use crate::transmitter::Transmitter;
use crate::waiting::{Clock, Histogram, Ready, UNIT_NS, end_on_signal, ended};

/// Frames of a host that may be in flight to its switch: more are refused and counted.
const MOST_FRAMES: usize = 1 << 17;
/// Bytes of the longest IPv4 packet: a frame of 1500 bytes with all that a simulated one may count, down to the preamble.
const MTU: u64 = 1600;
/// Rounds of reading at an interface before what is due is sent.
const MOST_BATCHES: usize = 4;

/// The hosts of a scenario and their links.
pub struct Hosts {
    config: Config,
    links: Vec<HostLink>,
    /// By host.
    addresses: Vec<[u8; 4]>,
}

struct HostLink {
    interface: String,
    macs: [[u8; 6]; 2],
    /// Number of the host.
    host: u32,
    /// The switch's end.
    node: u32,
    local: u32,
    /// From when a frame comes here until it is at the host.
    delay: Time,
    /// The time of frames on the link, where the switch's port is a kernel's.
    transmitter: Option<Transmitter>,
}

impl Hosts {
    /// Reads a task: `scenario` (TOML, with files relative to `base`), `addresses` of the hosts in their
    /// order, and `links` of `interface`, `node` (number of the switch), `local` (its port), `from` and `to`
    /// (MAC addresses of the host and the switch), and either `delayed` (true: frames that come have passed
    /// the link already) or `rate_bps` and `burst_bytes` of the kernel's port at the switch.
    ///
    /// Errors: what of it cannot be served, for people.
    pub fn read(task: &str) -> Result<Hosts, String> {
        let task: Value = serde_json::from_str(task).map_err(|error| format!("the task: {error}"))?;
        let (scenario, base) = (text(&task, "scenario")?, text(&task, "base")?);
        let load = Scenario::load(&scenario, "scenario", Path::new(&base), &[], None, Hooks::default());
        let config = load.and_then(|scenario| scenario.config()).map_err(|error| error.to_string())?;
        let addresses: Vec<[u8; 4]> = list(&task["addresses"])
            .filter_map(|one| one.as_str()?.parse::<Ipv4Addr>().ok().map(|a| a.octets()))
            .collect();
        if addresses.len() != config.topology.hosts().len() {
            return Err(format!(
                "the task: {} addresses for {} hosts",
                addresses.len(),
                config.topology.hosts().len()
            ));
        }
        let ports = config.topology.ports();
        let link = |one: &Value| {
            let (node, local) = (number(one, "node")?, number(one, "local")?);
            let switch = config.topology.nodes.get(node).filter(|spec| spec.kind == NodeKind::Switch);
            let known = switch.is_some() && local < ports[node].len();
            let (link, neighbour) = known
                .then(|| ports[node][local])
                .ok_or_else(|| format!("the task: node {node} has no port {local}"))?;
            let host = config.topology.hosts().iter().position(|&host| host == neighbour);
            let host = host.ok_or_else(|| format!("the task: no host at port {local} of node {node}"))?;
            Ok(HostLink {
                host: host as u32,
                interface: text(one, "interface")?,
                macs: [mac(one, "from")?, mac(one, "to")?],
                node: node as u32,
                local: local as u32,
                delay: match one["delayed"] == Value::Bool(true) {
                    true => Time::ZERO,
                    false => config.topology.links[link as usize].delay,
                },
                transmitter: Transmitter::read(one),
            })
        };
        let links = list(&task["links"]).map(link).collect::<Result<Vec<_>, String>>()?;
        Ok(Hosts { config, links, addresses })
    }

    /// Finds out whether the engine's hosts can run the scenario with real switches.
    pub fn check(self) -> Result<(), String> {
        started(self.config).map(drop).map_err(|error| error.to_string())
    }

    /// Runs the hosts until their flows are done, the scenario's end, or SIGTERM. `ready` is called once every interface is open
    /// and returns the time of day (ns) at which the scenario begins. What was done comes back as JSON.
    ///
    /// Errors: an interface that cannot be opened; what the hosts cannot run.
    pub fn serve(self, ready: impl FnOnce() -> io::Result<u64>) -> io::Result<String> {
        end_on_signal();
        let Hosts { config, links, addresses } = self;
        let (simulation, int) = started(config).map_err(io::Error::other)?;
        let mut network = Network::open(links, addresses)?;
        network.int = int;
        network.clock = Clock::from(ready()?);
        let mut flows = Flows::default();
        let outcome = simulation.run_in(&mut network, &mut flows).map_err(io::Error::other)?;
        Ok(network.report(&flows.0, &outcome).to_string())
    }
}

/// The hosts, and the INT of their packets.
fn started(config: Config) -> Result<(Simulation, Option<Int>), RunError> {
    let telemetry = config.telemetry.clone();
    let growth = Int::of(&telemetry, Some(IntLayout::FINE)).map_or(0, |int| int.growth());
    let simulation = Simulation::of_hosts(config, MTU.saturating_sub(growth))?;
    let int = Int::of(&telemetry, simulation.int_layout());
    Ok((simulation, int))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn mac(value: &Value, key: &str) -> Result<[u8; 6], String> {
    let written = text(value, key)?;
    let bytes: Result<Vec<u8>, _> = written.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
    let bytes = bytes.ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| format!("the task: {key} = \"{written}\" is not a MAC address"))
}

/// The records of flows.
#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl Sink for Flows {
    fn flows(&mut self, batch: &[FlowRecord]) -> io::Result<()> {
        self.0.extend_from_slice(batch);
        Ok(())
    }
    fn samples(&mut self, _: &[Sample]) -> io::Result<()> {
        Ok(())
    }
}

/// A host's link with what is in flight to the switch, by the time at which it is due there.
struct Wire {
    link: HostLink,
    interface: Interface,
    due: VecDeque<(Time, Vec<u8>)>,
}

struct Network {
    wires: Vec<Wire>,
    /// By the switch's end.
    wire_at: FxHashMap<(u32, u32), usize>,
    addresses: Vec<[u8; 4]>,
    host_at: FxHashMap<[u8; 4], u32>,
    int: Option<Int>,
    ready: Ready,
    clock: Clock,
    batch: Batch,
    /// The hosts have worked up to here.
    until: Time,
    received: u64,
    /// Frames of something else.
    foreign: u64,
    sent: u64,
    refused: u64,
    late: Histogram,
    /// Packets that came for a time that had passed, and how long before.
    overdue: Histogram,
}

impl Network {
    fn open(links: Vec<HostLink>, addresses: Vec<[u8; 4]>) -> io::Result<Network> {
        let mut network = Network {
            wires: Vec::new(),
            wire_at: FxHashMap::default(),
            host_at: addresses.iter().zip(0..).map(|(&address, host)| (address, host)).collect(),
            addresses,
            int: None,
            ready: Ready::new()?,
            clock: Clock::from_now(),
            batch: Batch::new(),
            until: Time::ZERO,
            received: 0,
            foreign: 0,
            sent: 0,
            refused: 0,
            late: Histogram::default(),
            overdue: Histogram::default(),
        };
        for link in links {
            let interface = Interface::open(&link.interface).map_err(|error| {
                io::Error::new(error.kind(), format!("interface {}: {error}", link.interface))
            })?;
            network.ready.add(&interface, network.wires.len())?;
            network.wire_at.insert((link.node, link.local), network.wires.len());
            network.wires.push(Wire { link, interface, due: VecDeque::new() });
        }
        Ok(network)
    }

    /// Sends all that is due.
    fn send(&mut self) {
        for wire in &mut self.wires {
            let mut now = self.clock.now();
            while wire.due.front().is_some_and(|(at, _)| *at <= now)
                && let Some((at, frame)) = wire.due.pop_front()
            {
                let taken = wire.interface.send(&frame);
                self.sent += u64::from(taken);
                self.refused += u64::from(!taken);
                now = self.clock.now();
                self.late.add(now.saturating_sub(at));
            }
        }
    }

    /// Takes the frames of a link.
    fn read(&mut self, place: usize, came: &mut Vec<Passing>) {
        let Network { wires, host_at, clock, batch, int, .. } = self;
        let Some(Wire { link, interface, .. }) = wires.get_mut(place) else { return };
        let (offset, mut received, mut foreign) = (clock.offset(), 0, 0);
        for _ in 0..MOST_BATCHES {
            let now = clock.now();
            let more = interface.receive(batch, &mut |stamp, frame| {
                received += 1;
                let stamped = stamp.map(|stamp| (i128::from(stamp) - offset).max(0) as u64);
                let given = stamped.map_or(now, |ns| Time::from_ns(ns).min(now));
                let bytes = frame.map_or(0, <[u8]>::len);
                let ends = link.transmitter.as_mut().map_or(given, |one| one.ends(given, bytes));
                let at = ends + link.delay;
                let host = |address| host_at.get(&address).copied();
                let carried = frame.and_then(|frame| carrier::packet(frame, host, int.as_ref()));
                match carried {
                    Some((packet, records)) => {
                        came.push(Passing { at, node: link.node, local: link.local, packet, records })
                    }
                    None => foreign += 1,
                }
            });
            if !more {
                break;
            }
        }
        self.received += received;
        self.foreign += foreign;
    }

    fn report(&mut self, flows: &[FlowRecord], outcome: &Outcome) -> Value {
        self.wires.iter_mut().for_each(|wire| wire.interface.count());
        let on_links: usize = self.wires.iter().map(|wire| wire.due.len()).sum();
        let flow = |one: &FlowRecord| {
            json!({
                "flow": one.flow, "start_ns": one.start.0 as f64 / 1e3, "finish_ns": one.finish.map(|at| at.0 as f64 / 1e3),
                "sent": one.packets_sent, "retransmitted": one.packets_retransmitted, "timeouts": one.timeouts,
            })
        };
        json!({
            "flows": flows.iter().map(flow).collect::<Vec<_>>(),
            "end_ns": outcome.end.ns(),
            "received": self.received,
            "foreign": self.foreign,
            "sent": self.sent,
            "on_links": on_links,
            "refused": self.refused,
            "missed": self.wires.iter().map(|wire| wire.interface.missed).sum::<u64>(),
            "late": self.late.counts(),
            "overdue": self.overdue.counts(),
            "unit_ns": UNIT_NS,
        })
    }
}

impl World for Network {
    fn wait(&mut self, next: Time, came: &mut Vec<Passing>) -> Time {
        loop {
            // Whatever came before this moment can be read now.
            let until = self.clock.now();
            for place in self.ready.places().0 {
                self.read(place, came);
            }
            self.send();
            if !came.is_empty() || until > next || ended() {
                let before = std::mem::replace(&mut self.until, until);
                came.iter().filter(|one| one.at < before).for_each(|one| self.overdue.add(before - one.at));
                return until;
            }
            let due = self.wires.iter().filter_map(|wire| wire.due.front().map(|(at, _)| *at)).min();
            // A window ends before its limit: what is to happen at `next` happens in one that ends after it.
            let soonest = due.unwrap_or(Time::MAX).min(next.saturating_add(Time::from_ns(1)));
            self.ready.wait(Some(soonest.saturating_sub(self.clock.now())));
        }
    }

    fn take(&mut self, sent: Passing) {
        let address = |host: u32| self.addresses.get(host as usize).copied().unwrap_or_default();
        let wire = self.wire_at.get(&(sent.node, sent.local)).and_then(|&place| self.wires.get_mut(place));
        let Some(wire) = wire.filter(|wire| wire.due.len() < MOST_FRAMES) else {
            self.refused += 1;
            return;
        };
        let host = wire.link.host;
        let ends = Ends { macs: wire.link.macs, host, addresses: [host, sent.packet.dst].map(address) };
        wire.due.push_back((sent.at, carrier::frame(&sent.packet, &sent.records, &ends, self.int.as_ref())));
    }

    fn ends(&self) -> bool {
        ended()
    }
}
