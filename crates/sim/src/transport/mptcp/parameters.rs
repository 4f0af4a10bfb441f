//! The keys of `transport.kind = "mptcp"`: those of TCP, of each subflow, and these.
//!
//! Source: RFC 8684; where it leaves a choice Linux 6 (named at the keys) and Raiciu et al., NSDI 2012.

use super::stream::MOST_SUBFLOWS;
use crate::config::{JoinRule, MptcpConfig, SchedulerKind, TcpConfig};
use crate::congestion::window::{Profile, WindowConfig};
use crate::parameters::Parameters;
use crate::transport::tcp::{self, Network, Wire};
use crate::units::Time;

pub const SCHEDULERS: &[(&str, &str)] = &[
    ("min-rtt", "of the subflows with room, the one with the shortest round-trip time"),
    ("round-robin", "the subflows with room, in turn"),
    ("redundant", "every subflow carries everything"),
];
const JOINS: &[(&str, &str)] = &[
    (
        "confirmed",
        "after the first data acknowledgement; data once the join is confirmed (RFC 8684 §3.2, Linux)",
    ),
    ("at-once", "with the third packet of the handshake; data after one more round trip"),
];

/// Bytes that the mapping adds to a data packet, and the data acknowledgement to an acknowledgement (RFC 8684 §3.3: 64 bits of
/// data sequence number, padded).
const MAPPING: u32 = 24;
const DATA_ACK: u32 = 12;
/// A port is a byte: beyond it there are none to open another from.
const MOST_REJOIN: Time = Time::from_ms(1_000_000);

/// Reads the settings, once the controller is known.
pub fn read(p: &mut Parameters, controller: WindowConfig, network: &Network) -> MptcpConfig {
    let wire = Wire::of(Profile::Rfc);
    let wire = Wire {
        mss: wire.mss - MAPPING,
        header: wire.header + MAPPING,
        ack_header: wire.ack_header + DATA_ACK,
        ..wire
    };
    let tcp = tcp::read(p, Profile::Rfc, controller, wire, network);
    refuse_what_is_not_modelled(p, &tcp);
    let help = "subflows of a connection, each from a port of its own; on a host with several NICs they leave by these in turn";
    let subflows = p.integer("subflows", 4, (1, MOST_SUBFLOWS as i64), help) as u8;
    let help = "version of MPTCP: 0 (RFC 6824: SHA-1) or 1 (RFC 8684: SHA-256)";
    let version = p.integer("version", 1, (0, 1), help) as u8;
    let scheduler = match p.choice("scheduler", "min-rtt", SCHEDULERS, "which subflow gets the next segment")
    {
        "round-robin" => SchedulerKind::RoundRobin,
        "redundant" => SchedulerKind::Redundant,
        _ => SchedulerKind::MinRtt,
    };
    let join = match p.choice("join", "confirmed", JOINS, "when further subflows are opened") {
        "at-once" => JoinRule::AtOnce,
        _ => JoinRule::Confirmed,
    };
    let help = "selective blocks that fit beside a data acknowledgement and timestamps (32 bits: 2; 64 bits, as Linux has it: 1)";
    let sack_blocks = p.integer("sack_blocks", 2, (0, 2), help) as u32;
    let help =
        "timeouts in a row after which a subflow is given up, if there is another (Linux: stale after 4)";
    let fail_after = p.integer("fail_after", 4, (1, 1000), help) as u32;
    let help = "a subflow that was given up is opened anew after this time, by its own NIC from another port, and while it gets no answer tries \
         at least as often; 0s: it is not given up but kept, and used again when it answers (ours)";
    let mut rejoin = p.time("rejoin", Time::from_ms(1000), help);
    if rejoin > MOST_REJOIN {
        p.complain("rejoin", format!("expected at most {MOST_REJOIN}, found {rejoin}"));
        rejoin = MOST_REJOIN;
    }
    let help = "what a subflow that times out has not got across is sent by others too (RFC 8684 §3.3.6)";
    let reinject = p.flag("reinject", true, help);
    let help = "a subflow with room sends what holds the shared window up (Raiciu et al., NSDI 2012, §4.2)";
    let opportunistic = p.flag("opportunistic", true, help);
    let help = "with opportunistic: the slower subflow that held it up halves its window, once a round trip (the same)";
    let penalise = p.flag("penalise", true, help);
    MptcpConfig {
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
    }
}

/// What TCP has and a connection of several subflows does not.
fn refuse_what_is_not_modelled(p: &mut Parameters, tcp: &TcpConfig) {
    let refused = [
        ("app_rate", tcp.application.rate.is_some(), "an application that writes at a rate"),
        ("app_read_rate", tcp.application.read_rate.is_some(), "an application that reads at a rate"),
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
