//! A run's folder while the run goes on: tables grow in it, and its end, whatever it is, becomes summary.json.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use weftline_sim::measure::{Balance, DigestRecord, FlowRecord, Frames, Outcome, Sample, Sink};

use crate::capture::{self, CaptureFile, CapturePlan};
use crate::flow_table::{self, FlowRows};
use crate::names::Names;
use crate::resources::Resources;
use crate::series::{self, SeriesRows};
use crate::table_file::TableFile;
use crate::{ResultsError, digests, queues, summary};

pub const SCENARIO_FILE: &str = "scenario.toml";
pub const SUMMARY_FILE: &str = "summary.json";
/// What a run or a report writes; the only files that overwriting a folder removes.
const OWN_FILES: &[&str] = &[
    SCENARIO_FILE,
    SUMMARY_FILE,
    flow_table::FILE,
    series::FILE,
    queues::FILE,
    digests::FILE,
    capture::FILE,
    "report.html",
    RESERVE_FILE,
];
/// Room kept on the disk until the run ends, so that a full one still takes the last flows and the summary.
const RESERVE_FILE: &str = "reserve.part";
const RESERVE_BYTES: usize = 1 << 20;
/// Rows gathered before they become columns.
const ROWS_PER_BATCH: usize = 4096;

/// Which run it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    pub name: String,
    pub seed: u64,
    /// The resolved scenario: rerunning it gives the same bits.
    pub scenario: String,
    /// What deserves a look before the result is trusted.
    pub warnings: Vec<String>,
    /// Most bytes that the process may hold, if there is a limit.
    pub memory_limit: Option<u64>,
}

/// The folder of a run that goes on. Ends with [`RunFolder::finish`] or [`RunFolder::fail`]; if neither is called its
/// tables stay readable, without summary.
pub struct RunFolder {
    dir: PathBuf,
    about: About,
    balance: Option<Balance>,
    names: Arc<Names>,
    flow_rows: FlowRows,
    flows: TableFile,
    waiting_flows: Vec<FlowRecord>,
    series_rows: SeriesRows,
    /// Made when the first sample comes.
    series: Option<TableFile>,
    waiting_samples: Vec<Sample>,
    /// Made when the first digest comes.
    digests: Option<TableFile>,
    waiting_digests: Vec<DigestRecord>,
    capture: Option<CaptureFile>,
    reserve: Option<Reserve>,
}

/// A file that takes up room until this is dropped.
struct Reserve(PathBuf);

impl Reserve {
    fn take(path: PathBuf) -> Result<Reserve, ResultsError> {
        let taken = fs::write(&path, vec![0; RESERVE_BYTES]);
        // What was written before the disk was full goes with it.
        let reserve = Reserve(path);
        match taken {
            Ok(()) => Ok(reserve),
            Err(error) => {
                let name = reserve.0.display();
                Err(ResultsError::failed(format!("{name}: no room for the results of a run: {error}")))
            }
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl RunFolder {
    /// Makes `dir` and its parents and writes scenario.toml into it. A folder that holds anything is refused, unless
    /// `overwrite`: then what an earlier run left in it is removed, and nothing else.
    pub fn create(
        dir: &Path,
        overwrite: bool,
        about: About,
        names: Names,
    ) -> Result<RunFolder, ResultsError> {
        prepare(dir, overwrite)?;
        write_whole(&dir.join(SCENARIO_FILE), about.scenario.as_bytes())?;
        let names = Arc::new(names);
        Ok(RunFolder {
            flows: TableFile::create(&dir.join(flow_table::FILE), flow_table::schema())?,
            dir: dir.to_path_buf(),
            about,
            balance: None,
            flow_rows: FlowRows::new(names.clone()),
            waiting_flows: Vec::with_capacity(ROWS_PER_BATCH),
            series_rows: SeriesRows::new(names.clone()),
            names,
            series: None,
            waiting_samples: Vec::new(),
            digests: None,
            waiting_digests: Vec::new(),
            capture: None,
            reserve: Some(Reserve::take(dir.join(RESERVE_FILE))?),
        })
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Adds a warning to what the summary will say.
    pub fn warn(&mut self, warning: String) {
        self.about.warnings.push(warning);
    }

    /// Makes the file for packets.
    pub fn capture(&mut self, plan: &CapturePlan) -> Result<(), ResultsError> {
        self.capture = Some(CaptureFile::create(&self.dir.join(capture::FILE), plan)?);
        Ok(())
    }

    /// Notes how the work was spread over threads, for the summary.
    pub fn worked(&mut self, balance: Balance) {
        self.balance = Some(balance);
    }

    /// Ends the folder of a run that came to an end, also an early one (see [`Ending`](weftline_sim::measure::Ending)); returns what
    /// summary.json holds. Where a table cannot be written to its end the summary says that the run failed.
    pub fn finish(mut self, outcome: &Outcome, cost: &Resources) -> Result<Value, ResultsError> {
        let written = self.close().and_then(|()| self.write_queues(outcome));
        self.about.warnings.extend(self.capture.as_ref().and_then(CaptureFile::warning));
        let written = written.and_then(|()| {
            let mut summary = summary::of(&self.about, &self.names, outcome, cost, &self.dir)?;
            if let (Value::Object(summary), Some(balance)) = (&mut summary, &self.balance) {
                summary.extend(summary::of_balance(balance));
            }
            if let Some(capture) = &self.capture {
                summary["capture"] = capture.summary();
            }
            self.write_summary(&summary)?;
            Ok(summary)
        });
        written.inspect_err(|error| {
            let _ = self.write_summary(&summary::of_failure(&self.about, &error.to_string(), cost));
        })
    }

    /// Ends the folder of a run that failed; what was recorded before is written as far as it can be. Returns `reason`, with
    /// what is readable.
    pub fn fail(mut self, reason: &str, cost: &Resources) -> String {
        let closed = self.close();
        let mut text = reason.to_string();
        if let Err(error) = closed {
            // The failure to write may be the reason itself.
            let error = error.to_string();
            if !text.contains(&error) {
                text = format!("{text}\n{error}");
            }
        }
        if let Err(error) = self.write_summary(&summary::of_failure(&self.about, &text, cost)) {
            text = format!("{text}\n{error}");
        }
        let rows = self.flows.rows();
        format!("{text}\n{}: {rows} flows recorded until then are readable", self.dir.display())
    }

    fn flush_flows(&mut self) -> Result<(), ResultsError> {
        if self.waiting_flows.is_empty() {
            return Ok(());
        }
        let batch = self.flow_rows.batch(&self.waiting_flows);
        self.waiting_flows.clear();
        self.flows.write(&batch)
    }

    fn flush_samples(&mut self) -> Result<(), ResultsError> {
        if self.waiting_samples.is_empty() {
            return Ok(());
        }
        let batch = self.series_rows.batch(&self.waiting_samples);
        self.waiting_samples.clear();
        let table = match self.series.take() {
            Some(table) => table,
            None => TableFile::create(&self.dir.join(series::FILE), series::schema())?,
        };
        self.series.insert(table).write(&batch)
    }

    fn flush_digests(&mut self) -> Result<(), ResultsError> {
        if self.waiting_digests.is_empty() {
            return Ok(());
        }
        let batch = digests::batch(&self.names, &self.waiting_digests);
        self.waiting_digests.clear();
        let table = match self.digests.take() {
            Some(table) => table,
            None => digests::table(&self.dir)?,
        };
        self.digests.insert(table).write(&batch)
    }

    /// Everything to the disk; the first failure is returned after all was tried.
    fn close(&mut self) -> Result<(), ResultsError> {
        self.reserve = None;
        let flows = self.flush_flows().and_then(|()| self.flows.close());
        let samples = self.flush_samples();
        let series = self.series.as_mut().map_or(Ok(()), TableFile::close);
        let last = self.flush_digests();
        let digests = self.digests.as_mut().map_or(Ok(()), TableFile::close);
        let capture = self.capture.as_mut().map_or(Ok(()), CaptureFile::close);
        flows.and(samples).and(series).and(last).and(digests).and(capture)
    }

    fn write_queues(&self, outcome: &Outcome) -> Result<(), ResultsError> {
        if outcome.queues.is_empty() {
            return Ok(());
        }
        let mut table = TableFile::create(&self.dir.join(queues::FILE), queues::schema())?;
        for (node, port, histogram) in &outcome.queues {
            table.write(&queues::batch(&self.names, (*node, *port), histogram))?;
        }
        table.close()
    }

    fn write_summary(&self, summary: &Value) -> Result<(), ResultsError> {
        write_whole(&self.dir.join(SUMMARY_FILE), format!("{summary:#}\n").as_bytes())
    }
}

impl Sink for RunFolder {
    fn flows(&mut self, batch: &[FlowRecord]) -> std::io::Result<()> {
        self.waiting_flows.extend_from_slice(batch);
        if self.waiting_flows.len() >= ROWS_PER_BATCH {
            self.flush_flows()?;
        }
        Ok(())
    }

    fn samples(&mut self, batch: &[Sample]) -> std::io::Result<()> {
        self.waiting_samples.extend_from_slice(batch);
        if self.waiting_samples.len() >= ROWS_PER_BATCH {
            self.flush_samples()?;
        }
        Ok(())
    }

    fn digests(&mut self, batch: &[DigestRecord]) -> std::io::Result<()> {
        self.waiting_digests.extend_from_slice(batch);
        if self.waiting_digests.len() >= ROWS_PER_BATCH {
            self.flush_digests()?;
        }
        Ok(())
    }

    fn frames(&mut self, batch: &Frames) -> std::io::Result<bool> {
        match &mut self.capture {
            Some(capture) => Ok(capture.append(batch)?),
            None => Ok(false),
        }
    }
}

/// An empty folder at `dir`, made or emptied of an earlier run.
fn prepare(dir: &Path, overwrite: bool) -> Result<(), ResultsError> {
    if dir.as_os_str().is_empty() {
        return Err(ResultsError::input("--out: expected the name of a folder, found nothing"));
    }
    let name = dir.display();
    let input = |e: std::io::Error| ResultsError::input(format!("{name}: {e}"));
    if dir.exists() && !dir.is_dir() {
        return Err(ResultsError::input(format!("{name} is a file: choose another folder with --out")));
    }
    fs::create_dir_all(dir)
        .map_err(|e| ResultsError::input(format!("{name}: the folder cannot be made: {e}")))?;
    if fs::read_dir(dir).map_err(input)?.next().is_none() {
        return Ok(());
    }
    if !overwrite {
        return Err(ResultsError::input(format!(
            "{name} exists and is not empty: choose another folder with --out, or overwrite it with --force \
             (in Python: out=, force=True)"
        )));
    }
    for file in OWN_FILES {
        match fs::remove_file(dir.join(file)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(ResultsError::input(format!("{}: {e}", dir.join(file).display())));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes a file so that it is either there as a whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let part = path.with_extension("part");
    fs::write(&part, bytes).and_then(|()| fs::rename(&part, path)).map_err(|e| {
        let _ = fs::remove_file(&part);
        ResultsError::failed(format!("{}: {e}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet_read::{self, Cell, cell};
    use crate::scratch::Scratch;
    use crate::slowdown::{self, Scheme};
    use crate::trace;
    use arrow_array::RecordBatch;
    use serde_json::json;
    use weftline_sim::measure::{
        CebinaeTotals, DropCauses, Ending, Entity, PortTotals, QueueHistogram, RegionWork,
    };
    use weftline_sim::units::{Bytes, Time};

    fn about() -> About {
        About {
            name: "tiny".into(),
            seed: 7,
            scenario: "name = \"tiny\"\nseed = 7\n".into(),
            warnings: Vec::new(),
            memory_limit: Some(8_000_000_000),
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
            group: (id % 2) as u16,
            transport: (id % 2) as u16,
            deadline: (id == 0).then_some(Time::from_us(20)),
        }
    }

    fn outcome(ending: Ending) -> Outcome {
        Outcome {
            ending,
            end: Time::from_ms(1),
            flows: 3,
            flows_done: 2,
            events: 1000,
            packet_hops: 4000,
            bytes_on_wire: 5_000_000,
            telemetry_bytes: 42_000,
            packets_recirculated: 25,
            bytes_recirculated: 50_000,
            bytes_switched: 4_000_000,
            probes: 0,
            probe_bytes: 0,
            balancer_header_bytes: 0,
            flowlets: 0,
            flowlets_moved: 0,
            probes_settled: None,
            last_loss: None,
            receiving: None,
            fingerprint: 0xabc,
            ports: vec![
                (3, 0, PortTotals::default()),
                (
                    3,
                    1,
                    PortTotals {
                        packets_dropped: 2,
                        pauses: 3,
                        paused: Time::from_us(100),
                        ..PortTotals::default()
                    },
                ),
            ],
            queues: vec![(3, 1, QueueHistogram { bins: vec![9, 0, 1] })],
            jobs: vec![(0, Time::from_us(1), Time::from_us(5))],
            drops: vec![(3, 1, DropCauses { early: 3, ..DropCauses::default() })],
            cebinae: vec![(
                3,
                1,
                CebinaeTotals { windows: 10, windows_saturated: 4, ..CebinaeTotals::default() },
            )],
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
                text("web"),
                text("rdma"),
                text("hpcc"),
                Real(20000.0),
                Whole(1)
            ]
        );
        assert_eq!(row(1)[8], Real(1.0), "never below one");
        assert_eq!((&row(1)[11], &row(1)[13]), (&text("replay"), &text("dctcp")));
        assert_eq!((&row(2)[5], &row(2)[6], &row(2)[8], &row(2)[15]), (&Null, &Null, &Null, &Null));

        let series = series::read(&out, "queue_bytes", 0.0, 0).unwrap();
        assert_eq!(series["leaf0.p1"], [(1000.0, 1048.0), (2000.0, 0.0)]);
        assert!(series::read(&out, "rate_bps", 0.0, 0).unwrap().is_empty());
        assert_eq!(queues::read(&out).unwrap().bins, [9, 0, 1]);

        let replayed = trace::read(&out.join("flows.parquet")).unwrap();
        assert_eq!(
            replayed.iter().map(|row| (row.src, row.start_ps)).collect::<Vec<_>>(),
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
        assert_eq!(summary["paused_share"], 0.05);
        assert_eq!(summary["recirculated_share"], 0.0125);
        let causes = json!({ "buffer": 0, "early": 3, "filter": 0, "horizon": 0 });
        assert_eq!(summary["drop_causes"], json!({ "leaf0.p1": causes }));
        assert_eq!(summary["ports"]["leaf0.p1"]["drops"], 2);
        assert!(summary["ports"].get("leaf0.p0").is_none());
        assert_eq!(summary["links"]["leaf -> host"]["drops"], 2);
        assert_eq!(summary["slowdown"]["count"], 2);
        assert_eq!(summary["slowdown"]["by_group"]["web"]["p50"], 1.5);
        assert_eq!(summary["queues"]["max"], 2000);
        let cebinae = summary["cebinae"].as_object().unwrap().values().next().unwrap();
        assert_eq!((&cebinae["windows"], &cebinae["windows_saturated"]), (&json!(10), &json!(4)));
        assert_eq!(fs::read_to_string(out.join("scenario.toml")).unwrap(), about().scenario);
        let mut files: Vec<_> = fs::read_dir(&out).unwrap().map(|f| f.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(
            files,
            ["flows.parquet", "queues.parquet", "scenario.toml", "series.parquet", "summary.json"]
        );
    }

    #[test]
    fn the_summary_says_how_the_work_was_spread_and_what_came_up_later() {
        let dir = Scratch::new();
        let mut folder = RunFolder::create(dir.path(), false, about(), names()).unwrap();
        folder.warn("threads: so".into());
        let of =
            |packet_hops| RegionWork { events: 2 * packet_hops, packet_hops, crossings: packet_hops / 4 };
        folder.worked(Balance {
            threads: 2,
            lookahead: Time::from_us(1),
            windows: 9,
            regions: vec![of(3000), of(1000)],
            longest_way: 6400,
        });
        let summary = folder.finish(&outcome(Ending::Done), &Resources::default()).unwrap();
        assert_eq!(summary["warnings"], json!(["threads: so"]));
        assert_eq!((&summary["threads"], &summary["regions"]), (&json!(2), &json!(2)));
        assert_eq!((&summary["windows"], &summary["lookahead_ns"]), (&json!(9), &json!(1000.0)));
        assert_eq!((&summary["balance"], &summary["crossing_share"]), (&json!(1.5), &json!(0.25)));
        assert_eq!(summary["most_speedup"], 1.25);
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
        assert_eq!(
            (&summary["status"], &summary["reason"]),
            (&json!("failed"), &json!("the controller broke"))
        );
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
}
