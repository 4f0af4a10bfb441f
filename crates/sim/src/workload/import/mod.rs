//! Files of job graphs: read, or an error that names the line, the byte or the node.

pub mod chakra;
pub mod goal_binary;
pub mod goal_text;
mod groups;
mod matches;
mod protobuf;
pub mod stuck;

use super::graph::Listed;
use super::graph::listed::{Op, RankList, SendEnds};
use crate::files;
use rustc_hash::FxHashMap;
use std::io::Read;
use std::path::Path;

/// What a file holds, and what was assumed where it holds nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    pub graph: Listed,
    pub assumed: Vec<String>,
}

/// How files are read, as far as they leave it open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choices {
    pub send_ends: SendEnds,
    /// Chakra: nodes wait for their control dependencies too.
    pub control: bool,
    /// Chakra: nodes of one stream follow each other as they started when they were recorded.
    pub stream_order: bool,
    /// Chakra: the processor of nodes that name their operations; none: their durations count.
    pub roofline: Option<Roofline>,
}

impl Default for Choices {
    fn default() -> Choices {
        Choices { send_ends: SendEnds::Posted, control: false, stream_order: false, roofline: None }
    }
}

/// A processor that is bound by its operations or by its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofline {
    /// Operations a second.
    pub peak: f64,
    /// Bytes a second; none: no bound.
    pub memory: Option<f64>,
}

/// Largest size of a file, decompressed.
const MAX_FILE: u64 = 8 << 30;
/// Largest size of a message.
const MAX_BYTES: u64 = super::sizes::MAX_BYTES;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Goal,
    Chakra,
}

impl Format {
    /// By the end of its name, or by the files whose prefix it is.
    pub fn of(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("goal" | "bin") => Some(Format::Goal),
            Some("et") => Some(Format::Chakra),
            _ => is_prefix(path).then_some(Format::Chakra),
        }
    }
}

/// Reads the graph of a file, or, of Chakra, of the files of all ranks, of which `path` is the first or their
/// prefix. `groups`: the file of Chakra's process groups.
pub fn file(
    path: &Path,
    format: Option<Format>,
    groups: Option<&Path>,
    choices: &Choices,
) -> Result<Imported, String> {
    match format.or_else(|| Format::of(path)) {
        Some(Format::Goal) => goal(&path.display().to_string(), &bytes_of(path)?, choices),
        Some(Format::Chakra) => {
            let groups = groups.map(groups_of).transpose()?.unwrap_or_default();
            chakra::read(&files_of(path)?, &groups, choices)
        }
        None => {
            let name = path.display();
            Err(format!("{name}: unknown format: expected .goal, .bin or .et (also .gz), or a `format`"))
        }
    }
}

/// Makes messages without data, as programs send them to signal, carry one byte. Returns a
/// sentence on how many these are; none: every message has data.
fn with_a_byte_each(ranks: &mut [RankList]) -> Option<String> {
    let mut raised = 0u64;
    for op in ranks.iter_mut().flat_map(|list| &mut list.ops) {
        match op {
            Op::Send { bytes: bytes @ 0, .. } => (*bytes, raised) = (1, raised + 1),
            Op::Receive { bytes: bytes @ 0, .. } => *bytes = 1,
            _ => {}
        }
    }
    (raised > 0).then(|| format!("{raised} messages have no bytes: they carry one"))
}

/// The content of a file, decompressed where gzip compressed it.
fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.display();
    let bytes = files::read(path, MAX_FILE).map_err(|message| format!("{name}: {message}"))?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]).take(MAX_FILE + 1);
    reader.read_to_end(&mut plain).map_err(|error| format!("{name}: cannot be decompressed: {error}"))?;
    if plain.len() as u64 > MAX_FILE {
        return Err(format!("{name}: larger than the limit of {} MiB when decompressed", MAX_FILE >> 20));
    }
    Ok(plain)
}

/// Whether `PREFIX.0.et` exists.
fn is_prefix(path: &Path) -> bool {
    let first = |end: &str| Path::new(&format!("{}.0.et{end}", path.display())).exists();
    first("") || first(".gz")
}

/// The rank of a file that is not the first, and the prefix of the files: 3 and `trace` of `trace.3.et`.
fn rank_and_prefix(plain: &str) -> Option<(u32, &str)> {
    let (prefix, rank) = plain.rsplit_once('.')?;
    Some((rank.parse().ok()?, prefix))
}

/// The files of all ranks: `PREFIX.0.et`, `PREFIX.1.et`, ...
fn files_of(path: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let text = path.display().to_string();
    let zipped = text.ends_with(".gz");
    let plain = text.strip_suffix(".gz").unwrap_or(&text);
    let plain = plain.strip_suffix(".et").unwrap_or(plain);
    let prefix = plain.strip_suffix(".0").unwrap_or(plain);
    let name = |rank: usize, zipped: bool| format!("{prefix}.{rank}.et{}", if zipped { ".gz" } else { "" });
    let mut all = Vec::new();
    loop {
        let names = [name(all.len(), zipped), name(all.len(), !zipped)];
        if let Some(found) = names.iter().find(|name| Path::new(name).exists()) {
            all.push((found.clone(), bytes_of(Path::new(found))?));
            continue;
        }
        return match later_rank(prefix, all.len()) {
            Some((rank, found)) => {
                let missing = all.len();
                let names = &names[0];
                Err(format!(
                    "{names}: no such file: rank {missing} is missing, but rank {rank} is there ({found})"
                ))
            }
            None if !all.is_empty() => Ok(all),
            None if path.exists() => {
                if let Some((rank, prefix)) =
                    rank_and_prefix(plain).filter(|&(_, prefix)| is_prefix(prefix.as_ref()))
                {
                    return Err(format!(
                        "{text}: the file of rank {rank}: expected that of rank 0, {prefix}.0.et, which stands for those of \
                         all ranks"
                    ));
                }
                Err(format!("{text}: expected the file of a rank, named such as {}", names[0]))
            }
            None => Err(format!("{}: no such file", names[0])),
        };
    }
}

/// The first rank from `first` on that has a file, and its name.
fn later_rank(prefix: &str, first: usize) -> Option<(usize, String)> {
    let prefix = Path::new(prefix);
    let (folder, stem) = (prefix.parent()?, prefix.file_name()?.to_str()?);
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let ranks = names.filter_map(|name| {
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let rank = plain.strip_suffix(".et")?.strip_prefix(stem)?.strip_prefix('.')?.parse().ok()?;
        (rank >= first).then_some((rank, name))
    });
    ranks.min()
}

/// Process groups: `{"1": [0, 1], "2": [2, 3]}`.
fn groups_of(path: &Path) -> Result<FxHashMap<String, Vec<u32>>, String> {
    let name = path.display();
    let bytes = bytes_of(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| format!("{name}: not text: {error}"))?;
    groups::read(text).map_err(|at| {
        format!("{name}: byte {at}: expected groups of ranks such as {{\"1\": [0, 1], \"2\": [2, 3]}}")
    })
}

/// Why the operations of a rank can never all start; none: they can. `place`: what their places are.
fn cycle(list: &RankList, place: &str) -> Option<String> {
    let cycle = list.cycle()?;
    let places: Vec<String> = cycle.iter().take(10).map(|&op| list.places[op as usize].to_string()).collect();
    Some(match &places[..] {
        [one] => format!("the operation of {place} {one} waits for itself"),
        _ => format!("the operations of {place}s {} wait for each other", places.join(", ")),
    })
}

/// Reads a graph of GOAL, text or binary. The error begins with `name`.
pub fn goal(name: &str, bytes: &[u8], choices: &Choices) -> Result<Imported, String> {
    if goal_binary::is(bytes) {
        return goal_binary::read(name, bytes, choices);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        format!("{name}: byte {}: expected GOAL, as text or binary; found neither", error.valid_up_to())
    })?;
    goal_text::read(name, text, choices)
}

#[cfg(test)]
mod tests;
