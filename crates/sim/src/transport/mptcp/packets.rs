//! What packets of multipath TCP have beside those of TCP.
//!
//! The upper bits of `sender` say which subflow of its connection a packet is of: they stand for its port. Data have the last 32
//! bits of their data sequence number in `aux`, acknowledgements those of the data acknowledgement, and the window, scaled, in
//! `payload`; the whole numbers follow, because no more than a window is out. Options of the set-up travel as bytes, beside the
//! packet. Numbers begin at 0, not at what follows from a key.
//!
//! Source: RFC 8684 §3.1 to §3.3; RFC 7323 §2.2 (window scale).

use crate::engine::random::mix64;
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::transport::HostContext;
use crate::transport::tcp::TcpConfig;
use crate::wire::mptcp::{LONGEST, MptcpOption, code, find, option_bytes, subflow_of};

/// By which balancers choose for a subflow: that of the first one is that of a TCP flow.
#[inline]
pub fn subflow_hash(src: u32, dst: u32, flow: u32, subflow: u8) -> u32 {
    let hash = flow_hash(src, dst, flow);
    match subflow {
        0 => hash,
        port => (mix64(u64::from(hash) << 8 | u64::from(port)) >> 32) as u32,
    }
}

/// The packet that goes back to where this one came from, by the NIC that it came in by (its `ingress`), without content.
pub fn turned(packet: &Packet) -> Packet {
    let (_, subflow) = subflow_of(packet);
    Packet {
        hash: subflow_hash(packet.dst, packet.src, packet.flow, subflow),
        ingress: packet.ingress,
        ..crate::transport::tcp::packets::turned(packet)
    }
}

/// The whole of a number of which the last 32 bits are known, and another that is less than 2^31 away.
#[inline]
pub fn whole(low: u32, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(ahead))
}

/// By how many bits the window is shifted in the 16 bits that a header has for it: by as many as the buffer needs.
pub fn scale(config: &TcpConfig) -> u32 {
    let buffer = config.receive_buffer.min(u64::from(u32::MAX >> 2)) as u32;
    (u32::BITS - (buffer >> 16).leading_zeros()).min(14)
}

/// The window as a header has it: all of the buffer, because the application reads at once.
pub fn scaled_window(config: &TcpConfig) -> u16 {
    (config.receive_buffer >> scale(config)).min(u64::from(u16::MAX)) as u16
}

/// The window that a header tells.
pub fn window(scaled: u16, config: &TcpConfig) -> u64 {
    u64::from(scaled) << scale(config)
}

/// Sends a packet of the set-up by a port: `header` says between whom, `payload` is the scaled window.
pub fn signal(
    code: u8,
    header: Packet,
    option: Option<MptcpOption>,
    port: PortId,
    config: &TcpConfig,
    cx: &mut HostContext,
) -> PortId {
    let (bytes, length) = option.map_or(([0; LONGEST], 0), |option| option.write());
    // A header for acknowledgements has room for a data acknowledgement, in whose place the option stands.
    let plain = match code {
        code::SYN | code::SYN_ACK => config.syn_header + length as u32,
        _ => config.ack_header + (length as u32).saturating_sub(DATA_ACK),
    };
    let id = cx.net.packets.insert(Packet {
        kind: PacketKind::Control,
        flags: code << flag::CODE_SHIFT | flag::NOT_CAPABLE,
        size: plain as u16,
        class: config.class,
        wire_class: config.class,
        transport: cx.transport,
        ..header
    });
    if length > 0 {
        carry(id, &bytes, cx);
    }
    cx.enqueue_control(port, id);
    port
}

/// Bytes of a data acknowledgement.
const DATA_ACK: u32 = 12;

/// Puts the bytes of an option beside a packet.
#[inline(never)]
fn carry(id: PacketId, bytes: &[u8; LONGEST], cx: &mut HostContext) {
    let mut numbers = [0; LONGEST / 4];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
        *number = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    cx.net.carry_numbers(id, numbers);
}

/// The option of a packet of the set-up.
pub fn option_of(id: PacketId, cx: &HostContext) -> Option<MptcpOption> {
    let packet = &cx.net.packets[id];
    packet.carries.then(|| find(&option_bytes(&cx.net.numbers(id)))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_follows_from_its_end_and_one_that_is_near() {
        for near in [0u64, 5, (1 << 32) - 3, 1 << 32, 7 << 32 | 0xffff_fff0] {
            for away in [-3i64, 0, 1, 40, 1 << 30] {
                let Some(number) = near.checked_add_signed(away) else { continue };
                assert_eq!(whole(number as u32, near), number, "{near} and {away}");
            }
        }
    }

    #[test]
    fn the_first_subflow_goes_where_a_tcp_flow_goes() {
        assert_eq!(subflow_hash(1, 2, 3, 0), flow_hash(1, 2, 3));
        let hashes: std::collections::BTreeSet<u32> = (0..32).map(|id| subflow_hash(1, 2, 3, id)).collect();
        assert_eq!(hashes.len(), 32);
    }
}
