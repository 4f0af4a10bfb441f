//! A schedule in a packet: the epoch that it is of, and the flow of each of its eight timeslots.
//!
//! It travels by value, in fields that control packets do not use otherwise: eight words of 32 bits, and the number of the
//! epoch. With the packets' paths there are two words to a timeslot, and two packets to a schedule.

use super::allocation::{SLOTS_PER_EPOCH, Schedule};
use super::code;
use crate::packet::{NONE, Packet, flag};
use crate::units::Time;
use crate::workload::FlowId;

const SLOTS: usize = SLOTS_PER_EPOCH as usize;
const HALF: usize = SLOTS / 2;

/// Packs a schedule of epoch `epoch` into a packet, or with its paths into two of which one may be empty and is left out.
/// `header` says all else.
pub fn pack(epoch: u64, schedule: &Schedule, with_paths: bool, header: Packet) -> [Option<Packet>; 2] {
    let word = |value: Option<u32>| value.unwrap_or(NONE);
    let packet = |code: u8, words: [u32; SLOTS]| {
        let [a, b, c, d, e, f, g, h] = words;
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        Packet {
            flags: code << flag::CODE_SHIFT,
            seq: pair(a, b),
            sent: Time(pair(c, d)),
            flow: e,
            sender: f,
            aux: g,
            src: h,
            payload: epoch as u16,
            group: (epoch >> 16) as u16,
            dst: schedule.source,
            ..header
        }
    };
    if !with_paths {
        return [Some(packet(code::SCHEDULE, schedule.flows.map(word))), None];
    }
    let half = |code: u8, first: usize| {
        let mut words = [NONE; SLOTS];
        for place in 0..HALF {
            words[place] = word(schedule.flows[first + place]);
            words[HALF + place] = word(schedule.paths[first + place]);
        }
        words[..HALF].iter().any(|&flow| flow != NONE).then(|| packet(code, words))
    };
    [half(code::FIRST_HALF, 0), half(code::SECOND_HALF, HALF)]
}

/// The eight words of a packet.
fn words(packet: &Packet) -> [u32; SLOTS] {
    let (seq, sent) = (packet.seq, packet.sent.0);
    let [a, b, c, d] = [seq as u32, (seq >> 32) as u32, sent as u32, (sent >> 32) as u32];
    [a, b, c, d, packet.flow, packet.sender, packet.aux, packet.src]
}

/// The last bits of the epoch's number.
fn epoch_bits(packet: &Packet) -> u32 {
    u32::from(packet.group) << 16 | u32::from(packet.payload)
}

/// What a packet says: the last bits of its epoch, and the flows of its timeslots, with paths those of four and these.
pub fn content(packet: &Packet) -> (u32, [u32; SLOTS]) {
    (epoch_bits(packet), words(packet))
}

/// The timeslots that a packet gives: number in the epoch, flow, and path if that is assigned.
pub fn timeslots(packet: &Packet) -> impl Iterator<Item = (u64, FlowId, Option<u32>)> {
    let words = words(packet);
    let (slots, first) = match packet.code() {
        code::FIRST_HALF => (HALF, 0),
        code::SECOND_HALF => (HALF, HALF),
        _ => (SLOTS, 0),
    };
    let path = move |place: usize| words.get(slots + place).copied().filter(|&path| path != NONE);
    let all = (0..slots).map(move |place| ((first + place) as u64, words[place], path(place)));
    all.filter(|(_, flow, _)| *flow != NONE)
}

/// The epoch that a packet received in epoch `now` is of: the last one whose number ends in the bits that it says.
pub fn epoch(packet: &Packet, now: u64) -> u64 {
    now.saturating_sub(u64::from((now as u32).wrapping_sub(epoch_bits(packet))))
}

#[cfg(test)]
mod tests;
