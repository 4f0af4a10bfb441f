use super::super::situation::Still;
use super::*;

fn letflow(gap_us: u64) -> LetFlow {
    LetFlow::new(FlowletParameters { gap: Time::from_us(gap_us), slots: 1 << 16 }, 1, "s", 0)
}

#[test]
fn packets_closer_than_the_gap_never_part_and_others_toss_a_coin() {
    let (mut balancer, mut ports) = (letflow(100), Still::default());
    let packet = Packet { hash: 77, ..Packet::default() };
    let first = balancer.choose(&packet, &[4, 9], &ports);
    for packets in 1..1000 {
        ports.now = Time::from_us(100 * packets);
        assert_eq!(balancer.choose(&packet, &[4, 9], &ports), first);
    }
    // Over the gap each packet is a flowlet: half of them on each of two links (10 000 of them: sigma is 50), and
    // half of the time the link changes.
    let (mut second, mut changes, mut last) = (0, 0, first);
    for packets in 1..=10_000 {
        ports.now = Time::from_us(200_000 + 101 * packets);
        let at = balancer.choose(&packet, &[4, 9], &ports);
        second += at;
        changes += usize::from(at != last);
        last = at;
    }
    assert!(second.abs_diff(5000) < 200 && changes.abs_diff(5000) < 200, "{second}, {changes}");
}

#[test]
fn a_flowlet_whose_port_is_no_way_any_more_goes_elsewhere_at_once() {
    let (mut balancer, ports) = (letflow(100), Still::default());
    let packet = Packet { hash: 1, ..Packet::default() };
    let port = [2, 3][balancer.choose(&packet, &[2, 3], &ports)];
    let left: Vec<u32> = [2, 3, 5].into_iter().filter(|&p| p != port).collect();
    let moved = left[balancer.choose(&packet, &left, &ports)];
    assert_ne!(moved, port);
    assert_eq!([2, 3, 5][balancer.choose(&packet, &[2, 3, 5], &ports)], moved, "and stays there");
}
