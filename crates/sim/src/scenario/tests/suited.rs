//! Parts of a scenario that are right by themselves and do not suit its network or each other: warnings.

use super::*;

/// The warnings of a scenario that begin with these words.
fn warned(text: &str, sets: &[(&str, &str)], start: &str) -> Vec<String> {
    let scenario = load_with(text, sets).unwrap_or_else(|error| panic!("{error}"));
    scenario.warnings.into_iter().filter(|warning| warning.starts_with(start)).collect()
}

#[test]
fn repairs_of_what_is_not_down_and_losses_that_nothing_repeats_deserve_a_look() {
    let failing = |events: &str, transport: &str| {
        let event = |event: &str| format!("[[failures.event]]\nlink = [\"host0\", \"s0\"]\n{event}\n");
        let events: String = events.split(';').map(event).collect();
        format!("{STAR}[transport]\n{transport}\n{events}")
    };
    let idle = |events: &str| warned(&failing(events, ""), &[], "failures.event: change = \"up\"").len();
    assert_eq!(idle("at = \"1ms\";at = \"2ms\"\nchange = \"up\""), 0);
    assert_eq!(idle("at = \"2ms\";at = \"2ms\"\nchange = \"up\""), 1);
    assert_eq!(idle("at = \"1ms\"\nlasts = \"1ms\";at = \"3ms\"\nchange = \"up\""), 1);
    let lost =
        |transport: &str| warned(&failing("at = \"1ms\"", transport), &[], "transport.rto = \"none\"").len();
    assert_eq!((lost("rto = \"none\""), lost("")), (1, 0));
}

#[test]
fn balancers_that_do_not_suit_a_network_or_its_packets_deserve_a_look() {
    let net = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n\
               fabric_link = { rate = \"10Gbps\", delay = \"1us\" }\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n\
               [transport]\nkind = \"tcp\"\n[switch]\npfc = { enabled = false }\n";
    let probes = |every: &str| {
        let balancer = format!("{{ kind = \"hula\", probe_interval = \"{every}\" }}");
        warned(net, &[("switch.balancer", &balancer)], "switch.balancer.probe_interval")
    };
    // Probes of three other racks, 64 B each: 154 ns of a link of 10 Gb/s.
    assert_eq!(probes("10us"), [""; 0]);
    assert!(probes("1us")[0].contains("take up to 15 % of a link of 10Gbps"), "{:?}", probes("1us"));
    assert!(
        probes("150ns")[0].contains("more than a link of 10Gbps can carry (102 %)"),
        "{:?}",
        probes("150ns")
    );
    let clos = |bundle: &str| {
        let text = "[topology]\nkind = \"clos\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        let sets = [
            ("topology.leaves", "4"),
            ("topology.hosts_per_leaf", "4"),
            ("topology.uplinks", "4"),
            ("topology.bundle", bundle),
            ("switch.balancer", "{ kind = \"destination\" }"),
        ];
        warned(text, &sets, "switch.balancer: spine").len()
    };
    assert_eq!((clos("1"), clos("2")), (0, 1));
    let by_flow = |spray: &str| {
        let sets = [
            ("transport.kind", "ndp"),
            ("transport.spray", spray),
            ("switch.balancer", "{ kind = \"ecmp\" }"),
        ];
        warned(net, &sets, "switch.balancer: it balances by flow").len()
    };
    assert_eq!((by_flow("true"), by_flow("false")), (1, 0));
}
