//! ECN marking at a switch port: a ramp from kmin to kmax by the queue length.
//!
//! Source: the RDMA switch of Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (DCQCN), SIGCOMM
//! 2015, §3; thresholds per port rate as in the HPCC authors' simulator.

use crate::engine::random::RandomStream;
use crate::units::{Bytes, Rate};

/// Marking thresholds for the ports of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EcnThreshold {
    pub rate: Rate,
    pub kmin: Bytes,
    pub kmax: Bytes,
    pub pmax: f64,
    pub at: MarkedAt,
}

/// Below this rate `auto` has the thresholds of this rate. A queue of some packets is needed at any rate to tell congestion from
/// a packet that waits for another; the paper of DCTCP has at 1 Gb/s what is 30 KB here (SIGCOMM 2010, §4: 20 packets).
const LOWEST_SCALED: Rate = Rate::from_gbps(10);

/// When a packet is held against the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MarkedAt {
    /// At its departure, by the length of the queue after it.
    #[default]
    Departure,
    /// At its arrival, by the length of the queue before it.
    Arrival,
}

/// Which published marking thresholds hold where none are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnDefaults {
    /// Kmin 100 KB and Kmax 400 KB per 25 Gb/s, Pmax 0.2 (DCQCN, HPCC, TIMELY).
    Ramp,
    /// Kmin = Kmax = 30 KB per 10 Gb/s, Pmax 1 (DCTCP).
    Step,
}

impl EcnDefaults {
    /// At ports of a rate, with the thresholds of 10 Gb/s where it is lower.
    pub fn auto(self, rate: Rate) -> EcnThreshold {
        EcnThreshold { rate, ..self.at(rate.max(LOWEST_SCALED)) }
    }

    /// At ports of a rate, in proportion to it.
    pub fn at(self, rate: Rate) -> EcnThreshold {
        let scaled = |bytes: u64, per_gbps: u64| {
            Bytes((u128::from(rate.0) * u128::from(bytes) / u128::from(per_gbps * 1_000_000_000)) as u64)
        };
        let (kmin, kmax, pmax) = match self {
            EcnDefaults::Ramp => (scaled(100_000, 25), scaled(400_000, 25), 0.2),
            EcnDefaults::Step => (scaled(30_000, 10), scaled(30_000, 10), 1.0),
        };
        EcnThreshold { rate, kmin, kmax, pmax, at: MarkedAt::Departure }
    }
}

/// Thresholds of one port, in bytes of the packet's class queue without the packet.
#[derive(Debug, Clone, Copy)]
pub struct EcnMarker {
    kmin: u64,
    kmax: u64,
    pmax: f64,
}

impl EcnMarker {
    /// The marker of a port of this rate, with its thresholds, or those of the nearest rate, scaled.
    pub fn for_rate(thresholds: &[EcnThreshold], rate: Rate, at: MarkedAt) -> EcnMarker {
        let nearest = thresholds.iter().min_by_key(|t| t.rate.0.abs_diff(rate.0));
        match nearest.filter(|t| t.at == at) {
            None => EcnMarker { kmin: u64::MAX, kmax: u64::MAX, pmax: 0.0 },
            Some(t) => {
                let scale =
                    |bytes: u64| (u128::from(bytes) * u128::from(rate.0) / u128::from(t.rate.0)) as u64;
                EcnMarker { kmin: scale(t.kmin.0), kmax: scale(t.kmax.0), pmax: t.pmax }
            }
        }
    }

    /// kmin, kmax and pmax.
    pub fn thresholds(&self) -> (u64, u64, f64) {
        (self.kmin, self.kmax, self.pmax)
    }

    /// It marks packets at some length of the queue.
    pub fn ever_marks(&self) -> bool {
        self.kmin < u64::MAX
    }

    #[inline(always)]
    pub fn marks(&self, queue_bytes: u64, random: &mut RandomStream) -> bool {
        queue_bytes > self.kmin && self.marks_above(queue_bytes, random)
    }

    fn marks_above(&self, queue_bytes: u64, random: &mut RandomStream) -> bool {
        if queue_bytes > self.kmax {
            return true;
        }
        let share = (queue_bytes - self.kmin) as f64 / (self.kmax - self.kmin) as f64;
        random.uniform() < self.pmax * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_of_auto_are_proportional_from_10_gbps_on_and_never_lower() {
        let of = |defaults: EcnDefaults, rate| {
            let threshold = defaults.auto(rate);
            assert_eq!(threshold.rate, rate);
            (threshold.kmin.0, threshold.kmax.0)
        };
        for rate in [Rate(100_000_000), Rate::from_gbps(1), Rate::from_gbps(10)] {
            assert_eq!(of(EcnDefaults::Step, rate), (30_000, 30_000));
            assert_eq!(of(EcnDefaults::Ramp, rate), (40_000, 160_000));
        }
        assert_eq!(of(EcnDefaults::Step, Rate::from_gbps(25)), (75_000, 75_000));
        assert_eq!(of(EcnDefaults::Ramp, Rate::from_gbps(100)), (400_000, 1_600_000));
    }

    #[test]
    fn marking_ramps_between_the_thresholds_and_is_certain_above() {
        let threshold = EcnThreshold {
            kmin: Bytes(100),
            kmax: Bytes(300),
            pmax: 0.5,
            ..EcnDefaults::Ramp.at(Rate::from_gbps(25))
        };
        let marker = EcnMarker::for_rate(&[threshold], Rate::from_gbps(25), MarkedAt::Departure);
        let mut random = RandomStream::new(1, "ecn");
        let mut share = |bytes| (0..20_000).filter(|_| marker.marks(bytes, &mut random)).count() as f64 / 2e4;
        assert_eq!(share(100), 0.0);
        assert!((share(200) - 0.25).abs() < 0.02);
        assert_eq!(share(301), 1.0);
        let faster = EcnMarker::for_rate(&[threshold], Rate::from_gbps(100), MarkedAt::Departure);
        assert_eq!((faster.kmin, faster.kmax), (400, 1200));
        let unused = EcnMarker::for_rate(&[threshold], Rate::from_gbps(100), MarkedAt::Arrival);
        assert_eq!((unused.kmin, unused.kmax), (u64::MAX, u64::MAX));
    }
}
