//! A collector that runs: every datagram accounted for at any overload, the same findings for any number of
//! shards, outputs that fail alone.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::Value;
use weftline_collect::live::Live;
use weftline_collect::live::config::Config;

/// A report of a packet of the flow with this source port, which passed these nodes.
fn report(sequence: u32, port: u16, nodes: &[u32]) -> Vec<u8> {
    let mut int = vec![0x20, 0, 2, 8, 0xa0, 0, 0, 0, 0, 0, 0, 0];
    for &node in nodes.iter().rev() {
        int.extend(node.to_be_bytes());
        int.extend((node * 1_000).to_be_bytes());
    }
    let mut udp = port.to_be_bytes().to_vec();
    udp.extend(49_203u16.to_be_bytes());
    udp.extend((8 + 4 + int.len() as u16).to_be_bytes());
    udp.extend([0, 0, 0x14, (int.len() / 4) as u8]);
    udp.extend(9_000u16.to_be_bytes());
    udp.extend(int);
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 61, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(udp);
    let last = *nodes.last().unwrap();
    let mut group = ((2u32 << 28) | (sequence % (1 << 22))).to_be_bytes().to_vec();
    group.extend(last.to_be_bytes());
    // No metadata of the node: it is in the stack.
    group.extend([0x14, (2 + packet.len() / 4) as u8, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0]);
    group.extend(packet);
    group
}

fn start(change: impl FnOnce(&mut Config)) -> (Live, SocketAddr) {
    let mut config = Config { listen: vec!["udp:127.0.0.1:0".into()], interval_s: 0.2, ..Config::default() };
    change(&mut config);
    let live = Live::start(config, None).unwrap();
    let address = live.inputs()[0].strip_prefix("udp:").unwrap().parse().unwrap();
    (live, address)
}

fn sender(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(to).unwrap();
    socket
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sent_is_received_and_dropped_at_full_speed() {
    let (live, address) = start(|_| {});
    let socket = sender(address);
    let mut sent = 0u64;
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        for _ in 0..100 {
            sent += u64::from(socket.send(&report(sent as u32, (sent % 500) as u16, &[1, 2, 3])).is_ok());
        }
    }
    let found = live.finish().unwrap();
    let summary = &found["summary"];
    let input = &summary["inputs"][0];
    let (received, dropped) = (input["received"].as_u64().unwrap(), input["dropped"].as_u64().unwrap());
    assert_eq!(received + dropped, sent, "{input}");
    assert_eq!(summary["counts"]["packets"], received);
    assert!(summary["adds_up"].as_bool().unwrap());
    // Loss by sequence numbers is the loss that the kernel counted, except after the last received one.
    assert!(summary["lost_groups"].as_u64().unwrap() <= dropped);
    assert_eq!(summary["malformed"], serde_json::json!({}));
}

#[test]
fn one_two_and_four_shards_find_the_same() {
    let mut all: Vec<Value> = Vec::new();
    for shards in [1, 2, 4] {
        let (live, address) = start(|config| config.shards = shards);
        let socket = sender(address);
        for n in 0..3_000u32 {
            let path = if n < 2_000 { [1, 2, 4] } else { [1, 3, 4] };
            socket.send(&report(n, (n % 300) as u16, &path)).unwrap();
            // Nothing may be shed here, however slow this machine is.
            if n % 100 == 99 {
                until("their arrival", || live.status()["packets"] == n + 1);
            }
        }
        let mut found = live.finish().unwrap();
        assert_eq!(found["summary"]["counts"]["shed"], 0);
        // Times of arrival differ from run to run.
        for row in found["paths"].as_array_mut().unwrap() {
            row["first_ns"] = 0.into();
            row["last_ns"] = 0.into();
        }
        let events = found["events"].as_array_mut().unwrap();
        assert_eq!(events.len(), 300);
        for row in events.iter_mut() {
            row["time_ns"] = 0.into();
            row["event"] = 0.into();
        }
        events.sort_by_key(|row| row["src_port"].as_u64());
        found["summary"] = Value::Null;
        all.push(found);
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
    assert_eq!(all[0]["paths"].as_array().unwrap().len(), 300);
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn queries_answer_while_it_runs_and_a_dead_exporter_stops_nothing() {
    // Accepts and never answers.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/metrics", dead.local_addr().unwrap());
    let (live, address) = start(|config| {
        config.prometheus = Some(":0".into());
        config.otlp = Some(url);
    });
    let http = live.http().unwrap();
    let socket = sender(address);
    for n in 0..1_000u32 {
        let path = if n < 500 { [1, 2, 4] } else { [1, 3, 4] };
        socket.send(&report(n, (n % 10) as u16, &path)).unwrap();
    }
    until("all datagrams", || live.status()["packets"] == 1_000);
    until("a snapshot", || get(http, "/metrics").contains("weftline_packets_total 1000"));
    let metrics = get(http, "/metrics");
    assert!(metrics.contains("weftline_datagrams_total{source=\"127.0.0.1\"} 1000"), "{metrics}");
    assert!(metrics.contains("weftline_events_total{kind=\"path changed\"} 10"));
    let body = |path: &str| -> Value {
        let text = get(http, path);
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    assert_eq!(body("/paths?src=10.0.0.1")["rows"].as_array().unwrap().len(), 10);
    assert_eq!(body("/paths?src=10.0.0.9")["rows"].as_array().unwrap().len(), 0);
    assert_eq!(body("/events?since=4")["rows"].as_array().unwrap().len(), 6);
    assert_eq!(body("/health")["adds_up"], true);
    let hops = body("/hops?switch=4");
    assert_eq!(hops["rows"].as_array().unwrap().len(), 1);
    assert!(hops["interval"].as_u64().unwrap() >= 1 && hops["time_ns"].is_u64(), "{hops}");
    assert!(body("/hops?switch=s4")["error"].as_str().unwrap().contains("number of a node"));
    assert!(body("/paths?from=1")["error"].as_str().unwrap().contains("expected src, dst"));
    assert!(get(http, "/nothing").starts_with("HTTP/1.1 404"));
    let found = live.finish().unwrap();
    assert_eq!(found["summary"]["counts"]["packets"], 1_000);
    drop(dead);
}

#[test]
fn a_source_of_nonsense_is_muted_and_everything_adds_up() {
    let (live, address) = start(|_| {});
    let socket = sender(address);
    for n in 0..300u32 {
        socket.send(&n.to_le_bytes()).unwrap();
    }
    until("all datagrams", || live.status()["packets"] == 300);
    let found = live.finish().unwrap();
    let counts = &found["summary"]["counts"];
    assert_eq!(counts["malformed_packets"], 100);
    assert_eq!(counts["unwelcome"], 200);
    assert_eq!(found["summary"]["exporters"][0]["muted"], 200);
    assert!(found["summary"]["adds_up"].as_bool().unwrap());
}

#[test]
fn an_event_names_flows_that_were_seen_while_it_began() {
    let (live, address) = start(|_| {});
    let socket = sender(address);
    let mut sequence = 0;
    let mut interval = |port: u16, packets: u32, nodes: &[u32]| {
        for _ in 0..packets {
            socket.send(&report(sequence, port, nodes)).unwrap();
            sequence += 1;
        }
        until("their arrival", || live.status()["packets"] == sequence);
        std::thread::sleep(Duration::from_millis(200));
    };
    // The largest flow of all passes node 2 and ends.
    interval(1, 500, &[1, 2, 4]);
    for _ in 0..8 {
        interval(2, 50, &[1, 2, 4]);
    }
    // A hop's latency is 1 000 times its number, so that node 2 has 2 000.
    let rose = || live.status()["events"].as_u64().unwrap() > 0;
    let mut slow = report(0, 2, &[1, 2, 4]);
    let at = slow.windows(4).position(|word| word == 2_000u32.to_be_bytes()).unwrap();
    slow[at..at + 4].copy_from_slice(&90_000u32.to_be_bytes());
    until("a rise", || {
        for _ in 0..50 {
            slow[..4].copy_from_slice(&(2u32 << 28 | sequence).to_be_bytes());
            socket.send(&slow).unwrap();
            sequence += 1;
        }
        std::thread::sleep(Duration::from_millis(200));
        rose()
    });
    let found = live.finish().unwrap();
    let events = found["events"].as_array().unwrap();
    let event = events.iter().find(|event| event["kind"] == "latency rose").unwrap();
    assert_eq!((&event["node"], &event["flows"][0]["src_port"]), (&"2".into(), &2.into()), "{event}");
    assert_eq!(event["flows"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_wrong_with_the_configuration_is_named() {
    let wrong = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        Live::start(config, None).err().unwrap()
    };
    assert!(wrong(|_| {}).contains("at least one input"));
    assert!(wrong(|config| config.listen = vec!["udp:0.0.0.0:0".into()]).contains("--allow"));
    assert!(wrong(|config| config.interface = vec!["no-such".into()]).contains("no-such"));
    assert!(wrong(|config| config.interface = vec!["lo".into(), "lo".into()]).contains("named twice"));
    assert!(
        wrong(|config| {
            config.listen = vec!["udp:127.0.0.1:0".into()];
            config.otlp = Some("ftp://x".into());
        })
        .contains("ftp://x")
    );
}

#[test]
fn a_collector_continues_from_its_checkpoint_with_any_number_of_shards() {
    let folder = std::env::temp_dir().join(format!("weftline-checkpoint-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("state");
    let mut sequence = 0;
    let mut found = Value::Null;
    for (round, shards) in [1, 4, 2].into_iter().enumerate() {
        let (live, address) = start(|config| {
            config.shards = shards;
            config.checkpoint = Some(file.clone());
            config.out = Some(folder.clone());
        });
        let socket = sender(address);
        for n in 0..400u32 {
            // Every flow changes its path in every round but the first.
            socket.send(&report(sequence, (n % 100) as u16, &[1, 2 + round as u32, 9])).unwrap();
            sequence += 1;
            // Nothing may be shed here, however slow this machine is.
            if n % 100 == 99 {
                until("their arrival", || live.status()["packets"] == sequence);
            }
        }
        found = live.finish().unwrap();
    }
    assert_eq!(found["summary"]["counts"]["packets"], 1_200);
    assert_eq!(found["summary"]["lost_groups"], 0);
    assert_eq!(found["summary"]["counts"]["shed"], 0);
    assert_eq!(found["summary"]["events"], 200);
    let paths = found["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 100);
    assert!(paths.iter().all(|row| row["packets"] == 12 && row["changes"] == 2), "{}", paths[0]);
    let events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let numbers: Vec<u64> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=200).collect::<Vec<_>>());
    // A damaged checkpoint is refused, and named.
    let mut text = std::fs::read(&file).unwrap();
    text[100] ^= 1;
    std::fs::write(&file, text).unwrap();
    let config =
        Config { listen: vec!["udp:127.0.0.1:0".into()], checkpoint: Some(file), ..Config::default() };
    let error = Live::start(config, None).err().unwrap();
    assert!(error.contains("is damaged"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// The rows of a file of JSON lines that have a number under this key.
fn numbers(file: &std::path::Path, key: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()[key].as_u64().unwrap()).collect()
}

#[test]
fn rows_of_a_collector_before_stay_and_numbers_continue_after_them() {
    let folder = std::env::temp_dir().join(format!("weftline-rows-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (out, checkpoint) = (folder.join("out"), folder.join("checkpoint"));
    let collect = |out: Option<&std::path::Path>, checkpoint: Option<&std::path::Path>, first: u32| {
        let (live, address) = start(|config| {
            (config.out, config.checkpoint) = (out.map(Into::into), checkpoint.map(Into::into));
        });
        let socket = sender(address);
        let before = live.status()["packets"].as_u64().unwrap();
        for n in 0..4u32 {
            socket.send(&report(first + n, 7, &[1, 2 + n % 2, 4])).unwrap();
            until("its arrival", || live.status()["packets"] == before + u64::from(n) + 1);
        }
        live.finish().unwrap()["summary"].take()
    };
    let events = out.join("events.jsonl");
    // Without a checkpoint, twice in one folder; the first one was killed while it wrote a row.
    assert_eq!(collect(Some(&out), None, 0)["events"], 3);
    let mut file = std::fs::OpenOptions::new().append(true).open(&events).unwrap();
    file.write_all(b"{\"event\":4,\"ti").unwrap();
    let second = collect(Some(&out), None, 0);
    assert_eq!((&second["events"], &second["packets_before"]), (&3.into(), &0.into()));
    assert_eq!(numbers(&events, "event"), [1, 2, 3, 4, 5, 6]);
    let mut intervals = numbers(&out.join("intervals.jsonl"), "interval");
    intervals.dedup();
    assert!(intervals.windows(2).all(|pair| pair[0] < pair[1]), "{intervals:?}");
    // A checkpoint that was written without a folder is not about the rows in this one.
    assert_eq!(collect(None, Some(&checkpoint), 0)["events"], 3);
    let third = collect(Some(&out), Some(&checkpoint), 4);
    assert_eq!((&third["events"], &third["packets_before"]), (&7.into(), &4.into()));
    assert_eq!(numbers(&events, "event"), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    // One of this folder continues it.
    let fourth = collect(Some(&out), Some(&checkpoint), 8);
    assert_eq!((&fourth["events"], &fourth["packets_before"]), (&11.into(), &8.into()));
    assert_eq!(numbers(&events, "event"), (1..=14).collect::<Vec<_>>());
    std::fs::remove_dir_all(&folder).unwrap();
}
