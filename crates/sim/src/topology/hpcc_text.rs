//! The text format of the HPCC simulator.
//!
//! The first line is `nodes switches links`, then the ids of the switches follow, then one link per line:
//! `node node rate delay error-rate`. Nodes that are not listed as switches are hosts. Node ids are kept,
//! because that simulator's ECMP hash depends on them, and the id of a host is its node id.
//!
//! Source: the authors' topology files. Tokens may be distributed over lines in any way, as in their reader.

use super::lines::{shown, text};
use super::{Link, Node, NodeId, NodeKind, Topology, TopologyError};
use crate::units::{Rate, Time};

/// Reads a topology in this format, without warnings.
pub fn read(bytes: &[u8], file: &str) -> Result<(Topology, Vec<String>), TopologyError> {
    let topology = text(bytes).and_then(parse).map_err(|error| error.in_file(file))?;
    topology.validate().map_err(|error| error.in_file(file))?;
    Ok((topology, Vec::new()))
}

fn parse(text: &str) -> Result<Topology, TopologyError> {
    let mut words = Words::new(text);
    let nodes = words.count("the number of nodes")?;
    let switches = words.count("the number of switches")?;
    let links = words.count("the number of links")?;
    check_header(nodes, switches, links, text.len())?;

    let mut is_switch = vec![false; nodes];
    for i in 0..switches {
        let (line, node) = words.node(nodes, &format!("id {} of {switches} switches", i + 1))?;
        if std::mem::replace(&mut is_switch[node as usize], true) {
            return Err(TopologyError::line(line, format!("switch {node} is listed twice")));
        }
    }
    let mut topology = Topology::default();
    let mut end = Ok(());
    for i in 0..links {
        let what = format!("link {} of {links}", i + 1);
        topology.links.push(words.link(nodes, &what)?);
        if i + 1 == links {
            end = words.end(links);
        }
    }
    end?;
    let kind = |n: usize| if is_switch[n] { NodeKind::Switch } else { NodeKind::Host };
    let prefix = |n: usize| if is_switch[n] { "switch" } else { "host" };
    topology.nodes =
        (0..nodes).map(|n| Node { name: format!("{}{n}", prefix(n)), kind: kind(n), tier: 0 }).collect();
    let hosts = topology.hosts();
    if hosts.iter().enumerate().any(|(i, &node)| i as NodeId != node) {
        topology.host_labels = hosts;
    }
    topology.find_tiers();
    Ok(topology)
}

/// Checks that a file of this size can contain these counts, before memory is allocated for them.
fn check_header(nodes: usize, switches: usize, links: usize, bytes: usize) -> Result<(), TopologyError> {
    let error = |message: String| Err(TopologyError::line(1, message));
    if switches > nodes {
        return error(format!("{switches} switches are more than the {nodes} nodes"));
    }
    // The shortest link is "0 1 1bps 1s 0\n"; a connected network has at most one node more than links.
    if links > bytes / 13 + 1 {
        return error(format!("{links} links cannot be in a file of {bytes} bytes: is it truncated?"));
    }
    if nodes > links + 1 {
        return error(format!("{nodes} nodes cannot be connected by {links} links"));
    }
    Ok(())
}

/// The words of the file with their line numbers.
struct Words<'t> {
    words: std::iter::Peekable<Box<dyn Iterator<Item = (usize, &'t str)> + 't>>,
    last_line: usize,
}

const LINK_FORM: &str = "`node node rate delay error-rate` such as `0 8 100Gbps 1000ns 0`";

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Words<'t> {
        let words =
            text.lines().enumerate().flat_map(|(i, line)| line.split_whitespace().map(move |w| (i + 1, w)));
        let words: Box<dyn Iterator<Item = (usize, &'t str)> + 't> = Box::new(words);
        Words { words: words.peekable(), last_line: 1 }
    }

    fn next(&mut self, what: &str) -> Result<(usize, &'t str), TopologyError> {
        match self.words.next() {
            Some((line, word)) => {
                self.last_line = line;
                Ok((line, word))
            }
            None => Err(TopologyError::line(
                self.last_line,
                format!("the file ends before {what}: is it truncated?"),
            )),
        }
    }

    fn count(&mut self, what: &str) -> Result<usize, TopologyError> {
        let (line, word) = self.next(what)?;
        let number = word.parse::<u32>().map_err(|_| {
            let form = "the first line is `nodes switches links`";
            TopologyError::line(line, format!("expected {what} ({form}), found {}", shown(word)))
        })?;
        Ok(number as usize)
    }

    fn node(&mut self, nodes: usize, what: &str) -> Result<(usize, NodeId), TopologyError> {
        let (line, word) = self.next(what)?;
        match word.parse::<NodeId>() {
            Ok(node) if (node as usize) < nodes => Ok((line, node)),
            Ok(node) => {
                let last = nodes.saturating_sub(1);
                Err(TopologyError::line(line, format!("{what}: unknown node {node}: nodes are 0 to {last}")))
            }
            Err(_) => {
                Err(TopologyError::line(line, format!("{what}: expected a node id, found {}", shown(word))))
            }
        }
    }

    fn link(&mut self, nodes: usize, what: &str) -> Result<Link, TopologyError> {
        let (line, a) = self.node(nodes, what)?;
        let (_, b) = self.node(nodes, what)?;
        let (_, rate) = self.next(what)?;
        let (_, delay) = self.next(what)?;
        let (_, loss) = self.next(what)?;
        if self.last_line != line {
            let message = format!("{what} is cut short: expected {LINK_FORM}");
            return Err(TopologyError::line(line, message));
        }
        let error = |message: String| TopologyError::line(line, format!("{what}: {message}"));
        let rate: Rate = rate.parse().map_err(|e: crate::units::UnitError| error(e.to_string()))?;
        let delay: Time = delay.parse().map_err(|e: crate::units::UnitError| error(e.to_string()))?;
        if rate.0 == 0 || delay.0 == 0 {
            return Err(error("rate and delay must be greater than 0".into()));
        }
        if a == b {
            return Err(error(format!("joins node {a} to itself")));
        }
        match loss.parse::<f64>() {
            Ok(0.0) => Ok(Link { a, b, rate, delay }),
            Ok(_) => {
                Err(error(format!("error rate {loss}: random loss on links is not supported, expected 0")))
            }
            Err(_) => Err(error(format!("expected an error rate (0), found {}", shown(loss)))),
        }
    }

    fn end(&mut self, links: usize) -> Result<(), TopologyError> {
        match self.words.peek() {
            None => Ok(()),
            Some(&(line, word)) => {
                let message =
                    format!("{} after the {links} links that the first line announces", shown(word));
                Err(TopologyError::line(line, message))
            }
        }
    }
}

#[cfg(test)]
mod tests;
