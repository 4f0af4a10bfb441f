//! `bpf/mphula.bpf.c` against the simulator's MP-HULA, event by event: probes, packets with and without marks, set-up of connections,
//! departures. The test does what the process at a ToR does.

use super::hula::{self, Case, Kind, NEXT, REDIRECT, SHOT, TORS, own_address, rack, tor_of};
use super::packets::{self, ip, with_word};
use super::rig::{self, Random};
use std::collections::HashMap;
use std::net::IpAddr;
use weftline_collect::ip::Ip;
use weftline_dataplane::hula as maps;
use weftline_dataplane::kernel::{Context, Object, Ring};
use weftline_dataplane::mphula::{
    COUNTS, Config, Connection, Ends, Hop, Hops, Keys, MARK, RING, Subflow, Used,
};
use weftline_sim::balance::hula::HulaParameters;
use weftline_sim::balance::mp_hula::{MpHulaParameters, SubflowParameters, word};
use weftline_sim::balance::subflows::{RankForm, SubflowMark};
use weftline_sim::balance::{
    Arrival, BalancerParameters, Departure, FlowletParameters, LoadBalancer, Place, Side, Tag,
};
use weftline_sim::packet::{Packet, PacketKind, flag};
use weftline_sim::tag::{self, OPTION};
use weftline_sim::units::Time;
use weftline_sim::wire::mptcp::{Join, LONGEST, MptcpOption, Version, code, find, token};

const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const CONNECTIONS: usize = 6;

fn parameters() -> MpHulaParameters {
    let subflows =
        SubflowParameters { mark: MARK, idle: Time::from_ms(3_600_000), ..SubflowParameters::default() };
    MpHulaParameters { hula: hula::parameters(), ranks: 3, subflows }
}

/// The ToR that it is, its ports, one with a small MTU, settings.
type Given = (Option<u32>, Vec<Side>, Option<(u32, usize)>, MpHulaParameters);

/// A switch between two tiers, and ToRs; ranks, hysteresis and ways to part subflows.
fn cases() -> Vec<(Case, MpHulaParameters)> {
    let sides = |numbers: [(Side, usize); 3]| {
        numbers.into_iter().flat_map(|(side, ports)| vec![side; ports]).collect::<Vec<_>>()
    };
    let leaf = sides([(Side::Host, 2), (Side::Up, 4), (Side::Host, 1)]);
    let short = FlowletParameters { gap: Time::from_us(20), slots: 61 };
    let own = |settings: MpHulaParameters, rank, hashed_start, disjoint| MpHulaParameters {
        subflows: SubflowParameters { rank, hashed_start, disjoint, ..settings.subflows },
        ..settings
    };
    let base = parameters();
    let hula = HulaParameters { hysteresis: 9, refresh_on_best: false, flowlets: short, ..base.hula };
    let every = [
        (
            Some(2),
            leaf.clone(),
            None,
            MpHulaParameters { hula: HulaParameters { flowlets: short, ..base.hula }, ..base },
        ),
        (
            None,
            sides([(Side::Down, 4), (Side::Up, 8), (Side::Host, 0)]),
            Some((1, 160)),
            own(MpHulaParameters { hula, ranks: 16, ..base }, RankForm::RoundRobin, true, true),
        ),
        (
            Some(5),
            leaf.clone(),
            Some((3, 160)),
            own(MpHulaParameters { hula, ranks: 2, ..base }, RankForm::Digits, true, false),
        ),
        (Some(7), leaf, None, MpHulaParameters { ranks: 1, ..base }),
    ];
    let case = |(own, sides, small, settings): Given| {
        (Case { own, sides, parameters: settings.hula, down: None, small }, settings)
    };
    every.into_iter().map(case).collect()
}

/// The set-up of one connection.
#[derive(Clone, Copy)]
struct Setup {
    keys: [u64; 2],
    version: u8,
}

impl Setup {
    /// The simulator's word has the first 59 bits of a connection, so the others are to be 0.
    fn new(random: &mut Random, version: u8) -> Setup {
        let of = if version == 0 { Version::V0 } else { Version::V1 };
        let first = random.word();
        let second = std::iter::repeat_with(|| random.word()).find(|&key| token(of, key) & 31 == 0);
        Setup { keys: [first, second.unwrap()], version }
    }

    fn tokens(&self) -> [u32; 2] {
        tokens(self.keys, self.version.into())
    }
}

/// By which tokens the owners of two keys are joined.
fn tokens(keys: [u64; 2], version: u32) -> [u32; 2] {
    keys.map(|key| token(if version == 0 { Version::V0 } else { Version::V1 }, key))
}

struct Rig {
    of: hula::Rig,
    settings: MpHulaParameters,
    setups: Vec<Setup>,
    /// Numbers that the simulator knows flows by.
    flows: HashMap<Ends, u32>,
    ring: Ring,
    /// What the ring buffer should have.
    news: Vec<Keys>,
}

impl Rig {
    fn new((case, settings): (Case, MpHulaParameters), random: &mut Random) -> Option<Rig> {
        let start = |at: &Place| settings.start(at);
        let kind = Kind { object: "mphula", counts: &COUNTS, start: &start, subflows: true };
        let more = |object: &Object, at: &Place| {
            object.map("mphula_config").unwrap().put(&0u32, &Config::new(&settings, at)).unwrap();
        };
        let of = hula::Rig::of(&kind, case, random, &more)?;
        let ring = of.object.map("mphula_keys").unwrap().ring(RING).unwrap();
        let setups = (0..CONNECTIONS).map(|n| Setup::new(random, u8::from(n > 0))).collect();
        Some(Rig { of, settings, setups, flows: HashMap::new(), ring, news: Vec::new() })
    }

    fn flow(&mut self, ends: Ends) -> u32 {
        let next = self.flows.len() as u32 + 1;
        *self.flows.entry(ends).or_insert(next)
    }

    /// The simulator's ToR sees a packet of these ends; what it writes into it. A packet with both keys is news for the process, and has
    /// no mark yet.
    fn see(&mut self, packet: &Ip, tcp: Option<Tcp>, to: u32, port: usize) -> u64 {
        let from_host = self.of.case.sides[port] == Side::Host;
        let Some(tcp) = tcp else { return 0 };
        let (a, b) = (bits(packet.source), bits(packet.destination));
        let (from, at) = packet.ports().unwrap();
        let ends = if from_host { Ends::new(a, b, from, at) } else { Ends::new(b, a, at, from) };
        let flow = self.flow(ends);
        let code = match tcp.flags {
            flags if flags & RST != 0 => code::RESET,
            flags if flags & (SYN | ACK) == SYN => code::SYN,
            _ => code::ESTABLISHED,
        };
        let control = tcp.flags & RST != 0 || tcp.flags & (SYN | ACK) == SYN || tcp.option.is_some();
        let kind = if control { PacketKind::Control } else { PacketKind::Data };
        let known = self.of.hula.mark_of(u64::from(flow) << 8).is_some();
        let packet =
            Packet { flow, dst: to, kind, flags: code << flag::CODE_SHIFT, size: 100, ..Packet::default() };
        let options = tcp.option.map(|option| {
            let bytes: [u8; LONGEST] = option.write().0;
            std::array::from_fn(|n| u32::from_be_bytes(bytes[4 * n..][..4].try_into().unwrap()))
        });
        let arrival = Arrival { packet: &packet, port: port as u32, options, now: self.of.world.now };
        let mut word = 0;
        self.of.hula.on_arrival(&arrival, &mut word);
        if let Some(MptcpOption::Capable { version, sender: Some(a), receiver: Some(b), .. }) = tcp.option
            && tcp.flags & RST == 0
            && (!known || code == code::SYN)
        {
            self.of.count("keys");
            self.news.push(Keys::new(ends, [a, b], version));
            return 0;
        }
        if let Some(MptcpOption::Join(Join::Syn { .. })) = tcp.option
            && tcp.flags & RST == 0
            && !known
        {
            let joined = self.of.hula.mark_of(u64::from(flow) << 8).is_some();
            self.of.count(if joined { "joined" } else { "strangers" });
        }
        word
    }

    /// The simulator's answer to a packet: the verdict, and the frame after it.
    fn packet(&mut self, frame: &[u8], to_us: bool, context: &Context) -> (i32, Vec<u8>) {
        let same = (NEXT, frame.to_vec());
        let Some(port) = self.of.port(context).filter(|_| to_us) else { return same };
        let Some(packet) = ip(frame) else { return same };
        let (from_host, mark) = (self.of.case.sides[port] == Side::Host, read_mark(frame));
        if mark.is_some() && from_host {
            self.of.count("forged");
            return (SHOT, frame.to_vec());
        }
        let Some(tor) = tor_of(packet.destination) else { return same };
        let steers = self.settings.ranks > 1;
        let tcp = Tcp::of(&packet).filter(|_| steers);
        if self.of.case.own == Some(tor) {
            if from_host || !steers {
                return same;
            }
            self.see(&packet, tcp, tor, port);
            let Some(mark) = mark else { return same };
            self.of.count("cleared");
            return (NEXT, without_mark(frame, &mark));
        }
        if self.of.world.allowed[tor as usize] == 0 {
            return same;
        }
        if packet.hop_limit <= 1 {
            self.of.count("left");
            return same;
        }
        let enters = steers && from_host && self.of.case.own.is_some();
        let mut carried = 0;
        if enters {
            carried = self.see(&packet, tcp, tor, port);
            let room = 4 * u16::from(frame[14] & 15) + MARK <= 60;
            let fits = u16::from_be_bytes([frame[16], frame[17]]).checked_add(MARK).is_some();
            carried = if room && fits { carried } else { 0 };
        } else if let (true, Some(mark)) = (steers, mark) {
            let connection = u64::from_be_bytes(mark[4..].try_into().unwrap());
            carried = word(Some(SubflowMark { connection, subflow: mark[3] & 15 }));
        }
        self.of.world.word = carried;
        let port = self.of.choose(&packet, tor);
        let grows = enters && carried != 0;
        if self.of.is_too_long(port, frame.len() + if grows { MARK.into() } else { 0 }) {
            self.of.count("left");
            return same;
        }
        self.of.count("data");
        let mut frame = frame.to_vec();
        if grows {
            self.of.count("marked");
            let tag: Tag = self.settings.tag(carried, true).unwrap();
            frame = with_mark(&frame, &tag::bytes(OPTION, &tag));
        }
        (REDIRECT, self.of.forwarded(frame, port))
    }

    /// The process reads what came and fills the maps.
    fn learn(&mut self, at: &str) {
        let mut found = Vec::new();
        while let Some(keys) = self.ring.next_record::<Keys>() {
            found.push(keys);
            let tokens = tokens(keys.keys, keys.version);
            let connection = u64::from(tokens[0]) << 32 | u64::from(tokens[1]);
            let [by_token, connections, subflows] =
                ["mphula_tokens", "mphula_connections", "mphula_subflows"]
                    .map(|name| self.of.object.map(name).unwrap());
            let known: Connection =
                connections.get(&connection).unwrap_or(Connection { subflows: 0, next: 0 });
            let next = Connection { subflows: known.subflows + 1, next: (known.next + 1) & 15 };
            connections.put(&connection, &next).unwrap();
            tokens.iter().for_each(|token| by_token.put(token, &connection).unwrap());
            subflows.put(&keys.ends, &Subflow::new(connection, known.next)).unwrap();
        }
        assert_eq!(found, std::mem::take(&mut self.news), "{at}");
    }

    fn same_registers(&self, all: bool, at: &str) {
        self.of.same_registers(all, at);
        let registers = self.of.hula.registers();
        let [hops, used, subflows] =
            ["mphula_hops", "mphula_used", "mphula_subflows"].map(|name| self.of.object.map(name).unwrap());
        for (n, expected) in registers.ranks.iter().enumerate() {
            let table: Hops = hops.get(&(n as u32)).unwrap();
            let hop = |hop: &Hop| (hop.port - 1, hop.utilisation, 1_000 * hop.received_ns);
            let found: Vec<_> = table.hops[..table.used as usize].iter().map(hop).collect();
            let expected: Vec<_> =
                expected.iter().map(|hop| (hop.port, u32::from(hop.utilisation), hop.received)).collect();
            assert_eq!(found, expected, "ToR {n}, {at}");
        }
        for (n, (connection, ports)) in registers.used.iter().enumerate().filter(|_| all) {
            let found: Used = used.get(&(n as u32)).unwrap();
            let port =
                |(port, at): (&u8, &u64)| port.checked_sub(1).map(|port| (u32::from(port), 1_000 * at));
            let there: Vec<_> = found.ports.iter().zip(&found.last_ns).map(port).collect();
            assert_eq!((found.connection, &there), (*connection, ports), "place {n}, {at}");
        }
        for (ends, &flow) in self.flows.iter().filter(|_| all) {
            let found: Option<Subflow> = subflows.get(ends).ok();
            let expected = self.of.hula.mark_of(u64::from(flow) << 8);
            let expected = expected.map(|mark| Subflow::new(mark.connection, mark.subflow.into()));
            assert_eq!(found, expected, "{ends:?}, {at}");
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// What of a TCP packet counts.
#[derive(Clone, Copy)]
struct Tcp {
    flags: u8,
    option: Option<MptcpOption>,
}

impl Tcp {
    /// Of a whole IPv4 packet with a whole TCP header; options as far as they are there.
    fn of(packet: &Ip) -> Option<Tcp> {
        let bytes = packet.payload;
        if packet.id.is_none() || packet.fragment || packet.protocol != 6 || bytes.len() < 20 {
            return None;
        }
        let end = (4 * usize::from(bytes[12] >> 4)).clamp(20, bytes.len());
        let setup = |option: &MptcpOption| !matches!(option, MptcpOption::Other(_));
        Some(Tcp { flags: bytes[13], option: find(&bytes[20..end]).filter(setup) })
    }
}

/// The mark of a frame, the first option of its header.
fn read_mark(frame: &[u8]) -> Option<[u8; 12]> {
    let whole = frame[12..14] == [8, 0] && frame[14] & 15 >= 8 && frame.len() >= 46;
    let mark: [u8; 12] = frame.get(34..46).filter(|_| whole)?.try_into().unwrap();
    (mark[..3] == [OPTION, 12, 1]).then_some(mark)
}

/// A frame whose header has become longer, or shorter, by some bytes, with the checksum after it.
fn resized(frame: Vec<u8>, bytes: i32) -> Vec<u8> {
    let first = u16::from_be_bytes([(i32::from(frame[14]) + bytes / 4) as u8, frame[15]]);
    // A packet without a length keeps none.
    let length = match u16::from_be_bytes([frame[16], frame[17]]) {
        0 => 0,
        length => (i32::from(length) + bytes) as u16,
    };
    with_word(with_word(frame, 14, first), 16, length)
}

fn with_mark(frame: &[u8], mark: &[u8]) -> Vec<u8> {
    let mut frame = resized(frame.to_vec(), mark.len() as i32);
    frame.splice(34..34, vec![0; mark.len()]);
    let words = mark.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    words.enumerate().fold(frame, |frame, (n, word)| with_word(frame, 34 + 2 * n, word))
}

fn without_mark(frame: &[u8], mark: &[u8]) -> Vec<u8> {
    let frame = resized(frame.to_vec(), -(mark.len() as i32));
    let mut frame = (0..mark.len() / 2).fold(frame, |frame, n| with_word(frame, 34 + 2 * n, 0));
    frame.drain(34..34 + mark.len());
    frame
}

/// Options of a TCP packet, MPTCP's among them, and its flags.
fn options(random: &mut Random, setups: &[Setup]) -> (Vec<u8>, u8) {
    let setup = setups[random.below(setups.len() as u64) as usize];
    let (version, checksum) = (setup.version, random.one_in(5));
    let both = MptcpOption::Capable {
        version,
        checksum,
        sender: Some(setup.keys[0]),
        receiver: Some(setup.keys[1]),
    };
    let mut token = setup.tokens()[random.below(2) as usize];
    if random.one_in(8) {
        token = random.word() as u32;
    }
    let syn = MptcpOption::Join(Join::Syn { address: 1, token, nonce: random.word() as u32 });
    let proof = MptcpOption::Join(Join::SynAck { address: 1, proof: random.word(), nonce: 7 });
    let (option, flags) = match random.below(12) {
        0 => (both, ACK),
        1..4 => (syn, SYN),
        4 => (proof, SYN | ACK),
        5 => (MptcpOption::Join(Join::Ack { proof: [1, 2, 3, 4, random.word() as u32] }), ACK),
        6 => (MptcpOption::Capable { version, checksum, sender: None, receiver: None }, SYN),
        7 => (
            MptcpOption::Capable { version, checksum, sender: Some(setup.keys[1]), receiver: None },
            SYN | ACK,
        ),
        8 => (MptcpOption::Other(0), if random.one_in(3) { RST | ACK } else { ACK }),
        _ => (MptcpOption::Other(0), ACK),
    };
    let (written, length) = option.write();
    let mut bytes = Vec::new();
    for _ in 0..random.below(3) {
        bytes.extend(random.pick(&[&[1][..], &[2, 4, 5, 100], &[4, 2]]));
    }
    match option {
        // A mapping of data.
        MptcpOption::Other(_) => bytes.extend([30, 8, 0x20, 1, 2, 3, 4, 5]),
        _ => bytes.extend(&written[..length]),
    }
    let start = bytes.len() - length.max(4);
    if matches!(option, MptcpOption::Capable { receiver: Some(_), .. }) && random.one_in(2) {
        // With data: two bytes of length, perhaps two of a checksum.
        let more = random.pick(&[2u8, 4]);
        let at = bytes.len() - length;
        bytes[at + 1] += more;
        bytes.extend(vec![9; more.into()]);
    }
    if random.one_in(20) {
        // Not in a key: whose token has other last bits, the simulator's word has not.
        let at = random.below(start as u64 + 4) as usize;
        bytes[at] = random.word() as u8;
    }
    bytes.resize(bytes.len().next_multiple_of(4).min(40), random.pick(&[0, 1]));
    (bytes, flags)
}

/// A frame between two hosts of a few, mostly of TCP, and whether it is addressed to the interface.
fn frame(rig: &Rig, random: &mut Random, n: usize) -> (Vec<u8>, bool) {
    if random.one_in(5) {
        return hula::frame(random, n);
    }
    let side = rig.of.case.sides[n];
    let own = rig.of.case.own.unwrap_or(TORS - 1);
    let other = random.below(u64::from(TORS)) as u32;
    let (from, to) =
        if side == Side::Host { (own, other) } else { (other, if random.one_in(2) { own } else { other }) };
    let host = |tor: u32, n: u64| match rack(tor, false) {
        IpAddr::V4(address) => u32::from(address) + n as u32 + 1,
        IpAddr::V6(_) => unreachable!(),
    };
    let (options, flags) = options(random, &rig.setups);
    let mut frame = vec![2; 12];
    frame[..6].copy_from_slice(&own_address(n));
    frame.extend([8, 0]);
    // A mark; none; what resembles one.
    let marks = if side == Side::Host { 40 } else { 2 };
    let mut more = Vec::new();
    if random.one_in(marks) {
        let connection = (random.below(20) << 40 | 0x77 << 32 | random.below(3) << 5).to_be_bytes();
        let rest = if random.one_in(20) {
            random.pick(&[[OPTION, 12, 2], [OPTION, 8, 1], [30, 12, 1]])
        } else {
            [OPTION, 12, 1]
        };
        more.extend(rest);
        more.push(random.below(20) as u8);
        more.extend(connection);
    }
    if random.one_in(10) {
        more.extend(vec![1; 4 * random.below(7) as usize]);
    }
    let length = 20 + more.len() + 20 + options.len() + 8;
    frame.push(0x45 + (more.len() / 4) as u8);
    frame.push(random.word() as u8);
    frame.extend((length as u16).to_be_bytes());
    frame.extend([7, 7, 0x40, 0, if random.one_in(50) { 1 } else { 64 }, 6, 0, 0]);
    frame.extend(host(from, random.below(2)).to_be_bytes());
    frame.extend(host(to, random.below(2)).to_be_bytes());
    frame.extend(&more);
    let ports = [5_001u16, 40_000 + random.below(3) as u16];
    let ports = if random.one_in(2) { ports } else { [ports[1], ports[0]] };
    ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
    frame.extend([0, 0, 0, 1, 0, 0, 0, 2]);
    frame.push((20 + options.len() as u8) << 2);
    frame.extend([flags, 1, 0, 3, 4, 0, 0]);
    frame.extend(&options);
    frame.extend([8; 8]);
    if random.one_in(30) {
        frame.truncate(34 + random.below(frame.len() as u64 - 33) as usize);
    }
    packets::seal(&mut frame);
    let to_us = !random.one_in(20);
    frame[1] ^= u8::from(!to_us);
    (frame, to_us)
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn ranks_marks_and_subflows_are_those_of_the_simulator() {
    let rounds = rig::rounds();
    for (n, case) in cases().into_iter().enumerate() {
        let mut random = Random(170 + n as u64);
        let Some(mut rig) = Rig::new(case, &mut random) else { return };
        let [switch, departure] =
            ["mphula_switch", "hula_departure"].map(|name| rig.of.object.program(name).unwrap());
        let mut now = 1_000_000_000u64;
        for round in 0..rounds {
            now += random.scaled(16);
            if random.one_in(2) {
                // So that limits are met to the nanosecond.
                now = now.next_multiple_of(10_000);
            }
            rig.of.world.now = Time(1_000 * now);
            let port = random.below(rig.of.interfaces.len() as u64) as usize;
            let outside = random.one_in(50);
            let interface = if outside { 1 } else { rig.of.interfaces[port] };
            let control = [now as u32, (now >> 32) as u32, 0, 0, 0];
            let context = Context { interface, control, ..Context::default() };
            let at = |frame: &[u8]| format!("case {n}, event {round}, port {port}: {context:?} {frame:02x?}");
            match random.below(8) {
                0..2 => {
                    let (frame, probe) = hula::probe(&mut random, &rig.of.case.parameters, port);
                    let ran = switch.run(&frame, &context, 1).unwrap();
                    let (verdict, copies) = rig.of.probe(probe.as_ref(), &context);
                    assert_eq!(ran.verdict, verdict, "{}", at(&frame));
                    assert_eq!(rig.of.received(&copies), copies, "{}", at(&frame));
                }
                2..7 => {
                    let (frame, to_us) = frame(&rig, &mut random, port);
                    let ran = switch.run(&frame, &context, 1).unwrap();
                    let expected = rig.packet(&frame, to_us, &context);
                    assert_eq!((ran.verdict, ran.packet), expected, "{}", at(&frame));
                    rig.learn(&at(&frame));
                }
                _ => {
                    let (frame, _) = frame(&rig, &mut random, port);
                    let ran = departure.run(&frame, &context, 1).unwrap();
                    assert_eq!((ran.verdict, &ran.packet), (NEXT, &frame), "{}", at(&frame));
                    if !outside && rig.of.case.sides[port] != Side::Host {
                        let (port, rate) = (port as u32, rig.of.world.rates[port]);
                        let departure =
                            Departure { port, bytes: frame.len() as u32, rate, now: rig.of.world.now };
                        rig.of.hula.on_departure(&departure, &mut 0);
                    }
                }
            }
            rig.same_registers(round % 100 == 0, &format!("case {n}, event {round}"));
        }
        rig.same_registers(true, &format!("case {n}, at the end"));
        println!("case {n}: {rounds} events, {}", rig.of.same_counts());
    }
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn costs() {
    let never = Time(1_000_000_000_000_000);
    for (kind, gap) in [("of a flowlet", never), ("that begins one", Time(1))] {
        let mut random = Random(3);
        let (case, settings) = cases().swap_remove(0);
        let flowlets = FlowletParameters { gap, slots: 61 };
        let hula = HulaParameters { failure_time: never, flowlets, suppress: true, ..settings.hula };
        let settings = MpHulaParameters { hula, ranks: 4, ..settings };
        let case = Case { parameters: hula, own: Some(2), ..case };
        let Some(rig) = Rig::new((case, settings), &mut random) else { return };
        let config = rig.of.object.map("hula_config").unwrap();
        let mut live: maps::Config = config.get(&0u32).unwrap();
        live.replay = 0;
        config.put(&0u32, &live).unwrap();
        let switch = rig.of.object.program("mphula_switch").unwrap();
        // Probes of ToR 0 by all ports upward.
        for port in 2..6 {
            let packet = Packet { src: 0, aux: 9, size: 64, ..Packet::default() };
            let mut addresses = [2; 12];
            addresses[..6].copy_from_slice(&own_address(port));
            let probe = maps::probe(addresses, hula.probe_tag(&packet), &packet).unwrap();
            let context = Context { interface: rig.of.interfaces[port], ..Context::default() };
            switch.run(&probe, &context, 1).unwrap();
            if port == 5 && kind == "of a flowlet" {
                rig::cost("mphula_switch, a probe that changes nothing", &switch, &probe, &context);
            }
        }
        let data = |from: u32, to: u32, port: usize, more: &[u8], options: &[u8], flags: u8| {
            let mut frame = vec![2; 12];
            frame[..6].copy_from_slice(&own_address(port));
            frame.extend([8, 0, 0x45 + (more.len() / 4) as u8, 0]);
            frame.extend((20 + more.len() as u16 + 20 + options.len() as u16 + 8).to_be_bytes());
            frame.extend([7, 7, 0x40, 0, 64, 6, 0, 0, 10, from as u8, 0, 1, 10, to as u8, 0, 1]);
            frame.extend(more);
            frame.extend([0x13, 0x89, 0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0, 2]);
            frame.push((20 + options.len() as u8) << 2);
            frame.extend([flags, 1, 0, 3, 4, 0, 0]);
            frame.extend(options);
            frame.extend([8; 8]);
            packets::seal(&mut frame);
            frame
        };
        let of = |port: usize| Context { interface: rig.of.interfaces[port], ..Context::default() };
        let mapping = [1, 1, 30, 8, 0x20, 1, 2, 3, 4, 5, 1, 1];
        let out = data(2, 0, 0, &[], &mapping, ACK);
        rig::cost(&format!("mphula_switch, a packet {kind}, of no known subflow"), &switch, &out, &of(0));
        let packet = ip(&out).unwrap();
        let ends = Ends::new(bits(packet.source), bits(packet.destination), 0x1389, 0x9c40);
        let known = rig.of.object.map("mphula_subflows").unwrap();
        known.put(&ends, &Subflow::new(0x1234_0000_0000, 1)).unwrap();
        let grown = switch.run(&out, &of(0), 1).unwrap().packet.len();
        assert_eq!(grown, out.len() + usize::from(MARK));
        rig::cost(&format!("mphula_switch, a packet {kind} that gets a mark"), &switch, &out, &of(0));
        let mark = [OPTION, 12, 1, 1, 0, 0, 0x12, 0x34, 0, 0, 0, 0];
        if kind == "of a flowlet" {
            let back = data(0, 2, 3, &mark, &mapping, ACK);
            rig::cost("mphula_switch, a packet whose mark is taken out", &switch, &back, &of(3));
            let setup = rig.setups[1];
            let join = MptcpOption::Join(Join::Syn { address: 1, token: setup.tokens()[1], nonce: 7 });
            let syn = data(2, 0, 0, &[], &join.write().0[..12], SYN);
            known.put(&ends, &Subflow::new(0x1234_0000_0000, 1)).unwrap();
            rig::cost("mphula_switch, the first packet of a subflow, again", &switch, &syn, &of(0));
            let mut other = out.clone();
            other[12..14].copy_from_slice(&[8, 6]);
            rig::cost("mphula_switch, other traffic", &switch, &other, &of(0));
        }
    }
}
