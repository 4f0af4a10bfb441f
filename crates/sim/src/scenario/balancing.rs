//! Whether a load balancer suits a network and its transports, checked before the run.

use super::Scenario;
use super::network::Network;
use super::section::Section;
use crate::balance::NetworkView;
use crate::config::SwitchConfig;
use crate::parameters::Source;

/// Complains if the balancer cannot work on this network.
pub fn balancer_serves(section: &mut Section, network: Option<&Network>, switch: &SwitchConfig) {
    let Some(network) = network.filter(|_| section.is_clean()) else { return };
    for (key, message) in switch.balancer.problems(&NetworkView::of(&network.topology, &network.routes)) {
        section.complain(&format!("balancer.{key}"), message);
    }
}

/// Connections with more subflows than the balancer tells apart.
pub fn wrapped_subflows(scenario: &Scenario) -> Option<String> {
    let balancer = &scenario.switch.balancer;
    let known = balancer.facts().distinguishable_subflows?;
    let max = scenario.transports.iter().filter_map(|transport| transport.facts().subflows).max()?;
    (u32::from(max) > known).then(|| {
        format!(
            "transport.subflows: {max}, but {}'s mark distinguishes only {known}: subflow {} is taken for the first again. Set \
             subflows = {known}",
            balancer.name(),
            known + 1
        )
    })
}

/// Senders that give every packet another label leave nothing to a balancer that balances by flow.
pub fn sprayed(scenario: &Scenario) -> Option<String> {
    let spraying = scenario.transports.iter().find(|transport| transport.facts().labels_packets);
    let name = spraying.filter(|_| scenario.switch.balancer.facts().goes_by_flow)?.name();
    Some(format!(
        "switch.balancer: it balances by flow, but {name} gives every packet its own label: set transport.spray = false"
    ))
}

#[cfg(test)]
mod tests;
