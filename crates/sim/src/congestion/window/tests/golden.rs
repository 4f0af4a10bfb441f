//! Every law through every situation: its window in segments after some of its round trips, on the path of `situations.rs` (20 ms, a
//! segment a millisecond, 60 segments may wait).

use super::situations::{Event, Path, law};
use crate::congestion::window::*;

const LAWS: &[&str] = &["newreno", "cubic", "bic", "vegas", "dctcp", "bbr", "bbr3"];

fn table(rounds: &[u64], events: &[Event]) -> String {
    let last = *rounds.last().expect("a round");
    let columns: Vec<Vec<u64>> =
        LAWS.iter().map(|kind| Path::windows(&mut law(kind), last, events)).collect();
    let mut table = "\n round".to_string();
    LAWS.iter().for_each(|kind| table += &format!("{kind:>8}"));
    for round in rounds {
        table += &format!("\n{round:6}");
        columns.iter().for_each(|column| table += &format!("{:8}", column[*round as usize - 1]));
    }
    table + "\n"
}

/// Compares the table with that of this title in `golden.txt`.
fn expect(title: &str, rounds: &[u64], events: &[Event]) {
    let mut parts = include_str!("golden.txt").split("\n\n").filter_map(|part| part.split_once('\n'));
    let expected = parts.find(|(other, _)| *other == title).map_or("", |(_, rows)| rows.trim_end());
    let found = table(rounds, events);
    assert!(found.trim() == expected.trim(), "{title}\n{found}");
}

#[test]
fn slow_start() {
    // All double each round trip; Cubic's HyStart leaves at 54 and Vegas where a queue stands, the others when 80 in flight overflow.
    // BBR doubles its rate, and drains to 2 BDP (40 segments) and what its quanta, or aggregated acknowledgements, add.
    expect("slow_start", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], &[]);
}

#[test]
fn one_loss() {
    // Half, 0.7, 0.8, half for a window-based law; version 1 of BBR does not care, version 3 keeps 70 % until it probes again.
    expect("one_loss", &[6, 7, 8, 9, 10, 15, 20, 30, 40, 60, 80], &[Event::Lost(8)]);
}

#[test]
fn many_losses() {
    // A loss every fourth round until the 76th: windows fall to a few segments, BBR's third version to 0.7 of it each time down to what
    // the path delivers in a round trip, until it probes; the first stays.
    let losses: Vec<Event> = (2..20).map(|n| Event::Lost(4 * n)).collect();
    expect("many_losses", &[7, 8, 12, 16, 20, 30, 40, 60, 80, 100], &losses);
}

#[test]
fn a_timeout() {
    // One segment, and slow start to the threshold; BBR takes its window back, for it knows the path.
    expect("a_timeout", &[7, 8, 9, 10, 12, 14, 20, 30, 40], &[Event::TimedOut(8)]);
}

#[test]
fn an_application_that_fills_a_quarter_of_the_window() {
    // Windows stand still while they are not used; BBR's samples do not count while the application limits them.
    expect(
        "an_application_that_fills_a_quarter_of_the_window",
        &[5, 10, 20, 30, 40, 41, 45, 50, 60, 80],
        &[Event::Lost(6), Event::AppLimited(10, 40)],
    );
}

#[test]
fn a_path_that_becomes_twice_as_long() {
    // Vegas takes the longer path for a queue. BBR learns of it with ProbeRTT (10 s, 5 s): 2 BDP are 80 segments then.
    let longer = Event::Longer(30, Time::from_ms(20));
    expect(
        "a_path_that_becomes_twice_as_long",
        &[10, 20, 29, 30, 31, 35, 40, 60, 80, 200, 400],
        &[Event::Lost(6), longer],
    );
}

#[test]
fn marks_above_five_segments_in_the_queue() {
    // A mark is worth a loss to all but DCTCP, whose cuts become small, and BBR, which does not look at marks.
    expect(
        "marks_above_five_segments_in_the_queue",
        &[1, 2, 3, 4, 6, 8, 10, 20, 30, 40, 60, 80],
        &[Event::MarksAbove(5)],
    );
}
