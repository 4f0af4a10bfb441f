//! From a model to the operations of every rank.

use super::super::graph::listed::{Group, Instance, Listed, Op, RankList, SendEnds};
use super::super::schedule::linear::LinearParameters;
use super::super::schedule::{Algorithm, Asked, Kind, Law, ring::RingParameters};
use super::super::spec::WorkloadError;
use super::model::Model;
use super::{Sharding, TrainingSpec};
use crate::engine::random::RandomStream;
use crate::units::{Rate, Time};
use rustc_hash::FxHashMap;

/// The stream of computations, and the tags of messages between stages.
const STREAM: u16 = 0;
const FORWARD: u32 = 0;
const BACKWARD: u32 = 1;

/// Largest number of operations of all ranks: each is held, with about 60 bytes.
const MAX_OPS: u64 = 20_000_000;

/// The groups of a rank.
#[derive(Debug, Clone, Copy)]
enum Among {
    /// Those that share a layer.
    Tensor,
    /// Those that share the experts of a layer.
    Expert,
    /// Those that have the same parameters, apart from experts.
    Replicas,
    /// Those that have the same experts.
    ExpertReplicas,
}

/// Where a rank is.
#[derive(Debug, Clone, Copy)]
struct At {
    tensor: u32,
    expert: u32,
    data: u32,
    stage: u32,
}

/// What a rank computes next: a micro-batch, through one of its groups of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub forward: bool,
    /// Of the rank's groups of layers.
    pub chunk: u32,
    pub batch: u32,
}

/// The turns of a stage in a step: forward until the later stages are full, then one forward and one backward. With several
/// groups of layers a stage (Megatron's interleaved schedule), as many micro-batches as there are stages go through one group
/// before the next.
pub(super) fn turns(stages: u32, stage: u32, chunks: u32, batches: u32) -> impl Iterator<Item = Turn> {
    let total = batches * chunks;
    let later = stages - stage - 1;
    let warm = if chunks > 1 { 2 * later + (chunks - 1) * stages } else { later }.min(total);
    let turn = move |number: u32, forward: bool| {
        if chunks == 1 {
            return Turn { forward, chunk: 0, batch: number };
        }
        let (round, within) = (number / (stages * chunks), number % (stages * chunks));
        let chunk = within / stages;
        let chunk = if forward { chunk } else { chunks - 1 - chunk };
        Turn { forward, chunk, batch: round * stages + within % stages }
    };
    let first = (0..warm).map(move |number| turn(number, true));
    first.chain((0..total).flat_map(move |number| {
        let ahead = (number + warm < total).then(|| turn(number + warm, true));
        ahead.into_iter().chain([turn(number, false)])
    }))
}

/// A micro-batch in a group of layers, of which the stages have one each, in turn, until there are none left.
#[derive(Debug, Clone, Copy)]
struct Part {
    group: u32,
    before: Option<Neighbour>,
    next: Option<Neighbour>,
    /// The first of the tags of its messages.
    tag: u32,
    chunk: u32,
}

/// The group of layers before or after another.
#[derive(Debug, Clone, Copy)]
struct Neighbour {
    rank: u32,
    /// Of that rank's groups.
    chunk: u32,
}

/// Ranks are numbered tensor first, then expert, data and stage.
struct Layout {
    tensor: u32,
    expert: u32,
    data: u32,
    stages: u32,
}

impl Layout {
    fn rank(&self, at: At) -> u32 {
        ((at.stage * self.data + at.data) * self.expert + at.expert) * self.tensor + at.tensor
    }

    fn at(&self, rank: u32) -> At {
        let (tensor, rest) = (rank % self.tensor, rank / self.tensor);
        let (expert, rest) = (rest % self.expert, rest / self.expert);
        At { tensor, expert, data: rest % self.data, stage: rest / self.data }
    }

    /// The first rank of a group, and the number of its ranks.
    fn first_of(&self, among: Among, at: At) -> (u32, u32) {
        let (first, ranks) = match among {
            Among::Tensor => (At { tensor: 0, ..at }, self.tensor),
            Among::Expert => (At { expert: 0, ..at }, self.expert),
            Among::ExpertReplicas => (At { data: 0, ..at }, self.data),
            Among::Replicas => (At { data: 0, expert: 0, ..at }, self.data * self.expert),
        };
        (self.rank(first), ranks)
    }

    fn group(&self, among: Among, at: At) -> Vec<u32> {
        let (tensor, expert, data) = (0..self.tensor, 0..self.expert, 0..self.data);
        match among {
            Among::Tensor => tensor.map(|tensor| self.rank(At { tensor, ..at })).collect(),
            Among::Expert => expert.map(|expert| self.rank(At { expert, ..at })).collect(),
            Among::ExpertReplicas => data.map(|data| self.rank(At { data, ..at })).collect(),
            Among::Replicas => data
                .flat_map(|data| expert.clone().map(move |expert| (data, expert)))
                .map(|(data, expert)| self.rank(At { data, expert, ..at }))
                .collect(),
        }
    }
}

/// What is made of all ranks.
struct Made<'s> {
    spec: &'s TrainingSpec,
    layout: Layout,
    /// Of a rank's NIC.
    rate: Rate,
    groups: Vec<Group>,
    /// The group of a kind that begins with a rank.
    known: FxHashMap<(u8, u32), u32>,
    instances: Vec<Instance>,
    /// By group and the number of its call.
    calls: FxHashMap<(u32, u32), u32>,
    laws: FxHashMap<(u8, u32, u64), Law>,
}

/// The operations of a rank, as they are written.
struct Program {
    ops: Vec<Op>,
    ends: Vec<(u32, u32)>,
    /// What the next computation waits for.
    last: Vec<u32>,
    /// The last collective operation of gradients: they follow each other.
    reduced: Vec<u32>,
    /// The last that gathered parameters, and what was to be computed before the layer before began.
    gathered: Vec<u32>,
    layer_before: Vec<u32>,
    /// What everything of this step waits for.
    began: Vec<u32>,
    calls: FxHashMap<u32, u32>,
    /// Gradients, apart from experts' and of experts, that wait for a full bucket.
    pending: [u64; 2],
    slow: f64,
}

impl Program {
    fn push(&mut self, op: Op, after: &[u32]) -> u32 {
        let number = self.ops.len() as u32;
        self.ops.push(op);
        self.ends.extend(after.iter().map(|&before| (before, number)));
        number
    }

    /// Appends to what the rank computes.
    fn then(&mut self, op: Op) {
        let after = std::mem::take(&mut self.last);
        self.last = vec![self.push(op, &after)];
    }
}

/// The operations of all ranks of a job with this number of replicas.
pub fn lower(
    spec: &TrainingSpec,
    data: u32,
    rate: Rate,
    random: &mut RandomStream,
) -> Result<Listed, WorkloadError> {
    let Model { tensor, expert, pipeline, layers, micro_batches, .. } = spec.model;
    let layout = Layout { tensor, expert, data, stages: pipeline };
    let ranks = u64::from(tensor) * u64::from(expert) * u64::from(data) * u64::from(pipeline);
    let groups = layers.div_ceil(pipeline) * 4 + spec.model.virtual_stages.saturating_mul(4);
    let each = u64::from(groups) * u64::from(micro_batches) * u64::from(spec.steps);
    if ranks.saturating_mul(each) > MAX_OPS {
        let message = format!(
            "{ranks} ranks with about {each} operations each exceed the limit of {MAX_OPS} operations: take fewer steps, \
             layers or micro-batches"
        );
        return Err(WorkloadError::new("steps", message));
    }
    let (of_layer, of_experts) = spec.model.gradients();
    let gradients =
        (of_layer.saturating_add(of_experts)).saturating_mul(u64::from(layers.div_ceil(pipeline)));
    let times = match spec.sharding {
        Sharding::None => 1,
        Sharding::Zero1 => 2,
        Sharding::Zero3 => 3 * u64::from(micro_batches),
    };
    let buckets = gradients.saturating_add(spec.model.vocabulary_gradients()) / spec.bucket.0.max(1);
    let buckets = buckets.saturating_mul(times);
    if ranks.saturating_mul(buckets).saturating_mul(u64::from(spec.steps)) > MAX_OPS {
        let message = format!(
            "{ranks} ranks with about {buckets} buckets of gradients a step exceed the limit of {MAX_OPS} operations: take a larger bucket"
        );
        return Err(WorkloadError::new("bucket", message));
    }
    let mut made = Made {
        spec,
        layout,
        rate,
        groups: Vec::new(),
        known: FxHashMap::default(),
        instances: Vec::new(),
        calls: FxHashMap::default(),
        laws: FxHashMap::default(),
    };
    let lists: Result<Vec<RankList>, WorkloadError> =
        (0..ranks as u32).map(|rank| made.list(rank, random)).collect();
    let listed = Listed::new(lists?, made.groups, made.instances, SendEnds::Posted, "training");
    let listed = listed.map_err(|message| WorkloadError::new("bucket", message))?;
    Ok(listed.with_wholes(spec.steps))
}

impl Made<'_> {
    fn list(&mut self, rank: u32, random: &mut RandomStream) -> Result<RankList, WorkloadError> {
        let (spec, at) = (self.spec, self.layout.at(rank));
        let slow = if spec.slow_ranks.contains(&rank) { spec.slow_factor } else { 1.0 };
        let mut program = Program {
            ops: Vec::new(),
            ends: Vec::new(),
            last: Vec::new(),
            reduced: Vec::new(),
            gathered: Vec::new(),
            layer_before: Vec::new(),
            began: Vec::new(),
            calls: FxHashMap::default(),
            pending: [0; 2],
            slow,
        };
        let (batches, chunks) = (spec.model.micro_batches, spec.model.virtual_stages);
        for step in 0..spec.steps {
            for turn in turns(self.layout.stages, at.stage, chunks, batches) {
                let part = self.part(at, turn.chunk, step * batches + turn.batch);
                match turn.forward {
                    true => self.forward(&mut program, at, part, random)?,
                    false => self.backward(&mut program, at, part, turn.batch + 1 == batches, random)?,
                }
            }
            self.ends_step(&mut program, at)?;
            if step + 1 < spec.steps {
                let all = program.began.clone();
                program.push(Op::StepEnd, &all);
            }
        }
        let mut ends = program.ends;
        ends.sort_unstable();
        ends.dedup();
        let places = (0..program.ops.len() as u64).collect();
        Ok(RankList::new(program.ops, places, &ends, &[]))
    }

    fn compute(&self, program: &mut Program, time: Time, random: &mut RandomStream) {
        if time == Time::ZERO {
            return;
        }
        let sigma = self.spec.jitter;
        let mut factor = program.slow;
        if sigma > 0.0 {
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.uniform()));
            let normal = radius * libm::cos(std::f64::consts::TAU * random.uniform());
            factor *= libm::exp(sigma * normal - sigma * sigma / 2.0);
        }
        let time = match factor == 1.0 {
            true => time,
            false => Time((time.0 as f64 * factor).round().clamp(1.0, 4e18) as u64),
        };
        program.then(Op::Compute { time, stream: STREAM });
    }

    /// The operation by which a rank takes part in the next call of its group; none: it is alone.
    fn call(
        &mut self,
        program: &mut Program,
        (among, at): (Among, At),
        kind: Kind,
        bytes: u64,
    ) -> Result<Option<Op>, WorkloadError> {
        let (first, n) = self.layout.first_of(among, at);
        if n < 2 {
            return Ok(None);
        }
        let count = self.groups.len() as u32;
        let group = *self.known.entry((among as u8, first)).or_insert(count);
        if group == count {
            self.groups.push(Group::new(self.layout.group(among, at)));
        }
        let call = program.calls.entry(group).or_default();
        *call += 1;
        let key = (group, *call);
        if let Some(&instance) = self.calls.get(&key) {
            return Ok(Some(Op::Collective { instance }));
        }
        let instance = self.instances.len() as u32;
        let (asked, algorithm) = self.asked(among, kind, bytes, n);
        let law = match self.laws.get(&(among as u8 * 16 + kind as u8, n, asked.bytes)) {
            Some(law) => law.clone(),
            None => {
                let phases = algorithm.phases(&asked).map_err(|error| match error.key {
                    "bytes" => WorkloadError::new("bucket", error.message),
                    _ => error,
                });
                let law = phases?.remove(0).only();
                self.laws.insert((among as u8 * 16 + kind as u8, n, asked.bytes), law.clone());
                law
            }
        };
        self.instances.push(Instance { law, kind, bytes: asked.bytes, group });
        self.calls.insert(key, instance);
        Ok(Some(Op::Collective { instance }))
    }

    /// An operation of a group, and its algorithm. It has at least a byte for every message of a step.
    fn asked(&self, among: Among, kind: Kind, bytes: u64, ranks: u32) -> (Asked, Algorithm) {
        let spec = self.spec;
        let (algorithm, channels, chunk) = match (among, kind) {
            (_, Kind::AllToAll) => (Algorithm::Linear(LinearParameters), 1, None),
            (Among::Tensor, _) => (Algorithm::Ring(RingParameters), 1, None),
            _ => {
                let algorithm = match spec.algorithm.can(kind) {
                    true => spec.algorithm.clone(),
                    false => Algorithm::Ring(RingParameters),
                };
                (algorithm, spec.channels, spec.chunk.map(|chunk| chunk.0))
            }
        };
        let bytes = bytes.max(u64::from(ranks) * u64::from(channels) * 2);
        (Asked { kind, ranks, bytes, channels, chunk, root: 0, rate: self.rate, among: None }, algorithm)
    }

    /// A collective operation that the next computation waits for.
    fn exposed(
        &mut self,
        program: &mut Program,
        of: (Among, At),
        kind: Kind,
        bytes: u64,
    ) -> Result<(), WorkloadError> {
        if let Some(op) = self.call(program, of, kind, bytes)? {
            program.then(op);
        }
        Ok(())
    }

    /// What the tensor group does about the activations of half a layer.
    fn activations(&mut self, program: &mut Program, at: At) -> Result<(), WorkloadError> {
        let (bytes, of) = (self.spec.model.activations(), (Among::Tensor, at));
        if !self.spec.model.sequence_parallel {
            return self.exposed(program, of, Kind::AllReduce, bytes);
        }
        self.exposed(program, of, Kind::ReduceScatter, bytes)?;
        self.exposed(program, of, Kind::AllGather, bytes)
    }

    fn experts(&mut self, program: &mut Program, at: At) -> Result<(), WorkloadError> {
        match self.spec.model.experts {
            0 => Ok(()),
            _ => self.exposed(program, (Among::Expert, at), Kind::AllToAll, self.spec.model.to_experts()),
        }
    }

    fn receive(&self, program: &mut Program, from: u32, tag: u32) {
        let bytes = self.spec.model.activations();
        let after = program.began.clone();
        let received = program.push(Op::Receive { from: Some(from), bytes, tag: Some(tag) }, &after);
        program.last.push(received);
    }

    fn send(&self, program: &mut Program, to: u32, tag: u32) {
        let after = program.last.clone();
        program.push(Op::Send { to, bytes: self.spec.model.activations(), tag }, &after);
    }

    /// A micro-batch in a group of layers: where it comes from and goes to.
    fn part(&self, at: At, chunk: u32, batch: u32) -> Part {
        let (stages, chunks) = (self.layout.stages, self.spec.model.virtual_stages);
        let group = chunk * stages + at.stage;
        let neighbour = |group: u32| Neighbour {
            rank: self.layout.rank(At { stage: group % stages, ..at }),
            chunk: group / stages,
        };
        Part {
            group,
            before: group.checked_sub(1).map(neighbour),
            next: (group + 1 < stages * chunks).then(|| neighbour(group + 1)),
            tag: batch * chunks * 2,
            chunk,
        }
    }

    fn forward(
        &mut self,
        program: &mut Program,
        at: At,
        part: Part,
        random: &mut RandomStream,
    ) -> Result<(), WorkloadError> {
        let model = &self.spec.model;
        let (attention, feed_forward, output) = (model.attention(), model.feed_forward(), model.output());
        // The embedding computes nothing: its parameters come with those of the first layer.
        let mut embedding = model.vocabulary_gradients();
        if let Some(before) = part.before {
            self.receive(program, before.rank, part.tag + part.chunk * 2 + FORWARD);
            embedding = 0;
        }
        let (of_layer, of_experts) = model.gradients();
        for _ in 0..model.layers_of_group(part.group) {
            self.parameters(program, at, [of_layer + std::mem::take(&mut embedding), of_experts])?;
            self.compute(program, attention, random);
            self.activations(program, at)?;
            self.experts(program, at)?;
            self.compute(program, feed_forward, random);
            self.experts(program, at)?;
            self.activations(program, at)?;
        }
        match part.next {
            Some(next) => self.send(program, next.rank, part.tag + next.chunk * 2 + FORWARD),
            None => {
                self.parameters(program, at, [model.vocabulary_gradients(), 0])?;
                self.compute(program, output, random);
            }
        }
        Ok(())
    }

    fn backward(
        &mut self,
        program: &mut Program,
        at: At,
        part: Part,
        is_last: bool,
        random: &mut RandomStream,
    ) -> Result<(), WorkloadError> {
        let model = &self.spec.model;
        // Sharded gradients are added up where they belong: those of every micro-batch are sent there.
        let reduces = is_last || self.spec.sharding == Sharding::Zero3;
        let twice = |time: Time| time.saturating_add(time);
        let (attention, feed_forward, output) =
            (twice(model.attention()), twice(model.feed_forward()), twice(model.output()));
        let of_layer = model.gradients();
        let of_vocabulary = model.vocabulary_gradients();
        match part.next {
            Some(next) => self.receive(program, next.rank, part.tag + part.chunk * 2 + BACKWARD),
            None => {
                self.parameters(program, at, [of_vocabulary, 0])?;
                self.compute(program, output, random);
                if reduces {
                    self.ready(program, at, [of_vocabulary, 0])?;
                }
            }
        }
        for _ in 0..model.layers_of_group(part.group) {
            self.parameters(program, at, of_layer.into())?;
            self.activations(program, at)?;
            self.experts(program, at)?;
            self.compute(program, feed_forward, random);
            self.experts(program, at)?;
            self.activations(program, at)?;
            self.compute(program, attention, random);
            if reduces {
                self.ready(program, at, of_layer.into())?;
            }
        }
        match part.before {
            Some(before) => self.send(program, before.rank, part.tag + before.chunk * 2 + BACKWARD),
            None if reduces => self.ready(program, at, [of_vocabulary, 0])?,
            None => {}
        }
        if self.spec.sharding == Sharding::Zero3 {
            self.reduce_rest(program, at)?;
            if !self.spec.overlap {
                program.last.append(&mut program.reduced);
            }
        }
        Ok(())
    }

    /// Where parameters are sharded, those of what is computed next are gathered: while what is before it is computed, or, without
    /// overlap, after that.
    fn parameters(
        &mut self,
        program: &mut Program,
        at: At,
        gradients: [u64; 2],
    ) -> Result<(), WorkloadError> {
        if self.spec.sharding != Sharding::Zero3 || gradients == [0, 0] {
            return Ok(());
        }
        let before = std::mem::replace(&mut program.layer_before, program.last.clone());
        let mut after = if self.spec.overlap { before } else { program.last.clone() };
        after.extend(&program.began);
        for (which, bytes) in gradients.into_iter().enumerate() {
            for bytes in pieces(self.spec.model.parameters(bytes), self.spec.bucket.0) {
                let among = [Among::Replicas, Among::ExpertReplicas][which];
                if let Some(op) = self.call(program, (among, at), Kind::AllGather, bytes)? {
                    let after: Vec<u32> = after.iter().chain(&program.gathered).copied().collect();
                    program.gathered = vec![program.push(op, &after)];
                }
            }
        }
        program.last.extend(&program.gathered);
        Ok(())
    }

    /// Gradients have been computed: full buckets are reduced.
    fn ready(&mut self, program: &mut Program, at: At, bytes: [u64; 2]) -> Result<(), WorkloadError> {
        for (which, more) in bytes.into_iter().enumerate() {
            program.pending[which] = program.pending[which].saturating_add(more);
            while self.spec.overlap && program.pending[which] >= self.spec.bucket.0 {
                program.pending[which] -= self.spec.bucket.0;
                self.reduce(program, at, which, self.spec.bucket.0)?;
            }
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        program: &mut Program,
        at: At,
        which: usize,
        bytes: u64,
    ) -> Result<(), WorkloadError> {
        let kind = self.spec.sharding.reduces_by();
        self.gradients(program, at, which, kind, bytes)
    }

    /// An operation of replicas: after what has been computed, and after the one before.
    fn gradients(
        &mut self,
        program: &mut Program,
        at: At,
        which: usize,
        kind: Kind,
        bytes: u64,
    ) -> Result<(), WorkloadError> {
        let among = [Among::Replicas, Among::ExpertReplicas][which];
        if let Some(op) = self.call(program, (among, at), kind, bytes)? {
            let after: Vec<u32> = program.last.iter().chain(&program.reduced).copied().collect();
            program.reduced = vec![program.push(op, &after)];
        }
        Ok(())
    }

    /// What is left of the gradients, less than a bucket.
    fn reduce_rest(&mut self, program: &mut Program, at: At) -> Result<(), WorkloadError> {
        for which in 0..2 {
            let left = std::mem::take(&mut program.pending[which]);
            for bytes in pieces(left, self.spec.bucket.0) {
                self.reduce(program, at, which, bytes)?;
            }
        }
        Ok(())
    }

    /// The rest of the gradients, and, where every rank has a part of the states, the parameters; the next step waits for all.
    fn ends_step(&mut self, program: &mut Program, at: At) -> Result<(), WorkloadError> {
        self.reduce_rest(program, at)?;
        if self.spec.sharding == Sharding::Zero1 {
            let model = &self.spec.model;
            let layers = u64::from(model.layers_of(at.stage));
            let (of_layer, of_experts) = model.gradients();
            let vocabulary = [at.stage == 0, at.stage + 1 == self.layout.stages];
            let vocabulary =
                vocabulary.into_iter().filter(|&has| has).count() as u64 * model.vocabulary_gradients();
            for (which, bytes) in
                [of_layer * layers + vocabulary, of_experts * layers].into_iter().enumerate()
            {
                for bytes in pieces(model.parameters(bytes), self.spec.bucket.0) {
                    self.gradients(program, at, which, Kind::AllGather, bytes)?;
                }
            }
        }
        let reduced = std::mem::take(&mut program.reduced);
        program.last.extend(reduced);
        program.began = program.last.clone();
        program.layer_before = program.last.clone();
        Ok(())
    }
}

/// `bytes` in pieces of at most `limit`.
fn pieces(bytes: u64, limit: u64) -> impl Iterator<Item = u64> {
    let limit = limit.max(1);
    (0..bytes.div_ceil(limit)).map(move |piece| (bytes - piece * limit).min(limit))
}
