use super::*;

#[test]
fn every_bottleneck_may_have_a_number_of_hosts_of_its_own() {
    let hosts_by_hop = vec![2, 0, 1];
    let t = ParkingLot { hosts_by_hop, long_hosts: 4, ..ParkingLot::default() }.build().unwrap();
    // Four senders and receivers of the chain, two each around s0-s1, one each around s2-s3; switches
    // from 14 on.
    let switch: Vec<u32> = t.links[..14].iter().map(|link| link.b - 14).collect();
    assert_eq!(switch, [0, 0, 0, 0, 3, 3, 3, 3, 0, 0, 1, 1, 2, 3]);
}

#[test]
fn hosts_sit_where_their_flows_enter_and_leave() {
    let t = ParkingLot { bottlenecks: 2, hosts_per_hop: 1, long_hosts: 1, ..ParkingLot::default() }
        .build()
        .unwrap();
    // Hosts 0 to 5, switches 6 to 8.
    let ends: Vec<(u32, u32)> = t.links.iter().map(|l| (l.a, l.b)).collect();
    assert_eq!(ends, [(0, 6), (1, 8), (2, 6), (3, 7), (4, 7), (5, 8), (6, 7), (7, 8)]);
    assert_eq!(t.nodes[8].name, "s2");
}
