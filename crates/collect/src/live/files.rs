//! Files that grow while a collector runs: `events.jsonl` (key: `event`) and `intervals.jsonl` (keys:
//! `interval`, `node`).

use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::snapshot::{Snapshot, node};

/// More than a row takes.
const MAX_ROW_BYTES: u64 = 1 << 20;

pub struct Files {
    folder: PathBuf,
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
        let wrong = |error: io::Error| format!("out: {}: {error}", folder.display());
        create_dir_all(folder).map_err(wrong)?;
        Ok(Files {
            folder: folder.canonicalize().map_err(wrong)?,
            events: Output::open(folder, "events.jsonl")?,
            intervals: Output::open(folder, "intervals.jsonl")?,
        })
    }

    /// The folder, by its absolute path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The numbers of the last event and of the last interval that are written; 0 without a row. A collector
    /// that continues in a folder numbers its rows from there, so that no two rows have one key.
    pub fn last(&mut self) -> Result<[u64; 2], String> {
        Ok([self.events.last("event")?, self.intervals.last("interval")?])
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
        let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = opened.map_err(|error| format!("out: {name}: {error}"))?;
        let bytes = file.metadata().map_err(|error| format!("out: {name}: {error}"))?.len();
        let mut output = Output { name, file, bytes };
        let end = output.end()?;
        // Who was killed while it wrote left a part of a row, which the next row would continue; or a whole one without its end.
        let whole = end.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
        match serde_json::from_slice::<Value>(&end[whole..]) {
            Ok(Value::Object(_)) => output.append("\n")?,
            _ => output.cut(output.bytes - (end.len() - whole) as u64)?,
        }
        Ok(output)
    }

    /// The end of the file, with its last row.
    fn end(&mut self) -> Result<Vec<u8>, String> {
        let mut end = Vec::new();
        let from = self.bytes.saturating_sub(MAX_ROW_BYTES);
        let read = self.file.seek(SeekFrom::Start(from)).and_then(|_| self.file.read_to_end(&mut end));
        read.map_err(|error| format!("out: {}: {error}", self.name))?;
        Ok(end)
    }

    /// The number under this key in the last row; 0 without one.
    fn last(&mut self, key: &str) -> Result<u64, String> {
        let end = self.end()?;
        let row = end.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let row: Option<Value> = serde_json::from_slice(row).ok();
        Ok(row.and_then(|row| row[key].as_u64()).unwrap_or(0))
    }

    fn write(&mut self, rows: &[Value]) -> Result<(), String> {
        if rows.is_empty() {
            return Ok(());
        }
        self.append(&rows.iter().map(|row| format!("{row}\n")).collect::<String>())
    }

    fn append(&mut self, text: &str) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn of_a_last_row_only_a_part_is_cut_off() {
        let folder = std::env::temp_dir().join(format!("weftline-rows-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (before, after, last) in [
            ("", "", 0),
            ("{\"event\":1}\n", "{\"event\":1}\n", 1),
            ("{\"event\":1}\n{\"event\":2}", "{\"event\":1}\n{\"event\":2}\n", 2),
            ("{\"event\":1}\n{\"event\":2,\"ki", "{\"event\":1}\n", 1),
            ("{\"eve", "", 0),
        ] {
            let path = folder.join("events.jsonl");
            fs::write(&path, before).unwrap();
            let mut output = Output::open(&folder, "events.jsonl").unwrap();
            assert_eq!((output.last("event"), output.bytes), (Ok(last), after.len() as u64), "{before}");
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
