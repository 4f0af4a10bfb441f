use super::*;

fn balance(hops: &[u64], critical_path: u64) -> Balance {
    let work = |&hops: &u64| RegionWork { events: 2 * hops, packet_hops: hops, crossings: hops / 10 };
    let regions: Vec<RegionWork> = hops.iter().map(work).collect();
    Balance {
        threads: 2,
        lookahead: Time::from_us(1),
        windows: 7,
        regions,
        critical_path,
        share_alone: 0.0,
        threads_ratio: None,
    }
}

#[test]
fn the_busiest_region_is_compared_with_the_mean() {
    assert_eq!(balance(&[100, 100], 200).busiest_over_mean(), 1.0);
    assert_eq!(balance(&[300, 100], 600).busiest_over_mean(), 1.5);
    assert_eq!(balance(&[0, 0], 0).busiest_over_mean(), 1.0);
}

#[test]
fn what_could_be_gained_counts_the_busiest_region_of_each_window() {
    // Regions that do equal work, but in turns, gain nothing.
    assert_eq!(balance(&[100, 100], 400).max_speedup(), 1.0);
    assert_eq!(balance(&[100, 100], 200).max_speedup(), 2.0);
    assert_eq!(balance(&[0], 0).max_speedup(), 1.0);
    assert_eq!(balance(&[100, 100], 200).crossing_share(), 0.1);
}
