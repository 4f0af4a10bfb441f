//! Closes intervals: gathers the state, looks for anomalies, writes files, hands snapshots to exporters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::anomaly::{Anomaly, INTERVALS, Quantity, Watch};
use super::config::Config;
use super::files::Files;
use super::reader::{Task, now_ns};
use super::snapshot::{Snapshot, node};
use super::{Shared, ask, lock};
use crate::checkpoint::{Manifest, write_part};
use crate::flows::FlowCounts;
use crate::intake::{HopKey, SavedIntake};
use crate::shards::Handle;
use crate::written::{event_row, flow_row};

/// Flows that an anomaly names.
const AFFECTED: usize = 5;

pub struct Ticker {
    shared: Arc<Shared>,
    shards: Handle,
    every: Duration,
    started_ns: u64,
    /// When this process began, which may have continued from a checkpoint.
    process_ns: u64,
    interval: u64,
    /// When the last intervals closed, the oldest first, for the number of intervals that a rise needs.
    closed_ns: [u64; INTERVALS as usize],
    watch: Watch,
    events: BTreeMap<String, u64>,
    files: Option<Files>,
    checkpoint: Option<PathBuf>,
    generation: u64,
}

impl Ticker {
    /// Continues from a checkpoint, if there is one. Error: a file cannot be opened.
    pub fn new(
        config: &Config,
        shared: Arc<Shared>,
        shards: Handle,
        saved: Option<&Manifest>,
    ) -> Result<Ticker, String> {
        let mut files = config.out.as_deref().map(Files::open).transpose()?;
        if let (Some(files), Some(saved)) = (&mut files, saved) {
            // Rows after the checkpoint come again. Those of another folder are of another collector.
            let is_same = match &saved.folder {
                Some(folder) => folder == files.folder(),
                None => saved.lengths != [0; 2],
            };
            if is_same {
                let checkpoint = config.checkpoint.as_deref().unwrap_or(Path::new(""));
                files.cut(saved.lengths, saved.started_ns, checkpoint)?;
            }
        }
        let started_ns = saved.map_or_else(now_ns, |saved| saved.started_ns);
        files.as_ref().map_or(Ok(()), |files| files.sign(started_ns))?;
        let written = files.as_mut().map_or(Ok([0; 2]), Files::last)?;
        let known = saved.map_or([0; 2], |saved| [saved.last_event, saved.interval]);
        let [last_event, interval] = [0, 1].map(|place| written[place].max(known[place]));
        shared.next_event.store(last_event, Ordering::Release);
        let of_others = saved.map_or(0, |saved| saved.events_of_others) + last_event - known[0];
        shared.events_of_others.store(of_others, Ordering::Release);
        let kinds = saved.map(|saved| saved.events.clone()).unwrap_or_default();
        let watch = match saved {
            Some(saved) => Watch::from(saved.intake.hops(), &saved.watched)
                .map_err(|error| format!("checkpoint: {error}"))?,
            None => Watch::default(),
        };
        Ok(Ticker {
            shared,
            shards,
            every: Duration::from_secs_f64(config.interval_s),
            started_ns,
            process_ns: now_ns(),
            interval,
            closed_ns: [now_ns(); INTERVALS as usize],
            watch,
            events: kinds,
            files,
            checkpoint: config.checkpoint.clone(),
            generation: saved.map_or(0, |saved| saved.generation),
        })
    }

    /// Closes intervals until the collector stops; the last one may be shorter.
    pub fn run(mut self, reader: &Sender<Task>, exporter: Option<&SyncSender<Arc<Snapshot>>>) {
        let mut next = Instant::now() + self.every;
        loop {
            let stops = self.shared.stops();
            let now = Instant::now();
            if !stops && now < next {
                thread::park_timeout(next - now);
                continue;
            }
            next += self.every;
            if next < now {
                next = now + self.every;
            }
            let Some(snapshot) = self.close(reader) else { return };
            let snapshot = Arc::new(snapshot);
            *lock(&self.shared.latest) = Arc::clone(&snapshot);
            if let Some(queue) = exporter {
                if queue.try_send(snapshot).is_err() {
                    self.shared.exported("otlp", |counts| counts.skipped += 1);
                }
            }
            if stops {
                return;
            }
        }
    }

    /// The state at the end of an interval; None if the reader has ended.
    fn close(&mut self, reader: &Sender<Task>) -> Option<Snapshot> {
        let (handle, file, generation) = (self.shards.clone(), self.checkpoint.clone(), self.generation + 1);
        // The shards are asked by the reader, so that both answer for the same packets.
        let (mut snapshot, intake, answers) = ask(reader, move |reader| {
            reader.router.flush_all();
            let snapshot = Snapshot {
                counts: reader.intake.counts(),
                malformed: reader.intake.malformed().clone(),
                hops: reader.intake.hops().clone(),
                inputs: reader.counts.clone(),
                sources: reader.admission.counts().collect(),
                not_allowed: reader.admission.not_allowed,
                reporters: reader.intake.sources().clone(),
                memory_bytes: reader.intake.bytes(),
                ..Snapshot::default()
            };
            let intake = file.is_some().then(|| reader.intake.saved());
            let answers = handle.begin(move |number, shard| {
                let changes = shard.flows.take_changes();
                let rows: Vec<Value> = changes.iter().map(|change| event_row(&shard.flows, change)).collect();
                let pint =
                    shard.pint.as_mut().map(|pint| (pint.take_events(), pint.flows())).unwrap_or_default();
                let written =
                    file.as_ref().map_or(Ok(()), |file| write_part(file, generation, number, &shard.flows));
                (rows, shard.flows.len(), shard.bytes(), shard.flows.counts(), pint, written)
            });
            (snapshot, intake, answers)
        })?;
        self.interval += 1;
        snapshot.interval = self.interval;
        (snapshot.started_ns, snapshot.time_ns) = (self.started_ns, now_ns());
        snapshot.process_ns = self.process_ns;
        let mut rows = Vec::new();
        let mut problem = None;
        let mut flow_counts = FlowCounts::default();
        let shards = answers.len();
        let of_shards: Vec<_> = answers.into_iter().filter_map(|answer| answer.recv().ok()).collect();
        for (found, flows, bytes, counts, (of_pint, pint_flows), written) in of_shards {
            problem = problem.or(written.err().map(|error| {
                let file = self.checkpoint.as_deref().unwrap_or(Path::new(""));
                format!("checkpoint: {}: {error}", file.display())
            }));
            flow_counts.add(&counts);
            *self.events.entry("path changed".into()).or_insert(0) += found.len() as u64;
            *self.events.entry("pint".into()).or_insert(0) += of_pint.len() as u64;
            rows.extend(found);
            rows.extend(of_pint.into_iter().map(|(_, event)| event));
            snapshot.pint_flows += pint_flows;
            snapshot.flows += flows;
            snapshot.memory_bytes += bytes;
            snapshot.counts = snapshot.counts.with(&counts);
        }
        rows.sort_by_key(|row| row["time_ns"].as_u64());
        let (recent, anomalies) = self.watch.take(&snapshot.hops);
        snapshot.recent = recent;
        for anomaly in anomalies {
            let row = self.anomaly_row(&anomaly, snapshot.time_ns);
            *self.events.entry(kind(&anomaly).into()).or_insert(0) += 1;
            rows.push(row);
        }
        self.closed_ns.rotate_left(1);
        self.closed_ns[INTERVALS as usize - 1] = snapshot.time_ns;
        snapshot.events = self.events.clone();
        let rows: Vec<Value> = rows.into_iter().map(|row| self.shared.add_event(row)).collect();
        if let Some(files) = &mut self.files {
            let written = files.write(&snapshot, &rows);
            self.shared.exported("files", |counts| match written {
                Ok(()) => counts.sent += 1,
                Err(_) => counts.failed += 1,
            });
            problem = problem.or(written.err());
        }
        if let (Some(intake), None) = (intake, &problem) {
            problem = self.save(intake, shards, flow_counts).err();
        }
        *lock(&self.shared.problem) = problem;
        snapshot.exporters = lock(&self.shared.exporters).clone();
        Some(snapshot)
    }

    /// Completes a checkpoint, whose parts the shards have written.
    fn save(&mut self, intake: SavedIntake, shards: usize, counts: FlowCounts) -> Result<(), String> {
        let Some(path) = &self.checkpoint else { return Ok(()) };
        self.generation += 1;
        let manifest = Manifest {
            interval: self.interval,
            last_event: self.shared.last_event(),
            events_of_others: self.shared.events_of_others.load(Ordering::Acquire),
            started_ns: self.started_ns,
            lengths: self.files.as_ref().map(Files::lengths).unwrap_or_default(),
            folder: self.files.as_ref().map(|files| files.folder().to_owned()),
            events: self.events.clone(),
            counts,
            watched: self.watch.saved(),
            ..Manifest::new(self.generation, shards, intake)
        };
        manifest.write(path).map_err(|error| format!("checkpoint: {}: {error}", path.display()))
    }

    fn anomaly_row(&self, anomaly: &Anomaly, time_ns: u64) -> Value {
        json!({
            "time_ns": time_ns, "kind": kind(anomaly), "node": node(anomaly.hop), "usual": anomaly.usual,
            "level": anomaly.level, "statistic": anomaly.statistic.name(), "flows": self.affected(anomaly.hop),
        })
    }

    /// The largest flows, in packets, that pass a hop and were seen in the intervals that showed the event.
    fn affected(&self, hop: HopKey) -> Vec<Value> {
        let HopKey::Node(node) = hop else { return Vec::new() };
        let since_ns = self.closed_ns[0];
        let of_shards = self.shards.ask(move |shard| {
            let table = &shard.flows;
            let mut flows: Vec<_> = table
                .each()
                .filter(|(.., state)| state.last_ns >= since_ns && table.path(state.path).contains(&node))
                .collect();
            flows.sort_unstable_by_key(|(flow, point, state)| {
                (std::cmp::Reverse(state.packets), *flow, *point)
            });
            flows.truncate(AFFECTED);
            flows
        });
        let mut flows: Vec<_> = of_shards.into_iter().flatten().collect();
        flows.sort_unstable_by_key(|(flow, point, state)| (std::cmp::Reverse(state.packets), *flow, *point));
        flows.iter().take(AFFECTED).map(|(flow, point, _)| flow_row(flow, *point)).collect()
    }
}

fn kind(anomaly: &Anomaly) -> &'static str {
    match (anomaly.quantity, anomaly.began) {
        (Quantity::Latency, true) => "latency rose",
        (Quantity::Latency, false) => "latency returned",
        (Quantity::Queue, true) => "queue rose",
        (Quantity::Queue, false) => "queue returned",
    }
}

impl Shared {
    /// The number of the last event.
    pub fn last_event(&self) -> u64 {
        self.next_event.load(Ordering::Acquire)
    }
}
