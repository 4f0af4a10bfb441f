//! The arithmetic of a transformer and its parallelism: floating point operations, and bytes of every group.

use crate::parameters::Parameters;
use crate::units::Time;

/// A model, how it is split, and what computes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub layers: u32,
    pub hidden: u64,
    pub sequence: u64,
    pub vocabulary: u64,
    /// Experts of a layer; 0: a dense model.
    pub experts: u64,
    pub top_k: u64,
    pub micro_batch: u64,
    pub micro_batches: u32,
    pub tensor: u32,
    pub pipeline: u32,
    /// Groups of layers of a stage: group v p + s is on stage s of p.
    pub virtual_stages: u32,
    pub expert: u32,
    /// Activations are split over the tensor group between its layers: an all-gather and a reduce-scatter
    /// take the place of each all-reduce.
    pub sequence_parallel: bool,
    pub element_bytes: u64,
    pub gradient_bytes: u64,
    /// Floating point operations a second that a rank achieves.
    pub flops: f64,
}

impl Model {
    pub fn read(p: &mut Parameters) -> Model {
        let experts_help = "Experts of every layer; 0: a dense model.";
        let flops_help = "10^12 floating point operations a second that a GPU achieves (not its peak).";
        let sp_help =
            "Activations are split between layers: all-gather and reduce-scatter for each all-reduce.";
        let mut count =
            |key, default, lowest, highest, help| p.integer(key, default, (lowest, highest), help) as u64;
        let layers = count("layers", 32, 1, 10_000, "Transformer layers.") as u32;
        let hidden = count(
            "hidden",
            4096,
            1,
            1_000_000,
            "Width of the model; feed-forward layers have four times it.",
        );
        let sequence = count("sequence", 4096, 1, 100_000_000, "Tokens of a sequence.");
        let vocabulary =
            count("vocabulary", 32_000, 0, 10_000_000, "Entries of the vocabulary; 0: left out.");
        let experts = count("experts", 0, 0, 100_000, experts_help);
        let top_k = count("top_k", 2, 1, 1000, "Experts that a token is sent to.");
        let micro_batch = count("micro_batch", 1, 1, 100_000, "Sequences of a micro-batch.");
        let micro_batches =
            count("micro_batches", 8, 1, 100_000, "Micro-batches of a replica in a step.") as u32;
        let tensor = count("tensor", 1, 1, 100_000, "Ranks that share a layer (tensor parallel).") as u32;
        let pipeline = count("pipeline", 1, 1, 10_000, "Stages of the pipeline (pipeline parallel).") as u32;
        let virtual_help = "Groups of layers of a stage, through which a micro-batch comes in turn (Megatron's interleaved \
                            schedule).";
        let virtual_stages = count("virtual_stages", 1, 1, 10_000, virtual_help) as u32;
        let expert =
            count("expert", 1, 1, 100_000, "Ranks that share the experts of a layer (expert parallel).")
                as u32;
        let element_bytes = count("element_bytes", 2, 1, 16, "Bytes of an activation or parameter.");
        let gradient_bytes = count("gradient_bytes", 2, 1, 16, "Bytes of a gradient.");
        let model = Model {
            layers,
            hidden,
            sequence,
            vocabulary,
            experts,
            top_k,
            micro_batch,
            micro_batches,
            tensor,
            pipeline,
            virtual_stages,
            expert,
            element_bytes,
            gradient_bytes,
            sequence_parallel: p.flag("sequence_parallel", false, sp_help),
            flops: p.number("teraflops", 400.0, (1e-6, 1e9), flops_help) * 1e12,
        };
        if virtual_stages == 1 && p.peek("virtual_stages").is_none() {
            p.without_effect("virtual_stages", String::new);
        }
        let groups = u64::from(pipeline) * u64::from(virtual_stages);
        if pipeline > layers {
            let message = format!("{pipeline} stages for {layers} layers: expected at most one a layer");
            p.complain("pipeline", message);
        } else if groups > u64::from(layers) {
            let message = format!(
                "{groups} groups of {layers} layers (pipeline x virtual_stages): expected at most one a layer"
            );
            p.complain("virtual_stages", message);
        } else if virtual_stages > 1 && pipeline == 1 {
            p.complain("virtual_stages", "one stage has nothing to interleave: set pipeline too".into());
        } else if virtual_stages > 1 && micro_batches % pipeline != 0 {
            let message = format!(
                "{micro_batches} micro-batches do not fill {pipeline} stages in turn: expected a multiple of pipeline"
            );
            p.complain("micro_batches", message);
        }
        if experts == 0 {
            p.without_effect("top_k", || "a dense model has no experts".into());
            if expert > 1 {
                p.complain("expert", "a dense model has no experts: set experts too".into());
            }
        } else if experts % u64::from(expert) != 0 {
            p.complain("expert", format!("{expert} ranks cannot share {experts} experts equally"));
        } else if top_k > experts {
            p.complain("top_k", format!("a token cannot be sent to {top_k} of {experts} experts"));
        }
        model
    }

    /// Ranks of one replica and its experts.
    pub fn ranks_of_replica(&self) -> u64 {
        u64::from(self.tensor) * u64::from(self.pipeline) * u64::from(self.expert)
    }

    /// Layers of a stage.
    pub fn layers_of(&self, stage: u32) -> u32 {
        (0..self.virtual_stages).map(|chunk| self.layers_of_group(chunk * self.pipeline + stage)).sum()
    }

    /// Layers of one of the groups that the stages have in turn: the first have one more, where they are not equal.
    pub fn layers_of_group(&self, group: u32) -> u32 {
        let groups = self.pipeline * self.virtual_stages;
        self.layers / groups + u32::from(group < self.layers % groups)
    }

    /// Bytes of the parameters that have these gradients.
    pub fn parameters(&self, gradients: u64) -> u64 {
        gradients / self.gradient_bytes * self.element_bytes
    }

    /// Tokens of a micro-batch.
    fn tokens(&self) -> f64 {
        self.micro_batch as f64 * self.sequence as f64
    }

    fn time(&self, operations: f64) -> Time {
        Time((operations / f64::from(self.tensor) / self.flops * 1e12).round().min(4e18) as u64)
    }

    /// Forward computation of the attention of a layer, on one rank: 8 b s h^2 + 4 b s^2 h operations.
    pub fn attention(&self) -> Time {
        let (h, s) = (self.hidden as f64, self.sequence as f64);
        self.time(self.tokens() * (8.0 * h * h + 4.0 * s * h))
    }

    /// Of its feed-forward part: 16 b s h^2 operations, in as many experts as a token is sent to.
    pub fn feed_forward(&self) -> Time {
        let h = self.hidden as f64;
        let experts = if self.experts > 0 { self.top_k as f64 } else { 1.0 };
        self.time(self.tokens() * 16.0 * h * h * experts)
    }

    /// Of the output layer, which is on the last stage: 2 b s h V operations.
    pub fn output(&self) -> Time {
        self.time(self.tokens() * 2.0 * self.hidden as f64 * self.vocabulary as f64)
    }

    /// Activations of a micro-batch, between layers and between stages.
    pub fn activations(&self) -> u64 {
        let tokens = self.micro_batch.saturating_mul(self.sequence);
        tokens.saturating_mul(self.hidden).saturating_mul(self.element_bytes)
    }

    /// What a rank sends to the experts of a layer, itself among them.
    pub fn to_experts(&self) -> u64 {
        (self.activations().saturating_mul(self.top_k) / u64::from(self.tensor)).max(u64::from(self.expert))
    }

    /// Gradients of a layer on one rank: of what all replicas have, and of the rank's experts.
    pub fn gradients(&self) -> (u64, u64) {
        let square = self.hidden.saturating_mul(self.hidden).saturating_mul(self.gradient_bytes);
        let tensor = u64::from(self.tensor);
        match self.experts {
            0 => ((square.saturating_mul(12) / tensor).max(1), 0),
            experts => {
                let own = experts / u64::from(self.expert);
                (
                    (square.saturating_mul(4) / tensor).max(1),
                    (square.saturating_mul(8) / tensor).saturating_mul(own),
                )
            }
        }
    }

    /// Gradients of the embedding (on the first stage) or of the output layer (on the last one).
    pub fn vocabulary_gradients(&self) -> u64 {
        self.hidden.saturating_mul(self.vocabulary).saturating_mul(self.gradient_bytes)
            / u64::from(self.tensor)
    }
}
