//! Congestion controllers, one file each, and the interface that they share.
//!
//! A controller knows its acknowledgements and its own state, nothing of the network: no clock, no random numbers, no
//! packets. Time and feedback come in; a rate, a window and timers go out through [`Control`].

use crate::telemetry::int::{IntLayout, IntView};
use crate::units::{Rate, Time};

/// What is fixed for a flow when it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowContext {
    /// Rate of the NIC that the flow leaves by: its first and its highest rate.
    pub line_rate: Rate,
    /// Base RTT T of the network (or of the flow's pair, as configured).
    pub base_rtt: Time,
    /// Window W0 = line rate * T in bytes; the transport applies it where the controller asks for one.
    pub window_bytes: u64,
    /// Payload bytes of a full packet.
    pub mtu: u32,
    pub int_layout: IntLayout,
}

/// An acknowledgement (or negative acknowledgement) as a controller sees it.
#[derive(Debug, Clone, Copy)]
pub struct Ack<'a> {
    pub now: Time,
    /// Next byte that the receiver expects.
    pub acknowledged: u64,
    /// Bytes that this acknowledgement took out of flight.
    pub newly_acknowledged: u64,
    /// Next byte that the sender will send.
    pub next_byte: u64,
    /// The packet that it answers was marked (ECN).
    pub marked: bool,
    /// From the start of the transmission of the packet that it answers until now.
    pub rtt: Time,
    /// It says that a packet is missing.
    pub negative: bool,
    pub telemetry: Option<IntView<'a>>,
}

/// Timers that a controller may have running at once.
pub const TIMERS: usize = 2;

/// What a controller steers; kept by the transport between calls, one per flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Control {
    /// Pacing rate; at least 1 bit/s, at most the line rate.
    pub rate: Rate,
    /// Bytes allowed in flight for controllers that steer a window themselves; none for rate-based ones.
    pub cwnd: Option<u64>,
    /// Set when the time of the next packet, paced at the old rate, is to be shifted to the new one.
    pub repace: bool,
    /// When each timer fires; [`Time::MAX`]: not running. Set by the controller, cleared by the transport when it fires.
    pub timers: [Time; TIMERS],
}

impl Control {
    pub fn new(rate: Rate) -> Control {
        Control { rate, cwnd: None, repace: false, timers: [Time::MAX; TIMERS] }
    }
}

/// The law of one flow.
pub trait CongestionController {
    /// An acknowledgement came, also a negative one and also the one that completes the flow.
    fn on_ack(&mut self, ack: &Ack, control: &mut Control);
    /// A timer that the controller set has fired.
    fn on_timer(&mut self, _timer: usize, _now: Time, _control: &mut Control) {}
    /// The retransmission timeout expired: nothing was acknowledged for that long.
    fn on_timeout(&mut self, _now: Time, _control: &mut Control) {}
    /// Internals worth watching, as (name with unit, value): alpha, u, ...
    fn internals(&self, _out: &mut Vec<(&'static str, f64)>) {}
}

/// A controller by its parameters: what `[transport] controller = { kind = ... }` resolves to.
#[derive(Debug, Clone, PartialEq)]
pub enum ControllerConfig {
    /// Always at line rate, no window unless the transport sets one.
    None,
}
