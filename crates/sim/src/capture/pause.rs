//! Pause and resume frames of priority flow control.
//!
//! A pause lasts until a resume frame arrives, so its duration is the maximum. A resume frame is a pause of
//! duration 0.
//!
//! Source: IEEE 802.1Qbb, IEEE 802.3 annex 31D.

use super::headers::{self, mac};
use crate::packet::{Packet, PacketKind};

/// The destination address, which bridges do not forward.
const TO: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];
const MAC_CONTROL: u16 = 0x8808;
const PRIORITY_PAUSE: [u8; 2] = [0x01, 0x01];
/// Minimum size of a frame, without its check sequence.
const FRAME: usize = 60;

/// Writes a frame from a node to its neighbour.
pub fn frame(to: &mut Vec<u8>, packet: &Packet, from: u32) {
    let start = to.len();
    let class = (packet.aux & 7) as usize;
    headers::ethernet(to, mac(from), TO, MAC_CONTROL);
    to.extend(PRIORITY_PAUSE);
    to.extend([0, 1 << class]);
    let mut times = [0; 16];
    if packet.kind == PacketKind::Pause {
        times[2 * class..2 * class + 2].fill(0xff);
    }
    to.extend(times);
    to.resize(start + FRAME, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_names_its_class_and_the_longest_time() {
        let frame_of = |kind| {
            let mut bytes = Vec::new();
            frame(&mut bytes, &Packet { kind, aux: 3, ..Packet::default() }, 0x0102);
            bytes
        };
        let pause = frame_of(PacketKind::Pause);
        assert_eq!(pause[..14], [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 1, 2, 0x88, 8]);
        assert_eq!(pause[14..26], [1, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        assert_eq!(pause.len(), 60);
        assert!(frame_of(PacketKind::Resume)[18..].iter().all(|&byte| byte == 0));
    }
}
