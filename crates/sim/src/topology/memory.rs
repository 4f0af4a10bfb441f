//! What a network takes in memory, and how large a network may be: known from its numbers of nodes and links
//! before anything is allocated.

use super::TopologyError;
use super::validity::{MAX_LINKS, MAX_NODES};
use crate::machine;
use crate::units::{Bytes, two_digits};

/// Bytes of a run per node (names and state of hosts and switches) and per link (two ports, their totals and
/// their places in lists), before the first packet. For a fat tree with k = 74 they give 586 MB, where the
/// estimate of a run says 579 MB and a run held 511 MB.
const NODE_BYTES: u128 = 1200;
const LINK_BYTES: u128 = 1500;

/// Returns about what a run takes for its network.
pub fn network_bytes(nodes: u128, links: u128) -> Bytes {
    let bytes = nodes.saturating_mul(NODE_BYTES).saturating_add(links.saturating_mul(LINK_BYTES));
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Refuses networks with more nodes or links than can be numbered, or that do not fit this machine's memory;
/// the message has the memory that they would take.
pub fn check_size(nodes: u128, links: u128) -> Result<(), TopologyError> {
    check_size_on(machine::memory().map(|memory| memory.total), nodes, links)
}

fn check_size_on(machine: Option<Bytes>, nodes: u128, links: u128) -> Result<(), TopologyError> {
    let needed = network_bytes(nodes, links);
    let take = format!("a run would take about {} for the network alone", Bytes(two_digits(needed.0)));
    for (what, found, limit) in [("nodes", nodes, MAX_NODES), ("links", links, MAX_LINKS)] {
        if found > limit as u128 {
            let message = format!(
                "{found} {what} are more than the limit of {limit}, to which the engine's indices reach; {take}"
            );
            return Err(TopologyError::new(message));
        }
    }
    match machine {
        Some(machine) if needed > machine => Err(TopologyError::new(format!(
            "{nodes} nodes and {links} links are more than fit this machine: {take}, and it has {}",
            Bytes(two_digits(machine.0))
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_is_too_large_says_what_it_would_take() {
        let error = |machine, nodes, links| match check_size_on(machine, nodes, links) {
            Ok(()) => String::new(),
            Err(error) => error.message,
        };
        let machine = Some(Bytes(16_000_000_000));
        assert_eq!(error(machine, 1_056_000, 3_072_000), "");
        assert_eq!(
            error(machine, 8_500_000, 24_576_000),
            "8500000 nodes and 24576000 links are more than fit this machine: a run would take about 47GB for the \
             network alone, and it has 16GB"
        );
        assert_eq!(error(None, 8_500_000, 24_576_000), "");
        let many = error(None, u128::from(u64::MAX), 1);
        assert!(
            many.contains("more than the limit of 16777215") && many.contains("would take about"),
            "{many}"
        );
    }
}
