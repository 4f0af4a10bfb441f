use super::*;
use crate::units::{Rate, Time};

const TWO: &str = "# a comment\ngraph [\n  label \"x\"\n  node [ id 0 label \"A b\" Latitude 0 Longitude 0 ]\n  \
    node [ id 1 label \"B&#233;\" Latitude 0.0 Longitude -90.0 ]\n  edge [ source 0 target 1 LinkSpeedRaw 1e10 ]\n]\n";

fn zoo(text: &str) -> Result<(Topology, Vec<String>), TopologyError> {
    read(text.as_bytes(), "z.gml", &ZooOptions::default())
}
fn error(text: &str) -> String {
    zoo(text).unwrap_err().to_string()
}

#[test]
fn places_become_switches_with_a_host_each() {
    let (t, warnings) = zoo(TWO).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let names: Vec<&str> = t.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["host0", "host1", "A-b", "Bé"]);
    let ends: Vec<(u32, u32)> = t.links.iter().map(|l| (l.a, l.b)).collect();
    assert_eq!(ends, [(0, 2), (1, 3), (2, 3)]);
    assert_eq!((t.links[2].rate, t.links[2].delay), (Rate::from_gbps(10), Time::from_ns(50_037_717)));
}

#[test]
fn duplicates_and_loops_are_dropped_with_a_warning() {
    let more = "edge [ source 1 target 0 LinkSpeedRaw 4e10 ]\nedge [ source 1 target 1 ]\n]";
    let text = TWO.trim_end().trim_end_matches(']').to_string() + more;
    let (t, warnings) = zoo(&text.replacen("Latitude 0 ", "", 1)).unwrap();
    assert_eq!(t.links.len(), 3);
    assert_eq!(warnings[0], "1 self-loop(s) dropped (first: line 8, Bé - Bé)");
    let expected = "1 duplicate edge(s) dropped, as a link has the rate of its first edge (first: line 7, Bé - A-b: its link keeps \
                    10Gbps, without these 40Gbps)";
    assert_eq!(warnings[1], expected);
    assert!(warnings[2].contains("default_delay = 1ms (first: line 6, A-b - Bé)"), "{}", warnings[2]);
}

#[test]
fn links_have_the_speed_in_its_units_or_the_default_rate_with_a_warning() {
    let speed = |text: &str| {
        let (t, warnings) = zoo(&TWO.replacen("LinkSpeedRaw 1e10", text, 1)).unwrap();
        (t.links[2].rate, warnings)
    };
    assert_eq!(
        speed("LinkSpeed \"2.5\" LinkSpeedUnits \"G\"").0,
        Rate(2_500_000_000),
        "a text, as the Zoo has it"
    );
    assert_eq!(speed("LinkSpeed 155 LinkSpeedUnits \"Mbps\"").0, Rate::from_mbps(155));
    assert_eq!(speed("LinkSpeed 1 LinkSpeedUnits \"G\" LinkSpeedRaw 4e10").0, Rate::from_gbps(40));
    let expected = "1 link(s) without LinkSpeedRaw, or LinkSpeed with LinkSpeedUnits, have default_rate = \
                    100Gbps (first: line 6, A-b - Bé)";
    for text in [
        "",
        "LinkSpeed 40",
        "LinkSpeed \"10-40\" LinkSpeedUnits \"G\"",
        "LinkSpeed 4 LinkSpeedUnits \"GB/s\"",
    ] {
        assert_eq!(speed(text), (Rate::from_gbps(100), vec![expected.to_string()]), "{text}");
    }
}

#[test]
fn no_warning_names_a_default_that_the_scenario_states() {
    let text = TWO.replacen("LinkSpeedRaw 1e10", "", 1).replacen("Latitude 0 ", "", 1);
    let warnings = |states_rate, states_delay| {
        let options = ZooOptions { states_rate, states_delay, ..ZooOptions::default() };
        read(text.as_bytes(), "z.gml", &options).unwrap().1
    };
    let [delay, rate] = &warnings(false, false)[..] else { panic!("two warnings") };
    assert!(delay.contains("default_delay") && rate.contains("default_rate"));
    assert_eq!(warnings(true, false), std::slice::from_ref(delay));
    assert_eq!(warnings(false, true), std::slice::from_ref(rate));
}

#[test]
fn a_node_that_is_called_a_host_is_refused() {
    let text = TWO.replacen("label \"A b\"", "label \"A b\"\nkind \"Host\"", 1);
    let expected =
        "z.gml:5: kind \"Host\" of a node: each node of GML and GraphML is a switch, with hosts of its own";
    assert!(error(&text).starts_with(expected), "{}", error(&text));
    assert!(zoo(&text.replace("Host", "switch")).is_ok());
}

#[test]
fn attributes_that_look_like_rates_or_delays_and_are_not_read_are_named() {
    let text = "LinkSpeedRaw 1e10 LinkSpeed \"10\"\nbandwidth \"10Gbps\" delay_ms 2 operate 1 data_rate 3";
    let (_, warnings) = zoo(&TWO.replacen("LinkSpeedRaw 1e10", text, 1)).unwrap();
    let expected = "attributes of edges that are not read: \"bandwidth\", \"data_rate\", \"delay_ms\" (first: line 7); rates are";
    assert!(warnings.len() == 1 && warnings[0].starts_with(expected), "{warnings:?}");
}

#[test]
fn each_defect_is_reported_with_its_line() {
    for (from, to, expected) in [
        ("graph [", "grap [", "z.gml: no `graph [ ... ]` in the file: is it GML?"),
        ("target 1", "target 2", "z.gml:6: edge to unknown node \"2\": there are 2 nodes"),
        ("target 1", "", "z.gml:6: edge without `target`"),
        ("id 1", "id 0", "z.gml:5: two nodes have the id \"0\""),
        ("Latitude 0.0", "Latitude 95", "z.gml:5: Latitude 95 is not between -90 and 90"),
        ("Latitude 0.0", "Latitude \"north\"", "z.gml:5: Latitude: expected a number, found \"north\""),
        ("LinkSpeedRaw 1e10", "LinkSpeedRaw -1", "z.gml:6: LinkSpeedRaw -1 is not a valid rate"),
        ("&#233;\"", "", "z.gml:5: a string without its closing quote"),
        ("label \"x\"", "label", "z.gml:4: expected a number, \"text\" or [ after `label`"),
        ("\n]\n", "\n", "z.gml:7: the file ends within a list: is it truncated?"),
        ("edge [", "edge [] e [", "z.gml:6: edge without `source`"),
        ("label \"x\"", "} 1", "z.gml:3: expected a key, found \"} 1\\n"),
    ] {
        let text = TWO.replacen(from, to, 1);
        assert!(error(&text).starts_with(expected), "{} / {expected}", error(&text));
    }
    assert!(error(&"a [".repeat(10_000)).contains("nested deeper"));
}
