//! Captures through shards: the findings are the same for any number of them.

use serde_json::Value;
use weftline_collect::capture::Packet;
use weftline_collect::ip::Link;
use weftline_collect::packet::Markers;
use weftline_collect::parallel::ParallelCollector;
use weftline_collect::workload::{Carried, digest_decoder, digest_frame, frames, switches_of};

const FLOWS: u32 = 50;
const DIGESTS: u32 = 40;

/// Frames with their times: digests of flows in turns, and IOAM traces between them.
fn mixed() -> Vec<(u64, Vec<u8>)> {
    let encoder = digest_decoder().unwrap().plan.encoder().unwrap();
    let traces = frames(Carried::Traces);
    let of = |n: u32| match n % 3 {
        0 => traces[(n % 64) as usize].clone(),
        // This flow moves to another path.
        _ if n > FLOWS * DIGESTS && n % FLOWS == 1 => digest_frame(&encoder, 1, n, switches_of(7)),
        _ => digest_frame(&encoder, n % FLOWS, n / FLOWS, switches_of(n % FLOWS)),
    };
    (0..2 * FLOWS * DIGESTS).map(|n| (1_000 + u64::from(n / 4), of(n))).collect()
}

fn found(frames: &[(u64, Vec<u8>)], shards: usize) -> Value {
    let markers = Markers { pint_ipv4_id: true, ..Markers::default() };
    let decoder = digest_decoder().unwrap();
    let mut collector = ParallelCollector::start(markers, 64 << 20, shards, Some(&decoder)).unwrap();
    for (time_ns, bytes) in frames {
        let (link, length) = (Some(Link::Ethernet), bytes.len() as u32);
        collector.take(&Packet { time_ns: *time_ns, link, interface: 0, length, bytes });
    }
    let mut found = collector.finish().unwrap();
    // Tables of several shards keep room free each.
    found["summary"]["memory_bytes"] = Value::Null;
    found
}

#[test]
fn findings_do_not_depend_on_the_number_of_shards() {
    let frames = mixed();
    let one = found(&frames, 1);
    assert_eq!(one["summary"]["counts"]["packets"], frames.len());
    assert_eq!(one["summary"]["pint"][0]["digests"], one["summary"]["counts"]["pint_digests"]);
    // The record before the change, and one for each flow.
    assert_eq!(one["pint"].as_array().unwrap().len(), FLOWS as usize + 1);
    assert_eq!(one["summary"]["pint"][0]["paths_changed"], 1);
    assert!(one["paths"].as_array().unwrap().len() > 10);
    for shards in [2, 4] {
        assert_eq!(found(&frames, shards), one, "{shards} shards");
    }
}

/// Packets and digests of one flow at two links: neither its path nor its digests are those of one point.
#[test]
fn captures_at_two_points_change_no_path() {
    let encoder = digest_decoder().unwrap().plan.encoder().unwrap();
    let traces = frames(Carried::Traces);
    let found = |points: [u16; 2]| {
        let markers = Markers { pint_ipv4_id: true, ..Markers::default() };
        let decoder = digest_decoder().unwrap();
        let mut collector = ParallelCollector::start(markers, 64 << 20, 2, Some(&decoder)).unwrap();
        for n in 0..200 {
            let other = digest_frame(&encoder, 0, n, switches_of(7));
            for (place, digest) in [digest_frame(&encoder, 0, n, switches_of(0)), other].iter().enumerate() {
                collector.set_point(points[place]);
                for bytes in [digest, &traces[0]] {
                    let (link, length) = (Some(Link::Ethernet), bytes.len() as u32);
                    let time_ns = u64::from(2 * n) + place as u64;
                    collector.take(&Packet { time_ns, link, interface: 0, length, bytes });
                }
            }
        }
        collector.finish().unwrap()
    };
    let rows = |found: &Value, table: &str| found[table].as_array().unwrap().len();
    let (one, two) = (found([0, 0]), found([0, 1]));
    assert_eq!((rows(&one, "paths"), rows(&two, "paths")), (1, 2));
    assert_eq!(two["paths"][1]["point"], 1);
    // The second digest of a packet shows the other path once one is known.
    assert_ne!(one["summary"]["pint"][0]["paths_changed"], 0);
    assert_eq!(rows(&two, "pint"), 2);
    for name in ["paths_changed", "inconsistent", "strays"] {
        assert_eq!(two["summary"]["pint"][0][name], 0, "{name}");
    }
}

#[test]
fn paths_do_not_depend_on_the_order_of_arrival() {
    let encoder = digest_decoder().unwrap().plan.encoder().unwrap();
    let mut frames: Vec<(u64, Vec<u8>)> = (0..FLOWS * DIGESTS)
        .map(|n| (u64::from(n), digest_frame(&encoder, n % FLOWS, n / FLOWS, switches_of(n % FLOWS))))
        .collect();
    for order in 0..3 {
        let rows = found(&frames, 2);
        let rows = rows["pint"].as_array().unwrap();
        assert_eq!(rows.len(), FLOWS as usize);
        for row in rows {
            let path = &row["queries"]["path"];
            let flow = row["flow"]["src_port"].as_u64().unwrap_or(0) as u32;
            let hops: Vec<u64> = serde_json::from_value(path["hops"].clone()).unwrap();
            assert_eq!(hops, switches_of(flow), "order {order}");
            assert_eq!(path["digests"], DIGESTS);
        }
        frames.reverse();
        frames.sort_by_key(|(time, _)| time * (order + 3) % 101);
    }
}
