//! The critical chain of a flow, followed back from its end to its start.

use super::index::Index;
use super::pauses::{Origins, Pause};
use super::{Account, Cause, Findings, Interval, Traced};
use crate::net::trace::Passed;
use crate::packet::PacketKind;
use crate::transport::{Hold, Timeouts};
use crate::units::Time;
use crate::workload::FlowId;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a timeout is of a transport that does not report it.
const UNTIL: &str = "until the sender's retransmission timeout expired";

/// What a step of the chain found: it continues with the packet that left a host, or with the sender at a
/// time.
enum Next {
    Left(Passed),
    Sender(Time),
    Over,
}

struct Walk<'a> {
    flow: &'a Traced,
    findings: &'a Findings,
    index: &'a Index,
    holds: &'a [(Time, Option<Hold>)],
    timeouts: Option<&'a (Timeouts, Vec<Time>)>,
    /// What a timeout that is met now was, and how long each has taken.
    until: &'static str,
    waited_until: BTreeMap<&'static str, Time>,
    /// How long each pause took.
    pauses: BTreeMap<Pause, Time>,
    /// What left its sender, in order of time.
    launches: Vec<Passed>,
    /// By node: what came there, in order.
    arrivals: HashMap<u32, Vec<Passed>>,
    own_flows: HashSet<FlowId>,
    src: u32,
    dst: u32,
    /// Everything from here to the end of the flow has its cause.
    cursor: Time,
    intervals: Vec<Interval>,
    path: Vec<u32>,
    nic_again: Time,
}

/// The account of one flow.
pub fn account(
    flow: &Traced,
    number: usize,
    findings: &Findings,
    index: &Index,
    origins: &mut Origins,
) -> Account {
    let passed = &findings.trace.passed;
    let in_time = |one: &&Passed| one.time <= flow.finish;
    let mut own: Vec<Passed> =
        passed.iter().filter(in_time).filter(|p| p.flow == flow.flow).copied().collect();
    if !own.iter().any(|one| one.kind == PacketKind::Data) {
        // It went over a connection that stays open, whose packets bear the number of its first flow.
        let pair = [(flow.src, flow.dst), (flow.dst, flow.src)];
        own = passed.iter().filter(in_time).filter(|p| pair.contains(&(p.src, p.dst))).copied().collect();
    }
    own.sort_by_key(|one| (one.time, one.at));
    let (src, dst) = (findings.host_node[flow.src as usize], findings.host_node[flow.dst as usize]);
    let ends = |one: &Passed| (findings.links[one.link as usize].0, findings.links[one.link as usize].1);
    let own_flows =
        own.iter().map(|one| one.flow).chain([flow.flow]).filter(|&one| one != FlowId::MAX).collect();
    let launches: Vec<Passed> = own.iter().filter(|one| ends(one).0 == src).copied().collect();
    let mut arrivals: HashMap<u32, Vec<Passed>> = HashMap::new();
    for one in own.iter().filter(|one| !index.lost.contains(&(one.at, one.id))) {
        arrivals.entry(ends(one).1).or_default().push(*one);
    }
    arrivals.values_mut().for_each(|all| all.sort_by_key(|one| (one.at, one.time)));
    let mut walk = Walk {
        flow,
        findings,
        index,
        holds: &findings.holds[number],
        timeouts: findings.timeouts[number].as_ref(),
        until: findings.timeouts[number].as_ref().map_or(UNTIL, |(last, _)| last.until),
        waited_until: BTreeMap::new(),
        pauses: BTreeMap::new(),
        own_flows,
        launches,
        arrivals,
        src,
        dst,
        cursor: flow.finish,
        intervals: Vec::new(),
        path: Vec::new(),
        nic_again: Time::ZERO,
    };
    walk.follow();
    let Walk { mut intervals, path, waited_until, pauses, nic_again, .. } = walk;
    intervals.reverse();
    let repeats =
        |part: &Interval| matches!(part.cause, Cause::Retransmission | Cause::Timeout | Cause::LossDetection);
    let is_answer = |one: &&Passed| one.kind != PacketKind::Data && one.src == flow.dst;
    let answers_lost = index.lost_of(flow, own.iter().filter(is_answer));
    let lost =
        if intervals.iter().any(repeats) { index.lost_of(flow, own.iter()) } else { answers_lost.clone() };
    let mut paused_for = BTreeMap::new();
    for (pause, time) in pauses {
        *paused_for.entry((pause.0, origins.of(pause))).or_default() += time;
    }
    let (used, trimmed) = (index.used_by(flow, &own, findings), index.trimmed_of(flow, &own, findings));
    Account {
        flow: *flow,
        intervals,
        path,
        lost,
        answers_lost,
        waited_until,
        paused_for,
        nic_again,
        used,
        trimmed,
    }
}

impl Walk<'_> {
    /// Gives what lies between a time and the cursor to a cause.
    fn take(&mut self, from: Time, cause: Cause, link: Option<u32>, other: Option<FlowId>) {
        let from = from.max(self.flow.start);
        if from >= self.cursor {
            return;
        }
        let to = std::mem::replace(&mut self.cursor, from);
        if cause == Cause::Timeout {
            *self.waited_until.entry(self.until).or_default() += to - from;
        }
        match self.intervals.last_mut() {
            Some(last) if (last.cause, last.link, last.other) == (cause, link, other) => last.from = from,
            _ => self.intervals.push(Interval { from, to, cause, link, other }),
        }
    }

    fn ends(&self, link: u32) -> (u32, u32) {
        let (from, to, _, _) = self.findings.links[link as usize];
        (from, to)
    }

    fn is_host(&self, node: u32) -> bool {
        self.findings.host_node.binary_search(&node).is_ok()
    }

    /// The last of its packets that came to a node by a time; `exactly`: at that time.
    fn arrival(&self, node: u32, by: Time, exactly: bool) -> Option<Passed> {
        let all = self.arrivals.get(&node)?;
        let end = all.partition_point(|one| one.at <= by);
        all[..end].last().filter(|one| !exactly || one.at == by).copied()
    }

    /// The last of its packets that began to leave its sender before a time.
    fn launch_before(&self, time: Time) -> Option<Passed> {
        let end = self.launches.partition_point(|one| one.time < time);
        self.launches[..end].last().copied()
    }

    /// The one that began to leave it at this time.
    fn launch_at(&self, time: Time) -> Option<Passed> {
        self.launch_before(Time(time.0 + 1)).filter(|one| one.time == time)
    }

    /// A packet of data of which something had left the sender before.
    fn is_again(&self, packet: &Passed) -> bool {
        self.index.again.contains(&(packet.link, packet.time))
    }

    /// What came last, under the number of `packet`, to the node that it left.
    fn came_before(&self, packet: &Passed) -> Option<Passed> {
        let (node, passed) = (self.ends(packet.link).0, &self.findings.trace.passed);
        let hops = self.index.by_id.get(&packet.id)?;
        let end = hops.partition_point(|&number| passed[number as usize].time < packet.time);
        let hop = passed[hops[end.checked_sub(1)?] as usize];
        (self.ends(hop.link).1 == node && hop.at <= packet.time && hop.flow == packet.flow).then_some(hop)
    }

    /// The hop before of a packet that left a switch, which may have turned it back to its source. Where it
    /// was not traced, another packet may have come under the same number.
    fn hop_before(&self, packet: &Passed) -> Option<Passed> {
        let same = |hop: &Passed| {
            (hop.kind, hop.seq) == (packet.kind, packet.seq) && [packet.src, packet.dst].contains(&hop.src)
        };
        self.came_before(packet).filter(same)
    }

    fn follow(&mut self) {
        let (src, dst, end) = (self.src, self.dst, self.flow.finish);
        let exact = self.arrival(src, end, true).or_else(|| self.arrival(dst, end, true));
        let Some(last) =
            exact.or_else(|| self.arrival(src, end, false).max_by_at(self.arrival(dst, end, false)))
        else {
            return self.take(Time::ZERO, Cause::Transport, None, None);
        };
        self.take(last.at, Cause::Receiver, None, None);
        let mut next = self.journey(last, None, true);
        let mut baseline = None;
        loop {
            if self.cursor <= self.flow.start {
                return;
            }
            let before = self.cursor;
            next = match next {
                Next::Left(packet) if self.ends(packet.link).0 == src => {
                    baseline = None;
                    self.sender(packet.time, Some(packet), &mut baseline)
                }
                Next::Left(packet) => self.elsewhere(packet, baseline),
                Next::Sender(at) => self.sender(at, None, &mut baseline),
                Next::Over => Next::Over,
            };
            let stuck = self.cursor == before && !matches!(next, Next::Left(p) if p.time < before);
            if stuck && !matches!(next, Next::Sender(at) if at < before) || matches!(next, Next::Over) {
                return self.take(Time::ZERO, Cause::Transport, None, None);
            }
        }
    }

    /// Follows a packet from its arrival back to the host that it left. `baseline`: what its transmission and
    /// propagation go to, if not to themselves.
    fn journey(&mut self, last: Passed, baseline: Option<Cause>, completes: bool) -> Next {
        let mut packet = last;
        loop {
            let (from, _, _, delay) = self.findings.links[packet.link as usize];
            let link = Some(packet.link);
            if completes {
                self.path.insert(0, packet.link);
            }
            let sent = packet.at.saturating_sub(delay).max(packet.time);
            self.take(sent, baseline.unwrap_or(Cause::Propagation), link, None);
            self.take(packet.time, baseline.unwrap_or(Cause::Transmission), link, None);
            if self.is_host(from) {
                return Next::Left(packet);
            }
            let Some(hop) = self.hop_before(&packet) else {
                // It came to this switch before the flow started, of which all of the time then has its
                // cause.
                self.wait(&packet, self.flow.start, None, Cause::Transport);
                return Next::Over;
            };
            // A switch that cuts through may have to wait for the tail.
            let tail = hop.until.max(hop.time) + self.findings.links[hop.link as usize].3;
            if self.cursor > hop.at {
                let held = baseline.unwrap_or(Cause::Transmission);
                self.wait(&packet, hop.at, Some((tail, held)), Cause::Discipline);
            }
            packet = hop;
        }
    }

    /// Splits the time from `from` to the cursor, in which a packet waited for its link, by what the link
    /// did.
    fn wait(&mut self, packet: &Passed, from: Time, tail: Option<(Time, Cause)>, idle: Cause) {
        let (link, index) = (packet.link, self.index);
        let (node, to) = self.ends(link);
        let at_sender = node == self.src;
        if let Some(all) = index.by_link.get(&link) {
            let passed = &self.findings.trace.passed;
            let end = all.partition_point(|&number| passed[number as usize].time < self.cursor);
            for &number in all[..end].iter().rev() {
                let one = &passed[number as usize];
                if one.until <= from || self.cursor <= from {
                    break;
                }
                self.idle(packet, one.until.max(from), (node, to), tail, idle);
                let own = self.own_flows.contains(&one.flow) && one.flow != FlowId::MAX;
                let cause = match own {
                    true if !at_sender => Cause::OwnQueue,
                    true if self.is_again(one) => Cause::Retransmission,
                    true => Cause::Transmission,
                    false if at_sender => Cause::Nic,
                    false if self.overtakes(one, from) => Cause::Priority,
                    false => Cause::OthersQueue,
                };
                let other = (!own && one.flow != FlowId::MAX).then_some(one.flow);
                let before = self.cursor;
                self.take(one.time.max(from), cause, Some(link), other);
                if cause == Cause::Nic && self.is_again(one) {
                    self.nic_again += before - self.cursor;
                }
            }
        }
        self.idle(packet, from, (node, to), tail, idle);
    }

    /// Whether a packet left a switch before one that had come there by `from`, though it came later, or is a
    /// pause.
    fn overtakes(&self, one: &Passed, from: Time) -> bool {
        if matches!(one.kind, PacketKind::Pause | PacketKind::Resume) {
            return true;
        }
        self.hop_before(one).is_some_and(|hop| hop.at > from)
    }

    /// The same of a time in which the link carried nothing.
    fn idle(
        &mut self,
        packet: &Passed,
        from: Time,
        ends: (u32, u32),
        tail: Option<(Time, Cause)>,
        idle: Cause,
    ) {
        let from = from.max(self.flow.start);
        while self.cursor > from {
            let at = self.cursor;
            let (begin, paused) = self.paused(packet, at);
            let (since, down) = self.down(ends, at);
            if paused {
                self.take(begin.max(from), Cause::Pause, Some(packet.link), None);
                *self.pauses.entry((packet.link, packet.class, begin)).or_default() += at - self.cursor;
                continue;
            }
            let from = from.max(begin);
            if down {
                self.take(since.max(from), Cause::Failure, Some(packet.link), None);
                continue;
            }
            let from = from.max(since);
            match tail {
                Some((tail, cause)) if at <= tail => self.take(from, cause, Some(packet.link), None),
                Some((tail, _)) => self.take(from.max(tail), idle, Some(packet.link), None),
                None => self.take(from, idle, Some(packet.link), None),
            }
        }
    }

    /// Whether the class of a packet was paused at its link just before a time, and since when it was so or
    /// not.
    fn paused(&self, packet: &Passed, before: Time) -> (Time, bool) {
        let Some(all) = self.index.pauses.get(&(packet.link, packet.class)) else {
            return (Time::ZERO, false);
        };
        let mut end = all.partition_point(|&(at, _)| at < before);
        let Some(&(mut since, state)) = end.checked_sub(1).map(|last| &all[last]) else {
            return (Time::ZERO, false);
        };
        while end > 0 && all[end - 1].1 == state {
            since = all[end - 1].0;
            end -= 1;
        }
        (since, state)
    }

    /// The same of its link being down.
    fn down(&self, ends: (u32, u32), before: Time) -> (Time, bool) {
        let mut since = Time::ZERO;
        for &(nodes, from, to) in &self.findings.down {
            if nodes != [ends.0, ends.1] && nodes != [ends.1, ends.0] {
                continue;
            }
            if from < before && before <= to {
                return (from, true);
            }
            if to < before {
                since = since.max(to);
            }
        }
        (since, false)
    }

    /// A packet left a host that is not the sender: the one that it answered. It may have been made later
    /// than that came (a clock, a timer), and waits for its link only from then on.
    fn elsewhere(&mut self, packet: Passed, baseline: Option<Cause>) -> Next {
        let node = self.ends(packet.link).0;
        // A packet may be sent back as its own answer, under its number.
        let turned = self.came_before(&packet).filter(|one| one.kind == PacketKind::Data);
        let made = self.index.made.get(&(packet.link, packet.time)).copied().unwrap_or(packet.time);
        let trigger = turned.or_else(|| self.arrival(node, made, false));
        let Some(trigger) = trigger else {
            self.take(Time::ZERO, Cause::Receiver, None, None);
            return Next::Over;
        };
        // What was made as soon as something came is an answer to that.
        let by_timer = packet.kind != PacketKind::Data && made > trigger.at;
        let timer = usize::from(packet.numbers).checked_sub(1).filter(|_| by_timer);
        let timer = timer.and_then(|place| self.findings.trace.timers.get(place));
        let cause = if timer.is_some() { Cause::Timeout } else { Cause::Receiver };
        let of_sender = timer.map(|until| std::mem::replace(&mut self.until, until));
        self.wait(&packet, made.max(trigger.at), None, cause);
        self.take(trigger.at, cause, Some(packet.link), None);
        self.until = of_sender.unwrap_or(self.until);
        self.journey(trigger, baseline, self.path_is_open(baseline))
    }

    /// The packet that is followed is still the one that completed the flow.
    fn path_is_open(&self, baseline: Option<Cause>) -> bool {
        baseline.is_none() && self.path.first().is_some_and(|&link| self.ends(link).0 != self.src)
    }

    /// What the sender waited for at `at`, when `packet` left; without one, when something changed.
    fn sender(&mut self, at: Time, packet: Option<Passed>, baseline: &mut Option<Cause>) -> Next {
        // What a timeout made the sender ask waits for its link only from then on.
        let made = packet.and_then(|packet| self.index.made.get(&(packet.link, packet.time)).copied());
        if let (Some(made), Some(packet)) = (made.filter(|&made| self.expired_at(made)), packet) {
            self.wait(&packet, made, None, Cause::Transport);
            return self.sender(made, None, baseline);
        }
        let known = self.holds.partition_point(|&(time, _)| time < at);
        let Some(&(since, hold)) = known.checked_sub(1).map(|last| &self.holds[last]) else {
            // Before the flow started its connection did what it did.
            return self.triggered(at, Time::ZERO, None, packet, baseline);
        };
        match hold {
            Some(Hold::Free { from }) => {
                let any = packet.or_else(|| self.launch_before(at));
                let Some(any) = any else { return Next::Over };
                let ready = from.clamp(since, at);
                self.wait(&any, ready, None, Cause::Transport);
                self.wait_for(&any, since, Cause::Pacing);
                match self.still_sent(any.link, since, ready > since) {
                    Some(last) => self.after(last),
                    None => self.changed(since, baseline),
                }
            }
            hold => self.triggered(at, since, hold, packet, baseline),
        }
    }

    /// The flow's packet because of which the next one could not have left at `at`, whatever came then: its
    /// NIC was sending it until then or longer, or, if it `paces`, pacing counts from it. Packets that are
    /// sent again wait for what reported the loss.
    fn still_sent(&self, link: u32, at: Time, paces: bool) -> Option<Passed> {
        let next = self.launches.partition_point(|one| one.time < at);
        if self.launches.get(next).is_some_and(|packet| self.is_again(packet)) {
            return None;
        }
        let is_data = |one: &&Passed| one.link == link && one.kind == PacketKind::Data;
        let last = *self.launches[..next].iter().rev().find(is_data)?;
        // Without a window pacing goes on from what it was before.
        let paces = paces && matches!(self.hold_before(at), Some(Hold::Window | Hold::Receiver));
        (paces || last.until >= at).then_some(last)
    }

    /// The next packet left as soon as the NIC and pacing let it after `last`.
    fn after(&mut self, last: Passed) -> Next {
        self.wait_for(&last, last.time, Cause::Pacing);
        Next::Left(last)
    }

    fn hold_before(&self, at: Time) -> Option<Hold> {
        let known = self.holds.partition_point(|&(time, _)| time < at);
        known.checked_sub(1).and_then(|last| self.holds[last].1)
    }

    /// Something of the sender changed at this time: a packet left, or came.
    fn changed(&mut self, at: Time, baseline: &mut Option<Cause>) -> Next {
        if at <= self.flow.start {
            return Next::Over;
        }
        if let Some(packet) = self.launch_at(at) {
            return Next::Left(packet);
        }
        let before = self.hold_before(at);
        // An acknowledgement may change the pacing of a packet that waits for it: it continues to wait.
        if matches!(before, Some(Hold::Free { .. })) {
            return Next::Sender(at);
        }
        let Some(news) = self.arrival(self.src, at, true) else { return Next::Sender(at) };
        let next = self.launches.get(self.launches.partition_point(|one| one.time < at));
        let again = next.is_some_and(|packet| self.is_again(packet));
        *baseline = Some(if again { Cause::Retransmission } else { cause_of(before) });
        self.journey(news, *baseline, false)
    }

    /// The sender was held until something came, or a timer expired, at `at`.
    fn triggered(
        &mut self,
        at: Time,
        since: Time,
        hold: Option<Hold>,
        packet: Option<Passed>,
        baseline: &mut Option<Cause>,
    ) -> Next {
        // Without a packet the sender waits to send the next one.
        let next = || self.launches.get(self.launches.partition_point(|one| one.time < at)).copied();
        let again = packet.or_else(next).is_some_and(|packet| self.is_again(&packet));
        let cause = if again { Cause::Retransmission } else { cause_of(hold) };
        if let Some(last) = packet.and_then(|packet| self.still_sent(packet.link, at, false)) {
            return self.after(last);
        }
        if let Some(news) = self.arrival(self.src, at, true) {
            *baseline = Some(cause);
            return self.journey(news, *baseline, false);
        }
        let launched = self.launch_before(at);
        let came = if at.0 == 0 { None } else { self.arrival(self.src, Time(at.0 - 1), false) };
        let times =
            [Some(since), launched.map(|one| one.time), came.map(|one| one.at), Some(self.flow.start)];
        let from = times.into_iter().flatten().max().unwrap_or(since).min(at);
        let cause = match again {
            true => self.timer(from, at, hold),
            false if self.expired_at(at) => Cause::Timeout,
            false => cause,
        };
        match packet.or(launched) {
            Some(any) => self.wait_for(&any, from, cause),
            None => self.take(from, cause, None, None),
        }
        if let Some(packet) = launched.filter(|one| one.time == from) {
            return Next::Left(packet);
        }
        if let Some(news) = came.filter(|one| one.at == from) {
            *baseline = Some(cause);
            return self.journey(news, *baseline, false);
        }
        if from <= self.flow.start { Next::Over } else { Next::Sender(from) }
    }

    /// The timer after which a packet was sent again at `at`, for which nothing else happened since `from`.
    fn timer(&self, from: Time, at: Time, hold: Option<Hold>) -> Cause {
        let expired = |times: &[Time]| times.iter().any(|&time| from < time && time <= at);
        match self.timeouts {
            Some((_, times)) if expired(times) => Cause::Timeout,
            Some((last, _)) if last.has_earlier => Cause::LossDetection,
            Some(_) => cause_of(hold),
            None => Cause::Timeout,
        }
    }

    /// A timeout of the sender expired at this time.
    fn expired_at(&self, at: Time) -> bool {
        self.timeouts.is_some_and(|(_, times)| times.binary_search(&at).is_ok())
    }

    /// Gives the time from `from` to the cursor to `cause`, except the time in which the NIC sent the flow's
    /// own packets.
    fn wait_for(&mut self, packet: &Passed, from: Time, cause: Cause) {
        let from = from.max(self.flow.start);
        let link = packet.link;
        let all = self.index.by_link.get(&link).map_or(&[][..], |all| all);
        let passed = &self.findings.trace.passed;
        let end = all.partition_point(|&number| passed[number as usize].time < self.cursor);
        for &number in all[..end].iter().rev() {
            let one = &passed[number as usize];
            if one.until <= from || self.cursor <= from {
                break;
            }
            if one.flow == FlowId::MAX || !self.own_flows.contains(&one.flow) {
                continue;
            }
            self.take(one.until.max(from), cause, Some(link), None);
            let sending = if self.is_again(one) { Cause::Retransmission } else { Cause::Transmission };
            self.take(one.time.max(from), sending, Some(link), None);
        }
        self.take(from, cause, Some(link), None);
    }
}

/// What a round trip that the sender waited for goes to.
fn cause_of(hold: Option<Hold>) -> Cause {
    match hold {
        Some(Hold::Window) => Cause::Window,
        Some(Hold::Receiver) => Cause::Receiver,
        Some(Hold::Opening) => Cause::Opening,
        // The next packet could not leave before what ended the waiting; it is not known for what else.
        Some(Hold::Sent | Hold::Free { .. }) | None => Cause::Transport,
    }
}

trait LaterArrival {
    fn max_by_at(self, other: Option<Passed>) -> Option<Passed>;
}

impl LaterArrival for Option<Passed> {
    fn max_by_at(self, other: Option<Passed>) -> Option<Passed> {
        self.into_iter().chain(other).max_by_key(|one| one.at)
    }
}
