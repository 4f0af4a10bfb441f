//! Hashes that lead by different paths: what a host would find out by tracing the paths of many source ports.
//!
//! The switches' hash is known, so the path of each is computed along the routes; nothing is sent. Hashes are tried in an order
//! of their own for each pair of hosts, and kept while they lead by a path that none before them did.

use crate::balance::ecmp::Ecmp;
use crate::balance::{HostPort, Wiring};
use crate::engine::random::mix64;
use crate::topology::NextHops;

/// Hashes that are tried for every path that is looked for.
const TRIES: usize = 32;
/// No path has more links.
const MAX_LINKS: u32 = 64;

/// Up to `max` hashes for packets from a host's port between two hosts, each by a path of its own, and the
/// links on the way. One where there is no choice, or no way. `salt`: of the switches' hash.
pub fn discover(
    at: &HostPort<impl Wiring>,
    salt: u64,
    (from, to): (u32, u32),
    max: usize,
) -> (Vec<u32>, u32) {
    let (mut hashes, mut seen) = (Vec::new(), Vec::new());
    let mut links = 0;
    if to as usize >= at.wiring.routes().hosts() {
        // What an arbiter sends names no host as its source.
        return (hashes, links);
    }
    for number in 0..max * TRIES {
        let hash = (mix64(mix64(u64::from(from) << 32 | u64::from(to)) ^ number as u64) >> 32) as u32;
        let Some((path, length)) = path_of(at, salt, to, hash) else { break };
        links = length;
        if !seen.contains(&path) {
            seen.push(path);
            hashes.push(hash);
        }
        if hashes.len() == max {
            break;
        }
    }
    (hashes, links)
}

/// A name of the path that a hash takes, and the links on it; none where there is no way.
fn path_of(at: &HostPort<impl Wiring>, salt: u64, to: u32, hash: u32) -> Option<(u64, u32)> {
    let (wiring, routes) = (at.wiring, at.wiring.routes());
    let mut node = wiring.peer(at.node, at.port);
    let mut path = 0u64;
    for links in 1..MAX_LINKS {
        if routes.host_at(node) == Some(to) {
            return Some((path, links));
        }
        let port = match routes.hops_from(routes.row(node), to) {
            NextHops::None => return None,
            NextHops::One(port) => port,
            NextHops::Many(ports) => ports[Ecmp::new(salt, node).way(hash, ports.len())],
        };
        path = mix64(path ^ u64::from(node) << 32 ^ u64::from(port));
        node = wiring.peer(node, port);
    }
    None
}
