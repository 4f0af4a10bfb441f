use super::*;

const KEYS: [u64; 2] = [0xc6e4_dbd3_8c69_e6ed, 0xeffb_bbc6_6711_9fcb];
const ID: u64 = 0xe9d6_2dff_e7c7_6f1d;

fn flow(port: u16) -> FlowKey {
    u64::from(port)
}

fn third_ack(tables: &mut Connections, port: u16, keys: [u64; 2], now: u64) -> Option<SubflowMark> {
    let mut options = vec![30, 20, 0x01, 0x81];
    keys.iter().for_each(|key| options.extend(key.to_be_bytes()));
    tables.see(&Segment { flow: flow(port), reset: false, syn: false, options: &options }, now)
}

fn join(tables: &mut Connections, port: u16, token: u32, now: u64) -> Option<SubflowMark> {
    let mut options = vec![30, 12, 0x10, 2];
    options.extend(token.to_be_bytes());
    options.extend([0; 4]);
    tables.see(&Segment { flow: flow(port), reset: false, syn: true, options: &options }, now)
}

fn data(tables: &mut Connections, port: u16, now: u64) -> Option<u8> {
    let segment = Segment { flow: flow(port), reset: false, syn: false, options: &[] };
    tables.see(&segment, now).map(|mark| mark.subflow)
}

#[test]
fn subflows_are_recognised_by_the_token_and_numbered_as_they_arrive() {
    let mut tables = Connections::new(100, 1000);
    assert_eq!(data(&mut tables, 1, 0), None, "plain TCP");
    assert_eq!(third_ack(&mut tables, 1, KEYS, 1), Some(SubflowMark { connection: ID, subflow: 0 }));
    assert_eq!(join(&mut tables, 2, 0xe7c7_6f1d, 2), Some(SubflowMark { connection: ID, subflow: 1 }));
    assert_eq!(join(&mut tables, 2, 0xe7c7_6f1d, 3).map(|m| m.subflow), Some(1), "sent again");
    assert_eq!(join(&mut tables, 3, 0xe9d6_2dff, 4).map(|m| m.subflow), Some(2), "joined from the other end");
    assert_eq!(join(&mut tables, 4, 0x1234_5678, 5), None, "an unknown token is plain TCP");
    assert_eq!([1, 2, 3, 4].map(|port| data(&mut tables, port, 6)), [Some(0), Some(1), Some(2), None]);
}

#[test]
fn the_seventeenth_subflow_is_the_first_again() {
    let mut tables = Connections::new(100, 1000);
    third_ack(&mut tables, 100, KEYS, 0);
    let marks: Vec<u8> =
        (1..=17).map(|port| join(&mut tables, port, 0xe7c7_6f1d, 0).unwrap().subflow).collect();
    assert_eq!(marks[..3], [1, 2, 3]);
    assert_eq!(marks[14..], [15, 0, 1]);
}

#[test]
fn a_reset_ends_a_flow_and_the_last_one_the_connection() {
    let mut tables = Connections::new(100, 1000);
    third_ack(&mut tables, 1, KEYS, 0);
    join(&mut tables, 2, 0xe7c7_6f1d, 0);
    for (port, left) in [(2, 1), (1, 0)] {
        tables.see(&Segment { flow: flow(port), reset: true, syn: false, options: &[] }, 1);
        assert_eq!(tables.flows.len(), left);
    }
    assert_eq!(join(&mut tables, 3, 0xe7c7_6f1d, 2), None);
    assert!(tables.tokens.is_empty() && tables.live.is_empty());
}

#[test]
fn silent_flows_are_forgotten_and_a_full_table_forgets_the_longest_silent() {
    let mut tables = Connections::new(2, 1000);
    third_ack(&mut tables, 1, KEYS, 0);
    join(&mut tables, 2, 0xe7c7_6f1d, 10);
    assert_eq!(data(&mut tables, 1, 20), Some(0));
    assert_eq!(join(&mut tables, 3, 0xe7c7_6f1d, 30).map(|m| m.subflow), Some(2));
    assert_eq!([1, 2, 3].map(|port| data(&mut tables, port, 40)), [Some(0), None, Some(2)]);
    assert_eq!(data(&mut tables, 1, 900), Some(0));
    assert_eq!(data(&mut tables, 3, 1041), None, "silent since 40");
    assert_eq!(data(&mut tables, 1, 1041), Some(0));
}
