//! Experiments in a summary.

use serde::Serialize;

use crate::figures::FigureName;
use crate::runs::{ComparedFigure, Experiment, Run, Verdict};
use records::kinds::{Estimate, ExperimentOutcome, Judged, Stage};

#[derive(Clone, Debug, Serialize)]
pub struct ExperimentSummary {
    /// The setting whose values were compared.
    pub setting: String,
    /// Its first value.
    pub a: String,
    /// Its second value.
    pub b: String,
    /// Length of a block, in seconds.
    pub block_s: f64,
    /// Time after each switch that did not count, in seconds.
    pub discard_s: f64,
    /// From which the order of the blocks was drawn.
    pub seed: u64,
    /// The compared figures, the primary one first.
    pub metrics: Vec<ComparedFigureSummary>,
    /// Why it has no verdict; `None` if it is over.
    #[serde(skip)]
    why_no_verdict: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ComparedFigureSummary {
    pub metric: String,
    /// The verdict of the a/a stage; `null` without one.
    pub calibration: Option<Verdict>,
    /// The verdict of the experiment; `null` if it did not end.
    pub verdict: Option<Verdict>,
}

impl ExperimentSummary {
    pub(super) fn of(run: &Run, experiment: &Experiment) -> Self {
        let state = &experiment.state;
        Self {
            setting: state.setting.clone(),
            a: state.a.clone(),
            b: state.b.clone(),
            block_s: state.block_us as f64 / 1e6,
            discard_s: state.discard_us as f64 / 1e6,
            seed: state.seed,
            metrics: experiment.metrics.iter().map(ComparedFigureSummary::of).collect(),
            why_no_verdict: run.why_no_verdict(experiment),
        }
    }

    /// That there is no verdict yet, or for good, and the verdicts in sentences, with their figures, the primary one first,
    /// and each before that of its A/A stage.
    pub fn sentences(&self) -> Vec<(String, Option<Estimate>)> {
        let of = |compared: &ComparedFigureSummary| {
            let judged = self.judged(&compared.metric);
            let stages =
                [(Stage::Comparison, &compared.verdict), (Stage::Calibration, &compared.calibration)];
            let told = stages.map(|(stage, verdict)| {
                let verdict = verdict.as_ref()?;
                let sentence = verdict.sentence(judged, stage) + &both_figures(&compared.metric, verdict);
                Some((sentence, verdict.estimate))
            });
            told.into_iter().flatten().collect::<Vec<_>>()
        };
        let none = self.why_no_verdict.iter().map(|reason| (self.judged("").without_verdict(reason), None));
        none.chain(self.metrics.iter().flat_map(of)).collect()
    }

    fn judged<'a>(&'a self, metric: &'a str) -> Judged<'a> {
        Judged { setting: &self.setting, a: &self.a, b: &self.b, metric }
    }

    /// The outcome of the primary figure; `Pending` until the experiment is complete.
    pub fn outcome(&self) -> ExperimentOutcome {
        let verdict = self.metrics.first().and_then(|primary| primary.verdict.as_ref());
        verdict.map(|verdict| verdict.outcome).unwrap_or_default()
    }
}

impl ComparedFigureSummary {
    fn of(compared: &ComparedFigure) -> Self {
        Self {
            metric: compared.metric.clone(),
            calibration: compared.calibration.clone(),
            verdict: compared.verdict.clone(),
        }
    }
}

/// The figures of both values in their unit, to follow the sentence of a verdict that rests on them; else empty.
pub fn both_figures(metric: &str, verdict: &Verdict) -> String {
    let unit = metric.parse().map(|name: FigureName| name.unit());
    match (verdict.estimate, unit) {
        (Some(Estimate { a, b, .. }), Ok(unit)) if verdict.outcome != ExperimentOutcome::Inconclusive => {
            format!("; A {}, B {}", unit.show(a), unit.show(b))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_both_figures_with_their_unit_if_it_rests_on_them() {
        let estimate = Some(Estimate { a: 420.0, b: 0.5, ..Estimate::default() });
        let both = |metric: &str, outcome| {
            both_figures(metric, &Verdict { outcome, reason: String::new(), estimate })
        };
        assert_eq!(both("exchange.p99", ExperimentOutcome::Better), "; A 0.42 ms, B 0.0005 ms");
        assert_eq!(both("requests.rate", ExperimentOutcome::NoDifference), "; A 420/s, B 0.5/s");
        assert_eq!(both("exchange.p99", ExperimentOutcome::Inconclusive), "");
        assert_eq!(both("figure.of.later", ExperimentOutcome::Better), "");
    }
}
