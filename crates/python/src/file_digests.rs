//! Whether results are what a run wrote: digests.json of a folder, and the seals of a store's own files. Which run writes a folder.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weftline_results::seal::{self, Seal};
use weftline_results::{durable, file_digests, folder, parquet_read};

use crate::errors::of_results;

/// Checks the files of the run in `dir`: all by presence and size, those of `names` (None: all) by digest. Returns the digests of
/// digests.json by name, None where an earlier version wrote none.
#[pyfunction]
#[pyo3(signature = (dir, names=None))]
pub fn check_files(
    py: Python<'_>,
    dir: PathBuf,
    names: Option<Vec<String>>,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let found = py.detach(|| file_digests::check_folder(&dir, names.as_deref())).map_err(of_results)?;
    let Some(found) = found else { return Ok(None) };
    let all = PyDict::new(py);
    for (name, file) in found.files {
        all.set_item(name, seal::hex(file.digest))?;
    }
    Ok(Some(all))
}

/// The right to write a run into a folder, which is made where it does not exist; one run at a time has it.
#[pyclass(frozen, module = "weftline._native")]
pub struct FolderClaim(Mutex<Option<folder::FolderClaim>>);

impl FolderClaim {
    /// The claim itself; None if it was taken or released before.
    pub fn take(&self) -> Option<folder::FolderClaim> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl FolderClaim {
    #[new]
    fn new(py: Python<'_>, dir: PathBuf) -> PyResult<FolderClaim> {
        let claim = py.detach(|| folder::FolderClaim::take(&dir)).map_err(of_results)?;
        Ok(FolderClaim(Mutex::new(Some(claim))))
    }

    /// Gives it back, unless a run has taken it over.
    fn release(&self, py: Python<'_>) {
        py.detach(|| drop(self.take()));
    }
}

/// Checks one file before it is read; a file without a digests.json in its folder is not checked.
#[pyfunction]
pub fn check_file(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| file_digests::check_file(&path)).map_err(of_results)
}

/// Reads every table of the run in `dir` to its end.
#[pyfunction]
pub fn decode_tables(py: Python<'_>, dir: PathBuf) -> PyResult<()> {
    let tables = folder::WRITTEN_FILES.iter().map(|name| dir.join(name));
    let tables =
        tables.filter(|path| path.extension().is_some_and(|kind| kind == "parquet") && path.exists());
    py.detach(|| tables.into_iter().try_for_each(|path| parquet_read::decode(&path))).map_err(of_results)
}

/// Writes digests.json for the files of the run in `dir`, without waiting for the disk.
#[pyfunction]
pub fn write_digests(py: Python<'_>, dir: PathBuf) -> PyResult<()> {
    py.detach(|| file_digests::write(&dir, false)).map_err(of_results)
}

/// Adds a file to the digests.json of its folder, which `begin` creates if it does not exist.
#[pyfunction]
#[pyo3(signature = (path, begin=false))]
pub fn cover_file(py: Python<'_>, path: PathBuf, begin: bool) -> PyResult<()> {
    py.detach(|| file_digests::cover(&path, begin, durable::by_default())).map_err(of_results)
}

/// Waits until the disk has the files in `dir`.
#[pyfunction]
pub fn sync_files(py: Python<'_>, dir: PathBuf) -> PyResult<()> {
    if !durable::by_default() {
        return Ok(());
    }
    py.detach(|| file_digests::sync_files(&dir)).map_err(of_results)
}

/// For each of the folders `names` in `dir` a stamp that changes when a file in it is touched; None where it cannot be determined.
#[pyfunction]
pub fn stamps(py: Python<'_>, dir: PathBuf, names: Vec<String>) -> Vec<Option<String>> {
    py.detach(|| names.iter().map(|name| file_digests::stamp(&dir.join(name)).map(seal::hex)).collect())
}

/// The digest of some bytes: XXH3, 128 bits, in hexadecimal.
#[pyfunction]
pub fn digest(data: &[u8]) -> String {
    seal::hex(seal::digest(data))
}

/// A text that is an object of JSON, with its own digest as its last member.
#[pyfunction]
pub fn sealed(text: &str) -> String {
    seal::sealed(text)
}

/// Whether a text is as it was sealed; None if it bears no seal, as what earlier versions wrote.
#[pyfunction]
pub fn seal_is_whole(data: &[u8]) -> Option<bool> {
    match seal::seal_of(data) {
        Seal::Whole => Some(true),
        Seal::Broken => Some(false),
        Seal::Absent => None,
    }
}
