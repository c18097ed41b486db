//! The answer to the question of a case: which target is the cheapest, by how much, and how sure that is.

use experiment::Ratio;
use records::kinds::ExperimentOutcome;
use records::text::quantity::multiple;

use super::{CaseRemark, wording};
use crate::compare::{CaseComparison, TargetComparison};
use crate::scenario::Question;

/// The answer to the question of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseAnswer {
    /// Which target is the best, and by how much; if no verdict supports that, why not.
    pub headline: String,
    /// How certain the headline is.
    pub sentence: String,
}

impl CaseAnswer {
    pub fn of(case: &CaseComparison, baseline: &str) -> Self {
        let with_ratio =
            case.targets.iter().filter_map(|target| Some((target, target.figure(&case.figure)?.ratio?)));
        let with_ratio: Vec<(&TargetComparison, Ratio)> = with_ratio.collect();
        let is_decided =
            |target: &TargetComparison| outcome_of(target) != Some(ExperimentOutcome::Inconclusive);
        let decided: Vec<_> = with_ratio.iter().copied().filter(|(target, _)| is_decided(target)).collect();
        let compared = if decided.is_empty() { with_ratio } else { decided };
        let is_capacity = case.question == Question::Capacity;
        let gain = |ratio: &Ratio| if is_capacity { ratio.mean } else { 1.0 / ratio.mean };
        let best_of = |outcome: Option<ExperimentOutcome>| {
            let all =
                compared.iter().filter(|(target, _)| outcome.is_none() || outcome_of(target) == outcome);
            all.max_by(|(_, a), (_, b)| gain(a).total_cmp(&gain(b)))
        };
        let unit = if is_capacity { "requests" } else { "CPU time" };
        let Some((best, ratio)) = best_of(None) else {
            let nothing = || "No target has usable rounds together with the baseline.".to_owned();
            let reason = CaseRemark::all(case).first().map(ToString::to_string);
            let headline = if case.has_usable_round() { "No comparison" } else { "No usable round" };
            return Self { headline: headline.to_owned(), sentence: reason.unwrap_or_else(nothing) };
        };
        let is_compared = |name: &str| compared.iter().any(|(target, _)| target.name == name);
        let others = case.targets.iter().map(|target| &*target.name);
        let others: Vec<&str> = others.filter(|name| *name != baseline && !is_compared(name)).collect();
        let others =
            if others.is_empty() { String::new() } else { format!(" Not decided: {}.", others.join(", ")) };
        let answer =
            |headline: String, sentence: String| Self { headline, sentence: sentence + others.as_str() };
        if let Some((better, ratio)) = best_of(Some(ExperimentOutcome::Better)) {
            return answer(
                format!("{}: {} {unit}", better.name, difference(ratio.mean)),
                format!("Beside {baseline}: {}.", certainty(better, ratio)),
            );
        }
        let beside = format!("{}, {}: {}.", best.name, difference(ratio.mean), certainty(best, ratio));
        let is = |target: &TargetComparison, outcome| outcome_of(target) == Some(outcome);
        let worse = compared.iter().filter(|(target, _)| is(target, ExperimentOutcome::Worse));
        let worse: Vec<&str> = worse.map(|(target, _)| &*target.name).collect();
        if worse.len() == compared.len() {
            return answer(
                format!("{baseline}: {} {unit}", if is_capacity { "most" } else { "least" }),
                format!("Next is {beside}"),
            );
        }
        let headline = if !worse.is_empty() {
            format!("Worse: {}; no difference shown for others", worse.join(", "))
        } else if compared.iter().all(|(target, _)| is(target, ExperimentOutcome::Inconclusive)) {
            "Inconclusive".to_owned()
        } else if case.primary {
            "No difference shown".to_owned()
        } else {
            "No verdict asked".to_owned()
        };
        answer(headline, format!("Beside {baseline} {beside}"))
    }
}

fn outcome_of(target: &TargetComparison) -> Option<ExperimentOutcome> {
    target.verdict.as_ref().map(|verdict| verdict.outcome)
}

/// A ratio as a difference in percent, such as `10.0 % less`; a multiple if it is large.
fn difference(ratio: f64) -> String {
    match ratio {
        2.0.. => format!("{} the", multiple(ratio).replace(' ', "\u{a0}")),
        ..0.1 => format!("1/{} of the", multiple(1.0 / ratio).trim_end_matches(" ×")),
        1.0..2.0 => format!("{:.1}\u{a0}% more", (ratio - 1.0) * 100.0),
        _ => format!("{:.1}\u{a0}% less", (1.0 - ratio) * 100.0),
    }
}

fn certainty(target: &TargetComparison, ratio: &Ratio) -> String {
    let Ratio { mean, low, high, pairs, .. } = ratio;
    let [mean, low, high] = [*mean, *low, *high].map(wording::ratio);
    let interval = format!("ratio {mean}, 95 % interval {low} to {high}, {pairs} rounds");
    let Some(verdict) = &target.verdict else { return format!("{interval}; no verdict was asked") };
    let p = p(verdict.p_adjusted);
    match verdict.outcome {
        ExperimentOutcome::Better | ExperimentOutcome::Worse => format!("{interval}; shown, {p}"),
        ExperimentOutcome::NoDifference => format!("{interval}; not shown, it may be chance, {p}"),
        ExperimentOutcome::Inconclusive | ExperimentOutcome::Pending => {
            format!("{interval}; inconclusive: {}", verdict.reason)
        }
    }
}

/// A p-value in words.
pub(crate) fn p(value: f64) -> String {
    if value < 0.001 { "p below 0.001".to_owned() } else { format!("p {value:.3}") }
}
