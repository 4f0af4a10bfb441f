//! Congestion controllers, one file each, and the interface that they share.
//!
//! A controller depends on its acknowledgements and its own state, not on the network: it has no clock, no
//! random numbers, no packets. Time and feedback are its input; a rate, a window and timers are its output
//! through [`Control`].
//!
//! A new one is a file here (parameters, state, law, tests), a `pub mod` and a line in [`registry!`], from
//! which follow its name in scenarios, `weftline list`, `weftline explain` and the tests that every
//! controller must pass.

pub mod dcqcn;
pub mod dctcp;
pub mod external;
pub mod hpcc;
pub mod hpcc_pint;
pub mod pair_window;
pub mod powertcp;
pub mod rates;
pub mod theta_powertcp;
pub mod timely;
pub mod window;

#[cfg(test)]
mod tests;

use crate::compat::Rules;
use crate::external::{Added, Scheme};
use crate::parameters::{Nothing, Parameters};
use crate::telemetry::int::{IntLayout, IntView};
use crate::units::{Rate, Time};
use std::fmt;

pub use crate::doc::SchemeDoc;
pub use external::ExternalController;
pub use pair_window::PairWindow;
pub use rates::LeastRate;

/// The constants of a flow, given when it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowContext {
    /// Number of the flow in the results; of a connection that is kept, its first flow.
    pub flow: u32,
    /// Rate of the flow's NIC: its initial and its maximum rate.
    pub line_rate: Rate,
    /// Base RTT T of the network (or of the flow's pair, as configured).
    pub base_rtt: Time,
    /// The same with what T leaves out, headers and the acknowledgement: the RTT of a full packet over the
    /// longest path without queues. T, where it is configured.
    pub round_trip: Time,
    /// Window W0 = line rate * T in bytes; the transport applies it if the controller requests one.
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
    /// Bytes that this acknowledgement removed from the bytes in flight.
    pub newly_acknowledged: u64,
    /// Next byte to be sent.
    pub next_byte: u64,
    /// The acknowledged packet was marked (ECN).
    pub marked: bool,
    /// Time since the transmission of the acknowledged packet began.
    pub rtt: Time,
    /// Payload bytes of that packet; 0 where its message has ended already.
    pub payload: u32,
    /// The acknowledgement reports a missing packet.
    pub negative: bool,
    pub telemetry: Option<IntView<'a>>,
    /// The load of the path's busiest port, if the packet carried it (PINT).
    pub load: Option<PathLoad>,
}

/// The feedback of PINT.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathLoad {
    /// Load of the busiest port, as a share of its capacity.
    pub load: f64,
    /// A random number, for controllers that use only a share of the feedback.
    pub coin: u32,
}

/// Number of timers of a controller.
pub const TIMERS: usize = 2;

/// What a controller sets; kept by the transport between calls, one per flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Control {
    /// Pacing rate; at least 1 bit/s, at most the line rate.
    pub rate: Rate,
    /// Maximum bytes in flight, for controllers that set a window themselves; none for rate-based ones.
    pub cwnd: Option<u64>,
    /// Set if the time of the next packet, which was paced at the old rate, must be adapted to the new one.
    pub repace: bool,
    /// When each timer fires; [`Time::MAX`]: not running. Set by the controller, cleared by the transport
    /// when it fires.
    pub timers: [Time; TIMERS],
}

impl Control {
    pub fn new(rate: Rate) -> Control {
        Control { rate, cwnd: None, repace: false, timers: [Time::MAX; TIMERS] }
    }
}

/// The law of one flow.
pub trait CongestionController {
    /// The flow starts, at line rate. Only external controllers may set another rate here.
    fn on_start(&mut self, _control: &mut Control) {}
    /// An acknowledgement arrived, possibly a negative one or the one that completes the flow.
    fn on_ack(&mut self, ack: &Ack, control: &mut Control);
    /// A timer that the controller set has fired.
    fn on_timer(&mut self, _timer: usize, _now: Time, _control: &mut Control) {}
    /// The retransmission timeout expired: nothing was acknowledged for that time.
    fn on_timeout(&mut self, _now: Time, _control: &mut Control) {}
    /// Internal quantities at a moment, for series, as (name with unit, value): alpha, u, ...
    fn internals(&self, _now: Time, _out: &mut Vec<(&'static str, f64)>) {}
}

/// The window that the transport applies in addition to the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// In-flight bytes are not limited.
    None,
    /// Always W0.
    Fixed,
    /// floor(W0 * rate / line rate), at least 1 byte.
    FollowsRate,
}

/// What a controller requires of transport and telemetry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    pub window: Window,
    /// INT records of every hop in every acknowledgement.
    pub int: bool,
    /// INT in its finest units, whatever the rate of the NICs, for all that read it in the run.
    pub fine_int: bool,
    /// The load of the path's busiest port, by PINT, which it lowers rates above: this target. None: it reads no load.
    pub load: Option<f64>,
    /// Marks of switches (ECN), to which it reacts.
    pub marks: bool,
    /// Round-trip times, to which it reacts.
    pub delay: bool,
    /// The 8-byte send timestamp of TIMELY on the wire.
    pub timestamp: bool,
    /// Whether the authors let acknowledgements pass a paused NIC (their ACK_HIGH_PRIO).
    pub ack_priority: bool,
}

impl Needs {
    /// Only `window`.
    pub const fn window(window: Window) -> Needs {
        Needs {
            window,
            int: false,
            fine_int: false,
            load: None,
            marks: false,
            delay: false,
            timestamp: false,
            ack_priority: false,
        }
    }
}

/// Parameters of a controller, read from a scenario once, from which the state of every flow is created.
/// Controllers of other crates implement this trait, too, and are added by [`crate::schemes::Schemes`].
pub trait ControllerParameters: Sized {
    type State: CongestionController;
    const DOC: SchemeDoc;
    /// Whether it was published with switches that mark every packet above one threshold.
    const MARKS_AT_STEP: bool = false;
    /// Queue, in bandwidth-delay products, up to which some packets must stay without a mark for one flow to
    /// keep a link busy; none: no such bound is known, or marks change nothing.
    const QUEUE_AT_MARKS: Option<f64> = None;
    /// CPU time of a packet-hop under it, in ns, if all data fits the caches; by default that of the most
    /// expensive one here: that of HPCC times 8.26 s / 7.23 s, the times of `fat320-hpcc-pint` and
    /// `fat320-hpcc` (docs/performance.md).
    const NS_PER_HOP: f64 = 75.0;
    fn read(p: &mut Parameters) -> Self;
    fn needs(&self) -> Needs;
    /// The rules of the run, by which it may repeat a simulator; called before everything else.
    fn follow(&mut self, _rules: &Rules) {}
    /// The steps that follow from the rate of the NIC, which `weftline check` prints, each by its key.
    fn derived(&self, _line_rate: Rate) -> Vec<(&'static str, Rate)> {
        Vec::new()
    }
    /// Keys that have the constants of its authors, each with this constant and what `auto` is at a NIC of this
    /// rate.
    fn published(&self, _line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        Vec::new()
    }
    /// Why its constants do not suit a network with this base RTT, if they do not.
    fn unfit(&self, _base_rtt: Time) -> Option<String> {
        None
    }
    /// Why its constants do not suit NICs of this rate that send full packets of this size in bytes over a path
    /// with this base RTT, if they do not.
    fn unfit_at(&self, _line_rate: Rate, _packet: u64, _base_rtt: Time) -> Option<String> {
        None
    }
    /// Creates the state of a new flow; its rate is the line rate. `int_hops`: capacity of the INT header in
    /// records.
    fn start(&self, flow: &FlowContext, int_hops: usize) -> Self::State;
}

const NONE_DOC: SchemeDoc = SchemeDoc {
    name: "none",
    title: "no congestion control: always at line rate",
    text: "The flow always sends at the rate of its NIC, and has a fixed window if transport.window is set. With PFC, pauses alone prevent loss; without PFC, \
           lost packets are retransmitted.",
    source: "the baseline that users of the HPCC simulator ask for (\"PFC only\")",
    equations: "rate = line rate",
    validation: "The rate is always the line rate, whatever is acknowledged.",
    ..SchemeDoc::NONE
};

/// [`ControllerParameters::NS_PER_HOP`] of `none`: measured on the FatTree of 320 hosts.
const NONE_NS_PER_HOP: f64 = 52.0;

/// The controllers of this crate that steer queue pairs without telemetry in packets, by name.
pub fn without_telemetry() -> Vec<&'static str> {
    let needs_none = |name: &str| {
        let mut defaults = Nothing::default();
        let read = ControllerConfig::read(name, &mut Parameters::new(&mut defaults));
        read.map(|controller| controller.needs()).is_some_and(|needs| !needs.int && needs.load.is_none())
    };
    KINDS.iter().map(|(name, _)| *name).filter(|name| needs_none(name)).collect()
}

/// One line per controller: variant = file::parameters => state.
macro_rules! registry {
    ($($variant:ident = $file:ident :: $parameters:ident;)*) => {
        /// A controller with its parameters: the result of `[transport] controller = { kind = ... }`.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ControllerConfig {
            /// Always at line rate, no window.
            None,
            $($variant($file::$parameters),)*
            /// A window controller, as in TCP; the queue pair provides its input.
            Window(PairWindow),
            External(ExternalController),
        }

        /// The state of one flow's controller.
        pub enum Controller {
            None,
            $($variant(<$file::$parameters as ControllerParameters>::State),)*
            External(external::External),
        }

        /// The text of every controller of this crate.
        pub const DOCS: &[SchemeDoc] = &[$($file::DOC,)* NONE_DOC];

        /// Names of the controllers of this crate, each with one line.
        pub const KINDS: &[(&str, &str)] =
            &[$(($file::DOC.name, $file::DOC.title),)* (NONE_DOC.name, NONE_DOC.title)];

        impl ControllerConfig {
            /// Reads the parameters of the controller named `kind`; none if [`kinds`] has no such name.
            pub fn read(kind: &str, p: &mut Parameters) -> Option<ControllerConfig> {
                $(if kind == $file::DOC.name {
                    return Some(ControllerConfig::$variant(ControllerParameters::read(p)));
                })*
                if kind == NONE_DOC.name {
                    return Some(ControllerConfig::None);
                }
                ADDED.read(kind, p, |read, p| read(p)).map(ControllerConfig::External)
            }

            /// The name in scenarios and results.
            pub fn name(&self) -> &str {
                match self {
                    ControllerConfig::None => NONE_DOC.name,
                    $(ControllerConfig::$variant(_) => $file::DOC.name,)*
                    ControllerConfig::Window(window) => window.name,
                    ControllerConfig::External(external) => &external.name,
                }
            }

            pub fn needs(&self) -> Needs {
                match self {
                    ControllerConfig::None | ControllerConfig::Window(_) => Needs::window(Window::None),
                    $(ControllerConfig::$variant(parameters) => parameters.needs(),)*
                    ControllerConfig::External(external) => external.needs,
                }
            }

            /// Whether it was published with switches that mark every packet above one threshold.
            pub fn marks_at_step(&self) -> bool {
                match self {
                    $(ControllerConfig::$variant(_) => $file::$parameters::MARKS_AT_STEP,)*
                    ControllerConfig::Window(window) => window.law.needs_marks(),
                    ControllerConfig::External(external) => external.stated(false, |own| own.marks_at_step()),
                    ControllerConfig::None => false,
                }
            }

            /// Queue, in bandwidth-delay products, up to which some packets must stay without a mark for one
            /// flow to keep a link busy; none: no such bound is known, or marks change nothing.
            pub fn queue_at_marks(&self) -> Option<f64> {
                match self {
                    $(ControllerConfig::$variant(_) => $file::$parameters::QUEUE_AT_MARKS,)*
                    ControllerConfig::Window(window) => window.law.queue_at_marks(),
                    ControllerConfig::External(external) => external.stated(None, |own| own.queue_at_marks()),
                    ControllerConfig::None => None,
                }
            }

            /// CPU time of a packet-hop under it, in ns, if all data fits the caches.
            pub fn ns_per_hop(&self) -> f64 {
                match self {
                    ControllerConfig::None => NONE_NS_PER_HOP,
                    $(ControllerConfig::$variant(_) => $file::$parameters::NS_PER_HOP,)*
                    ControllerConfig::Window(_) => window::NS_PER_HOP,
                    ControllerConfig::External(external) => {
                        external.stated(external::NS_PER_HOP, |own| own.ns_per_hop())
                    }
                }
            }

            /// The rules of the run, by which it may repeat a simulator.
            pub fn follow(&mut self, rules: &Rules) {
                match self {
                    $(ControllerConfig::$variant(parameters) => parameters.follow(rules),)*
                    ControllerConfig::External(external) => external.follow(rules),
                    ControllerConfig::None | ControllerConfig::Window(_) => {}
                }
            }

            /// The steps that follow from the rate of the NIC, each by its key.
            pub fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
                match self {
                    $(ControllerConfig::$variant(parameters) => parameters.derived(line_rate),)*
                    ControllerConfig::External(external) => {
                        external.stated(Vec::new(), |own| own.derived(line_rate))
                    }
                    ControllerConfig::None | ControllerConfig::Window(_) => Vec::new(),
                }
            }

            /// Keys that have the constants of its authors, each with this constant and what `auto` is at a NIC
            /// of this rate.
            pub fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
                match self {
                    $(ControllerConfig::$variant(parameters) => parameters.published(line_rate),)*
                    ControllerConfig::External(external) => {
                        external.stated(Vec::new(), |own| own.published(line_rate))
                    }
                    ControllerConfig::None | ControllerConfig::Window(_) => Vec::new(),
                }
            }

            /// Why its constants do not suit a network with this base RTT, if they do not.
            pub fn unfit(&self, base_rtt: Time) -> Option<String> {
                match self {
                    $(ControllerConfig::$variant(parameters) => parameters.unfit(base_rtt),)*
                    ControllerConfig::External(external) => {
                        external.stated(None, |own| own.unfit(base_rtt))
                    }
                    ControllerConfig::None | ControllerConfig::Window(_) => None,
                }
            }

            /// Why its constants do not suit NICs of this rate that send full packets of this size in bytes over
            /// a path with this base RTT, if they do not.
            pub fn unfit_at(&self, line_rate: Rate, packet: u64, base_rtt: Time) -> Option<String> {
                match self {
                    $(ControllerConfig::$variant(parameters) => parameters.unfit_at(line_rate, packet, base_rtt),)*
                    ControllerConfig::External(external) => {
                        external.stated(None, |own| own.unfit_at(line_rate, packet, base_rtt))
                    }
                    ControllerConfig::None | ControllerConfig::Window(_) => None,
                }
            }

            /// Creates state and control of a new flow. `int_hops`: capacity of the INT header in records.
            pub fn start(&self, flow: &FlowContext, int_hops: usize) -> (Controller, Control) {
                let mut control = Control::new(flow.line_rate);
                let state = match self {
                    ControllerConfig::None | ControllerConfig::Window(_) => Controller::None,
                    $(ControllerConfig::$variant(parameters) => {
                        Controller::$variant(parameters.start(flow, int_hops))
                    })*
                    ControllerConfig::External(external) => {
                        Controller::External(external.start(flow, int_hops, &mut control))
                    }
                };
                (state, control)
            }
        }

        /// Calls the same method of any controller.
        macro_rules! each {
            ($self:ident, $law:ident => $call:expr) => {
                match $self {
                    Controller::None => {}
                    $(Controller::$variant($law) => $call,)*
                    Controller::External($law) => $call,
                }
            };
        }
    };
}

registry! {
    Hpcc = hpcc::HpccParameters;
    HpccPint = hpcc_pint::HpccPintParameters;
    Dcqcn = dcqcn::DcqcnParameters;
    Timely = timely::TimelyParameters;
    Dctcp = dctcp::DctcpParameters;
    PowerTcp = powertcp::PowerTcpParameters;
    ThetaPowerTcp = theta_powertcp::ThetaPowerTcpParameters;
}

/// Controllers of other crates.
pub(crate) static ADDED: Added<fn(&mut Parameters) -> ExternalController> = Added::none("controller");

pub(crate) type ReadController = Scheme<fn(&mut Parameters) -> ExternalController>;

/// A controller of another crate with its parameters.
pub(crate) fn external<P>() -> ReadController
where
    P: ControllerParameters + fmt::Debug + Send + Sync + 'static,
    P::State: Send + 'static,
{
    Scheme { doc: P::DOC, read: ExternalController::read::<P> }
}

/// Names of the controllers, each with one line; those of other crates come last.
pub fn kinds() -> &'static [(&'static str, &'static str)] {
    ADDED.kinds(KINDS)
}

impl CongestionController for Controller {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        each!(self, law => law.on_ack(ack, control))
    }
    fn on_timer(&mut self, timer: usize, now: Time, control: &mut Control) {
        each!(self, law => law.on_timer(timer, now, control))
    }
    fn on_timeout(&mut self, now: Time, control: &mut Control) {
        each!(self, law => law.on_timeout(now, control))
    }
    fn internals(&self, now: Time, out: &mut Vec<(&'static str, f64)>) {
        each!(self, law => law.internals(now, out))
    }
}

impl ControllerConfig {
    /// Returns the window controller, if it is one.
    pub fn window(&self) -> Option<&PairWindow> {
        match self {
            ControllerConfig::Window(window) => Some(window),
            _ => None,
        }
    }

    /// Whether its flows have the window that a scenario sets: without a controller it is fixed, and those of other crates may read it.
    pub fn has_window(&self) -> bool {
        match self {
            ControllerConfig::None | ControllerConfig::Window(_) | ControllerConfig::External(_) => true,
            _ => self.needs().window != Window::None,
        }
    }

    pub fn needs_marks(&self) -> bool {
        match self {
            ControllerConfig::Window(window) => window.law.needs_marks(),
            _ => self.needs().marks,
        }
    }

    /// Whether it takes longer round trips for congestion.
    pub fn follows_delay(&self) -> bool {
        match self {
            ControllerConfig::Window(window) => window.law.follows_delay(),
            _ => self.needs().delay,
        }
    }
}
