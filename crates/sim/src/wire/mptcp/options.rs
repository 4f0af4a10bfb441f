//! The MPTCP options of connection set-up: writing them, and finding them among the options of a TCP header.
//!
//! Options are at most 40 bytes: kinds 0 (end) and 1 (padding) of one byte, all others with their length in the second. MPTCP is
//! kind 30; the high half of its third byte says which option it is.
//!
//! Source: RFC 9293 §3.1; RFC 6824 §3.1 and §3.2, RFC 8684 §3.1, §3.2 and §3.4.1.

const MPTCP: u8 = 30;
const PADDING: u8 = 1;
/// Flag A of MP_CAPABLE.
const CHECKSUM: u8 = 0x80;
/// Flag E of ADD_ADDR.
const ECHO: u8 = 1;

/// One MPTCP option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MptcpOption {
    /// MP_CAPABLE: its keys. A first packet of version 1 has no key, the answer the server's, the third both. `checksum`: mappings
    /// will have one.
    Capable {
        version: u8,
        checksum: bool,
        sender: Option<u64>,
        receiver: Option<u64>,
    },
    Join(Join),
    Announcement(Announcement),
    /// Any other, by its subtype: data sequence mapping, an address of IPv6, and so on.
    Other(u8),
}

/// MP_JOIN, which differs in each packet of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// To the connection whose receiver has this token.
    Syn {
        address: u8,
        token: u32,
        nonce: u32,
    },
    /// `proof`: the first half of it ([`super::short`]).
    SynAck {
        address: u8,
        proof: u64,
        nonce: u32,
    },
    Ack {
        proof: [u32; 5],
    },
}

/// ADD_ADDR: one more address of its sender, of IPv4 and with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcement {
    pub id: u8,
    pub address: [u8; 4],
    pub port: u16,
    /// What proves that its sender knows both keys; none: it returns to who announced the address.
    pub proof: Option<u64>,
}

/// The longest option of set-up.
pub const LONGEST: usize = 24;

impl MptcpOption {
    /// Bytes of the option, padding to a whole word included, and their number. Options after the set-up do not have these.
    pub fn write(&self) -> ([u8; LONGEST], usize) {
        let mut bytes = [0; LONGEST];
        let mut length = 4;
        let mut put = |more: &[u8]| {
            bytes[length..length + more.len()].copy_from_slice(more);
            length += more.len();
        };
        let (subtype, low, flags) = match *self {
            MptcpOption::Capable { version, checksum, sender, receiver } => {
                [sender, receiver].iter().flatten().for_each(|key| put(&key.to_be_bytes()));
                // Keys by HMAC-SHA1 or -SHA256 (RFC 8684 §3.1).
                (0, version, 0x01 | if checksum { CHECKSUM } else { 0 })
            }
            MptcpOption::Join(Join::Syn { address, token, nonce }) => {
                put(&token.to_be_bytes());
                put(&nonce.to_be_bytes());
                (1, 0, address)
            }
            MptcpOption::Join(Join::SynAck { address, proof, nonce }) => {
                put(&proof.to_be_bytes());
                put(&nonce.to_be_bytes());
                (1, 0, address)
            }
            MptcpOption::Join(Join::Ack { proof }) => {
                proof.iter().for_each(|word| put(&word.to_be_bytes()));
                (1, 0, 0)
            }
            MptcpOption::Announcement(Announcement { id, address, port, proof }) => {
                put(&address);
                put(&port.to_be_bytes());
                proof.iter().for_each(|proof| put(&proof.to_be_bytes()));
                (3, if proof.is_some() { 0 } else { ECHO }, id)
            }
            MptcpOption::Other(_) => return (bytes, 0),
        };
        bytes[..4].copy_from_slice(&[MPTCP, length as u8, subtype << 4 | low, flags]);
        let padded = length.next_multiple_of(4);
        bytes[length..padded].fill(PADDING);
        (bytes, padded)
    }
}

/// The first MPTCP option among these bytes; none: there is none, or what is there is cut off or of no known form.
pub fn find(options: &[u8]) -> Option<MptcpOption> {
    let mut rest = options.get(..options.len().min(40))?;
    loop {
        match *rest {
            [] | [0, ..] => return None,
            [PADDING, ref more @ ..] => rest = more,
            [kind, length, ..] => {
                let option = rest.get(..usize::from(length)).filter(|option| option.len() >= 2)?;
                if kind == MPTCP {
                    return read(option);
                }
                rest = &rest[option.len()..];
            }
            [_] => return None,
        }
    }
}

fn read(option: &[u8]) -> Option<MptcpOption> {
    let word = |at: usize| Some(u32::from_be_bytes(option.get(at..at + 4)?.try_into().ok()?));
    let key = |at: usize| Some(u64::from_be_bytes(option.get(at..at + 8)?.try_into().ok()?));
    let (subtype, low) = (option.get(2)? >> 4, option[2] & 15);
    let address = option.get(3).copied();
    match (subtype, option.len()) {
        // 22 and 24 bytes: with data.
        (0, 4 | 12 | 20 | 22 | 24) => {
            let checksum = address.is_some_and(|flags| flags & CHECKSUM != 0);
            Some(MptcpOption::Capable { version: low, checksum, sender: key(4), receiver: key(12) })
        }
        (1, 12) => Some(MptcpOption::Join(Join::Syn { address: address?, token: word(4)?, nonce: word(8)? })),
        (1, 16) => {
            Some(MptcpOption::Join(Join::SynAck { address: address?, proof: key(4)?, nonce: word(12)? }))
        }
        (1, 24) => {
            let proof = [word(4)?, word(8)?, word(12)?, word(16)?, word(20)?];
            Some(MptcpOption::Join(Join::Ack { proof }))
        }
        (3, 10 | 18) if (low & ECHO != 0) == (option.len() == 10) => {
            Some(MptcpOption::Announcement(Announcement {
                id: address?,
                address: word(4)?.to_be_bytes(),
                port: u16::from_be_bytes(*option.get(8..)?.first_chunk()?),
                proof: key(10),
            }))
        }
        (0 | 1, _) => None,
        (other, _) => Some(MptcpOption::Other(other)),
    }
}

#[cfg(test)]
mod tests;
