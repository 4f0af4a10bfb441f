//! The estimated end of a job is within a factor of 1.5 of its end, whatever its time goes to: computations,
//! the pipeline's fill, messages within scale-up domains, or messages on the network. The estimated packets of
//! short flows are within a factor of 1.6 of the run's: how many joins of subflows they outlive is not known before.

use crate::common::{load, run_in};

/// 32 GPUs, 8 a node.
const RAIL: &str = r#"
[topology]
kind = "rail"
nodes = 4
gpus = 8
nodes_per_segment = 2
spines = 8

[transport]
mtu = "4KB"
recovery = "selective-repeat"
controller = { kind = "dcqcn" }

[[workload]]
"#;

/// The largest model that takes seconds as packets.
const MODEL: &str = r#"
kind = "training"
layers = 8
hidden = 512
sequence = 512
vocabulary = 4000
"#;

/// Of a run, the estimated end over that of its last step, and the estimated packet-hops over the real ones.
fn ratios(text: &str) -> (f64, f64) {
    let scenario = load(text, &[]).unwrap_or_else(|error| panic!("{error}: {text}"));
    let (_, outcome) = run_in(1, scenario.config().expect("a configuration"));
    let last = outcome.steps.iter().filter_map(|step| step.finish).max().expect("a step ended");
    let expected = scenario.estimate().replay;
    let hops = outcome.packet_hops.max(1) as f64;
    (expected.end.as_ns() / last.as_ns(), expected.packet_hops.max(1.0) / hops)
}

#[test]
fn the_estimated_end_of_a_job_is_within_half_as_much_again() {
    let scale_up = "scale_up_rate = \"3.6Tbps\"";
    let training = |keys: &str| format!("{RAIL}{MODEL}{keys}");
    let collective = |keys: &str| format!("{RAIL}kind = \"collective\"\noperation = \"all-reduce\"\n{keys}");
    let cases = [
        ("all", training(&format!("tensor = 8\npipeline = 2\nmicro_batches = 4\njitter = 0.02\n{scale_up}"))),
        ("deep", training(&format!("tensor = 8\npipeline = 4\nmicro_batches = 8\n{scale_up}"))),
        (
            "interleaved",
            training(&format!("tensor = 8\npipeline = 2\nvirtual_stages = 2\nmicro_batches = 4\n{scale_up}")),
        ),
        ("no pipeline", training(&format!("tensor = 8\nmicro_batches = 4\n{scale_up}"))),
        ("no tensor groups", training(&format!("tensor = 1\npipeline = 4\nmicro_batches = 4\n{scale_up}"))),
        ("experts", training("tensor = 1\nexpert = 8\nexperts = 8\nmicro_batches = 2")),
        (
            "experts inside",
            training(&format!("tensor = 1\nexpert = 8\nexperts = 8\nmicro_batches = 2\n{scale_up}")),
        ),
        ("scale-up alone", training(&format!("tensor = 8\nranks = 8\nmicro_batches = 4\n{scale_up}"))),
        ("small", collective("bytes = \"16KB\"\nranks = 16")),
        ("barrier", collective("ranks = 16").replace("all-reduce", "barrier")),
        ("all at once", collective("bytes = \"4MB\"").replace("all-reduce", "all-to-all")),
        ("on the network alone", training("tensor = 8\npipeline = 2\nmicro_batches = 2")),
        ("zero3", training(&format!("tensor = 8\nmicro_batches = 2\nsharding = \"zero3\"\n{scale_up}"))),
        ("no overlap", training(&format!("tensor = 8\nmicro_batches = 2\noverlap = false\n{scale_up}"))),
        ("slow links", training("tensor = 8\nmicro_batches = 2\nscale_up_rate = \"20Gbps\"")),
        (
            "stragglers",
            training(&format!(
                "tensor = 8\nslow_ranks = \"3\"\nslow_factor = 4.0\nteraflops = 1.0\n{scale_up}"
            )),
        ),
        ("two steps", training(&format!("tensor = 8\nsteps = 2\n{scale_up}"))),
        ("hierarchical", collective(&format!("algorithm = \"hierarchical\"\nbytes = \"64MB\"\n{scale_up}"))),
        (
            "slow domains",
            collective("algorithm = \"hierarchical\"\nbytes = \"16MB\"\nscale_up_rate = \"20Gbps\""),
        ),
        (
            "repeated",
            collective(&format!(
                "algorithm = \"hierarchical\"\nbytes = \"1MB\"\nrepeat = 5\ncompute = \"1ms\"\n{scale_up}"
            )),
        ),
        (
            "several ranks a host",
            collective(&format!("ranks_per_host = 4\nplacement = \"by-rail\"\nbytes = \"16MB\"\n{scale_up}")),
        ),
    ];
    // Four nodes of eight GPUs and four NICs: no ring of neighbours has more than one connection between two nodes.
    let nodes = |policy: &str, keys: &str| {
        format!(
            "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 4\ngpus = 1\nplanes = 4\nspines = 2\n\
             [host]\nnic_policy = \"{policy}\"\n[[workload]]{MODEL}ranks_per_host = 8\n{scale_up}\n{keys}"
        )
    };
    let shared = ["round-robin", "by-rail"].map(|policy| {
        [
            ("shared NICs", nodes(policy, "tensor = 8\nmicro_batches = 2")),
            ("shared NICs, one ring", nodes(policy, "tensor = 1")),
            ("shared NICs, pipeline", nodes(policy, "tensor = 2\npipeline = 4\nmicro_batches = 8")),
        ]
    });
    let all = cases.into_iter().chain(shared.into_iter().flatten()).map(|(name, text)| {
        let (end, hops) = ratios(&text);
        println!("{name}: {end:.2} of the end, {hops:.2} of the packet-hops");
        (name, end, hops)
    });
    for (name, end, hops) in all {
        assert!((1.0 / 1.5..1.5).contains(&end), "{name}: {end}");
        assert!((0.7..1.35).contains(&hops), "{name}: {hops} of the packet-hops");
    }
}

/// Operations whose ranks send to others of their host first, and to those of other hosts later.
#[test]
fn operations_among_ranks_that_share_hosts_are_estimated_by_their_messages() {
    let fabric = RAIL.replace("gpus = 8", "gpus = 4").replace("dcqcn", "none");
    for (operation, algorithm) in [
        ("all-reduce", "halving-doubling"),
        ("all-reduce", "double-tree"),
        ("all-gather", "halving-doubling"),
        ("all-to-all", "pairwise"),
        ("gather", "linear"),
        ("scatter", "linear"),
        ("barrier", "dissemination"),
    ] {
        for ranks in [2, 4] {
            let bytes = if operation == "barrier" { "" } else { "bytes = \"960KB\"\n" };
            let text = format!(
                "{fabric}kind = \"collective\"\noperation = \"{operation}\"\nalgorithm = \"{algorithm}\"\n{bytes}\
                 ranks_per_host = {ranks}\nscale_up_rate = \"1Tbps\"\n"
            );
            let (end, hops) = ratios(&text);
            println!("{operation} {algorithm} {ranks}: {end:.2} of the end, {hops:.2} of the packet-hops");
            assert!((1.0 / 1.5..1.5).contains(&end), "{operation} {algorithm} {ranks}: {end}");
            assert!(
                (0.7..1.35).contains(&hops),
                "{operation} {algorithm} {ranks}: {hops} of the packet-hops"
            );
        }
    }
}

/// Short flows over connections of their own: what opens and closes them, and their subflows, are most of the
/// packets.
#[test]
fn packets_that_open_connections_are_in_the_estimate() {
    let short = "[topology]\nkind = \"star\"\nhosts = 4\n[[workload]]\nkind = \"poisson\"\nload = 0.05\nduration = \"1ms\"\n";
    for (size, transport) in [
        ("100B", "kind = \"tcp\""),
        ("5KB", "kind = \"tcp\"\nfin = true"),
        ("100B", "kind = \"mptcp\"\nsubflows = 8"),
        ("5KB", "kind = \"mptcp\"\nsubflows = 4"),
        ("5KB", "kind = \"mptcp\"\nsubflows = 32"),
    ] {
        let text = format!("{short}size = \"{size}\"\n[transport]\n{transport}\n");
        let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}: {text}"));
        let (_, outcome) = run_in(1, scenario.config().expect("a configuration"));
        let hops = outcome.packet_hops;
        let ratio = scenario.estimate().replay.packet_hops / hops as f64;
        assert!((0.6..1.6).contains(&ratio), "{ratio} of {hops}: {transport}, {size}");
    }
}

/// A flow without an end is as fast as losses allow, not as its link.
#[test]
fn packets_of_endless_flows_under_loss_are_those_that_losses_allow() {
    for (controller, loss) in [("newreno", 0.001), ("cubic", 0.001), ("cubic", 0.0001)] {
        let text = format!(
            "[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\nhost_link = {{ rate = \"10Gbps\", delay = \"1ms\" }}\n\
             bottleneck_link = {{ rate = \"10Gbps\", delay = \"8ms\" }}\n[transport]\nkind = \"tcp\"\n\
             controller = {{ kind = \"{controller}\" }}\n[[workload]]\nkind = \"bulk\"\nhosts = \"0-1\"\nto = \"2-3\"\n\
             [failures]\nloss = {loss}\nloss_of = \"data\"\n[run]\nuntil = \"20s\"\n"
        );
        let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}: {text}"));
        let (_, outcome) = run_in(1, scenario.config().expect("a configuration"));
        let ratio = scenario.estimate().replay.packet_hops / outcome.packet_hops as f64;
        println!("{controller}, loss {loss}: {ratio:.2}");
        assert!(
            (1.0 / 1.5..1.5).contains(&ratio),
            "{controller} at {loss}: {ratio} of {}",
            outcome.packet_hops
        );
    }
}

/// Receivers ask at the rate of their own links for what a narrow link between drops, or trims to headers, which need a part of it.
#[test]
fn estimated_packets_are_those_that_receivers_ask_for_at_the_rate_of_their_links() {
    for (transport, queue) in [("phost", "fifo"), ("ndp", "priority")] {
        for (rate, senders) in [("100Gbps", 12), ("50Gbps", 12), ("10Gbps", 12), ("10Gbps", 1)] {
            let limit = if queue == "fifo" { ", packets = 0, limit = \"36KB\"" } else { "" };
            let text = format!(
                "[topology]\nkind = \"dumbbell\"\nleft = {senders}\nright = 1\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
                 bottleneck_link = {{ rate = \"{rate}\", delay = \"1us\" }}\n[transport]\nkind = \"{transport}\"\n\
                 [switch]\nqueue = {{ kind = \"{queue}\"{limit} }}\n\
                 [[workload]]\nkind = \"incast\"\nsenders = {senders}\nreceiver = {senders}\nsize = \"500KB\"\n"
            );
            let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}: {text}"));
            let (_, outcome) = run_in(1, scenario.config().expect("a configuration"));
            let ratio = scenario.estimate().replay.packet_hops / outcome.packet_hops as f64;
            println!("{transport} over {rate} from {senders}: {ratio:.2}");
            // The window of a single flow does not always allow what its receiver would ask for.
            let bound = if senders == 1 { 4.0 } else { 1.6 };
            assert!(
                (0.6..bound).contains(&ratio),
                "{transport} over {rate}: {ratio} of {}",
                outcome.packet_hops
            );
        }
    }
}

/// Of a scenario's estimate and its runs with a number of seeds: when the last flow has ended in half of them, and the
/// packet-hops, as ratios.
fn ratios_of_flows(text: &str, seeds: usize) -> (f64, f64) {
    let scenario = |seed: usize| {
        let text = format!("seed = {seed}\n{text}");
        load(&text, &[]).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let run = |seed: usize| {
        let (kept, outcome) = run_in(1, scenario(seed).config().expect("a configuration"));
        let last = kept.flows.iter().filter_map(|flow| flow.finish).max().expect("a flow ended");
        (last, outcome.packet_hops)
    };
    let mut runs: Vec<_> = (1..=seeds).map(run).collect();
    runs.sort_unstable();
    let (last, hops) = runs[seeds / 2];
    let expected = scenario(1).estimate().replay;
    (expected.end.as_ns() / last.as_ns(), expected.packet_hops / hops as f64)
}

/// Links that slow down, fail and come back while flows are under way: what is left takes the time that the
/// links need then, and what was lost waits for a timeout.
#[test]
fn flows_end_as_late_as_the_states_of_the_network_have_it() {
    let star = "[topology]\nkind = \"star\"\nhosts = 4\n";
    let leaves = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n\
                  host_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                  fabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let fat = "[topology]\nkind = \"fat-tree\"\nk = 4\n";
    let lone = "[[workload]]\nkind = \"incast\"\nsenders = 1\nreceiver = 1\nsize = \"5MB\"\n";
    let all = "[[workload]]\nkind = \"permutation\"\nsize = \"5MB\"\n";
    let (own, uplink) = ("link = [\"host1\", \"s0\"]", "link = [\"leaf0\", \"spine0\"]");
    let cases = [
        ("slow", star, lone, own, "change = \"rate\"\nrate = \"10Gbps\"\nlasts = \"1ms\""),
        ("slow for good", star, lone, own, "change = \"rate\"\nrate = \"10Gbps\""),
        ("down", star, lone, own, "lasts = \"3ms\""),
        ("down shortly", star, lone, own, "lasts = \"50us\""),
        ("uplink slow", leaves, all, uplink, "change = \"rate\"\nrate = \"10Gbps\""),
        ("uplink down", leaves, all, uplink, ""),
        ("spine down", leaves, all, "switch = \"spine0\"", "lasts = \"200us\""),
        ("switch of a pod down", fat, all, "switch = \"agg0\"", ""),
    ];
    let mut wrong = Vec::new();
    for (transport, tables) in [
        ("dctcp", "[transport]\ncontroller = { kind = \"dctcp\" }\n"),
        ("tcp", "[transport]\nkind = \"tcp\"\n"),
        ("ndp", "[transport]\nkind = \"ndp\"\n"),
    ] {
        for (name, topology, workload, place, change) in cases {
            let event = format!("[[failures.event]]\nat = \"100us\"\n{place}\n{change}\n");
            // Which flows take the slow next hop depends on the seed.
            let seeds = if name == "uplink slow" && transport != "ndp" { 9 } else { 1 };
            let (end, hops) = ratios_of_flows(&format!("{topology}{tables}{workload}{event}"), seeds);
            println!("{transport}, {name}: {end:.2} of the end, {hops:.2} of the packet-hops");
            // Links between switches that are exactly full trim more than is counted.
            let lowest = if name == "uplink slow" { 0.75 } else { 0.8 };
            if !(lowest..1.25).contains(&end) || !(0.65..1.5).contains(&hops) {
                wrong.push(format!("{transport}, {name}: {end:.2} of the end, {hops:.2} of the packet-hops"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An operation waits for its messages on a link that fails.
#[test]
fn jobs_wait_for_timeouts_after_failures() {
    for (transport, link, lasts) in [
        ("controller = { kind = \"dctcp\" }", "[\"host0\", \"leaf0\"]", "lasts = \"3ms\""),
        ("controller = { kind = \"dctcp\" }", "[\"leaf0\", \"spine1\"]", ""),
        ("kind = \"ndp\"", "[\"host0\", \"leaf0\"]", "lasts = \"3ms\""),
    ] {
        let (end, _) = ratios(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n[transport]\n{transport}\n\
             [[workload]]\nkind = \"collective\"\noperation = \"all-reduce\"\nbytes = \"16MB\"\n\
             [[failures.event]]\nat = \"300us\"\nlink = {link}\n{lasts}\n"
        ));
        println!("{transport}, {link}: {end:.2} of the end");
        assert!((0.8..1.25).contains(&end), "{transport}, {link}: {end}");
    }
}

/// Requests with windows of first packets: what is lost or trimmed of these, and what receivers of narrow links
/// request, is as much as a run sends.
#[test]
fn packets_that_receivers_request_are_within_half_as_many_again() {
    let star = |hosts: u32| format!("[topology]\nkind = \"star\"\nhosts = {hosts}\n");
    let leaves = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n\
                  host_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                  fabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let rail = "[topology]\nkind = \"rail\"\nnodes = 4\ngpus = 4\nnodes_per_segment = 2\nspines = 4\n";
    let narrow = |rate: &str| {
        format!(
            "[topology]\nkind = \"dumbbell\"\nleft = 4\nright = 4\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             bottleneck_link = {{ rate = \"{rate}\", delay = \"1us\" }}\n"
        )
    };
    let incast = |hosts: u32, size: &str| {
        let last = hosts - 1;
        let topology = star(hosts);
        format!(
            "{topology}[[workload]]\nkind = \"incast\"\nsenders = {last}\nreceiver = {last}\nsize = \"{size}\"\n"
        )
    };
    let operation = |topology: &str, operation: &str, bytes: &str| {
        format!(
            "{topology}[[workload]]\nkind = \"collective\"\noperation = \"{operation}\"\nbytes = \"{bytes}\"\n"
        )
    };
    let flows = |rate: &str, count: u32| {
        let (last, to) = (count - 1, count + 3);
        let topology = narrow(rate);
        format!(
            "{topology}[[workload]]\nkind = \"bulk\"\nhosts = \"0-{last}\"\nto = \"4-{to}\"\nsize = \"1MB\"\n"
        )
    };
    let cases = [
        ("incast of 5 KB", incast(32, "5KB")),
        ("incast of 20 KB", incast(32, "20KB")),
        ("incast of 50 KB", incast(32, "50KB")),
        ("incast of 500 KB", incast(8, "500KB")),
        ("all-to-all of 10 KB", operation(leaves, "all-to-all", "160KB")),
        ("all-to-all of 100 KB", operation(leaves, "all-to-all", "1600KB")),
        ("all-to-all on rails", operation(rail, "all-to-all", "1600KB")),
        ("all-gather on rails", operation(rail, "all-gather", "4MB")),
        ("two flows over one link", flows("100Gbps", 2)),
        ("two flows over a narrow link", flows("50Gbps", 2)),
        ("two flows over a very narrow link", flows("10Gbps", 2)),
        ("four flows over a narrow link", flows("50Gbps", 4)),
        ("four flows over a very narrow link", flows("10Gbps", 4)),
    ];
    let mut wrong = Vec::new();
    for transport in ["ndp", "phost"] {
        for (name, text) in &cases {
            let text = format!("{text}[transport]\nkind = \"{transport}\"\n");
            let (end, hops) = ratios_of_flows(&text, 1);
            println!("{transport}, {name}: {end:.2} of the end, {hops:.2} of the packet-hops");
            if !(0.65..1.5).contains(&hops) || !(0.5..1.5).contains(&end) {
                wrong.push(format!("{transport}, {name}: {end:.2} of the end, {hops:.2} of the packet-hops"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
