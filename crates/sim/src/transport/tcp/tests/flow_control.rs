//! Windows that close: what a receiver tells, what a sender holds back, and the persist timer.

use super::*;
use crate::transport::tcp::connection::{Early, Next};
use crate::transport::tcp::reading::Reading;
use crate::units::Rate;

fn ms(milliseconds: u64) -> Time {
    Time::from_ms(milliseconds)
}

/// Segments of 1000 B and a buffer of four.
fn small() -> TcpConfig {
    let mut config = config("newreno", Profile::Rfc);
    (config.mss, config.receive_buffer) = (1000, 4000);
    config
}

fn ack(expected: u64, window: u64) -> Acknowledgement {
    Acknowledgement {
        in_hosts: Time::ZERO,
        expected,
        blocks: Default::default(),
        count: 0,
        duplicate: (0, 0),
        echo: ms(20),
        window,
        marked: false,
    }
}

#[test]
fn a_window_is_advertised_in_steps_of_the_scale_that_its_buffer_needs() {
    let window = |bytes| {
        let mut config = small();
        config.receive_buffer = bytes;
        whole_window(&config)
    };
    // 16 bits without a scale; 2 MiB need 2^6 in 16 bits, 6 MiB 2^7; 2^14 is the largest (RFC 7323 §2.3).
    assert_eq!((window(65_535), window(65_537)), (65_535, 65_536));
    assert_eq!((window(2 << 20), window((2 << 20) + 63)), (2 << 20, 2 << 20));
    assert_eq!(window((6 << 20) + 127), 6 << 20);
    assert_eq!(window((1 << 30) - 1), ((1 << 30) - 1) >> 14 << 14);
}

#[test]
fn the_right_edge_moves_by_a_segment_or_half_of_the_buffer_and_never_back() {
    let config = small();
    let rate = Rate::from_mbps(8); // A byte a microsecond.
    let mut reading = Reading::new(&config);
    let at = |us| Time::from_us(us);
    reading.resume(0, rate, at(0));
    assert_eq!(reading.window(1000, rate, at(0), &config), 3000);
    assert_eq!(reading.window(1000, rate, at(999), &config), 3000, "999 bytes would be a silly window");
    assert_eq!(reading.window(1000, rate, at(1000), &config), 4000);
    // All was read: the application waits, and begins anew with what comes at 5 ms.
    reading.resume(1000, rate, at(5000));
    assert_eq!(reading.window(5000, rate, at(5000), &config), 0);
    assert_eq!(reading.update_at(5000, rate, &config), Some(at(6000)));
    assert_eq!(reading.window(5000, rate, at(6000), &config), 1000);
    // A segment is told: with two there is another update; with the window half open there is none.
    assert_eq!(reading.update_at(5000, rate, &config), Some(at(7000)));
    assert_eq!(reading.window(5000, rate, at(7000), &config), 2000);
    assert_eq!(reading.update_at(5000, rate, &config), Some(at(9000)));
    assert_eq!(reading.window(5000, rate, at(9000), &config), 4000);
    assert_eq!(reading.update_at(5000, rate, &config), None);
}

/// What came is not answered yet, and the application had read all before.
#[test]
fn an_update_that_an_unanswered_segment_makes_due_is_due_at_once() {
    let config = TcpConfig { receive_buffer: 2000, ..small() };
    let rate = Rate::from_gbps(8); // A byte a nanosecond.
    let mut reading = Reading::new(&config);
    reading.resume(0, rate, Time::ZERO);
    assert_eq!(reading.window(1000, rate, Time::ZERO, &config), 1000);
    reading.resume(1000, rate, ms(5));
    assert_eq!(reading.update_at(2000, rate, &config), Some(ms(5)));
    assert_eq!(reading.window(2000, rate, ms(5), &config), 1000);
}

/// Else there would be another one a picosecond later, and so on until there is as much room.
#[test]
fn an_update_moves_the_edge_at_its_time_whatever_the_buffer() {
    for buffer in (2_000..9_000_000).step_by(7_919) {
        let config = TcpConfig { receive_buffer: buffer, ..small() };
        for rate in [Rate::from_mbps(10), Rate::from_mbps(90), Rate::from_gbps(7)] {
            let mut reading = Reading::new(&config);
            reading.resume(0, rate, Time::ZERO);
            let expected = buffer - 333;
            let (mut window, mut updates) = (reading.window(expected, rate, Time(5), &config), 0);
            while let Some(at) = reading.update_at(expected, rate, &config) {
                let wider = reading.window(expected, rate, at, &config);
                assert!(wider > window, "{buffer} B at {rate}: {window} B and {wider} B");
                (window, updates) = (wider, updates + 1);
            }
            assert!(
                updates < 20 && 2 * u64::from(window) + 2_000 > buffer,
                "{buffer} B: {window} B after all"
            );
        }
    }
}

#[test]
fn a_sender_waits_for_a_whole_segment_or_half_of_the_widest_window() {
    let config = small();
    let mut c = connection(100_000, &config);
    assert_eq!(sent(&mut c, ms(20), &config), [0, 1, 2, 3]);
    c.acknowledge(&ack(2000, 2500), ms(40), &config);
    assert_eq!(c.next(ms(40), &config), Next::Nothing, "500 bytes, with two segments in flight");
    c.acknowledge(&ack(4000, 1999), ms(40), &config);
    assert_eq!(sent(&mut c, ms(40), &config), [4]);
    assert_eq!(c.next(ms(40), &config), Next::Nothing);
    c.acknowledge(&ack(5000, 999), ms(60), &config);
    assert_eq!(c.next(ms(60), &config), Next::Nothing, "less than half of 4000");
    // Of a receiver that never had more than 1500 bytes to offer, 750 are enough.
    let spec = FlowSpec { size: 100_000, ..FlowSpec::default() };
    let mut c = Connection::new(0, &spec, &config, 5, FlowPath::default(), Time::ZERO);
    c.establish(Time::ZERO, 1500, ms(20), &config);
    assert_eq!(sent(&mut c, ms(20), &config), [0]);
    c.acknowledge(&ack(1000, 749), ms(40), &config);
    assert_eq!(c.next(ms(40), &config), Next::Nothing);
    c.acknowledge(&ack(1000, 750), ms(40), &config);
    assert_eq!(c.next(ms(40), &config), Next::New(750));
}

#[test]
fn a_closed_window_is_probed_after_a_timeout_and_ever_later_and_never_given_up_while_answers_come() {
    let config = small();
    let mut c = connection(100_000, &config);
    sent(&mut c, ms(20), &config);
    c.acknowledge(&ack(4000, 0), ms(40), &config);
    // SRTT 20 ms and 200 ms.
    assert!(c.persist.running && c.alarm.early == Early::None);
    assert_eq!(c.alarm.deadline, ms(260));
    let mut times = Vec::new();
    for _ in 0..12 {
        let at = c.alarm.deadline;
        assert!(c.persist_expires(at, &config), "a probe");
        times.push(c.alarm.deadline - at);
        c.acknowledge(&ack(4000, 0), at + ms(20), &config);
        assert_eq!(c.timeouts, 0);
    }
    // 440 ms, 880 ms ... and the longest timeout.
    assert_eq!(times[..3], [ms(440), ms(880), ms(1760)]);
    assert_eq!(times[9..], [ms(120_000); 3]);
    // An update opens it.
    c.acknowledge(&ack(4000, 1000), c.alarm.deadline, &config);
    assert!(!c.persist.running);
    assert_eq!(sent(&mut c, ms(500_000), &config), [4]);
}

#[test]
fn a_little_room_is_used_when_the_persist_timer_expires() {
    let config = small();
    let mut c = connection(100_000, &config);
    sent(&mut c, ms(20), &config);
    c.acknowledge(&ack(4000, 300), ms(40), &config);
    assert!(c.persist.running);
    assert_eq!(c.next(ms(259), &config), Next::Nothing);
    assert!(!c.persist_expires(ms(260), &config), "no probe");
    let sending = c.take(ms(260), &config).unwrap();
    assert_eq!((sending.first, sending.payload), (4000, 300));
    assert!(!c.persist.running);
    assert_eq!(c.alarm.deadline, ms(480), "the retransmission timeout of what was sent");
}

#[test]
fn a_window_that_is_never_answered_for_ends_the_connection() {
    let mut config = small();
    config.retries = 3;
    let mut c = connection(100_000, &config);
    sent(&mut c, ms(20), &config);
    c.acknowledge(&ack(4000, 0), ms(40), &config);
    let probes = (0..10).take_while(|_| c.persist_expires(c.alarm.deadline, &config)).count();
    assert_eq!((probes, c.phase), (3, Phase::Dead));
}

#[test]
fn a_short_segment_waits_for_acknowledgements_unless_nagle_is_off() {
    let mut config = small();
    config.receive_buffer = 1 << 20;
    // Messages of 1300 bytes, one in 104 ms.
    for (nagle, expected) in [(true, Next::At(ms(124))), (false, Next::New(300))] {
        config.nagle = nagle;
        let mut c = connection(u64::MAX, &config);
        let rate = Some(Rate(100_000));
        c.source = crate::transport::tcp::source::Source::new(u64::MAX, 1 << 20, rate, 1300, ms(20));
        assert_eq!(c.take(ms(20), &config).unwrap().payload, 1000);
        assert_eq!(c.next(ms(20), &config), expected);
        c.acknowledge(&ack(1000, 1 << 20), ms(40), &config);
        assert_eq!(c.next(ms(40), &config), Next::New(300));
    }
}

#[test]
fn a_message_leaves_at_once_where_nothing_is_unacknowledged_or_nagle_is_off() {
    let mut config = small();
    config.receive_buffer = 1 << 20;
    // Messages of 100 bytes, one in 10 ms.
    for (nagle, second) in [(true, Next::At(ms(119))), (false, Next::At(ms(30)))] {
        config.nagle = nagle;
        let mut c = connection(u64::MAX, &config);
        let rate = Some(Rate(80_000));
        c.source = crate::transport::tcp::source::Source::new(u64::MAX, 1 << 20, rate, 100, ms(20));
        assert_eq!(c.take(ms(20), &config).unwrap().payload, 100);
        let waits = c.next(ms(20), &config);
        match (nagle, waits, second) {
            // With Nagle until a segment of 1000 bytes is full, or the acknowledgement comes.
            (true, Next::At(at), _) => assert!(at >= ms(110), "{at}"),
            _ => assert_eq!(waits, second),
        }
        c.acknowledge(&ack(100, 1 << 20), ms(25), &config);
        assert_eq!(c.next(ms(25), &config), Next::At(ms(30)), "nothing is unacknowledged");
        assert_eq!(c.take(ms(30), &config).unwrap().payload, 100);
    }
}

/// RFC 3168 §6.1.5, and DCTCP's as Linux has it.
#[test]
fn a_segment_that_goes_again_is_not_capable_of_marks_unless_marks_are_exact() {
    let capable = |echo: EcnEcho| (echo.is_capable(false), echo.is_capable(true));
    assert_eq!(capable(EcnEcho::Classic), (true, false));
    assert_eq!(capable(EcnEcho::Exact), (true, true));
    assert_eq!(capable(EcnEcho::Off), (false, false));
    let config = small();
    let mut c = connection(100_000, &config);
    assert!(!c.take(ms(20), &config).unwrap().again);
    let again = c.send_first_again(ms(2_000), &config).unwrap();
    assert_eq!((again.first, again.again), (0, true));
}
