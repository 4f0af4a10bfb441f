//! `[host]`: what stands between the transports of a host and its links.

use super::section::Section;
use crate::config::{HostConfig, ResequencingConfig};
use crate::parameters::Source;
use crate::transport::TransportConfig;
use crate::units::{Bytes, Time};

/// Reads `[host]`.
pub fn read(section: &mut Section, transports: &[TransportConfig]) -> HostConfig {
    let mut table = section.child("resequencing");
    let help = "receivers put data packets back in order before their transports see them; packet-level balancers need it";
    let enabled = table.parameters().flag("enabled", false, help);
    let help =
        "maximum time for which a packet waits for those before it (ours; public versions: 50us to 500us)";
    let timeout = table.parameters().time("timeout", Time::from_us(250), help);
    let help = "maximum payload of one flow that is held (ours); beyond it, all of it is delivered";
    let buffer = table.parameters().bytes("buffer", Bytes(1_000_000), help);
    if enabled {
        if timeout == Time::ZERO {
            table.complain(
                "timeout",
                "must be greater than 0; enabled = false switches resequencing off".into(),
            );
        }
        let by_number = transports.iter().find(|transport| transport.facts().any_order);
        if let Some(transport) = by_number {
            let message = format!(
                "{} accepts packets in any order: resequencing is for rdma, tcp and pfabric",
                transport.name()
            );
            table.complain("enabled", message);
        }
    }
    section.absorb("resequencing", table);
    HostConfig { resequencing: enabled.then_some(ResequencingConfig { timeout, buffer }) }
}
