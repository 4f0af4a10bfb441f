//! ECN marking at a switch port: a ramp from kmin to kmax by the queue length.
//!
//! Source: the RDMA switch of Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (DCQCN), SIGCOMM
//! 2015, §3; thresholds per port rate as in the HPCC authors' simulator.

use crate::config::EcnThreshold;
use crate::engine::random::RandomStream;
use crate::units::Rate;

/// Thresholds of one port, in bytes of the packet's class queue after the packet has left it.
#[derive(Debug, Clone, Copy)]
pub struct EcnMarker {
    kmin: u64,
    kmax: u64,
    pmax: f64,
}

impl EcnMarker {
    /// The thresholds for this rate; for a rate that has none, those of the nearest rate, scaled.
    pub fn for_rate(thresholds: &[EcnThreshold], rate: Rate) -> EcnMarker {
        let nearest = thresholds.iter().min_by_key(|t| t.rate.0.abs_diff(rate.0));
        match nearest {
            None => EcnMarker { kmin: u64::MAX, kmax: u64::MAX, pmax: 0.0 },
            Some(t) => {
                let scale =
                    |bytes: u64| (u128::from(bytes) * u128::from(rate.0) / u128::from(t.rate.0)) as u64;
                EcnMarker { kmin: scale(t.kmin.0), kmax: scale(t.kmax.0), pmax: t.pmax }
            }
        }
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
    use crate::units::Bytes;

    #[test]
    fn marking_ramps_between_the_thresholds_and_is_certain_above() {
        let threshold =
            EcnThreshold { rate: Rate::from_gbps(25), kmin: Bytes(100), kmax: Bytes(300), pmax: 0.5 };
        let marker = EcnMarker::for_rate(&[threshold], Rate::from_gbps(25));
        let mut random = RandomStream::new(1, "ecn");
        let mut share = |bytes| (0..20_000).filter(|_| marker.marks(bytes, &mut random)).count() as f64 / 2e4;
        assert_eq!(share(100), 0.0);
        assert!((share(200) - 0.25).abs() < 0.02);
        assert_eq!(share(301), 1.0);
        let faster = EcnMarker::for_rate(&[threshold], Rate::from_gbps(100));
        assert_eq!((faster.kmin, faster.kmax), (400, 1200));
    }
}
