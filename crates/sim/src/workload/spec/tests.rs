use super::*;
use crate::parameters::{Nothing, Value};
use crate::workload::KINDS;
use crate::workload::tests::{Given, complaints, drain, text, with_hosts};

/// Keys of a valid workload of each kind.
fn examples() -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    let count = ("count", Value::Integer(50));
    let flow = [("src", Value::Integer(0)), ("dst", Value::Integer(1)), ("size", text("1KB"))];
    let flow = Value::Table(flow.map(|(key, value)| (key.to_string(), value)).to_vec());
    vec![
        ("poisson", vec![count.clone(), ("sizes", text("imc10"))]),
        ("poisson", vec![count.clone(), ("size", text("20KB")), ("destinations", text("inter-rack"))]),
        ("permutation", vec![("repeat", Value::Integer(3))]),
        ("permutation", vec![("sizes", text("websearch"))]),
        ("all-to-all", vec![("stagger", text("1us"))]),
        ("incast", vec![("arrivals", text("poisson")), ("senders", Value::Integer(5)), count]),
        ("bulk", vec![("hosts", text("0-3")), ("to", text("4-7")), ("jitter", text("1us"))]),
        ("closed-loop", vec![("requests", Value::Integer(4))]),
        ("request-response", vec![("duration", text("100us"))]),
        ("collective", vec![("operation", text("tree-all-reduce")), ("repeat", Value::Integer(2))]),
        ("flows", vec![("flows", Value::List(vec![flow]))]),
    ]
}

#[test]
fn every_kind_declares_its_keys_without_values() {
    for (kind, _) in KINDS {
        let mut nothing = Nothing::default();
        assert!(WorkloadSpec::read(kind, &mut Parameters::new(&mut nothing)).is_some(), "{kind}");
        let mut keys: Vec<_> = nothing.declared.iter().map(|declared| declared.key).collect();
        assert!(["group", "start", "duration"].iter().all(|key| keys.contains(key)), "{kind}");
        keys.sort();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{kind} declares a key twice: {keys:?}");
        assert!(nothing.declared.iter().all(|declared| declared.help.ends_with('.')), "{kind}");
    }
    assert!(WorkloadSpec::read("posson", &mut Parameters::new(&mut Nothing::default())).is_none());
}

#[test]
fn what_was_resolved_reads_back_as_it_was() {
    for (kind, values) in examples() {
        let mut given = Given { values, ..Given::default() };
        let spec = WorkloadSpec::read(kind, &mut Parameters::new(&mut given));
        let mut again = Given { values: given.resolved, ..Given::default() };
        assert_eq!(WorkloadSpec::read(kind, &mut Parameters::new(&mut again)), spec, "{kind}");
        assert_eq!((given.complaints, again.complaints), (vec![], vec![]), "{kind}");
    }
}

#[test]
fn every_source_keeps_its_promises_and_its_clones_repeat_it() {
    for (kind, values) in examples() {
        let mut given = Given { values, ..Given::default() };
        let spec = WorkloadSpec::read(kind, &mut Parameters::new(&mut given)).expect("a known kind");
        let spec = WorkloadSpec { start: Time::from_us(3), ..spec };
        let (first, again, later) = with_hosts(16, |cx| {
            let cx = WorkloadContext { group: 2, transport: 1, ..*cx };
            let mut source = spec.source(&cx).expect("a workload that can be made");
            let all = drain(&*source);
            let copy = drain(&*source);
            source.next();
            let rest: Vec<FlowSpec> = std::iter::from_fn(|| source.next()).collect();
            (all, copy, rest)
        });
        assert_eq!(first, again, "{kind}");
        assert_eq!(first[1..], later, "{kind}");
        assert!(first.iter().all(|f| f.start >= Time::from_us(3) && f.group == 2 && f.transport == 1));
    }
}

#[test]
fn values_that_make_no_sense_are_complained_about() {
    let one = |kind, key, value| complaints(kind, &[(key, value)]).remove(0);
    assert_eq!(
        one("poisson", "load", Value::Number(1.5)),
        "load: expected a number from 0.000001 to 1, found 1.5"
    );
    assert_eq!(one("poisson", "size", text("0B")), "size: a flow needs at least one byte");
    assert_eq!(one("poisson", "capacity", text("0bps")), "capacity: must be greater than 0");
    assert_eq!(one("poisson", "duration", text("0s")), "duration: must be greater than 0");
    assert!(one("collective", "duration", text("1s")).contains("ends after its requests or repeats"));
    assert_eq!(
        one("closed-loop", "request_size", text("0B")),
        "request_size: a flow needs at least one byte"
    );
    assert!(one("incast", "arrivals", text("poison")).contains("did you mean \"poisson\""));
}
