use super::super::situation::Still;
use super::*;
use crate::units::Rate;

const CELL: u64 = 64_000;

fn at_byte(balancer: &mut Presto, seq: u64, ports: &Still) -> usize {
    balancer.choose(&Packet { seq, hash: 6, ..Packet::default() }, &[0, 1, 2], ports)
}

#[test]
fn cells_take_the_paths_in_turn_and_the_packets_of_one_stay_together() {
    let (mut presto, ports) = (Presto::new(Bytes(CELL), 1, 1), Still::default());
    let paths = [0, 1, CELL - 1, CELL, 2 * CELL - 1, 2 * CELL, 3 * CELL, 0];
    assert_eq!(paths.map(|seq| at_byte(&mut presto, seq, &ports)), [0, 0, 0, 1, 1, 2, 0, 0]);
}

#[test]
fn the_tier_above_takes_the_next_digit() {
    let (mut presto, ports) = (Presto::new(Bytes(CELL), 3, 1), Still::default());
    // 6 and 7 and 8 divided by 3 are 2, 9 to 11 are 3: digits 2 and 0.
    let digits: Vec<usize> = (0..6).map(|cell| at_byte(&mut presto, cell * CELL, &ports)).collect();
    assert_eq!(digits, [2, 2, 2, 0, 0, 0]);
}

#[test]
fn ports_get_cells_in_proportion_to_their_rates() {
    let (mut presto, mut ports) = (Presto::new(Bytes(CELL), 1, 1), Still::default());
    ports.rates = vec![Rate::from_gbps(40), Rate::from_gbps(10), Rate::from_gbps(30)];
    let mut count = [0; 3];
    let mut longest_run = 0;
    let (mut run, mut last) = (0, 9);
    for cell in 0..80_000 {
        let at = at_byte(&mut presto, cell * CELL, &ports);
        count[at] += 1;
        run = if at == last { run + 1 } else { 1 };
        last = at;
        longest_run = longest_run.max(run);
    }
    assert_eq!(count, [40_000, 10_000, 30_000]);
    assert!(longest_run <= 2, "{longest_run} cells in a row by one port");
}
