//! Situations in which controllers are tested alone.
use super::*;
pub fn flow() -> FlowContext {
    let line_rate = Rate::from_gbps(100);
    FlowContext {
        line_rate,
        base_rtt: Time::from_ns(12_240),
        window_bytes: 153_000,
        mtu: 1_000,
        int_layout: IntLayout::for_nic(line_rate),
    }
}
pub fn ack(acknowledged: u64, next_byte: u64) -> Ack<'static> {
    Ack {
        now: Time::ZERO,
        acknowledged,
        newly_acknowledged: 1_000,
        next_byte,
        marked: false,
        rtt: Time::from_us(10),
        negative: false,
        telemetry: None,
    }
}
