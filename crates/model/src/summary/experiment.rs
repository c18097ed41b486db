//! Experiments in a summary.

use serde::Serialize;

use crate::runs::{ComparedFigure, Experiment, Verdict};
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
    pub(super) fn of(experiment: &Experiment) -> Self {
        let state = &experiment.state;
        Self {
            setting: state.setting.clone(),
            a: state.a.clone(),
            b: state.b.clone(),
            block_s: state.block_us as f64 / 1e6,
            discard_s: state.discard_us as f64 / 1e6,
            seed: state.seed,
            metrics: experiment.metrics.iter().map(ComparedFigureSummary::of).collect(),
        }
    }

    /// The verdicts of its stages in sentences, with their figures, the primary one first; or that there is none.
    pub fn sentences(&self) -> Vec<(String, Option<Estimate>)> {
        let of = |compared: &ComparedFigureSummary| {
            let judged = self.judged(&compared.metric);
            let stages =
                [(Stage::Calibration, &compared.calibration), (Stage::Comparison, &compared.verdict)];
            let told = stages.map(|(stage, verdict)| {
                verdict.as_ref().map(|verdict| (verdict.sentence(judged, stage), verdict.estimate))
            });
            told.into_iter().flatten().collect::<Vec<_>>()
        };
        let told: Vec<_> = self.metrics.iter().flat_map(of).collect();
        if told.is_empty() { vec![(self.judged("").unfinished(), None)] } else { told }
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
