use super::*;

#[test]
fn two_tiers_take_all_paths_in_the_order_of_their_digits_reversed() {
    let (mut tor, mut aggs) = (RoundRobin::new(1, 0), [RoundRobin::new(1, 1), RoundRobin::new(1, 2)]);
    let mut paths = Vec::new();
    for _ in 0..8 {
        let up = tor.choose(5, 2);
        paths.push((up, aggs[up].choose(5, 2)));
    }
    assert!(paths.windows(2).all(|pair| pair[0].0 != pair[1].0), "the first digit changes every time");
    assert!(paths[..4].windows(3).all(|three| three[0] != three[2]), "the second one every second time");
    let mut all = paths[..4].to_vec();
    all.sort_unstable();
    assert_eq!(all, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert_eq!(paths[..4], paths[4..]);
}

#[test]
fn hosts_have_turns_of_their_own() {
    let mut balancer = RoundRobin::new(1, 0);
    let mut to = |dst| balancer.choose(dst, 3);
    let (a, b) = (to(1), to(2));
    assert_eq!([to(1), to(2), to(2)], [(a + 1) % 3, (b + 1) % 3, (b + 2) % 3]);
}
