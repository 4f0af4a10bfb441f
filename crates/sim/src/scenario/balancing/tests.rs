//! Tests of `balancing`.

use super::super::{Hooks, Scenario};
use std::path::Path;

/// What is wrong with a scenario on this topology with this balancer.
fn problem(topology: &str, balancer: &str) -> String {
    let text = format!(
        "[topology]\n{topology}\n[switch]\nbalancer = {{ {balancer} }}\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    match Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

const LEAVES: &str = "kind = \"leaf-spine\"\nspines = 3";
const DUMBBELL: &str = "kind = \"dumbbell\"";

#[test]
fn settings_that_cannot_be_meant_are_refused() {
    for kind in ["letflow", "conga", "clove", "hula", "mp-hula"] {
        let wrong = problem(LEAVES, &format!("kind = \"{kind}\", gap = \"0s\""));
        assert!(wrong.contains("switch.balancer.gap: with 0s every packet would begin a flowlet"), "{wrong}");
    }
    let wrong = problem(LEAVES, "kind = \"mp-hula\", ranks = 4");
    assert!(
        wrong.contains(
            "switch.balancer.ranks: no switch has more than 3 next hops for a destination, found 4"
        ),
        "{wrong}"
    );
    assert_eq!(problem(LEAVES, "kind = \"mp-hula\", ranks = 3"), "");
    let wrong = problem(LEAVES, "kind = \"hula\", ranks = 3");
    assert!(wrong.contains("switch.balancer.ranks"), "hula has one: {wrong}");
    let wrong = problem(LEAVES, "kind = \"hula\", probe_interval = \"1ms\", failure_time = \"900us\"");
    assert!(wrong.contains("less than the probe interval, 1ms"), "{wrong}");
    let wrong = problem(LEAVES, "kind = \"letflo\"");
    assert!(wrong.contains("did you mean \"letflow\"?"), "{wrong}");
}

#[test]
fn balancers_are_refused_where_they_cannot_serve_and_the_reason_is_reported() {
    for (topology, serves_three) in [
        ("kind = \"fat-tree\"\nk = 4", true),
        ("kind = \"hpcc-fat-tree\"", true),
        (LEAVES, true),
        (DUMBBELL, false),
    ] {
        let wrong = problem(topology, "kind = \"hula\"");
        assert_eq!(wrong.is_empty(), serves_three, "{topology}: {wrong}");
        assert!(serves_three || wrong.contains("are in the same tier"), "{wrong}");
    }
    assert_eq!(problem(LEAVES, "kind = \"conga\""), "");
    let wrong = problem("kind = \"fat-tree\"\nk = 4", "kind = \"conga\"");
    assert!(wrong.contains("core0 is in a third tier: set three_tier = true"), "{wrong}");
    assert_eq!(problem("kind = \"fat-tree\"\nk = 4", "kind = \"conga\", three_tier = true"), "");
    let wrong = problem(DUMBBELL, "kind = \"conga\"");
    assert!(wrong.contains("are in the same tier"), "{wrong}");
    let wrong = problem("kind = \"leaf-spine\"\nspines = 17", "kind = \"conga\"");
    assert!(wrong.contains("17 uplinks; the tag of 4 bits"), "{wrong}");
}

#[test]
fn clove_is_refused_where_hosts_have_several_links() {
    let node = |name: &str, kind: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let link = |a: &str, b: &str| {
        format!("[[link]]\na = \"{a}\"\nb = \"{b}\"\nrate = \"100Gbps\"\ndelay = \"1us\"\n")
    };
    let nodes = [("h0", "host"), ("h1", "host"), ("a", "switch"), ("b", "switch")];
    let links = [("h0", "a"), ("h0", "b"), ("h1", "a"), ("a", "b")];
    let text = nodes.map(|(name, kind)| node(name, kind)).concat() + &links.map(|(a, b)| link(a, b)).concat();
    let path = std::env::temp_dir().join(format!("weftline-clove-{}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let wrong = problem(&format!("kind = \"file\"\nfile = \"{}\"", path.display()), "kind = \"clove\"");
    std::fs::remove_file(&path).unwrap();
    assert!(wrong.contains("\"clove\" is for hosts with one link, and h0 has 2"), "{wrong}");
}

#[test]
fn packets_are_put_in_order_only_for_transports_that_ask_for_bytes_in_order() {
    let text = "[topology]\nkind = \"leaf-spine\"\n[transport]\nkind = \"phost\"\n[host]\nresequencing = { enabled = \
                true }\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let load = |sets: &[(String, String)]| {
        let scenario = Scenario::load(text, "s.toml", Path::new("."), sets, None, Hooks::default());
        scenario.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(load(&[]).contains("phost accepts packets in any order"), "{}", load(&[]));
    assert_eq!(load(&[("transport.kind".into(), "tcp".into())]), "");
    let never = [("transport.kind".into(), "tcp".into()), ("host.resequencing.timeout".into(), "0s".into())];
    assert!(load(&never).contains("must be greater than 0"), "{}", load(&never));
}

#[test]
fn a_transport_that_labels_every_packet_is_warned_of() {
    let text = "[topology]\nkind = \"leaf-spine\"\n[switch]\nbalancer = { kind = \"letflow\" }\n[transport]\nkind = \
                \"phost\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let load = |sets: &[(String, String)]| {
        let scenario = Scenario::load(text, "s.toml", Path::new("."), sets, None, Hooks::default());
        scenario.map(|scenario| scenario.warnings).unwrap_or_else(|error| panic!("{error}"))
    };
    let found = load(&[]);
    assert!(found.iter().any(|w| w.contains("phost gives every packet its own label")), "{found:?}");
    assert_eq!(load(&[("transport.spray".into(), "false".into())]), Vec::<String>::new());
}

#[test]
fn networks_without_a_choice_need_no_reason() {
    for kind in ["hula", "mp-hula", "conga", "clove", "letflow", "drill", "presto"] {
        assert_eq!(problem("kind = \"star\"", &format!("kind = \"{kind}\"")), "");
    }
}
