//! The keys of `transport.kind = "mptcp"`: those of TCP, of each subflow, and these.
//!
//! Source: RFC 8684; where it leaves a choice Linux 6 (named at the keys) and Raiciu et al., NSDI 2012.

use super::Mptcp;
use super::sender::SUBFLOW_WINDOWS;
use super::stream::MAX_SUBFLOWS;
use crate::congestion::window::{Profile, TimeKey};
use crate::doc::{SchemeDoc, Series};
use crate::engine::random::RandomStream;
use crate::parameters::{Parameters, Value};
use crate::telemetry::TelemetryConfig;
use crate::transport::TransportConfig;
use crate::transport::controllers::Controllers;
use crate::transport::parameters::{
    Answers, Facts, Framing, HostPlan, ReadContext, RunContext, TransportParameters,
};
use crate::transport::switches::SwitchDefaults;
use crate::transport::tcp::{self, TcpConfig, Wire};
use crate::transport::wire_format::WireFormat;
use crate::units::Time;

const SCHEDULERS: &[(&str, &str)] = &[
    ("min-rtt", "of the subflows with room, the one with the shortest round-trip time"),
    ("round-robin", "the subflows with room, in turn"),
    ("redundant", "every subflow carries everything"),
    (
        "linux",
        "the subflow whose buffer is empty soonest at its pacing rate, for 65 428 B at a time; while that buffer (some three of the \
         subflow's largest windows so far, as the kernel sizes it) is full, no subflow gets new data; data wait there for the window, \
         so opportunistic and penalise are off, and what is sent again goes to idle subflows alone",
    ),
];
const JOINS: &[(&str, &str)] = &[
    (
        "confirmed",
        "after the first data acknowledgement; data once the join is confirmed (RFC 8684 §3.2, Linux)",
    ),
    (
        "announced",
        "when the other end announces an address for each (ADD_ADDR, RFC 8684 §3.4.1), the next once the one before is known; data once \
         the join is confirmed",
    ),
    ("at-once", "with the third packet of the handshake; data after one more round trip"),
];

/// Bytes that the mapping adds to a data packet, and the data acknowledgement to an acknowledgement (RFC 8684
/// §3.3: 64 bits of data sequence number, padded).
const MAPPING: u32 = 24;
const DATA_ACK: u32 = 12;
/// A port is a byte: beyond it there are none to open another from.
const MAX_REJOIN: Time = Time::from_ms(1_000_000);

#[derive(Debug, Clone, PartialEq)]
pub struct MptcpConfig {
    /// Of each subflow; buffers are the connection's.
    pub tcp: TcpConfig,
    /// 0: RFC 6824; 1: RFC 8684.
    pub version: u8,
    /// Subflows that the initiator opens, each from a port of its own.
    pub subflows: u8,
    pub join: JoinRule,
    pub scheduler: SchedulerKind,
    /// Selective blocks that fit an acknowledgement beside its data acknowledgement.
    pub sack_blocks: u32,
    /// Timeouts in a row after which a subflow is given up, if there is another.
    pub fail_after: u32,
    /// A subflow that was given up is opened anew after this time, from another port; zero: never.
    pub rejoin: Time,
    /// What a subflow that times out has not got across is sent by others too.
    pub reinject: bool,
    /// When the shared window or the send buffer is full, a subflow with room sends what others hold up.
    pub opportunistic: bool,
    /// The subflow that held it up halves its window then.
    pub penalise: bool,
    /// Mappings have a checksum.
    pub checksum: bool,
    /// Share of the hosts that support multipath TCP.
    pub capable: f64,
}

impl MptcpConfig {
    /// The number of the address at the other end that a subflow from this port goes to.
    pub fn address_of(&self, port: u8) -> u8 {
        match self.join {
            JoinRule::Announced => port % self.subflows,
            JoinRule::Confirmed | JoinRule::AtOnce => 0,
        }
    }

    /// Whether a host supports multipath TCP, which follows from the seed alone.
    pub fn is_capable(&self, host: u32, seed: u64) -> bool {
        self.capable >= 1.0 || RandomStream::new(seed, &format!("mptcp.host{host}")).uniform() < self.capable
    }
}

/// When further subflows are opened, and when they may carry data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinRule {
    /// Once data was acknowledged; data once the third packet of the join was (RFC 8684 §3.2).
    Confirmed,
    /// Each when the other end announces an address for it (§3.4.1); data as above.
    Announced,
    /// With the third packet of the handshake; data after a round trip.
    AtOnce,
}

/// Which subflow gets the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerKind {
    /// Of those with room, the one with the shortest round-trip time.
    MinRtt,
    /// Those with room, in turn.
    RoundRobin,
    /// All: each carries everything.
    Redundant,
    /// The one whose buffer is empty soonest, for a burst; none while that buffer is full.
    Linger,
}

/// What it shows of a flow over time.
const SERIES: [Series; 3 + MAX_SUBFLOWS] = {
    let text = "Window of the subflow of that number, while it is up.";
    let mut all = [Series::new("", "bytes", text); 3 + MAX_SUBFLOWS];
    let in_flight = "Bytes taken to be in flight, of all subflows (pipe of RFC 6675).";
    all[0] = Series::new("subflows", "", "Subflows of the connection that are up.");
    all[1] = Series::new("in_flight_bytes", "bytes", in_flight);
    all[2] = Series::new("reinjected_bytes", "bytes", "Data that was sent on a second subflow.");
    let mut number = 0;
    while number < MAX_SUBFLOWS {
        all[3 + number].name = SUBFLOW_WINDOWS[number];
        number += 1;
    }
    all
};

impl TransportParameters for MptcpConfig {
    const DOC: SchemeDoc = SchemeDoc {
        name: "mptcp",
        title: "a byte stream over several TCP subflows, coupled (LIA, OLIA, BALIA) or not, with reinjection (RFC 8684)",
        source: "RFC 8684 and RFC 6824, with RFC 6356; Raiciu et al., \"How hard can it be? Designing and implementing a deployable \
                 multipath TCP\", NSDI 2012; subflows as under \"tcp\"",
        validation: "Durations of a handshake and of one window follow from the links; flows over several subflows \
                     complete; no connection hangs, whichever packets are lost (tests/mptcp.rs).",
        series: &SERIES,
        ..SchemeDoc::NONE
    };
    /// RFC 6356 by default.
    const CONTROLLERS: Controllers = Controllers::Windows { default: "lia", several_paths: true };
    type State = Box<Mptcp>;

    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<MptcpConfig> {
        let (controller, known) = Self::CONTROLLERS.read_window(p, Profile::Rfc)?;
        let wire = Wire::of(Profile::Rfc);
        let wire = Wire {
            mss: wire.mss - MAPPING,
            header: wire.header + MAPPING,
            ack_header: wire.ack_header + DATA_ACK,
            ..wire
        };
        let tcp = tcp::read(p, Profile::Rfc, controller, wire, cx);
        refuse_what_is_not_modelled(p, &tcp);
        let help = "subflows of a connection, each with its own source port; on a host with several NICs they use \
                    the NICs in turn";
        let subflows = p.integer("subflows", 4, (1, MAX_SUBFLOWS as i64), help) as u8;
        let help = "version of MPTCP: 0 (RFC 6824: SHA-1) or 1 (RFC 8684: SHA-256)";
        let version = p.integer("version", 1, (0, 1), help) as u8;
        let scheduler =
            match p.choice("scheduler", "min-rtt", SCHEDULERS, "which subflow gets the next segment") {
                "round-robin" => SchedulerKind::RoundRobin,
                "redundant" => SchedulerKind::Redundant,
                "linux" => SchedulerKind::Linger,
                _ => SchedulerKind::MinRtt,
            };
        let join = match p.choice("join", "confirmed", JOINS, "when further subflows are opened") {
            "announced" => JoinRule::Announced,
            "at-once" => JoinRule::AtOnce,
            _ => JoinRule::Confirmed,
        };
        if join == JoinRule::Announced && version == 0 {
            let message =
                "\"announced\" needs version = 1: in version 0 nothing says that an address has come";
            p.complain("join", message.to_string());
        }
        let help = "SACK blocks that fit in an acknowledgement together with a data acknowledgement and timestamps \
                    (2 with data acknowledgements of 32 bits; 1 with 64 bits, as in Linux)";
        let sack_blocks = p.integer("sack_blocks", 2, (0, 2), help) as u32;
        let help =
            "timeouts in a row after which a subflow is given up, if there is another (Linux: stale after 4)";
        let fail_after = p.integer("fail_after", 4, (1, 1000), help) as u32;
        let help = "a subflow that was given up is opened again after this time, by its own NIC from another port, \
                    and while it receives no answer it tries again at least once in this time; 0s: it is kept \
                    instead, and used again when it answers (ours)";
        let mut rejoin = p.time("rejoin", Time::from_ms(1000), help);
        if rejoin > MAX_REJOIN {
            p.complain("rejoin", format!("expected at most {MAX_REJOIN}, found {rejoin}"));
            rejoin = MAX_REJOIN;
        }
        let help = "data that are unacknowledged on a subflow that times out are also sent on other subflows (RFC \
                    8684 §3.3.6)";
        let reinject = p.flag("reinject", true, help);
        let help = "a subflow with room in its window resends the segment that blocks the shared window or the send buffer, \
                    once, if those that carry it have more than twice its round-trip time, or are late (Raiciu et \
                    al., NSDI 2012, §4.2)";
        let unblocks = scheduler != SchedulerKind::Linger;
        let opportunistic = p.flag("opportunistic", unblocks, help);
        let help = "with opportunistic: the slower subflow that blocked them halves its own window, at most once per \
                    round trip (the same paper)";
        let penalise = p.flag("penalise", unblocks, help);
        let help = "mappings have a checksum (RFC 8684 §3.3); it takes the room of padding, so that results stay as they are, \
                    and captures show it";
        let checksum = p.flag("checksum", false, help);
        let help = "share of the hosts that support multipath TCP; the seed chooses them. A connection from or to any other \
                    falls back to one subflow of TCP (RFC 8684 §3.7)";
        let capable = p.number("capable", 1.0, (0.0, 1.0), help);
        let config = MptcpConfig {
            tcp,
            version,
            subflows,
            join,
            scheduler,
            sack_blocks,
            fail_after,
            rejoin,
            reinject,
            opportunistic,
            penalise,
            checksum,
            capable,
        };
        known.then_some(config)
    }

    fn of(transport: &TransportConfig) -> Option<&MptcpConfig> {
        if let TransportConfig::Mptcp(own) = transport { Some(own) } else { None }
    }

    fn classes(&self) -> u8 {
        self.tcp.classes()
    }

    fn framing(&self, telemetry: &TelemetryConfig) -> Framing {
        self.tcp.framing(telemetry)
    }

    fn data_header(&mut self) -> &mut u32 {
        &mut self.tcp.header
    }

    fn base_rtt(&self, run: &RunContext) -> Time {
        self.tcp.base_rtt(run)
    }

    fn facts(&self) -> Facts<'_> {
        let of_subflow = self.tcp.facts();
        Facts {
            keeps_connections: true,
            heeds_marks: of_subflow.heeds_marks,
            spreads_flows: true,
            one_nic: Some("every subflow has its own NIC, so that flows use all of them"),
            subflows: Some(self.subflows),
            longest_timeout: of_subflow.longest_timeout.max(self.rejoin),
            // A join takes four packets (RFC 8684 §3.2); short flows, of which they are a large part, end before the fourth.
            control_packets: [of_subflow.control_packets[0], 3 * u32::from(self.subflows.saturating_sub(1))],
            // Each subflow begins with those that are sent at once.
            answers: Answers {
                first: (u64::from(self.subflows) * of_subflow.answers.first.0, of_subflow.answers.first.1),
                ..of_subflow.answers
            },
            connection_bytes: u64::from(self.subflows) * of_subflow.connection_bytes,
            // `pods-mphula-mptcp` takes 118 ns. Where HPCC counts as 88 ns, `fat320-hpcc` took 58 ns at that time
            // (docs/performance.md), so it is 118 * 88 / 58.
            ns_per_hop: 130.0,
            ..of_subflow
        }
    }

    fn window_at_loss(&self, loss: f64, round_trip: Time) -> Option<f64> {
        let of_subflow = self.tcp.window_at_loss(loss, round_trip)?;
        Some(if self.tcp.controller.couples() { of_subflow } else { f64::from(self.subflows) * of_subflow })
    }

    fn longest_times(&self) -> Vec<TimeKey> {
        self.tcp.longest_times()
    }

    fn switch_defaults(&self) -> SwitchDefaults {
        self.tcp.switch_defaults()
    }

    fn warnings(&self, run: &RunContext) -> Vec<String> {
        self.tcp.warnings_as(Self::DOC.name, self.subflows, run)
    }

    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        let mut figures = self.tcp.figures(run);
        figures.push(("subflows", Some(u32::from(self.subflows).into())));
        figures
    }

    fn settle(&mut self, run: &RunContext) {
        self.tcp.settle(run);
    }

    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Subflows(self)
    }

    fn start(&self, host: &HostPlan) -> Box<Mptcp> {
        Box::new(Mptcp::new(host.ports))
    }
}

/// What TCP has and a connection of several subflows does not.
fn refuse_what_is_not_modelled(p: &mut Parameters, tcp: &TcpConfig) {
    let refused = [
        ("app_rate", tcp.application.rate.is_some(), "an application that writes at a rate"),
        ("app_read_rate", tcp.application.read_rate.is_some(), "an application that reads at a rate"),
        ("plb", tcp.plb.is_some(), "a subflow that changes its path"),
        ("fin", tcp.fin, "the close of a connection"),
        ("reactions", tcp.recovery.reactions.by_state, "the order in which ns-3.35 reacts"),
    ];
    for (key, given, what) in refused {
        if given {
            let message = format!(
                "{what} is not modelled over several subflows: leave it out, or set transport.kind = \"tcp\""
            );
            p.complain(key, message);
        }
    }
}
