//! Experiments in a summary.

use serde::Serialize;

use crate::runs::{ComparedFigure, Experiment, Verdict};
use records::kinds::{EstimateRecord, ExperimentOutcome};

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
    pub calibration: Option<VerdictSummary>,
    /// The verdict of the experiment; `null` if it did not end.
    pub verdict: Option<VerdictSummary>,
}

#[derive(Clone, Debug, Serialize)]
pub struct VerdictSummary {
    /// `better`, `worse`, `no difference shown` or `inconclusive`.
    pub outcome: String,
    /// Why, in words; may be empty.
    pub reason: String,
    /// How the figure compared; `null` if too little is known.
    pub estimate: Option<EstimateSummary>,
}

/// How a figure compared. Effects are in percent of the first figure, of shares in percentage points.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EstimateSummary {
    /// Pairs that it rests on.
    pub pairs: u64,
    /// The figure under the first value: latencies in microseconds.
    pub a: f64,
    /// The figure under the second value.
    pub b: f64,
    /// By how much the second differs.
    pub effect_percent: f64,
    /// Lower end of the interval.
    pub low_percent: f64,
    /// Upper end of the interval.
    pub high_percent: f64,
    pub confidence_percent: f64,
    /// How often chance alone would make a difference as large.
    pub p: f64,
    /// The difference that the planned pairs show four times in five.
    pub resolution_percent: f64,
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

    /// The outcome of the primary figure; `Pending` until the experiment is complete.
    pub fn outcome(&self) -> ExperimentOutcome {
        let verdict = self.metrics.first().and_then(|primary| primary.verdict.as_ref());
        verdict.and_then(|verdict| verdict.outcome.parse().ok()).unwrap_or_default()
    }
}

impl ComparedFigureSummary {
    fn of(compared: &ComparedFigure) -> Self {
        Self {
            metric: compared.metric.clone(),
            calibration: compared.calibration.as_ref().map(VerdictSummary::of),
            verdict: compared.verdict.as_ref().map(VerdictSummary::of),
        }
    }
}

impl VerdictSummary {
    fn of(verdict: &Verdict) -> Self {
        Self {
            outcome: verdict.outcome.to_string(),
            reason: verdict.reason.clone(),
            estimate: verdict.estimate.as_ref().map(EstimateSummary::of),
        }
    }
}

impl EstimateSummary {
    fn of(record: &EstimateRecord) -> Self {
        Self {
            pairs: record.pairs_used,
            a: record.a,
            b: record.b,
            effect_percent: record.effect,
            low_percent: record.low,
            high_percent: record.high,
            confidence_percent: record.confidence_percent,
            p: record.p_value,
            resolution_percent: record.resolution,
        }
    }
}
