//! The keys of `transport.kind = "rdma"`. Defaults are those of the published HPCC runs, and the settings of
//! their authors' simulator.

use super::irn;
use super::pair::{MAX_BACKOFF, QueuePair};
use super::recovery::{self, RECOVERIES, Recovery};
use crate::congestion::window::{Profile, TimeKey, WindowConfig};
use crate::congestion::{ControllerConfig, PairWindow, Window, pair_window};
use crate::doc::{SchemeDoc, Series};
use crate::net::ecn::EcnDefaults;
use crate::parameters::{Names, Parameters, Value};
use crate::telemetry::TelemetryConfig;
use crate::telemetry::pint::PintConfig;
use crate::transport::TransportConfig;
use crate::transport::controllers::{self, Controllers, names};
use crate::transport::parameters::{
    Facts, Framing, HostPlan, Overtaken, ReadContext, Resends, RunContext, TransportParameters,
    derived_times, far_text, is_far, narrow_window, warnings_of_law,
};
use crate::transport::plb::{self, PlbParameters};
use crate::transport::switches::SwitchDefaults;
use crate::transport::wire_format::WireFormat;
use crate::units::{Bytes, Time};
use std::sync::Arc;

/// Bytes of the send timestamp that TIMELY's packets carry.
const TIMESTAMP_BYTES: u32 = 8;
/// The least retransmission timeout that `auto` gives.
const MIN_AUTO_RTO: Time = Time::from_ms(1);
/// Shorter ones end before any answer can come, and everything is sent again for ever.
const MIN_RTO: Time = Time::from_us(1);
/// Eleven days; leaves the clock room for timeouts that are backed off.
const MAX_RTO: Time = Time::from_ms(1_000_000_000);
/// No automatic timeout needs to allow for longer waits in queues.
const LONGEST_PATIENCE: Time = Time::from_ms(10_000);
/// Bytes of a packet of another transport that waits at the same ports.
const OTHER_PACKETS: u64 = 1514;
/// Beyond any path; keeps windows within 64 bits.
const LONGEST_BASE_RTT: Time = Time::from_ms(100_000);
/// Packets of a first window (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

#[derive(Debug, Clone, PartialEq)]
pub struct RdmaConfig {
    pub controller: ControllerConfig,
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// Bytes of header of a data packet, without telemetry.
    pub header: u32,
    /// Bytes of an acknowledgement without telemetry, and the least on the wire.
    pub ack_header: u32,
    pub min_ack: u32,
    /// Traffic class of data and acknowledgements, 1 to 7.
    pub class: u8,
    /// In the compat mode, which pause gates the NIC's acknowledgement queue: that of class 0 (never) or of
    /// the data. Elsewhere always that of the data, in whose class acknowledgements travel.
    pub ack_priority: bool,
    /// Acknowledgements are in class 0 at switches, before all data.
    pub acks_first: bool,
    pub recovery: Recovery,
    /// One NACK per missing packet in this time.
    pub nack_interval: Time,
    /// Retransmission timeout; none as in the HPCC authors' simulator.
    pub rto: Option<Time>,
    pub pacing: bool,
    /// Window in bytes; none: base RTT times line rate where the controller has a window.
    pub window: Option<Bytes>,
    /// Base RTT for controllers and windows; none: the largest of all host pairs.
    pub base_rtt: Option<Time>,
    /// None: flows keep their paths.
    pub plb: Option<PlbParameters>,
    pub derived: Derived,
}

/// What follows from the other keys, from telemetry and from the network, once a run is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// Every data packet carries a telemetry stack: INT records, or PINT's digest.
    pub stack: bool,
    /// Where the controller steers on the load that PINT brings: how to read it.
    pub load: Option<Arc<PintConfig>>,
    /// Bytes of telemetry in every data packet and acknowledgement.
    pub telemetry_bytes: u32,
    /// Bytes of an acknowledgement on the wire.
    pub ack_bytes: u16,
    /// Class of the NIC's acknowledgement queue.
    pub ack_class: u8,
    pub base_rtt: Time,
    /// Headers and the acknowledgement included, if T is not configured.
    pub round_trip: Time,
    /// Window at full rate; none: line rate * base RTT. Unused without a window.
    pub window_bytes: Option<u64>,
    pub window: Window,
    pub selective: Option<u32>,
}

impl Default for Derived {
    fn default() -> Derived {
        Derived {
            stack: false,
            load: None,
            telemetry_bytes: 0,
            ack_bytes: 0,
            ack_class: 0,
            base_rtt: Time::ZERO,
            round_trip: Time::ZERO,
            window_bytes: None,
            window: Window::None,
            selective: None,
        }
    }
}

impl RdmaConfig {
    /// T of laws that compare round trips with it: what none can be below, with the time that two idle hosts take for a packet and
    /// its answer. T, where it is configured.
    pub fn round_trip(&self, packet_time: Time) -> Time {
        let in_hosts = if self.base_rtt.is_none() { packet_time.0.saturating_mul(2) } else { 0 };
        self.derived.round_trip.saturating_add(Time(in_hosts))
    }

    /// Bytes on the wire of a data packet with this payload.
    pub fn data_bytes(&self, payload: u64) -> u64 {
        payload + u64::from(self.header + self.derived.telemetry_bytes)
    }

    /// Bytes of telemetry in a data packet: INT where it is read or asked for, PINT's digest, and the time
    /// stamp of TIMELY.
    fn telemetry_bytes(&self, telemetry: &TelemetryConfig) -> u32 {
        let needs = self.controller.needs();
        let stamp = if needs.timestamp { TIMESTAMP_BYTES } else { 0 };
        telemetry.bytes(needs.int) + stamp
    }

    /// T, and the window at full rate in bytes if there is one.
    fn base_rtt_and_window(&self, run: &RunContext) -> (Time, Option<u64>) {
        let (longest, largest) = run.base_rtt(self.mtu);
        let base_rtt = self.base_rtt.unwrap_or(longest);
        let derived = match (self.controller.needs().window, run.rules.widest_window) {
            (Window::None, _) => None,
            (_, true) => Some(largest),
            (_, false) => Some(run.host_rate().bytes_in(base_rtt).0),
        };
        (base_rtt, self.window.map(|window| window.0).or(derived))
    }
}

impl RdmaConfig {
    /// The steps of the controller that follow from the rate of a NIC; a list where rates differ.
    fn steps(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        let at: Vec<_> = run.host_rates().into_iter().map(|rate| self.controller.derived(rate)).collect();
        let value = |step: usize| match &at[..] {
            [one] => one[step].1.0.into(),
            several => Value::List(several.iter().map(|of| of[step].1.0.into()).collect()),
        };
        let keys = at.first().into_iter().flatten().enumerate();
        keys.map(|(step, (key, _))| (*key, Some(value(step)))).collect()
    }
}

impl TransportParameters for RdmaConfig {
    const DOC: SchemeDoc = SchemeDoc {
        name: "rdma",
        title: "queue pairs over a lossless or lossy fabric: go-back-N or selective repeat, paced and windowed",
        source: "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator",
        validation: "Equal to the HPCC authors' simulator to the nanosecond (tests/reference.rs); page: \
                     docs/schemes/rdma.md.",
        series: &[
            Series::new(
                "ssthresh_bytes",
                "bytes",
                "Slow-start threshold of a controller with a window; infinite until something sets it.",
            ),
            Series::new(
                "srtt_ns",
                "ns",
                "Smoothed round-trip time under a controller with a window; 0: none yet.",
            ),
            plb::SERIES[0],
            plb::SERIES[1],
        ],
        ..SchemeDoc::NONE
    };
    const CONTROLLERS: Controllers = Controllers::Pairs;
    const HAS_COMPAT: bool = true;
    const CARRIES_TELEMETRY: bool = true;
    const CHOICES: &'static [(&'static str, Names)] = &[("loss recovery", RECOVERIES)];
    type State = super::Rdma;

    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<RdmaConfig> {
        let mut controller = p.scheme("controller", |table| controller(table, cx)).flatten();
        let acks_pass = controller.as_ref().is_some_and(|controller| controller.needs().ack_priority);
        let mtu = p.size("mtu", (1000, 64, 9000), "payload of a full packet (published: 1000 B)");
        let help = "header of a data packet without telemetry (published: 14 + 20 + 8 + 6 B)";
        let header = p.size("header", (48, 0, 1000), help);
        let help = "header of an acknowledgement without telemetry (published: 14 + 20 + 12 B)";
        let ack_header = p.size("ack_header", (46, 1, 1000), help);
        let help = "minimum size of an acknowledgement; shorter ones are padded (published: 60 B)";
        let min_ack = p.size("ack_least", (60, 1, 1000), help);
        let help = "traffic class of data and acknowledgements (published: 3)";
        let class = p.integer("class", 3, (1, 7), help) as u8;
        let help = "acknowledgements leave the NIC even while data is paused, as in the HPCC authors' NIC for DCQCN \
                    without window and for TIMELY; only under like = \"hpcc-ns3\", because they travel in the data's \
                    class and would overrun its headroom";
        let ignore = cx.rules.acks_ignore_pause;
        let ack_priority = p.flag_or_auto("ack_priority", acks_pass && ignore, help);
        if ack_priority && !ignore {
            p.warn("transport.ack_priority has an effect only under [compat] like = \"hpcc-ns3\"".into());
        }
        let help = "acknowledgements leave every switch before all data, in class 0";
        let acks_first = p.flag("acks_first", cx.rules.acks_first, help);
        let (mut recovery, nack_interval) = recovery::read(p);
        let lossless = cx.lossless.unwrap_or(recovery.irn().is_none());
        let rto = retransmission_timeout(p, cx, (mtu, header), lossless);
        let (bdp_cap, rto_low) = irn::read(p, rto, recovery.irn().is_some());
        if let Recovery::Irn(irn) = &mut recovery {
            (irn.bdp_cap, irn.rto_low) = (bdp_cap, rto_low);
        }
        let help = "pace the packets of a flow at its rate (published: true)";
        let pacing = p.flag("pacing", true, help);
        let help = "maximum bytes in flight, for controllers that have a window (controller.window); auto: line rate times base RTT";
        let window = p.bytes_or_auto("window", help);
        let help = "base RTT T of controllers and windows; auto: the maximum over all pairs of hosts";
        let base_rtt = p.time_or_auto("base_rtt", help);
        if window == Some(Bytes(0)) {
            p.complain("window", "a window of 0 would never send: expected a size above 0B".into());
        }
        let without = controller.as_ref().filter(|controller| window.is_some() && !controller.has_window());
        let window = window.filter(|_| without.is_none());
        if let Some(controller) = without {
            let name = controller.name();
            p.without_effect("window", || {
                format!("has no effect with \"{name}\" without a window: set window = \"auto\", or controller.window = true")
            });
        }
        if let Some(given) = base_rtt.filter(|given| *given == Time::ZERO || *given > LONGEST_BASE_RTT) {
            let message = format!("expected a time above zero and at most {LONGEST_BASE_RTT}, found {given}");
            p.complain("base_rtt", message);
        }
        initial_window(p, controller.as_mut());
        let plb = PlbParameters::read(p, plb::ROUNDS_OF_DELAY);
        Some(RdmaConfig {
            controller: controller?,
            mtu,
            header,
            ack_header,
            min_ack,
            class,
            ack_priority,
            acks_first,
            recovery,
            nack_interval,
            rto,
            pacing,
            window,
            base_rtt,
            plb,
            derived: Derived::default(),
        })
    }

    fn of(transport: &TransportConfig) -> Option<&RdmaConfig> {
        if let TransportConfig::Rdma(own) = transport { Some(own) } else { None }
    }

    fn classes(&self) -> u8 {
        1 << self.class
    }

    fn framing(&self, telemetry: &TelemetryConfig) -> Framing {
        let telemetry = self.telemetry_bytes(telemetry);
        let ack = (self.ack_header + telemetry).max(self.min_ack);
        Framing::of(self.mtu, self.header + telemetry, ack)
    }

    /// A flow begins a packet of its own, and packets are numbered.
    fn flows_begin_at(&self) -> u64 {
        u64::from(self.mtu)
    }

    fn data_header(&mut self) -> &mut u32 {
        &mut self.header
    }

    fn base_rtt(&self, run: &RunContext) -> Time {
        self.base_rtt.unwrap_or_else(|| run.base_rtt(self.mtu).0)
    }

    fn facts(&self) -> Facts<'_> {
        let (overtaken, wants_lossless) = match self.recovery.selective() {
            None => (
                Overtaken::LostAfter {
                    packets: 1,
                    why: "go-back-N treats an overtaken packet as lost and sends all packets from it on again",
                    instead: "transport.recovery = \"selective-repeat\" with a transport.reordering as large as a window of packets",
                },
                Some((
                    "go-back-N sends all packets from a dropped one on again",
                    "transport.recovery = \"selective-repeat\"",
                )),
            ),
            Some(packets) => (
                Overtaken::LostAfter {
                    packets,
                    why: "packets count as lost after a number of later packets have arrived",
                    instead: "a transport.reordering as large as a window of packets",
                },
                None,
            ),
        };
        let rto = self.rto.unwrap_or(Time::ZERO);
        Facts {
            keeps_connections: true,
            overtaken,
            wants_lossless,
            controller: Some(&self.controller),
            controller_name: Some(self.controller.name()),
            marked_controller: self.controller.needs_marks().then(|| self.controller.name()),
            heeds_marks: match self.controller.window() {
                Some(window) => window.law.heeds_marks(),
                None => self.controller.needs_marks(),
            },
            queue_at_marks: self.controller.queue_at_marks(),
            delay_controller: self.controller.follows_delay().then(|| self.controller.name()),
            longest_timeout: Time(rto.0.saturating_mul(1 << MAX_BACKOFF)),
            timer_left: rto,
            resends: self.rto.map(|after| Resends { after, doubles: true }),
            spreads_flows: self.plb.is_some(),
            goes_back: self.recovery.selective().is_none(),
            asks_again: self.recovery.selective().is_none().then_some(self.nack_interval),
            longest_windows: (self.base_rtt.is_none()
                && self.window.is_none()
                && !matches!(self.controller.needs().window, Window::None))
            .then_some("transport.base_rtt"),
            in_flight: [self.window, self.recovery.irn().and_then(|irn| irn.bdp_cap)]
                .into_iter()
                .flatten()
                .map(|bytes| bytes.0)
                .min(),
            connection_place: size_of::<QueuePair>() as u64,
            ns_per_hop: self.controller.ns_per_hop(),
            differs: self.differs(),
            ..Facts::default()
        }
    }

    fn longest_times(&self) -> Vec<TimeKey> {
        let window = self.controller.window().filter(|_| self.base_rtt.is_none());
        window.map_or(Vec::new(), |window| window.law.longest_times())
    }

    fn switch_defaults(&self) -> SwitchDefaults {
        let ecn = if self.controller.marks_at_step() { EcnDefaults::Step } else { EcnDefaults::Ramp };
        SwitchDefaults { ecn, lossless: self.recovery.irn().is_none(), ..SwitchDefaults::LOSSLESS }
    }

    fn window(&self, run: &RunContext) -> Option<u64> {
        self.base_rtt_and_window(run).1
    }

    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        let (base_rtt, window) = self.base_rtt_and_window(run);
        let (framing, telemetry) = (self.framing(run.telemetry), self.telemetry_bytes(run.telemetry));
        let mut figures = vec![
            ("controller", Some(self.controller.name().into())),
            ("base_rtt_ns", Some(base_rtt.as_ns().into())),
            ("window_bytes", window.map(Value::from)),
            ("data_packet_bytes", Some(framing.data_bytes(framing.payload).into())),
            ("ack_bytes", Some(framing.ack.into())),
            ("telemetry_bytes", Some(telemetry.into())),
            ("ack_priority", Some(Value::Flag(self.ack_priority))),
            ("acks_first", self.acks_first.then_some(Value::Flag(true))),
            ("rto_ns", self.rto.map(|rto| rto.as_ns().into())),
            ("rto_low_ns", self.recovery.irn().zip(self.rto).map(|(irn, rto)| irn.low(rto).as_ns().into())),
            (
                "bdp_cap_bytes",
                self.recovery.irn().map(|irn| {
                    let auto = || run.host_rate().bytes_in(base_rtt);
                    irn.bdp_cap.unwrap_or_else(auto).0.into()
                }),
            ),
        ];
        match self.controller.window() {
            Some(window) => figures.extend(derived_times(&window.law, base_rtt)),
            None => figures.extend(self.steps(run)),
        }
        figures
    }

    fn warnings(&self, run: &RunContext) -> Vec<String> {
        if run.rules.like != "none" {
            return Vec::new();
        }
        let (base_rtt, window) = self.base_rtt_and_window(run);
        let narrow = self.window.and_then(|window| narrow_window(run, (Self::DOC.name, self.mtu), window));
        if let Some(own) = self.controller.window() {
            let framing = self.framing(run.telemetry);
            let packet = framing.data_bytes(framing.payload) as u32;
            let (rtt, held) = run.fullest_path(self.mtu, Self::DOC.name);
            let held = (rtt, held.min(window.unwrap_or(u64::MAX)));
            let of_law = warnings_of_law(&own.law, packet, 1, base_rtt, held);
            return narrow.into_iter().chain(of_law).collect();
        }
        let mut found: Vec<String> = narrow.into_iter().collect();
        found.extend(self.controller.unfit(base_rtt));
        let framing = self.framing(run.telemetry);
        let packet = framing.data_bytes(framing.payload);
        found.extend(
            run.host_rates().into_iter().find_map(|rate| self.controller.unfit_at(rate, packet, base_rtt)),
        );
        let mut known = Vec::new();
        for rate in run.host_rates().into_iter().rev() {
            for (key, published, auto) in self.controller.published(rate) {
                if is_far(published.0, auto.0) && !known.contains(&key) {
                    known.push(key);
                    found.push(far_text(key, published, auto, format_args!("NICs of {rate}")));
                }
            }
        }
        found
    }

    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::QueuePairs(self)
    }

    fn settle(&mut self, run: &RunContext) {
        self.controller.follow(run.rules);
        let needs = self.controller.needs();
        let (longest, bdp) = run.base_rtt(self.mtu);
        let telemetry_bytes = self.telemetry_bytes(run.telemetry);
        let base_rtt = self.base_rtt.unwrap_or(longest);
        self.plb.iter_mut().for_each(|plb| plb.settle(base_rtt));
        if let ControllerConfig::Window(window) = &mut self.controller {
            window.law.settle(base_rtt);
        }
        let ack_bytes = (self.ack_header + telemetry_bytes).max(self.min_ack);
        let there_and_back = self.mtu + self.header + telemetry_bytes + ack_bytes;
        let round_trip = match (self.base_rtt, needs.delay) {
            (None, true) => run.base_rtt(there_and_back).0,
            _ => base_rtt,
        };
        let whole_network = run.rules.widest_window.then_some(bdp);
        // An acknowledgement that ignores the pause of the class it travels in overruns the headroom behind
        // it.
        let ignores_pause = self.ack_priority && run.rules.acks_ignore_pause;
        self.derived = Derived {
            stack: match run.telemetry {
                TelemetryConfig::None => false,
                TelemetryConfig::Int { all, .. } => *all || needs.int,
                TelemetryConfig::Pint(_) => true,
            },
            load: match run.telemetry {
                TelemetryConfig::Pint(pint) if needs.load.is_some() => Some(pint.clone()),
                _ => None,
            },
            telemetry_bytes,
            ack_bytes: ack_bytes as u16,
            ack_class: if ignores_pause { 0 } else { self.class },
            base_rtt,
            round_trip,
            window_bytes: self.window.map(|w| w.0).or(whole_network),
            // That of another crate may set a window itself, up to this one.
            window: match (needs.window, self.window) {
                (Window::None, Some(_)) => Window::Fixed,
                (window, _) => window,
            },
            selective: self.recovery.selective(),
        };
    }

    fn start(&self, host: &HostPlan) -> super::Rdma {
        super::Rdma::new(host.ports)
    }
}

fn controller(table: &mut Parameters, cx: &ReadContext) -> Option<ControllerConfig> {
    const DEFAULT: &str = "hpcc";
    if let Some(Value::Text(name)) = table.peek("kind") {
        match controllers::from_outside(&name, cx.controllers) {
            Ok(Some(external)) => {
                table.settle_kind(&name, DEFAULT);
                return Some(ControllerConfig::External(external.clone()));
            }
            Ok(None) => {}
            Err(message) => {
                table.refuse_kind(message);
                return None;
            }
        }
    }
    if RdmaConfig::CONTROLLERS.refuse(table) {
        return None;
    }
    let kind = table.kind("controller", DEFAULT, pair_window::kinds(), "congestion controller")?;
    if let Some(named) = pair_window::law(kind) {
        return law(named, table, cx);
    }
    let mut controller = ControllerConfig::read(kind, table)?;
    controller.follow(&cx.rules);
    Some(controller)
}

impl RdmaConfig {
    /// [`Facts::differs`]. Telemetry that no controller reads is looked at where it is set.
    fn differs(&self) -> Option<(&'static str, &'static str)> {
        let why = match &self.controller {
            ControllerConfig::Window(_) => "draws by the number of its flow",
            ControllerConfig::External(_) => "is of another crate, and not known to repeat",
            controller if controller.needs().int || controller.needs().load.is_some() => {
                "goes by telemetry, which has times and counters since the start of the run"
            }
            _ if self.plb.is_some() => return Some(("plb", "moves flows by what they have seen")),
            _ => return None,
        };
        Some(("controller.kind", why))
    }
}

/// A window controller of a queue pair; its defaults are those of TCP's profile `rfc`.
fn law(named: &pair_window::Named, table: &mut Parameters, cx: &ReadContext) -> Option<ControllerConfig> {
    let mut law = WindowConfig::read(named.law, table, Profile::Rfc)?;
    if let Err((key, why)) = law.follow(&cx.rules) {
        table.complain(key, why);
    }
    if cx.rules.only_rdma {
        let why = "repeats a simulator that has no window controllers: leave [compat] out";
        table.complain("kind", format!("like = \"{}\" {why}", cx.rules.like));
    }
    if let Some((key, why)) = law.only_tcp() {
        table.complain(key, format!("{why}: leave it out, or set transport.kind = \"tcp\""));
    }
    let initial = INITIAL_WINDOW;
    Some(ControllerConfig::Window(PairWindow { name: named.name, law: Box::new(law), initial }))
}

/// The first window, which controllers that steer a rate do not have: they begin at line rate.
fn initial_window(p: &mut Parameters, controller: Option<&mut ControllerConfig>) {
    let help = "with a window controller: initial window in packets (RFC 6928: 10); the path's bandwidth-delay \
                product gives line rate from the start, as rate controllers do";
    let packets = p.integer("initial_window", i64::from(INITIAL_WINDOW), (1, 1 << 20), help);
    match controller {
        Some(ControllerConfig::Window(window)) => window.initial = packets as u32,
        None => {}
        Some(other) => p.without_effect("initial_window", || {
            format!(
                "has no effect with \"{}\", which begins at line rate: leave it out, or choose a window controller ({})",
                other.name(),
                names(pair_window::laws().iter().map(|named| named.name))
            )
        }),
    }
}

/// A time, `auto` or `none`.
fn retransmission_timeout(
    p: &mut Parameters,
    cx: &ReadContext,
    (mtu, header): (u32, u32),
    lossless: bool,
) -> Option<Time> {
    let default = if cx.rules.no_timeout { "none" } else { "auto" };
    let ten_round_trips = Time((cx.base_rtt)(mtu).0.saturating_mul(10));
    // How long a packet may wait in queues, with packets of other transports that may be larger.
    let waiting = (cx.waiting)(u64::from(mtu + header).max(OTHER_PACKETS));
    let patience = Time(waiting.0.saturating_mul(if lossless { 4 } else { 1 })).min(LONGEST_PATIENCE);
    let auto = ten_round_trips.max(patience).clamp(MIN_AUTO_RTO, MAX_RTO);
    let help = "retransmission timeout: a time, \"none\" (as in the HPCC authors' simulator and under like = \
                \"hpcc-ns3\"), or \"auto\": the maximum of 1 ms, ten base RTTs, and the time in which the slowest \
                link empties a switch's buffer, or the largest queue where every port has a buffer of its own (four \
                times that time with PFC, because pauses make queues wait for other queues); with a shorter timeout, packets that only wait in queues would be sent again";
    p.time_or_word("rto", (MIN_RTO, MAX_RTO), (default, &[("auto", Some(auto)), ("none", None)]), help)
}
