use super::*;

#[test]
fn oversubscription_sets_the_rate_of_the_fabric() {
    // 16 hosts at 100G over 2 spines: 800G each without oversubscription, 200G at 4:1.
    for (ratio, gbps) in [(1.0, 800), (4.0, 200)] {
        let t = LeafSpine { oversubscription: ratio, ..LeafSpine::default() }.build().unwrap();
        assert_eq!(t.links[64].rate, Rate::from_gbps(gbps));
        assert_eq!((t.nodes.len(), t.links.len()), (64 + 4 + 2, 64 + 8));
    }
    assert_eq!(LeafSpine::default().build().unwrap().links[64].rate, Rate::from_gbps(400));
}

#[test]
fn extra_hosts_hang_on_the_first_leaf_with_the_last_numbers() {
    let spec = LeafSpine { leaves: 2, hosts_per_leaf: 3, extra_hosts: 2, ..LeafSpine::default() };
    let t = spec.build().unwrap();
    assert_eq!((t.hosts().len(), t.ordinary_hosts()), (8, 6));
    let leaf_of = |host: u32| t.nodes[t.ports()[host as usize][0].1 as usize].name.clone();
    assert_eq!([0, 2, 3, 5, 6, 7].map(leaf_of), ["leaf0", "leaf0", "leaf1", "leaf1", "leaf0", "leaf0"]);
    let many = LeafSpine { extra_hosts: 5000, ..LeafSpine::default() }.build().unwrap_err().to_string();
    assert_eq!(many, "extra_hosts: expected at most 1000, found 5000");
}

#[test]
fn oversubscription_and_a_rate_of_the_fabric_conflict() {
    let both =
        LeafSpine { oversubscription: 2.0, fabric_rate: Some(Rate::from_gbps(40)), ..LeafSpine::default() };
    let error = both.build().unwrap_err().to_string();
    assert_eq!(error, "oversubscription: conflicts with fabric_link.rate = \"40Gbps\": give one of the two");
}
