//! The keys of `transport.kind = "pfabric"`: published values on the published network, scaled to others.
//!
//! Windows and queues are bandwidth-delay products, and grow with the largest of all pairs of hosts; the timeout
//! stands for the time that full queues take, and grows with the base RTT alone. Windows are counted in packets,
//! so packets of another size than the published one need another number of them for the same bytes.
//!
//! Source: Alizadeh et al., "pFabric", SIGCOMM 2013; Gao et al., "pHost", CoNEXT 2015, and its authors'
//! simulator: 10 Gb/s, a window of 12 packets that grows to 15, queues of 36 KiB, a timeout of 45 us.

use super::Pfabric;
use crate::balance;
use crate::doc::{SchemeDoc, Series};
use crate::parameters::{Parameters, Value};
use crate::queue::{QueueConfig, QueueDefaults};
use crate::telemetry::TelemetryConfig;
use crate::transport::TransportConfig;
use crate::transport::parameters::{
    COUNTED, Facts, Framing, HostPlan, ReadContext, Resends, RunContext, TransportParameters,
};
use crate::transport::switches::SwitchDefaults;
use crate::transport::wire_format::WireFormat;
use crate::units::{Bytes, Rate, Time};

/// The queue discipline that it was published with.
const QUEUE: &str = "pfabric";

const PRIORITIES: &[(&str, &str)] = &[
    ("remaining", "remaining bytes of the flow when the packet is sent"),
    ("deadline", "the flow's deadline in microseconds; flows without a deadline come last"),
];

/// The published network: leaf-spine with 10 and 40 Gb/s and 200 ns a link, packets of 1460 B.
const PUBLISHED_RATE: Rate = Rate::from_gbps(10);
const PUBLISHED_BASE_RTT: Time = Time::from_ns(4520);
/// Their product in bytes.
const PUBLISHED_PRODUCT: f64 = 5650.0;
/// Bytes of a full packet, which windows are counted in.
const PUBLISHED_PACKET: u64 = 1500;
const PUBLISHED_WINDOW: u64 = 12;
const PUBLISHED_MAX_WINDOW: u64 = 15;
const PUBLISHED_LIMIT: u64 = 36 << 10;
const PUBLISHED_RTO: Time = Time::from_us(45);

const MAX_PACKETS: i64 = 1 << 20;
/// Shorter ones end before any answer can come, and everything is sent again for ever.
const MIN_RTO: Time = Time::from_us(1);
const MAX_RTO: Time = Time::from_ms(100_000);

#[derive(Debug, Clone, PartialEq)]
pub struct PfabricConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    pub header: u32,
    /// Bytes of an acknowledgement.
    pub ack_header: u32,
    /// Traffic class of data and acknowledgements, 1 to 7.
    pub class: u8,
    /// Packets that a flow may have in flight when it starts, and the maximum later.
    pub initial_window: u32,
    pub max_window: u32,
    /// Fixed retransmission timeout.
    pub rto: Time,
    /// Timeouts in a row after which a flow probes; 0: never.
    pub probe_after: u32,
    /// Bytes that may wait in a host's NIC.
    pub queue_limit: Bytes,
    /// Every packet with a choice of paths has a label of its own.
    pub spray: bool,
    pub priority: PfabricPriority,
}

/// What pFabric's queues order packets by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfabricPriority {
    /// Bytes that the flow had left when the packet was sent.
    Remaining,
    /// The flow's deadline in microseconds.
    Deadline,
}

impl TransportParameters for PfabricConfig {
    const DOC: SchemeDoc = SchemeDoc {
        name: "pfabric",
        title: "line rate from the start; queues serve first and drop last the flows with the fewest remaining \
                bytes (SIGCOMM 2013)",
        source: "Alizadeh et al., \"pFabric: Minimal Near-Optimal Datacenter Transport\", SIGCOMM 2013, as in the simulator of \
                 the pHost authors",
        validation: "Completion times and drops compared with those of the pHost authors' simulator (tests/pfabric.rs); page: \
                     docs/schemes/pfabric.md.",
        series: &[
            Series::new(
                "ssthresh_packets",
                "packets",
                "Slow-start threshold; infinite until something sets it.",
            ),
            Series::new(
                "remaining_bytes",
                "bytes",
                "Bytes that the receiver is not known to have, the priority of the flow's packets.",
            ),
        ],
        ..SchemeDoc::NONE
    };
    type State = Box<Pfabric>;

    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<PfabricConfig> {
        let mtu = p.size("mtu", (1460, 64, 9000), "payload of a full packet (published: 1460 B)");
        let header = p.size("header", (40, 0, 1000), "header of a data packet (published: 40 B)");
        let ack_header = p.size("ack_header", (40, 1, 1000), "bytes of an acknowledgement (published: 40 B)");
        let (initial_window, max_window) = windows(p, cx, (mtu, mtu + header));
        let rto = timeout(p, cx, mtu);
        let help = "timeouts in a row after which a flow sends probes of one byte until an acknowledgement comes (pFabric paper: \
                    5); 0: never, as in the pHost authors' simulator";
        let probe_after = p.integer("probe_after", 0, (0, 1000), help) as u32;
        let queue_limit = queue_limit(p, cx, (mtu, mtu + header));
        let help =
            "traffic class of data and acknowledgements, for pauses; the queues serve by remaining bytes";
        let class = p.integer("class", 1, (1, 7), help) as u8;
        let spray = p.flag("spray", true, COUNTED);
        let priority =
            match p.choice("priority", "remaining", PRIORITIES, "what determines the urgency of a packet") {
                "deadline" => PfabricPriority::Deadline,
                _ => PfabricPriority::Remaining,
            };
        Some(PfabricConfig {
            mtu,
            header,
            ack_header,
            class,
            initial_window,
            max_window,
            rto,
            probe_after,
            queue_limit,
            spray,
            priority,
        })
    }

    fn of(transport: &TransportConfig) -> Option<&PfabricConfig> {
        if let TransportConfig::Pfabric(own) = transport { Some(own) } else { None }
    }

    fn classes(&self) -> u8 {
        1 << self.class
    }

    fn framing(&self, _telemetry: &TelemetryConfig) -> Framing {
        Framing::of(self.mtu, self.header, self.ack_header)
    }

    fn data_header(&mut self) -> &mut u32 {
        &mut self.header
    }

    fn base_rtt(&self, run: &RunContext) -> Time {
        run.base_rtt(self.mtu).0
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            labels_packets: self.spray,
            spreads_flows: self.spray,
            longest_timeout: self.rto,
            resends: Some(Resends { after: self.rto, doubles: false }),
            ns_per_hop: 70.0,
            ..Facts::default()
        }
    }

    fn switch_defaults(&self) -> SwitchDefaults {
        SwitchDefaults {
            queue: QUEUE,
            limit: Some(self.queue_limit),
            balancer: balance::BY_LABEL,
            ..SwitchDefaults::LOSSY
        }
    }

    /// One that drops: senders count on it.
    fn nic_queue(&self) -> Option<QueueConfig> {
        QueueConfig::of(QUEUE, QueueDefaults { limit: Some(self.queue_limit), ..QueueDefaults::default() })
    }

    /// Over queues that know nothing of what flows have left it is another scheme.
    fn warnings(&self, run: &RunContext) -> Vec<String> {
        let other = !run.switch.queues().all(|queue| queue.facts().serves_by_remaining);
        let other = other.then(|| {
            format!(
                "switch.queue: switches do not serve pFabric's packets by remaining bytes: set kind = \"{QUEUE}\" \
                 unless this is intended"
            )
        });
        let window = u64::from(self.initial_window) * u64::from(self.mtu + self.header);
        let few = run.window_for_few(("initial_window", self.spray), (self.mtu, window, 0), |median| {
            let products = PUBLISHED_WINDOW as f64 * PUBLISHED_PACKET as f64 / PUBLISHED_PRODUCT;
            let packets = (median as f64 * products / f64::from(self.mtu + self.header)).ceil().max(1.0);
            format!("set initial_window to about {packets}, and max_window and queue_limit with it")
        });
        other.into_iter().chain(few).collect()
    }

    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        vec![
            ("base_rtt_ns", Some(self.base_rtt(run).as_ns().into())),
            ("data_packet_bytes", Some((self.mtu + self.header).into())),
            ("ack_bytes", Some(self.ack_header.into())),
            ("window_packets", Some(self.initial_window.into())),
            ("queue_limit_bytes", Some(self.queue_limit.0.into())),
            ("rto_ns", Some(self.rto.as_ns().into())),
        ]
    }

    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Priorities
    }

    fn start(&self, host: &HostPlan) -> Box<Pfabric> {
        Box::new(Pfabric::new(host.seed, host.host))
    }
}

/// A published bandwidth-delay product in bytes as it is here, in units of such packets, to the nearest
/// whole, at least 1.
fn product((p, cx): (&Parameters, &ReadContext), published_bytes: u64, unit: u64, mtu: u32) -> u64 {
    // The product is in whole bytes; where hosts and paths have one rate, it is known to the bit.
    let below = (u128::from(cx.product_of((p, "spray"), mtu)) + 1) * 8_000_000_000_000;
    let here = (u128::from(cx.host_rate.0) * u128::from((cx.base_rtt)(mtu).0)).min(below);
    let there = u128::from(PUBLISHED_RATE.0) * u128::from(PUBLISHED_BASE_RTT.0);
    rounded(u128::from(published_bytes) * here, there * u128::from(unit)).max(1)
}

fn rounded(numerator: u128, denominator: u128) -> u64 {
    u64::try_from((numerator + denominator / 2) / denominator).unwrap_or(u64::MAX)
}

/// The window at the start, and at the most, in packets.
fn windows(p: &mut Parameters, cx: &ReadContext, (mtu, packet): (u32, u32)) -> (u32, u32) {
    // Larger packets in the same number would overflow the NIC's queue, which is limited in bytes; smaller
    // ones would not fill the link.
    let scaled = |p: &Parameters, published: u64| {
        let packets = product((p, cx), published * PUBLISHED_PACKET, packet.into(), mtu);
        packets.min(MAX_PACKETS as u64) as i64
    };
    let help = "initial window in packets (published: 12 of 1500 B at 10 Gb/s, a bandwidth-delay product; the \
                same bytes in packets of another size)";
    let default = scaled(p, PUBLISHED_WINDOW);
    let initial = p.integer("initial_window", default, (0, MAX_PACKETS), help);
    if initial == 0 {
        p.complain("initial_window", "a window of 0 would never send: expected at least 1".into());
    }
    let help = "maximum window in packets (published: 15, or 3 more than the first window; the same bytes in \
                packets of another size)";
    let default = scaled(p, PUBLISHED_MAX_WINDOW).max(initial);
    let max = p.integer("max_window", default, (0, MAX_PACKETS), help);
    if max < initial {
        let message = format!("{max} is less than initial_window, which is {initial}");
        p.complain("max_window", message);
    }
    (initial as u32, max as u32)
}

fn timeout(p: &mut Parameters, cx: &ReadContext, mtu: u32) -> Time {
    let base_rtt = (cx.base_rtt)(mtu);
    let here = u128::from(base_rtt.0);
    let scaled = rounded(u128::from(PUBLISHED_RTO.0) * here, u128::from(PUBLISHED_BASE_RTT.0));
    let default = Time(scaled).clamp(MIN_RTO, MAX_RTO);
    let help =
        "fixed retransmission timeout, not backed off (published: 45 us; scaled with the longest base RTT)";
    let rto = p.time("rto", default, help);
    if !(MIN_RTO..=MAX_RTO).contains(&rto) {
        p.complain("rto", format!("expected a time from {MIN_RTO} to {MAX_RTO}, found {rto}"));
    } else if rto <= base_rtt {
        let message = format!(
            "{rto} expires before an answer can arrive: the longest base RTT is {base_rtt} (published: ten times \
             the base RTT)"
        );
        p.complain("rto", message);
    }
    rto
}

fn queue_limit(p: &mut Parameters, cx: &ReadContext, (mtu, packet): (u32, u32)) -> Bytes {
    let min = 2 * u64::from(packet);
    let max = u64::from(u32::MAX);
    let default = product((p, cx), PUBLISHED_LIMIT, 1, mtu).clamp(min, max);
    let help = "bytes that may wait in a host's NIC, and at switch ports whose queue has no limit set (published: \
                36KiB at 10 Gb/s, two bandwidth-delay products)";
    let limit = p.bytes("queue_limit", Bytes(default), help);
    if !(u64::from(packet)..=max).contains(&limit.0) {
        let message = format!(
            "expected room for a packet, {}, and less than 4GiB, found {limit}",
            Bytes(packet.into())
        );
        p.complain("queue_limit", message);
    }
    limit
}
