//! The machine: what to switch when, and which interval counts to which block.

use telemetry::Value;
use telemetry::experiment::{Arm, Stage};

use crate::block::{Block, BlockValue, Observation};
use crate::comparable_figure::ComparableFigure;
use crate::estimate::{Estimate, EstimateOptions, estimate};
use crate::plan::{Change, Plan};
use crate::validity::ValidityChecks;
use crate::verdict::{Judgement, judge};

/// Ticks wander by milliseconds: by this share of an interval one may begin before what is discarded ends, and a block
/// end before its time.
const SLACK: u64 = 10;
/// Draws for an interval that is shown while pairs still come.
const RUNNING_DRAWS: u32 = 1_000;

/// What is to be done, or told.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It begins.
    Begin,
    /// Give the setting this value, now.
    Switch {
        /// In which stage.
        stage: Stage,
        /// For which pair, from 1.
        pair: u32,
        /// For whose block. In the a/a stage both arms have the first value.
        arm: Arm,
        /// The value.
        value: Value,
        /// Forget sessions and tickets.
        flush: bool,
    },
    /// A pair is complete. The estimates, one for each metric, are of no worth as a verdict before the end.
    Pair {
        /// In which stage.
        stage: Stage,
        /// Which, from 1.
        pair: u32,
        /// How the figures stand; `None` while too little is known.
        estimates: Vec<Option<Estimate>>,
    },
    /// A stage is over.
    Verdict {
        /// Which.
        stage: Stage,
        /// What it came to, for each metric.
        judgements: Vec<Judgement>,
    },
    /// The experiment is over: give the setting back the value that it had before.
    End {
        /// That value.
        value: Value,
        /// Forget sessions and tickets.
        flush: bool,
    },
}

/// An experiment under way. Times are `CLOCK_MONOTONIC` in microseconds.
#[derive(Debug)]
pub struct Experiment {
    plan: Plan,
    change: Change,
    seed: u64,
    rng: fastrand::Rng,
    stage: Stage,
    /// From 1.
    pair: u32,
    arm: Arm,
    /// Readings of the pair's first block, once there is one: its arm, and `None` in place of values it lacks.
    first: Option<(Arm, Option<Vec<BlockValue>>)>,
    block: Block,
    block_began_us: u64,
    interval_us: u64,
    load_threads: u64,
    /// Of the complete pairs of the stage, for each metric: first `a`, then `b`.
    pairs: Vec<(Vec<BlockValue>, Vec<BlockValue>)>,
    validity: ValidityChecks,
    is_over: bool,
}

impl Experiment {
    /// Makes ready. The plan must have a metric.
    pub fn new(plan: Plan, change: Change, seed: u64) -> Self {
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

    /// Takes in an interval that has ended; before [`Self::advance`] at the same moment. `load_threads`: threads of the
    /// load generator, 0 without one.
    pub fn observe(&mut self, observation: &Observation<'_>, load_threads: u64) {
        self.interval_us = observation.span_us();
        self.load_threads = load_threads;
        let counts_from_us = self.block_began_us + self.plan.discard.as_micros() as u64;
        if observation.start_us + self.slack_us() >= counts_from_us {
            self.block.add(observation, &self.plan.metrics);
        }
    }

    /// Goes on if it is time.
    pub fn advance(&mut self, now_us: u64) -> Vec<Step> {
        let ends_us = self.block_began_us + self.plan.block.as_micros() as u64;
        if self.is_over || self.pair == 0 || now_us + self.slack_us() < ends_us {
            return Vec::new();
        }
        self.end_block(now_us)
    }

    /// Notes that something else changed, which makes the figures incomparable.
    pub fn disturb(&mut self, what: &str) {
        self.validity.note_disturbance(format!("disturbed: {what}"));
    }

    /// Ends it before its time.
    pub fn stop(&mut self) -> Vec<Step> {
        if self.is_over {
            return Vec::new();
        }
        let (pair, pairs) = (self.pairs.len(), self.pairs_planned());
        self.validity.note_disturbance(format!("ended early, after {pair} of {pairs} pairs"));
        let judgements = self.judge();
        vec![Step::Verdict { stage: self.stage, judgements }, self.end()]
    }

    /// True once it has come to its end.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What it compares.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// From which its order is drawn.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The stage that is under way, or was last.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Whose block is under way, or was last.
    pub fn arm(&self) -> Arm {
        self.arm
    }

    /// Pairs that are planned in the stage that is under way.
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
        self.validity.note_block(self.arm, self.block.totals(), self.load_threads);
        let values = self.block.values(&self.plan.metrics);
        match self.first.take() {
            None => {
                self.first = Some((self.arm, values));
                self.arm = if self.arm == Arm::A { Arm::B } else { Arm::A };
                vec![self.begin_block(now_us)]
            }
            Some((arm, first)) => {
                let pair = first.zip(values);
                self.validity.note_pair(pair.is_none());
                self.pairs.extend(pair.map(|(first, second)| match arm {
                    Arm::A => (first, second),
                    Arm::B => (second, first),
                }));
                self.end_pair(now_us)
            }
        }
    }

    fn end_pair(&mut self, now_us: u64) -> Vec<Step> {
        if self.pair < self.pairs_planned() {
            let done =
                Step::Pair { stage: self.stage, pair: self.pair, estimates: self.estimates(RUNNING_DRAWS) };
            return vec![done, self.begin_pair(now_us)];
        }
        let judgements = self.judge();
        // The primary figure decides whether there is a sense in going on.
        let goes_on = self.stage == Stage::Calibration
            && judgements
                .first()
                .is_some_and(|judgement| judgement.outcome == telemetry::experiment::Outcome::NoDifference);
        let verdict = Step::Verdict { stage: self.stage, judgements };
        if !goes_on {
            return vec![verdict, self.end()];
        }
        self.stage = Stage::Comparison;
        self.pair = 0;
        self.pairs.clear();
        self.validity = ValidityChecks::default();
        vec![verdict, self.begin_pair(now_us)]
    }

    fn end(&mut self) -> Step {
        self.is_over = true;
        Step::End { value: self.change.before.clone(), flush: self.change.flush }
    }

    fn estimates(&self, draws: u32) -> Vec<Option<Estimate>> {
        let metrics = self.plan.metrics.iter().enumerate();
        metrics.map(|(at, metric)| self.estimate(at, metric, draws)).collect()
    }

    fn estimate(&self, at: usize, metric: &ComparableFigure, draws: u32) -> Option<Estimate> {
        let pairs: Vec<_> = self.pairs.iter().filter_map(|(a, b)| Some((a.get(at)?, b.get(at)?))).collect();
        let options = EstimateOptions {
            alpha: self.plan.alpha(),
            draws,
            // What the a/a stage says of resolution is for the pairs that follow it.
            pairs_planned: self.plan.pairs,
            seed: self.seed,
        };
        estimate(metric, &pairs, &options)
    }

    fn judge(&self) -> Vec<Judgement> {
        let metrics = self.plan.metrics.iter().zip(self.estimates(EstimateOptions::DRAWS));
        let judge = |(metric, estimate)| {
            judge(metric, self.stage, estimate, self.plan.alpha(), self.validity.reason(metric).as_deref())
        };
        metrics.map(judge).collect()
    }
}
