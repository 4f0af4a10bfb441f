//! PINT: every packet carries a digest of a few bits; switches change it, the receiver's side reads it.
//!
//! A switch keeps the load of each port (what HPCC steers on), and has the plan's encoder write what the packet's queries ask
//! for. The digest lies where INT would have its records: in the head of a stack, with the number of switches so far.
//!
//! Packet id: flow and first byte; a retransmission repeats it, as on a network where it is a hash of header fields. Hop number: how
//! many switches have written, which a real one takes from the TTL.
//!
//! Source: Ben Basat et al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020, §3 to §4.

use crate::telemetry::int::{Carried, IntStacks};
use crate::units::{Rate, Time};
use pint::encoder::{Encoder, Observed, Refused, Set, Slot, Task};
use pint::hash::Key;
use pint::places::Places;
use pint::plan::Plan;
use pint::query::{Aggregation, Value};
use pint::utilisation::{Exact, Law, Recirculated, Tabled, Tables, scaled, scaled_integer};
use pint::value::{Approximation, Rounding};
use std::sync::Arc;

/// How a switch computes the load of its ports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Computed {
    Exact,
    /// Integers and tables of logarithms.
    Tables(Tables),
    /// Rounds of so many packets; each round's last goes through the pipeline twice, and its value is stored so much later.
    Recirculated {
        registers: u32,
        delay: Time,
    },
}

/// What a run needs to know of PINT.
#[derive(Debug, Clone, PartialEq)]
pub struct PintConfig {
    pub encoder: Arc<Encoder>,
    /// What each of the encoder's queries is about.
    pub observed: Vec<Value>,
    /// The query that carries the load of the path's busiest port, if there is one.
    pub load: Option<LoadQuery>,
    pub law: Law,
    pub computed: Computed,
    /// Bytes of the digest on the wire.
    pub wire_bytes: u32,
    /// Share of the packets whose digests sinks record, in units of 2^-32.
    pub recorded: u64,
    /// The plan that the encoder was made from, if it was made from one.
    pub plan: Option<Arc<Plan>>,
}

/// A query for the largest load on a path.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadQuery {
    number: usize,
    approximation: Approximation,
    /// The codes of the loads up to 200 %, and the loads of as many codes.
    places: Places,
    loads: Box<[f64]>,
}

/// Loads are encoded in units of 1/512.
const UNITS: f64 = 512.0;
/// Entries of a query's tables.
const LISTED: u64 = 1024;

impl LoadQuery {
    /// The `number`-th query has the load in this approximation.
    pub fn new(number: usize, approximation: Approximation) -> LoadQuery {
        let codes = 0..=approximation.limit().min(LISTED);
        let loads = codes.map(|code| approximation.decode(code) / UNITS).collect();
        LoadQuery { number, approximation, places: Places::of(&approximation, LISTED), loads }
    }

    #[inline]
    fn load(&self, code: u64) -> f64 {
        let listed = usize::try_from(code).ok().and_then(|code| self.loads.get(code));
        listed.copied().unwrap_or_else(|| self.approximation.decode(code) / UNITS)
    }
}

/// The keys of the simulator's own purposes, beside those of the plan.
const COINS: u64 = u64::MAX;
const RECORDS: u64 = u64::MAX - 1;

impl PintConfig {
    /// One query, the load of the busiest port in `bits` bits on a geometric grid of this base, on `share` (in units of 2^-16) of
    /// the packets. None if the grid cannot be: the base must be above 1.00017 and at most 16, the bits at most 32.
    pub fn of_load(
        law: Law,
        computed: Computed,
        base: f64,
        bits: u32,
        share: u32,
        seed: u64,
    ) -> Option<PintConfig> {
        let rounding = if law == Law::Code { Rounding::Value } else { Rounding::Logarithm };
        let approximation = Approximation::from_base(base, bits, rounding)?;
        let slots = [Slot { query: 0, offset: 0, bits, copies: 1, key: Key::new(seed, 1) }];
        let sets = [Set { until: share, slots: &slots }];
        let encoder: Result<Encoder, Refused> =
            Encoder::new(Key::new(seed, 0), &[Task::Maximum(approximation)], &sets);
        Some(PintConfig {
            encoder: Arc::new(encoder.ok()?),
            observed: vec![Value::Utilisation],
            load: Some(LoadQuery::new(0, approximation)),
            law,
            computed,
            wire_bytes: bits.div_ceil(8),
            recorded: 0,
            plan: None,
        })
    }

    /// What a plan asks for; its first query for the largest utilisation is what HPCC-PINT steers on.
    pub fn of_plan(plan: Plan, law: Law, computed: Computed) -> Result<PintConfig, Refused> {
        let encoder = plan.encoder()?;
        let queries = &plan.queries().queries;
        let observed: Vec<Value> = queries.iter().map(|query| query.value).collect();
        let load = queries.iter().zip(encoder.tasks()).enumerate().find_map(|(number, (query, task))| {
            let wanted =
                query.value == Value::Utilisation && matches!(query.aggregation, Aggregation::Max(_));
            match task {
                Task::Maximum(approximation) if wanted => Some(LoadQuery::new(number, *approximation)),
                _ => None,
            }
        });
        let wire_bytes = plan.queries().bits.div_ceil(8);
        let plan = Some(Arc::new(plan));
        Ok(PintConfig {
            encoder: Arc::new(encoder),
            observed,
            load,
            law,
            computed,
            wire_bytes,
            recorded: 1 << 32,
            plan,
        })
    }

    /// Whether the digest of a packet is recorded where it arrives.
    #[inline]
    pub fn records(&self, seed: u64, packet: u64) -> bool {
        self.recorded > 0 && u64::from(Key::new(seed, RECORDS).word(packet).layer()) < self.recorded
    }

    /// Version of the plan; 0 without one.
    pub fn version(&self) -> u32 {
        self.plan.as_ref().map_or(0, |plan| plan.version())
    }

    /// The set of queries that a packet serves; [`u32::MAX`] for none.
    #[inline]
    pub fn set_of(&self, packet: u64) -> u32 {
        self.encoder.set(packet).map_or(u32::MAX, |set| set as u32)
    }

    /// The load that a digest brings, if its packet serves that query.
    #[inline]
    pub fn load_of(&self, carried: Carried) -> Option<f64> {
        let query = self.load.as_ref()?;
        let fields = self.encoder.fields_of(carried.set() as usize);
        let field = fields.iter().find(|field| usize::from(field.query) == query.number)?;
        Some(query.load(field.read(carried.digest())))
    }
}

/// The id of a packet, by which all switches and the receiver draw the same hashes.
#[inline]
pub fn packet_id(flow: u32, first_byte: u64) -> u64 {
    u64::from(flow) << 32 ^ first_byte
}

/// A random number for the sender's own use, different for every acknowledgement: its packet left at `sent`.
#[inline]
pub fn coin(seed: u64, flow: u32, sent: Time) -> u32 {
    Key::new(seed, COINS).word(u64::from(flow) << 40 ^ sent.0).layer()
}

/// The load of one port.
#[derive(Debug, Clone)]
enum PortLoad {
    Exact(Exact),
    Tabled(Tabled, Key),
    Recirculated(Recirculated),
}

/// What one switch keeps for PINT.
pub struct PintSwitch {
    config: Arc<PintConfig>,
    node: u32,
    /// By local port; empty if no query asks for it.
    loads: Vec<PortLoad>,
}

/// A data packet that leaves a switch, as far as PINT is concerned.
pub trait Leaving {
    fn now(&self) -> Time;
    /// Local ports.
    fn ingress(&self) -> u16;
    fn egress(&self) -> u16;
    /// Bytes in all queues of the port, this packet gone.
    fn queue_bytes(&self) -> u64;
    /// Bytes that the port has sent before it.
    fn sent_bytes(&self) -> u64;
    /// Bytes on the wire.
    fn size(&self) -> u32;
    /// Whether it was queued here; its stack keeps since when.
    fn waited(&self) -> bool;
}

impl PintSwitch {
    /// `ports`: the rates of the switch's ports. `horizon`: T, the longest base RTT.
    pub fn new(
        config: &Arc<PintConfig>,
        node: u32,
        ports: impl Iterator<Item = Rate>,
        horizon: Time,
        seed: u64,
    ) -> PintSwitch {
        let law = config.law;
        let load = |(local, rate): (usize, Rate)| match config.computed {
            Computed::Exact => PortLoad::Exact(Exact::new(law, rate.0, horizon.0)),
            Computed::Tables(tables) => PortLoad::Tabled(
                Tabled::new(law, tables, rate.0, horizon.0),
                Key::new(seed, u64::from(node) << 32 | local as u64),
            ),
            Computed::Recirculated { registers, delay } => {
                PortLoad::Recirculated(Recirculated::new(law, rate.0, horizon.0, registers, delay.0))
            }
        };
        let wanted = config.observed.contains(&Value::Utilisation);
        PintSwitch {
            config: config.clone(),
            node,
            loads: if wanted { ports.enumerate().map(load).collect() } else { Vec::new() },
        }
    }

    /// A data packet leaves: its digest is changed as the plan says.
    #[inline]
    pub fn data(&mut self, stacks: &mut IntStacks, stack: u32, leaving: &impl Leaving) {
        let load = match self.loads.get_mut(usize::from(leaving.egress())) {
            Some(load) => load.update(leaving.now().0, leaving.queue_bytes(), leaving.size()),
            None => Load::Share(0.0),
        };
        stacks.at_next_hop(stack, |carried| {
            let seen = Seen { config: &self.config, node: self.node, leaving, carried, load };
            let (set, hops) = (carried.set() as usize, carried.hops());
            self.config.encoder.encode_set(set, carried.digest(), carried.packet(), hops, seen).0
        });
    }

    /// Packets that went through the pipeline twice, and their bytes.
    pub fn recirculated(&self) -> (u64, u64) {
        let of_port = |load: &PortLoad| match load {
            PortLoad::Recirculated(load) => load.recirculated(),
            _ => (0, 0),
        };
        self.loads.iter().map(of_port).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// Any other packet of `size` bytes leaves with `queue_bytes` behind it: it is part of the port's load.
    #[inline]
    pub fn other(&mut self, egress: u16, now: Time, queue_bytes: u64, size: u32) {
        match self.loads.get_mut(usize::from(egress)) {
            Some(PortLoad::Exact(load)) => load.pass(now.0, queue_bytes, size),
            Some(load) => load.pass(now, queue_bytes, size),
            None => {}
        }
    }
}

/// What a switch sees of a data packet that leaves.
struct Seen<'a, L> {
    config: &'a PintConfig,
    node: u32,
    leaving: &'a L,
    carried: Carried<'a>,
    load: Load,
}

impl<L: Leaving> Observed for Seen<'_, L> {
    // Not inlined: the values that a packet does not serve would be computed ahead.
    #[inline(never)]
    fn value(&mut self, query: usize) -> Option<u64> {
        let leaving = self.leaving;
        Some(match self.config.observed.get(query)? {
            Value::SwitchId => u64::from(self.node),
            Value::IngressPort => u64::from(leaving.ingress()),
            Value::EgressPort => u64::from(leaving.egress()),
            Value::Timestamp => leaving.now().ns(),
            Value::HopLatency if leaving.waited() => (leaving.now() - self.carried.came()).ns(),
            Value::HopLatency => 0,
            Value::QueueBytes => leaving.queue_bytes(),
            Value::Utilisation => self.load.encoded(),
            Value::PortBytes => leaving.sent_bytes(),
        })
    }

    #[inline(always)]
    fn raise(
        &mut self,
        query: usize,
        values: &Approximation,
        now: u64,
        value: u64,
        coin: impl FnOnce() -> u32,
    ) -> u64 {
        let listed = self.config.load.as_ref().filter(|load| load.number == query);
        match listed.and_then(|load| load.places.get(value)) {
            Some(place) => place.raise(now, coin),
            None => values.raise(now, value, coin),
        }
    }
}

/// The load of a port.
#[derive(Clone, Copy)]
enum Load {
    Share(f64),
    /// In units of 2^-20.
    Fixed(u64),
}

impl Load {
    /// The number that is encoded for it.
    fn encoded(self) -> u64 {
        match self {
            Load::Share(load) => scaled(load),
            Load::Fixed(load) => scaled_integer(load),
        }
    }
}

impl PortLoad {
    /// The load with this data packet.
    #[inline]
    fn update(&mut self, now: u64, queue: u64, size: u32) -> Load {
        match self {
            PortLoad::Exact(load) => Load::Share(load.update(now, queue, size)),
            load => load.update_as_hardware(now, queue, size),
        }
    }

    #[inline(never)]
    fn update_as_hardware(&mut self, now: u64, queue: u64, size: u32) -> Load {
        match self {
            PortLoad::Exact(load) => Load::Share(load.update(now, queue, size)),
            PortLoad::Tabled(load, key) => Load::Fixed(load.update(now, queue, size, key.word(now))),
            PortLoad::Recirculated(load) => Load::Share(load.update(now, queue, size)),
        }
    }

    #[inline(never)]
    fn pass(&mut self, Time(now): Time, queue: u64, size: u32) {
        match self {
            PortLoad::Exact(load) => load.pass(now, queue, size),
            PortLoad::Tabled(load, key) => load.pass(now, queue, size, key.word(now)),
            PortLoad::Recirculated(load) => load.pass(now, queue, size),
        }
    }
}
