//! The connection matrix of htsim (`.cm`): a flow a line, and triggers by which flows start others.
//!
//! ```text
//! Nodes N  Connections C  Triggers T             one a line; the counts must be those of the file
//! SRC->DST [id I] (start TIME | trigger T) size BYTES [send_done_trigger T] [recv_done_trigger T] [msg M] [prio P]
//! trigger id T oneshot | multishot | barrier [count K]
//! ```
//!
//! `oneshot` starts all its flows when a flow fires it; `barrier` when K flows have; `multishot` starts one flow whenever it is
//! fired. A flow that a trigger starts waits for those that fire it: where it leaves from the sender of these, until they are
//! acknowledged; where it leaves from their receiver, until all bytes are there, and then for `trigger_delay`, because
//! htsim waits for the acknowledgement at the sender.
//!
//! Source: ultraethernet/uet-htsim, connection_matrix.cpp. Differs from it: any blanks may separate words; a trigger that a
//! flow between two other hosts fires is refused, because the source of what it starts does not learn of it.

use super::{HostOf, LAST_START, Trace, TraceError, TraceRow, as_text};
use crate::files;
use crate::parameters::nearest;
use crate::units::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;

/// Starts from which on it is likelier that a file has picoseconds: a second.
const LATE_PS: i64 = 1_000_000_000_000;
const KEYS: [&str; 8] =
    ["id", "start", "trigger", "size", "send_done_trigger", "recv_done_trigger", "msg", "prio"];
const ID: usize = 0;
const START: usize = 1;
const TRIGGER: usize = 2;
const SIZE: usize = 3;
const SEND_DONE: usize = 4;
const RECV_DONE: usize = 5;
const MSG: usize = 6;
const PRIO: usize = 7;
const HEADS: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];

/// What is wrong in a line.
type Wrong = (usize, String);

struct Flow {
    line: usize,
    ends: (i64, i64),
    size: i64,
    /// Picoseconds; none: a trigger starts it.
    start: Result<i64, u64>,
    /// The triggers that it fires, at its sender and at its receiver.
    fires: [Option<u64>; 2],
    /// Flows that must end first.
    after: Vec<usize>,
}

enum Kind {
    OneShot,
    MultiShot,
    Barrier(u64),
}

#[derive(Default)]
struct Matrix {
    /// Of starts.
    unit: Time,
    flows: Vec<Flow>,
    triggers: BTreeMap<u64, (usize, Option<Kind>)>,
    /// As announced, with their lines.
    heads: [Option<(u64, usize)>; 4],
    /// The first lines of what is not represented as it stands.
    cut: Option<usize>,
    priority: Option<usize>,
    messages: Option<usize>,
}

impl Trace {
    /// Reads a connection matrix. `unit`: that of starts.
    pub fn from_htsim(
        bytes: &[u8],
        file: &str,
        host: HostOf,
        trigger_delay: Time,
        unit: Time,
    ) -> Result<Trace, TraceError> {
        let fail = |(line, message): Wrong| TraceError::new(file, Some(line), None, message);
        let mut matrix = Matrix::read(as_text(bytes, file)?, unit).map_err(fail)?;
        matrix.check_heads().map_err(fail)?;
        matrix.resolve().map_err(fail)?;
        let mut trace = Trace::default();
        let order = matrix.order().map_err(fail)?;
        let mut row_of = vec![0; matrix.flows.len()];
        let (mut here, mut there) = (0, 0);
        for (row, &(start_ps, at)) in order.iter().enumerate() {
            row_of[at] = row as i64;
            let flow = &matrix.flows[at];
            let (src, dst) = flow.ends;
            let remote = flow.after.iter().any(|&before| matrix.flows[before].ends.0 != src);
            if remote {
                there += 1;
            } else {
                here += u64::from(flow.after.iter().any(|&before| matrix.flows[before].fires[0].is_none()));
            }
            let row = TraceRow {
                src,
                dst,
                size_bytes: flow.size,
                start_ps,
                after: flow.after.iter().map(|&before| row_of[before]).collect(),
                compute_ps: if remote { trigger_delay.0 as i64 } else { 0 },
                ..TraceRow::default()
            };
            trace
                .push(row, host)
                .map_err(|message| fail((flow.line, message.replace("size_bytes", "size"))))?;
        }
        let last = order.last().map_or(0, |one| one.0);
        let mut say = |text: String| trace.warnings.push(format!("{file}: {text}"));
        if there > 0 && trigger_delay == Time::ZERO {
            say(format!(
                "{there} flows start when their sender has received all of the flow that triggers them; in htsim they start when that flow's \
                 sender has the last acknowledgement: set trigger_delay to the time that it takes"
            ));
        }
        if here > 0 {
            say(format!(
                "{here} flows with a recv_done_trigger start when their sender has the last acknowledgement, not when the receiver has all"
            ));
        }
        if last >= LATE_PS && unit > Time(1) {
            say(format!(
                "start is read as microseconds, so that the last flow starts at {}; htsim's own generators write picoseconds: \
                 start_unit = \"ps\"",
                Time(last as u64)
            ));
        }
        let lines = [
            (matrix.cut, "start has a fraction of its unit, which is cut off, as in htsim"),
            (matrix.priority, "prio is not used"),
            (matrix.messages, "messages (msg) of one connection are flows of their own"),
        ];
        lines.iter().for_each(|(line, text)| {
            if let Some(line) = line {
                say(format!("line {line}: {text}"));
            }
        });
        trace.not_empty(file)
    }
}

/// What a connection matrix holds.
pub struct MatrixFacts {
    pub flows: usize,
    /// Flows that others start.
    pub triggered: usize,
    pub bytes: u64,
    pub warnings: Vec<String>,
}

/// Reads a connection matrix without a network: every host that it names exists.
pub fn matrix_facts(path: &Path) -> Result<MatrixFacts, String> {
    let name = path.display().to_string();
    let bytes = files::read(path, files::MAX_BYTES).map_err(|message| format!("{name}: {message}"))?;
    let hosts = HostOf { by_id: &Some, by_name: &|name| Err(format!("unknown host {name}")) };
    let trace = Trace::from_htsim(&bytes, &name, hosts, Time::ZERO, Time::from_us(1));
    let mut trace = trace.map_err(|error| error.to_string())?;
    let starts: Vec<Time> = trace.flows().filter(|flow| flow.waits_for == 0).map(|flow| flow.start).collect();
    if let (Some(first), Some(last)) = (starts.iter().min(), starts.iter().max()) {
        trace.warnings.push(format!(
            "{name}: start is in microseconds (start_unit of the workload): flows start from {first} to {last}"
        ));
    }
    Ok(MatrixFacts {
        flows: trace.len(),
        triggered: trace.flows().filter(|flow| flow.waits_for > 0).count(),
        bytes: trace.flows().fold(0, |sum, flow| sum.saturating_add(flow.size)),
        warnings: trace.warnings,
    })
}

impl Matrix {
    fn read(text: &str, unit: Time) -> Result<Matrix, Wrong> {
        let mut matrix = Matrix { unit, ..Matrix::default() };
        for (at, line) in text.lines().enumerate() {
            let at = at + 1;
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            let Some(&first) = words.first() else { continue };
            let read = if let Some(head) = HEADS.iter().position(|head| head.eq_ignore_ascii_case(first)) {
                matrix.head(head, &words, at)
            } else if first.contains("->") {
                matrix.flow(&words, at)
            } else {
                match first {
                    "trigger" => matrix.trigger(&words, at),
                    "failure" => Err(
                        "failures of links are not read: write them as `[[failures.event]]` of the scenario"
                            .into(),
                    ),
                    _ => Err(format!(
                        "expected a flow (SRC->DST ...), trigger, or one of {}; found \"{first}\"",
                        HEADS.join(", ")
                    )),
                }
            };
            read.map_err(|message| (at, message))?;
        }
        Ok(matrix)
    }

    fn head(&mut self, head: usize, words: &[&str], line: usize) -> Result<(), String> {
        let &[name, number] = words else { return Err(format!("expected {} and a number", HEADS[head])) };
        let count = number.parse().map_err(|_| format!("{name}: expected a number, found \"{number}\""))?;
        match self.heads[head].replace((count, line)) {
            Some((_, before)) => Err(format!("{name} is in line {before} already")),
            None => Ok(()),
        }
    }

    fn flow(&mut self, words: &[&str], line: usize) -> Result<(), String> {
        let ends = words[0].split_once("->").map(|(src, dst)| (src.parse(), dst.parse()));
        let Some((Ok(src), Ok(dst))) = ends else {
            return Err(format!("expected SRC->DST such as 3->17, found \"{}\"", words[0]));
        };
        let mut found: [Option<&str>; 8] = [None; 8];
        for pair in words[1..].chunks(2) {
            let Some(key) = KEYS.iter().position(|key| *key == pair[0]) else {
                let near = nearest(pair[0], KEYS.into_iter());
                let near = near.map_or(String::new(), |near| format!(": did you mean \"{near}\"?"));
                return Err(format!("unknown word \"{}\"{near} (known: {})", pair[0], KEYS.join(", ")));
            };
            let Some(&value) = pair.get(1) else { return Err(format!("expected a value after {}", pair[0])) };
            if found[key].replace(value).is_some() {
                return Err(format!("{} comes twice", pair[0]));
            }
        }
        let whole = |key: usize| {
            let parsed = found[key].map(|word| {
                word.parse::<u64>()
                    .map_err(|_| format!("{}: expected a whole number, found \"{word}\"", KEYS[key]))
            });
            parsed.transpose()
        };
        let start = match (found[START], whole(TRIGGER)?) {
            (Some(_), Some(_)) => return Err("start and trigger: expected one of them".into()),
            (None, None) => return Err("expected `start` and a time, or `trigger` and a number".into()),
            (None, Some(trigger)) => Err(trigger),
            (Some(word), None) => {
                let limit = LAST_START.0 as f64 / self.unit.0 as f64;
                let number = word.parse::<f64>().ok().filter(|number| (0.0..limit).contains(number));
                let number = number.ok_or_else(|| {
                    let unit = if self.unit > Time(1) { "microseconds" } else { "picoseconds" };
                    format!("start: expected {unit}, found \"{word}\"")
                })?;
                if number.fract() != 0.0 {
                    self.cut = self.cut.or(Some(line));
                }
                Ok(number as i64 * self.unit.0 as i64)
            }
        };
        let size = whole(SIZE)?.ok_or("expected `size` and a number of bytes")?;
        whole(ID)?;
        if whole(PRIO)?.is_some() {
            self.priority = self.priority.or(Some(line));
        }
        if whole(MSG)?.is_some() {
            self.messages = self.messages.or(Some(line));
        }
        self.flows.push(Flow {
            line,
            ends: (src, dst),
            size: i64::try_from(size).unwrap_or(i64::MAX),
            start,
            fires: [whole(SEND_DONE)?, whole(RECV_DONE)?],
            after: Vec::new(),
        });
        Ok(())
    }

    fn trigger(&mut self, words: &[&str], line: usize) -> Result<(), String> {
        let form = "expected `trigger id T` and oneshot, multishot or barrier count K";
        let (Some(&"id"), Some(number), Some(&kind)) = (words.get(1), words.get(2), words.get(3)) else {
            return Err(form.into());
        };
        let number: u64 = number.parse().map_err(|_| format!("{form}, found the id \"{number}\""))?;
        let kind = match (kind, &words[4..]) {
            ("oneshot", []) => Kind::OneShot,
            ("multishot", []) => Kind::MultiShot,
            ("barrier", ["count", count]) => match count.parse() {
                Ok(count @ 1..) => Kind::Barrier(count),
                _ => return Err(format!("count: expected a number of at least 1, found \"{count}\"")),
            },
            _ => return Err(format!("{form}, found \"{}\"", words[3..].join(" "))),
        };
        match self.triggers.insert(number, (line, Some(kind))) {
            Some((before, _)) => Err(format!("trigger {number} is in line {before} already")),
            None => Ok(()),
        }
    }

    /// The counts that the file announces are those that it has.
    fn check_heads(&self) -> Result<(), Wrong> {
        let found = [None, Some(self.flows.len()), Some(self.triggers.len()), None];
        for ((head, found), name) in self.heads.iter().zip(found).zip(HEADS) {
            if let (Some((count, line)), Some(found)) = (head, found)
                && *count != found as u64
            {
                return Err((*line, format!("{name} {count}, but the file has {found}: is it truncated?")));
            }
        }
        let Some((nodes, _)) = self.heads[0] else { return Ok(()) };
        let outside = |flow: &&Flow| flow.ends.0.max(flow.ends.1) as u64 >= nodes;
        match self.flows.iter().find(outside) {
            Some(flow) => {
                Err((flow.line, format!("host {}: the file has {nodes} nodes", flow.ends.0.max(flow.ends.1))))
            }
            None => Ok(()),
        }
    }

    /// Finds the flows for which those wait that triggers start.
    fn resolve(&mut self) -> Result<(), Wrong> {
        let mut started: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut fired: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, flow) in self.flows.iter().enumerate() {
            let starts = flow.start.err().into_iter().map(|trigger| (trigger, true));
            for (trigger, is_started) in
                starts.chain(flow.fires.into_iter().flatten().map(|one| (one, false)))
            {
                if !self.triggers.contains_key(&trigger) {
                    let message =
                        format!("trigger {trigger} does not exist: no line `trigger id {trigger} ...`");
                    return Err((flow.line, message));
                }
                let lists = if is_started { &mut started } else { &mut fired };
                lists.entry(trigger).or_default().push(at);
            }
        }
        for (trigger, flows) in started {
            let by = fired.remove(&trigger).unwrap_or_default();
            let (line, kind) = &self.triggers[&trigger];
            let wrong = |message: String| (*line, format!("trigger {trigger}: {message}"));
            let mut pairs = Vec::new();
            match kind {
                _ if by.is_empty() => {
                    return Err(wrong("no flow fires it: what it starts would never start".into()));
                }
                Some(Kind::MultiShot) => {
                    // Who fires it first is known if only one flow can, and then each that it started.
                    let own = |flow: usize| self.flows[flow].start == Err(trigger);
                    let first: Vec<usize> = by.iter().copied().filter(|&flow| !own(flow)).collect();
                    let &[first] = &first[..] else {
                        let message = "multishot: which of its flows starts first depends on which of those that fire it ends first, \
                                       which only a run knows: write oneshot triggers";
                        return Err(wrong(message.into()));
                    };
                    let mut fires = Some(first);
                    for &flow in &flows {
                        let Some(before) = fires else {
                            let line = self.flows[flow].line;
                            return Err(wrong(format!(
                                "multishot: it is not fired often enough to start the flow in line {line}"
                            )));
                        };
                        pairs.push((flow, vec![before]));
                        fires = by.contains(&flow).then_some(flow);
                    }
                }
                Some(Kind::Barrier(count)) if *count != by.len() as u64 => {
                    return Err(wrong(format!("barrier count {count}, but {} flows fire it", by.len())));
                }
                Some(Kind::OneShot) if by.len() > 1 => {
                    let line = self.flows[by[1]].line;
                    return Err(wrong(format!("oneshot: the flow in line {line} fires it a second time")));
                }
                _ => pairs.extend(flows.iter().map(|&flow| (flow, by.clone()))),
            }
            for (flow, after) in pairs {
                self.learns(flow, &after, trigger)?;
                self.flows[flow].after = after;
            }
        }
        Ok(())
    }

    /// The source of a flow learns of the end of those that it waits for.
    fn learns(&self, flow: usize, after: &[usize], trigger: u64) -> Result<(), Wrong> {
        let Flow { line, ends: (src, _), .. } = self.flows[flow];
        let foreign =
            after.iter().map(|&before| &self.flows[before]).find(|by| by.ends.0 != src && by.ends.1 != src);
        let Some(by) = foreign else { return Ok(()) };
        Err((
            line,
            format!(
                "trigger {trigger} is fired by the flow {}->{} in line {}, of which host {src} does not learn: hosts learn of each \
                 other by packets only",
                by.ends.0, by.ends.1, by.line
            ),
        ))
    }

    /// Flows in the order of their earliest starts (ps), each after those that it waits for.
    fn order(&self) -> Result<Vec<(i64, usize)>, Wrong> {
        let mut later: Vec<Vec<usize>> = vec![Vec::new(); self.flows.len()];
        let mut left: Vec<usize> = self.flows.iter().map(|flow| flow.after.len()).collect();
        let mut earliest: Vec<i64> = self.flows.iter().map(|flow| flow.start.unwrap_or(0)).collect();
        let mut ready = BinaryHeap::new();
        for (at, flow) in self.flows.iter().enumerate() {
            flow.after.iter().for_each(|&before| later[before].push(at));
            if flow.after.is_empty() {
                ready.push(Reverse((earliest[at], at)));
            }
        }
        let mut order = Vec::with_capacity(self.flows.len());
        while let Some(Reverse((ps, at))) = ready.pop() {
            order.push((ps, at));
            for &next in &later[at] {
                earliest[next] = earliest[next].max(ps);
                left[next] -= 1;
                if left[next] == 0 {
                    ready.push(Reverse((earliest[next], next)));
                }
            }
        }
        match left.iter().position(|&left| left > 0) {
            Some(at) => Err((self.flows[at].line, "this flow waits for itself, by way of triggers".into())),
            None => Ok(order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, TraceError> {
        let host = |label: u32| (label < 16).then_some(label);
        let hosts = HostOf { by_id: &host, by_name: &|name| Err(name.to_string()) };
        Trace::from_htsim(text.as_bytes(), "a.cm", hosts, Time::from_us(2), Time::from_us(1))
    }

    fn flows(text: &str) -> Vec<(u32, u32, u64, u64, u16)> {
        let trace = read(text).expect("a trace");
        let all = trace.flows();
        all.map(|flow| {
            (flow.src, flow.dst, flow.start.0 / 1_000_000, flow.compute.0 / 1_000_000, flow.waits_for)
        })
        .collect()
    }

    const CHAIN: &str = "# three flows\nNodes 16\r\nConnections 3\nTriggers 2\n0->1 id 1 start 5 size 1000 send_done_trigger 1\n\
        1->2 id 2 trigger 1 size 2000 send_done_trigger 2\n1->3 id 3 trigger 2 size 3000\n\
        trigger id 1 oneshot\ntrigger id 2 oneshot\n";

    #[test]
    fn a_flow_waits_for_those_that_trigger_it_at_its_source() {
        // At the receiver of the first with the delay, at the sender of the second without.
        assert_eq!(flows(CHAIN), [(0, 1, 5, 0, 0), (1, 2, 5, 2, 1), (1, 3, 5, 0, 1)]);
        assert_eq!(read(CHAIN).expect("a trace").waits, [(1, 0), (2, 1)]);
    }

    #[test]
    fn flows_are_sorted_by_their_starts_whatever_the_order_of_lines() {
        let text = "0->1 trigger 7 size 1\n0->2 start 9.7 size 2\n0->3 start 1 size 3 send_done_trigger 7\ntrigger id 7 oneshot\n";
        assert_eq!(flows(text), [(0, 3, 1, 0, 0), (0, 1, 1, 0, 1), (0, 2, 9, 0, 0)]);
        let trace = read(text).expect("a trace");
        assert!(trace.warnings[0].contains("line 2: start has a fraction"), "{:?}", trace.warnings);
    }

    #[test]
    fn starts_are_in_the_unit_that_is_given_and_late_ones_are_warned_of() {
        let text = "0->1 start 1000000 size 1\n2->3 start 3500000 size 1\n";
        let trace = read(text).expect("a trace");
        assert_eq!(trace.flows().map(|flow| flow.start).last(), Some(Time::from_us(3_500_000)));
        let expected = "a.cm: start is read as microseconds, so that the last flow starts at 3.5s; htsim's own generators";
        assert!(trace.warnings[0].starts_with(expected), "{:?}", trace.warnings);
        let hosts = HostOf { by_id: &Some, by_name: &|name| Err(name.to_string()) };
        let trace = Trace::from_htsim(text.as_bytes(), "a.cm", hosts, Time::ZERO, Time(1)).expect("a trace");
        assert_eq!(trace.flows().map(|flow| flow.start).last(), Some(Time::from_ns(3_500)));
        assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
    }

    #[test]
    fn a_barrier_waits_for_all_and_a_multishot_starts_one_after_the_other() {
        let barrier = "0->1 start 0 size 1 send_done_trigger 1\n2->0 start 0 size 1 recv_done_trigger 1\n\
            0->5 trigger 1 size 1\n0->6 trigger 1 size 1\ntrigger id 1 barrier count 2\n";
        assert_eq!(read(barrier).expect("a trace").waits, [(2, 0), (2, 1), (3, 0), (3, 1)]);
        let chain = "0->1 start 0 size 1 send_done_trigger 1\n0->2 trigger 1 size 1 send_done_trigger 1\n\
            0->3 trigger 1 size 1 send_done_trigger 1\ntrigger id 1 multishot\n";
        assert_eq!(read(chain).expect("a trace").waits, [(1, 0), (2, 1)]);
    }

    #[test]
    fn what_cannot_be_represented_names_its_line() {
        let both = "0->1 start 0 size 1 send_done_trigger 1\n0->2 start 0 size 1 send_done_trigger 1\n0->3 trigger 1 size 1\n";
        for (text, expected) in [
            (CHAIN.replace("Connections 3", "Connections 4"), "a.cm:3: Connections 4, but the file has 3"),
            (CHAIN.replace("Nodes 16", "Nodes 3"), "a.cm:7: host 3: the file has 3 nodes"),
            (CHAIN.replace("trigger id 2 oneshot\n", "").replace("Triggers 2", "Triggers 1"), "a.cm:6: trigger 2 does not exist"),
            (CHAIN.replace("1->2", "4->2"), "a.cm:6: trigger 1 is fired by the flow 0->1 in line 5, of which host 4"),
            (CHAIN.replace("size 2000", "sise 2000"), "a.cm:6: unknown word \"sise\": did you mean \"size\"?"),
            (CHAIN.replace("start 5", "start -5"), "a.cm:5: start: expected microseconds, found \"-5\""),
            (CHAIN.replace("start 5 ", ""), "a.cm:5: expected `start` and a time"),
            (CHAIN.replace("size 3000", "size"), "a.cm:7: expected a value after size"),
            (CHAIN.replace("size 3000", "size 0"), "a.cm:7: size: expected a size of at least 1"),
            (CHAIN.replace("1->3", "1->1"), "a.cm:7: src and dst are both host 1"),
            (CHAIN.replace("0->1 id", "0-1 id"), "a.cm:5: expected a flow (SRC->DST ...)"),
            (format!("{both}trigger id 1 oneshot\n"), "a.cm:4: trigger 1: oneshot: the flow in line 2 fires it a second time"),
            (format!("{both}trigger id 1 multishot\n"), "a.cm:4: trigger 1: multishot: which of its flows"),
            (format!("{both}trigger id 1 barrier count 3\n"), "a.cm:4: trigger 1: barrier count 3, but 2 flows fire it"),
            (format!("{both}trigger id 1 barrier\n"), "a.cm:4: expected `trigger id T`"),
            ("0->1 trigger 1 size 1 send_done_trigger 2\n0->2 trigger 2 size 1 send_done_trigger 1\ntrigger id 1 oneshot\n\
              trigger id 2 oneshot\n".into(), "a.cm:1: this flow waits for itself"),
            ("0->1 trigger 1 size 1\ntrigger id 1 oneshot\n".into(), "a.cm:2: trigger 1: no flow fires it"),
            ("failure switch_type TOR switch_id 0 link_id 0\n".into(), "a.cm:1: failures of links are not read"),
            ("# nothing\n".into(), "a.cm: the file contains no flows"),
        ] {
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.starts_with(expected), "{error}\nexpected {expected}");
        }
    }
}
