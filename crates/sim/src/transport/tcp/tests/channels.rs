//! Random channels between a sender and a receiver, which lose, reorder, repeat and mark anything: every byte is delivered once and in
//! order, and every flow ends, under every controller and both profiles. Many more than with the other tests:
//!
//! ```text
//! TCP_CHANNELS=100000 cargo test --release -p weftline-sim --lib tcp::tests::channels -- --nocapture
//! ```

use super::*;
use crate::transport::tcp::reading::Reading;
use crate::units::Rate;

#[derive(Clone, Copy)]
enum InFlight {
    Data(Incoming),
    Ack(Answer, u32),
    /// Asks for the window.
    Probe,
}

struct Channel {
    random: RandomStream,
    /// Percent of the packets that are lost, that come twice, that are marked, that come out of turn.
    loses: u64,
    repeats: u64,
    marks: u64,
    reorders: u64,
    in_flight: Vec<InFlight>,
}

impl Channel {
    fn put(&mut self, packet: InFlight) {
        if self.random.below(100) >= self.loses {
            self.in_flight.push(packet);
        }
    }

    /// Any of what is on the way, most often the first.
    fn take(&mut self) -> Option<InFlight> {
        if self.in_flight.is_empty() {
            return None;
        }
        let late = self.random.below(100) < self.reorders;
        let at = if late { self.random.below(self.in_flight.len() as u64) as usize } else { 0 };
        match self.random.below(100) < self.repeats {
            true => Some(self.in_flight[at]),
            false => Some(self.in_flight.remove(at)),
        }
    }
}

/// Both ends of a flow.
struct Pair<'a> {
    config: &'a TcpConfig,
    size: u64,
    now: Time,
    sender: Connection,
    receiver: Receiver,
    reading: Reading,
    /// When the receiver tells of more room.
    update: Option<Time>,
    delivered: u64,
    channel: Channel,
}

impl Pair<'_> {
    fn send_all(&mut self) {
        while let Some(sending) = self.sender.take(self.now, self.config) {
            assert!(sending.first + u64::from(sending.payload) <= self.size && sending.payload > 0);
            assert!(sending.first + u64::from(sending.payload) <= self.sender.receivable);
            let segment = incoming(&sending, sending.sent, self.size);
            let marked = self.channel.random.below(100) < self.channel.marks;
            self.channel.put(InFlight::Data(Incoming { marked, ..segment }));
        }
    }

    fn answer(&mut self) {
        let answer = self.receiver.answer();
        let mut window = whole_window(self.config);
        if let Some(rate) = self.config.application.read_rate {
            window = self.reading.window(answer.expected, rate, self.now, self.config);
            let update = self.reading.update_at(answer.expected, rate, self.config);
            self.update = update.map(|at| at.max(self.now + Time(1)));
        }
        self.channel.put(InFlight::Ack(answer, window));
    }

    fn receive(&mut self, segment: &Incoming) {
        if self.receiver.must_answer_before(segment) {
            self.answer();
        }
        let before = self.receiver.expected();
        if let Some(rate) = self.config.application.read_rate {
            self.reading.resume(before, rate, self.now);
        }
        let reply = self.receiver.take(segment, &self.config.ack, self.now);
        self.delivered += self.receiver.expected() - before;
        if reply == Reply::Now {
            self.answer();
        }
    }

    /// Nothing is on the way: the next timer.
    fn wait(&mut self) {
        let (alarm, update) = (self.sender.alarm.next(), self.update.unwrap_or(Time::MAX));
        let idle = alarm == Time::MAX && update == Time::MAX && !self.receiver.owes();
        if idle && self.sender.due > self.now {
            // Only its pacing holds it back.
            self.now = self.sender.due;
        } else if self.receiver.owes() || alarm == Time::MAX && update == Time::MAX {
            self.answer();
        } else if update <= alarm {
            self.now = self.now.max(update);
            self.answer();
        } else {
            self.now = self.now.max(alarm);
            if !self.sender.persist.running {
                self.sender.time_out(self.now, self.config);
            } else if self.sender.persist_expires(self.now, self.config) {
                self.channel.put(InFlight::Probe);
            }
        }
    }

    fn acknowledge(&mut self, answer: &Answer, window: u32) {
        let ack = Acknowledgement {
            in_hosts: Time::ZERO,
            expected: answer.expected,
            blocks: answer.blocks,
            count: answer.blocks.iter().filter(|block| block.0 < block.1).count(),
            duplicate: answer.duplicate,
            echo: answer.echo,
            window: u64::from(window),
            marked: answer.marked,
        };
        self.sender.acknowledge(&ack, self.now, self.config);
    }
}

/// A flow from one end to the other.
fn complete(seed: u64, size: u64, config: &TcpConfig, channel: Channel) {
    let mut pair = Pair {
        config,
        size,
        now: Time::from_ms(20),
        sender: connection(size, config),
        receiver: Receiver::new(config.ecn),
        reading: Reading::new(config),
        update: None,
        delivered: 0,
        channel,
    };
    for _ in 0..400_000u64 {
        if pair.sender.phase == Phase::Done {
            assert_eq!((pair.receiver.expected(), pair.delivered), (size, size), "seed {seed}");
            assert!(pair.receiver.is_complete() && pair.sender.board.pipe() == 0, "seed {seed}");
            assert_eq!(pair.sender.board.lost(), 0, "seed {seed}");
            return;
        }
        pair.now += Time::from_us(100);
        pair.send_all();
        match pair.channel.take() {
            None => pair.wait(),
            Some(InFlight::Data(segment)) => pair.receive(&segment),
            Some(InFlight::Ack(answer, window)) => pair.acknowledge(&answer, window),
            Some(InFlight::Probe) => pair.answer(),
        }
        let board = &pair.sender.board;
        assert!(board.lost() <= board.outstanding() && board.acknowledged() <= board.next(), "seed {seed}");
        assert!(pair.sender.window.cwnd >= 1, "seed {seed}");
    }
    let Pair { sender, update, .. } = &pair;
    panic!(
        "seed {seed}: {size} bytes do not end: {:?} {:?}, {} receivable, {:?}, {:?}, update {update:?}",
        sender.state, sender.board, sender.receivable, sender.persist, sender.alarm
    );
}

#[test]
fn every_byte_arrives_once_whatever_is_lost_reordered_or_repeated_under_every_controller() {
    let channels = std::env::var("TCP_CHANNELS").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000);
    let kinds = crate::congestion::window::KINDS;
    for seed in 0..channels {
        let mut random = RandomStream::new(seed, "channel");
        let kind = kinds[random.below(kinds.len() as u64) as usize].0;
        let profile = if random.below(2) == 0 { Profile::Rfc } else { Profile::Ns3_35 };
        let mut config = config(kind, profile);
        config.retries = u32::MAX;
        config.ecn = [EcnEcho::Off, EcnEcho::Classic, EcnEcho::Exact][random.below(3) as usize];
        config.recovery.limited_transmit = random.below(2) == 0;
        config.nagle = random.below(2) == 0;
        if random.below(3) == 0 {
            config.recovery.rack = None;
        }
        if random.below(3) == 0 {
            let mss = u64::from(config.mss);
            config.receive_buffer = 2 * mss + random.below(20 * mss);
            config.application.read_rate = Some(Rate::from_mbps(1 + random.below(200)));
        }
        let size = 1 + random.below(60) * random.below(u64::from(config.mss));
        let channel = Channel {
            loses: random.below(40),
            repeats: random.below(20),
            marks: random.below(30),
            reorders: random.below(30),
            random,
            in_flight: Vec::new(),
        };
        complete(seed, size, &config, channel);
    }
}
