//! What a ToR must know of MPTCP to tell subflows of one connection apart from others: options of the set-up, tokens, and which
//! flow belongs to which connection.
//!
//! A kernel: it reads and writes bytes of TCP options and knows no simulator. MP-HULA's switches use it, and the hosts of multipath
//! TCP.
//!
//! Source: RFC 6824 (version 0), RFC 8684 (version 1); Benet et al., "MP-HULA", NetCompute 2018 (parse, identify, correlate,
//! mark).

mod connections;
mod options;
mod tokens;

pub use connections::{Connections, FlowKey, Segment};
pub use options::{Join, LONGEST, MptcpOption, find};
pub use tokens::{Version, initial_sequence, proof, short, token};
