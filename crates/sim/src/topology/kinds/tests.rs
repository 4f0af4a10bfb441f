use crate::topology::TopologyParameters;
use crate::topology::leaf_spine::LeafSpine;

#[test]
fn links_are_distinguished_by_what_they_join() {
    let topology =
        LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 2, ..LeafSpine::default() }.build().unwrap();
    let (kinds, links) = topology.link_kinds();
    let of = |node: &str| {
        let place = topology.nodes.iter().position(|n| n.name == node).unwrap();
        links[place].iter().map(|&kind| kinds[usize::from(kind)].as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("host3"), ["host -> leaf"]);
    assert_eq!(of("leaf1"), ["leaf -> host", "leaf -> host", "leaf -> spine"]);
    assert_eq!(of("spine0"), ["spine -> leaf", "spine -> leaf"]);
}

#[test]
fn switches_with_names_of_their_own_are_switches() {
    let mut topology =
        LeafSpine { leaves: 12, spines: 1, hosts_per_leaf: 1, ..LeafSpine::default() }.build().unwrap();
    let towns =
        "Aachen Bonn Celle Dresden Essen Fulda Goslar Halle Ilmenau Jena Kassel Leipzig Mainz".split(' ');
    for (node, town) in topology.nodes[12..].iter_mut().zip(towns) {
        node.name = town.into();
    }
    assert_eq!(topology.link_kinds().0, ["host -> switch", "switch -> host", "switch -> switch"]);
}
