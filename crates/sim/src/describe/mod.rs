//! What a scenario can name, as data: the lists, the JSON Schema, and the meaning of each name.

mod counters;
mod explain;
mod htsim_files;
mod metrics;
mod rank_lists;
mod schema;

pub use counters::{counters, declarations};
pub use explain::explain;
pub use rank_lists::rank_lists;
pub use schema::schema;

use crate::congestion::window;
use crate::scenario::presets::{self, Preset};
use crate::scenario::{switch, telemetry};
use crate::{congestion, external, topology, transport, workload};
use serde_json::{Map, Value, json};

/// The names that `weftline list` prints, by what they name, each with one line of help, and with its `package` where another
/// crate added it.
pub fn names() -> Value {
    let list = |kinds: &[(&str, &str)]| {
        let entries = kinds.iter().map(|(name, help)| match external::package_of(name) {
            Some(package) => json!({ "name": name, "help": help, "package": package }),
            None => json!({ "name": name, "help": help }),
        });
        Value::Array(entries.collect())
    };
    json!({
        "transports": list(transport::KINDS),
        "controllers": with_transports(list(congestion::kinds()), false),
        "tcp-controllers": with_transports(list(window::KINDS), true),
        "queues": list(switch::queues()),
        "balancers": list(switch::balancers()),
        "topologies": list(topology::KINDS),
        "workloads": list(workload::KINDS),
        "telemetry": list(telemetry::TELEMETRIES),
        "presets": presets::presets().iter().map(preset).collect::<Vec<_>>(),
    })
}

fn preset(preset: &Preset) -> Value {
    let unverified = if preset.unverified.is_empty() { "" } else { " (in part unverified)" };
    json!({ "name": preset.name, "help": format!("[{}] {}{unverified}", preset.section, preset.title) })
}

/// Adds to each controller the transports that it serves.
fn with_transports(mut controllers: Value, laws: bool) -> Value {
    for entry in controllers.as_array_mut().into_iter().flatten() {
        let served = served_by(entry["name"].as_str().unwrap_or_default(), laws);
        entry["transports"] = served;
    }
    controllers
}

/// Returns the transports that a controller serves, with its name there: `{"rdma": "hpcc"}`. `law`: the
/// controller steers a window.
pub fn served_by(controller: &str, law: bool) -> Value {
    let mut served = Map::new();
    for transport in transport::DECLARED {
        let offered = transport.controllers.offered();
        let found = offered.iter().find(|offered| offered.is_law == law && offered.listed == controller);
        if let Some(found) = found {
            served.insert(transport.name.to_string(), json!(found.name));
        }
    }
    Value::Object(served)
}

#[cfg(test)]
mod tests;
