//! A connection under `reactions = "ns3-3.35"`, by hand: what is sent, and when.

use super::*;
use crate::congestion::window::State;
use crate::transport::Look;
use crate::transport::nic::Nic;
use crate::transport::tcp::config::Reactions;
use crate::transport::tcp::connection::Next;
use crate::transport::tcp::like_ns3::REACTIONS;
use crate::transport::tcp::scoreboard::Scoreboard;
use crate::units::Rate;

const MSS: u64 = 1440;

fn ms(milliseconds: u64) -> Time {
    Time::from_ms(milliseconds)
}

/// An acknowledgement of whole segments, with at most one block.
fn ack(expected: u64, block: (u64, u64)) -> Acknowledgement {
    let mut blocks = [(0, 0); BLOCKS];
    blocks[0] = (block.0 * MSS, block.1 * MSS);
    Acknowledgement {
        in_hosts: Time::ZERO,
        expected: expected * MSS,
        blocks,
        count: usize::from(block.0 < block.1),
        duplicate: (0, 0),
        echo: ms(20),
        window: 1 << 21,
        marked: false,
    }
}

/// Numbers of the segments that wait for the NIC.
fn sent(c: &mut Connection) -> Vec<u64> {
    c.outbox.drain(..).map(|sending| sending.first / MSS).collect()
}

/// Ten segments are out since 20 ms; the round trip is 20 ms.
fn ten_out() -> (Connection, TcpConfig) {
    let config = config("newreno", Profile::Ns3_35);
    let mut c = connection(u64::MAX / 4, &config);
    assert_eq!(sent(&mut c), (0..10).collect::<Vec<_>>());
    (c, config)
}

#[test]
fn segments_bear_the_time_at_which_they_were_handed_down() {
    let config = config("newreno", Profile::Ns3_35);
    let mut c = connection(u64::MAX / 4, &config);
    let sending = c.take(ms(27), &config).unwrap();
    assert_eq!((sending.first, sending.sent), (0, ms(20)));
    assert_eq!(c.alarm.deadline, ms(1020));
}

#[test]
fn recovery_sends_at_once_with_its_first_acknowledgement_and_with_every_partial_one() {
    let (mut c, config) = ten_out();
    let take = |c: &mut Connection, expected, block, at| {
        c.acknowledge(&ack(expected, block), ms(at), &config);
        sent(c)
    };
    // Segment 0 is lost. Two duplicates let a new segment out each.
    assert_eq!(take(&mut c, 0, (1, 2), 41), [10]);
    assert_eq!(take(&mut c, 0, (1, 3), 42), [11]);
    // The third: 12 - 3 - 1 segments in flight, half of them the threshold, and one sent whatever the window.
    assert_eq!(take(&mut c, 0, (1, 4), 43), [0]);
    assert_eq!((c.state, c.window.ssthresh, c.window.cwnd), (State::Recovery, 4 * MSS, 9 * MSS));
    // In proportion: 2 delivered * 4 / 12 outstanding is less than what was sent.
    assert_eq!(take(&mut c, 0, (1, 5), 44), [0u64; 0]);
    assert_eq!(c.window.cwnd, 8 * MSS);
    // Segment 5 was not sent again, nothing is lost, so a new one leaves; the timeout begins anew.
    assert_eq!(take(&mut c, 5, (0, 0), 63), [12]);
    assert_eq!((c.window.cwnd, c.alarm.deadline), (7 * MSS, ms(1063)));
    // Once more, but the timeout goes on.
    assert_eq!(take(&mut c, 6, (0, 0), 64), [13]);
    assert_eq!((c.window.cwnd, c.alarm.deadline), (7 * MSS, ms(1063)));
    // The end: the threshold, and a segment squared over it for what this one acknowledges.
    take(&mut c, 12, (0, 0), 65);
    assert_eq!((c.state, c.window.cwnd), (State::Open, 4 * MSS + MSS / 4));
}

#[test]
fn every_timeout_lowers_the_threshold_and_its_end_adds_nothing() {
    let (mut c, config) = ten_out();
    c.time_out(ms(1020), &config);
    assert_eq!((sent(&mut c), c.window.cwnd, c.window.ssthresh), (vec![0], MSS, 5 * MSS));
    assert_eq!(c.alarm.deadline, ms(3020));
    c.time_out(ms(3020), &config);
    assert_eq!((sent(&mut c), c.window.ssthresh), (vec![0], 2 * MSS));
    // Everything had arrived but the first.
    c.acknowledge(&ack(10, (0, 0)), ms(3060), &config);
    assert_eq!((c.state, c.window.cwnd), (State::Open, MSS));
}

#[test]
fn a_controller_is_informed_of_every_consecutive_timeout_so_that_cubic_resets_each_time() {
    let config = config("cubic", Profile::Ns3_35);
    let mut c = connection(u64::MAX / 4, &config);
    sent(&mut c);
    c.time_out(ms(1020), &config);
    assert_eq!((sent(&mut c), c.window.ssthresh), (vec![0], 7 * MSS));
    c.time_out(ms(3020), &config);
    // Less than two segments never; Wmax is not the one segment that this timeout met but unknown.
    assert_eq!((sent(&mut c), c.window.ssthresh), (vec![0], 2 * MSS));
    let mut internals = Vec::new();
    c.law.internals(&mut internals);
    assert_eq!(internals[0], ("w_max_segments", 0.0));
    // Everything had arrived but the first; the next ends slow start at two segments.
    c.acknowledge(&ack(10, (0, 0)), ms(3040), &config);
    c.acknowledge(&ack(11, (0, 0)), ms(3060), &config);
    assert_eq!((c.state, c.window.cwnd), (State::Open, 2 * MSS));
    // While no Wmax is known twenty segments are worth one, not two hundred.
    let windows = (12..=31).map(|expected| {
        c.acknowledge(&ack(expected, (0, 0)), ms(3060 + expected), &config);
        c.window.cwnd / MSS
    });
    assert_eq!(windows.collect::<Vec<_>>(), [vec![2; 19], vec![3]].concat());
}

#[test]
fn what_was_sent_again_and_has_arrived_counts_in_the_pipe_until_it_is_acknowledged_cumulatively() {
    let pipe = |reactions| {
        let mut board = Scoreboard::new(1000, 3, reactions);
        (0..10).for_each(|_| _ = board.send_new(1000, Time::ZERO));
        board.update(0, &[(2_000, 5_000)], &mut |_, _| {});
        assert_eq!((board.lost(), board.pipe()), (2_000, 5_000));
        board.send_again(0, Time::ZERO);
        board.send_again(1, Time::ZERO);
        board.update(0, &[(1_000, 5_000)], &mut |_, _| {});
        board.pipe()
    };
    assert_eq!((pipe(Reactions::default()), pipe(REACTIONS)), (6_000, 7_000));
}

#[test]
fn arrivals_are_counted_from_the_segment_below_the_highest_once_that_comes() {
    let mut board = Scoreboard::new(1000, 3, REACTIONS);
    (0..10).for_each(|_| _ = board.send_new(1000, Time::ZERO));
    board.update(0, &[(7_000, 8_000)], &mut |_, _| {});
    board.update(0, &[(9_000, 10_000)], &mut |_, _| {});
    // Three have arrived, but counted from 8 on there are two.
    board.update(0, &[(8_000, 9_000)], &mut |_, _| {});
    assert_eq!(board.lost(), 0);
    board.update(0, &[(6_000, 7_000)], &mut |_, _| {});
    assert_eq!(board.lost(), 6_000);
}

#[test]
fn a_receiver_remembers_four_blocks_and_echoes_nothing_stale() {
    let config = config("newreno", Profile::Ns3_35);
    let mut receiver = Receiver::new(EcnEcho::Off);
    let mut take = |segment: u64, sent: u64| {
        let sending =
            Sending { first: MSS * segment, payload: 1440, sent: Time::ZERO, reduced: false, again: false };
        receiver.take(&incoming(&sending, ms(sent), u64::MAX), &config.ack, ms(sent));
        receiver.answer()
    };
    let block = |from, to| (from * MSS, to * MSS);
    assert_eq!(take(0, 10).echo, ms(10));
    for (segment, sent) in [(2, 12), (4, 14), (6, 16), (8, 18)] {
        take(segment, sent);
    }
    assert_eq!(take(10, 20).blocks, [block(10, 11), block(8, 9), block(6, 7)]);
    // Segment 2 is forgotten: what touches it is told of without it.
    assert_eq!(take(3, 20).blocks, [block(3, 5), block(10, 11), block(8, 9)]);
    // The hole is filled by a segment that was sent before one that has come.
    let filled = take(1, 11);
    assert_eq!((filled.expected, filled.echo), (5 * MSS, ms(10)));
    assert_eq!(take(5, 21).echo, ms(21));
}

#[test]
fn a_second_answer_to_the_syn_is_a_new_start_of_the_window_that_sends_nothing() {
    let (mut c, config) = ten_out();
    c.window.cwnd = MSS;
    c.window.ssthresh = 2 * MSS;
    c.answered_again(&config);
    assert_eq!((c.window.cwnd, c.window.ssthresh), (10 * MSS, crate::congestion::window::NO_THRESHOLD));
    assert_eq!(sent(&mut c), [0u64; 0]);
}

/// Whether a segment counts as limited by the application, which has sent all it had and then writes on: 1440 bytes in 5 ms, in
/// messages of so many.
fn is_limited_by_messages(message: u32) -> bool {
    let mut config = config("bbr", Profile::Ns3_35);
    config.application.rate = Some(Rate(2_304_000));
    config.application.message = message;
    let mut c = connection(u64::MAX / 4, &config);
    let mut nic = Nic::default();
    c.gate = nic.add(0, ms(0), 1);
    sent(&mut c);
    c.update_gate(&mut nic, ms(20), &config);
    assert!(c.board.pipe() < c.window.cwnd);
    c.take(ms(30), &config).expect("a segment");
    let (number, segment) = (c.board.next_number() - 1, *c.board.front().unwrap());
    let rates = c.rates.as_mut().unwrap();
    rates.arrived(number, segment.payload, segment.sent, ms(50));
    rates.sample(0, ms(50), ms(20)).app_limited
}

#[test]
fn an_application_that_writes_whole_segments_never_limits_a_sample() {
    assert_eq!([720, 1440, 2880].map(is_limited_by_messages), [true, false, false]);
}

#[test]
fn the_timeout_runs_on_while_a_pacer_holds_back_what_was_written() {
    let config = config("bbr", Profile::Ns3_35);
    let deadline = |size| {
        let mut c = connection(size, &config);
        assert_eq!(sent(&mut c).len(), 10);
        c.due = ms(500);
        c.acknowledge(&ack(10, (0, 0)), ms(40), &config);
        assert_eq!(c.board.outstanding(), 0);
        let after = c.alarm.deadline;
        c.take(ms(500), &config);
        (after, c.alarm.deadline)
    };
    // A second from the acknowledgement, not from what is sent next.
    assert_eq!(deadline(11 * MSS), (ms(1040), ms(1040)));
    // Nothing is left.
    assert_eq!(deadline(10 * MSS).0, Time::MAX);
}

#[test]
fn the_first_segment_is_answered_at_once_also_where_acknowledgements_are_delayed() {
    let mut config = config("newreno", Profile::Ns3_35);
    config.ack.every = 2;
    let mut receiver = Receiver::new(EcnEcho::Off);
    let mut take = |segment: u64| {
        let sending =
            Sending { first: MSS * segment, payload: 1440, sent: Time::ZERO, reduced: false, again: false };
        let at = ms(10 + segment);
        let reply = receiver.take(&incoming(&sending, at, u64::MAX), &config.ack, at);
        (reply == Reply::Now).then(|| receiver.answer().expected / MSS)
    };
    assert_eq!([0, 1, 2, 3, 4].map(&mut take), [Some(1), None, Some(3), None, Some(5)]);
}

#[test]
fn a_lost_syn_leaves_the_first_window_whole() {
    let begun = |profile| {
        let config = config("newreno", profile);
        let spec = FlowSpec { size: 1 << 40, ..FlowSpec::default() };
        let mut c = Connection::new(0, &spec, &config, 5, FlowPath::default(), Time::ZERO);
        c.timeouts = 1;
        c.establish(ms(3000), u64::from(whole_window(&config)), ms(3020), &config);
        c.window.cwnd / u64::from(config.mss)
    };
    assert_eq!((begun(Profile::Ns3_35), begun(Profile::Rfc)), (10, 1));
}

#[test]
fn what_an_application_writes_is_looked_at_right_after() {
    let at = |profile| {
        let mut config = config("newreno", profile);
        config.application.rate = Some(Rate::from_mbps(1));
        config.application.message = config.mss;
        let mut c = connection(u64::MAX / 4, &config);
        // Messages come every mss * 8 us; the handshake took 20 ms.
        c.outbox.clear();
        while c.take(ms(20), &config).is_some() {}
        let Next::At(at) = c.next(ms(20), &config) else { panic!("nothing to wait for") };
        at.0 - u64::from(config.mss) * 8_000_000 * (at.0 / (u64::from(config.mss) * 8_000_000))
    };
    assert_eq!((at(Profile::Ns3_35), at(Profile::Rfc)), (1, 0));
}

#[test]
fn an_acknowledgement_at_the_very_time_of_a_write_makes_room_for_it() {
    let written = |profile, late| {
        let mut config = config("newreno", profile);
        config.application.rate = Some(Rate::from_mbps(1));
        (config.mss, config.application.message) = (MSS as u32, MSS as u32);
        config.send_buffer = 10 * MSS;
        let mut c = connection(u64::MAX / 4, &config);
        // The first ten writes fill the buffer, the one after them is left out; this is the time of the next.
        let every = Time(MSS * 8_000_000);
        let at = Time(11 * every.0);
        for write in 0..11 {
            c.take(Time(write * every.0 + 1), &config);
        }
        c.acknowledge(&ack(1, (0, 0)), at + Time::from_ns(late), &config);
        c.written(at + Time::from_ns(2)) / MSS
    };
    let both = |late| [Profile::Ns3_35, Profile::Rfc].map(|profile| written(profile, late));
    assert_eq!((both(0), both(1)), ([11, 10], [10, 10]));
}

#[test]
fn a_pacers_timer_is_set_when_a_segment_leaves_whether_or_not_the_window_lets_another_go() {
    let look = |by_state| {
        let config = config("bbr", Profile::Ns3_35);
        let mut c = connection(u64::MAX / 4, &config);
        let mut nic = Nic::default();
        c.gate = nic.add(0, ms(0), 1);
        sent(&mut c);
        (c.due, c.window.cwnd, c.reactions.by_state) = (ms(30), c.board.pipe(), by_state);
        c.update_gate(&mut nic, ms(25), &config);
        let now = nic.next_look(0, ms(25));
        c.update_gate(&mut nic, ms(30), &config);
        assert!(!nic.may_send(c.gate, ms(30)));
        now
    };
    assert!(matches!(look(true), Look::Wake { at, .. } if at == ms(30)));
    assert_eq!(look(false), Look::NoMore);
}
