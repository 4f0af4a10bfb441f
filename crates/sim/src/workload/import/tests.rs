//! Importers read what the authors' tools write, LogGOPSim's end times follow, and wrong files are named to
//! the line or byte.

use super::*;
use crate::workload::graph::listed::Op;
use crate::workload::loggops::{self, Machine};
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use std::path::PathBuf;

const CHOICES: Choices =
    Choices { send_ends: SendEnds::Posted, control: false, stream_order: false, roofline: None };

/// A file of the reference data; none: they are not there.
fn reference(path: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/ai").join(path);
    std::fs::read(&root).inspect_err(|_| println!("skipped: no {}", root.display())).ok()
}

fn ends(text: &str) -> Vec<u64> {
    let graph = goal("test.goal", text.as_bytes(), &CHOICES).expect("a graph").graph;
    let ends = loggops::run(&graph, Machine::default());
    assert!(ends.stuck.is_empty(), "{:?}", ends.stuck);
    ends.ranks
}

#[test]
fn the_end_times_of_loggopsim_are_exact() {
    let known: [(&str, &[u64]); 3] =
        [("ring4", &[2_397_260; 4]), ("wild", &[9344, 4500, 1500]), ("rendezvous", &[2_000_010, 2_601_494])];
    for (name, times) in known {
        let Some(text) = reference(&format!("goal/{name}.goal")) else { return };
        let Some(binary) = reference(&format!("goal/{name}.bin")) else { return };
        for bytes in [text, binary] {
            let graph = goal(name, &bytes, &CHOICES).expect("a graph").graph;
            let ends = loggops::run(&graph, Machine::default());
            assert_eq!(ends.ranks, times, "{name}");
            assert!(ends.stuck.is_empty());
        }
    }
}

#[test]
fn text_and_binary_are_the_same_graph() {
    for name in ["ring4", "wild", "rendezvous"] {
        let Some(text) = reference(&format!("goal/{name}.goal")) else { return };
        let Some(binary) = reference(&format!("goal/{name}.bin")) else { return };
        let [text, binary] = [text, binary].map(|bytes| goal(name, &bytes, &CHOICES).expect("a graph").graph);
        for (text, binary) in text.ranks.iter().zip(&binary.ranks) {
            assert_eq!(text.ops, binary.ops);
            assert_eq!((&text.needs, &text.resources), (&binary.needs, &binary.resources));
        }
    }
}

#[test]
fn messages_without_bytes_carry_one() {
    let [none, one] = ["0b", "1b"].map(|size| {
        let text =
            format!("num_ranks 2\nrank 0 {{\nsend {size} to 1\n}}\nrank 1 {{\nrecv {size} from 0\n}}\n");
        goal("test.goal", text.as_bytes(), &CHOICES).expect("a graph")
    });
    assert_eq!(none.graph.ranks[0].ops, one.graph.ranks[0].ops);
    assert_eq!(none.graph.ranks[1].ops, one.graph.ranks[1].ops);
    assert_eq!(
        (none.assumed, one.assumed),
        (vec!["1 messages have no bytes: they carry one".into()], vec![])
    );
    let ends = |kind: u8, other: &str, rank: u8| {
        trace(&[(1, kind, [attribute(other, rank), attribute("comm_size", 0)].concat())])
    };
    let found = chakra_of(&[ends(5, "comm_dst", 1), ends(6, "comm_src", 0)]).expect("a graph");
    assert_eq!(found.graph.bytes_sent(), 1);
    assert!(
        found.assumed.contains(&"1 messages have no bytes: they carry one".into()),
        "{:?}",
        found.assumed
    );
}

#[test]
fn a_message_takes_overhead_latency_and_gaps() {
    let text = "num_ranks 2\nrank 0 {\ns: send 11b to 1 tag 3\n}\nrank 1 {\n  recv 11b from 0 tag 3\n}\n";
    // Sender: NIC 1000 + 10 * 6, processor 1500. It arrives at 1500 + 2500; receiver 1500 + 60 from then.
    assert_eq!(ends(text), [1500, 5560]);
    assert_eq!(ends("num_ranks 1\n/* a\n comment */ rank 0 {\n// more\ncalc 7 cpu 2\n}\n"), [7]);
}

#[test]
fn wrong_text_names_its_line() {
    let cases = [
        ("", "test.goal:1: expected \"num_ranks\", found the end of the file"),
        ("num_ranks x", "test.goal:1: expected the number of ranks, found \"x\""),
        ("num_ranks 1\nrank 1 {\n}", "test.goal:2: rank 1 does not exist: the file has 1"),
        ("num_ranks 1\nrank 0 {\n", "test.goal:2: rank 0 does not end: expected }"),
        ("num_ranks 2\nrank 0 {\n}\n", "test.goal:3: rank 1 is missing: the file has 2 ranks"),
        (
            "num_ranks 1\nrank 0 {\nsned 8b to 0\n}",
            "test.goal:3: unknown operation \"sned\": did you mean \"send\"?",
        ),
        ("num_ranks 2\nrank 0 {\n}\nrank 1 {\n}\n", "test.goal: no rank has an operation"),
        ("num_ranks 1\nrank 0 {\nsend 8 to 0\n}", "test.goal:3: expected \"b\", found \"to\""),
        ("num_ranks 1\nrank 0 {\nsend 8b to 4\n}", "test.goal:3: rank 4 does not exist: the file has 1"),
        (
            "num_ranks 1\nrank 0 {\nab: calc 8\nab requires ac\n}",
            "test.goal:4: no operation before this line has the label \"ac\": did you mean \"ab\"?",
        ),
        ("num_ranks 1\nrank 0 {\na: calc 8\na: calc 9\n}", "test.goal:4: label \"a\" is in line 3 already"),
        (
            "num_ranks 1\nrank 0 {\na: calc 8\nb: calc 9\na requires b\nb requires a\n}",
            "test.goal: rank 0: the operations of lines ",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 8b to 0 cpu 1 tag 3\n}",
            "test.goal:3: expected the end of the line, found \"tag\"",
        ),
    ];
    for (text, message) in cases {
        let error = goal("test.goal", text.as_bytes(), &CHOICES).expect_err(text);
        assert!(error.starts_with(message), "{error}\nexpected {message}");
    }
}

#[test]
fn messages_and_receives_that_do_not_match_are_reported() {
    let assumed = |sends: &str, receives: &str| {
        let text = format!("num_ranks 2\nrank 0 {{\n{sends}\n}}\nrank 1 {{\n{receives}\n}}\n");
        goal("test.goal", text.as_bytes(), &CHOICES).expect("a graph").assumed
    };
    let (send, receive) = ("send 8b to 1 tag 4", "recv 8b from 0 tag 4");
    for (sends, receives) in [(send, receive), (send, "recv 9b from -1 tag 4"), ("calc 1", "calc 2")] {
        assert_eq!(assumed(sends, receives), [""; 0], "{sends} {receives}");
    }
    for (sends, receives, expected) in [
        (
            send,
            "recv 8b from 0 tag 3",
            "rank 1: a receive from rank 0 with tag 3 at line 6 without a message",
        ),
        (
            send,
            "calc 1",
            "rank 1: 1 messages more are sent to it than it receives, first a message of rank 0 with tag 4",
        ),
        (
            "calc 1",
            receive,
            "rank 1: it receives 1 messages more than are sent to it, first a receive from rank 0",
        ),
        (send, "recv 9b from 0 tag 4", "rank 1: receives name other sizes than their messages have"),
        ("calc 1", "recv 8b from -1", "rank 1: it receives 1 messages more than are sent to it; what waits"),
    ] {
        let found = assumed(sends, receives);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?} {expected}");
    }
    let long = format!("num_ranks 1\nrank 0 {{\n{}\n}}\n", "x".repeat(100_000));
    let error = goal("test.goal", long.as_bytes(), &CHOICES).expect_err("no operation");
    assert!(error.len() < 400 && error.starts_with("test.goal:3: unknown operation"), "{error}");
}

#[test]
fn wrong_binaries_name_their_byte() {
    let Some(good) = reference("goal/ring4.bin") else { return };
    for cut in [9, 20, 60, 200, good.len() - 1] {
        let error = goal("a.bin", &good[..cut], &CHOICES).expect_err("a file that was cut");
        assert!(error.starts_with("a.bin: byte "), "{error}");
    }
    let mut used = good;
    used[..8].copy_from_slice(&2342u64.to_le_bytes());
    let error = goal("a.bin", &used, &CHOICES).expect_err("a file that was run");
    assert_eq!(error, "a.bin: byte 0: a run has changed this file: make it again from its text");
}

/// The 81 bytes of a real file.
fn real() -> Vec<u8> {
    let mut bytes = vec![0x07, 0x0a, 0x05];
    bytes.extend(b"0.0.4");
    bytes.extend([0x48, 0x12, 0x14]);
    bytes.extend(b"all_gather_4npus_1MB");
    bytes.extend([0x18, 0x07, 0x52, 0x0e, 0x0a, 0x09]);
    bytes.extend(b"is_cpu_op");
    bytes.extend([0xd8, 0x01, 0x00, 0x52, 0x0d, 0x0a, 0x09]);
    bytes.extend(b"comm_type");
    bytes.extend([0x48, 0x02, 0x52, 0x0f, 0x0a, 0x09]);
    bytes.extend(b"comm_size");
    bytes.extend([0x48, 0x80, 0x80, 0x40]);
    bytes
}

fn chakra_of(files: &[Vec<u8>]) -> Result<Imported, String> {
    let named = |(rank, bytes): (usize, &Vec<u8>)| (format!("t.{rank}.et"), bytes.clone());
    let files: Vec<_> = files.iter().enumerate().map(named).collect();
    chakra::read(&files, &FxHashMap::default(), &CHOICES)
}

#[test]
fn the_real_file_of_one_all_gather_is_read() {
    let real = real();
    assert_eq!(real.len(), 81);
    let graph = chakra_of(&[real.clone(), real.clone(), real.clone(), real]).expect("a graph").graph;
    // Each rank contributes a MiB, which goes around the ring.
    assert_eq!((graph.messages(), graph.bytes_sent()), (12, 12 << 20));
}

#[test]
fn sends_and_receives_of_both_types_of_attributes_are_read() {
    let files: Option<Vec<_>> =
        (0..2).map(|rank| reference(&format!("chakra/two_ranks.{rank}.et"))).collect();
    let Some(files) = files else { return };
    let graph = chakra_of(&files).expect("a graph").graph;
    assert_eq!(graph.ranks.len(), 2);
    assert!(graph.messages() > 0);
}

#[test]
fn wrong_traces_name_their_byte_and_node() {
    let real = real();
    let error = chakra_of(&[real[..60].to_vec(), real.clone()]).expect_err("a file that was cut");
    assert_eq!(error, "t.0.et: byte 9: the data end 51 bytes later, within a field");
    let mut other = real.clone();
    *other.last_mut().expect("bytes") = 0x41;
    let error = chakra_of(&[real.clone(), other]).expect_err("sizes that differ");
    assert!(error.starts_with("t.1.et: byte 9: node 0: call 1 of group \"\": here all-gather of"), "{error}");
    // A node of id 1 that waits for node 7.
    let mut orphan = real.clone();
    orphan.extend([6, 0x08, 1, 0x18, 4, 0x28, 7]);
    let error = chakra_of(&[orphan, real]).expect_err("a parent that is missing");
    assert_eq!(error, "t.0.et: byte 82: node 1 waits for node 7, which does not exist");
}

#[test]
fn what_is_not_supported_is_refused_with_its_node_and_name() {
    let bytes = of_type(10);
    let error = chakra_of(&[bytes.clone(), bytes]).expect_err("an operation that is not there");
    assert!(error.starts_with("t.0.et: byte 9: node 0: comm_type 10 is not supported (known: 0"), "{error}");
}

#[test]
fn operations_of_fewer_bytes_than_ranks_move_a_byte_a_rank() {
    for (kind, messages, bytes) in
        [(0, 24, 24), (1, 3, 6), (3, 3, 6), (4, 3, 3), (5, 3, 6), (6, 12, 12), (7, 12, 12)]
    {
        let file = trace(&[(1, 7, [attribute("comm_type", kind), attribute("comm_size", 2)].concat())]);
        let found = chakra_of(&vec![file; 4]).expect("a graph");
        assert_eq!((found.graph.messages(), found.graph.bytes_sent()), (messages, bytes), "type {kind}");
        let raised =
            found.assumed.iter().any(|text| text.starts_with("4 calls of operations have fewer bytes"));
        assert_eq!(raised, matches!(kind, 0 | 4 | 6 | 7), "type {kind}: {:?}", found.assumed);
    }
    // Of no bytes at all, also where each rank brings its own.
    for (kind, messages, bytes) in [(2, 12, 12), (3, 3, 3), (1, 3, 3), (0, 24, 24)] {
        let file = trace(&[(1, 7, [attribute("comm_type", kind), attribute("comm_size", 0)].concat())]);
        let found = chakra_of(&vec![file; 4]).expect("a graph");
        assert_eq!((found.graph.messages(), found.graph.bytes_sent()), (messages, bytes), "type {kind}");
    }
}

#[test]
fn a_trace_without_a_node_is_refused_as_a_file_without_an_operation_is() {
    let error = chakra_of(&[trace(&[]), trace(&[])]).expect_err("no node");
    assert_eq!(error, "t.0.et: no rank has a node");
    assert!(chakra_of(&[trace(&[]), trace(&[(1, 4, number(7, 3))])]).is_ok());
}

#[test]
fn what_waits_for_itself_is_named_by_line_or_node() {
    let cycle = |text: &str| goal("f.goal", text.as_bytes(), &CHOICES).expect_err("a cycle");
    let two = cycle("num_ranks 1\nrank 0 {\na: calc 5\nb: calc 5\na requires b\nb requires a\n}\n");
    assert_eq!(two, "f.goal: rank 0: the operations of lines 4, 3 wait for each other");
    let one = cycle("num_ranks 1\nrank 0 {\na: calc 5\na requires a\n}\n");
    assert_eq!(one, "f.goal: rank 0: the operation of line 3 waits for itself");
    let nodes = trace(&[(1, 4, number(5, 2)), (2, 4, number(5, 1))]);
    let error = chakra_of(&[nodes]).expect_err("a cycle");
    assert_eq!(error, "t.0.et: the operations of nodes 2, 1 wait for each other");
    // A message without a receive is reported before the run.
    let ends = [attribute("comm_dst", 1), attribute("comm_size", 9)].concat();
    let lone = [trace(&[(1, 5, ends)]), trace(&[(1, 4, number(7, 5))])];
    let assumed = chakra_of(&lone).expect("a graph").assumed;
    assert!(
        assumed.iter().any(|text| text.starts_with("rank 1: 1 messages more are sent to it")),
        "{assumed:?}"
    );
}

/// The real file with another type of operation.
fn of_type(kind: u8) -> Vec<u8> {
    let mut bytes = real();
    let place = bytes.windows(11).position(|part| part == b"comm_type\x48\x02").expect("its type") + 10;
    bytes[place] = kind;
    bytes
}

#[test]
fn a_reduce_a_gather_and_a_scatter_are_operations_with_a_root() {
    // Among four ranks: a MiB over three edges; a MiB from three others; a quarter of it to each of them.
    for (kind, name, bytes) in [(1, "reduce", 3 << 20), (3, "gather", 3 << 20), (4, "scatter", 3 << 18)] {
        let file = of_type(kind);
        let found = chakra_of(&vec![file; 4]).expect("a graph");
        assert_eq!((found.graph.messages(), found.graph.bytes_sent()), (3, bytes), "{name}");
        assert_eq!(found.graph.shape(1, 4).operation, name);
        let root = "1 operations have a root (broadcast, reduce, gather, scatter)";
        assert!(found.assumed.iter().any(|text| text.starts_with(root)), "{:?}", found.assumed);
    }
}

/// One field of a message: a number, or bytes.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

fn bytes_field(field: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 0x4000, "two bytes of length");
    let two = |number: u16| [number as u8 & 0x7f | 0x80, (number >> 7) as u8];
    [&two(u16::from(field) << 3 | 2), &two(bytes.len() as u16), bytes].concat()
}

/// An attribute with a signed 64-bit number, below 128.
fn attribute(name: &str, value: u8) -> Vec<u8> {
    bytes_field(10, &[bytes_field(1, name.as_bytes()), number(9, value)].concat())
}

/// A file of metadata and these nodes: (id, type, rest).
fn trace(nodes: &[(u8, u8, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0];
    for (id, kind, rest) in nodes {
        let record = [number(1, *id), number(3, *kind), rest.clone()].concat();
        file.extend([record.len() as u8 & 0x7f | 0x80, (record.len() >> 7) as u8]);
        file.extend(record);
    }
    file
}

#[test]
fn groups_come_from_the_metadata_of_pytorch() {
    let groups = "['[{\"pg_name\": \"3\", \"pg_desc\": \"tp\", \"ranks\": [0, 2]}, {\"pg_name\": \"4\", \"ranks\": [1, 3]}]']";
    let inputs = bytes_field(8, &bytes_field(1, groups.as_bytes()));
    let call = |name: &str| {
        let group = bytes_field(10, &[bytes_field(1, b"pg_name"), bytes_field(29, name.as_bytes())].concat());
        [attribute("comm_type", 0), attribute("comm_size", 100), group].concat()
    };
    let file = |group: &str| trace(&[(1, 1, inputs.clone()), (2, 7, call(group))]);
    let files = [file("3"), file("4"), file("3"), file("4")];
    let graph = chakra_of(&files).expect("a graph").graph;
    // Two rings of two: two steps of each rank.
    assert_eq!((graph.steps(), graph.messages(), graph.bytes_sent()), (3, 8, 400));
    let wrong = [file("3"), file("3"), file("3"), file("4")];
    let error = chakra_of(&wrong).expect_err("rank 1 is in group 4");
    assert!(error.ends_with("node 2: rank 1 is not in group \"3\""), "{error}");
    let unknown = [file("3"), file("5"), file("3"), file("4")];
    assert!(chakra_of(&unknown).expect_err("no group 5").contains("unknown group \"5\""));
}

#[test]
fn a_group_0_has_the_ranks_that_a_file_or_the_metadata_gives_it() {
    let group = bytes_field(10, &[bytes_field(1, b"pg_name"), bytes_field(29, b"0")].concat());
    let call = [attribute("comm_type", 0), attribute("comm_size", 100), group].concat();
    let files: Vec<_> = (0..4).map(|rank| (format!("t.{rank}.et"), trace(&[(2, 7, call.clone())]))).collect();
    let order = |found: Imported, n: u32| -> Vec<u32> { (0..n).map(|at| found.graph.rank(0, at)).collect() };
    let read = |groups: &[u32]| {
        let groups = FxHashMap::from_iter([("0".to_string(), groups.to_vec())]);
        chakra::read(&files, &groups, &CHOICES).map(|found| order(found, 4))
    };
    assert_eq!(read(&[0, 2, 1, 3]).expect("a graph"), [0, 2, 1, 3]);
    assert_eq!(read(&[]).expect("a graph"), [0, 1, 2, 3]);
    let error = read(&[0, 1]).expect_err("ranks 2 and 3 call it, too");
    assert!(error.ends_with("rank 2 is not in group \"0\""), "{error}");
    let text = "['[{\"pg_name\": \"0\", \"ranks\": [1, 0]}]']";
    let inputs = bytes_field(8, &bytes_field(1, text.as_bytes()));
    let both = trace(&[(1, 1, inputs), (2, 7, call)]);
    assert_eq!(order(chakra_of(&[both.clone(), both]).expect("a graph"), 2), [1, 0]);
}

#[test]
fn calls_of_a_group_belong_together_by_their_order_of_execution() {
    let call =
        |size: u8, extra: Vec<u8>| [attribute("comm_type", 0), attribute("comm_size", size), extra].concat();
    // The second node waits for the first one, which a file may name later.
    let both = [(1, 7, call(10, Vec::new())), (2, 7, call(20, number(5, 1)))];
    let turned = [both[1].clone(), both[0].clone()];
    let graph = chakra_of(&[trace(&both), trace(&turned)]).expect("a graph").graph;
    assert_eq!((graph.instance(0).bytes, graph.instance(1).bytes), (10, 20));
    // Without dependencies, the earlier start comes first, then the smaller id.
    let timed = |id, size, start| (id, 7, call(size, number(6, start)));
    let graph =
        chakra_of(&[trace(&[timed(7, 20, 5), timed(8, 10, 3)]), trace(&[timed(7, 10, 4), timed(8, 20, 6)])]);
    assert_eq!(graph.expect("a graph").graph.instance(0).bytes, 10);
}

#[test]
fn a_barrier_needs_no_size_and_messages_need_both_ends() {
    let barrier = trace(&[(1, 7, attribute("comm_type", 9))]);
    let graph = chakra_of(&[barrier.clone(), barrier]).expect("a graph").graph;
    assert_eq!(
        (graph.messages(), graph.shape(1, 2).operation, graph.shape(1, 2).bytes),
        (2, "barrier", None)
    );
    let send = |ends: Vec<u8>| trace(&[(1, 5, [attribute("comm_size", 9), ends].concat())]);
    let nowhere = chakra_of(&[send(Vec::new())]).expect_err("no receiver");
    assert_eq!(nowhere, "t.0.et: byte 3: node 1: it has no comm_dst");
    let foreign = [attribute("comm_dst", 0), attribute("comm_src", 1)].concat();
    let error = chakra_of(&[send(foreign)]).expect_err("another sender");
    assert_eq!(error, "t.0.et: byte 3: node 1: comm_src 1: this is the file of rank 0");
    let first = trace(&[(1, 4, Vec::new())])[1..].to_vec();
    let error = chakra_of(&[first]).expect_err("no metadata");
    assert!(error.contains("expected the file's metadata"), "{error}");
}

#[test]
fn operations_take_the_time_of_their_roofline_where_one_is_asked_for() {
    // 100 operations on 50 bytes, and a recorded duration of 7 us.
    let work = [attribute("num_ops", 100), attribute("tensor_size", 50), number(7, 7)].concat();
    let times = |roofline: Option<Roofline>| {
        let file = ("t.0.et".to_string(), trace(&[(1, 4, work.clone())]));
        let choices = Choices { roofline, ..CHOICES };
        let found = chakra::read(&[file], &FxHashMap::default(), &choices).expect("a graph");
        match found.graph.ranks[0].ops[0] {
            Op::Compute { time, .. } => time.0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(times(None), 7_000_000);
    assert_eq!(times(Some(Roofline { peak: 1e9, memory: None })), 100_000);
    assert_eq!(times(Some(Roofline { peak: 1e9, memory: Some(1e8) })), 500_000);
    let timeless = trace(&[(1, 4, attribute("num_ops", 100))]);
    let assumed = chakra_of(&[timeless]).expect("a graph").assumed;
    assert!(assumed.iter().any(|text| text.contains("1 computations have num_ops and no duration")));
}

#[test]
fn nodes_of_a_stream_follow_each_other_where_it_is_asked_for() {
    let node =
        |id: u8, stream: u8, start: u8| (id, 4, [attribute("stream", stream), number(6, start)].concat());
    let file = trace(&[node(1, 7, 30), node(2, 7, 10), node(3, 8, 20), node(4, 7, 20)]);
    let needs = |stream_order: bool| {
        let files = [("t.0.et".to_string(), file.clone())];
        let choices = Choices { stream_order, ..CHOICES };
        chakra::read(&files, &FxHashMap::default(), &choices).expect("a graph").graph.ranks[0].clone()
    };
    assert_eq!(needs(false).needs, [0; 4]);
    let ordered = needs(true);
    assert_eq!(
        (ordered.needs, ordered.after_end.of(1), ordered.after_end.of(3)),
        (vec![1, 0, 0, 1], &[3][..], &[0][..])
    );
}

#[test]
fn what_follows_a_comment_in_its_line_is_read() {
    let text = "/* a */ num_ranks 1 /* b */\r\n// one /* two\nrank 0 { /* c\n d */ calc 5 /* e */\n/* f */ /* g */\n}\n";
    assert_eq!(ends(text), [5]);
    let torn = goal("test.goal", b"num_ranks 1\nrank 0 {\ncalc /* x */ 5\n}\n", &CHOICES).expect_err("torn");
    assert_eq!(torn, "test.goal:3: a comment stands between words: put it on a line of its own");
}

#[test]
fn numbers_that_no_file_can_hold_are_refused() {
    let goal = |text: &str| goal("test.goal", text.as_bytes(), &CHOICES);
    let error = goal("num_ranks 16000000\nrank 0 {\n}\n").expect_err("too many ranks");
    assert_eq!(error, "test.goal:1: num_ranks 16000000: the file has room for 1 to 4");
    let error =
        goal("num_ranks 1\nrank 0 {\nsend 9000000000000000000b to 0\n}\n").expect_err("too many bytes");
    assert!(error.starts_with("test.goal:3: 9000000000000000000 bytes are above"), "{error}");
    // A machine so slow that times end.
    let text =
        "num_ranks 2\nrank 0 {\nsend 1000000000000b to 1\n}\nrank 1 {\nrecv 1000000000000b from 0\n}\n";
    let graph = goal(text).expect("a graph").graph;
    let machine = Machine::read("G=1e15,O=1e15").expect("a machine");
    assert_eq!(loggops::run(&graph, machine).ranks[1], u64::MAX);
    assert!(loggops::lasting(&graph, machine).expect_err("too long").contains("the limit is 46 days"));
}

#[test]
fn the_connection_matrices_and_topologies_of_the_reference_are_read() {
    use crate::topology::file::FileSpec;
    use crate::units::Time;
    use crate::workload::Trace;
    use crate::workload::trace::HostOf;
    let hosts =
        HostOf { by_id: &|label| (label < 128).then_some(label), by_name: &|name| Err(name.to_string()) };
    for (name, flows, waiting) in [
        ("one_2MB", 1, 0),
        ("perm128_2MB", 128, 0),
        ("a2a32_250KB_w4", 992, 864),
        ("ring32_32MB", 1984, 1952),
    ] {
        let Some(zipped) = reference(&format!("{name}.cm.gz")) else { return };
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&zipped[..]).read_to_end(&mut text).expect("gzip");
        let trace = Trace::from_htsim(&text, name, hosts, Time::ZERO, Time::from_us(1)).expect("flows");
        let waits = trace.flows().filter(|flow| flow.waits_for == 1).count();
        assert_eq!((trace.len(), waits), (flows, waiting), "{name}");
        assert_eq!(trace.warnings.len(), usize::from(name == "ring32_32MB"), "{name}: {:?}", trace.warnings);
    }
    for (name, switches, links) in [("fat128_100g", 80, 384), ("ls128_400g", 24, 256)] {
        let Some(bytes) = reference(&format!("{name}.topo")) else { return };
        let (topology, warnings) = FileSpec::default().parse("htsim", &bytes).expect("a network");
        assert_eq!((topology.switches().len(), topology.links.len()), (switches, links), "{name}");
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

/// A valid file that was damaged: bytes replaced, and its end cut off.
fn damaged(mut bytes: Vec<u8>, changes: &[(usize, u8)], cut: usize) -> Vec<u8> {
    for &(at, value) in changes {
        let at = at % bytes.len();
        bytes[at] = value;
    }
    bytes.truncate(bytes.len() - cut % bytes.len());
    bytes
}

proptest! {
    #[test]
    fn no_damage_makes_an_importer_panic_or_hang(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        cut in 0usize..200,
        ends: bool,
    ) {
        let cut = if ends { 0 } else { cut };
        let text = "num_ranks 2\nrank 0 {\nc: calc 50\ns: send 65b to 1 tag 7\ns requires c\n}\n\
                    rank 1 {\nr: recv 65b from 0 tag 7\nd: calc 20\nd irequires r\n}\n";
        for whole in [text.as_bytes().to_vec(), real()] {
            let bytes = damaged(whole, &changes, cut);
            let both = [goal("a", &bytes, &CHOICES), chakra_of(&[bytes.clone(), real()])];
            for imported in both.into_iter().flatten() {
                // It ends, or names the ranks that wait.
                loggops::run(&imported.graph, Machine::default());
            }
        }
    }

    #[test]
    fn no_bytes_make_an_importer_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), magic: bool) {
        let mut all = if magic { 4223u64.to_le_bytes().to_vec() } else { Vec::new() };
        all.extend(&bytes);
        let _ = goal("a", &all, &CHOICES);
        let _ = chakra_of(&[bytes.clone(), bytes]);
    }

    #[test]
    fn no_words_make_the_reader_of_goal_panic(words in "(num_ranks [0-9]|rank [0-9]|[{}]|[ab]:|send|recv|calc|requires|to|from|tag|cpu|[0-9]{1,3}b?| |\n){0,60}") {
        let _ = goal("a", words.as_bytes(), &CHOICES);
        let _ = goal("a", format!("num_ranks 2\nrank 0 {{\n{words}\n}}\nrank 1 {{\n}}\n").as_bytes(), &CHOICES);
    }
}
