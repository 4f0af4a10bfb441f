use super::*;

fn flow(number: FlowId, size: u64) -> Message {
    Message::new(number, &FlowSpec { size, ..FlowSpec::default() }, Time::ZERO)
}

#[test]
fn every_flow_begins_a_packet_and_says_so() {
    let mut stream = Stream::default();
    for (number, size) in [(1, 2500), (4, 300), (5, 1000)] {
        stream.messages.begin_packet(1000);
        stream.messages.push(flow(number, size));
    }
    let mut next = 0;
    let mut cuts = Vec::new();
    while next < stream.messages.length() {
        let cut = stream.cut(next, 0, next, false, 1000);
        cuts.push((cut.seq, cut.payload, cut.flags, cut.left));
        next = cut.seq + u64::from(cut.payload);
    }
    let expected = [
        (0, 1000, FIRST, 2500),
        (1000, 1000, 0, 2500),
        (2000, 500, flag::LAST, 2500),
        (3000, 300, FIRST | flag::LAST, 300),
        (4000, 1000, FIRST | flag::LAST, 1000),
    ];
    assert_eq!(cuts, expected);
    assert_eq!([0, 2400, 3000, 4999].map(|byte| stream.end_of_flow_at(byte)), [2500, 2500, 3300, 5000]);
}
