//! RACK and the tail loss probe at a connection: what is sent, and when.

use super::*;
use crate::congestion::window::State;
use crate::transport::tcp::connection::Early;

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

/// Ten segments are out since 20 ms; the round trip is 20 ms.
fn ten_out(size: u64) -> (Connection, TcpConfig) {
    let config = config("newreno", Profile::Rfc);
    let mut c = connection(size, &config);
    assert_eq!(sent(&mut c, ms(20), &config).len() as u64, 10.min(size.div_ceil(MSS)));
    (c, config)
}

#[test]
fn the_probe_timeout_is_two_round_trips_and_one_delayed_acknowledgement_more_for_a_segment_alone() {
    let (c, _) = ten_out(u64::MAX / 4);
    // After the last segment, at 20 ms: 2 * 20 ms.
    assert_eq!(c.alarm.early, Early::Probe(ms(60)));
    let (c, _) = ten_out(MSS);
    // 20 + 40 + 200 ms is beyond the retransmission timeout, 20 + 220 ms.
    assert_eq!((c.alarm.early, c.alarm.deadline), (Early::Probe(ms(240)), ms(240)));
}

#[test]
fn a_lost_tail_is_found_by_a_probe_of_the_last_segment() {
    let (mut c, config) = ten_out(10 * MSS);
    c.acknowledge(&ack(8, (0, 0), ms(20)), ms(40), &config);
    assert_eq!(c.alarm.early, Early::Probe(ms(80)));
    c.time_out(ms(80), &config);
    assert_eq!(sent(&mut c, ms(80), &config), [9], "the last one, once");
    assert_eq!((c.state, c.alarm.early), (State::Open, Early::None));
    // RTO anew from the probe: SRTT 20 ms and 200 ms.
    assert_eq!(c.alarm.deadline, ms(300));
    let window = c.window.cwnd;
    // Segment 8 is lost, and by now overdue.
    c.acknowledge(&ack(8, (9, 10), ms(20)), ms(100), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Recovery, MSS * 2));
    assert!(window > c.window.cwnd);
    assert_eq!(sent(&mut c, ms(100), &config), [8]);
    c.acknowledge(&ack(10, (0, 0), ms(100)), ms(120), &config);
    assert_eq!((c.phase, c.packets_retransmitted), (Phase::Done, 2));
}

#[test]
fn a_probe_that_repairs_the_only_loss_reduces_the_window_once_later_data_show_it() {
    let (mut c, config) = ten_out(u64::MAX / 4);
    c.window.cwnd = 10 * MSS;
    c.acknowledge(&ack(9, (0, 0), ms(20)), ms(40), &config);
    let (window, new) = (c.window.cwnd, sent(&mut c, ms(40), &config));
    // Two more than were: the limit of an acknowledgement in slow start.
    assert_eq!(new, (10..21).collect::<Vec<_>>());
    // The receiver's window is full: there is nothing new to probe with.
    c.receivable = 21 * MSS;
    c.acknowledge(&Acknowledgement { window: 0, ..ack(20, (0, 0), ms(40)) }, ms(60), &config);
    // A segment alone: with the retransmission timeout, 20 + 200 ms after the acknowledgement.
    assert_eq!(c.alarm.early, Early::Probe(ms(280)));
    c.time_out(ms(280), &config);
    assert_eq!(sent(&mut c, ms(280), &config), [20]);
    c.acknowledge(&ack(21, (0, 0), ms(280)), ms(300), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Open, crate::congestion::window::NO_THRESHOLD));
    assert!(c.window.cwnd > window);
    c.window.cwnd = 40 * MSS;
    assert_eq!(sent(&mut c, ms(300), &config).len(), 40);
    c.acknowledge(&ack(30, (0, 0), ms(300)), ms(320), &config);
    // Half of the 31 that were still out.
    assert_eq!((c.state, c.window.ssthresh), (State::Reduced, 31 * MSS / 2));
}

#[test]
fn a_probe_that_came_twice_means_no_loss() {
    let (mut c, config) = ten_out(10 * MSS);
    c.source = crate::transport::tcp::source::Source::by_hand();
    c.source.write(10 * MSS);
    c.acknowledge(&ack(9, (0, 0), ms(20)), ms(40), &config);
    c.time_out(ms(260), &config);
    assert_eq!(sent(&mut c, ms(260), &config), [9]);
    c.acknowledge(&ack(10, (0, 0), ms(20)), ms(265), &config);
    let twice = Acknowledgement { duplicate: (9 * MSS, 10 * MSS), ..ack(10, (0, 0), ms(20)) };
    c.acknowledge(&twice, ms(280), &config);
    c.source.write(5 * MSS);
    assert_eq!(sent(&mut c, ms(280), &config).len(), 5);
    c.acknowledge(&ack(15, (0, 0), ms(280)), ms(300), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Open, crate::congestion::window::NO_THRESHOLD));
}

#[test]
fn a_probe_is_new_data_where_there_are_any_and_goes_beyond_the_window() {
    let (mut c, config) = ten_out(u64::MAX / 4);
    c.time_out(ms(60), &config);
    assert_eq!(sent(&mut c, ms(60), &config), [10]);
    assert_eq!(c.board.pipe(), 11 * MSS);
    assert_eq!(c.window.cwnd, 10 * MSS);
    // No second one before it is answered.
    assert_eq!(c.alarm.early, Early::None);
}

#[test]
fn what_was_only_late_is_not_sent_again() {
    let (mut c, config) = ten_out(u64::MAX / 4);
    // Segment 0 comes 4 ms after segment 1, within a quarter of the round trip.
    c.acknowledge(&ack(0, (1, 2), ms(20)), ms(40), &config);
    assert_eq!((c.state, c.alarm.early), (State::Disorder, Early::Reordering(ms(45))));
    c.acknowledge(&ack(2, (0, 0), ms(20)), ms(44), &config);
    assert_eq!(c.state, State::Open);
    assert!(!c.board.has_lost() && c.packets_retransmitted == 0);
    // From then on three segments beyond a hole do not count, for a quarter of the round trip.
    c.acknowledge(&ack(2, (3, 8), ms(20)), ms(45), &config);
    assert_eq!((c.state, c.board.lost()), (State::Disorder, 0));
    assert_eq!(c.alarm.early, Early::Reordering(ms(50)));
    c.time_out(ms(50), &config);
    assert_eq!((c.state, c.board.lost()), (State::Recovery, MSS));
    assert_eq!(sent(&mut c, ms(50), &config)[0], 2);
}

#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let (mut c, config) = ten_out(u64::MAX / 4);
    c.acknowledge(&ack(0, (1, 4), ms(20)), ms(40), &config);
    let first = sent(&mut c, ms(40), &config);
    assert_eq!((c.state, first[0]), (State::Recovery, 0));
    for last in 5..=10 {
        c.acknowledge(&ack(0, (1, last), ms(20)), ms(40), &config);
    }
    let new = sent(&mut c, ms(41), &config);
    assert!(!new.is_empty() && new.iter().all(|segment| *segment >= 10), "{new:?}");
    let highest = *new.last().unwrap();
    // What was sent after the retransmission arrives, and the retransmission does not.
    c.acknowledge(&ack(0, (1, highest + 1), ms(20)), ms(62), &config);
    assert_eq!(sent(&mut c, ms(62), &config)[0], 0);
    assert_eq!((c.packets_retransmitted, c.timeouts), (2, 0));
}

#[test]
fn after_a_timeout_only_what_is_overdue_is_lost() {
    let (mut c, config) = ten_out(u64::MAX / 4);
    c.acknowledge(&ack(2, (0, 0), ms(20)), ms(40), &config);
    let new = sent(&mut c, ms(230), &config);
    assert_eq!(new, [10, 11, 12, 13]);
    // The timeout of the earlier ones expires: four have been out for 10 ms only.
    c.alarm.early = Early::None;
    c.time_out(ms(240), &config);
    assert_eq!((c.state, c.board.lost(), c.board.pipe()), (State::Loss, 8 * MSS, 4 * MSS));
    assert_eq!(sent(&mut c, ms(240), &config), [2], "one segment");
}

#[test]
fn a_receiver_reports_what_has_come_twice_in_the_first_block_once() {
    let config = config("newreno", Profile::Rfc);
    let mut receiver = Receiver::new(EcnEcho::Off);
    let mut take = |segment: u64| {
        let sending =
            Sending { first: MSS * segment, payload: MSS as u16, sent: ms(1), reduced: false, again: false };
        receiver.take(&incoming(&sending, ms(1), u64::MAX), &config.ack, ms(1));
        let answer = receiver.answer();
        (answer.duplicate.0 / MSS, answer.duplicate.1 / MSS, answer.blocks())
    };
    assert_eq!(take(0), (0, 0, 0));
    assert_eq!(take(0), (0, 1, 1));
    assert_eq!(take(2), (0, 0, 1));
    assert_eq!(take(2), (2, 3, 2));
    assert_eq!((take(4), take(6), take(8)), ((0, 0, 2), (0, 0, 3), (0, 0, 3)));
    assert_eq!(take(0), (0, 1, 3), "three blocks at the most");
}

#[test]
fn a_timer_that_is_overdue_when_it_is_looked_at_goes_off_at_once() {
    // A timeout came before the reordering timer, and the NIC sent again only when that one had passed.
    let mut connection = connection(10_000, &config("newreno", Profile::Rfc));
    connection.alarm.deadline = Time(900);
    connection.alarm.early = Early::Reordering(Time(500));
    assert_eq!([400, 500, 600].map(|now| connection.alarm.next_from(Time(now))), [500, 500, 601].map(Time));
    connection.alarm.early = Early::None;
    assert_eq!(connection.alarm.next_from(Time(600)), Time(900));
}

/// The new segments that may be sent: which of them state that the window was reduced (CWR).
fn reductions(c: &mut Connection, now: Time, config: &TcpConfig) -> Vec<bool> {
    let sent = std::iter::from_fn(|| c.take(now, config));
    sent.filter(|sending| !sending.again).map(|sending| sending.reduced).collect()
}

#[test]
fn the_first_new_segment_after_a_loss_states_the_reduction_so_that_marks_of_that_window_are_answered() {
    let ten_out = || {
        let (mut c, mut config) = ten_out(u64::MAX / 4);
        config.ecn = EcnEcho::Classic;
        c.window.cwnd = 10 * MSS;
        (c, config)
    };
    // Segment 0 is lost, another one is marked: the receiver echoes that until it hears of a reduction.
    let (mut c, config) = ten_out();
    let marked = |ack: Acknowledgement| Acknowledgement { marked: true, ..ack };
    c.acknowledge(&marked(ack(0, (1, 4), ms(20))), ms(40), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Recovery, 5 * MSS));
    assert_eq!(sent(&mut c, ms(40), &config), [0]);
    c.acknowledge(&marked(ack(10, (0, 0), ms(40))), ms(60), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Open, 5 * MSS));
    let states = reductions(&mut c, ms(60), &config);
    assert!(states[0] && !states[1..].contains(&true), "{states:?}");
    // An echo of what was sent since is another congestion.
    c.acknowledge(&marked(ack(12, (0, 0), ms(60))), ms(80), &config);
    assert_eq!((c.state, c.window.ssthresh), (State::Reduced, 2 * MSS));
    // Without congestion notification nothing is stated.
    let (mut c, mut config) = ten_out();
    config.ecn = EcnEcho::Off;
    c.acknowledge(&ack(0, (1, 4), ms(20)), ms(40), &config);
    assert_eq!(sent(&mut c, ms(40), &config), [0]);
    c.acknowledge(&ack(10, (0, 0), ms(40)), ms(60), &config);
    assert!(!reductions(&mut c, ms(60), &config).contains(&true));
}

#[test]
fn the_first_new_segment_after_a_timeout_states_the_reduction() {
    let (mut c, mut config) = ten_out(u64::MAX / 4);
    (config.ecn, config.recovery.rack, config.recovery.f_rto) = (EcnEcho::Classic, None, false);
    c.rack = None;
    c.alarm.early = Early::None;
    c.time_out(ms(240), &config);
    assert_eq!(sent(&mut c, ms(240), &config), [0], "sent again, which says nothing of the window");
    c.acknowledge(&ack(10, (0, 0), ms(240)), ms(260), &config);
    assert_eq!(reductions(&mut c, ms(260), &config)[..2], [true, false]);
}

#[test]
fn recovery_adds_no_segment_where_an_acknowledgement_fills_a_hole_and_shows_another_loss() {
    let (mut c, config) = ten_out(u64::MAX / 4);
    c.window.cwnd = 10 * MSS;
    c.acknowledge(&ack(0, (4, 8), ms(20)), ms(40), &config);
    assert_eq!(sent(&mut c, ms(40), &config), [0, 1, 2]);
    c.acknowledge(&ack(0, (4, 10), ms(20)), ms(40), &config);
    assert_eq!(sent(&mut c, ms(40), &config), [3, 10]);
    // Far below the threshold: eight segments are delivered and five were sent, so that three may leave, or
    // four if nothing more was lost.
    c.window.ssthresh = 50 * MSS;
    // Segments 0 and 2 have come now, and 1 is lost once more: it counted as lost before.
    let blocks = [(2 * MSS, 3 * MSS), (4 * MSS, 10 * MSS), (0, 0)];
    c.acknowledge(&Acknowledgement { blocks, count: 2, ..ack(1, (0, 0), ms(40)) }, ms(60), &config);
    assert_eq!((c.state, c.board.pipe(), c.window.cwnd), (State::Recovery, 2 * MSS, 5 * MSS));
    assert_eq!(sent(&mut c, ms(60), &config), [1, 11, 12]);
}
