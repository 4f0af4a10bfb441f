//! The claim on a run's folder: one run at a time writes into it.
//!
//! A claim is an advisory lock (flock) on `run.lock` in the folder. The system takes it back when the process ends, however it
//! ends; on NFS the lock is one of the server and holds between machines. The file names the process that holds it, and is
//! removed with the claim.
//!
//! A file system without locks (ENOLCK, EOPNOTSUPP) still creates a file for one process alone: there the file itself is the
//! claim. A file that a killed process left is removed on the machine of that process; on another machine the error says
//! which file to remove.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::ResultsError;

/// Is in the folder while a run writes there.
pub const LOCK_FILE: &str = "run.lock";
/// Files and folders of which one shows that a folder holds a result store (`weftline sweep`).
const OF_STORES: [&str; 2] = ["store.json", "points"];

/// The right to write a run into a folder, until it is dropped.
#[derive(Debug)]
pub struct FolderClaim {
    dir: PathBuf,
    /// Holds the lock.
    file: File,
    /// Folders that did not exist before, the innermost first; those that stay empty are removed.
    made: Vec<PathBuf>,
    /// A forked process has a copy, which is none of its own.
    process: u32,
}

/// Answer of the system to a request for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locked {
    Here,
    Elsewhere,
    /// The file system has no locks.
    Unknown,
}

impl FolderClaim {
    /// Makes `dir` where it does not exist, and claims it. Refused: a file, the folder of a result store, and a
    /// folder that another run writes.
    pub fn take(dir: &Path) -> Result<FolderClaim, ResultsError> {
        FolderClaim::take_with(dir, lock)
    }

    fn take_with(
        dir: &Path,
        lock: impl Fn(&File) -> io::Result<Locked>,
    ) -> Result<FolderClaim, ResultsError> {
        check_kind(dir)?;
        let name = dir.display();
        let unusable =
            |e: io::Error| ResultsError::input(format!("{name}: no run can be written there: {e}"));
        let missing = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists());
        let made: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        let path = dir.join(LOCK_FILE);
        loop {
            fs::create_dir_all(dir)
                .map_err(|e| ResultsError::input(format!("{name}: the folder cannot be made: {e}")))?;
            let open = |new| OpenOptions::new().read(true).write(true).create_new(new).open(&path);
            let (file, is_new) = match open(true) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => (open(false), false),
                opened => (opened, true),
            };
            let file = match file {
                Ok(file) => file,
                // Who held the claim has removed the file, or the folder, in between.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => return Err(unusable(e)),
            };
            match lock(&file).map_err(unusable)? {
                Locked::Here if !is_at(&file, &path) => continue,
                Locked::Here => {}
                Locked::Elsewhere => return Err(claimed(dir, &path, "")),
                Locked::Unknown if is_new => {}
                Locked::Unknown if has_ended(&path) => {
                    fs::remove_file(&path).map_err(unusable)?;
                    continue;
                }
                Locked::Unknown => {
                    let more = format!(
                        ". This file system has no locks: if that process has ended, remove {}",
                        path.display()
                    );
                    return Err(claimed(dir, &path, &more));
                }
            }
            let claim = FolderClaim { dir: dir.to_path_buf(), file, made, process: std::process::id() };
            // On a full disk the file stays empty: other processes are refused all the same.
            let _ = claim.file.set_len(0);
            let _ = (&claim.file).write_all(format!("{} {}\n", claim.process, host()).as_bytes());
            return Ok(claim);
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for FolderClaim {
    fn drop(&mut self) {
        let path = self.dir.join(LOCK_FILE);
        // The folder may have been moved, and another one may have its name by now.
        if self.process != std::process::id() || !is_at(&self.file, &path) {
            return;
        }
        let _ = fs::remove_file(path);
        for dir in &self.made {
            // Refused where something is in it.
            if fs::remove_dir(dir).is_err() {
                return;
            }
        }
    }
}

/// Refuses a name that no run can be written to.
fn check_kind(dir: &Path) -> Result<(), ResultsError> {
    let name = dir.display();
    if dir.as_os_str().is_empty() {
        return Err(ResultsError::input("--out: expected the name of a folder, found nothing"));
    }
    if let Ok(target) = fs::read_link(dir)
        && !dir.exists()
    {
        let target = target.display();
        return Err(ResultsError::input(format!(
            "{name} is a symbolic link to {target}, which does not exist: make that folder, or choose another one with --out"
        )));
    }
    if dir.exists() && !dir.is_dir() {
        return Err(ResultsError::input(format!("{name} is a file: choose another folder with --out")));
    }
    match OF_STORES.iter().find(|file| dir.join(file).exists()) {
        Some(file) => Err(ResultsError::input(format!(
            "{name} holds a result store, as `weftline sweep` writes it ({file}): a run needs another folder; choose it with \
             --out (in Python: out=)"
        ))),
        None => Ok(()),
    }
}

/// The error about a folder that another run writes; `more` ends it.
fn claimed(dir: &Path, lock: &Path, more: &str) -> ResultsError {
    let holder = fs::read_to_string(lock).unwrap_or_default();
    let who = match holder.trim().split_once(' ') {
        Some((process, host)) if of_this_process(process, host) => "another run of this process".to_string(),
        Some((process, host)) => format!("process {process} on {host}"),
        None => "another process".to_string(),
    };
    ResultsError::input(format!(
        "{}: {who} is writing a run into this folder: wait until it has ended, or choose another folder with --out (in \
         Python: out=){more}",
        dir.display()
    ))
}

fn of_this_process(process: &str, of_host: &str) -> bool {
    process.parse() == Ok(std::process::id()) && of_host == host()
}

/// Whether the process that a lock file names is one of this machine and has ended.
fn has_ended(lock: &Path) -> bool {
    let holder = fs::read_to_string(lock).unwrap_or_default();
    let Some((process, of_host)) = holder.trim().split_once(' ') else { return false };
    of_host == host() && process.parse().is_ok_and(is_no_process)
}

#[cfg(unix)]
fn is_no_process(process: i32) -> bool {
    // SAFETY: the signal 0 is none; the call only says whether there is such a process.
    process > 0
        && unsafe { libc::kill(process, 0) } != 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

#[cfg(not(unix))]
fn is_no_process(_: i32) -> bool {
    false
}

#[cfg(unix)]
fn lock(file: &File) -> io::Result<Locked> {
    use std::os::fd::AsRawFd;
    loop {
        // SAFETY: the descriptor is open while `file` is borrowed; the call takes no memory.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(Locked::Here);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EWOULDBLOCK) => return Ok(Locked::Elsewhere),
            Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => {
                return Ok(Locked::Unknown);
            }
            _ => return Err(error),
        }
    }
}

#[cfg(not(unix))]
fn lock(_: &File) -> io::Result<Locked> {
    Ok(Locked::Unknown)
}

/// Whether `path` still names this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    fs::metadata(path).map(place).ok() == file.metadata().map(place).ok()
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// The name of this machine.
fn host() -> String {
    #[cfg(unix)]
    {
        let mut name = [0u8; 256];
        // SAFETY: the call writes at most the given number of bytes; the last one stays 0.
        if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } == 0 {
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
            return String::from_utf8_lossy(&name[..end]).into_owned();
        }
    }
    "this machine".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn text(claim: Result<FolderClaim, ResultsError>) -> String {
        claim.expect_err("a refusal").to_string()
    }

    #[test]
    fn a_folder_has_one_claim_at_a_time_and_is_as_before_without_a_run() {
        let dir = Scratch::new();
        let out = dir.join("new/run");
        let first = FolderClaim::take(&out).unwrap();
        let refused = text(FolderClaim::take(&out));
        assert!(
            refused.contains("another run of this process is writing a run into this folder"),
            "{refused}"
        );
        drop(first);
        assert!(!dir.join("new").exists());
        drop(FolderClaim::take(&out).unwrap());
    }

    #[test]
    fn what_a_killed_process_left_is_no_claim() {
        let dir = Scratch::new();
        fs::write(dir.join(LOCK_FILE), "1 elsewhere\n").unwrap();
        drop(FolderClaim::take(dir.path()).unwrap());
        assert!(!dir.join(LOCK_FILE).exists());
    }

    #[test]
    fn a_folder_that_was_moved_gives_no_right_on_the_next_one_of_its_name() {
        let dir = Scratch::new();
        let out = dir.join("run");
        let moved = FolderClaim::take(&out).unwrap();
        fs::rename(&out, dir.join("aside")).unwrap();
        let next = FolderClaim::take(&out).unwrap();
        drop(moved);
        assert!(out.join(LOCK_FILE).exists());
        drop(next);
        assert!(!out.exists());
    }

    #[test]
    fn without_locks_the_file_is_the_claim_and_that_of_an_ended_process_of_this_machine_is_removed() {
        let take = |path: &Path| FolderClaim::take_with(path, |_| Ok(Locked::Unknown));
        let dir = Scratch::new();
        let first = take(dir.path()).unwrap();
        let refused = text(take(dir.path()));
        assert!(refused.contains("no locks") && refused.contains("run.lock"), "{refused}");
        drop(first);
        // No process has the number of the largest i32.
        fs::write(dir.join(LOCK_FILE), format!("{} {}\n", i32::MAX, host())).unwrap();
        drop(take(dir.path()).unwrap());
        for holder in ["7 another-machine\n", ""] {
            fs::write(dir.join(LOCK_FILE), holder).unwrap();
            let refused = text(take(dir.path()));
            assert!(
                refused.contains("is writing") && refused.contains("if that process has ended"),
                "{refused}"
            );
        }
    }

    #[test]
    fn stores_and_links_to_nothing_are_refused_by_name() {
        let dir = Scratch::new();
        fs::create_dir(dir.join("points")).unwrap();
        let refused = text(FolderClaim::take(dir.path()));
        assert!(refused.contains("holds a result store") && refused.contains("points"), "{refused}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("nothing", dir.join("link")).unwrap();
            let refused = text(FolderClaim::take(&dir.join("link")));
            assert!(refused.contains("is a symbolic link to nothing, which does not exist"), "{refused}");
        }
    }
}
