//! Chakra execution traces, one file a rank: records of a length and a protobuf message each, the first a
//! `GlobalMetadata`, all others a `Node`.
//!
//! A node may start when those in its `data_deps` have ended, and, if asked, those in `ctrl_deps`.
//! Computations take their `duration_micros`; those of the CPU and those of the GPU are two streams, unless
//! they name their `stream`. A collective operation is a ring, or, for an all-to-all, linear, among all ranks
//! or those of its group.
//!
//! Source: mlcommons/chakra, schema/protobuf/et_def.proto; what `comm_size` means: ASTRA-sim. Writers give
//! the same attribute different types, so any number is accepted.

use super::super::graph::Listed;
use super::super::graph::listed::{Group, Instance, Op, RankList};
use super::super::schedule::{Algorithm, Asked, Kind, linear, ring};
use super::protobuf::{Fields, Wire, Wrong};
use super::{Choices, Imported};
use crate::units::{Rate, Time};
use rustc_hash::FxHashMap;

/// Stream of computations of the CPU; those of the GPU are stream 0.
const CPU: u16 = u16::MAX;

/// A node as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
struct Node {
    id: u64,
    kind: u64,
    data: Vec<u64>,
    control: Vec<u64>,
    micros: u64,
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
}

/// Reads the files of all ranks, in their order, each with its name, not compressed. `groups`: the ranks of
/// the groups that nodes name, where a file of them is given.
pub fn read(
    files: &[(String, Vec<u8>)],
    groups: &FxHashMap<String, Vec<u32>>,
    choices: &Choices,
) -> Result<Imported, String> {
    let ranks = files.len() as u32;
    let mut made =
        Made { ranks, groups, known: Vec::new(), instances: Vec::new(), calls: FxHashMap::default() };
    let mut lists = Vec::new();
    let (mut unordered, mut all) = (0usize, 0usize);
    for (rank, (name, bytes)) in files.iter().enumerate() {
        let nodes = nodes(bytes).map_err(|wrong| format!("{name}: byte {}: {}", wrong.at, wrong.message))?;
        let free = |node: &&Node| {
            node.data.is_empty() && node.control.is_empty() && node.number("is_cpu_op") != Some(1)
        };
        unordered += nodes.iter().filter(free).count();
        all += nodes.len();
        lists.push(made.list(name, rank as u32, &nodes, choices)?);
    }
    made.all_joined(files)?;
    let mut assumed = vec![format!(
        "nodes wait for their data dependencies{}",
        if choices.control { " and control dependencies" } else { "; control dependencies are left out" }
    )];
    if !made.instances.is_empty() {
        assumed
            .push("collective operations run as rings, all-to-alls directly, over one channel".to_string());
    }
    if unordered * 100 > all {
        assumed.push(format!(
            "{unordered} of {all} nodes have no dependencies and are not CPU operations: a trace that lost the order of its \
             streams looks so"
        ));
    }
    let groups = made.known.into_iter().map(|(_, group)| group).collect();
    let instances = made.instances.into_iter().map(|(instance, _)| instance).collect();
    let graph = Listed::new(lists, groups, instances, choices.send_ends, "chakra")?;
    Ok(Imported { graph, assumed })
}

/// What is made of the nodes of all ranks.
struct Made<'g> {
    ranks: u32,
    groups: &'g FxHashMap<String, Vec<u32>>,
    known: Vec<(String, Group)>,
    /// With the ranks that have joined so far.
    instances: Vec<(Instance, u32)>,
    /// By group, kind of call and the number of the call: the instance.
    calls: FxHashMap<(u32, u32), u32>,
}

impl Made<'_> {
    /// Every collective operation has all ranks of its group.
    fn all_joined(&self, files: &[(String, Vec<u8>)]) -> Result<(), String> {
        for (instance, joined) in &self.instances {
            let (name, group) = &self.known[instance.group as usize];
            if *joined < group.ranks.len() as u32 {
                let of = if name.is_empty() { "of all ranks".into() } else { format!("of group \"{name}\"") };
                let first = files.first().map_or("", |(name, _)| name);
                return Err(format!(
                    "{first}: a {} {of} is called by {joined} ranks, expected {}",
                    instance.kind.name(),
                    group.ranks.len()
                ));
            }
        }
        Ok(())
    }

    fn group(&mut self, name: &str) -> Result<u32, String> {
        let name = if name == "0" { "" } else { name };
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
        let (mut ops, mut ends) = (Vec::new(), Vec::new());
        let mut calls: FxHashMap<u32, u32> = FxHashMap::default();
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
            let op = self.op(rank, node, &mut calls);
            ops.push(op.map_err(|message| format!("{file}: byte {}: node {}: {message}", node.at, node.id))?);
        }
        ends.sort_unstable();
        ends.dedup();
        let list = RankList::new(ops, nodes.iter().map(|node| node.id).collect(), &ends, &[]);
        if let Some(cycle) = list.cycle() {
            let ids: Vec<String> =
                cycle.iter().take(10).map(|&op| list.places[op as usize].to_string()).collect();
            return Err(format!("{file}: nodes {} wait for each other", ids.join(", ")));
        }
        Ok(list)
    }

    fn op(&mut self, rank: u32, node: &Node, calls: &mut FxHashMap<u32, u32>) -> Result<Op, String> {
        let computes = |micros: u64, stream: u16| {
            let time = micros.checked_mul(1_000_000).map(Time);
            let time = time.filter(|&time| time < super::super::spec::LAST_START);
            time.map(|time| Op::Compute { time, stream })
                .ok_or(format!("{micros} us are longer than 46 days"))
        };
        let stream = match node.number("is_cpu_op") {
            Some(1) => CPU,
            _ => node.number("stream").map_or(0, |stream| (stream.unsigned_abs() % u64::from(CPU)) as u16),
        };
        let size = || {
            let size = node.number("comm_size").ok_or("it has no comm_size")?;
            u64::try_from(size)
                .ok()
                .filter(|&size| size > 0)
                .ok_or(format!("comm_size {size}: expected at least 1"))
        };
        let peer = |name: &str| match node.number(name) {
            None => Ok(rank),
            Some(peer) => u32::try_from(peer)
                .ok()
                .filter(|&peer| peer < self.ranks)
                .ok_or(format!("{name} {peer} does not exist: found the files of {} ranks", self.ranks)),
        };
        let tag = || node.number("comm_tag").map_or(0, |tag| tag as u32);
        match node.kind {
            // Without a duration, as metadata are, they only pass on what waits for them.
            1 => computes(0, CPU - 1),
            2..=4 => computes(node.micros, stream),
            5 => Ok(Op::Send { to: peer("comm_dst")?, bytes: size()?, tag: tag() }),
            6 => Ok(Op::Receive { from: Some(peer("comm_src")?), bytes: size()?, tag: Some(tag()) }),
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
            // Bytes that each rank contributes.
            Some(2) => (Kind::AllGather, size.saturating_mul(u64::from(n))),
            Some(5) => (Kind::Broadcast, size),
            Some(6) => (Kind::AllToAll, size),
            Some(7 | 8) => (Kind::ReduceScatter, size),
            Some(9) => (Kind::Barrier, size),
            Some(other) => {
                let name = match other {
                    1 => " (reduce)",
                    3 => " (gather)",
                    4 => " (scatter)",
                    _ => "",
                };
                let known =
                    "0 all-reduce, 2 all-gather, 5 broadcast, 6 all-to-all, 7 reduce-scatter, 9 barrier";
                return Err(format!("comm_type {other}{name} is not supported (known: {known})"));
            }
            None => return Err("it has no comm_type".into()),
        };
        let call = calls.entry(group).or_default();
        *call += 1;
        let key = (group, *call);
        if n < 2 {
            return Ok(Op::Compute { time: Time::ZERO, stream: CPU - 1 });
        }
        let instance = match self.calls.get(&key) {
            Some(&instance) => instance,
            None => {
                let asked = Asked {
                    kind,
                    ranks: n,
                    bytes,
                    channels: 1,
                    chunk: None,
                    root: 0,
                    rate: Rate::from_gbps(400),
                };
                let algorithm = match kind {
                    Kind::AllToAll => Algorithm::Linear(linear::LinearParameters),
                    Kind::AllReduce | Kind::AllGather | Kind::ReduceScatter => {
                        Algorithm::Ring(ring::RingParameters)
                    }
                    Kind::Broadcast => Algorithm::Tree(super::super::schedule::tree::TreeParameters),
                    Kind::Barrier => Algorithm::Dissemination(
                        super::super::schedule::dissemination::DisseminationParameters,
                    ),
                };
                let law = algorithm.phases(&asked)?.remove(0).law;
                self.instances.push((Instance { law, kind, bytes, group }, 0));
                let instance = self.instances.len() as u32 - 1;
                self.calls.insert(key, instance);
                instance
            }
        };
        let (known, joined) = &mut self.instances[instance as usize];
        if (known.kind, known.bytes) != (kind, bytes) {
            return Err(format!(
                "call {} of the group is a {} of {bytes} bytes, but another rank's is a {} of {}",
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
        // The first is metadata.
        if !first {
            nodes.push(node(record, at)?);
        }
        first = false;
    }
    if first {
        return Err(Wrong { at: 0, message: "the file is empty".into() });
    }
    Ok(nodes)
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
            (7, Wire::Varint(micros)) => node.micros = micros,
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
