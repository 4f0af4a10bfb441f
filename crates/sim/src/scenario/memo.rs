//! `run.memo`: whether what a run repeats may be simulated once. Refused, by key, is what would not repeat.

use super::Scenario;
use crate::config::{MeasureConfig, Until};
use crate::congestion;
use crate::telemetry::TelemetryConfig;
use crate::units::Time;

/// Why the steps of a scenario that asks for it cannot be taken from earlier ones.
pub fn refusals(scenario: &Scenario) -> Vec<String> {
    let mut refused = Vec::new();
    if !scenario.memo {
        return refused;
    }
    let mut refuse = |key: &str, why: &str| refused.push(format!("{key}: {why}"));
    match &scenario.traffic.sources[..] {
        [source] => {
            let graph = source.graph();
            match graph.as_deref().and_then(|graph| graph.repeated().map(|work| (graph, work))) {
                None => refuse("workload.0.kind", "only the steps of a collective repeat"),
                Some((graph, work)) => {
                    if !graph.fresh {
                        let why = "connections that are kept carry windows, rates and timers from one step \
                                   to the next: set connections = \"fresh\"";
                        refuse("workload.0.connections", why);
                    }
                    if work.compute == Time::ZERO {
                        let why = "without computation between two steps there is no moment at which \
                                   nothing is in flight: set compute";
                        refuse("workload.0.compute", why);
                    }
                }
            }
        }
        // What is wrong with it is reported there.
        [] => {}
        _ => refuse("workload.1", "what runs at the same time does not repeat with the steps: one workload"),
    }
    if matches!(scenario.until, Until::At(_)) {
        refuse("run.until", "the end may fall into a step: set until = \"flows-done\"");
    }
    if scenario.rules.like != "none" {
        refuse("compat.like", "its rules are not known to repeat: leave it out");
    }
    if !scenario.failures.events.is_empty() || scenario.failures.loss.is_some() {
        refuse("failures", "changes and losses of links have their own times and draws: leave them out");
    }
    if !scenario.switch.balancer.facts().repeats {
        let why = format!(
            "\"{}\" keeps what it has seen, draws, or spreads packets by number: choose one that goes by what a \
             packet says",
            scenario.switch.balancer.name()
        );
        refuse("switch.balancer", &why);
    }
    if let Some(queue) = scenario.switch.queues().find(|queue| !queue.facts().repeats) {
        refuse(
            "switch.queue",
            &format!("\"{}\" is not known to forget what passed: leave it out", queue.name()),
        );
    }
    match &scenario.transports[..] {
        [transport] => {
            let facts = transport.facts();
            if let Some((key, why)) = facts.differs {
                let (name, instead) = match (key, facts.controller) {
                    ("kind", _) => (Some(transport.name()), "choose another transport".to_string()),
                    ("controller.kind", Some(controller)) => {
                        let others = congestion::without_telemetry().join(", ");
                        (Some(controller.name()), format!("expected one of {others}"))
                    }
                    _ => (None, "leave it out".to_string()),
                };
                let name = name.map_or(String::new(), |name| format!("\"{name}\" "));
                refuse(&format!("transport.{key}"), &format!("{name}{why}: {instead}"));
            }
        }
        _ => refuse("workload.0.transport", "one transport only"),
    }
    if matches!(scenario.telemetry, TelemetryConfig::Pint(_) | TelemetryConfig::Int { all: true, .. }) {
        refuse("telemetry", "it brings times and counters since the start of the run: leave it out");
    }
    if scenario.host.resequencing.is_some() {
        refuse("host.resequencing", "what hosts hold back is not known to repeat: leave it out");
    }
    if scenario.host.queue.is_some() {
        refuse("host.queue", "what waits in hosts is not known to repeat: leave it out");
    }
    if scenario.host.packet_time > Time::ZERO {
        refuse("host.packet_time", "what waits in hosts is not known to repeat: leave it out");
    }
    if !scenario.host.nic_policy.repeats() {
        refuse("host.nic_policy", "the choice of a NIC goes by what was sent before: take hash or by-rail");
    }
    let none = MeasureConfig { ideal: scenario.measure.ideal, ..MeasureConfig::default() };
    if scenario.measure != none {
        let why =
            "series, histograms and captures are taken on a time grid of their own: leave out all but ideal";
        refuse("measure", why);
    }
    refused
}
