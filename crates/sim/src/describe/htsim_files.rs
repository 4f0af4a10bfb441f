//! What a file of htsim holds: a connection matrix, or a topology.

use std::path::Path;

use serde_json::{Value, json};

use crate::files;
use crate::topology::file::FileSpec;
use crate::units::Time;
use crate::workload::Trace;
use crate::workload::trace::HostOf;

/// As JSON; none: the name is not that of such a file.
pub fn htsim_file(path: &Path) -> Option<Result<Value, String>> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "cm" => Some(matrix(path)),
        "topo" => Some(network(path)),
        _ => None,
    }
}

fn matrix(path: &Path) -> Result<Value, String> {
    let name = path.display().to_string();
    let bytes = files::read(path, files::MAX_BYTES).map_err(|message| format!("{name}: {message}"))?;
    let hosts = HostOf { by_id: &Some, by_name: &|name| Err(format!("unknown host {name}")) };
    let trace = Trace::from_htsim(&bytes, &name, hosts, Time::ZERO).map_err(|error| error.to_string())?;
    let size = |sum: u64, flow: crate::workload::FlowSpec| sum.saturating_add(flow.size);
    Ok(json!({
        "format": "htsim connection matrix",
        "flows": trace.len(),
        "triggered": trace.flows().filter(|flow| flow.waits_for > 0).count(),
        "bytes": trace.flows().fold(0, size),
        "assumed": trace.warnings,
    }))
}

fn network(path: &Path) -> Result<Value, String> {
    let name = path.display().to_string();
    let bytes = files::read(path, files::MAX_BYTES).map_err(|message| format!("{name}: {message}"))?;
    let spec = FileSpec { file: name, ..FileSpec::default() };
    let (topology, warnings) = spec.parse("htsim", &bytes).map_err(|error| error.to_string())?;
    Ok(json!({
        "format": "htsim topology",
        "hosts": topology.hosts().len(),
        "switches": topology.switches().len(),
        "links": topology.links.len(),
        "assumed": warnings,
    }))
}
