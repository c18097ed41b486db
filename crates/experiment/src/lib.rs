//! Compares two values of a setting while everything else stays as it is: in pairs of blocks whose order a coin
//! decides, with the block as the unit of the statistics. `docs/experiments.md` describes the method.
//!
//! ```text
//!   words ──> Plan ──> SettingChange (a setting that there is, two values that it may have)
//!                         │
//!   intervals, time ──> Experiment ──> Step: switch to this value · a pair is done · verdict · put it back
//!                         │
//!                       Readings of each block ──> estimate ──> Verdict
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
pub use compare::{BLOCKS_MIN, FigureComparison, Finding, RunBlocks, alpha_of, blocks, compare};
pub use estimate::{Estimate, EstimateOptions, estimate, estimate_unpaired};
pub use experiment::{Experiment, Step};
pub use plan::{Plan, PlanError, SettingChange};
pub use statistics::{EXACT_PAIRS_MAX, pairs_min, sign_flip_p};
pub use verdict::{Judgement, judge};
