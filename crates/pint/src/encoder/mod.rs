//! What a switch does to a packet's digest: the compiled plan of several queries under one budget of bits.
//!
//! The packet's id chooses one of the plan's sets; each field of the set belongs to one query and is changed
//! by that query's task. The collector asks the same encoder which fields a packet carries and reads them.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §3.4 (sets), §4.1 to §4.3 (tasks), appendix A.4 (loops).

mod field;
mod program;
mod refused;
mod step;
mod task;

pub use field::{Field, Set, Slot, samples};
pub use refused::Refused;
pub use step::{Observed, block};
pub use task::{Blocks, Task};

use crate::code::{MAX_HOPS, survivor};
use crate::hash::{Key, Mixed, spread};
use program::Program;
use step::{Hop, Operation, Thresholds, task_step};

/// Queries that an encoder may have.
pub const MAX_QUERIES: usize = 16;
/// Sets that a plan may have.
pub const MAX_SETS: usize = 32;
/// Fields in all sets together.
pub const MAX_FIELDS: usize = 256;
/// Copies of a query in one slot.
pub const MAX_COPIES: u32 = 16;

/// A plan as switches run it and collectors read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoder {
    selector: Key,
    tasks: [Task; MAX_QUERIES],
    /// Of the queries that trace paths by a code that selects by thresholds.
    layers: [Option<Thresholds>; MAX_QUERIES],
    /// Beyond the last set there is one for all other packets, without fields.
    sets: [Program; MAX_SETS],
    fields: [Field; MAX_FIELDS],
    queries: usize,
    count: usize,
}

impl Encoder {
    /// `selector` is the key of q. Packets beyond the last set's share carry nothing.
    pub fn new(selector: Key, tasks: &[Task], sets: &[Set]) -> Result<Encoder, Refused> {
        if tasks.len() > MAX_QUERIES {
            return Err(Refused::TooManyQueries);
        }
        if sets.len() > MAX_SETS {
            return Err(Refused::TooManySets);
        }
        let operation = Operation::Other;
        let nothing = Field {
            key: Key(0),
            query: 0,
            copy: 0,
            offset: 0,
            bits: 1,
            copied: false,
            down: 63,
            mask: 1,
            operation,
        };
        let mut encoder = Encoder {
            selector,
            tasks: [Task::Count { threshold: u64::MAX }; MAX_QUERIES],
            layers: [None; MAX_QUERIES],
            sets: [Program::NOTHING; MAX_SETS],
            fields: [nothing; MAX_FIELDS],
            queries: tasks.len(),
            count: sets.len(),
        };
        encoder.tasks[..tasks.len()].copy_from_slice(tasks);
        encoder.layers.iter_mut().zip(tasks).for_each(|(layers, task)| *layers = Thresholds::of(task));
        let (mut place, mut before) = (0, 0);
        for (index, set) in sets.iter().enumerate() {
            if set.until < before || set.until > 1 << 16 {
                return Err(Refused::Shares { set: index });
            }
            before = set.until;
            let first = place;
            encoder.add_fields(index, set.slots, &mut place)?;
            encoder.sets[index] = Program::of(set.until, first, &encoder.fields[first..place]);
        }
        Ok(encoder)
    }

    fn add_fields(&mut self, set: usize, slots: &[Slot], place: &mut usize) -> Result<(), Refused> {
        let mut used = 0u64;
        if slots.iter().any(|slot| slot.query as usize >= self.queries) {
            return Err(Refused::UnknownQuery { set });
        }
        for rank in 0..=Operation::LAST_RANK {
            for slot in slots {
                let operation = Operation::of(&self.tasks[slot.query as usize]);
                if operation.rank() == rank {
                    self.add_slot(set, slot, operation, &mut used, place)?;
                }
            }
        }
        Ok(())
    }

    /// A query's copies; `used` are the bits of the set that are taken.
    fn add_slot(
        &mut self,
        set: usize,
        slot: &Slot,
        operation: Operation,
        used: &mut u64,
        place: &mut usize,
    ) -> Result<(), Refused> {
        let query = slot.query as usize;
        let fits =
            (1..=MAX_COPIES).contains(&slot.copies) && (1..=64).contains(&slot.bits) && slot.offset < 64;
        if !fits || slot.offset + slot.bits * slot.copies > 64 {
            return Err(Refused::Width { set });
        }
        if !self.tasks[query].fits(slot.bits) {
            return Err(Refused::Mismatch { set, query });
        }
        for copy in 0..slot.copies {
            let key = Key::new(slot.key.0, u64::from(copy));
            let offset = (slot.offset + copy * slot.bits) as u8;
            let mask = u64::MAX >> (64 - slot.bits) << offset;
            let (query, copy, bits) = (slot.query as u8, copy as u8, slot.bits as u8);
            let copied = u32::from(copy) + 1 < slot.copies;
            let down = 64 - bits - offset;
            let field = Field { key, query, copy, offset, bits, copied, down, mask, operation };
            if *used & mask != 0 {
                return Err(Refused::Overlap { set });
            }
            *used |= mask;
            *self.fields.get_mut(*place).ok_or(Refused::TooManyFields)? = field;
            *place += 1;
        }
        Ok(())
    }

    /// The tasks of the queries, in their order.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks[..self.queries]
    }

    /// Which set a packet belongs to; None if it carries nothing.
    #[inline]
    pub fn set(&self, packet: u64) -> Option<usize> {
        Some(self.set_of(Mixed::new(packet))).filter(|&set| set < self.count)
    }

    /// [`MAX_SETS`] or a place beyond the last set for a packet that carries nothing: there are no fields.
    #[inline]
    fn set_of(&self, packet: Mixed) -> usize {
        let place = u32::from(self.selector.word_of(packet).share());
        self.sets.iter().position(|set| place < set.until).unwrap_or(MAX_SETS)
    }

    /// The fields that a packet carries.
    #[inline]
    pub fn fields(&self, packet: u64) -> &[Field] {
        self.set(packet).map_or(&[], |set| self.fields_of(set))
    }

    /// The fields of a set, paths first and then samples; none if there is no such set.
    #[inline]
    pub fn fields_of(&self, set: usize) -> &[Field] {
        self.sets.get(set).map_or(&[], |set| &self.fields[usize::from(set.first)..usize::from(set.end)])
    }

    /// The digest after the `hop`-th hop (from 1, which starts from 0 whatever `digest` is; hops beyond
    /// [`MAX_HOPS`] count as that one). `values` has one number a query, in the queries' order; a query whose
    /// number is missing is left as it is.
    #[inline]
    pub fn encode(&self, digest: u64, packet: u64, hop: u32, values: &[u64]) -> u64 {
        self.encode_and_report(digest, packet, hop, values).0
    }

    /// As [`Encoder::encode`], and whether a query that looks for loops found the packet in one.
    #[inline]
    pub fn encode_and_report(&self, digest: u64, packet: u64, hop: u32, values: &[u64]) -> (u64, bool) {
        self.encode_from(digest, packet, hop, |query| values.get(query).copied())
    }

    /// As [`Encoder::encode_and_report`], where a query's value is only requested if the packet serves it.
    #[inline]
    pub fn encode_from(&self, digest: u64, packet: u64, hop: u32, observed: impl Observed) -> (u64, bool) {
        let mixed = Mixed::new(packet);
        let digest = if hop <= 1 { 0 } else { digest };
        let place = u32::from(self.selector.word_of(mixed).share());
        let Some(program) = self.sets.iter().find(|set| place < set.until) else { return (digest, false) };
        self.encode_mixed(program, digest, mixed, hop, observed)
    }

    /// As [`Encoder::encode_from`], for one who keeps which set the packet belongs to.
    #[inline]
    pub fn encode_set(
        &self,
        set: usize,
        digest: u64,
        packet: u64,
        hop: u32,
        observed: impl Observed,
    ) -> (u64, bool) {
        let digest = if hop <= 1 { 0 } else { digest };
        let Some(program) = self.sets.get(set) else { return (digest, false) };
        self.encode_mixed(program, digest, Mixed::new(packet), hop, observed)
    }

    /// The digest after several hops at once, from the `first`-th on, for one who keeps what they saw:
    /// `at(n)` is what the hop n after the first one saw. The same as hop by hop.
    #[inline]
    pub fn encode_along<O: Observed>(
        &self,
        set: usize,
        digest: u64,
        packet: u64,
        first: u32,
        hops: u32,
        at: impl Fn(u32) -> O,
    ) -> (u64, bool) {
        let packet = Mixed::new(packet);
        let (mut digest, mut looped) = (if first <= 1 { 0 } else { digest }, false);
        for field in self.fields_of(set) {
            let from_start = first <= 1 && hops <= MAX_HOPS;
            if let Some(bits) = from_start.then(|| field.after(packet, hops, &at)).flatten() {
                digest |= bits;
                continue;
            }
            if let Some(code) = from_start.then(|| self.written(field, packet, hops, &at)).flatten() {
                digest |= code << field.offset & field.mask;
                continue;
            }
            for n in 0..hops {
                let mut observed = at(n);
                let Some(value) = observed.value(usize::from(field.query)) else { continue };
                let hop = Hop::new(first + n);
                let (change, report) = self.other(field, hop, packet, value, digest, &mut observed);
                looped |= report;
                digest ^= change;
            }
        }
        (digest, looped)
    }

    /// What is in a field after the first `hops` hops, where it follows from the few that write; None if it
    /// does not, or they saw nothing.
    #[inline(never)]
    fn written<O: Observed>(
        &self,
        field: &Field,
        packet: Mixed,
        hops: u32,
        at: impl Fn(u32) -> O,
    ) -> Option<u64> {
        let query = usize::from(field.query) % MAX_QUERIES;
        let word = field.key.word_of(packet);
        match &self.tasks[query] {
            Task::Path { code, blocks } => {
                let mut digest = 0;
                for (part, mut writers) in (0..hops.div_ceil(64)).zip(code.writers(word, hops)) {
                    while writers != 0 {
                        let value = at(64 * part + writers.trailing_zeros()).value(query)?;
                        digest ^= block(*blocks, u32::from(field.bits), word, value);
                        writers &= writers - 1;
                    }
                }
                Some(digest)
            }
            Task::Sample(values) if hops > 0 => {
                let hop = survivor(word, hops);
                Some(values.encode_with(at(hop - 1).value(query)?, || word.coin(hop)))
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn encode_mixed(
        &self,
        program: &Program,
        came: u64,
        packet: Mixed,
        hop: u32,
        mut observed: impl Observed,
    ) -> (u64, bool) {
        // Fields share no bits: each is read from what came, so that none waits for the one before.
        let changes = program.step(Hop::new(hop), packet, came, &mut observed);
        if program.others < program.end {
            let (more, looped) = self.others(program, packet, hop, came, observed);
            return (came ^ changes ^ more, looped);
        }
        (came ^ changes, false)
    }

    /// What a hop changes of the fields that are not in their set's program. By value and out of line: what
    /// comes before then keeps nothing in memory for it.
    #[inline(never)]
    fn others(
        &self,
        program: &Program,
        packet: Mixed,
        hop: u32,
        came: u64,
        mut observed: impl Observed,
    ) -> (u64, bool) {
        let hop = Hop::new(hop);
        let fields = &self.fields[usize::from(program.others)..usize::from(program.end)];
        let (mut changes, mut looped) = (0, false);
        for field in fields {
            let Some(value) = observed.value(usize::from(field.query)) else { continue };
            match field.operation {
                Operation::Hybrid { start, until } => {
                    changes ^= hop.hybrid(start, until, field, packet, spread(value), came);
                }
                Operation::Sample(values) => changes ^= hop.sample(values, field, packet, value, came),
                Operation::Maximum => {
                    let (word, now) = (field.key.word_of(packet), field.read(came));
                    // There are as many queries as a field can name.
                    let query = usize::from(field.query) % MAX_QUERIES;
                    let Task::Maximum(values) = &self.tasks[query] else { continue };
                    let next = observed.raise(query, values, now, value, || hop.coin(word));
                    changes ^= (next ^ now) << field.offset & field.mask;
                }
                Operation::Other => {
                    let (change, report) = self.other(field, hop, packet, value, came, &mut observed);
                    looped |= report;
                    changes ^= change;
                }
            }
        }
        (changes, looped)
    }

    /// What a hop changes of the fields that the paper's plan does not have, or few packets: out of the way
    /// of the others.
    #[inline(never)]
    fn other(
        &self,
        field: &Field,
        hop: Hop,
        packet: Mixed,
        value: u64,
        came: u64,
        observed: &mut impl Observed,
    ) -> (u64, bool) {
        let query = usize::from(field.query) % MAX_QUERIES;
        let (word, now) = (field.key.word_of(packet), field.read(came));
        let (next, looped) = match (&self.layers[query], &self.tasks[query]) {
            (Some(layers), Task::Path { blocks, .. }) => {
                let block = block(*blocks, u32::from(field.bits), word, value);
                (layers.step(hop, word, block, now), false)
            }
            (_, task) => task_step(task, field, now, word, hop.number(), value, observed),
        };
        ((next ^ now) << field.offset & field.mask, looped)
    }
}

#[cfg(test)]
mod tests;
