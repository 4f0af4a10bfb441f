//! Buffers of multipath connections against what their paths hold.
//!
//! Unacknowledged bytes lie in the send buffer, and bytes behind a hole in the receive buffer, until the longest of a connection's
//! paths has brought what is missing. So a connection sends no faster than the smaller buffer a round trip, whatever its subflows and
//! their windows; queues make the round trip longer than it is here.

use super::Scenario;
use crate::units::{Bytes, Rate, Time};

/// A connection over several subflows whose buffers hold less than its paths do.
pub fn held_by_buffers(scenario: &Scenario) -> Option<String> {
    let topology = &scenario.network.topology;
    let ports = topology.ports();
    let rate_of =
        |node: u32| ports[node as usize].iter().map(|&(link, _)| topology.links[link as usize].rate.0).sum();
    let host: u64 = topology.hosts().into_iter().map(rate_of).max()?;
    scenario.transports.iter().filter_map(|transport| transport.mptcp()).find_map(|mptcp| {
        let (rtt, window) = scenario.network.base_rtt(mptcp.tcp.packet(), &scenario.rules);
        let all = Rate(host).bytes_in(rtt).0.min(window.saturating_mul(u64::from(mptcp.subflows)));
        let (key, buffer) = match mptcp.tcp.send_buffer <= mptcp.tcp.receive_buffer {
            true => ("send_buffer", mptcp.tcp.send_buffer),
            false => ("receive_buffer", mptcp.tcp.receive_buffer),
        };
        (buffer < all && rtt.0 > 0).then(|| {
            let most = (u128::from(buffer) * 8_000_000_000_000 / u128::from(rtt.0)) as u64;
            let (held, enough) = (Bytes(rounded(all)), Bytes(rounded(2 * all)));
            let (most, rtt) = (Rate(rounded(most)), Time(rounded(rtt.0)));
            format!(
                "transport.{key}: {} are less than what the {} subflows of a connection may have on their way over the longest paths \
                 ({held} in a round trip of {rtt} without queues), so that it sends at most {most}: set send_buffer and receive_buffer to \
                 {enough} or more",
                Bytes(buffer),
                mptcp.subflows,
            )
        })
    })
}

/// Rounded up to two digits.
fn rounded(value: u64) -> u64 {
    let unit = 10u64.pow(value.max(10).ilog10() - 1);
    value.div_ceil(unit) * unit
}
