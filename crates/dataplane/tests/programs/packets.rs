//! Random frames: most are what hosts send, the rest is fragments, extension headers, cut and broken headers, other protocols.

use super::rig::Random;
use weftline_collect::ip::Ip;

/// The sum of a header's 16-bit words, complemented.
pub fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Writes the checksum of the IPv4 header of a frame.
pub fn seal(frame: &mut [u8]) {
    let header = 14 + 4 * usize::from(frame[14] & 15);
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..header.min(frame.len())]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// The frame with another 16-bit word in its IPv4 header, and the checksum after it (RFC 1624).
pub fn with_word(mut frame: Vec<u8>, at: usize, new: u16) -> Vec<u8> {
    let word = |at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let sum = (0xffff - word(24)) + (0xffff - word(at)) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// The IP packet of an Ethernet frame whose EtherType is that of IP, if a collector reads it.
pub fn ip(frame: &[u8]) -> Option<Ip<'_>> {
    let version = match frame.get(12..14)? {
        [8, 0] => 4,
        [0x86, 0xdd] => 6,
        _ => return None,
    };
    let bytes = frame.get(14..)?;
    (bytes.first()? >> 4 == version).then(|| Ip::parse(bytes).ok()).flatten()
}

fn transport(random: &mut Random, protocol: u8) -> Vec<u8> {
    let payload = random.pick(&[0, 1, 7, 8, 16, 40, 200]) as usize;
    let mut bytes = vec![0; payload + if protocol == 6 { 20 } else { 8 }];
    random.fill(&mut bytes);
    match protocol {
        6 => bytes[12] = (bytes[12] & 15) | 0x50,
        17 => {
            let length = bytes.len() as u16;
            bytes[4..6].copy_from_slice(&length.to_be_bytes());
            if random.one_in(3) {
                bytes[6..8].fill(0);
            }
        }
        _ => {}
    }
    if random.one_in(20) {
        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
    }
    bytes
}

fn protocol(random: &mut Random) -> u8 {
    if random.one_in(10) { random.word() as u8 } else { random.pick(&[6, 6, 17, 17, 1, 47]) }
}

/// Usual hop limits, and any other.
fn hop_limit(random: &mut Random) -> u8 {
    if random.one_in(8) {
        return random.word() as u8;
    }
    random.pick(&[64u8, 128, 255]) - random.below(8) as u8
}

fn ethernet(random: &mut Random, kind: [u8; 2]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    random.fill(&mut frame);
    // To one host, since programs pass broadcasts on.
    frame[0] &= 0xfe;
    frame.extend(kind);
    frame
}

pub fn ipv4(random: &mut Random) -> Vec<u8> {
    let mut frame = ethernet(random, [8, 0]);
    let options = if random.one_in(6) { random.below(11) as usize } else { 0 };
    let protocol = protocol(random);
    let payload = transport(random, protocol);
    let mut header = vec![0; 20 + 4 * options];
    random.fill(&mut header);
    header[0] = 0x45 + options as u8;
    let total = (header.len() + payload.len()) as u16;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    // Mostly not to be fragmented.
    let place: u16 = if random.one_in(8) { random.word() as u16 } else { 0x4000 };
    header[6..8].copy_from_slice(&place.to_be_bytes());
    header[8] = hop_limit(random);
    header[9] = protocol;
    frame.extend(header);
    frame.extend(payload);
    seal(&mut frame);
    frame
}

pub fn ipv6(random: &mut Random, label: u32) -> Vec<u8> {
    let mut frame = ethernet(random, [0x86, 0xdd]);
    let last = protocol(random);
    let (mut payload, mut next) = (transport(random, last), last);
    let extensions = if random.one_in(4) { random.below(9) } else { 0 };
    for _ in 0..extensions {
        let kind = random.pick(&[0u8, 43, 44, 51, 60]);
        let units = random.below(3) as u8;
        let length = match kind {
            44 => 8,
            51 => 8 + 4 * usize::from(units),
            _ => 8 + 8 * usize::from(units),
        };
        let mut header = vec![0; length];
        random.fill(&mut header);
        (header[0], header[1]) = (next, units);
        if kind == 44 && !random.one_in(4) {
            header[2..4].fill(0);
        }
        // Mostly a list of segments, of which some may be left.
        if kind == 43 && !random.one_in(4) {
            header[2..4].copy_from_slice(&[4, random.below(3) as u8]);
        }
        header.extend(payload);
        (payload, next) = (header, kind);
    }
    let first = (6 << 28) | (random.below(256) as u32 * (1 << 20)) | (label & 0xf_ffff);
    frame.extend(first.to_be_bytes());
    frame.extend((payload.len() as u16).to_be_bytes());
    frame.extend([next, hop_limit(random)]);
    let mut addresses = [0; 32];
    random.fill(&mut addresses);
    frame.extend(addresses);
    frame.extend(payload);
    frame
}

/// An IPv6 frame with a hop-by-hop header of up to 256 bytes, the length of an IOAM trace of 15 switches.
pub fn traced(random: &mut Random, label: u32) -> Vec<u8> {
    let mut frame = ipv6(random, label);
    let units = random.below(32) as u8;
    let mut header = vec![0; 8 + 8 * usize::from(units)];
    random.fill(&mut header);
    (header[0], header[1], frame[20]) = (frame[20], units, 0);
    frame.splice(54..54, header);
    let length = (frame.len() - 54) as u16;
    frame[18..20].copy_from_slice(&length.to_be_bytes());
    frame
}

/// A label of this plan, of another one, or none.
pub fn label(random: &mut Random, nibble: u32) -> u32 {
    match random.below(8) {
        0 => 0,
        1 => random.word() as u32,
        _ => nibble << 16 | random.below(1 << 16) as u32,
    }
}

/// A frame of any kind; of IPv6 with a label of this or another plan.
pub fn any(random: &mut Random, nibble: u32) -> Vec<u8> {
    let label = label(random, nibble);
    let mut frame = if random.one_in(2) { ipv4(random) } else { ipv6(random, label) };
    match random.below(30) {
        // Cut anywhere after the link's header.
        0 => frame.truncate(15 + random.below(frame.len() as u64 - 14) as usize),
        1 => frame.resize(frame.len() + 1 + random.below(40) as usize, 0),
        // Lengths, versions, anything of the first header.
        2 => frame[14 + random.below(20) as usize] = random.word() as u8,
        3 => {
            let kind = random.pick(&[[0x81, 0], [8, 6], [0x88, 0xb5], [8, 0], [0x86, 0xdd]]);
            frame[12..14].copy_from_slice(&kind);
        }
        _ => {}
    }
    // The kernel's test run refuses an IP packet without a whole header.
    let shortest = match frame[12..14] {
        [8, 0] => 34,
        [0x86, 0xdd] => 54,
        _ => 0,
    };
    frame.resize(frame.len().max(shortest), 0);
    frame
}
