//! Reads files that a scenario names, up to a maximum size, with errors that state what is wrong.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::parameters::nearest;

/// Maximum size of a topology file or a table of sizes, in bytes.
pub const MAX_BYTES: u64 = 256 << 20;

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
