//! The state machine: switches values, and assigns intervals to blocks.

use model::runs::Verdict;
use records::kinds::{Arm, Estimate, Stage};
use records::setting::Value;

use crate::block::{Block, BlockValue, Observation};
use crate::comparable_figure::ComparableFigure;
use crate::estimate::{EstimateOptions, SampledEstimate, estimate, pair_effect};
use crate::plan::{ExperimentPlan, SettingChange};
use crate::validity::ValidityChecks;
use crate::verdict::judge;

/// Ticks jitter by milliseconds: an interval may begin before the discarded time ends, and a block end early, by this
/// fraction of an interval (1/10).
const SLACK: u64 = 10;
/// Bootstrap draws of an interval that is shown while the experiment runs.
const RUNNING_DRAWS: u32 = 1_000;

/// The next action or record of the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Begin,
    /// Give the setting this value, now.
    Switch {
        stage: Stage,
        /// The pair, from 1.
        pair: u32,
        /// The arm whose block begins. In the a/a stage both arms have the first value.
        arm: Arm,
        value: Value,
        /// Forget sessions and tickets.
        flush: bool,
    },
    /// A pair is complete. The estimates, one for each figure, are not verdicts before the end.
    Pair {
        stage: Stage,
        /// The pair, from 1.
        pair: u32,
        /// The estimates so far; `None` with too few pairs.
        estimates: Vec<Option<Estimate>>,
        /// The difference of each figure within this pair, as the effect of an estimate; `None` without samples.
        effects: Vec<Option<f64>>,
    },
    Verdict {
        stage: Stage,
        judgements: Vec<Verdict>,
    },
    /// The experiment has ended: restore the setting's value.
    End {
        /// The value before the experiment.
        value: Value,
        /// Forget sessions and tickets.
        flush: bool,
    },
}

/// An experiment under way. Times are `CLOCK_MONOTONIC` in microseconds.
#[derive(Debug)]
pub struct ExperimentRun {
    plan: ExperimentPlan,
    change: SettingChange,
    seed: u64,
    rng: fastrand::Rng,
    stage: Stage,
    /// The pair in progress, from 1.
    pair: u32,
    arm: Arm,
    /// Arm and values of the pair's first block; `None` in place of the values of an incomplete block.
    first: Option<(Arm, Option<Vec<BlockValue>>)>,
    block: Block,
    block_began_us: u64,
    interval_us: u64,
    load_threads: u64,
    /// The values of arm A and arm B of each complete pair of the stage.
    pairs: Vec<(Vec<BlockValue>, Vec<BlockValue>)>,
    validity: ValidityChecks,
    is_over: bool,
}

impl ExperimentRun {
    /// An experiment that has not begun. The plan must have a figure.
    pub fn new(plan: ExperimentPlan, change: SettingChange, seed: u64) -> Self {
        Self {
            stage: if plan.calibration_pairs > 0 { Stage::Calibration } else { Stage::Comparison },
            block: Block::new(&plan.metrics),
            plan,
            change,
            seed,
            rng: fastrand::Rng::with_seed(seed),
            pair: 0,
            arm: Arm::A,
            first: None,
            block_began_us: 0,
            interval_us: 0,
            load_threads: 0,
            pairs: Vec::new(),
            validity: ValidityChecks::default(),
            is_over: false,
        }
    }

    /// Begins, at the end of an interval.
    pub fn begin(&mut self, now_us: u64) -> Vec<Step> {
        vec![Step::Begin, self.begin_pair(now_us)]
    }

    /// Adds an interval that has ended. Call it before [`Self::advance`]. `load_threads` is the number of the load
    /// generator's threads, 0 without one.
    pub fn observe(&mut self, observation: &Observation<'_>, load_threads: u64) {
        self.interval_us = observation.span_us();
        self.load_threads = load_threads;
        let counts_from_us = self.block_began_us + self.plan.discard.as_micros() as u64;
        if observation.start_us + self.slack_us() >= counts_from_us {
            self.block.add(observation, &self.plan.metrics);
        }
    }

    /// Ends the block if it is time.
    pub fn advance(&mut self, now_us: u64) -> Vec<Step> {
        let ends_us = self.block_began_us + self.plan.block.as_micros() as u64;
        if self.is_over || self.pair == 0 || now_us + self.slack_us() < ends_us {
            return Vec::new();
        }
        self.end_block(now_us)
    }

    /// Notes that another setting changed, so the figures are not comparable.
    pub fn disturb(&mut self, what: &str) {
        self.validity.note_disturbance(format!("disturbed: {what}"));
    }

    pub fn stop(&mut self) -> Vec<Step> {
        if self.is_over {
            return Vec::new();
        }
        let (pair, pairs) = (self.pairs.len(), self.pairs_planned());
        self.validity.note_disturbance(format!("ended early, after {pair} of {pairs} pairs"));
        let judgements = self.judge();
        vec![Step::Verdict { stage: self.stage, judgements }, self.end()]
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn change(&self) -> &SettingChange {
        &self.change
    }

    pub fn plan(&self) -> &ExperimentPlan {
        &self.plan
    }

    /// The seed of the order of blocks.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The current stage, or the last one.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The arm of the current block, or of the last one.
    pub fn arm(&self) -> Arm {
        self.arm
    }

    /// The planned pairs of the current stage.
    pub fn pairs_planned(&self) -> u32 {
        match self.stage {
            Stage::Calibration => self.plan.calibration_pairs,
            Stage::Comparison => self.plan.pairs,
        }
    }

    fn slack_us(&self) -> u64 {
        self.interval_us / SLACK
    }

    fn begin_pair(&mut self, now_us: u64) -> Step {
        self.pair += 1;
        self.first = None;
        self.arm = if self.rng.bool() { Arm::A } else { Arm::B };
        self.begin_block(now_us)
    }

    fn begin_block(&mut self, now_us: u64) -> Step {
        self.block.clear();
        self.block_began_us = now_us;
        let arm = if self.stage == Stage::Calibration { Arm::A } else { self.arm };
        Step::Switch {
            stage: self.stage,
            pair: self.pair,
            arm: self.arm,
            value: self.change.value(arm).clone(),
            flush: self.change.flush,
        }
    }

    fn end_block(&mut self, now_us: u64) -> Vec<Step> {
        self.validity.add_block(self.arm, self.block.totals(), self.load_threads);
        let values = self.block.values(&self.plan.metrics);
        match self.first.take() {
            None => {
                self.first = Some((self.arm, values));
                self.arm = if self.arm == Arm::A { Arm::B } else { Arm::A };
                vec![self.begin_block(now_us)]
            }
            Some((arm, first)) => {
                let pair = first.zip(values).map(|(first, second)| match arm {
                    Arm::A => (first, second),
                    Arm::B => (second, first),
                });
                self.validity.count_pair(pair.is_none());
                let effects = self.pair_effects(pair.as_ref());
                self.pairs.extend(pair);
                self.end_pair(now_us, effects)
            }
        }
    }

    fn end_pair(&mut self, now_us: u64, effects: Vec<Option<f64>>) -> Vec<Step> {
        let (stage, pair) = (self.stage, self.pair);
        let estimates = self.estimates(RUNNING_DRAWS).into_iter();
        let estimates = estimates.map(|sampled| Some(sampled?.estimate)).collect();
        let done = Step::Pair { stage, pair, estimates, effects };
        if self.pair < self.pairs_planned() {
            return vec![done, self.begin_pair(now_us)];
        }
        let judgements = self.judge();
        // The primary figure decides whether the comparison follows.
        let goes_on = self.stage == Stage::Calibration
            && judgements.first().is_some_and(|judgement| {
                judgement.outcome == records::kinds::ExperimentOutcome::NoDifference
            });
        let verdict = Step::Verdict { stage: self.stage, judgements };
        if !goes_on {
            return vec![done, verdict, self.end()];
        }
        self.stage = Stage::Comparison;
        self.pair = 0;
        self.pairs.clear();
        self.validity = ValidityChecks::default();
        vec![done, verdict, self.begin_pair(now_us)]
    }

    /// The difference of each figure within a pair.
    fn pair_effects(&self, pair: Option<&(Vec<BlockValue>, Vec<BlockValue>)>) -> Vec<Option<f64>> {
        let effect = |(at, metric): (usize, &ComparableFigure)| {
            let (a, b) = pair?;
            pair_effect(metric, a.get(at)?, b.get(at)?)
        };
        self.plan.metrics.iter().enumerate().map(effect).collect()
    }

    fn end(&mut self) -> Step {
        self.is_over = true;
        Step::End { value: self.change.before.clone(), flush: self.change.flush }
    }

    fn estimates(&self, draws: u32) -> Vec<Option<SampledEstimate>> {
        let metrics = self.plan.metrics.iter().enumerate();
        metrics.map(|(at, metric)| self.estimate(at, metric, draws)).collect()
    }

    fn estimate(&self, at: usize, metric: &ComparableFigure, draws: u32) -> Option<SampledEstimate> {
        let pairs: Vec<_> = self.pairs.iter().filter_map(|(a, b)| Some((a.get(at)?, b.get(at)?))).collect();
        let options = EstimateOptions {
            alpha: self.plan.alpha(),
            draws,
            // The a/a stage gives the resolution of the pairs that follow it.
            pairs_planned: self.plan.pairs,
            seed: self.seed,
        };
        estimate(metric, &pairs, &options)
    }

    fn judge(&self) -> Vec<Verdict> {
        let metrics = self.plan.metrics.iter().zip(self.estimates(EstimateOptions::DRAWS));
        let judge = |(metric, estimate)| {
            judge(metric, self.stage, estimate, self.plan.alpha(), self.validity.reason(metric).as_deref())
        };
        metrics.map(judge).collect()
    }
}
