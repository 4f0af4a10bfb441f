//! Whether a load balancer can serve a network, said before the run.

use super::network::Network;
use super::section::Section;
use crate::config::{BalancerConfig, SwitchConfig};
use crate::parameters::Source;
use crate::topology::{NextHops, NodeId, NodeKind, Routes, Topology};

/// Says so if the balancer cannot do its work on this network.
pub fn balancer_serves(section: &mut Section, network: Option<&Network>, switch: &SwitchConfig) {
    let Some(network) = network.filter(|_| section.is_clean()) else { return };
    match switch.balancer {
        BalancerConfig::Hula(hula) => {
            let (name, topology) = (if hula.ranks == 1 { "hula" } else { "mp-hula" }, &network.topology);
            let probed = Probed::of(topology, &network.routes);
            if let Err(why) = probed.reach_everywhere() {
                let message = format!(
                    "\"{name}\" needs tiers of switches, so that probes of every rack come up to where paths part and down \
                     again (leaf-spine, fat-tree): {why}"
                );
                section.complain("balancer.kind", message);
            }
            let most = probed.most_hops();
            if u32::from(hula.ranks) > most.max(2) {
                let message = format!(
                    "{} next hops are to be kept, but no switch has more than {most} for a destination: set ranks = {most}",
                    hula.ranks
                );
                section.complain("balancer.ranks", message);
            }
        }
        BalancerConfig::Ecmp { .. }
        | BalancerConfig::Spray
        | BalancerConfig::RoundRobin
        | BalancerConfig::Destination
        | BalancerConfig::Label
        | BalancerConfig::LetFlow(_)
        | BalancerConfig::Drill(_)
        | BalancerConfig::Presto { .. } => {}
    }
}

/// A network as probes see it.
struct Probed<'a> {
    topology: &'a Topology,
    routes: &'a Routes,
    ports: Vec<Vec<(u32, NodeId)>>,
    /// Of each switch with hosts, one of them.
    racks: Vec<(NodeId, u32)>,
    has_hosts: Vec<bool>,
}

impl Probed<'_> {
    fn of<'a>(topology: &'a Topology, routes: &'a Routes) -> Probed<'a> {
        let ports = topology.ports();
        let (mut racks, mut has_hosts) = (Vec::new(), vec![false; topology.nodes.len()]);
        for (id, &host) in topology.hosts().iter().enumerate() {
            let Some(&(_, tor)) = ports[host as usize].first() else { continue };
            if !std::mem::replace(&mut has_hosts[tor as usize], true) {
                racks.push((tor, id as u32));
            }
        }
        Probed { topology, routes, ports, racks, has_hosts }
    }

    fn tier(&self, node: NodeId) -> u8 {
        self.topology.nodes[node as usize].tier
    }

    fn name(&self, node: NodeId) -> &str {
        &self.topology.nodes[node as usize].name
    }

    fn switches(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.ports.len() as NodeId).filter(|&n| self.topology.nodes[n as usize].kind == NodeKind::Switch)
    }

    /// Every switch hears of every rack by all ports on shortest paths to it.
    fn reach_everywhere(&self) -> Result<(), String> {
        for &(tor, host) in &self.racks {
            for switch in self.switches().filter(|&switch| switch != tor) {
                for &port in self.routes.next_hops(switch, host) {
                    let next = self.ports[switch as usize][port as usize].1;
                    self.tells(next, switch, tor, host)?;
                }
            }
        }
        Ok(())
    }

    /// `next`, the next hop from `switch` to a rack, tells it of the rack: it has heard of it from below, or is above.
    fn tells(&self, next: NodeId, switch: NodeId, tor: NodeId, host: u32) -> Result<(), String> {
        let (own, other) = (self.tier(switch), self.tier(next));
        if own == other {
            return Err(format!("{} and {} stand in one tier", self.name(switch), self.name(next)));
        }
        if next == tor {
            return match other < own {
                true => Ok(()),
                false => Err(format!("{} has hosts and stands above {}", self.name(tor), self.name(switch))),
            };
        }
        if self.has_hosts[next as usize] {
            return Err(format!("{} has hosts, and is on the way to others", self.name(next)));
        }
        let onward = self.routes.next_hops(next, host);
        let falls = |&port: &u32| self.tier(self.ports[next as usize][port as usize].1) < other;
        if own < other || onward.iter().all(falls) {
            return Ok(());
        }
        Err(format!("the way from {} to {} goes down and up again", self.name(switch), self.name(tor)))
    }

    /// Next hops to a rack that the switch with the most of them has.
    fn most_hops(&self) -> u32 {
        let count = |switch: NodeId, host: u32| match self.routes.hops_from(self.routes.row(switch), host) {
            NextHops::None => 0,
            NextHops::One(_) => 1,
            NextHops::Many(ports) => ports.len() as u32,
        };
        let all =
            self.switches().flat_map(|switch| self.racks.iter().map(move |&(_, host)| count(switch, host)));
        all.max().unwrap_or(1)
    }
}
