//! Copies the experiments to where maturin takes them from into a wheel: they live at the root of the repository, and the package that
//! is installed has a copy of its own (`include` in pyproject.toml).

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Both as they are now, not when this was built: a checkout may move.
    let folder = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let from = Path::new(&folder("CARGO_MANIFEST_DIR")).join("../../experiments");
    let to = Path::new(&folder("OUT_DIR")).join("experiments");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", from.display());
    match fs::remove_dir_all(&to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => copy(&from, &to),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            // Results of runs, which are not part of an experiment.
            true if entry.file_name() == "results" => {}
            true => copy(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
