//! Codes by name: tau and the layers' p for a path of k hops.
//!
//! | name | tau | p of the XOR layers |
//! |---|---|---|
//! | `baseline` | 1 | none |
//! | `paper-evaluation-isp` | 1/2 | 0.1 |
//! | `paper-evaluation-fat-tree` | 1/2 | 0.2 |
//! | `paper-body` | 3/4 | ln ln d / ln d, or 1 / ln d for d <= 15 |
//! | `paper-appendix` | (1 + lnln\* D) / (2 + lnln\* D) | (e^^(l-1)) / D for l = 1 to ln\* D |
//! | `tuned` | 0.6 | min(1/2, 5/k) |
//!
//! D is the appendix's gothic d, d / ln\* d, with d = k; ln\* is how often the natural logarithm is taken
//! until at most 1 is left, lnln\* its logarithm, e^^n a tower of n times e. `paper-evaluation` is
//! `-fat-tree` for up to 5 hops, else `-isp`, as evaluated with d = 5 and d = 10.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.2, §6.3, appendix A.2 and A.3 (tau'); body and appendix
//! disagree on the number of layers, and one layer was evaluated. `tuned` is ours, from a search over tau and
//! p: for one length, more layers gain nothing.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    Baseline,
    PaperEvaluation,
    PaperEvaluationIsp,
    PaperEvaluationFatTree,
    PaperBody,
    PaperAppendix,
    Tuned,
}

impl Preset {
    pub const ALL: [Preset; 7] = [
        Preset::Baseline,
        Preset::PaperEvaluation,
        Preset::PaperEvaluationIsp,
        Preset::PaperEvaluationFatTree,
        Preset::PaperBody,
        Preset::PaperAppendix,
        Preset::Tuned,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Preset::Baseline => "baseline",
            Preset::PaperEvaluation => "paper-evaluation",
            Preset::PaperEvaluationIsp => "paper-evaluation-isp",
            Preset::PaperEvaluationFatTree => "paper-evaluation-fat-tree",
            Preset::PaperBody => "paper-body",
            Preset::PaperAppendix => "paper-appendix",
            Preset::Tuned => "tuned",
        }
    }

    pub fn named(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Tau and the layers' p for a path of `hops`.
    pub fn numbers(self, hops: u32) -> (f64, Vec<f64>) {
        let d = f64::from(hops.max(1));
        match self {
            Preset::Baseline => (1.0, Vec::new()),
            Preset::PaperEvaluation => (0.5, vec![if hops <= 5 { 0.2 } else { 0.1 }]),
            Preset::PaperEvaluationIsp => (0.5, vec![0.1]),
            Preset::PaperEvaluationFatTree => (0.5, vec![0.2]),
            Preset::PaperBody => (0.75, vec![body(d)]),
            Preset::PaperAppendix => appendix(d),
            Preset::Tuned => (0.6, vec![(5.0 / d).min(0.5)]),
        }
    }
}

/// p of the hybrid of §4.2; paths of one or two hops have p = 1, where 1 / ln d is above it.
fn body(d: f64) -> f64 {
    let p = if d <= 15.0 { 1.0 / libm::log(d) } else { libm::log(libm::log(d)) / libm::log(d) };
    p.clamp(0.0, 1.0)
}

/// Tau' and the layers of appendix A.2 and A.3.
fn appendix(d: f64) -> (f64, Vec<f64>) {
    let gothic = d / f64::from(log_star(d).max(1));
    let layers = log_star(gothic).max(1);
    let log_log_star = libm::log(f64::from(layers));
    let tau = (1.0 + log_log_star) / (2.0 + log_log_star);
    let towers = std::iter::successors(Some(1.0), |&tower: &f64| Some(libm::exp(tower)));
    (tau, towers.take(layers as usize).map(|tower| (tower / gothic).min(1.0)).collect())
}

/// How often the natural logarithm is taken until at most 1 is left.
fn log_star(x: f64) -> u32 {
    std::iter::successors(Some(x), |&x| Some(libm::log(x))).take_while(|&x| x > 1.0).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: (f64, Vec<f64>), tau: f64, layers: &[f64]) {
        assert!((found.0 - tau).abs() < 0.006 && found.1.len() == layers.len(), "{found:?}");
        assert!(found.1.iter().zip(layers).all(|(p, expected)| (p - expected).abs() < 0.006), "{found:?}");
    }

    #[test]
    fn the_appendix_gives_the_values_of_the_specification() {
        close(Preset::PaperAppendix.numbers(5), 0.50, &[0.40]);
        close(Preset::PaperAppendix.numbers(10), 0.63, &[0.20, 0.54]);
        close(Preset::PaperAppendix.numbers(25), 0.63, &[0.12, 0.33]);
        close(Preset::PaperAppendix.numbers(59), 0.68, &[0.051, 0.138, 0.771]);
    }

    #[test]
    fn the_body_gives_the_values_of_figure_5() {
        close(Preset::PaperBody.numbers(25), 0.75, &[0.363]);
        close(Preset::PaperBody.numbers(5), 0.75, &[0.621]);
        close(Preset::PaperBody.numbers(1), 0.75, &[1.0]);
    }

    #[test]
    fn every_preset_makes_a_code_for_every_path() {
        for preset in Preset::ALL {
            for hops in 1..=255 {
                let (tau, layers) = preset.numbers(hops);
                assert!((0.0..=1.0).contains(&tau) && layers.iter().all(|p| (0.0..=1.0).contains(p)));
                assert!(layers.len() <= crate::code::MAX_LAYERS && (tau == 1.0 || !layers.is_empty()));
            }
            assert_eq!(Preset::named(preset.name()), Some(preset));
        }
    }
}
