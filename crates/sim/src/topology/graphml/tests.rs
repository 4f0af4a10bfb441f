use super::*;
use crate::units::{Rate, Time};

const TWO: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d2" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d3" />
  <key attr.name="label" attr.type="string" for="node" id="d4" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d2">0</data><data key="d3">0</data><data key="d4">A &amp; b</data></node>
    <node id="1"><data key="d2">0.0</data><data key="d3">-90.0</data><data key="d4">B&#233;</data></node>
    <edge source="0" target="1">
      <data key="d1">10000000000.0</data>
    </edge>
  </graph>
</graphml>
"#;

fn error(text: &str) -> String {
    read(text.as_bytes(), "z.graphml", &ZooOptions::default()).unwrap_err().to_string()
}

#[test]
fn the_same_graph_gives_the_same_network_as_in_gml() {
    let (t, warnings) = read(TWO.as_bytes(), "z.graphml", &ZooOptions::default()).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let names: Vec<&str> = t.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["host0", "host1", "A-b", "Bé"]);
    assert_eq!((t.links[2].rate, t.links[2].delay), (Rate::from_gbps(10), Time::from_ns(50_037_717)));
}

#[test]
fn links_have_the_speed_in_its_units() {
    let keys = "<key attr.name=\"LinkSpeed\" for=\"edge\" id=\"d1\" /><key attr.name=\"LinkSpeedUnits\" id=\"d5\" />";
    let text = TWO.replacen(
        "<key attr.name=\"LinkSpeedRaw\" attr.type=\"double\" for=\"edge\" id=\"d1\" />",
        keys,
        1,
    );
    let text = text.replacen("10000000000.0</data>", "40</data><data key=\"d5\">G</data>", 1);
    let (t, warnings) = read(text.as_bytes(), "z.graphml", &ZooOptions::default()).unwrap();
    assert_eq!((t.links[2].rate, warnings), (Rate::from_gbps(40), Vec::new()));
    let (_, warnings) =
        read(TWO.replace("LinkSpeedRaw", "capacity").as_bytes(), "z.graphml", &ZooOptions::default())
            .unwrap();
    assert!(
        warnings[1].starts_with("attributes of edges that are not read: \"capacity\" (first: line 11)"),
        "{warnings:?}"
    );
}

#[test]
fn each_defect_is_reported_with_its_line() {
    for (from, to, expected) in [
        ("target=\"1\"", "target=\"7\"", "z.graphml:10: edge to unknown node \"7\""),
        ("target=\"1\"", "", "z.graphml:10: <edge> without target"),
        ("<node id=\"1\">", "<node>", "z.graphml:9: <node> without id"),
        (">-90.0<", ">west<", "z.graphml:9: Longitude: expected a number, found \"west\""),
        ("</edge>", "</edgy>", "z.graphml:12: not well-formed XML"),
        ("graphml", "graphics", "z.graphml: no <graphml> in the file"),
    ] {
        let text = match from {
            "graphml" => TWO.replace(from, to),
            _ => TWO.replacen(from, to, 1),
        };
        assert!(error(&text).starts_with(expected), "{} / {expected}", error(&text));
    }
    let cut = |at: &str| error(&TWO[..TWO.find(at).unwrap()]);
    assert_eq!(cut("</edge>"), "z.graphml:11: the file ends within the <edge> of line 10: is it truncated?");
    // Between two elements, where what was read is a network.
    assert_eq!(
        cut("  </graph>"),
        "z.graphml:12: the file ends within the <graph> of line 7: is it truncated?"
    );
    assert!(cut("<node id=\"1\"").contains("within the <graph>"));
}

#[test]
fn what_a_key_states_as_default_holds_where_an_element_has_no_data() {
    let with_default = |default: &str| {
        let key = "for=\"edge\" id=\"d1\" />";
        let text = TWO.replacen(
            key,
            &format!("for=\"edge\" id=\"d1\"><desc>Speed</desc><default>{default}</default></key>"),
            1,
        );
        text.replacen("<data key=\"d1\">10000000000.0</data>", "", 1)
    };
    let (t, warnings) = read(with_default("25e9").as_bytes(), "z.graphml", &ZooOptions::default()).unwrap();
    assert_eq!((t.links[2].rate, warnings), (Rate::from_gbps(25), Vec::new()));
    assert_eq!(error(&with_default("fast")), "z.graphml:3: LinkSpeedRaw: expected a number, found \"fast\"");
    let stated =
        TWO.replacen("for=\"edge\" id=\"d1\" />", "for=\"edge\" id=\"d1\"><default>25e9</default></key>", 1);
    let (t, _) = read(stated.as_bytes(), "z.graphml", &ZooOptions::default()).unwrap();
    assert_eq!(t.links[2].rate, Rate::from_gbps(10));
}

#[test]
fn names_of_attributes_may_be_in_lower_case() {
    let text = TWO.replace("LinkSpeedRaw", "linkspeedraw").replace("Latitude", "latitude");
    let (t, warnings) =
        read(text.replace("Longitude", "longitude").as_bytes(), "z.graphml", &ZooOptions::default()).unwrap();
    assert_eq!((t.links[2].rate, warnings), (Rate::from_gbps(10), Vec::new()));
    assert_eq!(t.links[2].delay, Time::from_ns(50_037_717));
}
