//! The topology files of htsim (`.topo`): `Nodes`, `Tiers`, `Podsize`, then of every tier from the leaves on a line `Tier N` and its
//! keys. They describe a [`Clos`].
//!
//! A tier's `Downlink_` keys are of the links to the tier below it. `Switch_Latency_ns` is the time of a packet in a switch: half of
//! it is added to every link of the switch, so that the latency between any two hosts is the same. Sizes of queues are
//! not of the topology: a warning names them.
//!
//! Source: ultraethernet/uet-htsim, htsim/sim/datacenter (its topology files, and what it makes of them).

use super::clos::Clos;
use super::lines::{shown, text};
use super::network::{LinkSpec, MAX_COUNT};
use super::{Topology, TopologyError, TopologyParameters};
use crate::files;
use crate::parameters::nearest;
use crate::units::{Rate, Time};
use std::path::Path;

/// Keys of a tier, in small letters.
const KEYS: [&str; 9] = [
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "oversubscribed",
    "bundle",
    "queue_up",
    "queue_down",
];
const SPEED: usize = 0;
const RADIX_DOWN: usize = 1;
const RADIX_UP: usize = 2;
const LATENCY: usize = 3;
const SWITCH_LATENCY: usize = 4;
const OVERSUBSCRIBED: usize = 5;
const BUNDLE: usize = 6;
const QUEUES: [usize; 2] = [7, 8];
/// A longer time is a mistake.
const MAX_LATENCY_NS: f64 = 1e9;

/// A number, and its line.
type Given = Option<(f64, usize)>;

#[derive(Default)]
struct Tier {
    /// Of the line that begins it.
    line: usize,
    given: [Given; 9],
}

/// Reads a topology in this format. The strings are warnings.
pub fn read(bytes: &[u8], file: &str) -> Result<(Topology, Vec<String>), TopologyError> {
    let (clos, warnings) = text(bytes).and_then(parse).map_err(|error| error.in_file(file))?;
    // Its errors name keys of a scenario: the numbers were checked here.
    let topology = clos.build().map_err(|error| TopologyError { key: None, ..error }.in_file(file))?;
    Ok((topology, warnings.into_iter().map(|warning| format!("{file}:{warning}")).collect()))
}

/// Reads a file of this format. The strings are warnings.
pub fn read_file(path: &Path) -> Result<(Topology, Vec<String>), String> {
    let name = path.display().to_string();
    let bytes = files::read(path, files::MAX_BYTES).map_err(|message| format!("{name}: {message}"))?;
    read(&bytes, &name).map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<(Clos, Vec<String>), TopologyError> {
    let (mut head, mut tiers): ([Given; 3], Vec<Tier>) = ([None; 3], Vec::new());
    const HEAD: [&str; 3] = ["nodes", "tiers", "podsize"];
    for (at, line) in text.lines().enumerate() {
        let (at, line) = (at + 1, line.split('#').next().unwrap_or("").trim());
        if line.is_empty() {
            continue;
        }
        let fail = |message: String| TopologyError::line(at, message);
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[word, value] = &words[..] else {
            return Err(fail(format!("expected a key and a number, found {}", shown(line))));
        };
        let key = word.to_ascii_lowercase();
        let number = value.parse::<f64>().ok().filter(|number| (0.0..1e15).contains(number));
        let number =
            number.ok_or_else(|| fail(format!("{word}: expected a number, found {}", shown(value))))?;
        if key == "tier" {
            if number != tiers.len() as f64 {
                let message = format!("expected Tier {}, found Tier {value}", tiers.len());
                return Err(fail(format!("{message}: tiers come in order, from 0, the leaves")));
            }
            tiers.push(Tier { line: at, ..Tier::default() });
            continue;
        }
        let known: (&[&str], &mut [Given]) = match tiers.last_mut() {
            None => (&HEAD, &mut head),
            Some(tier) => (&KEYS, &mut tier.given),
        };
        let Some(place) = known.0.iter().position(|name| *name == key) else {
            let near = nearest(&key, known.0.iter().copied());
            let near = near.map_or(String::new(), |near| format!(": did you mean \"{near}\"?"));
            return Err(fail(format!("unknown key \"{word}\"{near} (known here: {})", known.0.join(", "))));
        };
        if known.1[place].replace((number, at)).is_some() {
            return Err(fail(format!("{word} comes twice")));
        }
    }
    let last = text.lines().count().max(1);
    let [nodes, count, pod] = [0, 1, 2].map(|place| whole(head[place], HEAD[place], last));
    let (nodes, count) = (nodes?, count?);
    if !(2..=3).contains(&count) || tiers.len() as u64 != count {
        let message = format!("Tiers {count}, and the lines of {} tiers: expected 2 or 3", tiers.len());
        return Err(TopologyError::line(head[1].map_or(last, |given| given.1), message));
    }
    let pod = if count == 2 && head[2].is_none() { nodes } else { pod? };
    clos_of(nodes, pod, &tiers, head[2].map_or(last, |given| given.1))
}

/// A whole number of at least 1; `line`: where it is missed.
fn whole(given: Given, key: &str, line: usize) -> Result<u64, TopologyError> {
    match given {
        Some((number, _)) if number >= 1.0 && number <= MAX_COUNT as f64 && number.fract() == 0.0 => {
            Ok(number as u64)
        }
        Some((number, at)) => {
            let message = format!("{key} {number}: expected a whole number from 1 to {MAX_COUNT}");
            Err(TopologyError::line(at, message))
        }
        None => Err(TopologyError::line(line, format!("expected the key {key}, which is missing"))),
    }
}

impl Tier {
    fn whole(&self, key: usize) -> Result<u64, TopologyError> {
        whole(self.given[key], KEYS[key], self.line)
    }

    /// Links between this tier and the one below, where one end is a switch there.
    fn bundle(&self) -> Result<u64, TopologyError> {
        if self.given[BUNDLE].is_none() { Ok(1) } else { self.whole(BUNDLE) }
    }

    fn nanoseconds(&self, key: usize) -> Result<f64, TopologyError> {
        match self.given[key] {
            Some((number, at)) if number > MAX_LATENCY_NS => {
                Err(TopologyError::line(at, format!("{} {number}: longer than a second", KEYS[key])))
            }
            given => Ok(given.map_or(0.0, |given| given.0)),
        }
    }

    /// Links to the tier below, with half of the time in the switches at their ends.
    fn link(&self, below: Option<&Tier>) -> Result<LinkSpec, TopologyError> {
        let gbps = self.given[SPEED].ok_or_else(|| {
            TopologyError::line(self.line, format!("expected the key {}, which is missing", KEYS[SPEED]))
        })?;
        let below = below.map_or(Ok(0.0), |tier| tier.nanoseconds(SWITCH_LATENCY))?;
        let ns = self.nanoseconds(LATENCY)? + (self.nanoseconds(SWITCH_LATENCY)? + below) / 2.0;
        let spec =
            LinkSpec { rate: Rate((gbps.0 * 1e9).round() as u64), delay: Time((ns * 1e3).round() as u64) };
        let found = || format!("Downlink_speed_Gbps {} and {ns} ns: both must be greater than 0", gbps.0);
        spec.check("", "").map_err(|_| TopologyError::line(gbps.1, found()))?;
        Ok(spec)
    }
}

fn clos_of(nodes: u64, pod: u64, tiers: &[Tier], line: usize) -> Result<(Clos, Vec<String>), TopologyError> {
    let hosts_per_leaf = tiers[0].whole(RADIX_DOWN)?;
    let divides = |whole: u64, part: u64, what: &str| {
        let message = format!("{whole} {what} of {part}: expected a multiple of {part}");
        if whole % part == 0 { Ok(whole / part) } else { Err(TopologyError::line(line, message)) }
    };
    let pods = divides(nodes, pod, "nodes in pods")?;
    let leaves = divides(pod, hosts_per_leaf, "nodes of a pod under leaves")?;
    if tiers.len() == 2 && pods > 1 {
        let message = format!("Podsize {pod}: two tiers are one pod, of {nodes} nodes");
        return Err(TopologyError::line(line, message));
    }
    // What stands above a switch has a bundle to each of the switches, or pods, below it.
    let mut warnings = Vec::new();
    let mut links = Vec::new();
    for (at, below) in [leaves, pods].into_iter().enumerate().take(tiers.len() - 1) {
        let (lower, upper) = (&tiers[at], &tiers[at + 1]);
        let (up, down, bundle) = (lower.whole(RADIX_UP)?, upper.whole(RADIX_DOWN)?, upper.bundle()?);
        if up % bundle != 0 || down != below * bundle {
            let message = format!(
                "tier {}: {up} links up in bundles of {bundle}, and {down} links down from each switch above: expected whole \
                 bundles, and {below} of them down, one to each {} below",
                at,
                if at == 0 { "leaf" } else { "pod" }
            );
            return Err(TopologyError::line(upper.line, message));
        }
        let (host_side, up_side) = (lower.whole(RADIX_DOWN)? as f64, up as f64);
        let speed = |tier: &Tier| tier.given[SPEED].map_or(1.0, |given| given.0);
        let ratio = host_side * speed(lower) / (up_side * speed(upper));
        if let Some((says, at)) = lower.given[OVERSUBSCRIBED].filter(|given| (given.0 - ratio).abs() > 1e-6) {
            warnings.push(format!("{at}: Oversubscribed {says}: the links make it {ratio}, and they count"));
        }
        links.push((up, bundle));
    }
    let last = &tiers[tiers.len() - 1];
    if let Some((_, at)) = last.given[RADIX_UP].filter(|given| given.0 > 0.0) {
        return Err(TopologyError::line(at, "Radix_Up: the highest tier has no links up"));
    }
    let queues = tiers.iter().find_map(|tier| QUEUES.into_iter().find_map(|key| tier.given[key]));
    if let Some((bytes, at)) = queues {
        warnings.push(format!(
            "{at}: a queue of {bytes} bytes: queues are not of the topology; set `switch.buffer` or a queue discipline"
        ));
    }
    let core = links.get(1).copied().unwrap_or((1, 1));
    let clos = Clos {
        tiers: tiers.len() as u64,
        pods,
        leaves,
        hosts_per_leaf,
        uplinks: links[0].0,
        bundle: links[0].1,
        core_uplinks: core.0,
        core_bundle: core.1,
        host_link: tiers[0].link(None)?,
        fabric_link: tiers[1].link(Some(&tiers[0]))?,
        core_link: tiers.get(2).map_or(Ok(Clos::default().core_link), |tier| tier.link(Some(&tiers[1])))?,
        ..Clos::default()
    };
    Ok((clos, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# A leaf-spine\nNodes 128\nTiers 2\r\nPodsize 128\n\nTier 0\nDownlink_speed_Gbps 400\nRadix_Down 16\n\
        Radix_Up 16\nDownlink_Latency_ns 500\nOversubscribed 1\nSwitch_Latency_ns 0\n\nTier 1\nDownlink_speed_Gbps 400\n\
        Radix_Down 8\nDownlink_Latency_ns 500\nSwitch_Latency_ns 0\n";
    const THREE: &str = "Nodes 24\nTiers 3\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\n\
        Downlink_Latency_ns 1000\nSwitch_Latency_ns 300\nOversubscribed 4\nTier 1\nDownlink_speed_Gbps 200\nRadix_Down 4\n\
        Radix_Up 2\nDownlink_Latency_ns 500\nSwitch_Latency_ns 500\nBundle 2\nQueue_Up 100000\nTier 2\nDownlink_speed_Gbps 400\n\
        Radix_Down 3\nDownlink_Latency_ns 2000\n";

    fn counts(topology: &Topology) -> [usize; 4] {
        [0, 1, 2, 3].map(|tier| topology.nodes.iter().filter(|node| node.tier == tier).count())
    }

    #[test]
    fn two_tiers_are_leaves_and_spines() {
        let (topology, warnings) = read(TWO.as_bytes(), "a.topo").expect("a network");
        assert_eq!((counts(&topology), topology.links.len()), ([128, 8, 16, 0], 128 + 8 * 16));
        let links =
            |link: &super::super::Link| (link.rate, link.delay) == (Rate::from_gbps(400), Time::from_ns(500));
        assert!(topology.links.iter().all(links) && warnings.is_empty(), "{warnings:?}");
        assert_eq!(topology.nodes[128].name, "leaf0");
    }

    #[test]
    fn three_tiers_have_bundles_and_half_of_a_switch_on_each_of_its_links() {
        let (topology, warnings) = read(THREE.as_bytes(), "b.topo").expect("a network");
        assert_eq!((counts(&topology), topology.links.len()), ([24, 6, 6, 4], 24 + 6 * 4 + 6 * 2));
        let of = |link: usize| (topology.links[link].rate, topology.links[link].delay.0 / 1000);
        assert_eq!(of(0), (Rate::from_gbps(100), 1000 + 150));
        assert_eq!(of(24), (Rate::from_gbps(200), 500 + 150 + 250));
        assert_eq!(of(48), (Rate::from_gbps(400), 2000 + 250));
        let all = warnings.join("\n");
        assert!(all.contains("b.topo:10: Oversubscribed 4: the links make it 0.5"), "{all}");
        assert!(all.contains("b.topo:18: a queue of 100000 bytes"), "{all}");
    }

    #[test]
    fn an_error_names_the_line_and_what_was_expected() {
        for (from, to, expected) in [
            ("Nodes 128", "Nodes many", ":2: Nodes: expected a number, found \"many\""),
            ("Nodes 128\n", "", "expected the key nodes, which is missing"),
            ("Radix_Up 16", "Radix_Upp 16", ":9: unknown key \"Radix_Upp\": did you mean \"radix_up\"?"),
            ("Radix_Up 16\n", "", ":6: expected the key radix_up, which is missing"),
            ("Radix_Down 8", "Radix_Down 9", ":14: tier 0: 16 links up in bundles of 1, and 9 links down"),
            ("Radix_Down 16", "Radix_Down 15", ":4: 128 nodes of a pod under leaves of 15"),
            ("Podsize 128", "Podsize 64", ":4: Podsize 64: two tiers are one pod"),
            ("Tier 1", "Tier 2", ":14: expected Tier 1, found Tier 2"),
            ("Tiers 2", "Tiers 3", ":3: Tiers 3, and the lines of 2 tiers"),
            ("Downlink_speed_Gbps 400", "Downlink_speed_Gbps 0", ":7: Downlink_speed_Gbps 0 and 500 ns"),
            ("Oversubscribed 1", "Oversubscribed 1 x", ":11: expected a key and a number"),
            ("Nodes 128", "Nodes 1e300", ":2: Nodes: expected a number"),
        ] {
            assert!(TWO.contains(from), "{from}");
            let error = read(TWO.replacen(from, to, 1).as_bytes(), "a.topo").expect_err(to).to_string();
            assert!(error.starts_with("a.topo") && error.contains(expected), "{to}: {error}");
        }
        assert!(read(b"", "a.topo").is_err() && read(&[0xff, 0], "a.topo").is_err());
    }
}
