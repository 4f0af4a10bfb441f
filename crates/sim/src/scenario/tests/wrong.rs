//! Every kind of mistake with its message.

use super::*;

#[test]
fn a_wrong_controller_is_named_with_its_line_and_the_nearest() {
    let names: Vec<&str> = crate::congestion::pair_window::kinds().iter().map(|kind| kind.0).collect();
    let known = format!("(known: {})", names.join(", "));
    assert_eq!(
        problems("[transport]\nkind = \"rdma\"\ncontroller = { kind = \"hpc\", eta = 0.95 }\n"),
        [format!(
            "s.toml:8: transport.controller.kind: unknown controller \"hpc\": did you mean \"hpcc\"? {known}"
        )]
    );
    assert_eq!(
        problems_set(&[("transport.controller.kind", "hpc")]),
        [format!(
            "--set transport.controller.kind=hpc: unknown controller \"hpc\": did you mean \"hpcc\"? {known}"
        )]
    );
}

#[test]
fn a_controller_for_queue_pairs_is_refused_with_those_that_the_transport_takes() {
    let listed = |transport: &str| {
        let text = format!("[transport]\nkind = \"{transport}\"\ncontroller = {{ kind = \"hpcc\" }}\n");
        problems(&text)[0].split("for TCP (").nth(1).unwrap().to_string()
    };
    assert_eq!(listed("tcp"), "bbr, bbr3, bic, cubic, dctcp, newreno, swift, vegas)");
    assert_eq!(listed("mptcp"), "balia, bbr, bbr3, bic, cubic, dctcp, lia, newreno, olia, swift, vegas)");
}

#[test]
fn a_number_with_a_fraction_is_shown_as_one_where_a_whole_number_is_expected() {
    assert_eq!(
        problems("[transport]\nclass = 2.0\n"),
        ["s.toml:7: transport.class: expected a whole number from 1 to 7, found 2.0"]
    );
}

#[test]
fn unknown_keys_and_sections_get_the_nearest_name() {
    assert_eq!(
        problems("[transport]\nmto = \"1KB\"\n[swich]\nbuffer = \"1MB\"\n[run]\nuntill = \"1ms\"\n"),
        [
            "s.toml:7: transport.mto: unknown key: did you mean \"mtu\"? (known: kind, mtu, header, \
             ack_header, ack_least, class, ack_priority, acks_first, recovery, reordering, nack_interval, rto, \
             bdp_cap, rto_low, pacing, window, base_rtt, initial_window, plb, plb_rounds, plb_idle_rounds, plb_pause, \
             plb_delay, plb_share, controller)",
            "s.toml:8: swich: unknown key: did you mean \"switch\"? (known: name, seed, compat, scale, topology, transport, \
             workload, telemetry, failures, switch, host, run, measure)",
            "s.toml:11: run.untill: unknown key: did you mean \"until\"? (known: until, grid, stall, threads, memo, memory)",
        ]
    );
}

#[test]
fn a_key_of_another_kind_is_reported_with_its_kind() {
    let wrong = problems(
        "[transport]\nkind = \"rdma\"\nmss = \"1KB\"\ncontroller = { kind = \"hpcc\", t_low = \"1us\" }\n",
    );
    assert!(
        wrong[0].starts_with("s.toml:8: transport.mss: unknown key: it belongs to kind mptcp, tcp (known: ")
    );
    assert!(wrong[1].contains("transport.controller.t_low: unknown key: it belongs to kind timely (known: "));
    let wrong =
        problems("[[workload]]\nkind = \"incast\"\npartners = \"shift\"\ntransport = { subflows = 2 }\n");
    assert!(wrong[0].contains("workload.1.partners: unknown key: it belongs to kind permutation (known: "));
    assert!(
        wrong[1].contains("workload.1.transport.subflows: unknown key: it belongs to kind mptcp (known: ")
    );
}

#[test]
fn a_kind_of_another_section_is_reported_with_its_section() {
    let wrong = problems(
        "[transport]\nkind = \"powertcp\"\n[switch]\nqueue = { kind = \"ecmp\" }\nbalancer = { kind = \"tcp\" }\n",
    );
    for (found, expected) in wrong.iter().zip([
        "s.toml:7: transport.kind: unknown transport \"powertcp\": it is a kind of transport.controller (known: rdma, ",
        "s.toml:9: switch.queue.kind: unknown queue \"ecmp\": it is a kind of switch.balancer (known: ",
        "s.toml:10: switch.balancer.kind: unknown balancer \"tcp\": it is a kind of transport (known: ",
    ]) {
        assert!(found.starts_with(expected), "{found}");
    }
    assert_eq!(wrong.len(), 3);
}

#[test]
fn all_problems_are_reported_in_the_order_of_their_lines() {
    let text = "seed = -1\n[topology]\nkind = \"ring\"\n[run]\nthreads = \"two\"\n";
    let error = load_with(text, &[("run.grid", "10")]).err().unwrap();
    let lines: Vec<Option<usize>> = error.problems.iter().map(Problem::line).collect();
    assert_eq!(lines, [Some(1), Some(3), Some(5), None]);
    let last = error.problems.last().unwrap().to_string();
    assert!(last.starts_with("--set run.grid=10: expected a time such as \"10us\""), "{last}");
}

#[test]
fn what_must_be_there_is_asked_for() {
    let list = |kinds: &[(&str, &str)]| kinds.iter().map(|k| k.0).collect::<Vec<_>>().join(", ");
    let topologies = list(crate::topology::KINDS);
    let text = load_with("", &[]).err().unwrap().to_string();
    assert!(
        text.contains(&format!("s.toml: topology.kind: missing: expected a topology (one of {topologies})"))
    );
    let text = load_with("[topology]\nkind = \"star\"\n", &[]).err().unwrap().to_string();
    assert!(text.starts_with("s.toml: workload: no traffic: add a [[workload]] section"), "{text}");
    let workloads = list(crate::workload::KINDS);
    assert_eq!(
        problems("[[workload]]\nload = 0.5\n"),
        [format!("s.toml:6: workload.1.kind: missing: expected a workload (one of {workloads})")]
    );
}

#[test]
fn missing_units_and_absurd_values_are_refused_with_their_reason() {
    assert_eq!(
        problems("[transport]\nmtu = 1000\nheader = \"2MB\"\nwindow = \"0B\"\nrto = \"fast\"\nclass = 9\n"),
        [
            "s.toml:7: transport.mtu: expected a size such as \"32MB\" (with its unit), found 1000",
            "s.toml:8: transport.header: 2MB is out of range: expected 0B to 1000B",
            "s.toml:9: transport.window: a window of 0 would never send: expected a size above 0B",
            "s.toml:10: transport.rto: expected a time such as \"1ms\", \"auto\" or \"none\": expected a time with its \
             unit such as \"10us\", found \"fast\"",
            "s.toml:11: transport.class: expected a whole number from 1 to 7, found 9",
        ]
    );
    assert_eq!(
        problems("[transport]\nrto = \"1ps\"\n"),
        ["s.toml:7: transport.rto: expected a time from 1us to 1000000s, found 1ps"]
    );
    let load = &problems_set(&[("workload.0.kind", "poisson"), ("workload.0.load", "1.7")])[0];
    assert!(load.starts_with("--set workload.0.load=1.7: expected a number from "), "{load}");
}

#[test]
fn errors_of_keys_that_take_auto_mention_it() {
    assert_eq!(
        problems("[transport.controller]\nkind = \"swift\"\nbase_target = \"fast\"\nper_hop = 5\n"),
        [
            "s.toml:8: transport.controller.base_target: expected a time with its unit such as \"10us\", found \"fast\"; \"auto\" is \
             also valid",
            "s.toml:9: transport.controller.per_hop: expected a time such as \"10us\" (with its unit), or \"auto\", found 5",
        ]
    );
}

#[test]
fn keys_without_effect_are_refused() {
    assert_eq!(
        problems("[transport]\nreordering = 5\n"),
        ["s.toml:7: transport.reordering: has no effect with recovery = \"go-back-n\": set recovery = \
          \"selective-repeat\""]
    );
    let scenario =
        load_with(STAR, &[("transport.recovery", "selective-repeat"), ("transport.reordering", "5")]);
    let scenario = scenario.ok().unwrap();
    let rdma = rdma_of(&scenario.transports[0]);
    assert_eq!(rdma.recovery, Recovery::SelectiveRepeat { reordering: 5 });
    assert_eq!(
        problems("[transport]\nbdp_cap = \"10KB\"\n"),
        ["s.toml:7: transport.bdp_cap: has no effect without IRN: set recovery = \"irn\""]
    );
}

/// The timeout allows for pauses of PFC, which the scenario or the transport enables.
#[test]
fn the_automatic_timeout_knows_whether_switches_have_pfc() {
    let rto = |sets: &[(&str, &str)], at: usize| {
        let scenario = load_with(STAR, sets).ok().unwrap();
        rdma_of(&scenario.transports[at]).rto.unwrap()
    };
    let (irn, pfc) = (("transport.recovery", "irn"), "switch.pfc.enabled");
    let lossless = rto(&[], 0);
    assert_eq!(rto(&[(pfc, "true")], 0), lossless);
    let lossy = rto(&[(pfc, "false")], 0);
    assert_eq!(lossless.0, 4 * lossy.0);
    assert_eq!(
        [rto(&[irn], 0), rto(&[irn, (pfc, "false")], 0), rto(&[irn, (pfc, "true")], 0)],
        [lossy, lossy, lossless]
    );
    let over_tcp = [("transport.kind", "tcp"), ("workload.0.transport.kind", "rdma")];
    assert_eq!(rto(&over_tcp, 1), lossy);
}

#[test]
fn keys_of_a_workload_that_another_choice_makes_idle_are_refused() {
    let incast = |keys: &[(&str, &str)]| problems_set(&[&[("workload.0.kind", "incast")], keys].concat());
    assert_eq!(
        incast(&[("workload.0.request", "1MB"), ("workload.0.size", "1KB")]),
        ["--set workload.0.size=1KB: has no effect with request: give one of them"]
    );
    assert_eq!(
        incast(&[("workload.0.count", "3"), ("workload.0.every", "1ms"), ("workload.0.load", "0.1")]),
        [
            "--set workload.0.every=1ms: has no effect with arrivals = \"once\": set arrivals = \"periodic\"",
            "--set workload.0.count=3: has no effect with arrivals = \"once\": set arrivals = \"periodic\" or \"poisson\"",
            "--set workload.0.load=0.1: has no effect with arrivals = \"once\": set arrivals = \"poisson\"",
        ]
    );
    // Scenarios with every value in force have the defaults of keys without effect.
    assert_eq!(
        incast(&[("workload.0.every", "100us"), ("workload.0.load", "0.02"), ("workload.0.count", "0")]),
        Vec::<String>::new()
    );
    let permutation =
        |keys: &[(&str, &str)]| problems_set(&[&[("workload.0.kind", "permutation")], keys].concat());
    assert_eq!(
        permutation(&[("workload.0.shift", "2")]),
        ["--set workload.0.shift=2: has no effect with random partners: set partners = \"shift\""]
    );
    assert_eq!(
        incast(&[("workload.0.deadline_least", "2")]),
        ["--set workload.0.deadline_least=2: has no effect without deadline_mean"]
    );
}

/// Sweeps change a kind, or turn something off, that keys of their file belong to.
#[test]
fn keys_of_the_file_that_a_setting_makes_idle_are_left_out() {
    let loads = |text: &str, sets: &[(&str, &str)]| {
        load_with(&format!("{STAR}{text}"), sets).err().map(|error| error.to_string())
    };
    let load = "[[workload]]\nkind = \"incast\"\narrivals = \"poisson\"\nload = 0.1\nduration = \"1ms\"\n";
    let deadline = "[[workload]]\nkind = \"incast\"\ndeadline_mean = \"1ms\"\ndeadline_least = 2.0\n";
    let message = "[transport]\nkind = \"tcp\"\napp_rate = \"1Gbps\"\napp_message = \"2KB\"\n";
    let once = ("workload.1.arrivals", "once");
    let cases = [
        (load, once),
        (deadline, ("workload.1.deadline_mean", "auto")),
        (message, ("transport.app_rate", "auto")),
    ];
    for (text, set) in cases {
        assert_eq!([loads(text, &[]), loads(text, &[set])], [None, None]);
        let warnings = load_with(&format!("{STAR}{text}"), &[set]).ok().unwrap().warnings;
        assert!(
            warnings.iter().any(|text| text.contains("of the file is ignored, as --set")),
            "{warnings:?}"
        );
    }
    assert!(loads(load, &[once, ("workload.1.load", "0.1")]).is_some());
}

#[test]
fn irn_has_a_short_timeout_below_the_other_one_and_a_cap_above_zero() {
    let irn = |keys: &str| problems(&format!("[transport]\nrecovery = \"irn\"\nrto = \"100us\"\n{keys}\n"));
    assert_eq!(
        irn("rto_low = \"200us\""),
        ["s.toml:9: transport.rto_low: expected 1us to 100us (transport.rto), found 200us"]
    );
    assert_eq!(
        irn("bdp_cap = \"0B\""),
        ["s.toml:9: transport.bdp_cap: a cap of 0 would never send: expected a size above 0B"]
    );
}

#[test]
fn plb_by_marks_needs_ecn() {
    assert_eq!(
        problems("[transport]\nkind = \"tcp\"\nplb = \"marks\"\n"),
        [
            "s.toml:8: transport.plb: \"marks\" needs ECN, which is off: set transport.ecn = \"exact\", or plb = \"delay\""
        ]
    );
}

#[test]
fn hpcc_without_int_is_a_contradiction() {
    assert_eq!(
        problems("[telemetry]\nkind = \"none\"\n"),
        [
            "s.toml:7: telemetry.kind: controller \"hpcc\" needs telemetry of kind \"int\", not \"none\": set kind = \
          \"int\" or choose another controller"
        ]
    );
    let scenario = load_with(STAR, &[("transport.controller.kind", "dctcp")]).ok().unwrap();
    assert_eq!(scenario.telemetry, TelemetryConfig::None);
}

#[test]
fn ports_that_do_not_exist_are_named_with_the_nearest() {
    let found = problems("[measure]\nqueues = { ports = \"hots0.*\" }\ngoodput = { by = \"flow\" }\n");
    assert!(found[0].starts_with("s.toml:7: measure.queues.ports: "), "{found:?}");
    assert!(found[0].contains("host0"), "{found:?}");
    assert_eq!(
        found[1],
        "s.toml:8: measure.goodput.flows: missing: expected numbers of flows such as [0, 1]"
    );
    assert_eq!(
        problems("[measure]\nutilisation = { every = \"1ns\" }\n"),
        ["s.toml:7: measure.utilisation.every: 1ns is too short: expected at least 10ns"]
    );
}

#[test]
fn thresholds_in_a_list_need_a_rate_and_their_other_keys_are_known() {
    let found = problems("[[switch.ecn]]\nkmin = \"100KB\"\nkmax = \"400KB\"\n");
    assert_eq!(
        found,
        ["s.toml:6: switch.ecn.0.rate: missing: expected the rate of the ports, such as \"100Gbps\""]
    );
    let found = problems("[[switch.ecn]]\nbelow = \"200Gbps\"\nkmin = 100000\n");
    assert_eq!(found.len(), 2, "{found:?}");
    let known = "(known: rate, kmin, kmax, pmax, at)";
    assert!(
        found[0].starts_with("s.toml:7: switch.ecn.0.below: unknown key") && found[0].ends_with(known),
        "{found:?}"
    );
    assert!(found[1].starts_with("s.toml:8: switch.ecn.0.kmin: expected a size"), "{found:?}");
}

#[test]
fn ports_of_a_queue_of_their_own_are_switch_ports_that_exist() {
    let found = problems(
        "[[switch.port]]\nmatch = \"swich0.*\"\n[[switch.port]]\nqueue = { kind = \"fifo\", packets = 9 }\n\
         [[switch.port]]\nmatch = \"host*\"\nqueue = { kind = \"fif\", paquets = 3 }\n",
    );
    assert!(found[0].starts_with("s.toml:7: switch.port.0.match: unknown node \"swich0\""), "{found:?}");
    assert!(found[1].starts_with("s.toml:8: switch.port.1.match: missing: expected a pattern"), "{found:?}");
    assert!(
        found[2].starts_with("s.toml:11: switch.port.2.match: \"host*\" matches only ports of hosts"),
        "{found:?}"
    );
    assert!(found[3].contains("unknown queue \"fif\": did you mean \"fifo\"?"), "{found:?}");
    assert_eq!(found.len(), 4);
}

#[test]
fn cebinae_refuses_shares_outside_their_range_and_rounds_that_control_cannot_meet() {
    let found = problems(
        "[switch.queue]\nkind = \"cebinae\"\ntax = 0\nport_slack = 1.5\nflow_slack = -0.1\nround = \"90us\"\n",
    );
    assert!(found[0].starts_with("s.toml:8: switch.queue.tax: 0 is not in (0, 1]"), "{found:?}");
    let range = "expected a number from 0 to 1, found";
    assert!(found[1].starts_with(&format!("s.toml:9: switch.queue.port_slack: {range}")), "{found:?}");
    assert!(found[2].starts_with(&format!("s.toml:10: switch.queue.flow_slack: {range}")), "{found:?}");
    assert!(
        found[3].starts_with("s.toml:11: switch.queue.round: 90us is shorter than control needs"),
        "{found:?}"
    );
    assert_eq!(found.len(), 4);
}

#[test]
fn a_degraded_rate_gets_its_marking_thresholds() {
    let switch = load(STAR).network.topology.nodes[4].name.clone();
    let more = format!(
        "[[failures.event]]\nat = \"2ms\"\nlink = [\"host1\", \"{switch}\"]\nchange = \"rate\"\nrate = \"25Gbps\"\n\
         [[failures.event]]\nat = \"1ms\"\nlink = [\"host0\", \"{switch}\"]\n"
    );
    let scenario = load(&format!("{STAR}{more}"));
    let rates: Vec<Rate> = scenario.switch.ecn.iter().map(|t| t.rate).collect();
    assert_eq!(rates, [Rate::from_gbps(25), Rate::from_gbps(100)]);
    assert_eq!(scenario.switch.ecn[0].kmin, Bytes(100_000));
    assert_eq!(scenario.failures.events[0].change, Change::LinkDown(0));
    assert_eq!(scenario.failures.events[1].change, Change::LinkRate(1, Rate::from_gbps(25)));
}

#[test]
fn headroom_that_does_not_fit_the_buffer_is_refused() {
    let found = problems("[switch]\nbuffer = \"100KB\"\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("s.toml:7: switch.buffer: the ports of "), "{found:?}");
    assert!(found[0].ends_with("set a larger buffer, or pfc = { enabled = false }"), "{found:?}");
}

#[test]
fn a_transport_that_is_refused_brings_no_error_about_the_headroom_of_another() {
    let of = |rate: &str| {
        let link = "delay = \"1ms\"";
        problems_set(&[
            ("topology.host_link", &format!("{{ rate = \"10Gbps\", {link} }}")),
            ("transport", &format!("{{ kind = \"tcp\", app_rate = \"{rate}\" }}")),
            ("switch.buffer", "1MB"),
        ])
    };
    assert_eq!(of("1Gbps"), [""; 0]);
    let found = of("0bps");
    assert!(found.len() == 1 && found[0].contains("app_rate"), "{found:?}");
}

#[test]
fn an_override_that_fits_no_link_is_refused() {
    let found = problems("[[topology.override]]\nbetween = [\"host0\", \"spine*\"]\nrate = \"10Gbps\"\n");
    assert!(found[0].starts_with("s.toml:6: topology.override.0: "), "{found:?}");
    assert_eq!(
        problems("[[topology.override]]\nbetween = [\"host0\"]\n"),
        [
            "s.toml:7: topology.override.0.between: expected two names, such as [\"leaf0\", \"spine*\"], found \
          [\"host0\"]"
        ]
    );
}

#[test]
fn links_that_nobody_can_mean_are_refused() {
    assert_eq!(
        problems_set(&[("topology.host_link.rate", "9Tbps")]),
        ["s.toml:1: topology: the link from host0 to s0 has 9000Gbps: expected at most 4000Gbps"]
    );
    assert_eq!(
        problems_set(&[("topology.host_link.delay", "11s")]),
        ["s.toml:1: topology: the link from host0 to s0 has a delay of 11s: expected at most 10s"]
    );
}

#[test]
fn a_wrong_value_next_to_right_keys_is_one_problem() {
    let ports = ["queues", "queue_histogram", "utilisation", "port_events", "disciplines"];
    let of_ports = ports.map(|key| format!("{key} = {{ ports = [5], every = \"10us\" }}"));
    let others = [
        "controllers = { flows = [\"0\"], every = \"10us\" }",
        "goodput = { by = \"flow\", flows = [\"0\"], every = \"10us\" }",
        "goodput = { by = \"flow\", flows = \"0\", every = \"10us\" }",
        "controllers = { flows = 7, every = \"10us\" }",
        "pcap = [5]\npcap_bytes = \"1MB\"\npcap_snaplen = \"100B\"",
    ];
    for text in of_ports.iter().map(String::as_str).chain(others) {
        let found = problems(&format!("[measure]\n{text}\n"));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
}

#[test]
fn flows_without_end_need_the_end_of_the_run() {
    let bulk = "[[workload]]\nkind = \"bulk\"\n";
    assert_eq!(
        problems(bulk),
        [
            "s.toml:6: workload.1.size: \"auto\" is a flow without end, and so is the run: set run.until to a time, or a size"
        ]
    );
    assert_eq!(problems(&format!("{bulk}size = \"1MB\"\n")), [""; 0]);
    assert_eq!(problems(&format!("{bulk}[run]\nuntil = \"1ms\"\n")), [""; 0]);
}

#[test]
fn a_domain_of_a_training_job_needs_the_rate_within_domains() {
    let found = |keys: &str| {
        let text =
            format!("[[workload]]\nkind = \"training\"\nlayers = 2\nhidden = 64\nsequence = 32\n{keys}");
        problems(&text)
    };
    assert_eq!(
        found("domain = 2\n"),
        [
            "s.toml:11: workload.1.domain: has no effect without domains outside the network: set scale_up_rate too"
        ]
    );
    assert_eq!(found("domain = 2\nscale_up_rate = \"1Tbps\"\n"), [""; 0]);
    // As former versions wrote it into scenarios with every value in force.
    assert_eq!(found("domain = \"auto\"\n"), [""; 0]);
}

#[test]
fn a_capture_that_is_too_short_for_the_names_of_its_links_is_refused() {
    let problem = |bytes: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 150\n[[workload]]\nkind = \"permutation\"\n[measure]\npcap = \"*->*\"\n\
             pcap_bytes = \"{bytes}\"\n"
        );
        load_with(&text, &[]).err().map(|error| error.to_string())
    };
    // 52 bytes, and for each of 300 links 48 and its name, such as host10->s0, in whole words.
    let needed = 52 + 300 * (48 + 12);
    assert_eq!(problem(&format!("{needed}B")), None);
    let found = problem(&format!("{}B", needed - 1)).expect("a problem");
    assert!(
        found.contains("s.toml:8: measure.pcap_bytes: ") && found.contains(" is too small: expected "),
        "{found}"
    );
}

#[test]
fn an_unknown_preset_is_reported_without_what_follows_from_it() {
    let text =
        "[topology]\npreset = \"hpn-pods\"\nnodes_per_segment = 4\n[[workload]]\nkind = \"permutation\"\n";
    let all = load_with(text, &[]).err().expect("no such preset").to_string();
    assert!(
        all.starts_with(
            "s.toml:2: topology.preset: unknown preset of a network \"hpn-pods\": did you mean \"hpn-pod\"?"
        ),
        "{all}"
    );
    assert!(!all.contains("topology.kind"), "{all}");
    let text =
        "[topology]\npreset = \"superpod-1024\"\nkind = \"star\"\n[[workload]]\nkind = \"permutation\"\n";
    let all = load_with(text, &[]).err().expect("of another kind").to_string();
    let of_kind = "superpod-1024 is of kind \"rail\": leave kind or preset out";
    assert_eq!(all, format!("s.toml:3: topology.kind: {of_kind}"));
}

#[test]
fn a_window_is_refused_for_controllers_without_one() {
    let of = |controller: &str| {
        problems(&format!("[transport]\nwindow = \"10KB\"\ncontroller = {{ {controller} }}\n"))
    };
    for (controller, name) in [("kind = \"dcqcn\"", "dcqcn"), ("kind = \"hpcc\", window = false", "hpcc")] {
        let expected = format!(
            "s.toml:7: transport.window: has no effect with \"{name}\" without a window: set window = \"auto\", or \
             controller.window = true"
        );
        assert_eq!(of(controller), [expected]);
    }
    for controller in
        ["kind = \"dcqcn\", window = true", "kind = \"hpcc\"", "kind = \"newreno\"", "kind = \"none\""]
    {
        assert_eq!(of(controller), [""; 0]);
    }
}

#[test]
fn headroom_is_set_aside_for_each_class_that_workloads_use() {
    let of = |buffer: &str, workloads: &str| {
        let pattern = "kind = \"permutation\"\ntransport = { class = ";
        let text: String =
            workloads.chars().map(|class| format!("[[workload]]\n{pattern}{class} }}\n")).collect();
        load_with(
            &format!("[topology]\nkind = \"star\"\nhosts = 4\n[switch]\nbuffer = \"{buffer}\"\n{text}"),
            &[],
        )
    };
    let classes = |workloads: &str| of("8MB", workloads).unwrap().switch.pfc.classes;
    // [transport] has class 3, which nothing uses here.
    assert_eq!((classes("1"), classes("11"), classes("12"), classes("1234567")), (1, 1, 2, 7));
    assert!(of("300KB", "1").is_ok());
    let error = of("300KB", "12").err().expect("an error").problems[0].to_string();
    assert!(
        error.contains("s0 need ") && error.contains(" of headroom and reserve for PFC in 2 classes, but"),
        "{error}"
    );
}
