//! The words of experiments: two values of a setting compared in pairs of blocks (see `docs/experiments.md`).

use crate::record::keywords::keyword_enum;

keyword_enum! {
    /// Which of the two values.
    Arm {
        /// The first, with which the second is compared.
        #[default]
        A = "a",
        /// The second.
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
    /// The verdict of a stage.
    ExperimentOutcome {
        /// It is not over.
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
