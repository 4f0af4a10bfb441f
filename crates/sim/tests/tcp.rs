//! TCP end to end: times computed by hand, losses, laws of its controllers, and what a scenario may set.

use crate::common::*;
use weftline_sim::config::{Change, Config, Failure, LinkLoss, Sampled, Until};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

fn dumbbell(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    let scenario = load(DUMBBELL, sets).unwrap_or_else(|error| panic!("{error}"));
    let mut config = Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") };
    if let Until::FlowsDone { stall, .. } = &mut config.until {
        *stall = Time::from_ms(300_000);
    }
    config
}

/// Completion times in tenths of a microsecond.
fn tenths(config: Config) -> Vec<u64> {
    let (kept, _) = run(config);
    completion_times(&kept).iter().map(|fct| fct.ns() / 100).collect()
}

#[test]
fn a_handshake_and_one_window_take_the_time_that_links_take() {
    // SYN and SYN-ACK 10.0048 ms each (0.4 + 4 + 0.4 us and 10 ms). The third packet is 0.4 us ahead of the data; ten of
    // them, 84 us each at the bottleneck, and 10.0048 ms for the last acknowledgement.
    let way = 84 + 84 + 840 + 100_000;
    let one_window = 2 * 100_048 + 4 + way + 9 * 840 + 100_048;
    assert_eq!(tenths(dumbbell(&[], vec![flow(0, 4, 10_000, Time::ZERO)])), [one_window]);
}

#[test]
fn slow_start_doubles_the_window_every_round_trip() {
    let way = 84 + 84 + 840 + 100_000;
    // Each of the ten acknowledgements, 84 us apart, lets two segments out: twenty, back to back at the bottleneck.
    let first_ack = 2 * 100_048 + 4 + way + 100_048;
    let second_window = first_ack + way + 19 * 840 + 100_048;
    assert_eq!(tenths(dumbbell(&[], vec![flow(0, 4, 30_000, Time::ZERO)])), [second_window]);
}

#[test]
fn two_flows_fill_a_bottleneck() {
    let flows = vec![flow(0, 4, 20_000_000, Time::ZERO), flow(1, 5, 20_000_000, Time::from_ms(1))];
    let limit = [("switch.queue", "{ kind = \"priority\", limit = \"262500B\", drop = \"tail\" }")];
    let (kept, outcome) = run(dumbbell(&limit, flows));
    let last = completion_times(&kept).into_iter().max().unwrap();
    // 40 MB in packets of 1050 B at 100 Mb/s: 3.36 s.
    assert!(last > Time::from_ms(3360) && last < Time::from_ms(3900), "{last}");
    assert!(sum_of(&outcome, |port| port.packets_dropped) > 0);
    let again: u64 = kept.flows.iter().map(|flow| flow.packets_retransmitted).sum();
    assert_eq!(again, sum_of(&outcome, |port| port.packets_dropped), "what was lost is sent again, once");
}

#[test]
fn a_delayed_acknowledgement_comes_after_its_delay_and_the_last_segment_has_none() {
    let fct = |sets: &[(&str, &str)], bytes| tenths(dumbbell(sets, vec![flow(0, 4, bytes, Time::ZERO)]))[0];
    let way = 84 + 84 + 840 + 100_000;
    let all_at_once = |segments: u64| 2 * 100_048 + 4 + way + (segments - 1) * 840 + 100_048;
    let two =
        [("transport.ack_every", "2"), ("transport.initial_window", "1"), ("transport.quick_acks", "0")];
    assert_eq!(fct(&two, 1_000), all_at_once(1), "the last segment is acknowledged at once");
    // The first segment alone waits for 40 ms; the second and last does not.
    assert_eq!(fct(&two, 2_000), all_at_once(1) + 400_000 + way + 100_048);
    // Ten segments are five acknowledgements.
    assert_eq!(fct(&[two[0], two[2]], 10_000), all_at_once(10));
    // The first segments of a connection are acknowledged at once.
    assert_eq!(fct(&two[..2], 2_000), all_at_once(1) + way + 100_048);
}

#[test]
fn a_lost_syn_costs_its_timeout_and_no_delayed_acknowledgement() {
    let fct = |quick_acks| {
        let sets = [
            ("transport.ack_every", "2"),
            ("transport.quick_acks", quick_acks),
            ("transport.rto_syn", "50ms"),
        ];
        let mut config = dumbbell(&sets, vec![flow(0, 4, 2_000, Time::ZERO)]);
        // The SYN is on the bottleneck from 1 ms to 9 ms.
        let [left, right] = ["s0", "s1"].map(|name| node_named(&config.topology, name));
        let link = link_between(&config.topology, left, right);
        config.failures.events = vec![
            Failure { at: Time::from_ms(5), change: Change::LinkDown(link) },
            Failure { at: Time::from_ms(6), change: Change::LinkUp(link) },
        ];
        tenths(config)[0]
    };
    let way = 84 + 84 + 840 + 100_000;
    // The window of the second attempt is one segment, and its first acknowledgement lets the second out.
    let two_rounds = 500_000 + 2 * 100_048 + 4 + 2 * (way + 100_048);
    assert_eq!((fct("16"), fct("0")), (two_rounds, two_rounds + 400_000));
}

#[test]
fn after_sixteen_segments_acknowledgements_are_delayed_again() {
    let acknowledgements = |quick_acks| {
        let sets = [
            ("transport.ack_every", "2"),
            ("transport.quick_acks", quick_acks),
            ("transport.initial_window", "100"),
        ];
        let (kept, outcome) = run(dumbbell(&sets, vec![flow(0, 4, 100_000, Time::ZERO)]));
        assert_eq!((kept.flows[0].packets_sent, kept.flows[0].packets_retransmitted), (100, 0));
        // Over three links, as the data and the three packets of the handshake.
        sum_of(&outcome, |port| port.packets_sent) / 3 - 100 - 3
    };
    assert_eq!((acknowledgements("16"), acknowledgements("0")), (16 + 42, 50));
}

#[test]
fn an_acknowledgement_at_a_change_of_marks_leaves_at_once() {
    let flows = vec![flow(0, 4, 20_000_000, Time::ZERO), flow(1, 5, 20_000_000, Time::ZERO)];
    let fast = [
        ("transport.controller", "{ kind = \"dctcp\" }"),
        ("transport.ack_every", "2"),
        ("switch.ecn", "{ enabled = true, kmin = \"30KB\", kmax = \"30KB\", pmax = 1.0 }"),
        ("topology.host_link", "{ rate = \"10Gbps\", delay = \"1us\" }"),
        ("topology.bottleneck_link", "{ rate = \"10Gbps\", delay = \"10us\" }"),
    ];
    let (kept, _) = run(dumbbell(&fast, flows));
    let times = completion_times(&kept);
    // 40 MB in packets of 1050 B at 10 Gb/s: 33.6 ms. Where every other segment changes the mark, nothing but these
    // acknowledgements leaves, and the timer of delayed ones comes after 40 ms.
    assert!(times.iter().all(|fct| *fct > Time::from_ms(27) && *fct < Time::from_ms(37)), "{times:?}");
}

#[test]
fn without_an_answer_a_syn_is_repeated_ever_later_and_then_the_connection_dies() {
    let mut config = dumbbell(&[("transport.syn_retries", "6")], vec![flow(0, 4, 10_000, Time::ZERO)]);
    config.failures.loss = Some(LinkLoss { share: 1.0, kinds: LinkLoss::ALL });
    config.until = Until::At(Time::from_ms(200_000));
    let (kept, outcome) = run(config);
    assert_eq!((kept.flows[0].finish, kept.flows[0].packets_sent), (None, 0));
    // One SYN and six more: at 1, 3, 7, 15, 31 and 63 s.
    assert_eq!(sum_of(&outcome, |port| port.packets_lost), 7);
}

/// Sixteen hosts at 100 Gb/s and a switch with a buffer of 1 MB: a round trip of 8 us, and 80 us until that is empty.
const DATACENTER: &str = r#"
[topology]
kind = "star"
hosts = 16
host_link = { rate = "100Gbps", delay = "2us" }
[switch]
buffer = "1MB"
[transport]
kind = "tcp"
[[workload]]
kind = "permutation"
size = "1KB"
"#;

#[test]
fn the_timeout_of_a_syn_is_that_of_its_network() {
    let timeout = |text: &str, sets: &[(&str, &str)]| {
        let resolved = load(text, sets).unwrap_or_else(|error| panic!("{error}")).resolved().to_string();
        let line = resolved.lines().find(|line| line.starts_with("rto_syn")).expect("a timeout");
        line.split('"').nth(1).expect("a value").to_string()
    };
    assert_eq!(timeout(DATACENTER, &[]), "1ms", "never below");
    // 125 kB at 1 Gb/s are 1 ms.
    let slow = ("topology.host_link", "{ rate = \"1Gbps\", delay = \"2us\" }");
    assert_eq!(timeout(DATACENTER, &[slow]), "8ms", "a buffer of 1 MB");
    let long = ("topology.host_link", "{ rate = \"100Gbps\", delay = \"10ms\" }");
    let ten: Time = timeout(DATACENTER, &[long]).parse().expect("a time");
    assert!((400.0..400.1).contains(&(ten.as_us() / 1e3)), "ten round trips of 40 ms and a little: {ten}");
    let far = ("topology.host_link", "{ rate = \"100Gbps\", delay = \"50ms\" }");
    assert_eq!(timeout(DATACENTER, &[far]), "1s", "RFC 6298's");
    assert_eq!(timeout(DATACENTER, &[far, ("transport.kind", "mptcp")]), "1s");
    assert_eq!(timeout(DATACENTER, &[("transport.kind", "mptcp")]), "1ms");
    assert_eq!(timeout(DATACENTER, &[("transport.profile", "ns3-3.35")]), "3s");
    assert_eq!(timeout(DATACENTER, &[("transport.rto_syn", "20ms")]), "20ms");
    assert_eq!(timeout(DATACENTER, &[("transport.rto_syn", "auto")]), "1ms");
    let complain = |value| load(DATACENTER, &[("transport.rto_syn", value)]).err().unwrap_or_default();
    assert!(complain("soon").contains("; \"auto\" is also valid"), "{}", complain("soon"));
    assert!(complain("1ns").contains("expected a time from 1us"), "{}", complain("1ns"));
}

#[test]
fn in_a_run_of_milliseconds_a_flow_whose_syn_was_lost_still_ends() {
    let unfinished = |sets: &[(&str, &str)]| {
        let scenario = load(DATACENTER, sets).unwrap_or_else(|error| panic!("{error}"));
        let mut config = scenario.config().expect("a configuration");
        config.traffic = traffic((0..15).map(|src| flow(src, 15, 10_000, Time::ZERO)).collect());
        config.failures.loss = Some(LinkLoss { share: 0.2, kinds: LinkLoss::control(1) });
        config.until = Until::At(Time::from_ms(50));
        let (kept, outcome) = run(config);
        assert!(sum_of(&outcome, |port| port.packets_lost) > 0);
        kept.flows.iter().filter(|flow| flow.finish.is_none()).count()
    };
    assert_eq!(unfinished(&[]), 0);
    assert!(unfinished(&[("transport.rto_syn", "1s")]) > 0);
}

#[test]
fn under_ns3_a_receiver_repeats_its_answer_to_a_syn_while_nothing_else_comes() {
    let answers = |reactions: &str, kinds: u32| {
        let sets = [("transport.profile", "ns3-3.35"), ("transport.reactions", reactions)];
        let mut config = dumbbell(&sets, vec![flow(0, 4, 10_000, Time::ZERO)]);
        config.failures.loss = Some(LinkLoss { share: 1.0, kinds });
        config.until = Until::At(Time::from_ms(8_000));
        sum_of(&run(config).1, |port| port.packets_lost)
    };
    // Two SYNs, at 0 and 3 s, are answered; the answer to the first is due once more at 3 s.
    let syn_ack = LinkLoss::control(2);
    assert_eq!((answers("rfc", syn_ack), answers("ns3-3.35", syn_ack)), (2, 3));
    // Of the third packet of the handshake alone, nothing is noticed: the data say as much.
    assert_eq!(answers("ns3-3.35", LinkLoss::control(3)), 1);
}

#[test]
fn a_connection_that_receives_nothing_dies_after_its_retries_and_stays_unfinished() {
    let sets = [("transport.retries", "3"), ("transport.rto_min", "1s"), ("transport.initial_window", "1")];
    let mut config = dumbbell(&sets, vec![flow(0, 4, 10_000, Time::ZERO)]);
    config.failures.loss = Some(LinkLoss { share: 1.0, kinds: LinkLoss::DATA });
    config.until = Until::At(Time::from_ms(200_000));
    let (kept, outcome) = run(config);
    // The segment, a probe of new data (which the window of one segment does not hold back), and what three timeouts send again.
    let record = &kept.flows[0];
    assert_eq!((record.finish, record.packets_sent, record.packets_retransmitted), (None, 5, 3));
    assert_eq!(sum_of(&outcome, |port| port.packets_lost), 5);
}

#[test]
fn a_receiver_that_reads_slowly_closes_its_window_and_opens_it_as_it_reads() {
    // Four segments fill the buffer; a byte is read every microsecond. Updates come when 1, 2 and 4 KB are read.
    let sets = [("transport.receive_buffer", "4000B"), ("transport.app_read_rate", "8Mbps")];
    let fct = tenths(dumbbell(&sets, vec![flow(0, 4, 10_000, Time::ZERO)]))[0];
    let (way, ack) = (84 + 84 + 840 + 100_000, 100_048);
    // The first segment comes; a millisecond later an update lets the fifth out, one more the sixth, and two more the next two.
    let first = 2 * ack + 4 + way;
    let fifth = first + 10_000 + ack + way;
    // Each of these finds the one before it read: the sixth has room for the ninth, the seventh for the tenth.
    let seventh = fifth + 30_000;
    assert_eq!(fct, seventh + ack + way + ack);
}

#[test]
fn a_close_costs_three_packets_and_changes_no_completion_time() {
    let with = |fin: &str| {
        let mut config = dumbbell(&[("transport.fin", fin)], vec![flow(0, 4, 10_000, Time::ZERO)]);
        config.until = Until::At(Time::from_ms(1000));
        let (kept, outcome) = run(config);
        (
            completion_times(&kept),
            sum_of(&outcome, |port| port.packets_sent),
            sum_of(&outcome, |port| port.bytes_sent),
        )
    };
    let (closed, open) = (with("true"), with("false"));
    assert_eq!(closed.0, open.0);
    // Over three links, 50 bytes each.
    assert_eq!((closed.1 - open.1, closed.2 - open.2), (9, 450));
}

#[test]
fn a_lost_tail_is_probed_for_after_two_round_trips() {
    // The queue of the bottleneck holds one packet: of three the third is lost, and is alone when the others are acknowledged.
    let sets = [
        ("switch.queue", "{ kind = \"fifo\", packets = 1 }"),
        ("transport.initial_window", "3"),
        ("transport.loss_probe_ack_delay", "0us"),
    ];
    let (kept, _) = run(dumbbell(&sets, vec![flow(0, 4, 3_000, Time::ZERO)]));
    assert_eq!(kept.flows[0].packets_retransmitted, 1);
    // Samples in tenths of a microsecond: the handshake, both acknowledgements. SRTT = 7/8 SRTT + 1/8 sample.
    let (way, ack) = (84 + 84 + 840 + 100_000u64, 100_048u64);
    let samples = [2 * ack, way + ack, way + 840 - 84 + ack].map(|tenths| tenths * 100_000);
    let smoothed = samples.into_iter().reduce(|smoothed, sample| (7 * smoothed + sample) / 8).unwrap();
    let second_ack = (2 * ack + 4 + way + 840 + ack) * 100_000;
    let end = second_ack + 2 * smoothed + (way + ack) * 100_000;
    assert_eq!(kept.flows[0].finish.unwrap(), Time(end));
}

#[test]
fn a_lost_tail_waits_for_the_timeout_without_a_probe() {
    // Of the first window all are lost but what the handshake needs: the queue of the bottleneck holds one packet.
    let sets = [
        ("switch.queue", "{ kind = \"fifo\", packets = 1 }"),
        ("transport.initial_window", "3"),
        ("transport.loss_probe", "false"),
    ];
    let (kept, _) = run(dumbbell(&sets, vec![flow(0, 4, 3_000, Time::ZERO)]));
    // The third of three finds one on the link and one that waits. The first two are acknowledged, the last 84 us later than
    // alone; SRTT after them is within the 200 ms that the timeout adds to it.
    let fct = kept.flows[0].finish.unwrap();
    assert_eq!(kept.flows[0].packets_retransmitted, 1);
    let (way, ack) = (10_100_800_000u64, 10_004_800_000u64);
    let first_acks = 2 * ack + 400_000 + way + 84_000_000 + ack;
    assert!(fct.0 > first_acks + 220_000_000_000 && fct.0 < first_acks + 242_000_000_000, "{fct}");
}

/// Bytes per second of a flow between 10 s and the end, by a link with this share of data lost at random.
fn goodput_under_loss(controller: &str, share: f64, seconds: u64, sets: &[(&str, &str)]) -> f64 {
    let kind = format!("{{ kind = \"{controller}\" }}");
    let mut all = vec![("transport.controller", kind.as_str())];
    all.extend_from_slice(sets);
    let mut config = dumbbell(&all, vec![flow(0, 4, 1 << 40, Time::ZERO)]);
    config.failures.loss = Some(LinkLoss { share, kinds: LinkLoss::DATA });
    config.until = Until::At(Time::from_ms(1000 * seconds));
    config.measure.flow_goodput = Some(Sampled { what: vec![0], every: Time::from_ms(1000) });
    let (kept, _) = run_in(1, config);
    let rates: Vec<f64> =
        kept.samples.iter().filter(|s| s.time > Time::from_ms(10_000)).map(|s| s.value / 8.0).collect();
    rates.iter().sum::<f64>() / rates.len() as f64
}

#[test]
fn newreno_keeps_mathis_law_under_random_loss() {
    for share in [0.0005f64, 0.001, 0.002] {
        // Three links lose; RTT 20.05 ms, never a queue. C = 1.31 for random losses and an acknowledgement per segment (Mathis,
        // Semke, Mahdavi, Ott, CCR 27(3), 1997, Table 1).
        let loss = 1.0 - (1.0 - share).powi(3);
        let predicted = 1000.0 / 0.0200268 * 1.31 / loss.sqrt();
        let found = goodput_under_loss("newreno", share, 600, &[("topology.bottleneck_link.rate", "1Gbps")]);
        println!("loss {loss:.5}: {found:.0} B/s, Mathis {predicted:.0}, ratio {:.3}", found / predicted);
        assert!((found / predicted - 1.0).abs() < 0.1, "{share}: {found} and {predicted}");
    }
}

/// Samples of a metric of flow 0.
fn watched(config: Config, every: Time, metric: &str) -> Vec<(f64, f64)> {
    let mut config = config;
    config.measure.controllers = Some(Sampled { what: vec![0], every });
    let (kept, _) = run_in(1, config);
    let of = |s: &&weftline_sim::measure::Sample| s.metric == metric;
    kept.samples.iter().filter(of).map(|s| (s.time.as_seconds(), s.value)).collect()
}

fn long_flow(controller: &str, seconds: u64, sets: &[(&str, &str)]) -> Config {
    let kind = format!("{{ kind = \"{controller}\" }}");
    let mut all = vec![("transport.controller", kind.as_str())];
    all.extend_from_slice(sets);
    let mut config = dumbbell(&all, vec![flow(0, 4, 1 << 40, Time::ZERO)]);
    config.until = Until::At(Time::from_ms(1000 * seconds));
    config
}

#[test]
fn vegas_keeps_two_to_four_packets_in_the_queue() {
    // Slow start overruns the queue by a whole window, which it gives back by a segment a round trip.
    let queued = watched(long_flow("vegas", 60, &[]), Time::from_ms(100), "queued_segments");
    let late: Vec<f64> = queued.iter().filter(|s| s.0 > 45.0).map(|s| s.1).collect();
    assert!(late.len() > 100);
    assert!(late.iter().all(|queued| (2.0..=4.0).contains(queued)), "{late:?}");
}

#[test]
fn cubic_follows_its_cubic_after_a_loss() {
    // A queue of a bandwidth-delay product: the window of 480 segments meets a loss, and returns along 0.4 (t - K)^3 + Wmax.
    let limit = [("switch.queue", "{ kind = \"fifo\", packets = 240 }")];
    let config = long_flow("cubic", 60, &limit);
    let every = Time::from_ms(10);
    let wmax = watched(config.clone(), every, "w_max_segments");
    let k = watched(config.clone(), every, "k_seconds");
    let cwnd = watched(config, every, "cwnd_bytes");
    let mut epochs = 0;
    for at in 1..cwnd.len() {
        // An epoch begins where K changes; its window is compared four seconds later.
        let four_seconds = at + 400;
        let whole = four_seconds < k.len() && k[at..=four_seconds].iter().all(|s| s.1 == k[at].1);
        if k[at].1 == k[at - 1].1 || k[at].1 == 0.0 || !whole {
            continue;
        }
        // K follows from the window that was left.
        let left = cwnd[at].1 / 1000.0;
        let expected_k = ((wmax[at].1 - left) / 0.4).cbrt();
        assert!((k[at].1 - expected_k).abs() < 0.35, "K {} and {expected_k}", k[at].1);
        let expected = 0.4 * (4.0 - k[at].1).powi(3) + wmax[at].1;
        let found = cwnd[four_seconds].1 / 1000.0;
        assert!((found - expected).abs() < 4.0, "window {found} and {expected}");
        epochs += 1;
    }
    assert!(epochs >= 3, "{epochs} epochs");
}

#[test]
fn bbr_cycles_its_gain_and_looks_at_the_round_trip_time_every_ten_seconds() {
    // RTT 40.1 ms.
    let config = long_flow("bbr", 25, &[("topology.bottleneck_link.delay", "18ms")]);
    let of = |metric| watched(config.clone(), Time::from_ms(5), metric);
    let (cwnd, gain, mode) = (of("cwnd_bytes"), of("pacing_gain"), of("mode"));
    let (bandwidth, rtprop) = (of("btlbw_bps"), of("rtprop_ns"));
    // Startup, Drain, ProbeBW; then ProbeRTT with four segments, and ProbeBW again.
    let mut modes: Vec<f64> = mode.iter().map(|s| s.1).collect();
    modes.dedup();
    assert_eq!(modes, [0.0, 1.0, 2.0, 3.0, 2.0, 3.0, 2.0]);
    let probes: Vec<f64> =
        mode.windows(2).filter(|w| w[1].1 == 3.0 && w[0].1 != 3.0).map(|w| w[1].0).collect();
    assert!((10.0..10.5).contains(&probes[0]) && (20.3..21.0).contains(&probes[1]), "{probes:?}");
    let in_probe: Vec<f64> = (0..cwnd.len()).filter(|&at| mode[at].1 == 3.0).map(|at| cwnd[at].1).collect();
    assert!(in_probe.iter().all(|cwnd| *cwnd == 4_000.0) && (45..65).contains(&(in_probe.len() / 2)));
    // 100 Mb/s less headers, and 40.1 ms.
    let late = |series: &[(f64, f64)]| series.iter().filter(|s| s.0 > 1.0).map(|s| s.1).collect::<Vec<_>>();
    let bandwidth = late(&bandwidth);
    let extremes = bandwidth.iter().fold((f64::MAX, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
    assert!(bandwidth.iter().all(|bps| (bps / 95.238e6 - 1.0).abs() < 0.001), "{extremes:?}");
    // When it is measured again, what a probe left in the queue counts until that has drained.
    let settled = (0..rtprop.len()).filter(|&at| mode[at].1 == 2.0 && rtprop[at].0 > 1.0);
    assert!(settled.into_iter().all(|at| (rtprop[at].1 / 40.1064e6 - 1.0).abs() < 0.001));
    // One phase in eight probes, one drains (for less than an RTprop at times).
    let steady: Vec<f64> = (0..gain.len()).filter(|&at| mode[at].1 == 2.0).map(|at| gain[at].1).collect();
    let share = |of: f64| steady.iter().filter(|gain| **gain == of).count() as f64 / steady.len() as f64;
    assert!(
        (0.11..0.17).contains(&share(1.25)) && (0.05..0.13).contains(&share(0.75)),
        "{} {}",
        share(1.25),
        share(0.75)
    );
}

/// ProbeRTT lasts for more rounds than the filter has, and none of its samples counts.
#[test]
fn bbr_knows_the_bandwidth_of_a_short_path_after_probe_rtt() {
    let config = long_flow("bbr", 11, &[("topology.bottleneck_link.delay", "2ms")]);
    let bandwidth = watched(config, Time::from_ms(5), "btlbw_bps");
    let late = bandwidth.iter().filter(|sample| sample.0 > 1.0);
    assert!(late.clone().all(|sample| (sample.1 / 95.238e6 - 1.0).abs() < 0.001));
}

#[test]
fn bbr_of_version_3_goes_through_its_states_and_keeps_the_path_full() {
    // RTT 40.1 ms: 477 segments in flight fill it, so that a probe comes after 63 rounds or 2 to 3 s, and ProbeRTT every 5 s.
    let config = long_flow("bbr3", 25, &[("topology.bottleneck_link.delay", "18ms")]);
    let of = |metric| watched(config.clone(), Time::from_ms(5), metric);
    let (mode, cwnd, bandwidth) = (of("mode"), of("cwnd_bytes"), of("max_bw_bps"));
    let mut changes: Vec<(f64, f64)> = mode.clone();
    changes.dedup_by_key(|change| change.1);
    let names = ["Startup", "Drain", "DOWN", "CRUISE", "REFILL", "UP", "ProbeRTT"];
    let order: Vec<&str> = changes.iter().map(|change| names[change.1 as usize]).collect();
    assert_eq!(order[..7], ["Startup", "Drain", "CRUISE", "REFILL", "UP", "DOWN", "CRUISE"], "{order:?}");
    // From one UP to the next 2 to 3 s, unless ProbeRTT restarts the wait.
    let entries = |name: &str| -> Vec<f64> {
        changes.iter().filter(|change| names[change.1 as usize] == name).map(|change| change.0).collect()
    };
    let ups = entries("UP");
    assert!(ups.windows(2).all(|two| (2.0..6.0).contains(&(two[1] - two[0]))), "{ups:?}");
    let probes = entries("ProbeRTT");
    assert!((3..=5).contains(&probes.len()), "{probes:?}");
    assert!(probes.windows(2).all(|two| (5.0..6.0).contains(&(two[1] - two[0]))), "{probes:?}");
    // Half of the path for 200 ms and what it takes to get there.
    let in_probe: Vec<f64> = (0..cwnd.len()).filter(|&at| mode[at].1 == 6.0).map(|at| cwnd[at].1).collect();
    assert!(in_probe.iter().all(|bytes| (*bytes / 238.7e3 - 1.0).abs() < 0.02), "{in_probe:?}");
    assert!((40..60).contains(&(in_probe.len() / probes.len())), "{}", in_probe.len());
    let late = bandwidth.iter().filter(|sample| sample.0 > 1.0);
    assert!(late.clone().all(|sample| (sample.1 / 95.238e6 - 1.0).abs() < 0.01));
}

#[test]
fn bbr_of_version_3_is_bounded_by_what_a_short_queue_loses() {
    // 60 packets may wait where 477 are in flight: version 1 keeps a queue that loses, version 3 stays below it.
    let run_of = |controller: &str| {
        let sets = [
            ("topology.bottleneck_link.delay", "18ms"),
            ("switch.queue", "{ kind = \"fifo\", packets = 60 }"),
        ];
        let mut config = long_flow(controller, 30, &sets);
        config.measure.flow_goodput = Some(Sampled { what: vec![0], every: Time::from_ms(1000) });
        let (kept, outcome) = run_in(1, config);
        let rates: Vec<f64> =
            kept.samples.iter().filter(|s| s.time > Time::from_ms(5_000)).map(|s| s.value).collect();
        let lost = sum_of(&outcome, |port| port.packets_dropped) as f64 / kept.flows[0].packets_sent as f64;
        (rates.iter().sum::<f64>() / rates.len() as f64 / 95.238e6, lost)
    };
    let ((old, old_lost), (new, new_lost)) = (run_of("bbr"), run_of("bbr3"));
    println!("of the link: v1 {old:.3}, v3 {new:.3}; lost: v1 {old_lost:.4}, v3 {new_lost:.4}");
    assert!(new > 0.85 && new_lost < 0.01, "{new} {new_lost}");
    assert!(old_lost > 2.0 * new_lost, "{old_lost} {new_lost}");
}

#[test]
fn cubic_on_a_short_path_grows_as_fast_as_reno_would_with_its_factor() {
    // RFC 9438 §4.3: W_est = W_max beta + 3 (1 - beta) / (1 + beta) t / RTT, which is above the cubic on a short path.
    let sets =
        [("topology.bottleneck_link.rate", "20Mbps"), ("switch.queue", "{ kind = \"fifo\", packets = 40 }")];
    let cwnd = watched(long_flow("cubic", 30, &sets), Time::from_ms(20), "cwnd_bytes");
    let mut slopes = Vec::new();
    for epoch in cwnd.windows(60).filter(|epoch| epoch.windows(2).all(|two| two[1].1 >= two[0].1)) {
        slopes.push((epoch[40].1 - epoch[10].1) / 1000.0 / (epoch[40].0 - epoch[10].0));
    }
    assert!(slopes.len() > 20, "{}", slopes.len());
    // In round trips of 20.6 ms and what waits, up to 40 packets of 0.42 ms: between 0.53 per 37 ms and per 21 ms.
    let (min, max) = (0.53 / 0.0375, 0.53 / 0.0205);
    let mean = slopes.iter().sum::<f64>() / slopes.len() as f64;
    assert!((min..max).contains(&mean), "{mean} segments a second, expected {min} to {max}");
}

#[test]
fn dctcp_keeps_the_queue_at_its_mark() {
    let sets = [("switch.ecn", "{ kmin = \"30KB\", kmax = \"30KB\", pmax = 1.0 }")];
    let config = long_flow("dctcp", 20, &sets);
    let alpha = watched(config.clone(), Time::from_ms(100), "alpha");
    let cwnd = watched(config, Time::from_ms(100), "cwnd_bytes");
    // A bandwidth-delay product is 239 packets, the mark 28.6 above it: W* = 268 + 1, alpha = sqrt(2 / W*) = 0.086 and windows
    // between W* (1 - alpha / 2) and W* + 1 (Alizadeh et al., SIGCOMM 2010, §3.3).
    let late = |series: &[(f64, f64)]| series.iter().filter(|s| s.0 > 5.0).map(|s| s.1).collect::<Vec<_>>();
    let alpha = late(&alpha);
    let mean = alpha.iter().sum::<f64>() / alpha.len() as f64;
    assert!((mean / 0.086 - 1.0).abs() < 0.15, "{mean}");
    assert!(late(&cwnd).iter().all(|bytes| (253e3..273e3).contains(bytes)));
}

#[test]
fn what_a_scenario_may_not_say_is_refused_with_the_reason() {
    let complains = |sets: &[(&str, &str)], expected: &str| {
        let error = load(DUMBBELL, sets).err().unwrap_or_default();
        assert!(error.contains(expected), "{error}");
    };
    let hpcc = "\"hpcc\" sets the rate of a NIC's queue pair, but TCP is controlled by a window: set transport.kind = \"rdma\"";
    complains(&[("transport.controller", "{ kind = \"hpcc\" }")], hpcc);
    let cubik = "unknown controller \"cubik\": did you mean \"cubic\"?";
    complains(&[("transport.controller", "{ kind = \"cubik\" }")], cubik);
    let python = "\"python:mine\" sets the rate";
    complains(&[("transport.controller", "{ kind = \"python:mine\" }")], python);
    complains(
        &[("transport.send_buffer", "1KB")],
        "expected at least two segments, 2KB, and at most 1.073741823GB",
    );
    complains(&[("transport.rto_min", "0us")], "expected a time from 1us");
    complains(&[("transport.app_rate", "0bps")], "would never end");
    complains(&[("transport.app_read_rate", "0bps")], "reads nothing would never end");
    complains(&[("transport.profile", "ns3")], "unknown value \"ns3\"");
    complains(&[("compat.like", "hpcc-ns3")], "repeats a simulator that has only RDMA");
    let f_rto = [("transport.profile", "ns3-3.35"), ("transport.f_rto", "true")];
    complains(&f_rto, "ns-3.35 has no F-RTO: expected false, or reactions = \"rfc\"");
}

#[test]
fn profiles_are_sets_of_keys_that_may_be_set_alone() {
    let resolved = |sets: &[(&str, &str)]| {
        load(DUMBBELL, sets).unwrap_or_else(|error| panic!("{error}")).resolved().to_string()
    };
    let ns3 =
        resolved(&[("transport.profile", "ns3-3.35"), ("transport.controller", "{ kind = \"cubic\" }")]);
    for line in [
        "rtt_clock = \"1ms\"",
        "rtt = \"smoothed\"",
        "rto_min = \"1s\"",
        "prr_wraps = true",
        "reno_friendly = false",
    ] {
        assert!(ns3.contains(line), "{line}\n{ns3}");
    }
    let mixed = resolved(&[("transport.profile", "ns3-3.35"), ("transport.rto_min", "200ms")]);
    assert!(mixed.contains("rto_min = \"200ms\"") && mixed.contains("rtt_clock = \"1ms\""));
    assert!(resolved(&[]).contains("rtt_clock = \"0ps\""), "{}", resolved(&[]));
}

#[test]
fn an_application_that_writes_at_a_rate_is_what_limits_its_flow() {
    // 8 Mb/s of payload: a message of 1000 B every millisecond, the first at once; the last of 500 at 499 ms.
    let sets = [("transport.app_rate", "8Mbps")];
    let fct = tenths(dumbbell(&sets, vec![flow(0, 4, 500_000, Time::ZERO)]))[0];
    let way = 84 + 84 + 840 + 100_000;
    assert_eq!(fct, 4_990_000 + way + 100_048);
}

/// RFC 9293 §3.8.6.2.2 and Linux: where it can tell of twice the window, a receiver does not wait for a second segment.
#[test]
fn a_receiver_that_reads_fast_tells_of_its_room_before_an_acknowledgement_is_due() {
    let sets = [
        ("transport.receive_buffer", "2500B"),
        ("transport.ack_every", "2"),
        ("transport.quick_acks", "0"),
        ("transport.ack_delay", "400ms"),
    ];
    let takes = |more: &[(&str, &str)]| {
        let (kept, _) = run(dumbbell(&[&sets[..], more].concat(), vec![flow(0, 4, 20_000, Time::ZERO)]));
        completion_times(&kept)[0]
    };
    assert!(takes(&[]) < Time::from_ms(250), "two segments a round trip");
    assert!(takes(&[("transport.app_read_rate", "1Gbps")]) < Time::from_ms(450), "one or two");
}

#[test]
fn a_run_waits_for_an_application_that_writes_rarely() {
    // A message of 200 KB every 16 s, where ten timeouts are 10 s.
    let sets = [("transport.app_rate", "100kbps"), ("transport.app_message", "200KB")];
    let scenario = load(DUMBBELL, &sets).unwrap_or_else(|error| panic!("{error}"));
    let flows = traffic(vec![flow(0, 4, 400_000, Time::ZERO)]);
    let (kept, _) = run(Config { traffic: flows, ..scenario.config().expect("a configuration") });
    let finish = kept.flows[0].finish.expect("a finished flow");
    assert!(finish > Time::from_ms(16_000) && finish < Time::from_ms(17_000), "{finish}");
}
