//! Whether a load balancer suits a network and its transports, checked before the run.

use super::Scenario;
use super::network::Network;
use super::probes::copies;
use super::section::Section;
use crate::balance::NetworkView;
use crate::config::SwitchConfig;
use crate::parameters::Source;
use crate::topology::NodeKind;
use crate::units::Rate;

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
    let used = scenario.transports_used();
    let max = used.iter().filter_map(|(_, transport)| transport.facts().subflows).max()?;
    (u32::from(max) > known).then(|| {
        format!(
            "transport.subflows: {max}, but {}'s mark distinguishes only {known}: subflow {} is taken for the first again. Set \
             subflows = {known}",
            balancer.name(),
            known + 1
        )
    })
}

/// What the balancer says of this network.
pub fn balancer_warning(scenario: &Scenario) -> Option<String> {
    let network = &scenario.network;
    scenario.switch.balancer.warning(&NetworkView::of(&network.topology, &network.routes))
}

/// Share of a link above which probes are worth a warning.
const PROBES: f64 = 0.05;

/// Probes that take much of a link between switches: in every round one of every other rack, or more where switches pass on every
/// probe.
pub fn probes_fill_links(scenario: &Scenario) -> Option<String> {
    let (facts, network) = (scenario.switch.balancer.facts(), &scenario.network);
    let ((key, interval), (_, bytes)) = facts.probes.zip(facts.probe_packet)?;
    let racks = NetworkView::of(&network.topology, &network.routes).racks() as u64;
    let is_switch = |node: u32| network.topology.nodes[node as usize].kind == NodeKind::Switch;
    let links = &network.topology.links;
    let takes = |rate: Rate, probes: f64| {
        probes * rate.transmission_time(u64::from(bytes)).0 as f64 / interval.0.max(1) as f64
    };
    let (share, rate, why) = if facts.copies_probes {
        let crossed = copies(&network.topology);
        let shares = crossed.iter().enumerate().map(|(at, &probes)| {
            let rate = links[at / 2].rate;
            (takes(rate, probes), rate, probes)
        });
        let (share, rate, probes) = shares.max_by(|one, other| one.0.total_cmp(&other.0))?;
        let why = format!(", {probes:.0} a round as switches pass on every one that they receive,");
        (share, rate, why)
    } else {
        let between = links.iter().filter(|link| is_switch(link.a) && is_switch(link.b));
        let slowest = between.map(|link| link.rate).min()?;
        (takes(slowest, racks.saturating_sub(1) as f64), slowest, String::new())
    };
    (share > PROBES).then(|| {
        let share = 100.0 * share;
        let what = match share < 100.0 {
            true => format!("take up to {share:.0} % of a link of {rate} from other traffic"),
            false => format!("are more than a link of {rate} can carry ({share:.0} %)"),
        };
        format!("switch.balancer.{key}: probes of {racks} racks{why} {what}: set a longer {key}")
    })
}

/// Senders that give every packet another label leave nothing to a balancer that balances by flow.
pub fn sprayed(scenario: &Scenario) -> Option<String> {
    let used = scenario.transports_used();
    let spraying = used.iter().find(|(_, transport)| transport.facts().labels_packets);
    let name = spraying.filter(|_| scenario.switch.balancer.facts().goes_by_flow)?.1.name();
    Some(format!(
        "switch.balancer: it balances by flow, but {name} gives every packet its own label: set transport.spray = false"
    ))
}

#[cfg(test)]
mod tests;
