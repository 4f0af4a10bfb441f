use super::*;

const US: u64 = 1_000_000;

#[test]
fn by_hand_a_fifth_is_forgotten_every_tick() {
    // alpha = 205/1024 is a fifth within a thousandth; tau 160 us makes ticks of 32.03 us.
    let law = DreLaw::new(160 * US, 205, 3);
    let mut link = Dre::default();
    link.add(&law, 10_000, 0);
    assert_eq!(link.left(&law, 32 * US) >> 8, 10_000);
    assert_eq!(link.left(&law, 33 * US) >> 8, 7998, "10 000 less 2001.95");
    assert_eq!(link.left(&law, 65 * US) >> 8, 6396);
    link.add(&law, 1000, 65 * US);
    assert_eq!(link.left(&law, 66 * US) >> 8, 7396);
    assert_eq!(link.left(&law, 100_000 * US), 0, "an idle link comes to nothing");
}

#[test]
fn a_link_at_a_share_of_its_rate_reads_that_share_of_eight_steps() {
    let law = DreLaw::new(160 * US, 205, 3);
    // 1500 B take 300 ns at 40 Gb/s.
    for (every_ns, steps) in [(300u64, 6..=7u8), (600, 3..=4), (1200, 1..=2), (4800, 0..=0)] {
        let (mut link, mut now) = (Dre::default(), 0);
        while now < 2000 * US {
            now += every_ns * 1000;
            link.add(&law, 1500, now);
        }
        link.set_rate(&law, 40_000_000_000);
        let read = link.metric(&law, now);
        assert!(steps.contains(&read), "{read} at one packet in {every_ns} ns");
    }
}
