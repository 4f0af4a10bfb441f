use super::*;
use crate::workload::tests;

#[test]
fn hosts_are_chosen_by_ids_and_ranges_in_the_order_given() {
    tests::with_hosts(24, |cx| {
        assert_eq!(select("all", cx).unwrap().len(), 24);
        assert_eq!(select("20, 0-3", cx).unwrap(), [20, 0, 1, 2, 3]);
        assert_eq!(select("host5", cx).unwrap(), [5]);
    });
}

#[test]
fn a_wrong_choice_says_which_part_is_wrong() {
    tests::with_hosts(4, |cx| {
        let error = |text| select(text, cx).unwrap_err();
        assert_eq!(error("0-4294967295"), "unknown host 4: the topology has hosts 0 to 3");
        assert_eq!(error("1,1"), "host 1 is listed twice");
        assert_eq!(error("3-1"), "range \"3-1\" runs backwards");
        assert!(error("leaf").contains("expected host ids"));
        assert!(error("").contains("expected host ids"));
    });
}

#[test]
fn a_derangement_moves_everything_once_and_all_are_equally_likely() {
    let mut stream = RandomStream::new(1, "derangement");
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..9000 {
        let partner = derangement(4, &mut stream);
        let mut sorted = partner.clone();
        sorted.sort();
        assert_eq!(sorted, [0, 1, 2, 3]);
        assert!((0..4).all(|i| partner[i as usize] != i));
        *seen.entry(partner).or_insert(0u32) += 1;
    }
    // Four elements have nine derangements.
    assert_eq!(seen.len(), 9);
    assert!(seen.values().all(|&count| count.abs_diff(1000) < 130), "{seen:?}");
}
