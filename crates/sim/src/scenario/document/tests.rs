//! Tests of `document`.

use super::*;

fn at<'t>(table: &'t Table, path: &str) -> &'t Node {
    let mut segments = path.split('.');
    let mut node = &table.get(segments.next().unwrap()).unwrap().node;
    for segment in segments {
        node = match &node.data {
            Data::Table(table) => &table.get(segment).unwrap().node,
            Data::List(items) => &items[segment.parse::<usize>().unwrap()],
            Data::Scalar(value) => panic!("{value:?}"),
        };
    }
    node
}

#[test]
fn every_value_knows_its_line() {
    let text = "a = 1\n\n[b]\nc = \"x\"\n[[d]]\ne = [\n 1,\n 2.5]\n";
    let table = parse(text, "t.toml").unwrap();
    assert_eq!(at(&table, "a").origin, Origin::Line(1));
    assert_eq!(at(&table, "b.c").origin, Origin::Line(4));
    assert_eq!(at(&table, "d.0.e.1").origin, Origin::Line(8));
    assert_eq!(at(&table, "d.0.e.1").value(), Value::Number(2.5));
}

#[test]
fn a_syntax_error_names_its_line_and_what_was_expected() {
    let problems = parse("a = 1\nb = = 2\n", "t.toml").unwrap_err();
    let text = problems[0].to_string();
    assert!(text.starts_with("t.toml:2: ") && text.contains("expected"), "{text}");
    let problems = parse("a = 99999999999999999999\n", "t.toml").unwrap_err();
    assert_eq!(problems[0].to_string(), "t.toml:1: 99999999999999999999 does not fit in 64 bits");
}

#[test]
fn set_reaches_tables_lists_and_what_does_not_exist_yet() {
    let mut table = parse("[[workload]]\nload = 0.5\n", "t.toml").unwrap();
    set(&mut table, "workload.0.load", "0.7", "t.toml").unwrap();
    set(&mut table, "workload.1.kind", "incast", "t.toml").unwrap();
    set(&mut table, "transport.controller.kind", "dctcp", "t.toml").unwrap();
    set(&mut table, "run.until", "10us", "t.toml").unwrap();
    assert_eq!(at(&table, "workload.0.load").value(), Value::Number(0.7));
    assert_eq!(at(&table, "workload.1.kind").value(), Value::Text("incast".into()));
    assert_eq!(at(&table, "transport.controller.kind").value(), Value::Text("dctcp".into()));
    assert_eq!(at(&table, "run.until").value(), Value::Text("10us".into()));
}

#[test]
fn a_set_path_that_leads_nowhere_says_why() {
    let mut table = parse("name = \"n\"\n[[workload]]\nload = 0.5\n", "t.toml").unwrap();
    let mut message = |path: &str| set(&mut table, path, "1", "t.toml").unwrap_err().to_string();
    assert_eq!(message("name.x"), "--set name.x=1: name is \"n\", which has nothing named \"x\"");
    assert_eq!(
        message("workload.5.load"),
        "--set workload.5.load=1: workload has 1 entry: index 5 is past its end"
    );
    assert_eq!(
        message("workload.first.load"),
        "--set workload.first.load=1: workload is a list: expected an index from 0, found \"first\""
    );
    assert_eq!(
        message("a..b"),
        "--set a..b=1: expected a path such as transport.controller.kind, then = and a value"
    );
}
