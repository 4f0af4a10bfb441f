//! Why bytes were refused. Every refusal is counted under its reason.

/// A reason; `NAMES` has its text in the order of the declaration.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    thiserror::Error,
    serde::Serialize,
    serde::Deserialize,
)]
pub enum Malformed {
    #[error("frame cut off")]
    Frame,
    #[error("IP header")]
    Ip,
    #[error("IPv6 extension header")]
    Ipv6Extension,
    #[error("IPv6 option")]
    Ipv6Option,
    #[error("TCP or UDP header")]
    Transport,
    #[error("tunnel header")]
    Tunnel,
    #[error("INT shim: type or next-protocol type")]
    IntShim,
    #[error("INT version")]
    IntVersion,
    #[error("INT length beyond the packet or below its header")]
    IntLength,
    #[error("INT hop shorter than its instructions")]
    IntHop,
    #[error("INT stack is not a whole number of hops")]
    IntStack,
    #[error("telemetry report version")]
    ReportVersion,
    #[error("telemetry report type")]
    ReportType,
    #[error("telemetry report length")]
    ReportLength,
    #[error("IOAM option shorter than its header")]
    IoamLength,
    #[error("IOAM node shorter than its trace type")]
    IoamNode,
    #[error("IOAM data is not a whole number of nodes")]
    IoamStack,
    #[error("weftline telemetry header")]
    Shim,
    #[error("PINT option")]
    PintOption,
}

impl Malformed {
    pub const ALL: [Malformed; 19] = {
        use Malformed::*;
        [
            Frame,
            Ip,
            Ipv6Extension,
            Ipv6Option,
            Transport,
            Tunnel,
            IntShim,
            IntVersion,
            IntLength,
            IntHop,
            IntStack,
            ReportVersion,
            ReportType,
            ReportLength,
            IoamLength,
            IoamNode,
            IoamStack,
            Shim,
            PintOption,
        ]
    };
}
