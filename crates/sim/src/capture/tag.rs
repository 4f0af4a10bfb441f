//! Headers that switches add to packets for load balancers, as an option of the IPv4 header; and their
//! probes, as frames with their own EtherType.
//!
//! ```text
//!  0      158: an option for experiments, copied to fragments; of a probe 0
//!  1      bytes of the option
//!  2      what it is: 1 MP-HULA's mark, 2 CONGA, 3 Clove, 4 a probe of HULA or MP-HULA
//!  3      1: subflow.  2, 3: uplink or path that is told of, 255 for none
//!  then   1: connection (8 bytes, of which the simulator keeps the first 59 bits)
//!         2: leaf that wrote it (4), uplink (1), congestion so far (1), congestion of what is told of (1), 0
//!         3: hash of the flow (4), path or 255 (1), utilisation so far (1), what was met where it tells of (1), 0
//!         4: ToR that it is of (4), utilisation in 1/256 (1), 0, 0, 0
//! ```
//!
//! Source: Benet et al., "MP-HULA", NetCompute 2018 (talk: an id of 64 bits, a subflow of 4); Katta et al.,
//! "HULA", SOSR 2016, §4.1; Alizadeh et al., "CONGA", SIGCOMM 2014, §3.1; Katta et al., "Clove", CoNEXT 2017,
//! §3. The format and its place are defined here, so that every dissector can skip it; option number and
//! EtherType are those reserved for experiments (RFC 4727 §3.1; IEEE Std 802).

use crate::balance::{CloveHeader, CongaHeader, mark_of};
use crate::config::BalancerConfig;
use crate::packet::Packet;

/// The EtherType of probes (IEEE Std 802, local experimental 1).
pub const ETHERTYPE: u16 = 0x88b5;
/// The number of the option (RFC 4727 §3.1), with the bit that requests its copy into fragments.
const OPTION: u8 = 158;
const NONE: u8 = 255;

/// Which headers packets of a run carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tags {
    None,
    /// MP-HULA's mark, between ToRs.
    Subflow,
    Conga,
    /// Between hosts.
    Clove,
}

impl Tags {
    pub fn of(balancer: &BalancerConfig) -> Tags {
        match balancer {
            BalancerConfig::Hula(_) => Tags::Subflow,
            BalancerConfig::Conga(_) => Tags::Conga,
            BalancerConfig::Clove(_) => Tags::Clove,
            _ => Tags::None,
        }
    }

    /// The option of a packet that carries `word` over a link, if any. `inside`: the link is between two
    /// switches.
    pub fn tag(self, word: u64, inside: bool) -> Option<Vec<u8>> {
        match self {
            Tags::Subflow if inside => {
                mark_of(word).map(|mark| tagged(OPTION, 1, mark.subflow, mark.connection.to_be_bytes()))
            }
            Tags::Conga if inside => Some(conga(CongaHeader::unpack(word))),
            Tags::Clove => Some(clove(CloveHeader::unpack(word))),
            _ => None,
        }
    }
}

/// A probe.
pub fn probe(packet: &Packet) -> Vec<u8> {
    let [a, b, c, d] = packet.src.to_be_bytes();
    tagged(0, 4, 0, [a, b, c, d, packet.aux.min(255) as u8, 0, 0, 0])
}

fn conga(header: CongaHeader) -> Vec<u8> {
    let (uplink, congestion) = header.feedback.unwrap_or((NONE, 0));
    let [a, b, c, d] = header.leaf.to_be_bytes();
    tagged(OPTION, 2, uplink, [a, b, c, d, header.tag, header.congestion, congestion, 0])
}

fn clove(header: CloveHeader) -> Vec<u8> {
    let (path, met) = header.feedback.unwrap_or((NONE, 0));
    let [a, b, c, d] = header.inner.to_be_bytes();
    tagged(OPTION, 3, path, [a, b, c, d, header.tag, header.utilisation, met, 0])
}

fn tagged(option: u8, kind: u8, first: u8, rest: [u8; 8]) -> Vec<u8> {
    [&[option, 12, kind, first][..], &rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_between_switches_alone() {
        // The mark's bit, subflow 5, and connection 0x20 without its last five bits.
        let word = 1 << 63 | 5 << 59 | 1;
        let tag = Tags::Subflow.tag(word, true).unwrap();
        assert_eq!(tag, [158, 12, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0x20]);
        assert_eq!(Tags::Subflow.tag(word, false), None);
        assert_eq!(Tags::Subflow.tag(0, true), None, "a packet without a mark");
        assert_eq!(Tags::None.tag(word, true), None);
    }

    #[test]
    fn headers_of_conga_and_clove_say_what_they_tell_of() {
        let header = CongaHeader { tag: 3, congestion: 6, feedback: Some((2, 5)), leaf: 7 };
        let tag = Tags::Conga.tag(header.pack(), true).unwrap();
        assert_eq!(tag, [158, 12, 2, 2, 0, 0, 0, 7, 3, 6, 5, 0]);
        let header = CloveHeader { inner: 0x0102_0304, tag: 9, utilisation: 77, feedback: None };
        let tag = Tags::Clove.tag(header.pack(), false).unwrap();
        assert_eq!(tag, [158, 12, 3, 255, 1, 2, 3, 4, 9, 77, 0, 0]);
    }

    #[test]
    fn a_probe_names_its_tor_and_what_the_path_is_worth() {
        let packet = Packet { src: 258, aux: 31, ..Packet::default() };
        assert_eq!(probe(&packet), [0, 12, 4, 0, 0, 0, 1, 2, 31, 0, 0, 0]);
    }
}
