//! Addresses of hosts, and ports of flows and subflows.
//!
//! Host h has the IPv4 address 10.0.0.0 + h + 1.

/// First UDP or TCP port of flows: in the dynamic range, where no protocol is registered for which a
/// dissector could take them.
const FIRST_PORT: u16 = 50_000;
const PORTS: u64 = 4000;

/// The address of a host.
pub fn address(host: u32) -> [u8; 4] {
    let [_, b, c, d] = host.wrapping_add(1).to_be_bytes();
    [10, b, c, d]
}

/// Ports of a flow's sender and receiver. They are unique for 16 million flows.
pub fn ports(flow: u32) -> [u16; 2] {
    let flow = u64::from(flow);
    [flow % PORTS, flow / PORTS % PORTS].map(|number| FIRST_PORT + number as u16)
}

/// Ports of a subflow: those of one connection differ at its sender, and at its receiver by the address there that
/// the subflow goes to. They are unique for 60 000 connections.
pub fn subflow_ports(flow: u32, subflow: u8, address: u8) -> [u16; 2] {
    let at_sender = u64::from(flow % 15) << 8 | u64::from(subflow);
    let at_receiver = u64::from(flow / 15) + u64::from(address);
    [at_sender, at_receiver % PORTS].map(|number| FIRST_PORT + number as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_and_subflows_have_ports_of_their_own() {
        assert_eq!(ports(0), [50_000, 50_000]);
        assert_eq!(ports(4001), [50_001, 50_001]);
        assert_eq!(subflow_ports(16, 3, 0), [50_259, 50_001]);
        assert_eq!(subflow_ports(16, 3, 2), [50_259, 50_003]);
        for addresses in [1, 4] {
            let of = |flow| (0..=255).map(move |subflow| subflow_ports(flow, subflow, subflow % addresses));
            let all: std::collections::BTreeSet<_> = (0..40).flat_map(of).collect();
            assert_eq!(all.len(), 40 * 256);
            assert!(all.iter().flatten().all(|&port| (50_000..54_000).contains(&port)));
        }
    }
}
