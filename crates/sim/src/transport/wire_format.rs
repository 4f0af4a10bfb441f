//! The format of a transport's packets in captures.

use super::fastpass::FastpassConfig;
use super::mptcp::MptcpConfig;
use super::rdma::RdmaConfig;
use super::tcp::TcpConfig;

/// A format, with the parameters that its headers depend on.
pub enum WireFormat<'a> {
    /// UDP with a header of the flow, `seq` and `aux`.
    Plain,
    /// RoCEv2.
    QueuePairs(&'a RdmaConfig),
    Segments(&'a TcpConfig),
    Subflows(&'a MptcpConfig),
    Tokens,
    Priorities,
    Pulls,
    Grants,
    Timeslots(&'a FastpassConfig),
}
