//! Where ranks sit: several of a host share its NICs, and reach each other by its scale-up links.

use super::ScaleUp;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Rate, Time};
use crate::workload::lanes::lane_of;
use crate::workload::spec::WorkloadContext;
use std::collections::BTreeSet;

/// Ranks r with the same r / `per_host` are on one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seats {
    pub per_host: u32,
    /// Connections of a rank to a neighbour.
    pub channels: u32,
    /// A message uses the NIC of its channel, as in NCCL's rings, not that of its rank.
    pub by_channel: bool,
}

impl Seats {
    /// One rank a host.
    pub const ALONE: Seats = Seats { per_host: 1, channels: 1, by_channel: false };

    pub fn together(&self, from: u32, to: u32) -> bool {
        self.per_host > 1 && from / self.per_host == to / self.per_host
    }

    /// What the job's messages are spread over in a host.
    pub fn lanes(&self) -> u32 {
        self.channels * if self.by_channel { 1 } else { self.per_host }
    }

    /// The lane of a message, as a flow has it.
    pub fn lane(&self, from: u32, channel: u32) -> u16 {
        let rank = if self.by_channel { 0 } else { from % self.per_host };
        lane_of(rank * self.channels + channel % self.channels, self.lanes())
    }
}

/// The key `ranks_per_host`.
pub fn ranks_per_host(p: &mut Parameters) -> u32 {
    let help = "Ranks of each host, such as the GPUs of a node with several NICs: consecutive ranks, which reach each other \
                by scale_up_rate.";
    let count = p.integer("ranks_per_host", 1, (1, 1024), help) as u32;
    if p.peek("ranks_per_host").is_none() {
        p.without_effect("ranks_per_host", String::new);
    }
    count
}

/// Ranks of a domain where neither a number is given nor a node or host has several.
pub const USUAL_DOMAIN: u32 = 8;

/// The key `domain`; none: `auto`.
pub fn read_domain(p: &mut Parameters, min: i64, per_host: u32) -> Option<u32> {
    let help = "Consecutive ranks that reach each other outside the network; auto: those of a node, where the topology has nodes of \
                several GPUs, or of a host with several ranks, else 8.";
    let domain = p.integer_or_auto("domain", (min, 100_000), help).map(|domain| domain as u32);
    domain.into_iter().for_each(|domain| check_domain(p, domain, per_host));
    domain
}

/// Ranks of a domain, of which a number may be given.
pub fn domain(cx: &WorkloadContext, given: Option<u32>, per_host: u32) -> u32 {
    let usual = match cx.gpus_per_node.unwrap_or(1).saturating_mul(per_host) {
        1 => USUAL_DOMAIN,
        ranks => ranks,
    };
    given.unwrap_or(usual)
}

/// Warns of domains that are neither parts of nodes nor whole nodes.
pub fn warn_of_nodes(cx: &WorkloadContext, hosts: &[HostId], domain: u32, per_host: u32) {
    let Some(gpus) = cx.gpus_per_node.filter(|&gpus| gpus > 0) else { return };
    let node = gpus.saturating_mul(per_host);
    if node == 1 {
        let text = format!("nodes have one GPU, so that a domain of {domain} ranks spans {domain} nodes");
        return (cx.warn)(text);
    }
    if !node.is_multiple_of(domain) && !domain.is_multiple_of(node) {
        let parts = (per_host.max(2)..=node)
            .filter(|part| node.is_multiple_of(*part) && part.is_multiple_of(per_host));
        let whole = [domain / node * node, domain.div_ceil(node) * node].into_iter().filter(|&size| size > 0);
        let nearest = parts.chain(whole).min_by_key(|size| size.abs_diff(domain)).unwrap_or(node);
        let text = format!(
            "domain = {domain} is neither a part of a node nor whole nodes, which have {node} GPUs, so that domains cross nodes at \
             different places: expected {nearest}, or \"auto\" for {node}"
        );
        return (cx.warn)(text);
    }
    let nodes = |ranks: &[HostId]| ranks.iter().map(|host| host / gpus).collect::<BTreeSet<_>>().len();
    let allowed = (domain / node).max(1) as usize;
    let torn = hosts.chunks(domain as usize).zip(0..).find(|(ranks, _)| nodes(ranks) > allowed);
    if let Some((ranks, number)) = torn {
        let first = number * domain as usize;
        (cx.warn)(format!(
            "ranks {first} to {} are a domain, but on {} nodes of {node} GPUs: keep the ranks of a node together (`hosts`, \
             `placement`, `ranks`)",
            first + ranks.len() - 1,
            nodes(ranks)
        ));
    }
}

/// The keys of the links within domains. `why_not`: there are no domains.
pub fn scale_up(p: &mut Parameters, per_host: u32, why_not: Option<&str>) -> Option<ScaleUp> {
    let why_not = why_not.filter(|_| per_host < 2);
    let rate_help = "Rate at which a rank sends to others of its domain, outside the network; auto: they are simulated on \
                     the network's links, as packets.";
    let rate = p.rate_or_auto("scale_up_rate", rate_help);
    let delay = p.time("scale_up_delay", Time::from_us(1), "Latency of a message within a domain.");
    if let Some(why_not) = why_not {
        p.without_effect("scale_up_rate", || why_not.into());
    }
    if rate.is_none() || why_not.is_some() {
        p.without_effect("scale_up_delay", || "set scale_up_rate too".into());
        if per_host > 1 {
            let message = format!(
                "{per_host} ranks of a host reach each other by its own links: set scale_up_rate too"
            );
            p.complain("ranks_per_host", message);
        }
        return None;
    }
    if rate == Some(Rate(0)) {
        p.complain("scale_up_rate", "must be greater than 0".into());
    }
    if delay == Time::ZERO {
        p.complain("scale_up_delay", "must be greater than 0".into());
    }
    rate.map(|rate| ScaleUp { rate, delay })
}

/// Domains consist of whole hosts.
pub fn check_domain(p: &mut Parameters, domain: u32, per_host: u32) {
    if !domain.is_multiple_of(per_host) {
        let message = format!(
            "{domain} ranks are not whole hosts of {per_host} ranks: expected a multiple of ranks_per_host"
        );
        p.complain("domain", message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_or_a_channel_has_its_nic() {
        let own = Seats { per_host: 4, channels: 2, by_channel: false };
        assert_eq!((own.lanes(), own.lane(5, 1)), (8, lane_of(3, 8)));
        assert!(own.together(4, 7) && !own.together(3, 4));
        let by_channel = Seats { by_channel: true, ..own };
        assert_eq!((by_channel.lanes(), by_channel.lane(5, 1)), (2, lane_of(1, 2)));
        assert!(!Seats::ALONE.together(3, 3));
    }
}
