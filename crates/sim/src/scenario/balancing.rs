//! Whether a load balancer can serve a network, said before the run.

use super::Scenario;
use super::network::Network;
use super::section::Section;
use crate::balance::TAGS;
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
        BalancerConfig::Conga(conga) => conga_serves(section, network, conga.three_tier),
        BalancerConfig::Clove(_) => clove_serves(section, network),
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

/// A mark has four bits for the subflow.
pub fn wrapped_subflows(scenario: &Scenario) -> Option<String> {
    let marks = matches!(scenario.switch.balancer, BalancerConfig::Hula(hula) if hula.ranks > 1);
    let most = scenario.transports.iter().filter_map(|transport| transport.facts().subflows).max()?;
    (marks && most > 16).then(|| {
        format!(
            "transport.subflows: {most}, and mp-hula's mark tells 16 apart: the 17th is taken for the first again. Set subflows = 16"
        )
    })
}

/// Flowlets, and the cells of a flow, are known by the hash that packets carry: senders that give every packet another one leave
/// nothing to balance.
pub fn sprayed(scenario: &Scenario) -> Option<String> {
    let by_flow = match scenario.switch.balancer {
        BalancerConfig::LetFlow(_)
        | BalancerConfig::Presto { .. }
        | BalancerConfig::Hula(_)
        | BalancerConfig::Clove(_)
        | BalancerConfig::Conga(_) => true,
        BalancerConfig::Ecmp { .. }
        | BalancerConfig::Spray
        | BalancerConfig::RoundRobin
        | BalancerConfig::Destination
        | BalancerConfig::Label
        | BalancerConfig::Drill(_) => false,
    };
    let spraying = scenario.transports.iter().find(|transport| transport.facts().labels_packets);
    let name = spraying.filter(|_| by_flow)?.name();
    Some(format!(
        "switch.balancer: it goes by flows, but {name} gives every packet a label of its own: set transport.spray = false"
    ))
}

/// CLOVE's hosts choose among the ways behind one link.
fn clove_serves(section: &mut Section, network: &Network) {
    let topology = &network.topology;
    let ports = topology.ports();
    let several = topology.hosts().into_iter().find(|&host| ports[host as usize].len() > 1);
    if let Some(host) = several {
        let message = format!(
            "\"clove\" is for hosts with one link, and {} has {}: what it hears of a path does not say by which link",
            topology.nodes[host as usize].name,
            ports[host as usize].len()
        );
        section.complain("balancer.kind", message);
    }
}

/// CONGA's leaves choose for the whole way: what is between them must be one tier, or CONGA' is asked for.
fn conga_serves(section: &mut Section, network: &Network, three_tier: bool) {
    let topology = &network.topology;
    let probed = Probed::of(topology, &network.routes);
    let upper = probed.switches().find(|&switch| probed.tier(switch) > 2);
    let complaint = match (probed.reach_everywhere(), upper) {
        (Err(why), _) => {
            Some(format!("\"conga\" needs leaves that are joined by switches above them (leaf-spine): {why}"))
        }
        (Ok(()), Some(upper)) if !three_tier => Some(format!(
            "\"conga\" is for leaves and spines, and {} stands in a third tier: set three_tier = true for the variant whose \
             leaves choose and whose upper switches hash, or kind = \"hula\"",
            probed.name(upper)
        )),
        (Ok(()), _) => None,
    };
    if let Some(message) = complaint {
        return section.complain("balancer.kind", message);
    }
    let uplinks = |switch: NodeId| {
        let ports = probed.ports[switch as usize].iter();
        ports.filter(|&&(_, peer)| probed.tier(peer) > probed.tier(switch)).count()
    };
    let leaves = probed.racks.iter().map(|&(leaf, _)| (uplinks(leaf), leaf));
    if let Some((count, leaf)) = leaves.max().filter(|&(count, _)| count > TAGS) {
        let message = format!(
            "{} has {count} uplinks; the tag of 4 bits in conga's header names {TAGS}",
            probed.name(leaf)
        );
        section.complain("balancer.kind", message);
    }
}

/// A network as probes see it.
pub struct Probed<'a> {
    topology: &'a Topology,
    routes: &'a Routes,
    ports: Vec<Vec<(u32, NodeId)>>,
    /// Of each switch with hosts, one of them.
    racks: Vec<(NodeId, u32)>,
    has_hosts: Vec<bool>,
}

impl Probed<'_> {
    pub fn of<'a>(topology: &'a Topology, routes: &'a Routes) -> Probed<'a> {
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

    /// Some switch has several next hops to some rack.
    pub fn has_a_choice(&self) -> bool {
        self.most_hops() > 1
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

#[cfg(test)]
mod tests {
    use super::super::{Hooks, Scenario};
    use std::path::Path;

    /// What is wrong with a scenario on this topology with this balancer.
    fn problem(topology: &str, balancer: &str) -> String {
        let text = format!(
            "[topology]\n{topology}\n[switch]\nbalancer = {{ {balancer} }}\n\
             [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
        );
        match Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    const LEAVES: &str = "kind = \"leaf-spine\"\nspines = 3";
    const DUMBBELL: &str = "kind = \"dumbbell\"";

    #[test]
    fn settings_that_cannot_be_meant_are_refused() {
        for kind in ["letflow", "conga", "clove", "hula", "mp-hula"] {
            let wrong = problem(LEAVES, &format!("kind = \"{kind}\", gap = \"0s\""));
            assert!(
                wrong.contains("switch.balancer.gap: 0s would make a flowlet of every packet"),
                "{wrong}"
            );
        }
        let wrong = problem(LEAVES, "kind = \"mp-hula\", ranks = 4");
        assert!(
            wrong
                .contains("switch.balancer.ranks: 4 next hops are to be kept, but no switch has more than 3"),
            "{wrong}"
        );
        assert_eq!(problem(LEAVES, "kind = \"mp-hula\", ranks = 3"), "");
        let wrong = problem(LEAVES, "kind = \"hula\", ranks = 3");
        assert!(wrong.contains("switch.balancer.ranks"), "hula has one: {wrong}");
        let wrong = problem(LEAVES, "kind = \"hula\", probe_interval = \"1ms\", failure_time = \"900us\"");
        assert!(wrong.contains("less than the probe interval, 1ms"), "{wrong}");
        let wrong = problem(LEAVES, "kind = \"letflo\"");
        assert!(wrong.contains("did you mean \"letflow\"?"), "{wrong}");
    }

    #[test]
    fn balancers_are_refused_where_they_cannot_serve_and_the_reason_is_told() {
        for (topology, serves_three) in [
            ("kind = \"fat-tree\"\nk = 4", true),
            ("kind = \"hpcc-fat-tree\"", true),
            (LEAVES, true),
            (DUMBBELL, false),
        ] {
            let wrong = problem(topology, "kind = \"hula\"");
            assert_eq!(wrong.is_empty(), serves_three, "{topology}: {wrong}");
            assert!(serves_three || wrong.contains("stand in one tier"), "{wrong}");
        }
        assert_eq!(problem(LEAVES, "kind = \"conga\""), "");
        let wrong = problem("kind = \"fat-tree\"\nk = 4", "kind = \"conga\"");
        assert!(wrong.contains("core0 stands in a third tier: set three_tier = true"), "{wrong}");
        assert_eq!(problem("kind = \"fat-tree\"\nk = 4", "kind = \"conga\", three_tier = true"), "");
        let wrong = problem(DUMBBELL, "kind = \"conga\"");
        assert!(wrong.contains("stand in one tier"), "{wrong}");
        let wrong = problem("kind = \"leaf-spine\"\nspines = 17", "kind = \"conga\"");
        assert!(wrong.contains("17 uplinks; the tag of 4 bits"), "{wrong}");
    }

    #[test]
    fn clove_is_refused_where_hosts_have_several_links() {
        let node = |name: &str, kind: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
        let link = |a: &str, b: &str| {
            format!("[[link]]\na = \"{a}\"\nb = \"{b}\"\nrate = \"100Gbps\"\ndelay = \"1us\"\n")
        };
        let nodes = [("h0", "host"), ("h1", "host"), ("a", "switch"), ("b", "switch")];
        let links = [("h0", "a"), ("h0", "b"), ("h1", "a"), ("a", "b")];
        let text =
            nodes.map(|(name, kind)| node(name, kind)).concat() + &links.map(|(a, b)| link(a, b)).concat();
        let path = std::env::temp_dir().join(format!("weftline-clove-{}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let wrong = problem(&format!("kind = \"file\"\nfile = \"{}\"", path.display()), "kind = \"clove\"");
        std::fs::remove_file(&path).unwrap();
        assert!(wrong.contains("\"clove\" is for hosts with one link, and h0 has 2"), "{wrong}");
    }

    #[test]
    fn packets_are_put_in_order_only_for_transports_that_ask_for_bytes_in_order() {
        let text = "[topology]\nkind = \"leaf-spine\"\n[transport]\nkind = \"phost\"\n[host]\nresequencing = { enabled = \
                    true }\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        let load = |sets: &[(String, String)]| {
            let scenario = Scenario::load(text, "s.toml", Path::new("."), sets, None, Hooks::default());
            scenario.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(load(&[]).contains("phost counts packets and takes them in any order"), "{}", load(&[]));
        assert_eq!(load(&[("transport.kind".into(), "tcp".into())]), "");
        let never =
            [("transport.kind".into(), "tcp".into()), ("host.resequencing.timeout".into(), "0s".into())];
        assert!(load(&never).contains("0s holds nothing"), "{}", load(&never));
    }

    #[test]
    fn a_transport_that_labels_every_packet_is_warned_of() {
        let text = "[topology]\nkind = \"leaf-spine\"\n[switch]\nbalancer = { kind = \"letflow\" }\n[transport]\nkind = \
                    \"phost\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        let load = |sets: &[(String, String)]| {
            let scenario = Scenario::load(text, "s.toml", Path::new("."), sets, None, Hooks::default());
            scenario.map(|scenario| scenario.warnings).unwrap_or_else(|error| panic!("{error}"))
        };
        let found = load(&[]);
        assert!(found.iter().any(|w| w.contains("phost gives every packet a label of its own")), "{found:?}");
        assert_eq!(load(&[("transport.spray".into(), "false".into())]), Vec::<String>::new());
    }

    #[test]
    fn networks_without_a_choice_need_no_reason() {
        for kind in ["hula", "mp-hula", "conga", "clove", "letflow", "drill", "presto"] {
            assert_eq!(problem("kind = \"star\"", &format!("kind = \"{kind}\"")), "");
        }
    }
}
