use super::*;

const PAIR: &str = "3 1 2\n1\n0 1 10Gbps 1000ns 0.000000\n2 1 10Gbps 2us 0\n";

fn error(text: &str) -> String {
    read(text.as_bytes(), "t.txt").unwrap_err().to_string()
}

#[test]
fn node_ids_stay_as_they_are_in_the_file() {
    let (t, warnings) = read(PAIR.as_bytes(), "t.txt").unwrap();
    assert!(warnings.is_empty());
    let names: Vec<&str> = t.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["host0", "switch1", "host2"]);
    assert_eq!(t.host_labels, [0, 2]);
    assert_eq!(t.links[1], Link { a: 2, b: 1, rate: Rate::from_gbps(10), delay: Time::from_us(2) });
}

#[test]
fn each_defect_is_reported_with_its_line() {
    for (found, expected) in [
        ("", "t.txt: the file is empty"),
        ("3 1", "t.txt:1: the file ends before the number of links: is it truncated?"),
        (
            "a 1 2",
            "t.txt:1: expected the number of nodes (the first line is `nodes switches links`), found \"a\"",
        ),
        ("3 4 2\n", "t.txt:1: 4 switches are more than the 3 nodes"),
        ("4000000000 1 1\n1\n", "t.txt:1: 4000000000 nodes cannot be connected by 1 links"),
        ("3 1 99\n1\n", "t.txt:1: 99 links cannot be in a file of 9 bytes: is it truncated?"),
    ] {
        assert_eq!(error(found), expected);
    }
    for (from, to, expected) in [
        ("\n1\n", "\n7\n", "t.txt:2: id 1 of 1 switches: unknown node 7: nodes are 0 to 2"),
        ("2 1 10", "5 1 10", "t.txt:4: link 2 of 2: unknown node 5: nodes are 0 to 2"),
        ("2us", "2", "t.txt:4: link 2 of 2: \"2\" has no unit"),
        ("2us", "2parsec", "t.txt:4: link 2 of 2: unknown unit \"parsec\""),
        ("2us 0", "2us 0.01", "t.txt:4: link 2 of 2: error rate 0.01: random loss on links is not supported"),
        ("1000ns 0.000000", "1000ns", "t.txt:3: link 1 of 2 is cut short: expected `node node rate delay"),
        ("\n2 1 10Gbps 2us 0\n", "\n2 1 10Gb", "t.txt:4: the file ends before link 2 of 2: is it truncated?"),
        ("2us 0\n", "2us 0\n0 1", "t.txt:5: \"0\" after the 2 links that the first line announces"),
        ("2 1 10", "1 1 10", "t.txt:4: link 2 of 2: joins node 1 to itself"),
        ("2 1 10Gbps", "2 1 0Gbps", "t.txt:4: link 2 of 2: rate and delay must be greater than 0"),
        ("2 1 10", "0 1 10", "t.txt: host \"host2\" has no link"),
    ] {
        let text = PAIR.replacen(from, to, 1);
        assert!(error(&text).starts_with(expected), "{}", error(&text));
    }
    let binary = read(b"3 1 2\n\xff\xfe", "t.txt").unwrap_err().to_string();
    assert!(binary.starts_with("t.txt:2: not UTF-8 text"), "{binary}");
}
