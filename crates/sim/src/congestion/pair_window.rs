//! The window controllers that queue pairs can use, and their names there.
//!
//! A law of [`window`] is written for TCP, and a queue pair of RDMA can provide all its input: bytes
//! acknowledged, round-trip times, marks, losses, samples of the delivery rate. Laws that couple the subflows
//! of a multipath connection are excluded, because a queue pair has one path. If a controller of queue pairs
//! has the same name, the law is called `tcp.NAME`: `dctcp` sets a rate, as in the HPCC authors' simulator,
//! and `tcp.dctcp` a window, as in RFC 8257.

use super::window::{self, WindowConfig};
use std::sync::OnceLock;

/// Prefix of a law's name if a controller of queue pairs has the same name.
const OF_TCP: &str = "tcp.";

/// A window controller of a queue pair.
#[derive(Debug, Clone, PartialEq)]
pub struct PairWindow {
    /// The name in scenarios and results.
    pub name: &'static str,
    pub law: Box<WindowConfig>,
    /// Initial window in packets.
    pub initial: u32,
}

/// The two names of a law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// As the controller of a queue pair.
    pub name: &'static str,
    /// As a controller of TCP.
    pub law: &'static str,
    pub title: &'static str,
}

/// The laws that a queue pair can use.
pub fn laws() -> &'static [Named] {
    static LAWS: OnceLock<Vec<Named>> = OnceLock::new();
    LAWS.get_or_init(|| {
        let single = window::KINDS.iter().filter(|(law, _)| !window::couples(law));
        single.map(|&(law, title)| Named { name: name_of(law), law, title }).collect()
    })
}

fn name_of(law: &'static str) -> &'static str {
    let taken = super::KINDS.iter().any(|(kind, _)| *kind == law);
    // Leaks a few bytes, once per law and process.
    if taken { format!("{OF_TCP}{law}").leak() } else { law }
}

/// Names of all controllers that a queue pair can use, each with one line: its own, then the laws.
pub fn kinds() -> &'static [(&'static str, &'static str)] {
    static KNOWN: OnceLock<Vec<(&'static str, &'static str)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let laws = laws().iter().map(|named| (named.name, named.title));
        super::kinds().iter().copied().chain(laws).collect()
    })
}

/// The law with this name as the controller of a queue pair; none if there is none.
pub fn law(name: &str) -> Option<&'static Named> {
    laws().iter().find(|named| named.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_prefix_and_laws_for_several_paths_are_left_out() {
        assert_eq!(law("newreno").map(|named| named.law), Some("newreno"));
        assert_eq!(law("tcp.dctcp").map(|named| named.law), Some("dctcp"));
        for other in ["dctcp", "tcp.newreno", "lia", "olia", "balia", "hpcc", ""] {
            assert_eq!(law(other), None, "{other}");
        }
        let mut names: Vec<&str> = kinds().iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "no name twice");
    }
}
