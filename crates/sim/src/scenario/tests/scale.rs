//! `[scale]`: what is slowed down, what stays, and what cannot be scaled.

use super::*;

const BASE: &str = "[topology]\nkind = \"dumbbell\"\nbottleneck_link = { rate = \"20Gbps\", delay = \"10us\" }\n\
                    [transport]\nkind = \"tcp\"\nrto_min = \"1ms\"\n\
                    [[workload]]\nkind = \"poisson\"\nload = 0.5\nduration = \"1ms\"\n\
                    [measure]\nqueues = { every = \"10us\" }\n";

fn message(sets: &[(&str, &str)]) -> String {
    load_with(BASE, sets).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn rates_and_times_are_scaled_and_sizes_and_defaults_of_the_transport_stay() {
    let plain = load(BASE);
    let slow = load_with(BASE, &[("scale.by", "500")]).unwrap();
    let text = slow.resolved();
    for expected in [
        "[scale]\napplied = 500",
        "bottleneck_link = { rate = \"40Mbps\", delay = \"5ms\" }",
        "host_link = { rate = \"200Mbps\", delay = \"500us\" }",
        "duration = \"500ms\"",
        "rto_min = \"500ms\"",
        "rto_max = \"120s\"",
        "ack_delay = \"40ms\"",
        "every = \"5ms\"",
        "buffer = \"32MiB\"",
        "load = 0.5",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(!plain.resolved().contains("scale"));
}

#[test]
fn the_resolved_text_is_not_scaled_again() {
    let slow = load_with(BASE, &[("scale.by", "500")]).unwrap();
    assert_eq!(load(slow.resolved()).resolved(), slow.resolved());
    let twice = load_with(slow.resolved(), &[("scale.by", "2")]).unwrap();
    assert!(twice.resolved().contains("applied = 1000"), "{}", twice.resolved());
    assert!(twice.resolved().contains("rate = \"20Mbps\", delay = \"10ms\""), "{}", twice.resolved());
}

#[test]
fn a_factor_of_one_is_the_scenario_itself() {
    assert_eq!(load_with(BASE, &[("scale.by", "1")]).unwrap().resolved(), load(BASE).resolved());
}

#[test]
fn what_cannot_be_scaled_is_named() {
    for (sets, expected) in [
        (vec![("scale.by", "auto")], "\"auto\" is measured by `weftline lab`"),
        (vec![("scale.by", "0")], "expected a whole number from 1"),
        (vec![("scale.by", "1.5")], "expected a whole number from 1"),
        (vec![("scale.buy", "5")], "did you mean \"by\""),
        (vec![("scale.by", "1000"), ("topology.bottleneck_link.rate", "500bps")], "is less than 1 bps"),
        (vec![("scale.by", "1000000"), ("workload.0.duration", "10000s")], "is too long"),
        (vec![("scale.by", "1000"), ("topology.bottleneck_link.delay", "100ms")], "expected at most"),
    ] {
        let found = message(&sets);
        assert!(found.contains(expected), "{sets:?}: {found}");
    }
}

#[test]
fn every_link_of_every_topology_is_slower_by_the_factor_whether_its_rate_is_given_or_not() {
    let links = |scenario: &Scenario| scenario.network.topology.links.clone();
    for doc in crate::topology::DOCS.iter().filter(|doc| doc.name != "file") {
        for by in [2u64, 10, 1000] {
            // Rails that nothing joins carry traffic between GPUs of one place in their nodes.
            let to = if doc.name == "rail-only" { 8 } else { 1 };
            let base = format!(
                "[topology]\nkind = \"{}\"\n[transport]\nkind = \"tcp\"\n[[workload]]\nkind = \"flows\"\n\
                 flows = [{{ src = 0, dst = {to}, size = \"1KB\" }}]\n",
                doc.name
            );
            let (plain, slow) = (load(&base), load_with(&base, &[("scale.by", &by.to_string())]).unwrap());
            for (one, other) in links(&plain).iter().zip(links(&slow)) {
                let expected = (one.a, one.b, Rate(one.rate.0 / by), Time(one.delay.0 * by));
                assert_eq!((other.a, other.b, other.rate, other.delay), expected, "{} by {by}", doc.name);
            }
            assert_eq!(links(&plain).len(), links(&slow).len());
        }
    }
}

#[test]
fn a_default_rate_of_fabric_links_is_scaled_and_one_by_oversubscription_follows_the_hosts() {
    let text = "[topology]\nkind = \"leaf-spine\"\n[[workload]]\nkind = \"permutation\"\n";
    let fabric = |sets: &[(&str, &str)]| {
        let scenario = load_with(text, sets).unwrap();
        assert_eq!(load(scenario.resolved()).resolved(), scenario.resolved());
        scenario.network.topology.links.last().unwrap().rate
    };
    assert_eq!(fabric(&[("scale.by", "10")]), Rate::from_gbps(40));
    let ratio = [("topology.oversubscription", "2.0"), ("scale.by", "10")];
    assert_eq!(fabric(&ratio[..1]), Rate::from_gbps(400));
    assert_eq!(fabric(&ratio), Rate::from_gbps(40));
    assert_eq!(fabric(&[("topology.fabric_link.rate", "25Gbps"), ("scale.by", "10")]), Rate::from_mbps(2500));
}

#[test]
fn computations_of_training_take_longer() {
    let training = "{ kind = \"training\", layers = 2, hidden = 64, sequence = 64, teraflops = 300 }";
    let slow = load_with(BASE, &[("workload.0", training), ("scale.by", "10")]).unwrap();
    assert!(slow.resolved().contains("teraflops = 30.0"), "{}", slow.resolved());
}

#[test]
fn gains_in_hertz_are_divided() {
    let sets = [("switch.queue", "{ kind = \"dualpi2\", alpha = 0.2 }"), ("scale.by", "500")];
    let slow = load_with(BASE, &sets).unwrap();
    for line in ["alpha = \"0.0004Hz\"", "beta = \"0.006Hz\"", "target = \"7.5s\"", "coupling = 2.0"] {
        assert!(slow.resolved().contains(line), "{line} in {}", slow.resolved());
    }
    assert_eq!(load(slow.resolved()).resolved(), slow.resolved());
}

#[test]
fn nccl_chooses_for_the_network_that_the_scaled_one_stands_for() {
    let text = "[topology]\nkind = \"star\"\nhosts = 8\n[transport]\ncontroller = { kind = \"none\" }\n\
                [[workload]]\nkind = \"collective\"\noperation = \"all-reduce\"\n\
                algorithm = \"nccl\"\nbytes = \"4KB\"\n";
    let choice = |text: &str, sets: &[(&str, &str)]| {
        let scenario = load_with(text, sets).unwrap();
        let found = scenario.warnings.iter().find(|warning| warning.contains("NCCL takes")).cloned();
        (found.expect("a choice"), scenario.resolved().to_string())
    };
    let (plain, _) = choice(text, &[]);
    assert!(plain.contains("double tree, LL for"), "{plain}");
    for by in ["4", "1000"] {
        let (slow, resolved) = choice(text, &[("scale.by", by)]);
        assert_eq!(slow, plain);
        assert_eq!(choice(&resolved, &[]).0, plain);
    }
}
