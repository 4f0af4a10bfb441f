//! A lone flow through one switch, in whole nanoseconds: just enough of the HPCC authors' simulator to compare each
//! controller with its flow completion times.
//!
//! Nothing contends, so no queue builds. What remains is the sender: pacing,
//! window, and the controller, whose every rounding shows in the last nanosecond.

use super::situations::{LINE, flow, record};
use crate::congestion::*;
use crate::parameters::Nothing;

/// Propagation of each link.
const DELAY_NS: u64 = 1_000;
/// Base RTT of the 17-host star: 4 links and two payloads of 1 000 B; and W0 = 100 Gb/s of it.
const BASE_RTT_NS: u64 = 4_160;
const W0: u64 = 52_000;

/// `bytes * 8 / rate` in whole ns, rounded down as the authors' 64.64-bit fixed point does it.
fn ns(bytes: u64, rate: Rate) -> u64 {
    let seconds = bytes as f64 * 8.0 / rate.0 as f64;
    // Below one second: exact scaling by a power of two.
    let fixed = (seconds * 2f64.powi(64)) as u128;
    ((fixed * 1_000_000_000) >> 64) as u64
}

struct Sender {
    config: ControllerConfig,
    controller: Controller,
    control: Control,
    size: u64,
    next: u64,
    acknowledged: u64,
    /// Pacing allows the next packet.
    next_avail: i64,
    last_bytes: u64,
    /// The NIC is free again.
    idle_at: u64,
    /// The switch's port: bytes sent, and when it is free again.
    port_sent: u64,
    port_free_at: u64,
    /// The receiver's NIC is free again.
    receiver_free_at: u64,
    /// (time, acknowledged, sent at, record) in order.
    acks: std::collections::VecDeque<(u64, u64, u64, crate::telemetry::int::IntRecord)>,
}

impl Sender {
    fn new(kind: &str, size: u64, port_sent: u64) -> Sender {
        let config = ControllerConfig::read(kind, &mut Parameters::new(&mut Nothing::default())).unwrap();
        let flow = FlowContext { base_rtt: Time::from_ns(BASE_RTT_NS), window_bytes: W0, ..flow() };
        let (controller, control) = config.start(&flow, 5);
        Sender {
            config,
            controller,
            control,
            size,
            next: 0,
            acknowledged: 0,
            next_avail: 0,
            last_bytes: 0,
            idle_at: 0,
            port_sent,
            port_free_at: 0,
            receiver_free_at: 0,
            acks: Default::default(),
        }
    }

    /// Bytes of telemetry in a data packet, and bytes of an acknowledgement.
    fn wire(&self) -> (u64, u64) {
        let needs = self.config.needs();
        if needs.int { (42, 88) } else { (if needs.timestamp { 8 } else { 0 }, 60) }
    }

    fn window_is_open(&self) -> bool {
        let window = match self.config.needs().window {
            Window::None => u64::MAX,
            Window::Fixed => W0,
            Window::FollowsRate => (W0 as u128 * self.control.rate.0 as u128 / LINE as u128).max(1) as u64,
        };
        self.next - self.acknowledged < window
    }

    /// Sends at `now` and files the acknowledgement that will come of it.
    fn send(&mut self, now: u64) {
        let payload = (self.size - self.next).min(1_000);
        let (telemetry, ack_bytes) = self.wire();
        let bytes = payload + 48 + telemetry;
        let line = Rate(LINE);
        self.next += payload;
        self.last_bytes = bytes;
        self.idle_at = now + ns(bytes, line);
        self.next_avail = (now + ns(bytes, self.control.rate)) as i64;
        // A short last packet catches up with the one before it, and its ACK with the ACK before it.
        let departs = (self.idle_at + DELAY_NS).max(self.port_free_at);
        let record = record(departs, self.port_sent, 0, line);
        self.port_sent += bytes;
        self.port_free_at = departs + ns(bytes, line);
        let answered = (self.port_free_at + DELAY_NS).max(self.receiver_free_at);
        self.receiver_free_at = answered + ns(ack_bytes, line);
        let back = answered + 2 * (ns(ack_bytes, line) + DELAY_NS);
        self.acks.push_back((back, self.next, now, record));
    }

    fn receive(&mut self, now: u64) {
        let Some((_, acknowledged, sent_at, record)) = self.acks.pop_front() else { return };
        let newly = acknowledged - self.acknowledged;
        self.acknowledged = acknowledged;
        let old = self.control.rate;
        let ack = Ack {
            now: Time::from_ns(now),
            acknowledged,
            newly_acknowledged: newly,
            next_byte: self.next,
            marked: false,
            rtt: Time::from_ns(now - sent_at),
            payload: 1_000,
            negative: false,
            telemetry: Some(IntView { hops: 1, records: &[record], path_id: 0 }),
            load: None,
        };
        self.controller.on_ack(&ack, &mut self.control);
        if std::mem::take(&mut self.control.repace) {
            self.next_avail +=
                ns(self.last_bytes, self.control.rate) as i64 - ns(self.last_bytes, old) as i64;
        }
    }

    /// Flow completion time in ns, and bytes that the port has sent.
    fn run(mut self) -> (u64, u64) {
        let mut now = 0;
        loop {
            while self.acks.front().is_some_and(|ack| ack.0 == now) {
                self.receive(now);
            }
            if self.acknowledged == self.size {
                return (now, self.port_sent);
            }
            let left = self.next < self.size && self.window_is_open();
            let may_send = (self.next_avail.max(0) as u64).max(self.idle_at);
            if left && may_send <= now {
                self.send(now);
            }
            let next_ack = self.acks.front().map_or(u64::MAX, |ack| ack.0);
            let left = self.next < self.size && self.window_is_open();
            let may_send = (self.next_avail.max(0) as u64).max(self.idle_at);
            now = if left { next_ack.min(may_send) } else { next_ack };
        }
    }
}

#[test]
fn a_lone_flow_takes_the_time_of_the_authors_simulator_to_the_nanosecond() {
    // Sizes in bytes, then completion times in ns, from running their simulator on a star of 17 hosts.
    let sizes = [1, 100, 999, 1_000, 1_001, 2_000, 10_000, 100_000, 153_000, 1_000_000, 10_000_000];
    let published = [
        ("hpcc", [4028, 4044, 4188, 4188, 4195, 4275, 4971, 13039, 18024, 95712, 920991]),
        ("dctcp", [4014, 4030, 4174, 4174, 4178, 4257, 4921, 12391, 16790, 87091, 834091]),
        ("timely", [4016, 4032, 4176, 4176, 4180, 4260, 4932, 12492, 16944, 88092, 844092]),
        ("dcqcn", [4014, 4030, 4174, 4174, 4178, 4257, 4921, 12391, 16790, 87091, 834091]),
    ];
    for (kind, times) in published {
        // One flow after the other to the same host: the port's counter, which INT rounds down, goes on.
        let mut port_sent = 0;
        let ours = sizes.map(|size| {
            let (time, sent) = Sender::new(kind, size, port_sent).run();
            port_sent = sent;
            time
        });
        assert_eq!(ours, times, "{kind}");
    }
}
