//! Keys that several balancers have, with one help for all of them.

use crate::parameters::Parameters;
use crate::units::{Bytes, Time};

pub const GAP: &str = "a pause between two packets of a flow longer than this ends a flowlet (letflow, conga: 500us; clove: 200us; hula, mp-hula: \
                       100us)";
pub const TIME_CONSTANT: &str = "tau, over which the load of a link is averaged (conga and clove: 160us; hula, mp-hula: auto, twice the probe interval; both from memory, unverified)";
const AGEING: &str =
    "conga, clove: a report of congestion older than this is ignored (10ms: from memory, unverified)";
const HEADER: &str = "conga, clove: bytes that are added to a packet between its first and its last switch (conga) \
                      or from host to host (clove); conga: 14 bits in 2B of their own, 50B with the overlay header \
                      that contains them; clove: 0B, in spare fields of that header";

/// Over which the load of a link is averaged.
pub fn time_constant(p: &mut Parameters) -> Time {
    let time = p.time("time_constant", Time::from_us(160), TIME_CONSTANT);
    check_time_constant(p, time);
    time
}

pub fn check_time_constant(p: &mut Parameters, time: Time) {
    if time == Time::ZERO {
        p.complain("time_constant", "must be greater than 0".to_string());
    }
}

/// What was not heard of for longer counts as idle.
pub fn ageing(p: &mut Parameters) -> Time {
    p.time("ageing", Time::from_ms(10), AGEING)
}

/// Bytes that a packet is longer by.
pub fn header(p: &mut Parameters, default: Bytes) -> u16 {
    let given = p.bytes("header", default, HEADER);
    if given.0 > 200 {
        p.complain("header", format!("{given} is not a valid header: expected at most 200B"));
    }
    given.0.min(200) as u16
}
