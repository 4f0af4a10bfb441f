//! What switches put on packets for load balancers, and their probes: a tag between the Ethernet header and the packet, with a
//! type of its own.
//!
//! ```text
//!  0      what it is: 1 MP-HULA's mark, 2 CONGA, 3 Clove, 4 a probe of HULA or MP-HULA
//!  1      bytes of the tag, these four included
//!  2, 3   EtherType of what follows; 0: nothing
//!  then   1: connection (8 bytes, of which the simulator keeps the first 59 bits), subflow (1), 3 of padding
//!         2: leaf that wrote it (4), uplink (1), congestion (1), uplink that is told of or 255 (1), its congestion (1)
//!         3: hash of the flow (4), path (1, 255: none), utilisation (1), path that is told of or 255 (1), what was met there (1)
//!         4: ToR that it is of (4), utilisation in 1/256 (1), 3 of padding
//! ```
//!
//! Source: Benet et al., "MP-HULA", NetCompute 2018 (talk: an id of 64 bits, a subflow of 4); Katta et al., "HULA", SOSR 2016, §4.1;
//! Alizadeh et al., "CONGA", SIGCOMM 2014, §3.1; Katta et al., "Clove", CoNEXT 2017, §3. The form is ours; the type is one that
//! IEEE 802 keeps for experiments.

use crate::balance::{CloveHeader, CongaHeader, mark_of};
use crate::config::BalancerConfig;
use crate::packet::Packet;

/// The EtherType of tags (IEEE Std 802, local experimental 1).
pub const ETHERTYPE: u16 = 0x88b5;
const HEAD: usize = 4;
const NONE: u8 = 255;

/// Which tags packets of a run have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tags {
    None,
    /// MP-HULA's mark, between ToRs.
    Subflow,
    Conga,
    /// From host to host.
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

    /// The tag of a packet that carries this word over a link, if it has one; `inside`: between two switches.
    pub fn tag(self, word: u64, inside: bool, next: u16) -> Option<Vec<u8>> {
        match self {
            Tags::Subflow if inside => mark_of(word).map(|mark| {
                let mut body = mark.connection.to_be_bytes().to_vec();
                body.extend([mark.subflow, 0, 0, 0]);
                tagged(1, next, &body)
            }),
            Tags::Conga if inside => Some(conga(CongaHeader::unpack(word), next)),
            Tags::Clove => Some(clove(CloveHeader::unpack(word), next)),
            _ => None,
        }
    }
}

/// A probe.
pub fn probe(packet: &Packet) -> Vec<u8> {
    let mut body = packet.src.to_be_bytes().to_vec();
    body.extend([packet.aux.min(255) as u8, 0, 0, 0]);
    tagged(4, 0, &body)
}

fn conga(header: CongaHeader, next: u16) -> Vec<u8> {
    let (uplink, congestion) = header.feedback.unwrap_or((NONE, 0));
    let mut body = header.leaf.to_be_bytes().to_vec();
    body.extend([header.tag, header.congestion, uplink, congestion]);
    tagged(2, next, &body)
}

fn clove(header: CloveHeader, next: u16) -> Vec<u8> {
    let (path, met) = header.feedback.unwrap_or((NONE, 0));
    let mut body = header.inner.to_be_bytes().to_vec();
    body.extend([header.tag, header.utilisation, path, met]);
    tagged(3, next, &body)
}

fn tagged(kind: u8, next: u16, body: &[u8]) -> Vec<u8> {
    let mut tag = vec![kind, (HEAD + body.len()) as u8];
    tag.extend(next.to_be_bytes());
    tag.extend(body);
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_between_switches_alone() {
        // The mark's bit, subflow 5, and connection 0x20 without its last five bits.
        let word = 1 << 63 | 5 << 59 | 1;
        let tag = Tags::Subflow.tag(word, true, 0x0800).unwrap();
        assert_eq!(tag, [1, 16, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 5, 0, 0, 0]);
        assert_eq!(Tags::Subflow.tag(word, false, 0x0800), None);
        assert_eq!(Tags::Subflow.tag(0, true, 0x0800), None, "a packet without a mark");
        assert_eq!(Tags::None.tag(word, true, 0x0800), None);
    }

    #[test]
    fn headers_of_conga_and_clove_say_what_they_tell_of() {
        let header = CongaHeader { tag: 3, congestion: 6, feedback: Some((2, 5)), leaf: 7 };
        let tag = Tags::Conga.tag(header.pack(), true, 0x0800).unwrap();
        assert_eq!(tag, [2, 12, 8, 0, 0, 0, 0, 7, 3, 6, 2, 5]);
        let header = CloveHeader { inner: 0x0102_0304, tag: 9, utilisation: 77, feedback: None };
        let tag = Tags::Clove.tag(header.pack(), false, 0x0800).unwrap();
        assert_eq!(tag, [3, 12, 8, 0, 1, 2, 3, 4, 9, 77, 255, 0]);
    }

    #[test]
    fn a_probe_names_its_tor_and_what_the_path_is_worth() {
        let packet = Packet { src: 258, aux: 31, ..Packet::default() };
        assert_eq!(probe(&packet), [4, 12, 0, 0, 0, 0, 1, 2, 31, 0, 0, 0]);
    }
}
