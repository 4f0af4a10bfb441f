use super::super::situation::Still;
use super::*;

fn drill(samples: u32, memory: u32) -> Drill {
    Drill::new(DrillParameters { samples, memory }, 1, "s")
}

#[test]
fn on_two_links_the_shorter_queue_always_wins_so_they_never_differ_by_more_than_a_packet() {
    let (mut balancer, mut ports) = (drill(2, 1), Still::default());
    ports.backlogs = vec![0; 8];
    let mut random = RandomStream::new(3, "sizes");
    for step in 0..2000 {
        let at = balancer.choose(&Packet::default(), &[4, 7], &ports);
        ports.backlogs[[4, 7][at]] += 100 + random.below(1400);
        assert!(ports.backlogs[4].abs_diff(ports.backlogs[7]) < 1500, "step {step}");
    }
}

#[test]
fn what_was_shortest_is_looked_at_again() {
    // One draw among many links, all full but one: once the draw has hit it, the memory holds on to it.
    let (mut balancer, mut ports) = (drill(1, 1), Still::default());
    ports.backlogs = vec![1000; 16];
    ports.backlogs[11] = 0;
    let candidates: Vec<u32> = (0..16).collect();
    let chosen: Vec<usize> =
        (0..400).map(|_| balancer.choose(&Packet::default(), &candidates, &ports)).collect();
    let hit = chosen.iter().position(|&at| at == 11).expect("found in 400 draws of 16");
    assert!(hit > 0 && chosen[hit..].iter().all(|&at| at == 11));
    // Without the memory only every 16th draw finds it.
    let (mut forgets, mut hits) = (drill(1, 0), 0);
    for _ in 0..1600 {
        hits += usize::from(forgets.choose(&Packet::default(), &candidates, &ports) == 11);
    }
    assert!((60..140).contains(&hits), "{hits}");
}

#[test]
fn two_draws_of_n_equal_queues_and_one_short_one_find_it_with_their_chance() {
    // Without memory: 2/n.
    let (mut balancer, mut ports, mut hits) = (drill(2, 0), Still::default(), 0);
    ports.backlogs = vec![1000; 8];
    ports.backlogs[3] = 0;
    let candidates: Vec<u32> = (0..8).collect();
    for _ in 0..8000 {
        hits += usize::from(balancer.choose(&Packet::default(), &candidates, &ports) == 3);
    }
    assert!((1850..2150).contains(&hits), "{hits} of 8000, expected 2000");
}
