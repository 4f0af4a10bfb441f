//! Tests of reading, checking, replaying and writing traces.

use super::*;
use crate::workload::tests::{self, drain, play, source, source_error, text, with_hosts};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::io::Write;

const HOSTS: u32 = 8;

fn host(label: u32) -> Option<HostId> {
    (label < HOSTS).then_some(label)
}

/// The hosts by id, and host 5 by its name too.
const HOST: HostOf = HostOf {
    by_id: &host,
    by_name: &|name| if name == "gpu-5" { Ok(5) } else { Err(format!("unknown host \"{name}\"")) },
};

fn csv(text: &str) -> Result<Trace, TraceError> {
    Trace::from_csv(text.as_bytes(), "flows.csv", HOST)
}

fn csv_error(text: &str) -> String {
    csv(text).unwrap_err().to_string()
}

fn hpcc(text: &str) -> Result<Trace, TraceError> {
    Trace::from_hpcc(text.as_bytes(), "flow.txt", HOST)
}

/// A temporary file, removed when dropped.
struct TemporaryFile(std::path::PathBuf);

impl TemporaryFile {
    fn new(name: &str, bytes: &[u8]) -> TemporaryFile {
        let path = std::env::temp_dir().join(format!("weftline-{}-{name}", std::process::id()));
        std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("a writable folder");
        TemporaryFile(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("a plain name")
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn columns_come_in_any_order_and_times_keep_their_picoseconds() {
    let trace = csv("start_ns,dst,src,size_bytes\n310.162,1,0,1460\r\n\n1e3,2,1,7\n").unwrap();
    let flows: Vec<_> = trace.flows().map(|f| (f.src, f.dst, f.size, f.start)).collect();
    assert_eq!(flows, [(0, 1, 1460, Time(310_162)), (1, 2, 7, Time(1_000_000))]);
    assert_eq!(csv("src,dst,size_bytes,start_ns\n0,1,2,0.0006\n").unwrap().rows[0].start, Time(1));
}

#[test]
fn times_have_the_unit_of_their_column_and_hosts_may_be_named() {
    let first = |text: &str| {
        let trace = csv(text).unwrap();
        (trace.rows[0].src, trace.rows[0].dst, trace.rows[0].start, trace.warnings)
    };
    let (src, dst, start, warnings) =
        first("\u{feff}src\tdst\tsize_bytes\tstart_us\r\ngpu-5\t1\t7\t1.0000015\r\n");
    assert_eq!((src, dst, start), (5, 1, Time(1_000_002)));
    assert!(warnings.is_empty());
    assert_eq!(first("src,dst,size_bytes,start_s\n0,1,7,0.000000000001\n").2, Time(1));
    assert_eq!(first("src,dst,size_bytes,start_ms,deadline_us\n0,1,7,2.5,2500\n").2, Time::from_us(2500));
    let (.., warnings) = first("src,dst,size_bytes,start_ns,fct_ns,color\n0,1,7,0,9,red\n");
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("flows.csv:1: columns \"fct_ns\", \"color\" are passed over (known: src")
    );
    assert!(
        csv_error("src,dst,size_bytes,start_ns,start_s\n")
            .contains("columns start_ns and start_s say the same")
    );
    assert!(csv_error("src,dst,size_bytes,start_ns,dedline_ns\n").contains("did you mean \"deadline_ns\""));
    let text = csv_error("src;dst;size_bytes;start_ns\n");
    assert!(text.contains("column src is missing: expected names separated by commas or tabs"), "{text}");
    assert!(csv_error("src,dst,size_bytes,start_ns\nh9,1,7,0\n").ends_with("src: unknown host \"h9\""));
    assert!(
        csv_error("src,dst,size_bytes,start_s\n0,1,7,1ms\n")
            .contains("start_s: expected seconds, found \"1ms\"")
    );
    assert!(
        csv_error("src,dst,size_bytes,start_s\n0,1,7,99999999\n")
            .contains("start_s: 99999999 seconds are beyond")
    );
}

#[test]
fn dependencies_deadlines_and_groups_are_replayed() {
    let file = TemporaryFile::new(
        "after.csv",
        b"flow_id,src,dst,size_bytes,start_ns,group,deadline_ns,after,compute_ns\n\
          7,0,1,10,0,\"a, b\",5000,,\n8,1,2,10,100,,,0,3000\n9,2,0,10,100,,,0;1;1,\n",
    );
    let error = source_error("trace", 8, &[("file", text(file.name()))]);
    assert!(error.message.contains(":4: row 2: after: row 0 neither starts nor ends"), "{error}");
    let file = TemporaryFile::new(
        "after2.csv",
        b"src,dst,size_bytes,start_ns,group,deadline_ns,after,compute_ns\n\
          0,1,10,0,\"a, b\",5000,,\n1,2,10,100,,,0,3000\n2,0,10,100,,,1;1,\n",
    );
    let source = source("trace", 8, &[("file", text(file.name())), ("start", text("1us"))]);
    let flows = drain(&*source);
    assert_eq!(flows[0].deadline, Some(Time::from_ns(6000)));
    assert_eq!((flows[0].group, flows[1].group), (7, 0));
    assert_eq!(source.dependencies(), [(0, 1), (1, 2)]);
    let starts: Vec<_> = play(&*source, Time::from_ns(500)).iter().map(|t| t.0.ns()).collect();
    assert_eq!(starts, [1000, 4500, 5000]);
}

#[test]
fn a_duration_cuts_the_trace() {
    let file =
        TemporaryFile::new("cut.csv", b"src,dst,size_bytes,start_ns\n0,1,1,0\n0,1,1,1000\n0,1,1,2000\n");
    let flows = drain(&*source("trace", 8, &[("file", text(file.name())), ("duration", text("2us"))]));
    assert_eq!(flows.len(), 2);
}

#[test]
fn a_wrong_csv_says_where_and_what_was_expected() {
    let rows = |rows: &str| csv_error(&format!("src,dst,size_bytes,start_ns\n0,1,1,5\n{rows}\n"));
    assert_eq!(rows("0,77,1,5"), "flows.csv:3: row 1: dst: unknown host 77 (the nearest below it is 7)");
    assert_eq!(rows("-1,2,1,5"), "flows.csv:3: row 1: src: -1 is not a valid host id");
    assert_eq!(rows("2,2,1,5"), "flows.csv:3: row 1: src and dst are both host 2: a flow needs two hosts");
    assert_eq!(rows("0,1,0,5"), "flows.csv:3: row 1: size_bytes: expected a size of at least 1, found 0");
    assert_eq!(rows("0,1,-4,5"), "flows.csv:3: row 1: size_bytes: expected a size of at least 1, found -4");
    assert_eq!(
        rows("0,1,9000000000000000000,5"),
        "flows.csv:3: row 1: size_bytes: 9000000000000000000 is above the limit of 1 TB"
    );
    assert_eq!(
        rows("0,1,1,4.5"),
        "flows.csv:3: row 1: start 4.5ns comes after 5ns: rows must be sorted by their start"
    );
    assert_eq!(rows("0,1,1,-5"), "flows.csv:3: row 1: start: is negative");
    assert_eq!(
        rows("0,1,1,9e99"),
        "flows.csv:3: row 1: start_ns: 9e99 nanoseconds are beyond what times can hold: subtract the start of the first flow from \
         all of them"
    );
    assert_eq!(rows("0,1,1,9000000000000000"), "flows.csv:3: row 1: start: is later than 4000000s");
    assert_eq!(rows("0,1,ten,5"), "flows.csv:3: row 1: size_bytes: expected a whole number, found \"ten\"");
    assert_eq!(
        rows("0,1,1"),
        "flows.csv:3: row 1: expected 4 fields as in the header, found 3: is the file truncated?"
    );
    assert!(
        csv_error("src,dst,start_ns\n").starts_with("flows.csv:1: column size_bytes is missing (known: ")
    );
    let text = csv_error("src,dst,size,start_ns\n");
    assert!(text.starts_with("flows.csv:1: column size_bytes is missing, and there is \"size\""), "{text}");
    assert!(csv_error("src,dst,size_byte,start_ns\n").contains("did you mean \"size_bytes\""));
    assert_eq!(csv_error("src,src\n"), "flows.csv:1: column src occurs twice");
    assert!(csv_error("").contains("expected a header such as"));
    assert_eq!(csv_error("src,dst,size_bytes,start_ns\n"), "flows.csv: the file contains no flows");
}

#[test]
fn a_file_that_is_no_text_is_recognised() {
    let error = |bytes: &[u8]| Trace::from_csv(bytes, "f", HOST).unwrap_err().to_string();
    assert!(error(b"PAR1....").contains("Parquet"));
    assert!(error(&[0x1f, 0x8b, 8]).contains("gzip"));
    assert!(error(b"src\n\0").starts_with("f:2: not text"));
    assert!(error(b"src,dst\n\xff\xff").starts_with("f:2: not text"));
}

#[test]
fn dependencies_that_no_host_could_know_of_are_refused() {
    let error =
        |row: &str| csv_error(&format!("src,dst,size_bytes,start_ns,after,compute_ns\n0,1,1,0,,\n{row}\n"));
    assert!(error("2,3,1,0,0,").contains("row 1: after: row 0 neither starts nor ends"));
    assert!(error("1,3,1,0,1,").contains("after: row 1 is not one of the rows before this one"));
    assert!(error("1,3,1,0,-1,").contains("after: row -1"));
    assert!(error("1,3,1,0,,5").contains("compute without after"));
    assert!(error("1,3,1,0,0,-5").contains("compute: is negative"));
}

#[test]
fn the_authors_flow_file_counts_from_two_seconds() {
    let trace = hpcc("2\n0 1 3 100 1000 2.000000576\n1 2 3 100 20 2.001\n").unwrap();
    let starts: Vec<_> = trace.flows().map(|f| f.start.ns()).collect();
    assert_eq!(starts, [576, 999_999]);
    assert!(trace.warnings.is_empty());
    assert_eq!(hpcc("1\n0 1 3 100 1000 0.5\n").unwrap().rows[0].start, Time::from_ms(500));
}

#[test]
fn priority_groups_of_a_flow_file_that_differ_are_warned_of() {
    assert!(hpcc("2\n0 1 3 100 1000 2\n1 2 3 200 20 2\n").unwrap().warnings.is_empty());
    let trace = hpcc("2\n0 1 3 100 1000 2\n1 2 0 100 20 2\n").unwrap();
    let expected = "flow.txt:3: pg is 0 here and 3 in the first flow: pg is not used";
    assert!(trace.warnings[0].starts_with(expected), "{:?}", trace.warnings);
}

#[test]
fn a_stray_digit_after_the_number_of_flows_is_forgiven_with_a_warning() {
    let trace = hpcc("19\n0 1 3 100 1000 2\n").unwrap();
    assert_eq!(trace.len(), 1);
    assert!(trace.warnings[0].starts_with("flow.txt:1: 19 flows announced, 1 found"));
}

#[test]
fn a_wrong_flow_file_says_where() {
    let error = |text| hpcc(text).unwrap_err().to_string();
    assert_eq!(error("3\n0 1 3 100 9 2\n"), "flow.txt:1: 3 flows announced, 1 found: is the file truncated?");
    assert_eq!(
        error("1\n0 1 3 100 9 2\n1 0 3 100 9 2\n"),
        "flow.txt:1: 1 flows announced, 2 found: write 2 in the first line, or remove the lines beyond it"
    );
    assert!(error("3\n0 1 3 100\n").starts_with("flow.txt:2: row 0: expected \"src dst pg"));
    assert!(error("1\n0 1 3 100 9 soon\n").contains("start_seconds: expected seconds, found \"soon\""));
    assert!(error("flows\n").contains("expected the number of flows"));
    assert!(error("1\n0 9 3 100 9 2\n").contains("dst: unknown host 9"));
    assert!(error("1\n0 1 3 100 0 2\n").contains("bytes: expected a size of at least 1"));
    assert!(error("").contains("empty"));
}

#[test]
fn rows_from_elsewhere_are_checked_alike() {
    let row = TraceRow { src: 0, dst: 1, size_bytes: 5, ..TraceRow::default() };
    let rows = vec![row.clone(), TraceRow { dst: 0, ..row }];
    let error = Trace::from_rows(rows, "flows.parquet", HOST).unwrap_err().to_string();
    assert!(error.starts_with("flows.parquet: row 1: src and dst are both host 0"));
    assert_eq!(TraceRow::picoseconds(310.162, 3), Some(310_162));
    assert_eq!(TraceRow::picoseconds(f64::NAN, 3), None);
    assert_eq!(TraceRow::picoseconds(1e300, 3), None);
}

#[test]
fn parquet_comes_through_the_hook_or_is_refused() {
    let keys = [("file", text("flows.parquet"))];
    assert!(source_error("trace", 8, &keys).message.contains("does not read Parquet"));
    let read = |_: &Path| Ok((vec![TraceRow { dst: 1, size_bytes: 5, ..TraceRow::default() }], Vec::new()));
    let spec = tests::spec("trace", &keys);
    let flows = with_hosts(8, |cx| {
        let cx = WorkloadContext { read_parquet: Some(&read), ..*cx };
        drain(&*spec.source(&cx).unwrap())
    });
    assert_eq!(flows.len(), 1);
    assert!(source_error("trace", 8, &[("file", text("flows.dat"))]).message.contains("unknown format"));
    assert!(source_error("trace", 8, &[("file", text("no.csv"))]).message.contains("no.csv"));
    assert!(tests::complaints("trace", &[])[0].contains("a trace needs a file"));
}

/// The reference data, if present.
fn reference() -> Option<std::path::PathBuf> {
    let shared = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    let folder = std::env::var_os("WEFTLINE_REFERENCE").map_or_else(shared, Into::into);
    if !folder.is_dir() {
        println!("skipped: no reference data in {}", folder.display());
        return None;
    }
    Some(folder)
}

fn unzipped(path: &Path) -> Vec<u8> {
    let output = std::process::Command::new("gzip").arg("-dc").arg(path).output().expect("gzip runs");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn the_flows_of_the_authors_simulators_are_read_as_they_are() {
    let Some(folder) = reference() else { return };
    let cases = [
        ("hpcc/star_incast16", 17, 16, Some(16 * 500_000)),
        ("hpcc/dumb_fair4", 8, 4, Some(4 * 5_000_000)),
        ("hpcc/pod_wb_0.5", 32, 223, None),
        ("phost/small_aditya", 144, 2000, None),
        ("phost/incast_N32_10MB", 144, 320, None),
    ];
    for (case, hosts, flows, bytes) in cases {
        let file = folder.join(case).join("flows.csv.gz");
        let host = |label| (label < hosts).then_some(label);
        let trace = Trace::from_csv(&unzipped(&file), case, HostOf { by_id: &host, ..HOST }).unwrap();
        assert_eq!(trace.len(), flows, "{case}");
        let sum: u64 = trace.flows().map(|flow| flow.size).sum();
        assert_eq!(sum, bytes.unwrap_or(sum), "{case}");
    }
}

fn rows() -> impl Strategy<Value = Vec<TraceRow>> {
    let row = (0i64..8, 1i64..8, 1i64..1_000_000, 0i64..5000, 0u8..4, any::<bool>(), 0usize..100);
    proptest::collection::vec(row, 1..40).prop_map(|drawn| {
        let mut rows: Vec<TraceRow> = Vec::new();
        for (src, distance, size_bytes, gap, group, deadline, back) in drawn {
            let start_ps = rows.last().map_or(0, |row: &TraceRow| row.start_ps) + gap;
            let earlier = (back < rows.len()).then(|| rows.len() - 1 - back);
            let src = earlier.map_or(src, |earlier| rows[earlier].dst);
            rows.push(TraceRow {
                src,
                dst: (src + distance) % 8,
                size_bytes,
                start_ps,
                group: [None, Some("a"), Some("b,\"c"), Some("d")][group as usize].map(str::to_string),
                deadline_ps: deadline.then_some(start_ps + 17),
                compute_ps: if earlier.is_some() { gap } else { 0 },
                after: earlier.map(|earlier| earlier as i64).into_iter().collect(),
                ..TraceRow::default()
            });
        }
        rows
    })
}

/// A time as a column of a file.
struct Nanoseconds(Time);

impl std::fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.0.0 % 1000 {
            0 => write!(f, "{}", self.0.ns()),
            ps => write!(f, "{}.{ps:03}", self.0.ns()),
        }
    }
}

/// The trace as CSV, with the optional columns that it needs; `label`: the id of a host in the file.
fn write(trace: &Trace, label: &dyn Fn(HostId) -> u32) -> String {
    let groups = trace.rows.iter().any(|row| row.group.is_some());
    let deadlines = trace.rows.iter().any(|row| row.deadline.is_some());
    let waits = !trace.waits.is_empty();
    let mut out = String::from("src,dst,size_bytes,start_ns");
    for (column, _) in [("group", groups), ("deadline_ns", deadlines), ("after,compute_ns", waits)]
        .iter()
        .filter(|(_, needed)| *needed)
    {
        out.push(',');
        out.push_str(column);
    }
    out.push('\n');
    let mut left = trace.waits.iter().peekable();
    for (number, row) in trace.rows.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(out, "{},{},{},{}", label(row.src), label(row.dst), row.size, Nanoseconds(row.start));
        if groups {
            let name = row.group.map_or("", |group| &trace.groups[group as usize]);
            let _ = write!(out, ",{}", quote(name));
        }
        if deadlines {
            let deadline = row.deadline.map_or(String::new(), |d| Nanoseconds(d).to_string());
            let _ = write!(out, ",{deadline}");
        }
        if waits {
            let mut after = Vec::new();
            while let Some((_, earlier)) = left.next_if(|wait| wait.0 as usize == number) {
                after.push(earlier.to_string());
            }
            let compute =
                if row.compute > Time::ZERO { Nanoseconds(row.compute).to_string() } else { String::new() };
            let _ = write!(out, ",{},{compute}", after.join(";"));
        }
        out.push('\n');
    }
    out
}

fn quote(name: &str) -> String {
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_string() }
}

proptest! {
    #[test]
    fn a_written_trace_reads_back_as_it_was(rows in rows()) {
        let trace = Trace::from_rows(rows, "made", HOST).unwrap();
        let written = write(&trace, &|host| host);
        prop_assert_eq!(csv(&written).unwrap(), trace);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Trace::from_csv(&bytes, "x", HOST);
        let _ = Trace::from_hpcc(&bytes, "x", HOST);
    }

    #[test]
    fn no_lines_make_a_reader_panic(lines in "([0-9;.,e\" -]{0,30}\n){0,6}") {
        let _ = csv(&format!("src,dst,size_bytes,start_ns,after,compute_ns\n{lines}"));
        let _ = hpcc(&lines.replace([',', ';'], " "));
    }
}

#[test]
fn rows_with_numbers_may_be_in_any_order_and_stand_by_start_and_number() {
    let header = "flow_id,src,dst,size_bytes,start_ns";
    let rows = ["3,0,1,30,5", "12,0,1,120,0", "4,1,2,40,5", "2,2,3,20,0"];
    let sizes = |header: &str, rows: &[&str]| -> Vec<u64> {
        let trace = csv(&format!("{header}\n{}\n", rows.join("\n"))).unwrap();
        trace.flows().map(|flow| flow.size).collect()
    };
    for turned in 0..4 {
        let mut rows = rows;
        rows.rotate_left(turned);
        assert_eq!(sizes(header, &rows), [20, 120, 30, 40]);
    }
    // Numbers of rows are those of the file: rows that wait for others stay, and need their order.
    let waits = "flow_id,src,dst,size_bytes,start_ns,after";
    assert_eq!(sizes(waits, &["9,0,1,90,0,", "5,1,0,50,0,0"]), [90, 50]);
    let late = csv_error(&format!("{waits}\n9,0,1,90,7,\n5,1,0,50,0,0\n"));
    assert!(late.contains(":3: row 1: start 0ps comes after 7ns"), "{late}");
    // Other files may have names there.
    assert_eq!(sizes(header, &["b,0,1,90,0", "a,0,1,50,0"]), [90, 50]);
    // An error is of the line that it is in.
    let wrong = csv_error(&format!("{header}\n9,0,1,90,7\n5,1,1,50,0\n"));
    assert!(wrong.contains(":3: row 1: src and dst are both host 1"), "{wrong}");
}
