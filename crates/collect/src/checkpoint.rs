//! Checkpoints: what a collector knows, in files from which it continues after it was killed.
//!
//! A checkpoint is a manifest (the given file) and a part for each shard next to it, `FILE.GENERATION.SHARD`.
//! Parts are complete on disk before the manifest is replaced in one step, so that there is always a whole
//! checkpoint. It also holds how long the growing files were: they are cut off there, and what was in them
//! after it comes again under the same keys, so that nothing is in them twice. Every file ends with a
//! checksum of 64 bits.
//!
//! Records of PINT's flows are not in it: their evidence starts again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::flows::{FlowCounts, FlowTable, PathId, Record};
use crate::intake::SavedIntake;
use crate::key::Key;

const FORMAT: u32 = 1;
/// The maximum number of nodes of a path that a part may name.
const MAX_NODES: u64 = 1 << 16;

const RECORD_BYTES: usize = 80;

/// A flow out of a checkpoint.
pub struct SavedFlow {
    record: Record,
    nodes: Arc<[u64]>,
}

impl SavedFlow {
    #[cfg(target_os = "linux")]
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        self.record.key.hash(seed)
    }

    /// Puts the flow into a table.
    pub fn restore_to(&self, table: &mut FlowTable) {
        table.restore(&self.record, &self.nodes);
    }

    fn read(bytes: &[u8; RECORD_BYTES], paths: &[Arc<[u64]>]) -> Option<SavedFlow> {
        let key = Key::from_bytes(bytes.first_chunk()?);
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let both = number(48)?;
        let record = Record {
            key,
            path: PathId::new(both as u32),
            late: 0,
            changes: (both >> 32) as u32,
            packets: number(56)?,
            first_ns: number(64)?,
            last_ns: number(72)?,
        };
        Some(SavedFlow { record, nodes: Arc::clone(paths.get(both as u32 as usize)?) })
    }
}

fn record_bytes(record: &Record) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..48].copy_from_slice(&record.key.to_bytes());
    let both = u64::from(record.changes) << 32 | u64::from(record.path.get());
    let numbers = [both, record.packets, record.first_ns, record.last_ns];
    for (place, number) in bytes[48..].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// The manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub generation: u64,
    pub shards: usize,
    pub interval: u64,
    pub last_event: u64,
    /// Of the events up to the last one, those of other collectors that wrote to the same folder before.
    #[serde(default)]
    pub events_of_others: u64,
    pub started_ns: u64,
    /// Of events.jsonl and intervals.jsonl.
    pub lengths: [u64; 2],
    /// The folder of these files. None: there are none, or an earlier version wrote the checkpoint.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    pub events: BTreeMap<String, u64>,
    pub intake: SavedIntake,
    /// Of all tables of flows.
    pub counts: FlowCounts,
    /// Usual levels of hops and open events, as the watch of a live collector writes them. Checkpoints of
    /// earlier versions lack it.
    #[serde(default)]
    pub watched: serde_json::Value,
}

impl Manifest {
    pub fn new(generation: u64, shards: usize, intake: SavedIntake) -> Manifest {
        Manifest {
            format: FORMAT,
            generation,
            shards,
            interval: 0,
            last_event: 0,
            events_of_others: 0,
            started_ns: 0,
            lengths: [0; 2],
            folder: None,
            events: BTreeMap::new(),
            intake,
            counts: FlowCounts::default(),
            watched: serde_json::Value::Null,
        }
    }

    /// Replaces the manifest, and removes the parts of the generation before.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        // Next to it under a name of its own: other checkpoints of the folder may differ in their extension.
        let new = next_to(path, "new");
        let mut file = File::create(&new)?;
        let mut checksum = Checksum::default();
        checksum.add(text.as_bytes());
        writeln!(file, "{text}\n{:016x}", checksum.0)?;
        file.sync_data()?;
        fs::rename(&new, path)?;
        if let Some(before) = self.generation.checked_sub(1) {
            for shard in 0..64 {
                if fs::remove_file(part(path, before, shard)).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads the manifest and its parts; None if there is no file. Error: one that names the file.
    pub fn read(path: &Path) -> Result<Option<(Manifest, Vec<SavedFlow>)>, String> {
        let wrong = |what: &dyn std::fmt::Display| format!("checkpoint: {}: {what}", path.display());
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error)),
        };
        let (text, checksum) = text.trim_end().rsplit_once('\n').ok_or_else(|| wrong(&"is damaged"))?;
        let mut found = Checksum::default();
        found.add(text.as_bytes());
        if format!("{:016x}", found.0) != checksum {
            return Err(wrong(&"is damaged; remove it to start again"));
        }
        let manifest: Manifest = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        if manifest.format != FORMAT {
            return Err(wrong(&format!("has format {}, expected {FORMAT}", manifest.format)));
        }
        let mut flows = Vec::new();
        for shard in 0..manifest.shards {
            let name = part(path, manifest.generation, shard);
            let read = File::open(&name).and_then(|file| read_part(BufReader::new(file), &mut flows));
            read.map_err(|error| format!("checkpoint: {}: {error}", name.display()))?;
        }
        Ok(Some((manifest, flows)))
    }
}

/// Checks that a checkpoint can be written, before anything is collected. Error: one that names the file.
pub fn check_place(path: &Path) -> Result<(), String> {
    let wrong = |what: &dyn std::fmt::Display| format!("checkpoint: {}: {what}", path.display());
    if path.is_dir() {
        return Err(wrong(&"is a folder, expected the name of a file"));
    }
    // Shards are numbered below 64.
    let probe = part(path, 0, 64);
    File::create(&probe)
        .and_then(|_| fs::remove_file(&probe))
        .map_err(|error| wrong(&format!("it cannot be written: {error}")))
}

fn part(path: &Path, generation: u64, shard: usize) -> PathBuf {
    next_to(path, &format!("{generation}.{shard}"))
}

/// The file of this name with a dot and more after it.
fn next_to(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{more}"));
    name.into()
}

/// Writes the part of a shard.
pub fn write_part(path: &Path, generation: u64, shard: usize, table: &FlowTable) -> io::Result<()> {
    let file = File::create(part(path, generation, shard))?;
    let mut output =
        Summed { output: BufWriter::with_capacity(1 << 20, file), checksum: Checksum::default() };
    output.numbers(&[table.paths().len() as u64, table.len() as u64])?;
    for path in table.paths() {
        output.numbers(&[path.len() as u64])?;
        output.numbers(path)?;
    }
    for record in table.records() {
        output.bytes(&record_bytes(record))?;
    }
    let checksum = output.checksum.0;
    output.output.write_all(&checksum.to_le_bytes())?;
    output.output.into_inner().map_err(|error| error.into_error())?.sync_data()
}

fn read_part(input: impl Read, flows: &mut Vec<SavedFlow>) -> io::Result<()> {
    let damaged = || io::Error::other("is damaged; remove the checkpoint to start again");
    let mut input = Summed { output: input, checksum: Checksum::default() };
    let (path_count, flow_count) = (input.number()?, input.number()?);
    let mut paths: Vec<Arc<[u64]>> = Vec::new();
    for _ in 0..path_count {
        let nodes = input.number()?;
        if nodes > MAX_NODES {
            return Err(damaged());
        }
        paths.push((0..nodes).map(|_| input.number()).collect::<io::Result<_>>()?);
    }
    for _ in 0..flow_count {
        let mut record = [0; RECORD_BYTES];
        input.exactly(&mut record)?;
        flows.push(SavedFlow::read(&record, &paths).ok_or_else(damaged)?);
    }
    let mut checksum = [0; 8];
    let computed = input.checksum.0;
    input.output.read_exact(&mut checksum)?;
    if u64::from_le_bytes(checksum) == computed { Ok(()) } else { Err(damaged()) }
}

#[derive(Debug, Clone, Copy)]
struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        // Words of 8 bytes; a shorter end is filled up with zeros.
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
    }
}

struct Summed<T> {
    output: T,
    checksum: Checksum,
}

impl<W: Write> Summed<W> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.add(bytes);
        self.output.write_all(bytes)
    }

    fn numbers(&mut self, numbers: &[u64]) -> io::Result<()> {
        numbers.iter().try_for_each(|number| self.bytes(&number.to_le_bytes()))
    }
}

impl<R: Read> Summed<R> {
    fn exactly(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.output.read_exact(bytes)?;
        self.checksum.add(bytes);
        Ok(())
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.exactly(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::Intake;
    use crate::packet::Markers;

    #[test]
    fn checkpoints_of_one_folder_that_differ_in_their_extension_share_no_file() {
        let folder = std::env::temp_dir().join(format!("weftline-manifests-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let other = folder.join("site.new");
        fs::write(&other, "of another collector").unwrap();
        let path = folder.join("site.1");
        Manifest::new(1, 0, Intake::new(Markers::default(), 1 << 16).saved()).write(&path).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "of another collector");
        assert!(Manifest::read(&path).unwrap().is_some());
        fs::remove_dir_all(&folder).unwrap();
    }
}
