//! A plan described for a person, and the same as JSON: sets, bits, and what to expect of every query.

use serde_json::{Value as Json, json};

use super::predict::{PathModel, packets_for_rank, packets_for_rank_in_sketch, path_packets, quantile_error};
use super::{Plan, task, tasks};
use crate::collector::{counters, sketch_k};
use crate::encoder::Task;
use crate::query::*;
use crate::sketch::kll;

/// Trials of a prediction of packets to decode: the mean is good to about 2 %, the 99th percentile to 10 %.
const TRIALS: u32 = 1_000;
/// Numbers of packets for which errors of quantiles are reported.
const PACKETS: [u64; 4] = [100, 1_000, 10_000, 100_000];
/// Seed of these trials: the same plan gets the same numbers.
const SEED: u64 = 0x7765_6674;

impl Plan {
    /// The plan and what to expect of it, in plain text.
    pub fn describe(&self) -> String {
        let described = self.to_json();
        let mut text = format!(
            "plan {:08x}: {} queries in a digest of {} bits, paths of {} hops expected, {} at most\n\n",
            self.version(),
            self.queries().queries.len(),
            self.queries().bits,
            self.queries().hops.expected,
            self.queries().hops.maximal
        );
        text += &self.sets_table();
        text += "\n";
        text += &self.queries_table();
        for (place, query) in described["queries"].as_array().into_iter().flatten().enumerate() {
            text += &prediction_text(query);
            text += &self.ends_text(place);
        }
        text
    }

    fn sets_table(&self) -> String {
        let mut rows = vec![row(["share", "of 65536", "queries (bits from the lowest)"])];
        for set in self.sets() {
            let mut from = 0;
            let mut names = Vec::new();
            for &query in &set.queries {
                let query = &self.queries().queries[query];
                names.push(format!("{} {}-{}", query.name, from, from + query.bits - 1));
                from += query.bits;
            }
            let share = format!("{:.4}", f64::from(set.share) / f64::from(SHARES));
            rows.push(vec![share, set.share.to_string(), names.join(", ")]);
        }
        table(&rows)
    }

    fn queries_table(&self) -> String {
        let mut rows =
            vec![row(["query", "value", "aggregation", "bits", "asked", "served", "flow", "approximation"])];
        for (place, query) in self.queries().queries.iter().enumerate() {
            let bits = if query.copies > 1 {
                format!("{} x {}", query.copies, query.copy_bits())
            } else {
                query.bits.to_string()
            };
            let short = self.shortfall(place);
            let missing = if short > 0 { format!(" (short by {short}/65536)") } else { String::new() };
            rows.push(vec![
                query.name.clone(),
                query.value.name().to_string(),
                query.aggregation.name().to_string(),
                bits,
                format!("{:.4}", query.frequency),
                format!("{:.4}{missing}", f64::from(self.served(place)) / f64::from(SHARES)),
                query.flow.name().to_string(),
                approximation_text(query, self.largest(place), self.queries().hops),
            ]);
        }
        table(&rows)
    }

    /// Where the numbers of a query per packet end, where that may surprise.
    fn ends_text(&self, place: usize) -> String {
        let Query { name, aggregation, bits, .. } = &self.queries().queries[place];
        let longest = self.queries().hops.maximal;
        match aggregation {
            Aggregation::CountAbove { .. } if tasks::count_bits(longest) > *bits => format!(
                "\n{name}: {bits} bits count up to {} hops, and a path may have {longest}: larger counts are marked; {} bits count all\n",
                (1u64 << bits) - 1,
                tasks::count_bits(longest)
            ),
            Aggregation::Product(_) => format!("\n{name}: a hop whose value is 0 counts as 1\n"),
            _ => String::new(),
        }
    }

    /// The plan and what to expect of it. Keys: `version`, `bits`, `hops`, `sets` (`share`, `queries`),
    /// `queries` (each with `asked`, `served` and `prediction`).
    pub fn to_json(&self) -> Json {
        let names = |set: &super::QuerySet| -> Vec<&str> {
            set.queries.iter().map(|&query| self.queries().queries[query].name.as_str()).collect()
        };
        let sets: Vec<Json> =
            self.sets().iter().map(|set| json!({ "share": set.share, "queries": names(set) })).collect();
        let Queries { bits, seed, hops, queries } = self.queries();
        let described: Vec<Json> = (0..queries.len()).map(|place| self.query_json(place)).collect();
        json!({
            "version": format!("{:08x}", self.version()),
            "bits": bits,
            "seed": seed,
            "hops": { "expected": hops.expected, "maximal": hops.maximal },
            "sets": sets,
            "queries": described,
        })
    }

    fn query_json(&self, place: usize) -> Json {
        let query = &self.queries().queries[place];
        json!({
            "name": query.name,
            "value": query.value.name(),
            "unit": query.value.facts().unit,
            "aggregation": query.aggregation.name(),
            "bits": query.bits,
            "copies": query.copies,
            "flow": query.flow.name(),
            "space": query.space,
            "asked": query.frequency,
            "served": f64::from(self.served(place)) / f64::from(SHARES),
            "short_by_units": self.shortfall(place),
            "prediction": self.prediction(place),
        })
    }

    /// What to expect of a query.
    fn prediction(&self, place: usize) -> Json {
        let query = &self.queries().queries[place];
        match &query.aggregation {
            Aggregation::Path(_) => self.path_prediction(place),
            Aggregation::Quantiles { quantiles, approximation } => {
                self.quantile_prediction(place, quantiles, approximation)
            }
            Aggregation::Frequent { share, .. } => {
                // Each hop's share of a value is known to within half the threshold in 99 % of the cases.
                let expected = self.queries().hops.expected;
                let counters = counters(query.space, expected, *share, query.copy_bits());
                json!({
                    "kind": "frequent",
                    "share": share,
                    "packets": packets_for_rank(share / 2.0, 0.01, self.samples_per_packet(place)),
                    "counters": counters,
                })
            }
            Aggregation::Loops { tolerance } => {
                let Ok(Task::Loop(detection)) = task(query, self.queries().hops) else { return Json::Null };
                let Hops { expected, maximal } = self.queries().hops;
                let on = |hops| false_reports(hops, *tolerance, detection.hash_bits());
                json!({
                    "kind": "loops",
                    "hops": expected,
                    "false_reports": on(expected),
                    "longest": maximal,
                    "false_reports_longest": on(maximal),
                })
            }
            _ => json!({
                "kind": "per-packet",
                "relative_error": relative_error(query, self.queries().hops),
                "error_of_small": error_of_small(query, self.queries().hops),
                "largest": self.largest(place),
            }),
        }
    }

    fn path_prediction(&self, place: usize) -> Json {
        let Hops { expected, maximal } = self.queries().hops;
        let mut lengths = vec![expected.div_ceil(2), expected, (2 * expected).min(maximal), maximal];
        lengths.sort_unstable();
        lengths.dedup();
        let Some(model) = self.path_model(place) else { return Json::Null };
        let described = |&hops: &u32| {
            let trials = if hops > 100 { TRIALS / 5 } else { TRIALS };
            let packets = path_packets(&model, hops, trials, SEED);
            json!({
                "hops": hops,
                "mean_packets": packets.mean,
                "median_packets": packets.median,
                "p99_packets": packets.p99,
                "given_up": packets.unfinished,
            })
        };
        let layers: Vec<f64> = model.code.layers().iter().map(|layer| layer.probability()).collect();
        json!({
            "kind": "path",
            "tau": model.code.tau(),
            "layers": layers,
            "ids": model.ids,
            "lengths": lengths.iter().map(described).collect::<Vec<_>>(),
        })
    }

    /// The model of a path query, for [`path_packets`]; None for other queries.
    pub fn path_model(&self, place: usize) -> Option<PathModel> {
        let query = &self.queries().queries[place];
        let (Aggregation::Path(path), Ok(Task::Path { code, .. })) =
            (&query.aggregation, task(query, self.queries().hops))
        else {
            return None;
        };
        let fragments = match path.blocks {
            Blocks::Hashes => 1,
            Blocks::Fragments { value_bits } => value_bits.div_ceil(query.copy_bits()).clamp(1, 64),
        };
        Some(PathModel {
            code,
            bits: query.copy_bits(),
            copies: query.copies,
            ids: path.ids,
            fragments,
            raw: path.blocks != Blocks::Hashes,
            frequency: f64::from(self.served(place)) / f64::from(SHARES),
        })
    }

    /// Of a hop: it counts once for a packet, whatever number of copies it wrote.
    fn samples_per_packet(&self, place: usize) -> f64 {
        let served = f64::from(self.served(place)) / f64::from(SHARES);
        let by_others = 1.0 - 1.0 / f64::from(self.queries().hops.expected);
        served * (1.0 - libm::pow(by_others, f64::from(self.queries().queries[place].copies)))
    }

    fn quantile_prediction(&self, place: usize, quantiles: &[f64], approximation: &Approximation) -> Json {
        let query = &self.queries().queries[place];
        // At random the error has twice the variance of that to the nearest code.
        let wider = if approximation.rounding == Rounding::Nearest { 1.0 } else { std::f64::consts::SQRT_2 };
        let epsilon = wider * approximation.scale.relative_error().unwrap_or(0.0);
        let k = sketch_k(query.space, self.queries().hops.expected, query.copy_bits());
        let mut errors = Vec::new();
        for packets in PACKETS {
            for &quantile in quantiles {
                let samples = packets as f64 * self.samples_per_packet(place);
                let error = quantile_error(quantile, samples, k, epsilon);
                errors.push(json!({
                    "packets": packets,
                    "quantile": quantile,
                    "samples_per_hop": error.samples,
                    "rank_deviation": error.rank_deviation,
                    "sketch_rank_error": error.sketch_rank_error,
                    "relative_error": (samples >= 1.0).then_some(error.relative_error),
                }));
            }
        }
        json!({
            "kind": "quantiles",
            "approximation_error": approximation.relative_error(),
            "largest": self.largest(place),
            "sketch_k": k,
            "sketch_rank_error": kll::rank_error(k).min(1.0),
            "packets_for_rank_5_percent": packets_for_rank_in_sketch(0.05, 0.01, self.samples_per_packet(place), k),
            "errors": errors,
        })
    }
}

/// The share of packets that a path without a loop is reported for: of the hops after the first, each of
/// which compares, more than `tolerance` match a hash of `bits` bits by chance.
///
/// Differs from the source (appendix A.4), which has the first term of the binomial of all hops: a bound.
fn false_reports(hops: u32, tolerance: u32, bits: u32) -> f64 {
    let compared = hops.saturating_sub(1);
    let by_chance = libm::exp2(-f64::from(bits));
    let others = 1.0 - by_chance;
    // The upper tail term by term: 1 - the lower one would lose the digits of small chances.
    let mut term = libm::pow(others, f64::from(compared));
    let mut tail = 0.0;
    for matches in 1..=compared {
        term *= f64::from(compared - matches + 1) / f64::from(matches) * by_chance / others;
        if matches > tolerance {
            tail += term;
        }
    }
    tail
}

/// The relative error of one packet's number, at most; None where it is not relative. Of a sum it is the
/// deviation at the longest path, of a product that is rounded at random that at the expected path.
fn relative_error(query: &Query, hops: Hops) -> Option<f64> {
    if let Aggregation::CountAbove { .. } = query.aggregation {
        return Some(0.0);
    }
    let approximation = *query.aggregation.approximation()?;
    let epsilon = approximation.scale.relative_error()?;
    match query.aggregation {
        Aggregation::Product(_) => {}
        Aggregation::Sum(_) => return Some(epsilon),
        _ => return approximation.relative_error(),
    }
    let factors = f64::from(hops.expected);
    Some(match approximation.rounding {
        // Each factor is off by 1 + epsilon at most.
        Rounding::Nearest => libm::pow(1.0 + epsilon, factors) - 1.0,
        // The logarithm of each factor deviates by half a step at most, independently.
        Rounding::Log => libm::expm1(libm::sqrt(factors) * libm::log1p(epsilon)),
        // See `counting`: (1 + (B - 1)^2 / (4 B))^k - 1 is the relative variance.
        Rounding::Value => {
            let base = (1.0 + epsilon) * (1.0 + epsilon);
            let variance = (base - 1.0) * (base - 1.0) / (4.0 * base);
            libm::sqrt(libm::pow(1.0 + variance, factors) - 1.0)
        }
    })
}

/// What a sum deviates by on top of its relative deviation at the longest path, which is most of it where
/// sums are small: each hop rounds by up to half of a step, and steps are no shorter than 1. None for
/// other aggregations.
fn error_of_small(query: &Query, hops: Hops) -> Option<f64> {
    matches!(query.aggregation, Aggregation::Sum(_)).then(|| libm::sqrt(f64::from(hops.maximal)) / 2.0)
}

fn approximation_text(query: &Query, largest: Option<f64>, hops: Hops) -> String {
    let end = largest.map_or("no end".to_string(), |largest| format!("up to {largest:.3e}"));
    if let Aggregation::CountAbove { .. } = query.aggregation {
        return format!("exact, up to {}", largest.unwrap_or(f64::NAN));
    }
    let Some(approximation) = query.aggregation.approximation() else { return "-".to_string() };
    let rounding = approximation.rounding.name();
    let unit = query.value.facts().unit;
    let error = approximation.relative_error().unwrap_or(0.0);
    match (approximation.scale, &query.aggregation) {
        (Scale::Exact, _) => format!("exact, up to {}", largest.unwrap_or(f64::NAN)),
        (Scale::Multiplicative { epsilon }, Aggregation::Sum(_)) => {
            let on_top = error_of_small(query, hops).unwrap_or(0.0);
            format!("counter, {:.2}% + {on_top:.1} deviation, {end} {unit}", epsilon * 100.0)
        }
        (Scale::Multiplicative { .. }, Aggregation::Product(_)) => {
            format!("{:.2}% per hop, products {end}, {rounding}", error * 100.0)
        }
        (Scale::Multiplicative { .. }, _) => {
            format!("{:.2}%, {end} {unit}, {rounding}", error * 100.0)
        }
        (Scale::Additive { delta }, _) => {
            let error = if approximation.rounding == Rounding::Nearest { delta } else { 2.0 * delta };
            format!("{error} {unit}, {end}, {rounding}")
        }
    }
}

/// What is reported about one query below the tables.
fn prediction_text(query: &Json) -> String {
    let prediction = &query["prediction"];
    let name = query["name"].as_str().unwrap_or_default();
    match prediction["kind"].as_str() {
        Some("path") => path_text(name, prediction) + joined_text(query),
        Some("quantiles") => quantile_text(name, prediction),
        Some("frequent") => format!(
            "\n{name}: shares of values known to half of {} (99 %) after {:.0} packets of a flow; {} counters at a hop, which add up to {:.2}%\n",
            prediction["share"],
            number(&prediction["packets"]),
            prediction["counters"],
            100.0 / number(&prediction["counters"])
        ),
        Some("loops") => {
            format!(
                "\n{name}: false report on {:.2e} of the packets that serve it on paths of {} hops, on {:.2e} on those of {}\n",
                number(&prediction["false_reports"]),
                prediction["hops"],
                number(&prediction["false_reports_longest"]),
                prediction["longest"]
            )
        }
        _ => String::new(),
    }
}

/// A note for a path query whose flow may take several paths.
fn joined_text(query: &Json) -> &'static str {
    if query["flow"] != json!(FlowKey::SourceDestination.name()) {
        return "";
    }
    "flow = \"source-destination\" joins five-tuples, which ECMP sends over different paths: take \"5-tuple\" in such a network\n"
}

fn number(value: &Json) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn path_text(name: &str, prediction: &Json) -> String {
    let layers: Vec<String> =
        prediction["layers"].as_array().into_iter().flatten().map(|p| format!("{:.3}", number(p))).collect();
    let mut text = format!(
        "\n{name}: packets of a flow until its path is known (tau {:.3}, p [{}], {} ids, no topology)\n",
        number(&prediction["tau"]),
        layers.join(", "),
        prediction["ids"]
    );
    let mut rows = vec![row(["hops", "mean", "median", "p99"])];
    for length in prediction["lengths"].as_array().into_iter().flatten() {
        let mark = if length["given_up"] == json!(0) { "" } else { " or more" };
        rows.push(vec![
            length["hops"].to_string(),
            format!("{:.1}{mark}", number(&length["mean_packets"])),
            format!("{}{mark}", length["median_packets"]),
            format!("{}{mark}", length["p99_packets"]),
        ]);
    }
    text += &table(&rows);
    text
}

fn quantile_text(name: &str, prediction: &Json) -> String {
    let mut text = format!(
        "\n{name}: error of quantiles per hop (independent samples; values as if lognormal with sigma {}); ranks are off by more than \
         one deviation in a third of all flows, values by more than their mean error in four of ten\n",
        super::predict::LOGNORMAL_SIGMA
    );
    let mut rows = vec![row([
        "packets",
        "samples/hop",
        "quantile",
        "rank deviation",
        "sketch adds",
        "value, mean error",
    ])];
    for error in prediction["errors"].as_array().into_iter().flatten() {
        let relative = match error["relative_error"].as_f64() {
            Some(relative) if relative < 1.0 => format!("{:.1}%", relative * 100.0),
            Some(_) => "over 100%".to_string(),
            None => "-".to_string(),
        };
        rows.push(vec![
            error["packets"].to_string(),
            format!("{:.1}", number(&error["samples_per_hop"])),
            error["quantile"].to_string(),
            format!("{:.2}%", number(&error["rank_deviation"]) * 100.0),
            format!("{:.2}%", number(&error["sketch_rank_error"]) * 100.0),
            relative,
        ]);
    }
    text += &table(&rows);
    let sketch = number(&prediction["sketch_rank_error"]) * 100.0;
    text += "rank within 5 % except one time in 100, whatever the values: ";
    text += &match prediction["packets_for_rank_5_percent"].as_f64() {
        Some(packets) => format!("{packets:.0} packets (Hoeffding, and {sketch:.2}% for the sketch)\n"),
        None => format!("never, the sketch alone may be off by {sketch:.2}%; give the query more space\n"),
    };
    text
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_string).to_vec()
}

/// Columns side by side, two spaces between; the first row is the head.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_string() + "\n"
    };
    let mut text = String::new();
    for (place, row) in rows.iter().enumerate() {
        text += &line(row);
        if place == 0 {
            text += &line(&widths.iter().map(|&width| "-".repeat(width)).collect());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::false_reports;

    #[test]
    fn false_reports_of_loops_are_those_of_the_appendix_where_as_many_hops_compare() {
        // Spec §1.6, 32 hops: b = 16, T = 0: 0.05 %; T = 1, b = 15: below 5e-7; T = 3, b = 14: 5e-13.
        assert!((false_reports(33, 0, 16) / 5e-4 - 1.0).abs() < 0.05);
        assert!((4e-7..5e-7).contains(&false_reports(33, 1, 15)));
        assert!((false_reports(33, 3, 14) / 5e-13 - 1.0).abs() < 0.05);
    }

    #[test]
    fn the_first_hop_cannot_match_itself() {
        // Four of five hops compare: at least 2 of 4 with probability 1/8, 1 of 4 with 1/16; all of 4.
        let (p, q) = (0.125f64, 0.875f64);
        let two = 1.0 - q.powi(4) - 4.0 * p * q.powi(3);
        assert!((false_reports(5, 1, 3) / two - 1.0).abs() < 1e-12);
        assert!((false_reports(5, 0, 4) / (1.0 - 0.9375f64.powi(4)) - 1.0).abs() < 1e-12);
        assert!((false_reports(5, 3, 10) / 2f64.powi(-40) - 1.0).abs() < 1e-12);
        assert_eq!([false_reports(1, 0, 1), false_reports(5, 4, 1)], [0.0, 0.0]);
        assert!((false_reports(2, 0, 64) / 2f64.powi(-64) - 1.0).abs() < 1e-12);
    }
}
