//! Tests of the whole room: every kind builds, builders equal the reference files, parsers accept any input.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::dumbbell::Dumbbell;
use super::hpcc_fat_tree::HpccFatTree;
use super::star::Star;
use super::*;
use crate::parameters::{Nothing, Parameters};

/// The reference data, if present; otherwise the reason is printed.
fn reference() -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    let found = std::env::var_os("WEFTLINE_REFERENCE").map_or(shared, PathBuf::from);
    if found.is_dir() {
        return Some(found);
    }
    eprintln!("skipped: no reference data (set WEFTLINE_REFERENCE)");
    None
}

fn read_reference(root: &Path, name: &str) -> Vec<u8> {
    std::fs::read(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Removes the names of switches, which come from the file; all else is compared.
fn without_names(mut topology: Topology) -> Topology {
    topology.nodes.iter_mut().for_each(|node| node.name.clear());
    topology
}

#[test]
fn builders_give_the_topologies_of_the_reference_files() {
    let Some(root) = reference() else { return };
    let star = Star { hosts: 17, ..Star::default() }.build();
    let pod = HpccFatTree { pods: 1, tors_per_pod: 2, cores_per_agg: 0, ..HpccFatTree::default() };
    for (file, built) in [
        ("hpcc/star_single/topology.txt", star.clone()),
        ("hpcc/star_incast16/topology.txt", star),
        ("hpcc/dumb_fair4/topology.txt", Dumbbell::default().build()),
        ("hpcc/pod_wb_0.5/topology.txt", pod.build()),
        ("hpcc/fat320.topology.txt", HpccFatTree::default().build()),
    ] {
        let (imported, _) = hpcc_text::read(&read_reference(&root, file), file).unwrap();
        assert_eq!(without_names(built.unwrap()), without_names(imported.clone()), "{file}");
        assert_eq!(imported.nodes[3].name, "host3");
        let own = toml_file::read(write_toml(&imported).as_bytes(), "own.toml").unwrap().0;
        assert_eq!(own, imported);
    }
}

#[test]
fn the_zoo_graphs_become_connected_networks() {
    let Some(root) = reference() else { return };
    for (file, nodes) in [("pint/Kdl.gml", 754), ("pint/UsCarrier.gml", 158)] {
        let (t, warnings) = gml::read(&read_reference(&root, file), file, &ZooOptions::default()).unwrap();
        assert_eq!((t.hosts().len(), t.switches().len()), (nodes, nodes));
        assert!(warnings.iter().any(|w| w.contains("default_delay")), "{warnings:?}");
        let routes = Routes::compute(&t, &|_| true, NextHopOrder::ByPort);
        let times = PathTimes::new(&t, &routes);
        let longest = (0..nodes as u32).filter_map(|h| times.pair(0, h)).map(|p| p.hops).max().unwrap();
        assert!((20..80).contains(&longest), "{longest}");
    }
}

#[test]
fn every_kind_builds_with_its_defaults_and_explains_its_keys() {
    for (kind, help) in KINDS {
        let mut nothing = Nothing::default();
        let spec = TopologySpec::read(kind, &mut Parameters::new(&mut nothing)).unwrap();
        assert!(!help.is_empty() && !nothing.declared.is_empty());
        assert!(nothing.declared.iter().all(|d| !d.help.is_empty()), "{kind}");
        match spec.build(Path::new(".")) {
            Ok((topology, warnings)) => assert!(topology.validate().is_ok() && warnings.is_empty()),
            Err(error) => assert_eq!(error.to_string(), "file: expected the name of a topology file"),
        }
    }
    let mut nothing = Nothing::default();
    assert_eq!(TopologySpec::read("no-such-kind", &mut Parameters::new(&mut nothing)), None);
}

#[test]
fn absurd_sizes_are_refused_before_memory_is_taken() {
    let error = |star: Star| star.build().unwrap_err().to_string();
    assert_eq!(error(Star { hosts: 0, ..Star::default() }), "hosts: expected at least 1, found 0");
    assert!(
        error(Star { hosts: u64::MAX, ..Star::default() }).starts_with("hosts: expected at most 1000000")
    );
    assert_eq!(error(Star { hosts: 1, ..Star::default() }), "at least two hosts are needed, found 1");
    let mut slow = Star::default();
    slow.host_link.rate = Rate(0);
    assert!(error(slow).starts_with("host_link.rate: must be greater than 0"));
    let huge = HpccFatTree {
        pods: 1_000_000,
        tors_per_pod: 1_000_000,
        hosts_per_tor: 1_000_000,
        ..Default::default()
    };
    assert!(huge.build().unwrap_err().to_string().contains("more than the limit"));
    let apart = HpccFatTree { cores_per_agg: 0, ..HpccFatTree::default() };
    assert!(apart.build().unwrap_err().to_string().starts_with("cores_per_agg: 0 leaves 5 pods unconnected"));
}

#[test]
fn a_file_that_is_not_there_is_reported_with_its_nearest_neighbour() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let spec = file::FileSpec { file: "Cargo.tolm".into(), format: "toml", ..Default::default() };
    let error = TopologySpec::File(spec).build(base).unwrap_err().to_string();
    assert_eq!(error, "Cargo.tolm: no such file: did you mean \"Cargo.toml\"?");
    let spec = file::FileSpec { file: "net.dat".into(), ..Default::default() };
    let error = spec.build_in(base).unwrap_err().to_string();
    assert!(error.starts_with("format: the extension of \"net.dat\""), "{error}");
    let spec = file::FileSpec { file: "src".into(), format: "gml", ..Default::default() };
    assert!(spec.build_in(base).unwrap_err().to_string().starts_with("src: is a folder"));
}

/// Valid files of each format, to be corrupted.
fn samples() -> Vec<(&'static str, String)> {
    let star = Star { hosts: 3, ..Star::default() }.build().unwrap();
    let gml =
        "graph [ node [ id 0 label \"a\" ] node [ id 1 Latitude 1 Longitude 2 ] edge [ source 0 target 1 ] ]";
    let xml = "<graphml><key id=\"k\" attr.name=\"label\"/><graph><node id=\"a\"><data key=\"k\">x&amp;</data></node>\
        <node id=\"b\"/><edge source=\"a\" target=\"b\"/></graph></graphml>";
    vec![
        ("toml", write_toml(&star)),
        ("gml", gml.into()),
        ("graphml", xml.into()),
        ("hpcc", "3 1 2\n1\n0 1 10Gbps 1000ns 0\n2 1 10Gbps 2us 0\n".into()),
    ]
}

#[test]
fn samples_of_each_format_are_read() {
    for (format, text) in samples() {
        let spec = file::FileSpec { file: "x".into(), ..Default::default() };
        spec.parse(format, text.as_bytes()).unwrap_or_else(|error| panic!("{format}: {error}"));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), format in 0usize..4) {
        let spec = file::FileSpec { file: "x".into(), ..Default::default() };
        let _ = spec.parse(file::FORMATS[format + 1].0, &bytes);
    }

    #[test]
    fn no_spoiled_file_makes_a_parser_panic(
        sample in 0usize..4,
        spoils in prop::collection::vec((any::<prop::sample::Index>(), "[0-9a-z\"<>\\[\\]&;#. \n-]{0,6}", 0usize..9), 1..4),
    ) {
        let (format, text) = samples().swap_remove(sample);
        let mut bytes = text.into_bytes();
        for (place, piece, removed) in spoils {
            let at = place.index(bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, piece.into_bytes());
        }
        let spec = file::FileSpec { file: "x".into(), ..Default::default() };
        if let Ok((topology, _)) = spec.parse(format, &bytes) {
            prop_assert!(topology.validate().is_ok());
            let routes = Routes::compute(&topology, &|_| true, NextHopOrder::ByPort);
            prop_assert!(longest(&topology, &routes, 1000, false).base_rtt > Time::ZERO);
        }
    }
}
