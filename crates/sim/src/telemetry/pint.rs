//! PINT: every packet carries a digest of a few bits; switches change it, the receiver's side reads it.
//!
//! A switch keeps the load of each port (what HPCC steers on), and has the plan's encoder write what the packet's queries ask
//! for. The digest lies where INT would have its records; it is encoded where it is read ([`super::carried`]).
//!
//! Packet id: flow and first byte; a retransmission repeats it, as on a network where it is a hash of header fields. Hop number: how
//! many switches have written, which a real one takes from the TTL.
//!
//! Source: Ben Basat et al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020, §3 to §4.

use super::carried::{Carried, NO_SET, Note, ROOM};
use super::int::IntRecord;
use super::load::PortLoads;
use crate::counters::CounterSet;
use crate::units::{Rate, Time};
use pint::code::MAX_HOPS;
use pint::encoder::{Encoder, Field, MAX_QUERIES, MAX_SETS, Observed, Refused, Set, Slot, Task};
use pint::hash::Key;
use pint::places::Places;
use pint::plan::Plan;
use pint::query::{Aggregation, Value};
use pint::utilisation::{Law, Tables, scaled, scaled_integer};
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
    /// Whether a recorded digest comes with the switches that its packet passed.
    pub paths: bool,
    /// The plan that the encoder was made from, if it was made from one, and its version, else 0.
    pub plan: Option<Arc<Plan>>,
    pub version: u32,
    /// By set, what switches note of its packets.
    pub kept: Box<[Kept]>,
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

    /// A code after a hop with this load, scaled.
    #[inline(always)]
    fn raise(&self, now: u64, load: u64, coin: impl FnOnce() -> u32) -> u64 {
        match self.places.get(load) {
            Some(place) => place.raise(now, coin),
            None => self.approximation.raise(now, load, coin),
        }
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
        let (encoder, observed) = (encoder.ok()?, vec![Value::Utilisation]);
        Some(PintConfig {
            kept: Kept::of_sets(&encoder, &observed),
            encoder: Arc::new(encoder),
            observed,
            load: Some(LoadQuery::new(0, approximation)),
            law,
            computed,
            wire_bytes: bits.div_ceil(8),
            recorded: 0,
            paths: false,
            plan: None,
            version: 0,
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
        let version = plan.version();
        let plan = Some(Arc::new(plan));
        Ok(PintConfig {
            kept: Kept::of_sets(&encoder, &observed),
            encoder: Arc::new(encoder),
            observed,
            load,
            law,
            computed,
            wire_bytes,
            recorded: 1 << 32,
            paths: false,
            plan,
            version,
        })
    }

    /// Whether the digest of a packet is recorded where it arrives.
    #[inline]
    pub fn records(&self, seed: u64, packet: u64) -> bool {
        // All or none without a hash.
        match self.recorded {
            0 => false,
            1..=0xffff_ffff => u64::from(Key::new(seed, RECORDS).word(packet).layer()) < self.recorded,
            _ => true,
        }
    }

    /// The set of queries that a packet serves; [`NO_SET`] for none.
    #[inline]
    pub fn set_of(&self, packet: u64) -> u32 {
        self.encoder.set(packet).map_or(NO_SET, |set| set as u32)
    }

    /// The digest that a packet carries; what was noted is encoded.
    #[inline(never)]
    pub fn digest(&self, carried: &mut Carried) -> u64 {
        let notes = carried.notes();
        // Nothing is noted of a packet without a set.
        let Some(kept) = self.kept.get(carried.set() as usize).filter(|_| !notes.is_empty()) else {
            return carried.encoded();
        };
        let each = kept.len().max(1);
        let hops = (notes.len() / each) as u32;
        let at = |n: u32| {
            let from = n as usize * each;
            Seen { config: self, kept, notes: notes.get(from..from + each).unwrap_or(&[]) }
        };
        let (set, first) = (carried.set() as usize, carried.hops() - hops + 1);
        let (digest, looped) =
            self.encoder.encode_along(set, carried.encoded(), carried.packet(), first, hops, at);
        carried.set_encoded(digest, looped);
        digest
    }

    /// The switches that have noted something of a packet, in order; then, and where one's notes are encoded already, `u32::MAX`.
    pub fn path(&self, carried: &Carried) -> [u32; ROOM] {
        let mut path = [u32::MAX; ROOM];
        let each = self.kept.get(carried.set() as usize).map_or(1, |kept| kept.len().max(1));
        let notes = carried.notes();
        if notes.len() == carried.hops() as usize * each {
            for (place, note) in path.iter_mut().zip(notes.iter().step_by(each)) {
                *place = Note::of(note).node;
            }
        }
        path
    }

    /// The load that a digest brings, if its packet serves that query. Of the digest only this field is encoded.
    #[inline]
    pub fn load_of(&self, carried: &Carried) -> Option<f64> {
        let query = self.load.as_ref()?;
        let kept = self.kept.get(carried.set() as usize)?;
        let fields = self.encoder.fields_of(carried.set() as usize);
        let field = fields.iter().find(|field| usize::from(field.query) == query.number)?;
        let Source::Load(place) = kept.sources[query.number % MAX_QUERIES] else { return None };
        let (notes, each) = (carried.notes(), kept.len().max(1));
        let before = carried.hops() - (notes.len() / each) as u32;
        let (mut code, word) = (field.read(carried.encoded()), field.key.word(carried.packet()));
        for (hop, note) in (before + 1..).zip(notes.iter().skip(usize::from(place)).step_by(each)) {
            code = query.raise(code, self.scaled(Note::of(note).value), || word.coin(hop.min(MAX_HOPS)));
        }
        Some(query.load(code))
    }

    /// The number that is encoded for a load that was noted.
    #[inline]
    fn scaled(&self, load: u64) -> u64 {
        match self.computed {
            Computed::Tables(_) => scaled_integer(load),
            _ => scaled(f64::from_bits(load)),
        }
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

/// Values that a hop notes of one packet at most.
const VALUES: usize = 5;

/// What a switch notes of the packets of one set: the values, besides its own id and the ports, that the set's queries are about, each
/// once. Where there are none one is noted all the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    values: [Value; VALUES],
    count: usize,
    /// By query.
    sources: [Source; MAX_QUERIES],
}

/// Where a query's value is among a hop's notes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    Node,
    Ingress,
    Egress,
    /// Of the note with this number.
    Value(u8),
    /// The same, and it is a load.
    Load(u8),
}

impl Kept {
    fn of_sets(encoder: &Encoder, observed: &[Value]) -> Box<[Kept]> {
        (0..MAX_SETS).map(|set| Kept::of(encoder.fields_of(set), observed)).collect()
    }

    /// Of a set; nothing of one without queries.
    fn of(fields: &[Field], observed: &[Value]) -> Kept {
        let mut kept =
            Kept { values: [Value::SwitchId; VALUES], count: 0, sources: [Source::Node; MAX_QUERIES] };
        for query in fields.iter().map(|field| usize::from(field.query)) {
            let Some(value) = observed.get(query) else { continue };
            kept.sources[query] = match value {
                Value::SwitchId => Source::Node,
                Value::IngressPort => Source::Ingress,
                Value::EgressPort => Source::Egress,
                Value::Utilisation => Source::Load(kept.place(*value)),
                _ => Source::Value(kept.place(*value)),
            };
        }
        if !fields.is_empty() {
            kept.count = kept.count.max(1);
        }
        kept
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.count.min(VALUES)
    }

    /// Which of the notes has a value, from now on.
    fn place(&mut self, value: Value) -> u8 {
        let place = self.values[..self.len()].iter().position(|noted| *noted == value);
        let place = place.unwrap_or_else(|| {
            self.values[self.count] = value;
            self.count += 1;
            self.count - 1
        });
        place as u8
    }
}

/// What one switch keeps for PINT.
pub struct PintSwitch {
    config: Arc<PintConfig>,
    node: u32,
    loads: PortLoads,
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
    /// Whether it was queued here; it carries since when.
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
        let loads = if config.observed.contains(&Value::Utilisation) {
            let key = |local: usize| Key::new(seed, u64::from(node) << 32 | local as u64);
            PortLoads::new(config.law, config.computed, ports, horizon, key)
        } else {
            PortLoads::None
        };
        PintSwitch { config: config.clone(), node, loads }
    }

    /// A data packet leaves: what its queries ask for is noted.
    #[inline(always)]
    pub fn data(&mut self, carried: &mut Carried, leaving: &impl Leaving) {
        let (now, queue) = (leaving.now(), leaving.queue_bytes());
        let load = self.loads.data(leaving.egress(), now, queue, leaving.size());
        let Some(kept) = self.config.kept.get(carried.set() as usize) else { return carried.count_hop() };
        if !carried.has_room(kept.len()) {
            self.config.digest(carried);
        }
        carried.count_hop();
        for value in &kept.values[..kept.len()] {
            let value = match value {
                Value::HopLatency if leaving.waited() => (now - carried.came()).ns(),
                Value::HopLatency => 0,
                Value::Utilisation => load,
                Value::QueueBytes => queue,
                Value::Timestamp => now.ns(),
                Value::PortBytes => leaving.sent_bytes(),
                Value::SwitchId | Value::IngressPort | Value::EgressPort => 0,
            };
            let (ingress, egress) = (leaving.ingress(), leaving.egress());
            carried.note(Note { node: self.node, ingress, egress, value });
        }
    }

    /// Adds what it has counted until now.
    pub fn count(&self, counters: &mut CounterSet) {
        self.loads.count(counters);
    }

    /// The rate of a local port changes.
    pub fn set_rate(&mut self, port: u16, rate: Rate) {
        self.loads.set_rate(port, rate);
    }

    /// Any other packet of `size` bytes leaves with `queue_bytes` behind it: it is part of the port's load.
    #[inline(always)]
    pub fn other(&mut self, egress: u16, now: Time, queue_bytes: u64, size: u32) {
        self.loads.other(egress, now, queue_bytes, size);
    }
}

/// What one hop has noted of a packet.
struct Seen<'a> {
    config: &'a PintConfig,
    kept: &'a Kept,
    notes: &'a [IntRecord],
}

impl Observed for Seen<'_> {
    #[inline(always)]
    fn value(&mut self, query: usize) -> Option<u64> {
        let note = |at: u8| Some(Note::of(self.notes.get(usize::from(at))?));
        Some(match *self.kept.sources.get(query)? {
            Source::Value(at) => note(at)?.value,
            Source::Load(at) => self.config.scaled(note(at)?.value),
            Source::Node => u64::from(note(0)?.node),
            Source::Ingress => u64::from(note(0)?.ingress),
            Source::Egress => u64::from(note(0)?.egress),
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
        match self.config.load.as_ref().filter(|load| load.number == query) {
            Some(load) => load.raise(now, value, coin),
            None => values.raise(now, value, coin),
        }
    }
}
