//! What deserves a look in the parameters of connections on the network of a run.

use super::TcpConfig;
use super::config::EcnEcho;
use crate::transport::parameters::{RunContext, held_by_buffers, warnings_of_law};
use crate::units::{Rate, Time};

impl TcpConfig {
    /// The warnings of connections with this number of subflows, all with the same parameters. `kind`: of the transport.
    pub fn warnings_as(&self, kind: &str, subflows: u8, run: &RunContext) -> Vec<String> {
        if run.rules.like != "none" {
            return Vec::new();
        }
        let unheard = self.controller.needs_marks() && self.ecn != EcnEcho::Exact;
        let of_echo = unheard.then(|| {
            format!(
                "transport.ecn: controller \"{}\" steers by the share of marked bytes, which receivers tell with ecn = \"exact\" only",
                self.controller.name()
            )
        });
        let buffers = [("send_buffer", self.send_buffer), ("receive_buffer", self.receive_buffer)];
        let packet = self.packet();
        let of_buffers = held_by_buffers(run, (kind, packet), subflows, buffers);
        let (longest, (rtt, held)) = (run.base_rtt(packet).0, run.fullest_path(packet, kind));
        let alone = if subflows > 1 { 0 } else { held };
        let of_law = warnings_of_law(&self.controller, packet, longest, (rtt, alone));
        let of_subflows =
            (subflows > 1).then(|| self.narrow_together(subflows, packet, (rtt, held))).flatten();
        of_echo.into_iter().chain(of_law).chain(of_subflows).chain(of_buffers).collect()
    }

    /// The largest windows of all subflows of a connection are together less than what the fullest path holds.
    fn narrow_together(&self, subflows: u8, packet: u32, (rtt, held): (Time, u64)) -> Option<String> {
        let (key, packets) = self.controller.max_packets()?;
        let all = packets * f64::from(packet) * f64::from(subflows);
        (all < held as f64).then(|| {
            let max_rate = Rate((all * 8e12 / rtt.0.max(1) as f64) as u64);
            format!(
                "transport.controller.{key} = {packets}: the {subflows} subflows of a connection over paths with a base RTT of {rtt} \
                 send at most {max_rate} together; the links of one such path hold {} packets",
                held.div_ceil(packet.max(1).into())
            )
        })
    }
}
