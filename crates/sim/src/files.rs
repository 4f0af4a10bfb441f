//! Reads files that a scenario names, up to a maximum size, with errors that state what is wrong.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::parameters::nearest;

/// Maximum size of a topology file or a table of sizes, in bytes.
pub const MAX_BYTES: u64 = 256 << 20;
/// Levels that the parser of TOML follows.
const MAX_DEPTH: usize = 80;

/// Returns the contents of a file of at most `max` bytes. Errors do not contain the file's name.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("no such file{}", neighbour(path)),
        _ => format!("cannot be read: {error}"),
    })?;
    let too_large = || format!("larger than the limit of {} MiB", max >> 20);
    if file.metadata().is_ok_and(|metadata| metadata.len() > max) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => "is a folder, expected a file".to_string(),
        _ => format!("cannot be read: {error}"),
    })?;
    // The length of pipes and devices is unknown before they are read.
    if bytes.len() as u64 > max {
        return Err(too_large());
    }
    Ok(bytes)
}

/// Where the parser found an error, and what is wrong there: its text, with the key that it leaves out.
pub fn syntax_error(text: &str, error: &toml::de::Error) -> (Option<usize>, String) {
    let message = error.message().trim();
    match (message, error.span()) {
        ("duplicate key", Some(span)) => {
            let key = text.get(span.clone()).unwrap_or_default().trim();
            (Some(span.start), format!("duplicate key {key}: it has a value already"))
        }
        ("recursion limit", span) => {
            // The parser reports no place: it is probably the line that opens the largest number of keys, lists and tables.
            let openers = |line: &str| line.bytes().filter(|byte| b".[{".contains(byte)).count();
            let deepest = text.lines().max_by_key(|line| openers(line)).unwrap_or_default();
            let start = deepest.as_ptr() as usize - text.as_ptr() as usize;
            let start = span.map_or(start, |span| span.start).min(text.len());
            (Some(start), format!("keys, tables and lists are nested deeper than {MAX_DEPTH} levels"))
        }
        (_, span) => (span.map(|span| span.start), message.to_string()),
    }
}

/// Returns a hint that names the most similar file of the same directory.
fn neighbour(path: &Path) -> String {
    let wanted = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let entries = path.parent().and_then(|dir| std::fs::read_dir(dir).ok());
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .take(1000)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let near = nearest(wanted, names.iter().map(String::as_str));
    near.map_or(String::new(), |near| format!(": did you mean \"{near}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_reported_and_a_near_name_offered() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let error = |name: &str| read(&here.join(name), 1 << 20).unwrap_err();
        assert_eq!(error("Cargo.tolm"), "no such file: did you mean \"Cargo.toml\"?");
        assert_eq!(error("src"), "is a folder, expected a file");
        assert!(read(&here.join("Cargo.toml"), 1 << 20).unwrap().starts_with(b"[package]"));
    }

    #[test]
    fn more_than_the_limit_is_refused_also_where_there_is_no_length() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(read(&here.join("Cargo.toml"), 10).unwrap_err(), "larger than the limit of 0 MiB");
        let endless = Path::new("/dev/zero");
        if endless.exists() {
            assert_eq!(read(endless, 1 << 20).unwrap_err(), "larger than the limit of 1 MiB");
        }
    }
}
