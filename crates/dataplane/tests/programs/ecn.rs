//! `bpf/ecn.bpf.c` against the Rust implementation, and that against the simulator's marker.

use super::packets::{self, ip};
use super::rig::{self, Random};
use weftline_dataplane::ecn::{COUNTS, Port};
use weftline_dataplane::kernel::Context;
use weftline_sim::engine::random::RandomStream;
use weftline_sim::net::ecn::{EcnMarker, EcnThreshold, MarkedAt};
use weftline_sim::units::{Bytes, Rate};

const RATE: Rate = Rate(100_000_000);

fn marker(kmin: u64, kmax: u64, pmax: f64) -> EcnMarker {
    let threshold =
        EcnThreshold { rate: RATE, kmin: Bytes(kmin), kmax: Bytes(kmax), pmax, at: MarkedAt::Arrival };
    EcnMarker::for_rate(&[threshold], RATE, MarkedAt::Arrival)
}

/// The frame as it leaves, and what is counted.
fn passed(port: &Port, frame: &[u8], queue: u64, coin: u32) -> (Vec<u8>, [u64; 3]) {
    let mut out = frame.to_vec();
    let Some(packet) = ip(frame) else { return (out, [0; 3]) };
    let v4 = packet.id.is_some();
    let bits = if v4 { frame[15] & 3 } else { frame[15] >> 4 & 3 };
    let outcome = match (port.marks(queue, coin), bits) {
        (false, _) | (true, 3) => [1, 0, 0],
        (true, 0) => [1, 0, 1],
        (true, _) => {
            if v4 {
                mark(&mut out);
            } else {
                out[15] |= 0x30;
            }
            [1, 1, 0]
        }
    };
    (out, outcome)
}

/// RFC 1624 on the first word of an IPv4 header.
fn mark(frame: &mut [u8]) {
    let word = |frame: &[u8], at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let before = word(frame, 14);
    frame[15] |= 3;
    let mut sum = (0xffff - word(frame, 24)) + (0xffff - before) + word(frame, 14);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn packets_are_marked_as_by_the_library() {
    let Some((sandbox, object)) = rig::load("ecn") else { return };
    let interface = rig::pairs(&sandbox, 1)[0];
    let (program, ports) = (object.program("ecn_mark").unwrap(), object.map("ecn_ports").unwrap());
    let mut random = Random(17);
    let mut expected = [0u64; 3];
    let laws = [(20_000, 20_000, 1.0), (10_000, 40_000, 0.2), (0, 1 << 31, 1.0), (5_000, 5_001, 0.0)];
    for (kmin, kmax, pmax) in laws {
        let port = Port { replay: 1, ..Port::of(marker(kmin, kmax, pmax).thresholds()).unwrap() };
        ports.put(&interface, &port).unwrap();
        for round in 0..rig::rounds() / 4 {
            let frame = packets::any(&mut random, 0);
            let queue = match random.below(3) {
                0 => kmin + random.below(3),
                1 => kmin + random.below((kmax - kmin).max(1)),
                _ => random.scaled(32),
            } as u32;
            let coin = random.word() as u32;
            let at = if random.one_in(20) { 1 } else { interface };
            let context = Context { interface: at, control: [coin, 0, queue, 0, 0], ..Context::default() };
            let ran = program.run(&frame, &context, 1).unwrap();
            let (packet, counts) = match at {
                1 => (frame.clone(), [0; 3]),
                _ => passed(&port, &frame, queue.into(), coin),
            };
            assert_eq!((ran.verdict, &ran.packet), (-1, &packet), "{port:?}, packet {round}: {frame:02x?}");
            expected.iter_mut().zip(counts).for_each(|(sum, one)| *sum += one);
        }
    }
    let counts = object.map("ecn_counts").unwrap();
    let counts: [u64; 3] = std::array::from_fn(|n| counts.count(n as u32).unwrap());
    assert_eq!(counts, expected, "{COUNTS:?}");
    assert!(counts[1] > 1000 && counts[2] > 1000, "{COUNTS:?} {counts:?}");
    println!("{:?}", COUNTS.iter().zip(counts).collect::<Vec<_>>());
}

#[test]
fn chances_are_those_of_the_simulators_marker() {
    let mut random = Random(3);
    for (kmin, kmax, pmax) in [(20_000, 20_000, 1.0), (10_000, 40_000, 0.2), (0, 100_000, 1.0)] {
        let marker = marker(kmin, kmax, pmax);
        let port = Port::of(marker.thresholds()).unwrap();
        let mut stream = RandomStream::new(1, "coins");
        for _ in 0..30 {
            let queue = random.below(2 * kmax);
            const COINS: u32 = 4000;
            let ours = (0..COINS).filter(|_| port.marks(queue, random.word() as u32)).count() as f64;
            let its = (0..COINS).filter(|_| marker.marks(queue, &mut stream)).count() as f64;
            assert!((ours - its).abs() / f64::from(COINS) < 0.06, "{queue}: {ours} and {its}");
        }
    }
    assert!(Port::of(EcnMarker::for_rate(&[], RATE, MarkedAt::Arrival).thresholds()).is_none());
}

#[test]
#[ignore = "needs root, bpftool and the objects of `make lab-objects`"]
fn costs() {
    let Some((sandbox, object)) = rig::load("ecn") else { return };
    let interface = rig::pairs(&sandbox, 1)[0];
    let program = object.program("ecn_mark").unwrap();
    let port = Port { replay: 1, ..Port::of(marker(10_000, 40_000, 0.5).thresholds()).unwrap() };
    object.map("ecn_ports").unwrap().put(&interface, &port).unwrap();
    let mut random = Random(5);
    let frame = loop {
        let frame = packets::any(&mut random, 0);
        if ip(&frame).is_some_and(|packet| packet.id.is_some()) && frame[15] & 3 == 2 {
            break frame;
        }
    };
    for (what, queue) in [("no mark", 0), ("a mark", 50_000)] {
        let context = Context { interface, control: [0, 0, queue, 0, 0], ..Context::default() };
        rig::cost(&format!("ecn_mark, {what}"), &program, &frame, &context);
    }
}
