//! Tests of `sender`.

use super::*;
use crate::transport::pfabric::parameters::PfabricPriority;
use crate::units::{Bytes, Time};

pub fn config() -> PfabricConfig {
    PfabricConfig {
        mtu: 1000,
        header: 40,
        ack_header: 40,
        class: 1,
        initial_window: 4,
        max_window: 6,
        rto: Time::from_us(45),
        probe_after: 0,
        queue_limit: Bytes(36_864),
        spray: true,
        priority: PfabricPriority::Remaining,
    }
}

fn numbers(sender: &mut Sender) -> Vec<u32> {
    std::iter::from_fn(|| sender.send(sender.window_end()).map(|sending| sending.number)).collect()
}

#[test]
fn the_window_grows_by_a_packet_for_every_acknowledgement_of_new_data_up_to_the_maximum() {
    let mut sender = Sender::new(20_000, &config());
    assert_eq!(numbers(&mut sender), [0, 1, 2, 3]);
    assert!(sender.acknowledge(1000, Some(0)));
    assert_eq!((numbers(&mut sender), sender.cwnd()), (vec![4, 5], 5));
    assert!(sender.acknowledge(2000, Some(1)) && sender.acknowledge(3000, Some(2)));
    assert_eq!((numbers(&mut sender), sender.cwnd()), (vec![6, 7, 8], 6));
    assert_eq!(sender.remaining(), 17_000);
}

#[test]
fn what_the_receiver_holds_beyond_a_gap_widens_the_window_and_lowers_the_remaining() {
    let mut sender = Sender::new(9_500, &config());
    assert_eq!(numbers(&mut sender).len(), 4);
    assert!(!sender.acknowledge(0, Some(2)));
    assert_eq!((numbers(&mut sender), sender.cwnd(), sender.remaining()), (vec![4], 4, 8_500));
    assert!(!sender.acknowledge(0, Some(2)), "said twice, counted once");
    assert_eq!((numbers(&mut sender), sender.remaining()), (vec![], 8_500));
    // The short last packet counts for what it is.
    let mut sender = Sender::new(3_500, &config());
    assert_eq!(numbers(&mut sender), [0, 1, 2, 3]);
    sender.acknowledge(0, Some(3));
    assert_eq!(sender.remaining(), 3_000);
}

#[test]
fn a_timeout_goes_back_and_passes_over_what_has_arrived() {
    let mut sender = Sender::new(9_000, &config());
    assert_eq!(numbers(&mut sender).len(), 4);
    sender.acknowledge(1000, Some(0));
    sender.acknowledge(1000, Some(2));
    assert_eq!(numbers(&mut sender), [4, 5, 6]);
    assert!(!sender.time_out());
    assert_eq!((sender.cwnd(), sender.threshold()), (1, 2));
    // Up to byte 1000 + 1000 + 1000: packets 1 and 2, of which the receiver has 2.
    assert_eq!(numbers(&mut sender), [1]);
    sender.acknowledge(3000, Some(1));
    assert_eq!((numbers(&mut sender), sender.cwnd()), (vec![3, 4], 2));
    // Above the threshold: one packet more for two acknowledgements.
    sender.acknowledge(4000, Some(3));
    assert_eq!(sender.cwnd(), 2);
    sender.acknowledge(5000, Some(4));
    assert_eq!(sender.cwnd(), 3);
}

#[test]
fn five_timeouts_in_a_row_turn_to_probes_until_an_acknowledgement_comes() {
    let mut sender = Sender::new(9_000, &PfabricConfig { probe_after: 5, ..config() });
    assert_eq!(numbers(&mut sender).len(), 4);
    for _ in 0..4 {
        assert!(!sender.time_out());
        assert_eq!(numbers(&mut sender), [0]);
    }
    assert!(sender.time_out() && sender.time_out());
    assert!(numbers(&mut sender).is_empty());
    assert!(!sender.acknowledge(0, None));
    assert_eq!((numbers(&mut sender), sender.cwnd()), (vec![0], 1));
    assert!(!sender.time_out());
}

#[test]
fn a_flow_is_done_when_everything_is_acknowledged_whatever_was_sent_last() {
    let mut sender = Sender::new(2_500, &config());
    assert_eq!(numbers(&mut sender), [0, 1, 2]);
    sender.time_out();
    assert!(sender.acknowledge(2_500, Some(2)) && sender.is_done());
    assert_eq!((sender.remaining(), numbers(&mut sender)), (0, vec![]));
    assert!(!sender.acknowledge(1_000, Some(0)) && sender.is_done());
}
