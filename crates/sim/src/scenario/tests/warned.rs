//! What a scenario may say but hardly means: warnings.

use super::*;

#[test]
fn jobs_that_share_hosts_unknowingly_are_warned_about() {
    let job = "[[workload]]\nkind = \"collective\"\n";
    let other = format!("{job}group = \"other\"\n");
    let warnings = |text: &str| load_with(&format!("{STAR}{text}"), &[]).ok().unwrap().warnings;
    let hosts = "hosts = \"1-3\"\n";
    let found = warnings(&format!("{job}ranks = 2\n{other}{hosts}"));
    let expected = "workload.2: it shares 1 of its 3 hosts, given by `hosts`, with workload.1, which has them by `ranks`: \
                    both use their links; to keep the jobs apart, give both `ranks`, or each its own `hosts`";
    assert_eq!(found, [expected]);
    let found = warnings(&format!("{job}{hosts}{other}hosts = \"2,3\"\nranks = 2\n"));
    assert!(found[0].starts_with("workload.2: it shares all of its 2 hosts, given by `ranks`"), "{found:?}");
    // Hosts that both list, and hosts that are not the same.
    assert_eq!(warnings(&format!("{job}{hosts}{other}{hosts}")), [""; 0]);
    assert_eq!(warnings(&format!("{job}hosts = \"2,3\"\n{other}ranks = 2\n")), [""; 0]);
}

#[test]
fn queues_that_no_packet_fits_and_links_that_lose_many_packets_are_warned_about() {
    let warnings = |text: &str| load_with(&format!("{STAR}{text}"), &[]).ok().unwrap().warnings;
    let found = warnings(
        "[transport]\nkind = \"ndp\"\n[switch]\nqueue = { kind = \"priority\", limit = \"1499B\" }\n",
    );
    let expected = "switch.queue.limit: ports of kind \"priority\" with 1.499KB have no room for a full packet of ndp (1500 B): \
                    none ever passes";
    assert_eq!(found, [expected]);
    let found =
        warnings("[transport]\nkind = \"tcp\"\n[switch]\nqueue = { kind = \"fifo\", limit = \"100B\" }\n");
    assert!(found[0].contains("a full packet of tcp (1514 B): none ever passes"), "{found:?}");
    let class = |class: u8| {
        let queue = format!("{{ kind = \"priority\", trim_class = {class} }}");
        warnings(&format!("[transport]\nkind = \"ndp\"\nclass = 2\n[switch]\nqueue = {queue}\n"))
    };
    assert!(class(1)[0].contains("acknowledgements and pulls wait with the data"), "{:?}", class(1));
    assert_eq!(class(2), [""; 0]);
    assert!(class(3)[0].contains("data wait with the headers"), "{:?}", class(3));
    // Over two links: 0.8^2 of the packets arrive, and 0.8^4 of the SYNs are answered; seven are sent.
    let lossy = |rest: &str| warnings(&format!("[transport]\nkind = \"tcp\"\n{rest}"));
    let found = lossy("syn_retries = 6\n[failures]\nloss = 0.2\n");
    assert!(
        found[0].contains("2 links, 64.00 % of the packets of tcp arrive and 40.96 % are answered"),
        "{found:?}"
    );
    assert!(
        found[0].contains("2.50 % of the connections over such a path are aborted before they open"),
        "{found:?}"
    );
    assert!(!lossy("syn_retries = 100\n[failures]\nloss = 0.2\n")[0].contains("aborted"));
    assert_eq!(lossy("[failures]\nloss = 0.01\n"), [""; 0]);
}

#[test]
fn keys_of_plb_without_it_and_those_of_another_signal_are_warned_about() {
    let warnings = |keys: &str| load(&format!("{STAR}[transport]\nkind = \"tcp\"\n{keys}")).warnings;
    assert_eq!(
        warnings("plb_rounds = 3\n"),
        ["transport.plb_rounds has no effect here: set plb = \"delay\" or \"marks\""]
    );
    assert_eq!(
        warnings("plb = \"delay\"\nplb_share = 0.4\n"),
        ["transport.plb_share has no effect here: set plb = \"marks\""]
    );
    assert!(warnings("plb_share = 0.5\n").is_empty());
}

#[test]
fn a_buffer_that_cannot_drain_in_a_round_is_warned_about() {
    let queue = |round| {
        format!(
            "{STAR}[transport]\nrecovery = \"selective-repeat\"\n[switch]\npfc = {{ enabled = false }}\nqueue = {{ kind = \"cebinae\", packets = 9000, deadline = \"1us\", round = \"{round}\" }}\n"
        )
    };
    assert_eq!(load(&queue("2ms")).warnings, [""; 0]);
    let warnings = load(&queue("1ms")).warnings;
    assert!(warnings[0].contains("cannot drain in a round of 1ms: it needs 1.08ms"), "{warnings:?}");
    assert_eq!(load(&queue("auto")).warnings, [""; 0]);
}

#[test]
fn layers_that_are_reduced_over_the_network_are_named() {
    let found = |gpus: u32, keys: &str| -> Vec<String> {
        let text = format!(
            "[topology]\nkind = \"rail\"\nnodes = 4\ngpus = {gpus}\nnodes_per_segment = 2\nspines = 2\n[[workload]]\n\
             kind = \"training\"\nlayers = 4\nhidden = 64\nsequence = 32\nmessages = false\n{keys}"
        );
        load(&text).warnings.into_iter().filter(|text| text.contains("tensor = ")).collect()
    };
    const NVLINK: &str = "scale_up_rate = \"3.6Tbps\"\n";
    assert_eq!(found(4, &format!("{NVLINK}tensor = 4\n")), [""; 0]);
    assert_eq!(found(4, &format!("{NVLINK}tensor = 2\n")), [""; 0]);
    assert_eq!(found(4, "tensor = 1\n"), [""; 0]);
    let wide = found(4, &format!("{NVLINK}tensor = 8\n"));
    assert!(
        wide[0].contains("tensor = 8: a domain has 4 ranks, so that groups reduce the results of"),
        "{wide:?}"
    );
    let torn = found(6, &format!("{NVLINK}tensor = 4\ndata = 2\n"));
    assert!(
        torn[0].contains("tensor = 4: groups do not fit into domains of 6 ranks, so that some groups"),
        "{torn:?}"
    );
    let without = found(4, "tensor = 4\n");
    assert!(
        without[0].contains("without scale_up_rate the GPUs of a node reach each other over"),
        "{without:?}"
    );
}

#[test]
fn jobs_of_one_group_are_warned_about() {
    let found = |groups: [&str; 3]| -> Vec<String> {
        let job = |group| format!("[[workload]]\nkind = \"collective\"\nhosts = \"0-1\"\n{group}\n");
        let text = format!("{STAR}{}", groups.map(job).concat());
        load(&text).warnings.into_iter().filter(|text| text.contains(".group: ")).collect()
    };
    let equal = found(["", "group = \"other\"", ""]);
    assert_eq!(equal.len(), 1, "{equal:?}");
    assert!(equal[0].starts_with("workload.3.group: workload 1 is a job of the group \"collective\", too: "));
    assert_eq!(found(["group = \"a\"", "group = \"b\"", ""]), [""; 0]);
    let flows = "[[workload]]\nkind = \"permutation\"\n[[workload]]\nkind = \"permutation\"\n";
    assert_eq!(load(&format!("{STAR}{flows}")).warnings, [""; 0], "these are no jobs");
}

#[test]
fn losses_that_only_timeouts_find_are_warned_about() {
    let found = |keys: &str, more: &str| -> Vec<String> {
        let text = format!("{STAR}[transport]\nrecovery = \"selective-repeat\"\nreordering = {keys}\n{more}");
        load(&text).warnings.into_iter().filter(|text| text.contains("transport.reordering")).collect()
    };
    const LOSSY: &str = "[failures]\nloss = 0.001\n";
    let late = found("4096", LOSSY);
    assert!(
        late[0].starts_with("transport.reordering: 4096 packets must arrive before one counts as lost"),
        "{late:?}"
    );
    assert_eq!(found("3", LOSSY), [""; 0]);
    assert_eq!(found("4096", ""), [""; 0], "pauses keep all packets");
}

#[test]
fn headroom_that_cannot_take_what_arrives_after_a_pause_deserves_a_look() {
    let warnings = |text: &str| load(&format!("{STAR}{text}")).warnings;
    let of = |pfc: &str| warnings(&format!("[switch]\npfc = {{ {pfc} }}\n"));
    for small in ["headroom_factor = 1", "headroom_factor = 2, headroom_extra = false"] {
        let found = of(small);
        assert!(found[0].starts_with("switch.pfc: headroom is "), "{found:?}");
        assert!(found[0].contains("switches may drop packets although PFC is on"), "{found:?}");
    }
    for fine in ["headroom_factor = 2", "headroom_factor = 3", "headroom_factor = 0, enabled = false"] {
        assert!(!of(fine).iter().any(|text| text.contains("headroom")), "{fine}");
    }
    let compat = warnings("[compat]\nlike = \"hpcc-ns3\"\n[switch]\npfc = { headroom_factor = 1 }\n");
    assert!(!compat.iter().any(|text| text.contains("headroom")), "{compat:?}");
}

#[test]
fn thresholds_that_keep_a_link_from_being_filled_deserve_a_look() {
    let of = |rate: &str, delay: &str, ecn: &str| {
        let link = format!("topology.host_link = {{ rate = \"{rate}\", delay = \"{delay}\" }}\n");
        let transport = "[transport]\nkind = \"tcp\"\ncontroller = { kind = \"dctcp\" }\n";
        let star = STAR.replace("hosts = 4\n", &format!("hosts = 4\n{}", link.replace("topology.", "")));
        let scenario = load(&format!("{star}{transport}[switch]\necn = {{ {ecn} }}\n"));
        scenario
            .warnings
            .into_iter()
            .filter(|text| text.starts_with("switch.ecn: at ports"))
            .collect::<Vec<_>>()
    };
    // Below 10 Gb/s the thresholds of auto are those of 10 Gb/s.
    assert_eq!(of("100Mbps", "100us", ""), [""; 0]);
    let found = of("100Mbps", "100us", "kmin = \"300B\", kmax = \"300B\"");
    assert!(
        found[0].starts_with("switch.ecn: at ports of 100Mbps every packet is marked above a queue of 300B (kmax), less than a full packet"),
        "{found:?}"
    );
    let found = of("10Gbps", "1ms", "");
    assert!(
        found[0].contains("30KB (kmax), less than 714.718KB, ") && found[0].contains("flows of \"dctcp\""),
        "{found:?}"
    );
    assert_eq!(of("10Gbps", "10us", ""), [""; 0]);
    assert!(of("100Mbps", "1ms", "kmin = \"400B\", kmax = \"1.6KB\"")[0].contains("(kmax), less than 7."));
}
