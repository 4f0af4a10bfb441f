//! `[host]`: what a host does with packets before its transports see them.

use super::section::Section;
use crate::config::{HostConfig, ResequencingConfig};
use crate::parameters::Source;
use crate::transport::TransportConfig;
use crate::units::{Bytes, Time};

/// More would be a host that answers once a second.
const MAX_PACKET_TIME: Time = Time::from_ms(1000);

/// Reads `[host]`.
pub fn read(section: &mut Section, transports: &[TransportConfig]) -> HostConfig {
    let help = "time that a host's processor takes for each packet that comes, data, acknowledgement or signal, one after the other; \
                the packets wait for it in order, without limit";
    let packet_time = section.parameters().time("packet_time", Time::ZERO, help);
    if packet_time > MAX_PACKET_TIME {
        section.complain("packet_time", format!("expected at most {MAX_PACKET_TIME}, found {packet_time}"));
    }
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
    let resequencing = enabled.then_some(ResequencingConfig { timeout, buffer });
    HostConfig { resequencing, packet_time }
}
