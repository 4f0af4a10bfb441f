use super::*;

#[test]
fn schemes_keys_sections_and_metrics_are_explained() {
    let hpcc = explain("hpcc").unwrap();
    let keys: Vec<&str> =
        hpcc["parameters"].as_array().unwrap().iter().map(|p| p["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"eta") && keys.contains(&"max_stage"), "{keys:?}");
    assert!(hpcc["source"].as_str().unwrap().contains("SIGCOMM 2019"));
    let kmin = explain("switch.ecn.kmin").unwrap();
    assert_eq!(kmin["parameters"][0]["default"], "auto");
    assert_eq!(explain("kmin").unwrap()["parameters"][0]["key"], "switch.ecn.kmin");
    assert!(
        explain("slowdown").unwrap()["text"].as_str().unwrap().contains("1: as fast as alone at full rate")
    );
    assert_eq!(explain("fct_ns").unwrap()["name"], "fct");
    assert!(explain("leaf-spine").unwrap()["title"].as_str().unwrap().starts_with("topology: "));
    let keys_of = |name: &str| -> Vec<String> {
        let found = explain(name).unwrap();
        let keys = found["parameters"].as_array().unwrap().iter().map(|p| p["key"].as_str().unwrap());
        keys.map(str::to_string).collect()
    };
    assert_eq!(keys_of("drill"), ["samples", "memory"]);
    let order = &explain("spray").unwrap()["parameters"][0];
    assert_eq!(order["choices"][0]["name"], "random");
    assert!(order["choices"][1]["help"].as_str().unwrap().contains("in turn"));
    assert_eq!(keys_of("queue.pfabric"), ["limit"]);
    assert!(explain("queue.pfabric").unwrap()["title"].as_str().unwrap().starts_with("queue discipline"));
    assert_eq!(keys_of("switch.balancer.gap").len(), 3, "500us, 200us and 100us, by kind");
    assert!(keys_of("cebinae").contains(&"tax".to_string()));
    assert!(explain("codel").unwrap()["source"].as_str().unwrap().contains("RFC 8289"));
    assert!(keys_of("measure.queues").contains(&"measure.queues.every".to_string()));
    assert!(keys_of("pfc").iter().all(|key| key.starts_with("switch.pfc.")));
    assert_eq!(explain("window_bytes").unwrap()["name"], "bdp");
    assert!(explain("websearch").unwrap()["source"].as_str().unwrap().contains("HPCC"));
    assert!(explain("run").unwrap()["parameters"].as_array().unwrap().len() >= 4);
}

#[test]
fn a_key_is_from_where_its_scheme_is() {
    let source = |name: &str| explain(name).unwrap()["source"].as_str().unwrap().to_string();
    assert!(source("transport.capable").contains("RFC 8684"), "{}", source("transport.capable"));
    assert!(source("transport.free_tokens").contains("pHost"));
    assert!(!source("transport.free_tokens").contains("HPCC"));
    assert!(source("switch.ecn.kmin").contains("HPCC"));
    let both = source("transport.controller.g");
    assert!(both.contains("DCQCN") || both.contains("Large-Scale RDMA"), "{both}");
    assert_eq!(source("run.until"), "");
}

#[test]
fn only_published_values_of_switches_have_the_source_of_the_published_runs() {
    let source = |name: &str| explain(name).unwrap()["source"].as_str().unwrap().to_string();
    for name in ["switch", "switch.buffer", "switch.ecn.kmin", "switch.ecn.kmax", "switch.pfc.shift", "pfc"] {
        assert_eq!(source(name), PUBLISHED, "{name}");
    }
    for name in
        ["switch.lossy_alpha", "switch.cut_through_header", "switch.port", "switch.port.match", "host.queue"]
    {
        assert_eq!(source(name), "", "{name}");
    }
    let cebinae = source("tax");
    assert!(cebinae.contains("Cebinae") && !cebinae.contains("HPCC"), "{cebinae}");
    assert_eq!(source("switch.queue.tax"), cebinae);
}

#[test]
fn an_unknown_name_gets_the_nearest() {
    assert_eq!(explain("hpc").unwrap_err(), "unknown name \"hpc\": did you mean \"hpcc\"?");
}

#[test]
fn every_scheme_that_is_listed_says_where_it_is_from_and_how_it_was_checked() {
    let listed = super::super::names();
    let names = listed.as_object().unwrap().values().flat_map(|kind| kind.as_array().unwrap());
    for name in names.map(|entry| entry["name"].as_str().unwrap()) {
        if matches!(name, "none" | "auto") {
            continue;
        }
        let found = explain(name).unwrap();
        for key in ["source", "validation"] {
            assert_ne!(found[key], "", "{name}: no {key}; add it to its DOC");
        }
    }
}

#[test]
fn every_declared_key_has_help() {
    for section in sections() {
        for (key, declared) in &section.keys {
            assert!(!declared.help.is_empty(), "{}.{key} has no help", section.path);
        }
    }
}
