//! What the builders share: hosts first, then switches tier by tier, links in order of creation; and the
//! checks of counts and links.

use super::memory::check_size;
use super::{Link, Node, NodeId, NodeKind, Topology, TopologyError};
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

/// Rate and one-way delay of a kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSpec {
    pub rate: Rate,
    pub delay: Time,
}

impl LinkSpec {
    /// 100 Gb/s and 1 us: host links of the HPCC paper (SIGCOMM 2019, §5.1).
    pub const HOST: LinkSpec = LinkSpec { rate: Rate::from_gbps(100), delay: Time::from_us(1) };
    /// 400 Gb/s and 1 us: links between switches in the HPCC paper.
    pub const FABRIC: LinkSpec = LinkSpec { rate: Rate::from_gbps(400), delay: Time::from_us(1) };

    /// Reads `host_link.rate` and `host_link.delay`.
    pub(super) fn read_host(p: &mut Parameters, default: LinkSpec) -> LinkSpec {
        let rate = p.rate("host_link.rate", default.rate, "Rate of the links between hosts and switches.");
        let delay = p.time("host_link.delay", default.delay, "One-way delay of the host links.");
        LinkSpec { rate, delay }
    }

    /// Reads `fabric_link.rate` and `fabric_link.delay`.
    pub(super) fn read_fabric(p: &mut Parameters, default: LinkSpec) -> LinkSpec {
        let rate = p.rate("fabric_link.rate", default.rate, "Rate of the links between switches.");
        let delay =
            p.time("fabric_link.delay", default.delay, "One-way delay of the links between switches.");
        LinkSpec { rate, delay }
    }

    /// Reads `bottleneck_link.rate` and `bottleneck_link.delay`.
    pub(super) fn read_bottleneck(p: &mut Parameters, default: LinkSpec) -> LinkSpec {
        let rate = p.rate("bottleneck_link.rate", default.rate, "Rate of the links between switches.");
        let delay =
            p.time("bottleneck_link.delay", default.delay, "One-way delay of the links between switches.");
        LinkSpec { rate, delay }
    }

    /// Checks that rate and delay are greater than zero; errors name these keys.
    pub(super) fn check(self, rate_key: &'static str, delay_key: &'static str) -> Result<(), TopologyError> {
        if self.rate.0 == 0 {
            return Err(TopologyError::key(rate_key, "must be greater than 0, such as \"100Gbps\""));
        }
        if self.delay.0 == 0 {
            return Err(TopologyError::key(delay_key, "must be greater than 0, such as \"1us\""));
        }
        Ok(())
    }
    pub(super) fn check_host(self) -> Result<(), TopologyError> {
        self.check("host_link.rate", "host_link.delay")
    }
    pub(super) fn check_fabric(self) -> Result<(), TopologyError> {
        self.check("fabric_link.rate", "fabric_link.delay")
    }
    pub(super) fn check_bottleneck(self) -> Result<(), TopologyError> {
        self.check("bottleneck_link.rate", "bottleneck_link.delay")
    }
}

/// Maximum of a count, so that products of three of them cannot overflow.
pub(super) const MAX_COUNT: i64 = 1_000_000;

/// Reads a count of at least `min`.
pub(super) fn read_count(
    p: &mut Parameters,
    key: &'static str,
    default: u64,
    min: i64,
    help: &'static str,
) -> u64 {
    p.integer(key, default as i64, (min, MAX_COUNT), help) as u64
}

/// Checks that each count is from 1 to the maximum.
pub(super) fn check_counts(counts: &[(&'static str, u64)]) -> Result<(), TopologyError> {
    for &(key, count) in counts {
        if count == 0 {
            return Err(TopologyError::key(key, "expected at least 1, found 0"));
        }
        if count > MAX_COUNT as u64 {
            let message = format!("expected at most {MAX_COUNT}, found {count}");
            return Err(TopologyError::key(key, message));
        }
    }
    Ok(())
}

/// A network under construction. Counts are given in advance, so that an excessive one is rejected before
/// memory is allocated.
pub(super) struct Network {
    topology: Topology,
}

impl Network {
    pub fn new(nodes: u128, links: u128) -> Result<Network, TopologyError> {
        check_size(nodes, links)?;
        let mut topology = Topology::default();
        topology.nodes.reserve_exact(nodes as usize);
        topology.links.reserve_exact(links as usize);
        Ok(Network { topology })
    }

    /// Adds hosts. They must come before all switches, so that host ids are node ids.
    pub fn hosts(&mut self, count: u64) {
        self.nodes("host", count, NodeKind::Host, 0);
    }

    /// Adds switches named by the prefix and their index. Returns the id of the first one.
    pub fn switches(&mut self, prefix: &str, count: u64, tier: u8) -> u64 {
        self.nodes(prefix, count, NodeKind::Switch, tier)
    }

    fn nodes(&mut self, prefix: &str, count: u64, kind: NodeKind, tier: u8) -> u64 {
        let first = self.topology.nodes.len() as u64;
        let named = (0..count).map(|i| Node { name: format!("{prefix}{i}"), kind, tier });
        self.topology.nodes.extend(named);
        first
    }

    /// Links two nodes, given by their ids.
    pub fn link(&mut self, a: u64, b: u64, spec: LinkSpec) {
        // Ids are below the limit of nodes, which fits 32 bits.
        let (a, b) = (a as NodeId, b as NodeId);
        self.topology.links.push(Link { a, b, rate: spec.rate, delay: spec.delay });
    }

    /// By host: its part of a network whose parts no switch joins.
    pub fn in_parts(&mut self, parts: Vec<u32>) {
        self.topology.parts = parts;
    }

    /// This number of consecutive hosts are the GPUs of a node.
    pub fn in_nodes(&mut self, gpus: u64) {
        self.topology.gpus_per_node = u32::try_from(gpus).ok();
    }

    pub fn finish(self) -> Result<Topology, TopologyError> {
        self.topology.validate()?;
        Ok(self.topology)
    }
}

/// Rate of each of `links` uplinks of a switch under which are `under` bit/s of hosts: as given, or so that
/// the ratio of both is `ratio`, or the usual one.
pub fn fabric_rate(given: Option<Rate>, ratio: f64, under: f64, links: u64) -> Result<Rate, TopologyError> {
    match given {
        Some(rate) if ratio == 0.0 => Ok(rate),
        None if ratio == 0.0 => Ok(LinkSpec::FABRIC.rate),
        Some(rate) => Err(TopologyError::key(
            "oversubscription",
            format!("conflicts with fabric_link.rate = \"{rate}\": give one of the two"),
        )),
        None if !ratio.is_finite() || ratio < 0.0 => {
            Err(TopologyError::key("oversubscription", format!("expected more than 0, found {ratio}")))
        }
        None => {
            let rate = (under / (links as f64 * ratio)).round();
            if !(1.0..=1e16).contains(&rate) {
                let message =
                    format!("{ratio} results in fabric links of {rate} bit/s, which is not a valid rate");
                return Err(TopologyError::key("oversubscription", message));
            }
            Ok(Rate(rate as u64))
        }
    }
}
