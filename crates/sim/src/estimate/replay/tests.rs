use super::of_flow::{MOST_REPEATS, links_crossed, rounds_under_loss};
use super::*;
use crate::scenario::Hooks;
use std::path::Path as FilePath;

/// Replays the flows of `workload` on a star of eight hosts with 100 Gb/s and 1 us.
fn played(workload: &str) -> Replay {
    let text = format!("[topology]\nkind = \"star\"\nhosts = 8\n[[workload]]\n{workload}");
    let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
    scenario.map(|scenario| scenario.estimate().replay).unwrap()
}

#[test]
fn a_lone_flow_takes_its_round_trip_and_its_bytes() {
    let replay = played("kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1MB\", start = \"5us\" }]");
    assert_eq!((replay.flows, replay.packet_hops), (1, 1000.0 * 2.0 * 2.0));
    assert_eq!((replay.flows_in_flight, replay.flows_waiting), (1, 0));
    // 1 000 packets of 1 000 B with 48 B of header and 42 B of INT; one more on each hop.
    let packet = Time(87_200);
    assert_eq!(replay.end, Time::from_us(5) + Time::from_us(4) + Time(packet.0 * 1002));
    // 4.17 us at line rate.
    assert_eq!(replay.packets_in_flight, 48);
    assert_eq!(replay.packets_met, 48.0);
}

#[test]
fn a_flow_is_no_faster_than_its_window_and_the_applications_at_its_ends() {
    let end = |rest: &str| {
        let flow = "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"10MB\" }]\n[transport]\n";
        played(&format!("{flow}{rest}")).end.as_seconds() * 1e6
    };
    // 10 000 packets of 87.2 ns on each of two links, of which 9 990 wait for acknowledgements; these have 60
    // to 110 B.
    let windows = |ack: f64| 999.0 * (4.0 + 2.0 * 0.0872 + 2.0 * ack) + 12.0 * 0.0872 + 4.0;
    let windowed = end("window = \"10KB\"");
    assert!((windows(0.0048)..windows(0.0088)).contains(&windowed), "{windowed}");
    assert_eq!(end("window = \"1MB\""), end(""));
    // Two segments are less than a round trip holds.
    let buffered = end("kind = \"tcp\"\nsend_buffer = \"2920B\"") / (10e6 / 2920.0 * 4.2);
    assert!((0.97..1.1).contains(&buffered), "{buffered}");
    let written = end("kind = \"tcp\"\napp_rate = \"100Mbps\"");
    assert!((written / 0.8e6 - 1.0).abs() < 1e-3, "{written}");
    let read = end("kind = \"tcp\"\napp_read_rate = \"100Mbps\"\nreceive_buffer = \"5MB\"");
    assert!((read / 0.4e6 - 1.0).abs() < 1e-3, "{read}");
}

/// The share of a flow is fixed when it starts: the link of host 6 has carried 3 MB with headers and INT no
/// earlier for that.
#[test]
fn flows_of_unlike_sizes_to_one_host_end_when_its_link_has_carried_all() {
    let end = |second: u32, third: u32| {
        let flow = |src: u32, dst, size| format!("{{ src = {src}, dst = {dst}, size = \"{size}MB\" }}");
        let flows = [flow(0, 5, 2), flow(1, 6, second), flow(2, 6, third)].join(", ");
        played(&format!("kind = \"flows\"\nflows = [{flows}]")).end.as_seconds() * 1e6
    };
    // 1 000 packets a megabyte, of 87.2 ns each.
    for (second, third) in [(2, 1), (1, 2), (2, 2)] {
        let carried = f64::from(second + third) * 87.2;
        let found = end(second, third);
        assert!((carried..carried + 10.0).contains(&found), "{second} {third}: {found}");
    }
}

#[test]
fn what_all_receivers_past_a_link_request_is_trimmed_there_and_sent_again() {
    let pairs = [(0, 4), (1, 5), (2, 6), (3, 7), (4, 0), (5, 1), (6, 2), (7, 3)];
    let flow = |(src, dst)| format!("{{ src = {src}, dst = {dst}, size = \"14.36MB\" }}");
    let played = |gbps: u32| {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\nhost_link.rate = \"100Gbps\"\n\
             fabric_link.rate = \"{gbps}Gbps\"\n[transport]\nkind = \"ndp\"\n[[workload]]\nkind = \"flows\"\nflows = [{}]\n",
            pairs.map(flow).join(", ")
        );
        let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
        scenario.map(|scenario| scenario.estimate().replay).unwrap()
    };
    let whole = played(400);
    // 10 000 packets of 1 500 B of four flows; headers, acknowledgements and pulls of 64 B; pulls ask for
    // 0.99 of a link, but for no more than windows of 38 packets allow in a round trip of 8.24 us, of which 8
    // packets wait in the queue. Runs with a tenth of the data took 0.84 ms over 100 Gb/s (this law: 0.93) and
    // 1.57 ms over 50 Gb/s (1.99).
    let left = |gbps: f64, asked: f64| (gbps - 3.0 * asked * 64.0 / 1500.0) / (1.0 - 64.0 / 1500.0);
    let windows = 50.0 + (4.0 * 38.0 * 12.0 - 8.0 * 11.488 - 50.0 * 8.24) / 8.24;
    for (gbps, data) in [(100, left(100.0, 0.99 * 400.0)), (50, left(50.0, windows))] {
        let narrow = played(gbps);
        let end = 4.0 * 10_000.0 * 12.0 / data;
        assert!((narrow.end.as_seconds() * 1e6 / end - 1.0).abs() < 0.01, "{} {end}", narrow.end);
        assert!(narrow.packet_hops > 2.0 * whole.packet_hops, "{} {}", narrow.packet_hops, whole.packet_hops);
    }
    // The links between the switches have carried all packets, acknowledgements and pulls after 1302 us.
    assert!(whole.end < Time::from_us(1310), "{}", whole.end);
}

/// A first packet that does not fit is trimmed: its header comes to the end, where it is answered and requested.
#[test]
fn first_packets_of_flows_that_start_together_are_trimmed_and_sent_again() {
    let hops = |senders: u32, starts: &str| {
        let flow = |src: u32| {
            let start = if starts == "together" { 0 } else { 100 * src };
            format!("{{ src = {src}, dst = 7, size = \"28720B\", start = \"{start}us\" }}")
        };
        let flows = (0..senders).map(flow).collect::<Vec<_>>().join(", ");
        played(&format!("kind = \"flows\"\nflows = [{flows}]\n[transport]\nkind = \"ndp\"\n")).packet_hops
    };
    // Twenty packets with two answers each, over two links.
    assert_eq!([hops(1, "together"), hops(7, "alone")], [120.0, 7.0 * 120.0]);
    // Of 140 packets 20 leave while they come, and 8 without headers fit the queue.
    let trimmed = 140.0 - 20.0 - 8.0 * 1436.0 / 1500.0;
    let found = hops(7, "together");
    assert!((found - 7.0 * 120.0 - trimmed * 6.0).abs() < 6.0, "{found} {trimmed}");
    // Each receiver of an exchange between all gets as much at a time as its link carries.
    let all = (0..8).flat_map(|src| (0..8).filter(move |dst| *dst != src).map(move |dst| (src, dst)));
    let flows: Vec<String> =
        all.map(|(src, dst)| format!("{{ src = {src}, dst = {dst}, size = \"28720B\" }}")).collect();
    let exchange =
        played(&format!("kind = \"flows\"\nflows = [{}]\n[transport]\nkind = \"ndp\"\n", flows.join(", ")));
    assert_eq!(exchange.packet_hops, 56.0 * 120.0);
}

#[test]
fn hosts_with_timeslots_are_all_as_fast_as_the_slowest() {
    let flow = "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"14.6MB\" }]\n[transport]\nkind = \"fastpass\"\n";
    let end = |rest: &str| played(&format!("{flow}{rest}")).end.as_seconds() * 1e6;
    // 10 000 timeslots, of 17/16 of the 120 ns and 1.2 us of a packet at 100 and 10 Gb/s.
    let slow = "[[topology.override]]\nbetween = [\"host5\", \"s0\"]\nrate = \"10Gbps\"\n";
    // It waits for its request, half an epoch of eight of them and the lead, which is an epoch here or 4 us.
    for (rest, slot) in [("", 0.1275), (slow, 1.275)] {
        let waited = 2.0 + 4.0 * slot + f64::max(8.0 * slot, 4.0);
        assert!((0.0..10.0).contains(&(end(rest) - 10_000.0 * slot - waited)), "{}", end(rest));
    }
}

#[test]
fn an_incast_is_in_flight_to_the_end_with_all_its_windows() {
    let replay = played("kind = \"incast\"\nsenders = 4\nreceiver = 0\nsize = \"1MB\"");
    assert_eq!((replay.flows_in_flight, replay.flows_waiting), (4, 0));
    let end = replay.end.as_ns();
    assert!((end - 4.0 * 87_200.0).abs() < 6000.0, "{end}");
    // The first comes alone; the window of the others is a base RTT of 4.16 us at line rate.
    let window = 52_000u64.div_ceil(1090);
    assert_eq!(replay.packets_in_flight, 4 * window);
}

#[test]
fn random_arrivals_hold_as_many_flows_as_processor_sharing() {
    let poisson = "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\ncount = 4000";
    let replay = played(poisson);
    assert_eq!(replay.flows, 4000);
    // Eight senders with one flow each on average; the maximum is several times that.
    assert!((8..120).contains(&replay.flows_in_flight), "{replay:?}");
    assert!(replay.packets_met < replay.packets_in_flight as f64, "{replay:?}");
}

#[test]
fn connections_that_stay_open_are_those_that_transports_keep() {
    let workload = "kind = \"request-response\"\nconnections = 1\nsize = \"100KB\"\nduration = \"1ms\"\n";
    let open = |rest: &str| played(&format!("{workload}{rest}"));
    // Four clients and four servers, one connection per pair, in both directions; some are not used within a
    // millisecond.
    let replay = open("[transport]\nkind = \"tcp\"");
    assert!((16..=32).contains(&replay.connections) && replay.flows > 100, "{replay:?}");
    assert_eq!(open("persistent = false\n[transport]\nkind = \"tcp\"").connections, 0);
    assert_eq!(open("[transport]\nkind = \"phost\"").connections, 0);
    assert_eq!(open("[transport]\nkind = \"rdma\"").connections, replay.connections);
}

#[test]
fn the_estimated_end_of_a_job_is_when_its_ranks_have_computed_and_reduced() {
    // A layer of width 64 and 64 tokens: 24 s h^2 + 4 s^2 h operations forward, twice that backward, at 10^12
    // a second.
    let model = "layers = 1\nhidden = 64\nsequence = 64\nvocabulary = 0\nmicro_batches = 1\nteraflops = 1.0\nstart = \"1us\"";
    let training = |rest: &str| played(&format!("kind = \"training\"\n{model}\n{rest}"));
    let alone = training("domain = 8\nscale_up_rate = \"3.6Tbps\"");
    assert_eq!(alone.flows, 0, "the domain is the whole network");
    let computed = 3.0 * (24.0 + 4.0) * 64f64.powi(3) / 1e12 * 1e9;
    // 12 h^2 gradients of 2 bytes go around a ring of 8 on the scale-up links, in 14 messages of 1 us and
    // their bytes.
    let reduced = 14.0 * (1000.0 + 12.0 * 64f64.powi(2) * 2.0 / 8.0 * 8.0 / 3600.0);
    assert!((alone.end.as_ns() - 1000.0 - computed - reduced).abs() < 1.0, "{} {computed}", alone.end);
    assert!(training("").end >= alone.end);
}

#[test]
fn a_job_is_delayed_by_a_slow_link_for_as_long_as_it_is_slow() {
    let ring = "kind = \"collective\"\noperation = \"ring-all-reduce\"\nbytes = \"8MB\"\n";
    let end = |events: &str| played(&format!("{ring}[failures]\nevent = [{events}]")).end.as_ns();
    let slow = |at: &str, rest: &str| {
        format!("{{ at = \"{at}\", link = [\"host1\", \"s0\"], change = \"rate\", rate = \"10Gbps\"{rest} }}")
    };
    let healthy = end("");
    let whole = end(&slow("1ns", ""));
    assert!((9.0..10.0).contains(&(whole / healthy)), "{whole} {healthy}");
    // Half of the job is done, and the other half takes as much longer as all of it would.
    let half = end(&slow(&format!("{}ns", (healthy / 2.0) as u64), ""));
    assert!((half - (healthy + whole) / 2.0).abs() < 10.0, "{half}");
    // While it is slow for 100 us, little is done.
    let passing = end(&slow("200us", ", lasts = \"100us\""));
    let done = 100_000.0 * healthy / whole;
    assert!((passing - (healthy + 100_000.0 - done)).abs() < 10.0, "{passing}");
    // When it is down, what is lost waits for a timeout, the first of them after routes lead there again: the
    // timeouts come 1, 3 and 7 ms after the failure.
    let down = |lasts: &str| {
        let event = format!("{{ at = \"200us\", link = [\"host1\", \"s0\"], lasts = \"{lasts}\" }}");
        played(&format!("{ring}[failures]\nevent = [{event}]\n[transport]\nrto = \"1ms\"\n")).end.as_ns()
    };
    // If routes change at once little is lost, which later packets show.
    let event = "[{ at = \"200us\", link = [\"host1\", \"s0\"], lasts = \"100us\" }]";
    let known = played(&format!("{ring}[failures]\nevent = {event}\ndetection = \"1us\"\n")).end.as_ns();
    assert!((known - healthy - 100_000.0).abs() < 10.0, "{known}");
    for (lasts, timeout) in [("100us", 1e6), ("850us", 1e6), ("1ms", 3e6), ("3ms", 7e6)] {
        let found = down(lasts);
        assert!((found - healthy - timeout).abs() < 10.0, "{lasts}: {found}");
    }
    assert_eq!(end(&slow("1s", "")), healthy, "after its end");
}

#[test]
fn a_flow_takes_longer_while_a_link_of_its_path_is_slow() {
    let flow = "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1MB\", start = \"0ns\" }]\n[failures]\nevent = ";
    let end = |event: &str| played(&format!("{flow}[{event}]")).end.as_ns();
    let slow = "link = [\"host1\", \"s0\"], change = \"rate\", rate = \"10Gbps\"";
    // 1 090 000 B at 100 and at 10 Gb/s.
    let latency = end("") - 87_200.0;
    for (at, bytes) in [("1ns", 871_991.0), ("43.6us", 43_600.0 + 436_000.0), ("1ms", 87_200.0)] {
        let end = end(&format!("{{ at = \"{at}\", {slow} }}"));
        assert!((end - latency - bytes).abs() < 1.0, "{at}: {end}");
    }
    let passing = end(&format!("{{ at = \"10us\", lasts = \"20us\", {slow} }}"));
    assert!((passing - latency - 87_200.0 - 18_000.0).abs() < 1.0, "{passing}");
}

#[test]
fn dependent_flows_come_one_after_the_other() {
    let replay = played("kind = \"collective\"\noperation = \"ring-all-reduce\"\nbytes = \"8MB\"");
    // 14 steps of 8 flows of 1 MB.
    assert_eq!((replay.flows, replay.flows_in_flight), (112, 8));
    assert_eq!(replay.flows_waiting, 0, "a run plays a job without a list of what waits");
    // Over two links, until the last packet has come.
    let step = 2_000.0 + 1001.0 * 87.2;
    assert!((replay.end.as_ns() - 14.0 * step).abs() < 10.0, "{}", replay.end);
}

#[test]
fn small_messages_of_one_job_do_not_count_for_the_bytes_of_another() {
    // Of a ring a part of its steps is replayed. The messages of a barrier have a byte each, with the
    // packet-hops of a kilobyte.
    let ring = "kind = \"collective\"\noperation = \"all-reduce\"\nbytes = \"800KB\"\nrepeat = 3\nranks_per_host = 3\n\
                scale_up_rate = \"100Gbps\"\nhosts = \"0-3\"";
    let barrier = "kind = \"collective\"\noperation = \"barrier\"\nrepeat = 20\nhosts = \"4-7\"";
    let alone = [ring, barrier].map(|job| played(job).packet_hops);
    let both = played(&format!("{ring}\n[[workload]]\n{barrier}")).packet_hops;
    assert!((both / alone.iter().sum::<f64>() - 1.0).abs() < 0.01, "{both} {alone:?}");
}

#[test]
fn a_run_that_ends_before_its_flows_does_a_part_of_their_work() {
    let flows = "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1MB\", start = \"0us\" }, \
                 { src = 0, dst = 1, size = \"1MB\", start = \"1ms\" }]\n[run]\nuntil = ";
    let half = played(&format!("{flows}\"45.6872us\""));
    assert_eq!((half.flows, half.end), (1, Time(45_687_200)));
    assert!((half.packet_hops - 2000.0).abs() < 1.0, "{half:?}");
    let all = played(&format!("{flows}\"1s\""));
    assert_eq!((all.flows, all.packet_hops), (2, 8000.0));
}

#[test]
fn flows_that_a_run_cuts_off_carry_no_more_than_their_common_link() {
    let replay =
        played("kind = \"incast\"\nsenders = 7\nreceiver = 0\nsize = \"1GB\"\n[run]\nuntil = \"10ms\"");
    // Packets of 1 090 B on the link into the receiver for 10 ms; each crosses two links, as does its
    // acknowledgement.
    let packets = 100e9 * 10e-3 / (8.0 * 1090.0);
    assert!((replay.packet_hops / (4.0 * packets) - 1.0).abs() < 0.01, "{replay:?}");
    // Before anything arrives, windows of 52 000 B have crossed a link.
    let windows =
        played("kind = \"incast\"\nsenders = 7\nreceiver = 0\nsize = \"1GB\"\n[run]\nuntil = \"4us\"");
    let first = f64::from(7 * 52_000u32.div_ceil(1090));
    assert!((first..1.1 * first).contains(&windows.packet_hops), "{windows:?}");
}

#[test]
fn where_links_lose_packets_a_flow_is_as_fast_as_its_law_of_losses_allows() {
    let flow = "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"146MB\", start = \"0ns\" }]\n";
    let end = |controller: &str, loss: &str| {
        let rest = format!(
            "[transport]\nkind = \"tcp\"\ncontroller = {{ kind = \"{controller}\" }}\n[failures]\n{loss}"
        );
        played(&format!("{flow}{rest}")).end.as_seconds()
    };
    let lossless = end("newreno", "");
    // 100 000 segments, 24.5 of them a round trip of some 4 us: two links that lose one of 800 each.
    let lossy = end("newreno", "loss = 0.00125");
    assert!(
        (lossy / (100_000.0 / 24.5 * 4.2e-6) - 1.0).abs() < 0.1 && lossless < lossy,
        "{lossy} {lossless}"
    );
    // Cubic keeps up with Reno on round trips so short; losses do not tell BBR to slow down.
    assert_eq!((end("cubic", "loss = 0.00125"), end("bbr", "loss = 0.00125")), (lossy, lossless));
}

#[test]
fn a_flow_that_is_too_short_to_lose_packets_is_as_fast_as_its_path() {
    let end = |loss: f64| {
        let text = format!(
            "[topology]\nkind = \"dumbbell\"\nleft = 1\nright = 1\nhost_link = {{ rate = \"10Gbps\", delay = \"10us\" }}\n\
             bottleneck_link = {{ rate = \"1Gbps\", delay = \"20ms\" }}\n[transport]\nkind = \"tcp\"\n\
             [failures]\nloss = {loss}\n[[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"30MB\" }}]\n"
        );
        let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
        scenario.map(|scenario| scenario.estimate().replay.end.as_seconds()).unwrap()
    };
    // 0.25 s and slow start. Of 20 548 packets 0.06, 0.6 and 60 are lost; six runs took 0.63, 0.64 and 32 s.
    let few = [1e-6, 1e-5].map(|loss| end(loss) / end(0.0));
    assert!(few.iter().all(|&longer| (1.0..1.15).contains(&longer)), "{few:?}");
    let many = 20_548.0 / (1.5f64 / 3e-3).sqrt() * 40.04e-3;
    assert!((end(1e-3) / many - 1.0).abs() < 0.1, "{} {many}", end(1e-3));
    // Without losses the first window, with many the steady one.
    assert!((rounds_under_loss(1000, 1e-7, (100.0, 100.0)) - 10.0).abs() < 1e-6);
    assert!((rounds_under_loss(1000, 1e-7, (50.0, 20.0)) - 20.0).abs() < 2e-3);
    assert!((rounds_under_loss(1_000_000, 1e-2, (50.0, 20.0)) - 50_000.0).abs() < 10.0);
}

#[test]
fn lost_packets_and_lost_acknowledgements_are_sent_again() {
    let flow = "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1MB\" }]\n[transport]\nrecovery =";
    let crossed_with = |recovery, share, kinds| {
        let rest = format!("\"{recovery}\"\n[failures]\nloss = {share}\nloss_of = \"{kinds}\"");
        played(&format!("{flow} {rest}")).packet_hops / 1000.0
    };
    let crossed = |share, kinds| crossed_with("selective-repeat", share, kinds);
    assert_eq!(crossed(0.0, "all"), 4.0);
    // Four transmissions for a packet that arrives, each over 1.5 links, and one acknowledgement of it.
    assert_eq!(crossed(0.5, "data"), 4.0 * 1.5 + 2.0);
    // Sixteen transmissions; four of them arrive and are acknowledged over 1.5 links.
    assert_eq!(crossed(0.5, "all"), 16.0 * 1.5 + 4.0 * 1.5);
    // With go-back-N three of four packets are lost, and each has the window of 48 sent again. A run of two
    // flows of 100 KB took 181 hops for a packet of this estimate of 290, and with a loss of 0.01, 7.4 of
    // 7.8.
    assert_eq!(crossed_with("go-back-n", 0.5, "data"), (1.0 + 48.0 * 3.0) * (1.5 + 0.25 * 2.0));
    let few = crossed_with("go-back-n", 0.01, "data");
    assert!((few - 7.8).abs() < 0.1, "{few}");
    // Almost nothing ever arrives: the run is given up.
    assert!((links_crossed(30.0, [0.5; 2], (0.0, 1.0, 1.0)) / (MOST_REPEATS * 2.0) - 1.0).abs() < 1e-6);
}

/// Replays this workload on four leaves of eight hosts at 100 Gb/s with two links of a rate between each leaf
/// and the spines.
fn played_on_leaves(rate: &str, workload: &str) -> Replay {
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\n\
         host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"{rate}\", delay = \"1us\" }}\n\
         [transport]\ncontroller = {{ kind = \"dcqcn\" }}\n[[workload]]\n{workload}"
    );
    let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
    scenario.map(|scenario| scenario.estimate().replay).unwrap()
}

#[test]
fn a_flow_that_starts_with_a_small_window_takes_the_round_trips_until_it_fills_the_pipe() {
    let end = |size: &str| {
        let text = format!(
            "[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\nhost_link = {{ rate = \"1Gbps\", delay = \"1us\" }}\n\
             bottleneck_link = {{ rate = \"1Gbps\", delay = \"20ms\" }}\n[transport]\nkind = \"tcp\"\n[[workload]]\n\
             kind = \"flows\"\nflows = [{{ src = 0, dst = 2, size = \"{size}\" }}]\n"
        );
        let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
        scenario.map(|scenario| scenario.estimate().replay.end.as_ns() / 1e6).unwrap()
    };
    // A handshake, and windows of 10, 20, ... 1 280 packets at 40 ms each; a run takes 362 ms.
    assert!((340.0..380.0).contains(&end("2MB")), "{}", end("2MB"));
    assert!((80.0..82.0).contains(&end("10KB")), "{}", end("10KB"));
}

#[test]
fn what_nothing_slows_down_waits_in_buffers() {
    let packets = |controller: &str, buffer: &str| {
        let text = format!(
            "[topology]\nkind = \"dumbbell\"\nleft = 16\nright = 16\nbottleneck_link.rate = \"10Gbps\"\n[switch]\n\
             pfc = {{ enabled = false }}\nbuffer = \"{buffer}\"\nlossy_alpha = 100\n[transport]\n\
             controller = {{ kind = \"{controller}\" }}\n[[workload]]\nkind = \"bulk\"\nsize = \"20MB\"\n"
        );
        let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
        scenario.map(|scenario| scenario.estimate().replay.packets_in_flight).unwrap()
    };
    // All packets of 16 flows of 20 000; with a small buffer what it holds, and no more than a few times
    // that.
    assert_eq!(packets("none", "4GiB"), 16 * 20_000);
    let few = packets("none", "10MB");
    assert!((9_000..45_000).contains(&few), "{few}");
    assert!(packets("dcqcn", "4GiB") < 5_000, "{}", packets("dcqcn", "4GiB"));
}

#[test]
fn slow_links_between_switches_count_once() {
    let all_to_all = "kind = \"collective\"\noperation = \"all-to-all\"\nbytes = \"2MB\"\n";
    // Each of eight hosts of a leaf sends 24 parts of 62.5 KB, of 63 packets, over two links; the first
    // packet takes four hops.
    let busy = |gbps: f64| 8.0 * 24.0 * (62_500.0 + 63.0 * 48.0) * 8.0 / (2.0 * gbps);
    for gbps in [10.0, 25.0] {
        let end = played_on_leaves(&format!("{gbps}Gbps"), all_to_all).end.as_ns();
        assert!((0.0..10_000.0).contains(&(end - busy(gbps))), "{end} {}", busy(gbps));
        // Twice the work, and hosts that are slower but not the bottleneck.
        let twice =
            played_on_leaves(&format!("{gbps}Gbps"), &format!("{all_to_all}repeat = 2\n")).end.as_ns();
        assert!((twice / end - 2.0).abs() < 0.01, "{twice} {end}");
    }
    // What stays at a leaf does not meet these links, however slow they are.
    let inside = format!("{all_to_all}hosts = \"0-7\"\n");
    assert_eq!(played_on_leaves("10Gbps", &inside).end, played_on_leaves("100Gbps", &inside).end);
}

#[test]
fn a_job_waits_for_a_slow_next_hop_unless_flows_leave_it_without_a_pause() {
    let end = |balancer: &str| {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 2\nhost_link.rate = \"400Gbps\"\n\
             fabric_link.rate = \"400Gbps\"\n[[topology.override]]\nbetween = [\"leaf*\", \"spine3\"]\nrate = \"100Gbps\"\n\
             [switch]\nbalancer = {{ kind = \"{balancer}\" }}\n[transport]\nmtu = \"4KB\"\ncontroller = {{ kind = \"dctcp\" }}\n\
             [[workload]]\nkind = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"ring\"\nbytes = \"60MB\"\n"
        );
        let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
        scenario.map(|scenario| scenario.estimate().replay.end.as_ns() / 1e6).unwrap()
    };
    // 2 * 7 / 8 of 60 MB at 100 Gb/s. With two slow spines runs took 8.5 to 11 ms, with the last of these
    // less.
    for balancer in ["ecmp", "letflow", "conga", "hula"] {
        assert!((8.4..8.7).contains(&end(balancer)), "{balancer}: {}", end(balancer));
    }
    assert!((2.1..2.3).contains(&end("conweave")), "{}", end("conweave"));
}

#[test]
fn jobs_that_share_a_link_between_switches_end_when_it_has_carried_all() {
    let half = |hosts: &str| {
        format!("kind = \"collective\"\noperation = \"all-to-all\"\nbytes = \"2MB\"\nhosts = \"{hosts}\"\n")
    };
    let [one, other] = ["0-3,8-11,16-19,24-27", "4-7,12-15,20-23,28-31"].map(half);
    let alone = played_on_leaves("10Gbps", &one).end.as_ns();
    let both = played_on_leaves("10Gbps", &format!("{one}[[workload]]\n{other}")).end.as_ns();
    assert!((both / alone - 2.0).abs() < 0.01, "{both} {alone}");
}

#[test]
fn packets_of_a_training_job_cross_the_links_of_their_own_paths() {
    // Tensor groups within a leaf, a pipeline over leaves: nearly all bytes cross two links, the others four.
    let job = "kind = \"training\"\nlayers = 4\nhidden = 256\nsequence = 256\nmicro_batches = 2\npipeline = 4\ntensor = 8\n\
               steps = 3\n";
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\n\
                [transport]\ncontroller = { kind = \"dcqcn\" }\n[[workload]]\n";
    let scenario =
        Scenario::load(&format!("{text}{job}"), "s.toml", FilePath::new("."), &[], None, Hooks::default());
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let graph = scenario.traffic.sources[0].graph().expect("a job");
    let leaf = |rank: u32| graph.hosts[rank as usize] / 8;
    let messages = (0..graph.messages()).map(|number| graph.message(number)).filter(|of| !of.inside);
    // There and back.
    let hops = |from, to| if leaf(from) == leaf(to) { 4 } else { 8 };
    let exact: u64 = messages.map(|of| of.bytes.div_ceil(1000) * hops(of.from, of.to)).sum();
    assert_eq!(scenario.estimate().replay.packet_hops.round() as u64, exact);
}

#[test]
fn channels_of_a_tree_share_the_links_of_its_ranks() {
    let end = |rest: &str| {
        let tree =
            "kind = \"collective\"\noperation = \"broadcast\"\nalgorithm = \"tree\"\nbytes = \"4MB\"\n";
        played(&format!("{tree}{rest}\n[transport]\ncontroller = {{ kind = \"none\" }}")).end.as_ns()
    };
    // Down three levels of a tree of eight: two children of the root and of the next rank, one of the last.
    let levels = 5.0 * 4000.0 * 83.84;
    for channels in [1, 4, 16] {
        let end = end(&format!("channels = {channels}"));
        assert!((0.0..0.01).contains(&(end / levels - 1.0)), "{channels}: {end} {levels}");
    }
}

/// The replay of these bytes from one host to another over a transport, on the star.
fn over(transport: &str, bytes: u64) -> Replay {
    let flow =
        format!("kind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"{bytes}B\" }}]\n[transport]\n");
    played(&format!("{flow}kind = {transport}"))
}

#[test]
fn packets_without_data_are_those_that_transports_send() {
    let hops = |transport: &str, bytes: u64| over(transport, bytes).packet_hops / 2.0;
    // A grant for each packet after the first 7, and an acknowledgement.
    assert_eq!(hops("\"homa\"\nrtt_bytes = \"10KB\"", 29_120), 20.0 + 13.0 + 1.0);
    // A request, an acknowledgement, and a token for each packet of a flow that is not short.
    assert_eq!(hops("\"phost\"\nfree_tokens = 8", 11_680), 8.0 + 2.0);
    assert_eq!(hops("\"phost\"\nfree_tokens = 8", 13_140), 9.0 + 9.0 + 2.0);
    // The first 16 segments are acknowledged at once, then every second one; three open the connection.
    assert_eq!(hops("\"tcp\"", 144_800), 100.0 + 16.0 + 42.0 + 3.0);
    assert_eq!(hops("\"tcp\"\nack_every = 1", 144_800), 100.0 + 100.0 + 3.0);
    // A request, a schedule for eight timeslots and a message at the end; acknowledgements.
    assert_eq!(hops("\"fastpass\"", 11_680), 8.0 + 8.0 + 3.0);
    // Its arbiter is at the source.
    assert_eq!(hops("\"fastpass\"\narbiter = 0", 11_680), 8.0 + 8.0);
}

#[test]
fn a_flow_waits_for_the_host_that_gives_it_timeslots() {
    let end = |keys: &str| over(&format!("\"fastpass\"\n{keys}"), 1460).end.as_ns();
    // The same way to and from host 7, half an epoch of eight timeslots of 127.5 ns, and the time until the
    // first.
    let control = 2.0 * 3.2;
    let [at_source, asked] = ["arbiter = 0", ""].map(|keys| end(&format!("{keys}\nlead = \"9us\"")));
    assert!((asked - at_source - 2000.0 - control).abs() < 0.01, "{asked} {at_source}");
    assert!((at_source - end("arbiter = 0\nstart = \"receipt\"") - 9000.0).abs() < 0.01);
    assert!(
        (end("start = \"receipt\"") - end("arbiter = 0\nstart = \"receipt\"") - 4000.0 - 2.0 * control).abs()
            < 0.01
    );
    // A run takes 158 us for a ring of eight hosts.
    let ring = "kind = \"collective\"\nhosts = \"0-6\"\nbytes = \"200KB\"\n[transport]\nkind = ";
    let [timed, tokens] =
        ["\"fastpass\"", "\"phost\""].map(|kind| played(&format!("{ring}{kind}")).end.as_ns());
    assert!(timed > 2.0 * tokens, "{timed} {tokens}");
}

#[test]
fn a_server_answers_when_a_request_has_arrived() {
    let end = |requests: u32| {
        let workload = "kind = \"closed-loop\"\nclients = \"0\"\nservers = \"1\"\nsize = \"1KB\"\nrequest_size = \"1KB\"";
        played(&format!("{workload}\nrequests = {requests}")).end.as_ns()
    };
    // Both ways of a request and its response take one round trip, and their bytes.
    let round = end(6) - end(5);
    assert!((4000.0..4600.0).contains(&round), "{round}");
}

#[test]
fn flows_that_start_together_are_in_flight_together_however_few_are_replayed() {
    let of = |workload: &str, max_flows: u64| {
        let text = format!("[topology]\nkind = \"star\"\nhosts = 8\n[[workload]]\n{workload}");
        let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
        let replay = scenario.unwrap().estimate_from(max_flows).replay;
        (replay.flows, replay.flows_in_flight)
    };
    let together = "kind = \"all-to-all\"\nsize = \"100KB\"";
    assert_eq!([of(together, 1000), of(together, 20)], [(56, 56); 2]);
    // They end before the next ones start, or one after the other.
    let apart = "kind = \"flows\"\nflows = [\n{ src = 0, dst = 1, size = \"1KB\" },\n\
                 { src = 0, dst = 2, size = \"1KB\", start = \"1ms\" },\n{ src = 0, dst = 3, size = \"1KB\", start = \"1ms\" }]";
    assert_eq!(of(apart, 1), (3, 1));
    let waiting = "kind = \"flows\"\nflows = [{ src = 0, dst = 1, size = \"1KB\" }, { src = 1, dst = 0, size = \"1KB\", after = 0 }]";
    assert_eq!(of(waiting, 1), (2, 1));
}

/// Each of two flows is at one of the next hops up, and at one of those down: they have one in common with the
/// chance 1 - (1 - 1/k)^2.
#[test]
fn flows_that_keep_to_one_path_may_find_others_there() {
    let of = |spines: u32, rest: &str| {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 2\n\
             fabric_link = {{ rate = \"100Gbps\" }}\n[transport]\ncontroller = {{ kind = \"dctcp\" }}\n\
             [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 2, size = \"10MB\" }}, {{ src = 1, dst = 3, size = \"10MB\" }}]\n{rest}"
        );
        let scenario = Scenario::load(&text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
        let replay = scenario.map(|scenario| scenario.estimate().replay).unwrap();
        let times = |end: Time| end.as_seconds() / (10e6 * 8.0 * 1048.0 / 1000.0 / 100e9);
        (times(replay.end), replay.without_collisions.map(times))
    };
    let near = |found: f64, times: f64| assert!((found / times - 1.0).abs() < 0.02, "{found} {times}");
    // 3/4 and 5/9 of all seeds; 7/16.
    for spines in [2, 3] {
        let (end, alone) = of(spines, "");
        near(end, 2.0);
        near(alone.expect("they may collide"), 1.0);
    }
    let (end, alone) = of(4, "");
    near(end, 1.0);
    assert_eq!(alone, None);
    // Packets of a flow take all paths; faster links carry both flows; and a run may end at a time.
    let even =
        of(2, "[switch]\nbalancer = { kind = \"spray\" }\n[host]\nresequencing = { enabled = true }\n");
    near(even.0, 1.0);
    assert_eq!(even.1, None);
    assert_eq!(of(2, "[run]\nuntil = \"100us\"\n").1, None);
}

/// A permutation of 128 hosts under ECMP: half of all seeds have a link with four flows or more, as the
/// run has them (five seeds: 1.28 to 1.71 ms, DCTCP).
#[test]
fn of_many_flows_some_collide_more_than_once() {
    let text = "[topology]\nkind = \"fat-tree\"\nk = 8\n[transport]\ncontroller = { kind = \"dctcp\" }\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"4MB\"\n";
    let scenario = Scenario::load(text, "s.toml", FilePath::new("."), &[], None, Hooks::default());
    let replay = scenario.map(|scenario| scenario.estimate().replay).unwrap();
    let times = replay.end.as_seconds() / replay.without_collisions.unwrap().as_seconds();
    assert!((3.0..4.5).contains(&times), "{times}");
}
