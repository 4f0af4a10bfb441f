//! digests.json: size and digest of every file of a run, so that damage is noticed when the run is read.
//!
//! It is written last, when all other files of the run are on the disk, and bears a [seal](crate::seal) itself:
//!
//! ```text
//! { "kind": "xxh3-128", "files": { "flows.parquet": { "bytes": 48213, "digest": "..." }, ... },"digest":"..." }
//! ```
//!
//! Every table is hashed when it is first read in a process, before a byte of it is decoded (`parquet_read`). What was hashed is known
//! by device, inode, size and the times of its last changes, and is hashed again when one of these changes. The
//! [stamp](stamp) of a folder is made of the same for all its files: a store keeps it, so that it lists runs without
//! hashing unchanged files. Numbers of tables never depend on a stamp.
//!
//! A folder of an earlier version has no digests.json, and its summary.json does not say `file_digests`: it is read, and
//! [`check_folder`] says that nothing vouches for it.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use twox_hash::XxHash3_128;

use crate::ResultsError;
use crate::durable;
use crate::folder::{SUMMARY_FILE, WRITTEN_FILES};
use crate::seal::{self, Seal};

pub const FILE: &str = "digests.json";
/// The key of summary.json that says that there is a digests.json, and the kind of its digests.
pub const SUMMARY_KEY: &str = "file_digests";
pub const KIND: &str = "xxh3-128";
/// Bytes that are hashed at a time.
const CHUNK: u64 = 1 << 18;
/// File systems count time in steps of up to 10 ms: a file that changed this recently may change again within a step.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// What a file held when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileDigest {
    pub bytes: u64,
    pub digest: u128,
}

/// Every file of a run, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDigests {
    pub files: BTreeMap<String, FileDigest>,
}

impl FileDigests {
    /// What the digests.json in `dir` says; none in a folder of an earlier version.
    pub fn read(dir: &Path) -> Result<Option<FileDigests>, ResultsError> {
        let path = dir.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return earlier_version(dir),
            Err(error) => return Err(ResultsError::input(format!("{}: {error}", path.display()))),
        };
        let sound = (seal::seal_of(&text) == Seal::Whole).then(|| FileDigests::parse(&text)).flatten();
        let found = || format!("{} bytes that differ from those written", text.len());
        sound.map(Some).ok_or_else(|| damaged(&path, &found()))
    }

    fn parse(text: &[u8]) -> Option<FileDigests> {
        let value: Value = serde_json::from_slice(text).ok()?;
        if value["kind"] != KIND {
            return None;
        }
        let files = value["files"].as_object()?.iter().map(|(name, file)| {
            let digest = u128::from_str_radix(file["digest"].as_str()?, 16).ok()?;
            Some((name.clone(), FileDigest { bytes: file["bytes"].as_u64()?, digest }))
        });
        Some(FileDigests { files: files.collect::<Option<_>>()? })
    }

    fn text(&self) -> String {
        let file = |file: &FileDigest| json!({ "bytes": file.bytes, "digest": seal::hex(file.digest) });
        let files: serde_json::Map<_, _> =
            self.files.iter().map(|(name, found)| (name.clone(), file(found))).collect();
        seal::sealed(&format!("{:#}", json!({ "kind": KIND, "files": files })))
    }

    /// Whether the file `name` in `dir` is what was written.
    fn check(&self, dir: &Path, name: &str) -> Result<(), ResultsError> {
        let path = dir.join(name);
        let Some(expected) = self.files.get(name) else {
            return match WRITTEN_FILES.contains(&name) && path.exists() {
                true => {
                    Err(damaged(&path, "a file that the run did not write: digests.json does not list it"))
                }
                false => Ok(()),
            };
        };
        self.check_size(dir, name)?;
        let found = digest_of(&path).map_err(|error| damaged(&path, &error.to_string()))?;
        match found == *expected {
            true => Ok(()),
            false => Err(differs(&path, expected, Some(found.digest), found.bytes)),
        }
    }

    /// Whether the file is there in its size.
    fn check_size(&self, dir: &Path, name: &str) -> Result<(), ResultsError> {
        let (path, expected) = (dir.join(name), &self.files[name]);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() && found.len() == expected.bytes => Ok(()),
            Ok(found) => Err(differs(&path, expected, None, found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(damaged(&path, "no such file; digests.json lists it"))
            }
            Err(error) => Err(damaged(&path, &error.to_string())),
        }
    }
}

/// The error about a folder without digests.json: none, unless its summary states that it had one.
fn earlier_version(dir: &Path) -> Result<Option<FileDigests>, ResultsError> {
    let summary: Value = fs::read(dir.join(SUMMARY_FILE))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    match summary.get(SUMMARY_KEY) {
        Some(_) => Err(damaged(&dir.join(FILE), "no such file; summary.json says that the run wrote it")),
        None => Ok(None),
    }
}

fn damaged(path: &Path, found: &str) -> ResultsError {
    ResultsError::Damaged(format!(
        "{}: the results are damaged: found {found}. Restore the folder from a copy, or run its scenario again into another \
         folder",
        path.display()
    ))
}

fn differs(path: &Path, expected: &FileDigest, digest: Option<u128>, bytes: u64) -> ResultsError {
    let digest = digest.map_or(String::new(), |digest| format!(" with the digest {}", seal::hex(digest)));
    damaged(
        path,
        &format!(
            "{bytes} bytes{digest}, expected {} bytes with the digest {} (digests.json)",
            expected.bytes,
            seal::hex(expected.digest)
        ),
    )
}

/// Writes digests.json for the files that a run writes and that are in `dir`; with `sync` when they are on the disk, and it with them.
pub fn write(dir: &Path, sync: bool) -> Result<(), ResultsError> {
    let failed = |path: &Path, error: io::Error| ResultsError::failed(format!("{}: {error}", path.display()));
    let mut found = FileDigests::default();
    let mut opened = Vec::new();
    for name in WRITTEN_FILES {
        let path = dir.join(name);
        match File::open(&path) {
            Ok(file) => opened.push((*name, path, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
    if sync {
        opened.iter().for_each(|(_, _, file)| durable::begin(file));
    }
    for (name, path, file) in &mut opened {
        let digest = hash(file).map_err(|error| failed(path, error))?;
        found.files.insert(name.to_string(), digest);
    }
    if sync {
        for (_, path, file) in &opened {
            durable::finish(file).map_err(|error| failed(path, error))?;
        }
        durable::sync_folder(dir).map_err(|error| failed(dir, error))?;
    }
    durable::write_whole(&dir.join(FILE), found.text().as_bytes(), sync)
}

/// Adds a file that was made later, such as report.html, to the digests.json of its folder, or its new digest. Where there is no digests.json
/// nothing is done, unless `begin`.
pub fn cover(path: &Path, begin: bool, sync: bool) -> Result<(), ResultsError> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    let Some(mut all) = FileDigests::read(dir)?.or_else(|| begin.then(FileDigests::default)) else {
        return Ok(());
    };
    let failed = |error: io::Error| ResultsError::failed(format!("{}: {error}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    all.files.insert(name.to_string(), hash(&mut file).map_err(failed)?);
    if sync {
        durable::finish(&file).map_err(failed)?;
    }
    durable::write_whole(&dir.join(FILE), all.text().as_bytes(), sync)
}

/// Waits until the disk has all files in `dir`, which another process wrote.
pub fn sync_files(dir: &Path) -> Result<(), ResultsError> {
    let sync = || -> io::Result<()> {
        let mut opened = Vec::new();
        for entry in fs::read_dir(dir)? {
            let file = File::open(entry?.path())?;
            durable::begin(&file);
            opened.push(file);
        }
        opened.iter().try_for_each(durable::finish)?;
        durable::sync_folder(dir)
    };
    sync().map_err(|error| ResultsError::failed(format!("{}: {error}", dir.display())))
}

/// Checks the run in `dir`: every file by presence and size, those of `names` (none: all) by digest. What was made of the results
/// later, such as report.html, is none of them: [`check_file`] checks it. Returns what digests.json says, none in a folder of an
/// earlier version.
pub fn check_folder(dir: &Path, names: Option<&[String]>) -> Result<Option<FileDigests>, ResultsError> {
    let Some(all) = FileDigests::read(dir)? else { return Ok(None) };
    for name in all.files.keys().filter(|name| WRITTEN_FILES.contains(&name.as_str())) {
        match names {
            Some(names) if !names.contains(name) => all.check_size(dir, name)?,
            _ => all.check(dir, name)?,
        }
    }
    for name in WRITTEN_FILES {
        if !all.files.contains_key(*name) {
            all.check(dir, name)?;
        }
    }
    Ok(Some(all))
}

/// Checks one file before it is read. A file without a digests.json in its folder is not checked.
pub fn check_file(path: &Path) -> Result<(), ResultsError> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    match FileDigests::read(dir)? {
        Some(all) => all.check(dir, name),
        None => Ok(()),
    }
}

/// Size and digest of a file; of one that this process has hashed, and that was not touched since, from memory.
fn digest_of(path: &Path) -> io::Result<FileDigest> {
    static KNOWN: LazyLock<Mutex<FxHashMap<Place, (Marks, FileDigest)>>> = LazyLock::new(Mutex::default);
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let (place, marks) = (place(&metadata), marks(&metadata));
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((then, digest)) = place.and_then(|place| known().get(&place).copied())
        && then == marks
    {
        return Ok(digest);
    }
    let digest = hash(&mut file)?;
    if let Some(place) = place.filter(|_| marks.settled()) {
        known().insert(place, (marks, digest));
    }
    Ok(digest)
}

fn hash(file: &mut File) -> io::Result<FileDigest> {
    let length = file.metadata()?.len();
    let mut buffer = vec![0; length.clamp(1, CHUNK) as usize];
    let (mut hasher, mut bytes) = (XxHash3_128::new(), 0);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(FileDigest { bytes, digest: hasher.finish_128() }),
            Ok(count) => {
                hasher.write(&buffer[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Device and inode.
type Place = (u64, u64);

/// What changes when a file is written to: its size, and when it and what is known of it last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    bytes: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl Marks {
    /// Whether the next write is sure to change them.
    fn settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.modified_ns.max(self.changed_ns) + (SETTLED_AFTER.as_nanos() as i128) < now.as_nanos() as i128
    }
}

#[cfg(unix)]
fn place(metadata: &Metadata) -> Option<Place> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(unix)]
fn marks(metadata: &Metadata) -> Marks {
    use std::os::unix::fs::MetadataExt;
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    Marks {
        bytes: metadata.len(),
        modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
    }
}

#[cfg(not(unix))]
fn place(_: &Metadata) -> Option<Place> {
    None
}

#[cfg(not(unix))]
fn marks(metadata: &Metadata) -> Marks {
    let since = metadata.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let modified_ns = since.unwrap_or_default().as_nanos() as i128;
    Marks { bytes: metadata.len(), modified_ns, changed_ns: modified_ns }
}

/// A number that changes when a file in `dir` is added, removed, replaced or written to; none if it cannot be determined, as of files
/// that were written a moment ago.
pub fn stamp(dir: &Path) -> Option<u128> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).ok()? {
        let entry = entry.ok()?;
        let metadata = entry.metadata().ok()?;
        let (place, marks) = (place(&metadata)?, marks(&metadata));
        if !marks.settled() {
            return None;
        }
        files.push((entry.file_name(), place.1, marks));
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hasher = XxHash3_128::new();
    for (name, inode, marks) in files {
        hasher.write(name.as_encoded_bytes());
        hasher.write(&[0]);
        hasher.write(&inode.to_le_bytes());
        hasher.write(&marks.bytes.to_le_bytes());
        hasher.write(&marks.modified_ns.to_le_bytes());
        hasher.write(&marks.changed_ns.to_le_bytes());
    }
    Some(hasher.finish_128())
}

#[cfg(test)]
mod tests;
