//! The verdict on a figure.

use model::figures::Better;
use model::runs::Verdict;
use records::kinds::{ExperimentOutcome, Stage};

use crate::comparable_figure::ComparableFigure;
use crate::estimate::SampledEstimate;
use crate::statistics::pairs_min;

/// Judges a figure by its estimate, whose interval is at the error rate `alpha`. `obstacle` says why the figures are not comparable, if they are not.
pub fn judge(
    metric: &ComparableFigure,
    stage: Stage,
    estimate: Option<SampledEstimate>,
    alpha: f64,
    obstacle: Option<&str>,
) -> Verdict {
    let (outcome, reason) = match (obstacle, &estimate) {
        (Some(reason), _) => (ExperimentOutcome::Inconclusive, reason.to_owned()),
        (None, None) => (
            ExperimentOutcome::Inconclusive,
            format!("too few pairs with samples of {metric}: take longer blocks, or more load"),
        ),
        (None, Some(estimate)) => of_estimate(metric, stage, estimate, alpha),
    };
    Verdict { outcome, reason, estimate: estimate.map(|sampled| sampled.estimate) }
}

/// The reason for a percentile with fewer than ten samples above it.
pub(crate) fn too_thin(metric: &ComparableFigure) -> String {
    format!("too few samples: fewer than ten lie above {metric}")
}

fn of_estimate(
    metric: &ComparableFigure,
    stage: Stage,
    sampled: &SampledEstimate,
    alpha: f64,
) -> (ExperimentOutcome, String) {
    let (estimate, min) = (&sampled.estimate, pairs_min(alpha));
    if estimate.pairs_used < min.into() {
        return (
            ExperimentOutcome::Inconclusive,
            format!(
                "too few pairs: {} of the {min} that it takes; plan more, and let all of them run",
                estimate.pairs_used
            ),
        );
    }
    if sampled.is_thin {
        let why = too_thin(metric);
        return (
            ExperimentOutcome::Inconclusive,
            format!("{why}; take longer blocks, or a lower percentile"),
        );
    }
    match (stage, sampled.shows_difference(alpha)) {
        (Stage::Calibration, true) => (
            ExperimentOutcome::Inconclusive,
            format!(
                "the a/a run found a difference of {:+.2} % where there is none; repeat it",
                estimate.effect
            ),
        ),
        (_, false) => (ExperimentOutcome::NoDifference, String::new()),
        (Stage::Comparison, true) => {
            let is_better = (estimate.effect < 0.0) == (metric.better() == Better::Lower);
            (if is_better { ExperimentOutcome::Better } else { ExperimentOutcome::Worse }, String::new())
        }
    }
}
