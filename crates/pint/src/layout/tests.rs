use super::*;
use crate::plan::read;

const THREE: &str = r#"
        bits = 16
        [[query]]
        name = "path"
        value = "switch-id"
        aggregation = "path"
        bits = 8
        copies = 2
        [[query]]
        name = "latency"
        value = "hop-latency"
        aggregation = "quantiles"
        bits = 8
        frequency = "15/16"
        [[query]]
        name = "congestion"
        value = "utilisation"
        aggregation = "max"
        bits = 8
        frequency = "1/16"
        approximation = { base = 1.05 }
    "#;

fn plan(text: &str) -> Plan {
    Plan::new(read(text, "queries.toml").unwrap()).unwrap()
}

#[test]
fn the_papers_queries_take_4_4_and_8_stages_side_by_side() {
    let laid = layout(&plan(THREE), 8);
    let lengths: Vec<usize> = laid.chains.iter().map(|chain| chain.steps.len()).collect();
    assert_eq!(lengths, [1, 4, 4, 8]);
    assert!(laid.misfits().is_empty());
    assert!(laid.to_string().contains("All queries fit: 8 of 8 stages."), "{laid}");
}

#[test]
fn a_short_pipeline_names_what_does_not_fit() {
    let laid = layout(&plan(THREE), 6);
    assert_eq!(laid.misfits(), [("congestion", 8)]);
    assert!(laid.to_string().contains("congestion does not fit: it needs 8 stages, the pipeline has 6."));
}

#[test]
fn two_queries_of_one_value_compute_it_once() {
    let text = THREE.replace("bits = 16", "bits = 24")
        + "[[query]]\nname = \"mean\"\nvalue = \"utilisation\"\naggregation = \"sum\"\nbits = 8\n";
    let laid = layout(&plan(&text), 12);
    let mean = laid.chains.last().unwrap();
    assert_eq!(mean.steps[0].shared_with.as_deref(), Some("congestion"));
    assert_eq!(mean.steps.len(), 10);
}
