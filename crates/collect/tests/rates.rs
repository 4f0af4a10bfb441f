//! Rates of the readers, of one sending thread against one reading thread. Run on a quiet machine, as root:
//!
//!     cargo test --release -p weftline-collect --test rates -- --ignored --nocapture --test-threads 1
#![cfg(target_os = "linux")]

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use weftline_collect::capture::Reader;
use weftline_collect::checkpoint::write_part;
use weftline_collect::collector::Collector;
use weftline_collect::flows::{FlowCounts, FlowTable, Point};
use weftline_collect::intake::Intake;
use weftline_collect::ip::FlowKey;
use weftline_collect::live::Live;
use weftline_collect::live::config::Config;
use weftline_collect::packet::Markers;
use weftline_collect::parallel::ParallelCollector;
use weftline_collect::shards::start;
use weftline_collect::workload::{Carried, digest_decoder, digest_frame, frames, switches_of};

const BATCH: usize = 64;

/// Sends a datagram or a frame `count` times; returns how many were taken.
fn send_batch(fd: i32, bytes: &[u8], count: usize) -> u64 {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: zeros are valid values; the part lives until the call returns, which does not write to it.
    let sent = unsafe {
        let mut headers: [libc::mmsghdr; BATCH] = std::mem::zeroed();
        for header in &mut headers {
            header.msg_hdr.msg_iov = &mut part;
            header.msg_hdr.msg_iovlen = 1;
        }
        libc::sendmmsg(fd, headers.as_mut_ptr(), count as u32, 0)
    };
    sent.max(0) as u64
}

/// Sends for a time, at a rate or as fast as possible; returns how many were sent.
fn send_for(fd: i32, bytes: &[u8], time: Duration, per_second: Option<f64>) -> u64 {
    let begin = Instant::now();
    let mut sent = 0;
    while begin.elapsed() < time {
        if per_second.is_some_and(|rate| sent as f64 > begin.elapsed().as_secs_f64() * rate) {
            std::thread::sleep(Duration::from_micros(200));
            continue;
        }
        sent += send_batch(fd, bytes, BATCH);
    }
    sent
}

fn shown(what: &str, sent: u64, live: Live, time: Duration) -> (u64, u64) {
    let found = live.finish().unwrap();
    let inputs = found["summary"]["inputs"].as_array().unwrap();
    let total = |name: &str| inputs.iter().map(|input| input[name].as_u64().unwrap()).sum::<u64>();
    let (received, dropped) = (total("received"), total("dropped"));
    println!(
        "{what}: {sent} sent in {:.1} s = {received} received ({:.2} M/s) + {dropped} dropped; {} shed, {} flows",
        time.as_secs_f64(),
        received as f64 / time.as_secs_f64() / 1e6,
        found["summary"]["counts"]["shed"],
        found["summary"]["flows"],
    );
    assert!(found["summary"]["adds_up"].as_bool().unwrap());
    (received, dropped)
}

/// The payload of a report.
fn report() -> Vec<u8> {
    // Ethernet, IPv4 and UDP come before it.
    frames(Carried::Reports)[0][42..].to_vec()
}

#[test]
#[ignore = "a measurement"]
fn udp() {
    for (what, seconds, rate) in
        [("UDP at 150 000/s", 60.0, Some(150_000.0)), ("UDP at full speed", 5.0, None)]
    {
        let config = Config { listen: vec!["udp:127.0.0.1:0".into()], ..Config::default() };
        let live = Live::start(config, None).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(live.inputs()[0].strip_prefix("udp:").unwrap()).unwrap();
        let time = Duration::from_secs_f64(seconds);
        let sent = send_for(socket.as_raw_fd(), &report(), time, rate);
        let (received, dropped) = shown(what, sent, live, time);
        assert_eq!(received + dropped, sent);
    }
}

/// A capture of this many frames, in memory.
fn capture(frames: &[Vec<u8>], count: usize) -> Vec<u8> {
    let mut file: Vec<u8> =
        [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
    for (number, frame) in frames.iter().cycle().take(count).enumerate() {
        add_record(&mut file, number as u32, frame);
    }
    file
}

fn add_record(file: &mut Vec<u8>, number: u32, frame: &[u8]) {
    let length = frame.len() as u32;
    file.extend([7, number, length, length].iter().flat_map(|word| word.to_le_bytes()));
    file.extend(frame);
}

#[test]
#[ignore = "a measurement"]
fn pcap() {
    const COUNT: usize = 3_000_000;
    for (what, carried) in [("reports", Carried::Reports), ("IOAM traces", Carried::Traces)] {
        let file = capture(&frames(carried), COUNT);
        let open = || Reader::new(Box::new(std::io::Cursor::new(file.clone())), "memory".into()).unwrap();
        let rate = |begin: Instant| COUNT as f64 / begin.elapsed().as_secs_f64() / 1e6;
        let (mut reader, mut bytes) = (open(), 0);
        let begin = Instant::now();
        while let Some(packet) = reader.next_packet().unwrap() {
            bytes += packet.bytes.len();
        }
        println!("pcap of {what}: {:.1} M/s read ({} B each)", rate(begin), bytes / COUNT);
        let (mut reader, mut collector) = (open(), Collector::new(Markers::default(), 256_000_000));
        let begin = Instant::now();
        while let Some(packet) = reader.next_packet().unwrap() {
            collector.take(&packet);
        }
        println!("pcap of {what}: {:.1} M/s through the collector", rate(begin));
        for shards in [1, 2] {
            let (mut router, threads) =
                start(shards, 200_000_000, 0, true, None, &[], FlowCounts::default()).unwrap();
            let (mut reader, mut intake) = (open(), Intake::new(Markers::default(), 25_000_000));
            let begin = Instant::now();
            while let Some(packet) = reader.next_packet().unwrap() {
                intake.take(&packet, &mut router);
            }
            router.flush();
            drop(router);
            let flows: usize = threads.into_iter().map(|thread| thread.join().unwrap().flows.len()).sum();
            println!("pcap of {what}: {:.1} M/s through {shards} shards, {flows} flows", rate(begin));
        }
    }
}

/// Seconds that the threads of this name have computed, in this process and in the kernel for it.
fn cpu_of(name: &str) -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let ticks = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()?;
        let (head, tail) = text.rsplit_once(") ")?;
        let fields: Vec<i64> = tail.split(' ').filter_map(|field| field.parse().ok()).collect();
        // utime and stime of proc(5), fields 14 and 15; the list begins with field 4.
        head.ends_with(&format!("({name}")).then(|| fields[10] + fields[11])
    });
    ticks.sum::<i64>() as f64 / 100.0
}

/// CPU seconds of the whole process.
fn cpu() -> f64 {
    // SAFETY: zeros are a valid value, which the call fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[test]
#[ignore = "a measurement"]
fn digests() {
    const FLOWS: u32 = 2_000;
    const COUNT: u32 = 2_400_000;
    let decoder = digest_decoder().unwrap();
    let encoder = decoder.plan.encoder().unwrap();
    let flows: u32 = std::env::var("WEFTLINE_RATES_FLOWS").map_or(FLOWS, |text| text.parse().unwrap());
    let one = |n: u32| {
        let flow = n % flows;
        digest_frame(&encoder, flow, n / flows, switches_of(flow))
    };
    let mut file = capture(&[one(0)], 0);
    for n in 0..COUNT {
        add_record(&mut file, n, &one(n));
    }
    if let Some(path) = std::env::var_os("WEFTLINE_RATES_CAPTURE") {
        std::fs::write(path, &file).unwrap();
    }
    let file: &'static [u8] = file.leak();
    let rounds: usize = std::env::var("WEFTLINE_RATES_ROUNDS").map_or(3, |text| text.parse().unwrap());
    for shards in [1, 2, 4].into_iter().cycle().take(3 * rounds) {
        let markers = Markers { pint_ipv4_id: true, ..Markers::default() };
        let mut collector = ParallelCollector::start(markers, 256_000_000, shards, Some(&decoder)).unwrap();
        let mut reader = Reader::new(Box::new(file), "memory".into()).unwrap();
        let (begin, before) = (Instant::now(), cpu());
        while let Some(packet) = reader.next_packet().unwrap() {
            collector.take(&packet);
        }
        let found = collector.finish().unwrap();
        let (wall, busy) = (begin.elapsed().as_secs_f64(), cpu() - before);
        let of = |seconds: f64| f64::from(COUNT) / seconds / 1e6;
        println!(
            "digests through the reader and {shards} shards: {:.2} M/s, {:.2} M for each CPU second ({wall:.2} s, {busy:.2} CPU s)",
            of(wall),
            of(busy)
        );
        assert_eq!(found["summary"]["pint"][0]["paths_decoded"], flows);
        assert_eq!(found["summary"]["pint"][0]["digests"], COUNT);
    }
}

#[test]
#[ignore = "a measurement"]
fn checkpoint() {
    const FLOWS: u32 = 100_000;
    let mut table = FlowTable::new(50_000_000, 1);
    for number in 0..FLOWS {
        let address = |number: u32| std::net::Ipv4Addr::from(number).into();
        let flow = FlowKey {
            source: address(number),
            destination: address(!number),
            source_port: 1,
            destination_port: 2,
            protocol: 17,
            vni: None,
            namespace: None,
        };
        table.observe(&flow, Point::Interface(0), 1, &[1, u64::from(number % 500), 3, 4, 5]);
    }
    let path = std::env::temp_dir().join(format!("weftline-rates-{}", std::process::id()));
    let (begin, busy) = (Instant::now(), cpu_of("checkpoint"));
    write_part(&path, 1, 0, &table).unwrap();
    println!(
        "checkpoint of {FLOWS} flows: {:.3} s on disk, {:.2} s computed",
        begin.elapsed().as_secs_f64(),
        cpu_of("checkpoint") - busy
    );
    std::fs::remove_file(path.with_extension("1.0")).unwrap();
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(done.success(), "ip {arguments}");
}

#[test]
#[ignore = "a measurement"]
fn ring() {
    let _ = Command::new("ip").args(["link", "del", "wfrate0"]).status();
    ip("link add wfrate0 type veth peer name wfrate1");
    for name in ["wfrate0", "wfrate1"] {
        ip(&format!("link set {name} arp off"));
        std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1").unwrap();
        ip(&format!("link set {name} up"));
    }
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
    // SAFETY: zeros are a valid address, and pointer and length are those of it.
    let bound = unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = libc::if_nametoindex(c"wfrate0".as_ptr()) as i32;
        libc::bind(fd, std::ptr::from_ref(&address).cast(), size_of::<libc::sockaddr_ll>() as u32)
    };
    assert_eq!(bound, 0);
    let bypass: libc::c_int = 1;
    const PACKET_QDISC_BYPASS: libc::c_int = 20;
    // SAFETY: pointer and length are those of the value.
    let set = unsafe {
        libc::setsockopt(fd, libc::SOL_PACKET, PACKET_QDISC_BYPASS, std::ptr::from_ref(&bypass).cast(), 4)
    };
    assert_eq!(set, 0);
    for (what, frame) in [
        ("ring, reports", frames(Carried::Reports)[0].clone()),
        ("ring, IOAM traces", frames(Carried::Traces)[0].clone()),
    ] {
        let config = Config { interface: vec!["wfrate1".into()], ..Config::default() };
        let live = Live::start(config, None).unwrap();
        let time = Duration::from_secs(8);
        let sent = send_for(fd, &frame, time, None);
        let busy = cpu_of("reader");
        println!("{what}: {:.2} M/s for each second that the reader computes", sent as f64 / busy / 1e6);
        let (received, dropped) = shown(what, sent, live, time);
        assert_eq!(received + dropped, sent);
    }
    ip("link del wfrate0");
}
