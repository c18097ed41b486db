//! The records of an experiment's steps.

use model::runs::Verdict;
use records::kinds::{Arm, Estimate, ExperimentOutcome, ExperimentRecord, ExperimentStep, Stage};

use crate::comparable_figure::ComparableFigure;
use crate::experiment::{ExperimentRun, Step};

impl ExperimentRun {
    /// The records of a step: one for each figure if the step is about figures. `number` counts the run's experiments.
    pub fn records(&self, number: u64, step: &Step) -> Vec<ExperimentRecord> {
        let metrics = || self.plan().metrics.iter().enumerate();
        match step {
            Step::Begin => metrics()
                .map(|(at, metric)| self.of_metric(number, ExperimentStep::Begin, at, metric))
                .collect(),
            Step::Switch { stage, pair, arm, .. } => vec![ExperimentRecord {
                stage: *stage,
                pair: u64::from(*pair),
                arm: *arm,
                pairs: self.planned(*stage),
                ..self.blank(number, ExperimentStep::Switch)
            }],
            Step::Pair { stage, pair, estimates, effects } => {
                let told = |(((at, metric), estimate), effect): (_, &Option<f64>)| {
                    let estimate: &Option<Estimate> = estimate;
                    ExperimentRecord {
                        stage: *stage,
                        pair: u64::from(*pair),
                        pairs: self.planned(*stage),
                        estimate: *estimate,
                        pair_effect: *effect,
                        ..self.of_metric(number, ExperimentStep::Pair, at, metric)
                    }
                };
                metrics().zip(estimates).zip(effects).map(told).collect()
            }
            Step::Verdict { stage, judgements } => {
                let told =
                    |((at, metric), judgement): ((usize, &ComparableFigure), &Verdict)| ExperimentRecord {
                        stage: *stage,
                        pair: self.planned(*stage),
                        pairs: self.planned(*stage),
                        estimate: judgement.estimate,
                        outcome: judgement.outcome,
                        reason: judgement.reason.clone(),
                        ..self.of_metric(number, ExperimentStep::Verdict, at, metric)
                    };
                metrics().zip(judgements).map(told).collect()
            }
            // The change of the setting has a separate record.
            Step::End { .. } => Vec::new(),
        }
    }

    fn planned(&self, stage: Stage) -> u64 {
        match stage {
            Stage::Calibration => self.plan().calibration_pairs.into(),
            Stage::Comparison => self.plan().pairs.into(),
        }
    }

    fn of_metric(
        &self,
        number: u64,
        step: ExperimentStep,
        at: usize,
        metric: &ComparableFigure,
    ) -> ExperimentRecord {
        ExperimentRecord { metric: metric.name().to_owned(), is_primary: at == 0, ..self.blank(number, step) }
    }

    fn blank(&self, number: u64, step: ExperimentStep) -> ExperimentRecord {
        let (plan, change) = (self.plan(), self.change());
        ExperimentRecord {
            number,
            step,
            stage: self.stage(),
            arm: Arm::A,
            setting: change.setting.clone(),
            a: change.a.to_string(),
            b: change.b.to_string(),
            pair: 0,
            pairs: self.planned(self.stage()),
            block_us: plan.block.as_micros() as u64,
            discard_us: plan.discard.as_micros() as u64,
            flush: change.flush,
            seed: self.seed(),
            metric: String::new(),
            is_primary: false,
            estimate: None,
            pair_effect: None,
            outcome: ExperimentOutcome::Pending,
            reason: String::new(),
        }
    }
}
