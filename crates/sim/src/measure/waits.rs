//! What is counted of packets that wait for the processors of their hosts.

use crate::counters::{Counter, CounterGroup, Fold, Metric};

pub static WAITS: CounterGroup = CounterGroup {
    counters: &[
        Counter::sum(
            "host_packets",
            "packets",
            "packets processed by hosts",
            "Packets that processors of hosts took in ([host] packet_time), acknowledgements and signals included.",
        ),
        Counter::sum(
            "host_wait_ns",
            "ns",
            "wait for processors of hosts",
            "From the arrival of these packets until their transports saw them, summed over all packets.",
        ),
        Counter {
            key: "max_host_wait_ns",
            unit: "ns",
            title: "maximum wait for a host's processor",
            text: "The longest time from the arrival of a packet until its transport saw it.",
            fold: Fold::Max,
        },
        Counter {
            key: "max_host_packets",
            unit: "packets",
            title: "maximum of packets in a host",
            text: "The maximum number of packets that a host's processor had at a time.",
            fold: Fold::Max,
        },
    ],
    metrics: &[
        Metric {
            name: "mean_host_wait",
            title: "mean wait for a host's processor (ns)",
            text: "Mean time from the arrival of a packet at a host until its transport saw it, in ns.",
            part: "host_wait_ns",
            over: &["host_packets"],
            ..Metric::NONE
        },
        Metric { name: "max_host_wait", part: "max_host_wait_ns", ..Metric::NONE },
        Metric { name: "max_host_packets", part: "max_host_packets", ..Metric::NONE },
    ],
    ..CounterGroup::NONE
};
