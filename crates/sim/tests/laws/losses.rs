//! What became of every data packet, and how often senders waited in vain. Every run of a test checks the sums
//! ([`check_losses`], and the engine where it adds up); here are runs in which much goes wrong, and counts that are known by hand.

use crate::common::*;
use proptest::prelude::*;
use weftline_sim::config::{Change, Config, Failure, Failures, LinkLoss, Until};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// Every transport, and every way to recover from a loss, with timeouts of 200 us.
const TRANSPORTS: &[&str] = &[
    "kind = \"rdma\"\nrto = \"200us\"\ncontroller = { kind = \"none\" }",
    "kind = \"rdma\"\nrto = \"200us\"\ncontroller = { kind = \"none\" }\nrecovery = \"selective-repeat\"",
    "kind = \"tcp\"\nmss = \"1000B\"\nrto_min = \"200us\"\nrto_syn = \"200us\"\nloss_probe = false\nsyn_retries = 1000\nretries = 1000",
    "kind = \"tcp\"\nmss = \"1000B\"\nprofile = \"ns3-3.35\"\nrto_min = \"200us\"\nrto_syn = \"200us\"\nsyn_retries = 1000\nretries = 1000",
    "kind = \"mptcp\"\nmss = \"1000B\"\nrto_min = \"200us\"\nrto_syn = \"200us\"\nloss_probe = false\nsyn_retries = 1000\nretries = 1000",
    "kind = \"phost\"\nmtu = \"1000B\"\nrequest_timeout = \"200us\"",
    "kind = \"pfabric\"\nmtu = \"1000B\"\nrto = \"200us\"",
    "kind = \"fastpass\"\nmtu = \"1000B\"\nretry = \"200us\"\nrequest_timeout = \"500us\"",
];
const BALANCERS: &[&str] = &["ecmp", "spray", "letflow", "presto"];

fn fabric(transport: &str, balancer: &str, more: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 3\nhosts_per_leaf = 3\nhost_link = {{ rate = \"10Gbps\", delay = \
         \"1us\" }}\nfabric_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[switch]\nbalancer = {{ kind = \"{balancer}\" \
         }}\n{more}[transport]\n{transport}\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    )
}

fn config_of(text: &str, flows: Vec<FlowSpec>) -> Config {
    let scenario = load(text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Config { traffic: traffic(flows), ..scenario.config().unwrap() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Dropped, lost on dead links, lost at random, stranded, cut off by the end of the run: nothing goes astray.
    #[test]
    fn every_packet_that_is_sent_is_received_or_counted_where_it_was_lost(
        seed in 0u64..1 << 32,
        transport in 0..TRANSPORTS.len(),
        balancer in 0..BALANCERS.len(),
        failures in prop::collection::vec((5u64..400, 0u8..6, 0u32..64), 0..8),
        percent in 0u32..8,
        short_buffer in any::<bool>(),
        until in prop::option::of(20u64..2000),
    ) {
        let more = if short_buffer { "buffer = \"40KB\"\npfc = { enabled = false }\n" } else { "" };
        let text = fabric(TRANSPORTS[transport], BALANCERS[balancer], more);
        let mut config = config_of(&text, random_flows(6, 30, seed));
        let links = config.topology.links.len() as u32;
        let switches = config.topology.switches();
        let mut events: Vec<Failure> =
            failures.into_iter().map(|drawn| failure(drawn, links, &switches)).collect();
        events.sort_by_key(|event| event.at);
        let loss = LinkLoss { share: f64::from(percent) / 100.0, kinds: LinkLoss::ALL };
        config.failures = Failures { detection: Time::from_us(20), events, loss: (percent > 0).then_some(loss) };
        config.until = Until::At(Time::from_us(until.unwrap_or(20_000)));
        // Checks the sums.
        run(config);
    }
}

/// One flow of ten full packets over a star; the link to its receiver is down for a while, or loses some kind of packet until then.
fn timeouts(transport: &str, down: Option<(Time, Time)>) -> (u64, u32, u64) {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 3\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[transport]\n{transport}\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    let mut config = config_of(&text, vec![flow(0, 1, 10_000, Time::ZERO)]);
    let events = down.into_iter().flat_map(|(from, to)| {
        [Failure { at: from, change: Change::LinkDown(1) }, Failure { at: to, change: Change::LinkUp(1) }]
    });
    config.failures = Failures { detection: Time::from_ms(100), events: events.collect(), loss: None };
    let (kept, outcome) = run(config);
    let losses = losses_of(&outcome);
    assert!(kept.flows[0].finish.is_some(), "{transport}: {losses:?}");
    (losses.timeouts, kept.flows[0].timeouts, losses.data_lost_on_dead_links + losses.data_stranded)
}

#[test]
fn a_flow_whose_last_packet_is_lost_has_exactly_one_timeout_whatever_the_transport() {
    for transport in TRANSPORTS {
        let (alone, of_flow, lost) = timeouts(transport, None);
        assert_eq!((alone, of_flow, lost), (0, 0, 0), "{transport}: nothing is lost");
        // When the last packet is on the receiver's link: from the end, the link alone takes a microsecond.
        let arrives = last_arrival(transport);
        let down = (Time(arrives.0 - 300_000), Time(arrives.0 + 100_000));
        let (all, of_flow, lost) = timeouts(transport, Some(down));
        assert_eq!((all, of_flow, lost), (1, 1, 1), "{transport}: one packet is lost, one timeout follows");
    }
}

/// When the last byte of such a flow has come to its receiver, which the goodput of its group shows to 10 ns.
fn last_arrival(transport: &str) -> Time {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 3\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[transport]\n{transport}\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n[measure]\ngoodput = {{ by = \"group\", every = \"10ns\" }}\n"
    );
    let config = config_of(&text, vec![flow(0, 1, 10_000, Time::ZERO)]);
    let (kept, _) = run_in(1, config);
    let last = kept.samples.iter().filter(|sample| sample.value > 0.0).map(|sample| sample.time).max();
    last.expect("something was delivered")
}

#[test]
fn a_request_to_open_that_is_lost_seven_times_is_seven_timeouts() {
    let sets = [("transport.syn_retries", "6")];
    let scenario = load(DUMBBELL, &sets).unwrap();
    let mut config = Config {
        traffic: traffic(vec![flow(0, 4, 10_000, Time::ZERO)]),
        failures: Failures {
            loss: Some(LinkLoss { share: 1.0, kinds: LinkLoss::ALL }),
            ..Failures::default()
        },
        ..scenario.config().unwrap()
    };
    config.until = Until::At(Time::from_ms(200_000));
    let (kept, outcome) = run(config);
    // One SYN and six more, none of which is answered.
    let losses = losses_of(&outcome);
    assert_eq!((losses.timeouts, kept.flows[0].timeouts, losses.data_sent), (7, 7, 0));
}

#[test]
fn what_overtaking_alone_has_sent_again_is_spurious_or_refused_and_nothing_is_lost() {
    let text = fabric("kind = \"rdma\"\ncontroller = { kind = \"none\" }", "spray", "");
    let flows: Vec<FlowSpec> = (0..3).map(|src| flow(src, 3 + src, 1_000_000, Time::ZERO)).collect();
    let (_, outcome) = run(config_of(&text, flows));
    let losses = losses_of(&outcome);
    assert_eq!((losses.lost(), losses.timeouts), (0, 0), "{losses:?}");
    assert!(losses.retransmitted_spurious > 0 && losses.data_refused > 0, "{losses:?}");
    assert_eq!(losses.retransmitted, losses.retransmitted_spurious + losses.data_refused);
}
