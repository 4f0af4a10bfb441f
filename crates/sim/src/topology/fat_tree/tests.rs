use super::super::NodeKind;
use super::*;

#[test]
fn all_switches_have_k_ports() {
    for k in [2, 4, 8] {
        let t = FatTree { k, ..FatTree::default() }.build().unwrap();
        assert_eq!(t.hosts().len() as u64, k * k * k / 4);
        assert_eq!(t.switches().len() as u64, 5 * k * k / 4);
        for (node, ports) in t.ports().iter().enumerate() {
            let expected = if t.nodes[node].kind == NodeKind::Host { 1 } else { k as usize };
            assert_eq!(ports.len(), expected, "{}", t.nodes[node].name);
        }
    }
}

#[test]
fn odd_and_absurd_k_are_refused_with_the_limit() {
    let error = |k| FatTree { k, ..FatTree::default() }.build().unwrap_err().to_string();
    assert_eq!(error(7), "k: expected an even number of ports, at least 2, found 7: did you mean 8?");
    assert!(error(0).contains("at least 2, found 0"));
    assert!(error(u64::MAX - 1).starts_with("k: expected at most 1000000"));
    let large = error(1000);
    assert!(large.starts_with("k: 251250000 nodes are more than the limit of 16777215"), "{large}");
    assert!(large.ends_with("a run would take about 1400GB for the network alone"), "{large}");
    assert!(FatTree { k: 156, hosts_per_tor: 900_000, ..FatTree::default() }.build().is_err());
}
