//! States of the draft's form by hand.

use super::*;
use crate::congestion::window::RateSample;
use crate::congestion::window::tests::situations::{MSS, acked, flow, published, window};

/// Ten segments in a round trip of 10 ms.
fn ack(now: Time) -> Acked {
    let rate = RateSample { delivered: 10 * MSS, interval: Time::from_ms(10), ..RateSample::default() };
    let rtt = Some(Time::from_ms(10));
    Acked { now, rtt, delivered: 10 * MSS, delivered_ever: 10 * MSS, rate, ..acked(10) }
}

#[test]
fn a_flow_that_restarts_from_idle_does_not_probe_for_the_round_trip_time() {
    for idles in [false, true] {
        let (mut law, mut window) = (published::<BbrParameters>().start(&flow()), window());
        law.on_start(Time::ZERO, None, &mut window);
        law.on_ack(&ack(Time::from_ms(10)), &mut window);
        if idles {
            law.on_resume(Time::from_ms(11_000));
        }
        law.on_ack(&ack(Time::from_ms(11_010)), &mut window);
        assert_eq!(law.mode == Mode::ProbeRtt, !idles);
        // The sample is of an empty path, and as good as one of ProbeRTT.
        assert_eq!((law.model.rtprop, law.model.stamp), (Time::from_ms(10), Time::from_ms(11_010)));
        law.on_ack(&ack(Time::from_ms(11_020)), &mut window);
        assert_eq!(law.mode == Mode::ProbeRtt, !idles);
    }
}

#[test]
fn a_flow_that_restarts_in_probe_bw_begins_at_the_bandwidth() {
    let (mut law, mut window) = (published::<BbrParameters>().start(&flow()), window());
    law.on_start(Time::ZERO, None, &mut window);
    law.on_ack(&ack(Time::from_ms(10)), &mut window);
    for gain in CYCLE {
        (law.mode, law.pacing_gain) = (Mode::ProbeBw, gain);
        window.pacing = None;
        law.on_restart(Time::from_ms(300), &mut window);
        let bandwidth = u128::from(law.model.bandwidth.get());
        let on_wire = bandwidth * u128::from(law.packet) / u128::from(window.mss);
        assert_eq!(window.pacing, Some(Rate(on_wire as u64)));
    }
}
