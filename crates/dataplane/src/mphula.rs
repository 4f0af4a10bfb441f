//! The maps that `bpf/mphula.bpf.c` has besides HULA's (layout: `bpf/mphula_tc.h`), from the simulator's own parameters of MP-HULA.

use crate::{Plain, hula};
use weftline_sim as sim;
use weftline_sim::balance::Place;
use weftline_sim::balance::mp_hula::MpHulaParameters;
use weftline_sim::balance::subflows::RankForm;

/// Names of the counters of the map `hula_counts`, in their order.
pub const COUNTS: [&str; 16] = [
    "probes",
    "refused",
    "passed",
    "lost",
    "data",
    "flowlets",
    "moved",
    "unprobed",
    "left",
    "marked",
    "cleared",
    "joined",
    "strangers",
    "keys",
    "missed",
    "forged",
];

/// Limits of the maps: next hops for each ToR, subflows of a connection, subflows that a ToR remembers; bytes of the ring buffer.
pub const RANKS: usize = 16;
pub const NUMBERS: usize = 16;
pub const SUBFLOWS: u32 = 1 << 14;
pub const RING: usize = 1 << 20;
/// Bytes of a mark.
pub const MARK: u16 = 12;

const STEERS: u32 = 1;
const DISJOINT: u32 = 2;
const HASHED: u32 = 4;

/// The only entry of the map `mphula_config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    ranks: u32,
    flags: u32,
    divisor: u32,
    tier: u32,
    hysteresis: u32,
    reserved: u32,
}

/// A ranked hop; its port is a number plus 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Hop {
    pub received_ns: u64,
    pub port: u32,
    pub utilisation: u32,
}

/// An entry of the map `mphula_hops`, by number of the ToR: the first `used` are known, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Hops {
    pub hops: [Hop; RANKS],
    pub used: u32,
    reserved: u32,
}

/// An entry of the map `mphula_used`: the ports (plus 1) that a connection's subflows use, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Used {
    lock: u32,
    reserved: u32,
    pub connection: u64,
    pub last_ns: [u64; NUMBERS],
    pub ports: [u8; NUMBERS],
}

/// A key of the map `mphula_subflows`: a subflow's addresses and ports as the ToR's own host sends, as numbers of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Ends {
    source: [u64; 2],
    destination: [u64; 2],
    ports: u32,
    reserved: u32,
}

/// An entry of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Subflow {
    /// The token of the initiator (upper half) and that of the other end.
    pub connection: u64,
    pub number: u32,
    reserved: u32,
}

/// An entry of the map `mphula_connections`: subflows that are known, and the number of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Connection {
    pub subflows: u32,
    pub next: u32,
}

/// A record of the ring buffer: a packet had both keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Keys {
    pub ends: Ends,
    /// The initiator's first.
    pub keys: [u64; 2],
    /// Of MPTCP.
    pub version: u32,
    reserved: u32,
}

// SAFETY: no padding, numbers only; the sizes are those of C.
unsafe impl Plain for Config {}
unsafe impl Plain for Hops {}
unsafe impl Plain for Used {}
unsafe impl Plain for Ends {}
unsafe impl Plain for Subflow {}
unsafe impl Plain for Connection {}
unsafe impl Plain for Keys {}
const _: () = assert!(size_of::<Config>() == 24 && size_of::<Hops>() == 264 && size_of::<Used>() == 160);
const _: () = assert!(size_of::<Ends>() == 40 && size_of::<Subflow>() == 16 && size_of::<Keys>() == 64);

impl Config {
    /// Of one switch.
    pub fn new(settings: &MpHulaParameters, at: &Place) -> Config {
        let (subflows, tier) = (&settings.subflows, u32::from(at.tier.saturating_sub(1)));
        let steers = settings.ranks > 1 && at.subflows;
        let flags = [(steers, STEERS), (subflows.disjoint, DISJOINT), (subflows.hashed_start, HASHED)];
        let divisor = match subflows.rank {
            RankForm::RoundRobin => 1,
            RankForm::Digits => u32::from(settings.ranks.max(1)).saturating_pow(tier),
        };
        Config {
            ranks: settings.ranks.max(1).into(),
            flags: flags.iter().filter(|(on, _)| *on).map(|(_, flag)| flag).sum(),
            divisor,
            tier,
            hysteresis: settings.hula.hysteresis.into(),
            reserved: 0,
        }
    }
}

impl Ends {
    /// Addresses as numbers (an IPv4 address is ::ffff:a.b.c.d), and ports.
    pub fn new(source: u128, destination: u128, source_port: u16, destination_port: u16) -> Ends {
        let halves = |address: u128| [(address >> 64) as u64, address as u64];
        Ends {
            source: halves(source),
            destination: halves(destination),
            ports: u32::from(source_port) << 16 | u32::from(destination_port),
            reserved: 0,
        }
    }
}

impl Subflow {
    pub fn new(connection: u64, number: u32) -> Subflow {
        Subflow { connection, number, reserved: 0 }
    }
}

impl Keys {
    pub fn new(ends: Ends, keys: [u64; 2], version: u8) -> Keys {
        Keys { ends, keys, version: version.into(), reserved: 0 }
    }
}

/// What the maps of one switch begin with: HULA's, and the entry of `mphula_config`.
pub type Switch = (hula::Switch, Config);

/// All switches of a network, in the order of its nodes; and by host the number of its ToR.
/// Error: what the maps have no room for.
pub fn switches(
    network: &sim::config::Config,
    settings: &MpHulaParameters,
) -> Result<(Vec<Switch>, Vec<u32>), String> {
    let (found, tor_of) = hula::switches(network, &settings.hula)?;
    let mut own = Vec::new();
    sim::each_switch(network, &mut |switch| own.push(Config::new(settings, &switch.place)));
    Ok((found.into_iter().zip(own).collect(), tor_of))
}
