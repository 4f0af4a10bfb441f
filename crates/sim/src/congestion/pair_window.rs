//! Window controllers as queue pairs may have them: which ones, and under which names.
//!
//! A law of [`window`] is written for TCP, and a queue pair of RDMA can bring it all that it sees: bytes acknowledged, round-trip
//! times, marks, losses, samples of the delivery rate. Those that couple the subflows of a multipath connection are left out, as a
//! queue pair has one path. Where a controller of queue pairs has a law's name already, the law is `tcp.NAME`: `dctcp` steers a
//! rate, as in the HPCC authors' simulator, and `tcp.dctcp` a window, as RFC 8257 says.

use super::window::{self, WindowConfig};
use std::sync::OnceLock;

/// What the name of a law begins with where a controller of queue pairs has it already.
const OF_TCP: &str = "tcp.";

/// A window controller that steers a queue pair.
#[derive(Debug, Clone, PartialEq)]
pub struct PairWindow {
    /// In scenarios and results.
    pub name: &'static str,
    pub law: Box<WindowConfig>,
    /// Packets of the first window.
    pub initial: u32,
}

/// A law by its two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// As the controller of a queue pair.
    pub name: &'static str,
    /// As that of TCP.
    pub law: &'static str,
    pub title: &'static str,
}

/// The laws that a queue pair may have.
pub fn laws() -> &'static [Named] {
    static LAWS: OnceLock<Vec<Named>> = OnceLock::new();
    LAWS.get_or_init(|| {
        let single = window::KINDS.iter().filter(|(law, _)| !window::couples(law));
        single.map(|&(law, title)| Named { name: name_of(law), law, title }).collect()
    })
}

fn name_of(law: &'static str) -> &'static str {
    let taken = super::KINDS.iter().any(|(kind, _)| *kind == law);
    // Once for a law and program: a handful of bytes.
    if taken { format!("{OF_TCP}{law}").leak() } else { law }
}

/// Names of all controllers that a queue pair may have, each with one line: those of its own, then the laws.
pub fn kinds() -> &'static [(&'static str, &'static str)] {
    static KNOWN: OnceLock<Vec<(&'static str, &'static str)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let laws = laws().iter().map(|named| (named.name, named.title));
        super::kinds().iter().copied().chain(laws).collect()
    })
}

/// The law that a queue pair's controller of this name is; none: it is no law, or there is none.
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
