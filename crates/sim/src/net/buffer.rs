//! A switch's shared buffer: who may use how much of it, and when the sender must pause.
//!
//! With PFC, bytes are charged to the port and class they came in by: first a reserve, then the shared pool
//! up to a dynamic threshold (what is left of the pool, shifted), then headroom, which takes what is still in
//! flight while a pause travels. Every port has reserve and headroom for each class in use, as pauses hold
//! back one class alone. Without PFC, a queue may hold a multiple of the free buffer (Choudhury and Hahne,
//! 1998).
//!
//! Source: the HPCC authors' simulator (Li et al., SIGCOMM 2019, §5.1), after the Broadcom MMU. Differs from
//! the source outside the compat mode: headroom has three packets and a pause frame on top, because rate
//! times delay alone is too small on very short links: the packet that calls for the pause, one that is being
//! sent the other way and holds up the pause frame, and one that the paused sender has begun.

use super::PFC_FRAME_BYTES;
use crate::queue::CLASSES;
use crate::units::{Bytes, Rate, Time};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PfcConfig {
    pub enabled: bool,
    /// Classes of packets in the run that can be paused, at least 1; every port has reserve and headroom for
    /// each.
    pub classes: u32,
    /// Reserve of every port and class, in bytes.
    pub reserve: Bytes,
    /// Headroom of a port and class in units of rate times delay.
    pub headroom_factor: u32,
    /// Three packets and a pause frame on top (for what is in flight on very short links).
    pub headroom_extra: bool,
    /// Resume when the shared part is this far below the threshold.
    pub resume_offset: Bytes,
    /// Threshold = free pool >> this, at the NIC's rate; one less for every doubling above it.
    pub shift: u32,
}

/// What the buffer needs to know of a port.
#[derive(Debug, Clone, Copy)]
pub struct BufferedPort {
    pub rate: Rate,
    pub delay: Time,
}

#[derive(Debug, Clone)]
pub struct SharedBuffer {
    size: u64,
    /// Bytes held, whatever they are charged to.
    held: u64,
    lossy_alpha: f64,
    /// With this much free, any packet may pass, and as much may wait.
    plenty: u64,
    lossless: Option<Lossless>,
}

#[derive(Debug, Clone)]
struct Lossless {
    /// Buffer less headroom and reserve of every port and class in use.
    pool: u64,
    shared_used: u64,
    reserve: u64,
    resume_offset: u64,
    ports: Vec<PortShare>,
    ingress: Vec<Ingress>,
}

#[derive(Debug, Clone, Copy)]
struct PortShare {
    headroom: u64,
    /// The threshold is what is left of the pool, shifted right by this.
    shift: u32,
}

/// What becomes of a packet that is to come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Refused,
    Taken,
    /// The same, and its sender must be paused now, which is remembered.
    Pauses,
}

/// Bytes in the switch that came in by one port and class.
#[derive(Debug, Clone, Copy, Default)]
struct Ingress {
    /// In the reserve and the shared pool.
    bytes: u32,
    headroom_used: u32,
    paused: bool,
}

impl SharedBuffer {
    /// `nic_rate` is the rate at which the threshold's shift is `pfc.shift`; `packet` the largest packet in
    /// bytes.
    pub fn new(
        size: Bytes,
        ports: &[BufferedPort],
        pfc: &PfcConfig,
        lossy_alpha: f64,
        nic_rate: Rate,
        packet: u64,
    ) -> SharedBuffer {
        let lossless = pfc.enabled.then(|| Lossless::new(size, ports, pfc, nic_rate, packet));
        let max = f64::from(u16::MAX);
        let plenty = if lossy_alpha > 0.0 {
            ((max / lossy_alpha).max(max) as u64).saturating_mul(2)
        } else {
            u64::MAX
        };
        SharedBuffer { size: size.0, held: 0, lossy_alpha, plenty, lossless }
    }

    /// Whether a packet that finds its egress port idle and empty may pass without being charged: it would be
    /// admitted and released at once, and would trigger no pause. The answer may be no for one that could pass.
    #[inline]
    pub fn lets_pass(&self, port: u16, class: u8, size: u64) -> bool {
        match &self.lossless {
            Some(lossless) => self.held + size <= self.size && lossless.lets_pass(port, class, size),
            None => {
                let free = self.size.saturating_sub(self.held);
                free >= self.plenty || size <= free && (size as f64) <= self.lossy_alpha * free as f64
            }
        }
    }

    /// Whether a packet may come in; it is charged if so. `queued` is what its egress queue holds.
    #[inline]
    pub fn admit(&mut self, port: u16, class: u8, size: u64, queued: u64) -> Admission {
        let admission = match &mut self.lossless {
            // Reserve and headroom are set aside for the classes in use, but class 0, which cannot be paused,
            // is charged too.
            Some(_) if self.held + size > self.size => Admission::Refused,
            Some(lossless) => lossless.admit(port, class, size),
            None => {
                let free = self.size.saturating_sub(self.held);
                let below = || ((queued + size) as f64) <= self.lossy_alpha * free as f64;
                let few = free > self.plenty && queued + size <= u64::from(u16::MAX);
                let fits = few || size <= free && below();
                if fits { Admission::Taken } else { Admission::Refused }
            }
        };
        if admission != Admission::Refused {
            self.held += size;
        }
        debug_assert!(self.held <= self.size, "{} B in a buffer of {} B", self.held, self.size);
        admission
    }

    /// A packet comes in that was refused, and others were released for it, in a buffer without PFC.
    pub fn take_in_exchange(&mut self, size: u64) {
        debug_assert!(self.lossless.is_none());
        self.held += size;
        debug_assert!(self.held <= self.size, "{} B in a buffer of {} B", self.held, self.size);
    }

    /// A packet that came in by this port and class leaves the switch.
    #[inline]
    pub fn release(&mut self, port: u16, class: u8, size: u64) {
        debug_assert!(self.held >= size);
        self.held -= size;
        if let Some(lossless) = &mut self.lossless {
            lossless.release(port, class, size);
        }
    }

    /// Whether the paused sender behind this port may go on; remembers that it does.
    #[inline]
    pub fn may_resume(&mut self, port: u16, class: u8) -> bool {
        let Some(lossless) = &mut self.lossless else { return false };
        if !lossless.at(port, class).paused {
            return false;
        }
        let threshold = lossless.threshold(port);
        let (reserve, offset) = (lossless.reserve, lossless.resume_offset);
        let ingress = lossless.at(port, class);
        let shared = u64::from(ingress.bytes).saturating_sub(reserve);
        let resume = ingress.headroom_used == 0 && (shared == 0 || shared + offset <= threshold);
        ingress.paused &= !resume;
        resume
    }

    /// The sender at the other end of this port has been paused.
    pub fn has_paused(&self, port: u16, class: u8) -> bool {
        let lossless = self.lossless.as_ref();
        lossless
            .is_some_and(|lossless| lossless.ingress[usize::from(port) * CLASSES + usize::from(class)].paused)
    }

    /// The link behind this port came back: its sender no longer knows of a pause.
    pub fn forget_pauses(&mut self, port: u16) {
        if let Some(lossless) = &mut self.lossless {
            for class in 0..CLASSES as u8 {
                lossless.at(port, class).paused = false;
            }
        }
    }

    /// It holds nothing and pauses no port.
    pub fn is_at_rest(&self) -> bool {
        let rests = |share: &Ingress| share.bytes == 0 && share.headroom_used == 0 && !share.paused;
        let all = |buffer: &Lossless| buffer.shared_used == 0 && buffer.ingress.iter().all(rests);
        self.held == 0 && self.lossless.as_ref().is_none_or(all)
    }

    pub fn held(&self) -> u64 {
        self.held
    }
}

/// Bytes that headroom and reserve of a port take before anything is shared, for all classes in use.
pub fn set_aside(port: &BufferedPort, pfc: &PfcConfig, packet: u64) -> u64 {
    headroom(port, pfc, packet).saturating_add(pfc.reserve.0).saturating_mul(u64::from(pfc.classes))
}

/// Headroom of a port and class in bytes: what arrives while a pause travels and takes effect. `packet` is
/// the largest.
pub fn headroom(port: &BufferedPort, pfc: &PfcConfig, packet: u64) -> u64 {
    let in_flight = port.rate.bytes_in(port.delay).0 * u64::from(pfc.headroom_factor);
    in_flight + if pfc.headroom_extra { extra(packet) } else { 0 }
}

/// Headroom with which a port drops nothing: what is in flight while a pause goes one way and data come the
/// other, and what [`PfcConfig::headroom_extra`] stands for.
pub fn lossless_headroom(port: &BufferedPort, packet: u64) -> u64 {
    2 * port.rate.bytes_in(port.delay).0 + extra(packet)
}

/// Bytes from one port in an otherwise empty buffer of a switch at which the first of its ports pauses its peer.
pub fn first_pause(
    size: Bytes,
    ports: &[BufferedPort],
    pfc: &PfcConfig,
    nic: Rate,
    packet: u64,
) -> Option<u64> {
    let lossless = Lossless::new(size, ports, pfc, nic, packet);
    // What is charged leaves less of the pool, whose rest is shifted.
    let from = |port: u16| {
        let shift = lossless.ports[usize::from(port)].shift;
        lossless.reserve + lossless.pool / ((1 << shift) + 1)
    };
    (0..ports.len() as u16).map(from).min()
}

/// The largest number of bytes that can wait for one port of a switch, in an otherwise empty buffer, before all other
/// ports have paused their peers and what was in flight then has arrived.
pub fn longest_queue(
    size: Bytes,
    ports: &[BufferedPort],
    pfc: &PfcConfig,
    nic: Rate,
    packet: u64,
) -> Option<u64> {
    let lossless = Lossless::new(size, ports, pfc, nic, packet);
    let classes = u64::from(pfc.classes);
    let aside = |port: &PortShare| classes * (lossless.reserve + port.headroom);
    let share = |port: &PortShare| classes as f64 / (1u64 << port.shift) as f64;
    let (all_aside, all_shares): (u64, f64) =
        (lossless.ports.iter().map(aside).sum(), lossless.ports.iter().map(share).sum());
    // Each port is paused when it has taken this share of what all of them leave of the pool.
    let from_others = |port: &PortShare| {
        let shares = all_shares - share(port);
        (lossless.pool as f64 * (shares / (1.0 + shares))) as u64 + all_aside - aside(port)
    };
    lossless.ports.iter().map(from_others).max()
}

/// Bytes from some ports of a switch that wait when their peers may send again after a pause, in a buffer without others.
pub fn kept_at_resume(
    size: Bytes,
    ports: &[BufferedPort],
    pfc: &PfcConfig,
    (nic, packet): (Rate, u64),
    from: &[usize],
) -> u64 {
    let lossless = Lossless::new(size, ports, pfc, nic, packet);
    let shares: f64 = from.iter().map(|&port| 1.0 / (1u64 << lossless.ports[port].shift) as f64).sum();
    let shared = (lossless.pool as f64 * (shares / (1.0 + shares))) as u64;
    let count = from.len() as u64;
    shared.saturating_sub(count * lossless.resume_offset) + count * lossless.reserve
}

/// Three packets and a pause frame.
fn extra(packet: u64) -> u64 {
    3 * packet + u64::from(PFC_FRAME_BYTES)
}

impl Lossless {
    fn new(size: Bytes, ports: &[BufferedPort], pfc: &PfcConfig, nic: Rate, packet: u64) -> Lossless {
        let shares: Vec<PortShare> = ports
            .iter()
            .map(|port| {
                let mut shift = pfc.shift;
                let mut rate = port.rate.0;
                while rate > nic.0 && shift > 0 {
                    shift -= 1;
                    rate /= 2;
                }
                PortShare { headroom: headroom(port, pfc, packet), shift }
            })
            .collect();
        Lossless {
            pool: ports.iter().fold(size.0, |left, port| left.saturating_sub(set_aside(port, pfc, packet))),
            shared_used: 0,
            reserve: pfc.reserve.0,
            resume_offset: pfc.resume_offset.0,
            ingress: vec![Ingress::default(); ports.len() * CLASSES],
            ports: shares,
        }
    }

    #[inline]
    fn at(&mut self, port: u16, class: u8) -> &mut Ingress {
        &mut self.ingress[usize::from(port) * CLASSES + usize::from(class)]
    }

    #[inline]
    fn lets_pass(&self, port: u16, class: u8, size: u64) -> bool {
        let ingress = &self.ingress[usize::from(port) * CLASSES + usize::from(class)];
        let charged = u64::from(ingress.bytes) + size;
        let left = self.pool.saturating_sub(self.shared_used + size);
        let below =
            charged <= self.reserve || charged - self.reserve < left >> self.ports[usize::from(port)].shift;
        below && ingress.headroom_used == 0 && !ingress.paused
    }

    #[inline]
    fn threshold(&self, port: u16) -> u64 {
        self.pool.saturating_sub(self.shared_used) >> self.ports[usize::from(port)].shift
    }

    #[inline]
    fn admit(&mut self, port: u16, class: u8, size: u64) -> Admission {
        let PortShare { headroom, shift } = self.ports[usize::from(port)];
        let threshold = |shared_used: u64| self.pool.saturating_sub(shared_used) >> shift;
        let before = threshold(self.shared_used);
        let ingress = &mut self.ingress[usize::from(port) * CLASSES + usize::from(class)];
        let shared = u64::from(ingress.bytes).saturating_sub(self.reserve);
        if u64::from(ingress.headroom_used) + size > headroom && shared + size > before {
            return Admission::Refused;
        }
        let charged = u64::from(ingress.bytes) + size;
        if charged <= self.reserve {
            ingress.bytes = charged as u32;
        } else if charged - self.reserve > before {
            ingress.headroom_used += size as u32;
        } else {
            ingress.bytes = charged as u32;
            self.shared_used += size.min(charged - self.reserve);
        }
        let shared = u64::from(ingress.bytes).saturating_sub(self.reserve);
        let full = ingress.headroom_used > 0 || shared >= threshold(self.shared_used);
        if ingress.paused || !full {
            return Admission::Taken;
        }
        ingress.paused = true;
        Admission::Pauses
    }

    #[inline]
    fn release(&mut self, port: u16, class: u8, size: u64) {
        let reserve = self.reserve;
        let ingress = self.at(port, class);
        let from_headroom = u64::from(ingress.headroom_used).min(size);
        let rest = size - from_headroom;
        let from_shared = rest.min(u64::from(ingress.bytes).saturating_sub(reserve));
        ingress.headroom_used -= from_headroom as u32;
        ingress.bytes -= rest as u32;
        self.shared_used -= from_shared;
    }
}

#[cfg(test)]
mod tests;
