//! Steps of a job that repeat are simulated once (`run.memo`).
//!
//! Where a step begins and nothing is in flight (no flow, no packet, nothing queued, no port paused), all that
//! the rest of the run depends on is when each rank begins, and where the random streams of the switches stand:
//! what else would count is refused beforehand (`scenario/memo.rs`). If that state was seen before, the steps from
//! there on are those that followed it, later by a constant and with other numbers of messages: their records are
//! repeated, number by number, and nothing is simulated any more.
//!
//! A state at the begin of a step that has something in flight is not taken for any other. Only events that are
//! handled are not counted for steps that are repeated.

use super::Simulation;
use super::region::Region;
use crate::counters::CounterSet;
use crate::measure::recorder::{BATCH, Log, Repeated};
use crate::measure::{Ending, FlowRecord, Memoised, PortTotals, Sink};
use crate::queue::QueueDiscipline;
use crate::units::Time;
use crate::workload::graph::{JobGraph, RankStep};
use rustc_hash::FxHashMap;

/// When each rank begins, after the first, and the positions of random streams.
type State = Vec<u64>;

#[derive(Default)]
pub struct Memo {
    /// Of the job: its ranks, steps, messages of a step, and the computation between two.
    ranks: u32,
    repeat: u32,
    each: u32,
    phases: u32,
    compute: Time,
    steps: Vec<Step>,
    /// The step that begins in a state.
    known: FxHashMap<State, usize>,
    /// The one that is simulated.
    begun: Option<Begun>,
    /// The one that is repeated next, and when it begins.
    next: Option<(u32, Time, usize)>,
    report: Memoised,
}

/// A step that has begun.
struct Begun {
    state: State,
    number: u32,
    at: Time,
    numbers: Vec<u64>,
    counters: CounterSet,
}

/// What a step came to.
struct Step {
    number: u32,
    at: Time,
    /// Until the next one begins, and in which state.
    span: Time,
    then: State,
    /// What was counted, in the order of [`each_number`].
    numbers: Vec<u64>,
    flows: Repeated,
    rows: Vec<FlowRecord>,
    ranks: Vec<RankStep>,
    /// When all was done.
    done: Time,
}

impl Memo {
    /// `begun`: steps of the job that have begun.
    pub fn report(&self, begun: usize) -> Memoised {
        let none = || "no two steps began in the same state, with nothing in flight".to_string();
        let why = self.report.why_not.clone().or((self.report.repeated == 0).then(none));
        let simulated = (begun as u32).saturating_sub(self.report.repeated);
        Memoised { simulated, repeated: self.report.repeated, why_not: why }
    }

    /// The steps that follow in this state are known, all of `count`.
    fn follows(&self, state: &State, count: u32) -> Option<usize> {
        let first = *self.known.get(state)?;
        let mut step = first;
        for _ in 1..count {
            step = *self.known.get(&self.steps[step].then)?;
        }
        Some(first)
    }
}

/// Visits every number of a region that a run counts up.
fn each_number(region: &mut Region, visit: &mut impl FnMut(&mut u64)) {
    let net = &mut region.net;
    for port in &mut net.ports {
        let sent = [&mut port.packets_sent, &mut port.bytes_sent];
        sent.into_iter().chain([&mut port.packets_received, &mut port.bytes_received]).for_each(&mut *visit);
    }
    for totals in &mut net.totals {
        let PortTotals {
            packets_sent,
            bytes_sent,
            bytes_received,
            packets_received,
            packets_dropped,
            bytes_dropped,
            packets_lost,
            bytes_lost,
            packets_lost_at_random,
            packets_stranded,
            bytes_stranded,
            ecn_marks,
            pauses,
            paused: Time(paused),
            paused_since: _,
        } = totals;
        let sent =
            [packets_sent, bytes_sent, bytes_received, packets_received, packets_dropped, bytes_dropped];
        let lost = [packets_lost, bytes_lost, packets_lost_at_random, packets_stranded, bytes_stranded];
        sent.into_iter().chain(lost).chain([ecn_marks, pauses, paused]).for_each(&mut *visit);
    }
    net.recorder.each_number(visit);
    visit(&mut net.telemetry_bytes);
    region.graphs.each_number(visit);
}

impl Simulation {
    /// The job begins: so does its first step.
    pub(super) fn begin_memo(&mut self, graph: &JobGraph) {
        let (Some(memo), Some(work)) = (&mut self.memo, graph.repeated()) else { return };
        memo.ranks = graph.ranks();
        (memo.repeat, memo.each, memo.compute) = (work.repeat, work.each(), work.compute);
        memo.phases = work.instances() / work.repeat;
        for region in &mut self.regions {
            region.graphs.computing = Some(FxHashMap::default());
        }
        let state = self.state(vec![0; graph.ranks() as usize]);
        self.begin_step(state, 0, graph.flow.start);
    }

    /// A window does not go beyond the moment at which a rank that computes begins, so that the state before it
    /// can be looked at.
    pub(super) fn up_to_step(&self, next: Time, limit: Time) -> Time {
        let Some(memo) = &self.memo else { return limit };
        let begins = self.regions.iter().flat_map(|region| region.graphs.computing.iter().flatten());
        let first = begins.map(|(_, &(at, _))| at).filter(|&at| at > next).min();
        let alone = next.saturating_add(memo.compute.max(Time(1)));
        limit.min(first.unwrap_or(limit)).min(alone)
    }

    /// Everything before `now` has happened: if a step begins then, what was simulated since the last one is kept,
    /// or the rest of the job is known.
    pub(super) fn look_for_step(&mut self, now: Time) {
        let Some(memo) = &self.memo else { return };
        let all = || self.regions.iter().flat_map(|region| region.graphs.computing.iter().flatten());
        if all().count() as u32 != memo.ranks || all().any(|(_, &(at, _))| at < now) {
            return;
        }
        let mut begins: Vec<(u32, Time, u32)> = all().map(|(&rank, &(at, op))| (rank, at, op)).collect();
        begins.sort_unstable();
        let (ranks, phases, repeat) = (memo.ranks, memo.phases, memo.repeat);
        let Some(&(_, _, op)) = begins.first().filter(|_| begins.iter().any(|begin| begin.1 == now)) else {
            return;
        };
        let number = op / phases;
        let rests = if begins.iter().all(|begin| begin.2 == op) {
            self.rests()
        } else {
            Err("ranks are in different steps".to_string())
        };
        debug_assert_eq!(begins.len(), ranks as usize);
        let state = self.state(begins.iter().map(|begin| (begin.1 - now).0).collect());
        let kept = rests.and_then(|()| self.keep_step(&state, number, now));
        let Some(memo) = &mut self.memo else { return };
        if let Err(why) = kept {
            memo.report.why_not = Some(format!("when step {number} began {why}"));
            memo.begun = None;
            self.forget_logs();
            return;
        }
        if let Some(step) = memo.follows(&state, repeat - number) {
            memo.next = Some((number, now, step));
            self.forget_logs();
            self.regions.iter_mut().for_each(|region| region.graphs.leave());
        } else {
            self.begin_step(state, number, now);
        }
    }

    /// Whether nothing is in flight; else what is.
    fn rests(&self) -> Result<(), String> {
        let started: u64 = self.regions.iter().map(|region| region.graphs.started).sum();
        if started != self.flows_done() {
            return Err(format!("{} messages were not acknowledged", started - self.flows_done()));
        }
        for region in &self.regions {
            let between = region.net.outboxes.iter().chain(&region.inboxes).any(|mail| !mail.is_empty());
            if between || region.net.packets.live() > 0 {
                return Err("packets were in flight".into());
            }
            let rests = |port: &crate::net::port::Port| {
                port.queue.is_empty() && port.paused == 0 && !port.departure_pending && port.up
            };
            if !region.net.ports.iter().all(rests) {
                return Err("a port was busy or paused".into());
            }
            if !region.switches.iter().all(|switch| switch.buffer.is_at_rest()) {
                return Err("a switch held packets or paused a port".into());
            }
        }
        Ok(())
    }

    fn state(&self, mut begins: Vec<u64>) -> State {
        let switches = self.map.first_port.len();
        let mut positions: Vec<(u32, u64)> = Vec::with_capacity(switches);
        for region in &self.regions {
            positions.extend(region.switches.iter().map(|switch| (switch.node, switch.random.position())));
        }
        positions.sort_unstable();
        begins.extend(positions.into_iter().map(|(_, position)| position));
        begins
    }

    fn begin_step(&mut self, state: State, number: u32, at: Time) {
        let numbers = self.numbers();
        let counters = self.counters();
        for region in &mut self.regions {
            region.net.recorder.log = Some(Log::default());
        }
        self.flows.step_log = Some(Vec::new());
        if let Some(memo) = &mut self.memo {
            memo.begun = Some(Begun { state, number, at, numbers, counters });
        }
    }

    fn forget_logs(&mut self) {
        self.flows.step_log = None;
        self.regions.iter_mut().for_each(|region| region.net.recorder.log = None);
    }

    fn numbers(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        for region in &mut self.regions {
            each_number(region, &mut |number| numbers.push(*number));
        }
        numbers
    }

    /// The step that was simulated has ended, and the next one begins in a state. Error: why it cannot be kept.
    fn keep_step(&mut self, state: &State, number: u32, now: Time) -> Result<(), String> {
        let (mut numbers, counters) = (self.numbers(), self.counters());
        let Some(memo) = &mut self.memo else { return Ok(()) };
        let Some(begun) = memo.begun.take().filter(|begun| begun.number + 1 == number) else { return Ok(()) };
        if counters != begun.counters {
            return Err("schemes had counted what is not known to repeat".into());
        }
        numbers.iter_mut().zip(&begun.numbers).for_each(|(now, before)| *now = now.wrapping_sub(*before));
        let mut log = Log::default();
        for own in self.regions.iter_mut().filter_map(|region| region.net.recorder.log.as_mut()) {
            log.ended.append(&mut own.ended);
            log.rows.append(&mut own.rows);
        }
        let (flows, mut rows) = (Repeated::of(&log.ended), log.rows);
        rows.sort_unstable_by_key(|row| (row.finish, row.flow));
        let ranks = self.flows.step_log.take().unwrap_or_default();
        let ends = flows.last_end().into_iter().chain(ranks.iter().filter_map(|rank| rank.end));
        let done = ends.max().unwrap_or(begun.at);
        let (at, span, then) = (begun.at, now - begun.at, state.clone());
        memo.known.insert(begun.state, memo.steps.len());
        memo.steps.push(Step { number: begun.number, at, span, then, numbers, flows, rows, ranks, done });
        Ok(())
    }

    /// What follows is known.
    pub(super) fn repeats(&self) -> bool {
        self.memo.as_ref().is_some_and(|memo| memo.next.is_some())
    }

    /// Repeats what a step came to; the run ends with the last.
    pub(super) fn repeat_step(&mut self, sink: &mut dyn Sink) -> std::io::Result<()> {
        let Some(mut memo) = self.memo.take() else { return Ok(()) };
        let result = self.repeat_of(&mut memo, sink);
        self.memo = Some(memo);
        result
    }

    fn repeat_of(&mut self, memo: &mut Memo, sink: &mut dyn Sink) -> std::io::Result<()> {
        let Some((number, at, index)) = memo.next else { return Ok(()) };
        let step = &memo.steps[index];
        let (later, steps) = (at - step.at, number - step.number);
        let flows = steps * memo.each;
        let mut numbers = step.numbers.iter();
        for region in &mut self.regions {
            each_number(region, &mut |number| *number = number.wrapping_add(*numbers.next().unwrap_or(&0)));
        }
        let sum = step.flows.hash_of_repeat(flows, later);
        let recorder = &mut self.regions[0].net.recorder;
        recorder.hash = recorder.hash.wrapping_add(sum);
        self.now = at;
        for rows in step.rows.chunks(BATCH) {
            for row in rows {
                self.regions[0].net.recorder.repeat(FlowRecord {
                    flow: row.flow + flows,
                    start: row.start + later,
                    finish: row.finish.map(|finish| finish + later),
                    ..*row
                });
            }
            self.flush(sink)?;
        }
        for rank in &step.ranks {
            self.flows.settle_step(
                0,
                RankStep {
                    step: rank.step + steps,
                    start: rank.start + later,
                    first_sent: rank.first_sent.map(|sent| sent + later),
                    end: rank.end.map(|end| end + later),
                    last: rank.last.map(|(end, message)| (end + later, message + flows)),
                    ..*rank
                },
            );
        }
        memo.report.repeated += 1;
        memo.next = memo.known.get(&step.then).map(|&then| (number + 1, at + step.span, then));
        if number + 1 == memo.repeat {
            memo.next = None;
            let grid = self.probes.grid();
            self.now = Time((step.done + later).0.next_multiple_of(grid.0));
            self.probes.ending = Some(Ending::Done);
        }
        Ok(())
    }
}
