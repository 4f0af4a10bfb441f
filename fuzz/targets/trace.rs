//! Traces as text from arbitrary bytes: the first one chooses CSV or the HPCC flow file. What reads as CSV must be
//! the same after it was written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_sim::workload::Trace;

/// Hosts 0 to 63, and 1000 by a label of its own.
fn host(label: u32) -> Option<u32> {
    match label {
        0..64 => Some(label),
        1000 => Some(64),
        _ => None,
    }
}

fn label(host: u32) -> u32 {
    if host == 64 { 1000 } else { host }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&format, rest)) = bytes.split_first() else { return };
    let read = if format == b'h' { Trace::from_hpcc } else { Trace::from_csv };
    let Ok(trace) = read(rest, "fuzz", &host) else { return };
    assert!(!trace.is_empty() && trace.flows().all(|flow| flow.size > 0 && flow.src != flow.dst));
    let text = trace.to_csv(&label);
    let again = Trace::from_csv(text.as_bytes(), "again", &host).expect("what was written can be read");
    assert!(again.flows().eq(trace.flows()), "{text}");
});
