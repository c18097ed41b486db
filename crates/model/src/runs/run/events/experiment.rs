//! The experiments of a run, built from its records.

use serde::Serialize;
use std::collections::VecDeque;

use crate::runs::run::aligned::AlignedRun;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{
    Arm, Estimate, ExperimentOutcome, ExperimentRecord, ExperimentStep, Judged, Stage, Stamp,
};
use records::text::clean::PEER_TEXT_MAX;

/// Experiments that are kept of a run, the latest.
const EXPERIMENTS_MAX: usize = 32;
/// Figures that an experiment may compare; further ones are not taken from a journal.
const METRICS_MAX: usize = 16;
/// Pairs whose differences are kept of a figure, the first of each stage.
const PAIRS_MAX: usize = 1_024;
/// Switches that are kept of an experiment, the latest.
const SWITCHES_MAX: usize = 2_048;

/// The largest size of a figure's texts: its name and two reasons.
const TEXTS_BYTES: usize = 3 * 4 * PEER_TEXT_MAX;

/// A switch to an arm: its value is in force from this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmSwitch {
    /// `CLOCK_MONOTONIC`, in microseconds.
    pub mono_us: u64,
    pub stage: Stage,
    /// The pair of the stage, from 1.
    pub pair: u64,
    /// The arm whose block begins.
    pub arm: Arm,
}

/// A stretch of time in which a value was in force, in microseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmStretch {
    pub start_us: u64,
    pub end_us: u64,
    pub arm: Arm,
}

/// The verdict of a stage for one figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub outcome: ExperimentOutcome,
    /// Why, in words; may be empty.
    pub reason: String,
    /// How the figure compared; `None` if too little is known.
    pub estimate: Option<Estimate>,
}

impl Verdict {
    /// Says it in a sentence.
    pub fn sentence(&self, judged: Judged<'_>, stage: Stage) -> String {
        judged.sentence(stage, self.outcome, &self.reason, self.estimate.as_ref())
    }
}

/// One figure that an experiment compares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparedFigure {
    /// Its name, such as `exchange.p99`.
    pub metric: String,
    /// True for the experiment's primary figure, which is fixed before it begins.
    pub is_primary: bool,
    /// The estimate of the running stage after the last pair. It is not a verdict before the end.
    pub running: Option<Estimate>,
    /// The differences within the pairs of the latest stage, in the order of the pairs: percent or percentage points, as
    /// the effect of an estimate.
    pub pair_effects: Vec<f64>,
    /// The verdict of the A/A stage, once it has ended.
    pub calibration: Option<Verdict>,
    /// The verdict of the experiment, once it has ended.
    pub verdict: Option<Verdict>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its latest record, except for single figures: the plan, the stage, the pair and the arm.
    pub state: ExperimentRecord,
    /// `CLOCK_MONOTONIC` at which it began, in microseconds.
    pub began_us: u64,
    /// `CLOCK_MONOTONIC` of its latest record, in microseconds.
    pub last_us: u64,
    /// The compared figures, the primary one first.
    pub metrics: Vec<ComparedFigure>,
    switches: VecDeque<ArmSwitch>,
}

impl Experiment {
    fn new(stamp: &Stamp, record: &ExperimentRecord) -> Self {
        let (metrics, switches) = (Vec::new(), VecDeque::new());
        Self { state: record.clone(), began_us: stamp.mono_us, last_us: stamp.mono_us, metrics, switches }
    }

    fn apply(&mut self, stamp: &Stamp, record: ExperimentRecord) {
        if record.step == ExperimentStep::Switch {
            if self.switches.len() == SWITCHES_MAX {
                self.switches.pop_front();
            }
            let ExperimentRecord { stage, pair, arm, .. } = record;
            self.switches.push_back(ArmSwitch { mono_us: stamp.mono_us, stage, pair, arm });
        }
        if record.stage != self.state.stage {
            self.metrics.iter_mut().for_each(|compared| compared.pair_effects.clear());
        }
        if !record.metric.is_empty() {
            self.update_figure(&record);
        }
        self.last_us = stamp.mono_us;
        self.state = record;
    }

    fn update_figure(&mut self, record: &ExperimentRecord) {
        let at = self.metrics.iter().position(|known| known.metric == record.metric);
        let at = match at {
            Some(at) => at,
            None if self.metrics.len() == METRICS_MAX => return,
            None => {
                let metric = ComparedFigure {
                    metric: record.metric.clone(),
                    is_primary: record.is_primary,
                    ..ComparedFigure::default()
                };
                let at = if record.is_primary { 0 } else { self.metrics.len() };
                self.metrics.insert(at, metric);
                at
            }
        };
        let compared = &mut self.metrics[at];
        match record.step {
            ExperimentStep::Begin => {}
            ExperimentStep::Switch => compared.running = record.estimate,
            ExperimentStep::Pair => {
                compared.running = record.estimate;
                let room = PAIRS_MAX.saturating_sub(compared.pair_effects.len());
                compared.pair_effects.extend(record.pair_effect.into_iter().take(room));
            }
            ExperimentStep::Verdict => {
                let ExperimentRecord { outcome, reason, estimate, .. } = record.clone();
                let verdict = Some(Verdict { outcome, reason, estimate });
                match record.stage {
                    Stage::Calibration => compared.calibration = verdict,
                    Stage::Comparison => compared.verdict = verdict,
                }
                compared.running = None;
            }
        }
    }

    /// The figure on which the experiment's verdict rests; `None` before it is known.
    pub fn primary(&self) -> Option<&ComparedFigure> {
        self.metrics.iter().find(|compared| compared.is_primary)
    }

    /// The verdict of the experiment; `None` while it runs, or if it was cut off.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.primary()?.verdict.as_ref()
    }

    /// True once there is a verdict that no further block follows. A comparison follows A against A that showed no
    /// difference.
    pub fn is_over(&self) -> bool {
        let calibration = self.primary().and_then(|primary| primary.calibration.as_ref());
        let goes_on = self.state.stage == Stage::Calibration
            && calibration.is_some_and(|verdict| verdict.outcome == ExperimentOutcome::NoDifference);
        self.state.step == ExperimentStep::Verdict && !goes_on
    }

    /// How far it is: `pair 3 of 12`, or `A against A, pair 3 of 6`.
    pub fn progress(&self) -> String {
        let ExperimentRecord { stage, pair, pairs, .. } = self.state;
        let stage = if stage == Stage::Calibration { "A against A, " } else { "" };
        format!("{stage}pair {pair} of {pairs}")
    }

    /// What a figure of it judges.
    pub fn judged<'a>(&'a self, compared: &'a ComparedFigure) -> Judged<'a> {
        Judged { metric: &compared.metric, ..self.state.judged() }
    }

    /// The verdict on a figure in a sentence, or why it was not reached; `None` while the experiment goes on.
    pub fn sentence(&self, compared: &ComparedFigure) -> Option<String> {
        let judged = self.judged(compared);
        match (&compared.verdict, &compared.calibration) {
            (Some(verdict), _) => Some(verdict.sentence(judged, Stage::Comparison)),
            (None, Some(verdict)) if self.is_over() => Some(verdict.sentence(judged, Stage::Calibration)),
            (None, _) => None,
        }
    }

    /// The stretches of time in which a value was in force, oldest first. Both arms of the A/A stage have the first value.
    pub fn stretches(&self) -> Vec<ArmStretch> {
        // A block that goes on ends as planned.
        let last_us = if self.is_over() { self.last_us } else { u64::MAX };
        let ends = self.switches.iter().skip(1).map(|next| next.mono_us).chain([last_us]);
        let stretch = |(switch, end_us): (&ArmSwitch, u64)| ArmStretch {
            start_us: switch.mono_us,
            end_us: end_us.min(switch.mono_us.saturating_add(self.state.block_us)),
            arm: match switch.stage {
                Stage::Calibration => Arm::A,
                Stage::Comparison => switch.arm,
            },
        };
        let mut merged: Vec<ArmStretch> = Vec::new();
        for next in self.switches.iter().zip(ends).map(stretch) {
            match merged.last_mut().filter(|last| last.arm == next.arm) {
                Some(last) => last.end_us = next.end_us,
                None => merged.push(next),
            }
        }
        merged
    }

    /// When which value came into force, oldest first.
    pub fn switches(&self) -> impl DoubleEndedIterator<Item = &ArmSwitch> + ExactSizeIterator {
        self.switches.iter()
    }

    /// Time since the last switch up to `now_us`, in microseconds; `None` before the first.
    pub fn block_elapsed_us(&self, now_us: u64) -> Option<u64> {
        self.switches.back().map(|switch| now_us.saturating_sub(switch.mono_us))
    }
}

/// All experiments of a run, oldest first.
#[derive(Debug, Default)]
pub(in crate::runs) struct Experiments(VecDeque<Experiment>);

impl Experiments {
    pub(in crate::runs) fn apply(&mut self, stamp: &Stamp, record: ExperimentRecord) {
        if let Some(known) = self.0.iter_mut().find(|known| known.state.number == record.number) {
            return known.apply(stamp, record);
        }
        if self.0.len() == EXPERIMENTS_MAX {
            self.0.pop_front();
        }
        let mut experiment = Experiment::new(stamp, &record);
        experiment.apply(stamp, record);
        self.0.push_back(experiment);
    }

    /// Their size in memory, in bytes.
    pub(in crate::runs) fn bytes(&self) -> usize {
        let each = |experiment: &Experiment| {
            let figure = |compared: &ComparedFigure| {
                size_of::<ComparedFigure>()
                    + TEXTS_BYTES
                    + compared.pair_effects.capacity() * size_of::<f64>()
            };
            let metrics: usize = experiment.metrics.iter().map(figure).sum();
            let switches = experiment.switches.capacity() * size_of::<ArmSwitch>();
            size_of::<Experiment>() + experiment.state.heap_bytes() + metrics + switches
        };
        self.0.iter().map(each).sum()
    }

    /// Merges the experiments of several runs by time.
    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let of = |(run, experiments): &(AlignedRun<'_>, &Self)| -> Vec<Experiment> {
            let shifted = |experiment: &Experiment| {
                let Experiment { state, began_us, last_us, metrics, switches } = experiment.clone();
                let shifted =
                    |switch: ArmSwitch| ArmSwitch { mono_us: run.shifted_us(switch.mono_us), ..switch };
                Experiment {
                    state,
                    began_us: run.shifted_us(began_us),
                    last_us: run.shifted_us(last_us),
                    metrics,
                    switches: switches.into_iter().map(shifted).collect(),
                }
            };
            experiments.iter().map(shifted).collect()
        };
        let mut merged: Vec<Experiment> = members.iter().flat_map(of).collect();
        merged.sort_by_key(|experiment| experiment.began_us);
        merged.truncate(EXPERIMENTS_MAX);
        Self(merged.into())
    }

    pub(in crate::runs) fn iter(&self) -> impl DoubleEndedIterator<Item = &Experiment> + ExactSizeIterator {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::ids::RunId;

    fn stamp(mono_us: u64) -> Stamp {
        Stamp { run: RunId::from_bits(1), seq: 1, mono_us, realtime_us: mono_us, interval_us: 0 }
    }

    fn record(step: ExperimentStep, stage: Stage, metric: &str) -> ExperimentRecord {
        ExperimentRecord {
            number: 1,
            step,
            stage,
            metric: metric.to_owned(),
            is_primary: metric == "exchange.p99",
            pairs: 12,
            ..ExperimentRecord::default()
        }
    }

    #[test]
    fn an_experiment_is_followed_from_its_plan_to_its_verdict() {
        let mut all = Experiments::default();
        for metric in ["cpu.per_exchange", "exchange.p99"] {
            all.apply(&stamp(5), record(ExperimentStep::Begin, Stage::Calibration, metric));
        }
        let mut switch = record(ExperimentStep::Switch, Stage::Comparison, "");
        (switch.arm, switch.pair) = (Arm::B, 3);
        all.apply(&stamp(70), switch);
        let estimate = Some(Estimate { effect: -5.0, ..Estimate::default() });
        let mut pair = record(ExperimentStep::Pair, Stage::Comparison, "exchange.p99");
        pair.estimate = estimate;
        all.apply(&stamp(80), pair.clone());
        let experiment = all.iter().next().unwrap();
        let names: Vec<_> = experiment.metrics.iter().map(|compared| &*compared.metric).collect();
        assert_eq!(names, ["exchange.p99", "cpu.per_exchange"]);
        assert_eq!((experiment.began_us, experiment.block_elapsed_us(95)), (5, Some(25)));
        assert_eq!((experiment.primary().unwrap().running, experiment.verdict()), (estimate, None));

        pair.step = ExperimentStep::Verdict;
        pair.outcome = ExperimentOutcome::Better;
        all.apply(&stamp(90), pair);
        let experiment = all.iter().next().unwrap();
        assert_eq!(experiment.verdict().unwrap().outcome, ExperimentOutcome::Better);
        assert_eq!(experiment.primary().unwrap().running, None);
    }

    #[test]
    fn pairs_and_switches_are_kept_of_each_stage() {
        let mut all = Experiments::default();
        let metric = "exchange.p99";
        let mut us = 0;
        for (stage, arms) in [(Stage::Calibration, [Arm::A, Arm::B]), (Stage::Comparison, [Arm::B, Arm::A])] {
            for arm in arms {
                let switch =
                    ExperimentRecord { arm, block_us: 10, ..record(ExperimentStep::Switch, stage, "") };
                all.apply(&stamp(us), switch);
                us += 10;
            }
            let pair_effect = Some(us as f64);
            all.apply(
                &stamp(us),
                ExperimentRecord { pair_effect, block_us: 10, ..record(ExperimentStep::Pair, stage, metric) },
            );
            let outcome = ExperimentOutcome::NoDifference;
            let verdict = record(ExperimentStep::Verdict, stage, metric);
            all.apply(&stamp(us), ExperimentRecord { outcome, block_us: 10, ..verdict });
            assert_eq!(all.iter().next().unwrap().is_over(), stage == Stage::Comparison);
        }
        let experiment = all.iter().next().unwrap();
        assert_eq!(experiment.metrics[0].pair_effects, [40.0], "of the latest stage");
        let arms: Vec<_> = experiment.stretches().iter().map(|at| (at.start_us, at.end_us, at.arm)).collect();
        assert_eq!(arms, [(0, 20, Arm::A), (20, 30, Arm::B), (30, 40, Arm::A)]);
        let sentence = experiment.sentence(&experiment.metrics[0]).unwrap();
        assert!(sentence.starts_with("no difference was shown between"), "{sentence}");
    }

    #[test]
    fn whatever_a_journal_says_experiments_stay_bounded() {
        let mut all = Experiments::default();
        for number in 0..100 {
            for n in 0..3_000 {
                let metric = format!("m{}", n % 50);
                let mut switch = record(ExperimentStep::Switch, Stage::Comparison, &metric);
                switch.number = number;
                all.apply(&stamp(n), switch);
            }
        }
        assert_eq!(all.iter().len(), EXPERIMENTS_MAX);
        for experiment in all.iter() {
            assert_eq!((experiment.metrics.len(), experiment.switches().len()), (METRICS_MAX, SWITCHES_MAX));
        }
    }
}
