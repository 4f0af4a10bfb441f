//! The keys of `transport.kind = "phost"`: published values, in packets and in packet times of a host's own
//! link, so that they follow the link's rate. Those that stand for a round trip grow with it where it is
//! longer than the published network's: numbers of packets with what the path of a pair holds, times with the
//! longest base RTT.
//!
//! Source: the authors' simulator (commit 8e9cf04), 10 Gb/s: 8 free tokens, a window of 8, token life 1.5
//! packet times, tokens asked for again after 9, a flow downgraded for 25.

use super::Phost;
use super::code;
use crate::balance;
use crate::doc::{SchemeDoc, Series};
use crate::packet::{Packet, PacketKind};
use crate::parameters::{Parameters, Value};
use crate::queue::QueueConfig;
use crate::telemetry::TelemetryConfig;
use crate::transport::TransportConfig;
use crate::transport::pairs::NarrowPaths;
use crate::transport::parameters::{
    Answers, Asks, COUNTED, Facts, Framing, HostPlan, ReadContext, ReceiverTimer, Resends, RunContext,
    TransportParameters,
};
use crate::transport::policy::{Policy, policy, policy_or};
use crate::transport::silence::MAX_DOUBLINGS;
use crate::transport::switches::SwitchDefaults;
use crate::transport::wire_format::WireFormat;
use crate::units::{Bytes, Rate, Time};
use std::ops::Range;

/// The queue discipline that it was published with.
const QUEUE: &str = "priority";

/// What a source is allowed before an answer of the destination.
const FREE_FOR: &[(&str, &str)] = &[
    ("short", "only flows that need no other tokens have free tokens (the released code)"),
    (
        "every",
        "every flow begins with free tokens (the paper); the destination's first token comes when they are spent",
    ),
];

/// Published, in packets.
const PUBLISHED_ROUND_TRIP: u32 = 8;
/// A full packet that follows its request arrives up to this many packet times after it on the published network.
const PUBLISHED_LAG: f64 = 2.5;
const MAX_PACKETS: i64 = 1 << 20;
/// Of a round trip.
const MOST_PACKETS: u32 = 1 << 19;
/// Share of the bytes up to which flows on narrow paths matter to no result but their own.
const FEW_BYTES: f64 = 0.01;
/// Beyond any use; keeps times within the clock.
const MAX_PACKET_TIMES: f64 = 1e7;

/// Times are in packet times of a host's own link.
#[derive(Debug, Clone, PartialEq)]
pub struct PhostConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    pub header: u32,
    /// Bytes of a request, a token or an acknowledgement.
    pub control: u32,
    /// Traffic class of control packets; data are in the next, or the next two.
    pub class: u8,
    /// Flows of at most this many packets go above the others; 0: all data are in one class.
    pub short: u32,
    pub free_tokens: u32,
    pub free_for: FreeTokens,
    /// Tokens that a flow may have outstanding.
    pub window: u32,
    pub token_life: f64,
    pub token_interval: f64,
    /// Ticks of the token clock are left to free packets.
    pub hold: bool,
    /// For every free token, until a flow that has no others may be given new ones.
    pub first_wait: f64,
    /// In addition, once for a flow.
    pub first_wait_extra: f64,
    /// From the last of the tokens for all packets until missing ones are requested again.
    pub retoken: f64,
    /// A flow with a full window gets one token in this time.
    pub downgrade: f64,
    pub wake_on_data: bool,
    /// Every packet with a choice of paths has a label of its own.
    pub spray: bool,
    /// After this time without an answer a source repeats its request.
    pub request_timeout: Time,
    /// Which flow goes first at destinations, and at sources.
    pub policy: Policy,
    pub source_policy: Policy,
    /// The longest round trips of a full packet and of two control packets, once a run is built.
    pub longest_rtt: Time,
    pub control_rtt: Time,
}

impl PhostConfig {
    /// Bytes of a full data packet.
    pub fn packet(&self) -> u32 {
        self.mtu + self.header
    }

    /// Free tokens of a flow of so many packets.
    pub fn free_tokens_of(&self, packets: u32) -> u32 {
        match self.free_for {
            FreeTokens::Every => packets.min(self.free_tokens),
            FreeTokens::Short if packets <= self.free_tokens => packets,
            FreeTokens::Short => 0,
        }
    }

    /// Traffic class of the data of a flow of so many packets.
    pub fn data_class(&self, packets: u32) -> u8 {
        self.class + if self.short > 0 && packets > self.short { 2 } else { 1 }
    }

    /// The warning of narrow paths where a stopped clock does not start again.
    fn stops_alone(&self, run: &RunContext) -> Option<String> {
        if self.wake_on_data {
            return None;
        }
        let window = u64::from(self.window) * u64::from(self.mtu);
        let is_own = |transport: &TransportConfig| PhostConfig::of(transport) == Some(self);
        let NarrowPaths { share, capacity, link } = run.narrow_paths(is_own, self.spray, window)?;
        (share > FEW_BYTES).then(|| {
            format!(
                "transport.wake_on_data = false, as in the released code: {} % of the bytes are of flows that are longer than \
                 their window of {} tokens and whose paths carry less than the links of their hosts (the narrowest {capacity}, where \
                 the destination gives tokens for {link}). The window fills, the flow is set back for downgrade = {} packet \
                 times, and the packets that come meanwhile do not start the stopped clock of tokens again: alone, such a flow is \
                 idle most of the time. Set wake_on_data = true, unless the released code is what you study",
                percent(share),
                self.window,
                self.downgrade
            )
        })
    }
}

/// In percent with two digits.
fn percent(share: f64) -> String {
    if share < 0.095 { format!("{:.1}", 100.0 * share) } else { format!("{:.0}", 100.0 * share) }
}

/// Which flows have free tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeTokens {
    /// Those that need no others.
    Short,
    Every,
}

impl TransportParameters for PhostConfig {
    const DOC: SchemeDoc = SchemeDoc {
        name: "phost",
        title: "tokens from the destination, packets over all paths, priorities and small buffers (CoNEXT 2015)",
        source: "Gao et al., \"pHost: Distributed Near-Optimal Datacenter Transport Over Commodity Network Fabric\", CoNEXT 2015, \
                 and its authors' simulator",
        validation: "Equal to its authors' simulator on unit cases (tests/phost.rs); page: docs/schemes/phost.md.",
        series: &[
            Series::new("tokens", "packets", "Tokens that have not expired, one for a packet."),
            Series::new("packets_sent", "packets", "Data packets that left, those sent again among them."),
        ],
        ..SchemeDoc::NONE
    };
    type State = Box<Phost>;

    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<PhostConfig> {
        let mtu = p.size("mtu", (1460, 64, 9000), "payload of a full packet (published: 1460 B)");
        let header = p.size("header", (40, 0, 1000), "header of a data packet (published: 40 B)");
        let help = "bytes of a request, token or acknowledgement (published: 40 B)";
        let control = p.size("control", (40, 1, 1000), help);
        let packet = mtu + header;
        let round_trip = packets(cx.product_of((p, "spray"), mtu), packet);
        let round_trip_times = packets(cx.host_rate.bytes_in((cx.base_rtt)(mtu)).0, packet);
        let (free_tokens, free_for) = free(p, round_trip);
        let window_default = PUBLISHED_ROUND_TRIP.max(2 * round_trip);
        let help = "maximum number of outstanding tokens of a flow (published: 8; here the larger of 8 and the \
                    packets of two round trips)";
        let window = p.integer("window", i64::from(window_default), (0, MAX_PACKETS), help) as u32;
        if window == 0 {
            p.complain("window", "no flow can send with a window of 0 tokens: expected at least 1".into());
        }
        // What the round trip is longer than the published one.
        let longer = f64::from(round_trip_times.saturating_sub(PUBLISHED_ROUND_TRIP));
        let two_round_trips = PUBLISHED_ROUND_TRIP.max(2 * round_trip_times);
        let token_life = token_life(p, longer);
        let help = "packet times between two tokens of a destination (published: 1; the paper's first code: \
                    1540/1500)";
        let token_interval = p.number("token_interval", 1.0, (0.001, MAX_PACKET_TIMES), help);
        let help = "reserve a destination's next token ticks for the free packets of a new flow (released code: \
                    true; the paper's first code: false)";
        let hold = p.flag("hold", true, help);
        let help = "packet times per free token before a flow that had only free tokens may receive new ones \
                    (published: 2)";
        let first_wait = p.number("first_wait", 2.0, (0.0, MAX_PACKET_TIMES), help);
        let help = "packet times that this flow waits in addition, whatever its number of free tokens (published: none; \
                    here what a round trip has beyond 8, and the time by which a full packet may arrive after its \
                    request if that is more than 2.5)";
        let extra = longer + lag(cx, control, packet);
        let first_wait_extra = p.number("first_wait_extra", extra, (0.0, MAX_PACKET_TIMES), help);
        let help = "packet times after the last token of a flow until tokens for its missing packets are sent again \
                    (published: 9)";
        let retoken = p.number("retoken", f64::from(two_round_trips + 1), (0.0, MAX_PACKET_TIMES), help);
        let help = "packet times for which a flow with a full window receives no tokens (published: 25, three \
                    windows; in an older script 15)";
        let downgrade =
            p.number("downgrade", f64::from(3 * two_round_trips + 1), (0.0, MAX_PACKET_TIMES), help);
        let help =
            "a stopped token clock restarts when arriving data open a flow's window (released code: false)";
        let wake_on_data = p.flag("wake_on_data", false, help);
        let (class, short) = classes(p, PUBLISHED_ROUND_TRIP.max(round_trip));
        let spray = p.flag("spray", true, COUNTED);
        let packet_time = cx.host_rate.0.max(1);
        let packet_time = Rate(packet_time).transmission_time(u64::from(mtu + header)).min(Time::from_ms(1));
        let default =
            Time(packet_time.0.saturating_mul(100)).max(Time((cx.base_rtt)(mtu).0.saturating_mul(10)));
        let help = "a source that receives nothing from the destination within this time repeats its request, and \
                    doubles the time with every repetition (default: the larger of 100 packet times and 10 base \
                    RTTs); the authors' simulator repeats no request, so that a lost request loses the flow";
        let request_timeout = p.time("request_timeout", default.clamp(MIN_TIMEOUT, MAX_TIMEOUT), help);
        if !(MIN_TIMEOUT..=MAX_TIMEOUT).contains(&request_timeout) {
            let message =
                format!("expected a time from {MIN_TIMEOUT} to {MAX_TIMEOUT}, found {request_timeout}");
            p.complain("request_timeout", message);
        }
        let help = "which flow is served first, at sources and destinations";
        let policy = policy(p, help);
        let help =
            "which flow is served first at sources; auto: as policy says, which is then that of destinations";
        let source_policy = policy_or(p, "source_policy", policy, help);
        Some(PhostConfig {
            mtu,
            header,
            control,
            class,
            short,
            free_tokens,
            free_for,
            window,
            token_life,
            token_interval,
            hold,
            first_wait,
            first_wait_extra,
            retoken,
            downgrade,
            wake_on_data,
            spray,
            request_timeout,
            policy,
            source_policy,
            longest_rtt: Time::ZERO,
            control_rtt: Time::ZERO,
        })
    }

    fn of(transport: &TransportConfig) -> Option<&PhostConfig> {
        if let TransportConfig::Phost(own) = transport { Some(own) } else { None }
    }

    fn classes(&self) -> u8 {
        if self.short > 0 { 0b111 << self.class } else { 0b11 << self.class }
    }

    fn framing(&self, _telemetry: &TelemetryConfig) -> Framing {
        Framing { acks_each: false, ..Framing::of(self.mtu, self.header, self.control) }
    }

    fn data_header(&mut self) -> &mut u32 {
        &mut self.header
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            labels_packets: self.spray,
            spreads_flows: self.spray,
            any_order: true,
            longest_timeout: Time(self.request_timeout.0 << MAX_DOUBLINGS),
            // Destinations give tokens again and again.
            resends: Some(Resends { after: self.request_timeout, doubles: false }),
            asks: Some(Asks {
                share: (1.0 / self.token_interval).min(1.0),
                unanswered: u64::from(self.window) * u64::from(self.packet()),
                pause: self.downgrade,
                first: self.free_tokens.into(),
                first_of_short: self.free_for == FreeTokens::Short,
                patience: Some((self.first_wait, self.first_wait_extra)),
            }),
            // A request, a token for each packet that needs one, and one acknowledgement.
            answers: Answers {
                once: 2.0,
                first: (self.free_tokens.into(), 0.0),
                of_short: self.free_for == FreeTokens::Short,
                ..Answers::each(1.0)
            },
            ns_per_hop: 66.0,
            ..Facts::default()
        }
    }

    fn switch_defaults(&self) -> SwitchDefaults {
        let free = u64::from(self.free_tokens) * u64::from(self.packet());
        SwitchDefaults {
            queue: QUEUE,
            // Published: three times what a flow may send before it has a token.
            limit: Some(Bytes((3 * free).max(36 << 10))),
            balancer: balance::BY_LABEL,
            ..SwitchDefaults::LOSSY
        }
    }

    fn clash(&self, other: &PhostConfig) -> Option<String> {
        let policies = |own: &PhostConfig| (own.policy, own.source_policy);
        (policies(self) != policies(other)).then(|| {
            format!(
                "all hosts have the same policies, but workloads set {:?} and {:?}: set the same transport.policy and \
                 transport.source_policy for all of them",
                policies(self),
                policies(other)
            )
        })
    }

    fn refusals(&self, run: &RunContext) -> Vec<(&'static str, String)> {
        let in_turn = run.switch.queues().find(|queue| self.short > 0 && queue.facts().serves_in_turn);
        let message = |queue: &QueueConfig| {
            format!(
                "\"{}\" serves its classes in turn, but pHost sends short flows above long ones: set kind = \"{QUEUE}\", or \
                 transport.short_flow = 0",
                queue.name()
            )
        };
        in_turn.map(|queue| ("queue.kind", message(queue))).into_iter().collect()
    }

    fn warnings(&self, run: &RunContext) -> Vec<String> {
        let published = u64::from(PUBLISHED_ROUND_TRIP) * u64::from(self.packet());
        let free = u64::from(self.free_tokens) * u64::from(self.packet());
        let few = run.window_for_few(("free_tokens", self.spray), (self.mtu, free, published), |median| {
            let (free, window) = (packets(median, self.packet()), packets(median.saturating_mul(2), self.packet()));
            format!(
                "set free_tokens and short_flow to about {free}, window to {window}, and token_life, first_wait_extra, retoken and \
                 downgrade for that round trip"
            )
        });
        few.into_iter().chain(self.stops_alone(run)).collect()
    }

    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        vec![
            ("base_rtt_ns", Some(self.base_rtt(run).as_ns().into())),
            ("data_packet_bytes", Some(self.packet().into())),
            ("ack_bytes", Some(self.control.into())),
            ("free_tokens", Some(self.free_tokens.into())),
            ("window_tokens", Some(self.window.into())),
            ("request_timeout_ns", Some(self.request_timeout.as_ns().into())),
        ]
    }

    fn carried(packet: &Packet) -> Range<u64> {
        let number = packet.seq & u64::from(u32::MAX);
        number..number + 1
    }
    fn receiver_timer(packet: &Packet) -> Option<ReceiverTimer> {
        (packet.kind == PacketKind::Control && packet.code() == code::TOKEN).then_some(ReceiverTimer {
            until: "until the destination gave tokens again for packets that had not come (first_wait, retoken)",
            expired: packet.sent.0,
        })
    }
    fn number_bytes(&self) -> u64 {
        self.mtu.into()
    }

    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Tokens
    }

    fn settle(&mut self, run: &RunContext) {
        self.longest_rtt = self.base_rtt(run);
        self.control_rtt = run.base_rtt(self.control).0;
    }

    fn start(&self, host: &HostPlan) -> Box<Phost> {
        Box::new(Phost::new(host.ports, (self.source_policy, self.policy), host.seed, host.host))
    }
}

/// By how many packet times of the fastest host a full packet may arrive after a request that left just before
/// it, switches that store and forward in between; 0 if it is no later than on the published network, where a
/// destination waits no longer for it.
fn lag(cx: &ReadContext, control: u32, packet: u32) -> f64 {
    let sending = |bytes| (cx.base_rtt)(bytes).0 as f64;
    let picoseconds = (sending(packet) - sending(control)).max(0.0);
    let lag = picoseconds * cx.host_rate.0 as f64 / (8e12 * f64::from(packet));
    if lag > PUBLISHED_LAG { lag.ceil().min(f64::from(MOST_PACKETS)) } else { 0.0 }
}

/// Full packets of this many bytes, at least 1.
fn packets(bytes: u64, packet: u32) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(packet))).unwrap_or(u32::MAX).clamp(1, MOST_PACKETS)
}

const MIN_TIMEOUT: Time = Time::from_us(1);
const MAX_TIMEOUT: Time = Time::from_ms(100_000);

/// How many free tokens, and who has them.
fn free(p: &mut Parameters, round_trip: u32) -> (u32, FreeTokens) {
    let default = PUBLISHED_ROUND_TRIP.max(round_trip);
    let help = "packets that a flow may send before it receives anything from the destination (published: 8, called \
                a bandwidth-delay product; here the larger of 8 and the packets of a round trip)";
    let tokens = p.integer("free_tokens", i64::from(default), (0, MAX_PACKETS), help) as u32;
    let free_for = match p.choice("free_tokens_for", "short", FREE_FOR, "which flows have free tokens") {
        "every" => FreeTokens::Every,
        _ => FreeTokens::Short,
    };
    (tokens, free_for)
}

/// A source with flows to many destinations has their tokens at once: where they expire long before the next
/// ones can come, most of its time passes without any.
fn token_life(p: &mut Parameters, longer: f64) -> f64 {
    let help = "packet times for which a token is valid at the source (published: 1.5; here longer by the packets \
                that a round trip has beyond 8)";
    let life = p.number("token_life", 1.5 + longer, (0.0, MAX_PACKET_TIMES), help);
    if life < 1.0 {
        let message = format!(
            "tokens that are valid for {life} packet times expire while the packet before is sent: expected at \
             least 1 (published: 1.5)"
        );
        p.complain("token_life", message);
    }
    life
}

/// The class of control packets, and up to how many packets a flow is short.
fn classes(p: &mut Parameters, round_trip: u32) -> (u8, u32) {
    let help =
        "traffic class of requests, tokens and acknowledgements; data are in the next one, or the next two";
    let class = p.integer("class", 1, (1, 5), help) as u8;
    let help = "flows of at most this number of packets have priority over longer ones (published: 8; the released \
                configuration does not set it, which means 0: all data in one class)";
    let short = p.integer("short_flow", i64::from(round_trip), (0, MAX_PACKETS), help) as u32;
    (class, short)
}
