use super::super::leaf_spine::LeafSpine;
use super::*;
use crate::topology::TopologyParameters;

fn fabric() -> Topology {
    LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, ..LeafSpine::default() }.build().unwrap()
}

#[test]
fn stars_and_question_marks_stand_for_characters() {
    for (pattern, name) in
        [("leaf0", "leaf0"), ("leaf*", "leaf10"), ("*", ""), ("l?af*0", "leaf10"), ("*f*", "leaf1")]
    {
        assert!(fits(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [("leaf", "leaf0"), ("leaf?", "leaf10"), ("?", ""), ("*x", "leaf"), ("", "a")] {
        assert!(!fits(pattern, name), "{pattern} {name}");
    }
}

#[test]
fn ports_are_found_by_number_by_neighbour_and_by_node() {
    let t = fabric();
    // Nodes: host0..3, leaf0 = 4, leaf1 = 5, spine0 = 6, spine1 = 7.
    assert_eq!(t.ports_matching("leaf0.*").unwrap(), [(4, 0), (4, 1), (4, 2), (4, 3)]);
    assert_eq!(t.ports_matching("leaf0").unwrap(), t.ports_matching("leaf0.*").unwrap());
    assert_eq!(t.ports_matching("leaf?.p2").unwrap(), [(4, 2), (5, 2)]);
    assert_eq!(t.ports_matching("leaf*->spine1").unwrap(), [(4, 3), (5, 3)]);
    assert_eq!(t.port_name(4, 3), "leaf0.p3");
    assert_eq!(t.direction_name(t.ports()[4][3].0, 4), "leaf0->spine1");
}

#[test]
fn a_pattern_that_fits_nothing_says_what_there_is() {
    let t = fabric();
    assert_eq!(t.ports_matching("lef0.*").unwrap_err(), "unknown node \"lef0\": did you mean \"leaf0\"?");
    assert_eq!(
        t.ports_matching("banana").unwrap_err(),
        "unknown node \"banana\" (there are 8 nodes, such as host0, leaf0, spine0)"
    );
    assert_eq!(
        t.ports_matching("leaf0.p9").unwrap_err(),
        "no port matches \"leaf0.p9\": expected a name such as \"leaf0.p0\" (4 ports, p0 to p3)"
    );
    assert!(t.ports_matching("leaf0->leaf1").unwrap_err().contains("there is no link between"));
}

#[test]
fn equal_patterns_are_looked_up_once() {
    let t = fabric();
    let mut patterns = PortPatterns::of(&t);
    let (first, again) = (patterns.matching("leaf*").unwrap(), patterns.matching("leaf*").unwrap());
    assert!(Rc::ptr_eq(&first, &again));
    assert_eq!(*first, t.ports_matching("leaf*").unwrap());
    for name in ["host3", "spine1", "spine2"] {
        assert_eq!(patterns.find_node(name), t.find_node(name));
    }
}
