//! What follows for one flow from its path, its losses and its first window.

use super::Wire;
use crate::topology::{HostId, Path, PathTimes};
use crate::transport::{Pace, Permission};
use crate::units::Time;

impl Wire {
    /// How long a flow of this host waits before its first packet, for the host that it asks.
    pub(in crate::estimate) fn waiting(&self, times: &PathTimes, src: HostId) -> Time {
        self.asking(times, src).map_or(Time::ZERO, |(permission, path)| {
            let there = path.map_or(Time::ZERO, |path| {
                let packet = path.bottleneck.transmission_time(self.answer);
                path.delay.saturating_add(Time(packet.0.saturating_mul(path.hops.into())))
            });
            let granted = there.saturating_add(permission.granted_after);
            granted.saturating_add(permission.sent_after.unwrap_or(there).max(there))
        })
    }

    /// Packet-hops between a host and the one from which its flow, of this number of packets, requests.
    pub(super) fn hops_of_asking(&self, times: &PathTimes, src: HostId, packets: u64) -> f64 {
        let hops = |(permission, path): (Permission, Option<Path>)| {
            permission.packets.of(packets) * path.map_or(0.0, |path| f64::from(path.hops))
        };
        self.asking(times, src).map_or(0.0, hops)
    }

    /// The path to that host; none: it is the same one.
    fn asking(&self, times: &PathTimes, src: HostId) -> Option<(Permission, Option<Path>)> {
        let permission = self.permission?;
        Some((permission, times.pair(src, permission.host).filter(|_| src != permission.host)))
    }
}

/// A packet is sent at most about this often, as a run whose flows stall ends.
pub const MOST_REPEATS: f64 = 1e4;

/// How many links a packet, those sent in its place and their acknowledgements cross until one of these
/// arrives. `loss`: shares of data and of acknowledgements that are lost on each link; `resent`: packets that
/// are sent again after each lost one; `again`, `answers`: packets and answers for each where none is lost at
/// random.
pub fn links_crossed(hops: f64, loss: [f64; 2], (resent, again, answers): (f64, f64, f64)) -> f64 {
    let [data, answer] = loss.map(|loss| (1.0 - loss).powf(hops));
    // Until it is lost: 1 + q + q^2 + ...
    let [sent, answered] = [(data, loss[0]), (answer, loss[1])]
        .map(|(arrive, loss)| if loss > 0.0 { (1.0 - arrive) / loss } else { hops });
    let sendings = (1.0 / (data * answer)).max(1.0 + resent * (1.0 - data) / data);
    sendings.min(MOST_REPEATS) * (again * sent + answers * data * answered)
}

/// Round trips that a flow of this many packets takes in addition because its window begins small: a
/// handshake, and of each round that does not fill the pipe the part in which it does not send. `pipe`:
/// packets of a round trip.
pub fn slow_start(first: u32, count: u64, pipe: u64) -> f64 {
    let (mut window, mut sent, mut idle) = (u64::from(first.max(1)), 0, 1.0);
    while window < pipe && sent + window < count {
        idle += 1.0 - window as f64 / pipe as f64;
        sent += window;
        window *= 2;
    }
    idle
}

/// Round trips that this many packets take if random losses alone limit the window, which is the mean over flows that
/// meet few losses or none. `first`: the window until the first loss; `steady`: the mean one after many.
///
/// ```text
/// d(W^2) / dn = p (V^2 - W^2)     W: window after n packets, V: the steady one, p: share of packets that are lost
/// ```
///
/// as for a law that adds a segment per round trip and halves the window at a loss. The sum of 1 / W over the packets:
pub fn rounds_under_loss(packets: u64, loss: f64, (first, steady): (f64, f64)) -> f64 {
    let packets = packets as f64;
    let left = (first * first - steady * steady) * (-loss * packets).exp();
    let last = (steady * steady + left).max(0.0).sqrt();
    let faster = ((steady + first) / (steady + last)).ln() * 2.0 / loss;
    ((packets - faster) / steady).max(0.0)
}

/// Seconds that this many packets take until the last one has been sent, if only `window` of them may be sent and
/// not acknowledged. `round`: from the first packet of a window to its acknowledgement; `packet`: of a packet at the
/// rate of the path.
pub fn seconds_of_windows(packets: u64, window: u64, round: Time, packet: Time) -> f64 {
    let window = window.max(1);
    let full = packets.saturating_sub(1) / window;
    let rest = packets - full * window;
    full as f64 * round.as_seconds() + rest as f64 * packet.as_seconds()
}

/// Seconds until an application with this pace has written or read what it must of a flow.
pub fn seconds_of_application(size: u64, pace: &Pace) -> f64 {
    size.saturating_sub(pace.ahead) as f64 * 8.0 / pace.rate.0.max(1) as f64
}

/// Base RTT of a path for packets of this size.
pub fn round_trip(path: &Path, packet: u64) -> Time {
    let delays = path.delay.saturating_add(path.delay);
    let hop = path.bottleneck.transmission_time(packet);
    delays.saturating_add(Time(hop.0.saturating_mul(u64::from(path.hops))))
}
