//! Chakra execution traces, one file a rank: records of a length and a protobuf message each, the first a
//! `GlobalMetadata`, all others a `Node`.
//!
//! A node may start when those in its `data_deps` have ended, and, if asked, those in `ctrl_deps`.
//! Computations take their `duration_micros`; those of the CPU and those of the GPU are two streams, unless
//! they name their `stream`; with a [`Roofline`] those that name their operations (`num_ops`) take the time of
//! these. If asked, nodes of one `stream` follow each other in the order of their `start_time_micros`. A
//! collective operation has the default algorithm of its kind, over all ranks or those of its group, which a
//! file names, or PyTorch's metadata (`pg_name` and `ranks` in a node's inputs). Its root, if it has one, is
//! the first of them. The calls of a group at one rank and at another belong together by their order of
//! execution, whatever the order of nodes in the files.
//!
//! Source: mlcommons/chakra, schema/protobuf/et_def.proto; what `comm_size` means: ASTRA-sim. Writers give
//! the same attribute different types, so any number is accepted.

use super::super::graph::Listed;
use super::super::graph::listed::{Group, Instance, Lists, Op, RankList};
use super::super::schedule::{Algorithm, Asked, Kind};
use super::protobuf::{Fields, Wire, Wrong};
use super::{Choices, Imported, MAX_BYTES, Roofline, groups};
use crate::parameters::{Nothing, Parameters};
use crate::units::{Rate, Time};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stream of computations of the CPU; those of the GPU are stream 0.
const CPU: u16 = u16::MAX;
/// Types of nodes.
const METADATA: u64 = 1;
const COMPUTE: u64 = 4;
/// A type of collective operation.
const BARRIER: i64 = 9;

/// A node as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
struct Node {
    id: u64,
    kind: u64,
    data: Vec<u64>,
    control: Vec<u64>,
    start_micros: u64,
    micros: u64,
    /// Values of its inputs, where they name process groups.
    inputs: Option<String>,
    at: usize,
    attributes: FxHashMap<String, Attribute>,
}

#[derive(Debug, Clone, PartialEq)]
enum Attribute {
    Number(i64),
    Text(String),
}

impl Node {
    fn number(&self, name: &str) -> Option<i64> {
        match self.attributes.get(name)? {
            Attribute::Number(number) => Some(*number),
            Attribute::Text(text) => text.parse().ok(),
        }
    }

    /// Operations of a computation, where it names them.
    fn operations(&self) -> Option<f64> {
        self.number("num_ops").filter(|&operations| operations > 0).map(|operations| operations as f64)
    }

    /// Time of a computation, bound by its operations or by the bytes that it touches.
    fn rated(&self, operations: f64, roofline: &Roofline) -> Result<Time, String> {
        let bytes = self.number("tensor_size").map_or(0.0, |bytes| bytes.max(0) as f64);
        let seconds = (operations / roofline.peak).max(roofline.memory.map_or(0.0, |memory| bytes / memory));
        let ps = seconds * 1e12;
        let limit = super::super::spec::LAST_START.0 as f64;
        if ps < limit {
            Ok(Time(ps.round() as u64))
        } else {
            Err("its num_ops take longer than 46 days".into())
        }
    }
}

/// The stream of computations that a number names.
fn stream_of(number: i64) -> u16 {
    (number.unsigned_abs() % u64::from(CPU - 1)) as u16
}

/// Pairs of nodes of one stream, of which the second one started next when they were recorded.
fn in_streams(nodes: &[Node]) -> Vec<(u32, u32)> {
    let of =
        |(at, node): (usize, &Node)| Some((node.number("stream")?, node.start_micros, node.id, at as u32));
    let mut all: Vec<_> = nodes.iter().enumerate().filter_map(of).collect();
    all.sort_unstable();
    let pairs = all.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    pairs.map(|pair| (pair[0].3, pair[1].3)).collect()
}

/// The nodes in an order in which they may run: each after those that it waits for, then by start time, then by
/// id. Nodes that wait for themselves come last. `ends`: pairs (node, the one that waits for its end).
fn executed(nodes: &[Node], ends: &[(u32, u32)]) -> Vec<u32> {
    let mut left = vec![0u32; nodes.len()];
    ends.iter().for_each(|pair| left[pair.1 as usize] += 1);
    let after = Lists::new(nodes.len(), ends);
    let due = |at: u32| Reverse((nodes[at as usize].start_micros, nodes[at as usize].id, at));
    let mut ready: BinaryHeap<_> = (0..).zip(&left).filter(|one| *one.1 == 0).map(|one| due(one.0)).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse((_, _, at))) = ready.pop() {
        order.push(at);
        for &next in after.of(at) {
            left[next as usize] -= 1;
            if left[next as usize] == 0 {
                ready.push(due(next));
            }
        }
    }
    order.extend((0..).zip(&left).filter(|one| *one.1 > 0).map(|one| one.0));
    order
}

/// Reads the files of all ranks, in their order, each with its name, not compressed. `groups`: the ranks of
/// the groups that nodes name, where a file of them is given.
pub fn read(
    files: &[(String, Vec<u8>)],
    groups: &FxHashMap<String, Vec<u32>>,
    choices: &Choices,
) -> Result<Imported, String> {
    let ranks = files.len() as u32;
    let mut made = Made {
        ranks,
        groups: groups.clone(),
        known: Vec::new(),
        instances: Vec::new(),
        calls: FxHashMap::default(),
        timeless: 0,
        raised: 0,
        rated: 0,
    };
    made.groups.retain(|name, group| !is_of_all(name, group, ranks));
    let mut lists = Vec::new();
    let (mut unordered, mut all) = (0usize, 0usize);
    for (rank, (name, bytes)) in files.iter().enumerate() {
        let nodes = nodes(bytes).map_err(|wrong| format!("{name}: byte {}: {}", wrong.at, wrong.message))?;
        let free = |node: &&Node| {
            node.data.is_empty() && node.control.is_empty() && node.number("is_cpu_op") != Some(1)
        };
        unordered += nodes.iter().filter(free).count();
        all += nodes.len();
        for node in nodes.iter().filter(|node| node.kind == METADATA) {
            let named = made.name_groups(node, groups);
            named.map_err(|wrong| format!("{name}: byte {}: node {}: {wrong}", node.at, node.id))?;
        }
        lists.push(made.list(name, rank as u32, &nodes, choices)?);
    }
    made.all_joined(files)?;
    if all == 0 {
        let first = files.first().map_or("", |(name, _)| name);
        return Err(format!("{first}: no rank has a node"));
    }
    let mut assumed = vec![format!(
        "nodes wait for their data dependencies{}",
        if choices.control { " and control dependencies" } else { "; control dependencies are left out" }
    )];
    if !made.instances.is_empty() {
        assumed
            .push("collective operations run as rings, all-to-alls, gathers and scatters directly, broadcasts and reduces over a \
                   tree, over one channel".to_string());
    }
    let rooted = made.instances.iter().filter(|(instance, _)| instance.kind.has_root()).count();
    if rooted > 0 {
        assumed.push(format!(
            "{rooted} operations have a root (broadcast, reduce, gather, scatter), which traces do not name: the first rank of \
             their group"
        ));
    }
    if unordered * 100 > all {
        let hint =
            if choices.stream_order { "" } else { "; stream_order = true takes it from their start times" };
        assumed.push(format!(
            "{unordered} of {all} nodes have no dependencies and are not CPU operations: a trace that lost the order of its \
             streams looks so{hint}"
        ));
    }
    if made.raised > 0 {
        let raised = made.raised;
        assumed.push(format!(
            "{raised} calls of operations have fewer bytes than ranks: they move a byte a rank"
        ));
    }
    if made.timeless > 0 {
        assumed.push(format!(
            "{} computations have num_ops and no duration: they take no time; set teraflops to what a processor achieves",
            made.timeless
        ));
    }
    if made.rated > 0 {
        let rated = made.rated;
        assumed.push(format!("{rated} computations take the time of their num_ops, not their durations"));
    }
    let groups = made.known.into_iter().map(|(_, group)| group).collect();
    let instances = made.instances.into_iter().map(|(instance, _)| instance).collect();
    assumed.extend(super::with_a_byte_each(&mut lists));
    assumed.extend(super::matches::problem(&lists, "node"));
    let graph = Listed::new(lists, groups, instances, choices.send_ends, "chakra")?.with_places("node");
    Ok(Imported { graph, assumed })
}

/// Whether a group is PyTorch's default one, "0", and has all ranks in order, as one without a name has.
fn is_of_all(name: &str, ranks: &[u32], count: u32) -> bool {
    name == "0" && (ranks.is_empty() || ranks.iter().copied().eq(0..count))
}

/// What is made of the nodes of all ranks.
struct Made {
    ranks: u32,
    groups: FxHashMap<String, Vec<u32>>,
    known: Vec<(String, Group)>,
    /// With the ranks that have joined so far.
    instances: Vec<(Instance, u32)>,
    /// By group, kind of call and the number of the call: the instance.
    calls: FxHashMap<(u32, u32), u32>,
    /// Calls of operations with fewer bytes than ranks.
    raised: u64,
    /// Computations that have operations and no duration, where durations count; those whose operations count.
    timeless: u64,
    rated: u64,
}

impl Made {
    /// Adds the process groups that a node of metadata names; those of the user's file come before them.
    fn name_groups(&mut self, node: &Node, given: &FxHashMap<String, Vec<u32>>) -> Result<(), String> {
        let Some(text) = &node.inputs else { return Ok(()) };
        let named = groups::named(text).ok_or(
            "its inputs name process groups: expected a list of {\"pg_name\": name, \"ranks\": list}",
        )?;
        for (name, ranks) in named {
            if given.contains_key(&name) || is_of_all(&name, &ranks, self.ranks) {
                continue;
            }
            let known = self.groups.entry(name.clone()).or_insert_with(|| ranks.clone());
            if *known != ranks {
                return Err(format!(
                    "group \"{name}\" has the ranks {ranks:?}, but another node gives it {known:?}"
                ));
            }
        }
        Ok(())
    }

    /// Every collective operation has all ranks of its group.
    fn all_joined(&self, files: &[(String, Vec<u8>)]) -> Result<(), String> {
        for (instance, joined) in &self.instances {
            let (name, group) = &self.known[instance.group as usize];
            if *joined < group.ranks.len() as u32 {
                let of = if name.is_empty() { "of all ranks".into() } else { format!("of group \"{name}\"") };
                let first = files.first().map_or("", |(name, _)| name);
                return Err(format!(
                    "{first}: one {} {of} is called by {joined} ranks, expected {}",
                    instance.kind.name(),
                    group.ranks.len()
                ));
            }
        }
        Ok(())
    }

    fn group(&mut self, name: &str) -> Result<u32, String> {
        let name = if name == "0" && !self.groups.contains_key(name) { "" } else { name };
        if let Some(at) = self.known.iter().position(|(known, _)| known == name) {
            return Ok(at as u32);
        }
        let ranks = match self.groups.get(name) {
            Some(ranks) if !ranks.is_empty() => ranks.clone(),
            Some(_) => (0..self.ranks).collect(),
            None if name.is_empty() => (0..self.ranks).collect(),
            None => return Err(format!("unknown group \"{name}\": give the file of groups")),
        };
        if let Some(rank) = ranks.iter().find(|&&rank| rank >= self.ranks) {
            return Err(format!("group \"{name}\" has rank {rank}: found the files of {} ranks", self.ranks));
        }
        let mut seen = vec![false; self.ranks as usize];
        if let Some(rank) = ranks.iter().find(|&&rank| std::mem::replace(&mut seen[rank as usize], true)) {
            return Err(format!("group \"{name}\" has rank {rank} twice"));
        }
        self.known.push((name.to_string(), Group::new(ranks)));
        Ok(self.known.len() as u32 - 1)
    }

    /// The operations of a rank.
    fn list(&mut self, file: &str, rank: u32, nodes: &[Node], choices: &Choices) -> Result<RankList, String> {
        let mut place = FxHashMap::default();
        for (at, node) in nodes.iter().enumerate() {
            if place.insert(node.id, at as u32).is_some() {
                return Err(format!("{file}: byte {}: node {} comes twice", node.at, node.id));
            }
        }
        let mut ends = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let control = node.control.iter().filter(|_| choices.control);
            for parent in node.data.iter().chain(control) {
                let Some(&parent) = place.get(parent) else {
                    let Node { id, at, .. } = node;
                    return Err(format!(
                        "{file}: byte {at}: node {id} waits for node {parent}, which does not exist"
                    ));
                };
                ends.push((parent, at as u32));
            }
        }
        if choices.stream_order {
            ends.extend(in_streams(nodes));
        }
        ends.sort_unstable();
        ends.dedup();
        let mut ops = vec![Op::Compute { time: Time::ZERO, stream: CPU - 1 }; nodes.len()];
        let mut calls: FxHashMap<u32, u32> = FxHashMap::default();
        for at in executed(nodes, &ends) {
            let node = &nodes[at as usize];
            let op = self.op(rank, node, choices, &mut calls);
            ops[at as usize] =
                op.map_err(|message| format!("{file}: byte {}: node {}: {message}", node.at, node.id))?;
        }
        let list = RankList::new(ops, nodes.iter().map(|node| node.id).collect(), &ends, &[]);
        super::cycle(&list, "node").map_or(Ok(list), |cycle| Err(format!("{file}: {cycle}")))
    }

    fn op(
        &mut self,
        rank: u32,
        node: &Node,
        choices: &Choices,
        calls: &mut FxHashMap<u32, u32>,
    ) -> Result<Op, String> {
        let computes = |micros: u64, stream: u16| {
            let time = micros.checked_mul(1_000_000).map(Time);
            let time = time.filter(|&time| time < super::super::spec::LAST_START);
            time.map(|time| Op::Compute { time, stream })
                .ok_or(format!("{micros} us are longer than 46 days"))
        };
        let stream = match node.number("is_cpu_op") {
            Some(1) => CPU,
            _ => node.number("stream").map_or(0, stream_of),
        };
        let size = || {
            let size = node.number("comm_size").ok_or("it has no comm_size")?;
            u64::try_from(size)
                .ok()
                .filter(|&size| size <= MAX_BYTES)
                .ok_or(format!("comm_size {size}: expected at least 0 and at most 1 TB"))
        };
        let ranks = self.ranks;
        // The rank of the other end; this end, where it is named, is the rank of the file.
        let peer = |name: &str, own: &str| {
            if let Some(other) = node.number(own).filter(|&other| other != i64::from(rank)) {
                return Err(format!("{own} {other}: this is the file of rank {rank}"));
            }
            let peer = node.number(name).ok_or(format!("it has no {name}"))?;
            let known = u32::try_from(peer).ok().filter(|&peer| peer < ranks);
            known.ok_or(format!("{name} {peer} does not exist: found the files of {ranks} ranks"))
        };
        let tag = || node.number("comm_tag").map_or(0, |tag| tag as u32);
        match node.kind {
            // Without a duration, as metadata are, they only pass on what waits for them.
            METADATA => computes(0, CPU - 1),
            2..=COMPUTE => match (node.operations(), choices.roofline) {
                (Some(operations), Some(roofline)) => {
                    self.rated += 1;
                    let time = node.rated(operations, &roofline)?;
                    Ok(Op::Compute { time, stream })
                }
                (operations, _) => {
                    self.timeless += u64::from(operations.is_some() && node.micros == 0);
                    computes(node.micros, stream)
                }
            },
            5 => Ok(Op::Send { to: peer("comm_dst", "comm_src")?, bytes: size()?, tag: tag() }),
            6 => {
                let from = Some(peer("comm_src", "comm_dst")?);
                Ok(Op::Receive { from, bytes: size()?, tag: Some(tag()) })
            }
            // A barrier moves no data.
            7 if node.number("comm_type") == Some(BARRIER) => self.collective(rank, node, 1, calls),
            7 => self.collective(rank, node, size()?, calls),
            0 => Err("it has no type".into()),
            other => Err(format!("unknown type {other} (known: 1 to 7)")),
        }
    }

    fn collective(
        &mut self,
        rank: u32,
        node: &Node,
        size: u64,
        calls: &mut FxHashMap<u32, u32>,
    ) -> Result<Op, String> {
        let name = match node.attributes.get("pg_name") {
            Some(Attribute::Text(name)) => name.clone(),
            Some(Attribute::Number(number)) => number.to_string(),
            None => String::new(),
        };
        let group = self.group(&name)?;
        let ranks = &self.known[group as usize].1;
        if ranks.place(rank).is_none() {
            return Err(format!("rank {rank} is not in group \"{name}\""));
        }
        let n = ranks.ranks.len() as u32;
        let (kind, bytes) = match node.number("comm_type") {
            Some(0) => (Kind::AllReduce, size),
            Some(1) => (Kind::Reduce, size),
            // Bytes that each rank contributes.
            Some(2) => (Kind::AllGather, size.saturating_mul(u64::from(n))),
            Some(3) => (Kind::Gather, size.saturating_mul(u64::from(n))),
            Some(4) => (Kind::Scatter, size),
            Some(5) => (Kind::Broadcast, size),
            Some(6) => (Kind::AllToAll, size),
            Some(7 | 8) => (Kind::ReduceScatter, size),
            Some(BARRIER) => (Kind::Barrier, size),
            Some(other) => {
                let known = "0 all-reduce, 1 reduce, 2 all-gather, 3 gather, 4 scatter, 5 broadcast, \
                             6 all-to-all, 7 reduce-scatter, 9 barrier";
                return Err(format!("comm_type {other} is not supported (known: {known})"));
            }
            None => return Err("it has no comm_type".into()),
        };
        // A vector that is cut into parts needs a byte a rank. Traces have sums of one number over many
        // ranks.
        let min = match kind {
            Kind::Reduce | Kind::Broadcast | Kind::Barrier => 1,
            _ => u64::from(n),
        };
        self.raised += u64::from(bytes < min);
        let bytes = bytes.max(min);
        let call = calls.entry(group).or_default();
        *call += 1;
        let key = (group, *call);
        if n < 2 {
            return Ok(Op::Compute { time: Time::ZERO, stream: CPU - 1 });
        }
        let instance = match self.calls.get(&key) {
            Some(&instance) => instance,
            None => {
                let asked = Asked::plain(kind, n, bytes, Rate::from_gbps(400));
                let mut defaults = Nothing::default();
                let algorithm =
                    Algorithm::read(kind.default_algorithm(), &mut Parameters::new(&mut defaults));
                let algorithm = algorithm.ok_or("no algorithm")?;
                let law = algorithm.phases(&asked).map_err(|error| error.message)?.remove(0).only();
                self.instances.push((Instance { law, kind, bytes, group }, 0));
                let instance = self.instances.len() as u32 - 1;
                self.calls.insert(key, instance);
                instance
            }
        };
        let (known, joined) = &mut self.instances[instance as usize];
        if (known.kind, known.bytes) != (kind, bytes) {
            return Err(format!(
                "call {} of group \"{name}\": here {} of {bytes} bytes, at another rank {} of {}",
                key.1,
                kind.name(),
                known.kind.name(),
                known.bytes
            ));
        }
        *joined += 1;
        Ok(Op::Collective { instance })
    }
}

/// The nodes of a file.
fn nodes(bytes: &[u8]) -> Result<Vec<Node>, Wrong> {
    let mut file = Fields::new(bytes, 0);
    let (mut nodes, mut first) = (Vec::new(), true);
    while !file.is_empty() {
        let length = file.varint()?;
        let at = file.place();
        let record = file.take(length)?;
        if first {
            check_metadata(record, at)?;
        } else {
            nodes.push(node(record, at)?);
        }
        first = false;
    }
    if first {
        return Err(Wrong { at: 0, message: "the file is empty".into() });
    }
    Ok(nodes)
}

/// The first record is metadata: a version, and attributes.
fn check_metadata(bytes: &[u8], at: usize) -> Result<(), Wrong> {
    let mut fields = Fields::new(bytes, at);
    while let Some((number, _, value)) = fields.next()? {
        if !matches!((number, value), (1 | 2, Wire::Bytes(_))) {
            let message =
                "expected the file's metadata (a version), found a node: a file begins with its metadata";
            return Err(Wrong { at, message: message.into() });
        }
    }
    Ok(())
}

fn node(bytes: &[u8], at: usize) -> Result<Node, Wrong> {
    let mut node = Node { at, ..Node::default() };
    let mut fields = Fields::new(bytes, at);
    while let Some((number, place, value)) = fields.next()? {
        match (number, value) {
            (1, Wire::Varint(id)) => node.id = id,
            (3, Wire::Varint(kind)) => node.kind = kind,
            (4, value) => value.numbers(place, &mut node.control)?,
            (5, value) => value.numbers(place, &mut node.data)?,
            (6, Wire::Varint(micros)) => node.start_micros = micros,
            (7, Wire::Varint(micros)) => node.micros = micros,
            (8, Wire::Bytes(bytes)) => node.inputs = group_text(bytes, place)?,
            (10, Wire::Bytes(bytes)) => {
                if let Some((name, value)) = attribute(bytes, place)? {
                    node.attributes.insert(name, value);
                }
            }
            _ => {}
        }
    }
    Ok(node)
}

/// The values of a node's inputs, where they name process groups.
fn group_text(bytes: &[u8], at: usize) -> Result<Option<String>, Wrong> {
    let mut fields = Fields::new(bytes, at);
    while let Some((number, _, value)) = fields.next()? {
        if let (1, Wire::Bytes(values)) = (number, value) {
            let text = String::from_utf8_lossy(values);
            return Ok(text.contains("pg_name").then(|| text.into_owned()));
        }
    }
    Ok(None)
}

/// The name and value of an attribute; none: its value is a list, or bytes.
fn attribute(bytes: &[u8], at: usize) -> Result<Option<(String, Attribute)>, Wrong> {
    let (mut name, mut found) = (String::new(), None);
    let mut fields = Fields::new(bytes, at);
    while let Some((number, _, value)) = fields.next()? {
        let number_of = |value: i64| Some(Attribute::Number(value));
        match (number, value) {
            (1, Wire::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            (3, Wire::Eight(eight)) => found = number_of(f64::from_le_bytes(eight) as i64),
            (5, Wire::Four(four)) => found = number_of(f32::from_le_bytes(four) as i64),
            (7 | 9 | 11 | 13 | 27, Wire::Varint(value)) => found = number_of(value as i64),
            (15 | 17, Wire::Varint(value)) => found = number_of((value >> 1) as i64 ^ -((value & 1) as i64)),
            (19, Wire::Four(four)) => found = number_of(i64::from(u32::from_le_bytes(four))),
            (23, Wire::Four(four)) => found = number_of(i64::from(i32::from_le_bytes(four))),
            (21 | 25, Wire::Eight(eight)) => found = number_of(i64::from_le_bytes(eight)),
            (29, Wire::Bytes(text)) => {
                found = Some(Attribute::Text(String::from_utf8_lossy(text).into_owned()));
            }
            _ => {}
        }
    }
    Ok(found.map(|value| (name, value)))
}
