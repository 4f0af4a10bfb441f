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

fn expect(rounds: &[u64], events: &[Event], expected: &str) {
    let found = table(rounds, events);
    assert!(found == expected, "{found}");
}

#[test]
fn slow_start() {
    // All double each round trip; Cubic's HyStart leaves at 54 and Vegas where a queue stands, the others when 80 in flight overflow.
    // BBR doubles its rate, and drains to 2 BDP (40 segments) and what its quanta, or aggregated acknowledgements, add.
    expect(
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        &[],
        "
 round newreno   cubic     bic   vegas   dctcp     bbr    bbr3
     1      20      20      20      20      20      20      20
     2      40      40      40      40      40      40      40
     3      80      54      80      80      80      80      60
     4     160      57     160      77     160     145      60
     5      80      59     128      76      80      81      60
     6      81      62     102      75      81     145      60
     7      40      65      81      74      40      46      60
     8      40      69      64      73      40      46      60
     9      41      72      65      72      41      46      60
    10      42      76      66      71      42      48      60
",
    );
}

#[test]
fn one_loss() {
    // Half, 0.7, 0.8, half for a window-based law; version 1 of BBR does not care, version 3 keeps 70 % until it probes again.
    expect(
        &[6, 7, 8, 9, 10, 15, 20, 30, 40, 60, 80],
        &[Event::Lost(8)],
        "
 round newreno   cubic     bic   vegas   dctcp     bbr    bbr3
     6      81      62     102      75      81     145      60
     7      40      65      81      74      40      46      60
     8      20      45      64      37      20      46      42
     9      20      46      65      37      20      46      60
    10      21      46      66      38      21      48      42
    15      26      49      70      33      26      46      42
    20      31      52      74      28      31      46      42
    30      41      58      74      24      41      48      60
    40      51      61      64      24      51      46      60
    60      71      78      75      24      71      46      60
    80      48      71      80      24      48      46      60
",
    );
}

#[test]
fn many_losses() {
    // A loss every fourth round until the 76th: windows fall to a few segments, BBR's third version to 0.7 of it each time down to what
    // the path delivers in a round trip, until it probes; the first stays.
    let losses: Vec<Event> = (2..20).map(|n| Event::Lost(4 * n)).collect();
    expect(
        &[7, 8, 12, 16, 20, 30, 40, 60, 80, 100],
        &losses,
        "
 round newreno   cubic     bic   vegas   dctcp     bbr    bbr3
     7      40      65      81      74      40      46      60
     8      20      45      64      37      20      46      42
    12      11      33      53      18      11      46      29
    16       7      23      44      10       7      46      20
    20       5      17      36       6       5      46      15
    30       5      10      28       4       5      48      19
    40       3       4      17       2       3      46      23
    60       3       2      12       2       3      46      23
    80       7       4      15       5       7      46      42
   100      27      22      77      24      27      46      57
",
    );
}

#[test]
fn a_timeout() {
    // One segment, and slow start to the threshold; BBR takes its window back, for it knows the path.
    expect(
        &[7, 8, 9, 10, 12, 14, 20, 30, 40],
        &[Event::TimedOut(8)],
        "
 round newreno   cubic     bic   vegas   dctcp     bbr    bbr3
     7      40      65      81      74      40      46      60
     8       1       1       1       1       1     145      60
     9       2       2       2       2       2      46      60
    10       4       4       4       4       4      46      60
    12      16      16      16      16      16      46      60
    14      22      47      64      37      22      46      60
    20      28      63      66      33      28      48      59
    30      38      59      74      24      38      46      67
    40      48      68      72      24      48      46      60
",
    );
}

#[test]
fn an_application_that_fills_a_quarter_of_the_window() {
    // Windows stand still while they are not used; BBR's samples do not count while the application limits them.
    expect(
        &[5, 10, 20, 30, 40, 41, 45, 50, 60, 80],
        &[Event::Lost(6), Event::AppLimited(10, 40)],
        "
 round newreno   cubic     bic   vegas   dctcp     bbr    bbr3
     5      80      59     128      76      80      81      60
    10      43      42      65      38      43      46      42
    20      43      42      65      38      43      48      42
    30      43      42      65      38      43      48      53
    40      43      42      65      38      43      48      53
    41      44      43      66      39      44      48      67
    45      48      45      69      37      48      46      60
    50      53      48      73      32      53      48      60
    60      63      53      72      24      63      46      59
    80      40      67      78      24      40      46      60
",
    );
}

#[test]
fn a_path_that_becomes_twice_as_long() {
    // Vegas takes the longer path for a queue. BBR learns of it with ProbeRTT (10 s, 5 s): 2 BDP are 80 segments then.
    let longer = Event::Longer(30, Time::from_ms(20));
    expect(
        &[10, 20, 29, 30, 31, 35, 40, 60, 80, 200, 400],
        &[Event::Lost(6), longer],
        "
 round newreno   cubic     bic   vegas   dctcp     bbr    bbr3
    10      44      43      66      37      44      48      42
    20      54      48      74      27      54      46      42
    29      63      53      72      24      63      46      67
    30      64      53      74      24      64      46      87
    31      65      54      74      23      65      48      80
    35      69      56      78      19      69      46      80
    40      74      58      82      14      74      46      80
    60      94      77      99       8      94      46      80
    80      61      97      95       8      61      46      80
   200      76      89      88       8      76      46      87
   400      67      93      93       8      67      86     119
",
    );
}

#[test]
fn marks_above_five_segments_in_the_queue() {
    // A mark is worth a loss to all but DCTCP, whose cuts become small, and BBR, which does not look at marks.
    expect(
        &[1, 2, 3, 4, 6, 8, 10, 20, 30, 40, 60, 80],
        &[Event::MarksAbove(5)],
        "
 round newreno   cubic     bic   vegas   dctcp     bbr    bbr3
     1      20      20      20      20      20      20      20
     2      40      40      40      40      40      40      40
     3      20      35      40      20      29      80      60
     4      10      24      32      10      17     145      60
     6      12      17      20      12      10     145      60
     8      14      18      21      14      12      46      60
    10      16      19      23      16      14      48      60
    20      26      24      26      24      24      46      59
    30      23      21      22      24      26      48      67
    40      19      18      24      24      24      46      60
    60      25      19      22      24      25      46      60
    80      17      21      26      24      25      46      60
",
    );
}
