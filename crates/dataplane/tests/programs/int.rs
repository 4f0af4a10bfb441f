//! `bpf/int.bpf.c` against a model here, whose packets the collector's parser reads.

use super::packets::{self, ip, seal};
use super::rig::{self, Random};
use ::pint::hash::Key;
use ::pint::utilisation::{Law, Tabled, Tables, scaled_integer};
use std::net::IpAddr;
use weftline_collect::int::{Carrier, Header};
use weftline_collect::ip::Ip;
use weftline_collect::packet::{Markers, Telemetry, telemetry};
use weftline_collect::pint::packet_id;
use weftline_dataplane::int::{COUNTS, Config, DOMAIN, DOMAIN_BYTES, DOMAIN_RATE, DOMAIN_SENT, PORT, Report};
use weftline_dataplane::kernel::{Context, Map, Object, Ring, Sandbox};
use weftline_dataplane::{Plain, Port, flow_hash, stack};

const COUNT: usize = COUNTS.len();
const RING: usize = 1 << 22;
const MTU: [usize; 4] = [1500, 1500, 300, 120];
/// UDP header, shim, MD header.
const PART: usize = 24;

struct Model {
    config: Config,
    /// By interface, in the order of [`MTU`].
    ports: Vec<(u32, ModelPort)>,
    counts: [u64; COUNT],
}

#[derive(Clone, Copy)]
struct ModelPort {
    number: u32,
    host: bool,
    mtu: usize,
    rate: u64,
    wait: u64,
    bytes: u64,
    load: Option<(Tabled, Tabled, Key)>,
}

/// What a header asks of a hop.
#[derive(Clone, Copy)]
struct Asked {
    bitmap: u16,
    domain: u16,
    domain_bitmap: u16,
    words: usize,
}

/// Where IP ends in a frame that may carry INT.
fn after_ip(frame: &[u8]) -> Option<usize> {
    let packet = ip(frame)?;
    let at = if packet.id.is_some() { 34 } else { 54 };
    let plain = match packet.id {
        Some(_) => frame[14] & 15 == 5,
        None => frame[20] == packet.protocol && ![0, 43, 44, 51, 60].contains(&frame[20]),
    };
    (!packet.fragment && plain && length_of(frame) > 0).then_some(at)
}

fn length_of(frame: &[u8]) -> usize {
    let at = if frame[14] >> 4 == 4 { 16 } else { 18 };
    usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]))
}

/// The frame with another length and protocol in its IP header; the checksum follows word by word.
fn with_ip(frame: &mut [u8], length: usize, protocol: u8) {
    let length = (length as u16).to_be_bytes();
    if frame[14] >> 4 == 6 {
        frame[18..20].copy_from_slice(&length);
        frame[20] = protocol;
        return;
    }
    let old: u32 = [16, 22].iter().map(|&at| 0xffff - word(frame, at)).sum();
    frame[16..18].copy_from_slice(&length);
    frame[23] = protocol;
    let new: u32 = [16, 22].iter().map(|&at| word(frame, at)).sum();
    let mut sum = (0xffff - word(frame, 24)) + old + new;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn word(frame: &[u8], at: usize) -> u32 {
    u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]))
}

fn halves(address: IpAddr) -> (u128, [u64; 2]) {
    let whole: u128 = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    };
    (whole, [(whole >> 64) as u64, whole as u64])
}

/// What a hop has to say.
#[derive(Clone, Copy)]
struct Reported {
    node: u32,
    domain: u16,
    interfaces: (u32, u32),
    numbers: (u32, u32),
    latency: Option<u64>,
    queue: u64,
    arrival: Option<u64>,
    now: u64,
    load: Option<u64>,
    bytes: u64,
    rate: u64,
    sent: u64,
}

impl Reported {
    /// The words of a hop; None if there is no room for them.
    fn words(&self, asked: Asked) -> Option<Vec<u32>> {
        let below_all = |value: u64| value.min(u64::from(u32::MAX - 1)) as u32;
        let mut words: Vec<u32> = Vec::new();
        let two = |words: &mut Vec<u32>, value: u64| words.extend([(value >> 32) as u32, value as u32]);
        for bit in (0..15).filter(|bit| asked.bitmap & 0x8000 >> bit != 0) {
            match bit {
                0 => words.push(self.node),
                1 => words.push(self.numbers.0 << 16 | self.numbers.1 & 0xffff),
                2 => words.push(self.latency.map_or(u32::MAX, below_all)),
                3 => words.push(self.queue.min(0xff_ffff) as u32),
                4 => two(&mut words, self.arrival.unwrap_or(u64::MAX)),
                5 => two(&mut words, self.now),
                6 => words.extend([self.interfaces.0, self.interfaces.1]),
                7 => words.push(self.load.map_or(u32::MAX, below_all)),
                _ => words.push(u32::MAX),
            }
        }
        let end = asked.words.checked_sub(usize::from(asked.bitmap & 1))?;
        if words.len() > end {
            return None;
        }
        if asked.domain == self.domain && asked.domain != 0 {
            if asked.domain_bitmap & DOMAIN_BYTES != 0 && words.len() + 2 <= end {
                two(&mut words, self.bytes);
            }
            if asked.domain_bitmap & DOMAIN_RATE != 0 && words.len() < end {
                words.push(below_all(self.rate / 1000));
            }
            if asked.domain_bitmap & DOMAIN_SENT != 0 && words.len() + 2 <= end {
                two(&mut words, self.sent);
            }
        }
        words.resize(asked.words, u32::MAX);
        Some(words)
    }
}

impl Model {
    fn count(&mut self, name: &str) {
        self.counts[COUNTS.iter().position(|&count| count == name).unwrap()] += 1;
    }

    fn port(&self, interface: u32) -> Option<ModelPort> {
        self.ports.iter().find(|(known, _)| *known == interface).map(|(_, port)| *port)
    }

    /// The frame as it leaves, and what the sink reports.
    fn switch(&mut self, frame: &[u8], context: &Context) -> (Vec<u8>, Option<(Report, Vec<u8>)>) {
        let same = frame.to_vec();
        let now = u64::from(context.control[1]) << 32 | u64::from(context.control[0]);
        let queue = u64::from(context.control[2]);
        let Some((_, port)) = self.ports.iter_mut().find(|(known, _)| *known == context.interface) else {
            return (same, None);
        };
        port.bytes += frame.len() as u64;
        let load = port.load.as_mut().map(|(load, _, key)| {
            scaled_integer(load.update(1_000 * now, queue, frame.len() as u32, key.word(now)))
        });
        let port = *port;
        let from = self.port(context.ingress_interface);
        let from_host = from.is_some_and(|from| from.host);
        if from_host && port.host {
            return (same, None);
        }
        let Some(at) = after_ip(frame) else {
            if from_host {
                self.count("unfit");
            }
            return (same, None);
        };
        let arrival = Some(context.time_stamp).filter(|&arrival| arrival != 0 && arrival < now);
        let reported = Reported {
            node: self.config.node,
            domain: self.config.domain,
            interfaces: (context.ingress_interface, context.interface),
            numbers: (from.map_or(0xffff, |from| from.number & 0xffff), port.number),
            latency: arrival.map(|arrival| now - arrival + ((queue * port.wait) >> 16)),
            queue,
            arrival,
            now,
            load,
            bytes: port.bytes,
            rate: port.rate,
            sent: u64::from(context.control[4]) << 32 | u64::from(context.control[3]),
        };
        let packet = ip(frame).unwrap();
        if from_host {
            (self.source(same, at, &packet, port, reported), None)
        } else {
            self.later(same, at, &packet, port, reported)
        }
    }

    fn source(
        &mut self,
        frame: Vec<u8>,
        at: usize,
        packet: &Ip,
        port: ModelPort,
        reported: Reported,
    ) -> Vec<u8> {
        let config = self.config;
        if packet_id(packet) >> 32 >= config.sample {
            self.count("not_chosen");
            return frame;
        }
        let asked = Asked {
            bitmap: config.bitmap,
            domain: config.domain,
            domain_bitmap: config.domain_bitmap,
            words: config.hop_words.into(),
        };
        let mut words = reported.words(asked).unwrap();
        let room = |words: usize| {
            let more = PART + 4 * words;
            frame.len() + more <= port.mtu + 14 && length_of(&frame) + more <= 0xffff
        };
        let (mut flags, mut remaining) = (0x20, config.max_hops - 1);
        if !room(words.len()) {
            if !room(0) {
                self.count("source_mtu");
                return frame;
            }
            (flags, remaining) = (0x22, config.max_hops);
            words.clear();
        }
        let (ports, length) = (packet.ports().unwrap_or_default(), length_of(&frame));
        let ports = u32::from(ports.0) << 16 | u32::from(ports.1);
        let (source, destination) = (halves(packet.source).0, halves(packet.destination).0);
        let hash = flow_hash(source, destination, packet.protocol, ports);
        let more = PART + 4 * words.len();
        let transport = length - if packet.id.is_some() { 20 } else { 0 };
        let mut part = Vec::new();
        part.extend((0xc000 | (hash >> 18) as u16).to_be_bytes());
        part.extend(PORT.to_be_bytes());
        part.extend(((transport + more) as u16).to_be_bytes());
        part.extend([0, 0, 0x18, 3 + words.len() as u8, 0, packet.protocol]);
        part.extend([flags, 0, config.hop_words, remaining]);
        for field in [config.bitmap, config.domain, config.domain_bitmap, 0] {
            part.extend(field.to_be_bytes());
        }
        part.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        self.count(if words.is_empty() { "source_m" } else { "source" });
        let mut out = frame;
        out.splice(at..at, part);
        with_ip(&mut out, length + more, 17);
        out
    }

    fn later(
        &mut self,
        frame: Vec<u8>,
        at: usize,
        packet: &Ip,
        port: ModelPort,
        reported: Reported,
    ) -> (Vec<u8>, Option<(Report, Vec<u8>)>) {
        let have = packet.payload.len();
        if packet.protocol != 17 || have < 8 || packet.payload[2..4] != PORT.to_be_bytes() {
            return (frame, None);
        }
        let bytes = packet.payload;
        let field = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let shape = have >= PART && bytes[8] >> 2 == 6 && bytes[12] >> 4 == 2 && bytes[9] >= 3;
        if !shape || have < 12 + 4 * usize::from(bytes[9]) {
            self.count("malformed");
            return (frame, None);
        }
        let asked = Asked {
            bitmap: field(16),
            domain: field(18),
            domain_bitmap: field(20),
            words: usize::from(bytes[14] & 31),
        };
        let Some(words) = reported.words(asked) else {
            self.count("malformed");
            return (frame, None);
        };
        let length = length_of(&frame);
        let part_bytes = 12 + 4 * usize::from(bytes[9]);
        if port.host {
            // The kernel takes nothing off that would leave no network header.
            let mut hop = [[0xff; 4]; 32];
            hop.iter_mut().zip(&words).for_each(|(to, word)| *to = word.to_be_bytes());
            let report = Report {
                time_ns: reported.now,
                source: halves(packet.source).1,
                destination: halves(packet.destination).1,
                part_bytes: part_bytes as u32,
                hop_words: asked.words as u32,
                hop,
            };
            let part = bytes[..part_bytes].to_vec();
            let protocol = bytes[11];
            let mut out = frame;
            out.drain(at..at + part_bytes);
            with_ip(&mut out, (length + 0x1_0000 - part_bytes) & 0xffff, protocol);
            self.count("sink");
            return (out, Some((report, part)));
        }
        if asked.words == 0 {
            return (frame, None);
        }
        let mut out = frame;
        if bytes_remaining(&out, at) == 0 {
            out[at + 12] |= 4;
            self.count("transit_e");
            return (out, None);
        }
        let more = 4 * words.len();
        let shim = usize::from(out[at + 9]) + words.len();
        if shim > 255 || length + more > 0xffff || out.len() + more > port.mtu + 14 {
            out[at + 12] |= 2;
            self.count("transit_m");
            return (out, None);
        }
        let udp = word(&out, at + 4) as usize + more;
        out[at + 4..at + 6].copy_from_slice(&(udp as u16).to_be_bytes());
        out[at + 9] = shim as u8;
        out[at + 15] -= 1;
        out.splice(
            at + PART..at + PART,
            words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>(),
        );
        with_ip(&mut out, length + more, 17);
        self.count("transit");
        (out, None)
    }
}

fn bytes_remaining(frame: &[u8], at: usize) -> u8 {
    frame[at + 15]
}

struct Rig {
    _sandbox: Sandbox,
    object: Object,
    interfaces: Vec<u32>,
    ports: Map,
    ring: Ring,
    model: Model,
}

impl Rig {
    /// Two interfaces to hosts, the first and the last; two between switches.
    fn new(config: Config) -> Option<Rig> {
        let (sandbox, object) = rig::load("int")?;
        let interfaces = rig::pairs(&sandbox, MTU.len());
        let map = object.map("int_ports").unwrap();
        object.map("int_config").unwrap().put(&0u32, &config).unwrap();
        let mut ports = Vec::new();
        for (n, (&interface, mtu)) in interfaces.iter().zip(MTU).enumerate() {
            sandbox.ip(&format!("link set p{n} mtu {mtu}")).unwrap();
            let (number, host) = (70_000 + n as u32, n == 0 || n == 3);
            let (rate, horizon_ns, key) = (1_000_000_000 * (n as u64 + 1), 20_000, Key::new(5, n as u64));
            let mut port = if host { Port::new(number).to_hosts() } else { Port::new(number) };
            let mut load = None;
            if n > 0 {
                port = port.with_load(Law::Paper, Tables::PAPER, rate, horizon_ns, key);
                let tabled = Tabled::new(Law::Paper, Tables::PAPER, rate, 1_000 * horizon_ns);
                load = Some((tabled, tabled, key));
            }
            map.put(&interface, &port).unwrap();
            let (wait, rate) = (port.wait.into(), port.bits_per_second);
            ports.push((interface, ModelPort { number, host, mtu, rate, wait, bytes: 0, load }));
        }
        let ring = object.map("int_reports").unwrap().ring(RING).unwrap();
        let model = Model { config, ports, counts: [0; COUNT] };
        Some(Rig { _sandbox: sandbox, object, interfaces, ports: map, ring, model })
    }
}

/// A frame with INT that some hops have written, or nearly so.
fn stamped(random: &mut Random, rig: &Rig) -> Vec<u8> {
    let mut model = Model { config: rig.model.config, ports: rig.model.ports.clone(), counts: [0; COUNT] };
    let mut frame = packets::any(random, 0);
    model.config.sample = 1 << 32;
    model.config.max_hops = random.pick(&[1, 2, 3, 8, 255]);
    let hops = random.below(5);
    for hop in 0..=hops {
        let from = rig.interfaces[if hop == 0 { 0 } else { 1 }];
        let context = Context { ingress_interface: from, interface: rig.interfaces[1], ..Context::default() };
        frame = model.switch(&frame, &context).0;
    }
    let Some(at) = after_ip(&frame).filter(|at| frame.len() > at + PART) else { return frame };
    match random.below(12) {
        0 => frame[at + random.below(PART as u64) as usize] = random.word() as u8,
        1 => frame[at + 15] = random.below(3) as u8,
        2 => frame[at + 9] = frame[at + 9].wrapping_add(random.below(3) as u8),
        3 => frame[at + 14] = random.below(32) as u8,
        4 => {
            frame[at + 14] = 31;
            random.fill(&mut frame[at + 16..at + 18]);
        }
        5 => frame[at + 18..at + 20].copy_from_slice(&random.pick(&[DOMAIN, 0, 77]).to_be_bytes()),
        6 => {
            // A long stack.
            let old = usize::from(frame[at + 9]);
            let words = random.pick(&[200usize, 250, 252, 255 - old.min(255)]);
            let words = words.min(255 - old);
            frame.splice(at + PART..at + PART, vec![7; 4 * words]);
            frame[at + 9] = (old + words) as u8;
            let length = length_of(&frame) + 4 * words;
            with_ip(&mut frame, length, 17);
        }
        _ => {}
    }
    frame
}

const ASKED: [(u16, u16, u8); 8] = [
    (0x9000, 0, 8),
    (0xffff, 0, 4),
    (0xd400, DOMAIN_BYTES | DOMAIN_RATE, 6),
    (0x8001, DOMAIN_RATE, 255),
    (0x3f00, 0, 1),
    (0x0101, DOMAIN_BYTES, 16),
    (stack::BITMAP, stack::DOMAIN_BITMAP, 5),
    (0x0001, DOMAIN_BYTES | DOMAIN_SENT, 16),
];

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn packets_and_reports_are_those_of_the_model() {
    for (n, (bitmap, domain, max_hops)) in ASKED.into_iter().enumerate() {
        let mut config = Config::new(0x1234_0000 + n as u32, bitmap, domain, max_hops).unwrap();
        config.replay = 1;
        config.sample = if n == 1 { 3 << 30 } else { 1 << 32 };
        let Some(mut rig) = Rig::new(config) else { return };
        let [arrival, switch] = ["int_arrival", "int_switch"].map(|name| rig.object.program(name).unwrap());
        let mut random = Random(n as u64 + 50);
        let (mut now, mut parsed) = (1_000_000_000u64, 0);
        for round in 0..rig::rounds() / ASKED.len() as u32 {
            now += random.scaled(20);
            let frame =
                if random.one_in(3) { packets::any(&mut random, 0) } else { stamped(&mut random, &rig) };
            let interface = if random.one_in(40) { 1 } else { random.pick(&rig.interfaces) };
            let ingress =
                if random.one_in(10) { random.scaled(32) as u32 } else { random.pick(&rig.interfaces) };
            let arrived = if random.one_in(5) { 0 } else { now.saturating_sub(random.scaled(40)) };
            let sent = random.scaled(64);
            let control =
                [now as u32, (now >> 32) as u32, random.scaled(32) as u32, sent as u32, (sent >> 32) as u32];
            let context = Context { ingress_interface: ingress, interface, control, time_stamp: arrived };
            let at = format!("configuration {n}, packet {round}: {context:?} {frame:02x?}");
            if random.one_in(16) {
                let ran = arrival.run(&frame, &context, 1).unwrap();
                assert_eq!((ran.verdict, ran.packet), (-1, frame.clone()), "{at}");
            }
            let ran = switch.run(&frame, &context, 1).unwrap_or_else(|error| panic!("{error}: {at}"));
            let (expected, report) = rig.model.switch(&frame, &context);
            assert_eq!(ran.verdict, -1, "{at}");
            assert_eq!(ran.packet, expected, "{at}");
            let record = rig.ring.next_bytes().map(|bytes| {
                let (head, part) = bytes.split_at(size_of::<Report>());
                (Report::from_bytes(head).unwrap(), part.to_vec())
            });
            assert_eq!(record, report, "{at}");
            parsed += u64::from(reads_as_int(&expected, &frame));
            if let Some(model) = rig.model.port(interface) {
                let port: Port = rig.ports.get(&interface).unwrap();
                assert_eq!(port.bytes, model.bytes, "{at}");
                if let Some((load, fresh, _)) = model.load {
                    assert_eq!(fresh.resumed(port.load, port.last_ns, port.last_bytes), load, "{at}");
                }
            }
        }
        let counts = rig.object.map("int_counts").unwrap();
        let counts: [u64; COUNT] = std::array::from_fn(|n| counts.count(n as u32).unwrap());
        assert_eq!(counts, rig.model.counts, "{COUNTS:?}");
        println!(
            "configuration {n}: {} packets, {parsed} read by the collector, {:?}",
            rig::rounds() / ASKED.len() as u32,
            COUNTS.iter().zip(counts).collect::<Vec<_>>()
        );
    }
}

/// A packet that just got values is one that the collector reads, with the flow that it has underneath.
fn reads_as_int(frame: &[u8], before: &[u8]) -> bool {
    if frame.len() <= before.len() || after_ip(frame).is_none() {
        return false;
    }
    let mut seen = false;
    telemetry(&ip(frame).unwrap(), &Markers::default(), &mut |found| {
        if let Ok(Telemetry::Int { carrier: Carrier::UdpHeader { .. }, header: Header::Md(md), .. }) = found {
            seen |= md.hop_words > 0;
        }
    });
    seen
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn the_queue_is_that_of_the_port() {
    let Some(rig) = Rig::new(Config::new(5, 0x9000, 0, 8).unwrap()) else { return };
    let program = rig.object.program("int_switch").unwrap();
    for n in [1, 2] {
        rig::hold(n, rig.interfaces[n], 20 * n, 250);
        let expected = rig::backlog(n);
        let frame = datagram(60);
        let context = Context {
            ingress_interface: rig.interfaces[0],
            interface: rig.interfaces[n],
            ..Context::default()
        };
        let out = program.run(&frame, &context, 1).unwrap().packet;
        let mut queue = None;
        telemetry(&ip(&out).unwrap(), &Markers::default(), &mut |found| {
            if let Ok(Telemetry::Int { header: Header::Md(md), .. }) = found {
                let values = md.hops().next().unwrap().values();
                assert_eq!(values.node, Some(5));
                queue = values.queue;
            }
        });
        assert_eq!(queue, Some((0, expected as u32)));
        println!("interface {n}: {expected} B queued");
    }
}

/// Hosts that send and read INT themselves: between switches whose ports are not marked, the program writes what
/// [`stack::push`] does.
#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn a_switch_between_hosts_with_int_writes_as_the_stack_of_the_library() {
    let mut config = Config::new(77, stack::BITMAP, stack::DOMAIN_BITMAP, 8).unwrap();
    config.replay = 1;
    let Some(rig) = Rig::new(config) else { return };
    let switch = rig.object.program("int_switch").unwrap();
    let interface = rig.interfaces[1];
    let port: Port = rig.ports.get(&interface).unwrap();
    let rate_kbps = (port.bits_per_second / 1000) as u32;
    let mut random = Random(91);
    let (mut written, mut left) = (0, 0);
    for round in 0..rig::rounds() / 8 {
        let mut frame = datagram(random.below(900) as usize);
        let rest = frame.len() - 34;
        let max_hops = random.pick(&[0, 1, 2, 5, 40]);
        let header = stack::header(random.word() as u16, rest, 17, max_hops);
        frame.splice(34..34, header);
        with_ip(&mut frame, rest + 20 + stack::HEADER, 17);
        let mut hops = Vec::new();
        for _ in 0..random.below(7) {
            let (sent, time_ns, queue) = (random.scaled(64), random.scaled(62), random.scaled(32) as u32);
            let control = [time_ns as u32, (time_ns >> 32) as u32, queue, sent as u32, (sent >> 32) as u32];
            let context =
                Context { ingress_interface: rig.interfaces[2], interface, control, ..Context::default() };
            let ran = switch.run(&frame, &context, 1).unwrap();
            let hop = stack::Hop { node: 77, queue, time_ns, rate_kbps, sent };
            let before = frame.len();
            stack::push(&mut frame, &hop);
            assert_eq!(ran.packet, frame, "packet {round}");
            if frame.len() > before {
                hops.push(stack::Hop { queue: queue.min(0xff_ffff), ..hop });
                written += 1;
            } else {
                left += 1;
            }
        }
        assert_eq!(stack::read(&frame[34..]).unwrap().hops, hops);
    }
    assert!(written > 0 && left > 0);
    println!("{written} hops written, {left} found no hops remaining");
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn bytes_sent_are_those_of_the_port() {
    let Some(rig) = Rig::new(Config::new(5, stack::BITMAP, stack::DOMAIN_BITMAP, 8).unwrap()) else { return };
    let program = rig.object.program("int_switch").unwrap();
    for n in [1, 2] {
        rig::hold(n, rig.interfaces[n], 40 * n, 250);
        let expected = rig::transmitted(n);
        let mut frame = datagram(60);
        let rest = frame.len() - 34;
        frame.splice(34..34, stack::header(50_000, rest, 17, 8));
        with_ip(&mut frame, rest + 20 + stack::HEADER, 17);
        let ingress_interface = rig.interfaces[3 - n];
        let context = Context { ingress_interface, interface: rig.interfaces[n], ..Context::default() };
        let out = program.run(&frame, &context, 1).unwrap().packet;
        let hops = stack::read(&out[34..]).unwrap().hops;
        assert_eq!((hops.len(), hops[0].sent, u64::from(hops[0].queue)), (1, expected, rig::backlog(n)));
        assert!(expected > 0 && hops[0].time_ns > 0);
        println!("interface {n}: {expected} B transmitted, {} B queued", hops[0].queue);
    }
}

/// A UDP packet of IPv4 with `bytes` of payload.
fn datagram(payload: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((28 + payload as u16).to_be_bytes());
    frame.extend([0, 7, 0x40, 0, 63, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0, 80]);
    frame.extend((8 + payload as u16).to_be_bytes());
    frame.extend([0x12, 0x34]);
    frame.extend(vec![5; payload]);
    seal(&mut frame);
    frame
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn costs() {
    for (bitmap, name) in [(0x9000, "node and queue"), (0xfd00, "all of a hop")] {
        let Some(mut rig) = Rig::new(Config::new(5, bitmap, 0, 255).unwrap()) else { return };
        let [host, inner] = [rig.interfaces[0], rig.interfaces[1]];
        let frame = datagram(200);
        let at =
            |ingress_interface, interface| Context { ingress_interface, interface, ..Context::default() };
        let stamped = rig.model.switch(&frame, &at(host, inner)).0;
        let switch = rig.object.program("int_switch").unwrap();
        for (what, frame, context) in [
            ("source", &frame, at(host, inner)),
            ("transit", &stamped, at(inner, inner)),
            ("sink", &stamped, at(inner, rig.interfaces[3])),
        ] {
            rig::cost(&format!("int_switch, {what}, {name}"), &switch, frame, &context);
            while rig.ring.next_bytes().is_some() {}
        }
        let plain = at(inner, inner);
        rig::cost(&format!("int_switch, no INT, {name}"), &switch, &frame, &plain);
    }
}
