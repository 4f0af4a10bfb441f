//! Which queries travel together, on which share of the packets.
//!
//! A *query set* fits if the bits of its queries fit the digest; only maximal sets matter, for more is never
//! worse. The plan is a probability distribution w over them: sum w = 1 and, for every query i, sum over the
//! sets with i of w >= f_i. What is left is given out fairly: the smallest of the ratios (share served) / f_i
//! is made as large as it can be, those that cannot grow are held, and so on with the others (max-min
//! fairness). Every step is a linear program of one row per query; its solution is a vertex, so there are
//! hardly more sets than queries.
//!
//! Shares are then rounded to units of 2^-16. If whole units cannot keep a demand, the missing units are
//! reported.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §3.4 (what a plan is; there it is chosen by hand). The
//! program is ours.

use super::simplex::{Solution, maximise};
use crate::query::SHARES;

/// What a query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    pub bits: u32,
    /// Packets that must serve it, in parts of [`SHARES`], at least 1.
    pub units: u32,
}

impl Demand {
    fn frequency(self) -> f64 {
        f64::from(self.units) / f64::from(SHARES)
    }
}

/// Sets that a plan may have: what switches must tell apart.
pub const MAX_SETS: usize = 32;

/// A set of queries: bit i for the i-th.
pub type Members = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Sets with their shares, which sum to [`SHARES`]; the largest first.
    pub sets: Vec<(Members, u32)>,
}

/// Why no plan exists, and what would help.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxation {
    /// If all frequencies are multiplied by this, they fit; below 1.
    pub scale: f64,
    /// The largest frequency that each query could have while the others keep theirs; None where the others
    /// alone do not fit.
    pub largest: Vec<Option<f64>>,
    /// The fewest bits of digest that would do, if any up to [`crate::query::MAX_BITS`].
    pub bits: Option<u32>,
}

/// Chooses the sets for a digest of `bits` bits. Every demand fits on its own (`bits` at most the digest's)
/// and there are 1 to 16.
pub fn choose(bits: u32, demands: &[Demand]) -> Result<Choice, Relaxation> {
    debug_assert!(demands.iter().all(|demand| demand.bits <= bits && demand.units > 0));
    let sets = maximal_sets(bits, demands);
    let frequencies: Vec<f64> = demands.iter().map(|demand| demand.frequency()).collect();
    let (scale, weights) = fair(&sets, &frequencies);
    if scale < 1.0 - 1e-9 {
        return Err(relaxation(bits, demands, &sets, scale));
    }
    Ok(Choice { sets: rounded(&sets, &weights, demands) })
}

/// All sets that fit and to which no query can be added.
fn maximal_sets(bits: u32, demands: &[Demand]) -> Vec<Members> {
    let width = |set: Members| -> u32 {
        demands.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, demand)| demand.bits).sum()
    };
    let maximal = |&set: &Members| {
        let used = width(set);
        used <= bits
            && demands.iter().enumerate().all(|(i, demand)| set >> i & 1 == 1 || used + demand.bits > bits)
    };
    (1..1u32 << demands.len()).filter(maximal).collect()
}

/// Whether the row of a query asks for a ratio to be raised, or for a share to be kept.
#[derive(Clone, Copy)]
enum Row {
    Raise(f64),
    Keep(f64),
}

/// The largest ratio s that all rows to be raised can have at once, w over `sets`: maximise s under sum w <=
/// 1, s f_i <= served_i for raised rows, held_i sum w <= served_i for kept ones. (That is homogeneous, so
/// that w = 0 is a start.)
fn raise(sets: &[Members], rows: &[Row]) -> Solution {
    let served = |set: Members, i: usize| if set >> i & 1 == 1 { 1.0 } else { 0.0 };
    let mut columns: Vec<Vec<f64>> = sets
        .iter()
        .map(|&set| {
            let of_row = |(i, row): (usize, &Row)| match row {
                Row::Raise(_) => -served(set, i),
                Row::Keep(held) => held - served(set, i),
            };
            rows.iter().enumerate().map(of_row).chain([1.0]).collect()
        })
        .collect();
    // The unknown is the share of the greatest of them, so that all numbers are of one size.
    let raised = |row: &Row| if let Row::Raise(frequency) = row { *frequency } else { 0.0 };
    let greatest = rows.iter().map(raised).fold(0.0, f64::max);
    let of_ratio = |row: &Row| raised(row) / greatest;
    columns.push(rows.iter().map(of_ratio).chain([0.0]).collect());
    let mut gains = vec![0.0; sets.len()];
    gains.push(1.0);
    // Zeros as limits would let the method stand still at one vertex of many bases. These are a fraction of a
    // unit, and no two sums of them are equal; what is kept has more room than it had when it was raised, and
    // so stays within reach.
    let room = |(i, row): (usize, &Row)| {
        let size = if matches!(row, Row::Keep(_)) { 1e-7 } else { 1e-8 };
        size * (1.0 + (0.618_034 * i as f64).fract())
    };
    let mut limits: Vec<f64> = rows.iter().enumerate().map(room).collect();
    limits.push(1.0);
    // At least one row is raised and served_i <= 1, so the ratio has a bound.
    let mut solved = maximise(&gains, &columns, &limits).unwrap_or(Solution {
        value: 0.0,
        x: gains.clone(),
        prices: limits,
    });
    solved.value /= greatest;
    solved
}

/// Max-min fair ratios. Returns the smallest ratio and the weights of the sets.
fn fair(sets: &[Members], frequencies: &[f64]) -> (f64, Vec<f64>) {
    let mut rows: Vec<Row> = frequencies.iter().map(|&frequency| Row::Raise(frequency)).collect();
    let first = raise(sets, &rows);
    let scale = first.value;
    let mut last = first;
    if scale < 1.0 - 1e-9 {
        return (scale, last.x);
    }
    loop {
        // A row with a price is tight in every best solution: it cannot grow while the others stand.
        let mut held = 0;
        for (row, price) in rows.iter_mut().zip(&last.prices) {
            match *row {
                Row::Raise(frequency) if *price > 1e-6 => {
                    let share = frequency * last.value;
                    // Nearly all packets, within rounding, are all packets: tiny coefficients make bad
                    // pivots.
                    *row = Row::Keep(if share > 1.0 - 1e-9 { 1.0 } else { share });
                    held += 1;
                }
                _ => {}
            }
        }
        if held == 0 || rows.iter().all(|row| matches!(row, Row::Keep(_))) {
            return (scale, last.x);
        }
        let next = raise(sets, &rows);
        let all: f64 = next.x[..sets.len()].iter().sum();
        if all < 0.5 || next.value < last.value - 1e-6 {
            return (scale, last.x);
        }
        last = next;
    }
}

/// Weights as whole units that sum to [`SHARES`].
fn rounded(sets: &[Members], weights: &[f64], demands: &[Demand]) -> Vec<(Members, u32)> {
    let total: f64 = weights[..sets.len()].iter().sum();
    let chosen = sets.iter().zip(weights).filter(|(_, weight)| **weight > 1e-7);
    let exact: Vec<(Members, f64)> =
        chosen.map(|(&set, weight)| (set, weight / total * f64::from(SHARES))).collect();
    // What is within a thousandth of a whole number is that number.
    let mut shares: Vec<(Members, u32)> =
        exact.iter().map(|&(set, share)| (set, (share + 1e-3).floor() as u32)).collect();
    let given: u32 = shares.iter().map(|(_, share)| share).sum();
    let mut missing = Missing::of(demands, &shares);
    for _ in given..SHARES {
        // The unit goes where it serves most of what is missing; then to the largest remainder.
        let worth = |place: usize| missing.change(0, exact[place].0);
        let remainder = |place: usize| exact[place].1 - f64::from(shares[place].1);
        let best = (0..exact.len())
            .min_by(|&a, &b| worth(a).cmp(&worth(b)).then(remainder(b).total_cmp(&remainder(a))));
        // There is at least one set with weight: the weights sum to 1.
        let Some(best) = best else { break };
        missing.shift(0, exact[best].0);
        shares[best].1 += 1;
    }
    exchange(&mut shares, sets, &mut missing);
    shares.retain(|(_, share)| *share > 0);
    shares.sort_by_key(|&(set, share)| (std::cmp::Reverse(share), set));
    shares
}

/// Units that each query has beyond its demand; below zero, what it lacks.
struct Missing(Vec<i64>);

impl Missing {
    fn of(demands: &[Demand], shares: &[(Members, u32)]) -> Missing {
        let served = |i: usize| {
            shares.iter().filter(|(set, _)| set >> i & 1 == 1).map(|(_, n)| i64::from(*n)).sum::<i64>()
        };
        Missing(demands.iter().enumerate().map(|(i, demand)| served(i) - i64::from(demand.units)).collect())
    }

    fn any(&self) -> bool {
        self.0.iter().any(|&units| units < 0)
    }

    /// By how much more is missing in all when a unit moves from one set to another; below zero is better.
    fn change(&self, from: Members, to: Members) -> i32 {
        let of_query = |(i, &units): (usize, &i64)| {
            let (lost, won) = (from >> i & 1 == 1, to >> i & 1 == 1);
            i32::from(lost && !won && units <= 0) - i32::from(won && !lost && units < 0)
        };
        self.0.iter().enumerate().map(of_query).sum()
    }

    fn shift(&mut self, from: Members, to: Members) {
        for (i, units) in self.0.iter_mut().enumerate() {
            *units += i64::from(to >> i & 1) - i64::from(from >> i & 1);
        }
    }
}

/// Moves single units to other sets while that reduces what is missing; adds sets while there are few.
fn exchange(shares: &mut Vec<(Members, u32)>, sets: &[Members], missing: &mut Missing) {
    while missing.any() {
        let known = |set: Members| shares.iter().any(|(other, _)| *other == set);
        let places = (0..shares.len()).filter(|&place| shares[place].1 > 0);
        let moves = places.flat_map(|place| sets.iter().map(move |&to| (place, to)));
        let better = moves
            .filter(|&(place, to)| missing.change(shares[place].0, to) < 0)
            .find(|&(_, to)| shares.len() < MAX_SETS || known(to));
        let Some((place, to)) = better else { return };
        missing.shift(shares[place].0, to);
        shares[place].1 -= 1;
        match shares.iter_mut().find(|(set, _)| *set == to) {
            Some((_, share)) => *share += 1,
            None => shares.push((to, 1)),
        }
    }
}

fn relaxation(bits: u32, demands: &[Demand], sets: &[Members], scale: f64) -> Relaxation {
    let frequencies: Vec<f64> = demands.iter().map(|demand| demand.frequency()).collect();
    let largest = (0..demands.len()).map(|query| {
        let row =
            |(i, &frequency): (usize, &f64)| if i == query { Row::Raise(1.0) } else { Row::Keep(frequency) };
        let alone = raise(sets, &frequencies.iter().enumerate().map(row).collect::<Vec<_>>()).value;
        (alone > 1e-9).then_some(alone.min(1.0))
    });
    let fits = |wider: &u32| fair(&maximal_sets(*wider, demands), &frequencies).0 >= 1.0 - 1e-9;
    let max: u32 = demands.iter().map(|demand| demand.bits).sum();
    let load: f64 = demands.iter().map(|demand| f64::from(demand.bits) * demand.frequency()).sum();
    let min = (bits + 1).max(load.ceil() as u32);
    Relaxation { scale, largest: largest.collect(), bits: (min..=max.min(crate::query::MAX_BITS)).find(fits) }
}

#[cfg(test)]
mod tests;
