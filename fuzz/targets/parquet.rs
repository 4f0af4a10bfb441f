//! Traces in Parquet from arbitrary bytes, through a file as in the product, which turns panics of the decoder into errors.

#![no_main]

use std::cell::RefCell;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use weftline_results::trace;
use weftline_sim::workload::Trace;
use weftline_sim::workload::trace::HostOf;

thread_local! {
    static FILE: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

fuzz_target!(|bytes: &[u8]| {
    let path = FILE.with_borrow_mut(|file| file.get_or_insert_with(scratch_file).clone());
    std::fs::write(&path, bytes).expect("the scratch file can be written");
    let Ok((rows, _)) = trace::read(&path) else { return };
    let hosts = HostOf {
        by_id: &|label| (label < 64).then_some(label),
        by_name: &|name| {
            name.strip_prefix("host").and_then(|number| number.parse().ok()).ok_or_else(String::new)
        },
    };
    let _ = Trace::from_rows(rows, "fuzz", hosts);
});

/// In memory where the system has a place for that.
fn scratch_file() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("weftline-fuzz-{}.parquet", std::process::id()))
}
