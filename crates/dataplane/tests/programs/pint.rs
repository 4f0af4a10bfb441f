//! `bpf/pint.bpf.c` against the encoder, the load and the collector's packet ids.

use super::packets::{self, ip};
use super::rig::{self, Random};
use ::pint::encoder::Encoder;
use ::pint::fixed::Arithmetic;
use ::pint::hash::Key;
use ::pint::plan::{Plan, label_bits};
use ::pint::query::Value;
use ::pint::utilisation::{Law, Tabled, Tables, scaled_integer};
use std::net::IpAddr;
use weftline_collect::ip::Ip;
use weftline_collect::pint::packet_id;
use weftline_dataplane::kernel::{Context, Map, Object, Program, Ring, Sandbox};
use weftline_dataplane::pint::{COUNTS, Config, FLOW_LABEL, IPV4_ID, Record};
use weftline_dataplane::{Port, flow_hash};

/// The paper's queries, and every kind of value and of aggregation.
const PLANS: [&str; 4] = [
    r#"
        bits = 16
        seed = 7
        hops = { expected = 5, maximal = 59 }
        query = [
            { name = "path", value = "switch-id", aggregation = "path", bits = 8, copies = 2, code = "paper-evaluation" },
            { name = "latency", value = "hop-latency", aggregation = "quantiles", bits = 8, frequency = "15/16", approximation = { epsilon = 0.022 } },
            { name = "congestion", value = "utilisation", aggregation = "max", bits = 8, frequency = "1/16", approximation = { base = 1.05, rounding = "log" } },
        ]
    "#,
    r#"
        bits = 16
        query = [
            { name = "a", value = "egress-port", aggregation = "path", bits = 4, code = { tau = 0.5, layers = [0.1, 0.3] }, select = "words", blocks = "fragments", value-bits = 16, frequency = 0.2 },
            { name = "b", value = "queue-bytes", aggregation = "min", bits = 8, approximation = { delta = 512 }, frequency = 0.2 },
            { name = "c", value = "hop-latency", aggregation = "sum", bits = 12, frequency = 0.1 },
            { name = "d", value = "utilisation", aggregation = "product", bits = 8, approximation = { epsilon = 0.05 }, frequency = 0.1 },
            { name = "e", value = "queue-bytes", aggregation = "count-above", bits = 4, threshold = 30000, frequency = 0.2 },
            { name = "f", value = "switch-id", aggregation = "loops", bits = 8, frequency = 0.2 },
            { name = "g", value = "ingress-port", aggregation = "frequent", bits = 8, copies = 2, share = 0.05, frequency = 0.1 },
        ]
    "#,
    r#"
        bits = 16
        seed = 123456789012345
        query = [
            { name = "path", value = "switch-id", aggregation = "path", bits = 16, copies = 8, code = "tuned", frequency = 0.3 },
            { name = "sent", value = "port-bytes", aggregation = "max", bits = 16, approximation = { epsilon = 0.01, rounding = "value" }, frequency = 0.1 },
            { name = "time", value = "timestamp", aggregation = "min", bits = 12, approximation = { epsilon = 0.05, rounding = "nearest" }, frequency = 0.1 },
            { name = "queue", value = "queue-bytes", aggregation = "quantiles", bits = 10, approximation = { delta = 300, rounding = "value" }, frequency = 0.1 },
            { name = "load", value = "utilisation", aggregation = "quantiles", bits = 12, approximation = { epsilon = 0.02, rounding = "log" }, frequency = 0.2 },
            { name = "exact", value = "ingress-port", aggregation = "max", bits = 16, approximation = "exact", frequency = 0.1 },
        ]
    "#,
    r#"
        bits = 12
        query = [ { name = "path", value = "switch-id", aggregation = "path", bits = 12, copies = 3, code = "paper-appendix", frequency = 0.5 } ]
    "#,
];

/// Where the id of an IPv4 packet is in its frame.
const ID: usize = 18;
const SWITCH: u32 = 0x00c0_ffee;
const RING: usize = 1 << 20;
const COUNT: usize = COUNTS.len();

/// What the programs do, by the library's own functions.
struct Model {
    plan: Plan,
    encoder: Encoder,
    carriers: u32,
    /// By interface.
    ports: Vec<(u32, ModelPort)>,
    counts: [u64; COUNT],
}

#[derive(Clone)]
struct ModelPort {
    number: u32,
    sink: bool,
    /// In 2^-16 ns a byte.
    wait: u64,
    bytes: u64,
    load: Option<(Tabled, Tabled, Key)>,
}

struct Rig {
    _sandbox: Sandbox,
    object: Object,
    interfaces: Vec<u32>,
    map: Map,
    ring: Ring,
    model: Model,
}

fn address(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

fn initial(hop_limit: u8) -> u8 {
    [64, 128].into_iter().find(|&limit| limit >= hop_limit).unwrap_or(255)
}

fn with_label(mut frame: Vec<u8>, label: u32) -> Vec<u8> {
    frame[15] = frame[15] & 0xf0 | (label >> 16) as u8;
    frame[16..18].copy_from_slice(&(label as u16).to_be_bytes());
    frame
}

impl Model {
    fn count(&mut self, name: &str) {
        self.counts[COUNTS.iter().position(|&count| count == name).unwrap()] += 1;
    }

    fn port(&mut self, interface: u32) -> Option<&mut ModelPort> {
        self.ports.iter_mut().find(|(known, _)| *known == interface).map(|(_, port)| port)
    }

    fn carrier(&self, ip: &Ip) -> u32 {
        let carrier = if ip.id.is_some() { IPV4_ID } else { FLOW_LABEL };
        if ip.fragment || !ip.dont_fragment { 0 } else { carrier & self.carriers }
    }

    fn source(&mut self, frame: &[u8], context: &Context) -> Vec<u8> {
        if self.port(context.interface).is_none() {
            return frame.to_vec();
        }
        let Some(packet) = ip(frame).filter(|ip| self.carrier(ip) != 0) else {
            self.count("unstamped");
            return frame.to_vec();
        };
        self.count("source");
        if initial(packet.hop_limit) != packet.hop_limit {
            self.count("hop_limit");
        }
        if packet.id.is_some() {
            packets::with_word(frame.to_vec(), ID, 0)
        } else {
            with_label(frame.to_vec(), 0)
        }
    }

    fn switch(&mut self, frame: &[u8], context: &Context) -> (Vec<u8>, Option<Record>) {
        let same = frame.to_vec();
        let ingress = self.port(context.ingress_interface).map(|port| port.number);
        let nibble = label_bits(self.plan.version());
        let packet = ip(frame);
        let carrier = packet.as_ref().map_or(0, |ip| self.carrier(ip));
        let hop = packet.as_ref().map_or(0, |ip| u32::from(initial(ip.hop_limit) - ip.hop_limit));
        let now = u64::from(context.control[1]) << 32 | u64::from(context.control[0]);
        let queue = u64::from(context.control[2]);
        let label = packet.as_ref().map_or(0, |ip| ip.flow_label);
        let other = carrier == FLOW_LABEL && hop > 1 && (label == 0 || label >> 16 != nibble);
        let data = carrier != 0 && hop > 0 && !other;
        let Some(port) = self.port(context.interface) else { return (same, None) };
        port.bytes += frame.len() as u64;
        let (bytes, number, sink, wait) = (port.bytes, port.number, port.sink, port.wait);
        let load = port.load.as_mut().map(|(load, _, key)| {
            let word = key.word(now);
            if data {
                load.update(1_000 * now, queue, frame.len() as u32, word);
            } else {
                load.pass(1_000 * now, queue, frame.len() as u32, word);
            }
            scaled_integer(load.load())
        });
        let Some(packet) = packet.filter(|_| carrier != 0 && hop > 0) else {
            self.count("unstamped");
            return (same, None);
        };
        if other {
            self.count(if label == 0 { "no_digest" } else { "other_plan" });
            return (same, None);
        }
        let arrival = context.time_stamp;
        let latency = (arrival != 0 && arrival < now).then(|| now - arrival + ((queue * wait) >> 16));
        let queries = &self.plan.queries().queries;
        let value = |query: usize| match queries[query].value {
            Value::SwitchId => Some(SWITCH.into()),
            Value::IngressPort => ingress.map(u64::from),
            Value::EgressPort => Some(number.into()),
            Value::Timestamp => Some(now),
            Value::HopLatency => latency,
            Value::QueueBytes => Some(queue),
            Value::Utilisation => load,
            Value::PortBytes => Some(bytes),
        };
        let id = packet_id(&packet);
        let came = packet.id.map_or(label & 0xffff, u32::from);
        let (digest, looped) = self.encoder.encode_from(came.into(), id, hop, value);
        self.count("switch");
        if looped {
            self.count("loop");
        }
        let digest = digest as u16;
        let (source, destination) = (address(packet.source), address(packet.destination));
        let (source_port, destination_port) = packet.ports().unwrap_or_default();
        let record = sink.then(|| Record {
            time_ns: now,
            packet: id,
            source: [(source >> 64) as u64, source as u64],
            destination: [(destination >> 64) as u64, destination as u64],
            source_port,
            destination_port,
            digest,
            protocol: packet.protocol,
            hop_limit: packet.hop_limit,
            hops: hop as u8,
            carrier: carrier as u8,
            looped: looped.into(),
            reserved: [0; 5],
        });
        if sink {
            self.count("sink");
        }
        let ports = u32::from(source_port) << 16 | u32::from(destination_port);
        let stable = || (flow_hash(source, destination, packet.protocol, ports) >> 12).max(1);
        let frame = match (carrier, sink) {
            (IPV4_ID, true) => packets::with_word(same, ID, 0),
            (IPV4_ID, false) => packets::with_word(same, ID, digest),
            (_, true) => with_label(same, stable()),
            (_, false) => with_label(same, nibble << 16 | u32::from(digest)),
        };
        (frame, record)
    }
}

impl Rig {
    /// Five interfaces, each with another law; the fourth leads to a host.
    fn new(plan: &str, carriers: u32) -> Option<Rig> {
        let (sandbox, object) = rig::load("pint")?;
        let plan = Plan::open(plan, "test.toml").unwrap();
        let encoder = plan.encoder().unwrap();
        let interfaces = rig::pairs(&sandbox, 5);
        let mut config = Config::new(&plan, SWITCH, carriers).unwrap();
        config.replay = 1;
        object.map("pint_config").unwrap().put(&0u32, &config).unwrap();
        let map = object.map("pint_ports").unwrap();
        let odd = Tables {
            arithmetic: Arithmetic::new(5, 9).unwrap(),
            load_bits: 17,
            queue_shift: 3,
            random: true,
        };
        let laws = [
            None,
            Some((Law::Paper, Tables::PAPER, 100_000_000_000, 13_000)),
            Some((Law::Code, Tables::AUTHORS, 25_000_000_000, 9_000)),
            Some((Law::Paper, Tables { random: false, ..Tables::PAPER }, 10_000_000, 5_000_000)),
            Some((Law::Code, odd, 1_000, 1)),
        ];
        let mut ports = Vec::new();
        for (n, (&interface, law)) in interfaces.iter().zip(laws).enumerate() {
            let (number, key, sink) = (7 + 100 * n as u32, Key::new(99, n as u64), n == 3);
            let mut port = if sink { Port::new(number).to_hosts() } else { Port::new(number) };
            let mut load = None;
            if let Some((law, tables, rate, horizon_ns)) = law {
                port = port.with_load(law, tables, rate, horizon_ns, key);
                let tabled = Tabled::new(law, tables, rate, 1_000 * horizon_ns);
                load = Some((tabled, tabled, key));
            }
            map.put(&interface, &port).unwrap();
            ports.push((interface, ModelPort { number, sink, wait: port.wait.into(), bytes: 0, load }));
        }
        let ring = object.map("pint_records").unwrap().ring(RING).unwrap();
        let model = Model { plan, encoder, carriers, ports, counts: [0; COUNT] };
        Some(Rig { _sandbox: sandbox, object, interfaces, map, ring, model })
    }

    fn context(&self, random: &mut Random, now: u64) -> Context {
        let interface = if random.one_in(40) { 1 } else { random.pick(&self.interfaces) };
        let ingress =
            if random.one_in(10) { random.scaled(32) as u32 } else { random.pick(&self.interfaces) };
        let arrival = match random.below(6) {
            0 => 0,
            1 => now + random.below(3),
            _ => now.saturating_sub(random.scaled(40)),
        };
        let control = [now as u32, (now >> 32) as u32, random.scaled(32) as u32, 0, 0];
        Context { ingress_interface: ingress, interface, control, time_stamp: arrival }
    }

    fn same_port(&mut self, interface: u32, at: &str) {
        let Some(model) = self.model.port(interface).cloned() else { return };
        let port: Port = self.map.get(&interface).unwrap();
        assert_eq!(port.bytes, model.bytes, "{at}");
        if let Some((load, fresh, _)) = model.load {
            assert_eq!(fresh.resumed(port.load, port.last_ns, port.last_bytes), load, "{at}");
        }
    }

    /// Gives the same frames to programs and library.
    fn same_as_the_library(mut self, n: usize, rounds: u32, frame: impl Fn(&mut Random, u32) -> Vec<u8>) {
        let [source, arrival, switch] =
            ["pint_source", "pint_arrival", "pint_switch"].map(|name| self.object.program(name).unwrap());
        let mut random = Random(n as u64);
        let nibble = label_bits(self.model.plan.version());
        let mut now = 1_000_000_000u64;
        for round in 0..rounds {
            now = if random.one_in(50) { now - random.below(1_000) } else { now + random.scaled(24) };
            let frame = frame(&mut random, nibble);
            let context = self.context(&mut random, now);
            let at = format!("plan {n}, packet {round}: {context:?} {frame:02x?}");
            let run = |program: &Program| {
                let ran = program.run(&frame, &context, 1);
                ran.unwrap_or_else(|error| panic!("{error}: {} bytes, {at}", frame.len()))
            };
            if random.one_in(4) {
                let ran = run(&source);
                assert_eq!((ran.verdict, ran.packet), (-1, self.model.source(&frame, &context)), "{at}");
                let ran = run(&arrival);
                assert_eq!((ran.verdict, ran.packet), (-1, frame.clone()), "{at}");
            }
            let ran = run(&switch);
            let (expected, record) = self.model.switch(&frame, &context);
            assert_eq!((ran.verdict, ran.packet), (-1, expected), "{at}");
            assert_eq!(self.ring.next_record::<Record>(), record, "{at}");
            self.same_port(context.interface, &at);
        }
        self.same_counts();
        println!(
            "plan {n}: {rounds} packets, {:?}",
            COUNTS.iter().zip(self.model.counts).collect::<Vec<_>>()
        );
    }

    fn same_counts(&self) {
        let counts = self.object.map("pint_counts").unwrap();
        let counts: [u64; COUNT] = std::array::from_fn(|n| counts.count(n as u32).unwrap());
        assert_eq!(counts, self.model.counts, "{COUNTS:?}");
    }
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn digests_loads_and_records_are_those_of_the_library() {
    let rounds = rig::rounds();
    for (n, plan) in PLANS.iter().enumerate() {
        let carriers = if n == 3 { IPV4_ID } else { IPV4_ID | FLOW_LABEL };
        let Some(rig) = Rig::new(plan, carriers) else { return };
        rig.same_as_the_library(n, rounds, packets::any);
    }
}

/// IPv6 alone, half of it with a hop-by-hop header of any length that a trace may have.
#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn digests_in_labels_of_traced_packets_are_those_of_the_library() {
    let frame = |random: &mut Random, nibble: u32| {
        let label = packets::label(random, nibble);
        if random.one_in(2) { packets::traced(random, label) } else { packets::ipv6(random, label) }
    };
    let Some(rig) = Rig::new(PLANS[0], FLOW_LABEL) else { return };
    rig.same_as_the_library(0, rig::rounds(), frame);
}

/// Interfaces whose queues hold different numbers of bytes: the program reads what `tc` shows.
#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn the_queue_is_that_of_the_port() {
    let plan = r#"
        bits = 16
        query = [{ name = "queue", value = "queue-bytes", aggregation = "max", bits = 16, approximation = "exact" }]
    "#;
    let Some(rig) = Rig::new(plan, IPV4_ID) else { return };
    let mut config = Config::new(&rig.model.plan, SWITCH, IPV4_ID).unwrap();
    config.switch_id = SWITCH;
    rig.object.map("pint_config").unwrap().put(&0u32, &config).unwrap();
    let program = rig.object.program("pint_switch").unwrap();
    let mut random = Random(1);
    for (n, &interface) in rig.interfaces.iter().enumerate() {
        rig::hold(n, interface, 3 * n + 1, 700);
        let expected = rig::backlog(n);
        let Some(frame) = (0..1000).map(|_| packets::ipv4(&mut random)).find(|frame| {
            ip(frame).is_some_and(|ip| {
                ip.dont_fragment && !ip.fragment && ip.hop_limit < 64 && 64 - ip.hop_limit == 1
            })
        }) else {
            panic!("no frame of a first hop");
        };
        let context = Context { interface, ..Context::default() };
        let ran = program.run(&frame, &context, 1).unwrap();
        let digest = if n == 3 { None } else { ip(&ran.packet).unwrap().id };
        let record =
            (n == 3).then(|| rig.object.map("pint_records").unwrap().ring(RING).unwrap().next_record());
        let digest = digest.or(record.flatten().map(|record: Record| record.digest)).unwrap();
        assert_eq!(u64::from(digest), expected, "interface {n}");
        assert_eq!(rig::backlog(n), expected);
        println!("interface {n}: {expected} B queued");
    }
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn costs() {
    for (name, plan) in [("the paper's three queries", PLANS[0]), ("a path in 12 bits", PLANS[3])] {
        let Some(rig) = Rig::new(plan, IPV4_ID | FLOW_LABEL) else { return };
        let mut config = Config::new(&rig.model.plan, SWITCH, IPV4_ID | FLOW_LABEL).unwrap();
        config.switch_id = SWITCH;
        rig.object.map("pint_config").unwrap().put(&0u32, &config).unwrap();
        let mut random = Random(3);
        let label = rig.model.plan.version() << 16 | 7;
        // The third with a trace of five switches, 96 bytes.
        let makers: [fn(&mut Random, u32) -> Vec<u8>; 3] = [
            |random, _| packets::ipv4(random),
            packets::ipv6,
            |random, label| loop {
                let frame = packets::traced(random, label);
                if frame[55] == 11 {
                    break frame;
                }
            },
        ];
        let frames = makers.map(|make| {
            let usual = |ip: Ip| {
                let whole = !ip.fragment && ip.dont_fragment && ip.payload.len() >= 24;
                whole && ip.hop_limit == 62 && ip.protocol == 6
            };
            let mut frame = make(&mut random, label);
            while !ip(&frame).is_some_and(usual) {
                frame = make(&mut random, label);
            }
            frame
        });
        for (program, port) in [
            ("pint_arrival", 0),
            ("pint_source", 0),
            ("pint_switch", 0),
            ("pint_switch", 1),
            ("pint_switch", 3),
        ] {
            let kind = ["", ", with its load", "", ", with its load, sink"][port];
            for (carrier, frame) in ["IPv4 id", "flow label", "flow label and trace"].iter().zip(&frames) {
                let context = Context { interface: rig.interfaces[port], ..Context::default() };
                let label = format!("{program}{kind}, {carrier}, {name}");
                rig::cost(&label, &rig.object.program(program).unwrap(), frame, &context);
            }
        }
    }
}
