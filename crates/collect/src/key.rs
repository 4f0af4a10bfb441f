//! A flow at a point of observation, in few bytes, and its hash.

use std::net::{IpAddr, Ipv6Addr};

use crate::flows::Point;
use crate::ip::FlowKey;

const NO_VNI: u32 = u32::MAX;

/// A flow and where it is seen, in 48 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    source: [u8; 16],
    destination: [u8; 16],
    vni: u32,
    point: u32,
    ports: [u16; 2],
    protocol: u8,
    /// 1: the source is of IPv4; 2: the destination is; 4: the point is a node; 8: an interface of a capture; 16: the upper half
    /// of the point is a namespace.
    kind: u8,
    /// The number of the captures.
    capture: u16,
}

const _: () = assert!(size_of::<Key>() == 48);

impl Key {
    pub(crate) fn new(flow: &FlowKey, point: Point) -> Key {
        let bytes = |address: IpAddr| match address {
            IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), true),
            IpAddr::V6(address) => (address.octets(), false),
        };
        let ((source, source_v4), (destination, destination_v4)) =
            (bytes(flow.source), bytes(flow.destination));
        let (point, capture, of_point) = match point {
            Point::Interface(number) => (number, 0, 0),
            Point::Node(number) => (number, 0, 4),
            Point::Capture { point, interface } => (interface, point, 8),
        };
        // Nodes do not report IOAM; interfaces of a capture are few.
        let namespace = flow.namespace.filter(|_| of_point != 4).map(u32::from);
        let point = namespace.map_or(point, |namespace| namespace << 16 | point.min(0xffff));
        Key {
            source,
            destination,
            vni: flow.vni.unwrap_or(NO_VNI),
            point,
            ports: [flow.source_port, flow.destination_port],
            protocol: flow.protocol,
            kind: u8::from(source_v4)
                | u8::from(destination_v4) << 1
                | of_point
                | u8::from(namespace.is_some()) << 4,
            capture,
        }
    }

    /// All fields, in 48 bytes.
    pub(crate) fn to_bytes(self) -> [u8; 48] {
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&self.source);
        bytes[16..32].copy_from_slice(&self.destination);
        bytes[32..36].copy_from_slice(&self.vni.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.point.to_le_bytes());
        bytes[40..42].copy_from_slice(&self.ports[0].to_le_bytes());
        bytes[42..44].copy_from_slice(&self.ports[1].to_le_bytes());
        (bytes[44], bytes[45]) = (self.protocol, self.kind);
        bytes[46..].copy_from_slice(&self.capture.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; 48]) -> Key {
        let two = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let four = |at: usize| u32::from(two(at)) | u32::from(two(at + 2)) << 16;
        let sixteen = |at: usize| bytes[at..at + 16].try_into().unwrap_or_default();
        Key {
            source: sixteen(0),
            destination: sixteen(16),
            vni: four(32),
            point: four(36),
            ports: [two(40), two(42)],
            protocol: bytes[44],
            kind: bytes[45],
            capture: two(46),
        }
    }

    pub(crate) fn flow(&self) -> (FlowKey, Point) {
        let address = |octets: [u8; 16], v4: bool| {
            let address = Ipv6Addr::from(octets);
            if v4 { address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4) } else { address.into() }
        };
        let flow = FlowKey {
            source: address(self.source, self.kind & 1 != 0),
            destination: address(self.destination, self.kind & 2 != 0),
            source_port: self.ports[0],
            destination_port: self.ports[1],
            protocol: self.protocol,
            vni: (self.vni != NO_VNI).then_some(self.vni),
            namespace: (self.kind & 16 != 0).then_some((self.point >> 16) as u16),
        };
        let number = if flow.namespace.is_some() { self.point & 0xffff } else { self.point };
        let point = match self.kind >> 2 & 3 {
            0 => Point::Interface(number),
            1 => Point::Node(number),
            _ => Point::Capture { point: self.capture, interface: number },
        };
        (flow, point)
    }

    /// A hash that cannot be predicted without the seed.
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let words = [
            word(&self.source[..8]),
            word(&self.source[8..]),
            word(&self.destination[..8]),
            word(&self.destination[8..]),
            u64::from(self.vni) << 32 | u64::from(self.point),
            u64::from(self.capture) << 48
                | u64::from(self.ports[0]) << 32
                | u64::from(self.ports[1]) << 16
                | u64::from(self.protocol) << 8
                | u64::from(self.kind),
        ];
        words.iter().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |hash, word| {
            let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f;
            (product >> 64) as u64 ^ product as u64
        })
    }
}
