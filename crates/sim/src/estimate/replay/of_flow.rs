//! What follows for one flow from its path, its losses and its first window.

use crate::topology::Path;
use crate::units::Time;

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

/// Base RTT of a path for packets of this size.
pub fn round_trip(path: &Path, packet: u64) -> Time {
    let delays = path.delay.saturating_add(path.delay);
    let hop = path.bottleneck.transmission_time(packet);
    delays.saturating_add(Time(hop.0.saturating_mul(u64::from(path.hops))))
}
