//! Everything that a run records, kept, and one hash of it. `examples/same_bits.rs` uses this file too.

use weftline_sim::measure::{DigestRecord, Entity, FlowRecord, Frames, Sample, Sink};
use weftline_sim::units::Time;

/// Keeps everything that a run records.
#[derive(Default)]
pub struct Kept {
    pub flows: Vec<FlowRecord>,
    pub samples: Vec<Sample>,
    pub digests: Vec<DigestRecord>,
    /// Frames of captures: link, time, bytes of the whole, bytes kept.
    pub frames: Vec<(u16, Time, u32, Vec<u8>)>,
}

impl Sink for Kept {
    fn flows(&mut self, batch: &[FlowRecord]) -> std::io::Result<()> {
        self.flows.extend_from_slice(batch);
        Ok(())
    }
    fn samples(&mut self, batch: &[Sample]) -> std::io::Result<()> {
        self.samples.extend_from_slice(batch);
        Ok(())
    }
    fn digests(&mut self, batch: &[DigestRecord]) -> std::io::Result<()> {
        self.digests.extend_from_slice(batch);
        Ok(())
    }
    fn frames(&mut self, batch: &Frames) -> std::io::Result<bool> {
        let kept = batch
            .frames
            .iter()
            .map(|frame| (frame.link, frame.time, frame.length, batch.bytes[frame.bytes.clone()].to_vec()));
        self.frames.extend(kept);
        Ok(true)
    }
}

impl Kept {
    /// Hash of samples, digests and captured frames, in the order in which they came.
    pub fn hash(&self) -> u64 {
        let mut rest = Hash::default();
        for sample in &self.samples {
            let (kind, of) = match sample.entity {
                Entity::Port(node, port) => (1, u64::from(node) << 32 | u64::from(port)),
                Entity::Flow(flow) => (2, u64::from(flow)),
                Entity::Group(group) => (3, u64::from(group)),
                Entity::Run => (4, 0),
            };
            rest.numbers(&[sample.time.0, kind, of, sample.value.to_bits()]);
            rest.bytes(sample.metric.as_bytes());
        }
        for digest in &self.digests {
            rest.numbers(&[
                digest.time.0,
                u64::from(digest.flow),
                u64::from(digest.subflow),
                digest.packet,
                digest.digest,
            ]);
            rest.numbers(&[u64::from(digest.hops), u64::from(digest.looped), u64::from(digest.plan_version)]);
            rest.numbers(
                &digest
                    .path
                    .iter()
                    .flat_map(|path| path.iter())
                    .map(|&node| u64::from(node))
                    .collect::<Vec<_>>(),
            );
        }
        for (link, time, length, bytes) in &self.frames {
            rest.numbers(&[u64::from(*link), time.0, u64::from(*length)]);
            rest.bytes(bytes);
        }
        rest.0
    }
}

/// FNV-1a, 64 bits.
pub struct Hash(pub u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    pub fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    pub fn numbers(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.bytes(&number.to_le_bytes());
        }
    }
}
