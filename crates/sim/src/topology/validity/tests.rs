use super::super::{Node, Topology, star::Star};
use super::*;
use crate::topology::TopologyParameters;
use crate::units::{Rate, Time};

fn star() -> Topology {
    Star { hosts: 3, ..Star::default() }.build().unwrap()
}
fn message(topology: &Topology) -> String {
    topology.validate().unwrap_err().to_string()
}

#[test]
fn each_defect_of_a_topology_is_named() {
    assert!(star().validate().is_ok());
    let mut t = star();
    t.links[1].rate = Rate(0);
    assert_eq!(message(&t), "the link between host1 and s0 has rate 0: it must be greater than 0");
    let mut t = star();
    t.links[1].delay = Time::ZERO;
    assert!(message(&t).contains("host1 and s0 has delay 0"));
    let mut t = star();
    t.links.pop();
    assert_eq!(message(&t), "host \"host2\" has no link");
    let mut t = star();
    t.links[0].a = 3;
    assert_eq!(message(&t), "a link joins s0 to itself");
    let mut t = star();
    t.links[0].a = 9;
    assert_eq!(message(&t), "link 0 ends at node 9, which does not exist");
    let mut t = star();
    t.nodes[1].name = "host0".into();
    assert_eq!(message(&t), "two nodes are named \"host0\"");
    t.nodes[1].name = "a.b".into();
    assert!(message(&t).starts_with("\"a.b\" is not a valid name of a node"));
}

#[test]
fn a_node_has_no_more_ports_than_can_be_numbered() {
    let of = |hosts| Star { hosts, ..Star::default() }.build().map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(of(65_535), Ok(()));
    let message = "s0 has 65536 links, and a node has at most 65535 ports";
    assert_eq!(of(65_536), Err(message.to_owned()));
}

#[test]
fn hosts_do_not_connect_what_they_touch() {
    let mut t = star();
    let switch = |name: &str| Node { name: name.into(), kind: NodeKind::Switch, tier: 1 };
    let host = Node { name: "host3".into(), kind: NodeKind::Host, tier: 0 };
    t.nodes.extend([switch("s1"), host]);
    assert_eq!(message(&t), "host \"host3\" has no link");
    let link = |a, b| Link { a, b, rate: Rate::from_gbps(1), delay: Time::from_us(1) };
    t.links.push(link(5, 4));
    assert_eq!(message(&t), "not connected: no path from host0 to host3");
    t.links.push(link(0, 4));
    assert_eq!(message(&t), "not connected: no path from host1 to host3");
    t.links.extend([link(1, 4), link(2, 4)]);
    assert!(t.validate().is_ok(), "two planes");
    t.nodes.push(switch("s2"));
    assert_eq!(message(&t), "not connected: switch \"s2\" reaches no host");
}
