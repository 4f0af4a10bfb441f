//! Clos: two or three tiers of switches, given by the links of each; oversubscription is the number of links, not their rate.
//!
//! Two tiers: every leaf has `uplinks` links, `bundle` of them to each spine. Three tiers: within a pod the same, to the pod's
//! aggregation switches; each of these has `core_uplinks` links, `core_bundle` of them to each core of its plane. Aggregation
//! switches of one place in their pods share a plane of cores, so that every core has a link (a bundle) to every pod.
//!
//! Source: Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008 (three tiers,
//! planes of cores); the parameters of htsim's topology files, which [`htsim`](super::htsim) reads into this.

use super::TopologyParameters;
use super::network::{LinkSpec, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::Rate;

/// Nodes in the order hosts, leaves, spines (of three tiers: aggregation switches, pod by pod, then cores, plane by plane).
#[derive(Debug, Clone, PartialEq)]
pub struct Clos {
    pub tiers: u64,
    pub pods: u64,
    /// Of a pod; of two tiers, of the network.
    pub leaves: u64,
    pub hosts_per_leaf: u64,
    /// Links of a leaf to the tier above; 0: by `oversubscription`.
    pub uplinks: u64,
    pub bundle: u64,
    /// Links of an aggregation switch to cores; 0: by `core_oversubscription`.
    pub core_uplinks: u64,
    pub core_bundle: u64,
    pub oversubscription: f64,
    pub core_oversubscription: f64,
    pub host_link: LinkSpec,
    pub fabric_link: LinkSpec,
    pub core_link: LinkSpec,
}

impl Default for Clos {
    fn default() -> Clos {
        let link = LinkSpec { rate: Rate::from_gbps(400), ..LinkSpec::FABRIC };
        Clos {
            tiers: 2,
            pods: 2,
            leaves: 4,
            hosts_per_leaf: 8,
            uplinks: 0,
            bundle: 1,
            core_uplinks: 0,
            core_bundle: 1,
            oversubscription: 1.0,
            core_oversubscription: 1.0,
            host_link: link,
            fabric_link: link,
            core_link: link,
        }
    }
}

/// The links between two tiers: how many a switch below has, and how many of them go to one switch above.
struct Above {
    links: u64,
    bundle: u64,
}

impl Above {
    /// Links as given, or so that `under` bit/s below a switch are `ratio` times those of its links.
    fn of(
        (key, links): (&'static str, u64),
        (ratio_key, ratio): (&'static str, f64),
        (bundle_key, bundle): (&'static str, u64),
        under: f64,
        rate: Rate,
    ) -> Result<Above, TopologyError> {
        let links = match links {
            0 => {
                let exact = under / (rate.0 as f64 * ratio);
                if !(0.999..=1e6).contains(&exact) || (exact - exact.round()).abs() > 1e-6 * exact {
                    let message = format!(
                        "{ratio} would need {exact:.3} links of {rate} for {} below a switch, expected a whole number: set {key}",
                        Rate(under as u64)
                    );
                    return Err(TopologyError::key(ratio_key, message));
                }
                exact.round() as u64
            }
            given if ratio != 1.0 => {
                let message = format!("conflicts with {key} = {given}: give one of the two");
                return Err(TopologyError::key(ratio_key, message));
            }
            given => given,
        };
        check_counts(&[(key, links), (bundle_key, bundle)])?;
        if links % bundle != 0 {
            let message = format!("{links} links cannot be divided into bundles of {bundle}");
            return Err(TopologyError::key(bundle_key, message));
        }
        Ok(Above { links, bundle })
    }

    /// Switches above that a switch below is linked to.
    fn switches(&self) -> u64 {
        self.links / self.bundle
    }
}

impl TopologyParameters for Clos {
    const DOC: SchemeDoc = SchemeDoc {
        name: "clos",
        title: "two or three tiers of switches by their links, with bundles and oversubscription by links",
        source: "Al-Fares et al., SIGCOMM 2008; the parameters of htsim's topology files",
        validation: "Counts, capacities of tiers and distances; a fat tree of the same counts has the same ones \
                     (topology/clos.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> Clos {
        let d = Clos::default();
        let core_help = "Links of an aggregation switch to cores; 0: by core_oversubscription.";
        let ratio_help = "Capacity of a leaf's hosts over that of its uplinks; sets uplinks.";
        let core_ratio_help = "Capacity of an aggregation switch's links down over that of its links to cores; sets core_uplinks.";
        let bundle_help = "Parallel links between a leaf and a switch above it.";
        let fabric_link = LinkSpec::read_fabric(p, d.fabric_link);
        let rate = p.rate_or_auto("core_link.rate", "Rate of the links to cores; auto: that of fabric_link.");
        let clos = Clos {
            tiers: p.integer("tiers", d.tiers as i64, (2, 3), "Tiers of switches.") as u64,
            pods: read_count(p, "pods", d.pods, 1, "Pods; with two tiers not used."),
            leaves: read_count(p, "leaves", d.leaves, 1, "Leaves of a pod; with two tiers of the network."),
            hosts_per_leaf: read_count(p, "hosts_per_leaf", d.hosts_per_leaf, 1, "Hosts per leaf."),
            uplinks: read_count(
                p,
                "uplinks",
                d.uplinks,
                0,
                "Links of a leaf to switches above; 0: by oversubscription.",
            ),
            bundle: read_count(p, "bundle", d.bundle, 1, bundle_help),
            oversubscription: p.number("oversubscription", d.oversubscription, (0.001, 1000.0), ratio_help),
            core_uplinks: read_count(p, "core_uplinks", d.core_uplinks, 0, core_help),
            core_bundle: read_count(
                p,
                "core_bundle",
                d.core_bundle,
                1,
                "Parallel links between an aggregation switch and a core.",
            ),
            core_oversubscription: p.number(
                "core_oversubscription",
                d.core_oversubscription,
                (0.001, 1000.0),
                core_ratio_help,
            ),
            host_link: LinkSpec::read_host(p, d.host_link),
            fabric_link,
            core_link: LinkSpec {
                rate: rate.unwrap_or(fabric_link.rate),
                delay: p.time("core_link.delay", d.core_link.delay, "One-way delay of the links to cores."),
            },
        };
        if clos.tiers == 2 {
            let of_cores =
                ["core_uplinks", "core_bundle", "core_oversubscription", "core_link.rate", "core_link.delay"];
            for key in of_cores.into_iter().chain(["pods"]) {
                p.without_effect(key, || "has no effect with two tiers: set tiers = 3".to_string());
            }
        }
        clos
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        let Clos { leaves, hosts_per_leaf, .. } = *self;
        let pods = if self.tiers == 3 { self.pods } else { 1 };
        check_counts(&[("pods", pods), ("leaves", leaves), ("hosts_per_leaf", hosts_per_leaf)])?;
        self.host_link.check_host()?;
        self.fabric_link.check_fabric()?;
        let up = Above::of(
            ("uplinks", self.uplinks),
            ("oversubscription", self.oversubscription),
            ("bundle", self.bundle),
            hosts_per_leaf as f64 * self.host_link.rate.0 as f64,
            self.fabric_link.rate,
        )?;
        let aggs = up.switches();
        let core = match self.tiers {
            2 => None,
            _ => {
                self.core_link.check("core_link.rate", "core_link.delay")?;
                Some(Above::of(
                    ("core_uplinks", self.core_uplinks),
                    ("core_oversubscription", self.core_oversubscription),
                    ("core_bundle", self.core_bundle),
                    (leaves * up.bundle) as f64 * self.fabric_link.rate.0 as f64,
                    self.core_link.rate,
                )?)
            }
        };
        let wide = u128::from;
        let hosts = wide(pods) * wide(leaves) * wide(hosts_per_leaf);
        let (all_leaves, all_aggs) = (wide(pods) * wide(leaves), wide(pods) * wide(aggs));
        let cores = core.as_ref().map_or(0, |core| wide(aggs) * wide(core.switches()));
        let core_links = core.as_ref().map_or(0, |core| all_aggs * wide(core.links));
        let links = hosts + all_leaves * wide(up.links) + core_links;
        let mut network = Network::new(hosts + all_leaves + all_aggs + cores, links)?;
        network.hosts(hosts as u64);
        let leaf = network.switches("leaf", all_leaves as u64, 1);
        let agg = network.switches(if core.is_some() { "agg" } else { "spine" }, all_aggs as u64, 2);
        let first_core = network.switches("core", cores as u64, 3);
        for host in 0..hosts as u64 {
            network.link(host, leaf + host / hosts_per_leaf, self.host_link);
        }
        for l in 0..all_leaves as u64 {
            let first = agg + l / leaves * aggs;
            (0..up.links).for_each(|n| network.link(leaf + l, first + n / up.bundle, self.fabric_link));
        }
        if let Some(core) = core {
            for a in 0..all_aggs as u64 {
                let plane = first_core + a % aggs * core.switches();
                (0..core.links).for_each(|n| network.link(agg + a, plane + n / core.bundle, self.core_link));
            }
        }
        network.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fat_tree::FatTree;
    use super::super::{NextHopOrder, Routes};
    use super::*;

    /// Switches of each tier, and links.
    fn counts(topology: &Topology) -> ([usize; 3], usize) {
        let tier = |tier| topology.nodes.iter().filter(|node| node.tier == tier).count();
        ([tier(1), tier(2), tier(3)], topology.links.len())
    }

    #[test]
    fn oversubscription_is_a_number_of_links() {
        let clos = Clos { leaves: 8, hosts_per_leaf: 16, ..Clos::default() };
        for (ratio, spines) in [(1.0, 16), (4.0, 4), (8.0, 2), (16.0, 1), (0.5, 32)] {
            let topology = Clos { oversubscription: ratio, ..clos.clone() }.build().expect("a network");
            assert_eq!(counts(&topology), ([8, spines, 0], 128 + 8 * spines));
            assert!(topology.links.iter().all(|link| link.rate == Rate::from_gbps(400)));
        }
        let error = Clos { oversubscription: 3.0, ..clos.clone() }.build().expect_err("5.33 links");
        assert!(error.to_string().contains("5.333 links of 400Gbps"), "{error}");
        let both = Clos { oversubscription: 2.0, uplinks: 3, ..clos.clone() }.build().expect_err("both");
        assert!(both.to_string().contains("conflicts with uplinks = 3"), "{both}");
        let error = Clos { uplinks: 3, bundle: 2, ..clos }.build().expect_err("a torn bundle");
        assert!(error.to_string().contains("3 links cannot be divided into bundles of 2"), "{error}");
    }

    #[test]
    fn three_tiers_with_the_counts_of_a_fat_tree_are_one() {
        let k = 4;
        let clos = Clos { tiers: 3, pods: k, leaves: k / 2, hosts_per_leaf: k / 2, ..Clos::default() };
        let (clos, tree) = (clos.build().expect("a network"), FatTree { k, ..FatTree::default() }.build());
        let tree = tree.expect("a fat tree");
        assert_eq!(counts(&clos), counts(&tree));
        let ways = |topology: &Topology, from: u32, to: u32| {
            let routes = Routes::compute(topology, &|_| true, NextHopOrder::ByPort);
            let node = topology.links[from as usize].b;
            routes.next_hops(node, to).len()
        };
        for to in [1, 2, 15] {
            assert_eq!(ways(&clos, 0, to), ways(&tree, 0, to), "to host {to}");
        }
    }

    #[test]
    fn bundles_are_parallel_links_and_every_core_reaches_every_pod() {
        let clos = Clos {
            tiers: 3,
            pods: 3,
            leaves: 2,
            hosts_per_leaf: 4,
            uplinks: 4,
            bundle: 2,
            core_uplinks: 4,
            core_bundle: 2,
            ..Clos::default()
        };
        let topology = clos.build().expect("a network");
        // Two aggregation switches a pod, two cores for each of their places.
        assert_eq!(counts(&topology), ([6, 6, 4], 24 + 6 * 4 + 6 * 4));
        let first = topology.nodes.len() as u32 - 4;
        for core in first..first + 4 {
            let mut pods: Vec<u32> =
                topology.links.iter().filter(|link| link.b == core).map(|link| (link.a - 30) / 2).collect();
            pods.sort_unstable();
            assert_eq!(pods, [0, 0, 1, 1, 2, 2]);
        }
    }
}
