//! How a run is executed is nowhere in its results: random scenarios, cut into one to eight regions and shared by one to
//! eight threads, give the same outcome, the same flows and the same samples.
//!
//! `PROPTEST_CASES` sets how many scenarios are tried.

use crate::common::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::fmt::Write;
use std::path::Path;
use weftline_sim::config::{Config, Failures, LinkLoss, ResequencingConfig, Sampled, Until};
use weftline_sim::engine::random::RandomStream;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::dumbbell::Dumbbell;
use weftline_sim::topology::fat_tree::FatTree;
use weftline_sim::topology::hpcc_fat_tree::HpccFatTree;
use weftline_sim::topology::leaf_spine::LeafSpine;
use weftline_sim::topology::parking_lot::ParkingLot;
use weftline_sim::topology::star::Star;
use weftline_sim::topology::{Link, LinkSpec, Node, NodeKind, Topology};
use weftline_sim::units::{Bytes, Rate, Time};
use weftline_sim::{Execution, Plan};

/// A scenario in a few numbers, so that it shrinks.
#[derive(Debug, Clone)]
struct World {
    network: Network,
    /// 0: all links alike; else the seed of their delays and rates.
    links: u64,
    switch: Switch,
    transport: Transport,
    /// Packets of a thousand that links lose.
    loss: u32,
    workloads: Vec<Workload>,
    /// (microsecond, kind of change, which link or switch)
    failures: Vec<(u64, u8, u32)>,
    detection_us: u64,
    measured: bool,
    /// 0: until all flows are done.
    until_ns: u64,
}

#[derive(Debug, Clone)]
enum Network {
    Star(u64),
    Dumbbell(u64, u64),
    ParkingLot(u64, u64),
    LeafSpine(u64, u64, u64),
    FatTree(u64),
    HpccFatTree(u64, u64),
    /// Switches in a random tree with more links between them, hosts on each, some of them with a second link.
    Graph {
        switches: u32,
        hosts: u32,
        more: u32,
        second: u32,
        seed: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Switch {
    buffer_kb: u64,
    pfc: bool,
    forwarding: &'static str,
    /// With its keys.
    balancer: &'static str,
    queue: &'static str,
}

#[derive(Debug, Clone, Copy)]
struct Transport {
    /// Mixed: of three workloads one runs over pHost or Fastpass and one over pFabric.
    kind: &'static str,
    /// pHost: its policy, and who has free tokens. Fastpass: its policy, and with "every" the start on receipt.
    policy: &'static str,
    free: &'static str,
    controller: &'static str,
    window: bool,
    selective: bool,
    pacing: bool,
    all_int: bool,
    /// How PINT computes the load, where it is what packets carry.
    pint: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Workload {
    Poisson { load: u64, us: u64 },
    Permutation { kb: u64, repeat: u64 },
    AllToAll { kb: u64 },
    Incast { kb: u64, stagger_ns: u64 },
    ClosedLoop { requests: u64, think_us: u64, service_ns: u64 },
    RequestResponse { connections: u64, load: u64, us: u64, persistent: bool },
    Collective { operation: &'static str, kb: u64, repeat: u64, compute_us: u64 },
    Chain { flows: u64, kb: u64, compute_us: u64 },
}

impl Network {
    fn build(&self) -> Topology {
        let host_link = LinkSpec { rate: Rate::from_gbps(100), delay: Time::from_us(1) };
        let link = LinkSpec { delay: Time::from_ns(700), ..host_link };
        match *self {
            Network::Star(hosts) => Star { hosts, host_link }.build(),
            Network::Dumbbell(left, right) => {
                Dumbbell { left, right, host_link, bottleneck_link: link, ..Dumbbell::default() }.build()
            }
            Network::ParkingLot(bottlenecks, hosts_per_hop) => ParkingLot {
                bottlenecks,
                hosts_per_hop,
                host_link,
                bottleneck_link: link,
                ..ParkingLot::default()
            }
            .build(),
            Network::LeafSpine(leaves, spines, hosts_per_leaf) => LeafSpine {
                leaves,
                spines,
                hosts_per_leaf,
                extra_hosts: 0,
                host_link,
                fabric_rate: Some(link.rate),
                fabric_delay: link.delay,
                oversubscription: 0.0,
            }
            .build(),
            Network::FatTree(k) => FatTree { k, hosts_per_tor: 0, host_link, fabric_link: link }.build(),
            Network::HpccFatTree(pods, hosts_per_tor) => HpccFatTree {
                pods,
                tors_per_pod: 2,
                aggs_per_pod: 2,
                hosts_per_tor,
                cores_per_agg: 1,
                host_link,
                fabric_link: link,
            }
            .build(),
            Network::Graph { switches, hosts, more, second, seed } => {
                return graph(switches, hosts, more, second, seed);
            }
        }
        .expect("a network")
    }
}

fn graph(switches: u32, hosts: u32, more: u32, second: u32, seed: u64) -> Topology {
    let mut random = RandomStream::new(seed, "graph");
    let mut below = |max: u32| random.below(u64::from(max)) as u32;
    let mut topology = Topology::default();
    let mut add = |name: String, kind, tier| topology.nodes.push(Node { name, kind, tier });
    (0..switches).for_each(|number| add(format!("s{number}"), NodeKind::Switch, 1));
    (0..switches * hosts).for_each(|number| add(format!("host{number}"), NodeKind::Host, 0));
    let mut ends: Vec<(u32, u32)> = (1..switches).map(|switch| (switch, below(switch))).collect();
    ends.extend((0..switches * hosts).map(|host| (switches + host, host / hosts)));
    if switches > 1 {
        ends.extend((0..more).map(|_| {
            let a = below(switches);
            (a, (a + 1 + below(switches - 1)) % switches)
        }));
        ends.extend((0..second).map(|_| (switches + below(switches * hosts), below(switches))));
    }
    let link = |(a, b)| Link { a, b, rate: Rate::from_gbps(100), delay: Time::from_us(1) };
    topology.links = ends.into_iter().map(link).collect();
    topology
}

/// Delays from none to ten microseconds, and a few rates.
fn draw_links(topology: &mut Topology, seed: u64) {
    const DELAYS_NS: [u64; 8] = [0, 10, 100, 300, 500, 1000, 1001, 10_000];
    const RATES_MBPS: [u64; 4] = [100_000, 40_000, 25_000, 33_333];
    let mut random = RandomStream::new(seed, "links");
    // Mostly few kinds of link, so that much happens at the same time.
    let delays: Vec<u64> = (0..3).map(|_| DELAYS_NS[random.below(8) as usize]).collect();
    for link in &mut topology.links {
        link.delay = Time::from_ns(delays[random.below(3) as usize]);
        link.rate = Rate::from_mbps(RATES_MBPS[random.below(4) as usize]);
    }
}

impl Workload {
    /// As a scenario says it.
    fn to_toml(self, hosts: usize) -> String {
        let keys = match self {
            Workload::Poisson { load, us } => {
                format!("kind = \"poisson\"\nload = 0.{load}\nduration = \"{us}us\"\nsizes = \"google-rpc\"")
            }
            Workload::Permutation { kb, repeat } => {
                format!("kind = \"permutation\"\nsize = \"{kb}KB\"\nrepeat = {repeat}\nevery = \"3us\"")
            }
            Workload::AllToAll { kb } => format!("kind = \"all-to-all\"\nsize = \"{kb}KB\""),
            Workload::Incast { kb, stagger_ns } => {
                format!("kind = \"incast\"\nsize = \"{kb}KB\"\nstagger = \"{stagger_ns}ns\"")
            }
            Workload::ClosedLoop { requests, think_us, service_ns } => format!(
                "kind = \"closed-loop\"\nrequests = {requests}\nthink_time = \"{think_us}us\"\nsize = \"4KB\"\n\
                 service_time = \"{service_ns}ns\"\nconcurrency = 2"
            ),
            Workload::RequestResponse { connections, load, us, persistent } => format!(
                "kind = \"request-response\"\nconnections = {connections}\nload = 0.{load}\nduration = \"{us}us\"\n\
                 sizes = \"google-rpc\"\nrequest_size = \"3KB\"\npersistent = {persistent}"
            ),
            Workload::Collective { operation, kb, repeat, compute_us } => format!(
                "kind = \"collective\"\noperation = \"{operation}\"\nbytes = \"{kb}KB\"\nrepeat = {repeat}\n\
                 compute = \"{compute_us}us\""
            ),
            Workload::Chain { flows, kb, compute_us } => {
                let mut list = String::from("kind = \"flows\"\nflows = [");
                for number in 0..flows {
                    let (src, dst) = (number as usize % hosts, (number as usize + 1) % hosts);
                    let _ = write!(list, "{{ src = {src}, dst = {dst}, size = \"{kb}KB\"");
                    if number > 0 {
                        let _ = write!(list, ", after = {}, compute = \"{compute_us}us\"", number - 1);
                    }
                    list.push_str(" }, ");
                }
                list + "]"
            }
        };
        format!("[[workload]]\n{keys}\n")
    }
}

impl World {
    fn config(&self) -> Config {
        let mut topology = self.network.build();
        if self.links > 0 {
            draw_links(&mut topology, self.links);
        }
        let mut config = self.on_a_star(topology.hosts().len());
        let switches = topology.switches();
        let links = topology.links.len() as u32;
        let mut events: Vec<_> =
            self.failures.iter().map(|&event| failure(event, links, &switches)).collect();
        events.sort_by_key(|event| event.at);
        config.failures = Failures { detection: Time::from_us(self.detection_us), events, loss: self.loss() };
        if self.measured {
            let ports = topology.ports();
            let all = (0..ports.len()).flat_map(|n| (0..ports[n].len()).map(move |p| (n as u32, p as u32)));
            let ports = |ns| Some(Sampled { what: all.clone().collect(), every: Time::from_ns(ns) });
            let flows = |ns| Some(Sampled { what: vec![0, 1, 5], every: Time::from_ns(ns) });
            let measure = &mut config.measure;
            (measure.queue_histogram, measure.queue_series) = (ports(1000), ports(5000));
            (measure.utilisation, measure.port_events) = (ports(7000), ports(9000));
            (measure.flow_goodput, measure.controllers) = (flows(4000), flows(3000));
            measure.group_goodput = Some(Time::from_us(11));
            (measure.pauses, measure.reordering, measure.paths) = (true, true, true);
        }
        if self.detection_us % 3 == 1 {
            // Slower than some links and faster than others.
            config.host.packet_time = Time(11_001 * (1 + self.detection_us));
        }
        if self.transport.kind == "rdma" && self.transport.selective {
            let (timeout, buffer) = (Time::from_us(20), Bytes(10_000));
            config.host.resequencing = Some(ResequencingConfig { timeout, buffer });
        }
        config.topology = topology;
        config
    }

    fn loss(&self) -> Option<LinkLoss> {
        (self.loss > 0).then(|| LinkLoss { share: f64::from(self.loss) / 1000.0, kinds: LinkLoss::ALL })
    }

    /// Everything in it except the network, read as if that were a star with the same number of hosts.
    fn on_a_star(&self, hosts: usize) -> Config {
        let Transport { kind, policy, free, controller, window, selective, pacing, all_int, pint } =
            self.transport;
        let Switch { buffer_kb, pfc, forwarding, balancer, queue } = self.switch;
        let window = if matches!(controller, "dcqcn" | "timely") { window } else { true };
        let own = matches!(controller, "none" | "cubic" | "tcp.dctcp" | "bbr" | "bbr3" | "swift");
        let window = if own { String::new() } else { format!(", window = {window}") };
        let telemetry = match (controller, pint) {
            _ if matches!(kind, "phost" | "pfabric" | "fastpass") => "kind = \"none\"".to_string(),
            ("hpcc" | "powertcp", _) | ("none" | "timely", "") => format!("kind = \"int\"\nall = {all_int}"),
            ("hpcc-pint", "") => "kind = \"pint\"".to_string(),
            (_, "") => "kind = \"none\"".to_string(),
            _ => format!("kind = \"pint\"\nrecord = 0.25\n{pint}"),
        };
        let recovery = if selective { "selective-repeat" } else { "go-back-n" };
        // With PFC, headroom and reserves come on top of what is shared.
        let buffer = buffer_kb + if pfc { 20_000 } else { 0 };
        let until = match self.until_ns {
            0 => "flows-done".to_string(),
            ns => format!("{ns}ns"),
        };
        // Short flows go above long ones only where queues have priorities.
        let short = if queue.contains("\"fifo\"") { 0 } else { 4 };
        let phost = format!(
            "kind = \"phost\"\npolicy = \"{policy}\"\nfree_tokens_for = \"{free}\"\nshort_flow = {short}\n\
             request_timeout = \"30us\"\n"
        );
        let pfabric = format!("kind = \"pfabric\"\nprobe_after = {}\nqueue_limit = \"9KB\"\n", short / 2);
        let start = if free == "every" { "receipt" } else { "boundary" };
        let fastpass = format!(
            "kind = \"fastpass\"\npolicy = \"{policy}\"\nstart = \"{start}\"\nrequest_timeout = \"30us\"\n\
             arbiter = {}\ncompute_time = \"{}ns\"\n",
            buffer_kb as usize % hosts,
            if pacing { 0 } else { 700 },
        );
        let own_transport = |number: usize| match (kind, number % 3) {
            ("mixed", 1) if free == "every" => format!("[workload.transport]\n{fastpass}"),
            ("mixed", 1) => format!("[workload.transport]\n{phost}"),
            ("mixed", 2) => format!("[workload.transport]\n{pfabric}"),
            _ => String::new(),
        };
        let workloads = self.workloads.iter().enumerate();
        let workloads: String =
            workloads.map(|(number, workload)| workload.to_toml(hosts) + &own_transport(number)).collect();
        let rdma = format!(
            "controller = {{ kind = \"{controller}\"{window} }}\nrecovery = \"{recovery}\"\npacing = {pacing}\n\
             rto = \"200us\"\nnack_interval = \"5us\"\n"
        );
        let transport = match kind {
            "phost" => phost,
            "pfabric" => pfabric,
            "fastpass" => fastpass,
            _ => rdma,
        };
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = {hosts}\n\
             [switch]\nbuffer = \"{buffer}KB\"\nforwarding = \"{forwarding}\"\npfc = {{ enabled = {pfc} }}\n\
             balancer = {{ {balancer} }}\nqueue = {{ {queue} }}\n\
             [transport]\n{transport}\
             [telemetry]\n{telemetry}\n\
             [run]\nuntil = \"{until}\"\n{workloads}"
        );
        let scenario =
            Scenario::load(&text, "world.toml", Path::new("."), &[], Some(self.links + 1), Hooks::default());
        let mut config =
            scenario.unwrap_or_else(|error| panic!("{error}\n{text}")).config().expect("a valid scenario");
        if self.until_ns == 0 {
            config.until = Until::FlowsDone { grid: Time::from_us(10), stall: Time::from_ms(2) };
        }
        config
    }
}

fn network() -> impl Strategy<Value = Network> {
    prop_oneof![
        (2u64..10).prop_map(Network::Star),
        (1u64..5, 1u64..5).prop_map(|(left, right)| Network::Dumbbell(left, right)),
        (1u64..5, 0u64..3).prop_map(|(bottlenecks, hosts)| Network::ParkingLot(bottlenecks, hosts)),
        (1u64..5, 1u64..4, 1u64..4)
            .prop_map(|(l, s, h)| Network::LeafSpine(l, s, h))
            .prop_filter("two hosts", |n| matches!(n, Network::LeafSpine(l, _, h) if l * h > 1)),
        prop::sample::select(vec![2, 4]).prop_map(Network::FatTree),
        (1u64..4, 1u64..4).prop_map(|(pods, hosts)| Network::HpccFatTree(pods, hosts)),
        (2u32..9, 1u32..3, 0u32..8, 0u32..4, 0u64..1000).prop_map(|(switches, hosts, more, second, seed)| {
            Network::Graph { switches, hosts, more, second, seed }
        }),
    ]
}

fn workload() -> impl Strategy<Value = Workload> {
    let operations = vec!["ring-all-reduce", "tree-all-reduce", "all-to-all", "pairwise-all-to-all"];
    prop_oneof![
        (1u64..9, 1u64..30).prop_map(|(load, us)| Workload::Poisson { load, us }),
        (1u64..100, 1u64..4).prop_map(|(kb, repeat)| Workload::Permutation { kb, repeat }),
        (1u64..10).prop_map(|kb| Workload::AllToAll { kb }),
        (1u64..60, 0u64..300).prop_map(|(kb, stagger_ns)| Workload::Incast { kb, stagger_ns }),
        (1u64..5, 0u64..4, 0u64..900).prop_map(|(requests, think_us, service_ns)| Workload::ClosedLoop {
            requests,
            think_us,
            service_ns
        }),
        (1u64..3, 1u64..9, 1u64..30, prop::bool::weighted(0.8)).prop_map(
            |(connections, load, us, persistent)| {
                Workload::RequestResponse { connections, load, us, persistent }
            }
        ),
        (prop::sample::select(operations), 1u64..60, 1u64..3, 0u64..3).prop_map(
            |(operation, kb, repeat, compute_us)| Workload::Collective { operation, kb, repeat, compute_us }
        ),
        (1u64..9, 1u64..30, 0u64..3).prop_map(|(flows, kb, compute_us)| Workload::Chain {
            flows,
            kb,
            compute_us
        }),
    ]
}

fn switch() -> impl Strategy<Value = Switch> {
    let balancers = prop::sample::select(vec![
        "kind = \"ecmp\"",
        "kind = \"spray\"",
        "kind = \"spray\", order = \"round-robin\"",
        "kind = \"destination\"",
        "kind = \"label\"",
        "kind = \"letflow\", gap = \"300ns\", flowlets = 16",
        "kind = \"drill\"",
        "kind = \"presto\", cell = \"3KB\"",
        "kind = \"conga\", gap = \"500ns\", time_constant = \"4us\", ageing = \"30us\"",
        "kind = \"conga\", gap = \"1us\", header = \"50B\", bits = 8",
        "kind = \"hula\", probe_interval = \"3us\", gap = \"1us\"",
        "kind = \"hula\", probe_interval = \"2us\", gap = \"500ns\", suppress = false, refresh_on_best = false",
        "kind = \"clove\", gap = \"1us\", relay_interval = \"5us\", congested_for = \"20us\", hide_marks = true",
        "kind = \"clove\", gap = \"1us\", relay_interval = \"1us\", feedback = \"int\", time_constant = \"10us\", header = \"8B\"",
        "kind = \"conweave\", reply_extra = \"100ns\", busy = \"1us\", resume_extra = \"300ns\", wait = \"2us\", inactive = \"5us\", ageing = \"20us\"",
        "kind = \"conweave\"",
        "kind = \"mp-hula\", probe_interval = \"5us\", gap = \"1us\", hardware_estimator = true, hysteresis = 9",
    ]);
    // Small enough to drop, fast enough for runs of microseconds.
    let queues = prop::sample::select(vec![
        "kind = \"fifo\"",
        "kind = \"priority\"",
        "kind = \"pfabric\"",
        "kind = \"fifo\", packets = 30, nic_packets = 2",
        "kind = \"codel\", target = \"2us\", interval = \"20us\"",
        "kind = \"fq-codel\", target = \"2us\", interval = \"20us\", packets = 50, queues = 8",
        "kind = \"drr\", limit = \"30KB\", link_header = \"2B\"",
        "kind = \"red\", min_queue = \"5KB\", max_queue = \"20KB\", weight = 0.1",
        "kind = \"dualpi2\", packets = 50, target = \"5us\", update = \"2us\", alpha = 10, beta = 5000",
        "kind = \"afq\", packets = 100, rounds = 8, round_bytes = \"3KB\"",
        "kind = \"cebinae\", packets = 50, deadline = \"300ns\", nic_packets = 1",
    ]);
    let forwarding = prop::sample::select(vec!["store-and-forward", "cut-through", "ideal-cut-through"]);
    (20u64..2000, any::<bool>(), forwarding, balancers, queues).prop_map(
        |(buffer_kb, pfc, forwarding, balancer, queue)| Switch {
            buffer_kb,
            pfc,
            forwarding,
            balancer,
            queue,
        },
    )
}

fn transport() -> impl Strategy<Value = Transport> {
    let controllers = prop::sample::select(vec![
        "hpcc",
        "hpcc-pint",
        "dctcp",
        "dcqcn",
        "timely",
        "none",
        "cubic",
        "tcp.dctcp",
        "bbr",
        "bbr3",
        "powertcp",
        "theta-powertcp",
        "swift",
    ]);
    let pints = prop::sample::select(vec![
        "",
        "law = \"paper\"",
        "arithmetic = \"tables\"",
        "arithmetic = \"recirculated\"\nregisters = 3",
        "share = 0.2",
    ]);
    let kinds = prop::sample::select(vec!["rdma", "rdma", "phost", "pfabric", "fastpass", "mixed"]);
    let policies =
        vec!["shortest-remaining", "earliest-deadline", "tenant-round-robin", "tenant-least-recent"];
    let phost = (prop::sample::select(policies), prop::sample::select(vec!["short", "every"]));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (kinds, phost, controllers, flags, pints).prop_map(
        |(kind, (policy, free), controller, (window, selective, pacing, all_int), pint)| Transport {
            kind,
            policy,
            free,
            controller,
            window,
            selective,
            pacing,
            all_int,
            pint,
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    let workloads = prop::collection::vec(workload(), 1..4);
    let failures = prop_oneof![Just(vec![]), prop::collection::vec((0u64..150, 0u8..6, 0u32..64), 1..8)];
    let until = prop_oneof![Just(0u64), 1u64..200_000];
    (
        network(),
        prop_oneof![Just(0u64), 1u64..10_000],
        switch(),
        (transport(), prop_oneof![Just(0u32), Just(0), 1u32..30]),
        workloads,
        failures,
        0u64..30,
        any::<bool>(),
        until,
    )
        .prop_map(
            |(
                network,
                links,
                switch,
                (transport, loss),
                workloads,
                failures,
                detection_us,
                measured,
                until_ns,
            )| {
                World {
                    network,
                    links,
                    switch,
                    transport,
                    loss,
                    workloads,
                    failures,
                    detection_us,
                    measured,
                    until_ns,
                }
            },
        )
}

/// Runs the world whole and then as given, and compares all their results.
fn same_results(world: &World, executions: &[(usize, usize, bool)]) {
    let config = world.config();
    let (whole, outcome) = run_as(Execution::default(), config.clone());
    for &(regions, threads, windows) in executions {
        let (cut, outcome_cut) =
            run_as(Execution { threads, regions: Some(regions), windows: Some(windows) }, config.clone());
        let order = if windows { "node by node" } else { "event by event" };
        let how = format!("{regions} regions, {threads} threads, {order}");
        assert_eq!(outcome, outcome_cut, "{how}");
        assert_eq!(whole.flows, cut.flows, "{how}");
        assert_eq!(whole.samples, cut.samples, "{how}");
        assert_eq!(whole.digests, cut.digests, "{how}");
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(250)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn regions_and_threads_are_nowhere_in_the_results(
        world in world(),
        regions in 2usize..9,
        threads in prop::sample::select(vec![1usize, 2, 3, 8]),
        windows in any::<bool>(),
    ) {
        same_results(&world, &[(2, 1, !windows), (regions, threads, windows)]);
    }
}

#[test]
fn the_random_worlds_are_mostly_cut_and_much_happens_in_them() {
    // Else the test above would show little.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut cut, mut hops, mut unfinished) = (0, 0, 0);
    for _ in 0..60 {
        let world = world().new_tree(&mut runner).expect("a world").current();
        let config = world.config();
        cut +=
            u32::from(Plan::of(&config, Execution { regions: Some(3), ..Execution::default() }).regions > 1);
        let (_, outcome) = run_as(Execution::default(), config);
        hops += outcome.packet_hops;
        unfinished += u32::from(outcome.flows_done < outcome.flows);
    }
    assert!(cut > 40, "{cut} of 60 worlds are cut");
    assert!(hops > 60 * 1000, "{hops} packet-hops");
    assert!((5..50).contains(&unfinished), "{unfinished} of 60 runs leave flows unfinished");
}
