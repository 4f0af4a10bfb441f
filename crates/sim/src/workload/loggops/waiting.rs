//! Things that wait for busy resources, in groups: those that are due at one time, nothing else between them.
//!
//! Of those that wait for the same, a line, only the first can happen when the time comes: if it cannot, the
//! others cannot either, and wait until the same time. A line therefore moves from one time to the next without
//! its members being tried. The places of a group's members keep the order between its lines.

use super::Due;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// What something waits for that is due: the processor of a rank, and none of its NICs, that for sending, or
/// that for receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaitsFor {
    pub rank: u32,
    pub processor: u8,
    pub nic: Option<(bool, u8)>,
}

/// Those of a group that wait for the same, in order, each with its place in the group.
#[derive(Debug)]
pub struct Line {
    pub waits_for: WaitsFor,
    pub due: VecDeque<(i64, Due)>,
}

impl Line {
    /// The place of the first.
    pub fn first(&self) -> Option<i64> {
        self.due.front().map(|(place, _)| *place)
    }

    /// Takes those before a place out of the line.
    pub fn split_before(&mut self, place: i64) -> Line {
        let at = self.due.partition_point(|(of, _)| *of < place);
        Line { waits_for: self.waits_for, due: self.due.drain(..at).collect() }
    }

    /// Takes those from a place on out of the line.
    pub fn split_from(&mut self, place: i64) -> Line {
        let at = self.due.partition_point(|(of, _)| *of < place);
        Line { waits_for: self.waits_for, due: self.due.split_off(at) }
    }

    /// Takes all out of the line.
    pub fn take(&mut self) -> Line {
        Line { waits_for: self.waits_for, due: std::mem::take(&mut self.due) }
    }

    fn shift(&mut self, by: i64) {
        self.due.iter_mut().for_each(|(place, _)| *place += by);
    }
}

/// Number of lines up to which they are searched linearly.
const FEW: usize = 8;

#[derive(Debug, Default)]
pub struct Group {
    lines: Vec<Line>,
    /// The place after the last.
    end: i64,
    count: usize,
    /// Where each line is, once there are more than a few.
    index: FxHashMap<WaitsFor, usize>,
}

impl Group {
    /// Adds something at the end.
    pub fn push(&mut self, waits_for: WaitsFor, due: Due) {
        let line = self.line(waits_for);
        self.lines[line].due.push_back((self.end, due));
        self.end += 1;
        self.count += 1;
    }

    /// Adds lines, none of them empty, at the end. The places of the fewer ones change.
    pub fn append(&mut self, lines: Vec<Line>) {
        let first = lines.iter().filter_map(Line::first).min().unwrap_or(0);
        let last =
            lines.iter().filter_map(|line| line.due.back()).map(|(place, _)| *place).max().unwrap_or(0);
        let count: usize = lines.iter().map(|line| line.due.len()).sum();
        if count > self.count {
            let before = std::mem::replace(&mut self.lines, lines);
            self.index.clear();
            for mut line in before {
                line.shift(first - self.end);
                let at = self.line(line.waits_for);
                line.due.append(&mut self.lines[at].due);
                self.lines[at] = line;
            }
            self.end = last + 1;
        } else {
            let by = self.end - first;
            for mut line in lines {
                line.shift(by);
                let at = self.line(line.waits_for);
                self.lines[at].due.append(&mut line.due);
            }
            self.end = last + by + 1;
        }
        self.count += count;
    }

    /// Takes all lines out of the group.
    pub fn take(&mut self) -> Vec<Line> {
        self.index.clear();
        (self.end, self.count) = (0, 0);
        std::mem::take(&mut self.lines)
    }

    /// Where the line is of those that wait for this; made if there is none.
    fn line(&mut self, waits_for: WaitsFor) -> usize {
        let known = match self.lines.len() {
            ..=FEW => self.lines.iter().rposition(|line| line.waits_for == waits_for),
            _ => {
                if self.index.len() < self.lines.len() {
                    self.index = self.lines.iter().map(|line| line.waits_for).zip(0..).collect();
                }
                self.index.get(&waits_for).copied()
            }
        };
        known.unwrap_or_else(|| {
            let at = self.lines.len();
            if at > FEW {
                self.index.insert(waits_for, at);
            }
            self.lines.push(Line { waits_for, due: VecDeque::new() });
            at
        })
    }
}
