use super::*;

const SCHEDULE: Schedule = Schedule {
    source: 7,
    flows: [Some(1), None, Some(0), Some(u32::MAX - 2), None, Some(5), Some(6), Some(1 << 31)],
    paths: [Some(3), None, None, Some(0), None, Some(9), Some(u32::MAX - 1), None],
};

#[test]
fn a_schedule_comes_out_of_its_packet_as_it_went_in() {
    for (sent_in, received_in) in
        [(0, 0), (5, 9), (0xffff_ffff, 0x1_0000_0003), (0x7_1234_5678, 0x7_1234_5678)]
    {
        let [Some(packet), None] = pack(sent_in, &SCHEDULE, false, Packet::default()) else { panic!() };
        let mut flows = [None; SLOTS];
        timeslots(&packet).for_each(|(place, flow, _)| flows[place as usize] = Some(flow));
        assert_eq!((flows, packet.dst), (SCHEDULE.flows, 7));
        assert_eq!(epoch(&packet, received_in), sent_in);
    }
}

#[test]
fn with_paths_it_comes_in_two_halves_of_which_an_empty_one_is_left_out() {
    let halves = pack(3, &SCHEDULE, true, Packet::default());
    let found: Vec<_> = halves.iter().flatten().flat_map(timeslots).collect();
    let expected: Vec<_> = (0..8)
        .filter_map(|place| Some((place as u64, SCHEDULE.flows[place]?, SCHEDULE.paths[place])))
        .collect();
    assert_eq!(found, expected);
    let mut short = SCHEDULE;
    short.flows[..4].fill(None);
    let [None, Some(second)] = pack(3, &short, true, Packet::default()) else { panic!() };
    assert_eq!(timeslots(&second).map(|(place, ..)| place).collect::<Vec<_>>(), [5, 6, 7]);
}
