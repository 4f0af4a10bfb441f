//! Where completion times went: the causes of every flow add up to its completion time, to the picosecond, in
//! every case of the fingerprints; and cases whose answer is known.

use crate::common::{Kept, flow, link, link_between, load, node_named, normal, rdma_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use weftline_sim::config::{Change, Config, Failure, QueueConfig, TransportConfig};
use weftline_sim::congestion::KINDS;
use weftline_sim::measure::StepRecord;
use weftline_sim::net::trace::Passed;
use weftline_sim::packet::PacketKind;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::topology::Topology;
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::star::Star;
use weftline_sim::transport::DECLARED;
use weftline_sim::units::{Bytes, Rate, Time};
use weftline_sim::why::steps::{Leg, Operation, What, chain};
use weftline_sim::why::{self, Account, Cause, LinkShare, Place, Traced};
use weftline_sim::{Execution, Simulation};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints")
}

/// Paths and values.
type Sets = Vec<(String, String)>;

/// Every case of the fingerprints: its name, its scenario, what is set in it.
fn cases() -> Vec<(String, String, Sets)> {
    let text = std::fs::read_to_string(folder().join("cases.toml")).expect("cases.toml");
    let table: toml::Table = text.parse().expect("TOML");
    let case = |(name, case): (&String, &toml::Value)| {
        let set = case.get("set").and_then(|set| set.as_table());
        let sets = set.into_iter().flatten().map(|(key, value)| (key.clone(), value.to_string())).collect();
        (name.clone(), case["base"].as_str().expect("base").to_string(), sets)
    };
    table["case"].as_table().expect("tables").iter().map(case).collect()
}

/// Runs a configuration, and again with some of its flows traced, which must be the same run; their accounts.
fn accounts(config: Config, choose: impl Fn(usize) -> bool) -> Vec<Account> {
    accounts_with(config, choose).0
}

fn accounts_with(mut config: Config, choose: impl Fn(usize) -> bool) -> (Vec<Account>, why::Findings) {
    config.measure.capture = None;
    let (mut kept, outcome) = crate::common::run_in(1, config.clone());
    kept.flows.sort_by_key(|flow| flow.flow);
    let flows: Vec<Traced> = kept
        .flows
        .iter()
        .enumerate()
        .filter(|(number, _)| choose(*number))
        .filter_map(|(_, one)| {
            let finish = one.finish?;
            Some(Traced { flow: one.flow, src: one.src, dst: one.dst, start: one.start, finish })
        })
        .collect();
    let mut again = Kept::default();
    let (repeated, findings) =
        why::trace(config, &flows, why::Breadth::All, &mut again, &mut |_| true).expect("a valid run");
    again.flows.sort_by_key(|flow| flow.flow);
    assert_eq!(outcome.fingerprint, repeated.fingerprint, "another run");
    assert_eq!(kept.flows, again.flows, "other flows");
    (why::accounts(&flows, &findings), findings)
}

fn of(account: &Account, cause: Cause) -> Time {
    account.by_cause().get(&cause).copied().unwrap_or_default()
}

#[test]
fn causes_add_up_to_the_completion_time_in_every_case() {
    let mut shares: Vec<(String, String)> = Vec::new();
    for (name, base, sets) in cases() {
        let text = std::fs::read_to_string(folder().join(format!("{base}.toml"))).expect("a scenario");
        let scenario = Scenario::load(&text, &name, &folder(), &sets, None, Hooks::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let accounts = accounts(scenario.config().expect("a valid scenario"), |number| number % 7 == 0);
        let mut sums = BTreeMap::<Cause, u64>::new();
        for account in &accounts {
            assert!(account.adds_up(), "{name}: {account:?}");
            let spent = account.flow.finish - account.flow.start;
            assert_eq!(account.by_cause().values().map(|time| time.0).sum::<u64>(), spent.0, "{name}");
            for (cause, time) in account.by_cause() {
                *sums.entry(cause).or_default() += time.0;
            }
        }
        let all: u64 = sums.values().sum::<u64>().max(1);
        let text: Vec<String> = sums
            .iter()
            .map(|(cause, time)| format!("{} {:.0}%", cause.name(), *time as f64 * 100.0 / all as f64))
            .collect();
        shares.push((name, format!("{} flows: {}", accounts.len(), text.join(", "))));
    }
    for (name, shares) in shares {
        println!("{name}: {shares}");
    }
}

/// What packets that are sent again cost.
const REPEATS: [Cause; 3] = [Cause::Retransmission, Cause::Timeout, Cause::LossDetection];

/// Hosts at 100 Gb/s and 1 us around a switch.
fn star(hosts: u64) -> Topology {
    Star { hosts, host_link: link(Rate::from_gbps(100), Time::from_us(1)) }.build().expect("a star")
}

fn causes(account: &Account) -> Vec<Cause> {
    account.by_cause().into_keys().collect()
}

/// How long a data packet occupies a link.
fn packet_time(findings: &why::Findings) -> Time {
    let data = findings.trace.passed.iter().find(|one| one.kind == PacketKind::Data).expect("data");
    data.until - data.time
}

#[test]
fn a_lone_flow_took_what_it_takes() {
    let config = normal("none", star(3), vec![flow(0, 1, 100_000, Time::from_ns(7))]);
    let (accounts, findings) = accounts_with(config, |_| true);
    let account = &accounts[0];
    assert!(account.adds_up());
    assert_eq!(causes(account), [Cause::Transmission, Cause::Propagation]);
    // Two links there, two back with the acknowledgement.
    assert_eq!(of(account, Cause::Propagation), Time::from_us(4));
    let acknowledgement = findings.trace.passed.iter().find(|one| one.kind == PacketKind::Ack).expect("one");
    let ack = acknowledgement.until - acknowledgement.time;
    let expected = 101 * packet_time(&findings).0 + 2 * ack.0;
    assert_eq!(of(account, Cause::Transmission), Time(expected));
    assert_eq!(account.worst_queue(), None);
    assert_eq!(account.path.len(), 4);
}

/// A window that lets the next packet go while the NIC still sends the one before costs no time, nor does one
/// that opens before pacing lets the next packet go.
#[test]
fn what_a_lone_flow_waits_for_at_its_sender_is_its_nic_or_pacing() {
    let link = "{ rate = \"100Gbps\", delay = \"1us\" }";
    let star = format!("kind = \"star\"\nhosts = 2\nhost_link = {link}");
    let fabric = format!(
        "kind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\nhost_link = {link}\nfabric_link = {link}"
    );
    let mut at_ideal = 0;
    let cases =
        [&star, &fabric].into_iter().flat_map(|topology| KINDS.iter().map(move |kind| (topology, kind.0)));
    for (topology, kind, mtu) in
        cases.flat_map(|(topology, kind)| ["1KB", "4KB", "8KB"].map(|mtu| (topology, kind, mtu)))
    {
        let text = format!(
            "[topology]\n{topology}\n[transport]\nmtu = \"{mtu}\"\ncontroller = {{ kind = \"{kind}\" }}\n\
             [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"480KB\" }}]\n"
        );
        let config = load(&text, &[]).expect("a scenario").config().expect("a configuration");
        let (kept, _) = crate::common::run_in(1, config.clone());
        let account = accounts(config, |_| true).remove(0);
        assert!(account.adds_up());
        let (took, ideal) = ((account.flow.finish - account.flow.start).0, kept.flows[0].ideal.0);
        let case = format!("{topology} {kind} {mtu}: {took} of {ideal} ps: {:?}", account.by_cause());
        if took <= ideal + ideal / 10_000 {
            at_ideal += 1;
            assert_eq!(causes(&account), [Cause::Transmission, Cause::Propagation], "{case}");
        } else {
            assert!(of(&account, Cause::Pacing) > Time::ZERO, "{case}");
            // Windows that shrink hold the sender for the first round trips.
            assert!(of(&account, Cause::Window).0 < took / 2, "{case}");
        }
    }
    assert!(at_ideal >= 30, "{at_ideal}");
}

#[test]
fn what_passes_while_no_traced_flow_lasts_is_not_kept_and_changes_no_account() {
    let small = |start| flow(0, 2, 20_000, start);
    let flows = vec![flow(1, 2, 20_000_000, Time::ZERO), small(Time::from_us(50)), small(Time::from_ms(1))];
    let config = || normal("none", star(3), flows.clone());
    let (both, findings) = accounts_with(config(), |number| number > 0);
    let alone = [1, 2].map(|one| accounts(config(), |number| number == one).remove(0));
    assert_eq!(
        both.iter().map(|one| &one.intervals).collect::<Vec<_>>(),
        [&alone[0].intervals, &alone[1].intervals]
    );
    let passed = &findings.trace.passed;
    let lasts = |one: &Account, hop: &Passed| one.flow.start <= hop.at && hop.time <= one.flow.finish;
    assert!(passed.iter().all(|hop| both.iter().any(|one| lasts(one, hop))));
}

#[test]
fn of_the_slowest_flows_those_are_traced_that_a_trace_can_keep() {
    let traced = |flow, start, finish| Traced {
        flow,
        src: 0,
        dst: 1,
        start: Time::from_ms(start),
        finish: Time::from_ms(finish),
    };
    let (_, mut outcome) =
        crate::common::run_in(1, normal("none", star(3), vec![flow(0, 1, 1000, Time::ZERO)]));
    // A million packet-hops a millisecond, and sixteen million are taken.
    (outcome.end, outcome.packet_hops) = (Time::from_ms(1000), 1_000_000_000);
    let all =
        [traced(0, 10, 20), traced(1, 15, 24), traced(2, 0, 900), traced(3, 500, 502), traced(4, 505, 506)];
    let numbers =
        |flows: &[Traced]| -> Vec<u32> { why::fitting(flows, &outcome).iter().map(|one| one.flow).collect() };
    assert_eq!(numbers(&all), [0, 1, 3]);
    assert_eq!(numbers(&all[..2]), [0, 1]);
    assert_eq!(numbers(&all[2..3]), [2], "one alone is tried");
    assert_eq!(numbers(&[]), [0; 0]);
}

#[test]
fn of_two_flows_through_one_link_one_waits_for_the_other() {
    let flows = vec![flow(0, 2, 1000, Time::ZERO), flow(1, 2, 1000, Time::ZERO)];
    let (accounts, findings) = accounts_with(normal("none", star(3), flows), |_| true);
    let waits: Vec<Time> = accounts.iter().map(|account| of(account, Cause::OthersQueue)).collect();
    assert_eq!(waits, [Time::ZERO, packet_time(&findings)]);
    let (link, waited) = accounts[1].worst_queue().expect("a queue");
    assert_eq!(waited, packet_time(&findings));
    assert_eq!(accounts[1].shared(link), [(0, waited)]);
    let limits = why::limits(&accounts);
    assert_eq!(limits, [LinkShare { link, flows: 1, waited, cause: Cause::OthersQueue, paused_for: None }]);
}

/// A link between two nodes, in this direction.
fn link_from(config: &Config, findings: &why::Findings, from: &str, to: &str) -> u32 {
    let [from, to] = [from, to].map(|name| node_named(&config.topology, name));
    findings.links.iter().position(|link| (link.0, link.1) == (from, to)).expect("a link") as u32
}

#[test]
fn links_are_named_for_all_that_waits_at_them() {
    // A lone flow to a host whose link has a tenth of the rate, and one that shares the NIC with it.
    let flows = vec![flow(1, 0, 1_000_000, Time::ZERO), flow(1, 2, 1_000_000, Time::ZERO)];
    for flows in [flows[..1].to_vec(), flows] {
        let mut config = normal("none", star(3), flows);
        let topology = &config.topology;
        let slow = link_between(topology, topology.hosts()[0], node_named(topology, "s0"));
        let change = Change::LinkRate(slow, Rate::from_gbps(10));
        config.failures.events = vec![Failure { at: Time::ZERO, change }];
        let (accounts, findings) = accounts_with(config.clone(), |_| true);
        let limits = why::limits(&accounts);
        let link = link_from(&config, &findings, "s0", "host0");
        assert_eq!((limits[0].link, limits[0].flows, limits[0].cause), (link, 1, Cause::OwnQueue));
        let waited = limits.iter().map(|one| one.waited.0).sum::<u64>();
        let parts = accounts.iter().flat_map(|one| &one.intervals).filter(|part| part.cause.is_at_link());
        assert_eq!(waited, parts.map(|part| part.to.0 - part.from.0).sum::<u64>());
        assert_eq!(limits.iter().map(|one| one.flows).sum::<usize>(), accounts.len());
    }
}

#[test]
fn the_link_whose_queue_dropped_packets_is_named() {
    let text = "[topology]\nkind = \"star\"\nhosts = 9\n[switch]\nbuffer = \"100KB\"\npfc.enabled = false\n\
                [[workload]]\nkind = \"incast\"\nsenders = 8\nreceiver = 0\nsize = \"100KB\"\n";
    let config = load(text, &[]).expect("a scenario").config().expect("a configuration");
    let (_, outcome) = crate::common::run_in(1, config.clone());
    let (accounts, findings) = accounts_with(config.clone(), |_| true);
    let place = Place::Link(link_from(&config, &findings, "s0", "host0"));
    let lost = accounts.iter().flat_map(|one| &one.lost);
    assert!(lost.clone().all(|(&at, _)| at == place));
    let (lost, drops) = (
        lost.map(|(_, &packets)| packets as u64).sum::<u64>(),
        outcome.ports.iter().map(|one| one.2.packets_dropped).sum::<u64>(),
    );
    assert_eq!((lost > 0, lost), (true, drops));
    let late = |one: &Account| of(one, Cause::Retransmission) + of(one, Cause::Timeout) > Time::ZERO;
    assert!(accounts.iter().all(|one| late(one) != one.lost.is_empty()));
}

/// Tokens go before data: a token waits for the packet that is being sent, and never for those that the NIC
/// sent before the clock of the destination gave it.
#[test]
fn a_token_waits_in_no_queue_before_it_is_made() {
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[transport]\nkind = \"phost\"\n[[workload]]\nkind = \"flows\"\nflows = [\n\
                { src = 0, dst = 1, size = \"120KB\" }, { src = 2, dst = 1, size = \"100KB\" }, \
                { src = 1, dst = 3, size = \"400KB\" }]\n";
    let config = load(text, &[]).expect("a scenario").config().expect("a configuration");
    let (accounts, findings) = accounts_with(config.clone(), |number| number == 0);
    let link = link_from(&config, &findings, "host1", "s0");
    let queued = accounts[0]
        .intervals
        .iter()
        .filter(|part| part.link == Some(link) && part.cause == Cause::OthersQueue);
    let waits: Vec<u64> = queued.map(|part| part.to.0 - part.from.0).collect();
    assert!(waits.iter().all(|&wait| wait <= packet_time(&findings).0), "{waits:?}");
    // The destination gives its tokens to the shorter flow first.
    let receiver = of(&accounts[0], Cause::Receiver);
    assert!(
        receiver > Time::from_us(7) && receiver.0 > 5 * waits.iter().sum::<u64>(),
        "{receiver} {waits:?}"
    );
}

#[test]
fn what_came_later_and_left_first_is_priority() {
    let low = flow(0, 3, 1000, Time::ZERO);
    let later = flow(1, 3, 1000, Time::from_ns(10));
    let mut high = flow(2, 3, 1000, Time::from_ns(20));
    high.transport = 1;
    let mut config = normal("none", star(4), vec![low, later, high]);
    let mut first_class = rdma_of(&mut config).clone();
    first_class.class = 1;
    config.transports.push(TransportConfig::Rdma(first_class));
    config.switch.queue = QueueConfig::of("priority", Default::default()).expect("a queue");
    let (accounts, findings) = accounts_with(config, |_| true);
    let packet = packet_time(&findings);
    assert_eq!(of(&accounts[1], Cause::Priority), packet);
    assert_eq!(of(&accounts[1], Cause::OthersQueue), packet - Time::from_ns(10));
    assert_eq!(accounts[1].shared(accounts[1].worst_queue().expect("one").0)[0], (2, packet));
}

#[test]
fn a_link_that_is_down_is_a_failure() {
    let mut config = normal("none", star(3), vec![flow(0, 1, 1000, Time::from_us(10))]);
    let topology = &config.topology;
    let dead = link_between(topology, topology.hosts()[0], node_named(topology, "s0"));
    let change = |us: u64, change: Change| Failure { at: Time::from_us(us), change };
    config.failures.events = vec![change(5, Change::LinkDown(dead)), change(50, Change::LinkUp(dead))];
    let accounts = accounts(config, |_| true);
    assert_eq!(of(&accounts[0], Cause::Failure), Time::from_us(40));
    assert_eq!(causes(&accounts[0]), [Cause::Transmission, Cause::Propagation, Cause::Failure]);
}

#[test]
fn a_lost_packet_waits_for_the_timeout() {
    let mut config = normal("none", star(3), vec![flow(0, 1, 1000, Time::ZERO)]);
    let topology = &config.topology;
    let dead = link_between(topology, topology.hosts()[1], node_named(topology, "s0"));
    let change = |ns: u64, change: Change| Failure { at: Time::from_ns(ns), change };
    config.failures.events = vec![change(1500, Change::LinkDown(dead)), change(9000, Change::LinkUp(dead))];
    let (accounts, findings) = accounts_with(config.clone(), |_| true);
    assert_eq!(of(&accounts[0], Cause::Timeout), Time::from_us(500) - packet_time(&findings));
    let place = Place::Link(link_from(&config, &findings, "s0", "host1"));
    assert_eq!(accounts[0].lost, BTreeMap::from([(place, 1)]));
    assert_eq!(why::limits(&accounts), []);
}

#[test]
fn a_wait_for_a_tail_loss_probe_is_no_timeout() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                [transport]\nkind = \"tcp\"\nloss_probe_ack_delay = \"1ms\"\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    // SYN and SYN-ACK, 74 B over two links each.
    let round_trip = 4 * (Time::from_us(1).0 + 5920);
    for (probe, probed, expired) in [("true", 1_000_000_000 + 2 * round_trip, 0), ("false", 0, 1)] {
        let scenario = load(text, &[("transport.loss_probe", probe)]);
        let mut config =
            scenario.unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
        config.traffic = crate::common::traffic(vec![flow(0, 1, 1000, Time::ZERO)]);
        // The only segment is on the second link.
        let topology = &config.topology;
        let link = link_between(topology, topology.hosts()[1], node_named(topology, "s0"));
        let change = |ns: u64, change: Change| Failure { at: Time::from_ns(ns), change };
        config.failures.events =
            vec![change(5500, Change::LinkDown(link)), change(9000, Change::LinkUp(link))];
        let (kept, outcome) = crate::common::run_in(1, config.clone());
        assert_eq!((kept.flows[0].packets_retransmitted, kept.flows[0].timeouts), (1, expired));
        let (losses, expired) = (outcome.losses[0], u64::from(expired));
        assert_eq!((losses.loss_probes, losses.timeouts), (1 - expired, expired));
        let (accounts, findings) = accounts_with(config, |_| true);
        let packet = packet_time(&findings).0;
        let waited = [Cause::LossDetection, Cause::Timeout].map(|cause| of(&accounts[0], cause).0);
        let last = expired * (Time::from_ms(200).0 + round_trip);
        assert_eq!(waited, [probed, last].map(|time| time.saturating_sub(packet)), "{probe}");
    }
}

#[test]
fn only_a_packet_that_left_before_is_a_retransmission_over_every_transport() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 1\nhosts_per_leaf = 1\nextra_hosts = 1\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"200KB\"\n[failures]\nloss_of = \"data\"\n";
    for transport in DECLARED {
        let transport = ("transport.kind", transport.name);
        let config = |loss| {
            let scenario = load(text, &[transport, ("failures.loss", loss)]);
            scenario.unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration")
        };
        let repeats = |accounts: Vec<Account>| {
            assert_eq!(accounts.len(), 4, "{transport:?}");
            let repeats =
                accounts.iter().filter(|one| REPEATS.into_iter().any(|cause| of(one, cause) > Time::ZERO));
            repeats.count()
        };
        assert_eq!(repeats(accounts(config("0"), |_| true)), 0, "{transport:?}");
        assert!(repeats(accounts(config("0.02"), |_| true)) > 0, "{transport:?}");
    }
}

#[test]
fn a_pause_is_not_a_queue() {
    let flows = (0..8).map(|src| flow(src, 8, 200_000, Time::ZERO)).collect();
    let mut config = normal("none", star(9), flows);
    config.switch.buffer = Bytes(400_000);
    let accounts = accounts(config, |_| true);
    assert!(accounts.iter().all(Account::adds_up));
    assert!(
        accounts.iter().any(|account| of(account, Cause::Pause) > Time::ZERO),
        "{:?}",
        accounts[0].by_cause()
    );
    assert!(accounts.iter().all(|account| of(account, Cause::Timeout) == Time::ZERO));
    assert!(why::limits(&accounts).iter().any(|one| one.cause == Cause::Pause));
}

/// A step and its chain.
type Chain = (StepRecord, Vec<(Leg, Operation)>);

/// A run of a scenario, and the chain of each of its steps that has a job graph, which covers the time of the
/// step: every leg begins at the rank, and when, the one before it ended.
fn chains(scenario: &str, sets: &[(&str, &str)]) -> Vec<Chain> {
    chains_with(scenario, sets).1
}

fn chains_with(scenario: &str, sets: &[(&str, &str)]) -> (Config, Vec<Chain>) {
    let sets: Sets = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let loaded = Scenario::load(scenario, "s.toml", &folder(), &sets, None, Hooks::default());
    let config = loaded.unwrap_or_else(|error| panic!("{error}")).config().expect("a valid configuration");
    let run = |regions| {
        let execution = Execution { threads: 1, regions: Some(regions), ..Execution::default() };
        let mut network = Simulation::new(config.clone(), execution).expect("a network");
        network.note_causes();
        network.run(&mut Kept::default(), &mut |_| true).expect("a run")
    };
    let (outcome, split) = (run(1), run(3));
    assert_eq!(outcome.causes, split.causes, "in three regions");
    let causes = outcome.causes.as_ref().expect("causes");
    let graphs = |step: &&StepRecord| config.traffic.sources[usize::from(step.source)].graph().is_some();
    let of_graphs = outcome.steps.iter().filter(graphs);
    let chains = of_graphs.map(|step| (step.clone(), chain(step, causes, &config.traffic)));
    let chains = chains.inspect(|(step, legs)| assert_covers(step, legs)).collect::<Vec<_>>();
    (config, chains)
}

fn assert_covers(step: &StepRecord, legs: &[(Leg, Operation)]) {
    let mut at = step.start;
    let mut rank = None;
    for (leg, _) in legs {
        assert_eq!(leg.from, at, "{legs:?}");
        assert!(leg.to > leg.from, "{legs:?}");
        assert!(rank.is_none_or(|rank| rank == leg.rank), "{legs:?}");
        at = leg.to;
        rank = match leg.what {
            // The next one may follow an acknowledgement, at the sender.
            What::Message { message, .. } => {
                let (next, sender) = (message.to, message.from);
                let position = legs.iter().position(|(other, _)| other == leg).expect("a leg");
                let goes_on = legs.get(position + 1).map(|(next, _)| next.rank);
                goes_on.filter(|&rank| rank == sender).or(Some(next))
            }
            _ => Some(leg.rank),
        };
    }
    assert_eq!(Some(at), step.finish, "{legs:?}");
}

#[test]
fn the_chain_of_a_step_covers_its_time() {
    let scenario = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n\
                    [[workload]]\nkind = \"collective\"\nbytes = \"600KB\"\nrepeat = 3\ncompute = \"5us\"\n\
                    [[workload]]\nkind = \"incast\"\nsenders = 5\nreceiver = 0\nsize = \"200KB\"\n";
    let operations = ["ring-all-reduce", "tree-all-reduce", "all-to-all", "pairwise-all-to-all"];
    for (operation, transport) in operations.iter().flat_map(|one| [(one, "rdma"), (one, "tcp")]) {
        let steps = chains(scenario, &[("workload.0.operation", operation), ("transport.kind", transport)]);
        assert_eq!(steps.len(), 3, "{operation} over {transport}");
        assert!(steps.iter().all(|(_, legs)| !legs.is_empty()), "{operation} over {transport}");
    }
    let domains = [
        ("workload.0.operation", "all-reduce"),
        ("workload.0.algorithm", "hierarchical"),
        ("workload.0.domain", "3"),
        ("workload.0.scale_up_rate", "\"3.6Tbps\""),
        ("workload.0.messages", "false"),
    ];
    let inside = |leg: &Leg| matches!(leg.what, What::Message { flow: None, .. });
    let steps = chains(scenario, &domains);
    assert!(steps.iter().all(|(_, legs)| legs.iter().any(|(leg, _)| inside(leg))));
}

/// Two stages, two replicas of two ranks: the chain goes over computations and over messages of all kinds, of
/// the whole step and of each of its operations.
#[test]
fn the_chain_of_a_training_step_goes_over_computations_and_messages() {
    let scenario = "[topology]\nkind = \"rail\"\nnodes = 4\ngpus = 2\nnodes_per_segment = 2\nspines = 2\n\
                    [[workload]]\nkind = \"training\"\nlayers = 4\nhidden = 512\nsequence = 512\nvocabulary = 1000\n\
                    tensor = 2\npipeline = 2\nmicro_batches = 4\ndomain = 8\nscale_up_rate = \"3.6Tbps\"\njitter = 0.05\n\
                    messages = false\n";
    let settings = [
        &[][..],
        &[("workload.0.sharding", "\"zero3\"")],
        &[("workload.0.slow_ranks", "\"5\"")],
        &[("workload.0.steps", "3")],
    ];
    for sets in settings {
        let steps = chains(scenario, sets);
        let (whole, legs) = &steps[0];
        assert_eq!((whole.step, whole.shape.operation), (0, "training"));
        let time = |of: &dyn Fn(&Leg, &Operation) -> bool| -> u64 {
            legs.iter()
                .filter(|(leg, operation)| of(leg, operation))
                .map(|(leg, _)| leg.to.0 - leg.from.0)
                .sum()
        };
        let computing = time(&|leg, _| leg.what == What::Computation);
        assert!(computing > 0 && computing < time(&|_, _| true));
        assert!(
            time(&|_, operation| operation.name == Some("all-reduce")) > 0 || sets.len() == 1,
            "{legs:?}"
        );
        // What goes from a stage to the next is a message of its own.
        assert!(time(&|leg, of| of.name.is_none() && leg.what != What::Computation) > 0, "{legs:?}");
        if sets.first().is_some_and(|set| set.0.ends_with("slow_ranks")) {
            let own = time(&|leg, _| leg.rank == 5 && leg.what == What::Computation);
            assert!(own > computing / 2, "{legs:?}");
        }
    }
}

/// A file whose chain is known: rank 0 computes and sends, rank 1 computes for 2 us after it has received.
#[test]
fn the_chain_of_a_file_names_its_lines() {
    let file = std::env::temp_dir().join(format!("weftline-chain-{}.goal", std::process::id()));
    let text = "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 100000b to 1\nb requires a\n}\nrank 1 {\na: recv 100000b from 0\n\
                b: calc 2000\nb requires a\nc: calc 1000\n}\n";
    std::fs::write(&file, text).expect("a file");
    let scenario = format!(
        "[topology]\nkind = \"star\"\nhosts = 2\n[[workload]]\nkind = \"job-file\"\nfile = \"{}\"\n",
        file.display()
    );
    let steps = chains(&scenario, &[]);
    std::fs::remove_file(&file).expect("a file");
    let (step, legs) = &steps[0];
    let found: Vec<_> =
        legs.iter().map(|(leg, of)| (leg.rank, leg.what == What::Computation, of.place.as_deref())).collect();
    let message = (0, false, Some("line 4"));
    match step.start {
        // The time begins with the first message, or with the ranks.
        Time::ZERO => assert_eq!(found, [(0, true, Some("line 3")), message, (1, true, Some("line 9"))]),
        _ => assert_eq!(found, [message, (1, true, Some("line 9"))]),
    }
    let last = legs.last().expect("a leg").0;
    assert_eq!(last.to.0 - last.from.0, Time::from_us(2).0);
}

/// A trace of the paths of the chain divides its messages as a trace of the whole network does, with far
/// fewer packets.
#[test]
fn the_paths_of_a_chain_give_the_causes_that_the_whole_network_gives() {
    let scenario = "[topology]\nkind = \"rail\"\nnodes = 4\ngpus = 4\nnodes_per_segment = 2\nspines = 2\n\
                    [[workload]]\nkind = \"training\"\nlayers = 4\nhidden = 512\nsequence = 512\nvocabulary = 1000\n\
                    tensor = 2\npipeline = 2\nmicro_batches = 2\nmessages = false\n";
    for sets in [&[][..], &[("workload.0.scale_up_rate", "\"3.6Tbps\"")], &[("transport.kind", "tcp")]] {
        let (config, steps) = chains_with(scenario, sets);
        let flows: Vec<Traced> = steps[0].1.iter().filter_map(|(leg, _)| leg.traced()).collect();
        let traced = |breadth| {
            let (_, findings) =
                why::trace(config.clone(), &flows, breadth, &mut Kept::default(), &mut |_| true)
                    .expect("a valid run");
            let accounts = why::accounts(&flows, &findings);
            assert!(accounts.iter().all(Account::adds_up));
            let causes: Vec<_> =
                accounts.iter().map(|account| (account.by_cause(), account.by_link())).collect();
            (causes, findings.trace.passed.len())
        };
        let ((whole, all), (paths, few)) = (traced(why::Breadth::All), traced(why::Breadth::Paths));
        assert_eq!(whole.len(), paths.len());
        for (flow, (whole, paths)) in whole.iter().zip(&paths).enumerate() {
            assert_eq!(whole, paths, "{sets:?}, flow {flow}");
        }
        assert!(2 * few < all, "{few} of {all} packets");
    }
}

/// The accounts of all flows of a scenario, and its configuration.
fn accounts_of(text: &str) -> (Vec<Account>, Config) {
    let config = load(text, &[]).expect("a scenario").config().expect("a configuration");
    (accounts_with(config.clone(), |_| true).0, config)
}

/// One flow over a star whose last link is down for 1.1 us, while its first packets are there.
fn lossy(transport: &str, size: &str) -> String {
    format!(
        "[topology]\nkind = \"star\"\nhosts = 3\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [transport]\n{transport}\n[[workload]]\nkind = \"flows\"\nflows = [{{ src = 1, dst = 0, size = \"{size}\" }}]\n\
         [[failures.event]]\nat = \"1500ns\"\nlink = [\"host0\", \"s0\"]\nlasts = \"1100ns\"\n"
    )
}

#[test]
fn a_transports_own_timer_is_a_timeout_in_its_words() {
    for (transport, size, shortest, until) in [
        ("kind = \"homa\"\nrto = \"1ms\"", "1KB", 999, "until the sender, which had received no answer"),
        ("kind = \"homa\"\nrto = \"1ms\"", "20KB", 999, "until the receiver requested packets"),
        ("kind = \"ndp\"\nrto = \"200us\"", "1KB", 199, "until the sender sent packets again"),
        ("kind = \"phost\"\nrequest_timeout = \"100us\"", "1KB", 99, "until the source repeated its request"),
        (
            "kind = \"phost\"\nrequest_timeout = \"100us\"",
            "1KB",
            1,
            "until the destination gave tokens again",
        ),
        ("kind = \"rdma\"\nrto = \"1ms\"", "1KB", 999, "until the sender's retransmission timeout"),
    ] {
        let (found, _) = accounts_of(&lossy(transport, size));
        let waited = &found[0].waited_until;
        let named = waited.iter().find(|(words, _)| words.starts_with(until));
        assert!(named.is_some_and(|(_, &time)| time >= Time::from_us(shortest)), "{transport}: {waited:?}");
        let all = waited.values().map(|time| time.0).sum();
        assert_eq!(of(&found[0], Cause::Timeout), Time(all), "{transport}");
        assert_eq!(of(&found[0], Cause::Transport), Time::ZERO, "{transport}");
    }
}

#[test]
fn a_switch_without_a_route_is_named_with_the_time_at_which_it_lost_it() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\n\
                [transport.controller]\nkind = \"dcqcn\"\n[[workload]]\nkind = \"flows\"\n\
                flows = [{ src = 0, dst = 1, size = \"5MB\" }]\n[failures]\ndetection = \"20us\"\n\
                [[failures.event]]\nat = \"100us\"\nlink = [\"leaf1\", \"spine0\"]\nlasts = \"200us\"\n";
    let (found, config) = accounts_of(text);
    let node = node_named(&config.topology, "leaf0");
    let place = Place::WithoutRoute { node, dst: 1, since: Time::from_us(120) };
    assert!(found[0].lost.get(&place).is_some_and(|&packets| packets > 100), "{:?}", found[0].lost);
    let elsewhere = found[0].lost.keys().filter(|place| matches!(place, Place::Node(_)));
    assert_eq!(elsewhere.count(), 0, "{:?}", found[0].lost);
}

#[test]
fn a_port_whose_link_is_down_is_named_with_all_packets_that_it_lost() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\n[transport]\nrto = \"300us\"\n\
                controller = { kind = \"none\" }\n[[workload]]\nkind = \"flows\"\n\
                flows = [{ src = 0, dst = 1, size = \"100KB\", start = \"6us\" }]\n[failures]\ndetection = \"50us\"\n\
                [[failures.event]]\nat = \"5us\"\nlink = [\"leaf1\", \"spine0\"]\nlasts = \"20us\"\n";
    let config = load(text, &[]).expect("a scenario").config().expect("a configuration");
    let (accounts, findings) = accounts_with(config.clone(), |_| true);
    let place = Place::Link(link_from(&config, &findings, "spine0", "leaf1"));
    assert_eq!(accounts[0].lost.iter().collect::<Vec<_>>(), [(&place, &100)]);
}

#[test]
fn no_timeout_is_found_where_nothing_is_lost() {
    for transport in DECLARED {
        for loss in ["0", "0.02"] {
            let text = format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 1\nhosts_per_leaf = 1\nextra_hosts = 1\n\
                 [transport]\nkind = \"{}\"\n[[workload]]\nkind = \"permutation\"\nsize = \"200KB\"\n\
                 [failures]\nloss = {loss}\nloss_of = \"data\"\n",
                transport.name
            );
            let (found, _) = accounts_of(&text);
            let waited = found.iter().filter(|one| !one.waited_until.is_empty()).count();
            assert!(found.iter().all(Account::adds_up), "{}: {found:?}", transport.name);
            assert!(loss != "0" || waited == 0, "{}: {found:?}", transport.name);
        }
    }
}
