//! Compat: the rules by which a run repeats another simulator, each one named.
//!
//! `[compat] like` chooses a [`Rules`]; the code tests its fields and never asks which simulator is repeated.
//! `weftline explain hpcc-ns3` and docs/compat.md list the rules from here.
//!
//! Source: <https://github.com/alibaba-edu/High-Precision-Congestion-Control>;
//! <https://github.com/inet-tub/ns3-datacenter>; ns-3.35 (behaviour, as observed and read).
//! Validated by: tests/reference.rs, tests/rivals.rs, tests/cebinae_fifo.rs.

/// What `[compat] like` may name.
pub const MODES: &[(&str, &str)] = &[
    ("none", "picoseconds, order by entity, salted ECMP"),
    ("hpcc-ns3", "time, order, hashing and settings of the HPCC authors' simulator, to the nanosecond"),
    (
        "powertcp-ns3",
        "the HPCC authors' simulator as the PowerTCP authors changed it: whole nanoseconds, their released laws",
    ),
    (
        "conweave-ns3",
        "the HPCC authors' simulator as the ConWeave authors changed it: acknowledgements first, and not balanced",
    ),
    (
        "ns3-3.35",
        "time and order of ns-3.35: transmission times truncated to nanoseconds, ties by insertion; one thread only",
    ),
    ("htsim", "ties in the order of csg-htsim, its NIC and its laws of controllers; one thread only"),
];

/// In which order a node lists its equal-cost next hops; it decides which flow a hash sends where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHopOrder {
    ByPort,
    /// By descending id of the next node, parallel links by port.
    DescendingNodeId,
}

/// A rule that differs from the default mode, in words.
pub struct Difference {
    pub rule: &'static str,
    /// What happens under the rule.
    pub there: &'static str,
    /// What weftline does otherwise.
    pub here: &'static str,
}

/// Each rule: what happens there; its values under `none`, `hpcc-ns3` and `ns3-3.35`; what weftline does
/// otherwise.
macro_rules! rules {
    ($($(#[doc = $there:literal])+ $rule:ident: $kind:ty = [$none:expr, $hpcc:expr, $ns3:expr], $here:literal;)+) => {
        /// The rules of a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Rules {
            /// The mode that they belong to, for messages.
            pub like: &'static str,
            $($(#[doc = $there])+ #[doc = ""] #[doc = concat!("By default: ", $here, ".")] pub $rule: $kind,)+
        }

        impl Rules {
            /// weftline's own.
            pub const fn none() -> Rules {
                Rules { like: "none", $($rule: $none),+ }
            }

            /// Those of the HPCC authors' simulator.
            pub const fn hpcc_ns3() -> Rules {
                Rules { like: "hpcc-ns3", $($rule: $hpcc),+ }
            }

            /// Those of the PowerTCP authors' simulator, which began as that of the HPCC authors.
            pub const fn powertcp_ns3() -> Rules {
                Rules {
                    like: "powertcp-ns3",
                    fixed_point_times: false,
                    fixed_point_pacing: false,
                    whole_ns_times: true,
                    whole_ns_pacing: true,
                    released_laws: true,
                    int_counts_arrivals: true,
                    ..Rules::hpcc_ns3()
                }
            }

            /// Those of the ConWeave authors' simulator, which began as that of the HPCC authors.
            pub const fn balancing_ns3() -> Rules {
                Rules {
                    like: "conweave-ns3",
                    counted_ports: true,
                    acks_first: true,
                    only_data_balanced: true,
                    released_balancers: true,
                    ..Rules::hpcc_ns3()
                }
            }

            /// Time and order of ns-3.35.
            pub const fn ns3_3_35() -> Rules {
                Rules { like: "ns3-3.35", $($rule: $ns3),+ }
            }

            /// The rules that differ from weftline's own.
            pub fn differences(&self) -> impl Iterator<Item = Difference> + use<> {
                let none = Rules::none();
                let all = [$((
                    self.$rule != none.$rule,
                    Difference { rule: stringify!($rule), there: concat!($($there),+).trim_start(), here: $here },
                )),+];
                all.into_iter().filter(|(differs, _)| *differs).map(|(_, difference)| difference)
            }
        }
    };
}

rules! {
    /// A transmission time is bytes * 8 / rate as a double in seconds, turned into 64.64 fixed point and
    /// **truncated** to nanoseconds: 1048 B take 83 ns at 100 Gb/s (not 83.84) and 20 ns at 400 Gb/s (not
    /// 20.96), so the fast links run 4.8 % fast
    fixed_point_times: bool = [false, true, false], "picoseconds, rounded up";
    /// A pacing gap is truncated in the same way
    fixed_point_pacing: bool = [false, true, false], "picoseconds, rounded up";
    /// A transmission time is truncated to whole nanoseconds: 1494 B at 10 Gb/s take 1195 ns
    whole_ns_times: bool = [false, false, true], "picoseconds, rounded up";
    /// A pacing gap is truncated to whole nanoseconds
    whole_ns_pacing: bool = [false, false, false], "picoseconds, rounded up";
    /// Controllers whose released code differs from their paper follow the code (`law = "released"`)
    released_laws: bool = [false, false, false], "they follow the paper";
    /// For a controller that asks for INT in its finest units, INT counts the bytes that came to a port, this
    /// packet included, not those that left it
    int_counts_arrivals: bool = [false, false, false], "it counts the bytes that left before this packet";
    /// The units of INT grow with the rate of NICs, whatever the packets' size: 2048 B at 400 Gb/s, more than
    /// a packet
    coarse_int: bool = [false, true, false], "no unit is larger than half of a full packet";
    /// A queue beyond the 17 bits of INT is written modulo 2^17 units
    wraps_queue: bool = [false, true, false], "it is written as the longest one, 2^17 - 1 units";
    /// Controllers compare INT with what they kept of a packet before, however long ago that was: where time
    /// or bytes have wrapped, what passed since counts as one round of the counter or more too little
    undated_int: bool = [false, true, false], "INT from more than half a round of these counters ago is discarded";
    /// HPCC leaves out the time in which no hop's counter has moved by a unit, so that the load of a lone
    /// flow of packets below a unit is taken for that of a full packet each
    skips_idle: bool = [false, true, false], "it counts, with a load of 0";
    /// The time per hop of the base RTT is truncated to a nanosecond: 4160 ns on the 100 Gb/s star, 8200 ns
    /// in a pod, 12 240 ns on the 320-host FatTree
    whole_ns_base_rtt: bool = [false, true, false], "picoseconds, rounded up";
    /// Gaps between Poisson arrivals are truncated to whole nanoseconds, as in the authors' generator
    whole_ns_arrivals: bool = [false, true, false], "picoseconds";
    /// A NIC that would wake up between two nanoseconds wakes up at the second one, after all other events, in
    /// order of the ports
    whole_ns_wake_ups: bool = [false, false, true], "it wakes up at that picosecond";
    /// Simultaneous events happen in the order in which that simulator would have inserted them; the run
    /// takes one thread
    insertion_order: bool = [false, true, true], "by node and kind of event, on any number of threads";
    /// Every transmission has an event at its end, the sender's before the arrival at its peer
    departure_events: bool = [false, true, true], "only while something waits to be sent";
    /// A packet is handed to its link at the end of its transmission, and a link inserts the arrival of a packet
    /// when it has delivered the one before
    arrivals_by_wire: bool = [false, false, false], "arrivals come before departures";
    /// A NIC has a queue for each flow number, of data and acknowledgements together, and serves them in turn; a sender
    /// may have three packets in it, which leave even if its window has shrunk meanwhile
    queue_per_flow: bool = [false, false, false], "acknowledgements first, then senders in turn, which decide when the packet leaves";
    /// A packet that a switch's buffer refuses is dropped, whatever waits at its port
    refused_are_dropped: bool = [false, true, true], "without PFC, a queue that drops the least urgent packets drops these for it";
    /// A header for which a port has no room is dropped (`switch.queue.return_to_sender = false`)
    dropped_headers: bool = [false, false, false], "it goes back to its source once";
    /// The label of a flow's packets and acknowledgements is the flow's number (for `balancer = "label"`)
    flow_number_labels: bool = [false, false, false], "it is a hash of addresses and number, another one for acknowledgements";
    /// A flow starts two zero-delay steps after its start time, so after everything that was queued for that
    /// nanosecond
    start_steps: u8 = [0, 2, 0], "at its start time";
    /// Flows are announced after everything else that happens at their time
    late_announcements: bool = [false, true, false], "before the window in which they start";
    /// A NIC whose buffer was full requests packets from its queue discipline in a separate event, after all
    /// other events of that nanosecond
    nic_asks_later: bool = [false, false, true], "it requests them at once";
    /// `least = "auto"` of CoDel and FQ-CoDel is 1500 B, and fewer bytes must remain
    early_drops_keep_1500: bool = [false, true, true], "it is the largest packet that has come to the port, which may remain, too";
    /// Every NIC of a host has that simulator's queue in front of it (`host.queue`), where all transports fill one
    queues_in_hosts: bool = [false, false, true], "a packet is made when the NIC is free";
    /// ECMP is MurmurHash3 (x86, 32 bits) over source address, destination address and the two UDP ports,
    /// with the switch's node id as seed; acknowledgements are hashed by their own header.
    /// Another balancer has the hashes of any run
    murmur_ecmp: bool = [false, true, false], "a 64-bit mix, salted (with the seed, too); an acknowledgement has its flow's hash, reversed";
    /// The UDP ports that ECMP hashes count flows: the n-th flow of a host has 10000 + n, the n-th one to a
    /// host 100 + n, from 0
    counted_ports: bool = [false, false, false], "the source port counts the flows between two hosts, and the other one is 100";
    /// Acknowledgements leave every switch before all data
    acks_first: bool = [false, false, false], "in the class of their data, unless `transport.acks_first = true`";
    /// LetFlow and CONGA balance data only; acknowledgements and control packets are hashed
    only_data_balanced: bool = [false, false, false], "all packets";
    /// CONGA's load of a link counts packets as they come to its port; feedback is about a random uplink of
    /// those known; a flowlet takes a random one of the best uplinks. ConWeave's `reply_extra` is 4 us on all
    /// links
    released_balancers: bool = [false, false, false], "as they leave; about those that changed, in turn; its last one, if that is among them; more on slower links and for larger packets";
    /// Equal next hops are listed by **descending node id** of the neighbour
    next_hops: NextHopOrder = [NextHopOrder::ByPort, NextHopOrder::DescendingNodeId, NextHopOrder::ByPort], "by port";
    /// There is only RDMA, with controllers of rates
    only_rdma: bool = [false, true, false], "every transport and controller";
    /// Every message of a collective has a queue pair of its own
    pair_per_message: bool = [false, true, false], "they share one for each neighbour";
    /// There is no retransmission timeout (`rto = "none"`)
    no_timeout: bool = [false, true, false], "`rto = \"auto\"`";
    /// Under selective repeat any packet that arrives restarts the retransmission timeout, and all in flight
    /// counts as lost when it expires
    any_arrival_restarts: bool = [false, true, true], "only an advance of the cumulative acknowledgement restarts it; while later packets arrive, only what they overtook is lost";
    /// A duplicate is dropped without an answer, so a lost acknowledgement stays lost
    unanswered_duplicates: bool = [false, true, false], "it is acknowledged again";
    /// The NIC's wake-up also considers flows that their window holds back
    held_back_wake_ups: bool = [false, true, false], "it is for the flows that may send";
    /// A wake-up of the NIC that is set stays, unless a changed rate brings it forward
    kept_wake_ups: bool = [false, true, false], "an earlier one replaces it";
    /// The NIC does not reconsider its wake-up when a timer changes a rate
    unseen_timers: bool = [false, true, false], "it does";
    /// DCQCN's timers never stop once started
    eager_timers: bool = [false, true, false], "they stop while they have nothing to do; the rates are the same";
    /// Every flow's window is the largest bandwidth-delay product of the network
    widest_window: bool = [false, true, false], "line rate of the flow's NIC times base RTT";
    /// Under DCQCN without window and TIMELY, acknowledgements leave a NIC whose class is paused
    /// (`ACK_HIGH_PRIO`), which can overrun headroom
    acks_ignore_pause: bool = [false, true, false], "they respect the pause";
    /// Headroom is the authors' formula (`switch.pfc.headroom_extra = false`)
    no_headroom_extra: bool = [false, true, false], "three packets and a pause frame in addition";
    /// INT carries no path id (`telemetry.path_id = false`)
    no_path_id: bool = [false, true, false], "it carries 12 bits of it";
    /// The load that PINT carries takes two bytes, regardless of its code
    two_byte_load: bool = [false, true, false], "only the bytes that its code needs";
    /// Slowdowns are against the authors' ideal time (`measure.ideal = "hpcc"`)
    authors_ideal: bool = [false, true, false], "against the flow alone in the network (`\"alone\"`)";
}

impl Rules {
    /// The order of events of csg-htsim, its NIC, and its arithmetic of controllers.
    pub const fn htsim() -> Rules {
        Rules {
            like: "htsim",
            insertion_order: true,
            departure_events: true,
            arrivals_by_wire: true,
            queue_per_flow: true,
            dropped_headers: true,
            refused_are_dropped: true,
            flow_number_labels: true,
            any_arrival_restarts: true,
            early_drops_keep_1500: true,
            released_laws: true,
            ..Rules::none()
        }
    }

    /// The rules that a name of [`MODES`] stands for.
    pub fn of(like: &str) -> Rules {
        let all = [
            Rules::hpcc_ns3(),
            Rules::powertcp_ns3(),
            Rules::balancing_ns3(),
            Rules::ns3_3_35(),
            Rules::htsim(),
        ];
        all.into_iter().find(|rules| rules.like == like).unwrap_or_else(Rules::none)
    }
}
