//! Failures name what exists, and warnings name hosts that they cut off: those that workloads use.

use super::*;

#[test]
fn a_host_that_no_workload_uses_may_be_cut_off() {
    let found = |workload: &str, host: u32| -> usize {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 6\n[[workload]]\n{workload}\n[[failures.event]]\nat = \"1ms\"\n\
             link = [\"host{host}\", \"s0\"]\n"
        );
        load(&text).warnings.iter().filter(|text| text.contains("no path leads from")).count()
    };
    for workload in [
        "kind = \"permutation\"\nhosts = \"0-3\"",
        "kind = \"collective\"\nhosts = \"0-3\"",
        "kind = \"poisson\"\nhosts = \"0-3\"\nload = 0.1\nduration = \"1ms\"",
        "kind = \"flows\"\nflows = [{ src = 0, dst = 3, size = \"1MB\" }]",
    ] {
        assert_eq!([0, 3, 5].map(|host| found(workload, host)), [1, 1, 0], "{workload}");
    }
}

#[test]
fn failures_name_links_and_switches_that_exist() {
    let event = |text: &str| problems(&format!("[[failures.event]]\n{text}\n"));
    let star = load(STAR);
    let switch = star.network.topology.nodes[4].name.clone();
    assert_eq!(
        event(&format!("at = \"1ms\"\nlink = [\"host0\", \"host1\"]\nswitch = \"{switch}\"")),
        [
            "s.toml:6: failures.event.0: expected link = [\"leaf0\", \"spine1\"], switch = \"spine1\" or random = 1"
        ]
    );
    assert_eq!(
        event("at = \"1ms\"\nlink = [\"host0\", \"host1\"]"),
        ["s.toml:8: failures.event.0.link: there is no link between host0 and host1"]
    );
    assert_eq!(
        event("at = \"1ms\"\nchange = \"rate\"\nlink = [\"host0\", \"host1\"]")[0],
        "s.toml:6: failures.event.0.rate: missing: change = \"rate\" needs the new rate"
    );
    assert_eq!(
        event("at = \"1ms\"\nswitch = \"host0\""),
        ["s.toml:8: failures.event.0.switch: host0 is a host: expected the name of a switch"]
    );
    let drawn = "(* stands for any text only with random = N, which draws N of what matches)";
    for (key, names) in [("link", "[\"host*\", \"host1\"]"), ("switch", "\"host*\"")] {
        let found = event(&format!("at = \"1ms\"\n{key} = {names}"));
        let expected =
            format!("failures.event.0.{key}: unknown node \"host*\": did you mean \"host0\"? {drawn}");
        assert!(found.len() == 1 && found[0].ends_with(&expected), "{found:?}");
    }
    assert_eq!(
        event("at = \"1ms\"\nrandom = 2"),
        ["s.toml:8: failures.event.0.random: 2 of 0 links that the names stand for"]
    );
    assert_eq!(
        event("at = \"1ms\"\nrandom = 9\nswitch = \"*\""),
        ["s.toml:8: failures.event.0.random: 9 of 1 switches that the name stands for"]
    );
    assert_eq!(
        event(&format!("at = \"1ms\"\nswitch = \"{switch}\"\nchange = \"up\"\nlasts = \"1ms\"")),
        ["s.toml:10: failures.event.0.lasts: has no effect with change = \"up\""]
    );
    let job = "[[workload]]\nkind = \"collective\"\n";
    assert_eq!(
        problems(&format!("{job}ranks = 3\n{job}ranks = 2\n")),
        ["s.toml:11: workload.2.ranks: 2 ranks, but other jobs have taken 3 of the 4 hosts"]
    );
    assert_eq!(
        problems(&format!("{job}ranks = 1\n")),
        ["s.toml:8: workload.1.ranks: a job needs at least 2 hosts, found 1"]
    );
    assert_eq!(
        event("switch = \"host0\""),
        ["s.toml:6: failures.event.0.at: missing: expected a time such as \"1ms\""]
    );
}

#[test]
fn hosts_that_failures_cut_off_for_good_are_named() {
    let fabric = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n";
    let event = |text: &str| format!("[[failures.event]]\nat = \"1ms\"\n{text}\n");
    let found = |topology: &str, events: &[&str]| -> Vec<String> {
        let events: String = events.iter().map(|text| event(text)).collect();
        let text = format!("{topology}[[workload]]\nkind = \"permutation\"\n{events}");
        let warnings = load(&text).warnings.into_iter();
        warnings.filter(|text| text.contains("no path leads from")).collect()
    };
    let of = |events: &[&str]| found(fabric, events);
    let host = "link = [\"host4\", \"leaf1\"]";
    let one = of(&[host]);
    assert_eq!(one.len(), 1);
    assert!(
        one[0].starts_with("failures: from 1ms on no path leads from the other hosts to host4, since"),
        "{one:?}"
    );
    assert_eq!(of(&[&format!("{host}\nlasts = \"5us\"")]), [""; 0], "it comes back");
    assert_eq!(of(&[&format!("{host}\n[run]\nuntil = \"1ms\"")]), [""; 0], "the run ends before");
    assert_eq!(
        of(&["link = [\"leaf0\", \"spine0\"]", "switch = \"spine0\""]),
        [""; 0],
        "the other spine is left"
    );
    // Two parts of three hosts, one of which is named; a leaf takes its hosts with it.
    let halves = of(&["switch = \"spine0\"", "switch = \"spine1\""]);
    assert!(
        halves[0].contains("host3, host4, host5, since") || halves[0].contains("host0, host1, host2, since")
    );
    assert!(of(&["switch = \"leaf0\""])[0].contains("hosts to host0, host1, host2, since"));
    // Planes: the other NIC is left, until both links are down.
    let planes = "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 2\ngpus = 2\nspines = 2\n";
    let topology = load(&format!("{planes}[[workload]]\nkind = \"permutation\"\n"));
    let topology = &topology.network.topology;
    let ports = topology.ports();
    let name = |node: u32| &topology.nodes[node as usize].name;
    let link = |&(_, leaf): &(u32, u32)| format!("link = [\"{}\", \"{}\"]", name(0), name(leaf));
    let links: Vec<String> = ports[0].iter().map(link).collect();
    assert_eq!(links.len(), 2, "{links:?}");
    assert_eq!(found(planes, &[&links[0]]), [""; 0]);
    assert!(
        found(planes, &[&links[0], &links[1]])[0]
            .contains("no path leads from the other hosts to host0, since")
    );
    let more = of(&["switch = \"leaf0\"", host]);
    assert!(more[0].contains("host0, host1, host2, 1 more, since"), "{more:?}");
}

#[test]
fn flows_that_need_a_host_which_is_cut_off_are_named_with_it() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\nextra_hosts = 1\n[transport]\n\
                kind = \"fastpass\"\n[[workload]]\nkind = \"permutation\"\n[[failures.event]]\nat = \"1ms\"\n\
                link = [\"host6\", \"leaf0\"]\n";
    let warnings = load(text).warnings;
    let cut = warnings.iter().find(|text| text.contains("no path leads from")).expect("a warning");
    assert!(cut.contains("All flows of fastpass need host6 (transport.arbiter)."), "{cut}");
}

#[test]
fn hosts_are_cut_off_from_the_time_at_which_what_is_never_repaired_went_down() {
    let found = |events: &[(&str, &str)], until: &str| -> Vec<String> {
        let list = events.iter().map(|(at, text)| format!("[[failures.event]]\nat = \"{at}\"\n{text}\n"));
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[[workload]]\n\
             kind = \"permutation\"\n{}[run]\nuntil = \"{until}\"\n",
            list.collect::<String>()
        );
        let warnings = load(&text).warnings.into_iter();
        warnings.filter(|text| text.contains("no path leads from")).collect()
    };
    let begins = |text: &str, found: Vec<String>| assert!(found[0].starts_with(text), "{found:?}");
    let (host, other) = ("link = [\"host0\", \"leaf0\"]", "link = [\"host3\", \"leaf1\"]");
    let short = "link = [\"host3\", \"leaf1\"]\nlasts = \"1us\"";
    let expected = "failures: from 1ms on no path leads from the other hosts to host0, since";
    begins(expected, found(&[("1ms", host), ("900ms", short)], "flows-done"));
    begins(expected, found(&[("1ms", host), ("6ms", short)], "5ms"));
    assert_eq!(found(&[("1ms", short), ("6ms", host)], "5ms"), [""; 0], "the run ends before");
    // Repaired after the end of the run, so that it is not down for good.
    assert_eq!(found(&[("1ms", &format!("{host}\nlasts = \"9ms\""))], "5ms"), [""; 0]);
    // Without the second spine there is no path.
    let spines = [("1ms", "switch = \"spine0\""), ("3ms", "switch = \"spine1\"")];
    begins("failures: from 3ms on no path leads", found(&spines, "flows-done"));
    begins(
        "failures: no path leads from the other hosts to host0 (from 1ms on), host3 (from 2ms on), since",
        found(&[("2ms", other), ("1ms", host)], "flows-done"),
    );
}
