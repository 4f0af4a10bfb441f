//! Files that are synced to disk before they count as written: each is whole or absent.
//!
//! What a program writes is in the memory of the system for up to half a minute; a power failure in that time leaves a file short, empty
//! or filled with zeros, under its right name. `fsync` waits until the disk has it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::ResultsError;

/// Whether results are synced by default: WEFTLINE_SYNC=0 switches it off, for file systems on which it is slow.
pub fn by_default() -> bool {
    !matches!(std::env::var("WEFTLINE_SYNC").as_deref(), Ok("0" | "no" | "off"))
}

/// Asks the system to begin writing a file to the disk, and does not wait: those that follow share one commit of the journal.
pub fn begin(file: &File) {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor is open while `file` is borrowed; the call takes no memory. It is a hint: what it returns is of no matter.
        unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

/// Waits until the disk has a file.
pub fn finish(file: &File) -> io::Result<()> {
    unless_unknown(file.sync_all())
}

/// Waits until the disk has the names in a folder.
pub fn sync_folder(dir: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return unless_unknown(File::open(dir)?.sync_all());
    #[cfg(not(unix))]
    {
        let _ = dir;
        Ok(())
    }
}

/// A file system that does not know the call has nothing to wait for.
fn unless_unknown(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

/// Writes a file so that it is either there as a whole or not at all; with `sync` it is on the disk then.
pub fn write_whole(path: &Path, bytes: &[u8], sync: bool) -> Result<(), ResultsError> {
    let part = path.with_extension("part");
    let write = || -> io::Result<()> {
        let mut file = File::create(&part)?;
        file.write_all(bytes)?;
        if sync {
            finish(&file)?;
        }
        drop(file);
        fs::rename(&part, path)?;
        match path.parent() {
            Some(dir) if sync => sync_folder(dir),
            _ => Ok(()),
        }
    };
    write().map_err(|e| {
        let _ = fs::remove_file(&part);
        ResultsError::failed(format!("{}: {e}", path.display()))
    })
}
