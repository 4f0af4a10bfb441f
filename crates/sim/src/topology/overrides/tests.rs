use super::super::leaf_spine::LeafSpine;
use super::*;
use crate::topology::TopologyParameters;

fn change(a: &str, b: &str, rate: Option<Rate>, delay: Option<Time>) -> LinkOverride {
    LinkOverride { between: (a.into(), b.into()), rate, delay }
}

#[test]
fn overrides_reach_links_in_either_direction_and_nothing_else() {
    let before = LeafSpine { leaves: 2, spines: 2, ..LeafSpine::default() }.build().unwrap();
    let mut after = before.clone();
    let slow = Rate::from_gbps(10);
    apply_overrides(&mut after, &[change("spine1", "leaf*", Some(slow), None)]).unwrap();
    let spine1 = before.find_node("spine1").unwrap();
    for (old, new) in before.links.iter().zip(&after.links) {
        let rate = if old.b == spine1 { slow } else { old.rate };
        assert_eq!(*new, super::super::Link { rate, ..old.clone() });
    }
}

#[test]
fn an_override_that_fits_nothing_is_an_error() {
    let mut t = LeafSpine { leaves: 2, spines: 2, ..LeafSpine::default() }.build().unwrap();
    let rate = Some(Rate::from_gbps(10));
    let mut error = |o: LinkOverride| apply_overrides(&mut t, &[o]).unwrap_err();
    assert!(error(change("leaf0", "spin1", rate, None)).contains("did you mean \"spine1\"?"));
    assert!(error(change("leaf0", "leaf1", rate, None)).contains("leaf0 is linked to host0, not to leaf1"));
    assert!(error(change("leaf0", "spine1", None, None)).contains("expected a rate, a delay, or both"));
    assert!(error(change("leaf0", "spine1", Some(Rate(0)), None)).contains("greater than 0"));
}
