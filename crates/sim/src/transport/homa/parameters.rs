//! The keys of `transport.kind = "homa"`: published values, with a round trip's bytes that follow from the network and levels
//! that follow from the sizes of the messages.
//!
//! Source: Montazeri et al., "Homa", SIGCOMM 2018, and its authors' simulator (HomaSimulation, commit ab09ecb): frames of 1538 B on
//! the wire, 10 000 B in a round trip at 10 Gb/s, eight levels.

use super::Homa;
use super::code;
use super::levels::Levels;
use crate::balance;
use crate::doc::{SchemeDoc, Series};
use crate::packet::{Packet, PacketKind};
use crate::parameters::{Parameters, Value, describe};
use crate::telemetry::TelemetryConfig;
use crate::transport::TransportConfig;
use crate::transport::parameters::{
    Answers, Facts, FirstPackets, Framing, HostPlan, ReadContext, ReceiverTimer, Resends, RunContext,
    TransportParameters,
};
use crate::transport::silence::MAX_DOUBLINGS;
use crate::transport::switches::SwitchDefaults;
use crate::transport::wire_format::WireFormat;
use crate::units::{Bytes, Rate, Time};
use crate::workload::FlowSpec;
use std::ops::Range;

/// Strict priority.
const QUEUE: &str = "priority";
/// On the wire, at 10 Gb/s.
const PUBLISHED_RTT_BYTES: u64 = 10_000;
const MAX_RTT_BYTES: u64 = 1 << 30;
/// Of the published simulators only the one on ns-3 has timeouts: 1 ms at receivers.
const PUBLISHED_RTO: Time = Time::from_ms(1);
/// A packet is taken to reach the last switch within this share of `rto`, which has at least ten base RTTs by default.
const UNDER_WAY: u64 = 4;
const MIN_RTO: Time = Time::from_us(1);
const MAX_RTO: Time = Time::from_ms(100_000);
/// Messages whose sizes the levels are computed from: the first of a run.
const MESSAGES: usize = 20_000;

#[derive(Debug, Clone, PartialEq)]
pub struct HomaConfig {
    /// Payload bytes of a full scheduled packet, and its header on the wire.
    pub mtu: u32,
    pub header: u32,
    /// An unscheduled packet has this number of bytes more of header, and fewer of payload.
    pub extra: u32,
    /// Bytes of a grant or another packet without data.
    pub control: u32,
    /// Bytes on the wire that are sent without grants, and that a message may have in flight.
    pub rtt_bytes: u64,
    pub priorities: u32,
    /// 0: from the sizes.
    pub scheduled: u32,
    /// 0: as many as scheduled levels.
    pub overcommit: u32,
    /// None: from the sizes.
    pub cutoffs: Option<Vec<u64>>,
    /// An end that receives nothing for this time asks.
    pub rto: Time,
    /// Every packet with a choice of paths has a label of its own.
    pub spray: bool,
    /// Once a run is built.
    pub levels: Levels,
    /// Bytes on the wire of the longest packet of any transport of this kind in the run, once that is built.
    pub longest: u32,
}

impl HomaConfig {
    /// The traffic class of a level: class 0 carries pauses, so data are in it only where every class is needed.
    #[inline]
    pub fn class(&self, level: u8) -> u8 {
        if self.priorities == 8 { level } else { level + 1 }
    }

    /// The longest time between two packets from a link that is not idle.
    #[inline]
    pub fn gap(&self, rate: Rate) -> Time {
        rate.transmission_time(u64::from(self.longest))
    }

    /// Bytes on the wire that no packet has more of.
    fn full(&self) -> u32 {
        self.mtu + self.header + self.extra
    }

    /// Whether what left its source at a time may wait at the last switch, or be in flight to it, if what came there
    /// before `empty` does not wait any more.
    pub fn may_wait(&self, left: Time, empty: Time) -> bool {
        left.saturating_add(Time(self.rto.0 / UNDER_WAY)) > empty
    }

    /// The levels for the first messages of a run that any transport of this kind sends.
    fn levels_of(&self, run: &RunContext) -> Option<Levels> {
        let mut sources: Vec<_> = run.traffic?.sources.iter().map(|source| source.clone_box()).collect();
        let mut next: Vec<Option<FlowSpec>> = sources.iter_mut().map(|source| source.next()).collect();
        let mut sizes = Vec::new();
        // Of other transports' flows no more are passed over.
        for _ in 0..8 * MESSAGES {
            let first = |place: &usize| next[*place].map_or(Time::MAX, |flow| flow.start);
            let Some(place) = (0..next.len()).filter(|&at| next[at].is_some()).min_by_key(first) else {
                break;
            };
            let Some(flow) = std::mem::replace(&mut next[place], sources[place].next()) else { break };
            let transport = run.transports.get(usize::from(flow.transport));
            if transport.and_then(HomaConfig::of).is_some() {
                sizes.push(flow.size);
            }
            if sizes.len() == MESSAGES {
                break;
            }
        }
        Some(Levels::new(self, &sizes))
    }
}

impl TransportParameters for HomaConfig {
    const DOC: SchemeDoc = SchemeDoc {
        name: "homa",
        title: "receiver-driven grants, shortest messages first, eight priorities (SIGCOMM 2018)",
        source: "Montazeri, Li, Alizadeh, Ousterhout, \"Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network \
                 Priorities\", SIGCOMM 2018, and its authors' simulator (HomaSimulation)",
        validation: "Exact unit cases derived from the design (tests/homa.rs); page: docs/schemes/homa.md.",
        series: &[
            Series::new(
                "packets_granted",
                "packets",
                "Packets of the message that may leave, unscheduled ones included.",
            ),
            Series::new(
                "bytes_left",
                "bytes",
                "Payload of the message that has not left, or has to leave again.",
            ),
            Series::new("packets_to_repeat", "packets", "Packets that have to be sent again."),
        ],
        ..SchemeDoc::NONE
    };
    type State = Box<Homa>;

    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<HomaConfig> {
        let mtu = p.size("mtu", (1456, 64, 9000), "payload of a full scheduled packet (published: 1456 B)");
        let help = "header of a scheduled packet, with all that its frame costs on the wire (published: Homa 16, UDP 8, IP 20, \
                    Ethernet 38)";
        let header = p.size("header", (82, 20, 1000), help);
        let help = "header bytes that an unscheduled packet has more than a scheduled one, and payload bytes that it has fewer \
                    (published: 14 B)";
        let extra = p.size("unscheduled_header", (14, 0, 1000), help);
        if extra >= mtu {
            p.complain("unscheduled_header", format!("no payload would be left of {mtu} B"));
        }
        let help = "bytes of a grant, or another packet without data, on the wire (published: 84 B, the shortest frame)";
        let control = p.size("control", (84, 20, 1000), help);
        let base_rtt = (cx.base_rtt)(mtu + header);
        let round_trip = cx.product_of((p, "spray"), mtu + header).saturating_add(u64::from(mtu + header));
        let default = Bytes(PUBLISHED_RTT_BYTES.max(round_trip).min(MAX_RTT_BYTES));
        let help = "bytes on the wire that a message sends without grants, and that it may have in flight (published: 10 000 B at \
                    10 Gb/s; here the larger of that and a packet more than the largest product of rate and base RTT of a pair \
                    of hosts, over all its shortest paths, or over one with spray = false)";
        let rtt_bytes = p.bytes("rtt_bytes", default, help).0;
        if !(u64::from(mtu + header)..=MAX_RTT_BYTES).contains(&rtt_bytes) {
            let range = format!("{} to {}", Bytes(u64::from(mtu + header)), Bytes(MAX_RTT_BYTES));
            p.complain(
                "rtt_bytes",
                format!("expected {range}: at least a packet, found {}", Bytes(rtt_bytes)),
            );
        }
        let help = "levels of priority of all packets (published: 8, which takes class 0 as well: it is never paused nor marked)";
        let priorities = p.integer("priorities", 8, (1, 8), help) as u32;
        let help = "levels of scheduled packets, the lowest ones; 0: what the share of bytes that need no grant leaves \
                    (published: 1, 3, 4, 7, 7 for W1 to W5)";
        let scheduled = p.integer("scheduled", 0, (0, 8), help) as u32;
        let help =
            "senders that a receiver grants to at the same time; 0: one for every scheduled level (paper)";
        let overcommit = p.integer("overcommit", 0, (0, 1 << 20), help) as u32;
        let cutoffs = read_cutoffs(p);
        let given = cutoffs.as_ref().map_or(1, |cutoffs| cutoffs.len() as u32 + 1);
        // One level alone is for both.
        if given + scheduled.max(1) > priorities.max(2) {
            let message = format!(
                "{given} unscheduled and {} scheduled levels: expected at most {priorities} (priorities)",
                scheduled.max(1)
            );
            p.complain(if given > 1 { "cutoffs" } else { "scheduled" }, message);
        }
        let default = PUBLISHED_RTO.max(Time(base_rtt.0.saturating_mul(10))).min(MAX_RTO);
        let help = "a receiver that waits for granted packets for this time requests them (RESEND), and a sender that receives nothing \
                    requests an acknowledgement; every repetition doubles the time (default: the larger of 1 ms and 10 base \
                    RTTs; the authors' simulator never asks)";
        let rto = p.time("rto", default, help);
        if !(MIN_RTO..=MAX_RTO).contains(&rto) {
            p.complain("rto", format!("expected a time from {MIN_RTO} to {MAX_RTO}, found {rto}"));
        } else if rto <= base_rtt {
            let message =
                format!("{rto} expires before an answer can arrive: the longest base RTT is {base_rtt}");
            p.complain("rto", message);
        }
        let spray = p.flag(
            "spray",
            true,
            "every packet gets a random label, so that balancers spread it; false: a message keeps its path",
        );
        let levels = Levels::default();
        Some(HomaConfig {
            mtu,
            header,
            extra: extra.min(mtu - 1),
            control,
            rtt_bytes,
            priorities,
            scheduled,
            overcommit,
            cutoffs,
            rto,
            spray,
            levels,
            longest: mtu + header + extra.min(mtu - 1),
        })
    }

    fn of(transport: &TransportConfig) -> Option<&HomaConfig> {
        if let TransportConfig::Homa(own) = transport { Some(own) } else { None }
    }

    fn classes(&self) -> u8 {
        (0..self.priorities as u8).fold(0, |classes, level| classes | 1 << self.class(level))
    }

    fn framing(&self, _telemetry: &TelemetryConfig) -> Framing {
        // Packets that need no grant have a longer header and less payload.
        let first = FirstPackets {
            bytes: self.layout(u64::from(u32::MAX)).unscheduled_bytes,
            payload: u64::from(self.mtu - self.extra),
            header: u64::from(self.header + self.extra),
        };
        let framing = Framing::of(self.mtu, self.header, self.control);
        Framing { acks_each: false, first: Some(first), ..framing }
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
            timer_left: self.rto,
            resends: Some(Resends { after: self.rto, doubles: true }),
            // A grant for each packet that needs one, and one acknowledgement.
            answers: Answers {
                once: 1.0,
                first: (self.layout(u64::from(u32::MAX)).unscheduled.into(), 0.0),
                ..Answers::each(1.0)
            },
            ns_per_hop: 80.0,
            ..Facts::default()
        }
    }

    fn switch_defaults(&self) -> SwitchDefaults {
        SwitchDefaults { queue: QUEUE, balancer: balance::BY_LABEL, ..SwitchDefaults::LOSSY }
    }

    /// Without priorities it is another scheme.
    fn warnings(&self, run: &RunContext) -> Vec<String> {
        let other = run.switch.queues().any(|queue| queue.name() != QUEUE);
        let warning = other.then(|| {
            format!(
                "switch.queue: not every port serves by strict priority, which Homa relies on: set kind = \"{QUEUE}\" unless this \
                 is intended"
            )
        });
        let packet = self.mtu + self.header;
        let few = run.window_for_few(
            ("rtt_bytes", self.spray),
            (packet, self.rtt_bytes, PUBLISHED_RTT_BYTES),
            |median| format!("set rtt_bytes to about {}", Bytes(median.saturating_add(u64::from(packet)))),
        );
        warning.into_iter().chain(few).collect()
    }

    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        let levels = self.levels_of(run);
        let of = |value: fn(&Levels) -> Value| levels.as_ref().map(value);
        vec![
            ("base_rtt_ns", Some(self.base_rtt(run).as_ns().into())),
            ("data_packet_bytes", Some((self.mtu + self.header).into())),
            ("ack_bytes", Some(self.control.into())),
            ("rtt_bytes", Some(self.rtt_bytes.into())),
            ("unscheduled_levels", of(|levels| (levels.cutoffs.len() as u32 + 1).into())),
            ("scheduled_levels", of(|levels| levels.scheduled.into())),
            ("overcommitment", of(|levels| levels.overcommit.into())),
            (
                "unscheduled_cutoffs_bytes",
                of(|levels| {
                    let finite = levels.cutoffs.iter().filter(|&&cutoff| cutoff < u64::MAX);
                    Value::List(finite.map(|&cutoff| cutoff.into()).collect())
                }),
            ),
            ("rto_ns", Some(self.rto.as_ns().into())),
        ]
    }

    fn carried(packet: &Packet) -> Range<u64> {
        let number = u64::from(packet.aux);
        number..number + 1
    }
    fn receiver_timer(packet: &Packet) -> Option<ReceiverTimer> {
        (packet.kind == PacketKind::Control && packet.code() == code::RESEND).then_some(ReceiverTimer {
            until: "until the receiver requested packets that had not come (rto)",
            expired: packet.seq >> 40,
        })
    }
    fn number_bytes(&self) -> u64 {
        self.mtu.into()
    }

    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Grants
    }

    fn settle(&mut self, run: &RunContext) {
        self.levels = self.levels_of(run).unwrap_or_default();
        let own = self.full();
        self.longest =
            run.transports.iter().filter_map(HomaConfig::of).map(HomaConfig::full).fold(own, u32::max);
    }

    fn start(&self, host: &HostPlan) -> Box<Homa> {
        Box::new(Homa::new(host.ports, host.seed, host.host))
    }
}

/// The cutoffs that are given, ascending.
fn read_cutoffs(p: &mut Parameters) -> Option<Vec<u64>> {
    let help = "list of sizes, ascending: the largest number of bytes of a message before a packet of each unscheduled level but the last; without \
                it each level gets equal bytes of the scenario's sizes";
    let list = p.list("cutoffs", help)?;
    let mut cutoffs = Vec::new();
    for value in &list {
        let bytes = match value {
            Value::Text(text) => text.parse::<Bytes>().map_err(|error| error.to_string()),
            Value::Integer(bytes) if *bytes > 0 => Ok(Bytes(*bytes as u64)),
            other => Err(format!("expected a size such as \"1KB\", found {}", describe(other))),
        };
        match bytes {
            Ok(bytes) if cutoffs.last().is_some_and(|&last| last >= bytes.0) => {
                p.complain(
                    "cutoffs",
                    format!("{bytes} is not above the one before: expected ascending sizes"),
                );
                return None;
            }
            Ok(bytes) => cutoffs.push(bytes.0),
            Err(message) => {
                p.complain("cutoffs", message);
                return None;
            }
        }
    }
    Some(cutoffs)
}
