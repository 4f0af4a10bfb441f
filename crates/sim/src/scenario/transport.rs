//! `[transport]`: how flows are sent, and by which controller.
//!
//! Defaults are those of the published HPCC runs: Li et al., "HPCC: High Precision Congestion Control",
//! SIGCOMM 2019, and the settings of the authors' simulator.

use super::section::Section;
use super::switch::{EcnDefaults, SwitchDefaults};
use crate::balance;
use crate::compat::Rules;
use crate::config::{EcnEcho, RdmaConfig, Recovery, StartRule, TcpConfig, TransportConfig};
use crate::congestion::external::ExternalController;
use crate::congestion::window::{self, WindowConfig};
use crate::congestion::{self, ControllerConfig, PairWindow, pair_window};
use crate::parameters::{Declared, Kind, Nothing, Parameters, Source, Value, describe};
use crate::topology::Topology;
use crate::transport::{fastpass, mptcp as mptcp_transport, pfabric, phost, tcp as tcp_transport};
use crate::units::{Bytes, Rate, Time};

pub use crate::transport::KINDS as TRANSPORTS;

pub const RECOVERIES: &[(&str, &str)] = &[
    ("go-back-n", "after a gap everything from the missing packet on is sent again"),
    (
        "selective-repeat",
        "out-of-order packets are kept and only missing ones sent again (IRN, SIGCOMM 2018)",
    ),
];

/// What the other sections decide about a transport.
pub struct TransportContext<'a> {
    pub rules: Rules,
    /// Largest base RTT for packets of this payload.
    pub base_rtt: &'a dyn Fn(u32) -> Time,
    /// The highest rate of a host's link.
    pub host_rate: Rate,
    /// None: it is wrong, and that has been said.
    pub topology: Option<&'a Topology>,
    /// How long queues may hold a packet before it counts as lost.
    pub patience: Time,
    /// The time in which the slowest link empties a switch's buffer.
    pub drain: Time,
    /// Controllers from outside this crate, by name.
    pub controllers: &'a [ExternalController],
}

/// What a transport is that does not say.
pub const DEFAULT: &str = "rdma";

/// The least retransmission timeout that `auto` gives.
const LEAST_AUTO_RTO: Time = Time::from_ms(1);
/// Shorter ones end before any answer can come, and everything is sent again for ever.
const LEAST_RTO: Time = Time::from_us(1);
/// Eleven days; leaves the clock room for timeouts that are backed off.
const MOST_RTO: Time = Time::from_ms(1_000_000_000);

/// Beyond any path; keeps windows within 64 bits.
const LONGEST_BASE_RTT: Time = Time::from_ms(100_000);

/// Reads one transport. None: its kind or controller is unknown, and said.
pub fn read(section: &mut Section, cx: &TransportContext) -> Option<TransportConfig> {
    let kind = section.kind("transport", Some(DEFAULT), TRANSPORTS, "how flows are sent")?;
    read_keys(kind, section, cx)
}

/// Declares the keys of one kind.
pub fn declare(kind: &str, section: &mut Section, cx: &TransportContext) {
    section.kind("transport", Some(DEFAULT), TRANSPORTS, "how flows are sent");
    read_keys(kind, section, cx);
}

fn read_keys(kind: &str, section: &mut Section, cx: &TransportContext) -> Option<TransportConfig> {
    match kind {
        "phost" => phost(section, cx),
        "pfabric" => pfabric(section, cx),
        "fastpass" => fastpass(section, cx),
        "tcp" => tcp(section, cx),
        "mptcp" => mptcp(section, cx),
        _ => rdma(section, cx),
    }
}

/// Says so if the compat mode is asked for with a transport that it does not have.
fn only_rdma_has_compat(section: &mut Section, cx: &TransportContext) {
    if cx.rules.only_rdma {
        let why = "repeats a simulator that has only RDMA: leave [compat] out, or set kind = \"rdma\"";
        section.complain("kind", format!("like = \"{}\" {why}", cx.rules.like));
    }
}

fn pfabric(section: &mut Section, cx: &TransportContext) -> Option<TransportConfig> {
    only_rdma_has_compat(section, cx);
    let network = pfabric::Network { base_rtt: cx.base_rtt, host_rate: cx.host_rate };
    Some(TransportConfig::Pfabric(pfabric::read(&mut section.parameters(), &network)))
}

fn phost(section: &mut Section, cx: &TransportContext) -> Option<TransportConfig> {
    only_rdma_has_compat(section, cx);
    let network = phost::Network { base_rtt: cx.base_rtt, host_rate: cx.host_rate };
    Some(TransportConfig::Phost(phost::read(&mut section.parameters(), &network)))
}

fn fastpass(section: &mut Section, cx: &TransportContext) -> Option<TransportConfig> {
    only_rdma_has_compat(section, cx);
    let network = fastpass::Network { base_rtt: cx.base_rtt, topology: cx.topology };
    let config = fastpass::read(&mut section.parameters(), &network);
    if config.arbiter.start == StartRule::Receipt {
        section.forget("lead");
        if section.peek("lead").is_some() {
            section
                .complain("lead", "has no effect with start = \"receipt\": set start = \"boundary\"".into());
        }
    }
    let alone = cx.topology.is_none_or(|topology| topology.extra_hosts > 0);
    if !alone && section.peek("arbiter").is_none() {
        let message = "transport.arbiter: the last host, which may carry traffic as well; set arbiter, or topology.extra_hosts = \
                       1 on a leaf-spine network for a host of its own";
        section.warn(message.into());
    }
    Some(TransportConfig::Fastpass(config))
}

/// The controller of a flow over TCP that does not say, and over multipath TCP (RFC 6356).
pub const DEFAULT_WINDOW: &str = "cubic";
const DEFAULT_COUPLED: &str = "lia";

fn tcp(section: &mut Section, cx: &TransportContext) -> Option<TransportConfig> {
    only_rdma_has_compat(section, cx);
    let profile = tcp_transport::profile(&mut section.parameters());
    let mut table = section.scheme("controller");
    let controller = window_controller(&mut table, profile, "tcp");
    section.absorb("controller", table);
    let known = controller.is_some();
    let wire = tcp_transport::Wire::of(profile);
    let controller = controller.or_else(|| fallback_window(profile))?;
    let config = tcp_transport::read(&mut section.parameters(), profile, controller, wire, &tcp_network(cx));
    known.then(|| TransportConfig::Tcp(Box::new(config)))
}

fn tcp_network<'a>(cx: &'a TransportContext) -> tcp_transport::Network<'a> {
    tcp_transport::Network { base_rtt: cx.base_rtt, drain: cx.drain }
}

/// Stands for a controller that is wrong, so that the other keys are looked at too.
fn fallback_window(profile: window::Profile) -> Option<WindowConfig> {
    WindowConfig::read(DEFAULT_WINDOW, &mut Parameters::new(&mut Nothing::default()), profile)
}

fn mptcp(section: &mut Section, cx: &TransportContext) -> Option<TransportConfig> {
    only_rdma_has_compat(section, cx);
    let mut table = section.scheme("controller");
    let controller = window_controller(&mut table, window::Profile::Rfc, "mptcp");
    section.absorb("controller", table);
    let known = controller.is_some();
    let controller = controller.or_else(|| fallback_window(window::Profile::Rfc))?;
    let config = mptcp_transport::read(&mut section.parameters(), controller, &tcp_network(cx));
    known.then(|| TransportConfig::Mptcp(Box::new(config)))
}

/// A controller that steers a window. Those that steer a rate need what TCP's acknowledgements do not bring.
fn window_controller(table: &mut Section, profile: window::Profile, transport: &str) -> Option<WindowConfig> {
    if let Some(Value::Text(name)) = table.peek("kind") {
        if let Some(why) = refusal(transport, &name) {
            table.get("kind");
            table.complain("kind", why);
            return None;
        }
    }
    let default = if transport == "mptcp" { DEFAULT_COUPLED } else { DEFAULT_WINDOW };
    let kind = table.kind("controller", Some(default), window::KINDS, "congestion controller")?;
    WindowConfig::read(kind, &mut table.parameters(), profile)
}

fn rdma(section: &mut Section, cx: &TransportContext) -> Option<TransportConfig> {
    let mut table = section.scheme("controller");
    let mut controller = controller(&mut table, cx);
    section.absorb("controller", table);
    let acks_pass = controller.as_ref().is_some_and(ControllerConfig::ack_priority_default);
    let mtu = small(section, "mtu", (1000, 64, 9000), "payload of a full packet (published: 1000 B)");
    let help = "header of a data packet without telemetry (published: 14 + 20 + 8 + 6 B)";
    let header = small(section, "header", (48, 0, 1000), help);
    let help = "header of an acknowledgement without telemetry (published: 14 + 20 + 12 B)";
    let ack_header = small(section, "ack_header", (46, 1, 1000), help);
    let help = "an acknowledgement is padded to this (published: 60 B)";
    let ack_least = small(section, "ack_least", (60, 1, 1000), help);
    let help = "traffic class of data and acknowledgements (published: 3)";
    let class = section.parameters().integer("class", 3, (1, 7), help) as u8;
    let help = "acknowledgements leave the NIC even while data is paused, as the HPCC authors' NIC has it for DCQCN without \
                window and for TIMELY; only under like = \"hpcc-ns3\", because they travel in the data's class and would \
                overrun its headroom";
    let ignore = cx.rules.acks_ignore_pause;
    let ack_priority = section.flag_or_auto("ack_priority", acks_pass && ignore, help);
    if ack_priority && !ignore {
        section.warn("transport.ack_priority acts only under [compat] like = \"hpcc-ns3\"".into());
    }
    let recovery = recovery(section);
    let help = "one NACK per missing packet in this time (published: 500 us)";
    let nack_interval = section.parameters().time("nack_interval", Time::from_us(500), help);
    let rto = retransmission_timeout(section, cx, mtu);
    let help = "space the packets of a flow by its rate (published: true)";
    let pacing = section.parameters().flag("pacing", true, help);
    let help = "bytes in flight allowed to a flow with a window; auto: line rate times base RTT";
    let window = section.parameters().bytes_or_auto("window", help);
    let help = "base RTT T of controllers and windows; auto: the largest of all pairs of hosts";
    let base_rtt = section.parameters().time_or_auto("base_rtt", help);
    if window == Some(Bytes(0)) {
        section.complain("window", "a window of 0 would never send: expected a size above 0B".into());
    }
    if let Some(given) = base_rtt.filter(|given| *given == Time::ZERO || *given > LONGEST_BASE_RTT) {
        let message = format!("expected a time above zero and at most {LONGEST_BASE_RTT}, found {given}");
        section.complain("base_rtt", message);
    }
    initial_window(section, controller.as_mut());
    let controller = controller?;
    Some(TransportConfig::Rdma(RdmaConfig {
        controller,
        mtu,
        header,
        ack_header,
        ack_least,
        class,
        ack_priority,
        recovery,
        nack_interval,
        rto,
        pacing,
        window,
        base_rtt,
    }))
}

/// A size that fits a packet, with its least and most.
fn small(
    section: &mut Section,
    key: &'static str,
    (default, least, most): (u32, u32, u32),
    help: &'static str,
) -> u32 {
    let bytes = section.parameters().bytes(key, Bytes(u64::from(default)), help);
    if (u64::from(least)..=u64::from(most)).contains(&bytes.0) {
        return bytes.0 as u32;
    }
    section.complain(key, format!("{bytes} is out of range: expected {least}B to {most}B"));
    default
}

fn controller(table: &mut Section, cx: &TransportContext) -> Option<ControllerConfig> {
    if let Some(Value::Text(name)) = table.peek("kind") {
        let bare = name.strip_prefix("python:").unwrap_or(&name);
        if let Some(external) = cx.controllers.iter().find(|c| *c.name == *name || *c.name == *bare) {
            table.get("kind");
            table.settle_kind(&name, Some("hpcc"));
            table.resolve("kind", Value::Text(name.clone()));
            return Some(ControllerConfig::External(external.clone()));
        }
        if name.starts_with("python:") {
            table.get("kind");
            let message = format!(
                "controller \"{bare}\" is written in Python; say where: --controller {bare}=FILE.py:CLASS, \
                 {bare} = \"FILE.py:CLASS\" below [controllers] of a sweep, or controllers={{\"{bare}\": ...}} in Python"
            );
            table.complain("kind", message);
            return None;
        }
    }
    if let Some(Value::Text(name)) = table.peek("kind") {
        if let Some(why) = refusal("rdma", &name) {
            table.get("kind");
            table.complain("kind", why);
            return None;
        }
    }
    let kind = table.kind("controller", Some("hpcc"), pair_window::kinds(), "congestion controller")?;
    if let Some(named) = pair_window::law(kind) {
        return law(named, table, cx);
    }
    let mut controller = ControllerConfig::read(kind, &mut table.parameters())?;
    controller.set_eager_timers(cx.rules.eager_timers);
    Some(controller)
}

/// A window controller of a queue pair; its defaults are those of TCP's profile `rfc`.
fn law(named: &pair_window::Named, table: &mut Section, cx: &TransportContext) -> Option<ControllerConfig> {
    let law = WindowConfig::read(named.law, &mut table.parameters(), window::Profile::Rfc)?;
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

/// Packets of a first window (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

/// The first window, which controllers that steer a rate do not have: they begin at line rate.
fn initial_window(section: &mut Section, controller: Option<&mut ControllerConfig>) {
    let given = section.peek("initial_window").is_some();
    let help = "with a window controller: packets of the first window (RFC 6928: 10); line rate from the start, as controllers of rates \
                have it, is the path's bandwidth-delay product";
    let packets =
        section.parameters().integer("initial_window", i64::from(INITIAL_WINDOW), (1, 1 << 20), help);
    match controller {
        Some(ControllerConfig::Window(window)) => window.initial = packets as u32,
        None => {}
        Some(other) => {
            section.forget("initial_window");
            if given {
                let message = format!(
                    "has no effect with \"{}\", which begins at line rate: leave it out, or choose a window controller ({})",
                    other.name(),
                    names(pair_window::laws().iter().map(|named| named.name))
                );
                section.complain("initial_window", message);
            }
        }
    }
}

fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

/// Why flows over a transport cannot have the controller of this name, though another transport can; none: they can, or nothing is
/// called so.
pub fn refusal(transport: &str, controller: &str) -> Option<String> {
    let is = |kinds: &[(&str, &str)]| kinds.iter().any(|kind| kind.0 == controller);
    let bare = controller.strip_prefix("python:");
    match transport {
        "rdma" if window::couples(controller) => Some(format!(
            "\"{controller}\" couples the subflows of a multipath connection, and a queue pair has one path: set transport.kind = \
             \"mptcp\", or controller.kind = \"newreno\", which it is for one path"
        )),
        "tcp" | "mptcp" if bare.is_some() || is(congestion::kinds()) && !is(window::KINDS) => Some(format!(
            "\"{controller}\" steers the rate of a NIC's queue pair, and TCP is steered by its window: set transport.kind = \"rdma\", \
             or a controller for TCP ({})",
            names(window::KINDS.iter().map(|kind| kind.0))
        )),
        "tcp" if window::couples(controller) => Some(format!(
            "\"{controller}\" couples the subflows of a multipath connection, and a TCP connection has one path: set transport.kind = \
             \"mptcp\", or controller.kind = \"newreno\", which it is for one path"
        )),
        _ => None,
    }
}

/// A controller as a transport has it.
pub struct Offered {
    /// Its name there.
    pub name: &'static str,
    /// Its name among its like: those that steer a window, or those that steer a rate.
    pub listed: &'static str,
    pub is_law: bool,
}

/// The controllers that flows over a transport may have.
pub fn controllers_of(transport: &str) -> Vec<Offered> {
    let law = |name, listed| Offered { name, listed, is_law: true };
    let mut all: Vec<Offered> = match transport {
        "rdma" => {
            let own = congestion::kinds().iter().map(|kind| Offered {
                name: kind.0,
                listed: kind.0,
                is_law: false,
            });
            own.chain(pair_window::laws().iter().map(|named| law(named.name, named.law))).collect()
        }
        "tcp" | "mptcp" => window::KINDS.iter().map(|kind| law(kind.0, kind.0)).collect(),
        _ => Vec::new(),
    };
    all.retain(|offered| refusal(transport, offered.name).is_none());
    all
}

fn recovery(section: &mut Section) -> Recovery {
    let help = "what is sent again after a loss (published: go-back-n)";
    let chosen = section.parameters().choice("recovery", "go-back-n", RECOVERIES, help);
    let help = "with selective-repeat: a packet counts as lost when one sent this many packets later has arrived \
                (3, as TCP's duplicate acknowledgements)";
    let given = section.peek("reordering").is_some();
    let reordering = section.parameters().integer("reordering", 3, (1, 1 << 20), help) as u32;
    if chosen == "selective-repeat" {
        return Recovery::SelectiveRepeat { reordering };
    }
    section.forget("reordering");
    if given {
        let message = "has no effect with recovery = \"go-back-n\": set recovery = \"selective-repeat\"";
        section.complain("reordering", message.to_string());
    }
    Recovery::GoBackN
}

/// A time, `auto` or `none`.
fn retransmission_timeout(section: &mut Section, cx: &TransportContext, mtu: u32) -> Option<Time> {
    let default = if cx.rules.no_timeout { "none" } else { "auto" };
    let ten_round_trips = Time((cx.base_rtt)(mtu).0.saturating_mul(10));
    let auto = || ten_round_trips.max(cx.patience).clamp(LEAST_AUTO_RTO, MOST_RTO);
    let expected = "expected a time such as \"1ms\", \"auto\" or \"none\"";
    let named = |name: &str| if name == "none" { None } else { Some(auto()) };
    let rto = match section.get("rto") {
        None => named(default),
        Some(Value::Text(text)) if text == "auto" || text == "none" => named(&text),
        Some(Value::Text(text)) => match text.parse::<Time>() {
            Ok(time) if !(LEAST_RTO..=MOST_RTO).contains(&time) => {
                section
                    .complain("rto", format!("expected a time from {LEAST_RTO} to {MOST_RTO}, found {time}"));
                None
            }
            Ok(time) => Some(time),
            Err(error) => {
                section.complain("rto", format!("{expected}: {error}"));
                None
            }
        },
        Some(other) => {
            section.complain("rto", format!("{expected}, found {}", describe(&other)));
            None
        }
    };
    let help = "retransmission timeout: a time, \"none\" (the HPCC authors have none, and so has like = \"hpcc-ns3\"), or \
                \"auto\": the most of 1 ms, ten base RTTs, and the time in which the slowest link empties a switch's buffer \
                (four times that with PFC, whose pauses queue packets behind packets): sooner, packets that only wait \
                would be sent again";
    let shown = rto.map_or("none".to_string(), |time| time.to_string());
    let declared = Declared { key: "rto", kind: Kind::Text, default: Some(default.to_string()), help };
    section.declare(declared, Some(Value::Text(shown)));
    rto
}

/// How switches were set where this transport was published, with its controller.
pub fn switch_defaults(transport: Option<&TransportConfig>) -> SwitchDefaults {
    match transport {
        Some(TransportConfig::Rdma(RdmaConfig { controller: ControllerConfig::Dctcp(_), .. })) => {
            SwitchDefaults { ecn: EcnDefaults::Step, ..SwitchDefaults::RDMA }
        }
        Some(TransportConfig::Rdma(RdmaConfig { controller: ControllerConfig::Window(window), .. }))
            if matches!(*window.law, WindowConfig::Dctcp(_)) =>
        {
            SwitchDefaults { ecn: EcnDefaults::Step, ..SwitchDefaults::RDMA }
        }
        Some(TransportConfig::Phost(phost)) => {
            let free = u64::from(phost.free_tokens) * u64::from(phost.packet());
            SwitchDefaults {
                marks: false,
                lossless: false,
                queue: "priority",
                // Published: three times what a flow may send before it is told to.
                limit: Some(Bytes((3 * free).max(36 << 10))),
                balancer: balance::BY_LABEL,
                ..SwitchDefaults::RDMA
            }
        }
        Some(TransportConfig::Pfabric(pfabric)) => SwitchDefaults {
            marks: false,
            lossless: false,
            queue: "pfabric",
            limit: Some(pfabric.queue_limit),
            balancer: balance::BY_LABEL,
            ..SwitchDefaults::RDMA
        },
        Some(TransportConfig::Fastpass(fastpass)) => SwitchDefaults {
            marks: false,
            lossless: false,
            queue: "priority",
            // Published: 36 KiB. Queues are those of packets that meet by chance, whatever the round trip.
            limit: Some(Bytes((24 * u64::from(fastpass.packet())).max(36 << 10))),
            balancer: balance::BY_LABEL,
            ..SwitchDefaults::RDMA
        },
        Some(TransportConfig::Mptcp(mptcp)) => tcp_switch_defaults(&mptcp.tcp),
        Some(TransportConfig::Tcp(tcp)) => tcp_switch_defaults(tcp),
        _ => SwitchDefaults::RDMA,
    }
}

fn tcp_switch_defaults(tcp: &TcpConfig) -> SwitchDefaults {
    SwitchDefaults {
        marks: tcp.ecn != EcnEcho::Off,
        ecn: if tcp.ecn == EcnEcho::Exact { EcnDefaults::Step } else { EcnDefaults::Ramp },
        lossless: false,
        ..SwitchDefaults::RDMA
    }
}
