//! What hops do for a query, and how far its codes reach.

use crate::collector::{COUNTER_BYTES, enough_counters};
use crate::counting::Counter;
use crate::encoder::{self, Task};
use crate::loops::LoopDetection;
use crate::query::*;
use crate::sketch::space_saving::MAX_COUNTERS;
use crate::value;

/// The largest value of one hop that a sum takes; larger ones count as this one ([`Counter::add`]).
pub(super) const LARGEST_ADDEND: u64 = u32::MAX as u64;

/// What a hop does for a query. Errors: settings that no encoder has, as a sentence.
pub(crate) fn task(query: &Query, hops: Hops) -> Result<Task, String> {
    let bits = query.copy_bits();
    if query.value.is_name() {
        check_names(query)?;
    }
    match &query.aggregation {
        Aggregation::Path(path) => {
            check_flow(query)?;
            let code = path.code(hops.expected).ok_or("tau and layers are not a valid code")?;
            let blocks = match path.blocks {
                Blocks::Hashes => encoder::Blocks::Hashed,
                Blocks::Fragments { value_bits } => {
                    encoder::Blocks::Fragments { count: value_bits.div_ceil(bits.max(1)).clamp(1, 64) }
                }
            };
            Ok(Task::Path { code, blocks })
        }
        Aggregation::Max(a) => compiled(a, bits).map(Task::Maximum),
        Aggregation::Min(a) => compiled(a, bits).map(Task::Minimum),
        Aggregation::Product(a) => factors(a, bits).map(Task::Product),
        Aggregation::Sum(a) => counter(a, bits, hops, query.value).map(Task::Sum),
        Aggregation::CountAbove { threshold } => {
            check_count(bits, hops).map(|()| Task::Count { threshold: *threshold })
        }
        Aggregation::Loops { tolerance } => {
            LoopDetection::new(bits, *tolerance).map(Task::Loop).ok_or(format!(
                "{bits} bits have no room for a hash next to a counter up to {tolerance}: give more bits"
            ))
        }
        Aggregation::Frequent { share, approximation } => {
            check_counters(query, *share, hops)?;
            compiled(approximation, bits).map(Task::Sample)
        }
        Aggregation::Quantiles { approximation, .. } => compiled(approximation, bits).map(Task::Sample),
    }
}

/// Errors: keys under which packets of several paths are one flow.
fn check_flow(query: &Query) -> Result<(), String> {
    match query.flow {
        FlowKey::Source | FlowKey::Destination | FlowKey::All => Err(format!(
            "flow = \"{}\" joins packets that take different paths, and their digests would be put together to paths that do not exist: \
             expected \"5-tuple\" or \"source-destination\"",
            query.flow.name()
        )),
        _ => Ok(()),
    }
}

/// Errors: a space, or a sketch, that does not hold all values of the share.
fn check_counters(query: &Query, share: f64, hops: Hops) -> Result<(), String> {
    let enough = enough_counters(share, query.copy_bits());
    if enough > MAX_COUNTERS {
        return Err(format!(
            "share = {share} needs {enough} counters at a hop, more than {MAX_COUNTERS}: raise it"
        ));
    }
    let needed = (enough * COUNTER_BYTES) as u64 * u64::from(hops.expected);
    match query.space.filter(|&space| space < needed) {
        Some(space) => Err(format!(
            "space = {space} does not hold all values with a share of {share}: {enough} counters at each of {} hops need {needed} bytes",
            hops.expected
        )),
        None => Ok(()),
    }
}

/// Errors: aggregations that calculate with names, or round them.
fn check_names(query: &Query) -> Result<(), String> {
    let (value, aggregation) = (query.value.name(), query.aggregation.name());
    match &query.aggregation {
        Aggregation::Quantiles { .. } | Aggregation::Sum(_) | Aggregation::Product(_) => Err(format!(
            "{value} is a name, not a quantity, so {aggregation} of it means nothing: use aggregation = \"path\" for the {value} of \
             every hop, or \"frequent\" for those that are often seen at a hop"
        )),
        Aggregation::Max(a) | Aggregation::Min(a) | Aggregation::Frequent { approximation: a, .. }
            if a.scale != Scale::Exact =>
        {
            Err(format!(
                "{value} is a name, and rounded it would be another one: leave out approximation, or set approximation = \"exact\""
            ))
        }
        _ => Ok(()),
    }
}

/// Errors: a count of the hops of an expected path does not fit.
fn check_count(bits: u32, hops: Hops) -> Result<(), String> {
    let end = count_end(bits);
    if end >= f64::from(hops.expected) {
        return Ok(());
    }
    Err(format!(
        "{bits} bits count up to {end} hops, and paths of {} are expected: give it {} bits, or {} to count all hops of the \
         longest path ({})",
        hops.expected,
        count_bits(hops.expected),
        count_bits(hops.maximal),
        hops.maximal
    ))
}

/// The largest count that `bits` bits hold.
fn count_end(bits: u32) -> f64 {
    libm::exp2(f64::from(bits)) - 1.0
}

/// Bits that count all of these hops.
pub(super) fn count_bits(hops: u32) -> u32 {
    32 - hops.leading_zeros()
}

/// The integer form of an approximation.
fn compiled(a: &Approximation, bits: u32) -> Result<value::Approximation, String> {
    let rounding = match a.rounding {
        Rounding::Nearest => value::Rounding::Nearest,
        Rounding::Value => value::Rounding::Value,
        Rounding::Log => value::Rounding::Logarithm,
    };
    match a.scale {
        Scale::Exact => {
            value::Approximation::exact(bits).ok_or(format!("expected 1 to 64 bits a copy, found {bits}"))
        }
        Scale::Multiplicative { epsilon } => value::Approximation::from_epsilon(epsilon, bits, rounding).ok_or(format!(
            "no grid has {bits} bits and a relative error of {epsilon:.6}: expected 1 to 32 bits, an error from {FINEST_EPSILON} to \
             {COARSEST_EPSILON}; give more bits, a larger error, or a smaller largest"
        )),
        Scale::Additive { delta } => value::Approximation::additive((2.0 * delta).round() as u64, bits, rounding)
            .ok_or("delta needs 1 to 32 bits, and rounding = \"nearest\" or \"value\"".to_string()),
    }
}

/// The codes of a product's factors.
fn factors(a: &Approximation, bits: u32) -> Result<value::Approximation, String> {
    match a.scale {
        Scale::Multiplicative { .. } => compiled(a, bits),
        Scale::Exact | Scale::Additive { .. } => Err(
            "a product adds the logarithms of the hops' values, so its approximation is neither exact nor additive: leave out \
             approximation, or set a relative error such as { epsilon = 0.05 }"
                .to_string(),
        ),
    }
}

/// The counter of a sum, by the relative deviation of the sum at the longest path.
fn counter(a: &Approximation, bits: u32, hops: Hops, value: Value) -> Result<Counter, String> {
    let Scale::Multiplicative { epsilon } = a.scale else {
        return Err("a sum is counted at random, in steps that grow with it, so its approximation is neither exact nor additive: leave \
                    out approximation, or set the relative deviation of the sum such as { epsilon = 0.05 }"
            .to_string());
    };
    if a.rounding != Rounding::Value {
        return Err(format!(
            "a sum is rounded so that its mean is right: leave out rounding, or set rounding = \"value\" (found \"{}\")",
            a.rounding.name()
        ));
    }
    Counter::from_epsilon(epsilon, hops.maximal, bits).ok_or(format!(
        "no counter of {bits} bits can hold sums of {}: expected 1 to 16 bits a query, and a relative deviation of at most {:.2} for \
         paths of {} hops",
        value.name(),
        coarsest_deviation(hops),
        hops.maximal
    ))
}

/// The relative deviation of the coarsest counter, that of base 2.
fn coarsest_deviation(hops: Hops) -> f64 {
    libm::sqrt(f64::from(hops.maximal)) / 2.0
}

/// The finest scale on which a counter of `bits` bits reaches sums up to `largest`; the coarsest if none
/// does.
pub(super) fn counting(largest: f64, hops: Hops, bits: u32) -> Scale {
    let (mut low, mut high) = (FINEST_EPSILON, coarsest_deviation(hops));
    for _ in 0..50 {
        let middle = libm::sqrt(low * high);
        if sums_end(middle, hops, bits).is_some_and(|end| end >= largest) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Scale::Multiplicative { epsilon: high }
}

/// Where the sums of a counter end; None if there is no such counter.
pub(super) fn sums_end(epsilon: f64, hops: Hops, bits: u32) -> Option<f64> {
    Counter::from_epsilon(epsilon, hops.maximal, bits).map(|counter| counter.largest())
}

/// The first code of a sum of this value that may stand for any larger sum.
pub(crate) fn sum_ceiling(counter: &Counter, value: Value) -> u64 {
    let end = counter.ceiling();
    if value.facts().largest <= LARGEST_ADDEND {
        return end;
    }
    // One value may have been larger than a sum takes. By random rounding it has the code below it or the one
    // above.
    (0..=end).take_while(|&code| counter.decode(code) <= LARGEST_ADDEND as f64).last().unwrap_or(end)
}

/// The largest result that a digest of the query can tell, in the value's unit (of a product, its power): one
/// that is larger is decoded as this one. None for queries whose results have no order.
pub(super) fn largest(query: &Query, task: &Task) -> Option<f64> {
    let end = match task {
        Task::Sample(values) | Task::Maximum(values) | Task::Minimum(values) | Task::Product(values) => {
            values.largest()
        }
        Task::Sum(counter) => counter.decode(sum_ceiling(counter, query.value)),
        Task::Count { .. } => count_end(query.bits),
        Task::Path { .. } | Task::Loop(_) => return None,
    };
    Some(end).filter(|end| end.is_finite())
}
