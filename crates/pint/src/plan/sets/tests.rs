use super::*;
use proptest::prelude::*;

fn demand(bits: u32, frequency: f64) -> Demand {
    Demand { bits, units: (frequency * 65_536.0) as u32 }
}

fn served(choice: &Choice, query: usize) -> u32 {
    choice.sets.iter().filter(|(members, _)| members >> query & 1 == 1).map(|(_, share)| share).sum()
}

#[test]
fn the_papers_three_queries_get_the_papers_plan() {
    // Spec §2.6: path and latency on 15/16, path and congestion control on 1/16, 8 bits each of 16.
    let choice = choose(16, &[demand(8, 1.0), demand(8, 0.9375), demand(8, 0.0625)]).unwrap();
    assert_eq!(choice.sets, [(0b011, 61_440), (0b101, 4_096)]);
}

#[test]
fn what_fits_at_once_travels_at_once() {
    let choice = choose(16, &[demand(8, 0.1), demand(4, 0.2), demand(4, 0.3)]).unwrap();
    assert_eq!(choice.sets, [(0b111, 65_536)]);
}

#[test]
fn spare_packets_are_shared_in_the_ratio_of_the_demands() {
    let choice = choose(8, &[demand(8, 0.25), demand(8, 0.125)]).unwrap();
    // 2 : 1 of 65 536.
    assert_eq!(choice.sets, [(0b01, 43_691), (0b10, 21_845)]);
}

#[test]
fn a_query_that_needs_no_room_of_others_gets_all_packets() {
    // Two of 8 bits share the bits next to the one of 8; the fourth, of 0 competition, is on every packet.
    let choice = choose(10, &[demand(8, 0.5), demand(8, 0.5), demand(2, 0.1)]).unwrap();
    assert_eq!(served(&choice, 2), 65_536);
    assert_eq!((served(&choice, 0), served(&choice, 1)), (32_768, 32_768));
}

#[test]
fn an_impossible_wish_is_reported_with_what_would_help() {
    // Three of 8 bits, two at a time: ratios sum to 2 of 2.5.
    let refused = choose(16, &[demand(8, 1.0), demand(8, 1.0), demand(8, 0.5)]).unwrap_err();
    // Query 0 and 1 at 1 leave nothing for 2: at scale s, s + s + s/2 = 2, s = 0.8.
    assert!((refused.scale - 0.8).abs() < 1e-6, "{refused:?}");
    let largest: Vec<f64> = refused.largest.iter().map(|f| f.unwrap_or(-1.0)).collect();
    assert!((largest[0] - 0.5).abs() < 1e-6 && (largest[1] - 0.5).abs() < 1e-6, "{largest:?}");
    assert!(largest[2] < 0.0 || largest[2] < 1e-6);
    assert_eq!(refused.bits, Some(24));
}

#[test]
fn sixteen_queries_of_one_size_are_planned_in_time() {
    let choice = choose(64, &[demand(8, 0.5); 16]).unwrap();
    assert!((0..16).all(|query| served(&choice, query) >= 32_768), "{choice:?}");
}

/// A digest, sizes of queries, and packed sets with shares: demands that some plan meets.
fn feasible() -> impl Strategy<Value = (u32, Vec<Demand>)> {
    (2u32..=9, prop::collection::vec(1u32..=32, 1..=2), 1u32..=64).prop_flat_map(|(queries, _, bits)| {
        let sizes = prop::collection::vec(1..=bits, queries as usize);
        let orders =
            prop::collection::vec((prop::collection::vec(any::<u32>(), queries as usize), 1u32..1000), 1..5);
        (Just(bits), sizes, orders).prop_map(|(bits, sizes, orders)| {
            let total: u32 = orders.iter().map(|(_, share)| share).sum();
            let mut units = vec![0u32; sizes.len()];
            for (order, share) in &orders {
                let mut queue: Vec<usize> = (0..sizes.len()).collect();
                queue.sort_by_key(|&i| order[i]);
                let mut room = bits;
                for i in queue.into_iter().filter(|&i| order[i] % 3 != 0) {
                    if sizes[i] <= room {
                        room -= sizes[i];
                        units[i] += (u64::from(*share) * 65_536 / u64::from(total)) as u32;
                    }
                }
            }
            let demands = sizes.iter().zip(units).map(|(&bits, units)| Demand { bits, units: units.max(1) });
            (bits, demands.collect())
        })
    })
}

proptest! {
    #[test]
    fn demands_that_can_be_met_are_met((bits, demands) in feasible()) {
        // A demand of one unit where none was given may be one too many; such a case is not counted.
        if let Ok(choice) = choose(bits, &demands) {
            prop_assert_eq!(choice.sets.iter().map(|(_, share)| share).sum::<u32>(), SHARES);
            prop_assert!(choice.sets.len() <= MAX_SETS);
            for (set, _) in &choice.sets {
                let width: u32 = (0..demands.len()).filter(|i| set >> i & 1 == 1).map(|i| demands[i].bits).sum();
                prop_assert!(width <= bits);
            }
            for (i, demand) in demands.iter().enumerate() {
                prop_assert!(served(&choice, i) + 8 >= demand.units, "{} {:?}", i, choice);
            }
            prop_assert_eq!(&choose(bits, &demands), &Ok(choice));
        } else {
            prop_assert!(demands.iter().any(|demand| demand.units == 1));
        }
    }
}
