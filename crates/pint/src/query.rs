//! Queries: what to learn from the packets, under how many bits, on what share of them.
//!
//! A query is a value that a hop can see, an aggregation of it over the path, bits of the digest, a share of
//! the packets, and what counts as one flow. Three families of aggregation exist: *per packet* (one number
//! per packet over its hops), *static per flow* (values that do not change from packet to packet: all of them
//! are recovered), *dynamic per flow* (a stream of values per flow and hop: quantiles, frequent values).
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §3.1 (aggregations), §3.3 (the query's parts), §4.3
//! (approximations).

use crate::code::{Code, MAX_HOPS};
use crate::plan::presets::Preset;

/// Queries that may share a digest.
pub const MAX_QUERIES: usize = 16;
/// Bits that a digest may have.
pub const MAX_BITS: u32 = 64;
/// Copies of a code, or samples of a value, that a query may put side by side in its bits.
pub const MAX_COPIES: u32 = 8;
/// Shares of packets are counted in parts of this.
pub const SHARES: u32 = 65_536;

/// All queries of a domain, and what they share.
#[derive(Debug, Clone, PartialEq)]
pub struct Queries {
    /// Bits of the digest, 1 to [`MAX_BITS`].
    pub bits: u32,
    /// Seed of all hashes.
    pub seed: u64,
    pub hops: Hops,
    /// At most [`MAX_QUERIES`], with different names.
    pub queries: Vec<Query>,
}

/// Lengths of paths, in switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hops {
    /// A usual path: what presets of codes are computed from, and predictions made for.
    pub expected: u32,
    /// Longer paths are refused by the collector; at most [`MAX_HOPS`].
    pub maximal: u32,
}

impl Default for Hops {
    fn default() -> Hops {
        Hops { expected: 5, maximal: 64.min(MAX_HOPS) }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub name: String,
    pub value: Value,
    pub aggregation: Aggregation,
    /// Bits of the digest that the query takes in a packet that serves it.
    pub bits: u32,
    /// Independent copies in these bits, each of `bits / copies` bits; 1 for aggregations per packet.
    pub copies: u32,
    /// Share of the packets that must serve the query, in (0, 1].
    pub frequency: f64,
    pub flow: FlowKey,
    /// Bytes that the collector may keep per flow, if the query sets them.
    pub space: Option<u64>,
}

impl Query {
    /// Bits of one copy.
    pub fn copy_bits(&self) -> u32 {
        self.bits / self.copies
    }

    /// The frequency in parts of [`SHARES`], rounded up.
    pub fn demand(&self) -> u32 {
        // Decimals such as 0.9375 arrive exactly; the small step keeps 0.1 * 10 from becoming one unit more.
        ((self.frequency * f64::from(SHARES) - 1e-6).ceil() as u32).clamp(1, SHARES)
    }
}

/// What a hop puts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    SwitchId,
    IngressPort,
    EgressPort,
    Timestamp,
    HopLatency,
    QueueBytes,
    Utilisation,
    PortBytes,
}

/// What is known of a [`Value`].
#[derive(Debug, Clone, Copy)]
pub struct ValueFacts {
    pub name: &'static str,
    pub meaning: &'static str,
    pub unit: &'static str,
    /// The same for all packets of a flow at a hop, while the route does not change.
    pub constant: bool,
    /// The largest that is planned for where the query does not say.
    pub largest: u64,
}

impl Value {
    pub const ALL: [Value; 8] = [
        Value::SwitchId,
        Value::IngressPort,
        Value::EgressPort,
        Value::Timestamp,
        Value::HopLatency,
        Value::QueueBytes,
        Value::Utilisation,
        Value::PortBytes,
    ];

    pub fn facts(self) -> ValueFacts {
        let facts =
            |name, meaning, unit, constant, largest| ValueFacts { name, meaning, unit, constant, largest };
        match self {
            Value::SwitchId => facts("switch-id", "id of the switch", "id", true, u32::MAX as u64),
            Value::IngressPort => facts("ingress-port", "port of arrival", "port", true, u16::MAX as u64),
            Value::EgressPort => facts("egress-port", "port of departure", "port", true, u16::MAX as u64),
            Value::Timestamp => facts("timestamp", "time of departure", "ns", false, u64::MAX),
            Value::HopLatency => facts("hop-latency", "time in the switch", "ns", false, u32::MAX as u64),
            Value::QueueBytes => facts("queue-bytes", "queue at departure", "bytes", false, u32::MAX as u64),
            // Up to 512 times the link (HPCC's authors scale by the flows at most), in parts of 2^-9.
            Value::Utilisation => {
                facts("utilisation", "moving average of the link's load", "1/512", false, 1 << 18)
            }
            Value::PortBytes => facts("port-bytes", "bytes that the port has sent", "bytes", false, u64::MAX),
        }
    }

    pub fn name(self) -> &'static str {
        self.facts().name
    }

    pub fn named(name: &str) -> Option<Value> {
        Value::ALL.into_iter().find(|value| value.name() == name)
    }

    /// Whether its numbers are names, of a switch or of a port: a name near another one is another thing, so
    /// names are never rounded.
    pub fn is_name(self) -> bool {
        match self {
            Value::SwitchId | Value::IngressPort | Value::EgressPort => true,
            Value::Timestamp
            | Value::HopLatency
            | Value::QueueBytes
            | Value::Utilisation
            | Value::PortBytes => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Aggregation {
    /// Static per flow: the value of every hop.
    Path(PathQuery),
    /// Per packet: largest value over the hops.
    Max(Approximation),
    Min(Approximation),
    /// Per packet, by randomised counting: its scale is multiplicative, with the relative deviation of the
    /// sum at the longest path.
    Sum(Approximation),
    /// Per packet, the codes of the hops' values added: its scale is multiplicative.
    Product(Approximation),
    /// Per packet: hops whose value is above the threshold.
    CountAbove {
        threshold: u64,
    },
    /// Per packet: whether it came back to a switch; reported after `tolerance` matches more than one.
    Loops {
        tolerance: u32,
    },
    /// Dynamic per flow: the asked quantiles of every hop's values, each in (0, 1).
    Quantiles {
        quantiles: Vec<f64>,
        approximation: Approximation,
    },
    /// Dynamic per flow: values that make up at least this share of a hop's stream.
    Frequent {
        share: f64,
        approximation: Approximation,
    },
}

impl Aggregation {
    /// The names in the query language.
    pub const NAMES: [&'static str; 9] =
        ["path", "max", "min", "sum", "product", "count-above", "loops", "quantiles", "frequent"];

    pub fn name(&self) -> &'static str {
        match self {
            Aggregation::Path(_) => "path",
            Aggregation::Max(_) => "max",
            Aggregation::Min(_) => "min",
            Aggregation::Sum(_) => "sum",
            Aggregation::Product(_) => "product",
            Aggregation::CountAbove { .. } => "count-above",
            Aggregation::Loops { .. } => "loops",
            Aggregation::Quantiles { .. } => "quantiles",
            Aggregation::Frequent { .. } => "frequent",
        }
    }

    /// How its values are compressed, where they are.
    pub fn approximation(&self) -> Option<&Approximation> {
        match self {
            Aggregation::Path(_) | Aggregation::CountAbove { .. } | Aggregation::Loops { .. } => None,
            Aggregation::Max(a) | Aggregation::Min(a) | Aggregation::Sum(a) | Aggregation::Product(a) => {
                Some(a)
            }
            Aggregation::Quantiles { approximation, .. } | Aggregation::Frequent { approximation, .. } => {
                Some(approximation)
            }
        }
    }

    pub fn family(&self) -> Family {
        match self {
            Aggregation::Path(_) => Family::Static,
            Aggregation::Quantiles { .. } | Aggregation::Frequent { .. } => Family::Dynamic,
            _ => Family::PerPacket,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    PerPacket,
    Static,
    Dynamic,
}

/// How all values of a path are coded.
#[derive(Debug, Clone, PartialEq)]
pub struct PathQuery {
    pub code: CodeChoice,
    pub selection: SelectBy,
    pub blocks: Blocks,
    /// How many values a hop may have, of which the collector knows the list; for predictions.
    pub ids: u32,
}

/// A code by name or by its numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum CodeChoice {
    Preset(Preset),
    /// Share of Baseline packets, and p of each XOR layer.
    Explicit {
        tau: f64,
        layers: Vec<f64>,
    },
}

impl CodeChoice {
    /// Tau and the layers' p for a path of `hops`.
    pub fn numbers(&self, hops: u32) -> (f64, Vec<f64>) {
        match self {
            CodeChoice::Preset(preset) => preset.numbers(hops),
            CodeChoice::Explicit { tau, layers } => (*tau, layers.clone()),
        }
    }
}

impl PathQuery {
    /// The code that hops and collector run, made for paths of `hops`. None if tau and layers do not make a
    /// code.
    pub fn code(&self, hops: u32) -> Option<Code> {
        let (tau, layers) = self.code.numbers(hops);
        let layers: Vec<_> = layers.into_iter().map(|p| self.selection.of(p)).collect();
        Code::new(tau, &layers)
    }
}

/// How the hops of an XOR packet are chosen ([`crate::code::Selection`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectBy {
    Threshold,
    Words,
}

impl SelectBy {
    pub const NAMES: [&'static str; 2] = ["threshold", "words"];

    pub fn name(self) -> &'static str {
        match self {
            SelectBy::Threshold => "threshold",
            SelectBy::Words => "words",
        }
    }

    fn of(self, p: f64) -> crate::code::Selection {
        match self {
            SelectBy::Threshold => crate::code::Selection::threshold(p),
            SelectBy::Words => crate::code::Selection::words(p),
        }
    }
}

/// What of a value goes into the b bits of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// A hash of the value and the packet; the collector knows the possible values.
    Hashes,
    /// A fragment of a value of `value_bits` bits, by a hash of the packet; nothing need be known.
    Fragments { value_bits: u32 },
}

/// Whose packets are one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowKey {
    FiveTuple,
    SourceDestination,
    Source,
    Destination,
    All,
}

impl FlowKey {
    pub const ALL: [FlowKey; 5] =
        [FlowKey::FiveTuple, FlowKey::SourceDestination, FlowKey::Source, FlowKey::Destination, FlowKey::All];

    pub fn name(self) -> &'static str {
        match self {
            FlowKey::FiveTuple => "5-tuple",
            FlowKey::SourceDestination => "source-destination",
            FlowKey::Source => "source",
            FlowKey::Destination => "destination",
            FlowKey::All => "all",
        }
    }

    pub fn named(name: &str) -> Option<FlowKey> {
        FlowKey::ALL.into_iter().find(|key| key.name() == name)
    }
}

/// How a value becomes a code of few bits (§4.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Approximation {
    pub scale: Scale,
    pub rounding: Rounding,
}

impl Approximation {
    /// The largest relative error of one value, None where the error is not relative: rounding to the nearest code moves a value by half a
    /// step at most, rounding at random by nearly a whole one.
    pub fn relative_error(self) -> Option<f64> {
        let epsilon = self.scale.relative_error()?;
        Some(match self.rounding {
            Rounding::Nearest => epsilon,
            Rounding::Value | Rounding::Log => epsilon * (2.0 + epsilon),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// The value itself; values that do not fit the bits saturate.
    Exact,
    /// Codes are powers of (1 + epsilon)^2: relative error at most epsilon.
    Multiplicative { epsilon: f64 },
    /// Codes are multiples of 2 delta: error at most delta.
    Additive { delta: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    Nearest,
    /// At random, the mean of the decoded value exact.
    Value,
    /// At random, the mean of its logarithm exact.
    Log,
}

impl Rounding {
    pub const NAMES: [&'static str; 3] = ["nearest", "value", "log"];

    pub fn name(self) -> &'static str {
        match self {
            Rounding::Nearest => "nearest",
            Rounding::Value => "value",
            Rounding::Log => "log",
        }
    }
}

impl Scale {
    /// Bits that codes of the values up to `largest` need; at least 1.
    pub fn bits_for(self, largest: f64) -> u32 {
        let last = match self {
            Scale::Exact => largest.floor(),
            Scale::Multiplicative { epsilon } => {
                (libm::log(largest.max(1.0)) / (2.0 * libm::log1p(epsilon))).round()
            }
            Scale::Additive { delta } => (largest / (2.0 * delta)).round(),
        };
        (1..=64).find(|&bits| last <= libm::exp2(f64::from(bits)) - 1.0).unwrap_or(64)
    }

    /// The largest value that `bits` bits stand for; larger ones saturate. Infinite where it is beyond `f64`.
    pub fn largest(self, bits: u32) -> f64 {
        let last = libm::exp2(f64::from(bits)) - 1.0;
        match self {
            Scale::Exact => last,
            Scale::Multiplicative { epsilon } => libm::exp(2.0 * last * libm::log1p(epsilon)),
            Scale::Additive { delta } => 2.0 * delta * last,
        }
    }

    /// The finest scale on which `bits` bits hold all values up to `largest`: exact where they fit, else
    /// multiplicative.
    pub fn reaching(largest: f64, bits: u32) -> Scale {
        let last = libm::exp2(f64::from(bits)) - 1.0;
        if largest <= last {
            return Scale::Exact;
        }
        Scale::Multiplicative { epsilon: finest(largest, bits) }
    }

    /// The finest multiplicative scale on which `bits` bits hold all values up to `largest`, or the coarsest
    /// one if none does.
    pub fn multiplicative_reaching(largest: f64, bits: u32) -> Scale {
        Scale::Multiplicative { epsilon: finest(largest, bits).min(COARSEST_EPSILON) }
    }

    /// The relative error of a value after rounding to the nearest code; none for scales whose error is not
    /// relative.
    pub fn relative_error(self) -> Option<f64> {
        match self {
            Scale::Exact => Some(0.0),
            Scale::Multiplicative { epsilon } => Some(epsilon),
            Scale::Additive { .. } => None,
        }
    }
}

/// The relative error of the finest grid whose codes of `bits` bits reach `largest`.
fn finest(largest: f64, bits: u32) -> f64 {
    let last = libm::exp2(f64::from(bits)) - 1.0;
    // From log1p and back, so that `largest` is not a hair beyond the last code; the finest grid is that of
    // the encoder.
    libm::expm1(libm::log(largest.max(1.0)) / (2.0 * last)).max(FINEST_EPSILON)
}

/// The smallest relative error that encoders have a grid for.
pub const FINEST_EPSILON: f64 = 8.6e-5;
/// The largest.
pub const COARSEST_EPSILON: f64 = 3.0;

#[cfg(test)]
mod tests;
