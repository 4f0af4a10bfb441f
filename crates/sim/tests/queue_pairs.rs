//! Queue pairs that stay open: rings that recover from what disturbs them, flows in order, congestion state that stays, idling,
//! losses.

use crate::common::*;
use proptest::prelude::*;
use weftline_sim::config::{Config, LinkLoss, Recovery, Sampled};
use weftline_sim::measure::{Entity, FlowRecord, Outcome};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

const RING: &str = r#"
[topology]
kind = "star"
hosts = 6

[transport]
controller = { kind = "none" }

[[workload]]
kind = "collective"
hosts = "0-5"
bytes = "2400KB"
repeat = 7
compute = "20us"
"#;

fn ring(text: &str, sets: &[(&str, &str)]) -> (Kept, Outcome) {
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    let (mut kept, outcome) = run_in(1, scenario.config().expect("a configuration"));
    assert_eq!(outcome.flows_done, outcome.flows);
    kept.flows.sort_by_key(|flow| flow.flow);
    (kept, outcome)
}

/// From the end of each operation to that of the next.
fn periods(outcome: &Outcome) -> Vec<f64> {
    outcome.jobs().windows(2).map(|jobs| (jobs[1].2 - jobs[0].2).as_ns()).collect()
}

fn with_pokes(text: &str, pokes: &[(u32, u32, u64, u64)]) -> String {
    let flow = |&(src, dst, kilobytes, us): &(u32, u32, u64, u64)| {
        format!("{{ src = {src}, dst = {dst}, size = \"{kilobytes}KB\", start = \"{us}us\" }}")
    };
    let flows: Vec<String> = pokes.iter().map(flow).collect();
    format!("{text}\n[[workload]]\nkind = \"flows\"\ngroup = \"poke\"\nflows = [{}]\n", flows.join(", "))
}

/// What one host sends to another starts and arrives in order.
fn in_order(flows: &[FlowRecord]) {
    let mut last = std::collections::BTreeMap::new();
    for flow in flows {
        let (start, finish) =
            last.insert((flow.src, flow.dst), (flow.start, flow.finish)).unwrap_or_default();
        assert!(flow.start >= start && flow.finish >= finish, "{flow:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_ring_is_back_at_its_period_four_operations_after_any_disturbance(
        pokes in proptest::collection::vec((0u32..6, 1u32..6, 50u64..1_000, 0u64..300), 1..4),
    ) {
        let (_, alone) = ring(RING, &[]);
        let period = periods(&alone)[0];
        prop_assert!(periods(&alone).iter().all(|&each| each == period), "a ring alone keeps time");
        let pokes: Vec<_> = pokes.iter().map(|&(src, by, kb, us)| (src, (src + by) % 6, kb, us)).collect();
        let (_, poked) = ring(&with_pokes(RING, &pokes), &[]);
        let last = *periods(&poked).last().expect("seven operations");
        prop_assert!((last / period - 1.0).abs() < 0.01, "{pokes:?}: {:?} against {period}", periods(&poked));
    }
}

#[test]
fn a_ring_recovers_under_every_controller_and_transport() {
    let poke = [(1, 4, 800, 100)];
    for kind in ["dcqcn", "hpcc", "dctcp", "timely", "cubic"] {
        let controller = format!("{{ kind = \"{kind}\" }}");
        recovers(&[("transport.controller", &controller)], &poke, kind);
    }
    for kind in ["phost", "pfabric", "fastpass", "tcp"] {
        let text = RING.replace("controller = { kind = \"none\" }", &format!("kind = \"{kind}\""));
        let (_, alone) = ring(&text, &[]);
        let (_, poked) = ring(&with_pokes(&text, &poke), &[]);
        let (before, after) = (periods(&alone), periods(&poked));
        assert!(after[5] < 1.02 * before[5], "{kind}: {after:?} against {before:?}");
    }
}

#[test]
fn a_short_last_packet_of_each_message_leaves_the_laws_of_round_trips_as_they_are() {
    for kind in ["theta-powertcp", "timely"] {
        let period = |bytes: &str| {
            let controller = format!("{{ kind = \"{kind}\" }}");
            let sets = [("transport.controller", controller.as_str()), ("workload.0.bytes", bytes)];
            periods(&ring(RING, &sets).1)[5]
        };
        // Messages of 400 full packets, and of four bytes more.
        let (full, longer) = (period("2400KB"), period("2400024B"));
        assert!((longer / full - 1.0).abs() < 0.02, "{kind}: {longer} ns against {full}");
    }
}

#[test]
fn a_ring_over_several_subflows_is_back_at_its_period_after_any_disturbance() {
    let pokes = [
        vec![(1, 4, 800, 100)],
        vec![(1, 4, 2_000, 400)],
        vec![(1, 4, 800, 100), (0, 2, 500, 150)],
        vec![(1, 4, 800, 100), (0, 2, 500, 150), (5, 3, 1_000, 50)],
    ];
    for (controller, scheduler) in
        [("newreno", "min-rtt"), ("newreno", "round-robin"), ("lia", "min-rtt"), ("cubic", "min-rtt")]
    {
        let transport = format!(
            "kind = \"mptcp\"\nscheduler = \"{scheduler}\"\ncontroller = {{ kind = \"{controller}\" }}"
        );
        let text = RING.replace("controller = { kind = \"none\" }", &transport);
        let (_, alone) = ring(&text, &[]);
        let period = periods(&alone)[5];
        for pokes in &pokes {
            let (_, poked) = ring(&with_pokes(&text, pokes), &[]);
            // The last of them is over in the first or second operation.
            for each in &periods(&poked)[3..] {
                let name = format!("{controller}, {scheduler}, {pokes:?}");
                assert!((each / period - 1.0).abs() < 0.01, "{name}: {:?} against {period}", periods(&poked));
            }
        }
    }
}

fn recovers(sets: &[(&str, &str)], pokes: &[(u32, u32, u64, u64)], name: &str) {
    let (kept, alone) = ring(RING, sets);
    in_order(&kept.flows);
    let (kept, poked) = ring(&with_pokes(RING, pokes), sets);
    in_order(
        &kept.flows[..kept.flows.len() - 1]
            .iter()
            .filter(|flow| flow.group == 0)
            .cloned()
            .collect::<Vec<_>>(),
    );
    let (before, after) = (periods(&alone), periods(&poked));
    assert!(after[5] < 1.01 * before[5], "{name}: {after:?} against {before:?}");
}

#[test]
fn a_host_that_still_computes_does_not_pass_on_what_came_early() {
    // The third host is delayed, so that the one after it has its result, and computes, when the chunks of those ahead come.
    for kind in ["rdma", "phost", "tcp"] {
        let text = RING
            .replace("controller = { kind = \"none\" }", &format!("kind = \"{kind}\""))
            .replace("20us", "400us");
        let (kept, _) = ring(&with_pokes(&text, &[(2, 5, 900, 50)]), &[]);
        let ring: Vec<_> = kept.flows.iter().filter(|flow| flow.group == 0).collect();
        let mut last = [Time::ZERO; 6];
        for flow in ring {
            assert!(flow.start >= last[flow.src as usize], "{kind}: {flow:?}");
            last[flow.src as usize] = flow.start;
        }
    }
}

#[test]
fn the_compat_mode_has_a_queue_pair_for_every_flow_as_its_authors_have() {
    let text = format!("{RING}\n[compat]\nlike = \"hpcc-ns3\"\n");
    let sets = [("transport.controller", "{ kind = \"timely\", window = true }"), ("workload.0.repeat", "1")];
    let (kept, _) = ring(&text, &sets);
    assert_eq!(kept.flows.len(), 60);
}

/// Flows from host 0 to host 1 over one connection, or each over its own.
fn over_one(sets: &[(&str, &str)], kept_open: bool, flows: &[(u64, u64)]) -> Config {
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[transport]\ncontroller = { kind = \"none\" }\nrto = \"200us\"\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    let spec = |&(size, us): &(u64, u64)| FlowSpec {
        connection: kept_open.then_some(0),
        ..flow(0, 1, size, Time::from_us(us))
    };
    Config {
        traffic: traffic(flows.iter().map(spec).collect()),
        ..scenario.config().expect("a configuration")
    }
}

#[test]
fn a_pair_that_idles_times_nothing_out_and_takes_the_ideal_time_again() {
    // Sizes that leave short last packets; pauses just below the timeout, and far above.
    let flows =
        [(2_500, 0), (999, 190), (1, 380), (12_001, 570), (300_000, 760), (1_000, 5_000), (1_001, 5_150)];
    for selective in [false, true] {
        let mut config = over_one(&[], true, &flows);
        if selective {
            rdma_of(&mut config).recovery = Recovery::SelectiveRepeat { reordering: 3 };
        }
        let (kept, _) = run(config);
        for (flow, (size, us)) in kept.flows.iter().zip(flows) {
            assert_eq!((flow.size, flow.start), (size, Time::from_us(us)));
            assert_eq!((flow.packets_sent, flow.packets_retransmitted), (size.div_ceil(1000), 0));
            assert_eq!(flow.finish.map(|finish| finish - flow.start), Some(flow.ideal), "{flow:?}");
        }
    }
}

#[test]
fn flows_given_at_once_follow_each_other_without_a_gap() {
    let flows: Vec<(u64, u64)> = (0..20).map(|flow| (1_000 * (flow % 4 + 1), 0)).collect();
    let (kept, _) = run(over_one(&[], true, &flows));
    let (one, _) = run(over_one(&[], true, &[(50_000, 0)]));
    in_order(&kept.flows);
    assert_eq!(kept.flows[19].finish, one.flows[0].finish, "as the same bytes of one flow");
    let (apart, _) = run(over_one(&[], false, &flows));
    assert!(apart.flows[3].finish > kept.flows[3].finish, "on their own they take turns");
}

#[test]
fn a_pair_keeps_the_rate_that_marks_have_left_it() {
    let second = |kept_open| {
        let mut config = over_one(
            &[("transport.controller", "{ kind = \"dcqcn\" }")],
            kept_open,
            &[(2_000_000, 0), (500_000, 700)],
        );
        let mut flows = vec![flow(2, 1, 2_000_000, Time::ZERO), flow(3, 1, 2_000_000, Time::ZERO)];
        let mut all: Vec<FlowSpec> = Vec::new();
        let mut source = config.traffic.sources[0].clone_box();
        all.extend(std::iter::from_fn(|| source.next()));
        all.splice(1..1, flows.drain(..));
        config.traffic = traffic(all);
        let (kept, _) = run(config);
        let last = &kept.flows[3];
        assert_eq!(last.size, 500_000);
        (last.finish.expect("an end") - last.start).as_ns() / last.ideal.as_ns()
    };
    let (kept, fresh) = (second(true), second(false));
    assert!(kept > 2.0 * fresh, "{kept} {fresh}");
}

#[test]
fn a_rest_of_a_whole_round_of_the_clock_of_int_takes_no_link_for_full() {
    for controller in ["hpcc", "powertcp"] {
        let second = |rest: u64| {
            let kind = format!("{{ kind = \"{controller}\" }}");
            let mut config = over_one(&[("transport.controller", &kind)], true, &[]);
            let kept = |size, us| FlowSpec { connection: Some(0), ..flow(0, 1, size, Time::from_us(us)) };
            // 40 MB of another host in between, all delivered before the pair sends again.
            let others = flow(2, 1, 40_000_000, Time::from_us(1_000));
            config.traffic = traffic(vec![kept(200_000, 0), others, kept(200_000, rest)]);
            let (kept, _) = run(config);
            kept.flows[2].finish.expect("an end") - kept.flows[2].start
        };
        // 2^24 ns are 16.777 ms; the first flow has ended after 20 us.
        let all = [10_000, 16_800, 33_580].map(second);
        assert_eq!(all, [all[0]; 3], "{controller}");
    }
}

#[test]
fn goodput_is_that_of_the_flow_whose_bytes_come() {
    let flows: Vec<(u64, u64)> = (0..8).map(|flow| (700 * flow + 1, 0)).collect();
    let mut config = over_one(&[], true, &flows);
    config.measure.flow_goodput = Some(Sampled { what: vec![3, 7], every: Time::from_us(1) });
    let (kept, _) = run(config);
    let bytes = |flow: u32| -> f64 {
        let of =
            |s: &&weftline_sim::measure::Sample| s.metric == "goodput_bps" && s.entity == Entity::Flow(flow);
        kept.samples.iter().filter(of).map(|s| s.value / 8e6).sum()
    };
    assert!((bytes(3) - 2101.0).abs() < 0.1 && (bytes(7) - 4901.0).abs() < 0.1, "{} {}", bytes(3), bytes(7));
}

/// Flows end inside a packet, so that the next one begins some bytes later: no gap to be waited for.
#[test]
fn a_flow_that_follows_one_with_a_short_last_packet_is_not_waited_for() {
    let times = |enabled: &str| {
        let sets = [("workload.0.bytes", "401KB"), ("host.resequencing.enabled", enabled)];
        let (kept, outcome) = ring(RING, &sets);
        if let Some(seen) = &outcome.receiving {
            assert_eq!((seen.held, seen.expired), (0, 0));
        }
        completion_times(&kept)
    };
    assert_eq!(times("true"), times("false"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lost_all_flows_arrive_in_order(
        seed in 0u64..1 << 40, percent in 1u32..10, kind in 0usize..3, selective: bool, law in 0usize..5,
        sizes in proptest::collection::vec((1u64..60_000, 0u64..2_000), 1..12),
    ) {
        let controller = format!("{{ kind = \"{}\" }}", ["none", "dcqcn", "dctcp", "cubic", "bbr"][law]);
        let mut flows = sizes;
        flows.sort_by_key(|flow| flow.1);
        let mut config = over_one(&[("transport.controller", &controller)], true, &flows);
        if selective {
            rdma_of(&mut config).recovery = Recovery::SelectiveRepeat { reordering: 3 };
        }
        config.seed = seed;
        let kinds = [LinkLoss::ALL, LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS][kind];
        config.failures.loss = Some(LinkLoss { share: f64::from(percent) / 100.0, kinds });
        let (kept, _) = run(config);
        in_order(&kept.flows);
        for (flow, (size, _)) in kept.flows.iter().zip(&flows) {
            prop_assert!(flow.finish.is_some() && flow.size == *size, "{:?}", flow);
            prop_assert_eq!(flow.packets_sent - flow.packets_retransmitted, size.div_ceil(1000), "{:?}", flow);
        }
    }
}

/// The copy that a timeout sent arrives after the flow is complete; the receiver must recognise it, also in a run
/// like the HPCC authors' simulator, which has no timeout unless the scenario sets one.
#[test]
fn a_duplicate_after_the_end_of_a_flow_opens_no_new_receiver_whatever_the_run_is_like() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\nhost_link = { rate = \"25Gbps\", delay = \"20us\" }\n\
                [transport]\ncontroller = { kind = \"none\" }\nrto = \"30us\"\nbase_rtt = \"30us\"\n\
                [[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"3KB\" }, \
                { src = 2, dst = 1, size = \"1KB\", start = \"10us\" }]\n[run]\nuntil = \"2ms\"\n";
    for compat in ["", "[compat]\nlike = \"hpcc-ns3\"\n"] {
        let (kept, outcome) = ring(&format!("{text}{compat}"), &[]);
        assert!(losses_of(&outcome).retransmitted_spurious > 0, "{compat}");
        check_losses(&kept, &outcome);
    }
}

/// Under `departure_events` every transmission ends with an event, also at a switch where nothing waits, whatever the queue.
#[test]
fn with_departure_events_each_transmission_has_one_and_flows_end_as_without() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[transport]\ncontroller = { kind = \"none\" }\nrto = \"none\"\n\
                [[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1KB\" }, \
                { src = 2, dst = 1, size = \"1KB\", start = \"50us\" }]\n";
    for queue in ["fifo", "priority"] {
        let ends = [false, true].map(|departure_events| {
            let mut config = load(text, &[("switch.queue.kind", queue)]).unwrap().config().unwrap();
            config.rules.departure_events = departure_events;
            let (kept, outcome) = run_in(1, config);
            (kept.flows, outcome.packet_hops, outcome.events)
        });
        let [(flows, hops, events), (same, same_hops, more)] = ends;
        assert_eq!((&flows, hops), (&same, same_hops), "{queue}");
        assert_eq!(hops, 2 * 2 * 2, "two flows, data and acknowledgement, two links");
        assert_eq!(more - events, hops, "{queue}: one event for each transmission");
    }
}

/// The completion time of 4 MB from host 0 to host 1, with what is added to the scenario.
fn of_a_flow(controller: &str, added: &str) -> Time {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 2\n{added}\n[transport]\ncontroller = {{ kind = \"{controller}\" }}\n\
         [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"4MB\" }}]\n"
    );
    let (kept, _) = ring(&text, &[]);
    completion_times(&kept)[0]
}

#[test]
fn a_queue_pair_that_starts_while_an_event_slows_its_link_has_the_rate_of_the_link_after_it() {
    let event = |at: &str, rest: &str| {
        let change = "link = [\"host0\", \"s0\"], change = \"rate\", rate = \"10Gbps\"";
        format!("[failures]\nevent = [{{ at = \"{at}\", {change}{rest} }}]")
    };
    for controller in ["none", "dcqcn", "hpcc", "timely", "swift"] {
        let own = of_a_flow(controller, "");
        for at in ["0us", "1us"] {
            // 100 us at 10 Gb/s carry what 10 us carry at 100 Gb/s.
            let slowed = of_a_flow(controller, &event(at, ", lasts = \"100us\""));
            let more = slowed.saturating_sub(own);
            assert!(
                more > Time::from_us(50) && more < Time::from_us(250),
                "{controller} {at}: {slowed}, {own}"
            );
        }
    }
    // For good, it is a link of that rate.
    let slow = "[[topology.override]]\nbetween = [\"host0\", \"s0\"]\nrate = \"10Gbps\"";
    assert_eq!(of_a_flow("none", &event("0us", "")), of_a_flow("none", slow));
}
