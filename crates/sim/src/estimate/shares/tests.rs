//! Tests of what links can use.

use super::super::tests::checked;

/// The oversubscription of a network, the warning of its links, and the end of an all-to-all of 8 MB in nanoseconds.
fn found(topology: &str, balancer: &str) -> (f64, String, f64) {
    let facts = checked(&format!(
        "[topology]\n{topology}\n[switch]\nbalancer = {{ kind = \"{balancer}\" }}\n[[workload]]\nkind = \"collective\"\n\
         operation = \"all-to-all\"\nbytes = \"8MB\"\n"
    ));
    let warnings = facts["warnings"].as_array().into_iter().flatten().filter_map(|text| text.as_str());
    let warning = warnings.filter(|text| text.contains("can be used")).map(str::to_string).collect();
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    (number(&facts["topology"]["oversubscription"]), warning, number(&facts["estimate"]["end_ns"]))
}

fn faster(between: &[&str], rate: &str) -> String {
    let each =
        between.iter().map(|ends| format!("[[topology.override]]\nbetween = [{ends}]\nrate = \"{rate}\"\n"));
    each.collect()
}

#[test]
fn equal_shares_use_of_every_next_hop_what_the_slowest_carries() {
    let leaves = "kind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 8\nhost_link.rate = \"100Gbps\"\n\
                  fabric_link.rate = \"100Gbps\"\n";
    let before = found(leaves, "ecmp");
    assert_eq!((before.0, before.1.as_str()), (2.0, ""));
    let half = leaves.to_string() + &faster(&["\"leaf*\", \"spine0\"", "\"leaf*\", \"spine1\""], "400Gbps");
    for balancer in ["ecmp", "label", "spray"] {
        let (ratio, warning, end) = found(&half, balancer);
        assert!(ratio == 2.0 && (end / before.2 - 1.0).abs() < 0.01, "{balancer}: {ratio} {end}");
        assert!(warning.contains("links from leaf0 to other switches have 100Gbps and 400Gbps"), "{warning}");
        assert!(warning.contains("400Gbps of 1000Gbps can be used"), "{warning}");
    }
    let (ratio, warning, end) = found(&half, "conga");
    assert!((ratio, warning.as_str()) == (0.8, "") && end < 0.7 * before.2, "{ratio} {warning} {end}");
}

#[test]
fn a_ring_over_one_path_each_is_as_slow_as_the_slowest_next_hop() {
    let end = |balancer: &str, slow: &str| {
        let slow = faster(&["\"leaf*\", \"spine2\"", "\"leaf*\", \"spine3\""], slow);
        let facts = checked(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 4\nhosts_per_leaf = 2\nhost_link.rate = \"400Gbps\"\n\
             fabric_link.rate = \"400Gbps\"\n{slow}[switch]\nbalancer = {{ kind = \"{balancer}\" }}\n[[workload]]\n\
             kind = \"collective\"\noperation = \"all-reduce\"\nbytes = \"60MB\"\n"
        ));
        facts["estimate"]["end_ns"].as_f64().expect("a number")
    };
    let before = end("ecmp", "400Gbps");
    let slower = end("ecmp", "100Gbps") / before;
    assert!((3.8..4.1).contains(&slower), "{slower}");
    // Packets that are spread use all next hops: four times 100 Gb/s for one flow of 400.
    assert!((end("spray", "100Gbps") / before - 1.0).abs() < 0.05);
}

#[test]
fn a_pod_uses_its_links_as_its_switches_with_hosts_share_them_out() {
    let tree = "kind = \"fat-tree\"\nk = 4\nhost_link.rate = \"100Gbps\"\nfabric_link.rate = \"100Gbps\"\n";
    assert_eq!(found(tree, "ecmp").0, 1.0);
    // Two of four links of each pod, all those of one aggregation switch.
    let slow = tree.to_string() + &faster(&["\"agg*\", \"core0\"", "\"agg*\", \"core1\""], "25Gbps");
    let (ratio, warning, _) = found(&slow, "ecmp");
    assert_eq!(ratio, 4.0);
    assert!(warning.contains("from the pod of tor0 have 25Gbps and 100Gbps"), "{warning}");
    assert!(warning.contains("100Gbps of 250Gbps can be used"), "{warning}");
    assert_eq!(found(&slow, "adaptive").0, 1.6);
    // One of them: the other one of that switch has no more.
    let slow = tree.to_string() + &faster(&["\"agg*\", \"core0\""], "25Gbps");
    assert_eq!(found(&slow, "spray").0, 4.0);
}
