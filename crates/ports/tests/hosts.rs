//! Hosts in a world of another make: a star whose switch is ports without a simulator, in virtual time, between frames.
//! Flows must complete at the picosecond at which they do in a simulation of the whole.

use std::collections::BTreeMap;
use std::path::Path;

use weftline_ports::carrier::{self, Ends, Int};
use weftline_ports::port::{EnginePort, Markers};
use weftline_sim::config::Config;
use weftline_sim::engine::random::RandomStream;
use weftline_sim::measure::{FlowRecord, Sample, Sink};
use weftline_sim::net::ecn::EcnMarker;
use weftline_sim::net::port::Line;
use weftline_sim::packet::{Packet, PacketKind};
use weftline_sim::queue::PortPlace;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::telemetry::int::IntRecord;
use weftline_sim::units::Time;
use weftline_sim::{Passing, RunError, Simulation, World};

const HOSTS: u32 = 5;

fn scenario(transport: &str, workload: &str) -> Config {
    let text = format!(
        r#"
seed = 3
switch = {{ queue = {{ kind = "fifo", limit = "40KB" }}, pfc = {{ enabled = false }}, ecn = {{ enabled = false }} }}
transport = {transport}
topology = {{ kind = "star", hosts = {HOSTS}, host_link = {{ rate = "100Mbps", delay = "100us" }} }}
{workload}
"#
    );
    let load = Scenario::load(&text, "test", Path::new("."), &[], None, Hooks::default());
    load.and_then(|scenario| scenario.config()).unwrap_or_else(|error| panic!("{error}"))
}

const INCAST: &str = r#"
[[workload]]
kind = "flows"
flows = [
    { src = 1, dst = 0, size = "300KB", start = "0ms" },
    { src = 2, dst = 0, size = "200KB", start = "0.2ms" },
    { src = 3, dst = 0, size = "500KB", start = "1ms" },
    { src = 4, dst = 0, size = "20KB", start = "5.5ms" },
    { src = 0, dst = 4, size = "90KB", start = "30ms" },
]
"#;

#[derive(Default)]
struct Records(BTreeMap<u32, (Time, Option<Time>, u64)>);

impl Sink for Records {
    fn flows(&mut self, batch: &[FlowRecord]) -> std::io::Result<()> {
        self.0.extend(batch.iter().map(|one| (one.flow, (one.start, one.finish, one.packets_retransmitted))));
        Ok(())
    }
    fn samples(&mut self, _: &[Sample]) -> std::io::Result<()> {
        Ok(())
    }
}

/// The switch: node and a port for each host, with the host at it.
struct Star {
    node: u32,
    ports: Vec<EnginePort>,
    hosts: Vec<u32>,
    delay: Time,
    /// What is in flight to the switch, by time, and of one time by port, as the simulator has it.
    coming: BTreeMap<(Time, u32, u64), (u32, Vec<u8>)>,
    taken: u64,
    until: Time,
    int: Option<Int>,
    /// Records of INT that were read.
    records: usize,
}

impl Star {
    fn new(config: &Config, int: Option<Int>) -> Star {
        let topology = &config.topology;
        let node = topology.nodes.len() as u32 - 1;
        assert!(topology.hosts().iter().all(|&host| host != node));
        let links: Vec<(u32, u32)> = topology.ports()[node as usize].to_vec();
        let port = |(local, &(link, _)): (usize, &(u32, u32))| {
            let link = &topology.links[link as usize];
            let place = PortPlace {
                seed: config.seed,
                node: "switch",
                local: local as u16,
                rate: link.rate,
                asks_later: false,
                departs: false,
                under_way: Time::ZERO,
                fixed_minimum: false,
            };
            let none = || EcnMarker::for_rate(&[], link.rate, weftline_sim::net::ecn::MarkedAt::Departure);
            let markers =
                Markers { departing: none(), arriving: none(), random: RandomStream::new(1, "none") };
            let queue = config.switch.queue_at(node, local as u32).start(&place);
            EnginePort::new(queue, Line::new(link.rate, link.delay, 0), markers).with_int(node)
        };
        let host = |&(_, neighbour): &(u32, u32)| {
            topology.hosts().iter().position(|&host| host == neighbour).unwrap() as u32
        };
        Star {
            node,
            ports: links.iter().enumerate().map(port).collect(),
            hosts: links.iter().map(host).collect(),
            delay: topology.links[0].delay,
            coming: BTreeMap::new(),
            taken: 0,
            until: Time::ZERO,
            int,
            records: 0,
        }
    }
}

fn between(host: u32, packet: &Packet) -> Ends {
    let address = |host: u32| [10, 0, 0, host as u8];
    Ends { macs: [[2; 6]; 2], host, addresses: [host, packet.dst].map(address) }
}

fn read(frame: &[u8], int: Option<&Int>) -> (Packet, Vec<IntRecord>) {
    carrier::packet(frame, |address| Some(u32::from(address[3])), int).expect("a packet of a host")
}

impl World for Star {
    fn wait(&mut self, next: Time, came: &mut Vec<Passing>) -> Time {
        // All that reaches the switch before the time until which hosts have worked, and the link's delay, is known.
        let known = self.until + self.delay;
        while let Some(first) = self.coming.first_entry().filter(|first| first.key().0 < known) {
            let ((at, _, _), (to, frame)) = first.remove_entry();
            let local = self.hosts.iter().position(|&host| host == to).unwrap();
            self.ports[local].offer(at, read(&frame, self.int.as_ref()).0, &frame);
        }
        for (local, port) in self.ports.iter_mut().enumerate() {
            port.advance(known);
            while let Some((at, frame)) = port.arrived(known + self.delay) {
                let (packet, records) = read(&frame, self.int.as_ref());
                self.records +=
                    usize::from(packet.kind == PacketKind::Data) * records.len().saturating_sub(1);
                came.push(Passing { at, node: self.node, local: local as u32, packet, records });
                port.give_back(frame);
            }
        }
        let empty = |port: &EnginePort| port.departs_at().is_none() && port.arrives_at().is_none();
        let quiet =
            came.is_empty() && self.coming.is_empty() && self.ports.iter().all(empty) && next < Time::MAX;
        self.until = if quiet { known.max(next + Time(1)) } else { known };
        self.until
    }
    fn take(&mut self, sent: Passing) {
        assert_eq!(sent.node, self.node);
        self.taken += 1;
        let ends = between(self.hosts[sent.local as usize], &sent.packet);
        let frame = carrier::frame(&sent.packet, &sent.records, &ends, self.int.as_ref());
        self.coming.insert((sent.at, sent.local, self.taken), (sent.packet.dst, frame));
    }
    fn ends(&self) -> bool {
        false
    }
}

/// What flows do in both, and how many records of INT were read.
fn both(transport: &str) -> ([Records; 2], usize) {
    let (mut whole, mut hosts) = (Records::default(), Records::default());
    weftline_sim::run(scenario(transport, INCAST), &mut whole, &mut |_| true).unwrap();
    let config = scenario(transport, INCAST);
    let telemetry = config.telemetry.clone();
    let mut star = Star::new(&config, None);
    let simulation = Simulation::of_hosts(config, 2000).unwrap();
    star.int = Int::of(&telemetry, simulation.int_layout());
    simulation.run_in(&mut star, &mut hosts).unwrap();
    ([whole, hosts], star.records)
}

#[test]
fn flows_complete_at_the_picosecond_of_a_simulation_of_the_whole() {
    for transport in [
        "{ kind = \"phost\" }",
        "{ kind = \"tcp\" }",
        "{ kind = \"rdma\", controller = { kind = \"dctcp\" } }",
        "{ kind = \"mptcp\" }",
        "{ kind = \"pfabric\" }",
        "{ kind = \"homa\" }",
        "{ kind = \"ndp\" }",
        // Every field of a packet is a part of a schedule, the source too.
        "{ kind = \"fastpass\" }",
    ] {
        let ([whole, hosts], _) = both(transport);
        assert_eq!(whole.0.len(), 5);
        assert!(whole.0.values().all(|(_, finish, _)| finish.is_some()), "{transport}: {:?}", whole.0);
        assert_eq!(whole.0, hosts.0, "{transport}");
    }
}

/// INT travels in the frames, as real switches write it, and comes back in acknowledgements.
#[test]
fn flows_that_steer_by_int_complete_at_the_picosecond_of_a_simulation_of_the_whole() {
    for controller in [
        "hpcc\", rai = \"500kbps\", min_rate = \"1Mbps\"",
        "powertcp\", additive = \"1.5Mbps\", min_rate = \"1Mbps\"",
    ] {
        let transport = format!("{{ kind = \"rdma\", controller = {{ kind = \"{controller} }} }}");
        let ([whole, hosts], records) = both(&transport);
        assert_eq!(whole.0.len(), 5);
        assert!(whole.0.values().all(|(_, finish, _)| finish.is_some()), "{controller}: {:?}", whole.0);
        assert_eq!(whole.0, hosts.0, "{controller}");
        assert!(records >= 1_110, "one record for each of the packets of 1.11 MB: {records}");
        // Steered, and not by accident the same: without their telemetry they are others.
        let free = "{ kind = \"rdma\", controller = { kind = \"dctcp\" } }";
        assert_ne!(whole.0, both(free).0[0].0, "{controller}");
    }
}

#[test]
fn what_hosts_cannot_do_with_real_switches_is_refused() {
    let digests = scenario("{ kind = \"rdma\", controller = { kind = \"hpcc-pint\" } }", INCAST);
    let Err(RunError::Impossible(why)) = Simulation::of_hosts(digests, 1500) else {
        panic!("expected a refusal")
    };
    assert!(why.starts_with("telemetry.kind = \"pint\": "), "{why}");
}
