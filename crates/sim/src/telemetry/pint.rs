//! PINT: every packet carries a digest of a few bits, which switches change and the receiver's side decodes.
//!
//! A switch computes the load of each port (the input of HPCC), and the plan's encoder writes what the packet's
//! queries require. The digest uses the places where INT has its records; it is encoded when it is read
//! ([`super::packet_digest`]).
//!
//! Packet id: flow and first byte. A retransmission has the same id, as on a network in which it is a hash of
//! header fields. Hop number: the number of switches that have written, which a real switch takes from the
//! TTL.
//!
//! Source: Ben Basat et al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020, §3 to §4.

use super::int::IntRecord;
use super::load::PortLoads;
use super::packet_digest::{MAX_NOTES, NO_SET, Note, PacketDigest};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
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

pub const DOC: SchemeDoc = SchemeDoc {
    name: "pint",
    title: "packets carry a digest of a few bits that switches update by a plan of queries (PINT)",
    source: "Ben Basat et al., \"PINT: Probabilistic In-band Network Telemetry\", SIGCOMM 2020",
    validation: "Packets until a path is known and errors of latencies against the paper's figures (experiments/pint).",
    counters: &[&super::load::RECIRCULATED],
    ..SchemeDoc::NONE
};

/// How a switch computes the load of its ports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Computed {
    Exact,
    /// Integers and tables of logarithms.
    Tables(Tables),
    /// Rounds of `registers` packets; the last packet of each round passes the pipeline twice, and its value
    /// is stored after `delay`.
    Recirculated {
        registers: u32,
        delay: Time,
    },
}

/// The parameters of PINT in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct PintConfig {
    pub encoder: Arc<Encoder>,
    /// The observed value of each of the encoder's queries.
    pub observed: Vec<Value>,
    /// The query for the load of the path's busiest port, if there is one.
    pub load: Option<LoadQuery>,
    pub law: Law,
    pub computed: Computed,
    /// Size of the digest on the wire in bytes.
    pub wire_bytes: u32,
    /// Share of the packets whose digests receivers record, in units of 2^-32.
    pub recorded: u64,
    /// Whether a recorded digest includes the switches that its packet passed.
    pub paths: bool,
    /// The plan from which the encoder was made, if any, and its version, otherwise 0.
    pub plan: Option<Arc<Plan>>,
    pub version: u32,
    /// By set: what switches note for its packets.
    pub set_notes: Box<[SetNotes]>,
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
pub const LOAD_UNITS: f64 = 512.0;
/// Entries of a query's tables.
const TABLE_ENTRIES: u64 = 1024;

impl LoadQuery {
    /// The query with index `number`, which encodes the load with this approximation.
    pub fn new(number: usize, approximation: Approximation) -> LoadQuery {
        let codes = 0..=approximation.limit().min(TABLE_ENTRIES);
        let loads = codes.map(|code| approximation.decode(code) / LOAD_UNITS).collect();
        LoadQuery { number, approximation, places: Places::of(&approximation, TABLE_ENTRIES), loads }
    }

    /// The load of the largest code: larger ones are decoded as this one.
    pub fn largest(&self) -> f64 {
        self.approximation.largest() / LOAD_UNITS
    }

    /// The code after a hop with this load, scaled.
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
        listed.copied().unwrap_or_else(|| self.approximation.decode(code) / LOAD_UNITS)
    }
}

/// Keys for the simulator's own purposes, in addition to those of the plan.
const COINS: u64 = u64::MAX;
const RECORDS: u64 = u64::MAX - 1;

impl PintConfig {
    /// One query: the load of the busiest port in `bits` bits on a geometric grid with this base, on `share`
    /// (in units of 2^-16) of the packets. None if the grid is invalid: the base must be above 1.00017 and at
    /// most 16, the bits at most 32.
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
            set_notes: SetNotes::of_sets(&encoder, &observed),
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

    /// The queries of a plan. HPCC-PINT uses its first query for the largest utilisation.
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
            set_notes: SetNotes::of_sets(&encoder, &observed),
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

    /// Whether the digest of a packet is recorded at its receiver.
    #[inline]
    pub fn records(&self, seed: u64, packet: u64) -> bool {
        // With all packets or none no hash is needed.
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

    /// Returns the digest that a packet carries, after encoding its notes.
    #[inline(never)]
    pub fn digest(&self, packet_digest: &mut PacketDigest) -> u64 {
        let notes = packet_digest.notes();
        // Packets without a set have no notes.
        let Some(set_notes) = self.set_notes.get(packet_digest.set() as usize).filter(|_| !notes.is_empty())
        else {
            return packet_digest.encoded();
        };
        let each = set_notes.len().max(1);
        let hops = (notes.len() / each) as u32;
        let at = |n: u32| {
            let from = n as usize * each;
            HopNotes { config: self, set_notes, notes: notes.get(from..from + each).unwrap_or(&[]) }
        };
        let (set, first) = (packet_digest.set() as usize, packet_digest.hops() - hops + 1);
        let (digest, looped) =
            self.encoder.encode_along(set, packet_digest.encoded(), packet_digest.packet(), first, hops, at);
        packet_digest.set_encoded(digest, looped);
        digest
    }

    /// The switches from which a packet has notes, in order; for the rest, and if notes have been encoded
    /// already, `u32::MAX`.
    pub fn path(&self, packet_digest: &PacketDigest) -> [u32; MAX_NOTES] {
        let mut path = [u32::MAX; MAX_NOTES];
        let each =
            self.set_notes.get(packet_digest.set() as usize).map_or(1, |set_notes| set_notes.len().max(1));
        let notes = packet_digest.notes();
        if notes.len() == packet_digest.hops() as usize * each {
            for (place, note) in path.iter_mut().zip(notes.iter().step_by(each)) {
                *place = Note::of(note).node;
            }
        }
        path
    }

    /// The load in a digest, if its packet serves that query. Only this field of the digest is encoded.
    #[inline]
    pub fn load_of(&self, packet_digest: &PacketDigest) -> Option<f64> {
        let query = self.load.as_ref()?;
        let set_notes = self.set_notes.get(packet_digest.set() as usize)?;
        let fields = self.encoder.fields_of(packet_digest.set() as usize);
        let field = fields.iter().find(|field| usize::from(field.query) == query.number)?;
        let Source::Load(place) = set_notes.sources[query.number % MAX_QUERIES] else { return None };
        let (notes, each) = (packet_digest.notes(), set_notes.len().max(1));
        let before = packet_digest.hops() - (notes.len() / each) as u32;
        let (mut code, word) = (field.read(packet_digest.encoded()), field.key.word(packet_digest.packet()));
        for (hop, note) in (before + 1..).zip(notes.iter().skip(usize::from(place)).step_by(each)) {
            code = query.raise(code, self.scaled(Note::of(note).value), || word.coin(hop.min(MAX_HOPS)));
        }
        Some(query.load(code))
    }

    /// The number that is encoded for a noted load.
    #[inline]
    fn scaled(&self, load: u64) -> u64 {
        match self.computed {
            Computed::Tables(_) => scaled_integer(load),
            _ => scaled(f64::from_bits(load)),
        }
    }
}

/// The id of a packet, from which all switches and the receiver draw the same hashes.
#[inline]
pub fn packet_id(flow: u32, first_byte: u64) -> u64 {
    u64::from(flow) << 32 ^ first_byte
}

/// A random number for the sender's own use, different for every acknowledgement. `sent`: the time at which
/// its packet left.
#[inline]
pub fn coin(seed: u64, flow: u32, sent: Time) -> u32 {
    Key::new(seed, COINS).word(u64::from(flow) << 40 ^ sent.0).layer()
}

/// Maximum number of values that a hop notes for one packet.
const VALUES: usize = 5;

/// What a switch notes for the packets of one set, in addition to its own id and the ports: the values of the
/// set's queries, each once. Without any value there is still one note.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SetNotes {
    values: [Value; VALUES],
    count: usize,
    /// By query.
    sources: [Source; MAX_QUERIES],
}

/// Where a query's value is among the notes of a hop.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    Node,
    Ingress,
    Egress,
    /// The note with this index.
    Value(u8),
    /// The note with this index, which is a load.
    Load(u8),
}

impl SetNotes {
    fn of_sets(encoder: &Encoder, observed: &[Value]) -> Box<[SetNotes]> {
        (0..MAX_SETS).map(|set| SetNotes::of(encoder.fields_of(set), observed)).collect()
    }

    /// The notes for a set; none without queries.
    fn of(fields: &[Field], observed: &[Value]) -> SetNotes {
        let mut set_notes =
            SetNotes { values: [Value::SwitchId; VALUES], count: 0, sources: [Source::Node; MAX_QUERIES] };
        for query in fields.iter().map(|field| usize::from(field.query)) {
            let Some(value) = observed.get(query) else { continue };
            set_notes.sources[query] = match value {
                Value::SwitchId => Source::Node,
                Value::IngressPort => Source::Ingress,
                Value::EgressPort => Source::Egress,
                Value::Utilisation => Source::Load(set_notes.place(*value)),
                _ => Source::Value(set_notes.place(*value)),
            };
        }
        if !fields.is_empty() {
            set_notes.count = set_notes.count.max(1);
        }
        set_notes
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.count.min(VALUES)
    }

    /// The index of the note for a value, which is added if necessary.
    fn place(&mut self, value: Value) -> u8 {
        let place = self.values[..self.len()].iter().position(|note_count| *note_count == value);
        let place = place.unwrap_or_else(|| {
            self.values[self.count] = value;
            self.count += 1;
            self.count - 1
        });
        place as u8
    }
}

/// The state of one switch for PINT.
pub struct PintSwitch {
    config: Arc<PintConfig>,
    node: u32,
    loads: PortLoads,
}

/// A data packet that leaves a switch.
pub trait DepartingPacket {
    fn now(&self) -> Time;
    /// Local ports.
    fn ingress(&self) -> u16;
    fn egress(&self) -> u16;
    /// Bytes in all queues of the port, without this packet.
    fn queue_bytes(&self) -> u64;
    /// Bytes that the port has sent before this packet.
    fn sent_bytes(&self) -> u64;
    /// Size on the wire in bytes.
    fn size(&self) -> u32;
    /// Whether the packet was queued here; then it carries its arrival time.
    fn was_queued(&self) -> bool;
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

    /// A data packet leaves: takes the notes that its queries require.
    #[inline(always)]
    pub fn data(&mut self, packet_digest: &mut PacketDigest, leaving: &impl DepartingPacket) {
        let (now, queue) = (leaving.now(), leaving.queue_bytes());
        let load = self.loads.data(leaving.egress(), now, queue, leaving.size());
        let Some(set_notes) = self.config.set_notes.get(packet_digest.set() as usize) else {
            return packet_digest.count_hop();
        };
        if !packet_digest.has_room_for(set_notes.len()) {
            self.config.digest(packet_digest);
        }
        packet_digest.count_hop();
        for value in &set_notes.values[..set_notes.len()] {
            let value = match value {
                Value::HopLatency if leaving.was_queued() => (now - packet_digest.arrival()).ns(),
                Value::HopLatency => 0,
                Value::Utilisation => load,
                Value::QueueBytes => queue,
                Value::Timestamp => now.ns(),
                Value::PortBytes => leaving.sent_bytes(),
                Value::SwitchId | Value::IngressPort | Value::EgressPort => 0,
            };
            let (ingress, egress) = (leaving.ingress(), leaving.egress());
            packet_digest.note(Note { node: self.node, ingress, egress, value });
        }
    }

    /// Adds what it has counted until now.
    pub fn count(&self, counters: &mut CounterSet) {
        self.loads.count(counters);
    }

    /// Changes the rate of a local port.
    pub fn set_rate(&mut self, port: u16, rate: Rate) {
        self.loads.set_rate(port, rate);
    }

    /// Another packet of `size` bytes leaves, with `queue_bytes` left: it is part of the port's load.
    #[inline(always)]
    pub fn other(&mut self, egress: u16, now: Time, queue_bytes: u64, size: u32) {
        self.loads.other(egress, now, queue_bytes, size);
    }
}

/// The notes of one hop about a packet.
struct HopNotes<'a> {
    config: &'a PintConfig,
    set_notes: &'a SetNotes,
    notes: &'a [IntRecord],
}

impl Observed for HopNotes<'_> {
    #[inline(always)]
    fn value(&mut self, query: usize) -> Option<u64> {
        let note = |at: u8| Some(Note::of(self.notes.get(usize::from(at))?));
        Some(match *self.set_notes.sources.get(query)? {
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
