//! Plans: which packet serves which queries, where their bits lie, and how a plan is distinguished from
//! others.
//!
//! [`read`] takes the query language (TOML), [`Plan::new`] chooses the query sets, [`Plan::encoder`] is what
//! switches and collectors run. A plan is written as a file of queries with the chosen sets and a version;
//! the version is a hash of everything that the bits of a digest depend on, and travels with recorded
//! digests.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §3.3, §3.4.
//! Differs from the source: the paper's plan is chosen by hand (§7), this one by a linear program.

mod advice;
pub(crate) mod describe;
mod document;
mod file;
pub mod predict;
pub mod presets;
mod problem;
mod read;
mod sets;
mod simplex;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;

use crate::encoder::{self, Encoder, Refused, Slot, Task};
use crate::hash::{GOLDEN, Key, mix};
use crate::query::*;
use crate::value;

pub use advice::{Advice, Infeasible};
pub(crate) use problem::unknown;
pub use problem::{FileError, Problem};
pub use read::queries as read;
pub use sets::Relaxation;
pub(crate) use tasks::task;

/// A query set and its share of the packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuerySet {
    /// Packets, in parts of [`SHARES`].
    pub share: u32,
    /// Indices of its queries, ascending. Their bits follow each other in this order, from the lowest.
    pub queries: Vec<usize>,
}

/// Queries and the sets in which they travel.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    queries: Queries,
    /// Shares sum to [`SHARES`].
    sets: Vec<QuerySet>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The query cannot run as it is (`reason`), or the whole list cannot.
    #[error("{name}: {reason}")]
    Query { name: String, reason: String },
    #[error("{0}")]
    Infeasible(Infeasible),
}

/// Why a file is not a plan and contains none.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{file}: {error}")]
    Plan { file: String, error: PlanError },
}

impl Plan {
    /// The plan of a file, be it a plan's or one of queries, for which it is made. `file` is its name in
    /// errors.
    pub fn open(text: &str, file: &str) -> Result<Plan, OpenError> {
        if Plan::is_plan(text) {
            return Ok(Plan::read(text, file)?);
        }
        let queries = read::queries(text, file)?;
        Plan::new(queries).map_err(|error| OpenError::Plan { file: file.to_string(), error })
    }

    /// Chooses the sets. Every query gets at least its frequency, to within [`Plan::shortfall`]; what is left
    /// is shared in the ratio of the frequencies as far as it goes. Errors: queries that cannot run, demands
    /// that cannot be met.
    pub fn new(queries: Queries) -> Result<Plan, PlanError> {
        check(&queries)?;
        match choose(queries.clone()) {
            Ok(plan) => runnable(plan),
            Err(relaxation) => Err(Infeasible::new(&queries, &relaxation).into()),
        }
    }

    /// A plan with sets that were chosen elsewhere. Errors: shares that do not sum to [`SHARES`], sets that
    /// do not fit, unknown or repeated queries.
    pub fn with_sets(queries: Queries, sets: Vec<QuerySet>) -> Result<Plan, PlanError> {
        check(&queries)?;
        let refuse = |reason: String| Err(PlanError::Query { name: "set".to_string(), reason });
        let total: u64 = sets.iter().map(|set| u64::from(set.share)).sum();
        if total != u64::from(SHARES) || sets.len() > sets::MAX_SETS {
            return refuse(format!(
                "expected at most {} shares that sum to {SHARES}, found {total}",
                sets::MAX_SETS
            ));
        }
        for (place, set) in sets.iter().enumerate() {
            let known = set.queries.iter().all(|&query| query < queries.queries.len());
            if !known || !set.queries.windows(2).all(|pair| pair[0] < pair[1]) {
                return refuse(format!(
                    "set {place} names a query that does not exist, or its queries are not in order or not distinct"
                ));
            }
            let bits: u32 = set.queries.iter().map(|&query| queries.queries[query].bits).sum();
            if bits > queries.bits {
                return refuse(format!("set {place} takes {bits} bits of a digest of {}", queries.bits));
            }
        }
        runnable(Plan { queries, sets })
    }

    pub fn queries(&self) -> &Queries {
        &self.queries
    }

    /// The sets, in the order of their ranges of q: the first has the packets with q from 0 on.
    pub fn sets(&self) -> &[QuerySet] {
        &self.sets
    }

    /// Index of the query of this name.
    pub fn query(&self, name: &str) -> Option<usize> {
        self.queries.queries.iter().position(|query| query.name == name)
    }

    /// Packets that serve the query, in parts of [`SHARES`].
    pub fn served(&self, query: usize) -> u32 {
        self.sets.iter().filter(|set| set.queries.contains(&query)).map(|set| set.share).sum()
    }

    /// Parts of [`SHARES`] by which the query gets less than it asked; 0 but where whole parts cannot keep
    /// all demands.
    pub fn shortfall(&self, query: usize) -> u32 {
        self.queries.queries[query].demand().saturating_sub(self.served(query))
    }

    /// The largest result that a digest of the query can tell, in the value's unit (of a product, its power);
    /// larger ones are decoded as this one. None for queries whose results have no order, and beyond the
    /// range of `f64`.
    pub fn largest(&self, query: usize) -> Option<f64> {
        let query = &self.queries.queries[query];
        task(query, self.queries.hops).ok().and_then(|task| tasks::largest(query, &task))
    }

    /// Why a query cannot carry this value of a hop: of a value in fragments, bits above its `value-bits` are never sent.
    pub fn unfit(&self, query: usize, value: u64) -> Option<String> {
        let Query { name, aggregation, .. } = &self.queries.queries[query];
        let Aggregation::Path(PathQuery { blocks: Blocks::Fragments { value_bits }, .. }) = aggregation
        else {
            return None;
        };
        let needed = 64 - value.leading_zeros();
        (needed > *value_bits).then(|| {
            format!(
                "{value} has {needed} bits, and query {name} writes {value_bits} of each value: set value-bits = {needed}"
            )
        })
    }

    /// Warnings of queries whose bits do not hold all numbers of switches or of their ports, of which `last` is the largest.
    pub fn beyond_bits(&self, value: Value, last: u64) -> Vec<String> {
        let what = if value == Value::SwitchId { "switches" } else { "ports" };
        let queries = self.queries.queries.iter().enumerate().filter(|(_, query)| query.value == value);
        let beyond = queries.filter_map(|(place, query)| {
            if let Some(reason) = self.unfit(place, last) {
                return Some(format!("{}: the topology has {what} up to {last}: {reason}", query.name));
            }
            let end = self.largest(place).filter(|_| query.aggregation.approximation().is_some())?;
            // The largest code stands for its own number and for all beyond.
            (last as f64 >= end).then(|| {
                let numbers = if value == Value::SwitchId { "ids" } else { "numbers" };
                format!(
                    "{}: {} bits tell {numbers} below {end} apart, and the topology has {what} up to {last}: those from {end} on are \
                     shown as {end}; give the query {} bits per copy",
                    query.name,
                    query.copy_bits(),
                    64 - (last + 1).leading_zeros()
                )
            })
        });
        beyond.collect()
    }

    /// The key of a query's hashes; copy n of it uses `Key::new(key.0, n)`. Purpose 0 is the choice of the
    /// set.
    pub fn key(&self, query: usize) -> Key {
        Key::new(self.queries.seed, 1 + query as u64)
    }

    /// What each query's bits hold, in the queries' order.
    pub fn tasks(&self) -> Vec<Task> {
        // Checked when the plan was made.
        self.queries.queries.iter().filter_map(|query| task(query, self.queries.hops).ok()).collect()
    }

    /// Where the queries of a set lie.
    pub fn slots(&self, set: usize) -> Vec<Slot> {
        let mut offset = 0;
        let mut slots = Vec::new();
        for &index in &self.sets[set].queries {
            let query = &self.queries.queries[index];
            slots.push(Slot {
                query: index as u32,
                offset,
                bits: query.copy_bits(),
                copies: query.copies,
                key: self.key(index),
            });
            offset += query.bits;
        }
        slots
    }

    /// What switches and collectors run. Errors: none for a plan that this module made; the encoder's own
    /// check is passed on.
    pub fn encoder(&self) -> Result<Encoder, Refused> {
        let slots: Vec<Vec<Slot>> = (0..self.sets.len()).map(|set| self.slots(set)).collect();
        let mut until = 0;
        let cumulative = |(set, slots): (&QuerySet, &'_ Vec<Slot>)| {
            until += set.share;
            (until, slots.clone())
        };
        let sets: Vec<(u32, Vec<Slot>)> = self.sets.iter().zip(&slots).map(cumulative).collect();
        let sets: Vec<encoder::Set> =
            sets.iter().map(|(until, slots)| encoder::Set { until: *until, slots }).collect();
        Encoder::new(Key::new(self.queries.seed, 0), &self.tasks(), &sets)
    }

    /// 32 bits that differ between plans whose digests mean different things: a hash of the seed, the longest
    /// path, the sets, and the width and task of every query, stated in [`Plan::decoding`]. With s = the
    /// text's length, each 8 bytes of it (little-endian, the last ones filled with zeros) make s = mix(s xor
    /// word) + G; the version is the upper half of mix(s).
    pub fn version(&self) -> u32 {
        let text = self.decoding();
        let mut state = text.len() as u64;
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            state = mix(state ^ u64::from_le_bytes(word)).wrapping_add(GOLDEN);
        }
        (mix(state) >> 32) as u32
    }

    /// All that decoding depends on, as text: one line each for the digest, the queries and the sets.
    pub fn decoding(&self) -> String {
        let Queries { bits, seed, hops, queries } = &self.queries;
        let mut text = format!("pint 1 bits {bits} seed {seed} hops {}\n", hops.maximal);
        for (query, task) in queries.iter().zip(self.tasks()) {
            text += &format!(
                "query {} {} {} {}x{} {}\n",
                query.name,
                query.value.name(),
                query.flow.name(),
                query.copies,
                query.copy_bits(),
                task_text(&task)
            );
        }
        for set in &self.sets {
            let members: Vec<String> = set.queries.iter().map(usize::to_string).collect();
            text += &format!("set {} {}\n", set.share, members.join(" "));
        }
        text
    }
}

/// The four bits of a plan's version that stand above a digest in an IPv6 flow label: the lowest ones, or 15
/// where these are 0. So a label with a digest is never 0, which stands for a packet without one.
pub fn label_bits(version: u32) -> u32 {
    match version & 15 {
        0 => 15,
        bits => bits,
    }
}

/// A task in whole numbers.
fn task_text(task: &Task) -> String {
    match task {
        Task::Path { code, blocks } => {
            let layer = |selection: &crate::code::Selection| match selection {
                crate::code::Selection::Threshold(threshold) => format!("threshold {threshold}"),
                crate::code::Selection::Words { numerator, bits } => format!("words {numerator} {bits}"),
            };
            let layers: Vec<String> = code.layers().iter().map(layer).collect();
            let blocks = match blocks {
                encoder::Blocks::Hashed => "hashes".to_string(),
                encoder::Blocks::Fragments { count } => format!("fragments {count}"),
            };
            // Tau is a whole number of 2^-32, so this is exact.
            format!("path {} {} {blocks}", (code.tau() * 4_294_967_296.0) as u64, layers.join(" "))
        }
        Task::Sample(a) => format!("sample {}", approximation_text(a)),
        Task::Maximum(a) => format!("max {}", approximation_text(a)),
        Task::Minimum(a) => format!("min {}", approximation_text(a)),
        Task::Sum(counter) => format!("sum {} {}", counter.rate(), counter.bits()),
        Task::Product(a) => format!("product {}", approximation_text(a)),
        Task::Count { threshold } => format!("count {threshold}"),
        Task::Loop(detection) => format!("loops {} {}", detection.tolerance(), detection.hash_bits()),
    }
}

fn approximation_text(a: &value::Approximation) -> String {
    let rounding = match a.rounding() {
        value::Rounding::Nearest => "nearest",
        value::Rounding::Value => "value",
        value::Rounding::Logarithm => "log",
    };
    match a.rate() {
        Some(rate) => format!("multiplicative {rate} {} {rounding}", a.bits()),
        // The estimate of code 1 is the width of a step; exact is a step of 1.
        None => format!("additive {} {} {rounding}", a.decode(1) as u64, a.bits()),
    }
}

/// The sets of queries that can run. Errors: what would help where demands cannot be met.
fn choose(queries: Queries) -> Result<Plan, Relaxation> {
    let list = &queries.queries;
    let demand = |query: &Query| sets::Demand { bits: query.bits, units: query.demand() };
    let choice = sets::choose(queries.bits, &list.iter().map(demand).collect::<Vec<_>>())?;
    let set = |&(members, share): &(sets::Members, u32)| QuerySet {
        share,
        queries: (0..list.len()).filter(|query| members >> query & 1 == 1).collect(),
    };
    Ok(Plan { sets: choice.sets.iter().map(set).collect(), queries })
}

/// The plan, if switches can run it. Errors: more fields in all its sets than an encoder has.
fn runnable(plan: Plan) -> Result<Plan, PlanError> {
    match plan.encoder() {
        Ok(_) => Ok(plan),
        Err(refused) => {
            let reason = format!("no switch can run this plan: {refused}; use fewer copies or fewer queries");
            Err(PlanError::Query { name: "queries".to_string(), reason })
        }
    }
}

/// What holds for every plan.
fn check(queries: &Queries) -> Result<(), PlanError> {
    let refuse = |name: &str, reason: String| Err(PlanError::Query { name: name.to_string(), reason });
    let list = &queries.queries;
    if list.is_empty() || list.len() > MAX_QUERIES {
        return refuse("queries", format!("expected 1 to {MAX_QUERIES}, found {}", list.len()));
    }
    if queries.bits == 0 || queries.bits > MAX_BITS {
        return refuse("bits", format!("expected 1 to {MAX_BITS}, found {}", queries.bits));
    }
    for (place, query) in list.iter().enumerate() {
        if list[..place].iter().any(|other| other.name == query.name) {
            return refuse(&query.name, "two queries have this name".to_string());
        }
        let copies = query.copies;
        if query.bits == 0 || query.bits > queries.bits || copies == 0 || query.bits % copies != 0 {
            let reason =
                format!("{} bits in {copies} copies do not fit a digest of {}", query.bits, queries.bits);
            return refuse(&query.name, reason);
        }
        if !(query.frequency > 0.0 && query.frequency <= 1.0) {
            return refuse(
                &query.name,
                format!("expected a frequency above 0 and at most 1, found {}", query.frequency),
            );
        }
        if let Err(reason) = task(query, queries.hops) {
            return refuse(&query.name, reason);
        }
    }
    Ok(())
}
