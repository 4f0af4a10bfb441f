use super::*;
use proptest::prelude::*;

fn id(n: u64) -> FlowId {
    FlowId { group: 0, hops: 0, flow: Flow { id: Some(n), ..Flow::default() } }
}

#[test]
fn the_flow_that_was_not_seen_for_longest_goes_first() {
    let mut flows = Flows::new();
    for n in [1, 2, 3, 1, 4, 2] {
        flows.touch(id(n), 0, || (n, 100));
    }
    assert_eq!(flows.iter().map(|(_, &n)| n).collect::<Vec<_>>(), [3, 1, 4, 2]);
    let full = flows.bytes();
    assert_eq!(flows.pop_oldest().unwrap().1, 3);
    assert_eq!(flows.bytes(), full - 100 - Flows::<u64>::PLACE);
    let (place, _) = flows.touch(id(9), 0, || (9, 50));
    flows.grow(place, 50);
    assert_eq!((flows.bytes(), flows.len()), (full, 4));
    assert_eq!(flows.replace(place, (8, 20)), 9);
    assert_eq!(flows.bytes(), full - 80);
    assert_eq!(std::iter::from_fn(|| flows.pop_oldest()).map(|(_, n)| n).collect::<Vec<_>>(), [1, 4, 2, 8]);
    assert_eq!((flows.bytes(), flows.pop_oldest()), (4 * Flows::<u64>::SLOT, None));
}

proptest! {
    #[test]
    fn the_table_is_a_list_in_order_of_sight(touches in prop::collection::vec((0u64..8, any::<bool>()), 0..200)) {
        let (mut flows, mut list) = (Flows::new(), Vec::new());
        for (n, pop) in touches {
            list.retain(|&other| other != n);
            list.push(n);
            flows.touch(id(n), 0, || (n, 1));
            if pop {
                prop_assert_eq!(flows.pop_oldest().unwrap().1, list.remove(0));
            }
            prop_assert_eq!(flows.iter().map(|(_, &n)| n).collect::<Vec<_>>(), list.clone());
            prop_assert!(list.iter().all(|&n| flows.find(&id(n)).is_some()) && flows.len() == list.len());
        }
    }
}
