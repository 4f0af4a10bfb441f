//! Which pipeline stages of a switch the queries of a plan need.
//!
//! A stage can use what earlier stages computed, so a query is a chain of steps, one a stage; chains of different queries lie side
//! by side. The choice of the query set needs one stage, and only the writes wait for it. What several queries need alike is done
//! once: the same value (its arithmetic), and nothing else, for every query hashes with keys of its own.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §5 and Fig 6: 4 stages for path tracing (layer, g, hash of the id, write), 4
//! for latency (latency, compress, g, write), 8 for congestion control (6 of arithmetic, approximate, write), all in the
//! same 8.
//! Differs from the source: the names of the six stages of arithmetic are ours, after appendix B and C; other aggregations are laid out
//! by the same rule, they are not in the paper. Memory and ALUs of a stage are not counted.

use std::fmt;

use crate::plan::Plan;
use crate::query::{Aggregation, Blocks, Query, Scale, Value};

/// The choice of the query set, as it is called in the table.
const CHOICE: &str = "query set";

/// One row of the table: a chain of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The query's name, or `query set`.
    pub name: String,
    /// What the first stage does, and so on.
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub does: String,
    /// Done by the query of this name, which needs the same.
    pub shared_with: Option<String>,
}

/// Where everything goes in a pipeline of `stages`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub stages: usize,
    /// The choice of the query set first, then the queries in the plan's order.
    pub chains: Vec<Chain>,
}

impl Layout {
    /// Stages that are needed.
    pub fn needed(&self) -> usize {
        self.chains.iter().map(|chain| chain.steps.len()).max().unwrap_or(0)
    }

    /// Chains that need more stages than there are, with how many.
    pub fn misfits(&self) -> Vec<(&str, usize)> {
        let long = self.chains.iter().filter(|chain| chain.steps.len() > self.stages);
        long.map(|chain| (chain.name.as_str(), chain.steps.len())).collect()
    }

    pub fn to_json(&self) -> serde_json::Value {
        let step = |step: &Step| serde_json::json!({ "does": step.does, "shared_with": step.shared_with });
        let chain = |chain: &Chain| {
            let steps: Vec<_> = chain.steps.iter().map(step).collect();
            serde_json::json!({ "name": chain.name, "stages": chain.steps.len(), "steps": steps })
        };
        serde_json::json!({
            "stages": self.stages,
            "needed": self.needed(),
            "chains": self.chains.iter().map(chain).collect::<Vec<_>>(),
            "misfits": self.misfits().iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        })
    }
}

/// Lays the queries of a plan out in a pipeline of `stages`.
pub fn layout(plan: &Plan, stages: usize) -> Layout {
    let queries = &plan.queries().queries;
    let mut chains = vec![Chain { name: CHOICE.to_string(), steps: vec![own("choose the set (q)")] }];
    for (place, query) in queries.iter().enumerate() {
        let before = queries[..place].iter().find(|other| other.value == query.value && computed(other));
        let shared = before.filter(|_| computed(query)).map(|other| other.name.clone());
        let mut steps: Vec<Step> = value_steps(query)
            .into_iter()
            .map(|does| Step { does: does.to_string(), shared_with: shared.clone() })
            .collect();
        steps.extend(own_steps(query).into_iter().map(own));
        chains.push(Chain { name: query.name.clone(), steps });
    }
    Layout { stages, chains }
}

fn own(does: &str) -> Step {
    Step { does: does.to_string(), shared_with: None }
}

/// Whether the query's value takes stages of its own.
fn computed(query: &Query) -> bool {
    !value_steps(query).is_empty()
}

/// The stages before the value is there. Ids, ports and queue lengths are read where they are used.
fn value_steps(query: &Query) -> Vec<&'static str> {
    match query.value {
        Value::SwitchId | Value::IngressPort | Value::EgressPort => vec![],
        Value::HopLatency => vec!["latency"],
        Value::Timestamp | Value::QueueBytes | Value::PortBytes => vec!["read value"],
        // U <- (T - tau)/T U + qlen tau/(B T^2) + byte/(B T), each product by logarithms.
        Value::Utilisation => {
            vec!["gap tau", "logarithms", "sums of logs", "powers", "sum of terms", "store U"]
        }
    }
}

/// The stages after the value is there.
fn own_steps(query: &Query) -> Vec<&'static str> {
    let exact =
        query.aggregation.approximation().is_some_and(|approximation| approximation.scale == Scale::Exact);
    match &query.aggregation {
        Aggregation::Path(path) => match path.blocks {
            Blocks::Hashes => vec!["layer (H)", "acts? (g)", "hash value (h)", "write"],
            Blocks::Fragments { .. } => vec!["layer (H)", "acts? (g)", "fragment", "write"],
        },
        Aggregation::Loops { .. } => vec!["hash id (h)", "compare", "acts? (g)", "write"],
        Aggregation::Quantiles { .. } | Aggregation::Frequent { .. } if exact => vec!["acts? (g)", "write"],
        Aggregation::Quantiles { .. } | Aggregation::Frequent { .. } => {
            vec!["compress", "acts? (g)", "write"]
        }
        Aggregation::Max(_) | Aggregation::Min(_) if exact => vec!["compare, write"],
        Aggregation::Max(_) | Aggregation::Min(_) => vec!["approximate", "compare, write"],
        Aggregation::Product(_) => vec!["approximate", "add, write"],
        // The level of the counter, the sum, and its rounding depend on each other.
        Aggregation::Sum(_) => vec!["level of code", "add value", "round (coin)", "write"],
        Aggregation::CountAbove { .. } => vec!["compare", "add, write"],
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut rows = vec![vec!["stage".to_string()]];
        rows[0].extend(self.chains.iter().map(|chain| chain.name.clone()));
        for stage in 0..self.needed().max(self.stages.min(self.needed())) {
            let cell = |chain: &Chain| match chain.steps.get(stage) {
                Some(Step { does, shared_with: Some(other) }) => format!("{does} (of {other})"),
                Some(step) => step.does.clone(),
                None => String::new(),
            };
            let mark = if stage < self.stages { "" } else { " (none)" };
            let mut row = vec![format!("{}{mark}", stage + 1)];
            row.extend(self.chains.iter().map(cell));
            rows.push(row);
        }
        f.write_str(&crate::plan::describe::table(&rows))?;
        let misfits = self.misfits();
        if misfits.is_empty() {
            return writeln!(f, "All queries fit: {} of {} stages.", self.needed(), self.stages);
        }
        for (name, needed) in misfits {
            writeln!(f, "{name} does not fit: it needs {needed} stages, the pipeline has {}.", self.stages)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
