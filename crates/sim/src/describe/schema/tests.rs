use super::*;

#[test]
fn the_schema_has_every_section_and_the_keys_of_every_kind() {
    let schema = schema();
    let sections: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    for name in ["name", "seed", "topology", "switch", "transport", "telemetry", "workload", "run", "measure"]
    {
        assert!(sections.iter().any(|section| *section == name), "{name} is missing");
    }
    let transports = schema["$defs"]["transport"]["anyOf"].as_array().unwrap();
    let transport = |name| transports.iter().find(|t| t["properties"]["kind"]["const"] == name).unwrap();
    assert_eq!(transport("phost")["properties"]["window"]["type"], "integer");
    assert_eq!(
        schema["properties"]["switch"]["properties"]["queue"]["properties"]["drop"]["enum"][1],
        "tail"
    );
    let controllers = transport("rdma")["properties"]["controller"]["anyOf"].as_array().unwrap();
    let hpcc = controllers.iter().find(|c| c["properties"]["kind"]["const"] == "hpcc").unwrap();
    assert_eq!(hpcc["properties"]["eta"]["type"], "number");
    let titles: Vec<&str> = controllers.iter().map(|c| c["title"].as_str().unwrap()).collect();
    for (name, there) in [("dctcp", true), ("tcp.dctcp", true), ("vegas", true), ("lia", false)] {
        assert_eq!(titles.contains(&name), there, "{name}");
    }
    for name in ["tcp", "mptcp"] {
        let controllers = transport(name)["properties"]["controller"]["anyOf"].as_array().unwrap();
        assert!(controllers.iter().any(|controller| controller["title"] == "lia"), "{name}");
    }
    let topologies = schema["properties"]["topology"]["anyOf"].as_array().unwrap();
    let leaf_spine = topologies.iter().find(|t| t["title"] == "leaf-spine").unwrap();
    assert!(leaf_spine["properties"]["host_link"]["properties"]["rate"]["pattern"].is_string());
    assert!(leaf_spine["properties"]["override"]["items"]["properties"]["between"].is_object());
    assert_eq!(schema["properties"]["switch"]["properties"]["ecn"]["anyOf"].as_array().unwrap().len(), 2);
}
