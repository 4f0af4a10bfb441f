//! Window controllers, one file each: the laws that set TCP's congestion window, and the interface that they
//! share. Queue pairs of RDMA can use them as well.
//!
//! A law gets acknowledgements (bytes removed from flight, round-trip times, a sample of the delivery rate)
//! and the states of loss recovery. It sets the congestion window, the slow-start threshold and, if it paces,
//! a rate. Recovery itself (what is lost, what is retransmitted, the window during recovery) belongs to the
//! transport; a law that controls all of it returns true from [`WindowController::steers_recovery`].
//!
//! A new one is a file here (parameters, state, law, tests), a `pub mod` and a line in [`registry!`].

pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod coupled;
pub mod cubic;
pub mod dctcp;
pub mod hystart;
pub mod newreno;
pub mod swift;
pub mod usage;
pub mod vegas;

#[cfg(test)]
pub mod tests;

use super::SchemeDoc;
use crate::compat::Rules;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};
use coupled::{Subflow, balia, lia, olia};

/// CPU time of a packet-hop under a window controller, in ns, if all data fits the caches: row 11 of the
/// Cebinae table.
pub const NS_PER_HOP: f64 = 94.0;

/// The threshold of a flow that has had no congestion.
pub const NO_THRESHOLD: u64 = u64::MAX;

/// Which behaviour defaults follow. A profile is only a set of values for parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Current RFCs, and Linux where they leave a choice.
    #[default]
    Rfc,
    /// ns-3.35, on which the published Cebinae results were computed.
    Ns3_35,
}

impl Profile {
    /// The value of this profile.
    pub fn pick<T>(self, rfc: T, ns3_35: T) -> T {
        match self {
            Profile::Rfc => rfc,
            Profile::Ns3_35 => ns3_35,
        }
    }
}

/// The states of loss recovery, under their names in Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    #[default]
    Open,
    /// Data arrived out of order; nothing counts as lost yet.
    Disorder,
    /// The window is being reduced for an ECN echo.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// What a law sets, all in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CongestionWindow {
    pub cwnd: u64,
    /// Below this the window grows by slow start.
    pub ssthresh: u64,
    /// Maximum rate of sending; none: only the window limits it.
    pub pacing: Option<Rate>,
    /// The transport spreads each window over a round trip.
    pub paced: bool,
    /// Payload of a full segment.
    pub mss: u64,
}

impl CongestionWindow {
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whole segments in the window.
    pub fn segments(&self) -> u64 {
        self.cwnd / self.mss
    }
}

/// Delivery rate measured from the packet that was acknowledged last.
///
/// Source: Cheng et al., draft-cheng-iccrg-delivery-rate-estimation-00, §3.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RateSample {
    /// Bytes delivered over `interval`; zero interval: no valid sample.
    pub delivered: u64,
    pub interval: Time,
    /// Total bytes delivered when the packet was sent.
    pub prior_delivered: u64,
    /// The sender had no more data to send when it sent the packet.
    pub app_limited: bool,
    /// ns-3.35: the last valid rate in bit/s, which remains in use after an invalid sample, and whether there
    /// was a sample.
    pub kept: Rate,
    pub valid: bool,
    /// Bytes in flight when the packet was sent, including itself.
    pub in_flight: u64,
    /// Bytes detected as lost since then.
    pub lost: u64,
}

/// A segment that has just been detected as lost.
#[derive(Debug, Clone, Copy)]
pub struct LostSegment {
    pub now: Time,
    pub first: u64,
    pub bytes: u64,
    /// Bytes in flight when it was sent, including itself.
    pub in_flight: u64,
    /// Bytes detected as lost since then, including its own.
    pub lost_since: u64,
    /// The sender had no more data to send when it sent it.
    pub app_limited: bool,
    /// Bytes delivered since the flow began.
    pub delivered_ever: u64,
}

impl RateSample {
    /// In bit/s; none if the sample is invalid.
    pub fn rate(&self) -> Option<Rate> {
        let bits = u128::from(self.delivered) * 8_000_000_000_000;
        (self.interval > Time::ZERO).then(|| Rate((bits / u128::from(self.interval.0)) as u64))
    }
}

/// An acknowledgement as a law sees it.
#[derive(Debug, Clone, Copy)]
pub struct Acked {
    pub now: Time,
    /// Bytes by which the cumulative acknowledgement advanced.
    pub bytes: u64,
    /// The same in whole segments; the remainder counts with the next acknowledgement.
    pub segments: u64,
    /// Bytes that it reports as arrived, selectively or cumulatively.
    pub delivered: u64,
    /// Bytes delivered since the flow began.
    pub delivered_ever: u64,
    /// Bytes that it shows to be lost.
    pub lost: u64,
    /// Bytes in flight before it, and now (RFC 6675's pipe).
    pub prior_in_flight: u64,
    pub in_flight: u64,
    /// All bytes below this have been acknowledged.
    pub acknowledged: u64,
    /// Next byte that has never been sent.
    pub next: u64,
    /// The byte after the segment sent last: `next`, unless the transport counts a retransmitted segment as
    /// the last (ns-3.35).
    pub cursor: u64,
    /// A round-trip time, depending on the profile: the sample, or the smoothed time.
    pub rtt: Option<Time>,
    /// The minimum of these so far; [`Time::MAX`] before the first.
    pub min_rtt: Time,
    /// Of the round trip of the packet that it answers: what it and the packet waited for processors of
    /// hosts.
    pub in_hosts: Time,
    pub rate: RateSample,
    /// It echoes congestion (ECN).
    pub marked: bool,
    /// The window limited the sender ([`usage`]).
    pub window_limited: bool,
    pub state: State,
}

/// A congestion event of a flow.
#[derive(Debug, Clone, Copy)]
pub struct Congestion {
    pub now: Time,
    /// Bytes in flight, as the transport's `flight` parameter counts them.
    pub in_flight: u64,
    /// The signal of congestion.
    pub by: Signal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Loss,
    Timeout,
    /// An ECN echo.
    Mark,
}

/// The transport changes the state of recovery.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub now: Time,
    pub from: State,
    pub to: State,
    /// Next byte that has never been sent.
    pub next: u64,
    /// The byte after the segment sent last, as in [`Acked`].
    pub cursor: u64,
    pub in_flight: u64,
    /// Bytes that the current acknowledgement reports as arrived.
    pub delivered: u64,
    /// The round-trip time as controllers see it.
    pub rtt: Option<Time>,
}

/// The constants of a flow, given when it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowContext {
    /// The first window in bytes.
    pub initial: u64,
    /// Payload of a full segment.
    pub mss: u64,
    /// Bytes of a full segment on the wire.
    pub packet: u64,
    /// Random number of the flow.
    pub random: u64,
    pub path: FlowPath,
}

/// The shortest paths of a flow, when it starts, and whenever routes change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowPath {
    /// Switches on one of them.
    pub hops: u32,
    /// The longest base RTT of them for a full packet, for laws that need it
    /// ([`WindowParameters::needs_base_rtt`]); none: there is no path.
    pub base_rtt: Option<Time>,
}

/// The law of one flow.
pub trait WindowController {
    /// The connection is established; `rtt`: the round-trip time of the handshake, if there was one.
    fn on_start(&mut self, _now: Time, _rtt: Option<Time>, _window: &mut CongestionWindow) {}
    /// A segment is detected as lost; only with [`WindowController::needs_rate`].
    fn on_lost(&mut self, _lost: &LostSegment, _window: &CongestionWindow) {}
    /// Called for every acknowledgement, in every state, before anything else.
    fn on_feedback(&mut self, _ack: &Acked, _window: &mut CongestionWindow) {}
    /// Called for an acknowledgement that advances while the window may grow (open, or after a timeout); with
    /// [`WindowController::steers_recovery`] for every acknowledgement, after everything else.
    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow);
    /// Returns the new threshold.
    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64;
    fn on_state(&mut self, _change: &Change, _window: &mut CongestionWindow) {}
    /// Routes have changed, and these are the flow's paths now. Called only for laws that follow them
    /// ([`WindowParameters::FOLLOWS_PATH`]).
    fn on_path(&mut self, _path: &FlowPath) {}
    /// The law sets the window in recovery, too: the transport does not change it.
    fn steers_recovery(&self) -> bool {
        false
    }
    /// The law needs delivery rates.
    fn needs_rate(&self) -> bool {
        false
    }
    /// A packet is sent with nothing else in flight: the sender may have been idle since the last
    /// acknowledgement. Called only if windows are validated.
    fn on_resume(&mut self, _now: Time) {}
    /// The same after more than a retransmission timeout: the window has been reduced.
    fn on_restart(&mut self, _now: Time, _window: &mut CongestionWindow) {}
    /// The subflows of the multipath connection of this law's flow, before the next acknowledgement; `own`:
    /// index of this flow. Called only for laws that couple them ([`WindowParameters::COUPLES`]).
    fn couple(&mut self, _subflows: &[Subflow], _own: usize) {}
    /// Bytes between the last two losses, or since the last one, for laws that couple by it.
    fn between_losses(&self) -> u64 {
        0
    }
    /// Time between two packets of a window below one packet; its rate is in [`CongestionWindow::pacing`],
    /// too.
    fn pacing_delay(&self) -> Option<Time> {
        None
    }
    /// Internal quantities for series, as (name with unit, value).
    fn internals(&self, _out: &mut Vec<(&'static str, f64)>) {}
}

/// A key that holds a time, and the value that it should have with a base RTT.
pub type TimeKey = (&'static str, fn(Time) -> Time);

/// Parameters of a law, read from a scenario once, from which the state of every flow is created.
pub trait WindowParameters: Sized {
    type State: WindowController;
    const DOC: SchemeDoc;
    /// The law couples the subflows of a multipath connection, and is only for these.
    const COUPLES: bool = false;
    /// The law reacts to marks of switches (ECN), not only to losses.
    const NEEDS_MARKS: bool = false;
    /// A mark lowers the window, by the law's own rule or by that of its transport.
    const HEEDS_MARKS: bool = true;
    /// Queue, in bandwidth-delay products, up to which some packets must stay without a mark for one flow to
    /// keep a link busy. By default that of a law that halves its window at a mark.
    fn queue_at_marks(&self) -> f64 {
        to_outlast(0.5)
    }
    /// The law takes longer round trips for congestion.
    const FOLLOWS_DELAY: bool = false;
    /// The law depends on the path of its flow.
    const FOLLOWS_PATH: bool = false;
    /// Its delay must not contain the time that a receiver delays an acknowledgement: by default each segment
    /// is answered at once.
    const ACKS_AT_ONCE: bool = false;
    /// A key whose value requires something that only TCP's acknowledgements provide, and why a queue pair
    /// cannot support it.
    fn only_tcp(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    /// Mean window in segments where links lose this share of the packets at random; none: losses do not
    /// limit it. By default that of a law that adds a segment per round trip and halves (Mathis et al., CCR
    /// 27(3), 1997).
    fn window_at_loss(&self, loss: f64, _round_trip: Time) -> Option<f64> {
        Some((1.5 / loss).sqrt())
    }
    fn read(p: &mut Parameters, profile: Profile) -> Self;
    /// The rules of the run, by which it may repeat a simulator. Errors: a key that contradicts them, and
    /// why.
    fn follow(&mut self, _rules: &Rules) -> Result<(), (&'static str, String)> {
        Ok(())
    }
    /// The times that follow from the largest base RTT, each by its key, as `weftline check` prints them.
    fn derived(&self, _base_rtt: Time) -> Vec<(&'static str, Time)> {
        Vec::new()
    }
    /// A key that has the constant of its authors, this constant, and what `auto` is with this base RTT.
    fn published(&self, _base_rtt: Time) -> Option<(&'static str, Time, Time)> {
        None
    }
    /// What to set for flows over short paths, if times in the targets of all flows follow the largest base RTT
    /// of the network: the keys, and for a base RTT their values.
    fn longest_times(&self) -> Vec<TimeKey> {
        Vec::new()
    }
    /// The key and the largest window in packets, if a parameter limits it.
    fn max_packets(&self) -> Option<(&'static str, f64)> {
        None
    }
    /// Derives what follows from it, once, before the run starts.
    fn settle(&mut self, _base_rtt: Time) {}
    /// Whether each flow needs the base RTT of its own path.
    fn needs_base_rtt(&self) -> bool {
        false
    }
    fn start(&self, flow: &WindowContext) -> Self::State;
}

/// Queue, in bandwidth-delay products, that keeps a link busy while a window that fills both is cut to this
/// share of itself.
fn to_outlast(kept: f64) -> f64 {
    (1.0 - kept) / kept
}

registry! {
    /// A law with its parameters: the result of `[transport] kind = "tcp", controller = { kind = ... }`.
    WindowConfig: WindowParameters(Profile) =>
    /// The state of one flow's law.
    WindowLaw {
        Balia = balia::BaliaParameters;
        Bbr = bbr::BbrParameters;
        Bbr3 = bbr3::Bbr3Parameters;
        Bic = bic::BicParameters;
        Cubic = cubic::CubicParameters;
        Dctcp = dctcp::DctcpParameters;
        Lia = lia::LiaParameters;
        NewReno = newreno::NewRenoParameters;
        Olia = olia::OliaParameters;
        Swift = swift::SwiftParameters;
        Vegas = vegas::VegasParameters;
    }
}

/// Whether the law of this name couples the subflows of a multipath connection.
pub fn couples(kind: &str) -> bool {
    each_type!(Law => Law::DOC.name == kind && Law::COUPLES).contains(&true)
}

/// What a law declares: name, [`WindowParameters::COUPLES`], [`WindowParameters::NEEDS_MARKS`],
/// [`WindowParameters::FOLLOWS_DELAY`].
fn declared<P: WindowParameters>(_: &P) -> (&'static str, bool, bool, bool) {
    (P::DOC.name, P::COUPLES, P::NEEDS_MARKS, P::FOLLOWS_DELAY)
}

impl WindowConfig {
    /// The name in scenarios and results.
    pub fn name(&self) -> &'static str {
        each_kind!(self, law => declared(law)).0
    }
    /// A key whose value a queue pair cannot support, and why.
    pub fn only_tcp(&self) -> Option<(&'static str, &'static str)> {
        each_kind!(self, law => law.only_tcp())
    }
    /// Whether it couples the subflows of a multipath connection.
    pub fn couples(&self) -> bool {
        each_kind!(self, law => declared(law)).1
    }
    /// The rules of the run, by which it may repeat a simulator. Errors: a key that contradicts them, and
    /// why.
    pub fn follow(&mut self, rules: &Rules) -> Result<(), (&'static str, String)> {
        each_kind!(self, law => law.follow(rules))
    }
    /// The times that follow from the largest base RTT of the network, each by its key.
    pub fn derived(&self, base_rtt: Time) -> Vec<(&'static str, Time)> {
        each_kind!(self, law => law.derived(base_rtt))
    }
    /// A key that has the constant of its authors, this constant, and what `auto` is with this base RTT.
    pub fn published(&self, base_rtt: Time) -> Option<(&'static str, Time, Time)> {
        each_kind!(self, law => law.published(base_rtt))
    }
    /// What to set for flows over short paths, if times in the targets of all flows follow the largest base RTT
    /// of the network: the keys, and for a base RTT their values.
    pub fn longest_times(&self) -> Vec<TimeKey> {
        each_kind!(self, law => law.longest_times())
    }
    /// The key and the largest window in packets, if a parameter limits it.
    pub fn max_packets(&self) -> Option<(&'static str, f64)> {
        each_kind!(self, law => law.max_packets())
    }
    /// Derives what follows from the largest base RTT of the network, before the run starts.
    pub fn settle(&mut self, base_rtt: Time) {
        each_kind!(self, law => law.settle(base_rtt))
    }
    /// Whether each flow needs the base RTT of its own path.
    pub fn needs_base_rtt(&self) -> bool {
        each_kind!(self, law => law.needs_base_rtt())
    }
    /// Whether it reacts to marks of switches.
    pub fn needs_marks(&self) -> bool {
        each_kind!(self, law => declared(law)).2
    }
    /// Whether a mark lowers its window.
    pub fn heeds_marks(&self) -> bool {
        fn heeds<P: WindowParameters>(_: &P) -> bool {
            P::HEEDS_MARKS
        }
        each_kind!(self, law => heeds(law))
    }
    /// Queue, in bandwidth-delay products, up to which some packets must stay without a mark for one flow to
    /// keep a link busy; none: marks do not lower its window.
    pub fn queue_at_marks(&self) -> Option<f64> {
        self.heeds_marks().then(|| each_kind!(self, law => law.queue_at_marks()))
    }
    /// Whether it takes longer round trips for congestion.
    pub fn follows_delay(&self) -> bool {
        each_kind!(self, law => declared(law)).3
    }
    /// Whether it depends on the paths of its flows.
    pub fn follows_path(&self) -> bool {
        fn follows<P: WindowParameters>(_: &P) -> bool {
            P::FOLLOWS_PATH
        }
        each_kind!(self, law => follows(law))
    }
    /// Whether receivers should answer each segment at once.
    pub fn acks_at_once(&self) -> bool {
        fn at_once<P: WindowParameters>(_: &P) -> bool {
            P::ACKS_AT_ONCE
        }
        each_kind!(self, law => at_once(law))
    }
    /// Mean window in segments where links lose this share of the packets at random; none: losses do not
    /// limit it.
    pub fn window_at_loss(&self, loss: f64, round_trip: Time) -> Option<f64> {
        each_kind!(self, law => law.window_at_loss(loss, round_trip))
    }
    /// The law of a new flow.
    pub fn start(&self, flow: &WindowContext) -> WindowLaw {
        start_kind!(self, law => law.start(flow))
    }
}

impl WindowController for WindowLaw {
    fn on_start(&mut self, now: Time, rtt: Option<Time>, window: &mut CongestionWindow) {
        each_state!(self, law => law.on_start(now, rtt, window))
    }
    fn on_lost(&mut self, lost: &LostSegment, window: &CongestionWindow) {
        each_state!(self, law => law.on_lost(lost, window))
    }
    #[inline]
    fn on_feedback(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        each_state!(self, law => law.on_feedback(ack, window))
    }
    #[inline]
    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        each_state!(self, law => law.on_ack(ack, window))
    }
    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        each_state!(self, law => law.on_congestion(congestion, window))
    }
    fn on_state(&mut self, change: &Change, window: &mut CongestionWindow) {
        each_state!(self, law => law.on_state(change, window))
    }
    fn on_path(&mut self, path: &FlowPath) {
        each_state!(self, law => law.on_path(path))
    }
    #[inline]
    fn steers_recovery(&self) -> bool {
        each_state!(self, law => law.steers_recovery())
    }
    fn needs_rate(&self) -> bool {
        each_state!(self, law => law.needs_rate())
    }
    fn on_resume(&mut self, now: Time) {
        each_state!(self, law => law.on_resume(now))
    }
    fn on_restart(&mut self, now: Time, window: &mut CongestionWindow) {
        each_state!(self, law => law.on_restart(now, window))
    }
    fn couple(&mut self, subflows: &[Subflow], own: usize) {
        each_state!(self, law => law.couple(subflows, own))
    }
    fn between_losses(&self) -> u64 {
        each_state!(self, law => law.between_losses())
    }
    fn pacing_delay(&self) -> Option<Time> {
        each_state!(self, law => law.pacing_delay())
    }
    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        each_state!(self, law => law.internals(out))
    }
}
