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
