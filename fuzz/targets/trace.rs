//! Traces as text from arbitrary bytes: the first one chooses CSV, the HPCC flow file or htsim's connection matrix.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_sim::units::Time;
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
    let hosts = HostOf { by_id: &host, by_name: &named };
    let read = match format {
        b'h' => Trace::from_hpcc(rest, "fuzz", hosts),
        b'm' => Trace::from_htsim(rest, "fuzz", hosts, Time::from_us(1), Time::from_us(1)),
        _ => Trace::from_csv(rest, "fuzz", hosts),
    };
    let Ok(trace) = read else { return };
    assert!(!trace.is_empty() && trace.flows().all(|flow| flow.size > 0 && flow.src != flow.dst));
});
