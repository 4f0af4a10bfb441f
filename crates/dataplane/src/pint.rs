//! The maps of `bpf/pint.bpf.c` (layout: `bpf/pint_tc.h`), filled from a plan. Its ports: [`crate::port`].

use crate::Plain;
use ::pint::encoder::{Blocks, Task};
use ::pint::fixed::exp2;
use ::pint::hash::Key;
use ::pint::plan::Plan;
use ::pint::value::{Approximation, Rounding};

/// Bits of a digest that both carriers have.
pub const CARRIER_BITS: u32 = 16;
const QUERIES: usize = 16;
const SETS: usize = 32;
const FIELDS: usize = 256;
const LAYERS: usize = 6;

/// Where digests stand; flags of [`Config::carriers`].
pub const IPV4_ID: u32 = 1;
pub const FLOW_LABEL: u32 = 2;

/// Names of the counters of the map `pint_counts`, in their order.
pub const COUNTS: [&str; 9] =
    ["source", "unstamped", "hop_limit", "switch", "other_plan", "no_digest", "sink", "lost", "loop"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Selection {
    kind: u32,
    bits: u32,
    number: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct TaskTable {
    kind: u32,
    fragments: u32,
    threshold: u64,
    baseline: u64,
    layer_count: u32,
    reserved: u32,
    layers: [Selection; LAYERS],
    values: Values,
    counter: Counter,
    tolerance: u32,
    hash_bits: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Values {
    scale: u32,
    rounding: u32,
    bits: u32,
    reserved: u32,
    width: u64,
    inverse: u64,
    rate: u64,
    step: u64,
    span: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Counter {
    rate: u64,
    step: u64,
    span: u64,
    bits: u32,
    reserved: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Field {
    key: u64,
    query: u8,
    offset: u8,
    bits: u8,
    reserved: [u8; 5],
}

/// The only entry of the map `pint_config`: a switch and the plan that it runs.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Config {
    pub switch_id: u32,
    /// [`IPV4_ID`], [`FLOW_LABEL`] or both.
    pub carriers: u32,
    pub plan_nibble: u32,
    /// Not 0: time and queue come with the packet, for replays and tests.
    pub replay: u32,
    values: [u8; QUERIES],
    selector: u64,
    queries: u32,
    sets: u32,
    until: [u32; SETS],
    first: [u16; SETS],
    end: [u16; SETS],
    tasks: [TaskTable; QUERIES],
    fields: [Field; FIELDS],
}

/// What the sink tells of a packet: a record of the ring buffer `pint_records`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    pub time_ns: u64,
    pub packet: u64,
    pub source: [u64; 2],
    pub destination: [u64; 2],
    pub source_port: u16,
    pub destination_port: u16,
    pub digest: u16,
    pub protocol: u8,
    pub hop_limit: u8,
    pub hops: u8,
    pub carrier: u8,
    pub looped: u8,
    pub reserved: [u8; 5],
}

// SAFETY: no padding (`reserved` has it all; the sizes below are those of C), numbers only.
unsafe impl Plain for Config {}
unsafe impl Plain for Record {}
const _: () = assert!(size_of::<TaskTable>() == 224 && size_of::<Config>() == 7984);
const _: () = assert!(size_of::<Record>() == 64);

/// Why a plan cannot be carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooWide {
    pub bits: u32,
}

impl std::fmt::Display for TooWide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the plan's digest has {} bits, and the IPv4 id and the flow label carry {CARRIER_BITS}: set bits = {CARRIER_BITS} or less",
            self.bits
        )
    }
}

impl std::error::Error for TooWide {}

impl Config {
    /// Error: the digest is wider than its carriers.
    pub fn new(plan: &Plan, switch_id: u32, carriers: u32) -> Result<Config, TooWide> {
        let queries = &plan.queries().queries;
        if plan.queries().bits > CARRIER_BITS {
            return Err(TooWide { bits: plan.queries().bits });
        }
        let mut config = Config::zero();
        (config.switch_id, config.carriers) = (switch_id, carriers);
        config.plan_nibble = ::pint::plan::label_bits(plan.version());
        config.selector = Key::new(plan.queries().seed, 0).0;
        config.queries = queries.len() as u32;
        config.sets = plan.sets().len() as u32;
        for (place, (query, task)) in queries.iter().zip(plan.tasks()).enumerate() {
            config.values[place] = query.value as u8;
            config.tasks[place] = TaskTable::new(&task);
        }
        let (mut until, mut next) = (0, 0);
        for (place, set) in plan.sets().iter().enumerate() {
            until += set.share;
            config.until[place] = until;
            config.first[place] = next as u16;
            for slot in plan.slots(place) {
                for copy in 0..slot.copies {
                    config.fields[next] = Field {
                        key: Key::new(slot.key.0, u64::from(copy)).0,
                        query: slot.query as u8,
                        offset: (slot.offset + copy * slot.bits) as u8,
                        bits: slot.bits as u8,
                        reserved: [0; 5],
                    };
                    next += 1;
                }
            }
            config.end[place] = next as u16;
        }
        Ok(config)
    }
}

impl TaskTable {
    fn new(task: &Task) -> TaskTable {
        let mut table = TaskTable { values: Values::NONE, ..Plain::zero() };
        match task {
            Task::Path { code, blocks } => {
                table.baseline = (code.tau() * 4_294_967_296.0) as u64;
                table.layer_count = code.layers().len() as u32;
                for (to, layer) in table.layers.iter_mut().zip(code.layers()) {
                    *to = match *layer {
                        ::pint::code::Selection::Threshold(number) => Selection { kind: 0, bits: 0, number },
                        ::pint::code::Selection::Words { numerator, bits } => {
                            Selection { kind: 1, bits, number: numerator.into() }
                        }
                    };
                }
                if let Blocks::Fragments { count } = blocks {
                    table.fragments = *count;
                }
            }
            Task::Sample(values) => (table.kind, table.values) = (1, Values::new(values)),
            Task::Maximum(values) => (table.kind, table.values) = (2, Values::new(values)),
            Task::Minimum(values) => (table.kind, table.values) = (3, Values::new(values)),
            Task::Sum(counter) => {
                let (step, span) = grid(counter.rate());
                table.kind = 4;
                table.counter =
                    Counter { rate: counter.rate(), step, span, bits: counter.bits(), reserved: 0 };
            }
            Task::Product(values) => (table.kind, table.values) = (5, Values::new(values)),
            Task::Count { threshold } => (table.kind, table.threshold) = (6, *threshold),
            Task::Loop(detection) => {
                table.kind = 7;
                (table.tolerance, table.hash_bits) = (detection.tolerance(), detection.hash_bits());
            }
        }
        table
    }
}

// SAFETY: as above.
unsafe impl Plain for TaskTable {}

impl Values {
    /// A width that no shift exceeds.
    const NONE: Values = Values {
        scale: 0,
        rounding: 0,
        bits: 1,
        reserved: 0,
        width: 0,
        inverse: 0,
        rate: 0,
        step: 0,
        span: 0,
    };

    fn new(values: &Approximation) -> Values {
        let rounding = match values.rounding() {
            Rounding::Nearest => 0,
            Rounding::Value => 1,
            Rounding::Logarithm => 2,
        };
        let none = Values { rounding, bits: values.bits(), ..Values::NONE };
        // What code 1 stands for is the width of a step; exact numbers have steps of 1.
        match (values.rate(), values.decode(1) as u64) {
            (Some(rate), _) => {
                let (step, span) = grid(rate);
                Values { scale: 2, rate, step, span, ..none }
            }
            (None, 0..=1) => none,
            (None, width) => {
                let inverse = ((1u128 << 64) / u128::from(width)) as u64;
                Values { scale: 1, width, inverse, ..none }
            }
        }
    }
}

/// log2 of a geometric grid's base in units of 2^-32, and the base less 1 in units of 2^-28, of its codes per octave.
fn grid(rate: u64) -> (u64, u64) {
    let step = ((1 << 52) + rate / 2) / rate.max(1);
    (step, ((exp2(step as u32) << (step >> 32)) - (1 << 32)) >> 4)
}
