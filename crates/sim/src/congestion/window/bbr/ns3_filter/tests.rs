use super::*;

#[test]
fn what_it_began_with_gives_way_to_any_sample() {
    let mut filter = Ns3Filter::new(10, 500);
    assert_eq!(filter.get(), 500);
    filter.update(1, 20);
    assert_eq!(filter.get(), 20);
}

#[test]
fn the_best_lasts_for_its_window_and_the_next_is_of_a_later_quarter() {
    let mut filter = Ns3Filter::new(10, 0);
    filter.update(1, 100);
    // Rounds 2 and 3: lower, and the best is too recent for a second.
    filter.update(2, 90);
    filter.update(3, 80);
    assert_eq!(filter.best, [(1, 100); 3]);
    // More than two rounds, 10 / 4, after the second best.
    filter.update(4, 50);
    assert_eq!(filter.best, [(1, 100), (4, 50), (4, 50)]);
    // More than five rounds after the third.
    filter.update(10, 40);
    assert_eq!(filter.best, [(1, 100), (4, 50), (10, 40)]);
    filter.update(11, 30);
    assert_eq!(filter.get(), 100);
    // Ten rounds are over: the second best becomes the best, and so on.
    filter.update(12, 30);
    assert_eq!(filter.best, [(4, 50), (10, 40), (12, 30)]);
}

#[test]
fn entries_are_distinguished_by_their_rates() {
    // Second and third best have the same rate but different rounds: more than five rounds after the third,
    // the newest replaces it. Distinguished by rounds they would be two samples, and remain.
    let mut filter = Ns3Filter::new(10, 0);
    filter.best = [(1, 100), (2, 50), (4, 50)];
    filter.update(10, 40);
    assert_eq!(filter.best, [(1, 100), (2, 50), (10, 40)]);
    // The same for the best two.
    filter.best = [(1, 100), (3, 100), (4, 90)];
    filter.update(6, 10);
    assert_eq!(filter.best, [(1, 100), (6, 10), (6, 10)]);
}

#[test]
fn when_nothing_was_sampled_for_a_window_all_is_forgotten() {
    let mut filter = Ns3Filter::new(10, 0);
    filter.update(1, 100);
    filter.update(12, 7);
    assert_eq!(filter.best, [(12, 7); 3]);
}
