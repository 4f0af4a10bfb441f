//! The ports of a switch, as programs keep them (layout: `bpf/port_tc.h`).

use crate::Plain;
use ::pint::fixed::log2;
use ::pint::hash::Key;
use ::pint::utilisation::{LOAD_BITS, Law, Tables};

/// Flags of a [`Port`].
pub const ON: u32 = 1;
pub const HOST: u32 = 2;
pub const LOAD: u32 = 4;

/// An interface as programs see it: an entry of their maps `pint_ports` and `int_ports`, by its number in Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Port {
    lock: u32,
    /// [`ON`], [`HOST`], [`LOAD`].
    pub flags: u32,
    pub number: u32,
    /// Nanoseconds that a byte of the queue takes, in 2^-16.
    pub wait: u32,
    pub bits_per_second: u64,
    pub bytes: u64,
    pub key: u64,
    table_bits: u32,
    entry_bits: u32,
    load_bits: u32,
    queue_shift: u32,
    random: u32,
    law: u32,
    horizon_ns: u64,
    log_horizon: i64,
    log_per_byte: i64,
    /// Registers of the load: in units of 2^-20, and time and bytes of the packet before.
    pub load: u64,
    pub last_ns: u64,
    pub last_bytes: u32,
    reserved: u32,
}

// SAFETY: no padding (`reserved` has it all; the size is that of C), numbers only.
unsafe impl Plain for Port {}
const _: () = assert!(size_of::<Port>() == 112);

impl Port {
    /// Without a load.
    pub fn new(number: u32) -> Port {
        Port { flags: ON, number, ..Port::zero() }
    }

    /// An interface to hosts, where telemetry begins and ends.
    pub fn to_hosts(self) -> Port {
        Port { flags: self.flags | HOST, ..self }
    }

    /// Keeps the load of a port of this rate, averaged over a base RTT, as [`pint::utilisation::Tabled`] does; `key` gives the coins. The
    /// time after the queue is part of the latency.
    pub fn with_load(
        self,
        law: Law,
        tables: Tables,
        bits_per_second: u64,
        horizon_ns: u64,
        key: Key,
    ) -> Port {
        let (rate, horizon_ns) = (bits_per_second.max(1), horizon_ns.max(1));
        let log_horizon = log2(horizon_ns) as i64;
        let per_byte = log2(8_000_000_000) as i64 + (i64::from(LOAD_BITS) << 32);
        Port {
            flags: self.flags | LOAD,
            bits_per_second: rate,
            wait: u32::try_from((8_000_000_000u64 << 16) / rate).unwrap_or(u32::MAX),
            key: key.0,
            table_bits: tables.arithmetic.table_bits(),
            entry_bits: tables.arithmetic.entry_bits(),
            load_bits: tables.load_bits.min(LOAD_BITS),
            queue_shift: tables.queue_shift.min(31),
            random: tables.random.into(),
            law: u32::from(law == Law::Paper),
            horizon_ns,
            log_horizon,
            log_per_byte: per_byte - log2(rate) as i64 - log_horizon,
            ..self
        }
    }
}
