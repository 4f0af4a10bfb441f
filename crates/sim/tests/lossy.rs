//! Random small scenarios on links that lose packets of any kind: every flow ends, no byte goes astray, and the run ends by
//! itself.
//!
//! A few hundred are run with the other tests, each a second time cut into regions. Many more:
//!
//! ```text
//! LOSSY_FROM=0 LOSSY_SEEDS=100000 cargo test --release -p weftline-sim --test runs lossy:: -- --ignored --nocapture
//! ```
//!
//! A failure names its seed; `LOSSY_FROM=SEED LOSSY_SEEDS=1` repeats it and prints the scenario.

use crate::common::*;
use std::fmt::Write;
use std::time::{Duration, Instant};
use weftline_sim::config::{Config, LinkLoss};
use weftline_sim::engine::random::RandomStream;
use weftline_sim::measure::{Ending, Outcome};
use weftline_sim::units::Time;
use weftline_sim::{Execution, Simulation};

/// The transports that flows may run over, with what is drawn of their keys. A further one is one line.
const TRANSPORTS: &[(&str, Keys)] = &[
    ("phost", phost_keys),
    ("phost", |_| String::new()),
    ("pfabric", pfabric_keys),
    ("pfabric", |_| String::new()),
    ("fastpass", fastpass_keys),
    ("rdma", rdma_keys),
    ("tcp", tcp_keys),
    ("mptcp", mptcp_keys),
    ("ndp", ndp_keys),
    ("homa", homa_keys),
];

/// Draws keys of a transport: what follows its kind in an inline table.
type Keys = fn(&mut Draw) -> String;

/// Payload of a full packet, whatever the transport.
const MTUS: &[u64] = &[200, 1000, 1460, 4000];
/// Wall time after which a run counts as one that does not end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Draws a scenario, number by number.
struct Draw(RandomStream);

impl Draw {
    /// Between two numbers, both included.
    fn number(&mut self, min: u64, max: u64) -> u64 {
        min + self.0.below(max - min + 1)
    }

    /// Between two numbers, as often small as large.
    fn magnitude(&mut self, min: u64, max: u64) -> u64 {
        let ratio = max as f64 / min as f64;
        ((min as f64 * ratio.powf(self.0.uniform())) as u64).clamp(min, max)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    /// Once in this number of times.
    fn once_in(&mut self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    /// A key with one of these values, or left out.
    fn key(&mut self, text: &mut String, key: &str, values: &[&str]) {
        if !self.once_in(2) {
            let value = self.of(values);
            write!(text, ", {key} = {value}").unwrap();
        }
    }
}

fn phost_keys(draw: &mut Draw) -> String {
    let mut text = String::new();
    draw.key(&mut text, "free_tokens", &["0", "1", "3", "8", "40", "500"]);
    draw.key(&mut text, "free_tokens_for", &["\"short\"", "\"every\""]);
    draw.key(&mut text, "window", &["1", "2", "8", "100"]);
    draw.key(&mut text, "token_life", &["1.0", "1.5", "4.0", "1000.0"]);
    draw.key(&mut text, "token_interval", &["0.5", "1.0", "1.03", "3.0"]);
    draw.key(&mut text, "hold", &["true", "false"]);
    draw.key(&mut text, "first_wait", &["0.0", "2.0", "50.0"]);
    draw.key(&mut text, "retoken", &["0.0", "1.0", "9.0", "100.0"]);
    draw.key(&mut text, "downgrade", &["0.0", "1.0", "5.0", "25.0", "200.0", "2000.0"]);
    draw.key(&mut text, "wake_on_data", &["true", "false"]);
    draw.key(&mut text, "short_flow", &["0", "2", "8", "1000"]);
    draw.key(&mut text, "class", &["1", "3", "5"]);
    draw.key(&mut text, "spray", &["true", "false"]);
    draw.key(&mut text, "request_timeout", &["\"20us\"", "\"100us\"", "\"2ms\""]);
    text
}

fn pfabric_keys(draw: &mut Draw) -> String {
    let mut text = String::new();
    let window = draw.of(&[0u64, 0, 1, 2, 12, 100]);
    if window > 0 {
        let more = draw.of(&[0, 3, 50]);
        write!(text, ", initial_window = {window}, max_window = {}", window + more).unwrap();
    }
    draw.key(&mut text, "probe_after", &["0", "1", "5"]);
    draw.key(&mut text, "queue_limit", &["\"10KB\"", "\"36KiB\"", "\"500KB\""]);
    draw.key(&mut text, "class", &["1", "4", "7"]);
    draw.key(&mut text, "spray", &["true", "false"]);
    draw.key(&mut text, "priority", &["\"remaining\"", "\"deadline\""]);
    text
}

fn fastpass_keys(draw: &mut Draw) -> String {
    let mut text = String::new();
    // One arbiter serves all: what concerns it is left as it is.
    draw.key(&mut text, "retry", &["\"20us\"", "\"200us\""]);
    draw.key(&mut text, "request_timeout", &["\"100us\"", "\"1ms\""]);
    draw.key(&mut text, "class", &["1", "3", "6"]);
    draw.key(&mut text, "spray", &["true", "false"]);
    text
}

fn rdma_keys(draw: &mut Draw) -> String {
    // Short, as it doubles with every timeout in a row.
    let mut text = format!(", rto = \"{}\"", draw.of(&["300us", "1ms"]));
    let controller = draw.of(&[
        "hpcc",
        "dcqcn",
        "timely",
        "dctcp",
        "none",
        "newreno",
        "cubic",
        "bic",
        "vegas",
        "tcp.dctcp",
        "bbr",
        "bbr3",
        "powertcp",
        "theta-powertcp",
        "swift",
    ]);
    write!(text, ", controller = {{ kind = \"{controller}\" }}").unwrap();
    draw.key(&mut text, "recovery", &["\"go-back-n\"", "\"selective-repeat\"", "\"irn\""]);
    draw.key(&mut text, "nack_interval", &["\"10us\"", "\"500us\""]);
    text
}

fn tcp_keys(draw: &mut Draw) -> String {
    // Short, because they double with every timeout in a row; the limits allow for that time.
    let mut text = format!(
        ", profile = \"{}\", rto_min = \"{}\", rto_syn = \"{}\", rto_max = \"20ms\", retries = 1000, syn_retries = 1000",
        draw.of(&["rfc", "rfc", "ns3-3.35"]),
        draw.of(&["300us", "2ms"]),
        draw.of(&["300us", "5ms"])
    );
    let controller = draw.of(&["newreno", "cubic", "bic", "vegas", "dctcp", "bbr", "bbr3"]);
    write!(text, ", controller = {{ kind = \"{controller}\" }}").unwrap();
    draw.key(&mut text, "receive_buffer", &["\"20KB\"", "\"100KB\""]);
    draw.key(&mut text, "app_read_rate", &["\"50Mbps\"", "\"2Gbps\""]);
    draw.key(&mut text, "ack_every", &["1", "2", "5"]);
    draw.key(&mut text, "ack_delay", &["\"20us\"", "\"1ms\""]);
    draw.key(&mut text, "loss_probe", &["true", "false"]);
    draw.key(&mut text, "dsack", &["true", "false"]);
    draw.key(&mut text, "nagle", &["true", "false"]);
    draw.key(&mut text, "fin", &["true", "false"]);
    draw.key(&mut text, "f_rto", &["false"]);
    draw.key(&mut text, "ecn", &["\"classic\"", "\"exact\""]);
    draw.key(&mut text, "pacing", &["\"window\"", "\"off\""]);
    text
}

fn mptcp_keys(draw: &mut Draw) -> String {
    // Short, because they double with every timeout in a row; the limits allow for that time.
    let mut text = format!(
        ", rto_min = \"{}\", rto_syn = \"{}\", rto_max = \"20ms\", retries = 1000, syn_retries = 1000, send_buffer = \"1MB\"",
        draw.of(&["300us", "2ms"]),
        draw.of(&["300us", "5ms"])
    );
    let controller = draw.of(&["lia", "olia", "balia", "newreno", "cubic", "bbr"]);
    write!(text, ", controller = {{ kind = \"{controller}\" }}").unwrap();
    draw.key(&mut text, "subflows", &["1", "2", "3", "8"]);
    draw.key(&mut text, "version", &["0", "1"]);
    draw.key(&mut text, "join", &["\"confirmed\"", "\"at-once\""]);
    draw.key(&mut text, "scheduler", &["\"min-rtt\"", "\"round-robin\"", "\"redundant\"", "\"linux\""]);
    draw.key(&mut text, "receive_buffer", &["\"20KB\"", "\"100KB\""]);
    draw.key(&mut text, "fail_after", &["1", "2", "1000"]);
    draw.key(&mut text, "rejoin", &["\"100us\"", "\"10ms\"", "\"0s\""]);
    draw.key(&mut text, "reinject", &["true", "false"]);
    draw.key(&mut text, "opportunistic", &["true", "false"]);
    draw.key(&mut text, "penalise", &["true", "false"]);
    draw.key(&mut text, "sack_blocks", &["0", "1"]);
    text
}

fn ndp_keys(draw: &mut Draw) -> String {
    let mut text = String::new();
    draw.key(&mut text, "first_window", &["1", "2", "15", "100"]);
    draw.key(&mut text, "pull_share", &["0.5", "1.0"]);
    draw.key(&mut text, "rto", &["\"100us\"", "\"1ms\""]);
    draw.key(&mut text, "class", &["1", "4", "6"]);
    draw.key(&mut text, "spray", &["true", "false"]);
    text
}

fn homa_keys(draw: &mut Draw) -> String {
    // Packets of one size, as those of the others are counted.
    let mut text = String::from(", unscheduled_header = \"0B\"");
    draw.key(&mut text, "rtt_bytes", &["\"6KB\"", "\"20KB\"", "\"200KB\""]);
    draw.key(&mut text, "priorities", &["2", "5", "8"]);
    draw.key(&mut text, "overcommit", &["1", "2", "20"]);
    draw.key(&mut text, "rto", &["\"100us\"", "\"1ms\""]);
    draw.key(&mut text, "spray", &["true", "false"]);
    text
}

/// What differs between flows of different transports in a scenario does not matter here: one packet size for all.
fn transport(draw: &mut Draw, mtu: u64, policy: &str) -> String {
    let (kind, keys) = draw.of(TRANSPORTS);
    // All pHost flows of a host are ordered by one policy.
    let policy = if kind == "phost" { format!(", policy = \"{policy}\"") } else { String::new() };
    let segment = if kind.ends_with("tcp") { "mss" } else { "mtu" };
    format!("{{ kind = \"{kind}\", {segment} = \"{mtu}B\"{policy}{} }}", keys(draw))
}

fn link(draw: &mut Draw, mbps: u64) -> String {
    format!("{{ rate = \"{mbps}Mbps\", delay = \"{}ns\" }}", draw.magnitude(20, 5_000))
}

/// A network: its table, and how many hosts it has.
fn network(draw: &mut Draw) -> (String, u64) {
    const MBPS: &[u64] = &[1_000, 3_333, 10_000, 25_000, 40_000, 100_000, 400_000];
    let (host, fabric) = (draw.of(MBPS), draw.of(MBPS));
    let (host, fabric) = (link(draw, host), link(draw, fabric));
    match draw.number(0, 3) {
        0 => {
            let hosts = draw.number(2, 9);
            (format!("kind = \"star\"\nhosts = {hosts}\nhost_link = {host}\n"), hosts)
        }
        1 => {
            let (left, right) = (draw.number(1, 4), draw.number(1, 4));
            let text = format!(
                "kind = \"dumbbell\"\nleft = {left}\nright = {right}\nhost_link = {host}\nbottleneck_link = {fabric}\n"
            );
            (text, left + right)
        }
        2 => {
            let (leaves, spines, hosts) = (draw.number(2, 3), draw.number(1, 4), draw.number(1, 4));
            let text = format!(
                "kind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n\
                 host_link = {host}\nfabric_link = {fabric}\n"
            );
            (text, leaves * hosts)
        }
        _ => (format!("kind = \"fat-tree\"\nk = 4\nhost_link = {host}\nfabric_link = {fabric}\n"), 16),
    }
}

fn switch(draw: &mut Draw) -> String {
    let mut text = String::from("[switch]\n");
    let mut line = |draw: &mut Draw, key: &str, values: &[&str]| {
        if draw.once_in(3) {
            writeln!(text, "{key} = {}", draw.of(values)).unwrap();
        }
    };
    let (limits, headers) = (["\"10KB\"", "\"36KiB\"", "\"200KB\""], ["\"40B\"", "\"64B\"", "\"1500B\""]);
    // Headroom for pauses does not fit into a small buffer.
    let small = ["\"100KB\"\npfc.enabled = false", "\"1MB\"\npfc.enabled = false", "\"64MiB\""];
    line(draw, "buffer", &small);
    line(draw, "balancer.kind", &["\"label\"", "\"spray\"", "\"ecmp\"", "\"destination\""]);
    if draw.once_in(2) {
        let limit = draw.of(&limits);
        let queue = match draw.number(0, 3) {
            0 => "kind = \"fifo\"".to_string(),
            1 => format!("kind = \"pfabric\", limit = {limit}"),
            2 => format!("kind = \"priority\", limit = {limit}, drop = \"tail\""),
            _ => format!("kind = \"priority\", limit = {limit}"),
        };
        writeln!(text, "queue = {{ {queue} }}").unwrap();
    }
    match draw.number(0, 2) {
        0 => {}
        1 => writeln!(text, "forwarding = \"cut-through\"\ncut_through_header = {}", draw.of(&headers))
            .unwrap(),
        _ => writeln!(text, "forwarding = \"ideal-cut-through\"\ncut_through_header = {}", draw.of(&headers))
            .unwrap(),
    }
    text
}

/// A handful of flows, some of them simultaneous, some with deadlines, of some tenants.
fn flows(draw: &mut Draw, hosts: u64, mtu: u64) -> String {
    let mut text = String::from("kind = \"flows\"\nflows = [\n");
    let (count, receiver) = (draw.number(1, 10), draw.number(0, hosts - 1));
    let incast = draw.once_in(2);
    for _ in 0..count {
        let src = draw.number(0, hosts - 1);
        let other = (src + draw.number(1, hosts - 1)) % hosts;
        let dst = if incast && src != receiver { receiver } else { other };
        let size = draw.magnitude(1, 100 * mtu);
        let start = if draw.once_in(3) { draw.magnitude(1, 100_000) } else { 0 };
        write!(text, "{{ src = {src}, dst = {dst}, size = \"{size}B\", start = \"{start}ns\"").unwrap();
        if draw.once_in(2) {
            write!(text, ", deadline = \"{}ns\"", start + draw.magnitude(1_000, 10_000_000)).unwrap();
        }
        writeln!(text, ", group = \"tenant{}\" }},", draw.number(0, 2)).unwrap();
    }
    text + "]\n"
}

fn workload(draw: &mut Draw, hosts: u64, mtu: u64) -> String {
    let size = draw.magnitude(1, 50 * mtu);
    match draw.number(0, 5) {
        0 => format!("kind = \"permutation\"\nsize = \"{size}B\"\n"),
        1 => format!(
            "kind = \"poisson\"\nsize = \"{size}B\"\nload = 0.{}\ncount = {}\n",
            draw.number(1, 9),
            draw.number(1, 20)
        ),
        2 if hosts > 2 => format!("kind = \"incast\"\nsize = \"{size}B\"\n"),
        // Half of 1 Gb/s: a response in 16 ns a byte.
        3 => format!(
            "kind = \"request-response\"\nsize = \"{size}B\"\ncapacity = \"1Gbps\"\nduration = \"{}ns\"\n\
             connections = {}\npersistent = {}\n",
            16 * size * draw.number(1, 20),
            draw.number(1, 2),
            !draw.once_in(4)
        ),
        _ => flows(draw, hosts, mtu),
    }
}

/// The scenario of a seed: its text, its packet size, and what its links lose.
fn scenario(seed: u64) -> (String, u64, LinkLoss) {
    let mut draw = Draw(RandomStream::new(seed, "lossy"));
    let draw = &mut draw;
    let (mtu, (network, hosts)) = (draw.of(MTUS), network(draw));
    let policies = ["shortest-remaining", "earliest-deadline", "tenant-round-robin", "tenant-least-recent"];
    let policy = draw.of(&policies);
    let mut text = format!("seed = {seed}\n[topology]\n{network}{}", switch(draw));
    let keys = transport(draw, mtu, policy);
    let keys = keys.strip_prefix("{ ").and_then(|keys| keys.strip_suffix(" }")).unwrap_or(&keys);
    writeln!(text, "[transport]\n{}", keys.replace(", ", "\n")).unwrap();
    for _ in 0..draw.number(1, 3) {
        text += "[[workload]]\n";
        text += &workload(draw, hosts, mtu);
        if draw.once_in(2) {
            writeln!(text, "transport = {}", transport(draw, mtu, policy)).unwrap();
        }
    }
    if text.contains("\"ndp\"") {
        // Its queues trim packets: they have no rule for drops.
        text = text.replace(", drop = \"tail\"", "");
    }
    if text.contains("phost") {
        // Queues with equal classes are refused where pHost sends short flows above long ones.
        text = text.replace("{ kind = \"fifo\" }", "{ kind = \"priority\" }");
        if !text.contains("queue = ") {
            text = text.replace("[switch]\n", "[switch]\nqueue = { kind = \"priority\" }\n");
        }
    }
    if draw.once_in(3) {
        writeln!(text, "[host]\npacket_time = \"{}ns\"", draw.magnitude(10, 2_000)).unwrap();
    }
    // Far beyond every timeout here.
    text += "[run]\ngrid = \"100us\"\nstall = \"100s\"\n";
    if draw.once_in(2) {
        text += "[measure]\ngoodput = { by = \"group\", every = \"100us\" }\n";
    }
    // Packets of one kind, of a few, or of all.
    let kinds = [LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS, LinkLoss::control(0), LinkLoss::control(1)];
    let kinds = match draw.number(0, 2) {
        0 => LinkLoss::ALL,
        1 => draw.of(&kinds),
        _ => draw.number(1, u64::from(u32::MAX)) as u32,
    };
    let share = draw.magnitude(1, 200) as f64 / 1000.0;
    (text, mtu, LinkLoss { share, kinds })
}

fn config(text: &str, loss: LinkLoss) -> Config {
    let scenario = load(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut config = scenario.config().expect("a configuration");
    config.failures.loss = Some(loss);
    config
}

/// Every flow is there and has ended, with as many packets as it takes, or more where a window may cut them; all payload was
/// delivered, once.
fn check(kept: &Kept, outcome: &Outcome, mtu: u64, text: &str) {
    // Windows cut packets, and so does the boundary of what Homa sends without a grant.
    let cut = text.contains("app_read_rate") || text.contains("homa");
    let unfinished: Vec<_> = kept.flows.iter().filter(|flow| flow.finish.is_none()).collect();
    assert_eq!(outcome.ending, Ending::Done, "at {}: {unfinished:?}", outcome.end);
    assert_eq!((outcome.flows_done, kept.flows.len() as u64), (outcome.flows, outcome.flows));
    for flow in &kept.flows {
        assert!(flow.finish.is_some_and(|finish| finish > flow.start), "{flow:?}");
        assert!(flow.finish.is_some_and(|finish| finish - flow.start >= flow.ideal), "{flow:?}");
        assert!(flow.ideal > Time::ZERO, "{flow:?}");
        assert!(flow.packets_sent >= flow.size.div_ceil(mtu), "{flow:?}");
        let whole = flow.size.div_ceil(mtu) + flow.packets_retransmitted;
        assert!(flow.packets_sent == whole || cut && flow.packets_sent > whole, "{flow:?}");
    }
    if !kept.samples.is_empty() {
        let bits: f64 = kept.samples.iter().map(|sample| sample.value * 100e-6).sum();
        let sent: u64 = kept.flows.iter().map(|flow| flow.size).sum();
        assert_eq!((bits / 8.0).round(), sent as f64, "bytes delivered");
    }
}

#[test]
fn every_flow_ends_whatever_links_lose() {
    for seed in 0..300 {
        let (text, mtu, loss) = scenario(seed);
        println!("seed {seed}: {loss:?}\n{text}");
        let (kept, outcome) = run(config(&text, loss));
        check(&kept, &outcome, mtu, &text);
    }
}

/// One after the other; another execution with each.
#[test]
#[ignore = "minutes; see the head of this file"]
fn every_flow_of_very_many_scenarios_ends() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a whole number"))
    };
    let (from, seeds) = (number("LOSSY_FROM", 0), number("LOSSY_SEEDS", 1000));
    let (mut failed, mut slowest) = (Vec::new(), (Duration::ZERO, 0));
    let (mut hops, mut lost, mut flows) = (0, 0, 0);
    for seed in from..from + seeds {
        let (text, mtu, loss) = scenario(seed);
        if seeds == 1 {
            println!("{loss:?}\n{text}");
        }
        let windows = [None, Some(true), Some(false)][(seed % 3) as usize];
        let execution = Execution { threads: 1, regions: Some(1 + (seed % 4) as usize), windows };
        let one = || {
            let mut kept = Kept::default();
            let began = Instant::now();
            let simulation = Simulation::new(config(&text, loss), execution).expect("a valid configuration");
            let outcome =
                simulation.run(&mut kept, &mut |_| began.elapsed() < PATIENCE).expect("a valid run");
            check(&kept, &outcome, mtu, &text);
            (outcome.packet_hops, sum_of(&outcome, |port| port.packets_lost), outcome.flows)
        };
        let began = Instant::now();
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(one)) {
            Ok(found) => (hops, lost, flows) = (hops + found.0, lost + found.1, flows + found.2),
            Err(_) => {
                println!("seed {seed} failed");
                failed.push(seed);
            }
        }
        slowest = slowest.max((began.elapsed(), seed));
        if (seed + 1 - from) % 10_000 == 0 {
            println!(
                "{} scenarios, {flows} flows, {hops} packet-hops, {lost} packets lost; the longest: {slowest:?}",
                seed + 1 - from
            );
        }
    }
    assert!(failed.is_empty(), "seeds that failed: {failed:?}");
}
