//! Which names groups of flows may have.

use super::*;

#[test]
fn a_group_may_not_have_the_name_that_a_flow_has_in_series() {
    let named = |name: &str| problems(&format!("[[workload]]\nkind = \"incast\"\ngroup = \"{name}\"\n"));
    let found = named("flow12");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("s.toml:8: workload.1.group: \"flow12\" is the name of a flow"),
        "{found:?}"
    );
    for name in ["flow", "flows", "flow 3", "flow3b", "my-flow3"] {
        assert_eq!(named(name), [""; 0]);
    }
    let row = "{ src = 0, dst = 1, size = \"1KB\", group = \"flow3\" }";
    let found = problems(&format!("[[workload]]\nkind = \"flows\"\nflows = [{row}]\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("group: \"flow3\" is the name of a flow"), "{found:?}");
}

#[test]
fn texts_and_keys_with_control_characters_are_refused_and_not_printed_as_they_are() {
    let group = "[[workload]]\nkind = \"incast\"\ngroup = \"a\\u001b[31mb\"\n";
    let expected = "expected text in one line without control characters, found";
    assert_eq!(problems(group), [format!("s.toml:8: workload.1.group: {expected} \"a\\u{{1b}}[31mb\"")]);
    let nested =
        "[[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1KB\", group = \"a\\nb\" }]\n";
    assert_eq!(problems(nested), [format!("s.toml:8: workload.1.flows.0.group: {expected} \"a\\nb\"")]);
    let key = "[measure]\n\"a\\u0007\" = true\n";
    assert_eq!(problems(key), [format!("s.toml:7: {expected} \"a\\u{{7}}\"")]);
    let found = problems_set(&[("workload.0.group", "a\u{1b}b")]);
    assert_eq!(found, [format!("--set workload.0.group=a\\u{{1b}}b: {expected} \"a\\u{{1b}}b\"")]);
    assert_eq!(problems("[[workload]]\nkind = \"incast\"\ngroup = \"Zürich ☃\"\n"), [""; 0]);
}
