//! Different rates and delays for some links: `[[topology.override]] between = ["leaf0", "spine*"]`.

use super::Topology;
use super::pattern::fits;
use crate::units::{Rate, Time};

/// New properties of every link whose ends match the two patterns, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkOverride {
    pub between: (String, String),
    pub rate: Option<Rate>,
    pub delay: Option<Time>,
}

/// Applies the overrides in order; later ones replace earlier ones.
///
/// Errors: an override that matches no link, changes nothing, or sets a rate or delay of zero.
pub fn apply_overrides(topology: &mut Topology, overrides: &[LinkOverride]) -> Result<(), String> {
    for change in overrides {
        let (from, to) = (&change.between.0, &change.between.1);
        let between = format!("override between \"{from}\" and \"{to}\"");
        if change.rate.is_none() && change.delay.is_none() {
            return Err(format!("{between}: expected a rate, a delay, or both"));
        }
        if change.rate == Some(Rate(0)) || change.delay == Some(Time::ZERO) {
            return Err(format!("{between}: rate and delay must be greater than 0"));
        }
        let fitting = |pattern: &str| {
            let mut fit = vec![false; topology.nodes.len()];
            let nodes = topology.nodes_matching(pattern).map_err(|error| format!("{between}: {error}"))?;
            nodes.iter().for_each(|&n| fit[n as usize] = true);
            Ok::<_, String>(fit)
        };
        let (ends, other_ends) = (fitting(from)?, fitting(to)?);
        let mut found = false;
        for link in &mut topology.links {
            let (a, b) = (link.a as usize, link.b as usize);
            if (ends[a] && other_ends[b]) || (ends[b] && other_ends[a]) {
                found = true;
                link.rate = change.rate.unwrap_or(link.rate);
                link.delay = change.delay.unwrap_or(link.delay);
            }
        }
        if !found {
            return Err(format!("{between}: there is no link between them{}", hint(topology, from, to)));
        }
    }
    Ok(())
}

/// The nodes to which the first matching node is linked.
fn hint(topology: &Topology, from: &str, to: &str) -> String {
    let name = |n: u32| topology.nodes[n as usize].name.as_str();
    let link = topology.links.iter().find(|l| fits(from, name(l.a)) || fits(from, name(l.b)));
    match link {
        Some(l) if fits(from, name(l.a)) => {
            format!("; {} is linked to {}, not to {to}", name(l.a), name(l.b))
        }
        Some(l) => format!("; {} is linked to {}, not to {to}", name(l.b), name(l.a)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
