//! Files that grow while a collector runs: `events.jsonl` (key: `event`) and `intervals.jsonl` (keys:
//! `interval`, `node`).

use std::fs::{File, OpenOptions, create_dir_all};
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::snapshot::{Snapshot, node};

pub struct Files {
    events: Output,
    intervals: Output,
}

struct Output {
    name: String,
    file: File,
    bytes: u64,
}

impl Files {
    /// Opens both in a folder, which is made if it is missing. Error: one that names the file.
    pub fn open(folder: &Path) -> Result<Files, String> {
        create_dir_all(folder).map_err(|error| format!("out: {}: {error}", folder.display()))?;
        Ok(Files {
            events: Output::open(folder, "events.jsonl")?,
            intervals: Output::open(folder, "intervals.jsonl")?,
        })
    }

    /// Bytes that were written to events and to intervals.
    pub fn lengths(&self) -> [u64; 2] {
        [self.events.bytes, self.intervals.bytes]
    }

    /// Cuts both off at a length that they had.
    pub fn cut(&mut self, lengths: [u64; 2]) -> Result<(), String> {
        self.events.cut(lengths[0])?;
        self.intervals.cut(lengths[1])
    }

    /// Adds the rows of an interval.
    pub fn write(&mut self, snapshot: &Snapshot, events: &[Value]) -> Result<(), String> {
        self.events.write(events)?;
        let row = |(key, hop): (&crate::intake::HopKey, &crate::intake::HopState)| {
            json!({
                "interval": snapshot.interval, "time_ns": snapshot.time_ns, "node": node(*key),
                "latency_samples": hop.latency.count, "latency_p50": hop.latency.quantile(0.5),
                "latency_p99": hop.latency.quantile(0.99), "queue_samples": hop.queue.count,
                "queue_p50": hop.queue.quantile(0.5), "queue_p99": hop.queue.quantile(0.99), "drops": hop.drops,
            })
        };
        let active =
            snapshot.recent.iter().filter(|(_, hop)| hop.latency.count + hop.queue.count + hop.drops > 0);
        self.intervals.write(&active.map(row).collect::<Vec<_>>())
    }
}

impl Output {
    fn open(folder: &Path, name: &str) -> Result<Output, String> {
        let path = folder.join(name);
        let name = path.display().to_string();
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        let file = opened.map_err(|error| format!("out: {name}: {error}"))?;
        let bytes = file.metadata().map_err(|error| format!("out: {name}: {error}"))?.len();
        Ok(Output { name, file, bytes })
    }

    fn write(&mut self, rows: &[Value]) -> Result<(), String> {
        if rows.is_empty() {
            return Ok(());
        }
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            // No half of a row stays.
            let _ = self.file.set_len(self.bytes);
            return Err(format!("{}: {error}", self.name));
        }
        self.bytes += text.len() as u64;
        Ok(())
    }

    fn cut(&mut self, length: u64) -> Result<(), String> {
        if length < self.bytes {
            self.file.set_len(length).map_err(|error| format!("{}: {error}", self.name))?;
            self.bytes = length;
        }
        Ok(())
    }
}
