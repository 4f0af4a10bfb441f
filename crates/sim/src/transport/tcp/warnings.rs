//! What deserves a look in the parameters of connections on the network of a run.

use super::TcpConfig;
use super::config::EcnEcho;
use crate::transport::parameters::{RunContext, held_by_buffers, warnings_of_law};

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
        let (longest, fullest) = (run.base_rtt(packet).0, run.fullest_path(packet, kind));
        let of_law = warnings_of_law(&self.controller, packet, subflows, longest, fullest);
        of_echo.into_iter().chain(of_law).chain(of_buffers).collect()
    }
}
