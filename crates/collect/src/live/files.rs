//! Files that grow while a collector runs: `events.jsonl` (key: `event`) and `intervals.jsonl` (keys:
//! `interval`, `node`). `collectors.jsonl` has the collectors that wrote them, one after the other, each with
//! the lengths that the files had when it began: a collector that continues from a checkpoint removes no rows
//! of others.

use std::fs::{self, File, OpenOptions, create_dir_all};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::snapshot::{Snapshot, node};

/// More than a row takes.
const MAX_ROW_BYTES: u64 = 1 << 20;
/// The collectors that wrote a folder.
const COLLECTORS: &str = "collectors.jsonl";

/// A collector that wrote a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Writer {
    /// When it began for the first time, by which it is known: a checkpoint keeps it.
    started_ns: u64,
    /// Of events.jsonl and intervals.jsonl, when it began to write here.
    lengths: [u64; 2],
}

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

    /// Cuts both off at a length that they had when the collector that began at `started_ns` saved its
    /// checkpoint. Error: another collector has added rows since.
    pub fn cut(&mut self, lengths: [u64; 2], started_ns: u64, checkpoint: &Path) -> Result<(), String> {
        let writers = self.writers()?;
        let next = writers.iter().rposition(|one| one.started_ns == started_ns).map_or(0, |own| own + 1);
        if let Some(other) = writers.get(next) {
            let outputs = [&self.events, &self.intervals];
            let longer =
                (0..2).find(|&place| outputs[place].bytes > other.lengths[place].max(lengths[place]));
            if let Some(place) = longer {
                return Err(format!(
                    "out: {}: another collector has added rows since the checkpoint {}, from which to continue would remove them: \
                     choose another folder, or remove the checkpoint to begin again here",
                    outputs[place].name,
                    checkpoint.display()
                ));
            }
        }
        self.events.cut(lengths[0])?;
        self.intervals.cut(lengths[1])
    }

    /// Notes that the collector that began at `started_ns` writes from here on.
    pub fn sign(&self, started_ns: u64) -> Result<(), String> {
        if self.writers()?.last().is_some_and(|last| last.started_ns == started_ns) {
            return Ok(());
        }
        let writer = Writer { started_ns, lengths: self.lengths() };
        let text = serde_json::to_string(&writer).map_err(|error| format!("out: {COLLECTORS}: {error}"))?;
        let mut file = Output::open(&self.folder, COLLECTORS)?;
        file.append(&format!("{text}\n")).map_err(|error| format!("out: {error}"))
    }

    /// The collectors that wrote here, in their order; none if there is no such file, as former versions
    /// wrote none. The last line may lack its end: who was killed while writing it added no rows. Error:
    /// another line is of no collector.
    fn writers(&self) -> Result<Vec<Writer>, String> {
        let path = self.folder.join(COLLECTORS);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(|error| format!("out: {}: {error}", path.display()))?,
        };
        let lines = text.split_inclusive(|&byte| byte == b'\n').enumerate();
        let of_line = |(number, line): (usize, &[u8])| match serde_json::from_slice(line) {
            Ok(writer) => Some(Ok(writer)),
            Err(_) if line.trim_ascii().is_empty() || !line.ends_with(b"\n") => None,
            Err(_) => Some(Err(format!(
                "out: {}: line {}: expected a collector such as {{\"started_ns\":1,\"lengths\":[0,0]}}: which collector added \
                 which rows is not known, and one that continues could remove those of others: choose another folder",
                path.display(),
                number + 1
            ))),
        };
        lines.filter_map(of_line).collect()
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
        // Who was killed while it wrote left a part of a row, which the next row would continue; or a whole
        // one without its end.
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

    /// A folder with rows of two collectors, the second of which began when the first one had written this
    /// much.
    fn of_two(name: &str, second: u64) -> (PathBuf, Files) {
        let folder = std::env::temp_dir().join(format!("weftline-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let add = |files: &mut Files, from: u64| {
            files.events.write(&[json!({ "event": from }), json!({ "event": from + 1 })]).unwrap();
        };
        let mut files = Files::open(&folder).unwrap();
        files.sign(1).unwrap();
        add(&mut files, 1);
        let mut files = Files::open(&folder).unwrap();
        files.sign(second).unwrap();
        add(&mut files, 3);
        (folder, files)
    }

    #[test]
    fn rows_that_another_collector_added_are_not_cut_off() {
        let row = "{\"event\":1}\n".len() as u64;
        let (folder, mut files) = of_two("others", 2);
        let refused = files.cut([row, 0], 1, Path::new("site.1")).unwrap_err();
        assert!(
            refused.contains("events.jsonl: another collector has added rows since the checkpoint site.1"),
            "{refused}"
        );
        assert_eq!(files.lengths(), [4 * row, 0]);
        // What that one added is its own, and no other has written since.
        files.cut([3 * row, 0], 2, Path::new("site.2")).unwrap();
        assert_eq!(files.lengths(), [3 * row, 0]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_collector_cuts_off_its_own_rows_also_where_nothing_states_whose_they_are() {
        let row = "{\"event\":1}\n".len() as u64;
        let (folder, mut files) = of_two("own", 1);
        assert_eq!(files.writers().unwrap(), [Writer { started_ns: 1, lengths: [0, 0] }]);
        files.cut([3 * row, 0], 1, Path::new("site.1")).unwrap();
        // Another one that began and wrote nothing.
        files.sign(2).unwrap();
        files.cut([2 * row, 0], 1, Path::new("site.1")).unwrap();
        fs::remove_file(folder.join(COLLECTORS)).unwrap();
        files.cut([row, 0], 3, Path::new("site.3")).unwrap();
        assert_eq!(files.lengths(), [row, 0]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_damaged_line_on_a_collector_is_refused_and_half_a_line_is_replaced() {
        let (folder, mut files) = of_two("damaged", 2);
        let path = folder.join(COLLECTORS);
        let text = fs::read_to_string(&path).unwrap();
        let (first, second) = text.split_once('\n').unwrap();
        // Killed while it wrote its line, before any row.
        fs::write(&path, format!("{first}\n{}", &second[..second.len() / 2])).unwrap();
        assert_eq!(files.writers().unwrap().len(), 1);
        files.sign(3).unwrap();
        let signed: Vec<u64> = files.writers().unwrap().iter().map(|one| one.started_ns).collect();
        assert_eq!(signed, [1, 3]);
        for damaged in ["{\"started_ns\":2}", "\u{fffd}", "null"] {
            fs::write(&path, format!("{first}\n{damaged}\n{second}")).unwrap();
            let refused =
                [files.cut([0, 0], 1, Path::new("site.1")).unwrap_err(), files.sign(4).unwrap_err()];
            for error in refused {
                assert!(error.contains("collectors.jsonl: line 2: expected a collector such as"), "{error}");
            }
        }
        assert!(files.lengths()[0] > 0);
        fs::remove_dir_all(&folder).unwrap();
    }

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
