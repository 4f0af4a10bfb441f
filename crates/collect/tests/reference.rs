//! The parsers against captures whose every field is known: INT and reports from two independent codings,
//! IOAM from the Linux kernel as tshark reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weftline_collect::capture::Reader;
use weftline_collect::int::{Carrier, Header, Hop, Md, Values};
use weftline_collect::ioam::{Fields, Ioam};
use weftline_collect::ip::{FlowKey, Ip};
use weftline_collect::packet::{DigestCarrier, Markers, Telemetry, telemetry};
use weftline_collect::report::{Inner, Report};

/// A file of the reference data; None, with a message, if it is missing. It must be there in continuous
/// integration.
fn reference(name: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("WEFTLINE_REFERENCE")
        .map_or_else(|| root.join("../shared/reference"), PathBuf::from);
    let file = folder.join("telemetry").join(name);
    if file.is_file() {
        return Some(file);
    }
    assert!(std::env::var_os("CI").is_none(), "no {} (set WEFTLINE_REFERENCE)", file.display());
    println!("skipped: no {} (set WEFTLINE_REFERENCE)", file.display());
    None
}

/// What `of` makes of every packet of a capture. Nothing in it may be malformed.
fn packets<T>(file: &Path, of: impl Fn(&Ip, &[Telemetry]) -> T) -> Vec<T> {
    let mut reader = Reader::open(file).expect("a capture");
    let mut found = Vec::new();
    while let Some(packet) = reader.next_packet().expect("a record") {
        let Some(bytes) = packet.link.expect("a known link").ip(packet.bytes).expect("a frame") else {
            continue;
        };
        let ip = Ip::parse(bytes).expect("IP");
        let mut carried = Vec::new();
        telemetry(&ip, &Markers::default(), &mut |result| carried.push(result.expect("well formed")));
        found.push(of(&ip, &carried));
    }
    found
}

fn rows(file: PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(file.with_extension("jsonl")).expect("what the packets say");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn pair<A: Into<u64>, B: Into<u64>>(pair: Option<(A, B)>) -> Value {
    pair.map_or(Value::Null, |(a, b)| json!([a.into(), b.into()]))
}

/// The values that a bitmap asks for, by the names of the reference.
fn values(bitmap: u16, found: &Values) -> BTreeMap<String, Value> {
    let all = [
        ("node", json!(found.node)),
        ("interfaces", pair(found.interfaces)),
        ("hop_latency", json!(found.hop_latency)),
        ("queue", pair(found.queue)),
        ("ingress_time", json!(found.ingress_time)),
        ("egress_time", json!(found.egress_time)),
        ("interfaces2", pair(found.logical_interfaces)),
        ("tx_utilisation", json!(found.tx_utilisation)),
        ("buffer", pair(found.buffer)),
        ("bit9", Value::Null),
    ];
    let asked = (0..).zip(all).filter(|(bit, _)| bitmap & 0x8000 >> bit != 0);
    asked.map(|(_, (name, value))| (name.to_owned(), value)).collect()
}

fn hop(bitmap: u16, domain: bool, hop: &Hop) -> Value {
    let mut found = values(bitmap, &hop.values());
    if let Some(complement) = hop.complement() {
        found.insert("complement".into(), json!(complement));
    }
    assert_eq!(hop.node(), hop.values().node);
    let words: Vec<u32> = hop.domain_words().collect();
    let source: Vec<u32> = hop.source_only().collect();
    assert!(domain || words.is_empty() && source.is_empty());
    if !words.is_empty() {
        found.insert("ds".into(), json!(words));
    }
    if !source.is_empty() {
        found.insert("source_only".into(), json!(source));
    }
    json!(found)
}

fn hops(md: &Md) -> Value {
    let instructions = md.instructions;
    assert_eq!(md.hops().count(), md.len());
    md.hops().map(|each| hop(instructions.bitmap, instructions.domain != 0, &each)).collect()
}

#[test]
fn every_field_of_int_over_every_carrier() {
    let Some(file) = reference("int/int_md.pcap") else { return };
    let found = packets(&file, |_, carried| {
        let Some(Telemetry::Int { carrier, flow, header }) = carried.first() else { panic!("{carried:?}") };
        let mut row = BTreeMap::new();
        let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
        match *carrier {
            Carrier::Dscp { original } => {
                put("found_by", json!("dscp"));
                put("over", json!("tcp"));
                put("original_dscp", json!(original))
            }
            Carrier::UdpPort { original } => {
                put("npt", json!(1));
                put("over", json!("udp"));
                put("original_port", json!(original))
            }
            Carrier::UdpHeader { original_protocol } => {
                put("npt", json!(2));
                put("over", json!("udp before tcp"));
                put("original_protocol", json!(original_protocol))
            }
            Carrier::Gre { inserted } => {
                put("over", json!("gre"));
                put("gre_inserted", json!(inserted))
            }
            Carrier::VxlanGpe { vni, was_vxlan } => {
                put("over", json!("vxlan-gpe"));
                put("vni", json!(vni));
                put("was_vxlan", json!(was_vxlan))
            }
            Carrier::Geneve { vni } => {
                put("over", json!("geneve"));
                put("vni", json!(vni))
            }
            Carrier::ProbeMarker => panic!("no probe"),
        };
        if flow.protocol == 6 {
            put("src_port", json!(flow.source_port));
            put("dst_port", json!(flow.destination_port));
        }
        let instructions = match header {
            Header::Md(md) => {
                put("type", json!("md"));
                put("hop_ml", json!(md.hop_words));
                put("remaining_hops", json!(md.remaining_hops));
                put("hops", hops(md));
                for (name, set) in [("exceeded", md.hops_exceeded), ("mtu", md.mtu_exceeded)] {
                    if set {
                        put(name, json!(true));
                    }
                }
                md.instructions
            }
            Header::Mx(mx) => {
                put("type", json!("mx"));
                put("source_inserted", mx.source_inserted().collect());
                mx.instructions
            }
        };
        assert!(!instructions.discard);
        put("bitmap", json!(instructions.bitmap));
        if instructions.domain != 0 {
            put("domain", json!(instructions.domain));
            put("ds_instruction", json!(instructions.domain_bitmap));
        }
        if instructions.domain_flags != 0 {
            put("ds_flags", json!(instructions.domain_flags));
        }
        let digests: Vec<u128> = carried[1..]
            .iter()
            .map(|each| match each {
                Telemetry::Digest(digest) if digest.carrier == DigestCarrier::IntFlags => digest.digest,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(digests, if instructions.domain == 0x5057 { vec![0xbeef] } else { vec![] });
        json!(row)
    });
    let mut expected = rows(file);
    for row in &mut expected {
        let row = row.as_object_mut().expect("an object");
        row.remove("packet");
        // The checksum of the packet, not a field of INT.
        row.remove("udp_checksum");
    }
    assert_eq!(found, expected);
}

fn flow(flow: FlowKey) -> Value {
    json!([flow.source, flow.destination, flow.protocol, flow.source_port, flow.destination_port])
}

/// The stack in the packet of a report, the flow of the packet, and its addresses outside of a tunnel.
fn embedded(ip: &Ip) -> (Option<Value>, FlowKey) {
    let mut found = (None, ip.flow());
    telemetry(ip, &Markers::default(), &mut |result| {
        if let Ok(Telemetry::Int { flow, header: Header::Md(md), .. }) = result {
            found = (Some(hops(&md)), flow);
        }
    });
    found
}

fn report(report: &Report) -> Value {
    let mut row = values(report.bitmap & 0x7fff, &report.values());
    let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
    put("type", json!(if report.has_values { "int" } else { "inner only" }));
    let inner = match report.inner {
        Inner::Ipv4 => "ipv4",
        Inner::Tlv => "tlv",
        other => panic!("{other:?}"),
    };
    put("inner", json!(inner));
    let flags =
        [("D", report.dropped), ("Q", report.congested), ("F", report.tracked), ("I", report.intermediate)];
    put("flags", json!(flags.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect::<String>()));
    if let Some((queue, reason)) = report.drop() {
        put("drop", json!({"queue": queue, "reason": reason}));
    }
    if report.domain != 0 {
        put("domain", json!(report.domain));
        put("ds", report.domain_words().collect());
    }
    if report.to_the_end {
        put("to_the_end", json!(true));
    }
    if report.inner == Inner::Tlv {
        let tlvs = report.tlvs().map(|tlv| {
            let tlv = tlv.expect("well formed");
            let words: Vec<u32> =
                tlv.value.chunks(4).map(|w| u32::from_be_bytes(w.try_into().unwrap())).collect();
            match tlv.kind {
                0 => json!({"type": 0, "template": tlv.template, "words": words}),
                kind => json!({"type": kind}),
            }
        });
        put("tlv", tlvs.collect());
    }
    let ip = Ip::parse(report.ip().expect("a frame").expect("a packet")).expect("IP");
    let (stack, found) = embedded(&ip);
    if let Some(stack) = stack {
        put("embedded", stack);
    }
    put("flow", flow(found));
    if let Some(vni) = found.vni {
        put("vni", json!(vni));
        put("outer", json!([ip.source, ip.destination]));
    }
    json!(row)
}

#[test]
fn every_field_of_reports() {
    let Some(file) = reference("int/int_report.pcap") else { return };
    let found = packets(&file, |_, carried| {
        let [Telemetry::Reports(group)] = carried else { panic!("{carried:?}") };
        let reports: Vec<Value> = group.reports().map(|each| report(&each.expect("well formed"))).collect();
        json!({"sequence": group.sequence, "node": group.node, "hw": group.hardware, "reports": reports})
    });
    let mut expected = rows(file);
    for row in &mut expected {
        row.as_object_mut().expect("an object").retain(|key, _| key != "packet" && key != "duplicate");
    }
    assert_eq!(found, expected);
}

#[test]
fn ioam_that_linux_does_not_write() {
    let Some(file) = reference("inband/inband.pcap") else { return };
    let found = packets(&file, |_, carried| match carried {
        [] => None,
        [Telemetry::Ioam(Ioam::Trace(trace))] => {
            let mut nodes: Vec<Value> = trace
                .nodes()
                .map(|node| {
                    let fields = node.fields();
                    json!({"hop_limit": fields.hop_limit, "node": fields.node, "seconds": fields.seconds})
                })
                .collect();
            nodes.reverse();
            assert!(trace.incremental && !trace.overflow && !trace.loopback && !trace.active);
            Some(
                json!({"kind": "ioam incremental", "namespace": trace.namespace, "node_length": trace.node_words,
                        "remaining": trace.remaining_words, "trace_type": format!("{:06x}", trace.trace_type),
                        "hops": nodes}),
            )
        }
        [Telemetry::Ioam(Ioam::DirectExport(export))] => {
            assert_eq!(export.flags, 0);
            Some(json!({"kind": "ioam dex", "namespace": export.namespace, "flow_id": export.flow_id,
                        "extension_flags": export.extension_flags, "sequence": export.sequence,
                        "trace_type": format!("{:06x}", export.trace_type)}))
        }
        [Telemetry::Ioam(Ioam::EdgeToEdge(edge))] => {
            Some(json!({"kind": "ioam e2e", "namespace": edge.namespace, "e2e_type": edge.kind,
                        "sequence": edge.sequence, "seconds": edge.seconds, "fraction": edge.fraction}))
        }
        other => panic!("{other:?}"),
    });
    let mut expected = rows(file);
    expected.retain(|row| row["kind"].as_str().is_some_and(|kind| kind.starts_with("ioam")));
    for row in &mut expected {
        row.as_object_mut().expect("an object").remove("packet");
    }
    assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), expected);
}

/// Lists as tshark prints them, newest node first; a value that a node does not have is all ones there.
fn list(values: impl Iterator<Item = Option<u64>>, digits: usize) -> String {
    let ones = u64::MAX >> (64 - 4 * digits);
    let texts = values.map(|value| format!("0x{:0digits$x}", value.unwrap_or(ones)));
    texts.collect::<Vec<_>>().join(",")
}

/// The columns of tshark's table for one packet.
fn tshark_row(carried: &[Telemetry]) -> Vec<String> {
    let [Telemetry::Ioam(Ioam::Trace(trace))] = carried else { return vec![String::new(); 20] };
    let nodes: Vec<_> = trace.nodes().map(|node| node.fields()).collect();
    let asked = |bit: u32| trace.trace_type >> (23 - bit) & 1 == 1;
    let column = |bit, digits, of: &dyn Fn(&Fields) -> Option<u64>| {
        if asked(bit) { list(nodes.iter().map(of), digits) } else { String::new() }
    };
    // tshark names the short and the wide hop limit alike, and shows both in turn.
    let repeats = usize::from(asked(0)) + usize::from(asked(8));
    let limit = |node: &Fields| node.hop_limit.unwrap_or_default().to_string();
    let limits = nodes.iter().flat_map(|node| std::iter::repeat_n(limit(node), repeats));
    let snapshots = || nodes.iter().filter(|_| asked(22)).map(|node| node.snapshot);
    let data = snapshots().filter_map(|snapshot| snapshot.filter(|(_, data)| !data.is_empty()));
    let hex = |data: &[u8]| data.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    vec![
        trace.namespace.to_string(),
        trace.node_words.to_string(),
        u8::from(trace.overflow).to_string(),
        trace.remaining_words.to_string(),
        format!("0x{:06x}", trace.trace_type),
        limits.collect::<Vec<_>>().join(","),
        column(0, 6, &|node| node.node.map(u64::from)),
        column(1, 4, &|node| node.interfaces.map(|pair| pair.0.into())),
        column(1, 4, &|node| node.interfaces.map(|pair| pair.1.into())),
        column(2, 8, &|node| node.seconds.map(u64::from)),
        column(3, 8, &|node| node.fraction.map(u64::from)),
        column(5, 8, &|node| node.namespace_data.map(u64::from)),
        column(6, 8, &|node| node.queue_depth.map(u64::from)),
        column(8, 16, &|node| node.wide_node),
        column(9, 8, &|node| node.wide_interfaces.map(|pair| pair.0.into())),
        column(9, 8, &|node| node.wide_interfaces.map(|pair| pair.1.into())),
        column(10, 16, &|node| node.wide_namespace_data),
        snapshots()
            .map(|found| found.map_or(0, |(_, data)| data.len() / 4).to_string())
            .collect::<Vec<_>>()
            .join(","),
        if asked(22) {
            list(nodes.iter().map(|node| node.snapshot.map(|(id, _)| id.into())), 6)
        } else {
            String::new()
        },
        data.map(|(_, data)| hex(data)).collect::<Vec<_>>().join(","),
    ]
}

#[test]
fn every_field_of_the_kernels_traces_as_tshark_reads_them() {
    for name in ["chain_sent", "chain_after_s3", "chain_received", "queue_received"] {
        let Some(file) = reference(&format!("ioam/{name}.pcap")) else { return };
        let found = packets(&file, |_, carried| tshark_row(carried));
        let text = std::fs::read_to_string(file.with_extension("tshark.tsv")).expect("tshark's table");
        let expected: Vec<Vec<&str>> =
            text.lines().skip(1).map(|line| line.split('\t').skip(1).collect()).collect();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{name}, packet {}", number + 1);
        }
    }
}

#[test]
fn queue_depths_rise_by_one_frame_a_packet_at_the_slow_router() {
    let Some(file) = reference("ioam/queue_received.pcap") else { return };
    let depths = packets(&file, |_, carried| {
        let [Telemetry::Ioam(Ioam::Trace(trace))] = carried else { panic!("{carried:?}") };
        let at = |id| trace.nodes().map(|node| node.fields()).find(|node| node.node == Some(id));
        assert!([101, 102, 104, 105].iter().all(|&id| at(id).and_then(|node| node.queue_depth) == Some(0)));
        at(103).and_then(|node| node.queue_depth).expect("a depth")
    });
    assert_eq!(&depths[..7], [0, 0, 0, 0, 1032, 2064, 3096]);
    assert_eq!(depths.last(), Some(&37_152));
}
