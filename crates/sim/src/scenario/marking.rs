//! Queues that mark packets instead of dropping them, of senders that react to drops alone.

use super::Scenario;
use crate::transport::TransportConfig;

/// For every transport whose senders ignore marks: a queue that gives them nothing else.
pub fn ignored(scenario: &Scenario) -> Vec<String> {
    let used = scenario.transports_used();
    let mut found: Vec<String> =
        used.into_iter().filter_map(|(_, transport)| ignored_by(scenario, transport)).collect();
    found.dedup();
    found
}

fn ignored_by(scenario: &Scenario, transport: &TransportConfig) -> Option<String> {
    let facts = transport.facts();
    let mut queues = scenario.switch.queues().filter(|_| !facts.heeds_marks);
    let (kind, remedy) = queues.find_map(|queue| Some((queue.name(), queue.facts().drops_instead?)))?;
    let who = match facts.controller_name {
        Some(controller) => format!("the controller \"{controller}\" of {}", transport.name()),
        None => transport.name().to_string(),
    };
    Some(format!(
        "switch.queue.ecn: ports of kind \"{kind}\" mark packets instead of dropping them, and {who} does not react to marks: such a \
         port does not keep its flows from filling the whole buffer. Set {remedy}"
    ))
}
