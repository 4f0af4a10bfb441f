//! Subflows to addresses that the other end announces.

use super::four_paths;
use crate::common::*;
use weftline_sim::config::{LinkLoss, Sampled};
use weftline_sim::units::Time;

/// Ways of 4 ms: the other end knows both keys after three of them, what it announces comes after four, and a
/// join takes four more until it is confirmed: 8 ways, and two more for each further address, which waits for
/// the echo of the one before.
#[test]
fn subflows_to_announced_addresses_open_a_round_trip_apart() {
    let mut config =
        four_paths(&[("transport.join", "\"announced\"")], vec![flow(0, 4, 20_000_000, Time::ZERO)]);
    config.measure.controllers = Some(Sampled { what: vec![0], every: Time::from_ms(1) });
    let (kept, _) = run(config);
    let count = kept.samples.iter().filter(|sample| sample.metric == "subflows");
    let seen: Vec<(f64, u64)> = count.map(|sample| (sample.value, sample.time.ns())).collect();
    for (subflows, ways) in [(1.0, 2), (2.0, 8), (3.0, 10), (4.0, 12)] {
        let first = seen.iter().find(|seen| seen.0 == subflows).expect("so many at some time").1;
        // Sampled every 1 ms; transmission takes less than 0.1 ms each way.
        let law = ways * 4_000_000;
        assert!((law..=law + 2_000_000).contains(&first), "{subflows} subflows after {first} ns, not {law}");
    }
}

#[test]
fn an_address_that_was_lost_is_announced_again_with_later_data() {
    let sets = [("transport.join", "\"announced\""), ("transport.rto_syn", "\"50ms\"")];
    let used = |share: f64, kinds| {
        let mut config = four_paths(&sets, vec![flow(0, 4, 20_000_000, Time::ZERO)]);
        config.measure.subflows = true;
        config.failures.loss = Some(LinkLoss { share, kinds });
        let (kept, _) = run(config);
        assert!(kept.flows[0].finish.is_some());
        kept.samples.iter().find(|sample| sample.metric == "subflows_used").expect("a row").value
    };
    assert_eq!(used(0.1, LinkLoss::control(7)), 4.0);
    assert_eq!(used(0.1, LinkLoss::control(8)), 4.0);
    assert_eq!(used(1.0, LinkLoss::control(7)), 1.0, "none of them has come");
    assert_eq!(used(1.0, LinkLoss::control(8)), 2.0, "the next one waits for the echo of the first");
}
