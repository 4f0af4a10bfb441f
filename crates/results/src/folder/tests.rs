//! Folders of runs that finished, were interrupted, failed, or are in use.

use super::*;
use crate::parquet_read::{self, Cell, cell};
use crate::scratch::Scratch;
use crate::slowdown::{self, Scheme};
use crate::trace;
use arrow_array::RecordBatch;
use serde_json::json;
use weftline_sim::counters::{CounterGroup, CounterSet};
use weftline_sim::describe;
use weftline_sim::measure::{
    Ending, Entity, LossCounters, PortTotals, QueueHistogram, RegionWork, StepRecord,
};
use weftline_sim::units::{Bytes, Time};
use weftline_sim::workload::JobShape;

fn about() -> About {
    About {
        name: "tiny".into(),
        seed: 7,
        scenario: "name = \"tiny\"\nseed = 7\n".into(),
        warnings: Vec::new(),
        memory_limit: Some(8_000_000_000),
        provenance: json!({ "build": "0123456789ab", "files": {} }).as_object().cloned().unwrap_or_default(),
    }
}

fn names() -> Names {
    Names {
        host_labels: vec![10, 20, 30],
        nodes: vec!["host0".into(), "host1".into(), "host2".into(), "leaf0".into()],
        link_kinds: vec!["host -> leaf".into(), "leaf -> host".into()],
        links: vec![vec![0], vec![0], vec![0], vec![1, 1, 1]],
        groups: vec!["web".into(), "replay".into()],
        transports: vec![("rdma".into(), "hpcc".into()), ("rdma".into(), "dctcp".into())],
        marked: vec!["dctcp".into()],
        ..Names::default()
    }
}

fn flow(id: u32, size: u64, fct_us: Option<u64>) -> FlowRecord {
    let start = Time(1_500_500 + u64::from(id));
    FlowRecord {
        flow: id,
        src: 0,
        dst: 2,
        size,
        start,
        finish: fct_us.map(|us| start + Time::from_us(us)),
        ideal: Time::from_us(10),
        packets_sent: 3,
        packets_retransmitted: 1,
        timeouts: id,
        group: (id % 2) as u16,
        transport: (id % 2) as u16,
        deadline: (id == 0).then_some(Time::from_us(20)),
        until: start,
    }
}

/// Nothing of all counters of the group that has this key, but of this one.
fn counted(key: &str, value: u64) -> CounterSet {
    let groups = describe::counters();
    let has = |group: &&CounterGroup| group.counters.iter().any(|counter| counter.key == key);
    let group = groups.into_iter().find(has).expect("a declared counter");
    let mut set = CounterSet::default();
    set.add(group, group.counters.iter().map(|counter| if counter.key == key { value } else { 0 }));
    set
}

fn outcome(ending: Ending) -> Outcome {
    let mut discipline = counted("early", 3);
    discipline.add_all(&counted("windows", 10));
    discipline.complete(&describe::counters());
    Outcome {
        ending,
        end: Time::from_ms(1),
        flows: 3,
        flows_not_due: 5,
        flows_done: 2,
        events: 1000,
        packet_hops: 4000,
        bytes_on_wire: 5_000_000,
        telemetry_bytes: 42_000,
        bytes_switched: 4_000_000,
        fingerprint: 0xabc,
        losses: vec![
            LossCounters {
                data_sent: 600,
                retransmitted: 5,
                data_dropped: 2,
                timeouts: 1,
                ..LossCounters::default()
            },
            LossCounters { data_sent: 400, ..LossCounters::default() },
        ],
        ports: vec![
            (3, 0, PortTotals::default()),
            (
                3,
                1,
                PortTotals {
                    packets_dropped: 2,
                    packets_lost: 4,
                    pauses: 3,
                    paused: Time::from_us(100),
                    ..PortTotals::default()
                },
            ),
        ],
        queues: vec![(3, 1, QueueHistogram { bins: vec![9, 0, 1], max: 2632 })],
        steps: vec![StepRecord {
            source: 0,
            step: 0,
            number: 0,
            group: 0,
            shape: JobShape { operation: "incast", ranks: 3, ..JobShape::default() },
            whole: false,
            part: false,
            bytes: 3500,
            start: Time::from_us(1),
            begin: Time::from_us(1),
            finish: Some(Time::from_us(5)),
            ideal: None,
            last: Some((1, 0)),
            last_recorded: true,
            exposed: None,
            straggler: None,
        }],
        counters: counted("bytes_recirculated", 50_000),
        disciplines: vec![(3, 1, discipline)],
        ..Outcome::default()
    }
}

fn value(batches: &[RecordBatch], column: usize, row: usize) -> Cell {
    cell(batches[0].column(column).as_ref(), row).unwrap()
}

#[test]
fn a_finished_run_reads_back_as_it_was_recorded() {
    let dir = Scratch::new();
    let out = dir.join("new/run");
    let mut folder = RunFolder::create(&out, false, about(), names()).unwrap();
    folder.flows(&[flow(0, 1000, Some(15)), flow(1, 2000, Some(5)), flow(2, 500, None)]).unwrap();
    let sample =
        |time, entity, value| Sample { time: Time::from_us(time), entity, metric: "queue_bytes", value };
    folder.samples(&[sample(1, Entity::Port(3, 1), 1048.0), sample(2, Entity::Port(3, 1), 0.0)]).unwrap();
    let cost = Resources { cpu_seconds: 2.0, wall_seconds: 3.0, peak_memory_bytes: Some(1 << 20) };
    let summary = folder.finish(&outcome(Ending::Done), &cost).unwrap();

    let all: Vec<String> = flow_table::schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(parquet_read::columns(&out.join("flows.parquet")).unwrap(), all);
    let columns: Vec<&str> = all.iter().map(String::as_str).collect();
    let rows = parquet_read::batches(&out.join("flows.parquet"), &columns).unwrap();
    let row = |r: usize| (0..all.len()).map(|c| value(&rows, c, r)).collect::<Vec<_>>();
    use Cell::{Null, Real, Text, Whole};
    let text = |t: &str| Text(t.into());
    assert_eq!(
        row(0),
        [
            Whole(0),
            Whole(10),
            Whole(30),
            Whole(1000),
            Real(1500.5),
            Real(16500.5),
            Real(15000.0),
            Real(10000.0),
            Real(1.5),
            Whole(3),
            Whole(1),
            Whole(0),
            text("web"),
            text("rdma"),
            text("hpcc"),
            Real(20000.0),
            Whole(1)
        ]
    );
    assert_eq!(row(1)[8], Real(0.5), "as it is: nothing is raised to 1");
    assert_eq!((&row(1)[12], &row(1)[14]), (&text("replay"), &text("dctcp")));
    assert_eq!((&row(2)[5], &row(2)[6], &row(2)[8], &row(2)[16]), (&Null, &Null, &Null, &Null));

    let series = series::read(&out, "queue_bytes", 0.0, 0).unwrap();
    assert_eq!(series["leaf0.p1"], [(1000.0, 1048.0), (2000.0, 0.0)]);
    assert!(series::read(&out, "rate_bps", 0.0, 0).unwrap().is_empty());
    let histogram = queues::read(&out).unwrap();
    assert_eq!((&histogram.bins[..], histogram.max), (&[9, 0, 1][..], 2632));
    // Folders of earlier builds have no more than the lower edge of the last bin.
    let earlier = Scratch::new();
    fs::copy(out.join(queues::FILE), earlier.path().join(queues::FILE)).unwrap();
    assert_eq!(queues::read(earlier.path()).unwrap().max, 2000);

    let replayed = trace::read(&out.join("flows.parquet")).unwrap();
    assert_eq!(
        replayed.0.iter().map(|row| (row.src, row.start_ps)).collect::<Vec<_>>(),
        [(10, 1_500_500), (10, 1_500_501), (10, 1_500_502)]
    );

    let text = fs::read_to_string(out.join("summary.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), summary);
    assert_eq!(summary["status"], "done");
    assert_eq!(summary["memory_limit_bytes"], 8_000_000_000u64);
    assert!(summary.get("memory_held_bytes").is_none() && summary.get("reason").is_none());
    assert_eq!((&summary["flows"], &summary["flows_done"]), (&json!(3), &json!(2)));
    assert_eq!((&summary["name"], &summary["seed"]), (&json!("tiny"), &json!(7)));
    assert_eq!(summary["fingerprint"], "0000000000000abc");
    assert_eq!(summary["packet_hops_per_cpu_second"], 2000.0);
    assert_eq!(
        (&summary["drops"], &summary["pauses"], &summary["paused_ns"]),
        (&json!(2), &json!(3), &json!(100_000.0))
    );
    let (all, web) = (&summary["losses"], &summary["losses"]["by_group"]["web"]);
    assert_eq!((&all["data_sent"], &web["data_sent"]), (&json!(1000), &json!(600)));
    assert_eq!(
        (&all["timeouts"], &summary["losses"]["by_group"]["replay"]["timeouts"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(all.as_object().unwrap().len(), LossCounters::ALL.len() + 1);
    // One of the two that finished is the slowest of a hundred, and it waited for no timeout.
    let warned: Vec<&str> =
        summary["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(warned.len(), 5, "{warned:?}");
    assert!(warned[0].starts_with("1 of 3 flows did not finish"), "{warned:?}");
    assert_eq!(warned[1], "5 of 8 flows had not begun when the run ended at 1.000 ms: no result covers them");
    assert!(warned[2].starts_with("no packet was marked although buffers dropped 2 packets"), "{warned:?}");
    assert_eq!(
        warned[3],
        "PFC paused leaf0.p1 (any of its classes) for 10 % of the run: flows there may wait although their own path is free"
    );
    assert!(warned[4].starts_with("1 flow is faster than the ideal time"), "{warned:?}");
    assert_eq!(summary["paused_share"], 0.05);
    assert_eq!(summary["recirculated_share"], 0.0125);
    let causes = json!({ "buffer": 0, "early": 3, "filter": 0, "horizon": 0 });
    assert_eq!(summary["drop_causes"], json!({ "leaf0.p1": causes }));
    assert_eq!(summary["ports"]["leaf0.p1"]["drops"], 2);
    assert!(summary["ports"].get("leaf0.p0").is_none());
    assert_eq!(summary["links"]["leaf -> host"]["drops"], 2);
    let lost = |kind: &str| summary["links"][kind]["packets_lost"].as_u64();
    assert_eq!((lost("host -> leaf"), lost("leaf -> host")), (Some(4), Some(0)));
    assert_eq!(summary["slowdown"]["count"], 2);
    assert_eq!(summary["slowdown"]["by_group"]["web"]["p50"], 1.5);
    assert_eq!(summary["queues"]["max"], 2632);
    let cebinae = summary["cebinae"].as_object().unwrap().values().next().unwrap();
    assert_eq!((&cebinae["windows"], &cebinae["windows_saturated"]), (&json!(10), &json!(0)));
    assert_eq!(fs::read_to_string(out.join("scenario.toml")).unwrap(), about().scenario);
    let mut files: Vec<_> = fs::read_dir(&out).unwrap().map(|f| f.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(
        files,
        [
            "digests.json",
            "flows.parquet",
            "jobs.parquet",
            "queues.parquet",
            "scenario.toml",
            "series.parquet",
            "summary.json"
        ]
    );
}

#[test]
fn the_summary_says_how_the_work_was_spread_and_what_came_up_later() {
    let dir = Scratch::new();
    let mut folder = RunFolder::create(dir.path(), false, about(), names()).unwrap();
    folder.warn("threads: so".into());
    let of = |packet_hops| RegionWork { events: 2 * packet_hops, packet_hops, crossings: packet_hops / 4 };
    folder.worked(Balance {
        threads: 2,
        lookahead: Time::from_us(1),
        windows: 9,
        regions: vec![of(3000), of(1000)],
        critical_path: 6400,
        share_alone: 0.0,
        threads_ratio: None,
    });
    let summary = folder.finish(&outcome(Ending::Done), &Resources::default()).unwrap();
    assert_eq!(summary["warnings"][0], json!("threads: so"));
    assert_eq!((&summary["threads"], &summary["regions"]), (&json!(2), &json!(2)));
    assert_eq!((&summary["windows"], &summary["lookahead_ns"]), (&json!(9), &json!(1000.0)));
    assert_eq!((&summary["balance"], &summary["crossing_share"]), (&json!(1.5), &json!(0.25)));
    assert_eq!(summary["most_speedup"], 1.25);
}

#[test]
fn the_summary_lists_the_changes_that_happened_and_an_empty_list_where_none_did() {
    let listed = |changes: &[(u64, &str)]| {
        let dir = Scratch::new();
        let failures = changes.iter().map(|&(us, what)| (Time::from_us(us), what.to_string())).collect();
        let mut folder =
            RunFolder::create(&dir.join("r"), false, about(), Names { failures, ..names() }).unwrap();
        folder.flows(&[flow(0, 1000, Some(15))]).unwrap();
        let summary = folder.finish(&outcome(Ending::Done), &Resources::default()).unwrap();
        let warned = summary["warnings"].to_string().contains("did not happen");
        (summary.get("failures").cloned(), warned)
    };
    let down = json!({ "at_ns": 1e6, "change": "leaf0 down" });
    // The run ends at 1 ms.
    assert_eq!(listed(&[]), (None, false));
    assert_eq!(listed(&[(1000, "leaf0 down")]), (Some(json!([down])), false));
    assert_eq!(listed(&[(1000, "leaf0 down"), (1001, "leaf0 up")]), (Some(json!([down])), true));
    assert_eq!(listed(&[(5000, "leaf0 down")]), (Some(json!([])), true));
}

#[test]
fn files_do_not_depend_on_the_portions_in_which_rows_come() {
    let files = |portion: usize| {
        let dir = Scratch::new();
        let mut folder = RunFolder::create(&dir.join("r"), false, about(), names()).unwrap();
        let sample = |n: u64| Sample {
            time: Time::from_us(n / 8),
            entity: Entity::Port(3, n as u32 % 4),
            metric: "queue_bytes",
            value: (n * n % 7919) as f64,
        };
        let samples: Vec<Sample> = (0..30_000).map(sample).collect();
        let flows: Vec<FlowRecord> = (0..10_000).map(|n| flow(n, 1000, Some(15))).collect();
        for rows in samples.chunks(portion) {
            folder.samples(rows).unwrap();
        }
        for rows in flows.chunks(portion) {
            folder.flows(rows).unwrap();
        }
        folder.finish(&outcome(Ending::Done), &Resources::default()).unwrap();
        ["series.parquet", "flows.parquet"].map(|file| fs::read(dir.join("r").join(file)).unwrap())
    };
    let whole = files(usize::MAX);
    for portion in [1, 3000, 4096, 5000, 20_000] {
        assert!(files(portion) == whole, "in portions of {portion}");
    }
}

#[test]
fn an_interrupted_run_leaves_readable_files_that_say_so() {
    let dir = Scratch::new();
    let mut folder = RunFolder::create(&dir.join("r"), false, about(), names()).unwrap();
    folder.flows(&[flow(0, 1000, Some(15))]).unwrap();
    let summary = folder.finish(&outcome(Ending::Interrupted), &Resources::default()).unwrap();
    assert_eq!(summary["status"], "interrupted");
    assert_eq!(slowdown::read(&dir.join("r")).unwrap().points.len(), 1);
    assert_eq!(summary["packet_hops_per_cpu_second"], Value::Null);
}

#[test]
fn a_run_that_reached_its_memory_limit_says_what_it_held() {
    let dir = Scratch::new();
    let mut folder = RunFolder::create(dir.path(), false, about(), names()).unwrap();
    folder.flows(&[flow(0, 1000, Some(15)), flow(1, 1000, None)]).unwrap();
    let ending = Ending::MemoryLimit { held: Bytes(8_012_345_344), limit: Bytes(8_000_000_000) };
    let summary = folder.finish(&outcome(ending), &Resources::default()).unwrap();
    assert_eq!(summary["status"], "memory-limit");
    assert_eq!(summary["reason"], "the process held 8012.3 MB of memory, its limit is 8000.0 MB");
    let limits = (&summary["memory_limit_bytes"], &summary["memory_held_bytes"]);
    assert_eq!(limits, (&json!(8_000_000_000u64), &json!(8_012_345_344u64)));
    assert_eq!(slowdown::read(dir.path()).unwrap().points.len(), 1);
}

#[test]
fn a_run_that_filled_the_machine_says_what_it_held_and_what_was_left() {
    let dir = Scratch::new();
    let mut folder = RunFolder::create(dir.path(), false, about(), names()).unwrap();
    folder.flows(&[flow(0, 1000, Some(15))]).unwrap();
    let ending = Ending::MachineFull { held: Bytes(8_012_345_344), left: Bytes(400_000_000) };
    let summary = folder.finish(&outcome(ending), &Resources::default()).unwrap();
    assert_eq!(summary["status"], "memory-limit");
    assert_eq!(summary["reason"], "the process held 8012.3 MB of memory, and the machine had 400.0 MB left");
    assert_eq!(summary["memory_held_bytes"], json!(8_012_345_344u64));
}

#[test]
fn a_run_without_flows_has_an_empty_table_and_no_series() {
    let dir = Scratch::new();
    let folder = RunFolder::create(dir.path(), false, about(), names()).unwrap();
    let mut nothing = outcome(Ending::Done);
    nothing.queues.clear();
    let summary = folder.finish(&nothing, &Resources::default()).unwrap();
    assert_eq!(summary["slowdown"]["count"], 0);
    assert_eq!(slowdown::read(dir.path()).unwrap().points, []);
    assert_eq!(slowdown::to_json(&[], Scheme::EqualCount(20))["bins"], json!([]));
    assert!(!dir.join("series.parquet").exists() && !dir.join("queues.parquet").exists());
}

#[test]
fn a_failed_run_keeps_its_flows_and_its_reason() {
    let dir = Scratch::new();
    let mut folder = RunFolder::create(dir.path(), false, about(), names()).unwrap();
    folder.flows(&[flow(0, 1000, Some(15))]).unwrap();
    let text = folder.fail("the controller broke", &Resources::default());
    assert!(text.contains("the controller broke") && text.contains("1 flows recorded"), "{text}");
    let summary: Value = serde_json::from_slice(&fs::read(dir.join("summary.json")).unwrap()).unwrap();
    assert_eq!((&summary["status"], &summary["reason"]), (&json!("failed"), &json!("the controller broke")));
    assert_eq!(slowdown::read(dir.path()).unwrap().points.len(), 1);
}

#[test]
fn a_folder_that_is_in_use_is_refused_unless_forced_and_only_own_files_go() {
    let dir = Scratch::new();
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    fs::write(dir.join("summary.json"), "{}").unwrap();
    let make = |path: &Path, force| RunFolder::create(path, force, about(), names());
    let error = make(dir.path(), false).err().unwrap();
    assert!(matches!(error, ResultsError::Input(_)));
    assert!(error.to_string().contains("--out") && error.to_string().contains("--force"), "{error}");
    make(dir.path(), true).unwrap();
    assert!(dir.join("notes.txt").exists() && !dir.join("summary.json").exists());
    let error = make(&dir.join("notes.txt"), true).err().unwrap();
    assert!(error.to_string().contains("is a file"), "{error}");
    let error = make(&dir.join("notes.txt/below"), true).err().unwrap();
    assert!(matches!(error, ResultsError::Input(_)), "{error}");
}

#[test]
fn a_folder_that_a_run_writes_is_refused_to_a_second_one_even_with_force() {
    let dir = Scratch::new();
    let make = |force| RunFolder::create(&dir.join("r"), force, about(), names());
    let mut first = make(false).unwrap();
    first.flows(&[flow(0, 1000, Some(15))]).unwrap();
    for force in [false, true] {
        let error = make(force).err().unwrap();
        assert!(matches!(error, ResultsError::Input(_)));
        assert!(error.to_string().contains("another run of this process is writing"), "{error}");
    }
    first.finish(&outcome(Ending::Done), &Resources::default()).unwrap();
    file_digests::check_folder(&dir.join("r"), None).unwrap();
    make(true).unwrap();
}

#[test]
fn a_page_in_the_folder_of_a_run_does_not_count_as_its_results() {
    let dir = Scratch::new();
    let folder = RunFolder::create(dir.path(), false, about(), names()).unwrap();
    folder.finish(&outcome(Ending::Done), &Resources::default()).unwrap();
    let page = dir.join("report.html");
    fs::write(&page, "whole").unwrap();
    file_digests::cover(&page, false, false).unwrap();
    fs::write(&page, "cut").unwrap();
    file_digests::check_folder(dir.path(), None).unwrap();
    assert!(file_digests::check_file(&page).is_err());
}

#[test]
fn whatever_ended_a_run_its_digests_hold_and_list_every_file() {
    let limit = Ending::MemoryLimit { held: Bytes(2), limit: Bytes(1) };
    for ending in [Some(Ending::Done), Some(Ending::Stalled), Some(Ending::Interrupted), Some(limit), None] {
        let dir = Scratch::new();
        let mut folder = RunFolder::create(dir.path(), false, about(), names()).unwrap();
        folder.flows(&[flow(0, 1000, Some(15))]).unwrap();
        match ending {
            Some(ending) => drop(folder.finish(&outcome(ending), &Resources::default()).unwrap()),
            None => drop(folder.fail("the controller broke", &Resources::default())),
        }
        let found = file_digests::check_folder(dir.path(), None).unwrap().unwrap();
        let there =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut there: Vec<String> = there.filter(|name| name != file_digests::FILE).collect();
        there.sort();
        assert_eq!(found.files.into_keys().collect::<Vec<_>>(), there, "{ending:?}");
        let summary: Value = serde_json::from_slice(&fs::read(dir.join("summary.json")).unwrap()).unwrap();
        assert_eq!(summary["file_digests"], "xxh3-128");
    }
}

#[test]
fn flows_without_a_slowdown_and_slowdowns_below_one_are_counted_and_reported() {
    for raises_slowdowns in [false, true] {
        let dir = Scratch::new();
        let names = Names { raises_slowdowns, ..names() };
        let mut folder = RunFolder::create(&dir.path().join("r"), false, about(), names).unwrap();
        // Ideal times are 10 us: one flow is faster, one has no ideal time, one is unfinished.
        let no_path = FlowRecord { ideal: Time::ZERO, ..flow(1, 500, Some(20)) };
        folder.flows(&[flow(0, 500, Some(8)), no_path, flow(2, 500, Some(30)), flow(3, 500, None)]).unwrap();
        let summary = folder.finish(&outcome(Ending::Done), &Resources::default()).unwrap();
        let slowdown = &summary["slowdown"];
        // Two flows: the mean of 0.8, or 1, and 3.
        let expected = if raises_slowdowns { (1, 0, 2.0) } else { (0, 1, 1.9) };
        let found = (&slowdown["raised_to_1"], &slowdown["below_1"]);
        assert_eq!((&slowdown["count"], &slowdown["without"]), (&json!(2), &json!(1)));
        assert_eq!((found.0, found.1), (&json!(expected.0), &json!(expected.1)));
        assert_eq!(slowdown["mean"], json!(expected.2));
        let warnings = summary["warnings"].to_string();
        assert!(warnings.contains("1 flow has no slowdown"), "{warnings}");
        assert!(warnings.contains(if raises_slowdowns { "is set to 1" } else { "is below 1" }), "{warnings}");
    }
}
