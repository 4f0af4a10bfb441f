//! The load of an egress port as HPCC wants it, kept by the switch: U, a moving average over one base RTT T.
//!
//! With tau the time since the last packet (at most T), q the queue after this packet and B the rate of the port:
//!
//! U <- U (T - tau) / T + q tau / (B T^2) + bytes / (B T)
//!
//! Two laws differ in `bytes` and in who counts. *Paper*: this packet's bytes, every packet of the link. *Code*: the size of the packet
//! before, data packets only; but every packet, acknowledgements too, sets size and time of "the packet before", so one between two
//! data packets hides the first of them from U.
//!
//! Three ways to compute it: [`Exact`]; [`Tabled`], integers with tables of logarithms as a switch must ([`crate::fixed`]), whose
//! dropped bits are rounded at random because an average that feeds on itself turns any bias b of one step into b T / tau; and
//! [`Recirculated`], for a pipeline that cannot read and write U in one pass: n registers take the packets' shares in turn, each
//! n-th packet collects them, computes U and goes through the pipeline once more to store it. One value is in flight at a time: until
//! it is stored a round continues beyond n packets.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.3, §6.1, appendix B and C; the authors' simulator (law code, arithmetic).
//! Differs from the source: it names n stored copies and recirculation but no protocol; the one above is ours.

use crate::fixed::{Arithmetic, log2};
use crate::hash::Word;

/// A number below 2^63: signed ones convert in one instruction.
#[inline]
const fn as_float(v: u64) -> f64 {
    v as i64 as f64
}

/// Which packets count, and with which size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// The authors' simulator: the previous packet's size, at data packets.
    Code,
    /// The paper: this packet's size, at every packet.
    Paper,
}

/// Fractional bits of U in [`Tabled`].
pub const LOAD_BITS: u32 = 20;

/// The number that is encoded for a load: 512 U rounded up, at least 1; 512 is the largest number of flows that U is shared by.
#[inline]
pub fn scaled(load: f64) -> u64 {
    // Signed numbers convert in one instruction. Saturates, and is 0 for NaN.
    let whole = (load * 512.0) as i64;
    let up = whole.saturating_add(i64::from((whole as f64) < load * 512.0));
    up.max(1) as u64
}

/// As [`scaled`], of a load in units of 2^-20.
#[inline]
pub const fn scaled_integer(load: u64) -> u64 {
    let up = load.div_ceil(1 << (LOAD_BITS - 9));
    if up == 0 { 1 } else { up }
}

/// U in floating point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exact {
    law: Law,
    horizon_ps: u64,
    per_horizon: f64,
    /// 1 / (B T), per byte.
    per_byte: f64,
    load: f64,
    last_ps: u64,
    last_bytes: u32,
}

impl Exact {
    /// For a port of this rate and the base RTT T; zeros count as 1.
    pub fn new(law: Law, bits_per_second: u64, horizon_ps: u64) -> Exact {
        let horizon_ps = horizon_ps.clamp(1, i64::MAX as u64);
        let per_horizon = 1.0 / horizon_ps as f64;
        let mut port =
            Exact { law, horizon_ps, per_horizon, per_byte: 0.0, load: 0.0, last_ps: 0, last_bytes: 0 };
        port.set_rate(bits_per_second);
        port
    }

    /// The port's rate changes. U continues from where it is: within one T it is that of the new rate.
    pub fn set_rate(&mut self, bits_per_second: u64) {
        self.per_byte = 8e12 / bits_per_second.max(1) as f64 * self.per_horizon;
    }

    /// U as of the last update.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// A data packet leaves `queue_bytes` in the queue; returns U after it.
    #[inline]
    pub fn update(&mut self, now_ps: u64, queue_bytes: u64, packet_bytes: u32) -> f64 {
        let gap = as_float(now_ps.saturating_sub(self.last_ps).min(self.horizon_ps)) * self.per_horizon;
        let bytes = if self.law == Law::Code { self.last_bytes } else { packet_bytes };
        let queue = gap * as_float(queue_bytes);
        self.load = self.load * (1.0 - gap) + (queue + f64::from(bytes)) * self.per_byte;
        self.last_ps = now_ps;
        self.last_bytes = packet_bytes;
        self.load
    }

    /// Any other packet leaves (acknowledgement, pause).
    #[inline]
    pub fn pass(&mut self, now_ps: u64, queue_bytes: u64, packet_bytes: u32) {
        match self.law {
            Law::Paper => _ = self.update(now_ps, queue_bytes, packet_bytes),
            Law::Code => (self.last_ps, self.last_bytes) = (now_ps, packet_bytes),
        }
    }
}

/// How a switch computes with tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    pub arithmetic: Arithmetic,
    /// Fractional bits of U that its logarithm sees, at most 20.
    pub load_bits: u32,
    /// Low bits of the queue that are dropped, at most 31.
    pub queue_shift: u32,
    /// Whether dropped bits are rounded at random, or cut off.
    pub random: bool,
}

impl Tables {
    /// Tables of 256 entries, dropped bits rounded at random.
    pub const PAPER: Tables =
        Tables { arithmetic: Arithmetic::PAPER, load_bits: LOAD_BITS, queue_shift: 0, random: true };
    /// The authors' simulator: 16 top bits, 15 fractional bits, U times 8192, the queue in units of 256 bytes.
    pub const AUTHORS: Tables =
        Tables { arithmetic: Arithmetic::AUTHORS, load_bits: 13, queue_shift: 8, random: true };
}

/// U in integers, products through logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tabled {
    law: Law,
    tables: Tables,
    horizon_ns: u64,
    /// log2 T (ns), and log2 of 1 / (B T) in units of U per byte; in units of 2^-32.
    log_horizon: i64,
    log_per_byte: i64,
    load: u64,
    last_ns: u64,
    last_bytes: u32,
}

impl Tabled {
    /// For a port of this rate and the base RTT T; zeros count as 1. Time is counted in whole nanoseconds.
    pub fn new(law: Law, tables: Tables, bits_per_second: u64, horizon_ps: u64) -> Tabled {
        let tables = Tables {
            load_bits: tables.load_bits.min(LOAD_BITS),
            queue_shift: tables.queue_shift.min(31),
            ..tables
        };
        let horizon_ns = (horizon_ps / 1_000).max(1);
        let log_horizon = log2(horizon_ns) as i64;
        let mut port = Tabled {
            law,
            tables,
            horizon_ns,
            log_horizon,
            log_per_byte: 0,
            load: 0,
            last_ns: 0,
            last_bytes: 0,
        };
        port.set_rate(bits_per_second);
        port
    }

    /// As [`Exact::set_rate`].
    pub fn set_rate(&mut self, bits_per_second: u64) {
        let bits_per_byte = 8_000_000_000u64;
        self.log_per_byte = log2(bits_per_byte) as i64 + (i64::from(LOAD_BITS) << 32)
            - log2(bits_per_second.max(1)) as i64
            - self.log_horizon;
    }

    /// The same port with these registers: U in units of 2^-20, and time and bytes of the packet before.
    pub fn resumed(self, load: u64, last_ns: u64, last_bytes: u32) -> Tabled {
        Tabled { load, last_ns, last_bytes, ..self }
    }

    /// U as of the last update, in units of 2^-20.
    pub fn load(&self) -> u64 {
        self.load
    }

    /// A data packet leaves `queue_bytes` in the queue; returns U after it in units of 2^-20. `word` gives the coins.
    #[inline]
    pub fn update(&mut self, now_ps: u64, queue_bytes: u64, packet_bytes: u32, word: Word) -> u64 {
        let now_ns = now_ps / 1_000;
        let gap = now_ns.saturating_sub(self.last_ns).min(self.horizon_ns);
        let bytes = u64::from(if self.law == Law::Code { self.last_bytes } else { packet_bytes });
        let dropped = LOAD_BITS - self.tables.load_bits;
        let load = self.load.saturating_add((1 << dropped) >> 1) >> dropped;
        let (left, queue) = (self.horizon_ns - gap, queue_bytes >> self.tables.queue_shift);
        let mut sum = 0u64;
        if load > 0 && left > 0 {
            let log = self.log(load, word, 1) + (i64::from(dropped) << 32) + self.log(left, word, 2);
            sum = self.power(log - self.log_horizon);
        }
        if queue > 0 && gap > 0 {
            let log = self.log(queue, word, 3)
                + (i64::from(self.tables.queue_shift) << 32)
                + self.log(gap, word, 4);
            sum = sum.saturating_add(self.power(log + self.log_per_byte - self.log_horizon));
        }
        if bytes > 0 {
            sum = sum.saturating_add(self.power(self.log(bytes, word, 5) + self.log_per_byte));
        }
        self.load = sum;
        self.last_ns = now_ns;
        self.last_bytes = packet_bytes;
        sum
    }

    /// Any other packet leaves (acknowledgement, pause).
    #[inline]
    pub fn pass(&mut self, now_ps: u64, queue_bytes: u64, packet_bytes: u32, word: Word) {
        match self.law {
            Law::Paper => _ = self.update(now_ps, queue_bytes, packet_bytes, word),
            Law::Code => (self.last_ns, self.last_bytes) = (now_ps / 1_000, packet_bytes),
        }
    }

    #[inline]
    fn log(&self, v: u64, word: Word, coin: u32) -> i64 {
        if self.tables.random {
            self.tables.arithmetic.log2_rounded(v, word.coin(coin))
        } else {
            self.tables.arithmetic.log2(v)
        }
    }

    #[inline]
    fn power(&self, log: i64) -> u64 {
        self.tables.arithmetic.exp2(log)
    }
}

/// U in a pipeline that needs a second pass to store it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recirculated {
    /// What U would be if it were stored at once, from the packets of this round on.
    exact: Exact,
    /// Registers: packets a round.
    registers: u32,
    delay_ps: u64,
    /// Packets of this round so far (more than `registers` while a value is in flight), their queue times gap (in units of T) and bytes.
    filled: u32,
    queue: f64,
    bytes: f64,
    round_ps: u64,
    /// U as switches read it.
    stored: f64,
    /// A value on its second way, and when it arrives.
    on_its_way: Option<(u64, f64)>,
    passes: u64,
    pass_bytes: u64,
}

impl Recirculated {
    /// `registers` packets a round at least (0 counts as 1); a second pass stores its value `delay_ps` after the packet left.
    pub fn new(
        law: Law,
        bits_per_second: u64,
        horizon_ps: u64,
        registers: u32,
        delay_ps: u64,
    ) -> Recirculated {
        Recirculated {
            exact: Exact::new(law, bits_per_second, horizon_ps),
            registers: registers.max(1),
            delay_ps,
            filled: 0,
            queue: 0.0,
            bytes: 0.0,
            round_ps: 0,
            stored: 0.0,
            on_its_way: None,
            passes: 0,
            pass_bytes: 0,
        }
    }

    /// U as the last packet read it.
    pub fn load(&self) -> f64 {
        self.stored
    }

    /// As [`Exact::set_rate`].
    pub fn set_rate(&mut self, bits_per_second: u64) {
        self.exact.set_rate(bits_per_second);
    }

    /// Second passes so far, and the bytes of their packets: what the recirculation port carried.
    pub fn recirculated(&self) -> (u64, u64) {
        (self.passes, self.pass_bytes)
    }

    /// A data packet leaves `queue_bytes` in the queue; returns U as it reads it, or computes it if it is the round's last.
    #[inline]
    pub fn update(&mut self, now_ps: u64, queue_bytes: u64, packet_bytes: u32) -> f64 {
        if let Some((_, load)) = self.on_its_way.filter(|&(at, _)| at <= now_ps) {
            self.stored = load;
            self.on_its_way = None;
        }
        let port = &mut self.exact;
        let gap = now_ps.saturating_sub(port.last_ps).min(port.horizon_ps) as f64 * port.per_horizon;
        self.queue += gap * queue_bytes as f64;
        self.bytes += f64::from(if port.law == Law::Code { port.last_bytes } else { packet_bytes });
        (port.last_ps, port.last_bytes) = (now_ps, packet_bytes);
        self.filled += 1;
        // A value computed while another is in flight would start from an old U and take its place.
        if self.filled < self.registers || self.on_its_way.is_some() {
            return self.stored;
        }
        let round = now_ps.saturating_sub(self.round_ps).min(port.horizon_ps) as f64 * port.per_horizon;
        let load = self.stored * (1.0 - round) + (self.queue + self.bytes) * port.per_byte;
        (self.filled, self.queue, self.bytes, self.round_ps) = (0, 0.0, 0.0, now_ps);
        self.on_its_way = Some((now_ps.saturating_add(self.delay_ps), load));
        self.passes += 1;
        self.pass_bytes += u64::from(packet_bytes);
        load
    }

    /// Any other packet leaves (acknowledgement, pause).
    #[inline]
    pub fn pass(&mut self, now_ps: u64, queue_bytes: u64, packet_bytes: u32) {
        match self.exact.law {
            Law::Paper => _ = self.update(now_ps, queue_bytes, packet_bytes),
            Law::Code => (self.exact.last_ps, self.exact.last_bytes) = (now_ps, packet_bytes),
        }
    }
}

#[cfg(test)]
mod tests;
