use super::*;

#[test]
fn a_flowlet_lasts_while_no_pause_is_longer_than_the_gap() {
    let mut table = FlowletTable::new(4, 100);
    let first = table.find(7, 1000);
    assert_eq!((first.port, first.before), (None, None));
    table.put(first, 3, 1000);
    // Every packet begins the pause anew: 1100, 1200 and 1300 are each 100 behind the one before.
    for now in [1100, 1200, 1300] {
        assert_eq!(table.find(7, now).port, Some(3));
    }
    let next = table.find(7, 1401);
    assert_eq!((next.port, next.before), (None, Some(3)));
    // What was only asked for does not begin a flowlet.
    assert_eq!(table.find(7, 1401).port, None);
    table.put(next, 2, 1401);
    assert_eq!(table.find(7, 1402).port, Some(2));
    assert_eq!((table.begun, table.moved), (2, 1));
}

#[test]
fn flows_that_share_a_slot_share_their_flowlet() {
    let mut table = FlowletTable::new(2, 100);
    let low = table.find(0x1000_0000, 0);
    table.put(low, 5, 0);
    assert_eq!(table.find(0x7fff_ffff, 50).port, Some(5), "the lower half of all hashes is slot 0");
    assert_eq!(table.find(0x8000_0000, 50).port, None, "the upper half is slot 1");
}

#[test]
fn collisions_are_as_many_as_chance_has_them() {
    // k flows in n slots occupy n (1 - (1 - 1/n)^k) of them: 1000 in 1024, 638.
    let mut table = FlowletTable::new(1024, 100);
    for flow in 0..1000u64 {
        let hash = (crate::engine::random::mix64(flow) >> 32) as u32;
        let flowlet = table.find(hash, 0);
        if flowlet.port.is_none() {
            table.put(flowlet, 0, 0);
        }
    }
    let expected = 1024.0 * (1.0 - (1.0 - 1.0 / 1024.0_f64).powi(1000));
    let occupied = table.begun;
    assert!((occupied as f64 - expected).abs() < 40.0, "{occupied} slots, expected {expected:.0}");
}
