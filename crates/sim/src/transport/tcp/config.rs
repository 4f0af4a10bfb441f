//! What a flow over TCP runs under.

use crate::congestion::window::WindowConfig;
use crate::transport::parameters::Answers;
use crate::transport::plb::PlbParameters;
use crate::units::{Rate, Time};

#[derive(Debug, Clone, PartialEq)]
pub struct TcpConfig {
    pub controller: WindowConfig,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Bytes of header on the wire of a data packet, of an acknowledgement, of a SYN.
    pub header: u32,
    pub ack_header: u32,
    pub syn_header: u32,
    /// Bytes that the first SACK block adds to an acknowledgement, beside its own eight.
    pub sack_header: u32,
    /// Traffic class of all its packets, 1 to 7.
    pub class: u8,
    pub send_buffer: u64,
    pub receive_buffer: u64,
    /// Segments.
    pub initial_window: u32,
    pub ack: AckConfig,
    pub recovery: RecoveryConfig,
    pub rtt: RttConfig,
    pub rto: RtoConfig,
    pub ecn: EcnEcho,
    pub pacing: TcpPacing,
    /// Segments that leave unpaced at the start of a connection.
    pub unpaced: u32,
    /// The window grows only while it is what limits the sender, and begins anew after idling.
    pub window_validation: bool,
    /// A short segment waits while something is unacknowledged.
    pub nagle: bool,
    /// A flow's end sends the three packets that close a connection.
    pub fin: bool,
    /// Timeouts in a row after which a connection dies, or window probes without an answer.
    pub retries: u32,
    /// SYNs that are repeated before it does.
    pub syn_retries: u32,
    pub application: ApplicationConfig,
    /// None: flows keep their paths.
    pub plb: Option<PlbParameters>,
}

impl TcpConfig {
    /// Bytes of a full data packet.
    pub fn packet(&self) -> u32 {
        self.mss + self.header
    }
}

/// When a receiver acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckConfig {
    /// After so many segments in order.
    pub every: u32,
    /// The first segment of all is answered at once (ns-3.35).
    pub first_at_once: bool,
    /// At the latest so long after one.
    pub delay: Time,
    /// Segments that are acknowledged at once: at the start of a connection, after one that came twice,
    /// and where nothing came for longer than `idle`; 0: none.
    pub quick: u32,
    pub idle: Time,
    /// A segment with an older timestamp than one that has come is not echoed, in ticks of this clock; zero:
    /// it is.
    pub stamp_clock: Time,
    /// Blocks beyond holes that a receiver remembers for its acknowledgements; 0: all.
    pub remembers: u32,
    /// What has come twice is reported (D-SACK).
    pub duplicates: bool,
}

impl AckConfig {
    /// Acknowledgements of segments in order.
    pub fn answers(&self) -> Answers {
        Answers { first: (self.quick.into(), 1.0), ..Answers::each(1.0 / f64::from(self.every.max(1))) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// Loss detection by time; none: by the count of later segments.
    pub rack: Option<RackConfig>,
    pub window: RecoveryWindow,
    /// Segments (or duplicate acknowledgements) beyond a hole that make it a loss.
    pub dup_threshold: u32,
    pub limited_transmit: bool,
    /// The threshold is half of what is outstanding, or half of the pipe, which lacks what is lost or has
    /// arrived.
    pub flight: Flight,
    pub doubtful: Doubtful,
    /// A partial acknowledgement restarts the timeout each time, not only the first time.
    pub restart_each: bool,
    /// Spurious timeouts are found and undone (RFC 5682).
    pub f_rto: bool,
    pub reactions: Reactions,
}

/// Where what an acknowledgement and a timeout do differs from the RFCs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reactions {
    /// What an acknowledgement or a timeout does depends on the state first, and what it lets go is handed
    /// down at once, not when the NIC asks.
    pub by_state: bool,
    /// What was sent again counts in the pipe until it is acknowledged cumulatively, also when it has
    /// arrived.
    pub keeps_again: bool,
    /// Arrivals are counted downwards from the segment below the highest once that comes, not upwards from
    /// the first hole.
    pub counts_from_top: bool,
    /// Losses are looked for only when something was acknowledged selectively.
    pub losses_by_sacks: bool,
    /// The receiver's window, too, is filled by the pipe.
    pub pipe_fills_receiver: bool,
    /// The first window stays whole when a SYN was lost.
    pub keeps_first_window: bool,
    /// The answer to a SYN is repeated until the connection is open; one that comes once more makes the first
    /// window count anew.
    pub repeats_syn_ack: bool,
    /// What an application has written is looked at right after that, in an event of its own.
    pub looks_after_writes: bool,
    /// A pacing gap is of the payload, in whole nanoseconds, and one that lasts goes on.
    pub paces_payload: bool,
    /// What controllers hear to be in flight at a change of state is what it was when that was asked for
    /// last.
    pub notes_in_flight: bool,
    /// A sample of the delivery rate keeps what later ones do not replace; no losses are told with it.
    pub keeps_samples: bool,
    /// The first segment is answered at once, and stale timestamps are not echoed.
    pub answers_first: bool,
}

/// Loss detection by time (RFC 8985).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RackConfig {
    /// With tail loss probes.
    pub probes: bool,
    /// The longest that a peer holds back the acknowledgement of a single segment.
    pub ack_delay: Time,
}

/// The window during fast recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryWindow {
    /// Proportional rate reduction (RFC 6937).
    Prr(PrrConfig),
    /// The threshold at once (RFC 6675).
    Threshold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrrConfig {
    pub bound: PrrBound,
    /// Products of byte counts are taken modulo 2^32.
    pub wraps: bool,
}

/// When proportional rate reduction may add a segment to what was delivered, below the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrrBound {
    /// With every acknowledgement (RFC 6937, SSRB).
    SlowStart,
    /// Never (RFC 6937, CRB).
    Conservative,
    /// With those that move on and show no new loss (RFC 9937).
    Progress,
    /// With those of something that was sent again.
    Retransmitted,
}

/// Which segments recovery sends again when nothing is lost and nothing new can be sent (RFC 6675, NextSeg
/// rule 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubtful {
    None,
    /// Those below the highest that has arrived.
    Below,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flight {
    Outstanding,
    Pipe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttConfig {
    /// Ticks of the clock of timestamps; zero: exact.
    pub clock: Time,
    /// Controllers get the smoothed time, not the sample.
    pub smoothed: bool,
    /// The handshake gives the first sample.
    pub handshake: bool,
    /// An acknowledgement of something that was sent twice gives no sample (Karn), though timestamps could
    /// tell.
    pub karn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtoConfig {
    /// Before the first sample.
    pub initial: Time,
    /// Of the first SYN.
    pub syn: Time,
    pub min: Time,
    pub max: Time,
    /// Clock granularity G of RFC 6298: the least of 4 RTTVAR.
    pub granularity: Time,
    /// `min` bounds 4 RTTVAR and not the whole timeout (Linux).
    pub min_bounds_variance: bool,
}

impl RtoConfig {
    /// The longest of the timeouts that a connection may begin with.
    pub fn longest_first(&self) -> Time {
        self.initial.max(self.syn).max(self.min)
    }
}

/// Explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnEcho {
    Off,
    /// Until the sender says that it has reduced its window (RFC 3168).
    Classic,
    /// The mark of every packet (RFC 8257).
    Exact,
}

impl EcnEcho {
    /// Whether queues may mark a segment; `again`: it was sent before (RFC 3168 §6.1.5; DCTCP's are marked in
    /// Linux, too).
    #[inline]
    pub fn is_capable(self, again: bool) -> bool {
        match self {
            EcnEcho::Off => false,
            EcnEcho::Classic => !again,
            EcnEcho::Exact => true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpPacing {
    /// As the controller says.
    Controller,
    /// Every flow: by window over RTT, twice that in slow start and 1.2 times after it (Linux).
    Window,
    /// None, whatever the controller says.
    Off,
}

/// What writes and what reads the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplicationConfig {
    /// Payload that the application writes per time; none: as fast as the buffer takes it.
    pub rate: Option<Rate>,
    /// Bytes of one write under a rate.
    pub message: u32,
    /// Payload that the receiving application reads per time; none: at once.
    pub read_rate: Option<Rate>,
}
