use super::super::{hpcc_fat_tree::HpccFatTree, star::Star};
use super::*;
use crate::topology::TopologyParameters;
use crate::units::{Rate, Time};

const PAIR: &str = "[[node]]\nname = \"h\"\nkind = \"host\"\n[[node]]\nname = \"g\"\nkind = \"host\"\n\
    [[link]]\na = \"h\"\nb = \"g\"\nrate = \"1Gbps\"\ndelay = \"5us\"\n";

#[test]
fn a_topology_reads_back_as_it_was_written() {
    let mut odd = Star { hosts: 3, ..Star::default() }.build().unwrap();
    odd.host_labels = vec![7, 0, 100];
    odd.links[1].rate = Rate(1_234_567_891);
    odd.links[2].delay = Time(1_234_567_891);
    odd.nodes[3].tier = 3;
    for t in [odd, HpccFatTree::default().build().unwrap()] {
        assert_eq!(read(write_toml(&t).as_bytes(), "t.toml").unwrap(), (t, Vec::new()));
    }
}

#[test]
fn two_hosts_on_one_link_are_a_topology() {
    let (t, _) = read(PAIR.as_bytes(), "t.toml").unwrap();
    assert_eq!(t.links, [Link { a: 0, b: 1, rate: Rate::from_gbps(1), delay: Time::from_us(5) }]);
}

#[test]
fn each_defect_is_reported_with_its_line() {
    for (from, to, expected) in [
        (
            "kind = \"host\"",
            "kind = \"hots\"",
            "t.toml:3: unknown kind of node \"hots\": did you mean \"host\"?",
        ),
        ("kind = \"host\"", "", "t.toml:1: [[node]] without kind"),
        ("kind = \"host\"", "kind = 3", "t.toml:3: kind: expected text in quotes"),
        ("kind = \"host\"", "kind = \"host\"\ntier = 2", "t.toml:4: tier: only switches have one"),
        ("kind = \"host\"", "kind = \"host\"\nlabel = -2", "t.toml:4: label: expected a whole number from 0"),
        ("name = \"g\"", "name = \"h\"", "t.toml:5: two nodes are named \"h\""),
        ("name = \"g\"", "name = \"g g\"", "t.toml:5: \"g g\" is not a valid name of a node"),
        ("b = \"g\"", "b = \"gg\"", "t.toml:9: b: unknown node \"gg\": did you mean"),
        ("b = \"g\"", "b = \"h\"", "t.toml:7: a link joins h to itself"),
        ("1Gbps", "1", "t.toml:10: rate: \"1\" has no unit"),
        ("5us", "0us", "t.toml:7: the link between h and g has delay 0"),
        ("rate", "rat", "t.toml:10: unknown key \"rat\": did you mean \"rate\"?"),
        ("[[link]]", "[[lnk]]", "t.toml:7: unknown key \"lnk\": did you mean \"link\"?"),
        ("[[link]]", "[link]", "t.toml:7: expected [[link]] tables"),
        ("[[link]]", "[[link", "t.toml:7: "),
    ] {
        let text = PAIR.replacen(from, to, 1);
        let error = read(text.as_bytes(), "t.toml").unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error} / {expected}");
    }
}
