//! INT of hosts that send and read it themselves: what they put into a packet, what every switch between them adds, as
//! `bpf/int.bpf.c` does on interfaces that are not marked as leading to hosts.
//!
//! A hop gives its number, the bytes that wait at the port, the time, the port's rate, and the bytes that it has transmitted.

use crate::int::{DOMAIN, DOMAIN_RATE, DOMAIN_SENT, PORT};

/// Bytes of the UDP header, INT's shim and its MD header.
pub const HEADER: usize = 24;
/// Bytes that every hop adds.
pub const HOP: usize = 4 * HOP_WORDS;

const HOP_WORDS: usize = 7;
/// Number of the node, queue, time of departure.
pub const BITMAP: u16 = 0x9400;
pub const DOMAIN_BITMAP: u16 = DOMAIN_RATE | DOMAIN_SENT;
const ETHERNET: usize = 14;
const IP: usize = 20;
/// Where what follows IPv4 begins.
const AT: usize = ETHERNET + IP;
const UDP: u8 = 17;
/// Metadata of type MD before a whole IP payload.
const KIND: u8 = 1 << 4 | 2 << 2;
const VERSION: u8 = 2 << 4;
/// More hops than may write; no room in the packet.
const EXCEEDED: u8 = 4;
const NO_ROOM: u8 = 2;
const MOST_WORDS: usize = 255;
const MOST_QUEUE: u32 = 0xff_ffff;

/// The values of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    pub node: u32,
    pub queue: u32,
    pub time_ns: u64,
    pub rate_kbps: u32,
    /// Bytes.
    pub sent: u64,
}

impl Hop {
    fn words(&self) -> [u32; HOP_WORDS] {
        let [time, sent] = [self.time_ns, self.sent].map(|long| [(long >> 32) as u32, long as u32]);
        [self.node, self.queue.min(MOST_QUEUE), time[0], time[1], self.rate_kbps, sent[0], sent[1]]
    }

    fn of(words: [u32; HOP_WORDS]) -> Hop {
        let [node, queue, time, time_low, rate_kbps, sent, sent_low] = words;
        let long = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        Hop { node, queue, time_ns: long(time, time_low), rate_kbps, sent: long(sent, sent_low) }
    }
}

/// What stands before the `rest` bytes of a packet (of this IP protocol) that no hop has written into yet.
pub fn header(source_port: u16, rest: usize, protocol: u8, max_hops: u8) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let shorts = [
        (0, source_port),
        (2, PORT),
        (4, (HEADER + rest) as u16),
        (16, BITMAP),
        (18, DOMAIN),
        (20, DOMAIN_BITMAP),
    ];
    for (at, short) in shorts {
        header[at..at + 2].copy_from_slice(&short.to_be_bytes());
    }
    (header[8], header[9], header[11]) = (KIND, 3, protocol);
    (header[12], header[14], header[15]) = (VERSION, HOP_WORDS as u8, max_hops);
    header
}

/// The words after the header, if these bytes after IP are INT as [`header`] asks for it.
fn words(after_ip: &[u8]) -> Option<usize> {
    let header = after_ip.get(..HEADER)?;
    let asks = |at: usize, short: u16| header[at..at + 2] == short.to_be_bytes();
    let ours = asks(2, PORT) && asks(16, BITMAP) && asks(18, DOMAIN) && asks(20, DOMAIN_BITMAP);
    let shape = header[8] >> 2 == KIND >> 2 && header[12] >> 4 == VERSION >> 4;
    let words = usize::from(header[9]).checked_sub(3)?;
    (ours && shape && usize::from(header[14] & 31) == HOP_WORDS && after_ip.len() >= HEADER + 4 * words)
        .then_some(words)
}

/// A frame of IPv4 leaves a switch, which writes its values. Frames without this INT stay as they are.
pub fn push(frame: &mut Vec<u8>, hop: &Hop) {
    if frame.len() < AT || frame[12..14] != [0x08, 0x00] || frame[ETHERNET] != 0x45 || frame[23] != UDP {
        return;
    }
    let Some(words) = words(&frame[AT..]) else { return };
    if frame[AT + 15] == 0 {
        frame[AT + 12] |= EXCEEDED;
        return;
    }
    let longer =
        |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]).checked_add(HOP as u16);
    let (Some(ip), Some(udp), true) =
        (longer(frame, 16), longer(frame, AT + 4), words + 3 + HOP_WORDS <= MOST_WORDS)
    else {
        frame[AT + 12] |= NO_ROOM;
        return;
    };
    frame[AT + 4..AT + 6].copy_from_slice(&udp.to_be_bytes());
    frame[AT + 9] += HOP_WORDS as u8;
    frame[AT + 15] -= 1;
    // RFC 1624, equation 3: the header's sum with another length.
    let before = u16::from_be_bytes([frame[16], frame[17]]);
    let sum = !u16::from_be_bytes([frame[24], frame[25]]);
    let sum = u32::from(sum) + u32::from(!before) + u32::from(ip);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    frame[16..18].copy_from_slice(&ip.to_be_bytes());
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.splice(AT + HEADER..AT + HEADER, hop.words().into_iter().flat_map(u32::to_be_bytes));
}

/// What stands after IP, read.
pub struct Stack<'a> {
    /// The first hop first.
    pub hops: Vec<Hop>,
    /// Every hop has written its values.
    pub whole: bool,
    pub rest: &'a [u8],
}

/// Reads what stands after IP. None: not this INT, or not whole hops.
pub fn read(after_ip: &[u8]) -> Option<Stack<'_>> {
    let length = words(after_ip).filter(|words| words % HOP_WORDS == 0)?;
    let (stack, rest) = after_ip[HEADER..].split_at(4 * length);
    let word = |at: &[u8]| u32::from_be_bytes([at[0], at[1], at[2], at[3]]);
    let hop = |at: &[u8]| Hop::of(std::array::from_fn(|n| word(&at[4 * n..])));
    let whole = after_ip[12] & (EXCEEDED | NO_ROOM) == 0;
    Some(Stack { hops: stack.chunks(HOP).rev().map(hop).collect(), whole, rest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::int::Config;

    fn frame(rest: &[u8], max_hops: u8) -> Vec<u8> {
        let mut frame = vec![2; 12];
        let length = (IP + HEADER + rest.len()) as u16;
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = !sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.extend(header(50_000, rest.len(), UDP, max_hops));
        frame.extend(rest);
        frame
    }

    fn sum(bytes: &[u8]) -> u16 {
        let whole: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        ((whole & 0xffff) + (whole >> 16)) as u16
    }

    fn hop(n: u64) -> Hop {
        let long = n * 0x1_2345_6789;
        Hop { node: n as u32, queue: 7 * n as u32, time_ns: long, rate_kbps: 20_000, sent: !long }
    }

    #[test]
    fn hops_come_back_in_the_order_of_the_path_with_lengths_and_checksum_right() {
        for count in 0..6 {
            let mut frame = frame(b"what follows", 8);
            (0..count).for_each(|n| push(&mut frame, &hop(n)));
            let added = HOP * count as usize;
            assert_eq!(frame.len(), AT + HEADER + added + 12);
            assert_eq!(sum(&frame[14..34]), 0xffff);
            for (at, expected) in [(16, frame.len() - ETHERNET), (AT + 4, frame.len() - AT)] {
                assert_eq!(usize::from(u16::from_be_bytes([frame[at], frame[at + 1]])), expected);
            }
            let stack = read(&frame[AT..]).unwrap();
            assert_eq!(stack.hops, (0..count).map(hop).collect::<Vec<_>>());
            assert!(stack.whole && stack.rest == b"what follows");
        }
    }

    #[test]
    fn where_a_hop_could_not_write_the_stack_is_not_whole() {
        for max_hops in [3, 40] {
            let mut frame = frame(&[0; 100], max_hops);
            (0..50).for_each(|n| push(&mut frame, &hop(n)));
            let stack = read(&frame[AT..]).unwrap();
            assert_eq!(stack.hops.len(), usize::from(max_hops.min(36)));
            assert!(!stack.whole);
        }
    }

    #[test]
    fn what_is_something_else_stays_and_is_not_read() {
        let whole = frame(&[1; 40], 8);
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            push(&mut cut, &hop(1));
            if length < AT + HEADER {
                assert_eq!(cut, whole[..length]);
                assert!(read(whole[..length].get(AT..).unwrap_or_default()).is_none());
            }
        }
        for at in [12, 14, 23, AT + 2, AT + 8, AT + 9, AT + 12, AT + 14, AT + 16, AT + 18, AT + 20] {
            let mut wrong = whole.clone();
            wrong[at] ^= 0xf0;
            let before = wrong.clone();
            push(&mut wrong, &hop(1));
            assert_eq!(wrong, before, "byte {at}");
        }
    }

    #[test]
    fn a_source_asks_for_the_same_values() {
        let config = Config::new(1, BITMAP, DOMAIN_BITMAP, 8).unwrap();
        assert_eq!(usize::from(config.hop_words), HOP_WORDS);
        assert_eq!((config.bitmap, config.domain, config.domain_bitmap), (BITMAP, DOMAIN, DOMAIN_BITMAP));
    }
}
