//! `bpf/hula.bpf.c` against the simulator's HULA, event by event: probes, packets, departures.

use super::packets::{self, ip, with_word};
use super::rig::{self, Random};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weftline_collect::ip::Ip;
use weftline_dataplane::flow_hash;
use weftline_dataplane::hula::{self, COUNTS, Config, Flowlet, Port, Prefix, Tor};
use weftline_dataplane::kernel::{Context, Object, Sandbox, Wire};
use weftline_sim::balance::best_hops::Hop;
use weftline_sim::balance::hula::{Hula, HulaParameters, PassedOn};
use weftline_sim::balance::{
    BalancerParameters, Departure, Fabric, FlowletParameters, Held, LoadBalancer, Neighbour, Place, Ports,
    Side, SwitchContext,
};
use weftline_sim::counters::CounterSet;
use weftline_sim::packet::Packet;
use weftline_sim::tag::ETHERTYPE;
use weftline_sim::units::{Rate, Time};

pub const NEXT: i32 = -1;
pub const SHOT: i32 = 2;
pub const REDIRECT: i32 = 7;
pub const TORS: u32 = 12;
/// An address of ToR 0's rack that is on this ToR.
pub const MOVED: ([u8; 4], u32) = ([10, 0, 0, 7], 5);

/// A switch and settings to try.
pub struct Case {
    pub own: Option<u32>,
    pub sides: Vec<Side>,
    pub parameters: HulaParameters,
    /// A port whose interface is down, and one with a small MTU.
    pub down: Option<u32>,
    pub small: Option<(u32, usize)>,
}

/// What switches of one kind have.
pub struct Kind<'a> {
    pub object: &'a str,
    /// Names of the counters.
    pub counts: &'static [&'static str],
    pub start: &'a dyn Fn(&Place) -> Box<Hula>,
    pub subflows: bool,
}

pub fn parameters() -> HulaParameters {
    HulaParameters {
        interval: Time::from_us(200),
        probe_size: 64,
        probe_class: 0,
        release: true,
        time_constant: Time::from_us(400),
        failure_time: Time::from_us(600),
        flowlets: FlowletParameters { gap: Time::from_us(2_000), slots: 61 },
        refresh_on_best: true,
        suppress: true,
        hysteresis: 0,
        hardware: false,
        staggered: true,
    }
}

fn cases() -> Vec<Case> {
    let sides = |numbers: [(Side, usize); 3]| {
        numbers.into_iter().flat_map(|(side, ports)| vec![side; ports]).collect::<Vec<_>>()
    };
    let odd = FlowletParameters { gap: Time::from_us(250), slots: 200 };
    let loose = HulaParameters { release: false, refresh_on_best: false, suppress: false, ..parameters() };
    vec![
        Case {
            own: Some(2),
            sides: sides([(Side::Host, 2), (Side::Up, 4), (Side::Host, 1)]),
            parameters: parameters(),
            down: None,
            small: None,
        },
        Case {
            own: None,
            sides: sides([(Side::Down, 4), (Side::Up, 4), (Side::Host, 0)]),
            parameters: HulaParameters { time_constant: Time(333_333_000), ..parameters() },
            down: None,
            small: Some((1, 160)),
        },
        Case {
            own: None,
            sides: sides([(Side::Up, 3), (Side::Down, 3), (Side::Host, 2)]),
            parameters: HulaParameters { hardware: true, flowlets: odd, hysteresis: 30, ..loose },
            down: Some(4),
            small: None,
        },
        Case {
            own: None,
            sides: sides([(Side::Down, 64), (Side::Up, 0), (Side::Host, 0)]),
            parameters: HulaParameters { hardware: true, probe_size: 100, ..parameters() },
            down: None,
            small: None,
        },
    ]
}

/// What the simulator's balancer sees of its switch.
pub struct World {
    pub now: Time,
    pub rates: Vec<Rate>,
    down: Option<u32>,
    /// By ToR, as the host of that number; masks of ports.
    pub allowed: Vec<u64>,
    takers: Vec<u64>,
    sent: Vec<(u32, Packet)>,
    /// Of the packet that is there.
    pub word: u64,
}

impl Ports for World {
    fn now(&self) -> Time {
        self.now
    }
    fn backlog(&self, _port: u32) -> u64 {
        0
    }
    fn rate(&self, port: u32) -> Rate {
        self.rates[port as usize]
    }
    fn word(&self) -> u64 {
        self.word
    }
}

impl SwitchContext for World {
    fn is_up(&self, port: u32) -> bool {
        self.down != Some(port)
    }
    fn leads_to(&self, port: u32, host: u32) -> bool {
        self.allowed[host as usize] >> port & 1 != 0
    }
    fn leads_here(&self, neighbour: &Neighbour, host: u32) -> bool {
        self.takers[host as usize] >> neighbour.port & 1 != 0
    }
    fn send(&mut self, port: u32, probe: Packet) {
        self.sent.push((port, probe));
    }
    fn release(&mut self, _packet: Held) {
        unreachable!("HULA holds no packets");
    }
    fn wake(&mut self, _at: Time) {
        unreachable!("HULA's timer is periodic");
    }
}

pub struct Rig {
    pub object: Object,
    /// By port.
    pub interfaces: Vec<u32>,
    pub addresses: Vec<[u8; 12]>,
    wires: Vec<Wire>,
    pub case: Case,
    pub world: World,
    pub hula: Box<Hula>,
    names: &'static [&'static str],
    pub counts: Vec<u64>,
    _sandbox: Sandbox,
}

/// The address of interface `p{n}`.
pub fn own_address(n: usize) -> [u8; 6] {
    [2, 0xaa, 0, 0, 0, n as u8]
}

impl Rig {
    fn new(case: Case, random: &mut Random) -> Option<Rig> {
        let parameters = case.parameters;
        let start = |at: &Place| parameters.start(at);
        let kind = Kind { object: "hula", counts: &COUNTS, start: &start, subflows: false };
        Rig::of(&kind, case, random, &|_, _| {})
    }

    /// `more`: fills the maps that are the kind's own.
    pub fn of(kind: &Kind, case: Case, random: &mut Random, more: &dyn Fn(&Object, &Place)) -> Option<Rig> {
        let (sandbox, object) = rig::load(kind.object)?;
        let interfaces = rig::pairs(&sandbox, case.sides.len());
        for n in 0..interfaces.len() {
            let address = own_address(n).map(|byte| format!("{byte:02x}")).join(":");
            sandbox.ip(&format!("link set p{n} address {address}")).unwrap();
        }
        if let Some(port) = case.down {
            sandbox.ip(&format!("link set p{port} down")).unwrap();
        }
        if let Some((port, mtu)) = case.small {
            sandbox.ip(&format!("link set p{port} mtu {mtu}")).unwrap();
        }
        let wire = |n: usize| Wire::open(sandbox.interface(&format!("q{n}")).unwrap(), ETHERTYPE).unwrap();
        let wires = (0..interfaces.len()).map(wire).collect();
        let neighbours: Vec<Neighbour> =
            (0..).zip(&case.sides).map(|(port, &side)| Neighbour { node: 9, port, side }).collect();
        let racks: Vec<u32> = (0..TORS).collect();
        let fabric = Arc::new(Fabric { tor_of: racks.clone(), host_on: racks, ..Fabric::default() });
        let place = Place {
            seed: 7,
            node: 33,
            name: "s",
            tier: 1,
            ways_below: 1,
            tor: case.own,
            neighbours: &neighbours,
            fabric: &fabric,
            largest_packet: 0,
            subflows: kind.subflows,
            murmur: false,
            only_data: false,
            released: false,
        };
        let fabric_ports = (0..).zip(&case.sides).filter(|(_, side)| **side != Side::Host);
        let all = fabric_ports.fold(0u64, |mask, (port, _)| mask | 1 << port);
        // All of them, some, one, none.
        let mut masks = |n: u32| match n % 4 {
            0 => all,
            1 | 2 => all & random.word(),
            _ if n == 3 => 0,
            _ => 1 << (63 - all.leading_zeros()),
        };
        let allowed: Vec<u64> = (0..TORS).map(&mut masks).collect();
        let takers: Vec<u64> = (0..TORS).map(&mut masks).collect();
        let rates = (0..interfaces.len()).map(|_| random.pick(&[1, 10, 1_000, 25_000, 400_000]));
        let rates: Vec<Rate> = rates.map(|mbps| Rate(1_000_000 * mbps)).collect();
        let addresses: Vec<[u8; 12]> = (0..interfaces.len())
            .map(|n| {
                let mut both = [2, 0xbb, 0, 0, 0, n as u8, 0, 0, 0, 0, 0, 0];
                both[6..].copy_from_slice(&own_address(n));
                both
            })
            .collect();

        let mut config = Config::new(&case.parameters, &place).unwrap();
        config.replay = 1;
        object.map("hula_config").unwrap().put(&0u32, &config).unwrap();
        for (n, &interface) in interfaces.iter().enumerate() {
            object.map("hula_interfaces").unwrap().put(&interface, &(n as u32 + 1)).unwrap();
            let port = Port::new(&case.parameters, interface, rates[n].0, addresses[n]);
            object.map("hula_ports").unwrap().put(&(n as u32), &port).unwrap();
        }
        let hosts = object.map("hula_hosts").unwrap();
        for tor in 0..TORS {
            let masks = Tor::new(allowed[tor as usize], takers[tor as usize]);
            object.map("hula_tors").unwrap().put(&tor, &masks).unwrap();
            hosts.put(&Prefix::new(rack(tor, false), 16), &(tor + 1)).unwrap();
            hosts.put(&Prefix::new(rack(tor, true), 32), &(tor + 1)).unwrap();
        }
        hosts.put(&Prefix::new(MOVED.0.into(), 32), &(MOVED.1 + 1)).unwrap();
        more(&object, &place);
        let (now, down, sent) = (Time::ZERO, case.down, Vec::new());
        Some(Rig {
            hula: (kind.start)(&place),
            world: World { now, rates, down, allowed, takers, sent, word: 0 },
            names: kind.counts,
            counts: vec![0; kind.counts.len()],
            object,
            interfaces,
            addresses,
            wires,
            case,
            _sandbox: sandbox,
        })
    }

    pub fn count(&mut self, name: &str) {
        self.counts[self.names.iter().position(|&count| count == name).unwrap()] += 1;
    }

    pub fn port(&self, context: &Context) -> Option<usize> {
        self.interfaces.iter().position(|&interface| interface == context.interface)
    }

    /// The simulator's answer to a probe: the verdict, and copies by port.
    pub fn probe(&mut self, probe: Option<&Packet>, context: &Context) -> (i32, Vec<(u32, Vec<u8>)>) {
        let (Some(port), Some(probe)) = (self.port(context), probe) else { return (NEXT, Vec::new()) };
        self.count("probes");
        if probe.src >= TORS || self.case.sides[port] == Side::Host {
            self.count("refused");
            return (SHOT, Vec::new());
        }
        if self.case.own == Some(probe.src) || !self.world.leads_to(port as u32, probe.src) {
            self.count("refused");
        }
        self.hula.on_probe(probe, port as u32, &mut self.world);
        let mut sent = std::mem::take(&mut self.world.sent);
        sent.sort_by_key(|(port, _)| *port);
        let frame = |(port, packet): &(u32, Packet)| {
            let tag = self.case.parameters.probe_tag(packet);
            (*port, hula::probe(self.addresses[*port as usize], tag, packet).unwrap())
        };
        let copies: Vec<_> = sent.iter().map(frame).collect();
        copies.iter().for_each(|_| self.count("passed"));
        (SHOT, copies)
    }

    /// The same to a packet: the verdict, and the frame after it.
    fn packet(&mut self, frame: &[u8], to_us: bool, context: &Context) -> (i32, Vec<u8>) {
        let same = (NEXT, frame.to_vec());
        if self.port(context).is_none() || !to_us {
            return same;
        }
        let Some(packet) = ip(frame) else { return same };
        let Some(tor) = tor_of(packet.destination) else { return same };
        let allowed = self.world.allowed[tor as usize];
        if self.case.own == Some(tor) || allowed == 0 {
            return same;
        }
        if packet.hop_limit <= 1 {
            self.count("left");
            return same;
        }
        let port = self.choose(&packet, tor);
        if self.is_too_long(port, frame.len()) {
            self.count("left");
            return same;
        }
        self.count("data");
        (REDIRECT, self.forwarded(frame.to_vec(), port))
    }

    /// The port by which the simulator sends a packet to a ToR that it has a way to.
    pub fn choose(&mut self, packet: &Ip, tor: u32) -> u32 {
        let allowed = self.world.allowed[tor as usize];
        let candidates: Vec<u32> = (0..64).filter(|port| allowed >> port & 1 != 0).collect();
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
            IpAddr::V6(address) => address.into(),
        };
        let (source_port, destination_port) = packet.ports().unwrap_or_default();
        let ports = u32::from(source_port) << 16 | u32::from(destination_port);
        let hash = flow_hash(bits(packet.source), bits(packet.destination), packet.protocol, ports);
        match candidates[..] {
            [only] => only,
            _ => {
                let packet = Packet { dst: tor, hash, ..Packet::default() };
                candidates[self.hula.choose(&packet, &candidates, &self.world)]
            }
        }
    }

    pub fn is_too_long(&self, port: u32, bytes: usize) -> bool {
        self.case.small.is_some_and(|(small, mtu)| small == port && bytes > mtu + 14)
    }

    /// A frame with the hop limit after this hop and the addresses of the link.
    pub fn forwarded(&self, mut frame: Vec<u8>, port: u32) -> Vec<u8> {
        if frame[12..14] == [8, 0] {
            let word = u16::from_be_bytes([frame[22] - 1, frame[23]]);
            frame = with_word(frame, 22, word);
        } else {
            frame[21] -= 1;
        }
        frame[..12].copy_from_slice(&self.addresses[port as usize]);
        frame
    }

    /// The copies of a probe that left by the switch's ports.
    pub fn received(&self, expected: &[(u32, Vec<u8>)]) -> Vec<(u32, Vec<u8>)> {
        let (mut found, begun) = (Vec::new(), Instant::now());
        // The kernel may hand them over a moment later.
        while found.len() < expected.len() && begun.elapsed() < Duration::from_secs(5) {
            for (port, wire) in (0..).zip(&self.wires) {
                found.extend(std::iter::from_fn(|| wire.receive()).map(|frame| (port, frame)));
            }
        }
        found.sort();
        found
    }

    pub fn same_registers(&self, flowlets: bool, at: &str) {
        let registers = self.hula.registers();
        let [ports, tors, slots] =
            ["hula_ports", "hula_tors", "hula_flowlets"].map(|name| self.object.map(name).unwrap());
        let some = |ns: u64| (ns != 0).then_some(1_000 * ns);
        for (n, (link, probed)) in registers.ports.iter().enumerate() {
            let port: Port = ports.get(&(n as u32)).unwrap();
            let expected = (link.used, link.last, *probed);
            assert_eq!((port.used, 1_000 * port.last_ns, some(port.probed_ns)), expected, "port {n}, {at}");
        }
        for (n, (hop, passed)) in registers.tors.iter().enumerate() {
            let tor: Tor = tors.get(&(n as u32)).unwrap();
            let first = tor.port.checked_sub(1).map(|port| {
                let received = 1_000 * tor.received_ns;
                Hop { port, utilisation: tor.utilisation, received }
            });
            assert_eq!(first, *hop, "ToR {n}, {at}");
            let last = some(tor.passed_ns).map(|at| {
                let (port, utilisation) = (tor.passed_port - 1, tor.passed_utilisation);
                PassedOn { at, port, utilisation }
            });
            assert_eq!(last, *passed, "ToR {n}, {at}");
        }
        for (n, expected) in registers.flowlets.iter().enumerate().filter(|_| flowlets) {
            let slot: Flowlet = slots.get(&(n as u32)).unwrap();
            assert_eq!((1_000 * slot.last_ns, slot.port.checked_sub(1)), *expected, "slot {n}, {at}");
        }
    }

    pub fn same_counts(&mut self) -> String {
        let mut counted = CounterSet::default();
        self.hula.count(self.world.now, &mut counted);
        for (name, key) in [("flowlets", "flowlets"), ("moved", "flowlets_moved")] {
            let place = self.names.iter().position(|&count| count == name).unwrap();
            self.counts[place] = counted.get(key).unwrap();
        }
        let (map, mut found) = (self.object.map("hula_counts").unwrap(), Vec::new());
        for (n, name) in self.names.iter().enumerate() {
            let count = map.count(n as u32).unwrap();
            match *name {
                // The simulator does not count these.
                "lost" => assert_eq!(count > 0, self.case.down.is_some(), "{count} lost"),
                "unprobed" => assert!(count > 0 && count < self.counts[n - 2], "{count} unprobed"),
                _ => assert_eq!(count, self.counts[n], "{name}"),
            }
            found.push(format!("{name} {count}"));
        }
        found.join(", ")
    }
}

/// The first address of a rack.
pub fn rack(tor: u32, six: bool) -> IpAddr {
    if six { [0xfd00, tor as u16, 0, 0, 0, 0, 0, 0].into() } else { [10, tor as u8, 0, 0].into() }
}

pub fn tor_of(address: IpAddr) -> Option<u32> {
    let tor: u32 = match address {
        IpAddr::V4(address) if address.octets() == MOVED.0 => MOVED.1,
        IpAddr::V4(address) if address.octets()[0] == 10 => address.octets()[1].into(),
        IpAddr::V6(address) if address.segments()[0] == 0xfd00 => address.segments()[1].into(),
        _ => return None,
    };
    (tor < TORS).then_some(tor)
}

/// A frame that is mostly to one of the racks, and whether it is addressed to the interface.
pub fn frame(random: &mut Random, n: usize) -> (Vec<u8>, bool) {
    let mut frame = packets::any(random, 0);
    let to_us = !random.one_in(20);
    frame[..6].copy_from_slice(&own_address(n));
    frame[1] ^= u8::from(!to_us);
    if random.one_in(20) {
        return (frame, to_us);
    }
    let tor = random.below(u64::from(TORS) + 1) as u8;
    match frame[12..14] {
        [8, 0] => {
            frame[30..32].copy_from_slice(&[10, tor]);
            if random.one_in(20) {
                frame[30..34].copy_from_slice(&MOVED.0);
            }
            packets::seal(&mut frame);
        }
        [0x86, 0xdd] => frame[38..42].copy_from_slice(&[0xfd, 0, 0, tor]),
        _ => {}
    }
    (frame, to_us)
}

/// A frame with the EtherType of probes, and the probe that it is to HULA.
pub fn probe(random: &mut Random, parameters: &HulaParameters, n: usize) -> (Vec<u8>, Option<Packet>) {
    let src = random.below(u64::from(TORS) + 1) as u32;
    // Mostly so idle a path that the own link's load tells.
    let aux = if random.one_in(2) { random.word() as u8 } else { random.scaled(8) as u8 };
    let packet = Packet { src, aux: aux.into(), size: parameters.probe_size, ..Packet::default() };
    let mut addresses = [0; 12];
    random.fill(&mut addresses);
    addresses[..6].copy_from_slice(&own_address(n));
    let mut frame = hula::probe(addresses, parameters.probe_tag(&packet), &packet).unwrap();
    match random.below(40) {
        0 => {
            frame[14 + random.below(3) as usize] ^= 1 << random.below(8);
            (frame, None)
        }
        1 => {
            frame.truncate(14 + random.below(12) as usize);
            (frame, None)
        }
        _ => (frame, Some(packet)),
    }
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn probes_hops_and_flowlets_are_those_of_the_simulator() {
    let rounds = rig::rounds();
    for (n, case) in cases().into_iter().enumerate() {
        let mut random = Random(70 + n as u64);
        let Some(mut rig) = Rig::new(case, &mut random) else { return };
        let [switch, departure] =
            ["hula_switch", "hula_departure"].map(|name| rig.object.program(name).unwrap());
        let mut now = 1_000_000_000u64;
        for round in 0..rounds {
            now += random.scaled(17);
            if random.one_in(2) {
                // So that limits are met to the nanosecond.
                now = now.next_multiple_of(50_000);
            }
            rig.world.now = Time(1_000 * now);
            let port = random.below(rig.interfaces.len() as u64) as usize;
            let outside = random.one_in(50);
            let interface = if outside { 1 } else { rig.interfaces[port] };
            let control = [now as u32, (now >> 32) as u32, 0, 0, 0];
            let context = Context { interface, control, ..Context::default() };
            let at = |frame: &[u8]| format!("case {n}, event {round}, port {port}: {context:?} {frame:02x?}");
            match random.below(8) {
                0..3 => {
                    let (frame, probe) = probe(&mut random, &rig.case.parameters, port);
                    let ran = switch.run(&frame, &context, 1).unwrap();
                    let (verdict, copies) = rig.probe(probe.as_ref(), &context);
                    assert_eq!(ran.verdict, verdict, "{}", at(&frame));
                    assert_eq!(rig.received(&copies), copies, "{}", at(&frame));
                }
                3..6 => {
                    let (frame, to_us) = frame(&mut random, port);
                    let ran = switch.run(&frame, &context, 1).unwrap();
                    let expected = rig.packet(&frame, to_us, &context);
                    assert_eq!((ran.verdict, ran.packet), expected, "{}", at(&frame));
                }
                _ => {
                    let (frame, _) = frame(&mut random, port);
                    let ran = departure.run(&frame, &context, 1).unwrap();
                    assert_eq!((ran.verdict, &ran.packet), (NEXT, &frame), "{}", at(&frame));
                    if !outside && rig.case.sides[port] != Side::Host {
                        let (port, rate) = (port as u32, rig.world.rates[port]);
                        let departure =
                            Departure { port, bytes: frame.len() as u32, rate, now: rig.world.now };
                        rig.hula.on_departure(&departure, &mut 0);
                    }
                }
            }
            rig.same_registers(round % 50 == 0, &format!("case {n}, event {round}"));
        }
        rig.same_registers(true, &format!("case {n}, at the end"));
        println!("case {n}: {rounds} events, {}", rig.same_counts());
    }
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn costs() {
    let (never, always) = (Time(1_000_000_000_000_000), Time(1));
    let plain = |frame: &[u8], six: bool| {
        ip(frame).is_some_and(|ip| {
            let whole = !ip.fragment && ip.protocol == 6 && ip.hop_limit > 1 && ip.payload.len() >= 24;
            whole && tor_of(ip.destination) == Some(0) && ip.id.is_none() == six
        })
    };
    for (kind, gap) in [("of a flowlet", never), ("that begins one", always)] {
        let mut random = Random(3);
        let flowlets = FlowletParameters { gap, slots: 61 };
        let suppress = kind == "of a flowlet";
        let parameters = HulaParameters { failure_time: never, flowlets, suppress, ..parameters() };
        let case = Case { parameters, small: None, ..cases().into_iter().nth(1).unwrap() };
        let Some(rig) = Rig::new(case, &mut random) else { return };
        let config = rig.object.map("hula_config").unwrap();
        let mut live: Config = config.get(&0u32).unwrap();
        live.replay = 0;
        config.put(&0u32, &live).unwrap();
        let [switch, departure] =
            ["hula_switch", "hula_departure"].map(|name| rig.object.program(name).unwrap());
        let context = Context { interface: rig.interfaces[0], ..Context::default() };
        let mut frames = [false, true].map(|six| {
            let mut frames = std::iter::from_fn(|| Some(frame(&mut random, 0)));
            frames.find(|(frame, to_us)| *to_us && plain(frame, six)).unwrap().0
        });
        let probed = |src: u32, utilisation: u32| {
            let packet = Packet { src, aux: utilisation, size: 64, ..Packet::default() };
            let mut addresses = [2; 12];
            addresses[..6].copy_from_slice(&own_address(0));
            hula::probe(addresses, rig.case.parameters.probe_tag(&packet), &packet).unwrap()
        };
        if !suppress {
            let label = "hula_switch, a packet for which no hop is known";
            rig::cost(label, &switch, &frames[0], &context);
        }
        let probe = probed(0, 9);
        switch.run(&probe, &context, 1).unwrap();
        for (carrier, frame) in ["IPv4", "IPv6"].iter().zip(&mut frames) {
            rig::cost(&format!("hula_switch, a packet {kind}, {carrier}"), &switch, frame, &context);
        }
        if suppress {
            rig::cost("hula_departure", &departure, &frames[0], &context);
            rig::cost("hula_switch, a probe that changes nothing", &switch, &probe, &context);
            frames[0][12..14].copy_from_slice(&[8, 6]);
            rig::cost("hula_switch, other traffic", &switch, &frames[0], &context);
        } else {
            // Sending takes part of it.
            rig::cost("hula_switch, a probe passed on by 7 ports", &switch, &probe, &context);
        }
    }
}
