//! What a query asks of every hop: the kinds of tasks, and how wide a field each needs.

use crate::code::Code;
use crate::counting::Counter;
use crate::loops::LoopDetection;
use crate::value::Approximation;

/// How a value that is constant on the path fits into a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// As many bits of a hash of value and packet as the field has.
    Hashed,
    /// One of `count` (1 to 64) pieces of the value, as wide as the field, from the lowest; the packet's id says which.
    Fragments { count: u32 },
}

/// What a query's field holds and how a hop changes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Task {
    /// A value that is constant per flow and hop, by distributed coding.
    Path {
        code: Code,
        blocks: Blocks,
    },
    /// The value of one hop, each with the same probability.
    Sample(Approximation),
    Maximum(Approximation),
    Minimum(Approximation),
    /// The sum of all hops' values, on average.
    Sum(Counter),
    /// The product of all hops' values (0 counts as 1), on average if the approximation rounds in the value domain.
    Product(Approximation),
    /// Hops whose value is greater than this; stays at the largest number that the field holds.
    Count {
        threshold: u64,
    },
    /// Whether the packet came back to a hop.
    Loop(LoopDetection),
}

impl Task {
    /// Whether it can live in a field of `bits`.
    pub(super) fn fits(&self, bits: u32) -> bool {
        match self {
            Task::Path { blocks: Blocks::Fragments { count }, .. } => (1..=64).contains(count),
            Task::Path { .. } | Task::Count { .. } => true,
            Task::Sample(values) | Task::Maximum(values) | Task::Minimum(values) => values.bits() <= bits,
            // A product's codes are wider than one value's.
            Task::Product(values) => values.bits() <= bits,
            Task::Sum(counter) => counter.bits() <= bits,
            Task::Loop(detection) => LoopDetection::new(bits, detection.tolerance()) == Some(*detection),
        }
    }
}
