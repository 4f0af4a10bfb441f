//! A run: regions work off windows of time until it ends, records are handed on as they come, the accounts
//! are balanced at the end.
//!
//! Between two windows the one thread that leads does what concerns the whole network: it announces flows,
//! changes links and routes, takes measures, and passes on what regions sent to each other. A window ends
//! before anything that one region sends can reach another, so how the network was cut into regions, and how
//! many threads work on them, is nowhere in the results.

mod accounts;
pub mod alone;
pub(crate) mod balance;
pub(crate) mod changes;
mod deadlock;
pub(crate) mod flows;
pub(crate) mod graphs;
pub(crate) mod memo;
pub(crate) mod places;
pub(crate) mod probes;
pub(crate) mod region;
pub(crate) mod starts;
pub mod traced;
mod turns;

use crate::capture::Capture;
use crate::clock;
use crate::engine::thread_choice::{ThreadChoice, Threads};
use crate::engine::worker_pool;
use crate::external::{SchemePanic, caught};
use crate::ideal::Ideals;
use crate::measure::recorder::{BATCH, Collected};
use crate::measure::{Balance, Ending, FlowRecord, Outcome, Progress, Sample, Sink};
use crate::net::map::Map;
use crate::transport::Settings;
use crate::units::Time;
use crate::workload::merge::MAX_FLOWS;
use balance::Windows;
use changes::Changes;
use flows::Flows;
use memo::Memo;
use places::Places;
use probes::Probes;
use region::Region;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a run failed. What had been handed to the sink by then stays there.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("writing results failed: {0}")]
    Sink(#[from] std::io::Error),
    #[error("{0}")]
    Impossible(String),
    #[error("{0}")]
    Scheme(#[from] SchemePanic),
}

/// A network with its traffic, ready to run.
pub struct Simulation {
    pub(crate) regions: Regions,
    pub(crate) plan: Plan,
    pub(crate) places: Places,
    pub(crate) map: Arc<Map>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) flows: Flows,
    pub(crate) ideals: Ideals,
    pub(crate) changes: Changes,
    pub(crate) probes: Probes,
    /// Everything before it has happened.
    pub(crate) now: Time,
    /// Samples that have not been handed on.
    pub(crate) samples: Vec<Sample>,
    /// Flows that will not end, whose rows come last.
    pub(crate) given_up: Vec<FlowRecord>,
    /// Where packets of some links are written down.
    pub(crate) capture: Option<Capture>,
    pub(crate) windows: Windows,
    /// What steps of a job came to that may be repeated.
    pub(crate) memo: Option<Box<Memo>>,
}

/// How a run is executed: as requested, on this network. It does not affect the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub threads: usize,
    pub regions: usize,
    /// How far a region may run ahead of the others; [`Time::MAX`] with one region.
    pub lookahead: Time,
    /// Why there are fewer threads than requested.
    pub why_fewer: Option<String>,
}

const WATCH_EVERY: Duration = Duration::from_millis(100);
/// The longest window: what regions keep until its end is kept in memory.
const LONGEST_WINDOW: Time = Time(100_000_000);

fn too_many_flows() -> String {
    format!("more than {MAX_FLOWS} flows: shorten a workload's duration, or lower its count or load")
}

/// Boxed, because regions change hands twice a window.
#[allow(clippy::vec_box)]
type Regions = Vec<Box<Region>>;

/// Advances regions.
trait Workers {
    fn work(&mut self, regions: &mut Regions);
}

impl<F: FnMut(&mut Regions)> Workers for F {
    fn work(&mut self, regions: &mut Regions) {
        self(regions);
    }
}

impl Simulation {
    /// Adds to the outcome which events decided when ranks of job graphs acted. Steps are not memoised.
    pub fn note_causes(&mut self) {
        self.memo = None;
        self.regions.iter_mut().for_each(|region| region.graphs.causes = Some(Box::default()));
    }

    /// Runs to the end.
    pub fn run(
        self,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Outcome, RunError> {
        self.run_balanced(sink, watch).map(|(outcome, _)| outcome)
    }

    /// Runs to the end; with the outcome, how the work was spread over regions.
    pub fn run_balanced(
        self,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(Outcome, Balance), RunError> {
        let work = |region: &mut Box<Region>| region.work_round();
        match self.plan.threads {
            1 => self.conduct(&mut |regions: &mut Vec<_>| regions.iter_mut().for_each(work), sink, watch),
            threads => {
                let (mut choice, began) = (ThreadChoice::default(), Instant::now());
                let result = worker_pool::with_pool(threads, work, |pool| {
                    let mut work = |regions: &mut Regions| {
                        let done = regions.iter().map(|region| region.net.events_handled()).sum();
                        match choice.next(began.elapsed(), done) {
                            Threads::All => pool.work(regions),
                            Threads::One => pool.work_in_leader(regions),
                        }
                    };
                    self.conduct(&mut work, sink, watch)
                });
                result.map(|(outcome, balance)| {
                    let (share_alone, threads_ratio) = (choice.share_alone(), choice.ratio());
                    (outcome, Balance { share_alone, threads_ratio, ..balance })
                })
            }
        }
    }

    /// Leads the regions through the run, and makes the accounts. If a scheme of another crate panics, the
    /// records until then are handed on.
    fn conduct(
        mut self,
        workers: &mut dyn Workers,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(Outcome, Balance), RunError> {
        let led = caught(|| {
            let ending = self.lead(workers, sink, watch)?;
            self.finish();
            Ok(ending)
        });
        let mut ending = led.unwrap_or_else(|panic| Err(panic.into()));
        match &mut ending {
            Ok(ending) => self.flush_rest(sink, ending, watch)?,
            Err(RunError::Scheme(_)) => self.hand_on(sink, true)?,
            Err(_) => {}
        }
        let ending = ending?;
        let balance = self.balance();
        Ok((caught(|| self.outcome(ending))?, balance))
    }

    /// Leads the regions through the run, window by window.
    fn lead(
        &mut self,
        workers: &mut dyn Workers,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Ending, RunError> {
        let started = Instant::now();
        let mut watched = started;
        let mut stopped = |run: &Self| {
            let look = watched.elapsed() >= WATCH_EVERY;
            if look {
                watched = Instant::now();
            }
            look && !watch(&run.progress(started))
        };
        let ending = 'run: loop {
            if self.repeats() {
                self.repeat_step(sink)?;
                if stopped(self) {
                    break Ending::Interrupted;
                }
                if let Some(ending) = self.probes.ending.take() {
                    break ending;
                }
                continue;
            }
            let next = self.next_time();
            let measure = self.probes.next_time();
            if measure.min(next) > clock::LATEST {
                let why = self.too_late();
                return Err(self.gives_up(sink, why));
            }
            if measure < next {
                self.pass_quiet_time(next);
                if stopped(self) {
                    break Ending::Interrupted;
                }
            } else {
                let limit = self.open_window(next);
                loop {
                    workers.work(&mut self.regions);
                    if let Some(panic) = self.regions.iter_mut().find_map(|region| region.broken.take()) {
                        return Err(panic.into());
                    }
                    if stopped(self) {
                        break 'run Ending::Interrupted;
                    }
                    if self.regions.iter().all(|region| region.arrived) {
                        break;
                    }
                }
                self.close_window(limit);
            }
            if let Some(ending) = self.probes.ending.take() {
                break ending;
            }
            if self.flows.too_many() {
                return Err(self.gives_up(sink, too_many_flows()));
            }
            if let Some(why) = self.flows.stranded.take() {
                return Err(self.gives_up(sink, why));
            }
            if self.samples.len() >= BATCH
                || self.regions.iter().any(|r| r.net.recorder.is_full() || r.net.taps.is_full())
            {
                self.flush(sink)?;
            }
        };
        if self.flows.too_many() {
            return Err(self.gives_up(sink, too_many_flows()));
        }
        Ok(ending)
    }

    /// A time before which nothing happens anywhere, measures aside; [`Time::MAX`] if nothing is to happen.
    fn next_time(&self) -> Time {
        let events = self.regions.iter().filter_map(|region| region.nothing_before());
        let whole = [self.flows.next_start(), self.changes.next_time()];
        events.chain(whole.into_iter().flatten()).min().unwrap_or(Time::MAX)
    }

    /// Does what comes first at `next`, and sets the regions the end of a window that begins there.
    fn open_window(&mut self, next: Time) -> Time {
        self.make_changes(next);
        let mut limit = next.saturating_add(self.plan.lookahead.min(LONGEST_WINDOW));
        if let Some(change) = self.changes.next_time() {
            limit = limit.min(change);
        }
        limit = limit.min(self.probes.next_time().saturating_add(Time(1)));
        limit = match self.settings.rules.late_announcements {
            false => self.announce_flows(next, limit),
            true => self.flows.next_start().map_or(limit, |start| limit.min(start + Time(1))),
        };
        limit = self.up_to_step(next, limit);
        for region in &mut self.regions {
            region.limit = limit;
        }
        limit
    }

    /// All regions have got to `limit`: passes on what they sent to each other, and does what comes last at
    /// its time.
    fn close_window(&mut self, limit: Time) {
        self.now = limit;
        self.windows.passed(&self.regions);
        self.exchange();
        self.settle_jobs();
        self.forget_delivered();
        self.look_for_step(limit);
        if self.settings.rules.late_announcements
            && self.flows.next_start().is_some_and(|start| start < limit)
        {
            self.announce_flows(limit, limit);
            return;
        }
        let due = self.probes.next_time();
        if due < limit {
            self.take_measures(due, due);
        }
    }

    /// What regions sent to each other changes hands.
    fn exchange(&mut self) {
        self.exchange_messages();
        for from in 0..self.regions.len() {
            for to in 0..self.regions.len() {
                if self.regions[from].net.outboxes[to].is_empty() {
                    continue;
                }
                let outbox = std::mem::take(&mut self.regions[from].net.outboxes[to]);
                let emptied = std::mem::replace(&mut self.regions[to].inboxes[from], outbox);
                self.regions[from].net.outboxes[to] = emptied;
            }
        }
    }

    /// Receivers forget the flows that can send them nothing more.
    fn forget_delivered(&mut self) {
        for from in 0..self.regions.len() {
            for (flow, receiver, transport) in std::mem::take(&mut self.regions[from].net.delivered_once) {
                let (region, index) = self.places.of_host(receiver);
                let host = &mut self.regions[region].hosts[index as usize];
                host.forget(flow, transport);
            }
        }
    }

    /// Hands on what was recorded, but rows of flows that have not ended.
    fn flush(&mut self, sink: &mut dyn Sink) -> std::io::Result<()> {
        self.hand_on(sink, false)
    }

    /// The same; `last`: the run has ended, and all rows are handed on.
    fn hand_on(&mut self, sink: &mut dyn Sink, last: bool) -> std::io::Result<()> {
        let mut collected = Collected::default();
        for region in &mut self.regions {
            region.net.recorder.take(&mut collected);
        }
        let given_up = collected.flows.iter().filter(|record| record.finish.is_none());
        self.given_up.extend(given_up.cloned());
        collected.flows.retain(|record| record.finish.is_some());
        if last {
            collected.flows.append(&mut self.given_up);
        }
        for record in &mut collected.flows {
            record.until = record.finish.unwrap_or(self.now);
            record.ideal = self.ideals.of(&record.asked(), record.start, record.until);
        }
        // After what the regions recorded for the same time.
        collected.samples.append(&mut self.samples);
        collected.flush(sink)?;
        self.hand_on_frames(sink)
    }

    /// Hands on what is left at the end; messages that never started in parts, as a graph may have millions.
    /// They have no rows if the run is interrupted: their number is not bounded by what has been simulated.
    fn flush_rest(
        &mut self,
        sink: &mut dyn Sink,
        ending: &mut Ending,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> std::io::Result<()> {
        self.hand_on(sink, true)?;
        let started = Instant::now();
        for (graph, messages) in self.regions[0].graphs.messages().into_iter().enumerate() {
            for from in (0..messages).step_by(BATCH) {
                if *ending == Ending::Interrupted || !watch(&self.progress(started)) {
                    *ending = Ending::Interrupted;
                    return Ok(());
                }
                let numbers = from..messages.min(from + BATCH as u32);
                self.regions.iter_mut().for_each(|region| region.record_unstarted(graph, numbers.clone()));
                self.hand_on(sink, true)?;
            }
        }
        Ok(())
    }

    /// Hands on the packets that were written down.
    fn hand_on_frames(&mut self, sink: &mut dyn Sink) -> std::io::Result<()> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        self.regions.iter_mut().for_each(|region| region.net.taps.take(&mut capture.notes));
        if !capture.flush(sink)? {
            self.capture = None;
            self.regions.iter_mut().for_each(|region| region.net.taps.close());
        }
        Ok(())
    }

    /// The error of a run that exceeds the limit of the clock.
    #[cold]
    fn too_late(&self) -> String {
        let graphs =
            self.flows.graphs.iter().zip(0..).filter_map(|(graph, place)| Some((place, &**graph.as_ref()?)));
        let reasons =
            clock::reasons(self.changes.topology(), self.changes.rates(), self.flows.size(), graphs);
        format!("simulated time exceeded {}: {reasons}; or set run.until", clock::limit())
    }

    /// Hands on what was recorded and returns why the run cannot continue.
    #[cold]
    fn gives_up(&mut self, sink: &mut dyn Sink, why: String) -> RunError {
        match self.hand_on(sink, true) {
            Ok(()) => RunError::Impossible(why),
            Err(error) => RunError::Sink(error),
        }
    }

    fn flows_done(&self) -> u64 {
        self.regions.iter().map(|region| region.net.recorder.flows_done).sum()
    }

    fn progress(&self, started: Instant) -> Progress {
        Progress {
            now: self.regions.iter().map(|region| region.net.now).fold(self.now, Time::max),
            until: self.probes.end_at(),
            flows_done: self.flows_done(),
            flows: self.flows.expected(),
            packet_hops: self.regions.iter().map(|region| region.net.sent().0).sum(),
            cpu_seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The run ends: what is in flight between regions is handed over, and flows that have not ended are
    /// recorded.
    fn finish(&mut self) {
        self.exchange();
        self.settle_jobs();
        if self.regions.iter().any(|region| !region.arrived) {
            self.now = self.regions.iter().map(|region| region.net.now).max().unwrap_or(self.now);
        }
        self.take_last_measures();
        for region in &mut self.regions {
            region.take_mail();
            region.in_turn(|region| region.finish(self.now));
        }
        // The steps that have not ended.
        self.settle_jobs();
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        self.now
    }
}
