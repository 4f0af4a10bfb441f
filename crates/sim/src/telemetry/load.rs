//! The loads of a switch's ports, for PINT's query for the busiest port and for HPCC-PINT.

use super::pint::Computed;
use crate::counters::{Counter, CounterGroup, CounterSet};
use crate::units::{Rate, Time};
use pint::hash::Key;
use pint::utilisation::{Exact, Law, Recirculated, Tabled};

/// What went through a switch's pipeline twice.
pub static RECIRCULATED: CounterGroup = CounterGroup {
    counters: &[
        Counter::sum(
            "packets_recirculated",
            "packets",
            "packets recirculated",
            "Packets that passed a switch's pipeline twice to store a port's load.",
        ),
        Counter::sum("bytes_recirculated", "bytes", "bytes recirculated", "The bytes of these packets."),
    ],
    ..CounterGroup::NONE
};

/// By local port.
pub enum PortLoads {
    /// No query uses loads.
    None,
    Exact(Vec<Exact>),
    /// As a switch's hardware computes them.
    Hardware(Vec<PortLoad>),
}

/// The load of one port, as hardware computes it.
pub enum PortLoad {
    Tabled(Tabled, Key),
    Recirculated(Recirculated),
}

impl PortLoads {
    /// `ports`: their rates. `horizon`: T.
    pub fn new(
        law: Law,
        computed: Computed,
        ports: impl Iterator<Item = Rate>,
        horizon: Time,
        key: impl Fn(usize) -> Key,
    ) -> PortLoads {
        match computed {
            Computed::Exact => {
                PortLoads::Exact(ports.map(|rate| Exact::new(law, rate.0, horizon.0)).collect())
            }
            Computed::Tables(tables) => {
                let load = |(local, rate): (usize, Rate)| {
                    PortLoad::Tabled(Tabled::new(law, tables, rate.0, horizon.0), key(local))
                };
                PortLoads::Hardware(ports.enumerate().map(load).collect())
            }
            Computed::Recirculated { registers, delay } => {
                let load = |rate: Rate| {
                    PortLoad::Recirculated(Recirculated::new(law, rate.0, horizon.0, registers, delay.0))
                };
                PortLoads::Hardware(ports.map(load).collect())
            }
        }
    }

    /// A data packet leaves by `port`. Returns the value of a note of the load: a floating-point number, or
    /// with tables units of 2^-20.
    #[inline(always)]
    pub fn data(&mut self, port: u16, now: Time, queue: u64, size: u32) -> u64 {
        match self {
            PortLoads::None => 0,
            PortLoads::Exact(loads) => match loads.get_mut(usize::from(port)) {
                Some(load) => load.update(now.0, queue, size).to_bits(),
                None => 0,
            },
            PortLoads::Hardware(loads) => match loads.get_mut(usize::from(port)) {
                Some(load) => load.data(now, queue, size),
                None => 0,
            },
        }
    }

    /// Any other packet leaves by `port`.
    #[inline(always)]
    pub fn other(&mut self, port: u16, now: Time, queue: u64, size: u32) {
        match self {
            PortLoads::None => {}
            PortLoads::Exact(loads) => {
                if let Some(load) = loads.get_mut(usize::from(port)) {
                    load.pass(now.0, queue, size);
                }
            }
            PortLoads::Hardware(loads) => {
                if let Some(load) = loads.get_mut(usize::from(port)) {
                    load.other(now, queue, size);
                }
            }
        }
    }

    /// Changes the rate of a port. Its load is not rescaled: later packets are measured against the new rate.
    pub fn set_rate(&mut self, port: u16, rate: Rate) {
        let port = usize::from(port);
        match self {
            PortLoads::None => {}
            PortLoads::Exact(loads) => loads.get_mut(port).into_iter().for_each(|load| load.set_rate(rate.0)),
            PortLoads::Hardware(loads) => match loads.get_mut(port) {
                Some(PortLoad::Tabled(load, _)) => load.set_rate(rate.0),
                Some(PortLoad::Recirculated(load)) => load.set_rate(rate.0),
                None => {}
            },
        }
    }

    /// Adds what went through the pipeline twice.
    pub fn count(&self, counters: &mut CounterSet) {
        let PortLoads::Hardware(loads) = self else { return };
        for load in loads {
            if let PortLoad::Recirculated(load) = load {
                counters.add(&RECIRCULATED, <[u64; 2]>::from(load.recirculated()));
            }
        }
    }
}

impl PortLoad {
    #[inline(never)]
    fn data(&mut self, Time(now): Time, queue: u64, size: u32) -> u64 {
        match self {
            PortLoad::Tabled(load, key) => load.update(now, queue, size, key.word(now)),
            PortLoad::Recirculated(load) => load.update(now, queue, size).to_bits(),
        }
    }

    #[inline(never)]
    fn other(&mut self, Time(now): Time, queue: u64, size: u32) {
        match self {
            PortLoad::Tabled(load, key) => load.pass(now, queue, size, key.word(now)),
            PortLoad::Recirculated(load) => load.pass(now, queue, size),
        }
    }
}
