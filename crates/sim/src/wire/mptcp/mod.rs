//! Multipath TCP on the wire: options of the set-up, tokens, and which subflow a packet is of. The hosts of
//! multipath TCP write it, MP-HULA's switches and captures read it.
//!
//! Source: RFC 6824 (version 0), RFC 8684 (version 1); Benet et al., "MP-HULA", NetCompute 2018 (parse,
//! identify, correlate, mark).

mod options;
mod tokens;

pub use options::{Announcement, Join, LONGEST, MptcpOption, find};
pub use tokens::{Version, announcement, initial_sequence, proof, short, token};

use crate::packet::Packet;

/// Codes of control packets, and of acknowledgements that say something.
pub mod code {
    pub use crate::wire::tcp::code::{ESTABLISHED, SYN, SYN_ACK};
    /// Answers the third packet of a join.
    pub const CONFIRMED: u8 = 4;
    /// To the initiator: nothing is known of the subflow.
    pub const RESET: u8 = 5;
    /// From the initiator: the subflow is over.
    pub const GIVEN_UP: u8 = 6;
    /// From the other end: one more address of it.
    pub const ADDRESS: u8 = 7;
    /// From the initiator: it knows that address.
    pub const ADDRESS_KNOWN: u8 = 8;
    /// Of an acknowledgement: its sender does not know both keys, so it acknowledges no data yet.
    pub const KEYLESS: u8 = 1;
    /// A bit of data and acknowledgements: the connection fell back to TCP, so they have no option.
    pub const PLAIN: u8 = 8;
}

/// Bits of `sender` that name the place of the subflow at its sender.
const SLOT_BITS: u32 = 24;

/// Place and number of a packet's subflow.
#[inline]
pub fn subflow_of(packet: &Packet) -> (u32, u8) {
    (packet.sender & ((1 << SLOT_BITS) - 1), (packet.sender >> SLOT_BITS) as u8)
}

/// What `sender` is for the subflow of this number in this place.
#[inline]
pub fn sender_of(slot: u32, subflow: u8) -> u32 {
    debug_assert!(slot < 1 << SLOT_BITS);
    slot | u32::from(subflow) << SLOT_BITS
}

/// The bytes of the option of a set-up packet, which a packet carries as these numbers.
pub fn option_bytes(numbers: &[u32; LONGEST / 4]) -> [u8; LONGEST] {
    let mut bytes = [0; LONGEST];
    for (bytes, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        bytes.copy_from_slice(&number.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_and_port_are_distinguished() {
        let packet = Packet { sender: sender_of(77, 255), ..Packet::default() };
        assert_eq!(subflow_of(&packet), (77, 255));
    }
}
