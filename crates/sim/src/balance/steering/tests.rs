use super::*;
use crate::wire::mptcp::{Join, MptcpOption};

const KEYS: [u64; 2] = [0xc6e4_dbd3_8c69_e6ed, 0xeffb_bbc6_6711_9fcb];
/// But for the last five bits.
const ID: u64 = 0xe9d6_2dff_e7c7_6f00;

fn steering(config: SubflowParameters, tor: bool) -> Steering {
    Steering::new(&config, 2, 0, tor, 1000)
}

fn data(flow: u64) -> Segment {
    Segment { flow, reset: false, syn: false, options: None }
}

fn with(option: MptcpOption, flow: u64) -> Segment {
    let (bytes, _): ([u8; LONGEST], usize) = option.write();
    Segment { options: Some(bytes), ..data(flow) }
}

#[test]
fn a_word_brings_a_mark_to_the_other_end() {
    for subflow in 0..16 {
        let of = SubflowMark { connection: ID, subflow };
        assert_eq!(mark(word(Some(of))), Some(of));
    }
    assert_eq!((word(None), mark(0)), (0, None));
}

#[test]
fn a_rack_marks_what_leaves_it_once_it_knows_the_connection_and_nothing_else() {
    let mut tor = steering(SubflowParameters::default(), true);
    assert_eq!(tor.enters(&data(1), true, 0), (0, 0));
    let both =
        MptcpOption::Capable { version: 1, checksum: false, sender: Some(KEYS[0]), receiver: Some(KEYS[1]) };
    let (carried, longer) = tor.enters(&with(both, 1), true, 1);
    assert_eq!((mark(carried), longer), (Some(SubflowMark { connection: ID, subflow: 0 }), 9));
    assert_eq!(tor.exits(&data(1), carried, 2), -9);
    assert_eq!(tor.enters(&data(1), false, 3), (0, 0), "within the rack");
    assert_eq!(tor.enters(&data(2), true, 4), (0, 0), "another flow");
    assert_eq!(tor.known(), 1);
}

#[test]
fn the_rack_of_the_other_end_learns_from_what_comes_in() {
    let mut tor = steering(SubflowParameters::default(), true);
    let both =
        MptcpOption::Capable { version: 1, checksum: false, sender: Some(KEYS[0]), receiver: Some(KEYS[1]) };
    tor.exits(&with(both, 1), 0, 0);
    let join = MptcpOption::Join(Join::Syn { address: 1, token: 0xe7c7_6f1d, nonce: 5 });
    tor.exits(&Segment { syn: true, ..with(join, 2) }, 0, 1);
    let (carried, _) = tor.enters(&data(2), true, 2);
    assert_eq!(mark(carried), Some(SubflowMark { connection: ID, subflow: 1 }));
}

#[test]
fn disjoint_subflows_pass_over_ports_that_others_use() {
    let config = SubflowParameters { disjoint: true, ..SubflowParameters::default() };
    let mut switch = steering(config, false);
    let of = |subflow| SubflowMark { connection: 77, subflow };
    assert_eq!(switch.choose(of(0), &[5, 6], 0), 0);
    switch.uses(of(0), 5, 0);
    assert_eq!(switch.choose(of(2), &[5, 6], 10), 1, "rank 0, which subflow 0 has");
    switch.uses(of(2), 6, 10);
    assert_eq!(switch.choose(of(1), &[5, 6], 20), 1, "both are used: the rank stays");
    assert_eq!(switch.choose(of(2), &[5, 6], 1001), 0, "subflow 0 has been silent");
    assert_eq!(switch.choose(SubflowMark { connection: 78, subflow: 0 }, &[5, 6], 20), 0);
}
