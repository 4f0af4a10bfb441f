//! What makes room where queries do not fit a digest. Every piece of advice has been tried: entered as it is printed, it gives a plan.

use std::fmt;

use super::sets::Relaxation;
use super::{PlanError, Queries, choose, runnable};
use crate::query::{MAX_BITS, Query, SHARES};

/// Demands that no plan meets, and what would help, any one by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Infeasible {
    /// Bits of the digest.
    pub bits: u32,
    /// Bits that the queries ask for per packet on average.
    pub load: f64,
    /// The same with each share rounded up to whole parts.
    pub rounded: f64,
    pub advice: Vec<Advice>,
    /// No digest is wide enough.
    pub bits_do_not_help: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Advice {
    /// All frequencies times `factor`, which makes them `frequencies`, each with the name of its query.
    Scale { factor: f64, frequencies: Vec<(String, f64)> },
    /// One query at a lower frequency.
    Frequency { name: String, frequency: f64, asked: f64 },
    /// A wider digest.
    Bits(u32),
    /// All queries but this one.
    Without(String),
}

impl Infeasible {
    /// Looks for what would help.
    pub(super) fn new(queries: &Queries, relaxation: &Relaxation) -> Infeasible {
        let list = &queries.queries;
        let mut advice = Vec::new();
        advice.extend(scaled(queries, relaxation.scale));
        for (place, query) in list.iter().enumerate() {
            let lower = relaxation.largest[place].and_then(|largest| lowered(queries, place, largest));
            advice.extend(lower.map(|frequency| Advice::Frequency {
                name: query.name.clone(),
                frequency,
                asked: query.frequency,
            }));
        }
        let wider = relaxation.bits.filter(|&bits| fits(Queries { bits, ..queries.clone() }));
        advice.extend(wider.map(Advice::Bits));
        for (place, query) in list.iter().enumerate().filter(|_| list.len() > 1) {
            let mut fewer = queries.clone();
            fewer.queries.remove(place);
            if fits(fewer) {
                advice.push(Advice::Without(query.name.clone()));
            }
        }
        let load = list.iter().map(|query| f64::from(query.bits) * query.frequency).sum();
        let share = |query: &Query| f64::from(query.demand()) / f64::from(SHARES);
        let rounded = list.iter().map(|query| f64::from(query.bits) * share(query)).sum();
        Infeasible { bits: queries.bits, load, rounded, advice, bits_do_not_help: wider.is_none() }
    }
}

/// All frequencies times one factor, as near to `scale` as gives a plan.
fn scaled(queries: &Queries, scale: f64) -> Option<Advice> {
    below(scale).find_map(|factor| {
        let mut less = queries.clone();
        less.queries.iter_mut().for_each(|query| query.frequency *= factor);
        // What is printed of them is shorter, and less.
        let mut printed = less.clone();
        for query in &mut printed.queries {
            query.frequency = below(query.frequency).next()?;
        }
        let frequencies = printed.queries.iter().map(|query| (query.name.clone(), query.frequency)).collect();
        (fits(less) && fits(printed)).then_some(Advice::Scale { factor, frequencies })
    })
}

/// A frequency of one query as near to `largest` as gives a plan, the others keeping theirs.
fn lowered(queries: &Queries, place: usize, largest: f64) -> Option<f64> {
    below(largest.min(queries.queries[place].frequency)).find(|&frequency| {
        let mut less = queries.clone();
        less.queries[place].frequency = frequency;
        frequency < queries.queries[place].frequency && fits(less)
    })
}

/// Numbers of four digits at or below x, from the next one on: a few. None if it is not a frequency.
fn below(x: f64) -> impl Iterator<Item = f64> {
    let digits = if x > 0.0 { 3 - libm::floor(libm::log10(x)) as i32 } else { 0 };
    let unit = libm::pow(10.0, f64::from(digits.max(4)));
    let steps = libm::floor(x * unit + 1e-3);
    [0.0, 1.0, 2.0, 5.0, 20.0, 100.0].into_iter().map(move |less| (steps - less) / unit).filter(|&y| y > 1e-5)
}

fn fits(queries: Queries) -> bool {
    super::check(&queries).is_ok() && choose(queries).is_ok_and(|plan| runnable(plan).is_ok())
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Infeasible { bits, load, rounded, .. } = self;
        write!(
            f,
            "the queries do not fit a digest of {bits} bits: they need {load:.3} bits per packet on average"
        )?;
        match f64::from(*bits) {
            bits if *load > bits => {}
            bits if *rounded > bits => {
                write!(f, ", and more as each share is rounded up to whole parts of {SHARES} packets")?;
            }
            _ => write!(f, ", but too few of them fit into one packet together")?,
        }
        write!(f, ". Any one of these changes helps:")?;
        for advice in &self.advice {
            write!(f, "\n  {advice}")?;
        }
        match self.bits_do_not_help {
            true => write!(f, "\n  (more bits alone do not help up to {MAX_BITS})"),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Advice::Scale { factor, frequencies } => {
                let each = frequencies.iter().map(|(name, frequency)| format!("{name} {frequency}"));
                write!(f, "all frequencies times {factor}: {}", each.collect::<Vec<_>>().join(", "))
            }
            Advice::Frequency { name, frequency, asked } => {
                write!(f, "{name}: frequency {frequency} instead of {asked}")
            }
            Advice::Bits(bits) => write!(f, "bits = {bits}"),
            Advice::Without(name) => write!(f, "without the query {name}"),
        }
    }
}

impl From<Infeasible> for PlanError {
    fn from(infeasible: Infeasible) -> PlanError {
        PlanError::Infeasible(infeasible)
    }
}
