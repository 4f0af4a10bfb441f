//! What a hop does to the packets of one set, resolved for what the paper's plan has: a path in up to two
//! copies, and a sample.
//!
//! Both are at a fixed place, so that a hop does not have to determine what the next field is, and calls
//! nothing; all other fields come after them, one at a time.

use super::Field;
use super::step::{Hop, Observed, Operation};
use crate::hash::{Mixed, spread};
use crate::value::Logarithmic;

/// What packets a set has, and what is done to them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Program {
    /// Cumulative share, in units of 2^-16.
    pub until: u32,
    /// Its fields among those of all sets: the first one, the first that is neither of those below, and the
    /// one after its last.
    pub first: u16,
    pub others: u16,
    pub end: u16,
    path: Option<Path>,
    sample: Option<Sample>,
}

/// Two copies of a path by a code with one XOR layer.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Path {
    start: u64,
    until: u64,
    /// The second one has no bits if there is one copy only.
    copies: [Field; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    values: Logarithmic,
    field: Field,
}

impl Program {
    /// All packets, without fields.
    pub const NOTHING: Program =
        Program { until: 1 << 16, first: 0, others: 0, end: 0, path: None, sample: None };

    /// Of a set with these fields, in the order of [`Operation::rank`]; they are from the `first`-th of all
    /// on.
    pub fn of(until: u32, first: usize, fields: &[Field]) -> Program {
        let (path, rest) = Path::of(fields);
        let (sample, others) = Sample::of(rest);
        let end = first + fields.len();
        let [first, others, end] = [first, end - others.len(), end].map(|place| place as u16);
        Program { until, first, others, end, path, sample }
    }

    /// The bits of the digest that a hop changes.
    #[inline(always)]
    pub fn step(&self, hop: Hop, packet: Mixed, came: u64, observed: &mut impl Observed) -> u64 {
        let mut changes = 0;
        if let Some(path) = &self.path {
            changes ^= path.step(hop, packet, came, observed);
        }
        if let Some(Sample { values, field }) = &self.sample {
            if let Some(value) = observed.value(usize::from(field.query)) {
                changes ^= hop.sample(*values, field, packet, value, came);
            }
        }
        changes
    }
}

impl Path {
    /// From the first fields of these, and what is left of them.
    fn of(fields: &[Field]) -> (Option<Path>, &[Field]) {
        let [first, rest @ ..] = fields else { return (None, fields) };
        let Operation::Hybrid { start, until } = first.operation else { return (None, fields) };
        match rest {
            [second, rest @ ..] if first.copied => {
                (Some(Path { start, until, copies: [*first, *second] }), rest)
            }
            _ => (Some(Path { start, until, copies: [*first, Field { mask: 0, ..*first }] }), rest),
        }
    }

    #[inline(always)]
    fn step(&self, hop: Hop, packet: Mixed, came: u64, observed: &mut impl Observed) -> u64 {
        let [first, second] = &self.copies;
        let Some(id) = observed.value(usize::from(first.query)) else { return 0 };
        // Of copies only the key differs.
        let id = spread(id);
        hop.hybrid(self.start, self.until, first, packet, id, came)
            ^ hop.hybrid(self.start, self.until, second, packet, id, came)
    }
}

impl Sample {
    /// From the first of these fields, and what is left of them.
    fn of(fields: &[Field]) -> (Option<Sample>, &[Field]) {
        match fields {
            [field, rest @ ..] => match field.operation {
                Operation::Sample(values) => (Some(Sample { values, field: *field }), rest),
                _ => (None, fields),
            },
            [] => (None, fields),
        }
    }
}
