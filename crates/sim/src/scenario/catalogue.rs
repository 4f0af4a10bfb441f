//! Every key that a scenario may have, and every name: what the reading functions declare when they are run over
//! nothing. The JSON Schema, `weftline explain` and `weftline list` are made from it.

use std::sync::OnceLock;

use super::section::Section;
use super::{failures, host, measure, network, run, scale, switch, telemetry, transport};
use crate::compat::Rules;
use crate::engine::random::RandomStream;
use crate::parameters::{Declared, Kind};
use crate::transport::ReadContext;
use crate::units::Time;
use std::path::Path;

use crate::congestion::window;
use crate::queue::{QueueConfig, QueueDefaults};
use crate::{balance, congestion, topology, workload};

/// Where the keys of window controllers stand among the sections; in a scenario it is `transport.controller` too.
pub const TCP_CONTROLLER: &str = "tcp.controller";

/// The keys of one section, for one kind of it.
pub struct SectionKeys {
    /// Dotted, such as `transport.controller`; empty for the keys outside any section.
    pub path: &'static str,
    /// The kind whose keys these are; none: the section has no kinds.
    pub kind: Option<&'static str>,
    /// Keys relative to the section.
    pub keys: Vec<(String, Declared)>,
}

/// All sections, in the order in which people write them.
pub fn sections() -> &'static [SectionKeys] {
    static SECTIONS: OnceLock<Vec<SectionKeys>> = OnceLock::new();
    SECTIONS.get_or_init(|| {
        let mut all = vec![keys("", None, root)];
        let kinds = topology::KINDS.iter().map(|(kind, _)| *kind);
        all.extend(kinds.map(|kind| keys("topology", Some(kind), |section| topology_keys(section, kind))));
        all.push(keys("topology.override", None, |section| {
            network::link_override(section);
        }));
        all.push(keys("switch", None, |section| {
            switch::read(section, &switch_context());
            queue_keys(section);
            for (kind, _) in switch::balancers() {
                let mut balancer = section.child("balancer");
                balance::BalancerConfig::read(kind, &mut balancer.parameters());
                section.absorb("balancer", balancer);
            }
        }));
        // Again by discipline and by balancer, for who asks about one.
        all.extend(switch::queues().iter().map(|(kind, _)| {
            keys("switch.queue", Some(kind), |section| {
                QueueConfig::read(kind, &mut section.parameters(), QueueDefaults::default());
            })
        }));
        all.extend(switch::balancers().iter().map(|(kind, _)| {
            keys("switch.balancer", Some(kind), |section| {
                balance::BalancerConfig::read(kind, &mut section.parameters());
            })
        }));
        all.push(keys("switch.port", None, |section| {
            switch::port_queue(section, &switch_context(), None);
            queue_keys(section);
        }));
        all.extend(crate::transport::KINDS.iter().map(|(kind, _)| {
            let mut own = keys("transport", Some(kind), |section| {
                transport::declare(kind, section, &ReadContext::listing());
            });
            own.keys.retain(|(key, _)| !key.starts_with("controller."));
            own
        }));
        let kinds = congestion::kinds().iter().map(|(kind, _)| *kind);
        all.extend(kinds.map(|kind| {
            keys("transport.controller", Some(kind), |section| {
                section.kind("controller", Some("hpcc"), congestion::kinds(), "congestion controller");
                congestion::ControllerConfig::read(kind, &mut section.parameters());
            })
        }));
        let kinds = window::KINDS.iter().map(|(kind, _)| *kind);
        all.extend(kinds.map(|kind| {
            keys(TCP_CONTROLLER, Some(kind), |section| {
                section.kind(
                    "controller",
                    Some(crate::transport::DEFAULT_WINDOW),
                    window::KINDS,
                    "congestion controller",
                );
                window::WindowConfig::read(kind, &mut section.parameters(), window::Profile::Rfc);
            })
        }));
        all.push(keys("telemetry", Some("int"), |section| {
            telemetry_kind(section);
            telemetry::int(section, &Rules::none());
        }));
        all.push(keys("telemetry", Some("pint"), |section| {
            telemetry_kind(section);
            let cx = telemetry::TelemetryContext {
                rules: Rules::none(),
                seed: 0,
                base_dir: Path::new(""),
                transports: &[],
            };
            telemetry::pint(section, &cx, None);
        }));
        let kinds = workload::KINDS.iter().map(|(kind, _)| *kind);
        all.extend(kinds.map(|kind| keys("workload", Some(kind), |section| workload_keys(section, kind))));
        all.push(keys("run", None, |section| {
            run::read(section, Time::ZERO);
        }));
        all.push(keys("scale", None, |section| {
            scale::read(section);
        }));
        all.push(keys("compat", None, |section| {
            run::read_compat(section);
        }));
        all.push(keys("failures", None, |section| {
            failures::read(section, None, 0);
        }));
        all.push(keys("failures.event", None, |section| {
            failures::event(section, None, &mut RandomStream::new(0, ""));
        }));
        all.push(keys("host", None, |section| {
            host::read(section, &[], None, &Rules::none());
            let mut queue = section.child("queue");
            host::queue_kind(&mut queue);
            section.absorb("queue", queue);
            queue_keys(section);
        }));
        all.push(keys("measure", None, measure::declare));
        all
    })
}

/// The kinds that have the key at a path, such as `topology.leaves` or `workload.0.partners`.
pub fn kinds_with(path: &str) -> Vec<&'static str> {
    let bare: Vec<&str> =
        path.split('.').filter(|segment| !segment.starts_with(|c: char| c.is_ascii_digit())).collect();
    let bare = bare.join(".");
    // A workload's own transport has the keys of `[transport]`.
    let bare = bare.strip_prefix("workload.").filter(|rest| rest.starts_with("transport.")).unwrap_or(&bare);
    let of = |section: &&SectionKeys| {
        let inner = bare.strip_prefix(place(section)).and_then(|rest| rest.strip_prefix('.'));
        inner.is_some_and(|inner| section.keys.iter().any(|(key, _)| key == inner))
    };
    let mut kinds: Vec<&str> = sections().iter().filter(of).filter_map(|section| section.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// The sections in which a name is a kind, such as `transport.controller`.
pub fn sections_with(kind: &str) -> Vec<&'static str> {
    let mut paths: Vec<&str> = sections().iter().filter(|of| of.kind == Some(kind)).map(place).collect();
    paths.dedup();
    paths
}

/// Where people write a section.
fn place(section: &SectionKeys) -> &'static str {
    match section.path {
        TCP_CONTROLLER => "transport.controller",
        path => path,
    }
}

fn keys(path: &'static str, kind: Option<&'static str>, read: impl FnOnce(&mut Section)) -> SectionKeys {
    let mut section = Section::empty(path);
    read(&mut section);
    SectionKeys { path, kind, keys: section.finish().declared }
}

fn root(section: &mut Section) {
    super::name(section, "");
    super::seed(section);
}

fn topology_keys(section: &mut Section, kind: &str) {
    section.kind("topology", None, topology::KINDS, "which network");
    topology::TopologySpec::read(kind, &mut section.parameters());
}

fn workload_keys(section: &mut Section, kind: &str) {
    section.kind("workload", None, workload::KINDS, "which pattern of traffic");
    workload::WorkloadSpec::read(kind, &mut section.parameters());
}

fn telemetry_kind(section: &mut Section) {
    section.kind("telemetry", Some("auto"), telemetry::TELEMETRIES, "what packets carry");
}

/// The keys of every discipline under `queue`.
fn queue_keys(section: &mut Section) {
    for (kind, _) in switch::queues() {
        let mut queue = section.child("queue");
        QueueConfig::read(kind, &mut queue.parameters(), QueueDefaults::default());
        section.absorb("queue", queue);
    }
}

fn switch_context() -> switch::SwitchContext<'static> {
    let defaults = crate::transport::SwitchDefaults::LOSSLESS;
    switch::SwitchContext { rules: Rules::none(), defaults, rates: &[], topology: None, classes: 0 }
}

/// How the value of a key is written, in words.
pub fn type_in_words(declared: &Declared) -> String {
    let words = match declared.kind {
        Kind::Time => "time, such as \"10us\"".to_string(),
        Kind::Bytes => "size, such as \"32MB\"".to_string(),
        Kind::Rate => "rate, such as \"100Gbps\"".to_string(),
        Kind::Frequency => "frequency, such as \"0.15Hz\", or a number in 1/s".to_string(),
        Kind::Number { min, max } => format!("number from {min} to {max}"),
        Kind::Integer { min, max } => match (min, max) {
            (min, i64::MAX) => format!("whole number from {min}"),
            (min, max) => format!("whole number from {min} to {max}"),
        },
        Kind::Flag => "true or false".to_string(),
        Kind::Text => "text".to_string(),
        Kind::List => "list".to_string(),
        Kind::Choice(names) => {
            let names: Vec<String> = names.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            format!("one of {}", names.join(", "))
        }
    };
    match declared.takes_auto() && declared.kind != Kind::Text {
        true => format!("{words}, or \"auto\""),
        false => words,
    }
}
