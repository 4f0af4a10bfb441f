//! Five-tuples of flows, hashed as ns-3 hashes them: so the same flows collide as in the runs of Cebinae's authors.
//!
//! MurmurHash3 with ns-3's seed over 17 bytes, most significant byte first: source and destination address, protocol, source and
//! destination port, and a perturbation. The authors' dumbbell gives sender i the address 1.1.(1 + i).1 and receiver i
//! 100.1.(1 + i).1, carried over byte by byte; every flow has two hosts of its own, sends from port 49153 (the first that an
//! ns-3 host gives away) to port 8080.
//!
//! Source: ns-3.35, hash of a queued IPv4 packet; Cebinae's authors' dumbbell (their commit cebcbdb).
//! Validated by: the flows that share a queue in their FQ runs (tests below).

use crate::engine::murmur;
use crate::parameters::Parameters;

/// Of ns-3's hash.
const SEED: u32 = 0x8bad_f00d;
const SENDERS: u32 = 0x0101_0101;
const RECEIVERS: u32 = 0x6401_0101;
const TCP: u8 = 6;
const PORTS: [u16; 2] = [49_153, 8080];

/// `ns3_senders`: how flows are hashed.
pub fn ns3_senders(p: &mut Parameters) -> u32 {
    let help = "flows are hashed as in the Cebinae authors' runs on a dumbbell with this number of senders: by \
                Murmur3 over the five-tuple as in ns-3, with one flow between two hosts; 0: by our own hash";
    p.integer("ns3_senders", 0, (0, 1 << 24), help) as u32
}

/// Where the hosts of a dumbbell are: so many senders, then the receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FiveTuples {
    senders: u32,
}

impl FiveTuples {
    /// None for no senders: flows are then not hashed so.
    pub fn of(senders: u32) -> Option<FiveTuples> {
        (senders > 0).then_some(FiveTuples { senders })
    }

    fn address(self, host: u32) -> u32 {
        match host.checked_sub(self.senders) {
            None => SENDERS.wrapping_add(host << 8),
            Some(place) => RECEIVERS.wrapping_add(place << 8),
        }
    }

    /// Hash of a flow between two hosts, in its own direction.
    pub fn hash(self, src: u32, dst: u32, perturbation: u32) -> u32 {
        let mut bytes = [0; 17];
        bytes[..4].copy_from_slice(&self.address(src).to_be_bytes());
        bytes[4..8].copy_from_slice(&self.address(dst).to_be_bytes());
        bytes[8] = TCP;
        bytes[9..11].copy_from_slice(&PORTS[0].to_be_bytes());
        bytes[11..13].copy_from_slice(&PORTS[1].to_be_bytes());
        bytes[13..].copy_from_slice(&perturbation.to_be_bytes());
        murmur::of_bytes(&bytes, SEED)
    }
}

#[cfg(test)]
mod tests;
