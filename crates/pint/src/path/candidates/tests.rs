use super::*;
use proptest::prelude::*;

#[test]
fn one_hop_is_known_when_one_id_is_left() {
    let mut hop = Candidates::All;
    assert_eq!(hop.retain(100, |_| true), Left::Same);
    assert_eq!((hop.retain(100, |id| id % 10 == 3), hop.listed().unwrap().len()), (Left::Fewer, 10));
    assert_eq!(hop.retain(100, |id| id < 60), Left::Fewer);
    assert_eq!(hop.listed(), Some(&[3, 13, 23, 33, 43, 53][..]));
    assert_eq!((hop.retain(100, |id| id > 50), &hop), (Left::Known, &Candidates::One(53)));
    assert_eq!(hop.retain(100, |id| id == 53), Left::Same);
    assert_eq!(hop.retain(100, |_| false), Left::Nothing);
}

#[test]
fn a_network_of_one_switch_is_known_at_once() {
    let mut hop = Candidates::All;
    assert_eq!((hop.retain(1, |_| true), hop), (Left::Known, Candidates::One(0)));
}

proptest! {
    #[test]
    fn candidates_are_those_that_passed_every_test(total in 1usize..300, tests: Vec<u64>) {
        let mut hop = Candidates::All;
        let mut expected: Vec<u32> = (0..total as u32).collect();
        for test in tests {
            let stays = |id: u32| crate::hash::mix(test ^ u64::from(id)) % 4 != 0;
            expected.retain(|&id| stays(id));
            let left = hop.retain(total, stays);
            prop_assert_eq!(left == Left::Nothing, expected.is_empty());
            if expected.is_empty() {
                break;
            }
            if let Some(list) = hop.listed() {
                prop_assert_eq!(list, &expected[..]);
                prop_assert_eq!(list.len() == 1, matches!(hop, Candidates::One(_)));
            }
        }
    }
}
