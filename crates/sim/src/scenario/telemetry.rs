//! `[telemetry]`: what packets carry about the network that they cross, for their controllers or for a collector.

use super::section::Section;
use crate::compat::Rules;
use crate::files;
use crate::parameters::{Source, Value};
use crate::telemetry::TelemetryConfig;
use crate::telemetry::int;
use crate::telemetry::pint::{Computed, PintConfig};
use crate::transport::TransportConfig;
use crate::units::Time;
use pint::plan::Plan;
use pint::utilisation::{Law, Tables};
use std::path::Path;
use std::sync::Arc;

pub const TELEMETRIES: &[(&str, &str)] = &[
    ("none", "packets carry no telemetry"),
    (int::DOC.name, int::DOC.title),
    (crate::telemetry::pint::DOC.name, crate::telemetry::pint::DOC.title),
    ("auto", "int or pint if a controller in use needs it, else none"),
];

const LAWS: &[(&str, &str)] = &[
    (
        "code",
        "the authors' simulator: the previous packet's size, at data packets; codes rounded so that the mean load is exact",
    ),
    (
        "paper",
        "the paper: this packet's size, at every packet; codes rounded so that the mean logarithm is exact",
    ),
];

const ARITHMETICS: &[(&str, &str)] = &[
    ("exact", "floating point"),
    ("tables", "integers with tables of 256 logarithms and powers, as a switch computes"),
    ("authors", "integers as in the authors' simulator: 16 leading bits, 15 fractional bits"),
    (
        "recirculated",
        "exact, but the load is stored by every n-th packet, which goes through the pipeline twice",
    ),
];

/// What the other sections decide about telemetry.
pub struct TelemetryContext<'a> {
    pub rules: Rules,
    pub seed: u64,
    /// Where relative paths start.
    pub base_dir: &'a Path,
    pub transports: &'a [TransportConfig],
}

/// Reads `[telemetry]`.
pub fn read(section: &mut Section, cx: &TelemetryContext) -> TelemetryConfig {
    let help = "what packets carry";
    let given = section.kind("telemetry", Some("auto"), TELEMETRIES, help).unwrap_or("none");
    let controllers = || cx.transports.iter().filter_map(|transport| transport.facts().controller);
    let int_for = controllers().find(|controller| controller.needs().int).map(|found| found.name());
    let pint_for =
        controllers().find(|controller| controller.needs().load.is_some()).map(|found| found.name());
    let kind = match given {
        "auto" if int_for.is_some() => "int",
        "auto" if pint_for.is_some() => "pint",
        "auto" => "none",
        given => given,
    };
    section.resolve("kind", Value::Text(kind.to_string()));
    for (controller, needed) in [(int_for, "int"), (pint_for, "pint")] {
        let Some(controller) = controller.filter(|_| kind != needed) else { continue };
        let message = if given == "auto" {
            format!(
                "controller \"{controller}\" needs telemetry of kind \"{needed}\", another one needs \"{kind}\": a run has one kind"
            )
        } else {
            format!(
                "controller \"{controller}\" needs telemetry of kind \"{needed}\", not \"{kind}\": set kind = \"{needed}\" or \
                 choose another controller"
            )
        };
        section.complain("kind", message);
    }
    match kind {
        "int" => int(section, &cx.rules),
        "pint" => pint(section, cx, pint_for),
        _ => TelemetryConfig::None,
    }
}

/// Keys of INT.
pub fn int(section: &mut Section, rules: &Rules) -> TelemetryConfig {
    let help =
        "maximum number of records in the header (published: 5); a packet with more hops reports nothing";
    let max_hops = section.parameters().integer("max_hops", 5, (1, 64), help) as u32;
    let help = "carry the 12-bit path id of the HPCC paper's Fig 7, by which a sender notices a changed path (the released code \
                does not have it, and neither does like = \"hpcc-ns3\")";
    let path_id = section.parameters().flag_or_auto("path_id", !rules.no_path_id, help);
    let help = "every data packet carries INT, not only those whose controller reads it";
    let all = section.parameters().flag("all", false, help);
    TelemetryConfig::Int { max_hops, path_id, all }
}

/// Keys of PINT. `steered`: a controller that steers on the load.
pub fn pint(section: &mut Section, cx: &TelemetryContext, steered: Option<&str>) -> TelemetryConfig {
    let help = "file with queries, or a plan of weftline pint plan; default: one query, for the load of the path's busiest port";
    let queries = section.parameters().text("queries", None, help);
    let help = "how a port's load is defined";
    let law = match section.parameters().choice("law", "code", LAWS, help) {
        "paper" => Law::Paper,
        _ => Law::Code,
    };
    let computed = arithmetic(section);
    let default = if queries.is_some() { 1.0 } else { 0.0 };
    let config = match queries {
        Some(file) => {
            super::keep_path(section, "queries", cx.base_dir);
            planned(section, &cx.base_dir.join(&file), &file, law, computed)
        }
        None => of_load(section, cx, law, computed),
    };
    // Also where the queries are wrong: a key that is not read is called unknown.
    let help =
        "share of the packets whose digests are recorded in telemetry.parquet (1 with queries, else 0)";
    let recorded = section.parameters().number("record", default, (0.0, 1.0), help);
    let help =
        "record with each digest the switches that its packet passed (column path), to check decoded paths";
    let paths = section.parameters().flag("paths", false, help);
    let Some(mut config) = config else { return TelemetryConfig::None };
    (config.recorded, config.paths) = ((recorded * 4_294_967_296.0) as u64, paths);
    if let (Some(controller), None) = (steered, &config.load) {
        let message = format!(
            "controller \"{controller}\" needs a query with value = \"utilisation\" and aggregation = \"max\", which {} does not have",
            config.plan.as_ref().map_or("the plan", |_| "the file")
        );
        section.complain("queries", message);
    }
    if let Some((key, message)) = super::codes::refusal(&config, cx.transports) {
        section.complain(key, message);
    }
    TelemetryConfig::Pint(Arc::new(config))
}

fn arithmetic(section: &mut Section) -> Computed {
    let mut keys = section.parameters();
    let help = "how a switch computes a port's load";
    let arithmetic = keys.choice("arithmetic", "exact", ARITHMETICS, help);
    let help = "recirculated: number N of copies of the load, used in turn; every N-th packet is recirculated, or the first one \
                after it once no other is being recirculated";
    let registers = keys.integer("registers", 4, (1, 1_000_000), help) as u32;
    let help = "recirculated: time from a packet's departure until the load that it carries is stored";
    let delay = keys.time("recirculation_delay", Time::from_us(1), help);
    match arithmetic {
        "tables" => Computed::Tables(Tables::PAPER),
        "authors" => Computed::Tables(Tables::AUTHORS),
        "recirculated" => Computed::Recirculated { registers, delay },
        _ => Computed::Exact,
    }
}

/// The one query that needs no file.
fn of_load(section: &mut Section, cx: &TelemetryContext, law: Law, computed: Computed) -> Option<PintConfig> {
    let mut keys = section.parameters();
    let help = "base of the grid of codes for the load (published: 1.05)";
    let base = keys.number("base", 1.05, (1.001, 16.0), help);
    let help = "bits of the code (published: 8)";
    let bits = keys.integer("bits", 8, (1, 16), help) as u32;
    let help = "share of the packets that carry the load (with law = \"code\" all do, and the sender uses this share)";
    let share = keys.number("share", 1.0, (1.0 / 65_536.0, 1.0), help);
    let mut config =
        PintConfig::of_load(law, computed, base, bits, (share * 65_536.0).round() as u32, cx.seed)?;
    if cx.rules.two_byte_load {
        config.wire_bytes = 2;
    }
    Some(config)
}

/// A plan from a file, or one made of the queries in it.
fn planned(
    section: &mut Section,
    path: &Path,
    file: &str,
    law: Law,
    computed: Computed,
) -> Option<PintConfig> {
    let made = read_plan(path, file).and_then(|plan| {
        PintConfig::of_plan(plan, law, computed).map_err(|refused| format!("{file}: {refused}"))
    });
    match made {
        Ok(config) => Some(config),
        Err(message) => {
            section.complain("queries", message);
            None
        }
    }
}

fn read_plan(path: &Path, file: &str) -> Result<Plan, String> {
    const MAX: u64 = 1 << 20;
    let bytes = files::read(path, MAX).map_err(|error| format!("{file}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{file}: not UTF-8 text"))?;
    if Plan::is_plan(&text) {
        return Plan::read(&text, file).map_err(|error| error.to_string());
    }
    let queries = pint::plan::read(&text, file).map_err(|error| error.to_string())?;
    Plan::new(queries).map_err(|error| format!("{file}: {error}"))
}
