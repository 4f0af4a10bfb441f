//! The kinds of topology by name, and how a scenario's `[topology]` becomes one.

use std::path::Path;

use super::dumbbell::Dumbbell;
use super::fat_tree::FatTree;
use super::file::FileSpec;
use super::hpcc_fat_tree::HpccFatTree;
use super::leaf_spine::LeafSpine;
use super::parking_lot::ParkingLot;
use super::pods::Pods;
use super::star::Star;
use super::{Topology, TopologyError};
use crate::parameters::Parameters;

/// Kinds of topology, and what each is.
pub const KINDS: &[(&str, &str)] = &[
    ("star", "hosts around one switch"),
    ("dumbbell", "hosts on either side of one link"),
    ("parking-lot", "a chain of bottlenecks, with flows over one and flows over all"),
    ("leaf-spine", "every leaf linked to every spine; optional oversubscription"),
    ("fat-tree", "k-ary fat tree (Al-Fares et al., SIGCOMM 2008)"),
    ("hpcc-fat-tree", "three-tier FatTree of the HPCC paper, 320 hosts (Li et al., SIGCOMM 2019)"),
    (
        "pods",
        "pods of leaves and aggregation switches, every one of these linked to every core (HULA's network), 64 hosts",
    ),
    ("file", "weftline TOML, Topology Zoo GML or GraphML, HPCC text"),
];

/// A topology to be built, with all its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum TopologySpec {
    Star(Star),
    Dumbbell(Dumbbell),
    ParkingLot(ParkingLot),
    LeafSpine(LeafSpine),
    FatTree(FatTree),
    HpccFatTree(HpccFatTree),
    Pods(Pods),
    File(FileSpec),
}

impl TopologySpec {
    /// Reads the parameters of a kind; none if there is no such kind.
    pub fn read(kind: &str, p: &mut Parameters) -> Option<TopologySpec> {
        Some(match kind {
            "star" => TopologySpec::Star(Star::read(p)),
            "dumbbell" => TopologySpec::Dumbbell(Dumbbell::read(p)),
            "parking-lot" => TopologySpec::ParkingLot(ParkingLot::read(p)),
            "leaf-spine" => TopologySpec::LeafSpine(LeafSpine::read(p)),
            "fat-tree" => TopologySpec::FatTree(FatTree::read(p)),
            "hpcc-fat-tree" => TopologySpec::HpccFatTree(HpccFatTree::read(p)),
            "pods" => TopologySpec::Pods(Pods::read(p)),
            "file" => TopologySpec::File(FileSpec::read(p)),
            _ => return None,
        })
    }

    /// Builds and validates the topology; file names are relative to `base_dir`; the strings are warnings.
    pub fn build(&self, base_dir: &Path) -> Result<(Topology, Vec<String>), TopologyError> {
        let built = match self {
            TopologySpec::Star(spec) => spec.build(),
            TopologySpec::Dumbbell(spec) => spec.build(),
            TopologySpec::ParkingLot(spec) => spec.build(),
            TopologySpec::LeafSpine(spec) => spec.build(),
            TopologySpec::FatTree(spec) => spec.build(),
            TopologySpec::HpccFatTree(spec) => spec.build(),
            TopologySpec::Pods(spec) => spec.build(),
            TopologySpec::File(spec) => return spec.build(base_dir),
        };
        Ok((built?, Vec::new()))
    }
}
