//! What a run itself says against its results: much was sent again, or lost and not sent again, the tail is
//! that of timeouts, flows did not end, marks never came, flows or failures lay after its end.
//!
//! Each is one sentence among the warnings of summary.json. It names its cause as far as the counters tell
//! it, and no further.

use std::cmp::Reverse;
use std::path::Path;

use weftline_sim::measure::{Ending, LossCounters, Outcome, Silence, SlowPort};
use weftline_sim::units::{Time, two_digits};

use crate::names::Names;
use crate::{ResultsError, flow_table, parquet_read};

/// A warning names retransmissions in more than this share of the data packets, and as many losses that were not
/// repaired.
const MANY: f64 = 0.01;
/// The tail is that of timeouts if at least this share of its flows waited for one, and flowlets are short if
/// they move as often for each data packet.
const MAJORITY: f64 = 0.5;
/// Ports that mark fewer packets than this share of those that they drop hardly mark.
const FEW_MARKS: f64 = 0.1;
/// Slow links that are named, of those on which nothing passed.
const SLOW_NAMED: usize = 3;
/// A port that PFC pauses for more than this share of the run is worth a word.
const PAUSED: f64 = 0.05;

/// The warnings of a run that ended; flows are read from the table in `dir`.
pub(crate) fn of(outcome: &Outcome, names: &Names, dir: &Path) -> Result<Vec<String>, ResultsError> {
    let all = total(&outcome.losses);
    let mut found = Vec::new();
    let of_ports = outcome.disciplines.iter().filter_map(|(_, _, counted)| counted.get("trimmed"));
    found.extend(sent_again(outcome, names, of_ports.sum()));
    found.extend(not_sent_again(outcome, names));
    found.extend(short_flowlets(outcome.counters.get("flowlets_moved").unwrap_or(0), &all));
    let probe = names.loss_probe.filter(|_| all.loss_probes > 0);
    if all.timeouts > 0 || probe.is_some() {
        found.extend(tail(&Times::read(dir, probe)?, all.loss_probes));
    }
    let unfinished = outcome.flows.saturating_sub(outcome.flows_done);
    if unfinished > 0 && outcome.flows_done > 0 {
        found.push(format!(
            "{unfinished} of {} flows did not finish: every mean and percentile covers only the {} that did",
            outcome.flows, outcome.flows_done
        ));
    }
    if outcome.ending == Ending::Done && outcome.flows_not_due > 0 {
        found.push(format!(
            "{} of {} flows had not begun when the run ended at {}: no result covers them",
            outcome.flows_not_due,
            outcome.flows + outcome.flows_not_due,
            milliseconds(outcome.end.as_ns()),
        ));
    }
    if !outcome.waiting.is_empty() {
        let what = match outcome.ending {
            Ending::Stalled => "a job is stalled",
            _ => "a job had not ended when the run did",
        };
        found.push(format!("{what}: {}", outcome.waiting.join("; ")));
    }
    found.extend(after_the_end(outcome, names));
    found.extend(never_marked(outcome, &all, &names.marked).or_else(|| seldom_marked(outcome, names, &all)));
    found.extend(deadlocked(outcome, names).or_else(|| paused(outcome, names)));
    found.extend(dropped_despite_pauses(outcome, names));
    Ok(found)
}

/// All groups together.
pub(crate) fn total(groups: &[LossCounters]) -> LossCounters {
    let mut all = LossCounters::default();
    groups.iter().for_each(|group| all += *group);
    all
}

/// Share of a number of packets in the data packets that were sent.
fn share(losses: &LossCounters, of: Of) -> f64 {
    if losses.data_sent == 0 { 0.0 } else { of(losses) as f64 / losses.data_sent as f64 }
}

type Of = fn(&LossCounters) -> u64;

/// All groups together if the share is large there, or the group with the largest share if it is; how it is
/// named.
fn many(outcome: &Outcome, names: &Names, of: Of) -> Option<(String, LossCounters)> {
    let all = total(&outcome.losses);
    if share(&all, of) > MANY {
        return Some((String::new(), all));
    }
    let groups = outcome.losses.iter().enumerate();
    let (group, worst) = groups.max_by(|a, b| share(a.1, of).total_cmp(&share(b.1, of)))?;
    (share(worst, of) > MANY).then(|| (format!(" of group \"{}\"", names.group(group as u16)), *worst))
}

/// That much was sent again, in the run or in the group with the largest share, and why.
fn sent_again(outcome: &Outcome, names: &Names, trimmed: u64) -> Option<String> {
    let retransmitted: Of = |losses| losses.retransmitted;
    let (of, losses) = many(outcome, names, retransmitted)?;
    Some(format!(
        "{:.1} % of the data packets{of} were retransmitted ({} of {}): {}",
        100.0 * share(&losses, retransmitted),
        losses.retransmitted,
        losses.data_sent,
        cause(&losses, trimmed, names.transports.iter().any(|(transport, _)| transport == "mptcp"))
    ))
}

/// That much was lost and had not been sent again by the end: some transports repeat nothing before the rest
/// of a flow has been sent.
fn not_sent_again(outcome: &Outcome, names: &Names) -> Option<String> {
    let (of, losses) = many(outcome, names, missing)?;
    let lost = losses.lost();
    let causes = ways_of_loss(&losses).into_iter().rev();
    let (packets, how) = causes.max_by_key(|(packets, _)| *packets)?;
    Some(format!(
        "{:.1} % of the data packets{of} were lost and had not been retransmitted when the run ended ({} of {}): mostly because packets \
         {how} ({packets} of {lost} that were lost)",
        100.0 * share(&losses, missing),
        missing(&losses),
        losses.data_sent,
    ))
}

/// A lower bound of the packets that were lost and not sent again: where retransmissions were needed for
/// another reason than a loss (go-back-N, trimmed packets), each of them counts as the repetition of a loss.
fn missing(losses: &LossCounters) -> u64 {
    let needed = losses.retransmitted.saturating_sub(losses.retransmitted_spurious);
    losses.lost().saturating_sub(needed)
}

/// How many packets were lost, by how.
fn ways_of_loss(losses: &LossCounters) -> [(u64, &'static str); 4] {
    [
        (losses.data_dropped, "were dropped in full or marking buffers"),
        (losses.data_lost_on_dead_links, "were lost on links that went down"),
        (losses.data_stranded, "had no route, or waited for a link that went down"),
        (losses.data_lost_at_random, "were lost at random"),
    ]
}

/// What most of the retransmissions go back to. Under go-back-N one lost or overtaken packet has many others
/// sent again, so what is compared is how many packets were lost, by how, and how many came twice.
///
/// `trimmed`: packets of the run that switches trimmed. Where they explain what receivers discarded, that is
/// the cause. `reinjects`: MPTCP is in use, which sends packets over a second subflow while they are on the
/// way over the first.
fn cause(losses: &LossCounters, trimmed: u64, reinjects: bool) -> String {
    if trimmed > 0 && losses.data_refused > losses.lost() + losses.retransmitted_spurious {
        return format!(
            "mostly because switches trimmed packets ({} arrived without their payload)",
            losses.data_refused
        );
    }
    let [dropped, on_dead_links, stranded, at_random] = ways_of_loss(losses);
    let causes = [(losses.retransmitted_spurious, ""), dropped, on_dead_links, stranded, at_random];
    // Of equal ones the first.
    let Some(&(packets, how)) = causes.iter().rev().max_by_key(|(packets, _)| *packets) else {
        return String::new();
    };
    let refused = match losses.data_refused {
        0 => String::new(),
        some if trimmed > 0 => format!("; {some} arrived without their payload"),
        some => format!("; receivers discarded {some} that arrived after a missing one"),
    };
    let lost = losses.lost();
    match (packets, how) {
        (0, _) => format!("none was lost, and none arrived twice{refused}"),
        (spurious, "") => {
            let reinjected = if reinjects { "MPTCP sent them over another subflow too, or " } else { "" };
            // Receivers that discard what follows a lost packet ask for that one, and their senders go back to it.
            let reinjected = match losses.data_refused {
                refused if refused > 0 && lost > 0 && trimmed == 0 => format!(
                    "{reinjected}senders went back to a lost packet more than once, because its receiver asked again before the copy \
                     arrived (transport.nack_interval shorter than the round trip), or "
                ),
                _ => reinjected.to_string(),
            };
            let why = match (losses.timeouts, lost) {
                // Probes of loss detection are no timeouts, and answers that are delayed have them sent too.
                (0, 0) => format!(
                    "{reinjected}packets overtook each other, or their acknowledgements came too late, and nothing was lost"
                ),
                (0, _) => format!(
                    "{reinjected}packets overtook each other, or their acknowledgements came too late or were lost ({lost} data packets \
                     lost)"
                ),
                (timeouts, _) => format!(
                    "{reinjected}packets overtook each other, or their acknowledgements came too late or were lost ({timeouts} timeouts, \
                     {lost} data packets lost)"
                ),
            };
            format!("{spurious} unnecessarily, as their receivers had them already: {why}{refused}")
        }
        (_, how) => format!("mostly because packets {how} ({packets} of {lost} that were lost){refused}"),
    }
}

/// That the number of moves of flowlets is close to that of packets: each has few packets then. Switches
/// count what passes them, so a packet counts at several, and acknowledgements count too.
fn short_flowlets(moved: u64, all: &LossCounters) -> Option<String> {
    (all.data_sent > 0 && moved as f64 >= MAJORITY * all.data_sent as f64).then(|| {
        format!(
            "flowlets moved to another port {moved} times in all switches, acknowledgements included, for {} data packets: flowlets have \
             few packets, and those may overtake each other; a run with a longer switch.balancer.gap shows what that costs",
            all.data_sent
        )
    })
}

/// Which timer a flow waited for, as far as its row tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    None,
    /// A retransmission timeout, which its sender counted.
    Timeout,
    /// Probably one of loss detection: it sent packets again, and took longer than alone by that wait.
    Probe,
}

impl Timer {
    /// `probe`: nanoseconds for which a sender waits before a tail loss probe. A flow that takes as long alone may be as
    /// late for other reasons.
    fn of(fct: f64, ideal: f64, retransmitted: f64, timeouts: f64, probe: Option<f64>) -> Timer {
        match probe {
            _ if timeouts > 0.0 => Timer::Timeout,
            Some(probe) if retransmitted > 0.0 && ideal < probe && fct - ideal >= probe => Timer::Probe,
            _ => Timer::None,
        }
    }
}

/// Completion times in nanoseconds, and timers, of finished flows.
struct Times {
    flows: Vec<(f64, Timer)>,
    /// Nanoseconds before a tail loss probe.
    probe: Option<f64>,
}

impl Times {
    fn read(dir: &Path, probe: Option<Time>) -> Result<Times, ResultsError> {
        let probe = probe.map(Time::as_ns);
        let path = dir.join(flow_table::FILE);
        let foreign = || ResultsError::input(format!("{}: not a table of flows", path.display()));
        let mut times = Vec::new();
        let columns = ["fct_ns", "ideal_fct_ns", "packets_retransmitted", "timeouts"];
        parquet_read::each(&path, &columns, &mut |batch| {
            let batch = [batch];
            let numbers = |column| parquet_read::numbers(&batch, column).ok_or_else(foreign);
            let (fct, ideal, again, timeouts) = (numbers(0)?, numbers(1)?, numbers(2)?, numbers(3)?);
            let finished = fct.into_iter().enumerate().filter(|(_, fct)| !fct.is_nan());
            times.extend(
                finished
                    .map(|(row, fct)| (fct, Timer::of(fct, ideal[row], again[row], timeouts[row], probe))),
            );
            Ok(())
        })?;
        times.sort_unstable_by(|a: &(f64, Timer), b| a.0.total_cmp(&b.0));
        Ok(Times { flows: times, probe })
    }
}

/// That most flows at the 99th percentile of completion times and above it waited for timeouts, or for timers of loss
/// detection, of which no more flows can have waited for one than `probes` expired. For how long a timeout made its
/// flow wait is not in the table, so the sentence does not say that it decided.
///
/// A report may be of fewer flows, as those after a warm-up, so the sentence says that these are all.
fn tail(times: &Times, probes: u64) -> Option<String> {
    let flows = &times.flows;
    let p99 = flows.get(flows.len() * 99 / 100)?.0;
    let first = flows.partition_point(|flow| flow.0 < p99);
    let slowest = flows.len() - first;
    let of = |timer| flows[first..].iter().filter(|flow| flow.1 == timer).count();
    let (waited, probed) = (of(Timer::Timeout), of(Timer::Probe));
    let decide = |some: usize| some as f64 >= MAJORITY * slowest as f64;
    let which = format!(
        "of the slowest 1 % of all flows of the run ({slowest}, which took {} or longer)",
        milliseconds(p99)
    );
    match times.probe {
        _ if decide(waited) => Some(format!(
            "retransmission timeouts are among what the slowest flows waited for: {which} {waited} waited for at least one; `weftline why` \
             shows for how much of their time"
        )),
        Some(probe) if probed as u64 <= probes && decide(waited + probed) => {
            let others = match waited {
                0 => String::new(),
                some => format!(", and {some} waited for a retransmission timeout"),
            };
            Some(format!(
                "timers of loss detection probably determine the tail: {which} {probed} sent packets again without a retransmission timeout \
                 and took at least {} longer than alone, which is how long a sender waits before a tail loss probe with one packet \
                 in flight (transport.loss_probe_ack_delay){others}; {probes} such timers expired in the run (loss_probes, not among \
                 timeouts), and `weftline why` shows which flows waited for them",
                milliseconds(probe)
            ))
        }
        _ => None,
    }
}

fn milliseconds(ns: f64) -> String {
    if ns < 1e6 { format!("{:.1} us", ns / 1e3) } else { format!("{:.3} ms", ns / 1e6) }
}

/// That changes of links and switches did not happen, because the run ended before them.
fn after_the_end(outcome: &Outcome, names: &Names) -> Option<String> {
    let after: Vec<_> = names.failures.iter().filter(|(at, _)| *at > outcome.end).collect();
    let (at, first) = after.first()?;
    let (is, lie) = if after.len() == 1 { ("", "lies") } else { ("the first one is ", "lie") };
    Some(format!(
        "failures: {} of {} changes of links and switches {lie} after the end of the run at {} and did not happen ({is}{first} at {})",
        after.len(),
        names.failures.len(),
        milliseconds(outcome.end.as_ns()),
        milliseconds(at.as_ns()),
    ))
}

/// That controllers which react to marks received none, though there was congestion.
fn never_marked(outcome: &Outcome, all: &LossCounters, marked: &[String]) -> Option<String> {
    let sum = |of: fn(&weftline_sim::measure::PortTotals) -> u64| {
        outcome.ports.iter().map(|(_, _, port)| of(port)).sum::<u64>()
    };
    let (marks, drops, pauses) =
        (sum(|port| port.ecn_marks), sum(|port| port.packets_dropped), sum(|port| port.pauses));
    let silent = marks == 0 && !marked.is_empty() && all.data_sent > 0 && drops + pauses > 0;
    silent.then(|| {
        let marked = marked.join(" and ");
        match (drops, pauses) {
            (0, _) => format!(
                "no packet was marked although ports were paused {pauses} times: {marked} had nothing to react to, and only PFC held \
                 packets back (switch.ecn)"
            ),
            (_, 0) => format!(
                "no packet was marked although buffers dropped {drops} packets: {marked} reacted only to losses (switch.ecn)"
            ),
            _ => format!(
                "no packet was marked although buffers dropped {drops} packets and ports were paused {pauses} times: {marked} reacted \
                 only to losses (switch.ecn)"
            ),
        }
    })
}

/// That controllers which react to marks received few where buffers dropped much. Above thresholds that suit
/// its buffer a port marks what it sends before it drops anything.
fn seldom_marked(outcome: &Outcome, names: &Names, all: &LossCounters) -> Option<String> {
    let of_switches = outcome.ports.iter().filter(|(node, ..)| !names.hosts.contains(node));
    let full = of_switches.filter(|(.., port)| port.packets_dropped > 0);
    let (drops, marks) = full
        .fold((0, 0), |(drops, marks), (.., port)| (drops + port.packets_dropped, marks + port.ecn_marks));
    let many = drops as f64 > MANY * all.data_sent as f64;
    (!names.marked.is_empty() && many && (marks as f64) < FEW_MARKS * drops as f64).then(|| {
        format!(
            "ports whose buffers dropped {drops} packets marked {marks}: {} reacted mostly to losses. See whether marks begin well \
             below what the queues hold (switch.ecn), or bursts fill them before a sender can react to a mark",
            names.marked.join(" and ")
        )
    })
}

/// Why a run was given up: for how long nothing was delivered, and the links on which nothing could pass.
pub(crate) fn silent(silence: &Silence, names: &Names) -> String {
    let Silence { stall, waited, after_change, slow } = silence;
    let limit = match waited > stall {
        true => format!("the time without a delivery before it, which is longer than run.stall = {stall}"),
        false => format!("run.stall = {stall}"),
    };
    let after = if *after_change { " after the last change of a link or switch" } else { "" };
    let name = |&SlowPort { node, local, peer, rate, packet }: &SlowPort| {
        let peer = names.nodes.get(peer as usize).map_or_else(|| format!("node{peer}"), String::clone);
        let takes = Time(two_digits(packet.0));
        format!(
            "{} (to {peer}) has a rate of {rate}, at which a packet takes {takes}",
            names.port(node, local)
        )
    };
    let mut links: Vec<String> = slow.iter().take(SLOW_NAMED).map(name).collect();
    let more = slow.len() - links.len();
    links.extend((more > 0).then(|| format!("{more} more links are as slow")));
    let links = if links.is_empty() { String::new() } else { format!("; {}", links.join("; ")) };
    format!("no payload was delivered for {}{after} ({limit}){links}", Time(two_digits(waited.0)))
}

/// That ports paused each other for good.
fn deadlocked(outcome: &Outcome, names: &Names) -> Option<String> {
    let deadlock = outcome.deadlock.as_ref()?;
    let circle: Vec<String> = deadlock.circle.iter().map(|&(node, port)| names.port(node, port)).collect();
    Some(format!(
        "PFC deadlock since {}: the ports {} have paused each other in a circle and send nothing any more, and {} ports in all wait for \
         them. Change paths so that none closes a circle of switches (up-down routing), or set switch.pfc = {{ enabled = false }}",
        milliseconds(deadlock.since.as_ns()),
        circle.join(" -> "),
        deadlock.ports,
    ))
}

/// That PFC paused a port for long.
fn paused(outcome: &Outcome, names: &Names) -> Option<String> {
    let ports = || outcome.ports.iter().map(|&(node, port, totals)| (totals.paused, node, port));
    let (longest, node, port) = ports().max_by_key(|&(time, node, port)| (time, Reverse((node, port))))?;
    let long = |time: Time| time.0 as f64 > PAUSED * outcome.end.0 as f64;
    long(longest).then(|| {
        let others = match ports().filter(|&(time, ..)| long(time)).count() - 1 {
            0 => String::new(),
            some => format!(", and {some} other ports for more than {:.0} %", 100.0 * PAUSED),
        };
        format!(
            "PFC paused {} (any of its classes) for {:.0} % of the run{others}: flows there may wait although their own path is free",
            names.port(node, port),
            100.0 * longest.0 as f64 / outcome.end.0 as f64,
        )
    })
}

/// That switches dropped packets although PFC is there to prevent it. Hosts are left out: their NICs have limits of their
/// own.
fn dropped_despite_pauses(outcome: &Outcome, names: &Names) -> Option<String> {
    let of_switches = || outcome.ports.iter().filter(|(node, ..)| !names.hosts.contains(node));
    let dropped = || of_switches().map(|&(node, port, totals)| (totals.packets_dropped, node, port));
    let (largest, node, port) =
        dropped().max_by_key(|&(packets, node, port)| (packets, Reverse((node, port))))?;
    (names.lossless && largest > 0).then(|| {
        let advice = match names.limits.get(&(node, port)) {
            Some(limit) => format!(
                "its queue drops what exceeds {limit} (switch.queue.limit), which PFC does not prevent: it pauses for \
                 the buffer that the ports of a switch share"
            ),
            None => "see whether headroom takes what arrives after a pause is sent (switch.pfc.headroom_factor, headroom_extra)".into(),
        };
        format!(
            "PFC was on, but switches dropped {} packets ({largest} of them for {}): the network was not lossless; {advice}",
            dropped().map(|(packets, ..)| packets).sum::<u64>(),
            names.port(node, port),
        )
    })
}

#[cfg(test)]
mod tests;
