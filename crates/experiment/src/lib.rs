//! Compares two values of a setting while everything else stays as it is: in pairs of blocks whose order a coin
//! decides, with the block as the unit of the statistics. `docs/experiments.md` describes the method.
//!
//! ```text
//!   text ──> ExperimentPlan ──> SettingChange (an existing setting, and two values that it can have)
//!                                  │
//!   intervals, time ──────> ExperimentRun ──> Step: switch to a value · a pair is done · verdict · restore
//!                                  │
//!                      BlockValue of each block ──> estimate ──> Verdict
//! ```
//!
//! No I/O and no clock: the caller passes times, a seed and the settings.

#![forbid(unsafe_code)]

mod block;
mod comparable_figure;
mod compare;
mod estimate;
mod experiment;
mod plan;
mod records;
mod statistics;
mod validity;
mod verdict;

pub use block::{BlockValue, LatencySource, Observation, SideInterval};
pub use comparable_figure::{ComparableFigure, NotAComparableFigure, Scale};
pub use compare::{
    BLOCKS_MIN, CompareOutcome, FigureComparison, RunBlocks, alpha_of, blocks, blocks_between, compare,
};
pub use estimate::{EstimateOptions, SampledEstimate, estimate};
pub use experiment::{ExperimentRun, Step};
pub use plan::{ExperimentPlan, ExperimentPlanError, SettingChange};
pub use statistics::{EXACT_PAIRS_MAX, Ratio, holm, median, pairs_min, sign_flip_p, sign_flip_p_of_pairs};
pub use verdict::judge;
