//! The keys of `transport.kind = "ndp"`: published values, with a first window that follows from the network.
//!
//! Source: Handley et al., "NDP", SIGCOMM 2017 (packets of 9 000 B, ports of eight packets, a first window of
//! 30 at 10 Gb/s); its authors' simulator (csg-htsim): headers of 64 B, pulls at 0.99 of the link.

use super::Ndp;
use crate::balance;
use crate::doc::{SchemeDoc, Series};
use crate::packet::Packet;
use crate::parameters::{Parameters, Value};
use crate::queue::QueueConfig;
use crate::telemetry::TelemetryConfig;
use crate::topology::NodeKind;
use crate::transport::TransportConfig;
use crate::transport::parameters::{
    Answers, Asks, Facts, Framing, HostPlan, ReadContext, Resends, RunContext, TransportParameters,
};
use crate::transport::silence::MAX_DOUBLINGS;
use crate::transport::switches::SwitchDefaults;
use crate::transport::wire_format::WireFormat;
use crate::units::{Bytes, Time};
use std::ops::Range;

/// The queue discipline that it was published with.
const QUEUE: &str = "priority";
/// Packets of data that wait at a port.
const PORT_PACKETS: u64 = 8;
/// Of the simulator's sender.
const LEAST_FIRST_WINDOW: u32 = 15;
const MAX_PACKETS: i64 = 1 << 20;
const MIN_RTO: Time = Time::from_us(1);
const MAX_RTO: Time = Time::from_ms(100_000);
/// Paper, §3.2.
const PUBLISHED_RTO: Time = Time::from_us(200);

#[derive(Debug, Clone, PartialEq)]
pub struct NdpConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    pub header: u32,
    /// Bytes of an acknowledgement or a pull.
    pub control: u32,
    /// Traffic class of control packets; data are in the next.
    pub class: u8,
    /// Packets that a flow sends before it receives anything.
    pub first_window: u32,
    /// Share of the receiver's link that is pulled.
    pub pull_share: f64,
    /// A packet that nothing answered within this time is sent again.
    pub rto: Time,
    /// Every packet with a choice of paths has a label of its own.
    pub spray: bool,
}

impl NdpConfig {
    /// Queues do not treat headers as it relies on.
    fn headers_go_astray(&self, run: &RunContext) -> Option<String> {
        let classes = || run.switch.queues().map(|queue: &QueueConfig| queue.facts().trims);
        if classes().any(|class| class.is_none()) {
            return Some(format!(
                "switch.queue: not every port trims, so that NDP's packets are lost there, and repeated after {}: set kind = \
                 \"{QUEUE}\" and trim = \"coin\" unless this is intended",
                self.rto
            ));
        }
        let other = classes().flatten().find(|class| *class != self.class)?;
        let what = if other > self.class {
            "data wait with the headers and are dropped instead of trimmed"
        } else {
            "acknowledgements and pulls wait with the data and are dropped with them"
        };
        Some(format!(
            "switch.queue.trim_class: ports take class {other} and those before it for headers, and NDP's headers are in class {} \
             (transport.class): {what}. Set both to the same class",
            self.class
        ))
    }

    /// Headers of a flow at the rate of its host fill the slowest link between switches, and no data pass there. A
    /// receiver's own link is not filled: pulls are paced by it.
    fn headers_fill_a_link(&self, run: &RunContext) -> Option<String> {
        let header =
            run.switch.queues().filter_map(|queue: &QueueConfig| queue.facts().headers_first).max()?;
        let topology = run.topology;
        let is_switch = |node: u32| topology.nodes[node as usize].kind == NodeKind::Switch;
        let inner = topology.links.iter().filter(|link| is_switch(link.a) && is_switch(link.b));
        let (fastest, slowest) = (topology.host_rate(), inner.map(|link| link.rate).min()?);
        let headers = fastest.0 as f64 * f64::from(header) / f64::from(self.mtu + self.header);
        (headers >= slowest.0 as f64).then(|| {
            format!(
                "switch.queue.headers_per_data: headers of packets that a host sends at {fastest} fill a link of {slowest}, over \
                 which no data pass then, so that flows of more than the first window never end: set headers_per_data = 10, as \
                 NDP's paper has it"
            )
        })
    }
}

impl TransportParameters for NdpConfig {
    const DOC: SchemeDoc = SchemeDoc {
        name: "ndp",
        title: "first window at line rate, packets trimmed to headers, pulls paced by the receiver (SIGCOMM 2017)",
        source: "Handley et al., \"Re-architecting datacenter networks and stacks for low latency and high performance\", \
                 SIGCOMM 2017, and its authors' simulator (csg-htsim)",
        validation: "Completion times and trims of its authors' simulator (tests/ndp.rs); page: docs/schemes/ndp.md.",
        series: &[
            Series::new("packets_pulled", "packets", "Packets that pulls have released."),
            Series::new("packets_to_repeat", "packets", "Packets that have to be sent again."),
        ],
        ..SchemeDoc::NONE
    };
    type State = Box<Ndp>;

    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<NdpConfig> {
        let mtu = p.size("mtu", (1436, 64, 9000), "payload of a full packet (published: 9000 B)");
        let header = p.size("header", (64, 20, 1000), "header of a data packet (published: 64 B)");
        let control =
            p.size("control", (64, 20, 1000), "bytes of an acknowledgement or a pull (published: 64 B)");
        let base_rtt = (cx.base_rtt)(mtu);
        let bytes = cx.product_of((p, "spray"), mtu);
        let round_trip = u32::try_from(bytes.div_ceil(u64::from(mtu + header))).unwrap_or(u32::MAX);
        let default = round_trip.saturating_add(1).clamp(LEAST_FIRST_WINDOW, MAX_PACKETS as u32);
        let help = "packets that a flow sends before it receives anything (published: 30 of 9000 B at 10 Gb/s; here the larger \
                    of 15 and those of a round trip and one, since nothing else fills the path)";
        let first_window = p.integer("first_window", i64::from(default), (0, MAX_PACKETS), help) as u32;
        if first_window == 0 {
            p.complain("first_window", "a window of 0 would never send: expected at least 1".into());
        }
        let help = "share of a receiver's link that its pulls ask for (released code: 0.99; paper: 1)";
        let pull_share = p.number("pull_share", 0.99, (0.01, 1.0), help);
        let default = PUBLISHED_RTO.max(Time(base_rtt.0.saturating_mul(10))).min(MAX_RTO);
        let help = "a packet that nothing answered within this time after it left, or within twice the time by which packets to \
                    the sender are apart, is sent again at once; the time doubles while the sender receives nothing, up to 16 \
                    times of this (default: the larger of 200 us, the paper's, and 10 base RTTs; the authors' simulator has \
                    no timeout unless it is built with one, and never completes a flow whose header is lost)";
        let rto = p.time("rto", default, help);
        if !(MIN_RTO..=MAX_RTO).contains(&rto) {
            p.complain("rto", format!("expected a time from {MIN_RTO} to {MAX_RTO}, found {rto}"));
        } else if rto <= base_rtt {
            p.complain(
                "rto",
                format!("{rto} expires before an answer can arrive: the longest base RTT is {base_rtt}"),
            );
        }
        let help = "traffic class of acknowledgements, pulls and trimmed packets; data are in the next one";
        let class = p.integer("class", 1, (1, 6), help) as u8;
        let help = "the packets of a flow take all paths, each once, in a random order, then again in another one: they have \
                    labels, by which balancers choose; answers and pulls have labels that count up. false: a flow keeps its \
                    path";
        let spray = p.flag("spray", true, help);
        Some(NdpConfig { mtu, header, control, class, first_window, pull_share, rto, spray })
    }

    fn of(transport: &TransportConfig) -> Option<&NdpConfig> {
        if let TransportConfig::Ndp(own) = transport { Some(own) } else { None }
    }

    fn classes(&self) -> u8 {
        0b11 << self.class
    }

    fn framing(&self, _telemetry: &TelemetryConfig) -> Framing {
        Framing::of(self.mtu, self.header, self.control)
    }

    fn data_header(&mut self) -> &mut u32 {
        &mut self.header
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            labels_packets: self.spray,
            spreads_flows: self.spray,
            any_order: true,
            longest_timeout: Time(self.rto.0 << MAX_DOUBLINGS),
            resends: Some(Resends { after: self.rto, doubles: true }),
            // An acknowledgement, or the notice of a trimmed packet, and a pull.
            answers: Answers::each(2.0),
            asks: Some(Asks {
                share: self.pull_share,
                unanswered: u64::from(self.first_window) * u64::from(self.mtu + self.header),
                pause: 0.0,
                first: self.first_window.into(),
                first_of_short: false,
                patience: None,
            }),
            ns_per_hop: 70.0,
            ..Facts::default()
        }
    }

    fn switch_defaults(&self) -> SwitchDefaults {
        SwitchDefaults {
            queue: QUEUE,
            // As the released code counts them: without headers.
            limit: Some(Bytes(PORT_PACKETS * u64::from(self.mtu))),
            trims: true,
            balancer: balance::BY_LABEL,
            ..SwitchDefaults::LOSSY
        }
    }

    /// Without trimming a lost packet costs a timeout; ports must tell headers from data by their class.
    fn warnings(&self, run: &RunContext) -> Vec<String> {
        let astray = self.headers_go_astray(run).or_else(|| self.headers_fill_a_link(run));
        let packet = u64::from(self.mtu + self.header);
        let (window, lowest) =
            (u64::from(self.first_window) * packet, u64::from(LEAST_FIRST_WINDOW) * packet);
        let few = run.window_for_few(("first_window", self.spray), (self.mtu, window, lowest), |median| {
            format!("set first_window to about {}", median.div_ceil(packet))
        });
        astray.into_iter().chain(few).collect()
    }

    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        vec![
            ("base_rtt_ns", Some(self.base_rtt(run).as_ns().into())),
            ("data_packet_bytes", Some((self.mtu + self.header).into())),
            ("ack_bytes", Some(self.control.into())),
            ("first_window_packets", Some(self.first_window.into())),
            ("rto_ns", Some(self.rto.as_ns().into())),
        ]
    }

    fn carried(packet: &Packet) -> Range<u64> {
        let number = packet.seq & u64::from(u32::MAX);
        number..number + 1
    }
    fn number_bytes(&self) -> u64 {
        self.mtu.into()
    }

    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Pulls
    }

    fn start(&self, host: &HostPlan) -> Box<Ndp> {
        Box::new(Ndp::new(host.ports, host.seed, host.host))
    }
}
