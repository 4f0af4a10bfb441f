//! What a sender lets go, without a network.

use super::parameters::NdpConfig;
use super::sender::Sender;
use crate::units::Time;
use crate::workload::FlowSpec;

fn sender(packets: u64, first_window: u32) -> Sender {
    let config = NdpConfig {
        mtu: 1000,
        header: 64,
        control: 64,
        class: 1,
        first_window,
        pull_share: 1.0,
        rto: Time::from_us(200),
        spray: true,
    };
    Sender::new(0, &FlowSpec { size: packets * 1000, ..FlowSpec::default() }, &config, Time::ZERO)
}

/// All packets that may leave now.
fn sent(sender: &mut Sender) -> Vec<u32> {
    sent_at(sender, Time::ZERO)
}

fn sent_at(sender: &mut Sender, now: Time) -> Vec<u32> {
    std::iter::from_fn(|| sender.leave(now)).collect()
}

#[test]
fn the_first_window_leaves_at_once_and_pulls_let_the_rest_go() {
    let mut sender = sender(10, 4);
    assert_eq!(sent(&mut sender), [0, 1, 2, 3]);
    sender.pull(1);
    assert_eq!(sent(&mut sender), [4]);
    // Pull numbers are cumulative: a lost one is made up for by the next, and an old one does nothing.
    sender.pull(3);
    sender.pull(2);
    assert_eq!(sent(&mut sender), [5, 6]);
}

#[test]
fn trimmed_packets_leave_again_before_new_ones() {
    let mut sender = sender(10, 4);
    sent(&mut sender);
    sender.refuse(2);
    sender.refuse(0);
    sender.pull(3);
    assert_eq!(sent(&mut sender), [0, 2, 4]);
}

#[test]
fn a_pull_that_finds_nothing_to_send_is_obeyed_later() {
    let mut sender = sender(4, 4);
    sent(&mut sender);
    sender.pull(3);
    assert_eq!((sent(&mut sender), sender.pulled()), (vec![], 0));
    sender.refuse(1);
    sender.pull(3);
    assert_eq!((sent(&mut sender), sender.pulled()), (vec![1], 1));
}

#[test]
fn what_was_acknowledged_is_not_sent_again() {
    let mut sender = sender(4, 4);
    sent(&mut sender);
    sender.refuse(1);
    sender.acknowledge(3, 2);
    assert!(!sender.has_more());
    sender.refuse(1);
    assert!(!sender.has_more());
    assert!(!sender.is_done());
    sender.acknowledge(2, 4);
    assert!(sender.is_done());
}

#[test]
fn what_nothing_answered_within_the_timeout_is_sent_again_at_once() {
    let (us, rto) = (Time::from_us, Time::from_us(200));
    let mut sender = sender(10, 4);
    sent(&mut sender);
    let received = |sender: &mut Sender, now| sender.receives(now, rto);
    assert_eq!(received(&mut sender, us(10)), None);
    sender.acknowledge(1, 0);
    sender.refuse(2);
    sender.pull(2);
    assert_eq!(sent_at(&mut sender, us(10)), [2, 4]);
    // Answers to others come all the time: 0 and 3 are missed nevertheless, and leave without a pull.
    for now in [50, 100, 150] {
        let _ = received(&mut sender, us(now));
    }
    assert!(sender.times_out(us(200), rto));
    assert_eq!((sender.silence.event, sent_at(&mut sender, us(200))), (us(210), vec![0, 3]));
    sender.acknowledge(4, 0);
    assert!(sender.times_out(us(210), rto));
    assert_eq!(sent_at(&mut sender, us(210)), [2]);
    // Everything is lost again and again: it waits longer each time.
    let mut waits = Vec::new();
    for _ in 0..8 {
        let now = sender.silence.event;
        if sender.times_out(now, rto) {
            assert!(!sent_at(&mut sender, now).is_empty());
        }
        waits.push(sender.silence.event - now);
    }
    let longest = *waits.iter().max().expect("some");
    assert!((us(1000)..=us(16 * 200)).contains(&longest), "{waits:?}");
}

#[test]
fn a_pull_that_was_lost_is_made_up_for_after_silence() {
    let (us, rto) = (Time::from_us, Time::from_us(200));
    let mut sender = sender(10, 4);
    sent(&mut sender);
    let _ = sender.receives(us(10), rto);
    sender.acknowledge(3, 4);
    assert!(!sender.times_out(us(200), rto));
    assert_eq!(sender.silence.event, us(210));
    assert!(sender.times_out(us(210), rto));
    assert_eq!(sent_at(&mut sender, us(210)), [4]);
}

#[test]
fn a_sender_that_is_pulled_rarely_is_patient() {
    let (us, rto) = (Time::from_us, Time::from_us(200));
    let mut sender = sender(1000, 4);
    let patience = |sender: &mut Sender, now: u64| {
        let _ = sender.receives(us(now), rto);
        sender.silence.deadline - us(now)
    };
    assert_eq!(patience(&mut sender, 10), rto);
    // One of many flows of a receiver: a pull every 1000 us, and the answer to what it let go.
    for pull in 1..20 {
        assert_eq!(patience(&mut sender, pull * 1000), us(2 * 990));
        assert!(patience(&mut sender, pull * 1000 + 10) > us(1700));
    }
    // Alone again.
    for packet in 0..50 {
        patience(&mut sender, 20_000 + packet);
    }
    assert_eq!(patience(&mut sender, 20_050), rto);
    assert_eq!(patience(&mut sender, 1_000_000), us(16 * 200));
}
