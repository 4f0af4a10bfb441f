//! NCCL's choice: of ring and double tree, with its protocols LL, LL128 and Simple, the one whose estimated
//! time, latency + S / bandwidth, is lowest. Estimates are NCCL's, not the simulator's.
//!
//! LL sends 8 bytes of flags with 8 of data, LL128 8 with 120: what is sent is larger than the data by that.
//! Ranks are numbered node by node. The ring and the trees go over all ranks; NCCL's trees go over nodes, with
//! a chain of the GPUs of each.
//!
//! Source: NCCL 2.2x, graph/tuning.cc; constants for Hopper. The corrections of LL and LL128 trees are from
//! memory (unverified).

use super::double_tree::DoubleTreeParameters;
use super::ring::RingParameters;
use super::{AlgorithmParameters, Asked, Kind, Phases, WorkloadError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

const PROTOCOLS: &[(&str, &str)] = &[
    ("auto", "the one with the lowest estimated time"),
    ("LL", "half of what is sent are flags"),
    ("LL128", "a sixteenth of what is sent are flags"),
    ("Simple", "no flags"),
];

/// What a protocol costs. Latencies in us, bandwidths in GB/s, sizes in bytes as they are sent.
struct Protocol {
    name: &'static str,
    /// Bytes on the wire for this number of bytes of data.
    sent: (u64, u64),
    base: [f64; 2],
    inside: [f64; 2],
    between: [f64; 2],
    overhead: f64,
    /// Largest message of a ring and of a tree.
    chunk: [u64; 2],
    /// Minimum of data of a channel.
    minimum: u64,
    /// Corrections of the bandwidth of trees, by log2(S / 64).
    correction: [f64; 24],
}

const RING: usize = 0;
const TREE: usize = 1;

const KNOWN: [Protocol; 3] = [
    Protocol {
        name: "LL",
        sent: (2, 1),
        base: [6.6, 6.8],
        inside: [0.6, 0.6],
        between: [2.7, 5.0],
        overhead: 1.0,
        chunk: [65_536, 65_536],
        minimum: 4 * 32_768,
        correction: [
            1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
            1.0, 1.0, 1.0, 1.0, 1.0,
        ],
    },
    Protocol {
        name: "LL128",
        sent: (16, 15),
        base: [14.0, 14.0],
        inside: [1.9, 1.25],
        between: [4.0, 8.5],
        overhead: 1.0,
        chunk: [614_400, 614_400],
        minimum: 32_768,
        correction: [
            1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9,
            0.9, 0.9, 1.0, 1.0, 1.0,
        ],
    },
    Protocol {
        name: "Simple",
        sent: (1, 1),
        base: [8.4, 8.4],
        inside: [3.4, 4.0],
        between: [14.0, 14.0],
        overhead: 3.0,
        chunk: [1 << 20, 512 << 10],
        minimum: 32_768,
        correction: [
            0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7,
            0.7, 0.8, 0.9, 0.9, 0.9,
        ],
    },
];

/// Keys of NCCL's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NcclParameters {
    protocol: Option<&'static str>,
    gpus_per_node: u32,
    /// The number of channels is set in the scenario.
    channels_given: bool,
}

/// One way to carry out an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    algorithm: usize,
    protocol: usize,
    pub micros: f64,
}

impl Candidate {
    pub fn name(&self) -> String {
        let algorithm = ["ring", "double tree"][self.algorithm];
        format!("{algorithm}, {}", KNOWN[self.protocol].name)
    }
}

impl AlgorithmParameters for NcclParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "nccl",
        title: "ring or double tree, with a protocol, as NCCL estimates them",
        source: "NCCL, graph/tuning.cc (Hopper); corrections of LL and LL128 trees from memory, unverified",
        equations: "t = latency + S / bandwidth, the lowest of all",
        validation: "Its estimates by hand (workload/schedule/nccl.rs). Not compared with NCCL.",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::AllReduce, Kind::ReduceScatter, Kind::AllGather];
    const OWN_KEYS: &'static [&'static str] = &["protocol", "gpus_per_node"];

    fn read(p: &mut Parameters) -> NcclParameters {
        let channels_given = p.peek("channels").is_some();
        let protocol = p.choice("protocol", "auto", PROTOCOLS, "NCCL's protocol.");
        let node_help = "GPUs of a node, each with a NIC; for the estimates only.";
        NcclParameters {
            protocol: (protocol != "auto").then_some(protocol),
            gpus_per_node: p.integer("gpus_per_node", 1, (1, 1024), node_help) as u32,
            channels_given,
        }
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        let all = self.candidates(asked);
        let Some(best) = all.first() else {
            return Err(WorkloadError::new("algorithm", "no algorithm does it"));
        };
        let protocol = &KNOWN[best.protocol];
        let (sent, data) = protocol.sent;
        let bytes = u128::from(asked.bytes) * u128::from(sent);
        let bytes = u64::try_from(bytes.div_ceil(u128::from(data))).unwrap_or(u64::MAX);
        let chunk = Some(asked.chunk.unwrap_or(protocol.chunk[best.algorithm]));
        let channels = self.channels_of(asked, protocol);
        let asked = Asked { bytes, chunk, channels, ..*asked };
        match best.algorithm {
            TREE => DoubleTreeParameters.phases(&asked),
            _ => RingParameters.phases(&asked),
        }
    }

    fn channels(&self, asked: &Asked) -> u32 {
        let best = self.candidates(asked).into_iter().next();
        best.map_or(asked.channels, |best| self.channels_of(asked, &KNOWN[best.protocol]))
    }

    fn why(&self, asked: &Asked) -> Option<String> {
        let all = self.candidates(asked);
        let (best, others) = all.split_first()?;
        let channels = self.channels_of(asked, &KNOWN[best.protocol]);
        let others: Vec<String> =
            others.iter().map(|other| format!("{} {:.1} us", other.name(), other.micros)).collect();
        Some(format!(
            "NCCL takes {} for an {} of {} bytes among {} ranks, over {channels} channels: it estimates {:.1} us \
             ({})",
            best.name(),
            asked.kind.name(),
            asked.bytes,
            asked.ranks,
            best.micros,
            others.join("; ")
        ))
    }
}

impl NcclParameters {
    /// Two a NIC, fewer where each would have too little.
    fn channels_of(&self, asked: &Asked, protocol: &Protocol) -> u32 {
        if self.channels_given {
            return asked.channels;
        }
        (asked.bytes / protocol.minimum).clamp(1, 2) as u32
    }

    /// All that can be taken, the best first.
    pub fn candidates(&self, asked: &Asked) -> Vec<Candidate> {
        let wanted = |at: usize| self.protocol.is_none_or(|name| KNOWN[at].name == name);
        let algorithms = if asked.kind == Kind::AllReduce { &[RING, TREE][..] } else { &[RING][..] };
        let mut all: Vec<Candidate> = Vec::new();
        for &algorithm in algorithms {
            for protocol in (0..KNOWN.len()).filter(|&at| wanted(at)) {
                let micros = self.estimate(asked, algorithm, protocol);
                all.push(Candidate { algorithm, protocol, micros });
            }
        }
        all.sort_by(|a, b| a.micros.total_cmp(&b.micros));
        all
    }

    fn estimate(&self, asked: &Asked, algorithm: usize, at: usize) -> f64 {
        let protocol = &KNOWN[at];
        let ranks = f64::from(asked.ranks);
        let node = self.gpus_per_node.min(asked.ranks);
        let nodes = asked.ranks.div_ceil(node);
        let hop = protocol.inside[algorithm].max(protocol.overhead);
        let (between, bytes) = (protocol.between[algorithm], asked.bytes as f64);
        let rounds = if asked.kind == Kind::AllReduce { 2.0 } else { 1.0 };
        // Two channels for every NIC of a node.
        let channels = f64::from(2 * node);
        let rate = f64::from(node) * asked.rate.0 as f64 / 8e9;
        let class = match nodes {
            1 => 0,
            2 | 3 => 1,
            _ => 2,
        };
        let limit = [141.0, 45.0, 35.0][class];
        let (latency, bandwidth) = match algorithm {
            TREE => {
                let levels = f64::from(nodes).log2().ceil();
                let latency = 2.0 * (f64::from(node - 1) * protocol.inside[TREE] + levels * between);
                let whole = (rate * 0.92).min(channels * [38.7, 41.4, 36.0][class]);
                let bandwidth = match at {
                    0 => (whole / 3.8).min(limit),
                    1 => whole * 120.0 / 128.0,
                    _ => whole,
                };
                let place = (bytes / 64.0).max(1.0).log2() as usize;
                (latency, bandwidth * 0.5 * protocol.correction.get(place).unwrap_or(&1.0))
            }
            _ => {
                let steps = rounds * (ranks - 1.0);
                let crossing = if nodes > 1 { rounds * f64::from(nodes - 1) } else { 0.0 };
                let latency = (steps - crossing) * hop + crossing * between;
                let bandwidth = match at {
                    0 => (rate * 0.5).min(limit),
                    1 => (rate * 0.92).min(channels * 36.7),
                    _ => rate,
                };
                (latency, bandwidth * ranks / steps)
            }
        };
        let large = bytes / (channels * ranks) >= 64.0;
        let slower =
            if algorithm == RING && at == 2 && nodes > 1 && rounds == 2.0 && large { 1.4 } else { 1.0 };
        (protocol.base[algorithm] + latency) * slower + bytes / (1000.0 * bandwidth)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Schedule;
    use super::*;
    use crate::units::Rate;

    const ANY: NcclParameters = NcclParameters { protocol: None, gpus_per_node: 1, channels_given: false };

    fn asked(kind: Kind, ranks: u32, bytes: u64) -> Asked {
        Asked::plain(kind, ranks, bytes, Rate::from_gbps(400))
    }

    #[test]
    fn small_sums_take_a_tree_with_flags_and_large_ones_a_ring_without() {
        let name = |bytes, ranks| ANY.candidates(&asked(Kind::AllReduce, ranks, bytes))[0].name();
        assert_eq!(name(1024, 64), "double tree, LL");
        assert_eq!(name(1 << 30, 8), "ring, Simple");
        assert!(ANY.candidates(&asked(Kind::AllGather, 64, 1024)).iter().all(|one| one.algorithm == RING));
    }

    #[test]
    fn estimates_are_latency_and_bytes_by_bandwidth() {
        // 8 nodes of one GPU: 8.4 + 14 steps x 14 us, x 1.4; 50 GB/s x 8 / 14.
        let simple = ANY.estimate(&asked(Kind::AllReduce, 8, 1 << 30), RING, 2);
        let by_hand = (8.4 + 14.0 * 14.0) * 1.4 + f64::from(1 << 30) / (1000.0 * 50.0 * 8.0 / 14.0);
        assert!((simple - by_hand).abs() < 1e-6, "{simple} {by_hand}");
        // A tree of 8: 6.8 + 2 x 3 x 5 us; 50 x 0.92 / 3.8 / 2, x 0.9 for 1024 = 64 x 2^4 bytes.
        let tree = ANY.estimate(&asked(Kind::AllReduce, 8, 1024), TREE, 0);
        let by_hand = 6.8 + 30.0 + 1024.0 / (1000.0 * 50.0 * 0.92 / 3.8 / 2.0 * 0.9);
        assert!((tree - by_hand).abs() < 1e-6, "{tree} {by_hand}");
    }

    #[test]
    fn protocols_send_their_flags_too() {
        for (name, sent) in [("LL", 2.0), ("LL128", 16.0 / 15.0), ("Simple", 1.0)] {
            let of = NcclParameters { protocol: Some(name), ..ANY };
            let asked = asked(Kind::ReduceScatter, 4, 12_000_000);
            let law = of.phases(&asked).expect("a schedule").remove(0).only();
            let bytes: u64 = (0..law.messages()).map(|message| law.transfer(message).bytes).sum();
            let expected = 3.0 * 12e6 * sent;
            assert!((bytes as f64 - expected).abs() < 10.0, "{name}: {bytes}");
            assert!((0..law.messages()).all(|m| law.transfer(m).bytes <= 1 << 20));
        }
    }
}
