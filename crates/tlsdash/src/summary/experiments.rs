//! The verdicts of experiments, in words.

use std::fmt::Write as _;

use model::runs::Verdict;
use model::summary::{ComparedFigureSummary, ExperimentSummary};
use records::kinds::Estimate;
use records::text::quantity;

pub(super) fn lines(experiments: &[ExperimentSummary], out: &mut String) {
    for experiment in experiments {
        let ExperimentSummary { setting, a, b, block_s, seed, metrics, .. } = experiment;
        super::line(
            out,
            "experiment",
            format_args!(
                "{setting}: {a} (A) against {b} (B), in pairs of blocks of {block_s} s, seed {seed}"
            ),
        );
        for compared in metrics {
            metric(compared, out);
        }
    }
    if !experiments.is_empty() {
        out.push('\n');
    }
}

fn metric(compared: &ComparedFigureSummary, out: &mut String) {
    if let Some(calibration) = &compared.calibration {
        super::line(out, "", format_args!("{}, A against A: {}", compared.metric, told(calibration)));
    }
    match &compared.verdict {
        Some(verdict) => {
            super::line(out, "", format_args!("{}, B against A: {}", compared.metric, told(verdict)));
        }
        None if compared.calibration.is_none() => {
            super::line(out, "", format_args!("{}: no verdict", compared.metric));
        }
        None => {}
    }
}

fn told(verdict: &Verdict) -> String {
    let mut text = verdict.outcome.word().to_uppercase();
    if !verdict.reason.is_empty() {
        let _ = write!(text, ": {}", verdict.reason);
    }
    if let Some(estimate) = &verdict.estimate {
        let Estimate { pairs_used: pairs, a, b, p_value: p, .. } = estimate;
        let percents = [estimate.effect, estimate.low, estimate.high];
        let [effect, low, high] = quantity::difference(percents, "%", 2);
        let confidence = estimate.confidence_percent;
        let _ = write!(
            text,
            "; {a:.4} and {b:.4}, {effect} ({low} to {high} at {confidence:.1} %), p {p:.4}, {pairs} pairs; {:.2} % could be shown",
            estimate.resolution
        );
    }
    text
}
