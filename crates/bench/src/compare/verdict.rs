//! Which targets are better or worse than the baseline, and how certain that is.
//!
//! A difference is shown if the t-test's p, adjusted by Holm over all primary comparisons of the scenario, and the
//! sign-flip test's p are both at most 5 %. The sign-flip test, which assumes no distribution, is not adjusted: with
//! six rounds its p has steps of 1/32, so with two comparisons it could not show anything.

use experiment::{Ratio, holm};
use records::kinds::ExperimentOutcome;
use serde::Serialize;

use super::figure::RATE_ACHIEVED;
use super::{CaseComparison, CellFigureComparison, TargetComparison, serialize};
use crate::scenario::ROUNDS_MIN;

/// The error rate of all verdicts of a scenario together, and of each interval.
const ALPHA: f64 = 0.05;

/// The conclusion from the ratio of a primary figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseVerdict {
    #[serde(serialize_with = "serialize::text")]
    pub outcome: ExperimentOutcome,
    /// Why nothing can be said, or which difference could be shown; empty for a difference.
    pub reason: String,
    /// The p-value of the t-test, adjusted by Holm; 1 without a ratio.
    pub p_adjusted: f64,
}

/// Decides the verdict of every target except the baseline in every primary case. Returns the number of these
/// comparisons: their p-values are adjusted for all of them, so a failed one does not make the others easier to show.
pub(crate) fn decide(cases: &mut [CaseComparison], baseline: &str) -> usize {
    let compared = |target: &&mut TargetComparison| target.name != baseline;
    let primary = |case: &&mut CaseComparison| case.primary;
    let p_values: Vec<f64> = cases
        .iter_mut()
        .filter(primary)
        .flat_map(|case| {
            let CaseComparison { figure, targets, .. } = case;
            targets.iter_mut().filter(compared).map(|target| target.figure(figure).map_or(1.0, p))
        })
        .collect();
    let mut adjusted = holm(&p_values).into_iter();
    for case in cases.iter_mut().filter(primary) {
        let CaseComparison { figure, targets, .. } = case;
        for (target, p_adjusted) in targets.iter_mut().filter(compared).zip(&mut adjusted) {
            target.verdict = Some(judge(target, figure, p_adjusted, p_values.len()));
        }
    }
    p_values.len()
}

/// The p-value of a figure's ratio; 1 if it may not have a verdict.
fn p(figure: &CellFigureComparison) -> f64 {
    figure.ratio.filter(has_rounds).map_or(1.0, |ratio| ratio.p)
}

fn has_rounds(ratio: &Ratio) -> bool {
    ratio.pairs >= ROUNDS_MIN as usize
}

fn judge(target: &TargetComparison, figure: &str, p_adjusted: f64, comparisons: usize) -> CaseVerdict {
    let inconclusive =
        |reason: String| CaseVerdict { outcome: ExperimentOutcome::Inconclusive, reason, p_adjusted };
    let Some(compared) = target.figure(figure) else {
        return inconclusive(no_figure(target, figure));
    };
    let Some(ratio) = compared.ratio else {
        return inconclusive(compared.withheld.clone().unwrap_or_default());
    };
    if !has_rounds(&ratio) {
        return inconclusive(format!("{} of the {ROUNDS_MIN} rounds that a verdict takes", ratio.pairs));
    }
    if p_adjusted > ALPHA || target.p_sign_flip > ALPHA {
        let resolution = ratio.resolution(ALPHA / comparisons as f64);
        let reason = resolution.map_or_else(String::new, |share| {
            format!("{:.1} % could be shown in {} rounds", share * 100.0, ratio.pairs)
        });
        return CaseVerdict { outcome: ExperimentOutcome::NoDifference, reason, p_adjusted };
    }
    let is_better = (ratio.mean > 1.0) == (figure == RATE_ACHIEVED);
    let outcome = if is_better { ExperimentOutcome::Better } else { ExperimentOutcome::Worse };
    CaseVerdict { outcome, reason: String::new(), p_adjusted }
}

fn no_figure(target: &TargetComparison, figure: &str) -> String {
    match target.remarks.first() {
        _ if target.rounds_run == 0 => "it was not measured".to_owned(),
        Some(remark) => remark.text.clone(),
        None => format!("{figure} of {} is unknown", target.name),
    }
}
