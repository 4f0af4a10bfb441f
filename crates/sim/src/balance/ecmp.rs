//! Equal-cost multipath: a flow's hash chooses its path, with a salt per switch so that switches choose apart.
//!
//! Two forms: ours, a 64-bit mix of the flow's hash with the switch's salt; and the HPCC authors', MurmurHash3 over
//! the addresses and ports with the switch's node id as seed (Appleby, 2011; x86, 32 bits).

use super::{BalancerFacts, BalancerParameters, LoadBalancer, Place, Ports, Reorders, Shares};
use crate::doc::SchemeDoc;
use crate::engine::murmur;
use crate::engine::random::{hash_salt, mix64};
use crate::packet::{Packet, PacketKind};
use crate::parameters::Parameters;

#[derive(Debug, Clone, PartialEq)]
pub struct EcmpParameters {
    pub salt: u64,
}

impl BalancerParameters for EcmpParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "ecmp",
        title: "a hash of the flow, salted per switch, chooses among the shortest paths",
        source: "RFC 2992 (2000), equal-cost multipath by hash; hash and salt of the HPCC authors' simulator \
                 in compat mode",
        validation: "Completion times equal those of the HPCC authors' simulator on a 32-host pod, whose paths \
                     its hash chooses (tests/reference.rs); the hash gives its published values.",
        ..SchemeDoc::NONE
    };
    type State = EitherEcmp;

    fn read(p: &mut Parameters) -> EcmpParameters {
        let help = "salt of the hash; another salt places the flows on other paths";
        EcmpParameters { salt: p.integer("salt", 0, (0, i64::MAX), help) as u64 }
    }

    fn start(&self, at: &Place) -> EitherEcmp {
        match at.murmur {
            true => EitherEcmp::Murmur(MurmurEcmp::new(at.node)),
            false => EitherEcmp::Mixed(Ecmp::new(self.salt ^ hash_salt(at.seed), at.node)),
        }
    }

    fn facts(&self) -> BalancerFacts {
        BalancerFacts {
            hashes_ports: true,
            repeats: true,
            goes_by_flow: true,
            shares: Some(Shares::Equal),
            ..BalancerFacts::default()
        }
    }

    fn order(&self) -> Reorders {
        Reorders::Never
    }
}

/// By one of the two hashes.
pub enum EitherEcmp {
    Mixed(Ecmp),
    Murmur(MurmurEcmp),
}

impl EitherEcmp {
    /// An index into `candidates`.
    #[inline(always)]
    pub fn way_of(&self, packet: &Packet, candidates: &[u32]) -> usize {
        match self {
            EitherEcmp::Mixed(ecmp) => ecmp.way(packet.hash, candidates.len()),
            EitherEcmp::Murmur(ecmp) => ecmp.way_of(packet, candidates),
        }
    }
}

impl LoadBalancer for EitherEcmp {
    #[inline]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], _ports: &impl Ports) -> usize {
        self.way_of(packet, candidates)
    }
}

pub struct Ecmp {
    salt: u64,
}

impl Ecmp {
    pub fn new(salt: u64, node: u32) -> Ecmp {
        Ecmp { salt: mix64(salt ^ mix64(u64::from(node) + 1)) }
    }

    /// Which of `count` ways a hash goes.
    #[inline]
    pub fn way(&self, hash: u32, count: usize) -> usize {
        let mixed = (u64::from(hash) ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The high half is well mixed; multiply-shift takes it to 0..n without a division.
        let high = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        ((high * count as u64) >> 32) as usize
    }
}

pub struct MurmurEcmp {
    seed: u32,
}

impl MurmurEcmp {
    pub fn new(node: u32) -> MurmurEcmp {
        MurmurEcmp { seed: node }
    }

    #[inline(never)]
    fn way_of(&self, packet: &Packet, candidates: &[u32]) -> usize {
        let ports = match packet.kind {
            PacketKind::Data => packet.hash,
            _ => packet.hash.rotate_left(16),
        };
        let words = [host_address(packet.src), host_address(packet.dst), ports];
        murmur::of_words(&words, self.seed) as usize % candidates.len()
    }
}

/// 11.(i / 256).(i % 256).1, the address of host i in the authors' simulator.
fn host_address(host: u32) -> u32 {
    0x0b00_0001 + (host / 256) * 0x1_0000 + (host % 256) * 0x100
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::hash::flow_hash;

    #[test]
    fn flows_spread_evenly_and_switches_choose_apart() {
        let first = Ecmp::new(1, 40);
        let second = Ecmp::new(1, 41);
        let mut count = [[0u32; 4]; 4];
        for flow in 0..16_000 {
            let hash = flow_hash(flow % 32, 7, flow);
            count[first.way(hash, 4)][second.way(hash, 4)] += 1;
        }
        assert!(count.iter().flatten().all(|&c| c.abs_diff(1000) < 150), "{count:?}");
    }
}
