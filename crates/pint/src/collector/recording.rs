//! What is kept of one flow for one query, and what it says.

use super::events::{End, Findings, FrequentValue, HopFrequent, HopQuantiles, Summary};
use super::paths::{Paths, Step};
use crate::counting::Counter;
use crate::encoder::{Field, Task, samples};
use crate::hash::mix;
use crate::plan::tasks::sum_ceiling;
use crate::query::{Aggregation, Query};
use crate::recorded::Recorded;
use crate::sketch::kll::{Interval, Kll, MIN_K, k_for_room, normal_quantile, rank_error};
use crate::sketch::space_saving::{self, MAX_COUNTERS, SpaceSaving};
use crate::value::{Approximation, Number, Rounding};

/// k of sketches whose query states no space: a rank error of 1.33 %.
pub const DEFAULT_K: u32 = 200;

/// k of a hop's sketch of codes of `bits` bits, for a query that may keep `space` bytes of a path of `hops`
/// hops: it is split evenly. Less space than the smallest sketch takes is the smallest sketch.
pub(crate) fn sketch_k(space: Option<u64>, hops: u32, bits: u32) -> u32 {
    items(space, hops, code_bytes(bits)).map_or(DEFAULT_K, |items| k_for_room(items).unwrap_or(MIN_K))
}

/// Counters of a hop's sketch that keeps values of at least `share`: the number that `space` bytes give on a
/// path of `hops` hops, but enough to hold every such value. Without a space: the maximum error of a count is
/// a quarter of the share.
pub(crate) fn counters(space: Option<u64>, hops: u32, share: f64, bits: u32) -> usize {
    let enough = enough_counters(share, bits);
    let given = items(space, hops, COUNTER_BYTES).unwrap_or((4.0 / share).ceil() as usize);
    given.max(enough).min(MAX_COUNTERS)
}

/// Counters of which every value of at least `share` has one: more than 1 / share, or one for each code.
pub(crate) fn enough_counters(share: f64, bits: u32) -> usize {
    ((1.0 / share) as usize + 1).min(1usize.checked_shl(bits).unwrap_or(usize::MAX))
}

/// Bytes in which a sketch keeps a counter.
pub(crate) const COUNTER_BYTES: usize = size_of::<space_saving::Counter>();

/// Things of `bytes` bytes that a hop's sketch may keep.
fn items(space: Option<u64>, hops: u32, bytes: usize) -> Option<usize> {
    space.map(|space| (space / u64::from(hops.max(1))) as usize / bytes)
}

/// Bytes in which a sketch keeps a code.
fn code_bytes(bits: u32) -> usize {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// Error bars hold with this confidence.
pub const CONFIDENCE: f64 = 0.95;

/// How the fields of a query are kept.
#[derive(Debug, Clone)]
pub(super) struct Keeping {
    pub query: usize,
    kind: Kind,
    /// Bytes per flow that the query requested.
    space: Option<u64>,
    seed: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    Path,
    Quantiles {
        values: Approximation,
        quantiles: Vec<f64>,
    },
    Frequent {
        values: Approximation,
        share: f64,
    },
    Coded(Approximation),
    /// A sum, and its first code that may stand for any larger one.
    Summed(Counter, u64),
    /// Hops, up to a largest number.
    Counted(u64),
    Loops,
}

impl Keeping {
    pub fn new(index: usize, query: &Query, task: &Task, seed: u64) -> Keeping {
        let kind = match (task, &query.aggregation) {
            (Task::Path { .. }, _) => Kind::Path,
            (Task::Sample(values), Aggregation::Frequent { share, .. }) => {
                Kind::Frequent { values: *values, share: *share }
            }
            (Task::Sample(values), Aggregation::Quantiles { quantiles, .. }) => {
                Kind::Quantiles { values: *values, quantiles: quantiles.clone() }
            }
            // No other aggregation samples; without quantiles there are still the counts.
            (Task::Sample(values), _) => Kind::Quantiles { values: *values, quantiles: Vec::new() },
            (Task::Maximum(values) | Task::Minimum(values) | Task::Product(values), _) => {
                Kind::Coded(*values)
            }
            (Task::Sum(counter), _) => Kind::Summed(*counter, sum_ceiling(counter, query.value)),
            (Task::Count { .. }, _) => Kind::Counted(u64::MAX >> (64 - query.bits.clamp(1, 64))),
            (Task::Loop(_), _) => Kind::Loops,
        };
        Keeping { query: index, kind, space: query.space, seed: mix(seed ^ mix(index as u64)) }
    }

    pub fn traces(&self) -> bool {
        matches!(self.kind, Kind::Path)
    }

    /// Whether it keeps something of each hop of a path.
    pub fn is_by_hop(&self) -> bool {
        matches!(self.kind, Kind::Quantiles { .. } | Kind::Frequent { .. })
    }

    /// Whether the query's bits can be what hops write.
    pub fn possible(&self, field: &Field, row: &Recorded) -> bool {
        let code = field.read(row.digest);
        match &self.kind {
            Kind::Path | Kind::Loops => true,
            Kind::Quantiles { values, .. } | Kind::Frequent { values, .. } | Kind::Coded(values) => {
                code <= values.limit()
            }
            Kind::Summed(counter, _) => code <= u64::MAX >> (64 - counter.bits()),
            Kind::Counted(_) => code <= u64::from(row.hops),
        }
    }
}

/// A sketch of codes as wide as they need.
#[derive(Debug)]
pub(super) enum Codes {
    One(Kll<u8>),
    Two(Kll<u16>),
    Four(Kll<u32>),
    Eight(Kll<u64>),
}

/// The same for each width.
macro_rules! each {
    ($codes:expr, $sketch:ident => $what:expr) => {
        match $codes {
            Codes::One($sketch) => $what,
            Codes::Two($sketch) => $what,
            Codes::Four($sketch) => $what,
            Codes::Eight($sketch) => $what,
        }
    };
}

impl Codes {
    fn new(keeping: &Keeping, bits: u32, hops: u32, packet: u64) -> Codes {
        let k = sketch_k(keeping.space, hops, bits);
        let seed = keeping.seed ^ mix(packet);
        match code_bytes(bits) {
            1 => Codes::One(Kll::new(k, seed)),
            2 => Codes::Two(Kll::new(k, seed)),
            4 => Codes::Four(Kll::new(k, seed)),
            _ => Codes::Eight(Kll::new(k, seed)),
        }
    }

    /// `code` fits the width that the sketch was made for.
    fn update(&mut self, code: u64) {
        match self {
            Codes::One(sketch) => sketch.update(code as u8),
            Codes::Two(sketch) => sketch.update(code as u16),
            Codes::Four(sketch) => sketch.update(code as u32),
            Codes::Eight(sketch) => sketch.update(code),
        }
    }

    fn bytes(&self) -> usize {
        each!(self, sketch => sketch.bytes())
    }

    fn quantiles(&self, values: &Approximation, quantiles: &[f64]) -> HopQuantiles {
        each!(self, sketch => {
            let view = sketch.sorted();
            let interval = |&share: &f64| {
                Some(decoded(widened(view.as_ref()?.interval(share, CONFIDENCE)), values))
            };
            HopQuantiles {
                samples: sketch.len(),
                exact: sketch.is_exact(),
                rank_error: if sketch.is_exact() { 0.0 } else { rank_error(sketch.k()) },
                values: quantiles.iter().filter_map(interval).collect(),
                ceiling: values.number(values.limit()),
                floor: floor(values),
            }
        })
    }
}

/// What the code 0 stands for where it stands for 0 and 1 alike: on a geometric grid.
fn floor(values: &Approximation) -> Option<f64> {
    values.rate().map(|_| values.decode(0))
}

fn widened<T: Into<u64>>(codes: Interval<T>) -> Interval<u64> {
    Interval { value: codes.value.into(), low: codes.low.map(T::into), high: codes.high.map(T::into) }
}

/// An interval of codes as values; its bars grow by what rounding to a code leaves open.
fn decoded(codes: Interval<u64>, values: &Approximation) -> Interval<Number> {
    let step = values.decode(1);
    // Nearest rounding moves a value by half a step at most, random rounding by one.
    let reach = if values.rounding() == Rounding::Nearest { 0.5 } else { 1.0 };
    let moved = |code: u64, by: f64| match values.rate() {
        Some(_) => Number::Estimate(values.decode(code) * libm::pow(step, by)),
        // Steps of 1 are exact values.
        None if step <= 1.0 => values.number(code),
        None => Number::Estimate((values.decode(code) + by * step).max(0.0)),
    };
    // The lowest code of a geometric grid also stands for 0, the largest code for all beyond.
    let low = codes.low.map(|code| if code == 0 { Number::Exact(0) } else { moved(code, -reach) });
    let high = codes.high.filter(|&code| code < values.limit()).map(|code| moved(code, reach));
    Interval { value: values.number(codes.value), low, high }
}

/// What one flow's digests of one query add up to.
#[derive(Debug)]
pub(super) enum Recording<P> {
    Path {
        state: P,
        digests: u64,
        decoded_after: Option<u64>,
        confirmed_after: Option<u64>,
        /// Its digests contradict each other: the state is not to be used on.
        contradicted: bool,
    },
    Quantiles(Vec<Option<Codes>>),
    Frequent(Vec<Option<SpaceSaving>>),
    Packets(Summary),
    Loops(u64),
}

impl<P> Recording<P> {
    pub fn new<D: Paths<Flow = P>>(keeping: &Keeping, paths: &D, row: &Recorded) -> Recording<P> {
        let room = row.hops as usize;
        match &keeping.kind {
            Kind::Path => {
                let state = paths.start(keeping.query, &row.flow, row.hops);
                Recording::Path {
                    state,
                    digests: 0,
                    decoded_after: None,
                    confirmed_after: None,
                    contradicted: false,
                }
            }
            Kind::Quantiles { .. } => Recording::Quantiles(Vec::with_capacity(room)),
            Kind::Frequent { .. } => Recording::Frequent(Vec::with_capacity(room)),
            Kind::Coded(_) | Kind::Summed(..) | Kind::Counted(_) => Recording::Packets(Summary::default()),
            Kind::Loops => Recording::Loops(0),
        }
    }

    /// Bytes beyond its own size.
    pub fn bytes<D: Paths<Flow = P>>(&self, paths: &D) -> usize {
        match self {
            Recording::Path { state, .. } => paths.bytes(state),
            Recording::Quantiles(hops) => {
                let own = |codes: &Codes| codes.bytes() - each!(codes, sketch => size_of_val(sketch));
                hops.capacity() * size_of::<Option<Codes>>() + hops.iter().flatten().map(own).sum::<usize>()
            }
            Recording::Frequent(hops) => {
                let own = |sketch: &SpaceSaving| sketch.bytes() - size_of::<SpaceSaving>();
                hops.capacity() * size_of::<Option<SpaceSaving>>()
                    + hops.iter().flatten().map(own).sum::<usize>()
            }
            Recording::Packets(_) | Recording::Loops(_) => 0,
        }
    }

    /// Takes in the query's fields of a digest; returns what happened to a path, and by how many bytes the
    /// recording grew (or shrank).
    pub fn take<D: Paths<Flow = P>>(
        &mut self,
        keeping: &Keeping,
        paths: &D,
        row: &Recorded,
        fields: &[Field],
    ) -> (Step, isize) {
        let mut grown = 0;
        match (self, &keeping.kind) {
            (Recording::Path { state, digests, decoded_after, confirmed_after, contradicted }, _) => {
                *digests += 1;
                let before = paths.bytes(state);
                let step = paths.take(keeping.query, state, row.packet, row.digest, fields);
                match step {
                    Step::On => {}
                    Step::Decoded => *decoded_after = Some(*digests),
                    Step::Settled => *decoded_after = Some(*digests - 1),
                    Step::Confirmed => *confirmed_after = Some(*digests),
                    Step::Contradiction => {
                        *digests -= 1;
                        *contradicted |= decoded_after.is_none();
                    }
                }
                return (step, paths.bytes(state) as isize - before as isize);
            }
            (Recording::Quantiles(hops), Kind::Quantiles { values, .. }) => {
                for (field, hop) in samples(fields, row.packet, row.hops) {
                    let place = place_of(hops, hop, row, &mut grown);
                    let before = place.as_ref().map_or(size_of::<Codes>(), Codes::bytes_with_place);
                    let codes =
                        place.get_or_insert_with(|| Codes::new(keeping, values.bits(), row.hops, row.packet));
                    codes.update(field.read(row.digest));
                    grown += codes.bytes_with_place() as isize - before as isize;
                }
            }
            (Recording::Frequent(hops), Kind::Frequent { values, share }) => {
                for (field, hop) in samples(fields, row.packet, row.hops) {
                    let place = place_of(hops, hop, row, &mut grown);
                    let before = place.as_ref().map_or(size_of::<SpaceSaving>(), SpaceSaving::bytes);
                    let sketch = place.get_or_insert_with(|| {
                        SpaceSaving::new(counters(keeping.space, row.hops, *share, values.bits()))
                    });
                    sketch.update(field.read(row.digest));
                    grown += sketch.bytes() as isize - before as isize;
                }
            }
            (Recording::Packets(summary), kind) => {
                for field in fields {
                    let code = field.read(row.digest);
                    let (number, end) = match kind {
                        Kind::Coded(values) if code >= values.limit() => (values.number(code), End::Ceiling),
                        Kind::Coded(values) if code == 0 && values.rate().is_some() => {
                            (values.number(code), End::Floor)
                        }
                        Kind::Coded(values) => (values.number(code), End::None),
                        Kind::Summed(counter, ceiling) if code >= *ceiling => {
                            (Number::Estimate(counter.decode(code)), End::Ceiling)
                        }
                        Kind::Summed(counter, _) => (Number::Estimate(counter.decode(code)), End::None),
                        // On a path of as many hops all may have been counted.
                        Kind::Counted(limit) if code >= *limit && u64::from(row.hops) > *limit => {
                            (Number::Exact(code), End::Ceiling)
                        }
                        _ => (Number::Exact(code), End::None),
                    };
                    summary.take(number, end);
                }
            }
            (Recording::Loops(digests), _) => *digests += 1,
            // A recording is made for its keeping and stays with it.
            (Recording::Quantiles(_) | Recording::Frequent(_), _) => {}
        }
        (Step::On, grown)
    }

    /// Whether the query's fields of a packet that was used before fit what is known; nothing is taken from
    /// them.
    pub fn fits<D: Paths<Flow = P>>(
        &mut self,
        keeping: &Keeping,
        paths: &D,
        row: &Recorded,
        fields: &[Field],
    ) -> bool {
        match self {
            Recording::Path { state, decoded_after: Some(_), .. } => {
                paths.fits(keeping.query, state, row.packet, row.digest, fields)
            }
            _ => true,
        }
    }

    /// Whether it is a path that is known.
    pub fn is_decoded(&self) -> bool {
        matches!(self, Recording::Path { decoded_after: Some(_), .. })
    }

    /// Whether it is a path that was seen again since it is known.
    pub fn is_confirmed(&self) -> bool {
        matches!(self, Recording::Path { confirmed_after: Some(_), .. })
    }

    pub fn findings<D: Paths<Flow = P>>(&self, keeping: &Keeping, paths: &D) -> Findings {
        match (self, &keeping.kind) {
            (Recording::Path { state, digests, decoded_after, confirmed_after, contradicted }, _) => {
                let mut findings = paths.findings(keeping.query, state);
                (findings.digests, findings.contradicted) = (*digests, *contradicted);
                (findings.decoded_after, findings.confirmed_after) = (*decoded_after, *confirmed_after);
                Findings::Path(findings)
            }
            (Recording::Quantiles(hops), Kind::Quantiles { values, quantiles }) => {
                let none = HopQuantiles {
                    samples: 0,
                    exact: true,
                    rank_error: 0.0,
                    values: Vec::new(),
                    ceiling: values.number(values.limit()),
                    floor: floor(values),
                };
                let hop = |codes: &Option<Codes>| {
                    codes.as_ref().map_or(none.clone(), |codes| codes.quantiles(values, quantiles))
                };
                Findings::Quantiles(hops.iter().map(hop).collect())
            }
            (Recording::Frequent(hops), Kind::Frequent { values, share }) => {
                let none = HopFrequent {
                    samples: 0,
                    values: Vec::new(),
                    ceiling: values.number(values.limit()),
                    floor: floor(values),
                };
                let hop = |sketch: &Option<SpaceSaving>| {
                    sketch.as_ref().map_or(none.clone(), |s| frequent(s, values, *share))
                };
                Findings::Frequent(hops.iter().map(hop).collect())
            }
            (Recording::Packets(summary), _) => Findings::Packets(*summary),
            (Recording::Loops(digests), _) => Findings::Loops { digests: *digests },
            (Recording::Quantiles(_), _) => Findings::Quantiles(Vec::new()),
            (Recording::Frequent(_), _) => Findings::Frequent(Vec::new()),
        }
    }
}

impl Codes {
    /// Heap and the place in its list.
    fn bytes_with_place(&self) -> usize {
        size_of::<Codes>() + self.bytes() - each!(self, sketch => size_of_val(sketch))
    }
}

/// The place of a hop (from 1).
fn place_of<'h, T>(
    hops: &'h mut Vec<Option<T>>,
    hop: u32,
    row: &Recorded,
    grown: &mut isize,
) -> &'h mut Option<T> {
    if hops.len() < row.hops as usize {
        let before = hops.capacity();
        hops.reserve_exact(row.hops as usize - hops.len());
        hops.resize_with(row.hops as usize, || None);
        *grown += ((hops.capacity() - before) * size_of::<Option<T>>()) as isize;
    }
    // Survivors are among the packet's hops.
    &mut hops[hop as usize - 1]
}

fn frequent(sketch: &SpaceSaving, values: &Approximation, share: f64) -> HopFrequent {
    let n = sketch.len() as f64;
    let z = normal_quantile(0.5 + CONFIDENCE / 2.0);
    // Wilson's interval of a share from n independent samples.
    let wilson = |p: f64, sign: f64| {
        let (centre, spread) =
            (p + z * z / (2.0 * n), z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt());
        ((centre + sign * spread) / (1.0 + z * z / n)).clamp(0.0, 1.0)
    };
    let value = |counter: &space_saving::Counter| {
        let (min, max) = ((counter.count - counter.excess) as f64 / n, (counter.count as f64 / n).min(1.0));
        FrequentValue {
            value: values.number(counter.value),
            min,
            max,
            // Rounding must not leave out the share itself: all samples are a share of 1.
            low: wilson(min, -1.0).min(min),
            high: wilson(max, 1.0).max(max),
        }
    };
    HopFrequent {
        samples: sketch.len(),
        values: sketch.frequent(share).iter().map(value).collect(),
        ceiling: values.number(values.limit()),
        floor: floor(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_a_share_hold_the_share_itself() {
        let values = Approximation::exact(8).unwrap();
        for others in [0, 1] {
            let mut sketch = SpaceSaving::new(8);
            sketch.update(7);
            (0..others).for_each(|_| sketch.update(9));
            for _ in 0..500 {
                sketch.update(7);
                let found = frequent(&sketch, &values, 0.5);
                let FrequentValue { min, max, low, high, .. } = found.values[0];
                assert!(low <= min && max <= high, "{low} {min} {max} {high}");
            }
        }
    }
}
