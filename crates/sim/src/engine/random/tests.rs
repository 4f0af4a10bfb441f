use super::*;

#[test]
fn streams_of_other_names_and_seeds_differ_and_repeat() {
    let draw = |seed, name| RandomStream::new(seed, name).next_u64();
    assert_eq!(draw(1, "host0"), draw(1, "host0"));
    assert_ne!(draw(1, "host0"), draw(1, "host1"));
    assert_ne!(draw(1, "host0"), draw(2, "host0"));
}

#[test]
fn exponential_gaps_have_their_mean() {
    let mut stream = RandomStream::new(7, "gaps");
    let n = 200_000;
    let mean = (0..n).map(|_| stream.exponential(3.0)).sum::<f64>() / n as f64;
    assert!((mean - 3.0).abs() < 0.03, "{mean}");
}

#[test]
fn whole_numbers_are_uniform() {
    let mut stream = RandomStream::new(7, "below");
    let mut count = [0u32; 7];
    for _ in 0..70_000 {
        count[stream.below(7) as usize] += 1;
    }
    assert!(count.iter().all(|&c| c.abs_diff(10_000) < 500), "{count:?}");
}
