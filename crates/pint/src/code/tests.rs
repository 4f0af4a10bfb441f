use super::*;
use crate::hash::Key;

fn words() -> impl Iterator<Item = Word> {
    (0..100_000).map(|packet| Key::new(1, 1).word(packet))
}

#[test]
fn every_hop_survives_with_the_same_probability() {
    for hops in [1, 2, 5, 59] {
        let mut counts = vec![0f64; hops as usize];
        words().for_each(|word| counts[survivor(word, hops) as usize - 1] += 1.0);
        let expected = 100_000.0 / f64::from(hops);
        let chi2: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // The mean of chi-square is the degrees of freedom, its variance twice that.
        let freedom = f64::from(hops - 1);
        assert!(chi2 <= freedom + 5.0 * (2.0 * freedom).sqrt(), "{hops} hops: {chi2}");
    }
}

#[test]
fn the_survivor_is_the_last_that_acted_however_it_is_found() {
    for word in words().take(2_000) {
        for hops in 1..=SHORT + 2 {
            let last = (1..=hops).rev().find(|&hop| reservoir_acts(word, hop));
            assert_eq!(Some(survivor(word, hops)), last);
        }
    }
}

#[test]
fn writers_are_the_survivor_or_the_contributors() {
    let selection = Selection::threshold(0.3);
    let code = Code::new(0.5, &[selection]).unwrap();
    for word in words().take(2_000) {
        let set = code.writers(word, 130);
        match code.layer(word) {
            Layer::Baseline => {
                let hop = survivor(word, 130) as usize - 1;
                assert_eq!(set[hop / 64], 1 << (hop % 64));
                assert_eq!(set.iter().map(|word| word.count_ones()).sum::<u32>(), 1);
            }
            Layer::Xor(_) => assert_eq!(set, selection.contributors(word, 130)),
        }
    }
}

#[test]
fn both_selections_act_with_their_probability_and_agree_with_their_sets() {
    for p in [1.0 / 8.0, 0.1, 0.363, 0.5, 1.0] {
        for selection in [Selection::threshold(p), Selection::words(p)] {
            assert!((selection.probability() - p).abs() < 1.0 / 65_536.0);
            let mut acted = 0u32;
            for word in words().take(2_000) {
                let set = selection.contributors(word, 70);
                for hop in 1..=70 {
                    let bit = set[(hop as usize - 1) / 64] >> ((hop - 1) % 64) & 1 == 1;
                    assert_eq!(bit, selection.acts(word, hop));
                    acted += u32::from(bit);
                }
                assert_eq!(set[1] >> 6, 0);
            }
            let (n, share) = (140_000.0, f64::from(acted) / 140_000.0);
            assert!((share - p).abs() <= 5.0 * (p * (1.0 - p) / n).sqrt() + 2e-5, "{p}: {share}");
        }
    }
}

#[test]
fn layers_share_the_packets() {
    let code = Code::new(0.4, &[Selection::threshold(0.1), Selection::threshold(0.3)]).unwrap();
    let mut counts = [0f64; 3];
    for word in words() {
        match code.layer(word) {
            Layer::Baseline => counts[0] += 1.0,
            Layer::Xor(selection) if selection.probability() < 0.2 => counts[1] += 1.0,
            Layer::Xor(_) => counts[2] += 1.0,
        }
    }
    for (count, share) in counts.iter().zip([0.4, 0.3, 0.3]) {
        assert!((count / 100_000.0 - share).abs() < 0.01);
    }
    assert_eq!(Code::new(1.0, &[]).unwrap().layer(Word(u64::MAX)), Layer::Baseline);
    assert!(Code::new(0.5, &[]).is_none() && Code::new(1.5, &[]).is_none());
}
