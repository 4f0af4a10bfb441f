//! What is known about a port: to disciplines before a run, and when their state begins.

use crate::units::{Rate, Time};

/// Facts on a port that a discipline has to judge before a run.
pub struct PortFacts<'a> {
    pub rate: Rate,
    /// Bytes of the largest packet of the run.
    pub packet: u64,
    /// The longest base RTT of the network.
    pub base_rtt: &'a dyn Fn() -> Time,
    pub name: &'a dyn Fn() -> String,
}

/// A time of a discipline that is this many times as long as a base RTT, or as short, is for other networks.
pub const FAR: u64 = 50;

impl PortFacts<'_> {
    /// The warning of a waiting time to aim at that is many times the network's round trip.
    pub fn aims_too_long(&self, target: Time) -> Option<String> {
        self.waits_long(
            "target",
            target,
            "Set target, and the other times of the queue in proportion, to some round trips or less",
        )
    }

    /// The same of a time that packets wait before a discipline does anything. `key`: from which it follows.
    pub fn waits_long(&self, key: &str, waits: Time, advice: &str) -> Option<String> {
        let base_rtt = (self.base_rtt)();
        (base_rtt > Time::ZERO && waits.0 / FAR > base_rtt.0).then(|| {
            format!(
                "switch.queue.{key}: {waits} at {} is for the Internet, and the longest base RTT is {base_rtt}: queues grow to many \
                 times what the links need before anything is done. {advice}",
                (self.name)()
            )
        })
    }
}

/// Where a port is: what disciplines derive their random streams and rates from.
#[derive(Debug, Clone, Copy)]
pub struct PortPlace<'a> {
    pub seed: u64,
    /// Of its node, and its number there.
    pub node: &'a str,
    pub local: u16,
    pub rate: Rate,
    /// A NIC that was full asks its discipline for more in an event of its own, after others of that time
    /// (ns-3.35).
    pub asks_later: bool,
    /// The end of every transmission is an event (compat modes).
    pub departs: bool,
    /// Where what was inserted first goes first (compat modes): the shortest delay of a link by which packets
    /// for this port may come. Else 0.
    pub under_way: Time,
    /// The bytes that a queue under CoDel keeps do not follow from the packets (compat modes).
    pub fixed_minimum: bool,
}

#[cfg(test)]
impl PortPlace<'_> {
    pub const TEST: PortPlace<'static> = PortPlace {
        seed: 1,
        node: "s0",
        local: 0,
        rate: Rate(100_000_000),
        asks_later: false,
        departs: false,
        under_way: Time::ZERO,
        fixed_minimum: false,
    };
}
