//! Lanes: the GPUs and channels of a job in a host, which are spread over the NICs of the host in order.

const WHOLE: u64 = 65_535;

/// Lane `at` of `all`, as flows have it: where it is between 1 and 65 535, whatever the number of NICs; 0: none.
pub fn lane_of(at: u32, all: u32) -> u16 {
    1 + (u64::from(at) * WHOLE).div_ceil(u64::from(all.max(1))).min(WHOLE - 1) as u16
}

/// The NIC of a lane among `nics`; `None` of 0.
pub fn nic_of(lane: u16, nics: u32) -> Option<u32> {
    Some((u64::from(lane.checked_sub(1)?) * u64::from(nics) / WHOLE) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_spread_over_nics_in_order() {
        assert_eq!(nic_of(0, 4), None);
        for all in 1..=64 {
            for nics in 1..=64 {
                for at in 0..all {
                    assert_eq!(nic_of(lane_of(at, all), nics), Some(at * nics / all));
                }
            }
        }
    }
}
