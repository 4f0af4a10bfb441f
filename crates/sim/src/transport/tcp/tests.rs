//! A connection's two ends, without a network between them.

use super::acknowledgement::Acknowledgement;
use super::connection::{Connection, Phase, Sending};
use super::forward_rto::ForwardRto;
use super::receiver::{Incoming, Receiver};
use super::scoreboard::BLOCKS;
use super::*;
use crate::congestion::window::{FlowPath, Profile, WindowConfig};
use crate::parameters::{Nothing, Parameters};
use crate::transport::ReadContext;
use crate::transport::tcp::config::{EcnEcho, TcpConfig};
use crate::units::Time;

mod channels;
mod flow_control;
mod forward_rto;
mod like_ns3;
mod loss_detection;

fn config(controller: &str, profile: Profile) -> TcpConfig {
    let controller = WindowConfig::read(controller, &mut Parameters::new(&mut Nothing::default()), profile);
    let wire = Wire::of(profile);
    let cx = ReadContext { base_rtt: &|_| Time::from_ms(20), ..ReadContext::listing() };
    let controller = controller.expect("a controller");
    read(&mut Parameters::new(&mut Nothing::default()), profile, controller, wire, &cx)
}

fn connection(size: u64, config: &TcpConfig) -> Connection {
    let spec = FlowSpec { size, ..FlowSpec::default() };
    let mut connection = Connection::new(0, &spec, config, 5, FlowPath::default(), Time::ZERO);
    connection.establish(Time::ZERO, u64::from(whole_window(config)), Time::from_ms(20), config);
    connection
}

fn incoming(sending: &Sending, sent: Time, size: u64) -> Incoming {
    Incoming {
        first: sending.first,
        payload: sending.payload,
        sent,
        wait: 0,
        last: sending.first + u64::from(sending.payload) == size,
        marked: false,
        reduced: sending.reduced,
    }
}

#[test]
fn a_receiver_acknowledges_every_second_segment_and_holes_at_once_with_the_newest_block_first() {
    let mut config = config("newreno", Profile::Rfc);
    config.ack.quick = 0;
    let mut receiver = Receiver::new(EcnEcho::Off);
    let mut take = |segment: u64, sent: u64| {
        let sending =
            Sending { first: 1000 * segment, payload: 1000, sent: Time::ZERO, reduced: false, again: false };
        let at = Time::from_ms(sent);
        let reply = receiver.take(&incoming(&sending, at, u64::MAX), &config.ack, at);
        (reply == Reply::Now).then(|| receiver.answer())
    };
    assert_eq!(take(0, 1), None);
    let second = take(1, 2).unwrap();
    // The time of the first of the two.
    assert_eq!((second.expected, second.echo, second.blocks()), (2000, Time::from_ms(1), 0));
    assert_eq!(take(3, 4).unwrap().blocks[..2], [(3000, 4000), (0, 0)]);
    assert_eq!(take(6, 7).unwrap().blocks[..2], [(6000, 7000), (3000, 4000)]);
    assert_eq!(take(4, 5).unwrap().blocks[..2], [(3000, 5000), (6000, 7000)]);
    assert_eq!(take(8, 9).unwrap().blocks, [(8000, 9000), (3000, 5000), (6000, 7000)]);
    let filled = take(2, 10).unwrap();
    assert_eq!((filled.expected, filled.echo), (5000, Time::from_ms(10)));
    assert_eq!(filled.blocks, [(8000, 9000), (6000, 7000), (0, 0)]);
    assert_eq!(take(2, 11).unwrap().expected, 5000);
}

#[test]
fn quick_acknowledgements_come_at_the_start_after_a_pause_and_after_a_segment_that_came_twice() {
    let mut config = config("newreno", Profile::Rfc);
    assert_eq!(config.ack.quick, 16);
    config.ack.quick = 3;
    let mut receiver = Receiver::new(EcnEcho::Off);
    let mut take = |segment: u64, ms: u64| {
        let sending =
            Sending { first: 1000 * segment, payload: 1000, sent: Time::ZERO, reduced: false, again: false };
        let at = Time::from_ms(ms);
        let reply = receiver.take(&incoming(&sending, at, u64::MAX), &config.ack, at);
        (reply == Reply::Now).then(|| receiver.answer()).is_some()
    };
    // One, two and three at once, then every second one.
    assert_eq!([0, 1, 2, 3, 4, 5].map(|segment| take(segment, 1000)), [true, true, true, false, true, false]);
    // A pause of rto_min, 200 ms, and one that is longer.
    assert_eq!([(6, 1200), (7, 1200)].map(|(segment, ms)| take(segment, ms)), [true, false]);
    assert_eq!([8, 9, 10, 11].map(|segment| take(segment, 1401)), [true, true, true, false]);
    // The copy itself is the first of three.
    assert_eq!([11, 12, 13, 14, 15].map(|segment| take(segment, 1401)), [true, true, true, false, true]);
    // What is beyond a hole, or fills it, is acknowledged at once, and changes nothing for what follows.
    assert_eq!([17, 16, 18, 19].map(|segment| take(segment, 1401)), [true, true, false, true]);
}

#[test]
fn ecn_is_echoed_until_the_sender_has_reduced_its_window_or_packet_by_packet() {
    let mut config = config("newreno", Profile::Rfc);
    config.ack.quick = 0;
    let echoes = |echoing, packets: &[(bool, bool)]| -> Vec<(u64, bool)> {
        let mut receiver = Receiver::new(echoing);
        let mut answers = Vec::new();
        for (segment, &(marked, reduced)) in packets.iter().enumerate() {
            let sending = Sending {
                first: 1000 * segment as u64,
                payload: 1000,
                sent: Time::ZERO,
                reduced,
                again: false,
            };
            let segment = Incoming { marked, ..incoming(&sending, Time::ZERO, u64::MAX) };
            if receiver.must_answer_before(&segment) {
                let answer = receiver.answer();
                answers.push((answer.expected / 1000, answer.marked));
            }
            if receiver.take(&segment, &config.ack, Time::ZERO) == Reply::Now {
                let answer = receiver.answer();
                answers.push((answer.expected / 1000, answer.marked));
            }
        }
        answers
    };
    let packets =
        [(false, false), (true, false), (false, false), (false, false), (false, true), (false, false)];
    assert_eq!(echoes(EcnEcho::Classic, &packets), [(2, true), (4, true), (6, false)]);
    // RFC 8257 §3.2: a change of the mark is told at once.
    assert_eq!(echoes(EcnEcho::Exact, &packets), [(1, false), (2, true), (4, false), (6, false)]);
    assert_eq!(echoes(EcnEcho::Off, &packets), [(2, false), (4, false), (6, false)]);
}

/// Sends what may be sent: first segment numbers.
fn sent(connection: &mut Connection, now: Time, config: &TcpConfig) -> Vec<u64> {
    let mss = u64::from(config.mss);
    std::iter::from_fn(|| connection.take(now, config).map(|sending| sending.first / mss)).collect()
}

#[test]
fn one_loss_is_found_by_the_third_duplicate_and_the_window_falls_in_proportion() {
    let config = config("newreno", Profile::Rfc);
    let mss = u64::from(config.mss);
    let mut c = connection(u64::MAX / 4, &config);
    c.window.cwnd = 20 * mss;
    let mut now = Time::from_ms(20);
    assert_eq!(sent(&mut c, now, &config), (0..20).collect::<Vec<_>>());
    let mut events = Vec::new();
    // Segment 0 is lost; every later one brings an acknowledgement.
    for last in 2..=20 {
        now += Time::from_ms(1);
        let mut blocks = [(0, 0); BLOCKS];
        blocks[0] = (mss, last * mss);
        let ack = Acknowledgement {
            expected: 0,
            blocks,
            count: 1,
            echo: Time::from_ms(20),
            in_hosts: Time::ZERO,
            window: 1 << 22,
            marked: false,
            duplicate: (0, 0),
        };
        c.acknowledge(&ack, now, &config);
        events.push(sent(&mut c, now, &config));
    }
    // Two by limited transmit, the lost one. Then 0.5 segments for each that arrives, of which one was sent; at the end, with ten
    // in flight, one for one. Flight 20, so the threshold is 10.
    assert_eq!(events[..3], [vec![20], vec![21], vec![0]]);
    let later: Vec<usize> = events[3..].iter().map(Vec::len).collect();
    assert_eq!(later, [0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    assert_eq!(c.window.ssthresh, 10 * mss);
    // The hole is filled: out of recovery, with the window at the threshold. What came beyond the hole makes it grow no more.
    let ack = Acknowledgement {
        expected: 22 * mss,
        blocks: [(0, 0); BLOCKS],
        count: 0,
        echo: now,
        in_hosts: Time::ZERO,
        window: 1 << 22,
        marked: false,
        duplicate: (0, 0),
    };
    c.acknowledge(&ack, now + Time::from_ms(20), &config);
    assert_eq!((c.state, c.window.cwnd / mss), (crate::congestion::window::State::Open, 10));
    assert_eq!(c.packets_retransmitted, 1);
}

#[test]
fn a_timeout_restarts_with_one_segment_and_doubles() {
    let mut config = config("newreno", Profile::Rfc);
    config.recovery.rack = None;
    let mss = u64::from(config.mss);
    let mut c = connection(u64::MAX / 4, &config);
    let now = Time::from_ms(20);
    assert_eq!(sent(&mut c, now, &config).len(), 10);
    // SRTT 20 ms of the handshake, RTTVAR 10 ms: 20 + max(200, 40) ms.
    assert_eq!(c.rtt.rto(), Time::from_ms(220));
    c.time_out(now + c.rtt.rto(), &config);
    assert_eq!((c.window.cwnd, c.window.ssthresh, c.rtt.rto()), (mss, 5 * mss, Time::from_ms(440)));
    assert_eq!(sent(&mut c, now, &config), [0]);
    c.time_out(now, &config);
    // The threshold falls once for one loss.
    assert_eq!((c.window.ssthresh, c.rtt.rto()), (5 * mss, Time::from_ms(880)));
    assert_eq!(sent(&mut c, now, &config), [0]);
    let ack = Acknowledgement {
        expected: mss,
        blocks: [(0, 0); BLOCKS],
        count: 0,
        echo: now,
        in_hosts: Time::ZERO,
        window: 1 << 22,
        marked: false,
        duplicate: (0, 0),
    };
    c.acknowledge(&ack, now + Time::from_ms(20), &config);
    // Slow start: two segments, the next ones that count as lost.
    assert_eq!(sent(&mut c, now, &config), [1, 2]);
    assert!(c.rtt.rto() < Time::from_ms(300));
}
