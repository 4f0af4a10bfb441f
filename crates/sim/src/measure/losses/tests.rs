use super::*;

#[test]
fn sums_add_every_counter_and_closing_fills_in_what_follows() {
    let one = LossCounters {
        data_sent: 10,
        data_dropped: 1,
        data_lost_on_dead_links: 1,
        data_lost_at_random: 1,
        data_stranded: 1,
        data_in_flight: 2,
        retransmitted: 5,
        retransmitted_spurious: 2,
        ..LossCounters::default()
    };
    let mut sum = one;
    sum += one;
    assert!(sum.each().zip(one.each()).all(|((_, sum), (_, one))| sum == 2 * one));
    let closed = one.closed();
    assert_eq!((closed.data_received, closed.retransmitted_needed, closed.lost()), (4, 3, 4));
    let keys: std::collections::BTreeSet<&str> = LossCounters::ALL.iter().map(|c| c.key).collect();
    assert_eq!(keys.len(), one.each().count());
}
