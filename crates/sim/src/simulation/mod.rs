//! A run: events in order until it ends, records handed on as they come, the accounts balanced at the end.

mod accounts;
mod build;
mod changes;
mod flows;
mod probes;

pub use build::base_rtt_of;

use crate::config::Config;
use crate::measure::{Ending, Outcome, Progress, Sink};
use crate::net::host::{Host, Surroundings};
use crate::net::partition::{Action, Partition};
use crate::net::switch::Switch;
use crate::settings::Settings;
use crate::topology::Routes;
use crate::transport::Ended;
use crate::units::Time;
use crate::workload::merge::MOST_FLOWS;
use changes::Changes;
use flows::Flows;
use probes::Probes;
use std::time::{Duration, Instant};

/// Why a run failed. What had been handed to the sink by then stays there.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("writing results failed: {0}")]
    Sink(#[from] std::io::Error),
    #[error("{0}")]
    Impossible(String),
}

/// Which kind of node, and its place among its kind.
#[derive(Debug, Clone, Copy)]
enum NodeIndex {
    Host(u32),
    Switch(u32),
}

/// A network with its traffic, ready to run.
pub struct Simulation {
    net: Partition,
    nodes: Vec<NodeIndex>,
    switches: Vec<Switch>,
    hosts: Vec<Host>,
    routes: Routes,
    settings: Settings,
    flows: Flows,
    changes: Changes,
    probes: Probes,
    ended: Vec<Ended>,
}

/// Builds and runs. `watch` hears of the progress about ten times a second; the run stops when it returns false.
pub fn run(
    config: Config,
    sink: &mut dyn Sink,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, RunError> {
    Simulation::new(config)?.run(sink, watch)
}

/// Events between two looks at the wall clock.
const STRIDE: u32 = 16_384;
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// The last moment that is simulated, 106 days: half of what the clock holds, so that no sum of a time and one that a
/// person may write (up to 53 days) can wrap.
const LATEST: Time = Time(1 << 63);

fn too_late() -> String {
    format!(
        "simulated time passed {:.0} days, beyond which the clock does not reach: shorten compute and think times, or \
         set run.until",
        LATEST.as_seconds() / 86_400.0
    )
}

fn too_many_flows() -> String {
    format!("more than {MOST_FLOWS} flows: shorten a workload's duration, or lower its count or load")
}

impl Simulation {
    /// Runs to the end.
    pub fn run(
        mut self,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Outcome, RunError> {
        let started = Instant::now();
        let mut watched = started;
        let ending = 'run: loop {
            for _ in 0..STRIDE {
                let Some(event) = self.net.next_event() else { break 'run Ending::Done };
                if event.time > LATEST {
                    return Err(self.gives_up(sink, too_late()));
                }
                self.handle(event.what);
                if let Some(ending) = self.probes.ending.take() {
                    break 'run ending;
                }
            }
            if self.flows.too_many() {
                return Err(self.gives_up(sink, too_many_flows()));
            }
            if self.net.recorder.is_full() {
                self.net.recorder.flush(sink)?;
            }
            if watched.elapsed() >= WATCH_EVERY {
                watched = Instant::now();
                if !watch(&self.progress(started)) {
                    break Ending::Interrupted;
                }
            }
        };
        if self.flows.too_many() {
            return Err(self.gives_up(sink, too_many_flows()));
        }
        self.finish();
        self.net.recorder.flush(sink)?;
        Ok(self.outcome(ending))
    }

    /// Hands on what was recorded and says why the run cannot go on.
    #[cold]
    fn gives_up(&mut self, sink: &mut dyn Sink, why: String) -> RunError {
        match self.net.recorder.flush(sink) {
            Ok(()) => RunError::Impossible(why),
            Err(error) => RunError::Sink(error),
        }
    }

    fn progress(&self, started: Instant) -> Progress {
        Progress {
            now: self.net.now,
            until: self.probes.end_at(),
            flows_done: self.net.recorder.flows_done,
            flows: self.flows.expected(),
            packet_hops: self.net.packet_hops,
            cpu_seconds: started.elapsed().as_secs_f64(),
        }
    }

    #[inline]
    fn handle(&mut self, action: Action) {
        match action {
            Action::Arrival { port, packet } => self.arrival(port, packet),
            Action::Departure { port } => {
                self.net.ports[port as usize].departure_pending = false;
                self.kick(port);
            }
            Action::Wake { port, serial, transport } => {
                let node = self.net.ports[port as usize].node;
                if let NodeIndex::Host(host) = self.nodes[node as usize] {
                    let (host, mut around) = self.host(host);
                    host.wake(transport, port, serial, &mut around);
                }
            }
            Action::Timer { host, token, transport } => {
                let (host, mut around) = self.host(host);
                host.timer(transport, token, &mut around);
            }
            Action::Forward { port, packet } => {
                let node = self.net.ports[port as usize].node;
                if let NodeIndex::Switch(switch) = self.nodes[node as usize] {
                    self.switches[switch as usize].admit(&mut self.net, port, packet);
                }
            }
            Action::StartFlow { arrival, stage } => self.start_flow(arrival, stage),
            Action::Change { index } => self.change(index),
            Action::Reroute { index } => self.reroute(index),
            Action::Tick { probe } => self.tick(probe),
        }
        if !self.ended.is_empty() {
            self.release_dependents();
        }
    }

    #[inline]
    fn arrival(&mut self, port: u32, packet: u32) {
        let node = self.net.ports[port as usize].node;
        match self.nodes[node as usize] {
            NodeIndex::Switch(switch) => {
                self.switches[switch as usize].receive(&mut self.net, &self.routes, port, packet);
            }
            NodeIndex::Host(host) => {
                let (host, mut around) = self.host(host);
                host.receive(port, packet, &mut around);
            }
        }
    }

    /// A port may have something to send.
    #[inline]
    fn kick(&mut self, port: u32) {
        let node = self.net.ports[port as usize].node;
        match self.nodes[node as usize] {
            NodeIndex::Switch(switch) => self.switches[switch as usize].kick(&mut self.net, port),
            NodeIndex::Host(host) => {
                let (host, mut around) = self.host(host);
                host.kick(port, &mut around);
            }
        }
    }

    /// A host, and everything that it works with.
    #[inline]
    fn host(&mut self, host: u32) -> (&mut Host, Surroundings<'_>) {
        let around = Surroundings {
            net: &mut self.net,
            settings: &self.settings,
            routes: &self.routes,
            ended: &mut self.ended,
        };
        (&mut self.hosts[host as usize], around)
    }

    /// Records the flows that have not ended.
    fn finish(&mut self) {
        for host in 0..self.hosts.len() as u32 {
            let (host, mut around) = self.host(host);
            host.finish(&mut around);
        }
        self.flows.record_unstarted(&mut self.net.recorder);
        let end = self.net.now;
        for (totals, port) in self.net.totals.iter_mut().zip(&self.net.ports) {
            if port.paused != 0 {
                totals.paused += end.saturating_sub(totals.paused_since);
            }
        }
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        self.net.now
    }
}
