//! Hosts whose processors take a time for every packet: what a flow takes then, to the picosecond, what is counted, and what
//! controllers see of it.

use crate::common::*;
use weftline_sim::config::{Config, LinkLoss, Until};
use weftline_sim::measure::{Entity, Outcome, Sampled};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// A star of equal links, two of them on every path.
fn star(hosts: u32, transport: &str, packet_time: &str, flows: Vec<FlowSpec>) -> Config {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = {hosts}\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [host]\npacket_time = \"{packet_time}\"\n[transport]\n{transport}\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") }
}

fn lone(transport: &str, packet_time: &str, size: u64) -> (Time, Outcome) {
    let (kept, outcome) = run(star(2, transport, packet_time, vec![flow(0, 1, size, Time::ZERO)]));
    (completion_times(&kept)[0], outcome)
}

const UNCONTROLLED: &str = "kind = \"rdma\"\nmtu = \"1KB\"\ncontroller = { kind = \"none\" }";

#[test]
fn a_flow_through_a_slow_host_takes_a_packet_time_for_each_packet() {
    let (alone, _) = lone(UNCONTROLLED, "0s", 50_000);
    let w = lone(UNCONTROLLED, "0s", 51_000).0 - alone;
    assert!(w > Time::from_ns(80) && w < Time::from_ns(90), "{w}");
    for (time, packets) in [(us(1), 50), (us(7), 50), (Time::from_ns(90), 50)] {
        let (fct, outcome) = lone(UNCONTROLLED, &time.to_string(), 1000 * packets);
        // The first comes as before, each is processed in turn, and so is its acknowledgement, which comes when the one before is done.
        let expected = alone.0 - (packets - 1) * w.0 + (packets + 1) * time.0;
        assert_eq!(fct.0, expected, "{time}");
        assert_eq!(total(&outcome, "host_packets"), 2 * packets);
        let longest = packets * time.0 - (packets - 1) * w.0;
        assert_eq!(total(&outcome, "max_host_wait_ns"), longest);
        // The wait grows from one packet's time by what the next one comes too early; acknowledgements wait for themselves.
        let waits = (1..=packets).map(|n| n * time.0 - (n - 1) * w.0).sum::<u64>() + packets * time.0;
        assert_eq!(total(&outcome, "host_wait_ns"), waits);
    }
    // A processor that is faster than the link adds its time twice, for the last packet and its acknowledgement.
    let (fct, outcome) = lone(UNCONTROLLED, "50ns", 50_000);
    assert_eq!(fct, alone + Time::from_ns(100));
    assert_eq!((total(&outcome, "max_host_packets"), total(&outcome, "max_host_wait_ns")), (1, 50_000));
}

#[test]
fn a_packet_and_its_acknowledgement_take_the_hosts_time_under_every_transport() {
    const LAWS: [&str; 8] =
        ["none", "hpcc", "dcqcn", "timely", "dctcp", "powertcp", "theta-powertcp", "swift"];
    let rdma = LAWS.map(|law| (format!("kind = \"rdma\"\ncontroller = {{ kind = \"{law}\" }}"), true));
    let others = ["tcp", "mptcp", "phost", "pfabric", "fastpass", "ndp", "homa"];
    for (transport, exact) in rdma.into_iter().chain(others.map(|kind| (format!("kind = \"{kind}\""), false)))
    {
        let (alone, quick) = lone(&transport, "0s", 900);
        let (fct, outcome) = lone(&transport, "3us", 900);
        assert!(
            if exact { fct == alone + us(6) } else { fct >= alone + us(6) },
            "{transport}: {alone} {fct}"
        );
        assert_eq!((total(&quick, "host_packets"), total(&quick, "host_wait_ns")), (0, 0));
        assert!(total(&outcome, "host_packets") >= 2);
    }
}

#[test]
fn what_waits_in_a_host_when_the_run_ends_is_in_flight() {
    let mut config = star(2, UNCONTROLLED, "10us", vec![flow(0, 1, 50_000, Time::ZERO)]);
    // The first packet is there after 2.17 us or so: the fifth is done at 52 us, and all have come.
    config.until = Until::At(us(57));
    let (_, outcome) = run(config);
    let all = losses_of(&outcome);
    assert_eq!((all.data_sent, all.data_received, all.data_in_flight), (50, 5, 45));
    assert_eq!(total(&outcome, "max_host_packets"), 50);
}

#[test]
fn hosts_that_take_time_keep_packets_and_bits_whatever_else_happens() {
    for transport in [
        UNCONTROLLED,
        "kind = \"rdma\"\nrto = \"500us\"\ncontroller = { kind = \"swift\", endpoint_target = \"20us\" }",
        "kind = \"rdma\"\nrto = \"500us\"\nrecovery = \"irn\"\ncontroller = { kind = \"dcqcn\" }",
        "kind = \"tcp\"\nrto_min = \"1ms\"\ncontroller = { kind = \"swift\" }",
        "kind = \"tcp\"\nrto_min = \"1ms\"\ncontroller = { kind = \"dctcp\" }",
        "kind = \"homa\"",
        "kind = \"ndp\"",
    ] {
        for (pfc, loss) in [(true, 0.0), (false, 0.0), (false, 0.02)] {
            let mut config = star(9, transport, "400ns", random_flows(9, 60, 7));
            // An incast that a small buffer pauses, or drops.
            config.switch.pfc.enabled = pfc;
            config.switch.buffer = weftline_sim::units::Bytes(if pfc { 2_000_000 } else { 100_000 });
            if loss > 0.0 {
                config.failures.loss = Some(LinkLoss { share: loss, kinds: LinkLoss::ALL });
            }
            if transport == UNCONTROLLED {
                rdma_of(&mut config).rto = Some(us(500));
            }
            if transport.contains("rdma") || transport.contains("homa") {
                let link = config.topology.ports()[0][0].0;
                let at = |us_from, change| weftline_sim::config::Failure { at: us(us_from), change };
                use weftline_sim::config::Change;
                config.failures.events = vec![at(15, Change::LinkDown(link)), at(40, Change::LinkUp(link))];
            }
            let (kept, outcome) = run(config);
            assert_eq!(completion_times(&kept).len(), 60, "{transport}");
            assert!(total(&outcome, "max_host_packets") > 3, "{transport}");
        }
    }
}

/// Means of what Swift shows of a long flow, in its second half.
fn swift(law: &str, packet_time: &str) -> (Time, Outcome, impl Fn(&str) -> f64 + use<>) {
    let transport = format!("kind = \"rdma\"\nmtu = \"1KB\"\ncontroller = {{ kind = \"swift\"{law} }}");
    let mut config = star(2, &transport, packet_time, vec![flow(0, 1, 20_000_000, Time::ZERO)]);
    config.measure.controllers = Some(Sampled { what: vec![0], every: us(10) });
    let (kept, outcome) = run(config);
    let fct = completion_times(&kept)[0];
    let samples = kept.samples;
    let mean = move |metric: &str| {
        let own = samples.iter().filter(|s| s.metric == metric && s.entity == Entity::Flow(0));
        let values: Vec<f64> = own.filter(|s| s.time.0 > fct.0 / 2).map(|s| s.value).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    (fct, outcome, mean)
}

#[test]
fn swift_holds_the_hosts_delay_at_its_target_and_keeps_the_fabric_open() {
    let ideal = swift("", "0s").0;
    let packets = 20_000;
    for target in [100, 40] {
        let (fct, outcome, mean) = swift(&format!(", endpoint_target = \"{target}us\""), "1us");
        // The host is never idle: a packet each microsecond, and a round trip.
        assert!(fct > us(packets) && fct < us(packets + 20), "{fct}");
        let delay = mean("host_delay_ns") / 1e3;
        println!("target {target} us: delay {delay:.1} us, {} packets", total(&outcome, "max_host_packets"));
        assert!(delay > 0.9 * f64::from(target) && delay < 1.05 * f64::from(target), "{delay} us");
        // The fabric is empty: 4 us of links, and no more.
        let fabric = mean("fabric_delay_ns");
        assert!(fabric > 4_000.0 && fabric < 4_300.0, "{fabric} ns");
        assert!(
            mean("fabric_window_packets") > 1.5 * mean("host_window_packets"),
            "{}",
            mean("fabric_window_packets")
        );
    }
    assert!(ideal < us(2_000), "{ideal}");
}

#[test]
fn swift_with_one_delay_cuts_for_what_hosts_take() {
    // The fabric's target alone, 20 us and what it adds, holds the packets of a host down to it.
    let (fct, _, mean) = swift(", law = \"released\"", "1us");
    let (window, target) = (mean("window_packets"), mean("target_ns") / 1e3);
    println!("one delay: {fct}, window {window:.1}, target {target:.1} us");
    assert!(window < 1.1 * (target + 5.0), "{window} packets");
    // Where hosts take more of a round trip than that target, it is cut although no link has a queue.
    let packets = |law: &str| swift(law, "30us").2("window_packets");
    let (one, two) = (packets(", law = \"released\""), packets(""));
    println!("hosts of 30 us: one delay {one:.2} packets, two {two:.2}");
    assert!(one < 1.5 && two > 1.5 * one, "{one} {two}");
}

/// A sender with a link of 100 Mb/s, or one of 4 Tb/s to a switch whose port has that link, to a receiver 10 ms away; the queue in
/// front of the slow link is the host's in the one and the switch's in the other.
fn two_flows(queue: &str, of_host: bool, controller: &str) -> (Vec<Time>, Outcome) {
    let network = match of_host {
        true => {
            "node = [{ name = \"a\", kind = \"host\" }, { name = \"b\", kind = \"host\" }, { name = \"s\", kind = \"switch\" }]\n\
             link = [{ a = \"a\", b = \"s\", rate = \"100Mbps\", delay = \"5ms\" }, { a = \"s\", b = \"b\", rate = \"100Gbps\", delay = \"5ms\" }]\n"
        }
        false => {
            "node = [{ name = \"a\", kind = \"host\" }, { name = \"b\", kind = \"host\" }, { name = \"s\", kind = \"switch\" }, { name = \"q\", kind = \"switch\" }]\n\
             link = [{ a = \"a\", b = \"q\", rate = \"4000Gbps\", delay = \"1ns\" }, { a = \"q\", b = \"s\", rate = \"100Mbps\", delay = \"5ms\" }, \
             { a = \"s\", b = \"b\", rate = \"100Gbps\", delay = \"5ms\" }]\n"
        }
    };
    let folder = std::env::temp_dir().join(format!("weftline-host-queue-{}-{of_host}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("network.toml");
    std::fs::write(&file, network).expect("a file");
    let (host, port) = match of_host {
        true => (format!("[host]\nqueue = {queue}\n"), String::new()),
        false => (String::new(), format!("[[switch.port]]\nmatch = \"q->s\"\nqueue = {queue}\n")),
    };
    let text = format!(
        "[topology]\nkind = \"file\"\nfile = \"{}\"\n[switch]\npfc = {{ enabled = false }}\necn = {{ enabled = false }}\n{port}{host}\
         [transport]\nkind = \"tcp\"\ncontroller = {{ kind = \"{controller}\" }}\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n",
        file.display()
    );
    let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let flows = vec![flow(0, 1, 8_000_000, Time::ZERO), flow(0, 1, 300_000, us(300_000))];
    let (kept, outcome) =
        run(Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") });
    (completion_times(&kept), outcome)
}

#[test]
fn a_queue_of_a_host_delays_and_drops_what_that_of_a_switch_after_a_fast_link_would() {
    const WINDOWS: &[&str] = &["newreno", "cubic", "bbr"];
    // Acknowledgements come just when the link becomes free. What they let go meets a full queue before a packet leaves it, and after
    // a fast link, which takes three nanoseconds, when one has left. Packets that are paced do not come at such times.
    for (queue, controllers) in [
        ("{ kind = \"fq-codel\", nic_packets = 10 }", WINDOWS),
        ("{ kind = \"codel\", nic_packets = 3 }", WINDOWS),
        ("{ kind = \"fifo\", packets = 40 }", &["bbr"]),
    ] {
        for controller in controllers {
            let (at_host, outcome) = two_flows(queue, true, controller);
            let (at_switch, expected) = two_flows(queue, false, controller);
            let of = |outcome: &Outcome| {
                let all = losses_of(outcome);
                assert_eq!(all.data_sent, all.data_received + all.data_dropped + all.data_in_flight);
                (all.data_sent, all.data_dropped, all.retransmitted)
            };
            assert!(of(&outcome).1 > 0, "{queue} {controller}");
            assert_eq!(of(&outcome), of(&expected), "{queue} {controller}");
            for (host, switch) in at_host.iter().zip(&at_switch) {
                // Two nanoseconds more of propagation and three of transmission in a round trip that begins with an idle link.
                let more = switch.0.checked_sub(host.0);
                assert!(more.is_some_and(|more| more < 200_000), "{queue} {controller}: {host} {switch}");
            }
        }
    }
}

#[test]
fn a_queue_of_a_host_waits_for_the_end_of_pauses_and_of_a_link_that_is_down() {
    let run_of = |switch: &str, flows: &str, failures: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 5\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[switch]\n{switch}\n\
             [host]\nqueue = {{ kind = \"fq-codel\", nic_packets = 10 }}\n[transport]\nkind = \"tcp\"\nrto_min = \"1ms\"\n\
             [[workload]]\nkind = \"flows\"\nflows = [{flows}]\n{failures}"
        );
        let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
        run(scenario.config().expect("a configuration"))
    };
    let flow = |src: u32, dst: u32| format!("{{ src = {src}, dst = {dst}, size = \"2MB\", start = \"0s\" }}");
    let incast: Vec<String> = (1..5).map(|src| flow(src, 0)).collect();
    let (kept, outcome) = run_of("buffer = \"600KB\"\npfc = { enabled = true }", &incast.join(", "), "");
    // 8 MB at 10 Gb/s, and no host sends while it is paused.
    assert!(sum_of(&outcome, |port| port.pauses) > 0);
    let last = completion_times(&kept).into_iter().max().expect("flows");
    assert!(last > Time::from_us(6400) && last < Time::from_us(8000), "{last}");
    // Both directions over the link that goes down: acknowledgements, too, come to a port that is down.
    let both = [flow(0, 1), flow(1, 0)].join(", ");
    let event = "[failures]\ndetection = \"1ms\"\nevent = [{ at = \"1ms\", link = [\"host1\", \"s0\"] }, \
                 { at = \"30ms\", change = \"up\", link = [\"host1\", \"s0\"] }]\n";
    let (kept, _) = run_of("pfc = { enabled = false }", &both, event);
    for time in completion_times(&kept) {
        assert!(time > Time::from_ms(30) && time < Time::from_ms(200), "{time}");
    }
}

/// When a flow of 2 MB ends alone over 100 Gb/s, between hosts that take this time for each packet.
fn alone(packet_time: &str) -> Time {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 2\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [host]\npacket_time = \"{packet_time}\"\n\
         [transport]\nkind = \"rdma\"\ncontroller = {{ kind = \"theta-powertcp\" }}\n\
         [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"2MB\" }}]\n"
    );
    let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    completion_times(&run(scenario.config().expect("a configuration")).0)[0]
}

#[test]
fn what_idle_hosts_take_is_no_queue_to_theta_powertcp() {
    let quick = alone("0s");
    for time in ["20ns", "50ns", "80ns"] {
        let finish = alone(time);
        assert!(finish > quick && finish.0 < quick.0 * 101 / 100, "{time}: {quick} {finish}");
    }
}
