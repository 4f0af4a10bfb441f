use super::*;
use crate::parameters::Value;
use crate::workload::tests::{drain, play, source, source_error, text};

#[test]
fn a_request_waits_for_the_answer_before_it_on_its_connection() {
    // Two hosts, one connection: responses of 5 KB at 1 GB/s over a network with 4 us for any flow.
    let keys = [
        ("connections", Value::Integer(1)),
        ("size", text("5KB")),
        ("load", Value::Number(0.08)),
        ("duration", text("100us")),
    ];
    let source = source("request-response", 2, &keys);
    let flows = drain(&*source);
    assert!(flows.len() >= 20 && flows.len() % 2 == 0, "{}", flows.len());
    assert!(flows.iter().step_by(2).all(|f| (f.src, f.dst, f.size) == (0, 1, 100)));
    assert!(flows.iter().skip(1).step_by(2).all(|f| (f.src, f.dst, f.size) == (1, 0, 5000)));
    assert_eq!(source.dependencies().len(), flows.len() - 1);
    // Each takes 4 us, and none begins before the previous one has ended.
    let times = play(&*source, Time::from_us(4));
    for pair in times.windows(2) {
        assert!(pair[1].0 >= pair[0].1, "{pair:?}");
    }
    assert!(times.iter().zip(&flows).all(|(time, flow)| time.0 >= flow.start));
}

#[test]
fn responses_make_up_the_load_of_the_servers() {
    let keys = [
        ("size", text("10KB")),
        ("load", Value::Number(0.5)),
        ("capacity", text("400Gbps")),
        ("duration", text("10ms")),
    ];
    let flows = drain(&*source("request-response", 16, &keys));
    let bytes: u64 = flows.iter().filter(|f| f.src >= 8).map(|f| f.size).sum();
    // Half of 400 Gb/s for 10 ms: 250 MB.
    assert!((bytes as f64 / 250e6 - 1.0).abs() < 0.02, "{bytes}");
    assert!(flows.iter().filter(|f| f.src < 8).all(|f| f.dst >= 8 && f.size == 100));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let both = [("clients", text("0-3")), ("servers", text("3-5")), ("duration", text("1ms"))];
    assert_eq!(source_error("request-response", 8, &both).to_string(), "host 3 is a client, too");
    let endless = source_error("request-response", 8, &[]).to_string();
    assert_eq!(endless, "give a duration such as \"2ms\"");
}
