use super::*;

fn scheme(name: &'static str) -> Scheme<fn(&mut Parameters) -> f64> {
    let doc = SchemeDoc { name, title: "t", ..SchemeDoc::NONE };
    Scheme { doc, read: |p| p.number("gain", 0.5, (0.0, 1.0), "h") }
}

#[test]
fn names_are_plain_and_free_in_every_room() {
    let check = |names: &[&'static str]| {
        let rooms = ["queues", "balancers"].into_iter().cycle();
        let schemes = rooms.zip(names.iter().map(|name| scheme(name).doc)).collect();
        let package = Package { name: "own 1".into(), schemes };
        package.check_names(&[&[("red", "r")], &[("hpcc", "h")]])
    };
    assert_eq!(check(&["blue", "green-2", "Own_3"]), Ok(()));
    for (names, message) in [
        (&["red"][..], "queue \"red\": another scheme has this name"),
        (&["hpcc"], "queue \"hpcc\": another scheme has this name"),
        (&["blue", "blue"], "balancer \"blue\": another scheme has this name"),
        (&["a b"], "expected a name of letters"),
        (&["a.b"], "expected a name of letters"),
        (&["\u{202e}a"], "expected a name of letters"),
        (&["a\n"], "expected a name of letters"),
        (&[""], "expected a name of letters"),
    ] {
        let error = check(names).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn schemes_are_added_once_before_they_are_read() {
    let own = [("red", "r")];
    let added = Added::none("queue");
    added.add(vec![scheme("blue")]).unwrap();
    assert_eq!(added.kinds(&own), [("red", "r"), ("blue", "t")]);
    assert!(added.add(vec![scheme("green")]).unwrap_err().contains("once"));
    let late: Added<fn(&mut Parameters) -> f64> = Added::none("queue");
    assert_eq!(late.kinds(&own), own);
    assert!(late.add(vec![scheme("blue")]).is_err());
}

#[test]
fn a_panic_of_a_scheme_becomes_an_error_that_names_it_and_other_panics_continue() {
    let found = caught(|| guarded("queue", "blue", || [0][std::hint::black_box(1)]));
    let text = found.unwrap_err().to_string();
    assert!(text.starts_with("queue \"blue\" panicked: index out of bounds"), "{text}");
    assert_eq!(caught(|| guarded("queue", "blue", || 7)), Ok(7));
    assert!(catch_unwind(|| caught(|| panic!("ours"))).is_err());
}
