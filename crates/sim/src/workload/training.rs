//! A training step from the size of a model and its parallelism: computations, sends between pipeline stages,
//! collective operations of tensor, data and expert parallelism, as a job graph.
//!
//! Ranks are numbered tensor first, then expert, data and pipeline. A step has `micro_batches`, in the order
//! of one forward, one backward, or of Megatron's interleaved schedule; gradients are reduced in buckets, in
//! reverse order of the layers, from the last micro-batch's backward on. A rank begins the next step when all
//! of its own step has ended.
//!
//! The operations of ranks are held as lists; their messages are not.
//!
//! Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
//! Megatron-LM", SC 2021 (floating point operations and schedule); Li et al., "PyTorch Distributed", VLDB
//! 2020 (buckets); Rajbhandari et al., "ZeRO", SC 2020 (sharding).

use super::WorkloadParameters;
use super::graph::source::GraphSource;
use super::graph::{JobGraph, ScaleUp, Seats, Work, seats};
use super::placement::Placement;
use super::schedule::{self, Algorithm, AlgorithmParameters, Asked, Kind, algorithms, ring::RingParameters};
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{FlowSource, FlowSpec};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::Bytes;
use model::Model;
use std::sync::LazyLock;

mod lower;
pub mod model;

const SHARDING: &[(&str, &str)] = &[
    ("none", "every rank holds all gradients and optimiser states of its stage: an all-reduce"),
    ("zero1", "gradients are reduce-scattered, and parameters gathered after them (ZeRO 1 and 2)"),
    (
        "zero3",
        "parameters too: those of a layer are gathered before it, forward and backward, and its gradients reduce-scattered, \
         for every micro-batch (ZeRO 3)",
    ),
];

/// Who holds gradients, states and parameters, in the order of [`SHARDING`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharding {
    None,
    Zero1,
    Zero3,
}

impl Sharding {
    fn named(name: &str) -> Sharding {
        match name {
            "zero1" => Sharding::Zero1,
            "zero3" => Sharding::Zero3,
            _ => Sharding::None,
        }
    }

    fn reduces_by(self) -> Kind {
        if self == Sharding::None { Kind::AllReduce } else { Kind::ReduceScatter }
    }
}

/// Keys of a training job.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingSpec {
    model: Model,
    /// 0: the highest number that the ranks allow.
    data: u32,
    steps: u32,
    algorithm: Algorithm,
    channels: u32,
    chunk: Option<Bytes>,
    bucket: Bytes,
    overlap: bool,
    sharding: Sharding,
    domain: Option<u32>,
    scale_up: Option<ScaleUp>,
    per_host: u32,
    slow_ranks: Vec<u32>,
    slow_factor: f64,
    jitter: f64,
    placement: Placement,
    messages: bool,
}

impl TrainingSpec {
    /// Why groups that share a layer reduce its results over the network, which few mean; none: they do not.
    fn crossing(&self, cx: &WorkloadContext, domain: u32) -> Option<String> {
        let tensor = self.model.tensor;
        let (why, which) = match self.scale_up {
            _ if tensor < 2 => return None,
            None if cx.gpus_per_node.is_some_and(|gpus| gpus > 1) => (
                "without scale_up_rate the GPUs of a node reach each other over the network".to_string(),
                "groups",
            ),
            None => return None,
            Some(_) if tensor > domain => (format!("a domain has {domain} ranks"), "groups"),
            Some(_) if domain.is_multiple_of(tensor) => return None,
            Some(_) => (format!("groups do not fit into domains of {domain} ranks"), "some groups"),
        };
        Some(format!(
            "tensor = {tensor}: {why}, so that {which} reduce the results of every layer over the network"
        ))
    }
}

/// The algorithms of some kind of sharding.
static ALGORITHMS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let can = [reducing(Kind::AllReduce), reducing(Kind::ReduceScatter)].concat();
    schedule::KINDS.iter().filter(|(name, _)| can.contains(name)).copied().collect()
});

/// The algorithms by which gradients are reduced.
fn reducing(kind: Kind) -> Vec<&'static str> {
    algorithms(kind).into_iter().filter(|name| *name != "hierarchical").collect()
}

impl WorkloadParameters for TrainingSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "training",
        title: "steps of a training job, from the size of a model and its parallelism",
        source: "Narayanan et al., SC 2021; Li et al., VLDB 2020",
        equations: "F = 24 b s h^2 + 4 b s^2 h a layer and micro-batch forward, twice that backward; bytes: TP b s h e, \
                    PP b s h e, DP P/(t p) e_g (ZeRO-3: three times that a micro-batch), EP b s k h e / t",
        validation: "Bytes of every group; step times by hand where nothing contends (workload/training/tests.rs). \
                     Not compared with measurements of a cluster.",
        ..SchemeDoc::NONE
    };
    const ENDS_ITSELF: bool = true;
    const FLOWS_WAIT: bool = true;

    fn read(p: &mut Parameters) -> TrainingSpec {
        let count =
            |p: &mut Parameters, key, default, help| p.integer(key, default, (1, 100_000), help) as u32;
        let model = Model::read(p);
        let data_help = "Replicas of the model (data parallel); 0: the highest number that the hosts allow.";
        let data = p.integer("data", 0, (0, 100_000), data_help) as u32;
        let algorithm_help = "How gradients are reduced; auto: ring.";
        let asked = p.choice_or_auto("algorithm", &ALGORITHMS, algorithm_help);
        let sharding_help = "Who holds gradients, states and parameters.";
        let sharding = Sharding::named(p.choice("sharding", "none", SHARDING, sharding_help));
        let kind = sharding.reduces_by();
        let name = asked.unwrap_or(RingParameters::DOC.name);
        let can = reducing(kind);
        if !can.contains(&name) {
            let known = can.join(", ");
            let message = format!("{name} does not reduce gradients here: expected one of {known}");
            p.complain("algorithm", message);
        }
        Algorithm::refuse_keys_of_others(name, p);
        let algorithm = match can.contains(&name) {
            true => Algorithm::read(name, p).unwrap_or(Algorithm::Ring(RingParameters)),
            false => Algorithm::Ring(RingParameters),
        };
        let channels =
            p.integer("channels", 1, (1, 64), "Connections of a rank to its neighbour in gradients.");
        let chunk =
            p.bytes_or_auto("chunk", "Largest message of gradients; auto: a rank's part of a bucket.");
        let bucket = p.bytes("bucket", Bytes(25_000_000), "Gradients that are reduced together, at most.");
        if bucket == Bytes(0) || chunk == Some(Bytes(0)) {
            let key = if bucket == Bytes(0) { "bucket" } else { "chunk" };
            p.complain(key, "must be greater than 0".into());
        }
        let overlap_help = "Gradients are reduced while the last micro-batch's backward continues.";
        let overlap = p.flag("overlap", true, overlap_help);
        let per_host = seats::ranks_per_host(p);
        let domain = seats::read_domain(p, 1, per_host);
        let scale_up = seats::scale_up(p, per_host, None);
        if scale_up.is_none() {
            p.idle("domain", || {
                "has no effect without domains outside the network: set scale_up_rate too".into()
            });
        }
        let slow_help = "Ranks that compute slower, such as \"17,20-23\".";
        let slow = p.text("slow_ranks", Some("none"), slow_help).unwrap_or_default();
        let slow_ranks = ranks(&slow).unwrap_or_else(|message| {
            p.complain("slow_ranks", message);
            Vec::new()
        });
        let factor_help = "How many times longer they compute.";
        let slow_factor = p.number("slow_factor", 1.3, (0.01, 1000.0), factor_help);
        if slow_ranks.is_empty() {
            p.without_effect("slow_factor", || "set slow_ranks too".into());
        }
        let jitter_help =
            "Spread of every computation's time: sigma of a lognormal of mean 1, drawn by seed.";
        let jitter = p.number("jitter", 0.0, (0.0, 2.0), jitter_help);
        TrainingSpec {
            model,
            data,
            steps: count(p, "steps", 1, "Steps, one after the other."),
            algorithm,
            channels: channels as u32,
            chunk,
            bucket,
            overlap,
            sharding,
            domain,
            scale_up,
            per_host,
            slow_ranks,
            slow_factor,
            jitter,
            placement: Placement::read(p, per_host),
            messages: p.flag("messages", true, "Whether every message is a row of flows.parquet."),
        }
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let domain = seats::domain(cx, self.domain, self.per_host);
        let blocks = if self.scale_up.is_some() { domain } else { 1 };
        let mut hosts = self.placement.ranks_in_blocks(cx, blocks)?;
        let each = self.model.ranks_of_replica();
        let data = match self.data {
            0 => hosts.len() as u64 / each,
            data => u64::from(data),
        };
        let needed = each.saturating_mul(data);
        if data == 0 || needed < 2 || needed > hosts.len() as u64 {
            let Model { tensor, pipeline, expert, .. } = &self.model;
            let message = format!(
                "tensor {tensor} x pipeline {pipeline} x expert {expert} x data {} are {} ranks, but the job's \
                 hosts have room for {}",
                data.max(1),
                each.saturating_mul(data.max(1)),
                hosts.len()
            );
            return Err(WorkloadError::new("data", message));
        }
        if needed < hosts.len() as u64 {
            (cx.warn)(format!(
                "training: {needed} ranks, where the job's hosts have room for {}",
                hosts.len()
            ));
        }
        hosts.truncate(needed as usize);
        self.placement.settle(cx, &hosts);
        if self.scale_up.is_some() {
            seats::warn_of_nodes(cx, &hosts, domain, self.per_host);
        }
        self.crossing(cx, domain).into_iter().for_each(|text| (cx.warn)(text));
        if let Some(rank) = self.slow_ranks.iter().find(|&&rank| u64::from(rank) >= needed) {
            let message = format!("unknown rank {rank}: the job has ranks 0 to {}", needed - 1);
            return Err(WorkloadError::new("slow_ranks", message));
        }
        let rate = cx.rank_rate(&hosts, self.per_host);
        // Channels of the largest operation; smaller ones use the first of them.
        let largest = Asked {
            kind: self.sharding.reduces_by(),
            ranks: needed as u32,
            bytes: u64::from(u32::MAX),
            channels: self.channels,
            chunk: None,
            root: 0,
            rate,
            among: None,
        };
        let channels = self.algorithm.channels(&largest);
        let listed = lower::lower(self, data as u32, rate, &mut cx.stream("training"))?;
        let listed = match self.scale_up {
            Some(scale_up) => listed.with_domains(domain, scale_up),
            None => listed,
        };
        Ok(Box::new(GraphSource::new(JobGraph {
            hosts,
            seats: Seats { per_host: self.per_host, channels, by_channel: false },
            flow: FlowSpec { start: window.start, ..cx.flow() },
            recorded: self.messages,
            fresh: false,
            work: Work::Listed(listed),
        })))
    }
}

/// Ranks such as "17,20-23", or "none".
fn ranks(text: &str) -> Result<Vec<u32>, String> {
    if text.trim() == "none" {
        return Ok(Vec::new());
    }
    let wrong = |part: &str| format!("expected ranks such as \"17,20-23\" or \"none\", found \"{part}\"");
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let [first, last] =
            [first, last].map(|end| end.trim().parse::<u32>().ok().filter(|&end| end < 1_000_000));
        match (first, last) {
            (Some(first), Some(last)) if first <= last => all.extend(first..=last),
            _ => return Err(wrong(part)),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
