//! Sketches as bytes: little endian, a mark and a version first, a checksum last.

use crate::hash::mix;

/// Why bytes are not a sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damaged {
    #[error("the bytes end before the sketch does")]
    Truncated,
    #[error("these bytes are not a sketch of this kind")]
    OtherKind,
    #[error("the sketch was written by version {0} of the format; this one reads version 1")]
    Version(u8),
    #[error("the checksum does not fit the bytes: the sketch is damaged")]
    Checksum,
    #[error("the sketch contradicts itself: {0}")]
    Contradiction(&'static str),
}

const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 8;

/// Appends numbers to a buffer that starts with the mark of the kind.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub fn new(mark: [u8; 4]) -> Writer {
        let mut bytes = mark.to_vec();
        bytes.push(VERSION);
        Writer(bytes)
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn u8(&mut self, x: u8) {
        self.0.push(x);
    }

    pub fn u32(&mut self, x: u32) {
        self.put(&x.to_le_bytes());
    }

    pub fn u64(&mut self, x: u64) {
        self.put(&x.to_le_bytes());
    }

    pub fn finish(mut self) -> Vec<u8> {
        let sum = checksum(&self.0);
        self.u64(sum);
        self.0
    }
}

/// Takes the numbers back out.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Checks the mark, the version and the checksum.
    pub fn new(bytes: &'a [u8], mark: [u8; 4]) -> Result<Reader<'a>, Damaged> {
        let (found, rest) = bytes.split_at_checked(4).ok_or(Damaged::Truncated)?;
        if found != mark {
            return Err(Damaged::OtherKind);
        }
        match rest.first() {
            None => return Err(Damaged::Truncated),
            Some(&VERSION) => {}
            Some(&version) => return Err(Damaged::Version(version)),
        }
        let body =
            bytes.len().checked_sub(CHECKSUM_BYTES).filter(|&body| body >= 5).ok_or(Damaged::Truncated)?;
        let (body, sum) = bytes.split_at(body);
        if checksum(body).to_le_bytes() != sum {
            return Err(Damaged::Checksum);
        }
        Ok(Reader(&body[5..]))
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damaged::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn u8(&mut self) -> Result<u8, Damaged> {
        Ok(self.take(1)?[0])
    }

    pub fn u32(&mut self) -> Result<u32, Damaged> {
        Ok(self.take(4)?.iter().rev().fold(0, |x, &byte| x << 8 | u32::from(byte)))
    }

    pub fn u64(&mut self) -> Result<u64, Damaged> {
        Ok(self.take(8)?.iter().rev().fold(0, |x, &byte| x << 8 | u64::from(byte)))
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }
}

/// Folds the bytes, eight at a time, with the mixer of the hashes.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(bytes.len() as u64 + 1), |sum, chunk| {
        let word = chunk.iter().rev().fold(0, |x, &byte| x << 8 | u64::from(byte));
        mix(sum ^ word).wrapping_add(sum.rotate_left(17))
    })
}
