//! The collector on captures made here, on those of the reference, and on any bytes.

use std::io::{Cursor, Write};
use std::net::Ipv4Addr;

use proptest::prelude::*;
use serde_json::Value;
use weftline_collect::capture::{Packet, Problem, Reader};
use weftline_collect::collector::{Collector, Counts};
use weftline_collect::ip::Link;
use weftline_collect::packet::Markers;
use weftline_collect::workload::digest_decoder;

const MEMORY: usize = 64 << 20;

/// INT-MD of these nodes (oldest first, with a queue each) in a UDP packet from this port.
fn int_packet(port: u16, nodes: &[u32], flags: u8) -> Vec<u8> {
    let mut int = vec![0x20 | flags, 0, 2, 8, 0x90, 0, 0, 0, 0, 0, 0, 0];
    for &node in nodes.iter().rev() {
        int.extend(node.to_be_bytes());
        int.extend((node * 10).to_be_bytes());
    }
    let mut udp = port.to_be_bytes().to_vec();
    udp.extend(49_203u16.to_be_bytes());
    udp.extend((8 + 4 + int.len() as u16).to_be_bytes());
    udp.extend([0, 0, 0x14, (int.len() / 4) as u8]);
    udp.extend(9000u16.to_be_bytes());
    udp.extend(int);
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 61, 17, 0, 0]);
    packet.extend(Ipv4Addr::new(10, 0, 0, 1).octets());
    packet.extend(Ipv4Addr::new(10, 0, 0, 2).octets());
    packet.extend(udp);
    packet
}

fn take(collector: &mut Collector, time_ns: u64, bytes: &[u8]) {
    let length = bytes.len() as u32;
    collector.take(&Packet { time_ns, link: Some(Link::Raw), interface: 0, length, bytes });
    assert!(collector.counts().adds_up());
}

fn collector() -> Collector {
    Collector::new(Markers::default(), MEMORY)
}

#[test]
fn a_change_of_path_is_reported_once_and_at_the_right_packet() {
    let mut collector = collector();
    for time in 0..10u64 {
        let by_way = if time < 6 { [1, 2, 4] } else { [1, 3, 4] };
        take(&mut collector, time, &int_packet(5000, &by_way, 0));
        take(&mut collector, time, &int_packet(5001, &[1, 2, 4], 0));
    }
    let [change] = collector.changes() else { panic!("{:?}", collector.changes()) };
    assert_eq!((change.time_ns, change.flow.source_port, change.flow.destination_port), (6, 5000, 9000));
    assert_eq!(
        (collector.path(change.before), collector.path(change.after)),
        (&[1, 2, 4][..], &[1, 3, 4][..])
    );
    assert_eq!(collector.hops().len(), 4);
}

#[test]
fn a_stack_that_a_hop_could_not_write_into_tells_no_path() {
    let mut collector = collector();
    take(&mut collector, 0, &int_packet(5000, &[1, 2, 3], 0));
    // E: the hop count was used up; M: the MTU.
    take(&mut collector, 1, &int_packet(5000, &[1, 2], 4));
    take(&mut collector, 2, &int_packet(5000, &[1], 2));
    assert_eq!(collector.changes(), []);
    assert_eq!(collector.counts().incomplete_stacks, 2);
    assert_eq!(collector.counts().int_md, 3);
}

#[test]
fn memory_stays_below_its_limit_and_what_is_refused_is_counted() {
    let limit = 1 << 20;
    let mut collector = Collector::new(Markers::default(), limit);
    for flow in 0..40_000u16 {
        take(&mut collector, 0, &int_packet(flow, &[1, 2], 0));
        assert!(collector.bytes() <= limit);
    }
    let kept = collector.flows().len() as u64;
    assert!(kept > 6_000, "{kept}");
    let counts = collector.counts();
    assert_eq!(kept + counts.flows_evicted + counts.flows_refused, 40_000);
    assert!(counts.flows_refused > 0);
}

#[test]
fn findings_of_paths_and_hops_do_not_depend_on_the_order_of_arrival() {
    let packets: Vec<_> =
        (0..200u16).map(|n| (u64::from(n), int_packet(n % 7, &[1, u32::from(n % 7), 9], 0))).collect();
    let found = |order: &mut dyn Iterator<Item = &(u64, Vec<u8>)>| {
        let mut collector = collector();
        order.for_each(|(time, bytes)| take(&mut collector, *time, bytes));
        (collector.path_rows(), collector.hop_rows())
    };
    assert_eq!(found(&mut packets.iter()), found(&mut packets.iter().rev()));
}

/// IPv6 with pre-allocated IOAM traces (namespace, then a node with its transit delay each, oldest first).
fn ioam_packet(traces: &[(u16, &[(u8, u32)])], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut options = Vec::new();
    for (namespace, nodes) in traces {
        // Aligned to four bytes: two of padding before each option.
        options.extend([1, 0, 0x31, 2 + 8 + 8 * nodes.len() as u8, 0, 0]);
        options.extend(namespace.to_be_bytes());
        // Two words a node: hop limit with node, and transit delay.
        options.extend([0x10, 0, 0x88, 0, 0, 0]);
        for (node, delay) in nodes.iter().rev() {
            options.extend([60, 0, 0, *node]);
            options.extend(delay.to_be_bytes());
        }
    }
    let padding = (6 + 8 - options.len() % 8) % 8;
    match padding {
        0 => {}
        1 => options.push(0),
        _ => options.extend([&[1, padding as u8 - 2][..], &vec![0; padding - 2]].concat()),
    }
    let extension = [&[protocol, ((options.len() + 2) / 8 - 1) as u8], &options[..]].concat();
    let length = (extension.len() + payload.len()) as u16;
    let addresses = [[0xfd; 16], [0xfe; 16]].concat();
    [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[0, 60], &addresses, &extension, payload].concat()
}

/// An IPv4 packet of UDP to port 9.
fn plain_packet(port: u16) -> Vec<u8> {
    let udp = [port, 9, 8, 0].map(u16::to_be_bytes).concat();
    [&[0x45, 0, 0, 28, 0, 0, 0x40, 0, 60, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2][..], &udp].concat()
}

#[test]
fn traces_of_two_namespaces_are_two_paths() {
    let mut collector = collector();
    let udp = [5000u16, 9, 8, 0].map(u16::to_be_bytes).concat();
    for time in 0..3 {
        let traces: [(u16, &[(u8, u32)]); 2] = [(123, &[(1, 5), (2, 5)]), (456, &[(7, 5), (8, 5)])];
        take(&mut collector, time, &ioam_packet(&traces, 17, &udp));
    }
    assert_eq!(collector.changes(), []);
    let paths = collector.path_rows();
    let found: Vec<_> = paths.iter().map(|row| (&row["namespace"], &row["path"], &row["packets"])).collect();
    let expected =
        [(123.into(), [1, 2].as_slice().into(), 3.into()), (456.into(), [7, 8].as_slice().into(), 3.into())];
    assert_eq!(found, expected.iter().map(|(a, b, c): &(Value, Value, Value)| (a, b, c)).collect::<Vec<_>>());
}

/// IPv6 with extension headers of these kinds and contents, then UDP from port 5000 to 9.
fn extended_packet(headers: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let udp = [5000u16, 9, 8, 0].map(u16::to_be_bytes).concat();
    let kinds: Vec<u8> = headers.iter().map(|header| header.0).chain([17]).collect();
    let mut payload = Vec::new();
    for (place, (_, contents)) in headers.iter().enumerate() {
        let mut header = [&[kinds[place + 1], 0], &contents[..]].concat();
        // Padding of one byte each.
        header.resize(header.len().next_multiple_of(8), 0);
        header[1] = (header.len() / 8 - 1) as u8;
        payload.extend(header);
    }
    payload.extend(udp);
    let length = payload.len() as u16;
    let addresses = [[0xfd; 16], [0xfe; 16]].concat();
    [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[kinds[0], 60], &addresses, &payload].concat()
}

/// A trace of namespace 7, pre-allocated (kind 0) or incremental (1), with the hop limit and number of each
/// node, oldest first; without hop limits, nodes have an interface in place of a number.
fn trace(kind: u8, nodes: &[(u8, u8)]) -> Vec<u8> {
    let mut option = vec![1, 0, 0x31, 2 + 8 + 4 * nodes.len() as u8, 0, kind, 0, 7, 8, 0, 0x80, 0, 0, 0];
    for &(hop_limit, node) in nodes.iter().rev() {
        option.extend([hop_limit, 0, 0, node]);
    }
    option
}

#[test]
fn traces_of_one_namespace_in_one_packet_are_one_path_by_their_hop_limits() {
    let paths = |packets: &[Vec<u8>]| {
        let mut collector = collector();
        for (time, packet) in (0..).zip(packets) {
            take(&mut collector, time, packet);
        }
        assert_eq!(collector.changes(), []);
        let rows = collector.path_rows();
        let found: Vec<_> = rows.iter().map(|row| (row["path"].clone(), row["packets"].clone())).collect();
        (found, collector.counts().incomplete_stacks)
    };
    // Some devices write incremental traces, the others pre-allocated ones; node 4 is in both.
    let both = [trace(1, &[(63, 1), (61, 3), (60, 4)]), trace(0, &[(62, 2), (60, 4), (59, 5)])].concat();
    let packet = extended_packet(&[(0, both)]);
    let path = Value::from(&[1, 2, 3, 4, 5][..]);
    assert_eq!(paths(&[packet.clone(), packet]), (vec![(path.clone(), 2.into())], 0));
    // One of them is still empty.
    let all = trace(0, &[(63, 1), (62, 2), (61, 3), (60, 4), (59, 5)]);
    let packet = extended_packet(&[(0, [trace(1, &[]), all].concat())]);
    assert_eq!(paths(&[packet]), (vec![(path, 1.into())], 0));
    // Two nodes with one hop limit: their order is not known.
    let packet = extended_packet(&[(0, [trace(1, &[(63, 1)]), trace(0, &[(63, 2)])].concat())]);
    assert_eq!(paths(&[packet]), (vec![], 1));
}

#[test]
fn a_trace_before_a_routing_header_is_found() {
    let mut collector = collector();
    let routing = [vec![4, 0, 0, 0, 0, 0], vec![0; 16]].concat();
    let headers = [(60, trace(0, &[(63, 1), (62, 2)])), (43, routing), (60, vec![1, 4, 0, 0, 0, 0])];
    take(&mut collector, 0, &extended_packet(&headers));
    assert_eq!(collector.path_rows()[0]["path"], Value::from(&[1, 2][..]));
}

#[test]
fn a_capture_of_all_interfaces_has_a_point_of_observation_for_each() {
    let of = |hops: u8| int_packet(5000, &[1, 2, 3][..usize::from(hops)], 0);
    // A router: what it receives by interface 3 it sends by 4, after it wrote into the stack.
    let second = |interface: u8, packet: Vec<u8>| {
        [vec![8, 0, 0, 0, 0, 0, 0, interface, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0], packet].concat()
    };
    let first = |kind: u8, packet: Vec<u8>| {
        [vec![0, kind, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], packet].concat()
    };
    for (link, frames, interfaces) in [
        (Link::LinuxCooked2, [second(3, of(2)), second(4, of(3))], [3, 4]),
        // Version 1 states whether a packet was received (0) or sent (4).
        (Link::LinuxCooked, [first(0, of(2)), first(4, of(3))], [0, 1]),
    ] {
        let mut collector = collector();
        for time_ns in 0..6 {
            let bytes = &frames[time_ns as usize % 2];
            let length = bytes.len() as u32;
            collector.take(&Packet { time_ns, link: Some(link), interface: 0, length, bytes });
        }
        assert_eq!(collector.changes(), [], "{link:?}");
        let rows = collector.path_rows();
        let found: Vec<_> =
            rows.iter().map(|row| (row["interface"].clone(), row["packets"].clone())).collect();
        assert_eq!(found, interfaces.map(|number| (number.into(), 3.into())), "{link:?}");
    }
}

#[test]
fn a_packet_of_length_0_is_all_that_was_captured() {
    let mut collector = collector();
    let mut packet = int_packet(5000, &[1, 2], 0);
    // Before segmentation offload.
    packet[2..4].fill(0);
    take(&mut collector, 0, &packet);
    assert_eq!(collector.path_rows()[0]["path"], Value::from(&[1, 2][..]));
}

#[test]
fn the_flow_of_a_trace_outside_of_tunnels_is_that_of_the_innermost_packet() {
    let gre = |inner: &[u8]| [&[0, 0, 8, 0], inner].concat();
    let over_udp = |port: u16, header: [u8; 8], inner: &[u8]| {
        let ports = [4000, port, 8 + 8 + inner.len() as u16, 0].map(u16::to_be_bytes).concat();
        [&ports, &header[..], inner].concat()
    };
    let bridged = |inner: &[u8]| [&[0; 12], &[8, 0][..], inner].concat();
    type Wrap<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let tunnels: [(u8, Option<u32>, Wrap); 6] = [
        (4, None, &|inner| inner.to_vec()),
        (47, None, &|inner| gre(inner)),
        (17, Some(5), &|inner| over_udp(4789, [8, 0, 0, 0, 0, 0, 5, 0], &bridged(inner))),
        (17, Some(6), &|inner| over_udp(4790, [12, 0, 0, 1, 0, 0, 6, 0], inner)),
        (17, Some(7), &|inner| over_udp(6081, [0, 0, 8, 0, 0, 0, 7, 0], inner)),
        // IPv4 in GRE in VXLAN.
        (17, Some(8), &|inner| {
            let outer =
                [&[0x45, 0, 0, 52, 0, 0, 0x40, 0, 60, 47, 0, 0, 9, 9, 9, 9, 8, 8, 8, 8], &gre(inner)[..]]
                    .concat();
            over_udp(4789, [8, 0, 0, 0, 0, 0, 8, 0], &bridged(&outer))
        }),
    ];
    for (protocol, vni, wrap) in tunnels {
        let mut collector = collector();
        for time in 0..6u64 {
            let (port, way) = if time % 2 == 0 { (5000, 2) } else { (5001, 3) };
            let inner = wrap(&plain_packet(port));
            take(&mut collector, time, &ioam_packet(&[(0, &[(1, 5), (way, 5)])], protocol, &inner));
        }
        assert_eq!(collector.changes(), [], "{protocol} {vni:?}");
        let flows = collector.flows();
        let found: Vec<_> = flows.iter().map(|((flow, _), _)| (flow.source_port, flow.vni)).collect();
        assert_eq!(found, [(5000, vni), (5001, vni)], "{protocol}");
    }
}

#[test]
fn delays_that_overflow_their_field_count_as_its_end() {
    let mut collector = collector();
    let udp = [5000u16, 9, 8, 0].map(u16::to_be_bytes).concat();
    for delay in [500, 500, 1 << 31, 1 << 31 | 77] {
        take(&mut collector, 0, &ioam_packet(&[(0, &[(1, delay)])], 17, &udp));
    }
    let rows = collector.hop_rows();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row["latency_samples"], &row["latency_minima"]), (&4.into(), &2.into()));
    assert_eq!(row["latency_max"], 1u64 << 31);
}

/// A report group of one report, about a packet in IPv4.
fn report(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet.resize(packet.len().next_multiple_of(4), 0);
    let mut payload = [0x2000_0001u32.to_be_bytes(), 9u32.to_be_bytes()].concat();
    payload.extend([4, (packet.len() / 4) as u8, 0, 0x20]);
    payload.extend(packet);
    let mut udp = [5000u16, 32_766, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    udp.extend(payload);
    let mut datagram = vec![0x45, 0];
    datagram.extend((20 + udp.len() as u16).to_be_bytes());
    datagram.extend([0, 0, 0x40, 0, 61, 17, 0, 0, 10, 0, 0, 9, 10, 0, 0, 10]);
    datagram.extend(udp);
    datagram
}

#[test]
fn what_is_malformed_in_the_packet_of_a_report_is_counted_by_its_reason() {
    let mut collector = collector();
    let whole = int_packet(5000, &[3, 8], 0);
    let mut beyond = whole.clone();
    // The length of INT's shim.
    beyond[29] = 0x50;
    let mut garbage = whole.clone();
    garbage[0] = 0x95;
    for (time, packet) in (0..).zip([&whole, &beyond, &beyond, &garbage]) {
        let mut datagram = report(packet);
        datagram[31] = time as u8;
        take(&mut collector, time, &datagram);
    }
    let summary = collector.summary();
    let reasons = serde_json::json!({"IP header": 1, "INT length beyond the packet or below its header": 2});
    assert_eq!(summary["malformed_in_reports"], reasons);
    assert_eq!(summary["malformed"], serde_json::json!({}), "the reports are whole");
    let counts = collector.counts();
    assert_eq!((counts.reports, counts.with_telemetry, counts.malformed_in_reports), (4, 4, 3));
    assert_eq!(collector.flows().len(), 1);
}

#[test]
fn a_report_of_a_type_without_contents_is_counted_and_the_one_after_it_is_read() {
    let mut collector = collector();
    let mut datagram = report(&int_packet(5000, &[3, 8], 0));
    // Type 2 (IOAM) of a word, with more metadata than it has, before the other report of the group.
    let at = 20 + 8 + 8;
    datagram.splice(at..at, [0x24, 1, 9, 0, 1, 2, 3, 4]);
    let length = datagram.len() as u16;
    datagram[2..4].copy_from_slice(&length.to_be_bytes());
    datagram[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    take(&mut collector, 0, &datagram);
    let counts = collector.counts();
    assert_eq!((counts.reports, counts.opaque_reports), (2, 1));
    assert_eq!(collector.summary()["malformed"], serde_json::json!({}));
    assert_eq!(collector.path_rows()[0]["path"], Value::from(&[3, 8, 9][..]));
}

#[test]
fn a_late_report_sets_no_path_back_and_still_tells_of_a_flow_that_was_not_seen_since() {
    let mut collector = collector();
    let reports = [(1, 5000, 8), (2, 5001, 8), (4, 5000, 7), (3, 5000, 8), (6, 5000, 7), (5, 5001, 6)];
    for (time, (number, port, by_way)) in (100..).zip(reports) {
        let mut datagram = report(&int_packet(port, &[3, by_way], 0));
        datagram[31] = number;
        take(&mut collector, time, &datagram);
    }
    let changes: Vec<_> = collector
        .changes()
        .iter()
        .map(|change| (change.time_ns, change.flow.source_port, collector.path(change.after).to_vec()))
        .collect();
    // What came late was sent before the report with the next number came, at 102 and 104.
    assert_eq!(changes, [(102, 5000, vec![3, 7, 9]), (103, 5001, vec![3, 6, 9])]);
    assert_eq!(collector.counts().late_paths, 1);
    assert_eq!(collector.sources()[&(9, 0)].late, 2);
}

/// An IPv6 packet with PINT's option.
fn pint_option(plan: u8, initial_hop_limit: u8, hop_limit: u8, digest: &[u8]) -> Vec<u8> {
    let mut options = vec![17, 0, 0x3e, 2 + digest.len() as u8, plan, initial_hop_limit];
    options.extend(digest);
    options.resize(options.len().next_multiple_of(8), 0);
    options[1] = (options.len() / 8 - 1) as u8;
    let mut packet = vec![0x60, 0, 0, 0, 0, options.len() as u8 + 8, 0, hop_limit];
    packet.extend([0xfd; 32]);
    packet.extend(options);
    packet.extend([0x13, 0x88, 0x23, 0x28, 0, 8, 0, 0]);
    packet
}

#[test]
fn digests_that_no_plan_can_have_are_counted_by_their_reason() {
    let decoder = digest_decoder().unwrap();
    let plan = decoder.plan.version() as u8;
    let mut collector = Collector::with_pint(Markers::default(), MEMORY, &decoder).unwrap();
    for (packet, count) in [
        (pint_option(plan, 64, 60, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 7]), 1),
        (pint_option(plan, 64, 60, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 7]), 2),
        (pint_option(plan, 64, 65, &[0, 7]), 3),
    ] {
        (0..count).for_each(|time| take(&mut collector, time, &packet));
    }
    let counts = collector.counts();
    assert_eq!((counts.pint_digests, counts.wide_digests, counts.impossible_hop_limits), (6, 2, 3));
}

/// IPv4 with DF and this payload, of which `kept` bytes are there.
fn kept_of(protocol: u8, payload: &[u8], kept: usize) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut packet = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 7, 0x40, 0, 61, protocol, 0, 0]].concat();
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(&payload[..kept]);
    packet
}

#[test]
fn a_digest_counts_if_all_that_the_id_of_its_packet_is_made_of_was_kept() {
    let decoder = digest_decoder().unwrap();
    let markers = Markers { pint_ipv4_id: true, ..Markers::default() };
    let mut collector = Collector::with_pint(markers, MEMORY, &decoder).unwrap();
    let (tcp, mut udp) = ([0x50; 60], [9; 60]);
    let summed = udp;
    udp[6..8].fill(0);
    for (protocol, payload, needed) in [(6, tcp, 18), (17, summed, 8), (17, udp, 24), (132, summed, 8)] {
        let before = collector.counts();
        take(&mut collector, 1, &kept_of(protocol, &payload, needed));
        assert_eq!(collector.counts().cut_digests, before.cut_digests, "{protocol} {needed}");
        take(&mut collector, 2, &kept_of(protocol, &payload, needed - 1));
        let counts = collector.counts();
        assert_eq!(counts.cut_digests, before.cut_digests + 1, "{protocol} {needed}");
        assert_eq!(counts.pint_digests, before.pint_digests + 2);
    }
    // Whole, and shorter than that.
    take(&mut collector, 3, &kept_of(17, &udp[..10], 10));
    assert_eq!(collector.counts().cut_digests, 4);
}

#[test]
fn labels_of_fragments_are_those_of_their_hosts() {
    let markers = Markers { pint_flow_label: true, ..Markers::default() };
    let mut collector = Collector::new(markers, MEMORY);
    for (place, digests) in [([0, 0], 1), ([0, 1], 1), ([0, 8], 1), ([0, 9], 1)] {
        let mut packet = vec![0x60, 15, 0, 7, 0, 16, 44, 61];
        packet.extend([0xfd; 32]);
        packet.extend([17, 0, place[0], place[1], 0, 0, 0, 1]);
        packet.extend([0x13, 0x88, 0x23, 0x28, 0, 8, 0, 1]);
        take(&mut collector, 1, &packet);
        assert_eq!(collector.counts().pint_digests, digests, "{place:?}");
    }
}

#[test]
fn digests_of_a_flow_at_two_interfaces_are_of_two_paths() {
    let decoder = digest_decoder().unwrap();
    let plan = decoder.plan.version() as u8;
    let mut collector = Collector::with_pint(Markers::default(), MEMORY, &decoder).unwrap();
    for n in 0..8u8 {
        for (interface, hop_limit) in [(0, 62), (3, 60)] {
            let bytes = pint_option(plan, 64, hop_limit, &[0, n]);
            let length = bytes.len() as u32;
            let packet =
                Packet { time_ns: n.into(), link: Some(Link::Raw), interface, length, bytes: &bytes };
            collector.take(&packet);
        }
    }
    let decoding = collector.pint().unwrap();
    assert_eq!(decoding.take_events().len(), 0);
    let rows = weftline_collect::pint::rows(std::slice::from_ref(decoding));
    let interfaces: Vec<_> = rows.iter().map(|row| row["flow"]["interface"].as_u64()).collect();
    assert_eq!(interfaces, [None, Some(3)]);
    assert!(rows.iter().all(|row| row["flow"].get("flow_id").is_none()), "{rows:?}");
}

#[test]
fn counts_of_an_earlier_version_are_read() {
    let counts: Counts = serde_json::from_str(r#"{"packets": 5}"#).unwrap();
    assert_eq!((counts.packets, counts.wide_digests), (5, 0));
}

fn classic(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file: Vec<u8> =
        [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 101].iter().flat_map(|w| w.to_le_bytes()).collect();
    for packet in packets {
        file.extend([7u32, 5, packet.len() as u32, packet.len() as u32].iter().flat_map(|w| w.to_le_bytes()));
        file.extend(packet);
    }
    file
}

#[test]
fn an_id_without_df_is_for_fragments_and_is_not_a_digest() {
    let markers = Markers { pint_ipv4_id: true, ..Markers::default() };
    let mut found = Collector::new(markers, MEMORY);
    // DF; none; more fragments; DF at an offset; neither.
    for flags in [0x4000u16, 0, 0x2000, 0x4001, 0x8000] {
        let mut packet = [&[0x45, 0, 0, 28, 0x12, 0x34][..], &flags.to_be_bytes(), &[61, 17, 0, 0]].concat();
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0x23, 0x28, 0, 8, 0, 0]);
        take(&mut found, 0, &packet);
    }
    let counts = found.counts();
    assert_eq!((counts.pint_digests, counts.ids_without_df, counts.without_telemetry), (1, 2, 4));
    let mut unmarked = collector();
    take(&mut unmarked, 0, &[&[0x45, 0, 0, 28, 0x12, 0x34, 0, 0, 61, 17][..], &[0; 18]].concat());
    assert_eq!(unmarked.counts().ids_without_df, 0);
}

/// pcapng, big-endian, nanoseconds, an offset of 100 s.
fn next_generation(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = 12 + body.len() as u32;
        file.extend(kind.to_be_bytes());
        file.extend(length.to_be_bytes());
        file.extend(body);
        file.extend(length.to_be_bytes());
    };
    block(0x0a0d_0d0a, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let options = [0, 9, 0, 1, 9, 0, 0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0];
    block(1, &[&[0, 101, 0, 0, 0, 0, 0, 0][..], &options].concat());
    block(5, &[0; 12]);
    for packet in packets {
        let length = (packet.len() as u32).to_be_bytes();
        let mut body = [[0; 4], [0; 4], [0, 0, 0, 42], length, length].concat();
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        block(6, &body);
    }
    file
}

fn read(file: Vec<u8>) -> Vec<(u64, Vec<u8>)> {
    let mut reader = Reader::new(Box::new(Cursor::new(file)), "test".into()).unwrap();
    let mut found = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        assert_eq!((packet.link, packet.length as usize), (Some(Link::Raw), packet.bytes.len()));
        found.push((packet.time_ns, packet.bytes.to_vec()));
    }
    found
}

#[test]
fn captures_of_both_formats_plain_and_gzipped() {
    let packets: Vec<_> = (0..5).map(|n| int_packet(n, &[1, 2], 0)).collect();
    for (file, time_ns) in [(classic(&packets), 7_000_000_005), (next_generation(&packets), 100_000_000_042)]
    {
        let expected: Vec<_> = packets.iter().map(|packet| (time_ns, packet.clone())).collect();
        assert_eq!(read(file.clone()), expected);
        let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zipped.write_all(&file).unwrap();
        assert_eq!(read(zipped.finish().unwrap()), expected);
    }
}

#[test]
fn a_capture_that_is_cut_off_says_where() {
    let file = classic(&[int_packet(1, &[1, 2], 0), int_packet(2, &[1, 2], 0)]);
    let cut = file[..file.len() - 3].to_vec();
    let mut reader = Reader::new(Box::new(Cursor::new(cut)), "test.pcap".into()).unwrap();
    assert!(reader.next_packet().unwrap().is_some());
    let error = reader.next_packet().unwrap_err();
    assert!(matches!(error.problem, Problem::CutOff));
    assert_eq!(error.to_string(), "test.pcap: record 2 (byte 100): cut off");
}

/// Bytes of packets that carry telemetry, some of them changed or cut off.
fn almost_packets() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let changes = prop::collection::vec(change, 0..6);
    let nodes = prop::collection::vec(any::<u32>().prop_map(|node| node >> 8), 0..8);
    (any::<u16>(), nodes, changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(port, nodes, changes, end, cut)| {
            let mut packet = int_packet(port, &nodes, 0);
            for (place, value) in changes {
                let place = place.index(packet.len());
                packet[place] = value;
            }
            if cut {
                packet.truncate(end.index(packet.len()));
            }
            packet
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_make_the_parsers_panic(packets in prop::collection::vec(almost_packets(), 1..4)) {
        let markers = Markers { pint_ipv4_id: true, pint_flow_label: true, report_ports: vec![9, 32_766], ..Markers::default() };
        let mut collector = Collector::new(markers, MEMORY);
        for packet in &packets {
            take(&mut collector, 0, packet);
        }
        collector.summary();
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut file in prop_oneof![
            prop::collection::vec(almost_packets(), 0..4).prop_map(|packets| classic(&packets)),
            prop::collection::vec(almost_packets(), 0..4).prop_map(|packets| next_generation(&packets)),
        ], changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)) {
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        let mut reader = Reader::new(Box::new(Cursor::new(file)), "any".into()).unwrap();
        let mut collector = collector();
        while let Ok(Some(packet)) = reader.next_packet() {
            collector.take(&packet);
        }
        prop_assert!(collector.counts().adds_up());
    }
}
