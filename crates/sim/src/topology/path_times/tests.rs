use super::super::{NextHopOrder, star::Star};
use super::*;
use crate::topology::TopologyParameters;

#[test]
fn a_hop_is_rounded_up_to_picoseconds_or_down_to_nanoseconds() {
    let mut t = Star { hosts: 2, ..Star::default() }.build().unwrap();
    // 8000 bits at 3 Gb/s: 2666.67 ns.
    t.links[1].rate = Rate::from_gbps(3);
    let routes = Routes::compute(&t, &|_| true, NextHopOrder::ByPort);
    let times = PathTimes::new(&t, &routes);
    assert_eq!(times.base_rtt(0, 1, 1000, true), Some(Time::from_ns(4000 + 80 + 2666)));
    assert_eq!(times.base_rtt(0, 1, 1000, false), Some(Time(4_000_000 + 80_000 + 2_666_667)));
    let path = times.pair(1, 0).unwrap();
    assert_eq!((path.hops, path.bottleneck, path.first), (2, Rate::from_gbps(3), Rate::from_gbps(3)));
    assert_eq!(times.pair(1, 1), None);
}
