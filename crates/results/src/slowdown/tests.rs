use super::*;
use proptest::prelude::*;

fn points(sizes: &[u64]) -> Vec<Point> {
    let point = |(i, &size)| Point { flow: i as u32, size, slowdown: 1.0 + i as f64 };
    sizes.iter().enumerate().map(point).collect()
}

#[test]
fn a_percentile_is_element_floor_of_n_times_p() {
    let mut values: Vec<f64> = (0..200).rev().map(f64::from).collect();
    let q = quantiles(&mut values).unwrap();
    assert_eq!((q.count, q.p50, q.p95, q.p99, q.mean, q.max), (200, 100.0, 190.0, 198.0, 99.5, 199.0));
    let one = quantiles(&mut [7.0]).unwrap();
    assert_eq!((one.p50, one.p99, one.mean), (7.0, 7.0, 7.0));
    assert_eq!(quantiles(&mut []), None);
}

#[test]
fn the_last_of_equal_bins_keeps_the_rest() {
    let flows = points(&[70, 10, 20, 30, 40, 50, 60]);
    let bins = by_size(&flows, Scheme::EqualCount(3));
    let read: Vec<(u64, usize)> = bins.iter().map(|b| (b.size, b.slowdown.count)).collect();
    assert_eq!(read, [(20, 2), (40, 2), (70, 3)]);
    // 50, 60 and 70 bytes have slowdowns 6, 7 and 1.
    assert_eq!((bins[2].slowdown.p50, bins[2].slowdown.max), (6.0, 7.0));
}

#[test]
fn fewer_flows_than_bins_give_a_bin_each_and_equal_sizes_share_one() {
    let read = |sizes: &[u64]| {
        by_size(&points(sizes), Scheme::EqualCount(20))
            .iter()
            .map(|b| (b.size, b.slowdown.count))
            .collect::<Vec<_>>()
    };
    assert_eq!(read(&[5, 6, 7]), [(5, 1), (6, 1), (7, 1)]);
    assert_eq!(read(&[500; 40]), [(500, 40)]);
    assert_eq!(read(&[]), []);
}

#[test]
fn decades_end_at_powers_of_ten() {
    let bins = by_size(&points(&[1, 10, 11, 100, 101, 1_000_000]), Scheme::Decades);
    let read: Vec<(u64, usize)> = bins.iter().map(|b| (b.size, b.slowdown.count)).collect();
    assert_eq!(read, [(1, 1), (10, 1), (100, 2), (1000, 1), (1_000_000, 1)]);
    assert_eq!(decade(u64::MAX), u64::MAX);
}

proptest! {
    #[test]
    fn bins_hold_every_flow_once_in_order_of_size(
        sizes in prop::collection::vec(1u64..1000, 0..300), bins in 1usize..40
    ) {
        for scheme in [Scheme::EqualCount(bins), Scheme::Decades] {
            let found = by_size(&points(&sizes), scheme);
            prop_assert_eq!(found.iter().map(|b| b.slowdown.count).sum::<usize>(), sizes.len());
            prop_assert!(found.windows(2).all(|pair| pair[0].size < pair[1].size));
            prop_assert!(found.len() <= bins || scheme == Scheme::Decades);
        }
    }
}
