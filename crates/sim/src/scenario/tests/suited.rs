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
    let dropped = |sets: &[(&str, &str)]| {
        let sets = [sets, &[("transport.rto", "none")]].concat();
        warned(STAR, &sets, "transport.rto = \"none\": where full buffers drop the last").len()
    };
    assert_eq!(dropped(&[]), 0);
    assert_eq!(dropped(&[("switch.pfc.enabled", "false")]), 1);
    assert_eq!(dropped(&[("switch.queue", "{ kind = 'fifo', packets = 10 }")]), 1);
    assert_eq!(dropped(&[("compat.like", "hpcc-ns3"), ("switch.pfc.enabled", "false")]), 0);
}

#[test]
fn connections_of_one_message_deserve_a_look_where_something_holds_messages_up() {
    let job = "[topology]\nkind = \"star\"\nhosts = 4\n[[workload]]\nkind = \"collective\"\n";
    let event = "[[failures.event]]\nlink = [\"host0\", \"s0\"]\nat = \"1ms\"\n";
    let found = |text: &str, sets: &[(&str, &str)]| {
        warned(&format!("{job}{text}"), sets, "connections = \"fresh\" of a workload").len()
    };
    let (repeat, fresh) = (("workload.0.repeat", "5"), ("workload.0.connections", "fresh"));
    assert_eq!(found(event, &[repeat, fresh]), 1);
    assert_eq!(found("[[workload]]\nkind = \"permutation\"\n", &[repeat, fresh]), 1);
    assert_eq!([found(event, &[fresh]), found(event, &[repeat]), found("", &[repeat, fresh])], [0, 0, 0]);
}

#[test]
fn asking_again_before_a_copy_can_arrive_deserves_a_look_where_packets_are_lost() {
    // 20 ms there and back.
    let star = format!("{STAR}[switch]\nbuffer = \"2GB\"\n");
    let text = format!("{star}[failures]\nloss = 0.001\nloss_of = \"data\"\n");
    let asked = |delay: &str, interval: &str, recovery: &str| {
        let sets = [
            ("topology.host_link.delay", delay),
            ("transport.nack_interval", interval),
            ("transport.recovery", recovery),
        ];
        warned(&text, &sets, "transport.nack_interval")
    };
    let often = asked("5ms", "500us", "go-back-n");
    assert!(often[0].contains("sends 41 NACKs for one lost packet"), "{often:?}");
    assert_eq!(asked("5ms", "21ms", "go-back-n"), [""; 0]);
    assert_eq!(asked("1us", "500us", "go-back-n"), [""; 0]);
    assert_eq!(asked("5ms", "500us", "selective-repeat"), [""; 0]);
    let lossless = [("topology.host_link.delay", "5ms")];
    assert_eq!(warned(&star, &lossless, "transport.nack_interval"), [""; 0]);
}

#[test]
fn buffers_are_compared_with_the_paths_of_flows() {
    // Two hosts on one side, 10 Gb/s and 50 ms apart, which do not talk: their flows have 10 Mb/s and hold 114 KB.
    let text = "[topology]\nkind = \"dumbbell\"\ngroups = [{ hosts = 1, delay = \"5ms\" }, { hosts = 1, delay = \"20ms\" }]\n\
                host_link.rate = \"10Gbps\"\nbottleneck_link = { rate = \"10Mbps\", delay = \"5ms\" }\n[transport]\nkind = \"tcp\"\n\
                [[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 2, size = \"1MB\" }, { src = 1, dst = 3, size = \"1MB\" }]\n";
    let found = |sets: &[(&str, &str)]| warned(text, sets, "transport.send_buffer");
    assert_eq!(found(&[]), [""; 0]);
    let talk = found(&[("workload.0.flows.1.dst", "0")]);
    assert!(talk[0].contains("in a round trip of 51ms without queues"), "{talk:?}");
}

#[test]
fn ports_that_wait_for_data_after_pauses_of_long_links_deserve_a_look() {
    // 40 km to the port that both flows share.
    let far = "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 1\nhosts_per_leaf = 1\nhost_link.rate = \"400Gbps\"\n\
               fabric_link.rate = \"400Gbps\"\n[[topology.override]]\nbetween = [\"leaf0\", \"spine0\"]\ndelay = \"200us\"\n\
               [[topology.override]]\nbetween = [\"leaf1\", \"spine0\"]\ndelay = \"200us\"\n[transport]\n\
               controller = { kind = \"none\" }\n[switch]\nbuffer = \"64MiB\"\n[[workload]]\nkind = \"incast\"\nreceiver = \"2\"\n";
    let found = |sets: &[(&str, &str)]| warned(far, sets, "switch.pfc: at ");
    assert!(
        found(&[])[0].contains("at spine0->leaf2") && found(&[])[0].contains("400us later"),
        "{:?}",
        found(&[])
    );
    // 20 MB below the thresholds, next to 60 MB of headroom.
    assert_eq!(found(&[("switch.buffer", "300MiB")]), [""; 0]);
    // One link brings no more than the port sends.
    assert_eq!(found(&[("workload.0.senders", "1"), ("workload.0.hosts", "0,2")]), [""; 0]);
    // Others send meanwhile.
    assert_eq!(found(&[("topology.override.1.delay", "1us")]), [""; 0]);
    assert_eq!(found(&[("switch.pfc.enabled", "false")]), [""; 0]);
}

#[test]
fn windows_by_the_longest_path_deserve_a_look_where_many_bytes_take_short_ones() {
    let sites = "[topology]\nkind = \"dumbbell\"\nleft = 3\nright = 3\nbottleneck_link = { delay = \"100us\" }\n[transport]\n\
                 controller = { kind = \"hpcc\" }\n[[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"3MB\" }, \
                 { src = 2, dst = 3, size = \"2MB\" }]\n";
    let found = |sets: &[(&str, &str)]| warned(sites, sets, "transport.base_rtt");
    assert!(
        found(&[])[0].contains("60 % of the bytes are of flows whose own is 4174.4ns"),
        "{:?}",
        found(&[])
    );
    assert_eq!(found(&[("workload.0.flows.1.size", "4MB")]), [""; 0]);
    // A workload counts with all of its flows, however many are looked at, and a job with its messages.
    let and = |more: &str| warned(&format!("{sites}[[workload]]\n{more}"), &[], "transport.base_rtt");
    let rounds = "every = \"100us\"\nsize = \"1MB\"\n";
    assert_eq!(and(&format!("kind = \"permutation\"\nhosts = \"0,3\"\nrepeat = 20000\n{rounds}")), [""; 0]);
    let local = and(&format!(
        "kind = \"incast\"\nhosts = \"0-2\"\nreceiver = 0\narrivals = \"periodic\"\ncount = 2000\n{rounds}"
    ));
    assert!(local[0].contains("100 % of the bytes"), "{local:?}");
    let job = and("kind = \"collective\"\noperation = \"gather\"\nhosts = \"0-2\"\nbytes = \"30MB\"\n");
    assert!(job[0].contains("92 % of the bytes"), "{job:?}");
    for other in [
        ("transport.base_rtt", "4.2us"),
        ("transport.window", "60KB"),
        ("transport.controller", "{ kind = \"dcqcn\" }"),
        ("topology.bottleneck_link.delay", "3us"),
    ] {
        assert_eq!(found(&[other]), [""; 0], "{other:?}");
    }
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
    let all = [("switch.balancer", "{ kind = \"hula\", suppress = false, probe_interval = \"20us\" }")];
    let pods = "[topology]\nkind = \"pods\"\npods = 4\ncores = 8\nhosts_per_leaf = 2\n\
                fabric_link.rate = \"10Gbps\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n[transport]\nkind = \"tcp\"\n\
                [switch]\npfc = { enabled = false }\n";
    // 97 of 64 B in 20 us from an aggregation switch to a leaf.
    let found = warned(pods, &all, "switch.balancer.probe_interval");
    assert!(
        found[0].contains("97 a round") && found[0].contains("take up to 25 % of a link of 10Gbps"),
        "{found:?}"
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

#[test]
fn a_pause_is_compared_with_the_queues_that_a_transport_builds_up() {
    let net = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
               fabric_link = { rate = \"2500Mbps\", delay = \"1us\" }\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n\
               [transport]\nkind = \"tcp\"\n[switch]\npfc = { enabled = false }\nbuffer = \"1MB\"\n";
    let of = |more: &[(&str, &str)]| {
        let balancer = ("switch.balancer", "{ kind = \"letflow\", gap = \"1ms\" }");
        warned(net, &[&[balancer], more].concat(), "switch.balancer: \"letflow\" may send")
    };
    // Half of 1 MB at 2.5 Gb/s are 1.6 ms.
    let found = of(&[]);
    assert!(found.len() == 1 && found[0].contains("a round trip with queues takes up to 16"), "{found:?}");
    assert_eq!(of(&[("switch.buffer", "500KB")]), [""; 0]);
    // Marks, or what delays tell, keep queues short.
    assert_eq!(of(&[("transport.controller", "{ kind = \"dctcp\" }")]), [""; 0]);
    assert_eq!(of(&[("transport.controller", "{ kind = \"swift\" }")]), [""; 0]);
}

#[test]
fn a_limit_of_a_queue_is_compared_with_what_waits_before_all_of_its_senders_are_paused() {
    let of = |limit: &str, pfc: &str| {
        let queue = format!("{{ kind = \"priority\", limit = \"{limit}\" }}");
        let sets = [("topology.hosts", "17"), ("switch.queue", &*queue), ("switch.pfc.enabled", pfc)];
        warned(STAR, &sets, "switch.pfc: ports of s0 drop what exceeds their limit")
    };
    assert!(of("3MB", "true")[0].contains("pauses prevent no loss"), "{:?}", of("3MB", "true"));
    let some = of("4MB", "true");
    assert!(some[0].contains("pauses do not prevent every loss"), "{some:?}");
    let enough = some[0].rsplit("at least ").next().unwrap();
    assert_eq!([of(enough, "true"), of("4MB", "false")], [const { Vec::<String>::new() }; 2]);
}

#[test]
fn steps_that_are_small_compared_with_one_packet_are_warned_of() {
    let of = |kind: &str, mtu: &str, more: &str| {
        let sets =
            [("transport.mtu", mtu), ("transport.controller", &*format!("{{ kind = \"{kind}\"{more} }}"))];
        let key = if kind == "hpcc" { "rai" } else { "additive" };
        warned(STAR, &sets, &format!("transport.controller.{key} = "))
    };
    // By hand, HPCC at 100 Gb/s with 4000 B: 50 Mb/s x 4.64 us are 29 B, of 4090 B 0.7 %; 7 % are 494 Mb/s.
    let small = of("hpcc", "4000B", "");
    assert!(small[0].contains("it adds 0.7 % of a full packet (4090 B)"), "{small:?}");
    assert!(small[0].contains("Set rai to about 500Mbps"), "{small:?}");
    for (kind, large) in [
        ("hpcc", "rai = \"500Mbps\""),
        ("powertcp", "additive = \"500Mbps\""),
        ("theta-powertcp", "additive = \"1Gbps\""),
    ] {
        let count = |mtu: &str, more: &str| of(kind, mtu, more).len();
        assert_eq!(
            [count("1000B", ""), count("4000B", ""), count("4000B", &format!(", {large}"))],
            [0, 1, 0],
            "{kind}"
        );
    }
    assert_eq!(of("theta-powertcp", "4000B", ", law = \"released\""), [""; 0]);
}

#[test]
fn a_path_narrower_than_the_links_of_its_hosts_deserves_a_look_under_tokens() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n[transport]\nkind = \"phost\"\n\
                [[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 4, size = \"1MB\" }]\n";
    let of = |rate: &str, more: &[(&str, &str)]| {
        let sets: Vec<_> =
            [("topology.fabric_link.rate", rate)].into_iter().chain(more.iter().copied()).collect();
        warned(text, &sets, "transport.wake_on_data").len()
    };
    assert_eq!(
        [of("49Gbps", &[]), of("50Gbps", &[]), of("49Gbps", &[("transport.wake_on_data", "true")])],
        [1, 0, 0]
    );
    // One path of the two.
    assert_eq!(
        [of("50Gbps", &[("transport.spray", "false")]), of("100Gbps", &[("transport.spray", "false")])],
        [1, 0]
    );
    // Only flows count that take such a path and fill their window, by their bytes.
    let flows = |size: &str, other: &str| {
        let flow = "{ src = 0, dst = 4, size = \"1MB\" }";
        let local = format!("{{ src = 0, dst = 1, size = \"{other}\" }}");
        let text = text.replace(flow, &format!("{}, {local}", flow.replace("1MB", size)));
        warned(&text, &[("topology.fabric_link.rate", "40Gbps")], "transport.wake_on_data")
    };
    assert!(flows("1MB", "9MB")[0].contains("10 % of the bytes"), "{:?}", flows("1MB", "9MB"));
    assert_eq!([flows("1MB", "200MB").len(), flows("30KB", "10KB").len()], [0, 0]);
    let local = text.replace("dst = 4", "dst = 1");
    assert_eq!(warned(&local, &[("topology.fabric_link.rate", "40Gbps")], "transport.wake_on_data"), [""; 0]);
}

#[test]
fn losses_are_found_by_later_packets_of_the_flow() {
    let late = |reordering: &str, size: &str| {
        let text = format!(
            "{STAR}[transport]\nrecovery = \"selective-repeat\"\nreordering = {reordering}\n[failures]\nloss = 0.001\n"
        );
        warned(&text, &[("workload.0.size", size)], "transport.reordering").len()
    };
    assert_eq!([late("64", "20MB"), late("4096", "20MB"), late("64", "100KB")], [0, 0, 1]);
}

#[test]
fn connections_with_short_first_timeouts_have_more_tries() {
    let text = "[topology]\nkind = \"star\"\nhosts = 2\n[transport]\nkind = \"tcp\"\n[switch]\nbuffer = \"300KB\"\n[[workload]]\n\
                kind = \"permutation\"\nsize = \"1KB\"\n";
    let load = |sets: &[(&str, &str)]| load_with(text, sets).unwrap_or_else(|error| panic!("{error}"));
    let tries = |syn: &str| {
        let scenario = load(&[("transport.rto_syn", syn)]);
        let line = scenario.resolved().lines().find_map(|line| line.strip_prefix("syn_retries = "));
        line.expect("a key").to_string()
    };
    assert_eq!(["1s", "3s", "500ms", "1ms"].map(tries), ["6", "6", "7", "16"]);
}

#[test]
fn constants_published_for_other_rates_and_delays_deserve_a_look() {
    let star = |rate: &str, delay: &str, transport: &str| {
        let link = format!("hosts = 4\nhost_link = {{ rate = \"{rate}\", delay = \"{delay}\" }}\n");
        format!("{}[transport]\n{transport}\n", STAR.replace("hosts = 4\n", &link))
    };
    let of = |rate: &str, controller: &str, start: &str| {
        let transport = format!("controller = {{ {controller} }}");
        warned(&star(rate, "1us", &transport), &[], &format!("transport.controller.{start}"))
    };
    for kind in ["dcqcn", "hpcc", "hpcc-pint", "timely", "dctcp"] {
        let floor =
            |rate, more: &str| of(rate, &format!("kind = \"{kind}\"{more}"), "min_rate = 1Gbps").len();
        let auto = ", min_rate = \"auto\"";
        assert_eq!([floor("10Gbps", ""), floor("10Gbps", auto), floor("100Gbps", "")], [1, 0, 0], "{kind}");
    }
    let theta =
        |rate, more: &str| of(rate, &format!("kind = \"theta-powertcp\"{more}"), "additive = 150Mbps");
    assert!(theta("800Gbps", "")[0].contains("\"auto\" stands for 1.2Gbps"), "{:?}", theta("800Gbps", ""));
    let quiet = [theta("800Gbps", ", additive = \"auto\""), theta("100Gbps", ""), theta("25Gbps", "")];
    assert_eq!(quiet, [const { Vec::<String>::new() }; 3]);
    // Above ten times the step in proportion.
    for (kind, step) in [
        ("hpcc", "rai = 50Mbps"),
        ("hpcc-pint", "rai = 50Mbps"),
        ("powertcp", "additive = 150Mbps"),
        ("theta-powertcp", "additive = 150Mbps"),
    ] {
        let slow = |rate: &str| of(rate, &format!("kind = \"{kind}\""), step).len();
        assert_eq!([slow("1Gbps"), slow("10Gbps"), slow("100Gbps")], [1, 0, 0], "{kind}");
    }
    // 1048 B take 8.384 us at a tenth of 10 Gb/s and 83.84 us at that of 1 Gb/s, above a fifth of 300 us.
    let intervals =
        |rate: &str, more: &str| of(rate, &format!("kind = \"dcqcn\"{more}"), "increase_interval = ").len();
    assert_eq!([intervals("1Gbps", ""), intervals("10Gbps", ""), intervals("100Gbps", "")], [1, 0, 0]);
    let auto = ["alpha", "decrease", "increase"].map(|of| format!(", {of}_interval = \"auto\"")).concat();
    assert_eq!([intervals("1Gbps", &auto), intervals("1Mbps", &auto)], [0, 0]);
    // Four links there and back: 600 us are above t_high, 60 us between it and t_low.
    let timely = |delay: &str, start: &str| {
        let text = star("100Gbps", delay, "controller = { kind = \"timely\" }");
        warned(&text, &[], &format!("transport.controller.{start}"))
    };
    assert!(timely("150us", "t_")[0].contains("t_high = 500us"), "{:?}", timely("150us", "t_"));
    assert!(timely("15us", "t_")[0].contains("t_low = 50us"), "{:?}", timely("15us", "t_"));
    assert_eq!(timely("1us", "t_"), [""; 0]);
    // A round trip of 1 ms holds 12.5 MB.
    let large = [("switch.buffer", "200MB")];
    let tcp =
        |delay: &str| warned(&star("100Gbps", delay, "kind = \"tcp\""), &large, "transport.send_buffer");
    assert!(tcp("250us")[0].contains("4MiB are less than what a connection"), "{:?}", tcp("250us"));
    assert_eq!(tcp("1us"), [""; 0]);
    let swift = |more: &str| {
        let transport = format!(
            "controller = {{ kind = \"swift\", base_target = \"auto\"{more} }}\ninitial_window = 12500"
        );
        warned(&star("100Gbps", "250us", &transport), &large, "transport.controller.most_window")
    };
    assert!(swift("")[0].contains("most_window = 1000: "), "{:?}", swift(""));
    assert_eq!(swift(", most_window = 20000"), [""; 0]);
}

#[test]
fn marks_that_begin_before_a_queue_outlasts_the_cut_of_a_window_deserve_a_look() {
    // 250 us a link: 1.25 MB fill 10 Gb/s for a round trip.
    let marked = |transport: &str, kmax: &str| {
        let link = "hosts = 4\nhost_link = { rate = \"10Gbps\", delay = \"250us\" }\n";
        let text = format!("{}[transport]\n{transport}\n", STAR.replace("hosts = 4\n", link));
        let ecn = format!("{{ kmin = \"{kmax}\", kmax = \"{kmax}\" }}");
        let sets = [("switch.buffer", "32MB"), ("switch.ecn", &ecn)];
        warned(&text, &sets, "switch.ecn: at ports")
    };
    // Below and above what each law needs, in KB.
    let bounds = [
        ("newreno", "newreno", "1200KB", "1400KB"),
        ("cubic", "cubic", "500KB", "600KB"),
        ("bic", "bic", "300KB", "350KB"),
        ("dctcp", "tcp.dctcp", "170KB", "200KB"),
    ];
    for (law, pair, below, above) in bounds {
        let tcp = format!("kind = \"tcp\"\necn = \"classic\"\ncontroller = {{ kind = \"{law}\" }}");
        let rdma = format!("controller = {{ kind = \"{pair}\" }}");
        for (transport, name) in [(tcp, law), (rdma, pair)] {
            let found = marked(&transport, below);
            assert!(
                found.len() == 1 && found[0].contains(&format!("flows of \"{name}\"")),
                "{name}: {found:?}"
            );
            assert_eq!(marked(&transport, above), [""; 0], "{transport}");
        }
    }
    // Vegas is content with a few packets in a queue, and the others do not answer marks.
    for law in ["vegas", "bbr", "bbr3", "swift"] {
        let tcp = format!("kind = \"tcp\"\necn = \"classic\"\ncontroller = {{ kind = \"{law}\" }}");
        assert_eq!(marked(&tcp, "30KB"), [""; 0], "{law}");
    }
    // Without ECN packets get no marks.
    let off = "kind = \"tcp\"\necn = \"off\"\ncontroller = { kind = \"newreno\" }";
    assert_eq!(marked(off, "30KB"), [""; 0]);
    assert_eq!(marked("kind = \"tcp\"\necn = \"classic\"\ncontroller = { kind = \"bbr\" }", "500B"), [""; 0]);
}

#[test]
fn marking_thresholds_follow_the_round_trips_of_the_flows_that_can_wait_at_a_port() {
    let flow = |src, dst| {
        format!("[[workload]]\nkind = \"flows\"\nflows = [{{ src = {src}, dst = {dst}, size = \"1GB\" }}]\n")
    };
    let net = "[topology]\nkind = \"dumbbell\"\nleft = 4\nright = 4\nhost_link = { rate = \"1Gbps\", delay = \"1ms\" }\n\
               bottleneck_link = { rate = \"100Mbps\", delay = \"8ms\" }\n[transport]\nkind = \"tcp\"\n\
               controller = { kind = \"dctcp\" }\n[switch]\npfc = { enabled = false }\n[[switch.port]]\nmatch = \"s0->s1\"\n\
               queue = { kind = \"fifo\", packets = 1000 }\n";
    let across = format!("{net}{}{}", flow(2, 6), flow(3, 7));
    let of = |text: &str, ecn: &str| warned(text, &[("switch.ecn", ecn)], "switch.ecn");
    let step = |k: &str| format!("{{ kmin = \"{k}\", kmax = \"{k}\" }}");
    // All flows pass 100 Mb/s, so that nothing waits at 1 Gb/s: 20.1 ms fill 252 KB.
    let found = of(&across, &step("30KB"));
    assert!(found.len() == 1 && found[0].ends_with("[[switch.ecn]] above 35.973KB for 100Mbps"), "{found:?}");
    assert_eq!(of(&across, &step("36KB")), [""; 0]);
    // A flow from host 5 to host 4 takes 4 ms there and back.
    let both = format!("{across}{}", flow(5, 4));
    let found = of(&both, &step("30KB"));
    assert!(found.len() == 1 && found[0].contains("above 35.973KB for 100Mbps and above 71.8"), "{found:?}");
    for (text, expected) in [
        (&across, "{ enabled = true, kmin = \"36KB\", kmax = \"36KB\", pmax = 1.0 }"),
        (
            &both,
            "[{ rate = \"100Mbps\", kmin = \"36KB\", kmax = \"36KB\", pmax = 1.0 }, { rate = \"1Gbps\", kmin = \"72KB\", kmax = \
             \"72KB\", pmax = 1.0 }]",
        ),
    ] {
        let found = of(text, "{ enabled = false }");
        assert!(found.len() == 1 && found[0].ends_with(&format!("Set switch.ecn = {expected}")), "{found:?}");
        assert_eq!(of(text, expected), [""; 0]);
    }
}

#[test]
fn a_queue_limited_in_packets_has_room_for_packets_of_the_mtu() {
    let marked = |rate: &str, mtu: &str| {
        let sets = [
            ("topology.host_link.rate", rate),
            ("transport.mtu", mtu),
            ("transport.controller", "{ kind = \"dctcp\" }"),
            ("switch", "{ pfc = { enabled = false }, queue = { kind = \"fifo\", packets = 1000 } }"),
        ];
        warned(STAR, &sets, "switch.ecn: marks begin")
    };
    // Marks begin at 2.4 MB, and 1000 packets of 9048 B wait.
    assert_eq!(marked("800Gbps", "9000B"), [""; 0]);
    let small = marked("100Gbps", "128B");
    assert!(small[0].contains("no queue holds more than 176KB"), "{small:?}");
}

#[test]
fn a_full_queue_that_marks_next_to_nothing_is_warned_about() {
    let warned_at = |mtu: &str| {
        let sets = [
            ("topology.host_link.rate", "400Gbps"),
            ("transport.mtu", mtu),
            ("transport.controller", "{ kind = \"dcqcn\" }"),
            ("switch", "{ preset = \"uec-port-400g\" }"),
        ];
        warned(STAR, &sets, "switch.ecn: marks begin")
    };
    // 100 packets of 1048 B: 104.8 KB, and marks from 103.75 KB to 311.25 KB.
    let small = warned_at("1000B");
    assert!(small.len() == 1 && small[0].contains("marks 0.0 % of its packets"), "{small:?}");
    assert!(
        small[0]
            .ends_with("or larger packets (transport.mtu): ports hold a number of packets, of up to 1048 B"),
        "{small:?}"
    );
    assert_eq!(warned_at("4KB"), [""; 0]);
}

#[test]
fn the_timeout_of_queue_pairs_follows_the_buffers_that_ports_use() {
    let rto = |switch: &str| {
        let star =
            STAR.replace("hosts = 4\n", "hosts = 4\nhost_link = { rate = \"10Gbps\", delay = \"1us\" }\n");
        let sets = [("switch", switch), ("transport.recovery", "selective-repeat")];
        let scenario = load_with(&star, &sets).unwrap_or_else(|error| panic!("{error}"));
        let line = scenario.resolved().lines().find_map(|line| line.strip_prefix("rto = "));
        line.expect("a key").to_string()
    };
    let of = |queue: &str| rto(&format!("{{ pfc = {{ enabled = false }}, {queue} }}"));
    // 32 MiB at 10 Gb/s.
    let shared = "\"26.8435456ms\"";
    assert_eq!(of("queue = { kind = \"fifo\" }"), shared);
    assert_eq!(of("queue = { kind = \"fifo\", packets = 100 }"), "\"1ms\"");
    // 10 000 packets of 1514 B, and a limit in bytes that is smaller.
    assert_eq!(of("queue = { kind = \"fifo\", packets = 10000 }"), "\"12.112ms\"");
    assert_eq!(of("queue = { kind = \"fifo\", packets = 10000, limit = \"10MB\" }"), "\"8ms\"");
    // The buffer is in use at one port.
    let one = "queue = { kind = \"fifo\", packets = 100 }, port = [{ match = \"s0.p0\", queue = { kind = \"fifo\" } }]";
    assert_eq!(of(one), shared);
}

#[test]
fn telemetry_that_comes_too_seldom_to_be_compared_deserves_a_look() {
    let found = |rate: &str, controller: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 9\nhost_link = {{ rate = \"{rate}\", delay = \"1ms\" }}\n[transport]\n\
             controller = {{ kind = \"{controller}\" }}\n[[workload]]\nkind = \"incast\"\nreceiver = \"8\"\nsize = \"1MB\"\n"
        );
        warned(&text, &[], "transport.controller: \"")
    };
    // 1090 B at an eighth of 8 Mb/s take 8.72 ms.
    let rare = found("8Mbps", "hpcc");
    assert!(
        rare.len() == 1 && rare[0].contains("8 flows that share 8Mbps gets one every 8.72ms"),
        "{rare:?}"
    );
    assert_eq!(found("9Mbps", "hpcc"), [""; 0]);
    assert_eq!(found("8Mbps", "dcqcn"), [""; 0]);
}

/// Eighteen hosts at 25 Gb/s and 1 us, the last one with a link of its own.
fn star_with(own: &str, kind: &str) -> String {
    format!(
        "[topology]\nkind = \"star\"\nhosts = 18\nhost_link = {{ rate = \"25Gbps\", delay = \"1us\" }}\n\
         [[topology.override]]\nbetween = [\"host17\", \"*\"]\n{own}\n[transport]\nkind = \"{kind}\"\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    )
}

#[test]
fn windows_follow_the_largest_product_of_a_pair_and_not_the_fastest_host_on_the_longest_path() {
    let line = |own: &str, kind: &str, key: &str| {
        let resolved = load(&star_with(own, kind)).resolved().to_owned();
        let found = resolved.lines().find(|line| line.starts_with(key));
        found.map(str::to_owned).unwrap_or_else(|| panic!("{key} is not in\n{resolved}"))
    };
    let expected = [
        // 4 us of links, two packets, and one more: 1538 B on the wire.
        ("homa", "rtt_bytes = \"17.114KB\""),
        ("ndp", "first_window = 15"),
        ("phost", "free_tokens = 11"),
        ("pfabric", "initial_window = 33"),
    ];
    for (kind, value) in expected {
        let key = value.split(' ').next().unwrap();
        assert_eq!(line("rate = \"25Gbps\"", kind, key), value, "{kind}");
        // A packet takes the slow link 12 us.
        assert_eq!(line("rate = \"1Gbps\"", kind, key), value, "{kind} with a slow host");
    }
}

#[test]
fn default_windows_of_packets_on_all_paths_hold_what_the_paths_carry_together() {
    let window = |spines: u32, gbps: u32| -> u32 {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 1\n\
             fabric_link = {{ rate = \"{gbps}Gbps\", delay = \"1us\" }}\n[transport]\nkind = \"ndp\"\n\
             [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
        );
        let resolved = load(&text).resolved().to_owned();
        let line = resolved.lines().find_map(|line| line.strip_prefix("first_window = "));
        line.expect("NDP has a first window").parse().expect("a whole number")
    };
    // A round trip is 8 us of links and the packets' own time, which slow links make longer.
    let one = window(1, 100);
    assert!((68..=76).contains(&one), "{one}");
    assert!((one..one + 10).contains(&window(4, 25)), "{}", window(4, 25));
    // Together 40 Gb/s for 10.7 us: 36 packets and one more.
    assert!((34..=40).contains(&window(4, 10)), "{}", window(4, 10));
    // One path alone holds 9, and the minimum is 15.
    assert_eq!(window(1, 10), 15);
}

#[test]
fn defaults_that_follow_one_distant_host_deserve_a_look() {
    for (kind, key, own) in [
        ("homa", "rtt_bytes", "20KB"),
        ("ndp", "first_window", "15"),
        ("phost", "free_tokens", "11"),
        ("pfabric", "initial_window", "33"),
        ("fastpass", "lead", "10us"),
    ] {
        let of = |link: &str, sets: &[(&str, &str)]| {
            warned(&star_with(link, kind), sets, &format!("transport.{key}")).len()
        };
        let far = "delay = \"500us\"";
        assert_eq!((of(far, &[]), of("delay = \"2us\"", &[])), (1, 0), "{kind}");
        assert_eq!(of(far, &[(&format!("transport.{key}"), own)]), 0, "{kind}");
    }
}

#[test]
fn keys_of_the_transport_that_no_workload_takes_deserve_a_look() {
    let base = "[transport]\nmtu = \"2KB\"\n[transport.controller]\nkind = \"dcqcn\"\nmin_rate = \"3Gbps\"\n";
    let idle = |own: &str| warned(&format!("{STAR}{own}\n{base}"), &[], "[transport]: no workload takes ");
    let named =
        |own: &str| idle(own).first().and_then(|text| text.split(" from it").next()).map(String::from);
    assert_eq!(named(""), None);
    let takes = |keys: &str| Some(format!("[transport]: no workload takes {keys}"));
    assert_eq!(named("transport = { mtu = \"4KB\" }"), takes("mtu"));
    let another = "transport = { controller = { kind = \"hpcc\" } }";
    assert_eq!(named(another), takes("controller.min_rate"));
    let tcp = "transport = { kind = \"tcp\" }";
    assert_eq!(named(tcp), takes("mtu, controller.min_rate"));
    let same = "transport = { mtu = \"2KB\", controller = { min_rate = \"3Gbps\" } }";
    assert_eq!(named(same), None);
    let resolved = load_with(&format!("{STAR}{another}\n{base}"), &[]).unwrap().resolved;
    assert_eq!(warned(&resolved, &[], "[transport]: "), [""; 0], "as runs store it");
    // The second workload takes them.
    assert_eq!(named(&format!("{another}\n[[workload]]\nkind = \"permutation\"\ngroup = \"b\"")), None);
    // Schemes alone set the defaults of switches.
    let text = format!("{STAR}{another}\n[transport.controller]\nkind = \"dcqcn\"\n");
    assert_eq!(warned(&text, &[], "[transport]: "), [""; 0]);
}
