//! How queues that hash flows tell them apart.
//!
//! Of the two ways the second is for comparing with published runs of ns-3: it hashes a five-tuple as ns-3.35 does, with the
//! addresses and ports of the Cebinae authors' dumbbell (SIGCOMM 2022, their `dumbbell_long`): pair number p of hosts has
//! 1.1.1.1 and 100.1.1.1, p networks of 24 bits further on, and TCP ports 49153 and 8080. The pair is the source's number.

use crate::balance::murmur3_and;
use crate::parameters::Parameters;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowHash {
    /// A hash of our own of source, destination and flow.
    Own,
    /// Murmur3 over the five-tuple of a pair of hosts.
    Ns3,
}

const HASHES: &[(&str, &str)] = &[
    ("own", "of source, destination and flow"),
    ("ns3", "of ns-3.35, with the addresses of the Cebinae authors' dumbbell: the same collisions"),
];

impl FlowHash {
    pub fn read(p: &mut Parameters) -> FlowHash {
        match p.choice("hash", "own", HASHES, "how flows are hashed") {
            "ns3" => FlowHash::Ns3,
            _ => FlowHash::Own,
        }
    }
}

/// ns-3.35's hash of the data packets between a pair of hosts.
pub fn ns3_hash(pair: u32, perturbation: u32) -> u32 {
    const SEED: u32 = 0x8bad_f00d;
    const TCP: u8 = 6;
    let network = pair.wrapping_add(1) << 8;
    let [source, destination] = [0x0101_0001, 0x6401_0001].map(|first: u32| first.wrapping_add(network));
    let [[a, b], [c, d]] = [49153u16, 8080].map(u16::to_be_bytes);
    let [p3, p2, p1, p0] = perturbation.to_be_bytes();
    let ports = [[TCP, a, b, c], [d, p3, p2, p1]].map(u32::from_le_bytes);
    murmur3_and(&[source.swap_bytes(), destination.swap_bytes(), ports[0], ports[1]], Some(p0), SEED)
}
