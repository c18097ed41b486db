//! The records of experiments.

use serde::Serialize;

use super::Judged;
use crate::text::keywords::keyword_enum;
use crate::wire::{field, wire};

wire! {
    /// The progress of an experiment: its plan, each switch, the figures after each pair, its outcome.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ExperimentRecord {
        /// Its number within the run, from 1.
        pub number: u64 = &field::EXPERIMENT,
        pub step: ExperimentStep = &field::EXPERIMENT_STEP,
        /// Which part of the experiment it is about.
        pub stage: Stage = &field::EXPERIMENT_STAGE,
        /// The arm whose value is in force.
        pub arm: Arm = &field::EXPERIMENT_ARM,
        /// Dotted name of the setting whose values are compared.
        pub setting: String = &field::EXPERIMENT_SETTING,
        pub a: String = &field::EXPERIMENT_A,
        pub b: String = &field::EXPERIMENT_B,
        /// The pair that is under way or complete, from 1 in each stage.
        pub pair: u64 = &field::EXPERIMENT_PAIR,
        /// Pairs that are planned in this stage.
        pub pairs: u64 = &field::EXPERIMENT_PAIRS,
        pub block_us: u64 = &field::EXPERIMENT_BLOCK,
        /// Time after each switch that does not count, in microseconds.
        pub discard_us: u64 = &field::EXPERIMENT_DISCARD,
        /// True if sessions and tickets are forgotten at each switch.
        pub flush: bool = &field::EXPERIMENT_FLUSH,
        /// From which the order within the pairs is drawn.
        pub seed: u64 = &field::EXPERIMENT_SEED,
        /// The figure that is compared, such as `exchange.p99`; the first one planned is the primary one.
        pub metric: String = &field::EXPERIMENT_METRIC,
        /// True if the verdict of the experiment is that on this figure.
        pub is_primary: bool = &field::EXPERIMENT_PRIMARY,
        /// How it compares; `None` before there are four pairs.
        pub estimate: Option<Estimate> = &field::EXPERIMENT_HAS_ESTIMATE,
        /// By how much the second value differed within the pair that is complete, as the estimate's effect.
        pub pair_effect: Option<f64> = &field::EXPERIMENT_PAIR_EFFECT,
        pub outcome: ExperimentOutcome = &field::EXPERIMENT_OUTCOME,
        /// Why, in words.
        pub reason: String = &field::EXPERIMENT_REASON,
    }
}

impl Estimate {
    /// The confidence of its interval: `95 %`, or `97.5 %`.
    pub fn confidence(&self) -> String {
        let percent = format!("{:.1}", self.confidence_percent);
        format!("{} %", percent.trim_end_matches(".0"))
    }
}

impl ExperimentRecord {
    /// What its figure judges.
    pub fn judged(&self) -> Judged<'_> {
        Judged { setting: &self.setting, a: &self.a, b: &self.b, metric: &self.metric }
    }
}

wire! {
    @part
    /// The comparison of a figure between the two arms.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
    pub struct Estimate {
        /// Pairs that it rests on.
        #[serde(rename = "pairs")]
        pub pairs_used: u64 = &field::EXPERIMENT_PAIRS_USED,
        /// The figure over all blocks of the first value, in its own unit.
        pub a: f64 = &field::EXPERIMENT_FIGURE_A,
        /// The figure over all blocks of the second.
        pub b: f64 = &field::EXPERIMENT_FIGURE_B,
        /// By how much the second differs: percent of the first, or percentage points of a share.
        #[serde(rename = "effect_percent")]
        pub effect: f64 = &field::EXPERIMENT_EFFECT,
        /// Lower end of its confidence interval.
        #[serde(rename = "low_percent")]
        pub low: f64 = &field::EXPERIMENT_EFFECT_LOW,
        #[serde(rename = "high_percent")]
        pub high: f64 = &field::EXPERIMENT_EFFECT_HIGH,
        pub confidence_percent: f64 = &field::EXPERIMENT_CONFIDENCE,
        /// How often chance alone would make a difference as large as this, by the sign-flip test.
        #[serde(rename = "p")]
        pub p_value: f64 = &field::EXPERIMENT_P,
        /// The difference that the planned pairs show four times in five, by how much the pairs spread.
        #[serde(rename = "resolution_percent", skip_serializing_if = "is_unknown")]
        pub resolution: f64 = &field::EXPERIMENT_RESOLUTION,
    }
}

keyword_enum! {
    /// Which of the two values.
    Arm {
        /// The first, with which the second is compared.
        #[default]
        A = "a",
        B = "b",
    }
}

keyword_enum! {
    /// Which part of an experiment.
    Stage {
        /// Both arms have the first value: any difference is due to chance.
        #[default]
        Calibration = "a/a",
        /// The two values are compared.
        Comparison = "a/b",
    }
}

keyword_enum! {
    /// The step that a record of an experiment reports.
    ExperimentStep {
        /// It begins, with this plan.
        #[default]
        Begin = "begin",
        /// A value is in force.
        Switch = "switch",
        /// A pair is complete, with the estimates up to now.
        Pair = "pair",
        /// A stage has ended, with its verdict.
        Verdict = "verdict",
    }
}

keyword_enum! {
    ExperimentOutcome {
        #[default]
        Pending = "pending",
        /// The second value is better than the first.
        Better = "better",
        /// The second value is worse than the first.
        Worse = "worse",
        /// No difference was shown, which does not mean that there is none.
        NoDifference = "no difference shown",
        /// Nothing can be said; the record has the reason.
        Inconclusive = "inconclusive",
    }
}

/// Two runs have no planned pairs.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_unknown(resolution: &f64) -> bool {
    *resolution == 0.0
}
