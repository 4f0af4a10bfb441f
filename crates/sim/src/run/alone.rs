//! A run of the hosts alone, whose switches are real: what hosts send leaves for a world outside the simulator, and what
//! that delivers comes to them.
//!
//! The network is cut into two regions, hosts and switches, and the second never works. Time is the world's: the hosts work off
//! what lies before a time up to which the world has reported all that came.

use super::region::Region;
use super::{RunError, Simulation};
use crate::external::caught;
use crate::measure::{Ending, Outcome, Sink};
use crate::net::passing::Passing;
use crate::units::Time;

/// The world outside the hosts.
pub trait World {
    /// Waits until `next`, or until something comes. Returns a time before which nothing more will come, and what has come: `at`
    /// is when it reaches the host at the port.
    fn wait(&mut self, next: Time, came: &mut Vec<Passing>) -> Time;
    /// Takes a packet that reaches the port at its time.
    fn take(&mut self, sent: Passing);
    /// Whether the run is to end now.
    fn ends(&self) -> bool;
}

const HOSTS: usize = 0;
const WORLD: usize = 1;

impl Simulation {
    /// Runs the hosts to the end in a world.
    pub fn run_in(mut self, world: &mut dyn World, sink: &mut dyn Sink) -> Result<Outcome, RunError> {
        let led: Result<Result<Ending, RunError>, _> = caught(|| {
            let ending = self.lead_in(world)?;
            self.finish();
            Ok(ending)
        });
        self.hand_on(sink, true)?;
        let ending = led.unwrap_or_else(|panic| Err(panic.into()))?;
        caught(|| self.outcome(ending)).map_err(RunError::from)
    }

    fn lead_in(&mut self, world: &mut dyn World) -> Result<Ending, RunError> {
        let mut came = Vec::new();
        loop {
            let next = self.next_of_hosts();
            let until = world.wait(next.min(self.probes.next_time()), &mut came);
            came.drain(..).for_each(|one| self.bring(&one));
            self.exchange();
            // Before the next exchange, whether or not anything is to be done by then.
            self.regions[HOSTS].in_turn(Region::take_mail);
            while self.probes.ending.is_none() && self.now < until {
                let next = self.next_of_hosts().min(until);
                if self.probes.next_time() < next {
                    self.pass_quiet_time(next);
                } else if next < until {
                    self.work_in(next, until, world)?;
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
    fn work_in(&mut self, next: Time, until: Time, world: &mut dyn World) -> Result<(), RunError> {
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
        self.regions[WORLD].in_turn(|region| region.net.take_out(&mut sent, |one| world.take(one)));
        self.regions[WORLD].inboxes[HOSTS] = sent;
        Ok(())
    }

    /// A packet comes from the world to the host at a switch's port; not before now.
    fn bring(&mut self, came: &Passing) {
        let (_, port) = self.places.of_port(came.node, came.local);
        let at = came.at.max(self.now);
        self.regions[WORLD].in_turn(|region| region.net.bring(port, at, came));
    }
}
