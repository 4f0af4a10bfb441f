//! What the hops of packets saw, as a table, and the digests that hops under a plan would make of it.
//!
//! One row a packet and hop, a packet's rows together and from its first hop on: `packet_id`, `hop` (from 1), one column per value of the
//! plan under the value's name (`switch-id`, `hop-latency`, ...), and any of the columns of [`crate::recorded`] that tell the flow,
//! the time and the sink; those of a packet's last row count, or of the row of the hop that reports the packet in a loop: such a packet
//! makes a report of a loop instead of a digest. This is a switch in software: for trying a plan, and for making digests whose truth is
//! known.

use std::io::BufRead;

use crate::csv::{CsvError, Lines};
use crate::encoder::{Encoder, Refused};
use crate::plan::{Plan, unknown};
use crate::recorded::{Column, Recorded, number};

/// What a column of the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Hop,
    /// The value of these queries, a bit each.
    Value(u16),
    Record(Column),
    Other,
}

/// Makes a digest of every packet of a table.
#[derive(Debug)]
pub struct Walks<R> {
    lines: Lines<R>,
    plan: Plan,
    version: u32,
    encoder: Encoder,
    roles: Vec<Role>,
    /// The first row of the next packet.
    ahead: Option<Seen>,
    ended: bool,
}

/// A row.
#[derive(Debug, Clone)]
struct Seen {
    row: Recorded,
    hop: u32,
    /// One per query.
    values: Vec<u64>,
}

impl<R: BufRead> Walks<R> {
    /// Reads the header. Errors: a column that the plan needs is missing, or there twice.
    pub fn new(plan: &Plan, input: R, file: &str) -> Result<Walks<R>, WalkError> {
        let encoder = plan.encoder().map_err(WalkError::Plan)?;
        let lines = Lines::new(input, file)?;
        let roles = roles(plan, lines.header()).map_err(|(column, message)| lines.error(&column, message))?;
        let version = plan.version();
        Ok(Walks { lines, plan: plan.clone(), version, encoder, roles, ahead: None, ended: false })
    }

    fn seen(&mut self) -> Result<Option<Seen>, CsvError> {
        let queries = self.encoder.tasks().len();
        let mut seen = Seen { row: Recorded::default(), hop: 0, values: vec![0; queries] };
        let Walks { lines, roles, plan, .. } = self;
        let max_hops = plan.queries().hops.maximal;
        let read = lines.next(|place, field| {
            let whole = |expected: &str| {
                number(field).ok_or_else(|| format!("expected {expected}, found \"{field}\""))
            };
            match roles.get(place).copied().unwrap_or(Role::Other) {
                Role::Other => {}
                Role::Record(column) => column.set(&mut seen.row, field)?,
                Role::Value(queries) => {
                    let value = whole("a whole number of at most 64 bits")?;
                    let served =
                        seen.values.iter_mut().enumerate().filter(|(query, _)| queries >> query & 1 == 1);
                    for (query, place) in served {
                        if let Some(reason) = plan.unfit(query, value) {
                            return Err(reason);
                        }
                        *place = value;
                    }
                }
                Role::Hop => {
                    let expected = format!("a hop from 1 to {max_hops}");
                    let hop = whole(&expected)?;
                    if hop == 0 || hop > u64::from(max_hops) {
                        return Err(format!("expected {expected}, found {hop}"));
                    }
                    seen.hop = hop as u32;
                }
            }
            Ok(())
        })?;
        Ok(read.then_some(seen))
    }

    fn walk(&mut self) -> Result<Option<Recorded>, CsvError> {
        let first = match self.ahead.take() {
            Some(seen) => Some(seen),
            None => self.seen()?,
        };
        let Some(mut last) = first else { return Ok(None) };
        let mut digest = 0;
        // The hop that reported the packet in a loop.
        let mut reported: Option<Seen> = None;
        loop {
            let expected = last.row.hops + 1;
            if last.hop != expected {
                let packet = last.row.packet;
                let message = format!(
                    "expected hop {expected} of packet {packet}, found hop {}: the rows of a packet must be consecutive and in order",
                    last.hop
                );
                return Err(self.lines.error("hop", message));
            }
            if reported.is_none() {
                let looped;
                (digest, looped) =
                    self.encoder.encode_and_report(digest, last.row.packet, last.hop, &last.values);
                reported = looped.then(|| last.clone());
            }
            match self.seen()? {
                // A first hop begins another packet, also one of the same id.
                Some(mut next) if next.row.packet == last.row.packet && next.hop != 1 => {
                    next.row.hops = last.hop;
                    last = next;
                }
                ahead => {
                    self.ahead = ahead;
                    let looped = reported.is_some();
                    let Seen { row, hop, .. } = reported.unwrap_or(last);
                    return Ok(Some(Recorded {
                        digest,
                        hops: hop,
                        looped,
                        plan_version: self.version,
                        ..row
                    }));
                }
            }
        }
    }
}

impl<R: BufRead> Iterator for Walks<R> {
    type Item = Result<Recorded, CsvError>;

    /// The next packet's digest; after an error nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let row = self.walk();
        self.ended = row.is_err();
        row.transpose()
    }
}

/// Why there are no digests.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    #[error(transparent)]
    Csv(#[from] CsvError),
    #[error("the plan cannot run: {0}")]
    Plan(Refused),
}

/// What each column is. Errors: the column, and what is wrong with it.
fn roles(plan: &Plan, header: &[String]) -> Result<Vec<Role>, (String, String)> {
    let queries = &plan.queries().queries;
    let given = |name: &str| match name {
        "hop" => Role::Hop,
        // What the table is to yield.
        "hops" | "digest" | "plan_version" => Role::Other,
        _ => match Column::named(name) {
            Some(column) => Role::Record(column),
            None => {
                let mask = (0..queries.len())
                    .filter(|&query| queries[query].value.name() == name)
                    .fold(0, |mask, query| mask | 1 << query);
                if mask == 0 { Role::Other } else { Role::Value(mask) }
            }
        },
    };
    let mut needed = vec!["packet_id", "hop"];
    needed.extend(queries.iter().map(|query| query.value.name()));
    for name in needed {
        if !header.iter().any(|column| column == name) {
            let names: Vec<&str> = header.iter().map(String::as_str).collect();
            return Err((
                name.to_string(),
                format!("the header does not have it: {}", unknown("column", name, &names)),
            ));
        }
    }
    for (place, name) in header.iter().enumerate() {
        if given(name) != Role::Other && header[..place].contains(name) {
            return Err((name.clone(), "the header has it more than once".to_string()));
        }
    }
    Ok(header.iter().map(|name| given(name)).collect())
}

#[cfg(test)]
mod tests;
