//! A sender and a receiver on a channel that loses, reorders and repeats anything.

use super::*;
use crate::units::Bytes;

/// What is on the channel.
#[derive(Clone, Copy)]
enum OnWay {
    Data(Sending),
    Probe,
    Ack { expected: u64, number: Option<u32> },
}

struct Channel {
    random: RandomStream,
    /// Percent of the packets that are lost, and that come twice.
    loses: u64,
    repeats: u64,
    on_way: Vec<OnWay>,
}

impl Channel {
    fn put(&mut self, packet: OnWay) {
        if self.random.below(100) >= self.loses {
            self.on_way.push(packet);
        }
    }

    /// Any of what is on the way.
    fn take(&mut self) -> Option<OnWay> {
        if self.on_way.is_empty() {
            return None;
        }
        let at = self.random.below(self.on_way.len() as u64) as usize;
        match self.random.below(100) < self.repeats {
            true => Some(self.on_way[at]),
            false => Some(self.on_way.swap_remove(at)),
        }
    }
}

/// A flow from one end of the channel to the other; timeouts come when nothing is on the way, and now and then before.
fn complete(size: u64, config: &PfabricConfig, mut channel: Channel) {
    let mut sender = Sender::new(size, config);
    let mut receiver = Receiver::default();
    let mut delivered = 0;
    for _ in 0..10_000_000u64 {
        if sender.is_done() {
            assert_eq!((receiver.end, receiver.expected, delivered), (Some(size), size, size));
            assert_eq!(sender.remaining(), 0);
            return;
        }
        while let Some(sending) = sender.send() {
            assert!(u64::from(sending.payload) <= sender.remaining());
            channel.put(OnWay::Data(sending));
        }
        let early = channel.random.below(50) == 0;
        match channel.take().filter(|_| !early) {
            None if sender.time_out() => channel.put(OnWay::Probe),
            None => {}
            Some(OnWay::Data(sending)) => {
                let flags = if sending.last { flag::LAST } else { 0 };
                let (seq, payload) = (sending.first_byte, sending.payload);
                let before = receiver.expected;
                receiver.take(&Packet { seq, payload, flags, ..Packet::default() }, u64::from(config.mtu));
                delivered += receiver.expected - before;
                channel.put(OnWay::Ack { expected: receiver.expected, number: Some(sending.number) });
            }
            Some(OnWay::Probe) => channel.put(OnWay::Ack { expected: receiver.expected, number: None }),
            Some(OnWay::Ack { expected, number }) => {
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
            on_way: Vec::new(),
        };
        complete(1 + random.below(100) * random.below(u64::from(mtu)), &config, channel);
    }
}
