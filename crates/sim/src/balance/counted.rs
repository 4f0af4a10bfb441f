//! What several balancers count. One that counts something else declares it in its own file.

use crate::counters::{Counter, CounterGroup, Fold, Metric};

/// What is counted of probes.
pub static PROBES: CounterGroup = CounterGroup {
    counters: &[
        Counter::sum(
            "probes",
            "packets",
            "probes",
            "Probe packets of load balancers such as HULA, with probe_bytes.",
        ),
        Counter::sum(
            "probe_bytes",
            "bytes",
            "bytes of probes",
            "Bytes of the probes of load balancers on all links.",
        ),
        Counter {
            key: "probes_settled_ns",
            unit: "ns",
            title: "time until every switch has a route to every rack",
            text: "From the start until every switch has received a probe of every rack.",
            fold: Fold::MaxOfAll,
        },
    ],
    metrics: &[
        Metric { name: "probes", part: "probes", ..Metric::NONE },
        Metric { name: "probe_bytes", part: "probe_bytes", ..Metric::NONE },
        Metric {
            name: "probe_share",
            title: "probes (share of bytes on wire)",
            axis: "bytes of probes (% of all on the wire)",
            text: "Bytes of the probes of load balancers, over all bytes on the wire.",
            part: "probe_bytes",
            over: &["bytes_on_wire"],
            ..Metric::NONE
        },
        Metric { name: "probes_settled", part: "probes_settled_ns", ..Metric::NONE },
    ],
    ..CounterGroup::NONE
};

/// What balancers that write into packets count.
pub static HEADERS: CounterGroup = CounterGroup {
    counters: &[Counter::sum(
        "balancer_header_bytes",
        "bytes",
        "bytes of balancers' headers",
        "Bytes of load balancers' headers in packets, summed over the links that the packets crossed; where hosts add the \
         header, over the links of the path that each packet was sent on, however far it came.",
    )],
    ..CounterGroup::NONE
};

/// What tables of flowlets count.
pub static FLOWLETS: CounterGroup = CounterGroup {
    counters: &[
        Counter::sum("flowlets", "flowlets", "flowlets", "Flowlets begun in all switches."),
        Counter::sum(
            "flowlets_moved",
            "flowlets",
            "flowlets that moved",
            "Flowlets that left by another port than the one before.",
        ),
    ],
    metrics: &[
        Metric { name: "flowlets", part: "flowlets", ..Metric::NONE },
        Metric { name: "flowlets_moved", part: "flowlets_moved", ..Metric::NONE },
        Metric {
            name: "flowlets_moved_share",
            title: "flowlets that moved (share)",
            axis: "flowlets that left the port of the one before (%)",
            text: "Flowlets that left by another port than the one before, over all flowlets.",
            part: "flowlets_moved",
            over: &["flowlets"],
            ..Metric::NONE
        },
    ],
    ..CounterGroup::NONE
};
