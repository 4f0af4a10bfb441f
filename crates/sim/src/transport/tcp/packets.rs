//! Segments as packets: what a connection sends, put into the fields of a packet, and read from them at the other end.
//!
//! A segment of data has its first byte in `seq`; an acknowledgement has the next byte expected there, the time that it
//! echoes in `sent`, the receiver's window in `aux`, and its selective blocks beside the packet.

use super::acknowledgement::Acknowledgement;
use super::connection::{Connection, Sending};
use super::receiver::{Answer, Incoming};
use super::scoreboard::BLOCKS;
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::transport::HostContext;
use crate::transport::tcp::config::{EcnEcho, TcpConfig};
use crate::units::Time;
use crate::wire::tcp::code;

impl Connection {
    /// What all packets of a connection have in common.
    pub fn header(&self, slot: u32, cx: &HostContext) -> Packet {
        Packet {
            flow: self.flow,
            src: cx.host,
            dst: self.spec.dst,
            sender: slot,
            hash: self.hash,
            group: self.spec.group,
            profile: self.spec.transport as u8,
            ..Packet::default()
        }
    }

    /// The data packet of a segment that this connection, in place `slot`, sends now.
    #[inline]
    pub fn packet(&self, slot: u32, sending: &Sending, config: &TcpConfig, cx: &HostContext) -> Packet {
        let left = self.source.size() - self.board.acknowledged();
        let end = sending.first + u64::from(sending.payload);
        let last = end == self.source.size() || self.messages.as_ref().is_some_and(|m| m.end_at(end));
        let mut flags = if last { flag::LAST } else { 0 };
        flags |= if config.ecn.is_capable(sending.again) { 0 } else { flag::NOT_CAPABLE };
        flags |= if sending.reduced { code::REDUCED << flag::CODE_SHIFT } else { 0 };
        Packet {
            seq: sending.first,
            sent: sending.sent,
            // What pFabric's queues order by.
            aux: u32::try_from(left).unwrap_or(u32::MAX),
            size: (u32::from(sending.payload) + config.header) as u16,
            payload: sending.payload,
            kind: PacketKind::Data,
            class: config.class,
            wire_class: config.class,
            flags,
            transport: cx.transport,
            ..self.header(slot, cx)
        }
    }
}

/// Sends a packet without data or acknowledgement: `header` says between whom.
pub fn signal(code: u8, header: Packet, config: &TcpConfig, cx: &mut HostContext) -> Option<PortId> {
    let port = cx.port_to(header.dst, header.hash)?;
    let size = if matches!(code, code::SYN | code::SYN_ACK) { config.syn_header } else { config.ack_header };
    let id = cx.net.packets.insert(Packet {
        kind: PacketKind::Control,
        flags: code << flag::CODE_SHIFT | flag::NOT_CAPABLE,
        size: size as u16,
        class: config.class,
        wire_class: config.class,
        transport: cx.transport,
        ..header
    });
    cx.enqueue_control(port, id);
    Some(port)
}

/// What a data packet brings its receiver.
#[inline]
pub fn segment(packet: &Packet, wait: u64, config: &TcpConfig) -> Incoming {
    Incoming {
        first: packet.seq,
        payload: packet.payload,
        sent: packet.sent,
        wait,
        last: packet.is_last(),
        marked: packet.marked() && config.ecn != EcnEcho::Off,
        reduced: packet.code() & code::REDUCED != 0,
    }
}

/// The packet that goes back to where this one came from, without content.
pub fn turned(packet: &Packet) -> Packet {
    Packet {
        sent: packet.sent,
        flow: packet.flow,
        src: packet.dst,
        dst: packet.src,
        sender: packet.sender,
        hash: flow_hash(packet.dst, packet.src, packet.flow),
        group: packet.group,
        profile: packet.profile,
        ..Packet::default()
    }
}

/// Sends an acknowledgement in the place of packet `id`; `back` says between whom (as [`turned`] gives it), `window` what the
/// receiver takes beyond what it expects.
pub fn send_answer(
    id: PacketId,
    back: Packet,
    answer: &Answer,
    window: u32,
    config: &TcpConfig,
    cx: &mut HostContext,
) -> Option<PortId> {
    let Some(port) = cx.port_to(back.dst, back.hash) else {
        cx.net.discard(id);
        return None;
    };
    write_answer(id, back, answer, window, config, cx);
    cx.enqueue_control(port, id);
    Some(port)
}

/// Writes an acknowledgement into the place of a packet; who calls puts it into the queue of a port.
pub fn write_answer(
    id: PacketId,
    back: Packet,
    answer: &Answer,
    window: u32,
    config: &TcpConfig,
    cx: &mut HostContext,
) {
    let blocks = answer.blocks();
    let sacks = if blocks > 0 { config.sack_header + 8 * blocks as u32 } else { 0 };
    let ack = &mut cx.net.packets[id];
    debug_assert!(!ack.carries);
    *ack = Packet {
        seq: answer.expected,
        sent: answer.echo,
        aux: window,
        size: (config.ack_header + sacks) as u16,
        kind: PacketKind::Ack,
        class: config.class,
        wire_class: config.class,
        flags: flag::NOT_CAPABLE | if answer.marked { flag::MARKED } else { 0 },
        transport: cx.transport,
        ..back
    };
    if blocks > 0 {
        carry_blocks(id, answer, blocks, cx);
    }
    if !cx.net.waits.is_empty() {
        cx.net.waits.set(id, answer.wait);
    }
}

/// Puts the blocks of an acknowledgement beside its packet.
#[inline(never)]
fn carry_blocks(id: PacketId, answer: &Answer, blocks: usize, cx: &mut HostContext) {
    let mut numbers = [0; 2 * BLOCKS];
    let duplicate = Some(&answer.duplicate).filter(|block| block.0 < block.1);
    let all = duplicate.into_iter().chain(&answer.blocks).take(blocks);
    for (place, block) in numbers.chunks_exact_mut(2).zip(all) {
        // What has come twice may lie below what is expected.
        place[0] = block.0.wrapping_sub(answer.expected) as u32;
        place[1] = block.1.wrapping_sub(answer.expected) as u32;
    }
    cx.net.carry_numbers(id, numbers);
}

/// What an acknowledgement says.
pub fn acknowledgement(id: PacketId, cx: &HostContext) -> Acknowledgement {
    let packet = &cx.net.packets[id];
    let mut ack = Acknowledgement {
        expected: packet.seq,
        blocks: Default::default(),
        count: 0,
        duplicate: (0, 0),
        echo: packet.sent,
        in_hosts: Time(cx.net.waits.get(id)),
        window: u64::from(packet.aux),
        marked: packet.marked(),
    };
    if packet.carries {
        let numbers = cx.net.numbers(id);
        let at = |offset: u32| packet.seq.wrapping_add_signed(i64::from(offset as i32));
        for pair in numbers.chunks_exact(2).filter(|pair| pair[0] != pair[1]) {
            ack.blocks[ack.count] = (at(pair[0]), at(pair[1]));
            ack.count += 1;
        }
        take_duplicate(&mut ack);
    }
    ack
}

/// RFC 2883 §4: a first block below what is expected, or within the second one, is what has come twice.
fn take_duplicate(ack: &mut Acknowledgement) {
    let (first, second) = (ack.blocks[0], ack.blocks[1]);
    let within = ack.count > 1 && second.0 <= first.0 && first.1 <= second.1;
    if ack.count > 0 && (first.1 <= ack.expected || within) {
        ack.duplicate = first;
        ack.blocks.rotate_left(1);
        ack.count -= 1;
        ack.blocks[ack.count] = (0, 0);
    }
}

/// How long a SYN is waited for, after so many in vain.
pub fn syn_timeout(timeouts: u32, config: &TcpConfig) -> Time {
    Time(config.rto.syn.0.saturating_mul(1 << timeouts.min(30))).min(config.rto.max)
}
