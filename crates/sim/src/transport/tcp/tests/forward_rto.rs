//! F-RTO at a connection: timeouts that were spurious, and others.

use super::*;
use crate::congestion::window::{NO_THRESHOLD, State};

const MSS: u64 = 1448;

fn ms(milliseconds: u64) -> Time {
    Time::from_ms(milliseconds)
}

/// An acknowledgement of whole segments, with at most one block.
fn ack(expected: u64, block: (u64, u64), echo: Time) -> Acknowledgement {
    let mut blocks = [(0, 0); BLOCKS];
    blocks[0] = (block.0 * MSS, block.1 * MSS);
    Acknowledgement {
        expected: expected * MSS,
        blocks,
        count: usize::from(block.0 < block.1),
        duplicate: (0, 0),
        echo,
        in_hosts: Time::ZERO,
        window: 1 << 22,
        marked: false,
    }
}

/// Ten segments are out since 20 ms, the round trip is 20 ms, and at 240 ms the timeout has expired: the first went again.
fn timed_out(size: u64, change: impl Fn(&mut TcpConfig)) -> (Connection, TcpConfig) {
    let mut config = config("newreno", Profile::Rfc);
    config.recovery.rack.as_mut().expect("RACK").probes = false;
    change(&mut config);
    let mut c = connection(size, &config);
    assert_eq!(sent(&mut c, ms(20), &config).len(), 10);
    c.time_out(ms(240), &config);
    assert_eq!(sent(&mut c, ms(240), &config), [0]);
    assert_eq!((c.state, c.window.cwnd, c.window.ssthresh), (State::Loss, MSS, 5 * MSS));
    (c, config)
}

#[test]
fn answers_to_what_was_sent_once_before_a_timeout_undo_it() {
    let (mut c, config) = timed_out(u64::MAX / 4, |_| {});
    c.acknowledge(&ack(1, (0, 0), ms(20)), ms(250), &config);
    assert_eq!(sent(&mut c, ms(250), &config), [10, 11], "two new ones ask, and nothing goes again");
    assert_eq!(c.state, State::Loss);
    c.acknowledge(&ack(2, (0, 0), ms(20)), ms(251), &config);
    // RFC 4015 §3.2: ten in flight and the one that was acknowledged; the threshold that there was: none.
    assert_eq!((c.state, c.window.cwnd, c.window.ssthresh), (State::Open, 11 * MSS, NO_THRESHOLD));
    assert_eq!((c.board.pipe(), c.board.lost(), c.recover), (10 * MSS, 0, 2 * MSS));
    assert_eq!(sent(&mut c, ms(251), &config), [12]);
    assert_eq!(c.packets_retransmitted, 1, "but the one of the timeout");
    // Slow start goes on where it was.
    c.acknowledge(&ack(4, (0, 0), ms(20)), ms(252), &config);
    assert_eq!(c.window.cwnd, 13 * MSS);
}

#[test]
fn a_threshold_that_there_was_comes_back() {
    let (mut c, config) = timed_out(u64::MAX / 4, |config| config.initial_window = 10);
    // As if it had been 40 segments: max(flight, ssthresh).
    c.f_rto = ForwardRto::begin(10 * MSS, 40 * MSS);
    c.acknowledge(&ack(1, (0, 0), ms(20)), ms(250), &config);
    sent(&mut c, ms(250), &config);
    // A selective acknowledgement of an original says the same; nothing moved on, so the window is what is in flight.
    c.acknowledge(&ack(1, (2, 3), ms(20)), ms(251), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Open, 40 * MSS));
    assert_eq!(c.window.cwnd, 10 * MSS, "eleven are out, one of which has arrived");
}

#[test]
fn answers_to_the_new_segments_alone_leave_the_timeout_as_it_is() {
    let (mut c, config) = timed_out(u64::MAX / 4, |_| {});
    c.acknowledge(&ack(1, (0, 0), ms(240)), ms(260), &config);
    assert_eq!(sent(&mut c, ms(260), &config), [10, 11]);
    c.acknowledge(&ack(1, (10, 11), ms(260)), ms(280), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Loss, 5 * MSS));
    // Three segments at the most, of which one is in flight: what is lost goes again.
    assert!(c.window.cwnd <= 3 * MSS, "{}", c.window.cwnd);
    let again = sent(&mut c, ms(280), &config);
    assert_eq!(again[0], 1);
    assert!(again.iter().all(|segment| (1..10).contains(segment)), "{again:?}");
}

#[test]
fn without_anything_new_to_send_a_timeout_is_as_ever() {
    let (mut c, config) = timed_out(10 * MSS, |_| {});
    c.acknowledge(&ack(1, (0, 0), ms(240)), ms(260), &config);
    assert_eq!(sent(&mut c, ms(260), &config), [1, 2]);
    // What was sent once before the timeout is acknowledged: but nothing was asked.
    c.acknowledge(&ack(5, (0, 0), ms(240)), ms(261), &config);
    assert_eq!(c.state, State::Loss);
}

#[test]
fn an_answer_to_all_that_was_out_says_nothing_of_the_timeout() {
    let (mut c, config) = timed_out(u64::MAX / 4, |_| {});
    c.acknowledge(&ack(10, (0, 0), ms(240)), ms(260), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Open, 5 * MSS));
}

#[test]
fn a_second_timeout_in_a_row_is_not_asked_about() {
    let (mut c, config) = timed_out(u64::MAX / 4, |_| {});
    c.time_out(ms(680), &config);
    assert_eq!(sent(&mut c, ms(680), &config), [0]);
    c.acknowledge(&ack(1, (0, 0), ms(20)), ms(690), &config);
    assert_eq!(sent(&mut c, ms(690), &config), [1, 2]);
}

#[test]
fn it_is_a_key_and_ns3_does_without() {
    let (mut c, off) = timed_out(u64::MAX / 4, |config| config.recovery.f_rto = false);
    c.acknowledge(&ack(1, (0, 0), ms(20)), ms(250), &off);
    assert_eq!(sent(&mut c, ms(250), &off), [1, 2]);
    assert!(config("cubic", Profile::Rfc).recovery.f_rto);
    assert!(!config("cubic", Profile::Ns3_35).recovery.f_rto);
}
