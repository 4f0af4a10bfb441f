//! The maps of `bpf/hula.bpf.c` (layout: `bpf/hula_tc.h`), from the simulator's own parameters of HULA.

use crate::Plain;
use std::net::IpAddr;
use weftline_sim as sim;
use weftline_sim::balance::hula::{HulaParameters, salt};
use weftline_sim::balance::{Place, Side, Tag};
use weftline_sim::packet::Packet;
use weftline_sim::tag::{self, ETHERTYPE};

/// Names of the counters of the map `hula_counts`, in their order.
pub const COUNTS: [&str; 9] =
    ["probes", "refused", "passed", "lost", "data", "flowlets", "moved", "unprobed", "left"];

/// Limits of the maps: ports of a switch, switches with hosts, slots of flowlets.
pub const PORTS: usize = 64;
pub const TORS: usize = 4096;
pub const SLOTS: u32 = 1 << 16;

const RELEASE: u32 = 1;
const REFRESH: u32 = 2;
const SUPPRESS: u32 = 4;

/// The only entry of the map `hula_config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// The switch's number as a ToR plus 1; 0: it has no hosts.
    pub own: u32,
    tors: u32,
    slots: u32,
    flags: u32,
    shift: u32,
    /// Not 0: time comes with the packet, for replays and tests.
    pub replay: u32,
    hysteresis: u32,
    reserved: u32,
    salt: u64,
    tau_ns: u64,
    reciprocal: u64,
    gap_ns: u64,
    failure_ns: u64,
    due_ns: u64,
    /// Ports to switches of a higher tier.
    pub up: u64,
    down: u64,
}

/// An entry of the map `hula_ports`, by number of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Port {
    lock: u32,
    pub interface: u32,
    pub whole: u64,
    pub used: u64,
    pub last_ns: u64,
    pub probed_ns: u64,
    /// The neighbour's address and the port's own.
    pub addresses: [u8; 12],
    reserved: u32,
}

/// An entry of the map `hula_tors`, by number of the ToR. Ports are numbers plus 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Tor {
    lock: u32,
    pub port: u32,
    pub received_ns: u64,
    pub passed_ns: u64,
    pub passed_port: u32,
    pub utilisation: u8,
    pub passed_utilisation: u8,
    reserved: u16,
    /// Ports on shortest paths to it.
    pub allowed: u64,
    /// Ports to neighbours for whom this switch is on one.
    pub takers: u64,
}

/// An entry of the map `hula_flowlets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Flowlet {
    pub last_ns: u64,
    pub port: u32,
    reserved: u32,
}

/// A key of the map `hula_hosts`, whose values are numbers of ToRs plus 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Prefix {
    bits: u32,
    address: [u8; 16],
}

// SAFETY: no padding, numbers only; the sizes are those of C.
unsafe impl Plain for Config {}
unsafe impl Plain for Port {}
unsafe impl Plain for Tor {}
unsafe impl Plain for Flowlet {}
unsafe impl Plain for Prefix {}
const _: () = assert!(size_of::<Config>() == 96 && size_of::<Port>() == 56 && size_of::<Tor>() == 48);
const _: () = assert!(size_of::<Flowlet>() == 16 && size_of::<Prefix>() == 20);

const PS: u64 = 1_000;

impl Config {
    /// Of one switch. Times are cut to whole nanoseconds. Error: what the maps have no room for.
    pub fn new(hula: &HulaParameters, at: &Place) -> Result<Config, String> {
        let (ports, tors) = (at.neighbours.len(), at.fabric.host_on.len());
        if ports > PORTS {
            return Err(format!("{}: {ports} ports: programs of switches keep up to {PORTS}", at.name));
        }
        if tors > TORS {
            return Err(format!("{tors} switches with hosts: programs of switches keep up to {TORS}"));
        }
        if hula.flowlets.slots > SLOTS {
            return Err(format!(
                "switch.balancer.flowlets = {}: programs of switches keep up to {SLOTS}",
                hula.flowlets.slots
            ));
        }
        let to = |side: Side| {
            let ports = at.neighbours.iter().enumerate().filter(|(_, neighbour)| neighbour.side == side);
            ports.fold(0, |mask, (port, _)| mask | 1 << port)
        };
        let flags = [(hula.release, RELEASE), (hula.refresh_on_best, REFRESH), (hula.suppress, SUPPRESS)];
        let law = hula.law();
        Ok(Config {
            own: at.tor.map_or(0, |tor| tor + 1),
            tors: tors as u32,
            slots: hula.flowlets.slots,
            flags: flags.iter().filter(|(on, _)| *on).map(|(_, flag)| flag).sum(),
            shift: law.shift().map_or(0, |shift| shift + 1),
            replay: 0,
            hysteresis: hula.hysteresis.into(),
            reserved: 0,
            salt: salt(at),
            tau_ns: law.tau().div_ceil(PS),
            reciprocal: law.reciprocal(),
            gap_ns: hula.flowlets.gap.0 / PS,
            failure_ns: hula.failure_time.0 / PS,
            due_ns: (hula.interval.0 / 2).div_ceil(PS),
            up: to(Side::Up),
            down: to(Side::Down),
        })
    }
}

impl Port {
    /// Of an interface with this rate; `addresses`: the neighbour's and its own.
    pub fn new(hula: &HulaParameters, interface: u32, bits_per_second: u64, addresses: [u8; 12]) -> Port {
        Port { interface, whole: hula.law().whole(bits_per_second), addresses, ..Port::zero() }
    }
}

impl Tor {
    /// Nothing was probed of it yet.
    pub fn new(allowed: u64, takers: u64) -> Tor {
        Tor { allowed, takers, ..Tor::zero() }
    }
}

impl Prefix {
    /// The first bits of an address.
    pub fn new(address: IpAddr, bits: u32) -> Prefix {
        match address {
            IpAddr::V4(address) => {
                Prefix { bits: 96 + bits.min(32), address: address.to_ipv6_mapped().octets() }
            }
            IpAddr::V6(address) => Prefix { bits: bits.min(128), address: address.octets() },
        }
    }
}

/// What the maps of one switch begin with.
#[derive(Debug, Clone)]
pub struct Switch {
    /// Among the nodes of the network.
    pub node: u32,
    pub config: Config,
    /// By port, interfaces and addresses apart.
    pub ports: Vec<Port>,
    /// By ToR.
    pub tors: Vec<Tor>,
}

/// All switches of a network, in the order of its nodes; and by host the number of its ToR, in each plane alike. Error: planes
/// in which it has different numbers; what the maps have no room for.
pub fn switches(
    network: &sim::config::Config,
    hula: &HulaParameters,
) -> Result<(Vec<Switch>, Vec<u32>), String> {
    let (mut found, mut tor_of, mut wrong) = (Vec::new(), Vec::new(), None);
    sim::each_switch(network, &mut |switch| {
        let place = &switch.place;
        let config = match Config::new(hula, place) {
            Ok(config) => config,
            Err(why) => return wrong = Some(why),
        };
        let ports = 0..place.neighbours.len() as u32;
        let mask = |leads: &dyn Fn(u32) -> bool| {
            ports.clone().filter(|&port| leads(port)).fold(0, |mask, port| mask | 1 << port)
        };
        let tor = |&host: &u32| {
            let fabric = |port: u32| place.neighbours[port as usize].side != Side::Host;
            let allowed = mask(&|port| fabric(port) && switch.leads_to(port, host));
            Tor::new(allowed, mask(&|port| fabric(port) && switch.leads_here(port, host)))
        };
        if !tor_of.is_empty() && tor_of != place.fabric.tor_of {
            let why =
                "its planes number the switches with hosts differently; the programs know one number a host";
            return wrong = Some(why.to_owned());
        }
        tor_of.clone_from(&place.fabric.tor_of);
        found.push(Switch {
            node: place.node,
            config,
            ports: ports.clone().map(|port| Port::new(hula, 0, switch.rate(port).0, [0; 12])).collect(),
            tors: place.fabric.host_on.iter().map(tor).collect(),
        });
    });
    wrong.map_or(Ok((found, tor_of)), Err)
}

/// The frame of a probe, as the simulator's captures have it; none: not a probe of HULA's.
pub fn probe(addresses: [u8; 12], tag: Option<Tag>, packet: &Packet) -> Option<Vec<u8>> {
    let mut frame = [&addresses[..], &ETHERTYPE.to_be_bytes(), &tag::bytes(0, &tag?)].concat();
    frame.resize(frame.len().max(packet.size.into()), 0);
    Some(frame)
}
