//! A sender and a receiver on a channel that loses, reorders and repeats anything.

use super::*;
use crate::units::Bytes;

/// What is on the channel.
#[derive(Clone, Copy)]
enum InFlight {
    Data(Sending),
    Probe,
    Ack { expected: u64, number: Option<u32> },
}

struct Channel {
    random: RandomStream,
    /// Percent of the packets that are lost, and that come twice.
    loses: u64,
    repeats: u64,
    in_flight: Vec<InFlight>,
}

impl Channel {
    fn put(&mut self, packet: InFlight) {
        if self.random.below(100) >= self.loses {
            self.in_flight.push(packet);
        }
    }

    /// Any of what is on the way.
    fn take(&mut self) -> Option<InFlight> {
        if self.in_flight.is_empty() {
            return None;
        }
        let at = self.random.below(self.in_flight.len() as u64) as usize;
        match self.random.below(100) < self.repeats {
            true => Some(self.in_flight[at]),
            false => Some(self.in_flight.swap_remove(at)),
        }
    }
}

/// A flow from one end of the channel to the other; timeouts come when nothing is on the way, and now and then before.
fn complete(size: u64, config: &PfabricConfig, mut channel: Channel) {
    let mut sender = Sender::new(size, config);
    let mut receiver = Receiver::new(&Packet::default());
    let mut delivered = 0;
    for _ in 0..10_000_000u64 {
        if sender.is_done() {
            assert_eq!((receiver.end, receiver.expected, delivered), (Some(size), size, size));
            assert_eq!(sender.remaining(), 0);
            return;
        }
        while let Some(sending) = sender.send(sender.window_end()) {
            assert!(u64::from(sending.payload) <= sender.remaining());
            channel.put(InFlight::Data(sending));
        }
        let early = channel.random.below(50) == 0;
        match channel.take().filter(|_| !early) {
            None if sender.time_out() => channel.put(InFlight::Probe),
            None => {}
            Some(InFlight::Data(sending)) => {
                let flags = if sending.last { flag::LAST } else { 0 };
                let (seq, payload) = (sending.first_byte, sending.payload);
                let before = receiver.expected;
                receiver.take(&Packet { seq, payload, flags, ..Packet::default() }, u64::from(config.mtu));
                delivered += receiver.expected - before;
                channel.put(InFlight::Ack { expected: receiver.expected, number: Some(sending.number) });
            }
            Some(InFlight::Probe) => channel.put(InFlight::Ack { expected: receiver.expected, number: None }),
            Some(InFlight::Ack { expected, number }) => {
                sender.acknowledge(expected, number);
            }
        }
    }
    panic!("a flow of {size} bytes does not end: {sender:?}");
}

#[test]
fn every_flow_ends_whatever_is_lost_reordered_or_repeated() {
    let mut random = RandomStream::new(7, "channels");
    for seed in 0..20_000 {
        let mtu = [64, 1000, 1460][random.below(3) as usize];
        let initial_window = 1 + random.below(20) as u32;
        let config = PfabricConfig {
            mtu,
            header: 40,
            ack_header: 40,
            class: 1,
            initial_window,
            max_window: initial_window + random.below(10) as u32,
            rto: Time::from_us(45),
            probe_after: random.below(4) as u32,
            queue_limit: Bytes(36 << 10),
            spray: true,
            priority: PfabricPriority::Remaining,
        };
        let channel = Channel {
            random: RandomStream::new(seed, "channel"),
            loses: random.below(60),
            repeats: random.below(40),
            in_flight: Vec::new(),
        };
        complete(1 + random.below(100) * random.below(u64::from(mtu)), &config, channel);
    }
}
