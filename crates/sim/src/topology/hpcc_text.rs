//! The text format of the HPCC simulator.
//!
//! First line `nodes switches links`, then the ids of the switches, then one link a line: `node node rate
//! delay error-rate`. Nodes that are not listed as switches are hosts. Node ids are used as they stand:
//! node 17 stays node 17, because that simulator's ECMP hash depends on them, and a host is called by its
//! node id.
//!
//! Source: the authors' topology files; lone tokens may be on any line, as their reader takes them.

use super::lines::{shown, text};
use super::{Link, Node, NodeId, NodeKind, Topology, TopologyError};
use crate::units::{Rate, Time};

/// Reads a topology in this format; no warnings so far.
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

/// The counts must be possible in a file of this many bytes, before memory is taken for them.
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

/// The words of the file with their lines.
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
            return Err(error("rate and delay must be more than 0".into()));
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
mod tests {
    use super::*;

    const PAIR: &str = "3 1 2\n1\n0 1 10Gbps 1000ns 0.000000\n2 1 10Gbps 2us 0\n";

    fn error(text: &str) -> String {
        read(text.as_bytes(), "t.txt").unwrap_err().to_string()
    }

    #[test]
    fn node_ids_stay_as_they_are_in_the_file() {
        let (t, warnings) = read(PAIR.as_bytes(), "t.txt").unwrap();
        assert!(warnings.is_empty());
        let names: Vec<&str> = t.nodes.iter().map(|n| n.name.as_str()).collect();
        assert_eq!(names, ["host0", "switch1", "host2"]);
        assert_eq!(t.host_labels, [0, 2]);
        assert_eq!(t.links[1], Link { a: 2, b: 1, rate: Rate::from_gbps(10), delay: Time::from_us(2) });
    }

    #[test]
    fn each_defect_is_told_with_its_line() {
        for (found, expected) in [
            ("", "t.txt: the file is empty"),
            ("3 1", "t.txt:1: the file ends before the number of links: is it truncated?"),
            (
                "a 1 2",
                "t.txt:1: expected the number of nodes (the first line is `nodes switches links`), found \"a\"",
            ),
            ("3 4 2\n", "t.txt:1: 4 switches are more than the 3 nodes"),
            ("4000000000 1 1\n1\n", "t.txt:1: 4000000000 nodes cannot be connected by 1 links"),
            ("3 1 99\n1\n", "t.txt:1: 99 links cannot be in a file of 9 bytes: is it truncated?"),
        ] {
            assert_eq!(error(found), expected);
        }
        for (from, to, expected) in [
            ("\n1\n", "\n7\n", "t.txt:2: id 1 of 1 switches: unknown node 7: nodes are 0 to 2"),
            ("2 1 10", "5 1 10", "t.txt:4: link 2 of 2: unknown node 5: nodes are 0 to 2"),
            ("2us", "2", "t.txt:4: link 2 of 2: \"2\" has no unit"),
            ("2us", "2parsec", "t.txt:4: link 2 of 2: unknown unit \"parsec\""),
            (
                "2us 0",
                "2us 0.01",
                "t.txt:4: link 2 of 2: error rate 0.01: random loss on links is not supported",
            ),
            (
                "1000ns 0.000000",
                "1000ns",
                "t.txt:3: link 1 of 2 is cut short: expected `node node rate delay",
            ),
            (
                "\n2 1 10Gbps 2us 0\n",
                "\n2 1 10Gb",
                "t.txt:4: the file ends before link 2 of 2: is it truncated?",
            ),
            ("2us 0\n", "2us 0\n0 1", "t.txt:5: \"0\" after the 2 links that the first line announces"),
            ("2 1 10", "1 1 10", "t.txt:4: link 2 of 2: joins node 1 to itself"),
            ("2 1 10Gbps", "2 1 0Gbps", "t.txt:4: link 2 of 2: rate and delay must be more than 0"),
            ("2 1 10", "0 1 10", "t.txt: host \"host2\" has no link"),
        ] {
            let text = PAIR.replacen(from, to, 1);
            assert!(error(&text).starts_with(expected), "{}", error(&text));
        }
        let binary = read(b"3 1 2\n\xff\xfe", "t.txt").unwrap_err().to_string();
        assert!(binary.starts_with("t.txt:2: not UTF-8 text"), "{binary}");
    }
}
