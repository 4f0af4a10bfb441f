use super::*;

#[test]
fn packets_count_for_the_message_whose_bytes_they_have() {
    let message = |flow, size| {
        Message::new(flow, &FlowSpec { size, ..FlowSpec::default() }, Time::from_us(u64::from(flow)))
    };
    let mut messages = Messages::default();
    messages.push(message(1, 2_500));
    messages.push(message(4, 300));
    assert_eq!([2_500, 2_800, 300].map(|byte| messages.end_at(byte)), [true, true, false]);
    for (first, again) in [(0, false), (1_000, false), (2_000, false), (2_500, false), (1_000, true)] {
        messages.count(first, again);
    }
    assert!(messages.take(2_499).is_none() && messages.carries(4));
    let first = messages.take(2_800).map(|message| message.record(0, None));
    assert_eq!(
        first.map(|r| (r.flow, r.size, r.packets_sent, r.packets_retransmitted)),
        Some((1, 2_500, 4, 1))
    );
    let second = messages.take(2_800).map(|message| message.record(0, Some(Time(5))));
    assert_eq!(second.map(|r| (r.flow, r.start, r.packets_sent)), Some((4, Time::from_us(4), 1)));
    assert!(messages.is_empty() && messages.take(2_800).is_none());
}
