//! A schedule in a packet: the epoch that it is of, and the flow of each of its eight timeslots.
//!
//! It travels by value, in fields that control packets do not use otherwise.

use super::allocation::{SLOTS_PER_EPOCH, Schedule};
use crate::packet::{NONE, Packet};
use crate::units::Time;
use crate::workload::FlowId;

const SLOTS: usize = SLOTS_PER_EPOCH as usize;

/// Packs a schedule of epoch `epoch` into a packet; kind, code and addresses are left to its sender.
pub fn pack(epoch: u64, schedule: &Schedule) -> Packet {
    let [a, b, c, d, e, f, g, h] = schedule.flows.map(|flow| flow.unwrap_or(NONE));
    let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    Packet {
        seq: pair(a, b),
        sent: Time(pair(c, d)),
        flow: e,
        sender: f,
        aux: g,
        src: h,
        payload: epoch as u16,
        group: (epoch >> 16) as u16,
        dst: schedule.source,
        ..Packet::default()
    }
}

/// The flow of each timeslot.
pub fn flows(packet: &Packet) -> [Option<FlowId>; SLOTS] {
    let (seq, sent) = (packet.seq, packet.sent.0);
    let all = [
        seq as u32,
        (seq >> 32) as u32,
        sent as u32,
        (sent >> 32) as u32,
        packet.flow,
        packet.sender,
        packet.aux,
        packet.src,
    ];
    all.map(|flow| (flow != NONE).then_some(flow))
}

/// The epoch that a packet received in epoch `now` is of: the last one whose number ends in the bits that it says.
pub fn epoch(packet: &Packet, now: u64) -> u64 {
    let said = u32::from(packet.group) << 16 | u32::from(packet.payload);
    now.saturating_sub(u64::from((now as u32).wrapping_sub(said)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_comes_out_of_its_packet_as_it_went_in() {
        let schedule = Schedule {
            source: 7,
            flows: [Some(1), None, Some(0), Some(u32::MAX - 2), None, Some(5), Some(6), Some(1 << 31)],
        };
        for (sent_in, received_in) in
            [(0, 0), (5, 9), (0xffff_ffff, 0x1_0000_0003), (0x7_1234_5678, 0x7_1234_5678)]
        {
            let packet = pack(sent_in, &schedule);
            assert_eq!((flows(&packet), packet.dst), (schedule.flows, 7));
            assert_eq!(epoch(&packet, received_in), sent_in);
        }
    }
}
