//! Why a plan cannot be an encoder.

use super::{MAX_COPIES, MAX_FIELDS, MAX_QUERIES, MAX_SETS};

/// Why a plan cannot be an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    TooManyQueries,
    TooManySets,
    TooManyFields,
    /// Cumulative shares fall, or exceed 65 536, at this set.
    Shares {
        set: usize,
    },
    /// A slot of this set names a query that does not exist.
    UnknownQuery {
        set: usize,
    },
    /// A slot of this set has no bits or copies, too many, or does not end within 64 bits.
    Width {
        set: usize,
    },
    /// Two slots of this set share a bit.
    Overlap {
        set: usize,
    },
    /// The query's own settings need another width than a slot of this set has.
    Mismatch {
        set: usize,
        query: usize,
    },
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Refused::TooManyQueries => write!(f, "more than {MAX_QUERIES} queries"),
            Refused::TooManySets => write!(f, "more than {MAX_SETS} sets of queries"),
            Refused::TooManyFields => write!(f, "more than {MAX_FIELDS} fields in all sets together"),
            Refused::Shares { set } => {
                write!(f, "cumulative shares must rise to at most 65536, set {set} does not")
            }
            Refused::UnknownQuery { set } => write!(f, "set {set} names a query that does not exist"),
            Refused::Width { set } => {
                write!(f, "a slot of set {set} must have 1 to {MAX_COPIES} copies and end within 64 bits")
            }
            Refused::Overlap { set } => write!(f, "two slots of set {set} share a bit"),
            Refused::Mismatch { set, query } => {
                write!(f, "query {query} needs another width than its slot in set {set} has")
            }
        }
    }
}

impl core::error::Error for Refused {}
