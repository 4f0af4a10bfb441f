//! The keys of `transport.kind = "tcp"`. A profile is a set of defaults: each of its values is a key that may
//! be set alone.
//!
//! Source of `rfc`: the RFCs named at the keys, and Linux 6 where they leave a choice. Source of `ns3-3.35`:
//! the models and settings behind the published Cebinae results (Yu et al., SIGCOMM 2022): TCP of ns-3.35
//! with an acknowledgement per segment, over links that add 2 bytes to a packet.
//!
//! The file is above 500 lines because all keys of a connection, their profiles and their checks are here.

use super::Tcp;
use super::config::{
    AckConfig, ApplicationConfig, Doubtful, EcnEcho, Flight, PrrBound, PrrConfig, RackConfig, Reactions,
    RecoveryConfig, RecoveryWindow, RtoConfig, RttConfig, TcpConfig, TcpPacing,
};
use super::like_ns3;
use crate::congestion::window::NS_PER_HOP as WINDOW_NS_PER_HOP;
use crate::congestion::window::{Profile, TimeKey, WindowConfig};
use crate::doc::{SchemeDoc, Series};
use crate::net::ecn::EcnDefaults;
use crate::parameters::{Parameters, Value};
use crate::telemetry::TelemetryConfig;
use crate::transport::TransportConfig;
use crate::transport::controllers::{Controllers, DEFAULT_WINDOW};
use crate::transport::parameters::{
    Facts, Framing, HostPlan, Overtaken, Pace, ReadContext, Resends, RunContext, TransportParameters,
    derived_times,
};
use crate::transport::plb::{self, PlbParameters};
use crate::transport::switches::SwitchDefaults;
use crate::transport::wire_format::WireFormat;
use crate::units::{Bytes, Rate, Time};

const PROFILES: &[(&str, &str)] = &[
    ("rfc", "current RFCs, and Linux where they leave a choice"),
    ("ns3-3.35", "ns-3.35 as configured for the Cebinae paper (SIGCOMM 2022)"),
];
const RECOVERIES: &[(&str, &str)] =
    &[("prr", "proportional rate reduction (RFC 6937)"), ("threshold", "the threshold at once (RFC 6675)")];
const BOUNDS: &[(&str, &str)] = &[
    (
        "progress",
        "one segment more per acknowledgement that makes progress and indicates no new loss (RFC 9937)",
    ),
    ("slow-start", "one segment more per acknowledgement (RFC 6937, SSRB)"),
    ("conservative", "the number of delivered bytes (RFC 6937, CRB)"),
    ("retransmitted", "one segment more per acknowledgement of a retransmission (ns-3.35)"),
];
const DOUBTFULS: &[(&str, &str)] = &[
    ("below", "those below the highest that has arrived (RFC 6675)"),
    ("none", "none (Linux)"),
    ("any", "any (ns-3.35)"),
];
const DETECTIONS: &[(&str, &str)] = &[
    (
        "rack",
        "by time: a segment sent later has arrived, and a reordering window has passed (RFC 8985; Linux)",
    ),
    ("sack", "by count: dup_threshold later segments have arrived (RFC 6675; ns-3.35)"),
];
const FLIGHTS: &[(&str, &str)] = &[
    ("outstanding", "all unacknowledged bytes, up to the window (RFC 5681)"),
    ("pipe", "without bytes that are lost or have arrived out of order (ns-3.35)"),
];
const REACTIONS: &[(&str, &str)] = &[
    ("rfc", "as in RFC 5681, RFC 6675, RFC 6582 and RFC 6298"),
    ("ns3-3.35", "as in ns-3.35 (docs/schemes/tcp.md)"),
];
const RESTARTS: &[(&str, &str)] = &[
    ("each", "each partial acknowledgement (RFC 6582, slow-but-steady)"),
    ("first", "only the first one (RFC 6582, impatient; ns-3.35)"),
];
const RTTS: &[(&str, &str)] =
    &[("sample", "the sample"), ("smoothed", "the smoothed time, with every acknowledgement (ns-3.35)")];
const MIN_RTO_BOUNDS: &[(&str, &str)] = &[
    ("spread", "the part beyond the smoothed time: SRTT + max(rto_min, 4 RTTVAR) (Linux)"),
    ("whole", "the whole timeout: max(rto_min, SRTT + 4 RTTVAR) (RFC 6298)"),
];
const ECHOES: &[(&str, &str)] = &[
    ("auto", "\"exact\" with DCTCP, else \"off\""),
    ("off", "packets are not ECN-capable"),
    ("classic", "a mark is echoed until the sender says that it has reduced its window (RFC 3168)"),
    ("exact", "the mark of every packet is echoed (RFC 8257)"),
];
const PACINGS: &[(&str, &str)] = &[
    ("controller", "if the controller does: BBR paces, others do not"),
    ("window", "every flow, at window / RTT times 2 in slow start and times 1.2 after it (Linux)"),
    ("off", "none"),
];

/// Shorter ones end before any answer can come, and everything is sent again for ever.
const MIN_RTO: Time = Time::from_us(1);
const MAX_RTO: Time = Time::from_ms(1_000_000);
/// Bounds of what `rto_syn = "auto"` gives.
const MIN_SYN_RTO: Time = Time::from_ms(1);
const MAX_SYN_RTO: Time = Time::from_ms(1000);
const MAX_BUFFER: Bytes = Bytes((1 << 30) - 1);

/// Which profile the keys of TCP and of its controller follow.
fn profile(p: &mut Parameters) -> Profile {
    let help = "implementation whose behaviour the defaults follow; every difference has its own key";
    match p.choice("profile", "rfc", PROFILES, help) {
        "ns3-3.35" => Profile::Ns3_35,
        _ => Profile::Rfc,
    }
}

impl TransportParameters for TcpConfig {
    const DOC: SchemeDoc = SchemeDoc {
        name: "tcp",
        title: "a byte stream with a handshake, windows, SACK and timeouts, with NewReno, Cubic, Vegas and others",
        source: "RFC 9293, with RFC 5681, 6298, 6582, 6675, 6937, 7323 and 3168; profile \"ns3-3.35\": the models \
                 of the Cebinae paper's results (SIGCOMM 2022)",
        validation: "Rules of the standards by hand; sharing of links and recovery from loss in whole runs \
                     (tests/tcp.rs); page: docs/schemes/tcp.md.",
        series: &[
            Series::new("ssthresh_bytes", "bytes", "Slow-start threshold; infinite until something sets it."),
            Series::new("in_flight_bytes", "bytes", "Bytes taken to be in flight (pipe of RFC 6675)."),
            Series::new("srtt_ns", "ns", "Smoothed round-trip time; 0: none yet."),
            Series::new("rto_ns", "ns", "Retransmission timeout."),
            plb::SERIES[0],
            plb::SERIES[1],
        ],
        ..SchemeDoc::NONE
    };
    const CONTROLLERS: Controllers = Controllers::Windows { default: DEFAULT_WINDOW, several_paths: false };
    type State = Box<Tcp>;

    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<TcpConfig> {
        let profile = profile(p);
        let (controller, known) = Self::CONTROLLERS.read_window(p, profile)?;
        let config = read(p, profile, controller, Wire::of(profile), cx);
        known.then_some(config)
    }

    fn of(transport: &TransportConfig) -> Option<&TcpConfig> {
        if let TransportConfig::Tcp(own) = transport { Some(own) } else { None }
    }

    fn classes(&self) -> u8 {
        1 << self.class
    }

    fn framing(&self, _telemetry: &TelemetryConfig) -> Framing {
        Framing { acks_each: self.ack.every == 1, ..Framing::of(self.mss, self.header, self.ack_header) }
    }

    fn data_header(&mut self) -> &mut u32 {
        &mut self.header
    }

    fn facts(&self) -> Facts<'_> {
        let (application, mss) = (&self.application, u64::from(self.mss.max(1)));
        Facts {
            keeps_connections: application.rate.is_none(),
            fills_queue: true,
            overtaken: match self.recovery.rack {
                Some(_) => Overtaken::WaitedFor {
                    why: "the reordering window of loss detection by time is 0 at first and at most one round trip \
                          (RFC 8985 §6.2)",
                },
                None => Overtaken::LostAfter {
                    packets: self.recovery.dup_threshold,
                    why: "segments count as lost after a number of later segments have arrived",
                    instead: "transport.loss_detection = \"rack\"",
                },
            },
            controller_name: Some(self.controller.name()),
            marked_controller: self.controller.needs_marks().then(|| self.controller.name()),
            // Without ECN its packets cannot be marked.
            heeds_marks: self.ecn == EcnEcho::Off || self.controller.heeds_marks(),
            queue_at_marks: self.controller.queue_at_marks(),
            delay_controller: self.controller.follows_delay().then(|| self.controller.name()),
            longest_timeout: self.rto.longest_first(),
            // A probe comes no later than the retransmission timeout.
            loss_probe: self
                .recovery
                .rack
                .filter(|rack| rack.probes)
                .map(|rack| rack.ack_delay.min(self.rto.min)),
            resends: Some(Resends { after: self.rto.min, doubles: true }),
            openings: Some(self.syn_retries + 1),
            spreads_flows: self.plb.is_some(),
            control_packets: [if self.fin { 6 } else { 3 }, 0],
            first_window: Some(self.initial_window),
            answers: self.ack.answers(),
            // Of a buffer, whole segments.
            in_flight: Some(self.send_buffer.min(self.receive_buffer) / mss * mss),
            applications: [
                application.rate.map(|rate| Pace { rate, ahead: application.message.into() }),
                application.read_rate.map(|rate| Pace { rate, ahead: self.receive_buffer }),
            ],
            ns_per_hop: WINDOW_NS_PER_HOP,
            ..Facts::default()
        }
    }

    fn window_at_loss(&self, loss: f64, round_trip: Time) -> Option<f64> {
        self.controller.window_at_loss(loss, round_trip)
    }

    fn longest_times(&self) -> Vec<TimeKey> {
        self.controller.longest_times()
    }

    fn switch_defaults(&self) -> SwitchDefaults {
        SwitchDefaults {
            marks: self.ecn != EcnEcho::Off,
            ecn: if self.ecn == EcnEcho::Exact { EcnDefaults::Step } else { EcnDefaults::Ramp },
            ..SwitchDefaults::LOSSY
        }
    }

    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        let base_rtt = self.base_rtt(run);
        let mut figures = vec![
            ("controller", Some(self.controller.name().into())),
            ("base_rtt_ns", Some(base_rtt.as_ns().into())),
            ("data_packet_bytes", Some(self.packet().into())),
            ("ack_bytes", Some(self.ack_header.into())),
            ("send_buffer_bytes", Some(self.send_buffer.into())),
            ("receive_buffer_bytes", Some(self.receive_buffer.into())),
            ("rto_ns", Some(self.rto.min.as_ns().into())),
        ];
        figures.extend(derived_times(&self.controller, base_rtt));
        figures
    }

    fn warnings(&self, run: &RunContext) -> Vec<String> {
        self.warnings_as(Self::DOC.name, 1, run)
    }

    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Segments(self)
    }

    fn settle(&mut self, run: &RunContext) {
        let base_rtt = self.base_rtt(run);
        self.plb.iter_mut().for_each(|plb| plb.settle(base_rtt));
        self.controller.settle(base_rtt);
    }

    fn start(&self, host: &HostPlan) -> Box<Tcp> {
        Box::new(Tcp::new(host.ports))
    }
}

/// The timeout of a SYN: of RFC 6298 for a path of which nothing is known, 1 s, for it must be safe on any.
/// Of this network the round trip and the longest queue are known. Ten round trips are that second at 100 ms.
fn syn_timeout(cx: &ReadContext, mss: u32) -> Time {
    let round_trips = Time((cx.base_rtt)(mss).0.saturating_mul(10));
    round_trips.max(cx.drain).clamp(MIN_SYN_RTO, MAX_SYN_RTO)
}

/// Reads the settings of TCP, once the profile and the controller are known.
pub fn read(
    p: &mut Parameters,
    profile: Profile,
    controller: WindowConfig,
    wire: Wire,
    cx: &ReadContext,
) -> TcpConfig {
    let wire = wire.read(p);
    let help = "traffic class of all packets, for pauses and for queues with classes";
    let class = p.integer("class", 1, (1, 7), help) as u8;
    let help = "send buffer: bytes that the application may write beyond the last acknowledged byte (Linux: 4 MiB; \
         ns3-3.35: 2 MiB)";
    let send_buffer = buffer(p, "send_buffer", profile.pick(4 << 20, 2 << 20), wire.mss, help);
    let help = "receive buffer: bytes that the receiver accepts beyond the last byte in order, which is its window \
                (Linux: 6 MiB; ns3-3.35: 2 MiB)";
    let receive_buffer = buffer(p, "receive_buffer", profile.pick(6 << 20, 2 << 20), wire.mss, help);
    let help = "initial window in segments (RFC 6928: 10)";
    let initial_window = p.integer("initial_window", 10, (1, 1000), help) as u32;
    let mut ack = acknowledgements(p, profile, &controller, cx);
    let recovery = recovery(p, profile);
    let rtt = round_trips(p, profile);
    if recovery.reactions.answers_first {
        (ack.stamp_clock, ack.first_at_once) = (rtt.clock, true);
    }
    let rto = timeouts(p, profile, syn_timeout(cx, wire.mss));
    // Linux compares with its own timeout, which a receiver does not know here.
    ack.idle = rto.min;
    let ecn = echo(p, &controller);
    let pacing = match p.choice("pacing", "controller", PACINGS, "whether packets are paced") {
        "window" => TcpPacing::Window,
        "off" => TcpPacing::Off,
        _ => TcpPacing::Controller,
    };
    let help = "segments that are sent unpaced at the start of a connection (ns3-3.35: 10)";
    let unpaced = p.integer("unpaced", profile.pick(0, 10), (0, 1 << 20), help) as u32;
    let help = "the window grows only while it limits the sender, and restarts from the initial window after the \
                sender was idle for a timeout; time in which the window is not used does not count for Cubic (RFC \
                7661, RFC 5681 §4.1, as in Linux; RFC 9438 §5.8; ns3-3.35: false)";
    let window_validation = p.flag("window_validation", profile.pick(true, false), help);
    let help = "consecutive timeouts after which a connection is aborted and its flow stays unfinished (Linux: 15; \
                ns3-3.35: 6)";
    let retries = p.integer("retries", profile.pick(15, 6), (1, 1000), help) as u32;
    let help = "retransmissions of a SYN before a connection is aborted (Linux, ns3-3.35: 6, which from a first timeout of 1 s on \
                takes 127 s; here as many more as it takes for that where rto_syn is shorter)";
    let syn_retries = p.integer("syn_retries", profile.pick(tries(rto.syn), 6), (0, 1000), help) as u32;
    let help = "a short segment waits while any data is unacknowledged (RFC 9293 §3.7.4)";
    let nagle = p.flag("nagle", true, help);
    let help = "a flow that ends sends the three packets of a close, each of ack_header bytes; the flow still \
                completes with the acknowledgement of its last byte, and these packets are not retransmitted";
    let fin = p.flag("fin", false, help);
    let application = application(p, wire.mss);
    let plb = PlbParameters::read(p, plb::ROUNDS_OF_MARKS);
    if ecn == EcnEcho::Off && plb.is_some_and(|plb| plb.needs_marks()) {
        p.complain(
            "plb",
            "\"marks\" needs ECN, which is off: set transport.ecn = \"exact\", or plb = \"delay\"".into(),
        );
    }
    TcpConfig {
        application,
        controller,
        mss: wire.mss,
        header: wire.header,
        ack_header: wire.ack_header,
        syn_header: wire.syn_header,
        sack_header: wire.sack_header,
        class,
        send_buffer,
        receive_buffer,
        initial_window,
        ack,
        recovery,
        rtt,
        rto,
        ecn,
        pacing,
        unpaced,
        window_validation,
        nagle,
        fin,
        retries,
        syn_retries,
        plb,
    }
}

/// Bytes of packets.
pub struct Wire {
    pub mss: u32,
    pub header: u32,
    pub ack_header: u32,
    pub syn_header: u32,
    pub sack_header: u32,
}

impl Wire {
    /// What a profile's packets have.
    pub fn of(profile: Profile) -> Wire {
        Wire {
            mss: profile.pick(1448, 1440),
            header: profile.pick(66, 54),
            ack_header: profile.pick(66, 54),
            syn_header: profile.pick(74, 58),
            sack_header: profile.pick(4, 0),
        }
    }

    /// What a scenario says of them; these where it does not.
    fn read(self, p: &mut Parameters) -> Wire {
        wire(p, self)
    }
}

fn wire(p: &mut Parameters, default: Wire) -> Wire {
    let help = "payload of a full segment (1500 B of IP with timestamps: 1448 B; ns3-3.35: 1440 B; mptcp: 24 B less, for its mapping)";
    let mss = p.size("mss", (default.mss, 64, 9000), help);
    let help = "header of a data packet (rfc: Ethernet 14, IP 20, TCP 20, timestamps 12; ns3-3.35: 2 in place of 14; mptcp: 24 B more, for its \
                mapping)";
    let header = p.size("header", (default.header, 0, 1000), help);
    let help = "bytes of an acknowledgement without SACK blocks (the same headers; mptcp: 12 B more, for the data acknowledgement)";
    let ack_header = p.size("ack_header", (default.ack_header, 1, 1000), help);
    let help = "bytes of a SYN with its options (rfc: 74; ns3-3.35: 58; mptcp: its option is added to this)";
    let syn_header = p.size("syn_header", (default.syn_header, 1, 1000), help);
    let help = "bytes that SACK blocks add to an acknowledgement in addition to 8 per block (rfc: 4; ns3-3.35: 0, \
                because they fill the padding of the timestamps)";
    let sack_header = p.size("sack_header", (default.sack_header, 0, 40), help);
    Wire { mss, header, ack_header, syn_header, sack_header }
}

fn buffer(p: &mut Parameters, key: &'static str, default: u64, mss: u32, help: &'static str) -> u64 {
    let given = p.bytes(key, Bytes(default), help);
    let min = Bytes(2 * u64::from(mss));
    if (min..=MAX_BUFFER).contains(&given) {
        return given.0;
    }
    let message = format!(
        "{given} is out of range: expected at least two segments, {min}, and at most \
                           {MAX_BUFFER}"
    );
    p.complain(key, message);
    default
}

fn acknowledgements(
    p: &mut Parameters,
    profile: Profile,
    controller: &WindowConfig,
    cx: &ReadContext,
) -> AckConfig {
    let help = "segments in order per acknowledgement (RFC 5681: 2; 1 with controllers that take a delayed one for delay; \
                ns3-3.35 as configured for the paper: 1)";
    let every = if controller.acks_at_once() { 1 } else { profile.pick(2, 1) };
    let every = p.integer("ack_every", every, (1, 1000), help) as u32;
    let help = "maximum delay of an acknowledgement (Linux: 40 ms; ns3-3.35: 200 ms; RFC 9293: below 500 ms)";
    let delay = p.time("ack_delay", Time::from_ms(profile.pick(40, 200)), help);
    if delay > Time::from_ms(10_000) {
        p.complain("ack_delay", format!("expected at most 10s, found {delay}"));
    }
    let help = "with ack_every above 1: number of segments that are acknowledged at once, at the start of a \
                connection, after a pause longer than rto_min, and after a segment that arrived twice (Linux: \
                TCP_MAX_QUICKACKS, 16; ns3-3.35: 0); 0: none";
    let default = if cx.rules.like == "none" { profile.pick(16, 0) } else { 0 };
    let quick = p.integer("quick_acks", default, (0, 1000), help) as u32;
    let help = "the receiver reports data that arrived twice (D-SACK, RFC 2883; ns3-3.35: false)";
    let duplicates = p.flag("dsack", profile.pick(true, false), help);
    let help = "number of out-of-order blocks that a receiver remembers for its reports, the newest; 0: all \
                (ns3-3.35: 4)";
    let remembers = p.integer("sack_memory", profile.pick(0, 4), (0, 1 << 20), help) as u32;
    AckConfig {
        every,
        first_at_once: false,
        delay,
        quick,
        idle: Time::MAX,
        stamp_clock: Time::ZERO,
        remembers,
        duplicates,
    }
}

fn recovery(p: &mut Parameters, profile: Profile) -> RecoveryConfig {
    let window = p.choice("recovery", "prr", RECOVERIES, "the window during fast recovery");
    let help =
        "with recovery = \"prr\": bytes that may be sent once the pipe is below the threshold (RFC 6937 §3)";
    let bound = p.choice("prr_bound", profile.pick("progress", "retransmitted"), BOUNDS, help);
    let help = "with recovery = \"prr\": products of byte counts wrap at 32 bits, which delays sending with windows \
                above about 64 KB until the pipe is at the threshold (ns3-3.35: true)";
    let wraps = p.flag("prr_wraps", profile.pick(false, true), help);
    let help = "which segments recovery sends again when no segment counts as lost and no new one can be sent \
                (NextSeg rule 3)";
    let doubtful = p.choice("doubtful", profile.pick("below", "any"), DOUBTFULS, help);
    let bound = match bound {
        "slow-start" => PrrBound::SlowStart,
        "conservative" => PrrBound::Conservative,
        "retransmitted" => PrrBound::Retransmitted,
        _ => PrrBound::Progress,
    };
    let help = "segments that must have arrived beyond a hole before it counts as lost (RFC 6675: 3)";
    let dup_threshold = p.integer("dup_threshold", 3, (1, 1 << 20), help) as u32;
    let help = "the first duplicate acknowledgements allow new segments to be sent (RFC 3042)";
    let limited_transmit = p.flag("limited_transmit", true, help);
    let help = "the bytes in flight from which the threshold is computed";
    let flight = p.choice("flight", profile.pick("outstanding", "pipe"), FLIGHTS, help);
    let help = "which partial acknowledgements restart the timeout during recovery";
    let restart = p.choice("rto_restart", profile.pick("each", "first"), RESTARTS, help);
    let help = "reactions to acknowledgements and timeouts: when recovery begins and ends, what is sent \
                immediately, what counts as in flight";
    let reactions = p.choice("reactions", profile.pick("rfc", "ns3-3.35"), REACTIONS, help);
    let f_rto = f_rto(p, profile, reactions == "rfc");
    RecoveryConfig {
        f_rto,
        rack: rack(p, profile, reactions == "rfc"),
        window: match window {
            "prr" => RecoveryWindow::Prr(PrrConfig { bound, wraps }),
            _ => RecoveryWindow::Threshold,
        },
        dup_threshold,
        limited_transmit,
        doubtful: match doubtful {
            "none" => Doubtful::None,
            "any" => Doubtful::Any,
            _ => Doubtful::Below,
        },
        flight: if flight == "pipe" { Flight::Pipe } else { Flight::Outstanding },
        restart_each: restart == "each",
        reactions: if reactions == "rfc" { Reactions::default() } else { like_ns3::REACTIONS },
    }
}

fn f_rto(p: &mut Parameters, profile: Profile, possible: bool) -> bool {
    let help = "after a timeout two new segments probe whether it was spurious; if it was, its effects are undone \
                (F-RTO, RFC 5682; Linux: true; ns3-3.35: false)";
    let asks = p.flag("f_rto", possible && profile.pick(true, false), help);
    if asks && !possible {
        p.complain("f_rto", "ns-3.35 has no F-RTO: expected false, or reactions = \"rfc\"".into());
    }
    asks && possible
}

fn rack(p: &mut Parameters, profile: Profile, possible: bool) -> Option<RackConfig> {
    let help = "when a segment counts as lost";
    let default = if possible { profile.pick("rack", "sack") } else { "sack" };
    let detection = p.choice("loss_detection", default, DETECTIONS, help);
    if detection == "rack" && !possible {
        p.complain(
            "loss_detection",
            "ns-3.35 counts segments: expected \"sack\", or reactions = \"rfc\"".into(),
        );
    }
    let help = "with loss_detection = \"rack\": a segment is sent two round trips after the last one of a flight, \
                so that losses at its end are detected (RFC 8985 §7)";
    let probes = p.flag("loss_probe", true, help);
    let help = "with loss_probe: maximum time for which the peer may delay the acknowledgement of a single segment \
                (Linux: 200 ms)";
    let ack_delay = p.time("loss_probe_ack_delay", Time::from_ms(200), help);
    if ack_delay > Time::from_ms(10_000) {
        p.complain("loss_probe_ack_delay", format!("expected at most 10s, found {ack_delay}"));
    }
    (detection == "rack").then_some(RackConfig { probes, ack_delay })
}

fn round_trips(p: &mut Parameters, profile: Profile) -> RttConfig {
    let help =
        "tick of the timestamp clock, in which round-trip times are measured; 0us: exact (ns3-3.35: 1 ms)";
    let clock = p.time("rtt_clock", Time::from_ms(profile.pick(0, 1)), help);
    let help = "round-trip time that is passed to controllers";
    let smoothed = p.choice("rtt", profile.pick("sample", "smoothed"), RTTS, help) == "smoothed";
    let help = "the handshake gives the first RTT sample";
    let handshake = p.flag("handshake_rtt", true, help);
    let help = "segments that were sent twice give no RTT sample, although timestamps show which transmission was \
         acknowledged (ns3-3.35: true)";
    let karn = p.flag("karn", profile.pick(false, true), help);
    RttConfig { clock, smoothed, handshake, karn }
}

fn timeouts(p: &mut Parameters, profile: Profile, syn_timeout: Time) -> RtoConfig {
    let second = Time::from_ms(1000);
    let initial = timeout(
        p,
        "rto_initial",
        second,
        "retransmission timeout before the first RTT sample (RFC 6298: 1 s)",
    );
    let help = "retransmission timeout of the first SYN; auto: the maximum of 1 ms, ten base RTTs, and the time in \
                which the slowest link empties a switch's buffer, but at most the 1 s of RFC 6298, which holds for \
                paths of any length (ns3-3.35: 3 s)";
    let syn = p.time_or_derived("rto_syn", profile.pick(syn_timeout, Time::from_ms(3000)), help);
    let syn = within_bounds(p, "rto_syn", syn, syn_timeout);
    let help = "minimum retransmission timeout (Linux: 200 ms; ns3-3.35: 1 s)";
    let min = timeout(p, "rto_min", Time::from_ms(profile.pick(200, 1000)), help);
    let bounds =
        p.choice("rto_min_of", profile.pick("spread", "whole"), MIN_RTO_BOUNDS, "what rto_min bounds");
    let help = "maximum retransmission timeout, however often it is doubled (RFC 6298: 60 s)";
    let max = timeout(p, "rto_max", Time::from_ms(profile.pick(120_000, 60_000)), help);
    if max < min {
        p.complain("rto_max", format!("expected at least rto_min ({min}), found {max}"));
    }
    let help = "clock granularity G: minimum of 4 RTTVAR (ns3-3.35: 1 ms)";
    let granularity = p.time("rto_granularity", Time::from_us(profile.pick(1, 1000)), help);
    RtoConfig { initial, syn, min, max, granularity, min_bounds_variance: bounds == "spread" }
}

fn timeout(p: &mut Parameters, key: &'static str, default: Time, help: &'static str) -> Time {
    let time = p.time(key, default, help);
    within_bounds(p, key, time, default)
}

fn within_bounds(p: &mut Parameters, key: &'static str, time: Time, default: Time) -> Time {
    if (MIN_RTO..=MAX_RTO).contains(&time) {
        return time;
    }
    p.complain(key, format!("expected a time from {MIN_RTO} to {MAX_RTO}, found {time}"));
    default
}

/// Retransmissions of a SYN, each after twice the time of the one before, within the time that six take from 1 s on.
fn tries(first: Time) -> i64 {
    let shorter = Time::from_ms(1000).0.div_ceil(first.0.max(1));
    6 + i64::from(shorter.next_power_of_two().ilog2())
}

fn echo(p: &mut Parameters, controller: &WindowConfig) -> EcnEcho {
    match p.choice("ecn", "auto", ECHOES, "explicit congestion notification") {
        "classic" => EcnEcho::Classic,
        "exact" => EcnEcho::Exact,
        "auto" if controller.name() == "dctcp" => EcnEcho::Exact,
        _ => EcnEcho::Off,
    }
}

fn application(p: &mut Parameters, mss: u32) -> ApplicationConfig {
    let help = "rate at which the application writes payload, in messages that are skipped when the send buffer is \
                full; auto: everything at once, limited only by the buffer";
    let rate = p.rate_or_auto("app_rate", help);
    if rate == Some(Rate(0)) {
        p.complain(
            "app_rate",
            "an application that writes nothing would never end: expected a rate above 0".into(),
        );
    }
    let help = "with app_rate: bytes of a message; auto: one segment";
    let message = p.bytes_or_auto("app_message", help);
    if rate.is_none() && message.is_some() {
        p.without_effect("app_message", || "has no effect without app_rate".into());
    }
    let message = message.unwrap_or(Bytes(u64::from(mss)));
    if !(1..=1 << 20).contains(&message.0) {
        p.complain("app_message", format!("expected 1B to 1MiB, found {message}"));
    }
    let help = "rate at which the receiving application reads payload; the window closes when the buffer is full; \
                auto: immediately";
    let read_rate = p.rate_or_auto("app_read_rate", help);
    if read_rate == Some(Rate(0)) {
        let why = "an application that reads nothing would never end: expected a rate above 0";
        p.complain("app_read_rate", why.into());
    }
    ApplicationConfig {
        rate: rate.filter(|rate| rate.0 > 0),
        message: message.0.clamp(1, 1 << 20) as u32,
        read_rate: read_rate.filter(|rate| rate.0 > 0),
    }
}
