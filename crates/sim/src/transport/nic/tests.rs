//! Tests of `nic`.

use super::*;

fn nic(gates: &[(u64, bool, bool)]) -> Nic {
    let mut nic = Nic::default();
    for (slot, &(due, open, finished)) in gates.iter().enumerate() {
        let gate = nic.add(slot as u32, Time(due), 3);
        nic.update(gate, true, open, finished);
    }
    nic
}

fn choose(nic: &mut Nic, now: u64) -> Choice {
    nic.choose(Time(now), 0, &Rules::none(), &mut (), |_, _| true, |_, _, _| {})
}

#[test]
fn open_pairs_take_turns_and_paced_ones_wait() {
    let mut nic = nic(&[(0, true, false), (50, true, false), (0, true, false)]);
    nic.last = 2;
    assert_eq!(choose(&mut nic, 10), Choice::Send(0));
    assert_eq!(choose(&mut nic, 10), Choice::Send(2));
    assert_eq!(choose(&mut nic, 60), Choice::Send(0));
    assert_eq!(choose(&mut nic, 60), Choice::Send(1));
}

#[test]
fn finished_pairs_are_removed_from_the_first_one_met_and_the_choice_follows() {
    let mut nic = nic(&[(0, false, true), (0, false, false), (0, false, true), (0, true, false)]);
    let mut moves = Vec::new();
    let moved = |moves: &mut Vec<_>, slot, gate| moves.push((slot, gate));
    let choice = nic.choose(Time(1), 0, &Rules::none(), &mut moves, |_, _| true, moved);
    assert_eq!(choice, Choice::Send(3));
    // Gate 2 was met first, then 0 lay behind the wrap and was not met: the search began at 1.
    assert_eq!(moves, [(3, 2)]);
    assert_eq!(nic.gates.len(), 3);
    assert_eq!(nic.last, 2);
}

#[test]
fn a_pair_that_is_taken_out_loses_its_gate_and_the_turns_continue_after_it() {
    let mut nic = nic(&[(0, true, false), (0, true, false), (0, true, false), (0, true, false)]);
    assert_eq!(choose(&mut nic, 1), Choice::Send(1));
    let mut moves = Vec::new();
    nic.take_out(1, |slot, gate| moves.push((slot, gate)));
    assert_eq!((moves, nic.open), (vec![(2, 1), (3, 2)], 3));
    assert_eq!([1, 1, 1].map(|now| choose(&mut nic, now)), [2, 3, 0].map(Choice::Send));
    (0..3).rev().for_each(|gate| nic.take_out(gate, |_, _| {}));
    assert_eq!((choose(&mut nic, 1), nic.open), (Choice::Nothing, 0));
}

#[test]
fn the_authors_wait_also_for_pairs_that_their_window_holds_back() {
    let mut nic = nic(&[(30, false, false), (40, true, false)]);
    assert_eq!(choose(&mut nic, 10), Choice::WaitUntil(Time(40)));
    let choice = nic.choose(Time(10), 0, &Rules::hpcc_ns3(), &mut (), |_, _| true, |_, _, _| {});
    assert_eq!(choice, Choice::WaitUntil(Time(30)));
}

#[test]
fn a_port_passes_over_pairs_that_may_not_leave_by_it_and_does_not_wait_for_them() {
    let mut nic = nic(&[(0, true, false), (0, true, false), (40, true, false)]);
    let mut by =
        |may: fn(&(), u32) -> bool| nic.choose(Time(10), 0, &Rules::none(), &mut (), may, |_, _, _| {});
    assert_eq!(by(|_, slot| slot == 1), Choice::Send(1));
    assert_eq!(by(|_, slot| slot == 1), Choice::Send(1));
    assert_eq!(by(|_, slot| slot == 2), Choice::WaitUntil(Time(40)));
    assert_eq!(by(|_, _| false), Choice::Nothing);
}
