//! Tests of `section`.

use super::super::document::{parse, set};
use super::*;
use crate::units::{Rate, Time};

fn problems(findings: &Findings) -> Vec<String> {
    findings.problems.iter().map(Problem::to_string).collect()
}

#[test]
fn dotted_keys_descend_and_unknown_ones_get_their_line_and_the_nearest_name() {
    let text = "host_link = { rate = \"25Gbps\", dely = \"2us\" }\nleafs = 3\n";
    let table = parse(text, "s.toml").unwrap();
    let mut section = Section::root(&table, "s.toml");
    let mut p = section.parameters();
    assert_eq!(p.rate("host_link.rate", Rate::from_gbps(100), ""), Rate::from_gbps(25));
    assert_eq!(p.time("host_link.delay", Time::from_us(1), ""), Time::from_us(1));
    assert_eq!(p.integer("leaves", 4, (1, 9), ""), 4);
    let findings = section.finish();
    assert_eq!(
        problems(&findings),
        [
            "s.toml:1: host_link.dely: unknown key: did you mean \"delay\"? (known: rate, delay)",
            "s.toml:2: leafs: unknown key: did you mean \"leaves\"? (known: host_link, leaves)",
        ]
    );
}

#[test]
fn a_value_where_a_table_belongs_is_reported() {
    let table = parse("host_link = \"25Gbps\"\n", "s.toml").unwrap();
    let mut section = Section::root(&table, "s.toml");
    section.parameters().rate("host_link.rate", Rate(1), "");
    assert_eq!(
        problems(&section.finish()),
        ["s.toml:1: host_link: expected a table with rate, found \"25Gbps\""]
    );
}

const KINDS: &[(&str, &str)] = &[("hpcc", ""), ("dctcp", "")];

#[test]
fn another_kind_by_set_leaves_the_old_kinds_keys_out_with_a_warning() {
    let text = "[controller]\nkind = \"hpcc\"\neta = 0.9\nrai = 3\n";
    let mut table = parse(text, "s.toml").unwrap();
    set(&mut table, "controller.kind", "dctcp", "s.toml").unwrap();
    set(&mut table, "controller.g", "0.5", "s.toml").unwrap();
    let mut root = Section::root(&table, "s.toml");
    let mut controller = root.scheme("controller");
    assert_eq!(controller.kind("controller", None, KINDS, ""), Some("dctcp"));
    let mut p = controller.parameters();
    assert_eq!(p.number("g", 0.1, (0.0, 1.0), ""), 0.5);
    assert_eq!(p.integer("rai", 7, (0, 9), ""), 7);
    root.absorb("controller", controller);
    let findings = root.finish();
    assert!(findings.problems.is_empty(), "{:?}", problems(&findings));
    assert_eq!(findings.warnings.len(), 2);
    assert!(findings.warnings[0].starts_with("controller.eta of the file is ignored"));
}

#[test]
fn another_kind_by_set_leaves_out_a_scheme_inside_that_does_not_fit_it() {
    let read = |sets: &[(&str, &str)], fits: bool| {
        let mut table =
            parse("[outer]\nclass = 2\ninner = { kind = \"hpcc\", eta = 0.9 }\n", "s.toml").unwrap();
        sets.iter().for_each(|(path, text)| set(&mut table, path, text, "s.toml").unwrap());
        let mut root = Section::root(&table, "s.toml");
        let mut outer = root.child("outer");
        outer.kind("outer", Some("hpcc"), KINDS, "");
        let mut p = outer.parameters();
        assert_eq!(p.integer("class", 3, (1, 7), ""), 2);
        let inner = p.scheme("inner", |p| {
            if !fits && !p.put_aside() {
                p.refuse_kind("does not fit".into());
            }
            p.number("eta", 0.5, (0.0, 1.0), "");
            p.kind("inner", "dctcp", KINDS, "")
        });
        root.absorb("outer", outer);
        let findings = root.finish();
        (inner.flatten(), problems(&findings).len(), findings.warnings)
    };
    let outer = ("outer.kind", "dctcp");
    let left_out = ["kind", "eta"].map(|key| {
        format!("outer.inner.{key} of the file is ignored: --set chose another kind than the file")
    });
    assert_eq!(read(&[outer], false), (Some("dctcp"), 0, left_out.to_vec()));
    assert_eq!(read(&[outer], true), (Some("hpcc"), 0, Vec::new()));
    // Nothing is left out where --set chose no kind, or the scheme itself.
    assert_eq!(read(&[], false), (Some("hpcc"), 1, Vec::new()));
    assert_eq!(read(&[outer, ("outer.inner.kind", "hpcc")], false).1, 1);
}

#[test]
fn what_set_gives_in_a_table_of_the_file_that_is_left_out_is_named_itself() {
    let mut table = parse("[outer]\ninner = { kind = \"hpcc\", eta = 0.9 }\n", "s.toml").unwrap();
    for (path, text) in [("outer.kind", "dctcp"), ("outer.inner.eta", "0.8")] {
        set(&mut table, path, text, "s.toml").unwrap();
    }
    let mut root = Section::root(&table, "s.toml");
    let mut outer = root.child("outer");
    outer.kind("outer", Some("hpcc"), KINDS, "");
    root.absorb("outer", outer);
    assert_eq!(
        root.finish().warnings,
        [
            "outer.inner of the file is ignored: --set chose another kind than the file",
            "--set outer.inner.eta=0.8 is ignored: the kind that --set chose does not take outer.inner"
        ]
    );
}

#[test]
fn an_unknown_key_that_set_overwrites_is_reported_with_its_argument() {
    let mut table = parse("[outer]\nbeta = 0.9\n", "s.toml").unwrap();
    set(&mut table, "outer.beta", "0.8", "s.toml").unwrap();
    let mut root = Section::root(&table, "s.toml");
    let mut outer = root.child("outer");
    outer.kind("outer", Some("hpcc"), KINDS, "");
    root.absorb("outer", outer);
    let found = problems(&root.finish());
    assert!(found[0].starts_with("--set outer.beta=0.8: unknown key"), "{found:?}");
}

#[test]
fn the_default_kind_by_set_keeps_the_keys_that_the_file_gives_for_it() {
    let mut table = parse("[controller]\neta = 0.9\n", "s.toml").unwrap();
    set(&mut table, "controller.kind", "hpcc", "s.toml").unwrap();
    let mut root = Section::root(&table, "s.toml");
    let mut controller = root.scheme("controller");
    controller.kind("controller", Some("hpcc"), KINDS, "");
    assert_eq!(controller.parameters().number("eta", 0.95, (0.0, 1.0), ""), 0.9);
    root.absorb("controller", controller);
    assert!(root.finish().warnings.is_empty());
}

#[test]
fn an_unknown_kind_is_reported_once_at_its_place() {
    let text = "[controller]\n\nkind = \"hpc\"\neta = 0.9\n";
    let mut table = parse(text, "s.toml").unwrap();
    let read = |table: &Table| {
        let mut root = Section::root(table, "s.toml");
        let mut controller = root.scheme("controller");
        controller.kind("controller", None, KINDS, "");
        root.absorb("controller", controller);
        problems(&root.finish())
    };
    let message = "unknown controller \"hpc\": did you mean \"hpcc\"? (known: hpcc, dctcp)";
    assert_eq!(read(&table), [format!("s.toml:3: controller.kind: {message}")]);
    set(&mut table, "controller.kind", "dctp", "s.toml").unwrap();
    let message = "unknown controller \"dctp\": did you mean \"dctcp\"? (known: hpcc, dctcp)";
    assert_eq!(read(&table), [format!("--set controller.kind=dctp: {message}")]);
}
