//! A run of the hosts alone, beside switches that are real: what hosts send leaves for a world outside the simulator, and what
//! that delivers comes to them.
//!
//! The network is cut into two regions, hosts and switches, and the second never works. Time is the world's: the hosts work off
//! what lies before a time up to which the world has told all that came.

use super::region::Region;
use super::{RunError, Simulation};
use crate::config::Config;
use crate::engine::queue::Timed;
use crate::external::caught;
use crate::measure::{Ending, Outcome, Sink};
use crate::packet::{NONE, Packet, PacketKind};
use crate::telemetry::TelemetryConfig;
use crate::telemetry::int::IntRecord;
use crate::units::Time;

/// A packet at the far end of a link between a host and a switch.
#[derive(Debug, Clone)]
pub struct Passing {
    /// When it arrives there.
    pub at: Time,
    /// The switch's end of the link: its node, and which of the node's ports.
    pub node: u32,
    pub local: u32,
    pub packet: Packet,
    /// What it carries beside its fields, such as SACK blocks.
    pub records: Vec<IntRecord>,
}

/// The world beside the hosts.
pub trait World {
    /// Waits until `next`, or until something comes. Returns a time before which nothing more will come, and what has come: `at`
    /// is when it reaches the host behind the port.
    fn wait(&mut self, next: Time, came: &mut Vec<Passing>) -> Time;
    /// Takes a packet that reaches the port at its time.
    fn take(&mut self, sent: Passing);
    /// Whether the run is to end now.
    fn ends(&self) -> bool;
}

const HOSTS: usize = 0;
const WORLD: usize = 1;

impl Simulation {
    /// Builds the hosts of a network, whose switches are the world's.
    ///
    /// Errors: what hosts cannot do beside real switches.
    pub fn of_hosts(config: Config) -> Result<Simulation, RunError> {
        let refused = |what: &str| Err(RunError::Impossible(what.to_string()));
        if config.rules.insertion_order {
            let like = config.rules.like;
            return refused(&format!(
                "compat.like = \"{like}\": hosts beside real switches have no order of the whole network"
            ));
        }
        if !matches!(config.telemetry, TelemetryConfig::None) {
            return refused(
                "telemetry: hosts beside real switches read none yet: leave it out, and schemes that need it",
            );
        }
        if config.traffic.sources.iter().any(|source| source.graph().is_some()) {
            return refused("job graphs: hosts beside real switches run flows alone");
        }
        Simulation::hosts_apart(config)
    }

    /// Runs the hosts to the end beside a world.
    pub fn run_beside(mut self, world: &mut dyn World, sink: &mut dyn Sink) -> Result<Outcome, RunError> {
        let led: Result<Result<Ending, RunError>, _> = caught(|| {
            let ending = self.lead_beside(world)?;
            self.finish();
            Ok(ending)
        });
        self.flush(sink)?;
        let ending = led.unwrap_or_else(|panic| Err(panic.into()))?;
        caught(|| self.outcome(ending)).map_err(RunError::from)
    }

    fn lead_beside(&mut self, world: &mut dyn World) -> Result<Ending, RunError> {
        let mut came = Vec::new();
        loop {
            let next = self.next_of_hosts();
            let until = world.wait(next.min(self.probes.next_time()), &mut came);
            came.drain(..).for_each(|one| self.bring(one));
            self.exchange();
            // Before the next exchange, whether or not anything is to be done by then.
            self.regions[HOSTS].in_turn(Region::take_mail);
            while self.probes.ending.is_none() && self.now < until {
                let next = self.next_of_hosts().min(until);
                if self.probes.next_time() < next {
                    self.pass_quiet_time(next);
                } else if next < until {
                    self.work_beside(next, until, world)?;
                } else {
                    self.now = until;
                }
            }
            if let Some(ending) = self.probes.ending.take() {
                return Ok(ending);
            }
            if world.ends() {
                return Ok(Ending::Interrupted);
            }
        }
    }

    /// When something happens at a host, or a flow starts.
    fn next_of_hosts(&self) -> Time {
        let whole = [self.regions[HOSTS].nothing_before(), self.flows.next_start(), self.changes.next_time()];
        whole.into_iter().flatten().min().unwrap_or(Time::MAX)
    }

    /// Works off a window of the hosts, and gives the world what they sent.
    fn work_beside(&mut self, next: Time, until: Time, world: &mut dyn World) -> Result<(), RunError> {
        let limit = self.open_window(next).min(until);
        let hosts = &mut self.regions[HOSTS];
        hosts.limit = limit;
        hosts.arrived = false;
        while !hosts.arrived {
            hosts.work_guarded(u32::MAX);
            if let Some(panic) = hosts.broken.take() {
                return Err(panic.into());
            }
        }
        self.close_window(limit);
        let mut sent = std::mem::take(&mut self.regions[WORLD].inboxes[HOSTS]);
        self.regions[WORLD].in_turn(|region| {
            let net = &mut region.net;
            net.packets.receive(sent.arrivals.len());
            net.stacks.receive(sent.stacks);
            for event in &sent.arrivals {
                let Some((port, id)) = event.arrival() else { continue };
                let (node, local) =
                    (net.ports[port as usize].node, u32::from(net.ports[port as usize].local));
                net.arrives(port, id);
                // Until it is delivered: whether it is lost is not known here.
                net.leave_in_flight(id);
                let packet = net.packets[id];
                let mut records = Vec::new();
                if packet.telemetry != NONE {
                    net.stacks.copy_out(packet.telemetry, &mut records);
                }
                world.take(Passing { at: event.time(), node, local, packet, records });
                net.discard(id);
            }
        });
        sent.clear();
        self.regions[WORLD].inboxes[HOSTS] = sent;
        Ok(())
    }

    /// A packet comes from the world to the host behind a switch's port.
    fn bring(&mut self, came: Passing) {
        let (region, id) = self.places.of_port(came.node, came.local);
        debug_assert_eq!(region, WORLD);
        let at = came.at.max(self.now);
        self.regions[WORLD].in_turn(|region| {
            let net = &mut region.net;
            let port = &mut net.ports[id as usize];
            port.packets_sent += 1;
            port.bytes_sent += u64::from(came.packet.size);
            let (there, node, peer) = (port.destination, port.peer_slot, port.peer);
            let stack = if came.records.is_empty() { NONE } else { net.stacks.copy_in(&came.records) };
            let packet = Packet {
                generation: port.generation,
                ingress: port.peer_local,
                telemetry: stack,
                next: NONE,
                ..came.packet
            };
            let under_way = &mut net.recorder.losses[usize::from(packet.group)].data_in_flight;
            *under_way = under_way.saturating_sub(u64::from(packet.kind == PacketKind::Data));
            let packet = net.packets.insert(packet);
            net.arrive(there, node, at, peer, packet);
        });
    }
}
