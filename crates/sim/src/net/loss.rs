//! Packets that links lose at random: a share of those that arrive, of the kinds that are named.
//!
//! Whether a packet is lost follows from the seed, the port and how many packets came by it before, so it does not depend
//! on how a run is executed. Pause frames are not lost: a switch that misses a resume would wait for ever, which is another
//! fault than this one.

use crate::engine::random::mix64;
use crate::packet::{Packet, PacketKind};

/// What every link loses at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkLoss {
    /// Of the packets of these kinds.
    pub share: f64,
    /// A bit for each kind.
    pub kinds: u32,
}

impl LinkLoss {
    pub const DATA: u32 = 1;
    pub const ACKNOWLEDGEMENTS: u32 = 2;
    pub const ALL: u32 = u32::MAX;

    /// Probes of load balancers.
    pub const PROBES: u32 = 1 << 20;

    /// Control packets with this code of their transport.
    pub fn control(code: u8) -> u32 {
        4 << (code & 15)
    }

    /// Share of the packets of a kind that arrive over this number of links.
    pub fn arrives(&self, kind: u32, links: f64) -> f64 {
        if self.kinds & kind == 0 { 1.0 } else { (1.0 - self.share).powf(links) }
    }
}

/// What the links into the ports of a partition lose.
pub struct Losses {
    kinds: u32,
    /// Out of 2^32.
    share: u64,
    seed: u64,
    /// By port: packets of these kinds that came so far.
    seen: Vec<u64>,
}

impl Losses {
    pub fn new(loss: LinkLoss, seed: u64, ports: usize) -> Losses {
        let share = (loss.share.clamp(0.0, 1.0) * 4_294_967_296.0) as u64;
        Losses { kinds: loss.kinds, share, seed, seen: vec![0; ports] }
    }

    /// A packet has come over the link into a port (its index here; its node and number there in the whole network):
    /// whether it is lost.
    pub fn takes(&mut self, port: usize, place: (u32, u16), packet: &Packet) -> bool {
        if self.kinds & kind(packet) == 0 {
            return false;
        }
        self.seen[port] += 1;
        let place = u64::from(place.0) << 16 | u64::from(place.1);
        let draw = mix64(mix64(self.seed ^ mix64(place + 1)) ^ self.seen[port]);
        draw >> 32 < self.share
    }
}

/// The bit of a packet's kind.
fn kind(packet: &Packet) -> u32 {
    match packet.kind {
        PacketKind::Data => LinkLoss::DATA,
        PacketKind::Ack | PacketKind::Nack => LinkLoss::ACKNOWLEDGEMENTS,
        PacketKind::Control => LinkLoss::control(packet.code()),
        PacketKind::Probe => LinkLoss::PROBES,
        PacketKind::Pause | PacketKind::Resume => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_met_for_the_kinds_that_are_named_and_for_no_others() {
        let loss = LinkLoss { share: 0.25, kinds: LinkLoss::DATA | LinkLoss::control(3) };
        let mut losses = Losses::new(loss, 1, 2);
        let mut lost = |packet: Packet| (0..10_000).filter(|_| losses.takes(1, (7, 1), &packet)).count();
        let data = Packet { kind: PacketKind::Data, ..Packet::default() };
        let control = |code: u8| Packet { kind: PacketKind::Control, flags: code << 4, ..Packet::default() };
        assert!(lost(data).abs_diff(2500) < 150 && lost(control(3)).abs_diff(2500) < 150);
        assert_eq!(lost(control(2)) + lost(Packet { kind: PacketKind::Ack, ..data }), 0);
    }
}
