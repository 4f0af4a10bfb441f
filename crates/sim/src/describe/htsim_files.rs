//! What a file of htsim holds: a connection matrix, or a topology.

use std::path::Path;

use serde_json::{Value, json};

use crate::topology::htsim;
use crate::workload::matrix_facts;

/// As JSON; none: the name is not that of such a file.
pub fn htsim_file(path: &Path) -> Option<Result<Value, String>> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "cm" => Some(matrix(path)),
        "topo" => Some(network(path)),
        _ => None,
    }
}

fn matrix(path: &Path) -> Result<Value, String> {
    let facts = matrix_facts(path)?;
    Ok(json!({
        "format": "htsim connection matrix",
        "flows": facts.flows,
        "triggered": facts.triggered,
        "bytes": facts.bytes,
        "assumed": facts.warnings,
    }))
}

fn network(path: &Path) -> Result<Value, String> {
    let (topology, warnings) = htsim::read_file(path)?;
    Ok(json!({
        "format": "htsim topology",
        "hosts": topology.hosts().len(),
        "switches": topology.switches().len(),
        "links": topology.links.len(),
        "assumed": warnings,
    }))
}
