//! Flows that wait for flows: collectives take the time computed by hand, closed loops keep their
//! concurrency.

use crate::common::*;
use std::path::Path;
use weftline_sim::config::Config;
use weftline_sim::measure::{FlowRecord, Outcome};
use weftline_sim::parameters::{Parameters, Value};
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::star::Star;
use weftline_sim::units::{Rate, Time};
use weftline_sim::workload::graph::listed::{Listed, Op, RankList, SendEnds};
use weftline_sim::workload::graph::source::GraphSource;
use weftline_sim::workload::graph::{JobGraph, ScaleUp, Seats, Work};
use weftline_sim::workload::{FlowSource, FlowSpec, Traffic, WorkloadContext, WorkloadSpec};

const RATE: Rate = Rate::from_gbps(100);
const DELAY: Time = Time::from_us(1);
/// 1048 B and 60 B at 100 Gb/s, in ps.
const PACKET: u64 = 83_840;
const ACK: u64 = 4_800;
/// From the start of a packet to its arrival over two links.
const ONE_WAY: u64 = 2 * (DELAY.0 + PACKET);

/// A workload on hosts of 100 Gb/s, as a scenario would describe it.
pub fn workload(kind: &str, hosts: u32, keys: &[(&str, Value)]) -> Box<dyn FlowSource> {
    let spec = WorkloadSpec::read(kind, &mut Parameters::new(&mut Given(keys))).expect("a known kind");
    let rates = vec![RATE; hosts as usize];
    let context = WorkloadContext {
        seed: 1,
        index: 0,
        hosts,
        host_rate: &rates,
        slower: 1,
        racks: &[],
        gpus_per_node: None,
        placed: &Default::default(),
        label_to_host: &|label| (label < hosts).then_some(label),
        host_named: &|name| Err(format!("unknown host \"{name}\"")),
        base_dir: Path::new("."),
        group: 0,
        group_named: &|_| 0,
        transport: 0,
        header: 48,
        ack: 60,
        mtu: 1000,
        whole_ns: false,
        read_parquet: None,
        warn: &|_| (),
    };
    spec.source(&context).expect("a workload that can be made")
}

/// Runs workloads on a star of these hosts; all of their flows must end.
pub fn on_star(hosts: u32, sources: Vec<Box<dyn FlowSource>>) -> (Kept, Outcome) {
    let topology = Star { hosts: u64::from(hosts), host_link: link(RATE, DELAY) }.build().unwrap();
    let config = normal("none", topology, vec![]);
    let traffic = Traffic { sources, groups: vec!["all".into()] };
    let (kept, outcome) = run(Config { traffic, ..config });
    assert_eq!(outcome.flows_done, outcome.flows);
    (kept, outcome)
}

pub fn text(value: &str) -> Value {
    Value::Text(value.into())
}

/// A ring all-reduce by hand: 2 (n - 1) steps. In each a host sends `packets` packets back to back; the next
/// host continues when it has the last one, and has acknowledged it first. Its own packets have all left
/// before the first one comes in, so that acknowledgements hold up nothing else.
fn ring_by_hand(hosts: u64, packets: u64) -> u64 {
    assert!(packets * PACKET < ONE_WAY);
    let steps = 2 * (hosts - 1);
    steps * (ONE_WAY + (packets - 1) * PACKET) + (steps - 1) * ACK
}

#[test]
fn a_ring_all_reduce_takes_the_time_computed_by_hand() {
    for hosts in [2u64, 3, 8, 16] {
        for packets in [1, 10, 24] {
            let keys = [("bytes", text(&format!("{}B", hosts * packets * 1000)))];
            let (_, outcome) = on_star(hosts as u32, vec![workload("collective", hosts as u32, &keys)]);
            let expected = vec![(0, Time::ZERO, Time(ring_by_hand(hosts, packets)))];
            assert_eq!(outcome.jobs(), expected, "{hosts} hosts, {packets} packets a step");
            // Alone it does not wait for the acknowledgements that its hosts send.
            let steps = 2 * (hosts - 1);
            assert_eq!(outcome.steps[0].ideal, Some(Time(ring_by_hand(hosts, packets) - (steps - 1) * ACK)));
            assert_eq!(outcome.steps[0].shape.bus, Some((steps, hosts)));
        }
    }
}

#[test]
fn hosts_compute_between_two_all_reduces() {
    let compute = Time::from_us(17);
    let keys = [("bytes", text("32KB")), ("repeat", Value::Integer(3)), ("compute", text("17us"))];
    let (_, outcome) = on_star(8, vec![workload("collective", 8, &keys)]);
    let once = Time(ring_by_hand(8, 4));
    let mut start = Time::ZERO;
    for (number, &job) in outcome.jobs().iter().enumerate() {
        assert_eq!(job, (number as u32, start, start + once));
        start = start + once + compute;
    }
    assert_eq!(outcome.jobs().len(), 3);
}

#[test]
fn a_tree_all_reduce_takes_one_way_up_and_one_way_down_a_level() {
    // Three hosts: both leaves send 5 packets to the root, which has them all when the second one's last has
    // come (the switch sends ten packets to it), and sends 5 to each leaf, which its own link makes one after
    // the other.
    let keys = [("operation", text("tree-all-reduce")), ("bytes", text("5KB"))];
    let (_, outcome) = on_star(3, vec![workload("collective", 3, &keys)]);
    let up = ONE_WAY + 9 * PACKET;
    let down = ONE_WAY + 9 * PACKET;
    // Before it sends, the root acknowledges the last packet.
    assert_eq!(outcome.jobs(), [(0, Time::ZERO, Time(up + ACK + down))]);
    assert_eq!(outcome.steps[0].ideal, Some(Time(up + down)));
}

#[test]
fn an_all_to_all_of_two_hosts_is_two_flows_at_once() {
    let keys = [("operation", text("all-to-all")), ("bytes", text("20KB"))];
    let (_, outcome) = on_star(2, vec![workload("collective", 2, &keys)]);
    assert_eq!(outcome.jobs(), [(0, Time::ZERO, Time(ONE_WAY + 9 * PACKET))]);
    assert_eq!(outcome.steps[0].ideal, Some(Time(ONE_WAY + 9 * PACKET)));
}

#[test]
fn a_message_within_a_domain_is_acknowledged_when_it_has_come() {
    // Rank 0 sends to rank 1, which is on another host, and to rank 2 once the first message is acknowledged.
    let links = ScaleUp { rate: Rate::from_gbps(80), delay: DELAY };
    let send = |to| Op::Send { to, bytes: 1000, tag: 0 };
    let receive = Op::Receive { from: Some(0), bytes: 1000, tag: Some(0) };
    let list = |ops: Vec<Op>, ends: &[(u32, u32)]| {
        let places = vec![0; ops.len()];
        RankList::new(ops, places, ends, &[])
    };
    let ranks =
        vec![list(vec![send(1), send(2)], &[(0, 1)]), list(vec![receive], &[]), list(vec![receive], &[])];
    let listed = Listed::new(ranks, vec![], vec![], SendEnds::Acknowledged, "goal").expect("few messages");
    let graph = JobGraph {
        hosts: vec![0, 1, 2],
        seats: Seats::ALONE,
        flow: FlowSpec::default(),
        recorded: true,
        fresh: false,
        work: Work::Listed(listed.with_domains(3, links)),
    };
    let (_, outcome) = on_star(3, vec![Box::new(GraphSource::new(graph))]);
    let message = links.rate.transmission_time(1000) + DELAY;
    assert_eq!(outcome.jobs(), [(0, Time::ZERO, message + message)]);
}

#[test]
fn no_step_takes_less_than_its_ideal_time() {
    for operation in ["ring-all-reduce", "tree-all-reduce", "all-to-all", "pairwise-all-to-all"] {
        for hosts in [2, 5, 9] {
            let keys =
                [("operation", text(operation)), ("bytes", text("90007B")), ("repeat", Value::Integer(3))];
            let (_, outcome) = on_star(hosts, vec![workload("collective", hosts, &keys)]);
            for step in &outcome.steps {
                let time = step.finish.unwrap().saturating_sub(step.start);
                let ideal = step.ideal.unwrap();
                assert!(time >= ideal && ideal > Time::ZERO, "{operation} of {hosts}: {time} < {ideal}");
            }
            // The first one meets nothing but its own acknowledgements.
            let first = &outcome.steps[0];
            let excess = first.finish.unwrap().0 as f64 / first.ideal.unwrap().0 as f64;
            assert!(excess < 1.35, "{operation} of {hosts}: {excess} times the ideal");
        }
    }
}

#[test]
fn jobs_of_two_workloads_are_numbered_apart_and_share_the_network() {
    let ring = || workload("collective", 4, &[("bytes", text("80KB"))]);
    let (_, outcome) = on_star(4, vec![ring(), ring()]);
    let mut jobs = outcome.jobs();
    jobs.sort_unstable();
    assert_eq!(jobs.iter().map(|job| job.0).collect::<Vec<_>>(), [0, 1]);
    let alone = ring_by_hand(4, 20);
    for (_, _, finish) in jobs {
        // Two rings on the same links: each step sends twice as much.
        assert!(
            finish.0 > alone && finish.0 < alone + 6 * 21 * (PACKET + ACK),
            "{finish}, alone {}",
            Time(alone)
        );
    }
}

/// When the last byte of a one-packet flow came: its end less the way of the acknowledgement.
fn delivered(flow: &FlowRecord) -> Time {
    flow.finish.expect("an end") - Time(2 * (DELAY.0 + ACK))
}

fn closed_loop(clients: &str, servers: &str, more: &[(&str, Value)]) -> Vec<FlowRecord> {
    let mut keys = vec![
        ("clients", text(clients)),
        ("servers", text(servers)),
        ("request_size", text("1000B")),
        ("size", text("1000B")),
    ];
    keys.extend_from_slice(more);
    if !keys.iter().any(|(key, _)| *key == "requests") {
        keys.push(("requests", Value::Integer(20)));
    }
    let (kept, _) = on_star(8, vec![workload("closed-loop", 8, &keys)]);
    kept.flows
}

#[test]
fn a_client_asks_again_when_the_answer_has_come() {
    let flows = closed_loop("0", "1", &[("service_time", text("3us")), ("think_time", text("5us"))]);
    assert_eq!(flows.len(), 40);
    let mut now = Time::ZERO;
    for pair in flows.chunks(2) {
        let (request, answer) = (&pair[0], &pair[1]);
        assert_eq!((request.src, request.start), (0, now));
        assert_eq!(delivered(request), now + Time(ONE_WAY));
        assert_eq!((answer.src, answer.start), (1, delivered(request) + Time::from_us(3)));
        now = delivered(answer) + Time::from_us(5);
    }
}

#[test]
fn a_closed_loop_keeps_its_concurrency() {
    // Requests to a server of its own each, so that none waits for another at the receiving end for long.
    for concurrency in [1i64, 3, 8] {
        let flows = closed_loop("0", "1-7", &[("concurrency", Value::Integer(concurrency))]);
        let mut requests: Vec<Time> = flows.iter().filter(|f| f.src == 0).map(|f| f.start).collect();
        let mut answers: Vec<Time> = flows.iter().filter(|f| f.dst == 0).map(|f| f.finish.unwrap()).collect();
        requests.sort_unstable();
        answers.sort_unstable();
        let slots = concurrency as usize;
        assert_eq!((requests.len(), answers.len()), (20 * slots, 20 * slots));
        assert!(requests[..slots].iter().all(|&start| start == Time::ZERO));
        // The k-th request beyond the first ones starts when the k-th answer arrives, which ends (is
        // acknowledged) two microseconds and some acknowledgements later.
        let min = Time(2 * (DELAY.0 + ACK));
        for (start, end) in requests[slots..].iter().zip(&answers) {
            assert!(
                *end >= *start + min && *end <= *start + min + Time(20 * (PACKET + ACK)),
                "{start}, {end}"
            );
        }
    }
}

#[test]
fn computing_between_flows_is_no_stall() {
    // `normal` counts a run as stalled after 20 ms without a byte; here a client thinks for longer.
    let flows = closed_loop("0", "1", &[("requests", Value::Integer(3)), ("think_time", text("300ms"))]);
    assert!(flows.len() >= 6 && flows.iter().all(|flow| flow.finish.is_some()));
}

#[test]
fn a_request_of_an_incast_completes_with_its_last_byte() {
    // Three senders of 10 packets each to one receiver: 30 packets in a row on its link, after the first has
    // crossed its own.
    let keys = [("receiver", text("0")), ("request", text("30KB"))];
    let (kept, outcome) = on_star(4, vec![workload("incast", 4, &keys)]);
    assert_eq!(kept.flows.len(), 3);
    let by_hand = ONE_WAY + 29 * PACKET;
    assert_eq!(outcome.jobs(), [(0, Time::ZERO, Time(by_hand))]);
}

#[test]
fn no_deadline_is_sooner_than_a_multiple_of_the_ideal_time() {
    let keys = [
        ("size", text("100KB")),
        ("count", Value::Integer(200)),
        ("deadline_mean", text("20us")),
        ("deadline_least", Value::Number(1.5)),
    ];
    let (kept, _) = on_star(8, vec![workload("poisson", 8, &keys)]);
    let slack = |flow: &FlowRecord| flow.deadline.expect("it has one") - flow.start;
    let min = |flow: &FlowRecord| Time((flow.ideal.0 as f64 * 1.5) as u64);
    assert!(kept.flows.iter().all(|flow| slack(flow) >= min(flow)));
    // Exp(20 us) is below 1.5 times 12.5 us in 6 of 10 cases.
    let floored = kept.flows.iter().filter(|flow| slack(flow) == min(flow)).count();
    assert!((90..150).contains(&floored), "{floored}");
}
