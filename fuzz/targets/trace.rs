//! Traces as text from arbitrary bytes: the first one chooses CSV or the HPCC flow file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_sim::workload::Trace;
use weftline_sim::workload::trace::HostOf;

/// Hosts 0 to 63, and 1000 by a label of its own.
fn host(label: u32) -> Option<u32> {
    match label {
        0..64 => Some(label),
        1000 => Some(64),
        _ => None,
    }
}

fn named(name: &str) -> Result<u32, String> {
    let host = name.strip_prefix("host").and_then(|number| number.parse().ok()).and_then(host);
    host.ok_or_else(|| format!("unknown host {name}"))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&format, rest)) = bytes.split_first() else { return };
    let read = if format == b'h' { Trace::from_hpcc } else { Trace::from_csv };
    let hosts = HostOf { by_id: &host, by_name: &named };
    let Ok(trace) = read(rest, "fuzz", hosts) else { return };
    assert!(!trace.is_empty() && trace.flows().all(|flow| flow.size > 0 && flow.src != flow.dst));
});
