use super::*;
use crate::packet::flag;

#[test]
fn flows_whose_packets_come_in_any_order_arrive_in_theirs() {
    // Two packets, one short; one short; three.
    let packets = [
        (0, 1000, false),
        (1000, 500, true),
        (2000, 10, true),
        (3000, 1000, false),
        (4000, 1000, false),
        (5000, 1, true),
    ];
    let mut receiver = Receiver::new(true);
    let mut met = Vec::new();
    for at in [5, 2, 1, 3, 0, 4] {
        let (seq, payload, last) = packets[at];
        let packet = Packet { seq, payload, flags: if last { flag::LAST } else { 0 }, ..Packet::default() };
        let before = receiver.expected;
        receiver.place(&packet, 1000);
        let mut delivered = receiver.expected - before;
        let mut flows = 0;
        while receiver.is_complete() {
            delivered += receiver.next_flow(1000);
            flows += 1;
        }
        met.push((delivered, flows, receiver.expected));
    }
    assert_eq!(
        met,
        [(0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0), (1500 + 10 + 1000, 2, 4000), (1001, 1, 6000)]
    );
}
