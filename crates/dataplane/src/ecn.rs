//! The maps of `bpf/ecn.bpf.c` (layout: `bpf/ecn_tc.h`).

use crate::Plain;

/// Names of the counters of the map `ecn_counts`, in their order.
pub const COUNTS: [&str; 3] = ["passed", "marked", "not_capable"];

/// Thresholds above this are as if they were this.
const LONGEST: u64 = 0x7fff_ffff;

/// An entry of the map `ecn_ports`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Port {
    /// Not 0: the program works on this interface.
    pub on: u32,
    /// Not 0: queue and coin come with the packet, for tests.
    pub replay: u32,
    pub kmin: u32,
    pub kmax: u32,
    /// In units of 2^-32.
    pub pmax: u64,
}

// SAFETY: no padding, numbers only; the size is that of C.
unsafe impl Plain for Port {}
const _: () = assert!(size_of::<Port>() == 24);

impl Port {
    /// As a marker of the simulator with these thresholds (kmin, kmax, pmax) marks packets at their arrival, with coins of 32 bits. None: it
    /// marks nothing.
    pub fn of((kmin, kmax, pmax): (u64, u64, f64)) -> Option<Port> {
        let capped = |bytes: u64| bytes.min(LONGEST) as u32;
        let pmax = (pmax.clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64;
        (kmin <= LONGEST).then(|| Port { on: 1, replay: 0, kmin: capped(kmin), kmax: capped(kmax), pmax })
    }

    /// Whether a packet is marked that finds this queue, where its coin falls so.
    pub fn marks(&self, queue: u64, coin: u32) -> bool {
        let (kmin, kmax) = (u64::from(self.kmin), u64::from(self.kmax));
        queue > kmin && (queue > kmax || u64::from(coin) < self.pmax * (queue - kmin) / (kmax - kmin))
    }
}
