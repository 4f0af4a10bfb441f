//! Tests of what estimates add up.

use super::*;
use crate::queue::PortMemory;
use crate::scenario::Hooks;
use std::path::Path;

#[test]
fn what_does_not_fit_the_caches_costs_more_and_never_less() {
    assert_eq!((cache_factor(0.0), cache_factor(2e6), cache_factor(44e6)), (1.0, 1.0, 1.6));
    assert_eq!(cache_factor(1e12), 1.9);
    let factors: Vec<f64> = (0..60).map(|i| cache_factor(1e6 * 1.1f64.powi(i))).collect();
    assert!(factors.is_sorted(), "{factors:?}");
}

#[test]
fn sizes_are_reported_with_two_digits() {
    assert_eq!([8_765_432_100, 99, 0].map(two_digits), [8_700_000_000, 99, 0]);
}

/// The memory of 128 hosts, 384 links, 32 of 80 switches with hosts, and 640 ports of switches with this part
/// of a scenario.
fn memory_of(switch: &str, workload: &str) -> Memory {
    let text = format!(
        "[topology]\nkind = \"fat-tree\"\nk = 8\n[switch.{switch}\n\
         [transport]\nkind = \"tcp\"\n[[workload]]\n{workload}\n"
    );
    let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
    scenario.unwrap_or_else(|error| panic!("{error}")).estimate().memory
}

/// What of it is for the network with this discipline.
fn network(queue: &str, workload: &str) -> u64 {
    memory_of(&format!("queue]\nkind = \"{queue}\""), workload).network
}

#[test]
fn tables_of_balancers_count_and_their_probes() {
    let every = "kind = \"permutation\"\nsize = \"1MB\"";
    let one = "kind = \"incast\"\nsize = \"1MB\"\nsenders = 1\nreceiver = 0";
    let with =
        |balancer: &str, workload: &str| memory_of(&format!("balancer]\nkind = \"{balancer}"), workload);
    let over_ecmp =
        |balancer: &str, workload: &str| with(balancer, workload).network - with("ecmp\"", workload).network;
    // Sixteen tags of nine bytes to and from every other rack, or the pages that a flow touches.
    let conga = "conga\"\nthree_tier = true";
    assert_eq!(over_ecmp(conga, every), 32 * 32 * (2 * 16 * 9 + 5));
    assert_eq!(over_ecmp(conga, one), 8 * 4096);
    // A hop, what was passed on and a byte, at each of 80 switches for 32 racks.
    let hula = over_ecmp("hula\"", one);
    assert!(hula % (80 * 32) == 0 && hula >= 80 * 32 * 16, "{hula}");
    // A probe of each of 32 racks on each of 256 links, for 1 us of the interval: 81 of them instead of 40.
    let packets = |balancer: &str| with(balancer, one).packets;
    let more = packets("hula\"\nprobe_interval = \"100us\"") - packets("hula\"");
    assert_eq!(more, 41 * (size_of::<Packet>() as u64 + EVENT_BYTES));
}

#[test]
fn tables_of_disciplines_count_at_the_ports_that_flows_come_by() {
    let every = "kind = \"permutation\"\nsize = \"1MB\"";
    let one = "kind = \"incast\"\nsize = \"1MB\"\nsenders = 1\nreceiver = 0";
    // Two stages of 2 048 slots of 16 bytes, at all ports or at ten.
    let cache = 2 * 2048 * 16;
    let state = network("cebinae", one) - network("fifo", one) - 10 * cache;
    assert!((100 * 640..1000 * 640).contains(&state), "{state}");
    assert_eq!(network("cebinae", every) - network("fifo", every), state + 640 * cache);
    // At the 128 NICs, of which one flow passes two.
    let of_hosts = |workload: &str| {
        let at_hosts = "queue]\nkind = \"fifo\"\n[host.queue]\nkind = \"cebinae\"";
        memory_of(at_hosts, workload).network - network("fifo", workload)
    };
    assert_eq!(of_hosts(one), state / 640 * 128 + 2 * cache);
    assert_eq!(of_hosts(every), state / 640 * 128 + 128 * cache);
    // A sketch takes what its flows need, up to its size.
    let sketch = PortMemory { state: 5, each_flow: 64, max: 1000 };
    assert_eq!(
        [0.0, 0.5, 1.0, 3.0, 1e9].map(|flows| sketch.of_ports(10, flows)),
        [50, 370, 690, 1970, 10_050]
    );
}

#[test]
fn a_configured_load_says_what_it_is_a_share_of() {
    let traffic = |workload: &str| {
        let text =
            format!("[topology]\nkind = \"star\"\nhosts = 8\n[[workload]]\n{workload}\nduration = \"1ms\"\n");
        let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
        let facts = facts::facts(&scenario.unwrap_or_else(|error| panic!("{error}")), 1);
        let of = |key: &str| facts["traffic"][key].clone();
        (of("offered_load_terms")[0].as_str().map(str::to_string), of("offered_load_asked").as_f64())
    };
    let (terms, asked) = traffic("kind = \"request-response\"\nload = 0.4\nsize = \"10KB\"");
    assert_eq!(terms.as_deref(), Some("load 0.4 of the links of 4 servers (requests not included)"));
    assert!(asked.is_some_and(|asked| (asked - 0.202).abs() < 1e-9), "{asked:?}");
    let (terms, asked) = traffic("kind = \"poisson\"\nload = 0.4\nhosts = \"0-3\"");
    assert_eq!(terms.as_deref(), Some("load 0.4 of the links of 4 hosts"));
    assert!(asked.is_some_and(|asked| (asked - 0.2).abs() < 1e-9), "{asked:?}");
    let (terms, _) =
        traffic("kind = \"poisson\"\nload = 0.4\ncapacity = \"400Gbps\"\nload_counts = \"wire\"");
    assert_eq!(terms.as_deref(), Some("load 0.4 of a capacity of 400Gbps (headers included)"));
    let (terms, _) = traffic("kind = \"incast\"\narrivals = \"poisson\"\nsenders = 3");
    assert_eq!(terms.as_deref(), Some("load 0.02 of the links of 8 hosts"));
}

#[test]
fn only_flows_without_end_have_no_bytes_however_many_others_there_are() {
    let bytes = |size: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 4\n[run]\nuntil = \"1ms\"\n[[workload]]\nkind = \"bulk\"\nsize = \"{size}\"\n"
        );
        let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
        let facts = facts::facts(&scenario.unwrap_or_else(|error| panic!("{error}")), 1);
        facts["traffic"]["bytes"].as_u64()
    };
    // Two flows; 2^50 B is the size of a flow without end.
    assert_eq!(bytes("auto"), None);
    let many = bytes("900TB").expect("sizes");
    assert!(many > 1 << 50 && many % 900_000_000_000_000 == 0, "{many}");
}

#[test]
fn the_end_states_what_it_does_not_count_where_full_queues_drop_or_links_lose() {
    let left_out = |rest: &str| {
        let workload = "[[workload]]\nkind = \"incast\"\nsize = \"1MB\"\n";
        let found = checked(&format!("[topology]\nkind = \"star\"\nhosts = 5\n{workload}{rest}"));
        found["estimate"]["end_does_not_count"].as_str().map(str::to_string)
    };
    let short = "[transport]\nkind = \"tcp\"\n[switch.queue]\nkind = \"fifo\"\npackets = 20\n";
    let lossy = "[failures]\nloss = 0.001\n";
    assert_eq!(left_out(""), None);
    assert_eq!(left_out(short).as_deref(), Some("timeouts of senders whose packets full queues drop"));
    assert_eq!(left_out("[switch.pfc]\nenabled = false\n"), left_out(short));
    assert_eq!(
        left_out(lossy).as_deref(),
        Some("timeouts of senders whose packets are lost at random or by a failure")
    );
    assert_eq!(
        left_out(&format!("{short}{lossy}")).as_deref(),
        Some("timeouts of senders whose packets full queues drop, or are lost at random or by a failure")
    );
    // A run that ends at a time has no estimated end.
    assert_eq!(left_out(&format!("{short}[run]\nuntil = \"1ms\"\n")), None);
}

/// A scenario on a star of two hosts with this link, and the rest.
fn star(link: &str, rest: &str) -> Scenario {
    let text = format!("[topology]\nkind = \"star\"\nhosts = 2\nhost_link = {{ {link} }}\n{rest}");
    let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
    scenario.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_run_that_outlives_the_clock_is_warned_of_with_what_makes_it_long() {
    let bulk = "[[workload]]\nkind = \"bulk\"\nsize = \"2MB\"\n";
    let slow = star("rate = \"1bps\", delay = \"10s\"", bulk);
    let [warning] = &slow.foreseen(None, 0)[..] else { panic!("{:?}", slow.foreseen(None, 0)) };
    for part in [
        "run.until = flows-done: the run would end after more than 107 days, the limit of the clock",
        "the slowest link (host0 - s0) has a rate of 1bps, at which the 2MB of all flows take about 16000000s",
        "a link (host0 - s0) has a delay of 10s",
    ] {
        assert!(warning.contains(part), "{part} in {warning}");
    }
    let warnings = facts::facts(&slow, 1)["warnings"].clone();
    assert!(warnings.as_array().is_some_and(|all| all.iter().any(|one| one == warning)), "{warnings}");
    assert_eq!(facts::facts(&slow, 1)["estimate"]["end_is_beyond_clock"], true);
    // The end is set, or the link is fast.
    for fits in [
        star("rate = \"1bps\", delay = \"10s\"", &format!("{bulk}[run]\nuntil = \"1000s\"\n")),
        star("rate = \"1Gbps\"", bulk),
    ] {
        assert_eq!(fits.foreseen(None, 0), Vec::<String>::new());
    }
}

#[test]
fn samples_that_dominate_a_run_are_named_with_all_of_their_keys() {
    let measure = |keys: &str| {
        star(
            "rate = \"100Gbps\"",
            &format!("[[workload]]\nkind = \"bulk\"\nsize = \"1MB\"\nstart = \"1000s\"\n[measure]\n{keys}"),
        )
    };
    let both =
        "queues = { ports = \"*\", every = \"10ns\" }\nutilisation = { ports = \"*\", every = \"10ns\" }\n";
    let found = measure(both).foreseen(None, 0);
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert!(warning.contains("measure.queues.every = 10ns: "), "{warning}");
    assert!(warning.contains("measure.utilisation.every = 10ns: "), "{warning}");
    // Each is half of all that the run does, on any machine: no seconds are named.
    assert_eq!(warning.matches("about 50 % of the estimated CPU time of the run").count(), 2, "{warning}");
    assert!(!warning.contains(" s of CPU time"), "{warning}");
    assert_eq!(measure(&both.replace("10ns", "10s")).foreseen(None, 0), Vec::<String>::new());
}

#[test]
fn a_run_beyond_the_memory_of_the_machine_says_what_takes_it() {
    let scenario = star(
        "rate = \"100Gbps\"",
        "[[workload]]\nkind = \"permutation\"\nrepeat = 1000000000\nevery = \"1ps\"\n",
    );
    let (estimate, _) = Estimate::of(&scenario, 1, 1000);
    let warning = estimate.machine_warning(&scenario, Bytes(16_000_000_000)).expect("too much");
    assert!(
        warning.starts_with("run.memory = none: the run will probably need about ")
            && warning.contains("and this machine has 16GB")
            && warning.contains("workload.0: 2000000000 flows"),
        "{warning}"
    );
    assert_eq!(estimate.machine_warning(&scenario, Bytes(u64::MAX)), None);
}

#[test]
fn changes_of_the_network_count_with_the_routes_that_they_lead_to() {
    let events = |count: usize| {
        let event = |i: usize| {
            let change = ["down", "up"][i % 2];
            format!(
                "[[failures.event]]\nat = \"{}us\"\nlink = [\"host0\", \"s0\"]\nchange = \"{change}\"\n",
                2 * i + 1
            )
        };
        let events: String = (0..count).map(event).collect();
        star(
            "rate = \"100Gbps\"",
            &format!("[run]\nuntil = \"1s\"\n[[workload]]\nkind = \"permutation\"\n{events}"),
        )
    };
    let (none, many) = (events(0).estimate(), events(1000).estimate());
    let cost = failing::cost(&events(1000), Time::MAX);
    assert_eq!((cost.changes, cost.states), (1000, 2));
    assert!((many.seconds - none.seconds - cost.seconds).abs() < 1e-9, "{} {}", many.seconds, none.seconds);
    assert!((1e-3..2e-2).contains(&cost.seconds), "{cost:?}");
    assert!(many.memory.routes > none.memory.routes);
    assert_eq!(failing::cost(&events(1000), Time::from_us(100)).changes, 50);
}

/// The warning of a dumbbell of four hosts at each side, all links 100 Gb/s, whose flows all cross the
/// bottleneck.
fn overload_of(load: &str, duration: &str) -> Option<String> {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 4\nright = 4\n[transport]\nkind = \"rdma\"\n[[workload]]\nkind = \"poisson\"\n\
         destinations = \"inter-rack\"\nsize = \"20KB\"\nload = {load}\nduration = \"{duration}\"\n"
    );
    let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let (estimate, size) = Estimate::of(&scenario, 1, 100_000);
    let all = estimate.warnings(&scenario, &size, None);
    all.into_iter().find(|warning| warning.starts_with("workload: flows bring"))
}

#[test]
fn more_than_a_link_carries_is_named_with_its_share() {
    // Half of every host's link is twice the bottleneck, with headers a little more; a quarter of the others'
    // is one.
    let found = overload_of("0.5", "10ms").unwrap_or_default();
    assert!(found.contains(" other switches can carry"), "{found}");
    assert!(found.starts_with("workload: flows bring 2"), "{found}");
    assert_eq!(overload_of("0.2", "10ms"), None);
    // Too little has arrived to tell it from chance.
    assert_eq!(overload_of("0.27", "20us"), None);
}

#[test]
fn large_flows_hide_no_overload() {
    // Of 400 Gb/s of hosts 50 % go to the other leaf over 20 Gb/s: 5.7 times as much, with headers 6.1.
    let text = |load: f64, duration: &str| {
        format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\nfabric_link = {{ rate = \
             \"10Gbps\" }}\n[[workload]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = {load}\nduration = \"{duration}\"\n"
        )
    };
    let share = share_of(&text(0.5, "20ms"), " other switches can carry");
    assert!((450.0..800.0).contains(&share), "{share}");
}

#[test]
fn an_overload_by_the_configured_load_does_not_depend_on_the_largest_flows_that_were_drawn() {
    // 20 Gb/s of payload for a host with a link of 10.
    for seed in 1..=6 {
        let share = share_of(
            &format!(
                "seed = {seed}\n[topology]\nkind = \"star\"\nhosts = 16\n[[topology.override]]\nbetween = [\"host5\", \"s0\"]\n\
                 rate = \"10Gbps\"\n[[workload]]\nkind = \"poisson\"\nsizes = \"fb-hadoop\"\nload = 0.2\n\
                 capacity = \"1600Gbps\"\nduration = \"10ms\"\n"
            ),
            "host5 can carry",
        );
        assert!((150.0..270.0).contains(&share), "{seed}: {share}");
    }
}

#[test]
fn rounds_that_bring_more_than_a_link_carries_are_an_overload_however_few_they_are() {
    let text = |every: &str, workload: &str| {
        format!(
            "[topology]\nkind = \"star\"\nhosts = 13\nhost_link = {{ rate = \"100Gbps\" }}\n[[workload]]\n{workload}\n\
             every = \"{every}\"\nsize = \"100KB\"\n"
        )
    };
    let incast = "kind = \"incast\"\nreceiver = \"0\"\narrivals = \"periodic\"\ncount = 20\n";
    // 12 x 100 KB with headers, 126 KB a microsecond, in the time of 1 MB; and of 1.5 MB.
    let share = share_of(&text("80us", incast), "the link to host0 can carry");
    assert!((125.0..132.0).contains(&share), "{share}");
    assert_eq!(overloads(&text("120us", incast)), [""; 0]);
    let rounds = "kind = \"permutation\"\nrepeat = 10\n";
    let share = share_of(&text("7us", rounds), " can carry");
    // With acknowledgements, which cross the same links.
    assert!((130.0..139.0).contains(&share), "{share}");
    assert_eq!(overloads(&text("10us", rounds)), [""; 0]);
}

#[test]
fn the_offered_load_of_rounds_is_that_of_as_many_periods() {
    for (repeat, every, load) in [(2, "100us", 0.8), (5, "100us", 0.8), (20, "200us", 0.4)] {
        let workload =
            format!("kind = \"permutation\"\nsize = \"1MB\"\nrepeat = {repeat}\nevery = \"{every}\"\n");
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 8\nhost_link = {{ rate = \"100Gbps\" }}\n[[workload]]\n{workload}"
        );
        let found = checked(&text)["traffic"]["offered_load"].as_f64();
        assert!(found.is_some_and(|found| (found - load).abs() < 1e-9), "{repeat} every {every}: {found:?}");
    }
}

#[test]
fn few_flows_offer_the_configured_load_on_average() {
    let of = |seed: u32, amount: &str| {
        let facts = checked(&format!(
            "seed = {seed}\n[topology]\nkind = \"star\"\nhosts = 8\n\
             [[workload]]\nkind = \"poisson\"\nsize = \"100KB\"\nload = 0.6\n{amount}\n"
        ));
        facts["traffic"]["offered_load"].as_f64().expect("a number")
    };
    // The time that ten intervals take varies by a third: the mean of 400 runs is within 0.03 of the load.
    for amount in ["count = 10", "duration = \"17us\""] {
        let mean = (1..=400).map(|seed| of(seed, amount)).sum::<f64>() / 400.0;
        assert!((mean - 0.6).abs() < 0.03, "{amount}: {mean}");
    }
}

#[test]
fn jobs_count_with_the_rows_of_their_ranks_and_without_a_list_of_what_waits() {
    let memory = |repeat: u32| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 32\n[[workload]]\nkind = \"collective\"\noperation = \"all-reduce\"\n\
             bytes = \"32KB\"\nrepeat = {repeat}\nmessages = false\n"
        );
        let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
        scenario.unwrap_or_else(|error| panic!("{error}")).estimate().memory
    };
    // Per step 32 rows of ranks and one of the job; 992 messages, of which each waits for one.
    let [few, many] = [memory(5), memory(500)];
    assert_eq!(few.tables, 5 * 33 * 250 * 4);
    assert_eq!(many.tables, 500 * 33 * 250 + 2_500_000);
    assert!(few.traces > 0 && many.traces == 0, "{few:?} {many:?}");
}

#[test]
fn what_starts_after_the_end_of_the_run_costs_nothing() {
    let estimate = |workloads: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 32\n[run]\nuntil = \"1ms\"\n[[workload]]\n\
             kind = \"permutation\"\nsize = \"100KB\"\n{workloads}"
        );
        let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
        scenario.unwrap_or_else(|error| panic!("{error}")).estimate()
    };
    let alone = estimate("");
    let late =
        |workload: &str, start: &str| estimate(&format!("[[workload]]\n{workload}\nstart = \"{start}\"\n"));
    for workload in [
        "kind = \"collective\"\noperation = \"all-to-all\"\nbytes = \"32MB\"\nrepeat = 100",
        "kind = \"collective\"\noperation = \"all-reduce\"\nbytes = \"32MB\"\nmessages = false",
        "kind = \"collective\"\noperation = \"all-gather\"\nbytes = \"32MB\"\nscale_up_rate = \"1Tbps\"\n\
         ranks_per_host = 2",
        "kind = \"permutation\"\nsize = \"100MB\"",
        "kind = \"poisson\"\nload = 0.5\nduration = \"10ms\"",
    ] {
        let (found, begun) = (late(workload, "2ms"), late(workload, "500us"));
        assert_eq!(
            (found.replay.packet_hops, found.replay.flows, found.replay.end, found.seconds),
            (alone.replay.packet_hops, alone.replay.flows, alone.replay.end, alone.seconds),
            "{workload}"
        );
        let memory = |of: &Estimate| Memory { traces: 0, ..of.memory };
        assert_eq!(memory(&found), memory(&alone), "{workload}");
        assert!(begun.seconds > alone.seconds && begun.memory.peak() > alone.memory.peak(), "{workload}");
    }
}

/// Of more flows than are replayed, those that start later than the run ends do not count with the others.
#[test]
fn flows_beyond_those_replayed_count_until_the_end_of_the_run() {
    let hops = |more: &str, flows: u64| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 8\n[run]\nuntil = \"10ms\"\n[[workload]]\nkind = \"poisson\"\n\
             load = 0.3\nsize = \"10KB\"\nduration = \"8ms\"\n{more}"
        );
        let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
        let estimate = scenario.unwrap_or_else(|error| panic!("{error}")).estimate_from(flows);
        estimate.replay.packet_hops
    };
    let late = "[[workload]]\nkind = \"permutation\"\nsize = \"1GB\"\nstart = \"20ms\"\n";
    let all = hops("", u64::MAX);
    for (more, flows) in [("", 2000), (late, 2000), (late, u64::MAX)] {
        let ratio = hops(more, flows) / all;
        assert!((0.9..1.1).contains(&ratio), "{flows}: {ratio}");
    }
}

/// What `check` reports of a scenario.
pub(super) fn checked(text: &str) -> serde_json::Value {
    let scenario = Scenario::load(text, "s.toml", Path::new("."), &[], None, Hooks::default());
    facts::facts(&scenario.unwrap_or_else(|error| panic!("{error}")), 1)
}

/// Its warnings of overload.
pub(super) fn overloads(text: &str) -> Vec<String> {
    let facts = checked(text);
    let warnings = facts["warnings"].as_array().into_iter().flatten().filter_map(|text| text.as_str());
    warnings.filter(|text| text.starts_with("workload: flows bring")).map(str::to_string).collect()
}

#[test]
fn the_oversubscription_is_the_highest_of_all_tiers_by_links_that_paths_use() {
    let workload = "[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let of = |topology: &str| {
        checked(&format!("[topology]\n{topology}\n{workload}"))["topology"]["oversubscription"].as_f64()
    };
    let clos = "kind = \"clos\"\ntiers = 3\npods = 2\nleaves = 4\nhosts_per_leaf = 2\nuplinks = 2\ncore_oversubscription = ";
    assert_eq!([1, 2, 4].map(|ratio| of(&format!("{clos}{ratio}"))), [1.0, 2.0, 4.0].map(Some));
    // 40 Gb/s of hosts in a pod, two links of 2.5 Gb/s to each of two cores.
    let pods = "kind = \"pods\"\npods = 4\nhosts_per_leaf = 2\nhost_link.rate = \"10Gbps\"\nfabric_link.rate = \"40Gbps\"\n\
                core_link.rate = \"2500Mbps\"";
    assert_eq!(of(pods), Some(4.0));
    // Two links between the switches with hosts, and one to a switch that no shortest path crosses.
    let node = |name: &str, kind: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let link = |(a, b): (&str, &str)| {
        format!("[[link]]\na = \"{a}\"\nb = \"{b}\"\nrate = \"10Gbps\"\ndelay = \"1us\"\n")
    };
    let hosts = ["h0", "h1", "h2", "h3"].map(|name| node(name, "host")).concat();
    let switches = ["a", "b", "c"].map(|name| node(name, "switch")).concat();
    let ends =
        [("h0", "a"), ("h1", "a"), ("h2", "b"), ("h3", "b"), ("a", "b"), ("a", "b"), ("a", "c"), ("c", "b")];
    let path = std::env::temp_dir().join(format!("weftline-unused-{}.toml", std::process::id()));
    std::fs::write(&path, hosts + &switches + &ends.map(link).concat()).unwrap();
    let found = of(&format!("kind = \"file\"\nfile = \"{}\"", path.display()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found, Some(1.0));
}

#[test]
fn the_oversubscription_is_that_of_the_links_that_are_up_all_the_time() {
    let until = |events: &str, run: &str| {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n\
             host_link.rate = \"100Gbps\"\nfabric_link.rate = \"100Gbps\"\n{run}[failures]\nevent = [{events}]\n\
             [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
        );
        checked(&text)["topology"]["oversubscription"].as_f64()
    };
    let of = |events: &str| until(events, "");
    let link = "link = [\"leaf0\", \"spine0\"]";
    let cases = [
        (String::new(), 1.0),
        (format!("{{ at = \"0s\", {link} }}"), 4.0 / 3.0),
        ("{ at = \"0s\", switch = \"spine0\" }, { at = \"0s\", switch = \"spine3\" }".to_string(), 2.0),
        (format!("{{ at = \"0s\", {link}, change = \"rate\", rate = \"50Gbps\" }}"), 4.0 / 3.5),
        (format!("{{ at = \"0s\", {link}, lasts = \"1us\" }}"), 1.0),
        (format!("{{ at = \"1us\", {link} }}"), 1.0),
    ];
    for (events, ratio) in cases {
        assert_eq!(of(&events), Some(ratio), "{events}");
    }
    // What changes only after the end of the run stays as it is.
    let lasts = format!("{{ at = \"0s\", {link}, lasts = \"1ms\" }}");
    let ends = |at: &str| until(&lasts, &format!("[run]\nuntil = \"{at}\"\n"));
    assert_eq!([ends("1ms"), ends("2ms")], [Some(4.0 / 3.0), Some(1.0)]);
}

#[test]
fn links_to_cores_and_single_links_can_be_overloaded() {
    let clos = "[topology]\nkind = \"clos\"\ntiers = 3\npods = 2\nleaves = 4\nhosts_per_leaf = 2\nuplinks = 2\n\
                core_oversubscription = 4\nhost_link = { rate = \"10Gbps\", delay = \"1us\" }\n\
                fabric_link = { rate = \"10Gbps\", delay = \"1us\" }\n[transport]\nkind = \"tcp\"\n[[workload]]\n\
                kind = \"poisson\"\nsize = \"100KB\"\ndestinations = \"inter-rack\"\nduration = \"10ms\"\nload = ";
    // Of eight hosts in a pod, 8 x 8 Gb/s x 4/7 with headers of 5 %, over 20 Gb/s.
    let found = overloads(&format!("{clos}0.8"));
    assert!(found.len() == 1 && found[0].contains(" the tier above "), "{found:?}");
    let share: f64 = found[0].split(' ').nth(3).and_then(|share| share.parse().ok()).expect("a share");
    assert!((170.0..220.0).contains(&share), "{found:?}");
    let end = checked(&format!("{clos}0.8"))["estimate"]["end_ns"].as_f64();
    assert!(end.is_some_and(|end| (17e6..24e6).contains(&end)), "{end:?}");
    assert_eq!(overloads(&format!("{clos}0.2")), [""; 0]);
    // Half of 7.5 Gb/s on a link of 2.5 Gb/s, where switches take no notice of it.
    let uneven = |balancer: &str| {
        overloads(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n\
             host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [[topology.override]]\nbetween = [\"spine1\", \"leaf*\"]\nrate = \"2500Mbps\"\n[switch]\n\
             balancer = {{ kind = \"{balancer}\" }}\n[[workload]]\nkind = \"poisson\"\nhosts = \"0-7\"\nto = \"8-15\"\n\
             size = \"20KB\"\nload = 0.6\ncapacity = \"12500Mbps\"\nduration = \"10ms\"\n"
        ))
    };
    for balancer in ["ecmp", "label", "spray"] {
        let found = uneven(balancer);
        assert!(found.len() == 1 && found[0].contains("the link from leaf0 to spine1"), "{found:?}");
    }
    assert_eq!(uneven("conga"), [""; 0]);
}

/// The share of the only overload, which is that of these links.
pub(super) fn share_of(text: &str, links: &str) -> f64 {
    let found = overloads(text);
    assert!(found.len() == 1 && found[0].contains(links), "{found:?}");
    found[0].split(' ').nth(3).and_then(|share| share.parse().ok()).expect("a share")
}

#[test]
fn a_balancer_by_destination_loads_the_links_of_its_destinations() {
    let with = |to: &str, slow: &str| {
        format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n\
             fabric_link = {{ rate = \"100Gbps\" }}\n[[topology.override]]\nbetween = [\"leaf0\", \"spine1\"]\nrate = \"{slow}\"\n\
             [switch]\nbalancer = {{ kind = \"destination\" }}\n[[workload]]\nkind = \"poisson\"\nsize = \"20KB\"\nload = 0.4\n\
             duration = \"1ms\"\nhosts = \"0-3\"\nto = \"{to}\"\n"
        )
    };
    // Four times 40 Gb/s, with headers of 9 %, all by the one spine of even numbers.
    let even = share_of(&with("8,10,12,14", "100Gbps"), "the link from leaf0 to spine0");
    assert!((160.0..190.0).contains(&even), "{even}");
    assert_eq!(overloads(&with("8,12", "10Gbps").replace("load = 0.4", "load = 0.2")), [""; 0]);
    let odd = share_of(&with("9,11,13,15", "10Gbps"), "the link from leaf0 to spine1");
    assert!((1600.0..1900.0).contains(&odd), "{odd}");
}

#[test]
fn hosts_with_several_links_count_for_each_of_them_and_for_the_switches_there() {
    let hpn = |planes: u32| {
        format!(
            "[topology]\nkind = \"hpn\"\nplanes = {planes}\nsegments = 2\nnodes_per_segment = 4\ngpus = 4\nspines = 1\n\
             host_link = {{ rate = \"100Gbps\" }}\nfabric_link = {{ rate = \"100Gbps\" }}\n[[workload]]\nkind = \"poisson\"\n\
             size = \"100KB\"\nload = 0.5\nduration = \"1ms\"\ndestinations = \"inter-rack\"\n"
        )
    };
    // Half of four hosts' links over one link up, with headers and acknowledgements of 9 % each, and chance.
    for planes in [1, 2] {
        let share = share_of(&hpn(planes), " other switches can carry");
        assert!((236.0..287.0).contains(&share), "{planes}: {share}");
    }
    let node = |(name, kind): (&str, &str)| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let kinds = [("a", "host"), ("b", "host"), ("c", "host"), ("s", "switch"), ("t", "switch")];
    let link = |host: &str, switch: &str, rate: &str| {
        format!("[[link]]\na = \"{host}\"\nb = \"{switch}\"\nrate = \"{rate}\"\ndelay = \"1us\"\n")
    };
    let links = ["a", "b", "c"].map(|host| link(host, "s", "100Gbps") + &link(host, "t", "10Gbps")).concat();
    let path = std::env::temp_dir().join(format!("weftline-unlike-{}.toml", std::process::id()));
    std::fs::write(&path, kinds.map(node).concat() + &links).unwrap();
    let of = |policy: &str| {
        format!(
            "[topology]\nkind = \"file\"\nfile = \"{}\"\n[host]\nnic_policy = \"{policy}\"\n[[workload]]\nkind = \"poisson\"\n\
             size = \"10KB\"\nload = 0.3\nduration = \"10ms\"\n",
            path.display()
        )
    };
    // Half of 33 Gb/s on links of 10, with headers and acknowledgements.
    let (half, all) = (share_of(&of("hash"), " t can carry"), overloads(&of("all")));
    std::fs::remove_file(&path).unwrap();
    assert!((185.0..217.0).contains(&half), "{half}");
    assert_eq!(all, [""; 0]);
}

#[test]
fn workloads_of_which_no_flow_is_replayed_have_their_load_and_their_time() {
    let text = "[topology]\nkind = \"star\"\nhosts = 8\nhost_link = { rate = \"10Gbps\", delay = \"1us\" }\n[[workload]]\n\
                kind = \"poisson\"\nsize = \"1KB\"\nload = 0.5\nduration = \"4ms\"\n[[workload]]\nkind = \"poisson\"\n\
                size = \"20KB\"\nhosts = \"1-7\"\nto = \"0\"\nload = 0.2\nstart = \"4ms\"\nduration = \"4ms\"\n";
    let load = |more: &str| {
        Scenario::load(&format!("{text}{more}"), "s.toml", Path::new("."), &[], None, Hooks::default())
    };
    let scenario = load("").unwrap_or_else(|error| panic!("{error}"));
    let (estimate, size) = Estimate::of(&scenario, 1, 4000);
    let shares = estimate.replay.spans.iter().map(|span| span.map(|span| span.share(size.last_start)));
    let shares: Vec<f64> = shares.flatten().collect();
    assert!(shares.len() == 2 && shares.iter().all(|share| (share - 0.5).abs() < 0.01), "{shares:?}");
    // Seven times a fifth of a link, with headers and chance, for 4 ms.
    let found = estimate.warnings(&scenario, &size, None);
    assert!(found.iter().any(|text| text.contains("the link to host0 can carry")), "{found:?}");
    assert!((9.2e6..10.5e6).contains(&estimate.replay.end.as_ns()), "{}", estimate.replay.end);
    // The second begins after the run.
    let scenario = load("[run]\nuntil = \"3ms\"\n").unwrap_or_else(|error| panic!("{error}"));
    let (estimate, size) = Estimate::of(&scenario, 1, 4000);
    assert_eq!(estimate.warnings(&scenario, &size, None), [""; 0]);
}

/// Seven hosts of a star that bring one 143 % of its link for 5 ms, and another workload.
fn hot(more: &str) -> String {
    format!(
        "[topology]\nkind = \"star\"\nhosts = 8\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[[workload]]\n\
         kind = \"poisson\"\nsize = \"20KB\"\nhosts = \"1-7\"\nto = \"0\"\nload = 0.2\nduration = \"5ms\"\n{more}"
    )
}

#[test]
fn no_other_workload_hides_an_overload() {
    let share = |more: &str| {
        let found = overloads(&hot(more));
        assert!(found.len() == 1 && found[0].contains("the link to host0"), "{found:?}");
        found[0].split(' ').nth(3).and_then(|share| share.parse::<f64>().ok()).expect("a share")
    };
    let alone = share("");
    assert!((130.0..160.0).contains(&alone), "{alone}");
    let longer = "[[workload]]\nkind = \"poisson\"\nsize = \"20KB\"\nload = 0.001\nduration = \"50ms\"\n";
    assert!((share(longer) - alone).abs() <= 3.0, "{}", share(longer));
    assert_eq!(
        share("[[workload]]\nkind = \"flows\"\nflows = [{ src = 1, dst = 2, size = \"1KB\" }]\n"),
        alone
    );
    assert_eq!(share("[[workload]]\nkind = \"closed-loop\"\nsize = \"20KB\"\nrequests = 10\n"), alone);
    // Each brings seven tenths, together for half of their times.
    let one = |start: &str, more: &str| {
        format!(
            "[[workload]]\nkind = \"poisson\"\nsize = \"20KB\"\nhosts = \"1-7\"\nto = \"0\"\nload = 0.1\nstart = \"{start}\"\n\
             duration = \"10ms\"\n{more}"
        )
    };
    let star = "[topology]\nkind = \"star\"\nhosts = 8\nhost_link = { rate = \"10Gbps\", delay = \"1us\" }\n";
    let two = |start: &str| overloads(&format!("{star}{}", one("0s", &one(start, ""))));
    assert!(two("5ms").len() == 1 && two("20ms").is_empty(), "{:?} {:?}", two("5ms"), two("20ms"));
}

#[test]
fn a_configured_load_counts_for_the_time_that_it_lasts() {
    let late = "[[workload]]\nkind = \"poisson\"\nsize = \"20KB\"\nload = 0.3\nstart = \"20ms\"\nduration = \"5ms\"\n";
    let traffic = &checked(&hot(late))["traffic"];
    let of = |key: &str| traffic[key].as_f64().expect("a number");
    assert!((of("offered_load_asked") - (0.175 + 0.3) / 5.0).abs() < 2e-3, "{traffic}");
    let within = 3.0 * of("offered_load_error");
    assert!((of("offered_load") - of("offered_load_asked")).abs() < within, "{traffic}");
    let term = traffic["offered_load_terms"][1].as_str().expect("a text");
    assert!(
        term.starts_with("load 0.3 of the links of 8 hosts in ") && term.ends_with(" % of the time"),
        "{term}"
    );
}
